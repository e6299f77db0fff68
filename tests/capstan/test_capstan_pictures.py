"""Pictures of the chip and the pattern tree: complete, small, the same each time."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from t2s.backends.capstan.resources import CHIP, ChipUnit
from t2s.patterns.ir import statements
from t2s.sparse import CapstanKernel, compile
from tests.capstan.kernels import TEN

SVG = "{http://www.w3.org/2000/svg}"


def _kernel(name: str) -> CapstanKernel:
    paper = TEN[name]()
    return compile(paper.result, paper.schedule, target="capstan")


@pytest.mark.parametrize("name", TEN)
def test_owned_units_are_the_rows(name: str) -> None:
    resources = _kernel(name).resources()
    used = Counter[ChipUnit]()
    for one in resources.owned:
        assert one.used > 0
        used[one.unit] += one.used
    assert {row.unit: row.used for row in resources} == {unit: used[unit] for unit in ChipUnit}


def test_units_of_a_product_by_owner() -> None:
    resources = _kernel("SpMV").resources()
    owned = {(one.unit.value, one.owner): one.used for one in resources.owned}
    assert owned["Shuf", "partitions"] == 16
    assert owned["MC", "load A.vals"] == owned["MC", "load A.crd1"] == 16
    assert owned["MC", "store y.vals"] == owned["PMU", "A.pos1"] == 1


@pytest.mark.parametrize("name", TEN)
def test_the_chip(name: str) -> None:
    resources = _kernel(name).resources()
    picture = resources.picture()
    assert picture.svg == _kernel(name).resources().picture().svg
    assert len(picture.svg) < 300_000
    root = ElementTree.fromstring(picture.svg)
    assert root.find(f"{SVG}title") is not None
    assert root.find(f"{SVG}desc") is not None
    assert not root.findall(f".//{SVG}script")
    titles = [found.text or "" for found in root.findall(f".//*/{SVG}title")]
    drawn = Counter(title.split(" ")[0] for title in titles)
    taken = Counter(title.split(" ")[0] for title in titles if not title.endswith(": free"))
    assert drawn == {unit.value: count for unit, count in CHIP.items()}
    assert taken == {row.unit.value: row.used for row in resources if row.used}
    places = [
        (found.tag, *(found.get(key) for key in ("x", "y", "cx", "cy")))
        for found in root
        if found.find(f"{SVG}title") is not None
    ]
    assert len(places) == len(set(places)) == sum(CHIP.values())


def test_a_picture_is_written_and_shown(tmp_path: Path) -> None:
    picture = _kernel("TTV").resources().picture()
    path = picture.write(tmp_path / "chip.svg")
    assert path.read_text(encoding="utf-8") == picture.svg == str(picture) == picture._repr_svg_()
    assert repr(picture) == f"<SvgPicture of {len(picture.svg):,} characters>"


@pytest.mark.parametrize("name", TEN)
def test_the_pattern_tree(name: str) -> None:
    kernel = _kernel(name)
    text = kernel.to_dot()
    assert text == _kernel(name).to_dot()
    program = kernel.patterns()
    names = set(re.findall(r'^ *"([^"]+)" \[shape=(?:house|ellipse)', text, re.MULTILINE))
    assert names == {memory.name for memory in program.declared()}
    patterns = sum(hasattr(one, "header") for one in statements(program.body))
    assert text.count("subgraph cluster_") == patterns + 1
    ends = {end for edge in re.findall(r'"([^"]+)" -> "([^"]+)"', text) for end in edge}
    bodies = {end for end in ends if end.startswith("body ")}
    assert ends - bodies <= names
    assert {int(body.split()[1]) for body in bodies} <= set(range(patterns + 1))
