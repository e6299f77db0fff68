"""The expressions of [SAM, Table 1]: their blocks, and their values on the engine."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.sam.expressions import COLUMNS, TABLE, Row
from t2s.driver.assignment_design import MOST_GRAPHS, Channels
from t2s.sparse import Kernel, Schedule, Tensor, compile, dcsr, parse
from t2s.sparse_repr.lowering.diagram import block_counts
from t2s.sparse_repr.notation.ir import accesses, all_variables
from tests.sampling import sampled

# A residual keeps a row of b where C has none: its row of the result has a value, so there is no
# coordinate to drop.  The sums of a transposed product are added up by a reducer that keeps the
# coordinates i, which leaves out the columns j without entries.
OURS = {"Residual": {"coordinate drop": 0}, "MatTransMul": {"coordinate drop": 0}}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_blocks_are_those_of_the_paper(row: Row) -> None:
    kernel = row.kernel()
    expected = dict(zip(COLUMNS, row.published, strict=True)) | OURS.get(row.name, {})
    counts = block_counts(kernel.diagrams)
    assert {name: counts[name] for name in COLUMNS} == expected
    assert counts["locate"] == 0
    assert not kernel.program.views


@pytest.mark.parametrize("density", [0.0, 0.4, 1.0])
@sampled("row", TABLE, quick=2, ids=lambda row: row.name)
def test_values_are_those_of_numpy(row: Row, density: float) -> None:
    kernel = row.kernel()
    generator = np.random.default_rng(7)
    extents = {name: 2 + n % 3 for n, name in enumerate(all_variables(kernel.assignment))}
    inputs = {}
    for access in accesses(kernel.assignment.value):
        shape = tuple(extents[name] for name in access.variables)
        array = generator.integers(1, 9, shape) * (generator.random(shape) < density)
        inputs[access.tensor] = np.asarray(array, np.float64)
    result = kernel.simulate(inputs)
    assert np.array_equal(result.output, kernel.interpret(inputs))
    for level, arrays in zip(result.tensor.format.levels, result.tensor.levels, strict=True):
        assert set(arrays) == set(level.array_names)


def test_locating_takes_a_scanner_and_an_intersecter_away() -> None:
    assignment = parse("X(i,j)=B(i,j)*C(i,k)*D(j,k)", ["B:ss", "C:dd", "D:dd", "X:ss"])
    schedule = Schedule().reorder("i j k").locate("C", "i").locate("D", "j")
    kernel = Kernel(assignment, schedule)
    counts = block_counts(kernel.diagrams)
    assert counts["locate"] == 2
    assert counts["level scanner"] == 4
    assert counts["intersect"] == 1
    generator = np.random.default_rng(3)
    inputs = {
        "B": generator.integers(1, 9, (3, 4)) * (generator.random((3, 4)) < 0.5),
        "C": generator.integers(1, 9, (3, 2)),
        "D": generator.integers(1, 9, (4, 2)),
    }
    result = kernel.simulate(inputs)
    assert np.array_equal(result.output, kernel.interpret(inputs))


LANES = [
    ("y(i)=A(i,j)*x(j)", "A:ss x:s y:s", "i j", "i"),
    ("x(i)=b(i)-A(i,j)*c(j)", "A:ss b:s c:s x:s", "i j", "i"),
    ("X(i,j)=A(i,k)*B(k,j)", "A:ss B:ss X:ss", "i k j", "i"),
    ("X(i,j)=A(i,k)*B(k,j)", "A:ss B:ss X:ss", "i k j", "k"),
    ("X(i,j)=A(i,k)*B(k,j)", "A:ss:1,0 B:ss X:ss", "k i j", "k"),
    ("X(i,j)=A(i,j)+B(i,j)", "A:ss B:ss X:ss", "i j", "j"),
]


@sampled(("text", "formats", "order", "variable"), LANES, quick=2)
def test_lanes_change_time_only(text: str, formats: str, order: str, variable: str) -> None:
    assignment = parse(text, formats.split())
    schedule = Schedule().reorder(order)
    plain = Kernel(assignment, schedule)
    dealt = Kernel(assignment, schedule.parallelize(variable, 3))
    assert f"for {variable}:  # 3 lanes" in str(dealt)
    assert block_counts(dealt.diagrams)["parallelizer"] == 1
    generator = np.random.default_rng(6)
    extents = dict(zip("ijk", (8, 6, 7), strict=True))
    inputs = {}
    for access in accesses(assignment.value):
        shape = tuple(extents[name] for name in access.variables)
        inputs[access.tensor] = generator.integers(1, 9, shape) * (generator.random(shape) < 0.7)
    result = dealt.simulate(inputs)
    assert np.array_equal(result.output, plain.interpret(inputs))
    if text.startswith("y(i)"):
        alone = plain.simulate(inputs)
        assert result.cycles < 0.7 * alone.cycles


def test_an_unfused_product_takes_two_stages() -> None:
    B, C, D = Tensor("B", dcsr), Tensor("C", dcsr), Tensor("D", dcsr)
    X = Tensor("X", dcsr)
    X["i", "j"] = B["i", "j"] * (D["j", "k"] * C["i", "k"])
    kernel = compile(X, Schedule().precompute(D["j", "k"] * C["i", "k"], "T"))
    assert (
        str(kernel)
        == """\
T(i,j) is stored as ss:0,1, by default, and densely up to 1,048,576 elements
for i:
  for j:
    for k:
      T(i,j) += D(j,k)*C(i,k)
for i:
  for j:
    X(i,j) = B(i,j)*T(i,j)
"""
    )
    generator = np.random.default_rng(4)
    inputs = {name: generator.integers(0, 3, (4, 4)) for name in "BCD"}
    result = kernel.simulate(inputs)
    assert len(result.stages) == 2
    assert np.array_equal(result.output, inputs["B"] * (inputs["C"] @ inputs["D"].T))


def test_joins_of_many_sides() -> None:
    names = "ABCDEFGH"
    text = "x(i)=" + "+".join(f"{name}(i)" for name in names)
    kernel = Kernel(parse(text, [f"{name}:s" for name in (*names, "x")]))
    generator = np.random.default_rng(5)
    inputs = {name: generator.integers(0, 3, 6) for name in names}
    result = kernel.simulate(inputs)
    assert np.array_equal(result.output, sum(inputs.values()))


def test_rows_that_are_all_visited_are_written_as_they_are() -> None:
    assignment = parse("X(i,j)=B(i,k)*C(k,j)", ["B:ds", "C:ds", "X:ds"])
    kernel = Kernel(assignment)
    assert not kernel.program.views
    assert block_counts(kernel.diagrams)["coordinate drop"] == 0
    B, C = np.array([[0, 2], [0, 0], [1, 0]]), np.array([[0, 0, 3], [4, 0, 0]])
    result = kernel.simulate({"B": B, "C": C})
    assert result.tensor.levels[1]["pos"].tolist() == [0, 1, 1, 2]
    assert np.array_equal(result.output, B @ C)
    sparse_rows = Kernel(parse("X(i,j)=B(i,k)*C(k,j)", ["B:ss", "C:ds", "X:ds"]))
    assert sparse_rows.program.views[0].reasons == ("dense levels are filled in afterwards",)
    assert np.array_equal(sparse_rows.simulate({"B": B, "C": C}).output, B @ C)


def test_a_kernel_keeps_some_of_its_graphs() -> None:
    kernel = Kernel(parse("y(i)=A(i,j)*x(j)", ["A:ds"]))

    def graph_of(size: int) -> object:
        bound = kernel.bind({"A": np.eye(size), "x": np.ones(size)})
        return kernel.stage(0, bound, Channels())

    first = graph_of(1)
    assert graph_of(1) is first
    kept = [graph_of(size) for size in range(1, MOST_GRAPHS + 1)]
    assert kept[0] is first
    graph_of(MOST_GRAPHS + 1)
    assert graph_of(MOST_GRAPHS) is kept[-1]
    assert graph_of(1) is not first
    assert graph_of(1) == first
