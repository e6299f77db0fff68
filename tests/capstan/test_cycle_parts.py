"""What cycles of a run on Capstan are spent on: the parts, and changes that move them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.stardust.paper import PAPER
from t2s.core.errors import UserError
from t2s.driver.capstan_result import CapstanResult, CycleCause
from t2s.simulator.memory.spec import Banked
from tests.capstan.test_simulated_kernels import IDEAL, inputs_of


def _run(name: str, density: float = 0.3, **extents: int) -> CapstanResult:
    kernel = next(row for row in PAPER if row.name == name).kernel()
    return kernel.simulate(inputs_of(kernel, extents, density, 2))


@pytest.fixture(scope="module")
def product() -> CapstanResult:
    """All columns of rows of one length: vectors of neighboring words, from all partitions."""
    return _run("SpMV", 1.0, i=160, j=64)


def _adds_up(result: CapstanResult) -> None:
    parts = result.parts
    assert set(parts.cycles) == set(CycleCause)
    assert min(parts.cycles.values()) >= 0
    assert sum(parts.cycles.values()) == parts.total == result.cycles
    assert 0 in (parts.cycles[CycleCause.DATAPATH], parts.cycles[CycleCause.SCANNER])
    assert parts.cycles[parts.bound] == max(parts.cycles.values())


def test_an_ideal_network_takes_the_networks_part_away(product: CapstanResult) -> None:
    unhindered = product.retime(network=IDEAL)
    _adds_up(product)
    _adds_up(unhindered)
    network = product.parts.cycles[CycleCause.NETWORK]
    assert network == product.cycles - unhindered.cycles
    assert network > 0
    assert unhindered.parts.cycles[CycleCause.NETWORK] == 0
    assert "network and banks" in str(product.parts)
    assert "network and banks" not in str(unhindered.parts)
    assert "words through the network" in str(product)
    assert "words through the network" not in str(unhindered)


def test_a_worse_network_has_a_larger_part(product: CapstanResult) -> None:
    worse = product.retime(network=Banked(queue_depth=1, rounds=1, lane_moves=0, reply_cycles=40))
    _adds_up(worse)
    assert worse.cycles > product.cycles
    before, after = (one.parts.cycles[CycleCause.NETWORK] for one in (product, worse))
    assert after - before == worse.cycles - product.cycles
    assert worse.retime(network="chip").cycles == product.cycles
    assert worse.retime(times=replace(worse.times)).cycles == worse.cycles
    assert product.network_words == product.run.shared.words / product.cycles  # type: ignore[union-attr]


def test_memory_takes_the_drams_part_away(product: CapstanResult) -> None:
    ideal = product.retime(memory=IDEAL)
    _adds_up(ideal)
    kept = ideal.parts.cycles
    assert kept[CycleCause.DRAM] == kept[CycleCause.NETWORK] == 0
    both = product.parts.cycles[CycleCause.DRAM] + product.parts.cycles[CycleCause.NETWORK]
    assert both == product.cycles - ideal.cycles


def test_scanners_that_fire_most() -> None:
    kernel = next(row for row in PAPER if row.name == "InnerProd").kernel()
    far = np.zeros((2, 2, 8000), np.int32)
    far[..., ::500] = 1
    other = np.roll(far, 1, 2)
    result = kernel.simulate({"B": far, "C": other})
    _adds_up(result)
    parts = result.parts
    assert parts.cycles[CycleCause.SCANNER] > 0 == parts.cycles[CycleCause.DATAPATH]
    assert parts.busiest.startswith(("scan_", "build_"))
    assert f"scanner: {parts.busiest}" in str(parts)
    assert "datapath" not in str(parts)
    assert "network and banks" not in str(parts)


def test_networks_that_there_are_not(product: CapstanResult) -> None:
    with pytest.raises(UserError, match="unknown network") as found:
        product.retime(network="mesh")
    said = str(found.value)
    assert 'expected: "chip", "ideal", or a Banked' in said
    assert "given:    'mesh'" in said
