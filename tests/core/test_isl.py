"""Integer sets: what isl proves about loop nests."""

from __future__ import annotations

from itertools import product

import pytest

from t2s.core.expr import Expr, Index, Parameter, Select, apply, const, equals, unequal
from t2s.core.isl import Interval, LoopDomain, NotAffine, is_affine, isl_text
from t2s.core.ops import Op
from t2s.core.types import BOOL, INT32, Float

i, j, k = Index(name="i"), Index(name="j"), Index(name="k")


def interval(name: str, extent: int | Expr, minimum: int | Expr = 0) -> Interval:
    return Interval(
        name=name,
        minimum=const(minimum) if isinstance(minimum, int) else minimum,
        extent=const(extent) if isinstance(extent, int) else extent,
    )


def box(*extents: int) -> LoopDomain:
    return LoopDomain([interval(n, e) for n, e in zip("ijk", extents, strict=False)])


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (i * 3 + -2, "((i * 3) + -2)"),
        (-i, "(-i)"),
        (i // 4, "floor((i)/4)"),
        (i % 4, "((i) mod 4)"),
        (i < j, "(i < j)"),
        (unequal(i, 3), "(i != 3)"),
        (~equals(i, j), "(not (i = j))"),
        (const(True, BOOL), "0 = 0"),
        (
            (i < j) | (i >= 2),
            "((i < j) or (i >= 2))",
        ),
    ],
)
def test_text(expr: Expr, text: str) -> None:
    assert isl_text(expr) == text
    assert is_affine(expr)


def test_names_can_be_replaced() -> None:
    assert isl_text(i + j, {"i": "x0"}) == "(x0 + j)"
    assert isl_text(apply(Op.MINIMUM, i, apply(Op.MAXIMUM, j, const(3)))) == "min(i, max(j, 3))"


@pytest.mark.parametrize(
    "expr",
    [
        i * j,
        i // j,
        i // -2,
        i % 0,
        Parameter(name="n", type=INT32),
        const(1.5, Float(32)) < const(2.5, Float(32)),
    ],
)
def test_not_affine(expr: Expr) -> None:
    assert not is_affine(expr)
    with pytest.raises(NotAffine):
        isl_text(expr)


def test_the_offending_part_is_named() -> None:
    product = i * j
    with pytest.raises(NotAffine) as caught:
        isl_text(product + 1)
    assert caught.value.expr == product


def test_iterations_of_a_box() -> None:
    domain = box(3, 4)
    assert domain.count() == 12
    assert not domain.is_empty()
    assert domain.range_of(i * 2 + j) == (0, 7)


def test_iterations_of_a_triangle() -> None:
    domain = LoopDomain([interval("i", 4), interval("j", i + 1)])
    assert domain.count() == 10
    assert domain.range_of(i - j) == (0, 3)


def test_minimum_other_than_zero() -> None:
    domain = LoopDomain([interval("i", 4, -2), interval("j", 3, i)])
    assert domain.range_of(i) == (-2, 1)
    assert domain.range_of(j) == (-2, 3)


def test_conditions_restrict_the_domain() -> None:
    low = i > 0
    domain = LoopDomain([interval("i", 4)], [low])
    assert domain.range_of(i + -1) == (0, 2)
    assert domain.sample() in ({"i": 1}, {"i": 2}, {"i": 3})


def test_an_empty_domain() -> None:
    never = LoopDomain([interval("i", 4)], [i > 9])
    assert never.is_empty()
    assert never.sample() is None
    assert never.range_of(i) is None
    assert never.count() == 0


def test_a_domain_without_loops_has_one_point() -> None:
    domain = LoopDomain([])
    assert domain.count() == 1
    assert domain.sample() == {}


def test_exact_cover_by_a_split() -> None:
    nest = LoopDomain([interval("i", 4), interval("j", 8)])
    assert nest.covers_exactly([i * 8 + j], LoopDomain([interval("x", 32)])) is None


def test_points_that_are_never_computed() -> None:
    nest = LoopDomain([interval("i", 4), interval("j", 7)])
    problem = nest.covers_exactly([i * 8 + j], LoopDomain([interval("x", 32)]))
    assert problem is not None
    assert problem.startswith("never computed: x=")
    assert int(problem.removeprefix("never computed: x=")) % 8 == 7


def test_points_outside_of_the_domain() -> None:
    nest = LoopDomain([interval("i", 5)])
    problem = nest.covers_exactly([i], LoopDomain([interval("x", 4)]))
    assert problem == "outside of the domain: x=4"


def test_points_that_are_computed_twice() -> None:
    nest = LoopDomain([interval("i", 4), interval("j", 2)])
    problem = nest.covers_exactly([i], LoopDomain([interval("x", 4)]))
    assert problem == "some point is computed twice"


def test_cover_of_more_than_the_target() -> None:
    nest = LoopDomain([interval("i", 4), interval("j", 3)])
    exprs = [i * 3 + j]
    target, within = LoopDomain([interval("x", 10)]), LoopDomain([interval("x", 12)])
    assert nest.covers_exactly(exprs, target, within=within) is None
    narrow = LoopDomain([interval("x", 11)])
    problem = nest.covers_exactly(exprs, target, within=narrow)
    assert problem == "outside of the domain: x=11"
    problem = nest.covers_exactly([i], target, within=within)
    assert problem is not None
    assert problem.startswith("never computed: x=")


def test_injective_maps() -> None:
    nest = LoopDomain([interval("i", 4), interval("j", 3)])
    assert nest.is_injective([i * 3 + j])
    assert not nest.is_injective([i * 2 + j])


def test_values_that_one_of_two_domains_has() -> None:
    small, large = LoopDomain([interval("i", 6)]), LoopDomain([interval("i", 7)])
    assert small.differs([i], small, [i]) is None
    assert small.differs([i, const(2)], large, [i, const(2)]) == (6, 2)
    assert large.differs([i, const(2)], small, [i, const(2)]) == (6, 2)


@pytest.mark.parametrize(
    ("exprs", "name", "varies"),
    [
        ([i], "i", True),
        ([i], "j", False),
        ([i + j], "j", True),
        ([j // 4], "j", False),
        ([j // 3], "j", True),
        ([i, k % 5], "k", True),
    ],
)
def test_varying_along_a_loop(exprs: list[Expr], name: str, varies: bool) -> None:
    assert box(3, 4, 5).varies_along(exprs, name) is varies


def test_a_loop_of_one_iteration_changes_nothing() -> None:
    assert not LoopDomain([interval("i", 1), interval("j", 3)]).varies_along([i], "i")


def select(condition: Expr, if_true: Expr, if_false: Expr) -> Select:
    return Select(condition=condition, if_true=if_true, if_false=if_false, type=if_true.type)


def test_selections_are_pieces() -> None:
    """``select(i < j, i, 9 - i)`` and what it decides, in expressions and in conditions."""
    folded = select(i < j, i, i * -1 + 9)
    assert is_affine(folded)
    assert box(3, 4).range_of(folded) == (0, 9)
    assert box(3, 4).range_of(select(folded < j, folded, j)) == (0, 2)
    low = box(3, 4).restricted(folded < 3)
    assert low.count() == sum(i < j for i, j in product(range(3), range(4)))
    assert box(3, 4).varies_along([folded], "j")
    assert not box(3, 4).varies_along([select(i < 2, i, const(0))], "j")
    steps = select(i < 2, const(5), i)
    assert LoopDomain([interval("i", 3), interval("j", steps)]).count() == 5 + 5 + 2


def test_pieces_cover_what_they_should() -> None:
    """Two halves of a triangle as a rectangle: each element of it once."""
    upper = i < j
    row = select(upper, i, i * -1 + 3)
    column = select(upper, j + -1, j * -1 + 3)
    triangle = LoopDomain([interval("i", 4), interval("j", i * -1 + 4, i)])
    assert box(2, 5).covers_exactly([row, column], triangle) is None
    wrong = select(upper, i, i * -1 + 2)
    assert box(2, 5).covers_exactly([wrong, column], triangle) is not None


@pytest.mark.parametrize(
    "condition",
    [Parameter(name="flag", type=BOOL), i * j < i],
)
def test_a_selection_by_something_else_is_not_affine(condition: Expr) -> None:
    expr = select(condition, i, j)
    assert not is_affine(expr)
    with pytest.raises(NotAffine):
        box(3, 4).range_of(expr)


def test_two_orders_that_agree() -> None:
    assert box(3, 4).reverses([i, j], [i * 4 + j]) is None


def test_two_orders_that_differ() -> None:
    clash = box(3, 4).reverses([i, j], [j, i])
    assert clash is not None
    at, points = (clash["i"], clash["j"]), product(range(3), range(4))
    assert any(at < other and at[::-1] > other[::-1] for other in points)


def test_an_image_that_leaves_a_domain() -> None:
    square = LoopDomain([interval("i", 4), interval("j", 4)])
    triangle = LoopDomain([interval("i", 4), interval("j", i + 1)])
    above = LoopDomain([interval("i", 4), interval("j", 4)], [j <= i])
    assert above.leaves([i, j], triangle) is None
    assert triangle.leaves([i, j], square) is None
    point = square.leaves([i, j + 1], LoopDomain([interval("a", 4), interval("b", 4)]))
    assert point is not None
    assert point.endswith("b=4")
