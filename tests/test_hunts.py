"""A short form of every hunt: seeded cases of each, judged in this process."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.hunt.choices import Choices, minimized
from benchmarks.hunt.run import guarded, tried
from benchmarks.hunt.verdict import Kind, Wrong, generic, verdict_of
from t2s.core.errors import InternalError, UserError
from t2s.simulator.report.errors import DeadlockError

CASES = {
    "dense": 25,
    "sparse": 15,
    "statements": 15,
    "pipelines": 15,
    "clustered": 10,
    "chains": 10,
    "machines": 4,
    "hostile": 60,
    "files": 80,
    "mappings": 500,
}
PARTS = 5


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("hunt", CASES)
def test_no_case_is_wrong(hunt: str, part: int) -> None:
    for number in range(part, CASES[hunt], PARTS):
        case, verdict = tried(hunt, Choices(f"gate:{number}"), hardware=False)
        assert not verdict.kind.bad, f"case {number}\n{case}\n{verdict.detail}\n{verdict.text}"


@pytest.mark.slow
def test_dense_programs_are_legal_often_enough() -> None:
    """A hunt of which most is refused finds nothing."""
    kinds = Counter(
        tried("dense", Choices(f"share:{n}"), hardware=False)[1].kind for n in range(12)
    )
    assert kinds[Kind.LEGAL] >= 4


def test_decisions_make_the_same_case_again() -> None:
    def drawn(choices: Choices) -> object:
        numbers = choices.between(3, 9), choices.one_of("abc"), choices.chance(3)
        return numbers, choices.some([1, 2, 3]), choices.shuffled("wxyz")

    first = Choices("seed")
    case = drawn(first)
    again = Choices(given=first.taken)
    assert case == drawn(again) == drawn(Choices("seed"))
    assert again.taken == first.taken != []


def test_without_decisions_everything_is_the_simplest() -> None:
    choices = Choices()
    assert choices.between(3, 9) == 3
    assert choices.one_of("abc") == "a"
    assert not choices.chance(3)
    assert choices.some([1, 2]) == []
    assert choices.shuffled([1, 2, 3]) == [1, 2, 3]


def test_decisions_out_of_range_are_the_last_one_there_is() -> None:
    choices = Choices(given=[7, 7])
    assert [choices.below(3), choices.below(10), choices.below(5)] == [2, 7, 0]
    assert choices.taken == [2, 7, 0]


def test_shrinking_finds_a_small_case() -> None:
    """A list of numbers fails if one of them is 7 or more, and another one 3 or more."""

    def fails(taken: list[int]) -> list[int] | None:
        choices = Choices(given=taken)
        numbers = [choices.below(100) for _ in range(choices.below(20))]
        large = sorted(numbers, reverse=True)
        bad = len(large) > 1 and large[0] >= 7 and large[1] >= 3
        return choices.taken if bad else None

    first = Choices("a long one")
    numbers = [first.below(100) for _ in range(first.below(20))]
    assert len(numbers) > 4
    small = minimized(first.taken, fails, tries=2000)
    assert small[0] == 2
    assert sorted(small[1:]) == [3, 7]


def test_shrinking_ends_at_its_limit() -> None:
    tried_ = []

    def fails(taken: list[int]) -> list[int] | None:
        tried_.append(taken)
        return taken

    minimized([5] * 50, fails, tries=10)
    assert len(tried_) < 10


@pytest.mark.parametrize(
    ("error", "kind", "detail"),
    [
        (UserError("split(i, ii, 4) on F: no"), Kind.REFUSED, "split_ on _: no"),
        (Wrong("values differ\n[1 2]"), Kind.WRONG, "values differ"),
        (ValueError("12 is odd"), Kind.CRASHED, "ValueError: N is _"),
        (RecursionError("too deep"), Kind.CRASHED, "RecursionError: too _"),
    ],
)
def test_what_an_exception_means(error: Exception, kind: Kind, detail: str) -> None:
    verdict = verdict_of(error)
    assert (verdict.kind, verdict.detail) == (kind, detail)
    assert str(error) in verdict.text


def test_a_deadlock_is_wrong() -> None:
    def deadlock() -> None:
        raise DeadlockError.__new__(DeadlockError)

    assert guarded(deadlock).kind is Kind.WRONG
    assert guarded(lambda: None).kind is Kind.LEGAL


def test_a_bug_of_ours_is_a_crash() -> None:
    assert verdict_of(InternalError("a bug")).kind is Kind.CRASHED


def test_kinds_that_are_promised() -> None:
    assert {kind for kind in Kind if not kind.bad} == {Kind.LEGAL, Kind.REFUSED}


def test_equal_reasons_count_together() -> None:
    messages = (
        f"the loop {name!r} of Func {name} has {n} iterations"
        for name, n in [("i", 3), ("q_1", 1000)]
    )
    assert len(set(map(generic, messages))) == 1
