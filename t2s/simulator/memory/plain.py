"""The units of a program with a DRAM, one firing at a time: for the plain engine."""

from __future__ import annotations

import numpy as np

from t2s.core.expr import evaluate
from t2s.graph.body import Load, Store
from t2s.graph.nodes import Machine, PEArray
from t2s.graph.semantics import Environment, holds, iterations, space_points
from t2s.simulator.memory.model import DramModel
from t2s.simulator.memory.port import Lines, Port, accessed_bytes, addresses_of, uses_memory
from t2s.simulator.memory.report import MemoryCounts
from t2s.simulator.program.sim_program import SimProgram


class Ports:
    """The units of a program and the memory that they share."""

    def __init__(self, program: SimProgram) -> None:
        dram = program.device.memory
        assert dram is not None
        self.program = program
        self.model = DramModel(dram)
        self.bases, _ = addresses_of(program.graph)
        ratio = dram.clock_hz / program.device.clock_hz
        self.ports: dict[int, Port] = {}
        for timing in program.nodes:
            node = timing.node
            if isinstance(node, Machine) or not uses_memory(node):
                continue
            for instance, point in enumerate(space_points(node), timing.first):
                firings = int(program.control.firings[instance])
                statements = self._lines(node, point, dram.line_bytes)
                self.ports[instance] = Port(dram, ratio, self.model, firings, statements)

    def port_of(self, instance: int) -> Port | None:
        """The port of a PE that is a unit."""
        return self.ports.get(instance)

    def _lines(self, node: PEArray, point: tuple[int, ...], line_bytes: int) -> list[Lines]:
        """The lines that each memory statement of a PE begins in the run."""
        statements = [item for item in node.body if isinstance(item, Load | Store)]
        found = [Lines(isinstance(statement, Store)) for statement in statements]
        for firing, environment in enumerate(iterations(node, point, self.program.parameters)):
            for statement, lines in zip(statements, found, strict=True):
                if holds(statement.condition, environment):
                    address = self._address(statement, environment)
                    lines.add(firing, address, accessed_bytes(statement), line_bytes)
        return found

    def _address(self, statement: Load | Store, environment: Environment) -> int:
        tensor = self.program.graph.tensor(statement.tensor)
        index = tuple(int(evaluate(item, environment)) for item in statement.indices)
        flat = int(np.ravel_multi_index(index, tensor.allocated)) if index else 0
        return self.bases[statement.tensor] + flat * tensor.type.bytes

    def tally(self) -> MemoryCounts:
        """What was measured."""
        return MemoryCounts(
            channels=tuple(channel.counts for channel in self.model.channels),
            units={instance: port.counts for instance, port in self.ports.items()},
        )
