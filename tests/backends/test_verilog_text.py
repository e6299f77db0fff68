"""The text of the emitted SystemVerilog, and what the backend decides before it writes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import t2s
from t2s.backends.text.expressions import Name
from t2s.backends.verilog import BACKEND
from t2s.backends.verilog.counted_nests import nest_of
from t2s.backends.verilog.data_types import identifier
from t2s.backends.verilog.expressions import flat, times, unsupported_term
from t2s.backends.verilog.verilog_ast import Resize, show
from t2s.core.expr import Apply, Expr, Parameter, Read, apply, const
from t2s.core.ops import OPERATORS, Op, accepts
from t2s.core.types import BOOL, INT32, BFloat, Float
from t2s.graph.body import Receive, Send
from t2s.graph.graph import Graph, ScalarParameter
from t2s.graph.nodes import Loop, PEArray, Role
from tests.backends import designs
from tests.backends.builders import local, node
from tests.conftest import Golden
from tests.hand_graphs import index, loop, space, systolic_gemm
from tests.simulator.designs import chain


def test_a_small_array(golden: Golden) -> None:
    files = BACKEND.emit(systolic_gemm(2, 2, 3))
    golden("verilog/gemm.sv", "\n".join(files[name] for name in ("C.sv", "C_store.sv", "top.sv")))


def test_a_testbench(golden: Golden) -> None:
    golden("verilog/chain_testbench.sv", BACKEND.emit(chain(4))["testbench.sv"])


def test_the_files_are_in_the_order_in_which_they_are_read() -> None:
    files = BACKEND.emit(chain(4))
    listed = files["verilator.f"].splitlines()[1:]
    assert listed == [name for name in files if name != "verilator.f"]
    assert listed[:4] == ["operators.sv", "floats.sv", "stalls.sv", "adjustable_fifo.sv"]


def test_the_text_is_the_same_every_time() -> None:
    for graph in (systolic_gemm(2, 3, 2, lanes=4), designs.triangular(4, per_pe=True)):
        assert BACKEND.emit(graph) == BACKEND.emit(graph)


@pytest.mark.parametrize(
    ("name", "text"),
    [("A feeder", "A_feeder"), ("module", "module_"), ("2nd", "v2nd"), ("a__b", "a_b"), ("", "v")],
)
def test_identifiers(name: str, text: str) -> None:
    assert identifier(name) == text


def renamed(graph: Graph, names: dict[str, str]) -> Graph:
    """The graph with other names of nodes."""
    return replace(
        graph,
        nodes=tuple(replace(n, name=names.get(n.name, n.name)) for n in graph.nodes),
        channels=tuple(
            replace(c, source=names.get(c.source, c.source), sink=names.get(c.sink, c.sink))
            for c in graph.channels
        ),
    )


def test_names_that_are_taken() -> None:
    graph = renamed(chain(4), {"load": "top", "compute": "fifo", "store": "testbench"})
    files = BACKEND.emit(graph)
    assert {"top_2.sv", "fifo_2.sv", "testbench_2.sv"} <= files.keys()
    assert "module fifo_2 (" in files["fifo_2.sv"]
    assert "fifo_2 fifo_node (" in files["top.sv"]


def nested(*bounds: tuple[int | Expr, int | Expr], pes: int = 1) -> PEArray:
    """A relay over a nest of loops ``a``, ``b``, ... of (minimum, extent)."""

    def expr(value: int | Expr) -> Expr:
        return value if isinstance(value, Expr) else const(value)

    loops = [
        Loop(name=name, minimum=expr(low), extent=expr(count))
        for name, (low, count) in zip("abcd", bounds, strict=False)
    ]
    body = (
        Receive(target="value", channel="A", type=INT32),
        Send(channel="B", value=local("value")),
    )
    return node("relay", Role.RELAY, loops, body, pes=(space("p", pes),))


A, B, P = index("a"), index("b"), index("p")


@pytest.mark.parametrize(
    ("relay", "search"),
    [
        (nested((0, 4), (2, 3)), 0),
        (nested((0, 0), (2, 3)), 0),
        (nested((0, P), (0, 2), pes=3), 0),
        (nested((0, 4), (0, A + 1)), 0),
        # the first row has no iteration, so the first step goes past one empty loop
        (nested((0, 4), (0, A)), (1 + 2) * 2 * 2),
        # rows 0, 1 and 2 have none
        (nested((0, 5), (0, apply(Op.MAXIMUM, A - 2, const(0)))), (3 + 2) * 2 * 2),
        # a = 0 has no b; a = 1 has b = 0 without a c, and so has a = 2
        (nested((0, 3), (0, A), (0, B)), (3 + 2) * 2 * 3),
    ],
)
def test_how_far_a_nest_is_searched(relay: PEArray, search: int) -> None:
    nest = nest_of(relay)
    assert not isinstance(nest, str)
    assert nest.search == search


def problems(graph: Graph) -> list[str]:
    return [str(problem) for problem in BACKEND.supports(graph)]


def test_everything_in_the_test_designs_is_supported() -> None:
    for graph in (designs.scatter_gather(), designs.serial_feeder(), designs.through_memory()):
        assert problems(graph) == []


def test_types_without_operators() -> None:
    graph = systolic_gemm(1, 1, 2, element=Float(16))
    why = "the simulation has no float16 operators; use float32"
    assert problems(graph)[0] == f"node 'A_load': {why}"
    assert f"tensor 'C': {why}" in problems(graph)
    with pytest.raises(t2s.errors.UnsupportedError) as caught:
        BACKEND.emit(graph)
    assert str(caught.value).startswith(
        f"the verilog backend cannot emit 'gemm': node 'A_load': {why}"
    )
    (why,) = problems(systolic_gemm(1, 1, 2, element=BFloat()))[:1]
    assert why == (
        "node 'C': SystemVerilog cannot compute '+' of bfloat16: cast to float32, and its result "
        "back"
    )


def test_what_has_no_spelling() -> None:
    read = Read(source="X", indices=(), type=INT32)
    assert unsupported_term(read) == "Read is not supported in SystemVerilog yet"
    for type in (INT32, BOOL, Float(32)):
        for op in Op:
            if accepts(op, type):
                operands = [local("a", type)] * OPERATORS[op].arity
                assert unsupported_term(apply(op, *operands)) is None
    divide = Apply(operator=Op.DIVIDE, operands=(const(1), const(2)), type=INT32)
    assert unsupported_term(divide) == "SystemVerilog cannot compute '/' of int32 yet"


def test_a_tensor_that_is_too_large() -> None:
    graph = chain(4)
    tensors = tuple(replace(t, shape=(2**24 + 1,)) for t in graph.tensors)
    assert problems(replace(graph, tensors=tensors)) == [
        f"tensor '{name}': it has more than 16777216 elements, which the testbench would hold"
        for name in "XY"
    ]


def test_a_nest_of_unknown_holes() -> None:
    holes = A - Parameter(name="q", type=INT32)
    graph = chain(4)
    relay = replace(nested((0, 4), (0, holes)), name="compute", space=())
    nodes = tuple(relay if n.name == "compute" else n for n in graph.nodes)
    graph = replace(graph, nodes=nodes, parameters=(ScalarParameter(name="q", type=INT32),))
    assert problems(graph) == [
        "node 'compute': bounds of its loops depend on other loops and on parameters, so it is not "
        "known how many empty loops to skip in one cycle; make the parameters constants"
    ]
    box = replace(relay, loops=(loop("a", 4), Loop(name="b", minimum=const(0), extent=const(3))))
    assert problems(replace(graph, nodes=tuple(box if n is relay else n for n in nodes))) == []


def test_a_nest_that_is_too_long_to_look_at() -> None:
    graph = chain(4)
    relay = replace(nested((0, 5_000_000), (0, A)), name="compute", space=())
    nodes = tuple(relay if n.name == "compute" else n for n in graph.nodes)
    assert problems(replace(graph, nodes=nodes)) == [
        "node 'compute': its loops are not a box, and have more than 4194304 outer iterations"
    ]


@pytest.mark.parametrize("factor", [*range(-9, 70), 127, 1000, 2**31 - 1])
def test_products_by_constants_are_shifts(factor: int) -> None:
    text = show(times(Name(name="value"), factor))
    assert "*" not in text
    assert text.count("value") <= 1 + abs(factor).bit_length() // 2
    for value in (-5, 0, 1, 12):
        assert eval(text, {"value": value}) == value * factor


def test_addresses_of_shifted_indices() -> None:
    """Those of numpy, with extents of 1 and of no power of two."""
    shape = (3, 1, 7, 10)
    names = [Name(name=f"i{at}") for at in range(len(shape))]
    whole = flat(tuple(names), shape, times)
    assert isinstance(whole, Resize)
    text = show(whole.value)
    assert "*" not in text
    for place, point in enumerate(np.ndindex(shape)):
        assert eval(text, {f"i{at}": index for at, index in enumerate(point)}) == place
