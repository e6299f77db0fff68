"""The tensor kernels and layers on Intel's FPGA emulator, at the smallest sizes."""

from __future__ import annotations

import pytest

from t2s.backends.opencl_fpga.emulator import emulator_available
from tests.examples.systolic import assert_matches, random_inputs
from tests.examples.test_kernels import KERNELS, example, tiny

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(not emulator_available(), reason="Intel's FPGA emulator is not installed"),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_the_emulator_agrees_with_numpy(name: str) -> None:
    func = tiny(name)
    inputs = random_inputs(func.lower())
    emulated = func.emulate(inputs, time_limit=120.0)
    assert emulated.keys() == {func.name}
    assert_matches(emulated[func.name], KERNELS[name].expected(example(name), inputs))
