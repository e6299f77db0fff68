"""Declaring functions: a statement, requirements on its tensors, and how it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from t2s.capability.description import (
    ExternalCall,
    ExternalFunction,
    LibraryOf,
    ReturnedStatus,
    StoredResult,
)
from t2s.capability.ir import Capability, OperandNeeds, Strides, parse_capability
from t2s.capability.operands import is_dense
from t2s.capability.verify import verify_call, verify_capability
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.types import Type
from t2s.sparse_repr.formats import Format, as_format
from t2s.sparse_repr.notation.ir import Assignment, accesses
from t2s.sparse_repr.notation.symbols import Tensor, checked_properties
from t2s.sparse_repr.notation.types import TYPES
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring

Statement = str | Capability | Assignment | Tensor
"""What a function computes: a text, an assignment, or the tensor that an assignment defines."""


def make_capability(
    statement: Statement,
    *,
    types: str | Sequence[Type] = (),
    formats: Mapping[str, str | Format | Sequence[Format]] | None = None,
    strides: str | Strides | Mapping[str, str | Strides] = Strides.DENSE,
    properties: Mapping[str, str | tuple[str, ...]] | None = None,
    semirings: Sequence[Semiring] = (PLUS_TIMES,),
    location: SourceLocation | None = None,
) -> Capability:
    """A checked capability, from its text and the requirements on its tensors.

    Instead of a text, an assignment of Python gives a statement without lists, and its formats.
    ``types`` are names of types; ``formats`` the letters of formats, alternatives separated by
    ``|``; ``strides`` one requirement for all tensors, or one for each (dense rows by default).
    """
    where = location or user_location()
    _check_kinds(types, formats, properties, semirings, where)
    capability, own_formats = _stated(statement, where)
    formats = {**own_formats, **(formats or {})}
    names = dict.fromkeys(
        access.tensor for access in (capability.result, *accesses(capability.value))
    )
    for what, requirements in (("format", formats), ("property", properties)):
        _check_said(what, requirements or {}, names, where)
    if isinstance(strides, Mapping):
        _check_said("step", strides, names, where)
    needs = tuple(
        OperandNeeds(
            name=name,
            formats=_formats((formats or {}).get(name, ()), name, where),
            strides=_strides(
                strides.get(name, Strides.DENSE) if isinstance(strides, Mapping) else strides, where
            ),
            properties=checked_properties((properties or {}).get(name, ()), where),
        )
        for name in names
    )
    capability = replace(
        capability,
        needs=needs,
        types=_types(types, where),
        semirings=tuple(semirings),
        location=where,
    )
    verify_capability(capability)
    return capability


def make_function(
    name: str,
    capability: Statement,
    *,
    call: ExternalCall | None = None,
    python: Callable[..., Any] | None = None,
    setup: Sequence[ExternalCall] = (),
    unpack: Sequence[ExternalCall] = (),
    teardown: Sequence[ExternalCall] = (),
    library: LibraryOf | None = None,
    stored: StoredResult | None = None,
    status: ReturnedStatus | None = None,
    index: Type | None = None,
    checker: Callable[[Any], bool] | None = None,
    trusted: bool = False,
    location: SourceLocation | None = None,
    **requirements: Any,
) -> ExternalFunction:
    """A function of a library (``call``) or of Python (``python``).

    ``requirements`` are the keywords of ``make_capability``.

    Raises ``UserError`` for an invalid statement, for a function in Python whose parameters are
    not its tensors, and for a call that refers to names that the statement does not have.
    """
    where = location or user_location()
    _check_name(name, where)
    _check_interface(name, index, checker, where)
    if isinstance(capability, Capability) and not requirements:
        declared = capability  # make_capability has checked it
    else:
        declared = make_capability(capability, location=where, **requirements)
    if (call is None) == (python is None):
        raise UserError(
            f"{name} must have either call= or python=",
            location=where,
            expected="a call of a library, or a function in Python",
        )
    parameters = () if python is None else _parameters(name, python, declared, where)
    function = ExternalFunction(
        name=name,
        capability=declared,
        call=call,
        setup=tuple(setup),
        unpack=tuple(unpack),
        teardown=tuple(teardown),
        python=python,
        parameters=parameters,
        library=library,
        stored=stored,
        status=status,
        index=index,
        checker=checker,
        trusted=trusted,
        location=where,
    )
    verify_call(function)
    return function


def function(
    statement: Statement,
    *,
    name: str | None = None,
    strides: Any = Strides.ANY,
    **requirements: Any,
) -> Callable[[Callable[..., Any]], ExternalFunction]:
    """The short form: a decorator of a function in Python on numpy views.

    Its parameters are the tensors of the statement: it writes the result, or returns it if the
    result is not among them.  An operand that is overwritten is passed once.
    """
    where = user_location()

    def decorate(python: Callable[..., Any]) -> ExternalFunction:
        chosen = str(name or getattr(python, "__name__", "function"))
        return make_function(
            chosen, statement, python=python, strides=strides, location=where, **requirements
        )

    return decorate


def _stated(statement: Statement, where: SourceLocation) -> tuple[Capability, dict[str, Format]]:
    """The capability of a text or of an assignment in Python, with the formats of its tensors."""
    if isinstance(statement, Capability):
        return statement, {}
    if isinstance(statement, Tensor):
        statement = statement.definition or statement.name
    if not isinstance(statement, Assignment):
        return parse_capability(statement, where), {}
    read = {access.tensor for access in accesses(statement.value)}
    result = statement.result
    capability = Capability(
        result=result,
        value=statement.value,
        overwritten=result.tensor if result.tensor in read else None,
        location=where,
    )
    stored = {tensor.name: tensor.format for tensor in statement.tensors}
    return capability, {
        name: format
        for name, format in stored.items()
        if not all(level.full for level in format.levels)
    }


def _check_kinds(
    types: Any, formats: Any, properties: Any, semirings: Any, where: SourceLocation
) -> None:
    """Check the types of the requirements."""
    for what, value, kinds, expected in (
        ("types", types, (str, Sequence), 'names of types, such as "float32 float64"'),
        ("formats", formats, (Mapping, type(None)), 'formats by name, such as {"x": "ds"}'),
        (
            "properties",
            properties,
            (Mapping, type(None)),
            'properties by name, such as {"x": "symmetric"}',
        ),
        ("semirings", semirings, (Sequence,), "a list, such as [sparse.MIN_PLUS]"),
    ):
        if not isinstance(value, kinds):
            raise UserError(
                f"the {what} of a function have the wrong type",
                location=where,
                expected=expected,
                given=repr(value),
            )
    if not semirings or not all(isinstance(semiring, Semiring) for semiring in semirings):
        raise UserError(
            "the semirings of a function have the wrong type",
            location=where,
            expected="one or more of them, such as [sparse.MIN_PLUS]",
            given=repr(semirings),
        )


def _check_name(name: Any, where: SourceLocation) -> None:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise UserError(
            "the name of a function must be a string",
            location=where,
            expected='a text of one line, such as "sgemm"',
            given=repr(name),
        )


def _check_interface(name: str, index: Any, checker: Any, where: SourceLocation) -> None:
    """Check the integer type of an interface, and that a checker can be called."""
    if index is not None and not (isinstance(index, Type) and index.is_integer):
        raise UserError(
            f"the index type of {name} is not an integer type",
            location=where,
            expected="index=Int(32) or Int(64)",
            given=str(index),
        )
    if checker is not None and not callable(checker):
        raise UserError(
            f"the checker of {name} is not a function",
            location=where,
            expected="a function that accepts or rejects a mapping",
            given=repr(checker),
        )


def _parameters(
    name: str, python: Callable[..., Any], capability: Capability, where: SourceLocation
) -> tuple[str, ...]:
    tensors = dict.fromkeys(
        access.tensor for access in (*accesses(capability.value), capability.result)
    )
    try:
        parameters = tuple(
            parameter.name
            for parameter in inspect.signature(python).parameters.values()
            if parameter.name in tensors or parameter.default is inspect.Parameter.empty
        )
    except (TypeError, ValueError):
        parameters = ()
    operands = {
        tensor for tensor in tensors if tensor != capability.result.tensor or capability.overwritten
    }
    _check_returned(name, parameters, capability, where)
    if set(parameters) - set(tensors) or operands - set(parameters):
        raise UserError(
            f"the parameters of {name} are not the tensors of its statement",
            location=where,
            expected=f"{', '.join(tensors)}, in any order; without {capability.result.tensor} "
            "the function returns it"
            if not capability.overwritten
            else f"{', '.join(tensors)}, in any order",
            given=", ".join(parameters) or "no parameters",
        )
    return parameters


def _check_returned(
    name: str, parameters: Sequence[str], capability: Capability, where: SourceLocation
) -> None:
    """A sparse result has to be returned: how much it stores is not known before the call."""
    result = capability.result.tensor
    formats = capability.needs_of(result).formats
    if formats and result in parameters and not capability.overwritten:
        raise UserError(
            f"{name} is given its result {result}, which is stored as {formats[0]}",
            location=where,
            expected=f"a function without {result} that returns it, such as sparse.tensor(...)",
            given=", ".join(parameters),
        )


def _check_said(
    what: str, requirements: Mapping[str, Any], names: Mapping[str, Any], where: SourceLocation
) -> None:
    for name in requirements:
        if name not in names:
            raise UserError(
                f"there is a {what} for {name}, which the statement does not have",
                location=where,
                expected=f"one of {', '.join(names)}",
                given=str(name),
            )


def _formats(alternatives: Any, name: str, where: SourceLocation) -> tuple[Format, ...]:
    if isinstance(alternatives, Format):
        alternatives = (alternatives,)
    words = alternatives.split("|") if isinstance(alternatives, str) else alternatives
    words = words if isinstance(words, Sequence) else (words,)
    formats = [
        as_format(word.strip() if isinstance(word, str) else word, what=name, location=where)
        for word in words
    ]
    for format in formats:
        if is_dense(format) and format.modes != tuple(range(format.order)):
            raise UserError(
                f"the format {format} of {name} is that of a dense tensor",
                location=where,
                expected="formats of tensors that are not dense, or dense ones by rows",
                hint=f'strides={{"{name}": "columns"}} says how a dense matrix lies in memory',
            )
    return () if all(map(is_dense, formats)) else tuple(formats)


def _strides(requirement: Any, where: SourceLocation) -> Strides:
    try:
        return Strides(requirement)
    except ValueError:
        raise UserError(
            f"there are no steps {requirement!r}",
            location=where,
            expected=f"one of {', '.join(strides.value for strides in Strides)}",
        ) from None


def _types(names: Any, where: SourceLocation) -> tuple[Type, ...]:
    words = names.split() if isinstance(names, str) else names
    numbers = [type for type in TYPES if not type.is_bool]
    types = []
    for word in words:
        known = [type for type in numbers if word in (type, str(type))]
        if not known:
            raise UserError(
                f"there is no type {word} for values",
                location=where,
                expected=f"one of {', '.join(map(str, numbers))}",
            )
        types.append(known[0])
    return tuple(types)


def type_of(kind: np.dtype[Any]) -> Type | None:
    """The type of values of numpy's type, if they may be computed."""
    return next((type for type in TYPES if type.numpy == kind), None)
