"""The commands of ``benchmarks/sam`` on inputs that are small enough to know the answer."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from t2s.sparse import dcsr, from_dense

FOLDER = Path(__file__).parent.parent.parent / "benchmarks" / "sam"


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module(request.param)


def needed(ablation: ModuleType, expression: str, *formats: str) -> set[str]:
    """The rows of the table in which an algorithm is lost."""
    algorithms = importlib.import_module("algorithms")
    counts = ablation.Counts()
    counts.add(algorithms.Algorithm(count=3, expression=expression, formats=formats))
    assert counts.compiled == 1
    assert counts.all == dict.fromkeys(counts.unique, 3)
    return set(counts.unique)


@pytest.mark.parametrize("command", ["ablation"], indirect=True)
def test_blocks_that_algorithms_need(command: ModuleType) -> None:
    always = {"all level scanners", "all level writers"}
    product = {*always, "repeater", "multiplier", "reducer"}
    sparse_matrix = {*product, "compressed level scanner", "intersecter and locator"}
    found = needed(command, "y(i)=A(i,j)*x(j)", "y:d", "A:ds", "x:d")
    assert found == sparse_matrix  # x is located into
    found = needed(command, "y(i)=A(i,j)*x(j)", "y:d", "A:ds", "x:s")
    assert found == sparse_matrix | {"intersecter, with a locator"}
    assert needed(command, "y(i)=A(i,j)*x(j)", "y:d", "A:dd", "x:d") == product
    assert needed(command, "y=x(i)*x(i)", "x:d") == {"all level scanners", "multiplier", "reducer"}
    found = needed(command, "y(i)=b(i)+c(i)", "y:s", "b:s", "c:d")
    sums = {"compressed level scanner", "compressed level writer", "unioner", "adder"}
    assert found == always | sums
    found = needed(command, "X(i,j)=B(i,j)*C(i,j)", "X:ss", "B:ss", "C:ss")
    assert "coordinate dropper" in found


@pytest.mark.parametrize("command", ["ablation"], indirect=True)
def test_ill_formed_algorithms_are_counted(command: ModuleType) -> None:
    algorithms = importlib.import_module("algorithms")
    counts = command.Counts()
    counts.add(algorithms.Algorithm(count=1, expression="y(i,i)=A(i,j)", formats=("A:ds",)))
    assert (counts.compiled, counts.refused) == (0, 1)


@pytest.mark.parametrize("command", ["extensor"], indirect=True)
def test_tiles_and_memory(command: ModuleType) -> None:
    generator = np.random.default_rng(1)
    dense = [generator.integers(1, 9, (10, 10)) * (generator.random((10, 10)) < 0.2) for _ in "BC"]
    dense[0][:4, :4] = 0  # no tile
    left, right = (from_dense(one.astype(float), dcsr) for one in dense)
    sizes = command.tile_bytes(left, 4)
    part = dense[0][:4, 4:8]
    elements = 3 + 2 * np.count_nonzero(part.any(axis=1)) + 2 * np.count_nonzero(part)
    assert sizes.shape == (3, 3)
    assert sizes[0, 0] == 0
    assert sizes[0, 1] == 2 * elements
    found = command.run(left, right, command.tiled_product(4), 4)
    there = [command.tile_bytes(one, 4) > 0 for one in (left, right)]
    pairs = sum(there[0][i, k] and there[1][k, j] for i, k, j in np.ndindex(3, 3, 3))
    assert found.pairs == pairs
    loads = sum(2 for i, k in np.ndindex(3, 3) if there[0][i, k] and there[1][k].any())
    assert found.to_pe == loads + 2 * pairs  # all tiles are smaller than what a cycle moves
    assert found.in_turn - found.overlapped == found.to_pe
    assert found.compute < found.overlapped < found.compute + 300
