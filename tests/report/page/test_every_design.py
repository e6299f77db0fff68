"""Every kind of design that ``simulate`` takes has a page, with the numbers of its result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Func, Int, Var
from t2s.driver.many import runs_of
from t2s.representation import MatrixParam, gallery
from tests.report.page.designs import inputs_of, product
from tests.report.page.reading import shown

MATRIX = np.arange(80, dtype=np.float32).reshape(8, 10) % 3


def several_funcs() -> Any:
    A, i = t2s.ImageParam(Int(32), 1, name="A"), Var("i")
    first, second = t2s.funcs("first second")
    first[i], second[i] = A[i] + 1, A[i] * 2
    both: list[Func] = [first.bound(i, 0, 8), second.bound(i, 0, 8)]
    return t2s.simulate(both, {"A": np.arange(8, dtype=np.int32)})


def representation() -> Any:
    A = MatrixParam(t2s.Float(32), 2, gallery.csr(2), name="A")
    x = t2s.ImageParam(t2s.Float(32), 1, name="x")
    p, q, r = Var("p"), t2s.RDom(0, A.values.extent(1), name="q"), Var("r")
    i, j = A.inverse_map(p, q)
    y = Func("y")
    y[r] = 0.0
    y[i] += A.values[p, q] * x[j]
    return t2s.simulate(y, {"A": MATRIX, "x": np.ones(10, np.float32)})


def sparse(target: str) -> Any:
    y = t2s.sparse.parse("y(i)=A(i,j)*x(j)", ["A:ds"])
    inputs = {"A": MATRIX.astype(float), "x": np.ones(10)}
    if target == "placed":
        return t2s.simulate(t2s.cgra.place(y, inputs), inputs)
    if target == "capstan":
        return t2s.sparse.compile(y, target="capstan").simulate(inputs)
    return t2s.simulate(y, inputs)


DESIGNS: dict[str, Callable[[], Any]] = {
    "a Func": lambda: t2s.simulate(product(), inputs_of()),
    "several Funcs": several_funcs,
    "a graph": lambda: t2s.simulate(t2s.lower(product()), inputs_of()),
    "a representation": representation,
    "streams": lambda: sparse("streams"),
    "a placement": lambda: sparse("placed"),
    "Capstan": lambda: sparse("capstan"),
    "a run with a DRAM": lambda: t2s.simulate(product(), inputs_of(), memory="ddr4-2133"),
    "a run cut short": lambda: t2s.simulate(product(), inputs_of(), max_cycles=9),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_every_design_has_a_page(name: str, tmp_path: Path) -> None:
    result = DESIGNS[name]()
    page = result.report(tmp_path / "page.html")
    text = " ".join(shown(page).split())
    for run in runs_of(result, "simulated"):
        for label, value in run.summary:
            assert f"{label} {' '.join(value.split())}" in text
        for row in run.stalls.table.rows:
            assert " ".join(" ".join(row).split()) in text
        assert ("cut short" in text) != run.finished
    for title in ("Where the cycles went", "Space and time", "The array as it lies", "Resources"):
        assert title in text
