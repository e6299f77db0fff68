"""Designs with several outputs, and with outputs whose rows have different lengths."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, RDom
from t2s.backends.opencl_fpga import emulator_available
from t2s.graph.interpret import interpret_graph
from tests.sampling import sampled
from tests.spatial.programs import random_inputs

i, j = t2s.variables("i j")
r = RDom(0, 3, name="r")
x = ImageParam(Int(32), 1, name="x")


def total(name: str = "total") -> Func:
    """A reduction over rows that get shorter."""
    func = Func(name)
    func[i, j] = 1
    func[i, j] += x[i + r + 2] * j
    return func.bound(i, -2, 4).bound(j, i, 3 - i)


def pure() -> Func:
    func = Func("pure")
    func[i, j] = 10 * x[i + 2] + j
    return func.bound(i, -2, 4).bound(j, -1, i + 2)


def reader(source: Func) -> Func:
    """Another output reads the elements that exist."""
    func = Func("reader")
    func[i, j] = t2s.select(j >= i, source[i, j], -7) + 1
    return func.bound(i, -2, 4).bound(j, -2, 5)


def both() -> tuple[Func, Func]:
    source = total()
    return source, reader(source)


DESIGNS: dict[str, Sequence[Func]] = {
    "reduction": (total(),),
    "pure": (pure(),),
    "space": (total().unroll(i),),
    "isolated": (total().isolate_producer(x, Func("L")).isolate_consumer(Func("C")),),
    "read again, reader last": both(),
    "read again, reader first": both()[::-1],
    "read again, no output itself": (both()[1],),
    "independent": (pure(), total()),
}


@sampled("outputs", DESIGNS.values(), quick=3, ids=list(DESIGNS))
def test_all_engines_agree(outputs: Sequence[Func]) -> None:
    graph = t2s.lower(outputs)
    assert graph.name == outputs[0].name
    inputs = random_inputs(graph, 1)
    expected = t2s.interpret(outputs, inputs)
    python = t2s.simulate(graph, inputs, engine="python")
    native = t2s.simulate(graph, inputs, engine="native")
    assert python.cycles == native.cycles == t2s.cycles(outputs)
    for found in (interpret_graph(graph, inputs), python.outputs, native.outputs):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value)


@pytest.mark.slow
@pytest.mark.emulator
@pytest.mark.skipif(not emulator_available(), reason="the emulator is not installed")
def test_emulator() -> None:
    outputs = both()[::-1]
    inputs = random_inputs(t2s.lower(outputs), 1)
    found = t2s.emulate(outputs, inputs)
    for name, value in t2s.interpret(outputs, inputs).items():
        np.testing.assert_array_equal(found[name], value)


def test_emitted_files_have_the_name_of_the_first_output(tmp_path: Path) -> None:
    files = t2s.emit(both()[::-1], "opencl_fpga", tmp_path)
    assert {path.name for path in files} >= {"reader.cl"}
