"""Index notation in text and in Python, and what it means."""

from __future__ import annotations

import numpy as np
import pytest

import t2s
from t2s.sparse import (
    Kernel,
    Schedule,
    Tensor,
    compile,
    csf,
    csr,
    dense,
    interpret,
    maximum,
    minimum,
    parse,
)
from t2s.sparse_repr.notation.ir import print_assignment
from tests.sampling import sampled

i, j, k = t2s.Var("i"), t2s.Var("j"), t2s.Var("k")


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("y(i)=A(i,j)*x(j)", "y(i) = sum(j, A(i,j)*x(j))"),
        ("y(i) = b(i) - A(i,j) * x(j)", "y(i) = b(i) - sum(j, A(i,j)*x(j))"),
        ("y=a*b", "y = a*b"),
        ("y(i)=-(b(i)-2)*c(i)/0.5", "y(i) = (-(b(i) - 2))*c(i)/0.5"),
        ("y(i)=b(i)-(c(i)-d(i))", "y(i) = b(i) - (c(i) - d(i))"),
        ("y(i)=max(b(i),c(i)-1,2)*min(d,3)", "y(i) = max(max(b(i), c(i) - 1), 2)*min(d, 3)"),
        ("y()=x(i)*1e-3", "y = sum(i, x(i)*0.001)"),
        ("y(i)=+b(i)/(c(i)*2)", "y(i) = b(i)/(c(i)*2)"),
    ],
)
def test_text(text: str, printed: str) -> None:
    assert print_assignment(parse(text)) == printed


def test_python_says_what_text_says() -> None:
    A, x, b, y = (
        Tensor("A", csr),
        Tensor("x", order=1),
        Tensor("b", order=1),
        Tensor("y", order=1),
    )
    alpha = Tensor("alpha")
    y[i] = 2 * b[i] - alpha * A[i, j] * x[j] / 4 + -b[i] + 1
    text = "y(i) = 2*b(i) - alpha*A(i,j)*x(j)/4 + (-b(i)) + 1"
    assert y.definition == parse(text, {"A": "ds"})


def test_extremes_in_python() -> None:
    x, b, y = Tensor("x", csf(1)), Tensor("b", csf(1)), Tensor("y", csf(1))
    y[i] = minimum(x[i], b[i]) + maximum(2, x[i])
    assert y.definition == parse("y(i) = min(x(i),b(i)) + max(2,x(i))", ["x:s", "b:s", "y:s"])
    inputs = {"x": [0.0, -1.0, 3.0], "b": [1.0, 0.0, 5.0]}
    assert compile(y).simulate(inputs).output.tolist() == [2, 1, 6]


def test_a_scalar_result() -> None:
    x, s = Tensor("x", order=1), Tensor("s")
    s[()] = x[i] * x[i]
    assert interpret(s, {"x": [1.0, 2.0, 3.0]}) == 14
    s[...] = x["i"] + 1
    assert print_assignment(compile(s).assignment) == "s = sum(i, x(i)) + 1"


def test_values() -> None:
    generator = np.random.default_rng(0)
    A, B = generator.random((3, 4)), generator.random((4, 3))
    x, b = generator.random(4), generator.random(3)
    cases = {
        "y(i)=A(i,j)*x(j)": A @ x,
        "y(i)=b(i)-A(i,j)*x(j)": b - A @ x,
        "y(i,j)=A(i,j)+B(j,i)": A + B.T,
        "y(i,j)=b(i)*x(j)": np.outer(b, x),
        "y(i,k)=A(i,j)*B(j,k)": A @ B,
        "y=A(i,j)*A(i,j)": (A * A).sum(),
        "y(i)=A(i,j)*(x(j)+b(i))": (A * (x + b[:, None])).sum(axis=1),
        "y(j)=(x(j)-1)/x(j)": (x - 1) / x,
        "y(j,i)=x(j)+b(i)": x[:, None] + b,
        "y(i)=-b(i)*2": -b * 2,
        "y(i)=max(A(i,j),x(j))": np.maximum(A, x).sum(axis=1),
        "y(i)=b(i)-min(b(i)*2,1)": b - np.minimum(b * 2, 1),
    }
    inputs = {"A": A, "B": B, "x": x, "b": b}
    for text, expected in cases.items():
        assignment = parse(text)
        read = {name: value for name, value in inputs.items() if name in text}
        found = Kernel(assignment).interpret(read)
        assert np.allclose(found, expected), text
        assert np.allclose(Kernel(assignment).interpret(read, level="loops"), expected), text
        assert np.allclose(Kernel(assignment).interpret(read, level="blocks"), expected), text


def test_a_diagonal() -> None:
    A = np.arange(9.0).reshape(3, 3)
    kernel = Kernel(parse("y(i)=A(i,i)", {"A": "ds"}))
    assert kernel.interpret({"A": A}).tolist() == [0, 4, 8]
    assert kernel.simulate({"A": A}).output.tolist() == [0, 4, 8]
    assert "a diagonal" in str(kernel)


def test_the_values_from_before() -> None:
    kernel = Kernel(parse("y(i)=A(i,j)*y(j)"))
    A, y = np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([1.0, 2.0])
    assert kernel.simulate({"A": A, "y": y}).output.tolist() == [2, 3]


@sampled(
    ("dtype", "expected"),
    [(np.int32, np.int32), (np.int64, np.int64), (np.float32, np.float32), (bool, np.bool_)],
    quick=2,
)
def test_the_type_follows_from_the_inputs(dtype: type, expected: type) -> None:
    x = np.array([0, 1, 1], dtype)
    result = Kernel(parse("y(i)=x(i)+x(i)")).simulate({"x": x})
    assert result.output.dtype == expected
    assert result.output.tolist() == (np.array([0, 1, 1], dtype) + x).tolist()


def test_a_quotient_of_integers_is_a_float() -> None:
    inputs = {"x": np.array([1, 2]), "b": np.array([2, 0])}
    result = Kernel(parse("y(i)=x(i)/b(i)")).simulate(inputs)
    assert result.output.tolist() == [0.5, np.inf]


def test_renaming_changes_nothing() -> None:
    first = Kernel(parse("y(i)=A(i,j)*x(j)", {"A": "ds"}))
    other = Kernel(parse("t(x)=t_2(x,y)*root(y)", {"t_2": "ds"}))
    A, x = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([3.0, 4.0])
    one = first.simulate({"A": A, "x": x})
    two = other.simulate({"t_2": A, "root": x})
    assert one.output.tolist() == two.output.tolist() == [3, 8]
    assert one.cycles == two.cycles


def test_views_are_shown() -> None:
    kernel = compile(
        parse("X(i,j)=B(i,j)+C(i,j)", ["B:ds", "C:ds:1,0", "X:qs"]), Schedule().transpose("C")
    )
    assert str(kernel) == (
        "C_view is C stored as ds:0,1: levels in the order of the loops, i, j\n"
        "X is converted from X_written, stored as ss:0,1: singleton levels are made afterwards\n"
        "for i:\n"
        "  for j:\n"
        "    X_written(i,j) = B(i,j) + C_view(i,j)\n"
    )
    assert dense(2, (1, 0)) != dense(2)
