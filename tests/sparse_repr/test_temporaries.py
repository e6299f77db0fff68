"""Temporaries between stages: how they are stored, what the user says of them, what they cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse as scipy_sparse

import t2s
from benchmarks.sparse_statements import ALLOWED, Statement, banded, statements
from t2s import Var, sparse
from t2s.core.errors import UserError
from t2s.sparse import Kernel, Schedule, Tensor, csr, dense, parse

Array = np.ndarray[Any, Any]

i, j, k, f = (Var(name) for name in "ijkf")


def _mesh(n: int, features: int = 6, width: int = 5) -> dict[str, Any]:
    """A banded symmetric graph, sparse features and dense weights."""
    generator = np.random.default_rng(n)
    bands = [np.ones(n - abs(at)) for at in (-7, -1, 0, 1, 7)]
    graph = scipy_sparse.diags_array(bands, offsets=[-7, -1, 0, 1, 7]).tocsr()
    features_of = scipy_sparse.random_array((n, features), density=0.4, rng=generator).tocsr()
    return {"A": graph, "X": features_of, "W": generator.standard_normal((features, width))}


def _kernel(text: str, formats: dict[str, str], schedule: str = "") -> Kernel:
    return sparse.compile(sparse.parse(text, formats), schedule or None)


@pytest.fixture(scope="module")
def layer() -> tuple[dict[str, Any], Array, int]:
    """The inputs of a layer, its result, and its cycles as two kernels."""
    inputs = _mesh(60)
    first = sparse.simulate(
        sparse.parse("T(j,k)=X(j,f)*W(f,k)", {"X": "ds"}), {"X": inputs["X"], "W": inputs["W"]}
    )
    given = {"A": inputs["A"], "T": first.output}
    second = sparse.simulate(sparse.parse("H(i,k)=A(i,j)*T(j,k)", {"A": "ds"}), given)
    return inputs, second.output, first.cycles + second.cycles


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("H(i,k)=A(i,j)*X(j,f)*W(f,k)", ""),
        ("H(i,k)=sum(j, sum(f, A(i,j)*X(j,f)*W(f,k)))", ""),
        ("H(i,k)=A(i,j)*(X(j,f)*W(f,k))", "precompute(X(j,f)*W(f,k),T)"),
        ("H(i,k)=A(i,j)*X(j,f)*W(f,k)", "precompute(X(j,f)*W(f,k),T(j,k),dd)"),
        ("H(i,k)=A(i,j)*X(j,f)*W(f,k)", 'precompute(W(f,k)*X(j,f),T(j,k),"dd")'),
        ("H(i,k)=sum(j, A(i,j)*sum(f, X(j,f)*W(f,k)))", ""),
        ("H(i,k)=sum(j, A(i,j)*sum(f, X(j,f)*W(f,k)))", "precompute(X(j,f)*W(f,k),T)"),
        ("H(i,k)=sum(j, A(i,j)*sum(f, X(j,f)*W(f,k)))", "precompute(sum(f,X(j,f)*W(f,k)),T)"),
        ("H(i,k)=sum(j, A(i,j)*sum(f, X(j,f)*W(f,k)))", "reorder(i,j,f,k)"),
    ],
)
def test_a_layer_in_one_statement_costs_what_its_kernels_do(
    layer: tuple[dict[str, Any], Array, int], text: str, schedule: str
) -> None:
    inputs, expected, cycles = layer
    kernel = _kernel(text, {"A": "ds", "X": "ds"}, schedule)
    result = kernel.simulate(inputs)
    assert np.allclose(result.output, expected)
    assert result.cycles <= 1.02 * cycles
    assert np.allclose(kernel.interpret(inputs), expected)


def test_a_tensor_says_how_a_workspace_is_stored(layer: tuple[dict[str, Any], Array, int]) -> None:
    inputs, expected, cycles = layer
    A, X, W = Tensor("A", csr), Tensor("X", csr), Tensor("W", dense(2))
    H, T = Tensor("H", dense(2)), Tensor("T", dense(2))
    H[i, k] = A[i, j] * (X[j, f] * W[f, k])
    part = X[j, f] * W[f, k]
    ways = [
        Schedule().precompute(part, T),
        Schedule().precompute(part, T, over=(j, k)),
        Schedule().precompute(part, T[j, k]),
        Schedule().precompute(part, "T(j,k)", "dd"),
        Schedule().precompute(part, "T", over=(j, k), format=dense(2)),
    ]
    for schedule in ways:
        kernel = sparse.compile(H, schedule)
        assert str(kernel).startswith(
            ("T(j,k) is stored as dd:0,1\n", "T(k,j) is stored as dd:1,0\n")
        )
        result = kernel.simulate(inputs, engine="python")
        assert np.allclose(result.output, expected)
        assert result.cycles <= 1.02 * cycles
    kernel = sparse.compile(H, Schedule().precompute(part, "T(j,k)", "ss"))
    assert str(kernel).startswith("T(j,k) is stored as ss:0,1\n")
    assert np.allclose(kernel.interpret(inputs, level="blocks"), expected)


PRODUCT = "H(i,k)=max(sum(j, A(i,j)*B(j,k)), 0)"
LAYER = "H(i,k)=sum(j, A(i,j)*sum(f, X(j,f)*W(f,k)))"


@pytest.mark.parametrize(
    ("text", "formats", "stored"),
    [
        ("y(i)=max(sum(j, A(i,j)*x(j)), 0)", "A:dd", "total(i) is stored as d:0"),
        (PRODUCT, "", "total(i,k) is stored as dd:0,1"),
        (PRODUCT, "A:ds", "total(i,k) is stored as ds:0,1"),
        (PRODUCT, "A:ss B:ss", "total(i,k) is stored as ss"),
        # located into by A, in all levels or in the outermost one
        (LAYER, "A:ds X:ds", "total(k,j) is stored as dd:1,0"),
        (LAYER, "A:ds X:ss W:ss", "total(k,j) is stored as ds:1,0"),
        # nobody to locate with: the reader walks what there is
        ("y(k)=max(sum(j, A(j)*B(j,k)), 0)", "A:s B:ds", "total(k) is stored as s:0"),
        # summed over everything: zeros come out where nothing is stored
        ("y(i)=x(i)*sum(j, A(i,j)+b(j))", "A:ss b:s x:s", "total(i) is stored as d:0"),
    ],
)
def test_formats_of_temporaries(text: str, formats: str, stored: str) -> None:
    kernel = sparse.compile(sparse.parse(text, formats.split()), "transpose()")
    lines = str(kernel).splitlines()
    assert any(line.startswith(stored) and ", by default" in line for line in lines), lines


def test_a_skip_keeps_the_levels_that_it_intersects() -> None:
    text, formats = "H(i,k)=A(i,j)*(X(j,f)*W(f,k))", {"A": "ds", "X": "ds"}
    kernel = _kernel(text, formats, "precompute(X(j,f)*W(f,k),T),skip(j)")
    assert "T(k,j) is stored as sd:1,0, by default" in str(kernel)
    inputs = _mesh(20)
    expected = inputs["A"] @ (inputs["X"] @ inputs["W"])
    assert np.allclose(kernel.interpret(inputs, level="blocks"), expected)


def test_parts_are_found_inside_of_sums_and_of_other_parts() -> None:
    text = "y(i)=0.85*sum(j, A(i,j)*(x(j)/d(j))) + 0.15"
    matrix = np.array([[0, 1.0, 2], [0, 0, 0], [3, 0, 0]])
    inputs = {"A": matrix, "x": np.array([1.0, 2, 3]), "d": np.array([2.0, 4, 5])}
    expected = 0.85 * matrix @ (inputs["x"] / inputs["d"]) + 0.15
    kernel = _kernel(text, {"A": "ds"}, "precompute(x(j)/d(j),z)")
    assert "z(j) is stored as d:0, by default" in str(kernel)
    assert np.allclose(kernel.simulate(inputs, engine="python").output, expected)
    nested = _kernel(
        text, {"A": "ds"}, "precompute(sum(j,A(i,j)*(x(j)/d(j))),t),precompute(x(j)/d(j),z)"
    )
    assert np.allclose(nested.interpret(inputs, level="blocks"), expected)
    with pytest.raises(UserError, match=r"the expression has x\(j\)\*d\(j\) nowhere"):
        _kernel(text, {"A": "ds"}, "precompute(x(j)*d(j),z)")


@pytest.mark.parametrize(
    ("workspace", "message"),
    [
        ('"T(j)", "d"', "T(j) does not hold X(j,f)*W(f,k)"),
        ('"T(j,k,i)", "ddd"', "T(j,k,i) does not hold X(j,f)*W(f,k)"),
        ('"T(j,k)", "d"', "the format of T does not fit T(j,k)"),
        ('Tensor("T", dense(3))', "the format of T does not fit T(k,j)"),
        ('"T(j,k", "dd"', "precompute takes a part of the expression and a name"),
    ],
)
def test_workspaces_that_do_not_fit(workspace: str, message: str) -> None:
    A, X, W = Tensor("A", csr), Tensor("X", csr), Tensor("W", dense(2))
    H = Tensor("H", dense(2))
    H[i, k] = A[i, j] * (X[j, f] * W[f, k])
    names = {"s": Schedule(), "p": X[j, f] * W[f, k], "Tensor": Tensor, "dense": dense}
    with pytest.raises(UserError) as caught:
        sparse.compile(H, eval(f"s.precompute(p, {workspace})", names))
    assert caught.value.message == message


def test_a_workspace_keeps_a_variable_that_could_be_summed() -> None:
    inputs = _mesh(12)
    kernel = _kernel(
        "H(i,k)=A(i,j)*(X(j,f)*W(f,k))",
        {"A": "ds", "X": "ds"},
        "precompute(X(j,f)*W(f,k),T(j,f,k),dsd)",
    )
    expected = inputs["A"] @ (inputs["X"] @ inputs["W"])
    assert np.allclose(kernel.interpret(inputs, level="blocks"), expected)


@pytest.mark.parametrize(
    ("text", "formats", "order"),
    [
        ("X(i,j)=B(i,k)*C(k,j)", {"B": "ds", "C": "ds:1,0", "X": "ss"}, "i,k,j"),
        ("H(i,k)=max(sum(j,A(i,j)*sum(f,X(j,f)*W(f,k))),0)", {"A": "ds", "X": "ds"}, "j,i,f,k"),
        ("H(i,k)=max(sum(j,A(i,j)*sum(f,X(j,f)*W(f,k))),0)", {"A": "ds", "X": "ds:1,0"}, "i,j,f,k"),
    ],
)
def test_hints_of_an_order_compile(text: str, formats: dict[str, str], order: str) -> None:
    assignment = sparse.parse(text, formats)
    with pytest.raises(UserError, match="do not walk") as caught:
        sparse.compile(assignment, f"reorder({order})")
    hints = (caught.value.hint or "").split(", or ")
    assert any(hint.startswith("reorder(") for hint in hints)
    for hint in hints:
        call = hint.split(")")[0].replace("'", "").replace(" ", ",") + ")"
        given = f"reorder({order})," if call.startswith("transpose") else ""
        assert sparse.compile(assignment, given + call)


def test_sums_that_a_loop_would_repeat_are_computed_once() -> None:
    kernel = _kernel("y(i)=A(k,i)*A(k,j)*x(j)", {"A": "ds"})
    assert "part(k) += A(k,j)*x(j)" in str(kernel)
    ordered = _kernel("y(i)=A(k,i)*A(k,j)*x(j)", {"A": "ds"}, "reorder(k,i,j)")
    assert "part" not in str(ordered)
    generator = np.random.default_rng(2)
    matrix = generator.integers(0, 2, (30, 20)) * generator.integers(1, 5, (30, 20))
    inputs = {"A": matrix, "x": np.arange(20)}
    expected = matrix.T @ (matrix @ inputs["x"])
    once, again = (one.simulate(inputs, engine="python") for one in (kernel, ordered))
    assert np.array_equal(once.output, expected)
    assert np.array_equal(again.output, expected)
    assert once.cycles < again.cycles / 3


@pytest.mark.parametrize(
    "text",
    [
        "X(i,j)=M(i,j)*(Q(i,k)*K(j,k))",  # M samples the product
        "X(i,r)=B(i,j,k)*V(j,r)*W(k,r)",  # every sum changes in all loops
        "t=L(i,j)*L(j,k)*L(i,k)",
    ],
)
def test_what_stays_one_nest(text: str) -> None:
    formats = {"M": "ds", "X": "ds", "B": "sss", "L": "ds"}
    used = {name: made for name, made in formats.items() if f"{name}(" in text}
    assert len(_kernel(text, used, "transpose()").program.stages) == 1


def test_sampled_sums_stay_in_the_loops_of_the_mask() -> None:
    text = "X(i,j)=M(i,j)*(sum(k, C(i,k)*Q(j,k)) - sum(l, P(i,l)*R(j,l)))"
    kernel = _kernel(text, {"M": "ds", "X": "ds"})
    assert len(kernel.program.stages) == 1
    generator = np.random.default_rng(3)
    mask = (generator.random((9, 8)) < 0.2) * 2.0
    shapes = {"C": (9, 3), "Q": (8, 3), "P": (9, 4), "R": (8, 4)}
    inputs = {name: generator.random(shape) for name, shape in shapes.items()}
    expected = mask * (inputs["C"] @ inputs["Q"].T - inputs["P"] @ inputs["R"].T)
    for level in ("notation", "loops", "blocks"):
        assert np.allclose(kernel.interpret({"M": mask, **inputs}, level=level), expected)


def test_a_join_that_a_loop_would_repeat_is_computed_once() -> None:
    kernel = _kernel("Y(i,j)=A(i,s)*(B(s,j)+C(s,j))", {"A": "ds", "B": "ds", "C": "ds"})
    assert "part(j,s) = B(s,j) + C(s,j)" in str(kernel)


SQUARE = "X(i,j)=A(i,j)*A(i,k)*A(k,j)"
LOOKED_UP = {
    SQUARE: "part(i,j) is stored as dd:0,1",
    "X(i,j)=A(i,j)*sum(k, A(i,k)*A(k,j))": "total(i,j) is stored as dd:0,1",
    "t=A(i,j)*A(j,k)*A(i,k)": "part(i,k) is stored as dd:0,1",
    "t=x(i)*A(i,j)*y(j)": "part(j) is stored as d:0",
    "z(i)=A(i,j)*y(j)": "part(j) is stored as d:0",
    "z(i)=sum(s, A(i,s)*sum(j, A(s,j)*(y(j)/d(j))))": "part(j) is stored as d:0",
}


@pytest.mark.parametrize("text", LOOKED_UP)
def test_what_would_be_scanned_again_and_again_is_looked_up(text: str) -> None:
    """Where sizes are known; fewer cycles than in the loops as printed, and the same values."""
    formats = {"A": "ds", "X": "ds", "x": "s", "y": "s"}
    used = {name: made for name, made in formats.items() if f"{name}(" in text}
    kernel = _kernel(text, used)
    graph = _mesh(30)["A"] - 3 * scipy_sparse.eye_array(30)
    vector = np.where(np.arange(30) % 2, np.arange(30) - 11.0, 0)
    given = {"A": graph, "x": vector[::-1].copy(), "y": vector, "d": np.arange(1.0, 31)}
    inputs = {name: one for name, one in given.items() if f"{name}(" in text.split("=")[1]}
    assert LOOKED_UP[text] in str(kernel.for_inputs(inputs))
    assert LOOKED_UP[text] not in str(kernel)
    assert "scanned again" in str(kernel) or "densely up to" in str(kernel)
    result = kernel.simulate(inputs, engine="python")
    usual = t2s.simulate(replace(kernel.design(), adapts=False), inputs, engine="python")
    assert np.allclose(result.output, usual.output)
    assert result.cycles < usual.cycles
    assert len(kernel.graphs(inputs)) == len(result.stages) > 1
    for level in ("notation", "loops", "blocks"):
        assert np.allclose(kernel.interpret(inputs, level=level), usual.output)


def test_what_is_lower_than_one_graph_stays_one() -> None:
    """Verbs of one graph take the loops as printed."""
    kernel = _kernel("z(i)=A(i,j)*y(j)", {"A": "ds", "y": "s"})
    inputs = {"A": _mesh(20)["A"], "y": np.arange(20) % 2}
    assert len(kernel.simulate(inputs).stages) == 2
    assert t2s.lower(kernel, inputs).nodes


def test_nothing_is_looked_up_where_that_is_slower_or_larger_or_not_the_same() -> None:
    kernel = _kernel(SQUARE, {"A": "ds", "X": "ds"})
    graph = _mesh(20)["A"]
    assert kernel.for_inputs({"A": graph}) is not kernel
    infinite = graph.copy()
    infinite.data[0] = np.inf
    large = scipy_sparse.csr_array(([1.0], ([3], [4])), shape=(2000, 2000))
    sparse_one = scipy_sparse.csr_array(([1.0], ([3], [4])), shape=(20, 20))
    for given in (infinite, large, sparse_one):
        assert kernel.for_inputs({"A": given}) is kernel
    ordered = _kernel(SQUARE, {"A": "ds", "X": "ds"}, "reorder(i,k,j)")
    assert ordered.for_inputs({"A": graph}) is ordered
    assert str(ordered).startswith("for i:")


def test_a_dense_temporary_does_not_change_what_is_stored() -> None:
    """Rows of a star have no triangles: nothing is stored there, though zeros are looked up."""
    star = np.zeros((12, 12))
    star[0, 1:] = star[1:, 0] = 1
    star[1, 2] = star[2, 1] = 1
    kernel = _kernel(SQUARE, {"A": "ds", "X": "ds"})
    assert "dd" in str(kernel.for_inputs({"A": star}))
    result = kernel.simulate({"A": star})
    expected = star * (star @ star)
    assert np.array_equal(result.output, expected)
    assert result.tensor.nnz == np.count_nonzero(expected) < np.count_nonzero(star)


@pytest.mark.slow
def test_statements_cost_what_their_best_kernels_do() -> None:
    for one in statements(banded(40)):
        cycles, best = one.cycles(engine="python")
        assert cycles <= ALLOWED * best, (one.name, cycles, best)


def test_a_temporary_that_makes_the_iterations_is_not_looked_up() -> None:
    """Three of 16 scales are stored: the scaled matrix has few entries, and is walked."""
    text = "Y(i,j) = sum(s, A(i,s)*(sum(r, B(s,r)*(C(r,j)/d(j)))*x(s)))"
    kernel = _kernel(text, {"A": "ds", "B": "ds", "C": "ss", "x": "s", "Y": "ds"})
    generator = np.random.default_rng(0)
    scale = np.zeros(16)
    scale[[6, 12, 14]] = -2.0, 1.0, 2.0
    shapes = {"A": (24, 16), "B": (16, 11), "C": (11, 24)}
    shares = {"A": 0.6, "B": 0.3, "C": 0.1}
    inputs = {
        name: np.where(generator.random(shape) < shares[name], generator.integers(1, 9, shape), 0.0)
        for name, shape in shapes.items()
    } | {"x": scale, "d": np.arange(1.0, 25)}
    result = kernel.simulate(inputs, engine="python")
    product = inputs["B"] @ (inputs["C"] / inputs["d"])
    assert np.allclose(result.output, inputs["A"] @ (product * scale[:, None]))
    assert result.stages[-1].cycles < 300


SKIPPED = (
    Statement(
        name="a factor of several operands, in the loops that it needs whatever reads its sum",
        text="Y(i,j)=A(i,s)*sum(r, B(s,r)*(D(r,j)*C(r,j)))",
        formats="A:ds C:ss D:ds Y:ds",
        inputs={"A": 0.6, "B": 1, "C": 0.6, "D": 0.3},
        sequences=[
            [
                ("T(r,j)=D(r,j)*C(r,j)", "C:ss D:ds T:ds"),
                ("U(s,j)=B(s,r)*T(r,j)", "T:ds U:ds"),
                ("Y(i,j)=A(i,s)*U(s,j)", "A:ds U:ds Y:ds"),
            ]
        ],
    ),
    Statement(
        name="empty rows, in which there is nothing to scan",
        text="Y(i,j)=A(i,s)*sum(r, B(s,r)*C(r,j))",
        formats="A:ss B:ds Y:ds",
        inputs={"A": 0.3, "B": 0.06, "C": 1},
        sequences=[
            [("T(s,j)=B(s,r)*C(r,j)", "B:ds T:ds"), ("Y(i,j)=A(i,s)*T(s,j)", "A:ss T:ds Y:ds")]
        ],
    ),
    Statement(
        name="zeros of an array that was looked up",
        text="y(i)=A(i,s)*sum(r, B(s,r)*(d(r)*x(r)))",
        formats="B:ds d:s x:s",
        inputs={"A": 1, "B": 0.2, "d": 0.1, "x": 0.5},
        sequences=[
            [
                ("T(r)=d(r)*x(r)", "d:s x:s T:s"),
                ("U(s)=B(s,r)*T(r)", "B:ds T:s U:s"),
                ("y(i)=A(i,s)*U(s)", "U:s"),
            ]
        ],
    ),
)


@pytest.mark.parametrize("one", SKIPPED, ids=lambda one: one.name)
def test_what_a_temporary_does_not_store_is_skipped_later(one: Statement) -> None:
    """Inputs are given by the share of their elements that is stored."""
    generator = np.random.default_rng(6)
    extents = {"A": (11, 16), "B": (16, 13), "C": (13, 9), "D": (13, 9), "d": (13,), "x": (13,)}
    inputs = {
        name: np.where(
            generator.random(extents[name]) < share, generator.integers(1, 9, extents[name]), 0.0
        )
        for name, share in one.inputs.items()
    }
    cycles, best = replace(one, inputs=inputs).cycles(engine="python")
    assert cycles <= 1.02 * best


def test_zeros_and_empty_rows_are_left_out_only_where_that_changes_no_value() -> None:
    """An infinite operand, or a divisor of zero, makes NaN of a zero that is stored."""
    text = "y(i)=A(i,s)*(sum(r, B(s,r)*(d(r)*x(r)))/e(s))"
    kernel = _kernel(text, {"B": "ds", "d": "s", "x": "s"})
    few = np.arange(12.0) * (np.arange(12) % 5 == 0)
    inputs = {"A": np.ones((7, 12)), "B": np.eye(12), "d": few, "x": few, "e": np.ones(12)}
    assert "total(s) is stored as s:0, by default, and without zeros" in str(kernel)
    assert "zeros of total are not stored" in str(kernel.for_inputs(inputs))
    assert np.allclose(kernel.simulate(inputs).output, [(few**2).sum()] * 7)
    for name, value in (("A", np.inf), ("e", 0.0)):
        given = {**inputs, name: inputs[name].copy()}
        given[name].flat[1] = value
        assert "zeros of total" not in str(kernel.for_inputs(given))
    product = _kernel("Y(i,j)=A(i,s)*sum(r, B(s,r)*C(r,j))", {"A": "ss", "B": "ds"})
    rows = np.eye(12) * (np.arange(12) % 4 > 0)
    given = {"A": np.eye(12), "B": rows, "C": np.ones((12, 3))}
    assert "total(j,s) is stored as ds:1,0" in str(product.for_inputs(given))
    for other in (np.eye(12), np.where(rows > 0, np.inf, 0)):
        assert product.for_inputs({**given, "B": other}) is product


def test_a_sum_in_lanes_of_vectors_beside_other_terms() -> None:
    """The vectors of each copy are summed: all elements count, not the first of each vector."""
    array = np.array([[7.0, 1.0], [6.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
    for levels in ("uq:1,0", "ss:1,0", "dd:1,0", "ds:0,1"):
        assignment = parse("X = 1 + sum(j,k, A(j,k))", {"A": levels})
        schedule = Schedule().transpose().vectorize("j", 2).parallelize("j", 2)
        kernel = Kernel(assignment, schedule)
        for level in ("notation", "loops", "blocks"):
            assert kernel.interpret({"A": array}, level=level) == 19
        assert kernel.simulate({"A": array}).output == 19
