"""Cases, translations and changes of loops, and what isl writes back, against enumeration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

import numpy as np
import pytest

from t2s.core.errors import InternalError
from t2s.core.expr import Expr, Index, apply, const, equals, evaluate
from t2s.core.isl import Interval, LoopDomain, islpy_module
from t2s.core.isl_maps import AstReader, Transformation, cases, condition, project, translated
from t2s.core.ops import Op
from t2s.core.printer import show

i, j, k = Index(name="i"), Index(name="j"), Index(name="k")
Point = Mapping[str, int]


def interval(name: str, extent: int | Expr, minimum: int | Expr = 0) -> Interval:
    return Interval(
        name=name,
        minimum=const(minimum) if isinstance(minimum, int) else minimum,
        extent=const(extent) if isinstance(extent, int) else extent,
    )


BOX = LoopDomain([interval("i", 4, -1), interval("j", 5)])
TRIANGLE = LoopDomain([interval("i", 5), interval("j", 5 - i, i)])
HOLES = LoopDomain(
    [interval("i", 4), interval("j", 6)],
    [equals((i + j) % 2, 0)],
)
DOMAINS = {"box": BOX, "triangle": TRIANGLE, "holes": HOLES}
every_domain = pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)


def value(expr: Expr, point: Point) -> int:
    return int(evaluate(expr, {name: np.int32(at) for name, at in point.items()}))


def points(domain: LoopDomain) -> Iterator[Point]:
    """All iterations, by trying a box around them."""
    names = [part.name for part in domain.intervals]
    spans = [domain.range_of(Index(name=name)) for name in names]
    ranges = [range(span[0], span[1] + 1) for span in spans if span is not None]
    for at in product(*ranges):
        point = dict(zip(names, at, strict=True))
        tests = [equals(Index(name=name), x) for name, x in point.items()]
        if not domain.restricted(*tests).is_empty():
            yield point


def holding(domain: LoopDomain, where: Expr | None) -> list[Point]:
    return [p for p in points(domain) if where is None or value(where, p)]


@every_domain
@pytest.mark.parametrize(
    "exprs",
    [
        (i - i,),
        (j % 2,),
        (apply(Op.MINIMUM, i, const(1)), j // 3),
    ],
    ids=["constant", "modulo", "two"],
)
def test_cases_are_all_values_and_where_they_are(domain: LoopDomain, exprs: Sequence[Expr]) -> None:
    found = cases(domain, exprs, 20)
    assert found is not None
    assert [case.values for case in found] == sorted(case.values for case in found)
    for point in points(domain):
        here = tuple(value(expr, point) for expr in exprs)
        matching = [c.values for c in found if c.where is None or value(c.where, point)]
        assert matching == [here]


def test_more_cases_than_the_limit() -> None:
    assert cases(BOX, (j,), 4) is None
    found = cases(BOX, (j,), 5)
    assert found is not None
    assert len(found) == 5


@every_domain
@pytest.mark.parametrize(
    "tests",
    [
        [i < j],
        [equals(i, j)],
        [(j < i) | (const(2) < j)],
        [equals(j % 3, 1), i < 2],
    ],
    ids=["less", "equal", "or", "modulo"],
)
def test_condition_says_which_iterations(domain: LoopDomain, tests: Sequence[Expr]) -> None:
    held = domain.restricted(*tests)
    wanted = [p for p in points(domain) if all(value(test, p) for test in tests)]
    assert holding(domain, condition(domain, held.points)) == wanted


def test_condition_leaves_out_what_is_known() -> None:
    assert condition(TRIANGLE, TRIANGLE.points) is None
    held = TRIANGLE.restricted(const(0) < j, i < 9)
    where = condition(TRIANGLE, held.points)
    assert where is not None
    assert show(where) == "j >= 1"
    nowhere = condition(BOX, BOX.restricted(j < -3).points)
    assert nowhere is not None
    assert holding(BOX, nowhere) == []


@every_domain
def test_projection_and_translation(domain: LoopDomain) -> None:
    assert project(domain, ["j"]).count_val().to_python() == len({p["j"] for p in points(domain)})
    moved = translated(domain.points, [1, -2])
    there = {(p["i"], p["j"]) for p in points(domain)}
    both = condition(domain, moved.intersect(domain.points))
    stays = {(p["i"], p["j"]) for p in holding(domain, both)}
    assert stays == {p for p in there if (p[0] - 1, p[1] + 2) in there}


CHANGES: dict[str, dict[str, Expr]] = {
    "same": {"p": i, "t": j},
    "skewed": {"p": i, "t": i + j},
    "reversed": {"p": 0 - j, "t": i - j},
    "scaled": {"p": i, "t": i * 2 + j * 3},
    "flat": {"t": i * 10 + j},
    "split": {
        "p": i,
        "o": j // 2,
        "t": j % 2,
    },
}


@every_domain
@pytest.mark.parametrize("new", CHANGES.values(), ids=CHANGES)
def test_inverse_and_bounds_of_a_change(domain: LoopDomain, new: dict[str, Expr]) -> None:
    change = Transformation(domain, new)
    assert change.clash() is None
    inverse = change.inverse()
    images = []
    for point in points(domain):
        image = {name: value(expr, point) for name, expr in new.items()}
        assert {name: value(expr, image) for name, expr in inverse.items()} == point
        images.append(image)
    for name in new:
        span = change.span(name)
        assert change.constant_range(name) == (
            min(image[name] for image in images),
            max(image[name] for image in images),
        )
        for image in images:
            assert value(span.first, image) <= image[name] <= value(span.last, image)


@pytest.mark.parametrize("new", [{"p": i, "t": i}, {"t": i + j}, {"p": i // 2, "t": j}])
def test_two_iterations_that_become_one(new: dict[str, Expr]) -> None:
    clash = Transformation(BOX, new).clash()
    assert clash is not None
    first, second = clash
    assert first != second
    inside = list(points(BOX))
    assert first in inside
    assert second in inside
    assert [value(e, first) for e in new.values()] == [value(e, second) for e in new.values()]


def read(text: str, names: Iterable[str] = "ij") -> Expr:
    """What the reader makes of a condition that isl writes."""
    islpy = islpy_module()
    parameters = ", ".join(names)
    build = islpy.AstBuild.from_context(islpy.Set(f"[{parameters}] -> {{ : }}"))
    ast = build.expr_from_set(islpy.Set(f"[{parameters}] -> {{ : {text} }}"))
    return AstReader(islpy, {name: name for name in names}).read(ast)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i >= 2", "i >= 2"),
        ("i = j", "j == i"),
        ("i >= 1 and j <= 4", "i >= 1 and j <= 4"),
        ("i >= 3 or j >= 7", "j >= 7 or i >= 3"),
    ],
)
def test_reading_what_isl_writes(text: str, expected: str) -> None:
    words = sorted(show(read(text)).replace("==", "=").split())
    assert words == sorted(expected.replace("==", "=").split())


def test_reading_a_name_that_is_not_known() -> None:
    islpy = islpy_module()
    build = islpy.AstBuild.from_context(islpy.Set("[z] -> { : }"))
    ast = build.expr_from_set(islpy.Set("[z] -> { : z >= 1 }"))
    with pytest.raises((KeyError, InternalError)):
        AstReader(islpy, {}).read(ast)
