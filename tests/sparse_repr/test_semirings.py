"""Index notation over semirings: shortest paths and others."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from t2s.errors import UserError
from t2s.sparse import (
    MAX_PLUS,
    MAX_TIMES,
    MIN_MAX,
    MIN_PLUS,
    Kernel,
    Schedule,
    Semiring,
    Tensor,
    compile,
    csr,
    parse,
)
from tests.sparse_repr.expressions import Case, cases

RINGS = (MIN_PLUS, MAX_PLUS, MAX_TIMES, MIN_MAX)


def test_shortest_paths() -> None:
    """Edges that are not stored are infinitely long; an edge of length zero is one."""
    edges = np.array([[0, 4, inf, 1], [inf, 0, 5, inf], [inf, inf, 0, inf], [inf, 2, inf, 0]])
    D, E, P = Tensor("D", csr), Tensor("E", csr), Tensor("P", csr)
    P["i", "j"] = D["i", "k"] * E["k", "j"]
    kernel = compile(P, Schedule().reorder("i", "k", "j"), semiring=MIN_PLUS)
    twice = kernel.simulate({"D": edges, "E": edges}).tensor
    expected = np.min(edges[:, :, None] + edges[None], axis=1)
    assert np.array_equal(twice.to_dense(), expected)
    assert len(twice.values) == np.isfinite(expected).sum()
    far = kernel.simulate({"D": twice, "E": edges}, engine="python").output
    assert far[0].tolist() == [0, 3, 8, 1]


def test_what_scipy_does_not_store_is_the_zero_of_the_semiring() -> None:
    kernel = Kernel(parse("y(i)=A(i,j)*x(j)", ["A:ds"]), semiring=MIN_PLUS)
    A = scipy.sparse.csr_array(np.array([[0, 3], [0, 0]]))
    result = kernel.simulate({"A": A, "x": np.array([5, 1])}, engine="python")
    assert result.output.tolist() == [4, inf]


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases(), ring=st.sampled_from(RINGS))
def test_random_assignments_over_semirings(case: Case, ring: Semiring) -> None:
    inputs = {name: np.where(a == 0, ring.zero, a) for name, a in case.inputs.items()}
    try:
        kernel = Kernel(case.assignment, case.schedule, ring)
        kernel.bind(inputs)
    except UserError:
        assume(False)
        return
    expected = kernel.interpret(inputs)
    for level in ("loops", "blocks"):
        assert np.allclose(kernel.interpret(inputs, level=level), expected), level


@pytest.mark.parametrize("lanes", [1, 3])
def test_lanes_and_vectors(lanes: int) -> None:
    generator = np.random.default_rng(2)
    A = np.where(generator.random((4, 8)) < 0.4, generator.random((4, 8)), inf)
    assignment = parse("y(i)=b(i)+A(i,j)*x(j)", ["A:ss", "b:s", "y:s"])
    schedule = Schedule().vectorize("j", 4).parallelize("i", lanes)
    inputs = {"A": A, "x": generator.random(8), "b": np.array([inf, 0.1, 5, inf])}
    result = Kernel(assignment, schedule, MIN_PLUS).simulate(inputs, engine="python")
    expected = np.minimum(inputs["b"], (A + inputs["x"]).min(axis=1))
    assert np.array_equal(result.output, expected)
