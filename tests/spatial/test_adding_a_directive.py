"""What t2s/spatial/README.md says it takes to add a directive, held against one that is added here.

``reversing.py`` stands for the file in ``spatial/directives``, ``with_reverse`` adds the line of
the registry, ``ReversibleFunc`` has the method of ``spatial/schedule.py``.  Nothing else changes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Self

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from t2s.core.location import user_location
from t2s.core.types import Type
from t2s.errors import UserError
from t2s.func.func import RVar
from t2s.spatial.directives import registry
from tests.spatial.reversing import Reverse, reverse

ROOT = Path(__file__).resolve().parent.parent.parent


class ReversibleFunc(Func):
    def reverse(self, loop: Var | RVar) -> Self:
        (name,) = self._loops("reverse", loop)
        return self._add(Reverse(loop=name, location=user_location(), text=f"reverse({name})"))


@pytest.fixture
def with_reverse(monkeypatch: pytest.MonkeyPatch) -> None:
    line = registry.in_kernel(Reverse, reverse)
    monkeypatch.setattr(registry, "REGISTRY", (*registry.REGISTRY, line))


def _sum(type: Type) -> tuple[ReversibleFunc, ImageParam, Var, RVar]:
    A, i, k = ImageParam(type, 2, name="A"), Var("i"), RDom(0, 5, name="k")
    C = ReversibleFunc("C")
    C[i] = 0
    C[i] += A[i, k] * k
    return C.bound(i, 1, 6), A, i, k


@pytest.mark.usefixtures("with_reverse")
def test_the_directive_works_like_any_other() -> None:
    C, A, i, k = _sum(Int(32))
    C.reverse(i).reverse(k).isolate_producer(A, Func("loader"))
    nest = t2s.print_loop_nest(C)
    assert "for i in 1..6:                              # backwards by reverse(i)" in nest
    inputs = {"A": np.arange(35, dtype=np.int32).reshape(7, 5)}
    result = t2s.simulate(C, inputs)
    np.testing.assert_array_equal(result.outputs["C"], t2s.interpret(C, inputs))


@pytest.mark.usefixtures("with_reverse")
def test_proofs_of_other_directives_hold_for_it() -> None:
    C, _, _, k = _sum(t2s.Float(32))
    C.reverse(k)
    with pytest.raises(UserError, match="changes the order of a reduction that rounds"):
        t2s.lower(C)


def test_the_list_of_files() -> None:
    text = (ROOT / "t2s" / "spatial" / "README.md").read_text(encoding="utf-8")
    section = text.partition("## Adding a directive")[2].partition("\n## ")[0]
    listed = re.findall(r"^\* `([^`]+)`", section, re.M)
    touched = ["spatial/directives/X.py", _file_of(registry), "spatial/schedule.py"]
    assert listed == touched
    assert "Three files" in section


@pytest.mark.parametrize(("name", "file"), [("Fuse", "loops"), ("Depth", "settings")])
def test_directives_that_are_there_are_known_to_these_files_alone(name: str, file: str) -> None:
    wanted = re.compile(rf"\b{name}\(|import .*\b{name}\b|^    {name},$", re.M)
    folder = ROOT / "t2s" / "spatial"
    found = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if wanted.search(path.read_text(encoding="utf-8"))
    }
    assert found == {f"directives/{file}.py", "directives/registry.py", "schedule.py"}


def _file_of(module: object) -> str:
    return Path(str(getattr(module, "__file__", ""))).relative_to(ROOT / "t2s").as_posix()
