"""A node as a loop nest: live statements, memory accesses, and vectorized firings.

An address is a base for each PE plus a table for each digit, the same on all PEs.  All are proved
to be in bounds here, so the code of a nest checks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from t2s.core.expr import Apply, Expr, Local, ReduceLanes, index_names
from t2s.core.walk import walk
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement, Store
from t2s.graph.nodes import PEArray
from t2s.simulator.values.nests.digits import (
    DigitFrame,
    Numbers,
    Opaque,
    Product,
    picked,
    positions,
    size,
    spread,
)
from t2s.simulator.values.nests.trace import Reference, Source, TracedPE, Tracer, bindings, full

Tables = Mapping[int, Numbers]
Lanes = tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NestAccess:
    """The number of a scalar: ``bases[PE]`` plus, for each digit, an entry of its table."""

    bases: Numbers
    tables: Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A local in memory: ``lanes`` are scalars of ``source`` from ``access`` on.

    It is zero if ``condition`` does not hold, and so are lanes that are ``None``.
    """

    source: Source
    access: NestAccess
    lanes: Lanes
    condition: Expr | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Nest:
    """A node that runs as a loop nest.

    Attributes
    ----------
    frame: the digits of the loops.
    statements: the live statements of the body, in order.
    operands: locals that are loaded rather than computed.
    accesses: by position in ``statements``, the addresses of stores, sends and register files.
    """

    node: PEArray
    frame: DigitFrame
    statements: tuple[Statement, ...]
    operands: Mapping[str, Operand]
    accesses: Mapping[int, NestAccess]

    @property
    def sends(self) -> set[str]:
        """The channels it fills."""
        return {s.channel for s in self.statements if isinstance(s, Send)}


_Form = tuple[Source, int, Tables, Lanes]


class NestBuilder:
    """Builds a nest; ``pes`` are those of the node, ``sends`` the kept channels.

    Raises ``Opaque`` if the node is not a nest.
    """

    def __init__(self, tracer: Tracer, pes: Sequence[TracedPE], sends: set[str]) -> None:
        self._tracer = tracer
        self._pes = pes
        self._sends = sends
        self._operands: dict[str, Operand] = {}

    def build(self) -> Nest:
        """The nest."""
        node = self._pes[0].node if self._pes else None
        if node is None or len({id(pe.frame) for pe in self._pes}) != 1:
            raise Opaque
        statements = self._needed(node)
        accesses = {
            at: self._access(node, statement)
            for at, statement in enumerate(statements)
            if not isinstance(statement, Let)
        }
        return Nest(
            node=node,
            frame=self._pes[0].frame,
            statements=tuple(statements),
            operands=self._operands,
            accesses=accesses,
        )

    def _needed(self, node: PEArray) -> list[Statement]:
        """The live statements; locals in memory become operands."""
        bound = bindings(node)
        chosen: set[int] = set()
        waiting: list[Statement] = [
            s
            for s in node.body
            if isinstance(s, Store) or (isinstance(s, Send) and s.channel in self._sends)
        ]
        while waiting:
            statement = waiting.pop()
            if id(statement) in chosen:
                continue
            chosen.add(id(statement))
            locals_read = {term.name for term in walk(statement) if isinstance(term, Local)}
            waiting += [bound[name] for name in sorted(locals_read) if not self._lies(bound[name])]
            if isinstance(statement, RegisterRead):
                waiting += [
                    s
                    for s in node.body
                    if isinstance(s, RegisterWrite) and s.register == statement.register
                ]
        return [statement for statement in node.body if id(statement) in chosen]

    def _lies(self, statement: Statement) -> bool:
        """Whether the local that a statement binds is an operand."""
        match statement:
            case Let(target=name) | RegisterRead(target=name):
                condition = None
            case Receive(target=name, condition=condition) | Load(target=name, condition=condition):
                pass
            case _:
                raise Opaque
        if name in self._operands:
            return True
        try:
            self._operands[name] = self._operand(name, condition)
        except Opaque:
            if isinstance(statement, Receive | Load):
                raise
            return False
        return True

    def _operand(self, name: str, condition: Expr | None) -> Operand:
        known: dict[int, tuple[Reference, _Form]] = {}

        def form(pe: TracedPE, points: Product) -> _Form:
            reference = self._tracer.local(pe, name, points)
            if id(reference) not in known:
                base, tables = full(reference, points, pe.frame.all)
                known[id(reference)] = reference, (reference.source, base, tables, reference.lanes)
            return known[id(reference)][1]

        source, access, lanes = self._alike(condition, form)
        return Operand(source=source, access=access, lanes=lanes, condition=condition)

    def _access(self, node: PEArray, statement: Statement) -> NestAccess:
        match statement:
            case Send(channel=channel, value=value, condition=condition):
                form = self._token(channel, value.type.lanes)
            case Store(tensor=tensor, indices=indices, value=value, condition=condition):
                shape = self._tracer.network.graph.tensor(tensor).allocated
                form = _element(indices, shape, lanes=value.type.lanes)
            case RegisterRead(register=register, indices=indices, type=type):
                condition, shape = None, _shape(node, register)
                form = _element(indices, shape, scale=type.lanes)
            case RegisterWrite(register=register, indices=indices, value=value):
                condition = static(statement.condition)
                shape = _shape(node, register)
                form = _element(indices, shape, scale=value.type.lanes)
            case _:
                raise Opaque
        return self._alike(condition, form)[1]

    def _token(self, channel: str, lanes: int) -> Callable[[TracedPE, Product], _Form]:
        """The access for sent tokens: the row of the PE, in the order of sending."""
        network = self._tracer.network
        declaration = network.graph.channel(channel)

        def form(pe: TracedPE, points: Product) -> _Form:
            _, row = network.end(pe, declaration, declaration.source_index)
            tables: dict[int, Numbers] = {}
            for digit, values in enumerate(points):
                if len(values) > 1:
                    step = prod(len(later) for later in points[digit + 1 :])
                    everything = pe.frame.all[digit]
                    numbers = np.arange(len(values)) * (step * lanes)
                    tables[digit] = spread(numbers, positions(everything, values), len(everything))
            return None, row * self._tracer.pitch(channel), tables, ()

        return form

    def _alike(
        self, condition: Expr | None, form: Callable[[TracedPE, Product], _Form]
    ) -> tuple[Source, NestAccess, Lanes]:
        """The access that all PEs with a satisfiable condition share, except for the base."""
        bases = np.zeros(self._pes[0].node.place_count, np.int64)
        first: _Form | None = None
        for pe in self._pes:
            points = pe.points(condition)
            if not size(points):
                continue
            access = form(pe, points)
            bases[pe.number] = access[1]
            if first is None:
                first = access
            elif (first[0], first[3]) != (access[0], access[3]) or not _same(first[2], access[2]):
                raise Opaque
        if first is None:
            raise Opaque
        return first[0], NestAccess(bases=bases, tables=first[2]), first[3]


def _element(
    indices: Sequence[Expr], shape: Sequence[int], *, scale: int = 1, lanes: int = 1
) -> Callable[[TracedPE, Product], _Form]:
    """The row-major number of an element, times ``scale``; ``Opaque`` if one is out of bounds."""

    def form(pe: TracedPE, points: Product) -> _Form:
        base, tables = 0, dict[int, Numbers]()
        for at, (index, extent) in enumerate(zip(indices, shape, strict=True)):
            total = pe.frame.sum(index, pe.known)
            low = high = total.base
            step = scale * prod(shape[at + 1 :])
            base += step * total.base
            for digit, table in total.tables.items():
                entries = picked(table, positions(pe.frame.all[digit], points[digit]))
                low, high = low + int(entries.min()), high + int(entries.max())
                tables[digit] = tables.get(digit, 0) + step * table
            if low < 0 or high >= extent - (lanes - 1 if at == len(shape) - 1 else 0):
                raise Opaque
        return None, base, tables, ()

    return form


def static(condition: Expr | None) -> Expr | None:
    """The static condition, or ``None`` (always) if it depends on data."""
    if condition is None or any(isinstance(term, Local) for term in walk(condition)):
        return None
    return condition


def _shape(node: PEArray, register: str) -> tuple[int, ...]:
    return next(declaration.shape for declaration in node.registers if declaration.name == register)


def _same(left: Tables, right: Tables) -> bool:
    return left.keys() == right.keys() and all(
        table is right[digit] or np.array_equal(table, right[digit])
        for digit, table in left.items()
    )


# The firings of a nest that run at once.
#
# The innermost loops form a **group**, which is cut into blocks of ``width`` firings.  The firings
# of a group must be independent: conditions do not depend on its loops, no tensor is stored to
# twice in a firing, and no firing reads a register that another firing of the group writes.

_REGISTER_BYTES = 64
_MOST_FUSED = 64
_MOST_UNROLLED = 4
_FIRINGS_OF_A_ROUND = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The loops from ``first`` on run in blocks.

    Attributes
    ----------
    extent: firings of the group.
    width: firings of a block; 1 without vectorization (and the group is empty).
    unrolled: whether the code has a copy for every block; if not, the group is one loop, along
        which all addresses have constant strides.
    """

    first: int
    extent: int
    width: int
    unrolled: bool


def group_of(nest: Nest) -> Group:
    """The group of a nest."""
    depth = len(nest.node.loops)
    single = Group(first=depth, extent=1, width=1, unrolled=True)
    if not _worthwhile(nest.statements):
        return single
    widest = max((term.type.bits for term in _exprs(nest.statements)), default=32)
    lanes = _REGISTER_BYTES // max(4, widest // 8)
    best = single
    extents = [nest.frame.bounds[loop.name][1] for loop in nest.node.loops]
    for first in reversed(range(depth)):
        extent = prod(extents[first:])
        if (first < depth - 1 and extent > _MOST_FUSED) or not _independent(nest, first):
            break
        width = min(lanes, extent)
        unrolled = extent <= _MOST_UNROLLED * width
        if not unrolled and (first < depth - 1 or not _strided(nest, first)):
            break
        best = Group(first=first, extent=extent, width=width, unrolled=unrolled)
        if extent >= lanes:
            break
    return best if best.width > 1 else single


def rounds_of(nest: Nest, group: Group) -> tuple[int, int]:
    """The number of rounds, and of the outermost loops that they iterate over."""
    extents = [nest.frame.bounds[loop.name][1] for loop in nest.node.loops]
    depth = 0
    while depth < group.first and prod(extents[depth + 1 :]) >= _FIRINGS_OF_A_ROUND:
        depth += 1
    return prod(extents[:depth]), depth


def pattern(nest: Nest, first: int, access: NestAccess) -> Numbers:
    """The offsets that the loops from ``first`` on add to an address, in firing order."""
    loops = [loop.name for loop in nest.node.loops[first:]]
    inside = [number for number, digit in enumerate(nest.frame.digits) if digit.loop in loops]
    total = np.zeros(1, np.int64)
    for number in inside:
        table = access.tables.get(number)
        axis = np.zeros(len(nest.frame.all[number]), np.int64) if table is None else table
        total = np.add.outer(total, axis).reshape(-1)
    return total


def stride(table: Numbers) -> int | None:
    """The constant stride of a table, or ``None``."""
    if len(table) < 2:
        return 0
    steps = np.diff(table)
    return int(steps[0]) if (steps == steps[0]).all() else None


def accesses_of(nest: Nest) -> Iterable[NestAccess]:
    """All memory accesses of a nest."""
    yield from (operand.access for operand in nest.operands.values())
    yield from nest.accesses.values()


def _worthwhile(statements: Iterable[Statement]) -> bool:
    """Whether the nest computes something, and all its results are scalars."""
    leaving = [s for s in statements if isinstance(s, Store | Send)]
    computing = any(isinstance(e, Apply | ReduceLanes) for e in _exprs(statements))
    return computing and all(s.value.type.lanes == 1 for s in leaving)


def _exprs(statements: Iterable[Statement]) -> Iterable[Expr]:
    for statement in statements:
        yield from (t for t in walk(statement) if isinstance(t, Expr) and not t.type.is_bool)


def _independent(nest: Nest, first: int) -> bool:
    loops = {loop.name for loop in nest.node.loops[first:]}
    digits = [digit for digit in nest.frame.digits if digit.loop in loops]
    if prod(len(d.values) for d in digits) != prod(nest.frame.bounds[name][1] for name in loops):
        return False
    conditions = [operand.condition for operand in nest.operands.values()]
    conditions += [getattr(statement, "condition", None) for statement in nest.statements]
    if any(c is not None and (index_names(c) & loops or c is not static(c)) for c in conditions):
        return False
    stored = [statement.tensor for statement in nest.statements if isinstance(statement, Store)]
    if len(set(stored)) < len(stored):
        return False
    by_register: dict[str, list[NestAccess]] = {}
    written = set()
    for at, statement in enumerate(nest.statements):
        if isinstance(statement, RegisterRead | RegisterWrite):
            by_register.setdefault(statement.register, []).append(nest.accesses[at])
            if isinstance(statement, RegisterWrite):
                written.add(statement.register)
    for register in written:
        accesses = by_register[register]
        if not all(_same_access(accesses[0], other) for other in accesses[1:]):
            return False
        numbers = pattern(nest, first, accesses[0])
        if len(np.unique(numbers)) != len(numbers):
            return False
    return True


def _same_access(left: NestAccess, right: NestAccess) -> bool:
    return (
        np.array_equal(left.bases, right.bases)
        and left.tables.keys() == right.tables.keys()
        and all(np.array_equal(table, right.tables[d]) for d, table in left.tables.items())
    )


def _strided(nest: Nest, first: int) -> bool:
    loop = nest.node.loops[first].name
    inside = [number for number, digit in enumerate(nest.frame.digits) if digit.loop == loop]
    return len(inside) == 1 and all(
        stride(access.tables[inside[0]]) is not None
        for access in accesses_of(nest)
        if inside[0] in access.tables
    )
