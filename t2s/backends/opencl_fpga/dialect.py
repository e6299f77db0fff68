"""OpenCL C with Intel's channels, as a dialect of kernels."""

from __future__ import annotations

import re
from math import prod

from t2s.backends.kernels.dialect import Access, Define, Dialect, StateArray
from t2s.backends.kernels.kernel_ast import (
    CastTo,
    Declare,
    For,
    Forever,
    Return,
    TypedName,
    element,
)
from t2s.backends.text.expressions import (
    Do,
    Name,
    Set,
    TargetExpression,
    TargetStatement,
    Ternary,
    Unary,
    binary,
    call,
    number,
)
from t2s.backends.text.identifiers import MACRO, plain
from t2s.core.ops import C_FUNCTIONS, Op
from t2s.core.types import Kind, Type

_INTEGERS = {8: "char", 16: "short", 32: "int", 64: "long"}
_FLOATS = {32: "float", 64: "double"}
_FUNCTIONS = {
    Op.SQUARE_ROOT: "sqrt",
    Op.RECIPROCAL_SQUARE_ROOT: "rsqrt",
    Op.FLOOR: "floor",
    Op.CEILING: "ceil",
    Op.FUSED_MULTIPLY_ADD: "fma",
    Op.ABSOLUTE: "fabs",
    **C_FUNCTIONS,
}


class OpenCL(Dialect):
    """``float4``, ``read_channel_intel``, ``__global``, ``#pragma unroll``."""

    title = "OpenCL"
    native_lanes = frozenset({2, 4, 8, 16})
    endless = True

    def unsupported_type(self, type: Type) -> str | None:
        if type.kind is Kind.BFLOAT:
            return "OpenCL for Intel FPGAs has no bfloat16; use float32"
        if type.kind is Kind.FLOAT and type.bits not in _FLOATS:
            return (
                "float16 needs cl_khr_fp16, which Intel's FPGA emulator does not have, "
                "so the design could not be tested; use float32"
            )
        return None

    def scalar_name(self, type: Type) -> str:
        """``float``, ``uint``, and ``uchar`` for a bool."""
        match type.kind:
            case Kind.BOOL:
                return "uchar"
            case Kind.INT:
                return _INTEGERS[type.bits]
            case Kind.UINT:
                return "u" + _INTEGERS[type.bits]
            case _:
                return _FLOATS[type.bits]

    def identifier(self, name: str, *, variable: bool = False) -> str:
        """
        >>> OPENCL.identifier("A feeder"), OPENCL.identifier("kernel"), OPENCL.identifier("2nd")
        ('A_feeder', 'kernel_', 'v2nd')
        """
        text = plain(name)
        if _RESERVED_START.match(text):
            text = f"v_{text}"
        taken = text in _RESERVED or (text in _BUILT_IN and not variable)
        if taken or _RESERVED_END.fullmatch(text) or MACRO.fullmatch(text):
            text = f"{text}_"
        return text

    # ---------------------------------------------------------------------------- channels

    def read_channel(self, source: TargetExpression) -> TargetExpression:
        return call("read_channel_intel", source)

    def write_channel(self, target: TargetExpression, value: TargetExpression) -> Do:
        return Do(call=call("write_channel_intel", target, value))

    def control_fence(self) -> list[TargetStatement]:
        flags = binary("|", Name(name="CLK_GLOBAL_MEM_FENCE"), Name(name="CLK_CHANNEL_MEM_FENCE"))
        return [Do(call=call("mem_fence", flags))]

    def passed_on(self, value: TargetExpression) -> TargetExpression:
        return call("__fpga_reg", value)

    def protocol_error(self, machine: str, mode: TargetExpression) -> list[TargetStatement]:
        """The kernel stops forever."""
        fence = call("mem_fence", Name(name="CLK_CHANNEL_MEM_FENCE"))
        return [Forever(body=(Do(call=fence),))]

    # ------------------------------------------------------------------------------ memory

    def tensor_parameter(self, name: str, type: Type, *, stored: bool, shared: bool) -> TypedName:
        """Tensors that other kernels write are volatile: no cache here holds old values."""
        scalar = self.scalar_name(type)
        if shared:
            return TypedName(type=f"__global volatile {scalar} *", name=name)
        constant = "" if stored else "const "
        return TypedName(type=f"__global {constant}{scalar} *restrict", name=name)

    def vector_load(self, access: Access) -> TargetExpression | None:
        """``vload`` does not accept volatile pointers."""
        if self.is_struct(access.type):
            return None
        lanes, type = access.type.lanes, access.type
        if not access.shared:
            return call(f"vload{lanes}", number(0), _address_of(access))
        if access.aligned:
            return self._as_vector(access)
        each = (self._lane_of(access, at) for at in range(lanes))
        return CastTo(type=self.storage_name(type), values=tuple(each))

    def vector_store(self, access: Access, value: TargetExpression) -> list[TargetStatement] | None:
        if self.is_struct(access.type):
            return None
        lanes, type = access.type.lanes, access.type
        if not access.shared:
            return [Do(call=call(f"vstore{lanes}", value, number(0), _address_of(access)))]
        if access.aligned:
            return [Set(target=self._as_vector(access), value=value)]
        return [
            Set(target=self._lane_of(access, at), value=self.lane(value, at, type))
            for at in range(lanes)
        ]

    def _lane_of(self, access: Access, at: int) -> TargetExpression:
        return element(access.tensor, binary("+", access.position, number(at)))

    def _as_vector(self, access: Access) -> TargetExpression:
        """Aligned lanes in volatile memory, as one access."""
        pointer = CastTo(
            type=f"__global volatile {self.storage_name(access.type)} *",
            values=(_address_of(access),),
        )
        return Unary(operator="*", operand=pointer)

    def banks(self, type: Type, extents: tuple[int, ...]) -> tuple[int, ...]:
        """The lowest bits of an address select the bank; where elements straddle banks, the
        compiler has to choose."""
        if not _is_power_of_two(type.bytes):
            return extents
        return tuple(1 << (extent - 1).bit_length() for extent in extents)

    def array_attributes(self, array: StateArray) -> tuple[str, ...]:
        if not array.in_memory:
            return ()
        size = array.type.bytes
        if not _is_power_of_two(size):
            return ("memory",)
        banks = prod(array.dimensions[at] for at in array.split)
        ports = ("numwriteports(1)", "numreadports(1)") if array.single_ports else ()
        return ("memory", f"numbanks({banks})", f"bankwidth({size})", "singlepump", *ports)

    # --------------------------------------------------------------------------- operators

    def function(self, operator: Op, type: Type) -> str | None:
        return _FUNCTIONS.get(operator)

    def absolute(self, operand: TargetExpression, type: Type, define: Define) -> TargetExpression:
        return call(f"as_{self.storage_name(type)}", call("abs", operand))

    def saturated(
        self, value: TargetExpression, source: Type, target: Type, define: Define
    ) -> TargetExpression:
        """``convert_uint_sat`` is unreliable for NaN and for -1."""
        name = self.scalar_name(target)
        if target.kind is Kind.INT:
            return call(f"convert_{name}_sat", value)
        positive = binary(">", Name(name="a"), number(0))
        converted = call(f"convert_{name}_sat", Name(name="a"))
        choice = Ternary(condition=positive, if_true=converted, if_false=number(0))
        return define(
            f"saturated_{name}_from_{self.scalar_name(source)}",
            name,
            ((self.scalar_name(source), "a"),),
            (value,),
            lambda: (Return(value=choice),),
        )

    # ----------------------------------------------------------------------------- printer

    def before_declaration(self, statement: Declare) -> list[str]:
        if not statement.attributes:
            return []
        return [f"__attribute__(({', '.join(statement.attributes)}))"]

    def before_loop(self, loop: For) -> list[str]:
        pragmas = ["#pragma unroll"] * loop.unroll
        for array, apart in loop.independent:
            within = "" if apart is None else f" safelen({apart})"
            pragmas.append(f"#pragma ivdep array({array}){within}")
        if loop.coalesced > 1:
            pragmas.append(f"#pragma loop_coalesce {loop.coalesced}")
        return pragmas


OPENCL = OpenCL()


def _address_of(access: Access) -> TargetExpression:
    return Unary(operator="&", operand=element(access.tensor, access.position))


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


_WORDS = """
bool char uchar short ushort int uint long ulong float double half size_t ptrdiff_t intptr_t
uintptr_t void unsigned signed auto break case const continue default do else enum extern for goto
if inline register restrict return sizeof static struct switch typedef union volatile while global
local constant private generic kernel channel pipe read_only write_only read_write uniform event_t
sampler_t complex imaginary quad main true false asm typeof
abs ceil fabs floor fma rsqrt sqrt mem_fence read_channel_intel write_channel_intel
"""
_UNUSED_FUNCTIONS = """
bitand acos asin atan atan2 cbrt clamp cos cross degrees distance dot erf exp2 expm1
fmax fmin fmod fract frexp half_exp hypot ilogb isinf isnan ldexp length log2 mad max min mix
modf normalize pow printf radians remainder rint round select shuffle sign sin smoothstep
step tan trunc any all barrier vec_step
"""
_RESERVED = frozenset((*_WORDS.split(), *C_FUNCTIONS.values()))
# Functions that no kernel calls: a variable may shadow them, another function may not.
_BUILT_IN = frozenset(_UNUSED_FUNCTIONS.split())
# Names of vectors, and of helper functions and vector types of this backend, end in a type; those
# of images, conversions, loads, queries and predefined macros have characteristic prefixes.
_RESERVED_END = re.compile(
    r"(.*_)?(u?(char|short|int|long)|float|double|half|bool|quad)(2|3|4|8|16|_x\d+)?"
)
_RESERVED_START = re.compile(r"image[123]d|vload|vstore|convert_|as_|get_|cl_")
