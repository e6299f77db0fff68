"""How many tokens go over a branch in a whole run, at most.

In goes a netlist; out comes a number for each branch, in the order of nets and sinks, or ``None``
where nothing bounds it.  What is loaded once and stays in a register is one token: it says nothing
about the rate of a design, however long its way is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from t2s.backends.cgra_tia.netlist import Endpoint, NetCell, Netlist, StreamUnit, UnitKind
from t2s.backends.cgra_tia.program import Instruction
from t2s.backends.cgra_tia.prologue import prologue_of

_MOST_COUNTED = 1 << 20
"""Steps of loops that are counted one by one; of larger ones the box around them counts."""


def traffic_of(netlist: Netlist) -> list[int | None]:
    """The most tokens of each branch."""
    bound: dict[Endpoint, int] = {}
    """By output, and by input."""
    sources = {sink.end: net.source for net in netlist.nets for sink in net.sinks}
    for unit in netlist.units:
        steps = unit_steps(unit)
        if steps is not None:
            bound[Endpoint(part=unit.name)] = steps
    programs = {cell.name: prologue_of(cell.program.instructions) for cell in netlist.cells}
    once = {
        Endpoint(part=cell.name, port=port): count
        for cell in netlist.cells
        for port, count in _in_prologue(*programs[cell.name]).items()
    }
    left = list(netlist.cells)
    while left:
        later = [cell for cell in left if not _bounded(cell, programs[cell.name], sources, bound)]
        if len(later) == len(left):
            break
        left = later
    found = [
        [bound.get(net.source), once.get(sink.end)] for net in netlist.nets for sink in net.sinks
    ]
    return [min((one for one in pair if one is not None), default=None) for pair in found]


def unit_steps(unit: StreamUnit) -> int | None:
    """How many steps the nest of a unit has, at most; ``None`` for a unit without a nest."""
    if unit.kind in (UnitKind.LOAD_AT, UnitKind.STORE_AT):
        return None
    extents = [loop.extent for loop in unit.loops]
    if not any(any(extent.coefficients) for extent in extents):
        return prod(max(0, extent.constant) for extent in extents)
    most: list[int] = []
    for extent in extents:
        terms = zip(extent.coefficients, most, strict=False)
        top = sum(max(0, factor * (outer - 1)) for factor, outer in terms)
        most.append(max(0, extent.constant + top))
    if prod(most) > _MOST_COUNTED:
        return prod(most)
    steps = np.indices(most)
    inside = np.ones(most, np.bool_)
    for extent, index in zip(extents, steps, strict=True):
        total = np.full(most, extent.constant, np.int64)
        for factor, outer in zip(extent.coefficients, steps, strict=False):
            total += factor * outer
        inside &= index < total
    return int(inside.sum())


_Instructions = Sequence[Instruction]


def _in_prologue(prologue: _Instructions, steady: _Instructions) -> dict[int, int]:
    """The inputs that only the prologue takes from, and how often."""
    later = {port for instruction in steady for port in instruction.takes}
    found: dict[int, int] = {}
    for instruction in prologue if steady else ():
        for port in instruction.takes:
            if port not in later:
                found[port] = found.get(port, 0) + 1
    return found


def _bounded(
    cell: NetCell,
    program: tuple[_Instructions, _Instructions],
    sources: Mapping[Endpoint, Endpoint],
    bound: dict[Endpoint, int],
) -> bool:
    """Bound what leaves a cell by an input that all of its instructions take from."""
    prologue, steady = program
    always = sorted(set.intersection(*(set(i.takes) for i in steady))) if steady else []
    ends = [sources.get(Endpoint(part=cell.name, port=port)) for port in always]
    known = [bound[end] for end in ends if end is not None and end in bound]
    if not known:
        return False
    for port in {port for instruction in (*prologue, *steady) for port in instruction.outputs}:
        before = sum(port in instruction.outputs for instruction in prologue)
        bound[Endpoint(part=cell.name, port=port)] = min(known) + before
    return True
