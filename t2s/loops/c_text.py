"""Printing loops as C: a function for each stage, with one parameter for each argument.

Arrays that grow and numbers that are returned are passed by address.  The program has to be
compiled with ``-fwrapv``, so that integers wrap around, and ``-ffp-contract=off``, so that no
product is fused with a sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np

from t2s.backends.text.identifiers import Identifiers, plain
from t2s.core.errors import InternalError
from t2s.core.expr import Apply, Cast, Const, Expr, Local, Select
from t2s.core.ops import C_FUNCTIONS, Op
from t2s.core.types import Kind, Type
from t2s.core.walk import walk
from t2s.loops.ir import (
    INDEX,
    CountingLoop,
    ElementAddress,
    EndWith,
    LoadElement,
    LoopArray,
    LoopBranch,
    LoopCall,
    LoopFunction,
    LoopNumber,
    LoopStatement,
    MakeRoom,
    SetLocal,
    StoreElement,
    WhileLoop,
)

HEAD = """\
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
"""
"""What functions need that are printed here."""

GROWING = """\
static void *longer(void *array, size_t size, int64_t before, int64_t after)
{
    char *made = realloc(array, size * (size_t)after);
    if (made)
        memset(made + size * (size_t)before, 0, size * (size_t)(after - before));
    return made;
}
"""
"""What functions need besides that make room."""

_FLOATS = {32: "float", 64: "double"}
_OPERATORS = {
    Op.ADD: "+",
    Op.SUBTRACT: "-",
    Op.MULTIPLY: "*",
    Op.DIVIDE: "/",
    Op.FLOOR_DIVIDE: "/",
    Op.MODULO: "%",
    Op.EQUAL: "==",
    Op.NOT_EQUAL: "!=",
    Op.LESS: "<",
    Op.LESS_EQUAL: "<=",
    Op.GREATER: ">",
    Op.GREATER_EQUAL: ">=",
}
"""Divisions of coordinates are of numbers from zero on."""

_LOGIC = {Op.AND: "&&", Op.OR: "||"}


def c_type(type: Type) -> str:
    """The C type of values of a type."""
    match type.kind:
        case Kind.BOOL:
            return "bool"
        case Kind.FLOAT if type.bits in _FLOATS:
            return _FLOATS[type.bits]
        case Kind.INT:
            return f"int{type.bits}_t"
        case Kind.UINT:
            return f"uint{type.bits}_t"
    raise InternalError(f"{type} is not a type of C here")


def c_number(value: float | int | bool, type: Type) -> str:
    """A literal; floats are written in hexadecimal, which is exact."""
    if type.is_bool:
        return "true" if value else "false"
    if type.is_float:
        with np.errstate(all="ignore"):
            rounded = float(np.asarray(value, type.numpy))
        if rounded != rounded:
            return "NAN"
        if rounded in (float("inf"), float("-inf")):
            return "INFINITY" if rounded > 0 else "(-INFINITY)"
        text = rounded.hex() + ("f" if type.bits == 32 else "")
        return f"({text})" if text.startswith("-") else text
    number = int(np.asarray(value).astype(type.numpy))
    if type.bits < 32 or (type == INDEX and 0 <= number < 1 << 31):
        return str(number) if number >= 0 else f"({number})"
    name = "UINT" if type.kind is Kind.UINT else "INT"
    if number == -(1 << (type.bits - 1)):
        return f"{name}{type.bits}_MIN"
    text = f"{name}{type.bits}_C({abs(number)})"
    return text if number >= 0 else f"(-{text})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CParameter:
    """A parameter of a function in C, and the argument behind it."""

    argument: LoopArray | LoopNumber
    declared: str
    by_address: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CFunction:
    """A function in C: its text, and its parameters in order."""

    name: str
    text: str
    parameters: tuple[CParameter, ...]


def c_function(function: LoopFunction, name: str, skipped: Sequence[str] = ()) -> CFunction:
    """A static function of this name; ``skipped`` arguments are not parameters."""
    return _Printer(function, name, skipped).printed()


@dataclass
class _Printer:
    function: LoopFunction
    name: str
    skipped: Sequence[str]
    names: dict[str, str] = field(default_factory=dict)
    by_address: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # a prefix, so that no name is a keyword or a macro of C, or a function of a library
        supply = Identifiers(lambda name: f"v_{plain(name)}")
        for argument in self.function.arguments:
            self.names[argument.name] = supply.fresh(argument.name)
            self.by_address[argument.name] = (
                bool(argument.grows)
                if isinstance(argument, LoopArray)
                else argument.returned or argument.name in self.function.groups
            )
        self.declared: dict[str, str] = {}
        for term in walk(self.function):
            definition = _definition(term)
            if definition is not None and definition[0] not in self.names:
                self.names[definition[0]] = supply.fresh(definition[0])
                self.declared[definition[0]] = c_type(definition[1])

    def printed(self) -> CFunction:
        parameters = tuple(
            self._parameter(argument)
            for argument in self.function.arguments
            if argument.name not in self.skipped
        )
        listed = ",\n    ".join(parameter.declared for parameter in parameters) or "void"
        lines = [f"static int {self.name}(", f"    {listed})", "{"]
        lines += [f"    {type} {self.names[name]} = 0;" for name, type in self.declared.items()]
        for statement in self.function.body:
            lines += self._lines(statement, 1)
        lines += ["    return 0;", "}"]
        return CFunction(
            name=self.name, text="".join(f"{line}\n" for line in lines), parameters=parameters
        )

    def _parameter(self, argument: LoopArray | LoopNumber) -> CParameter:
        name, stars = self.names[argument.name], "*" if self.by_address[argument.name] else ""
        if isinstance(argument, LoopArray):
            const = "" if argument.written else "const "
            declared = f"{const}{c_type(argument.type)} *{stars}{name}"
        else:
            declared = f"int64_t {stars}{name}"
        return CParameter(
            argument=argument, declared=declared, by_address=self.by_address[argument.name]
        )

    def _named(self, name: str) -> str:
        return f"(*{self.names[name]})" if self.by_address.get(name) else self.names[name]

    def _lines(self, statement: LoopStatement, depth: int) -> Iterator[str]:
        indent = "    " * depth
        match statement:
            case SetLocal(name=name, value=value):
                yield f"{indent}{self._named(name)} = {self._value(value)};"
            case LoadElement(name=name, array=array, index=index):
                yield f"{indent}{self._named(name)} = {self._element(array, index)};"
            case StoreElement(array=array, index=index, value=value):
                yield f"{indent}{self._element(array, index)} = {self._value(value)};"
            case CountingLoop(name=name, start=start, end=end, body=body):
                at = self._named(name)
                first, last = self._value(start), self._value(end)
                yield f"{indent}for ({at} = {first}; {at} < {last}; {at}++) {{"
                yield from self._block(body, depth + 1)
                yield f"{indent}}}"
            case WhileLoop(condition=condition, body=body):
                yield f"{indent}for (;;) {{"
                yield f"{indent}    if (!({self._value(condition)}))"
                yield f"{indent}        break;"
                yield from self._block(body, depth + 1)
                yield f"{indent}}}"
            case LoopBranch(condition=condition, body=body, otherwise=otherwise):
                yield f"{indent}if ({self._value(condition)}) {{"
                yield from self._block(body, depth + 1)
                if otherwise:
                    yield f"{indent}}} else {{"
                    yield from self._block(otherwise, depth + 1)
                yield f"{indent}}}"
            case MakeRoom(group=group, needed=needed):
                yield from self._make_room(group, self._value(needed), indent)
            case LoopCall():
                yield f"{indent}{self._call(statement)};"
            case EndWith(status=status):
                yield f"{indent}return (int){self._value(status)};"
            case _:
                assert_never(statement)

    def _block(self, statements: Sequence[LoopStatement], depth: int) -> Iterator[str]:
        for statement in statements:
            yield from self._lines(statement, depth)

    def _make_room(self, group: str, needed: str, indent: str) -> Iterator[str]:
        room = self._named(group)
        yield f"{indent}if ({needed} > {room}) {{"
        yield f"{indent}    int64_t more = {needed} > 2 * {room} ? {needed} : 2 * {room};"
        yield f"{indent}    void *made;"
        for argument in self.function.arguments:
            if isinstance(argument, LoopArray) and argument.grows == group:
                array = self._named(argument.name)
                yield f"{indent}    made = longer({array}, sizeof *{array}, {room}, more);"
                yield f"{indent}    if (!made)"
                yield f"{indent}        return 1;"
                yield f"{indent}    {array} = made;"
        yield f"{indent}    {room} = more;"
        yield f"{indent}}}"

    def _element(self, array: str, index: Expr) -> str:
        return f"{self._named(array)}[{self._value(index)}]"

    def _call(self, call: LoopCall) -> str:
        arguments = ", ".join(
            f"(void *)&{self._element(argument.array, argument.index)}"
            if isinstance(argument, ElementAddress)
            else self._value(argument)
            for argument in call.arguments
        )
        text = f"{call.symbol}({arguments})"
        return text if call.returns is None else f"{self._named(call.result)} = {text}"

    def _value(self, expr: Expr) -> str:
        match expr:
            case Const(value=value, type=type):
                return c_number(value, type)
            case Local(name=name):
                return self._named(name)
            case Select(condition=condition, if_true=first, if_false=second):
                texts = (self._value(operand) for operand in (condition, first, second))
                return "({} ? {} : {})".format(*texts)
            case Cast(value=value, type=type):
                return f"({c_type(type)}){self._value(value)}"
            case Apply(operator=operator, operands=operands, type=type):
                return self._operator(
                    operator, [self._value(operand) for operand in operands], type
                )
        raise InternalError(f"{expr.__class__.__name__} in loops")

    def _operator(self, operator: Op, operands: Sequence[str], type: Type) -> str:
        if operator is Op.NOT:
            return f"!{operands[0]}"
        if operator is Op.NEGATE:
            return _wrapped(f"(-{operands[0]})", type)
        if operator is Op.ABSOLUTE:  # 0.0 of -0.0
            (value,) = operands
            return _wrapped(f"({value} <= 0 ? 0 - {value} : {value})", type)
        if operator is Op.SQUARE_ROOT:
            return _rounded(f"sqrt({operands[0]})", type)
        if operator is Op.RECIPROCAL_SQUARE_ROOT:
            return _rounded(f"(1 / sqrt({operands[0]}))", type)
        if operator in C_FUNCTIONS:
            return _rounded(f"{C_FUNCTIONS[operator]}({operands[0]})", type)
        left, right = operands
        if operator in (Op.MINIMUM, Op.MAXIMUM):
            sign = "<" if operator is Op.MINIMUM else ">"
            return f"({right} {sign} {left} ? {right} : {left})"
        if operator in _LOGIC:
            return f"({left} {_LOGIC[operator]} {right})"
        return _wrapped(f"({left} {_OPERATORS[operator]} {right})", type)


def _wrapped(text: str, type: Type) -> str:
    """Wrap around integers that C promotes to ``int``."""
    if type.is_float:
        return text if type.bits == 64 else f"(float){text}"
    narrow = type.bits < 32 and not type.is_bool
    return f"({c_type(type)}){text}" if narrow else text


def _rounded(text: str, type: Type) -> str:
    """A value of ``double`` as one of a type of floats."""
    return text if type.bits == 64 else f"({c_type(type)}){text}"


def _definition(term: object) -> tuple[str, Type] | None:
    """The local that a statement assigns, and its type."""
    match term:
        case SetLocal(name=name, value=value):
            return name, value.type
        case LoadElement(name=name, type=type):
            return name, type
        case CountingLoop(name=name):
            return name, INDEX
        case LoopCall(result=name, returns=type) if type is not None:
            return name, type
    return None
