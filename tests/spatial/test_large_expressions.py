"""Expressions that are shared, deep or both: the work follows what the user wrote."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, Var
from t2s.core.expr import Index, Local, evaluate
from t2s.core.let_binding import DEEP, bind_shared, depth_of
from t2s.core.ops import Op
from t2s.core.walk import walk
from t2s.graph.body import Let
from tests.spatial.agreement import agree

i = Var("i")


def pyramid(levels: int, *, guarded: bool = False) -> Func:
    """Funcs that each read the one before twice."""
    before: Any = ImageParam(Int(32), 1, name="A")
    for level in range(levels):
        func = Func(f"G{level}")
        other = t2s.select(i % 2 == 0, before[i], before[i + 1]) if guarded else before[i + 1]
        func[i] = before[i] + other
        before = func
    result: Func = before.bound(i, 0, 4)
    return result


@pytest.mark.slow
@pytest.mark.parametrize(
    ("levels", "guarded"), [(3, False), (12, False), (20, False), (3, True), (8, True)]
)
def test_funcs_that_read_the_one_before_twice(levels: int, guarded: bool) -> None:
    """Elements that are read several times are computed once: one adder for each."""
    func = pyramid(levels, guarded=guarded)
    begin = time.process_time()
    graph = agree(func)
    assert time.process_time() - begin < 60
    inputs = len(graph.inputs_of(func.name))
    assert inputs <= 4 * levels if guarded else inputs == levels + 1
    adders = sum(
        1 for statement in graph.node(func.name).body for _ in walk(statement)
        if getattr(_, "operator", None) is Op.ADD
    )  # fmt: skip
    if levels > 3 and not guarded:
        assert adders <= levels * (levels + 1)


def test_a_value_that_the_user_doubles_forty_times() -> None:
    x, F = ImageParam(Int(32), 1, name="x"), Func("F")
    value = x[i]
    for _ in range(40):
        value = value + value
    F[i] = value + x[i]
    graph = agree(F.bound(i, 0, 3))
    assert len(graph.node("F").body) < 50
    assert len(str(t2s.print_loop_nest(F))) < 100_000


TERMS: dict[str, Callable[[Any, int], Any]] = {
    "one element": lambda x, n: x[i],
    "neighbors": lambda x, n: x[i + n % 50],
    "weights": lambda x, n: x[i] * n,
    "choices": lambda x, n: t2s.select(i == n, x[i], n),
}


@pytest.mark.slow
@pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)
def test_a_sum_of_thousands_of_terms(term: Callable[[Any, int], Any]) -> None:
    x, F = ImageParam(Int(32), 1, name="x"), Func("F")
    value = term(x, 0)
    for n in range(1, 700):
        value = value + term(x, n)
    F[i] = value
    graph = agree(F.bound(i, 0, 2))
    assert "..." in t2s.print_loop_nest(F)
    assert all(depth_of(statement) <= DEEP for statement in graph.node("F").body)


@pytest.mark.slow
def test_choices_inside_of_one_another() -> None:
    x, F = ImageParam(Int(32), 1, name="x"), Func("F")
    value = x[i]
    for n in range(250):
        value = t2s.select(x[i] == n, n + 1, value)
    F[i] = value
    agree(F.bound(i, 0, 2))


def test_parts_compute_the_value() -> None:
    value: Any = Index(name="i")
    for _ in range(3 * DEEP):
        value = value + Index(name="j")
    names = iter(f"part{n}" for n in range(100))
    parts, left = bind_shared(value, lambda: next(names))
    known = {"i": np.int32(5), "j": np.int32(2)}
    for name, part in parts:
        assert depth_of(part) <= DEEP
        known[name] = evaluate(part, dict(known))
    assert len(parts) > 3
    assert evaluate(left, dict(known)) == 5 + 2 * 3 * DEEP
    assert bind_shared(Local(name="x", type=value.type), lambda: "y") == (
        [],
        Local(name="x", type=value.type),
    )


def test_usual_values_stay_in_one_piece() -> None:
    x, F = ImageParam(Int(32), 1, name="x"), Func("F")
    y = x[i] * 3
    F[i] = y * y + y
    body = F.bound(i, 0, 2).lower().node("F").body
    assert not [statement for statement in body if isinstance(statement, Let)]
