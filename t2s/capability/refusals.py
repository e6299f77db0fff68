"""Why a part is not what a function computes: the first rule that fails, and what would help.

The rules of ``RULES`` are tried from what is nearly right to what is not.  Most of them relax one
requirement of the function or allow one more reshaping; if the part matches then, the requirement
is the reason, and the mapping that was found says which operand violates it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A part that a function does not compute as it was requested."""

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
        for distance, rule in enumerate(RULES):
            reason = rule(self)
            if reason is not None:
                return distance, reason
        return len(RULES), _other_structure(self)

    @property
    def text(self) -> str:
        """The part, as the user has written it."""
        value = self.part.value
        return print_expression(value.value if isinstance(value, Sum) else value)

    @property
    def claim(self) -> str:
        """The statement of the function."""
        return print_capability(replace(self.function.capability, condition=ALWAYS))

    def differs(
        self, given: str, hint: str | None = None, expected: str | None = None
    ) -> UserError:
        """The part is not what the function computes."""
        return UserError(
            f"{self.text} is not what {self.function.name} computes",
            location=self.location,
            expected=expected or self.claim,
            given=given,
            hint=hint,
        )

    def stored_otherwise(
        self, tensor: str, expected: str, hint: str, given: str | None = None
    ) -> UserError:
        """A tensor has a format that the function does not take."""
        return UserError(
            f"{self.function.name} does not take {tensor} as it is stored",
            location=self.location,
            expected=expected,
            given=given or f"{tensor} as {self.part.formats[tensor]}",
            hint=hint,
        )

    def mapping(
        self, function: ExternalFunction, changes: Mapping[str, bool]
    ) -> PartMapping | None:
        """The first mapping to a function under a changed reshaping, whatever the extents are."""
        free = replace(function, checker=None)
        reshape = replace(self.reshape, **changes)
        return next(mappings(self.part, free, reshape, {}, self.asked), None)


Rule = Callable[[Refusal], UserError | None]


def _relaxed(
    text: Callable[[Refusal, PartMapping], UserError | None],
    *changes: Mapping[str, bool],
    function: Callable[[ExternalFunction], ExternalFunction] = lambda function: function,
) -> Rule:
    """Explain by ``text`` a mapping that exists with a changed function or reshaping.

    ``changes`` are tried in turn; the text is ``None`` where the mapping shows nothing.
    """

    def rule(refusal: Refusal) -> UserError | None:
        for change in changes or ({},):
            mapping = refusal.mapping(function(refusal.function), change)
            error = None if mapping is None else text(refusal, mapping)
            if error is not None:
                return error
        return None

    return rule


def _without_condition(function: ExternalFunction) -> ExternalFunction:
    return replace(function, capability=replace(function.capability, condition=ALWAYS))


def _without_properties(function: ExternalFunction) -> ExternalFunction:
    needs = tuple(replace(need, properties=()) for need in function.capability.needs)
    return replace(function, capability=replace(function.capability, needs=needs))


def _of_any_format(function: ExternalFunction) -> ExternalFunction:
    """The function, as if its operands were dense; its result is stored as before."""
    capability = function.capability
    result = capability.result.tensor
    needs = tuple(
        need if need.name == result else replace(need, formats=()) for need in capability.needs
    )
    return replace(function, capability=replace(capability, needs=needs))


def _of_anything(function: ExternalFunction) -> ExternalFunction:
    return _without_condition(_without_properties(_of_any_format(function)))


def _semiring(refusal: Refusal) -> UserError | None:
    rings, ring = refusal.function.capability.semirings, refusal.part.semiring
    if ring in rings:
        return None
    known = "; ".join(f"{known.add.value}, {known.multiply.value}" for known in rings)
    return refusal.differs(
        f"the semiring {ring.add.value}, {ring.multiply.value}", expected=f"one of {known}"
    )


def _extents(refusal: Refusal, mapping: PartMapping) -> UserError:
    """The part matches as it is, so its extents are the reason."""
    if not accepted(replace(mapping, function=refusal.function)):
        return refusal.differs("a match that its checker refuses", expected="one that it accepts")
    condition = mapping.condition
    known = known_modes(condition, refusal.extents)
    tiles = None
    if len(known) == len(names_of(condition)):
        padded = {mode_name(mode) for mode in mapping.exact}
        whole = [mode_name(mode) for mode in mapping.whole]
        tiles = tiles_of(condition, known, whole=whole, may_pad=padded.__contains__)
    hint = None
    if tiles and not refusal.reshape.tile:
        hint = f"map(...) makes tiles: {'; '.join(map(tiles_text, tiles))}"
    elif tiles:
        hint = "pad=False forbids the tiles that would fit"
    shown = ", ".join(f"{name} is {extent}" for name, extent in known.items())
    return UserError(
        f"{refusal.function.name} does not support the extents of {refusal.text}",
        location=refusal.location,
        expected=print_condition(refusal.function.capability.condition),
        given=shown or "no extents",
        hint=hint,
    )


def _transposed(refusal: Refusal, mapping: PartMapping) -> UserError | None:
    view = next((operand for operand in mapping.operands if operand.transposed), None)
    if view is None:
        return None
    read = accesses(refusal.function.capability.value)
    operand = next(access for access in read if access.tensor == view.name)
    order = ",".join(mode_name(mode) for mode in view.modes)
    return refusal.differs(
        f"{print_expression(operand)} would be {view.access.tensor}({order}), and is "
        f"{print_expression(view.access)}",
        "map(...) may transpose: by steps if the function takes them, else by a copy",
    )


def _converted(refusal: Refusal, mapping: PartMapping) -> UserError | None:
    """Some operand would have to be stored in another format."""
    part = refusal.part
    for view in mapping.tensors:
        tensor, stored = view.access.tensor, part.formats[view.access.tensor]
        formats = refusal.function.capability.needs_of(view.name).formats
        if not _misfits(part, tensor, formats):
            continue
        fixed = fixed_modes(view.access, mapping.fixed)
        if fixed and formats and not part.dense(tensor):
            if sliced_format(stored, fixed) in formats:
                continue
            return _unsliced(refusal, view, formats, mapping.fixed)
        how = "map(...)" if formats else "map(..., densify=True)"
        return refusal.stored_otherwise(
            tensor,
            f"{view.name} {_either(formats)}",
            f"{how} converts it{_size(refusal, view.access, dense=not formats)}",
        )
    return None


def _unsliced(
    refusal: Refusal, view: OperandView, formats: tuple[Format, ...], fixed: Sequence[str]
) -> UserError:
    tensor = view.access.tensor
    names = ", ".join(name for name in fixed if name in view.access.variables)
    return refusal.stored_otherwise(
        tensor,
        f"slices of {tensor} that are {_either(formats)}, for {view.name}",
        "map(...) converts it, which is a step of the plan",
        f"{tensor} as {refusal.part.formats[tensor]} with {names} fixed, "
        "which is not an outer dense level",
    )


def _size(refusal: Refusal, access: Access, *, dense: bool) -> str:
    """How many elements a dense tensor has, if that is known."""
    if not dense:
        return ", which is a step of the plan"
    known = [refusal.extents[name] for name in access.variables if name in refusal.extents]
    if len(known) < len(access.variables):
        return f", to one value for each {','.join(access.variables)}"
    return f", to {prod(known)} values ({4 * prod(known)} bytes of float32)"


def _property(refusal: Refusal, mapping: PartMapping) -> UserError | None:
    for view in mapping.tensors:
        tensor = view.access.tensor
        for name in refusal.function.capability.needs_of(view.name).properties:
            if name not in refusal.part.properties.get(tensor, ()):
                return UserError(
                    f"{refusal.function.name} requires {view.name} to be {name}, "
                    f"and {tensor} is not declared {name}",
                    location=refusal.location,
                    expected=f'Tensor("{tensor}", ..., properties="{name}")',
                    given=f"{tensor} without properties",
                    hint="what is declared is checked on the values when the plan runs",
                )
    return None


def _sparse_result(refusal: Refusal) -> UserError | None:
    """One call makes all of a sparse result, so no variable can be fixed."""
    capability, fixed = refusal.function.capability, refusal.asked.fixed
    formats = capability.needs_of(capability.result.tensor).formats
    if not fixed or not formats or all(level.full for level in formats[0].levels):
        return None
    whole = replace(refusal, asked=replace(refusal.asked, fixed=()))
    if whole.mapping(refusal.function, {}) is None:
        return None
    return refusal.differs(
        f"calls for each {', '.join(fixed)}",
        "without fix, all of it is one call",
        expected=f"one call, which makes all of a sparse result ({formats[0]})",
    )


def _shared_sum(refusal: Refusal) -> UserError | None:
    """The function sums over a variable that factors outside of the part have too."""
    assignment, part = refusal.assignment, refusal.part
    shared = [name for name in part.free if name not in assignment.result.variables]
    terms = normal_form(refusal.function.capability.value, part.semiring)
    if not shared or not any(term.summed for term in terms):
        return None
    name, inside = shared[0], accesses(part.value)
    outside = [
        access
        for access in accesses(assignment.value)
        if name in access.variables and access not in inside
    ]
    if not outside:
        return None
    other, hint = print_expression(outside[0]), None
    partner = next((access for access in inside if name in access.variables), None)
    if partner is not None:
        hint = f"{other}*{print_expression(partner)} first, then its product with the rest is one"
    return UserError(
        f"the sum over {name} is not of {refusal.text} alone",
        location=refusal.location,
        expected=f"no other factor with {name}",
        given=other,
        hint=hint,
    )


def _unsummed(refusal: Refusal) -> UserError | None:
    """The function sums, and nothing is summed in the part."""
    summands = refusal.part.summands
    terms = normal_form(refusal.function.capability.value, refusal.part.semiring)
    if len(terms) != len(summands) or not all(term.summed for term in terms):
        return None
    if any(summand.summed for summand in summands):
        return None
    return refusal.differs(f"{refusal.text}, of which nothing is summed")


def _reshaped(refusal: Refusal, mapping: PartMapping) -> UserError:
    """The part matches with more reshapings than were requested."""
    steps = []
    if mapping.fixed and not refusal.asked.fixed:
        steps.append(f"fixes {', '.join(mapping.fixed)}")
    if mapping.promoted:
        steps.append(f"promotes to {', '.join(mapping.promoted)} of extent 1")
    if any(len(mode) > 1 for operand in mapping.operands for mode in operand.modes):
        steps.append("fuses modes")
    if mapping.transposed:
        names = dict.fromkeys(view.access.tensor for view in mapping.transposed)
        steps.append(f"transposes {', '.join(names)}")
    given = ", ".join(
        f"{view.name} would be {print_expression(view.access)}" for view in mapping.operands
    )
    return refusal.differs(given, f"map(...) {', '.join(steps)}" if steps else None)


def _list_order(refusal: Refusal, mapping: PartMapping) -> UserError:
    """A condition on lists alone fails: on their orders and positions, whatever extents are."""
    shown = [f"{name} is ({','.join(map(mode_name, modes))})" for name, modes in mapping.lists]
    return UserError(
        f"{refusal.function.name} does not support the variables of {refusal.text}",
        location=refusal.location,
        expected=print_condition(refusal.function.capability.condition),
        given=", ".join(shown) or "no lists",
    )


def _dense_operand(refusal: Refusal, mapping: PartMapping) -> UserError | None:
    """A dense operand would have to be stored as the function takes it."""
    part = refusal.part
    dense = {access.tensor for access in part.reads if part.dense(access.tensor)}
    for view in mapping.tensors:
        formats = refusal.function.capability.needs_of(view.name).formats
        tensor = view.access.tensor
        if tensor not in dense or not formats or not _misfits(part, tensor, formats):
            continue
        format = formats[0]
        in_order = format.modes == tuple(range(len(format.modes)))
        text = format.letters if in_order else str(format)
        return refusal.stored_otherwise(
            tensor,
            f"{view.name} {_either(formats)}",
            f'Tensor("{tensor}", "{text}") stores it so, also what is given as an array',
        )
    return None


def _several(refusal: Refusal, mapping: PartMapping) -> UserError | None:
    """Several rules fail at once: what stands between each operand and the function."""
    reasons = [reason for view in mapping.tensors for reason in _differences(refusal, view)]
    if mapping.fixed:
        reasons.append(f"{', '.join(mapping.fixed)} would be fixed")
    if mapping.promoted:
        reasons.append(f"{', '.join(mapping.promoted)} would have extent 1")
    condition = refusal.function.capability.condition
    unknown = names_of(mapping.condition)
    if condition != ALWAYS and (unknown or holds(mapping.condition, {}) is not Answer.TRUE):
        reasons.append(f"it is for {print_condition(condition)}")
    if not reasons:
        return None
    hint = None if refusal.reshape.tile else "map(...) does more than bind"
    return refusal.differs("; ".join(reasons), hint)


def _differences(refusal: Refusal, view: OperandView) -> list[str]:
    """What stands between an operand and what the function takes."""
    part, tensor = refusal.part, view.access.tensor
    needs = refusal.function.capability.needs_of(view.name)
    reasons = []
    if view.transposed:
        reasons.append(f"{view.name} would be {print_expression(view.access)}, transposed")
    if _misfits(part, tensor, needs.formats):
        expected = _either(needs.formats)
        reasons.append(
            f"{view.name} is {expected}, and {tensor} is stored as {part.formats[tensor]}"
        )
    missing = [name for name in needs.properties if name not in part.properties.get(tensor, ())]
    reasons += [f"{view.name} is {name}, and {tensor} is not declared so" for name in missing]
    return reasons


def _misfits(part: PartForm, tensor: str, formats: tuple[Format, ...]) -> bool:
    return not fits(part.formats[tensor], formats) if formats else not part.dense(tensor)


def _either(formats: tuple[Format, ...]) -> str:
    return " or ".join(map(str, formats)) or "dense"


def _other_structure(refusal: Refusal) -> UserError:
    """Nothing that is relaxed helps: other operators, or other sums."""
    terms = normal_form(refusal.function.capability.value, refusal.part.semiring)
    summands = refusal.part.summands
    if len(summands) == 1 != len(terms):
        return refusal.differs(_product(summands[0]))
    if len(terms) != len(summands):
        return refusal.differs(f"a sum of {_count(len(summands), 'term')}")
    for term, summand in zip(terms, summands, strict=True):
        if len(term.factors) != len(summand.factors):
            return refusal.differs(_product(summand))
        if term.coefficient != summand.coefficient:
            return refusal.differs(f"a term with the coefficient {summand.coefficient}")
        if summand.summed and not term.summed:
            return refusal.differs(f"{refusal.text}, summed over {', '.join(summand.summed)}")
    read = ", ".join(dict.fromkeys(map(print_expression, refusal.part.reads)))
    sums = ", ".join(dict.fromkeys(name for summand in summands for name in summand.summed))
    return refusal.differs(f"{read}, summed over {sums or 'nothing'}")


RULES: tuple[Rule, ...] = (
    _semiring,
    _relaxed(_extents),
    _relaxed(_transposed, {"transpose": True}),
    _relaxed(
        _converted,
        {"convert": True, "densify": False},
        {"convert": False, "densify": True},
        {"convert": True, "densify": True},
    ),
    _relaxed(_property, function=_without_properties),
    _sparse_result,
    _shared_sum,
    _unsummed,
    _relaxed(
        _reshaped,
        {name: on for name, on in asdict(EVERYTHING).items() if name not in ("densify", "pad")},
    ),
    _relaxed(_list_order, function=_without_condition),
    _relaxed(_dense_operand, {"transpose": True, "convert": True}, function=_of_any_format),
    _relaxed(_several, {**asdict(EVERYTHING), "densify": True}, function=_of_anything),
)
"""From what is nearly right to what is not."""


def _product(term: Summand) -> str:
    factors = _count(len(term.factors), "factor")
    return f"a product of {factors}" if term.factors else f"the number {term.coefficient}"


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
    return UserError(
        f"{function.name} does not compute {print_expression(bare)} in {type}",
        location=location,
        expected=" or ".join(map(str, types)),
        given=str(type),
        hint=f"plan.run(inputs, type={shown}) computes in that type",
    )
