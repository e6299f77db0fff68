"""What limits a run: recurrences, memory and its latency, and PEs that differ."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Float, Func, ImageParam, Var
from t2s.core.names import counted
from t2s.driver.many import runs_of
from t2s.report.page.main_limit import LimitKind, limit_of
from t2s.simulator.memory.spec import MEMORIES, Dram
from t2s.simulator.report.result import SimResult
from tests.report.page.designs import inputs_of, product
from tests.simulator.designs import feedback
from tests.sources import ROOT


def fed_back(latency: int, distance: int) -> SimResult:
    graph = feedback(80, capacity=2 * distance + latency, latency=latency, distance=distance)
    result: SimResult = t2s.simulate(graph, {"X": np.arange(80, dtype=np.int32)})
    return result


def test_a_pe_that_waits_for_itself() -> None:
    """A channel from a PE to itself is a recurrence, whatever else the PE reads."""
    result = fed_back(21, 8)
    found = limit_of(result)
    waited = result.nodes["scan"].starved_by["state"]
    assert (found.kind, found.node, found.channel) == (LimitKind.RECURRENCE, "scan", "state")
    assert found.cycles == waited > result.cycles / 2
    assert found.sentence == (
        "A recurrence limits scan: waiting for its own results in state (recurrence of latency 21 "
        f"at distance 8, 2.62 cycles per firing) costs {waited} of {result.cycles} cycles."
    )
    faster = fed_back(10, 8)
    assert result.cycles - faster.cycles == 9 * 11  # each round of 8 is that much shorter


def test_a_recurrence_that_is_fast_enough() -> None:
    found = limit_of(fed_back(8, 8))
    assert found.kind is LimitKind.COMPUTE


def test_a_machine_that_waits_for_itself() -> None:
    y = t2s.sparse.parse("y(i)=A(i,j)*x(j)", ["A:ds"])
    given = {"A": np.ones((4, 12)), "x": np.ones(12)}
    placed = t2s.simulate(t2s.cgra.place(y, given), given)
    found = limit_of(placed.stages[0] if hasattr(placed, "stages") else placed)
    assert found.kind is LimitKind.RECURRENCE
    assert re.match(
        r"A recurrence limits (\w+): waiting for its own results in \1_to_\1", found.sentence
    )


HBM2E = MEMORIES["hbm2e"]
SLOW_ROWS = replace(
    HBM2E, name="slow rows", timing=replace(HBM2E.timing, CL=120, tRCD=120, tRP=120, tRAS=250)
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("memory", "kind"), [(SLOW_ROWS, LimitKind.LATENCY), ("ddr4-2133", LimitKind.MEMORY)]
)
def test_latency_is_not_bandwidth(memory: str | Dram, kind: LimitKind) -> None:
    """Many channels are mostly idle while one unit waits for them; one channel is busy."""
    y = t2s.sparse.parse("y(i)=A(i,j)*x(j)", ["A:ds"])
    matrix = (np.random.default_rng(0).random((300, 300)) < 0.1) * 1.0
    kernel = t2s.sparse.compile(y, target="capstan")
    (result,) = runs_of(
        kernel.simulate({"A": matrix, "x": np.ones(300)}, memory=memory), "simulated"
    )
    assert result.memory is not None
    busy = result.memory.busiest_share
    assert (busy >= 0.5) == (kind is LimitKind.MEMORY)
    most = max(one.reads + one.writes for one in result.memory.channels)
    dram = result.memory.dram
    assert busy == pytest.approx(most * dram.burst_clocks / float(dram.clock_hz) / result.seconds)
    found = limit_of(result)
    assert found.kind is kind
    assert found.sentence.startswith(f"{kind.value.capitalize()} limits reduce_total: ")
    assert f"busiest bus is busy for {busy:.1%} of the run" in found.sentence


def test_pes_that_differ_are_a_mean() -> None:
    i, j = t2s.variables("i j")
    A, f = ImageParam(Float(32), 2, name="A"), Func("f")
    f[i, j] = A[i, j] + 1.0
    f.bound(i, 0, 8).bound(j, i, 8 - i)
    f.unroll(i)
    result = t2s.simulate(f, {"A": np.ones((8, 8), np.float32)})
    sentence = limit_of(result).sentence
    assert "each PE fires" not in sentence
    alike = t2s.simulate(product(), inputs_of())
    assert "each PE fires in 64 of" in limit_of(alike).sentence


def test_all_kinds_are_documented() -> None:
    text = (ROOT / "docs" / "command_line.md").read_text("utf-8")
    assert [kind for kind in LimitKind if f'`"{kind.value}"`' not in text] == []


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 cycles"), (1, "1 cycle"), (1000, "1,000 cycles")]
)
def test_one_is_singular(number: int, text: str) -> None:
    assert counted(number, "cycle") == text


def test_one_cycle_of_one_pe(tmp_path: Any) -> None:
    f, i = Func("f"), Var("i")
    f[i] = i * 2
    result = t2s.simulate(f.bound(i, 0, 1), {})
    text = result.report(tmp_path / "page.html").read_text("utf-8")
    assert "fires in 1 of 2 cycles. The largest loss is fill and drain, 1 cycle." in text
    assert not re.search(r"\b1 (cycles|firings|PEs|tokens|PE-cycles)\b", text)
