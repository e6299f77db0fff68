"""Rounds: the part of a trace that its node repeats, such as a walk through the same matrix.

The first round begins with the trace; others may follow one another, or have other firings in
between.  A trace without repetition, or one whose repetition is shorter than a few hundred firings,
has no round: runs of equal codes are what it needs.  The parts of a trace that are the same array
are rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from t2s.core.ops import Array
from t2s.simulator.program.codes import most_in_run

FEWEST_FIRINGS = 256
"""Firings of the shortest rounds; and codes by which a round is looked for."""

FEWEST_TIMES = 4
"""How often a round comes at least in the part of a trace in which it is looked for."""

_TRIES = 16
"""How many false matches of the key are followed up before the search for a round gives up.

Each round that is found allows one more.
"""

_FEWEST_RUNS = 64
"""Runs of a round that take more memory than what says that it is one."""

_FIRST_RUNS, _MOST_RUNS, _GROWTH = 1 << 16, 1 << 22, 4
"""Runs among which the first round is looked for, at first and at last."""


_NEVER = 1 << 62
_POINTER = 8
_WORD = 8


class Folded:
    """A trace that grows, and in which rounds are one array as soon as they are known.

    It is in runs whose codes have ``bits`` bits, or one code after the other; then ``known`` is its
    round.  ``bytes`` is the memory that they take.
    """

    def __init__(self, bits: int, known: Array | None = None) -> None:
        self._bits = bits
        self._done: list[Array] = []
        self._rest: list[Array] = []
        self._waiting, self._next = 0, _FIRST_RUNS
        self._round = known
        self.bytes = 0

    def add(self, codes: Array) -> None:
        """Codes, or runs of them, that follow; what is kept of them is copied."""
        if self._goes_on(codes):
            return
        self._rest.append(codes.copy())
        self._waiting += len(codes)
        self.bytes += codes.nbytes
        if self._waiting >= self._next:
            self._fold()

    @property
    def parts(self) -> list[Array]:
        """The codes, or runs of them, in order."""
        return [*self._done, *self._rest]

    def _goes_on(self, codes: Array) -> bool:
        """Take codes that are nothing but rounds, where they are; return whether they are."""
        known, begun = self._round, self._waiting
        if known is None or codes.dtype == np.int32 or not begun < len(known) < len(codes):
            return False
        rest = np.concatenate([known[:0], *self._rest])
        first = np.concatenate([rest, codes[: len(known) - begun]])
        if first.tobytes() != known.tobytes() or not _repeats(codes, len(known)):
            return False
        times, left = divmod(begun + len(codes), len(known))
        self._done += [known] * times
        self._rest, self._waiting = [codes[len(codes) - left :].copy()], left
        self.bytes += _POINTER * times + self._rest[0].nbytes - rest.nbytes
        return True

    def drop(self) -> None:
        """Forget the codes, or runs of them, but for the round."""
        self._done, self._rest = [], []
        self._waiting = self.bytes = 0

    def _fold(self) -> None:
        """Take rounds out of the runs that wait; the last run may go on."""
        text = b"".join(part.tobytes() for part in joined(self._rest, self._bits))
        whole = np.frombuffer(text, self._rest[0].dtype)
        size = whole.itemsize
        if self._round is None:
            length = first_round(text, size, FEWEST_FIRINGS)
            if length < _FEWEST_RUNS:
                self._look_later()
                return
            self._round = whole[:length].copy()
        length = len(self._round)
        end = 0
        for begin, stop, times in stretches_of(
            text[:-size], size, FEWEST_FIRINGS, self._round.tobytes()
        ):
            if times:
                self._done += [self._round] * times
                self.bytes += (_POINTER - self._round.nbytes) * times
                end = begin + times * length
            elif stop < len(whole) - 1 or stop - begin > 2 * length:
                end = stop - (length if stop == len(whole) - 1 else 0)
                self._done.append(whole[begin:end].copy())
        self._rest = [whole[end:].copy()]
        self._waiting = len(whole) - end
        self._next = max(_FIRST_RUNS, FEWEST_TIMES * length)

    def _look_later(self) -> None:
        self._next *= _GROWTH
        if self._next > _MOST_RUNS:
            self._done += self._rest
            self._rest, self._waiting = [], 0
            self._next = _NEVER


def _repeats(codes: Array, length: int) -> bool:
    """Whether codes come again after so many; they are compared by words, many at once."""
    before, after = codes[:-length], codes[length:]
    words = after.nbytes // _WORD * _WORD // codes.itemsize
    whole = (part[:words].view(np.uint64) for part in (before, after))
    return np.array_equal(*whole) and np.array_equal(before[words:], after[words:])


def joined(parts: Sequence[Array], bits: int) -> list[Array]:
    """Parts of a trace, with runs in one piece that go on from one part to the next."""
    joined: list[Array] = []
    for part in parts:
        if joined and len(part) and part.dtype == np.int32:
            last, following = int(joined[-1][-1]), int(part[0])
            firings, code = (last >> bits) + (following >> bits), last & ((1 << bits) - 1)
            if following & ((1 << bits) - 1) == code and firings <= most_in_run(bits):
                joined[-1] = joined[-1][:-1]
                part = np.concatenate([np.array([firings << bits | code], np.int32), part[1:]])
        if len(part):
            joined.append(part)
    return joined


def first_round(text: bytes, size: int, key_length: int) -> int:
    """The length of what a trace repeats from its beginning on; 0 if there is no such part.

    The codes or runs of the trace have ``size`` bytes each.
    """
    longest = len(text) // size // FEWEST_TIMES * size
    key, at = text[: key_length * size], 0
    for _ in range(_TRIES):
        at = text.find(key, at + 1, longest + len(key))
        if at < 0:
            return 0
        if at % size == 0 and text[:at] == text[at : 2 * at]:
            few = at < min(key_length, _FEWEST_RUNS) * size
            return _round_of(text, size, at, key_length) if few else at // size
    return 0


def _round_of(text: bytes, size: int, short: int, key_length: int) -> int:
    """The length of the round that is made of repetitions of so few bytes; 0 if there is none.

    Rows of a dense matrix are all alike, and what ends the matrix tells where it begins again.
    """
    codes = np.frombuffer(text, np.uint8)
    other = codes[short:] != codes[:-short]
    differs = int(other.argmax())
    if not other[differs]:
        return 0
    end = (differs + short) // size * size
    longest = len(text) // size // FEWEST_TIMES * size
    again = text.find(text[end : end + key_length * size], end + 1, end + longest)
    length = again - end
    whole = again > 0 and length % size == 0 and text[:length] == text[length : 2 * length]
    return length // size if whole else 0


def stretches_of(
    text: bytes, size: int, key_length: int, first: bytes
) -> list[tuple[int, int, int]]:
    """The parts of a trace: where they begin and end, and how many rounds they are, or 0."""
    step, end = len(first), len(text)
    length, key = step // size, first[: key_length * size]
    found: list[tuple[int, int, int]] = []
    at, failures = 0, 0
    while at < end:
        times = 0
        while text.startswith(first, at + times * step):
            times += 1
        if times:
            found.append((at // size, at // size + length, times))
            at += times * step
        begin = at
        while at < end:
            at = text.find(key, at)
            if at < 0 or failures > _TRIES + len(found):
                at = end
            elif at % size == 0 and text.startswith(first, at):
                break
            else:
                failures += 1
                at += 1
        if begin < at:
            found.append((begin // size, at // size, 0))
    return found
