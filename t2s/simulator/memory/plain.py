"""The units of a program with a DRAM, one firing at a time: for the plain engine."""

from __future__ import annotations

import numpy as np

from t2s.core.expr import evaluate
from t2s.graph.body import Load, Store
from t2s.graph.nodes import PEArray
from t2s.graph.semantics import Environment, holds
from t2s.simulator.memory.model import DramModel
from t2s.simulator.memory.port import Access, Port, accessed_bytes, addresses_of
from t2s.simulator.memory.report import MemoryCounts
from t2s.simulator.program import SimProgram


class Ports:
    """The units of a program and the memory that they share."""

    def __init__(self, program: SimProgram) -> None:
        dram = program.device.memory
        assert dram is not None
        self.program = program
        self.model = DramModel(dram)
        self.bases, _ = addresses_of(program.graph)
        ratio = dram.clock_hz / program.device.clock_hz
        self.ports = {
            instance: Port(dram, ratio, self.model)
            for timing in program.nodes
            if any(isinstance(statement, Load | Store) for statement in timing.node.body)
            for instance in range(timing.first, timing.instances.stop)
            if program.control.firings[instance]
        }
        self.last = {
            id(port): int(program.control.firings[instance]) - 1
            for instance, port in self.ports.items()
        }

    def port_of(self, instance: int) -> Port | None:
        """The port of a PE that is a unit."""
        return self.ports.get(instance)

    def prepare(self, port: Port, node: PEArray, environment: Environment, firing: int) -> None:
        """Tell a port of the PE's next firing, number ``firing`` from 0."""
        accesses = [
            Access(
                statement=position,
                address=self._address(statement, environment),
                bytes=accessed_bytes(statement),
                store=isinstance(statement, Store),
            )
            for position, statement in enumerate(node.body)
            if isinstance(statement, Load | Store) and holds(statement.condition, environment)
        ]
        port.prepare(accesses, firing == self.last[id(port)])

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
