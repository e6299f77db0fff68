"""``regroup``: what was computed at flattened items gets its two levels back."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sparse_repr.harness import streams_of
from tests.sparse_repr.test_block_properties import tokens_of


def items(depth: int) -> st.SearchStrategy[Any]:
    """An item: a value, or a list of lists."""
    return st.lists(items(depth - 1), max_size=2) if depth else st.integers(0, 3)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), depth=st.integers(0, 2), timed=st.booleans())
def test_items_come_back_into_their_lists(data: st.DataObject, depth: int, timed: bool) -> None:
    rows = st.lists(st.lists(items(depth), max_size=3), max_size=3)
    nested = data.draw(st.lists(rows, max_size=3))
    flat = [[item for row in matrix for item in row] for matrix in nested]
    like = [[[0] * len(row) for row in matrix] for matrix in nested]
    found = streams_of(
        lambda b: {
            "out": b.streams.regroup(
                b.play(tokens_of(flat, 3 + depth), nesting=3 + depth),
                b.play(tokens_of(like, 4), nesting=4),
            )
        },
        timed=timed,
    )
    assert found["out"] == tokens_of(nested, 4 + depth)
