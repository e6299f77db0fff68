"""Every function or method that a hint names exists, and belongs to what the hint says it does."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import inspect
import pathlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx.version_converter
import pytest

import t2s
from t2s import external, sparse
from t2s.representation import Chain, Representation, gallery
from t2s.simulator.devices import Device

ROOT = Path(t2s.__file__).parent
CALL = re.compile(r"((?:[A-Za-z_]\w*\.)*\.?)([A-Za-z_]\w*)\(")
# what stands before the dot; a name of the user's, or nothing, is a Func, a schedule or a chain
OWNERS: dict[str, Any] = {
    "t2s": t2s,
    "t2s.sparse": sparse,
    "t2s.representation": t2s.representation,
    "external": external,
    "sparse": sparse,
    "placement": t2s.cgra.Placement,
    "t2s.representation.gallery": gallery,
    "dataclasses": dataclasses,
    "pathlib": pathlib,
    "array": np.ma.MaskedArray,
    "matrix": np.ndarray,
    "device": Device,
    "kernel": sparse.Kernel,
    "plan": external.ExternalPlan,
    "Type": t2s.Type,
    "onnx.version_converter": onnx.version_converter,
}
ANY = (t2s.Func, sparse.Kernel, sparse.Schedule, Chain, Representation)


def hints_of(path: Path) -> Iterator[tuple[int, str]]:
    """The literal parts of the hints of a file, also of functions of the file that make one."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    hints = [n.value for n in ast.walk(tree) if isinstance(n, ast.keyword) and n.arg == "hint"]
    for hint in hints:
        yield from literals(hint)
        for part in ast.walk(hint):
            called = part.func if isinstance(part, ast.Call) else None
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", None)
            for returned in ast.walk(functions[name]) if name in functions else ():
                if isinstance(returned, ast.Return) and returned.value is not None:
                    yield from literals(returned.value)


def literals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for part in ast.walk(tree):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.lineno, part.value


@cache
def methods() -> frozenset[str]:
    return frozenset(name for owner in ANY for name in dir(owner) if not name.startswith("_"))


def exists(before: str, name: str) -> bool:
    owner = before.rstrip(".")
    if owner in OWNERS:
        return callable(getattr(OWNERS[owner], name, None))
    if before:  # the user's own object
        return name in methods()
    known = (t2s, sparse, builtins)
    return name in methods() or any(callable(getattr(room, name, None)) for room in known)


def unknown(text: str) -> list[str]:
    """The calls in a hint that would not work."""
    return [match[0] for match in CALL.finditer(text) if not exists(match[1], match[2])]


@pytest.mark.slow
@pytest.mark.parametrize("folder", sorted(p for p in ROOT.iterdir() if p.suffix in ("", ".py")))
def test_hints_name_what_there_is(folder: Path) -> None:
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]
    wrong = [
        (path.name, line, call)
        for path in files
        for line, text in hints_of(path)
        for call in unknown(text)
    ]
    assert wrong == []


@pytest.mark.slow
def test_hints_are_found_and_wrong_ones_noticed() -> None:
    texts = [text for path in ROOT.rglob("*.py") for _, text in hints_of(path)]
    assert sum(1 for text in texts if CALL.search(text)) > 40
    assert unknown("use t2s.cast(x), or F.split(i)") == []
    assert unknown("use t2s.no_such(x)") == ["t2s.no_such("]
    assert unknown("C.deepen(3), then device.unroll(i)") == ["C.deepen(", "device.unroll("]
    assert inspect.isfunction(t2s.cast)
