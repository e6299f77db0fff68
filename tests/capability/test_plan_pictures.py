"""Pictures of plans: every step, every tensor with its bytes, every kind of time."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from examples.gemm.chains import TINY, gemm
from t2s import Float, Var, external, sparse
from t2s.driver.plan_result import TIMES, shown_bytes
from t2s.sparse import Schedule, Tensor, csr, dense

i, j, k = Var("i"), Var("j"), Var("k")
A, B, C, D = Tensor("A", csr), Tensor("B", csr), Tensor("C", dense(2)), Tensor("D", dense(2))
A[i, j] = B[i, j] * C[i, k] * D[k, j]


def _texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return [one.text or "" for one in root.iter() if one.tag.endswith("}text")]


def _fills(svg: str) -> set[str]:
    root = ElementTree.fromstring(svg)
    return {one.get("fill") or "" for one in root.iter() if one.tag.endswith("}rect")}


def test_a_plan_and_its_run(tmp_path: Path) -> None:
    plan = sparse.compile(A, Schedule().map(C[i, k] * D[k, j], external.blas.sgemm))
    before = _texts(plan.picture().svg)
    assert before[0] == "A(i,j) = sum(k, B(i,j)*C(i,k)*D(k,j))"
    assert {"1. call", "2. loops", "C dd", "D dd", "T dd", "B ds", "A ds"} <= set(before)
    assert not any("ms" in text for text in before)
    given = {"B": np.eye(20), "C": np.ones((20, 30)), "D": np.ones((30, 20))}
    result = plan.run(given, type=Float(32))
    after = _texts(result.picture().svg)
    assert {"C dd, 2.4 kB", "T dd, 1.6 kB", "B ds, 408 B", "1 call"} <= set(after)
    assert sum("ms" in text for text in after) == 2
    file = result.picture().write(tmp_path / "plan.svg")
    assert ElementTree.parse(file).getroot().tag.endswith("svg")
    assert plan.picture().svg == plan.picture().svg


def test_hardware_and_moves() -> None:
    link = external.HostLink(name="5 GB/s", latency=10e-6, bytes_per_second=5e9)
    array = external.from_design(gemm(TINY), device="arria10", link=link)
    plan = sparse.compile(A, Schedule().map(C[i, k] * D[k, j], array).streams("arria10"))
    n = 64
    given: dict[str, Any] = {"B": np.eye(n), "C": np.ones((n, n)), "D": np.ones((n, n))}
    result = plan.run(given, type=Float(32))
    svg = result.picture().svg
    texts = _texts(svg)
    kinds = [text.split(". ")[1] for text in texts if text[0].isdecimal() and ". " in text]
    assert kinds == ["convert", "move", "move", "array", "move", "streams", "move"]
    assert {color for _, color in TIMES} <= _fills(svg)
    assert "4398 cycles" in " ".join(texts)
    # what is read by a later step goes around the boxes between
    lines = [one for one in ElementTree.fromstring(svg).iter() if one.tag.endswith("}polyline")]
    assert any(len((one.get("points") or "").split()) == 4 for one in lines)


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (16_000_000, "16 MB")]
)
def test_bytes(count: int, said: str) -> None:
    assert shown_bytes(count) == said


@pytest.mark.parametrize("count", [1, 3, 5, 16])
def test_inputs_have_a_line_each(count: int) -> None:
    names = [f"a_tensor_with_a_long_name_{n}" for n in range(count)]
    part = "*".join(f"{name}(i)" for name in names)
    plan = sparse.compile(sparse.parse(f"y(i) = {part}"), "assume(1 == 1)")
    root = ElementTree.fromstring(plan.picture().svg)
    texts = [one for one in root.iter() if one.tag.endswith("}text")]
    lines = sorted(
        float(one.get("y", "")) for one in texts if (one.text or "").startswith("a_tensor_w")
    )
    assert len(lines) == count
    assert all(below - above >= 12 for above, below in pairwise(lines))
    size = [float(number) for number in root.get("viewBox", "").split()]
    assert 20 < lines[0] <= lines[-1] < size[3]
    titles = [one.text for one in root.iter() if one.tag.endswith("}title")]
    assert set(names) <= set(titles)
