"""Feeders that the compiler makes: buffers and scattered operands of functions that compute."""

from __future__ import annotations

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from tests.sampling import sampled
from tests.spatial.agreement import agree


def array(*, buffered: bool, scattered: bool, isolated: bool = False) -> Func:
    """A product of 8 x 8 matrices on 2 x 2 PEs with loaders only, or with feeders by hand."""
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, 6, name="k")
    ii, jj = t2s.variables("ii jj")
    C, A_loader, B_loader, A_feeder, B_feeder = t2s.funcs(
        "C A_loader B_loader C_A_feeder C_B_feeder"
    )
    C[i, j] = 0
    C[i, j] += A[i, k] * B[j, k]
    C.bound(i, 0, 8).bound(j, 0, 8)
    C.split(i, i, ii, 2).split(j, j, jj, 2).reorder(j, i, k).unroll(ii, jj)
    if isolated:
        C.isolate_producer_chain(A, A_loader, A_feeder)
        C.isolate_producer_chain(B, B_loader, B_feeder)
        C.forward(A_feeder, jj).forward(B_feeder, ii)
    else:
        C.isolate_producer(A, A_loader).isolate_producer(B, B_loader)
        C.forward(A_loader, jj).forward(B_loader, ii)
    if buffered:
        A_loader.remove(j)
        B_loader.remove(i)
    for loader, feeder, loop in ((A_loader, A_feeder, ii), (B_loader, B_feeder, jj)):
        owner = feeder if isolated else C
        if scattered:
            owner.scatter(loader, loop)
        if buffered:
            owner.buffer(loader, k)
    return C


@sampled(("buffered", "scattered"), [(True, False), (False, True), (True, True)], quick=2)
def test_a_function_has_buffers_and_streams_for_several_operands(
    buffered: bool, scattered: bool
) -> None:
    graph = agree(array(buffered=buffered, scattered=scattered))
    by_hand = t2s.lower(array(buffered=buffered, scattered=scattered, isolated=True))
    assert {n.name: n.pe_count for n in graph.nodes} == {n.name: n.pe_count for n in by_hand.nodes}
    assert t2s.cycles(graph) == t2s.cycles(by_hand)


def test_the_loop_nest_shows_the_feeder() -> None:
    text = array(buffered=True, scattered=False).print_loop_nest()
    assert "C_A_feeder: relay, 2 PEs" in text
    assert "A = receive from A_loader, into a double buffer once for each k" in text
    assert "A = receive from C_A_feeder, passed on along jj" in text
