"""The compiled network and units of shared banks: ``memory/banked.py``, with their replies.

Lanes are bits of masks.  A word on its way is the number of its vector's slot and of the lane in
which it was asked for, its unit and its bank, from the left.  What follows from words that are
served is in ``banked_replies``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from t2s.simulator.memory.banked import ADDRESS_SHIFT, DECIDES, LEVEL, STORE, UNIT_SHIFT, UNKNOWN
from t2s.simulator.report.counters import FOREVER
from t2s.simulator.times.banked_layout import (
    AGE,
    BANKS,
    BUSY_CYCLES,
    COUNT,
    ENTRY,
    F_AFTER,
    F_FIRED,
    F_ROW,
    F_UNANSWERED,
    F_WAITS,
    FIRING_WORDS,
    FIRINGS,
    FIRINGS_BEGIN,
    FIRINGS_SIZE,
    FIRST_FIRING,
    HEAD,
    HELD,
    IN_PORT,
    KEPT,
    LANE_BITS,
    LANES,
    LAST_DONE,
    LAST_STORED,
    LATENCY,
    LEFT,
    LEVELS,
    LINK,
    MADE,
    MAGIC,
    MASK,
    MOVES,
    ONES,
    P_BEGIN,
    P_FIRST,
    P_LAST,
    P_REPLIES,
    P_REPLY,
    P_SIZE,
    P_VECTORS,
    P_WAITING,
    PE,
    POPPED,
    PORT,
    PORT_WORDS,
    PORTS,
    QUEUE,
    RANKS,
    REPLY,
    ROUNDS,
    S_DONE,
    S_ENTERED,
    S_FIRED,
    S_FIRING,
    S_LEFT,
    S_SERVED,
    S_SHARER,
    S_WHAT,
    SHARER,
    SLOT,
    STORES,
    UNDECIDED,
    UNDER_WAY,
    WAITED,
)
from t2s.simulator.times.table_layout import (
    BEGIN,
    END,
    RECEIVER,
    RECEIVES_END,
    USES_END,
    WRITE,
    Signed,
    Tables,
    U,
    Word,
    inlined,
    within,
)
from t2s.simulator.times.table_layout import LATENCY as CHANNEL_LATENCY

_HALF = 0xFFFF
_PLACE = 0xFFFFFFFF


@inlined
def _lowest(numbers: Signed, mask: Word) -> Word:
    """The number of the lowest bit of a mask that is not 0."""
    return numbers[((mask & -mask) * MAGIC & 0xFFFFFFFF) >> 27]


@within
def _enter(tables: Tables, memory: Any, port: Word, now: Word) -> None:
    """Let the oldest vector that waits for a port enter it, if there is room."""
    ports, links, slots, banks = memory.ports, memory.links, memory.slots, memory.banks
    record, link = PORT_WORDS * port, 2 * port
    if ports[record + P_WAITING] == 0 or links[link + COUNT] == banks[LINK]:
        return
    first = ports[record + P_FIRST]
    slot = memory.rings[ports[record + P_BEGIN] + first]
    ports[record + P_FIRST] = 0 if first + 1 == ports[record + P_SIZE] else first + 1
    ports[record + P_WAITING] -= 1
    ports[record + P_VECTORS] += 1
    memory.tally[IN_PORT] += now - slots[SLOT * slot + S_FIRED]
    slots[SLOT * slot + S_ENTERED] = now
    lanes = banks[LANES]
    place = links[link + HEAD] + links[link + COUNT]
    if place >= banks[LINK]:
        place -= banks[LINK]
    entry = port * banks[LINK] + place
    mask, ones, count = np.int64(0), np.int64(0), np.int64(0)
    number = slot << banks[LANE_BITS]
    for lane in range(lanes):
        word = memory.slot_words[number + lane]
        if word >= 0:
            mask |= np.int64(1) << lane
            ones |= (word >> UNIT_SHIFT & 1) << lane
            count += 1
            memory.entry_words[entry * lanes + lane] = (number + lane) << 32 | (word & _PLACE)
    slots[SLOT * slot + S_LEFT] = count
    if count == 0:
        finish(tables, memory, slot, now, now)
        return
    links[link + COUNT] += 1
    memory.entries[ENTRY * entry + MASK] = mask
    memory.entries[ENTRY * entry + ONES] = ones
    memory.entries[ENTRY * entry + AGE] = now * banks[PORTS] + port


@inlined
def _stores(memory: Any, word: Word) -> Word:
    return memory.slots[SLOT * (word >> 32 >> memory.banks[LANE_BITS]) + S_WHAT] & STORE


@inlined
def _address(memory: Any, word: Word) -> Word:
    return memory.slot_words[word >> 32] >> ADDRESS_SHIFT


@within
def _has_to_wait(memory: Any, unit: Word, older: Word, word: Word) -> bool:
    """Whether one of so many older vectors has the word too, and one of the two is stored."""
    banks, lanes = memory.banks, memory.banks[LANES]
    stores, address = _stores(memory, word), _address(memory, word)
    at = memory.queues[2 * unit + HEAD]
    for _ in range(older):
        place = unit * banks[QUEUE] + at
        left = memory.places[ENTRY * place + MASK]
        while left:
            other = memory.place_words[place * lanes + _lowest(memory.numbers, left)]
            left &= left - 1
            if _address(memory, other) == address and (stores or _stores(memory, other)):
                return True
        at = 0 if at + 1 == banks[QUEUE] else at + 1
    return False


@within
def _take(memory: Any, unit: Word) -> None:
    """Move a vector from the last link into the queue of a unit."""
    links, queues, banks = memory.links, memory.queues, memory.banks
    number = banks[RANKS] * banks[PORTS] + unit
    link, queue = 2 * number, 2 * unit
    if links[link + COUNT] == 0 or queues[queue + COUNT] == banks[QUEUE]:
        return
    entry = number * banks[LINK] + links[link + HEAD]
    links[link + HEAD] = 0 if links[link + HEAD] + 1 == banks[LINK] else links[link + HEAD] + 1
    links[link + COUNT] -= 1
    at = queues[queue + HEAD] + queues[queue + COUNT]
    if at >= banks[QUEUE]:
        at -= banks[QUEUE]
    place, lanes = unit * banks[QUEUE] + at, banks[LANES]
    mask = memory.entries[ENTRY * entry + MASK]
    left, risky = mask, np.int64(0)
    while left:
        lane = _lowest(memory.numbers, left)
        left &= left - 1
        word = memory.entry_words[entry * lanes + lane]
        memory.place_words[place * lanes + lane] = word
        if banks[STORES] and _has_to_wait(memory, unit, queues[queue + COUNT], word):
            risky |= np.int64(1) << lane
    memory.places[ENTRY * place + MASK] = mask
    memory.places[ENTRY * place + ONES] = risky
    queues[queue + COUNT] += 1


@inlined
def _grant(memory: Any, unit: Word, free: Word, idle: Word) -> Word:
    """For each free bank the oldest word that an idle lane proposes; how many, in ``granted``."""
    places, place_words, banks = memory.places, memory.place_words, memory.banks
    lanes, queue = banks[LANES], 2 * unit
    at, count = memory.queues[queue + HEAD], np.int64(0)
    for older in range(memory.queues[queue + COUNT]):
        place = unit * banks[QUEUE] + at
        found = idle & places[ENTRY * place + MASK]
        risky = places[ENTRY * place + ONES]
        while found:
            lane = _lowest(memory.numbers, found)
            found &= found - 1
            word = place_words[place * lanes + lane]
            bank = word & _HALF
            if free >> bank & 1 == 0:
                continue
            if risky >> lane & 1 and _has_to_wait(memory, unit, older, word):
                continue
            idle &= ~(np.int64(1) << lane)
            if memory.granted[bank + banks[BANKS]] == 0:
                memory.granted[bank + banks[BANKS]] = 1
                memory.granted[count] = place * lanes + lane
                count += 1
        if idle == 0:
            break
        at = 0 if at + 1 == banks[QUEUE] else at + 1
    return count


@within
def _serve(tables: Tables, memory: Any, unit: Word, now: Word) -> None:
    """Serve a word of every bank that some lane proposes."""
    queues, places, slots, banks = memory.queues, memory.places, memory.slots, memory.banks
    queue, lanes = 2 * unit, banks[LANES]
    if queues[queue + COUNT] == 0:
        return
    free, idle = (np.int64(1) << banks[BANKS]) - 1, (np.int64(1) << lanes) - 1
    for _ in range(banks[ROUNDS]):
        count = _grant(memory, unit, free, idle)
        if count == 0:
            break
        for number in range(count):
            place = memory.granted[number] // lanes
            lane = memory.granted[number] - place * lanes
            word = memory.place_words[memory.granted[number]]
            bank = word & _HALF
            memory.granted[bank + banks[BANKS]] = 0
            free &= ~(np.int64(1) << bank)
            idle &= ~(np.int64(1) << lane)
            places[ENTRY * place + MASK] &= ~(np.int64(1) << lane)
            slot = word >> 32 >> banks[LANE_BITS]
            memory.tally[WAITED] += now - slots[SLOT * slot + S_ENTERED] - banks[RANKS]
            slots[SLOT * slot + S_LEFT] -= 1
            if slots[SLOT * slot + S_LEFT] == 0:
                finish(tables, memory, slot, now + banks[REPLY], now)
        memory.served[unit] += count
    while queues[queue + COUNT] > 0:
        at = queues[queue + HEAD]
        if places[ENTRY * (unit * banks[QUEUE] + at) + MASK]:
            break
        queues[queue + HEAD] = 0 if at + 1 == banks[QUEUE] else at + 1
        queues[queue + COUNT] -= 1


@inlined
def _copy(memory: Any, entry: Word, new: Word, want: Word, shift: Word) -> Word:
    """Move wanted words of the older head; the lanes that have the bit of the next rank."""
    lanes, words, numbers = memory.banks[LANES], memory.entry_words, memory.numbers
    entry, new, ones = entry * lanes, new * lanes, np.int64(0)
    while want:
        lane = _lowest(numbers, want)
        want &= want - 1
        word = words[entry + lane]
        words[new + lane] = word
        ones |= (word >> shift & 1) << lane
    return ones


@inlined
def _merge(
    memory: Any, entry: Word, new: Word, want: Word, taken: Word, shift: Word
) -> tuple[Word, Word, Word]:
    """Move wanted words of the younger head to lanes that are not taken.

    Returns the lanes that they left, those that they went to, and of these the ones that have the
    bit of the next rank.
    """
    lanes, moves, words = memory.banks[LANES], memory.banks[MOVES], memory.entry_words
    entry, new, numbers = entry * lanes, new * lanes, memory.numbers
    gone, ones, before = np.int64(0), np.int64(0), taken
    free = ((np.int64(1) << lanes) - 1) & ~taken
    while want:
        bit = want & -want
        want &= want - 1
        found = bit & free
        if found == 0:
            for move in range(1, moves + 1):
                found = bit >> move & free
                if found == 0:
                    found = bit << move & free
                if found:
                    break
            if found == 0:
                continue
        free ^= found
        gone |= bit
        word = words[entry + _lowest(numbers, bit)]
        lane = _lowest(numbers, found)
        words[new + lane] = word
        ones |= (word >> shift & 1) << lane
    return gone, ~(free | before) & ((np.int64(1) << lanes) - 1), ones


@inlined
def _move_to(memory: Any, rank: Word, output: Word) -> None:
    """Let a merge unit make a vector, if there is anything for its output."""
    links, entries, banks = memory.links, memory.entries, memory.banks
    ports, depth = banks[PORTS], banks[LINK]
    bit, base = np.int64(1) << rank, rank * ports
    straight, across, after = base + output, base + (output ^ bit), 2 * (base + ports + output)
    one, other = links[2 * straight + COUNT] > 0, links[2 * across + COUNT] > 0
    if not (one or other) or links[after + COUNT] == depth:
        return
    older = ENTRY * (straight * depth + links[2 * straight + HEAD])
    younger = ENTRY * (across * depth + links[2 * across + HEAD])
    if not one or (other and entries[younger + AGE] < entries[older + AGE]):
        older, younger = younger, older
    at = links[after + HEAD] + links[after + COUNT]
    new = (base + ports + output) * depth + (at - depth if at >= depth else at)
    flip = np.int64(0) if output & bit else np.int64(-1)
    shift = UNIT_SHIFT + rank + 1
    taken = entries[older + MASK] & (entries[older + ONES] ^ flip)
    ones = _copy(memory, older // ENTRY, new, taken, shift)
    entries[older + MASK] &= ~taken
    if one and other:
        want = entries[younger + MASK] & (entries[younger + ONES] ^ flip)
        gone, more, more_ones = _merge(memory, younger // ENTRY, new, want, taken, shift)
        entries[younger + MASK] &= ~gone
        taken |= more
        ones |= more_ones
    if taken:
        entries[ENTRY * new + MASK] = taken
        entries[ENTRY * new + ONES] = ones
        entries[ENTRY * new + AGE] = entries[older + AGE]
        links[after + COUNT] += 1


@within
def _move(memory: Any, rank: Word) -> None:
    """Let all merge units of a rank make a vector each, and heads go of which nothing is left."""
    links, banks = memory.links, memory.banks
    ports, depth = banks[PORTS], banks[LINK]
    for output in range(ports):
        _move_to(memory, rank, output)
    for link in range(rank * ports, (rank + 1) * ports):
        if links[2 * link + COUNT] > 0:
            head = links[2 * link + HEAD]
            if memory.entries[ENTRY * (link * depth + head) + MASK] == 0:
                links[2 * link + HEAD] = 0 if head + 1 == depth else head + 1
                links[2 * link + COUNT] -= 1


@within
def step(tables: Tables, memory: Any, now: Word) -> None:
    """One cycle of the banks, after all firings in it."""
    banks = memory.banks
    memory.tally[BUSY_CYCLES] += 1
    for port in range(banks[PORTS]):
        _enter(tables, memory, port, now)
    for unit in range(banks[PORTS]):
        _take(memory, unit)
        _serve(tables, memory, unit, now)
    for rank in range(banks[RANKS] - 1, -1, -1):
        _move(memory, rank)


# What follows from vectors whose words are served: answers, tokens that leave, free places.
#
# The compiled form of the second half of ``memory/banked.py``.


@inlined
def _wake(tables: Tables, pe: Word, time: Word) -> None:
    """Let a PE that waits for something unknown look again."""
    if UNKNOWN <= tables.wake[pe] < FOREVER:
        tables.wake[pe] = time


@within
def _settle(tables: Tables, memory: Any, sharer: Word, now: Word) -> None:
    """Say when the tokens of firings leave whose loads are answered, and those of all before."""
    record = SHARER * sharer
    sharers, firings, ring = memory.sharers, memory.firings, tables.ring
    elements = tables.elements
    while sharers[record + FIRINGS] > 0:
        at = sharers[record + FIRINGS_BEGIN] + sharers[record + FIRST_FIRING]
        at *= memory.banks[FIRING_WORDS]
        if firings[at + F_UNANSWERED] > 0:
            return
        leaves = firings[at + F_FIRED]
        for level in range(memory.banks[LEVELS]):
            leaves += firings[at + F_WAITS + level]
        leaves = max(leaves, sharers[record + LEFT])
        sharers[record + LEFT] = max(leaves, firings[at + F_AFTER])
        row = U(firings[at + F_ROW])
        for use in range(tables.rows[row + RECEIVES_END], tables.rows[row + USES_END]):
            element = tables.uses[use]
            number = element >> U(3)
            begin, end = elements[element + BEGIN], elements[element + END]
            place = np.int64(elements[element + WRITE]) - memory.unsettled[number]
            if place < np.int64(begin):
                place += np.int64(end - begin)
            memory.unsettled[number] -= 1
            ring[place] = leaves + np.int64(elements[element + CHANNEL_LATENCY])
            _wake(tables, elements[element + RECEIVER], now + 1)
        first = sharers[record + FIRST_FIRING] + 1
        sharers[record + FIRST_FIRING] = 0 if first == sharers[record + FIRINGS_SIZE] else first
        sharers[record + FIRINGS] -= 1


@within
def _complete(tables: Tables, memory: Any, slot: Word, time: Word, now: Word) -> None:
    """A vector is answered, or stored: those done, in order, free places of its machine."""
    slots, sharers = memory.slots, memory.sharers
    slots[SLOT * slot + S_DONE] = time
    sharer = slots[SLOT * slot + S_SHARER]
    record, kept = SHARER * sharer, memory.banks[KEPT]
    popped, made = sharers[record + POPPED], sharers[record + MADE]
    while popped < made:
        at = sharer * kept + popped % kept
        done = slots[SLOT * at + S_DONE]
        if done >= UNKNOWN:
            break
        done = max(done, sharers[record + LAST_DONE])
        sharers[record + LAST_DONE] = done
        memory.ends[at] = done
        popped += 1
    sharers[record + POPPED] = popped
    _wake(tables, sharers[record + PE], now + 1)


@within
def _answer(tables: Tables, memory: Any, slot: Word, time: Word, now: Word) -> None:
    """A load is answered."""
    slots, sharers, firings, deciding = (
        memory.slots,
        memory.sharers,
        memory.firings,
        memory.deciding,
    )
    at = SLOT * slot
    sharer, fired, firing = slots[at + S_SHARER], slots[at + S_FIRED], slots[at + S_FIRING]
    record, levels = SHARER * sharer, memory.banks[LEVELS]
    what = slots[at + S_WHAT]
    wait, level = time - fired, what // LEVEL
    sharers[record + LATENCY] += wait
    firings[firing + F_UNANSWERED] -= 1
    firings[firing + F_WAITS + level] = max(wait, firings[firing + F_WAITS + level])
    if what & DECIDES:
        sharers[record + UNDECIDED] -= 1
        deciding[sharer * levels + level] = max(wait + 1, deciding[sharer * levels + level])
        if sharers[record + UNDECIDED] == 0:
            held = fired
            for level in range(levels):
                held += deciding[sharer * levels + level]
            sharers[record + HELD] = held
    _complete(tables, memory, slot, time, now)
    _settle(tables, memory, sharer, now)


@within
def finish(tables: Tables, memory: Any, slot: Word, time: Word, now: Word) -> None:
    """All words of a vector are served; a load is answered at ``time``, or later."""
    slots, ports, rings = memory.slots, memory.ports, memory.rings
    memory.tally[UNDER_WAY] -= 1
    if slots[SLOT * slot + S_WHAT] & STORE:
        memory.tally[LAST_STORED] = now
        _complete(tables, memory, slot, now, now)
        return
    slots[SLOT * slot + S_SERVED] = time
    port = PORT_WORDS * memory.sharers[SHARER * slots[SLOT * slot + S_SHARER] + PORT]
    begin = ports[port + P_BEGIN] + ports[port + P_SIZE]
    while ports[port + P_REPLIES] > 0:
        first = rings[begin + ports[port + P_REPLY]]
        if slots[SLOT * first + S_LEFT] > 0:
            return
        answered = max(ports[port + P_LAST], slots[SLOT * first + S_SERVED])
        ports[port + P_LAST] = answered
        following = ports[port + P_REPLY] + 1
        ports[port + P_REPLY] = 0 if following == ports[port + P_SIZE] else following
        ports[port + P_REPLIES] -= 1
        _answer(tables, memory, first, answered, now)
