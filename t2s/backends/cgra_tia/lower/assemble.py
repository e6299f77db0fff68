"""Assembles cells, stream units and nets into a ``Netlist``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from t2s.backends.cgra_tia import program as isa
from t2s.backends.cgra_tia.fabric import EXTENDED_CORE, CellKind
from t2s.backends.cgra_tia.lower.cells import CellAction, CellDraft, CellResult, TakenAgain, Wire
from t2s.backends.cgra_tia.lower.copy_propagation import Aliases
from t2s.backends.cgra_tia.lower.not_lowered import refuse
from t2s.backends.cgra_tia.lower.process import StreamTable, TokenStream
from t2s.backends.cgra_tia.lower.registers import TAGS, VALUES, Replay, Shuffle
from t2s.backends.cgra_tia.lower.stationary_operands import scalar_tensors
from t2s.backends.cgra_tia.lower.time_multiplexing import SharedCell
from t2s.backends.cgra_tia.lower.unit_nests import SequenceNest, pattern_nest, tag_nest
from t2s.backends.cgra_tia.lower.values import WordLiteral
from t2s.backends.cgra_tia.netlist import (
    CellTurn,
    Endpoint,
    Net,
    NetCell,
    Netlist,
    NetSink,
    Provenance,
    StreamUnit,
    UnitKind,
)
from t2s.core.location import SourceLocation
from t2s.core.strong_components import strong_components

_LOOP = -1
"""The operation that a virtual buffer's channel to itself comes from."""


@dataclass(kw_only=True)
class _Wiring:
    """A net under construction: its source, its sinks, and the wires that it implements."""

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
        """Add the cell number ``index`` of a process, unless it has no actions."""
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
        """Add a cell of a process that several operations share."""
        program = cell.merged()
        draft = program.draft
        ports = ports_of(draft, program.actions, tagged=True)
        assert ports.tags is not None
        self._add_program(draft, program.actions, ports, program.turns)
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
        self._controlled.append(Controlled(end=end, nest=program.nest, index=index, origin=origin))

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
        """Add a virtual buffer: a cell that sends what arrives to its net and back to itself."""
        if replay.shuffle is not None:
            self._add_shuffle(replay, replay.shuffle)
            return
        loop = CellResult(process=replay.name, operation=_LOOP)
        passes = replay.passes
        tags = (0, 1, 2) if passes > 2 else (0, 1)
        program = isa.CellProgram(
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
        """Add a cell that sends what arrives in another order."""
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
        """Note an input that a cell takes from for the first time after ``before`` firings.

        The channel of a recurrence has room for two more values than are in flight, and a net that
        closes a cycle says how many those are.  ``ahead`` of them arrive early.
        """
        if isinstance(wire, TokenStream):
            room = self._aliases.room(wire)
            tokens = before + 1 if 0 < before == room - 2 else room + ahead
            self._sinks.append((self._aliases.root(wire), end, tokens))
        else:
            self._sinks.append((wire, end, 1 + ahead))

    # -------------------------------------------------------------------------------- result

    def netlist(self, name: str, location: SourceLocation | None) -> Netlist:
        """The design; refused if a stream has readers and no source."""
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
    """The tag sequence of a cell: the number of its action in each iteration in which it acts."""
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


def _passing(tag: int, *, first: bool, last: bool) -> isa.Instruction:
    """The instruction of a virtual buffer for one kind of pass over its tokens."""
    source = 0 if first else 1
    return isa.Instruction(
        trigger=isa.Trigger(
            checks=(isa.TagCheck(channel=2, tag=tag), isa.TagCheck(channel=source, tag=0))
        ),
        opcode=isa.Opcode.MOV,
        destination=isa.ToOutputs(channels=(0,) if last else (0, 1), tag=0),
        sources=(isa.FromChannel(source),),
        takes=(source, 2),
    )


def _buffer_nest(replay: Replay) -> SequenceNest:
    """Blocks of passes over the tokens: the first pass has tag 0, the last one the highest tag."""
    passes = np.minimum(np.arange(replay.passes), 1)
    passes[-1] = min(replay.passes - 1, 2)
    return pattern_nest(passes, replay.blocks, replay.tokens)


# From the actions of a cell to its program, within the sizes of a cell.

_PHASE, _HOLDS = 1, 2
"""Predicates of a cell that chooses: bits of 'a comparison was made', and of its result."""

_FIRST_RESIDENT = 4
"""The predicate of the first token that stays; the others follow."""


@dataclass(frozen=True, kw_only=True)
class CellPorts:
    """The ports of a cell: inputs by wire, outputs by wire, and that of the tags, if it has one."""

    inputs: Mapping[Wire, int]
    outputs: Mapping[Wire, int]
    tags: int | None


def ports_of(draft: CellDraft, actions: Sequence[CellAction], *, tagged: bool) -> CellPorts:
    """Port numbers for all wires; wires that always carry the same share an output."""
    inputs: dict[Wire, int] = {}
    for wire in draft.inputs:
        if wire in draft.residents or any(wire in action.takes for action in actions):
            inputs[wire] = len(inputs)
    outputs: dict[Wire, int] = {}
    shared: dict[tuple[bool, ...], int] = {}
    for wire in dict.fromkeys(wire for action in actions for wire in action.outputs):
        used = tuple(wire in action.outputs for action in actions)
        outputs[wire] = shared.setdefault(used, len(shared))
    ports = CellPorts(inputs=inputs, outputs=outputs, tags=len(inputs) if tagged else None)
    core = EXTENDED_CORE
    for what, count, most in (
        ("input channels", len(inputs) + tagged, core.inputs),
        ("output channels", len(shared), core.outputs),
    ):
        if count > most:
            _too_many(draft, count, what, most)
    return ports


def program_of(
    draft: CellDraft, actions: Sequence[CellAction], ports: CellPorts
) -> tuple[isa.CellProgram, CellKind]:
    """The program of a cell whose action number ``n`` is chosen by tag ``n``."""
    writer = _Writer(draft, ports)
    for number, action in enumerate(actions):
        writer.action(number, action)
    core = EXTENDED_CORE
    for what, count, most in (
        ("different actions, selected by tags", len(actions), core.tags),
        ("instructions", len(writer.instructions), core.instructions),
        ("registers", len(writer.registers), core.registers),
    ):
        if count > most:
            _too_many(draft, count, what, most)
    fma = any(instruction.opcode in isa.ON_FMA for instruction in writer.instructions)
    program = isa.CellProgram(
        label=draft.name,
        initial=tuple(
            (number, held) for held, number in writer.registers.items() if isinstance(held, int)
        ),
        instructions=tuple(writer.instructions),
    )
    return program, CellKind.FMA if fma else CellKind.CONTROL


def _too_many(draft: CellDraft, count: int, what: str, most: int) -> None:
    point = list(draft.process.origin.point)
    where = f" at {point}" if point else ""
    less = ", or take a smaller interval" if " and " in draft.operator else ""
    refuse(
        draft.process.nest.subject,
        f"the cell of its {draft.operator!r}{where} would need {count} {what}, and a cell has "
        f"{most}: give it fewer operands, or fewer conditions on loops{less}",
        draft.process.nest.location,
    )


class _Writer:
    def __init__(self, draft: CellDraft, ports: CellPorts) -> None:
        self._draft = draft
        self._ports = ports
        self.instructions: list[isa.Instruction] = []
        self.registers: dict[int | Wire, int] = {}
        self._settled = 0
        for wire in draft.residents:
            self._settle(wire)

    def _settle(self, wire: Wire) -> None:
        """An instruction that keeps the only token of a wire."""
        bit = 1 << self._settled.bit_length() if self._settled else _FIRST_RESIDENT
        assert bit < 1 << EXTENDED_CORE.predicates, "an operator has three operands at most"
        port = self._ports.inputs[wire]
        number = self.registers.setdefault(wire, len(self.registers))
        self.instructions.append(
            isa.Instruction(
                trigger=isa.Trigger(
                    ones=self._settled, zeros=bit, checks=(isa.TagCheck(channel=port, tag=0),)
                ),
                opcode=isa.Opcode.MOV,
                destination=isa.ToRegister(number),
                sources=(isa.FromChannel(port),),
                takes=(port,),
                sets=bit,
            )
        )
        self._settled |= bit

    def action(self, number: int, action: CellAction) -> None:
        """The instructions of one action."""
        checks = []
        if self._ports.tags is not None:
            checks.append(isa.TagCheck(channel=self._ports.tags, tag=number))
        takes = [self._ports.inputs[wire] for wire in action.takes]
        checks += [isa.TagCheck(channel=port, tag=0) for port in takes]
        assert len(checks) <= EXTENDED_CORE.checks, "an operator has three operands at most"
        if self._ports.tags is not None:
            takes.append(self._ports.tags)
        channels = tuple(sorted({self._ports.outputs[wire] for wire in action.outputs}))
        target = isa.ToOutputs(channels=channels, tag=0)
        if action.recipe is None or not channels:
            self._add(isa.Opcode.NOP, None, (), tuple(checks), tuple(takes))
        elif action.recipe.chooses:
            self._choose(action, target, tuple(checks), tuple(takes))
        else:
            sources = self._sources(action.operands)
            self._add(action.recipe.opcode, target, sources, tuple(checks), tuple(takes))

    def _choose(
        self,
        action: CellAction,
        target: isa.ToOutputs,
        checks: tuple[isa.TagCheck, ...],
        takes: tuple[int, ...],
    ) -> None:
        assert action.recipe is not None
        first, second, yes, no = action.operands
        before = isa.Trigger(ones=self._settled, zeros=_PHASE, checks=checks)
        self.instructions.append(
            isa.Instruction(
                trigger=before,
                opcode=action.recipe.opcode,
                destination=isa.ToPredicate(_HOLDS.bit_length() - 1),
                sources=self._sources((first, second)),
                sets=_PHASE,
            )
        )
        for value, ones, zeros in ((yes, _PHASE | _HOLDS, 0), (no, _PHASE, _HOLDS)):
            self.instructions.append(
                isa.Instruction(
                    trigger=isa.Trigger(ones=ones | self._settled, zeros=zeros, checks=checks),
                    opcode=isa.Opcode.MOV,
                    destination=target,
                    sources=self._sources((value,)),
                    takes=takes,
                    clears=_PHASE,
                )
            )

    def _add(
        self,
        opcode: isa.Opcode,
        target: isa.Destination,
        sources: tuple[isa.Source, ...],
        checks: tuple[isa.TagCheck, ...],
        takes: tuple[int, ...],
    ) -> None:
        self.instructions.append(
            isa.Instruction(
                trigger=isa.Trigger(ones=self._settled, checks=checks),
                opcode=opcode,
                destination=target,
                sources=sources,
                takes=takes,
            )
        )

    def _sources(self, operands: Sequence[WordLiteral | Wire]) -> tuple[isa.Source, ...]:
        """The operands: one constant can be an immediate, others are initial register values."""
        sources: list[isa.Source] = []
        immediate = False
        for operand in operands:
            if not isinstance(operand, WordLiteral) and operand in self._draft.residents:
                sources.append(isa.FromRegister(self.registers[operand]))
                continue
            if not isinstance(operand, WordLiteral):
                sources.append(isa.FromChannel(self._ports.inputs[operand]))
                continue
            pattern = operand.pattern
            small = not operand.type.is_float or pattern == 0
            if small and _fits(pattern) and not immediate:
                immediate = True
                sources.append(isa.Immediate(pattern % (1 << EXTENDED_CORE.immediate_width)))
            else:
                number = self.registers.setdefault(pattern, len(self.registers))
                sources.append(isa.FromRegister(number))
        return tuple(sources)


def _fits(pattern: int) -> bool:
    """Whether a word is an immediate, sign-extended."""
    half = 1 << (EXTENDED_CORE.immediate_width - 1)
    return pattern < half or pattern >= (1 << EXTENDED_CORE.word_width) - half


# ``seq`` units: one for all cells that need the same tags at the same time.
#
# A shared unit makes its cells run at one pace, up to the slack of its net.  Cells of one PE with
# the same tags share a unit if they act in every firing, because then none of them needs the result
# of a later firing of another.  Cells of several PEs of a node share it as well if none of them
# waits for another and all are equally far from memory, unless they exchange tokens with a common
# neighbor, which may serve them in turn: the shared pace could then deadlock.


@dataclass(frozen=True, kw_only=True)
class Controlled:
    """An input port for tags.

    ``index`` is the number of the cell within its PE; ``always`` says whether it acts in every
    firing of the PE.
    """

    end: Endpoint
    nest: SequenceNest
    index: int
    origin: Provenance
    always: bool = False


@dataclass(kw_only=True)
class _Order:
    """Dependences between parts: strongly connected components, and the longest path to each."""

    component: dict[str, int]
    rank: dict[int, int]
    neighbors: dict[str, dict[tuple[str, bool], set[str]]] = field(default_factory=dict)


def sequencers(
    controlled: Sequence[Controlled], nets: Sequence[Net]
) -> tuple[list[StreamUnit], list[Net]]:
    """The units that send tags, and their nets."""
    order = _order(nets)
    leaders, followers = _in_one_pe(controlled)
    groups: dict[tuple[object, ...], list[Controlled]] = {}
    seen: dict[tuple[object, ...], int] = {}
    for leader in leaders:
        component = order.component.get(leader.end.part, -1)
        kind = (leader.origin.node, leader.index, leader.nest, order.rank.get(component, 0))
        within = seen.get((kind, component), 0)
        seen[kind, component] = within + 1
        groups.setdefault((kind, within), []).append(leader)
    together: list[list[Controlled]] = []
    for group in groups.values():
        together += [group] if _independent(group, order) else [[port] for port in group]
    units: list[StreamUnit] = []
    tag_nets: list[Net] = []
    numbers: dict[str, int] = {}
    arrays: dict[tuple[str, SequenceNest], str] = {}
    for group in together:
        node = group[0].origin.node
        numbers[node] = numbers.get(node, 0) + 1
        name = f"{node}.seq{numbers[node]}"
        units.append(
            StreamUnit(
                name=name,
                kind=UnitKind.SEQUENCE,
                loops=group[0].nest.loops,
                tags=group[0].nest.tags,
                origin=Provenance(
                    node=node,
                    point=_in_common([port.origin.point for port in group]),
                    location=group[0].origin.location,
                ),
            )
        )
        sinks = tuple(
            NetSink(end=end) for port in group for end in (port.end, *followers[port.end])
        )
        alike = arrays.setdefault((node, group[0].nest), name)
        tag_nets.append(Net(name=name, group=alike, source=Endpoint(part=name), sinks=sinks))
    return units, tag_nets


def _in_common(points: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The coordinates that several points have in common, which tell similar units apart."""
    return tuple(column[0] for column in zip(*points, strict=True) if len(set(column)) == 1)


def _in_one_pe(
    controlled: Sequence[Controlled],
) -> tuple[list[Controlled], dict[Endpoint, list[Endpoint]]]:
    """One leading cell of each PE for each tag sequence, and the ports that share its unit."""
    leaders: dict[tuple[object, ...], Controlled] = {}
    followers: dict[Endpoint, list[Endpoint]] = {}
    for port in controlled:
        own = () if port.always else (port.end,)
        key = (port.origin.node, port.origin.point, port.nest, *own)
        leader = leaders.setdefault(key, port)
        followers.setdefault(leader.end, [])
        if leader is not port:
            followers[leader.end].append(port.end)
    return list(leaders.values()), followers


def _independent(group: Sequence[Controlled], order: _Order) -> bool:
    """Whether no two cells of a group reach a common neighbor through different nets."""
    met: dict[tuple[str, bool], set[str]] = {}
    for port in group:
        for neighbor, nets in order.neighbors.get(port.end.part, {}).items():
            if neighbor in met and met[neighbor] != nets:
                return False
            met.setdefault(neighbor, nets)
    return True


def _order(nets: Sequence[Net]) -> _Order:
    """Strongly connected components of the parts, and the longest path to each."""
    names: dict[str, int] = {}
    arcs: list[tuple[int, int]] = []
    neighbors: dict[str, dict[tuple[str, bool], set[str]]] = {}
    for net in nets:
        source = names.setdefault(net.source.part, len(names))
        for sink in net.sinks:
            target = names.setdefault(sink.end.part, len(names))
            arcs.append((source, target))
            for part, other, ahead in (
                (net.source.part, sink.end.part, True),
                (sink.end.part, net.source.part, False),
            ):
                neighbors.setdefault(part, {}).setdefault((other, ahead), set()).add(net.name)
    if not arcs:
        return _Order(component={}, rank={})
    labels = strong_components(len(names), arcs)
    component = {name: labels[number] for name, number in names.items()}
    rank = _longest({(labels[a], labels[b]) for a, b in arcs if labels[a] != labels[b]})
    return _Order(component=component, rank=rank, neighbors=neighbors)


def _longest(arcs: set[tuple[int, int]]) -> dict[int, int]:
    """The length of the longest path to each end of the arcs, which are acyclic."""
    after: dict[int, list[int]] = {}
    waiting: dict[int, int] = {}
    for source, target in sorted(arcs):
        after.setdefault(source, []).append(target)
        waiting[target] = waiting.get(target, 0) + 1
    rank = dict.fromkeys(after, 0)
    ready = [source for source in after if source not in waiting]
    while ready:
        source = ready.pop()
        for target in after.get(source, ()):
            rank[target] = max(rank.get(target, 0), rank[source] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return rank
