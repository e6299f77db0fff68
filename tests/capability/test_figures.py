"""The figures of [Mosaic]: all of them run, and all plans of a figure have one result."""

from __future__ import annotations

import pytest

from benchmarks.mosaic.figures import FIGURES
from benchmarks.mosaic.measuring import LOOPS, MeasuredFigure, measured, plans_of


def test_all_figures_of_the_paper_are_there() -> None:
    assert sorted(FIGURES) == list(range(12, 23))


@pytest.mark.slow
def test_functions_of_figures() -> None:
    names = {number: set(plans_of(figure)) for number, figure in FIGURES.items()}
    assert {LOOPS, "blas.sgemv"} <= names[12]
    assert "blas.ssymv" in names[13] - names[12]
    assert {LOOPS, "scipy.spmv"} <= names[14]
    assert {"scipy.spadd"} <= names[15] & names[21]
    assert {"blas.sgemm", "blas.sgemv/j", "store(D), loops"} <= names[16]
    assert "blas.sgemm/i,j,m" in names[17] & names[20]
    assert "blas.sgemv/i" in names[18]


def test_what_wins_where() -> None:
    made = MeasuredFigure(
        figure=FIGURES[14],
        seconds={
            "n = 1": {LOOPS: 1e-3, "scipy.spmv": 2e-3},
            "n = 2": {LOOPS: 4e-3, "scipy.spmv": 2e-3},
        },
    )
    assert list(made.winners()) == [("n = 1", LOOPS, 1.0), ("n = 2", "scipy.spmv", 2.0)]
    assert made.text().splitlines()[-3:] == [
        "  n = 1: loops, 1.00 x of loops",
        "  n = 2: scipy.spmv, 2.00 x of loops",
        f"  published: {FIGURES[14].published}",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("number", sorted(FIGURES))
def test_figures_run(number: int) -> None:
    """Each plan has the result of our loops, or ``measured`` fails."""
    found = measured(FIGURES[number], quick=True)
    assert all(len(taken) > 1 for taken in found.seconds.values())
