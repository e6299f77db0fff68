"""The reference engine: cycle by cycle, straight from the time rule, values and times together.

It is the oracle of the other engines, so it uses nothing that they use to be fast: it asks
``graph.semantics`` what a firing does with its ports, fires the body itself, and looks at every PE
in every cycle to say what the PE does in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from t2s.core.errors import InternalError
from t2s.core.expr import evaluate
from t2s.core.ops import Array
from t2s.graph.analysis import path_bytes
from t2s.graph.arrays import outputs_of
from t2s.graph.body import Load, Store
from t2s.graph.graph import MemorySpace
from t2s.graph.interpret import Recording, allocate, record_graph
from t2s.graph.nodes import Machine, Node, PEArray
from t2s.graph.semantics import (
    Decision,
    Environment,
    MachineState,
    PortUse,
    element_of,
    fire,
    holds,
    iterations,
    new_registers,
    port_uses,
    space_points,
)
from t2s.simulator.limits import Limits, Observer
from t2s.simulator.memory.banked import (
    UNKNOWN,
    Banked,
    BankedFirings,
    BankedModel,
    BankedPort,
    bases_in_banks,
)
from t2s.simulator.memory.machine_accesses import (
    AddressedGraph,
    RuleAccesses,
    ports_of,
    with_addresses,
)
from t2s.simulator.memory.machine_port import MachineFirings, MachinePort, plans_of
from t2s.simulator.memory.model import DramModel
from t2s.simulator.memory.port import (
    Lines,
    UnitPort,
    accessed_bytes,
    bases_of,
    later,
    too_long,
    uses_memory,
)
from t2s.simulator.memory.report import MemoryCounts, SharedCounts
from t2s.simulator.program.sim_program import NodeTiming, SimProgram, with_traces
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


# What the plain engine keeps of every channel element, PE and machine.


@dataclass(slots=True)
class Fifo:
    """One channel element: tokens with the cycle they are ready, and when each was received.

    That cycle is ``UNKNOWN``, or behind it, of tokens that have not left the sender.
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
        """Say when the first token leaves of which that was unknown."""
        at = next(n for n, (ready, _) in enumerate(self.tokens) if ready >= UNKNOWN)
        self.tokens[at] = leaving + self.latency, self.tokens[at][1]


@dataclass(slots=True)
class PlainPE:
    """A PE, its next firing, and its counters.

    ``queued`` says that it waits for memory; it has a ``port`` if it is a unit of a DRAM, and
    ``banks`` if it uses shared banks.
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
    port: UnitPort | None = None
    banks: BankedPort | None = None

    def look(self) -> None:
        """Find out what the next firing needs, as far as the tokens that are there tell."""

    def unknown(self) -> tuple[Fifo, bool] | None:
        """The first port, and whether it sends, that waits for what has not been brought about."""
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
    """A machine: what its next firing needs is known when the tokens are that it depends on."""

    state: MachineState = field(kw_only=True)
    memory: dict[str, Array] = field(kw_only=True)
    inputs: dict[str, Fifo] = field(kw_only=True)
    outputs: dict[str, Fifo] = field(kw_only=True)
    decision: Decision | None = None
    codes: list[int] = field(default_factory=list)

    def look(self) -> None:
        """Take the decision, once all heads that it needs have been sent (ready or not)."""
        if self.decision is not None or self.state.ended:
            return
        heads = {name: fifo.tokens[0][1] for name, fifo in self.inputs.items() if fifo.tokens}
        found = self.state.decide(heads, self.memory)
        if isinstance(found, Decision):
            self.decision = found
            path = found.path
            self._needs(path.needs)
            outputs = [put.channel for put in path.rule.puts]
            self.sends = [(self.state.outputs[name], self.outputs[name]) for name in outputs]
            loaded, stored = path_bytes(self.state.graph, path)
            self.moved_bytes, self.stores = loaded + stored, bool(stored)
        else:
            self._needs(found)

    def _needs(self, names: tuple[str, ...]) -> None:
        self.receives = [(self.state.inputs[name], self.inputs[name]) for name in names]


def _reached(time: int | None, now: int) -> bool:
    return time is not None and time <= now


# The machines that share the banks of a device, and the banks, for the plain engine.


class PlainBanks:
    """The banks of a program and the machines in front of them."""

    def __init__(self, program: SimProgram, banked: Banked, recorded: RecordedMachines) -> None:
        self.model = BankedModel(banked, now=1)
        self.ports: dict[int, BankedPort] = {}
        bases = bases_in_banks(program.graph, banked)
        for timing in program.nodes:
            if not isinstance(timing.node, Machine):
                continue
            for place, machine in enumerate(recorded.machines(timing.node)):
                rules = [rule.at(MemorySpace.SHARED) for rule in machine.rules]
                if not any(rule.accesses for rule in rules):
                    continue
                firings = BankedFirings(
                    graph=program.graph,
                    banked=banked,
                    bases=bases,
                    rules=rules,
                    codes=machine.codes,
                    addresses=machine.addresses,
                )
                self.ports[timing.first + place] = BankedPort(
                    banked=banked,
                    model=self.model,
                    number=len(self.ports) % banked.ports,
                    plans=firings.plans(),
                )

    def port_of(self, instance: int) -> BankedPort | None:
        """The port of a machine that uses the banks."""
        return self.ports.get(instance)

    def advance(self) -> None:
        """One cycle, after all firings in it."""
        self.model.step()
        for port in self.ports.values():
            port.advance()

    def flush(self) -> int:
        """Go on until all words are served; the cycle of the last one that is stored."""
        while self.model.under_way:
            self.advance()
        return max((port.stored for port in self.ports.values()), default=0)

    def tally(self) -> SharedCounts:
        """What was measured."""
        return SharedCounts(
            banks=self.model.counts,
            machines={instance: port.counts for instance, port in self.ports.items()},
        )


# The units of a program and the memory that they share, for the plain engine.


class Ports:
    """The units of a program and their memory."""

    def __init__(self, program: SimProgram, recorded: RecordedMachines) -> None:
        dram = program.device.memory
        assert dram is not None
        self.program, self.dram = program, dram
        self.ratio = dram.clock_hz / program.device.clock_hz
        self.model = DramModel(dram)
        self.bases, self.room = bases_of(program.graph, dram)
        self.ports: dict[int, UnitPort] = {}
        for timing in program.nodes:
            if isinstance(timing.node, Machine):
                self._add_machines(timing, timing.node, recorded)
            elif uses_memory(timing.node):
                self._add_pes(timing, timing.node)

    def port_of(self, instance: int) -> UnitPort | None:
        """The port of a PE that is a unit."""
        return self.ports.get(instance)

    def _add_pes(self, timing: NodeTiming, node: PEArray) -> None:
        for instance, point in enumerate(space_points(node), timing.first):
            firings = int(self.program.control.firings[instance])
            if not firings:
                continue
            self.ports[instance] = UnitPort(
                dram=self.dram,
                ratio=self.ratio,
                model=self.model,
                firings=firings,
                statements=self._lines(node, point),
            )

    def _add_machines(self, timing: NodeTiming, node: Machine, recorded: RecordedMachines) -> None:
        streamed = frozenset(t.name for t in self.program.graph.tensors if t.streamed)
        in_parts = frozenset(t.name for t in self.program.graph.tensors if t.in_parts)
        for place, found in enumerate(recorded.machines(node)):
            rules = [rule.at(MemorySpace.MEMORY) for rule in found.rules]
            if not any(rule.accesses for rule in rules):
                continue
            machine = MachineFirings(
                rules=rules,
                ports=ports_of(rules),
                bases=self.bases,
                codes=found.codes,
                ended=found.ended,
                addresses=found.addresses,
                streamed=streamed,
                in_parts=in_parts,
            )
            self._check(machine)
            self.ports[timing.first + place] = MachinePort(
                dram=self.dram,
                ratio=self.ratio,
                model=self.model,
                firings=len(machine.codes),
                statements=[],
                plans=plans_of(machine, self.dram),
            )

    def _check(self, machine: MachineFirings) -> None:
        """Open tensors are no longer than there is room."""
        streams = [iter(stream) for stream in machine.addresses]
        for code in machine.codes:
            for access in machine.rules[code].accesses:
                address = int(np.max(next(streams[access.channel])))
                is_open = self.program.graph.tensor(access.tensor).open
                if is_open and address + access.bytes > self.room:
                    raise too_long(self.program.graph, access.tensor, self.dram, self.room)

    def _lines(self, node: PEArray, point: tuple[int, ...]) -> list[Lines]:
        """The lines that each memory statement of a PE begins in the run."""
        statements = [item for item in node.body if isinstance(item, Load | Store)]
        found = [Lines(isinstance(statement, Store)) for statement in statements]
        for firing, environment in enumerate(iterations(node, point, self.program.parameters)):
            for statement, lines in zip(statements, found, strict=True):
                if holds(statement.condition, environment):
                    address = self._address(statement, environment)
                    lines.add(firing, address, accessed_bytes(statement), self.dram.line_bytes)
        return found

    def _address(self, statement: Load | Store, environment: Environment) -> int:
        tensor = self.program.graph.tensor(statement.tensor)
        index = tuple(int(evaluate(item, environment)) for item in statement.indices)
        flat = int(np.ravel_multi_index(index, tensor.allocated)) if index else 0
        return self.bases[statement.tensor] + flat * tensor.type.bytes

    def flush(self, last: int) -> int:
        """Write what is changed or waits after the last firing of all; when all is written."""
        end = self.model.flush(later(last, self.ratio))
        return later(end, 1 / self.ratio) + self.dram.units.path_cycles if end else 0

    def tally(self) -> MemoryCounts:
        """What was measured."""
        return MemoryCounts(
            channels=tuple(channel.counts for channel in self.model.channels),
            units={instance: port.counts for instance, port in self.ports.items()},
        )


# What the machines of a program do with memories, recorded for the plain engine before the run.


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedMachine:
    """One machine: its rules, the codes of its firings, whether they are all, and addresses."""

    rules: tuple[RuleAccesses, ...]
    codes: list[int]
    ended: bool
    addresses: list[list[Array]]


class RecordedMachines:
    """A run as far as the tokens of a program allow, with the addresses of its machines."""

    def __init__(self, program: SimProgram, limits: Limits) -> None:
        self.addressed: AddressedGraph = with_addresses(program.graph, program.timed_places)
        self._recording: Recording | None = None
        if not self.addressed.channels:
            return
        if program.inputs is None:
            raise InternalError("the plain engine needs the inputs of machines with a memory")
        most = None if limits.max_cycles is None else limits.max_cycles + 1
        self._recording = record_graph(
            self.addressed.graph, program.inputs, program.parameters, most_firings=most
        )

    def machines(self, node: Machine) -> list[RecordedMachine]:
        """The machines of a node by place; none if they access no such memory."""
        channels = self.addressed.channels.get(node.name)
        if channels is None or self._recording is None:
            return []
        found: list[RecordedMachine] = []
        for place, point in enumerate(space_points(node)):
            here = {d.name: np.int32(at) for d, at in zip(node.space, point, strict=True)}
            graph = self.addressed.graph
            uses = [PortUse(c, element_of(graph.channel(c).source_index, here)) for c in channels]
            found.append(
                RecordedMachine(
                    rules=self.addressed.rules[node.name],
                    codes=self._recording.codes[node.name, place],
                    ended=(node.name, place) in self._recording.ended,
                    addresses=[self._recording.tokens.get(use, []) for use in uses],
                )
            )
        return found
