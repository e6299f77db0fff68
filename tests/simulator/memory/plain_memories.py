"""The memories of a program by the plain models: what ``ReferenceMemories`` is checked against."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from t2s.core.expr import evaluate
from t2s.core.ops import Array
from t2s.graph.body import Load, Store
from t2s.graph.graph import MemorySpace
from t2s.graph.nodes import Machine, PEArray
from t2s.graph.semantics import Environment, holds, iterations, space_points
from t2s.simulator import reference_engine
from t2s.simulator.limits import Limits
from t2s.simulator.memory.machine_accesses import RuleAccesses, ports_of, with_addresses
from t2s.simulator.memory.places import bases_in_banks, bases_of, too_long
from t2s.simulator.memory.report import MemoryCounts, SharedCounts
from t2s.simulator.memory.requests import accessed_bytes, uses_memory
from t2s.simulator.memory.spec import Banked, Dram
from t2s.simulator.program.sim_program import NodeTiming, SimProgram
from t2s.simulator.reference_memories import recorded_program
from tests.simulator.memory.plain_banks import BankedFirings, BankedModel, BankedPort
from tests.simulator.memory.plain_dram import DramModel
from tests.simulator.memory.plain_units import (
    Lines,
    MachineFirings,
    MachinePort,
    UnitPort,
    later,
    plans_of,
)


def plain_memories(program: SimProgram, limits: Limits) -> PlainMemories | None:
    """In place of ``t2s.simulator.reference_engine.memories_of``."""
    return PlainMemories(program, limits) if program.timed_places else None


Rules = Mapping[str, Sequence[RuleAccesses]]


def codes_of(program: SimProgram, instance: int) -> list[int]:
    """The codes of the firings of a machine."""
    assert program.trace is not None
    return [int(code) for code in program.trace.codes[instance].expanded]


def addresses_of(program: SimProgram, instance: int) -> list[list[Array]]:
    """The tokens of the channels of addresses of a machine."""
    assert program.trace is not None
    return [list(channel[: len(channel)]) for channel in program.trace.addresses[instance]]


@contextmanager
def independent_memories() -> Iterator[None]:
    """The reference engine has plain memories meanwhile: engines share no model of them."""
    before = reference_engine.memories_of
    vars(reference_engine)["memories_of"] = plain_memories
    try:
        yield
    finally:
        vars(reference_engine)["memories_of"] = before


class PlainMemories:
    """The units and sharers of a program and their memories."""

    def __init__(self, program: SimProgram, limits: Limits) -> None:
        self.program = recorded_program(program, limits)
        self.rules = with_addresses(program.graph, program.timed_places).rules
        self.last_written = self.last_stored = 0
        dram, banked = program.device.memory, self.program.banked
        self.ports = _Ports(self.program, dram, self.rules) if dram is not None else None
        self.banks = _Banks(self.program, banked, self.rules) if banked is not None else None
        self.fired = [0] * program.pe_count
        for pe in range(program.pe_count):
            self._prepare(pe)

    def _prepare(self, pe: int) -> None:
        for port in (self._port(pe), self._bank(pe)):
            if port is not None:
                port.prepare(self.fired[pe])

    def _port(self, pe: int) -> UnitPort | None:
        return self.ports.ports.get(pe) if self.ports is not None else None

    def _bank(self, pe: int) -> BankedPort | None:
        return self.banks.ports.get(pe) if self.banks is not None else None

    def is_unit(self, pe: int) -> bool:
        return self._port(pe) is not None

    def free(self, pe: int) -> int:
        ports = (self._port(pe), self._bank(pe))
        return max((port.free() for port in ports if port is not None), default=0)

    def ask(self, pe: int, now: int, settle: Sequence[Callable[[int], None]]) -> int:
        leaving = now
        port, bank = self._port(pe), self._bank(pe)
        if port is not None:
            leaving = port.ask(now)
            self.last_written = max(self.last_written, port.written)
        if bank is not None:
            waits = port.waits if isinstance(port, MachinePort) else {}
            deciding = port.deciding if isinstance(port, MachinePort) else {}
            leaving = bank.ask(now, waits, deciding, settle)
        self.fired[pe] += 1
        self._prepare(pe)
        return leaving

    def advance(self, now: int) -> None:
        if self.banks is not None:
            assert self.banks.model.now == now
            self.banks.advance()

    def flush(self, now: int, last: int) -> None:
        if self.ports is not None:
            self.last_written = max(self.last_written, self.ports.flush(last))
        if self.banks is not None:
            self.last_stored = self.banks.flush()

    def counts(self) -> tuple[MemoryCounts | None, SharedCounts | None]:
        return (
            self.ports.tally() if self.ports is not None else None,
            self.banks.tally() if self.banks is not None else None,
        )


class _Banks:
    """The banks of a program and the machines in front of them."""

    def __init__(self, program: SimProgram, banked: Banked, rules: Rules) -> None:
        self.model = BankedModel(banked, now=1)
        self.ports: dict[int, BankedPort] = {}
        bases = bases_in_banks(program.graph, banked)
        for timing in program.nodes:
            shared = [rule.at(MemorySpace.SHARED) for rule in rules.get(timing.node.name, ())]
            if not any(rule.accesses for rule in shared):
                continue
            for instance in range(timing.first, timing.first + timing.pe_count):
                firings = BankedFirings(
                    graph=program.graph,
                    banked=banked,
                    bases=bases,
                    rules=shared,
                    codes=codes_of(program, instance),
                    addresses=addresses_of(program, instance),
                )
                self.ports[instance] = BankedPort(
                    banked=banked,
                    model=self.model,
                    number=len(self.ports) % banked.ports,
                    plans=firings.plans(),
                )

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


class _Ports:
    """The units of a program and their memory."""

    def __init__(self, program: SimProgram, dram: Dram, rules: Rules) -> None:
        self.program, self.dram = program, dram
        self.ratio = dram.clock_hz / program.device.clock_hz
        self.model = DramModel(dram)
        self.bases, self.room = bases_of(program.graph, dram)
        self.ports: dict[int, UnitPort] = {}
        for timing in program.nodes:
            if isinstance(timing.node, Machine):
                self._add_machines(timing, rules.get(timing.node.name, ()))
            elif uses_memory(timing.node):
                self._add_pes(timing, timing.node)

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

    def _add_machines(self, timing: NodeTiming, all_rules: Sequence[RuleAccesses]) -> None:
        streamed = frozenset(t.name for t in self.program.graph.tensors if t.streamed)
        in_parts = frozenset(t.name for t in self.program.graph.tensors if t.in_parts)
        rules = [rule.at(MemorySpace.MEMORY) for rule in all_rules]
        if not any(rule.accesses for rule in rules):
            return
        assert self.program.trace is not None
        for instance in range(timing.first, timing.first + timing.pe_count):
            machine = MachineFirings(
                rules=rules,
                ports=ports_of(rules),
                bases=self.bases,
                codes=codes_of(self.program, instance),
                ended=instance not in self.program.trace.unfinished,
                addresses=addresses_of(self.program, instance),
                streamed=streamed,
                in_parts=in_parts,
            )
            self._check(machine)
            self.ports[instance] = MachinePort(
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
