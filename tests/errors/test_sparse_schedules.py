"""Directives of sparse schedules that do not fit."""

from __future__ import annotations

import pytest

from t2s.errors import UnsupportedError
from t2s.sparse import Kernel, Schedule, from_coordinates, parse, schedule
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
        fuse names z, which is not a loop
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


def test_parts_of_a_fused_loop() -> None:
    assignment = parse("X(i,j) = B(i,j) + C(i,j)")
    text = """
        f is fused and split, and its parts are not dealt to lanes
          --> parts = Schedule().fuse("i", "j", "f").split("f", "f0", "f1", 8)
          expected: parallelize('f0', ...), which deals 8 entries in turn
    """
    with refused(text, UnsupportedError):
        parts = Schedule().fuse("i", "j", "f").split("f", "f0", "f1", 8)
        Kernel(assignment, parts)
    with refused("""
        f is split once, into parts with names of their own
          --> taken = Schedule().fuse("i", "j", "f").split("f", "i", "f1", 8)
          given:    i and f1
    """):
        taken = Schedule().fuse("i", "j", "f").split("f", "i", "f1", 8)
        Kernel(assignment, taken)


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
    assignment = parse("X(i,j) = B(i,j) + C(i,j)")
    with refused("""
        a vector has two lanes or more
          --> Schedule().vectorize("j", 1)
          given:    1
    """):
        Schedule().vectorize("j", 1)
    with refused("""
        vectorize names z, which is not a loop
          --> lost = Schedule().vectorize("z", 4)
          expected: one of i, j
    """):
        lost = Schedule().vectorize("z", 4)
        Kernel(assignment, lost)
    text = """
        j and i are both computed in vectors
          --> both = Schedule().vectorize("j", 4).vectorize("i", 2)
          expected: one variable, that of the innermost loop
          hint:     parallelize('i', 2) makes copies of blocks
    """
    with refused(text, UnsupportedError):
        both = Schedule().vectorize("j", 4).vectorize("i", 2)
        Kernel(assignment, both)


def test_parts_that_are_not_whole() -> None:
    assignment = parse("X(i,j) = B(i,j) + C(i,j)")
    with refused("""
        the split of j1 goes beyond its end
          --> uneven = Schedule().split("j", "j0", "j1", 6).vectorize("j1", 4)
          expected: a factor that divides 6, the extent of j1
          given:    factor 4
    """):
        uneven = Schedule().split("j", "j0", "j1", 6).vectorize("j1", 4)
        Kernel(assignment, uneven)


def test_skipping_where_nothing_is_intersected() -> None:
    assignment = parse("X(i,j) = B(i,j) + C(i,j)", ["B:ss", "C:ss"])
    with refused("""
        skip has no effect at j
          --> sums = Schedule().skip("j")
          expected: a product of two or more operands with a compressed level at j
          hint:     other levels are joined coordinate by coordinate, bitvectors word by word
    """):
        sums = Schedule().skip("j")
        Kernel(assignment, sums)
    with refused("""
        skip names z, which is not a loop
          --> lost = Schedule().skip("z")
          expected: one of i, j
    """):
        lost = Schedule().skip("z")
        Kernel(assignment, lost)


def test_channels_that_hold_nothing() -> None:
    kernel = Kernel(parse("y(i) = A(i)"))
    with refused("""
        the capacity of channels is positive, and fits 64 bits
          --> kernel.simulate({"A": [1.0]}, capacity=0)
          expected: an integer from 1 to 4611686018427387903
          given:    0
    """):
        kernel.simulate({"A": [1.0]}, capacity=0)
    with refused("""
        the capacity of channels is positive, and fits 64 bits
          --> kernel.simulate({"A": [1.0]}, capacity=2**63)
          expected: an integer from 1 to 4611686018427387903
          given:    9223372036854775808
    """):
        kernel.simulate({"A": [1.0]}, capacity=2**63)
    with refused("""
        the latency of channels is positive, and fits 64 bits
          --> kernel.simulate({"A": [1.0]}, latency=1.5)
          expected: an integer from 1 to 4611686018427387903
          given:    1.5
    """):
        kernel.simulate({"A": [1.0]}, latency=1.5)


def test_fused_coordinates_that_are_too_many() -> None:
    wide = from_coordinates([[0]], [1.0], (1 << 40,))
    product = parse("X(i,j) = A(i) * B(j)", ["A:s", "B:s", "X:ss"])
    kernel = Kernel(product, Schedule().fuse("i", "j", "f"))
    with refused("""
        the coordinates of f do not fit into 64 bits
          --> product = parse("X(i,j) = A(i) * B(j)", ["A:s", "B:s", "X:ss"])
          expected: at most 9223372036854775808 coordinates of i and j
          given:    1099511627776 x 1099511627776
    """):
        kernel.bind({"A": wide, "B": wide})


def test_transposing_what_is_not_there() -> None:
    assignment = parse("y(i) = A(i)")
    with refused("""
        there is no tensor z to transpose
          --> unknown = Schedule().transpose("z")
          expected: one of y, A
    """):
        unknown = Schedule().transpose("z")
        Kernel(assignment, unknown)


def test_text_that_is_no_schedule() -> None:
    with refused("""
        split(i, 4) does not say a directive
          --> schedule("split(i,4)")
          expected: split(i,i0,i1,32)
    """):
        schedule("split(i,4)")


TWICE = parse("X(i,j) = B(i,k) * C(k,j)", {"B": "ss", "C": "ss"})


def test_two_orders() -> None:
    with refused("""
        the loops are ordered twice
          --> orders = Schedule().reorder("i j k").reorder("i k j")
          expected: one reorder() of all loops
          note:     the first time is here
          --> orders = Schedule().reorder("i j k").reorder("i k j")
    """):
        orders = Schedule().reorder("i j k").reorder("i k j")
        Kernel(TWICE, orders)


def test_two_numbers_of_lanes() -> None:
    with refused("""
        the loop over i is dealt to lanes twice
          --> lanes = Schedule().parallelize("i", 2).parallelize("i", 4)
          expected: one parallelize('i', ...)
          note:     the first time is here
          --> lanes = Schedule().parallelize("i", 2).parallelize("i", 4)
    """):
        lanes = Schedule().parallelize("i", 2).parallelize("i", 4)
        Kernel(TWICE, lanes)


def test_two_splits_of_a_variable() -> None:
    with refused("""
        k is split twice
          --> parts = schedule("split(k,k0,k1,2), split(k,k0,k1,4)")
          expected: one split of k; its parts k0 and k1 can be split again
          note:     the first time is here
          --> parts = schedule("split(k,k0,k1,2), split(k,k0,k1,4)")
    """):
        parts = schedule("split(k,k0,k1,2), split(k,k0,k1,4)")
        Kernel(TWICE, parts)


def test_the_same_directive_again() -> None:
    with refused("""
        j is computed in vectors twice
          --> vectors = Schedule().vectorize("j", 2).vectorize("j", 4)
          expected: one vectorize('j', ...)
          note:     the first time is here
          --> vectors = Schedule().vectorize("j", 2).vectorize("j", 4)
    """):
        vectors = Schedule().vectorize("j", 2).vectorize("j", 4)
        Kernel(TWICE, vectors)
    with refused("""
        coordinates of k are skipped twice
          --> skips = Schedule().skip("k").skip("k")
          expected: one skip('k')
          note:     the first time is here
          --> skips = Schedule().skip("k").skip("k")
    """):
        skips = Schedule().skip("k").skip("k")
        Kernel(TWICE, skips)
    with refused("""
        the level of C at k is located into twice
          --> places = Schedule().locate("C", "k").locate("C", "k")
          expected: one locate('C', 'k')
          note:     the first time is here
          --> places = Schedule().locate("C", "k").locate("C", "k")
    """):
        places = Schedule().locate("C", "k").locate("C", "k")
        Kernel(TWICE, places)
    with refused("""
        T is computed first twice
          --> spaces = schedule("precompute(B(i,k),T), precompute(C(k,j),T)")
          expected: a name of its own for each workspace
          note:     the first time is here
          --> spaces = schedule("precompute(B(i,k),T), precompute(C(k,j),T)")
    """):
        spaces = schedule("precompute(B(i,k),T), precompute(C(k,j),T)")
        Kernel(TWICE, spaces)


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule().locate("A", "j"),  # x is located into by default
        Schedule().scan().locate("A", "j"),
        Schedule().locate("x", "j").locate("A", "j"),
    ],
)
def test_locating_into_a_compressed_level(schedule: Schedule) -> None:
    assignment = parse("y(i) = A(i,j) * x(j)", {"A": "ds"})
    with refused("""
        the level of A at j cannot be located
          --> assignment = parse("y(i) = A(i,j) * x(j)", {"A": "ds"})
          expected: a dense level
          given:    compressed
    """):
        Kernel(assignment, schedule)
