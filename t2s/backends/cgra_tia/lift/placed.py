"""A placed design as a graph: what ``simulate`` runs fast, and what the interpreter agrees with.

Each branch of a net is a channel of the latency and the capacity of its placement, to which the
FMA's pipeline adds where its results leave.  Cells that are alike are one array of PEs; so are
units.  All operators take no time of their own: run the graph on the device ``"ideal"``.
"""

from __future__ import annotations

from t2s.backends.cgra_tia.lift.bodies import array_of
from t2s.backends.cgra_tia.lift.classes import classes_of
from t2s.backends.cgra_tia.lift.links import Link, NoBundleError, links_of
from t2s.backends.cgra_tia.lift.static_cells import StaticCells
from t2s.backends.cgra_tia.lift.word_kinds import WordKinds
from t2s.backends.cgra_tia.netlist import PlacedDesign
from t2s.graph.graph import Graph
from t2s.graph.verify import verify_graph


def lift_placed(design: PlacedDesign, *, fused: bool = True) -> Graph:
    """The graph of a placed design: the same values and cycles as ``run_placed``.

    ``fused`` says whether ``fmac`` rounds once or twice.  Raises ``UserError`` for a program that
    is no process of a Kahn network, and for operators that graphs do not have.
    """
    netlist = design.netlist
    kinds = WordKinds(netlist)
    firings = StaticCells(netlist).firings
    links: tuple[Link, ...]
    try:
        classes = classes_of(netlist, firings, kinds, apart=False)
        links = links_of(design, classes, kinds)
    except NoBundleError:
        classes = classes_of(netlist, firings, kinds, apart=True)
        links = links_of(design, classes, kinds)
    tensors = {tensor.name: tensor for tensor in netlist.tensors}
    graph = Graph(
        name=netlist.name,
        nodes=tuple(array_of(found, links, kinds, tensors, fused=fused) for found in classes),
        channels=tuple(link.channel for link in links),
        tensors=netlist.tensors,
        location=netlist.location,
    )
    verify_graph(graph)
    return graph
