"""``where(condition, value, otherwise)``: values and patterns in every engine, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

import t2s
from t2s import sparse
from t2s.errors import UnsupportedError, UserError

LEVELS = ("notation", "loops", "blocks")
_random = np.random.default_rng(0)


def _some(shape: tuple[int, ...], share: float) -> np.ndarray:
    return np.where(_random.random(shape) < share, _random.normal(size=shape), 0)


M, A, B, v = _some((6, 5), 0.4), _some((6, 5), 0.5), _some((6, 5), 0.5), _some((6,), 0.6)
M[1] = A[2] = 0
M[3, :3], A[3, :3] = (1, np.inf, np.nan), (np.inf, 0, 2)
GIVEN = {"M": M, "A": A, "B": B, "v": v}
BOTH = np.count_nonzero((M != 0) & (A != 0))

CHOICES = {
    "H(i,j) = where(M(i,j), A(i,j), 0)": (np.where(M != 0, A, 0), BOTH),
    "H(i,j) = where(M(i,j), A(i,j), B(i,j))": (np.where(M != 0, A, B), None),
    "H(i,j) = where(M(i,j), A(i,j), -inf)": (np.where(M != 0, A, -np.inf), M.size),
    "H(i,j) = where(M(i,j), 3, B(i,j))": (np.where(M != 0, 3, B), None),
    "H(i,j) = where(v(i), A(i,j), B(i,j))": (np.where(v[:, None] != 0, A, B), None),
    "H(i,j) = where(M(i,j), v(i), 0)": (np.where(M != 0, v[:, None], 0), None),
    "H(i,j) = where(M(i,j), A(i,j), M(i,j)*v(i))": (np.where(M != 0, A, 0), None),
    "H(i,j) = where(M(i,j), exp(B(i,j)), 0)*B(i,j)": (np.where(M != 0, np.exp(B), 0) * B, None),
    "H(i,j) = where(max(M(i,j) - 0.5, 0), A(i,j), 1) + B(i,j)": (
        np.where(np.maximum(M - 0.5, 0) != 0, A, 1) + B,
        None,
    ),
    "H(i,j) = where(exp(M(i,j)), A(i,j), B(i,j))": (np.where(np.exp(M) != 0, A, B), None),
    "y(i) = sum(j, where(M(i,j), B(i,j)*B(i,j), 0))": (np.where(M != 0, B * B, 0).sum(1), None),
    "y(i) = v(i)*sum(j, where(M(i,j), B(i,j), 2))": (v * np.where(M != 0, B, 2).sum(1), None),
}


@pytest.mark.parametrize("text", CHOICES)
@pytest.mark.parametrize("stored", ["ds", "ss", "dd"])
def test_values(text: str, stored: str) -> None:
    expected, entries = CHOICES[text]
    formats = {name: stored for name in "MABH" if f"{name}(" in text}
    kernel = sparse.compile(sparse.parse(text, formats))
    given = {name: GIVEN[name] for name in GIVEN if f"{name}(" in text.split(" = ")[1]}
    result = kernel.simulate(given)
    np.testing.assert_allclose(result.output, expected, rtol=1e-12)
    if entries is not None and stored != "dd":
        assert len(result.tensor.values) == entries
    for level in LEVELS:
        np.testing.assert_allclose(kernel.interpret(given, level=level), expected, rtol=1e-12)
    plain = kernel.simulate(given, engine="python")
    assert plain.cycles == result.cycles
    np.testing.assert_array_equal(plain.output, result.output)


def test_integers_booleans_vectors_and_lanes() -> None:
    mask, whole = M != 0, np.arange(30).reshape(6, 5) - 15
    text = "H(i,j) = where(M(i,j), A(i,j), 0)"
    given = {"M": mask, "A": whole}
    for schedule in ("", "vectorize(j,5)", "parallelize(i,2)", "split(j,jo,ji,5)"):
        kernel = sparse.compile(sparse.parse(text, {"M": "ds"}), schedule)
        result = kernel.simulate(given)
        np.testing.assert_array_equal(result.output, np.where(mask, whole, 0))
        assert result.output.dtype == whole.dtype
        np.testing.assert_array_equal(kernel.interpret(given, level="loops"), result.output)


def test_a_choice_in_python_and_in_a_program() -> None:
    i, j, k = t2s.Var("i"), t2s.Var("j"), t2s.Var("k")
    mask, left, right, P, S = (
        sparse.Tensor(name, format)
        for name, format in zip("MABPS", ("ds", "dd", "dd", "dd", "dd"), strict=True)
    )
    product = sparse.summation(left[i, k] * right[k, j], k)
    P[i, j] = sparse.where(mask[i, j], product, -np.inf)
    S[i, j] = sparse.softmax(P[i, j], j)
    masks = np.tril(np.ones((4, 4)))
    a, b = _random.normal(size=(4, 3)), _random.normal(size=(3, 4))
    given = {"M": masks, "A": a, "B": b}
    scores = np.exp(np.where(masks, a @ b, -np.inf))
    program = sparse.program([P, S])
    written = sparse.program(
        "P(i,j) = where(M(i,j), sum(k, A(i,k)*B(k,j)), -inf)\nS(i,j) = softmax(j; P(i,j))",
        formats={"M": "ds"},
    )
    for each in (program, written, program.fuse("layer")):
        np.testing.assert_allclose(
            each.simulate(given)["S"], scores / scores.sum(1, keepdims=True), rtol=1e-12
        )


REFUSED = {
    "y(i) = where(A(i,j), B(i,j), 0)": "the sum over j may be meant inside of where",
    "y(i) = where(1, v(i), 0)": "the condition of where(1, v(i), 0) is a constant",
    "y(i) = where(v(i), 1)": "a comma and the value elsewhere",
    "y(i) = stored(where(v(i), 1, 2))": "is not of a function",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refusals(text: str) -> None:
    with pytest.raises(UserError) as caught:
        sparse.parse(text)
    assert REFUSED[text] in str(caught.value)


def test_machines_and_semirings_without_choices() -> None:
    choice = sparse.parse("y(i) = where(v(i), w(i), 1)", {"v": "s"})
    with pytest.raises(UserError, match="a semiring has no where"):
        sparse.compile(choice, semiring=sparse.MIN_PLUS)
    with pytest.raises(UnsupportedError, match="Capstan does not compute where"):
        sparse.compile(choice, target="capstan")
