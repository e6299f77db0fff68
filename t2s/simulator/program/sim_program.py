"""``SimProgram``: a checked graph on a device, as flat integer arrays.

``program.build`` makes it, with all checks; engines only run it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.ops import Array
from t2s.graph.analysis import path_bytes
from t2s.graph.body import Load
from t2s.graph.control.firing_codes import code_counts, firings_per_code, listed
from t2s.graph.graph import Channel, Graph, MemorySpace
from t2s.graph.nodes import Machine, Node, Register
from t2s.simulator.devices import Device
from t2s.simulator.limits import Limits, Observer
from t2s.simulator.memory.places import bases_in_banks, most_loads, uses_shared_banks
from t2s.simulator.memory.spec import Banked
from t2s.simulator.program.flatten import (
    MOST_CYCLES,
    MOVED_BYTES,
    RECEIVES_END,
    USES_BEGIN,
    USES_END,
    Control,
    exact_sum,
)
from t2s.simulator.program.trace import Trace
from t2s.simulator.random_stalls import RandomStalls


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInterval:
    """The initiation interval of a node, in cycles, and its cause.

    ``register`` is the limiting recurrence, with its ``latency`` in cycles and ``distance`` in
    firings; ``moved_bytes`` are the bytes per firing if the memory port is the limit, and
    ``accesses`` those of a ``tensor`` if its port serves one in a cycle, which may be just one.
    ``own``: it is that of the machine itself.
    """

    cycles: int
    register: Register | None = None
    latency: int = 0
    distance: int = 1
    moved_bytes: int | None = None
    port_bytes: int | None = None
    tensor: str | None = None
    accesses: int = 1
    own: bool = False

    @property
    def of_memory(self) -> bool:
        """Whether the memory port is the limit."""
        return self.moved_bytes is not None or self.tensor is not None

    @property
    def location(self) -> SourceLocation | None:
        """The user's line of the limiting recurrence, if there is one."""
        return self.register.location if self.register is not None else None

    def __str__(self) -> str:
        if self.register is not None:
            return (
                f"II {self.cycles}: recurrence through {self.register.name!r}, latency "
                f"{self.latency} at distance {self.distance}"
            )
        if self.moved_bytes is not None:
            return (
                f"II {self.cycles}: memory port, {self.moved_bytes} bytes per firing at "
                f"{self.port_bytes} bytes per cycle"
            )
        if self.tensor is not None and self.accesses == 1:
            return f"II {self.cycles}: 1 access of {self.tensor!r} per firing"
        if self.tensor is not None:
            return (
                f"II {self.cycles}: {self.accesses} accesses of {self.tensor!r} per firing, of "
                "which its port serves one in a cycle"
            )
        if self.own:
            return f"II {self.cycles}: the unit takes a firing every {self.cycles} cycles"
        return f"II {self.cycles}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTiming:
    """A node of the program: its PEs are instances ``first`` to ``first + pe_count - 1``.

    ``pe_count`` counts all points of the space domain, ``holes`` those without a PE.  ``loads``:
    the node loads, so that waiting for memory is starvation.
    """

    node: Node
    first: int
    pe_count: int
    holes: int
    interval: NodeInterval
    loads: bool

    @property
    def instances(self) -> slice:
        """The positions of the node's PEs among all PEs of the program."""
        return slice(self.first, self.first + self.pe_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelTiming:
    """A channel on this device: its FIFOs are elements ``first`` to ``first + count - 1``.

    ``latency`` and ``capacity`` include ``datapath``, the latency of the sender's datapath;
    ``capacity`` includes ``buffered``, the tokens that a loading sender can hold until their data
    arrive from a DRAM.
    """

    channel: Channel
    first: int
    datapath: int
    buffered: int = 0

    @property
    def latency(self) -> int:
        """Cycles from a send's firing until its token is ready."""
        return self.channel.latency + self.datapath

    @property
    def capacity(self) -> int:
        """Tokens that one element holds, those in the sender's pipeline included."""
        return self.channel.capacity + self.datapath + self.buffered

    @property
    def elements(self) -> slice:
        """The positions of the channel's elements among all elements of the program."""
        return slice(self.first, self.first + self.channel.element_count)


class RunContext(Protocol):
    """What the caller of a run knows of its design, and what of a ``SimResult`` depends on it."""

    @property
    def ends(self) -> bool:
        """Whether all machines are known to end, so that a run may be as long as it likes."""

    def rerun(
        self, program: SimProgram, engine: str, limits: Limits, observer: Observer | None
    ) -> Any:
        """Run a program like ``simulate``, with the same errors."""

    def warnings(self, result: Any) -> tuple[str, ...]:
        """Reasons to doubt the numbers."""

    def lines(self, result: Any) -> tuple[tuple[str, str], ...]:
        """Additional lines for the summary of a result, as (label, text)."""

    def write_page(self, result: Any, path: str | Path, options: Mapping[str, Any]) -> Path:
        """Write the report page of a result; the options are those of ``SimResult.report``."""


@dataclass(frozen=True, kw_only=True)
class SimProgram:
    """A graph ready to run.

    ``inputs`` is ``None`` for a times-only run; ``stalls`` are random stalls of the load and store
    units, if any; ``trace`` has the firings of its machines, if known already; ``context`` is what
    the design adds to results.
    """

    graph: Graph
    device: Device
    inputs: Mapping[str, Array] | None
    parameters: Mapping[str, Array]
    nodes: tuple[NodeTiming, ...]
    channels: tuple[ChannelTiming, ...]
    control: Control
    stalls: RandomStalls | None = None
    trace: Trace | None = None
    digest: str = ""
    context: RunContext | None = field(default=None, repr=False, compare=False)

    @property
    def pe_count(self) -> int:
        """Number of PEs of all nodes."""
        return len(self.control.firings)

    @property
    def inputs_of_times(self) -> Mapping[str, Array] | None:
        """The inputs if times depend on them, that is, for machines without a trace."""
        return self.inputs if self.graph.machines and self.trace is None else None

    @property
    def total_firings(self) -> int:
        """Firings of all PEs in a complete run."""
        return int(self.control.firings.sum())

    @property
    def memory_rate(self) -> Fraction | None:
        """Shared memory bandwidth in bytes per cycle; ``None`` is unlimited, or a DRAM's."""
        return None if self.memory_depends_on_addresses else self.device.memory_bytes_per_cycle

    @property
    def shares_memory(self) -> bool:
        """Whether accesses delay one another: a DRAM, shared banks, or a limit of bandwidth."""
        return bool(self.timed_places) or self.memory_rate is not None

    @property
    def memory_depends_on_addresses(self) -> bool:
        """Whether access times depend on addresses, as with a DRAM."""
        return self.device.memory is not None

    @cached_property
    def banked(self) -> Banked | None:
        """The banked memory of the device, if machines have tensors in it."""
        banked = self.device.banked
        return banked if banked is not None and uses_shared_banks(self.graph) else None

    @property
    def timed_places(self) -> frozenset[MemorySpace]:
        """The memory spaces whose access times depend on addresses."""
        places = {MemorySpace.MEMORY: self.device.memory, MemorySpace.SHARED: self.banked}
        return frozenset(place for place, memory in places.items() if memory is not None)

    @cached_property
    def intervals(self) -> NDArray[np.int64]:
        """The initiation interval of every PE, in cycles."""
        counts = [node.pe_count for node in self.nodes]
        return np.repeat([node.interval.cycles for node in self.nodes], counts).astype(np.int64)

    @cached_property
    def loads(self) -> NDArray[np.bool_]:
        """For each PE, whether its node loads."""
        counts = [node.pe_count for node in self.nodes]
        return np.repeat([node.loads for node in self.nodes], counts).astype(np.bool_)

    @cached_property
    def accesses_memory(self) -> NDArray[np.bool_]:
        """For each PE, whether its node loads or stores in any firing."""
        control = self.control
        ends = np.append(control.row_start[1:], len(control.rows))
        moved = np.append(0, np.cumsum(control.rows[:, MOVED_BYTES], dtype=np.int64))
        by_pe = moved[ends] > moved[control.row_start]
        accesses = [bool(by_pe[node.instances].any()) for node in self.nodes]
        return np.repeat(accesses, [node.pe_count for node in self.nodes]).astype(np.bool_)

    @cached_property
    def channel_of_element(self) -> NDArray[np.int64]:
        """The position of the channel of every element."""
        counts = [channel.channel.element_count for channel in self.channels]
        return np.repeat(np.arange(len(counts)), counts).astype(np.int64)

    def per_element(self, values: list[int]) -> NDArray[np.int64]:
        """One value per channel, repeated for its elements."""
        return np.asarray(values, np.int64)[self.channel_of_element]

    @cached_property
    def ring_sizes(self) -> NDArray[np.int64]:
        """Slots of every channel element's ring: its capacity, but no more than its tokens."""
        capacity = self.per_element([channel.capacity for channel in self.channels])
        return np.maximum(1, np.minimum(capacity, self.control.sent))

    def node_of(self, instance: int) -> NodeTiming:
        """The node that a PE belongs to."""
        return next(node for node in self.nodes if node.first <= instance < node.instances.stop)

    def pe_label(self, instance: int) -> str:
        """The name of a PE: the node's, with the point of its space domain."""
        timing = self.node_of(instance)
        if not timing.node.space:
            return timing.node.name
        shape = tuple(dimension.extent for dimension in timing.node.space)
        offsets = np.unravel_index(instance - timing.first, shape)
        point = (int(o) + d.minimum for o, d in zip(offsets, timing.node.space, strict=True))
        return f"{timing.node.name}[{', '.join(str(value) for value in point)}]"

    def element_label(self, element: int) -> str:
        """The name of a channel element: the channel's, with its index."""
        timing = self.channels[int(self.channel_of_element[element])]
        if not timing.channel.shape:
            return timing.channel.name
        index = np.unravel_index(element - timing.first, timing.channel.shape)
        return f"{timing.channel.name}[{', '.join(str(int(value)) for value in index)}]"

    @property
    def is_recorded(self) -> bool:
        """Whether what every node does in each of its firings is known."""
        return not self.graph.machines or (self.trace is not None and self.trace.is_kept)

    def check_recorded(self) -> None:
        """Raise ``UserError`` if it is not (see ``is_recorded``)."""
        if self.is_recorded:
            return
        what = f"the machines of {self.graph.name!r} have no recorded activity"
        if self.trace is None:
            raise UserError(
                what,
                location=user_location(),
                expected="a run by the native engine",
                given="one by the plain engine",
                hint="simulate with engine='native'",
            )
        raise UserError(
            what,
            location=user_location(),
            expected="a run whose trace is kept",
            given="a run that makes so many firings that their trace is not kept",
            hint="simulate a smaller problem, or a part of the run: max_cycles=1_000_000",
        )

    def traced(self, trace: Trace) -> SimProgram:
        """The program with a trace and its numbers of firings, but without its codes.

        Cached properties of nodes, channels and rows are kept, since these do not change.
        """
        firings = self.control.firings.copy()
        for instance, codes in trace.codes.items():
            firings[instance] = len(codes) + (instance in trace.unfinished)
        sent, received = trace.sent, trace.received
        control = replace(self.control, firings=firings, sent=sent, received=received)
        changed = copy(self)
        vars(changed).update(trace=trace, control=control)
        return changed

    def with_capacities(self, capacities: Mapping[str, int]) -> SimProgram:
        """The program with other capacities (in tokens) of some channels, for its times."""
        channels = tuple(
            replace(t, channel=replace(t.channel, capacity=capacities[t.channel.name]))
            if t.channel.name in capacities
            else t
            for t in self.channels
        )
        return replace(self, channels=channels, inputs=self.inputs_of_times)

    def with_latencies(self, latencies: Mapping[str, int]) -> SimProgram:
        """The program with other latencies (in cycles) of some channels, for its times."""
        channels = tuple(
            replace(t, channel=replace(t.channel, latency=latencies[t.channel.name]))
            if t.channel.name in latencies
            else t
            for t in self.channels
        )
        return replace(self, channels=channels, inputs=self.inputs_of_times)

    def with_banked(self, banked: Banked) -> SimProgram:
        """The program with other shared banks, for its times; ``UserError`` if it had none."""
        if self.banked is None:
            raise UserError(
                f"{self.graph.name!r} ran without shared banks: no accesses to them are recorded",
                location=user_location(),
                expected="a run on a device with banks, of machines that use shared tensors",
                given=f"a run on {self.device.name}",
                hint="simulate it with device.with_banked(...)",
            )
        device = self.device.with_banked(banked)
        bases_in_banks(self.graph, banked)
        channels = tuple(
            replace(
                t, buffered=buffered_firings(self.graph, self.graph.node(t.channel.source), device)
            )
            for t in self.channels
        )
        return replace(self, device=device, channels=channels, inputs=self.inputs_of_times)


def buffered_firings(graph: Graph, node: Node, device: Device) -> int:
    """Firings of a unit that its outstanding lines, or vectors, allow."""
    vectors = 0
    if isinstance(node, Machine):
        if device.banked is not None and (most := most_loads(graph, node, device.banked)):
            vectors = max(1, device.banked.outstanding // most)
        loaded = max((path_bytes(graph, path)[0] for path in node.paths()), default=0)
    else:
        loaded = sum(item.type.bytes for item in node.body if isinstance(item, Load))
    if device.memory is None or not loaded:
        return vectors
    lines = device.memory.units.outstanding * device.memory.line_bytes
    return max(1, lines // loaded, vectors)


Codes = Sequence[int] | NDArray[np.integer]


def with_traces(
    program: SimProgram, traces: Mapping[int, Codes], unfinished: Mapping[int, bool] | None = None
) -> SimProgram:
    """The program with the firing codes of its machines, by instance.

    The control of PE arrays is static, while the rules that a machine fires follow from values.
    The engine that computes these passes the codes here, and from then on a program with machines
    is like any other.  A machine in ``unfinished`` has unknown firings left and counts one more.
    """
    return replace(program, control=_control(program.control, traces, unfinished or {}))


def explicit(program: SimProgram, trace: Trace) -> SimProgram:
    """The program with the codes of its machines included in its control.

    An unfinished machine has one more firing, whose last token never comes; a refusing one does
    not.
    """
    control = program.control
    rows, uses, taken = [control.rows], [control.uses], [control.taken]
    row_count, use_count = len(control.rows), len(control.uses)
    codes_of: dict[int, Array] = {}
    for instance, codes in trace.codes.items():
        codes_of[instance] = codes.expanded
        needs = trace.unfinished.get(instance)
        if needs and instance not in trace.refusing:
            row = np.zeros((1, control.rows.shape[1]), control.rows.dtype)
            row[0, :3] = use_count, use_count + len(needs), use_count + len(needs)
            rows.append(row)
            uses.append(np.array(needs, control.uses.dtype))
            taken.append(np.zeros(len(needs), np.bool_))
            last = np.int32(row_count - control.row_start[instance])
            codes_of[instance] = np.append(codes.expanded.astype(np.int32), last)
            row_count, use_count = row_count + 1, use_count + len(needs)
    extended = replace(
        control,
        rows=np.concatenate(rows),
        uses=np.concatenate(uses),
        taken=np.concatenate(taken),
    )
    return with_traces(replace(program, control=extended, trace=trace), codes_of)


def _control(
    control: Control, traces: Mapping[int, Codes], unfinished: Mapping[int, bool]
) -> Control:
    firings, order_of = control.firings.copy(), control.order_of.copy()
    sent, received = control.sent.copy(), control.received.copy()
    orders = list(control.orders)
    for instance, fired in traces.items():
        codes = np.asarray(fired) if len(fired) else np.zeros(0, np.int32)
        firings[instance] = len(codes) + bool(unfinished.get(instance))
        order_of[instance] = len(orders)
        orders.append(listed(codes))
        counts = code_counts(codes, int(codes.max()) + 1 if len(codes) else 0)
        for code in np.flatnonzero(counts):
            row = control.rows[control.row_start[instance] + code]
            begin, middle, end = (int(row[c]) for c in (USES_BEGIN, RECEIVES_END, USES_END))
            needed, taken = control.uses[begin:middle], control.taken[begin:middle]
            received[needed[taken]] += counts[code]
            sent[control.uses[middle:end]] += counts[code]
    return replace(
        control,
        firings=firings,
        order_of=order_of,
        orders=tuple(orders),
        sent=sent,
        received=received,
    )


def check_times(program: SimProgram) -> None:
    """``UserError`` if a run of the program could take ``MOST_CYCLES`` or more.

    Until the end, some PE fires within the longest latency, interval or memory access of the last
    firing, which bounds the cycles of a run by a multiple of its firings.
    """
    device = program.device
    longest = {
        "the latency of a channel": max((c.latency for c in program.channels), default=1),
        "an initiation interval": int(program.intervals.max(initial=1)),
        "a memory access": _access_cycles(program),
        "the latency of a store": device.store_latency,
    }
    cause = max(longest, key=lambda name: longest[name])
    firings = exact_sum(program.control.firings)
    most = (firings + 1) * (longest[cause] + 1)
    if most < MOST_CYCLES:
        return
    raise UserError(
        f"{program.graph.name!r} could take more cycles than can be counted",
        location=program.graph.location or user_location(),
        expected=f"firings x the longest delay of any of them below {MOST_CYCLES}",
        given=f"{firings} firings and {longest[cause]} cycles of {cause} on {device.name}",
        hint="use a smaller problem, or check the latencies and the bandwidth of the device",
    )


def _access_cycles(program: SimProgram) -> int:
    """The most cycles that the shared memory needs for the bytes of one firing."""
    rate = program.memory_rate
    if rate is None:
        return 0
    # credit is counted in fractions of a byte, also in 64-bit integers
    moved = int(program.control.rows[:, MOVED_BYTES].max(initial=0)) + 1
    if max(rate.numerator, moved * rate.denominator) >= MOST_CYCLES:
        return MOST_CYCLES
    return -(-moved * rate.denominator // max(1, rate.numerator))


# Sums over the first slots of PEs: empty slots, bytes, or any other weight of the control's rows.
#
# A slot is a step of the time loops: a firing, or an empty slot of a schedule.  Slots are never
# listed one by one, so a sum is cheap even in the middle of a run of 10^9 cycles.

Integers = NDArray[np.int64]

_MOST_LISTED = 1 << 20
"""The largest number of slots of a PE that are listed one by one."""


def empty_before(program: SimProgram, slots: Integers) -> Integers:
    """Empty slots among the first slots of each PE; shape (PEs, edges)."""
    if not program.control.empty.any():
        return np.zeros_like(slots)
    return sums_before(program, (~program.control.fires).astype(np.int64), slots)


def sums_before(program: SimProgram, weights: Integers, slots: Integers) -> Integers:
    """The sum of the weights of the first slots of each PE; shape (PEs, edges).

    ``weights`` has a number for each of ``Control.rows``.
    """
    control = program.control
    sums = np.zeros_like(slots)
    known: dict[tuple[int, int], Integers] = {}
    traces = {} if program.trace is None else program.trace.codes
    for pe in np.flatnonzero(control.firings).tolist():
        if pe in traces:
            rules = weights[int(control.row_start[pe]) + traces[pe].expanded.astype(np.int64)]
            sums[pe] = np.concatenate([[0], np.cumsum(rules)])[slots[pe]]
            continue
        order, start = control.orders[int(control.order_of[pe])], int(control.row_start[pe])
        own = weights[start : start + int(order.codes.max(initial=0)) + 1]
        if (own == own[0]).all():
            sums[pe] = own[0] * slots[pe]
        elif order.firings <= _MOST_LISTED:
            key = (int(control.order_of[pe]), start)
            if key not in known:
                codes = own[order.expanded()[: order.firings]]
                known[key] = np.concatenate([[0], np.cumsum(codes)])
            sums[pe] = known[key][np.minimum(slots[pe], order.firings)]
        else:
            for edge, count in enumerate(slots[pe].tolist()):
                counts = firings_per_code(replace(order, firings=count), len(own))
                sums[pe, edge] = int((counts * own).sum())
    return sums
