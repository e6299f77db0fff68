"""Checks of capabilities and of descriptions of calls when a function is declared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, get_args

from t2s.capability.conditions import Answer, holds, instantiated, names_of, numbers_of
from t2s.capability.description import (
    AddressOf,
    ArrayOfLevelOf,
    BytesOf,
    CallLetter,
    CallNumber,
    CallTerm,
    DimensionOf,
    ExternalCall,
    ExternalFunction,
    ForSemiring,
    ForType,
    LabelsOf,
    LayoutOf,
    LeadOf,
    LibraryOf,
    OrderOf,
    ReturnedStatus,
    StepOf,
    StepsOf,
    StoredResult,
    StructOf,
)
from t2s.capability.ir import (
    AllOf,
    Calculated,
    Capability,
    Compared,
    Condition,
    ListExtent,
    ListOrder,
    ListProduct,
    PositionIn,
    Quantified,
    Strides,
    VariableExtent,
    WholeNumber,
    print_capability,
    print_condition,
)
from t2s.capability.operands import is_dense
from t2s.capability.parts import terms_of
from t2s.capability.solver import Solver
from t2s.core.errors import UserError
from t2s.core.ops import Op
from t2s.core.types import Float, Type
from t2s.core.walk import Term, children, walk
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Sum,
    accesses,
    free_variables,
    variables_of,
)
from t2s.sparse_repr.notation.types import check_type
from t2s.sparse_repr.semiring import Semiring

MOST_SHAPES = 20_000
"""At most this many shapes are tried before the solver is started."""

LONGEST_LIST = 12
"""Lists of up to this length are tried, if the condition has such a number."""


ANY_TYPE = (Float(64), Float(32))
"""Types in which a claim without types is tested."""


def verify_capability(capability: Capability) -> None:
    """Raise ``UserError`` for an invalid capability, or one that no shape satisfies."""
    _check_result(capability)
    _check_orders(capability)
    _check_names(capability)
    _check_tensors(capability)
    _check_condition(capability)
    for ring in capability.semirings:
        types_over(capability, ring)


def _capability_error(
    capability: Capability, message: str, expected: str, given: str = ""
) -> UserError:
    return UserError(
        message,
        location=capability.location,
        expected=expected,
        given=given or print_capability(capability),
    )


def _check_result(capability: Capability) -> None:
    result = capability.result
    for name in result.variables:
        if result.variables.count(name) > 1:
            raise _capability_error(
                capability,
                f"the result {result.tensor} has {name} twice",
                "different variables, so that every element of the result is defined",
            )
        if name not in variables_of(capability.value):
            raise _capability_error(
                capability,
                f"the extent of {name} is unknown: only the result has it",
                "variables and lists of the result that operands have too",
            )
        if name not in free_variables(capability.value):
            raise _capability_error(
                capability,
                f"{name} is summed over, and the result has it",
                "a sum over variables that the result does not have",
            )
    top = {id(term_value) for _, term_value in terms_of(capability.value)}
    for term in walk(capability.value):
        if isinstance(term, Sum):
            _check_own_variables(capability, term, top)
            for name in term.variables:
                if name not in free_variables(term.value):
                    raise _capability_error(
                        capability,
                        f"the sum over {name} has no operand with {name}",
                        "sums over variables and lists that they have",
                    )


def _check_own_variables(capability: Capability, total: Sum, top: set[int]) -> None:
    """Summed variables must not occur outside of their sum; other terms may reuse the name."""
    inside = accesses(total)
    others = [other for _, other in terms_of(capability.value) if other is not total]
    if id(total) in top:
        rest = [name for other in others for name in free_variables(other)]
    else:
        every = [name for access in accesses(capability.value) for name in access.variables]
        rest = list(every)
        for access in inside:
            for name in access.variables:
                rest.remove(name)
    nested = [
        name for below in walk(total.value) if isinstance(below, Sum) for name in below.variables
    ]
    for name in total.variables:
        if name in rest or name in nested:
            raise _capability_error(
                capability,
                f"{name} is summed over in one place, and means something else in another one",
                "a name of its own for each variable",
            )


def _check_orders(capability: Capability) -> None:
    seen: dict[str, Access] = {}
    for access in (capability.result, *accesses(capability.value)):
        first = seen.setdefault(access.tensor, access)
        shape = [name in capability.lists for name in first.variables]
        if shape != [name in capability.lists for name in access.variables]:
            raise _capability_error(
                capability,
                f"{access.tensor} occurs with two different orders",
                "the same number of variables and lists wherever a tensor is",
            )
    result = capability.result
    stored = capability.needs_of(result.tensor).formats
    if stored and capability.accumulates:
        raise _capability_error(
            capability,
            f"{result.tensor} is added to, and is stored as {stored[0]}",
            "= in place of +=: what a function stores it returns",
        )
    if capability.overwritten is not None:
        for access in accesses(capability.value):
            if access.tensor == result.tensor and access.variables != result.variables:
                raise _capability_error(
                    capability,
                    f"{result.tensor} is overwritten, and read at other places",
                    f"{result.tensor} at {','.join(result.variables) or 'no variables'} only",
                )
    if capability.overwritten is not None and capability.accumulates:
        raise _capability_error(
            capability,
            f"{result.tensor} is added to, and read on the right as well",
            "+= and the operands, or = and the result among them",
        )


def _check_names(capability: Capability) -> None:
    variables = {
        name
        for access in (capability.result, *accesses(capability.value))
        for name in access.variables
    }
    for name in _condition_names(capability.condition, frozenset()):
        if name not in variables:
            raise _capability_error(
                capability,
                f"the condition asks about {name}, which the statement does not have",
                f"one of {', '.join(sorted(variables)) or 'no names'}",
                print_condition(capability.condition),
            )
    for term in walk(capability.condition):
        if not isinstance(term, Calculated):
            continue
        if term.operator in (Op.DIVIDE, Op.MODULO) and term.right == WholeNumber(value=0):
            raise _capability_error(
                capability,
                "the condition divides by zero",
                "a divisor of 1 or more",
                print_condition(capability.condition),
            )


def _condition_names(term: Term, positions: frozenset[str]) -> Iterator[str]:
    match term:
        case VariableExtent(variable=name):
            yield name
        case ListExtent(of=name) | ListOrder(of=name) | ListProduct(of=name):
            yield name
        case Quantified(of=name):
            yield name
        case PositionIn(name=name) if name not in positions:
            yield from ()
    for child in children(term):
        yield from _condition_names(child, positions)


def _check_tensors(capability: Capability) -> None:
    """Requirements must be on tensors of the statement, and fit their order."""
    known = {access.tensor: access for access in (capability.result, *accesses(capability.value))}
    for needs in capability.needs:
        access = known.get(needs.name)
        if access is None:
            raise _capability_error(
                capability,
                f"{needs.name} has requirements, but is not in the statement",
                f"one of {', '.join(known)}",
            )
        lists = any(name in capability.lists for name in access.variables)
        for format in needs.formats:
            if lists or format.order != len(access.variables):
                raise _capability_error(
                    capability,
                    f"the format {format} does not fit {needs.name}",
                    "a format of an order that the statement says"
                    if lists
                    else f"a format of order {len(access.variables)}",
                )
        matrix = needs.strides in (Strides.ONE_IS_1, Strides.COLUMNS)
        if matrix and (lists or len(access.variables) != 2):
            raise _capability_error(
                capability,
                f"the steps of {needs.name} are those of a matrix",
                "a tensor of order 2, or steps that are any, steps, rows or dense",
            )


def _check_condition(capability: Capability) -> None:
    """Some shape must satisfy the condition: one that is tried, or one that the solver finds."""
    answers = []
    small = [number for number in numbers_of(capability.condition) if number <= LONGEST_LIST]
    longest = max(small, default=0) + 2
    for lengths in product(range(longest + 1), repeat=len(capability.lists)):
        images = {name: (name,) for name in _singles(capability)}
        lists = {
            name: tuple((f"{name}{number}",) for number in range(length))
            for name, length in zip(capability.lists, lengths, strict=True)
        }
        condition = instantiated(capability.condition, images, lists)
        if _some_shape(condition):
            return
        known = _pinned(condition)  # if all extents are fixed, the only shape has been tried
        answers.append(Answer.FALSE if known else Solver().satisfiable(condition))
        if answers[-1] is Answer.TRUE:
            return
    if all(answer is Answer.FALSE for answer in answers):
        raise _capability_error(
            capability,
            f"no shape satisfies {print_condition(capability.condition)}",
            "a condition that some extents satisfy",
        )


def _singles(capability: Capability) -> set[str]:
    names = {
        name
        for access in (capability.result, *accesses(capability.value))
        for name in access.variables
    }
    return names - set(capability.lists)


def _pinned(condition: Condition) -> bool:
    """Whether the condition fixes every extent to a number."""
    parts = condition.parts if isinstance(condition, AllOf) else (condition,)
    pinned = {
        part.left.variable
        for part in parts
        if isinstance(part, Compared)
        and part.operator is Op.EQUAL
        and isinstance(part.left, VariableExtent)
        and isinstance(part.right, WholeNumber)
    }
    return pinned >= set(names_of(condition))


def _some_shape(condition: Condition) -> bool:
    """Whether a shape made of the numbers in the condition and their neighbors satisfies it."""
    names = names_of(condition)
    numbers = [1, 2, 3]
    for number in numbers_of(condition):
        numbers += [number - 1, number, number + 1, 2 * number]
    sizes = list(dict.fromkeys(number for number in numbers if number >= 1))
    for tried, shape in enumerate(product(sizes, repeat=len(names))):
        if tried > MOST_SHAPES:
            return False
        extents = dict(zip(names, shape, strict=True))
        if holds(condition, extents) is Answer.TRUE:
            return True
    return False


def types_over(capability: Capability, ring: Semiring) -> tuple[Type, ...]:
    """The types in which the statement of a capability can be computed over a semiring.

    Raises ``UserError`` if there is none, with the reason for the first one.
    """
    statement = Assignment(
        result=capability.result,
        value=capability.value,
        tensors=(),
        semiring=ring,
        location=capability.location,
    )
    types, refused = [], None
    for type in capability.types or ANY_TYPE:
        try:
            check_type(statement, type)
        except UserError as error:
            refused = refused or error
        else:
            types.append(type)
    if refused is not None and not types:
        raise refused
    return tuple(types)


# Descriptions of calls: terms refer to tensors and variables of the statement, to modes and arrays
# that these have, and there is a term for every type and semiring.

TERMS = get_args(CallTerm)

PARTS = (
    ("call", ExternalCall, "external.call.ExternalCall(symbol=..., arguments=(...))"),
    ("library", LibraryOf, "external.call.LibraryOf(name=..., path=...)"),
    ("status", ReturnedStatus, "external.call.ReturnedStatus(good=(0,))"),
    ("stored", StoredResult, "external.call.StoredResult(pos=..., crd=..., values=..., index=...)"),
)


def verify_call(function: ExternalFunction) -> None:
    """Raise ``UserError`` for a description of a call that cannot be made."""
    for name, kind, expected in PARTS:
        value = getattr(function, name)
        if value is not None and not isinstance(value, kind):
            raise _error(function, f"the {name} has the wrong type", expected, repr(value)[:80])
    for name in ("setup", "unpack", "teardown"):
        for call in getattr(function, name):
            if not isinstance(call, ExternalCall):
                what = f"{name} has something that is not a call"
                raise _error(function, what, PARTS[0][2], repr(call)[:80])
    if function.call is None:
        return
    if function.library is None:
        raise _error(
            function,
            "its symbol has no library",
            'library=external.call.LibraryOf(name=..., path="..."), or files=... that are there',
            function.call.symbol,
        )
    if function.status is not None and function.call.returns is None:
        raise _error(
            function,
            "it checks a status that the call does not return",
            "returns=t2s.Int(32), or another integer, of the call",
            function.call.symbol,
        )
    result = function.capability.result.tensor
    formats = function.capability.needs_of(result).formats
    if bool(formats) != (function.stored is not None):
        raise _error(
            function,
            f"{result} is stored as {formats[0]}" if formats else f"{result} is dense",
            "stored=external.call.StoredResult(...), which says where its arrays are"
            if formats
            else f'formats={{"{result}": "ds"}} beside stored=',
        )
    described = _Described(function)
    for call in (*function.setup, function.call, *function.unpack, *function.teardown):
        described.check(call)
    if function.stored is not None:
        for term in (function.stored.pos, function.stored.crd, function.stored.values):
            described.check(term)


def _error(function: ExternalFunction, what: str, expected: str, given: str = "") -> UserError:
    return UserError(
        f"{function.name} cannot be called: {what}",
        location=function.location,
        expected=expected,
        given=given or print_capability(function.capability),
    )


@dataclass(frozen=True)
class _Described:
    """Checks the terms of a function's calls against its statement."""

    function: ExternalFunction

    @property
    def reads(self) -> dict[str, Access]:
        """An access of each tensor of the statement."""
        capability = self.function.capability
        return {
            access.tensor: access for access in (*accesses(capability.value), capability.result)
        }

    def check(self, term: Any) -> None:
        """Raise ``UserError`` for an invalid term, also among those below it."""
        if not isinstance(term, TERMS):
            expected = "terms such as external.call.DataOf and external.call.DimensionOf, or "
            expected += "external.call.CallNumber(value=..., type=...)"
            raise self._error("an argument is not a term of a call", expected, repr(term)[:80])
        if isinstance(term, CallLetter) and (len(term.letter) != 1 or not term.letter.isascii()):
            raise self._error(
                "a letter must be one character", "an ASCII character", repr(term.letter)
            )
        if isinstance(term, CallNumber) and not _is_number(term):
            raise self._error(
                "the value of a number has the wrong type",
                "an integer, or a float of a type of floats",
                f"CallNumber(value={term.value!r}, type={term.type})",
            )
        if isinstance(term, AddressOf) and isinstance(term.value, AddressOf | StructOf):
            raise self._error(
                "the address of an address cannot be passed",
                "the address of a number, a letter or an array",
                f"AddressOf(value={type(term.value).__name__}(...))",
            )
        if isinstance(term, DimensionOf | StepOf | LeadOf):
            self._check_integer(term)
        if isinstance(term, DimensionOf):
            self._check_variable(term)
        elif hasattr(term, "tensor"):
            self._check_tensor(term, term.tensor)
        elif isinstance(term, ForType):
            self._check_choice("type", [type for type, _ in term.terms], self._types())
        elif isinstance(term, ForSemiring):
            rings = self.function.capability.semirings
            self._check_choice("semiring", [ring for ring, _ in term.terms], rings)
        for subterm in _below(term):
            self.check(subterm)

    def _error(self, what: str, expected: str, given: str) -> UserError:
        return _error(self.function, what, expected, given)

    def _types(self) -> tuple[Any, ...]:
        capability = self.function.capability
        types = (type for ring in capability.semirings for type in types_over(capability, ring))
        return tuple(dict.fromkeys(types))

    def _check_choice(self, what: str, covered: list[Any], wanted: tuple[Any, ...]) -> None:
        missing = [choice for choice in wanted if choice not in covered]
        if missing:
            first_missing = missing[0]
            shown = (
                f"{first_missing.add.value}, {first_missing.multiply.value}"
                if what == "semiring"
                else str(first_missing)
            )
            raise self._error(
                f"it has no term for the {what} {shown}",
                f"a term for each {what} that the function computes",
                f"terms for {len(covered)} of {len(wanted)}",
            )

    def _check_integer(self, term: DimensionOf | StepOf | LeadOf) -> None:
        type = term.type
        if type is not None and not (isinstance(type, Type) and type.is_integer):
            raise self._error(
                "the type of an extent or a stride must be an integer type",
                "type=Int(32) for int, Int(64) for long and size_t; index= for all of them",
                f"{term.__class__.__name__}(type={type})",
            )

    def _check_variable(self, term: DimensionOf) -> None:
        lists = self.function.capability.lists
        names = dict.fromkeys(name for access in self.reads.values() for name in access.variables)
        if term.variable not in names or term.variable in lists:
            what = "is a list" if term.variable in lists else "is not in the statement"
            known = ", ".join(name for name in names if name not in lists)
            raise self._error(
                f"the extent of {term.variable}, which {what}, is asked for",
                f"one of {known}" if known else "external.call.ExtentsOf(tensor=...), of all modes",
                f"DimensionOf(variable={term.variable!r})",
            )

    def _check_tensor(self, term: Any, name: str) -> None:
        shown = f"{type(term).__name__}(tensor={name!r})"
        access = self.reads.get(name)
        if access is None:
            raise self._error(
                f"it uses {name}, which is not in the statement",
                f"one of {', '.join(self.reads)}",
                shown,
            )
        formats = self.function.capability.needs_of(name).formats
        stored = [format for format in formats if not is_dense(format)]
        if isinstance(term, ArrayOfLevelOf) or (isinstance(term, BytesOf) and term.array):
            self._check_array(term, formats)
        elif stored and isinstance(term, StepOf | StepsOf | LeadOf | LayoutOf | LabelsOf | OrderOf):
            raise self._error(
                f"{name} is stored as {stored[0]}, which has no steps",
                "external.call.ArrayOfLevelOf(tensor=..., level=..., array=...), and DataOf",
                shown,
            )
        lists = self.function.capability.lists
        order = None if set(access.variables) & set(lists) else len(access.variables)
        if isinstance(term, LeadOf | LayoutOf) and order != 2:
            raise self._error(
                f"{name} has no leading dimension: it is not a matrix", "a tensor of order 2", shown
            )
        if isinstance(term, StepOf) and order is not None and not 0 <= term.mode < order:
            raise self._error(
                f"{name} has no mode {term.mode}",
                f"a mode from 0 to {order - 1}" if order else "a tensor with modes",
                f"StepOf(tensor={name!r}, mode={term.mode})",
            )

    def _check_array(self, term: ArrayOfLevelOf | BytesOf, formats: tuple[Any, ...]) -> None:
        given = f"level={term.level}, array={term.array!r}"
        if not formats:
            raise self._error(
                f"{term.tensor} has no arrays of levels: it is dense",
                f'formats={{"{term.tensor}": "ds"}}, or another format, of the function',
                given,
            )
        for format in formats:
            exists = 0 <= term.level < len(format.levels)
            arrays = format.levels[term.level].array_names if exists else ()
            if term.array not in arrays:
                names = [
                    (at, name)
                    for at, level in enumerate(format.levels)
                    for name in level.array_names
                ]
                raise self._error(
                    f"{term.tensor} as {format} has no such array",
                    "; ".join(f"level={at}, array={name!r}" for at, name in names),
                    given,
                )


def _is_number(term: CallNumber) -> bool:
    kinds = int | float if term.type.is_float else int
    return isinstance(term.value, kinds)


def _below(term: Any) -> Iterator[Any]:
    """The direct subterms of a term."""
    match term:
        case ExternalCall(arguments=arguments):
            yield from arguments
        case StructOf(fields=fields):
            yield from fields
        case ForType(terms=pairs) | ForSemiring(terms=pairs):
            yield from (subterm for _, subterm in pairs)
        case _ if hasattr(term, "value") and isinstance(term.value, TERMS):
            yield term.value
