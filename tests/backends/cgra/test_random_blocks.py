"""Random index notation on cells: what is not refused gives the bits of the blocks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import t2s
from t2s.backends.cgra_tia.fabric import CgraFabric
from t2s.backends.cgra_tia.lift import lift_placed
from t2s.backends.cgra_tia.lower import lower_to_netlist
from t2s.backends.cgra_tia.machine.profile_b import run_placed
from t2s.backends.cgra_tia.netlist import unplaced
from t2s.core.errors import T2SError, UnsupportedError
from t2s.core.ops import Array
from t2s.driver.assignment_design import AssignmentDesign, Channels
from t2s.graph.graph import Graph
from t2s.sparse import Kernel
from tests.sparse_repr.expressions import Case, cases

OPEN = CgraFabric(name="open", rows=64, columns=64)


def same(graph: Graph, arrays: dict[str, Array], wanted: Any) -> None:
    """The text and the lifted graph give the bits of the blocks, in equally many cycles."""
    try:
        netlist = lower_to_netlist(graph, contract=False)
    except UnsupportedError:
        return
    design = unplaced(netlist, OPEN, 2)
    run = run_placed(design, arrays, max_cycles=200_000)
    lifted = t2s.simulate(lift_placed(design), arrays, engine="python", progress=False)
    assert run.cycles == lifted.cycles
    for name, array in wanted.outputs.items():
        assert run.outputs[name].tobytes() == array.tobytes(), name
        assert lifted.outputs[name].tobytes() == array.tobytes(), name


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases())
def test_cells_do_what_blocks_do(case: Case) -> None:
    try:
        kernel, channels = Kernel(case.assignment, case.schedule), Channels(joins_of_two=True)
        stages = AssignmentDesign(kernel, channels=channels).stages(case.inputs)
        stage = next(stages)
    except (T2SError, StopIteration):
        return  # what random schedules may be refused for: tests/sparse_repr
    while True:
        wanted = t2s.simulate(stage.graph, stage.arrays, engine="python", progress=False)
        same(stage.graph, dict(stage.arrays), wanted)
        try:
            stage = stages.send(wanted)
        except StopIteration:
            return
