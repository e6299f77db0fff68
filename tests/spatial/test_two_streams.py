"""Scattering and gathering along two loops of one function: the compiler makes the second one."""

from __future__ import annotations

import t2s
from t2s import Func, ImageParam, Int, Var
from tests.spatial.agreement import agree

A, i, j = ImageParam(Int(32), 2, name="A"), Var("i"), Var("j")
ii, jj = t2s.variables("ii jj")


def array(*, by_hand: bool) -> Func:
    """2 A + i on 3 x 4 PEs, with one load unit and one store unit."""
    y, loader, unloader = t2s.funcs("y loader unloader")
    distributor, feeder, drainer, collector = t2s.funcs(
        "feeder_distributor feeder drainer drainer_collector"
    )
    y[i, j] = A[i, j] * 2 + i
    y.bound(i, 0, 6).bound(j, 0, 8).split(i, i, ii, 3).split(j, j, jj, 4).unroll(ii, jj)
    if by_hand:
        y.isolate_producer_chain(A, loader, distributor, feeder)
        y.isolate_consumer_chain(drainer, collector, unloader)
        feeder.scatter(distributor, ii)
        distributor.scatter(loader, jj)
        drainer.gather(y, ii)
        collector.gather(drainer, jj)
    else:
        y.isolate_producer_chain(A, loader, feeder).isolate_consumer_chain(drainer, unloader)
        feeder.scatter(loader, ii).scatter(loader, jj)
        drainer.gather(y, ii).gather(y, jj)
    return y


def test_the_same_as_a_chain() -> None:
    graph = agree(array(by_hand=False))
    chain = t2s.lower(array(by_hand=True))
    assert {n.name: n.pe_count for n in graph.nodes} == {n.name: n.pe_count for n in chain.nodes}
    assert t2s.cycles(graph) == t2s.cycles(chain)
    assert graph.node("loader").pe_count == graph.node("unloader").pe_count == 1
