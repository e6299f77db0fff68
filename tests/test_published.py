"""``benchmarks/published.py``: closed forms of its cycles, and what it says about them."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from benchmarks.published import (
    BAND,
    DSP_BAND,
    ROWS,
    Counted,
    Measured,
    array_of,
    flagged,
    measure,
    remarks,
    table,
)
from tests.sampling import sampled

BY_NAME = {row.name: row for row in ROWS}

# vector steps of one PE for one block; the Stratix 10 capsule layer loads 9 x 4 kernel places x 896
# vectors of 128 bytes in each block, at 64 bytes per cycle
STEPS = {
    "T2S-Tensor TTM": (8 * 8 * 16) * 64,
    "convolution A10": (2 * 32 * 16) * 9 * 16,
    "capsule S10": (4 * 4 * 4 * 4 * 4) * 4 * 9,
}
CYCLES = STEPS | {"capsule S10": 4 * 9 * (4 * 4 * 4 * 14) * 2}
# results of the last tile, one per cycle from all rows, that leave when the array is done
LEAVING = {"T2S-Tensor TTM": 1024 * 7, "convolution A10": 1024 * 9, "capsule S10": 1024 * 13}


@pytest.fixture(scope="module", params=STEPS)
def measured(request: pytest.FixtureRequest) -> Measured:
    return measure(BY_NAME[request.param])


@pytest.mark.slow
def test_every_block_costs_the_closed_form(measured: Measured) -> None:
    name = measured.row.name
    blocks, rest = divmod(measured.counted.steps, STEPS[name])
    assert blocks > 10
    assert rest == 0
    overhead = measured.counted.cycles - blocks * CYCLES[name]
    assert 0 < overhead - LEAVING[name] < 0.02 * CYCLES[name]  # the first buffers, and latencies


def test_most_cycles_are_skipped(measured: Measured) -> None:
    assert measured.counted.skipped > 0.7 * measured.counted.cycles


def test_ours_is_within_the_bands(measured: Measured) -> None:
    assert abs(measured.ratio - 1) < BAND
    assert abs(measured.dsp_blocks / measured.row.dsp_blocks - 1) < DSP_BAND
    if measured.row.lines is not None:
        assert measured.lines <= measured.row.lines


@pytest.mark.slow
def test_the_published_work_is_done() -> None:
    """Steps of all blocks x lanes = points of the published iteration spaces."""
    points = {
        "GEMM A10": 10240 * 8192 * 16384,
        "GEMM S10": 14 * 1024 * 16 * 1024 * 16384,
        "T2S-Tensor MTTKRP": 1024 * 576 * 256 * 512,
        "T2S-Tensor TTM": 64 * 256 * 704 * 1024,
        "T2S-Tensor TTMc": 128 * 128 * 160 * 128 * 128,
        "convolution A10": 64 * 60 * 64 * 256 * 256 * 9,
        "convolution S10": 64 * 56 * 64 * 256 * 256 * 9,
        "capsule A10": 4096 * 32 * 50 * 16 * 32 * 9 * 4,
        "capsule S10": 4096 * 32 * 56 * 16 * 32 * 9 * 4,
        "PairHMM A10": 224 * 224 * 128 * 384,
    }
    for name, expected in points.items():
        row = BY_NAME[name]
        sizes = row.family.sizes(row.sizes)
        array = array_of(row.family.build(sizes).lower())
        firings = np.prod([loop.extent.value for loop in array.loops], dtype=np.int64)
        lanes = row.family.lanes_of(sizes)
        assert firings * array.pe_count * lanes == expected, name


@sampled("name", ["T2S-Tensor GEMM", "T2S-Tensor MTTKRP", "T2S-Tensor TTMc"], quick=2)
def test_rows_that_take_long_with_tiny_sizes(name: str) -> None:
    """Tiny sizes are start-up more than anything else."""
    row = replace(BY_NAME[name], sizes="TINY")
    measured = measure(row)
    assert measured.counted.skipped == 0
    assert measured.counted.steps < measured.counted.cycles < 5 * measured.counted.steps + 1000
    assert row.lines is not None
    assert 10 < measured.lines <= row.lines


def test_rows_of_qr_last_as_long_as_their_recurrence() -> None:
    """Of 128, 128, 127, ... 1 steps; 61 cycles pass from one dot product to the next."""
    measured = measure(BY_NAME["QR A10"])
    lengths = np.array([128, *range(1, 129)])
    matrices, rest = divmod(measured.counted.steps, int(lengths.sum()))
    assert matrices > 1000
    assert rest == 0
    least = np.maximum(lengths, 4 + 4 + 4 + 7 * 4 + 4 + 16 + 1).sum()
    assert 0 <= measured.counted.cycles / matrices / least - 1 < 0.02
    assert abs(measured.dsp_blocks / measured.row.dsp_blocks - 1) < DSP_BAND
    assert measured.peak == pytest.approx(244e6 / lengths.sum() / 1e3)


def test_tiny_tables_of_pairhmm() -> None:
    """One table element in each step of a PE; small batches wait for the array's recurrence."""
    row = replace(BY_NAME["PairHMM A10"], sizes="TINY")
    measured = measure(row)
    assert measured.counted.steps % row.family.sizes("TINY").firings == 0
    assert measured.peak == pytest.approx(2 * 3 * 229.67e6 / 1e9)
    assert measured.counted.cycles > measured.counted.steps
    assert row.family.sizes("BOARD").firings == row.family.sizes("PUBLISHED").firings
    assert row.family.sizes("BOARD").counts == (224, 224)


def counted(cycles: int) -> Measured:
    return Measured(
        row=BY_NAME["T2S-Tensor TTM"],
        counted=Counted(cycles=cycles, skipped=900, steps=1000),
        peak=566.0,
        dsp_blocks=1408,
        lines=20,
    )


def test_rows_outside_of_the_band_are_explained() -> None:
    assert list(remarks([counted(1010)])) == []
    (text,) = remarks([counted(1100)])
    assert text == "* T2S-Tensor TTM: -8.4% utilization: not explained."
    assert flagged(-0.05, BAND) == "[bold red]-5.0% *[/]"
    assert flagged(0.015, BAND) == "+1.5%"


def test_the_table() -> None:
    stream = io.StringIO()
    Console(file=stream, width=150).print(table([counted(1010)]))
    (line,) = (line for line in stream.getvalue().splitlines() if "TTM" in line)
    assert "│  1,010 │     110 │ 0.990 / 0.993 │" in line
    assert "560 / 562 GFLOPS │ 1,408 / 1,416 │ -0.6% │ 20 / 30 │" in line
