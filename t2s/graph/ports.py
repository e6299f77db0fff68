"""How often nodes access memory where each tensor of a node has a port of its own.

A port serves one access in a cycle: an element, or an aligned vector, which PEs side by side may
share.  So a node whose PEs access a tensor ``n`` times in a firing begins one in ``n`` cycles, as
with an ``m_axi`` bundle of Vitis HLS (UG1399, "Optimizing AXI System Performance").  In graphs with
machines the PEs of a node may be kernels of their own, which share no port: they do not wait for
each other, and a port whose data one of them does not take yet would block the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod

from t2s.core.expr import Expr, conjunction, conjuncts, const, index_names, is_static
from t2s.core.intervals import Interval, LinearForm, from_linear_form, linear_form
from t2s.core.types import BOOL
from t2s.graph.body import Load, Statement, Store
from t2s.graph.control.shared_nest import alone, keeps_together, shared_nest
from t2s.graph.graph import Graph, MemorySpace, Tensor
from t2s.graph.nodes import Machine, Node, PEArray, Search, SpaceDimension
from t2s.graph.semantics import pe_points
from t2s.graph.specialize import fold

LARGEST_WORD = 64
"""Bytes of the widest access that PEs share: the 512 bits of a port of AMD's memory controllers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wide:
    """Vectors of ``lanes`` elements, which are all that a node accesses of a tensor.

    ``pes`` neighbors along ``across`` share one.  Its elements are consecutive in the last
    ``dimensions`` of the tensor.
    """

    lanes: int
    pes: int = 1
    across: SpaceDimension | None = None
    dimensions: int = 1

    @property
    def words(self) -> int:
        """The number of vectors that all PEs along ``across`` share."""
        return 1 if self.across is None else self.across.extent // self.pes

    def first_of(
        self, indices: tuple[Expr, ...], shape: tuple[int, ...]
    ) -> tuple[tuple[Expr, ...], tuple[int, ...]]:
        """Where the first vector is that the PEs along ``across`` share, in a tensor of vectors."""
        form = _flat(indices, shape, self.dimensions)
        assert form is not None
        coefficients, constant = form
        scaled = {name: value // self.lanes for name, value in coefficients.items()}
        if self.across is not None:
            constant += coefficients[self.across.name] * self.across.minimum
            del scaled[self.across.name]
        at = from_linear_form((scaled, constant // self.lanes))
        outer = len(shape) - self.dimensions
        return (*indices[:outer], at), (*shape[:outer], prod(shape[outer:]) // self.lanes)


def _flat(indices: tuple[Expr, ...], shape: tuple[int, ...], dimensions: int) -> LinearForm | None:
    """The position in the last dimensions, in row-major order; ``None`` if it is not linear."""
    position: Expr = const(0)
    for index, size in list(zip(indices, shape, strict=True))[len(shape) - dimensions :]:
        position = position * size + index
    return linear_form(position)


def is_aligned(indices: tuple[Expr, ...], shape: tuple[int, ...], lanes: int) -> bool:
    """Whether the first of ``lanes`` elements always lies at a multiple of ``lanes``."""
    if lanes == 1:
        return True
    form = linear_form(indices[-1])
    if form is None or shape[-1] % lanes:
        return False
    coefficients, constant = form
    return all(value % lanes == 0 for value in (*coefficients.values(), constant))


def loading(graph: Graph) -> dict[str, tuple[str, ...]]:
    """The nodes that load each tensor, or search it: by its name, each node once."""
    return _using(graph, (Load, Search))


def storing(graph: Graph) -> dict[str, tuple[str, ...]]:
    """The nodes that store each tensor, by its name, each node once."""
    return _using(graph, (Store,))


def _using(graph: Graph, kinds: tuple[type[Statement], ...]) -> dict[str, tuple[str, ...]]:
    users: dict[str, dict[str, None]] = {}
    for node in graph.nodes:
        for statement in node.statements() if isinstance(node, Machine) else node.body:
            if isinstance(statement, kinds):
                assert isinstance(statement, Load | Store | Search)
                users.setdefault(statement.tensor, {})[node.name] = None
    return {tensor: tuple(nodes) for tensor, nodes in users.items()}


def wide_tensors(
    graph: Graph, body: Sequence[Statement], space: Sequence[SpaceDimension], guard: Expr | None
) -> dict[str, Wide]:
    """The tensors of which a node in lockstep accesses aligned vectors of one length only.

    One that nodes store and load has the same vectors for all of them, so that they can share a
    pointer to it.
    """
    found = _wide_tensors(graph, body, space, guard)
    if not found:
        return found
    loads, stores = loading(graph), storing(graph)
    for name in found.keys() & loads.keys() & stores.keys():
        users = {*loads[name], *stores[name]}
        nests = (shared_nest(node) for node in graph.pe_arrays if node.name in users)
        wide = [_wide_tensors(graph, nest.body, nest.space, nest.guard) for nest in nests]
        if any(name not in each or each[name].lanes != found[name].lanes for each in wide):
            del found[name]
    return found


def _wide_tensors(
    graph: Graph, body: Sequence[Statement], space: Sequence[SpaceDimension], guard: Expr | None
) -> dict[str, Wide]:
    """The tensors of which one node accesses aligned vectors of one length only."""
    uses: dict[str, list[Load | Store]] = {}
    for statement in body:
        if isinstance(statement, Load | Store):
            uses.setdefault(statement.tensor, []).append(statement)
    found: dict[str, Wide] = {}
    for name, statements in uses.items():
        tensor = graph.tensor(name)
        own = {_lanes(statement) for statement in statements}
        lanes = own.pop()
        if own or not all(is_aligned(s.indices, tensor.allocated, lanes) for s in statements):
            continue
        stores = any(isinstance(statement, Store) for statement in statements)
        best = Wide(lanes=lanes)
        if not (stores and len(statements) > 1):  # in their order, PE by PE
            for across, count in product(reversed(space), range(1, len(tensor.allocated) + 1)):
                pes = min(_pes_of_a_word(s, tensor, count, across, guard) for s in statements)
                if pes > best.pes:
                    best = Wide(lanes=lanes * pes, pes=pes, across=across, dimensions=count)
        if best.lanes > 1:
            found[name] = best
    return found


def _lanes(statement: Load | Store) -> int:
    return (statement.type if isinstance(statement, Load) else statement.value.type).lanes


def _pes_of_a_word(
    statement: Load | Store,
    tensor: Tensor,
    dimensions: int,
    across: SpaceDimension,
    guard: Expr | None,
) -> int:
    """How many PEs along ``across`` access one aligned word together: a power of two.

    All of them do, or none, which is known without the values of the design.
    """
    outer = statement.indices[: len(statement.indices) - dimensions]
    conditions = conjuncts(conjunction(guard, statement.condition))
    form = _flat(statement.indices, tensor.allocated, dimensions)
    if form is None or any(
        across.name in index_names(expr) or not is_static(expr) for expr in (*outer, *conditions)
    ):
        return 1
    lanes = _lanes(statement)
    coefficients, constant = form
    others = dict(coefficients)
    if others.pop(across.name, 0) != lanes or lanes & (lanes - 1):
        return 1
    size = prod(tensor.allocated[len(outer) :])
    aligned = gcd(*others.values(), constant + lanes * across.minimum, size, across.extent * lanes)
    pes = 1
    while aligned % (2 * pes * lanes) == 0 and (
        2 * pes * lanes * tensor.type.bytes <= LARGEST_WORD
    ):
        pes *= 2
    return pes


def accesses_of_body(
    body: Sequence[Statement],
    space: Sequence[SpaceDimension],
    ranges: Mapping[str, Interval],
    guard: Expr | None,
    wide: Mapping[str, Wide],
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
            vector = wide.get(statement.tensor)
            each = _lanes(statement) if vector is None else 1
            lanes[statement.tensor] = max(each, lanes.get(statement.tensor, 1))
            places = used.setdefault(statement.tensor, set())
            when = conjunction(guard, statement.condition)
            for point in points:
                at = {d.name: place for d, place in zip(space, point, strict=True)}
                known = {**ranges, **{name: (place, place) for name, place in at.items()}}
                if when is None or fold(when, known, at) != const(False, BOOL):
                    if vector is not None and (along := vector.across) is not None:
                        at[along.name] -= (at[along.name] - along.minimum) % vector.pes
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
    """The tensor in memory that a node accesses most often in one firing, and how often.

    In a graph with machines, each PE that has a kernel of its own has ports of its own.
    """
    counts: dict[str, int] = {}
    for each in _sharing_ports(graph, node):
        for name, count in _accesses(graph, each).items():
            if graph.tensor(name).place is MemorySpace.MEMORY:
                counts[name] = max(count, counts.get(name, 0))
    return max(counts.items(), key=lambda item: item[1], default=None)


def _sharing_ports(graph: Graph, node: Node) -> Iterator[Node]:
    """The node, or each of its PEs that shares no port with the others."""
    match node:
        case PEArray() if (
            graph.machines
            and any(isinstance(statement, Load | Store) for statement in node.body)
            and not keeps_together(graph, node)
        ):
            yield from (alone(node, point) for point in pe_points(node))
        case _:
            yield node


def _accesses(graph: Graph, node: Node) -> dict[str, int]:
    """The most accesses of each tensor in one firing: reads or writes, the more."""
    if isinstance(node, Machine):
        return accesses_of_machine(node)
    nest = shared_nest(node)
    wide = wide_tensors(graph, nest.body, nest.space, nest.guard)
    return accesses_of_body(nest.body, nest.space, nest.ranges, nest.guard, wide)
