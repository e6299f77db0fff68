"""How many tokens go over branches in a run, and that few of them say nothing about a rate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from t2s.backends.cgra_tia.fabric import FABRICS, CgraFabric
from t2s.backends.cgra_tia.lower import lower_to_netlist
from t2s.backends.cgra_tia.machine.profile_b import run_placed
from t2s.backends.cgra_tia.netlist import (
    AffineSum,
    Netlist,
    StreamLoop,
    StreamUnit,
    UnitKind,
    unplaced,
)
from t2s.backends.cgra_tia.place import place_netlist
from t2s.backends.cgra_tia.place.buffer_sizing import RateCause, rate_limit, traffic_of, unit_steps
from t2s.backends.cgra_tia.program import (
    CellProgram,
    FromChannel,
    FromRegister,
    Instruction,
    Opcode,
    TagCheck,
    ToOutputs,
    ToRegister,
    Trigger,
)
from t2s.graph.graph import TensorRole
from tests.backends.cgra.designs import convolution
from tests.backends.cgra.netlists import Draft

CGRA8 = FABRICS["cgra8"]

KEEP = Instruction(
    trigger=Trigger(zeros=1, checks=(TagCheck(channel=1, tag=0),)),
    opcode=Opcode.MOV,
    destination=ToRegister(0),
    sources=(FromChannel(1),),
    takes=(1,),
    sets=1,
)
SCALE = Instruction(
    trigger=Trigger(ones=1, checks=(TagCheck(channel=0, tag=0),)),
    opcode=Opcode.FMUL,
    destination=ToOutputs((0,), 0),
    sources=(FromChannel(0), FromRegister(0)),
    takes=(0,),
)


def scaled(steps: int, weights: int = 1) -> Netlist:
    """y = x w w: both cells keep a weight from one unit, which is far from the second of them."""
    draft = Draft("scaled")
    draft.tensor("x", (steps,), TensorRole.INPUT)
    draft.tensor("w", (weights,), TensorRole.INPUT)
    draft.tensor("y", (steps,), TensorRole.OUTPUT)
    nest = [("t", steps)]
    x = draft.unit("load", (0,), UnitKind.LOAD, nest, tensor="x", strides=(1,))
    w = draft.unit("load", (1,), UnitKind.LOAD, [("t", weights)], tensor="w", strides=(1,))
    y = draft.unit("store", (0,), UnitKind.STORE, nest, tensor="y", strides=(1,))
    program = CellProgram(instructions=(KEEP, SCALE))
    first, second = (draft.fma("scale", (number,), program) for number in range(2))
    draft.wire("x", x, first)
    draft.wire("x", first, second)
    draft.wire("y", second, y)
    draft.wire("w", w, first, 1)
    draft.wire("w", w, second, 1)
    return draft.done()


def test_what_is_loaded_once_is_one_token() -> None:
    netlist = scaled(50)
    groups = [net.group for net in netlist.nets for _ in net.sinks]
    found = dict(zip(groups, traffic_of(netlist), strict=True))
    assert found["w"] == 1
    assert found["x"] == found["y"] == 50


def test_what_is_loaded_once_says_nothing_about_the_rate() -> None:
    """However long its way is, and however little its channel holds."""
    design = unplaced(scaled(200), CGRA8, 2)
    nets = {net.name: net.group for net in design.netlist.nets}
    branches = {
        name: tuple(
            replace(branch, latency=2 + 40 * number, capacity=1) if nets[name] == "w" else branch
            for number, branch in enumerate(found)
        )
        for name, found in design.branches.items()
    }
    slow = replace(design, branches=branches)
    assert rate_limit(slow) is None
    run = run_placed(slow, {"x": np.arange(200.0), "w": np.array([3.0])})
    np.testing.assert_array_equal(run.outputs["y"], 9 * np.arange(200.0))
    assert run.cells["scale[1]"].busy == 201
    assert run.cycles < 260


def test_what_comes_in_every_step_still_does() -> None:
    """The same channels without a prologue in the cells: every token goes that way."""
    design = unplaced(scaled(200), CGRA8, 2)
    shallow = {
        name: tuple(replace(branch, capacity=1) for branch in found)
        for name, found in design.branches.items()
    }
    limit = rate_limit(replace(design, branches=shallow))
    assert limit is not None
    assert limit.cause is RateCause.SPACE


def test_channels_hold_no_more_than_ever_comes() -> None:
    design = place_netlist(scaled(30), CGRA8, moves=0)
    for net in design.netlist.nets:
        for branch in design.branches[net.name]:
            assert net.group != "w" or branch.capacity == branch.latency + 1


@pytest.mark.parametrize(
    ("loops", "steps"),
    [
        ((), 1),
        (((5,), (3,)), 15),
        (((5,), (0, 3)), sum(3 * i for i in range(5))),
        (((4,), (1, 1)), 1 + 2 + 3 + 4),
        (((4,), (-2, 1)), 0 + 0 + 0 + 1),
        (((0,), (7, 0)), 0),
        (((3,), (2,), (0, 1, 1)), sum(i + j for i in range(3) for j in range(2))),
    ],
)
def test_steps_of_a_unit(loops: tuple[tuple[int, ...], ...], steps: int) -> None:
    """Extents are a constant, and factors of the loops around."""
    nest = tuple(
        StreamLoop(name=f"i{n}", extent=AffineSum(constant=item[0], coefficients=item[1:]))
        for n, item in enumerate(loops)
    )
    assert unit_steps(StreamUnit(name="u", kind=UnitKind.SEQUENCE, loops=nest)) == steps


def test_units_without_a_nest_work_for_ever() -> None:
    assert unit_steps(StreamUnit(name="u", kind=UnitKind.LOAD_AT, tensor="x")) is None


@pytest.mark.slow
def test_a_convolution_with_weights_in_registers_is_not_warned_of(
    recwarn: pytest.WarningsRecorder,
) -> None:
    netlist = lower_to_netlist(convolution(3, 4, 7, 16, 16).lower())
    design = place_netlist(netlist, FABRICS["cgra32"], moves=100_000)
    assert rate_limit(design) is None
    assert not [item for item in recwarn if "of its rate" in str(item.message)]


def test_a_slow_fma_changes_the_fill_alone() -> None:
    slow = CgraFabric(name="slow", rows=8, columns=8, fma_latency=20)
    assert rate_limit(place_netlist(scaled(40), slow, moves=0)) is None
