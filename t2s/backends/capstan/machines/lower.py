"""From a program of patterns to a graph of machines: a unit for each statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NoReturn

from t2s.backends.capstan.machines.accesses import (
    read,
    read_lines,
    returned,
    varies,
    varies_in,
    write_lines,
    writes,
)
from t2s.backends.capstan.machines.bit_vectors import (
    WORDS,
    bit_vector,
    combined_words,
    copied_bits,
    scanned,
)
from t2s.backends.capstan.machines.bodies import BodyUnit, FiringCase, PatternBody, bound, reduced
from t2s.backends.capstan.machines.chip_times import TIMES, CapstanTimes
from t2s.backends.capstan.machines.inner_memories import InnerMemory
from t2s.backends.capstan.machines.kit import LAST, GraphDraft, UnitDraft, Wire
from t2s.backends.capstan.machines.partitions import (
    dealt_body,
    dealt_words,
    finished,
    parted,
    reduced_over_partitions,
    updated,
)
from t2s.backends.capstan.machines.scattered_sums import added
from t2s.backends.capstan.machines.transfers import (
    BlockLoad,
    block_store,
    segment_load,
    stream_store,
)
from t2s.backends.capstan.machines.vectors import addresses, counted_from
from t2s.core.errors import UnsupportedError
from t2s.core.expr import Apply, Const, Expr, Index, Local, const, select, spread
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import INT32
from t2s.graph.body import Role
from t2s.graph.build import put, rule, when, write
from t2s.graph.graph import (
    Graph,
    MemorySpace,
    Region,
    RegionKind,
    ScalarParameter,
    Tensor,
    TensorRole,
)
from t2s.graph.nodes import DONE
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
    Update,
    WriteMemory,
    statements,
)


def machines_of(program: PatternProgram, times: CapstanTimes = TIMES) -> Graph:
    """The graph of a program; its tensors have the names of the memories off chip.

    Its parameters are the arguments.  A scalar that the program hands back is element 0 of a tensor
    of the local's name.  Raises ``UnsupportedError`` with the user's line for unsupported
    statements.
    """
    return _UnitLowering(program, times).graph()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """The on-chip copy of a DRAM: ``tensor`` from ``begin`` on, once the local ``there`` has
    arrived.
    """

    tensor: Tensor
    begin: Expr
    there: str


class _UnitLowering:
    """The state of the lowering: which memories and queues exist, and who fills them."""

    def __init__(self, program: PatternProgram, times: CapstanTimes) -> None:
        self.program = program
        everything = list(statements(program.body))
        self.draft = GraphDraft(program.name, names_of(program, everything), times)
        self.draft.parameters += [
            ScalarParameter(name=a.name, type=a.type) for a in program.arguments
        ]
        self._memories = {memory.name: memory for memory in program.declared()}
        self._tensors = ProgramTensors(program, self.draft)
        self._allocated = {s.target for s in everything if isinstance(s, Update)}
        self._values = {s.target: s.value for s in everything if isinstance(s, Bind)}
        self._blocks: dict[str, _Block] = {}
        self._written: dict[str, list[str]] = {}
        self._streams: dict[str, Wire] = {}
        self._pushes: dict[str, tuple[PatternBody, Push]] = {}
        self._partitions: dict[int, PatternBody] = {}
        self._incomplete: dict[PatternBody, list[BlockLoad | InnerMemory]] = {}
        self._inner: dict[str, InnerMemory] = {}
        self._declared: dict[str, PatternBody] = {}
        self._set = {s.memory: s for s in everything if isinstance(s, WriteMemory)}
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
        """Make units for the statements of a body; adjacent statements that one unit serves are
        grouped.
        """
        for _, group in groupby(inside, key=_unit_of):
            match list(group):
                case [Bind(value=value), *_] as binds if value.type != WORDS.scalar:
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
            case DeclareMemory(memory=memory) if body is not self._top:
                self._declare(body, statement)
            case DeclareMemory():
                pass
            case Bind(target=target, value=value):
                body.wires[target] = combined_words(body, target, value)
            case LoadBlock(memory=memory, source=source, begin=begin):
                ready = self.draft.names.fresh(f"{memory}_there")
                loaded, copy = (
                    self._tensors.source(statement, source),
                    self._tensors.copy(source, memory),
                )
                load = BlockLoad(body, statement, loaded, ready, again=body is not self._top)
                body.wires[ready] = load.there
                self._incomplete.setdefault(body, []).append(load)
                self._blocks[memory] = _Block(tensor=copy, begin=body.known(begin), there=ready)
            case LoadStream(queue=queue, source=source):
                lanes = self._popping_lanes(statement, beside, body is self._top)
                loaded = self._tensors.source(statement, source)
                self._streams[queue] = segment_load(body, statement, loaded, lanes)
            case BuildBits(words=words, coordinates=coordinates):
                vectors = self._vectors(statement, coordinates)
                self._streams[words] = bit_vector(body, statement, vectors)
            case Pop(target=target, queue=queue):
                if queue in self._pushes and queue not in self._streams:
                    self._streams[queue] = self._pushed(*self._pushes[queue])
                if queue not in self._streams:
                    refuse(statement, f"{queue!r} is not filled by a transfer from the DRAM")
                wire = self._streams[queue]
                if body.space and not wire.shape:
                    wire = dealt_words(body, wire, target, statement.location)
                if self._memories[queue].kind is MemoryKind.BITS:
                    wire = copied_bits(body, wire, target)
                body.wires[target] = wire
            case Push(queue=queue):
                if queue in self._pushes:
                    refuse(statement, f"several statements push into {queue!r}")
                self._pushes[queue] = body, statement
                if self._memories[queue].kind is MemoryKind.BITS:
                    self._streams[queue] = self._pushed(body, statement)
            case Update(memory=memory) if self._memories[memory].alias is not None:
                self._add(body, statement)
            case Update(target=target):
                body.wires[target] = self._update(body, statement)
            case WriteMemory(memory=memory):
                self._write(body, statement, memory)
            case StoreBlock(target=target, memory=memory):
                inner = self._inner.get(memory)
                far = self._tensors.target(statement, target)
                if inner is not None and inner.body is body and inner.store(statement, far):
                    return
                if body is not self._top or memory not in self._written:
                    refuse(statement, f"{memory!r} is stored inside of a loop")
                on_chip = self.draft.tensors[memory]
                block_store(body, statement, on_chip, far, self._written[memory])
            case StoreStream(target=target, queue=queue):
                pushing, push = self._pushes[queue]
                stream_store(pushing, push, statement, self._tensors.target(statement, target))
            case Foreach() | Reduce():
                self._pattern(body, statement)
            case _:
                refuse(statement, f"{type(statement).__name__} has no unit")

    def _read(self, body: PatternBody, reads: list[ReadMemory]) -> None:
        memory = reads[0].memory
        alias = self._memories[memory].alias
        if alias is not None:
            loaded = self._tensors.source(reads[0], alias)
            for statement in reads:
                body.wires[statement.target] = read_lines(body, statement, loaded)
            return
        if memory in self._inner:
            body.wires |= self._inner[memory].read(body, reads)
            return
        if memory in self._written:
            zero, written = const(0), self._written[memory]
            body.wires |= read(body, reads, self.draft.tensors[memory], zero, written)
            return
        if memory not in self._blocks:
            refuse(reads[0], f"{memory!r} is read, and no transfer fills it")
        block = self._blocks[memory]
        body.wires |= read(body, reads, block.tensor, block.begin, [block.there])

    def _write(self, body: PatternBody, statement: WriteMemory, memory: str) -> None:
        kind, alias = self._memories[memory].kind, self._memories[memory].alias
        inner = self._inner.get(memory)
        inside = None if inner is None else inner.body
        if not varies(body, statement.index, self._values, self._allocated, inside):
            refuse(statement, f"words of {memory!r} that are written more than once")
        self._tensors.check_apart(statement)
        if alias is not None:
            write_lines(body, statement, self._tensors.target(statement, alias))
            return
        if inner is not None:
            if inner.is_read:
                refuse(statement, f"a write to {memory!r} behind those who read it")
            inner.write(body, statement)
            return
        outermost = any(
            isinstance(other, DeclareMemory) and other.memory.name == memory
            for other in self.program.body
        )
        if kind not in _WRITTEN or not outermost or memory in self._blocks:
            refuse(statement, f"a write to {memory!r}, a {kind.value} that loops reuse")
        tensor = self._tensors.written(statement, memory)
        stored = writes(body, statement, tensor)
        name = self.draft.names.fresh(f"{memory}_complete")
        partitioned = bool(body.space)
        self._top.wires[name] = (
            finished(self._top, stored, name, statement.location) if partitioned else stored
        )
        self._written.setdefault(memory, []).append(name)

    def _declare(self, body: PatternBody, statement: DeclareMemory) -> None:
        """Declare a memory inside a loop: one that loops write has a region for each iteration."""
        memory = statement.memory
        self._declared[memory.name] = body
        if memory.kind in _WRITTEN and memory.name in self._set:
            tensor = self._tensors.written(self._set[memory.name], memory.name)
            self._inner[memory.name] = inner = InnerMemory(body, statement, tensor)
            self._incomplete.setdefault(body, []).append(inner)

    def _pattern(self, body: PatternBody, pattern: Foreach | Reduce) -> None:
        header = pattern.header
        factor, innermost = header.parallel.factor, not _has_patterns(pattern)
        lanes = factor if innermost else 1
        parts = factor if body is self._top and not innermost else 1
        if factor not in (parts, lanes):
            refuse(
                pattern, f"a loop that takes {factor} iterations at a time, and has loops inside"
            )
        around = body if parts == 1 else self._parted(body, parts, pattern)
        region = "/".join([*([body.region] if body.region else []), pattern.binders[0]])
        self.draft.regions.append(
            Region(name=region, index=pattern.binders[0], kind=RegionKind.RANGE, parent=body.region)
        )
        if isinstance(header, CountHeader):
            inner = counted(around, pattern, header.extent, lanes, region, parts)
        else:
            queues = (header.left, *([header.right] if header.right is not None else []))
            words = tuple(self._words(pattern, queue) for queue in queues)
            inner = scanned(body, pattern, header, words, max(lanes, parts), region)
            if parts > 1:
                inner = dealt_body(inner, around)
        self._body(inner, pattern.body)
        if isinstance(pattern, Reduce):
            sum_of = reduced if parts == 1 else reduced_over_partitions
            body.wires[pattern.target] = sum_of(inner, pattern)

    def _words(self, pattern: PatternStatement, queue: str) -> Wire:
        """The wire of the windows of a bit vector."""
        if queue not in self._streams or self._streams[queue].type != WORDS:
            refuse(pattern, f"no transfer and no loop fills {queue!r} with bits")
        return self._streams[queue]

    def _vectors(self, statement: BuildBits, queue: str) -> Wire:
        """The wire of the coordinates of a bit vector, from the DRAM or from a loop that pushes
        them.
        """
        if queue in self._streams:
            return self._streams[queue]
        if queue not in self._pushes:
            refuse(statement, f"nothing fills {queue!r}")
        return self._pushed(*self._pushes[queue])

    def _pushed(self, body: PatternBody, push: Push) -> Wire:
        return self._value(body, push.value, push.queue)

    def _value(self, body: PatternBody, value: Expr, name: str) -> Wire:
        """A wire with the value of an expression in a body."""
        if isinstance(value, Local) and value.name in body.wires:
            return body.wires[value.name]
        fresh = self.draft.names.fresh(name)
        return bound(body, [Bind(target=fresh, value=value)])[fresh]

    def _update(self, body: PatternBody, statement: Update) -> Wire:
        """The allocator of a word; no other statement may use the word."""
        users = [
            other
            for other in statements(self.program.body)
            if isinstance(other, Update | ReadMemory | WriteMemory)
            and other.memory == statement.memory
        ]
        depth = 0
        inside: PatternBody | None = body
        while inside is not None and inside.carry is None:
            depth, inside = depth + 1, inside.around
        if len(users) > 1 or not isinstance(statement.index, Const) or body.lanes > 1:
            refuse(statement, f"words of {statement.memory!r} that iterations add to")
        if body.space and depth > 2:
            refuse(statement, f"an update of {statement.memory!r} so far inside of loops")
        value = self._value(body, statement.value, statement.target)
        owner = self._declared.get(statement.memory)
        if owner is body:  # the word starts from 0 in each iteration, so the sum is the value
            return value
        if owner is not None:
            refuse(statement, f"an update of {statement.memory!r}, which is inside a loop")
        return updated(body, statement, value, each=depth == 1)

    def _add(self, body: PatternBody, statement: Update) -> None:
        """Add to words of a sparse DRAM; no other statement may use them."""
        alias = self._memories[statement.memory].alias
        assert alias is not None
        others = [
            other
            for other in statements(self.program.body)
            if other is not statement and statement.memory in _used_by(other)
        ]
        # a firing writes all lanes at once, so they must add to different words
        apart = body.lanes == 1 or varies_in(body, statement.index, self._values)
        if others or not apart:
            refuse(statement, f"words of {statement.memory!r} that several statements use")
        added(body, statement, self._tensors.summed(alias))

    def _parted(self, body: PatternBody, parts: int, pattern: PatternStatement) -> PatternBody:
        if parts not in self._partitions:
            self._partitions[parts] = parted(body, parts, pattern.location)
        return self._partitions[parts]

    def _popping_lanes(
        self, statement: LoadStream, beside: tuple[PatternStatement, ...], outermost: bool
    ) -> int:
        """The number of words that a firing of the body that pops a queue takes."""
        for pattern in beside:
            if isinstance(pattern, BuildBits) and pattern.coordinates == statement.queue:
                return self.draft.times.lanes
            if isinstance(pattern, Foreach | Reduce) and isinstance(pattern.header, CountHeader):
                pops = [
                    s for s in pattern.body if isinstance(s, Pop) and s.queue == statement.queue
                ]
                if len(pops) == 1 and not _has_patterns(pattern):
                    return pattern.header.parallel.factor
                if len(pops) == 1:
                    return pattern.header.parallel.factor if outermost else 1
        refuse(statement, f"{statement.queue!r} is not taken by a loop right behind it")


_WRITTEN = (MemoryKind.SRAM, MemoryKind.SPARSE_SRAM)
"""On-chip memories that loops write and later loops read."""


def _unit_of(statement: PatternStatement) -> object:
    """A key that is equal for adjacent statements that one unit serves."""
    match statement:
        case Bind(value=value) if value.type != WORDS.scalar:
            return Bind
        case ReadMemory(memory=memory):
            return memory
    return id(statement)


def _used_by(statement: PatternStatement) -> tuple[str, ...]:
    """The memory that a statement accesses word by word."""
    match statement:
        case ReadMemory(memory=memory) | WriteMemory(memory=memory) | Update(memory=memory):
            return (memory,)
    return ()


def _has_patterns(pattern: Foreach | Reduce) -> bool:
    return any(isinstance(inner, Foreach | Reduce) for inner in pattern.body)


# Sources of firings: the start of a program, and the counter of a pattern.


def start(
    draft: GraphDraft, environment: dict[str, int], location: SourceLocation | None
) -> PatternBody:
    """The outermost body: one firing, then the end."""
    unit = UnitDraft(draft, "start", Role.RELAY, (), None, location)
    binder = draft.names.fresh("once")
    control = unit.output(binder, tagged=True)
    unit.mode("once", when(None, rule("go", "end", puts=[put(control, tag=LAST)])))
    unit.mode("end", when(None, rule("done", None, puts=[put(control, tag=DONE)])))
    unit.finish()
    return PatternBody(
        draft=draft,
        around=None,
        lanes=1,
        space=(),
        region=None,
        control=control,
        binder=binder,
        environment=environment,
    )


def counted(
    around: PatternBody,
    pattern: Foreach | Reduce,
    extent: Expr,
    lanes: int,
    region: str,
    parts: int,
) -> PatternBody:
    """The body of a counting pattern, and the unit that generates its firings.

    Each of ``parts`` partitions runs every ``parts``-th iteration.
    """
    (binder,) = pattern.binders
    unit = BodyUnit(around, f"count_{binder}", Role.RELAY, pattern.location)
    most = select(unit.valid, unit.scalar(extent), 0)
    begin = unit.register("at")
    first: Expr = begin
    if parts > 1:
        (dimension,) = around.space
        first = begin + Index(name=dimension.name)
    type = INT32.with_lanes(lanes)
    numbers = counted_from(first, lanes)
    present = numbers < spread(most, lanes)
    value = addresses(present, numbers)
    # the link carries the first number and the count only: each lane adds its own offset
    room = around.draft.times.room(1)
    control = unit.output(binder, type, tagged=True, capacity=room)
    local = unit.output(binder, type, capacity=room)
    step = const(lanes * parts)
    more = first + step < most
    unit.at_each(
        [
            FiringCase(
                name="count",
                when=more,
                body=(write(begin, begin + step),),
                puts=(put(control, value), put(local, value)),
                final=False,
            ),
            FiringCase(
                name="end",
                body=(write(begin, 0),),
                puts=(put(control, value, LAST), put(local, value)),
            ),
        ],
        done=[put(control, tag=DONE)],
    )
    unit.finish()
    return PatternBody(
        draft=around.draft,
        around=around,
        lanes=lanes,
        space=around.space,
        region=region,
        control=control,
        binder=binder,
        wires={binder: local},
        environment=around.environment,
    )


# Tensors of a program's memories: off-chip arrays, their on-chip copies, and written memories.


class ProgramTensors:
    """The tensors of the graph so far."""

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
        """The on-chip copy of a DRAM; accessed through the network if it is partitioned."""
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
            place=MemorySpace.SHARED if shared else MemorySpace.CHIP,
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
        """The tensor of an on-chip memory that the program fills, each word once."""
        return self._draft.tensor(
            Tensor(
                name=memory,
                type=self._memories[memory].type,
                shape=(0,),
                role=TensorRole.INTERMEDIATE,
                open=True,
                place=MemorySpace.CHIP,
                once=True,
                location=statement.location,
            )
        )

    def check_apart(self, statement: WriteMemory) -> None:
        """Refuse a write that may overwrite a word of another write."""
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
    """The off-chip memories that statements store into, each once for every statement."""
    for statement in statements(program.body):
        if isinstance(statement, StoreBlock | StoreStream):
            yield statement.target


def _streamed_by(program: PatternProgram) -> frozenset[str]:
    """The off-chip memories that are loaded into queues by segments."""
    loads = (
        statement for statement in statements(program.body) if isinstance(statement, LoadStream)
    )
    return frozenset(load.source for load in loads)


def _stored_in_parts(program: PatternProgram) -> frozenset[str]:
    """The off-chip memories that are stored into at arbitrary addresses: sparse DRAMs."""
    aliases = {
        memory.name: memory.alias for memory in program.declared() if memory.alias is not None
    }
    writes = (memory for memory in statements(program.body) if isinstance(memory, WriteMemory))
    return frozenset(aliases[memory.memory] for memory in writes if memory.memory in aliases)


def _apart(first: Expr, second: Expr) -> bool:
    """Whether a constant index is below every value of another index, a constant plus a loop from
    0.
    """
    match first, second:
        case Const(value=left), Const(value=right):
            return left != right
        case Const(value=left), Apply(operator=Op.ADD, operands=(_, Const(value=least))):
            return left < least
    return False


def names_of(program: PatternProgram, everything: list[PatternStatement]) -> list[str]:
    """All names of a program."""
    names = [argument.name for argument in program.arguments]
    names += [memory.name for memory in program.declared()]
    for statement in everything:
        match statement:
            case Foreach(binders=binders):
                names += binders
            case Reduce(target=target, binders=binders):
                names += [target, *binders]
            case (
                Bind(target=target)
                | Pop(target=target)
                | ReadMemory(target=target)
                | Update(target=target)
            ):
                names.append(target)
    return names


def refuse(statement: PatternStatement, what: str) -> NoReturn:
    """Raise the error for an unsupported statement, at the user's line."""
    raise UnsupportedError(
        f"the simulator of Capstan does not support this: {what}",
        location=statement.location,
        expected="loops that count or scan, and words that are written once or added to",
        hint="interpret(inputs) runs the patterns, without times",
    )
