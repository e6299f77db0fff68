"""The ten kernels of [Stardust]: loops and patterns give what numpy gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.sparse import Schedule, compile
from tests.capstan.kernels import TEN, random_inputs
from tests.sampling import sampled

few = settings(max_examples=6, deadline=None)
extents = st.tuples(*[st.integers(0, 5)] * 4)
densities = st.sampled_from([0.0, 0.05, 0.3, 1.0])


def _check(name: str, scheduled: bool, sizes: tuple[int, ...], density: float, seed: int) -> None:
    kernel = TEN[name]()
    schedule = kernel.schedule if scheduled else Schedule()
    if name == "Plus3":  # three levels are joined two by two, by precompute alone
        schedule = kernel.schedule
    compiled = compile(kernel.result, schedule, target="capstan")
    inputs = random_inputs(kernel.shapes(*sizes), density, seed)
    expected = compiled.interpret(inputs, level="notation")
    np.testing.assert_array_equal(compiled.interpret(inputs), expected)
    np.testing.assert_array_equal(compiled.interpret(inputs, level="loops"), expected)


@pytest.mark.parametrize("scheduled", [True, False])
@sampled("name", TEN, quick=2)
def test_the_ten(name: str, scheduled: bool) -> None:
    @few
    @given(extents, densities, st.integers(0, 9))
    def run(sizes: tuple[int, ...], density: float, seed: int) -> None:
        _check(name, scheduled, sizes, density, seed)

    run()
    _check(name, scheduled, (3, 19, 5, 7), 0.3, 1)
    _check(name, scheduled, (1, 1, 1, 1), 1.0, 1)
