"""The house as a stranger finds it: no circles of imports, and pages that say where things are.

``test_layering.py`` says who may import whom; this is about what holds for all files alike.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import Golden
from tests.sources import ROOT, files, nodes, tree

pytestmark = [pytest.mark.slow, pytest.mark.structure]  # run with the linters

TEXT_OF_BACKENDS = tuple(
    f"t2s/backends/text/{name}.py" for name in ("__init__", "expressions", "identifiers")
)

ROOMS = sorted(path.parent for path in (ROOT / "t2s").rglob("README.md"))
"""Folders of the package with a page about them."""

PAGES = [*sorted((ROOT / "docs").glob("*.md")), *(room / "README.md" for room in ROOMS)]
FILES = "<!-- files -->\n"


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
        case ast.Constant(value=str() as text) if re.fullmatch(r"t2s\.[\w.]+", text):
            yield text


WRITERS = {"t2s.graph.graph": {"t2s.graph.printer", "t2s.graph.serialize"}}
"""``graph.text()`` and ``graph.to_json()`` are by modules that know all classes of a graph."""


def _imported(module: str) -> set[str]:
    """The modules of t2s that one names, wherever: in functions and under TYPE_CHECKING too."""
    found = set()
    for node in nodes(tree(_sources()[module])):
        for name in _named(node):
            longest = name
            while longest and longest not in _sources():
                longest = longest.rpartition(".")[0]
            found.add(longest)
    return found - {"", "t2s", module} - WRITERS.get(module, set())


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


def test_every_file_is_in_a_room_with_a_page() -> None:
    homeless = [
        path.relative_to(ROOT).as_posix()
        for path in _sources().values()
        if path.parent not in (ROOT / "t2s", ROOT / "t2s" / "external")
        and not any(room in path.parents for room in ROOMS)
    ]
    assert homeless == ["t2s/backends/__init__.py", "t2s/backends/base.py", *TEXT_OF_BACKENDS]


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(room.relative_to(ROOT)))
def test_a_room_lists_its_files(room: Path, golden: Golden) -> None:
    """The page of a room ends with a line for each file: what its docstring says first."""
    page = room / "README.md"
    before, mark, _ = page.read_text(encoding="utf-8").partition(FILES)
    rows = []
    for path in files(room.relative_to(ROOT).as_posix()):
        summary = (ast.get_docstring(tree(path)) or "").partition("\n\n")[0].replace("\n", " ")
        rows.append(
            f"| `{path.relative_to(room).as_posix()}` | {summary.replace('|', '&#124;')} |\n"
        )
    text = before + FILES + "\n| file | what it is |\n|---|---|\n" + "".join(rows)
    assert mark
    golden(f"../../{page.relative_to(ROOT).as_posix()}", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_name_files_that_are_there(page: Path) -> None:
    """Every Python file of the package that a page names in backquotes exists."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL).replace("/X.py", "")
    there = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py")]
    missing = [
        name
        for name in re.findall(r"`([\w./]+\.py)`", text)
        if not any(path == name or path.endswith(f"/{name}") for path in there)
    ]
    assert missing == []
