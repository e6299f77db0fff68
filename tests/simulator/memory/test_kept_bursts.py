"""Bursts that controllers keep: what is read again, what is written, plain equals compiled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.simulator.memory.spec import Dram
from t2s.simulator.times import dram_layout as dram_tables
from tests.simulator.memory.test_model import PLAIN, drams, run_both


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    drams(),
    st.integers(1, 6),
    st.sampled_from([0, 1, 5]),
    st.sampled_from([0, 0, 1, 3]),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9), st.integers(0, 5)), min_size=1),
)
def test_random_requests_of_streamed_tensors(
    dram: Dram, kept: int, reads: int, writes: int, steps: list[tuple[int, int, int]]
) -> None:
    dram = replace(
        dram, stream_bursts=kept, read_queue=reads, write_queue=writes, write_batch=writes
    )
    bursts = dram.capacity // dram.burst_bytes
    clocks = np.cumsum([step for step, _, _ in steps]).tolist()
    requests = [
        (clock, burst % bursts, kind == 0, kind > 2)
        for clock, (_, burst, kind) in zip(clocks, steps, strict=True)
    ]
    _, counts = run_both(dram, requests)
    moved = dram_tables.channel_counts(counts)
    asked = sum(not write for _, _, write, _ in requests)
    assert sum(c.reads + c.forwarded + c.joined + c.kept for c in moved) == asked


def test_what_has_been_read_of_a_streamed_tensor_is_kept() -> None:
    # 15 + 15 + 4 clocks for the first read, of which the second one waits for the rest
    dram = replace(PLAIN, stream_bursts=2)
    requests = [(0, 7, False, True), (20, 7, False, True), (500, 7, False, True)]
    ends, counts = run_both(dram, requests)
    (channel,) = dram_tables.channel_counts(counts)
    assert ends[:3] == [34, 34, 500]
    assert (channel.reads, channel.kept) == (1, 2)
    # reads of others keep nothing, and find nothing
    plain = [(clock, burst, False, False) for clock, burst, _, _ in requests]
    assert run_both(dram, plain)[0] == run_both(PLAIN, plain)[0]
    # two more bursts are in its place, in the order in which they were read
    more = [(0, 7, False, True), (100, 8, False, True), (200, 7, False, True)]
    more += [(300, 9, False, True), (400, 7, False, True), (500, 9, False, True)]
    (channel,) = dram_tables.channel_counts(run_both(dram, more)[1])
    assert (channel.reads, channel.kept) == (4, 2)


@pytest.mark.parametrize("queue", [0, 2])
def test_what_is_written_is_no_longer_kept(queue: int) -> None:
    dram = replace(PLAIN, stream_bursts=4, write_queue=queue, write_batch=queue)
    requests = [(0, 7, False, True), (100, 7, True, False), (101, 9, True, False)]
    requests += [(500, 7, False, True), (900, 7, False, True)]
    ends, counts = run_both(dram, requests)
    (channel,) = dram_tables.channel_counts(counts)
    assert (channel.reads, channel.writes, channel.kept) == (2, 2, 1)
    assert ends[3:5] == [500 + 15 + 4, 900]


def test_what_waits_to_be_written_is_newer_than_what_is_under_way() -> None:
    dram = replace(PLAIN, read_queue=4, write_queue=4, write_batch=4)
    ends, counts = run_both(dram, [(0, 0, False), (1, 0, True), (2, 0, False)])
    (channel,) = dram_tables.channel_counts(counts)
    assert ends[:3] == [34, 1, 2]
    assert (channel.forwarded, channel.joined) == (1, 0)
