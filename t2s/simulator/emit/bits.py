"""Operators on the bits of words, in LLVM: the meaning of ``core.expr.BitOperator``.

Words are ``i32``, one or a vector of them.  Loops go through copies on the stack.
"""

from __future__ import annotations

from t2s.core.types import Type
from t2s.simulator.emit.builder import Builder
from t2s.simulator.emit.llvm import I1, I32, I64, Slot, Value, integer
from t2s.simulator.emit.representation import register_type

_ALIGNMENT = 64


def count_bits(builder: Builder, words: Value) -> Value:
    """The number of bits that are set."""
    ones = _ones(builder, words)
    if not words.type.lanes:
        return ones
    return builder.intrinsic(f"llvm.vector.reduce.add.{words.type.suffix}", I32, [ones])


def lowest_bits(builder: Builder, words: Value, type: Type) -> Value:
    """The numbers of the first bits: bit after bit of word after word, while lanes are left."""
    count, found = words.type.lanes or 1, _slot(builder, type.lanes)
    given, made = _slot(builder, count), _slot(builder, 2)
    builder.store(words, given, _ALIGNMENT)
    builder.store(integer(-1, register_type(type)), found, _ALIGNMENT)
    builder.store(integer(0), made)
    with builder.counting(integer(0), integer(count)) as number:
        first = builder.shl(builder.trunc(number, I32), integer(5, I32))
        word = builder.load(_word(builder, given, number), I32)
        taken, before = builder.load(made, I64), builder.block
        test, take, over = (builder.function.block(name) for name in ("bits", "bit", "over"))
        builder.branch(test)
        builder.position_at_end(test)
        rest, lane = builder.phi(I32), builder.phi(I64)
        some = builder.icmp_signed("!=", rest, integer(0, I32))
        room = builder.icmp_signed("<", lane, integer(type.lanes))
        builder.cbranch(builder.and_(some, room), take, over)
        builder.position_at_end(take)
        at = builder.intrinsic("llvm.cttz.i32", I32, [rest, integer(1, I1)])
        builder.store(builder.add(first, at), _word(builder, found, lane))
        fewer = builder.and_(rest, builder.sub(rest, integer(1, I32)))
        rest.add_incoming(word, before)
        rest.add_incoming(fewer, take)
        lane.add_incoming(taken, before)
        lane.add_incoming(builder.add(lane, integer(1)), take)
        builder.branch(test)
        builder.position_at_end(over)
        builder.store(lane, made)
    return builder.load(found, register_type(type), _ALIGNMENT)


def rank_bits(builder: Builder, words: Value, bits: Value) -> Value:
    """The ones of all words below, and those below in the word of each bit."""
    count, lanes, nothing = words.type.lanes or 1, bits.type.lanes or 1, integer(0, I32)
    given, below, total = (_slot(builder, size) for size in (count + 1, count + 1, 1))
    wanted, found = _slot(builder, lanes), _slot(builder, lanes)
    builder.store(words, given, _ALIGNMENT)
    builder.store(nothing, _word(builder, given, integer(count)))
    builder.store(bits, wanted, _ALIGNMENT)
    builder.store(nothing, total)
    with builder.counting(integer(0), integer(count + 1)) as number:
        before = builder.load(total, I32)
        builder.store(before, _word(builder, below, number))
        word = builder.load(_word(builder, given, number), I32)
        builder.store(builder.add(before, _ones(builder, word)), total)
    with builder.counting(integer(0), integer(lanes)) as lane:
        bit = builder.load(_word(builder, wanted, lane), I32)
        end = integer(32 * count, I32)
        within = builder.select(builder.icmp_unsigned("<", bit, end), bit, end)
        number = builder.zext(builder.lshr(within, integer(5, I32)), I64)
        one = builder.shl(integer(1, I32), builder.and_(within, integer(31, I32)))
        mask = builder.sub(one, integer(1, I32))
        word = builder.load(_word(builder, given, number), I32)
        smaller = builder.load(_word(builder, below, number), I32)
        rank = builder.add(smaller, _ones(builder, builder.and_(word, mask)))
        negative = builder.icmp_signed("<", bit, nothing)
        rank = builder.select(negative, integer(-1, I32), rank)
        builder.store(rank, _word(builder, found, lane))
    return builder.load(found, bits.type, _ALIGNMENT)


def set_bits(builder: Builder, words: Value, bits: Value) -> Value:
    """A one in the word of each bit, for those that there are."""
    count, lanes = words.type.lanes or 1, bits.type.lanes or 1
    made, wanted = _slot(builder, count + 1), _slot(builder, lanes)
    builder.store(words, made, _ALIGNMENT)
    builder.store(bits, wanted, _ALIGNMENT)
    with builder.counting(integer(0), integer(lanes)) as lane:
        bit = builder.load(_word(builder, wanted, lane), I32)
        end = integer(32 * count, I32)
        # the word behind the last one takes what sets none
        within = builder.select(builder.icmp_unsigned("<", bit, end), bit, end)
        word = _word(builder, made, builder.zext(builder.lshr(within, integer(5, I32)), I64))
        one = builder.shl(integer(1, I32), builder.and_(within, integer(31, I32)))
        builder.store(builder.or_(builder.load(word, I32), one), word)
    return builder.load(made, words.type, _ALIGNMENT)


def _ones(builder: Builder, words: Value) -> Value:
    """The number of bits of each word."""
    return builder.intrinsic(f"llvm.ctpop.{words.type.suffix}", words.type, [words])


def _slot(builder: Builder, words: int) -> Slot:
    """Place for words on the stack."""
    with builder.goto_entry_block():
        return builder.alloca(I32, words, _ALIGNMENT)


def _word(builder: Builder, slot: Value, number: Value) -> Value:
    """The address of a word of a slot."""
    return builder.offset(slot, builder.mul(number, integer(4), "nsw"))
