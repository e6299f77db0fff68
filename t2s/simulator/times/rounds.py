"""The rounds of a trace, for the kernel of runs (see ``program/rounds.py``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
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
from t2s.simulator.times.runs_layout import IS_ROUND, STRETCH_WORDS, TIMES
from t2s.simulator.values.packing import packed, runs_of_codes


@dataclass(frozen=True, slots=True)
class Rounds:
    """A trace as words of runs, and which of them follow one another (see ``runs_layout``)."""

    runs: Runs
    stretches: Counts
    bits: int

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
    def times(self) -> int:
        """How many rounds there are."""
        rows = self._rows
        return int(rows[rows[:, IS_ROUND] != 0, TIMES].sum())

    @property
    def _rows(self) -> Counts:
        return self.stretches.reshape(-1, STRETCH_WORDS)


def without_rounds(codes: Codes) -> Rounds:
    """A trace as it is."""
    runs = runs_of_codes(codes)
    stretches = [0, len(runs), 1, 0] if len(runs) else []
    return Rounds(runs=runs, stretches=np.array(stretches, np.int64), bits=codes.bits)


def rounds_of(codes: Codes, fewest: int = FEWEST_FIRINGS) -> Rounds | None:
    """A trace with its rounds, of at least ``fewest`` firings; ``None`` if it has none."""
    known = Counter(map(id, codes.parts)).most_common(1)
    folded = known and known[0][1] >= FEWEST_TIMES
    stretches = _folded(codes, known[0][0]) if folded else _found(codes, fewest)
    runs: list[Runs] = []
    rows: list[int] = []
    words, of_round = 0, (0, 0)
    for part, times in stretches:
        place = of_round
        if not times or not of_round[1]:
            runs.append(part if part.dtype == np.int32 else packed(part, codes.bits))
            place = words, words + len(runs[-1])
            words = place[1]
        of_round = place if times else of_round
        rows += [*place, max(times, 1), int(times > 0)]
    if not of_round[1]:
        return None
    return Rounds(np.concatenate(runs), np.array(rows, np.int64), codes.bits)


def _folded(codes: Codes, known: int) -> Iterator[tuple[Array, int]]:
    """The parts of a trace, and how many rounds they are, of which the identity is known."""
    (first, *_) = (part for part in codes.parts if id(part) == known)
    for is_round, group in groupby(codes.parts, key=lambda part: id(part) == known):
        parts = list(group)
        if is_round:
            yield first, len(parts)
        else:
            text = b"".join(part.tobytes() for part in joined(parts, codes.bits))
            yield from _stretches(text, first.dtype, first.tobytes(), FEWEST_FIRINGS)


def _found(codes: Codes, fewest: int) -> Iterator[tuple[Array, int]]:
    """The same for a trace in which rounds are yet to be found; nothing if there are none."""
    parts = list(codes.parts)
    if len(parts) != 1 or parts[0].dtype != codes.type:
        in_runs = all(part.dtype == np.int32 for part in parts)
        parts = joined(parts if in_runs else [runs_of_codes(codes)], codes.bits)
    text = b"".join(part.tobytes() for part in parts)
    whole = np.frombuffer(text, parts[0].dtype if parts else codes.type)
    first = whole[: first_round(text, whole.itemsize, fewest)]
    counts = first >> codes.bits if first.dtype == np.int32 else np.ones(len(first), np.int64)
    if counts.sum() >= fewest:
        yield from _stretches(text, whole.dtype, first.tobytes(), fewest)


def _stretches(
    text: bytes, type: np.dtype[Any], first: bytes, fewest: int
) -> Iterator[tuple[Array, int]]:
    whole = np.frombuffer(text, type)
    for begin, end, times in stretches_of(text, type.itemsize, fewest, first):
        yield whole[begin:end], times
