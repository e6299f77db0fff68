"""What the machines of a program do with memories, recorded for the plain engine before the run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from t2s.core.errors import InternalError
from t2s.core.ops import Array
from t2s.graph.interpret import Recording, record_graph
from t2s.graph.nodes import Machine
from t2s.graph.semantics import PortUse, element_of, space_points
from t2s.simulator.limits import Limits
from t2s.simulator.memory.machine_accesses import AddressedGraph, RuleAccesses, with_addresses
from t2s.simulator.program.sim_program import SimProgram


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
