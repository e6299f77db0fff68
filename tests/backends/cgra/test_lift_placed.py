"""Placed designs as graphs: the same values and cycles as the interpreter, and fast."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import t2s
from t2s import Func
from t2s.backends.cgra_tia.fabric import FABRICS, CgraFabric
from t2s.backends.cgra_tia.lift import lift_placed
from t2s.backends.cgra_tia.lift.classes import affine_form, inside, mapped
from t2s.backends.cgra_tia.lift.static_cells import TaggedSteps, restricted
from t2s.backends.cgra_tia.lower import lower_to_netlist
from t2s.backends.cgra_tia.machine.profile_b import run_placed
from t2s.backends.cgra_tia.netlist import (
    AffineSum,
    Netlist,
    PlacedDesign,
    StreamLoop,
    StreamUnit,
    TagCase,
    UnitCondition,
    UnitKind,
    unplaced,
)
from t2s.backends.cgra_tia.place import place_netlist
from t2s.core.errors import UserError
from t2s.core.expr import TRUE, evaluate
from t2s.core.ops import Array
from t2s.core.types import BOOL, Int, UInt
from t2s.graph.graph import Graph, TensorRole
from t2s.graph.serialize import graph_from_json, graph_to_json
from t2s.simulator.devices import DEVICES
from t2s.simulator.report.result import SimResult
from t2s.simulator.run import simulate
from tests.backends.cgra import designs
from tests.backends.cgra.built_netlists import NetlistBuilder
from tests.sampling import sampled

OPEN = CgraFabric(name="open", rows=64, columns=64)


def numbers(netlist: Netlist) -> dict[str, Array]:
    """Random numbers for all inputs; floats that round."""
    generator = np.random.default_rng(5)
    found = {}
    for tensor in netlist.tensors:
        if tensor.role is TensorRole.INPUT:
            drawn = generator.standard_normal(tensor.shape) * 9
            found[tensor.array] = drawn.astype(tensor.type.numpy)
    return found


def same(design: PlacedDesign, *, fused: bool = True, engine: str = "native") -> SimResult:
    """The lifted graph gives what the interpreter gives, in as many cycles and firings."""
    inputs = numbers(design.netlist)
    graph = lift_placed(design, fused=fused)
    found = simulate(graph, inputs, engine=engine)
    expected = run_placed(design, inputs, fused=fused)
    assert found.cycles == expected.cycles
    assert found.outputs.keys() == expected.outputs.keys()
    for name, array in expected.outputs.items():
        np.testing.assert_array_equal(found.outputs[name], array)
    parts = {**expected.cells, **expected.units}
    busy = sum(tally.busy for tally in parts.values())
    assert sum(node.firings for node in found.nodes.values()) == busy
    if not graph.machines:  # which wait to the end of a run
        starved = sum(tally.starved + tally.blocked for tally in parts.values())
        assert sum(node.starved + node.blocked for node in found.nodes.values()) == starved
    return found


def lowered(func: Func) -> Netlist:
    return lower_to_netlist(t2s.lower(func))


KERNELS: dict[str, tuple[Callable[[], Func], int]] = {
    "gemm": (lambda: designs.gemm(2, 2, 4, 3, 2, loaded=True), 6),
    "gemm in time": (lambda: designs.gemm(2, 2, 2, 2, 3, 2, buffered=True), 11),
    "gemm, k inside": (lambda: designs.gemm(2, 2, 2, 2, 3, 2, loaded=True, order="ijk"), 8),
    "ttm": (lambda: designs.ttm(2, 2, 2, 2), 9),
    "mttkrp": (lambda: designs.mttkrp(2, 2, 2, 2), 13),
    "ttmc": (lambda: designs.ttmc(2, 2, 2, 2, 2), 15),
    "convolution": (designs.convolution, 7),
}


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels(kernel: str) -> None:
    """Cells that are alike are one node."""
    make, most_nodes = KERNELS[kernel]
    netlist = lowered(make())
    found = same(unplaced(netlist, OPEN, 2))
    assert len(found.nodes) <= most_nodes
    assert len(netlist.cells) + len(netlist.units) > most_nodes


@pytest.mark.parametrize("engine", ["python", "array"])
def test_engines(engine: str) -> None:
    same(unplaced(lowered(designs.gemm(2, 2, 2, 2, 3, 2, buffered=True)), OPEN), engine=engine)


@pytest.mark.slow
@pytest.mark.parametrize(("latency", "fma_latency"), [(1, 0), (2, 4), (4, 4)])
def test_latencies_add_up(latency: int, fma_latency: int) -> None:
    """T + l + K(l + f), with operands by multicast and k in space only."""
    netlist = lowered(designs.gemm(2, 2, 4, 8, 8))
    fabric = replace(OPEN, fma_latency=fma_latency)
    found = same(unplaced(netlist, fabric, latency))
    feeders = sum(node.startswith(("A_feeder", "B_feeder")) for node in found.nodes)
    assert feeders == 0
    assert found.cycles == 64 + latency + 4 * (latency + fma_latency)


@pytest.mark.slow
@pytest.mark.parametrize("balanced", [True, False])
def test_with_wires(balanced: bool) -> None:
    """Latencies and capacities are those of the placement, each of its own way or balanced."""
    netlist = lowered(designs.gemm(2, 2, 4, 4, 4, buffered=True))
    same(place_netlist(netlist, FABRICS["cgra8"], balanced=balanced, moves=2000))


def test_memory_is_the_device() -> None:
    """Its latency and what it gives in a cycle are those of a device without other latencies."""
    netlist = lowered(designs.gemm(2, 2, 2, 2, 3, 2, buffered=True))
    design, inputs = unplaced(netlist, OPEN, 2), numbers(netlist)
    graph, ideal = lift_placed(design), DEVICES["ideal"]
    for latency in (3, 9):
        found = simulate(graph, inputs, device=replace(ideal, load_latency=latency))
        assert found.cycles == run_placed(design, inputs, memory_latency=latency).cycles
    for words in (1, 2, 3):
        bytes_per_second = 8 * words * ideal.clock_hz
        device = replace(ideal, memory_bytes_per_second=bytes_per_second)
        found = simulate(graph, inputs, device=device)
        assert found.cycles == run_placed(design, inputs, words_per_cycle=words).cycles


def test_rounding_twice() -> None:
    design = unplaced(lowered(designs.gemm(2, 2, 4, 2, 2)), OPEN)
    once, twice = same(design), same(design, fused=False)
    assert not np.array_equal(once.outputs["C"], twice.outputs["C"])


@pytest.mark.slow
def test_points_mean_nothing() -> None:
    """Without points, or with others, every part is a node of its own or the arrays are others."""
    netlist = lowered(designs.gemm(2, 2, 2, 2, 3, 2, buffered=True))
    bare = replace(
        netlist,
        cells=tuple(replace(cell, origin=None) for cell in netlist.cells),
        units=tuple(replace(unit, origin=None) for unit in netlist.units),
    )
    found = same(unplaced(bare, OPEN, 2))
    assert len(found.nodes) == len(netlist.cells) + len(netlist.units)
    cells = []
    for number, cell in enumerate(netlist.cells):
        assert cell.origin is not None
        point = tuple((7 * at + number * number) % 11 for at in cell.origin.point)
        cells.append(replace(cell, origin=replace(cell.origin, point=point)))
    same(unplaced(replace(netlist, cells=tuple(cells)), OPEN, 2))


def test_the_graph_is_a_graph() -> None:
    graph = lift_placed(unplaced(lowered(designs.gemm(2, 2, 2, 2, 2)), OPEN))
    assert graph_from_json(graph_to_json(graph)) == graph
    assert isinstance(graph, Graph)
    assert {node.role.value for node in graph.nodes} >= {"load", "store", "compute"}


# ------------------------------------------------------------------------------------ by hand

ONE = "when %p == XXXXXXXX with %i0.0: {}; deq %i0;"


def mapping(text: str, *, steps: int = 6, **types: object) -> NetlistBuilder:
    """x through a cell to y."""
    made = NetlistBuilder()
    made.tensor("x", steps, type=types.get("x"))  # type: ignore[arg-type]
    made.tensor("y", steps, type=types.get("y"), output=True)  # type: ignore[arg-type]
    made.unit(UnitKind.LOAD, "ld", "x", [steps], [1])
    made.unit(UnitKind.STORE, "st", "y", [steps], [1])
    made.cell("cell", text)
    made.net("net1", "ld", "cell")
    made.net("net2", "cell", "st")
    return made


@pytest.mark.parametrize(
    "operation",
    [
        "add %o0.0, %i0, $-7",
        "sub %o0.0, %i0, %i0",
        "asr %o0.0, %i0, $1",
        "lsr %o0.0, %i0, $60",
        "ult %o0.0, %i0, $3",
        "slt %o0.0, %i0, $3",
        "lor %o0.0, %i0, $0",
        "gb %o0.0, %i0, $1",
        "lmul %o0.0, %i0, %i0",
        "mac %o0.0, %i0, %i0, %i0",
        "mov %o0.0, $5",
        "nop %o0.0",
    ],
)
@pytest.mark.parametrize("type", [Int(64), Int(32)])
def test_integers(operation: str, type: object) -> None:
    same(unplaced(mapping(ONE.format(operation), x=type, y=type).netlist(), OPEN))


EDGES = (0, 1, -1, 2, 3, -3, 1 << 31, 1 << 32, -(1 << 32), (1 << 63) - 1, -(1 << 63), 0x5DEECE66D)


@sampled(
    "operation",
    [
        *("clz %o0.0, %i0", "clz %o0.0, %i0, $1", "ctz %o0.0, %i0"),
        *("shmul %o0.0, %i0, %i1", "uhmul %o0.0, %i0, %i1"),
    ],
    quick=1,
)
@pytest.mark.parametrize("engine", ["native", "python"])
def test_operators_that_take_several_of_a_graph(operation: str, engine: str) -> None:
    text = f"when %p == X with %i0.0, %i1.0: {operation}; deq %i0, %i1;"
    made = mapping(text, steps=len(EDGES) ** 2, x=Int(64), y=Int(64))
    made.tensor("z", len(EDGES) ** 2, type=Int(64))
    made.unit(UnitKind.LOAD, "other", "z", [len(EDGES) ** 2], [1])
    made.net("net3", "other", ("cell", 1))
    design = unplaced(made.netlist(), OPEN)
    pairs = np.array([(a, b) for a in EDGES for b in EDGES], np.int64)
    inputs = {"x": pairs[:, 0], "z": pairs[:, 1]}
    expected = run_placed(design, inputs)
    found = simulate(lift_placed(design), inputs, engine=engine)
    np.testing.assert_array_equal(found.outputs["y"], expected.outputs["y"])
    assert found.cycles == expected.cycles


def test_types_are_converted() -> None:
    same(unplaced(mapping(ONE.format("itf %o0.0, %i0"), x=Int(32)).netlist(), OPEN))
    same(unplaced(mapping(ONE.format("fti %o0.0, %i0"), y=Int(64)).netlist(), OPEN))
    same(unplaced(mapping(ONE.format("flt %o0.0, %i0, $0"), y=BOOL).netlist(), OPEN))
    same(unplaced(mapping(ONE.format("mov %o0.0, %i0"), x=UInt(8), y=Int(64)).netlist(), OPEN))


def test_a_value_that_stays_and_a_register_that_counts() -> None:
    """The first token is kept; to all others it is added, and so is how many there were."""
    text = (
        "init %r1, $100;\n"
        "when %p == XXXXXXX0 with %i0.0: mov %r0, %i0; deq %i0; set %p = ZZZZZZZ1;\n"
        "when %p == XXXXXXX1 with %i1.0, %i2.1: add %r1, %r1, %i1; deq %i1, %i2;\n"
        "when %p == XXXXXXX1 with %i1.0, %i2.0: mac %o0.0, %r0, %i1, %r1; deq %i1, %i2;\n"
    )
    made = NetlistBuilder()
    made.tensor("w", 1, type=Int(64))
    made.tensor("x", 8, type=Int(64))
    made.tensor("y", 4, type=Int(64), output=True)
    made.unit(UnitKind.LOAD, "keep", "w", [1], [1])
    made.unit(UnitKind.LOAD, "ld", "x", [8], [1])
    case = TagCase(when=(UnitCondition(sum=AffineSum(coefficients=(0, 1)), equal=True),), tag=1)
    made.unit(UnitKind.SEQUENCE, "seq", None, [4, 2], tags=[case])
    made.unit(UnitKind.STORE, "st", "y", [4], [1])
    made.cell("cell", text)
    made.net("net3", "keep", ("cell", 0))
    made.net("net4", "ld", ("cell", 1))
    made.net("net5", "seq", ("cell", 2))
    made.net("net6", "cell", "st")
    same(unplaced(made.netlist(), OPEN, 3))


SIZE = (
    "when %p == XXXXXX00 with %i0.0: slt %p0, %i0, $0; set %p = ZZZZZZ1Z;\n"
    "when %p == XXXXXX10 with %i0.0: mov %o0.0, %i0; deq %i0; set %p = ZZZZZZ0Z;\n"
    "when %p == XXXXXX11 with %i0.0: sub %o0.1, %r0, %i0; deq %i0; set %p = ZZZZZZ00;\n"
)
"""The size of a number, with tag 1 if it was negative."""


@pytest.mark.parametrize("engine", ["python", "native"])
def test_firings_that_depend_on_values(engine: str) -> None:
    made = mapping(SIZE, x=Int(64), y=Int(64), steps=9)
    found = same(unplaced(made.netlist(), OPEN, 3), engine=engine)
    assert found.outputs["y"].min() >= 0
    assert found.nodes["cell"].firings == 18


@pytest.mark.parametrize("engine", ["python", "native"])
def test_a_channel_that_is_used_without_a_check(engine: str) -> None:
    """What a cell has checked it may use without a check; else the interpreter may find nothing."""
    text = SIZE.replace("10 with %i0.0:", "10:").replace("11 with %i0.0:", "11:")
    made = mapping(text, x=Int(64), y=Int(64), steps=9).netlist()
    found = same(unplaced(made, OPEN, 3), engine=engine)
    expected = same(unplaced(mapping(SIZE, x=Int(64), y=Int(64), steps=9).netlist(), OPEN, 3))
    assert found.cycles == expected.cycles
    np.testing.assert_array_equal(found.outputs["y"], expected.outputs["y"])
    hasty = mapping("when %p == X: mov %o0.0, %i0; deq %i0;", x=Int(64), y=Int(64)).netlist()
    assert "instruction 0 (line 2) uses %i0, which may be empty" in refused(hasty)
    with pytest.raises(UserError, match=r"instruction 0 .* fires without a token in %i0"):
        run_placed(unplaced(hasty, OPEN, 3), numbers(hasty))


MIXED = (
    "when %p == XXXXXXXX with %i0.0, %i1.2: add %o0.0, %i0, %i1; deq %i0, %i1;\n"
    "when %p == XXXXXXXX with %i0.0, %i1.3: sub %o0.0, %i0, %i1; deq %i0, %i1;\n"
    "when %p == XXXXXXXX with %i0.1, !%i1.9: mac %o0.0, %i0, %i1, %i1; deq %i0, %i1;\n"
)
STATIC = (
    "when %p == XXXXXXXX with %i0.0: add %o{0, 1}.3, %i0, $7; deq %i0;\n"
    "when %p == XXXXXXXX with %i0.2: sub %o{0, 1}.2, %i0, $7; deq %i0;\n"
)
EVERY_SECOND = (
    "when %p == XXXXXXXX with %i0.3: nop; deq %i0;\n"
    "when %p == XXXXXXX0 with %i0.2: mov %r0, %i0; deq %i0; set %p = ZZZZZZZ1;\n"
    "when %p == XXXXXXX1 with %i0.2: nop; deq %i0; set %p = ZZZZZZZ0;\n"
)


@pytest.mark.parametrize("engine", ["python", "native"])
def test_tags_between_machines_and_arrays(engine: str) -> None:
    """A machine looks at the tags of an array and of another machine."""
    made = NetlistBuilder()
    made.tensor("x", 9, type=Int(64))
    made.tensor("y", 9, type=Int(64), output=True)
    last = TagCase(when=(UnitCondition(sum=AffineSum(constant=-6, coefficients=(1,))),), tag=2)
    made.unit(UnitKind.LOAD, "ld", "x", [9], [1])
    made.unit(UnitKind.SEQUENCE, "seq", None, [9], tags=[last])
    made.unit(UnitKind.STORE, "st", "y", [9], [1])
    made.cell("size", SIZE)
    made.cell("static", STATIC)
    made.cell("mixed", MIXED)
    made.cell("after", "when %p == XXXXXXXX with %i0.0: add %o0.0, %i0, $1; deq %i0;")
    made.cell("second", EVERY_SECOND)
    made.net("a", "ld", "size")
    made.net("b", "seq", "static")
    made.net("c", "size", ("mixed", 0))
    made.net("d", ("static", 0), ("mixed", 1))
    made.net("e", ("static", 1), "second")
    made.net("f", "mixed", "after")
    made.net("g", "after", "st")
    same(unplaced(made.netlist(), OPEN, 2), engine=engine)


def test_floats_in_a_machine() -> None:
    text = (
        "init %r0, $f0.5;\n"
        "when %p == XXXXXX00 with %i0.0: flt %p0, %i0, $0; set %p = ZZZZZZ1Z;\n"
        "when %p == XXXXXX10 with %i0.0: fmac %o0.0, %r0, %i0, %i0; deq %i0; set %p = ZZZZZZ0Z;\n"
        "when %p == XXXXXX11 with %i0.0: mov %r0, %i0; set %p = ZZZZZZ10;\n"
    )
    same(unplaced(mapping(text, steps=12).netlist(), OPEN, 2))


def test_registers_that_start_at_minus_zero() -> None:
    text = "init %r0, $f-0.0;\n" + ONE.format("fadd %o0.0, %r0, %i0")
    graph = lift_placed(unplaced(mapping(text).netlist(), OPEN))
    (register,) = graph.node("cell").registers
    assert repr(register.initial) == "-0.0"


def test_one_operator_with_more_or_fewer_operands() -> None:
    """What is not there is 0."""
    text = (
        "when %p == XXXXXXXX with %i0.0, %i1.0: add %o0.0, %i0; deq %i0, %i1;\n"
        "when %p == XXXXXXXX with %i0.0, %i1.1: add %o0.0, %i0, %i0; deq %i0, %i1;\n"
    )
    made = mapping(text, x=Int(64), y=Int(64))
    later = UnitCondition(sum=AffineSum(constant=-3, coefficients=(1,)))
    made.unit(UnitKind.SEQUENCE, "seq", None, [6], tags=[TagCase(when=(later,), tag=1)])
    made.net("tags", "seq", ("cell", 1))
    same(unplaced(made.netlist(), OPEN))


def test_extents_that_depend_on_loops_around() -> None:
    made = mapping(ONE.format("fmul %o0.0, %i0, %i0"), steps=10)
    triangle = (
        StreamLoop(name="i", extent=AffineSum(constant=4)),
        StreamLoop(name="j", extent=AffineSum(constant=1, coefficients=(1,))),
    )
    made.units = [
        replace(unit, loops=triangle, address=AffineSum(coefficients=(2, 1))) for unit in made.units
    ]
    same(unplaced(made.netlist(), OPEN))


def refused(netlist: Netlist) -> str:
    with pytest.raises(UserError) as caught:
        lift_placed(unplaced(netlist, OPEN))
    return str(caught.value)


IN_REGISTERS = {
    "a sum that is sent each time": (
        "when %p == XXXXXXX0 with %i0.0: fadd %r0, %r0, %i0; deq %i0; set %p = ZZZZZZZ1;\n"
        "when %p == XXXXXXX1: mov %o0.0, %r0; set %p = ZZZZZZZ0;\n"
    ),
    "work of other kinds while it is on its way": (
        "when %p == XXXXXX00 with %i0.0: fmul %r0, %i0, %i0; set %p = ZZZZZZZ1;\n"
        "when %p == XXXXXX01: nop; set %p = ZZZZZZ10;\n"
        "when %p == XXXXXX10 with %i0.0: fmac %r1, %r0, %r1, %i0; set %p = ZZZZZZ11;\n"
        "when %p == XXXXXX11 with %i0.0: fadd %o0.0, %r1, %i0; deq %i0; set %p = ZZZZZZ00;\n"
    ),
    "what is written before it was read": (
        "when %p == XXXXXX00 with %i0.0: fmul %r0, %i0, %i0; set %p = ZZZZZZZ1;\n"
        "when %p == XXXXXX01 with %i0.0: mov %r0, %i0; set %p = ZZZZZZ10;\n"
        "when %p == XXXXXX10 with %i0.0: fadd %o0.0, %r0, %r0; deq %i0; set %p = ZZZZZZ00;\n"
    ),
}


@pytest.mark.parametrize("program", IN_REGISTERS)
@pytest.mark.parametrize("fma_latency", [0, 1, 4])
def test_a_result_of_the_fma_in_a_register(program: str, fma_latency: int) -> None:
    """Who reads or writes the register waits for it; what else there is goes on."""
    netlist = mapping(IN_REGISTERS[program]).netlist()
    for engine in ("native", "python"):
        same(unplaced(netlist, replace(OPEN, fma_latency=fma_latency)), engine=engine)


def test_a_result_of_the_fma_that_nobody_uses() -> None:
    """The sum waits for itself, but for the last one, which is left in the register."""
    text = (
        "when %p == XXXXXX00 with %i0.0: fadd %r0, %r0, %i0; set %p = ZZZZZZZ1;\n"
        "when %p == XXXXXX01 with %i0.0: mov %o0.0, %i0; deq %i0; set %p = ZZZZZZZ0;\n"
    )
    for engine in ("native", "python"):
        same(unplaced(mapping(text).netlist(), OPEN), engine=engine)


def test_a_result_of_the_fma_that_decides() -> None:
    """The second one fires while the first one waits for the register."""
    text = (
        "when %p == XXXXXXX0 with %i0.0: fmul %r0, %i0, %i0; set %p = ZZZZZZZ1;\n"
        "when %p == XXXXXXX1 with %i0.0: mov %o0.0, %r0; deq %i0; set %p = ZZZZZZZ0;\n"
        "when %p == XXXXXXX1 with %i0.0: nop; deq %i0; set %p = ZZZZZZZ0;\n"
    )
    found = refused(mapping(text).netlist())
    assert "(line 4) fires if instruction 1 (line 3) waits for the FMA's result in %r0" in found


def test_addresses_that_come_from_a_channel() -> None:
    """What a unit loads at addresses, and where another one stores: values and cycles."""
    made = NetlistBuilder("permuted")
    made.tensor("p", 4, type=Int(32))
    made.tensor("x", 2, 3)
    made.tensor("y", 6, output=True)
    made.load("addresses", "p", [4], [1])
    made.unit(UnitKind.LOAD_AT, "gather", "x")
    made.unit(UnitKind.STORE_AT, "scatter", "y")
    made.units[1] = replace(made.units[1], address=AffineSum(constant=1))
    made.net("p", "addresses", "gather", ("scatter", 0), tokens=8)
    made.net("x", "gather", ("scatter", 1))
    design = unplaced(made.netlist(), OPEN)
    inputs = {"p": np.array([4, 0, 3, 1], np.int32), "x": np.arange(6.0).reshape(2, 3)}
    run = run_placed(design, inputs)
    lifted = t2s.simulate(lift_placed(design), inputs, engine="python", progress=False)
    assert run.outputs["y"].tolist() == [1.0, 2.0, 0.0, 4.0, 5.0, 0.0]
    assert lifted.outputs["y"].tolist() == run.outputs["y"].tolist()
    assert lifted.cycles == run.cycles


def test_addresses_with_other_tags_are_passed_on() -> None:
    """Stops of streams go through a unit that loads, and nothing is loaded for them."""
    made = NetlistBuilder("passed")
    made.tensor("x", 2)
    made.tensor("y", 4, output=True)
    step = AffineSum(coefficients=(1,))
    last = TagCase(when=(UnitCondition(sum=AffineSum(constant=-2, coefficients=(1,))),), tag=3)
    made.units.append(
        StreamUnit(
            name="seq",
            kind=UnitKind.SEQUENCE,
            loops=(StreamLoop(name="i", extent=AffineSum(constant=4)),),
            address=step,
            tags=(last,),
        )
    )
    made.unit(UnitKind.LOAD_AT, "gather", "x")
    made.cell(
        "cell",
        "when %p == X with %i0.0: mov %o0.0, %i0; deq %i0;\n"
        "when %p == X with %i0.3: mov %o0.0, $0; deq %i0;",
    )
    made.store("store", "y", [4], [1])
    made.net("at", "seq", "gather")
    made.net("x", "gather", "cell")
    made.net("y", "cell", "store")
    design = unplaced(made.netlist(), OPEN)
    inputs = {"x": np.array([5.0, 6.0])}
    run = run_placed(design, inputs)
    lifted = t2s.simulate(lift_placed(design), inputs, engine="python", progress=False)
    assert run.outputs["y"].tolist() == lifted.outputs["y"].tolist() == [5, 6, 0, 0]
    assert lifted.cycles == run.cycles


def test_what_fires_depends_on_room() -> None:
    text = (
        "when %p == XXXXXXX0 with %i0.0: mov %o0.0, %i0; deq %i0;\n"
        "when %p == XXXXXXX0 with %i0.0: nop; deq %i0; set %p = ZZZZZZZ1;\n"
        "when %p == XXXXXXX1: nop; set %p = ZZZZZZZ0;\n"
    )
    found = refused(mapping(text).netlist())
    why = "the program of 'cell' cannot become a graph: what fires depends on timing"
    assert found.startswith(why)
    assert "(line 3) fires if instruction 0 (line 2) waits for room in %o0" in found


def test_bits_of_floats() -> None:
    found = refused(mapping(ONE.format("band %o0.0, %i0, $1")).netlist())
    assert "is used as a float and as an integer" in found
    assert "convert with itf and fti" in found


def test_operators_that_graphs_do_not_have() -> None:
    found = refused(mapping(ONE.format("bnand %o0.0, %i0, %i0"), x=Int(64), y=Int(64)).netlist())
    assert found.startswith("graphs have no 'bnand', which 'cell' does in line 2")


# --------------------------------------------------------------------------------------- parts


def test_formulas_of_points() -> None:
    points = [(a, b) for a in range(3) for b in range(4)]
    assert affine_form(points, [5] * 12) == ((0, 0), 5)
    assert affine_form(points, [b - 2 for _, b in points]) == ((0, 1), -2)
    assert affine_form(points, [3 * a - b + 1 for a, b in points]) == ((3, -1), 1)
    assert affine_form(points, [a * b for a, b in points]) is None
    assert mapped("ab", points, [(a * b,) for a, b in points]) is None
    for part in (points, points[4:8], points[1:], [(0, 0), (2, 3)], points[:5]):
        found = inside("ab", part, points)
        assert found is not None
        assert (found == TRUE) == (part == points)
        for a, b in points:
            here = bool(evaluate(found, {"a": np.int32(a), "b": np.int32(b)}))
            assert here == ((a, b) in part)


def test_the_steps_with_some_tags() -> None:
    loops = tuple(StreamLoop(name=n, extent=AffineSum(constant=e)) for n, e in (("i", 4), ("j", 3)))
    last = UnitCondition(sum=AffineSum(constant=-2, coefficients=(0, 1)))
    first = UnitCondition(sum=AffineSum(coefficients=(0, 1)), equal=True)
    nest = TaggedSteps(
        loops=loops, tags=(TagCase(when=(last,), tag=2), TagCase(when=(first,), tag=1))
    )
    for tags, extent in (({0, 1}, 2), ({0, 2}, 2), ({0}, 1), ({2}, 1)):
        found = restricted(nest, frozenset(tags))
        assert found is not None
        assert [loop.extent.constant for loop in found.loops] == [4, extent]
    assert restricted(nest, frozenset({1, 2})) is None
    assert restricted(nest, frozenset({5})) is None
