"""Gathers and scatters as units of a DRAM: lines by hand, and both engines on random ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from t2s.core.expr import Index, Local
from t2s.core.types import INT32
from t2s.core.walk import rewrite
from t2s.graph.body import Load
from t2s.graph.graph import MemorySpace, Tensor, TensorRole
from t2s.graph.nodes import Choice, Machine, Mode, Role, Rule, SpaceDimension
from t2s.simulator.limits import Limits
from t2s.simulator.memory.machine_accesses import accesses_of_rules, types_of_channels
from t2s.simulator.memory.report import UnitCounts
from t2s.simulator.memory.spec import MEMORIES
from t2s.simulator.native_engine import NativeEngine, retime
from t2s.simulator.program.build import build_program
from t2s.simulator.reference_engine import PythonEngine
from t2s.simulator.report.result import SimResult
from tests.graph.gathers import Gathering, gatherings
from tests.graph.machines import copying
from tests.simulator.memory.test_machine_units import both
from tests.simulator.memory.test_units import GIGAHERTZ, on
from tests.simulator.test_streams import agree, run


def gathered(*take: int, to: tuple[int, ...] = (-1,) * 4, lines: int = 8) -> SimResult:
    """Vectors of four lanes out of 16 lines of 16 elements, and where they go."""
    steps = len(take) // 4
    places = (*to, *(-1,) * (len(take) - len(to)))
    return both(
        Gathering(steps=steps, width=256).graph,
        on(GIGAHERTZ, load_lines=lines),
        take=take, to=places, x=range(256),
    )  # fmt: skip


def unit(result: SimResult) -> UnitCounts:
    assert result.memory is not None
    return result.memory.units[0]


def test_each_line_of_a_vector_once() -> None:
    """A line of ``take`` and one of ``to``, and those of the lanes."""
    assert unit(gathered(-1, -1, -1, -1)).reads == 2
    assert unit(gathered(3, -1, 4, 3)).reads == 2 + 1
    assert unit(gathered(3, 16, 4, 17)).reads == 2 + 2
    assert unit(gathered(3, 16, 32, 48)).reads == 2 + 4


def test_the_line_touched_last_stays() -> None:
    """The second vector begins with the line of the last new lane of the first one, or not."""
    assert unit(gathered(0, 16, 1, -1, 17, 18, -1, 19)).reads == 2 + 2
    assert unit(gathered(0, 16, 1, -1, -1, 2, 18, -1)).reads == 2 + 2 + 2
    assert unit(gathered(0, 16, 1, -1, *[-1] * 4, 20, 20, 20, 20)).reads == 2 + 2


def test_a_scatter_writes_the_lines_of_its_lanes() -> None:
    found = unit(gathered(*[-1] * 4, to=(-1, 200, 0, 201)))
    assert (found.reads, found.writes) == (2, 2)
    assert unit(gathered(*[-1] * 8, to=(-1, 200, 0, 201, 3, -1, 2, 1))).writes == 2


def test_a_gather_comes_after_its_indices() -> None:
    """All lines are asked for in the first firing; the gather's come after those of ``take``."""
    none, one = gathered(-1, -1, -1, -1), gathered(5, -1, -1, -1)
    # take: tRCD 15, CL 15, burst 4; to is in another row of its bank group, 6 clocks later (tCCD).
    assert none.nodes["sink"].first_firing == 1 + (34 + 6) + 1
    # x comes as much later, 46 after the request, and its address when what is of level 0 is there.
    assert one.nodes["sink"].first_firing == 1 + (34 + 6) + (34 + 12) + 1


def test_vectors_have_channels_of_their_own() -> None:
    graph = Gathering(lanes=16, rank=2).graph
    rules = accesses_of_rules(graph, graph.machines[0])
    found = [(a.tensor, a.level, a.lanes, a.bytes, a.channel) for a in rules[0].accesses]
    assert found == [
        ("take", 0, 1, 64, 0), ("to", 0, 1, 64, 1), ("rows", 0, 1, 4, 2),
        ("x", 1, 16, 4, 3), ("y", 1, 16, 4, 4),
    ]  # fmt: skip
    assert [type.lanes for type in types_of_channels(rules)] == [1, 1, 1, 16, 16]


def test_an_array_of_machines_has_a_port_each() -> None:
    """Two machines gather from rows of their own: 1 and 3 lines, besides those of the indices."""
    wide, place = INT32.with_lanes(4), Index(name="p")
    taken = Local(name="taken", type=wide)
    indices = Load(target="taken", tensor="take", indices=(place * 4,), type=wide)
    gather = Load(target="found", tensor="x", indices=(place, taken), type=wide)
    node = Machine(
        name="gather",
        role=Role.LOAD,
        space=(SpaceDimension(name="p", minimum=0, extent=2),),
        heads=(),
        modes=(
            Mode(
                name="run",
                needs=(),
                choices=(Choice(inside=Rule(name="all", body=(indices, gather))),),
            ),
        ),
    )
    graph = replace(
        copying(),
        nodes=(node, *copying().nodes),
        tensors=(
            Tensor(name="take", type=INT32, shape=(8,), role=TensorRole.INPUT),
            replace(copying().tensor("x"), open=False, shape=(2, 64)),
            *copying().tensors[1:],
        ),
    )
    source, sink = copying().nodes
    other = replace(copying().tensor("x"), name="list")
    source = rewrite(
        source,
        lambda term: replace(term, tensor="list") if isinstance(term, Load) else None,
    )
    graph = replace(graph, nodes=(node, source, sink), tensors=(*graph.tensors, other))
    result = both(
        graph,
        on(GIGAHERTZ),
        take=[17, 18, -1, 19, 0, 16, 32, 1],
        x=np.zeros((2, 64)),
        list=[1, 2, 0],
    )
    assert result.memory is not None
    rows = {row.node: row.reads for row in result.memory.units}
    assert rows == {"gather": 2 + 1 + 3, "source": 1, "sink": 0}


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    gathering=gatherings(),
    holes=st.sampled_from((0.0, 0.3, 0.9)),
    wrong=st.sampled_from((0.0, 0.0, 0.0, 0.02)),
    memory=st.sampled_from(("ddr4-2133", "hbm2e")),
    group=st.sampled_from((1, 2, 32)),
    outstanding=st.sampled_from((1, 3, 128)),
    limit=st.one_of(st.none(), st.integers(1, 200)),
    seed=st.integers(0, 99),
)
def test_random(
    gathering: Gathering,
    holes: float,
    wrong: float,
    memory: str,
    group: int,
    outstanding: int,
    limit: int | None,
    seed: int,
) -> None:
    gathering = replace(gathering, place=MemorySpace.MEMORY)
    device = on(MEMORIES[memory], load_lines=group, store_lines=group, outstanding=outstanding)
    wrong = wrong if limit is None else 0.0
    graph, inputs = gathering.graph, gathering.inputs(seed, holes=holes, wrong=wrong)
    program, limits = build_program(graph, device, inputs), Limits(max_cycles=limit)
    python, native = run(PythonEngine(), program, limits), run(NativeEngine(), program, limits)
    if isinstance(python, str) or isinstance(native, str):
        event("refused")
        assert native == python
        return
    agree(python, native)
    assert python.memory == native.memory
    for name, array in python.outputs.items():
        np.testing.assert_array_equal(native.outputs[name], array, strict=True)
    if limit is None:
        assert native.machine_trace is not None
        agree(native, retime(program, native.machine_trace, {}))
