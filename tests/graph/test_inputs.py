"""What a graph has to be given; the texts of all errors are in ``tests/errors``."""

from __future__ import annotations

import numpy as np
import pytest

from t2s.core.arrays import ArraySpec
from t2s.core.errors import UserError
from t2s.core.types import INT32
from t2s.graph.arrays import check_graph_inputs, check_parameters, parameter_specs
from tests.graph.changes import pipeline

X = np.arange(8, dtype=np.int32)


def test_specs_of_a_graph() -> None:
    graph = pipeline()
    assert parameter_specs(graph) == (
        ArraySpec(name="n", type=INT32, shape=(), location=graph.parameters[0].location),
    )


def test_both_kinds_of_inputs() -> None:
    arrays, scalars = check_graph_inputs(pipeline(), {"X": X}, {"n": 3})
    assert arrays.keys() == {"X"}
    assert arrays["X"] is X
    assert scalars == {"n": 3}
    assert scalars["n"].dtype == np.int32


def test_a_name_that_is_given_twice() -> None:
    with pytest.raises(UserError, match="n is given twice") as caught:
        check_graph_inputs(pipeline(), {"X": X, "n": 3}, {"n": 4})
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    assert caught.value.given == "inputs X, n and parameters n"


def test_results_are_not_given() -> None:
    with pytest.raises(UserError, match=r"(?s)has no input Y.*computes Y: leave it out"):
        check_graph_inputs(pipeline(), {"X": X, "Y": X}, {"n": 3})


def test_parameters_that_are_not_required_are_zero() -> None:
    zero = check_parameters(pipeline(), {}, required=())
    assert zero == {"n": 0}
    assert zero["n"].dtype == np.int32
    with pytest.raises(UserError, match="the parameter n is missing"):
        check_parameters(pipeline(), {}, required={"n"})
