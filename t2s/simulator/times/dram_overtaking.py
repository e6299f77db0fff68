"""Commands of a DRAM that go ahead of others: the meaning of ``memory/overtaking.py``, compiled.

What is known lies in the order of time, in twice as much room as it needs: whoever is forgotten
leaves a place free before the others, and these move when there is none behind them.  Commands come
late for the most part, so searches begin at the newest.
"""

from __future__ import annotations

from t2s.simulator.memory.overtaking import ACTIVATIONS
from t2s.simulator.times.compiled import inlined, within
from t2s.simulator.times.dram_layout import (
    A_COUNT,
    A_FIRST,
    A_FLOOR,
    A_HEAD,
    BURST,
    GROUPS,
    R_COLUMN,
    R_COUNT,
    R_FIRST,
    R_FLOOR,
    R_GROUP,
    R_HEAD,
    READ_QUEUE,
    READ_WORDS,
    TCCD_L,
    TCCD_S,
    TFAW,
    TRRD_L,
    TRRD_S,
    TURN,
)
from t2s.simulator.times.table_layout import Signed, Word


@within
def activation_between(
    parameters: Signed, state: Signed, activate: Word, group: Word, queue: Word
) -> Word:
    """The first clock for an activation between those that are known of the rank."""
    count, first = state[queue + A_COUNT], queue + A_HEAD + 2 * state[queue + A_FIRST]
    activate = max(activate, state[queue + A_FLOOR])
    far = max(parameters[TRRD_L], parameters[TRRD_S])
    near_enough = count
    while near_enough > 0 and state[first + 2 * near_enough - 2] + far > activate:
        near_enough -= 1
    while True:
        before = number = near_enough
        while number < count and state[first + 2 * number] < activate + far:
            other = state[first + 2 * number]
            near = state[first + 2 * number + 1] == group
            apart = parameters[TRRD_L if near else TRRD_S]
            if other - apart < activate < other + apart:
                activate = other + apart
            number += 1
            if other <= activate:
                before = number
        moved = False
        for after in range(5):
            low, high = before - 4 + after, before + after - 1
            if low < 0 or high >= count:
                continue
            begin = state[first + 2 * low] if after < 4 else activate
            end = state[first + 2 * high] if after else activate
            if end - begin < parameters[TFAW]:
                behind = state[first + 2 * before] + 1 if after else begin + parameters[TFAW]
                activate = max(activate + 1, behind)
                moved = True
                break
        if not moved:
            return activate


@within
def note_activation(
    parameters: Signed, state: Signed, activate: Word, group: Word, queue: Word
) -> None:
    """Put an activation among those of its rank, and forget the first one if there are too many."""
    count, first = state[queue + A_COUNT], queue + A_HEAD + 2 * state[queue + A_FIRST]
    if count == ACTIVATIONS:
        far = max(parameters[TFAW], max(parameters[TRRD_L], parameters[TRRD_S]))
        if activate < state[first]:
            state[queue + A_FLOOR] = max(state[queue + A_FLOOR], activate + far)
            return
        state[queue + A_FLOOR] = max(state[queue + A_FLOOR], state[first] + far)
        count -= 1
        first += 2
        state[queue + A_FIRST] += 1
    if state[queue + A_FIRST] + count == 2 * ACTIVATIONS:
        for word in range(2 * count):
            state[queue + A_HEAD + word] = state[first + word]
        first = queue + A_HEAD
        state[queue + A_FIRST] = 0
    place = count
    while place > 0 and state[first + 2 * place - 2] > activate:
        state[first + 2 * place] = state[first + 2 * place - 2]
        state[first + 2 * place + 1] = state[first + 2 * place - 1]
        place -= 1
    state[first + 2 * place], state[first + 2 * place + 1] = activate, group
    state[queue + A_COUNT] = count + 1


@inlined
def read_room(parameters: Signed) -> Word:
    """Words of the reads that are known of a channel, and of twice as many as these."""
    return R_HEAD + 2 * READ_WORDS * parameters[READ_QUEUE]


@inlined
def _first_read(state: Signed, reads: Word) -> Word:
    """Where the oldest read is that is known of a channel; the others follow in order of time."""
    return reads + R_HEAD + READ_WORDS * state[reads + R_FIRST]


@inlined
def _farthest(parameters: Signed) -> Word:
    """Clocks after which a read does not matter to another one."""
    far = parameters[BURST] + parameters[TURN]
    return max(far, max(parameters[TCCD_L], parameters[TCCD_S]))


@within
def read_between(
    parameters: Signed, state: Signed, column: Word, rank: Word, group: Word, reads: Word
) -> Word:
    """The first clock for a read between those that are known of the channel."""
    column = max(column, state[reads + R_FLOOR])
    far = _farthest(parameters)
    first = _first_read(state, reads)
    end = first + READ_WORDS * state[reads + R_COUNT]
    place = end
    while place > first and state[place - READ_WORDS + R_COLUMN] + far > column:
        place -= READ_WORDS
    while place < end and state[place + R_COLUMN] < column + far:
        other, near = state[place + R_COLUMN], state[place + R_GROUP]
        apart = parameters[BURST]
        if near == group:
            apart = max(apart, parameters[TCCD_L])
        elif near // parameters[GROUPS] == rank:
            apart = max(apart, parameters[TCCD_S])
        else:
            apart += parameters[TURN]
        if other - apart < column < other + apart:
            column = other + apart
        place += READ_WORDS
    return column


@within
def note_read(parameters: Signed, state: Signed, column: Word, group: Word, reads: Word) -> None:
    """Put a read among those of its channel, and forget the first one if there are too many."""
    count, first = state[reads + R_COUNT], _first_read(state, reads)
    if count == parameters[READ_QUEUE]:
        far = _farthest(parameters)
        if column < state[first + R_COLUMN]:
            state[reads + R_FLOOR] = max(state[reads + R_FLOOR], column + far)
            return
        state[reads + R_FLOOR] = max(state[reads + R_FLOOR], state[first + R_COLUMN] + far)
        count -= 1
        first += READ_WORDS
        state[reads + R_FIRST] += 1
    if state[reads + R_FIRST] + count == 2 * parameters[READ_QUEUE]:
        begin = reads + R_HEAD
        for word in range(READ_WORDS * count):
            state[begin + word] = state[first + word]
        first = begin
        state[reads + R_FIRST] = 0
    place = first + READ_WORDS * count
    while place > first and state[place - READ_WORDS + R_COLUMN] > column:
        for word in range(READ_WORDS):
            state[place + word] = state[place + word - READ_WORDS]
        place -= READ_WORDS
    state[place + R_COLUMN], state[place + R_GROUP] = column, group
    state[reads + R_COUNT] = count + 1
