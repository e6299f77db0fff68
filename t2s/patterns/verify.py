"""Verify programs of patterns: raises ``InternalError`` for programs that no pass may write.

Checked is what every backend relies on: names, types and kinds of memories; that puts and takes of
each queue balance on every path; that dense memories are addressed by counters and by words read at
such addresses, never by coordinates; that scans fit the machine; that every result is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import product

from t2s.core.errors import InternalError
from t2s.core.expr import Apply, Const, Expr, Local, Parameter, simplify
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.core.types import INT32, Kind, Type
from t2s.core.walk import walk
from t2s.patterns.ir import (
    SCAN_BITS,
    WORD_BITS,
    Bind,
    BuildBits,
    ComputedLevel,
    CountHeader,
    DeclareMemory,
    Foreach,
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
    binder_count,
    start_of,
    statements,
)

DENSE = (MemoryKind.SRAM, MemoryKind.REGISTER)
ON_CHIP = (MemoryKind.SRAM, MemoryKind.SPARSE_SRAM, MemoryKind.PARTITIONED_SRAM)
ADDRESSED = (*DENSE, MemoryKind.SPARSE_SRAM, MemoryKind.PARTITIONED_SRAM, MemoryKind.SPARSE_DRAM)


def verify_patterns(program: PatternProgram) -> None:
    """Raise ``InternalError`` that names the first invalid statement."""
    checker = _Checker(program, bit_sets(program.body))
    for argument in program.arguments:
        checker.name(argument.name)
    for name, value in program.environment:
        checker.name(name)
        checker.require(value >= 1, f"environment variable {name!r} is {value}")
    for memory in program.memories:
        checker.memory(memory)
        checker.require(memory.kind.off_chip, f"{memory.name!r} is declared outside of the body")
    checker.body(program.body, ())
    _check_results(program, checker)


@dataclass
class _Checker:
    """The scope: memories and locals, with whether a local is a coordinate."""

    program: PatternProgram
    sets: Mapping[str, BitSet]
    names: set[str] = field(default_factory=set)
    memories: dict[str, PatternMemory] = field(default_factory=dict)
    locals: dict[str, Type] = field(default_factory=dict)
    irregular: set[str] = field(default_factory=set)
    here: PatternStatement | None = None

    def require(self, holds: bool, why: str) -> None:
        if not holds:
            where = "" if self.here is None else f", in {self.here.__class__.__name__}"
            raise InternalError(f"program {self.program.name!r}{where}: {why}")

    def name(self, name: str) -> None:
        self.require(name not in self.names, f"two things are named {name!r}")
        self.names.add(name)

    def memory(self, memory: PatternMemory) -> None:
        self.name(memory.name)
        self.expression(memory.size, INT32)
        self.require(memory.partitions >= 1, f"{memory.name!r} has no partitions")
        if memory.alias is not None:
            other = self.memories.get(memory.alias)
            right = other is not None and other.kind is MemoryKind.DRAM
            self.require(
                right and memory.kind is MemoryKind.SPARSE_DRAM,
                f"{memory.name!r} is not a view of a dense DRAM",
            )
        self.memories[memory.name] = memory

    def bind(self, name: str, type: Type, *, irregular: bool = False) -> None:
        self.name(name)
        self.locals[name] = type
        if irregular:
            self.irregular.add(name)

    def expression(self, expr: Expr, type: Type | None = None) -> None:
        if type is not None:
            self.require(expr.type == type, f"{show(expr)} is {expr.type}, not {type}")
        known = {a.name: a.type for a in self.program.arguments}
        known |= {name: INT32 for name, _ in self.program.environment}
        for term in walk(expr):
            match term:
                case Local(name=name, type=found):
                    self.require(self.locals.get(name) == found, f"{name!r} is not bound here")
                case Parameter(name=name, type=found):
                    self.require(known.get(name) == found, f"there is no parameter {name!r}")

    def find(self, name: str, *kinds: MemoryKind) -> PatternMemory:
        """A memory in scope, of one of these kinds."""
        found = self.memories.get(name)
        if found is None or found.kind not in kinds:
            what = "not declared here" if found is None else f"a {found.kind.value}"
            self.require(False, f"{name!r} is {what}, not one of {[k.value for k in kinds]}")
        assert found is not None
        return found

    def body(
        self, body: tuple[PatternStatement, ...], around: tuple[PatternStatement, ...]
    ) -> None:
        """Check a body: its statements in order; its declarations and bindings end with it."""
        memories, local = dict(self.memories), dict(self.locals)
        irregular = set(self.irregular)
        for statement in body:
            self.here = statement
            self.statement(statement, around)
        self.memories, self.locals, self.irregular = memories, local, irregular
        for statement in body:
            if isinstance(statement, DeclareMemory) and statement.memory.kind.queue:
                self.here = statement
                self.balance(statement.memory.name, body)

    def statement(self, statement: PatternStatement, around: tuple[PatternStatement, ...]) -> None:
        match statement:
            case DeclareMemory(memory=memory):
                self.require(not memory.kind.off_chip, f"{memory.name!r} is off chip")
                self.memory(memory)
            case Bind(target=target, value=value):
                self.expression(value)
                self.bind(target, value.type, irregular=self.is_irregular(value))
            case LoadBlock() | StoreBlock() | LoadStream() | StoreStream():
                self.transfer(statement)
            case BuildBits(coordinates=coordinates, count=count, words=words, bits=bits):
                self.find(coordinates, MemoryKind.FIFO)
                self.find(words, MemoryKind.BITS)
                self.expression(count, INT32)
                self.bits(bits)
            case Pop(target=target, queue=queue):
                found = self.find(queue, MemoryKind.FIFO, MemoryKind.BITS)
                self.bind(target, found.type, irregular=True)
            case Push(queue=queue, value=value):
                found = self.find(queue, MemoryKind.FIFO, MemoryKind.BITS)
                self.expression(value, found.type)
            case ReadMemory() | WriteMemory() | Update():
                self.access(statement)
            case Foreach() | Reduce():
                self.pattern(statement, around)
            case _:
                self.require(False, "it is not a statement of patterns")

    def transfer(self, statement: LoadBlock | StoreBlock | LoadStream | StoreStream) -> None:
        match statement:
            case LoadBlock(memory=near, source=far):
                kinds: tuple[MemoryKind, ...] = ON_CHIP
            case StoreBlock(memory=near, target=far):
                kinds = (MemoryKind.SRAM,)
            case LoadStream(queue=near, source=far) | StoreStream(queue=near, target=far):
                kinds = (MemoryKind.FIFO,)
        inside, outside = self.find(near, *kinds), self.find(far, MemoryKind.DRAM)
        self.require(inside.type == outside.type, f"{near!r} and {far!r} hold different types")
        self.expression(statement.begin, INT32)
        self.expression(statement.length, INT32)

    def access(self, statement: ReadMemory | WriteMemory | Update) -> None:
        kinds = ADDRESSED if not isinstance(statement, Update) else ADDRESSED[2:]
        memory = self.find(statement.memory, *kinds)
        self.expression(statement.index, INT32)
        if memory.kind in DENSE:
            self.require(
                not self.is_irregular(statement.index),
                f"{memory.name!r} is a {memory.kind.value}, and {show(statement.index)} follows"
                " coordinates",
            )
        match statement:
            case ReadMemory(target=target):
                self.bind(target, memory.type, irregular=memory.kind.sparse)
            case WriteMemory(value=value):
                self.expression(value, memory.type)
                self.require(not memory.swizzled, f"{memory.name!r} is swizzled: it is only read")
            case Update(target=target, value=value, ordered=ordered):
                self.expression(value, memory.type)
                whole = memory.type.kind in (Kind.INT, Kind.UINT)
                self.require(ordered or whole, "updates of floats out of order round differently")
                self.bind(target, memory.type, irregular=True)

    def pattern(self, statement: Foreach | Reduce, around: tuple[PatternStatement, ...]) -> None:
        header, binders = statement.header, statement.binders
        self.require(len(binders) == binder_count(header), f"it binds {len(binders)} locals")
        self.require(header.parallel.factor >= 1, "it takes no iteration at a time")
        variable = header.parallel.variable
        given = dict(self.program.environment)
        self.require(
            variable is None or given.get(variable) == header.parallel.factor,
            f"its factor is not that of {variable!r}",
        )
        match header:
            case CountHeader(extent=extent):
                self.expression(extent, INT32)
            case ScanHeader(bits=bits, left=left, right=right):
                self.bits(bits)
                for queue in (left, right):
                    if queue is not None:
                        self.find(queue, MemoryKind.BITS)
        memories, local, irregular = dict(self.memories), dict(self.locals), set(self.irregular)
        for binder in binders:
            self.bind(binder, INT32, irregular=isinstance(header, ScanHeader))
        inside = (*statement.body, *self._result_of(statement))
        self.body(inside, (*around, statement))
        self.memories, self.locals, self.irregular = memories, local, irregular
        if isinstance(statement, Reduce):
            self.here = statement
            self.require(start_of(statement) is not None, f"{statement.operator} has no start")
            self.bind(statement.target, statement.value.type, irregular=True)

    def _result_of(self, statement: Foreach | Reduce) -> tuple[PatternStatement, ...]:
        """The value of an iteration, checked where the locals of the body are in scope."""
        if isinstance(statement, Foreach):
            return ()
        value = f"value of {statement.target}"
        return (Bind(target=value, value=statement.value, location=statement.location),)

    def bits(self, bits: Expr) -> None:
        self.expression(bits, INT32)
        if isinstance(bits, Const):
            most, rest = int(bits.value), int(bits.value) % WORD_BITS
            self.require(0 <= most <= SCAN_BITS and rest == 0, f"it has {bits.value} bits")

    def is_irregular(self, expr: Expr) -> bool:
        """Whether the value follows coordinates, or the contents of sparse memories."""
        return any(isinstance(t, Local) and t.name in self.irregular for t in walk(expr))

    def balance(self, queue: str, body: tuple[PatternStatement, ...]) -> None:
        """Check that puts and takes of a queue balance in each enclosing iteration."""
        put, taken = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
        for words, path, taking in _traffic(queue, body, (), self.sets):
            (taken if taking else put)[tuple(sorted((*path, *words)))] += 1
        self.require(
            put == taken, f"{_count(put)} words are put into {queue!r}, and {_count(taken)} taken"
        )


Path = tuple[str, ...]
"""Extents of the patterns around a statement; what is multiplied is how often it happens."""


def _traffic(
    queue: str, body: tuple[PatternStatement, ...], path: Path, sets: Mapping[str, BitSet]
) -> Iterator[tuple[Path, Path, bool]]:
    """Words put or taken: their number as factors, the extents around, and whether taken."""
    for statement in body:
        match statement:
            case LoadStream(queue=name, length=length) if name == queue:
                yield _factors(length), path, False
            case StoreStream(queue=name, length=length) if name == queue:
                yield _factors(length), path, True
            case Push(queue=name) if name == queue:
                yield (), path, False
            case Pop(queue=name) if name == queue:
                yield (), path, True
            case BuildBits(coordinates=coordinates, count=count, words=words, bits=bits):
                if coordinates == queue:
                    yield _factors(count), path, True
                if words == queue:
                    yield _words(bits), path, False
            case Foreach(header=header, body=inside) | Reduce(header=header, body=inside):
                match header:
                    case CountHeader(extent=extent):
                        yield from _traffic(queue, inside, (*path, *_factors(extent)), sets)
                    case ScanHeader(bits=bits, left=left, right=right):
                        for _ in [name for name in (left, right) if name == queue]:
                            yield _words(bits), path, True
                        yield from _traffic(queue, inside, (*path, _visits(header, sets)), sets)


def _visits(header: ScanHeader, sets: Mapping[str, BitSet]) -> str:
    """The trip count of a scan: equal for scans with the same coordinates."""
    visited = set_of_scan(header, sets)
    if visited is None:
        return f"scan {id(header)}"
    return "scan " + " or ".join(sorted(" and ".join(sorted(term)) for term in visited))


def _factors(expr: Expr) -> Path:
    """A number of words as the text of its factors; 1 has none."""
    match simplify(expr):
        case Const(value=1):
            return ()
        case Apply(operator=Op.MULTIPLY, operands=(left, right)):
            return (*_factors(left), *_factors(right))
        case factor:
            return (show(factor),)


def _words(bits: Expr) -> Path:
    size = Const(value=WORD_BITS, type=INT32)
    return _factors(bits // size)


def _count(traffic: Counter[Path]) -> str:
    terms = (" * ".join(path) or "1" for path in traffic.elements())
    return " + ".join(sorted(terms)) or "no"


def _check_results(program: PatternProgram, checker: _Checker) -> None:
    checker.here = None
    stored = set()
    for statement in statements(program.body):
        match statement:
            case StoreBlock(target=target) | StoreStream(target=target):
                stored.add(target)
            case WriteMemory(memory=memory) | Update(memory=memory):
                stored.add(memory)
    stored |= {m.alias for m in program.memories if m.name in stored and m.alias is not None}
    for result in program.results:
        wanted = [result.values] if result.levels else []
        for level in result.levels:
            if isinstance(level, ComputedLevel):
                wanted += [level.positions, level.coordinates]
        for name in wanted:
            checker.require(name in stored, f"{name!r} of {result.tensor!r} is never stored")


# The coordinates of a program's bit vectors, as unions of intersections of the built ones.
#
# A ``BitSet`` is a monotone function of the vectors that ``BuildBits`` puts: a set of terms, each a
# set of their names, of which no term has another one inside.  That form is unique, so two scans
# whose sets are equal make equally many iterations, with the same coordinates.

BitSet = frozenset[frozenset[str]]


def one_set(name: str) -> BitSet:
    """The coordinates of one vector."""
    return frozenset({frozenset({name})})


def united(*sets: BitSet) -> BitSet:
    """The union of the sets."""
    return _minimal(frozenset().union(*sets))


def intersected(*sets: BitSet) -> BitSet:
    """The intersection of the sets."""
    return reduce(lambda a, b: _minimal(frozenset(x | y for x, y in product(a, b))), sets)


def is_inside(inner: BitSet, outer: BitSet) -> bool:
    """Whether one set is a subset of the other, for all vectors."""
    return united(inner, outer) == outer


def _minimal(terms: BitSet) -> BitSet:
    return frozenset(term for term in terms if not any(other < term for other in terms))


def bit_sets(body: tuple[PatternStatement, ...]) -> Mapping[str, BitSet]:
    """The sets of a program's queues of bits that only copies, ands and ors produce."""
    found: dict[str, BitSet] = {}
    words: dict[str, BitSet] = {}
    for statement in statements(body):
        match statement:
            case BuildBits(words=queue):
                found[queue] = one_set(queue)
            case Foreach(body=inside):
                for one in inside:
                    if isinstance(one, Pop) and one.queue in found:
                        words[one.target] = found[one.queue]
                for one in inside:
                    made = _set_of(one.value, words) if isinstance(one, Bind | Push) else None
                    if isinstance(one, Bind) and made is not None:
                        words[one.target] = made
                    if isinstance(one, Push) and made is not None:
                        found[one.queue] = made
    return found


def _set_of(value: Expr, words: Mapping[str, BitSet]) -> BitSet | None:
    match value:
        case Local(name=name):
            return words.get(name)
        case Apply(operator=Op.AND | Op.OR as operator, operands=(left, right)):
            one, other = _set_of(left, words), _set_of(right, words)
            if one is None or other is None:
                return None
            return united(one, other) if operator is Op.OR else intersected(one, other)
    return None


def set_of_scan(header: ScanHeader, sets: Mapping[str, BitSet]) -> BitSet | None:
    """The coordinates that a scan visits; ``None`` if unknown."""
    if header.left not in sets:
        return None
    if header.right is None:
        return sets[header.left]
    if header.right not in sets:
        return None
    join = intersected if header.join is JoinKind.AND else united
    return join(sets[header.left], sets[header.right])
