"""Tensors of a program's memories: off the chip, what is brought on it, and what is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NoReturn

from t2s.backends.capstan.machines.kit import GraphDraft
from t2s.core.errors import UnsupportedError
from t2s.core.expr import Apply, Const, Expr
from t2s.core.ops import Op
from t2s.graph.graph import Place, Tensor, TensorRole
from t2s.patterns.ir import (
    Bind,
    Foreach,
    LoadStream,
    MemoryKind,
    PatternMemory,
    PatternProgram,
    PatternStatement,
    Pop,
    ReadMemory,
    Reduce,
    StoreBlock,
    StoreStream,
    Update,
    WriteMemory,
    statements,
)


class ProgramTensors:
    """The tensors that units use so far."""

    def __init__(self, program: PatternProgram, draft: GraphDraft) -> None:
        self._program, self._draft = program, draft
        self._memories = {memory.name: memory for memory in program.declared()}
        self._stored = Counter(_stored_by(program))
        self._streamed = _streamed_by(program)
        self._in_parts = _stored_in_parts(program)
        self._indices: dict[str, list[Expr]] = {}

    def source(self, statement: PatternStatement, name: str) -> Tensor:
        """The tensor of a DRAM that the host fills."""
        if name in self._stored:
            refuse(statement, f"{name!r} is stored and loaded")
        return self._draft.tensor(self._dram(name, TensorRole.INPUT))

    def copy(self, source: str, memory: str) -> Tensor:
        """What of a DRAM is in a memory on the chip: behind the network if it is partitioned."""
        on_chip = self._memories[memory]
        shared = on_chip.kind is MemoryKind.PARTITIONED_SRAM
        name = self._draft.names.fresh(f"{memory}_words")
        original = self._draft.tensors[source]
        copy = Tensor(
            name=name,
            type=original.type,
            shape=(0,),
            role=TensorRole.INPUT,
            open=True,
            place=Place.SHARED if shared else Place.CHIP,
            swizzled=shared and on_chip.swizzled,
            copy_of=source,
            location=original.location,
        )
        return self._draft.tensor(copy)

    def target(self, statement: PatternStatement, name: str) -> Tensor:
        """The tensor of a DRAM that the program fills, each word once."""
        if self._stored[name] > 1:
            refuse(statement, f"words of {name!r} that may be stored more than once")
        return self._draft.tensor(self._dram(name, TensorRole.OUTPUT, once=True))

    def summed(self, name: str) -> Tensor:
        """The tensor of a DRAM that one unit adds to."""
        return self._draft.tensor(self._dram(name, TensorRole.OUTPUT))

    def written(self, statement: WriteMemory, memory: str) -> Tensor:
        """The tensor of a memory on the chip that the program fills, each word once."""
        return self._draft.tensor(
            Tensor(
                name=memory,
                type=self._memories[memory].type,
                shape=(0,),
                role=TensorRole.INTERMEDIATE,
                open=True,
                place=Place.CHIP,
                once=True,
                location=statement.location,
            )
        )

    def check_apart(self, statement: WriteMemory) -> None:
        """Refuse a write that may meet a word that another one writes."""
        index, memory = statement.index, statement.memory
        others = self._indices.setdefault(memory, [])
        if not all(_apart(index, other) or _apart(other, index) for other in others):
            refuse(statement, f"words of {memory!r} that are written more than once")
        others.append(index)

    def _dram(self, name: str, role: TensorRole, *, once: bool = False) -> Tensor:
        memory: PatternMemory = self._memories[name]
        return Tensor(
            name=name,
            type=memory.type,
            shape=(0,),
            role=role,
            open=True,
            once=once,
            streamed=name in self._streamed,
            in_parts=name in self._in_parts and role is TensorRole.OUTPUT,
            location=memory.location or self._program.location,
        )


def _stored_by(program: PatternProgram) -> Iterator[str]:
    """The memories off chip that statements store into, each once for every statement."""
    for statement in statements(program.body):
        if isinstance(statement, StoreBlock | StoreStream):
            yield statement.target


def _streamed_by(program: PatternProgram) -> frozenset[str]:
    """The memories off chip that queues take segments of."""
    loads = (one for one in statements(program.body) if isinstance(one, LoadStream))
    return frozenset(one.source for one in loads)


def _stored_in_parts(program: PatternProgram) -> frozenset[str]:
    """The memories off chip into which words are stored here and there: sparse DRAMs."""
    aliases = {one.name: one.alias for one in program.declared() if one.alias is not None}
    writes = (one for one in statements(program.body) if isinstance(one, WriteMemory))
    return frozenset(aliases[one.memory] for one in writes if one.memory in aliases)


def _apart(first: Expr, second: Expr) -> bool:
    """Whether an index is a number below all that another one is, which counts from 0."""
    match first, second:
        case Const(value=one), Const(value=other):
            return one != other
        case Const(value=one), Apply(operator=Op.ADD, operands=(_, Const(value=least))):
            return one < least
    return False


def names_of(program: PatternProgram, everything: list[PatternStatement]) -> list[str]:
    """All names of a program."""
    found = [argument.name for argument in program.arguments]
    found += [memory.name for memory in program.declared()]
    for statement in everything:
        match statement:
            case Foreach(binders=binders):
                found += binders
            case Reduce(target=target, binders=binders):
                found += [target, *binders]
            case (
                Bind(target=target)
                | Pop(target=target)
                | ReadMemory(target=target)
                | Update(target=target)
            ):
                found.append(target)
    return found


def refuse(statement: PatternStatement, what: str) -> NoReturn:
    """Say that there is no unit for a statement, with the user's line."""
    raise UnsupportedError(
        f"the simulator of Capstan has no unit for this: {what}",
        location=statement.location,
        expected="loops that count or scan, and words that are written once or added to",
        hint="interpret(inputs) runs the patterns, without times",
    )
