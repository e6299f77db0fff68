"""Reasons that are told last: conditions on lists alone, dense operands, several at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from t2s.capability.conditions import Answer, holds, mode_name, names_of
from t2s.capability.description import ExternalFunction
from t2s.capability.ir import ALWAYS
from t2s.capability.mapping import Mapping as PartMapping
from t2s.capability.mapping import OperandView
from t2s.capability.normal import PartForm
from t2s.capability.printer import print_condition
from t2s.capability.reshape import EVERYTHING, Reshape
from t2s.capability.slices import fits
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import print_expression


class RefusedPart(Protocol):
    """What rules know of a part that is refused; ``refusals.py`` has it."""

    @property
    def part(self) -> PartForm:
        """The part in normal form."""

    @property
    def function(self) -> ExternalFunction:
        """The function that is to compute it."""

    @property
    def reshape(self) -> Reshape:
        """What may be done to it."""

    @property
    def location(self) -> SourceLocation | None:
        """The line of the user."""

    @property
    def text(self) -> str:
        """The part, as it is written."""

    @property
    def claim(self) -> str:
        """The statement of the function."""

    def first(self, function: ExternalFunction | None = None, **changes: Any) -> PartMapping | None:
        """The first mapping by a function, with these changes of what may be done."""


def order_refused(one: RefusedPart) -> UserError | None:
    """Matched, if it were not for a condition on lists alone: their orders and positions."""
    function = one.function
    bare = replace(function, capability=replace(function.capability, condition=ALWAYS))
    found = one.first(bare)
    if found is None:
        return None
    shown = [f"{name} is ({','.join(map(mode_name, modes))})" for name, modes in found.lists]
    return UserError(
        f"{one.text} has other variables than {function.name} is for",
        location=one.location,
        expected=print_condition(function.capability.condition),
        given=", ".join(shown) or "no lists",
    )


def dense_refused(one: RefusedPart) -> UserError | None:
    """Matched, if a dense operand were stored as the function takes it."""
    function, part = one.function, one.part
    dense = {access.tensor for access in part.reads if part.dense(access.tensor)}
    found = one.first(_of_any_format(function), transpose=True, convert=True)
    if found is None:
        return None
    for view in found.tensors:
        formats = function.capability.needs_of(view.name).formats
        tensor = view.access.tensor
        if tensor not in dense or not formats or fits(part.formats[tensor], formats):
            continue
        letters, modes = formats[0].letters, formats[0].modes
        said = letters if modes == tuple(range(len(modes))) else str(formats[0])
        return UserError(
            f"{function.name} does not take {tensor} as it is stored",
            location=one.location,
            expected=f"{view.name} {' or '.join(map(str, formats))}",
            given=f"{tensor} as {part.formats[tensor]}",
            hint=f'Tensor("{tensor}", "{said}") stores it so, also what is given as an array',
        )
    return None


def several_refused(one: RefusedPart) -> UserError | None:
    """Matched, if several rules are relaxed at once: what each operand would be."""
    function = _without_properties(_of_any_format(one.function))
    bare = replace(function, capability=replace(function.capability, condition=ALWAYS))
    changes = {name: getattr(EVERYTHING, name) for name in EVERYTHING.__dataclass_fields__}
    found = one.first(bare, **{**changes, "densify": True})
    if found is None:
        return None
    reasons = [reason for view in found.tensors for reason in _differs(one, view)]
    if found.fixed:
        reasons.append(f"{', '.join(found.fixed)} would be fixed")
    if found.promoted:
        reasons.append(f"{', '.join(found.promoted)} would have extent 1")
    condition = one.function.capability.condition
    answer = holds(found.condition, {}) if not names_of(found.condition) else Answer.OPEN
    if condition != ALWAYS and answer is not Answer.TRUE:
        reasons.append(f"it is for {print_condition(condition)}")
    if not reasons:
        return None
    return UserError(
        f"{one.text} is not what {one.function.name} computes",
        location=one.location,
        expected=one.claim,
        given="; ".join(reasons),
        hint=None if one.reshape.tile else "map(...) does more than bind",
    )


def _differs(one: RefusedPart, view: OperandView) -> list[str]:
    """What stands between an operand and what the function takes."""
    needs = one.function.capability.needs_of(view.name)
    tensor = view.access.tensor
    stored, access = one.part.formats[tensor], print_expression(view.access)
    found = []
    if view.transposed:
        found.append(f"{view.name} would be {access}, transposed")
    if _misfits(one, tensor, needs.formats, stored):
        wanted = " or ".join(map(str, needs.formats)) or "dense"
        found.append(f"{view.name} is {wanted}, and {tensor} is stored as {stored}")
    lacks = [name for name in needs.properties if name not in one.part.properties.get(tensor, ())]
    return [*found, *(f"{view.name} is {name}, and {tensor} is not declared so" for name in lacks)]


def _misfits(one: RefusedPart, tensor: str, formats: tuple[Format, ...], stored: Format) -> bool:
    return not fits(stored, formats) if formats else not one.part.dense(tensor)


def _of_any_format(function: ExternalFunction) -> ExternalFunction:
    """The function, as if its operands were dense."""
    capability = function.capability
    result = capability.result.tensor
    needs = tuple(
        one if one.name == result else replace(one, formats=()) for one in capability.needs
    )
    return replace(function, capability=replace(capability, needs=needs), checker=None)


def _without_properties(function: ExternalFunction) -> ExternalFunction:
    capability = function.capability
    needs = tuple(replace(one, properties=()) for one in capability.needs)
    return replace(function, capability=replace(capability, needs=needs))
