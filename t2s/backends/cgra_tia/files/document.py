"""A placed design as one JSON document: everything but the programs of its cells.

In goes a ``PlacedDesign``, out comes a text, and back, with the programs beside it.  Refused is
what ``records.py`` refuses, files of another format, sizes that no fabric has, and programs that
do not stand where the cells are.

The document is an object; its lists have a line for each tensor, cell, unit and net, so that two
placements can be compared line by line.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from t2s.backends.cgra_tia.fabric import CellKind, CgraFabric
from t2s.backends.cgra_tia.files.records import brief, from_record, malformed, to_record
from t2s.backends.cgra_tia.netlist import (
    Branch,
    CellTurn,
    Net,
    NetCell,
    Netlist,
    PlacedDesign,
    Provenance,
    Site,
    StreamUnit,
)
from t2s.backends.cgra_tia.opcodes import Opcode
from t2s.backends.cgra_tia.program import CellProgram, Instruction, Trigger
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.graph.graph import Tensor

FORMAT = 1

IDLE = CellProgram(instructions=(Instruction(trigger=Trigger(), opcode=Opcode.HALT),))
"""The program of a cell that the design does not use."""

_LARGEST_SIZE = 4_096
"""The most of anything that a fabric in a file has: rows, tracks, registers and so on."""


@dataclass(frozen=True, kw_only=True)
class PlacedCellRecord:
    """A cell, without its program, and its place."""

    name: str
    kind: CellKind
    row: int
    column: int
    origin: Provenance | None = None
    turns: tuple[CellTurn, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PlacedUnitRecord:
    """A stream unit and its place."""

    unit: StreamUnit
    site: Site


@dataclass(frozen=True, kw_only=True)
class RoutedNetRecord:
    """A net and its branches."""

    net: Net
    branches: tuple[Branch, ...]


@dataclass(frozen=True, kw_only=True)
class PlacementDocument:
    """What a placement file holds."""

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
        if field.name == "fabric":  # whole, whatever the defaults are one day
            text = _line(_whole(value))
        elif isinstance(value, tuple):
            text = "[" + ",".join(f"\n  {_line(to_record(item))}" for item in value) + "\n ]"
        else:
            text = _line(to_record(value))
        lines.append(f' "{field.name}": {text}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _line(value: object) -> str:
    return json.dumps(value, allow_nan=False)


def _whole(fabric: CgraFabric) -> object:
    """All fields of a fabric."""

    def every(part: Any) -> dict[str, object]:
        return {item.name: to_record(getattr(part, item.name)) for item in fields(part)}

    return {**every(fabric), "core": every(fabric.core)}


def document_of(text: str) -> PlacementDocument:
    """The document in a text; raises ``UserError`` that names the place of what is wrong."""
    try:
        found = json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise malformed(
            f"line {error.lineno}, column {error.colno}", "JSON text", error.msg
        ) from None
    except RecursionError:
        raise malformed("the document", "a placement", "objects nested too deeply") from None
    except ValueError as error:  # numbers of thousands of digits
        raise malformed("a number", "one of 64 bits", str(error)) from None
    if not isinstance(found, dict):
        raise malformed("the document", "an object", brief(found))
    if type(found.get("format")) is not int or found["format"] != FORMAT:
        raise malformed(
            "the format number",
            str(FORMAT),
            brief(found.get("format")),
            hint="the file was written by another version of t2s: write it again",
        )
    _check_sizes(found.get("fabric"))
    document = from_record(found, PlacementDocument, "the document")
    assert isinstance(document, PlacementDocument)
    return document


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is no number")


def _check_sizes(fabric: object) -> None:
    """Raise ``UserError`` for a fabric so large that nobody could mean it."""
    sizes = [("fabric", fabric)]
    if isinstance(fabric, dict):
        sizes += [("fabric.core", fabric.get("core"))]
    for where, part in sizes:
        for name, value in part.items() if isinstance(part, dict) else ():
            if type(value) is int and not 0 <= value <= _LARGEST_SIZE:
                raise malformed(
                    f"the document.{where}.{name}",
                    f"a whole number up to {_LARGEST_SIZE:,}",
                    brief(value),
                )


def design_of(document: PlacementDocument, programs: Sequence[CellProgram]) -> PlacedDesign:
    """A design of a document and of the programs of all cells of the fabric, row by row.

    Raises ``UserError`` if these are not as many as the fabric has cells, or stand elsewhere.
    """
    fabric = document.fabric
    count = fabric.rows * fabric.columns
    if len(programs) != count:
        raise UserError(
            f"the text of {document.name!r} is not for the fabric of its placement",
            expected=f"{count} programs, one for each cell of {fabric.name!r}, row by row",
            given=str(len(programs)),
        )
    left = dict(enumerate(programs))
    cells, sites = [], {}
    for number, cell in enumerate(document.cells):
        site = Site(row=cell.row, column=cell.column)
        place = cell.row * fabric.columns + cell.column
        inside = 0 <= cell.row < fabric.rows and 0 <= cell.column < fabric.columns
        if not inside or place not in left:
            raise malformed(
                f"the place of cell {number}, {cell.name!r},",
                f"a row below {fabric.rows} and a column below {fabric.columns}, used once",
                f"row {cell.row}, column {cell.column}",
            )
        cells.append(
            NetCell(
                name=cell.name,
                kind=cell.kind,
                program=left.pop(place),
                origin=cell.origin,
                turns=cell.turns,
            )
        )
        sites[cell.name] = site
    for place, program in left.items():
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
