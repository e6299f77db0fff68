"""Circles that limit rates, and relays in nets, by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from t2s.backends.cgra_tia.fabric import FABRICS, CellKind
from t2s.backends.cgra_tia.netlist import (
    AffineSum,
    Endpoint,
    Site,
    TagCase,
    UnitCondition,
    UnitKind,
)
from t2s.backends.cgra_tia.place import relay_sites, with_relays
from t2s.backends.cgra_tia.place.recurrence_cycles import Dependence, offsets, slowest_cycle
from t2s.backends.cgra_tia.program import ToOutputs
from tests.backends.cgra.netlists import Draft, gemm, polynomial, replay

CGRA8 = FABRICS["cgra8"]


def circle(*latencies: int, tokens: int) -> list[Dependence]:
    """Parts 0, 1, ... one after the other, and back; the tokens are at the end."""
    count = len(latencies)
    return [
        Dependence(
            source=number,
            sink=(number + 1) % count,
            latency=latency,
            tokens=tokens if number == count - 1 else 0,
            branch=number,
        )
        for number, latency in enumerate(latencies)
    ]


def test_the_slowest_of_two_circles() -> None:
    fast, slow = circle(3, 4, tokens=2), circle(1, 1, 9, tokens=3)
    found = slowest_cycle(3, [*fast, *slow])
    assert found is not None
    # from part 0 to part 1 the longer way
    assert (found.latency, found.tokens, found.period) == (13, 3, Fraction(13, 3))
    assert set(found.members) == {fast[0], slow[1], slow[2]}


@pytest.mark.parametrize("tokens", [7, 8, 100])
def test_enough_tokens_limit_nothing(tokens: int) -> None:
    edges = circle(3, 4, tokens=tokens)
    assert slowest_cycle(2, edges) is None
    assert offsets(2, edges, Fraction(1)) == [0, 3]


def test_a_circle_without_tokens_never_starts() -> None:
    found = slowest_cycle(3, [*circle(1, 1, 1, tokens=0), *circle(5, 5, tokens=1)])
    assert found is not None
    assert found.period is None
    assert slowest_cycle(1, circle(2, tokens=0)) is not None
    assert slowest_cycle(1, circle(1, tokens=1)) is None
    assert slowest_cycle(0, []) is None


def test_offsets_are_the_longest_ways() -> None:
    ways = [(0, 1, 2), (1, 2, 5), (0, 2, 3), (2, 3, 1), (0, 3, 20)]
    edges = [Dependence(source=a, sink=b, latency=length) for a, b, length in ways]
    assert offsets(4, edges, Fraction(1)) == [0, 2, 7, 20]
    ring = circle(3, 4, tokens=2)
    assert offsets(2, ring, Fraction(3)) is None
    assert offsets(2, ring, Fraction(7, 2)) == [0, 6]  # halves of a cycle


def test_sinks_hang_on_the_relays_that_they_need() -> None:
    netlist = polynomial(4)
    (net,) = [net for net in netlist.nets if net.group == "x"]
    grown = with_relays(netlist, CGRA8, {(net.name, 1): 1, (net.name, 3): 2}).netlist
    by_name = {item.name: item for item in grown.nets}
    first = by_name[net.name]
    one, two = (cell.name for cell in grown.cells[-2:])
    assert [sink.end.part for sink in first.sinks] == ["step[0]", "step[2]", one]
    assert [sink.end.part for sink in by_name[one].sinks] == ["step[1]", two]
    assert [sink.end.part for sink in by_name[two].sinks] == ["step[3]"]
    assert by_name[two].source == Endpoint(part=two)
    assert (by_name[one].group, by_name[two].group) == ("x.relay1", "x.relay2")
    assert [cell.kind for cell in grown.cells[-2:]] == [CellKind.CONTROL] * 2
    assert len(grown.nets) == len(netlist.nets) + 2


def test_nothing_wanted_changes_nothing() -> None:
    grown = with_relays(gemm(2, 2, 2), CGRA8, {})
    assert grown.netlist == gemm(2, 2, 2)
    assert grown.near == {}


def test_what_circulates_is_spread_over_the_relays() -> None:
    netlist = replay(80, 3)
    grown = with_relays(netlist, CGRA8, {("back.2", 0): 2}).netlist
    way = [net for net in grown.nets if net.group.startswith("back")]
    tokens = [sink.tokens for net in way for sink in net.sinks]
    assert tokens == [34, 34, 15]
    assert sum(count - 1 for count in tokens) == 80


def test_relays_pass_all_tags() -> None:
    draft = Draft("tags")
    ninth = UnitCondition(sum=AffineSum(constant=-9, coefficients=(1,)), equal=True)
    rule = (TagCase(when=(ninth,), tag=5), TagCase(when=(), tag=2))
    unit = draft.unit("control", (), UnitKind.SEQUENCE, [("t", 20)], tags=rule)
    draft.wire("control", unit, draft.control("cell", (0,)))
    relay = with_relays(draft.done(), CGRA8, {("control.0", 0): 1}).netlist.cells[-1]
    sent = [item.destination for item in relay.program.instructions]
    assert sent == [ToOutputs((0,), tag) for tag in (0, 2, 5)]
    assert [item.trigger.checks[0].tag for item in relay.program.instructions] == [0, 2, 5]
    few = replace(CGRA8, core=replace(CGRA8.core, instructions=2))
    assert with_relays(draft.done(), few, {("control.0", 0): 1}).netlist == draft.done()


def test_relays_go_where_room_is_left() -> None:
    sites = {"a": Site(row=0, column=0), "b": Site(row=4, column=4), "c": Site(row=4, column=6)}
    free = [Site(row=row, column=column) for row in (0, 3) for column in (0, 4)]
    found = relay_sites({"r": ("a", "b", "c"), "s": ("b",)}, sites, free)
    assert found == {"r": Site(row=3, column=4), "s": Site(row=0, column=4)}
    assert relay_sites({str(number): ("a",) for number in range(5)}, sites, free) is None
