"""Latencies, capacities and the rates that they allow, against runs of the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.backends.cgra_tia.fabric import FABRICS, CgraFabric
from t2s.backends.cgra_tia.machine.profile_b import PlacedRun, run_placed
from t2s.backends.cgra_tia.netlist import Branch, Netlist, PlacedDesign, UnitKind, unplaced
from t2s.backends.cgra_tia.place import place_netlist
from t2s.backends.cgra_tia.place.buffer_sizing import RateCause, rate_limit
from t2s.backends.cgra_tia.program import Opcode
from t2s.core.errors import T2SWarning, UserError
from t2s.core.ops import Array
from t2s.graph.graph import TensorRole
from tests.backends.cgra.netlists import (
    MOVE,
    Draft,
    chain,
    gemm,
    instruction,
    mttkrp,
    polynomial,
    program,
    replay,
    ring,
)
from tests.backends.cgra.route_check import check_design
from tests.sampling import sampled

CGRA8 = FABRICS["cgra8"]


def inputs_of(netlist: Netlist) -> dict[str, Array]:
    """Small whole numbers, so that sums are exact in any order."""
    return {
        tensor.name: (np.arange(np.prod(tensor.shape)) * 5 % 7).reshape(tensor.shape).astype(float)
        for tensor in netlist.tensors
        if tensor.role is TensorRole.INPUT
    }


def run(design: PlacedDesign) -> PlacedRun:
    return run_placed(design, inputs_of(design.netlist))


def with_capacities(design: PlacedDesign, group: str, rooms: Sequence[int]) -> PlacedDesign:
    """The design with other capacities of the branches of a group."""
    left = iter(rooms)
    groups = {net.name: net.group for net in design.netlist.nets}
    branches = {
        name: tuple(
            replace(item, capacity=next(left)) if groups[name] == group else item for item in found
        )
        for name, found in design.branches.items()
    }
    return replace(design, branches=branches)


# one net to a chain of four cells, six cycles apart: what each branch has to hold


@pytest.mark.parametrize(
    ("rooms", "rate", "measured"),
    [
        ((3, 3, 3, 3), Fraction(3, 21), 0.14),
        ((3, 9, 15, 21), None, 1.0),
        ((3, 8, 14, 20), Fraction(8, 9), 0.88),
    ],
)
def test_the_skew_of_a_chain(rooms: Sequence[int], rate: Fraction | None, measured: float) -> None:
    cycles = []
    for steps in (200, 400):
        design = with_capacities(unplaced(polynomial(4, steps), CGRA8, 2), "x", rooms)
        loads = {net.name for net in design.netlist.nets if net.group == "c"}
        deep = {name: (Branch(path=(), latency=2, capacity=40),) for name in loads}
        design = replace(design, branches={**design.branches, **deep})
        limit = rate_limit(design)
        assert (None if limit is None else limit.rate) == rate
        cycles.append(run(design).cycles)
    assert 200 / (cycles[1] - cycles[0]) == pytest.approx(measured, abs=0.02)


def test_a_limit_names_its_circle() -> None:
    limit = rate_limit(unplaced(polynomial(4), CGRA8, 2))
    assert limit is not None
    assert limit.cause is RateCause.SPACE
    assert set(limit.parts) == {"load_x[0]", *(f"step[{number}]" for number in range(4))}
    assert (limit.tokens, limit.cycles) == (3, 21)


# placed designs run at the rate that they should


@pytest.mark.parametrize("balanced", [True, False])
@sampled("netlist", [chain, gemm, polynomial], quick=1)
def test_designs_run_at_full_rate(netlist: object, balanced: bool) -> None:
    sizes = {chain: (12,), gemm: (2, 2, 4), polynomial: (12,)}[netlist]  # type: ignore[index]
    cycles = []
    for steps in (100, 200):
        made: Netlist = netlist(*sizes, steps)  # type: ignore[operator]
        design = place_netlist(made, CGRA8, balanced=balanced, moves=2_000)
        check_design(design)
        assert rate_limit(design) is None
        cycles.append(run(design).cycles)
    assert cycles[1] - cycles[0] == 100


def test_all_branches_of_a_group_are_alike() -> None:
    """One net goes to a chain of cells that fire one after the other: the last waits longest."""
    kinds = {}
    for balanced in (True, False):
        design = place_netlist(polynomial(4, 60), CGRA8, balanced=balanced, moves=0)
        nets = [net.name for net in design.netlist.nets if net.group == "x"]
        found = [branch for name in nets for branch in design.branches[name]]
        kinds[balanced] = {(branch.latency, branch.capacity) for branch in found}
        assert rate_limit(design) is None
    assert len(kinds[True]) == 1
    assert len({capacity for _, capacity in kinds[False]}) > 1


def test_balance_costs_cycles_and_changes_no_value() -> None:
    netlist = gemm(2, 2, 4, 20)
    arrays = inputs_of(netlist)
    wanted = arrays["C"] + arrays["A"] @ arrays["B"]
    runs = [run(place_netlist(netlist, CGRA8, balanced=flag, moves=0)) for flag in (True, False)]
    for item in runs:
        np.testing.assert_array_equal(item.outputs["E"], wanted)
    assert runs[0].cycles >= runs[1].cycles


def test_cycles_change_with_latencies_only() -> None:
    netlist = gemm(2, 2, 4, 20)
    runs = [run(place_netlist(netlist, CGRA8, seed=seed, moves=1_000)) for seed in (0, 1)]
    np.testing.assert_array_equal(runs[0].outputs["E"], runs[1].outputs["E"])
    assert {name: item.busy for name, item in runs[0].cells.items()} == {
        name: item.busy for name, item in runs[1].cells.items()
    }


def test_cycles_of_a_product_by_hand() -> None:
    """The points, the way to the first cell, and for each cell its FMA and the way on."""
    design = place_netlist(gemm(2, 2, 4, 50), CGRA8, moves=0)
    stages = {net.group: design.branches[net.name][0].latency for net in design.netlist.nets}
    first = max(
        stages["C"],
        stages["A_in"] + stages["A"],
        stages["B_in"] + stages["B"],
    )
    chain_of_four = 4 * CGRA8.fma_latency + 3 * stages["sum"] + stages["out"]
    assert run(design).cycles == 50 + first + chain_of_four


# circles


def test_a_ring_is_limited_by_its_tile() -> None:
    """Tokens / latency of the circle, as long as the tile is smaller than that."""
    with pytest.warns(T2SWarning, match="the design 'ring4' runs at 57% of its rate") as caught:
        design = place_netlist(ring(4, 16, 20), CGRA8)
    text = str(caught[0].message)
    assert "16 tokens circulate in 28 cycles through sum[0], sum[1], sum[2], sum[3]" in text
    assert "hint:     use a larger tile" in text
    limit = rate_limit(design)
    assert limit is not None
    assert limit.cause is not RateCause.SPACE
    assert limit.rate == Fraction(16, 28)
    assert abs(run(design).cycles - 20 * 28) <= 28
    assert limit.nets[-1] == "back.8"


@sampled("tile", [28, 35, 36, 64, 120], quick=3)
def test_a_ring_of_a_large_tile_runs_at_full_rate(tile: int) -> None:
    """Also with more tokens than one channel holds."""
    netlist = ring(4, tile, 6)
    design = place_netlist(netlist, CGRA8, moves=500)
    check_design(design)
    assert rate_limit(design) is None
    result = run(design)
    arrays = inputs_of(netlist)
    np.testing.assert_array_equal(result.outputs["E"], arrays["C"] + arrays["A"].sum(axis=(0, 1)))
    assert result.cycles <= 6 * tile + 60


@pytest.mark.parametrize("tile", [1, 2, 8, 33, 34, 35, 70, 100])
def test_a_virtual_buffer_replays_at_full_rate(tile: int) -> None:
    """A token every cycle, once the tile is no shorter than the loop."""
    netlist = replay(tile, 10)
    design = place_netlist(netlist, CGRA8, moves=200)
    check_design(design)
    result = run(design)
    np.testing.assert_array_equal(result.outputs["y"], np.tile(inputs_of(netlist)["x"], (10, 1)))
    assert result.cycles <= 10 * tile + 20


def test_a_buffer_that_is_too_long_is_refused() -> None:
    """Where no cells are left for relays."""
    fabric = CgraFabric(name="tiny", rows=1, columns=1, pattern=("c",), units_per_position=1)
    with pytest.raises(UserError) as caught:
        place_netlist(replay(50, 3), fabric)
    text = str(caught.value)
    assert "the channel 'back' to 'feeder[]' cannot hold its tokens on the fabric 'tiny'" in text
    assert "expected: at most 34 tokens, 32 beyond those in flight" in text
    assert "given:    51 that have to wait in it at once" in text
    assert "most_depth=49" in text
    place_netlist(replay(50, 3), replace(fabric, most_depth=49))


def test_channels_without_relays_slow_a_design_down() -> None:
    fabric = replace(CGRA8, rows=4, columns=4, pattern=("f",), name="full", tracks=4)
    with pytest.warns(T2SWarning, match="the design 'polynomial16' runs at") as caught:
        design = place_netlist(polynomial(16, 100), fabric, moves=500)
    text = str(caught[0].message)
    assert "for lack of room between" in text
    assert "hint:     use a fabric with a most_depth above 32" in text
    limit = rate_limit(design)
    assert limit is not None
    more = place_netlist(polynomial(16, 200), replace(fabric, most_depth=999), moves=500)
    assert rate_limit(more) is None


def test_relays_keep_tags_and_values() -> None:
    netlist = polynomial(12, 60)
    design = place_netlist(netlist, CGRA8, moves=500)
    added = len(design.netlist.cells) - len(netlist.cells)
    assert added > 0
    arrays = inputs_of(netlist)
    wanted = np.zeros(60)
    for number in range(13):
        wanted = wanted * arrays["x"][:, 0] + arrays["c"][:, number]
    np.testing.assert_array_equal(run(design).outputs["y"][:, 0], wanted)
    names = {cell.name for cell in design.netlist.cells[-added:]}
    assert all(".relay" in name for name in names)


@pytest.mark.slow
def test_an_array_with_skew_gets_relays() -> None:
    netlist = mttkrp(steps=40)
    design = place_netlist(netlist, FABRICS["cgra32"], moves=0)
    check_design(design)
    assert rate_limit(design) is None
    arrays = inputs_of(netlist)
    wanted = np.einsum("tikl,tkj,tlj->tij", arrays["A"], arrays["B"], arrays["C"])
    np.testing.assert_array_equal(run(design).outputs["E"], wanted)


def test_circles_of_unknown_tokens_say_nothing() -> None:
    design = place_netlist(ring(4, 4, 3, tokens=1), CGRA8, moves=0)
    assert rate_limit(design) is None


# any design: the rate that is foretold is that of a run


Case = tuple[Netlist, dict[str, tuple[Branch, ...]], int]


@st.composite
def drafts(draw: st.DrawFn) -> Case:
    """A few loads, cells of one or two inputs, and a store for each cell that nobody reads."""
    draft = Draft("random")
    steps = 60
    draft.tensor("x", (steps,), TensorRole.INPUT)
    sources = [
        draft.unit("load", (n,), UnitKind.LOAD, [("t", steps)], tensor="x", strides=(1,))
        for n in range(draw(st.integers(1, 2)))
    ]
    read = set()
    for number in range(draw(st.integers(1, 6))):
        count = draw(st.integers(1, 2))
        body = MOVE if count == 1 else program(instruction(Opcode.ADD, 0, 1))
        here = draft.control("cell", (number,), body)
        for port in range(count):
            source = draw(st.sampled_from(sources))
            draft.wire(f"from {source}", source, here, port)
            read.add(source)
        sources.append(here)
    for number, source in enumerate(source for source in sources if source not in read):
        draft.tensor(f"y{number}", (steps,), TensorRole.OUTPUT)
        unit = draft.unit(
            "store", (number,), UnitKind.STORE, [("t", steps)], tensor=f"y{number}", strides=(1,)
        )
        draft.wire(f"from {source}", source, unit)
    netlist = draft.done()
    branches = {
        net.name: tuple(
            Branch(path=(), latency=draw(st.integers(1, 9)), capacity=draw(st.integers(1, 12)))
            for _ in net.sinks
        )
        for net in netlist.nets
    }
    return netlist, branches, steps


@settings(max_examples=60, deadline=None)
@given(drafts())
def test_the_rate_is_that_of_a_run(
    case: tuple[Netlist, dict[str, tuple[Branch, ...]], int],
) -> None:
    netlist, branches, steps = case
    design = PlacedDesign(netlist=netlist, fabric=CGRA8, sites={}, branches=branches)
    limit = rate_limit(design)
    period = Fraction(1) if limit is None else 1 / limit.rate
    most = sum(branch.latency for found in branches.values() for branch in found)
    cycles = run(design).cycles
    assert (steps - 1) * period - most * period <= cycles <= steps * period + most + 1


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(drafts())
def test_placed_designs_of_any_shape_run_at_full_rate(case: Case) -> None:
    netlist, _, steps = case
    design = place_netlist(netlist, CGRA8, moves=0)
    check_design(design)
    most = sum(branch.latency for found in design.branches.values() for branch in found)
    assert run(design).cycles <= steps + most
