"""The interpreter of profile B: a placed design, cycle by cycle.

Goes in: a ``PlacedDesign`` and the user's arrays.  Comes out: the outputs, exact cycles, and for
each cell and unit where its cycles went.  ``netlist.py`` says what time means.  Refused: wrong
inputs, designs that cannot be wired, and runs that get stuck, which name cells, units, nets and how
full they are, or do not end in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from t2s.backends.cgra_tia.fabric import CellKind
from t2s.backends.cgra_tia.machine.parts import ChannelQueue, PlacedCell, PlacedPart, Stall
from t2s.backends.cgra_tia.machine.units import MemorySystem, PlacedUnit, TensorMemory
from t2s.backends.cgra_tia.machine.wiring import WiredDesign, wire
from t2s.backends.cgra_tia.netlist import PlacedDesign
from t2s.core.checks import whole
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.ops import Array
from t2s.core.types import Kind
from t2s.graph.graph import Graph, Tensor, TensorRole
from t2s.graph.inputs import check_graph_inputs
from t2s.graph.layout import outputs_of, pack

SHOWN_PARTS = 8


class PlacedDeadlockError(UserError):
    """A placed design got stuck: units have steps left, or tokens were never taken."""


class PlacedLimitError(UserError):
    """A placed design had not ended at the limit of cycles."""


def stuck_error(wired: WiredDesign, name: str) -> PlacedDeadlockError:
    """The error of a design in which nothing will happen any more."""
    waits = list(_waits(wired))
    unfinished = wired.agenda.unfinished
    left = [queue for queue in wired.queues if queue.tokens]
    cycle = max((part.last for part in wired.parts), default=0)
    shown = waits[:SHOWN_PARTS]
    if len(waits) > SHOWN_PARTS:
        shown.append((None, f"and {len(waits) - SHOWN_PARTS} more parts wait"))
    given = f"{unfinished} units with steps left" if unfinished else "all units done"
    if left:
        fullest = ", ".join(map(str, left[:SHOWN_PARTS]))
        given += f"; tokens left in {fullest}" + (", ..." if len(left) > SHOWN_PARTS else "")
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
    """Every part that waits though it has something to do, units first."""
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
    """Where the cycles of a cell or a unit went; the five kinds add up to those of the run.

    ``busy`` is how often it fired, ``starved`` and ``blocked`` are cycles without a token or
    without room, ``waiting`` those for a result of its own FMA, ``idle`` those before its first
    and after its last firing.  ``first`` and ``last`` are the cycles of these (0: none);
    ``starved_by`` and ``blocked_by`` are cycles by net.
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

    ``fma_usage`` is how many of the fabric's FMAs the design uses, and ``utilization`` how often
    those that it uses fire: firings over cells times cycles.
    """

    name: str
    outputs: Mapping[str, Array] = field(repr=False)
    cycles: int
    cells: Mapping[str, PartTally] = field(repr=False)
    units: Mapping[str, PartTally] = field(repr=False)
    fma_usage: float
    utilization: float

    def shares(self) -> dict[str, dict[str, float]]:
        """For each cell and unit, by name, the share of the run's cycles of each kind, 0 to 1."""
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

    ``fused`` says whether ``fmac`` rounds once or, as numpy, twice.  ``words_per_cycle`` is what
    the memory gives to all units together (``None``: any number), ``memory_latency`` the cycles
    until a loaded word leaves its unit.

    Raises ``UserError``: for inputs of wrong names, shapes or types, for a design that cannot be
    wired, for addresses outside of a tensor; ``PlacedDeadlockError`` and ``PlacedLimitError``.
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
    there = len(design.fabric.cells(CellKind.FMA))
    firings = sum(wired.cells[name].firings for name in used)
    return PlacedRun(
        name=netlist.name,
        outputs=outputs_of(graph, stored),
        cycles=cycles,
        cells={name: _tally(part, cycles) for name, part in wired.cells.items()},
        units={name: _tally(part, cycles) for name, part in wired.units.items()},
        fma_usage=len(used) / there if there else 0.0,
        utilization=firings / (len(used) * cycles) if used and cycles else 0.0,
    )


def _check_count(name: str, value: object, least: int) -> None:
    count = whole(value)
    if count is None or count < least:
        raise UserError(
            f"{name} is no count",
            location=user_location(),
            expected=f"a whole number of at least {least}",
            given=repr(value),
        )


def _memory(tensor: Tensor, arrays: Mapping[str, Array]) -> TensorMemory:
    """A tensor with what is in it at the start."""
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
    """Let the parts step until the design ends; raises ``UserError`` where it does not."""
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
                hint="give more max_cycles, or look for tokens that circulate for ever",
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
