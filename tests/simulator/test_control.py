"""Control that mixes space and time: the firing codes say what ``semantics`` says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from t2s.core.expr import Expr, Index, const, equals
from t2s.graph.graph import Graph
from t2s.graph.interpret import interpret_graph
from t2s.graph.nodes import Loop, PEArray, Role, SpaceDimension
from t2s.graph.semantics import iterations, port_uses, space_points
from t2s.simulator.program import flatten
from t2s.simulator.program.build import build_program
from t2s.simulator.program.sim_program import SimProgram
from tests.hand_graphs import systolic_gemm
from tests.simulator.designs import (
    ENGINES,
    ZERO,
    N,
    channel,
    design,
    load_unit,
    local,
    node,
    receive,
    run,
    send,
    store_unit,
    x,
    y,
)

P = Index(name="p")
K = Index(name="k")


def space(extent: int, minimum: int = 0) -> tuple[SpaceDimension, ...]:
    return (SpaceDimension(name="p", minimum=minimum, extent=extent),)


def store_array(pes: int, count: int, source: str, where: Expr) -> PEArray:
    """A store unit with ``pes`` PEs that writes ``Y[where]``."""
    unit = store_unit(count, source)
    store = replace(unit.body[1], indices=(where,))  # type: ignore[call-arg]
    return replace(unit, space=space(pes), body=(unit.body[0], store))


def multiplexed(pes: int, rounds: int) -> Graph:
    """A serial feeder deals its stream to the PEs in turn: the element depends on time."""
    deal = replace(
        channel("B", "feeder", "store"),
        shape=(pes,),
        source_index=(N % pes,),
        sink_index=(P,),
    )
    count = pes * rounds
    where = N * pes + P
    return design(
        (
            load_unit(count, "A"),
            node("feeder", count, receive("A"), send("B", local("A"))),
            store_array(pes, rounds, "B", where),
        ),
        (channel("A", "load", "feeder"), deal),
        x(count),
        y(count),
    )


def scattered(pes: int, rounds: int) -> Graph:
    """Each PE keeps its share of a stream and passes the rest on: space and time mixed.

    In round r the stream carries elements pes-1 .. 0; PE p takes part while k <= pes-1-p and
    keeps the last one it sees.
    """
    last = pes - 1 - P
    shape = (Loop(name="r", minimum=ZERO, extent=const(rounds)),)
    loops = (*shape, Loop(name="k", minimum=ZERO, extent=pes - P))
    body = (
        receive("first", equals(P, ZERO)),
        receive("pass", P > ZERO),
        send("pass", local("first") + local("pass"), K < last),
        send("keep", local("first") + local("pass"), equals(K, last)),
    )
    chain_of_pes = PEArray(
        name="scatter", role=Role.RELAY, space=space(pes), loops=loops, body=body
    )
    passing = replace(
        channel("pass", "scatter", "scatter"),
        shape=(pes,),
        source_index=(P + 1,),
        sink_index=(P,),
    )
    keeping = replace(
        channel("keep", "scatter", "store"), shape=(pes,), source_index=(P,), sink_index=(P,)
    )
    entering = replace(channel("first", "load", "scatter"), sink_index=(), source_index=())
    count = pes * rounds
    where = N * pes + P
    return design(
        (load_unit(count, "first"), chain_of_pes, store_array(pes, rounds, "keep", where)),
        (entering, passing, keeping),
        x(count),
        y(count),
    )


def triangular(size: int) -> Graph:
    """A nest whose inner extent is the outer index plus one."""
    loops = (
        Loop(name="n", minimum=ZERO, extent=const(size)),
        Loop(name="k", minimum=N, extent=N + 1),
    )
    count = size * (size + 1) // 2
    fire_last = equals(K, N + N)
    reader = PEArray(
        name="rows",
        role=Role.COMPUTE,
        space=(),
        loops=loops,
        body=(receive("A"), send("B", local("A") + K, fire_last)),
    )
    return design(
        (load_unit(count, "A"), reader, store_unit(size, "B")),
        (channel("A", "load", "rows"), channel("B", "rows", "store")),
        x(count),
        y(size),
    )


GRAPHS = {
    "multiplexed": multiplexed(3, 4),
    "scattered": scattered(4, 3),
    "triangular": triangular(4),
    "gemm": systolic_gemm(2, 3, 2, tile_rows=2, tile_columns=1),
}


def described(program: SimProgram) -> list[list[tuple[list[str], list[str]]]]:
    """Per PE and firing, the names of received and sent elements, from the firing codes."""
    control = program.control
    described: list[list[tuple[list[str], list[str]]]] = []
    for pe, firings in enumerate(control.firings):
        of_pe = []
        for firing in range(firings):
            code = control.codes[control.code_start[pe] + firing]
            begin, middle, end = control.rows[control.row_start[pe] + code][:3]
            names = [program.element_label(int(e)) for e in control.uses[begin:end]]
            of_pe.append((names[: middle - begin], names[middle - begin :]))
        described.append(of_pe)
    return described


def expected(graph: Graph) -> list[list[tuple[list[str], list[str]]]]:
    """The same from ``semantics.port_uses``."""

    def label(use: object) -> str:
        name, element = use.channel, use.element  # type: ignore[attr-defined]
        return f"{name}[{', '.join(map(str, element))}]" if element else name

    return [
        [
            ([label(use) for use in receives], [label(use) for use in sends])
            for environment in iterations(item, point, {})
            for receives, sends in [port_uses(graph, item, environment)]
        ]
        for item in graph.nodes
        for point in space_points(item)
    ]


@pytest.mark.parametrize("name", GRAPHS)
def test_codes_say_what_semantics_says(name: str) -> None:
    assert described(build_program(GRAPHS[name], "ideal", None)) == expected(GRAPHS[name])


@pytest.mark.parametrize("name", GRAPHS)
def test_codes_split_by_pe(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = build_program(GRAPHS[name], "ideal", None)
    monkeypatch.setattr(flatten, "MOST_SHARED_ROWS", 0)
    split = build_program(GRAPHS[name], "ideal", None)
    assert described(split) == expected(GRAPHS[name])
    np.testing.assert_array_equal(split.control.sent, shared.control.sent)
    np.testing.assert_array_equal(split.control.sender, shared.control.sender)


@pytest.mark.parametrize("name", GRAPHS)
def test_engines_agree(name: str) -> None:
    graph = GRAPHS[name]
    generator = np.random.default_rng(3)
    inputs = {
        item.name: generator.integers(-9, 9, item.shape, dtype=np.int32)
        for item in graph.tensors
        if item.role.value == "input"
    }
    plain, *others = (run(graph, engine, inputs=inputs) for engine in ENGINES)
    assert plain.finished
    values = interpret_graph(graph, inputs)
    for result in (plain, *others):
        assert plain.nodes == result.nodes
        assert plain.cycles == result.cycles
        for output, expected_values in values.items():
            np.testing.assert_array_equal(result.outputs[output], expected_values)


def test_scatter_and_multiplexer_deliver() -> None:
    inputs = {"X": np.arange(12, dtype=np.int32)}
    assert list(run(GRAPHS["multiplexed"], "native", inputs=inputs).outputs["Y"]) == list(range(12))
    result = run(GRAPHS["scattered"], "native", inputs=inputs).outputs["Y"]
    assert list(result) == [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8]


def test_pes_of_a_node_share_their_codes() -> None:
    program = build_program(systolic_gemm(4, 4, 64), "ideal", None)
    compute = program.nodes[2]
    assert len(set(program.control.code_start[compute.instances])) == 1
    # Two codes, for the last step and for the others, on each of 16 PEs; one for each other PE.
    assert len(program.control.rows) == 2 * 16 + 4 + 4 + 16


def test_labels_start_at_the_minimum_of_the_space() -> None:
    unit = replace(node("a", 1, send("B")), space=space(2, minimum=5))
    sink = replace(node("b", 1, receive("B")), space=space(2, minimum=5))
    wire = replace(
        channel("B", "a", "b"),
        shape=(2,),
        source_index=(P - 5,),
        sink_index=(P - 5,),
    )
    program = build_program(design((unit, sink), (wire,)), "ideal", None)
    assert [program.pe_label(n) for n in range(4)] == ["a[5]", "a[6]", "b[5]", "b[6]"]
    assert [program.element_label(n) for n in range(2)] == ["B[0]", "B[1]"]
