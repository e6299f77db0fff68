"""From a placed design to the parts that run, all of them connected.

Goes in: a ``PlacedDesign`` and its memory.  Refused: designs that no machine can be, such as two
nets at one port, a program that breaks a rule, or an FMA's work in a cell that has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from t2s.backends.cgra_tia.fabric import CellKind
from t2s.backends.cgra_tia.machine.parts import Agenda, ChannelQueue, PlacedCell, PlacedPart
from t2s.backends.cgra_tia.machine.units import MemorySystem, PlacedUnit
from t2s.backends.cgra_tia.machine.words import SCRATCHPAD, TokenMeaning, token_meanings
from t2s.backends.cgra_tia.netlist import (
    Endpoint,
    Net,
    NetCell,
    PlacedDesign,
    StreamUnit,
    UnitKind,
)
from t2s.backends.cgra_tia.opcodes import ON_FMA, Opcode
from t2s.backends.cgra_tia.program import CellProgram, ToPredicate
from t2s.backends.cgra_tia.text.instruction_rules import broken_rule
from t2s.core.errors import UserError

_UNIT_INPUTS = {
    UnitKind.LOAD: 0,
    UnitKind.STORE: 1,
    UnitKind.SEQUENCE: 0,
    UnitKind.LOAD_AT: 1,
    UnitKind.STORE_AT: 2,
}
_UNIT_OUTPUTS = {
    UnitKind.LOAD: 1,
    UnitKind.STORE: 0,
    UnitKind.SEQUENCE: 1,
    UnitKind.LOAD_AT: 1,
    UnitKind.STORE_AT: 0,
}


@dataclass(frozen=True, kw_only=True)
class WiredDesign:
    """The parts of a design by name, cells first, and all queues."""

    agenda: Agenda
    cells: Mapping[str, PlacedCell]
    units: Mapping[str, PlacedUnit]
    queues: tuple[ChannelQueue, ...]

    @property
    def parts(self) -> Iterator[PlacedPart]:
        yield from self.cells.values()
        yield from self.units.values()


def wire(
    design: PlacedDesign, memory: MemorySystem, *, fused: bool, memory_latency: int
) -> WiredDesign:
    """The parts of a design, connected; raises ``UserError`` for one that cannot be."""
    agenda = Agenda()
    meanings = token_meanings(fused)
    checked: set[CellProgram] = set()
    cells: dict[str, PlacedCell] = {}
    for cell in design.netlist.cells:
        _check_name(cell, cells)
        if cell.program not in checked:
            _check_program(cell, design, meanings)
            checked.add(cell.program)
        _check_kind(cell)
        cells[cell.name] = PlacedCell(cell, agenda, design.fabric, meanings)
    units: dict[str, PlacedUnit] = {}
    for number, unit in enumerate(design.netlist.units):
        _check_name(unit, {**cells, **units})
        _check_unit(unit, memory)
        units[unit.name] = PlacedUnit(unit, agenda, memory, number)
    parts: dict[str, PlacedPart] = {**cells, **units}
    queues = [
        queue
        for net in design.netlist.nets
        for queue in _connect(design, net, parts, memory_latency)
    ]
    for part in parts.values():
        _check_ports(part)
        part.bind()
    return WiredDesign(agenda=agenda, cells=cells, units=units, queues=tuple(queues))


def _connect(
    design: PlacedDesign, net: Net, parts: Mapping[str, PlacedPart], memory_latency: int
) -> Iterator[ChannelQueue]:
    """The branches of a net, put into the ports at their ends."""
    source = _end(design, net, net.source, parts, sends=True)
    branches = design.branches.get(net.name, ())
    if len(branches) != len(net.sinks) or net.source.port in source.outputs:
        raise UserError(
            f"the net {net.name!r} cannot be wired",
            location=net.location,
            expected="a branch for each sink, and one net at each output",
            given=f"{len(branches)} branches, {len(net.sinks)} sinks",
        )
    more = _pipeline(source, net.source.port, design, memory_latency)
    queues = []
    for number, (branch, sink) in enumerate(zip(branches, net.sinks, strict=True)):
        end = _end(design, net, sink.end, parts, sends=False)
        if branch.latency < 1 or branch.capacity < 1 or sink.end.port in end.inputs:
            raise UserError(
                f"branch {number} of the net {net.name!r} cannot be wired",
                location=net.location,
                expected="latency and capacity of at least 1, and one net at each input",
                given=f"latency {branch.latency}, capacity {branch.capacity}, "
                f"input {sink.end.port} of {sink.end.part!r}",
            )
        queue = ChannelQueue(
            net, number, branch.latency + more, branch.capacity + more, (source, end)
        )
        end.inputs[sink.end.port] = queue
        queues.append(queue)
    source.outputs[net.source.port] = tuple(queues)
    return iter(queues)


def _pipeline(part: PlacedPart, port: int, design: PlacedDesign, memory_latency: int) -> int:
    """Cycles until a result leaves an output, all of its results alike."""
    if isinstance(part.origin, StreamUnit):
        loads = part.origin.kind in (UnitKind.LOAD, UnitKind.LOAD_AT)
        return memory_latency if loads else 0
    instructions = part.origin.program.instructions
    slow = any(i.opcode in ON_FMA and port in i.outputs for i in instructions)
    return design.fabric.fma_latency if slow else 0


def _end(
    design: PlacedDesign, net: Net, end: Endpoint, parts: Mapping[str, PlacedPart], *, sends: bool
) -> PlacedPart:
    """The part at an end of a net; raises ``UserError`` if it has no such port."""
    part = parts.get(end.part)
    core = design.fabric.core
    match part.origin if part is not None else None:
        case NetCell():
            count = core.outputs if sends else core.inputs
        case StreamUnit(kind=kind):
            count = _UNIT_OUTPUTS[kind] if sends else _UNIT_INPUTS[kind]
        case _:
            count = 0
    if part is None or not 0 <= end.port < count:
        side = "output" if sends else "input"
        raise UserError(
            f"the net {net.name!r} ends at what is not there",
            location=net.location,
            expected=f"an {side} from 0 to {count - 1}" if part else "a cell or unit of the design",
            given=f"{side} {end.port} of {end.part!r}",
        )
    return part


def _check_name(part: NetCell | StreamUnit, others: Mapping[str, PlacedPart]) -> None:
    if part.name in others:
        raise UserError(
            f"two parts of the design are named {part.name!r}",
            expected="a name of its own for each cell and each unit",
            given=repr(part.name),
        )


def _check_program(
    cell: NetCell, design: PlacedDesign, meanings: Mapping[Opcode, TokenMeaning]
) -> None:
    core = design.fabric.core
    location = cell.origin.location if cell.origin else None
    if len(cell.program.instructions) > core.instructions:
        raise UserError(
            f"the program of the cell {cell.name!r} is too long",
            location=location,
            expected=f"at most {core.instructions} instructions",
            given=str(len(cell.program.instructions)),
        )
    for number, instruction in enumerate(cell.program.instructions):
        rule = broken_rule(instruction, core)
        subject = f"instruction {number} of the cell {cell.name!r}"
        if rule is not None:
            raise UserError(
                f"{subject}: {rule.message}",
                location=location,
                expected=rule.expected,
                given=rule.given,
                hint=rule.hint,
            )
        opcode = instruction.opcode
        if opcode not in meanings and opcode not in SCRATCHPAD:
            raise UserError(
                f"{subject}: no machine has the operator {opcode.value}",
                location=location,
                expected="an operator of profile B",
                given=opcode.value,
            )
        if opcode in ON_FMA and isinstance(instruction.destination, ToPredicate):
            raise UserError(
                f"{subject}: the result of an FMA goes to a predicate",
                location=location,
                expected="a register or an output, and a comparison for the predicate",
                given=f"{opcode.value} %p{instruction.destination.number}",
            )


def _check_kind(cell: NetCell) -> None:
    slow = next((i for i in cell.program.instructions if i.opcode in ON_FMA), None)
    if slow is not None and cell.kind is not CellKind.FMA:
        raise UserError(
            f"the cell {cell.name!r} has no FMA",
            location=cell.origin.location if cell.origin else None,
            expected="arithmetic on floats in cells with an FMA",
            given=f"{slow.opcode.value} in a cell of kind {cell.kind.value!r}",
        )


def _check_unit(unit: StreamUnit, memory: MemorySystem) -> None:
    needs = unit.kind is not UnitKind.SEQUENCE
    if needs == (unit.tensor is not None) and (not needs or unit.tensor in memory.tensors):
        return
    raise UserError(
        f"the unit {unit.name!r} has no tensor" if needs else f"{unit.name!r} has a tensor",
        location=unit.origin.location if unit.origin else None,
        expected=f"one of {', '.join(memory.tensors)}" if needs else "none for a sequence",
        given=str(unit.tensor),
    )


def _check_ports(part: PlacedPart) -> None:
    """Raise ``UserError`` if a part uses a port that no net ends at."""
    if isinstance(part.origin, StreamUnit):
        inputs = set(range(_UNIT_INPUTS[part.origin.kind]))
        outputs = set(range(_UNIT_OUTPUTS[part.origin.kind]))
    else:
        instructions = part.origin.program.instructions
        inputs = {check.channel for i in instructions for check in i.trigger.checks}
        inputs.update(channel for i in instructions for channel in i.unchecked)
        outputs = {port for i in instructions for port in i.outputs}
    missing = [f"input {port}" for port in sorted(inputs - set(part.inputs))]
    missing += [f"output {port}" for port in sorted(outputs - set(part.outputs))]
    if missing:
        raise UserError(
            f"{part.name!r} uses a port that nothing is connected to",
            location=part.origin.origin.location if part.origin.origin else None,
            expected="a net at each port that is used",
            given=", ".join(missing),
        )
