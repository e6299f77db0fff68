"""C++ for Vitis HLS, as a dialect of kernels.

Vectors are structs of an array, whose operators are helper functions.  Pragmas are written where
the compiler expects them: behind declarations, and at the start of loops.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from t2s.backends.kernels.dialect import Access, Define, Dialect, StateArray, literal
from t2s.backends.kernels.kernel_ast import (
    CastTo,
    Declare,
    For,
    MethodCall,
    Return,
    TypedName,
    While,
    element,
    spelling,
)
from t2s.backends.text.expressions import (
    Do,
    If,
    Literal,
    Name,
    Set,
    Spelling,
    TargetExpression,
    TargetStatement,
    Ternary,
    Unary,
    binary,
    call,
    number,
)
from t2s.backends.text.identifiers import MACRO, plain
from t2s.core.names import one_line
from t2s.core.ops import C_FUNCTIONS, Op
from t2s.core.types import Kind, Type

PROTOCOL = "tokens that the protocol does not allow"
_FLOATS = {16: "float16", 32: "float", 64: "double"}
_FUNCTIONS = {
    Op.SQUARE_ROOT: "sqrt",
    Op.RECIPROCAL_SQUARE_ROOT: "rsqrt",
    Op.FLOOR: "floor",
    Op.CEILING: "ceil",
    Op.FUSED_MULTIPLY_ADD: "fma",
    Op.ABSOLUTE: "fabs",
    **C_FUNCTIONS,
}


class VitisHLS(Dialect):
    """``hls::stream``, pointers of ``m_axi``, ``#pragma HLS``."""

    title = "Vitis HLS"
    native_lanes = frozenset()
    endless = False
    wide_parameters = True
    flattens = True
    drops_unused = True
    starts_at_zero = True
    sparse = True

    def unsupported_type(self, type: Type) -> str | None:
        return None

    def scalar_name(self, type: Type) -> str:
        """``float``, ``int32_t``, and ``uint8_t`` for a bool."""
        match type.kind:
            case Kind.BOOL:
                return "uint8_t"
            case Kind.INT:
                return f"int{type.bits}_t"
            case Kind.UINT:
                return f"uint{type.bits}_t"
            case Kind.BFLOAT:
                return "bfloat16"
            case _:
                return _FLOATS[type.bits]

    def identifier(self, name: str, *, variable: bool = False) -> str:
        """
        >>> VITIS_HLS.identifier("A feeder"), VITIS_HLS.identifier("read")
        ('A_feeder', 'read_')
        >>> VITIS_HLS.identifier("read", variable=True)
        'read'
        """
        text = re.sub("__+", "_", plain(name))
        if text.startswith(("t2s_", "ap_")):
            text = f"v_{text}"
        taken = text in _WORDS or (text in _FUNCTIONS_OF_C and not variable)
        if taken or _RESERVED_END.fullmatch(text) or MACRO.fullmatch(text):
            text = f"{text}_".replace("__", "_x_")
        return text

    def storage_name(self, type: Type) -> str:
        """The type in arrays, structs, channels and memory: ``float``, ``float_x4``."""
        scalar = self.scalar_name(type)
        return scalar if type.lanes == 1 else f"{scalar.removesuffix('_t')}_x{type.lanes}"

    def suffix_name(self, type: Type) -> str:
        if not type.is_bool:
            return self.storage_name(type)
        return "bool" if type.lanes == 1 else f"bool_x{type.lanes}"

    # ---------------------------------------------------------------------------- channels

    def read_channel(self, source: TargetExpression) -> TargetExpression:
        return MethodCall(base=source, method="read")

    def write_channel(self, target: TargetExpression, value: TargetExpression) -> Do:
        return Do(call=MethodCall(base=target, method="write", arguments=(value,)))

    def control_fence(self) -> list[TargetStatement]:
        """No tensor is written by one function and read by another one."""
        return []

    def passed_on(self, value: TargetExpression) -> TargetExpression:
        """The scheduler puts registers where a path is too long."""
        return value

    def protocol_error(self, machine: str, mode: TargetExpression) -> list[TargetStatement]:
        """An error in simulation; on the chip the function ends, and reports it."""
        stop = self.stop_simulation(f"{machine}: {PROTOCOL}")
        return [*stop, Set(target=mode, value=number(-1))]

    def stop_simulation(self, message: str) -> list[TargetStatement]:
        said = Literal(text=json.dumps(one_line(message), ensure_ascii=False))
        return [Do(call=call("T2S_STOP", said))]

    def inside(self, index: TargetExpression, extent: TargetExpression) -> TargetExpression:
        return call("T2S_INSIDE", index, extent)

    # ------------------------------------------------------------------------------ memory

    def tensor_parameter(self, name: str, type: Type, *, stored: bool, shared: bool) -> TypedName:
        constant = "" if stored else "const "
        return TypedName(type=f"{constant}{self.storage_name(type)} *", name=name)

    def vector_load(self, access: Access) -> TargetExpression | None:
        return element(access.tensor, access.position) if access.whole else None

    def vector_store(self, access: Access, value: TargetExpression) -> list[TargetStatement] | None:
        if not access.whole:
            return None
        return [Set(target=element(access.tensor, access.position), value=value)]

    def banks(self, type: Type, extents: tuple[int, ...]) -> tuple[int, ...]:
        return extents

    def array_attributes(self, array: StateArray) -> tuple[str, ...]:
        """Dimensions that unrolled loops index are partitioned."""
        split = tuple(at for at in array.split if array.dimensions[at] > 1)
        pragmas: list[str] = []
        if split and len(split) == len(array.dimensions):
            pragmas = [f"ARRAY_PARTITION variable={array.name} complete dim=0"]
        else:
            pragmas = [f"ARRAY_PARTITION variable={array.name} complete dim={d + 1}" for d in split]
        if array.lanes > 1:
            banks = f"cyclic factor={array.lanes} dim={len(array.dimensions)}"
            pragmas.append(f"ARRAY_PARTITION variable={array.name} {banks}")
        if array.in_memory:
            pragmas.append(f"BIND_STORAGE variable={array.name} type=ram_2p")
        return tuple(pragmas)

    # --------------------------------------------------------------------------- operators

    def function(self, operator: Op, type: Type) -> str | None:
        name = _FUNCTIONS.get(operator)
        return None if name is None else f"hls::{name}"

    def absolute(self, operand: TargetExpression, type: Type, define: Define) -> TargetExpression:
        name, a = self.scalar_name(type), Name(name="a")
        minus = Unary(operator="-", operand=a)
        choice = Ternary(condition=binary("<", a, number(0)), if_true=minus, if_false=a)
        return define(
            f"absolute_{name}",
            name,
            ((name, "a"),),
            (operand,),
            lambda: (Return(value=CastTo(type=name, values=(choice,))),),
        )

    def saturated(
        self, value: TargetExpression, source: Type, target: Type, define: Define
    ) -> TargetExpression:
        name, a = self.scalar_name(target), Name(name="a")
        signed = target.kind is Kind.INT
        least = -(2 ** (target.bits - 1)) if signed else 0
        most = 2 ** (target.bits - signed) - 1
        below = binary("<=", a, literal(float(least), source))
        above = binary(">=", a, literal(float(most + 1), source))

        def body() -> tuple[TargetStatement, ...]:
            return (
                If(condition=binary("!=", a, a), then=(Return(value=number(0)),)),
                If(condition=below, then=(Return(value=literal(least, target)),)),
                If(condition=above, then=(Return(value=literal(most, target)),)),
                Return(value=CastTo(type=name, values=(a,))),
            )

        type = self.scalar_name(source)
        name_of_helper = f"saturated_{name}_from_{type}"
        return define(name_of_helper, name, ((type, "a"),), (value,), body, "NaN gives zero")

    # ----------------------------------------------------------------------------- printer

    def show(self, expression: TargetExpression, outer: int = 0) -> str:
        return _SPELLING.show(expression, outer)

    def after_declaration(self, statement: Declare) -> list[str]:
        return [f"#pragma HLS {pragma}" for pragma in statement.attributes]

    def inside_loop(self, loop: For | While) -> list[str]:
        return [f"#pragma HLS {pragma}" for pragma in self._pragmas(loop)]

    def _pragmas(self, loop: For | While) -> Iterator[str]:
        """A pipeline without memory flushes, so that a token is never held back by a later one."""
        if isinstance(loop, For) and loop.unroll:
            yield "UNROLL"
        if loop.pipeline is not None:
            style = "" if loop.pipeline.memory else " style=flp"
            yield f"PIPELINE II={loop.pipeline.interval}{style}"
        for array, apart in loop.independent:
            if apart is None:
                yield f"DEPENDENCE variable={array} type=inter false"
            else:
                yield f"DEPENDENCE variable={array} type=inter direction=RAW distance={apart} true"


_SPELLING = Spelling(spelling, explicit=True)

VITIS_HLS = VitisHLS()

# Names of types, and of vectors and helper functions of this backend, end in a type.
_RESERVED_END = re.compile(
    r"(.*_)?(u?int(8|16|32|64)(_t)?|b?float16|float|double|bool)(_x\d+)?(_token(_t)?)?"
    r"|(u?int(ptr|max)|s?size|wchar)_t"
)

_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
class compl const constexpr const_cast continue decltype default delete do double dynamic_cast
else enum explicit export extern false float for friend goto half if inline int long mutable
namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
reinterpret_cast return short signed sizeof static static_assert static_cast struct switch
template this thread_local throw true try typedef typeid typename union unsigned using virtual
void volatile wchar_t while xor xor_eq hls std main linux unix errno assert stdin stdout stderr
"""
_LIBRARY = """
abort abs accept access acos acosh alarm asin asinh atan atan2 atanh atexit atof atoi atol bind
brk bsearch calloc cbrt ceil chdir chmod chown clock close closedir connect copysign cos cosh
creat ctime daemon difftime div drem dup dup2 environ erf erfc exit exp exp10 exp2 expm1 fabs
fclose fdim feof fflush ffs fgets floor fma fmax fmin fmod fopen fork fprintf fputs fread free
frexp fscanf fseek fsync ftell fwrite gamma getc getchar getcwd getenv getopt gets getpid getuid
gmtime hypot ilogb index ioctl isatty isalnum isalpha isdigit isfinite isinf isnan isnormal
isspace j0 j1 jn kill labs ldexp ldiv lgamma link listen llabs localtime log log10 log1p log2 logb
lrint lround lseek malloc memchr memcmp memcpy memmove memset mkdir mktime modf nan nearbyint
nextafter nice open optarg pause perror pipe pow printf putc putchar puts qsort raise rand read
readlink realloc recv remainder remove rename rewind rint rmdir round rsqrt sbrk scalb scanf
select send setenv signal signbit significand sin sinh sleep socket sprintf sqrt srand sscanf stat
stime strcat strchr strcmp strcpy strlen strstr strtod swab symlink sync syscall system tan tanh
tgamma time times timezone tmpfile tolower toupper trunc truncate umask uname ungetc unlink usleep
utime vfork vprintf wait write y0 y1 yn
"""
_WORDS = frozenset(_KEYWORDS.split())
# A variable may shadow a function of the C library, another function may not.
_FUNCTIONS_OF_C = frozenset(_LIBRARY.split())
