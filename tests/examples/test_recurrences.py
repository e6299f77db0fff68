"""The recurrences of ``examples/`` four times: numpy = Python engine = native engine = emulator."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Func
from t2s.backends.opencl_fpga import BACKEND
from t2s.backends.opencl_fpga.emulator import emulator_available
from tests.conftest import Golden
from tests.sampling import sampled

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
FILES = {
    "mappings": "convolution_1d",
    "block_matching": "block_matching",
    "pairhmm": "pairhmm",
    "qr": "qr",
    "lu": "lu",
    "trsm": "trsm",
    "fft": "fft",
}

Arrays = dict[str, np.ndarray[Any, Any]]


@cache
def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / FILES[name] / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True, kw_only=True)
class Case:
    """A tiny design, its inputs, and a comparison of its outputs with numpy."""

    outputs: Sequence[Func]
    inputs: Arrays
    check: Callable[[Arrays], None]


def convolution(mapping: str, results: int, taps: int) -> Case:
    generator = np.random.default_rng(1)
    x, w = (generator.integers(-9, 9, n, np.int32) for n in (results + taps - 1, taps))
    wanted = np.convolve(x, w[::-1], "valid")
    return Case(
        outputs=[example("mappings").design(mapping, results, taps)],
        inputs={"x": x, "w": w},
        check=lambda out: np.testing.assert_array_equal(out["Z"], wanted),
    )


def block_matching(blocks: int, block: int, reach: int) -> Case:
    module = example("block_matching")
    inputs = module.pictures(blocks, block, reach)
    wanted = module.expected(inputs["now"], inputs["before"], block, reach)

    def check(out: Arrays) -> None:
        found = np.stack([out["sad"], out["down"], out["across"]])
        np.testing.assert_array_equal(found, wanted)

    return Case(outputs=module.design(blocks, block, reach), inputs=inputs, check=check)


def pairhmm(**sizes: tuple[int, int]) -> Case:
    module = example("pairhmm")
    chosen = module.Sizes(**sizes)
    inputs = module.reads(chosen)
    wanted = module.expected(inputs)
    return Case(
        outputs=[module.design(chosen)],
        inputs=inputs,
        check=lambda out: np.testing.assert_allclose(out["out"], wanted, rtol=1e-5),
    )


def qr(rows: int, columns: int, batch: int) -> Case:
    a = np.random.default_rng(1).random((batch, columns, rows), np.float32)

    def check(out: Arrays) -> None:
        q = out["Q"].transpose(0, 2, 1)
        np.testing.assert_allclose(q @ out["R"], a.transpose(0, 2, 1), atol=1e-5)
        identity = np.broadcast_to(np.eye(columns), (batch, columns, columns))
        np.testing.assert_allclose(q.transpose(0, 2, 1) @ q, identity, atol=1e-4)
        np.testing.assert_array_equal(out["R"], np.triu(out["R"]))

    module = example("qr")
    sizes = module.Sizes(rows=rows, columns=columns, batch=batch)
    return Case(outputs=module.design(sizes), inputs={"A": a}, check=check)


def lu(size: int, batches: int, lanes: int) -> Case:
    module = example("lu")
    inputs = module.matrices(size, batches, lanes)

    def check(out: Arrays) -> None:
        np.testing.assert_allclose(module.product(out["O"]), inputs["A"], rtol=1e-5)

    return Case(outputs=[module.design(size, batches, lanes)], inputs=inputs, check=check)


def trsm(size: int, columns: int) -> Case:
    module = example("trsm")
    inputs = module.matrices(size, columns)

    def check(out: Arrays) -> None:
        np.testing.assert_allclose(inputs["L"] @ out["U"], inputs["A"], rtol=1e-5, atol=1e-6)

    return Case(outputs=[module.design(size, columns)], inputs=inputs, check=check)


def fft(stages: int, batch: int, step: int) -> Case:
    module = example("fft")
    sizes = module.Sizes(stages=stages, batch=batch)
    inputs = module.signals(sizes)
    wanted = np.fft.fft(inputs["A_re"] + 1j * inputs["A_im"])

    def check(out: Arrays) -> None:
        found = module.spectrum(out["O_re"], out["O_im"])
        np.testing.assert_allclose(found, wanted, atol=1e-5)

    return Case(outputs=module.design(sizes, step), inputs=inputs, check=check)


CASES: dict[str, Callable[[], Case]] = {
    **{
        f"convolution-{name}": lambda name=name: convolution(name, 6, 3)
        for name in ("bfs", "bsm", "fbs", "ffs", "fsm", "sbm")
    },
    "block_matching": lambda: block_matching(1, 2, 1),
    "pairhmm": lambda: pairhmm(array=(2, 2), tiles=(1, 2), batch=(2, 1)),
    "qr": lambda: qr(4, 3, 2),
    "lu": lambda: lu(3, 2, 2),
    "trsm": lambda: trsm(3, 4),
    "fft": lambda: fft(2, 2, 3),
}

LARGER: dict[str, Callable[[], Case]] = {
    "convolution-ffs": lambda: convolution("ffs", 16, 5),
    "block_matching": lambda: block_matching(1, 3, 2),
    "pairhmm": lambda: pairhmm(array=(2, 3), tiles=(2, 2), batch=(2, 1), batches=(1, 2)),
    "qr": lambda: qr(5, 4, 3),
    "lu": lambda: lu(4, 3, 4),
    "trsm": lambda: trsm(5, 7),
    **{f"fft-{step}": lambda step=step: fft(3, 3, step) for step in range(4)},
}


@pytest.mark.slow
@pytest.mark.parametrize("case", [*CASES.values(), *LARGER.values()], ids=[*CASES, *LARGER])
def test_numpy_and_both_engines(case: Callable[[], Case]) -> None:
    built = case()
    graph = t2s.lower(built.outputs)
    oracle = t2s.interpret(built.outputs, built.inputs)
    built.check(oracle)
    for device in ("ideal", "arria10"):
        python = t2s.simulate(graph, built.inputs, device=device, engine="python")
        native = t2s.simulate(graph, built.inputs, device=device)
        built.check(python.outputs)
        for name, values in python.outputs.items():
            np.testing.assert_array_equal(native.outputs[name], values)
        assert native.cycles == python.cycles


@pytest.mark.slow
@pytest.mark.emulator
@pytest.mark.skipif(not emulator_available(), reason="Intel's FPGA emulator is not installed")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_emulator(case: Callable[[], Case]) -> None:
    built = case()
    built.check(t2s.emulate(built.outputs, built.inputs, time_limit=120.0))


@pytest.mark.parametrize("name", ["lu", "pairhmm"])
def test_emitted_text(name: str, golden: Golden) -> None:
    for path, text in BACKEND.emit(t2s.lower(CASES[name]().outputs)).items():
        if path.endswith(".cl"):
            golden(f"opencl_fpga/{name}.cl", text)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_the_example_runs_as_it_stands(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """``main`` compares with numpy itself."""
    example(name).main()
    assert "utili" in capsys.readouterr().out


@sampled(
    ("mapping", "pes", "cycles"),
    [
        ("bfs", 16, 20),
        ("bsm", 5, 20),
        ("fbs", 16, 5),
        ("ffs", 16, 35),
        ("fsm", 5, 20),
        ("sbm", 20, 5),
    ],
    quick=3,
)
def test_mappings_take_as_many_cycles_as_in_the_textbook(
    mapping: str, pes: int, cycles: int
) -> None:
    """16 results of 5 taps are 80 steps; of PEs x cycles they are the utilization."""
    case = convolution(mapping, 16, 5)
    graph = t2s.lower(case.outputs)
    result = t2s.simulate(graph, case.inputs)
    assert (graph.node("Z").pe_count, result.compute_cycles) == (pes, cycles)
    assert result.nodes["Z"].firings == 80


@pytest.mark.slow
def test_reads_of_different_lengths_ignore_their_padding() -> None:
    built = pairhmm(array=(2, 2), tiles=(2, 2), batch=(2, 2))
    graph = t2s.lower(built.outputs)
    before = t2s.simulate(graph, built.inputs).outputs["out"]
    assert len(set(built.inputs["length"])) > 1
    padding = np.arange(4) >= built.inputs["length"][:, np.newaxis]
    assert padding.any()
    changed = {
        name: np.where(padding, np.float32(0.5), values) if values.dtype == np.float32 else values
        for name, values in built.inputs.items()
    }
    after = t2s.simulate(graph, changed).outputs["out"]
    np.testing.assert_array_equal(after, before)


def test_the_array_of_pairhmm_is_busy_on_the_ideal_device() -> None:
    """Every PE fires in each cycle but those in which the array of 8 x 24 PEs fills."""
    module = example("pairhmm")
    sizes = module.Sizes(array=(8, 24), tiles=(2, 2), batch=(14, 14))
    result = t2s.cycles(module.design(sizes))
    assert sizes.firings == 784
    assert result == 784 + 7 + 23 + 4
    assert module.PUBLISHED.firings == 12_845_056


def test_the_pipeline_of_the_fft_takes_an_element_in_each_cycle() -> None:
    """And a stage starts half a transform and a cycle after the one before."""
    for stages, batch in ((2, 1), (3, 4)):
        points = 1 << stages
        case = fft(stages, batch, 3)
        result = t2s.simulate(t2s.lower(case.outputs), case.inputs)
        case.check(result.outputs)
        assert result.compute_cycles == points * batch + stages * (points // 2 + 1)


@pytest.mark.slow
def test_short_rows_of_qr_wait_for_the_recurrence() -> None:
    """Rows of 8, 8, 7, ... 1 firings.  On arria10 each of them takes as long as the recurrence.

    That is 4 + 4 cycles for the new column, 4 + 3 * 4 for the dot product of 8 lanes, 16 for its
    quotient (the reciprocal square root takes 14), and one for the channel.
    """
    module = example("qr")
    designs = [module.design(module.Sizes(rows=8, columns=8, batch=n)) for n in (1, 2, 3)]
    ideal, board = (
        [t2s.cycles(design, device=device) for design in designs] for device in ("ideal", "arria10")
    )
    assert np.diff(ideal).tolist() == [44, 44]
    assert np.diff(board).tolist() == [8 * 41 + 8] * 2
