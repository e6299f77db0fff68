"""Start values of products of sparse matrices that are refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import t2s
from t2s import Float, Func, ImageParam, RDom, Var
from t2s.errors import UnsupportedError
from t2s.representation import MatrixParam, gallery
from tests.errors.refusal import refused

ONES = {"A": np.ones((3, 3), np.float32), "x": np.ones(3, np.float32)}


def started(start: Callable[[ImageParam, Var], object]) -> Func:
    """A product whose start value reads ``z`` at some place of row ``r``."""
    A = MatrixParam(Float(32), 2, gallery.cisr(), name="A")
    x, z = ImageParam(Float(32), 1, name="x"), ImageParam(Float(32), 1, name="z")
    p, q, r = Var("p"), RDom(0, A.values.extent(1), name="q"), Var("r")
    i, j = A.inverse_map(p, q)
    y = Func("y")
    y[r] = start(z, r)
    y[i] += A.values[p, q] * x[j]
    return y


def test_start_value_that_reads_a_func() -> None:
    u, v = Func("u"), Var("v")
    u[v] = 1.0
    with refused(
        """
            the start value of y reads u[r]
              --> y[r] = start(z, r)
              expected: ImageParams, numbers, Params and sizes of the matrix
              given:    u[r]
            """,
        UnsupportedError,
    ):
        started(lambda z, r: u[r]).interpret(ONES)


def test_start_value_at_a_place_that_depends_on_data() -> None:
    with refused(
        """
            the start value of y reads z[int32(z[r])]
              --> y[r] = start(z, r)
              expected: places that follow from r and numbers
              given:    z[int32(z[r])]
            """,
        UnsupportedError,
    ):
        started(lambda z, r: z[t2s.cast(t2s.Int(32), z[r])]).simulate(ONES)


def test_start_value_in_front_of_an_operand() -> None:
    with refused(
        """
            z[r - 1] of a start value is outside of z
              --> y[r] = start(z, r)
              expected: 0 or more
              given:    -1, in dimension 0
            """
    ):
        started(lambda z, r: z[r - 1]).simulate(ONES)


def test_start_value_and_operand_of_one_name() -> None:
    other = ImageParam(Float(32), 1, name="x")
    y = started(lambda z, r: other[r])
    with refused(
        """
            two different things are named x in the definitions of y
              --> y[i] += A.values[p, q] * x[j]
              expected: one object for each name
              given:    a ImageParam and a ImageParam
              note:     the first one
              --> other = ImageParam(Float(32), 1, name="x")
              note:     the second one
              --> x, z = ImageParam(Float(32), 1, name="x"), ImageParam(Float(32), 1, name="z")
            """
    ):
        y.simulate(ONES)
