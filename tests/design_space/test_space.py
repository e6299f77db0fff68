"""``t2s.design_space.space``: points of a space, whose blocks are exact and whose bounds hold."""

from __future__ import annotations

import random

import numpy as np
import pytest

from t2s import Func
from t2s.design_space.columns import Budget, Families, Family
from t2s.design_space.contraction import contraction_of, with_single_reads
from t2s.design_space.point import Drain
from t2s.design_space.space import Space
from t2s.devices import DEVICES, Device
from t2s.driver.search_trial import ContractionTrial
from tests.design_space.contractions import KERNELS, gemm, imaginary_part, network, relaxed


def space_of(
    func: Func, dsp: int, ram: int | None = None, device: Device = DEVICES["arria10"]
) -> tuple[Space, ContractionTrial]:
    contraction = contraction_of(func, {})
    trial = ContractionTrial(func, contraction, {}, device)
    space = Space(
        contraction=contraction,
        device=device,
        budget=Budget(dsp=dsp, ram=ram),
        datapaths=trial.datapaths(),
    )
    return space, trial


def check_random_points(
    func: Func, points: int, seed: int, device: Device = DEVICES["arria10"]
) -> list[float]:
    """Ratios of bounds and exact cycles of random points, whose blocks have to be as predicted."""
    space, trial = space_of(with_single_reads(func), dsp=128, device=device)
    generator = random.Random(seed)
    families = space.families()
    ratios: list[float] = []
    while len(ratios) < points:
        family = generator.choice(families)
        shapes, way = space.shapes(family), family.ways
        row = generator.randrange(len(shapes))
        costs = space.costs(shapes, way)
        if not costs.legal[row]:
            continue
        point = space.point(shapes, row, way)
        cycles, dsp, ram = trial.timed(point)  # never refused
        assert (dsp, ram) == (costs.dsp[row], costs.ram[row]), point
        assert costs.bound[row] <= cycles, point
        ratios.append(costs.bound[row] / cycles)
    return ratios


@pytest.mark.parametrize("kernel", ["gemm", "convolution"])
def test_random_points(kernel: str) -> None:
    check_random_points(KERNELS[kernel](), points=5, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["ddr4-2133x2", "ddr4-2133x4", "hbm2e"])
def test_random_points_with_a_dram(memory: str) -> None:
    device = DEVICES["arria10"].with_memory(memory)
    for kernel in ("gemm", "matrix times vector", "rank-1 update", "blur", "symmetric product"):
        check_random_points(KERNELS[kernel](), points=8, seed=3, device=device)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_many_random_points(kernel: str) -> None:
    ratios = check_random_points(KERNELS[kernel](), points=40, seed=2)
    assert np.median(ratios) >= 0.9


def test_many_operands() -> None:
    """What no shape can be fed with is left out, and operands that vary alike are fed alike."""
    for func, most in ((relaxed(8, 10), 3), (imaginary_part(6, 7, 9), 48), (network(5, 4), 768)):
        space, _ = space_of(with_single_reads(func), dsp=16)
        ways = list(space.ways())
        assert len(ways) <= most
        assert len({way.feeds for way in ways}) == len(ways) // len(Drain)


def test_families_are_columns_in_the_order_of_their_bounds() -> None:
    space, _ = space_of(gemm(12, 10, 8), dsp=16, ram=60)
    families = space.families()
    assert isinstance(families, Families)
    assert (np.diff(families.bound) >= 0).all()
    assert len({(each.pes, each.lanes, each.ways) for each in families}) == len(families)
    first, last = families[0], families[-1]
    assert isinstance(first, Family)
    assert first.bound <= last.bound
    assert families[:2] == [first, families[1]]
    for at in range(0, len(families), 97):  # of no design less than the least
        costs = space.costs_of(families[at], space.shapes(families[at]))
        assert costs.dsp.min() >= families.dsp[at]
        assert costs.ram.min() >= families.ram[at]
        assert costs.bytes.min() >= families.bytes[at]
        assert costs.bound.min() >= families.bound[at]


def test_half_a_million_families_are_columns() -> None:
    space, _ = space_of(gemm(10_240, 8_192, 16_384), dsp=1280, ram=1369)
    families = space.families()
    assert len(families) > 400_000
    assert families.bound.nbytes == 8 * len(families)
