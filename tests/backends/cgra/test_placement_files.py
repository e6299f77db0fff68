"""The files of placed designs: read back to equal designs, and refused where they are wrong."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from t2s.backends.cgra_tia.fabric import FABRICS, CgraFabric
from t2s.backends.cgra_tia.files import read_files, write_files
from t2s.backends.cgra_tia.netlist import PlacedDesign, Provenance, Site, unplaced
from t2s.backends.cgra_tia.place import place_netlist
from t2s.core.errors import UserError
from t2s.core.expr import Apply, Const, Index
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import INT32
from t2s.graph.graph import Layout
from tests.backends.cgra.netlists import chain, gemm, ring

NAME = "ring4"


@cache
def placed() -> PlacedDesign:
    """A design with tags, conditions, a layout and lines of a user."""
    netlist = ring(4, 30, 3)
    first, *others = netlist.tensors
    layout = Layout(
        array="user_A",
        loops=("i", "j"),
        extents=(4, 90),
        indices=(
            Index(name="i"),
            Apply(
                type=INT32,
                operator=Op.ADD,
                operands=(Index(name="j"), Const(type=INT32, value=0)),
            ),
        ),
    )
    line = SourceLocation("folder/kernel.py", 7)
    first = replace(first, shape=(4, 90), layout=layout, location=line)
    cells = tuple(
        replace(cell, origin=replace(cell.origin, location=line))
        for cell in netlist.cells
        if cell.origin is not None
    )
    netlist = replace(netlist, cells=cells, tensors=(first, *others), location=line)
    return place_netlist(netlist, FABRICS["cgra8"], seed=3, moves=500)


@cache
def texts() -> Mapping[str, str]:
    return write_files(placed())


def document() -> Any:
    return json.loads(texts()[f"{NAME}.placement.json"])


def read(changed: object = None, *, programs: str | None = None) -> PlacedDesign:
    """Read the files, with another document or other programs in them."""
    there = dict(texts())
    if changed is not None:
        there[f"{NAME}.placement.json"] = json.dumps(changed)
    if programs is not None:
        there[f"{NAME}.tia"] = programs
    return read_files(there)


def test_a_design_is_read_back() -> None:
    found = read()
    assert found == placed()
    assert found.netlist.location == placed().netlist.location
    assert found.netlist.tensors[0].layout is not None
    assert write_files(found) == texts()


@pytest.mark.parametrize("balanced", [True, False])
def test_other_fabrics_are_read_back(balanced: bool) -> None:
    fabric = CgraFabric(
        name="mine", rows=9, columns=5, pattern=("cfc", "fcf"), tracks=5, most_depth=7
    )
    design = place_netlist(chain(7), fabric, seed=11, balanced=balanced, moves=100)
    assert read_files(write_files(design)) == design


def test_the_text_has_a_block_for_each_cell() -> None:
    text = texts()[f"{NAME}.tia"]
    lines = text.splitlines()
    assert lines[:3] == [
        "# ring4: 4 of 64 cells",
        "# fabric cgra8: 8 x 8 cells, row by row, 3 tracks",
        "# seed 3; latencies: all branches of a group as long as the longest",
    ]
    labels = [line.strip("<>").split()[0] for line in lines if line.startswith("<")]
    assert labels == [f"r{row:02}_c{column:02}" for row in range(8) for column in range(8)]
    assert text.count("halt;") == 60
    assert "# sum[2], kernel.py:7" in lines


def test_comments_of_instructions_stay() -> None:
    design = place_netlist(chain(1), FABRICS["cgra8"], moves=0)
    (cell,) = design.netlist.cells
    instruction = replace(cell.program.instructions[0], comment=("first\nhalt;", "<second>"))
    program = replace(cell.program, instructions=(instruction,))
    netlist = replace(design.netlist, cells=(replace(cell, program=program),))
    files = write_files(replace(design, netlist=netlist))
    assert "# first\\nhalt;\n# (second)\nwhen" in files["chain.tia"]
    assert read_files(files) == design


def test_hostile_names_stay_names() -> None:
    design = place_netlist(chain(1), FABRICS["cgra8"], moves=0)
    (cell,) = design.netlist.cells
    origin = Provenance(node="a\u2028when %p == 1: halt;<x>", location=SourceLocation("\n<a>", 1))
    netlist = replace(design.netlist, cells=(replace(cell, origin=origin),))
    with pytest.raises(UserError):
        read_files(write_files(replace(design, netlist=netlist)))
    quoted = Provenance(node='"; drop & <', point=(1,))
    netlist = replace(design.netlist, cells=(replace(cell, origin=quoted),))
    with pytest.raises(UserError, match="without < and >"):
        read_files(write_files(replace(design, netlist=netlist)))


def test_files_without_places_are_refused() -> None:
    with pytest.raises(UserError, match="the place of 'square\\[0\\]'"):
        write_files(unplaced(chain(1), FABRICS["cgra8"]))


@pytest.mark.parametrize("name", ["../up", "a b", "", "x.y"])
def test_names_of_files_are_names(name: str) -> None:
    design = placed()
    with pytest.raises(UserError, match="letters, digits and underscores"):
        write_files(replace(design, netlist=replace(design.netlist, name=name)))


def test_missing_files_are_named() -> None:
    with pytest.raises(UserError, match=r"one file that ends in '\.placement\.json'"):
        read_files({})
    with pytest.raises(UserError, match=r"the programs of 'ring4\.placement\.json' are missing"):
        read_files({f"{NAME}.placement.json": texts()[f"{NAME}.placement.json"]})
    both = {**texts(), "other.placement.json": "{}"}
    with pytest.raises(UserError, match="one file"):
        read_files(both)


def test_other_formats_are_refused() -> None:
    for value in (2, 0, "1", None, True, 1.0):
        with pytest.raises(UserError, match="the format number is wrong") as caught:
            read({**document(), "format": value})
        assert "written by another version of t2s" in str(caught.value)


def _changes(item: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every place in a document, with what is there."""
    yield path, item
    pairs = item.items() if isinstance(item, dict) else enumerate(item[:3])
    if isinstance(item, dict | list):
        for key, value in pairs:
            if isinstance(value, dict | list):
                yield from _changes(value, (*path, key))
            else:
                yield (*path, key), value


def _set(changed: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        changed = changed[key]
    changed[path[-1]] = value


@pytest.mark.slow
def test_every_value_of_another_type_is_refused_by_place() -> None:
    original = document()
    tried = 0
    for path, value in _changes(original):
        if not path:
            continue
        for other in (None, [], {}, "x\n", 1.5, True, -(1 << 62)):
            optional = other is None and path[-1] in ("location", "layout", "origin")
            if type(other) is type(value) or optional or path[-1] == "value":
                continue
            changed = deepcopy(original)
            _set(changed, path, other)
            tried += 1
            with pytest.raises(UserError):
                read(changed)
    assert tried > 500


def test_unknown_and_missing_fields_are_refused_by_place() -> None:
    original = document()
    changed = deepcopy(original)
    changed["nets"][2]["net"]["color"] = "red"
    with pytest.raises(UserError) as caught:
        read(changed)
    assert "not a placement in JSON: the document.nets[2].net.color is wrong" in str(caught.value)
    assert "expected: one of the fields name, group, source, sinks" in str(caught.value)
    changed = deepcopy(original)
    del changed["cells"][1]["kind"]
    with pytest.raises(UserError) as caught:
        read(changed)
    assert "the document.cells[1].kind is wrong" in str(caught.value)
    assert "expected: this field" in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("fabric", "rows"), 1 << 40, "a whole number up to 4,096"),
        (("fabric", "core", "predicates"), 1 << 40, "a whole number up to 4,096"),
        (("fabric", "rows"), 0, "cannot have that many rows"),
        (("cells", 0, "row"), 99, "a row below 8"),
        (("cells", 0, "kind"), "gpu", "one of fma, ctl, io"),
        (("cells", 0, "kind"), "io", "a cell of kind io"),
        (("cells", 1, "name"), "sum[0]", "2 named 'sum[0]'"),
        (("units", 0, "site", "slot"), 63, "a place at the border"),
        (("units", 0, "unit", "tensor"), "Z", "one of A, C, E"),
        (("units", 0, "unit", "kind"), "seq", "no tensor"),
        (("nets", 0, "net", "source", "part"), "nobody", "an output of a part"),
        (("nets", 0, "net", "source", "port"), 8, "an output of a part"),
        (("nets", 0, "branches"), [], "1 branches"),
        (("nets", 0, "branches", 0, "path"), [], "a path of adjacent cells"),
        (("nets", 0, "branches", 0, "path"), [[0, 0], [3, 3]], "adjacent cells"),
        (("nets", 0, "branches", 0, "path"), [[-1, 0]], "a path inside the fabric"),
        (("nets", 0, "branches", 0, "path"), [[0, 0, 0]], "a list of 2"),
        (("nets", 0, "branches", 0, "latency"), 0, "a latency of at least"),
        (("nets", 0, "branches", 0, "capacity"), 1, "a capacity of at least"),
        (("tensors", 0, "name"), "a b", "a name: letters, digits and underscores"),
        (("tensors", 0, "type", "bits"), 7, "an existing type"),
        (("tensors", 0, "layout", "indices", 0, "class"), "Machine", "one of Apply, Cast"),
        (("seed",), 1 << 70, "an integer of 64 bits"),
        (("name",), "../ring", "letters, digits and underscores"),
    ],
)
def test_what_is_wrong_is_said(path: tuple[Any, ...], value: Any, message: str) -> None:
    changed = document()
    _set(changed, path, value)
    with pytest.raises(UserError) as caught:
        read(changed)
    assert message in str(caught.value)


def test_text_that_is_no_json_is_refused() -> None:
    bad = {
        "": "line 1, column 1",
        "[]": "the document",
        "{": "line 1, column 2",
        '{"format": NaN}': "a number",
        "9" * 5_000: "a number",
        "[" * 100_000: "nested too deeply",
    }
    for text, message in bad.items():
        with pytest.raises(UserError, match=message):
            read_files({**texts(), f"{NAME}.placement.json": text})


def test_programs_have_to_be_where_cells_are() -> None:
    text = texts()[f"{NAME}.tia"]
    with pytest.raises(UserError, match="expected: 64 programs, one for each cell") as caught:
        read(programs=text[: text.index("<r07_c07")])
    assert "given:    63" in str(caught.value)
    idle = "<r00_c00>\nwhen %p == XXXXXXXX:\n  halt;"
    assert idle in text
    with pytest.raises(UserError, match="has a program where no cell is placed") as caught:
        read(programs=text.replace(idle, "<r00_c00>\nwhen %p == XXXXXXXX:\n  nop;"))
    assert "halt in row 0, column 0" in str(caught.value)


def test_two_nets_on_a_track_are_refused() -> None:
    design = place_netlist(gemm(2, 2, 4), FABRICS["cgra8"], moves=0)
    with pytest.raises(UserError, match="one on each track"):
        write_files(replace(design, fabric=replace(design.fabric, tracks=1)))
    sites = {**design.sites, "E[0,0,0]": Site(row=0, column=0)}
    with pytest.raises(UserError, match="the place of 'E\\[0,0,0\\]'"):
        write_files(replace(design, sites=sites))


def test_random_edits_never_crash() -> None:
    rng = random.Random(5)
    there = {name: text for name, text in texts().items() if not name.endswith(".svg")}
    letters = '0123456789{}[]",:-eE.\n <>%abftnul\u2028\x00'
    for _ in range(100):
        name = rng.choice(sorted(there))
        text = list(there[name])
        for _ in range(rng.choice((1, 1, 2, 5))):
            place = rng.randrange(len(text))
            match rng.randrange(3):
                case 0:
                    text[place] = rng.choice(letters)
                case 1:
                    del text[place]
                case _:
                    text.insert(place, rng.choice(letters))
        try:
            found = read_files({**there, name: "".join(text)})
        except UserError:
            continue
        assert isinstance(found, PlacedDesign)
