"""scatter and gather on Intel's FPGA emulator: what the simulator computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from t2s.backends.opencl_fpga.emulator import emulator_available
from tests.spatial.programs import random_inputs

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(not emulator_available(), reason="Intel's FPGA emulator is not installed"),
]


def product() -> tuple[Func, dict[str, Any]]:
    """A product of a 3 x 4 and a 4 x 5 matrix on 3 x 5 PEs, with all its chains."""
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, 4, name="k")
    C, loader, feeder, drainer, collector, unloader = t2s.funcs(
        "C loader feeder drainer collector unloader"
    )
    C[i, j] = 0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, 3).bound(j, 0, 5).unroll(i, j)
    C.isolate_producer_chain(A, loader, feeder).forward(feeder, j)
    C.isolate_consumer_chain(drainer, collector, unloader)
    return C, {
        "C": C, "loader": loader, "feeder": feeder, "drainer": drainer, "collector": collector,
        "unloader": unloader, "A": A, "i": i, "j": j, "k": k,
    }  # fmt: skip


def streams() -> Func:
    """Every stream downwards; results one by one."""
    C, v = product()
    v["feeder"].scatter(v["loader"], v["i"], reverse=True)
    v["drainer"].gather(C, v["j"], reverse=True)
    v["collector"].gather(v["drainer"], v["i"], reverse=True)
    return C


def lanes() -> Func:
    """Vectors of 5, which OpenCL has no type for; the loop of the stream outermost."""
    C, v = product()
    v["feeder"].scatter(v["loader"], v["i"])
    v["loader"].reorder(v["k"], v["i"])
    v["drainer"].gather(C, v["i"])
    v["collector"].gather(v["drainer"], v["j"], reverse=True)
    v["unloader"].vstore(C)
    return C


@pytest.mark.slow
@pytest.mark.parametrize("build", [streams, lanes])
def test_emulated(build: Callable[[], Func]) -> None:
    func = build()
    inputs = random_inputs(func.lower(), 0)
    expected = t2s.interpret(func, inputs)
    np.testing.assert_array_equal(func.simulate(inputs).outputs["C"], expected)
    np.testing.assert_array_equal(func.emulate(inputs, time_limit=120.0)["C"], expected)
