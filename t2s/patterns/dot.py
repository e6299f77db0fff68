"""A program of patterns as a picture in the DOT language: patterns in patterns, and memories.

A pattern is a box around what is in it, with its header.  An array off the chip is a house, one on
the chip an ellipse in the body that declares it, each with its kind and what it holds.  Arrows are
transfers between them, reads and writes: they begin and end at the point that stands for a body.
A dotted line joins a sparse DRAM and the array that it is a view of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from t2s.core.names import dot_text
from t2s.patterns.ir import (
    BuildBits,
    DeclareMemory,
    Foreach,
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
from t2s.patterns.printer import show_pattern


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
    """From where to where words go, ``None`` being the body, and how."""
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
