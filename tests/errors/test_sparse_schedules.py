"""Directives of sparse schedules that do not fit."""

from __future__ import annotations

from t2s import UnsupportedError
from t2s.sparse import Kernel, Schedule, parse
from tests.errors.refusal import refused


def test_fused_loops_that_are_not_next_to_each_other() -> None:
    assignment = parse("X(i,j) = B(i,k) * C(k,j)")
    with refused("""
        the loop over j is not right inside of the one over i
          --> apart = Schedule().reorder("i k j").fuse("i", "j", "f")
          expected: a nest in which nothing is between i and j
          given:    loops i, k, j (and what is computed between them)
          hint:     reorder() puts them next to each other; a sum that is one of several terms is
                    computed between the loops around it, and precompute() takes it out
    """):
        apart = Schedule().reorder("i k j").fuse("i", "j", "f")
        Kernel(assignment, apart)


def test_fusing_what_is_no_loop() -> None:
    assignment = parse("X(i,j) = B(i,k) * C(k,j)")
    with refused("""
        there is no loop over z to fuse
          --> lost = Schedule().fuse("i", "z", "f")
          expected: one of i, j, k
    """):
        lost = Schedule().fuse("i", "z", "f")
        Kernel(assignment, lost)
    with refused("""
        fusing i and j needs two loops and a new name
          --> taken = Schedule().fuse("i", "j", "k")
          given:    fuse(i, j, k)
    """):
        taken = Schedule().fuse("i", "j", "k")
        Kernel(assignment, taken)
    text = """
        i is fused twice
          --> twice = Schedule().fuse("i", "j", "f").fuse("i", "k", "g")
          expected: two loops that are not parts of a fused one
    """
    with refused(text, UnsupportedError):
        twice = Schedule().fuse("i", "j", "f").fuse("i", "k", "g")
        Kernel(assignment, twice)


def test_lanes_of_a_part_of_a_fused_loop() -> None:
    assignment = parse("X(i,j) = B(i,j) + C(i,j)")
    with refused("""
        the loop over j is a part of f
          --> part = Schedule().fuse("i", "j", "f").parallelize("j", 4)
          expected: a loop that is not fused
          note:     i and j are fused here
          --> part = Schedule().fuse("i", "j", "f").parallelize("j", 4)
          hint:     parallelize('f', 4) deals the entries of both loops
    """):
        part = Schedule().fuse("i", "j", "f").parallelize("j", 4)
        Kernel(assignment, part)


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
