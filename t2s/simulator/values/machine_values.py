"""Values of graphs with machines: the codes of their firings, and the addresses they access.

Like ``compute_values``, but the behavior of machines depends on data, so they may wait for tokens
that never come, or receive tokens that they cannot take.  Neither is an error yet: with the real
capacities of the channels the run may end earlier.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np

from t2s.core.errors import InternalError, UserError
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.core.types import Type
from t2s.graph.arrays import outputs_of
from t2s.graph.cache import GraphCache
from t2s.graph.graph import Channel, Graph, TensorRole
from t2s.graph.nodes import Machine
from t2s.graph.semantics import MachineState, ProtocolError, Token, space_points
from t2s.llvm.compile import Effort, MachineCode, compile_text, is_compiled
from t2s.simulator.memory.machine_accesses import (
    Addresses,
    LaneRows,
    lane_addresses,
    lane_rows,
    narrowed,
    with_addresses,
)
from t2s.simulator.program.codes import Codes, counts_of
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.program.trace import Trace
from t2s.simulator.report.counters import FOREVER, Counts
from t2s.simulator.values.emit_frame import FAULTED
from t2s.simulator.values.emit_node import emit_program
from t2s.simulator.values.layout import (
    ABSOLUTE,
    FAILED,
    FINISHED,
    FIRST,
    MODE,
    TAG,
    TRACE_LENGTH,
    TRACE_WORDS,
    WHERE,
    Section,
    TokenLayout,
    ValueLayout,
    layout_of,
    span_bytes,
)
from t2s.simulator.values.machine_traces import MOST_FIRINGS, CodeTraces
from t2s.simulator.values.spans import Carried, Spans, spans_of
from t2s.simulator.values.state import RunState


def trace_of(program: SimProgram, values: StreamValues, limit: int | None) -> Trace:
    """The trace of a run of a program's values, limited to a number of cycles."""
    codes: dict[int, Codes] = {}
    unfinished: dict[int, tuple[int, ...]] = {}
    refusing: set[int] = set()
    control, machines = program.control, np.zeros(program.pe_count, np.bool_)
    for timing in program.nodes:
        if not isinstance(timing.node, Machine):
            continue
        machines[timing.instances] = True
        for place in range(timing.pe_count):
            instance = timing.first + place
            trace = values.traces[timing.node.name, place]
            codes[instance] = trace.codes
            if not trace.finished:
                unfinished[instance] = _elements(program, instance, trace.needs)
            if trace.refuses:
                refusing.add(instance)
    cut = any(not needs for instance, needs in unfinished.items() if instance not in refusing)

    # A trace outlives the values and the inputs, and is sent to other processes.
    timed = replace(program, inputs=None)
    refusal = partial(_refusal, values.refusal, timed) if refusing else _nothing_refused
    return Trace(
        codes=codes,
        unfinished=unfinished,
        refusing=frozenset(refusing),
        sent=_counted(values.sent[: len(control.sent)], control.sent, control.sender, machines),
        received=_counted(
            values.received[: len(control.received)], control.received, control.receiver, machines
        ),
        refusal=refusal,
        limit=limit if cut else None,
        addresses=_addresses(program, values),
    )


def _addresses(program: SimProgram, values: StreamValues) -> dict[int, tuple[Addresses, ...]]:
    """The recorded addresses, by machine."""
    if not values.recorded:
        return {}
    channels = with_addresses(program.graph, program.timed_places).channels
    return {
        timing.first + place: tuple(values.recorded[name][place] for name in channels[name_of])
        for timing in program.nodes
        if (name_of := timing.node.name) in channels
        for place in range(timing.pe_count)
    }


def _refusal(
    refuse: Callable[[str, int], Exception], timed: SimProgram, instance: int
) -> Exception:
    timing = timed.node_of(instance)
    return refuse(timing.node.name, instance - timing.first)


def _nothing_refused(instance: int) -> Exception:
    return AssertionError(f"machine {instance} refuses nothing")


def _elements(program: SimProgram, instance: int, needs: tuple[str, ...]) -> tuple[int, ...]:
    """The element of each channel that ends at an instance."""
    elements: list[int] = []
    for name in needs:
        timing = next(timing for timing in program.channels if timing.channel.name == name)
        receivers = program.control.receiver[timing.elements]
        elements.append(timing.first + int(np.flatnonzero(receivers == instance)[0]))
    return tuple(elements)


def _counted(counted: Counts, static: Counts, ends: Counts, machines: Array) -> Counts:
    """Tokens by element: counted if a machine is at that end, else those of the control.

    ``machines`` says which instances are machines.
    """
    return np.where((ends >= 0) & machines[ends], counted, static)


_FIRINGS_PER_CALL = 1 << 22
_TRIAL = 1 << 18
"""Firings one by one, after which bursts begin if rules repeat for long enough."""

_LONG, _LONGER, _LONGEST = 6, 10, 128
"""Firings of a machine by one rule in sequence, on average, with which bursts are no loss, with
which they are a gain, and with which they are one for machines along rows, which fire as one
otherwise.  Where a stop follows each row, this is half the length of a row."""

_FEW = 1 << 10
"""Firings of a machine that say little about the others: rows are long then if they are dense."""

_SHARE = 8
"""One in so many firings that gain by bursts is worth other code."""

_FEW_FIRINGS = 1 << 18
"""Firings after which codes may have to be taken out of traces."""

_FIRINGS_A_CHARACTER = 64
"""Firings for each character of a program without vectors after which optimizing it pays off.

It takes 0.6 microseconds a character, and saves some 8 nanoseconds a firing.
"""

_BYTES_A_FIRING = 4
"""What a firing adds to the size of a trace at most: a run of its own."""

_MOST_KEPT_BYTES = 1 << 27
"""The largest memory kept from one run of a graph to the next."""


class Consumer(Protocol):
    """Takes traces while they become longer, so that they need not be kept."""

    @property
    def most_kept(self) -> int | None:
        """The bytes of traces from which on they are given away; ``None`` if they are not."""

    def take(self, codes: Mapping[tuple[str, int], Codes]) -> bool:
        """Take what each machine, by node and place, did next; return whether it is taken.

        The codes may change afterwards.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineTrace:
    """The firings of one machine.

    Attributes
    ----------
    codes: those of its firings.
    finished: whether it ended.
    needs: if not, the channels whose heads the next firing needs, as far as known.
    refuses: whether all these heads arrive and no rule accepts them.
    """

    codes: Codes
    finished: bool
    needs: tuple[str, ...] = ()
    refuses: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamValues:
    """The values of a run in channels without bounds.

    Attributes
    ----------
    outputs: the output tensors; ``None`` unless every node ended, or is endless and waits for
        tokens.
    traces: the trace of every machine, by node and place.
    sent, received: tokens through the elements of all channels, channel by channel.
    refusal: makes the error of a refusing machine (by node and place).
    recorded: for each recorded channel, the addresses sent to each element.
    """

    outputs: Mapping[str, Array] | None
    traces: Mapping[tuple[str, int], MachineTrace]
    sent: Counts
    received: Counts
    refusal: Callable[[str, int], Exception]
    recorded: Mapping[str, tuple[Addresses, ...]]


class _Prepared:
    """The code of a graph, and a reusable memory to run it in.

    A run takes the memory if it is free, and leaves it for the next one.
    """

    def __init__(self, graph: Graph, spans: Spans) -> None:
        self.layout = layout_of(graph, spans)
        program = emit_program(graph, self.layout, vectors=True)
        self._text, self.faults = program.text, program.faults
        self.rows = {machine.name: one for one in program.rows for machine in one.machines}
        self._optimized, self._fired = is_compiled(program.text), 0
        self._short = "" if self._optimized else emit_program(graph, self.layout).text
        self.heads = _words(self.layout.heads(c.name) for c in graph.channels)
        self.tails = _words(self.layout.tails(c.name) for c in graph.channels)
        self._idle: list[RunState] = []

    def code(self, fired: int) -> MachineCode:
        """The code to continue with, after a number of firings.

        New code is compiled without vectors and optimization, in a fifth of the time, and with
        both once it has run for as long as that takes.
        """
        self._fired += fired
        self._optimized |= self._fired > _FIRINGS_A_CHARACTER * len(self._short)
        return self.fast() if self._optimized else compile_text(self._short, Effort.QUICK)

    def fast(self) -> MachineCode:
        """The fastest code."""
        return compile_text(self._text, Effort.FULL)

    def state(self, graph: Graph, record: Sequence[str]) -> RunState:
        """A memory for exclusive use."""
        try:
            return self._idle.pop()
        except IndexError:
            depths = depths_of_record(graph, self.layout, record)
            return RunState(graph, self.layout, depths)

    def leave(self, state: RunState) -> None:
        """Keep the memory of a finished run for the next one, if none is kept."""
        if not self._idle:
            state.free()
            self._idle.append(state)


def _words(sections: Iterable[Section]) -> Counts:
    """The positions of all words of some sections."""
    ranges = [range(s.word, s.word + s.bytes // 8) for s in sections]
    return np.array([word for words in ranges for word in words], np.int64)


_PREPARED: GraphCache[frozenset[str], _Prepared] = GraphCache()
_SPANS: GraphCache[frozenset[str], Spans] = GraphCache()


def _spans(graph: Graph, among: frozenset[str]) -> Spans:
    return _SPANS.get(graph, among, lambda: spans_of(graph, among))


def stream_values(
    graph: Graph,
    inputs: Mapping[str, Array],
    parameters: Mapping[str, Array],
    *,
    most_firings: int | None = None,
    on_progress: Callable[[int], None] | None = None,
    record: Sequence[str] = (),
    consumer: Consumer | None = None,
    ends: bool = False,
) -> StreamValues:
    """Run a graph with machines as far as its tokens allow, at most ``most_firings`` per machine.

    ``record`` are channels of addresses, of nesting 0, without a receiver.  A ``consumer`` may take
    traces that become long, which are not kept then.  ``ends``: all machines are known to, so that
    none is taken for one without an end.

    Raises ``UserError`` if an input is invalid or a machine never ends.
    """
    run = _Running(graph, inputs, parameters, most_firings, record, at_first(graph), ends=ends)
    while waiting := run.state.unfinished():
        fired = run.advance()
        if run.is_trial and run.total >= _TRIAL and (among := run.worth_bursts()):
            run.leave()
            run = _Running(graph, inputs, parameters, most_firings, record, among, ends=ends)
            continue
        taken = run.addresses.take(all=not fired)
        if not fired or run.total > _FEW_FIRINGS:
            taken |= run.take_traces()
            taken |= consumer is not None and not run.is_trial and run.gave(consumer)
        stuck = not fired and not taken and run.state.unfinished() == waiting
        if stuck and not run.state.grow() and not run.goes_on():
            break
        if on_progress is not None:
            on_progress(run.total)
    prepared, layout, state, addresses = run.prepared, run.layout, run.state, run.addresses
    reader = _Reader(graph, layout, state)
    done = all(reader.waits_for_ever(name) for name in state.unfinished())
    if consumer is not None and run.counted:
        run.give(consumer)
    traces = reader.traces(run.may_be_endless, run.counted)
    refused = any(trace.refuses for trace in traces.values())
    values = StreamValues(
        outputs=run.outputs() if done else None,
        traces=traces,
        sent=state.words[prepared.tails],
        received=state.words[prepared.heads],
        refusal=reader.refusal if refused else _nobody_refuses,
        recorded=addresses.result(),
    )
    if done:
        run.leave()
    return values


def at_first(graph: Graph) -> frozenset[str]:
    """The machines that burst from the beginning on: none, if there is a trial."""
    return frozenset() if _TRIAL else frozenset(machine.name for machine in graph.machines)


class _Running:
    """A run of the machines of a graph, one firing at a time, or some of them in bursts.

    Attributes
    ----------
    total: firings so far.
    is_trial: whether it may turn out that bursts are faster.
    counted: how often each code came in the traces that were given away, by machine and place.
    may_be_endless: whether a machine that makes ``MOST_FIRINGS`` is taken for one without an end.
    """

    def __init__(
        self,
        graph: Graph,
        inputs: Mapping[str, Array],
        parameters: Mapping[str, Array],
        most_firings: int | None,
        record: Sequence[str],
        bursting: frozenset[str],
        *,
        ends: bool,
    ) -> None:
        self._graph = graph
        self.prepared = _PREPARED.get(
            graph, bursting, lambda: _Prepared(graph, _spans(graph, bursting))
        )
        self.layout = self.prepared.layout
        self.state = self.prepared.state(graph, record)
        self.state.start(inputs, parameters)
        self.addresses = AddressRecord(graph, self.layout, self.state, record)
        self.total, self._fired, self.is_trial = 0, 0, not bursting
        self.counted: dict[tuple[str, int], Counts] = {}
        self._short_until = 0
        self._traces = [memory.traces for memory in self.state.machines.values()]
        self.may_be_endless = most_firings is None and not ends
        self._is_bounded = most_firings is None
        if most_firings is not None:
            self._limit(most_firings)
        sections = [self.layout.trace(name) for name in self.state.machines]
        places = np.array([section.shape[0] for section in sections], np.int64)
        self._owner = np.repeat(np.arange(len(places)), places)
        self._lengths = _words(sections)[TRACE_LENGTH::TRACE_WORDS]
        self._many = np.repeat([traces.many for traces in self._traces], places)

    def advance(self) -> int:
        """Let the machines fire for a while; return the number of firings."""
        most = _FIRINGS_PER_CALL
        if self.is_trial and self.total < _TRIAL:
            most = min(most, _TRIAL)
        self._fired = self.prepared.code(self._fired).run(self.state.address, most)
        if self._fired == FAULTED:
            fault = int(self.state.get(self.layout.fault))
            raise InternalError(self.prepared.faults[fault - 1])
        self.total += self._fired
        return self._fired

    def take_traces(self) -> bool:
        """Take codes out of traces in which there are many; return whether there were any."""
        many = self.state.words[self._lengths] >= self._many
        taken = [self._traces[owner].take() for owner in np.unique(self._owner[many]).tolist()]
        return any(taken)

    def gave(self, consumer: Consumer) -> bool:
        """Whether traces are that long, and the consumer took them."""
        most = consumer.most_kept
        if most is None or self.total < self._short_until:
            return False
        kept = sum(traces.kept for traces in self._traces)
        self._short_until = self.total + (most - kept) // _BYTES_A_FIRING
        return kept > most and self.give(consumer)

    def give(self, consumer: Consumer) -> bool:
        """Give all traces so far away; return whether the consumer took them."""
        machines = self.state.machines.items()
        codes = {
            (name, place): memory.traces.codes(place)
            for name, memory in machines
            for place in range(memory.traces.places)
        }
        if not consumer.take(codes):
            return False
        for (name, place), given in codes.items():
            counts = counts_of(given.parts, given.bits)
            self.counted[name, place] = self.counted.get((name, place), 0) + counts
            self.state.machines[name].traces.drop(place)
        return True

    def goes_on(self) -> bool:
        """Whether machines that made ``MOST_FIRINGS`` may make more, as they are known to end."""
        goes_on = self._is_bounded and not self.may_be_endless
        if goes_on:
            self._is_bounded = False
            self._limit(FOREVER)
        return goes_on

    def _limit(self, firings: int) -> None:
        for traces in self._traces:
            traces.limit(firings)

    def worth_bursts(self) -> frozenset[str]:
        """The machines whose rules repeat for long and can burst, if they matter; asked once."""
        self.is_trial = False
        machines = self.state.machines.items()
        traces = {n: m.traces for n, m in machines if isinstance(m.traces, CodeTraces)}
        firings = {name: one.firings for name, one in traces.items()}
        repeats = {name: firings[name] / max(1, one.about_runs()) for name, one in traces.items()}
        rows = self.prepared.rows
        long = frozenset(
            n
            for n in traces
            if repeats[n] > _LONG
            or (firings[n] < _FEW and (n not in rows or rows[n].scanner.is_dense))
        )
        bursting = _spans(self._graph, long).bursts.keys()
        # where a receiver takes tokens one by one, a burst of them is only taken apart again
        gaining = [
            n
            for n in bursting
            if repeats[n] > (_LONGEST if n in rows else _LONGER)
            and {c.sink for c in self._graph.outputs_of(n)} & traces.keys() <= bursting
        ]
        worth = _SHARE * sum(firings[name] for name in gaining) > self.total
        return frozenset(bursting) if worth else frozenset()

    def outputs(self) -> dict[str, Array]:
        """The outputs under the user's names; those that the next run stores into are copied."""
        tensors = self.state.tensors()
        if self._is_small:
            for tensor in self._graph.tensors:
                if tensor.open and tensor.role is TensorRole.OUTPUT:
                    tensors[tensor.name] = tensors[tensor.name].copy()
        return outputs_of(self._graph, tensors)

    def leave(self) -> None:
        """Keep the memory for the next run, unless it is large."""
        if self._is_small:
            self.prepared.leave(self.state)

    @property
    def _is_small(self) -> bool:
        return self.state.bytes <= _MOST_KEPT_BYTES


def _nobody_refuses(name: str, place: int) -> Exception:
    """A stand-in for a closure that would keep the memory of the run alive."""
    return InternalError(f"machine {place} of {name} refuses nothing")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the firings of machines, and their next needs, from the final state."""

    graph: Graph
    layout: ValueLayout
    state: RunState

    def traces(
        self, may_be_endless: bool, counted: Mapping[tuple[str, int], Counts]
    ) -> dict[tuple[str, int], MachineTrace]:
        """The traces of all machines; of those that were given away the counts of their codes."""
        traces: dict[tuple[str, int], MachineTrace] = {}
        for node in self.graph.machines:
            points = self.layout.waits[node.name]
            words = self.state.get(self.layout.state(node.name)).tolist()
            for place, (status, _, wait) in enumerate(words):
                codes = self.state.machines[node.name].traces.codes(place)
                if counted:
                    counts = counted[node.name, place]
                    codes = replace(codes, parts=(), firings=int(counts.sum()), counted=counts)
                needs = points[wait] if wait >= 0 and status != FINISHED else ()
                if may_be_endless and len(codes) == MOST_FIRINGS and status != FINISHED:
                    raise _endless(node, place)
                traces[node.name, place] = MachineTrace(
                    codes=codes,
                    finished=status == FINISHED,
                    needs=needs,
                    refuses=status == FAILED,
                )
        return traces

    def waits_for_ever(self, name: str) -> bool:
        """Whether an unfinished node is endless, and all its places wait for tokens."""
        node = self.graph.node(name)
        if not isinstance(node, Machine) or not node.endless:
            return False
        words = self.state.get(self.layout.state(name)).tolist()
        return all(
            status == FINISHED or (status != FAILED and wait >= 0) for status, _, wait in words
        )

    def refusal(self, name: str, place: int) -> Exception:
        """The error of a refusing machine, as its semantics define it."""
        node = self.graph.node(name)
        assert isinstance(node, Machine)
        state = self._machine_state(node, place)
        memory = self.state.tensors()
        heads = {
            channel.name: head
            for channel in self.graph.inputs_of(name)
            if (head := self._head(channel, state.inputs[channel.name].element)) is not None
        }
        try:
            with np.errstate(all="ignore"):
                decision = state.decide(heads, memory)
                if not isinstance(decision, tuple):
                    state.fire(decision, dict(memory))
        except ProtocolError as error:
            return error
        message = int(self.state.get(self.layout.fault))
        return InternalError(f"{name} stopped without a reason, after fault {message}")

    def _machine_state(self, node: Machine, place: int) -> MachineState:
        point = list(space_points(node))[place]
        state = MachineState(self.graph, node, point, self.state.scalars)
        words = self.state.get(self.layout.state(node.name))
        state.mode = node.modes[int(words[place, MODE])]
        for register in node.registers:
            row = self.state.get(self.layout.register(node.name, register.name))[place]
            values = row.view(register.type.scalar.numpy)
            shape = state.registers[register.name].shape
            state.registers[register.name] = values.reshape(shape).copy()
        return state

    def _head(self, channel: Channel, element: tuple[int, ...]) -> Token | Array | None:
        """The next token in an element of a channel, or ``None``."""
        layout = self.layout
        at = int(np.ravel_multi_index(element, channel.shape)) if channel.shape else 0
        head = int(self.state.get(layout.heads(channel.name))[at])
        if head == int(self.state.get(layout.tails(channel.name))[at]):
            return None
        if channel.name in layout.spans.carried:
            return self._head_of_span(channel, at)
        token = layout.tokens[channel.name]
        ring = self.state.ring(channel.name)[at]
        slot = head % (len(ring) // token.stride) * token.stride
        type = channel.stream.element
        bytes = ring[slot + token.value : slot + token.value + type.bytes]
        value = bytes.view(type.scalar.numpy)
        value = value.copy() if type.lanes > 1 else value[0]
        if channel.stream.nesting == 0:
            return value
        return Token(value, int(ring[slot : slot + 4].view(np.int32)[0]))

    def _head_of_span(self, channel: Channel, at: int) -> Token:
        """The first token of the next span, which is there."""
        layout, type = self.layout, channel.stream.element.scalar.numpy
        form = layout.spans.carried[channel.name]
        ring = self.state.ring(channel.name)[at].reshape(-1, span_bytes(form))
        taken = int(self.state.get(layout.ring_heads(channel.name))[at])
        span = ring[taken % len(ring)]
        tag = int(span[TAG : TAG + 4].view(np.int32)[0])
        if form is Carried.LINEAR:
            return Token(span[FIRST : FIRST + 4].view(type)[0], tag)
        where = int(span[WHERE : WHERE + 8].view(np.int64)[0])
        if span[ABSOLUTE : ABSOLUTE + 4].any():
            bytes = np.frombuffer(ctypes.string_at(where, type.itemsize), np.uint8)
        else:
            data = self.state.data(channel.name)[at]
            bytes = data[where % len(data) :][: type.itemsize]
        return Token(bytes.view(type)[0], tag)


def _endless(node: Machine, place: int) -> UserError:
    return UserError(
        f"{node.name!r} has not ended after {MOST_FIRINGS} firings",
        location=node.location,
        expected="a machine that ends, or max_cycles",
        given=f"machine {place}, which goes on",
        hint="set max_cycles to see what it does, or to more cycles than it takes",
    )


# Addresses that machines put into recording channels, drained during a run.
#
# These channels have no receiver, so their rings would grow with the run, to gigabytes with vectors
# of 16 mostly idle lanes.  Drained regularly, the addresses are stored compactly
# (``LaneAddresses``), and the rings keep their size.

MOST_ADDRESSES = 1 << 29
"""The most recorded addresses of one machine array: 2 GB in 32 bits."""

_RING_BYTES = 1 << 25
_MOST_SLOTS = 1 << 13


def depths_of_record(graph: Graph, layout: ValueLayout, record: Sequence[str]) -> dict[str, int]:
    """Capacities of the recording channels: many tokens in a few megabytes."""
    bytes = sum(graph.channel(name).element_count * layout.tokens[name].stride for name in record)
    depth = layout.depth
    while 2 * depth <= _MOST_SLOTS and 2 * depth * bytes <= _RING_BYTES:
        depth *= 2
    return dict.fromkeys(record, depth)


class AddressRecord:
    """Drains the recording channels, which have nesting 0."""

    def __init__(
        self, graph: Graph, layout: ValueLayout, state: RunState, record: Sequence[str]
    ) -> None:
        self._layout, self._state = layout, state
        self._channels = [_RecordedChannel(graph, layout, name) for name in record]

    def take(self, *, all: bool = True) -> bool:
        """Drain all rings if one is nearly full, or always with ``all``; return whether any was."""
        taken = False
        for channel in self._channels:
            heads = self._state.get(self._layout.heads(channel.name)).reshape(-1)
            tails = self._state.get(self._layout.tails(channel.name)).reshape(-1)
            slots = int(self._state.get(self._layout.ring(channel.name))[1])
            waiting = tails - heads
            if not (all and waiting.any()) and not (2 * waiting >= slots).any():
                continue
            ring = self._state.ring(channel.name)
            for place in np.flatnonzero(waiting).tolist():
                channel.take(ring[place], slots, place, int(heads[place]), int(tails[place]))
            heads[:] = tails
            taken = True
        return taken

    def result(self) -> dict[str, tuple[Addresses, ...]]:
        """All tokens of each channel, by element."""
        self.take()
        return {channel.name: channel.result() for channel in self._channels}


class _RecordedChannel:
    """The tokens drained from a channel so far."""

    def __init__(self, graph: Graph, layout: ValueLayout, name: str) -> None:
        channel = graph.channel(name)
        self.name, self._machine = name, channel.source
        self._type: Type = channel.stream.element
        self._token: TokenLayout = layout.tokens[name]
        self._vectors: list[list[LaneRows]] = [[] for _ in range(channel.element_count)]
        self._scalars: list[list[Array]] = [[] for _ in range(channel.element_count)]
        self._count = 0

    def take(self, ring: Array, slots: int, place: int, head: int, tail: int) -> None:
        """Drain a range of token numbers of one element."""
        first, end = head % slots, head % slots + (tail - head)
        self._keep(ring, place, first, min(end, slots))
        if end > slots:
            self._keep(ring, place, 0, end - slots)

    def _keep(self, ring: Array, place: int, first: int, end: int) -> None:
        token, type = self._token, self._type
        slots = ring.reshape(-1, token.stride)[first:end]
        values = slots[:, token.value : token.value + type.bytes].view(type.scalar.numpy)
        if type.lanes > 1:
            rows = lane_rows(values)
            self._vectors[place].append(rows)
            self._count += len(rows.addresses)
        else:
            self._scalars[place].append(narrowed(values[:, 0]))
            self._count += len(values)
        if self._count > MOST_ADDRESSES:
            raise _too_much(self._machine)

    def result(self) -> tuple[Addresses, ...]:
        """The tokens of each element."""
        lanes = self._type.lanes
        if lanes > 1:
            return tuple(lane_addresses(lanes, parts) for parts in self._vectors)
        nothing = np.zeros(0, np.int32)
        return tuple(np.concatenate([nothing, *parts]) for parts in self._scalars)


def _too_much(machine: str) -> UserError:
    return UserError(
        f"{machine!r} accesses memory too often to list its addresses",
        location=user_location(),
        expected=f"at most {MOST_ADDRESSES:,} addresses of one machine array",
        given="more",
        hint='simulate a smaller problem, or with memory="ideal"',
    )
