"""From a program of patterns to Spatial: the host's part, the memories, and the kernel.

The host reads each array from a file of one word a line, and writes the results to such files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from t2s.backends.capstan.spatial_ast import (
    SpatialAlias,
    SpatialBlock,
    SpatialCall,
    SpatialConversion,
    SpatialCounter,
    SpatialEffect,
    SpatialExpression,
    SpatialFile,
    SpatialForeach,
    SpatialHeader,
    SpatialMember,
    SpatialMemory,
    SpatialName,
    SpatialNumber,
    SpatialOperation,
    SpatialOut,
    SpatialReduce,
    SpatialScan,
    SpatialSlice,
    SpatialStatement,
    SpatialStream,
    SpatialText,
    SpatialValue,
    SpatialWrite,
    SpatialZeros,
    print_spatial,
)
from t2s.backends.capstan.spelling import TYPES, SpatialSpelling, element_type, spelled_type
from t2s.core.expr import Const, simplify
from t2s.core.ops import Array, Op
from t2s.patterns.interpret import PatternOutcome
from t2s.patterns.ir import (
    Bind,
    BuildBits,
    ComputedLevel,
    CountHeader,
    DeclareMemory,
    Foreach,
    Header,
    JoinKind,
    LoadBlock,
    LoadStream,
    MemoryKind,
    PatternMemory,
    PatternProgram,
    PatternStatement,
    Pop,
    Push,
    ReadMemory,
    Reduce,
    ScanHeader,
    StoreBlock,
    StoreStream,
    Update,
    WriteMemory,
)

WORDS = 65536
"""Words of a memory unit: the declared size of on-chip memories whose size is not a constant."""

KINDS = {
    MemoryKind.DRAM: "DRAM",
    MemoryKind.SPARSE_DRAM: "SparseDRAM",
    MemoryKind.SRAM: "SRAM",
    MemoryKind.SPARSE_SRAM: "SparseSRAM",
    MemoryKind.PARTITIONED_SRAM: "SparseParSRAM",
    MemoryKind.FIFO: "FIFO",
    MemoryKind.BITS: "FIFO",
}


def emit_spatial(program: PatternProgram, *, checked: bool = False) -> dict[str, str]:
    """The files of a program: one Spatial source.  Equal programs give the same bytes.

    ``checked``: it asserts that its results are those of files ``..._expected.csv``, and scalars
    those of further arguments.
    """
    tree = spatial_program(program, checked=checked)
    return {f"{tree.name}.scala": print_spatial(tree)}


def spatial_program(program: PatternProgram, *, checked: bool = False) -> SpatialFile:
    """The tree of a program.

    Raises ``UnsupportedError`` for types that Spatial does not have.
    """
    return _SpatialEmission(program).program(checked=checked)


def data_files(
    program: PatternProgram,
    arrays: Mapping[str, Array],
    arguments: Mapping[str, Any],
    outcome: PatternOutcome,
) -> dict[str, str]:
    """The files that a checked program reads, and its arguments in ``arguments.txt``.

    ``outcome`` is what the program makes of the arrays and the arguments.
    """
    emission = _SpatialEmission(program)
    emission.program(checked=True)
    files = {f"{emission.name(name)}.csv": _column(array) for name, array in arrays.items()}
    words = [str(np.asarray(arguments[argument.name])[()]) for argument in program.arguments]
    scalars = (outcome.scalars[result.values] for result in program.results if not result.levels)
    words += [str(np.asarray(word)[()]) for word in scalars]
    for memory in program.memories:
        if memory.name in emission.results() and memory.alias is None:
            name = f"{emission.name(memory.name)}_expected.csv"
            files[name] = _column(outcome.memories[memory.name])
    return {"arguments.txt": f"{' '.join(words)}\n", **files}


def _column(array: Array) -> str:
    return "".join(f"{word}\n" for word in array)


class _SpatialEmission(SpatialSpelling):
    def program(self, *, checked: bool) -> SpatialFile:
        source = self.source
        name = self.name(source.name)
        parameters = tuple((self.name(parameter), value) for parameter, value in source.environment)
        element = element_type(source)
        spelled_type(element, source)
        before = tuple(self.host())
        kernel = (*self.views(), *self.body(source.body), *self.outs())
        return SpatialFile(
            name=name,
            parameters=parameters,
            element=TYPES[element],
            before=before,
            kernel=kernel,
            after=(*self.written(), *(self.checks() if checked else ())),
        )

    def results(self) -> set[str]:
        """The names of the memories that the host reads back."""
        memories: set[str] = set()
        for result in self.source.results:
            memories.add(result.values)
            for level in result.levels:
                if isinstance(level, ComputedLevel):
                    memories |= {level.positions, level.coordinates}
        return memories

    def host(self) -> Iterable[SpatialStatement]:
        """Arguments and arrays off chip, filled."""
        for number, argument in enumerate(self.source.arguments):
            name, type = self.name(argument.name), self.type(argument.type)
            yield SpatialValue(name=name, value=SpatialMemory(kind="ArgIn", type=type))
            given = SpatialCall(function="args", arguments=(SpatialNumber(value=number),))
            value = SpatialConversion(value=given, type=type)
            yield _effect("setArg", SpatialName(name=name), value)
        for memory in self.source.memories:
            if memory.alias is not None:
                continue
            name, type = self.name(memory.name), self.type(memory.type)
            self.memories[memory.name] = memory
            size = self.expression(memory.size)
            yield SpatialValue(
                name=name, value=SpatialMemory(kind=KINDS[memory.kind], type=type, size=size)
            )
            content: SpatialExpression = SpatialZeros(type=type, size=size)
            if memory.name not in self.results():
                content = SpatialCall(function="loadCSV1D", type=type, arguments=_file(name))
            yield _effect("setMem", SpatialName(name=name), content)
        for result in self.source.results:
            if not result.levels:
                out = self.name(f"{result.tensor}_out")
                yield SpatialValue(name=out, value=SpatialMemory(kind="ArgOut", type="T"))

    def views(self) -> Iterable[SpatialStatement]:
        for memory in self.source.memories:
            if memory.alias is not None:
                name = self.name(memory.name)
                self.memories[memory.name] = memory
                yield SpatialValue(name=name, value=self.memory(memory))
                yield SpatialAlias(view=name, memory=self.name(memory.alias))

    def outs(self) -> Iterable[SpatialStatement]:
        for result in self.source.results:
            if not result.levels:
                value = SpatialName(name=self.name(result.values))
                yield SpatialOut(register=self.name(f"{result.tensor}_out"), value=value)

    def written(self) -> Iterable[SpatialStatement]:
        """Statements that write the results to files."""
        for result in self.source.results:
            if not result.levels:
                out = self.name(f"{result.tensor}_out")
                stored = SpatialCall(function="getArg", arguments=(SpatialName(name=out),))
                yield _effect("println", stored)
        for memory in self.source.memories:
            if memory.name in self.results() and memory.alias is None:
                name = self.name(memory.name)
                array = SpatialCall(function="getMem", arguments=(SpatialName(name=name),))
                yield _effect("writeCSV1D", array, *_file(name))

    def checks(self) -> Iterable[SpatialStatement]:
        """Assertions that the results equal the expected ones."""
        count = len(self.source.arguments)
        for result in self.source.results:
            if not result.levels:
                out = SpatialName(name=self.name(f"{result.tensor}_out"))
                word = SpatialCall(function="args", arguments=(SpatialNumber(value=count),))
                count += 1
                yield _same("getArg", out, SpatialConversion(value=word, type="T"))
        for memory in self.source.memories:
            if memory.name in self.results() and memory.alias is None:
                name, type = self.name(memory.name), self.type(memory.type)
                files = _file(f"{name}_expected")
                expected = SpatialCall(function="loadCSV1D", type=type, arguments=files)
                yield _same("getMem", SpatialName(name=name), expected)

    def memory(self, memory: PatternMemory) -> SpatialMemory:
        """The declaration of a memory that the accelerator sees."""
        kind, type = KINDS[memory.kind], self.type(memory.type)
        if memory.kind.off_chip:
            size: SpatialExpression = self.expression(memory.size)
        else:
            words = memory.size.value if isinstance(memory.size, Const) else WORDS
            size = SpatialNumber(value=int(words))
        spread = memory.kind in (MemoryKind.PARTITIONED_SRAM, MemoryKind.SPARSE_DRAM)
        environment = dict(self.source.environment)
        partitions: SpatialExpression | None = None
        if spread and environment.get("bp") == memory.partitions:
            partitions = SpatialName(name=self.name("bp"))
        elif spread:
            partitions = SpatialNumber(value=memory.partitions)
        return SpatialMemory(
            kind=f"{kind}Swizzle" if memory.swizzled else kind,
            type=type,
            size=size,
            partitions=partitions,
            barrier=spread or memory.kind is MemoryKind.SPARSE_SRAM,
            retiming=memory.kind is MemoryKind.FIFO,
        )

    def body(self, body: Iterable[PatternStatement]) -> tuple[SpatialStatement, ...]:
        return tuple(line for statement in body for line in self.statement(statement))

    def statement(self, statement: PatternStatement) -> Iterable[SpatialStatement]:
        match statement:
            case DeclareMemory(memory=memory):
                self.memories[memory.name] = memory
                yield SpatialValue(name=self.name(memory.name), value=self.memory(memory))
            case Bind(target=target, value=value):
                yield SpatialValue(name=self.name(target), value=self.expression(value))
            case Pop(target=target, queue=queue):
                taken = SpatialMember(owner=self.name(queue), member="deq")
                yield SpatialValue(name=self.name(target), value=taken)
            case Push(queue=queue, value=value):
                arguments = (self.expression(value),)
                call = SpatialMember(owner=self.name(queue), member="enq", arguments=arguments)
                yield SpatialEffect(call=call)
            case ReadMemory() | WriteMemory() | Update():
                yield self.access(statement)
            case BuildBits(coordinates=coordinates, count=count, words=words, bits=bits):
                yield _effect(
                    "gen_bitvector",
                    SpatialNumber(value=0),
                    self.expression(bits),
                    self.expression(count),
                    SpatialName(name=self.name(coordinates)),
                    SpatialName(name=self.name(words)),
                )
            case Foreach(header=header, binders=binders, body=inside):
                yield SpatialForeach(
                    header=self.header(header),
                    binders=tuple(self.name(binder) for binder in binders),
                    body=self.body(inside),
                )
            case Reduce():
                yield from self.reduce(statement)
            case _:
                yield self.transfer(statement)

    def access(self, statement: ReadMemory | WriteMemory | Update) -> SpatialStatement:
        name, index = self.name(statement.memory), self.expression(statement.index)
        sparse = self.memories[statement.memory].kind.sparse
        ordered = SpatialCall(function="Seq", arguments=())
        match statement:
            case ReadMemory(target=target):
                word: SpatialExpression = SpatialCall(function=name, arguments=(index,))
                if sparse:
                    arguments: tuple[SpatialExpression, ...] = (index, ordered)
                    word = SpatialMember(owner=name, member="barrierRead", arguments=arguments)
                return SpatialValue(name=self.name(target), value=word)
            case WriteMemory(value=value):
                operand = self.expression(value)
                if not sparse:
                    return SpatialWrite(memory=name, index=index, value=operand)
                arguments = (index, operand, ordered)
                call = SpatialMember(owner=name, member="barrierWrite", arguments=arguments)
                return SpatialEffect(call=call)
            case Update(target=target, value=value, operator=operator):
                if operator is not Op.ADD:
                    raise TypeError("updates are additions")
                order = "ordered" if statement.ordered else "unordered"
                texts = SpatialText(text="add"), SpatialText(text=order)
                arguments = (index, self.expression(value), *texts, ordered)
                call = SpatialMember(owner=name, member="RMW", arguments=arguments)
                return SpatialValue(name=self.name(target), value=call)

    def transfer(self, statement: PatternStatement) -> SpatialStatement:
        match statement:
            case LoadBlock(memory=near, source=far) | StoreBlock(memory=near, target=far):
                end = simplify(statement.begin + statement.length)
                part = SpatialSlice(
                    memory=self.name(far),
                    begin=self.expression(statement.begin),
                    end=self.expression(end),
                    parallel=SpatialName(name=self.name("ip")),
                )
                stores = isinstance(statement, StoreBlock)
                return SpatialBlock(memory=self.name(near), slice=part, stores=stores)
            case LoadStream(queue=queue, source=far) | StoreStream(queue=queue, target=far):
                return SpatialStream(
                    memory=self.name(far),
                    queue=self.name(queue),
                    begin=self.expression(statement.begin),
                    length=self.expression(statement.length),
                    stores=isinstance(statement, StoreStream),
                )
        raise TypeError(f"{statement.__class__.__name__} has no form in Spatial")

    def reduce(self, statement: Reduce) -> Iterable[SpatialStatement]:
        if statement.operator is not Op.ADD:
            raise TypeError("reductions are sums")
        name, type = self.name(statement.target), self.type(statement.value.type)
        zero = SpatialConversion(value=SpatialNumber(value=0), type=type)
        yield SpatialValue(name=name, value=SpatialMemory(kind="Reg", type=type, size=zero))
        body = self.body(statement.body)
        yield SpatialReduce(
            register=name,
            header=self.header(statement.header),
            binders=tuple(self.name(binder) for binder in statement.binders),
            body=body,
            value=self.expression(statement.value),
        )
        self.registers.add(statement.target)

    def header(self, header: Header) -> SpatialHeader:
        parallel = self.parallel(header.parallel)
        match header:
            case CountHeader(extent=extent):
                return SpatialCounter(extent=self.expression(extent), parallel=parallel)
            case ScanHeader(bits=bits, left=left, right=right, join=join):
                queues = (left,) if right is None else (left, right)
                return SpatialScan(
                    parallel=parallel,
                    bits=self.expression(bits),
                    join="or" if join is JoinKind.OR else "and",
                    queues=tuple(self.name(queue) for queue in queues),
                )


def _effect(function: str, *arguments: SpatialExpression) -> SpatialEffect:
    return SpatialEffect(call=SpatialCall(function=function, arguments=arguments))


def _same(function: str, result: SpatialName, expected: SpatialExpression) -> SpatialEffect:
    """``assert(function(made) == expected)``."""
    output = SpatialCall(function=function, arguments=(result,))
    return _effect("assert", SpatialOperation(operator="==", left=output, right=expected))


def _file(name: str) -> tuple[SpatialExpression, ...]:
    return (SpatialText(text=f"{name}.csv"),)
