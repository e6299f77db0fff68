"""The backend object: ``supports``, ``emit`` and ``run``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from t2s.backends.base import RunOptions, RunValues, Unsupported, refusal
from t2s.backends.kernels.design import MOST_KERNELS, analyze
from t2s.backends.kernels.scope import KernelDesign
from t2s.backends.vitis_hls.dialect import VITIS_HLS
from t2s.backends.vitis_hls.emit import emit_files
from t2s.backends.vitis_hls.runner import run_files
from t2s.backends.vitis_hls.stages import in_stages, shared_tensors
from t2s.backends.vitis_hls.top import top_design
from t2s.core.gc_pause import gc_paused
from t2s.core.location import SourceLocation
from t2s.core.ops import Array
from t2s.graph.arrays import check_graph_inputs
from t2s.graph.body import Load, Store, by_lanes
from t2s.graph.graph import Graph, TensorRole
from t2s.graph.nodes import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class VitisHLSBackend:
    """C++ for Vitis HLS, with a test bench, host programs and the files of a build."""

    name: str = "vitis_hls"
    timed: bool = False

    @gc_paused()
    def supports(self, graph: Graph) -> list[Unsupported]:
        """Every reason why ``emit`` refuses a graph; empty if it does not."""
        result = analyzed(graph)
        return result if isinstance(result, list) else []

    @gc_paused()
    def emit(self, graph: Graph) -> Mapping[str, str]:
        """The C++, a test bench, two host programs, and the files of a build.

        Raises ``UnsupportedError`` if ``supports`` is not empty.
        """
        design = analyzed(graph)
        if isinstance(design, list):
            raise refusal(self.name, graph, design)
        return emit_files(graph, top_design(design))

    def run(
        self,
        graph: Graph,
        inputs: Mapping[str, Array] | None,
        parameters: Mapping[str, Array],
        options: RunOptions,
    ) -> RunValues:
        """Compile a graph with g++ and run its test bench; the result has no cycles."""
        outputs = emulate(
            graph,
            inputs or {},
            parameters,
            time_limit=options.time_limit,
            exact_depths=options.exact_depths,
        )
        return RunValues(outputs)


BACKEND = VitisHLSBackend()

EMULATED_POINTS = 1 << 16
"""Points of each sorted memory in an emulation."""


def emulate(
    graph: Graph,
    inputs: Mapping[str, Array],
    parameters: Mapping[str, Array] | None = None,
    *,
    time_limit: float = 60.0,
    exact_depths: bool = False,
) -> dict[str, Array]:
    """Compile a design with g++ and run its test bench, and return its output tensors by name.

    ``inputs`` and ``parameters`` have every input tensor and scalar by name.  Streams are deeper
    than on hardware, which is faster, unless ``exact_depths`` requests the emitted depths: then a
    design that deadlocks for want of depth does so here.

    Raises ``UserError`` if the inputs do not fit, ``UnsupportedError`` if the backend cannot emit
    the graph, and ``SimulationError`` if there is no g++, if it refuses the files, and if the
    design deadlocks or is not done after ``time_limit`` seconds.
    """
    design = analyzed(graph)
    if isinstance(design, list):
        raise refusal(BACKEND.name, graph, design)
    arrays, scalars = check_graph_inputs(graph, inputs, parameters or {})
    top = top_design(design, open_sizes(graph, arrays), EMULATED_POINTS)
    files = emit_files(graph, top)
    return run_files(
        graph, top, files, arrays, scalars, time_limit=time_limit, exact_depths=exact_depths
    )


def open_sizes(graph: Graph, arrays: Mapping[str, Array]) -> dict[str, int]:
    """Elements of the open tensors of a run; of an output, a generous multiple of the inputs."""
    most = max(1 << 16, 4 * sum(np.size(array) for array in arrays.values()))
    return {
        tensor.name: len(arrays[tensor.array]) if tensor.role is TensorRole.INPUT else most
        for tensor in graph.tensors
        if tensor.open
    }


def analyzed(graph: Graph) -> KernelDesign | list[Unsupported]:
    """The design with every decision made, or every problem."""
    staged = in_stages(graph)
    problems = _gathers(graph)
    if staged is None:
        return problems + _shared(graph)
    design = problems or analyze(VITIS_HLS, staged)
    return design if isinstance(design, list) else _too_many(design) or design


def _gathers(graph: Graph) -> list[Unsupported]:
    """What the kernels would take, but C++ for Vitis HLS does not have yet."""
    gathering: dict[str, SourceLocation | None] = {}
    for node in graph.nodes:
        for statement in node.statements() if isinstance(node, Machine) else node.body:
            match statement:
                case Load(indices=indices) | Store(indices=indices) if by_lanes(indices):
                    gathering[node.name] = node.location
    why = "gathers and scatters are not supported in Vitis HLS"
    return [
        Unsupported(subject=f"node {name!r}", why=why, location=where)
        for name, where in gathering.items()
    ]


def _shared(graph: Graph) -> list[Unsupported]:
    """Tensors whose stores and loads nothing orders."""
    why = (
        "tensors that one function stores and another one loads while both run are not supported "
        "in Vitis HLS; stream() sends results to their reader without memory"
    )
    return [
        Unsupported(subject=f"tensor {name!r}", why=why, location=graph.tensor(name).location)
        for name in shared_tensors(graph)
    ]


def _too_many(design: KernelDesign) -> list[Unsupported]:
    """More functions than a dataflow region should have."""
    count = len(design.graph.nodes)
    if count <= MOST_KERNELS:
        return []
    why = (
        f"it would be {count:,} functions, one for each machine and PE; {MOST_KERNELS} are the most"
    )
    return [Unsupported(subject="the design", why=why, location=design.graph.location)]
