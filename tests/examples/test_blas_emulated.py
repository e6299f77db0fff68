"""The BLAS examples on Intel's FPGA emulator: tiny, since channels are slow there."""

from __future__ import annotations

import pytest

from t2s.backends.opencl_fpga.emulator import emulator_available
from tests.examples.systolic import assert_matches
from tests.examples.test_blas import ALL, example, folded

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(not emulator_available(), reason="Intel's FPGA emulator is not installed"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sizes"), ALL)
def test_emulated_result(name: str, sizes: str) -> None:
    module = example(name)
    func = module["design"](module[sizes])
    inputs, expected = module["problem"](module[sizes])
    emulated = func.emulate(inputs, time_limit=120.0)
    assert_matches(folded(name, module[sizes], emulated[func.name]), expected)
