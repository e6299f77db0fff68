"""Our loops of plans: through the entries of a sparse operand, as the notation says."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from t2s import sparse
from t2s.driver.plan_inputs import bind_plan, dense_view, places_of, run_loops
from t2s.sparse_repr.notation.evaluate import evaluate
from t2s.sparse_repr.notation.ir import accesses
from tests.sampling import sampled

KINDS = ["float32", "float64", "int8", "int32", "uint16"]


def _drawn(random: Random) -> tuple[str, dict[str, str], dict[str, int]]:
    """A product of one sparse tensor and dense ones over variables that it may not have."""
    names = "ijklm"
    order = random.randint(1, 3)
    own = random.sample(names, order)
    letters = "".join(random.choice("ds") for _ in own[1:]) + "s"
    formats = {"S": letters}
    factors = [f"S({','.join(own)})"]
    for tensor in "CDE"[: random.randint(0, 3)]:
        there = random.sample(names, random.randint(0, 3))
        factors.append(f"{tensor}({','.join(there)})" if there else tensor)
    random.shuffle(factors)
    used = sorted({letter for factor in factors for letter in factor if letter in names})
    left = random.sample(used, random.randint(0, min(3, len(used))))
    formats["A"] = "".join(random.choice("ds") for _ in left)
    target = f"A({','.join(left)})" if left else "A"
    extents = {name: random.choice([0, 1, 2, 3, 5, 7]) for name in names}
    return f"{target} = {' * '.join(factors)}", formats, extents


@sampled("seed", range(120), quick=7)
def test_products_with_one_sparse_operand(seed: int) -> None:
    random = Random(seed)
    text, formats, extents = _drawn(random)
    assignment = sparse.parse(text, formats)
    generator = np.random.default_rng(seed)
    kind = np.dtype(KINDS[seed % len(KINDS)])
    given: dict[str, Any] = {}
    for access in accesses(assignment.value):
        shape = [extents[name] for name in access.variables]
        low = 0 if kind.kind == "u" else -4
        values = np.asarray(generator.integers(low, 5, shape)).astype(kind)
        if access.tensor == "S":
            values = np.asarray(values * (generator.random(shape) < 0.4), kind)
        if random.random() < 0.5:
            values = values.copy(order="F")
        given[access.tensor] = values
    binding = bind_plan(assignment, given)
    found = run_loops(assignment, binding.values, binding.extents, binding.type)
    expected = evaluate(assignment, given, kind)
    assert dense_view(found).dtype == kind
    assert np.array_equal(dense_view(found), expected), text


@pytest.mark.parametrize(
    "text",
    [
        "A(i,j) = S(i,j) + C(i,j)",
        "A(i,j) = S(i,j) * S(j,i)",
        "A(i,j) = -S(i,j) * C(i,j)",
        "A(i,j) = S(i,j) / C(i,j)",
        "A(i) = S(i,i) * C(i,i)",
        "A(i,j) = 2 * S(i,j)",
        "A(i,j) = S(i,j) * T(i,j)",
    ],
)
def test_other_statements(text: str) -> None:
    assignment = sparse.parse(
        text, {"A": "ds", "S": "ds", "T": "ds"} if "T" in text else {"S": "ds"}
    )
    generator = np.random.default_rng(1)
    given = {
        access.tensor: generator.integers(1, 4, (4, 4)) * (generator.random((4, 4)) < 0.6) * 1.0
        for access in accesses(assignment.value)
    }
    given.update({name: np.ones((4, 4)) for name in given if name == "C"})
    binding = bind_plan(assignment, given)
    found = run_loops(assignment, binding.values, binding.extents, binding.type)
    expected = evaluate(assignment, given, np.dtype(np.float64), places_of(binding.values))
    assert np.array_equal(dense_view(found), expected)


def test_what_is_not_stored_is_not_multiplied() -> None:
    assignment = sparse.parse("A(i,j) = S(i,j) * C(i,k) * D(k,j)", {"A": "ds", "S": "ds"})
    given = {"S": np.eye(3), "C": np.full((3, 2), np.inf), "D": np.ones((2, 3))}
    binding = bind_plan(assignment, given)
    found = run_loops(assignment, binding.values, binding.extents, binding.type)
    expected = sparse.interpret(assignment, given)
    assert np.array_equal(dense_view(found), expected)
    assert np.isinf(np.diag(expected)).all()
    assert (expected + 0 == np.where(np.eye(3) > 0, np.inf, 0)).all()
