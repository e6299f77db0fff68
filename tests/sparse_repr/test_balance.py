"""Channels that join ways of different length hold more than the others."""

from __future__ import annotations

import numpy as np
import pytest

from t2s.errors import UserError
from t2s.sparse import Kernel, Schedule, parse
from tests.sampling import sampled

GENERATOR = np.random.default_rng(2)
B = GENERATOR.integers(1, 9, (12, 10)) * (GENERATOR.random((12, 10)) < 0.3)
C = GENERATOR.integers(1, 9, (10, 14)) * (GENERATOR.random((10, 14)) < 0.3)


def _product(order: str) -> Kernel:
    formats = [
        "B:ss:1,0" if order == "kij" else "B:ss",
        "C:ss:1,0" if order == "ijk" else "C:ss",
        "X:ss",
    ]
    return Kernel(parse("X(i,j)=B(i,k)*C(k,j)", formats), Schedule().reorder(" ".join(order)))


@sampled("order", ["ijk", "ikj", "kij"], quick=2)
def test_channels_of_one_token_finish(order: str) -> None:
    result = _product(order).simulate({"B": B, "C": C}, capacity=1)
    assert np.array_equal(result.output, B @ C)


def test_channels_that_are_all_of_one_token_deadlock() -> None:
    with pytest.raises(UserError, match="deadlock"):
        _product("ijk").simulate({"B": B, "C": C}, capacity=1, balance=False)


def test_two_tokens_are_enough_for_an_outer_product() -> None:
    kernel = _product("kij")
    free = kernel.simulate({"B": B, "C": C}).cycles
    assert kernel.simulate({"B": B, "C": C}, capacity=2).cycles == free
    assert kernel.simulate({"B": B, "C": C}, capacity=2, balance=False).cycles > free


def test_only_short_ways_hold_more() -> None:
    (equal,) = _product("kij").graphs({"B": B, "C": C}, capacity=3, balance=False)
    assert {channel.capacity for channel in equal.channels} == {3}
    (graph,) = _product("kij").graphs({"B": B, "C": C}, capacity=3)
    held = {(channel.source, channel.sink): channel.capacity for channel in graph.channels}
    assert held["load_B", "multiply"] == 3
    assert held["load_C", "multiply"] > 3
    # i goes to the reducer at once, and through repeat, scan, repeat, load and multiply
    assert held["scan_B_i", "reduce_k_hold"] > 3
    assert held["scan_C_j", "reduce_k"] > held["reduce_k_hold", "reduce_k"] > 3
