"""Kernels on Capstan's units: values of the patterns, both engines, memories, and what is said."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import t2s
from benchmarks.stardust.paper import PAPER
from t2s import sparse
from t2s.core.errors import UnsupportedError, UserError
from t2s.sparse import CapstanKernel, SparseTensor, compile
from t2s.sparse_repr.notation.ir import accesses
from tests.capstan.kernels import TEN
from tests.capstan.random_kernels import RandomKernel, random_kernels
from tests.sampling import sampled
from tests.simulator.memory.plain_memories import independent_memories

SIMULATED = tuple(row.name for row in PAPER)
SHAPES = ({"i": 5, "j": 4, "k": 3, "l": 6}, {"i": 0}, {"i": 1, "j": 1}, {"j": 0}, {"k": 0, "l": 1})
"""Extents of the variables; 3 where nothing is said."""

HBM, DDR, IDEAL = "hbm2e-1800", "ddr4-2133x4", "ideal"
OPTIONS = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


def inputs_of(
    kernel: CapstanKernel, extents: dict[str, int], density: float, seed: int
) -> dict[str, Any]:
    """Dense arrays, a part of them zero; the first row, a middle one and the last one too."""
    generator = np.random.default_rng(seed)
    found = {}
    for access in accesses(kernel.assignment.value):
        shape = tuple(extents.get(variable, 3) for variable in access.variables)
        values = generator.integers(1, 9, shape) * (generator.random(shape) < density)
        if len(shape) > 1 and shape[0] > 3:
            values[[0, shape[0] // 2, -1]] = 0
        found[access.tensor] = np.asarray(values, np.int32)
    return found


def same(found: SparseTensor, expected: SparseTensor) -> bool:
    """Whether all arrays are equal, bit by bit."""
    assert [sorted(level) for level in found.levels] == [sorted(level) for level in expected.levels]
    arrays = [
        (one[name], other[name])
        for one, other in zip(found.levels, expected.levels, strict=True)
        for name in one
    ]
    arrays.append((found.values, expected.values))
    return all(
        one.dtype == other.dtype and one.tobytes() == other.tobytes() for one, other in arrays
    )


ALIKE = {"MatTransMul", "Residual", "TTM", "MTTKRP", "InnerProd"}
"""Kernels whose units others have, too, which quick tests take."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.slow) if name in ALIKE else name for name in SIMULATED
    ],
)
def kernel(request: pytest.FixtureRequest) -> CapstanKernel:
    return next(row for row in PAPER if row.name == request.param).kernel()


@sampled("extents", SHAPES, quick=3, ids=str)
def test_values_of_the_patterns(kernel: CapstanKernel, extents: dict[str, int]) -> None:
    for seed, density in enumerate((0.0, 0.4, 1.0)):
        inputs = inputs_of(kernel, extents, density, seed)
        result = kernel.simulate(inputs)
        assert same(result.tensor, kernel.run_patterns(inputs))
        assert sum(result.parts.cycles.values()) == result.cycles
        ideal = kernel.simulate(inputs, memory=IDEAL)
        assert same(ideal.tensor, result.tensor)
        assert ideal.cycles <= result.cycles


@pytest.mark.slow
def test_floats_round_as_in_the_patterns(kernel: CapstanKernel) -> None:
    generator = np.random.default_rng(3)
    whole = inputs_of(kernel, {"i": 9, "j": 8, "k": 7, "l": 40}, 0.7, 3)
    inputs = {
        name: (values * generator.standard_normal(values.shape)).astype(np.float32)
        for name, values in whole.items()
    }
    result = kernel.simulate(inputs, type=t2s.Float(32), memory=IDEAL)
    assert same(result.tensor, kernel.run_patterns(inputs, type=t2s.Float(32)))


@sampled("memory", [IDEAL, HBM], quick=2)
def test_both_engines(kernel: CapstanKernel, memory: str) -> None:
    inputs = inputs_of(kernel, {"i": 4, "j": 3, "k": 2, "l": 5}, 0.5, 1)
    with independent_memories():
        native, plain = (
            kernel.simulate(inputs, memory=memory, engine=engine) for engine in ("native", "python")
        )
    assert native.cycles == plain.cycles
    assert same(native.tensor, plain.tensor)
    assert native.units == plain.units


@pytest.mark.slow
def test_the_slowest_memory_takes_longest(kernel: CapstanKernel) -> None:
    inputs = inputs_of(kernel, {"i": 60, "j": 50, "k": 10, "l": 20}, 0.3, 5)
    hbm = kernel.simulate(inputs)
    fast, slow = hbm.retime(memory=IDEAL), hbm.retime(memory=DDR)
    # what only waits takes both memories the same time, within what their refreshes make of it
    assert fast.cycles <= hbm.cycles <= 1.01 * slow.cycles
    assert slow.cycles == kernel.simulate(inputs, memory=DDR).cycles
    assert fast.cycles == kernel.simulate(inputs, memory=IDEAL).cycles
    for result, peak in ((hbm, 1800.0), (slow, 68.3)):
        moved = sum(array.nbytes for array in inputs.values()) / 4
        assert result.nanoseconds >= min(moved, result.dram_bytes) / peak


@pytest.mark.slow
def test_random_inputs(kernel: CapstanKernel) -> None:
    generator = np.random.default_rng(0)
    for seed in range(60):
        extents = {name: int(generator.integers(0, 41)) for name in "ijkl"}
        density = (0.0, 0.01, 0.3, 1.0)[seed % 4]
        if math.prod(extents.values()) > 50_000:
            extents = {name: extent // 4 for name, extent in extents.items()}
        inputs = inputs_of(kernel, extents, density, seed)
        for type in (t2s.Int(32), t2s.Float(32), t2s.Int(64), t2s.Float(64))[
            : 4 if seed < 4 else 2
        ]:
            result = kernel.simulate(inputs, type=type)
            assert same(result.tensor, kernel.run_patterns(inputs, type=type))


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATED)
def test_without_a_schedule(name: str) -> None:
    kernel = compile(TEN[name]().result, target="capstan")
    for seed, extents in enumerate(SHAPES):
        inputs = inputs_of(kernel, extents, 0.4, seed)
        assert same(kernel.simulate(inputs).tensor, kernel.run_patterns(inputs))


def _random(found: RandomKernel, memories: tuple[str, ...], engines: tuple[str, ...]) -> str:
    try:
        kernel = compile(found.result, found.schedule, target="capstan")
        expected = kernel.run_patterns(found.inputs)
    except UserError:
        return "no patterns"
    try:
        for memory in memories:
            runs = [kernel.simulate(found.inputs, memory=memory, engine=one) for one in engines]
            assert all(same(run.tensor, expected) for run in runs)
            assert len({run.cycles for run in runs}) == 1
    except UnsupportedError as error:
        if error.location is None:
            raise AssertionError("a refusal without the user's line") from error
        return "no units"
    return "simulated"


def test_random_kernels() -> None:
    outcomes = Counter[str]()

    @settings(OPTIONS, max_examples=20)
    @given(random_kernels())
    def run(found: RandomKernel) -> None:
        outcomes[_random(found, (IDEAL,), ("native",))] += 1

    run()
    assert outcomes["simulated"] >= 5


@pytest.mark.slow
@settings(OPTIONS, max_examples=200)
@given(random_kernels())
def test_many_random_kernels(found: RandomKernel) -> None:
    with independent_memories():
        _random(found, (IDEAL, HBM), ("native", "python"))


def test_times_of_the_chip_change_cycles_alone() -> None:
    kernel = PAPER[0].kernel()
    inputs = inputs_of(kernel, {"i": 20, "j": 20}, 0.3, 0)
    result = kernel.simulate(inputs)
    slower = replace(result.times, hop=12, dram_path=100, queue_words=32)
    again = result.retime(times=slower)
    assert again.cycles == kernel.simulate(inputs, times=slower).cycles > result.cycles
    assert again.retime(times=result.times).cycles == result.cycles
    assert again.tensor is result.tensor


def test_so_many_wait_for_a_sparse_dram() -> None:
    """A way of 2,000 cycles leaves time for as many vectors of a sum as there is room for.

    Of scalars, four are under way, as many as an input has places.
    """
    generator = np.random.default_rng(0)
    b, c = (generator.random((2, 60, 300)) < 0.5).astype(np.int32)
    i, j = t2s.variables("i j")
    total, left, right = (sparse.Tensor(name, "ds") for name in "ABC")
    total[i, j] = left[i, j] + right[i, j]
    found = compile(total, target="capstan").simulate({"B": b, "C": c})
    far = found.retime(times=replace(found.times, dram_path=2000)).cycles
    vectors = sum(-(-int(row.sum()) // 16) for row in (b | c))
    trips = vectors / found.times.room(16)
    assert found.times.room(16) == 16 + 4 + 2 * found.times.hop
    assert 2000 * trips < far < 1.1 * 2000 * (trips + 4)

    column, matrix, other = (
        sparse.Tensor("y", "d"),
        sparse.Tensor("A", "ds"),
        sparse.Tensor("C", "dd"),
    )
    column[i] = matrix[i, j] * other[j, i]
    one_lane = sparse.Schedule().environment(inner_par=1)
    found = compile(column, one_lane, target="capstan").simulate({"A": b, "C": b.T.copy()})
    far = found.retime(times=replace(found.times, dram_path=2000)).cycles
    trips = b.sum() / 4
    assert 2000 * trips < far < 1.1 * 2000 * (trips + 4)


def test_vectors_and_partitions_bound_the_cycles() -> None:
    kernel = PAPER[0].kernel()
    matrix = (np.random.default_rng(0).random((64, 300)) < 0.5).astype(np.int32)
    result = kernel.simulate({"A": matrix, "x": np.arange(300, dtype=np.int32)}, memory=IDEAL)
    vectors = sum(-(-int(length) // 16) for length in matrix.sum(axis=1))
    assert result.cycles >= vectors / 16 + 300 / 16
    assert result.cycles < vectors / 16 + 300 / 16 + 200
    assert result.units["reduce_total"].busy == vectors + 16
