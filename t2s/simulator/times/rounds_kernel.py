"""The part of the kernel of runs that knows rounds: firings that a node has made before.

A *round* is a part of a trace that a node repeats, as a machine that walks through the same sparse
matrix for every row of another one.  When its first firing is, and its tokens arrive as they did in
a round before, all that it does follows in the same distances: so a round that is known takes as
long as its channels, not as its firings.

What a round depends on is, for each channel, in which cycles after the first firing its tokens are
ready.  Tokens that are ready by then are *early*, and it does not matter how much.  What it sends
is an entry of a ring, a *pattern*: runs of tokens in distances from the first one.  Receivers take
the runs of a pattern one after the other, or a round of their own recognizes it as a whole.

Why that is all: a firing is in the latest of the cycles in which its heads are ready, and the
interval of the one before is over.

* Which heads it needs and takes, what it sends, and whether it stores, follow from its code, and
  the codes of all rounds of a node are the same words of its trace.
* Before the first firing of a round comes whatever came before it; what that firing waits for is
  counted as for any other, and the round begins behind it.  So nothing before it matters but its
  cycle, and every cycle here is a distance from it.
* The number of a head among the tokens of its channel follows from the codes.  The key has when
  each token is ready up to the last one that is taken, or that is needed and stays.  An early one
  is ready before every firing behind the first one, so it neither moves one nor makes one starve;
  and tokens of a channel become ready in their order, so all are early if the last one is.
* Interval, latencies and masks never change; channels have space for all tokens.
* Where runs and visits end changes nothing but the number of pieces.  A round begins and ends in
  one visit: while it is learned all its tokens were there, or it would not have been looked for.

What follows in turn is everything that is counted: tokens taken, tokens sent and when, cycles
starved on each channel, the last store, and the end.  All of this is of *channels*, each of which
is one of the inputs: a node may wait for the same channel in several steps of its common order.

In a ring, an entry of a run has its first cycle and its length, and one of a pattern the cycle of
its first token, and the place of the pattern, negated.
"""

from __future__ import annotations

from t2s.llvm.operands import Signed, Word, inlined
from t2s.simulator.times.runs_layout import (
    BASE,
    DURATION,
    ENTRIES,
    FEWEST,
    HEAD,
    INSIDE,
    KNOWN,
    LEFT,
    MOST_KNOWN,
    NEXT,
    OF_INPUT,
    OF_ROUND,
    OF_SEND,
    PATTERN,
    READ,
    RUNS,
    SEALED,
    SPAN,
    STARVED,
    STORED,
    TOKENS,
    USELESS,
    WRAP,
    WRITTEN,
    RunNode,
)

# -- channels -------------------------------------------------------------------------------------


@inlined
def slot_of(channels: Signed, channel: Word, number: Word) -> Word:
    """Where the entry of a number is in the rings."""
    return channels[channel + BASE] + 2 * (number & channels[channel + WRAP])


def enter(channels: Signed, ring: Signed, patterns: Signed, channel: Word) -> None:
    """Go on with the first run of the next entry, if there is one."""
    read = channels[channel + READ]
    if read < channels[channel + WRITTEN]:
        slot = slot_of(channels, channel, read)
        ready, count = ring[slot], ring[slot + 1]
        if count > 0:
            channels[channel + HEAD] = ready
            channels[channel + LEFT] = count
        else:
            first = PATTERN - count
            channels[channel + HEAD] = ready + patterns[first]
            channels[channel + LEFT] = patterns[first + 1]
            channels[channel + INSIDE] = first + 2


def go_on(channels: Signed, ring: Signed, patterns: Signed, channel: Word) -> None:
    """Go on after the last token of a run."""
    inside, slot = channels[channel + INSIDE], slot_of(channels, channel, channels[channel + READ])
    pattern = -ring[slot + 1]
    if inside != 0 and inside < pattern + PATTERN + 2 * patterns[pattern + RUNS]:
        channels[channel + HEAD] = ring[slot] + patterns[inside]
        channels[channel + LEFT] = patterns[inside + 1]
        channels[channel + INSIDE] = inside + 2
    else:
        _leave(channels, ring, patterns, channel)


def _leave(channels: Signed, ring: Signed, patterns: Signed, channel: Word) -> None:
    channels[channel + READ] += 1
    channels[channel + LEFT] = 0
    channels[channel + INSIDE] = 0
    enter(channels, ring, patterns, channel)


def _begins_pattern(channels: Signed, patterns: Signed, channel: Word, pattern: Word) -> bool:
    """Whether nothing of the pattern that is taken from is taken yet."""
    first = pattern + PATTERN
    inside, left = channels[channel + INSIDE], channels[channel + LEFT]
    return bool(inside == first + 2 and left == patterns[first + 1])


def _take(channels: Signed, ring: Signed, patterns: Signed, channel: Word, tokens: Word) -> None:
    """Take so many tokens, which are there."""
    while tokens > 0:
        pattern = -ring[slot_of(channels, channel, channels[channel + READ]) + 1]
        whole = False
        if channels[channel + INSIDE] != 0 and patterns[pattern + TOKENS] <= tokens:
            whole = _begins_pattern(channels, patterns, channel, pattern)
        if whole:
            tokens -= patterns[pattern + TOKENS]
            _leave(channels, ring, patterns, channel)
        else:
            part = min(tokens, channels[channel + LEFT])
            tokens -= part
            channels[channel + HEAD] += part
            channels[channel + LEFT] -= part
            if channels[channel + LEFT] == 0:
                go_on(channels, ring, patterns, channel)


# -- what a round depends on ----------------------------------------------------------------------


def _round_words(node: RunNode) -> Word:
    return OF_INPUT * len(node.inputs) + OF_SEND * len(node.sends) + OF_ROUND


def recalled(node: RunNode, channels: Signed, ring: Signed, patterns: Signed, start: Word) -> Word:
    """The number of the known round that is the next one, whose first firing is at ``start``.

    If there is none, it is the number of the one after the last, which then has what the next round
    depends on; -1 if that cannot be said.
    """
    known, words = node.state[KNOWN], _round_words(node)
    found = known * words
    for number in range(len(node.inputs)):
        at, looked = found + OF_INPUT * number, node.tokens[2 * number + 1]
        node.known[at] = 0
        if looked > 0 and not _note_arrival(
            node, channels, ring, patterns, node.inputs[number], looked, start, at
        ):
            return -1
    for number in range(known):
        if _arrives_alike(node, number * words, found):
            return number
    return known if known < MOST_KNOWN else -1


def _arrives_alike(node: RunNode, one: Word, other: Word) -> bool:
    for number in range(len(node.inputs)):
        at, place = one + OF_INPUT * number, other + OF_INPUT * number
        if node.known[at] != node.known[place]:
            return False
        for word in range(1, 1 + 2 * node.known[at]):
            if node.known[at + word] != node.known[place + word]:
                return False
    return True


def _note_arrival(
    node: RunNode,
    channels: Signed,
    ring: Signed,
    patterns: Signed,
    channel: Word,
    looked: Word,
    start: Word,
    at: Word,
) -> bool:
    """Note how the next tokens of a channel arrive; return whether that can be said."""
    read, entries = channels[channel + READ], 0
    first = read
    while looked > 0:
        if read == channels[channel + WRITTEN]:
            return False
        slot = slot_of(channels, channel, read)
        ready, word = ring[slot], ring[slot + 1]
        if word > 0:
            if read == first:
                ready, word = channels[channel + HEAD], channels[channel + LEFT]
            word = min(word, looked)
            tokens, last = word, ready + word - 1
        else:
            tokens, last = patterns[TOKENS - word], ready + patterns[SPAN - word]
            if read == first and not _begins_pattern(channels, patterns, channel, -word):
                return False
        if tokens >= looked and last <= start:
            node.known[at] = 0
            return True
        if tokens > looked:
            return False
        if entries < ENTRIES:
            node.known[at + 1 + 2 * entries] = word
            node.known[at + 2 + 2 * entries] = ready - start
        entries += 1
        looked -= tokens
        read += 1
    node.known[at] = entries
    return entries <= ENTRIES


# -- what a round does ----------------------------------------------------------------------------


def begin(node: RunNode, channels: Signed) -> None:
    """Begin a round that is not known, after what its first firing waits for."""
    for number in range(len(node.inputs)):
        node.before[number] = channels[node.inputs[number] + STARVED]
    for out in range(len(node.sends)):
        channel = node.sends[out]
        node.begun[out] = channels[channel + WRITTEN]
        channels[channel + NEXT] = SEALED


def learn(
    node: RunNode,
    channels: Signed,
    ring: Signed,
    patterns: Signed,
    start: Word,
    end: Word,
    last_store: Word,
    pieces: Word,
) -> None:
    """Know a round that ends: from now on its tokens are patterns."""
    state = node.state
    if pieces < state[FEWEST]:
        state[KNOWN] = USELESS
        return
    needed = patterns[0]
    for out in range(len(node.sends)):
        sent = channels[node.sends[out] + WRITTEN] - node.begun[out]
        needed += PATTERN + 2 * sent
    if needed > len(patterns):
        return
    words = _round_words(node)
    at = state[KNOWN] * words
    for number in range(len(node.inputs)):
        channel = node.inputs[number]
        node.known[at + OF_INPUT - 1] = channels[channel + STARVED] - node.before[number]
        at += OF_INPUT
    for out in range(len(node.sends)):
        channel = node.sends[out]
        first = slot_of(channels, channel, node.begun[out])
        sent = channels[channel + WRITTEN] - node.begun[out]
        if sent > 1:
            _note_pattern(channels, ring, patterns, channel, node.begun[out])
            ring[first + 1] = -_pattern_of(node, patterns, at, words)
            channels[channel + WRITTEN] = node.begun[out] + 1
            channels[channel + NEXT] = SEALED
        node.known[at] = ring[first + 1] if sent > 0 else 0
        node.known[at + 1] = ring[first] - start
        at += OF_SEND
    node.known[at + DURATION] = end - start
    node.known[at + STORED] = last_store - start if last_store >= start else -1
    state[KNOWN] += 1


def _note_pattern(
    channels: Signed, ring: Signed, patterns: Signed, channel: Word, begin: Word
) -> None:
    """Write the runs from an entry on as a pattern behind all others."""
    sent = channels[channel + WRITTEN] - begin
    base = ring[slot_of(channels, channel, begin)]
    pattern, tokens, last = patterns[0], 0 * base, 0 * base
    for number in range(sent):
        slot = slot_of(channels, channel, begin + number)
        run = pattern + PATTERN + 2 * number
        patterns[run] = ring[slot] - base
        patterns[run + 1] = ring[slot + 1]
        tokens += ring[slot + 1]
        last = ring[slot] - base + ring[slot + 1] - 1
    patterns[pattern + RUNS] = sent
    patterns[pattern + TOKENS] = tokens
    patterns[pattern + SPAN] = last


def _pattern_of(node: RunNode, patterns: Signed, at: Word, words: Word) -> Word:
    """The place of the pattern that comes last, or of one before that is equal.

    Those are of the same channel, ``at`` its place in the round that is learned.
    """
    last = patterns[0]
    size = PATTERN + 2 * patterns[last + RUNS]
    before = at - words
    while before >= 0:
        pattern = -node.known[before]
        if pattern > 0:
            word: Word = 0 * pattern
            while word < size and patterns[pattern + word] == patterns[last + word]:
                word += 1
            if word == size:
                return pattern
        before -= words
    patterns[0] = last + size
    return last


def repeat(
    node: RunNode, channels: Signed, ring: Signed, patterns: Signed, number: Word, start: Word
) -> Word:
    """Make a round that is known; return where its duration is."""
    at = number * _round_words(node)
    for position in range(len(node.inputs)):
        channel = node.inputs[position]
        _take(channels, ring, patterns, channel, node.tokens[2 * position])
        channels[channel + STARVED] += node.known[at + OF_INPUT - 1]
        at += OF_INPUT
    for out in range(len(node.sends)):
        word = node.known[at]
        if word != 0:
            channel = node.sends[out]
            slot = slot_of(channels, channel, channels[channel + WRITTEN])
            ring[slot] = start + node.known[at + 1]
            ring[slot + 1] = word
            channels[channel + WRITTEN] += 1
            channels[channel + NEXT] = SEALED
        at += OF_SEND
    return at
