"""How the register files of a node are kept, and which of them need a value at the start.

A file that is read and written once per firing, at an address that runs through it in order, is a
shift register: no address, and a new value enters while the oldest leaves.  Any other file is an
array; so is one of more than ``LONGEST_SHIFT`` elements.

An array of more than ``LARGEST_REGISTERS`` bytes per PE belongs into block RAM, with a bank for
each PE.  Banks are told apart by the lowest bits of an address, so the PE comes last there, and its
dimensions are rounded up to powers of two; of banks that no PE uses nothing is built.  A file that
is read once and written once per firing gets one port for each, and both halves of a double buffer
are in the same bank.  Where all time is one loop, ``#pragma ivdep`` says how many firings apart two
uses of an element are at least (``hazards.py``).  In a nest, loops that carry a value from one
iteration to another are not flattened into those inside, and those are said to be independent.

The elements start at zero, or at what the register says.  Where every value read before the first
write is thrown away (the usual ``0 if k == 0 else accumulator``), nothing has to be cleared; this
is found by enumeration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from t2s.backends.opencl_fpga.conditions import uses_of
from t2s.backends.opencl_fpga.digit_counters import is_power_of_two
from t2s.backends.opencl_fpga.domains import (
    EnumeratedDomain,
    enumerate_start,
    extent_of,
    is_static,
    loops_used,
    one_for_all,
    select_loops,
)
from t2s.backends.opencl_fpga.hazards import accesses, carrying_loops, firings_apart
from t2s.backends.opencl_fpga.lockstep import LockstepNode
from t2s.backends.opencl_fpga.self_links import LONGEST_SHIFT
from t2s.core.expr import Expr, Index, conjuncts
from t2s.core.ops import Array
from t2s.graph.body import RegisterRead, RegisterWrite
from t2s.graph.nodes import Register

LARGEST_REGISTERS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Block RAM: how many banks there are along the dimensions of the PEs, and its attributes."""

    banks: tuple[int, ...]
    attributes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterPlan:
    """How one register file is kept: ``rotating`` as a shift register, ``cleared`` at the start.

    ``memory`` is for a file in block RAM; ``apart`` is the smallest number of firings between two
    uses of one of its elements of which one is a write, ``None`` if that never happens, and
    ``carried_by`` names the loops of which one iteration may use what another has written.
    """

    register: Register
    rotating: bool
    cleared: bool
    memory: Memory | None = None
    apart: int | None = 1
    carried_by: frozenset[str] = frozenset()

    @property
    def length(self) -> int:
        return prod(self.register.shape)


def plan_registers(node: LockstepNode) -> dict[str, RegisterPlan]:
    """The plan of every register file that the body uses, by name."""
    used = {s.register for s in node.body if isinstance(s, RegisterRead | RegisterWrite)}
    return {
        register.name: _plan(node, register)
        for register in node.node.registers
        if register.name in used
    }


def _plan(node: LockstepNode, register: Register) -> RegisterPlan:
    rotating = _rotates(node, register)
    cleared = _must_be_cleared(node, register)
    if rotating or prod(register.shape) * register.type.bytes <= LARGEST_REGISTERS:
        return RegisterPlan(register=register, rotating=rotating, cleared=cleared)
    return RegisterPlan(
        register=register,
        rotating=False,
        cleared=cleared,
        memory=_memory(node, register, cleared=cleared),
        apart=firings_apart(node, register) if len(node.loops) == 1 else 1,
        carried_by=carrying_loops(node, register),
    )


def _memory(node: LockstepNode, register: Register, *, cleared: bool) -> Memory:
    """Elements whose size is no power of two straddle banks, and clearing takes a port too."""
    size = register.type.bytes
    banks = tuple(1 << (dimension.extent - 1).bit_length() for dimension in node.space)
    if not is_power_of_two(size):
        return Memory(banks=tuple(d.extent for d in node.space), attributes=("memory",))
    attributes: tuple[str, ...] = (
        "memory",
        f"numbanks({prod(banks)})",
        f"bankwidth({size})",
        "singlepump",
    )
    reads, writes = accesses(node, register)
    if len(reads) == len(writes) == 1 and not cleared:
        attributes += ("numwriteports(1)", "numreadports(1)")
    return Memory(banks=banks, attributes=attributes)


# --------------------------------------------------------------------------------- rotation


def _rotates(node: LockstepNode, register: Register) -> bool:
    """Whether every firing reads and then writes the next element, round and round."""
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
    found = enumerate_start(one_for_all(node, deciding), select_loops(node, names))
    if found is None:
        return bool(uses)
    domain, complete = found
    size = prod(register.shape)
    columns = np.arange(domain.pe_count) * size
    written = np.full(domain.pe_count * size, np.iinfo(np.int64).max)
    times = np.arange(domain.iterations)[:, None]
    for at, indices, factors in known:
        done = domain.all_of(factors)
        elements = domain.elements(indices, register.shape) + columns
        visible = np.broadcast_to(times + (at > place), done.shape)
        np.minimum.at(written, elements[done], visible[done])
    fires = np.repeat(domain.all_of(guard).any(axis=0), size)
    if not complete and np.any(written[fires] > domain.iterations):
        return bool(uses)
    needed = _needed(domain, uses, guard)
    elements = (domain.elements(statement.indices, register.shape) + columns)[needed]
    return bool(np.any(written[elements] > np.broadcast_to(times, needed.shape)[needed]))


def _needed(
    domain: EnumeratedDomain, uses: Sequence[tuple[Expr, ...]], guard: tuple[Expr, ...]
) -> Array:
    """Where the value is used at all."""
    needed = np.zeros((domain.iterations, domain.pe_count), np.bool_)
    for use in uses:
        needed |= domain.all_of(use)
    return needed & domain.all_of(guard)
