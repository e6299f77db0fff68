"""Profile B in detail: words, pipelines, memory, tags, and designs that cannot be or get stuck."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.backends.cgra_tia.fabric import FABRICS, CellKind
from t2s.backends.cgra_tia.machine.profile_b import (
    PlacedDeadlockError,
    PlacedLimitError,
    PlacedRun,
    run_placed,
)
from t2s.backends.cgra_tia.machine.words import bits, fused, token_meanings
from t2s.backends.cgra_tia.netlist import (
    AffineSum,
    Branch,
    Net,
    PlacedDesign,
    Provenance,
    TagCase,
    UnitCondition,
    UnitKind,
    unplaced,
)
from t2s.backends.cgra_tia.program import Opcode
from t2s.core.errors import UserError
from t2s.core.expr import Index
from t2s.core.location import SourceLocation
from t2s.core.types import Bool, Float, Int, Type, UInt
from t2s.graph.graph import Layout
from tests.backends.cgra.built_netlists import NetlistBuilder
from tests.backends.cgra.closed_forms import COPY, SINK, through

FABRIC = FABRICS["cgra8"]


def passed(program: str, x: Any, type: Type | None = None, **options: Any) -> PlacedRun:
    array = np.array(x, (type or Float(64)).numpy)
    return run_placed(through(program, array, type), {"x": array}, **options)


@pytest.mark.parametrize(
    ("operation", "type", "given", "expected"),
    [
        ("mov %o0.0, %i0", Float(64), [0.5, -0.0, math.inf], [0.5, -0.0, math.inf]),
        ("mov %o0.0, %i0", Bool(), [True, False], [True, False]),
        ("add %o0.0, %i0, %i0", Int(32), [1 << 30, -1], [-(1 << 31), -2]),
        ("add %o0.0, %i0, $-1", UInt(8), [0, 1], [255, 0]),
        ("add %o0.0, %i0, %i0", Int(64), [1 << 62, -5], [-(1 << 63), -10]),
        ("lmul %o0.0, %i0, %i0", Int(64), [1 << 32, 3], [0, 9]),
        ("asr %o0.0, %i0, $70", Int(64), [-8, 8], [-1, 0]),
        ("clz %o0.0, %i0", Int(64), [1, 0], [63, -1]),
        ("slt %o0.0, %i0, $0", Int(64), [-1, 1], [1, 0]),
        ("itf %o0.0, %i0", Int(64), [1, -1], [0x3FF << 52, (0xBFF << 52) - (1 << 64)]),
        ("fti %o0.0, %i0", Int(64), [0x3FF << 52, 0x7FF << 52], [1, (1 << 63) - 1]),
        ("feq %o0.0, %i0, %i0", Int(64), [0x3FF << 52, 0x7FF8 << 48], [1, 0]),
        ("fadd %o0.0, %i0, %i0", Float(64), [0.1, 3.0], [0.2, 6.0]),
        ("fsub %o0.0, %i0, %r0", Float(64), [0.1, 3.0], [0.1, 3.0]),
        ("fmul %o0.0, %i0, %i0", Float(64), [0.1, 1e200], [0.1 * 0.1, math.inf]),
        ("bxor %o0.0, %i0, $0", Float(64), [0.1, 3.0], [0.1, 3.0]),
    ],
)
def test_words_and_types(operation: str, type: Type, given: list[Any], expected: list[Any]) -> None:
    run = passed(f"when %p == X with %i0.0: {operation}; deq %i0;", given, type)
    assert run.outputs["y"].dtype == type.numpy
    assert run.outputs["y"].tolist() == expected


FLOATS = st.floats(width=64) | st.floats(-1e3, 1e3) | st.integers(-99, 99).map(float)


@pytest.mark.slow
@settings(max_examples=500)
@given(FLOATS, FLOATS, FLOATS)
def test_fused_multiply_add_is_exact(a: float, b: float, c: float) -> None:
    result = fused(a, b, c)
    if not all(map(math.isfinite, (a, b, c))):
        plain = a * b + c if math.isfinite(c) or not math.isfinite(a * b) else c
        finite = math.isfinite(a) and math.isfinite(b)
        expected = c if finite else plain
        assert result == expected or (math.isnan(result) and math.isnan(expected))
        return
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if not math.isfinite(result):
        assert abs(exact) >= Fraction(2) ** 1024 - Fraction(2) ** 970
        return
    if exact == 0:
        assert result == 0.0
        return
    distance = abs(Fraction(result) - exact)
    for direction in (-math.inf, math.inf):
        neighbor = math.nextafter(result, direction)
        if math.isfinite(neighbor):
            other = abs(Fraction(neighbor) - exact)
            assert distance < other or (distance == other and bits(result) % 2 == 0)


@pytest.mark.parametrize(
    ("a", "b", "c", "expected"),
    [
        (1.0 + 2.0**-52, 1.0 - 2.0**-52, -1.0, -(2.0**-104)),
        (0.1, 10.0, -1.0, 2.0**-54),
        (1e308, 10.0, -math.inf, -math.inf),
        (-0.0, 1.0, 0.0, 0.0),
        (-1.0, 5e-324, 0.0, -5e-324),
        (5e-324, 0.25, 0.0, 0.0),
        (1e-200, -1e-200, 0.0, -0.0),
    ],
)
def test_fused_multiply_add_by_hand(a: float, b: float, c: float, expected: float) -> None:
    assert bits(fused(a, b, c)) == bits(expected)


def test_rounding_once_or_twice() -> None:
    program = (
        "init %r0, $f-1.0;\ninit %r1, $f10.0;\n"
        "when %p == X with %i0.0: fmac %o0.0, %r0, %i0, %r1; deq %i0;"
    )
    assert passed(program, [0.1]).outputs["y"].tolist() == [2.0**-54]
    assert passed(program, [0.1], fused=False).outputs["y"].tolist() == [0.0]
    assert set(token_meanings(True)) == set(token_meanings(False)) >= {Opcode.FMAC, Opcode.ADD}


def test_an_fma_delays_all_tokens_of_its_output() -> None:
    """One token through the FMA, one around it: the second follows the first in order."""
    program = (
        "when %p == X0 with %i0.0: fadd %o0.0, %i0, %i0; deq %i0; set %p = Z1;\n"
        "when %p == X1 with %i0.0: mov %o0.0, %i0; deq %i0; set %p = Z0;\n"
    )
    run = passed(program, [1.0, 2.0, 3.0])
    assert run.outputs["y"].tolist() == [2.0, 2.0, 6.0]
    assert run.cycles == 1 + 1 + (1 + 4) + 2  # load, to the cell, through it, and two more
    assert passed(COPY, [1.0, 2.0, 3.0]).cycles == 1 + 1 + 1 + 2


def test_a_register_that_waits_for_an_fma_is_busy() -> None:
    """A sum in a register takes the latency of the FMA for each of its steps."""
    program = (
        "when %p == X with %i0.0: fadd %r0, %r0, %i0; deq %i0;\n"
        "when %p == X with %i1.0: mov %o0.0, %r0; deq %i1;\n"
    )
    builder = NetlistBuilder("sum")
    builder.tensor("x", 5)
    builder.tensor("y", 1, output=True)
    builder.load("load", "x", [5], [1])
    builder.unit(UnitKind.SEQUENCE, "end", extents=[5], tags=[_only_last(5)])
    builder.cell("cell", program.replace("%i1.0", "%i1.1") + DROP)
    builder.store("store", "y", [1], [1])
    builder.net("in", "load", "cell", tokens=5)
    builder.net("end", "end", ("cell", 1), tokens=5)
    builder.net("out", "cell", "store")
    run = run_placed(unplaced(builder.netlist(), FABRIC), {"x": np.arange(5.0)})
    assert run.outputs["y"].tolist() == [10.0]
    assert run.cycles == 2 + 5 * 4 + 1  # a sum every fourth cycle, and the store
    row = run.cells["cell"]
    assert (row.busy, row.waiting, row.starved, row.blocked, row.idle) == (10, 8, 3, 0, 2)


DROP = "when %p == X with %i1.0: nop; deq %i1;\n"


def _only_last(steps: int) -> TagCase:
    last = UnitCondition(sum=AffineSum(constant=1 - steps, coefficients=(1,)), equal=True)
    return TagCase(when=(last,), tag=1)


def test_loads_wait_for_their_latency_and_their_share() -> None:
    x = np.arange(8.0)
    design = through(COPY, x)
    assert run_placed(design, {"x": x}).cycles == 8 + 2
    late = run_placed(design, {"x": x}, memory_latency=10)
    assert late.cycles == 8 + 2 + 10
    half = run_placed(design, {"x": x}, words_per_cycle=1)
    assert np.array_equal(half.outputs["y"], x)
    assert half.cycles == 16  # a word is loaded or stored in each cycle
    row = half.units["load"]
    assert row.busy + row.starved + row.blocked + row.waiting + row.idle == 16
    assert run_placed(design, {"x": x}, words_per_cycle=2).cycles == 8 + 2


def test_addresses_come_from_a_channel() -> None:
    """y[p[i]] = x[p[i]] with an address unit on each side."""
    builder = NetlistBuilder("permuted")
    builder.tensor("p", 4, type=Int(32))
    builder.tensor("x", 4)
    builder.tensor("y", 4, output=True)
    builder.load("addresses", "p", [4], [1])
    builder.unit(UnitKind.LOAD_AT, "gather", "x")
    builder.unit(UnitKind.STORE_AT, "scatter", "y")
    builder.net("p", "addresses", "gather", ("scatter", 0), tokens=8)
    builder.net("x", "gather", ("scatter", 1))
    design = unplaced(builder.netlist(), FABRIC)
    x = np.array([0.5, 1.5, 2.5, 3.5])
    order = np.array([2, 0, 3, 1], np.int32)
    run = run_placed(design, {"p": order, "x": x})
    assert np.array_equal(run.outputs["y"], x)
    assert run.cycles == 6
    wrong = np.array([2, 0, 4, 1], np.int32)
    with pytest.raises(UserError, match="the unit 'gather' goes beyond the tensor 'x'") as caught:
        run_placed(design, {"p": wrong, "x": x})
    assert "expected: an element from 0 to 3" in str(caught.value)
    assert "given:    element 4, in step 3" in str(caught.value)
    with pytest.raises(UserError, match="element -1"):
        run_placed(design, {"p": -np.ones(4, np.int32), "x": x})


def test_nests_with_triangles_and_tags() -> None:
    """The lower triangle row by row, with a tag on its diagonal."""
    builder = NetlistBuilder("triangle")
    builder.tensor("x", 4, 4)
    builder.tensor("y", 10, output=True)
    row = AffineSum(constant=1, coefficients=(1,))
    diagonal = UnitCondition(sum=AffineSum(coefficients=(1, -1)), equal=True)
    tags = [TagCase(when=(diagonal,), tag=9)]
    builder.unit(UnitKind.LOAD, "load", "x", [4, row], [4, 1], tags=tags)
    builder.cell("cell", COPY + "\nwhen %p == X with %i0.9: fsub %o0.0, %r0, %i0; deq %i0;")
    builder.store("store", "y", [10], [1])
    builder.net("in", "load", "cell")
    builder.net("out", "cell", "store")
    x = np.arange(16.0).reshape(4, 4)
    run = run_placed(unplaced(builder.netlist(), FABRIC), {"x": x})
    assert run.outputs["y"].tolist() == [0, 4, -5, 8, 9, -10, 12, 13, 14, -15]
    assert run.cycles == 10 + 2 + 4


def test_layouts_and_padding_are_those_of_the_user() -> None:
    builder = NetlistBuilder("layout")
    i, j = Index(name="i"), Index(name="j")
    layout = Layout(array="given", loops=("j", "i"), extents=(4, 2), indices=(i, j))
    builder.tensor("x", 2, 3)
    builder.tensor("y", 3, output=True)
    builder.tensors[0] = replace(builder.tensors[0], padded=(2, 4), layout=layout)
    builder.tensors[1] = replace(builder.tensors[1], padded=(8,))
    builder.load("load", "x", [8], [1])
    builder.cell("cell", COPY)
    builder.store("store", "y", [8], [1])
    builder.net("in", "load", "cell")
    builder.net("out", "cell", "store")
    run = run_placed(unplaced(builder.netlist(), FABRIC), {"given": np.arange(6.0).reshape(2, 3)})
    assert run.outputs["y"].tolist() == [0, 3, 1]


def test_a_scratchpad_holds_words() -> None:
    program = (
        "when %p == X0 with %i0.0: ssw %i0, $511; set %p = Z1;\n"
        "when %p == X1 with %i0.0: lsw %o0.0, $511; deq %i0; set %p = Z0;\n"
    )
    assert passed(program, [0.5, 1.5]).outputs["y"].tolist() == [0.5, 1.5]
    with pytest.raises(UserError, match="the cell 'cell' goes beyond its scratchpad") as caught:
        passed(program.replace("511", "512"), [0.5])
    assert "expected: an address from 0 to 511" in str(caught.value)
    assert "given:    ssw of address 512" in str(caught.value)


def test_nothing_to_do_takes_no_cycle() -> None:
    builder = NetlistBuilder("nothing")
    builder.tensor("y", 1, output=True)
    builder.unit(UnitKind.STORE, "store", "y", [0], [1])
    builder.cell("cell", "when %p == 1: mov %o0.0, $1;")
    builder.net("out", "cell", "store")
    run = run_placed(unplaced(builder.netlist(), FABRIC), {})
    assert (run.cycles, run.outputs["y"].tolist()) == (0, [0.0])
    assert run.utilization == 0.0


def test_a_cell_may_halt() -> None:
    with pytest.raises(PlacedDeadlockError) as caught:
        passed("when %p == X with %i0.0: halt %o0.0; deq %i0;", [1.0, 2.0])
    assert "the cell 'cell' has halted (at its inputs: %i0 tag 0), after 1 firings" in str(
        caught.value
    )


def test_tokens_without_an_instruction_and_tokens_left() -> None:
    with pytest.raises(PlacedDeadlockError) as caught:
        passed("when %p == X with %i0.3: mov %o0.0, %i0; deq %i0;", [1.0])
    assert "has no instruction for what is at its inputs: %i0 tag 0" in str(caught.value)
    twice = "when %p == X0 with %i0.0: mov %o0.0, %i0; set %p = Z1;\n" + COPY.replace("X", "X1")
    with pytest.raises(PlacedDeadlockError) as caught:
        passed(twice + "\nwhen %p == X with %i0.0: nop;", [1.0])
    said = str(caught.value)
    assert "all units done; tokens left in 'out' (1 of 2 tokens)" in said
    assert "senders and receivers disagree about the number of tokens" in said


def test_a_deadlock_names_the_nodes_and_lines_of_the_user() -> None:
    design = through("when %p == X with %i0.3: mov %o0.0, %i0; deq %i0;", [1.0])
    (cell,) = design.netlist.cells
    origin = Provenance(node="C", point=(1, 2), location=SourceLocation("gemm.py", 7))
    netlist = replace(design.netlist, cells=(replace(cell, origin=origin),))
    with pytest.raises(PlacedDeadlockError) as caught:
        run_placed(replace(design, netlist=netlist), {"x": np.ones(1)})
    assert "note:     the cell 'cell' (C[1, 2]) has no instruction" in str(caught.value)
    assert "--> gemm.py:7" in str(caught.value)


def test_a_run_without_end_stops_at_the_limit() -> None:
    with pytest.raises(PlacedLimitError) as caught:
        passed("when %p == X with %i0.0: nop;", [1.0], max_cycles=500)
    assert "'through' had not ended after 500 cycles, the limit" in str(caught.value)
    assert "1 unfinished units, 1 tokens on their way" in str(caught.value)


def _renamed(design: PlacedDesign, **changes: Any) -> PlacedDesign:
    return replace(design, netlist=replace(design.netlist, **changes))


def _net(design: PlacedDesign, **changes: Any) -> PlacedDesign:
    """The first net changed."""
    first, *others = design.netlist.nets
    return _renamed(design, nets=(replace(first, **changes), *others))


def _unwired() -> dict[str, Callable[[], PlacedDesign]]:
    """Designs that cannot be, by a part of the message."""
    good = through(COPY, [1.0])
    cell, nets, units = good.netlist.cells[0], good.netlist.nets, good.netlist.units
    source = nets[0].source
    bad_branch = replace(
        good, branches={**good.branches, "in": (Branch(path=(), latency=0, capacity=1),)}
    )
    again = Net(name="more", group="more", source=source, sinks=nets[0].sinks)
    more = replace(good, branches={**good.branches, "more": good.branches["in"]})
    float16 = tuple(replace(t, type=Float(16)) for t in good.netlist.tensors)
    return {
        "two parts of the design are named 'cell'": lambda: _renamed(good, cells=(cell, cell)),
        "the cell 'cell' has no FMA": lambda: through(
            COPY.replace("mov %o0.0, %i0", "fadd %o0.0, %i0, %i0"), [1.0], kind=CellKind.CONTROL
        ),
        "instruction 0 of the cell 'cell': no machine has the operator bnand": lambda: through(
            COPY.replace("mov", "bnand"), [1.0]
        ),
        "the result of an FMA goes to a predicate": lambda: through(
            COPY + "\nwhen %p == X with %i0.1: fadd %p0, %i0, %i0; deq %i0;", [1.0]
        ),
        "unknown output channel %o8": lambda: _renamed(good, cells=(_odd_cell(good),)),
        "the program of the cell 'cell' is too long": lambda: _renamed(
            good, cells=(_long_cell(good),)
        ),
        "the net 'in' ends at a missing part or port": lambda: _net(
            good, source=replace(source, part="nobody")
        ),
        "expected: an output from 0 to 0": lambda: _net(good, source=replace(source, port=1)),
        "given:    output 0 of 'store'": lambda: _net(good, source=replace(source, part="store")),
        "the net 'more' cannot be wired": lambda: _renamed(more, nets=(*nets, again)),
        "given:    0 branches, 1 sinks": lambda: replace(good, branches={}),
        "branch 0 of the net 'in' cannot be wired": lambda: bad_branch,
        "'cell' uses a port that nothing is connected to": lambda: _renamed(good, nets=nets[:1]),
        "given:    output 0": lambda: _renamed(good, nets=nets[:1]),
        "the unit 'load' has no tensor": lambda: _renamed(
            good, units=(replace(units[0], tensor=None), units[1])
        ),
        "'load' has a tensor": lambda: _renamed(
            good, units=(replace(units[0], kind=UnitKind.SEQUENCE), units[1])
        ),
        "the machine has no words for the tensor 'x'": lambda: _renamed(good, tensors=float16),
    }


def _odd_cell(design: PlacedDesign) -> Any:
    (cell,) = design.netlist.cells
    (instruction,) = cell.program.instructions
    odd = replace(instruction, destination=replace(instruction.destination, channels=(8,)))  # type: ignore[type-var, arg-type]
    return replace(cell, program=replace(cell.program, instructions=(odd,)))


def _long_cell(design: PlacedDesign) -> Any:
    (cell,) = design.netlist.cells
    program = replace(cell.program, instructions=cell.program.instructions * 17)
    return replace(cell, program=program)


@pytest.mark.parametrize("message", _unwired())
def test_designs_that_cannot_be(message: str) -> None:
    design = _unwired()[message]()
    array = np.ones(1, design.netlist.tensors[0].type.numpy)
    with pytest.raises(UserError) as caught:
        run_placed(design, {"x": array})
    assert message in str(caught.value)


def test_inputs_are_checked() -> None:
    with pytest.raises(UserError, match="the input x is missing"):
        run_placed(through(COPY, [1.0]), {})
    with pytest.raises(UserError):
        run_placed(through(COPY, [1.0]), {"x": np.ones(2)})


@pytest.mark.parametrize(
    ("options", "kind", "expected"),
    [
        ({"max_cycles": 0}, "positive", "at least 1"),
        ({"memory_latency": -1}, "non-negative", "at least 0"),
        ({"words_per_cycle": 0}, "positive", "at least 1"),
        ({"words_per_cycle": 1.5}, "positive", "at least 1"),
    ],
)
def test_counts_are_checked(options: dict[str, Any], kind: str, expected: str) -> None:
    with pytest.raises(
        UserError, match=f"{next(iter(options))} must be a {kind} integer"
    ) as caught:
        passed(COPY, [1.0], **options)
    assert f"expected: a whole number of {expected}" in str(caught.value)


def test_a_nest_that_is_empty_inside_is_empty_at_once() -> None:
    builder = NetlistBuilder("empty")
    builder.unit(UnitKind.SEQUENCE, "seq", extents=[1 << 60, 0])
    builder.cell("cell", SINK)
    builder.net("net", "seq", "cell")
    assert run_placed(unplaced(builder.netlist(), FABRIC), {}).cycles == 0


def test_the_table_of_a_run() -> None:
    text = str(passed(COPY, [1.0, 2.0]))
    assert text.splitlines()[0] == "through: 4 cycles, FMA usage 6.2%, utilization 50.0%"
    assert text.splitlines()[1].split() == ["part", "busy", "starved", "blocked", "waiting", "idle"]
    assert text.splitlines()[2].split() == ["cell", "2", "0", "0", "0", "2"]
