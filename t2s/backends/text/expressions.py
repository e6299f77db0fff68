"""C-like expressions and statements, and their text, for OpenCL, SystemVerilog and C++.

A target language adds classes of its own, and a ``Spelling`` that writes them.  All decisions are
made when a tree is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeGuard


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetExpression:
    """Base of the expressions of a target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Name(TargetExpression):
    """A variable, a channel, a port or a function."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal(TargetExpression):
    """A literal, as it is written in the target."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary(TargetExpression):
    """A prefix operator: ``-``, ``!``, ``~``, ``&``, ``*`` or ``++``."""

    operator: str
    operand: TargetExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary(TargetExpression):
    """A binary operator."""

    operator: str
    left: TargetExpression
    right: TargetExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class Ternary(TargetExpression):
    """``condition ? if_true : if_false``."""

    condition: TargetExpression
    if_true: TargetExpression
    if_false: TargetExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(TargetExpression):
    """``function(arguments)``."""

    function: str
    arguments: tuple[TargetExpression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetStatement:
    """Base of the statements of a target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Set(TargetStatement):
    """``target = value;``."""

    target: TargetExpression
    value: TargetExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class Do(TargetStatement):
    """A call for its effect."""

    call: TargetExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class If(TargetStatement):
    """``if (condition)`` with an optional ``else``."""

    condition: TargetExpression
    then: tuple[TargetStatement, ...]
    otherwise: tuple[TargetStatement, ...] = ()


def number(value: int) -> Literal:
    """A plain decimal literal: an ``int``."""
    return Literal(text=str(value))


def call(function: str, *arguments: TargetExpression) -> Call:
    """``function(arguments)``."""
    return Call(function=function, arguments=arguments)


def binary(operator: str, left: TargetExpression, right: TargetExpression) -> Binary:
    """``left operator right``."""
    return Binary(operator=operator, left=left, right=right)


_TERNARY = 1
PREFIX = 20
"""How strongly prefix operators bind."""

POSTFIX = 30
"""How strongly subscripts and members bind."""

PRECEDENCE = {
    "||": 2,
    "&&": 3,
    "|": 4,
    "^": 5,
    "&": 6,
    "==": 7,
    "!=": 7,
    "<": 8,
    "<=": 8,
    ">": 8,
    ">=": 8,
    ">>": 9,
    "<<": 9,
    "+": 10,
    "-": 10,
    "*": 11,
    "/": 11,
    "%": 11,
}
"""How strongly binary operators bind, in all of these languages."""

_LOGIC = {"&&", "||", "|", "^", "&"}
_COMPARISONS = {"==", "!=", "<", "<=", ">", ">="}
_BITS = {">>", "<<", "&", "|", "^"}

Show = Callable[..., str]


@dataclass(frozen=True, slots=True)
class Spelling:
    """Writes expressions; ``own`` writes those of the target, given the text of their parts.

    With ``explicit`` a comparison of comparisons has parentheses, as compilers of C++ want it.
    """

    own: Callable[[TargetExpression, Show], str | None]
    explicit: bool = False

    def show(self, expression: TargetExpression, outer: int = 0) -> str:
        """The expression as text; ``outer`` is the precedence of the surrounding operator."""
        match expression:
            case Name(name=name):
                return name
            case Literal(text=text):
                return f"({text})" if text.startswith("-") and outer >= PREFIX else text
            case Unary(operator=operator, operand=operand):
                text = operator + self.show(operand, PREFIX + 1)
                return f"({text})" if outer > PREFIX else text
            case Binary():
                return self._binary(expression, outer)
            case Ternary(condition=condition, if_true=if_true, if_false=if_false):
                test = self.show(condition, PREFIX if _is_logic(condition) else _TERNARY + 1)
                text = f"{test} ? {self.show(if_true, _TERNARY + 1)} : {self.show(if_false)}"
                return f"({text})" if outer > _TERNARY - 1 else text
            case Call(function=function, arguments=arguments):
                return f"{function}({self.list(arguments)})"
        text = self.own(expression, self.show) or ""
        if not text:
            raise TypeError(f"{expression.__class__.__name__} has no spelling")
        return text

    def list(self, expressions: Iterable[TargetExpression]) -> str:
        """Several expressions, separated by commas."""
        return ", ".join(self.show(expression) for expression in expressions)

    def _binary(self, expression: Binary, outer: int) -> str:
        operator = expression.operator
        inner = PRECEDENCE[operator]
        right = inner if operator in _LOGIC else inner + 1
        text = f"{self._side(expression, expression.left, inner)} {operator} "
        text += self._side(expression, expression.right, right)
        return f"({text})" if inner < outer else text

    def _side(self, parent: Binary, side: TargetExpression, precedence: int) -> str:
        """An operand; mixed operators such as ``a && b || c`` get parentheses for readability."""
        if not isinstance(side, Binary):
            return self.show(side, precedence)
        operators = {side.operator, parent.operator}
        mixed = len(operators) > 1 and (operators & _BITS or operators <= _LOGIC)
        mixed = mixed or (self.explicit and operators <= _COMPARISONS)
        return self.show(side, PREFIX if mixed else precedence)


def _is_logic(expression: TargetExpression) -> TypeGuard[Binary]:
    return isinstance(expression, Binary) and expression.operator in _LOGIC
