"""Directives of sparse schedules that are not there."""

from __future__ import annotations

from t2s import UnsupportedError
from t2s.sparse import Schedule
from tests.errors.refusal import refused


def test_fused_variables() -> None:
    text = """
    fuse(i, j, f): two variables are not fused into one
      --> Schedule().fuse("i", "j", "f")
      expected: loops over the variables of the expression, or over parts of them
      hint:     coo(2) stores the two variables in one list of entries, and parallelize() deals the
                coordinates of a loop to lanes
    """
    with refused(text, UnsupportedError):
        Schedule().fuse("i", "j", "f")


def test_vector_loops() -> None:
    text = """
    vectorize(j, 4): a stream carries one token per cycle
      --> Schedule().vectorize("j", 4)
      expected: loops without vectors
      hint:     parallelize('j', 4) deals the coordinates to 4 copies of the blocks inside of the
                loop
    """
    with refused(text, UnsupportedError):
        Schedule().vectorize("j", 4)
