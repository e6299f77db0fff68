"""The backend object: ``supports`` and ``emit``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from t2s.backends.base import Unsupported, refusal
from t2s.backends.verilog.arrays import array_module
from t2s.backends.verilog.machine_module import MachineModule
from t2s.backends.verilog.pe import PEModule
from t2s.backends.verilog.support import nests_of
from t2s.backends.verilog.testbench import Testbench
from t2s.backends.verilog.timing import Bounds, Timing, largest, timing_of
from t2s.backends.verilog.top import LIBRARY, top_module, top_of
from t2s.backends.verilog.verilog_names import signal_names
from t2s.backends.verilog.verilog_printer import print_modules
from t2s.core.collector import without_collections
from t2s.graph.graph import Graph
from t2s.graph.machine import Machine

_LIBRARY = Path(__file__).parent / "library"
_FIRST = ("operators.sv", "floats.sv", "stalls.sv", "fifo.sv")
_LAST = ("floats.cpp", "main.cpp")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerilogBackend:
    """SystemVerilog: a module for each node, FIFOs between them, and a testbench."""

    name: str = "verilog"

    @without_collections()
    def supports(self, graph: Graph) -> list[Unsupported]:
        """Everything in the graph that stands in the way of ``emit``; empty if nothing does."""
        found = nests_of(graph)
        return found if isinstance(found, list) else []

    def emit(self, graph: Graph) -> Mapping[str, str]:
        """The files of a design on a device without latencies.

        ``verilator -f verilator.f`` builds its simulation.  Raises ``UnsupportedError`` if
        ``supports`` is not empty.
        """
        timing = timing_of(graph)
        return self.emit_for(graph, timing, largest(timing))

    @without_collections()
    def emit_for(self, graph: Graph, timing: Timing, bounds: Bounds) -> Mapping[str, str]:
        """The files, with FIFOs that have room for ``bounds`` and a testbench set to ``timing``.

        In the order in which a compiler has to read them.  Raises ``UnsupportedError`` if
        ``supports`` is not empty.
        """
        nests = nests_of(graph)
        if isinstance(nests, list):
            raise refusal(self.name, graph, nests)
        top = top_of(graph)
        taken = {names.module for _, names in top.nodes}
        modules = signal_names((*LIBRARY, top.module, *taken))
        files = {name: _text(name) for name in _FIRST}
        for interface, names in top.nodes:
            name = modules.fresh(f"{names.module}_pe")
            node = interface.node
            if isinstance(node, Machine):
                machine = MachineModule(graph, interface, node, name, modules)
                built, space = machine.build(), machine.space
            else:
                pe = PEModule(interface, node, nests[node.name], name)
                built, space = (pe.build(),), pe.space
            array = array_module(interface, names.module, name, tuple(space.values()))
            files[f"{names.module}.sv"] = print_modules((*built, array))
        sources = [*files, "top.sv", "testbench.sv"]
        files["top.sv"] = print_modules((top_module(top, bounds),))
        files["testbench.sv"] = print_modules((Testbench(top, timing, bounds).build(),))
        command = ("-Wno-fatal --cc --exe --build --top-module testbench", *sources, *_LAST)
        files["verilator.f"] = "\n".join((*command, ""))
        return {**files, **{name: _text(name) for name in _LAST}}


def _text(name: str) -> str:
    return (_LIBRARY / name).read_text(encoding="utf-8")


BACKEND = VerilogBackend()
