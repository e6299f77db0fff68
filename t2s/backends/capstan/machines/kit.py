"""Drafts of units and of their graph, with the wires between units.

A ``Wire`` is an output of a unit, to which any number of units listens; each of them gets a channel
of its own, and a firing that sends into the wire sends into all of them.  Rules name wires;
``GraphDraft.graph`` replaces them by channels when all listeners are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from t2s.backends.capstan.machines.chip_times import CapstanTimes
from t2s.core.expr import Expr, Index, Local
from t2s.core.location import SourceLocation
from t2s.core.names import NameSupply
from t2s.core.types import INT32, Type
from t2s.graph.body import Let, Role, SpaceDimension
from t2s.graph.build import In, MachineDraft, Out, let, with_channels
from t2s.graph.graph import (
    Channel,
    Graph,
    Region,
    ScalarParameter,
    StreamKind,
    StreamType,
    Tensor,
)
from t2s.graph.nodes import Machine, stop

LAST = stop(0)
"""The tag of the last firing of a segment, higher than all other tags of firings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire(Out):
    """An output of a unit.

    ``latency`` is in cycles from the firing until a listener has the token, without the device's
    latency of the operators that compute it; ``capacity`` is in tokens at each listener.  ``shape``
    is that of the array of channels, ``source_at`` the element that a place sends into, and
    ``sink_at`` the element that a listener takes from, if it is not that of its own place.
    """

    unit: str
    shape: tuple[int, ...]
    source_at: tuple[Expr, ...]
    latency: int
    capacity: int
    sink_at: tuple[Expr, ...] | None = None


class GraphDraft:
    """The graph, collected unit by unit.

    ``names`` supplies names of values in units, ``labels`` names of units, wires and channels.
    """

    def __init__(self, name: str, taken: Sequence[str], times: CapstanTimes) -> None:
        self.name, self.times = name, times
        self.names, self.labels = NameSupply(taken), NameSupply()
        self.tensors: dict[str, Tensor] = {}
        self.parameters: list[ScalarParameter] = []
        self.regions: list[Region] = []
        self._channels: list[Channel] = []
        self._machines: list[Machine] = []
        self._listeners: dict[str, dict[str, list[str]]] = {}

    def tensor(self, tensor: Tensor) -> Tensor:
        """Register a tensor that units use; returns the one registered under its name."""
        return self.tensors.setdefault(tensor.name, tensor)

    def add(self, machine: Machine) -> None:
        """Add the machine of a unit."""
        self._machines.append(machine)

    def connect(self, wire: Wire, unit: str, sink_at: tuple[Expr, ...]) -> str:
        """Add a channel from a wire to a unit; returns its name."""
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
        self._listeners.setdefault(wire.unit, {}).setdefault(wire.port, []).append(name)
        return name

    def graph(self, location: SourceLocation | None) -> Graph:
        """All units, with their channels."""
        locations = {machine.name: machine.location for machine in self._machines}
        return Graph(
            name=self.name,
            nodes=tuple(
                with_channels(machine, self._listeners.get(machine.name, {}))
                for machine in self._machines
            ),
            channels=tuple(
                replace(channel, location=locations[channel.source]) for channel in self._channels
            ),
            tensors=tuple(self.tensors.values()),
            parameters=tuple(self.parameters),
            regions=tuple(self.regions),
            location=location,
        )


class UnitDraft(MachineDraft):
    """The draft of a unit: an array of machines, one for each point of ``space``."""

    def __init__(
        self,
        draft: GraphDraft,
        name: str,
        role: Role,
        space: tuple[SpaceDimension, ...],
        region: str | None,
        location: SourceLocation | None,
    ) -> None:
        super().__init__(draft.labels.fresh(name), role, space, location, region)
        self.draft = draft

    @property
    def here(self) -> tuple[Expr, ...]:
        """The index of the unit's own place."""
        return tuple(Index(name=dimension.name) for dimension in self.space)

    def listen(self, wire: Wire, name: str) -> In:
        """Listen to a wire, whose head is called ``name``."""
        at = self.here if wire.sink_at is None else wire.sink_at
        channel = self.draft.connect(wire, self.name, at)
        tag = f"{name}_tag"
        if wire.stream.nesting:
            tag = self.local(tag)
        return self.take(channel, wire.stream, name, tag)

    def output(
        self,
        name: str,
        type: Type = INT32,
        *,
        tagged: bool = False,
        latency: int | None = None,
        capacity: int | None = None,
    ) -> Wire:
        """A wire of the unit, by default with the latency and the capacity of the chip's links."""
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
            shape=tuple(dimension.extent for dimension in self.space),
            source_at=self.here,
            latency=times.hop if latency is None else latency,
            capacity=times.room(type.lanes) if capacity is None else capacity,
        )

    def register(self, name: str, type: Type = INT32, initial: float = 0) -> Local:
        """A register with a unique name; the expression is its value at the start of a firing."""
        return super().register(self.local(f"{self.name}_{name}"), type, initial)

    def local(self, name: str) -> str:
        """A unique name for a value that a statement binds."""
        return self.draft.names.fresh(name)

    def let(self, name: str, value: Expr) -> tuple[Let, Local]:
        """A local with a unique name, and the expression that reads it."""
        return let(self.local(name), value)

    def finish(self, *, endless: bool = False) -> None:
        """Add the unit to the graph; an ``endless`` one may wait forever once all others have
        ended.
        """
        self.draft.add(self.machine(endless=endless))
