"""The backend object: ``supports``, ``emit`` and ``run``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.backends.base import RunOptions, Unsupported
from t2s.backends.cgra_tia.fabric import FABRICS, CgraFabric
from t2s.backends.cgra_tia.files import write_files
from t2s.backends.cgra_tia.lower import lower_to_netlist, unsupported
from t2s.backends.cgra_tia.machine.profile_b import PlacedRun, run_placed
from t2s.backends.cgra_tia.netlist import Netlist, PlacedDesign
from t2s.backends.cgra_tia.place import Progress, place_netlist
from t2s.backends.cgra_tia.place.sites import sites_of
from t2s.core.errors import UnsupportedError
from t2s.core.ops import Array
from t2s.graph.graph import Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class TiaBackend:
    """Triggered instructions, placed on the smallest of our fabrics that has enough cells."""

    name: str = "cgra_tia"
    timed: bool = False

    def supports(self, graph: Graph) -> list[Unsupported]:
        """Every reason why ``emit`` refuses a graph; empty if it does not.

        Whether cells and wires suffice is known when the design is placed.
        """
        return unsupported(graph)

    def emit(self, graph: Graph) -> Mapping[str, str]:
        """The assembly, the placement file and the picture of a design."""
        return self.emit_for(graph)

    def emit_for(
        self, graph: Graph, fabric: CgraFabric | None = None, seed: int = 0
    ) -> Mapping[str, str]:
        """The files for a fabric of the user, or another placement."""
        return write_files(self.placed(graph, fabric, seed))

    def placed(self, graph: Graph, fabric: CgraFabric | None = None, seed: int = 0) -> PlacedDesign:
        """The design on a fabric; ``None`` is the smallest of ours that has enough cells."""
        return placed_graph(graph, fabric, seed=seed)

    def run(
        self,
        graph: Graph,
        inputs: Mapping[str, Array] | None,
        parameters: Mapping[str, Array],
        options: RunOptions,
    ) -> PlacedRun:
        """Step through the instructions of the placed design, cycle by cycle."""
        return run_placed(self.placed(graph), {**(inputs or {}), **parameters})


def placed_graph(
    graph: Graph,
    fabric: CgraFabric | None = None,
    *,
    seed: int = 0,
    balanced: bool = True,
    contract: bool = True,
    interval: int = 1,
    progress: Progress | None = None,
) -> PlacedDesign:
    """Lower a graph and place it; ``None`` is the smallest of our fabrics that has enough cells.

    Up to ``interval`` operations of a PE share a cell.
    """
    latency = (fabric or FABRICS["cgra32"]).fma_latency
    netlist = lower_to_netlist(graph, contract=contract, interval=interval, fma_latency=latency)
    chosen = fabric or smallest_fabric(netlist)
    return place_netlist(netlist, chosen, seed=seed, balanced=balanced, progress=progress)


def smallest_fabric(netlist: Netlist) -> CgraFabric:
    """The smallest fabric of ours with enough cells, or the largest."""
    *smaller, largest = FABRICS.values()
    for fabric in smaller:
        try:
            sites_of(netlist, fabric)
        except UnsupportedError:
            continue
        return fabric
    return largest


BACKEND = TiaBackend()
