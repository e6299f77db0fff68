"""What the code that steps through cycles is written with: words of lanes, records and loops."""

from __future__ import annotations

from collections.abc import Callable

from t2s.simulator.emit.builder import Builder
from t2s.simulator.emit.llvm import (
    I1,
    I64,
    POINTER,
    Block,
    Function,
    LLVMType,
    Module,
    Value,
    integer,
    vector_type,
)
from t2s.simulator.emit.representation import offset_by

Words = list[Value]


class WordEmitter:
    """A function of a state, which is a pointer to words; its first block is under construction."""

    def __init__(self, module: Module, function: Function) -> None:
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

    def _any(self, words: Words) -> Value:
        return words[0] if len(words) == 1 else self._builder.or_(*words)

    def _spread(self, word: Value, type: LLVMType) -> Value:
        """A vector with -1 where a bit is set."""
        bits = self._builder.bitcast(word, vector_type(I1, type.lanes))
        return self._builder.sext(bits, type)

    def _block(self, name: str) -> Block:
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
