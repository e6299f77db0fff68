"""What the tests of lowering ask again and again: random inputs, runs without wires, counts."""

from __future__ import annotations

from collections import Counter

import numpy as np

import t2s
from t2s import Func
from t2s.backends.cgra_tia.fabric import CgraFabric
from t2s.backends.cgra_tia.lower import lower_to_netlist
from t2s.backends.cgra_tia.machine.profile_b import PlacedRun, run_placed
from t2s.backends.cgra_tia.netlist import Netlist, unplaced
from t2s.core.ops import Array
from t2s.graph.graph import Graph, TensorRole


def whole_numbers(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Small whole numbers for every input, so that floats are exact in any order."""
    generator = np.random.default_rng(seed)
    return {
        tensor.array: generator.integers(-4, 5, tensor.shape).astype(tensor.type.numpy)
        for tensor in graph.tensors
        if tensor.role is TensorRole.INPUT
    }


def ran(
    netlist: Netlist, inputs: dict[str, Array], *, latency: int = 1, fma_latency: int = 4
) -> PlacedRun:
    """A run of a netlist in which all links are equally long."""
    fabric = CgraFabric(name="open", rows=64, columns=64, fma_latency=fma_latency)
    return run_placed(unplaced(netlist, fabric, latency), inputs, max_cycles=1_000_000)


def agrees(
    design: Func | Graph, *, latency: int = 1, fma_latency: int = 4, contract: bool = True
) -> tuple[Netlist, PlacedRun]:
    """Lower a design and run it: the values have to be those of the simulator."""
    graph = design if isinstance(design, Graph) else t2s.lower(design)
    inputs = whole_numbers(graph)
    netlist = lower_to_netlist(graph, contract=contract)
    run = ran(netlist, inputs, latency=latency, fma_latency=fma_latency)
    for name, array in t2s.simulate(graph, inputs, progress=False).outputs.items():
        np.testing.assert_array_equal(run.outputs[name], array)
    return netlist, run


def cells_of(netlist: Netlist) -> Counter[str]:
    """How many cells and units there are of each kind: ``fma``, ``ctl``, ``ld``, ``st``, ..."""
    cells = Counter(cell.kind.value for cell in netlist.cells)
    return cells + Counter(unit.kind.value for unit in netlist.units)


def most_instructions(netlist: Netlist) -> int:
    """The most instructions of a cell with an FMA."""
    return max(len(c.program.instructions) for c in netlist.cells if c.kind.value == "fma")
