"""Statements of a plan that no function computes: by compiled loops, or numpy without llvmlite.

This is all that plans know of how our loops are carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s.core.preparation import preparation
from t2s.core.types import Type
from t2s.driver.plan_inputs import Value, dense_view, is_dense, places_of
from t2s.plan.interpret import statement_value
from t2s.sparse_repr.notation.ir import Assignment, accesses

if TYPE_CHECKING:
    from t2s.libraries.by_address import LoopedCalls

Array = np.ndarray[Any, Any]


def run_loops(
    assignment: Assignment, values: Mapping[str, Value], extents: Mapping[str, int], type: Type
) -> Value:
    """The result of a statement: an array if its format is dense, else a stored tensor."""
    try:
        with preparation():
            from t2s.loops.whole_program import run_assignment
    except ModuleNotFoundError:
        read = dict.fromkeys(access.tensor for access in accesses(assignment.value))
        dense = {name: dense_view(values[name]) for name in read}
        places = places_of({name: values[name] for name in read})
        return statement_value(assignment, dense, extents, type.numpy, places)
    made = run_assignment(assignment, values, extents, type)
    return dense_view(made) if is_dense(made.format) else made


def calls_in_loops() -> Callable[[LoopedCalls], int | None] | None:
    """What makes many calls of a function by its address; ``None`` without llvmlite."""
    try:
        with preparation():
            from t2s.loops.call_run import NestRun, run_nest
    except ModuleNotFoundError:
        return None

    def make(calls: LoopedCalls) -> int | None:
        return run_nest(
            NestRun(
                nest=calls.nest,
                address=calls.address,
                arrays=calls.arrays,
                numbers=calls.numbers,
            )
        )

    return make
