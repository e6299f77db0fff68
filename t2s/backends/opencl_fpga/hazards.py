"""How many firings apart the uses of a memory element are: what a pipelined memory must not mix up.

The compiler has to assume that every write may be read by the next firing, and would wait for it.
``firings_apart`` finds out how far apart a write of an element and any other use of it really are.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

import numpy as np

from t2s.backends.opencl_fpga.conditions import uses_of
from t2s.backends.opencl_fpga.digit_counters import digit_of
from t2s.backends.opencl_fpga.domains import (
    EnumeratedDomain,
    enumerate_domain,
    extent_of,
    is_static,
    one_for_all,
)
from t2s.backends.opencl_fpga.lockstep import LockstepNode, TimeLoop
from t2s.core.expr import Apply, Const, Expr, Index, conjuncts, const
from t2s.core.ops import Array, Op
from t2s.core.walk import children
from t2s.graph.body import RegisterRead, RegisterWrite
from t2s.graph.nodes import Register

_ORDER = (Op.LESS, Op.LESS_EQUAL, Op.GREATER, Op.GREATER_EQUAL)
Use = tuple[bool, tuple[Expr, ...], tuple[Expr, ...]]
"""Whether an element is written, its indices, and when: conditions of which all hold."""


def accesses(
    node: LockstepNode, register: Register
) -> tuple[list[tuple[int, RegisterRead]], list[tuple[int, RegisterWrite]]]:
    """Reads and writes of a register file, with their places in the body."""
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
    """The loops of which one iteration may use what another has written."""
    reads, writes = accesses(node, register)
    indices = {read.indices for _, read in reads} | {write.indices for _, write in writes}
    fixed = {index.name for index in indices.pop() if isinstance(index, Index)}
    names = frozenset(loop.name for loop in node.loops)
    return names if indices else names - fixed


def firings_apart(node: LockstepNode, register: Register) -> int | None:
    """The smallest number of firings between a write of an element and another use of it.

    ``None`` if no element is used again; 1 where it is not known.
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
    """The factors of a condition that depend on indices only; leaving out others widens it."""
    return tuple(factor for factor in conjuncts(condition) if is_static(factor))


# ------------------------------------------------------------------------------ long loops


def _periodic(factors: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The factors without limits of the loop itself, which widens them."""
    return tuple(factor for factor in factors if not _is_limit(factor))


def _is_limit(factor: Expr) -> bool:
    match factor:
        case Apply(operator=operator, operands=(Index(), Const())):
            return operator in _ORDER
    return False


def _periods(node: LockstepNode, uses: Sequence[Use]) -> EnumeratedDomain | None:
    """Three periods of a single loop of which only digits are used, by one PE for all."""
    if len(node.loops) != 1 or extent_of(node.loops[0], node) is None:
        return None
    (loop,) = node.loops
    period = 1
    for _, indices, factors in uses:
        for expr in (*indices, *factors):
            found = _period(expr, loop.name, node)
            if found is None:
                return None
            period = lcm(period, found)
    shorter = TimeLoop(name=loop.name, start=const(0), stop=const(3 * period))
    return enumerate_domain(node, (shorter,))


def _period(expr: Expr, loop: str, node: LockstepNode) -> int | None:
    """After how many iterations a value repeats; ``None`` if it is not known to."""
    match expr:
        case Const():
            return 1
        case Index(name=name):
            return None if name == loop else 1
    found = digit_of(expr, node.ranges)
    if found is not None and found[0].base == Index(name=loop):
        digit = found[0]
        while digit.of is not None:
            digit = digit.of
        return digit.end
    period = 1
    for child in children(expr):
        below = _period(child, loop, node) if isinstance(child, Expr) else None
        if below is None:
            return None
        period = lcm(period, below)
    return period


# ---------------------------------------------------------------------------------- gaps


def _smallest_gap(
    domain: EnumeratedDomain, uses: Sequence[Use], shape: Sequence[int]
) -> int | None:
    """Over all elements of all PEs: the smallest time between two uses, one of them a write."""
    rows: list[Array] = []
    for written, indices, factors in uses:
        happens = domain.all_of(factors)
        times, pes = np.nonzero(happens)
        elements = domain.elements(indices, shape)[happens]
        rows.append(np.stack([pes, elements, times, np.full(len(times), not written)]))
    pes, elements, times, reads = np.concatenate(rows, axis=1)
    order = np.lexsort((reads, times, elements, pes))
    pes, elements, times, reads = (values[order] for values in (pes, elements, times, reads))
    first = np.ones(len(times), np.bool_)  # of the uses of an element in one firing; a write if any
    first[1:] = (np.diff(pes) != 0) | (np.diff(elements) != 0) | (np.diff(times) != 0)
    pes, elements, times, reads = (values[first] for values in (pes, elements, times, reads))
    same = (np.diff(pes) == 0) & (np.diff(elements) == 0)
    gaps = np.diff(times)[same & ~((reads[1:] == 1) & (reads[:-1] == 1))]
    return int(gaps.min()) if len(gaps) else None
