"""Everything that claims to know what a graph does has to say the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import t2s
from benchmarks.hunt.verdict import Wrong
from t2s.backends.opencl_fpga import BACKEND as OPENCL
from t2s.backends.opencl_fpga import emulator_available
from t2s.backends.verilog import BACKEND as VERILOG
from t2s.core.errors import UnsupportedError
from t2s.graph.graph import Graph
from t2s.graph.interpret import interpret_graph
from t2s.graph.serialize import graph_from_json, graph_to_json
from tests.simulator.memory.plain_memories import independent_memories


def same(what: str, given: Any, expected: Any) -> None:
    """Raise ``Wrong`` unless two arrays are equal to the bit; NaN is NaN."""
    given, expected = np.asarray(given), np.asarray(expected)
    if given.shape != expected.shape:
        raise Wrong(f"{what}: shapes differ\n{given.shape} {expected.shape}")
    floats = given.dtype.kind not in "iubS"
    if not np.array_equal(given, expected, equal_nan=floats):
        raise Wrong(f"{what}: values differ\n{given}\n{expected}")


def graph_agrees(
    graph: Graph,
    inputs: Mapping[str, Any],
    expected: Mapping[str, Any] | None,
    *,
    hardware: bool,
    device: str = "ideal",
    close: bool = False,
) -> None:
    """Interpreter, engines, kernels of times, texts and, if asked, hardware: all as ``expected``.

    With ``close`` the emulator, whose ``exp`` and ``rsqrt`` are the library's own, may round.
    Raises ``Wrong``, or what a consumer raises.
    """
    scalars = {parameter.name for parameter in graph.parameters}
    arrays = {name: value for name, value in inputs.items() if name not in scalars}
    given = {name: value for name, value in inputs.items() if name in scalars}
    untimed = interpret_graph(graph, arrays, given)
    wanted = untimed if expected is None else expected
    for name, value in wanted.items():
        same(f"interpreter of graphs, {name}", untimed[name], value)
    with independent_memories():
        python = t2s.simulate(graph, inputs, engine="python", device=device, progress=False)
    for engine in ("native",) if graph.machines else ("native", "table", "array"):
        result = t2s.simulate(graph, inputs, engine=engine, device=device, progress=False)
        for name, value in wanted.items():
            same(f"engine {engine}, {name}", result.outputs[name], value)
        if result.cycles != python.cycles:
            raise Wrong(f"cycles of {engine}: {result.cycles}, plain engine {python.cycles}")
        if str(result.stalls) != str(python.stalls):
            raise Wrong(f"stalls of {engine}\n{result.stalls}\n{python.stalls}")
        if result.utilization != python.utilization:
            raise Wrong(f"utilization of {engine}")
    for name, value in wanted.items():
        same(f"plain engine, {name}", python.outputs[name], value)
    if graph_from_json(graph_to_json(graph)) != graph:
        raise Wrong("the graph is another one after JSON")
    for backend in (OPENCL, VERILOG):
        if not backend.supports(graph):
            backend.emit(graph)
    if hardware:
        _hardware(graph, inputs, wanted, python.cycles, device, close)


def _hardware(
    graph: Graph,
    inputs: Mapping[str, Any],
    wanted: Mapping[str, Any],
    cycles: int,
    device: str,
    close: bool,
) -> None:
    try:
        run = t2s.verilate(graph, inputs, device=device)
        for name, value in wanted.items():
            same(f"SystemVerilog, {name}", run.outputs[name], value)
        if run.cycles != cycles:
            raise Wrong(f"cycles of SystemVerilog: {run.cycles}, plain engine {cycles}")
    except UnsupportedError:
        pass
    if not emulator_available():
        return
    try:
        outputs = t2s.emulate(graph, inputs)
        for name, value in wanted.items():
            if not close:
                same(f"emulator, {name}", outputs[name], value)
    except UnsupportedError:
        pass
