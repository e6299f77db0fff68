"""What the code that steps through cycles works on, and what it is written with.

That is its state, what it depends on, and words of lanes, records and loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from t2s.simulator.emit.builder import Builder
from t2s.simulator.emit.llvm import (
    I1,
    I64,
    POINTER,
    BasicBlock,
    LLVMFunction,
    LLVMType,
    Module,
    Value,
    integer,
    vector_type,
)
from t2s.simulator.emit.representation import offset_by

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
"""Words of the state: cycles done, how many of the last ones moved nothing, after how many that
will stay so; addresses and numbers of the records below; lanes of the nodes that have fired;
addresses of the counts (tokens and those under way; tokens; capacities), of the totals by lane, of
what moved in the cycles of a window; of what was put in the last cycles, and of the delays."""

STATE_WORDS = 21

CODE, ROWS = range(2)
"""Words of a choosing node: the address of its next code, and of the rows."""

GROUP_NODES = 4
"""Choosing nodes in a group; their words follow those of the lanes that they wait for first."""

FIRST, LAST, LANES = range(3)
"""Words of a node: cycles of its first and last firing, and the lanes that it uses."""

AWAKE = -(1 << 63)
"""A lane that is never full, in the last word: a group that waits for it is looked at."""

WINDOW_CYCLES = 255
"""Cycles until counts of eight bits are added to the totals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepShape:
    """What the code depends on.

    Attributes
    ----------
    lanes: 32 or 64.
    count_bits: of the counts of tokens: 8, 16 or 32.
    delayed: whether some tokens take more than a cycle.
    choosing, steady: the nodes outside of groups.
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
        """All lanes of some words; in pairs, so that it does not take long."""
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
        """Note a cycle for all nodes that use one of the lanes, and add all their lanes."""
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
