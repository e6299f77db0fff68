"""The Python files of the repository, and what is in them: for tests about the code itself."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "t2s"
TEMPLATES = "templates"
"""The name of folders of text that becomes other programs."""


def files(folder: str) -> list[Path]:
    """The files below a folder of the repository, in order."""
    paths = (ROOT / folder).rglob("*.py")
    return sorted(path for path in paths if TEMPLATES not in path.parts)


@cache
def tree(path: Path) -> ast.Module:
    """A file, parsed once."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def nodes(part: ast.AST) -> tuple[ast.AST, ...]:
    """A part of a file and all that is in it, collected once."""
    return tuple(ast.walk(part))
