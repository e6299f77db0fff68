"""Bursts that controllers know: what is read again, stored in part; plain equals compiled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.simulator.memory import dram as dram_tables
from t2s.simulator.memory.dram import Request
from t2s.simulator.memory.spec import Dram
from tests.simulator.memory.test_model import PLAIN, Asked, drams, run_both

READ, WRITE, UPDATE, STREAM = Request


def moved(dram: Dram, requests: list[Asked]) -> tuple[list[int], tuple[int, int, int]]:
    """The ends of requests, and what was read, written and joined in a memory of one channel."""
    ends, counts = run_both(dram, requests)
    (channel,) = dram_tables.channel_counts(counts)
    return ends, (channel.reads, channel.writes, channel.joined)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    drams(),
    st.integers(0, 3),
    st.integers(1, 3),
    st.sampled_from([0, 1, 5]),
    st.sampled_from([0, 0, 1, 3]),
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 9), st.sampled_from(Request)), min_size=1
    ),
)
def test_random_requests(
    dram: Dram,
    controllers: int,
    known: int,
    reads: int,
    writes: int,
    steps: list[tuple[int, int, Request]],
) -> None:
    dram = replace(
        dram,
        controllers=controllers,
        open_bursts=known if controllers else 0,
        read_queue=reads,
        write_queue=writes,
        write_batch=writes,
    )
    bursts = dram.capacity // dram.burst_bytes
    clocks = np.cumsum([step for step, _, _ in steps]).tolist()
    requests = [
        (clock, burst % bursts, what) for clock, (_, burst, what) in zip(clocks, steps, strict=True)
    ]
    _, counts = run_both(dram, requests)
    channels = dram_tables.channel_counts(counts)
    asked = sum(what is not WRITE for _, _, what in requests)
    assert sum(c.reads + c.forwarded + c.joined for c in channels) == asked
    stored = [burst for _, burst, what in requests if what in (WRITE, UPDATE)]
    assert len(set(stored)) <= sum(c.writes for c in channels) <= len(stored)


def test_what_is_read_is_known_until_others_take_its_place() -> None:
    # 15 + 15 + 4 clocks for the first read, of which the second one waits for the rest
    dram = replace(PLAIN, controllers=2, open_bursts=2)
    ends, found = moved(dram, [(0, 7, READ), (20, 7, READ), (500, 7, STREAM)])
    assert ends[:3] == [34, 34, 500]
    assert found == (1, 0, 2)
    # a queue is filled from what is known, others are late when its data have moved
    assert moved(dram, [(0, 7, STREAM), (33, 7, READ), (34, 7, READ)])[1] == (2, 0, 1)
    # 9 and 11 have the same controller, 8 has the other one
    for between, reads in (([8, 10], 3), ([9], 2), ([9, 11], 4)):
        requests = [(0, 7, READ), *((100 + at, at, READ) for at in between), (300, 7, STREAM)]
        assert moved(dram, requests)[1][0] == reads


@pytest.mark.parametrize("queue", [0, 2])
def test_what_is_written_is_no_longer_known(queue: int) -> None:
    dram = replace(PLAIN, controllers=1, open_bursts=4, write_queue=queue, write_batch=queue)
    requests = [(0, 7, READ), (100, 7, WRITE), (101, 9, WRITE), (500, 7, READ), (900, 7, STREAM)]
    ends, found = moved(dram, requests)
    assert found == (2, 2, 1)
    assert ends[3:5] == [500 + 15 + 4, 900]


def test_a_burst_that_is_stored_in_part_is_read_first_and_written_once() -> None:
    dram = replace(PLAIN, controllers=1, open_bursts=2)
    ends, found = moved(dram, [(at, 7, UPDATE) for at in range(0, 160, 10)])
    # all wait for the read, and the burst is written back at the end: CWL 11 and 4 clocks behind it
    assert ends == [34] * 4 + list(range(40, 160, 10)) + [150 + 11 + 4]
    assert found == (1, 1, 15)
    # what is only read does not drive it out, two other changed ones do
    for what, written in ((READ, 1), (UPDATE, 4)):
        requests = [(0, 7, UPDATE), (100, 8, what), (200, 9, what), (300, 7, UPDATE)]
        assert moved(dram, requests)[1][1] == written


def test_without_controllers_each_part_is_read_and_written() -> None:
    ends, found = moved(PLAIN, [(0, 7, UPDATE), (100, 7, UPDATE)])
    assert found == (2, 2, 0)
    assert ends[0] > 15 + 15 + 4


def test_what_waits_to_be_written_is_newer_than_what_is_known() -> None:
    queued = {"read_queue": 4, "write_queue": 4, "write_batch": 4}
    dram = replace(PLAIN, controllers=1, open_bursts=4, **queued)
    ends, counts = run_both(dram, [(0, 0, READ), (1, 0, WRITE), (2, 0, READ)])
    (channel,) = dram_tables.channel_counts(counts)
    assert ends[:3] == [34, 1, 2]
    assert (channel.forwarded, channel.joined) == (1, 0)
