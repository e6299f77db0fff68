"""``t2s.design_space.space``: points of a space, whose blocks are exact and whose bounds hold."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

import t2s
from t2s import Func
from t2s.design_space.columns import Budget, Families, Family, Shapes, Ways
from t2s.design_space.contraction import contraction_of, with_single_reads
from t2s.design_space.point import Drain, Feed
from t2s.design_space.space import Space
from t2s.devices import DEVICES, Device
from t2s.driver.search_trial import ContractionTrial
from tests.design_space.contractions import (
    KERNELS,
    gemm,
    imaginary_part,
    network,
    relaxed,
    repeated,
    ttm,
)

ODD = replace(
    DEVICES["arria10"],
    name="odd",
    load_latency=3,
    store_latency=17,
    bytes_per_cycle_per_unit=7,
    memory_bytes_per_second=DEVICES["arria10"].clock_hz * 3 // 2,
)
"""Less bandwidth than one access takes: the last one may overdraw it."""


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


def test_random_points_with_a_port_for_each_tensor() -> None:
    """Of these bounds half are nearly the true cycles: accesses decide there."""
    device = DEVICES["alveo_u55c"]
    ratios = check_random_points(KERNELS["gemm"](), points=4, seed=6, device=device)
    ratios += check_random_points(KERNELS["1-D convolution"](), points=3, seed=6, device=device)
    assert np.median(ratios) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_many_random_points_with_a_port_for_each_tensor(kernel: str) -> None:
    check_random_points(KERNELS[kernel](), points=20, seed=7, device=DEVICES["alveo_u55c"])


def test_a_search_avoids_accesses_where_a_tensor_has_one_port() -> None:
    """PEs side by side load from one port: eight loads in a cycle take eight cycles."""
    found = t2s.search(gemm(64, 64, 64), device="alveo_u55c", dsp=320, seconds=60, progress=False)
    assert found.complete
    assert found.cycles < 1.05 * 64**3 / 64


LATE = [
    # empty slots of the last block have no results, and stores of early PEs are over before
    (lambda: repeated(5, 6), ODD, (3, 1), (1,), 1, "BUFFERED_APART", Drain.STORED),
    # PEs whose buffers are full at the same time, but begin one after the other
    (
        lambda: gemm(250, 130, 77, transposed=False),
        DEVICES["arria10"],
        *((22, 1, 1), (12, 8), 4, "BUFFERED_APART BUFFERED", Drain.QUEUED),
    ),
    # the results of the last PE have to come back to the first one
    (
        lambda: gemm(96, 256, 32),
        DEVICES["arria10"],
        *((1, 163, 2), (32, 2), 2, "FORWARDED BUFFERED_APART", Drain.GATHERED),
    ),
    # words of 352 bytes take a unit six cycles each
    (
        lambda: ttm((4, 64, 88), 64),
        DEVICES["arria10"],
        *((1, 1, 88, 1), (2, 64, 1), 16, "BUFFERED BUFFERED", Drain.GATHERED),
    ),
]


def test_bounds_of_the_first_and_the_last_pe() -> None:
    for make, device, pes, tiles, lanes, feeds, drain in LATE:
        space, trial = space_of(with_single_reads(make()), dsp=2000, device=device)
        shapes = Shapes(pes=np.array([pes]), tiles=np.array([tiles]), lanes=np.array([lanes]))
        ways = Ways(feeds=tuple(Feed[feed] for feed in feeds.split()), drain=drain)
        bound, cycles = (
            space.costs(shapes, ways).bound[0],
            trial.timed(space.point(shapes, 0, ways))[0],
        )
        assert bound <= cycles
        assert bound > 0.4 * cycles


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
