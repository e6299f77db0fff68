"""Registers that do not start at zero, and tokens with values under all tags, in the backends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.referee import referee
from t2s.backends.opencl_fpga import BACKEND as OPENCL
from t2s.backends.opencl_fpga import emulate, emulator_available
from t2s.core.types import INT32, Float, Int, Type
from t2s.simulator.devices import DEVICES
from t2s.simulator.run import simulate
from tests.backends.test_opencl_machines import INPUTS, merging
from tests.backends.test_verilog_machines import needs_verilator
from tests.simulator.test_initial_registers import TYPES, delayed, inputs_of, started
from tests.simulator.test_values_under_tags import X, numbered

emulated = [
    pytest.mark.slow,
    pytest.mark.emulator,
    pytest.mark.skipif(not emulator_available(), reason="the emulator is not installed"),
]
verilated = [pytest.mark.slow, pytest.mark.verilator, needs_verilator]


@pytest.mark.parametrize(
    ("type", "file", "declared"),
    [
        (INT32, (3, 2), "int kept[2][3][2] = {-3, -3, -3, -3, -3, -3, -3, -3, -3, -3, -3, -3};"),
        (Float(64), (1,), "double kept[2] = {-3.0, -3.0};"),
        (Int(8).with_lanes(2), (1,), "char2 kept[2] = {(char2)(-3), (char2)(-3)};"),
        (Float(32).with_lanes(3), (1,), "float_x3 kept[2] = {" + "-3.0f, " * 5 + "-3.0f};"),
        (Float(32).with_lanes(32), (1,), "float_x32 kept[2] = {" + "-3.0f, " * 63 + "-3.0f};"),
    ],
    ids=str,
)
def test_declarations(type: Type, file: tuple[int, ...], declared: str) -> None:
    text = OPENCL.emit(delayed(type, -3, file=file))["delayed.cl"]
    assert declared in text
    assert "while (1)" not in text.split("void array(")[1].split("__kernel")[0]


class TestEmulated:
    pytestmark = emulated

    @pytest.mark.parametrize("number", [0, 1, 8, 9])
    def test_arrays(self, number: int) -> None:
        graph = delayed(*TYPES[number], file=(3, 2))
        inputs = inputs_of(graph)
        found = emulate(graph, inputs, time_limit=120)["y"]
        np.testing.assert_array_equal(found, simulate(graph, inputs).outputs["y"])

    def test_a_machine(self) -> None:
        graph = started(merging(), 2)
        expected = simulate(graph, INPUTS).outputs["y"]
        assert expected[0] == 2001
        np.testing.assert_array_equal(emulate(graph, INPUTS, time_limit=120)["y"], expected)


class TestVerilated:
    pytestmark = verilated

    @pytest.mark.parametrize("number", [0, 6, 8, 9])
    def test_arrays(self, runtime: Path, number: int) -> None:
        graph = delayed(*TYPES[number])
        row = referee("delayed", graph, [DEVICES["ideal"]], (None,), runtime, inputs_of(graph))
        assert row.differences == []
        assert row.values > 0

    def test_a_machine(self, runtime: Path) -> None:
        graph = started(merging(), 2)
        row = referee("merging", graph, [DEVICES["ideal"]], (None,), runtime, INPUTS)
        assert row.differences == []
        assert row.values > 0

    def test_tags(self, runtime: Path) -> None:
        row = referee("kept", numbered(), [DEVICES["ideal"]], (None, 1), runtime, {"x": X})
        assert row.differences == []
        assert row.values > 0
