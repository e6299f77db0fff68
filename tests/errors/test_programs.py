"""What programs of statements refuse: syntax, order, names, extents, inputs, and unclear sums."""

from __future__ import annotations

import re

import numpy as np
import pytest

import t2s
from t2s import sparse
from t2s.errors import UserError
from t2s.sparse import Tensor
from tests.errors.refusal import refused

ONES = np.ones


def test_syntax_is_shown_at_its_line() -> None:
    with refused(
        """
        this is not index notation, at column 20:
            H(i,j) = exp(X(i,j)
                               ^
          --> H(i,j) = exp(X(i,j)  # a bracket
          expected: an operator or )
          given:    the end
        """
    ):
        sparse.program("""
            T(i,j) = X(i,j)
            H(i,j) = exp(X(i,j)  # a bracket
        """)


@pytest.mark.parametrize(
    ("text", "message", "expected"),
    [
        ("H(i) = foo(X(i)+1)", "at column 8", "a function: min, max, relu"),
        ("H(i) = exp(X(i), 2)", "at column 16", "exp takes one value"),
        ("H(i) = softmax(X(i))", "at column 8", "as in softmax(k; ...)"),
        ("H(i) = softmax(i; X(i), 2)", "at column 23", "softmax takes one value"),
        ("H(i) = layernorm(i; X(i), e)", "at column 27", "a number that is added"),
        ("H(i) = softmax(z; X(i))", "has the variable z", "each once: i"),
        ("H(i) = max(k,k; X(i,k))", "does not name what it is along", "i, k"),
        ("H(i) = max(i; X(i))", "along i, a variable around it", "another variable than i"),
        ("H(i) = extent(q)*X(i)", "has the variable q", "one of i"),
        ("H(i) = stored(mean(k; X(i,k)))", "has no meaning", "max, min or softmax"),
        ("H(i) = x(j)*max(k; X(i,j,k))", "over j may be meant", "sum(j, ...) where"),
        ("H(i,j) = X(i,j)\nG(i) = H(i)", "two different orders", "as in H(i,j)"),
        ("H(i) = X(i,j)*j\nG(i) = H(i)", "j is a loop variable and a scalar", "another name"),
        ("H(i) = max(j, X(i,j))", "j is a loop variable and a scalar", "another name"),
        ("H(i) = H(i) + X(i)", "H needs its own values", "before it"),
        ("", "a program has no statements", "at least one statement"),
        ("  # only a comment\n", "a program has no statements", "at least one statement"),
    ],
)
def test_statements(text: str, message: str, expected: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        sparse.program(text)
    assert expected in str(caught.value.expected)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


UNCLEAR = {
    "H(i,j) = relu(X(i,k)*W(k,j) + b(j))": "H(i,j) = relu(sum(k, X(i,k)*W(k,j)) + b(j))",
    "H(i,j) = max(X(i,k)*W(k,j) + b(j), 0)": "H(i,j) = max(sum(k, X(i,k)*W(k,j)) + b(j), 0)",
    "H(i,j) = Y(i,j)/Y(i,k)": "H(i,j) = Y(i,j)/sum(k, Y(i,k))",
    "H(i,j) = softmax(j; relu(X(i,k)*W(k,j)))": "H(i,j) = softmax(j; relu(sum(k, X(i,k)*W(k,j))))",
}


@pytest.mark.parametrize("text", UNCLEAR)
def test_sums_inside_of_functions_are_written(text: str) -> None:
    with pytest.raises(UserError, match="over k may be meant inside of") as caught:
        sparse.program(text)
    hint = str(caught.value.hint)
    inside, around = hint.split(" or ")
    assert inside == UNCLEAR[text]
    generator = np.random.default_rng(1)
    every = {"X": (2, 3), "W": (3, 4), "b": (4,), "Y": (2, 2)}
    values = []
    for line in (inside, around):
        inputs = {n: generator.random(s) - 0.5 for n, s in every.items() if f"{n}(" in line}
        values.append(sparse.program(line).interpret(inputs)["H"])
    assert not np.allclose(*values)
    i, j, k = (t2s.Var(name) for name in "ijk")
    X, W, H = Tensor("X", "dd"), Tensor("W", "dd"), Tensor("H", "dd")
    H[i, j] = sparse.maximum(X[i, k] * W[k, j], 0)
    with pytest.raises(UserError, match="over k may be meant inside of max"):
        sparse.program([H])


def test_the_order_of_statements() -> None:
    with refused("""
        H reads T, which is assigned later
          --> H(i) = T(i)*2
          expected: statements that read inputs and results of statements before them
          given:    H(i) = T(i)*2
          note:     T is assigned by T(i) = X(i)
          --> T(i) = X(i)
          hint:     move T(i) = X(i) before it
        """):
        sparse.program("""
            H(i) = T(i)*2
            T(i) = X(i)
        """)
    with refused("""
        two statements assign to H
          --> H(i) = Y(i)
          expected: one assignment to each tensor
          given:    H(i) = Y(i)
          note:     the other one is H(i) = X(i) + 1
          --> H(i) = X(i) + 1
          hint:     give each of them a name of its own
        """):
        sparse.program("""
            H(i) = X(i) + 1
            H(i) = Y(i)
        """)
    with pytest.raises(UserError, match="assigned later") as caught:
        sparse.program("P(i) = R(i)\nR(i) = P(i)")
    assert caught.value.hint == "R reads P too: neither can be first"


def test_lists_of_tensors() -> None:
    i = t2s.Var("i")
    X, T, H = Tensor("X", "d"), Tensor("T", "d"), Tensor("H", "d")
    T[i] = X[i] * 2
    H[i] = T[i] + 1
    with pytest.raises(UserError, match="T is assigned, and is not in the list") as caught:
        sparse.program([H])
    assert caught.value.location is not None
    assert caught.value.location.source_line == "T[i] = X[i] * 2"
    assert sparse.program([H, T]).interpret({"X": ONES(2)})["H"].tolist() == [3, 3]
    with pytest.raises(UserError, match="nothing is assigned to X"):
        sparse.program([H, T, X])
    with pytest.raises(UserError, match="two statements assign to T"):
        sparse.program([H, T, T])
    with pytest.raises(UserError, match="made of tensors that were assigned to"):
        sparse.program([H, 3])  # type: ignore[list-item]
    with pytest.raises(UserError, match="this is not a program"):
        sparse.program(3)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="have their own formats"):
        sparse.program([H, T], {"T": "s"})
    other = Tensor("X", "d")
    H[i] = T[i] + other[i]
    with pytest.raises(UserError, match="two tensors are named X"):
        sparse.program([H, T])
    T[i] = H[i]
    H[i] = T[i]
    with pytest.raises(UserError, match="need each other's values"):
        sparse.program([T, H])
    with pytest.raises(UserError, match="a program has no statements"):
        sparse.program([])


def test_extents_that_disagree() -> None:
    program = sparse.program("""
        T(i,j) = A(i,k)*X(k,j)
        H(i,h) = T(i,j)*W(j,h)
    """)
    inputs = {"A": ONES((3, 3)), "X": ONES((3, 4)), "W": ONES((4, 2))}
    with refused("""
        the variable j has two extents
          --> H(i,h) = T(i,j)*W(j,h)
          expected: 4, as in T(i,j) of shape 3 x 4
          given:    5, in W(j,h) of shape 5 x 2
          note:     T is assigned by T(i,j) = sum(k, A(i,k)*X(k,j))
          --> T(i,j) = A(i,k)*X(k,j)
        """):
        program.simulate({**inputs, "W": ONES((5, 2))})
    with pytest.raises(UserError, match="W is given with order 3"):
        program.simulate({**inputs, "W": ONES((4, 2, 2))})
    with pytest.raises(UserError, match="the extent of j is unknown"):
        sparse.program("T(i,j) = x(i)").simulate({"x": ONES(2)})


def test_inputs() -> None:
    program = sparse.program("T(i) = x(i)*y(i)\nH(i) = T(i)")
    inputs = {"x": ONES(2), "y": ONES(2)}
    with pytest.raises(UserError, match="the input y is missing"):
        program.simulate({"x": ONES(2)})
    with pytest.raises(UserError, match="there is no input q"):
        program.simulate({**inputs, "q": 1})
    with pytest.raises(UserError, match="T is an input, and a statement assigns it"):
        program.simulate({**inputs, "T": ONES(2)})
    with pytest.raises(UserError, match="depends on its inputs"):
        t2s.cycles(program)
    with pytest.raises(UserError, match="no statement assigns Tee"):
        program.simulate(inputs)["Tee"]
    for format in ("dd", "ss", "qq"):
        with pytest.raises(UserError, match=r"the format of x does not fit x\(i\)"):
            sparse.program("T(i) = x(i)*2", {"x": format})
    with pytest.raises(UserError, match="must be a mapping of names"):
        sparse.program("T(i) = x(i)", 3)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="this is not a shape of T"):
        sparse.program("T(i) = x(i)", shapes={"T": "a"})
    with pytest.raises(UserError, match="there is a format or a shape of q"):
        sparse.program("T(i) = x(i)", {"q": "s"})


def test_what_nobody_stores() -> None:
    with pytest.raises(UserError, match="P stores all of its elements, since nobody says"):
        sparse.program("S(i,k) = stored(softmax(k; P(i,k)))")
    text = "deg(i) = sum(k, A(i,k))\ns(i) = stored(rsqrt(deg(i)))"
    with pytest.raises(UserError, match=r'formats=\{"deg": "s"\} stores only what'):
        sparse.program(text, {"A": "ds"})
    degrees = sparse.program(text, {"A": "ds", "deg": "s"})
    assert degrees.simulate({"A": np.array([[2, 2], [0, 0]])})["s"].tolist() == [0.5, 0]
    text = "S(i) = stored(max(k; A(i,j)*B(j,k)))"
    with pytest.raises(UserError, match="is not what one of its tensors stores"):
        sparse.program(text, {"A": "ds", "B": "ds"})
    program = sparse.program("m(i) = stored(max(k; A(i,k)))", {"A": "ds"})
    whole = np.array([[1, 2], [0, 0]])
    with refused("""
        A has no largest integer at i = 1, where it stores none
          --> program = sparse.program("m(i) = stored(max(k; A(i,k)))", {"A": "ds"})
          expected: a stored element in every row, or floating-point numbers, whose largest one of
                    none is infinite
          given:    1 row without one
          hint:     type=Float(64) computes in floating point
        """):
        program.simulate({"A": whole})
    assert program.simulate({"A": whole}, type=t2s.Float(64))["m"].tolist() == [2, -np.inf]


def test_what_a_workspace_stores_is_said() -> None:
    """A dense workspace would store zeros where A has no row, and max would see them."""
    formats = {"M": "ds", "A": "ds"}
    text = "P(i,j) = M(i,j)*sum(k, A(j,k)*y(k))\nm(i) = stored(max(j; P(i,j)))"
    few = np.zeros((8, 8))
    few[2, 2], few[6, 3] = -5, -7
    inputs = {"M": ONES((8, 8)), "A": few, "y": ONES(8)}
    with refused("""
        which elements P stores depends on how its part sum(k, A(j,k)*y(k)) is stored
          --> program = sparse.program(text, formats)
          expected: a part of P that is a tensor of the program, since stored(...) looks at what
                    is stored
          given:    P(i,j) = M(i,j)*sum(k, A(j,k)*y(k))
          hint:     assign sum(k, A(j,k)*y(k)) to a tensor in a statement before, and read that in P
        """):
        program = sparse.program(text, formats)
        program.simulate(inputs)
    apart = "t(j) = A(j,k)*y(k)\n" + text.replace("sum(k, A(j,k)*y(k))", "t(j)")
    for format, largest in (("d", 0), ("s", -5)):
        program = sparse.program(apart, {**formats, "t": format})
        for values in (program.simulate(inputs), program.interpret(inputs)):
            assert values["m"].tolist() == [largest] * 8


def test_one_kernel_has_no_functions_of_rows() -> None:
    assignment = sparse.parse("y(i) = max(k; X(i,k))")
    for use in (sparse.compile, t2s.lower, t2s.print_loop_nest):
        with pytest.raises(UserError, match="is computed in statements of its own") as caught:
            use(assignment)
        assert "t2s.sparse.program" in str(caught.value.hint)
    with pytest.raises(UserError, match="statements of its own"):
        sparse.compile(assignment, target="capstan")


def test_extents_are_no_results() -> None:
    text = "extent(i) = A(i,k)*x(k)\ny(i) = extent(i) + x(i)"
    with refused("""
        this is not index notation, at column 1:
            extent(i) = A(i,k)*x(k)
            ^
          --> sparse.program(text)
          expected: another name for a result, as extent(k) is how many coordinates k has
          given:    extent
    """):
        sparse.program(text)
    for line in ("y = extent(i)", "y = sum(i, 1)"):
        with pytest.raises(UserError, match="expected: a tensor with i"):
            sparse.program(line)
    renamed = sparse.program(text.replace("extent(i)", "size(i)"))
    inputs = {"A": np.eye(2), "x": ONES(2)}
    assert renamed.simulate(inputs)["y"].tolist() == [2, 2]
