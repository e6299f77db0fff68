"""Generated code that finds the times of nodes from the codes of their firings.

Every node runs ahead as far as its channels allow.  An element of a channel is a ring of one 64-bit
word per slot: a positive word is a token and the cycle at which it is ready, a negative one a free
slot, negated the first cycle at which it may be filled.  A ring has a power of two of slots and may
be longer than the capacity c: send m has space from when token m - c has left.  A firing asks for
tokens and for space in a fixed order of *steps*, and fires at the latest of these cycles and of the
end of its interval.

The code has no branch on what a firing does: each code has a row of masks, all ones where a step is
needed or a token moves, else zero.  So unforeseeable sequences of codes cost nothing extra.
Functions are made per *shape* of a node (``Shape``), which many nodes of a graph share.

Stalls.  With s the end of the interval and p(k) the latest cycle of steps 1 to k, step k is to
blame for max(s, p(k)) - max(s, p(k-1)) cycles.  The code adds up max(s, p(k)) over all firings but
the first, for each k; the differences of these sums are the stalls (the sum of s itself follows
from the last one).
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.collector import without_collections
from t2s.simulator.emit.builder import Builder
from t2s.simulator.emit.llvm import (
    I64,
    POINTER,
    BasicBlock,
    LLVMFunction,
    Module,
    Slot,
    Value,
    integer,
    integer_type,
)
from t2s.simulator.emit.representation import offset_by

NEXT, CODE, CODE_END, MASKS, INTERVAL, FIRST, LAST_STORE, BLOCK, SEEN, FUNCTION, LIMIT = range(11)
"""Words at the front of the record of a node: the earliest cycle of its next firing, address of the
next code and of the end of the codes, address of the rows of masks, II, cycle of the first firing
(0 if there was none) and of the last one that stores, address of a word that has to change before
the node can fire and what it holds, address of the node's function, last cycle that may be
simulated."""

HEADER = 12
COUNT, WRAP = range(2)
"""Words of a group of ports whose tokens always move together: 8 times the tokens moved so far, and
the length of their rings in bytes less 8."""

GROUP_WORDS = 2
BASE, DELAY, CAPACITY = range(3)
"""Words of a port: address of its ring; the latency of a port that sends, and of one that receives
0, or ``ELASTIC`` where the channel has space for all its tokens: then its slots are free from the
first cycle on; and the capacity in bytes, of a port that sends."""

PORT_WORDS = 3
ELASTIC = -1

ALWAYS, NEVER = -1, -2
"""Instead of a column of masks."""

ENTRY = "advance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the code of a node depends on.

    Attributes
    ----------
    receives: for each port, whether it receives (else it sends).
    groups: for each port, the number of its group.
    moves: for each group, the column that says when its tokens move, ``ALWAYS`` or ``NEVER``.
    steps: (port, column that says when the firing waits for it, or ``ALWAYS``), in order.
    stores: the column that says when a firing stores to memory, ``ALWAYS`` or ``NEVER``.
    columns: number of columns of masks.
    code_bytes: bytes of a code.
    """

    receives: tuple[bool, ...]
    groups: tuple[int, ...]
    moves: tuple[int, ...]
    steps: tuple[tuple[int, int], ...]
    stores: int
    columns: int
    code_bytes: int

    def group(self, number: int) -> int:
        """The first word of a group in the record."""
        return HEADER + GROUP_WORDS * number

    def port(self, number: int) -> int:
        """The first word of a port in the record."""
        return HEADER + GROUP_WORDS * len(self.moves) + PORT_WORDS * number

    @property
    def sums(self) -> int:
        """The word of the record where the sums begin, one for each step."""
        return self.port(len(self.receives))

    @property
    def words(self) -> int:
        """Words of the record."""
        return self.sums + len(self.steps)


@without_collections()
def emit_shapes(shapes: tuple[Shape, ...]) -> str:
    """A module with a function ``shape0``, ``shape1``, ... for each, and ``advance``.

    ``shapeN(record, most)`` fires a node up to ``most`` times and returns how often it fired.
    ``advance(records, count, budget, most)`` visits nodes in turn, given the addresses of their
    records, until nobody can fire or ``budget`` firings are made; it returns the number of firings.
    """
    module = Module()
    for number, shape in enumerate(shapes):
        _ShapeEmitter(module, shape, f"shape{number}").emit()
    _emit_advance(module)
    return str(module)


class _ShapeEmitter:
    """Emits the function of a shape; what changes lives in stack slots."""

    def __init__(self, module: Module, shape: Shape, name: str) -> None:
        self._shape = shape
        function = module.function(name, I64, [POINTER, I64], attributes="nounwind", noalias=True)
        self._function: LLVMFunction = function
        self._record, self._most = function.args
        self._builder = Builder(function)
        builder = self._builder
        self._counts = [builder.alloca(I64) for group in range(self._groups)]
        self._sums = [builder.alloca(I64) for _ in shape.steps]
        self._next = builder.alloca(I64)
        self._code = builder.alloca(I64)
        self._store = builder.alloca(I64)
        self._code_type = integer_type(8 * shape.code_bytes)
        ports = range(len(shape.receives))
        self._bases = [self._pointer(shape.port(port) + BASE) for port in ports]
        self._delays = [self._word(shape.port(port) + DELAY) for port in ports]
        self._capacities = [self._word(shape.port(port) + CAPACITY) for port in ports]
        self._wraps = [self._word(shape.group(group) + WRAP) for group in range(self._groups)]

    @property
    def _groups(self) -> int:
        return len(self._shape.moves)

    def emit(self) -> None:
        """The whole function."""
        shape, builder, function = self._shape, self._builder, self._function
        for word, slot in self._kept():
            builder.store(self._word(word), slot)
        for number, slot in enumerate(self._sums):
            builder.store(self._word(shape.sums + number), slot)
        masks, interval, limit = (self._word(word) for word in (MASKS, INTERVAL, LIMIT))
        first, start, end = (self._word(word) for word in (FIRST, CODE, CODE_END))
        fresh = builder.icmp_signed("==", first, integer(0))
        most = builder.select(fresh, integer(1), self._most)
        left = builder.sub(end, start)
        most = builder.mul(most, integer(shape.code_bytes))
        until = builder.add(start, builder.select(builder.icmp_signed("<", left, most), left, most))
        loop, fire, leave, blocked, late, move = (
            function.block(name) for name in ("loop", "fire", "leave", "blocked", "late", "move")
        )
        builder.branch(loop)

        builder.position_at_end(loop)
        going = builder.icmp_signed("<", self._load(self._code), until)
        builder.cbranch(going, fire, leave)
        builder.position_at_end(fire)
        row = self._row(masks)
        asked, latest, unready = self._asked(row)
        builder.cbranch(builder.icmp_signed("<", unready, integer(0)), blocked, move)
        builder.position_at_end(move)
        earliest = self._load(self._next)
        now = self._larger(earliest, latest[-1]) if latest else earliest
        fires = function.block("fires")
        builder.cbranch(builder.icmp_signed(">", now, limit), late, fires)
        builder.position_at_end(fires)
        self._add_up(earliest, latest, now)
        self._move(row, now)
        self._note_store(row, now)
        builder.store(builder.add(now, interval), self._next)
        builder.store(builder.add(self._load(self._code), integer(shape.code_bytes)), self._code)
        builder.branch(loop)

        self._emit_exits(loop=leave, blocked=blocked, late=late, asked=asked)
        self._emit_save(fresh, start, interval)

    def _emit_exits(
        self,
        *,
        loop: BasicBlock,
        blocked: BasicBlock,
        late: BasicBlock,
        asked: list[tuple[Value, Value, Value]],
    ) -> None:
        """Say what has to change before the node can go on: nothing, a slot, or what never will."""
        builder = self._builder
        save = self._function.block("save")
        self._save = save
        builder.position_at_end(blocked)
        where, held = integer(0), integer(0)
        for position, value, wanted in reversed(asked):
            stuck = builder.icmp_signed("<", wanted, integer(0))
            where = builder.select(stuck, builder.ptrtoint(position, I64), where)
            held = builder.select(stuck, value, held)
        builder.store(where, self._address(BLOCK))
        builder.store(held, self._address(SEEN))
        builder.branch(save)
        builder.position_at_end(late)
        builder.store(builder.ptrtoint(self._address(SEEN), I64), self._address(BLOCK))
        builder.branch(save)
        builder.position_at_end(loop)
        done = builder.icmp_signed("==", self._load(self._code), self._word(CODE_END))
        code = builder.ptrtoint(self._address(CODE), I64)
        never = builder.ptrtoint(self._address(SEEN), I64)
        builder.store(builder.select(done, never, code), self._address(BLOCK))
        builder.store(integer(0), self._address(SEEN))
        builder.branch(save)

    def _emit_save(self, fresh: Value, start: Value, interval: Value) -> None:
        """Write the record back.  The sums leave out the first firing."""
        builder, shape = self._builder, self._shape
        builder.position_at_end(self._save)
        fired = builder.udiv(builder.sub(self._load(self._code), start), integer(shape.code_bytes))
        beginning = builder.and_(fresh, builder.icmp_signed(">", fired, integer(0)))
        for number, slot in enumerate(self._sums):
            total = builder.select(beginning, integer(0), self._load(slot))
            builder.store(total, self._address(shape.sums + number))
        for word, kept in self._kept():
            builder.store(self._load(kept), self._address(word))
        now = builder.sub(self._load(self._next), interval)
        first = builder.select(beginning, now, self._word(FIRST))
        builder.store(first, self._address(FIRST))
        builder.ret(fired)

    def _kept(self) -> list[tuple[int, Slot]]:
        """The words of the record that change, and the stack slots where they live meanwhile."""
        kept = [(NEXT, self._next), (CODE, self._code)]
        for group, slot in enumerate(self._counts):
            kept.append((self._shape.group(group) + COUNT, slot))
        return kept if self._shape.stores == NEVER else [*kept, (LAST_STORE, self._store)]

    def _row(self, masks: Value) -> Value:
        """The address of the masks of the next code, if there are any."""
        builder = self._builder
        if self._shape.columns == 0:
            return integer(0)
        pointer = builder.inttoptr(self._load(self._code), POINTER)
        code = builder.zext(builder.load(pointer, self._code_type, align=1), I64)
        return builder.add(masks, builder.mul(code, integer(8 * self._shape.columns)))

    def _mask(self, row: Value, column: int) -> Value:
        pointer = self._builder.inttoptr(self._builder.add(row, integer(8 * column)), POINTER)
        return self._builder.load(pointer, I64)

    def _asked(self, row: Value) -> tuple[list[tuple[Value, Value, Value]], list[Value], Value]:
        """Of each step its slot, what is there and the cycle it allows; negative if not known yet.

        Also the latest cycles up to each step, and a number that is negative if any is unknown.
        """
        builder = self._builder
        asked: list[tuple[Value, Value, Value]] = []
        latest: list[Value] = []
        unready = integer(0)
        for port, column in self._shape.steps:
            position = self._asked_slot(port)
            value = builder.load(position, I64)
            wanted = value if self._shape.receives[port] else builder.neg(value)
            if column != ALWAYS:
                wanted = builder.and_(wanted, self._mask(row, column))
            asked.append((position, value, wanted))
            latest.append(self._larger(latest[-1], wanted) if latest else wanted)
            unready = builder.or_(unready, wanted)
        return asked, latest, unready

    def _asked_slot(self, port: int) -> Value:
        """The next token of a port that receives; where the token left that makes space to send."""
        builder, group = self._builder, self._shape.groups[port]
        at = self._load(self._counts[group])
        if not self._shape.receives[port]:
            at = builder.sub(at, self._capacities[port])
        return offset_by(builder, self._bases[port], builder.and_(at, self._wraps[group]))

    def _add_up(self, earliest: Value, latest: list[Value], now: Value) -> None:
        builder = self._builder
        times = [self._larger(earliest, time) for time in latest[:-1]]
        for slot, time in zip(self._sums, [*times, now], strict=False):
            builder.store(builder.add(self._load(slot), time), slot)

    def _move(self, row: Value, now: Value) -> None:
        """Take and put tokens.  A ring has a slot more, which is written where no token moves."""
        builder, shape = self._builder, self._shape
        for group, column in enumerate(shape.moves):
            if column == NEVER:
                continue
            count, wrap = self._load(self._counts[group]), self._wraps[group]
            at, step = builder.and_(count, wrap), integer(8)
            if column != ALWAYS:
                mask = self._mask(row, column)
                moves = builder.icmp_signed("!=", mask, integer(0))
                at = self._select(moves, at, builder.add(wrap, integer(8)))
                step = builder.and_(mask, step)
            for port, receives in enumerate(shape.receives):
                if shape.groups[port] != group:
                    continue
                delay = self._delays[port]
                if receives:
                    entry = builder.or_(builder.not_(now), delay)
                else:
                    entry = builder.add(now, delay)
                builder.store(entry, offset_by(builder, self._bases[port], at))
            builder.store(builder.add(count, step), self._counts[group])

    def _note_store(self, row: Value, now: Value) -> None:
        builder, column = self._builder, self._shape.stores
        if column == NEVER:
            return
        if column != ALWAYS:
            now = self._larger(builder.and_(now, self._mask(row, column)), self._load(self._store))
        builder.store(now, self._store)

    def _larger(self, left: Value, right: Value) -> Value:
        return self._select(self._builder.icmp_signed(">", left, right), left, right)

    def _select(self, condition: Value, if_true: Value, if_false: Value) -> Value:
        """A selection that must not become a branch."""
        return self._builder.select(condition, if_true, if_false, unpredictable=True)

    def _address(self, word: int) -> Value:
        return offset_by(self._builder, self._record, 8 * word)

    def _word(self, word: int) -> Value:
        return self._builder.load(self._address(word), I64)

    def _pointer(self, word: int) -> Value:
        return self._builder.load(self._address(word), POINTER)

    def _load(self, slot: Value) -> Value:
        return self._builder.load(slot, I64)


def _emit_advance(module: Module) -> None:
    """The loop over the nodes."""
    function = module.function(ENTRY, I64, [POINTER, I64, I64, I64])
    records, count, budget, most = function.args
    builder = Builder(function)
    names = ("sweep", "look", "visit", "step", "swept", "leave")
    sweep, look, visit, step, swept, leave = (function.block(name) for name in names)
    total, before, at = (builder.alloca(I64) for _ in range(3))
    builder.store(integer(0), total)
    builder.branch(sweep)

    builder.position_at_end(sweep)
    builder.store(builder.load(total, I64), before)
    builder.store(integer(0), at)
    empty = builder.icmp_signed("==", count, integer(0))
    builder.cbranch(empty, leave, look)

    builder.position_at_end(look)
    where = builder.mul(builder.load(at, I64), integer(8))
    record = builder.load(offset_by(builder, records, where), POINTER)
    block = builder.load(offset_by(builder, record, 8 * BLOCK), POINTER)
    seen = builder.load(offset_by(builder, record, 8 * SEEN), I64)
    same = builder.icmp_signed("==", builder.load(block, I64), seen)
    builder.cbranch(same, step, visit)

    builder.position_at_end(visit)
    address = builder.load(offset_by(builder, record, 8 * FUNCTION), I64)
    fired = builder.call_at(builder.inttoptr(address, POINTER), I64, [record, most])
    builder.store(builder.add(builder.load(total, I64), fired), total)
    builder.branch(step)

    builder.position_at_end(step)
    following = builder.add(builder.load(at, I64), integer(1))
    builder.store(following, at)
    builder.cbranch(builder.icmp_signed("<", following, count), look, swept)

    builder.position_at_end(swept)
    after = builder.load(total, I64)
    moved = builder.icmp_signed(">", after, builder.load(before, I64))
    funded = builder.icmp_signed("<", after, budget)
    builder.cbranch(builder.and_(moved, funded), sweep, leave)
    builder.position_at_end(leave)
    builder.ret(builder.load(total, I64))
