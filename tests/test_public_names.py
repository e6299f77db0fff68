"""What is public, and that names of release 0.1 still work, with a warning."""

from __future__ import annotations

import re
import typing
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, Param, Var, external, sparse
from t2s.errors import UserError
from tests.sources import ROOT

PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
PUBLIC = {"t2s", *(f"t2s.{name}" for name in t2s._MODULES), "t2s.external.call"}


def test_there_is_one_face_for_dense_designs() -> None:
    """Types, 14 functions of expressions, memories, verbs; the rest is in modules by audience."""
    assert len(t2s.__all__) <= 50
    assert set(dir(t2s)) >= {*t2s.__all__, *t2s._MODULES}
    assert not {*t2s._RENAMED, "core", "driver", "import_module"} & set(dir(t2s))


def test_pages_import_public_modules_only() -> None:
    imported = {
        (path.name, module)
        for path in PAGES
        for module in re.findall(r"^(?:from|import) (t2s[\w.]*)", path.read_text("utf-8"), re.M)
    }
    assert {(page, module) for page, module in imported if module not in PUBLIC} == set()


def _warned(use: Callable[[], Any]) -> tuple[Any, warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = use()
    assert {str(each.message) for each in caught} == {str(caught[0].message)}
    assert caught[0].category is DeprecationWarning
    return value, caught[0]


def test_old_names_work_and_warn_at_the_users_line() -> None:
    old = {name: (t2s, "t2s", new) for name, new in t2s._RENAMED.items()}
    old |= {
        name: (external, "t2s.external", f"t2s.external.call.{name}")
        for name in external.call.__all__
    }
    assert len(old) == 63
    for name, (module, called, new) in old.items():
        value, warning = _warned(lambda module=module, name=name: getattr(module, name))
        place: Any = t2s
        for part in new.split(".")[1:]:
            place = getattr(place, part)
        assert value is place, name
        assert str(warning.message).startswith(f"{called}.{name} is now {new};")
        assert warning.filename == __file__
    with pytest.raises(AttributeError, match=r"module 't2s\.external' has no attribute 'DataIn'"):
        external.DataIn  # noqa: B018
    from_old, _ = _warned(lambda: __import__("t2s", fromlist=["Parameter"]).Parameter)
    assert from_old is t2s.representation.MatrixParam


def test_inputs_are_a_mapping_in_all_verbs() -> None:
    """Keywords were the inputs of some; they are still taken, with a warning."""
    size, i, w = Param(Int(32), name="N"), Var("i"), ImageParam(Int(32), 1, name="w")
    f = Func("f")
    f[i] = w[i] + 1
    f.bound(i, 0, size)
    inputs = {"N": 4}
    graph = t2s.lower(f, inputs)
    assert f.lower(inputs) == graph
    assert f.print_loop_nest(inputs) == t2s.print_loop_nest(f, inputs)
    uses: list[tuple[Callable[[], Any], Any]] = [
        (lambda: t2s.lower(f, N=4), graph),
        (lambda: f.lower(N=4), graph),
        (lambda: t2s.print_loop_nest(f, N=4), t2s.print_loop_nest(f, inputs)),
        (lambda: f.print_loop_nest(N=4), t2s.print_loop_nest(f, inputs)),
    ]
    for use, expected in uses:
        value, warning = _warned(use)
        assert value == expected
        assert '(design, {"N": ...});' in str(warning.message)
        assert warning.filename == __file__


def test_graphs_write_and_read_themselves() -> None:
    i, w = Var("i"), ImageParam(Int(32), 1, name="w")
    f = Func("f")
    f[i] = 2 * w[i]
    f.bound(i, 0, 4)
    graph = t2s.lower(f)
    assert t2s.Graph.from_json(graph.to_json()) == graph
    assert graph.text().startswith("graph f\n")
    assert graph.summary().startswith("f: ")
    assert graph.to_dot().startswith("digraph ")
    with pytest.raises(UserError, match="needs the text of a graph"):
        t2s.Graph.from_json(None)  # type: ignore[arg-type]


def test_files_are_written_by_emit(tmp_path: Path) -> None:
    y = sparse.parse("y(i) = A(i,j)*x(j)", {"A": "ds"})
    placed = t2s.cgra.place(y, {"A": np.eye(3), "x": np.ones(3)})
    paths = placed.emit(tmp_path / "new")
    again, warning = _warned(lambda: placed.write(tmp_path / "old"))
    assert [p.name for p in again] == [p.name for p in paths]
    assert "placement.write(folder) is now placement.emit(folder)" in str(warning.message)


def test_verbs_tell_an_editor_what_they_return() -> None:
    returned = {
        verb: [use.__annotations__["return"] for use in typing.get_overloads(verb)]
        for verb in (t2s.simulate, t2s.verilate, sparse.compile)
    }
    assert returned == {
        t2s.simulate: ["SimResult", "SparseResult", "ProgramResult", "CapstanResult", "Any"],
        t2s.verilate: ["HardwareResult", "SparseResult", "Any"],
        sparse.compile: ["Kernel", "Kernel | Any", "CapstanKernel", "Kernel | CapstanKernel | Any"],
    }


def test_directives_have_one_meaning_each() -> None:
    """``map`` and ``promote`` are about external functions; patterns of loops had them, too."""
    loops = sparse.Schedule().parallel("j", "reduction", 16).promote_sums()
    assert sparse.schedule("parallel(j,reduction,16), promote_sums()") == loops
    for old in ("map(j,reduction,16), promote_sums()", "parallel(j,reduction,16), promote()"):
        assert _warned(lambda old=old: sparse.schedule(old))[0] == loops
    value, warning = _warned(lambda: sparse.Schedule().map("j", "reduction", 16))
    assert value.promote_sums() == loops
    assert "map(variable, pattern) is now parallel(variable, pattern)" in str(warning.message)
    value, warning = _warned(lambda: sparse.Schedule().parallel("j", "reduction", 16).promote())
    assert value == loops
    assert "promote() is now promote_sums()" in str(warning.message)
