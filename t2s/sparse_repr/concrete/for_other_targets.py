"""What streams refuse because it is said for Capstan."""

from __future__ import annotations

from t2s.core.errors import UnsupportedError
from t2s.graph.graph import Place
from t2s.sparse_repr.concrete.pattern_directives import PATTERN_DIRECTIVES
from t2s.sparse_repr.concrete.schedule import Precompute, Schedule
from t2s.sparse_repr.notation.ir import Assignment


def refuse_patterns(schedule: Schedule, assignment: Assignment) -> None:
    """Raise ``UnsupportedError`` for directives and places that only Capstan knows."""
    for one in schedule.directives:
        declared = isinstance(one, Precompute) and one.over is not None
        if isinstance(one, PATTERN_DIRECTIVES) or declared:
            raise UnsupportedError(
                "this directive is for Capstan, and streams do not know it",
                location=one.location,
                expected="directives for streams",
                hint='sparse.compile(..., target="capstan")',
            )
    for tensor in assignment.tensors:
        if tensor.format.place is Place.CHIP:
            raise UnsupportedError(
                f"{tensor.name} is declared on chip, and streams have no such place",
                location=tensor.location,
                expected="formats without a place",
                hint='sparse.compile(..., target="capstan")',
            )
