"""The target AST: the part of OpenCL C that the backend writes.

Everything that has to be decided is decided when this tree is built; ``printer`` and the
templates only spell it.
"""

from __future__ import annotations

from dataclasses import dataclass

# --------------------------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """Base of C expressions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Name(Expression):
    """A variable, channel or function."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal(Expression):
    """A literal, as it is written in C."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary(Expression):
    """A prefix operator: ``-``, ``!``, ``~``, ``&``, ``*`` or ``++``."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary(Expression):
    """A binary operator."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Ternary(Expression):
    """``condition ? if_true : if_false``."""

    condition: Expression
    if_true: Expression
    if_false: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Expression):
    """``function(arguments)``."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscript(Expression):
    """``base[i][j]...``."""

    base: Expression
    indices: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member(Expression):
    """``base.field``: a member of a struct or a component of a vector."""

    base: Expression
    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CastTo(Expression):
    """``(type)(values)``: a cast, or a vector from its components."""

    type: str
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroInitializer(Expression):
    """``{0}``: the initial value of an array or struct."""


# ---------------------------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Base of C statements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declare(Statement):
    """``type __attribute__((attributes)) name[dimensions] = initial;  // comment``."""

    type: str
    name: str
    dimensions: tuple[int, ...] = ()
    initial: Expression | None = None
    comment: str | None = None
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclareAll(Statement):
    """``type name = initial, name = initial;``."""

    type: str
    variables: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assign(Statement):
    """``target = value;``."""

    target: Expression
    value: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Increment(Statement):
    """``target++;``."""

    target: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Do(Statement):
    """A call for its effect."""

    call: Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Return(Statement):
    """``return value;``."""

    value: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class If(Statement):
    """``if (condition) { then } else { otherwise }``."""

    condition: Expression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``case value: { body break; }``, with a comment behind it."""

    value: int
    comment: str
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch(Statement):
    """``switch (value) { cases }``."""

    value: Expression
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class For(Statement):
    """``for (int name = start; name < stop; name++)``; ``>=`` and ``--`` where ``down``.

    ``stop`` is exclusive upwards and inclusive downwards.  ``coalesced`` counts the perfectly
    nested loops, this one included, that the compiler is asked to flatten into one.
    ``independent`` names arrays of which no element is used again, after or before it is written,
    within a number of iterations, or in the whole loop.
    """

    name: str
    start: Expression
    stop: Expression
    body: tuple[Statement, ...]
    down: bool = False
    unroll: bool = False
    coalesced: int = 1
    independent: tuple[tuple[str, int | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class While(Statement):
    """``while (condition)``."""

    condition: Expression
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forever(Statement):
    """``while (1)``."""

    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark(Statement):
    """A comment on a line of its own."""

    text: str


# ------------------------------------------------------------------------------- file contents


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A parameter of a function, or a field of a struct."""

    type: str
    name: str
    dimensions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Struct:
    """``typedef struct { fields } name;``."""

    name: str
    fields: tuple[Variable, ...]
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelArray:
    """``channel type name[dimensions] __attribute__((depth(depth)));``."""

    name: str
    type: str
    dimensions: tuple[int, ...]
    depth: int
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A helper function."""

    type: str
    name: str
    parameters: tuple[Variable, ...]
    body: tuple[Statement, ...]
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A kernel: started by the host, or by itself if it has no parameters and may start again."""

    name: str
    parameters: tuple[Variable, ...]
    body: tuple[Statement, ...]
    comment: tuple[str, ...]
    once: bool = False

    @property
    def autorun(self) -> bool:
        return not (self.parameters or self.once)


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A whole OpenCL file."""

    comment: tuple[str, ...]
    uses_double: bool
    structs: tuple[Struct, ...]
    channels: tuple[ChannelArray, ...]
    functions: tuple[Function, ...]
    kernels: tuple[Kernel, ...]


def number(value: int) -> Literal:
    """An ``int`` literal."""
    return Literal(text=str(value))


def call(function: str, *arguments: Expression) -> Call:
    """``function(arguments)``."""
    return Call(function=function, arguments=arguments)


def element(name: str, *indices: Expression) -> Expression:
    """``name[indices]``, or ``name`` alone where there are none."""
    base = Name(name=name)
    return Subscript(base=base, indices=indices) if indices else base


def binary(operator: str, left: Expression, right: Expression) -> Binary:
    """``left operator right``."""
    return Binary(operator=operator, left=left, right=right)
