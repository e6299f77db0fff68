"""Data flows one way through the rooms of the spatial front end."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.sampling import sampled
from tests.sources import PACKAGE, tree

SPATIAL = PACKAGE / "spatial"

# what the files of a room, or a file, may import of the rooms and files of ``t2s/spatial``
PROGRAM = frozenset({"directive", "ir"})
MAY_IMPORT = {
    "analysis": PROGRAM | {"inline"},
    "directives": PROGRAM | {"analysis", "inline", "kernels"},
    "lowering": PROGRAM | {"analysis", "kernels"},
}


def _imported(path: Path) -> set[str]:
    modules = (
        node.module or "" for node in ast.walk(tree(path)) if isinstance(node, ast.ImportFrom)
    )
    return {module.split(".")[2] for module in modules if module.startswith("t2s.spatial.")}


@sampled("room", sorted(MAY_IMPORT), quick=2)
def test_rooms(room: str) -> None:
    wrong = {
        f"{room}/{path.name} imports {name}"
        for path in (SPATIAL / room).glob("*.py")
        for name in _imported(path) - MAY_IMPORT[room] - {room}
    }
    assert not wrong


def test_the_program_knows_no_directive_but_those_that_make_functions() -> None:
    for name in PROGRAM:
        assert _imported(SPATIAL / f"{name}.py") <= PROGRAM, name


def test_rooms_are_all_named() -> None:
    rooms = {path.parent.name for path in SPATIAL.glob("*/*.py")}
    assert rooms == set(MAY_IMPORT)
