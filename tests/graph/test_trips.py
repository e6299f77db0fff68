"""Closed forms of firing counts, against enumeration."""

from __future__ import annotations

import pytest

from t2s.core.expr import Expr, const
from t2s.graph.nodes import Loop, PEArray, Role, SpaceDimension
from t2s.graph.printer import firings_per_pe
from t2s.graph.semantics import iterations, space_points
from tests.hand_graphs import index, loop, space


def _node(*loops: Loop, over: tuple[SpaceDimension, ...] = ()) -> PEArray:
    return PEArray(name="pe", role=Role.COMPUTE, space=over, loops=loops, body=())


def _up_to(name: str, extent: Expr) -> Loop:
    return Loop(name=name, minimum=const(0), extent=extent)


ROW = (space("ii", 4),)
TRIANGLE = (_up_to("i", index("ii") + 1), _up_to("j", index("i") + 1))


@pytest.mark.parametrize(
    ("node", "formula"),
    [
        (_node(loop("i", 3), loop("j", 5)), 15),
        (_node(), 1),
        (_node(loop("i", 4), _up_to("k", index("i") + 1)), 10),
        (_node(_up_to("k", 3 * index("ii") + 1), over=ROW), "3*ii + 1"),
        (_node(*TRIANGLE, over=ROW), "(ii + 1)*(ii + 2)/2"),
        (
            _node(
                loop("i", 4),
                Loop(
                    name="k",
                    minimum=index("i"),
                    extent=4 - index("i"),
                ),
            ),
            10,
        ),
    ],
)
def test_formula_counts_the_firings(node: PEArray, formula: int | str) -> None:
    assert firings_per_pe(node) == formula
    for point in space_points(node):
        names = {d.name: value for d, value in zip(node.space, point, strict=True)}
        assert sum(1 for _ in iterations(node, point, {})) == eval(str(formula), {}, names)


def test_no_formula_where_a_loop_may_be_empty_or_is_not_affine() -> None:
    assert firings_per_pe(_node(loop("i", 4), _up_to("k", index("i")))) is None
    halved = (index("i") + 2) // 2
    assert firings_per_pe(_node(loop("i", 4), _up_to("k", halved))) is None
