"""Results cross the borders of processes: they can be pickled, with all that they hold."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import t2s
from t2s import Float, Func, ImageParam, RDom, Var
from t2s.representation import MatrixParam, gallery
from tests.sampling import sampled


def dense() -> tuple[Func, dict[str, np.ndarray]]:
    x, i = ImageParam(Float(32), np.int64(1), name="x", shape=(np.int64(4),)), Var("i")
    y = Func("y")
    y[i] = t2s.max(x[i], 2.0, -x[i])
    y.bound(i, 0, 4)
    return y, {"x": np.arange(4, dtype=np.float32)}


def product() -> tuple[Func, dict[str, np.ndarray]]:
    A = MatrixParam(Float(32), 2, gallery.cisr(2), name="A")
    x = ImageParam(Float(32), 1, name="x")
    p, q, r = Var("p"), RDom(0, A.values.extent(1), name="q"), Var("r")
    i, j = A.inverse_map(p, q)
    y = Func("y")
    y[r] = 0.0
    y[i] += A.values[p, q] * x[j]
    return y, {"A": np.eye(4, dtype=np.float32), "x": np.arange(4, dtype=np.float32)}


@sampled("engine", ["native", "python"], quick=1)
@pytest.mark.parametrize("make", [dense, product])
def test_a_result_there_and_back(make, engine: str) -> None:
    design, inputs = make()
    result = t2s.simulate(design, inputs, engine=engine, device="arria10")
    again = pickle.loads(pickle.dumps(result))
    assert str(again) == str(result)
    assert again.cycles == result.cycles
    assert again.retime().cycles == result.cycles
    np.testing.assert_array_equal(again.outputs["y"], t2s.interpret(design, inputs))


def test_the_smallest_and_the_largest_of_several() -> None:
    y, inputs = dense()
    np.testing.assert_array_equal(t2s.interpret(y, inputs), [2, 2, 2, 3])
