"""Operations that share a cell: counts, cycles known beforehand, the same values on every road."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, Var
from t2s.backends.cgra_tia.fabric import EXTENDED_CORE, FABRICS, CgraFabric
from t2s.backends.cgra_tia.files import read_files, write_files
from t2s.backends.cgra_tia.files.summary import figures_of
from t2s.backends.cgra_tia.lift import lift_placed
from t2s.backends.cgra_tia.lower import lower_to_netlist, lowered, unsupported
from t2s.backends.cgra_tia.machine.profile_b import run_placed
from t2s.backends.cgra_tia.netlist import Netlist, unplaced
from t2s.backends.cgra_tia.place.buffer_sizing import RateCause, rate_limit
from t2s.backends.cgra_tia.text.printer import print_programs
from t2s.core.errors import UnsupportedError, UserError
from t2s.core.expr import Expr
from t2s.core.types import Type
from t2s.graph.graph import Graph
from tests.backends.cgra.designs import DOUBLE, gemm, ttmc
from tests.backends.cgra.lowering import cells_of, most_instructions, ran, whole_numbers
from tests.backends.cgra.test_lower_random import drawn, inputs_of_graph
from tests.sampling import sampled

PROGRAM = """
<D[0,0,0,0,1].multiply_add>
when %p == XXXXXXXX with %i5.0, %i0.0, %i1.0:
  fmul %o0.0, %i0, %i1; deq %i0, %i1, %i5;
when %p == XXXXXXXX with %i5.1, %i2.0, %i3.0, %i4.0:
  fmac %o1.0, %i2, %i3, %i4; deq %i2, %i3, %i4, %i5;
when %p == XXXXXXXX with %i5.2:
  nop; deq %i5;
"""


def pointwise(value: str, extent: int = 40, type: Type = DOUBLE) -> Func:
    """y[i] of v[i], w[i], x[i] and z[i], as an expression in Python, perhaps of y[i - 1]."""
    given = {name: ImageParam(type, 1, name=name) for name in ("v", "w", "x", "z")}
    y, i = Func("y", type=type), Var("i")
    found: Expr = eval(value, {**given, "i": i, "y": y, "t2s": t2s})
    y[i] = found
    return y.bound(i, 0, extent)


def fused(netlist: Netlist) -> list[str]:
    """The cells that several operations share."""
    return [cell.name for cell in netlist.cells if cell.turns]


def test_the_program_of_a_shared_cell() -> None:
    netlist = lower_to_netlist(t2s.lower(ttmc(1, 1, 1, 2, 2)), interval=2)
    (cell,) = (c for c in netlist.cells if c.name == "D[0,0,0,0,1].multiply_add")
    assert print_programs([cell.program], EXTENDED_CORE).strip() == PROGRAM.strip()
    assert [(turn.tags, turn.stage) for turn in cell.turns] == [((0,), 0), ((1,), 2)]
    (loop,) = (net for net in netlist.nets if net.source.part == net.sinks[0].end.part == cell.name)
    assert [sink.tokens for sink in loop.sinks] == [3]  # two products ahead, and a place


@pytest.mark.slow
def test_ttmc_takes_95_percent_of_the_fmas_with_one_for_a_point() -> None:
    """3^5 points: 243 cells, 27 + 9 + 9 feeders, 45 loads, 27 stores."""
    netlist = lower_to_netlist(t2s.lower(ttmc(3, 3, 3, 3, 3)), interval=2)
    counts = cells_of(netlist)
    assert (counts["fma"], counts["ctl"], counts["ld"], counts["st"]) == (243, 45, 45, 27)
    assert most_instructions(netlist) == 3


@pytest.mark.slow
@pytest.mark.parametrize(("latency", "fma_latency"), [(1, 4), (2, 4), (4, 4), (1, 0), (3, 7)])
def test_cycles_are_those_of_the_closed_form(latency: int, fma_latency: int) -> None:
    """T points on a chain of K PEs take 2 (T + d) + l + K (l + f) cycles.

    Products are d points ahead, so that 2 d + 1 cycles are enough for one: d = ceil(f / 2).
    """
    graph = t2s.lower(shared_chain(chain=4, points=24))
    netlist = lower_to_netlist(graph, interval=2, fma_latency=fma_latency)
    design = unplaced(netlist, replace(FABRICS["cgra8"], fma_latency=fma_latency), latency)
    branches = dict(design.branches)
    for net in netlist.nets:  # no cell is far from itself
        if net.source.part == net.sinks[0].end.part:
            branches[net.name] = tuple(replace(b, latency=1) for b in branches[net.name])
    run = run_placed(replace(design, branches=branches), whole_numbers(graph))
    ahead = -(-fma_latency // 2)
    assert run.cycles == 2 * (24 + ahead) + latency + 4 * (latency + fma_latency)
    for name in fused(netlist):
        tally = run.cells[name]
        assert tally.busy == 2 * (24 + ahead)
        assert tally.starved <= 4 * (latency + fma_latency)  # for the first sum, and then no more


def shared_chain(chain: int, points: int) -> Func:
    """y[i] is the sum over k of (v * w) * x, without buffers: a product and a sum on each PE."""
    names = ("v", "w", "x")
    v, w, x = (ImageParam(DOUBLE, 2, name=name) for name in names)
    y, i, k = Func("y"), Var("i"), t2s.RDom(0, chain, name="k")
    y[i] = 0.0
    y[i] += (v[i, k] * w[i, k]) * x[i, k]
    return y.bound(i, 0, points).reorder(k, i).unroll(k)


@sampled(
    ("value", "interval", "cells"),
    [
        ("(v[i] * w[i]) * x[i] + z[i]", 2, 1),
        ("(v[i] * w[i]) * x[i] + z[i] * v[i]", 2, 1),
        ("(v[i] * w[i]) * x[i] + z[i] * v[i]", 3, 1),
        ("(x[i] * x[i]) * x[i] + x[i]", 3, 1),
        ("((v[i] + 1.5) * w[i] - 2.5) * v[i] + 0.5", 4, 1),
        ("t2s.max(v[i] * w[i], x[i]) * v[i]", 2, 1),
        ("t2s.select(i < 5, v[i] * w[i], x[i] * w[i]) - t2s.select(i > 30, z[i], w[i])", 2, 1),
    ],
    quick=1,
)
@pytest.mark.parametrize("fma_latency", [0, 4, 5])
def test_values_and_cycles_are_the_same_everywhere(
    value: str, interval: int, cells: int, fma_latency: int
) -> None:
    graph = t2s.lower(pointwise(value))
    inputs = whole_numbers(graph)
    expected = t2s.simulate(graph, inputs, progress=False).outputs["y"]
    fabric = replace(FABRICS["cgra8"], name="mine", fma_latency=fma_latency)
    placed = t2s.cgra.place(graph, fabric=fabric, interval=interval)
    assert len(fused(placed.placed.netlist)) == cells
    run = placed.run(inputs)
    np.testing.assert_array_equal(run.outputs["y"], expected)
    for engine in ("python", "native"):
        found = t2s.simulate(placed, inputs, engine=engine, progress=False)
        np.testing.assert_array_equal(found.outputs["y"], expected)
        assert found.cycles == run.cycles


def test_what_waits_for_itself_does_not_run_ahead() -> None:
    """The product takes the last sum: a point is only begun when the one before it is done."""
    design = pointwise("t2s.select(i == 0, z[i], (y[i - 1] * v[i]) * w[i] + x[i])", 12)
    graph = t2s.lower(design)
    netlist = lower_to_netlist(graph, interval=2)
    (cell,) = (cell for cell in netlist.cells if cell.turns)
    assert [turn.stage for turn in cell.turns] == [0, 0]
    inputs = whole_numbers(graph)
    expected = t2s.simulate(graph, inputs, progress=False).outputs["y"]
    with pytest.warns(t2s.errors.T2SWarning, match="runs at 10% of its rate"):
        placed = t2s.cgra.place(graph, interval=2)
    limit = rate_limit(placed.placed)
    assert limit is not None
    assert limit.cause is not RateCause.TURNS
    assert limit.rate == Fraction(1, 10)  # 4 + 1 cycles for the product, and as many for the sum
    np.testing.assert_array_equal(placed.run(inputs).outputs["y"], expected)


@pytest.mark.slow
def test_a_ring_of_shared_cells_holds_a_tile() -> None:
    """Sums that go round over l: two cycles a point if enough of them do."""
    design = ttmc(1, 1, 1, 2, 2, 5, 5, 4, 3)
    graph = t2s.lower(design)
    inputs = whole_numbers(graph)
    placed = t2s.cgra.place(graph, interval=2)
    limit = rate_limit(placed.placed)
    assert limit is not None
    assert limit.cause is RateCause.TURNS
    assert limit.cycles == 2
    run = placed.run(inputs)
    found = t2s.simulate(placed, inputs, progress=False)
    np.testing.assert_array_equal(run.outputs["D"], t2s.interpret(design, inputs))
    np.testing.assert_array_equal(found.outputs["D"], run.outputs["D"])
    assert found.cycles == run.cycles <= 2 * 300 / 0.9


@pytest.mark.slow
def test_ttmc_of_243_cells_fires_in_every_cycle() -> None:
    """1,000 points for each cell, two firings each; what is alike is one node with few channels."""
    design = ttmc(3, 3, 3, 3, 3, 10, 10, 10)
    placed = t2s.cgra.place(design, interval=2)
    figures = figures_of(placed.placed)
    assert placed.placed.fabric.name == "cgra32"
    assert figures.fma_usage == Fraction(243, 256)
    assert figures.limit is not None
    assert figures.limit.cause is RateCause.TURNS
    inputs = whole_numbers(t2s.lower(design))
    run = placed.run(inputs)
    np.testing.assert_array_equal(run.outputs["D"], t2s.interpret(design, inputs))
    for name in fused(placed.placed.netlist):
        tally = run.cells[name]
        assert tally.busy >= 2000
        assert tally.busy >= 0.98 * (tally.last - tally.first + 1 - tally.starved)
    stores = [tally for name, tally in run.units.items() if name.startswith("D_store")]
    assert len(stores) == 27
    for tally in stores:  # a result in every second cycle, from the first to the last
        assert 2 * tally.busy >= 0.98 * (tally.last - tally.first + 1)
    found = t2s.simulate(placed, inputs, progress=False)
    np.testing.assert_array_equal(found.outputs["D"], run.outputs["D"])
    assert found.cycles == run.cycles
    assert len(placed.graph.pe_arrays) <= 20


def test_a_design_of_one_operation_a_point_stays_as_it_is() -> None:
    graph = t2s.lower(gemm(2, 2, 2))
    assert lower_to_netlist(graph, interval=4) == lower_to_netlist(graph)


def test_files_know_the_turns_and_the_table_says_the_rate(
    recwarn: pytest.WarningsRecorder,
) -> None:
    placed = t2s.cgra.place(pointwise("(v[i] * w[i]) * x[i] + z[i]"), interval=2)
    assert not recwarn.list  # it was asked for
    assert "a firing in every 2 cycles: operations share cells" in str(placed)
    assert "operations share what has a color" in placed.picture_of_limit().svg
    files = write_files(placed.placed)
    assert read_files(files) == placed.placed
    text = files["y.placement.json"]
    turns = '"turns": [{"tags": [0]}, {"tags": [1], "stage": 2}]'
    assert turns in text
    for wrong in ("[]}]", "[1]}]", '[0]}, {"tags": [9]}]', '[0], "stage": 1}, {"tags": [1]}]'):
        changed = text.replace(turns, f'"turns": [{{"tags": {wrong}')
        with pytest.raises(UserError, match=r"the turns of 'y.multiply_add'"):
            read_files({**files, "y.placement.json": changed})


NINE = "".join(f"t2s.select(i < {n}, {n + 2}, " for n in range(1, 9)) + "11" + ")" * 8

REFUSED = {
    "channels": (
        "((v[i] * w[i]) * (x[i] * z[i])) * ((v[i] + x[i]) * (w[i] + z[i]))",
        7,
        "the cell of its 'multiply and add' would need 15 input channels, and a cell has 8: give "
        "it fewer operands, or fewer conditions on loops, or take a smaller interval",
    ),
    "registers": (
        "((((v[i] + 1.5) * 2.5 + 3.5) * 4.5 + 5.5) * 6.5 + 7.5) * 8.5 + 9.5",
        8,
        "the cell of its 'add' would need 9 registers, and a cell has 8: give it fewer operands, "
        "or fewer conditions on loops",
    ),
    "tags": (
        f"v[i] * {NINE} - {NINE}",
        2,
        "the cell of its 'multiply and subtract' would need 18 different actions, selected "
        "by tags, and a cell has 16: give it fewer operands, or fewer conditions on loops, or take "
        "a smaller interval",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_cells_are_as_large_as_they_are(what: str) -> None:
    value, interval, text = REFUSED[what]
    design = pointwise(value, type=Int(64) if what == "tags" else DOUBLE)
    with pytest.raises(UnsupportedError) as refused:
        t2s.cgra.place(design, interval=interval)
    assert text in " ".join(str(refused.value).split())


@pytest.mark.parametrize("interval", [0, 17, 1.5, True, "2"])
def test_an_interval_is_a_small_number(interval: object) -> None:
    with pytest.raises(UserError) as refused:
        t2s.cgra.place(pointwise("v[i] + w[i]"), interval=interval)  # type: ignore[arg-type]
    text = str(refused.value)
    assert "interval= must be the number of operations that share a cell" in text
    assert "a whole number from 1 to 16" in text
    assert repr(interval) in text


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_random_programs_have_the_values_of_the_simulator(part: int) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(1000 + 20 * part, 1020 + 20 * part):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = drawn(seed)
        if found is None or unsupported(found[1], contract=False):
            continue
        text, graph = found
        kinds[_agrees(text, graph, seed)] += 1
    assert kinds["shared"] >= 3


def _agrees(text: str, graph: Graph, seed: int) -> str:
    interval, latency, fma_latency = 2 + seed % 3, 1 + seed % 4, seed % 6
    found = lowered(graph, contract=False, interval=interval, fma_latency=fma_latency)
    if isinstance(found, list):
        assert all("or take a smaller interval" in problem.why for problem in found), text
        return "refused"
    netlist = found
    inputs = inputs_of_graph(graph, seed)
    run = ran(netlist, inputs, latency=latency, fma_latency=fma_latency)
    for name, array in t2s.simulate(graph, inputs, progress=False).outputs.items():
        assert np.array_equal(run.outputs[name], array, equal_nan=array.dtype.kind == "f"), text
    if not fused(netlist):
        return "alone"
    fabric = CgraFabric(name="open", rows=64, columns=64, fma_latency=fma_latency)
    try:
        lifted = lift_placed(unplaced(netlist, fabric, latency))
    except UserError:  # it looks at the bits of floats
        return "shared"
    found = t2s.simulate(lifted, inputs, engine="python", progress=False)
    assert found.cycles == run.cycles, text
    for name, array in found.outputs.items():
        assert np.array_equal(run.outputs[name], array, equal_nan=array.dtype.kind == "f"), text
    return "shared"
