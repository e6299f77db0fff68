"""``t2s.graph.ports``: accesses of the PEs of a node, one in a cycle for each tensor."""

from __future__ import annotations

import html
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Float, Func, ImageParam, RDom
from t2s.devices import DEVICES, Device
from t2s.graph.ports import busiest_port
from t2s.simulator.report.result import SimResult
from tests.backends.test_opencl_machines import MATRIX, cisr

PORTS = replace(DEVICES["ideal"], name="ports", port_per_tensor=True)


def product(
    pes: tuple[int, int],
    lanes: int = 1,
    *,
    forward: bool = True,
    first: int = 0,
    rows: bool = False,
    size: tuple[int, int] = (12, 8),
    order: str = "ii jj",
) -> Func:
    """C = A B, with an array of PEs along i and j; B is stored by columns, or by ``rows``."""
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    i, j, ii, jj, kv = t2s.variables("i j ii jj kv")
    k, C = RDom(0, 16, name="k"), Func("C")
    C[i, j] = 0.0
    C[i, j] += A[i, k + first] * (B[k, j] if rows else B[j, k])
    C.bound(i, 0, size[0]).bound(j, 0, size[1]).split(i, i, ii, pes[0]).split(j, j, jj, pes[1])
    if lanes > 1:
        C.split(k, k, kv, lanes)
    inner = [jj, ii] if order == "ii jj" else [ii, jj]
    C.reorder(*([kv] if lanes > 1 else []), *inner, k, j, i).unroll(ii, jj)
    if lanes > 1:
        C.vload(A, B)
    if forward:
        loaders = t2s.funcs("A_loader B_loader")
        C.isolate_producer(A, loaders[0]).isolate_producer(B, loaders[1])
        C.forward(loaders[0], jj).forward(loaders[1], ii)
    return C


def ports(func: Func) -> dict[str, tuple[str, int] | None]:
    graph = func.lower()
    return {node.name: busiest_port(graph, node) for node in graph.nodes}


CASES = {
    "one PE": (product((1, 1)), {"A_loader": ("A", 1), "B_loader": ("B", 1), "C_store": ("C", 1)}),
    "an array": (
        product((4, 2)),
        {"A_loader": ("A", 4), "B_loader": ("B", 2), "C": None, "C_store": ("C", 4)},
    ),
    "each PE loads": (  # those of a row load the same element
        product((4, 2), forward=False),
        {"C_load_A": ("A", 4), "C_load_B": ("B", 2), "C_store": ("C", 4)},
    ),
    "aligned vectors": (product((4, 2), 4), {"A_loader": ("A", 4), "B_loader": ("B", 2)}),
    "vectors that are not": (
        product((4, 2), 4, first=1),
        {"A_loader": ("A", 16), "B_loader": ("B", 2)},
    ),
}


def stores_of(pes: tuple[int, int], size: tuple[int, int], **options: Any) -> tuple[int, int]:
    """The accesses of the loader of B and of those that store C, in a firing."""
    found = ports(product(pes, rows=True, size=size, **options))
    loaded, stored = found["B_loader"], found["C_store"]
    assert loaded is not None
    assert stored is not None
    return loaded[1], stored[1]


def test_neighbors_share_aligned_words() -> None:
    """Of at most 64 bytes, a power of two of PEs each, along either dimension."""
    assert stores_of((2, 4), (12, 8)) == (1, 2)
    assert stores_of((1, 16), (4, 32)) == (1, 1)
    assert stores_of((1, 32), (4, 32)) == (2, 2)
    assert stores_of((4, 6), (12, 12)) == (3, 12)
    assert stores_of((3, 3), (9, 9)) == (3, 9)
    assert stores_of((2, 4), (6, 4)) == (1, 2)
    assert stores_of((2, 2), (4, 7)) == (1, 2)  # 7 columns are padded to 8
    assert stores_of((2, 4), (12, 8), order="jj ii") == (1, 2)


def test_accesses_of_a_firing() -> None:
    for name, (func, expected) in CASES.items():
        found = ports(func)
        assert {node: found[node] for node in expected} == expected, name


def test_pes_beside_machines_have_ports_of_their_own() -> None:
    """Where each of them is a kernel; the loader of lengths keeps step and shares one."""
    graph = t2s.lower(cisr.spmv(machines=4, fused=1), {"A": MATRIX})
    loaders = ("A_loader", "A_loader_col_idx", "A_loader_row_len")
    found = {name: busiest_port(graph, graph.node(name)) for name in loaders}
    assert found == {
        "A_loader": ("A_values", 1),
        "A_loader_col_idx": ("A_col_idx", 1),
        "A_loader_row_len": ("A_row_len", 4),
    }


def run(func: Func, device: Device, engine: str = "native") -> SimResult:
    generator = np.random.default_rng(1)
    shapes = {tensor.name: tensor.shape for tensor in func.lower().tensors if tensor.name != "C"}
    inputs = {
        name: generator.integers(0, 4, shape).astype(np.float32) for name, shape in shapes.items()
    }
    return t2s.simulate(func, inputs, device=device, engine=engine, progress=False)


@pytest.mark.parametrize("engine", ["native", "python"])
def test_a_node_begins_a_firing_when_its_accesses_are_done(engine: str) -> None:
    """3 x 4 blocks of 16 steps, of which each loads 4 elements of A."""
    func, steps = product((4, 2)), 3 * 4 * 16
    assert run(func, DEVICES["ideal"], engine).cycles < steps + 16
    assert 4 * steps <= run(func, PORTS, engine).cycles < 4 * steps + 16


def test_the_cause_is_told() -> None:
    result = run(product((4, 2)), PORTS)
    assert str(result.nodes["A_loader"].interval) == (
        "II 4: 4 accesses of 'A' per firing, of which its port serves one in a cycle"
    )
    assert str(result.nodes["C"].interval) == "II 1"


def test_reports_say_the_interval_of_every_load_and_store(tmp_path: Path) -> None:
    """In the table of the text and on the page, also where a port is no limit."""
    result = run(product((1, 4), rows=True), PORTS)
    causes = {
        "A_loader": "II 1: 1 access of 'A' per firing",
        "B_loader": "II 1: 1 access of 'B' per firing",
        "C": "II 1",
        "C_store": "II 1: 1 access of 'C' per firing",
    }
    assert {row[0]: row[-1] for row in result.node_table.rows} == causes
    slow = run(product((4, 2)), PORTS)
    page = slow.report(tmp_path / "slow.html").read_text()
    told = html.escape(
        "II 4: 4 accesses of 'A' per firing, of which its port serves one in a cycle"
    )
    assert told in page
