"""Exact fast-forward: when the state of a run comes back, its future is known and is skipped.

The control of a PE is a walk through a box of iterations, and what a firing does depends on the
classes of its iterations only.  Two *snapshots* of a run are alike if all counters, notes, credits
and queues are equal and every PE stands at the same place of its walk, but for a shift by a number
of iterations of one axis (or of firings inside of one run).  Then what happened between them
happens again, cycle by cycle, as long as the iterations that every PE will meet are of the same
classes as those that it met, one shift earlier.  So many periods are skipped: positions and the
totals of stalls move on by a multiple of what they moved on by, and nothing else changes.

Nested loops repeat at every level.  Snapshots are taken whenever a *watched* PE enters an
iteration of one of its axes: a period of an inner axis is skipped until its end, which makes the
periods of the next axis short enough to be found in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile
from math import prod
from time import monotonic

import numpy as np

from t2s.core.ops import Array
from t2s.graph.nodes import Role
from t2s.simulator.report.tally import Counts
from t2s.simulator.times.array.arena import POSITION
from t2s.simulator.times.array.emit import Stop
from t2s.simulator.times.array.emit_walk import CLOCK_WORD
from t2s.simulator.times.array.run import ArrayMachine

_SHORTEST = 64
"""Firings of the watched PE between snapshots, at least."""

_EAGER = 16
"""Snapshots in the first stretch of a level, all compared; the next one is twice as long."""

_PAUSE = 2000
"""Cycles between two stretches for each snapshot in the first: looking takes a fraction of the time
of simulating, however long the period is."""

_BETWEEN_CALLS = 0.1
"""Seconds between two calls of the observer."""

_FOREVER = 1 << 62


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A run at the end of a cycle.

    ``position`` is the iteration of each axis at which each PE's run starts, ``used`` the firings
    made in the run, ``ahead`` those left of the walk, ``inside`` those left of the run.
    """

    cycle: int
    position: Array
    used: Counts
    ahead: Counts
    inside: Counts
    stalls: Counts
    last_store: int
    state: bytes


@dataclass(slots=True)
class _Level:
    """The snapshots at one level of the watched PE, after Brent: the one before, and an anchor.

    The anchor moves on after 1, 2, 4, ... snapshots.  Snapshots come in stretches.
    """

    anchor: Snapshot | None = None
    latest: Snapshot | None = None
    count: int = 0
    power: int = 1
    stretch: int = _EAGER
    left: int = _EAGER
    asleep_until: int = 0

    def forget(self) -> None:
        """Start again: something further out has moved on."""
        self.restart()
        self.stretch = self.left = _EAGER
        self.asleep_until = 0

    def restart(self) -> None:
        """Compare with snapshots yet to come only."""
        self.anchor = self.latest = None
        self.count, self.power = 0, 1

    def keep(self, now: Snapshot) -> None:
        """Remember a snapshot that is like none before."""
        self.latest = now
        self.count += 1
        if self.anchor is None or self.count >= self.power:
            self.anchor, self.count = now, 0
            self.power *= 2
        self.left -= 1
        if self.left == 0:
            self.asleep_until = now.cycle + self.stretch * _PAUSE
            self.stretch *= 2
            self.left = self.stretch
            self.restart()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checkpoint:
    """The whole state at the end of a cycle."""

    cycle: int
    arena: Array
    last: Counts


@dataclass(slots=True)
class FastForward:
    """Advances a machine, skipping what repeats; ``skipped`` counts the cycles.

    ``on_skip`` is called in place of a skip with the length of a period, their number, and what
    skips them, which it calls once.
    """

    machine: ArrayMachine
    skipped: int = 0
    on_skip: Callable[[int, int, Callable[[], None]], None] | None = None
    _levels: list[_Level] = field(default_factory=list)
    _deepest: int = -1
    _newer: _Checkpoint | None = None
    _older: _Checkpoint | None = None

    def __post_init__(self) -> None:
        program = self.machine.program
        if program.stalls is not None or program.pe_count == 0:
            return
        watched = _watched(self.machine)
        walk = self.machine.plan.walks[int(program.control.order_of[watched])]
        periods = [walk.repeat * prod(walk.extents[at + 1 :]) for at in range(len(walk.extents))]
        periods[-1] = walk.repeat * int(walk.runs.max(initial=0))
        levels = [*takewhile(lambda period: period >= _SHORTEST, periods)]
        if len(levels) == len(periods):
            levels.append(self.machine.layout.chunk)
        self._levels = [_Level() for _ in levels]
        self._deepest = len(levels) - 1
        self.machine.clock[CLOCK_WORD["watched"]] = watched

    def advance(
        self,
        until: int,
        *,
        calls_of: int = _FOREVER,
        on_call: Callable[[ArrayMachine], None] | None = None,
        skip_until: int | None = None,
    ) -> Stop:
        """Simulate or skip to the end of cycle ``until`` at most, or skip to ``skip_until``.

        ``on_call`` is called now and then, at the latest after ``calls_of`` simulated cycles if
        these take a tenth of a second.
        """
        machine, tell_at = self.machine, monotonic()
        while True:
            now = machine.cycle
            asleep = [at for at, level in enumerate(self._levels) if level.asleep_until > now]
            awake = asleep[0] - 1 if asleep else self._deepest
            wake = min((self._levels[at].asleep_until for at in asleep), default=_FOREVER)
            machine.clock[CLOCK_WORD["deepest"]] = awake
            self._keep()
            stop = machine.advance(min(until, wake, now + calls_of))
            if on_call is not None and monotonic() >= tell_at:
                on_call(machine)
                tell_at = monotonic() + _BETWEEN_CALLS
            if stop is Stop.EVENT:
                self._look(machine.event, until if skip_until is None else skip_until)
                if machine.cycle >= until:
                    return Stop.UNTIL
            elif stop is not Stop.UNTIL or machine.cycle >= until:
                return stop

    def back_to(self, cycle: int) -> None:
        """Go back to a kept state at ``cycle`` or before: one not later than the last firing."""
        for kept in (self._newer, self._older):
            if kept is not None and kept.cycle <= cycle:
                self.machine.arena[: len(kept.arena)] = kept.arena
                self.machine.last[:] = kept.last
                return

    def _keep(self) -> None:
        """Keep the state if there was a firing since the one that was kept last."""
        machine = self.machine
        if self._newer is None or machine.last.max(initial=0) > self._newer.cycle:
            self._older = self._newer
            self._newer = _Checkpoint(
                cycle=machine.cycle,
                arena=machine.arena[: machine.layout.state_bytes].copy(),
                last=machine.last.copy(),
            )

    def _look(self, at: int, until: int) -> None:
        """Compare with earlier snapshots of the level; skip if one is alike."""
        for inner in self._levels[at + 1 :]:
            inner.forget()
        level = self._levels[at]
        now = snapshot(self.machine)
        for earlier in (level.latest, level.anchor):
            if earlier is not None and self._skip(earlier, now, until):
                level.forget()
                return
        level.keep(now)

    def _skip(self, earlier: Snapshot, now: Snapshot, until: int) -> bool:
        """Skip as many periods as are known to come; whether there was any."""
        period = now.cycle - earlier.cycle
        if period <= 0 or now.state != earlier.state:
            return False
        most = min(repetitions(self.machine, earlier, now), (until - now.cycle) // period)
        if most < 1:
            return False
        if self.on_skip is None:
            repeat(self.machine, earlier, now, most)
        else:
            self.on_skip(period, most, lambda: repeat(self.machine, earlier, now, most))
        self.skipped += most * period
        return True


def _watched(machine: ArrayMachine) -> int:
    """The PE whose iterations say when to look: of those that compute, one with most firings."""
    program = machine.program
    firings = program.control.firings.copy()
    computes = np.zeros(len(firings), np.bool_)
    for timing in program.nodes:
        computes[timing.instances] = timing.node.role is Role.COMPUTE
    if firings[computes].any():
        firings[~computes] = 0
    return int(np.argmax(firings))


def snapshot(machine: ArrayMachine) -> Snapshot:
    """The state of a machine between two cycles."""
    inside, after = machine.ahead()
    position = machine.records[:, POSITION:].copy()
    return Snapshot(
        cycle=machine.cycle,
        position=position,
        used=machine.run_lengths(position) - inside,
        ahead=inside + after,
        inside=inside,
        stalls=machine.stalls().copy(),
        last_store=int(machine.clock[CLOCK_WORD["last_store"]]),
        state=machine.state(),
    )


def repetitions(machine: ArrayMachine, earlier: Snapshot, now: Snapshot) -> int:
    """How often what happened between two snapshots of equal state is sure to happen again."""
    steps = now.position - earlier.position
    fired = earlier.ahead - now.ahead
    moved = fired > 0
    axes_changed = (steps != 0).sum(1)
    in_run = moved & (axes_changed == 0)
    along = moved & (axes_changed == 1) & (now.used == earlier.used)
    if (moved & ~in_run & ~along).any():
        return 0
    most = _FOREVER
    if in_run.any():
        most = min(most, int(((now.inside[in_run] - 1) // fired[in_run]).min()))
    if along.any():
        most = min(most, int(((now.ahead[along] - 1) // fired[along]).min()))
    for order, axis, start, step, reached in _shifts(machine, earlier, now, along):
        classes = machine.plan.walks[order].axes[axis]
        most = min(most, _alike(classes, start, step, reached))
        if most < 1:
            return 0
    return most


def _shifts(
    machine: ArrayMachine, earlier: Snapshot, now: Snapshot, along: Array
) -> set[tuple[int, ...]]:
    """Of the PEs that moved along an axis: walk, axis, start, step, and the iteration reached."""
    pes = np.flatnonzero(along)
    steps = (now.position - earlier.position)[pes]
    axes = (steps != 0).argmax(1)
    in_innermost = np.where(axes == machine.innermost[pes], now.used[pes] // machine.repeat[pes], 0)
    columns = (
        machine.program.control.order_of[pes],
        axes,
        earlier.position[pes, axes],
        steps[np.arange(len(pes)), axes],
        now.position[pes, axes] + in_innermost,
    )
    return set(zip(*(column.tolist() for column in columns), strict=True))


def _alike(classes: Array, start: int, step: int, reached: int) -> int:
    """How many further shifts by ``step`` meet the classes that were met from ``start`` on."""
    if step < 0:
        return 0
    equal = classes[start:-step] == classes[start + step :]
    different = np.flatnonzero(~equal)
    end = start + (int(different[0]) if different.size else len(equal))
    return (end - 1 - reached) // step + 1 if end > reached else 0


def repeat(machine: ArrayMachine, earlier: Snapshot, now: Snapshot, times: int) -> None:
    """Let what happened between two snapshots happen so often again."""
    period = now.cycle - earlier.cycle
    fired = earlier.ahead - now.ahead
    moved = fired > 0
    position = now.position + times * (now.position - earlier.position)
    in_run = moved & (position == now.position).all(1)
    used = np.where(in_run, now.used + times * fired, now.used)
    ahead = now.ahead - times * fired
    inside = np.minimum(machine.run_lengths(position) - used, ahead)
    machine.set_positions(position, np.where(moved, inside, now.inside), ahead)
    machine.add_stalls(times * (now.stalls - earlier.stalls))
    machine.last[moved] += times * period
    if now.last_store > earlier.last_store:
        machine.clock[CLOCK_WORD["last_store"]] += times * period
    machine.clock[CLOCK_WORD["base"]] += times * period
