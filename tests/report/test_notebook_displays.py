"""What notebooks show of the objects that users have: well-formed, true, small, and escaped."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse as scipy_sparse

import t2s
from t2s import Float, Func, Int, Var
from t2s.report.product_report import ProductReport
from t2s.representation import MatrixParam, Representation, dense_matrix, gallery
from t2s.simulator.report.result import SimResult
from t2s.sparse_repr.representation import storage
from t2s.sparse_repr.representation.storage import decode
from tests.report.page.designs import inputs_of, product

HOSTILE = "<script>alert(1)</script>"
MOST = 300_000
COUNTS = (
    "steps", "bound", "cycles", "latency", "x", "decoder", "waits", "y", "overlap", "conflicts",
    "stalls",
)  # fmt: skip


def parsed(shown: Any, *, paths: bool = False) -> tuple[ElementTree.Element, str]:
    """The card of an object, which is well-formed, and its text; checks what holds of all."""
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"] == str(shown)
    html = bundle["text/html"]
    assert len(html.encode()) < MOST
    assert bundle == shown._repr_mimebundle_()
    assert "://" not in html
    assert paths or str(Path(__file__).parent) not in html
    found = ElementTree.fromstring(html)
    assert not {"script", "link", "img", "style"} & {part.tag for part in found.iter()}
    return found, " ".join(" ".join(found.itertext()).split())


@cache
def run() -> SimResult:
    result: SimResult = t2s.simulate(product(), inputs_of(), device="arria10")
    return result


@cache
def spmv() -> Any:
    y, A = t2s.sparse.Tensor("y", "d"), t2s.sparse.Tensor("A", "ds")
    x = t2s.sparse.Tensor("x", "d")
    i, j = t2s.variables("i j")
    y[i] = A[i, j] * x[j]
    return y


def matrix(rows: int = 20, columns: int = 30) -> Any:
    rng = np.random.default_rng(1)
    return scipy_sparse.random(rows, columns, 0.15, format="csr", random_state=rng)


def test_a_func_shows_its_loops() -> None:
    C = product()
    text = parsed(C)[1]
    loops = " ".join(t2s.print_loop_nest(C).split())
    assert text == f"Func C {loops}"


def test_a_func_that_has_no_loops_says_why() -> None:
    text = parsed(Func("nothing"), paths=True)[1]  # those of the error
    assert "No loop nest yet." in text
    with pytest.raises(t2s.errors.UserError) as caught:
        t2s.print_loop_nest(Func("nothing"))
    assert str(caught.value).splitlines()[0] in text


def test_a_graph_shows_nodes_and_channels() -> None:
    graph = t2s.lower(product())
    found, text = parsed(graph)
    assert f"nodes {len(graph.nodes)} of {sum(n.pe_count for n in graph.nodes)} PEs" in text
    for channel in graph.channels:
        assert f"{channel.name}: {channel.element_count:,} FIFOs" in text
    boxes = [part for part in found.iter() if part.tag == "rect"]
    assert len(boxes) == len(graph.nodes)
    hostile = replace(graph, name=HOSTILE)
    assert HOSTILE in parsed(hostile)[1]


def test_a_result_shows_its_numbers() -> None:
    result = run()
    found, text = parsed(result)
    for label, value in result.summary:
        assert f"{label} {' '.join(value.split())}" in text
    for table in (result.node_table, result.stalls.table):
        for row in table.rows:
            assert " ".join(row) in text
    bars = [part for part in found.iter() if part.tag == "rect" and part[:1]]
    said = {bar[0].text or "" for bar in bars}
    for row in result.stalls:
        assert f"{row.node}: busy {row.busy:,} PE-cycles ({row.share('busy'):.1%})" in said
    assert HOSTILE in parsed(replace(result, graph=HOSTILE))[1]


def test_a_fit_and_its_front() -> None:
    fit = t2s.fit_depths(product(), device="arria10", progress=False, budget_bytes=600)
    text = parsed(fit)[1]
    for channel in fit.channels:
        assert f"{channel.name}: depth {channel.depth:,}, {channel.bytes:,} bytes" in text
    assert f"cycles {fit.cycles:,}" in text
    assert fit.front is not None
    assert fit.front.table.title in parsed(fit.front)[1]


def test_outcomes_show_cycles_and_what_is_best() -> None:
    runs = [
        t2s.Run(product(), inputs_of(), name=HOSTILE),
        t2s.Run(Func("nothing"), {}, name="none"),
        t2s.Run(one_pe(), {"A": inputs_of(4, 16)["A"]}, name="one PE"),
    ]
    outcomes = t2s.simulate_many(runs, progress=False)
    found, text = parsed(outcomes)
    for row in outcomes.table.rows:
        assert " ".join(row) in text
    circles = [part for part in found.iter() if part.tag == "circle"]
    assert len(circles) == 2
    assert len(parsed(t2s.simulate_many([], progress=False))[1]) < 200


def one_pe() -> Func:
    A = t2s.ImageParam(Float(32), 2, name="A")
    i, k = Var("i"), t2s.RDom(0, 16, name="k")
    y = Func("y")
    y[i] = 0.0
    y[i] += A[i, k]
    y.bound(i, 0, 4)
    return y


def test_kernels_and_their_results() -> None:
    y = spmv()
    assert "definition y(i) = sum(j, A(i,j)*x(j))" in parsed(y)[1]
    kernel = t2s.sparse.compile(y)
    found, text = parsed(kernel)
    assert " ".join(str(kernel).split()) in text
    boxes = [part for part in found.iter() if part.tag == "rect"]
    assert len(boxes) == sum(len(diagram.blocks) for diagram in kernel.diagrams)
    on_chip = t2s.sparse.compile(y, target="capstan")
    text = parsed(on_chip)[1]
    assert " ".join(on_chip.memories().split()) in text
    result = kernel.simulate({"A": matrix(), "x": np.ones(30)})
    text = parsed(result)[1]
    assert f"cycles {result.cycles:,} of 1 stages" in text
    assert result.stages[0].stalls.table.title in text
    assert "shape 20 format d:0" in text


@pytest.mark.parametrize("shape", [(), (0,), (5,), (0, 4), (3, 1), (70, 200), (4, 5, 6), (2,) * 5])
def test_tensors_of_any_order(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    values = np.where(rng.random(shape) < 0.3, 1.0, 0.0)
    made = t2s.sparse.from_dense(values, t2s.sparse.csf(len(shape)))
    text = parsed(made)[1]
    if shape:
        assert f"entries {int(values.sum()):,} " in text


def test_large_matrices_are_drawn_in_cells() -> None:
    places = [[0, 0], [0, 1], [1 << 35, 50]]
    made = t2s.sparse.from_coordinates(places, [1.0] * 3, ((1 << 35) + 1, 51), "ss")
    assert "entries 3 " in parsed(made)[1]
    repeated = t2s.sparse.from_levels(
        (2, 2), "uq", [{"pos": [0, 2], "crd": [1, 1]}, {"crd": [0, 0]}], [1.0, 2.0]
    )
    assert [part for part in parsed(repeated)[0].iter() if part.get("d")]
    rows, columns = np.divmod(np.arange(90_000), 300)
    full = t2s.sparse.from_coordinates(
        np.stack([rows, columns], 1), np.ones(90_000), (300, 300), "ds"
    )
    assert "entries 90,000 " in parsed(full)[1]


def test_a_wide_tensor_is_shown_without_a_picture() -> None:
    made = t2s.sparse.from_coordinates([[0, 1, 2]], [1.0], (1 << 40, 1 << 40, 1 << 40))
    found, text = parsed(made)
    assert not [part for part in found.iter() if part.tag == "svg"]
    assert "The tensor is too large to draw." in text


def test_what_is_too_much_to_draw_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    y, A = t2s.sparse.Tensor("y", "d"), t2s.sparse.Tensor("A", "ds")
    i, j = t2s.variables("i j")
    y[i] = A[i, j]
    kernel = t2s.sparse.compile(y, "parallelize(i,64)")
    assert "There are too many blocks to draw." in parsed(kernel)[1]
    (graph,) = kernel.graphs({"A": matrix()})
    assert f"nodes {len(graph.nodes):,} of" in parsed(graph)[1]
    assert "There are too many nodes to draw, or none." in parsed(graph)[1]
    monkeypatch.setattr(storage, "MOST_VALUES", 10)
    stored = MatrixParam(Float(64), 2, gallery.csr(), name="A").store(matrix())
    assert "More than 10 values are not drawn." in parsed(stored)[1]


CHAINS = (
    "csr", "csc", "cisr", "ell", "sliced_ell", "blocked_csr", "blocked_csc", "row_blocks", "dcsr",
    "coo", "dia",
)  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_representations_and_what_they_store(name: str) -> None:
    chain = getattr(gallery, name)(machines=3)
    assert " .".join(chain.written) in parsed(chain)[1]
    stored = MatrixParam(Float(64), 2, chain, name="A").store(matrix())
    found, text = parsed(stored)
    assert f"padding {stored.padding:.1%} of the stored values" in text
    assert f"balance {stored.balance:.1%} =" in text
    for row in stored.table.rows:
        assert " ".join(row) in text
    entries = [part.text or "" for part in found.iter() if (part.text or "").startswith("machine ")]
    held = {text.split(":")[0]: int(text.split()[-2].replace(",", "")) for text in entries}
    rows, _ = decode(stored)
    stored_entries = (rows >= 0) & (stored.values != 0)
    expected = {f"machine {n}": int(row.sum()) for n, row in enumerate(stored_entries) if row.any()}
    assert held == expected


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(CHAINS),
    st.integers(0, 9),
    st.integers(0, 90),
    st.integers(1, 40),
    st.sampled_from([0.0, 0.1, 1.0]),
)
def test_storage_of_any_shape(
    name: str, rows: int, columns: int, machines: int, density: float
) -> None:
    rng = np.random.default_rng(rows * 100 + columns)
    values = (rng.random((rows, columns)) < density).astype(np.int32)
    chain = getattr(gallery, name)(machines=machines)
    try:
        stored = MatrixParam(Int(32), 2, chain, name="A").store(values)
    except t2s.errors.UserError:
        return
    text = parsed(stored)[1]
    assert f"matrix {rows:,} x {columns:,} int32, {int(values.sum()):,} entries" in text


def test_a_representation_before_it_is_defined() -> None:
    assert "chain not defined yet" in parsed(Representation("Later"))[1]
    assert "structure none" in parsed(dense_matrix())[1]


def test_reports_of_resources_and_products() -> None:
    found = t2s.resources(product())
    text = parsed(found)[1]
    for label, value in found.summary:
        assert f"{label} {value}" in text
    facts = {name: 7 * n for n, name in enumerate(COUNTS)}
    report = ProductReport(padding=0.25, balance=0.5, waits_for=HOSTILE, **facts)
    text = parsed(report)[1]
    assert f"bound: {report.bound} cycles" in text
    assert f"waits: {report.waits} cycles" in text
    assert f"{report.waits:,} waits ({HOSTILE})" in text


def test_a_comparison_shows_its_waterfall_and_its_tables() -> None:
    found = t2s.compare(run(), run().retime({"A_loader_to_C": 1}), names=("ideal", HOSTILE))
    text = parsed(found)[1]
    assert " ".join(found.sentence.split()) in text
    for table in found.tables:
        for row in table.rows:
            assert " ".join(" ".join(row).split()) in text
    assert found.svg().html() in found._repr_html_()


def test_plans_and_their_results() -> None:
    text = "fix(i), map(A(i,j)*x(j),blas.ddot,densify)"
    plan = t2s.sparse.compile(t2s.sparse.parse("y(i) = A(i,j)*x(j)", {"A": "ds"}), text)
    found, shown = parsed(plan)
    assert " ".join(str(plan).split()) in shown
    assert len([part for part in found.iter() if part.tag == "rect"]) == len(plan.program.steps)
    result = plan.run({"A": matrix(), "x": np.ones(30)})
    shown = parsed(result)[1]
    assert f" = {result.times}" in shown
    assert "shape 20 format d:0" in shown


def test_capstan_shows_units_and_causes() -> None:
    kernel = t2s.sparse.compile(spmv(), target="capstan")
    units = kernel.resources()
    shown = parsed(units)[1]
    for row in units.table.rows:
        assert " ".join(" ".join(row).split()) in shown
    result = kernel.simulate({"A": matrix(), "x": np.ones(30)})
    found, shown = parsed(result)
    assert f"{result.cycles:,} cycles" in shown
    for row in (*result.parts.table.rows, *result.units.table.rows):
        assert " ".join(" ".join(row).split()) in shown
    assert [part for part in found.iter() if part.tag == "svg"]
    plain = kernel.simulate({"A": matrix(), "x": np.ones(30)}, memory="ideal", engine="python")
    assert plain.units.table.title in parsed(plain)[1]
