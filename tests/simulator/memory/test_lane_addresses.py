"""Addresses of vectors are read as they were put, whatever is kept of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2s.graph.semantics import HOLE
from t2s.simulator.memory.machine_accesses import lane_addresses, lane_rows, narrowed


@given(
    lanes=st.integers(1, 33),
    counts=st.lists(st.integers(0, 1500), max_size=4),
    share=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    wide=st.booleans(),
    seed=st.integers(0, 99),
)
def test_rows_are_those_that_were_put(
    lanes: int, counts: list[int], share: float, wide: bool, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    parts = [generator.integers(0, 1 << (40 if wide else 20), (n, lanes)) for n in counts]
    for part in parts:
        part[generator.random(part.shape) >= share] = HOLE
    kept = lane_addresses(lanes, [lane_rows(part) for part in parts])
    whole = np.concatenate([np.zeros((0, lanes), np.int64), *parts])
    assert len(kept) == len(whole)
    assert np.array_equal(kept[:], whole)
    begin = int(generator.integers(0, len(whole) + 1))
    end = int(generator.integers(begin, len(whole) + 1))
    assert np.array_equal(kept[begin:end], whole[begin:end])
    first = kept.first(end)
    assert np.array_equal(first.addresses, whole[:end][whole[:end] != HOLE])
    assert np.array_equal(first.counts(), np.count_nonzero(whole[:end] != HOLE, axis=1))


def test_vectors_are_read_in_order() -> None:
    with pytest.raises(ValueError, match="one after the other"):
        lane_addresses(2, [lane_rows(np.array([[1, 2]]))])[::2]


@pytest.mark.parametrize(("most", "bits"), [((1 << 31) - 1, 32), (1 << 31, 64)])
def test_numbers_are_as_short_as_they_can_be(most: int, bits: int) -> None:
    found = narrowed(np.array([0, most]))
    assert found.dtype.itemsize * 8 == bits
    assert found.tolist() == [0, most]
