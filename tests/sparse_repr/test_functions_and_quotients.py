"""Functions and quotients: where they are looked at, and what they are where nothing is stored."""

from __future__ import annotations

import numpy as np
import pytest

from t2s import Int, sparse
from t2s.core.errors import UserError
from t2s.sparse import MIN_PLUS, Kernel

A = np.array([[0, 1.0, -2, 0], [0, 0, 0, 0], [3, 0, 0, -1], [0, 5, 0, 0]])
B = np.array([[0, 2.0, 0, 1], [0, 0, 4, 0], [0, 0, 0, 0], [1, -3, 0, 0]])
x, d = np.array([1.0, 2, 3, 4]), np.array([2.0, 0, 4, 5])


def _kernel(text: str, schedule: str = "") -> Kernel:
    formats = {name: "ds" for name in "ABH" if f"{name}(" in text}
    return sparse.compile(sparse.parse(text, formats), schedule or None)


def _inputs(kernel: Kernel) -> dict[str, np.ndarray]:
    names = {tensor.name for tensor in kernel.assignment.tensors}
    return {name: v for name, v in {"A": A, "B": B, "x": x, "d": d}.items() if name in names}


@pytest.mark.parametrize(
    ("function", "entries"),
    [
        ("max(A(i,j), 0)", 5), ("min(A(i,j), 0)", 5), ("max(0, A(i,j))", 5),
        ("max(min(A(i,j), 6), 0)", 5), ("max(A(i,j) - 1.5, 0)", 5), ("A(i,j) + 0", 5),
        ("max(A(i,j) - 0.5, 0) + min(A(i,j) + 0.5, 0)", 5), ("max(A(i,j), 1) - 1", 5),
        ("max(A(i,j), 0.1*A(i,j))", 5), ("-max(A(i,j)*x(j), 0)", 5), ("max(A(i,j), B(i,j))", 8),
        ("(A(i,j) + 1)*(B(i,j) + 1) - 1", 8), ("max(A(i,j), 0)*B(i,j)", 2),
        ("A(i,j)/2", 5), ("A(i,j)/B(i,j)", 5), ("A(i,j)*x(j)/x(i)", 5), ("A(i,j)*(x(j)/x(i))", 5),
        ("max(A(i,j), 0)/x(j)", 5), ("max(A(i,j), 1)", 16), ("min(A(i,j), -1)", 16),
        ("max(A(i,j), x(j))", 16), ("A(i,j) + 1", 16), ("x(i)/x(j)", 16), ("1/(A(i,j) + 9)", 16),
        ("max(A(i,j) - 1, 0)", 16),  # 255 in uint8
    ],
)  # fmt: skip
def test_a_function_that_maps_zeros_to_zero_keeps_the_pattern(function: str, entries: int) -> None:
    kernel = _kernel(f"H(i,j) = {function}", "transpose()")
    inputs = _inputs(kernel)
    result = kernel.simulate(inputs, engine="python")
    assert len(result.tensor.values) == entries
    broadcast = {"A": A, "B": B, "max": np.maximum, "min": np.minimum}
    text = function.replace("A(i,j)", "A").replace("B(i,j)", "B")
    text = text.replace("x(j)", "x").replace("x(i)", "x[:, None]")
    with np.errstate(all="ignore"):
        expected = eval(text, {**broadcast, "x": x}) + np.zeros((4, 4))
    if function == "A(i,j)/B(i,j)":
        expected = np.where(A != 0, expected, 0)
    np.testing.assert_allclose(result.output, expected)
    for level in ("notation", "loops", "blocks"):
        np.testing.assert_allclose(kernel.interpret(inputs, level=level), expected)


@pytest.mark.parametrize(
    "text",
    [
        "y(i) = 0.85*sum(j, A(i,j)*x(j)/d(j)) + 0.15",
        "y(i) = A(i,j)*(x(j)/d(j))",
        "H(i,j) = A(i,j)/d(j)",
        "H(i,j) = max(A(i,j), 0)*(x(i)/d(j)) + B(i,j)/d(i)",
        "y(i) = sum(j, A(i,j)*x(j))/d(i)",
        "H(i,j) = sum(k, A(i,k)*B(k,j))/d(i)",
        "y(i) = sum(j, A(i,j)/B(i,j))/sum(j, B(i,j))",
    ],
)
def test_what_is_not_stored_is_not_divided(text: str) -> None:
    """Divisors are zero here and there: all levels agree, and with numpy where that is finite."""
    kernel = _kernel(text, "transpose()")
    inputs = _inputs(kernel)
    expected = kernel.interpret(inputs)
    for level in ("loops", "blocks"):
        np.testing.assert_array_equal(kernel.interpret(inputs, level=level), expected)
    for engine in ("python", "native"):
        np.testing.assert_array_equal(kernel.simulate(inputs, engine=engine).output, expected)


def test_zero_by_zero_says_what_is_stored() -> None:
    sparse_a = _kernel("H(i,j) = A(i,j)*x(j)/d(j)").interpret(
        _inputs(_kernel("H(i,j)=A(i,j)*x(j)/d(j)"))
    )
    assert not np.isnan(sparse_a).any()  # numpy has NaN in column 1, where A is not stored
    assert np.isinf(sparse_a[0, 1])
    stored = sparse.compile(sparse.parse("H(i,j) = A(i,j)*x(j)/d(j)"))
    assert np.isnan(stored.interpret({"A": A, "x": x, "d": d})[1, 1])  # a dense A stores zeros


def test_cycles_are_those_of_what_is_stored() -> None:
    n = 60
    wide = np.eye(n) - np.eye(n, k=3)
    plain = _kernel("H(i,j) = A(i,j)*2").simulate({"A": wide}, engine="python").cycles
    relu = _kernel("H(i,j) = max(A(i,j), 0)").simulate({"A": wide}, engine="python").cycles
    assert relu == plain
    given = {"A": wide, "x": np.ones(n), "d": np.arange(1.0, n + 1)}
    quotient = _kernel("y(i) = A(i,j)*x(j)/d(j)").simulate(given, engine="python").cycles
    product = _kernel("y(i) = A(i,j)*x(j)*d(j)").simulate(given, engine="python").cycles
    assert quotient == product


def test_constants_count_in_every_type() -> None:
    """What is zero in float64 need not be zero in float32, or where integers wrap around."""
    rounded = _kernel("H(i,j) = max(A(i,j), 0.1 + 0.2) - 0.30000000000000004")
    values = rounded.interpret({"A": A.astype(np.float32)})
    blocks = rounded.interpret({"A": A.astype(np.float32)}, level="blocks")
    np.testing.assert_array_equal(values, blocks)
    wraps = _kernel("H(i,j) = max(A(i,j) - 1, 0)")
    unsigned = np.abs(A).astype(np.uint8)
    for level in ("notation", "blocks"):
        assert wraps.interpret({"A": unsigned}, level=level)[1, 1] == 255


def test_functions_of_a_semiring_know_its_zero() -> None:
    assignment = sparse.parse("H(i,j) = max(A(i,j), 1)", {"A": "ds", "H": "ds"})
    kernel = sparse.compile(assignment, semiring=MIN_PLUS)
    roads = np.where(A > 0, A, np.inf)
    result = kernel.simulate({"A": roads}, engine="python")
    assert len(result.tensor.values) == 3  # max(inf, 1) is inf, which is the zero
    np.testing.assert_array_equal(result.output, np.maximum(roads, 1))


@pytest.mark.parametrize("letters", ["ds", "ss", "uq", "sd", "ds:1,0", "sb", "dl"])
@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("H(i,j)=max(A(i,j),0)", ""),
        ("H(i,j)=max(A(i,j),0)", "parallelize(i,2)"),
        ("H(i,j)=A(i,k)*B(k,j)", "reorder(i,k,j)"),
        ("H(i,j)=max(sum(k,A(i,k)*B(k,j)),0)", ""),
    ],
)
def test_zeros_are_dropped_where_the_user_says_so(letters: str, text: str, schedule: str) -> None:
    formats = {"A": "ds", "H": letters} | ({"B": "ds"} if "B(" in text else {})
    assignment = sparse.parse(text, formats)
    said = ", ".join(filter(None, [schedule, "transpose()"]))
    kernel, plain = (
        sparse.compile(assignment, f"{said}, drop_zeros(H)"),
        sparse.compile(assignment, said),
    )
    inputs = _inputs(kernel)
    expected = plain.interpret(inputs)
    result = kernel.simulate(inputs, engine="python")
    np.testing.assert_array_equal(result.output, expected)
    np.testing.assert_array_equal(kernel.interpret(inputs, level="blocks"), expected)
    rows = letters == "sd"
    zeros = np.count_nonzero(result.tensor.values == 0)
    assert rows or zeros == 0
    assert len(result.tensor.values) <= len(plain.simulate(inputs, engine="python").tensor.values)


def test_zeros_that_cannot_be_dropped() -> None:
    with pytest.raises(UserError, match="H stores all coordinates, zeros too"):
        sparse.compile(sparse.parse("H(i,j)=max(A(i,j),0)", {"A": "ds"}), "drop_zeros()")
    with pytest.raises(UserError, match="nothing assigns to A, whose zeros are to be dropped"):
        _kernel("H(i,j)=max(A(i,j),0)", "drop_zeros(A)")
    with pytest.raises(UserError, match="zeros of H are not dropped from its vectors"):
        _kernel("H(i,j)=max(A(i,j),0)", "vectorize(j,2),drop_zeros(H)")


def test_zeros_of_a_workspace_are_dropped() -> None:
    text = "y(i) = sum(j, max(A(i,j), 0)*x(j))"
    kernel = _kernel(text, "precompute(max(A(i,j),0),T(i,j),ds), drop_zeros(T)")
    assert "zeros of T are not stored" in str(kernel)
    inputs = {"A": A, "x": x}
    result = kernel.simulate(inputs, engine="python")
    np.testing.assert_array_equal(result.output, np.maximum(A, 0) @ x)
    whole = _kernel(text, "precompute(max(A(i,j),0),T(i,j),ds)").simulate(inputs, engine="python")
    assert result.stages[1].cycles < whole.stages[1].cycles


def test_types_other_than_floats() -> None:
    kernel = _kernel("H(i,j) = max(A(i,j), 0)")
    result = kernel.simulate({"A": A.astype(np.int8)}, engine="python", type=Int(16))
    np.testing.assert_array_equal(result.output, np.maximum(A, 0))
    assert len(result.tensor.values) == 5


def test_quotients_are_not_summed_beyond_the_end_of_a_split() -> None:
    """There is zero by zero: a ragged split is refused; one that divides the extent is right."""
    inputs = {"x": np.array([1.0, 2, 3, 5]), "d": np.array([2.0, 4, 5, 8])}
    for schedule in ("vectorize(i,2)", "split(i,o,n,2)"):
        kernel = _kernel("y = x(i)/d(i)", schedule)
        expected = (inputs["x"] / inputs["d"]).sum()
        assert np.isclose(kernel.interpret(inputs, level="blocks"), expected)
        ragged = {name: value[:3] for name, value in inputs.items()}
        with pytest.raises(UserError, match="the split of i goes beyond its end"):
            kernel.interpret(ragged)
