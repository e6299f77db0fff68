"""The meaning of a plan: each call replaced by the statement that it computes.

This is the oracle of the plumbing: conversions, workspaces, and what reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from t2s.plan.ir import CallStep, CheckStep, ConvertStep, LoopsStep, MoveStep, PlanProgram
from t2s.sparse_repr.notation.evaluate import evaluate
from t2s.sparse_repr.notation.ir import Assignment, TensorDeclaration, accesses

Array = np.ndarray[Any, Any]


def interpret_plan(
    plan: PlanProgram,
    inputs: Mapping[str, Array],
    extents: Mapping[str, int],
    kind: np.dtype[Any],
    stored: Mapping[str, Array] | None = None,
) -> Array:
    """The result for dense inputs; ``stored`` says where the sparse ones store something."""
    values, places = dict(inputs), dict(stored or {})
    result = plan.assignment.result.tensor
    found: Array | None = None
    for step in plan.steps:
        match step:
            case CheckStep() | MoveStep():
                continue
            case ConvertStep(target=target, source=source, modes=modes):
                made = values[source].transpose(modes)
                if source in places:
                    places[target] = places[source].transpose(modes)
            case LoopsStep(assignment=assignment) | CallStep(meaning=assignment):
                target = assignment.result.tensor
                made = statement_value(assignment, values, extents, kind, places)
        if target == result:
            found = made
        else:
            values[target] = made
    assert found is not None
    return found


def statement_value(
    assignment: Assignment,
    values: Mapping[str, Array],
    extents: Mapping[str, int],
    kind: np.dtype[Any],
    places: Mapping[str, Array],
) -> Array:
    """What a statement of a plan computes of dense values."""
    names = assignment.result.variables
    shape = tuple(extents[name] for name in names)
    read = {access.tensor: values[access.tensor] for access in accesses(assignment.value)}
    declared = tuple(
        TensorDeclaration(name=one.name, format=one.format, shape=shape)
        if one.name == assignment.result.tensor
        else one
        for one in assignment.tensors
    )
    return evaluate(replace(assignment, tensors=declared), read, kind, places)
