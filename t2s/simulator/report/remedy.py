"""The capacities that free a deadlock: a search of runs, in which only their ends matter.

Whether a run ends depends on capacities monotonically: more space never keeps a firing from being
made.  So capacities from which none can be lowered alone are found from above, one by one or many
at a time, and what could not be lowered once cannot be lowered later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.report.deadlock import DeadlockReport, Remedy

if TYPE_CHECKING:
    from t2s.simulator.report.result import SimResult

MOST_RUNS = 400
MOST_FIRINGS = 400_000_000
"""Most runs, and most firings in them, that the search may take."""

_SINGLY = 8
"""Runs after which all channels are given space, not only those that are found to block."""

Retime = Callable[[SimProgram], "SimResult"]
"""Runs a program for its times."""

Capacities = dict[str, int]


class _Enough(Exception):
    """The search has taken what it may take."""


def with_remedy(program: SimProgram, report: DeadlockReport, retime: Retime) -> DeadlockReport:
    """The report with sufficient capacities, each as small as it can be while the others stay.

    1. Channels that block on the cycle are given all the space they could use, and those that
       block on the next cycle, until the run ends.
    2. As many of them as possible go back to where they were, in groups: few channels change.
    3. The smallest depth is found that is enough for all of the rest, and then for each of them.

    Where the search may take no more runs it ends with what it has, which is not ``minimal`` then.
    """
    search = _Search(program, retime)
    try:
        beyond = search.give_space(report)
    except _Enough:
        return report
    if beyond is not None:
        return replace(report, searched=True, beyond=None if beyond is report else beyond)
    minimal = True
    try:
        search.take_back(list(search.found))
        search.level()
        search.lower()
    except _Enough:
        minimal = False
    raised = {
        name: (search.before[name], capacity)
        for name, capacity in search.found.items()
        if capacity > search.before[name]
    }
    return replace(report, remedy=Remedy(capacities=raised, minimal=minimal), searched=True)


@dataclass(slots=True)
class _Search:
    """``found`` are the best sufficient capacities so far; channels not in it are as given."""

    program: SimProgram
    retime: Retime
    found: Capacities = field(default_factory=dict)
    before: Capacities = field(init=False)
    runs: int = 0
    firings: int = 0

    def __post_init__(self) -> None:
        self.before = {
            timing.channel.name: timing.channel.capacity for timing in self.program.channels
        }

    def give_space(self, report: DeadlockReport) -> DeadlockReport | None:
        """Give space until the run ends; otherwise the deadlock that no space frees."""
        everything = {name: self._all_tokens(name) for name in self.before}
        current: DeadlockReport | None = report
        while current is not None:
            fresh = [name for name in _blocking(current) if name not in self.found]
            if not current.closed or not fresh:
                return current
            more = fresh if self.runs < _SINGLY else list(everything)
            self.found |= {name: everything[name] for name in more}
            current = self._run(self.found).deadlock
        return None

    def level(self) -> None:
        """Lower all capacities to the smallest one that is enough for all of them."""

        def cut(depth: int) -> Capacities:
            return {name: max(self.before[name], min(depth, most)) for name, most in tops.items()}

        tops = dict(self.found)
        low, high = 1, max(tops.values())
        while low < high:
            middle = (low + high) // 2
            if self._suffice(cut(middle)):
                high = middle
            else:
                low = middle + 1

    def take_back(self, names: Sequence[str]) -> None:
        """Give as many of these channels as possible, but not all, what they had before."""
        if len(names) < 2:
            return
        middle = len(names) // 2
        for part in (names[:middle], names[middle:]):
            if not self._suffice({**self.found, **{name: self.before[name] for name in part}}):
                self.take_back(part)

    def lower(self) -> None:
        """Lower every capacity as far as it goes, the others held."""
        for name, high in self.found.items():
            # most are as small as they can be, for level() has lowered them
            lowest = self.before[name] + 1
            if high > lowest and self._suffice({**self.found, name: high - 1}):
                self._bisect(name, lowest)

    def _bisect(self, name: str, low: int) -> None:
        while low < (high := self.found[name]):
            middle = (low + high) // 2
            if not self._suffice({**self.found, name: middle}):
                low = middle + 1

    def _suffice(self, capacities: Capacities) -> bool:
        """Whether a run with these capacities ends; if so, they are the best so far."""
        ends = self._run(capacities).deadlock is None
        if ends:
            self.found = capacities
        return ends

    def _run(self, capacities: Mapping[str, int]) -> SimResult:
        if self.runs >= MOST_RUNS or (self.runs and self.firings >= MOST_FIRINGS):
            raise _Enough
        result = self.retime(self.program.with_capacities(capacities))
        self.runs += 1
        self.firings += result.firings
        return result

    def _all_tokens(self, name: str) -> int:
        """A capacity that never blocks: all tokens that an element ever carries."""
        timing = next(timing for timing in self.program.channels if timing.channel.name == name)
        most = int(self.program.control.sent[timing.elements].max(initial=1))
        return max(most, timing.channel.capacity)


def _blocking(report: DeadlockReport) -> list[str]:
    """The channels that PEs on the cycle wait for space in."""
    return list(dict.fromkeys(wait.channel for wait in report.waits if wait.sending))
