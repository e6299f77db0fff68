"""``t2s.cgra.place``: what is simulated is the text that was written."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import t2s
from t2s import Float, Func, ImageParam, Int, RDom, Var, sparse
from t2s.backends.cgra_tia.lift.placed import parts_of_nodes
from t2s.driver.placement import find_fabric
from t2s.errors import UnsupportedError, UserError

A4 = np.arange(16.0).reshape(4, 4) - 7
X4 = np.array([3.0, -1.0, 4.0, 1.0])


pytestmark = pytest.mark.filterwarnings("ignore::t2s.errors.T2SWarning")  # a ring that is not full
DOUBLE = Float(64)


def _product(size: int = 4, type: t2s.Type = DOUBLE) -> Func:
    A, x = ImageParam(type, 2, name="A"), ImageParam(type, 1, name="x")
    i, k, kk = Var("i"), RDom(0, size, name="k"), Var("kk")
    y = Func("y")
    y[i] = 0.0
    y[i] += A[i, k] * x[k]
    return y.bound(i, 0, size).split(k, k, kk, 2).reorder(kk, i, k).unroll(kk)


@pytest.fixture(scope="module")
def placed() -> t2s.cgra.Placement:
    return t2s.cgra.place(_product(), fabric="cgra8")


@pytest.mark.parametrize("engine", ["native", "python"])
def test_instructions_and_graph_run_to_the_same_cycle(
    placed: t2s.cgra.Placement, engine: str
) -> None:
    stepped = placed.run({"A": A4, "x": X4})
    result = t2s.simulate(placed, {"A": A4, "x": X4}, engine=engine)
    np.testing.assert_array_equal(result.outputs["y"], A4 @ X4)
    np.testing.assert_array_equal(stepped.outputs["y"], A4 @ X4)
    assert result.cycles == stepped.cycles == t2s.cycles(placed)


def test_a_folder_is_read_to_the_same_design(placed: t2s.cgra.Placement, tmp_path: Path) -> None:
    paths = placed.emit(tmp_path / "there")
    assert sorted(path.name for path in paths) == [
        "y.placement.json",
        "y.placement.svg",
        "y.tia",
    ]
    again = t2s.cgra.read_placement(tmp_path / "there")
    assert again.placed == placed.placed
    assert again.files == placed.files
    result = t2s.simulate(again, {"A": A4, "x": X4})
    np.testing.assert_array_equal(result.outputs["y"], A4 @ X4)
    assert result.cycles == t2s.cycles(placed)


def test_emit_writes_the_files_of_the_smallest_fabric(
    placed: t2s.cgra.Placement, tmp_path: Path
) -> None:
    t2s.emit(_product(), "cgra_tia", tmp_path)
    assert {p.name: p.read_text(encoding="utf-8") for p in tmp_path.iterdir()} == placed.files


def test_seeds_give_other_places_and_the_same_values(placed: t2s.cgra.Placement) -> None:
    other = t2s.cgra.place(_product(), fabric="cgra8", seed=7)
    assert other.placed.sites != placed.placed.sites
    found = t2s.simulate(other, {"A": A4, "x": X4})
    np.testing.assert_array_equal(found.outputs["y"], A4 @ X4)


def test_a_fabric_of_ones_own() -> None:
    from t2s.backends.cgra_tia.fabric import CgraFabric

    own = CgraFabric(name="own", rows=4, columns=6, pattern=("cf", "fc"), fma_latency=2)
    found = t2s.cgra.place(_product(), fabric=own)
    assert found.placed.fabric is own
    result = t2s.simulate(found, {"A": A4, "x": X4})
    np.testing.assert_array_equal(result.outputs["y"], A4 @ X4)


def test_values_without_contraction_are_those_of_numpy_bit_by_bit() -> None:
    generator = np.random.default_rng(3)
    inputs = {"A": generator.random((4, 4)), "x": generator.random(4)}
    exact = t2s.interpret(_product(), inputs)
    apart = t2s.cgra.place(_product(), fabric="cgra8", contract=False)
    np.testing.assert_array_equal(t2s.simulate(apart, inputs).outputs["y"], exact)
    fused = t2s.simulate(t2s.cgra.place(_product(), fabric="cgra8"), inputs).outputs["y"]
    np.testing.assert_allclose(fused, exact, rtol=1e-15)


def test_scalars_of_the_user() -> None:
    X, a, i, y = (
        ImageParam(Float(64), 1, name="X"),
        t2s.Param(Float(64), name="a"),
        Var("i"),
        Func("y"),
    )
    y[i] = X[i] * a + 1.0
    found = t2s.cgra.place(y.bound(i, 0, 6), fabric="cgra8")
    x = np.arange(6.0)
    for factor in (2.0, -0.5):
        inputs = {"X": x, "a": factor}
        result = t2s.simulate(found, inputs)
        np.testing.assert_array_equal(result.outputs["y"], x * factor + 1)
        np.testing.assert_array_equal(found.run(inputs).outputs["y"], x * factor + 1)
        assert found.run(inputs).cycles == result.cycles


def test_it_can_be_looked_at(placed: t2s.cgra.Placement) -> None:
    text = str(placed)
    assert "cells with an FMA" in text
    assert "FMA usage" in text
    assert repr(placed) == "<Placement of y on cgra8>"
    page = placed._repr_html_()
    assert "<svg" in page
    assert "<table" in page
    assert "<script" not in page


def _shapes(picture: object) -> dict[str, ElementTree.Element]:
    """The parts of a picture by the first line of their titles."""
    found = {}
    for item in ElementTree.fromstring(str(picture)):
        title = item.find("{http://www.w3.org/2000/svg}title")
        if title is not None and title.text:
            found[title.text.split("\n")[0]] = item
    return found


def test_pictures_of_a_run(placed: t2s.cgra.Placement, tmp_path: Path) -> None:
    run = placed.run({"A": A4, "x": X4})
    for kind in ("busy", "starved", "blocked", "waiting", "idle"):
        picture = placed.picture_of_run(run, kind)
        shapes = _shapes(picture)
        assert set(placed.placed.sites) == set(shapes)  # one for each part
        assert f"{kind} cycles: blue none" in str(picture)
    for name, shares in run.shares().items():
        assert sum(shares.values()) == pytest.approx(1)
        text = "".join(shapes[name].itertext())
        assert f"busy {shares['busy']:.1%}" in text
        assert shapes[name].get("fill") == f"hsl({round(240 - 240 * shares['idle'])},70%,55%)"
    path = placed.picture_of_run(run).write(tmp_path / "busy.svg")
    assert path.read_text(encoding="utf-8") == placed.picture_of_run(run)._repr_svg_()


def test_pictures_of_a_simulation(placed: t2s.cgra.Placement) -> None:
    """Parts that are alike have the mean of all of them."""
    inputs = {"A": A4, "x": X4}
    shares = placed.run(inputs).shares()
    nodes = parts_of_nodes(placed.placed)
    assert {part for parts in nodes.values() for part in parts} == set(shares)
    for kind in ("busy", "blocked", "idle"):
        shapes = _shapes(placed.picture_of_run(t2s.simulate(placed, inputs), kind))
        assert set(shapes) == set(shares)
        for parts in nodes.values():
            mean = sum(shares[part][kind] for part in parts) / len(parts)
            assert all(f"{kind} {mean:.1%}" in "".join(shapes[p].itertext()) for p in parts)


def test_pictures_of_a_sparse_run() -> None:
    kernel = sparse.compile(sparse.parse("y(i) = A(i,j) * x(j)", {"A": "ds"}))
    inputs = {"A": np.diag([1.0, 2.0, 0.0]), "x": np.arange(3.0)}
    placed = t2s.cgra.place(kernel, inputs)
    for run in (placed.run(inputs), t2s.simulate(placed, inputs)):
        shapes = _shapes(placed.picture_of_run(run))
        assert set(shapes) == set(placed.placed.sites)
        assert shapes["reduce_j"].get("fill") != "none"
    other = t2s.simulate(kernel, inputs)
    with pytest.raises(UserError, match="is not of this placement of"):
        placed.picture_of_run(other)


def test_pictures_of_nets_tracks_and_the_limit(placed: t2s.cgra.Placement) -> None:
    parts = set(placed.placed.sites)
    assert parts < set(_shapes(placed.picture()))
    for group in placed.groups:
        nets = {net.name for net in placed.placed.netlist.nets if net.group == group}
        shown = {name.split(" of ")[0] for name in set(_shapes(placed.picture(group))) - parts}
        assert shown == nets
    bars = {name for name in _shapes(placed.picture_of_tracks()) if name.endswith("tracks")}
    assert bars <= {"1 of 3 tracks", "2 of 3 tracks", "3 of 3 tracks"}
    assert "red: all 3" in str(placed.picture_of_tracks())
    limit = _shapes(placed.picture_of_limit())  # the ring of the sum
    colored = {name for name in parts if limit[name].get("fill") != "none"}
    assert colored == {"y[0]", "y[1]"}
    assert "firings in" in str(placed.picture_of_limit())
    assert placed.picture()._repr_svg_() in placed._repr_html_()
    assert "<table" in placed._repr_html_()


@pytest.mark.parametrize(
    ("wrong", "says", "expected"),
    [
        (lambda p, run: p.picture("nets"), "unknown net group 'nets'", "one of A_"),
        (
            lambda p, run: p.picture_of_run(run, "bored"),
            "unknown kind of cycles 'bored'",
            "one of busy, starved, blocked, waiting, idle",
        ),
        (lambda p, run: p.picture_of_run("run"), "the run", "what Placement.run gives"),
        (
            lambda p, run: t2s.cgra.place(_product(8), fabric="cgra8").picture_of_run(
                replace(run, cells={})
            ),
            "the run of 'y' is not of this placement of 'y'",
            "a run of the same cells and units",
        ),
        (lambda p, run: p.picture().write("/no/folder/x.svg"), "cannot be written", "a name in"),
    ],
)
def test_pictures_that_there_are_not(
    placed: t2s.cgra.Placement, wrong: Any, says: str, expected: str
) -> None:
    run = placed.run({"A": A4, "x": X4})
    with pytest.raises(UserError) as caught:
        wrong(placed, run)
    assert says in str(caught.value)
    assert expected in str(caught.value)


def test_other_inputs_than_those_it_was_placed_for() -> None:
    X, i, y, N = ImageParam(DOUBLE, 1, name="X"), Var("i"), Func("y"), t2s.Param(Int(32), name="N")
    y[i] = X[i] * 2.0
    y.bound(i, 0, N)
    found = t2s.cgra.place(y, {"N": 4}, fabric="cgra8")
    given = {"N": 4, "X": np.ones(4)}
    np.testing.assert_array_equal(t2s.simulate(found, given).outputs["y"], np.full(4, 2.0))
    for use in (t2s.simulate, lambda design, inputs: design.run(inputs)):
        with pytest.raises(UserError, match="was placed for other inputs"):
            use(found, {"N": 5, "X": np.ones(5)})


@pytest.mark.parametrize("verb", [t2s.simulate, t2s.cycles, t2s.fit_depths, t2s.verilate])
def test_latencies_are_those_of_the_fabric(placed: t2s.cgra.Placement, verb: Any) -> None:
    with pytest.raises(UserError) as caught:
        verb(placed, {"A": A4, "x": X4}, device="cgra8")
    assert "the latencies of 'y' are those of its fabric" in str(caught.value)
    assert "given:    device 'cgra8'" in str(caught.value)
    slower = t2s.cycles(placed, {"A": A4, "x": X4}, memory="ddr4-2133")
    assert slower > t2s.cycles(placed)


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        find_fabric("cgra9")
    assert "one of cgra8, cgra16, cgra32, or a CgraFabric" in str(caught.value)
    with pytest.raises(UserError, match="no such folder"):
        t2s.cgra.read_placement(tmp_path / "nothing")
    with pytest.raises(UserError, match="placement"):
        t2s.cgra.read_placement(tmp_path)
    with pytest.raises(UnsupportedError) as caught:
        t2s.cgra.place(_product(type=Float(32)))
    assert "float32" in str(caught.value)
    assert caught.value.location is not None
    staged = t2s.sparse.compile(
        t2s.sparse.parse("C(i,k) = A(i,j) * B(j,k)", {"A": "ds", "B": "ds"}),
        "precompute(A(i,j)*B(j,k),t)",
    )
    eye = np.eye(2)
    with pytest.raises(UnsupportedError, match="graphs, which run one after the other"):
        t2s.cgra.place(staged, {"A": eye, "B": eye})


@pytest.mark.verilator
@pytest.mark.slow
def test_a_larger_array_runs_as_verilog_to_the_same_cycle() -> None:
    """Sixteen FMAs with virtual buffers, rings, units and wires."""
    namespace = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "cgra" / "ladder.py"))
    placed = t2s.cgra.place(namespace["design"](), fabric="cgra8")
    generator = np.random.default_rng(3)
    inputs = {name: generator.integers(-9, 10, (16, 16)).astype(float) for name in "AB"}
    found = t2s.verilate(placed, inputs)
    np.testing.assert_array_equal(found.outputs["C"], inputs["A"] @ inputs["B"])
    assert found.cycles == placed.run(inputs).cycles == t2s.simulate(placed, inputs).cycles
