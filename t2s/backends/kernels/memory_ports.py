"""How a kernel uses the tensors that are its parameters: wide, and how often in one firing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from t2s.backends.kernels.lockstep import LockstepNode
from t2s.backends.kernels.scope import KernelDesign
from t2s.core.expr import Expr, conjunction, const
from t2s.core.intervals import from_linear_form, linear_form
from t2s.core.types import BOOL
from t2s.graph.body import Load, Store
from t2s.graph.nodes import Machine
from t2s.graph.specialize import fold


def is_aligned(indices: tuple[Expr, ...], shape: tuple[int, ...], lanes: int) -> bool:
    """Whether the first of ``lanes`` elements always lies at a multiple of ``lanes``."""
    if lanes == 1:
        return True
    form = linear_form(indices[-1])
    if form is None or shape[-1] % lanes:
        return False
    coefficients, constant = form
    return all(value % lanes == 0 for value in (*coefficients.values(), constant))


def in_vectors(index: Expr, lanes: int) -> Expr:
    """The index of a vector whose first element has an aligned index."""
    form = linear_form(index)
    assert form is not None
    coefficients, constant = form
    scaled = {name: value // lanes for name, value in coefficients.items()}
    return from_linear_form((scaled, constant // lanes))


def wide_tensors(design: KernelDesign, node: LockstepNode) -> dict[str, int]:
    """Tensors that are parameters of vectors, with their lanes.

    A node accesses nothing else of such a tensor than aligned vectors of one length.
    """
    if not design.dialect.wide_parameters:
        return {}
    lanes: dict[str, set[int]] = {}
    for statement in node.body:
        if isinstance(statement, Load | Store):
            found = statement.type if isinstance(statement, Load) else statement.value.type
            shape = design.graph.tensor(statement.tensor).allocated
            whole = found.lanes if is_aligned(statement.indices, shape, found.lanes) else 1
            lanes.setdefault(statement.tensor, set()).add(whole)
    return {tensor: max(found) for tensor, found in lanes.items() if len(found) == 1 != max(found)}


def machine_accesses(machine: Machine) -> dict[str, int]:
    """The most accesses of each tensor in one firing of a machine: reads or writes, the more."""
    counts: dict[str, int] = {}
    for path in machine.paths():
        for kind in (Load, Store):
            used = Counter(s.tensor for s in path.statements if isinstance(s, kind))
            for tensor, count in used.items():
                counts[tensor] = max(count, counts.get(tensor, 0))
    return counts


def machine_interval(machine: Machine) -> int:
    """The initiation interval of a machine that one access per port and cycle gives."""
    return max(machine_accesses(machine).values(), default=1)


def accesses_per_firing(node: LockstepNode, wide: Mapping[str, int]) -> dict[str, int]:
    """How often the PEs of a node access each tensor in one firing: reads or writes, the more.

    PEs that load the same element share the access.
    """
    counts: dict[str, int] = {}
    for kind in (Load, Store):
        used: dict[str, set[tuple[Expr, ...]]] = {}
        lanes: dict[str, int] = {}
        for statement in node.body:
            if not isinstance(statement, kind):
                continue
            type = statement.type if isinstance(statement, Load) else statement.value.type
            each = 1 if statement.tensor in wide else type.lanes
            lanes[statement.tensor] = max(each, lanes.get(statement.tensor, 1))
            places = used.setdefault(statement.tensor, set())
            when = conjunction(node.guard, statement.condition)
            for point in node.points:
                at = {d.name: place for d, place in zip(node.space, point, strict=True)}
                ranges = node.ranges | {name: (place, place) for name, place in at.items()}
                if when is None or fold(when, ranges, at) != const(False, BOOL):
                    places.add(tuple(fold(index, ranges, at) for index in statement.indices))
        for tensor, places in used.items():
            counts[tensor] = max(counts.get(tensor, 1), len(places) * lanes[tensor])
    return counts
