"""A fixed sample of the algorithms that users gave to the TACO website."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.sam.algorithms import KINDS, RESULT, TWICE, Algorithm, read_list, run

SAMPLE = Path(__file__).parent / "data" / "website_sample.txt"
ALGORITHMS = list(read_list(SAMPLE.read_text(encoding="utf-8").splitlines()))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_on_blocks(part: int) -> None:
    for algorithm in ALGORITHMS[part::10]:
        outcome = run(algorithm, "blocks")
        assert outcome.kind == "ok", f"{algorithm.command}\n{outcome.text}"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_on_machines(part: int) -> None:
    """With small extents, and each algorithm on one of the three kinds of input."""
    for number, algorithm in enumerate(ALGORITHMS[part::10]):
        outcome = run(algorithm, "python", 24, KINDS[number % 3 : number % 3 + 1])
        assert outcome.kind == "ok", f"{algorithm.command}\n{outcome.text}"
        assert outcome.cycles > 0


@pytest.mark.parametrize(
    ("expression", "formats", "kind"),
    [
        ("y(i)=A(i,j)*x(j)", ("y:d", "A:qs", "x:q"), "ok"),
        ("y(i)=A(i,j)*x(j)", ("y:d", "A:ds", "x:c"), "ok"),
        ("y(i)=A(i,j)*x(j)", ("y:q", "A:ds", "x:d"), RESULT),
        ("y(i,i)=A(i,j)*x(j)", ("y:dd", "A:ds", "x:d"), TWICE),
        ("y(i)=A(i,j)*x(j)", ("y:d", "A:udq", "x:d"), "refused"),
    ],
)
def test_ill_formed_and_singletons(expression: str, formats: tuple[str, ...], kind: str) -> None:
    outcome = run(Algorithm(count=1, expression=expression, formats=formats), "python", 24)
    assert outcome.kind.startswith(kind), outcome.text


def test_the_sample_is_what_it_says() -> None:
    assert len({algorithm.command for algorithm in ALGORITHMS}) == 300
