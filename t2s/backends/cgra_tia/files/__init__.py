"""The files of a placed design: texts to write, and designs of texts that are read.

``write_files`` gives three texts by the names of their files: the programs (``NAME.tia``), all
else (``NAME.placement.json``), and a picture (``NAME.placement.svg``).  ``read_files`` makes an
equal design of the first two.  Refused are texts that are no such files, with the place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from t2s.backends.cgra_tia.files.document import (
    IDLE,
    design_of,
    document_of,
    to_json,
    verify_placement,
)
from t2s.backends.cgra_tia.files.picture import placement_svg
from t2s.backends.cgra_tia.netlist import NetCell, PlacedDesign, Provenance
from t2s.backends.cgra_tia.program import CellProgram
from t2s.backends.cgra_tia.text.checks import check_programs
from t2s.backends.cgra_tia.text.parser import parse_programs
from t2s.backends.cgra_tia.text.printer import print_programs
from t2s.core.errors import UserError
from t2s.core.names import one_line

_TEXT, _PLACEMENT, _PICTURE = ".tia", ".placement.json", ".placement.svg"


def write_files(design: PlacedDesign) -> Mapping[str, str]:
    """The texts of a design by file name, the same bytes on every machine.

    Raises ``UserError`` if the design has no places, or something in it is wrong.
    """
    verify_placement(design)
    name = design.netlist.name
    return {
        f"{name}{_TEXT}": text_of(design),
        f"{name}{_PLACEMENT}": to_json(design),
        f"{name}{_PICTURE}": placement_svg(design),
    }


def read_files(texts: Mapping[str, str]) -> PlacedDesign:
    """The design in the texts of a program file and a placement file, by their names.

    Other files are ignored.  Raises ``UserError``, with the place, for everything that is not as
    ``write_files`` writes it.
    """
    placement = _only(texts, _PLACEMENT)
    name = placement.removesuffix(_PLACEMENT)
    if f"{name}{_TEXT}" not in texts:
        raise UserError(
            f"the programs of {placement!r} are missing",
            expected=f"a file {name + _TEXT!r} beside it",
            given=", ".join(sorted(texts)) or "no files",
        )
    document = document_of(texts[placement])
    text, core = texts[f"{name}{_TEXT}"], document.fabric.core
    programs = parse_programs(text, core, f"{name}{_TEXT}")
    design = design_of(document, programs)
    verify_placement(design)
    check_programs(programs, core, text=text, file=f"{name}{_TEXT}")
    return design


def _only(texts: Mapping[str, str], ending: str) -> str:
    matching = sorted(name for name in texts if name.endswith(ending))
    if len(matching) != 1:
        raise UserError(
            f"there has to be one file that ends in {ending!r}",
            expected=f"the files of one design: NAME{_TEXT} and NAME{_PLACEMENT}",
            given=", ".join(sorted(texts)) or "no files",
        )
    return matching[0]


def text_of(design: PlacedDesign) -> str:
    """The programs of all cells of the fabric, row by row; idle cells have a ``halt``."""
    fabric = design.fabric
    cells = {
        (design.sites[cell.name].row, design.sites[cell.name].column): cell
        for cell in design.netlist.cells
    }
    programs = [
        _labeled(row, column, cells.get((row, column)))
        for row in range(fabric.rows)
        for column in range(fabric.columns)
    ]
    balanced = "all branches of a group as long as the longest" if design.balanced else "as routed"
    header = (
        f"{one_line(design.netlist.name)}: {len(cells)} of {len(programs)} cells",
        f"fabric {one_line(fabric.name)}: {fabric.rows} x {fabric.columns} cells, row by row, "
        f"{fabric.tracks} tracks",
        f"seed {design.seed}; latencies: {balanced}",
    )
    return print_programs(programs, fabric.core, header)


def _labeled(row: int, column: int, cell: NetCell | None) -> CellProgram:
    """A program with a label, and comments where it has none."""
    place = f"r{row:02}_c{column:02}"
    if cell is None:
        return replace(IDLE, label=place)
    comment = () if cell.origin is None else (_comment_of(cell.origin),)
    instructions = tuple(
        replace(item, comment=tuple(map(one_line, item.comment)) or comment)
        for item in cell.program.instructions
    )
    label = f"{place} {one_line(cell.name)}"
    return replace(cell.program, label=label, instructions=instructions)


def _comment_of(origin: Provenance) -> str:
    """The node, the point, and the user's line."""
    point = f"[{', '.join(map(str, origin.point))}]" if origin.point else ""
    where = origin.location
    if where is None:
        return one_line(f"{origin.node}{point}")
    file = where.file.replace("\\", "/").rpartition("/")[2]
    return one_line(f"{origin.node}{point}, {file}:{where.line}: {where.source_line}".rstrip(": "))
