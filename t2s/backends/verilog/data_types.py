"""Types as bits, users' names as identifiers, and the contents of memory files.

An integer is a (signed) vector of its bits, a bool is one bit, a float is its IEEE 754 pattern; a
vector is a packed array of lanes, the first in the lowest bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain
from math import prod
from pathlib import Path

import numpy as np

from t2s.backends.text.expressions import (
    Literal,
    TargetExpression,
    Unary,
    call,
)
from t2s.backends.text.identifiers import MACRO, Identifiers, plain
from t2s.backends.verilog.verilog_ast import FALSE, TRUE, ZEROS, Bits, Concatenation
from t2s.core.ops import Array
from t2s.core.types import Kind, Type
from t2s.graph.arrays import pack
from t2s.graph.graph import Tensor
from t2s.graph.nodes import Register

FLOAT_BITS = (32, 64)


def unsupported_type(type: Type) -> str | None:
    """Why the backend does not support a type; ``None`` if it does."""
    if type.kind is Kind.FLOAT and type.bits not in FLOAT_BITS:
        return f"the simulation has no {type.scalar} operators; use float32"
    return None


def width_of(type: Type) -> int:
    """Bits of one lane."""
    return 1 if type.is_bool else type.bits


def bits_of(type: Type) -> Bits:
    """The type of a variable."""
    signed = type.kind is Kind.INT and type.lanes == 1
    return Bits(width=width_of(type), signed=signed, lanes=type.lanes)


def suffix_of(type: Type) -> str:
    """The suffix of the functions of a type: ``s32``, ``u8``, ``f64``, ``b16``."""
    letter = {Kind.INT: "s", Kind.UINT: "u", Kind.FLOAT: "f", Kind.BFLOAT: "b"}[type.kind]
    return f"{letter}{type.bits}"


def literal(value: int | float | bool, type: Type) -> TargetExpression:
    """A scalar constant."""
    match type.kind:
        case Kind.BOOL:
            return TRUE if value else FALSE
        case Kind.UINT:
            return Literal(text=f"{type.bits}'d{int(value)}")
        case Kind.INT:
            return _signed(int(value), type.bits)
    pattern = np.asarray(value, type.numpy).view(f"uint{type.bits}")
    return Literal(text=f"{type.bits}'h{int(pattern):0{type.bits // 4}x}")


def start_of(register: Register) -> TargetExpression:
    """The initial value of every element of a register file."""
    pattern = hexadecimal(np.asarray(register.initial, register.type.scalar.numpy)).strip()
    if pattern == "0":
        return ZEROS
    lane = Literal(text=f"{width_of(register.type)}'h{pattern}")
    return lane if register.type.lanes == 1 else Concatenation(parts=(lane,) * register.type.lanes)


def _signed(value: int, bits: int) -> TargetExpression:
    if value == -(2 ** (bits - 1)):
        return Literal(text=f"{bits}'sh{2 ** (bits - 1):x}")
    shown = Literal(text=str(abs(value)) if bits == 32 else f"{bits}'sd{abs(value)}")
    return Unary(operator="-", operand=shown) if value < 0 else shown


def signed_as(value: TargetExpression, type: Type) -> TargetExpression:
    """A bit pattern, read as a number of a type."""
    return call("$signed", value) if type.kind is Kind.INT else value


def memory_of(tensor: Tensor, inputs: Mapping[str, Array] | None) -> Array:
    """The initial content of a tensor in memory; all zeros without inputs."""
    if inputs is None:
        return np.zeros(tensor.allocated, tensor.type.numpy)
    return pack(tensor, np.asarray(inputs[tensor.array]))


def hexadecimal(array: Array) -> str:
    """One line for each element, in row-major order: its bit pattern."""
    flat = np.ascontiguousarray(array).reshape(-1)
    patterns = flat.view(f"u{flat.dtype.itemsize}")
    return "".join(f"{int(pattern):x}\n" for pattern in patterns)


def read_back(path: Path, tensor: Tensor, length: int | None) -> Array:
    """Read what the testbench has written; ``length`` is for tensors of unknown length."""
    shape = tensor.allocated if length is None else (length,)
    if length == 0:
        return np.zeros(shape, tensor.type.numpy)
    lines = (line.split("//")[0].split() for line in path.read_text().splitlines())
    words = (word for word in chain.from_iterable(lines) if not word.startswith("@"))
    unsigned = np.dtype(f"u{tensor.type.numpy.itemsize}")
    patterns = np.fromiter((int(word, 16) for word in words), unsigned, prod(shape))
    return patterns.view(tensor.type.numpy).reshape(shape)


_WORDS = """
accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before
begin bind bins binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class
clocking cmos config const constraint context continue cover covergroup coverpoint cross deassign
default defparam design disable dist do edge else end endcase endchecker endclass endclocking
endconfig endfunction endgenerate endgroup endinterface endmodule endpackage endprimitive endprogram
endproperty endsequence endspecify endtable endtask enum event eventually expect export extends
extern final first_match for force foreach forever fork forkjoin function generate genvar global
highz0 highz1 if iff ifnone ignore_bins illegal_bins implements implies import incdir include
initial inout input inside instance int integer interconnect interface intersect join join_any
join_none large let liblist library local localparam logic longint macromodule matches medium
modport module nand negedge nettype new nexttime nmos nor noshowcancelled not notif0 notif1 null or
output package packed parameter pmos posedge primitive priority program property protected pull0
pull1 pulldown pullup pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase randsequence
rcmos real realtime ref reg reject_on release repeat restrict return rnmos rpmos rtran rtranif0
rtranif1 s_always s_eventually s_nexttime s_until s_until_with scalared sequence shortint shortreal
showcancelled signed small soft solve specify specparam static string strong strong0 strong1 struct
super supply0 supply1 sync_accept_on sync_reject_on table tagged task this throughout time
timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior trireg type typedef union
unique unique0 unsigned until until_with untyped use uwire var vectored virtual void wait wait_order
wand weak weak0 weak1 while wildcard wire with within wor xnor xor
"""
# Macros of C and C++, which Verilator writes: all others are in capitals.
_MACROS = """
assert errno linux math_errhandling stderr stdin stdout unix vl_unique_ptr vl_unordered_map
vl_unordered_set L_tmpnam L_ctermid P_tmpdir
"""
_UNDERSCORES = re.compile(r"__+")

RESERVED = frozenset((*_WORDS.split(), *_MACROS.split()))


def identifier(name: str) -> str:
    """A SystemVerilog identifier that resembles ``name``.

    >>> identifier("A feeder"), identifier("module"), identifier("2nd")
    ('A_feeder', 'module_', 'v2nd')
    """
    text = _UNDERSCORES.sub("_", plain(name).rstrip("_") or "v")
    return f"{text}_" if text in RESERVED or MACRO.fullmatch(text) else text


def signal_names(taken: Iterable[str] = ()) -> Identifiers:
    """The identifiers of one scope."""
    return Identifiers(identifier, (*RESERVED, *taken))
