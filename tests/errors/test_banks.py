"""Banks of the dense operand of a sparse product that are refused."""

from __future__ import annotations

import numpy as np

import t2s
from t2s import Float, Func, ImageParam, RDom, Var
from t2s.errors import UnsupportedError
from t2s.representation import MatrixParam, gallery
from tests.errors.refusal import refused

ONES = np.ones((3, 3), np.float32)


def in_banks(banks: object, machines: int = 2, width: int = 0) -> t2s.Func:
    A = MatrixParam(Float(32), 2, gallery.cisr(machines), name="A")
    x = ImageParam(Float(32), 2 if width else 1, name="x")
    p, q, r, side = Var("p"), RDom(0, A.values.extent(1), name="q"), Var("r"), Var("side")
    i, j = A.inverse_map(p, q)
    y, x_loader, x_feeder = t2s.funcs("y x_loader x_feeder")
    if width:
        y[r, side] = 0.0
        y[i, side] += A.values[p, q] * x[j, side]
        y.bound(side, 0, width)
    else:
        y[r] = 0.0
        y[i] += A.values[p, q] * x[j]
    y.isolate_producer_chain(x, x_loader, x_feeder)
    x_feeder.buffer(x, banks=banks)  # of x
    return y


def test_no_banks() -> None:
    with refused(
        """
        the number of banks of buffer on x_feeder has to be a positive integer
          --> x_feeder.buffer(x, banks=banks)  # of x
          expected: 1 or more
          given:    0
        """
    ):
        in_banks(0)


def test_three_banks() -> None:
    with refused(
        """
        the number of banks of buffer on x_feeder has to be a power of two
          --> x_feeder.buffer(x, banks=banks)  # of x
          expected: 1, 2, 4, 8, ...
          given:    3
        """
    ):
        in_banks(3)


def test_banks_of_right_hand_sides() -> None:
    y = in_banks(4, width=3)
    with refused(
        """
        buffer(x, banks=4) is not possible for several right-hand sides
          --> x_feeder.buffer(x, banks=banks)  # of x
          expected: a product of one vector, or buffer(x)
          given:    3 right-hand sides
        """,
        UnsupportedError,
    ):
        t2s.lower(y, {"A": ONES})


def test_too_many_banks() -> None:
    y = in_banks(512, machines=8)
    with refused(
        """
        buffer(x, banks=512) has too many banks for its multipliers
          --> x_feeder.buffer(x, banks=banks)  # of x
          expected: at most 128 banks
          given:    8 multipliers
        """,
        UnsupportedError,
    ):
        t2s.lower(y, {"A": ONES})


def test_banks_of_a_result() -> None:
    y = in_banks(2)
    y_unloader = Func("y_unloader")
    y.isolate_consumer(y_unloader)
    y_unloader.buffer(y, banks=2)
    with refused(
        """
        buffer(y, banks=2) on y_unloader does not apply to a product of a sparse matrix
          --> y_unloader.buffer(y, banks=2)
          expected: the directives that docs/representations.md lists for this part
          given:    buffer(y, banks=2)
        """,
        UnsupportedError,
    ):
        t2s.lower(y, {"A": ONES})
