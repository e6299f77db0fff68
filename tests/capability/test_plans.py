"""Plans that run: the statements of [Mosaic, Table 2], and what a run must never do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from t2s import Float, Var, external, sparse
from t2s.capability.description import CallNumber, DeclaredObject
from t2s.core.types import INT32
from t2s.errors import UnsupportedError, UserError
from t2s.sparse import Schedule, Tensor, coo, csr, dense
from t2s.sparse_repr.notation.ir import accesses
from t2s.sparse_repr.notation.parse import parse_expression
from tests.capability.functions import described
from tests.errors.refusal import refused

i, j, k = Var("i"), Var("j"), Var("k")
EXTENTS = {"i": 7, "j": 5, "k": 6, "l": 4, "m": 3, "n": 2}
BLAS = external.blas

# [Mosaic, Table 2]: a statement, formats, and parts with their functions; ! densifies
TABLE_2 = [
    ("A(i) = B(i,j)*c(j)", {}, "B(i,j)*c(j)", ["blas.sgemv", "numpy.matmul", "blas.sdot"]),
    ("A(i,k) = B(i,j)*C(j,k)", {}, "B(i,j)*C(j,k)", ["blas.sgemm", "blas.sgemv", "blas.sger"]),
    ("A(i,j) = B(i,j)*C(i,k)*D(k,j)", {"B": "ds"}, "C(i,k)*D(k,j)", ["blas.sgemm", "blas.sdot"]),
    ("A(i) = B(i,j)*c(j)", {"B": "ds"}, "B(i,j)*c(j)", ["scipy.spmv", "!blas.sgemv"]),
    ("A(i,k) = B(i,j)*C(j,k)", {"B": "ds"}, "B(i,j)*C(j,k)", ["scipy.spmm", "!blas.sgemm"]),
    (
        "A(i,j,k,l) = B(i,j,k,l)*C(i,m)*D(j,m)*E(k,m)*F(l,m)",
        {"B": "ssss"},
        "C(i,m)*D(j,m)",
        ["numpy.outer", "numpy.multiply", "blas.sger"],
    ),
    (
        "A(i,j,k,l) = B(i,j,m,n)*C(m,n,k,l)",
        {"B": "ssdd"},
        "B(i,j,m,n)*C(m,n,k,l)",
        ["!numpy.contract", "!blas.sgemm"],
    ),
    ("A(i,j) = B(i,j)+C(i,j)", {"B": "ds", "C": "ds"}, "B(i,j)+C(i,j)", ["scipy.spadd"]),
    ("A(i,j) = B(i,j,k)*c(k)", {}, "B(i,j,k)*c(k)", ["blas.sgemv", "numpy.contract", "blas.sdot"]),
]
CASES = [(text, formats, part, name) for text, formats, part, names in TABLE_2 for name in names]


@pytest.mark.parametrize(
    ("text", "formats", "part", "function", "inner"),
    [
        ("A(i,j) = B(i,k)*C(k,j) + B(i,k)*D(k,j)", {}, "", "blas.sgemm", "C(k,j) + D(k,j)"),
        ("A(i,j) = C(k,j)*B(i,k) - 2*D(k,j)*B(i,k)", {}, "", "blas.sgemm", "C(k,j) - 2*D(k,j)"),
        ("A(i) = B(i,k)*c(k) + B(i,k)*d(k)", {"B": "ds"}, "", "scipy.spmv", "c(k) + d(k)"),
        (
            "A(i,j) = B(i,k)*C(k,j) + E(i,j) + B(i,k)*D(k,j) + B(i,k)*F(k,j)",
            {},
            "B(i,k)*C(k,j) + B(i,k)*D(k,j) + B(i,k)*F(k,j)",
            "blas.sgemm",
            "C(k,j) + D(k,j) + F(k,j)",
        ),
        ("A(i) = b(i)*c(i) + b(i)*d", {}, "", "numpy.multiply", "c(i) + d"),
    ],
)
def test_a_common_factor_is_taken_out(
    text: str, formats: dict[str, str], part: str, function: str, inner: str
) -> None:
    """One product of what is summed first, in place of several."""
    assignment = sparse.parse(text, formats)
    whole = sparse.Notation(parse_expression(part or text.partition(" = ")[2]), {})
    plan = sparse.compile(assignment, Schedule().map(whole, function))
    assert str(plan).splitlines()[1].endswith(f" = {inner}")
    assert len(plan.program.calls) == 1
    given = _inputs(assignment)
    expected = sparse.interpret(assignment, given)
    assert np.array_equal(plan.run(given, type=Float(32)).output, expected)
    assert np.array_equal(plan.interpret(given, type=Float(32)), expected)
    with pytest.raises(UserError, match="is not what"):  # which takes parts as they stand
        sparse.compile(assignment, Schedule().bind(whole, function))


@pytest.mark.parametrize(
    ("text", "formats", "function"),
    [
        ("A(i,j) = B(i,k)*C(k,j) + B(i,k)*D(k,j)", {"C": "ds"}, "blas.sgemm"),
        ("A(i,j) = B(i,k)*C(k,j) + B(i,l)*D(l,j)", {}, "blas.sgemm"),
        ("A(i,j) = B(i,k)*C(k,j) + E(i,k)*D(k,j)", {}, "blas.sgemm"),
        ("A(i) = b(i)*c(i) + b(i)", {}, "numpy.multiply"),
        ("A(i,j) = B(i,k)*C(k,j) + B(i,k)*D(k,j)", {}, "numpy.add"),
    ],
)
def test_no_common_factor_is_taken_out(text: str, formats: dict[str, str], function: str) -> None:
    """What a sparse operand does not store is 0, but what is added to it is not."""
    assignment = sparse.parse(text, formats)
    whole = sparse.Notation(parse_expression(text.partition(" = ")[2]), {})
    with pytest.raises(UserError, match="is not what"):
        sparse.compile(assignment, Schedule().map(whole, function))


def _inputs(assignment: sparse.Notation | Any, seed: int = 5) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    found = {}
    for access in accesses(assignment.value):
        shape = [EXTENTS[name] for name in access.variables]
        values = generator.integers(-4, 5, shape).astype(np.float32)
        stored = assignment.tensor(access.tensor).format
        if not all(level.full for level in stored.levels):
            values *= generator.random(shape) < 0.3
        found[access.tensor] = values
    return found


def _checked(plan: Any, inputs: dict[str, Any]) -> Any:
    """The run, after two of them agree with the oracle, and no input has changed."""
    before = {name: np.array(value) for name, value in inputs.items()}
    found = plan.run(inputs, type=Float(32))
    expected = sparse.interpret(plan.assignment, inputs, type=Float(32))
    assert np.array_equal(found.output, expected)
    assert np.array_equal(plan.interpret(inputs, type=Float(32)), expected)
    again = plan.run(inputs, type=Float(32))
    assert again.output.tobytes() == found.output.tobytes()
    assert all(np.array_equal(np.array(inputs[name]), before[name]) for name in inputs)
    return found


@pytest.mark.parametrize(("text", "formats", "part", "name"), CASES)
def test_statements_of_table_2(text: str, formats: dict[str, str], part: str, name: str) -> None:
    assignment = sparse.parse(text, formats)
    notation = sparse.Notation(parse_expression(part), {})
    schedule = Schedule().map(notation, name.removeprefix("!"), densify=name.startswith("!"))
    plan = sparse.compile(assignment, schedule)
    found = _checked(plan, _inputs(assignment))
    assert sum(step.calls for step in found.steps) > 0


@pytest.mark.parametrize(
    ("fixed", "function"),
    [
        ((), "blas.sgemm"),
        (("i", "k"), "blas.sdot"),
        (("i",), "blas.sgemv_columns"),
        (("k",), "blas.sgemv"),
        ((), "numpy.contract"),
    ],
)
def test_sampled_products_in_every_way(fixed: tuple[str, ...], function: str) -> None:
    assignment = sparse.parse("A(i,k) = B(i,k)*C(i,j)*D(j,k)", {"B": "ds"})
    said = f"fix({','.join(fixed)}), " if fixed else ""
    plan = sparse.compile(assignment, f"{said}bind(C(i,j)*D(j,k),{function})")
    _checked(plan, _inputs(assignment))


def test_a_product_of_three_by_one() -> None:
    assignment = sparse.parse("A(i,k) = C(i,j)*D(j,k)")
    plan = sparse.compile(assignment, "bind(C(i,j)*D(j,k),blas.sgemm)")
    given = {"C": np.array([[1, 2], [3, 4], [5, 6]], np.float32), "D": np.float32([[1], [-1]])}
    assert np.array_equal(plan.run(given).output, given["C"] @ given["D"])


def test_functions_that_overwrite_and_accumulate() -> None:
    assignment = sparse.parse("a(i) = b(i) + B(i,j)*c(j)")

    def gemv(y: Any, x: Any, v: Any) -> None:
        y += x @ v

    function = described("gemv", "y(i) = y(i) + x(i,j)*v(j)", gemv)
    plan = sparse.compile(assignment, Schedule().bind(_part("b(i) + B(i,j)*c(j)"), function))
    assert "x is B(i,j)" in str(plan)
    _checked(plan, _inputs(assignment))
    outer = sparse.parse("A(i,k) = B(i,j)*C(j,k)")
    added = sparse.compile(outer, Schedule().map(_part("B(i,j)*C(j,k)"), BLAS.sger))
    found = _checked(added, _inputs(outer))
    assert found.steps[0].calls == EXTENTS["j"]
    assert found.steps[0].copied == 0  # straight into the result


def test_four_dense_factors_at_once() -> None:
    def product(x: Any, y: Any, w: Any, v: Any, z: Any) -> None:
        np.einsum("im,jm,km,lm->ijkl", x, y, w, v, out=z)

    four = described("four", "z(i,j,k,l) = x(i,m)*y(j,m)*w(k,m)*v(l,m)", product)
    assignment = sparse.parse(TABLE_2[5][0], TABLE_2[5][1])
    part = _part("C(i,m)*D(j,m)*E(k,m)*F(l,m)")
    _checked(sparse.compile(assignment, Schedule().bind(part, four)), _inputs(assignment))


def _part(text: str) -> sparse.Notation:
    return sparse.Notation(parse_expression(text), {})


def test_setup_teardown_and_status() -> None:
    """An object that a setup fills, a result by address, and a number that says how it went."""
    libc = external.call.LibraryOf(name="the C library", path="libc.so.6")
    value = external.call.AddressOf(value=CallNumber(value=1, type=INT32))
    held = DeclaredObject(name="held", bytes=64)

    def made(status: external.call.ReturnedStatus | None) -> external.ExternalFunction:
        count = external.call.DimensionOf(variable="i")
        size = CallNumber(value=4, type=INT32)
        return external.make_function(
            "memcmp",
            "z(i) = x(i)",
            setup=(
                external.call.ExternalCall(symbol="memset", arguments=(held, *(size, size))),
                external.call.ExternalCall(
                    symbol="memcpy",
                    arguments=(
                        external.call.DataOf(tensor="z"),
                        external.call.DataOf(tensor="x"),
                        _bytes("i"),
                    ),
                ),
            ),
            call=external.call.ExternalCall(
                symbol="memcmp",
                arguments=(held, held, count),
                returns=INT32,
            ),
            teardown=(external.call.ExternalCall(symbol="abs", arguments=(size,)),),
            status=status,
            library=libc,
            types="int8",
            trusted=True,
        )

    assert value is not None
    function = made(external.call.ReturnedStatus(good=(0,)))
    assert external.check(function, trials=20).trials == 20
    a, b = Tensor("a", dense(1)), Tensor("b", dense(1))
    a[i] = b[i]
    plan = sparse.compile(a, Schedule().bind(b[i], function))
    values = np.array([3, -1, 4], np.int8)
    assert np.array_equal(plan.run({"b": values}).output, values)
    bad = made(external.call.ReturnedStatus(good=(1,), meanings=((0, "alike"),)))
    with refused("""
        memcmp failed
          --> failing = Schedule().bind(b[i], bad)
          expected: status 1
          given:    status 0, alike
          note:     memcmp is described here
          --> return external.make_function(
    """):
        failing = Schedule().bind(b[i], bad)
        sparse.compile(a, failing).run({"b": values})


def _bytes(variable: str) -> Any:
    """Bytes of as many values of one byte as a variable has."""
    return external.call.DimensionOf(variable=variable)


def test_windows_and_transposed_operands_are_read_where_they_are() -> None:
    assignment = sparse.parse("A(i,k) = B(i,j)*C(k,j)")
    plan = sparse.compile(assignment, "map(B(i,j)*C(k,j),blas.sgemm)")
    larger = np.arange(200, dtype=np.float32).reshape(10, 20) % 7
    given = {"B": larger[2:9, 3:8], "C": larger.T[4:10, 1:6]}
    found = _checked(plan, given)
    assert found.steps[0].copied == 0
    gathered = {"B": larger[:7, :10:2], "C": larger.T[4:10, 1:6]}
    assert _checked(plan, gathered).steps[0].copied == 7 * 5 * 4


def test_lists_of_coordinates_become_rows() -> None:
    A, B, C = Tensor("A", dense(2)), Tensor("B", coo(2)), Tensor("C", dense(2))
    A[i, k] = B[i, j] * C[j, k]
    with refused("""
        spmm does not take B as it is stored
          --> stored = Schedule().bind(B[i, j] * C[j, k], external.scipy.spmm)
          expected: x ds:0,1 or ds:1,0
          given:    B as uq:0,1
          hint:     map(...) converts it, which is a step of the plan
    """):
        stored = Schedule().bind(B[i, j] * C[j, k], external.scipy.spmm)
        sparse.compile(A, stored)
    plan = sparse.compile(A, Schedule().map(B[i, j] * C[j, k], external.scipy.spmm))
    assert "1. convert: B_ds is B as ds:0,1: spmm takes x as ds:0,1" in str(plan)
    given = {
        "B": scipy.sparse.random_array((7, 5), density=0.3, rng=np.random.default_rng(0)),
        "C": np.ones((5, 3)),
    }
    found = plan.run(given)
    assert np.allclose(found.output, given["B"] @ given["C"])
    assert found.steps[0].copied > 0


def test_sparse_results_stay_sparse() -> None:
    A, B, C = Tensor("A", csr), Tensor("B", csr), Tensor("C", csr)
    A[i, k] = B[i, j] * C[j, k]
    plan = sparse.compile(A, Schedule().bind(B[i, j] * C[j, k], external.scipy.spgemm))
    given = {"B": np.eye(4), "C": np.diag([1.0, 2.0, 0.0, 3.0])}
    found = plan.run(given)
    assert found.tensor.format == csr
    assert len(found.tensor.values) == 3
    assert np.array_equal(found.output, given["C"])


def test_functions_cannot_write_what_they_are_given() -> None:
    def scribble(x: Any, y: Any, z: Any) -> None:
        x.values[...] = 0

    def blot(x: Any, y: Any, z: Any) -> None:
        y[...] = 0

    assignment = sparse.parse("a(i) = B(i,j)*c(j)", {"B": "ds"})
    given = {"B": scipy.sparse.csr_array(np.eye(3)), "c": np.ones(3)}
    for python in (scribble, blot):
        function = described("wild", "z(i) = x(i,j) * y(j)", python, formats={"x": "ds"})
        plan = sparse.compile(assignment, Schedule().bind(_part("B(i,j)*c(j)"), function))
        with pytest.raises(UserError, match="wild failed: ValueError: assignment destination"):
            plan.run(given)
    assert np.array_equal(given["B"].toarray(), np.eye(3))
    assert np.array_equal(given["c"], np.ones(3))


def test_results_of_another_shape() -> None:
    assignment = sparse.parse("A(i,k) = B(i,j)*C(j,k)")
    given = {"B": np.ones((2, 3)), "C": np.ones((3, 4))}

    def returned(x: Any, y: Any) -> Any:
        return (x @ y).T

    turned = described("turned", "z(i,k) = x(i,j) * y(j,k)", returned)
    with refused("""
        turned returned a result of another shape
          --> sideways = Schedule().bind(_part("B(i,j)*C(j,k)"), turned)
          expected: shape 2 x 4
          given:    shape 4 x 2
          note:     turned is described here
          --> functions.py: return external.make_function(name, statement, python=python,
                    trusted=True, **said)
    """):
        sideways = Schedule().bind(_part("B(i,j)*C(j,k)"), turned)
        sparse.compile(assignment, sideways).run(given)
    rows = described("rows", "z(i,k) = x(i,j) * y(j,k)", returned, formats={"z": "ds"})
    with pytest.raises(UserError, match="rows returned a result of another shape"):
        sparse.compile(assignment, Schedule().bind(_part("B(i,j)*C(j,k)"), rows)).run(given)

    def product(x: Any, y: Any) -> Any:
        return x @ y

    arrays = described("arrays", "z(i,k) = x(i,j) * y(j,k)", product, formats={"z": "ds"})
    plan = sparse.compile(assignment, Schedule().bind(_part("B(i,j)*C(j,k)"), arrays))
    assert np.array_equal(plan.run(given).output, np.full((2, 4), 3.0))


def test_two_parts_and_a_workspace() -> None:
    assignment = sparse.parse("A(i,k) = B(i,j)*C(j,k) + D(i,k)*2")
    schedule = "bind(B(i,j)*C(j,k),numpy.matmul), precompute(D(i,k)*2,W)"
    plan = sparse.compile(assignment, schedule)
    assert [type(step).__name__ for step in plan.program.steps] == [
        "CallStep",
        "LoopsStep",
        "LoopsStep",
    ]
    _checked(plan, _inputs(assignment))
    chained = sparse.parse("A(i,l) = B(i,j)*C(j,k)*D(k,l)")
    two = "bind(B(i,j)*C(j,k),numpy.matmul), bind(T(i,k)*D(k,l),blas.sgemm)"
    plan = sparse.compile(chained, two)
    assert len(plan.program.calls) == 2
    _checked(plan, _inputs(chained))


def test_a_result_that_is_read_has_its_old_values() -> None:
    assignment = sparse.parse("A(i,k) = A(i,k) + B(i,j)*C(j,k)")
    plan = sparse.compile(assignment, "bind(B(i,j)*C(j,k),blas.sgemm)")
    _checked(plan, _inputs(assignment))


def test_extents_of_zero_call_nothing() -> None:
    assignment = sparse.parse("A(i,k) = B(i,j)*C(j,k)")
    plan = sparse.compile(assignment, "bind(B(i,j)*C(j,k),blas.sgemm)")
    found = plan.run({"B": np.ones((3, 0), np.float32), "C": np.ones((0, 2), np.float32)})
    assert np.array_equal(found.output, np.zeros((3, 2)))
    assert found.steps[0].calls == 0


def test_interfaces_of_32_bits_refuse_what_does_not_fit() -> None:
    one = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), shape=(2, 1), strides=(2**34, 4))
    A, B, C = Tensor("A", dense(2)), Tensor("B", dense(2)), Tensor("C", dense(2))
    A[i, k] = B[i, j] * C[j, k]
    with refused(
        """
        the leading dimension of x does not fit the interface of sgemm
          --> large = Schedule().bind(B[i, j] * C[j, k], BLAS.sgemm, else_=None)
          expected: at most 2147483647: its integers have 32 bits
          given:    4294967296
    """,
        _fits(),
    ):
        large = Schedule().bind(B[i, j] * C[j, k], BLAS.sgemm, else_=None)
        sparse.compile(A, large).run({"B": one, "C": np.ones((1, 2), np.float32)})


def _fits() -> Any:
    from t2s.libraries.calling import DoesNotFit

    return DoesNotFit


def test_what_a_plan_does_not_take() -> None:
    assignment = sparse.parse("A(i,k) = B(i,j)*C(j,k)")
    schedule = "bind(B(i,j)*C(j,k),blas.sgemm)"
    with pytest.raises(UnsupportedError, match="the loops of a plan take no directives yet"):
        sparse.compile(assignment, f"reorder(i,k,j), {schedule}")
    with pytest.raises(UnsupportedError, match="streams do not know it"):
        sparse.Kernel(assignment, sparse.schedule(schedule))
    plan = sparse.compile(assignment, schedule)
    with pytest.raises(UnsupportedError, match="plans do not compute bools"):
        plan.run({"B": np.ones((2, 2), bool), "C": np.ones((2, 2), bool)})


def test_verbs_for_kernels_refuse_plans() -> None:
    assignment = sparse.parse("A(i,k) = B(i,j)*C(j,k)")
    with refused("""
        simulate takes no schedule with external functions
          --> sparse.simulate(assignment, {}, schedule="bind(B(i,j)*C(j,k),blas.sgemm)")
          expected: an assignment with a schedule for streams
          given:    <plan of A(i,k) = sum(j, B(i,j)*C(j,k)), 1 steps>
          hint:     plan.run(inputs) runs a plan, which sparse.compile(A, schedule) makes
    """):
        sparse.simulate(assignment, {}, schedule="bind(B(i,j)*C(j,k),blas.sgemm)")


def test_fix_and_promote_are_for_what_comes_behind_them() -> None:
    assignment = sparse.parse("A(i,k) = B(i,j)*C(j,k)")
    with refused("""
        fix and promote are for the function that is bound next, and there is none
          --> alone = Schedule().map(_part("B(i,j)*C(j,k)"), BLAS.sgemm).fix(i)
          expected: bind or map behind it
    """):
        alone = Schedule().map(_part("B(i,j)*C(j,k)"), BLAS.sgemm).fix(i)
        sparse.compile(assignment, alone)
    with refused("""
        there is no variable z to fix
          --> lost = Schedule().fix("z").bind(_part("B(i,j)*C(j,k)"), BLAS.sdot)
          expected: one of i, k, j
    """):
        lost = Schedule().fix("z").bind(_part("B(i,j)*C(j,k)"), BLAS.sdot)
        sparse.compile(assignment, lost)


def test_only_what_the_part_has_is_reshaped() -> None:
    assignment = sparse.parse("A(i,k) = B(i,j)*C(j,k)*d(l)")
    with refused("""
        sum(j, B(i,j)*C(j,k)) does not have l, which is to be reshaped for it
          --> other = Schedule().fix("l").bind(_part("B(i,j)*C(j,k)"), BLAS.sgemm)
          expected: fix of i, k, j, promote of B, C
          given:    l
    """):
        other = Schedule().fix("l").bind(_part("B(i,j)*C(j,k)"), BLAS.sgemm)
        sparse.compile(assignment, other)
    with pytest.raises(UserError, match="does not have d, which is to be reshaped"):
        sparse.compile(assignment, "promote(d,1), bind(B(i,j)*C(j,k),blas.sgemm)")


def test_schedules_in_text_say_the_same() -> None:
    assignment = sparse.parse("a(i) = B(i,j)*c(j)")
    part = _part("B(i,j)*c(j)")
    c = Tensor("c", dense(1))
    for text, schedule in [
        ("bind(B(i,j)*c(j),blas.sgemv)", Schedule().bind(part, BLAS.sgemv)),
        ("map(B(i,j)*c(j), blas.sdot)", Schedule().map(part, BLAS.sdot)),
        ("fix(i), bind(B(i,j)*c(j),blas.sdot)", Schedule().fix(i).bind(part, BLAS.sdot)),
        ("promote(c,1); bind(B(i,j)*c(j),blas.sgemm)", Schedule().promote(c, 1)),
        (
            "assume(i % 16 == 0 and j <= 255) map(B(i,j)*c(j),blas.sdot)",
            Schedule().assume("i % 16 == 0 and j <= 255"),
        ),
    ]:
        if "promote" in text:
            schedule = schedule.bind(part, BLAS.sgemm)
        elif "assume" in text:
            schedule = schedule.map(part, BLAS.sdot)
        assert str(sparse.compile(assignment, text)) == str(sparse.compile(assignment, schedule))
    with pytest.raises(UserError, match=r"promote\(c\) does not say a directive"):
        sparse.schedule("promote(c)")
    with pytest.raises(UserError, match="a dimension is added at a position of a tensor"):
        Schedule().promote(c, 2)
    with pytest.raises(UserError, match="bind takes a part of the expression and a function"):
        Schedule().bind(part, 3)  # type: ignore[arg-type]


def test_names_of_functions() -> None:
    assignment = sparse.parse("A(i,k) = B(i,j)*C(j,k)")
    with refused("""
        unknown external function blas.zgemm
          --> unknown = Schedule().bind(_part("B(i,j)*C(j,k)"), "blas.zgemm")
          expected: blas. and one of sgemm, dgemm, sgemv, dgemv, sgemv_columns, dgemv_columns,
                    ssymv, dsymv, sdot, ddot, saxpy, daxpy, sger, dger
    """):
        unknown = Schedule().bind(_part("B(i,j)*C(j,k)"), "blas.zgemm")
        sparse.compile(assignment, unknown)
