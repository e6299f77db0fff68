"""Profile B runs as its closed forms say."""

from __future__ import annotations

import numpy as np
import pytest

from t2s.backends.cgra_tia.machine.profile_b import PlacedDeadlockError, PlacedRun, run_placed
from tests.backends.cgra.closed_forms import chains, ring, virtual_buffer


@pytest.mark.parametrize(
    ("latency", "fma_latency", "cycles", "handed_on"),
    [
        (1, 0, 69, False),
        (2, 4, 90, False),
        (4, 4, 100, False),
        (1, 0, 75, True),
        (2, 4, 102, True),
        (4, 4, 124, True),
    ],
)
def test_chains_take_their_closed_form(
    latency: int, fma_latency: int, cycles: int, handed_on: bool
) -> None:
    generator = np.random.default_rng(1)
    a, b, d = (generator.integers(-9, 9, (64, 4, 4)).astype(np.float64) for _ in range(3))
    design = chains(4, 64, latency, fma_latency, handed_on)
    run = run_placed(design, {"a": a, "b": b, "d": d})
    assert run.cycles == cycles
    assert np.array_equal(run.outputs["c"], d + np.einsum("tki,tkj->tij", a, b))
    for row in (*run.cells.values(), *run.units.values()):
        assert row.busy + row.starved + row.blocked + row.waiting + row.idle == cycles
        assert row.busy == 64
        assert row.last == row.first + 63
    if not handed_on:
        assert run.utilization == pytest.approx(64 / cycles)
        assert run.fma_usage == 1.0


@pytest.mark.parametrize(
    ("tokens", "latency", "cycles"),
    [(4, 1, 42), (4, 4, 42), (4, 5, 51), (4, 7, 69), (8, 8, 82), (8, 9, 91), (8, 16, 154)],
)
def test_a_virtual_buffer_takes_its_closed_form(tokens: int, latency: int, cycles: int) -> None:
    x = np.arange(tokens) + 0.5
    run = run_placed(virtual_buffer(tokens, latency, tokens + 1), {"x": x})
    assert run.cycles == cycles
    assert np.array_equal(run.outputs["y"], np.tile(x, (10, 1)))


@pytest.mark.parametrize("tokens", [1, 4, 8])
def test_a_virtual_buffer_needs_room_for_one_more(tokens: int) -> None:
    x = np.arange(tokens) + 0.5
    run_placed(virtual_buffer(tokens, 1, tokens + 1), {"x": x})
    with pytest.raises(PlacedDeadlockError) as caught:
        run_placed(virtual_buffer(tokens, 1, tokens), {"x": x})
    said = str(caught.value)
    assert f"'buffer' is stuck after cycle {tokens + 2}" in said
    assert "2 units with steps left; tokens left in 'order'" in said
    assert (
        f"the cell 'feeder' waits for room in 'loop' ({tokens} of {tokens} tokens), which "
        f"'feeder' takes from, after {tokens} firings"
    ) in said
    assert "the unit 'store' waits for a token in 'out' (0 of 2 tokens)" in said
    assert "a channel may hold too few tokens" in said


def run_ring(results: int, steps: int, hop: int) -> PlacedRun:
    generator = np.random.default_rng(2)
    a, b = (generator.integers(-9, 9, (4, steps, results)).astype(np.float64) for _ in range(2))
    d = np.arange(results) / 2
    run = run_placed(ring(results, steps, hop), {"a": a, "b": b, "d": d})
    assert np.array_equal(run.outputs["c"], d + (a * b).sum(axis=(0, 1)))
    return run


@pytest.mark.parametrize(("results", "hop", "cycles"), [(16, 6, 24), (16, 4, 16), (16, 1, 16)])
def test_sums_in_a_ring_take_the_larger_of_tile_and_ring(
    results: int, hop: int, cycles: int
) -> None:
    few, more = run_ring(results, 5, hop), run_ring(results, 9, hop)
    assert more.cycles - few.cycles == 4 * cycles
    assert more.cells["p1"].busy - few.cells["p1"].busy == 4 * results


@pytest.mark.parametrize(("hop", "cycles"), [(1, 29), (6, 169)])
def test_a_single_sum_in_a_ring_waits_for_itself(hop: int, cycles: int) -> None:
    row = run_ring(1, 8, hop).cells["p0"]
    assert row.last - row.first + 1 == cycles
    assert row.busy == 8
    assert row.starved == cycles - 8
    assert dict(row.starved_by) == {"hop3": cycles - 8}
