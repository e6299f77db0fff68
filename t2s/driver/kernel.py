"""An assignment, compiled: from its loops and blocks to graphs, values and cycles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.integers import whole
from t2s.core.location import user_location
from t2s.core.types import BOOL, Type, UInt
from t2s.graph.graph import Graph
from t2s.sparse_repr.binding import (
    Binding,
    add_stage_views,
    as_bools,
    bind,
    final_result,
    read_places,
    stage_shape,
    stored_places,
)
from t2s.sparse_repr.concrete.build import build_program
from t2s.sparse_repr.concrete.interpret import interpret_program
from t2s.sparse_repr.concrete.ir import ConcreteProgram, result_of
from t2s.sparse_repr.concrete.printer import print_program
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.lowering.arrays import array_in, tensor_of
from t2s.sparse_repr.lowering.diagram import Diagram
from t2s.sparse_repr.lowering.interpret import interpret_diagram
from t2s.sparse_repr.lowering.lower import check_skips, lower_stage
from t2s.sparse_repr.lowering.to_graph import StageGraph, diagram_to_graph
from t2s.sparse_repr.notation.check import with_semiring
from t2s.sparse_repr.notation.evaluate import evaluate
from t2s.sparse_repr.notation.ir import Assignment, print_assignment
from t2s.sparse_repr.semiring import OR_AND, PLUS_TIMES, Semiring
from t2s.sparse_repr.streams import UNBOUNDED
from t2s.sparse_repr.tensors.tensor import SparseTensor

if TYPE_CHECKING:
    from t2s.backends.verilog.verilator import HardwareResult
    from t2s.simulator.devices import Device
    from t2s.simulator.result import SimResult

Array = np.ndarray[Any, Any]
BYTE = UInt(8)
RunStage = Callable[[Graph, Mapping[str, Array]], "SimResult | HardwareResult"]


@dataclass(frozen=True, kw_only=True, repr=False)
class SparseResult:
    """What a run gives: the result as a tensor, and what was simulated of every stage."""

    tensor: SparseTensor
    stages: tuple[SimResult | HardwareResult, ...]

    def __repr__(self) -> str:
        return f"<SparseResult {self.tensor!r}, {self.cycles} cycles>"

    @property
    def cycles(self) -> int:
        """Cycles of all stages, one after the other."""
        return sum(stage.cycles for stage in self.stages)

    @property
    def output(self) -> Array:
        """The result as a dense array."""
        return self.tensor.to_dense()

    def __str__(self) -> str:
        parts = [str(stage) for stage in self.stages]
        if len(parts) > 1:
            parts = [f"stage {n} of {len(parts)}\n{text}" for n, text in enumerate(parts, 1)]
            parts.append(f"{self.cycles} cycles in all\n")
        return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class Channels:
    """What the channels of a graph are; see ``simulate``."""

    capacity: int
    latency: int
    balance: bool


def _channels(capacity: int, latency: int, balance: bool) -> Channels:
    numbers = whole(capacity), whole(latency)
    for name, value, number in zip(
        ("capacity", "latency"), (capacity, latency), numbers, strict=True
    ):
        if number is None or number < 1:
            raise UserError(
                f"the {name} of channels is positive",
                location=user_location(),
                expected="an integer, 1 or more",
                given=repr(value),
            )
    return Channels(int(capacity), int(latency), balance)


class Kernel:
    """An assignment, compiled: its loops and its blocks; ``graphs`` and ``simulate`` need inputs.

    Attributes
    ----------
    assignment: the index notation.
    program: the concrete index notation: loops, views, stages.
    diagrams: the blocks of every stage.
    """

    def __init__(
        self,
        assignment: Assignment,
        schedule: Schedule | None = None,
        semiring: Semiring = PLUS_TIMES,
    ) -> None:
        assignment = with_semiring(assignment, semiring)
        self.assignment = assignment
        self._schedule = schedule
        self.program: ConcreteProgram = build_program(assignment, schedule)
        self.diagrams: tuple[Diagram, ...] = tuple(
            lower_stage(self.program, stage) for stage in self.program.stages
        )
        check_skips(schedule or Schedule(), self.diagrams)
        self._graphs: dict[tuple[object, ...], StageGraph] = {}

    @cached_property
    def _of_bools(self) -> Kernel:
        """The kernel for bools, which are 0 and 1 in bytes: a sum is an or, a product an and."""
        return Kernel(self.assignment, self._schedule, OR_AND)

    def __repr__(self) -> str:
        return f"<Kernel {print_assignment(self.assignment)}>"

    def __str__(self) -> str:
        return print_program(self.program)

    def bind(self, inputs: Mapping[str, Any], type: Type | None = None) -> Binding:
        """The inputs as the stages read them; see ``simulate`` for what an input may be."""
        return bind(self.assignment, self.program, inputs, type)

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
        binding = self.bind(inputs, type)
        if binding.type == BOOL:
            return self._of_bools.graphs(
                inputs, type=BYTE, capacity=capacity, latency=latency, balance=balance
            )
        channels = _channels(capacity, latency, balance)
        return tuple(
            self._stage(number, binding, channels).graph for number in range(len(self.diagrams))
        )

    def _stage(self, number: int, binding: Binding, channels: Channels) -> StageGraph:
        """The graph of a stage; kept, since other inputs of the same shapes have the same one."""
        key = number, tuple(sorted(binding.extents.items())), binding.type, binding.index, channels
        if key not in self._graphs:
            diagram = self.diagrams[number]
            void = frozenset(name for name, extent in binding.extents.items() if not extent)
            if void:
                diagram = lower_stage(self.program, self.program.stages[number], void)
            self._graphs[key] = diagram_to_graph(
                diagram,
                self.program,
                binding.extents,
                binding.type,
                name=diagram.result,
                capacity=channels.capacity,
                latency=channels.latency,
                balance=channels.balance,
                index=binding.index,
            )
        return self._graphs[key]

    def simulate(
        self,
        inputs: Mapping[str, Any],
        *,
        type: Type | None = None,
        device: str | Device = "ideal",
        engine: str = "native",
        max_cycles: int | None = None,
        capacity: int = UNBOUNDED,
        latency: int = 1,
        balance: bool = True,
    ) -> SparseResult:
        """Run all stages on the inputs; see ``t2s.sparse.simulate``."""
        from t2s.simulator.cut_short import whole
        from t2s.simulator.run import simulate as simulate_graph

        def run(graph: Graph, arrays: Mapping[str, Array]) -> SimResult:
            return whole(
                simulate_graph(graph, arrays, device=device, engine=engine, max_cycles=max_cycles)
            )

        return self._run(inputs, type, _channels(capacity, latency, balance), run)

    def verilate(
        self,
        inputs: Mapping[str, Any],
        *,
        type: Type | None = None,
        device: str | Device = "ideal",
        capacity: int = UNBOUNDED,
        latency: int = 1,
        balance: bool = True,
        time_limit: float = 60.0,
    ) -> SparseResult:
        """Run the SystemVerilog of all stages in Verilator; see ``t2s.sparse.verilate``."""
        from t2s.driver.hardware import verilate as verilate_graph

        def run(graph: Graph, arrays: Mapping[str, Array]) -> HardwareResult:
            return verilate_graph(graph, arrays, device=device, time_limit=time_limit)

        return self._run(inputs, type, _channels(capacity, latency, balance), run)

    def _run(
        self, inputs: Mapping[str, Any], type: Type | None, channels: Channels, run: RunStage
    ) -> SparseResult:
        """Run the stages one after the other; each reads what those before it have written."""
        binding = self.bind(inputs, type)
        if binding.type == BOOL:
            made_of_bytes = self._of_bools._run(inputs, BYTE, channels, run)
            return replace(made_of_bytes, tensor=as_bools(made_of_bytes.tensor))
        results: list[SimResult | HardwareResult] = []
        written: SparseTensor | None = None
        for number, stage in enumerate(self.program.stages):
            made = self._stage(number, binding, channels)
            arrays = {one.name: array_in(binding.tensors[one.tensor], one) for one in made.reads}
            result = run(made.graph, arrays)
            results.append(result)
            outputs = {(one.level, one.array): result.outputs[one.name] for one in made.writes}
            name = result_of(stage).tensor
            shape = stage_shape(self.program, binding, number)
            zero = self.program.semiring.zero
            written = tensor_of(outputs, shape, self.program.format_of(name), zero)
            add_stage_views(self.program, binding, written, name)
        assert written is not None
        final = final_result(self.assignment, self.program, binding, written)
        return SparseResult(tensor=final, stages=tuple(results))

    def interpret(
        self, inputs: Mapping[str, Any], *, level: str = "notation", type: Type | None = None
    ) -> Array:
        """Compute without time: the notation by numpy, or the ``"loops"``, or the ``"blocks"``.

        Loops are run one by one, so they are for small inputs.
        """
        binding = self.bind(inputs, type)
        if binding.type == BOOL:
            made = self._of_bools.interpret(inputs, level=level, type=BYTE)
            return made.astype(np.bool_)
        kind = binding.type.numpy
        dense = {name: value.to_dense() for name, value in binding.given.items()}
        match level:
            case "notation":
                return evaluate(self.assignment, dense, kind, stored_places(self.program, binding))
            case "loops":
                return interpret_program(
                    self.program, dense, binding.extents, kind, read_places(self.program, binding)
                )
            case "blocks":
                return self._interpret_blocks(binding)
        raise UserError(
            f"there is no level {level!r}",
            location=user_location(),
            expected="notation, loops or blocks",
        )

    def _interpret_blocks(self, binding: Binding) -> Array:
        void = frozenset(name for name, extent in binding.extents.items() if not extent)
        written: SparseTensor | None = None
        for number, stage in enumerate(self.program.stages):
            diagram = lower_stage(self.program, stage, void) if void else self.diagrams[number]
            name = result_of(stage).tensor
            written = interpret_diagram(
                diagram,
                binding.tensors,
                binding.extents,
                stage_shape(self.program, binding, number),
                self.program.format_of(name),
                binding.type.numpy,
            )
            add_stage_views(self.program, binding, written, name)
        assert written is not None
        return final_result(self.assignment, self.program, binding, written).to_dense()
