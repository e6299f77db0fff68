"""The interpreter of profile B: a placed design, cycle by cycle.

The input is a ``PlacedDesign`` and the user's arrays; the result are the outputs, exact cycles, and
for each cell and unit where its cycles went.  ``netlist.py`` has the timing rules.  Refused: wrong
inputs, designs that cannot be wired, deadlocks (naming cells, units, nets and how full these are),
and runs beyond the limit of cycles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from t2s.backends.cgra_tia.fabric import CellKind
from t2s.backends.cgra_tia.machine.parts import (
    Agenda,
    ChannelQueue,
    MemorySystem,
    PlacedCell,
    PlacedPart,
    PlacedUnit,
    Stall,
    TensorMemory,
)
from t2s.backends.cgra_tia.machine.words import SCRATCHPAD, TokenMeaning, token_meanings
from t2s.backends.cgra_tia.netlist import Endpoint, Net, NetCell, PlacedDesign, StreamUnit, UnitKind
from t2s.backends.cgra_tia.program import ON_FMA, CellProgram, Opcode, ToPredicate
from t2s.backends.cgra_tia.text.checks import broken_rule
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.ops import Array
from t2s.core.types import Kind
from t2s.core.validate import as_int
from t2s.graph.arrays import check_graph_inputs, outputs_of, pack
from t2s.graph.graph import Graph, Tensor, TensorRole

SHOWN_PARTS = 8


class PlacedDeadlockError(UserError):
    """A placed design deadlocked: units have steps left, or tokens were never taken."""


class PlacedLimitError(UserError):
    """A placed design had not ended when it reached the limit of cycles."""


def stuck_error(wired: WiredDesign, name: str) -> PlacedDeadlockError:
    """The error of a design in which nothing can happen any more."""
    waits = list(_waits(wired))
    unfinished = wired.agenda.unfinished
    filled = [queue for queue in wired.queues if queue.tokens]
    cycle = max((part.last for part in wired.parts), default=0)
    shown = waits[:SHOWN_PARTS]
    if len(waits) > SHOWN_PARTS:
        shown.append((None, f"and {len(waits) - SHOWN_PARTS} more parts wait"))
    given = f"{unfinished} units with steps left" if unfinished else "all units done"
    if filled:
        fullest = ", ".join(map(str, filled[:SHOWN_PARTS]))
        given += f"; tokens left in {fullest}" + (", ..." if len(filled) > SHOWN_PARTS else "")
    return PlacedDeadlockError(
        f"{name!r} is stuck after cycle {cycle:,}",
        location=next((place for place, _ in waits if place is not None), None),
        expected="a run in which all units finish and no token is left",
        given=given,
        hint="a channel may hold too few tokens: its sink in the netlist says how many it needs"
        if unfinished
        else "senders and receivers disagree about the number of tokens",
        notes=tuple(shown),
    )


def _waits(wired: WiredDesign) -> Iterator[tuple[SourceLocation | None, str]]:
    """Every part that still has something to do but waits, units first."""
    for part in (*wired.units.values(), *wired.cells.values()):
        nest = isinstance(part, PlacedUnit) and not part.finished
        if nest or any(queue.tokens for queue in part.inputs.values()):
            yield _wait(part)


def _wait(part: PlacedPart) -> tuple[SourceLocation | None, str]:
    origin = part.origin.origin
    node = ""
    if origin is not None:
        point = f"[{', '.join(map(str, origin.point))}]" if origin.point else ""
        node = f" ({origin.node}{point})"
    kind = "cell" if isinstance(part, PlacedCell) else "unit"
    text = f"the {kind} {part.name!r}{node} {_reason(part)}, after {part.firings} firings"
    return (origin.location if origin is not None else None), text


def _reason(part: PlacedPart) -> str:
    match part.cause:
        case (Stall.BLOCKED, ChannelQueue() as queue):
            return f"waits for room in {queue}, which {queue.sink.name!r} takes from"
        case (_, ChannelQueue() as queue):
            return f"waits for a token in {queue}, which {queue.source.name!r} sends"
        case _:
            heads = ", ".join(
                f"%i{port} tag {queue.tokens[0][1]}"
                for port, queue in sorted(part.inputs.items())
                if queue.tokens
            )
            if isinstance(part, PlacedCell) and part.halted:
                return f"has halted (at its inputs: {heads})"
            return f"has no instruction for what is at its inputs: {heads}"


MOST_CYCLES = 10_000_000
"""The limit of a run where none is given."""

_KINDS = (Stall.STARVED, Stall.BLOCKED, Stall.WAITING)

SHARES = ("busy", "starved", "blocked", "waiting", "idle")
"""What the cycles of a part are counted as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartTally:
    """Where the cycles of a cell or a unit went; the five kinds add up to the cycles of the run.

    ``busy`` is how often it fired.  ``starved`` and ``blocked`` are the cycles in which it lacked a
    token or room, ``waiting`` those in which it waited for a result of its own FMA, ``idle`` those
    before its first and after its last firing.  ``first`` and ``last`` are the cycles of these
    (0: none); ``starved_by`` and ``blocked_by`` are cycles by net.
    """

    busy: int
    starved: int
    blocked: int
    waiting: int
    idle: int
    first: int
    last: int
    starved_by: Mapping[str, int]
    blocked_by: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class PlacedRun:
    """A run: ``outputs`` by the user's names, ``cycles`` from 1, ``cells`` and ``units`` by name.

    ``fma_usage`` is the fraction of the fabric's FMAs that the design uses, and ``utilization`` the
    fraction of cycles in which these fire.
    """

    name: str
    outputs: Mapping[str, Array] = field(repr=False)
    cycles: int
    cells: Mapping[str, PartTally] = field(repr=False)
    units: Mapping[str, PartTally] = field(repr=False)
    fma_usage: float
    utilization: float

    def shares(self) -> dict[str, dict[str, float]]:
        """The fraction (0 to 1) of the run's cycles of each kind, by name of the cell or unit."""
        return {
            name: {kind: getattr(row, kind) / max(self.cycles, 1) for kind in SHARES}
            for name, row in {**self.cells, **self.units}.items()
        }

    def __str__(self) -> str:
        heads = ("part", *SHARES)
        rows: list[tuple[str, ...]] = [heads]
        for name, row in {**self.cells, **self.units}.items():
            numbers = (row.busy, row.starved, row.blocked, row.waiting, row.idle)
            rows.append((name, *map(str, numbers)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            f"{self.name}: {self.cycles:,} cycles, FMA usage {self.fma_usage:.1%}, "
            f"utilization {self.utilization:.1%}"
        ]
        for row_text in rows:
            first = row_text[0].ljust(widths[0])
            rest = zip(row_text[1:], widths[1:], strict=True)
            lines.append("  ".join([first, *(text.rjust(width) for text, width in rest)]))
        return "\n".join(lines) + "\n"


def run_placed(
    design: PlacedDesign,
    inputs: Mapping[str, Array],
    *,
    fused: bool = True,
    max_cycles: int = MOST_CYCLES,
    words_per_cycle: int | None = None,
    memory_latency: int = 0,
) -> PlacedRun:
    """Run a placed design to its end.

    ``fused`` says whether ``fmac`` rounds once or, like numpy, twice.  ``words_per_cycle`` is the
    memory bandwidth of all units together (``None``: unlimited), ``memory_latency`` the cycles
    until a loaded word leaves its unit.

    Raises ``UserError`` for inputs of wrong names, shapes or types, a design that cannot be wired,
    and addresses outside of a tensor; ``PlacedDeadlockError`` and ``PlacedLimitError``.
    """
    _check_count("max_cycles", max_cycles, 1)
    _check_count("memory_latency", memory_latency, 0)
    if words_per_cycle is not None:
        _check_count("words_per_cycle", words_per_cycle, 1)
    netlist = design.netlist
    graph = Graph(name=netlist.name, nodes=(), channels=(), tensors=netlist.tensors)
    arrays, _ = check_graph_inputs(graph, inputs, {})
    tensors = {tensor.name: _memory(tensor, arrays) for tensor in netlist.tensors}
    memory = MemorySystem(tensors, words_per_cycle)
    wired = wire(design, memory, fused=fused, memory_latency=memory_latency)
    _run(wired, memory, netlist.name, max_cycles)
    cycles = max((part.last for part in wired.parts), default=0)
    stored = {name: tensor.array() for name, tensor in tensors.items()}
    used = [cell.name for cell in netlist.cells if cell.kind is CellKind.FMA]
    fmas = len(design.fabric.cells(CellKind.FMA))
    firings = sum(wired.cells[name].firings for name in used)
    return PlacedRun(
        name=netlist.name,
        outputs=outputs_of(graph, stored),
        cycles=cycles,
        cells={name: _tally(part, cycles) for name, part in wired.cells.items()},
        units={name: _tally(part, cycles) for name, part in wired.units.items()},
        fma_usage=len(used) / fmas if fmas else 0.0,
        utilization=firings / (len(used) * cycles) if used and cycles else 0.0,
    )


def _check_count(name: str, value: object, least: int) -> None:
    count = as_int(value)
    if count is None or count < least:
        raise UserError(
            f"{name} must be a {'positive' if least else 'non-negative'} integer",
            location=user_location(),
            expected=f"a whole number of at least {least}",
            given=repr(value),
        )


def _memory(tensor: Tensor, arrays: Mapping[str, Array]) -> TensorMemory:
    """A tensor with its initial content."""
    type = tensor.type
    words = type.bits == 64 if type.kind is Kind.FLOAT else type.kind is not Kind.BFLOAT
    if not words or type.lanes > 1:
        raise UserError(
            f"the machine has no words for the tensor {tensor.name!r}",
            location=tensor.location,
            expected="scalars of float64, of an integer type or bool",
            given=tensor.shape_text,
        )
    if tensor.role is TensorRole.INPUT:
        return TensorMemory(tensor, pack(tensor, arrays[tensor.array]))
    return TensorMemory(tensor, np.zeros(0 if tensor.open else tensor.allocated, type.numpy))


def _run(wired: WiredDesign, memory: MemorySystem, name: str, max_cycles: int) -> None:
    """Step the parts until the design ends; raises ``UserError`` if it does not."""
    agenda = wired.agenda
    for part in wired.parts:
        agenda.add(1, part)
    while agenda.unfinished or agenda.tokens:
        parts = agenda.advance()
        now = agenda.now
        if not parts:
            raise stuck_error(wired, name)
        if now > max_cycles:
            raise PlacedLimitError(
                f"{name!r} had not ended after {max_cycles:,} cycles, the limit",
                location=user_location(),
                expected="a run that ends within max_cycles",
                given=f"{agenda.unfinished} unfinished units, {agenda.tokens} tokens on their way",
                hint="give more max_cycles, or look for tokens that circulate forever",
            )
        for part in parts:
            if part.looked != now:
                part.looked = now
                part.step(now)
        memory.end_of_cycle(now)


def _tally(part: PlacedPart, cycles: int) -> PartTally:
    by_kind = dict.fromkeys(_KINDS, 0)
    by_net: dict[Stall, dict[str, int]] = {kind: {} for kind in _KINDS}
    for (kind, queue), count in part.stalls.items():
        by_kind[kind] += count
        if queue is not None:
            nets = by_net[kind]
            nets[queue.net.name] = nets.get(queue.net.name, 0) + count
    return PartTally(
        busy=part.firings,
        starved=by_kind[Stall.STARVED],
        blocked=by_kind[Stall.BLOCKED],
        waiting=by_kind[Stall.WAITING],
        idle=cycles - part.firings - sum(by_kind.values()),
        first=part.first,
        last=part.last,
        starved_by=by_net[Stall.STARVED],
        blocked_by=by_net[Stall.BLOCKED],
    )


# Wiring: from a placed design to connected parts.
#
# Refused: impossible machines, such as two nets at one port, a program that breaks a rule, or an
# FMA operator in a cell without FMA.

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
    """The parts of a design, connected; raises ``UserError`` for an impossible machine."""
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
    """Connect the branches of a net to the ports at their ends."""
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
    """Cycles until a result leaves an output; the same for all of its results."""
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
            f"the net {net.name!r} ends at a missing part or port",
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
