"""Times by runs of a trace that is not kept: of what machines have done so far, again and again.

A trace of 10^11 cycles does not fit into any memory, but times by runs (``runs``) need a part of it
only once, and so do its values.  So when the trace of a run has become long, the times of all that
it says are computed, it is dropped, and values go on.
"""

from __future__ import annotations

from collections.abc import Mapping

from t2s.core.errors import InternalError
from t2s.core.ops import Array
from t2s.simulator.program.codes import SHORT, Codes, codes_of_parts
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.report.counters import FOREVER, Tally
from t2s.simulator.times.rounds import rounds_of, without_rounds
from t2s.simulator.times.runs import RunTimes, runs_of, worthwhile_runs

MOST_KEPT = 1 << 28
"""Bytes of a trace that is kept."""

WINDOW = 1 << 26
"""Bytes of the parts of a trace that is not."""


class BeyondLimit(Exception):
    """A run takes more cycles than the limit, and nothing else is known of it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(limit)


class TimesInWindows:
    """The times of a program whose values are being computed, as far as they are.

    They are ``wanted`` of a trace that is longer than ``most_kept`` bytes.
    """

    def __init__(self, program: SimProgram, max_cycles: int | None) -> None:
        self._program = program
        self._limit = FOREVER if max_cycles is None else max_cycles
        self._times: RunTimes | None = None
        self._known: list[Array | None] = []
        # where a short run is cut, counters of that cycle are asked for, which needs all of it
        self._wanted = max_cycles is None or max_cycles > MOST_KEPT
        self._wanted &= not any(machine.endless for machine in program.graph.machines)

    @property
    def began(self) -> bool:
        """Whether a part of the trace was taken."""
        return self._times is not None

    @property
    def most_kept(self) -> int | None:
        """The bytes of the next part of the trace; ``None`` if the rest has to be kept."""
        if not self._wanted:
            return None
        return WINDOW if self.began else MOST_KEPT

    @property
    def latest(self) -> int:
        """The latest cycle so far."""
        return 0 if self._times is None else self._times.latest

    def take(self, codes: Mapping[tuple[str, int], Codes]) -> bool:
        """Go on with what machines (by node and place) did next; return whether it is taken.

        It is not if times do not follow from it alone, or another kernel is faster.  Raises
        ``BeyondLimit``.
        """
        program = self._program
        of_machines = {
            timing.first + place: codes[timing.node.name, place]
            for timing in program.nodes
            for place in range(timing.pe_count)
            if (timing.node.name, place) in codes
        }
        if self._times is None:
            tables = runs_of(program, complete=False)
            every = all_codes(program, of_machines)
            traces = None if tables is None else worthwhile_runs(every)
            if tables is None or traces is None:
                self._wanted = False
                return False
            self._times = RunTimes(program, tables)
            self._known = [trace.known for trace in traces]
        else:
            nothing = codes_of_parts(SHORT, [])
            following = [of_machines.get(n, nothing) for n in range(program.pe_count)]
            traces = [
                rounds_of(one, known=known) or without_rounds(one)
                if known is not None
                else without_rounds(one)
                for one, known in zip(following, self._known, strict=True)
            ]
        self._times.extend(traces)
        while self._times.advance():
            if self._times.latest > self._limit:
                raise BeyondLimit(self._limit)
        return True

    def tally(self, *, interrupted: bool = False) -> Tally:
        """The counters; raises ``BeyondLimit``, which the last store may take to complete."""
        if self._times is None:
            raise InternalError("no part of the trace was taken")
        tally = self._times.tally(interrupted=interrupted)
        if not interrupted:
            self._times.check_finished()
            if tally.cycles > self._limit:
                raise BeyondLimit(self._limit)
        return tally


def all_codes(program: SimProgram, of_machines: Mapping[int, Codes]) -> list[Codes]:
    """The codes of every node, in programs that ``runs_of`` takes."""
    return [
        of_machines[instance]
        if instance in of_machines
        else codes_of_parts(SHORT, [static_codes(program, instance).astype(SHORT)])
        for instance in range(program.pe_count)
    ]


def static_codes(program: SimProgram, instance: int) -> Array:
    """A code for every firing of a PE whose control is static."""
    control = program.control
    start = int(control.code_start[instance])
    return control.codes[start : start + int(control.firings[instance])]
