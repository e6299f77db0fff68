"""Profile B runs as its closed forms say."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from t2s.backends.cgra_tia.fabric import FABRICS
from t2s.backends.cgra_tia.machine.extended import run_placed
from t2s.backends.cgra_tia.netlist import PlacedDesign, unplaced
from tests.backends.cgra.built_netlists import NetlistBuilder

FMAC = (
    "when %p == XXXXXXXX with %i0.0, %i1.0, %i2.0:\n  fmac %o0.0, %i2, %i0, %i1; deq %i0, %i1, %i2;"
)


def chains(size: int, steps: int, latency: int, fma_latency: int) -> PlacedDesign:
    """size x size chains of size FMAs; operands by multicast, k in space only."""
    builder = NetlistBuilder("chains")
    for name in "ab":
        builder.tensor(name, steps, size, size)
    builder.tensor("d", steps, size, size)
    builder.tensor("c", steps, size, size, output=True)
    whole = range(size)
    for k in whole:
        for i in whole:
            for name in "ab":
                builder.load(f"{name}{k}{i}", name, [steps], [size * size], k * size + i)
    for i in whole:
        for j in whole:
            builder.load(f"d{i}{j}", "d", [steps], [size * size], i * size + j)
            builder.store(f"c{i}{j}", "c", [steps], [size * size], i * size + j)
            for k in whole:
                builder.cell(f"p{k}{i}{j}", FMAC)
            ends = [f"d{i}{j}", *(f"p{k}{i}{j}" for k in whole), f"c{i}{j}"]
            for k, (source, sink) in enumerate(pairwise(ends)):
                end = (sink, 2) if k < size else sink
                builder.net(f"sum{k}{i}{j}", source, end, tokens=steps)
    for k in whole:
        for i in whole:
            builder.net(f"na{k}{i}", f"a{k}{i}", *((f"p{k}{i}{j}", 0) for j in whole), tokens=steps)
            builder.net(f"nb{k}{i}", f"b{k}{i}", *((f"p{k}{j}{i}", 1) for j in whole), tokens=steps)
    fabric = replace(FABRICS["cgra16"], fma_latency=fma_latency)
    return unplaced(builder.netlist(), fabric, latency)


@pytest.mark.parametrize(
    ("latency", "fma_latency", "cycles"), [(1, 0, 69), (2, 4, 90), (4, 4, 100)]
)
def test_chains_take_their_closed_form(latency: int, fma_latency: int, cycles: int) -> None:
    generator = np.random.default_rng(1)
    a, b, d = (generator.integers(-9, 9, (64, 4, 4)).astype(np.float64) for _ in range(3))
    run = run_placed(chains(4, 64, latency, fma_latency), {"a": a, "b": b, "d": d})
    assert run.cycles == cycles
    assert np.array_equal(run.outputs["c"], d + np.einsum("tki,tkj->tij", a, b))
    assert run.utilization == pytest.approx(64 / cycles)
    for row in (*run.cells.values(), *run.units.values()):
        assert row.busy + row.starved + row.blocked + row.waiting + row.idle == cycles
        assert row.busy == 64
