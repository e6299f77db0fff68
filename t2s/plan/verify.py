"""What holds of every plan: each tensor is written once, before it is read, in a known format.

It is read where it is: in the memory of the host, or in that of a device, where it was moved to.
"""

from __future__ import annotations

from t2s.capability.hardware import HOST, MemoryOf
from t2s.core.errors import InternalError
from t2s.plan.ir import CallStep, MoveStep, PlanProgram, Step, sources_of, target_of
from t2s.sparse_repr.notation.ir import accesses


def verify_plan(plan: PlanProgram) -> None:
    """Raise ``InternalError`` for a plan that cannot be run."""
    known = {access.tensor for access in accesses(plan.assignment.value)}
    formats = dict(plan.tensors)
    places = {name: {HOST} for name in known}
    for step in plan.steps:
        for name in sources_of(step):
            if name not in known:
                raise InternalError(f"a step reads {name}, which nothing has written")
            if name not in formats:
                raise InternalError(f"{name} has no format")
            if memory_of(step) not in places[name]:
                raise InternalError(f"{name} is not in the memory of the {memory_of(step).name}")
        if isinstance(step, MoveStep):
            places[step.tensor].add(step.target)
        target = target_of(step)
        if target is None:
            continue
        if target in known and target != plan.assignment.result.tensor:
            raise InternalError(f"{target} is written twice")
        known.add(target)
        places[target] = {memory_of(step)}
        if isinstance(step, CallStep):
            _check_call(step)
    if plan.result not in known:
        raise InternalError(f"no step writes {plan.result}")
    if HOST not in places[plan.result]:
        raise InternalError(f"{plan.result} is not in the memory of the host")


def memory_of(step: Step) -> MemoryOf:
    """The memory that a step reads from; it writes into the same one, unless it moves a tensor."""
    match step:
        case MoveStep(source=source):
            return source
        case CallStep(mapping=mapping) if mapping.function.hardware is not None:
            return mapping.function.hardware.memory
    return HOST


def _check_call(step: CallStep) -> None:
    """The operands are those of the mapping, and the result has its variables."""
    names = tuple(name for name, _ in step.reads)
    if names != tuple(one.name for one in step.mapping.operands):
        raise InternalError(f"the operands of {step.mapping.function.name} are not those mapped")
    if step.meaning.result.variables != step.mapping.variables:
        raise InternalError(f"{step.target} is not stored as {step.mapping.function.name} gives it")
