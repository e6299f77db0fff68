"""Conditions: evaluated, proved, tiled; the three agree on random conditions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest

from benchmarks.mosaic.tiles import CASES
from t2s import Var, sparse
from t2s.capability import solver as solving
from t2s.capability import tiles
from t2s.capability.conditions import Answer, compiled, holds, instantiated, names_of
from t2s.capability.ir import (
    Condition,
    parse_capability,
    parse_condition,
    print_capability,
    print_condition,
)
from t2s.capability.solver import Solver
from t2s.capability.tiles import MOST_TRIALS, TileOf, tiles_of
from t2s.driver.external_plan import PlanResolver
from t2s.errors import UserError
from t2s.plan.build import build_plan
from t2s.sparse import Schedule, Tensor, dense
from tests.capability.functions import described
from tests.errors.refusal import refused
from tests.sampling import sampled

i, j = Var("i"), Var("j")
a, b, c = Tensor("a", dense(1)), Tensor("b", dense(1)), Tensor("c", dense(1))


@dataclass
class Looks:
    """How often a condition was looked at: the work of a search for tiles."""

    count: int = 0


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    found = Looks()

    def counted(condition: Condition, names: Sequence[str]) -> Any:
        test = compiled(condition, names)

        def look(sizes: Sequence[int]) -> bool:
            found.count += 1
            return test(sizes)

        return look

    monkeypatch.setattr(tiles, "compiled", counted)
    return found


def _tiles(condition: str, **extents: int) -> tuple[TileOf, ...] | None:
    return tiles_of(parse_condition(condition), extents)


def _calls(condition: str, **extents: int) -> int:
    found = _tiles(condition, **extents)
    assert found is not None
    return prod(tile.count for tile in found)


def test_whole_and_padded_tiles_of_eight() -> None:
    assert _tiles("i == 8", i=8) == ()
    assert _tiles("i == 8", i=10) == (TileOf(mode="i", extent=10, size=8, padded=True),)
    assert _tiles("i == 8", i=4) == (TileOf(mode="i", extent=4, size=8, padded=True),)
    refused_without = tiles_of(parse_condition("i == 8"), {"i": 4}, may_pad=lambda mode: False)
    assert refused_without is None


@pytest.mark.parametrize(("condition", "extents", "calls"), CASES)
def test_the_fewest_calls_not_the_largest_tile(
    condition: str, extents: dict[str, int], calls: int, looks: Looks
) -> None:
    assert _calls(condition, **extents) == calls
    assert looks.count <= 200  # far from all sizes; benchmarks/mosaic/tiles.py has the seconds


def test_a_search_for_tiles_ends(looks: Looks) -> None:
    """However large extents are, and whatever a condition asks of them."""
    assert _calls("i*j*k < 65536", i=10**6, j=10**6, k=10**6) > 10**13
    assert looks.count <= 10 * MOST_TRIALS
    looks.count = 0
    assert _tiles("i * j == 7 and j * k == 5 and i * k == 11", i=999, j=998, k=997) is None
    assert looks.count <= 2 * MOST_TRIALS


def _brute(condition: Condition, extents: dict[str, int]) -> int | None:
    """The fewest calls of equal tiles, padded or with a smaller last one, of any size."""
    names = names_of(condition)
    test = compiled(condition, names)
    best = None
    for sizes in itertools.product(*(range(1, 2 * extents[name] + 9) for name in names)):
        calls = prod(-(-extents[name] // size) for name, size in zip(names, sizes, strict=True))
        if test(sizes) and (best is None or calls < best):
            best = calls
    return best


@pytest.mark.parametrize("seed", range(30))
def test_no_choice_of_tiles_has_fewer_calls(seed: int) -> None:
    """Everything may be padded here, so the sizes alone decide."""
    random = Random(seed)
    condition = parse_condition(random.choice(_CONDITIONS))
    extents = {name: random.randint(1, 12) for name in "ij"}
    found = tiles_of(condition, extents)
    expected = _brute(condition, extents)
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert prod(tile.count for tile in found) == expected


_CONDITIONS = (
    *("i * j < 20", "i == 4", "i % 4 == 0 and j <= 3", "i + j <= 7", "i == j", "i == 2 * j"),
    *("i * j <= 16 and j % 2 == 0", "i == 3 or j == 5", "i <= 3 and j >= 2", "i * i < 30"),
)


def test_products_that_are_fixed_are_factored() -> None:
    """Sixteen each would make 16 calls; no size that is not a divisor can be one."""
    found = tiles_of(parse_condition("i*j*k*l == 65536"), dict.fromkeys("ijkl", 20))
    assert found is not None
    assert prod(tile.size for tile in found) == 65536
    assert prod(tile.count for tile in found) <= 9
    assert tiles_of(parse_condition("i*j*k == 1000003"), {"i": 999, "j": 777, "k": 1000}) is None


def test_padding_does_not_make_the_work_a_multiple_that_loops_would_beat() -> None:
    assert tiles_of(parse_condition("i == 640"), {"i": 10}) is not None
    assert tiles_of(parse_condition("i == 641"), {"i": 10}) is None
    assert tiles_of(parse_condition("i == 100000000000"), {"i": 10}) is None
    both = parse_condition("i == 80 and j == 80")
    assert tiles_of(both, {"i": 10, "j": 10}) is not None
    assert tiles_of(both, {"i": 9, "j": 10}) is None  # 6,400 of 90, more than 64 times


def test_conditions_of_single_modes_are_tried_first() -> None:
    """So that none is out of reach behind sizes of others, which may be padded to any."""
    assert _calls("i == 1 and j <= 2 and k <= 4", i=9, j=5, k=10) == 9 * 3 * 3
    assert _calls("k == 3 and i % 2 == 1 and j == 1 and l <= 2", i=50, j=40, k=30, l=20) == 4000
    for seed in range(40):
        random = Random(seed)
        parts, extents = [], {}
        for name in "ijkl"[: random.randint(2, 4)]:
            number = random.randint(1, 9)
            parts.append(random.choice([f"{name} == {number}", f"{name} <= {number}"]))
            extents[name] = random.randint(1, 60)
        random.shuffle(parts)
        found = tiles_of(parse_condition(" and ".join(parts)), extents)
        wanted = 1
        for part in parts:
            name, operator, number = part.split()
            size = int(number) if operator == "==" else min(int(number), extents[name])
            wanted *= -(-extents[name] // size)
        assert found is not None
        assert prod(tile.count for tile in found) == wanted  # 1 if there are none


def test_lists_that_are_square() -> None:
    made = parse_capability("x(i,I) = x(i,I) + y(i,I) when forall d in I: I[d] == i")
    for shape, expected in (((4, 4, 4), Answer.TRUE), ((4, 4, 5), Answer.FALSE), ((4,), True)):
        modes = tuple((f"v{at}",) for at in range(1, len(shape)))
        condition = instantiated(made.condition, {"i": ("v0",)}, {"I": modes})
        extents = {f"v{at}": extent for at, extent in enumerate(shape)}
        answer = Answer.TRUE if expected is True else expected
        assert holds(condition, extents) is answer


@pytest.mark.parametrize(
    ("text", "lists", "expected"),
    [
        ("forall d in I: I[d] == 3", (), True),
        ("exists d in I: I[d] == 3", (), False),
        ("order(I) == 0 and product(I) == 1", (), True),
        ("exists d in I: I[d] == 3 and d == 1", (2, 3), True),
        ("exists d in I: I[d] == 3 and d == 1", (3, 2), False),
        ("forall d in I: exists e in I: I[d] == I[e] and d != e", (2, 3, 2), False),
        ("forall d in I: exists e in I: I[d] == I[e] and d != e", (2, 3, 2, 3), True),
        ("I[0] == 2 and I[1] == 3", (2,), False),
        ("product(I) / order(I) >= 2", (), False),
    ],
)
def test_quantifiers_and_empty_lists(text: str, lists: tuple[int, ...], expected: bool) -> None:
    modes = tuple((f"v{at}",) for at in range(len(lists)))
    condition = instantiated(parse_condition(text), {}, {"I": modes})
    extents = {f"v{at}": extent for at, extent in enumerate(lists)}
    assert (holds(condition, extents) is Answer.TRUE) == expected


@pytest.mark.parametrize(
    "text",
    [
        "z(i) = x(i) + y(i) when i == 8",
        "z(I) = x(I) + y(I) when forall d in I: I[d] == I[0] and order(I) >= 1",
        "z(I,J) = x(I,K)*y(K,J) when product(J) * 2 < 65536 - order(I)",
        "z(i) = x(i) when (i + 1) * 2 < 3 or (i == 4 and i % 2 == 0)",
        "z(i,j) += x(i)*y(j)",
        "y(i) = y(i) + A(i,j)*x(j)",
        "s = x(i)*y(i) when (forall d in I: I[d] > d) and i > 2",
    ],
)
def test_text_comes_back(text: str) -> None:
    assert print_capability(parse_capability(text)) == text


def test_open_conditions_are_guards() -> None:
    octets = described("octets", "z(i) = x(i) + y(i) when i % 8 == 0", _plain_add)
    a[i] = b[i] + c[i]
    plan = sparse.compile(a, Schedule().bind(b[i] + c[i], octets))
    assert "guard: i % 8 == 0, else loops (extents are known when it runs)" in str(plan)
    called = plan.run({"b": np.arange(16.0), "c": np.ones(16)})
    assert called.steps[0].calls == 1
    computed = plan.run({"b": np.arange(12.0), "c": np.ones(12)})
    assert computed.steps[0].calls == 0
    assert computed.steps[0].note == "guard false: computed by loops"
    for result, extent in ((called, 16), (computed, 12)):
        assert np.array_equal(result.output, np.arange(extent) + 1.0)
    with refused("""
        octets is not for these extents
          --> strict = Schedule().bind(b[i] + c[i], octets, else_=None)
          expected: i % 8 == 0
          given:    i is 12
          hint:     map(...) makes tiles where it can
    """):
        strict = Schedule().bind(b[i] + c[i], octets, else_=None)
        sparse.compile(a, strict).run({"b": np.arange(12.0), "c": np.ones(12)})


def _plain_add(x: Any, y: Any, z: Any) -> None:
    np.add(x, y, out=z)


def _proof(condition: str, *facts: str) -> tuple[Answer, str, int]:
    solver = Solver()
    found = solver.prove(parse_condition(condition), [parse_condition(one) for one in facts], {})
    return found.answer, found.text, solver.calls.count


def test_proofs_from_facts() -> None:
    pytest.importorskip("z3")
    answer, text, _ = _proof("i % 8 == 0", "i == 16 * q")
    assert (answer, text) == (Answer.TRUE, "i % 8 == 0 follows from i == 16 * q")
    answer, _, asked = _proof("i * j < 65536", "i <= 255", "j <= 255", "i >= 2")
    assert (answer, asked) == (Answer.TRUE, 1)
    answer, _, asked = _proof("i * j < 65536", "i <= 256", "j <= 256")
    assert (answer, asked) == (Answer.OPEN, 2)
    assert _proof("i == 8", "i % 3 == 0 and i < 9")[0] is Answer.FALSE
    needed = _proof("i % 8 == 0", "j < 4", "i % 16 == 0")[1]
    assert needed == "i % 8 == 0 follows from i % 16 == 0"


def test_what_is_not_proved_in_time_is_open() -> None:
    """Cubes whose sum is one: there are none, which no solver finds in its second."""
    pytest.importorskip("z3")
    assert Solver().time_limit == 1000  # ms, of each question
    claim = parse_condition("i*i*i + j*j*j != k*k*k")
    solver = Solver(time_limit=20)
    assert solver.prove(claim, [], {}).answer is Answer.OPEN
    assert solver.calls.count == 2
    assert solver.satisfiable(parse_condition("i*i*i + j*j*j == k*k*k")) is Answer.OPEN


def test_no_solver_is_started_where_extents_are_known() -> None:
    made = described("few", "z(i) = x(i) + y(i) when i * 2 < 65536", _plain_add)
    first, second = Tensor("b", dense(1), shape=(9,)), Tensor("c", dense(1), shape=(9,))
    a[i] = first[i] + second[i]
    assert a.definition is not None
    solver = Solver()
    schedule = Schedule().assume("i < 10").bind(first[i] + second[i], made)
    plan = build_plan(a.definition, schedule, PlanResolver(), solver)
    assert plan.calls[0].proof.answer is Answer.TRUE
    assert solver.calls.count == 0


def test_what_is_assumed_is_proved_with_and_checked() -> None:
    pytest.importorskip("z3")
    octets = described("octets", "z(i) = x(i) + y(i) when i % 8 == 0", _plain_add)
    a[i] = b[i] + c[i]
    plan = sparse.compile(a, Schedule().assume("i % 16 == 0").bind(b[i] + c[i], octets))
    assert "proved: i % 8 == 0 follows from i % 16 == 0" in str(plan)
    assert plan.run({"b": np.arange(32.0), "c": np.ones(32)}).steps[0].calls == 1
    with refused("""
        what is assumed of extents does not hold in this run
          --> assumed = Schedule().assume("i % 16 == 0").bind(b[i] + c[i], octets)
          expected: i % 16 == 0
          given:    i is 8
    """):
        assumed = Schedule().assume("i % 16 == 0").bind(b[i] + c[i], octets)
        sparse.compile(a, assumed).run({"b": np.arange(8.0), "c": np.ones(8)})


def test_what_is_assumed_may_refute() -> None:
    pytest.importorskip("z3")
    eight = described("eight", "z(i) = x(i) + y(i) when i == 8", _plain_add)
    a[i] = b[i] + c[i]
    with refused("""
        eight is not for the extents that are assumed
          --> refuted = Schedule().assume("i % 16 == 0").bind(b[i] + c[i], eight)
          expected: i == 8
          given:    i % 16 == 0
          hint:     map(...) makes tiles where it can
    """):
        refuted = Schedule().assume("i % 16 == 0").bind(b[i] + c[i], eight)
        sparse.compile(a, refuted)
    plan = sparse.compile(a, Schedule().assume("i % 16 == 0").map(b[i] + c[i], eight))
    assert plan.run({"b": np.arange(32.0), "c": np.ones(32)}).steps[0].calls == 4


def test_assumptions_are_conditions() -> None:
    a[i] = b[i] + c[i]
    with pytest.raises(UserError, match="not a condition, at column 3"):
        sparse.compile(a, Schedule().assume("i = 3").bind(b[i] + c[i], "numpy.add"))
    with pytest.raises(UserError, match="what is assumed of extents is a text"):
        Schedule().assume(3)  # type: ignore[arg-type]


def test_without_z3_conditions_stay_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "_z3", lambda: None)
    octets = described("octets", "z(i) = x(i) + y(i) when i % 8 == 0", _plain_add)
    a[i] = b[i] + c[i]
    plan = sparse.compile(a, Schedule().assume("i % 16 == 0").bind(b[i] + c[i], octets))
    assert "not proved: z3 is not there" in str(plan)
    assert plan.run({"b": np.arange(16.0), "c": np.ones(16)}).steps[0].calls == 1


@sampled("seed", range(25), quick=8)
def test_evaluation_and_z3_agree(seed: int) -> None:
    """A random condition, at random extents: evaluated, compiled, and proved of these extents."""
    pytest.importorskip("z3")
    random = Random(seed)

    def quantity(depth: int) -> str:
        if not depth or random.random() < 0.3:
            return random.choice(["i", "j", "k", str(random.randint(0, 5))])
        operator = random.choice(["+", "-", "*", "/", "%"])
        return f"({quantity(depth - 1)} {operator} {quantity(depth - 1)})"

    def condition(depth: int) -> str:
        if not depth or random.random() < 0.3:
            operator = random.choice(["==", "!=", "<", "<=", ">", ">="])
            return f"{quantity(2)} {operator} {quantity(2)}"
        word = random.choice(["and", "or"])
        return f"({condition(depth - 1)}) {word} ({condition(depth - 1)})"

    made = parse_condition(condition(2))
    assert print_condition(parse_condition(print_condition(made))) == print_condition(made)
    names = ("i", "j", "k")
    test = compiled(made, names)
    for _ in range(6):
        sizes = [random.randint(1, 6) for _ in names]
        extents = dict(zip(names, sizes, strict=True))
        answer = holds(made, extents)
        assert answer is not Answer.OPEN
        assert test(sizes) == (answer is Answer.TRUE)
        facts = [parse_condition(f"{name} == {size}") for name, size in extents.items()]
        assert Solver().prove(made, facts, {}).answer is answer
        assert Solver().prove(made, [], extents).answer is answer
