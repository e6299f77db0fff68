"""Where the partial results of a reduction wait, with distances counted by hand.

Nests are written outermost first: ``"i:3 k:4r jj:2s"`` has a loop i of 3 iterations, a reduction k
of 4, and 2 PEs jj.  ``1-3`` are at least 1 and at most 3 iterations, ``?-3`` any number up to 3.
"""

from __future__ import annotations

import re
from itertools import product
from math import prod

import pytest

from t2s.reduction.carry import CarryLoop, CarryPlan, CarryRegisters, Hop, plan_carry


def nest(text: str) -> list[CarryLoop]:
    loops = []
    for part in text.split():
        found = re.fullmatch(r"(\w+):(?:(\d+|\?)-)?(\d+)(r?)(s?)", part)
        assert found is not None
        name, least, extent, reduction, space = found.groups()
        least = extent if least is None else least
        loops.append(
            CarryLoop(
                name=name,
                extent=int(extent),
                least=None if least == "?" else int(least),
                reduction=bool(reduction),
                space=bool(space),
            )
        )
    return loops


def registers(names: str, shape: tuple[int, ...], distance: int) -> CarryRegisters:
    return CarryRegisters(loops=tuple(names.split()), shape=shape, distance=distance)


def hop(loop: str, inner: str, waiting: int) -> Hop:
    return Hop(loop=loop, inner=tuple(inner.split()), waiting=waiting)


@pytest.mark.parametrize(
    ("loops", "file"),
    [
        # the next step is the next firing
        ("i:3 k:4r", registers("", (), 1)),
        # k outside of i: 3 elements in between, each comes again 3 firings later
        ("k:4r i:3", registers("i", (3,), 3)),
        # two loops of elements inside k
        ("j:5 k:4r i:3 m:2", registers("i m", (3, 2), 6)),
        # from (ko, ki=3) to (ko+1, ki=0) is 1 firing, as from ki to ki+1
        ("i:3 ko:2r ki:4r", registers("", (), 1)),
        # ki to ki+1: 1.  ko to ko+1: 3 elements of 4 steps, minus the 3 steps of ki that go back
        ("ko:2r i:3 ki:4r", registers("i", (3,), 1)),
        # ki to ki+1: 3.  ko to ko+1: 12 firings, minus 3 steps of ki of 3 firings each
        ("ko:2r ki:4r i:3", registers("i", (3,), 3)),
        # ki to ki+1: 3.  ko to ko+1: 5*4*3 = 60 firings, minus 3*3
        ("ko:2r j:5 ki:4r i:3", registers("j i", (5, 3), 3)),
        # loops in space do not take time
        ("k:4r ii:8s i:3", registers("i", (3,), 3)),
        # a reduction of unknown length inside: the next step may be the next firing
        ("k:4r i:3 m:?-2r", registers("i", (3,), 1)),
        # rows of 1 to 4 elements: room for the longest one, and the shortest one comes again first
        ("i:4 k:3r j:1-4", registers("j", (4,), 1)),
        ("k:3r i:4 j:2-4", registers("i j", (4, 4), 8)),
        # rows may be empty
        ("k:3r i:4 j:0-4", registers("i j", (4, 4), 1)),
        # from (ko, ki=1) to (ko+1, ki=0): at least 3*2*2 firings, but 4 less for ki
        ("ko:2r i:3 ki:2r j:2-4", registers("i j", (3, 4), 2)),
        # its length does not matter outside
        ("m:?-2r i:3", registers("i", (3,), 3)),
    ],
)
def test_reductions_in_time(loops: str, file: CarryRegisters) -> None:
    assert plan_carry(nest(loops)) == CarryPlan(registers=file, hops=())


@pytest.mark.parametrize(
    ("loops", "file", "hops"),
    [
        # all steps in space: neighbors only, nothing waits
        ("i:3 kk:4rs", None, [hop("kk", "", 0)]),
        ("i:3 ky:2rs kx:4rs", None, [hop("ky", "kx", 0), hop("kx", "", 0)]),
        # k in time around kk: the last PE goes back to the first one, with 1 or 3 elements waiting
        ("i:3 k:4r kk:2rs", None, [hop("k", "kk", 1), hop("kk", "", 0)]),
        ("k:4r i:3 kk:2rs", None, [hop("k", "kk", 3), hop("kk", "", 0)]),
        ("k:4r i:3 j:5 kk:2rs", None, [hop("k", "kk", 15), hop("kk", "", 0)]),
        ("k:4r i:3 j:1-5 kk:2rs", None, [hop("k", "kk", 15), hop("kk", "", 0)]),
        # a loop of one iteration never advances
        ("i:3 k:1r j:5 kk:2rs", None, [hop("kk", "", 0)]),
        # k in time inside kk: every PE sums by itself, then hands on its sum
        ("kk:2rs i:3 k:4r", registers("", (), 1), [hop("kk", "k", 0)]),
        ("kk:2rs k:4r i:3", registers("i", (3,), 3), [hop("kk", "k", 0)]),
        # both: in registers inside, from PE to PE between, back to the first PE around it all
        (
            "ko:2r i:3 kk:2rs ki:4r",
            registers("", (), 1),
            [hop("ko", "kk ki", 3), hop("kk", "ki", 0)],
        ),
    ],
)
def test_reductions_in_space(loops: str, file: CarryRegisters | None, hops: list[Hop]) -> None:
    assert plan_carry(nest(loops)) == CarryPlan(registers=file, hops=tuple(hops))


def test_no_reduction_loop_is_left() -> None:
    assert plan_carry(nest("i:3 jj:2s")) == CarryPlan(registers=None, hops=())


ORDERS = [
    "i:3 k:4r m:2r j:2",
    "k:4r i:3 j:2 m:2r",
    "k:4r i:3 m:2r j:2",
    "m:2r k:3r i:2 j:2",
    "i:2 k:2r j:3 m:2r n:2r",
    "k:2r i:2 m:2r j:3 n:2r",
]


@pytest.mark.parametrize("loops", ORDERS)
def test_distances_are_those_of_the_nest(loops: str) -> None:
    """Executing the nest: the shortest time between two steps of one element is the distance."""
    order = nest(loops)
    last: dict[tuple[int, ...], int] = {}
    shortest = prod(loop.extent for loop in order)
    for time, point in enumerate(product(*(range(loop.extent) for loop in order))):
        pairs = zip(order, point, strict=True)
        element = tuple(at for loop, at in pairs if not loop.reduction)
        if element in last:
            shortest = min(shortest, time - last[element])
        last[element] = time
    plan = plan_carry(order)
    assert plan.registers is not None
    assert plan.registers.distance == shortest


@pytest.mark.parametrize("loops", ORDERS)
def test_register_files_are_large_enough(loops: str) -> None:
    """Executing the nest with one slot per address: a step finds the step before it."""
    order = nest(loops)
    file = plan_carry(order).registers
    assert file is not None
    slots: dict[tuple[int, ...], tuple[tuple[int, ...], int]] = {}
    count: dict[tuple[int, ...], int] = {}
    for point in product(*(range(loop.extent) for loop in order)):
        at = dict(zip((loop.name for loop in order), point, strict=True))
        element = tuple(at[loop.name] for loop in order if not loop.reduction)
        address = tuple(at[name] for name in file.loops)
        assert all(0 <= n < extent for n, extent in zip(address, file.shape, strict=True))
        steps = count.get(element, 0)
        if steps:
            assert slots[address] == (element, steps)
        count[element] = steps + 1
        slots[address] = (element, steps + 1)
