"""Banked memories that ports share through a shuffle network, and how machines use them.

A port takes one vector of addresses per cycle.  The network routes its words to the memory units
that hold them, and each unit serves words of several vectors at once.  A load vector is answered
when all its words are served and all earlier vectors of its port are answered.

**The network** is a butterfly of ranks of merge units with two inputs and two outputs each.  An
output forms a vector from the words that the heads of both inputs have for it, the older head
first; a word keeps its lane or moves by at most ``lane_moves``, and a word without a free lane
stays in its head for the next cycle.  A head leaves when all its words have.  Links hold
``link_depth`` vectors.

**A unit** has banks with one access each per cycle and a queue of vectors.  In each of ``rounds``
every lane that was not served in this cycle proposes its oldest word whose bank is still free, and
every bank takes the oldest proposal.  Vectors leave the queue in order.  A word waits while an
older vector in the queue accesses the same address and one of the two is a store: the network keeps
the order between a port and a unit, so loads and stores of a word, which all come from one machine,
happen in the order in which they were requested.

This is our model of what is published about Capstan (MICRO 2021).  It reproduces the shares of peak
throughput that the paper's abstract gives for random addresses, 32 % in order and 80 % out of
order; unpublished details are parameters.  Replies meet no conflicts.

**Machines.**  A machine that loads from or stores to tensors in ``MemorySpace.SHARED`` sends a
vector of addresses for each access: a gather or scatter those of its lanes, any other access those
of the elements that it moves, one in each lane.  An access with more lanes than the memory takes
several vectors, and an element is a word, whatever its type.

* These machines are numbered in the order of the graph, the machines of a node in row-major order;
  number ``n`` uses port ``n % ports`` of the network.
* A firing sends all its vectors, in the order of its accesses.  A port takes one vector per cycle,
  the oldest one; among those of one cycle, that of the machine with the lower number.
* Loads are answered in the order in which their port took them.  The tokens of a firing leave when
  its loads of level 0 are answered, later by the duration of those of level 1, and so on, as with
  a DRAM (``units``); a level takes as long as its slowest load, from either memory.  Tokens never
  leave before those of earlier firings.
* The next firing waits until the cycle after the answers of the loads that determine the next state
  of the machine.
* At most ``outstanding`` vectors of a machine are in flight, counted in order: from the first one
  that is not answered (or, for a store, not stored) to the last one.  A firing that would exceed
  the bound waits until the cycle after enough of them are done; one with more vectors than the
  bound waits until none is in flight.

**The code** is in the subset of Python that compiles (``llvm/kernels.py``), over flat arrays: the
native engine runs it as machine code, the reference engine as it is, on lists.  Lanes are bits of
masks.  A word in flight is encoded as, from the left, its vector's slot, its original lane, its
unit and its bank.  ``changed`` lists the machines whose tokens got a departure time in a cycle, for
the engine that runs the machines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from t2s.llvm.operands import Signed, Word, inlined, within
from t2s.simulator.memory.spec import Banked

UNKNOWN = 1 << 62
"""Marks a cycle that is not known yet; no run is that long."""

NOTHING = -1
"""Marks a lane without a word in place of its address."""

STORE, DECIDES, LEVEL = 1, 2, 4
"""Flags of a vector: ``STORE`` + ``DECIDES`` + ``LEVEL`` times its level."""

ADDRESS_SHIFT, UNIT_SHIFT = 32, 16
"""A word is its address, its unit and its bank, from the left; or ``NOTHING``."""

(
    PORTS, LANES, LANE_BITS, BANKS, QUEUE, ROUNDS, MOVES, LINK, REPLY, RANKS, OUTSTANDING, LEVELS,
    KEPT, STORES, FIRING_WORDS,
) = range(15)  # fmt: skip
"""Entries of ``banks``: those of ``Banked``, the bits of the number of a lane, levels of loads,
recorded vectors of a machine, whether any vector stores, and the words of a waiting firing."""

PE, PORT, ASKED_AT, VECTOR_AT, MADE, POPPED, LAST_DONE, LEFT, HELD, UNDECIDED = range(10)
FIRST_FIRING, FIRINGS, FIRINGS_BEGIN, FIRINGS_SIZE = range(10, 14)
LOADED, STORED, WORDS, LATENCY, IS_CHANGED = range(14, 19)
SHARER = 24
"""Columns of ``sharers``: its PE and port; positions in ``asking`` and ``vectors``; vectors made
and done, in order, and when the last of these was; when its last tokens leave, when its next
firing may send requests, and the number of deciding loads in flight; the ring of firings whose
tokens have not left; counters; whether it is in ``changed``."""

S_LEFT, S_ENTERED, S_FIRED, S_FIRING, S_WHAT, S_SERVED, S_DONE, S_SHARER = range(8)
SLOT = 8
"""Columns of ``slots``, a vector in flight: words not served, cycles in which it entered and was
requested, the waiting firing, its flags, when it is served and done, and its owner."""

F_FIRED, F_UNANSWERED, F_TAG, F_AFTER, F_WAITS = range(5)
"""Words of a waiting firing: its cycle, loads not answered, its tag for the engine, the earliest
departure of later firings' tokens, followed by the cycles that its loads take, by level."""

P_FIRST, P_WAITING, P_BEGIN, P_SIZE, P_REPLY, P_REPLIES, P_LAST, P_VECTORS = range(8)
PORT_WORDS = 8
"""Columns of ``ports``: two rings of vectors, those that wait to enter and, P_SIZE behind, loads
that are not answered; when the last was answered; and how many entered."""

HEAD, COUNT = range(2)
"""Words of a link and of a queue."""

MASK, ONES, AGE = range(3)
ENTRY = 4
"""Words of a vector on a link or in a queue: its lanes, those of them that leave through the rank's
upper output (in a queue, those that may have to wait), and its age."""

UNDER_WAY, BUSY_CYCLES, WAITED, IN_PORT, LAST_STORED, CHANGED = range(6)
"""Entries of ``tally``: vectors with words that are not served; counters; the cycle of the last
store; how many sharers ``changed`` lists."""


class Banks(NamedTuple):
    """The arrays."""

    sharer_of: Signed
    sharers: Signed
    asking: Signed
    vectors: Signed
    words: Signed
    slots: Signed
    slot_words: Signed
    ends: Signed
    deciding: Signed
    firings: Signed
    ports: Signed
    rings: Signed
    links: Signed
    entries: Signed
    entry_words: Signed
    queues: Signed
    places: Signed
    place_words: Signed
    unsettled: Signed
    changed: Signed
    served: Signed
    tally: Signed
    granted: Signed
    numbers: Signed
    banks: Signed


MAGIC = 0x077CB531
"""A de Bruijn sequence: multiplied by a power of two, its upper 5 of 32 bits are unique."""


def numbers_of_bits() -> Signed:
    """The table from ``MAGIC`` products to bit numbers (a de Bruijn sequence)."""
    numbers = np.zeros(32, np.int64)
    for bit in range(32):
        numbers[(MAGIC << bit & 0xFFFFFFFF) >> 27] = bit
    return numbers


def ways_of(banked: Banked, *, levels: int, kept: int, stores: bool) -> Signed:
    """``banks`` of a banked memory."""
    return np.array(
        [
            banked.ports, banked.lanes, (banked.lanes - 1).bit_length(), banked.banks,
            banked.queue_depth, banked.rounds, banked.lane_moves, banked.link_depth,
            banked.reply_cycles, banked.ranks, banked.outstanding, levels, kept, stores,
            F_WAITS + levels,
        ],
        np.int64,
    )  # fmt: skip


_HALF = 0xFFFF
_PLACE = 0xFFFFFFFF


@inlined
def _lowest(numbers: Signed, mask: Word) -> Word:
    """The number of the lowest bit of a mask that is not 0."""
    return numbers[((mask & -mask) * MAGIC & 0xFFFFFFFF) >> 27]


@within
def _enter(memory: Any, port: Word, now: Word) -> None:
    """Let the oldest waiting vector enter a port, if there is room."""
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
        _finish(memory, slot, now, now)
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
    """Whether one of the older vectors accesses the same word and one of the two is a store."""
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
    """Grant each free bank the oldest word that an idle lane proposes; return their number."""
    places, place_words, banks = memory.places, memory.place_words, memory.banks
    lanes, queue = banks[LANES], 2 * unit
    at, count = memory.queues[queue + HEAD], np.int64(0)
    for older in range(memory.queues[queue + COUNT]):
        place = unit * banks[QUEUE] + at
        proposing = idle & places[ENTRY * place + MASK]
        risky = places[ENTRY * place + ONES]
        while proposing:
            lane = _lowest(memory.numbers, proposing)
            proposing &= proposing - 1
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
def _serve(memory: Any, unit: Word, now: Word) -> None:
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
                _finish(memory, slot, now + banks[REPLY], now)
        memory.served[unit] += count
    while queues[queue + COUNT] > 0:
        at = queues[queue + HEAD]
        if places[ENTRY * (unit * banks[QUEUE] + at) + MASK]:
            break
        queues[queue + HEAD] = 0 if at + 1 == banks[QUEUE] else at + 1
        queues[queue + COUNT] -= 1


@inlined
def _copy(memory: Any, entry: Word, new: Word, want: Word, shift: Word) -> Word:
    """Move the selected words of the older head; return the lanes with the bit of the next rank."""
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
    """Move the selected words of the younger head to free lanes.

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
        placed = bit & free
        if placed == 0:
            for move in range(1, moves + 1):
                placed = bit >> move & free
                if placed == 0:
                    placed = bit << move & free
                if placed:
                    break
            if placed == 0:
                continue
        free ^= placed
        gone |= bit
        word = words[entry + _lowest(numbers, bit)]
        lane = _lowest(numbers, placed)
        words[new + lane] = word
        ones |= (word >> shift & 1) << lane
    return gone, ~(free | before) & ((np.int64(1) << lanes) - 1), ones


@inlined
def _move_to(memory: Any, rank: Word, output: Word) -> None:
    """Let a merge unit form a vector, if any word is for its output."""
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
    """Let all merge units of a rank form a vector each, and drop empty heads."""
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
def step(memory: Any, now: Word) -> None:
    """One cycle of the banks, after all firings in it."""
    banks = memory.banks
    memory.tally[BUSY_CYCLES] += 1
    for port in range(banks[PORTS]):
        _enter(memory, port, now)
    for unit in range(banks[PORTS]):
        _take(memory, unit)
        _serve(memory, unit, now)
    for rank in range(banks[RANKS] - 1, -1, -1):
        _move(memory, rank)


# Completion of vectors: answers, departing tokens, free slots.


@within
def _complete(memory: Any, slot: Word, time: Word) -> None:
    """Mark a vector as answered or stored, and free the slots of its machine in order."""
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
    if sharers[record + IS_CHANGED] == 0:
        sharers[record + IS_CHANGED] = 1
        memory.changed[memory.tally[CHANGED]] = sharer
        memory.tally[CHANGED] += 1


@within
def _answer(memory: Any, slot: Word, time: Word) -> None:
    """Answer a load."""
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
    _complete(memory, slot, time)


@within
def _finish(memory: Any, slot: Word, time: Word, now: Word) -> None:
    """Finish a vector whose words are all served; a load is answered at ``time`` or later."""
    slots, ports, rings = memory.slots, memory.ports, memory.rings
    memory.tally[UNDER_WAY] -= 1
    if slots[SLOT * slot + S_WHAT] & STORE:
        memory.tally[LAST_STORED] = now
        _complete(memory, slot, now)
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
        _answer(memory, first, answered)


@inlined
def answered(memory: Any, sharer: Word) -> Word:
    """The slot of a machine's first waiting firing, if its loads are answered; else -1."""
    record, sharers = SHARER * sharer, memory.sharers
    if sharers[record + FIRINGS] == 0:
        return np.int64(-1)
    at = _place(memory, record, 0)
    return np.int64(-1) if memory.firings[at + F_UNANSWERED] > 0 else at


@within
def leave(memory: Any, sharer: Word, at: Word) -> Word:
    """The departure time of the tokens of an ``answered`` firing, which is then forgotten."""
    record, sharers, firings = SHARER * sharer, memory.sharers, memory.firings
    leaves = firings[at + F_FIRED]
    for level in range(memory.banks[LEVELS]):
        leaves += firings[at + F_WAITS + level]
    leaves = max(leaves, sharers[record + LEFT])
    sharers[record + LEFT] = max(leaves, firings[at + F_AFTER])
    first = sharers[record + FIRST_FIRING] + 1
    sharers[record + FIRST_FIRING] = 0 if first == sharers[record + FIRINGS_SIZE] else first
    sharers[record + FIRINGS] -= 1
    return leaves


# Sending the vectors of a firing.


@within
def _insert(memory: Any, begin: Word, size: Word, first: Word, count: Word, slot: Word) -> None:
    """Insert a vector into a ring, ordered by cycle and then by machine.

    Machines that wait for bandwidth fire before the others of a cycle.
    """
    rings, slots = memory.rings, memory.slots
    now, sharer = slots[SLOT * slot + S_FIRED], slots[SLOT * slot + S_SHARER]
    while count > 0:
        at = first + count - 1
        before = rings[begin + (at if at < size else at - size)]
        if slots[SLOT * before + S_FIRED] < now or slots[SLOT * before + S_SHARER] <= sharer:
            break
        at = first + count
        rings[begin + (at if at < size else at - size)] = before
        count -= 1
    at = first + count
    rings[begin + (at if at < size else at - size)] = slot


@within
def _queue(memory: Any, port: Word, slot: Word, what: Word) -> None:
    """Queue a vector in front of a port, and a load for its answer."""
    ports = memory.ports
    size, begin = ports[port + P_SIZE], ports[port + P_BEGIN]
    _insert(memory, begin, size, ports[port + P_FIRST], ports[port + P_WAITING], slot)
    ports[port + P_WAITING] += 1
    if what & STORE == 0:
        begin += size
        _insert(memory, begin, size, ports[port + P_REPLY], ports[port + P_REPLIES], slot)
        ports[port + P_REPLIES] += 1


@within
def _make(memory: Any, sharer: Word, firing: Word, now: Word) -> Word:
    """Send the machine's next vector; return its flags."""
    record, banks, slots = SHARER * sharer, memory.banks, memory.slots
    sharers, lanes = memory.sharers, banks[LANES]
    at = sharers[record + VECTOR_AT]
    what = memory.vectors[at]
    slot = sharer * banks[KEPT] + sharers[record + MADE] % banks[KEPT]
    sharers[record + VECTOR_AT] += 1
    sharers[record + MADE] += 1
    sharers[record + (STORED if what & STORE else LOADED)] += 1
    vector = SLOT * slot
    slots[vector + S_LEFT] = lanes + 1
    slots[vector + S_FIRED] = now
    slots[vector + S_FIRING] = firing
    slots[vector + S_WHAT] = what
    slots[vector + S_DONE] = UNKNOWN
    memory.ends[slot] = UNKNOWN
    slots[vector + S_SHARER] = sharer
    number = slot << banks[LANE_BITS]
    for lane in range(lanes):
        word = memory.words[at * lanes + lane]
        memory.slot_words[number + lane] = word
        if word >= 0:
            sharers[record + WORDS] += 1
    memory.tally[UNDER_WAY] += 1
    _queue(memory, PORT_WORDS * sharers[record + PORT], slot, what)
    return what


@inlined
def _place(memory: Any, record: Word, number: Word) -> Word:
    """The slot of a machine's waiting firing with this number."""
    sharers = memory.sharers
    at = sharers[record + FIRST_FIRING] + number
    if at >= sharers[record + FIRINGS_SIZE]:
        at -= sharers[record + FIRINGS_SIZE]
    return (sharers[record + FIRINGS_BEGIN] + at) * memory.banks[FIRING_WORDS]


@within
def _ask(
    memory: Any, sharer: Word, tag: Word, sends: bool, now: Word, leaving: Word, held: Word
) -> Word:
    """Send the vectors of a firing; return when its tokens leave, or ``UNKNOWN``.

    Other memories let them leave at ``leaving``, and allow the next firing at ``held``.
    """
    record, sharers, firings = SHARER * sharer, memory.sharers, memory.firings
    firing = _place(memory, record, sharers[record + FIRINGS])
    unanswered = undecided = 0
    for _ in range(memory.asking[sharers[record + ASKED_AT]]):
        what = _make(memory, sharer, firing, now)
        if what & STORE == 0:
            unanswered += 1
            undecided += what & DECIDES == DECIDES
    sharers[record + ASKED_AT] += 1
    sharers[record + UNDECIDED] = undecided
    sharers[record + HELD] = held
    if sharers[record + FIRINGS] == 0 and unanswered == 0:
        sharers[record + LEFT] = max(leaving, sharers[record + LEFT])
        return sharers[record + LEFT]
    if unanswered == 0 and not sends:
        last = _place(memory, record, sharers[record + FIRINGS] - 1)
        firings[last + F_AFTER] = max(firings[last + F_AFTER], leaving)
        return UNKNOWN
    firings[firing + F_FIRED] = now
    firings[firing + F_UNANSWERED] = unanswered
    firings[firing + F_TAG] = tag
    firings[firing + F_AFTER] = 0
    sharers[record + FIRINGS] += 1
    return UNKNOWN


@inlined
def may_ask(memory: Any, sharer: Word) -> Word:
    """The first cycle in which a machine may send the vectors of its next firing."""
    record, banks, sharers = SHARER * sharer, memory.banks, memory.sharers
    if sharers[record + UNDECIDED] > 0:
        return UNKNOWN
    asked, made = memory.asking[sharers[record + ASKED_AT]], sharers[record + MADE]
    blocking = min(made + asked - banks[OUTSTANDING], made) - 1
    if asked == 0 or blocking < 0:
        return sharers[record + HELD]
    slot = sharer * banks[KEPT] + blocking % banks[KEPT]
    return max(sharers[record + HELD], memory.ends[slot] + 1)


def asks_beside(waits: Callable[..., Word]) -> Callable[..., Word]:
    """The function that sends the vectors of a firing, next to another memory.

    ``waits(memory, pe, now, column)`` gives the cycles that the firing waits for the other memory:
    columns by level, followed by columns by level for the loads that decide.
    """

    @inlined
    def ask(memory: Any, pe: Word, tag: Word, sends: bool, now: Word) -> Word:
        """The departure time of a firing's tokens, or ``UNKNOWN``; ``tag`` identifies them."""
        sharer, levels = memory.sharer_of[pe], memory.banks[LEVELS]
        record = SHARER * sharer
        firing = _place(memory, record, memory.sharers[record + FIRINGS])
        leaving = held = now
        for level in range(levels):
            wait = waits(memory, pe, now, level)
            memory.firings[firing + F_WAITS + level] = wait
            leaving += wait
            wait = waits(memory, pe, now, levels + level)
            memory.deciding[sharer * levels + level] = wait
            held += wait
        return _ask(memory, sharer, tag, sends, now, leaving, held)

    return ask


@inlined
def no_wait(memory: Any, pe: Word, now: Word, column: Word) -> Word:
    """No extra wait: the channels include the constant latency of the other memory."""
    return np.int64(0)
