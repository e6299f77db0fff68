"""Cells, stream units and nets, put together to a ``Netlist``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from t2s.backends.cgra_tia.fabric import CellKind
from t2s.backends.cgra_tia.lower.cell_programs import CellPorts, ports_of, program_of
from t2s.backends.cgra_tia.lower.cells import CellAction, CellDraft, CellResult, TakenAgain, Wire
from t2s.backends.cgra_tia.lower.not_lowered import refuse
from t2s.backends.cgra_tia.lower.passing import Aliases
from t2s.backends.cgra_tia.lower.process import StreamTable, TokenStream
from t2s.backends.cgra_tia.lower.registers import Replay
from t2s.backends.cgra_tia.lower.scalars import scalar_tensors
from t2s.backends.cgra_tia.lower.scratchpads import TAGS, VALUES, Shuffle
from t2s.backends.cgra_tia.lower.sequencers import Controlled, sequencers
from t2s.backends.cgra_tia.lower.sharing import SharedCell
from t2s.backends.cgra_tia.lower.unit_nests import SequenceNest, pattern_nest, tag_nest
from t2s.backends.cgra_tia.netlist import (
    CellTurn,
    Endpoint,
    Net,
    NetCell,
    Netlist,
    NetSink,
)
from t2s.backends.cgra_tia.opcodes import Opcode
from t2s.backends.cgra_tia.program import (
    CellProgram,
    FromChannel,
    Instruction,
    TagCheck,
    ToOutputs,
    Trigger,
)
from t2s.core.location import SourceLocation

_LOOP = -1
"""The operation that a virtual buffer's channel to itself comes from."""


@dataclass(kw_only=True)
class _Wiring:
    """A net that is being made: its source, its sinks, and the wires that it is."""

    source: Endpoint
    wires: list[Wire]
    sinks: list[NetSink] = field(default_factory=list)


class Assembly:
    """Collects the parts of a design and the ends of its nets."""

    def __init__(self, streams: StreamTable, aliases: Aliases) -> None:
        self._streams = streams
        self._aliases = aliases
        self._cells: list[NetCell] = []
        self._nets: dict[Endpoint, _Wiring] = {}
        self._sources: dict[Wire, Endpoint] = {}
        self._sinks: list[tuple[Wire, Endpoint, int]] = []
        self._controlled: list[Controlled] = []

    # --------------------------------------------------------------------------------- parts

    def add_cell(self, draft: CellDraft, index: int) -> None:
        """A cell of a process, the one of this number; nothing if it does nothing."""
        actions = list(dict.fromkeys(action for action in draft.actions if not action.idle))
        if not actions:
            return
        tagged = len(actions) > 1 or not actions[0].takes
        ports = ports_of(draft, actions, tagged=tagged)
        self._add_program(draft, actions, ports)
        for wire, port in ports.inputs.items():
            self._sink(wire, Endpoint(part=draft.name, port=port), _firings_before(draft, wire))
        if ports.tags is not None:
            self._controlled.append(
                Controlled(
                    end=Endpoint(part=draft.name, port=ports.tags),
                    nest=_control(draft, actions),
                    index=index,
                    origin=draft.process.origin,
                    always=not any(action.idle for action in draft.actions),
                )
            )

    def add_shared(self, cell: SharedCell, index: int) -> None:
        """A cell of a process that several operations share."""
        made = cell.merged()
        draft = made.draft
        ports = ports_of(draft, made.actions, tagged=True)
        assert ports.tags is not None
        self._add_program(draft, made.actions, ports, made.turns)
        for turn, part in enumerate(cell.parts):
            for wire in part.inputs:
                port = ports.inputs.get(TakenAgain(wire=wire, turn=turn), ports.inputs.get(wire))
                if port is not None and wire not in part.residents:
                    end = Endpoint(part=draft.name, port=port)
                    self._sink(wire, end, _rounds_before(part, wire), cell.ahead(wire, turn))
        for wire in draft.residents:
            self._sink(wire, Endpoint(part=draft.name, port=ports.inputs[wire]))
        end = Endpoint(part=draft.name, port=ports.tags)
        origin = draft.process.origin
        self._controlled.append(Controlled(end=end, nest=made.nest, index=index, origin=origin))

    def _add_program(
        self,
        draft: CellDraft,
        actions: Sequence[CellAction],
        ports: CellPorts,
        turns: tuple[CellTurn, ...] = (),
    ) -> None:
        program, kind = program_of(draft, actions, ports)
        origin = draft.process.origin
        self._cells.append(
            NetCell(name=draft.name, kind=kind, program=program, origin=origin, turns=turns)
        )
        for wire, port in ports.outputs.items():
            self._source(wire, Endpoint(part=draft.name, port=port))

    def add_buffer(self, replay: Replay) -> None:
        """A virtual buffer: a cell that sends what comes to its net and to itself."""
        if replay.shuffle is not None:
            self._add_shuffle(replay, replay.shuffle)
            return
        loop = CellResult(process=replay.name, operation=_LOOP)
        passes = replay.passes
        tags = (0, 1, 2) if passes > 2 else (0, 1)
        program = CellProgram(
            label=replay.name,
            instructions=tuple(
                _passing(tag, first=at == 0, last=at == len(tags) - 1)
                for at, tag in enumerate(tags)
            ),
        )
        self._cells.append(
            NetCell(name=replay.name, kind=CellKind.CONTROL, program=program, origin=replay.origin)
        )
        self._source(replay.sink, Endpoint(part=replay.name, port=0))
        self._source(loop, Endpoint(part=replay.name, port=1))
        self._sink(replay.source, Endpoint(part=replay.name, port=0))
        self._sinks.append((loop, Endpoint(part=replay.name, port=1), replay.tokens + 1))
        self._controlled.append(
            Controlled(
                end=Endpoint(part=replay.name, port=2),
                nest=_buffer_nest(replay),
                index=0,
                origin=replay.origin,
            )
        )

    def _add_shuffle(self, replay: Replay, shuffle: Shuffle) -> None:
        """A cell that sends what comes in another order."""
        name, origin = replay.name, replay.origin
        cell = NetCell(name=name, kind=CellKind.CONTROL, program=shuffle.program, origin=origin)
        self._cells.append(cell)
        self._source(replay.sink, Endpoint(part=name))
        self._sink(replay.source, Endpoint(part=name, port=VALUES))
        end = Endpoint(part=name, port=TAGS)
        self._controlled.append(Controlled(end=end, nest=shuffle.nest, index=0, origin=origin))

    def _source(self, wire: Wire, end: Endpoint) -> None:
        self._sources[wire] = end
        if end in self._nets:
            self._nets[end].wires.append(wire)
        else:
            self._nets[end] = _Wiring(source=end, wires=[wire])

    def _sink(self, wire: Wire, end: Endpoint, before: int = 0, ahead: int = 0) -> None:
        """An input, which a cell takes from for the first time after some firings.

        The channel of a recurrence has two places more than values are under way, and a net that
        closes a circle says how many those are.  ``ahead`` of them come early.
        """
        if isinstance(wire, TokenStream):
            room = self._aliases.room(wire)
            tokens = before + 1 if 0 < before == room - 2 else room + ahead
            self._sinks.append((self._aliases.root(wire), end, tokens))
        else:
            self._sinks.append((wire, end, 1 + ahead))

    # -------------------------------------------------------------------------------- result

    def netlist(self, name: str, location: SourceLocation | None) -> Netlist:
        """The design; refused if a stream has takers and no source."""
        graph = self._streams.graph
        for stream, unit in self._streams.sources.items():
            self._source(stream, Endpoint(part=unit.name))
        for stream, unit in self._streams.sinks.items():
            self._sink(stream, Endpoint(part=unit.name))
        for wire, end, tokens in self._sinks:
            if wire not in self._sources:
                self._unfed(wire)
            self._nets[self._sources[wire]].sinks.append(NetSink(end=end, tokens=tokens))
        wirings = [wiring for wiring in self._nets.values() if wiring.sinks]
        nets = [self._net(wiring) for wiring in wirings]
        used = {net.source.part for net in nets} | {s.end.part for net in nets for s in net.sinks}
        units = [
            unit
            for unit in (*self._streams.sources.values(), *self._streams.sinks.values())
            if unit.name in used
        ]
        more, control = sequencers(self._controlled, nets)
        return Netlist(
            name=name,
            cells=tuple(self._cells),
            units=(*units, *more),
            nets=(*nets, *control),
            tensors=(*graph.tensors, *scalar_tensors(graph)),
            location=location,
        )

    def _net(self, wiring: _Wiring) -> Net:
        first = next((w for w in wiring.wires if isinstance(w, TokenStream)), wiring.wires[0])
        if not isinstance(first, TokenStream):
            part = wiring.source.part
            group = f"{part.split('[')[0]}.{part.rpartition('.')[2]}" if "." in part else part
            return Net(
                name=f"{part}.out{wiring.source.port}",
                group=f"{group.split('[')[0]}.out{wiring.source.port}",
                source=wiring.source,
                sinks=tuple(wiring.sinks),
            )
        return Net(
            name=str(first),
            group=first.array,
            source=wiring.source,
            sinks=tuple(wiring.sinks),
            location=self._streams.facts[first.array].location,
        )

    def _unfed(self, wire: Wire) -> None:
        assert isinstance(wire, TokenStream)
        where = f"its element {list(wire.element)}" if wire.element else "it"
        location = self._streams.facts[wire.array].location
        refuse(f"channel {wire.array!r}", f"nothing puts tokens into {where}", location)


def _control(draft: CellDraft, actions: Sequence[CellAction]) -> SequenceNest:
    """The tags of a cell: the number of the action of each iteration that has one."""
    number = {action: at for at, action in enumerate(actions)}
    of_class = np.asarray([number.get(action, -1) for action in draft.actions])
    classes = draft.process.classes
    sequence = of_class[classes.codes]
    return tag_nest(draft.process.nest, sequence[sequence >= 0], classes.outer, classes.inner)


def _firings_before(draft: CellDraft, wire: Wire) -> int:
    """How often a cell fires before it takes from a wire."""
    classes = draft.process.classes
    fires = np.asarray([not action.idle for action in draft.actions])[classes.codes]
    takes = np.asarray([wire in action.takes for action in draft.actions])[classes.codes]
    return int(fires[: takes.argmax()].sum()) * classes.inner if takes.any() else 0


def _rounds_before(draft: CellDraft, wire: Wire) -> int:
    """How many turns an operation of a shared cell has before it takes from a wire."""
    classes = draft.process.classes
    takes = np.asarray([wire in action.takes for action in draft.actions])[classes.codes]
    return int(takes.argmax()) * classes.inner


def _passing(tag: int, *, first: bool, last: bool) -> Instruction:
    """One instruction of a virtual buffer: a pass over its tokens."""
    source = 0 if first else 1
    return Instruction(
        trigger=Trigger(checks=(TagCheck(channel=2, tag=tag), TagCheck(channel=source, tag=0))),
        opcode=Opcode.MOV,
        destination=ToOutputs(channels=(0,) if last else (0, 1), tag=0),
        sources=(FromChannel(source),),
        takes=(source, 2),
    )


def _buffer_nest(replay: Replay) -> SequenceNest:
    """Blocks of passes over the tokens: the first has tag 0, the last the highest one."""
    passes = np.minimum(np.arange(replay.passes), 1)
    passes[-1] = min(replay.passes - 1, 2)
    return pattern_nest(passes, replay.blocks, replay.tokens)
