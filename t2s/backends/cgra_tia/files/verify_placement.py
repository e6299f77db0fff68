"""Whether a placed design is one: sites, ports, trees, tracks.  For designs that are read.

In goes a ``PlacedDesign``; ``UserError`` names the first thing that is wrong.  What programs may
do is checked where they are read and wired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from t2s.backends.cgra_tia.fabric import CellKind
from t2s.backends.cgra_tia.netlist import Branch, Endpoint, Net, PlacedDesign, Site, UnitKind
from t2s.core.errors import UserError
from t2s.core.names import is_name

MOST_LOOPS = 8
"""The most loops of the nest of a unit."""

_PORTS = {
    UnitKind.LOAD: (0, 1),
    UnitKind.STORE: (1, 0),
    UnitKind.SEQUENCE: (0, 1),
    UnitKind.LOAD_AT: (1, 1),
    UnitKind.STORE_AT: (2, 0),
}
"""Inputs and outputs of the kinds of units."""

Cell = tuple[int, int]


def verify_placement(design: PlacedDesign) -> None:
    """Raise ``UserError`` if something in the design is not as ``netlist.py`` says."""
    netlist = design.netlist
    if not is_name(netlist.name):
        raise _wrong(design, "its name", "letters, digits and underscores", repr(netlist.name))
    cells, units = ([part.name for part in parts] for parts in (netlist.cells, netlist.units))
    _once(design, "parts", [*cells, *units])
    _once(design, "nets", (net.name for net in netlist.nets))
    _once(design, "tensors", (tensor.name for tensor in netlist.tensors))
    _check_sites(design)
    _check_units(design)
    _check_turns(design)
    _check_ports(design)
    tracks: Counter[tuple[Cell, Cell]] = Counter()
    for net in netlist.nets:
        tracks.update(_tree(design, net))
    for (start, end), used in tracks.items():
        if used > design.fabric.tracks:
            raise _wrong(
                design,
                f"the wires from cell {start} to cell {end}",
                f"at most {design.fabric.tracks} nets, one on each track",
                str(used),
            )


def _wrong(design: PlacedDesign, what: str, expected: str, given: str) -> UserError:
    return UserError(
        f"the placement of {design.netlist.name!r} is wrong: {what}",
        location=design.netlist.location,
        expected=expected,
        given=given,
    )


def _once(design: PlacedDesign, what: str, names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise _wrong(design, f"names of {what}", f"different {what}", f"{count} named {name!r}")


def _check_sites(design: PlacedDesign) -> None:
    fabric, border = design.fabric, design.fabric.border
    for cell in design.netlist.cells:
        site = design.sites.get(cell.name)
        if site is None or not _is_cell(design, (site.row, site.column)) or site.slot:
            raise _wrong(design, f"the place of {cell.name!r}", "a cell of the fabric", str(site))
        kind = fabric.kind_at(site.row, site.column)
        if kind is not cell.kind and (cell.kind, kind) != (CellKind.CONTROL, CellKind.FMA):
            raise _wrong(
                design,
                f"the place of {cell.name!r}",
                f"a cell of kind {cell.kind.value}",
                kind.value,
            )
    taken: set[int] = set()
    for unit in design.netlist.units:
        site = design.sites.get(unit.name)
        place = -1 if site is None else site.slot // fabric.units_per_position
        there = site is not None and 0 <= place < len(border)
        if site is None or not there or border[place] != (site.row, site.column):
            raise _wrong(design, f"the place of {unit.name!r}", "a place at the border", str(site))
        if site.slot in taken:
            raise _wrong(design, f"the place of {unit.name!r}", "a place of its own", str(site))
        taken.add(site.slot)
    cells = Counter(design.sites[cell.name] for cell in design.netlist.cells)
    twice = next((site for site, count in cells.items() if count > 1), None)
    if twice is not None:
        raise _wrong(design, "the places of cells", "one cell at each", f"several at {twice}")


def _is_cell(design: PlacedDesign, cell: Cell) -> bool:
    return 0 <= cell[0] < design.fabric.rows and 0 <= cell[1] < design.fabric.columns


def _check_units(design: PlacedDesign) -> None:
    tensors = {tensor.name for tensor in design.netlist.tensors}
    for unit in design.netlist.units:
        what = f"the unit {unit.name!r}"
        if len(unit.loops) > MOST_LOOPS:
            raise _wrong(design, what, f"at most {MOST_LOOPS} loops", str(len(unit.loops)))
        sequence = unit.kind is UnitKind.SEQUENCE
        if sequence != (unit.tensor is None) or not (sequence or unit.tensor in tensors):
            expected = "no tensor" if sequence else f"one of {', '.join(sorted(tensors))}"
            raise _wrong(design, f"the tensor of {what}", expected, str(unit.tensor))
        nest = unit.kind in (UnitKind.LOAD, UnitKind.STORE)
        if nest and unit.address is None:
            raise _wrong(
                design,
                f"the address of {what}",
                "one for a load or store in a nest",
                unit.kind.value,
            )
        sums = [loop.extent for loop in unit.loops]
        sums += [unit.address] if unit.address is not None else []
        sums += [condition.sum for case in unit.tags for condition in case.when]
        if any(len(item.coefficients) > len(unit.loops) for item in sums):
            raise _wrong(
                design, what, f"sums over its {len(unit.loops)} loops", "more coefficients"
            )
        tag = next((t.tag for t in unit.tags if not 0 <= t.tag < design.fabric.core.tags), None)
        if tag is not None:
            raise _wrong(design, what, f"tags below {design.fabric.core.tags}", f"tag {tag}")


def _check_turns(design: PlacedDesign) -> None:
    for cell in design.netlist.cells:
        tags = [tag for turn in cell.turns for tag in turn.tags]
        stages = [turn.stage for turn in cell.turns]
        checked = {c.tag for i in cell.program.instructions for c in i.trigger.checks}
        fine = len(set(tags)) == len(tags) and set(tags) <= checked
        fine = fine and all(turn.tags for turn in cell.turns)
        fine = fine and stages == sorted(stages) and set(stages[:1]) <= {0}
        if len(cell.turns) == 1 or not fine:
            raise _wrong(
                design,
                f"the turns of {cell.name!r}",
                "several, of tags that its program checks, each once, and of stages from 0 on",
                ", ".join(f"tags {list(turn.tags)} of stage {turn.stage}" for turn in cell.turns),
            )


def _check_ports(design: PlacedDesign) -> None:
    core = design.fabric.core
    ports = {cell.name: (core.inputs, core.outputs) for cell in design.netlist.cells}
    ports |= {unit.name: _PORTS[unit.kind] for unit in design.netlist.units}
    taken: set[tuple[Endpoint, int]] = set()
    for net in design.netlist.nets:
        for end, side in ((net.source, 1), *((sink.end, 0) for sink in net.sinks)):
            word = "output" if side else "input"
            what = f"the net {net.name!r}"
            if end.part not in ports or not 0 <= end.port < ports[end.part][side]:
                raise _wrong(
                    design, what, f"an {word} of a part", f"{word} {end.port} of {end.part!r}"
                )
            if (end, side) in taken:
                raise _wrong(
                    design, what, f"one net at an {word}", f"two at {end.port} of {end.part!r}"
                )
            taken.add((end, side))
        if not net.sinks:
            raise _wrong(design, f"the net {net.name!r}", "a sink", "none")


def _tree(design: PlacedDesign, net: Net) -> set[tuple[Cell, Cell]]:
    """The wires of a net; raises ``UserError`` if they are no tree, or end elsewhere."""
    branches = design.branches.get(net.name, ())
    if len(branches) != len(net.sinks):
        raise _wrong(
            design, f"the net {net.name!r}", f"{len(net.sinks)} branches", str(len(branches))
        )
    wires: set[tuple[Cell, Cell]] = set()
    start = _cell(design.sites[net.source.part])
    for number, (branch, sink) in enumerate(zip(branches, net.sinks, strict=True)):
        _check_branch(design, f"branch {number} of the net {net.name!r}", branch, sink.tokens)
        ends = (start, _cell(design.sites[sink.end.part]))
        if (branch.path[0], branch.path[-1]) != ends:
            raise _wrong(
                design,
                f"branch {number} of the net {net.name!r}",
                f"a way from {ends[0]} to {ends[1]}",
                f"one from {branch.path[0]} to {branch.path[-1]}",
            )
        wires.update(pairwise(branch.path))
    into = Counter(end for _, end in wires)
    if start in into or any(count > 1 for count in into.values()):
        raise _wrong(design, f"the net {net.name!r}", "branches that are a tree", "ways that meet")
    return wires


def _cell(site: Site) -> Cell:
    return (site.row, site.column)


def _check_branch(design: PlacedDesign, what: str, branch: Branch, tokens: int) -> None:
    path = branch.path
    steps = pairwise(path)
    if not path or any(abs(a[0] - b[0]) + abs(a[1] - b[1]) != 1 for a, b in steps):
        raise _wrong(design, what, "a way of cells, each beside the one before", str(path))
    outside = next((cell for cell in path if not _is_cell(design, cell)), None)
    if outside is not None or len(set(path)) < len(path):
        raise _wrong(design, what, "a way inside the fabric, without circles", str(outside or path))
    if branch.latency < len(path):
        raise _wrong(design, what, f"a latency of at least {len(path)}", str(branch.latency))
    least = max(branch.latency + 1, tokens)
    if branch.capacity < least:
        raise _wrong(design, what, f"a capacity of at least {least}", str(branch.capacity))
