"""Plans as text: a line for each step, and below a call what was matched with what."""

from __future__ import annotations

from typing import assert_never

from t2s.capability.conditions import Answer
from t2s.capability.ir import ALWAYS, AllOf
from t2s.capability.printer import print_condition
from t2s.core.types import Type
from t2s.plan.ir import CallStep, CheckStep, ConvertStep, LoopsStep, MoveStep, PlanProgram, Step
from t2s.sparse_repr.notation.ir import print_assignment, print_expression


def print_plan(plan: PlanProgram) -> str:
    """All steps in order, and the guards that wait for a run."""
    lines = [print_assignment(plan.assignment)]
    for number, step in enumerate(plan.steps, 1):
        lines += [f"{number}. {print_step(step)}", *(f"   {line}" for line in _details(step))]
    return "\n".join(lines)


def print_step(step: Step) -> str:
    """A step on one line."""
    match step:
        case ConvertStep(target=target, source=source, format=format, why=why):
            return f"convert: {target} is {source} as {format}: {why}"
        case CheckStep(tensor=tensor, property=property):
            return f"check: {tensor} is {property}"
        case MoveStep(tensor=tensor, source=source, target=target, link=link):
            return f"move: {tensor} from {source.name} to {target.name} over {link.name}"
        case LoopsStep(assignment=assignment):
            return f"loops: {print_assignment(assignment)}"
        case CallStep(mapping=mapping, meaning=meaning):
            hardware = mapping.function.hardware
            kind = "call" if hardware is None else hardware.kind.value
            where = "" if hardware is None else f" on {hardware.device}"
            what = f"{print_expression(meaning.result)} = {print_expression(meaning.value)}"
            return f"{kind}: {mapping.function.name}{where} computes {what}"
        case _:
            assert_never(step)


def _details(step: Step) -> list[str]:
    if not isinstance(step, CallStep):
        return []
    mapping = step.mapping
    lines = list(mapping.proof)
    lines += [
        f"{one.name} is transposed: by steps if the function takes them, else a copy"
        for one in mapping.transposed
    ]
    types: tuple[Type, ...] = mapping.function.capability.types
    if types:
        lines.append(f"of {' or '.join(map(str, types))}")
    library = mapping.function.library
    if library is not None and library.threaded:
        lines.append("by one thread, if the run asks for no more")
    if mapping.condition not in (ALWAYS, AllOf(parts=())):
        lines.append(_guard(step))
    return lines


def _guard(step: CallStep) -> str:
    """What is known of the condition, and what a run does about it."""
    if step.proof.answer is Answer.TRUE:
        return f"proved: {step.proof.text}"
    text = f"guard: {print_condition(step.mapping.condition)}"
    otherwise = []
    if step.tiles:
        otherwise.append("tiles, padded if need be" if step.pads else "tiles")
    otherwise.append("loops" if step.falls_back else "an error")
    return f"{text}, else {', else '.join(otherwise)} ({step.proof.text})"
