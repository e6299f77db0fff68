"""What a mapping is: slices, modes, lists, tiles, semirings, formats, properties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from t2s import Float, Int, UInt, Var, external, sparse
from t2s.capability.conditions import mode_name
from t2s.capability.ir import print_capability
from t2s.capability.operands import symmetric_in
from t2s.capability.parts import find_part, part_form
from t2s.capability.reshape import EVERYTHING, Reshape, fewest, mappings
from t2s.errors import UserError
from t2s.sparse import Schedule, Tensor, csr, dense
from t2s.sparse_repr.notation.ir import Assignment, print_expression
from t2s.sparse_repr.notation.parse import parse_expression
from tests.capability.functions import described
from tests.errors.refusal import refused


def _function(statement: str, **said: Any) -> external.ExternalFunction:
    """A function that is not called; its parameters are its tensors."""
    made = external.make_capability(statement)
    names = sorted({need.name for need in made.needs})
    python = eval(f"lambda {', '.join(names)}: None")
    return described("made", statement, python, **said)


def _part(text: str) -> sparse.Notation:
    return sparse.Notation(parse_expression(text), {})


def _mapped(
    statement: str, part: str, function: str, reshape: Reshape, **formats: str
) -> list[str]:
    """The operands of every mapping with the fewest fixed variables."""
    assignment = sparse.parse(statement, formats)
    stored = {tensor.name: tensor.format for tensor in assignment.tensors}
    taken = find_part(assignment, parse_expression(part), None)
    form = part_form(taken.value, stored)
    return [
        "; ".join([*map(str, one.operands), *(f"fixed {name}" for name in one.fixed)])
        for one in fewest(form, _function(function), reshape)
    ]


AS_IT_IS = Reshape()
FIXED = Reshape(fix=True)


@pytest.mark.parametrize(
    ("statement", "part", "function", "expected"),
    [
        # one abstract tensor is one concrete tensor, at one slice
        ("A = B(i,j)*B(i,j)", "B(i,j)*B(i,j)", "z = x(i,j)*x(i,j)", ["x is B(i,j)"]),
        ("A = B(i,j)*C(i,j)", "B(i,j)*C(i,j)", "z = x(i,j)*x(i,j)", []),
        ("A(i,k) = B(i,j)*B(j,k)", "B(i,j)*B(j,k)", "z(i,k) = x(i,j)*x(j,k)", ["x is B(i,j)"]),
        # different abstract tensors may be one concrete tensor
        ("A = B(i)*B(i)", "B(i)*B(i)", "z = x(i)*y(i)", ["x is B(i); y is B(i)"]),
        # variables are mapped injectively, both ways
        ("A(i) = B(i,i)", "B(i,i)", "z(i,j) = x(i,j)", []),
        ("A(i) = B(i,i)", "B(i,i)", "z(i) = x(i,i)", ["x is B(i,i)"]),
        ("A(i,j) = B(i,j)", "B(i,j)", "z(i) = x(i,i)", []),
        ("A(i) = B(i,i)", "B(i,i)", "z(I) = x(I)", []),
        # sums exactly
        ("A(i) = B(i,j)", "B(i,j)", "z(i,j) = x(i,j)", []),
        ("A(i,j) = B(i,j)", "B(i,j)", "z(i) = x(i,j)", []),
        # numbers by value, signs as coefficients
        ("A(i) = 2*B(i)", "2*B(i)", "z(i) = 2*x(i)", ["x is B(i)"]),
        ("A(i) = 3*B(i)", "3*B(i)", "z(i) = 2*x(i)", []),
        ("A(i) = B(i) - C(i)", "B(i) - C(i)", "z(i) = y(i) - x(i)", ["y is B(i); x is C(i)"]),
        ("A(i) = -B(i) + C(i)", "-B(i) + C(i)", "z(i) = y(i) - x(i)", ["y is C(i); x is B(i)"]),
        ("A(i) = B(i) - C(i)", "B(i) - C(i)", "z(i) = x(i) + y(i)", []),
        # sums of products are one function, however they are written
        (
            "A(i) = (B(i)+C(i))*D(i)",
            "(B(i)+C(i))*D(i)",
            "z(i) = w(i)*x(i) + w(i)*y(i)",
            ["w is D(i); x is B(i); y is C(i)", "w is D(i); x is C(i); y is B(i)"],
        ),
        # outside of + and * only equal trees
        ("A(i) = B(i)/C(i)", "B(i)/C(i)", "z(i) = x(i)/y(i)", ["x is B(i); y is C(i)"]),
        ("A(i) = B(i)/C(i)", "B(i)/C(i)", "z(i) = x(i)*y(i)", []),
        ("A(i) = min(B(i),C(i))", "min(B(i),C(i))", "z(i) = max(x(i),y(i))", []),
        # a quotient is not split, and its divisor is not summed with what it divides
        ("A(i) = B(i,j)*C(j)/D(i)", "B(i,j)*C(j)", "z(i) = x(i,j)*y(j)", []),
    ],
)
def test_as_it_stands(statement: str, part: str, function: str, expected: list[str]) -> None:
    assert sorted(_mapped(statement, part, function, AS_IT_IS)) == sorted(expected)


def test_one_tensor_at_two_slices_is_two_operands() -> None:
    square = "A(k,l) = B(k,i)*B(l,i)"
    one = _mapped(square, "B(k,i)*B(l,i)", "z = x(i)*x(i)", FIXED)
    assert one == []
    two = _mapped(square, "B(k,i)*B(l,i)", "z = x(i)*y(i)", FIXED)
    assert "x is B(k,i) seen as (i); y is B(l,i) seen as (i); fixed k; fixed l" in two


@pytest.mark.parametrize(
    ("statement", "function", "count"),
    [
        ("A(i,j,k) = B(i,j,k)", "z(I) = x(I)", 1),
        ("A(i,j,k) = B(i,j,k)", "z(I,J) = x(I,J)", 4),  # a cut before each variable, and the end
        ("A(i,j,k) = B(i,j,k)", "z(I,j) = x(I,j)", 1),
        ("A(i,j,k) = B(i,j,k)", "z(i,I,j) = x(i,I,j)", 1),
        ("A(i) = B(i,j,k)", "z(I) = x(I,J)", 1),
        ("A(k) = B(i,j,k)", "z(I) = x(I,J)", 0),
        ("A = B", "z(I) = x(I)", 1),
    ],
)
def test_lists_take_every_cut(statement: str, function: str, count: int) -> None:
    assignment = sparse.parse(statement)
    formats = {tensor.name: tensor.format for tensor in assignment.tensors}
    form = part_form(assignment.value, formats)
    assert len(_states(form, function)) == count


def _states(form: Any, function: str) -> list[Any]:
    from t2s.capability.match import Reshaping, states

    return list(states(form, _function(function), Reshaping()))


def test_neighbors_are_fused() -> None:
    """Matrices are vectors to a function of vectors, if they are contiguous."""
    assignment = sparse.parse("A(i,j) = B(i,j) + C(i,j)")
    plan = sparse.compile(assignment, Schedule().map(_part("B(i,j) + C(i,j)"), "blas.daxpy"))
    (step,) = plan.program.calls
    assert [mode_name(mode) for mode in step.mapping.result] == ["i*j"]
    given = {"B": np.arange(12.0).reshape(3, 4), "C": np.ones((3, 4))}
    found = plan.run(given)
    assert found.steps[0].calls == 1
    assert np.array_equal(found.output, given["B"] + 1)
    window = np.arange(40.0).reshape(5, 8)[1:4, 2:6]
    copied = plan.run({"B": given["B"], "C": window})
    assert copied.steps[0].copied == window.nbytes
    assert np.array_equal(copied.output, given["B"] + window)


def test_tiles_without_padding() -> None:
    octets = described("octets", "z(i) = x(i) + y(i) when i <= 4", lambda x, y, z: np.add(x, y, z))
    eight = described("eight", "z(i) = x(i) + y(i) when i == 4", lambda x, y, z: np.add(x, y, z))
    assignment = sparse.parse("a(i) = b(i) + c(i)")
    given = {"b": np.arange(10.0), "c": np.ones(10)}
    for function, calls in ((octets, 3), (eight, 0)):
        schedule = Schedule().map(_part("b(i) + c(i)"), function, pad=False)
        found = sparse.compile(assignment, schedule).run(given)
        assert found.steps[0].calls == calls
        assert np.array_equal(found.output, np.arange(10.0) + 1)
    strict = Schedule().map(_part("b(i) + c(i)"), eight, pad=False, else_=None)
    with pytest.raises(UserError, match="eight is not for these extents"):
        sparse.compile(assignment, strict).run(given)


def test_infinity_beside_padding() -> None:
    """A sum is padded only where every factor has its variable: 0 times infinity is NaN."""
    scaled = described(
        "scaled",
        "z = a * x(i) when i == 4",
        lambda a, x, z: np.copyto(z, (a * x).sum()),
    )
    assignment = sparse.parse("s = a * x(i)")
    plan = sparse.compile(assignment, Schedule().map(_part("a * x(i)"), scaled))
    found = plan.run({"a": np.array(np.inf), "x": np.ones(6)})
    assert float(found.output) == np.inf
    assert found.steps[0].note == "guard false: computed by loops"


def test_a_function_over_a_semiring() -> None:
    def shortest(x: Any, y: Any, z: Any) -> None:
        np.min(x[:, :, None] + y[None, :, :], axis=1, out=z)

    made = external.make_function(
        "shortest",
        "z(i,k) = x(i,j) * y(j,k)",
        python=shortest,
        strides="any",
        semirings=(sparse.MIN_PLUS,),
    )
    external.check(made, trials=50)
    assignment = sparse.parse("A(i,k) = B(i,j) * C(j,k)", {"B": "ds"})
    schedule = Schedule().map(_part("B(i,j) * C(j,k)"), made, densify=True)
    plan = sparse.compile(assignment, schedule, semiring=sparse.MIN_PLUS)
    roads = np.array([[0, 4, np.inf], [np.inf, 0, 5], [1, np.inf, 0]])
    kernel = sparse.compile(assignment, semiring=sparse.MIN_PLUS)
    expected = kernel.interpret({"B": roads, "C": roads})
    assert np.array_equal(plan.run({"B": roads, "C": roads}).output, expected)
    with pytest.raises(UserError, match="is not what shortest computes"):
        sparse.compile(assignment, schedule)


@pytest.mark.parametrize("letters", ["ds", "ds:1,0"])
def test_functions_of_several_formats(letters: str) -> None:
    assignment = sparse.parse("a(i) = B(i,j)*c(j)", {"B": letters})
    plan = sparse.compile(assignment, "bind(B(i,j)*c(j),scipy.spmv)")
    given = {"B": np.diag([1.0, 2.0, 3.0])[:, :2], "c": np.array([4.0, 5.0])}
    assert np.array_equal(plan.run(given).output, given["B"] @ given["c"])


def test_a_checker_has_the_last_word() -> None:
    busy: list[bool] = [True]

    def free(mapping: external.Mapping) -> bool:
        assert mapping.function.name == "guarded"
        return not busy[0]

    made = described("guarded", "z(i) = x(i) + y(i)", lambda x, y, z: np.add(x, y, z), checker=free)
    assignment = sparse.parse("a(i) = b(i) + c(i)")
    with refused("""
        b(i) + c(i) is not what guarded computes
          --> checked = Schedule().bind(_part("b(i) + c(i)"), made)
          expected: one that it accepts
          given:    a match that its checker refuses
    """):
        checked = Schedule().bind(_part("b(i) + c(i)"), made)
        sparse.compile(assignment, checked)
    busy[0] = False
    sparse.compile(assignment, Schedule().bind(_part("b(i) + c(i)"), made))


def test_workspaces_keep_properties() -> None:
    declared = {"S": ("symmetric",), "R": ("symmetric",)}

    def pairs(text: str) -> list[str]:
        return ["".join(sorted(one)) for one in symmetric_in(parse_expression(text), declared)]

    assert pairs("S(i,j) + R(j,i)") == ["ij"]
    assert pairs("2*S(i,j) - R(i,j)*a") == ["ij"]
    assert pairs("S(i,j) + B(i,j)") == []
    assert pairs("S(i,j)*R(i,j)") == []
    assert pairs("S(i,j) + R(j,k)") == []
    assignment = sparse.parse("a(i) = (S(i,j) + R(i,j))*c(j)")
    tensors = tuple(
        sparse.Tensor(t.name, t.format, properties="symmetric").declaration()
        if t.name in declared
        else t
        for t in assignment.tensors
    )
    assignment = Assignment(
        result=assignment.result, value=assignment.value, tensors=tensors, location=None
    )
    plan = sparse.compile(assignment, "bind(S(i,j)+R(i,j),numpy.add), bind(T(i,j)*c(j),blas.ssymv)")
    values = np.array([[1, 2], [2, 3]], np.float32)
    given = {"S": values, "R": values, "c": np.array([1, -1], np.float32)}
    assert np.array_equal(plan.run(given).output, 2 * values @ given["c"])
    assert "2. check: S is symmetric\n3. check: R is symmetric" in str(plan)


PARTS = [
    ("A(i,k) = B(i,k)*C(i,j)*D(j,k)", "C(i,j)*D(j,k)", "sum(j, C(i,j)*D(j,k))", "B(i,k)*W"),
    ("A(i,k) = B(i,j)*C(i,j)*D(j,k)", "C(i,j)*D(j,k)", "C(i,j)*D(j,k)", "sum(j, B(i,j)*W)"),
    ("A(i) = b(i) + B(i,j)*c(j) + d(i)", "d(i) + b(i)", "d(i) + b(i)", "sum(j, B(i,j)*c(j)) + W"),
    ("A(i) = b(i) - B(i,j)*c(j)", "B(i,j)*c(j)", "sum(j, B(i,j)*c(j))", "b(i) - W"),
    ("A(i) = -b(i)*c(i)", "b(i)", "b(i)", "(-W)*c(i)"),
    ("A(i) = sum(j, (B(i,j)+C(i,j))*d(i))", "B(i,j)+C(i,j)", "sum(j, B(i,j) + C(i,j))", "W*d(i)"),
    ("A(i) = B(i,j)*c(j)/d(i)", "B(i,j)*c(j)", "B(i,j)*c(j)", "sum(j, W/d(i))"),
    ("A(i) = max(sum(j, B(i,j)*c(j)), 0)", "B(i,j)*c(j)", "sum(j, B(i,j)*c(j))", "max(W, 0)"),
    ("A(i) = a*sum(j, B(i,j))*c", "sum(j, B(i,j))", "sum(j, B(i,j))", "a*W*c"),
    ("A(i) = b(i) - 3", "b(i)", "b(i)", "W - 3"),
    ("A(i) = b(i) - 3 - c(i) - 2", "b(i) - c(i)", "b(i) - c(i)", "W - 3 - 2"),
    ("A(i) = b(i) - 3 - c(i)", "b(i) - c(i)", "b(i) - c(i)", "W - 3"),
    ("A(i) = -b(i) - 3", "b(i)", "b(i)", "(-W) - 3"),
]


@pytest.mark.parametrize(("statement", "part", "value", "left"), PARTS)
def test_parts_and_what_is_left(statement: str, part: str, value: str, left: str) -> None:
    taken = find_part(sparse.parse(statement), parse_expression(part), None)
    assert print_expression(taken.value) == value
    assert print_expression(taken.left(parse_expression("W"))) == left


def test_parts_that_are_there_twice_or_nowhere() -> None:
    assignment = sparse.parse("A(i) = b(i)*c(i) + b(i)*c(i)")
    with refused("""
        the expression has b(i)*c(i) twice
          --> twice = Schedule().bind(_part("b(i)*c(i)"), "numpy.multiply")
          expected: factors of one product, or terms of one sum, that are there once
          given:    b(i)*c(i) + b(i)*c(i)
    """):
        twice = Schedule().bind(_part("b(i)*c(i)"), "numpy.multiply")
        sparse.compile(assignment, twice)
    with pytest.raises(UserError, match=r"the expression has b\(i\)\*d\(i\) nowhere"):
        sparse.compile(assignment, "bind(b(i)*d(i),numpy.multiply)")


def test_reshapings_come_fewest_first() -> None:
    assignment = sparse.parse("A(i,k) = B(i,j)*C(j,k)")
    formats = {tensor.name: tensor.format for tensor in assignment.tensors}
    form = part_form(assignment.value, formats)
    found = list(mappings(form, external.blas.ddot, EVERYTHING))
    counts = [len(one.fixed) for one in found]
    assert counts == sorted(counts)
    assert counts[0] == 2
    product = next(mappings(form, external.blas.dgemm, EVERYTHING))
    assert (product.fixed, product.promoted, product.transposed) == ((), (), ())


def test_the_proof_says_what_was_matched() -> None:
    assignment = sparse.parse("A(i,k,m,n) = B(i,k,j,l)*C(j,l,m,n)")
    formats = {tensor.name: tensor.format for tensor in assignment.tensors}
    found = fewest(part_form(assignment.value, formats), external.numpy.contract, AS_IT_IS)
    assert [str(one).splitlines()[-1] for one in found] == [
        "where I is (i,k), K is (j,l), J is (m,n)"
    ]
    assert repr(found[0]) == "<sum(j,l, B(i,k,j,l)*C(j,l,m,n)) by contract>"


def test_an_assignment_is_a_statement() -> None:
    i, j = Var("i"), Var("j")
    z, x, y = Tensor("z", dense(1)), Tensor("x", csr), Tensor("y", dense(1))
    z[i] = x[i, j] * y[j]

    @external.function(z, types="float64")
    def product(x: Any, y: Any, z: Any) -> None:
        assert isinstance(x, sparse.SparseTensor)
        z[...] = x.to_dense() @ y

    assert print_capability(product.capability) == "z(i) = x(i,j)*y(j)"
    assert product.capability.needs_of("x").formats == (csr,)
    external.check(product, trials=20)
    with pytest.raises(UserError, match="w does not say what a function computes"):
        external.function(Tensor("w", dense(1)))(lambda w: None)


def test_types_are_chosen_in_a_run() -> None:
    assignment = sparse.parse("A(i,k) = B(i,j)*C(j,k)")
    plan = sparse.compile(assignment, "bind(B(i,j)*C(j,k),numpy.matmul)")
    for kind in ("int8", "uint16", "int64", "float32", "float64"):
        given = {"B": np.full((3, 4), 7, kind), "C": np.full((4, 2), 9, kind)}
        found = plan.run(given)
        assert found.output.dtype == kind
        assert np.array_equal(found.output, sparse.interpret(assignment, given))
    assert plan.run({"B": np.ones((2, 2)), "C": np.ones((2, 2))}, type=Float(32)).output.dtype == (
        np.float32
    )


@pytest.mark.parametrize("kind", ["uint8", "uint64", "int8", "float32"])
def test_numbers_that_are_subtracted_stay_numbers_of_the_type(kind: str) -> None:
    """There is no -3 of uint8, so what is left does not begin with one."""
    given = {"b": np.array([9, 2], kind), "c": np.array([1, 5], kind)}
    for text in ("a(i) = b(i) - 3 - c(i)", "a(i) = b(i) - c(i) - 3", "a(i) = -3 + b(i) - c(i)"):
        assignment = sparse.parse(text)
        if text.startswith("a(i) = -3") and kind.startswith("u"):
            continue
        plan = sparse.compile(assignment, "bind(b(i)-c(i),numpy.subtract)")
        assert np.array_equal(plan.run(given).output, sparse.interpret(assignment, given))


AXPY = described(
    "axpy",
    "y(i) = a*x(i) + y(i)",
    lambda a, x, y: np.add(y, np.asarray(a * x, y.dtype), out=y),
    types=(Float(64), UInt(8), Int(32)),
)
AXPBY = described("axpby", "z(i) = a*x(i) + b*y(i)", lambda a, x, b, y, z: np.add(a * x, b * y, z))
TWICE = described("twice", "z(i) = a*x(i) + a*y(i)", lambda a, x, y, z: np.multiply(x + y, a, z))
LESS = described("less", "z(i) = a*x(i) - y(i)", lambda a, x, y, z: np.subtract(a * x, y, z))
DOT = described("dot", "s = a*x(i)*y(i)", lambda a, x, y: a * (x @ y))


@pytest.mark.parametrize(
    ("text", "function", "numbers"),
    [
        ("d(i) = 2*b(i) + c(i)", AXPY, ["2"]),
        ("d(i) = c(i) - b(i)", AXPY, ["-1"]),
        ("d(i) = c(i) + b(i)*(-3)", AXPY, ["-3"]),
        ("d(i) = c(i)*2 - b(i)*3", AXPBY, ["2", "-3"]),
        ("d(i) = 2*c(i) + 2*b(i)", TWICE, ["2"]),
        ("d(i) = 2*c(i) - b(i)", LESS, ["2"]),
        ("d = 2*b(i)*c(i)*2", DOT, ["4"]),
        ("d(i) = 2*b(i)", "numpy.scale", ["2"]),
        ("d(i) = b(i) + c(i)", AXPY, None),  # nothing is written that a could be
        ("d(i) = 2*c(i) + 3*b(i)", TWICE, None),
        ("d(i) = 2*b(i) - 3*c(i)", LESS, None),
        ("d(i) = 2*b(i)*c(i)", AXPY, None),
    ],
)
def test_a_number_is_a_scalar_operand(text: str, function: Any, numbers: list[str] | None) -> None:
    assignment = sparse.parse(text)
    schedule = Schedule().map(_part(text.partition(" = ")[2]), function)
    if numbers is None:
        with pytest.raises(UserError, match=r"is not what \w+ computes"):
            sparse.compile(assignment, schedule)
        return
    plan = sparse.compile(assignment, schedule)
    made = [line for line in str(plan).splitlines() if "loops: number" in line]
    assert [line.rpartition(" = ")[2] for line in made] == numbers
    given = {"b": np.arange(1.0, 6.0), "c": np.array([3.0, 0.5, -2.0, 7.0, 1.0])}
    given = {name: one for name, one in given.items() if f"{name}(" in text}
    expected = sparse.interpret(assignment, given)
    assert np.array_equal(plan.run(given).output, expected)
    assert np.array_equal(plan.interpret(given), expected)
    kinds = ("int32",) if "(-3)" in text else ("uint8", "int32")  # which has no -3
    for kind in kinds if function is AXPY else ():
        whole = {"b": np.arange(5, dtype=kind), "c": np.ones(5, kind)}
        expected = sparse.interpret(assignment, whole)
        result = plan.run(whole).output
        assert (result.dtype, result.tolist()) == (expected.dtype, expected.tolist())


def test_a_refusal_beside_a_number_says_what_is_wrong() -> None:
    """The number is not a tensor of the statement, which has a format."""
    assignment = sparse.parse("d(i) = 2*b(i) + c(i)", {"b": "s"})
    with refused("""
        axpy does not take b as it is stored
          --> sparse.compile(assignment, Schedule().map(_part("2*b(i) + c(i)"), AXPY))
          expected: x dense
          given:    b as s:0
          hint:     map(..., densify=True) converts it, to one value for each i
    """):
        sparse.compile(assignment, Schedule().map(_part("2*b(i) + c(i)"), AXPY))
    schedule = Schedule().map(_part("2*b(i) + c(i)"), AXPY, densify=True)
    given = {"b": np.array([0.0, 3.0]), "c": np.ones(2)}
    assert sparse.compile(assignment, schedule).run(given).output.tolist() == [1.0, 7.0]


def test_the_calls_with_numbers_are_searched_and_fixed() -> None:
    """In each row of a matrix, and with what is left computed by loops."""
    i, j = Var("i"), Var("j")
    X, Y, Z = (Tensor(name, dense(2)) for name in "XYZ")
    w = Tensor("w", dense(1))
    part = X[i, j] - 0.5 * Y[j, i]
    Z[i, j] = part * w[i]
    generator = np.random.default_rng(2)
    given = {"X": generator.random((3, 3)), "Y": generator.random((3, 3)), "w": np.ones(3)}
    plan = sparse.compile(Z, Schedule().map(part, AXPY))
    assert plan.program.calls[0].mapping.fixed == ("i",)
    expected = sparse.interpret(Z, given)
    assert np.allclose(plan.run(given).output, expected, rtol=1e-15)
    found = external.search(Z, AXPY, inputs=given, limit=5)
    assert "fix(i), map(X(i,j)-0.5*Y(j,i),axpy)" in [one.schedule for one in found.plans]


def test_factors_of_a_term_stand_in_any_order() -> None:
    """Also where the part is a sum: the products in it commute."""
    i, j = Var("i"), Var("j")
    X = Tensor("X", dense(2))
    b, c, q = (Tensor(name, dense(1)) for name in "bcq")
    affine = external.make_function(
        "affine",
        "z(i) = x(i,j)*y(j) + w(i)",
        python=lambda x, y, w, z: np.add(x @ y, w, out=z),
        types="float64",
    )
    q[i] = X[i, j] * b[j] + c[i]
    given = {"X": np.arange(6.0).reshape(2, 3), "b": np.arange(3.0), "c": np.ones(2)}
    for part in (X[i, j] * b[j] + c[i], c[i] + X[i, j] * b[j], b[j] * X[i, j] + c[i]):
        for schedule in (Schedule().bind(part, affine), Schedule().map(part, affine)):
            result = sparse.compile(q, schedule).run(given)
            assert result.output.tolist() == (given["X"] @ given["b"] + 1).tolist()
