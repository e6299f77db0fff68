"""What a result shows, as text, in a terminal and in a notebook."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import t2s
from t2s import Func, ImageParam, Int, RDom
from t2s.core import progress as late_bar
from t2s.core.display import Table
from t2s.core.types import Float
from t2s.simulator.report.result import UTILIZATION_DEFINITION, SimResult
from t2s.simulator.run import simulate, simulate_cycles
from tests.simulator.designs import accumulation, chain, holding_fork_join, run


@pytest.fixture(scope="module")
def result() -> SimResult:
    # arria10: loads at 1.. take 120 + 1; II 4 for the fp32 adder: 122 126 130; adder 4 + 1:
    # store at 135, complete 40 later.
    inputs = {"X": np.arange(3, dtype=np.float32)}
    return simulate(accumulation(3, Float(32)), inputs, device="arria10")


def test_text(result: SimResult) -> None:
    text = str(result)
    assert "cycles       175\n" in text
    assert "time         814 ns on arria10 at 215 MHz\n" in text
    assert f"utilization  1.7% of sum = {UTILIZATION_DEFINITION}\n" in text
    assert "compute      9 cycles from first to last compute firing\n" in text
    assert "ended        finished\n" in text
    row = next(line for line in text.splitlines() if line.startswith("sum "))
    assert row.split(None, 6) == [
        "sum",
        "compute",
        "1",
        "3",
        "122",
        "130",
        "II 4: recurrence through 'total', latency 4 at distance 1",
    ]


def test_numbers(result: SimResult) -> None:
    assert result.cycles == 175
    assert result.seconds == 175 / 215e6
    assert result.utilization == 3 / 175
    assert result.compute_cycles == 9
    assert result.firings == 3 + 3 + 1
    assert result.engine == "native"
    assert not result.interrupted


def test_stall_table(result: SimResult) -> None:
    table = result.stalls
    assert [row.node for row in table] == ["load", "sum", "store"]
    assert len(table) == 3
    row = table["sum"]
    assert (row.busy, row.waiting, row.idle) == (3, 6, 166)
    assert row.share("waiting") == 6 / 175
    assert row.main_cause == "II 4: recurrence through 'total', latency 4 at distance 1"
    assert table["load"].main_cause is None
    with pytest.raises(KeyError):
        table["nobody"]
    text = str(table)
    assert text.startswith("PE-cycles by node (PEs x 175 cycles = 100 %)\n")
    assert "6 (3.4%)" in text


def test_terminal(result: SimResult) -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=200)
    console.print(result)
    console.print(result.stalls)
    text = stream.getvalue()
    assert "PE-cycles by node" in text
    assert UTILIZATION_DEFINITION in text
    assert "recurrence through 'total'" in text


def test_notebook(result: SimResult) -> None:
    html = replace(result, graph="<b>&</b>")._repr_html_()
    assert "<h4>&lt;b&gt;&amp;&lt;/b&gt;</h4>" in html
    assert "<caption>PE-cycles by node (PEs x 175 cycles = 100 %)</caption>" in html
    assert "http" not in html
    assert "<script" not in html
    assert result.stalls._repr_html_() in html


def test_a_deadlock_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    partial = run(holding_fork_join(4, short=2), "native")
    assert "fork waits for space in short" in str(partial)
    assert "larger capacities may free it" in str(partial)
    assert "fork waits for space in short" in partial._repr_html_()
    stream = io.StringIO()
    Console(file=stream, width=200).print(partial)
    assert "and so back to fork" in stream.getvalue()
    assert capsys.readouterr() == ("", "")


def test_table_cells_are_escaped_and_aligned() -> None:
    table = Table(title="t", headers=("name", "n"), rows=(("<a>", "1"), ("b", "22")))
    assert table.text() == "t\nname   n\n--------\n<a>    1\nb     22"
    assert '<td style="text-align:left">&lt;a&gt;</td>' in table.html()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("progress", "stream", "shown"),
    [
        (True, io.StringIO, True),
        (False, Terminal, False),
        (None, Terminal, False),  # too short a run
        (None, io.StringIO, False),
    ],
)
def test_progress(
    progress: bool | None, stream: type[io.StringIO], shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stderr = stream()
    monkeypatch.setattr(sys, "stderr", stderr)
    assert simulate_cycles(chain(2000), progress=progress).finished
    assert bool(stderr.getvalue()) is shown


def test_progress_of_a_long_run(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(late_bar, "_PATIENCE", 0.0)
    assert simulate_cycles(chain(2000)).finished
    assert "simulating" in stderr.getvalue()


def test_the_package_stays_light() -> None:
    program = (
        "import sys, t2s.simulator.run\n"
        "heavy = {'llvmlite', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'imported too early: {heavy}' if heavy else 0)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_utilization_is_that_of_the_array_with_the_most_firings() -> None:
    """An epilogue on PEs of its own says nothing of the array that does the work."""
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    i, j, x, y = t2s.variables("i j x y")
    k, product, epilogue = RDom(0, 32, name="k"), Func("product"), Func("epilogue")
    product[i, j] = 0
    product[i, j] += A[i, k] * B[k, j]
    epilogue[x, y] = t2s.max(product[x, y], 0)
    epilogue.bound(x, 0, 4).bound(y, 0, 4)
    product.unroll(j)
    epilogue.unroll(y).stream(product)
    inputs = {"A": np.ones((4, 32), np.int32), "B": np.ones((32, 4), np.int32)}
    run = t2s.simulate(epilogue, inputs)
    array = run.main_array
    assert array is not None
    assert (array.name, array.pe_count, array.firings) == ("product", 4, 4 * 4 * 32)
    assert run.utilization == run.stalls["product"].busy / run.stalls["product"].pe_cycles > 0.9
    assert f"utilization  {run.utilization:.1%} of product = firings / (PEs x cycles)\n" in str(run)
