"""Searches that are refused: definitions, budgets, and designs of which none is legal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import t2s
from t2s import Float, Func, ImageParam, Int, RDom
from t2s.design_space.journal import Outcome
from t2s.driver.search_trial import ContractionTrial
from t2s.errors import UserError
from tests.design_space.contractions import convolution, gemm, mttkrp


def _with_directives() -> Func:
    func = gemm(8, 8, 8)
    return func.reorder(*t2s.variables("j i"))


def _histogram() -> Func:
    x, h, v = ImageParam(Int(32), 1, name="x"), Func("h"), t2s.Var("v")
    k = RDom(0, 16, name="k")
    h[v] = 0
    h[x[k]] += 1
    return h.bound(v, 0, 8)


def _triangle() -> Func:
    x, s, i = ImageParam(Float(32), 1, name="x"), Func("s"), t2s.Var("i")
    k = RDom(0, i + 1, name="k")
    s[i] = 0.0
    s[i] += x[k]
    return s.bound(i, 0, 8)


def _without_domain() -> Func:
    x, y, i = ImageParam(Float(32), 1, name="x"), Func("y"), t2s.Var("i")
    y[i] = x[i]
    y[i] += x[i + 1]
    return y.bound(i, 0, 8)


def _of_its_neighbor() -> Func:
    x, y, i = ImageParam(Float(32), 2, name="x"), Func("y"), t2s.Var("i")
    k = RDom(0, 8, name="k")
    y[i] = 0.0
    y[i] += x[i, k] + y[0]
    return y.bound(i, 0, 8)


def _from_memory() -> Func:
    x, at = ImageParam(Float(32), 1, name="x", shape=(9,)), ImageParam(Int(32), 1, name="at")
    y, i = Func("y"), t2s.Var("i")
    y[i] = x[t2s.max(t2s.min(at[i], 8), 0)]
    return y.bound(i, 0, 8)


def _rectified() -> Func:
    product, y = gemm(8, 8, 8), Func("y")
    i, j = t2s.variables("i j")
    y[i, j] = t2s.max(product[i, j], 0.0)
    return y.bound(i, 0, 8).bound(j, 0, 8)


REFUSED = (
    (_without_domain, "the update of y has no RDom"),
    (_of_its_neighbor, "y is not a reduction over a box"),
    (_from_memory, "y reads x at places that at has"),
    (_rectified, "y needs other Funcs with hardware of their own"),
    (_with_directives, "C has directives already"),
    (_histogram, "this update of h writes to computed places"),
    (_triangle, "the loop k of s has bounds that depend on other loops"),
)


def test_definitions_that_are_refused() -> None:
    for make, text in REFUSED:
        with pytest.raises(UserError, match=text) as caught:
            t2s.search(make())
        assert caught.value.location is not None
        assert Path(caught.value.location.file).name == Path(__file__).name


def test_the_hint_for_an_input_that_is_read_twice() -> None:
    x, copy, s = ImageParam(Float(32), 1, name="x"), Func("x_2"), Func("s")
    i, e = t2s.variables("i e")
    k = RDom(0, 4, name="k")
    copy[e] = x[e]
    s[i] = 0.0
    s[i] += x[i + k] * copy[k]
    s.bound(i, 0, 8)
    assert t2s.search(s, dsp=4, seconds=0.5, progress=False).cycles > 0


def test_budgets_that_nothing_fits() -> None:
    """Which limit is too low, and the nearest budget that is not: the hint works."""
    for func, budget, short in (
        (gemm(8, 8, 8), {"dsp": 0}, "DSP"),
        (mttkrp(6, 5, (4, 8)), {"dsp": 1, "ram": 2}, "DSP and RAM"),
        (convolution((1, 4, 4, 3), 2, 4), {"ram": 1}, "RAM"),
    ):
        with pytest.raises(UserError, match=f"no design of {func.name} fits the budget") as caught:
            t2s.search(func, budget=budget, progress=False)
        error = caught.value
        assert f"too few {short} blocks for any design" in str(error.given)
        hint = re.fullmatch(r"the nearest budget .* is dsp=(\d+), ram=(\d+)", str(error.hint))
        assert hint is not None
        dsp, ram = map(int, hint.groups())
        found = t2s.search(func, dsp=dsp, ram=ram, seconds=0.1, progress=False)
        assert (found.best.dsp <= dsp, found.best.ram <= ram) == (True, True)
        for less in ({"dsp": dsp - 1, "ram": ram}, {"dsp": dsp, "ram": ram - 1}):
            if budget.get("dsp", 9999) < less["dsp"] + 1 or budget.get("ram", 9999) <= less["ram"]:
                continue
            with pytest.raises(UserError, match="fits the budget"):
                t2s.search(func, progress=False, **less)


def test_a_search_whose_designs_are_all_refused_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Outcome(refusal="no room for it")
    monkeypatch.setattr(ContractionTrial, "outcome", lambda trial, point, cut: refused)
    with pytest.raises(UserError, match="no design of C fits the budget") as caught:
        t2s.search(gemm(64, 48, 96), dsp=64, seconds=0.2, progress=False)
    assert "designs that were tried: no room for it" in str(caught.value)
