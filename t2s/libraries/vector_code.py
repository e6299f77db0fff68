"""Functions on CPU vectors: LLVM code that is compiled here.

``add8`` adds eight floats by one AVX instruction, so its extent is 8: longer operands are tiled,
and the last tile is padded [Mosaic, sec. 4.2].
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from t2s.capability.declare import make_function
from t2s.capability.description import DataOf, ExternalCall, ExternalFunction, LibraryOf
from t2s.capability.ir import ALWAYS, Capability, parse_capability
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.ops import Op
from t2s.core.types import Float, Type
from t2s.core.validate import as_int, checked_kind
from t2s.sparse_repr.notation.ir import Access, Combine, Expression, Negative, Number, accesses
from t2s.sparse_repr.notation.types import TYPES

MOST_LANES = 64
FLOAT = Float(32)
VECTOR_TYPES = tuple(one for one in TYPES if one.bits >= (32 if one.is_float else 8))

_NAME = "vectors of this CPU"
_HOW = 'python -m pip install "llvmlite>=0.47"'
_FLOAT = MappingProxyType(
    {Op.ADD: "fadd", Op.SUBTRACT: "fsub", Op.MULTIPLY: "fmul", Op.DIVIDE: "fdiv"}
)
_INTEGER = MappingProxyType({Op.ADD: "add", Op.SUBTRACT: "sub", Op.MULTIPLY: "mul"})


@dataclass(slots=True)
class _VectorText:
    """The instructions of one function so far."""

    type: Type
    lanes: int
    location: SourceLocation | None
    lines: list[str] = field(default_factory=list)

    @property
    def element(self) -> str:
        """A value in LLVM."""
        if self.type.is_float:
            return {32: "float", 64: "double"}[self.type.bits]
        return f"i{self.type.bits}"

    @property
    def vector(self) -> str:
        """A vector in LLVM."""
        return f"<{self.lanes} x {self.element}>"

    def made(self, instruction: str) -> str:
        """Emit an instruction; returns its value."""
        name = f"%value{len(self.lines)}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def value(self, term: Expression) -> str:
        """Emit a term as a vector.  Raises ``UserError`` for unsupported terms."""
        operators = _FLOAT if self.type.is_float else _INTEGER
        match term:
            case Access(tensor=name):
                align = self.type.bytes
                return self.made(f"load {self.vector}, ptr %{name}, align {align}")
            case Number(value=value):
                constant = f"{self.element} {self._number(value)}"
                return f"<{', '.join([constant] * self.lanes)}>"
            case Negative(value=value):
                inner = self.value(value)
                if self.type.is_float:
                    return self.made(f"fneg {self.vector} {inner}")
                return self.made(f"sub {self.vector} zeroinitializer, {inner}")
            case Combine(operator=operator) if operator in operators:
                left, right = self.value(term.left), self.value(term.right)
                return self.made(f"{operators[operator]} {self.vector} {left}, {right}")
        raise UserError(
            f"vectors of {self.type} do not compute this",
            location=self.location,
            expected=f"{', '.join(operator.value for operator in operators)}, numbers and elements",
            given=str(term.operator.value) if isinstance(term, Combine) else str(term),
        )

    def _number(self, value: float | int) -> str:
        if not self.type.is_float:
            limits = np.iinfo(self.type.numpy)
            if value == int(value) and limits.min <= value <= limits.max:
                return str(int(value))
            raise UserError(
                f"{value} is not a number of {self.type}",
                location=self.location,
                expected=f"an integer from {limits.min} to {limits.max}",
                given=str(value),
            )
        rounded = struct.unpack("f", struct.pack("f", value))[0] if self.type.bits == 32 else value
        return f"0x{struct.unpack('>Q', struct.pack('>d', rounded))[0]:016X}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorFunction:
    """A function to compile: a statement without a condition, a type, and a number of lanes."""

    name: str
    statement: str
    type: Type = FLOAT
    lanes: int = 8


def _tensors(stated: Capability) -> list[str]:
    names = (access.tensor for access in (*accesses(stated.value), stated.result))
    return list(dict.fromkeys(names))


def _checked(function: VectorFunction, where: SourceLocation) -> Capability:
    """The parsed statement of a vector function; raises ``UserError``."""
    stated = parse_capability(function.statement, where)
    checked_kind("the type of a vector", function.type, Type, "such as t2s.Float(32)")
    used = (stated.result, *accesses(stated.value))
    alike = len(stated.result.variables) == 1 and not stated.lists
    if not alike or any(access.variables != stated.result.variables for access in used):
        raise UserError(
            f"{function.name} is not a function of single elements",
            location=where,
            expected="one variable everywhere, such as z(i) = x(i) * y(i)",
            given=function.statement,
        )
    if stated.condition != ALWAYS or stated.accumulates:
        raise UserError(
            f"{function.name} says more than what is computed",
            location=where,
            expected="z(i) = ..., without when: the extent is that of the vector",
            given=function.statement,
        )
    lanes = as_int(function.lanes)
    if lanes is None or not 1 <= lanes <= MOST_LANES or function.type not in VECTOR_TYPES:
        raise UserError(
            f"{function.name} has no vector that LLVM knows",
            location=where,
            expected=f"1 to {MOST_LANES} elements of {', '.join(map(str, VECTOR_TYPES))}",
            given=f"{function.lanes!r} of {function.type}",
        )
    if not function.name.isidentifier():
        raise UserError(
            "a function of vectors has a name",
            location=where,
            expected="letters, digits and underscores",
            given=repr(function.name),
        )
    return stated


def _text(function: VectorFunction, stated: Capability, where: SourceLocation) -> str:
    written = _VectorText(function.type, function.lanes, where)
    value = written.value(stated.value)
    result, align = stated.result.tensor, function.type.bytes
    written.lines.append(f"  store {written.vector} {value}, ptr %{result}, align {align}")
    parameters = ", ".join(f"ptr %{name}" for name in _tensors(stated))
    body = "\n".join(written.lines)
    return f"define void @{function.name}({parameters}) {{\n{body}\n  ret void\n}}\n"


def vector_functions(*functions: VectorFunction) -> Mapping[str, ExternalFunction]:
    """Vector functions by name, compiled together when the first of them is called."""
    where = user_location()
    stated = {function.name: _checked(function, where) for function in functions}
    texts = (_text(function, stated[function.name], where) for function in functions)
    library = LibraryOf(name=_NAME, llvm="\n".join(texts), how_to_get=_HOW)
    by_name = {}
    for function in functions:
        variable = stated[function.name].result.variables[0]
        by_name[function.name] = make_function(
            function.name,
            f"{function.statement} when {variable} == {function.lanes}",
            call=ExternalCall(
                symbol=function.name,
                arguments=tuple(DataOf(tensor=name) for name in _tensors(stated[function.name])),
            ),
            library=library,
            trusted=True,
            types=(function.type,),
            strides="dense",
            location=where,
        )
    return MappingProxyType(by_name)


def make_vector_function(
    statement: str, *, lanes: int = 8, type: Type = FLOAT, name: str = "vector"
) -> ExternalFunction:
    """A function on ``lanes`` elements, compiled for this CPU: ``z(i) = x(i) * y(i)``.

    Its instructions follow the statement one by one: nothing is reordered or fused.  Raises
    ``UserError`` for a statement of more than ``+``, ``-``, ``*``, ``/`` of floats, and numbers.
    """
    function = VectorFunction(name=name, statement=statement, type=type, lanes=lanes)
    return vector_functions(function)[name]


_STATEMENTS: Mapping[str, str] = MappingProxyType(
    {
        "add": "z(i) = x(i) + y(i)",
        "sub": "z(i) = x(i) - y(i)",
        "mul": "z(i) = x(i) * y(i)",
        "mul_add": "z(i) = x(i) * y(i) + w(i)",
    }
)

FUNCTIONS: Mapping[str, ExternalFunction] = vector_functions(
    *(
        VectorFunction(name=f"{name}{lanes}", statement=statement, type=Float(bits), lanes=lanes)
        for name, statement in _STATEMENTS.items()
        for bits, lanes in ((32, 8), (64, 4))
    )
)
"""All functions by name: an AVX register holds eight float32 or four float64."""

VECTORS = FUNCTIONS["add8"].library or LibraryOf(name=_NAME)
"""Their library."""
