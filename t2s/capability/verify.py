"""What no capability may be: each is refused where the function is made, with the user's line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from t2s.capability.conditions import Answer, holds, instantiated, names_of, numbers_of
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
)
from t2s.capability.parts import terms_of
from t2s.capability.printer import print_capability, print_condition
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
"""Shapes that are tried before the solver is asked whether there is any."""

LONGEST_LIST = 12
"""Numbers up to which a condition may ask for the length of a list."""


ANY_TYPE = (Float(64), Float(32))
"""Types in which a claim that names none is tried."""


def verify_capability(capability: Capability) -> None:
    """Raise ``UserError`` for a capability that means nothing, or that no shape satisfies."""
    _check_result(capability)
    _check_orders(capability)
    _check_names(capability)
    _check_tensors(capability)
    _check_condition(capability)
    for ring in capability.semirings:
        types_over(capability, ring)


def _error(capability: Capability, message: str, expected: str, given: str = "") -> UserError:
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
            raise _error(
                capability,
                f"the result {result.tensor} has {name} twice",
                "different variables, so that every element of the result is defined",
            )
        if name not in variables_of(capability.value):
            raise _error(
                capability,
                f"nothing says how far {name} goes: only the result has it",
                "variables and lists of the result that operands have too",
            )
        if name not in free_variables(capability.value):
            raise _error(
                capability,
                f"{name} is summed over, and the result has it",
                "a sum over variables that the result does not have",
            )
    top = {id(one) for _, one in terms_of(capability.value)}
    for term in walk(capability.value):
        if isinstance(term, Sum):
            _check_own_variables(capability, term, top)
            for name in term.variables:
                if name not in free_variables(term.value):
                    raise _error(
                        capability,
                        f"nothing in the sum over {name} has it",
                        "sums over variables and lists that they have",
                    )


def _check_own_variables(capability: Capability, one: Sum, top: set[int]) -> None:
    """The variables of a sum are its own; only the terms of a sum may share the names of theirs."""
    inside = accesses(one)
    others = [other for _, other in terms_of(capability.value) if other is not one]
    if id(one) in top:
        rest = [name for other in others for name in free_variables(other)]
    else:
        every = [name for access in accesses(capability.value) for name in access.variables]
        rest = list(every)
        for access in inside:
            for name in access.variables:
                rest.remove(name)
    nested = [
        name for below in walk(one.value) if isinstance(below, Sum) for name in below.variables
    ]
    for name in one.variables:
        if name in rest or name in nested:
            raise _error(
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
            raise _error(
                capability,
                f"{access.tensor} has two orders",
                "the same number of variables and lists wherever a tensor is",
            )
    result = capability.result
    stored = capability.needs_of(result.tensor).formats
    if stored and capability.accumulates:
        raise _error(
            capability,
            f"{result.tensor} is added to, and is stored as {stored[0]}",
            "= in place of +=: what a function stores it returns",
        )
    if capability.overwritten is not None:
        for access in accesses(capability.value):
            if access.tensor == result.tensor and access.variables != result.variables:
                raise _error(
                    capability,
                    f"{result.tensor} is overwritten, and read at other places",
                    f"{result.tensor} at {','.join(result.variables) or 'no variables'} only",
                )
    if capability.overwritten is not None and capability.accumulates:
        raise _error(
            capability,
            f"{result.tensor} is added to, and stands on the right as well",
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
            raise _error(
                capability,
                f"the condition asks about {name}, which the statement does not have",
                f"one of {', '.join(sorted(variables)) or 'no names'}",
                print_condition(capability.condition),
            )
    for term in walk(capability.condition):
        if not isinstance(term, Calculated):
            continue
        if term.operator in (Op.DIVIDE, Op.MODULO) and term.right == WholeNumber(value=0):
            raise _error(
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
    """What is said of tensors is said of those of the statement, and of their order."""
    known = {access.tensor: access for access in (capability.result, *accesses(capability.value))}
    for needs in capability.needs:
        access = known.get(needs.name)
        if access is None:
            raise _error(
                capability,
                f"something is said of {needs.name}, which the statement does not have",
                f"one of {', '.join(known)}",
            )
        lists = any(name in capability.lists for name in access.variables)
        for format in needs.formats:
            if lists or format.order != len(access.variables):
                raise _error(
                    capability,
                    f"the format {format} does not fit {needs.name}",
                    "a format of an order that the statement says"
                    if lists
                    else f"a format of order {len(access.variables)}",
                )
        matrix = needs.strides in (Strides.ONE_IS_1, Strides.COLUMNS)
        if matrix and (lists or len(access.variables) != 2):
            raise _error(
                capability,
                f"the steps of {needs.name} are those of a matrix",
                "a tensor of order 2, or steps that are any, steps, rows or dense",
            )


def _check_condition(capability: Capability) -> None:
    """Some shape satisfies the condition: one that is found, or one that the solver knows."""
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
        known = _pinned(condition)  # then the only shape has been tried
        answers.append(Answer.FALSE if known else Solver().satisfiable(condition))
        if answers[-1] is Answer.TRUE:
            return
    if all(answer is Answer.FALSE for answer in answers):
        raise _error(
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
    """Whether the condition says of every extent what it is."""
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
    """Whether one of the shapes that the numbers of the condition suggest satisfies it."""
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
    """The types of a capability in which its statement can be computed over a semiring.

    Raises ``UserError`` if there is none: the reason why the first one does not do.
    """
    statement = Assignment(
        result=capability.result,
        value=capability.value,
        tensors=(),
        semiring=ring,
        location=capability.location,
    )
    found, refused = [], None
    for type in capability.types or ANY_TYPE:
        try:
            check_type(statement, type)
        except UserError as error:
            refused = refused or error
        else:
            found.append(type)
    if refused is not None and not found:
        raise refused
    return tuple(found)
