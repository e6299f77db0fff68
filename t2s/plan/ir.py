"""Plans: steps over tensors with formats, as data, as text, verified and interpreted.

``CallStep`` is a mapping of a part to a function, which may be simulated hardware; ``LoopsStep`` is
an assignment that compiled loops compute; ``ConvertStep`` stores a tensor in another format;
``MoveStep`` copies it into another memory; ``CheckStep`` checks a property of an input.  All but
checks write one tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

import numpy as np

from t2s.capability.conditions import Answer
from t2s.capability.description import HOST, HostLink, MemoryOf
from t2s.capability.ir import ALWAYS, AllOf, Condition, print_condition
from t2s.capability.mapping import Mapping as PartMapping
from t2s.capability.solver import Proof
from t2s.core.errors import InternalError
from t2s.core.location import SourceLocation
from t2s.core.types import Type
from t2s.core.walk import Term
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.evaluate import evaluate
from t2s.sparse_repr.notation.ir import (
    Assignment,
    TensorDeclaration,
    accesses,
    print_assignment,
    print_expression,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertStep(Term):
    """``target`` is ``source`` in another format, or with its modes in another order."""

    target: str
    source: str
    format: Format
    modes: tuple[int, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckStep(Term):
    """Check that the values of an input have a declared property."""

    tensor: str
    property: str
    location: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveStep(Term):
    """Copy a tensor over a link into another memory; the original stays valid."""

    tensor: str
    source: MemoryOf
    target: MemoryOf
    link: HostLink


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopsStep(Term):
    """An assignment that compiled loops compute."""

    assignment: Assignment


@dataclass(frozen=True, kw_only=True, eq=False)
class CallStep:
    """Calls of a function, given by a mapping.

    ``reads`` are the plan's tensors behind the operands; ``meaning`` is the statement that the
    calls compute, and, if ``falls_back``, the fallback for a condition that does not hold in a run.
    ``tiles`` and ``pads`` allow tiling and padding to satisfy a condition; ``proof`` is what is
    known about it before a run.
    """

    target: str
    mapping: PartMapping
    reads: tuple[tuple[str, str], ...]
    meaning: Assignment
    tiles: bool
    pads: bool
    falls_back: bool
    proof: Proof
    location: SourceLocation | None = None


Step = ConvertStep | CheckStep | MoveStep | LoopsStep | CallStep


@dataclass(frozen=True, kw_only=True, eq=False)
class PlanProgram:
    """A plan of an assignment.

    ``tensors`` are the formats of all inputs, workspaces and the result; ``facts`` are the user's
    assumptions on extents; ``result`` is the tensor that the last step writes.
    """

    assignment: Assignment
    steps: tuple[Step, ...]
    tensors: tuple[tuple[str, Format], ...]
    facts: tuple[tuple[Condition, SourceLocation], ...]
    result: str

    @property
    def calls(self) -> tuple[CallStep, ...]:
        """The steps that call functions."""
        return tuple(step for step in self.steps if isinstance(step, CallStep))

    def format_of(self, name: str) -> Format:
        """The format of a tensor; ``KeyError`` if there is none."""
        return dict(self.tensors)[name]


def target_of(step: Step) -> str | None:
    """The tensor that a step writes; ``None`` for a check."""
    match step:
        case CheckStep() | MoveStep():
            return None
        case LoopsStep(assignment=assignment):
            return assignment.result.tensor
        case _:
            return step.target


def sources_of(step: Step) -> tuple[str, ...]:
    """The tensors that a step reads."""
    match step:
        case CheckStep(tensor=name) | MoveStep(tensor=name) | ConvertStep(source=name):
            return (name,)
        case CallStep(reads=reads):
            return tuple(dict.fromkeys(name for _, name in reads))
        case LoopsStep(assignment=assignment):
            read = (access.tensor for access in accesses(assignment.value))
            return tuple(dict.fromkeys(read))
        case _:
            assert_never(step)


# Plans as text: a line for each step, and below a call the correspondence of its operands.


def print_plan(plan: PlanProgram) -> str:
    """All steps in order, with the guards that a run will evaluate."""
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
        f"{operand.name} is transposed: by steps if the function takes them, else a copy"
        for operand in mapping.transposed
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
    """The state of the condition, and what a run does if it does not hold."""
    if step.proof.answer is Answer.TRUE:
        return f"proved: {step.proof.text}"
    text = f"guard: {print_condition(step.mapping.condition)}"
    otherwise = []
    if step.tiles:
        otherwise.append("tiles, padded if need be" if step.pads else "tiles")
    otherwise.append("loops" if step.falls_back else "an error")
    return f"{text}, else {', else '.join(otherwise)} ({step.proof.text})"


# Invariants of plans: each tensor is written once, before it is read, in a known format, and is
# read in a memory that holds it.


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
    """The memory that a step reads from; all steps but moves write into the same one."""
    match step:
        case MoveStep(source=source):
            return source
        case CallStep(mapping=mapping) if mapping.function.hardware is not None:
            return mapping.function.hardware.memory
    return HOST


def _check_call(step: CallStep) -> None:
    """Check that the operands are those of the mapping, and that the result has its variables."""
    names = tuple(name for name, _ in step.reads)
    if names != tuple(operand.name for operand in step.mapping.operands):
        raise InternalError(f"the operands of {step.mapping.function.name} are not those mapped")
    if step.meaning.result.variables != step.mapping.variables:
        raise InternalError(f"{step.target} is not stored as {step.mapping.function.name} gives it")


# The meaning of a plan: each call replaced by the statement that it computes.
#
# This is the oracle for everything around the calls: conversions, workspaces, and their readers.

Array = np.ndarray[Any, Any]


def interpret_plan(
    plan: PlanProgram,
    inputs: Mapping[str, Array],
    extents: Mapping[str, int],
    kind: np.dtype[Any],
    stored: Mapping[str, Array] | None = None,
) -> Array:
    """The result for dense inputs; ``stored`` are masks of where sparse ones store values."""
    values, places = dict(inputs), dict(stored or {})
    result = plan.assignment.result.tensor
    computed: Array | None = None
    for step in plan.steps:
        match step:
            case CheckStep() | MoveStep():
                continue
            case ConvertStep(target=target, source=source, modes=modes):
                value = values[source].transpose(modes)
                if source in places:
                    places[target] = places[source].transpose(modes)
            case LoopsStep(assignment=assignment) | CallStep(meaning=assignment):
                target = assignment.result.tensor
                value = statement_value(assignment, values, extents, kind, places)
        if target == result:
            computed = value
        else:
            values[target] = value
    assert computed is not None
    return computed


def statement_value(
    assignment: Assignment,
    values: Mapping[str, Array],
    extents: Mapping[str, int],
    kind: np.dtype[Any],
    places: Mapping[str, Array],
) -> Array:
    """Evaluate a statement of a plan on dense values."""
    names = assignment.result.variables
    shape = tuple(extents[name] for name in names)
    read = {access.tensor: values[access.tensor] for access in accesses(assignment.value)}
    declared = tuple(
        TensorDeclaration(name=tensor.name, format=tensor.format, shape=shape)
        if tensor.name == assignment.result.tensor
        else tensor
        for tensor in assignment.tensors
    )
    return evaluate(replace(assignment, tensors=declared), read, kind, places)
