"""``Kernel``: a compiled assignment of index notation, with the verbs as methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from t2s.core.display import NotebookCard, NotebookDisplay, Preformatted
from t2s.core.types import Type
from t2s.driver.assignment_design import AssignmentDesign, Channels, Compiled, SparseResult
from t2s.driver.hardware import verilate
from t2s.driver.simulate import simulate
from t2s.graph.graph import UNBOUNDED, Graph
from t2s.sparse_repr.lowering.diagram import block_counts, diagram_picture
from t2s.sparse_repr.notation.ir import print_assignment

if TYPE_CHECKING:
    from t2s.simulator.devices import Device
    from t2s.simulator.memory.spec import Dram
    from t2s.simulator.random_stalls import RandomStalls


class Kernel(Compiled, NotebookDisplay):
    """A compiled assignment: its loops and blocks; ``graphs`` and ``simulate`` need inputs.

    All verbs of ``t2s`` take it, with unbounded channels: ``t2s.cycles(kernel, inputs)``.
    """

    def _card(self) -> NotebookCard:
        """The loops, and the blocks of every stage."""
        counts = block_counts(self.diagrams)
        blocks = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        summary = (("statement", print_assignment(self.assignment)), ("blocks", blocks))
        loops = Preformatted(title="", text=str(self))
        many = Preformatted(title="There are too many blocks to draw.")
        pictures = (diagram_picture(diagram) or many for diagram in self.diagrams)
        return NotebookCard(title=repr(self)[1:-1], summary=summary, parts=(loops, *pictures))

    def design(
        self,
        *,
        type: Type | None = None,
        capacity: int = UNBOUNDED,
        latency: int = 1,
        balance: bool = True,
    ) -> AssignmentDesign:
        """The kernel with a computation type and kind of channels, for all verbs of ``t2s``."""
        return AssignmentDesign(self, type, Channels(capacity, latency, balance))

    def graphs(
        self,
        inputs: Mapping[str, Any],
        *,
        type: Type | None = None,
        capacity: int = UNBOUNDED,
        latency: int = 1,
        balance: bool = True,
    ) -> tuple[Graph, ...]:
        """The graph of every stage for inputs of these shapes."""
        design = self.design(type=type, capacity=capacity, latency=latency, balance=balance)
        return design.graphs(inputs)

    def simulate(
        self,
        inputs: Mapping[str, Any],
        *,
        type: Type | None = None,
        device: str | Device = "ideal",
        memory: str | Dram | None = None,
        engine: str = "native",
        max_cycles: int | None = None,
        progress: bool | None = None,
        stalls: RandomStalls | None = None,
        capacity: int = UNBOUNDED,
        latency: int = 1,
        balance: bool = True,
    ) -> SparseResult:
        """Run all stages on the inputs; see ``t2s.sparse.simulate``."""
        result: SparseResult = simulate(
            self.design(type=type, capacity=capacity, latency=latency, balance=balance),
            inputs,
            device=device,
            memory=memory,
            engine=engine,
            max_cycles=max_cycles,
            progress=progress,
            stalls=stalls,
        )
        return result

    def verilate(
        self,
        inputs: Mapping[str, Any],
        *,
        type: Type | None = None,
        device: str | Device = "ideal",
        stalls: RandomStalls | None = None,
        capacity: int = UNBOUNDED,
        latency: int = 1,
        balance: bool = True,
        time_limit: float = 60.0,
    ) -> SparseResult:
        """Run the SystemVerilog of all stages in Verilator; see ``t2s.sparse.verilate``."""
        result: SparseResult = verilate(
            self.design(type=type, capacity=capacity, latency=latency, balance=balance),
            inputs,
            device=device,
            stalls=stalls,
            time_limit=time_limit,
        )
        return result
