"""Directives and formats that are for streams only, for Capstan, or for external functions."""

from __future__ import annotations

from collections.abc import Iterable

from t2s.core.errors import UnsupportedError
from t2s.graph.graph import MemorySpace
from t2s.sparse_repr.concrete.external_directives import EXTERNAL_DIRECTIVES
from t2s.sparse_repr.concrete.pattern_directives import PATTERN_DIRECTIVES
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.notation.ir import Assignment, TensorDeclaration


def refuse_patterns(schedule: Schedule, assignment: Assignment) -> None:
    """Raise ``UnsupportedError`` for directives and places that only Capstan supports."""
    refuse_external(schedule, "streams do not know it")
    for directive in schedule.directives:
        if isinstance(directive, PATTERN_DIRECTIVES):
            raise UnsupportedError(
                "this directive is for Capstan, and streams do not know it",
                location=directive.location,
                expected="directives for streams",
                hint='sparse.compile(..., target="capstan")',
            )
    for tensor in assignment.tensors:
        if tensor.format.place is MemorySpace.CHIP:
            raise UnsupportedError(
                f"{tensor.name} is declared on chip, and streams have no such place",
                location=tensor.location,
                expected="formats without a place",
                hint='sparse.compile(..., target="capstan")',
            )


def refuse_blocks(tensors: Iterable[TensorDeclaration], who: str, what: str) -> None:
    """Raise ``UnsupportedError`` for a tensor of blocks; ``who`` does ``what`` with elements."""
    for tensor in tensors:
        if tensor.format.block:
            raise UnsupportedError(
                f"{tensor.name} is stored in blocks, and {who} {what}",
                location=tensor.location,
                expected="tensors of elements",
                given=str(tensor.format),
                hint=f"store {tensor.name} as {tensor.format.grid}",
            )


def refuse_external(schedule: Schedule, why: str) -> None:
    """Raise ``UnsupportedError`` for directives that only plans of external functions support."""
    for directive in schedule.directives:
        if isinstance(directive, EXTERNAL_DIRECTIVES):
            raise UnsupportedError(
                f"this directive is for external functions, and {why}",
                location=directive.location,
                expected="sparse.compile(A, schedule), which makes a plan of it",
                hint="plan.run(inputs) runs a plan",
            )
