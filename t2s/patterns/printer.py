"""Print programs of patterns: a line for each statement, and the rules that chose memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from t2s.core.expr import Expr
from t2s.core.names import dot_text
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.patterns.ir import (
    Bind,
    BuildBits,
    ComputedLevel,
    CountHeader,
    DeclareMemory,
    Foreach,
    FullLevel,
    Header,
    LoadBlock,
    LoadStream,
    PatternMemory,
    PatternProgram,
    PatternStatement,
    Pop,
    ProgramResult,
    Push,
    ReadMemory,
    Reduce,
    ResultLevel,
    ScanHeader,
    SharedLevel,
    StoreBlock,
    StoreStream,
    Update,
    WriteMemory,
)


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
    """A memory: its kind, type, size and content, and the rule that chose its kind."""
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


# A program of patterns as a picture in the DOT language: patterns in patterns, and memories.
#
# A pattern is a box around what is in it, with its header.  An array off the chip is a house, one
# on the chip an ellipse in the body that declares it, each with its kind and what it holds.  Arrows
# are transfers between them, reads and writes: they begin and end at the point that stands for a
# body. A dotted line joins a sparse DRAM and the array that it is a view of.


def patterns_to_dot(program: PatternProgram) -> str:
    """The picture; the same text for equal programs.  Render with ``dot -Tsvg``."""
    picture = _PatternPicture()
    lines = [f"digraph {dot_text(program.name)} {{", "  compound=true;"]
    lines += [f"  {_memory(memory)}" for memory in program.memories]
    lines += [
        f"  {dot_text(memory.alias)} -> {dot_text(memory.name)} [style=dotted, dir=none];"
        for memory in program.memories
        if memory.alias is not None
    ]
    lines += [f"  {line}" for line in picture.body(program.body, "program")]
    lines += [f"  {edge};" for edge in dict.fromkeys(picture.edges)]
    return "\n".join([*lines, "}"]) + "\n"


def _memory(memory: PatternMemory) -> str:
    shape = "house" if memory.kind.off_chip else "ellipse"
    label = [memory.name, memory.kind.value, *([str(memory.holds)] if memory.holds else [])]
    return f"{dot_text(memory.name)} [shape={shape}, label={dot_text(*label)}];"


@dataclass(slots=True)
class _PatternPicture:
    """The arrows found so far, and the number of the last body."""

    edges: list[str] = field(default_factory=list)
    bodies: int = 0

    def body(self, body: tuple[PatternStatement, ...], title: str) -> Iterator[str]:
        """The lines of a body: a cluster with its memories, its patterns and its point."""
        point = f"body {self.bodies}"
        yield f"subgraph cluster_{self.bodies} {{"
        self.bodies += 1
        yield f"  label={dot_text(title)};"
        yield f"  {dot_text(point)} [shape=point];"
        for statement in body:
            match statement:
                case DeclareMemory(memory=memory):
                    yield f"  {_memory(memory)}"
                case Foreach(body=inside) | Reduce(body=inside):
                    yield from (f"  {line}" for line in self.body(inside, show_pattern(statement)))
            self.edges += (
                f"{dot_text(source or point)} -> {dot_text(target or point)} [label={label}]"
                for source, target, label in _arrows(statement)
            )
        yield "}"


def _arrows(statement: PatternStatement) -> Iterator[tuple[str | None, str | None, str]]:
    """The source and the target of words (``None`` is the body), and the kind of the arrow."""
    match statement:
        case LoadBlock(memory=memory, source=source):
            yield source, memory, "load"
        case StoreBlock(target=target, memory=memory):
            yield memory, target, "store"
        case LoadStream(queue=queue, source=source):
            yield source, queue, "stream"
        case StoreStream(target=target, queue=queue):
            yield queue, target, "stream"
        case BuildBits(coordinates=coordinates, words=words):
            yield coordinates, words, "bits"
        case Pop(queue=queue):
            yield queue, None, "pop"
        case Push(queue=queue):
            yield None, queue, "push"
        case ReadMemory(memory=memory):
            yield memory, None, "read"
        case WriteMemory(memory=memory):
            yield None, memory, "write"
        case Update(memory=memory):
            yield None, memory, "update"
        case Foreach(header=ScanHeader() as header) | Reduce(header=ScanHeader() as header):
            for operand in (header.left, header.right):
                if operand is not None:
                    yield operand, None, "scan"
