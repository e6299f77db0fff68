"""Our hardware as external functions: derived capabilities, exact cycles, transfers over links."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import t2s
from examples.gemm.chains import TINY, gemm
from t2s import Float, Func, ImageParam, Int, Param, RDom, Var, external, sparse
from t2s.capability.description import HardwareKind
from t2s.capability.ir import print_capability
from t2s.core.errors import UnsupportedError
from t2s.driver.plan_inputs import bind_plan, facts_of_binding
from t2s.errors import UserError
from t2s.plan.cost import predict
from t2s.plan.ir import CallStep, ConvertStep, MoveStep
from t2s.sparse import Schedule, Tensor, csr, dense
from tests.errors.refusal import refused
from tests.sampling import sampled

LINK = external.HostLink(name="5 GB/s", latency=10e-6, bytes_per_second=5e9)
i, j, k = Var("i"), Var("j"), Var("k")
A, B = Tensor("A", csr), Tensor("B", csr)
C, D = Tensor("C", dense(2)), Tensor("D", dense(2))
A[i, j] = B[i, j] * C[i, k] * D[k, j]


SAMPLING = [(1, 41, 127), (10, 409, 495), (50, 2054, 2140)]
"""Percent of B that are stored, how many these are, and the cycles of the streams."""

FUSED = [(1, 13_943), (10, 62_180), (50, 276_967)]
"""Percent of B that are stored, and the cycles of streams for all of it."""

WORKSPACE = (544_994, 127)
"""Cycles of streams for the product, and for its sampling: a dense workspace, located into by B."""


@pytest.fixture(scope="module")
def array() -> external.ExternalFunction:
    return external.from_design(gemm(TINY), device="arria10", link=LINK)


@pytest.fixture(scope="module")
def plan(array: external.ExternalFunction) -> external.ExternalPlan:
    made: external.ExternalPlan = sparse.compile(
        A, Schedule().map(C[i, k] * D[k, j], array).streams("arria10")
    )
    return made


def _inputs(n: int, p: int) -> dict[str, Any]:
    """B, C and D of the acceptance: p percent of B are stored."""
    rows, columns = np.indices((n, n))
    stored = (7 * rows + 13 * columns) % 100 < p
    return {
        "B": np.where(stored, 1 + (rows + 2 * columns) % 3, 0).astype(np.float32),
        "C": ((3 * rows + 5 * columns) % 7 - 3).astype(np.float32),
        "D": ((2 * rows + 11 * columns) % 5 - 2).astype(np.float32),
    }


def test_the_capability_of_an_array_is_derived(array: external.ExternalFunction) -> None:
    assert print_capability(array.capability) == (
        "C(i,j) = A(i,k)*B(j,k) when i == 64 and j == 64 and k == 64"
    )
    assert array.capability.types == (Float(32),)
    assert array.hardware is not None
    assert array.hardware.cycles is not None
    assert array.hardware.cycles() == t2s.cycles(gemm(TINY), device="arria10") == 4398


@pytest.mark.parametrize(("p", "stored", "sampling"), SAMPLING)
def test_sampled_products_to_the_cycle(
    plan: external.ExternalPlan, p: int, stored: int, sampling: int
) -> None:
    given = _inputs(64, p)
    assert np.count_nonzero(given["B"]) == stored
    found = plan.run(given)
    assert np.array_equal(found.output, given["B"] * (given["C"] @ given["D"]))
    assert [step.cycles for step in found.steps if step.cycles] == [4398, sampling]
    assert found.cycles == 4398 + sampling
    assert found.times.simulated == pytest.approx(found.cycles / 215e6)


@sampled(("p", "cycles"), FUSED, quick=2)
def test_streams_alone_take_longer(p: int, cycles: int) -> None:
    """Beside the array: all of it in streams, and a workspace of the whole product by streams."""
    given = _inputs(64, p)
    expected = given["B"] * (given["C"] @ given["D"])
    fused = sparse.compile(A, Schedule().locate(C, i).locate(D, j))
    found = sparse.simulate(fused, given, device="arria10", type=Float(32))
    assert np.array_equal(found.output, expected)
    assert found.cycles == cycles
    if p > 1:
        return
    other = Tensor("A", csr)
    other[i, j] = B[i, j] * (C[i, k] * D[k, j])
    apart = sparse.compile(other, Schedule().precompute(C[i, k] * D[k, j], "W"))
    found = sparse.simulate(apart, given, device="arria10", type=Float(32))
    assert np.array_equal(found.output, expected)
    assert tuple(stage.cycles for stage in found.stages) == WORKSPACE


def test_a_plan_with_an_array_as_text(plan: external.ExternalPlan) -> None:
    steps = [line for line in str(plan).splitlines() if line[0].isdigit()]
    assert steps == [
        "1. convert: D_jk is D as dd:0,1: C takes B at (j,k)",
        "2. move: C from host to arria10 over 5 GB/s",
        "3. move: D_jk from host to arria10 over 5 GB/s",
        "4. array: C on arria10 computes T(i,j) = sum(k, C(i,k)*D(k,j))",
        "5. move: B from host to arria10 over 5 GB/s",
        "6. streams: A on arria10 computes A(i,j) = B(i,j)*T(i,j)",
        "7. move: A from arria10 to host over 5 GB/s",
    ]


def test_a_result_says_how_much_of_its_time_is_transfer(plan: external.ExternalPlan) -> None:
    given = _inputs(64, 10)
    found = plan.run(given)
    moved = [step.moved for step in found.steps if isinstance(step.step, MoveStep)]
    matrix = 64 * 64 * 4
    assert moved[:2] == [matrix, matrix]
    assert found.times.transfers == pytest.approx(sum(10e-6 + count / 5e9 for count in moved))
    assert found.seconds == pytest.approx(
        found.times.measured + found.times.simulated + found.times.transfers
    )
    assert found.transfer_share == pytest.approx(found.times.transfers / found.seconds)
    assert f"{found.transfer_share:.0%} of it transfers" in str(found).splitlines()[-1]
    measured = [step for step in found.steps if step.times.measured]
    assert all(isinstance(step.step, ConvertStep) for step in measured)
    assert np.array_equal(plan.interpret(given), found.output)


@pytest.mark.parametrize(("n", "calls"), [(60, 1), (65, 8)])
def test_extents_of_other_sizes(plan: external.ExternalPlan, n: int, calls: int) -> None:
    given = _inputs(n, 10)
    found = plan.run(given)
    assert np.array_equal(found.output, given["B"] * (given["C"] @ given["D"]))
    step = next(step for step in found.steps if isinstance(step.step, CallStep))
    assert (step.calls, step.cycles) == (calls, 4398 * calls)
    partial = "partial results summed by the host" in step.note
    assert partial == (calls > 1)
    assert step.moved == (calls * 64 * 64 * 4 + n * n * 4 if partial else 0)


@pytest.mark.parametrize("n", [64, 65, 60])
def test_hardware_and_transfers_are_predicted_exactly(plan: external.ExternalPlan, n: int) -> None:
    given = _inputs(n, 10)
    facts = facts_of_binding(bind_plan(plan.assignment, given), plan.assignment)
    predicted = predict(plan.program, facts, external.GENERIC)
    found = plan.run(given)
    for one, step in zip(predicted.steps, found.steps, strict=True):
        if one.exact:
            assert one.seconds == pytest.approx(step.times.simulated + step.times.transfers)
        elif isinstance(step.step, MoveStep) and step.step.tensor in ("C", "D_jk"):
            assert one.seconds == step.seconds


def test_nothing_is_called_with_nothing(plan: external.ExternalPlan) -> None:
    given = {"B": np.zeros((0, 3), np.float32), "C": np.zeros((0, 2)), "D": np.zeros((2, 3))}
    found = plan.run(given, type=Float(32))
    assert found.output.shape == (0, 3)
    assert found.cycles == 0


def _over(array: external.ExternalFunction, link: external.HostLink | None) -> Any:
    """The same array behind another link."""
    assert array.hardware is not None
    return replace(array, hardware=replace(array.hardware, link=link))


def test_transfers_that_overlap_are_hidden(array: external.ExternalFunction) -> None:
    quick = external.HostLink(latency=0, bytes_per_second=1e15, overlaps=True)
    link = external.HostLink(latency=1e-6, bytes_per_second=5e9, overlaps=True)
    given = _inputs(64, 1)
    for one in (quick, link):
        schedule = Schedule().map(C[i, k] * D[k, j], _over(array, one)).streams("arria10")
        found = sparse.compile(A, schedule).run(given)
        moves = sum(step.times.transfers for step in found.steps)
        assert found.times.transfers == pytest.approx(max(0, moves - found.times.simulated))


def test_without_a_link_nothing_is_moved(array: external.ExternalFunction) -> None:
    made = sparse.compile(A, Schedule().map(C[i, k] * D[k, j], _over(array, None)))
    assert "move" not in str(made)
    found = made.run(_inputs(64, 10))
    assert found.times.transfers == 0
    assert "transfers" not in str(found)


def test_streams_of_a_kernel_are_a_function() -> None:
    y, x, y2 = Tensor("y", dense(1)), Tensor("x", dense(1)), Tensor("w", dense(1))
    y[i] = B[i, j] * x[j]
    spmv = external.from_kernel(sparse.compile(y), device="arria10", link=LINK)
    assert spmv.hardware is not None
    assert spmv.hardware.kind is HardwareKind.STREAMS
    y2[i] = B[i, j] * x[j] + x[i]
    schedule = Schedule().bind(B[i, j] * x[j], spmv)
    given = {"B": _inputs(9, 30)["B"], "x": np.arange(9, dtype=np.float32)}
    found = sparse.compile(y2, schedule).run(given)
    assert np.array_equal(found.output, given["B"] @ given["x"] + given["x"])
    direct = sparse.compile(y).simulate(given, device="arria10")
    assert found.cycles == direct.cycles
    kinds = [type(step.step).__name__ for step in found.steps]
    assert kinds == ["MoveStep", "MoveStep", "CallStep", "MoveStep", "LoopsStep"]


def test_a_kernel_that_gives_a_sparse_result() -> None:
    total, first, second = Tensor("S", csr), Tensor("F", csr), Tensor("G", csr)
    total[i, j] = first[i, j] + second[i, j]
    added = external.from_kernel(total)
    result = Tensor("R", csr)
    result[i, j] = first[i, j] + second[i, j]
    made = sparse.compile(result, Schedule().bind(first[i, j] + second[i, j], added))
    one, other = _inputs(6, 30)["B"], _inputs(6, 20)["B"].T.copy()
    assert np.array_equal(made.run({"F": one, "G": other}).output, one + other)


def test_updates_that_start_from_an_input() -> None:
    x, v, s = ImageParam(Float(32), 2, name="x"), ImageParam(Float(32), 1, name="v"), Func("s")
    start = ImageParam(Float(32), 1, name="start")
    n = RDom(0, 5, name="n")
    s[i] = start[i]
    s[i] += x[i, n] * v[n]
    s.bound(i, 0, 4)
    made = external.from_design(s, device="ideal")
    assert str(made).startswith(f"{made.full_name}: ")
    assert print_capability(made.capability) in str(made)
    assert made.capability.condition is not None
    assert "start(i) + x(i,n)*v(n) when" in print_capability(made.capability)
    assert external.check(made, 3).trials == 3


def test_parameters_are_given() -> None:
    size, x, s = Param(Int(32), name="size"), ImageParam(Float(32), 1, name="x"), Func("s")
    s[i] = x[i] + x[i]
    s.bound(i, 0, size)
    made = external.from_design(s, size=6)
    assert print_capability(made.capability) == "s(i) = x(i) + x(i) when i == 6"


def test_a_parameter_without_a_value_is_as_large_as_the_operands() -> None:
    """Its extent is open: a number beside it stays a condition, and one Param is one extent."""
    size, depth = Param(Int(32), name="size"), Param(Int(32), name="depth")
    x, w = ImageParam(Float(32), 2, name="x"), ImageParam(Float(32), 2, name="w")
    k, s, m = Var("k"), Func("s"), RDom(0, depth, name="m")
    s[i, j] = 0.0
    s[i, j] += x[i, m] * w[m, j]
    s.bound(i, 0, size).bound(j, 0, 4)
    made = external.from_design(s, link=external.PCIE3_X8)
    assert print_capability(made.capability) == "s(i,j) = x(i,m)*w(m,j) when j == 4"
    assert external.check(made, 3).trials == 3
    A, B, C = (Tensor(name, dense(2)) for name in "ABC")
    A[i, j] = B[i, k] * C[k, j]
    plan = sparse.compile(A, Schedule().map(B[i, k] * C[k, j], made))
    generator = np.random.default_rng(0)
    for rows, columns, inner in ((6, 4, 3), (5, 4, 7), (6, 9, 3)):
        b = generator.integers(-3, 4, (rows, inner)).astype(np.float32)
        c = generator.integers(-3, 4, (inner, columns)).astype(np.float32)
        result = plan.run({"B": b, "C": c})
        assert np.array_equal(result.output, b @ c)
        if columns == 4:
            fixed = external.from_design(s, size=rows, depth=inner, link=external.PCIE3_X8)
            exact = sparse.compile(A, Schedule().map(B[i, k] * C[k, j], fixed))
            assert exact.run({"B": b, "C": c}).cycles == result.cycles
        else:
            assert result.steps[-2].note == "tiles: j by 4, and 1 padded to 4"
    square = Func("square")
    square[i, j] = x[i, j] + x[i, j]
    square.bound(i, 0, size).bound(j, 0, size)
    made = external.from_design(square)
    assert print_capability(made.capability) == "square(i,j) = x(i,j) + x(i,j) when j == i"


def test_parameters_that_no_operand_says_are_given() -> None:
    size, x, s = Param(Int(32), name="size"), ImageParam(Float(32), 1, name="x"), Func("s")
    s[i] = x[i] + x[i]
    s.bound(i, 0, 2 * size)
    with refused("""
        s has no size that follows from its operands: the extent of i is neither Param nor number
          --> s[i] = x[i] + x[i]
          expected: bounds from 0 to a number or to a Param, or values of the Params
          given:    size
          hint:     external.from_design(s, size=64)
    """):
        external.from_design(s)
    assert "when i == 128" in print_capability(external.from_design(s, size=64).capability)
    t = Func("t")
    t[i] = x[i] + x[i]
    t.bound(i, 0, t2s.minimum(size, 3000))
    made = external.from_design(t)
    a, b = Tensor("a", dense(1)), Tensor("b", dense(1))
    a[i] = b[i] + b[i]
    plan = sparse.compile(a, Schedule().map(b[i] + b[i], made))
    assert plan.run({"b": np.ones(5, np.float32)}).output.tolist() == [2.0] * 5
    with pytest.raises(UserError, match="t has no size that follows from its operands: it asks"):
        plan.run({"b": np.ones(4000, np.float32)})


def test_what_is_no_index_notation_is_refused() -> None:
    x, w = ImageParam(Float(32), 1, name="x"), ImageParam(Float(32), 1, name="w")
    n = RDom(0, 3, name="n")
    conv = Func("conv")
    conv[i] = 0.0
    conv[i] += x[i + n] * w[n]
    conv.bound(i, 0, 8)
    with refused(
        """\
        x is read at i + n, which is not index notation
          --> conv[i] += x[i + n] * w[n]
          expected: a variable in each subscript
          given:    i + n
        """,
        UnsupportedError,
    ):
        external.from_design(conv)

    half, whole = Func("half"), Func("whole")
    half[i] = x[i] * 0.5
    whole[i] = half[i] + w[i]
    whole.bound(i, 0, 8)
    with refused(
        """\
        the design of whole is several functions, which is not index notation
          --> half[i] = x[i] * 0.5
          expected: one function of inputs
          given:    half, whole
          hint:     what one of them computes is an external function; the others are statements
        """,
        UnsupportedError,
    ):
        external.from_design(whole)

    scan = Func("scan", type=Float(32))
    scan[i] = t2s.select(i == 0, x[i], scan[i - 1] + x[i])
    scan.bound(i, 0, 8)
    with refused(
        """\
        scan is a recurrence, which is not index notation
          --> scan[i] = t2s.select(i == 0, x[i], scan[i - 1] + x[i])
          expected: sums of products of inputs
          given:    a function that reads scan at other elements
        """,
        UnsupportedError,
    ):
        external.from_design(scan)


def test_more_that_is_no_index_notation() -> None:
    x, w = ImageParam(Float(32), 1, name="x"), ImageParam(Float(32), 1, name="w")
    n = RDom(0, 3, name="n")
    most = Func("most")
    most[i] = 0.0
    most[i] = t2s.max(most[i], x[i] * x[n])
    most.bound(i, 0, 3)
    with refused(
        """\
        the update of most is not a sum, which is not index notation
          --> most[i] = t2s.max(most[i], x[i] * x[n])
          expected: most[...] += a product of inputs
          given:    max(most[i], x[i] * x[n])
        """,
        UnsupportedError,
    ):
        external.from_design(most)

    root = Func("root")
    root[i] = t2s.sqrt(x[i])
    root.bound(i, 0, 3)
    with refused(
        """\
        root is computed by other than + - * / min max, which is not index notation
          --> root[i] = t2s.sqrt(x[i])
          expected: reads and numbers, joined by these operators
          given:    sqrt(x[i])
        """,
        UnsupportedError,
    ):
        external.from_design(root)

    later = Func("later")
    later[i] = x[i]
    later.bound(i, 2, 3)
    with refused(
        """\
        i does not go from 0 to a number, which is not index notation
          --> later[i] = x[i]
          expected: bounds that are numbers, from 0
          given:    from 2, 3 values
        """,
        UnsupportedError,
    ):
        external.from_design(later)

    scale, factor = Param(Float(32), name="scale"), Func("factor")
    factor[i] = scale * x[i]
    factor.bound(i, 0, 3)
    with refused(
        """\
        factor reads a number that is given when it runs, which is not index notation
          --> scale, factor = Param(Float(32), name="scale"), Func("factor")
          expected: inputs that are arrays
          given:    scale
        """,
        UnsupportedError,
    ):
        external.from_design(factor)

    twice = Func("twice")
    twice[i] = 0.0
    twice[i] += x[i]
    twice[i] += w[i]
    twice.bound(i, 0, 3)
    with refused(
        """\
        twice has several updates, which is not index notation
          --> twice[i] += w[i]
          expected: one update, which adds to the initial value
          given:    2 updates
        """,
        UnsupportedError,
    ):
        external.from_design(twice)

    part = Func("part")
    part[i] = 0.0
    part[i] += x[i] * x[n]
    part.bound(i, 0, 8)
    with refused(
        """\
        a part of x is read, which is not index notation
          --> part[i] += x[i] * x[n]
          expected: the whole of x, 8
          given:    3
        """,
        UnsupportedError,
    ):
        external.from_design(part)


def test_a_design_and_a_link_are_what_they_are() -> None:
    with refused(
        """\
        this is not a systolic design
          --> external.from_design("C")
          expected: a Func with its schedule, or a placement of one
          given:    'C'
          hint:     external.from_kernel takes what sparse.compile returns
        """
    ):
        external.from_design("C")
    with refused(
        """\
        the latency or the bandwidth of a link is out of range
          --> external.HostLink(latency=-1, bytes_per_second=5e9)
          expected: seconds, 0 or more, and bytes per second, more than 0
          given:    latency=-1, bytes_per_second=5000000000.0
        """
    ):
        external.HostLink(latency=-1, bytes_per_second=5e9)
    with pytest.raises(UserError, match="the link"):
        external.from_kernel(A, link=5e9)  # type: ignore[arg-type]


def test_a_tensor_is_stored_in_another_order() -> None:
    made = sparse.compile(A, Schedule().store(D, 1, 0))
    assert str(made).splitlines()[1:] == [
        "1. convert: D_10 is D as dd:1,0: asked for",
        "2. loops: A(i,j) = sum(k, B(i,j)*C(i,k)*D_10(k,j))",
    ]
    given = _inputs(7, 40)
    found = made.run(given)
    assert np.array_equal(found.output, given["B"] * (given["C"] @ given["D"]))
    assert str(sparse.compile(A, "store(D,1,0)")) == str(made)
    with refused(
        """\
        a tensor is stored with its modes in some order
          --> Schedule().store(D, 1, 1)
          expected: each mode once, the first one outermost, such as store(D, 1, 0)
          given:    1, 1
        """
    ):
        Schedule().store(D, 1, 1)
    with refused(
        """\
        B is not stored in another order
          --> sparse.compile(A, Schedule().store(B, 1, 0))
          expected: a dense tensor that what is left of the assignment reads, and its modes
          given:    sum(k, B(i,j)*C(i,k)*D(k,j)), 2 modes
        """
    ):
        sparse.compile(A, Schedule().store(B, 1, 0))


def test_patterns_on_capstan_are_a_function() -> None:
    y, x, z = (Tensor(name, dense(1)) for name in "yxz")
    y[i] = B[i, j] * x[j]
    kernel = sparse.compile(y, target="capstan")
    spmv = external.from_kernel(kernel)
    assert spmv.hardware is not None
    assert (spmv.hardware.kind, spmv.hardware.device) == (HardwareKind.PATTERNS, "capstan")
    with refused(
        """\
        patterns run on the chip that they were compiled for
          --> external.from_kernel(kernel, device="arria10")
          expected: device='capstan', or none
          given:    arria10
          hint:     sparse.compile without target= makes streams, which run on any device
        """
    ):
        external.from_kernel(kernel, device="arria10")
    assert external.from_kernel(kernel, device="capstan").name == spmv.name
    z[i] = B[i, j] * x[j] + x[i]
    given = {"B": _inputs(8, 30)["B"], "x": np.arange(8, dtype=np.float32)}
    found = sparse.compile(z, Schedule().bind(B[i, j] * x[j], spmv)).run(given)
    assert np.array_equal(found.output, given["B"] @ given["x"] + given["x"])
    assert found.cycles == kernel.simulate(given, type=Float(32)).cycles


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::t2s.errors.T2SWarning")  # a ring that is not full
def test_a_placement_is_a_function() -> None:
    x, w, y = ImageParam(Float(64), 2, name="x"), ImageParam(Float(64), 1, name="w"), Func("y")
    n, inner = RDom(0, 4, name="n"), Var("inner")
    y[i] = 0.0
    y[i] += x[i, n] * w[n]
    y.bound(i, 0, 3).split(n, n, inner, 2).reorder(inner, i, n).unroll(inner)
    placed = t2s.cgra.place(y, fabric="cgra8")
    made = external.from_design(placed, device="ideal")
    assert print_capability(made.capability) == "y(i) = x(i,n)*w(n) when i == 3 and n == 4"
    a, v, u = Tensor("a", dense(1)), Tensor("v", dense(1)), Tensor("u", dense(2))
    a[i] = u[i, j] * v[j]
    given = {"u": np.arange(12.0).reshape(3, 4), "v": np.ones(4)}
    found = sparse.compile(a, Schedule().bind(u[i, j] * v[j], made)).run(given)
    assert np.array_equal(found.output, given["u"] @ given["v"])
    assert made.hardware is not None
    assert made.hardware.cycles is not None
    assert found.cycles == made.hardware.cycles()
