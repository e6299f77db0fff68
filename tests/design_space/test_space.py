"""``t2s.design_space.space``: families as columns, in the order of their bounds."""

from __future__ import annotations

import time

import numpy as np

from t2s.design_space.columns import Families, Family
from tests.design_space.contractions import gemm
from tests.design_space.test_search import space_of


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


def test_half_a_million_families_take_a_second() -> None:
    space, _ = space_of(gemm(10_240, 8_192, 16_384), dsp=1280, ram=1369)
    begun = time.process_time()
    families = space.families()
    assert len(families) > 400_000
    assert time.process_time() - begun < 2.4  # 0.7 s alone; as objects 2.4 s
