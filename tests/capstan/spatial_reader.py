"""What a Spatial program means: from its tree back to a program of patterns.

So a text that was parsed can be run by ``t2s.patterns.interpret``.  Sizes on chip are those of the
text; results are the memories that the host knows, and the registers that it gets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from t2s.backends.capstan.emit import KINDS
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
    SpatialNegation,
    SpatialNumber,
    SpatialOperation,
    SpatialOut,
    SpatialReduce,
    SpatialScan,
    SpatialStatement,
    SpatialStream,
    SpatialText,
    SpatialValue,
    SpatialWrite,
)
from t2s.backends.capstan.spelling import BITWISE, OPERATORS, TYPES
from t2s.core.errors import UserError
from t2s.core.expr import Const, Expr, Local, Parameter, Select, apply, const
from t2s.core.types import INT32, Type
from t2s.patterns.ir import (
    Bind,
    BuildBits,
    CountHeader,
    DeclareMemory,
    Foreach,
    Header,
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
    StoreBlock,
    StoreStream,
    Update,
    WriteMemory,
)

NAMES_OF_TYPES = {text: type for type, text in TYPES.items()}
NAMES_OF_KINDS = {text: kind for kind, text in KINDS.items() if kind is not MemoryKind.BITS}
NAMES_OF_OPERATORS = {text: operator for operator, text in (*OPERATORS.items(), *BITWISE.items())}
SWIZZLED = "Swizzle"
BITS_TYPE = "U32"


def read_spatial(program: SpatialFile) -> PatternProgram:
    """The patterns of a program.  Raises ``UserError`` for a name that nothing declares."""
    return _SpatialReading(program).program()


@dataclass
class _SpatialReading:
    source: SpatialFile
    types: dict[str, Type] = field(default_factory=dict)
    registers: dict[str, Type] = field(default_factory=dict)
    arguments: dict[str, ProgramArgument] = field(default_factory=dict)
    far: dict[str, PatternMemory] = field(default_factory=dict)
    near: set[str] = field(default_factory=set)
    results: list[ProgramResult] = field(default_factory=list)

    def program(self) -> PatternProgram:
        for statement in self.source.before:
            match statement:
                case SpatialValue(name=name, value=SpatialMemory(kind="ArgIn", type=type)):
                    self.arguments[name] = ProgramArgument(name=name, type=self.type(type))
                case SpatialValue(name=name, value=SpatialMemory(kind="DRAM") as memory):
                    self.far[name] = self.memory(name, memory)
        body = self.body(self.source.kernel)
        return PatternProgram(
            name=self.source.name,
            environment=self.source.parameters,
            arguments=tuple(self.arguments.values()),
            memories=tuple(self.far.values()),
            body=body,
            results=tuple(self.results),
        )

    def type(self, name: str) -> Type:
        return NAMES_OF_TYPES[self.source.element if name == "T" else name]

    def memory(self, name: str, memory: SpatialMemory) -> PatternMemory:
        kind: MemoryKind = NAMES_OF_KINDS[memory.kind.removesuffix(SWIZZLED)]
        if kind is MemoryKind.FIFO and memory.type == BITS_TYPE:
            kind = MemoryKind.BITS
        partitions = 1 if memory.partitions is None else self.number(memory.partitions)
        assert memory.size is not None
        size = self.expression(memory.size)
        if kind is MemoryKind.PARTITIONED_SRAM:
            size = const(self.number(memory.size) * partitions)
        return PatternMemory(
            name=name,
            kind=kind,
            type=self.type(memory.type),
            size=size,
            partitions=partitions,
            swizzled=memory.kind.endswith(SWIZZLED),
        )

    def number(self, value: SpatialExpression) -> int:
        """A number that is there before the program runs."""
        match value:
            case SpatialNumber(value=number):
                return int(number)
            case SpatialName(name=name):
                return dict(self.source.parameters)[name]
        raise _unknown(value.__class__.__name__)

    def body(self, body: Iterable[SpatialStatement]) -> tuple[PatternStatement, ...]:
        return tuple(made for statement in body for made in self.statement(statement))

    def statement(self, statement: SpatialStatement) -> Iterable[PatternStatement]:
        match statement:
            case SpatialValue(name=name, value=SpatialMemory(kind="Reg", type=type)):
                self.registers[name] = self.type(type)
            case SpatialValue(name=name, value=SpatialMemory(kind="SparseDRAM") as memory):
                self.far[name] = self.memory(name, memory)
            case SpatialValue(name=name, value=SpatialMemory() as memory):
                made = self.memory(name, memory)
                self.types[name] = made.type
                self.near.add(name)
                yield DeclareMemory(memory=made)
            case SpatialAlias(view=view, memory=name):
                old = self.far[view]
                self.far[view] = PatternMemory(
                    name=view,
                    kind=old.kind,
                    type=old.type,
                    size=old.size,
                    partitions=old.partitions,
                    alias=name,
                )
            case SpatialOut(register=register, value=SpatialName(name=name)):
                self.results.append(ProgramResult(tensor=register, values=name))
            case SpatialValue(name=name, value=value):
                yield self.bound(name, value)
            case SpatialWrite(memory=memory, index=index, value=value):
                yield WriteMemory(
                    memory=memory,
                    index=self.expression(index),
                    value=self.expression(value),
                )
            case SpatialEffect(call=call):
                yield self.effect(call)
            case SpatialForeach(header=header, binders=binders, body=body):
                yield Foreach(
                    header=self.opened(header, binders), binders=binders, body=self.body(body)
                )
            case SpatialReduce(register=register, header=header, binders=binders, body=body):
                opened, inside = self.opened(header, binders), self.body(body)
                yield Reduce(
                    target=register,
                    header=opened,
                    binders=binders,
                    body=inside,
                    value=self.expression(statement.value),
                )
            case SpatialBlock() | SpatialStream():
                yield self.transfer(statement)
            case _:
                raise _unknown(statement.__class__.__name__)

    def bound(self, name: str, value: SpatialExpression) -> PatternStatement:
        """A value that is given a name: a word of a memory, or a computed one."""
        match value:
            case SpatialMember(owner=queue, member="deq"):
                self.types[name] = self.word(queue)
                return Pop(target=name, queue=queue)
            case SpatialMember(owner=memory, member="barrierRead", arguments=(index, _)):
                self.types[name] = self.word(memory)
                return ReadMemory(target=name, memory=memory, index=self.expression(index))
            case SpatialCall(function=memory, arguments=(index,)) if memory in self.near:
                self.types[name] = self.word(memory)
                return ReadMemory(target=name, memory=memory, index=self.expression(index))
            case SpatialMember(
                owner=memory,
                member="RMW",
                arguments=(index, added, SpatialText(text="add"), SpatialText(text=order), _),
            ):
                self.types[name] = self.word(memory)
                return Update(
                    target=name,
                    memory=memory,
                    index=self.expression(index),
                    value=self.expression(added),
                    ordered=order == "ordered",
                )
        made = self.expression(value)
        self.types[name] = made.type
        return Bind(target=name, value=made)

    def word(self, memory: str) -> Type:
        """The type of the words of a memory."""
        if memory in self.far:
            return self.far[memory].type
        if memory not in self.near:
            raise _unknown(memory)
        return self.types[memory]

    def effect(self, call: SpatialExpression) -> PatternStatement:
        match call:
            case SpatialMember(owner=queue, member="enq", arguments=(value,)):
                return Push(queue=queue, value=self.expression(value))
            case SpatialMember(owner=memory, member="barrierWrite", arguments=(index, value, _)):
                return WriteMemory(
                    memory=memory,
                    index=self.expression(index),
                    value=self.expression(value),
                )
            case SpatialCall(
                function="gen_bitvector",
                arguments=(_, bits, count, SpatialName(name=coordinates), SpatialName(name=words)),
            ):
                return BuildBits(
                    coordinates=coordinates,
                    count=self.expression(count),
                    words=words,
                    bits=self.expression(bits),
                )
        raise _unknown(call.__class__.__name__)

    def transfer(self, statement: SpatialBlock | SpatialStream) -> PatternStatement:
        match statement:
            case SpatialBlock(memory=near, slice=part):
                begin = self.expression(part.begin)
                match part.end:
                    case SpatialOperation(operator="+", left=left, right=right) if (
                        left == part.begin
                    ):
                        length = self.expression(right)
                    case end if part.begin == SpatialNumber(value=0):
                        length = self.expression(end)
                    case end:
                        length = self.expression(end) - begin
                if statement.stores:
                    return StoreBlock(target=part.memory, begin=begin, length=length, memory=near)
                return LoadBlock(memory=near, source=part.memory, begin=begin, length=length)
            case SpatialStream(memory=far, queue=queue):
                begin, length = self.expression(statement.begin), self.expression(statement.length)
                if statement.stores:
                    return StoreStream(target=far, begin=begin, length=length, queue=queue)
                return LoadStream(queue=queue, source=far, begin=begin, length=length)

    def opened(self, header: SpatialHeader, binders: tuple[str, ...]) -> Header:
        """A header; its binders are numbers of iterations, coordinates and positions."""
        for binder in binders:
            self.types[binder] = INT32
        parallel = self.parallel(header.parallel)
        match header:
            case SpatialCounter(extent=extent):
                return CountHeader(extent=self.expression(extent), parallel=parallel)
            case SpatialScan(bits=bits, join=join, queues=queues):
                return ScanHeader(
                    bits=self.expression(bits),
                    left=queues[0],
                    right=queues[1] if len(queues) > 1 else None,
                    join=JoinKind(join),
                    parallel=parallel,
                )

    def parallel(self, value: SpatialExpression) -> Parallel:
        variable = value.name if isinstance(value, SpatialName) else None
        return Parallel(factor=self.number(value), variable=variable)

    def expression(self, value: SpatialExpression) -> Expr:
        match value:
            case SpatialNumber(value=number):
                return const(number)
            case SpatialNegation(value=SpatialNumber(value=number)):
                return const(-number)
            case SpatialNegation(value=inner):
                return -self.expression(inner)
            case SpatialConversion(value=inner, type=type):
                made = self.expression(inner)
                if isinstance(made, Const):
                    return const(made.value, self.type(type))
            case SpatialName(name=name) if name in dict(self.source.parameters):
                return Parameter(name=name, type=INT32)
            case SpatialName(name=name) if name in self.types:
                return Local(name=name, type=self.types[name])
            case SpatialMember(owner=name, member="value") if name in self.registers:
                return Local(name=name, type=self.registers[name])
            case SpatialMember(owner=name, member="value") if name in self.arguments:
                return Parameter(name=name, type=self.arguments[name].type)
            case SpatialOperation(operator=operator, left=left, right=right):
                made = apply(
                    NAMES_OF_OPERATORS[operator], self.expression(left), self.expression(right)
                )
                return made
            case SpatialCall(function="mux", arguments=(condition, first, second)):
                chosen = self.expression(first)
                return Select(
                    condition=self.expression(condition),
                    if_true=chosen,
                    if_false=self.expression(second),
                    type=chosen.type,
                )
            case SpatialName(name=name) | SpatialMember(owner=name):
                raise _unknown(name)
        raise _unknown(value.__class__.__name__)


def _unknown(what: str) -> UserError:
    return UserError(
        f"there is a {what} in a Spatial program that nothing declares",
        expected="names that are declared before, and forms of this subset",
    )
