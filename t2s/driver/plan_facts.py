"""What is known of the tensors of an assignment before a run: from inputs, or from shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from t2s.core.checks import whole
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.types import Float, Type
from t2s.driver.plan_inputs import PlanBinding, bind_plan
from t2s.plan.cost import PlanFacts
from t2s.plan.loop_cost import TensorFacts, facts_of
from t2s.sparse_repr.concrete.external_loops import order_in_memory
from t2s.sparse_repr.notation.ir import Assignment, accesses
from t2s.sparse_repr.notation.legality import extents_of
from t2s.sparse_repr.tensors.tensor import SparseTensor


def facts_for(
    assignment: Assignment,
    inputs: Mapping[str, Any] | None,
    shapes: Mapping[str, Sequence[int]] | None,
    densities: Mapping[str, float] | None,
    type: Type | None,
    where: SourceLocation,
) -> PlanFacts:
    """The facts that a search is given: inputs, or shapes and densities.  Raises ``UserError``."""
    if inputs is not None and shapes is None and densities is None:
        return facts_of_binding(bind_plan(assignment, inputs, type), assignment)
    if inputs is not None or (shapes is None and any(t.shape is None for t in assignment.tensors)):
        raise UserError(
            "a search is for inputs, or for shapes",
            location=where,
            expected="inputs=..., or shapes=... with densities=... of sparse tensors",
            given="both" if inputs is not None else "none of them",
        )
    read = tuple(dict.fromkeys(access.tensor for access in accesses(assignment.value)))
    found: dict[str, TensorFacts] = {}
    for name in read:
        declared = assignment.tensor(name)
        shape = tuple((shapes or {}).get(name, declared.shape or ()))
        sizes = [whole(extent) for extent in shape]
        order = declared.format.order
        share = (densities or {}).get(name, 1.0)
        good = isinstance(share, int | float) and 0 <= share <= 1
        if len(sizes) != order or any(size is None or size < 0 for size in sizes) or not good:
            raise UserError(
                f"the shape of {name} is not known, or its density is none",
                location=where,
                expected=f"{order} extents, and a density from 0 to 1",
                given=f"shape {shape!r}, density {share!r}",
            )
        full = tuple(size for size in sizes if size is not None)
        count = float(np.prod(full, dtype=float)) * share
        found[name] = facts_of(full, declared.format, count)
    extents = extents_of(assignment, {name: one.shape for name, one in found.items()})
    kind = Float(32) if type is None else type
    return PlanFacts(extents=extents, tensors=found, itemsize=kind.bits // 8)


def facts_of_binding(binding: PlanBinding, assignment: Assignment) -> PlanFacts:
    """What the inputs of a plan say: what they store is counted."""
    found = {}
    for name, value in binding.values.items():
        if isinstance(value, SparseTensor):
            format = assignment.tensor(name).format
            found[name] = facts_of(value.shape, format, float(len(value.values)))
        else:
            order = order_in_memory(value)
            found[name] = TensorFacts(shape=value.shape, stored=value.size, order=order)
    return PlanFacts(extents=binding.extents, tensors=found, itemsize=binding.kind.itemsize)
