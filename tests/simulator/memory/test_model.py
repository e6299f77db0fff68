"""The DRAM model: closed forms, an independent check of its commands, plain equals compiled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.llvm.kernels import CompiledKernel
from t2s.llvm.operands import Argument
from t2s.simulator.memory import dram as dram_tables
from t2s.simulator.memory.dram import Request
from t2s.simulator.memory.spec import MEMORIES, Coordinate, Dram, Timing, mapping_of
from t2s.simulator.times.table_layout import SOURCES
from tests.sampling import sampled
from tests.simulator.memory.checker import check
from tests.simulator.memory.plain_dram import Command, DramModel

DDR4 = MEMORIES["ddr4-2133"]
PLAIN = replace(DDR4, rotate_banks=False, timing=replace(DDR4.timing, tREFI=0))
"""DDR4-2133 without refresh: bursts 0, 4, 8 ... of a row are in group 0."""

ROW, BANK = 4 * 128 * 4, 4 * 128
"""Bursts from a row to the next of the same bank, and from a bank to the next of its group."""

_ARRAY = Argument.INT64_ARRAY
ACCESS_ALL, FLUSH = (
    CompiledKernel(
        module="t2s.simulator.memory.dram", name=name, sources=SOURCES, arguments=arguments
    )
    for name, arguments in (
        ("access_all", (_ARRAY,) * 7),
        ("flush", (*(_ARRAY,) * 3, Argument.INT64)),
    )
)

Asked = tuple[int, int, int]
"""The clock, the burst, and what is asked of it: a ``Request``, or whether it is a write."""


def run(dram: Dram, requests: Iterable[Asked]) -> list[int]:
    """The ends of requests by the plain model; its commands are checked."""
    trace: list[Command] = []
    model = DramModel(dram, trace)
    ends = [model.access(clock, burst, Request(what)) for clock, burst, what in requests]
    check(dram, trace)
    return ends


def compiled_run(dram: Dram, requests: list[Asked]) -> tuple[list[int], np.ndarray]:
    """The ends by the compiled model, that of all that was written, and its counters."""
    clocks, bursts, kinds = np.ascontiguousarray(np.array(requests, np.int64).T)
    counts, ends = dram_tables.new_counts(dram), np.zeros(len(requests), np.int64)
    state, parameters = dram_tables.new_state(dram), dram_tables.new_parameters(dram)
    ACCESS_ALL(parameters, state, counts, clocks, bursts, kinds, ends)
    last = FLUSH(parameters, state, counts, clocks[-1])
    return [*ends.tolist(), last], counts


def run_both(dram: Dram, requests: list[Asked]) -> tuple[list[int], np.ndarray]:
    """As ``run`` and as ``compiled_run``, which have to agree in everything."""
    trace: list[Command] = []
    plain = DramModel(dram, trace)
    expected = [plain.access(clock, burst, Request(what)) for clock, burst, what in requests]
    expected.append(plain.flush(requests[-1][0]))
    check(dram, trace)
    ends, counts = compiled_run(dram, requests)
    assert ends == expected
    assert dram_tables.channel_counts(counts) == tuple(channel.counts for channel in plain.channels)
    return ends, counts


@pytest.mark.parametrize("name", MEMORIES)
def test_a_single_read_takes_trcd_cl_and_its_burst(name: str) -> None:
    dram = MEMORIES[name]
    t = dram.timing
    assert run(dram, [(1000, 77, False)]) == [1000 + t.tRCD + t.CL + dram.burst_clocks]
    dram = replace(dram, write_queue=0, write_batch=0)
    assert run(dram, [(1000, 77, True)]) == [1000 + t.tRCD + t.CWL + dram.burst_clocks]


def test_a_row_hit_takes_cl_and_its_burst() -> None:
    assert run(PLAIN, [(0, 0, False), (500, 4, False)]) == [15 + 15 + 4, 500 + 15 + 4]


def test_a_row_conflict_precharges_first() -> None:
    assert run(PLAIN, [(0, 0, False), (500, ROW, False)])[1] == 500 + 15 + 15 + 15 + 4


def test_reads_of_other_rows_of_a_bank_are_trc_apart() -> None:
    # tRC 51 is more than tRCD + tRTP + tRP = 38.
    ends = run(PLAIN, [(0, ROW * n, False) for n in range(20)])
    assert ends == [34 + 51 * n for n in range(20)]


def test_writes_of_other_rows_of_a_bank_wait_for_write_recovery() -> None:
    # tRCD + CWL + burst + tWR + tRP = 15 + 11 + 4 + 16 + 15 = 61, more than tRC.
    ends = run(PLAIN, [(0, ROW * n, True) for n in range(20)])
    assert ends == [30 + 61 * n for n in range(20)]


def test_at_most_four_activations_in_tfaw() -> None:
    # 16 banks, one burst each, groups in turn: activations at 0 4 8 12, then 23 later, and so on.
    places = [(0, group + BANK * bank, False) for bank in range(4) for group in range(4)]
    ends = run(PLAIN, places)
    assert ends == [34 + 23 * (n // 4) + 4 * (n % 4) for n in range(16)]


def test_bursts_of_one_group_are_tccd_l_apart() -> None:
    ends = run(PLAIN, [(0, 4 * n, False) for n in range(50)])
    assert ends == [34 + 6 * n for n in range(50)]


def test_turning_the_bus_around() -> None:
    # From a read to a write CL + burst + 2 - CWL = 10; back CWL + burst + tWTR_L = 23.
    requests = [(0, 4 * n, n % 2 == 1) for n in range(40)]
    ends = run(PLAIN, requests)
    assert np.diff(ends[0::2]).tolist() == [33] * 19
    assert ends[1] - ends[0] == 10 + 11 - 15


@sampled("name", MEMORIES, quick=2)
def test_a_stream_without_refresh_keeps_every_bus_busy(name: str) -> None:
    dram = MEMORIES[name]
    dram = replace(dram, timing=replace(dram.timing, tREFI=0))
    t, count = dram.timing, 20_000 * dram.channels
    ends, _ = compiled_run(dram, [(0, n, False) for n in range(count)])
    # The first four activations are tRRD_S apart, for HBM2E longer than a burst; from then on rows
    # are opened in time.  Where all banks go on to the next row, the bank group may be the same.
    start = 3 * max(0, t.tRRD_S - dram.burst_clocks)
    rows = count // (dram.channels * dram.groups * dram.banks * dram.columns)
    least = t.tRCD + t.CL + dram.burst_clocks * count // dram.channels
    assert least <= max(ends) <= least + start + rows * (t.tCCD_L - dram.burst_clocks)


@pytest.mark.parametrize("name", ["ddr4-2133", "ddr4-2133x2"])
def test_a_stream_loses_what_a_refresh_takes(name: str) -> None:
    # Of every tREFI = 8320 clocks, the bus idles tRP + tRFC + tRCD = 404 and up to tRTP = 8 more.
    dram = MEMORIES[name]
    count = 200_000 * dram.channels
    ends, _ = compiled_run(dram, [(0, n, False) for n in range(count)])
    used = 4 * count / dram.channels / max(ends)
    assert 1 - 412 / 8320 - 0.001 < used < 1 - 404 / 8320 + 0.001


def test_an_idle_memory_is_refreshed_on_time() -> None:
    # The last refresh is due at 8320000 and takes until 8320374, then the row is opened.
    ends, counts = run_both(DDR4, [(0, 0, False), (8320 * 1000 + 10, 0, False)])
    assert ends[1] == 8320 * 1000 + 374 + 15 + 15 + 4
    assert counts[dram_tables.REFRESHES] == 1000
    ends, counts = compiled_run(DDR4, [(0, 0, False), (8320 * 2_000_000 + 4000, 4, True)])
    assert ends[1] == 8320 * 2_000_000 + 4000 + 15 + 11 + 4
    assert counts[dram_tables.REFRESHES] == 2_000_000


@sampled("name", MEMORIES, quick=2)
def test_every_burst_has_a_place_of_its_own(name: str) -> None:
    dram = replace(
        MEMORIES[name],
        rows=4,
        mapping=(*MEMORIES[name].mapping[:-1], (Coordinate.ROW, 2)),
    )
    bursts = dram.capacity // dram.burst_bytes
    assert len({dram.place(burst) for burst in range(bursts)}) == bursts


def test_presets_have_the_bandwidth_of_their_standard() -> None:
    peaks = {name: float(dram.peak_bytes_per_second) for name, dram in MEMORIES.items()}
    assert peaks == {
        "ddr4-2133": pytest.approx(17.067e9, rel=1e-4),
        "ddr4-2133x2": pytest.approx(34.133e9, rel=1e-4),
        "ddr4-2133x4": pytest.approx(68.267e9, rel=1e-4),
        "hbm2e": 409.6e9,
        "hbm2e-1800": 1800e9,
    }
    assert [dram.capacity >> 30 for dram in MEMORIES.values()] == [8, 16, 32, 8, 16]


@st.composite
def drams(draw: st.DrawFn) -> Dram:
    """Small memories with random times: everything may be the longest."""
    bits = {c: draw(st.integers(0, 2), c.value) for c in Coordinate}
    bits[Coordinate.ROW] += 1
    pieces = [(c, 1) for c, count in bits.items() for _ in range(count)]
    short = st.integers(1, 12)
    times = {
        name: draw(short, name)
        for name in Timing.__dataclass_fields__
        if name not in ("tREFI", "tRFC")
    }
    refresh = draw(st.integers(1, 40), "tRFC")
    interval = draw(st.sampled_from([0, 150, 300]), "tREFI")
    return Dram(
        name="random",
        description="",
        clock_hz=Fraction(1_000_000_000),
        channels=1 << bits[Coordinate.CHANNEL],
        ranks=1 << bits[Coordinate.RANK],
        groups=1 << bits[Coordinate.GROUP],
        banks=1 << bits[Coordinate.BANK],
        rows=1 << bits[Coordinate.ROW],
        columns=1 << bits[Coordinate.COLUMN],
        burst_bytes=32,
        burst_clocks=draw(st.integers(1, 4), "burst"),
        mapping=mapping_of(*draw(st.permutations(pieces), "mapping")),
        rotate_banks=draw(st.booleans(), "rotate"),
        timing=Timing(**times, tRFC=refresh, tREFI=interval),
    )


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)
@given(drams(), st.lists(st.tuples(st.integers(0, 60), st.integers(0), st.booleans()), min_size=1))
def test_random_requests(dram: Dram, steps: list[tuple[int, int, bool]]) -> None:
    bursts = dram.capacity // dram.burst_bytes
    clocks = np.cumsum([step for step, _, _ in steps]).tolist()
    requests = [
        (clock, burst % bursts, write)
        for clock, (_, burst, write) in zip(clocks, steps, strict=True)
    ]
    ends, _ = run_both(dram, requests)
    latest: dict[int, int] = {}
    for (clock, burst, write), end in zip(requests, ends[:-1], strict=True):
        channel = dram.place(burst).channel
        assert end >= clock + (dram.timing.CWL if write else dram.timing.CL) + dram.burst_clocks
        assert end >= latest.get(channel, 0) + dram.burst_clocks
        latest[channel] = end


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    drams(),
    st.integers(1, 6),
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0), st.booleans()), min_size=1),
)
def test_random_requests_with_a_write_queue(
    dram: Dram, queue: int, batch: int, steps: list[tuple[int, int, bool]]
) -> None:
    queued = replace(dram, write_queue=queue, write_batch=min(queue, batch))
    bursts = dram.capacity // dram.burst_bytes
    clocks = np.cumsum([step for step, _, _ in steps]).tolist()
    requests = [
        (clock, burst % bursts, write)
        for clock, (_, burst, write) in zip(clocks, steps, strict=True)
    ]
    ends, counts = run_both(queued, requests)
    for (clock, _, _), end in zip(requests, ends[:-1], strict=True):
        assert end >= clock
    moved = dram_tables.channel_counts(counts)
    assert sum(c.writes for c in moved) == sum(write for _, _, write in requests)
    reads = sum(not write for _, _, write in requests)
    assert sum(c.reads + c.forwarded for c in moved) == reads


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    drams(),
    st.integers(1, 8),
    st.integers(0, 3),
    st.integers(0, 9),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0), st.integers(0, 9)), min_size=1),
)
def test_random_requests_with_a_read_queue(
    dram: Dram, reads: int, writes: int, share: int, steps: list[tuple[int, int, int]]
) -> None:
    queued = replace(dram, read_queue=reads, write_queue=writes, write_batch=writes)
    bursts = dram.capacity // dram.burst_bytes
    clocks = np.cumsum([step for step, _, _ in steps]).tolist()
    requests = [
        (clock, burst % bursts, kind < share)
        for clock, (_, burst, kind) in zip(clocks, steps, strict=True)
    ]
    _, counts = run_both(queued, requests)
    moved = dram_tables.channel_counts(counts)
    assert sum(c.writes for c in moved) == sum(write for _, _, write in requests)
    asked = sum(not write for _, _, write in requests)
    assert sum(c.reads + c.forwarded for c in moved) == asked


def test_a_read_goes_ahead_of_those_that_wait_for_their_row() -> None:
    # The second read closes and opens a row: 15 + 15 + 15 + 4.  The third one, to the open row of
    # another bank, is in order 4 clocks behind it, and with a read queue where nobody is.
    requests = [(0, 0, False), (0, BANK, False), (500, ROW, False), (500, BANK + 4, False)]
    assert run(PLAIN, requests)[2:] == [549, 555]
    ends, _ = run_both(replace(PLAIN, read_queue=4), requests)
    assert ends[2:4] == [549, 500 + 15 + 4]


def test_reads_between_others_keep_their_distance() -> None:
    # Two rows are opened 4 clocks apart, so that bursts move from 530 to 534 and from 534 to 538
    # (another group).  Hits of a third group go ahead, 6 clocks apart, and around them.
    queued = replace(PLAIN, read_queue=8)
    first = [(0, 2, False), (500, ROW, False), (500, ROW + BANK + 1, False)]
    hits = [(505, 2 + 4 * n, False) for n in range(1, 5)]
    ends, _ = run_both(queued, [*first, *hits])
    assert ends[1:-1] == [534, 538, 524, 530, 542, 548]


def test_no_read_goes_ahead_of_a_write() -> None:
    queued = replace(PLAIN, read_queue=8)
    requests = [(0, BANK, False), (500, ROW, True), (500, BANK + 4, False)]
    assert run_both(queued, requests)[0] == run_both(PLAIN, requests)[0]


def test_conflicts_hide_behind_the_reads_of_others() -> None:
    """Two streams take turns in the rows of one bank, and one hits its row every 6 clocks."""
    requests = [
        (0, BANK + 4 * (n // 2 % 100) if n % 2 or n > 100 else ROW * (n // 2 % 2), False)
        for n in range(200)
    ]
    slow, fast = (run_both(replace(PLAIN, read_queue=queue), requests)[0][-2] for queue in (0, 64))
    assert fast < 6 * 150 + 250 < 0.4 * slow


def test_writes_wait_until_there_are_enough_of_them() -> None:
    # Two writes are put aside at once; the third fills the queue, and two are written: tRCD 15,
    # CWL 11, burst 4, the second one 4 clocks later in another bank group.
    queued = replace(PLAIN, write_queue=3, write_batch=2)
    requests = [(0, 0, True), (1, 1, True), (2, 2, True)]
    ends, counts = run_both(queued, requests)
    (channel,) = dram_tables.channel_counts(counts)
    assert ends[:3] == [0, 1, 2]
    assert channel.writes == 3
    # and the read of what still waits is there at once, without a bank
    ends, counts = run_both(queued, [*requests, (3, 2, False), (4, 0, False)])
    assert ends[3] == 3
    (channel,) = dram_tables.channel_counts(counts)
    assert (channel.forwarded, channel.reads) == (1, 1)
    # a fourth write finds a place when the data of the first one have moved
    more = [*requests, (3, 3, True), (3, 4, True)]
    assert run_both(queued, more)[0][3:5] == [2 + 15 + 11 + 4, 2 + 15 + 11 + 4 + 4]


def test_turning_the_bus_seldom_pays() -> None:
    requests = [(n, n // 2 + (40960 if n % 2 else 0), n % 2 == 1) for n in range(4000)]
    ends = [
        max(run_both(dram, requests)[0])
        for dram in (PLAIN, replace(PLAIN, write_queue=32, write_batch=16))
    ]
    assert ends[1] < 0.7 * ends[0]


@sampled("name", MEMORIES, quick=2)
@pytest.mark.parametrize("writes", [0.0, 0.3])
@pytest.mark.parametrize("queue", [0, 32])
def test_long_random_requests(name: str, writes: float, queue: int) -> None:
    dram = replace(MEMORIES[name], read_queue=queue)
    generator = np.random.default_rng(7)
    clocks = np.sort(generator.integers(0, 60_000, 3000)).tolist()
    bursts = generator.integers(0, 4096, 3000) * generator.choice([1, 977], 3000)
    write = (generator.random(3000) < writes).tolist()
    requests = list(zip(clocks, bursts.tolist(), write, strict=True))
    run_both(dram, requests)


@sampled("name", Timing.__dataclass_fields__, quick=5)
def test_the_checker_sees_a_violation_by_one_clock(name: str) -> None:
    """Some list of commands keeps to all times, but not to one that is a clock longer."""
    times = {**dict.fromkeys(Timing.__dataclass_fields__, 1), "tREFI": 0, "turnaround": 0}
    times |= {"tREFI": 300} if name in ("tREFI", "tRFC") else {}
    times |= {name: times[name] + 9 if name != "tREFI" else 300}
    if name == "tFAW":
        times |= {"tFAW": 40}
    dram = replace(PLAIN, burst_clocks=1, timing=Timing(**times))
    trace: list[Command] = []
    model = DramModel(dram, trace)
    for n in range(2000):
        model.access(n, n * 37 % 9000 if n % 7 else 5, Request(n % 3 == 0))
    check(dram, trace)
    longer = replace(dram, timing=replace(dram.timing, **{name: times[name] + 1}))
    with pytest.raises(AssertionError):
        check(longer, trace)
