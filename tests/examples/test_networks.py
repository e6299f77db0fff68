"""The examples of neural networks: numpy = the plain engine = the native one = the emulator."""

from __future__ import annotations

import importlib.util
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import t2s
from t2s.backends.opencl_fpga.emulator import emulator_available

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@cache
def example(name: str) -> ModuleType:
    (file,) = EXAMPLES.glob(f"*/{name}.py")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_attention_on_both_engines() -> None:
    """Sizes at which the blocks, and the widths of Q and of the array, are not those of main."""
    module = example("attention")
    for sizes in (module.TINY, module.Sizes(queries=12, width=3, block=4)):
        inputs = module.matrices(sizes)
        graph = module.design(sizes).lower()
        native, plain = (t2s.simulate(graph, inputs, engine=e) for e in ("native", "python"))
        np.testing.assert_allclose(plain.outputs["O"], module.expected(inputs), atol=1e-5)
        np.testing.assert_array_equal(native.outputs["O"], plain.outputs["O"])
        assert native.cycles == plain.cycles


def test_only_the_scores_of_a_block_wait() -> None:
    """The other channels are as shallow as the operators between them allow."""
    module = example("attention")
    graph = module.design(module.SMALL).lower()
    block = module.SMALL.queries * module.SMALL.block
    deep = {channel.name: channel.capacity for channel in graph.channels if channel.capacity > 32}
    assert list(deep) == ["S_to_exponent"]
    assert block <= deep["S_to_exponent"] <= block + 32
    memory = {tensor.name for tensor in graph.tensors}
    assert memory == {"Q", "K", "V", "O"}


def test_a_quantized_layer_on_both_engines() -> None:
    """Every result of int8, those that are rounded down or clipped among them."""
    module = example("int8")
    for sizes in (module.TINY, module.Sizes(pes=3, lanes=2, tile=4, blocks=1, steps=2, depth=3)):
        graph, inputs = module.design(sizes).lower(), module.layer(sizes)
        inputs["shift"][0] -= 2
        expected = module.expected(inputs)
        assert {-128, 127} <= set(expected[:, 0].tolist())
        native, plain = (t2s.simulate(graph, inputs, engine=e) for e in ("native", "python"))
        np.testing.assert_array_equal(plain.outputs["Q"], expected)
        np.testing.assert_array_equal(native.outputs["Q"], expected)
        assert native.cycles == plain.cycles


def test_products_of_int8_take_half_a_dsp_block_and_sums_stay_on_the_chip() -> None:
    module = example("int8")
    graph = module.design(module.SMALL).lower()
    blocks = {node.name: node.dsp_blocks for node in t2s.resources(graph, device="arria10").nodes}
    assert blocks["C"] == module.SMALL.pes**2 * module.SMALL.lanes / 2
    assert {tensor.name for tensor in graph.tensors} == {"A", "B", "bias", "scale", "shift", "Q"}


def test_both_layers_of_a_graph_network_on_both_engines() -> None:
    """One layer in either order is among what ``main`` checks."""
    module = example("gcn")
    inputs = module.network(nodes=9, features=6, hidden=3, classes=2)
    A, X, W, V = (inputs[name] for name in "AXWV")
    kernel = module.kernel(module.NETWORK)
    native, plain = (kernel.simulate(inputs, engine=engine) for engine in ("native", "python"))
    np.testing.assert_allclose(plain.output, A @ (np.maximum(A @ (X @ W), 0) @ V), atol=1e-12)
    np.testing.assert_array_equal(native.output, plain.output)
    assert native.cycles == plain.cycles


@pytest.mark.slow
@pytest.mark.parametrize("name", ["attention", "int8", "gcn"])
def test_the_programs_check_themselves(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    example(name).main()
    assert "cycles" in capsys.readouterr().out


@pytest.mark.slow
def test_every_step_of_attention_pays() -> None:
    module = example("attention")
    cycles = [
        t2s.cycles(module.design(module.SMALL, step), device="arria10")
        for step in range(len(module.STEPS))
    ]
    assert all(2 * after < before for before, after in pairwise(cycles))


@pytest.mark.slow
@pytest.mark.emulator
@pytest.mark.skipif(not emulator_available(), reason="Intel's FPGA emulator is not installed")
def test_emulated_networks() -> None:
    module = example("attention")
    inputs = module.matrices(module.TINY)
    found = t2s.emulate(module.design(module.TINY), inputs, time_limit=120.0)
    np.testing.assert_allclose(found["O"], module.expected(inputs), atol=1e-5)
    module = example("int8")
    inputs = module.layer(module.TINY)
    found = t2s.emulate(module.design(module.TINY), inputs, time_limit=120.0)
    np.testing.assert_array_equal(found["Q"], module.expected(inputs))
