"""Chains are the directives that they stand for, found by isl where the user names none."""

from __future__ import annotations

import inspect
import json
import runpy
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import t2s
from t2s import Func, Graph, ImageParam, Int, Param, Place, RDom, UInt, Var
from t2s.errors import UserError
from t2s.func.func import RVar
from t2s.graph.printer import print_graph
from t2s.graph.serialize import graph_to_json
from tests.sampling import sampled
from tests.spatial.agreement import agree

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "gemm"
SYSTOLIC = runpy.run_path(str(EXAMPLES / "systolic.py"))
CHAINS = runpy.run_path(str(EXAMPLES / "chains.py"))
SMALLEST = CHAINS["TINY"]._replace(**dict.fromkeys(CHAINS["TINY"]._fields, 2))

pytestmark = pytest.mark.filterwarnings("ignore::t2s.errors.T2SWarning")


def bare(graph: Graph) -> Any:
    """All of a graph but the user's lines."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(part) for key, part in value.items() if key != "location"}
        return [without(part) for part in value] if isinstance(value, list) else value

    return without(json.loads(graph_to_json(graph)))


def same(chained: Func, written: Func) -> Graph:
    """Both designs are the same graph, which gives the oracle's values."""
    graph = agree(chained)
    assert print_graph(graph) == print_graph(written.lower())
    assert bare(graph) == bare(written.lower())
    return graph


class Product(NamedTuple):
    C: Func
    A: ImageParam
    B: ImageParam
    i: Var
    j: Var
    k: RVar
    ii: Var


def product() -> Product:
    """C = A B of 4 x 4 integers, in two rows of PEs that keep A for all j."""
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    i, j, k, ii = Var("i"), Var("j"), RDom(0, 4, name="k"), Var("ii")
    C = Func("C")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, 4).bound(j, 0, 4)
    C.split(i, i, ii, 2).reorder(j, i, k).unroll(ii)
    return Product(C, A, B, i, j, k, ii)


@sampled(
    "changed",
    [
        {},
        {"K": 1},
        {"KK": 1, "K": 3},
        {"III": 3, "JJJ": 5, "KKK": 1},
        {"II": 1, "JJ": 3, "KK": 8},
        {"III": 1, "JJJ": 1},
    ],
    quick=2,
    ids=str,
)
def test_the_systolic_gemm(changed: dict[str, int]) -> None:
    n = SMALLEST._replace(**changed)
    chained, written = CHAINS["gemm"](n).lower(), SYSTOLIC["gemm"](n).lower()
    assert [node.name for node in chained.nodes] == [node.name for node in written.nodes]
    assert bare(chained) == bare(written)
    assert t2s.cycles(chained, device="arria10") == t2s.cycles(written, device="arria10")


def test_the_published_size() -> None:
    chained, written = (design["gemm"](design["ARRIA10"]).lower() for design in (CHAINS, SYSTOLIC))
    assert bare(chained) == bare(written)


def test_fewer_lines() -> None:
    lines = [inspect.getsource(design["gemm"]).splitlines() for design in (CHAINS, SYSTOLIC)]
    counts = [len([line for line in text if line.strip()]) for text in lines]
    assert counts[1] - counts[0] == 7


def test_forward_scatter_remove_and_buffer() -> None:
    p, q = product(), product()
    p.A >> t2s.dram("A_loader") >> t2s.sram("A_feeder", scope=p.k) >> p.C
    p.B >> t2s.dram("B_loader") >> p.C
    A_loader, A_feeder, B_loader = t2s.funcs("A_loader A_feeder B_loader")
    q.C.isolate_producer_chain(q.A, A_loader, A_feeder).isolate_producer(q.B, B_loader)
    q.C.forward(B_loader, q.ii)
    A_loader.remove(q.j)
    A_feeder.scatter(A_loader, q.ii).buffer(A_loader, q.k)
    same(p.C, q.C)


def test_options_of_stages() -> None:
    p, q = product(), product()
    feeder = t2s.sram("A_feeder", scope=p.k, double=False, scatter=False, depth=9)
    p.A >> t2s.dram("A_loader", depth=5) >> feeder >> p.C
    p.C >> t2s.registers("D", gather=p.ii, depth=7) >> t2s.dram("U")
    A_loader, A_feeder, D, U = t2s.funcs("A_loader A_feeder D U")
    q.C.isolate_producer_chain(q.A, A_loader, A_feeder).isolate_consumer_chain(D, U)
    A_loader.remove(q.j).depth(5)
    A_feeder.buffer(A_loader, q.k, double=False).depth(9)
    D.gather(q.C, q.ii).depth(7)
    graph = same(p.C, q.C)
    depths = {channel.name: channel.capacity for channel in graph.channels}
    assert (depths["A_loader_to_A_feeder"], depths["A_feeder_to_C"], depths["D_to_U"]) == (5, 9, 7)


def test_the_host_puts_every_element_once() -> None:
    p, q = product(), product()
    p.A >> t2s.host("A_host") >> t2s.dram("A_loader") >> t2s.sram("A_feeder", scope=p.k) >> p.C
    p.B >> t2s.host("B_host") >> t2s.dram("B_loader") >> p.C
    p.C >> t2s.registers("D", gather=p.ii) >> t2s.dram("U") >> t2s.host("C_host")
    A_host, B_host, C_host = t2s.funcs("A_host B_host C_host", place=Place.HOST)
    A_loader, A_feeder, B_loader, D, U = t2s.funcs("A_loader A_feeder B_loader D U")
    q.C.isolate_producer_chain(q.A, A_host, A_loader, A_feeder)
    q.C.isolate_producer_chain(q.B, B_host, B_loader).forward(B_loader, q.ii)
    q.C.isolate_consumer_chain(D, U, C_host)
    A_feeder.scatter(A_loader, q.ii).buffer(A_loader, q.k)
    A_loader.remove(q.j)
    B_host.remove(q.i)
    D.gather(q.C, q.ii)
    graph = same(p.C, q.C)
    assert [tensor.allocated for tensor in graph.tensors] == [(4, 2, 2), (4, 4), (2, 4, 2)]


def test_two_memories_on_the_way() -> None:
    p, q = product(), product()
    p.C.reorder(p.j, p.k, p.i)
    q.C.reorder(q.j, q.k, q.i)
    outer, inner = t2s.sram("outer", scope=p.i, scatter=False), t2s.sram("inner", scope=p.k)
    p.A >> t2s.dram("A_loader") >> outer >> t2s.registers("R") >> inner >> p.C
    A_loader, L, R, F = t2s.funcs("A_loader outer R inner")
    q.C.isolate_producer_chain(q.A, A_loader, L, R, F)
    A_loader.remove(q.j)
    R.remove(q.j)
    L.buffer(A_loader, q.i)
    F.scatter(R, q.ii).buffer(R, q.k)
    same(p.C, q.C)


def fan() -> tuple[Func, Func, Func, ImageParam, RVar]:
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, 5, name="k")
    F, G, H = t2s.funcs("F G H")
    F[i, j] = 0
    F[i, j] += A[i, k] * B[k, j]
    G[i, j] = 0
    G[i, j] += A[i, k] * 2 * B[k, j]
    H[i, j] = F[i, j] - G[i, j]
    H.bound(i, 0, 3).bound(j, 0, 4)
    F.unroll(i, j)
    G.unroll(i, j)
    return F, G, H, A, k


def test_two_functions_take_one_stream() -> None:
    F, G, H, A, k = fan()
    ends = A >> t2s.dram("loader") >> t2s.sram("feeder", scope=k) >> (F, G)
    assert ends == (F, G)
    F2, G2, H2, A2, k2 = fan()
    loader, feeder = t2s.funcs("loader feeder")
    F2.isolate_producer_chain(A2, loader, feeder).forward(feeder, Var("j"))
    feeder.scatter(loader, Var("i")).buffer(loader, k2)
    G2.isolate_producer(A2, feeder).forward(feeder, Var("j"))
    same(H, H2)


def test_an_expression() -> None:
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    alpha = Param(Int(32), name="alpha")

    def scaled() -> tuple[Func, Var, Var, RVar]:
        i, j, k = Var("i"), Var("j"), RDom(0, 4, name="k")
        C = Func("C")
        C[i, j] = 0
        C[i, j] += alpha * A[i, k] * B[k, j]
        return C.bound(i, 0, 4).bound(j, 0, 4).unroll(i, j), i, j, k

    (C, i, _, k), (C2, i2, j2, k2) = scaled(), scaled()
    alpha * A[i, k] >> t2s.dram("scaler") >> t2s.sram("feeder", scope=k) >> C
    scaler, feeder = t2s.funcs("scaler feeder")
    C2.isolate_producer_chain(alpha * A[i2, k2], scaler, feeder).forward(feeder, j2)
    feeder.scatter(scaler, i2).buffer(scaler, k2)
    same(C, C2)


def test_an_initial_value_does_not_enter_along_the_reduction() -> None:
    def biased() -> tuple[Func, ImageParam, Var, RVar]:
        A, bias = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 1, name="bias")
        i, j, k = Var("i"), Var("j"), RDom(0, 4, name="k")
        C = Func("C")
        C[i, j] = bias[i]
        C[i, j] += A[i, k] * A[j, k]
        return C.bound(i, 0, 4).bound(j, 0, 4).unroll(j, k), bias, j, k

    (C, bias, _, _), (C2, bias2, j2, _) = biased(), biased()
    bias >> t2s.dram("loader") >> C
    loader = Func("loader")
    C2.isolate_producer(bias2, loader).forward(loader, j2)
    same(C, C2)


def test_recurrences() -> None:
    def longest() -> tuple[Func, Func, ImageParam, ImageParam, Var]:
        M, D = Func("M", type=Int(32)), Func("D", type=Int(32))
        x, y = ImageParam(UInt(8), 1, name="x"), ImageParam(UInt(8), 1, name="y")
        i, j, zero = t2s.variables("i j zero")
        edge = (i == 0) | (j == 0)
        D[i, j] = t2s.select(edge, 0, M[i - 1, j - 1]) + t2s.cast(Int(32), x[i] == y[j])
        up, left = t2s.select(i == 0, 0, M[i - 1, j]), t2s.select(j == 0, 0, M[i, j - 1])
        M[i, j] = t2s.max(D[i, j], t2s.max(up, left))
        M.bound(i, 0, 6).bound(j, 0, 5).unroll(j)
        length = Func("length")
        length[zero] = M[5, 4]
        return length.bound(zero, 0, 1), M, x, y, j

    length, M, x, y, _ = longest()
    x >> t2s.dram("x_loader") >> M
    y >> t2s.dram("y_loader") >> M
    length >> t2s.registers("R") >> t2s.dram("U")
    length2, M2, x2, y2, j2 = longest()
    x_loader, y_loader, R, U = t2s.funcs("x_loader y_loader R U")
    M2.isolate_producer(x2, x_loader).forward(x_loader, j2).isolate_producer(y2, y_loader)
    length2.isolate_consumer_chain(R, U)
    same(length, length2)


def test_results_that_are_read_again_are_loaded_by_an_element() -> None:
    p = product()
    square, m, x, y = Func("square"), RDom(0, 4, name="m"), Var("x"), Var("y")
    square[x, y] = 0
    square[x, y] += p.C[x, m] * p.B[m, y]
    square.bound(x, 0, 4).bound(y, 0, 4)
    p.C[x, m] >> t2s.dram("C_loader") >> square
    assert [node.name for node in agree(square).nodes].count("C_loader") == 1


def test_a_chain_acts_at_the_place_of_its_line() -> None:
    """Only loops that are unrolled at that time count."""
    p, q = product(), product()
    loader, loader2 = t2s.dram("A_loader"), Func("A_loader")
    p.B >> loader >> p.C
    p.C.unroll(p.j)
    q.C.isolate_producer(q.B, loader2).forward(loader2, q.ii).unroll(q.j)
    assert p.C.print_loop_nest() == q.C.print_loop_nest()


def test_a_chain_is_a_value_until_it_ends() -> None:
    p, q = product(), product()
    begun = p.A >> t2s.dram("A_loader") >> t2s.sram("A_feeder", scope=p.k)
    saving = p.C >> t2s.registers("D", gather=p.ii)
    assert repr(begun) == "A >> dram(A_loader) >> sram(A_feeder)"
    assert repr(saving) == "C >> registers(D)"
    assert bare(p.C.lower()) == bare(q.C.lower())
    assert (begun >> p.C) is p.C
    assert repr(saving >> t2s.dram("U")) == "C >> registers(D) >> dram(U)"
    agree(p.C)


def test_a_line_goes_on_behind_the_function() -> None:
    p, q = product(), product()
    p.B >> t2s.dram("B_loader") >> p.C >> t2s.dram("U")
    q.B >> t2s.dram("B_loader") >> q.C
    q.C >> t2s.dram("U")
    same(p.C, q.C)


SIZES = st.sampled_from([1, 2, 4])


@pytest.mark.slow
@settings(
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(data=st.data())
def test_random_chains(data: st.DataObject) -> None:
    """Random loops, PEs and chains give the oracle's values, or are refused at a line of the test.

    With one PE, nothing is refused but scopes in the wrong order.
    """
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, 4, name="k")
    ii, jj, kk = t2s.variables("ii jj kk")
    C = Func("C")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, 4).bound(j, 0, 4)
    C.tile(k, j, i, kk, jj, ii, *(data.draw(SIZES) for _ in range(3)))
    order = data.draw(st.permutations([i, ii, j, jj, k, kk]))
    C.reorder(order)
    count = data.draw(st.integers(0, 2))
    space, time = order[:count], order[count:]
    C.reorder(data.draw(st.permutations(order)))
    if space:
        C.unroll(space)
    for operand in (A, B):
        chain = operand >> t2s.dram(f"{operand.name}_loader")
        if data.draw(st.booleans()):
            chain = (
                operand >> t2s.host(f"{operand.name}_host") >> t2s.dram(f"{operand.name}_loader")
            )
        for number in range(data.draw(st.integers(0, 2))):
            chain = chain >> t2s.sram(
                f"{operand.name}_feeder{number}",
                scope=data.draw(st.sampled_from(time)),
                double=data.draw(st.booleans()),
                scatter=data.draw(st.booleans()),
            )
        chain >> C
    saving = C >> t2s.dram("U")
    if data.draw(st.booleans()):
        saving >> t2s.host("C_host")
    try:
        C.lower()
    except UserError as refusal:
        error = refusal
    else:
        agree(C)
        return
    assert space or "is outside of the scope" in str(error), str(error)
    assert error.location is not None
    assert error.location.file == __file__
