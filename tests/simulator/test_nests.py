"""Values by loop nests: which nodes run so, and that they give the values of the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import t2s
from benchmarks import engine
from t2s import Float, Graph, Int
from t2s.core.errors import InternalError
from t2s.core.expr import Broadcast, Expr, Index, LaneNumbers, Select, const
from t2s.core.types import BFloat
from t2s.core.walk import rewrite
from t2s.graph.body import Send
from t2s.graph.interpret import interpret_graph
from t2s.graph.semantics import space_points
from t2s.simulator.values import compute as values
from t2s.simulator.values.compute import compute_values, compute_with_rings
from t2s.simulator.values.nests import trace
from t2s.simulator.values.nests.digits import Product
from t2s.simulator.values.nests.nest import group_of
from t2s.simulator.values.nests.plan import Plan, plan_of
from tests.examples.systolic import Sizes, dot_product, gemm
from tests.examples.test_kernels import KERNELS, tiny
from tests.examples.test_recurrences import CASES
from tests.sampling import sampled
from tests.simulator.test_values import reversed_halves
from tests.spatial.programs import random_inputs

Arrays = dict[str, np.ndarray[Any, Any]]
SMALL = Sizes(rows=3, columns=2, tile=(2, 20), steps=3, lanes=8)


def plan(graph: Graph) -> Plan:
    return plan_of(graph, {})


def agree(graph: Graph, inputs: Arrays | None = None) -> None:
    """Nests, rings and the interpreter give the same bits, whatever the payload of a NaN."""
    inputs = random_inputs(graph, 1, real=True) if inputs is None else inputs
    expected = interpret_graph(graph, inputs)
    for compute in (compute_values, compute_with_rings):
        given = compute(graph, inputs)
        assert given.keys() == expected.keys()
        for name, array in expected.items():
            nan = array != array
            np.testing.assert_array_equal(given[name] != given[name], nan)
            assert given[name][~nan].tobytes() == array[~nan].tobytes()


DESIGNS: dict[str, Callable[[], Graph]] = {
    **{name: lambda name=name: tiny(name).lower() for name in KERNELS},
    "benchmark": lambda: engine.gemm(3, 2, 20, 3),
    "gemm": lambda: t2s.lower(gemm(Float(32), SMALL)),
    "dot_product": lambda: t2s.lower(dot_product(Float(32), SMALL)),
}


@pytest.mark.slow
@pytest.mark.parametrize("make", DESIGNS.values(), ids=DESIGNS.keys())
def test_tensor_kernels(make: Callable[[], Graph]) -> None:
    """What computes, and what stores, runs as a nest; all that passes values on does not run."""
    graph = make()
    found = plan(graph)
    stores = {node.name for node in graph.nodes if node.role.value == "store"}
    assert found.nests.keys() == {graph.name} | stores
    assert group_of(found.nests[graph.name]).width > 1
    assert found.rings <= {"P_loader"}  # its condition is about two loops at once
    agree(graph)


@sampled("name", CASES, quick=2)
def test_recurrences(name: str) -> None:
    """Rings where PEs wait for one another in circles, nests behind them."""
    case = CASES[name]()
    graph = t2s.lower(case.outputs)
    agree(graph, case.inputs)


def test_gemm_runs_in_full_registers_and_without_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = engine.gemm(3, 2, 32, 3)

    def refuse(text: str) -> None:
        raise AssertionError("compiled for rings")

    monkeypatch.setattr(values, "compile_by_use", refuse)
    given = compute_values(graph, random_inputs(graph, 1, real=True))
    assert group_of(plan(graph).nests["C"]).width == 16
    assert plan(graph).passed == {"A_loader": 3 * 32 * 32 * 3, "B_loader": 2 * 32 * 32 * 3}
    assert given["C"].any()


@sampled("type", [Float(64), Float(16), BFloat(16), Int(8), Int(32)], quick=1, ids=str)
@pytest.mark.parametrize("lanes", [1, 3, 8])
def test_types_and_lanes(type: t2s.Type, lanes: int) -> None:
    sizes = replace(SMALL, lanes=lanes, tile=(2, 19))
    graph = t2s.lower(dot_product(type, sizes))
    assert group_of(plan(graph).nests["C"]).width > 1
    agree(graph)


@pytest.mark.slow
def test_long_loops_are_not_unrolled() -> None:
    graph = engine.gemm(1, 2, 147, 2)
    group = group_of(plan(graph).nests["C"])
    assert not group.unrolled
    assert group.extent % group.width  # there is a rest
    agree(graph)


def test_infinities_nans_and_signed_zeros() -> None:
    graph = engine.gemm(2, 2, 8, 2)
    inputs = random_inputs(graph, 3, real=True)
    special = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, 1e-45, 3e38], np.float32)
    generator = np.random.default_rng(5)
    for array in inputs.values():
        where = generator.random(array.shape) < 0.02
        array[where] = generator.choice(special, int(where.sum()))
    inputs["A"][0], inputs["A"][1] = -0.0, 0.0
    agree(graph, inputs)


def test_rings_first_and_nests_behind_them() -> None:
    case = CASES["convolution-bsm"]()
    graph = t2s.lower(case.outputs)
    found = plan(graph)
    assert found.nests.keys() == {"Z_store"}
    assert found.rings == {"Z", "w_loader", "x_loader"}
    assert set(found.recorded) == {c.name for c in graph.channels if c.sink == "Z_store"}


def test_pes_that_compute_one_after_the_other() -> None:
    """In the solver each PE reads what the one before it computed: they run in that order."""
    graph = t2s.lower(CASES["trsm"]().outputs)
    found = plan(graph)
    assert not found.rings
    solver = graph.node("SL")
    places = [at for at, point in enumerate(space_points(solver)) if solver.has_pe(point)]
    turns = [(first, last) for name, first, last in found.turns if name == "SL"]
    assert turns == [(at, at + 1) for at in places]


@pytest.mark.parametrize("vectors", [False, True])
def test_single_buffers_behind_scattered_operands(vectors: bool) -> None:
    """Each PE of a feeder passes on all tokens but its first, and keeps one at a time."""
    A, B = t2s.ImageParam(Int(32), 2, name="A"), t2s.ImageParam(Int(32), 2, name="B")
    i, j, k = t2s.Var("i"), t2s.Var("j"), t2s.RDom(0, 3, name="k")
    C = t2s.Func("C")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, 2).bound(j, 0, 2).unroll(k)
    if vectors:
        C.vload(B).vstore(C)
    A_loader, A_feeder, B_loader, B_feeder, unloader = t2s.funcs("Al Af Bl Bf unloader")
    C.isolate_producer_chain(A, A_loader, A_feeder).isolate_producer_chain(B, B_loader, B_feeder)
    C.isolate_consumer(unloader)
    A_feeder.buffer(A_loader, i, double=False).scatter(A_loader, k)
    B_feeder.buffer(B_loader, i, double=False).scatter(B_loader, k)
    graph = t2s.lower(C)
    assert plan(graph).nests.keys() == {"C", "unloader"}
    agree(graph)


def test_streams_in_another_order() -> None:
    graph = reversed_halves(50)
    assert not plan(graph).rings
    assert plan(graph).passed == {"load": 100}


def test_missing_tokens_are_left_to_the_rings() -> None:
    graph = engine.gemm(2, 2, 4, 3)
    loader, *others = graph.nodes
    shorter = replace(loader.loops[0], extent=const(2))
    nodes = (replace(loader, loops=(shorter, *loader.loops[1:])), *others)
    starving = replace(graph, nodes=nodes)
    assert not plan(starving).nests
    with pytest.raises(InternalError, match="wait for tokens that never come: C, C_unloader"):
        compute_values(starving, random_inputs(graph, 1, real=True))


def test_many_pes_with_little_to_do_are_left_to_the_rings() -> None:
    few, many = engine.gemm(8, 8, 1, 1), engine.gemm(32, 64, 1, 1)
    assert plan(few).nests
    assert not plan(many).nests
    assert plan(engine.gemm(32, 32, 40, 40)).nests.keys() == {"C", "C_unloader"}


def test_interrupts_come_through() -> None:
    graph = engine.gemm(2, 2, 8, 2)

    def stop(firings: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compute_values(graph, random_inputs(graph, 1, real=True), on_progress=stop)


def test_progress_ends_with_all_firings() -> None:
    graph = tiny("mttkrp").lower()
    seen: list[int] = []
    inputs = random_inputs(graph, 1, real=True)
    compute_values(graph, inputs, on_progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == t2s.simulate(graph, inputs, progress=False).firings


def test_a_design_is_prepared_once() -> None:
    from t2s.simulator.values.nests.plan import prepare

    graph = engine.gemm(2, 2, 4, 2)
    assert prepare(graph, {}) is prepare(graph, {})
    assert prepare(graph, {}) is not prepare(replace(graph), {})


@pytest.mark.parametrize("moving", [False, True])
def test_conditions_of_vectors_choose_lane_by_lane(moving: bool) -> None:
    """Lanes are not values of a loop, of which there are as many here."""
    i, o, lane = t2s.variables("i o lane")
    x, F, L = t2s.ImageParam(Int(32), 1, name="x"), t2s.Func("F"), t2s.Func("L")
    F[i] = x[i] + 1
    F.bound(i, 0, 16).split(i, o, lane, 4).isolate_producer(x, L).vload(x).vstore(F)
    graph = t2s.lower(F)
    four = Int(32).with_lanes(4)

    def chosen(term: Any) -> Any:
        if not isinstance(term, Send):
            return None
        limit = Index(name=loop, type=Int(32)) if moving else const(2, Int(32))
        less = LaneNumbers(type=four) < Broadcast(type=four, value=limit)
        other = Broadcast(type=four, value=const(0, Int(32)))
        value = Select(type=four, condition=less, if_true=term.value, if_false=other)
        return replace(term, value=value)

    loader = graph.node("L")
    loop = loader.loops[0].name
    nodes = tuple(rewrite(node, chosen) if node is loader else node for node in graph.nodes)
    changed = replace(graph, nodes=nodes)
    given = np.arange(16, dtype=np.int32)
    agree(changed, {"x": given})


def test_conditions_about_the_place_spare_a_look_at_every_pe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The network is the same as if each PE were asked about each channel."""
    graph = t2s.lower(gemm(Float(32), SMALL))
    looked: list[int] = []
    points = trace.TracedPE.points

    def counted(pe: trace.TracedPE, condition: Expr | None) -> Product:
        looked.append(pe.number)
        return points(pe, condition)

    monkeypatch.setattr(trace.TracedPE, "points", counted)
    found = trace.network_of(graph, {})
    fewer = len(looked)
    monkeypatch.setattr(trace, "_places", lambda *_: None)
    all_asked = trace.network_of(graph, {})
    assert found.opaque == all_asked.opaque
    assert found.pes.keys() == all_asked.pes.keys()
    for ends in ("sender", "sent", "receiver", "received"):
        assert getattr(found, ends) == getattr(all_asked, ends)
    assert fewer < 0.8 * (len(looked) - fewer)
