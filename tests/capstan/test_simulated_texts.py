"""What is said of simulated kernels: results as text, refusals by their whole text, the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import t2s
from benchmarks.stardust import bandwidth, runtimes
from t2s.command.main import app
from t2s.core.errors import UserError
from t2s.simulator.limits import Progress
from t2s.simulator.memory.spec import MEMORIES
from t2s.sparse import CapstanKernel, Schedule, Tensor, compile, csr, dense
from tests.sampling import sampled
from tests.sources import ROOT

i, j, k = t2s.Var("i"), t2s.Var("j"), t2s.Var("k")
INPUTS = {"A": np.array([[1, 0, 2], [0, 0, 0]], np.int32), "x": np.array([3, 4, 5], np.int32)}


def spmv(partitions: int = 2) -> CapstanKernel:
    a, x, y = Tensor("A", csr), Tensor("x", dense(1)), Tensor("y", dense(1))
    y[i] = a[i, j] * x[j]
    return compile(y, Schedule().environment(outer_par=partitions), target="capstan")


def _middle_scan() -> Any:
    a, b, c = (Tensor(name, "dss") for name in "ABC")
    a[i, j, k] = b[i, j, k] + c[i, j, k]
    schedule = Schedule().environment(scan_par=4)
    given = dict.fromkeys("BC", np.ones((2, 2, 2), np.int32))
    return compile(a, schedule, target="capstan").simulate(given)


def _other_sizes() -> Any:
    result = spmv().simulate(INPUTS)
    return result.retime(times=replace(result.times, burst_bytes=32))


UNITS = (
    "|expected: loops that count or scan, and words that are written once or added to"
    "|hint:     interpret(inputs) runs the patterns, without times"
)
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a scan in the middle": (
        _middle_scan,
        "the simulator of Capstan does not support this: a loop that takes 4 iterations at a time,"
        " and has loops inside" + UNITS,
    ),
    "other sizes": (
        _other_sizes,
        "the units of the chip would do something else|expected: times with the same lanes,"
        " input_queue, block_buffers, burst_bytes|given:    CapstanTimes(lanes=16, stages=6,"
        " queue_words=256, input_queue=4, hop=6, memory_access=3, dram_path=24,"
        " block_buffers=2, burst_bytes=32, bit_windows=256)"
        "|hint:     simulate again with these times",
    ),
    "no addresses": (
        lambda: spmv().simulate(INPUTS, memory="ideal").retime(memory="hbm2e-1800"),
        "'y_kernel' cannot be timed again: its machines have no recorded memory accesses"
        "|expected: a run by the native engine|given:    one by the engine 'native' on capstan"
        "|hint:     simulate it first with a DRAM, and then with the others",
    ),
    "plain engine": (
        lambda: spmv().simulate(INPUTS, engine="python").parts,
        "'y_kernel' cannot be timed again: its machines have no trace"
        "|expected: a run by the native engine|given:    one by the engine 'python' on capstan"
        "|hint:     simulate it first with engine='native'",
    ),
    "limit": (
        lambda: spmv().simulate(INPUTS, memory="ideal", max_cycles=20),
        "'y_kernel' had not ended after 20 cycles, the limit"
        "|expected: a run that ends within max_cycles|given:    FIRINGS when it was cut short"
        "|hint:     raise max_cycles; print(error.result) shows the measurements so far",
    ),
}


@sampled("name", REFUSED, quick=2)
def test_refusals(name: str) -> None:
    made, text = REFUSED[name]
    with pytest.raises(UserError) as found:
        made()
    assert found.value.location is not None
    assert found.value.location.file == __file__
    lines = [line.strip() for line in str(found.value).splitlines()]
    said = [line for line in lines if " | " not in line and not line.startswith("-->")]
    said = ["given:    FIRINGS when it was cut short" if "firings made" in x else x for x in said]
    assert "|".join(said) == text


def test_ctrl_c_leaves_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def press(self: Progress, *, cycle: int, done: int, total: int) -> None:
        raise KeyboardInterrupt

    kernel = spmv()
    monkeypatch.setattr(Progress, "advanced", press)
    with pytest.raises(t2s.errors.RunInterrupted, match="was interrupted"):
        kernel.simulate(INPUTS)
    monkeypatch.undo()
    assert kernel.simulate(INPUTS).tensor.to_dense().tolist() == [13, 0]


def test_what_has_no_units_names_the_users_line() -> None:
    with pytest.raises(UserError, match="does not support this") as found:
        _middle_scan()
    assert "a[i, j, k] = b[i, j, k] + c[i, j, k]" in str(found.value)


def test_the_text_of_a_result() -> None:
    result = spmv().simulate(INPUTS)
    lines = str(result).splitlines()
    assert lines[0] == f"{result.cycles} cycles, {result.cycles} ns with memory hbm2e-1800"
    assert lines[1].startswith(f"{result.dram_bytes} bytes of DRAM bursts, ")
    assert result.run.shared is not None
    assert lines[2] == (
        f"2 words through the network, {result.network_words:.1f} in a cycle; 0.0 cycles lost by "
        f"each; {result.run.shared.bank_utilization:.1%} of the banks"
    )
    assert lines[4] == f"bound by DRAM: {result.parts.share(result.parts.bound):.0%} of" + (
        f" {result.cycles} cycles"
    )
    causes = [line.split()[0] for line in lines[7:12]]
    assert causes == ["DRAM", "network", "whole", "datapath:", "start-up"]
    assert "reduce_total" in str(result)
    assert "<caption>bound by DRAM" in result._repr_html_()
    assert result.tensor.to_dense().tolist() == [13, 0]
    assert 0 < result.share_of_peak < 1
    plain = spmv().simulate(INPUTS, engine="python")
    assert "bound by" not in str(plain)
    assert "bound by" not in plain._repr_html_()
    ideal = spmv().simulate(INPUTS, memory="ideal")
    assert (ideal.dram_bytes, ideal.share_of_peak) == (0, 0.0)
    assert str(ideal).splitlines()[2].startswith("bound by start-up")


def test_units_belong_to_the_users_loops() -> None:
    graph = spmv().graph()
    regions = {region.name: region.parent for region in graph.regions}
    assert regions == {"i": None, "i/j_entry": "i"}
    assert graph.node("reduce_total").region == "i/j_entry"
    location = graph.node("reduce_total").location
    assert location is not None
    assert location.file == __file__


def test_the_command_simulates(tmp_path: Path) -> None:
    told = ["tensor", "y(i)=A(i,j)*x(j)", "-f", "A:ds", "--random", "A", "--random", "x"]
    told += ["-d", "i=5", "-d", "j=9", "--target", "capstan", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, [*told, "--memory", "hbm2e-1800"])
    assert result.exit_code == 0, result.output
    assert "ns with memory hbm2e-1800\n" in result.output
    assert "\nbound by " in result.output
    for name in ("picture.svg", "roofline.svg"):
        assert (tmp_path / name).read_text(encoding="utf-8").startswith("<svg ")
        assert f"wrote {tmp_path / name}\n" in result.output
    assert "matches numpy" in result.output.splitlines()[-1]
    # no other memory is named, and the plain command, the record and the kernel take the same one
    plain = CliRunner().invoke(app, told).output
    assert plain == result.output
    record = json.loads(CliRunner().invoke(app, [*told, "--json"]).output)
    assert record["stages"][0]["dram"]["name"] == "hbm2e-1800"
    assert f"{record['cycles']:,} cycles, " in plain


def test_a_kernel_without_units_has_no_cycles(tmp_path: Path) -> None:
    told = ["tensor", "A(i,j,k)=B(i,j,k)+C(i,j,k)", "-f", "A:dss", "-f", "B:dss", "-f", "C:dss"]
    told += [
        "--random",
        "B",
        "--random",
        "C",
        "-d",
        "i=2",
        "-d",
        "j=3",
        "-d",
        "k=4",
        "-s",
        "env(sp,4)",
    ]
    told += ["--target", "capstan", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, told)
    assert result.exit_code == 0
    assert "no cycles: the simulator of Capstan does not support this" in result.output
    assert "matches numpy" in result.output.splitlines()[-1]
    for more in (["--json"], ["--memory", "ideal"], ["--report", str(tmp_path / "page.html")]):
        assert CliRunner().invoke(app, [*told, *more]).exit_code == 1


def test_results_are_as_those_of_other_targets(tmp_path: Path) -> None:
    kernel = spmv()
    result = kernel.simulate(INPUTS)
    assert result.memory == "hbm2e-1800"
    assert result.output.tolist() == [13, 0]
    assert t2s.cycles(kernel, INPUTS) == result.cycles
    ideal = t2s.simulate(kernel, INPUTS, device="capstan", memory="ideal")
    assert ideal.cycles == t2s.cycles(kernel, INPUTS, memory="ideal") < result.cycles
    assert t2s.compare(result, ideal).change == ideal.cycles - result.cycles
    assert result.report(tmp_path / "page.html").exists()
    with pytest.raises(UserError, match="runs on its own chip"):
        t2s.simulate(kernel, INPUTS, device="arria10")


def test_the_table_of_run_times(capsys: pytest.CaptureFixture[str]) -> None:
    runs = list(runtimes.all_runs(0.02, ("SpMV", "TTV")))
    assert [run.kernel.name for run in runs] == ["SpMV", "SpMV", "SpMV", "TTV"]
    assert all(run.ideal.cycles <= run.hbm.cycles <= run.ddr.cycles for run in runs)
    assert all(run.slower < 1800 / 68.27 for run in runs)
    assert runtimes.table_7(runs).row_count == len(runs) + 2
    assert runtimes.sensitivity(runs[:1]).row_count == 1


def test_memories_of_other_bandwidths() -> None:
    """Times of the banks are less than a clock longer, at any bandwidth."""
    same, base = bandwidth.memory_of(1800), MEMORIES["hbm2e-1800"]
    for wanted in bandwidth.BANDWIDTHS:
        memory = bandwidth.memory_of(wanted)
        assert memory.peak_bytes_per_second == wanted * 10**9
        assert memory.timing.tCCD_S == memory.burst_clocks
        for name in ("CL", "tRCD", "tRP", "tRAS", "tFAW", "tRFC"):
            took, takes = (getattr(m.timing, name) / m.clock_hz for m in (base, memory))
            assert 0 <= takes - took < 1 / base.clock_hz, (wanted, name)
    assert (same.channels, same.timing, same.mapping) == (base.channels, base.timing, base.mapping)
    assert bandwidth.largest_rise([10, 8, 9]) == 0.125


def test_published_data_is_made_exactly() -> None:
    matrix = runtimes.MATRICES[0].make(1.0)
    assert (matrix.shape, matrix.nnz, matrix[19999, 19999]) == ((20000, 20000), 554466, 224737)
    assert (ROOT / "benchmarks" / "stardust" / "data.py").exists()
