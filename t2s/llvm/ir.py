"""LLVM code as text: types, values, modules of functions, and a builder that appends to blocks.

A value is its text and its type; a function is a list of blocks, and a block a list of lines and a
terminator, which the builder appends.  Nothing is folded or checked here, because LLVM does both
when it parses the text, type errors included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

from t2s.core.errors import InternalError


@dataclass(frozen=True, slots=True, eq=False)
class LLVMType:
    """A type; types are unique objects, compared with ``is``.

    Attributes
    ----------
    text: its LLVM text.
    suffix: its part in the name of an overloaded intrinsic.
    lanes: lanes of a vector; 0 for all other types.
    element: element type of a vector; for all other types the type itself.
    null: its zero constant.
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
    """An operand: a constant, an argument, or the result of an instruction."""

    text: str
    type: LLVMType


@dataclass(slots=True, eq=False)
class Slot(Value):
    """The address and the type of a stack slot."""

    kept: LLVMType


@dataclass(slots=True, eq=False)
class Phi(Value):
    """A phi node: a value chosen by the predecessor block."""

    _incoming: list[str] = field(default_factory=list)

    def add_incoming(self, value: Value, block: BasicBlock) -> None:
        """Add the value for entry from a predecessor block."""
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
    """A basic block; lines are appended before its terminator."""

    label: str
    lines: list[str | Phi] = field(default_factory=list)
    end: str | None = None

    def __str__(self) -> str:
        lines = "".join([f"  {line}\n" for line in self.lines])
        return f"{self.label}:\n{lines}  {self.end or 'unreachable'}\n"


@dataclass(slots=True, eq=False, kw_only=True)
class LLVMFunction:
    """A function of a module; its first block is its entry.

    ``returns`` may be set until the first call of the function.
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
        block = BasicBlock(f"{name}{len(self.blocks)}")
        self.blocks.append(block)
        return block

    def __str__(self) -> str:
        linkage = "internal " if self.internal else ""
        blocks = "".join(map(str, self.blocks))
        return f"define {linkage}{self.returns} {self.signature} {{\n{blocks}}}"


@dataclass(slots=True, eq=False)
class Module:
    """A module: functions, tables and declarations, in order of creation."""

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
        """A new function; ``noalias``: the first argument does not alias other pointers."""
        args = tuple(Value(f"%a{number}", type) for number, type in enumerate(arguments))
        marks = [" noalias" if noalias and not number else "" for number in range(len(args))]
        listed = ", ".join(
            f"{arg.type}{mark} {arg.text}" for arg, mark in zip(args, marks, strict=True)
        )
        signature = f"@{name}({listed}){' ' if attributes else ''}{attributes}"
        function = LLVMFunction(
            module=self, name=name, returns=returns, args=args, signature=signature
        )
        self._parts.append(function)
        return function

    def table(self, name: str, element: LLVMType, numbers: Sequence[int]) -> Value:
        """The address of constant integers."""
        entries = ", ".join([f"{element} {number}" for number in numbers])
        kind = f"[{len(numbers)} x {element}]"
        self._parts.append(f"@{name} = internal constant {kind} [{entries}]")
        return Value(f"@{name}", POINTER)

    def declare(self, name: str, returns: LLVMType, arguments: Sequence[LLVMType]) -> None:
        """Declare an intrinsic, once."""
        if name not in self._declared:
            self._declared.add(name)
            listed = ", ".join(map(str, arguments))
            self._parts.append(f"declare {returns} @{name}({listed})")

    def __str__(self) -> str:
        return "\n".join(map(str, self._parts))


# A builder of LLVM code: every method appends a line to a block.
#
# >>> from t2s.llvm.ir import I64, Module
# >>> module = Module()
# >>> function = module.function("double", I64, [I64])
# >>> builder = Builder(function)
# >>> builder.ret(builder.add(function.args[0], function.args[0]))
# >>> print(module)
# define i64 @double(i64 %a0) {
# entry0:
#   %v1 = add i64 %a0, %a0
#   ret i64 %v1
# }

_PREDICATES = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_SIGNED, _UNSIGNED = (
    {
        sign: f"icmp {name if name in ('eq', 'ne') else letter + name}"
        for sign, name in _PREDICATES.items()
    }
    for letter in "su"
)


def _in_region(name: str) -> str:
    """Mark an access as one to the named memory region, distinct from all others (TBAA)."""
    if not name:
        return ""
    type = f'!{{!"{name}", !{{!"memory"}}, i64 0}}'
    return f", !tbaa !{{{type}, {type}, i64 0}}"


class Builder:
    """Appends instructions to ``block``.

    Integers are signed and operators wrap around unless a name or ``flags`` (``nsw``, ``nuw``) says
    otherwise.
    """

    __slots__ = ("_made", "block", "function")

    def __init__(self, function: LLVMFunction) -> None:
        """Start at the entry of a function, which has a single builder."""
        self.function = function
        self.block = function.blocks[0] if function.blocks else function.block("entry")
        self._made = 0

    def _new(self, code: str, type: LLVMType) -> Value:
        """Append an instruction with a result."""
        self._made += 1
        name = f"%v{self._made}"
        self.block.lines.append(f"{name} = {code}")
        return Value(name, type)

    # -- where ------------------------------------------------------------------------------------

    def position_at_end(self, block: BasicBlock) -> None:
        """Go on in another block."""
        self.block = block

    @contextmanager
    def goto_entry_block(self) -> Iterator[None]:
        """Append instructions to the entry block, before its terminator."""
        current, self.block = self.block, self.function.blocks[0]
        yield
        self.block = current

    @contextmanager
    def if_then(self, condition: Value, *, rare: bool = False) -> Iterator[None]:
        """Instructions guarded by a condition; ``rare`` marks it as unlikely."""
        inside, after = self.function.block("then"), self.function.block("after")
        self.cbranch(condition, inside, after, weights=(1, 99) if rare else None)
        self.block = inside
        yield
        if self.block.end is None:
            self.branch(after)
        self.block = after

    @contextmanager
    def counting(
        self, start: Value, end: Value, step: int = 1, *, flags: str = ""
    ) -> Iterator[Value]:
        """A loop over numbers from ``start`` to ``end``, exclusive."""
        before = self.block
        head, body, after = (self.function.block(name) for name in ("head", "body", "after"))
        self.branch(head)
        self.block = head
        index = self.phi(start.type)
        index.add_incoming(start, before)
        self.cbranch(self.icmp_signed("<", index, end), body, after)
        self.block = body
        yield index
        following = self.add(index, integer(step, start.type), flags)
        index.add_incoming(following, self.block)
        self.branch(head)
        self.block = after

    # -- ends of blocks ---------------------------------------------------------------------------

    def _end(self, line: str) -> None:
        if self.block.end is not None:
            raise InternalError(f"block {self.block.label} of {self.function.name} ends twice")
        self.block.end = line

    def branch(self, block: BasicBlock) -> None:
        """Go on in another block."""
        self._end(f"br label %{block.label}")

    def cbranch(
        self,
        condition: Value,
        if_true: BasicBlock,
        if_false: BasicBlock,
        *,
        weights: tuple[int, int] | None = None,
        unpredictable: bool = False,
    ) -> None:
        """Branch to one of two blocks; ``weights`` are their branch weights."""
        hint = ", !unpredictable !{}" if unpredictable else ""
        if weights is not None:
            hint = f', !prof !{{!"branch_weights", i32 {weights[0]}, i32 {weights[1]}}}'
        labels = f"label %{if_true.label}, label %{if_false.label}"
        self._end(f"br i1 {condition.text}, {labels}{hint}")

    def switch(self, value: Value, blocks: Sequence[BasicBlock]) -> None:
        """Jump to the block of a number, or to ``default``."""
        cases = " ".join(
            [f"{value.type} {n}, label %{block.label}" for n, block in enumerate(blocks) if n]
        )
        self._end(f"switch {value.type} {value.text}, label %{blocks[0].label} [{cases}]")

    def ret(self, value: Value) -> None:
        """Return a value."""
        self._end(f"ret {value.type.text} {value.text}")

    def ret_void(self) -> None:
        """Return."""
        self._end("ret void")

    # -- memory -----------------------------------------------------------------------------------

    def alloca(self, type: LLVMType, count: int = 1, align: int = 0) -> Slot:
        """A stack slot."""
        many = f", i64 {count}" if count != 1 else ""
        code = f"alloca {type.text}{many}{f', align {align}' if align else ''}"
        return Slot(self._new(code, POINTER).text, POINTER, type)

    def load(
        self,
        pointer: Value,
        type: LLVMType,
        align: int = 0,
        *,
        invariant: bool = False,
        region: str = "",
    ) -> Value:
        """Load from an address; ``align`` 0 is the alignment of the type.

        ``invariant``: the memory does not change while the function runs.
        """
        suffix = f", align {align}" if align else ""
        if invariant:
            suffix += ", !invariant.load !{}"
        suffix += _in_region(region)
        return self._new(f"load {type.text}, ptr {pointer.text}{suffix}", type)

    def store(self, value: Value, pointer: Value, align: int = 0, *, region: str = "") -> None:
        """Store to an address."""
        code = f"store {value.type.text} {value.text}, ptr {pointer.text}"
        self.block.lines.append((f"{code}, align {align}" if align else code) + _in_region(region))

    def offset(self, pointer: Value, bytes: Value, *, inbounds: bool = True) -> Value:
        """The address ``bytes`` further on; ``inbounds``: within the same object."""
        mark = "inbounds " if inbounds else ""
        code = f"getelementptr {mark}i8, ptr {pointer.text}, {bytes.type.text} {bytes.text}"
        return self._new(code, POINTER)

    def element(self, pointer: Value, type: LLVMType, index: Value) -> Value:
        """The address of an element of an array at ``pointer``."""
        code = f"getelementptr inbounds {type.text}, ptr {pointer.text}, i64 {index.text}"
        return self._new(code, POINTER)

    # -- structs ----------------------------------------------------------------------------------

    def struct(self, type: LLVMType, values: Sequence[Value]) -> Value:
        """A struct of these values."""
        result = undefined(type)
        for at, value in enumerate(values):
            operands = f"{type.text} {result.text}, {value.type.text} {value.text}"
            result = self._new(f"insertvalue {operands}, {at}", type)
        return result

    def extract_value(self, struct: Value, at: int, type: LLVMType) -> Value:
        """A value of a struct."""
        return self._new(f"extractvalue {struct.type.text} {struct.text}, {at}", type)

    # -- calls ------------------------------------------------------------------------------------

    def call(self, function: LLVMFunction, arguments: Sequence[Value]) -> Value:
        """Call a function of the module."""
        return self._call(f"@{function.name}", function.returns, arguments)

    def call_at(self, pointer: Value, returns: LLVMType, arguments: Sequence[Value]) -> Value:
        """Call a function by its address."""
        return self._call(pointer.text, returns, arguments)

    def intrinsic(self, name: str, returns: LLVMType, arguments: Sequence[Value]) -> Value:
        """Call the LLVM intrinsic of this full name."""
        self.function.module.declare(name, returns, [value.type for value in arguments])
        return self._call(f"@{name}", returns, arguments)

    def _call(self, callee: str, returns: LLVMType, arguments: Sequence[Value]) -> Value:
        operands = ", ".join([f"{value.type.text} {value.text}" for value in arguments])
        code = f"call {returns.text} {callee}({operands})"
        if returns is VOID:
            self.block.lines.append(code)
            return Value("void", VOID)
        return self._new(code, returns)

    # -- operators --------------------------------------------------------------------------------

    def _binary(self, operator: str, left: Value, right: Value) -> Value:
        return self._new(f"{operator} {left.type.text} {left.text}, {right.text}", left.type)

    def add(self, left: Value, right: Value, flags: str = "") -> Value:
        """Integer addition."""
        return self._binary(f"add {flags}", left, right)

    def sub(self, left: Value, right: Value, flags: str = "") -> Value:
        """Integer subtraction."""
        return self._binary(f"sub {flags}", left, right)

    def mul(self, left: Value, right: Value, flags: str = "") -> Value:
        """Integer multiplication."""
        return self._binary(f"mul {flags}", left, right)

    def udiv(self, left: Value, right: Value) -> Value:
        """Unsigned division."""
        return self._binary("udiv", left, right)

    def sdiv(self, left: Value, right: Value) -> Value:
        """Signed division, towards zero."""
        return self._binary("sdiv", left, right)

    def urem(self, left: Value, right: Value) -> Value:
        """Unsigned remainder."""
        return self._binary("urem", left, right)

    def srem(self, left: Value, right: Value) -> Value:
        """Signed remainder, of the sign of the dividend."""
        return self._binary("srem", left, right)

    def and_(self, left: Value, right: Value) -> Value:
        """Bitwise and."""
        return self._binary("and", left, right)

    def or_(self, left: Value, right: Value) -> Value:
        """Bitwise or."""
        return self._binary("or", left, right)

    def xor(self, left: Value, right: Value) -> Value:
        """Bitwise exclusive or."""
        return self._binary("xor", left, right)

    def shl(self, left: Value, right: Value) -> Value:
        """Shift left."""
        return self._binary("shl", left, right)

    def lshr(self, left: Value, right: Value) -> Value:
        """Logical shift right."""
        return self._binary("lshr", left, right)

    def ashr(self, left: Value, right: Value) -> Value:
        """Arithmetic shift right."""
        return self._binary("ashr", left, right)

    def fadd(self, left: Value, right: Value) -> Value:
        """Addition of floats."""
        return self._binary("fadd", left, right)

    def fsub(self, left: Value, right: Value) -> Value:
        """Subtraction of floats."""
        return self._binary("fsub", left, right)

    def fmul(self, left: Value, right: Value) -> Value:
        """Multiplication of floats."""
        return self._binary("fmul", left, right)

    def fdiv(self, left: Value, right: Value) -> Value:
        """Division of floats."""
        return self._binary("fdiv", left, right)

    def neg(self, value: Value) -> Value:
        """The negative integer."""
        return self._binary("sub", null(value.type), value)

    def not_(self, value: Value) -> Value:
        """All bits inverted."""
        return self._binary("xor", value, integer(-1, value.type))

    def fneg(self, value: Value) -> Value:
        """The negative float."""
        return self._new(f"fneg {value.type.text} {value.text}", value.type)

    def _compare(self, operator: str, left: Value, right: Value) -> Value:
        type = vector_type(I1, left.type.lanes) if left.type.lanes else I1
        return self._new(f"{operator} {left.type.text} {left.text}, {right.text}", type)

    def icmp_signed(self, sign: str, left: Value, right: Value) -> Value:
        """A comparison of signed integers, ``sign`` as in Python."""
        return self._compare(_SIGNED[sign], left, right)

    def icmp_unsigned(self, sign: str, left: Value, right: Value) -> Value:
        """A comparison of unsigned integers."""
        return self._compare(_UNSIGNED[sign], left, right)

    def fcmp_ordered(self, sign: str, left: Value, right: Value) -> Value:
        """A comparison of floats, false for NaN operands."""
        return self._compare(f"fcmp o{_PREDICATES[sign]}", left, right)

    def fcmp_unordered(self, sign: str, left: Value, right: Value) -> Value:
        """A comparison of floats, true for NaN operands."""
        return self._compare(f"fcmp u{_PREDICATES[sign]}", left, right)

    def is_nan(self, value: Value) -> Value:
        """Whether a float is a NaN."""
        return self._compare("fcmp uno", value, value)

    def select(
        self, condition: Value, if_true: Value, if_false: Value, *, unpredictable: bool = False
    ) -> Value:
        """Select one of two values; ``unpredictable``: must not become a branch."""
        operands = (condition, if_true, if_false)
        code = "select " + ", ".join(
            [f"{operand.type.text} {operand.text}" for operand in operands]
        )
        hint = ", !unpredictable !{}" if unpredictable else ""
        return self._new(code + hint, if_true.type)

    def phi(self, type: LLVMType) -> Phi:
        """A phi node in the current block."""
        self._made += 1
        phi = Phi(f"%v{self._made}", type)
        self.block.lines.append(phi)
        return phi

    # -- conversions ------------------------------------------------------------------------------

    def _cast(self, operator: str, value: Value, type: LLVMType) -> Value:
        if value.type is type:
            return value
        return self._new(f"{operator} {value.type.text} {value.text} to {type.text}", type)

    def trunc(self, value: Value, type: LLVMType) -> Value:
        """Truncate an integer."""
        return self._cast("trunc", value, type)

    def zext(self, value: Value, type: LLVMType) -> Value:
        """Zero-extend an integer."""
        return self._cast("zext", value, type)

    def sext(self, value: Value, type: LLVMType) -> Value:
        """Sign-extend an integer."""
        return self._cast("sext", value, type)

    def fptrunc(self, value: Value, type: LLVMType) -> Value:
        """A narrower float."""
        return self._cast("fptrunc", value, type)

    def fpext(self, value: Value, type: LLVMType) -> Value:
        """A wider float."""
        return self._cast("fpext", value, type)

    def sitofp(self, value: Value, type: LLVMType) -> Value:
        """A signed integer as a float."""
        return self._cast("sitofp", value, type)

    def uitofp(self, value: Value, type: LLVMType) -> Value:
        """An unsigned integer as a float."""
        return self._cast("uitofp", value, type)

    def bitcast(self, value: Value, type: LLVMType) -> Value:
        """The same bits."""
        return self._cast("bitcast", value, type)

    def inttoptr(self, value: Value, type: LLVMType) -> Value:
        """A number as an address."""
        return self._cast("inttoptr", value, type)

    def ptrtoint(self, value: Value, type: LLVMType) -> Value:
        """An address as a number."""
        return self._cast("ptrtoint", value, type)

    # -- vectors ----------------------------------------------------------------------------------

    def extract_element(self, vector: Value, lane: int) -> Value:
        """One lane."""
        operand = f"{vector.type.text} {vector.text}"
        return self._new(f"extractelement {operand}, i32 {lane}", vector.type.element)

    def insert_element(self, vector: Value, value: Value, lane: int) -> Value:
        """The vector with another value in one lane."""
        operand = f"{value.type.text} {value.text}"
        code = f"insertelement {vector.type.text} {vector.text}, {operand}, i32 {lane}"
        return self._new(code, vector.type)

    def shuffle_vector(self, left: Value, right: Value, lanes: Sequence[int]) -> Value:
        """These lanes of two vectors, numbered through."""
        operands = (left, right, constant_vector(lanes, I32))
        code = "shufflevector " + ", ".join(
            [f"{operand.type.text} {operand.text}" for operand in operands]
        )
        return self._new(code, vector_type(left.type.element, len(lanes)))

    def splat(self, scalar: Value, lanes: int) -> Value:
        """A scalar repeated over the lanes; for one lane the scalar itself."""
        if lanes == 1:
            return scalar
        vector = undefined(vector_type(scalar.type, lanes))
        return self.shuffle_vector(self.insert_element(vector, scalar, 0), vector, [0] * lanes)
