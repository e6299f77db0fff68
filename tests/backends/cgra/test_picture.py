"""Pictures, tables and maps of placed designs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree

import pytest

from t2s.backends.cgra_tia.fabric import FABRICS
from t2s.backends.cgra_tia.files.picture import (
    heat_svg,
    placement_html,
    placement_svg,
    recurrence_svg,
    tracks_svg,
)
from t2s.backends.cgra_tia.files.summary import figures_of, placement_map, placement_table
from t2s.backends.cgra_tia.netlist import PlacedDesign, Provenance
from t2s.backends.cgra_tia.place import place_netlist
from t2s.core.location import SourceLocation
from tests.backends.cgra.netlists import chain, gemm, ring
from tests.backends.cgra.route_check import half_perimeter, tree_of

SVG = "{http://www.w3.org/2000/svg}"


@cache
def product() -> PlacedDesign:
    return place_netlist(gemm(2, 2, 4), replace(FABRICS["cgra8"], tracks=2), moves=0)


def shapes(text: str) -> dict[str, ElementTree.Element]:
    """The parts of a picture by the first line of their titles."""
    found = {}
    for item in ElementTree.fromstring(text):
        title = item.find(f"{SVG}title")
        if title is not None and title.text:
            found[title.text.split("\n")[0]] = item
    return found


def test_every_part_has_one_shape_of_its_kind() -> None:
    design = product()
    parts = shapes(placement_svg(design))
    kinds = Counter(parts[cell.name].tag.removeprefix(SVG) for cell in design.netlist.cells)
    assert kinds == {"rect": 16, "circle": 16}
    assert all(parts[unit.name].tag == f"{SVG}path" for unit in design.netlist.units)
    places = {
        (item.get("x") or item.get("cx"), item.get("y") or item.get("cy"), item.get("d"))
        for item in (parts[part] for part in design.sites)
    }
    assert len(places) == len(design.sites)


def test_titles_say_what_a_cell_does() -> None:
    design = product()
    netlist = design.netlist
    origin = Provenance(node="E", point=(1, 0), location=SourceLocation("kernel.py", 12))
    cell = replace(netlist.cells[-1], origin=origin)
    design = replace(design, netlist=replace(netlist, cells=(*netlist.cells[:-1], cell)))
    title = shapes(placement_svg(design))[cell.name].findtext(f"{SVG}title")
    assert title is not None
    assert title.split("\n")[1:3] == ["E at 1, 0", "kernel.py:12"]
    assert "fmac %o0.0, %i2, %i0, %i1; deq %i0, %i1, %i2;" in title


def test_full_wires_are_red_and_wide() -> None:
    design = product()
    used = Counter(wire for net in design.branches for wire in tree_of(design, net))
    bars = [
        item
        for item in ElementTree.fromstring(tracks_svg(design))
        if item.get("stroke-width") is not None
    ]
    assert len(bars) == len(used)
    red = [item for item in bars if item.get("stroke") == "#d22"]
    assert len(red) == sum(count == 2 for count in used.values()) > 0
    assert {item.get("stroke-width") for item in bars} == {"2.5", "5"}


def test_one_group_alone() -> None:
    parts = shapes(placement_svg(product(), group="sum"))
    nets = {net.name for net in product().netlist.nets}
    assert {name.split()[0] for name in parts} & nets == {
        net.name for net in product().netlist.nets if net.group == "sum"
    }


def test_heat_of_a_run() -> None:
    shares = {"E[0,0,0]": {"busy": 1.0, "starved": 0.0}, "E[0,0,1]": {"busy": 0.25}}
    parts = shapes(heat_svg(product(), shares))
    assert parts["E[0,0,0]"].get("fill") == "hsl(0,70%,55%)"
    assert parts["E[0,0,1]"].get("fill") == "hsl(180,70%,55%)"
    assert parts["E[0,1,1]"].get("fill") == "none"
    assert "busy 100.0%, starved 0.0%" in (parts["E[0,0,0]"].findtext(f"{SVG}title") or "")
    other = shapes(heat_svg(product(), shares, "starved"))
    assert other["E[0,0,0]"].get("fill") == "hsl(240,70%,55%)"


def test_the_circle_that_limits_the_rate() -> None:
    with pytest.warns(UserWarning, match="of its rate"):
        design = place_netlist(ring(4, 8, 3), FABRICS["cgra8"], moves=0)
    parts = shapes(recurrence_svg(design))
    assert all(parts[f"sum[{number}]"].get("fill") != "none" for number in range(4))
    assert parts["load_C[]"].get("fill") == "none"
    assert sum(" of links" in name or " of back" in name for name in parts) == 4
    table = placement_table(design)
    assert ("rate", "8 firings in 28 cycles: tokens that circulate") in table.rows
    assert not any(" of " in name for name in shapes(recurrence_svg(product())))


def test_texts_are_escaped() -> None:
    design = product()
    netlist = design.netlist
    odd = Provenance(node='</title><script>alert("&")\x00\n', point=(1,))
    cells = tuple(replace(cell, origin=odd) for cell in netlist.cells)
    design = replace(
        design,
        netlist=replace(netlist, cells=cells, name="<b>"),
        fabric=replace(design.fabric, name="<i>&"),
    )
    nets = [replace(net, group="<b>") for net in design.netlist.nets]
    named = replace(design, netlist=replace(design.netlist, nets=tuple(nets)))
    shares = {cell.name: {"busy": 0.5} for cell in cells}
    for text in (
        placement_svg(design),
        placement_svg(named, group="<b>"),
        tracks_svg(design),
        heat_svg(design, shares),
        recurrence_svg(design),
        placement_html(design),
    ):
        assert "<script" not in text
        assert "<b>" not in text
        assert "<i>" not in text
        ElementTree.fromstring(text)


def test_the_figures_of_a_product() -> None:
    design = product()
    figures = figures_of(design)
    wires = sum(len(tree_of(design, net)) for net in design.branches)
    hops = [len(branch.path) - 1 for found in design.branches.values() for branch in found]
    assert figures.half_perimeter == half_perimeter(design)
    assert figures.wires == wires
    assert figures.most_hops == max(hops)
    assert figures.mean_hops == pytest.approx(sum(hops) / len(hops))
    rows = dict(placement_table(design).rows)
    assert rows["cells with an FMA"] == "16 of 16"
    assert rows["stream units"] == "24 of 64"
    assert rows["FMA usage"] == "100.0%"
    assert rows["instructions of a cell, mean and most"] == "1.00, 1"
    assert rows["rate"] == "a firing in every cycle"
    assert rows["stages of sum"] == str(design.branches["sum.41"][0].latency)


def test_unbalanced_stages_are_a_range() -> None:
    design = place_netlist(gemm(2, 2, 4), FABRICS["cgra8"], moves=0, balanced=False)
    assert " to " in dict(placement_table(design).rows)["stages of A"]


def test_the_map_has_a_letter_for_each_cell() -> None:
    lines = placement_map(place_netlist(chain(3), FABRICS["cgra8"], moves=0)).splitlines()
    assert len(lines) == 9
    letters = Counter("".join(lines[:8]).replace(" ", ""))
    assert letters == {".": 48, ",": 13, "a": 3}
    assert lines[8] == "a: square"
    large = place_netlist(chain(3), FABRICS["cgra32"], moves=0)
    assert placement_map(large) == "32 x 32 cells are too many for a map of letters"
