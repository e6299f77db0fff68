"""Running one point: its cycles, and what they cost."""

from __future__ import annotations

import resource
import time
from functools import lru_cache
from typing import Any

from benchmarks.fuseflow.models import (
    GPT,
    KEPT,
    attention,
    copies,
    fused,
    inputs,
    inputs_of_attention,
    mask,
)
from benchmarks.fuseflow.published import Lanes, Point

Result = tuple[Point | Lanes, int, float, float]
"""A point with its cycles, the seconds that they took, and the most memory so far, in GB."""


def run(point: Point | Lanes) -> Result:
    """Run a point."""
    began = time.process_time()
    found = measured(point)
    spent = time.process_time() - began
    return point, found, spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measured(point: Point | Lanes) -> int:
    """The cycles of a point."""
    if isinstance(point, Lanes):
        program = attention(point.rows, point.heads)
        return program.cycles(inputs_of_attention(GPT, mask(GPT.sequence, 64, KEPT[64])))
    program = fused(point.model, point.fusion)
    return copies(point.model) * program.simulate(_inputs(point.model, point.data)).cycles


@lru_cache(maxsize=1)
def _inputs(model: str, data: str) -> dict[str, Any]:
    return inputs(model, data)
