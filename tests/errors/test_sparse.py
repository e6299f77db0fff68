"""Mistakes in formats, tensors, index notation and its schedules."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import t2s
from t2s import sparse
from t2s.errors import UserError
from t2s.sparse import Kernel, Schedule, Tensor, parse
from t2s.sparse_repr.tensors import requirements
from tests.errors.refusal import refused


def test_an_unknown_level_kind() -> None:
    with refused("""
        unknown level kind x
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
    levels = ({}, {"pos": matrix.indptr, "crd": matrix.indices})
    with refused("""
        the coordinates of level 1 of the format ds:0,1 are not sorted
          --> sparse.from_levels((2, 2), sparse.csr, levels, matrix.data)
          expected: coordinates that increase within a fiber
          given:    0 after 1 in the fiber of position 0
          hint:     make the tensor with t2s.sparse.from_coordinates, which sorts
    """):
        sparse.from_levels((2, 2), sparse.csr, levels, matrix.data)


def test_coordinates_that_are_not_sorted_behind_many_that_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requirements, "_CHECKED_AT_ONCE", 8)
    coordinates = np.tile(np.arange(4), 5)
    levels = ({}, {"pos": np.arange(0, 21, 4), "crd": coordinates})
    sparse.from_levels((5, 4), sparse.csr, levels, np.ones(20))
    coordinates[14:16] = 3, 2
    with pytest.raises(UserError, match="given:    2 after 3 in the fiber of position 3"):
        sparse.from_levels((5, 4), sparse.csr, levels, np.ones(20))
    coordinates[14:16] = 2, 4
    with pytest.raises(UserError, match="given:    0 to 4"):
        sparse.from_levels((5, 4), sparse.csr, levels, np.ones(20))


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
          expected: integers, or floats that are exact integers up to 9007199254740992
          given:    an array of float64
    """):
        sparse.from_coordinates([[0.5, 1]], [1.0], (2, 2))


def test_values_that_are_not_real() -> None:
    with refused("""
        values of type complex128 cannot be computed on streams
          --> sparse.tensor(np.ones(2, complex))
          expected: real numbers
          hint:     compute with the real and the imaginary parts, x.real and x.imag
    """):
        sparse.tensor(np.ones(2, complex))


def test_a_format_that_is_none() -> None:
    assert Tensor("A", "ds:1,0").format == sparse.csc
    with refused("""
        the format of A must be a format or its text
          --> Tensor("A", 3)
          expected: a format such as csr, or its letters, such as "ds"
          given:    3
    """):
        Tensor("A", 3)
    with refused("""
        unknown level kind x
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
          expected: a SparseTensor, an array, a sparse object of scipy or pydata/sparse, or a
                    graph of networkx
    """):
        sparse.tensor("A.mtx")


def test_a_file_that_is_not_there() -> None:
    with refused("""
        no such file: nowhere.mtx
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
    path.write_text("# shape 3 4\n1.5 1 2.0\n")
    with refused("""
        line 2 of part.tns is not a coordinate and a value
          --> sparse.read(path)  # no such coordinate
          expected: 3 numbers
          given:    1.5 1 2.0
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
        A occurs with two different orders in y(i) = A(i)*A(i,j)
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
        the extent of z is unknown
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
        split names k, which is not a variable
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
    with pytest.raises(t2s.errors.UserError, match="the split of i goes beyond its end"):
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
        locate leaves no operand to iterate over at j
          --> full = parse("y(i) = A(i,j) * x(j)")
          expected: an operand that is multiplied with A, x and has j
    """):
        full = parse("y(i) = A(i,j) * x(j)")
        Kernel(full, Schedule().locate("x", "j").locate("A", "j"))


def test_precomputing_what_is_not_there() -> None:
    A, x, y = Tensor("A", sparse.csr), Tensor("x", order=1), Tensor("y", order=1)
    y["i"] = A["i", "j"] * x["j"]
    with refused("""
        the expression has x(j)*A(j,i) nowhere
          --> other = Schedule().precompute(x["j"] * A["j", "i"], "w")
          expected: a part of the expression, or factors of one product, that is there once
          given:    sum(j, A(i,j)*x(j))
    """):
        other = Schedule().precompute(x["j"] * A["j", "i"], "w")
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
        parallelize names k, which is not a loop
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


def test_positions_that_no_int64_has() -> None:
    levels = ({"pos": np.array([0, 1], np.uint64), "crd": np.array([1 << 63], np.uint64)},)
    with refused("""\
        the array crd has integers of more than 63 bits
          --> sparse.from_levels((4,), "s", levels, np.ones(1))
          expected: at most 9223372036854775807
          given:    9223372036854775808
        """):
        sparse.from_levels((4,), "s", levels, np.ones(1))
