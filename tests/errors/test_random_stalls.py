"""Mistakes in asking for pseudo-random stalls."""

from __future__ import annotations

import t2s
from tests.errors.designs import product
from tests.errors.refusal import refused


def test_a_stall_in_every_cycle() -> None:
    with refused("""
            RandomStalls: one_in is out of range
              --> t2s.RandomStalls(one_in=1)
              expected: an integer from 2 to 2147483647
              given:    1
            """):
        t2s.RandomStalls(one_in=1)


def test_a_seed_that_is_none() -> None:
    with refused("""
            RandomStalls: seed is out of range
              --> t2s.RandomStalls(seed=-1)
              expected: an integer from 0 to 4294967295
              given:    -1
            """):
        t2s.RandomStalls(seed=-1)


def test_stalls_of_the_wrong_kind() -> None:
    C = product().C
    with refused("""
            stalls= must be a t2s.RandomStalls
              --> t2s.cycles(C, stalls=8)  # type: ignore[arg-type]
              expected: t2s.RandomStalls(seed=1, one_in=8), or None
              given:    8
            """):
        t2s.cycles(C, stalls=8)  # type: ignore[arg-type]
