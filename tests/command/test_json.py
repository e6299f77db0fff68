"""``--json``: the numbers are those of the result objects, and the text is the same every time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import t2s
from t2s.command.design import design_with_inputs
from t2s.command.main import app
from t2s.report.comparison import Comparison
from t2s.report.page.main_limit import limit_of
from t2s.simulator.report.result import SimResult

DESIGN = """\
import t2s
from t2s import Float, Func, ImageParam, RDom, Var

A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
i, j, k = Var("i"), Var("j"), RDom(0, 12, name="k")
C = Func("C")
C[i, j] = 0.0
C[i, j] += A[i, k] * B[k, j]
C.bound(i, 0, 4).bound(j, 0, 4)
A_loader = Func("A_loader")
C.update().reorder(k, j, i)
C.unroll(j).isolate_producer(A, A_loader)
"""

KERNEL = """\
import t2s
from t2s import sparse

y = sparse.compile(sparse.parse("y(i)=A(i,j)*x(j)", {"A": "ds"}))
"""


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def loaded(*arguments: object) -> dict[str, Any]:
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert call(*arguments, "--json").stdout == result.stdout
    found: dict[str, Any] = json.loads(result.stdout)
    assert found["t2s"] == t2s.__version__
    return found


@pytest.fixture
def design(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "design.py"
    path.write_text(DESIGN, encoding="utf-8")
    return path


def same_stage(found: dict[str, Any], result: SimResult) -> None:
    for name in ("graph", "engine", "kernel", "cycles", "seconds", "utilization", "compute_cycles"):
        assert found[name] == getattr(result, name)
    assert (found["device"], found["clock_hz"]) == (result.device.name, result.device.clock_hz)
    assert found["ended"] == result.ending.value
    limit = limit_of(result)
    assert (found["limit"]["kind"], found["limit"]["cycles"]) == (limit.kind.value, limit.cycles)
    assert [node["name"] for node in found["nodes"]] == list(result.nodes)
    for node in found["nodes"]:
        expected = result.nodes[node["name"]]
        assert node["role"] == expected.role.value
        assert node["pes"] == expected.pe_count
        assert node["initiation_interval"] == expected.interval.cycles
        kinds = ("busy", "starved", "blocked", "waiting", "idle")
        for name in ("firings", "first_firing", "last_firing", *kinds):
            assert node[name] == getattr(expected, name)
        assert sum(node[kind] for kind in kinds) == node["pes"] * result.cycles
        by_channel = sum(node["starved_by"].values()) + node["starved_by_memory"]
        assert by_channel == node["starved"]
        assert sum(node["blocked_by"].values()) + node["blocked_by_memory"] == node["blocked"]
    assert {one["name"]: one["depth"] for one in found["channels"]} == dict(result.depths)
    assert found["warnings"] == list(result.warnings)


def test_a_run(design: Path) -> None:
    found = loaded("run", design)
    made, inputs = design_with_inputs(design, None, 0, 64, {})
    result = t2s.simulate(made, inputs, device="arria10")
    assert (found["schema"], found["design"], found["file"]) == ("t2s.run/1", "C", str(design))
    assert (found["cycles"], found["seconds"]) == (result.cycles, result.seconds)
    same_stage(found["stages"][0], result)
    report = t2s.resources(made)
    assert found["stages"][0]["resources"] == {
        "dsp_blocks": report.dsp_blocks,
        "ram_blocks": report.ram_blocks,
        "dsp_available": result.device.dsp_blocks,
        "ram_available": result.device.ram_blocks,
    }
    (output,) = found["outputs"]
    assert (output["name"], output["shape"], output["type"]) == ("C", [4, 4], "float32")
    assert output["agreement"].startswith("matches numpy")
    assert found["files"] == ["build/C/C.cl", "build/C/C_host.py"]
    assert all(Path(name).exists() for name in found["files"])


@pytest.mark.slow
def test_a_run_with_a_dram(design: Path) -> None:
    found = loaded("run", design, "--memory", "ddr4-2133")
    made, inputs = design_with_inputs(design, None, 0, 64, {})
    result = t2s.simulate(made, inputs, device="arria10", memory="ddr4-2133")
    same_stage(found["stages"][0], result)
    assert result.memory is not None
    assert found["stages"][0]["dram"]["bytes"] == result.memory.bytes_moved
    assert found["stages"][0]["dram"]["name"] == result.memory.dram.name


@pytest.mark.slow
def test_a_run_of_a_kernel(design: Path) -> None:
    design.write_text(KERNEL, encoding="utf-8")
    found = loaded("run", design, "--size", "12", "--device", "ideal")
    kernel, inputs = design_with_inputs(design, None, 0, 12, {})
    result = kernel.simulate(inputs)
    assert found["cycles"] == result.cycles
    for stage, expected in zip(found["stages"], result.stages, strict=True):
        same_stage(stage, expected)


def test_a_tensor(tmp_path: Path) -> None:
    options = ("-f", "A:ds", "--random", "x", "-d", "i=3", "-d", "j=3", "--out", tmp_path / "out")
    np.save(tmp_path / "A.npy", np.eye(3))
    a = f"A={tmp_path / 'A.npy'}"
    found = loaded("tensor", "y(i)=A(i,j)*x(j)", "-i", a, *options)
    assert (found["schema"], found["target"]) == ("t2s.tensor/1", "streams")
    assert found["expression"].startswith("y(i) = ")
    kernel = t2s.sparse.compile(t2s.sparse.parse("y(i)=A(i,j)*x(j)", ["A:ds"]))
    result = kernel.simulate({"A": np.eye(3), "x": np.ones(3)})
    assert found["cycles"] == result.cycles
    same_stage(found["stages"][0], result.stages[0])
    assert [one["name"] for one in found["outputs"]] == ["y"]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cgra", "capstan"])
def test_chips(target: str, tmp_path: Path) -> None:
    found = loaded(
        "tensor", "y(i)=A(i,j)*x(j)", "-f", "A:ds", "--random", "A", "--random", "x",
        "-d", "i=10", "-d", "j=10", "--out", tmp_path, "--target", target,
    )  # fmt: skip
    assert found["target"] == target
    assert found["cycles"] == sum(stage["cycles"] for stage in found["stages"]) > 0


def test_a_comparison(design: Path) -> None:
    found = loaded("compare", design, design, "--device", "arria10", "--device", "ideal")
    assert found["schema"] == "t2s.compare/1"
    made, inputs = design_with_inputs(design, None, 0, 64, {})
    results = [t2s.simulate(made, inputs, device=device) for device in ("arria10", "ideal")]
    expected: Comparison = t2s.compare(*results)
    assert found["change"] == expected.change == results[1].cycles - results[0].cycles
    for side, result in zip((found["before"], found["after"]), results, strict=True):
        assert side["cycles"] == result.cycles
        assert side["utilization"] == result.utilization
        assert side["ended"] == "finished"
    for name, total in (("before", 0), ("after", 1)):
        assert sum(cause[name] for cause in found["causes"]) == results[total].cycles
    assert sum(cause["change"] for cause in found["causes"]) == found["change"]
    assert [cause["cause"] for cause in found["causes"]] == [c.use.text for c in expected.causes]
    assert [node["name"] for node in found["nodes"]] == [node.name for node in expected.nodes]
    names = [one["name"] for one in found["channels"]]
    assert names == [one.name for one in expected.channels]
    one = found["channels"][0]
    assert one["after"]["stalls"] == expected.after.channels[one["name"]].stalls


def test_errors_print_no_json(design: Path) -> None:
    result = call("run", design, "--device", "cpu", "--json")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "unknown device cpu" in result.stderr
    result = call("tensor", "y(i)=A(i,j)*x(j)", "--json")
    assert result.exit_code == 1
    assert result.stdout == ""


def test_plans_have_no_cycles(tmp_path: Path) -> None:
    result = call(
        "tensor", "C(i,k)=A(i,j)*B(j,k)", "--random", "A", "--random", "B", "-d", "i=4", "-d",
        "j=4", "-d", "k=4", "-s", "bind(A(i,j)*B(j,k),blas.dgemm)", "--json",
    )  # fmt: skip
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "external functions, and their calls take no cycles to report" in result.stderr


def test_interrupts_print_no_json(design: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, inputs = design_with_inputs(design, None, 0, 64, {})
    part = t2s.simulate(made, inputs, max_cycles=5)

    def interrupted(*_: object, **__: object) -> None:
        raise t2s.errors.RunInterrupted(part)

    monkeypatch.setattr(t2s, "simulate", interrupted)
    for arguments in (("run", design), ("compare", design, design)):
        result = call(*arguments, "--json")
        assert (result.exit_code, result.stdout) == (130, "")
        assert result.stderr


def keys_of(value: Any, under: str = "") -> set[str]:
    """The keys of objects inside of objects and lists; those of channels' names are not keys."""
    if isinstance(value, list):
        return {key for one in value for key in keys_of(one, under)}
    if not isinstance(value, dict) or under.endswith(("starved_by", "blocked_by")):
        return set()
    found = {f"{under}.{key}".lstrip(".") for key in value}
    return found | {k for key, one in value.items() for k in keys_of(one, f"{under}.{key}")}


STAGE = {
    "graph", "device", "clock_hz", "engine", "kernel", "cycles", "seconds", "utilization",
    "compute_cycles", "ended", "limit", "nodes", "channels", "resources", "dram", "warnings",
    "limit.kind", "limit.cycles", "limit.text", "resources.dsp_blocks", "resources.ram_blocks",
    "resources.dsp_available", "resources.ram_available",
    *(f"nodes.{key}" for key in (
        "name", "role", "pes", "initiation_interval", "firings", "first_firing", "last_firing",
        "busy", "starved", "blocked", "waiting", "idle", "starved_by", "blocked_by",
        "starved_by_memory", "blocked_by_memory",
    )),
    *(f"channels.{key}" for key in ("name", "source", "sink", "fifos", "depth", "latency")),
}  # fmt: skip
DRAM = {"dram.name", "dram.bytes", "dram.share_of_peak", "dram.row_hits"}
SIDE = (
    "label", "design", "device", "cycles", "seconds", "firings", "utilization", "compute_pes",
    "dsp_blocks", "ram_blocks", "ended",
)  # fmt: skip
OUTPUTS = {"outputs", *(f"outputs.{key}" for key in ("name", "shape", "type", "agreement"))}
SCHEMAS = {
    "t2s.run/1": {
        "schema", "t2s", "design", "file", "cycles", "seconds", "stages", "files", *OUTPUTS,
        *(f"stages.{key}" for key in STAGE | DRAM),
    },
    "t2s.tensor/1": {
        "schema", "t2s", "expression", "target", "cycles", "seconds", "stages", *OUTPUTS,
        *(f"stages.{key}" for key in STAGE if not key.startswith("resources.")),
    },
    "t2s.compare/1": {
        "schema", "t2s", "change", "before", "after", "causes", "nodes", "channels",
        *(f"{side}.{key}" for side in ("before", "after") for key in SIDE),
        *(f"causes.{key}" for key in (
            "cause", "kind", "channel", "stage", "before", "after", "change",
        )),
        "nodes.name", "nodes.before", "nodes.after",
        "channels.name", "channels.before", "channels.after",
        *(f"nodes.{side}.{key}" for side in ("before", "after") for key in (
            "pes", "interval", "firings", "stalled", "dsp_blocks", "ram_blocks",
        )),
        *(f"channels.{side}.{key}" for side in ("before", "after") for key in (
            "depth", "peak", "stalls",
        )),
    },
}  # fmt: skip
"""The keys of the schemas.  One that goes needs a new number; one that comes is put here."""


def test_the_keys_of_the_schemas(design: Path, tmp_path: Path) -> None:
    found = [
        loaded("run", design, "--memory", "ddr4-2133"),
        loaded("compare", design, design, "--device", "arria10", "--device", "ideal"),
        loaded(
            "tensor", "y(i)=A(i,j)*x(j)", "-f", "A:ds", "--random", "A", "--random", "x",
            "-d", "i=5", "-d", "j=5", "--out", tmp_path,
        ),
    ]  # fmt: skip
    assert {record["schema"]: keys_of(record) for record in found} == SCHEMAS
    text = (Path(__file__).parent.parent.parent / "docs" / "command_line.md").read_text("utf-8")
    for schema, keys in SCHEMAS.items():
        assert f"**`{schema}`**" in text
        for key in keys:
            assert f"`{key.rpartition('.')[2]}`" in text, key


NOTHING = {
    "graph": 'import t2s\ng = t2s.Graph(name="none", nodes=(), channels=(), tensors=())\n',
    "nan": (
        "from t2s import Float, Func, ImageParam, Var\n"
        'A, i, C = ImageParam(Float(32), 1, name="A"), Var("i"), Func("C")\n'
        "C[i] = (A[i] - A[i]) / (A[i] - A[i])\nC.bound(i, 0, 3)\n"
    ),
}


@pytest.mark.parametrize("text", NOTHING.values(), ids=NOTHING)
def test_numbers_that_are_none(text: str, design: Path) -> None:
    """No run, no burst and no number are a reason for text that is not JSON."""

    def refuse(name: str) -> None:
        raise AssertionError(name)

    design.write_text(text, encoding="utf-8")
    for arguments in (("run", design, "--memory", "ddr4-2133"), ("compare", design, design)):
        result = call(*arguments, "--json")
        assert result.exit_code == 0, result.output
        json.loads(result.stdout, parse_constant=refuse)
