"""The units of a program and the memory that they share, for the plain engine."""

from __future__ import annotations

import numpy as np

from t2s.core.expr import evaluate
from t2s.graph.body import Load, Store
from t2s.graph.graph import Place
from t2s.graph.nodes import Machine, PEArray
from t2s.graph.semantics import (
    Environment,
    holds,
    iterations,
    space_points,
)
from t2s.simulator.memory.machine_accesses import ports_of
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
from t2s.simulator.memory.recorded import RecordedMachines
from t2s.simulator.memory.report import MemoryCounts
from t2s.simulator.program.sim_program import NodeTiming, SimProgram


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
            rules = [rule.at(Place.MEMORY) for rule in found.rules]
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
