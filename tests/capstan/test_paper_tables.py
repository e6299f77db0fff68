"""``benchmarks/stardust``: its commands, and what their tables have to say."""

from __future__ import annotations

import pytest

from benchmarks.stardust import kernels, resources
from benchmarks.stardust.paper import PAPER, PublishedKernel


@pytest.mark.parametrize("row", PAPER, ids=lambda row: row.name)
def test_lines_of_programs(row: PublishedKernel) -> None:
    lines = len([line for line in row.kernel().spatial().splitlines() if line.strip()])
    assert 0.5 <= lines / row.spatial_lines <= 1.8


def test_the_table_of_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    kernels.main(["--quick"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│ ")]
    assert len(lines) == len(PAPER)
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    assert [row[0] for row in cells] == [row.name for row in PAPER]
    assert all(row[4] == "equal" and row[5] == "4 of 4" for row in cells)
    assert cells[0][1] == "5 (10)"
    assert cells[0][6] == "2 SRAM, 1 partitioned SRAM, 2 FIFO"


def test_the_table_of_resources(capsys: pytest.CaptureFixture[str]) -> None:
    resources.main(["--quick"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│ ")]
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    published, fitted = cells[: len(PAPER)], cells[len(PAPER) :]
    assert published[0] == ["SpMV", "16", "40 (44)", "50 (41)", "35 (35)", "16 (16)", "Shuf (Shuf)"]
    assert [row[:2] for row in fitted] == [
        ["SpMV", "16 (16)"],
        ["Plus3", "8 (8)"],
        ["SDDMM", "12 (12)"],
    ]


def test_values_that_differ_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = PAPER[0].kernel()
    assert kernels.checked(kernel, 3) == "3 of 3"
    monkeypatch.setattr(
        type(kernel), "interpret", lambda self, inputs, level="patterns": [level == "notation"]
    )
    assert kernels.checked(kernel, 3) == "0 of 3"
