"""A placed design as one JSON document: everything but the programs of its cells.

Writes a ``PlacedDesign`` as text, and reads it back together with the programs.  Refused are
malformed records, files of another format, absurd fabric sizes, and programs that are not where the
cells are.

The document is an object; its lists have a line for each tensor, cell, unit and net, so that two
placements can be compared line by line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from itertools import pairwise
from typing import Any

from t2s.backends.cgra_tia.fabric import CellKind, CgraFabric
from t2s.backends.cgra_tia.netlist import (
    Branch,
    CellTurn,
    Endpoint,
    Net,
    NetCell,
    Netlist,
    PlacedDesign,
    Provenance,
    Site,
    StreamUnit,
    UnitKind,
)
from t2s.backends.cgra_tia.program import CellProgram, Instruction, Opcode, Trigger
from t2s.core.errors import UserError
from t2s.core.expr import Apply, Cast, Const, Index, Parameter, Select
from t2s.core.location import SourceLocation
from t2s.core.names import LONGEST_NAME, is_name
from t2s.core.records import RecordFormat, brief, default_of
from t2s.core.types import Type
from t2s.graph.graph import Layout, Tensor
from t2s.graph.verify_expr import wrong_texts

FORMAT = 1

IDLE = CellProgram(instructions=(Instruction(trigger=Trigger(), opcode=Opcode.HALT),))
"""The program of a cell that the design does not use."""

_LARGEST_SIZE = 4_096
"""The most of anything that a fabric in a file has: rows, tracks, registers and so on."""

_EXPRESSIONS = (Apply, Cast, Const, Index, Parameter, Select)
_NAMED_BY_GRAPHS = (Tensor, Layout, *_EXPRESSIONS)
_NAMED_HERE = (Netlist, NetCell, StreamUnit, Net, Endpoint, Provenance)


def _faults(value: Any) -> Iterator[tuple[str, str, str]]:
    """Types that do not exist, and texts that are not names."""
    if isinstance(value, Type) and not value.exists:
        yield "", "an existing type, such as float64", str(value)
    if isinstance(value, _NAMED_BY_GRAPHS):
        for field, text, wanted in wrong_texts(value):
            yield field, wanted.value, brief(text)
    if isinstance(value, _NAMED_HERE):
        for item in fields(value):
            text = getattr(value, item.name)
            if isinstance(text, str) and not is_part_name(text):
                limit = f"1 to {LONGEST_NAME:,} printable characters, without < and >"
                yield item.name, limit, brief(text)
    if isinstance(value, SourceLocation) and value.line < 0:
        yield "line", "a line of a file", str(value.line)


def is_part_name(text: str) -> bool:
    """Whether a text may be the name of a cell, a unit or a net."""
    return 0 < len(text) <= LONGEST_NAME and text.isprintable() and not set("<>") & set(text)


FILES = RecordFormat(
    what="a placement",
    named=_EXPRESSIONS,
    omits=lambda known, name, value: value == default_of(known, name),
    optional=lambda known, name: default_of(known, name) is not MISSING,
    faults=_faults,
)


@dataclass(frozen=True, kw_only=True)
class PlacedCellRecord:
    """A cell and its site; the program is in the text."""

    name: str
    kind: CellKind
    row: int
    column: int
    origin: Provenance | None = None
    turns: tuple[CellTurn, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PlacedUnitRecord:
    """A stream unit and its site."""

    unit: StreamUnit
    site: Site


@dataclass(frozen=True, kw_only=True)
class RoutedNetRecord:
    """A net and its branches."""

    net: Net
    branches: tuple[Branch, ...]


@dataclass(frozen=True, kw_only=True)
class PlacementDocument:
    """The content of a placement file."""

    format: int
    name: str
    seed: int
    balanced: bool
    fabric: CgraFabric
    tensors: tuple[Tensor, ...]
    cells: tuple[PlacedCellRecord, ...]
    units: tuple[PlacedUnitRecord, ...]
    nets: tuple[RoutedNetRecord, ...]
    location: SourceLocation | None


def to_json(design: PlacedDesign) -> str:
    """The document of a design; equal designs give equal text."""
    netlist, sites = design.netlist, design.sites
    document = PlacementDocument(
        format=FORMAT,
        name=netlist.name,
        seed=design.seed,
        balanced=design.balanced,
        fabric=design.fabric,
        tensors=netlist.tensors,
        cells=tuple(
            PlacedCellRecord(
                name=cell.name,
                kind=cell.kind,
                row=sites[cell.name].row,
                column=sites[cell.name].column,
                origin=cell.origin,
                turns=cell.turns,
            )
            for cell in netlist.cells
        ),
        units=tuple(PlacedUnitRecord(unit=unit, site=sites[unit.name]) for unit in netlist.units),
        nets=tuple(
            RoutedNetRecord(net=net, branches=design.branches[net.name]) for net in netlist.nets
        ),
        location=netlist.location,
    )
    lines = []
    for field in fields(document):
        value: Any = getattr(document, field.name)
        if field.name == "fabric":  # all fields, so that files stay valid if a default changes
            text = _line(_whole(value))
        elif isinstance(value, tuple):
            text = (
                "["
                + ",".join(f"\n  {_line(FILES.write(item, field.name))}" for item in value)
                + "\n ]"
            )
        else:
            text = _line(FILES.write(value, field.name))
        lines.append(f' "{field.name}": {text}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _line(value: object) -> str:
    return json.dumps(value, allow_nan=False)


def _whole(fabric: CgraFabric) -> object:
    """All fields of a fabric."""

    def every(part: Any) -> dict[str, object]:
        return {
            item.name: FILES.write(getattr(part, item.name), item.name) for item in fields(part)
        }

    return {**every(fabric), "core": every(fabric.core)}


def document_of(text: str) -> PlacementDocument:
    """The document in a text; raises ``UserError`` that locates what is wrong."""
    try:
        data = json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise FILES.malformed(
            f"line {error.lineno}, column {error.colno}", "JSON text", error.msg
        ) from None
    except RecursionError:
        raise FILES.malformed("the document", "a placement", "objects nested too deeply") from None
    except ValueError as error:  # numbers of thousands of digits
        raise FILES.malformed("a number", "one of 64 bits", str(error)) from None
    if not isinstance(data, dict):
        raise FILES.malformed("the document", "an object", brief(data))
    if type(data.get("format")) is not int or data["format"] != FORMAT:
        raise FILES.malformed(
            "the format number",
            str(FORMAT),
            brief(data.get("format")),
            hint="the file was written by another version of t2s: write it again",
        )
    _check_sizes(data.get("fabric"))
    document = FILES.read(data, PlacementDocument, "the document")
    assert isinstance(document, PlacementDocument)
    return document


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is not a number")


def _check_sizes(fabric: object) -> None:
    """Raise ``UserError`` for an implausibly large fabric."""
    sizes = [("fabric", fabric)]
    if isinstance(fabric, dict):
        sizes += [("fabric.core", fabric.get("core"))]
    for where, part in sizes:
        for name, value in part.items() if isinstance(part, dict) else ():
            if type(value) is int and not 0 <= value <= _LARGEST_SIZE:
                raise FILES.malformed(
                    f"the document.{where}.{name}",
                    f"a whole number up to {_LARGEST_SIZE:,}",
                    brief(value),
                )


def design_of(document: PlacementDocument, programs: Sequence[CellProgram]) -> PlacedDesign:
    """The design of a document and of the programs of all cells of the fabric, row by row.

    Raises ``UserError`` if there is not one program for each cell, or if one is at another site.
    """
    fabric = document.fabric
    count = fabric.rows * fabric.columns
    if len(programs) != count:
        raise UserError(
            f"the text of {document.name!r} is not for the fabric of its placement",
            expected=f"{count} programs, one for each cell of {fabric.name!r}, row by row",
            given=str(len(programs)),
        )
    unused = dict(enumerate(programs))
    cells, sites = [], {}
    for number, cell in enumerate(document.cells):
        site = Site(row=cell.row, column=cell.column)
        place = cell.row * fabric.columns + cell.column
        inside = 0 <= cell.row < fabric.rows and 0 <= cell.column < fabric.columns
        if not inside or place not in unused:
            raise FILES.malformed(
                f"the place of cell {number}, {cell.name!r},",
                f"a row below {fabric.rows} and a column below {fabric.columns}, used once",
                f"row {cell.row}, column {cell.column}",
            )
        cells.append(
            NetCell(
                name=cell.name,
                kind=cell.kind,
                program=unused.pop(place),
                origin=cell.origin,
                turns=cell.turns,
            )
        )
        sites[cell.name] = site
    for place, program in unused.items():
        if program != IDLE:
            row, column = divmod(place, fabric.columns)
            raise UserError(
                f"the text of {document.name!r} has a program where no cell is placed",
                expected=f"halt in row {row}, column {column}, or a cell there in the placement",
                given=f"{len(program.instructions)} instructions under {program.label!r}",
            )
    return PlacedDesign(
        netlist=Netlist(
            name=document.name,
            cells=tuple(cells),
            units=tuple(record.unit for record in document.units),
            nets=tuple(record.net for record in document.nets),
            tensors=document.tensors,
            location=document.location,
        ),
        fabric=fabric,
        sites={**sites, **{record.unit.name: record.site for record in document.units}},
        branches={record.net.name: record.branches for record in document.nets},
        seed=document.seed,
        balanced=document.balanced,
    )


# Whether a placed design is one: sites, ports, trees, tracks.  For designs that are read.
#
# ``UserError`` names the first mistake.  Programs are checked where they are read and wired.

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
    """Raise ``UserError`` if a design breaks a rule of ``netlist.py``."""
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
        valid = site is not None and 0 <= place < len(border)
        if site is None or not valid or border[place] != (site.row, site.column):
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
    """The wires of a net; raises ``UserError`` if they are not a tree, or end elsewhere."""
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
                f"a path from {ends[0]} to {ends[1]}",
                f"one from {branch.path[0]} to {branch.path[-1]}",
            )
        wires.update(pairwise(branch.path))
    into = Counter(end for _, end in wires)
    if start in into or any(count > 1 for count in into.values()):
        raise _wrong(design, f"the net {net.name!r}", "branches that are a tree", "paths that meet")
    return wires


def _cell(site: Site) -> Cell:
    return (site.row, site.column)


def _check_branch(design: PlacedDesign, what: str, branch: Branch, tokens: int) -> None:
    path = branch.path
    steps = pairwise(path)
    if not path or any(abs(a[0] - b[0]) + abs(a[1] - b[1]) != 1 for a, b in steps):
        raise _wrong(design, what, "a path of adjacent cells", str(path))
    outside = next((cell for cell in path if not _is_cell(design, cell)), None)
    if outside is not None or len(set(path)) < len(path):
        raise _wrong(design, what, "a path inside the fabric, without cycles", str(outside or path))
    if branch.latency < len(path):
        raise _wrong(design, what, f"a latency of at least {len(path)}", str(branch.latency))
    least = max(branch.latency + 1, tokens)
    if branch.capacity < least:
        raise _wrong(design, what, f"a capacity of at least {least}", str(branch.capacity))
