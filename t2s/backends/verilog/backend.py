"""The backend object: ``supports``, ``emit`` and ``run``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.backends.base import RunOptions, Unsupported
from t2s.backends.verilog.counted_nests import nests_of
from t2s.backends.verilog.emit import NAME, files_of
from t2s.backends.verilog.limits import largest, timing_of
from t2s.backends.verilog.verilator import HardwareResult, verilate
from t2s.core.gc_pause import gc_paused
from t2s.core.ops import Array
from t2s.graph.graph import Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class VerilogBackend:
    """SystemVerilog: a module for each node, FIFOs between them, and a testbench."""

    name: str = NAME
    timed: bool = True

    @gc_paused()
    def supports(self, graph: Graph) -> list[Unsupported]:
        """Every reason why ``emit`` refuses a graph; empty if it does not."""
        result = nests_of(graph)
        return result if isinstance(result, list) else []

    def emit(self, graph: Graph) -> Mapping[str, str]:
        """The files of a design on a device without latencies.

        ``verilator -f verilator.f`` builds its simulation.  Raises ``UnsupportedError`` if
        ``supports`` is not empty.
        """
        timing = timing_of(graph)
        return files_of(graph, timing, largest(timing))

    def run(
        self,
        graph: Graph,
        inputs: Mapping[str, Array] | None,
        parameters: Mapping[str, Array],
        options: RunOptions,
    ) -> HardwareResult:
        """Build the design with Verilator, run it, and count its cycles."""
        times = options.times or timing_of(graph)
        return verilate(
            graph,
            times,
            largest(times, graph=graph, inputs=inputs),
            inputs,
            parameters,
            stalling=options.stalling,
            time_limit=options.time_limit,
            directory=options.directory,
            waves=options.waves,
        )


BACKEND = VerilogBackend()
