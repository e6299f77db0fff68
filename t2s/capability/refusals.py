"""Why a part is not what a function computes: the first rule that fails, and what would help.

One rule after the other is relaxed; if the part then matches, that rule is the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from t2s.capability.conditions import Answer, holds, mode_name, names_of
from t2s.capability.description import ExternalFunction
from t2s.capability.ir import ALWAYS, print_capability, print_condition
from t2s.capability.mapping import Mapping as PartMapping
from t2s.capability.mapping import OperandView
from t2s.capability.operands import fits, fixed_modes, sliced_format
from t2s.capability.parts import PartForm, Summand, normal_form
from t2s.capability.reshape import (
    EVERYTHING,
    Reshape,
    ReshapeRequest,
    accepted,
    known_modes,
    mappings,
)
from t2s.capability.tiles import TileOf, tiles_of
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.types import Type
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Expression,
    Sum,
    accesses,
    print_expression,
)

# Reasons that are told last: conditions on lists alone, dense operands, several at once.


def order_refused(one: Refusal) -> UserError | None:
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


def dense_refused(one: Refusal) -> UserError | None:
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


def several_refused(one: Refusal) -> UserError | None:
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


def _differs(one: Refusal, view: OperandView) -> list[str]:
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


def _misfits(one: Refusal, tensor: str, formats: tuple[Format, ...], stored: Format) -> bool:
    return not fits(stored, formats) if formats else not one.part.dense(tensor)


def _of_any_format(function: ExternalFunction) -> ExternalFunction:
    """The function, as if its operands were dense."""
    capability = function.capability
    result = capability.result.tensor
    needs = tuple(
        need if need.name == result else replace(need, formats=()) for need in capability.needs
    )
    return replace(function, capability=replace(capability, needs=needs), checker=None)


def _without_properties(function: ExternalFunction) -> ExternalFunction:
    capability = function.capability
    needs = tuple(replace(need, properties=()) for need in capability.needs)
    return replace(function, capability=replace(capability, needs=needs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A part that a function does not compute as it was asked for."""

    assignment: Assignment
    part: PartForm
    function: ExternalFunction
    reshape: Reshape
    asked: ReshapeRequest
    extents: Mapping[str, int]
    location: SourceLocation | None

    def error(self) -> UserError:
        """The reason, with the user's line."""
        return self.ranked()[1]

    def ranked(self) -> tuple[int, UserError]:
        """The reason, and how far the part is from what the function computes, from 0."""
        for distance, rule in enumerate(_RULES):
            reason = rule(self)
            if reason is not None:
                return distance, reason
        return len(_RULES), self._structure()

    @property
    def text(self) -> str:
        """The part, as the user has written it."""
        value = self.part.value
        return print_expression(value.value if isinstance(value, Sum) else value)

    @property
    def claim(self) -> str:
        """The statement of the function."""
        return print_capability(replace(self.function.capability, condition=ALWAYS))

    def _error(self, given: str, hint: str | None = None, expected: str | None = None) -> UserError:
        return UserError(
            f"{self.text} is not what {self.function.name} computes",
            location=self.location,
            expected=expected or self.claim,
            given=given,
            hint=hint,
        )

    def first(
        self, function: ExternalFunction | None = None, **changes: bool
    ) -> PartMapping | None:
        """The first mapping under a reshaping with these changes, whatever the extents are."""
        free = replace(function or self.function, checker=None)
        found = mappings(self.part, free, replace(self.reshape, **changes), {}, self.asked)
        return next(found, None)

    def _semiring(self) -> UserError | None:
        rings = self.function.capability.semirings
        ring = self.part.semiring
        if ring in rings:
            return None
        return self._error(
            f"the semiring {ring.add.value}, {ring.multiply.value}",
            expected="one of "
            + "; ".join(f"{one.add.value}, {one.multiply.value}" for one in rings),
        )

    def _condition(self) -> UserError | None:
        """Matched, and refused because of the extents."""
        found = self.first()
        if found is None:
            return None
        condition = found.condition
        known = known_modes(condition, self.extents)
        if not accepted(replace(found, function=self.function)):
            return self._error("a match that its checker refuses", expected="one that it accepts")
        shown = ", ".join(f"{name} is {extent}" for name, extent in known.items())
        original = print_condition(self.function.capability.condition)
        tiles = None
        if len(known) == len(names_of(condition)):
            padded = {mode_name(mode) for mode in found.exact}
            tiles = tiles_of(
                condition,
                known,
                whole=[mode_name(mode) for mode in found.whole],
                may_pad=padded.__contains__,
            )
        hint = None
        if tiles and not self.reshape.tile:
            hint = f"map(...) makes tiles: {'; '.join(map(tiles_text, tiles))}"
        elif tiles:
            hint = "pad=False forbids the tiles that there are"
        return UserError(
            f"the extents of {self.text} are not those that {self.function.name} is for",
            location=self.location,
            expected=original,
            given=shown or "no extents",
            hint=hint,
        )

    def _order(self) -> UserError | None:
        """Matches if operands are transposed."""
        found = None if self.reshape.transpose else self.first(transpose=True)
        if found is None:
            return None
        one = next((operand for operand in found.operands if operand.transposed), None)
        if one is None:
            return None
        wanted = next(
            access
            for access in accesses(self.function.capability.value)
            if access.tensor == one.name
        )
        seen = ",".join(mode_name(mode) for mode in one.modes)
        return self._error(
            f"{print_expression(wanted)} would be {one.access.tensor}({seen}), and is "
            f"{print_expression(one.access)}",
            "map(...) may transpose: by steps if the function takes them, else by a copy",
        )

    def _format(self) -> UserError | None:
        for convert, densify in ((True, False), (False, True), (True, True)):
            found = self.first(convert=convert, densify=densify)
            if found is None:
                continue
            for tensor in found.tensors:
                stored = self.part.formats[tensor.access.tensor]
                formats = self.function.capability.needs_of(tensor.name).formats
                if fits(stored, formats) or (not formats and self.part.dense(tensor.access.tensor)):
                    continue
                fixed = fixed_modes(tensor.access, found.fixed)
                if fixed and formats and not self.part.dense(tensor.access.tensor):
                    if sliced_format(stored, fixed) in formats:
                        continue
                    return self._unsliced(tensor, formats, found.fixed)
                wanted = " or ".join(map(str, formats)) or "dense"
                how = "map(..., densify=True)" if not formats else "map(...)"
                return UserError(
                    f"{self.function.name} does not take {tensor.access.tensor} as it is stored",
                    location=self.location,
                    expected=f"{tensor.name} {wanted}",
                    given=f"{tensor.access.tensor} as {stored}",
                    hint=f"{how} converts it{self._size(tensor.access, dense=not formats)}",
                )
        return None

    def _unsliced(
        self, one: OperandView, formats: tuple[Format, ...], fixed: Sequence[str]
    ) -> UserError:
        tensor = one.access.tensor
        names = ", ".join(name for name in fixed if name in one.access.variables)
        wanted = " or ".join(map(str, formats))
        return UserError(
            f"{self.function.name} does not take {tensor} as it is stored",
            location=self.location,
            expected=f"slices of {tensor} that are {wanted}, for {one.name}",
            given=f"{tensor} as {self.part.formats[tensor]} with {names} fixed, "
            "which is not an outer dense level",
            hint="map(...) converts it, which is a step of the plan",
        )

    def _sparse_result(self) -> UserError | None:
        """A sparse result is made by one call, so no variables are fixed."""
        capability = self.function.capability
        formats = capability.needs_of(capability.result.tensor).formats
        if not self.asked.fixed or not formats or all(level.full for level in formats[0].levels):
            return None
        bare = replace(self, asked=replace(self.asked, fixed=()))
        if bare.first() is None:
            return None
        return self._error(
            f"calls for each {', '.join(self.asked.fixed)}",
            "without fix, all of it is one call",
            expected=f"one call, which makes all of a sparse result ({formats[0]})",
        )

    def _size(self, access: Access, *, dense: bool) -> str:
        """How many elements a dense tensor has, if that is known."""
        if not dense:
            return ", which is a step of the plan"
        known = [self.extents.get(name) for name in access.variables]
        if None in known:
            return f", to one value for each {','.join(access.variables)}"
        count = prod(one for one in known if one is not None)
        return f", to {count} values ({4 * count} bytes of float32)"

    def _property(self) -> UserError | None:
        needs = self.function.capability.needs
        bare = tuple(replace(need, properties=()) for need in needs)
        capability = replace(self.function.capability, needs=bare)
        found = self.first(replace(self.function, capability=capability))
        if found is None:
            return None
        for one in found.tensors:
            for name in self.function.capability.needs_of(one.name).properties:
                if name not in self.part.properties.get(one.access.tensor, ()):
                    tensor = one.access.tensor
                    return UserError(
                        f"{self.function.name} is for {name} {one.name}, "
                        f"and {tensor} is not declared {name}",
                        location=self.location,
                        expected=f'Tensor("{tensor}", ..., properties="{name}")',
                        given=f"{tensor} without properties",
                        hint="what is declared is checked on the values when the plan runs",
                    )
        return None

    def _reshaped(self) -> UserError | None:
        """Matches with more reshapings than were asked for."""
        everything = replace(EVERYTHING, densify=self.reshape.densify, pad=self.reshape.pad)
        free = replace(self.function, checker=None)
        found = next(mappings(self.part, free, everything, {}, self.asked), None)
        if found is None or self.reshape == everything:
            return None
        ways = []
        if found.fixed and not self.asked.fixed:
            ways.append(f"fixes {', '.join(found.fixed)}")
        if found.promoted:
            ways.append(f"promotes to {', '.join(found.promoted)} of extent 1")
        if any(len(mode) > 1 for operand in found.operands for mode in operand.modes):
            ways.append("fuses modes")
        if found.transposed:
            names = dict.fromkeys(one.access.tensor for one in found.transposed)
            ways.append(f"transposes {', '.join(names)}")
        given = ", ".join(
            f"{one.name} would be {print_expression(one.access)}" for one in found.operands
        )
        hint = f"map(...) {', '.join(ways)}" if ways else None
        return self._error(given, hint)

    def _outside(self) -> UserError | None:
        """A sum of the function that is not private to the part."""
        result = self.assignment.result.variables
        shared = [name for name in self.part.free if name not in result]
        wanted = normal_form(self.function.capability.value, self.part.semiring)
        sums = any(one.summed for one in wanted)
        if not shared or not sums:
            return None
        name = shared[0]
        inside = set(accesses(self.part.value))
        others = [
            access
            for access in accesses(self.assignment.value)
            if name in access.variables and access not in inside
        ]
        if not others:
            return None
        other = print_expression(others[0])
        partner = next(
            (access for access in accesses(self.part.value) if name in access.variables), None
        )
        hint = None
        if partner is not None:
            hint = (
                f"{other}*{print_expression(partner)} first, then its product with the rest is one"
            )
        return UserError(
            f"the sum over {name} is not of {self.text} alone",
            location=self.location,
            expected=f"no other factor with {name}",
            given=other,
            hint=hint,
        )

    def _unsummed(self) -> UserError | None:
        """The function sums, and nothing is summed in the part."""
        wanted = normal_form(self.function.capability.value, self.part.semiring)
        alike = len(wanted) == len(self.part.summands)
        sums = all(one.summed for one in wanted)
        if not alike or not sums or any(summand.summed for summand in self.part.summands):
            return None
        return self._error(f"{self.text}, of which nothing is summed")

    def _structure(self) -> UserError:
        """Nothing relaxed helps: other operators, or other sums."""
        wanted = normal_form(self.function.capability.value, self.part.semiring)
        given = self.part.summands
        if len(given) == 1 != len(wanted):
            return self._error(_product(given[0]))
        if len(wanted) != len(given):
            return self._error(f"a sum of {_count(len(given), 'term')}")
        for one, other in zip(wanted, given, strict=True):
            if len(one.factors) != len(other.factors):
                return self._error(_product(other))
            if one.coefficient != other.coefficient:
                return self._error(f"a term with the coefficient {other.coefficient}")
            if other.summed and not one.summed:
                return self._error(f"{self.text}, summed over {', '.join(other.summed)}")
        shown = ", ".join(dict.fromkeys(map(print_expression, self.part.reads)))
        return self._error(f"{shown}, summed over {self._sums() or 'nothing'}")

    def _sums(self) -> str:
        return ", ".join(dict.fromkeys(name for one in self.part.summands for name in one.summed))


_RULES: tuple[Callable[[Refusal], UserError | None], ...] = (
    *(Refusal._semiring, Refusal._condition, Refusal._order, Refusal._format, Refusal._property),
    *(Refusal._sparse_result, Refusal._outside, Refusal._unsummed, Refusal._reshaped),
    *(order_refused, dense_refused, several_refused),
)
"""From what is nearly right to what is not."""


def _product(one: Summand) -> str:
    factors = _count(len(one.factors), "factor")
    return f"a product of {factors}" if one.factors else f"the number {one.coefficient}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' if number != 1 else ''}"


def tiles_text(tile: TileOf) -> str:
    """``i by 8, and 2 padded to 8``."""
    rest = tile.extent % tile.size
    whole = tile.extent // tile.size
    parts = [f"{tile.mode} by {tile.size}"] if whole else []
    if rest:
        start = "and " if whole else f"{tile.mode}: "
        padded = f" padded to {tile.size}" if tile.padded else ""
        parts.append(f"{start}{rest}{padded}")
    return ", ".join(parts)


def wrong_type(
    value: Expression, function: ExternalFunction, type: Type, location: SourceLocation | None
) -> UserError:
    """The error for values of a type that a function does not compute."""
    bare = value.value if isinstance(value, Sum) else value
    types = function.capability.types
    shown = f"t2s.{types[0].kind.name.title()}({types[0].bits})"
    hint = f"plan.run(inputs, type={shown}) computes in that type"
    return UserError(
        f"{function.name} does not compute {print_expression(bare)} in {type}",
        location=location,
        expected=" or ".join(map(str, types)),
        given=str(type),
        hint=hint,
    )
