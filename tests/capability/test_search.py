"""Searches: counts of [Mosaic, Table 5], plans by predicted time, tuning, schedules as text."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from benchmarks.mosaic.ranking import PLANS, STATEMENT, facts, inputs
from benchmarks.mosaic.table5 import PLAIN, PROMOTED, TABLE, statement
from t2s import Float, Func, ImageParam, RDom, Var, external, sparse
from t2s.capability.reshape import EVERYTHING
from t2s.driver.external_search import schedule_text
from t2s.plan.cost import GENERIC, load_machine, predict
from t2s.plan.ir import MoveStep
from t2s.plan.search import PlanSearch
from t2s.sparse import Schedule, Tensor, csr, dense
from tests.capability.functions import NINE, THREE, described
from tests.errors.refusal import refused
from tests.sampling import sampled

i, j, k = Var("i"), Var("j"), Var("k")
A, B = Tensor("A", csr), Tensor("B", csr)
C, D = Tensor("C", dense(2)), Tensor("D", dense(2))
A[i, j] = B[i, j] * C[i, k] * D[k, j]
SHAPES = {"B": (2000, 2000), "C": (2000, 2000), "D": (2000, 2000)}
FEW = ("blas.sgemm", "blas.sdot", "blas.sgemv")


def _product(x: Any, y: Any, z: Any) -> None:
    np.matmul(x, y, out=z)


def _shapes(text: str) -> dict[str, tuple[int, ...]]:
    assignment = statement(text)
    names = {one.name: one.format.order for one in assignment.tensors}
    return {name: (10,) * order for name, order in names.items()}


@pytest.mark.parametrize(("text", "pairs", "promoted", "calls"), TABLE)
def test_counts_of_table_5(
    text: str, pairs: tuple[int, int], promoted: tuple[int, int], calls: tuple[int, int]
) -> None:
    del calls
    for at, functions in enumerate((THREE, NINE)):
        found = external.search(
            statement(text), functions, shapes=_shapes(text), reshape=PLAIN, limit=2
        )
        assert len(found.pairs) + 1 == pairs[at]
    more = external.search(statement(text), THREE, shapes=_shapes(text), reshape=PROMOTED, limit=2)
    assert len(more.pairs) + 1 == promoted[0]


def test_plans_are_ranked_by_predicted_time() -> None:
    found = external.search(A, FEW, shapes=SHAPES, densities={"B": 0.001}, limit=20)
    seconds = [one.seconds for one in found.plans]
    assert seconds == sorted(seconds)
    names = [one.schedule for one in found.plans]
    assert names[0] in ("", "store(D,1,0)")
    assert names[-1] == "fix(i,j), map(C(i,k)*D(k,j),blas.sdot)"
    assert len(set(names)) == len(names)
    again = external.search(A, FEW, shapes=SHAPES, densities={"B": 0.001}, limit=20)
    assert str(again) == str(found)
    dense_one = external.search(A, FEW, shapes=SHAPES, densities={"B": 0.3})
    assert dense_one.best.schedule == "map(C(i,k)*D(k,j),blas.sgemm)"


SMALL: tuple[tuple[str, dict[str, str], dict[str, float], tuple[str, ...]], ...] = (
    ("A(i,j) = B(i,j)*C(i,k)*D(k,j)", {"A": "ds", "B": "ds"}, {"B": 0.1}, ("blas", "numpy.dot")),
    ("A(i,j) = B(i,j)*C(i,k)*D(k,j)", {"A": "ds", "B": "ds"}, {"B": 0.5}, ("scipy", "graphblas")),
    ("A(i,l) = B(i,j)*C(j,k)*D(k,l)", {}, {}, ("blas.sgemm", "numpy.matmul", "vector.mul8")),
    ("A(i,l) = B(i,j)*C(j,k)*D(k,l)", {"A": "ds", "B": "ds"}, {"B": 0.1}, ("scipy", "blas.sger")),
    ("A(i) = B(i,j)*c(j) + d(i) - e(i)", {}, {}, ("blas.sgemv", "numpy.add", "numpy.subtract")),
    ("A(i,j) = B(i,j) + C(i,j) + D(i,j)", dict.fromkeys("ABCD", "ds"), {"C": 0.2}, ("scipy",)),
    ("A(i,j,k) = B(i,j,k)*c(i)*d(j)*e(k)", {"B": "sss"}, {"B": 0.2}, ("numpy.outer", "blas.sger")),
)


@sampled(("text", "formats", "densities", "functions"), SMALL, quick=4)
@pytest.mark.parametrize("size", [6, 60])
def test_bounds_leave_out_no_plan_that_is_among_the_best(
    text: str,
    formats: dict[str, str],
    densities: dict[str, float],
    functions: tuple[str, ...],
    size: int,
) -> None:
    """The same plans in the same order as if all rows of choices were tried."""
    assignment = sparse.parse(text, formats)
    shapes = {one.name: (size,) * one.format.order for one in assignment.tensors}
    del shapes[assignment.result.tensor]
    for limit in (1, 4):
        found = external.search(
            assignment, functions, shapes=shapes, densities=densities, limit=limit
        )
        every = PlanSearch(found.task, lambda tried, text: None, bounds=False)
        every.run()
        assert [(schedule_text(one.schedule), one.seconds) for one in every.kept] == [
            (one.schedule, one.seconds) for one in found.plans
        ]
        assert found.tried <= every.tried


def test_bounds_know_hardware_and_conditions() -> None:
    """Calls of a device have no start, and a false guard means loops."""
    x, w = ImageParam(Float(32), 2, name="x"), ImageParam(Float(32), 2, name="w")
    product, n = Func("product"), RDom(0, 4, name="n")
    product[i, j] = 0.0
    product[i, j] += x[i, n] * w[n, j]
    product.bound(i, 0, 4).bound(j, 0, 4)
    array = external.from_design(product, link=external.PCIE3_X8)
    chain = sparse.parse("E(i,l) = B(i,j)*C(j,k)*D(k,l)")
    large = described(
        "large", "z(i,k) = x(i,j) * y(j,k) when i >= 64", _product, types=(Float(32),)
    )
    for extent in (4, 32):
        shapes = dict.fromkeys("BCD", (extent, extent))
        found = external.search(chain, [array, large, "blas.sgemm"], shapes=shapes, limit=3)
        every = PlanSearch(found.task, lambda tried, text: None, bounds=False)
        every.run()
        assert [one.seconds for one in every.kept] == [one.seconds for one in found.plans]


def test_all_functions_are_searched_in_seconds() -> None:
    """TTTP of order 4 [Mosaic] over all that is shipped took minutes; it tries few plans."""
    text = "A(i,j,k,l) = B(i,j,k,l)*C(i,m)*D(j,m)*E(k,m)*F(l,m)"
    shapes = {"B": (20,) * 4, **dict.fromkeys("CDEF", (20, 8))}
    before = time.process_time()
    found = external.search(
        sparse.parse(text, {"B": "ssss"}), shapes=shapes, densities={"B": 0.01}, type=Float(32)
    )
    assert time.process_time() - before < 5
    assert found.tried < 1000
    assert {one.function.full_name for one in found.mappings} > {"sgemm of scipy's BLAS"}
    listed = {one.full_name for one in found.task.functions}
    assert {"matmul of numpy", "spmm of scipy", "mul8 of vectors of this CPU"} <= listed
    assert found.best.schedule == ""


def test_a_smaller_limit_leaves_out_no_better_plan() -> None:
    every = external.search(A, FEW, shapes=SHAPES, densities={"B": 0.01}, limit=50)
    for limit in (1, 2, 3):
        few = external.search(A, FEW, shapes=SHAPES, densities={"B": 0.01}, limit=limit)
        assert [one.seconds for one in few.plans] == [one.seconds for one in every.plans[:limit]]
        assert few.tried <= every.tried


@sampled("text", [row[0] for row in TABLE], quick=3)
def test_every_plan_is_right_and_its_text_makes_it_again(text: str) -> None:
    assignment = statement(text)
    generator = np.random.default_rng(3)
    given = {
        name: np.asarray(generator.integers(-3, 4, shape), np.float32)
        for name, shape in _shapes(text).items()
        if name != assignment.result.tensor
    }
    expected = sparse.interpret(assignment, given)
    functions = (external.blas.sgemm, external.blas.sgemv, external.blas.sdot, "numpy.add")
    found = external.search(assignment, functions, inputs=given, limit=6)
    for one in found.plans:
        assert np.array_equal(one.plan.run(given).output, expected), one.schedule
        if one.schedule:
            assert str(sparse.compile(assignment, one.schedule)) == str(one.plan)


def test_parts_of_what_a_function_gave_are_found_too() -> None:
    chain = sparse.parse("E(i,l) = B(i,j)*C(j,k)*D(k,l)")
    shapes = {"B": (400, 400), "C": (400, 400), "D": (400, 2)}
    found = external.search(chain, "blas.sgemm", shapes=shapes, limit=30)
    both = [one.schedule for one in found.plans if len(one.ranked.functions) == 2]
    first = "map(C(j,k)*D(k,l),blas.sgemm), map(B(i,j)*T(j,l),blas.sgemm)"
    other = "map(B(i,j)*C(j,k),blas.sgemm), map(D(k,l)*T(i,k),blas.sgemm)"
    assert both.index(first) < both.index(other)


def test_workspaces_that_no_memory_holds_are_left_out() -> None:
    chain = sparse.parse("E(i,l) = B(i,j)*C(j,k)*D(k,l)")
    for extent, there in ((10, True), (3000, False)):
        shapes = dict.fromkeys("BCD", (extent, extent))
        found = external.search(chain, "numpy.outer", shapes=shapes, limit=30)
        assert any("B(i,j)*D(k,l)" in one.schedule for one in found.plans) == there


def test_tuning_measures_what_was_predicted() -> None:
    given = inputs(64, 0.2, "rows")
    found = external.search(STATEMENT, FEW[:1], inputs=given)
    report = found.tune(given, top=2, runs=1)
    assert len(report.plans) == 2
    assert report.best.measured == min(one.measured for one in report.plans)
    shown = str(report).splitlines()
    assert shown[1].split() == ["schedule", "predicted", "taken"]
    assert sum(line.endswith("best") for line in shown) == 1
    expected = sparse.interpret(STATEMENT, given)
    assert all(np.array_equal(one.result.output, expected) for one in report.plans)
    if report.schedule:
        again = sparse.compile(STATEMENT, report.schedule)
        assert str(again) == str(report.best.found.plan)


def test_compiling_and_loading_are_no_part_of_what_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seconds of the first run are those of the calls, as in every later run."""
    from t2s.libraries import calling
    from t2s.loops import machine, running

    compiled, located = running.machine_code, calling._address_in_capsule
    slowed: list[str] = []

    def slow(name: str, function: Any) -> Any:
        def slowly(*given: Any) -> Any:
            slowed.append(name)
            time.sleep(0.3)
            return function(*given)

        return slowly

    monkeypatch.setattr(running, "machine_code", slow("loops", compiled))
    monkeypatch.setattr(machine, "machine_code", slow("calls", compiled))
    monkeypatch.setattr(calling, "_address_in_capsule", slow("library", located))
    calling.symbol_address.cache_clear()
    given = inputs(20, 0.5, "rows")
    many = Schedule().fix(i, j).map(C[i, k] * D[k, j], external.blas.sdot)
    plan = sparse.compile(A, many)
    calling.symbol_address.cache_clear()
    begun = time.perf_counter()
    result = plan.run(given)
    assert set(slowed) == {"loops", "calls", "library"}
    assert result.seconds < 0.2 < 0.8 < time.perf_counter() - begun
    assert result.seconds == sum(one.times.measured for one in result.steps)


def test_what_computes_nothing_says_why() -> None:
    found = external.search(A, "scipy.spadd", shapes=SHAPES, densities={"B": 0.1})
    assert found.pairs == ()
    assert found.best.what in ("loops alone", "store(D,1,0)")
    assert str(found).splitlines()[-1] == (
        "spadd computes no part: B(i,j)*C(i,k)*D(k,j) is not what spadd computes; "
        "expected z(i,j) = x(i,j) + y(i,j), given a product of 3 factors"
    )


def test_functions_of_libraries_that_are_not_there_are_skipped() -> None:
    nowhere = external.call.LibraryOf(name="nowhere", package="no_such_package_at_all")
    missing = described("missing", "z(i,k) = x(i,j) * y(j,k)", _product, library=nowhere)
    found = external.search(A, [missing, "blas.sgemm"], shapes=SHAPES, densities={"B": 0.1})
    assert len(found.pairs) == 2
    assert found.skipped[0].startswith("missing is skipped: nowhere is not there: No module")


def test_an_interrupted_search_returns_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from t2s.driver.external_search import SearchBar

    def show(self: Any, tried: int, text: str) -> None:
        if tried == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(SearchBar, "show", show)
    found = external.search(A, FEW, shapes=SHAPES, densities={"B": 0.1})
    assert found.interrupted
    assert len(found.plans) == 2
    assert ", interrupted" in str(found)


def test_hardware_is_ranked_by_its_cycles() -> None:
    x, w = ImageParam(Float(32), 2, name="x"), ImageParam(Float(32), 2, name="w")
    product, n = Func("product"), RDom(0, 4, name="n")
    product[i, j] = 0.0
    product[i, j] += x[i, n] * w[j, n]
    product.bound(i, 0, 4).bound(j, 0, 4)
    array = external.from_design(product, link=external.PCIE3_X8)
    shapes = dict.fromkeys("BCD", (4, 4))
    found = external.search(A, array, shapes=shapes, densities={"B": 0.5})
    plan = next(one for one in found.plans if one.ranked.functions == ("product",))
    step = next(one for one in plan.ranked.prediction.steps if one.exact)
    cycles = t2s.cycles(product, device="arria10")
    assert (step.seconds, step.why) == (cycles / 215e6, f"{cycles} cycles")
    result = plan.plan.run(inputs(4, 0.5, "rows"))
    assert result.cycles == cycles
    moved = [one for one in plan.ranked.prediction.steps if isinstance(one.step, MoveStep)]
    assert len(moved) == 3
    assert sum(one.seconds for one in moved) == pytest.approx(result.times.transfers)


def test_layout_is_considered() -> None:
    machine = replace(GENERIC, loops=replace(GENERIC.loops, strided=1e-6))
    seconds = {}
    for layout in ("rows", "columns"):
        known = facts(inputs(600, 0.1, layout))  # beyond the caches
        plan = sparse.compile(STATEMENT, PLANS["loops"])
        seconds[layout] = predict(plan.program, known, machine).seconds
        moved = sparse.compile(STATEMENT, PLANS["transposed"])
        seconds[f"{layout}, transposed"] = predict(moved.program, known, machine).seconds
    assert seconds["rows"] > 10 * seconds["columns"]
    assert seconds["rows, transposed"] < 2 * seconds["columns"]
    copied = predict(plan.program, known, machine).steps
    assert "strided" not in copied[0].why


def test_a_machine_is_kept_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    GENERIC.save(path)
    assert load_machine(path) == GENERIC
    path.write_text('{"name": "x"}', encoding="utf-8")
    wanted = f"""\
        {path} has no rates of a machine
          --> external.load_machine(path)
          expected: a file that machine.save(path) wrote
          given:    KeyError: 'functions'
        """
    with refused(wanted):
        external.load_machine(path)


def test_rates_are_interpolated() -> None:
    rates = GENERIC.rates_of(external.blas.sgemm)
    assert rates is not None
    works = [work for work, _ in rates.points]
    assert [rates.seconds(work) for work in works] == pytest.approx([s for _, s in rates.points])
    assert rates.seconds(1) == rates.points[0][1]
    assert rates.seconds(10 * works[-1]) == pytest.approx(10 * rates.points[-1][1])
    middle = math.sqrt(works[0] * works[1])
    assert rates.points[0][1] < rates.seconds(middle) < rates.points[1][1]


@pytest.mark.slow
def test_this_machine_is_measured(tmp_path: Path) -> None:
    machine = external.calibrate([external.blas.sgemm, external.scipy.spmv, external.blas.ssymv])
    assert [one.function for one in machine.functions] == ["sgemm", "spmv"]
    numbers = (machine.start, machine.copy, machine.transpose, machine.convert, machine.scan)
    assert all(0 < number < 1 for number in numbers)
    assert machine.loops.element > 0
    machine.save(tmp_path / "m.json")
    assert external.load_machine(tmp_path / "m.json") == machine


def test_functions_of_users_are_called_by_their_names() -> None:
    added = described("added", "z(i) = x(i) + y(i)", lambda x, y, z: np.add(x, y, out=z))
    a, b, c = (Tensor(name, dense(1)) for name in "abc")
    a[i] = b[i] + c[i]
    found = external.search(a, added, shapes={"b": (9,), "c": (9,)})
    text = next(one.schedule for one in found.plans if one.schedule)
    assert text == "map(b(i)+c(i),added)"
    plan = sparse.compile(a, external.schedule(text, [added]))
    assert np.array_equal(plan.run({"b": np.ones(9), "c": np.ones(9)}).output, np.full(9, 2.0))
    other = described("added", "z(i) = x(i) + y(i)", lambda x, y, z: np.add(x, y, out=z))
    with refused(
        """\
        two functions are called added
          --> external.schedule(text, [added, other])
          expected: functions with names of their own
        """
    ):
        external.schedule(text, [added, other])


def test_what_a_search_is_for() -> None:
    with refused(
        """\
        a search is for inputs, or for shapes
          --> external.search(A, "blas")
          expected: inputs=..., or shapes=... with densities=... of sparse tensors
          given:    none of them
        """
    ):
        external.search(A, "blas")
    with refused(
        """\
        the shape of B is unknown, or its density is invalid
          --> external.search(A, "blas", shapes=SHAPES, densities={"B": 1.5})
          expected: 2 extents, and a density from 0 to 1
          given:    shape (2000, 2000), density 1.5
        """
    ):
        external.search(A, "blas", shapes=SHAPES, densities={"B": 1.5})
    with refused(
        """\
        unknown reshaping rotate
          --> external.search(A, "blas", shapes=SHAPES, reshape="fix rotate")
          expected: some of fix, promote, transpose, fuse, tile, pad, convert, densify
        """
    ):
        external.search(A, "blas", shapes=SHAPES, reshape="fix rotate")
    with refused(
        """\
        a search keeps a number of plans
          --> external.search(A, "blas", shapes=SHAPES, limit=0)
          expected: limit, 1 or more
          given:    0
        """
    ):
        external.search(A, "blas", shapes=SHAPES, limit=0)
    with refused(
        """\
        a search takes functions
          --> external.search(A, [np.add], shapes=SHAPES)
          expected: external functions, libraries such as external.blas, or their names
          given:    <ufunc 'add'>
        """
    ):
        external.search(A, [np.add], shapes=SHAPES)
    found = external.search(A, "blas.sgemm", shapes=SHAPES)
    with refused(
        """\
        tune() needs how many plans to run, and how often
          --> found.tune({}, top=0)
          expected: top and runs, 1 or more
          given:    top=0, runs=3
        """
    ):
        found.tune({}, top=0)


def test_threads_of_libraries_are_a_number() -> None:
    plan = sparse.compile(A, Schedule().map(C[i, k] * D[k, j], external.blas.sgemm))
    assert "by one thread" in str(plan)
    with refused(
        """\
        libraries use a number of threads
          --> plan.run(inputs(4, 0.5, "rows"), threads=0)
          expected: 1 or more
          given:    0
        """
    ):
        plan.run(inputs(4, 0.5, "rows"), threads=0)
    given = inputs(300, 0.5, "rows")
    one = plan.run(given, threads=1).output.tobytes()
    assert one == plan.run(given).output.tobytes()
    plan.run(given, threads=2, type=Float(32))


def test_everything_is_allowed_but_dense_copies_of_sparse_operands() -> None:
    found = external.search(A, "numpy.matmul", shapes=SHAPES, densities={"B": 0.5})
    assert all("densify" not in one.schedule for one in found.plans)
    more = external.search(
        A,
        "numpy.multiply",
        shapes=dict.fromkeys("BCD", (4, 4)),
        reshape=replace(EVERYTHING, densify=True),
        limit=40,
    )
    text = next(one.schedule for one in more.plans if "densify" in one.schedule)
    plan = sparse.compile(A, text)
    given = inputs(4, 0.5, "rows")
    assert np.array_equal(plan.run(given).output, sparse.interpret(A, given))


def test_functions_of_other_types_are_left_out() -> None:
    """What is found can be run: values of the inputs have a type."""
    given = {name: np.ones((5, 5)) for name in "BCD"}
    found = external.search(A, [external.blas, external.scipy.spmv], inputs=given, limit=30)
    names = {name for plan in found.plans for name in plan.ranked.functions}
    assert names
    assert all(name.startswith("d") for name in names)
    assert found.skipped == (
        "sgemm, sgemv, sgemv_columns and 4 more are skipped: what is computed is float64, "
        "and not float32",
    )
    report = found.tune(given, top=30, runs=1)
    assert len(report.plans) == len(found.plans)
    single = external.search(A, external.blas, inputs=given, type=Float(32), limit=30)
    assert "dgemm, dgemv" in single.skipped[0]
    assert single.tune(given, top=3, runs=1).plans[0].result.output.dtype == np.float32


def test_only_plans_are_emitted(tmp_path: Path) -> None:
    kernel: Any = sparse.compile(A)
    with refused(
        """\
        the plan has the wrong type
          --> external.emit(kernel, str(tmp_path), {})
          expected: what sparse.compile makes of a plan's schedule
          given:    <Kernel A(i,j) = sum(k, B(i,j)*C(i,k)*D(k,j))>
        """
    ):
        external.emit(kernel, str(tmp_path), {})


def test_what_computes_parts_of_workspaces_is_no_miss() -> None:
    statement = sparse.parse("A(i,k) = B(j,i)*C(j,k) + D(i,k)", dict.fromkeys("ABCD", "ds"))
    shapes = {"B": (30, 20), "C": (30, 10), "D": (20, 10)}
    functions = [external.scipy.spgemm, external.scipy.spadd, external.blas.dger]
    found = external.search(
        statement, functions, shapes=shapes, densities=dict.fromkeys("BCD", 0.2), limit=20
    )
    both = "map(B(j,i)*C(j,k),scipy.spgemm), map(T(i,k)+D(i,k),scipy.spadd)"
    assert both in [one.schedule for one in found.plans]
    (miss,) = found.misses
    assert miss.startswith("dger computes no part")
    generator = np.random.default_rng(1)
    given = {
        name: generator.integers(1, 5, shape) * (generator.random(shape) < 0.2) * 1.0
        for name, shape in shapes.items()
    }
    expected = given["B"].T @ given["C"] + given["D"]
    for one in found.plans:
        assert np.array_equal(one.plan.run(given).output, expected), one.schedule
        if one.schedule:
            assert str(sparse.compile(statement, one.schedule)) == str(one.plan)


def test_two_functions_of_one_name() -> None:
    """What is printed, and kept as text, has to say which one."""
    product = external.make_function("f", "z(i,k) = x(i,j)*y(j,k)", python=_product)
    inner = external.make_function("f", "s = x(i)*y(i)", python=lambda x, y: x @ y)
    with refused("""
        two of the functions to search are named f
          --> external.search(A, [product, inner], shapes=SHAPES, densities={"B": 0.1})
          expected: a name of its own for each function
          given:    z(i,k) = x(i,j)*y(j,k); s = x(i)*y(i)
          hint:     give one of them another name in make_function
    """):
        external.search(A, [product, inner], shapes=SHAPES, densities={"B": 0.1})


def test_more_elements_than_an_index_counts() -> None:
    with refused("""
        B would have more elements than an index can count
          --> external.search(A, FEW, shapes={**SHAPES, "B": (10**12, 10**12)})
          expected: at most 4,611,686,018,427,387,904 elements
          given:    shape 1000000000000 x 1000000000000
    """):
        external.search(A, FEW, shapes={**SHAPES, "B": (10**12, 10**12)})
