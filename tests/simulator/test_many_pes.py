"""Arrays of very many PEs: counted in moments, or refused at once."""

from __future__ import annotations

import time

import pytest

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from tests.sampling import sampled


def grid(rows: int) -> Func:
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    i, j, k, C = Var("i"), Var("j"), RDom(0, 2, name="k"), Func("C")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[k, j]
    return C.bound(i, 0, rows).bound(j, 0, rows).unroll(i, j)


@sampled("rows", [8, 9, 65, 320], quick=2)
def test_cycles_do_not_depend_on_the_number_of_pes(rows: int) -> None:
    begin = time.process_time()
    assert t2s.cycles(grid(rows)) == 4
    assert time.process_time() - begin < 300


def test_a_triangle_of_many_pes() -> None:
    i, j, k, p, q, t = t2s.variables("i j k p q t")
    A, F = ImageParam(Int(32), 1, name="A"), Func("F")
    F[i, j, k] = A[i] + j
    F.bound(i, 0, 300).bound(j, 0, 300 - i).bound(k, 0, 2)
    graph = F.space_time_transform([i, j, k], {p: i, q: j, t: k}).lower()
    begin = time.process_time()
    assert graph.node("F").pe_count == 300 * 301 // 2
    assert time.process_time() - begin < 60


@pytest.mark.parametrize("rows", [3000, 40_000])
def test_more_pes_than_can_be_simulated_are_refused_at_once(rows: int) -> None:
    begin = time.process_time()
    with pytest.raises(t2s.errors.UserError, match="too many PEs to simulate") as caught:
        t2s.cycles(grid(rows))
    assert "at most 4,194,304 PEs" in str(caught.value)
    assert time.process_time() - begin < 200
