"""Loops of which a few iterations stand for all."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from t2s.backends.kernels.lockstep import LockstepNode, lockstep, one_period
from t2s.core.expr import Expr, apply, const, equals, evaluate
from t2s.core.ops import Op
from t2s.graph.nodes import Role
from tests.backends.builders import graph, node
from tests.hand_graphs import index, loop
from tests.spatial.test_random import PROFILE

EXTENT = 200


def counter() -> LockstepNode:
    """A node that counts ``t`` up to 200, inside of ``r``."""
    counting = node("counter", Role.RELAY, (loop("r", 3), loop("t", EXTENT)), ())
    found = lockstep(graph("g", (counting,), (), ()), counting)
    assert isinstance(found, LockstepNode)
    return found


@st.composite
def positions(draw: st.DrawFn, depth: int = 4) -> Expr:
    """Random arithmetic of a counter, with conditions."""
    if depth == 0:
        return draw(st.sampled_from([index("t"), index("t"), index("r"), const(3)]))
    left = draw(positions(depth - 1))
    match draw(st.sampled_from(["sum", "difference", "quotient", "remainder", "product", "less"])):
        case "sum":
            return left + draw(positions(depth - 1))
        case "difference":
            return left - draw(positions(depth - 1))
        case "quotient":
            return left // draw(st.integers(1, 6))
        case "remainder":
            return left % draw(st.integers(1, 6))
        case "product":
            return left * draw(st.integers(0, 3))
    return apply(Op.MINIMUM, left, draw(positions(depth - 1)))


@PROFILE
@given(positions())
def test_what_is_left_out_repeats_what_is_kept(expr: Expr) -> None:
    counting = counter()
    _, cut = one_period(counting, counting.loops, (expr,))
    period = int(evaluate(cut.stop, {}))
    times, rounds = np.arange(EXTENT), np.arange(3)[:, None]
    values = np.broadcast_to(evaluate(expr, {"t": times, "r": rounds}), (3, EXTENT))
    np.testing.assert_array_equal(values[:, period:], values[:, : EXTENT - period])


def test_a_buffer_s_position_repeats_with_its_period() -> None:
    counting = counter()
    place = (index("t") + 5) % 24
    digit = place // 2 % 3
    outer, cut = one_period(counting, counting.loops, (digit, equals(digit, 1)))
    assert (evaluate(outer.stop, {}), evaluate(cut.stop, {})) == (1, 24)
    growing = index("t") // 24
    assert one_period(counting, counting.loops[1:], (digit, growing)) == counting.loops[1:]
