"""The AST of the subset of C that the kernels of all dialects are written in, and its printer.

All decisions are made when the tree is built; the printer and the templates only write it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from t2s.backends.text.expressions import (
    POSTFIX,
    PRECEDENCE,
    Do,
    If,
    Name,
    Set,
    Show,
    TargetExpression,
    TargetStatement,
)
from t2s.core.names import one_line

# --------------------------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscript(TargetExpression):
    """``base[i][j]...``."""

    base: TargetExpression
    indices: tuple[TargetExpression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldOf(TargetExpression):
    """``base.field``: a member of a struct or a component of a vector."""

    base: TargetExpression
    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodCall(TargetExpression):
    """``base.method(arguments)``."""

    base: TargetExpression
    method: str
    arguments: tuple[TargetExpression, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CastTo(TargetExpression):
    """``(type)(values)``: a cast, or a vector from its components."""

    type: str
    values: tuple[TargetExpression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroInitializer(TargetExpression):
    """``{0}``: the initial value of an array or struct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledInitializer(TargetExpression):
    """``{value, value, ...}``: the initial value of an array whose elements start alike."""

    value: TargetExpression
    count: int


# ---------------------------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True, kw_only=True)
class Declare(TargetStatement):
    """``type name[dimensions] = initial;  // comment``; the dialect writes the ``attributes``.

    A dimension is a number or the name of a constant.
    """

    type: str
    name: str
    dimensions: tuple[int | str, ...] = ()
    initial: TargetExpression | None = None
    comment: str | None = None
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclareAll(TargetStatement):
    """``type name = initial, name = initial;``."""

    type: str
    variables: tuple[tuple[str, TargetExpression], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Increment(TargetStatement):
    """``target++;``."""

    target: TargetExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class Return(TargetStatement):
    """``return value;``."""

    value: TargetExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchCase:
    """``case value: { body break; }``, with a comment behind it."""

    value: int
    comment: str
    body: tuple[TargetStatement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch(TargetStatement):
    """``switch (value) { cases }``."""

    value: TargetExpression
    cases: tuple[SwitchCase, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A pipelined loop starts an iteration every ``interval`` cycles; it may use ``memory``."""

    interval: int = 1
    memory: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class For(TargetStatement):
    """``for (int name = start; name < stop; name++)``; ``>=`` and ``--`` where ``down``.

    ``stop`` is exclusive upwards and inclusive downwards.  ``coalesced`` counts the perfectly
    nested loops, including this one, that the compiler shall flatten into one.  ``independent``
    names arrays whose accesses to one element (one of them a write) are at least a number of
    iterations apart, or do not occur in the loop.  The innermost loop over time has a
    ``pipeline``.
    """

    name: str
    start: TargetExpression
    stop: TargetExpression
    body: tuple[TargetStatement, ...]
    down: bool = False
    unroll: bool = False
    coalesced: int = 1
    independent: tuple[tuple[str, int | None], ...] = ()
    pipeline: Pipeline | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class While(TargetStatement):
    """``while (condition)``; see ``For`` for the other fields."""

    condition: TargetExpression
    body: tuple[TargetStatement, ...]
    independent: tuple[tuple[str, int | None], ...] = ()
    pipeline: Pipeline | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forever(TargetStatement):
    """``while (1)``."""

    body: tuple[TargetStatement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark(TargetStatement):
    """A comment on a line of its own."""

    text: str


# ------------------------------------------------------------------------------- file contents


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedName:
    """A parameter of a function, or a field of a struct."""

    type: str
    name: str
    dimensions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Struct:
    """``typedef struct { fields } name;``."""

    name: str
    fields: tuple[TypedName, ...]
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """A constant that is the size of arrays on the chip, which a user may change.

    It counts elements of a tensor, or ``points`` of a sorted memory.
    """

    name: str
    value: int
    comment: str
    points: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelArray:
    """A channel between kernels, or an array of them, with their depth."""

    name: str
    type: str
    dimensions: tuple[int, ...]
    depth: int
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperFunction:
    """A helper function."""

    type: str
    name: str
    parameters: tuple[TypedName, ...]
    body: tuple[TargetStatement, ...]
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelDefinition:
    """A kernel: started by the host, or ``autorun`` if it has no parameters and may restart."""

    name: str
    parameters: tuple[TypedName, ...]
    body: tuple[TargetStatement, ...]
    comment: tuple[str, ...]
    once: bool = False

    @property
    def autorun(self) -> bool:
        return not (self.parameters or self.once)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFile:
    """A whole file of kernels."""

    comment: tuple[str, ...]
    uses_double: bool
    structs: tuple[Struct, ...]
    channels: tuple[ChannelArray, ...]
    functions: tuple[HelperFunction, ...]
    kernels: tuple[KernelDefinition, ...]


def element(name: str, *indices: TargetExpression) -> TargetExpression:
    """``name[indices]``, or ``name`` without indices."""
    base = Name(name=name)
    return Subscript(base=base, indices=indices) if indices else base


# The printer: C expressions with the necessary parentheses, and indented statements.

INDENT = "    "
_WIDTH = 96


def spelling(expression: TargetExpression, show: Show) -> str | None:
    """The expressions of C."""
    match expression:
        case Subscript(base=base, indices=indices):
            return show(base, POSTFIX) + "".join(f"[{show(index)}]" for index in indices)
        case FieldOf(base=base, field=field):
            return f"{show(base, POSTFIX)}.{field}"
        case MethodCall(base=base, method=method, arguments=arguments):
            return f"{show(base, POSTFIX)}.{method}({', '.join(map(show, arguments))})"
        case CastTo(type=type, values=values):
            return f"({type})({', '.join(map(show, values))})"
        case ZeroInitializer():
            return "{0}"
        case FilledInitializer(value=value, count=count):
            return "{" + ", ".join([show(value)] * count) + "}"
    return None


def declarator(variable: TypedName | Declare | ChannelArray) -> str:
    """``type name[2][3]``."""
    space = "" if variable.type.endswith("*") else " "
    return f"{variable.type}{space}{variable.name}{dimensions(variable.dimensions)}"


def dimensions(sizes: Iterable[int | str]) -> str:
    """``[2][3]``."""
    return "".join(f"[{size}]" for size in sizes)


class Pragmas(Protocol):
    """How a dialect writes expressions, and lines around declarations and loops."""

    def show(self, expression: TargetExpression, outer: int = 0) -> str: ...
    def before_declaration(self, statement: Declare) -> list[str]: ...
    def after_declaration(self, statement: Declare) -> list[str]: ...
    def before_loop(self, loop: For) -> list[str]: ...
    def inside_loop(self, loop: For | While) -> list[str]: ...


def lines(statements: Iterable[TargetStatement], pragmas: Pragmas, level: int = 1) -> list[str]:
    """The statements as indented lines."""
    return [line for statement in statements for line in _lines(statement, pragmas, level)]


def _lines(statement: TargetStatement, pragmas: Pragmas, level: int) -> list[str]:
    pad = INDENT * level
    match statement:
        case Declare(initial=initial, comment=comment):
            value = "" if initial is None else f" = {pragmas.show(initial)}"
            remark = "" if comment is None else f"  // {one_line(comment)}"
            return [
                *(pad + line for line in pragmas.before_declaration(statement)),
                f"{pad}{declarator(statement)}{value};{remark}",
                *(pad + line for line in pragmas.after_declaration(statement)),
            ]
        case DeclareAll(type=type, variables=variables):
            named = [f"{name} = {pragmas.show(initial)}" for name, initial in variables]
            return _wrapped(f"{pad}{type} ", named, pad + INDENT)
        case Set(target=target, value=value):
            return [f"{pad}{pragmas.show(target)} = {pragmas.show(value)};"]
        case Increment(target=target):
            return [f"{pad}{pragmas.show(target)}++;"]
        case Do(call=call):
            return [f"{pad}{pragmas.show(call)};"]
        case Return(value=value):
            return [f"{pad}return {pragmas.show(value)};"]
        case Remark(text=text):
            return [f"{pad}// {one_line(text)}"]
        case If(otherwise=(_, *_)):
            return _if_else(statement, pragmas, level)
        case Switch(value=value, cases=cases):
            return [
                f"{pad}switch ({pragmas.show(value)}) {{",
                *_cases(cases, pragmas, level),
                f"{pad}}}",
            ]
        case While(condition=condition, body=body):
            return _block(
                f"while ({pragmas.show(condition)})",
                body,
                pragmas,
                level,
                pragmas.inside_loop(statement),
            )
        case If(condition=condition, then=(Set() | Increment() | Do() | Return() as only,)):
            return [f"{pad}if ({pragmas.show(condition)})", *_lines(only, pragmas, level + 1)]
        case If(condition=condition, then=then):
            return _block(f"if ({pragmas.show(condition)})", then, pragmas, level)
        case For(name=name, start=start, stop=stop, body=body):
            test, step = (">=", "--") if statement.down else ("<", "++")
            ends = f"{name} {test} {pragmas.show(stop, PRECEDENCE['<'] + 1)}"
            head = f"for (int {name} = {pragmas.show(start)}; {ends}; {name}{step})"
            before = [pad + line for line in pragmas.before_loop(statement)]
            inside = pragmas.inside_loop(statement)
            if _is_short(body) and not inside:
                return [*before, pad + head, *lines(body, pragmas, level + 1)]
            return before + _block(head, body, pragmas, level, inside)
        case Forever(body=body):
            if _is_short(body):
                return [f"{pad}while (1)", *lines(body, pragmas, level + 1)]
            return _block("while (1)", body, pragmas, level)
    raise TypeError(f"cannot print {statement!r}")


def _if_else(statement: If, pragmas: Pragmas, level: int) -> list[str]:
    """``if``, ``else if``, ``else``, all with braces."""
    pad = INDENT * level
    printed = [
        f"{pad}if ({pragmas.show(statement.condition)}) {{",
        *lines(statement.then, pragmas, level + 1),
    ]
    match statement.otherwise:
        case (If() as inner,):
            first, *rest = _if_else(inner, pragmas, level)
            return [*printed, f"{pad}}} else {first.lstrip()}", *rest]
        case ():
            return [*printed, f"{pad}}}"]
    return [
        *printed,
        f"{pad}}} else {{",
        *lines(statement.otherwise, pragmas, level + 1),
        f"{pad}}}",
    ]


def _cases(cases: tuple[SwitchCase, ...], pragmas: Pragmas, level: int) -> Iterator[str]:
    pad = INDENT * level
    for case in cases:
        yield f"{pad}case {case.value}: {{  // {one_line(case.comment)}"
        yield from lines(case.body, pragmas, level + 1)
        yield f"{pad}{INDENT}break;"
        yield f"{pad}}}"


def _wrapped(start: str, items: list[str], pad: str) -> list[str]:
    """``start item, item;`` in lines that are not too long."""
    done = [start + items[0]]
    for item in items[1:]:
        if len(done[-1]) + len(item) < _WIDTH:
            done[-1] += f", {item}"
        else:
            done[-1] += ","
            done.append(pad + item)
    return [*done[:-1], f"{done[-1]};"]


def _is_short(body: tuple[TargetStatement, ...]) -> bool:
    """Whether a loop around the body needs no braces: one statement without pragmas."""
    match body:
        case (Set() | Increment() | Do(),):
            return True
        case (For(unroll=False, coalesced=1, independent=()),):
            return True
    return False


def _block(
    head: str,
    body: tuple[TargetStatement, ...],
    pragmas: Pragmas,
    level: int,
    inside: Iterable[str] = (),
) -> list[str]:
    pad = INDENT * level
    return [
        f"{pad}{head} {{",
        *(f"{pad}{INDENT}{line}" for line in inside),
        *lines(body, pragmas, level + 1),
        f"{pad}}}",
    ]
