"""Generated code that computes the times of nodes by stepping through cycles.

In every cycle a node fires if, at the start of the cycle, the tokens of its next firing have
arrived and its output channels have space.  A channel is a *lane*: a bit of a word and an element
of a vector of token counts.  So the state of all channels is two words (empty lanes and full
lanes), and the moves of all nodes in a cycle are two words that change all counts at once.  The
needs and moves of a firing are such words, too; the lowest bit that is needed but missing is the
cause of a stall, because lanes are numbered in the order in which nodes wait.

A *choosing* node has a list of codes and a table with a row for each; all firings of a *steady*
node are the same.  Nodes that rarely fire are in *groups*.  While all nodes of a group wait, only
other nodes can change the lanes that they wait for first, so the group is skipped until one of
these lanes changes.

The code depends only on the numbers of nodes outside of groups, of lanes and of bits of counts, and
on whether all tokens arrive in the next cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from t2s.core.gc_pause import gc_paused
from t2s.llvm.expressions import offset_by
from t2s.llvm.ir import (
    I1,
    I8,
    I64,
    POINTER,
    BasicBlock,
    Builder,
    LLVMFunction,
    LLVMType,
    Module,
    Value,
    integer,
    integer_type,
    null,
    vector_type,
)

# The state of the stepping code, and helpers to write it.
#
# That is its state, what it depends on, and words of lanes, records and loops.

(
    CYCLE,
    QUIET,
    LONGEST,
    CHOOSING,
    STEADY,
    GROUPS,
    GROUP_COUNT,
    NODES,
    NODE_COUNT,
    SEEN,
    _,
    HELD,
    READY,
    CAPACITY,
    STALLS,
    MOVES,
    WINDOW,
    HISTORY,
    HISTORY_MASK,
    DELAYS,
    DELAY_COUNT,
) = range(21)
"""Words of the state: cycles done, the number of last cycles without a move, and after how many of
those the run is over; addresses and numbers of the records below; lanes of the nodes that have
fired; addresses of the counts (tokens including those in flight; tokens; capacities), of the totals
by lane, of the moves in the cycles of a window; of the puts of the last cycles, and of the
delays."""

STATE_WORDS = 21

CODE, ROWS = range(2)
"""Words of a choosing node: the address of its next code, and of the rows."""

GROUP_NODES = 4
"""Choosing nodes in a group; their words follow those of the lanes that they wait for first."""

FIRST, LAST, LANES = range(3)
"""Words of a node: cycles of its first and last firing, and the lanes that it uses."""

AWAKE = -(1 << 63)
"""A lane that is never full, in the last word: a group that waits for it is always evaluated."""

WINDOW_CYCLES = 255
"""Cycles until counts of eight bits are added to the totals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepShape:
    """The parameters of the code.

    Attributes
    ----------
    lanes: 32 or 64.
    count_bits: bits of a token count: 8, 16 or 32.
    delayed: whether some tokens take more than one cycle.
    choosing, steady: numbers of nodes outside of groups.
    """

    lanes: int
    count_bits: int
    delayed: bool
    choosing: int
    steady: int

    @property
    def words(self) -> int:
        """Words for what is received and what is sent: with 32 lanes both are in one."""
        return self.lanes // 32


Words = list[Value]


class WordEmitter:
    """A function of a state, which is a pointer to words; its first block is under construction."""

    def __init__(self, module: Module, function: LLVMFunction) -> None:
        self._function = function
        self._state = function.args[0]
        self._builder = Builder(function)
        self._index = self._builder.alloca(I64)

    def _together(self, parts: list[Words]) -> Words:
        """The union of some words, as a balanced tree to shorten the critical path."""
        while len(parts) > 1:
            pairs = [
                [self._builder.or_(*both) for both in zip(left, right, strict=True)]
                for left, right in zip(parts[::2], parts[1::2], strict=False)
            ]
            parts = pairs + parts[2 * len(pairs) :]
        return parts[0]

    def _each(self, address: int, count: int, bytes: int, emit: Callable[[Value], None]) -> None:
        """A loop over records."""
        builder = self._builder
        records = self._pointer(address)
        end = builder.mul(self._word(count), integer(bytes))
        loop, body, after = (self._block(name) for name in ("each", "one", "after"))
        self._store(integer(0), self._index)
        builder.branch(loop)
        builder.position_at_end(loop)
        index = self._load(self._index)
        builder.cbranch(builder.icmp_signed("<", index, end), body, after)
        builder.position_at_end(body)
        emit(offset_by(builder, records, index))
        self._store(builder.add(index, integer(bytes)), self._index)
        builder.branch(loop)
        builder.position_at_end(after)

    def _select(self, condition: Value, if_true: Value, if_false: Value) -> Value:
        """A selection that must not become a branch."""
        return self._builder.select(condition, if_true, if_false, unpredictable=True)

    def _each_node_in(self, lanes: Words, word: int, now: Value, into: Sequence[Value]) -> None:
        """Record a cycle for all nodes that use one of the lanes, and add all their lanes."""
        builder = self._builder

        def note(node: Value) -> None:
            own = [self._at_word(node, LANES + number) for number in range(len(lanes))]
            common = [builder.and_(mine, wanted) for mine, wanted in zip(own, lanes, strict=True)]
            none = builder.icmp_signed("==", self._any(common), integer(0))
            where = offset_by(builder, node, 8 * word)
            self._store(builder.select(none, self._load(where), now), where)
            for mine, slot in zip(own, into, strict=True):
                added = builder.select(none, integer(0), mine)
                self._store(builder.or_(self._load(slot), added), slot)

        self._each(NODES, NODE_COUNT, 8 * (LANES + len(lanes)), note)

    def _any(self, words: Words) -> Value:
        return words[0] if len(words) == 1 else self._builder.or_(*words)

    def _spread(self, word: Value, type: LLVMType) -> Value:
        """A vector with -1 where a bit is set."""
        bits = self._builder.bitcast(word, vector_type(I1, type.lanes))
        return self._builder.sext(bits, type)

    def _block(self, name: str) -> BasicBlock:
        return self._function.block(name)

    def _at_word(self, record: Value, word: int) -> Value:
        return self._load(offset_by(self._builder, record, 8 * word))

    def _address(self, word: int) -> Value:
        return offset_by(self._builder, self._state, 8 * word)

    def _word(self, word: int) -> Value:
        return self._load(self._address(word))

    def _pointer(self, word: int) -> Value:
        return self._builder.load(self._address(word), POINTER)

    def _load(self, where: Value) -> Value:
        return self._builder.load(where, I64)

    def _store(self, value: Value, where: Value) -> None:
        self._builder.store(value, where)


ENTRY = "run"


@gc_paused()
def emit_steps(shape: StepShape) -> str:
    """A module with ``run(state, cycles)``, which returns the cycles simulated.

    These are fewer than asked for if nothing can happen any more.
    """
    module = Module()
    _StepEmitter(module, shape).emit()
    return str(module)


@dataclass(frozen=True, slots=True)
class _SteppedNode:
    """Values of a node's code: whether it fires, its moves, and the lane it waits for first."""

    fires: Value
    moves: Words
    blame: Words


class _StepEmitter(WordEmitter):
    """Emits the function; variables live in stack slots."""

    def __init__(self, module: Module, shape: StepShape) -> None:
        self._shape = shape
        function = module.function(ENTRY, I64, [POINTER, I64], attributes="nounwind")
        super().__init__(module, function)
        builder = self._builder
        self._cycles = function.args[1]
        self._words = shape.words
        self._mask = integer_type(shape.lanes)
        self._counts = vector_type(integer_type(shape.count_bits), shape.lanes)
        self._small = vector_type(I8, 64)
        self._done, self._quiet, self._at, self._until = (builder.alloca(I64) for _ in range(4))
        self._held, self._ready = (builder.alloca(self._counts) for _ in range(2))
        self._moved, self._stalled, self._seen, self._found = (
            [builder.alloca(I64) for _ in range(self._words)] for _ in range(4)
        )
        self._stall_counts, self._move_counts = (
            [builder.alloca(self._small) for _ in range(self._words)] for _ in range(2)
        )
        self._capacity = builder.load(self._pointer(CAPACITY), self._counts, align=64)
        self._longest = self._word(LONGEST)
        self._window = self._pointer(WINDOW)

    def emit(self) -> None:
        """The whole function: windows of cycles, until enough are done or nothing happens."""
        builder = self._builder
        self._load_state()
        window, cycle, following, flush, leave = (
            self._block(name) for name in ("window", "cycle", "following", "flush", "leave")
        )
        self._store(integer(0), self._done)
        builder.branch(window)

        builder.position_at_end(window)
        left = builder.sub(self._cycles, self._load(self._done))
        size = integer(WINDOW_CYCLES)
        short = builder.icmp_signed("<", left, size)
        self._store(builder.select(short, left, size), self._until)
        self._store(integer(0), self._at)
        for slot in (*self._stall_counts, *self._move_counts):
            builder.store(null(self._small), slot)
        builder.branch(cycle)

        builder.position_at_end(cycle)
        self._emit_cycle()
        at = builder.add(self._load(self._at), integer(1))
        self._store(at, self._at)
        builder.cbranch(self._is_going(), following, flush)
        builder.position_at_end(following)
        builder.cbranch(builder.icmp_signed("<", at, self._load(self._until)), cycle, flush)

        builder.position_at_end(flush)
        self._emit_flush()
        done = builder.add(self._load(self._done), self._load(self._at))
        self._store(done, self._done)
        more = builder.icmp_signed("<", done, self._cycles)
        builder.cbranch(builder.and_(self._is_going(), more), window, leave)

        builder.position_at_end(leave)
        self._save_state()
        builder.ret(self._load(self._done))

    def _is_going(self) -> Value:
        """Whether anything can still happen."""
        return self._builder.icmp_signed("<", self._load(self._quiet), self._longest)

    # -- the state --------------------------------------------------------------------------------

    def _load_state(self) -> None:
        builder = self._builder
        self._store(self._word(QUIET), self._quiet)
        for word, slot in ((HELD, self._held), (READY, self._ready)):
            builder.store(builder.load(self._pointer(word), self._counts, align=64), slot)
        for number, slot in enumerate(self._seen):
            self._store(self._word(SEEN + number), slot)

    def _save_state(self) -> None:
        builder = self._builder
        self._store(self._load(self._quiet), self._address(QUIET))
        for word, slot in ((HELD, self._held), (READY, self._ready)):
            builder.store(builder.load(slot, self._counts), self._pointer(word), align=64)
        for number, slot in enumerate(self._seen):
            self._store(self._load(slot), self._address(SEEN + number))

    # -- a cycle ----------------------------------------------------------------------------------

    def _emit_cycle(self) -> None:
        """Evaluate all nodes on the state at the start of the cycle, then update the state."""
        builder = self._builder
        moved, waits = self._emit_nodes(self._status())
        stalled = [
            builder.and_(word, self._load(seen))
            for word, seen in zip(waits, self._seen, strict=True)
        ]
        where = builder.mul(self._load(self._at), integer(8 * self._words))
        for number, word in enumerate(moved):
            self._store(
                word, offset_by(builder, self._window, builder.add(where, integer(8 * number)))
            )
        for counts, words in ((self._stall_counts, stalled), (self._move_counts, moved)):
            for slot, word in zip(counts, words, strict=True):
                count = builder.load(slot, self._small)
                builder.store(builder.sub(count, self._spread(word, self._small)), slot)
        self._emit_tokens(moved)
        still = builder.icmp_signed("==", self._any(moved), integer(0))
        quiet = builder.add(self._load(self._quiet), integer(1))
        self._store(builder.select(still, quiet, integer(0)), self._quiet)
        self._emit_first_firings(moved)

    def _status(self) -> Words:
        """The empty and the full lanes."""
        builder = self._builder
        ready = builder.load(self._ready if self._shape.delayed else self._held, self._counts)
        held = builder.load(self._held, self._counts)
        nothing = null(self._counts)
        empty = builder.bitcast(builder.icmp_unsigned("==", ready, nothing), self._mask)
        full = builder.bitcast(builder.icmp_unsigned("==", held, self._capacity), self._mask)
        if self._words == 2:
            return [empty, full]
        both = builder.shl(builder.zext(full, I64), integer(32))
        return [builder.or_(builder.zext(empty, I64), both)]

    def _emit_nodes(self, status: Words) -> tuple[Words, Words]:
        """The moves of all nodes, and the causes of stalls."""
        builder, shape = self._builder, self._shape
        choosing, steady = self._pointer(CHOOSING), self._pointer(STEADY)
        nodes = [
            self._emit_choosing(offset_by(builder, choosing, 16 * number), status)
            for number in range(shape.choosing)
        ]
        for number in range(shape.steady):
            row = offset_by(builder, steady, 16 * self._words * number)
            nodes.append(self._emit_node(row, status))
        for slot in (*self._moved, *self._stalled):
            self._store(integer(0), slot)
        self._emit_groups(status)
        moved = [self._load(slot) for slot in self._moved]
        stalled = [self._load(slot) for slot in self._stalled]
        return self._together([*(node.moves for node in nodes), moved]), self._together(
            [*(node.blame for node in nodes), stalled]
        )

    def _emit_groups(self, status: Words) -> None:
        builder, words = self._builder, self._words

        def group(record: Value) -> None:
            waits = [self._at_word(record, number) for number in range(words)]
            gone = [
                builder.and_(lanes, builder.not_(word))
                for lanes, word in zip(waits, status, strict=True)
            ]
            before = builder.block
            look, after = self._block("look"), self._block("still")
            none = builder.icmp_signed("==", self._any(gone), integer(0))
            builder.cbranch(none, after, look, weights=(1 << 10, 1))
            builder.position_at_end(look)
            nodes = [
                self._emit_choosing(offset_by(builder, record, 8 * words + 16 * number), status)
                for number in range(GROUP_NODES)
            ]
            moves = self._together([node.moves for node in nodes])
            blame = self._together([node.blame for node in nodes])
            for slot, word in zip(self._moved, moves, strict=True):
                self._store(builder.or_(self._load(slot), word), slot)
            fired = builder.icmp_signed("!=", self._any(moves), integer(0))
            awake = builder.select(fired, integer(AWAKE), integer(0))
            unchanged = [*blame[:-1], builder.or_(blame[-1], awake)]
            for number, word in enumerate(unchanged):
                self._store(word, offset_by(builder, record, 8 * number))
            builder.branch(after)
            builder.position_at_end(after)
            phis = [builder.phi(I64) for _ in blame]
            for lanes, old, new in zip(phis, waits, blame, strict=True):
                lanes.add_incoming(old, before)
                lanes.add_incoming(new, look)
            for slot, lanes in zip(self._stalled, phis, strict=True):
                self._store(builder.or_(self._load(slot), lanes), slot)

        self._each(GROUPS, GROUP_COUNT, 8 * words + 16 * GROUP_NODES, group)

    def _emit_choosing(self, node: Value, status: Words) -> _SteppedNode:
        builder = self._builder
        code = builder.load(offset_by(builder, node, 8 * CODE), POINTER)
        rows = builder.load(offset_by(builder, node, 8 * ROWS), POINTER)
        number = builder.zext(builder.load(code, I8), I64)
        row = offset_by(builder, rows, builder.mul(number, integer(16 * self._words)))
        stepped = self._emit_node(row, status)
        after = offset_by(builder, code, builder.zext(stepped.fires, I64))
        builder.store(after, offset_by(builder, node, 8 * CODE))
        return stepped

    def _emit_node(self, row: Value, status: Words) -> _SteppedNode:
        """Whether a node fires, with its moves, or the cause of its stall."""
        builder = self._builder
        missing = [
            builder.and_(self._at_word(row, number), word) for number, word in enumerate(status)
        ]
        fires = builder.icmp_signed("==", self._any(missing), integer(0))
        moves = [
            self._select(fires, self._at_word(row, self._words + number), integer(0))
            for number in range(self._words)
        ]
        blame: Words = []
        for number, word in enumerate(missing):
            lowest = builder.and_(word, builder.neg(word))
            if number:
                earlier = builder.icmp_signed("!=", missing[0], integer(0))
                lowest = self._select(earlier, integer(0), lowest)
            blame.append(lowest)
        return _SteppedNode(fires, moves, blame)

    def _emit_tokens(self, moved: Words) -> None:
        """Take and put tokens."""
        builder = self._builder
        taken, put = moved[0], moved[-1]
        if self._words == 1:
            taken = builder.trunc(taken, self._mask)
            put = builder.trunc(builder.lshr(put, integer(32)), self._mask)
        leaving = self._spread(taken, self._counts)
        held = builder.add(builder.load(self._held, self._counts), leaving)
        builder.store(builder.sub(held, self._spread(put, self._counts)), self._held)
        if not self._shape.delayed:
            return
        history, mask = self._pointer(HISTORY), self._word(HISTORY_MASK)
        now = builder.add(self._word(CYCLE), self._load(self._at))
        slot = builder.and_(now, mask)
        word = put if self._words == 2 else builder.zext(put, I64)
        self._store(word, offset_by(builder, history, builder.mul(slot, integer(8))))
        arrived = self._found[0]
        self._store(integer(0), arrived)

        def arrive(delay: Value) -> None:
            sent = builder.and_(builder.sub(now, self._at_word(delay, 0)), mask)
            then = self._load(offset_by(builder, history, builder.mul(sent, integer(8))))
            lanes = builder.and_(then, self._at_word(delay, 1))
            self._store(builder.or_(self._load(arrived), lanes), arrived)

        self._each(DELAYS, DELAY_COUNT, 16, arrive)
        come = self._load(arrived)
        come = come if self._words == 2 else builder.trunc(come, self._mask)
        ready = builder.add(builder.load(self._ready, self._counts), leaving)
        builder.store(builder.sub(ready, self._spread(come, self._counts)), self._ready)

    def _emit_first_firings(self, moved: Words) -> None:
        """Record the cycle for nodes that fire for the first time."""
        builder = self._builder
        noted, new = self._block("noted"), self._block("new")
        fresh = [
            builder.and_(word, builder.not_(self._load(seen)))
            for word, seen in zip(moved, self._seen, strict=True)
        ]
        none = builder.icmp_signed("==", self._any(fresh), integer(0))
        builder.cbranch(none, noted, new, weights=(1 << 20, 1))
        builder.position_at_end(new)
        now = builder.add(self._word(CYCLE), builder.add(self._load(self._at), integer(1)))
        self._each_node_in(fresh, FIRST, now, self._seen)
        builder.branch(noted)
        builder.position_at_end(noted)

    # -- after a window ---------------------------------------------------------------------------

    def _emit_flush(self) -> None:
        """Add the counts to the totals, and find the last firings from the end of the window."""
        builder = self._builder
        wide = vector_type(I64, 64)
        for word, counts in ((STALLS, self._stall_counts), (MOVES, self._move_counts)):
            totals = self._pointer(word)
            for number, slot in enumerate(counts):
                where = offset_by(builder, totals, 512 * number)
                count = builder.zext(builder.load(slot, self._small), wide)
                total = builder.load(where, wide, align=64)
                builder.store(builder.add(total, count), where, align=64)
        for slot in self._found:
            self._store(integer(0), slot)
        back, look, note, end = (self._block(name) for name in ("back", "look", "note", "end"))
        self._store(self._load(self._at), self._until)
        builder.branch(back)
        builder.position_at_end(back)
        at = self._load(self._until)
        missing = [
            builder.and_(self._load(seen), builder.not_(self._load(variable)))
            for seen, variable in zip(self._seen, self._found, strict=True)
        ]
        some = builder.icmp_signed("!=", self._any(missing), integer(0))
        builder.cbranch(builder.and_(some, builder.icmp_signed(">", at, integer(0))), look, end)
        builder.position_at_end(look)
        at = builder.sub(at, integer(1))
        self._store(at, self._until)
        where = offset_by(builder, self._window, builder.mul(at, integer(8 * self._words)))
        fresh = [
            builder.and_(self._at_word(where, number), builder.not_(self._load(variable)))
            for number, variable in enumerate(self._found)
        ]
        builder.cbranch(builder.icmp_signed("==", self._any(fresh), integer(0)), back, note)
        builder.position_at_end(note)
        now = builder.add(self._word(CYCLE), builder.add(at, integer(1)))
        self._each_node_in(fresh, LAST, now, self._found)
        builder.branch(back)
        builder.position_at_end(end)
        cycle = builder.add(self._word(CYCLE), self._load(self._at))
        self._store(cycle, self._address(CYCLE))
