"""Which firings of a nest run at once.

The innermost loops form a **group**, and the group is cut into blocks of ``width`` firings.  The
firings of a group must not depend on one another: conditions do not look at its loops, no tensor is
stored to twice in a firing, and what one reads from a register file that the nest writes, no other
firing of the group writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import numpy as np

from t2s.core.expr import Apply, Expr, ReduceLanes, index_names
from t2s.core.walk import walk
from t2s.graph.body import RegisterRead, RegisterWrite, Send, Statement, Store
from t2s.simulator.values.nests.digits import Numbers
from t2s.simulator.values.nests.nest import Nest, NestAccess, static

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
    width: firings of a block; 1 where nothing runs at once (and the group is empty).
    unrolled: whether the code has a copy for every block; if not, the group is one loop, and all
        addresses move by constant strides along it.
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
    """How many rounds a PE runs in, and how many of the outermost loops they are iterations of."""
    extents = [nest.frame.bounds[loop.name][1] for loop in nest.node.loops]
    depth = 0
    while depth < group.first and prod(extents[depth + 1 :]) >= _FIRINGS_OF_A_ROUND:
        depth += 1
    return prod(extents[:depth]), depth


def pattern(nest: Nest, first: int, access: NestAccess) -> Numbers:
    """What the loops from ``first`` on add to an address, in the order of the firings."""
    loops = [loop.name for loop in nest.node.loops[first:]]
    inside = [number for number, digit in enumerate(nest.frame.digits) if digit.loop in loops]
    total = np.zeros(1, np.int64)
    for number in inside:
        table = access.tables.get(number)
        axis = np.zeros(len(nest.frame.all[number]), np.int64) if table is None else table
        total = np.add.outer(total, axis).reshape(-1)
    return total


def stride(table: Numbers) -> int | None:
    """The constant distance between the entries of a table, if there is one."""
    if len(table) < 2:
        return 0
    steps = np.diff(table)
    return int(steps[0]) if (steps == steps[0]).all() else None


def accesses_of(nest: Nest) -> Iterable[NestAccess]:
    """Everything that a nest does to memory."""
    yield from (operand.access for operand in nest.operands.values())
    yield from nest.accesses.values()


def _worthwhile(statements: Iterable[Statement]) -> bool:
    """Whether something is computed, and what leaves the nest has one lane."""
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
        if not all(_same(accesses[0], other) for other in accesses[1:]):
            return False
        numbers = pattern(nest, first, accesses[0])
        if len(np.unique(numbers)) != len(numbers):
            return False
    return True


def _same(left: NestAccess, right: NestAccess) -> bool:
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
