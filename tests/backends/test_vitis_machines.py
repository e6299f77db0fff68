"""Index notation and other machines as C++ for Vitis HLS: stop tokens, tensors of any length and on
the chip, sorted memories and searches, and what machines report.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from benchmarks.random_machine_parts import choice, count_up, local, mode, register
from benchmarks.random_machines import random_machines
from benchmarks.referee import random_inputs
from benchmarks.referee_designs import examples
from benchmarks.vitis_hls import Verdict, judge
from t2s import sparse
from t2s.backends.vitis_hls import BACKEND, SimulationError, backend, emulate
from t2s.core.types import INT32
from t2s.graph.body import Store
from t2s.graph.graph import Channel, Graph, MemorySpace, StreamType, Tensor, TensorRole
from t2s.graph.interpret import interpret_graph
from t2s.graph.nodes import Head, Machine, Mode, Put, Role, Rule
from t2s.sparse import csr, dcsr, dense
from tests.backends.test_vitis_hls import FAKE_PYXRT, write
from tests.backends.test_vitis_rules import broken, emitted
from tests.graph.machines import copying

Array = Any
FORMATS = {
    "x": (csr, dense(1), csr, dense(1)),
    "B": (dcsr, dense(1), dcsr, dcsr),
}
MACHINES = ("SAM SpMM kij", "extensor")


@cache
def design(name: str) -> tuple[Graph, dict[str, Array], dict[str, Array]]:
    """One of the referee's designs, with its inputs and scalars."""
    case = examples()[name]()
    graph = case.graph
    inputs = case.inputs if case.inputs is not None else random_inputs(graph)
    scalars = {p.name: inputs.get(p.name, p.type.numpy.type(1)) for p in graph.parameters}
    arrays = {tensor.array for tensor in graph.tensors}
    return graph, {name: array for name, array in inputs.items() if name in arrays}, scalars


def equal(found: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        np.testing.assert_array_equal(found[name], value)


def check(name: str) -> None:
    graph, inputs, scalars = design(name)
    found = emulate(graph, inputs, scalars, exact_depths=True)
    equal(found, interpret_graph(graph, inputs, scalars))


@pytest.mark.parametrize("name", MACHINES)
def test_values(name: str) -> None:
    """Sorted memories, searches, and tensors of any length on the chip."""
    check(name)


def check_index_notation(second: str, dtype: type, density: float) -> None:
    i, j, k = (t2s.Var(name) for name in "ijk")
    A, x, B, C = (sparse.Tensor(n, f) for n, f in zip("AxBC", FORMATS[second], strict=True))
    if second == "x":
        C[i] = A[i, j] * x[j]
    else:
        C[i, j] = A[i, k] * B[k, j]
    random = np.random.default_rng(2)
    a, b = (random.random(shape) < density for shape in ((5, 4), (4, 3)))
    other = {"x": np.arange(4).astype(dtype), "B": (b * 3).astype(dtype)}[second]
    tensors = {"A": (a * 2).astype(dtype), second: other}
    found = t2s.emulate(C, tensors, backend="vitis_hls", exact_depths=True)["C"]
    expected = sparse.simulate(C, tensors).output
    np.testing.assert_array_equal(found, getattr(expected, "todense", lambda: expected)())


def test_index_notation() -> None:
    """Tokens of 16 bytes, whose copies are aligned."""
    check_index_notation("x", np.int64, 0.4)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.int64, np.float16, np.bool_, np.float64])
@pytest.mark.parametrize("second", ["x", "B"])
def test_more_index_notation(second: str, dtype: type) -> None:
    """Tensors without an entry, and values of all widths."""
    for density in (0.4, 0.0):
        check_index_notation(second, dtype, density)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(examples().keys() - set(MACHINES)))
def test_all_designs_of_the_referee(name: str) -> None:
    check(name)


def check_random_machines(seeds: Iterable[int]) -> None:
    """Values as the interpreter's, and deadlocks as the simulator's; none is refused."""
    for seed in seeds:
        verdict, why = judge(*random_machines(seed))
        assert verdict in (Verdict.EQUAL, Verdict.ROOMIER, Verdict.DEADLOCK), f"{seed}: {why}"


def test_random_machines() -> None:
    check_random_machines([1])


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(first, first + 8) for first in range(0, 40, 8)], ids=str)
def test_more_random_machines(seeds: range) -> None:
    check_random_machines(seeds)


def test_the_rules_of_the_dialect() -> None:
    it = emitted(design("SAM SpMM kij")[0])
    assert it is not None
    assert broken(it) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(examples()))
def test_the_rules_of_the_dialect_for_all(name: str) -> None:
    it = emitted(design(name)[0])
    assert it is not None
    assert broken(it) == {}


def test_no_warnings(tmp_path: Path) -> None:
    stem = write(design("SAM SpMM kij")[0], tmp_path).stem
    strict = ["-std=c++14", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
    command = ["g++", *strict, "-fsyntax-only", "-I.", "-It2s_sim", f"{stem}.cpp"]
    subprocess.run([*command, f"{stem}_tb.cpp"], cwd=tmp_path, check=True)
    # as the HLS compiler sees it, which has lengths for nothing but loops over all elements
    subprocess.run([*command, "-D__SYNTHESIS__", "-Wno-unused"], cwd=tmp_path, check=True)


def test_text() -> None:
    """Tokens are structs, capacities constants, and comments say what a firing takes."""
    files = BACKEND.emit(design("SAM SpMV")[0])
    text, header = files["spmv.cpp"], files["spmv.h"]
    assert "struct float_token_t { float value; int8_t tag; };" in header
    assert "const int B_vals_capacity = 16384;  // elements of B_vals on the chip" in header
    for line in (
        "    hls::stream<int32_token_t> &scan_2_crd_to_locate_crd,",
        "//   modes: idle, run; on the chip: B_i_pos, B_j_crd\n"
        "//   it decides on what it loads: a firing takes 2 or 3 cycles",
        "    float B_vals_chip[B_vals_capacity];",
        "                load_val_to_compute_in0.write(float_token(0.0f, -2));",
        "    T2S_PROCESS(load, B_vals, B_vals_length, locate_out0_to_load_ref, "
        "load_val_to_compute_in0, load_status);",
        "//   B_vals   float32 [any], input",
    ):
        assert f"\n{line}" in text
    slow = BACKEND.emit(design("SAM SpMV, memory")[0])["spmv.cpp"]
    assert "it decides on what it loads of B_i_pos: a firing takes the latency" in slow
    searching = "".join(BACKEND.emit(design("extensor")[0]).values())
    assert "it searches: a firing takes a cycle and more for each step of a search" in searching


# -------------------------------------------------------------------------- what goes wrong


def test_indices_outside_of_a_tensor() -> None:
    """A load behind the end is an error that names the function and the length."""
    graph, inputs, _ = design("SAM SpMV")
    positions = inputs["B_i_pos"].copy()
    positions[-1] += 1000
    with pytest.raises(SimulationError) as caught:
        emulate(graph, {**inputs, "B_i_pos": positions})
    assert str(caught.value).splitlines()[0] == (
        f"scan_2 uses element {len(inputs['B_j_crd'])}, and B_j_crd_length is "
        f"{len(inputs['B_j_crd'])}"
    )


def test_no_room_for_points(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, inputs, _ = design("SAM SpMM kij")
    monkeypatch.setattr(backend, "EMULATED_POINTS", 2)
    with pytest.raises(SimulationError, match=r"^reduce: points has no room for more points"):
        emulate(graph, inputs)


def test_more_elements_than_there_is_room_for() -> None:
    """The test bench runs once more where an output is longer than it thought."""
    x = np.arange(70_001, dtype=np.int32)[::-1].copy()
    found = emulate(copying(place=MemorySpace.CHIP), {"x": x})
    np.testing.assert_array_equal(found["y"], x[:-1])


def late(count: int) -> Graph:
    """A machine takes ``count`` values after a token that is sent behind all of them."""
    at = local("count")
    send = Put(channel="values", value=at)
    more = Rule(name="more", body=(count_up(),), puts=(send,), next="run")
    end = Rule(name="end", puts=(Put(channel="go", value=at),))
    kept = Store(tensor="y", indices=(at,), value=local("value"))
    take = Rule(name="take", body=(kept, count_up()), takes=("values",), next="rest")
    last = replace(take, name="last", next=None)
    rest = (choice(take, at < count - 1), choice(last))
    sender = Machine(
        name="sender",
        role=Role.LOAD,
        heads=(),
        registers=(register("count"),),
        modes=(mode("run", (), choice(more, at < count), choice(end)),),
    )
    taker = Machine(
        name="taker",
        role=Role.STORE,
        heads=(Head(channel="go", value="ready"), Head(channel="values", value="value")),
        registers=(register("count"),),
        modes=(
            Mode(
                name="wait",
                needs=("go",),
                choices=(choice(Rule(name="go", takes=("go",), next="rest")),),
            ),
            Mode(name="rest", needs=("values",), choices=rest),
        ),
    )
    unlimited = Channel(
        name="values",
        stream=StreamType(element=INT32),
        source="sender",
        sink="taker",
        capacity=1 << 30,
    )
    return Graph(
        name="late",
        nodes=(sender, taker),
        channels=(unlimited, replace(unlimited, name="go", capacity=2)),
        tensors=(Tensor(name="y", type=INT32, shape=(count,), role=TensorRole.OUTPUT),),
    )


def test_streams_of_any_depth() -> None:
    """They have a depth on the chip, which may not suffice, and none in an emulation."""
    graph = late(1500)
    np.testing.assert_array_equal(emulate(graph, {})["y"], np.arange(1500))
    with pytest.raises(SimulationError) as caught:
        emulate(graph, {}, exact_depths=True)
    assert str(caught.value).splitlines() == [
        "'late' deadlocks in C simulation",
        "  note:     waiting: sender writes values",
        "  note:     waiting: taker reads go",
        "  hint:     streams of any depth have 1,024 here, unless the design gives them a "
        "capacity, as sparse.compile(y).design(capacity=...) does",
    ]


# ----------------------------------------------------------------------------- the host

MACHINES_ON_A_BOARD = """
class ert_cmd_state:
    ERT_CMD_STATE_TIMEOUT, ERT_CMD_STATE_COMPLETED = "timeout", "completed"

class _Machines:
    def __init__(self): self.waits = ["timeout", "completed"]
    def wait(self, milliseconds): return self.waits.pop(0)

class kernel(kernel):
    def __call__(self, x, y, status, x_length, y_room):
        values = np.frombuffer(bytes(x.data), np.int32)[:x_length]
        found = values[: list(values).index(0)] if 0 in values else values
        y.data[: min(len(found), y_room) * 4] = found[:y_room].tobytes()
        words = (0, 0, len(found)) if 0 in values else (0, 1, 0)
        status.data[:] = np.array(words, np.int32).tobytes()
        return _Machines()
"""


def test_host_program_in_python(tmp_path: Path) -> None:
    """Lengths go to the kernel and come back, more room is given, and a status is an error."""
    stem = write(copying(place=MemorySpace.CHIP), tmp_path).stem
    (tmp_path / "pyxrt.py").write_text(FAKE_PYXRT + MACHINES_ON_A_BOARD)
    (tmp_path / "kernel.xclbin").write_text(stem)

    def host(x: Array) -> subprocess.CompletedProcess[str]:
        np.save(tmp_path / "x.npy", x)
        command = [sys.executable, f"{stem}_host.py", "x=x.npy", "y=y.npy"]
        command += ["--xclbin", "kernel.xclbin"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    for count in (0, 5, 16_000):
        done = host(np.arange(count, -1, -1, dtype=np.int32))
        assert done.returncode == 0, done.stderr
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.arange(count, 0, -1))
    text = (tmp_path / f"{stem}_host.py").read_text()
    (tmp_path / f"{stem}_host.py").write_text(text.replace("1 << 16", "3"))
    assert host(np.arange(5, -1, -1, dtype=np.int32)).returncode == 0
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.arange(5, 0, -1))
    for x, said in (
        (np.ones(3, np.int32), "sink: tokens that the protocol does not allow"),
        (np.zeros(20_000, np.int32), "x has 20000 elements, and the chip has room for 16384"),
        (np.zeros((2, 2), np.int32), "x must have one dimension, not shape (2, 2)"),
        (np.zeros(3), "x must have type int32, not float64"),
    ):
        failed = host(x)
        assert (failed.returncode, failed.stderr) == (1, f"{stem}_host.py: {said}\n")


FAKE_XRT = """
#pragma once
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>
#include "copying.h"

enum { XCL_BO_SYNC_BO_TO_DEVICE, XCL_BO_SYNC_BO_FROM_DEVICE };
enum ert_cmd_state { ERT_CMD_STATE_COMPLETED = 4, ERT_CMD_STATE_TIMEOUT = 8 };

namespace xrt {

struct uuid {};
struct device {
    explicit device(int) {}
    uuid load_xclbin(const std::string &) { return {}; }
};
struct bo {
    std::shared_ptr<std::vector<char>> data;
    bo(device &, std::size_t size, int) : data(new std::vector<char>(size)) {}
    void write(const void *from) { write(from, data->size(), 0); }
    void write(const void *from, std::size_t size, std::size_t at) {
        if (size)
            std::memcpy(data->data() + at, from, size);
    }
    void read(void *to) { read(to, data->size(), 0); }
    void read(void *to, std::size_t size, std::size_t at) {
        if (size)
            std::memcpy(to, data->data() + at, size);
    }
    void sync(int) {}
    template <typename T>
    operator T *() { return reinterpret_cast<T *>(data->data()); }
};
struct run {
    ert_cmd_state state;
    ert_cmd_state wait(std::chrono::milliseconds) { return state; }
};
struct kernel {
    kernel(device &, uuid, const char *) {}
    int group_id(int) { return 0; }
    run operator()(bo x, bo y, bo status, int x_length, int y_room) {
        if (std::getenv("STOPS")) {  // the other machine waits for ever
            static_cast<int32_t *>(status)[1] = 1;
            return {ERT_CMD_STATE_TIMEOUT};
        }
        copying(x, y, status, x_length, y_room);
        return {ERT_CMD_STATE_COMPLETED};
    }
};

}  // namespace xrt
"""


def test_host_program_in_cpp(tmp_path: Path) -> None:
    """The same on an XRT that calls the design: lengths, more room, and a machine that stops."""
    stem = write(copying(place=MemorySpace.CHIP), tmp_path).stem
    (tmp_path / "xrt").mkdir()
    for name in ("bo", "device", "kernel"):
        (tmp_path / "xrt" / f"xrt_{name}.h").write_text(FAKE_XRT)
    host = tmp_path / f"{stem}_host.cpp"
    host.write_text(host.read_text().replace("1 << 16", "3"))
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-I."]
    command += ["-It2s_sim", f"{stem}_host.cpp", f"{stem}.cpp", "-o", "host"]
    subprocess.run(command, cwd=tmp_path, check=True)

    def run(x: Array, **environment: str) -> subprocess.CompletedProcess[str]:
        np.asarray(x, np.int32).tofile(tmp_path / "x.bin")
        command = [str(tmp_path / "host"), "copying.xclbin", str(tmp_path)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    for x in ([0], [7, 0], np.arange(5000, -1, -1)):
        done = run(x)
        assert done.returncode == 0, done.stderr
        np.testing.assert_array_equal(np.fromfile(tmp_path / "y.bin", np.int32), x[:-1])
    stopped = run([0], STOPS="yes")
    assert (stopped.returncode, stopped.stderr) == (
        1,
        "copying_host: sink: tokens that the protocol does not allow\n",
    )
    full = run(np.zeros(20_000))
    assert full.returncode == 1
    assert full.stderr.endswith("20000 elements, and the chip has room for 16384\n")


def test_the_test_bench_needs_a_folder(tmp_path: Path) -> None:
    """Lengths are those of the files; other inputs are made up."""
    write(copying(), tmp_path)
    subprocess.run(["make", "-s", "copying_csim"], cwd=tmp_path, check=True)
    failed = subprocess.run(
        [tmp_path / "copying_csim"], capture_output=True, text=True, check=False
    )
    assert failed.returncode == 1
    assert "FOLDER, with NAME.bin of each input" in failed.stderr
    np.array([3, 2, 0], np.int32).tofile(tmp_path / "x.bin")
    done = subprocess.run(["make", "-s", "csim", "DATA=."], cwd=tmp_path, check=True)
    assert done.returncode == 0
    np.testing.assert_array_equal(np.fromfile(tmp_path / "y.bin", np.int32), [3, 2])


def test_copying(golden: Any) -> None:
    golden("vitis_hls/copying.cpp", BACKEND.emit(copying(place=MemorySpace.CHIP))["copying.cpp"])
