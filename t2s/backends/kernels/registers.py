"""The implementation of register files, and which of them need initial values.

A file that is read and written once per firing, at an address that cycles through it in order, is a
shift register: it needs no address, and a new value enters while the oldest leaves.  Any other file
is an array; so is one of more than ``LONGEST_SHIFT`` elements.

An array of more than ``LARGEST_REGISTERS`` bytes per PE belongs into block RAM, with a bank for
each PE, which is the last index there.  A file that is read once and written once per firing gets
one port for each, and both halves of a double buffer are in the same bank.  If all time is one
loop, a pragma states the least distance in firings of two accesses to an element
(``firings_apart``).  In a nest, loops that carry a value from one
iteration to another are not flattened into those inside, and the latter are declared independent.

The elements start at zero, or at the register's initial value.  If every value that is read before
the first write is discarded (the usual ``0 if k == 0 else accumulator``), nothing has to be
cleared; this is found by enumeration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from t2s.backends.kernels.conditions import uses_of
from t2s.backends.kernels.links import LONGEST_SHIFT
from t2s.backends.kernels.lockstep import (
    LockstepNode,
    enumerate_domain,
    enumerate_start,
    extent_of,
    loops_used,
    one_for_all,
    period_along,
    select_loops,
)
from t2s.core.expr import Apply, Const, Expr, Index, conjuncts, const, is_static
from t2s.core.ops import Array, Op
from t2s.graph.body import RegisterRead, RegisterWrite
from t2s.graph.control.iterations import Iterations
from t2s.graph.control.shared_nest import TimeLoop
from t2s.graph.nodes import Register

LARGEST_REGISTERS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterPlan:
    """The plan of a register file: ``rotating`` as a shift register, ``cleared`` at the start.

    ``in_memory``: it is in block RAM, and ``single_ports`` if each of its accesses has a port of
    its own; ``apart`` is the least number of firings between two
    accesses to an element of which one is a write (``None``: there are none), and ``carried_by``
    names the loops that carry values from one iteration to another.
    """

    register: Register
    rotating: bool
    cleared: bool
    in_memory: bool = False
    single_ports: bool = False
    apart: int | None = 1
    carried_by: frozenset[str] = frozenset()

    @property
    def length(self) -> int:
        return prod(self.register.shape)


def plan_registers(node: LockstepNode, *, whole_nest: bool) -> dict[str, RegisterPlan]:
    """The plan of every register file that the body uses, by name.

    With ``whole_nest`` a nest of loops is flattened into one, and distances are counted in it.
    """
    used = {s.register for s in node.body if isinstance(s, RegisterRead | RegisterWrite)}
    return {
        register.name: _plan(node, register, whole_nest=whole_nest)
        for register in node.node.registers
        if register.name in used
    }


def _plan(node: LockstepNode, register: Register, *, whole_nest: bool) -> RegisterPlan:
    rotating = _rotates(node, register)
    cleared = _must_be_cleared(node, register)
    if rotating or prod(register.shape) * register.type.bytes <= LARGEST_REGISTERS:
        return RegisterPlan(register=register, rotating=rotating, cleared=cleared)
    reads, writes = accesses(node, register)
    return RegisterPlan(
        register=register,
        rotating=False,
        cleared=cleared,
        in_memory=True,
        # clearing takes another port
        single_ports=len(reads) == len(writes) == 1 and not cleared,
        apart=firings_apart(node, register) if whole_nest or len(node.loops) == 1 else 1,
        carried_by=carrying_loops(node, register),
    )


# --------------------------------------------------------------------------------- rotation


def _rotates(node: LockstepNode, register: Register) -> bool:
    """Whether every firing reads and then writes the next element, cyclically."""
    reads, writes = accesses(node, register)
    if len(reads) != 1 or len(writes) != 1 or not 1 < prod(register.shape) <= LONGEST_SHIFT:
        return False
    (read_at, read), (write_at, write) = reads[0], writes[0]
    if read_at > write_at or read.indices != write.indices:
        return False
    if write.condition is not None or node.some_wait:
        return False
    pairs = [(i, size) for i, size in zip(read.indices, register.shape, strict=True) if size > 1]
    loops = node.loops[len(node.loops) - len(pairs) :]
    return len(loops) == len(pairs) and all(
        index == Index(name=loop.name)
        and extent_of(loop, node) == size
        and node.ranges[loop.name][0] == 0
        for (index, size), loop in zip(pairs, loops, strict=True)
    )


# --------------------------------------------------------------------------------- clearing


def _must_be_cleared(node: LockstepNode, register: Register) -> bool:
    """Whether a value that was never written may be used."""
    reads, writes = accesses(node, register)
    return any(_reads_unwritten(node, register, read, writes) for read in reads)


def _reads_unwritten(
    node: LockstepNode,
    register: Register,
    read: tuple[int, RegisterRead],
    writes: Sequence[tuple[int, RegisterWrite]],
) -> bool:
    place, statement = read
    uses = list(uses_of(statement.target, node.body))
    guard = conjuncts(node.guard)
    known = [
        (at, write.indices, (*guard, *conjuncts(write.condition)))
        for at, write in writes
        if all(map(is_static, (*write.indices, *conjuncts(write.condition))))
    ]
    if not all(map(is_static, statement.indices)):
        return bool(uses)
    deciding = [*statement.indices, *guard, *(factor for use in uses for factor in use)]
    deciding += [expr for _, indices, factors in known for expr in (*indices, *factors)]
    ragged = [Index(name=loop.name) for loop in node.loops if extent_of(loop, node) is None]
    names = loops_used(node, [*deciding, *ragged])
    start = enumerate_start(one_for_all(node, deciding), select_loops(node, names))
    if start is None:
        return bool(uses)
    domain, complete = start
    size = prod(register.shape)
    columns = np.arange(domain.shape[1]) * size
    written = np.full(domain.shape[1] * size, np.iinfo(np.int64).max)
    times = np.arange(domain.count)[:, None]
    for at, indices, factors in known:
        done = domain.where(factors)
        elements = domain.elements(indices, register.shape) + columns
        visible = np.broadcast_to(times + (at > place), done.shape)
        np.minimum.at(written, elements[done], visible[done])
    fires = np.repeat(domain.where(guard).any(axis=0), size)
    if not complete and np.any(written[fires] > domain.count):
        return bool(uses)
    needed = _needed(domain, uses, guard)
    elements = (domain.elements(statement.indices, register.shape) + columns)[needed]
    return bool(np.any(written[elements] > np.broadcast_to(times, needed.shape)[needed]))


def _needed(domain: Iterations, uses: Sequence[tuple[Expr, ...]], guard: tuple[Expr, ...]) -> Array:
    """The iterations in which the value is used."""
    needed = np.zeros((domain.count, domain.shape[1]), np.bool_)
    for use in uses:
        needed |= domain.where(use)
    return needed & domain.where(guard)


# Dependence distances: how many firings apart the accesses to a memory element are.
#
# The compiler has to assume that every write may be read by the next firing, and would wait for it.
# ``firings_apart`` computes the real distance between a write of an element and any other access.

_ORDER = (Op.LESS, Op.LESS_EQUAL, Op.GREATER, Op.GREATER_EQUAL)
Use = tuple[bool, tuple[Expr, ...], tuple[Expr, ...]]
"""Whether an element is written, its indices, and when: conditions of which all hold."""


def accesses(
    node: LockstepNode, register: Register
) -> tuple[list[tuple[int, RegisterRead]], list[tuple[int, RegisterWrite]]]:
    """Reads and writes of a register file, with their indices in the body."""
    reads: list[tuple[int, RegisterRead]] = []
    writes: list[tuple[int, RegisterWrite]] = []
    for place, statement in enumerate(node.body):
        match statement:
            case RegisterRead(register=register.name):
                reads.append((place, statement))
            case RegisterWrite(register=register.name):
                writes.append((place, statement))
    return reads, writes


def carrying_loops(node: LockstepNode, register: Register) -> frozenset[str]:
    """The loops that may carry a value from one iteration to another."""
    reads, writes = accesses(node, register)
    indices = {read.indices for _, read in reads} | {write.indices for _, write in writes}
    fixed = {index.name for index in indices.pop() if isinstance(index, Index)}
    names = frozenset(loop.name for loop in node.loops)
    return names if indices else names - fixed


def firings_apart(node: LockstepNode, register: Register) -> int | None:
    """The least number of firings between a write of an element and another access to it.

    ``None`` if no element is accessed again; 1 if unknown.
    """
    reads, writes = accesses(node, register)
    uses: list[Use] = [
        (True, write.indices, static_factors(write.condition)) for _, write in writes
    ]
    for _, read in reads:
        uses += [(False, read.indices, needed) for needed in uses_of(read.target, node.body)]
    if not all(is_static(index) for _, indices, _ in uses for index in indices):
        return 1
    node = one_for_all(node, (expr for _, indices, when in uses for expr in (*indices, *when)))
    domain = enumerate_domain(node, node.loops)
    if domain is None:
        uses = [(written, indices, _periodic(factors)) for written, indices, factors in uses]
        domain = _periods(node, uses)
    return 1 if domain is None else _smallest_gap(domain, uses, register.shape)


def static_factors(condition: Expr | None) -> tuple[Expr, ...]:
    """The factors of a condition that depend on indices only; omitting the others widens it."""
    return tuple(factor for factor in conjuncts(condition) if is_static(factor))


# ------------------------------------------------------------------------------ long loops


def _periodic(factors: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The factors without bounds on the loop itself; omitting these widens the condition."""
    return tuple(factor for factor in factors if not _is_limit(factor))


def _is_limit(factor: Expr) -> bool:
    match factor:
        case Apply(operator=operator, operands=(Index(), Const())):
            return operator in _ORDER
    return False


def _periods(node: LockstepNode, uses: Sequence[Use]) -> Iterations | None:
    """Three periods of a single loop of which only digits are used, with one PE for all."""
    if len(node.loops) != 1 or extent_of(node.loops[0], node) is None:
        return None
    (loop,) = node.loops
    period = period_along(loop.name, (e for _, indices, when in uses for e in (*indices, *when)))
    if not period:
        return None
    shorter = TimeLoop(name=loop.name, start=const(0), stop=const(3 * period))
    return enumerate_domain(node, (shorter,))


# ---------------------------------------------------------------------------------- gaps


def _smallest_gap(domain: Iterations, uses: Sequence[Use], shape: Sequence[int]) -> int | None:
    """The least time between two accesses to an element, one of them a write."""
    rows: list[Array] = []
    for written, indices, factors in uses:
        happens = domain.where(factors)
        times, pes = np.nonzero(happens)
        elements = domain.elements(indices, shape)[happens]
        rows.append(np.stack([pes, elements, times, np.full(len(times), not written)]))
    pes, elements, times, reads = np.concatenate(rows, axis=1)
    order = np.lexsort((reads, times, elements, pes))
    pes, elements, times, reads = (values[order] for values in (pes, elements, times, reads))
    # merge the accesses to an element in one firing: the result is a write if any is
    first = np.ones(len(times), np.bool_)
    first[1:] = (np.diff(pes) != 0) | (np.diff(elements) != 0) | (np.diff(times) != 0)
    pes, elements, times, reads = (values[first] for values in (pes, elements, times, reads))
    same = (np.diff(pes) == 0) & (np.diff(elements) == 0)
    gaps = np.diff(times)[same & ~((reads[1:] == 1) & (reads[:-1] == 1))]
    return int(gaps.min()) if len(gaps) else None
