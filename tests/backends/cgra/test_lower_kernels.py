"""The kernels of T2S-Tensor's CGRA, lowered: values, cells and cycles known beforehand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import t2s
from t2s import Int
from t2s.backends.cgra_tia.fabric import EXTENDED_CORE, FABRICS
from t2s.backends.cgra_tia.lower import lower_to_netlist
from t2s.backends.cgra_tia.machine.profile_b import run_placed
from t2s.backends.cgra_tia.netlist import PlacedDesign, unplaced
from t2s.backends.cgra_tia.text.printer import print_programs
from t2s.core.errors import UserError
from tests.backends.cgra.designs import convolution, gemm, mttkrp, replayed, ttm, ttmc
from tests.backends.cgra.lowering import agrees, cells_of, most_instructions, ran, whole_numbers
from tests.sampling import sampled

PROGRAMS = """
<C[0,0,0]>
when %p == XXXXXXXX with %i3.0, %i0.0, %i1.0:
  fmac %o0.0, $0, %i0, %i1; deq %i0, %i1, %i3;
when %p == XXXXXXXX with %i3.1, %i0.0, %i1.0, %i2.0:
  fmac %o0.0, %i2, %i0, %i1; deq %i0, %i1, %i2, %i3;

<B_feeder[0,0].B_buffer>
when %p == XXXXXXXX with %i2.0, %i0.0:
  mov %o{0, 1}.0, %i0; deq %i0, %i2;
when %p == XXXXXXXX with %i2.1, %i1.0:
  mov %o{0, 1}.0, %i1; deq %i1, %i2;
when %p == XXXXXXXX with %i2.2, %i1.0:
  mov %o0.0, %i1; deq %i1, %i2;
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("latency", "fma_latency", "cycles"), [(1, 0, 69), (2, 4, 90), (4, 4, 100)]
)
def test_sums_in_space_take_the_cycles_of_the_closed_form(
    latency: int, fma_latency: int, cycles: int
) -> None:
    """T firings, a chain of K PEs: T + l + K * (l + f), with T = 64 and K = 4."""
    _, run = agrees(gemm(4, 4, 4, 8, 8), latency=latency, fma_latency=fma_latency)
    assert run.cycles == cycles
    assert run.utilization == pytest.approx(64 / cycles)


def test_values_are_those_of_numpy() -> None:
    graph = gemm(2, 3, 4, 2, 3, 2, loaded=True, buffered=True).lower()
    inputs = whole_numbers(graph)
    run = ran(lower_to_netlist(graph), inputs)
    np.testing.assert_array_equal(run.outputs["C"], inputs["D"] + inputs["A"] @ inputs["B"])


@sampled("loaded", [False, True], quick=1)
@pytest.mark.parametrize("sizes", [(2, 2, 4), (4, 4, 4)])
def test_an_fma_has_one_instruction_where_all_of_the_sum_is_in_space(
    sizes: tuple[int, int, int], loaded: bool
) -> None:
    ii, jj, kk = sizes
    netlist, _ = agrees(gemm(*sizes, 2, 3, loaded=loaded))
    loads = ii * kk + jj * kk + (ii * jj if loaded else 0)
    assert cells_of(netlist) == {"fma": ii * jj * kk, "ld": loads, "st": ii * jj}
    assert most_instructions(netlist) == 1


def test_a_sum_in_time_needs_three_instructions_at_most() -> None:
    netlist, _ = agrees(gemm(2, 2, 2, 3, 2, 4))
    assert most_instructions(netlist) == 2  # the head of a chain, and its end
    netlist, _ = agrees(gemm(2, 2, 1, 3, 2, 4))
    assert most_instructions(netlist) == 3  # first, middle, last
    assert cells_of(netlist)["seq"] == 1


def test_a_ring_holds_a_tile() -> None:
    """16 results go round 4 PEs of 6 cycles each: 24 cycles for 16 firings in each step of k."""
    steps = 10
    _, run = agrees(gemm(1, 1, 4, 4, 4, steps), latency=6, fma_latency=0)
    _, once = agrees(gemm(1, 1, 4, 4, 4, 1), latency=6, fma_latency=0)
    assert run.cycles - once.cycles == (steps - 1) * 24


def test_with_k_innermost_one_result_is_on_its_way() -> None:
    """S steps of k take (S - 1) * ring + 1 cycles."""
    one = agrees(gemm(1, 1, 4, 1, 1, 8, order="ijk"), latency=1, fma_latency=0)[1].cycles
    base = agrees(gemm(1, 1, 4, 1, 1, 1), latency=1, fma_latency=0)[1].cycles
    assert one - base == 7 * 4


def test_buffers_are_cells_of_three_instructions() -> None:
    netlist, _ = agrees(gemm(2, 2, 4, 3, 4, 2, buffered=True))
    counts = cells_of(netlist)
    assert (counts["fma"], counts["ctl"], counts["ld"], counts["st"]) == (16, 16, 16, 4)
    buffers = {len(c.program.instructions) for c in netlist.cells if c.kind.value == "ctl"}
    assert buffers == {3}
    loops = [net for net in netlist.nets if net.name == "A_feeder[0,0].A_buffer.out1"]
    assert [sink.tokens for sink in loops[0].sinks] == [2]  # one element goes round, and a place


@pytest.mark.parametrize(
    ("tokens", "latency", "cycles"),
    [(4, 1, 42), (4, 4, 42), (4, 5, 51), (4, 7, 69), (8, 8, 82), (8, 9, 91), (8, 16, 154)],
)
def test_a_virtual_buffer_takes_the_cycles_of_the_closed_form(
    tokens: int, latency: int, cycles: int
) -> None:
    """Ten passes: 10 J + 2, or 9 l + J + 2 where the loop takes longer than J tokens."""
    graph = replayed(tokens, 10).lower()
    netlist, inputs = lower_to_netlist(graph), whole_numbers(graph)
    design = unplaced(netlist, FABRICS["cgra8"])
    (loop,) = (net.name for net in netlist.nets if net.source.part == net.sinks[0].end.part)
    (branch,) = design.branches[loop]
    assert branch.capacity == tokens + 1

    def with_loop(capacity: int) -> PlacedDesign:
        slow = replace(branch, latency=latency, capacity=capacity)
        return replace(design, branches={**design.branches, loop: (slow,)})

    run = run_placed(with_loop(tokens + 1), inputs)
    assert run.cycles == cycles
    np.testing.assert_array_equal(run.outputs["y"], np.tile(inputs["x"], (10, 1)))
    with pytest.raises(UserError, match="is stuck"):
        run_placed(with_loop(tokens), inputs)


def test_programs_are_what_the_text_says() -> None:
    netlist, _ = agrees(gemm(1, 1, 2, 3, 2, 3, buffered=True))
    programs = {cell.name: cell.program for cell in netlist.cells}
    chosen = [programs["C[0,0,0]"], programs["B_feeder[0,0].B_buffer"]]
    assert print_programs(chosen, EXTENDED_CORE).strip() == PROGRAMS.strip()


@pytest.mark.parametrize(
    ("design", "cells", "loads", "stores"),
    [
        pytest.param(lambda: gemm(2, 2, 4, buffered=True), (16, 16), 16, 4, id="gemm 2,2,4"),
        pytest.param(lambda: gemm(4, 4, 4, buffered=True), (64, 32), 32, 16, id="gemm 4,4,4"),
        pytest.param(lambda: gemm(8, 8, 4, buffered=True), (256, 64), 64, 64, id="gemm 8,8,4"),
        pytest.param(lambda: ttm(4, 4, 4, 4), (256, 80), 80, 64, id="ttm"),
        pytest.param(lambda: mttkrp(4, 4, 4, 2), (256, 56), 56, 16, id="mttkrp"),
        pytest.param(lambda: ttmc(2, 2, 2, 4, 4), (256, 48), 48, 8, id="ttmc"),
    ],
)
@pytest.mark.slow
def test_cells_and_units_are_those_counted_by_hand(
    design: object, cells: tuple[int, int], loads: int, stores: int
) -> None:
    counts = cells_of(lower_to_netlist(design().lower()))  # type: ignore[operator]
    assert (counts["fma"], counts["ctl"]) == cells
    assert (counts["ld"], counts["st"]) == (loads, stores)


@sampled(
    "design",
    [
        pytest.param(lambda: ttm(2, 2, 2, 2, l=2), id="ttm"),
        pytest.param(lambda: mttkrp(2, 2, 2, 2, k=2), id="mttkrp"),
        pytest.param(lambda: ttmc(2, 1, 2, 2, 2, l=2), id="ttmc"),
        pytest.param(lambda: convolution(2, 2, 2), id="convolution"),
        pytest.param(lambda: gemm(2, 2, 2, 2, 2, 2, type=Int(64), loaded=True), id="int64"),
        pytest.param(lambda: gemm(2, 2, 2, 2, 2, 2, type=Int(32), buffered=True), id="int32"),
    ],
    quick=2,
)
def test_values_are_those_of_the_simulator(design: object) -> None:
    agrees(design())  # type: ignore[operator]


@pytest.mark.slow
def test_weights_that_stay_are_in_registers() -> None:
    netlist, _ = agrees(convolution(2, 2, 2))
    assert cells_of(netlist) == {"fma": 16, "ctl": 8, "ld": 16, "st": 2, "seq": 1}
    assert most_instructions(netlist) == 2
    large = cells_of(lower_to_netlist(convolution(3, 4, 7, 16, 16).lower()))
    assert large == {"fma": 252, "ctl": 189, "ld": 99, "st": 7, "seq": 3}


def test_without_contraction_a_product_and_a_sum_are_two_cells() -> None:
    graph = gemm(2, 2, 2).lower()
    assert cells_of(lower_to_netlist(graph))["fma"] == 8
    assert cells_of(lower_to_netlist(graph, contract=False))["fma"] == 16
    generator = np.random.default_rng(1)
    inputs = {name: generator.random(graph.tensor(name).shape) for name in "AB"}
    twice = ran(lower_to_netlist(graph, contract=False), inputs).outputs["C"]
    once = ran(lower_to_netlist(graph), inputs).outputs["C"]
    expected = t2s.simulate(graph, inputs).outputs["C"]
    np.testing.assert_array_equal(twice, expected)
    assert not np.array_equal(once, expected)
    np.testing.assert_allclose(once, expected, rtol=1e-14)


def test_lowering_twice_gives_the_same() -> None:
    first, second = (lower_to_netlist(gemm(2, 2, 2, 2, 2, 2).lower()) for _ in range(2))
    assert first == second


def test_integers_wrap_around() -> None:
    graph = gemm(1, 1, 2, 1, 1, 2, type=Int(32)).lower()
    inputs = {name: np.full(graph.tensor(name).shape, 2**30, np.int32) for name in "AB"}
    inputs["A"][0, 0] = 3
    run = ran(lower_to_netlist(graph), inputs)
    np.testing.assert_array_equal(run.outputs["C"], t2s.simulate(graph, inputs).outputs["C"])
