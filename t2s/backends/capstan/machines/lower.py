"""From a program of patterns to a graph of machines: a unit for each statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NoReturn

from t2s.backends.capstan.machines.accesses import read, returned, varies, writes
from t2s.backends.capstan.machines.bodies import PatternBody
from t2s.backends.capstan.machines.chip_times import TIMES, CapstanTimes
from t2s.backends.capstan.machines.compute import bound, reduced
from t2s.backends.capstan.machines.counters import counted, start
from t2s.backends.capstan.machines.kit import GraphDraft, Wire
from t2s.backends.capstan.machines.partition_sums import reduced_over_partitions
from t2s.backends.capstan.machines.partitions import finished, parted
from t2s.backends.capstan.machines.sparse_dram import read_lines
from t2s.backends.capstan.machines.stream_stores import stream_store
from t2s.backends.capstan.machines.transfers import BlockLoad, block_store, segment_load
from t2s.core.errors import UnsupportedError
from t2s.core.expr import Expr
from t2s.graph.graph import Graph, Place, Region, RegionKind, ScalarParameter, Tensor, TensorRole
from t2s.patterns.ir import (
    Bind,
    BuildBits,
    CountHeader,
    DeclareMemory,
    Foreach,
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
    StoreBlock,
    StoreStream,
    WriteMemory,
    statements,
)


def machines_of(program: PatternProgram, times: CapstanTimes = TIMES) -> Graph:
    """The graph of a program; its tensors have the names of the memories off chip.

    Its parameters are the arguments.  A scalar that the program hands back is element 0 of a tensor
    of the local's name.  Raises ``UnsupportedError`` with the user's line for what has no unit yet.
    """
    return _UnitLowering(program, times).graph()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """What is on the chip of a DRAM: ``tensor`` from ``begin`` on, when the local is ``there``."""

    tensor: Tensor
    begin: Expr
    there: str


class _UnitLowering:
    """What is known of memories and queues while the units are made."""

    def __init__(self, program: PatternProgram, times: CapstanTimes) -> None:
        self.program = program
        everything = list(statements(program.body))
        self.draft = GraphDraft(program.name, _names(program, everything), times)
        self.draft.parameters += [
            ScalarParameter(name=a.name, type=a.type) for a in program.arguments
        ]
        self._memories = {memory.name: memory for memory in program.declared()}
        self._stored = Counter(_stored_by(everything))
        self._values = {s.target: s.value for s in everything if isinstance(s, Bind)}
        self._blocks: dict[str, _Block] = {}
        self._written: dict[str, list[str]] = {}
        self._streams: dict[str, Wire] = {}
        self._pushes: dict[str, tuple[PatternBody, Push]] = {}
        self._partitions: dict[int, PatternBody] = {}
        self._incomplete: dict[PatternBody, list[BlockLoad]] = {}
        self._top: PatternBody = start(self.draft, dict(program.environment), program.location)

    def graph(self) -> Graph:
        """Units for all statements."""
        self._body(self._top, self.program.body)
        for result in self.program.results:
            if result.values in self._top.wires:
                self._return(result.values)
        return self.draft.graph(self.program.location)

    def _return(self, name: str) -> None:
        wire = self._top.wires[name]
        tensor = Tensor(
            name=name,
            type=wire.type,
            shape=(1,),
            role=TensorRole.OUTPUT,
        )
        returned(self._top, name, self.draft.tensor(tensor), self.program.location)

    def _body(self, body: PatternBody, inside: tuple[PatternStatement, ...]) -> None:
        """Units for the statements of a body; neighbors that one unit serves go together."""
        for _, group in groupby(inside, key=_unit_of):
            match list(group):
                case [Bind(), *_] as binds:
                    body.wires |= bound(body, [b for b in binds if isinstance(b, Bind)])
                case [ReadMemory(), *_] as reads:
                    self._read(body, [r for r in reads if isinstance(r, ReadMemory)])
                case [statement]:
                    self._statement(body, statement, inside)
        for load in self._incomplete.pop(body, []):
            load.complete()

    def _statement(
        self, body: PatternBody, statement: PatternStatement, beside: tuple[PatternStatement, ...]
    ) -> None:
        match statement:
            case DeclareMemory():
                pass
            case LoadBlock(memory=memory, source=source, begin=begin):
                there = self.draft.names.fresh(f"{memory}_there")
                loaded, copy = self._source(statement, source), self._copy(source, memory)
                load = BlockLoad(body, statement, loaded, there, again=body is not self._top)
                body.wires[there] = load.there
                self._incomplete.setdefault(body, []).append(load)
                self._blocks[memory] = _Block(tensor=copy, begin=body.known(begin), there=there)
            case LoadStream(queue=queue, source=source):
                lanes = self._popping_lanes(statement, beside, body is self._top)
                loaded = self._source(statement, source)
                self._streams[queue] = segment_load(body, statement, loaded, lanes)
            case Pop(target=target, queue=queue):
                if queue not in self._streams:
                    _refuse(statement, f"{queue!r} is not filled by a transfer from the DRAM")
                body.wires[target] = self._streams[queue]
            case Push(queue=queue):
                if queue in self._pushes:
                    _refuse(statement, f"several statements push into {queue!r}")
                self._pushes[queue] = body, statement
            case WriteMemory(memory=memory):
                self._write(body, statement, memory)
            case StoreBlock(target=target, memory=memory):
                if body is not self._top or memory not in self._written:
                    _refuse(statement, f"{memory!r} is stored inside of a loop")
                on_chip = self.draft.tensors[memory]
                block_store(
                    body, statement, on_chip, self._target(statement, target), self._written[memory]
                )
            case StoreStream(target=target, queue=queue):
                inner, push = self._pushes[queue]
                stream_store(inner, push, statement, self._target(statement, target))
            case Foreach() | Reduce():
                self._pattern(body, statement)
            case _:
                _refuse(statement, f"{type(statement).__name__} has no unit")

    def _read(self, body: PatternBody, reads: list[ReadMemory]) -> None:
        memory = reads[0].memory
        alias = self._memories[memory].alias
        if alias is not None:
            loaded = self._source(reads[0], alias)
            for statement in reads:
                body.wires[statement.target] = read_lines(body, statement, loaded)
            return
        if memory not in self._blocks:
            _refuse(reads[0], f"{memory!r} is read, and no transfer fills it")
        block = self._blocks[memory]
        body.wires |= read(body, reads, block.tensor, block.begin, [block.there])

    def _write(self, body: PatternBody, statement: WriteMemory, memory: str) -> None:
        kind = self._memories[memory].kind
        outermost = any(
            isinstance(one, DeclareMemory) and one.memory.name == memory
            for one in self.program.body
        )
        if kind is not MemoryKind.SRAM or not outermost or memory in self._blocks:
            _refuse(statement, f"a write to {memory!r}, a {kind.value} that loops use again,")
        if memory in self._written or not varies(body, statement.index, self._values):
            _refuse(statement, f"words of {memory!r} that are written more than once")
        tensor = self.draft.tensor(
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
        stored = writes(body, statement, tensor)
        name = self.draft.names.fresh(f"{memory}_complete")
        partitioned = bool(body.space)
        self._top.wires[name] = (
            finished(self._top, stored, name, statement.location) if partitioned else stored
        )
        self._written.setdefault(memory, []).append(name)

    def _pattern(self, body: PatternBody, pattern: Foreach | Reduce) -> None:
        header = pattern.header
        if not isinstance(header, CountHeader):
            _refuse(pattern, "a scan")
        factor, innermost = header.parallel.factor, not _has_patterns(pattern)
        lanes = factor if innermost else 1
        parts = factor if body is self._top and not innermost else 1
        if factor not in (parts, lanes):
            _refuse(
                pattern, f"a loop that takes {factor} iterations at a time, and has loops inside,"
            )
        around = body if parts == 1 else self._parted(body, parts, pattern)
        region = "/".join([*([body.region] if body.region else []), pattern.binders[0]])
        self.draft.regions.append(
            Region(name=region, index=pattern.binders[0], kind=RegionKind.RANGE, parent=body.region)
        )
        inner = counted(around, pattern, header.extent, lanes, region, parts)
        self._body(inner, pattern.body)
        if isinstance(pattern, Reduce):
            sum_of = reduced if parts == 1 else reduced_over_partitions
            body.wires[pattern.target] = sum_of(inner, pattern)

    def _parted(self, body: PatternBody, parts: int, pattern: PatternStatement) -> PatternBody:
        if parts not in self._partitions:
            self._partitions[parts] = parted(body, parts, pattern.location)
        return self._partitions[parts]

    def _popping_lanes(
        self, statement: LoadStream, beside: tuple[PatternStatement, ...], outermost: bool
    ) -> int:
        """The words that a firing of the body that pops a queue takes."""
        for pattern in beside:
            if isinstance(pattern, Foreach | Reduce) and isinstance(pattern.header, CountHeader):
                pops = [
                    s for s in pattern.body if isinstance(s, Pop) and s.queue == statement.queue
                ]
                if len(pops) == 1 and not _has_patterns(pattern):
                    return pattern.header.parallel.factor
                if len(pops) == 1 and outermost and pattern.header.parallel.factor > 1:
                    _refuse(statement, f"the words of {statement.queue!r} are dealt to partitions")
                if len(pops) == 1:
                    return 1
        if any(isinstance(one, BuildBits) and one.coordinates == statement.queue for one in beside):
            _refuse(statement, f"a scan of the coordinates in {statement.queue!r}")
        _refuse(statement, f"{statement.queue!r} is not taken by a loop right behind it")

    def _source(self, statement: PatternStatement, name: str) -> Tensor:
        """The tensor of a DRAM that the host fills."""
        if name in self._stored:
            _refuse(statement, f"{name!r} is stored and loaded")
        return self.draft.tensor(self._dram(name, TensorRole.INPUT))

    def _copy(self, source: str, memory: str) -> Tensor:
        """What of a DRAM is in a memory on the chip.

        Sparse memories have no banks and no network yet: whatever they are asked for is there.
        """
        name = self.draft.names.fresh(f"{memory}_words")
        original = self.draft.tensors[source]
        copy = Tensor(
            name=name,
            type=original.type,
            shape=(0,),
            role=TensorRole.INPUT,
            open=True,
            place=Place.CHIP,
            copy_of=source,
            location=original.location,
        )
        return self.draft.tensor(copy)

    def _target(self, statement: PatternStatement, name: str) -> Tensor:
        """The tensor of a DRAM that the program fills, each word once."""
        if self._stored[name] > 1:
            _refuse(statement, f"words of {name!r} that may be stored more than once")
        return self.draft.tensor(self._dram(name, TensorRole.OUTPUT, once=True))

    def _dram(self, name: str, role: TensorRole, *, once: bool = False) -> Tensor:
        memory: PatternMemory = self._memories[name]
        return Tensor(
            name=name,
            type=memory.type,
            shape=(0,),
            role=role,
            open=True,
            once=once,
            location=memory.location or self.program.location,
        )


def _stored_by(everything: list[PatternStatement]) -> Iterator[str]:
    """The memories off chip that statements store into, each once for every statement."""
    for statement in everything:
        if isinstance(statement, StoreBlock | StoreStream):
            yield statement.target


def _unit_of(statement: PatternStatement) -> object:
    """Equal for neighbors that one unit serves."""
    match statement:
        case Bind():
            return Bind
        case ReadMemory(memory=memory):
            return memory
    return id(statement)


def _has_patterns(pattern: Foreach | Reduce) -> bool:
    return any(isinstance(one, Foreach | Reduce) for one in pattern.body)


def _names(program: PatternProgram, everything: list[PatternStatement]) -> list[str]:
    """All names of a program."""
    found = [argument.name for argument in program.arguments]
    found += [memory.name for memory in program.declared()]
    for statement in everything:
        match statement:
            case Foreach(binders=binders):
                found += binders
            case Reduce(target=target, binders=binders):
                found += [target, *binders]
            case Bind(target=target) | Pop(target=target) | ReadMemory(target=target):
                found.append(target)
    return found


def _refuse(statement: PatternStatement, what: str) -> NoReturn:
    raise UnsupportedError(
        f"the simulator of Capstan has no unit for this: {what}",
        location=statement.location,
        expected="loops that count, memories that transfers fill, and results that are stored once",
        hint="interpret(inputs) runs the patterns, without times",
    )
