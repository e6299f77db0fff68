"""The entries of compressed levels as inputs of a loop: through queues, or as bit vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from t2s.core.expr import Expr, Local
from t2s.core.types import INT32
from t2s.core.walk import walk
from t2s.patterns.ir import (
    WORD_BITS,
    BuildBits,
    CountHeader,
    Foreach,
    Held,
    LoadStream,
    Parallel,
    PatternStatement,
    Pop,
    Push,
    ReadMemory,
)
from t2s.sparse_repr.notation.ir import Access
from t2s.sparse_repr.stardust.coiteration import JoinedLevels, level_of
from t2s.sparse_repr.stardust.emitter import WORD, PatternEmitter, PinningRule, add
from t2s.sparse_repr.stardust.operands import LevelSegment, OperandState, PatternOperands
from t2s.sparse_repr.stardust.scope import LazyWord, OpenedLoop


def brought_words(
    operands: PatternOperands,
    opened: OpenedLoop,
    body: Sequence[PatternStatement],
    value: Expr | None,
) -> list[PatternStatement]:
    """Fetch the words that a loop body uses; returns the statements that take them inside it."""
    terms = [*body, *(() if value is None else (value,))]
    used = {node.name for term in terms for node in walk(term) if isinstance(node, Local)}
    statements: list[PatternStatement] = []
    for word in opened.lazy:
        if word.local.name in used:
            assert opened.segment is not None
            statements.append(_brought(operands, word, opened.segment, opened.number))
    return statements


def _brought(
    operands: PatternOperands, word: LazyWord, segment: LevelSegment, number: Expr
) -> PatternStatement:
    access = word.access
    if access.tensor in operands.workspaces:
        arrays = operands.workspaces[access.tensor]
        memory = arrays.values if word.level is None else arrays.coordinates[word.level]
        return ReadMemory(target=word.local.name, memory=memory, index=add(segment.begin, number))
    queue = _streamed(operands, access, word.array, word.level, segment)
    return Pop(target=word.local.name, queue=queue)


def _streamed(
    operands: PatternOperands,
    access: Access,
    array: str,
    level: int | None,
    segment: LevelSegment,
    rule: PinningRule = PinningRule.IN_ORDER,
) -> str:
    """A FIFO that receives a segment of an array off chip."""
    emitter = operands.emitter
    held, type, size = operands.far(access, array, level)
    name = f"{access.tensor}_{array}" + ("" if level is None else str(level))
    queue = emitter.queue(name, type, rule, held)
    emitter.put(
        LoadStream(
            queue=queue,
            source=emitter.far_memory(held, type, size),
            begin=segment.begin,
            length=segment.length,
        )
    )
    return queue


def joined_bits(
    operands: PatternOperands,
    iteration: JoinedLevels,
    variable: str,
    states: Mapping[Access, OperandState],
    *,
    copies: int,
) -> list[tuple[str, str]]:
    """Queues of the bit vectors of both operands, ``copies`` times."""
    bits = [bits_of(operands, iteration.left, variable, states)]
    if iteration.right is None:
        bits.append(all_bits(operands, variable))
    else:
        bits.append(bits_of(operands, iteration.right, variable, states))
    if copies == 1:
        return [(bits[0], bits[1])]
    left, right = _copied_bits(operands.emitter, bits, variable)
    return list(zip(left, right, strict=True))


def bits_of(
    operands: PatternOperands, access: Access, variable: str, states: Mapping[Access, OperandState]
) -> str:
    """A queue of the bits of an operand's level."""
    emitter, segment = operands.emitter, states[access].segment
    assert segment is not None
    level = level_of(access, variable, operands.format(access))
    held = Held(tensor=access.tensor, array="crd", level=level)
    if access.tensor not in operands.workspaces:
        rule = PinningRule.BITS
        queue = _streamed(operands, access, "crd", level, segment, rule)
    else:
        queue = emitter.queue(f"{access.tensor}_crd", INT32, PinningRule.BITS, held)
        memory = operands.workspaces[access.tensor].coordinates[level]
        number = emitter.local("entry")
        with emitter.scope() as body:
            read = emitter.read("coordinate", memory, add(segment.begin, number))
            emitter.put(Push(queue=queue, value=read))
        put_foreach(emitter, segment.length, number, body)
    return _built(emitter, queue, segment.length, variable, held)


def all_bits(operands: PatternOperands, variable: str) -> str:
    """The bits of all coordinates of a variable."""
    emitter, extent = operands.emitter, operands.emitter.extent(variable)
    queue = emitter.queue(f"{variable}_all", INT32, PinningRule.BITS)
    number = emitter.local("coordinate")
    push = Push(queue=queue, value=number)
    put_foreach(emitter, extent, number, [push])
    return _built(emitter, queue, extent, variable, None)


def put_foreach(
    emitter: PatternEmitter, count: Expr, number: Local, body: Sequence[PatternStatement]
) -> None:
    """A counting loop, vector by vector."""
    lanes = Parallel(factor=emitter.lanes, variable="ip")
    emitter.put(
        Foreach(
            header=CountHeader(extent=count, parallel=lanes),
            binders=(number.name,),
            body=tuple(body),
        )
    )


def _built(
    emitter: PatternEmitter, queue: str, count: Expr, variable: str, held: Held | None
) -> str:
    """The bit vector of the coordinates of a queue."""
    name = f"{variable}_all_bits" if held is None else f"{held.tensor}_bits"
    words = emitter.bit_queue(name, held)
    emitter.put(BuildBits(coordinates=queue, count=count, words=words, bits=emitter.bits(variable)))
    return words


def _copied_bits(
    emitter: PatternEmitter, queues: Sequence[str], variable: str
) -> tuple[tuple[str, str], tuple[str, str]]:
    """Both bit vectors twice: the counting scan takes one of each, the filling scan the other."""
    number = emitter.local("at_word")
    pairs: list[tuple[str, str]] = []
    body: list[PatternStatement] = []
    for queue in queues:
        held = emitter.held_by(queue)
        pair = (
            emitter.bit_queue(f"{queue}_counted", held),
            emitter.bit_queue(f"{queue}_filled", held),
        )
        word = emitter.local("word", WORD)
        body.append(emitter.pop(word, queue))
        body += [Push(queue=copy, value=word) for copy in pair]
        pairs.append(pair)
    words = emitter.bits(variable) // WORD_BITS
    put_foreach(emitter, words, number, body)
    return pairs[0], pairs[1]
