"""The reference engine: cycle by cycle, straight from the time rule, values and times together.

It is the oracle of the other engines, so it shares none of their shortcuts: it takes the ports of a
firing from ``graph.semantics``, evaluates the body itself, and classifies every PE in every cycle.
The models of DRAMs and shared banks are those of the native engine, run uncompiled; the tests check
them against independent ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from t2s.core.ops import Array
from t2s.graph.analysis import path_bytes
from t2s.graph.arrays import outputs_of
from t2s.graph.body import Load, Store
from t2s.graph.interpret import allocate
from t2s.graph.nodes import Machine, Node, PEArray
from t2s.graph.semantics import (
    Decision,
    Environment,
    MachineState,
    PortUse,
    fire,
    holds,
    iterations,
    new_registers,
    port_uses,
    space_points,
)
from t2s.simulator.limits import Limits, Observer
from t2s.simulator.memory.banks import UNKNOWN
from t2s.simulator.program.sim_program import NodeTiming, SimProgram, with_traces
from t2s.simulator.reference_memories import ReferenceMemories
from t2s.simulator.report.assemble import assemble
from t2s.simulator.report.counters import Ending, Stuck, Tally, end_of_run, ending_of
from t2s.simulator.report.result import SimResult

_OBSERVED_EVERY = 256


@dataclass(frozen=True, slots=True)
class PythonEngine:
    """The engine that the others are checked against."""

    name: str = "python"

    def run(
        self, program: SimProgram, limits: Limits, observer: Observer | None = None
    ) -> SimResult:
        """See ``Engine``."""
        with np.errstate(all="ignore"):
            run = _Run(program, limits, observer)
            ending = run.to_the_end(limits)
            outputs = run.outputs() if ending is Ending.FINISHED else {}
            traced = run.traced()
            result = assemble(traced, run.tally(ending), outputs, self.name, kernel="plain")
            # the trace ends where this run did, so another run has to compute it again
            return result if traced is program else replace(result, program=program)


def memories_of(program: SimProgram, limits: Limits) -> ReferenceMemories | None:
    """The memories whose access times depend on addresses, if there are any."""
    return ReferenceMemories(program, limits) if program.timed_places else None


Told = Callable[[int, int, Mapping[str, Array], Mapping[str, Array]], None]
"""Receives a firing: the PE, the cycle, and the tokens taken and values sent, by channel."""


def watch_firings(program: SimProgram, until: int, report: Told) -> None:
    """Run a program to the end of a cycle, and report every firing."""
    limits = Limits(max_cycles=until)
    with np.errstate(all="ignore"):
        run = _Run(program, limits, None)
        run.told = report
        run.to_the_end(limits)


class _Run:
    """The state of a run."""

    def __init__(self, program: SimProgram, limits: Limits, observer: Observer | None) -> None:
        self.program = program
        self.told: Told | None = None
        self.observer = observer
        self.cycle = 0
        self.last_store = 0
        self.memory: dict[str, Array] | None = None
        if program.inputs is not None:
            self.memory = allocate(program.graph, program.inputs)
        self.rate = program.memory_rate
        self.credit = self.rate
        self.queue: deque[PlainPE] = deque()
        self.fifos: dict[PortUse, Fifo] = {}
        for timing in program.channels:
            indices = np.ndindex(timing.channel.shape)
            for position, index in enumerate(indices, timing.first):
                use = PortUse(timing.channel.name, index)
                self.fifos[use] = Fifo(position, timing.latency, timing.capacity)
        self.pes = [
            self._new_pe(timing, at, point)
            for timing in program.nodes
            for at, point in enumerate(space_points(timing.node))
        ]
        self.memories = memories_of(program, limits)
        for pe in self.pes:
            self._next(pe)

    def _new_pe(self, timing: NodeTiming, at: int, point: tuple[int, ...]) -> PlainPE:
        node, cycles, program = timing.node, timing.interval.cycles, self.program
        number = timing.first + at
        if not isinstance(node, Machine):
            firings = iterations(node, point, program.parameters)
            return PlainPE(number, node, cycles, firings, new_registers(node))
        state = MachineState(program.graph, node, point, program.parameters)
        return MachinePE(
            number,
            node,
            cycles,
            iter(()),
            state.registers,
            current={},
            state=state,
            memory=self.memory or {},
            inputs={name: self.fifos[use] for name, use in state.inputs.items()},
            outputs={name: self.fifos[use] for name, use in state.outputs.items()},
        )

    def _next(self, pe: PlainPE) -> None:
        """Fetch the PE's next firing."""
        if isinstance(pe, MachinePE):
            pe.decision = None
            pe.sends, pe.moved_bytes, pe.stores = [], 0, False
            if pe.state.ended:
                pe.current = None
                return
            return
        assert isinstance(pe.node, PEArray)
        pe.current = next(pe.environments, None)
        if pe.current is None:
            return
        receives, sends = port_uses(self.program.graph, pe.node, pe.current)
        pe.receives = [(use, self.fifos[use]) for use in receives]
        pe.sends = [(use, self.fifos[use]) for use in sends]
        pe.moved_bytes, pe.stores = 0, False
        for statement in pe.node.body:
            match statement:
                case Load(type=type, condition=condition) if holds(condition, pe.current):
                    pe.moved_bytes += type.bytes
                case Store(value=value, condition=condition) if holds(condition, pe.current):
                    pe.moved_bytes += value.type.bytes
                    pe.stores = True

    def to_the_end(self, limits: Limits) -> Ending:
        """Run until every PE has ended, none can ever fire, or the limit is reached."""
        try:
            while any(pe.current is not None for pe in self.pes):
                if all(pe.current is None or pe.unknown() for pe in self.pes):
                    self._settle()
                    return ending_of(self.program, self._stuck())
                if limits.max_cycles is not None and self.cycle >= limits.max_cycles:
                    return Ending.LIMIT
                self._step()
        except KeyboardInterrupt:
            return Ending.INTERRUPTED
        self._settle()
        return Ending.FINISHED

    def _step(self) -> None:
        """One cycle."""
        if self.memories is not None and self.cycle:
            self.memories.advance(self.cycle)
        self.cycle += 1
        if self.credit is not None and self.rate is not None:
            self.credit = min(self.rate, self.credit + self.rate) if self.cycle > 1 else self.rate
        firing = self._firing()
        for pe in self.pes:
            if id(pe) in firing and pe.current is not None:
                self._fire(pe, pe.current)
            else:
                pe.count_stall(self.cycle)
        if self.observer is not None and self.cycle % _OBSERVED_EVERY == 0:
            self.observer.advanced(
                cycle=self.cycle,
                done=sum(pe.firings for pe in self.pes),
                total=self.program.total_firings,
            )

    def _firing(self) -> frozenset[int]:
        """The identities of the PEs that fire in this cycle.

        A PE whose firing moves bytes joins a queue in the first cycle in which all else allows the
        firing, stalls included; memory serves the queue in order as long as there is credit.
        """
        firing: set[int] = set()
        for pe in self.pes:
            if pe.current is None or pe.queued or not pe.allowed(self.cycle):
                continue
            if self.memories is not None and self.memories.free(pe.number) > self.cycle:
                continue
            if self._stalled(pe):
                continue
            if self.credit is None or not pe.moved_bytes:
                firing.add(id(pe))
            else:
                pe.queued = True
                self.queue.append(pe)
        while self.queue and self.credit is not None and self.credit > 0:
            pe = self.queue.popleft()
            pe.queued = False
            self.credit -= pe.moved_bytes
            firing.add(id(pe))
        return frozenset(firing)

    def _stalled(self, pe: PlainPE) -> bool:
        """Whether a stall of its unit holds the PE in this cycle."""
        stalls = self.program.stalls
        if stalls is None or not self.program.accesses_memory[pe.number]:
            return False
        return stalls.holds(pe.number, self.cycle)

    def _fire(self, pe: PlainPE, environment: Environment) -> None:
        now = self.cycle
        tokens: dict[str, Array] = {}
        takes = None
        if isinstance(pe, MachinePE) and pe.decision is not None:
            takes = pe.decision.path.rule.takes
        for use, fifo in pe.receives:
            if takes is None or use.channel in takes:
                _, tokens[use.channel] = fifo.tokens.popleft()
                fifo.received_at.append(now)
        sent: Mapping[str, Array] = {}
        if isinstance(pe, MachinePE) and pe.decision is not None:
            pe.codes.append(pe.decision.code)
            sent = pe.state.fire(pe.decision, pe.memory)
        elif self.memory is not None and isinstance(pe.node, PEArray):
            sent = fire(pe.node, environment, tokens, pe.registers, self.memory)
        if self.told is not None:
            self.told(pe.number, now, tokens, sent)
        leaving = self._leaving(pe, now)
        for use, fifo in pe.sends:
            fifo.tokens.append((leaving + fifo.latency, sent.get(use.channel)))
        pe.first = pe.first or now
        pe.last = now
        pe.firings += 1
        self._next(pe)

    def _leaving(self, pe: PlainPE, now: int) -> int:
        """Send the memory requests of a firing; return when its tokens leave."""
        memories = self.memories
        if pe.stores and (memories is None or not memories.is_unit(pe.number)):
            self.last_store = now
        if memories is None:
            return now
        return memories.ask(pe.number, now, [fifo.settle for _, fifo in pe.sends])

    def _settle(self) -> None:
        """Advance to the completion of the last store; nothing fires any more."""
        last = max((pe.last for pe in self.pes), default=0)
        stored = 0
        if self.memories is not None:
            self.memories.flush(self.cycle, last)
            self.last_store = max(self.last_store, self.memories.last_written)
            stored = self.memories.last_stored
        end = end_of_run(self.program, last, self.last_store, stored)
        while self.cycle < end:
            self.cycle += 1
            for pe in self.pes:
                pe.count_stall(self.cycle)

    def outputs(self) -> dict[str, Array]:
        """The output tensors; empty if there were no inputs."""
        if self.memory is None:
            return {}
        return outputs_of(self.program.graph, self.memory)

    def traced(self) -> SimProgram:
        """The program with the codes that its machines have fired."""
        machines = {n: pe for n, pe in enumerate(self.pes) if isinstance(pe, MachinePE)}
        if not machines:
            return self.program
        codes = {instance: pe.codes for instance, pe in machines.items()}
        unfinished = {instance: pe.current is not None for instance, pe in machines.items()}
        return with_traces(self.program, codes, unfinished)

    def _stuck(self) -> tuple[Stuck, ...]:
        """PEs that wait for tokens or slots that nothing will provide."""
        stuck: list[Stuck] = []
        for instance, pe in enumerate(self.pes):
            port = pe.unknown() if pe.current is not None else None
            if port is not None:
                stuck.append(Stuck(instance=instance, element=port[0].position, sending=port[1]))
        return tuple(stuck)

    def tally(self, ending: Ending) -> Tally:
        """The counters as arrays."""
        fifos = list(self.fifos.values())
        memory = np.array([pe.memory_stalls for pe in self.pes], np.int64)
        counts = self.memories.counts() if self.memories is not None else (None, None)
        return Tally(
            ending=ending,
            cycles=self.cycle,
            firings=np.array([pe.firings for pe in self.pes], np.int64),
            first=np.array([pe.first for pe in self.pes], np.int64),
            last=np.array([pe.last for pe in self.pes], np.int64),
            waiting=np.array([pe.waiting for pe in self.pes], np.int64),
            starved=np.array([fifo.starved for fifo in fifos], np.int64),
            blocked=np.array([fifo.blocked for fifo in fifos], np.int64),
            memory_starved=np.where(self.program.loads, memory, 0),
            memory_blocked=np.where(self.program.loads, 0, memory),
            left=np.array([len(fifo.tokens) for fifo in fifos], np.int64),
            stuck=self._stuck(),
            memory=counts[0],
            shared=counts[1],
        )


# The state of channel elements, PEs and machines.


@dataclass(slots=True)
class Fifo:
    """A channel element: tokens with the cycle they are ready, and when each was received.

    Tokens that have not left the sender are ready at ``UNKNOWN`` or later.
    """

    position: int
    latency: int
    capacity: int
    tokens: deque[tuple[int, Array]] = field(default_factory=deque)
    received_at: list[int] = field(default_factory=list)
    starved: int = 0
    blocked: int = 0

    def ready(self) -> int | None:
        """The cycle at which the next token is ready; ``None`` if it has not been sent."""
        return self.tokens[0][0] if self.tokens else None

    def space(self) -> int | None:
        """The cycle from which the next token may be sent; ``None`` if that is not known yet."""
        freeing = len(self.received_at) + len(self.tokens) - self.capacity
        if freeing < 0:
            return 1
        return self.received_at[freeing] + 1 if freeing < len(self.received_at) else None

    def settle(self, leaving: int) -> None:
        """Set the departure time of the first token for which it was unknown."""
        at = next(n for n, (ready, _) in enumerate(self.tokens) if ready >= UNKNOWN)
        self.tokens[at] = leaving + self.latency, self.tokens[at][1]


@dataclass(slots=True)
class PlainPE:
    """A PE, its next firing, and its counters.

    ``queued`` says that it waits for memory.
    """

    number: int
    node: Node
    interval: int
    environments: Iterator[Environment]
    registers: dict[str, Array]
    current: Environment | None = None
    receives: list[tuple[PortUse, Fifo]] = field(default_factory=list)
    sends: list[tuple[PortUse, Fifo]] = field(default_factory=list)
    moved_bytes: int = 0
    stores: bool = False
    firings: int = 0
    first: int = 0
    last: int = 0
    waiting: int = 0
    memory_stalls: int = 0
    queued: bool = False

    def look(self) -> None:
        """Determine the needs of the next firing, as far as the available tokens tell."""

    def unknown(self) -> tuple[Fifo, bool] | None:
        """The first port, and whether it sends, whose time is not determined yet."""
        self.look()
        for _, fifo in self.receives:
            if fifo.ready() is None:
                return fifo, False
        for _, fifo in self.sends:
            if fifo.space() is None:
                return fifo, True
        return None

    def allowed(self, now: int) -> bool:
        """Whether the interval and the channels allow the next firing in this cycle."""
        self.look()
        if self.firings and now < self.last + self.interval:
            return False
        ready = all(_reached(fifo.ready(), now) for _, fifo in self.receives)
        return ready and all(_reached(fifo.space(), now) for _, fifo in self.sends)

    def count_stall(self, now: int) -> None:
        """Attribute a cycle without a firing."""
        if self.current is None or self.firings == 0:
            return
        if now < self.last + self.interval:
            self.waiting += 1
            return
        for _, fifo in self.receives:
            if not _reached(fifo.ready(), now):
                fifo.starved += 1
                return
        for _, fifo in self.sends:
            if not _reached(fifo.space(), now):
                fifo.blocked += 1
                return
        self.memory_stalls += 1


@dataclass(slots=True)
class MachinePE(PlainPE):
    """A machine: the needs of its next firing depend on the tokens at its inputs."""

    state: MachineState = field(kw_only=True)
    memory: dict[str, Array] = field(kw_only=True)
    inputs: dict[str, Fifo] = field(kw_only=True)
    outputs: dict[str, Fifo] = field(kw_only=True)
    decision: Decision | None = None
    codes: list[int] = field(default_factory=list)

    def look(self) -> None:
        """Decide on the rule once all needed heads have been sent (ready or not)."""
        if self.decision is not None or self.state.ended:
            return
        heads = {name: fifo.tokens[0][1] for name, fifo in self.inputs.items() if fifo.tokens}
        decision = self.state.decide(heads, self.memory)
        if isinstance(decision, Decision):
            self.decision = decision
            path = decision.path
            self._needs(path.needs)
            outputs = [put.channel for put in path.rule.puts]
            self.sends = [(self.state.outputs[name], self.outputs[name]) for name in outputs]
            loaded, stored = path_bytes(self.state.graph, path)
            self.moved_bytes, self.stores = loaded + stored, bool(stored)
        else:
            self._needs(decision)

    def _needs(self, names: tuple[str, ...]) -> None:
        self.receives = [(self.state.inputs[name], self.inputs[name]) for name in names]


def _reached(time: int | None, now: int) -> bool:
    return time is not None and time <= now
