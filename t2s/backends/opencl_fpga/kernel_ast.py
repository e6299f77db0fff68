"""The target AST: the part of OpenCL C that the backend writes.

Everything that has to be decided is decided when this tree is built; ``printer`` and the
templates only spell it.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.backends.text.expressions import (
    Name,
    TargetExpression,
    TargetStatement,
)

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
    """``type __attribute__((attributes)) name[dimensions] = initial;  // comment``."""

    type: str
    name: str
    dimensions: tuple[int, ...] = ()
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
class For(TargetStatement):
    """``for (int name = start; name < stop; name++)``; ``>=`` and ``--`` where ``down``.

    ``stop`` is exclusive upwards and inclusive downwards.  ``coalesced`` counts the perfectly
    nested loops, this one included, that the compiler is asked to flatten into one.
    ``independent`` names arrays of which no element is used again, after or before it is written,
    within a number of iterations, or in the whole loop.
    """

    name: str
    start: TargetExpression
    stop: TargetExpression
    body: tuple[TargetStatement, ...]
    down: bool = False
    unroll: bool = False
    coalesced: int = 1
    independent: tuple[tuple[str, int | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class While(TargetStatement):
    """``while (condition)``."""

    condition: TargetExpression
    body: tuple[TargetStatement, ...]


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
class ChannelArray:
    """``channel type name[dimensions] __attribute__((depth(depth)));``."""

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
    """A kernel: started by the host, or by itself if it has no parameters and may start again."""

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
    """A whole OpenCL file."""

    comment: tuple[str, ...]
    uses_double: bool
    structs: tuple[Struct, ...]
    channels: tuple[ChannelArray, ...]
    functions: tuple[HelperFunction, ...]
    kernels: tuple[KernelDefinition, ...]


def element(name: str, *indices: TargetExpression) -> TargetExpression:
    """``name[indices]``, or ``name`` alone where there are none."""
    base = Name(name=name)
    return Subscript(base=base, indices=indices) if indices else base
