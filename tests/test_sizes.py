"""Cycles at many sizes: those of lowered designs, at sizes that are not lowered."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

import t2s
from t2s.driver.sizes import LOWERED_BEFORE, CyclesOfSizes
from t2s.errors import InternalError, UserError
from t2s.graph.graph import Graph
from t2s.report.resources import estimate_resources
from tests.design_space.sized import Sized, designs
from tests.explore.test_formula import matmul, row_sums

DESIGNS = designs()

pytestmark = pytest.mark.filterwarnings("ignore::t2s.errors.T2SWarning")


def in_tiles(design: Sized, tiles: int, *, ragged: bool) -> dict[str, int]:
    """Sizes of so many tiles, of which the last ones may lack an element."""
    return {name: step * tiles - (ragged and step > 1) for name, step in design.steps.items()}


@pytest.mark.parametrize("draws", [4, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", DESIGNS)
def test_cycles_and_blocks_are_those_of_lowered_designs(
    name: str, draws: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("t2s.driver.sizes.LOWERED_BEFORE", LOWERED_BEFORE if draws > 4 else 2)
    design, random = DESIGNS[name], Random(0)
    counter = CyclesOfSizes(design.design, design.steps, device="arria10")
    for ragged in (False, True)[: 1 + (draws > 4)]:
        for number in range(LOWERED_BEFORE if draws > 4 else 3):
            counter(in_tiles(design, 2 + number, ragged=ragged))
    families = 0
    for number in range(draws):
        sizes = {
            size: value + step * random.randint(0, 4) - random.randrange(step) * (number % 4 == 3)
            for (size, step), value in zip(
                design.steps.items(),
                in_tiles(design, random.randint(2, 6), ragged=number % 4 == 1).values(),
                strict=True,
            )
        }
        assert counter(sizes) == t2s.cycles(design.design, sizes, device="arria10")
        graph = counter.graph_of_family(sizes)
        if graph is None:
            continue
        families += 1
        blocks, found = t2s.resources(design.design, sizes), estimate_resources(graph, "arria10")
        assert (found.dsp_blocks, found.ram_blocks) == (blocks.dsp_blocks, blocks.ram_blocks)
    assert families >= (draws // 4 * 3 if draws > 4 else 2)


def test_sizes_without_a_family_are_lowered() -> None:
    """Of sizes far beyond the others, of one tile, and of tiles that are not full."""
    design, steps = matmul(), {"n": 4, "m": 4, "K": 1}
    counter = CyclesOfSizes(design, steps, device="arria10")
    for tiles in range(2, 3 + LOWERED_BEFORE):
        counter({"n": 4 * tiles, "m": 4 * tiles, "K": tiles})
    assert counter.graph_of_family({"n": 20, "m": 40, "K": 9}) is not None
    for sizes in ({"n": 4, "m": 8, "K": 2}, {"n": 7, "m": 8, "K": 2}, {"n": 8, "m": 8, "K": 400}):
        assert counter.graph_of_family(sizes) is None
        assert counter(sizes) == t2s.cycles(design, sizes, device="arria10")


def test_errors_are_those_of_the_design() -> None:
    counter = CyclesOfSizes(row_sums(), {"n": 1})
    for size in range(2, 20):
        counter({"n": size})
    with pytest.raises(UserError, match="n"):
        counter({"n": 0})


def test_a_family_is_given_up_when_a_graph_is_not_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the directives did something else from some size on; what was wrong is a bug."""
    design = row_sums()
    counter = CyclesOfSizes(design, {"n": 1})
    taken = {size: counter({"n": size}) for size in range(2, 24)}
    (alike,) = counter.kinds.values()
    assert alike.served
    lowered = CyclesOfSizes._lowered

    def wrong(self: CyclesOfSizes, sizes: dict[str, int]) -> Graph:
        graph = lowered(self, sizes)
        return replace(graph, name="another")

    monkeypatch.setattr(CyclesOfSizes, "_lowered", wrong)
    monkeypatch.setattr("t2s.driver.sizes.CHECKED", 1)
    assert counter({"n": 23}) == taken[23]
    assert counter.graph_of_family({"n": 22}) is None

    alike.served.append(({"n": 5}, taken[5] + 1))
    with pytest.raises(InternalError, match="the cycles of s were wrong at"):
        counter._give_up(alike)
