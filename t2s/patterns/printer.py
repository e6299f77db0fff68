"""Text of programs of patterns: a line for each statement, and why memories are what they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from t2s.core.expr import Expr
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.patterns.ir import (
    Bind,
    BuildBits,
    CountHeader,
    DeclareMemory,
    Foreach,
    Header,
    LoadBlock,
    LoadStream,
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
from t2s.patterns.made import ComputedLevel, FullLevel, ProgramResult, ResultLevel, SharedLevel


def print_patterns(program: PatternProgram) -> str:
    """The whole program; the same text for equal programs."""
    lines = [f"program {program.name}"]
    lines += [f"  {name} = {value}" for name, value in program.environment]
    lines += [
        f"  argument {item.name}: {item.type}" + (f"  # {item.holds}" if item.holds else "")
        for item in program.arguments
    ]
    lines += [f"  {show_memory(memory)}" for memory in program.memories]
    lines += [f"  {line}" for line in _body(program.body)]
    lines += [f"  {_result(result)}" for result in program.results]
    return "\n".join(lines) + "\n"


def show_memory(memory: PatternMemory) -> str:
    """A memory: its kind, type and size, what it holds, and the rule that chose its kind."""
    spread = f" in {memory.partitions}" if memory.partitions > 1 else ""
    spread += ", swizzled" if memory.swizzled else ""
    alias = f" of {memory.alias}" if memory.alias is not None else ""
    words = f"{memory.name}: {memory.kind.value}{alias} {memory.type}[{show(memory.size)}]{spread}"
    notes = [str(memory.holds)] if memory.holds is not None else []
    notes += [memory.rule] if memory.rule else []
    return words + (f"  # {': '.join(notes)}" if notes else "")


def _body(body: Sequence[PatternStatement]) -> Iterator[str]:
    for statement in body:
        match statement:
            case Foreach(body=inside):
                yield f"{show_pattern(statement)}:"
                yield from (f"  {line}" for line in _body(inside))
            case Reduce(body=inside):
                yield f"{show_pattern(statement)}:"
                yield from (f"  {line}" for line in _body(inside))
                yield f"  -> {show(statement.value)}"
            case _:
                yield _line(statement)


def show_pattern(pattern: Foreach | Reduce) -> str:
    """The first line of a pattern: what it binds, and its header."""
    names, header = ", ".join(pattern.binders), _header(pattern.header)
    match pattern:
        case Foreach():
            return f"foreach {names} in {header}"
        case Reduce(target=target, operator=operator):
            return f"{target} = reduce {operator.value} {names} in {header}"


def _line(statement: PatternStatement) -> str:
    match statement:
        case DeclareMemory(memory=memory):
            return show_memory(memory)
        case Bind(target=target, value=value):
            return f"{target} = {show(value)}"
        case LoadBlock(memory=memory, source=source, begin=begin, length=length):
            return f"{memory} <- {source}[{_range(begin, length)}]"
        case StoreBlock(target=target, begin=begin, length=length, memory=memory):
            return f"{target}[{_range(begin, length)}] <- {memory}"
        case LoadStream(queue=queue, source=source, begin=begin, length=length):
            return f"{queue} <~ {source}[{_range(begin, length)}]"
        case StoreStream(target=target, begin=begin, length=length, queue=queue):
            return f"{target}[{_range(begin, length)}] <~ {queue}"
        case BuildBits(coordinates=coordinates, count=count, words=words, bits=bits):
            return f"{words} <~ bits of {show(count)} in {coordinates}, {show(bits)} wide"
        case Pop(target=target, queue=queue):
            return f"{target} = pop {queue}"
        case Push(queue=queue, value=value):
            return f"push {queue}, {show(value)}"
        case ReadMemory(target=target, memory=memory, index=index):
            return f"{target} = {memory}[{show(index)}]"
        case WriteMemory(memory=memory, index=index, value=value):
            return f"{memory}[{show(index)}] = {show(value)}"
        case Update(target=target, memory=memory, index=index, value=value, operator=operator):
            order = "ordered" if statement.ordered else "unordered"
            sign = "+" if operator is Op.ADD else f" {operator.value} "
            return f"{target} = ({memory}[{show(index)}] {sign}= {show(value)}), {order}"
    raise TypeError(f"{statement.__class__.__name__} has no text")


def _range(begin: Expr, length: Expr) -> str:
    return f"{show(begin)} :+ {show(length)}"


def _header(header: Header) -> str:
    match header:
        case CountHeader(extent=extent, parallel=parallel):
            return f"{show(extent)} by {parallel}"
        case ScanHeader(bits=bits, left=left, right=None, parallel=parallel):
            return f"scan {left}, {show(bits)} wide, by {parallel}"
        case ScanHeader(bits=bits, left=left, right=right, join=join, parallel=parallel):
            return f"scan {left} {join.value} {right}, {show(bits)} wide, by {parallel}"


def _result(result: ProgramResult) -> str:
    levels = ", ".join(_level(level) for level in result.levels)
    return f"result {result.tensor}({levels}) = {result.values}"


def _level(level: ResultLevel) -> str:
    match level:
        case None:
            return "dense"
        case SharedLevel(tensor=tensor, level=number):
            return f"as {tensor}.{number}"
        case FullLevel(extent=extent):
            return f"all of {show(extent)}"
        case ComputedLevel(positions=positions, coordinates=coordinates):
            return f"{positions}, {coordinates}"
