"""The ten kernels on Capstan's units: values of the patterns, both engines, three memories."""

from __future__ import annotations

import numpy as np
import pytest

import t2s
from benchmarks.stardust.kernels import random_inputs
from benchmarks.stardust.paper import PAPER, PublishedKernel
from t2s.sparse import CapstanKernel, SparseTensor

KERNELS = PAPER
DENSITIES = (0.05, *(pytest.param(n, marks=pytest.mark.slow) for n in (0.0, 0.3, 1.0)))


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


@pytest.fixture(scope="module", params=KERNELS, ids=lambda published: published.name)
def kernel(request: pytest.FixtureRequest) -> CapstanKernel:
    published: PublishedKernel = request.param
    return published.kernel()


@pytest.mark.parametrize("density", DENSITIES)
def test_values_and_cycles(kernel: CapstanKernel, density: float) -> None:
    inputs = random_inputs(kernel, density, seed=7)
    expected = kernel.run_patterns(inputs)
    cycles = []
    for memory in ("ideal", "hbm2e-1800"):
        both = [kernel.simulate(inputs, memory=memory, engine=e) for e in ("native", "python")]
        assert all(same(result.tensor, expected) for result in both)
        assert both[0].cycles == both[1].cycles
        cycles.append(both[0].cycles)
    assert cycles == sorted(cycles)


def test_floats_round_as_in_the_patterns(kernel: CapstanKernel) -> None:
    generator = np.random.default_rng(3)
    inputs = {
        name: (values * generator.standard_normal(values.shape)).astype(np.float32)
        for name, values in random_inputs(kernel, 0.5, seed=3).items()
    }
    expected = kernel.run_patterns(inputs, type=t2s.Float(32))
    assert same(kernel.simulate(inputs, type=t2s.Float(32)).tensor, expected)
