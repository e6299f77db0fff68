"""A dialect: how a language for FPGAs spells kernels, channels, types and memories.

The rooms around it know loops, PEs and channels; ``Dialect`` has everything that differs between
OpenCL for Intel FPGAs and other C-like languages.  A backend derives one class from it.

A scalar is a built-in type; a bool is ``bool`` in a variable and a byte in arrays, channels and
memory.  A vector of ``native_lanes`` is a built-in vector, as in OpenCL; of any other number, a
struct of an array (``float_x10``).  Lanes of a bool vector are the bytes 0 and 1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from t2s.backends.kernels.kernel_ast import (
    CastTo,
    Declare,
    FieldOf,
    FilledInitializer,
    For,
    Struct,
    Subscript,
    TypedName,
    While,
    ZeroInitializer,
    spelling,
)
from t2s.backends.text.expressions import (
    Do,
    Literal,
    Name,
    Spelling,
    TargetExpression,
    TargetStatement,
    call,
    number,
)
from t2s.backends.text.identifiers import Identifiers
from t2s.core.ops import Op
from t2s.core.types import Kind, Type
from t2s.graph.nodes import Register


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """An access to consecutive elements of a tensor.

    ``position`` is that of the first one; ``aligned`` ones start at a multiple of the lanes.  Where
    the tensor is a parameter of vectors, ``position`` counts vectors, and the access is ``whole``.
    ``shared``: one kernel writes the tensor, and another one reads it.
    """

    tensor: str
    position: TargetExpression
    type: Type
    aligned: bool
    shared: bool
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StateArray:
    """An array inside a kernel; PEs and unrolled loops index the dimensions ``split``.

    ``in_memory``: it belongs into block RAM.  ``single_ports``: one place reads, and one writes.
    ``lanes``: an access takes as many consecutive elements.
    """

    name: str
    type: Type
    dimensions: tuple[int, ...]
    split: tuple[int, ...]
    in_memory: bool = False
    single_ports: bool = False
    lanes: int = 1


VALUE, TAG = "value", "tag"
"""The fields of a token."""


class Dialect(ABC):
    """The spelling of one language.

    ``title`` names it in messages: "not supported in OpenCL".  ``endless``: a kernel without
    arguments may run forever.  ``wide_parameters``: a tensor of which a kernel only uses aligned
    vectors is a parameter of vectors.  ``flattens``: the compiler makes one loop of every perfect
    nest of constant bounds, and other nests have to be written as one loop.  ``drops_unused``: a
    token that nothing uses is read into no variable.  ``starts_at_zero``: so do scalars that are
    set under a condition, or compilers warn of them.  ``sparse``: machines may have streams with
    stop tokens, tensors on the chip and of unknown length, sorted memories and searches; they say
    at their end how it went, and how much they have stored.
    """

    title: ClassVar[str]
    native_lanes: ClassVar[frozenset[int]]
    endless: ClassVar[bool]
    wide_parameters: ClassVar[bool] = False
    flattens: ClassVar[bool] = False
    drops_unused: ClassVar[bool] = False
    starts_at_zero: ClassVar[bool] = False
    sparse: ClassVar[bool] = False

    # ------------------------------------------------------------------------------- types

    @abstractmethod
    def unsupported_type(self, type: Type) -> str | None:
        """Why the language does not support a type; ``None`` if it does."""

    @abstractmethod
    def scalar_name(self, type: Type) -> str:
        """One lane in memory; a bool is a byte."""

    def is_struct(self, type: Type) -> bool:
        """Whether the type is a vector that the language has no built-in type for."""
        return type.lanes > 1 and type.lanes not in self.native_lanes

    def storage_name(self, type: Type) -> str:
        """The type in arrays, structs, channels and memory."""
        if type.lanes == 1:
            return self.scalar_name(type)
        if self.is_struct(type):
            return f"{self.scalar_name(type)}_x{type.lanes}"
        return f"{self.scalar_name(type)}{type.lanes}"

    def token_name(self, type: Type) -> str:
        """The struct of a value and a tag: the tokens of streams with stop tokens."""
        return f"{self.storage_name(type).removesuffix('_t')}_token_t"

    def token_of(self, type: Type) -> Struct:
        """The definition of that struct."""
        tag = TypedName(type=self.scalar_name(Type(Kind.INT, 8)), name=TAG)
        fields = (TypedName(type=self.storage_name(type), name=VALUE), tag)
        return Struct(name=self.token_name(type), fields=fields)

    def value_name(self, type: Type) -> str:
        """The type of a variable: as in storage, but ``bool`` for a single bool."""
        return "bool" if type.is_bool and type.lanes == 1 else self.storage_name(type)

    def suffix_name(self, type: Type) -> str:
        """The suffix of helper functions: as in storage, but bools and bytes differ."""
        name = self.storage_name(type)
        return name.replace(self.scalar_name(type.scalar), "bool") if type.is_bool else name

    def struct_of(self, type: Type) -> Struct:
        """The definition of a vector that the language has no built-in type for."""
        field = TypedName(type=self.scalar_name(type), name="s", dimensions=(type.lanes,))
        return Struct(name=self.storage_name(type), fields=(field,))

    def zero(self, type: Type) -> TargetExpression:
        """Zero of a scalar or of a built-in vector."""
        scalar = literal(0, type)
        if type.lanes == 1:
            return scalar
        if type.is_bool:
            scalar = number(0)
        return CastTo(type=self.storage_name(type), values=(scalar,))

    def start_of(self, register: Register, dimensions: tuple[int, ...]) -> TargetExpression:
        """The initializer of a register file: of a variable, or of an array of these dimensions."""
        type = register.type
        if repr(register.initial) == "0":
            return ZeroInitializer() if dimensions or self.is_struct(type) else self.zero(type)
        scalar = literal(register.initial, type)
        count = prod(dimensions)
        if self.is_struct(type):
            return FilledInitializer(value=scalar, count=count * type.lanes)
        value = scalar
        if type.lanes > 1:
            value = CastTo(type=self.storage_name(type), values=(scalar,))
        return FilledInitializer(value=value, count=count) if dimensions else value

    def lane(self, vector: TargetExpression, index: int, type: Type) -> TargetExpression:
        """One lane of a vector: ``v.s[3]`` of a struct, ``v.s3`` of a built-in vector."""
        if self.is_struct(type):
            return Subscript(base=FieldOf(base=vector, field="s"), indices=(number(index),))
        return FieldOf(base=vector, field=f"s{index:x}")

    # ------------------------------------------------------------------------------- names

    @abstractmethod
    def identifier(self, name: str, *, variable: bool = False) -> str:
        """An identifier that resembles ``name`` and has no meaning in the language.

        A ``variable`` of a kernel may have the name of a built-in function that no kernel calls.
        """

    def variable_name(self, name: str) -> str:
        """The identifier of a variable of a kernel."""
        return self.identifier(name, variable=True)

    def file_identifiers(self) -> Identifiers:
        """The identifiers of a file: kernels, channels, types and functions."""
        return Identifiers(self.identifier)

    def variables(self, taken: Iterable[str] = ()) -> Identifiers:
        """The identifiers of a kernel, distinct from those of its file."""
        return Identifiers(self.variable_name, taken)

    # ---------------------------------------------------------------------------- channels

    @abstractmethod
    def read_channel(self, source: TargetExpression) -> TargetExpression:
        """Take a token from a channel."""

    @abstractmethod
    def write_channel(self, target: TargetExpression, value: TargetExpression) -> Do:
        """Put a token into a channel."""

    @abstractmethod
    def control_fence(self) -> list[TargetStatement]:
        """Order memory and channel accesses: a token that announces data follows their write."""

    @abstractmethod
    def passed_on(self, value: TargetExpression) -> TargetExpression:
        """A value for the next PE, in a register: no signal crosses many PEs in one cycle."""

    def stop_simulation(self, message: str) -> list[TargetStatement]:
        """End a simulation with an error; in hardware, nothing."""
        return []

    def inside(self, index: TargetExpression, extent: TargetExpression) -> TargetExpression:
        """An index of which a simulation checks that it is from 0 to ``extent - 1``."""
        return index

    @abstractmethod
    def protocol_error(self, machine: str, mode: TargetExpression) -> list[TargetStatement]:
        """What a machine does with tokens that its protocol does not allow.

        It runs as long as the variable ``mode`` is not negative.
        """

    # ------------------------------------------------------------------------------ memory

    @abstractmethod
    def tensor_parameter(self, name: str, type: Type, *, stored: bool, shared: bool) -> TypedName:
        """The parameter of a kernel that a tensor is; ``type`` is that of its elements.

        ``stored``: the kernel writes it.  ``shared``: other kernels may write what this one reads.
        """

    @abstractmethod
    def vector_load(self, access: Access) -> TargetExpression | None:
        """Several lanes as one expression; ``None`` to load them one by one into a struct."""

    @abstractmethod
    def vector_store(self, access: Access, value: TargetExpression) -> list[TargetStatement] | None:
        """Statements that store several lanes; ``None`` to store those of a struct one by one."""

    @abstractmethod
    def banks(self, type: Type, extents: tuple[int, ...]) -> tuple[int, ...]:
        """The number of banks of a block RAM along the dimensions of the PEs."""

    @abstractmethod
    def array_attributes(self, array: StateArray) -> tuple[str, ...]:
        """How an array of a kernel is built."""

    # --------------------------------------------------------------------------- operators

    @abstractmethod
    def function(self, operator: Op, type: Type) -> str | None:
        """The built-in function that is an operator; ``None`` if there is none."""

    @abstractmethod
    def absolute(self, operand: TargetExpression, type: Type, define: Define) -> TargetExpression:
        """The absolute value of a signed integer; that of the least one is itself."""

    @abstractmethod
    def saturated(
        self, value: TargetExpression, source: Type, target: Type, define: Define
    ) -> TargetExpression:
        """A float as an integer: truncated, saturated, and 0 for NaN."""

    # ----------------------------------------------------------------------------- printer

    def show(self, expression: TargetExpression, outer: int = 0) -> str:
        """The text of an expression; ``outer`` is the precedence of the surrounding operator."""
        return _SPELLING.show(expression, outer)

    def before_declaration(self, statement: Declare) -> list[str]:
        """Lines before a declaration."""
        return []

    def after_declaration(self, statement: Declare) -> list[str]:
        """Lines after a declaration."""
        return []

    def before_loop(self, loop: For) -> list[str]:
        """Lines before a loop."""
        return []

    def inside_loop(self, loop: For | While) -> list[str]:
        """Lines at the start of a loop's body."""
        return []


_SPELLING = Spelling(spelling)

Define = Callable[..., TargetExpression]
"""Defines a helper function if it is new, and calls it: see ``Helpers.define``."""


def literal(value: int | float | bool, type: Type) -> TargetExpression:
    """A scalar constant of one lane of ``type``."""
    match type.kind:
        case Kind.BOOL:
            return Literal(text="true" if value else "false")
        case Kind.INT | Kind.UINT:
            return _integer(int(value), type)
        case _:
            return _float(float(value), type)


def _integer(value: int, type: Type) -> TargetExpression:
    suffix = ("u" if type.kind is Kind.UINT else "") + ("L" if type.bits == 64 else "")
    if type.kind is Kind.INT and value == -(2 ** (type.bits - 1)) and type.bits >= 32:
        return Literal(text="LONG_MIN" if type.bits == 64 else "INT_MIN")
    return Literal(text=f"{value}{suffix if type.bits >= 32 else ''}")


def _float(value: float, type: Type) -> TargetExpression:
    if type.bits == 16:  # a class of that name, made of a float
        name = "bfloat16" if type.kind is Kind.BFLOAT else "float16"
        with np.errstate(over="ignore"):
            nearest = float(np.asarray(value).astype(type.numpy))
        return call(name, _float(nearest, Type(Kind.FLOAT, 32)))
    single = type.bits == 32
    if math.isnan(value):
        return Literal(text="NAN")
    rounded = np.float32(value) if single else np.float64(value)
    if math.isinf(rounded):
        sign = "-" if rounded < 0 else ""
        return Literal(text=f"{sign}INFINITY")
    return Literal(text=f"{rounded!s}{'f' if single else ''}")


def lane_at(vector: TargetExpression, index: str) -> TargetExpression:
    """Lane ``index`` (a variable) of a struct vector."""
    return Subscript(base=FieldOf(base=vector, field="s"), indices=(Name(name=index),))
