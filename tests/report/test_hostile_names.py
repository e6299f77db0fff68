"""Names that are free texts, of links, fabrics, devices and memories: escaped wherever shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

import t2s
from examples.gemm.chains import TINY, gemm
from t2s import Float, external, sparse
from t2s.simulator.devices import DEVICES
from t2s.simulator.memory.spec import MEMORIES
from tests.report.page.designs import inputs_of, product
from tests.report.page.reading import shown

HOSTILE = '<script>document.title="taken"</script>'


def escaped(*made: str) -> None:
    for text in made:
        root = ElementTree.fromstring(text)
        assert "script" not in {part.tag.rpartition("}")[2] for part in root.iter()}
        assert HOSTILE in "".join(root.itertext())


def test_links_of_plans() -> None:
    link = external.HostLink(name=HOSTILE, latency=1e-6, bytes_per_second=5e9)
    array = external.from_design(gemm(TINY), device="arria10", link=link)
    assignment = sparse.parse("A(i,j) = B(i,j)*C(i,k)*D(k,j)", {"A": "ds", "B": "ds"})
    i, j, k = t2s.variables("i j k")
    C, D = sparse.Tensor("C", sparse.dense(2)), sparse.Tensor("D", sparse.dense(2))
    schedule = sparse.Schedule().map(C[i, k] * D[k, j], array)
    plan = sparse.compile(assignment, schedule)
    escaped(plan.picture().svg, plan._repr_html_())
    ones = np.ones((64, 64))
    result = plan.run({"B": np.eye(64), "C": ones, "D": ones}, type=Float(32))
    escaped(result.picture().svg, result._repr_html_())


def test_fabrics_of_placements() -> None:
    fabric = t2s.cgra.CgraFabric(name=HOSTILE, rows=8, columns=8)
    inputs = {"A": np.eye(4), "x": np.ones(4)}
    placed = t2s.cgra.place(sparse.parse("y(i)=A(i,j)*x(j)", ["A:ds"]), inputs, fabric=fabric)
    result = t2s.simulate(placed, inputs)
    escaped(placed.picture().svg, placed._repr_html_())
    escaped(placed.picture_of_tracks().svg, placed.picture_of_run(result).svg)


def test_devices_and_memories(tmp_path: Path) -> None:
    device = replace(DEVICES["arria10"], name=HOSTILE, description=HOSTILE)
    memory = replace(MEMORIES["ddr4-2133"], name=HOSTILE)
    result = t2s.simulate(product(), inputs_of(), device=device, memory=memory)
    page = result.report(tmp_path / "page.html")
    text = page.read_text("utf-8")
    assert text.count("<script") == text.count("</script>") == 3
    assert HOSTILE in shown(page)
    found = t2s.compare(result, result)
    escaped(result._repr_html_(), t2s.resources(product(), device=device)._repr_html_())
    escaped(found._repr_html_())
    page = found.report(tmp_path / "page.html")
    assert "<script" not in page.read_text("utf-8")
    assert HOSTILE in shown(page)
