"""stream: the results of a function go to their reader without passing through memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import t2s
from t2s import Float, Func, ImageParam, Int, RDom, Var
from t2s.errors import UserError
from t2s.func.expressions import Expression
from t2s.graph.graph import TensorRole
from t2s.graph.nodes import Role
from tests.spatial.agreement import agree, body
from tests.spatial.programs import Draw, random_inputs
from tests.spatial.test_random import PROFILE

A, B, D = (ImageParam(Int(32), 2, name=name) for name in "ABD")
i, j, k, m = Var("i"), Var("j"), RDom(0, 4, name="k"), RDom(0, 6, name="m")
x, y, xx, yy, ii, jj = t2s.variables("x y xx yy ii jj")


def product() -> Func:
    F = Func("F")
    F[i, j] = 0
    F[i, j] += A[i, k] * B[k, j]
    return F


def after(F: Func) -> Func:
    """Something is done with every element of F."""
    G = Func("G")
    G[x, y] = F[x, y] * 2 + D[x, y]
    return G.bound(x, 0, 4).bound(y, 0, 6)


def twice(F: Func) -> Func:
    """F is multiplied by another matrix."""
    G = Func("G")
    G[x, y] = 0
    G[x, y] += F[x, m] * D[m, y]
    return G.bound(x, 0, 4).bound(y, 0, 3)


def recurrence(value: Expression) -> Func:
    """Sums from the left of every row."""
    S = Func("S", Int(32))
    S[i, j] = t2s.select(j == 0, 0, S[i, j - 1]) + value
    return S.bound(i, 0, 4).bound(j, 0, 6)


def test_a_recurrence_takes_a_stream() -> None:
    F = product()
    S = recurrence(F[i, j])
    S.stream(F)
    graph = agree(S)
    assert [node.name for node in graph.nodes] == ["F_load_A", "F_load_B", "F", "S", "S_store"]


def test_a_recurrence_takes_what_another_function_is_sent() -> None:
    G, P = Func("G"), Func("P")
    G[i, j] = D[i, j] * 2
    G.bound(i, 0, 4).bound(j, 0, 6)
    S = recurrence(D[i, j])
    G.isolate_producer(D, P)
    S.isolate_producer(D, P)
    graph = t2s.lower((G, S))
    assert [node.name for node in graph.nodes if node.role is Role.LOAD] == ["P"]
    inputs = {"D": np.arange(24, dtype=np.int32).reshape(4, 6)}
    outputs, expected = t2s.simulate((G, S), inputs).outputs, t2s.interpret((G, S), inputs)
    for name in ("G", "S"):
        np.testing.assert_array_equal(outputs[name], expected[name])


def test_no_memory_and_no_barrier() -> None:
    F = product()
    graph = agree(after(F).stream(F))
    assert [t.name for t in graph.tensors] == ["A", "B", "D", "G"]
    assert "F_store" not in [node.name for node in graph.nodes]
    assert not any(t.role is TensorRole.INTERMEDIATE for t in graph.tensors)
    assert "F: int32 = receive(F_to_G)" in body(graph, "G")


def test_it_takes_less_time() -> None:
    F = product()
    through_memory = t2s.cycles(after(F))
    F = product()
    assert t2s.cycles(after(F).stream(F)) < through_memory - 20


def test_pes_to_pes() -> None:
    F = product().unroll(i, j)
    graph = agree(after(F).stream(F).unroll(x, y))
    assert graph.channel("F_to_G").shape == (4, 6)


def test_pes_to_one() -> None:
    F, L, M = product(), Func("L"), Func("M")
    F.unroll(i, j).isolate_producer(A, L).isolate_producer(B, M).forward(L, j).forward(M, i)
    agree(after(F).stream(F))


def test_one_to_pes() -> None:
    F = product()
    agree(after(F).stream(F).unroll(x))


@pytest.mark.parametrize("unrolled", ["j", "i j", "j i"])
def test_one_column_of_pes(unrolled: str) -> None:
    """A loop of one iteration, along which all results are the same, is not a loop of the sender.

    Its name may be that of another loop there: both have an ``i`` and a ``j``.
    """
    i, j = t2s.variables("i j")
    a, b, w = (ImageParam(Int(32), 2, name=name) for name in ("A", "B", "W"))
    k, m = RDom(0, 5, name="k"), RDom(0, 6, name="m")
    hidden, out = Func("hidden", type=Int(32)), Func("out", type=Int(32))
    hidden[i, j] = 0
    hidden[i, j] += a[i, k] * b[k, j]
    out[i, j] = 0
    out[i, j] += hidden[i, m] * w[m, j]
    out.bound(i, 0, 3).bound(j, 0, 1).stream(hidden)
    out.unroll(*({"i": i, "j": j}[name] for name in unrolled.split()))
    generator = np.random.default_rng(0)
    shapes = {"A": (3, 5), "B": (5, 6), "W": (6, 1)}
    arrays = {n: generator.integers(0, 9, s).astype(np.int32) for n, s in shapes.items()}
    for engine in ("native", "python"):
        found = t2s.simulate(out, arrays, engine=engine).outputs["out"]
        assert (found == arrays["A"] @ arrays["B"] @ arrays["W"]).all()


def test_tiles() -> None:
    F, U = product(), Func("U")
    F.tile(j, i, jj, ii, 2, 2).unroll(ii, jj).isolate_consumer(U)
    G = after(F).tile(y, x, yy, xx, 2, 2).stream(F)
    graph = agree(G)
    assert graph.node("U").role is Role.RELAY


def test_transposed_if_the_order_agrees() -> None:
    F, G = product(), Func("G")
    G[x, y] = F[y, x] + 1
    G.bound(x, 0, 6).bound(y, 0, 4).reorder(x, y).stream(F)
    agree(G)


def test_elements_that_do_not_begin_at_zero() -> None:
    F, G = product(), Func("G")
    F.bound(i, 0, 4).bound(j, 1, 6)
    G[x, y] = F[x, y + 1] + 1
    G.bound(x, 0, 4).bound(y, 0, 6).stream(F)
    agree(G)


def test_vectors() -> None:
    F = product().reorder(j, k, i)
    F.vload(B).vstore(F)
    G = after(F)
    G.vload(D, F).vstore(G).stream(F)
    graph = agree(G)
    assert str(graph.channel("F_to_G").stream.element) == "int32x6"


def test_results_of_dot_products() -> None:
    F, G = Func("F"), Func("G")
    F[i, j] = 0
    F[i, j] += A[i, k] * B[j, k]
    F.vload(A, B)
    G[x, y] = F[x, y] + 1
    agree(G.bound(x, 0, 4).bound(y, 0, 6).stream(F))


def test_values_that_are_used_again_from_a_buffer() -> None:
    F, L, feeder, U = product(), Func("L"), Func("feeder"), Func("U")
    G = twice(F).isolate_producer_chain(F, L, feeder)
    F.isolate_consumer(U)
    L.stream(F).remove(y)
    feeder.buffer(L, x)
    graph = agree(G)
    assert [c.name for c in graph.channels if c.sink in ("L", "feeder")] == [
        "U_to_L",
        "L_to_feeder",
    ]


def test_a_buffer_that_takes_the_stream() -> None:
    F, feeder = product(), Func("feeder")
    G = twice(F).isolate_producer(F, feeder)
    feeder.stream(F).buffer(F, x)
    agree(G)


def test_values_that_are_used_again_by_other_pes() -> None:
    F = product()
    G = twice(F).unroll(y).stream(F).forward(F, y)
    graph = agree(G)
    assert graph.channel("F_to_G").shape == ()


def test_values_of_the_start_of_a_reduction() -> None:
    F, G = product(), Func("G")
    G[x, y] = F[x, y]
    G[x, y] += D[x, m]
    agree(G.bound(x, 0, 4).bound(y, 0, 6).stream(F))


def test_a_stream_and_memory() -> None:
    F, U, G, H = product(), Func("U"), Func("G"), Func("H")
    F.isolate_consumer(U)
    G[x] = 0
    G[x] += F[x, m]
    H[x, y] = G[x] + F[x, y]
    H.bound(x, 0, 4).bound(y, 0, 6)
    G.stream(F)
    graph = agree(H)
    assert {c.name for c in graph.channels if c.source == "F"} == {"F_to_U", "F_to_G"}
    assert graph.tensor("F").role is TensorRole.INTERMEDIATE


def test_two_streams_that_meet_again() -> None:
    F, G, H, L, feeder = product(), Func("G"), Func("H"), Func("L"), Func("feeder")
    G[x] = 0
    G[x] += F[x, m]
    H[x, y] = G[x] + F[x, y]
    H.bound(x, 0, 4).bound(y, 0, 6)
    G.stream(F)
    H.stream(F).isolate_producer_chain(G, L, feeder)
    L.stream(G).remove(y)
    feeder.buffer(L, x)
    graph = agree(H)
    assert graph.channel("F_to_H").capacity == 2 * 6 + 1


def softmax_sums(size: int, rows: int, *, once: bool) -> Func:
    """``total[i]`` = sum over j of ``exp(S[i, j] - largest[i])``: S waits for the largest of a row.

    ``rows`` rows are computed together.  With ``once`` a loop of one iteration is outside of all,
    and what S reads for each column is loaded once, into a buffer.
    """
    X, k = ImageParam(Float(32), 2, name="X"), RDom(0, 4, name="k")
    i, j, ii, io = t2s.variables("i j ii io")
    jj = RDom(0, size, name="jj")
    S, largest, total, exps, feeder = t2s.funcs("S largest total exps feeder")
    S[i, j] = 0.0
    S[i, j] += X[i, k] * X[j, k]
    largest[i] = -1e30
    largest[i] = t2s.max(largest[i], S[i, jj])
    total[i] = 0.0
    total[i] += t2s.exp(S[i, jj] - largest[i])
    total.bound(i, 0, size)
    for func, inner in ((S, (k, ii, j)), (largest, (ii, jj)), (total, (ii, jj))):
        if once:
            func.split(i, io, i, size)
        func.split(i, i, ii, rows).reorder(*inner, i, *([io] if once else []))
    if once:
        loader, columns = t2s.funcs("loader columns")
        S.isolate_producer_chain(X[j, k], loader, columns)
        loader.remove(ii, i)
        columns.buffer(loader, io)
    total.isolate_producer(t2s.exp(S[i, jj] - largest[i]), exps)
    largest.stream(S)
    exps.stream(S).isolate_producer(largest, feeder)
    feeder.remove(jj)
    exps.buffer(feeder, i)
    feeder.stream(largest)
    return total


def test_depths_where_streams_meet_are_near_the_least_that_cost_nothing() -> None:
    """S is kept for one block of rows, and what was computed from it needs no room to wait for it.

    A buffer in front of S is not on the ways from S to where they meet.
    """
    for size, rows, once in ((16, 4, False), (16, 4, True), (24, 8, False)):
        graph = t2s.lower(softmax_sums(size, rows, once=once))
        deep = {c.name: c.capacity for c in graph.channels if c.capacity > 2}
        assert list(deep) == ["S_to_exps"]
        fit = t2s.fit_depths(graph, device="ideal", progress=False, workers=1)
        assert fit.depths["S_to_exps"] == size * rows + 2
        assert deep["S_to_exps"] <= fit.depths["S_to_exps"] + 32
        for device in ("ideal", "arria10"):
            run = t2s.simulate(graph, random_inputs(graph, 1), device=device, progress=False)
            unlimited = run.retime({channel.name: 1 << 16 for channel in graph.channels})
            assert run.cycles == unlimited.cycles


def test_results_of_a_schedule_that_are_stored_too() -> None:
    """The one step of the schedule that gives a result is known to the stream as to the chain."""
    x = ImageParam(Int(32), 1, name="x")
    m, p, q, t = RDom(1, 3, name="m"), *t2s.variables("p q t")
    G, F, unloader = Func("G", type=Int(32)), Func("F", type=Int(32)), Func("unloader")
    G[()] = 1
    G[()] += x[m]
    F[()] = 2 * G[()]
    F.stream(G)
    G.split(m, m, p, 2).space_time_transform([p, m], {q: p, t: p + 3 * m})
    G.isolate_consumer_chain(unloader)
    inputs = {"x": np.array([5, 7, 11, 13], np.int32)}
    for engine in ("python", "native"):
        outputs = t2s.simulate((F, G), inputs, engine=engine).outputs
        assert (int(outputs["G"]), int(outputs["F"])) == (32, 64)


def test_a_chain_of_streams() -> None:
    F, G, H = product(), Func("G"), Func("H")
    G[x, y] = 0
    G[x, y] += F[x, m] * D[m, y]
    H[i, j] = G[i, j] + 1
    H.bound(i, 0, 4).bound(j, 0, 3).stream(G)
    G.unroll(y).stream(F).forward(F, y)
    agree(H)


@st.composite
def streamed(draw: Draw) -> Func:
    """Two functions, each with its own tiles, order and space, and a stream between them."""
    F = product()
    kind = draw(st.sampled_from((after, twice)))
    G = kind(F)
    for func, loops, inner in ((F, (j, i), (jj, ii)), (G, (y, x), (yy, xx))):
        names = list(loops)
        if draw(st.booleans()):
            func.tile(*loops, *inner, draw(st.sampled_from((1, 3))), 2)
            names = [*inner, *loops]
        order = draw(st.permutations(names))
        if draw(st.booleans()):
            func.reorder(*order)
        chosen = draw(st.lists(st.sampled_from(names), max_size=2, unique_by=id))
        if chosen:
            func.unroll(*chosen)
        note(" ".join(directive.text for directive in func.plan))
    G.stream(F)
    if draw(st.booleans()):
        G.forward(F, y)
    return G


@pytest.mark.slow
@PROFILE
@given(streamed())
def test_a_stream_is_refused_or_right(G: Func) -> None:
    try:
        t2s.lower(G)
    except UserError as error:
        refusal = error
    else:
        agree(G)
        return
    assert refusal.location is not None, str(refusal)


@pytest.mark.emulator
def test_on_the_emulator() -> None:
    from t2s.backends.opencl_fpga import emulator_available
    from tests.spatial.programs import random_inputs

    if not emulator_available():
        pytest.skip("the emulator is not installed")
    F, P = product().unroll(i), Func("P")
    G = after(F).unroll(x).stream(F)
    F.isolate_producer(A, P)
    inputs = random_inputs(t2s.lower(G), 3)
    assert (t2s.emulate(G, inputs)["G"] == t2s.interpret(G, inputs)).all()
