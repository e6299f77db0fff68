"""The backend object: ``supports`` and ``emit``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.backends.base import Unsupported, refusal
from t2s.backends.opencl_fpga.emit import emit_host, emit_kernels
from t2s.backends.opencl_fpga.host import host_program
from t2s.backends.opencl_fpga.lower import analyse, lower_design
from t2s.backends.opencl_fpga.scope import file_scope, file_stem
from t2s.core.collector import without_collections
from t2s.graph.graph import Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCLBackend:
    """OpenCL for Intel FPGAs: one file of kernels and a host program in Python."""

    name: str = "opencl_fpga"

    @without_collections()
    def supports(self, graph: Graph) -> list[Unsupported]:
        """Everything in the graph that stands in the way of ``emit``; empty if nothing does."""
        found = analyse(graph)
        return found if isinstance(found, list) else []

    @without_collections()
    def emit(self, graph: Graph) -> Mapping[str, str]:
        """``<name>.cl`` and ``<name>_host.py``.

        Raises ``UnsupportedError`` if ``supports`` is not empty.
        """
        design = analyse(graph)
        if isinstance(design, list):
            raise refusal(self.name, graph, design)
        scope, stem = file_scope(design), file_stem(graph)
        return {
            f"{stem}.cl": emit_kernels(lower_design(design, scope)),
            f"{stem}_host.py": emit_host(host_program(design, scope)),
        }


BACKEND = OpenCLBackend()
