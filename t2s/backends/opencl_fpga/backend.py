"""The backend object: ``supports`` and ``emit``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.backends.base import RunOptions, Unsupported, refusal
from t2s.backends.opencl_fpga.emit import emit_host, emit_kernels
from t2s.backends.opencl_fpga.emulator import run_files
from t2s.backends.opencl_fpga.host import host_program
from t2s.backends.opencl_fpga.lower import analyze, lower_design
from t2s.backends.opencl_fpga.scope import file_scope, file_stem
from t2s.core.collector import without_collections
from t2s.core.ops import Array
from t2s.graph.graph import Graph
from t2s.graph.inputs import check_graph_inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCLBackend:
    """OpenCL for Intel FPGAs: one file of kernels and a host program in Python."""

    name: str = "opencl_fpga"
    timed: bool = False

    @without_collections()
    def supports(self, graph: Graph) -> list[Unsupported]:
        """Everything in the graph that stands in the way of ``emit``; empty if nothing does."""
        found = analyze(graph)
        return found if isinstance(found, list) else []

    @without_collections()
    def emit(self, graph: Graph) -> Mapping[str, str]:
        """``<name>.cl`` and ``<name>_host.py``.

        Raises ``UnsupportedError`` if ``supports`` is not empty.
        """
        design = analyze(graph)
        if isinstance(design, list):
            raise refusal(self.name, graph, design)
        scope, stem = file_scope(design), file_stem(graph)
        return {
            f"{stem}.cl": emit_kernels(lower_design(design, scope)),
            f"{stem}_host.py": emit_host(host_program(design, scope)),
        }

    def run(
        self,
        graph: Graph,
        inputs: Mapping[str, Array] | None,
        parameters: Mapping[str, Array],
        options: RunOptions,
    ) -> Emulated:
        """Run a graph on Intel's FPGA emulator: values, no cycles."""
        limit = options.time_limit
        return Emulated(emulate(graph, inputs or {}, parameters, time_limit=limit))


BACKEND = OpenCLBackend()


@dataclass(frozen=True)
class Emulated:
    """What an emulator gives of a graph: values, no cycles."""

    outputs: dict[str, Array]


def emulate(
    graph: Graph,
    inputs: Mapping[str, Array],
    parameters: Mapping[str, Array] | None = None,
    *,
    time_limit: float = 60.0,
    exact_depths: bool = False,
) -> dict[str, Array]:
    """Build and run a design on Intel's FPGA emulator, and return its output tensors by name.

    ``inputs`` and ``parameters`` give every input tensor and scalar by name.  Channels are deeper
    than on hardware, which is much faster, unless ``exact_depths`` asks for what the text says: a
    design that then deadlocks is stopped at the time limit.

    Raises ``UserError`` if the inputs do not fit, ``UnsupportedError`` if the backend cannot emit
    the graph, and ``EmulationError`` if the emulator is not installed, refuses the files, or is
    not done after ``time_limit`` seconds.
    """
    files = BACKEND.emit(graph)
    arrays, scalars = check_graph_inputs(graph, inputs, parameters or {})
    return run_files(
        graph, files, {**arrays, **scalars}, time_limit=time_limit, exact_depths=exact_depths
    )
