"""Mistakes in formats, tensors, index notation and its schedules."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import t2s
from t2s import UserError, sparse
from t2s.sparse import Kernel, Schedule, Tensor, parse
from tests.errors.refusal import refused


def test_an_unknown_level_kind() -> None:
    with refused("""
        there is no level kind x
          --> sparse.make_format("dx")
          expected: one letter for each level, of d dense, s compressed, u compressed non-unique,
                    q singleton, c singleton non-unique, b bitvector, t bit tree, l linked list
          given:    dx
    """):
        sparse.make_format("dx")


def test_modes_that_are_no_order() -> None:
    with refused("""
        the format ds cannot store its modes in the order [1, 1]
          --> sparse.make_format("ds", (1, 1))
          expected: each of 0 to 1 once
          given:    1,1
    """):
        sparse.make_format("ds", (1, 1))


def test_a_format_of_another_order() -> None:
    with refused("""
        the format ds:0,1 does not fit a tensor of order 1
          --> sparse.from_dense(np.ones(3), sparse.csr)
          expected: a format of order 1
          given:    order 2
    """):
        sparse.from_dense(np.ones(3), sparse.csr)


def test_a_coordinate_twice() -> None:
    with refused("""
        the coordinate (1, 2) is there twice
          --> sparse.from_coordinates([[1, 2], [1, 2]], [4, 5], (2, 3))
          expected: each coordinate at most once
          given:    values 4 and 5 at it
          hint:     sum_duplicates=True adds them up
    """):
        sparse.from_coordinates([[1, 2], [1, 2]], [4, 5], (2, 3))


def test_a_coordinate_outside() -> None:
    with refused("""
        the coordinate (1, 3) lies outside of the tensor
          --> sparse.from_coordinates([[1, 3]], [4], (2, 3))
          expected: coordinates of a tensor of shape (2, 3), from 0
    """):
        sparse.from_coordinates([[1, 3]], [4], (2, 3))


def test_coordinates_that_are_not_sorted() -> None:
    matrix = scipy.sparse.csr_array(np.ones((2, 2)))
    matrix.indices[:2] = [1, 0]
    with refused("""
        the coordinates of level 1 of the format ds:0,1 are not sorted
          --> sparse.tensor(matrix)
          expected: coordinates that increase within a fiber
          given:    0 after 1 in the fiber of position 0
          hint:     make the tensor with t2s.sparse.from_coordinates, which sorts
    """):
        sparse.tensor(matrix)


def test_segments_that_do_not_fit() -> None:
    levels = ({}, {"pos": np.array([0, 2]), "crd": np.array([0, 1])})
    with refused("""
        the arrays of level 1 of the format ds:0,1 do not fit
          --> sparse.from_levels((2, 2), sparse.csr, levels, np.ones(2))
          expected: pos of 3 numbers that never decrease, from 0 to the length of crd, 2
          given:    pos [0, 2], crd [0, 1]
    """):
        sparse.from_levels((2, 2), sparse.csr, levels, np.ones(2))


WORDS = np.array([3, 1], np.uint64)


@pytest.mark.parametrize(
    ("letters", "arrays", "expected"),
    [
        ("b", {"bits": WORDS[:1], "pos": [0, 2]}, "bits of 2 words of type uint64"),
        ("b", {"bits": [3, 1], "pos": [0, 2, 3]}, "bits of 2 words of type uint64"),
        (
            "b",
            {"bits": WORDS, "pos": [0, 1, 2]},
            "pos of the number of bits before every word, and in all",
        ),
        (
            "t",
            {"top": WORDS[:1], "top_pos": [0, 2], "leaf": WORDS[:1], "leaf_pos": [0, 2]},
            "for leaf and leaf_pos, bits of 2 words of type uint64",
        ),
        (
            "t",
            {"top": WORDS[:1], "top_pos": [0, 1], "leaf": WORDS[:1], "leaf_pos": [0, 2]},
            "for top and top_pos, pos of the number of bits before every word, and in all",
        ),
        (
            "l",
            {"head": [1], "crd": [0, 1], "next": [2, 1]},
            "each of the nodes 1 to 2 once, in head or in next",
        ),
        (
            "l",
            {"head": [9], "crd": [0, 1], "next": [2, 0]},
            "each of the nodes 1 to 2 once, in head or in next",
        ),
        ("l", {"head": [], "crd": [0], "next": [0]}, "head of 1 nodes, and next as long as crd"),
        ("q", {"crd": [0, 1]}, "crd of 1 coordinates"),
    ],
)
def test_arrays_that_do_not_fit(letters: str, arrays: dict[str, Any], expected: str) -> None:
    levels = [
        {name: np.array(array, None if len(array) else int) for name, array in arrays.items()}
    ]
    given = ", ".join(f"{name} {array.tolist()}" for name, array in levels[0].items())
    with refused(f"""
        the arrays of level 0 of the format {letters}:0 do not fit
          --> sparse.from_levels((100,), sparse.make_format(letters), levels, np.ones(2))
          expected: {expected}
          given:    {given}
    """):
        sparse.from_levels((100,), sparse.make_format(letters), levels, np.ones(2))


def test_arrays_of_something_else() -> None:
    levels = [{}, {"pos": np.array([0.0, 1, 2]), "crd": [0, 1]}]
    with refused("""
        the array pos of level 1 is not a list of integers
          --> sparse.from_levels((2, 2), sparse.csr, levels, [1, 2])
          given:    1 dimensions of type float64
    """):
        sparse.from_levels((2, 2), sparse.csr, levels, [1, 2])


def test_coordinates_that_are_no_table() -> None:
    with refused("""
        there is not one row of coordinates for each value
          --> sparse.from_coordinates([[0, 1], [1, 1]], [1.0], (2, 2))
          expected: 1 rows of 2
          given:    an array of shape 2 x 2
    """):
        sparse.from_coordinates([[0, 1], [1, 1]], [1.0], (2, 2))
    with refused("""
        coordinates are integers
          --> sparse.from_coordinates([[0.5, 1]], [1.0], (2, 2))
    """):
        sparse.from_coordinates([[0.5, 1]], [1.0], (2, 2))


def test_values_that_are_not_real() -> None:
    with refused("""
        values of type complex128 cannot be computed on streams
          --> sparse.tensor(np.ones(2, complex))
          expected: real numbers
    """):
        sparse.tensor(np.ones(2, complex))


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
    with pytest.raises(UserError, match="this is no number of modes"):
        make()


@pytest.mark.parametrize("shape", [(-1, 2), (2.5, 2), ("a", 2), (2**70, 2), 3, "ab", (True, 2)])
def test_shapes_that_are_none(shape: Any) -> None:
    for make in (
        lambda: sparse.from_coordinates([], [], shape),
        lambda: Tensor("A", shape=shape),
        lambda: parse("A(i,j) = 1", {}, {"A": shape}),
        lambda: sparse.from_levels(shape, sparse.dense(2), ({}, {}), np.zeros(4)),
    ):
        with pytest.raises(UserError, match=r"this is no shape of (the tensor|A)\n"):
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
    with pytest.raises(UserError, match="no format for A"):
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
    by_hand = sparse.SparseTensor((2, 3), sparse.csr, ({}, arrays), np.array(values))
    kernel = sparse.compile(parse("y(i) = A(i,j)", {"A": "ds"}))
    for run in (kernel.simulate, kernel.interpret):
        with pytest.raises(UserError, match=reason):
            run({"A": by_hand})


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
        a has values that are no int32
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
        with pytest.raises(UserError, match="has values that are no"):
            doubled.interpret({"a": np.array([value])}, type=type)


def test_numbers_that_a_type_does_not_hold() -> None:
    small = {"a": np.array([1, 0], np.uint8)}
    kernel = sparse.compile(sparse.parse("y(i) = (100 + 200) * a(i)", {"a": "s"}))
    with refused("""
        the number 300 is no uint8
          --> kernel = sparse.compile(sparse.parse("y(i) = (100 + 200) * a(i)", {"a": "s"}))
          expected: numbers of the type uint8, in which the operands are computed
          hint:     type= computes in another type, such as Int(64) or Float(64)
    """):
        kernel.simulate(small)
    for text in ("y(i) = 0.5 * a(i)", "y(i) = a(i) / 2"):
        fraction = sparse.compile(sparse.parse(text, {"a": "s"}))
        with pytest.raises(UserError, match="is no int32"):
            fraction.simulate(small, type=t2s.Int(32))
    shortest = sparse.parse("y(i) = a(i) * a(i)", {"a": "s"})
    with pytest.raises(UserError, match="the number inf is no int32"):
        sparse.compile(shortest, semiring=sparse.MIN_PLUS).simulate(small, type=t2s.Int(32))


def test_complex_values_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "complex.mtx"
    path.write_text("%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 2 1.0 2.0\n")
    square = sparse.compile(sparse.parse("y(i) = A(i,j) * A(i,j)", {"A": "ss"}))
    for run in (square.simulate, square.interpret):
        with pytest.raises(UserError, match="complex128 cannot be computed on streams"):
            run({"A": sparse.read(path)})


def test_a_format_that_is_none() -> None:
    assert Tensor("A", "ds:1,0").format == sparse.csc
    with refused("""
        A is declared with something that is not a format
          --> Tensor("A", 3)
          expected: a format such as csr or make_format("ds"), or its letters
          given:    3
    """):
        Tensor("A", 3)
    with refused("""
        there is no level kind x
          --> Tensor("A", "dx")
          expected: one letter for each level, of d dense, s compressed, u compressed non-unique,
                    q singleton, c singleton non-unique, b bitvector, t bit tree, l linked list
          given:    dx
    """):
        Tensor("A", "dx")


def test_what_is_no_assignment() -> None:
    with refused("""
        this is not an assignment
          --> sparse.compile("y(i) = x(i)")
          expected: the result tensor of an assignment, or what t2s.sparse.parse returns
          given:    'y(i) = x(i)'
    """):
        sparse.compile("y(i) = x(i)")


def test_a_singleton_level_for_several_coordinates() -> None:
    with refused("""
        the tensor does not fit the format dq:0,1: a singleton level holds exactly one coordinate
                    for each position above it
          --> sparse.from_dense(np.ones((2, 2)), sparse.make_format("dq"))
          hint:     a singleton level goes below a non-unique one, as in uq
    """):
        sparse.from_dense(np.ones((2, 2)), sparse.make_format("dq"))


def test_something_that_is_no_tensor() -> None:
    with refused("""
        a str is not a tensor
          --> sparse.tensor("A.mtx")
          expected: a SparseTensor, a sparse object of scipy or pydata/sparse, or an array
    """):
        sparse.tensor("A.mtx")


def test_a_file_that_is_not_there() -> None:
    with refused("""
        there is no file nowhere.mtx
          --> sparse.read("nowhere.mtx")
    """):
        sparse.read("nowhere.mtx")


def test_a_line_that_is_no_coordinate(tmp_path: Path) -> None:
    path = tmp_path / "a.tns"
    path.write_text("1 1 2.0\n1 2\n")
    with refused("""
        line 2 of a.tns is not a coordinate and a value
          --> sparse.read(path)
          expected: 3 numbers
          given:    1 2
    """):
        sparse.read(path)


def test_coordinates_are_whole_numbers_from_one(tmp_path: Path) -> None:
    path = tmp_path / "part.tns"
    for line in ("0 1 2.0", "1.5 1 2.0"):
        path.write_text(f"# shape 3 4\n{line}\n")
        with refused(f"""
            line 2 of part.tns is not a coordinate and a value
              --> sparse.read(path)  # no such coordinate
              expected: 3 numbers
              given:    {line}
        """):
            sparse.read(path)  # no such coordinate


def test_a_file_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "bytes.tns"
    path.write_bytes(b"\xff\xfe")
    with refused("""
        bytes.tns is not a text
          --> sparse.read(path)  # bytes
    """):
        sparse.read(path)  # bytes
    path = tmp_path / "text.npy"
    path.write_text("1 2 3")
    with pytest.raises(UserError, match=r"^text.npy is not an array of numpy: "):
        sparse.read(path)
    empty = tmp_path / "empty.npy"
    empty.touch()
    with pytest.raises(UserError, match=r"^empty.npy is not an array of numpy: "):
        sparse.read(empty)


def test_a_file_of_no_kind_to_write() -> None:
    with refused("""
        a tensor of order 3 cannot be written to T.mtx
          --> sparse.write("T.mtx", sparse.tensor(np.ones((2, 2, 2))))
          expected: a name that ends in .tns or .npy, or in .mtx for a matrix
    """):
        sparse.write("T.mtx", sparse.tensor(np.ones((2, 2, 2))))


def test_a_library_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sparse", None)
    with refused("""
        a tensor of pydata/sparse needs sparse, which is not installed
          --> sparse.to_pydata(sparse.tensor(np.eye(2)))
          hint:     pip install sparse
    """):
        sparse.to_pydata(sparse.tensor(np.eye(2)))


def test_text_that_is_not_notation() -> None:
    with refused("""
        this is not index notation, at column 8:
            y(i) = * A(i)
                   ^
          --> parse("y(i) = * A(i)")
          expected: a tensor, a number or (
          given:    *
    """):
        parse("y(i) = * A(i)")


def test_an_option_that_is_no_format() -> None:
    with refused("""
        A=ds does not say a format
          --> parse("y(i) = A(i,j)", ["A=ds"])
          expected: NAME:LEVELS or NAME:LEVELS:MODES, for example A:ds or A:ds:1,0
    """):
        parse("y(i) = A(i,j)", ["A=ds"])


def test_a_format_for_nothing() -> None:
    with refused("""
        there is a format for B, but no tensor of that name in y(i) = A(i)
          --> parse("y(i) = A(i)", {"B": sparse.csr})
          expected: one of y, A
          given:    B
    """):
        parse("y(i) = A(i)", {"B": sparse.csr})


def test_a_tensor_of_two_orders() -> None:
    with refused("""
        A has two orders in y(i) = A(i)*A(i,j)
          --> parse("y(i) = A(i) * A(i,j)")
          expected: the same number of variables wherever a tensor occurs
          given:    A(i) and A(i,j)
    """):
        parse("y(i) = A(i) * A(i,j)")


def test_a_format_that_does_not_fit_the_access() -> None:
    with refused("""
        the format of A does not fit A(i)
          --> parse("y(i) = A(i)", ["A:ds"])
          expected: a format of 1 levels
          given:    ds:0,1
    """):
        parse("y(i) = A(i)", ["A:ds"])


def test_a_variable_twice_in_the_result() -> None:
    with refused("""
        the result of R(i,i) = A(i) has the variable i twice
          --> parse("R(i,i) = A(i)")
          expected: different variables, so that every element of the result is defined
          given:    R(i,i)
          hint:     write the diagonal to a tensor of order 1
    """):
        parse("R(i,i) = A(i)")


def test_extents_that_disagree() -> None:
    inputs = {"A": np.ones((3, 4)), "x": np.ones(5)}
    assignment = parse("y(i) = A(i,j) * x(j)")
    with refused("""
        the variable j has two extents
          --> assignment = parse("y(i) = A(i,j) * x(j)")
          expected: 4, as in A(i,j) of shape 3 x 4
          given:    5, in x(j) of shape 5
    """):
        Kernel(assignment).interpret(inputs)


def test_a_variable_without_an_extent() -> None:
    assignment = parse("y(i,z) = A(i)")
    with refused("""
        nothing says how far the variable z goes
          --> assignment = parse("y(i,z) = A(i)")
          expected: an input with z, or the shape of y
          given:    y(i,z)
    """):
        Kernel(assignment).interpret({"A": np.ones(2)})


def test_inputs_by_wrong_names() -> None:
    kernel = Kernel(parse("y(i) = A(i)"))
    with refused("""
        there is no input B
          --> kernel.bind({"B": np.ones(2)})
          expected: one of A
          given:    B
    """):
        kernel.bind({"B": np.ones(2)})
    with refused("""
        the input A is missing
          --> kernel.bind({})
          expected: values for A
          given:    nothing
    """):
        kernel.bind({})


def test_loops_that_do_not_walk_a_tensor() -> None:
    text = "X(i,j) = B(i,k) * C(k,j)"
    assignment = parse(text, ["B:ss", "C:ss:1,0", "X:ss"])
    with refused("""
        the loops i, k, j do not walk C(k,j) as it is stored
          --> schedule = Schedule().reorder("i", "k", "j")
          expected: loops in which j, k come in this order
          given:    i, k, j
          note:     C(k,j) is stored by j, k
          --> assignment = parse(text, ["B:ss", "C:ss:1,0", "X:ss"])
          hint:     reorder('i j k'), or transpose('C') converts C before it is used
    """):
        schedule = Schedule().reorder("i", "k", "j")
        Kernel(assignment, schedule)


def test_tensors_that_no_order_of_loops_walks() -> None:
    with refused("""
        the loops i, j do not walk C(i,j) as it is stored
          --> crossed = parse("A(i,j) = B(i,j) + C(i,j)", ["B:ss", "C:ss:1,0"])
          expected: loops in which j, i come in this order; no order fits all tensors
          given:    i, j
          hint:     transpose('C') converts C before it is used
    """):
        crossed = parse("A(i,j) = B(i,j) + C(i,j)", ["B:ss", "C:ss:1,0"])
        Kernel(crossed)


def test_an_order_that_leaves_a_loop_out() -> None:
    assignment = parse("y(i) = A(i,j) * x(j)")
    with refused("""
        reorder does not name every loop once
          --> half = Schedule().reorder("i")
          expected: an order of i, j
          given:    i
    """):
        half = Schedule().reorder("i")
        Kernel(assignment, half)


def test_splits() -> None:
    assignment = parse("y(i) = A(i,j) * x(j)")
    with refused("""
        there is no variable k to split
          --> lost = Schedule().split("k", "k0", "k1", 4)
          expected: one of i, j
    """):
        lost = Schedule().split("k", "k0", "k1", 4)
        Kernel(assignment, lost)
    with refused("""
        the parts of i need names of their own
          --> taken = Schedule().split("i", "j", "i1", 4)
          given:    j and i1
    """):
        taken = Schedule().split("i", "j", "i1", 4)
        Kernel(assignment, taken)
    with refused("""
        the factor of a split is a positive integer
          --> Schedule().split("i", "i0", "i1", 0)
          given:    0
    """):
        Schedule().split("i", "i0", "i1", 0)


def test_a_split_that_goes_too_far() -> None:
    kernel = Kernel(parse("y = (x(i) + 1) * 2"), Schedule().split("i", "i0", "i1", 4))
    with pytest.raises(t2s.UserError, match="the split of i goes beyond its end"):
        kernel.bind({"x": np.ones(6)})
    assert kernel.interpret({"x": np.ones(8)}, level="blocks") == 32


def test_locating_where_there_is_nothing() -> None:
    assignment = parse("y(i) = A(i,j) * x(j)", {"A": "ds"})
    with refused("""
        there is no level of x at i to locate into
          --> nowhere = Schedule().locate("x", "i")
          expected: a variable of x: j
    """):
        nowhere = Schedule().locate("x", "i")
        Kernel(assignment, nowhere)
    with refused("""
        there is no level of z at i to locate into
          --> unknown = Schedule().locate("z", "i")
          expected: one of A, x
    """):
        unknown = Schedule().locate("z", "i")
        Kernel(assignment, unknown)
    with refused("""
        nothing is left at j to locate with
          --> assignment = parse("y(i) = A(i,j) * x(j)", {"A": "ds"})
          expected: an operand that is multiplied with A, x and has j
    """):
        Kernel(assignment, Schedule().locate("x", "j").locate("A", "j"))
    with refused("""
        the level of A at j cannot be located into
          --> assignment = parse("y(i) = A(i,j) * x(j)", {"A": "ds"})
          expected: a dense level
          given:    compressed
    """):
        Kernel(assignment, Schedule().locate("A", "j"))


def test_precomputing_what_is_not_there() -> None:
    A, x, y = Tensor("A", sparse.csr), Tensor("x", order=1), Tensor("y", order=1)
    y["i"] = A["i", "j"] * x["j"]
    with refused("""
        the expression has x(j)*A(i,j) nowhere
          --> other = Schedule().precompute(x["j"] * A["i", "j"], "w")
          expected: a part of the expression that is there once, as it is written there
          given:    sum(j, A(i,j)*x(j))
    """):
        other = Schedule().precompute(x["j"] * A["i", "j"], "w")
        sparse.compile(y, other)


def test_operands_in_python() -> None:
    A, x, y = Tensor("A", sparse.csr), Tensor("x", order=1), Tensor("y", order=1)
    with refused("""
        x is an operand without its index variables
          --> y["i"] = A["i", "j"] * x
          expected: x[...] with 1 index variables
    """):
        y["i"] = A["i", "j"] * x
    with refused("""
        a str is not an operand of index notation
          --> y["i"] = x["i"] + "b"
          expected: a tensor at index variables, a scalar tensor or a number
          given:    'b'
    """):
        y["i"] = x["i"] + "b"
    with refused("""
        A has order 2
          --> y["i"] = A["i"]
          expected: 2 index variables
          given:    A[i]
          note:     A is declared with format ds:0,1
          --> A, x, y = Tensor("A", sparse.csr), Tensor("x", order=1), Tensor("y", order=1)  # one
    """):
        A, x, y = Tensor("A", sparse.csr), Tensor("x", order=1), Tensor("y", order=1)  # one
        y["i"] = A["i"]
    with refused("""
        x is read at something that is not an index variable
          --> y["i"] = x[0]
          expected: index variables, as of i = t2s.Var("i")
          given:    0
    """):
        y["i"] = x[0]


def test_two_tensors_of_one_name() -> None:
    first = Tensor("A", order=1)
    second = Tensor("A", order=1)
    with refused("""
        two tensors are named A
          --> first["i"] + second["i"]
          expected: a name for each tensor
          note:     the first one
          --> first = Tensor("A", order=1)
          note:     the other one
          --> second = Tensor("A", order=1)
    """):
        first["i"] + second["i"]


def test_a_tensor_without_a_definition() -> None:
    with refused("""
        nothing is assigned to alone
          --> alone = Tensor("alone", order=1)
          expected: an assignment such as alone[i, j] = B[i, k] * C[k, j]
    """):
        alone = Tensor("alone", order=1)
        sparse.compile(alone)


def test_lanes_of_no_loop() -> None:
    assignment = parse("y(i) = A(i,j) * x(j)")
    with refused("""
        there is no loop over k to parallelize
          --> unknown = Schedule().parallelize("k", 4)
          expected: one of i, j
    """):
        unknown = Schedule().parallelize("k", 4)
        Kernel(assignment, unknown)
    with refused("""
        a loop is dealt to a positive number of lanes
          --> Schedule().parallelize("i", 0)
          given:    0
    """):
        Schedule().parallelize("i", 0)
