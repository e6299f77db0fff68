"""What units are written with: wires between units, drafts of machines, and short words for rules.

A ``Wire`` is an output of a unit, to which any number of units listens; each of them gets a channel
of its own, and a firing that puts into the wire puts into all of them.  A unit names its wires;
``GraphDraft.graph`` puts the channels in their place when all listeners are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from t2s.backends.capstan.machines.chip_times import CapstanTimes
from t2s.core.expr import Expr, Index, Local, equals
from t2s.core.location import SourceLocation
from t2s.core.names import NameSupply
from t2s.core.types import INT32, Type
from t2s.graph.body import Let, RegisterWrite, Role, SpaceDimension, Statement
from t2s.graph.build import register as register_file
from t2s.graph.graph import (
    Channel,
    Graph,
    Region,
    ScalarParameter,
    StreamKind,
    StreamType,
    Tensor,
)
from t2s.graph.nodes import DONE, Choice, Head, Machine, Mode, Put, Register, Rule, stop

LAST = stop(0)
"""The tag of the last firing of a segment, and above all others that come with firings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """An output of a unit.

    ``latency`` are the cycles from its firing until a listener has the token, the device's for the
    operators that compute it left out; ``capacity`` the tokens that wait at each listener.
    ``shape`` is that of its elements, ``source_at`` the one that a place puts into, and ``sink_at``
    the one that is listened to, if it is not that of the listener's place.
    """

    unit: str
    port: str
    stream: StreamType
    shape: tuple[int, ...]
    source_at: tuple[Expr, ...]
    latency: int
    capacity: int
    sink_at: tuple[Expr, ...] | None = None

    @property
    def type(self) -> Type:
        """What its tokens carry."""
        return self.stream.element


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitHead:
    """The head of a wire in a unit: the channel, and how expressions name it."""

    channel: str
    value: Local
    tag: Local | None = None

    @property
    def is_done(self) -> Expr:
        """The stream ends."""
        assert self.tag is not None
        return equals(self.tag, DONE)

    @property
    def is_last(self) -> Expr:
        """The last firing of a segment."""
        assert self.tag is not None
        return equals(self.tag, LAST)


class GraphDraft:
    """A graph that grows unit by unit.

    ``names`` are those of values in units, ``labels`` those of units, wires and channels.
    """

    def __init__(self, name: str, taken: Sequence[str], times: CapstanTimes) -> None:
        self.name, self.times = name, times
        self.names, self.labels = NameSupply(taken), NameSupply()
        self.tensors: dict[str, Tensor] = {}
        self.parameters: list[ScalarParameter] = []
        self.regions: list[Region] = []
        self._channels: list[Channel] = []
        self._machines: list[Machine] = []
        self._listeners: dict[tuple[str, str], list[str]] = {}

    def tensor(self, tensor: Tensor) -> Tensor:
        """Say that units use a tensor; the one of that name if there is one."""
        return self.tensors.setdefault(tensor.name, tensor)

    def add(self, machine: Machine) -> None:
        """Add the machine of a unit."""
        self._machines.append(machine)

    def connect(self, wire: Wire, unit: str, sink_at: tuple[Expr, ...]) -> str:
        """A channel from a wire to a unit; its name."""
        name = self.labels.fresh(f"{wire.port}_to_{unit}")
        self._channels.append(
            Channel(
                name=name,
                stream=wire.stream,
                source=wire.unit,
                sink=unit,
                shape=wire.shape,
                source_index=wire.source_at,
                sink_index=sink_at,
                capacity=wire.capacity,
                latency=wire.latency,
            )
        )
        self._listeners.setdefault((wire.unit, wire.port), []).append(name)
        return name

    def graph(self, location: SourceLocation | None) -> Graph:
        """All units, with their channels."""
        locations = {machine.name: machine.location for machine in self._machines}
        return Graph(
            name=self.name,
            nodes=tuple(self._with_channels(machine) for machine in self._machines),
            channels=tuple(
                replace(channel, location=locations[channel.source]) for channel in self._channels
            ),
            tensors=tuple(self.tensors.values()),
            parameters=tuple(self.parameters),
            regions=tuple(self.regions),
            location=location,
        )

    def _with_channels(self, machine: Machine) -> Machine:
        """The machine with channels in place of wires."""

        def sent(inside: Rule | tuple[Choice, ...]) -> Rule | tuple[Choice, ...]:
            if not isinstance(inside, Rule):
                return tuple(replace(choice, inside=sent(choice.inside)) for choice in inside)
            puts = tuple(
                replace(one, channel=channel)
                for one in inside.puts
                for channel in self._listeners.get((machine.name, one.channel), ())
            )
            return replace(inside, puts=puts)

        modes = tuple(
            replace(
                mode,
                choices=tuple(
                    replace(choice, inside=sent(choice.inside)) for choice in mode.choices
                ),
            )
            for mode in machine.modes
        )
        return replace(machine, modes=modes)


class UnitDraft:
    """A unit that is being written: an array of machines, one for each point of ``space``."""

    def __init__(
        self,
        draft: GraphDraft,
        name: str,
        role: Role,
        space: tuple[SpaceDimension, ...],
        region: str | None,
        location: SourceLocation | None,
    ) -> None:
        self.draft, self.space = draft, space
        self.name = draft.labels.fresh(name)
        self._role, self._region, self._location = role, region, location
        self._heads: list[Head] = []
        self._registers: list[Register] = []
        self._modes: list[Mode] = []

    @property
    def here(self) -> tuple[Expr, ...]:
        """The unit's own place."""
        return tuple(Index(name=dimension.name) for dimension in self.space)

    def take(self, wire: Wire, name: str) -> UnitHead:
        """Listen to a wire, whose head is called ``name``."""
        at = self.here if wire.sink_at is None else wire.sink_at
        channel = self.draft.connect(wire, self.name, at)
        value = Local(name=name, type=wire.type)
        tagged = wire.stream.nesting > 0
        tag = Local(name=self.draft.names.fresh(f"{name}_tag"), type=INT32) if tagged else None
        self._heads.append(Head(channel=channel, value=name, tag=None if tag is None else tag.name))
        return UnitHead(channel=channel, value=value, tag=tag)

    def output(
        self,
        name: str,
        type: Type = INT32,
        *,
        tagged: bool = False,
        latency: int | None = None,
        capacity: int | None = None,
        at: tuple[Expr, ...] | None = None,
        shape: tuple[int, ...] | None = None,
    ) -> Wire:
        """A wire of the unit; as late, and with as much room, as the chip's links."""
        times = self.draft.times
        return Wire(
            unit=self.name,
            port=self.draft.labels.fresh(name),
            stream=StreamType(
                element=type,
                kind=StreamKind.CONTROL if tagged else StreamKind.VALUE,
                nesting=int(tagged),
                values_under_tags=tagged,
            ),
            shape=tuple(dimension.extent for dimension in self.space) if shape is None else shape,
            source_at=self.here if at is None else at,
            latency=times.hop if latency is None else latency,
            capacity=times.room(type.lanes) if capacity is None else capacity,
        )

    def register(self, name: str, type: Type = INT32, initial: float = 0) -> Local:
        """A register; the expression is its value at the start of a firing."""
        fresh = self.draft.names.fresh(f"{self.name}_{name}")
        self._registers.append(replace(register_file(fresh, type), initial=initial))
        return Local(name=fresh, type=type)

    def local(self, name: str) -> str:
        """A name for a value that a statement binds."""
        return self.draft.names.fresh(name)

    def mode(self, name: str, *choices: Choice, needs: Sequence[UnitHead] = ()) -> None:
        """Add a mode; the first one is that at the start."""
        self._modes.append(Mode(name=name, needs=_channels(needs), choices=choices))

    def finish(self, *, endless: bool = False) -> None:
        """The unit is complete; an ``endless`` one waits for ever when all others have ended."""
        self.draft.add(
            Machine(
                name=self.name,
                role=self._role,
                space=self.space,
                heads=tuple(self._heads),
                registers=tuple(self._registers),
                modes=tuple(self._modes),
                region=self._region,
                endless=endless,
                location=self._location,
            )
        )


def _channels(heads: Sequence[UnitHead]) -> tuple[str, ...]:
    return tuple(head.channel for head in heads)


def when(
    condition: Expr | None,
    inside: Rule | Sequence[Choice],
    *,
    needs: Sequence[UnitHead] = (),
    lets: Sequence[Let] = (),
) -> Choice:
    """An alternative; ``None`` always holds.  ``lets`` bind locals for what is inside."""
    inner = inside if isinstance(inside, Rule) else tuple(inside)
    return Choice(when=condition, needs=_channels(needs), body=tuple(lets), inside=inner)


def rule(
    name: str,
    after: str | None,
    *,
    takes: Sequence[UnitHead] = (),
    puts: Sequence[Put] = (),
    body: Sequence[Statement] = (),
) -> Rule:
    """A rule, and the mode after it (``None``: the end)."""
    return Rule(name=name, body=tuple(body), takes=_channels(takes), puts=tuple(puts), next=after)


def put(wire: Wire, value: Expr | None = None, tag: Expr | None = None) -> Put:
    """A token into a wire."""
    return Put(channel=wire.port, value=value, tag=tag)


def let(unit: UnitDraft, name: str, value: Expr) -> tuple[Let, Local]:
    """A local with a name of its own, and the expression that reads it."""
    fresh = unit.local(name)
    return Let(target=fresh, value=value), Local(name=fresh, type=value.type)


def write(register: Local, value: Expr) -> RegisterWrite:
    """Change a register."""
    return RegisterWrite(register=register.name, indices=(), value=value)
