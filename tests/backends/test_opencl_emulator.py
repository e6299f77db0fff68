"""The emitted OpenCL on Intel's FPGA emulator, against the meaning of the graph.

Channels are as deep as the text says, so a depth that does not suffice shows as a time-out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2s.backends.opencl_fpga import BACKEND, emulate, emulator_available
from t2s.core.ops import Op
from t2s.core.types import Bool, Float, Int, Type, UInt
from t2s.graph.graph import Graph
from t2s.graph.interpret import interpret_graph
from tests.backends import designs
from tests.backends.buffers import double_buffer
from tests.backends.emulated import GEMMS, check_emulated
from tests.backends.triangles import triangular_array
from tests.hand_graphs import systolic_gemm
from tests.sampling import sampled

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(not emulator_available(), reason="the emulator is not installed"),
]
Array = Any
TIME_LIMIT = 120.0


def check(
    graph: Graph, parameters: dict[str, Array] | None = None, *, exact_depths: bool = True
) -> None:
    check_emulated(emulate, graph, parameters, time_limit=TIME_LIMIT, exact_depths=exact_depths)


@pytest.mark.slow
@pytest.mark.parametrize("case", GEMMS)
def test_gemm(case: str) -> None:
    """Bit by bit, floats too: sums have the order of ``ReduceLanes``, and nothing is fused.

    Many firings through channels as shallow as these take the emulator long.
    """
    shape, (rows, columns), lanes, element = GEMMS[case]
    check(
        systolic_gemm(*shape, tile_rows=rows, tile_columns=columns, lanes=lanes, element=element),
        exact_depths=rows * columns < 100,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "graph",
    [
        designs.relay_chain(),
        designs.serial_feeder(),
        designs.serial_feeder(pes=5, block=4, rounds=5, extra=2),
        designs.scatter_gather(),
        designs.triangular(),
        designs.triangular(per_pe=True),
        designs.running_total(),
        designs.leftwards(),
        designs.through_memory(),
        designs.feedback_loop(),
        designs.reconvergent(),
        designs.circulating(),
        designs.circulating(uneven=True),
        double_buffer(periods=2),
        double_buffer(writes=2, repeats=2, pes=2, lanes=10),
    ],
    ids=lambda graph: graph.name,
)
def test_design(graph: Graph) -> None:
    check(graph)


def test_pes_that_do_not_exist() -> None:
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    outputs = emulate(triangular_array(4, 3), {"x": x}, time_limit=TIME_LIMIT)
    expected = np.tril(np.arange(1, 5)[:, None] * x.sum(axis=0))
    np.testing.assert_array_equal(outputs["y"], expected)


def test_scalars() -> None:
    check(designs.scaled(Int(16)), {"alpha": np.int16(7), "count": np.int32(3)})


def test_host_program_by_itself(tmp_path: Path) -> None:
    """As users run it: the files in a folder, the inputs in one .npz file."""
    graph = designs.scaled()
    for path, text in BACKEND.emit(graph).items():
        (tmp_path / path).write_text(text)
    libraries = [
        Path(str(file.locate())).resolve()
        for package in ("intel-opencl-rt", "intel-cmplr-lib-rt")
        for file in metadata.files(package) or ()
        if file.name in ("libintelocl_emu.so", "libimf.so")
    ]
    (tmp_path / "emulator.icd").write_text(str(libraries[0]))
    x = np.array([3, -4, 5, 6], np.int32)
    np.savez(tmp_path / "inputs.npz", x=x, alpha=np.int32(2), count=np.int32(4))
    found = {
        "LD_LIBRARY_PATH": ":".join(str(library.parent) for library in libraries),
        "OCL_ICD_VENDORS": str(tmp_path),
    }
    command = [sys.executable, "scaled_host.py", "--inputs", "inputs.npz", "--outputs", "out.npz"]
    environment = {**os.environ, **found}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=TIME_LIMIT)
    with np.load(tmp_path / "out.npz") as outputs:
        np.testing.assert_array_equal(outputs["y"], x * 2)


def special_values(element: Type) -> Array:
    if element.is_bool:
        return np.array([False, True])
    if element.is_integer:
        limits = np.iinfo(element.numpy)
        values = [0, 1, 2, 3, 7, 100, limits.max, limits.max - 1, limits.min]
        values += [-1, -2, -3, -7, -100] if limits.min < 0 else []
        return np.array(values, element.numpy)
    values = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.1, 1e10, -1e10, 3e38, 300.7, -129.5, 255.5]
    return np.array([*values, np.inf, -np.inf, np.nan], element.numpy)


@sampled("element", [Int(8), Int(32), UInt(16), Int(64)], quick=2, ids=str)
def test_division_by_constants(element: Type) -> None:
    """Rounded towards minus infinity, by bits too."""
    x = special_values(element)
    graph = designs.divided(element, (1, 2, 3, 8, 64), len(x))
    outputs = emulate(graph, {"x_in": x}, time_limit=TIME_LIMIT)
    for name, value in interpret_graph(graph, {"x_in": x}).items():
        np.testing.assert_array_equal(outputs[name], value, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("element", "lanes"),
    [
        (Int(8), 1),
        (Int(8), 10),
        (UInt(8), 4),
        (Int(16), 4),
        (UInt(16), 1),
        (Int(32), 1),
        (Int(32), 4),
        (UInt(32), 10),
        (Int(64), 1),
        (UInt(64), 4),
        (Float(32), 1),
        (Float(32), 4),
        (Float(32), 10),
        (Float(64), 16),
        (Bool(), 1),
        (Bool(), 4),
    ],
    ids=str,
)
def test_operators(element: Type, lanes: int) -> None:
    """Every operator and cast on every pair of special values: the table of ``core/ops.py``."""
    values = special_values(element)
    count = -(-(len(values) ** 2) // lanes)
    x, y = (np.resize(axis, count * lanes) for axis in np.meshgrid(values, values))
    graph = designs.operators(element, lanes, count)
    inputs = {"x_in": x, "y_in": y}
    expected = interpret_graph(graph, inputs)
    outputs = emulate(graph, inputs, time_limit=TIME_LIMIT)
    own = (Op.EXPONENTIAL, Op.RECIPROCAL_SQUARE_ROOT, Op.ERROR_FUNCTION)  # of OpenCL
    for name, value in expected.items():
        if name in [operator.name.lower() for operator in own]:
            np.testing.assert_allclose(outputs[name], value, rtol=1e-6, err_msg=name)
        else:
            np.testing.assert_array_equal(outputs[name], value, err_msg=name)
            if value.dtype.kind == "f":
                numbers = ~np.isnan(value)
                signs = np.signbit(outputs[name])[numbers], np.signbit(value)[numbers]
                np.testing.assert_array_equal(*signs, err_msg=name)
