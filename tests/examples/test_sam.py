"""The accelerators of [SAM, sec. 6.5]: the same values and cycles on both engines."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import t2s
from t2s.sparse import Op

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "sam"
ENGINES = ("python", "native")


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"sam_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def random_matrix(rows: int, columns: int, seed: int, density: float = 0.3) -> Any:
    generator = np.random.default_rng(seed)
    shape = rows, columns
    return generator.integers(1, 9, shape) * (generator.random(shape) < density) * 1.0


def test_gamma() -> None:
    module = example("gamma")
    given = {"B": random_matrix(7, 6, 1), "C": random_matrix(6, 8, 2)}
    kernel = module.gamma(threads=2)
    names = [node.name for node in kernel.graphs(given)[0].nodes]
    before, behind = names.index("intersect_k"), names.index("reduce_k")
    assert before < names.index("deal_k") < names.index("gather_k") < behind
    results = [kernel.simulate(given, engine=engine) for engine in ENGINES]
    for result in results:
        assert np.array_equal(result.output, given["B"] @ given["C"])
    assert results[0].cycles == results[1].cycles


@pytest.mark.parametrize("pes", [1, 2])
def test_gamma_with_several_pes(pes: int) -> None:
    module = example("gamma")
    given = {"B": random_matrix(5, 6, 3), "C": random_matrix(6, 4, 4)}
    result = module.gamma(threads=2, pes=pes).simulate(given, engine="python")
    assert np.array_equal(result.output, given["B"] @ given["C"])


def test_outerspace() -> None:
    module = example("outerspace")
    b, c = random_matrix(8, 6, 5), random_matrix(6, 7, 6)
    b[7] = b[:, 2] = c[3] = 0  # a row without products, and columns without partners
    found = [module.product(b, c, engine) for engine in ENGINES]
    for x, _ in found:
        assert np.array_equal(x, b @ c)
    assert found[0][1] == found[1][1]


def test_extensor_skips() -> None:
    module = example("extensor")
    b, c = module.runs(4, 60, 10, 1), module.runs(3, 60, 10, 2)
    b[2] = 0
    given = module.arrays("B", b) | module.arrays("C", c)
    graph = module.coordinator(4, 3)
    results = [t2s.simulate(graph, given, engine=engine) for engine in ENGINES]
    for result in results:
        assert np.array_equal(result.outputs["X"].reshape(4, 3), b @ c.T)
    assert results[0].cycles == results[1].cycles
    plain = t2s.simulate(module.coordinator(4, 3, skipping=False), given, engine="python")
    assert np.array_equal(plain.outputs["X"], results[0].outputs["X"])
    assert results[0].cycles < plain.cycles


@pytest.mark.slow
@pytest.mark.parametrize("operator", [Op.MULTIPLY, Op.ADD])
@pytest.mark.parametrize("lanes", [1, 2])
def test_capstan(operator: Op, lanes: int) -> None:
    module = example("capstan")
    b, c = random_matrix(1, 150, 7)[0], random_matrix(1, 150, 8)[0]
    given = module.arrays("b", b) | module.arrays("c", c)
    graph = module.scanner(150, operator, lanes)
    engines = ENGINES if lanes == 1 else ENGINES[:1]
    results = [t2s.simulate(graph, given, engine=engine) for engine in engines]
    for result in results:
        found = np.zeros(150)
        found[result.outputs["x_crd"]] = result.outputs["x_vals"]
        assert np.array_equal(found, b * c if operator is Op.MULTIPLY else b + c)
    assert len({result.cycles for result in results}) == 1


def test_a_scanner_feeds_a_systolic_array() -> None:
    module = example("mixed")
    a, b = random_matrix(5, 6, 9), random_matrix(6, 4, 10)
    a[1] = 0
    given = module.arrays(a) | {"B": b}
    results = [t2s.simulate(module.mixed(5, 6, 4), given, engine=engine) for engine in ENGINES]
    for result in results:
        assert np.array_equal(result.outputs["C"], a @ b)
        assert result.nodes["C"].firings == 5 * 6 * 4
    assert results[0].cycles == results[1].cycles
