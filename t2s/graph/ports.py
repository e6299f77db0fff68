"""How often nodes access memory where each tensor of a node has a port of its own.

A port serves one access in a cycle: an element, or an aligned vector.  So a node whose PEs access a
tensor ``n`` times in a firing begins one in ``n`` cycles, as with an ``m_axi`` bundle of Vitis HLS
(UG1399, "Optimizing AXI System Performance").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from t2s.core.expr import Expr, conjunction, const
from t2s.core.intervals import Interval, interval, linear_form
from t2s.core.types import BOOL
from t2s.graph.body import Load, Statement, Store
from t2s.graph.graph import Graph, MemorySpace
from t2s.graph.nodes import Machine, Node, PEArray, SpaceDimension
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


def wide_tensors(graph: Graph, body: Iterable[Statement]) -> dict[str, int]:
    """The tensors of which a body accesses aligned vectors of one length only, with their lanes."""
    lanes: dict[str, set[int]] = {}
    for statement in body:
        if isinstance(statement, Load | Store):
            found = statement.type if isinstance(statement, Load) else statement.value.type
            shape = graph.tensor(statement.tensor).allocated
            whole = found.lanes if is_aligned(statement.indices, shape, found.lanes) else 1
            lanes.setdefault(statement.tensor, set()).add(whole)
    return {tensor: max(found) for tensor, found in lanes.items() if len(found) == 1 != max(found)}


def accesses_of_body(
    body: Sequence[Statement],
    space: Sequence[SpaceDimension],
    ranges: Mapping[str, Interval],
    guard: Expr | None,
    wide: Mapping[str, int],
) -> dict[str, int]:
    """How often the PEs of a space access each tensor in one firing: reads or writes, the more.

    PEs that load the same element share the access.  ``ranges`` are those of loops, ``guard`` tells
    which PEs fire, and ``wide`` has the tensors of which a vector is one access.
    """
    points = list(product(*(range(d.minimum, d.minimum + d.extent) for d in space)))
    counts: dict[str, int] = {}
    for kind in (Load, Store):
        used: dict[str, set[tuple[Expr, ...]]] = {}
        lanes: dict[str, int] = {}
        for statement in body:
            if not isinstance(statement, kind):
                continue
            type = statement.type if isinstance(statement, Load) else statement.value.type
            each = 1 if statement.tensor in wide else type.lanes
            lanes[statement.tensor] = max(each, lanes.get(statement.tensor, 1))
            places = used.setdefault(statement.tensor, set())
            when = conjunction(guard, statement.condition)
            for point in points:
                at = {d.name: place for d, place in zip(space, point, strict=True)}
                known = {**ranges, **{name: (place, place) for name, place in at.items()}}
                if when is None or fold(when, known, at) != const(False, BOOL):
                    places.add(tuple(fold(index, known, at) for index in statement.indices))
        for tensor, places in used.items():
            counts[tensor] = max(counts.get(tensor, 1), len(places) * lanes[tensor])
    return counts


def accesses_of_machine(machine: Machine) -> dict[str, int]:
    """The most accesses of each tensor in one firing of a machine: reads or writes, the more."""
    counts: dict[str, int] = {}
    for path in machine.paths():
        for kind in (Load, Store):
            used = Counter(s.tensor for s in path.statements if isinstance(s, kind))
            for tensor, count in used.items():
                counts[tensor] = max(count, counts.get(tensor, 0))
    return counts


def busiest_port(graph: Graph, node: Node) -> tuple[str, int] | None:
    """The tensor in memory that a node accesses most often in one firing, and how often."""
    match node:
        case Machine():
            counts = accesses_of_machine(node)
        case _:
            wide = wide_tensors(graph, node.body)
            counts = accesses_of_body(node.body, node.space, _ranges(node), node.exists, wide)
    counts = {
        name: count
        for name, count in counts.items()
        if graph.tensor(name).place is MemorySpace.MEMORY
    }
    return max(counts.items(), key=lambda item: item[1], default=None)


def _ranges(node: PEArray) -> dict[str, Interval]:
    """The ranges of the loops of a node, where they are known."""
    ranges: dict[str, Interval] = {
        d.name: (d.minimum, d.minimum + d.extent - 1) for d in node.space
    }
    for loop in node.loops:
        low, extent = interval(loop.minimum, ranges), interval(loop.extent, ranges)
        if low is not None and extent is not None:
            ranges[loop.name] = (low[0], low[1] + extent[1] - 1)
    return ranges
