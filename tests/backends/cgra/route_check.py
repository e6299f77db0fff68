"""What a placed design has to be, said without the code that places and routes."""

from __future__ import annotations

from collections import Counter

from t2s.backends.cgra_tia.fabric import CellKind
from t2s.backends.cgra_tia.netlist import PlacedDesign, Site

Cell = tuple[int, int]
Wire = tuple[Cell, Cell]


def half_perimeter(design: PlacedDesign) -> int:
    """The sum of width and height of the boxes around all nets."""
    total = 0
    for net in design.netlist.nets:
        ends = [net.source.part, *(sink.end.part for sink in net.sinks)]
        rows = [design.sites[part].row for part in ends]
        columns = [design.sites[part].column for part in ends]
        total += max(rows) - min(rows) + max(columns) - min(columns)
    return total


def tree_of(design: PlacedDesign, net: str) -> set[Wire]:
    """The wires of a net."""
    return {
        wire
        for branch in design.branches[net]
        for wire in zip(branch.path, branch.path[1:], strict=False)
    }


def check_design(design: PlacedDesign) -> None:
    """Assert that every part has a place, every net a tree, and every wire a track."""
    _check_sites(design)
    fabric, tracks = design.fabric, Counter[Wire]()
    assert set(design.branches) == {net.name for net in design.netlist.nets}
    longest: dict[str, set[int]] = {}
    for net in design.netlist.nets:
        branches = design.branches[net.name]
        assert len(branches) == len(net.sinks)
        for branch, sink in zip(branches, net.sinks, strict=True):
            assert branch.path[0] == _cell(design.sites[net.source.part])
            assert branch.path[-1] == _cell(design.sites[sink.end.part])
            assert len(set(branch.path)) == len(branch.path)
            assert branch.latency >= len(branch.path)
            assert branch.capacity >= max(branch.latency + 1, sink.tokens)
            assert branch.capacity <= branch.latency + 1 + fabric.most_depth
            longest.setdefault(net.group, set()).add(branch.latency)
        tree = tree_of(design, net.name)
        into = Counter(end for _, end in tree)
        assert all(count == 1 for count in into.values()), "two wires of a net meet"
        assert branches[0].path[0] not in into, "a net comes back to its source"
        for (row, column), (other_row, other_column) in tree:
            assert abs(row - other_row) + abs(column - other_column) == 1
            assert 0 <= other_row < fabric.rows
            assert 0 <= other_column < fabric.columns
        tracks.update(tree)
    assert max(tracks.values(), default=0) <= fabric.tracks
    if design.balanced:
        assert all(len(latencies) == 1 for latencies in longest.values())


def _check_sites(design: PlacedDesign) -> None:
    fabric = design.fabric
    taken: set[tuple[bool, Site]] = set()
    for cell in design.netlist.cells:
        site = design.sites[cell.name]
        assert site.slot == 0
        if cell.kind is CellKind.FMA:
            assert fabric.kind_at(site.row, site.column) is CellKind.FMA
        taken.add((True, site))
    for unit in design.netlist.units:
        site = design.sites[unit.name]
        assert 0 <= site.slot < fabric.units
        assert fabric.border[site.slot // fabric.units_per_position] == _cell(site)
        taken.add((False, site))
    assert len(taken) == len(design.sites), "two parts have one place"
    assert len(design.sites) == len(design.netlist.cells) + len(design.netlist.units)


def _cell(site: Site) -> Cell:
    return (site.row, site.column)
