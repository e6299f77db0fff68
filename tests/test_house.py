"""The house as a stranger finds it: no circles of imports, no name for two things, few files.

``test_layering.py`` says who may import whom; this is about what holds for all files alike.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.sources import ROOT, files, nodes, tree

pytestmark = [pytest.mark.slow, pytest.mark.structure]  # run with the linters

MOST_FILES = 510
"""Beside the rooms of the CGRA, Capstan, external functions and the report page."""

MOST_FILES_OF_THE_CGRA = 105
MOST_FILES_OF_CAPSTAN = 70
ROOM_OF_CAPSTAN = (
    "t2s.backends.capstan",
    "t2s.driver.capstan",
    "t2s.patterns",
    "t2s.sparse_repr.stardust",
)
MOST_FILES_OF_EXTERNAL = 90
ROOM_OF_EXTERNAL = (
    "t2s.capability",
    "t2s.driver.external",
    "t2s.driver.plan",
    "t2s.external",
    "t2s.libraries",
    "t2s.loops",
    "t2s.plan",
    "t2s.sparse_repr.concrete.external",
    "t2s.sparse_repr.notation.tags",
)
MOST_FILES_OF_THE_PAGE = 40
TWO_AUDIENCES = {"Index", "Parameter", "Place", "Tensor"}
"""Names of the graph, which stand in its files, and of a user's thing in a front end."""

PAGES = sorted(path.name for path in (ROOT / "docs").glob("*.md"))


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def _sources() -> dict[str, Path]:
    return {_module(path): path for path in files("t2s")}


def _named(node: ast.AST) -> Iterator[str]:
    """Dotted names that a part of a file may import: statements, and texts that are modules."""
    match node:
        case ast.ImportFrom(module=str() as base):
            yield from (f"{base}.{alias.name}" for alias in node.names)
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.Constant(value=str() as text) if text.startswith("t2s."):
            yield text


def _imported(module: str) -> set[str]:
    """The modules of t2s that one names, wherever: in functions and under TYPE_CHECKING too."""
    found = set()
    for node in nodes(tree(_sources()[module])):
        for name in _named(node):
            longest = name
            while longest and longest not in _sources():
                longest = longest.rpartition(".")[0]
            found.add(longest)
    return found - {"", "t2s", module}


def _circles() -> list[list[str]]:
    """Modules that import one another, in a circle of any length."""
    reach = {module: _imported(module) for module in _sources()}
    changed = True
    while changed:
        changed = False
        for found in reach.values():
            further = set[str]().union(*(reach[other] for other in found)) - found
            if further:
                found |= further
                changed = True
    circles = {
        tuple(sorted(other for other in reach if module in reach[other] and other in reach[module]))
        for module in reach
        if module in reach[module]
    }
    return sorted(map(list, circles))


def test_imports_have_no_circles() -> None:
    assert _circles() == []


def test_every_class_has_a_name_of_its_own() -> None:
    places = defaultdict(list)
    for module in _sources():
        for node in nodes(tree(_sources()[module])):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module)
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert {name: found for name, found in twice.items() if name not in TWO_AUDIENCES} == {}


def test_no_two_files_have_names_that_differ_by_an_s() -> None:
    stems = {path.stem for path in _sources().values()}
    assert sorted(stem for stem in stems if f"{stem}s" in stems) == []


def test_files_are_few() -> None:
    cgra = [module for module in _sources() if module.startswith("t2s.backends.cgra_tia")]
    assert len(cgra) <= MOST_FILES_OF_THE_CGRA
    capstan = [module for module in _sources() if module.startswith(ROOM_OF_CAPSTAN)]
    assert len(capstan) <= MOST_FILES_OF_CAPSTAN
    external = [module for module in _sources() if module.startswith(ROOM_OF_EXTERNAL)]
    assert len(external) <= MOST_FILES_OF_EXTERNAL
    page = [module for module in _sources() if module.startswith("t2s.report.page")]
    assert len(page) <= MOST_FILES_OF_THE_PAGE
    rooms = (cgra, capstan, external, page)
    assert len(_sources()) - sum(map(len, rooms)) <= MOST_FILES


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_files_that_are_there(page: str) -> None:
    """Every Python file of the package that a page names in backquotes exists."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL).replace("/X.py", "")
    there = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py")]
    missing = [
        name
        for name in re.findall(r"`([\w./]+\.py)`", text)
        if not any(path == name or path.endswith(f"/{name}") for path in there)
    ]
    assert missing == []
