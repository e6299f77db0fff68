"""A placed design as a graph: what ``simulate`` runs fast, and what the interpreter agrees with.

Each branch of a net is a channel of the latency and the capacity of its placement, to which the
FMA's pipeline adds where its results leave.  Cells that are alike are one array of PEs; so are
units.  All operators take no time of their own: run the graph on the device ``"ideal"``.
"""

from __future__ import annotations

from collections.abc import Mapping

from t2s.backends.cgra_tia.lift.bodies import array_of
from t2s.backends.cgra_tia.lift.classes import classes_of
from t2s.backends.cgra_tia.lift.links import Link, NoBundleError, links_of
from t2s.backends.cgra_tia.lift.static_cells import StaticCells, StaticFirings
from t2s.backends.cgra_tia.lift.word_kinds import WordKinds
from t2s.backends.cgra_tia.netlist import Netlist, PlacedDesign, UnitKind
from t2s.core.errors import UserError
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
    _check_static(netlist, firings)
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


def _check_static(netlist: Netlist, firings: Mapping[str, StaticFirings]) -> None:
    """Refuse parts whose firings depend on values."""
    expected = "cells whose firings follow from the nest of a unit, and units with nests"
    for cell in netlist.cells:
        if cell.name not in firings:
            raise UserError(
                f"the firings of the cell {cell.name!r} depend on what it gets",
                location=cell.origin.location if cell.origin else netlist.location,
                expected=expected,
                given=f"a program of {len(cell.program.instructions)} instructions"
                " that no nest leads",
                hint="the interpreter runs it",
            )
    for unit in netlist.units:
        if unit.kind in (UnitKind.LOAD_AT, UnitKind.STORE_AT):
            raise UserError(
                f"the addresses of the unit {unit.name!r} depend on what it gets",
                location=unit.origin.location if unit.origin else netlist.location,
                expected=expected,
                given=f"a unit {unit.kind.value!r}",
                hint="the interpreter runs it",
            )
