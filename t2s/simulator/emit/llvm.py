"""LLVM code as text: types, values, and modules of functions.

A value is its text and its type; a function is a list of blocks, and a block a list of lines and an
end, which ``builder`` writes.  Nothing is folded or checked here, because LLVM does both when it
reads the text: types that do not fit are refused there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache


@dataclass(frozen=True, slots=True, eq=False)
class LLVMType:
    """A type; there is one object for each, so types are compared with ``is``.

    Attributes
    ----------
    text: as it is written.
    suffix: its part of the name of an overloaded intrinsic.
    lanes: of a vector; 0 for all others.
    element: of a vector; for all others the type itself.
    null: its zero.
    """

    text: str
    suffix: str
    null: str
    lanes: int = 0
    _element: LLVMType | None = None

    @property
    def element(self) -> LLVMType:
        """The type of a lane."""
        return self._element or self

    def __str__(self) -> str:
        return self.text


@cache
def integer_type(bits: int) -> LLVMType:
    """``i1``, ``i8``, ..."""
    return LLVMType(f"i{bits}", f"i{bits}", "0")


@cache
def vector_type(element: LLVMType, lanes: int) -> LLVMType:
    """``<4 x i32>``, ..."""
    text, suffix = f"<{lanes} x {element}>", f"v{lanes}{element.suffix}"
    return LLVMType(text, suffix, "zeroinitializer", lanes, element)


@cache
def struct_type(*parts: LLVMType) -> LLVMType:
    """``{ i64, i1 }``, ..."""
    return LLVMType(f"{{ {', '.join(part.text for part in parts)} }}", "", "zeroinitializer")


I1, I8, I16, I32, I64 = (integer_type(bits) for bits in (1, 8, 16, 32, 64))
HALF = LLVMType("half", "f16", "0.0")
FLOAT = LLVMType("float", "f32", "0.0")
DOUBLE = LLVMType("double", "f64", "0.0")
POINTER = LLVMType("ptr", "p0", "null")
VOID = LLVMType("void", "", "")


@dataclass(slots=True, eq=False)
class Value:
    """An operand: a constant, an argument, or what an instruction gave."""

    text: str
    type: LLVMType


@dataclass(slots=True, eq=False)
class Slot(Value):
    """The address of a place on the stack, and the type of what is kept there."""

    kept: LLVMType


@dataclass(slots=True, eq=False)
class Phi(Value):
    """A value that depends on the block from which its own is entered."""

    _incoming: list[str] = field(default_factory=list)

    def add_incoming(self, value: Value, block: BasicBlock) -> None:
        """The value if the own block is entered from this one."""
        self._incoming.append(f"[{value.text}, %{block.label}]")

    def __str__(self) -> str:
        return f"{self.text} = phi {self.type.text} {', '.join(self._incoming)}"


def integer(value: int, type: LLVMType = I64) -> Value:
    """An integer constant; a vector type repeats it over the lanes."""
    if type.lanes:
        return constant_vector([value] * type.lanes, type.element)
    return Value(str(value), type)


def constant_vector(numbers: Sequence[int], element: LLVMType) -> Value:
    """A vector of integer constants."""
    lanes = ", ".join([f"{element.text} {number}" for number in numbers])
    return Value(f"<{lanes}>", vector_type(element, len(numbers)))


def null(type: LLVMType) -> Value:
    """The zero of a type, all lanes."""
    return Value(type.null, type)


def undefined(type: LLVMType) -> Value:
    """Any value of a type."""
    return Value("undef", type)


@dataclass(slots=True, eq=False)
class BasicBlock:
    """A basic block; what is appended comes before its end."""

    label: str
    lines: list[str | Phi] = field(default_factory=list)
    end: str | None = None

    def __str__(self) -> str:
        lines = "".join([f"  {line}\n" for line in self.lines])
        return f"{self.label}:\n{lines}  {self.end or 'unreachable'}\n"


@dataclass(slots=True, eq=False, kw_only=True)
class LLVMFunction:
    """A function of a module; its first block is its entry.

    ``returns`` may be set until the function is called.
    """

    module: Module
    name: str
    returns: LLVMType
    args: tuple[Value, ...]
    signature: str
    internal: bool = False
    blocks: list[BasicBlock] = field(default_factory=list)

    def block(self, name: str) -> BasicBlock:
        """A new block, after all others."""
        made = BasicBlock(f"{name}{len(self.blocks)}")
        self.blocks.append(made)
        return made

    def __str__(self) -> str:
        linkage = "internal " if self.internal else ""
        blocks = "".join(map(str, self.blocks))
        return f"define {linkage}{self.returns} {self.signature} {{\n{blocks}}}"


@dataclass(slots=True, eq=False)
class Module:
    """A module: functions, tables and declarations in the order in which they were made."""

    _parts: list[str | LLVMFunction] = field(default_factory=list)
    _declared: set[str] = field(default_factory=set)

    def function(
        self,
        name: str,
        returns: LLVMType,
        arguments: Sequence[LLVMType],
        *,
        attributes: str = "",
        noalias: bool = False,
    ) -> LLVMFunction:
        """A new function; ``noalias``: nothing else points to what the first argument does."""
        args = tuple(Value(f"%a{number}", type) for number, type in enumerate(arguments))
        marks = [" noalias" if noalias and not number else "" for number in range(len(args))]
        listed = ", ".join(
            f"{arg.type}{mark} {arg.text}" for arg, mark in zip(args, marks, strict=True)
        )
        signature = f"@{name}({listed}){' ' if attributes else ''}{attributes}"
        made = LLVMFunction(module=self, name=name, returns=returns, args=args, signature=signature)
        self._parts.append(made)
        return made

    def table(self, name: str, element: LLVMType, numbers: Sequence[int]) -> Value:
        """The address of constant integers."""
        entries = ", ".join([f"{element} {number}" for number in numbers])
        kind = f"[{len(numbers)} x {element}]"
        self._parts.append(f"@{name} = internal constant {kind} [{entries}]")
        return Value(f"@{name}", POINTER)

    def declare(self, name: str, returns: LLVMType, arguments: Sequence[LLVMType]) -> None:
        """An intrinsic, once."""
        if name not in self._declared:
            self._declared.add(name)
            listed = ", ".join(map(str, arguments))
            self._parts.append(f"declare {returns} @{name}({listed})")

    def __str__(self) -> str:
        return "\n".join(map(str, self._parts))
