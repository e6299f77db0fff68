"""The backend object: ``supports`` and ``emit``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.backends.base import RunOptions, RunValues, Unsupported, refusal
from t2s.backends.kernels.comments import file_comment
from t2s.backends.kernels.design import (
    analyze,
    channels_of,
    lower_kernels,
    structs_of,
    types_of,
)
from t2s.backends.kernels.kernel_ast import KernelFile
from t2s.backends.kernels.operators import Helpers
from t2s.backends.kernels.scope import FileScope, KernelDesign, file_scope, file_stem
from t2s.backends.opencl_fpga.dialect import OPENCL
from t2s.backends.opencl_fpga.emit import emit_host, emit_kernels
from t2s.backends.opencl_fpga.emulator import run_files
from t2s.backends.opencl_fpga.host import host_program
from t2s.core.gc_pause import gc_paused
from t2s.core.ops import Array
from t2s.core.types import Kind
from t2s.graph.arrays import check_graph_inputs
from t2s.graph.graph import Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCLBackend:
    """OpenCL for Intel FPGAs: one file of kernels and a host program in Python."""

    name: str = "opencl_fpga"
    timed: bool = False

    @gc_paused()
    def supports(self, graph: Graph) -> list[Unsupported]:
        """Every reason why ``emit`` refuses a graph; empty if it does not."""
        result = analyze(OPENCL, graph)
        return result if isinstance(result, list) else []

    @gc_paused()
    def emit(self, graph: Graph) -> Mapping[str, str]:
        """``<name>.cl`` and ``<name>_host.py``.

        Raises ``UnsupportedError`` if ``supports`` is not empty.
        """
        design = analyze(OPENCL, graph)
        if isinstance(design, list):
            raise refusal(self.name, graph, design)
        scope, stem = file_scope(design), file_stem(OPENCL, graph)
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
    ) -> RunValues:
        """Run a graph on Intel's FPGA emulator, for its values; there are no cycles."""
        outputs = emulate(
            graph,
            inputs or {},
            parameters,
            time_limit=options.time_limit,
            exact_depths=options.exact_depths,
        )
        return RunValues(outputs)


BACKEND = OpenCLBackend()


def emulate(
    graph: Graph,
    inputs: Mapping[str, Array],
    parameters: Mapping[str, Array] | None = None,
    *,
    time_limit: float = 60.0,
    exact_depths: bool = False,
) -> dict[str, Array]:
    """Build and run a design on Intel's FPGA emulator, and return its output tensors by name.

    ``inputs`` and ``parameters`` have every input tensor and scalar by name.  Channels are deeper
    than on hardware, which is much faster, unless ``exact_depths`` requests the emitted depths: a
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


def lower_design(design: KernelDesign, scope: FileScope) -> KernelFile:
    """The OpenCL file of a design."""
    helpers = Helpers(OPENCL)
    kernels = lower_kernels(design, scope, helpers)
    stem = file_stem(OPENCL, design.graph)
    usage = (
        f"Build for hardware: aoc {stem}.cl -o {stem}.aocx",
        f"Run, on a board or on Intel's FPGA emulator: python {stem}_host.py --help",
    )
    return KernelFile(
        comment=file_comment(design, scope, language="OpenCL for Intel FPGAs", usage=usage),
        uses_double=any(type.kind is Kind.FLOAT and type.bits == 64 for type in types_of(design)),
        structs=structs_of(design, scope),
        channels=channels_of(design, scope),
        functions=helpers.functions,
        kernels=kernels,
    )
