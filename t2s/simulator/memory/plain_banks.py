"""The machines that share the banks of a device, and the banks, for the plain engine."""

from __future__ import annotations

from t2s.graph.graph import Place
from t2s.graph.nodes import Machine
from t2s.simulator.memory.banked import Banked, BankedModel
from t2s.simulator.memory.banked_port import BankedFirings, BankedPort, bases_in_banks
from t2s.simulator.memory.banked_report import SharedCounts
from t2s.simulator.memory.recorded import RecordedMachines
from t2s.simulator.program.sim_program import SimProgram


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
                rules = [rule.at(Place.SHARED) for rule in machine.rules]
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
