"""The rate of a placed design counts the instructions that a cell takes for a value."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import t2s
from t2s import Float, Func, ImageParam, Var
from t2s.backends.cgra_tia.place.recurrence_cycles import firings_per_token

COUNT = 200
Formula = Callable[[Any, Any], Any]


def placed(formula: Formula) -> t2s.cgra.Placement:
    x, y = ImageParam(Float(64), 1, name="x"), ImageParam(Float(64), 1, name="y")
    R, i = Func("R"), Var("i")
    R[i] = formula(x[i], y[i])
    return t2s.cgra.place(R.bound(i, 0, COUNT), fabric="cgra8")


def test_the_rate_that_is_printed_is_that_of_the_run() -> None:
    rng = np.random.default_rng(1)
    inputs = {"x": rng.random(COUNT), "y": rng.random(COUNT)}
    formulas: list[tuple[Formula, int]] = [
        (lambda x, y: x * y + x, 1),
        (t2s.max, 2),
        (lambda x, y: t2s.min(x, y) * y, 2),
        (lambda x, y: t2s.select(x < y, x, y * y), 2),
    ]
    for formula, cycles in formulas:
        design = placed(formula)
        rate = next(line for line in str(design).splitlines() if line.startswith("rate"))
        expected = (
            "a firing in every cycle" if cycles == 1 else f"a firing in every {cycles} cycles:"
        )
        assert expected in rate
        run = t2s.simulate(design, inputs)
        assert cycles * COUNT <= run.cycles < cycles * COUNT + 20
        most = max(firings_per_token(cell.program) or 0 for cell in design.placed.netlist.cells)
        assert most == Fraction(cycles)


def test_the_cell_is_named() -> None:
    text = str(placed(lambda x, y: t2s.max(x, y) * y))
    assert "a firing in every 2 cycles: R.maximum takes 2 instructions for a value" in text
