"""Reads whose conditions contradict one another are not a part of a design."""

from __future__ import annotations

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, RDom
from t2s.func.expressions import Expression
from t2s.graph.nodes import Role
from tests.func.recurrences import recurrences
from tests.spatial.agreement import agree

s, i = t2s.variables("s i")


def stages(unrolled: bool) -> Func:
    x, out = ImageParam(Int(32), 1, name="x"), Func("out")
    (V,) = recurrences("V", Int(32))

    def old(by: int) -> Expression:
        return t2s.select(s == 0, x[i + by], V[s - 1, i])

    V[s, i] = t2s.select(s == 1, old(1) + 1, old(0))
    out[i] = V[2, i]
    V.bound(s, 0, 3)
    if unrolled:
        V.unroll(s)
    return out.bound(i, 0, 4)


@pytest.mark.parametrize("unrolled", [False, True])
def test_a_read_that_never_happens_has_no_load_unit(unrolled: bool) -> None:
    """x[i + 1] would be read where s is 1 and 0."""
    graph = agree(stages(unrolled))
    assert [node.name for node in graph.nodes if node.role is Role.LOAD] == ["V_load_x"]
    assert graph.tensor("x").shape == (4,)
    result = t2s.simulate(graph, {"x": np.arange(4, dtype=np.int32) * 10})
    assert result.outputs["out"].tolist() == [1, 11, 21, 31]
    assert result.nodes["V_load_x"].firings == 4


def test_a_read_outside_of_the_domain() -> None:
    x, F = ImageParam(Int(32), 1, name="x"), Func("F")
    F[i] = t2s.select(i < 4, x[i], x[i - 4]) + t2s.select(i >= 0, 1, x[i + 9])
    graph = agree(F.bound(i, 0, 4))
    assert [node.name for node in graph.nodes if node.role is Role.LOAD] == ["F_load_x"]
    assert graph.tensor("x").shape == (4,)


def test_reads_that_may_happen_stay() -> None:
    x, F = ImageParam(Int(32), 1, name="x"), Func("F")
    F[i] = t2s.select(i % 2 == 0, t2s.select(i >= 2, x[i - 2], 0), x[i + 1])
    agree(F.bound(i, 0, 6))


def test_an_input_that_is_never_read_has_the_shape_of_the_reads_as_written() -> None:
    """So a design of symbolic size takes its inputs for every size."""
    far, F = ImageParam(Int(32), 1, name="far"), Func("F")
    F[i] = t2s.select(i > 7, far[i], 1)
    graph = agree(F.bound(i, 0, 4))
    assert graph.tensor("far").shape == (4,)
    assert not [node.name for node in graph.nodes if node.role is Role.LOAD]


def test_an_input_that_is_never_read_for_a_size_of_one() -> None:
    """Its shape is that of the reads as they are written; what is isolated loses its dead reads."""
    for rows, shape in ((1, (1, 3)), (3, (3, 2))):
        A, k = ImageParam(Int(32), 2, name="A"), RDom(0, 3, name="k")
        C, P = t2s.funcs("C P")
        C[i] = 0
        C[i] += t2s.select(i > k, A[i, k], 1)
        C.bound(i, 0, rows).isolate_producer(t2s.select(i > k, A[i, k], 1), P)
        assert agree(C).tensor("A").shape == shape
