"""Shapes, values, types, names and sums that do not fit an assignment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import sparse
from t2s.errors import UserError
from t2s.sparse import Schedule, Tensor, parse
from tests.errors.refusal import refused


@pytest.mark.parametrize(
    "make",
    [
        lambda: sparse.coo(-1),
        lambda: sparse.coo(0),
        lambda: sparse.csf(2.5),
        lambda: sparse.dense(-1),
        lambda: sparse.dense(10**9),
        lambda: Tensor("A", order=1.5),
    ],
)
def test_orders_that_are_none(make: Any) -> None:
    with pytest.raises(UserError, match="this is not a number of modes"):
        make()


@pytest.mark.parametrize("shape", [(-1, 2), (2.5, 2), ("a", 2), (2**70, 2), 3, "ab", (True, 2)])
def test_shapes_that_are_none(shape: Any) -> None:
    for make in (
        lambda: sparse.from_coordinates([], [], shape),
        lambda: Tensor("A", shape=shape),
        lambda: parse("A(i,j) = 1", {}, {"A": shape}),
        lambda: sparse.from_levels(shape, sparse.dense(2), ({}, {}), np.zeros(4)),
    ):
        with pytest.raises(UserError, match=r"this is not a shape of (the tensor|A)\n"):
            make()


def test_blocks_and_letters_that_are_none() -> None:
    with refused("""
        a block has at least one row and one column
          --> sparse.bcsr(2.5, 2)
          expected: integers, 1 or more
          given:    2.5 x 2
    """):
        sparse.bcsr(2.5, 2)
    with pytest.raises(UserError, match="the letters of a format are a text"):
        sparse.make_format(3)
    with pytest.raises(UserError, match="the format of A must be"):
        parse("y(i) = A(i)", {"A": 3})


def test_a_result_and_an_operand_of_one_name() -> None:
    other, result = Tensor("A", "s"), Tensor("A", "d")
    with refused("""
        two tensors are named A
          --> result["i"] = other["i"] * 2
          expected: a name for each tensor
          note:     the first one
          --> other, result = Tensor("A", "s"), Tensor("A", "d")
          note:     the other one
          --> other, result = Tensor("A", "s"), Tensor("A", "d")
    """):
        result["i"] = other["i"] * 2


def test_a_schedule_for_a_kernel() -> None:
    kernel = sparse.compile(parse("y(i) = A(i,j)", {"A": "dd"}))
    with refused("""
        this kernel is compiled already
          --> sparse.simulate(kernel, {"A": np.ones((2, 2))}, schedule="reorder(j,i)")
          expected: an assignment, where a schedule or a semiring is given
          given:    <Kernel y(i) = sum(j, A(i,j))>
          hint:     compile its assignment: t2s.sparse.compile(kernel.assignment, schedule)
    """):
        sparse.simulate(kernel, {"A": np.ones((2, 2))}, schedule="reorder(j,i)")
    with pytest.raises(UserError, match="compiled already"):
        sparse.compile(kernel, semiring=sparse.MIN_PLUS)
    with pytest.raises(UserError, match="this is not a schedule"):
        sparse.compile(kernel.assignment, 3)


@pytest.mark.parametrize(
    ("positions", "coordinates", "values", "reason"),
    [
        ([0, 1, 2], [0, 7], [1.0, 2.0], "coordinates outside of its mode"),
        ([0, 1, 2], [0, -1], [1.0, 2.0], "coordinates outside of its mode"),
        ([0, 1, 9], [0, 1], [1.0, 2.0], "do not fit"),
        ([0, 2, 2], [1, 0], [1.0, 2.0], "are not sorted"),
        ([0, 1, 2], [0, 1], [1.0], "stores 2 values"),
        ([0, 1, 2], [0.0, 1.0], [1.0, 2.0], "not a list of integers"),
    ],
)
def test_tensors_made_by_hand(positions: Any, coordinates: Any, values: Any, reason: str) -> None:
    arrays = {"pos": np.array(positions), "crd": np.array(coordinates)}
    kernel = sparse.compile(parse("y(i) = A(i,j)", {"A": "ds"}))
    for run in (kernel.simulate, kernel.interpret):
        with pytest.raises(UserError, match=reason):
            run({"A": sparse.SparseTensor((2, 3), "ds", ({}, arrays), np.array(values))})


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (((2, 3), "ds", 3, [1.0]), "the levels of a tensor are not a list of arrays"),
        (((2, 3), "ds", ({}, 3), [1.0]), "the levels of a tensor are not a list of arrays"),
        (((2, 3), "ds", ({},), [1.0]), "has 2 levels"),
        (((2, 3), "ds", ({}, {"pos": "x", "crd": None}), [1.0]), "not a list of integers"),
        (("x", "dd", ({}, {}), [1.0]), "this is not a shape of the tensor"),
        (((2, 3), 3, ({}, {}), [1.0]), "the format of the tensor must be"),
        (((2, 3), "ds:a", ({}, {}), [1.0]), "does not say a format"),
        (((2, 3), "dd", ({}, {}), "x"), "cannot be computed on streams"),
        (((2, 3), "dd", ({}, {}), np.ones((2, 3))), "stores 6 values"),
    ],
)
def test_what_no_tensor_is_made_of(given: Any, reason: str) -> None:
    for make in (sparse.SparseTensor, sparse.from_levels):
        with pytest.raises(UserError, match=reason):
            make(*given)


def test_what_is_where_nothing_is_stored() -> None:
    with refused("""
        what is where nothing is stored is not a number
          --> sparse.from_dense(np.eye(2), "ds", fill="x")
          expected: fill, such as 0 or math.inf
          given:    'x'
    """):
        sparse.from_dense(np.eye(2), "ds", fill="x")


def test_letters_stand_for_a_format_everywhere() -> None:
    eye = np.eye(3)
    arrays = ({}, {"pos": [0, 1, 2, 3], "crd": [0, 1, 2]})
    made = [
        sparse.from_dense(eye, "ds"),
        sparse.tensor(eye, "ds"),
        sparse.tensor(eye).convert("ds"),
        sparse.from_coordinates([[0, 0], [1, 1], [2, 2]], np.ones(3), (3, 3), "ds"),
        sparse.from_levels((3, 3), "ds", arrays, np.ones(3)),
        sparse.SparseTensor((3, 3), "ds", arrays, np.ones(3)),
    ]
    for tensor in made:
        assert tensor.format == sparse.csr
        assert np.array_equal(tensor.to_dense(), eye)
    assert sparse.tensor(eye, "ds:1,0").format == sparse.csc
    with refused("""
        the format of the tensor must be a format or its text
          --> sparse.tensor(eye, 3)
          expected: a format such as csr, or its letters, such as "ds"
          given:    3
    """):
        sparse.tensor(eye, 3)


def test_sums_over_what_is_not_there() -> None:
    with refused("""
        sum(i, A(i,k)) sums over i, a variable of the result
          --> parse("y(i) = max(sum(i, A(i,k)), 0)")
          expected: another variable than i
          given:    y(i) = max(sum(i, A(i,k)), 0)
    """):
        parse("y(i) = max(sum(i, A(i,k)), 0)")
    with refused("""
        nothing in sum(j, A(i,k)*2) has the variable j
          --> parse("y(i) = sum(j, A(i,k)*2)")
          expected: one of i, k
          given:    y(i) = sum(j, A(i,k)*2)
    """):
        parse("y(i) = sum(j, A(i,k)*2)")
    with pytest.raises(UserError, match="does not name what it sums over"):
        parse("y = sum(k, k, x(k)*2)")
    x, y = Tensor("x", "d"), Tensor("y")
    with pytest.raises(UserError, match="does not name what it sums over"):
        y[()] = sparse.summation(x["k"])
    with pytest.raises(UserError, match="over something that is not an index variable"):
        sparse.summation(x["k"], 3)


def test_values_that_a_type_does_not_hold() -> None:
    doubled = sparse.compile(sparse.parse("y(i) = a(i) + a(i)", {"a": "s"}))
    large = np.array([1, 2**40])
    with refused("""
        a has values that do not fit int32
          --> doubled.simulate({"a": large}, type=t2s.Int(32))
          expected: values that int32 holds
          given:    1099511627776, of type int64
          hint:     convert a as you mean it, or compute in another type=
    """):
        doubled.simulate({"a": large}, type=t2s.Int(32))
    for value, type in (
        (1.5, t2s.Int(32)),
        (np.nan, t2s.Int(64)),
        (np.inf, t2s.UInt(8)),
        (-1, t2s.UInt(64)),
        (2**53 + 1, t2s.Float(64)),
        (2.0**63, t2s.Int(64)),
        (1e300, t2s.Float(32)),
        (2, t2s.Bool()),
    ):
        with pytest.raises(UserError, match="has values that do not fit"):
            doubled.interpret({"a": np.array([value])}, type=type)


def test_numbers_that_a_type_does_not_hold() -> None:
    small = {"a": np.array([1, 0], np.uint8)}
    kernel = sparse.compile(sparse.parse("y(i) = (100 + 200) * a(i)", {"a": "s"}))
    with refused("""
        the number 300 does not fit uint8
          --> kernel = sparse.compile(sparse.parse("y(i) = (100 + 200) * a(i)", {"a": "s"}))
          expected: numbers of the type uint8, in which the operands are computed
          hint:     type= computes in another type, such as Int(64) or Float(64)
    """):
        kernel.simulate(small)
    for text in ("y(i) = 0.5 * a(i)", "y(i) = a(i) / 2"):
        fraction = sparse.compile(sparse.parse(text, {"a": "s"}))
        with pytest.raises(UserError, match="does not fit int32"):
            fraction.simulate(small, type=t2s.Int(32))
    shortest = sparse.parse("y(i) = a(i) * a(i)", {"a": "s"})
    with pytest.raises(UserError, match="the number inf does not fit int32"):
        sparse.compile(shortest, semiring=sparse.MIN_PLUS).simulate(small, type=t2s.Int(32))


def test_complex_values_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "complex.mtx"
    path.write_text("%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 2 1.0 2.0\n")
    square = sparse.compile(sparse.parse("y(i) = A(i,j) * A(i,j)", {"A": "ss"}))
    for run in (square.simulate, square.interpret):
        with pytest.raises(UserError, match="complex128 cannot be computed on streams"):
            run({"A": sparse.read(path)})


def test_what_is_no_sparse_tensor() -> None:
    with refused("""
        a bytes is not a sparse tensor
          --> sparse.to_scipy(b"x")
          expected: a SparseTensor
          given:    b'x'
          hint:     sparse.tensor makes one of an array or of a matrix of scipy
    """):
        sparse.to_scipy(b"x")
    with pytest.raises(UserError, match="a ndarray is not a sparse tensor"):
        sparse.to_pydata(np.ones(3))


def test_what_is_no_part_of_an_expression() -> None:
    with refused("""
        precompute takes a part of the expression and a name
          --> Schedule().precompute(3, "T")
          expected: such as precompute(C[i, k] * D[j, k], "T"), or T[i, j] of a tensor T
          given:    3, 'T'
    """):
        Schedule().precompute(3, "T")
    with pytest.raises(UserError, match="made of operators of two numbers"):
        sparse.make_semiring("min", sparse.tensor(np.ones(3)), 0)


def test_a_scalar_with_the_name_of_a_loop_variable() -> None:
    with refused("""
        j is a loop variable and a scalar in y(i) = X(i,j)*j
          --> sparse.parse("y(i) = X(i,j)*j", {"X": "ds"})
          expected: another name for the scalar
          given:    j
          hint:     to compute with the coordinate, give it as a tensor over j that holds np.arange
                    of its extent
    """):
        sparse.parse("y(i) = X(i,j)*j", {"X": "ds"})
    with pytest.raises(t2s.errors.UserError, match="j is a loop variable and a scalar"):
        sparse.parse("y(i,j) = max(j, X(i,j))", {"X": "ds"})
    weighted = sparse.parse("y(i) = X(i,j)*n(j)", {"X": "ds"})
    result = sparse.simulate(weighted, {"X": np.eye(3), "n": np.arange(3.0)})
    assert result.output.tolist() == [0, 1, 2]


def test_an_input_of_another_shape_than_declared() -> None:
    i, A = t2s.Var("i"), Tensor("A", sparse.dense(1))
    B = Tensor("B", sparse.dense(1), shape=(8,))
    A[i] = B[i] * 2
    for verb in (sparse.simulate, sparse.interpret):
        with refused("""
            B is given with another shape than it is declared with
              --> B = Tensor("B", sparse.dense(1), shape=(8,))
              expected: shape 8
              given:    shape 10
              hint:     leave the shape out of the declaration to take inputs of any size
        """):
            verb(A, {"B": np.ones(10)})
    assert sparse.interpret(A, {"B": np.ones(8)}).tolist() == [2] * 8
    free = Tensor("B", sparse.dense(1))
    A[i] = free[i] * 2
    assert len(sparse.interpret(A, {"B": np.ones(10)})) == 10
