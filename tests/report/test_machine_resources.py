"""Blocks of machines: operators of every alternative, copies for the reads of one firing."""

from __future__ import annotations

import numpy as np

import t2s
from t2s.core.expr import Expr, Local, apply, const
from t2s.core.ops import Op
from t2s.core.types import Float
from t2s.graph.body import Let, RegisterRead
from t2s.graph.graph import Channel, Graph, StreamType
from t2s.graph.nodes import Choice, Head, Machine, Mode, Put, Register, Role, Rule, SpaceDimension
from tests.graph.machines import copying
from tests.simulator.stream_graphs import sorted_and_not

FLOAT = Float(32)


def local(name: str) -> Local:
    return Local(name=name, type=FLOAT)


def read(target: str, at: int) -> RegisterRead:
    return RegisterRead(target=target, register="table", indices=(const(at),), type=FLOAT)


def put(value: Expr) -> tuple[Put, ...]:
    return (Put(channel="ys", value=value),)


def three_machines() -> Graph:
    """Each has a product, and either a multiply-add with two reads of a table, or a division."""
    more = Rule(
        name="more",
        body=(read("a", 0), read("b", 1)),
        takes=("xs",),
        puts=put(local("p") + local("a") * local("b")),
        next="run",
    )
    less = Rule(
        name="less",
        body=(read("a", 2),),
        takes=("xs",),
        puts=put(apply(Op.DIVIDE, local("p"), local("a"))),
        next="run",
    )
    product = Let(target="p", value=local("x") * local("x"))
    large = local("x") > 0.0
    machine = Machine(
        name="m",
        role=Role.COMPUTE,
        space=(SpaceDimension(name="s", minimum=0, extent=3),),
        heads=(Head(channel="xs", value="x"),),
        registers=(Register(name="table", type=FLOAT, shape=(1024,), distance=1),),
        modes=(
            Mode(
                name="run",
                needs=("xs",),
                choices=(
                    Choice(
                        body=(product,),
                        inside=(Choice(when=large, inside=more), Choice(inside=less)),
                    ),
                ),
            ),
        ),
    )
    stream = StreamType(element=FLOAT)
    channels = (
        Channel(name="xs", stream=stream, source="from", sink="m", shape=(3,), capacity=512),
        Channel(name="ys", stream=stream, source="m", sink="to", shape=(3,)),
    )
    return Graph(name="machines", nodes=(machine,), channels=channels, tensors=())


def test_operators_registers_and_fifos() -> None:
    row = t2s.resources(three_machines())["m"]
    assert row.pe_count == 3
    assert row.dsp_blocks == 3 * (1 + 1 + 4)
    assert row.memory_blocks == 3 * 2 * 2  # 1024 words of 32 bits are two blocks; two are read
    assert row.fifo_blocks == 3
    assert row.unit_blocks == 0


def test_load_and_store_units() -> None:
    report = t2s.resources(copying())
    assert [node.unit_blocks for node in report.nodes] == [1, 1]
    assert report.fits


def test_a_design_whose_memories_depend_on_data_runs_without_an_estimate() -> None:
    x = {"x0": np.zeros(12, np.int32)}
    result = t2s.simulate(sorted_and_not(), x, device="arria10", max_cycles=3)
    assert result.cycles == 3
    assert result.warnings == ()
