"""Estimates of the logic of designs, and how far they are from what was measured."""

from __future__ import annotations

import t2s
from benchmarks.chip_estimates import DEVICE
from t2s import Func
from t2s.core.logic import Logic
from t2s.driver.logic import logic_of
from t2s.simulator.program.build import build_program


def estimate(design: Func) -> Logic:
    logic = logic_of(build_program(t2s.lower(design), DEVICE, None, {}))
    assert logic is not None
    return logic.total


def error(guess: int, measured: int) -> float:
    return abs(guess - measured) / measured
