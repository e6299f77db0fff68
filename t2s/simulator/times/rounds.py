"""The rounds of a trace, for the kernel of runs (see ``program/rounds.py``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from t2s.core.ops import Array
from t2s.simulator.program.codes import Codes, Runs
from t2s.simulator.program.rounds import (
    FEWEST_FIRINGS,
    FEWEST_TIMES,
    first_round,
    joined,
    stretches_of,
)
from t2s.simulator.report.counters import Counts
from t2s.simulator.times.runs_layout import BEGIN, END, IS_ROUND, STRETCH_WORDS, TIMES
from t2s.simulator.values.packing import packed, runs_of_codes

_FIRST = 64
"""Runs at the beginning of a trace that tell whether it repeats a few of them."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """A trace as words of runs, and which of them follow one another (see ``runs_layout``).

    ``known`` is its round as it is in the parts of the trace, ``None`` if it has none.
    """

    runs: Runs
    stretches: Counts
    bits: int
    known: Array | None = None

    @property
    def round(self) -> Runs:
        """The runs of one round; empty if the trace has none."""
        for begin, end, _, is_round in self._rows.tolist():
            if is_round:
                return self.runs[begin:end]
        return self.runs[:0]

    @property
    def firings(self) -> int:
        """The firings of a round."""
        return int((self.round >> self.bits).sum(dtype=np.int64))

    @property
    def most_times(self) -> int:
        """How many rounds would be as many firings as there are, about."""
        counts = (self.runs >> self.bits).astype(np.int64)
        ends = np.concatenate([[0], np.cumsum(counts)])
        rows = self._rows
        all_firings = int(((ends[rows[:, END]] - ends[rows[:, BEGIN]]) * rows[:, TIMES]).sum())
        return round(all_firings / self.firings) if self.firings else 0

    @property
    def times(self) -> int:
        """How many rounds there are."""
        rows = self._rows
        return int(rows[rows[:, IS_ROUND] != 0, TIMES].sum())

    @property
    def _rows(self) -> Counts:
        return self.stretches.reshape(-1, STRETCH_WORDS)

    def from_here(self, at: int, stretch: int, repeats: int) -> Rounds:
        """What follows a word of a stretch that is to be made so many more times."""
        rows = self._rows[stretch:].tolist()
        if not rows:
            return Rounds(self.runs[:0], np.zeros(0, np.int64), self.bits, self.known)
        begin, end, _, is_round = rows[0]
        rows[0] = [begin, end, repeats, is_round]
        if at > begin:
            again = [[begin, end, repeats - 1, is_round]] if repeats > 1 else []
            rows[:1] = [[at, end, 1, 0], *again]
        kept = min(row[BEGIN] for row in rows)
        stretches = np.array(rows, np.int64)
        stretches[:, [BEGIN, END]] -= kept
        return Rounds(self.runs[kept:], stretches.reshape(-1), self.bits, self.known)

    def followed_by(self, other: Rounds) -> Rounds:
        """Both, one after the other; they have the same round, if both have one."""
        stretches = other._rows.copy()
        stretches[:, [BEGIN, END]] += len(self.runs)
        return Rounds(
            np.concatenate([self.runs, other.runs]),
            np.concatenate([self.stretches, stretches.reshape(-1)]),
            self.bits,
            self.known if other.known is None else other.known,
        )


def without_rounds(codes: Codes) -> Rounds:
    """A trace as it is."""
    runs = runs_of_codes(codes)
    stretches = [0, len(runs), 1, 0] if len(runs) else []
    return Rounds(runs=runs, stretches=np.array(stretches, np.int64), bits=codes.bits)


def rounds_of(
    codes: Codes, fewest: int = FEWEST_FIRINGS, known: Array | int | None = None
) -> Rounds | None:
    """A trace with its rounds, of at least ``fewest`` firings; ``None`` if it has none.

    ``known`` is the round of what came before these codes, or how many rounds other nodes make:
    into so many, a trace is cut that repeats a few runs and nothing else.
    """
    evenly = known if isinstance(known, int) else None
    one = known if isinstance(known, np.ndarray) else _most_common(codes)
    stretches = _found(codes, fewest, evenly) if one is None else _folded(codes, one)
    runs: list[Runs] = [np.zeros(0, np.int32)]
    rows: list[int] = []
    words, of_round = 0, (0, 0)
    for part, times in stretches:
        place = of_round
        if not times or not of_round[1]:
            runs.append(part if part.dtype == np.int32 else packed(part, codes.bits))
            place = words, words + len(runs[-1])
            words = place[1]
        if times:
            of_round, one = place, part if one is None else one
        rows += [*place, max(times, 1), int(times > 0)]
    if one is None:
        return None
    return Rounds(np.concatenate(runs), np.array(rows, np.int64), codes.bits, one)


def is_folded(codes: Codes) -> bool:
    """Whether rounds of a trace are known already."""
    return _most_common(codes) is not None


def _most_common(codes: Codes) -> Array | None:
    """The part of a trace that comes again; ``None`` if none does often."""
    ((often, times), *_) = Counter(map(id, codes.parts)).most_common(1) or [(0, 0)]
    if times < FEWEST_TIMES:
        return None
    return next(part for part in codes.parts if id(part) == often)


def _folded(codes: Codes, known: Array) -> Iterator[tuple[Array, int]]:
    """The parts of a trace, and how many rounds they are, of which one is known."""
    in_runs = known.dtype == np.int32
    for is_round, group in groupby(codes.parts, key=lambda part: part is known):
        parts = list(group)
        if is_round:
            yield known, len(parts)
        elif in_runs or all(part.dtype == known.dtype for part in parts):
            alike = [packed(p, codes.bits) if p.dtype != known.dtype else p for p in parts]
            text = b"".join(part.tobytes() for part in joined(alike, codes.bits))
            yield from _stretches(text, known.dtype, known.tobytes(), FEWEST_FIRINGS)
        else:
            yield from ((part, 0) for part in parts if len(part))


def _found(codes: Codes, fewest: int, evenly: int | None) -> Iterator[tuple[Array, int]]:
    """The same for a trace in which rounds are yet to be found; nothing if there are none.

    If it repeats a few runs only, it is cut into ``evenly`` rounds.
    """
    parts = list(codes.parts)
    if len(parts) != 1 or parts[0].dtype != codes.type:
        in_runs = all(part.dtype == np.int32 for part in parts)
        parts = joined(parts if in_runs else [runs_of_codes(codes)], codes.bits)
        if evenly and (length := _period(parts)):
            runs = np.concatenate(parts)
            others = runs[length:] != runs[:-length]
            alike = length + (int(others.argmax()) if others.any() else len(others))
            length *= alike // (length * evenly)
            if alike > len(runs) - length:
                yield runs[:length], alike // length
                if len(rest := runs[alike // length * length :]):
                    yield rest, 0
                return
    text = b"".join(part.tobytes() for part in parts)
    whole = np.frombuffer(text, parts[0].dtype if parts else codes.type)
    first = whole[: first_round(text, whole.itemsize, fewest)]
    counts = first >> codes.bits if first.dtype == np.int32 else np.ones(len(first), np.int64)
    if counts.sum() >= fewest:
        yield from _stretches(text, whole.dtype, first.tobytes(), fewest)


def _period(parts: Sequence[Array]) -> int:
    """How many runs a trace repeats at its beginning, if it is a few; else 0."""
    first = parts[0][:_FIRST] if parts else np.zeros(0, np.int32)
    again = (n for n in range(1, _FIRST // 4) if (first[n:] == first[:-n]).all())
    return next(again, 0) if len(first) == _FIRST else 0


def _stretches(
    text: bytes, type: np.dtype[Any], first: bytes, fewest: int
) -> Iterator[tuple[Array, int]]:
    whole = np.frombuffer(text, type)
    for begin, end, times in stretches_of(text, type.itemsize, fewest, first):
        yield whole[begin:end], times
