"""The codes of firings, as they are and as runs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.core.ops import Array
from t2s.simulator.program.codes import codes_of_parts, repeated
from t2s.simulator.values.packing import packed, runs_of_codes, runs_of_trace

RUNS = st.lists(
    st.tuples(st.integers(0, 3), st.one_of(st.integers(1, 9), st.integers(60, 70), st.just(300))),
    max_size=30,
)
BYTE, SHORT = np.dtype(np.uint8), np.dtype(np.uint16)


def codes_of(runs: list[tuple[int, int]], type: np.dtype[np.generic]) -> Array:
    return np.repeat([c for c, _ in runs], [n for _, n in runs]).astype(type)


@settings(max_examples=60, deadline=None)
@given(runs=RUNS, type=st.sampled_from((BYTE, SHORT)), bits=st.sampled_from((2, 16, 26)))
def test_packed_codes(runs: list[tuple[int, int]], type: np.dtype[np.generic], bits: int) -> None:
    """Codes come back, from the fewest words that have space for their counts."""
    codes = codes_of(runs, type)
    words = packed(codes, bits)
    np.testing.assert_array_equal(repeated(words, bits, type), codes, strict=True)
    counts = words >> bits
    assert (counts > 0).all()
    same = [left & 3 == right & 3 for left, right in pairwise(words.tolist())]
    assert (counts[:-1][same] == (1 << 31 - bits) - 1).all()


@settings(max_examples=30, deadline=None)
@given(parts=st.lists(RUNS, max_size=4), type=st.sampled_from((BYTE, SHORT)))
def test_parts_of_either_kind(
    parts: list[list[tuple[int, int]]], type: np.dtype[np.generic]
) -> None:
    bits = 8 * type.itemsize
    arrays = [codes_of(runs, type) for runs in parts]
    mixed = [packed(a, bits) if n % 2 else a for n, a in enumerate(arrays)]
    codes = codes_of_parts(type, mixed)
    whole = np.concatenate([np.zeros(0, type), *arrays])
    assert len(codes) == len(whole)
    assert codes.listed == sum(map(len, arrays[::2]))
    np.testing.assert_array_equal(codes.expanded, whole, strict=True)
    np.testing.assert_array_equal(repeated(runs_of_codes(codes), bits, type), whole, strict=True)


def test_traces_with_long_runs_take_less_memory() -> None:
    steady, restless = np.zeros(1 << 19, np.uint8), np.arange(1 << 19).astype(np.uint8)
    runs = runs_of_trace(steady, len(steady) - 3)
    assert runs is not None
    assert runs.tolist() == [(1 << 19) - 3 << 8]
    assert runs_of_trace(restless, len(restless)) is None
    assert runs_of_trace(steady, 9) is None
    half = np.concatenate([steady, restless])
    assert runs_of_trace(half, len(half)) is None
    wide = runs_of_trace(np.repeat(np.array([7, 300, 7], np.uint16), 1 << 17), 3 << 17)
    assert wide is not None
    np.testing.assert_array_equal(wide >> 16, [*[(1 << 15) - 1] * 4, 4] * 3)


def test_runs_are_counted_about() -> None:
    """Exactly where there are few codes, and by samples where there are many."""
    assert codes_of_parts(BYTE, [np.array([1, 1, 2, 2, 1], np.uint8)]).about_runs() == 3
    codes = np.arange(1 << 18) // 8 % 3
    about = codes_of_parts(BYTE, [codes.astype(np.uint8)]).about_runs()
    assert abs(about - (1 << 15)) < 1 << 12
