"""What `docs/architecture.md` says that a block costs: one class.

Here it is one that merges three streams, written as a file in ``sparse_repr/blocks`` would be.
Nothing else changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.core.errors import UserError
from t2s.core.expr import all_hold
from t2s.graph.build import put, rule, when
from t2s.graph.graph import StreamKind, StreamType
from t2s.simulator.run import simulate
from t2s.sparse_repr.blocks.draft import BlockKind, Draft, StreamBlock, ends
from tests.sparse_repr.harness import Bench
from tests.sparse_repr.test_block_properties import tokens_of as tokens_of_lists
from tests.sparse_repr.tokens import tokens_of


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOfThree(StreamBlock):
    """Three sorted streams as one, nothing dropped.  Ports: ``a``, ``b``, ``c``; ``out``."""

    kind = BlockKind.UNION

    def draft(self, draft: Draft, a: StreamType, b: StreamType, c: StreamType) -> None:
        sides = [draft.input(port, stream) for port, stream in zip("abc", (a, b, c), strict=True)]
        out = draft.output("out", a.element, StreamKind.COORDINATE, a.nesting)
        choices = []
        for side in sides:
            least = [
                other.is_stop | (other.value >= side.value) for other in sides if other is not side
            ]
            token = [put(out, side.value)]
            first = rule(f"take_{side.port}", "run", takes=[side], puts=token)
            choices.append(when(all_hold(side.is_value, *least), first))
        draft.mode("run", *choices, *ends(sides, out), needs=sides, expected="sorted streams")


sorted_lists = st.lists(
    st.lists(st.integers(0, 20), max_size=5).map(sorted), min_size=3, max_size=3
)


def _merged(lists: list[list[list[int]]], engine: str) -> tuple[list[object], int]:
    bench = Bench()
    sides = [bench.play(tokens_of_lists(side, 3), nesting=3) for side in lists]
    (merged,) = bench.streams.put(MergeOfThree(), "merge", *sides)
    bench.record("out", merged)
    result = simulate(bench.streams.graph(), bench.inputs, engine=engine)
    return tokens_of(result.outputs["out_values"], result.outputs["out_tags"]), result.cycles


@settings(max_examples=8, deadline=None)
@given(st.lists(sorted_lists, min_size=1, max_size=3))
def test_a_class_is_a_block_of_every_engine(fibers: list[list[list[int]]]) -> None:
    sides = [[fiber[side] for fiber in fibers] for side in range(3)]
    expected = tokens_of_lists([sorted(chain(*fiber)) for fiber in fibers], 3)
    found, cycles = _merged(sides, "native")
    assert (found, cycles) == (expected, _merged(sides, "python")[1])


def test_it_says_which_streams_it_takes() -> None:
    bench = Bench()
    one = bench.play([1, 2, "S0", "D"], nesting=2)
    with pytest.raises(UserError) as caught:
        bench.streams.put(MergeOfThree(), "merge", one)
    assert "MergeOfThree does not take 1 streams" in str(caught.value)
    assert "a, b, c" in str(caught.value)
