"""The subset of Spatial that programs of patterns use [Stardust, sec. 4]: AST and printer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from t2s.core.walk import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialNumber(Term):
    """A non-negative literal."""

    value: int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialText(Term):
    """A string literal; ``text`` has neither quotes nor backslashes."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialName(Term):
    """A value, a memory or an argument."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialCall(Term):
    """``function[type](arguments)``; also a word of a memory: ``memory(index)``."""

    function: str
    arguments: tuple[SpatialExpression, ...]
    type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialMember(Term):
    """``owner.member`` or ``owner.member(arguments)``."""

    owner: str
    member: str
    arguments: tuple[SpatialExpression, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialConversion(Term):
    """``value.to[type]``."""

    value: SpatialExpression
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialOperation(Term):
    """A binary operator."""

    operator: str
    left: SpatialExpression
    right: SpatialExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialNegation(Term):
    """``-value``."""

    value: SpatialExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialZeros(Term):
    """An array of the host with ``size`` zeros."""

    type: str
    size: SpatialExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialMemory(Term):
    """``kind[type](partitions)(size, barrier)``, with ``.retiming`` or without."""

    kind: str
    type: str
    size: SpatialExpression | None = None
    partitions: SpatialExpression | None = None
    barrier: bool = False
    retiming: bool = False


SpatialExpression = (
    SpatialNumber
    | SpatialText
    | SpatialName
    | SpatialCall
    | SpatialMember
    | SpatialConversion
    | SpatialOperation
    | SpatialNegation
    | SpatialZeros
    | SpatialMemory
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialValue(Term):
    """``val name = value``."""

    name: str
    value: SpatialExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialWrite(Term):
    """``memory(index) = value``."""

    memory: str
    index: SpatialExpression
    value: SpatialExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialAlias(Term):
    """``view.alias = memory``."""

    view: str
    memory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialOut(Term):
    """``register := value``."""

    register: str
    value: SpatialExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialEffect(Term):
    """A call used as a statement."""

    call: SpatialExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialSlice(Term):
    """``memory(begin::end par parallel)``."""

    memory: str
    begin: SpatialExpression
    end: SpatialExpression
    parallel: SpatialExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialBlock(Term):
    """``memory load slice``, or ``slice store memory`` if ``stores``."""

    memory: str
    slice: SpatialSlice
    stores: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialStream(Term):
    """``memory stream_load_vec(...)`` or ``memory stream_store_vec(...)`` if ``stores``."""

    memory: str
    queue: str
    begin: SpatialExpression
    length: SpatialExpression
    stores: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialCounter(Term):
    """``extent by 1 par parallel``."""

    extent: SpatialExpression
    parallel: SpatialExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialScan(Term):
    """``Scan(parallel, bits, join, queues.deq)``; ``ScanRed`` of a reduction."""

    parallel: SpatialExpression
    bits: SpatialExpression
    join: str
    queues: tuple[str, ...]


SpatialHeader = SpatialCounter | SpatialScan


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialForeach(Term):
    """``Foreach(header) { binders => body }``."""

    header: SpatialHeader
    binders: tuple[str, ...]
    body: tuple[SpatialStatement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialReduce(Term):
    """``Reduce(register)(header) { binders => body; value } { _ + _ }``."""

    register: str
    header: SpatialHeader
    binders: tuple[str, ...]
    body: tuple[SpatialStatement, ...]
    value: SpatialExpression


SpatialStatement = (
    SpatialValue
    | SpatialWrite
    | SpatialAlias
    | SpatialOut
    | SpatialEffect
    | SpatialBlock
    | SpatialStream
    | SpatialForeach
    | SpatialReduce
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialFile(Term):
    """A source file: the environment as class parameters, the host's code around the kernel.

    ``element`` is what ``T`` stands for.
    """

    name: str
    parameters: tuple[tuple[str, int], ...]
    element: str
    before: tuple[SpatialStatement, ...]
    kernel: tuple[SpatialStatement, ...]
    after: tuple[SpatialStatement, ...]


# The printer: one statement per line, parentheses only where precedence needs them.

RANKS = {"|": 1, "&": 2, "&&": 2, "==": 3, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6}
"""Precedence of operators."""

PREFIX, PRIMARY = 7, 8


def print_spatial(program: SpatialFile) -> str:
    """The whole file; the same bytes for equal programs."""
    parameters = ", ".join(f"{name}: scala.Int = {value}" for name, value in program.parameters)
    lines = [
        "import spatial.dsl._",
        "",
        f"@spatial class {program.name}({parameters}) extends SpatialTest {{",
        f"  type T = {program.element}",
        "  def main(args: Array[String]): Unit = {",
        *_indented(_body(program.before), 2),
        "    Accel {",
        *_indented(_body(program.kernel), 3),
        "    }",
        *_indented(_body(program.after), 2),
        "  }",
        "}",
    ]
    return "".join(f"{line}\n" for line in lines)


def _indented(lines: Iterable[str], depth: int) -> Iterator[str]:
    return (f"{'  ' * depth}{line}" for line in lines)


def _body(body: Iterable[SpatialStatement]) -> Iterator[str]:
    for statement in body:
        match statement:
            case SpatialForeach(header=header, binders=binders, body=inside):
                yield f"Foreach({_header(header, 'Scan')}) {{ {_binders(binders)} =>"
                yield from _indented(_body(inside), 1)
                yield "}"
            case SpatialReduce(register=register, header=header, binders=binders, body=inside):
                opened = f"Reduce({register})({_header(header, 'ScanRed')})"
                yield f"{opened} {{ {_binders(binders)} =>"
                yield from _indented(_body(inside), 1)
                yield f"  {show_spatial(statement.value)}"
                yield "} { _ + _ }"
            case _:
                yield _line(statement)


def _line(statement: SpatialStatement) -> str:
    match statement:
        case SpatialValue(name=name, value=value):
            return f"val {name} = {show_spatial(value)}"
        case SpatialWrite(memory=memory, index=index, value=value):
            return f"{memory}({show_spatial(index)}) = {show_spatial(value)}"
        case SpatialAlias(view=view, memory=memory):
            return f"{view}.alias = {memory}"
        case SpatialOut(register=register, value=value):
            return f"{register} := {show_spatial(value)}"
        case SpatialEffect(call=call):
            return show_spatial(call)
        case SpatialBlock(memory=memory, slice=part, stores=False):
            return f"{memory} load {_slice(part)}"
        case SpatialBlock(memory=memory, slice=part):
            return f"{_slice(part)} store {memory}"
        case SpatialStream(memory=memory, queue=queue, begin=begin, length=length, stores=stores):
            first, last = show_spatial(begin), show_spatial(length)
            if stores:
                return f"{memory} stream_store_vec({first}, {queue}, {last})"
            return f"{memory} stream_load_vec({first}, {last}, {queue})"
    raise TypeError(f"{statement.__class__.__name__} has no line")


def _slice(part: SpatialSlice) -> str:
    bounds = f"{show_spatial(part.begin, RANKS['+'])}::{show_spatial(part.end, PRIMARY)}"
    return f"{part.memory}({bounds} par {show_spatial(part.parallel, PRIMARY)})"


def _header(header: SpatialHeader, scan: str) -> str:
    match header:
        case SpatialCounter(extent=extent, parallel=parallel):
            count = show_spatial(extent, PRIMARY)
            return f"{count} by 1 par {show_spatial(parallel, PRIMARY)}"
        case SpatialScan(parallel=parallel, bits=bits, join=join, queues=queues):
            words = ", ".join(f"{queue}.deq" for queue in queues)
            return f'{scan}({show_spatial(parallel)}, {show_spatial(bits)}, "{join}", {words})'


def _binders(binders: tuple[str, ...]) -> str:
    return binders[0] if len(binders) == 1 else f"case List({', '.join(binders)})"


def show_spatial(value: SpatialExpression, rank: int = 0) -> str:
    """An expression, in parentheses if it binds less tightly than ``rank``."""
    match value:
        case SpatialNumber(value=number):
            return repr(number)
        case SpatialText(text=text):
            return f'"{text}"'
        case SpatialName(name=name):
            return name
        case SpatialCall(function=function, arguments=arguments, type=type):
            kind = "" if type is None else f"[{type}]"
            return f"{function}{kind}({_listed(arguments)})"
        case SpatialMember(owner=owner, member=member, arguments=None):
            return f"{owner}.{member}"
        case SpatialMember(owner=owner, member=member, arguments=operands):
            return f"{owner}.{member}({_listed(operands or ())})"
        case SpatialConversion(value=inner, type=type):
            return f"{show_spatial(inner, PRIMARY)}.to[{type}]"
        case SpatialZeros(type=type, size=size):
            return f"Array.fill[{type}]({show_spatial(size)})(0.to[{type}])"
        case SpatialMemory():
            return _memory(value)
        case SpatialNegation(value=inner):
            text, own = f"-{show_spatial(inner, PRIMARY)}", PREFIX
        case SpatialOperation(operator=operator, left=left, right=right):
            own = RANKS[operator]
            text = f"{show_spatial(left, own)} {operator} {show_spatial(right, own + 1)}"
    return f"({text})" if own < rank else text


def _listed(values: Iterable[SpatialExpression]) -> str:
    return ", ".join(show_spatial(value) for value in values)


def _memory(memory: SpatialMemory) -> str:
    text = f"{memory.kind}[{memory.type}]"
    text += "" if memory.partitions is None else f"({show_spatial(memory.partitions)})"
    if memory.size is not None:
        text += f"({show_spatial(memory.size)}{', true' if memory.barrier else ''})"
    return text + (".retiming" if memory.retiming else "")
