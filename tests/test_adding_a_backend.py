"""What `docs/architecture.md` says that a backend and a device cost, held against new ones.

A backend is a folder with an object and a line: this module stands for the folder.  A device is an
entry of a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

import t2s
from t2s import Float, Func, ImageParam, Var
from t2s.backends.base import RunOptions, Unsupported, refusal
from t2s.core.ops import Array
from t2s.driver import hardware
from t2s.errors import UnsupportedError, UserError
from t2s.graph.graph import Graph
from t2s.graph.interpret import interpret_graph
from t2s.graph.printer import print_graph
from t2s.report import resources
from t2s.simulator import devices


@dataclass(frozen=True, kw_only=True)
class _ListingRun:
    outputs: Mapping[str, Array]


class _Listing:
    """Writes the printed graph, and runs it untimed; it has no machines."""

    name = "listing"
    timed = False

    def supports(self, graph: Graph) -> list[Unsupported]:
        return [
            Unsupported(
                subject=f"node {machine.name!r}",
                why="its control depends on data",
                location=machine.location,
            )
            for machine in graph.machines
        ]

    def emit(self, graph: Graph) -> Mapping[str, str]:
        problems = self.supports(graph)
        if problems:
            raise refusal(self.name, graph, problems)
        return {f"{graph.name}.txt": print_graph(graph)}

    def run(
        self,
        graph: Graph,
        inputs: Mapping[str, Array] | None,
        parameters: Mapping[str, Array],
        options: RunOptions,
    ) -> _ListingRun:
        self.emit(graph)
        return _ListingRun(outputs=interpret_graph(graph, inputs or {}, parameters))


BACKEND = _Listing()


@pytest.fixture
def with_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = MappingProxyType({**hardware.BACKENDS, "listing": __name__})
    monkeypatch.setattr(hardware, "BACKENDS", listed)


def _doubled() -> Func:
    X, i, Y = ImageParam(Float(32), 1, name="X"), Var("i"), Func("Y")
    Y[i] = X[i] * 2.0
    return Y.bound(i, 0, 6)


@pytest.mark.usefixtures("with_listing")
def test_a_backend_is_a_folder_and_a_line(tmp_path: Path) -> None:
    (path,) = t2s.emit(_doubled(), "listing", tmp_path)
    assert path == tmp_path / "Y.txt"
    assert path.read_text(encoding="utf-8") == print_graph(t2s.lower(_doubled()))
    with pytest.raises(UserError) as caught:
        t2s.emit(_doubled(), "nothing", tmp_path)
    assert "listing, opencl_fpga, verilog" in str(caught.value)


@pytest.mark.usefixtures("with_listing")
def test_it_refuses_and_runs_as_the_others_do(tmp_path: Path) -> None:
    kernel = t2s.sparse.parse("y(i) = A(i,j) * x(j)", {"A": "ds"})
    with pytest.raises(UnsupportedError) as caught:
        t2s.emit(kernel, "listing", tmp_path, {"A": np.eye(3), "x": np.ones(3)})
    assert "the listing backend cannot emit" in str(caught.value)

    graph, x = t2s.lower(_doubled()), np.arange(6, dtype=np.float32)
    run = hardware.find_backend("listing").run(graph, {"X": x}, {}, RunOptions())
    np.testing.assert_array_equal(run.outputs["Y"], 2 * x)


def test_a_device_is_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = replace(devices.DEVICES["arria10"], name="slow", load_latency=900)
    table = MappingProxyType({**devices.DEVICES, "slow": slow})
    for module in (devices, resources):
        monkeypatch.setattr(module, "DEVICES", table)
    Y = _doubled()
    usual = t2s.cycles(Y, device="arria10")
    known = devices.DEVICES["arria10"].load_latency
    assert t2s.cycles(Y, device="slow") == t2s.cycles(Y, device=slow) == usual + 900 - known
    assert str(t2s.resources(Y, device="slow")).count("slow") == 1
    with pytest.raises(UserError) as caught:
        t2s.cycles(Y, device="fast")
    assert "slow" in str(caught.value)
