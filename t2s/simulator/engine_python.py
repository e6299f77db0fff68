"""The plain engine: cycle by cycle, straight from the time rule, values and times together.

It is the oracle of the other engines, so it uses nothing that they use to be fast: it asks
``graph.semantics`` what a firing does with its ports, fires the body itself, and looks at every PE
in every cycle to say what the PE does in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from t2s.core.ops import Array
from t2s.graph.body import Load, Store
from t2s.graph.interpret import allocate
from t2s.graph.layout import outputs_of
from t2s.graph.machine_semantics import MachineState
from t2s.graph.nodes import Machine, PEArray
from t2s.graph.semantics import (
    Environment,
    PortUse,
    fire,
    holds,
    iterations,
    new_registers,
    port_uses,
    space_points,
)
from t2s.simulator.limits import Limits, Observer
from t2s.simulator.memory.machine_port import MachinePort
from t2s.simulator.memory.plain_banks import PlainBanks
from t2s.simulator.memory.plain_units import Ports
from t2s.simulator.memory.recorded import RecordedMachines
from t2s.simulator.plain_pes import Fifo, MachinePE, PlainPE
from t2s.simulator.program.sim_program import NodeTiming, SimProgram, with_traces
from t2s.simulator.report.assemble import assemble
from t2s.simulator.report.result import SimResult
from t2s.simulator.report.tally import Ending, Stuck, Tally, end_of_run, ending_of

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
            # what machines do is known as far as they came: another run computes it again
            return result if traced is program else replace(result, program=program)


Told = Callable[[int, int, Mapping[str, Array], Mapping[str, Array]], None]
"""Is told of a firing: the PE, the cycle, the tokens taken and the values sent, by channel."""


def watch_firings(program: SimProgram, until: int, told: Told) -> None:
    """Run a program with its inputs to the end of a cycle, and tell of every firing."""
    limits = Limits(max_cycles=until)
    with np.errstate(all="ignore"):
        run = _Run(program, limits, None)
        run.told = told
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
        self._add_memories(limits)
        for pe in self.pes:
            self._next(pe)

    def _add_memories(self, limits: Limits) -> None:
        """Memories in which the time of an access depends on where it is."""
        program, banked = self.program, self.program.banked
        self.ports: Ports | None = None
        self.banks: PlainBanks | None = None
        if not program.timed_places:
            return
        recorded = RecordedMachines(program, limits)
        if program.memory_depends_on_addresses:
            self.ports = Ports(program, recorded)
        if banked is not None:
            self.banks = PlainBanks(program, banked, recorded)
        for instance, pe in enumerate(self.pes):
            pe.port = self.ports.port_of(instance) if self.ports is not None else None
            pe.banks = self.banks.port_of(instance) if self.banks is not None else None

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
            for port in (pe.port, pe.banks):
                if port is not None:
                    port.prepare(pe.firings)
            return
        assert isinstance(pe.node, PEArray)
        pe.current = next(pe.environments, None)
        if pe.current is None:
            return
        receives, sends = port_uses(self.program.graph, pe.node, pe.current)
        pe.receives = [(use, self.fifos[use]) for use in receives]
        pe.sends = [(use, self.fifos[use]) for use in sends]
        pe.moved_bytes, pe.stores = 0, False
        if pe.port is not None:
            pe.port.prepare(pe.firings)
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
        if self.banks is not None and self.cycle:
            self.banks.advance()
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
            if any(port and port.free() > self.cycle for port in (pe.port, pe.banks)):
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
        """Ask memories for what the firing needs; when its tokens leave."""
        leaving = now
        if pe.port is not None:
            leaving = pe.port.ask(now)
            self.last_store = max(self.last_store, pe.port.written)
        elif pe.stores:
            self.last_store = now
        if pe.banks is None:
            return leaving
        port = pe.port if isinstance(pe.port, MachinePort) else None
        waits, deciding = (port.waits, port.deciding) if port is not None else ({}, {})
        return pe.banks.ask(now, waits, deciding, [fifo.settle for _, fifo in pe.sends])

    def _settle(self) -> None:
        """Let the cycles pass until the last store is complete; nothing fires in them."""
        last = max((pe.last for pe in self.pes), default=0)
        if self.ports is not None:
            self.last_store = max(self.last_store, self.ports.flush(last))
        stored = self.banks.flush() if self.banks is not None else 0
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
        """PEs that wait for what no firing on the way will bring."""
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
            memory=self.ports.tally() if self.ports is not None else None,
            shared=self.banks.tally() if self.banks is not None else None,
        )
