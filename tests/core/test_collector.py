"""The search for garbage waits while a design is compiled, and is what it was afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

import t2s
from t2s.core.gc_pause import gc_paused
from t2s.core.types import INT32
from t2s.driver.recognize import design_of


@pytest.fixture(autouse=True)
def _search_as_before() -> Iterator[None]:
    was_on = gc.isenabled()
    yield
    if was_on:
        gc.enable()
    else:
        gc.disable()


def test_it_goes_on_after_the_outermost_block() -> None:
    gc.enable()
    with gc_paused():
        with gc_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_an_error() -> None:
    gc.enable()
    with pytest.raises(KeyError), gc_paused():
        raise KeyError
    assert gc.isenabled()


def test_it_stays_off_if_the_user_has_switched_it_off() -> None:
    gc.disable()
    with gc_paused():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_verbs_leave_it_on_whether_they_succeed_or_not() -> None:
    gc.enable()
    i = t2s.Var("i")
    f = t2s.Func("f", type=INT32)
    f[i] = i + 1
    f.bound(i, 0, 4)
    assert t2s.cycles(f) > 0
    assert gc.isenabled()
    g = t2s.Func("g", type=INT32)
    g[i] = i + 1
    with pytest.raises(t2s.errors.UserError):
        t2s.lower(g)
    assert gc.isenabled()


def test_the_passes_of_lowering_see_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    i = t2s.Var("i")
    f = t2s.Func("f", type=INT32)
    f[i] = i + 1
    f.bound(i, 0, 4)
    design = type(design_of(f))
    lower = design.lower

    def watched(*arguments: object) -> object:
        seen.append(gc.isenabled())
        return lower(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(design, "lower", watched)
    t2s.lower(f)
    assert seen == [False]
