"""The cycle count of a program as a function of its channel depths, asked as rarely as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from t2s.explore.parallel import Workers
from t2s.simulator.engine import Limits
from t2s.simulator.program import SimProgram
from t2s.simulator.retime import retime

Depths = tuple[int, ...]
"""One depth per channel, in the order of the program's channels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """What a run with some depths took.

    ``cycles`` is ``None`` for a deadlock, and for a run that was cut short because it takes more
    than ``beyond`` cycles (``None``: a deadlock).
    """

    cycles: int | None
    beyond: int | None = None


class Timings:
    """Runs of a program with other depths, in parallel; every answer is kept.

    Unless units share a memory (its bandwidth, or a DRAM) more depth never costs cycles (every
    cycle of a firing is a maximum of sums of others), so a run that was too slow answers for all
    smaller depths as well.  If they do, an earlier access may delay another one that matters more.
    """

    def __init__(self, program: SimProgram, engine: str, workers: Workers) -> None:
        self.program = program
        self.names = tuple(timing.channel.name for timing in program.channels)
        self.monotone = not program.shares_memory
        self.runs = 0
        self.on_run: Callable[[], None] = lambda: None
        self._engine = engine
        self._workers = workers
        self._known: dict[Depths, Timed] = {}
        self._too_slow: list[tuple[Depths, int]] = []

    @property
    def workers(self) -> int:
        """How many runs go on at once."""
        return self._workers.count

    def keeps(self, points: Sequence[Depths], cycles: int) -> list[bool]:
        """Whether the program with these depths takes at most so many cycles."""
        asked = [point for point in dict.fromkeys(points) if self._answer(point, cycles) is None]
        self._run(asked, Limits(max_cycles=cycles, give_up=True))
        return [bool(self._answer(point, cycles)) for point in points]

    def cycles(self, points: Sequence[Depths]) -> list[int | None]:
        """The cycles with these depths, ``None`` where they end in a deadlock."""
        asked = [point for point in dict.fromkeys(points) if not self._complete(point)]
        self._run(asked, Limits())
        return [self._known[point].cycles for point in points]

    def keep(self, point: Depths, cycles: int) -> None:
        """Note what somebody else has found."""
        self._known[point] = Timed(cycles=cycles)

    def known(self, point: Depths) -> int | None:
        """The cycles with these depths, if they were found and it does end."""
        timed = self._known.get(point)
        return None if timed is None else timed.cycles

    def _complete(self, point: Depths) -> bool:
        known = self._known.get(point)
        return known is not None and (known.cycles is not None or known.beyond is None)

    def _answer(self, point: Depths, cycles: int) -> bool | None:
        known = self._known.get(point)
        if known is not None:
            if known.cycles is not None:
                return known.cycles <= cycles
            if known.beyond is None or known.beyond >= cycles:
                return False
        if self.monotone and any(
            beyond >= cycles and all(a <= b for a, b in zip(point, slow, strict=True))
            for slow, beyond in self._too_slow
        ):
            return False
        return None

    def _run(self, points: Sequence[Depths], limits: Limits) -> None:
        def task(point: Depths) -> Callable[[], Timed]:
            return lambda: self._timed(point, limits)

        for point, timed in zip(
            points, self._workers.all([task(point) for point in points]), strict=True
        ):
            self._known[point] = timed
            if timed.cycles is None and timed.beyond is not None:
                self._too_slow.append((point, timed.beyond))

    def _timed(self, point: Depths, limits: Limits) -> Timed:
        result = retime(
            self.program,
            dict(zip(self.names, point, strict=True)),
            engine=self._engine,
            limits=limits,
            observer=self._workers.watch,
        )
        if result.interrupted:
            raise KeyboardInterrupt
        self.runs += 1
        self.on_run()
        if result.finished:
            return Timed(cycles=result.cycles)
        return Timed(cycles=None, beyond=limits.max_cycles if result.limit_reached else None)
