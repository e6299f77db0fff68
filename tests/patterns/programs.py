"""Programs of patterns written by hand, with the arrays that they take: SpMV, SDDMM, a sum."""

from __future__ import annotations

from typing import Any

from t2s.core.expr import Const, Expr, Local, Parameter, Select, const
from t2s.core.types import INT32, Type, UInt
from t2s.patterns.ir import (
    Bind,
    BuildBits,
    ComputedLevel,
    CountHeader,
    DeclareMemory,
    Foreach,
    Held,
    JoinKind,
    LoadBlock,
    LoadStream,
    MemoryKind,
    Parallel,
    PatternMemory,
    PatternProgram,
    PatternStatement,
    Pop,
    ProgramArgument,
    ProgramResult,
    Push,
    ReadMemory,
    Reduce,
    ScanHeader,
    SharedLevel,
    StoreBlock,
    StoreStream,
    Update,
    WriteMemory,
)

LANES = Parallel(factor=16, variable="ip")
OUTER = Parallel(factor=2, variable="bp")
ENVIRONMENT = (("bp", 2), ("ip", 16))
WORD = UInt(32)


def local(name: str, type: Type = INT32) -> Local:
    return Local(name=name, type=type)


def given(name: str) -> Parameter:
    return Parameter(name=name, type=INT32)


def dram(name: str, type: Type, size: Expr) -> PatternMemory:
    tensor, _, array = name.partition("_")
    held = Held(tensor=tensor, array=array)
    return PatternMemory(name=name, kind=MemoryKind.DRAM, type=type, size=size, holds=held)


def chip(
    name: str, kind: MemoryKind, type: Type, size: Expr | None = None, **options: Any
) -> DeclareMemory:
    words = const(16) if size is None else size
    return DeclareMemory(
        memory=PatternMemory(name=name, kind=kind, type=type, size=words, **options)
    )


def sized(*names: str) -> tuple[ProgramArgument, ...]:
    return tuple(ProgramArgument(name=name, type=INT32) for name in names)


def segment(array: str, at: Expr, name: str) -> list[PatternStatement]:
    """Where the fiber of a row begins, and how long it is."""
    return [
        ReadMemory(target=f"{name}_begin", memory=array, index=at),
        ReadMemory(target=f"{name}_end", memory=array, index=at + 1),
        Bind(target=f"{name}_length", value=local(f"{name}_end") - local(f"{name}_begin")),
    ]


def spmv(type: Type) -> PatternProgram:
    """y(i) = A(i,j) * x(j), A compressed rows."""
    rows, columns, entries = given("rows"), given("columns"), given("entries")
    begin, length = local("A_begin"), local("A_length")
    row = (
        *segment("A_pos_here", local("i"), "A"),
        chip("A_crd_here", MemoryKind.FIFO, INT32),
        LoadStream(queue="A_crd_here", source="A_crd", begin=begin, length=length),
        chip("A_vals_here", MemoryKind.FIFO, type),
        LoadStream(queue="A_vals_here", source="A_vals", begin=begin, length=length),
        Reduce(
            target="t",
            header=CountHeader(extent=length, parallel=LANES),
            binders=("p",),
            body=(
                Pop(target="j", queue="A_crd_here"),
                Pop(target="a", queue="A_vals_here"),
                ReadMemory(target="xj", memory="x_here", index=local("j")),
            ),
            value=local("a", type) * local("xj", type),
        ),
        WriteMemory(memory="y_here", index=local("i"), value=local("t", type)),
    )
    body = (
        chip("A_pos_here", MemoryKind.SRAM, INT32, rows + 1, rule="read by a counter"),
        LoadBlock(memory="A_pos_here", source="A_pos", begin=const(0), length=rows + 1),
        chip("x_here", MemoryKind.PARTITIONED_SRAM, type, columns, partitions=2, swizzled=True),
        LoadBlock(memory="x_here", source="x_vals", begin=const(0), length=columns),
        chip("y_here", MemoryKind.SRAM, type, rows),
        Foreach(
            header=CountHeader(extent=rows, parallel=OUTER),
            binders=("i",),
            body=row,
        ),
        StoreBlock(target="y_vals", begin=const(0), length=rows, memory="y_here"),
    )
    return PatternProgram(
        name="spmv",
        environment=ENVIRONMENT,
        arguments=sized("rows", "columns", "entries"),
        memories=(
            dram("A_pos", INT32, rows + 1),
            dram("A_crd", INT32, entries),
            dram("A_vals", type, entries),
            dram("x_vals", type, columns),
            dram("y_vals", type, rows),
        ),
        body=body,
        results=(ProgramResult(tensor="y", values="y_vals", levels=(None,)),),
    )


def sddmm(type: Type) -> PatternProgram:
    """A(i,j) = B(i,j) * C(i,k) * D(k,j), B compressed rows, D stored by columns."""
    rows, columns, depth, entries = map(given, ("rows", "columns", "depth", "entries"))
    begin, length = local("B_begin"), local("B_length")
    entry = (
        Pop(target="j", queue="B_crd_here"),
        Pop(target="b", queue="B_vals_here"),
        chip("C_row", MemoryKind.SRAM, type, depth),
        LoadBlock(memory="C_row", source="C_vals", begin=local("i") * depth, length=depth),
        chip("D_column", MemoryKind.SRAM, type, depth),
        LoadBlock(memory="D_column", source="D_vals", begin=local("j") * depth, length=depth),
        Reduce(
            target="t",
            header=CountHeader(extent=depth, parallel=LANES),
            binders=("k",),
            body=(
                ReadMemory(target="c", memory="C_row", index=local("k")),
                ReadMemory(target="d", memory="D_column", index=local("k")),
            ),
            value=local("b", type) * local("c", type) * local("d", type),
        ),
        Push(queue="A_vals_here", value=local("t", type)),
    )
    row = (
        *segment("B_pos_here", local("i"), "B"),
        chip("B_crd_here", MemoryKind.FIFO, INT32),
        LoadStream(queue="B_crd_here", source="B_crd", begin=begin, length=length),
        chip("B_vals_here", MemoryKind.FIFO, type),
        LoadStream(queue="B_vals_here", source="B_vals", begin=begin, length=length),
        chip("A_vals_here", MemoryKind.FIFO, type),
        Foreach(header=CountHeader(extent=length), binders=("p",), body=entry),
        StoreStream(target="A_vals", begin=begin, length=length, queue="A_vals_here"),
    )
    body = (
        chip("B_pos_here", MemoryKind.SRAM, INT32, rows + 1),
        LoadBlock(memory="B_pos_here", source="B_pos", begin=const(0), length=rows + 1),
        Foreach(header=CountHeader(extent=rows, parallel=OUTER), binders=("i",), body=row),
    )
    shared = SharedLevel(tensor="B", level=1)
    return PatternProgram(
        name="sddmm",
        environment=ENVIRONMENT,
        arguments=sized("rows", "columns", "depth", "entries"),
        memories=(
            dram("B_pos", INT32, rows + 1),
            dram("B_crd", INT32, entries),
            dram("B_vals", type, entries),
            dram("C_vals", type, rows * depth),
            dram("D_vals", type, columns * depth),
            dram("A_vals", type, entries),
        ),
        body=body,
        results=(ProgramResult(tensor="A", values="A_vals", levels=(None, shared)),),
    )


def _operand(tensor: str, type: Type, bits: Expr) -> list[PatternStatement]:
    """The coordinates of a row as two bit vectors of the same words."""
    begin, length = local(f"{tensor}_begin"), local(f"{tensor}_length")
    crd, raw = f"{tensor}_crd_here", f"{tensor}_raw"
    words = bits // 32
    word = local(f"{tensor}_word", WORD)
    return [
        *segment(f"{tensor}_pos_here", local("i"), tensor),
        chip(crd, MemoryKind.FIFO, INT32),
        LoadStream(queue=crd, source=f"{tensor}_crd", begin=begin, length=length),
        chip(raw, MemoryKind.BITS, WORD),
        chip(f"{tensor}_count", MemoryKind.BITS, WORD),
        chip(f"{tensor}_bits", MemoryKind.BITS, WORD, const(4096)),
        BuildBits(coordinates=crd, count=length, words=raw, bits=bits),
        Foreach(
            header=CountHeader(extent=words, parallel=LANES),
            binders=(f"{tensor}_w",),
            body=(
                Pop(target=word.name, queue=raw),
                Push(queue=f"{tensor}_count", value=word),
                Push(queue=f"{tensor}_bits", value=word),
            ),
        ),
    ]


def _value_at(tensor: str, type: Type) -> list[PatternStatement]:
    position = local(f"{tensor}_position")
    found = position >= 0
    there = local(f"{tensor}_begin") + position
    index = Select(condition=found, if_true=there, if_false=const(-1), type=INT32)
    return [ReadMemory(target=f"{tensor}_value", memory=f"{tensor}_sparse", index=index)]


def matrix_sum(type: Type, join: JoinKind = JoinKind.OR) -> PatternProgram:
    """A = B + C of compressed rows (``AND``: the entries that both have): count, allocate, fill."""
    rows, bits = given("rows"), given("bits")
    one = Const(value=1, type=INT32)
    header = ScanHeader(bits=bits, left="B_count", right="C_count", join=join, parallel=LANES)
    end, count = local("A_end"), local("count")
    begin = local("A_begin")
    row: tuple[PatternStatement, ...] = (
        *_operand("B", type, bits),
        *_operand("C", type, bits),
        Reduce(target="count", header=header, binders=("j0", "b0", "o0", "c0"), body=(), value=one),
        Update(target="A_end", memory="allocator", index=const(0), value=count),
        Bind(target="A_begin", value=end - count),
        WriteMemory(memory="A_pos_sparse", index=local("i") + 1, value=end),
        Foreach(
            header=ScanHeader(bits=bits, left="B_bits", right="C_bits", join=join, parallel=LANES),
            binders=("j", "B_position", "out", "C_position"),
            body=(
                *_value_at("B", type),
                *_value_at("C", type),
                WriteMemory(
                    memory="A_vals_sparse",
                    index=begin + local("out"),
                    value=local("B_value", type) + local("C_value", type),
                ),
                WriteMemory(memory="A_crd_sparse", index=begin + local("out"), value=local("j")),
            ),
        ),
    )
    tensors = ("B", "C")
    head: list[PatternStatement] = []
    for tensor in tensors:
        head += [
            chip(f"{tensor}_pos_here", MemoryKind.SRAM, INT32, rows + 1),
            LoadBlock(
                memory=f"{tensor}_pos_here",
                source=f"{tensor}_pos",
                begin=const(0),
                length=rows + 1,
            ),
        ]
    memories = []
    for tensor in tensors:
        entries = given(f"{tensor}_entries")
        memories += [
            dram(f"{tensor}_pos", INT32, rows + 1),
            dram(f"{tensor}_crd", INT32, entries),
            dram(f"{tensor}_vals", type, entries),
            _view(f"{tensor}_sparse", f"{tensor}_vals", type, entries),
        ]
    most = given("B_entries") + given("C_entries")
    for array, of, size in (
        ("pos", INT32, rows + 1),
        ("crd", INT32, most),
        ("vals", type, most),
    ):
        memories += [
            dram(f"A_{array}", of, size),
            _view(f"A_{array}_sparse", f"A_{array}", of, size),
        ]
    level = ComputedLevel(positions="A_pos", coordinates="A_crd")
    return PatternProgram(
        name="sum",
        environment=ENVIRONMENT,
        arguments=sized("rows", "bits", "B_entries", "C_entries"),
        memories=tuple(memories),
        body=(
            *head,
            chip("allocator", MemoryKind.PARTITIONED_SRAM, INT32, partitions=2),
            WriteMemory(memory="A_pos_sparse", index=const(0), value=const(0)),
            Foreach(header=CountHeader(extent=rows, parallel=OUTER), binders=("i",), body=row),
        ),
        results=(ProgramResult(tensor="A", values="A_vals", levels=(None, level)),),
    )


def _view(name: str, alias: str, type: Type, size: Expr) -> PatternMemory:
    kind = MemoryKind.SPARSE_DRAM
    return PatternMemory(name=name, kind=kind, type=type, size=size, alias=alias, partitions=2)
