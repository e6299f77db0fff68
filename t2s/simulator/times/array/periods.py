"""Exact fast-forward for the array engine: a recurring state has a known future.

The control of a PE is a walk through a box of iterations, and a firing depends only on the classes
of its iterations.  Two *snapshots* of a run are alike if all counters, notes, credits and queues
are equal and every PE is at the same place of its walk, except for a shift by a number of
iterations of one axis (or of firings inside one run).  Then the cycles between them repeat exactly
as long as the iterations ahead of every PE have the same classes as those one shift earlier.  That
many periods are skipped: positions and stall totals advance by a multiple of their change in one
period, and nothing else changes.

Nested loops repeat at every level.  Snapshots are taken whenever a *watched* PE enters an
iteration of one of its axes: a period of an inner axis is skipped until its end, which makes the
periods of the next axis short enough to be found in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import prod
from time import monotonic

import numpy as np

from t2s.core.ops import Array
from t2s.graph.nodes import Role
from t2s.simulator.limits import Limits
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.report.counters import Counts, Ending, Tally
from t2s.simulator.times.array.emit import CLOCK_WORD, COUNTER_WORD, Stop
from t2s.simulator.times.array.plan import POSITION
from t2s.simulator.times.array.run import ArrayMachine

_SHORTEST = 64
"""Firings of the watched PE between snapshots, at least."""

_EAGER = 16
"""Looks in the first stretch of a level; the next one is twice as long."""

_SHARE = 8
"""Ratio of simulation time to the cost of looks between two stretches."""

_MOST_ANCHORS = 32
_ANCHOR_BYTES = 1 << 26
"""The snapshots that a level keeps, and their total size."""

_LONG = 16
"""Periods of more pauses than this are skipped in parts, too."""

_BETWEEN_CALLS = 0.1
"""Seconds between two calls of the observer."""

_FOREVER = 1 << 62


def _pause(pes: int) -> int:
    """Cycles between stretches of looks, per look and number of PEs.

    The costs of a cycle and of a look are measured nanoseconds; they only affect the speed.
    """
    cycle, look = 50 + pes / 3, 25_000 + 7 * pes
    return int(_SHARE * look / cycle)


_FIRST_COMPARED = 4096
"""Iterations that are compared at once at first."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A run at the end of a cycle.

    ``position`` is the iteration of each axis at which each PE's run starts, ``used`` the firings
    made in the run, ``ahead`` those left in the walk, ``inside`` those left in the run.
    """

    cycle: int
    position: Array
    used: Counts
    ahead: Counts
    inside: Counts
    stalls: Counts
    last_store: int
    state: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checkpoint:
    """The whole state at the end of a cycle."""

    cycle: int
    arena: Array
    last: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Anchor:
    """The state at look number ``look``, to compare with later ones and to resume from.

    The watched PE fires in the cycle of a look, so ``whole`` is of that cycle.  The first anchors
    of a level have neither a mark nor the whole state: most periods are found before these pay.
    """

    look: int
    mark: int | None
    seen: Snapshot
    whole: _Checkpoint | None


@dataclass(slots=True)
class _Level:
    """The history of looks at one level of the watched PE.

    Looks leave *anchors*: at first all do, and whenever there are too many anchors, every other
    one is dropped and looks leave one half as often.  So a period is found soon after it has passed
    once, however long it is.  A *mark* saves snapshots: it is a hash of the state
    (``machine.mark``).  A mark that recurs before the next anchor is due makes an extra anchor,
    because the period is short.  Looks come in stretches, with pauses between them if they are
    expensive.
    """

    pause: int
    most: int
    anchors: list[_Anchor] = field(default_factory=list)
    extra: _Anchor | None = None
    recent: set[int | None] = field(default_factory=set)
    spacing: int = 1
    looks: int = 0
    stretch: int = _EAGER
    left: int = _EAGER
    began: int = 0
    asleep_until: int = 0

    def forget(self) -> None:
        """Start again, because an outer axis advanced."""
        self.anchors.clear()
        self.recent.clear()
        self.extra = None
        self.spacing, self.looks = 1, 0
        self.stretch = self.left = _EAGER
        self.asleep_until = 0

    def alike(self, mark: int | None) -> list[Snapshot]:
        """The snapshots of anchors of a mark, the latest first."""
        anchors = self.anchors if self.extra is None else [*self.anchors, self.extra]
        matches = [anchor for anchor in anchors if anchor.mark is None or anchor.mark == mark]
        return [anchor.seen for anchor in sorted(matches, key=lambda anchor: -anchor.look)]

    def look(self, mark: int | None, take: Callable[[int], _Anchor], cycle: int) -> None:
        """Record a look that matches none before; ``take`` makes it an anchor."""
        if self.looks % self.spacing == 0:
            self.anchors.append(take(self.looks))
            self.recent.clear()
            if len(self.anchors) > self.most:
                self.spacing *= 2
                remaining = [anchor for anchor in self.anchors if anchor.look % self.spacing == 0]
                self.anchors = [candidate for candidate in remaining if candidate.mark is not None]
        elif mark in self.recent and (
            self.extra is None or self.extra.look <= self.looks - self.spacing
        ):
            self.extra = take(self.looks)
        self.recent.add(mark)
        if self.left == self.stretch:
            self.began = cycle
        self.looks += 1
        self.left -= 1
        if self.left == 0:
            self.asleep_until = self.began + self.stretch * self.pause
            self.stretch *= 2
            self.left = self.stretch


@dataclass(slots=True)
class FastForward:
    """Advances a machine and skips repetitions; ``skipped`` counts the skipped cycles.

    ``on_skip`` replaces a skip: it is called with the length of a period, their number, and the
    function that skips them, which it has to call once.
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
        pause = _pause(program.pe_count)
        most = min(_MOST_ANCHORS, max(_EAGER + 2, _ANCHOR_BYTES // self.machine.layout.state_bytes))
        self._levels = [_Level(pause, most) for _ in levels]
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

        ``on_call`` is called regularly, at the latest after ``calls_of`` simulated cycles if these
        take a tenth of a second.
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
        """Go back to a saved state at or before ``cycle``, not later than the last firing."""
        for checkpoint in (self._newer, self._older):
            if checkpoint is not None and checkpoint.cycle <= cycle:
                self.machine.arena[: len(checkpoint.arena)] = checkpoint.arena
                self.machine.last[:] = checkpoint.last
                return

    def _keep(self) -> _Checkpoint:
        """Save the state if there was a firing since the last saved one; return that one."""
        machine = self.machine
        if self._newer is None or machine.last.max(initial=0) > self._newer.cycle:
            self._older = self._newer
            self._newer = _Checkpoint(
                cycle=machine.cycle,
                arena=machine.arena[: machine.layout.state_bytes].copy(),
                last=machine.last.copy(),
            )
        return self._newer

    def _look(self, at: int, until: int) -> None:
        """Compare with earlier snapshots of the level; skip if one is alike."""
        for inner in self._levels[at + 1 :]:
            inner.forget()
        machine, level = self.machine, self._levels[at]
        mark = machine.mark() if level.looks >= _EAGER else None
        matches = level.alike(mark)
        now = snapshot(machine) if matches else None
        for earlier in matches:
            if now is not None and self._skip(level, earlier, now, until):
                level.forget()
                return

        def take(look: int) -> _Anchor:
            seen = now or snapshot(machine)
            whole = None if mark is None else self._keep()
            return _Anchor(look=look, mark=mark, seen=seen, whole=whole)

        level.look(mark, take, machine.cycle)

    def _skip(self, level: _Level, earlier: Snapshot, now: Snapshot, until: int) -> bool:
        """Skip as many periods as are certain to follow; return whether there was any."""
        period = now.cycle - earlier.cycle
        if period <= 0 or now.state != earlier.state:
            return False
        most = min(repetitions(self.machine, earlier, now), (until - now.cycle) // period)
        if most < 1:
            return False
        if self.on_skip is None:
            repeat(self.machine, earlier, now, most)
            if period > _LONG * level.pause:
                self._skip_part(level, earlier, now, until)
        else:
            self.on_skip(period, most, lambda: repeat(self.machine, earlier, now, most))
        self.skipped += most * period
        return True

    def _skip_part(self, level: _Level, earlier: Snapshot, now: Snapshot, until: int) -> None:
        """Skip from the start of a period to the last of its anchors that is certain to recur."""
        inside = [
            anchor
            for anchor in reversed(level.anchors)
            if earlier.cycle < anchor.seen.cycle < now.cycle
        ]
        if not inside:
            return
        machine = self.machine
        after = snapshot(machine)
        for anchor in inside:
            length = anchor.seen.cycle - earlier.cycle
            if anchor.whole is None or after.cycle + length > until:
                continue
            shifted = _shifted(machine, earlier, now, after, anchor.seen)
            if shifted is not None:
                fired = earlier.ahead > anchor.seen.ahead
                _go_to(machine, shifted, anchor.whole, fired)
                self.skipped += length
                return


def _watched(machine: ArrayMachine) -> int:
    """The PE whose iterations trigger looks: a computing one with the most firings."""
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
    """How often the cycles between two snapshots of equal state are certain to repeat."""
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
    for order, axis, start, step, reached in _shifts(machine, earlier, now, along, now):
        if step < 0:
            return 0
        end = _alike_until(machine, order, axis, start, step)
        most = min(most, (end - 1 - reached) // step + 1 if end > reached else 0)
        if most < 1:
            return 0
    return most


def _shifts(
    machine: ArrayMachine, earlier: Snapshot, now: Snapshot, along: Array, last: Snapshot
) -> set[tuple[int, ...]]:
    """For the PEs that moved along an axis: walk, axis, start, step, and iteration reached.

    The iteration reached is the one at ``last``.
    """
    pes = np.flatnonzero(along)
    steps = (now.position - earlier.position)[pes]
    axes = (steps != 0).argmax(1)
    innermost = axes == machine.innermost[pes]
    in_innermost = np.where(innermost, last.used[pes] // machine.repeat[pes], 0)
    columns = (
        machine.program.control.order_of[pes],
        axes,
        earlier.position[pes, axes],
        steps[np.arange(len(pes)), axes],
        last.position[pes, axes] + in_innermost,
    )
    return set(zip(*(column.tolist() for column in columns), strict=True))


def _alike_until(machine: ArrayMachine, order: int, axis: int, start: int, step: int) -> int:
    """The first iteration from ``start`` on whose class changes ``step`` later.

    Axes may have millions of iterations, and looks ask again and again for the same step, so that
    what was found is kept, and iterations are compared only as far as needed.
    """
    key = order, axis, step
    begin, end = machine.alike.get(key, (0, -1))
    if begin <= start <= end:
        return end
    classes = machine.plan.walks[order].axes[axis]
    end, last, length = start, len(classes) - step, _FIRST_COMPARED
    while end < last:
        until = min(end + length, last)
        different = np.flatnonzero(classes[end:until] != classes[end + step : until + step])
        if different.size:
            end += int(different[0])
            break
        end, length = until, 2 * length
    machine.alike[key] = start, end
    return end


def repeat(machine: ArrayMachine, earlier: Snapshot, now: Snapshot, times: int) -> None:
    """Repeat the cycles between two snapshots a number of times."""
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


def _shifted(
    machine: ArrayMachine, earlier: Snapshot, now: Snapshot, after: Snapshot, part: Snapshot
) -> Snapshot | None:
    """``part``, a snapshot between two snapshots of equal state, shifted to recur after ``after``.

    ``after`` is a number of periods later than ``now``.  ``None`` if it is not certain to recur.
    """
    moved = earlier.ahead > now.ahead
    in_run = moved & (now.position == earlier.position).all(1)
    later = after.cycle - earlier.cycle
    position = part.position + (after.position - earlier.position)
    used = part.used + np.where(in_run, after.used - earlier.used, 0)
    ahead = part.ahead + (after.ahead - earlier.ahead)
    inside = np.minimum(machine.run_lengths(position) - used, ahead)
    if (ahead[moved] < 1).any() or (inside[in_run] < 1).any():
        return None
    stored = part.last_store > earlier.last_store
    shifted = Snapshot(
        cycle=part.cycle + later,
        position=position,
        used=used,
        ahead=ahead,
        inside=np.where(moved, inside, part.inside),
        stalls=part.stalls + (after.stalls - earlier.stalls),
        last_store=part.last_store + later if stored else after.last_store,
        state=part.state,
    )
    for order, axis, start, step, reached in _shifts(
        machine, earlier, now, moved & ~in_run, shifted
    ):
        if reached >= _alike_until(machine, order, axis, start, step) + step:
            return None
    return shifted


def _go_to(machine: ArrayMachine, shifted: Snapshot, seen: _Checkpoint, fired: Array) -> None:
    """Jump to a snapshot whose state was ``seen`` earlier; ``fired`` marks PEs that fired."""
    later = shifted.cycle - seen.cycle
    machine.arena[: len(seen.arena)] = seen.arena
    machine.set_positions(shifted.position, shifted.inside, shifted.ahead)
    machine.add_stalls(shifted.stalls - machine.stalls())
    machine.last[fired] = seen.last[fired] + later
    machine.clock[CLOCK_WORD["last_store"]] = shifted.last_store
    machine.clock[CLOCK_WORD["base"]] += later


# Times by the array engine: a whole run, from the first cycle to its ending.

_CALL = 10_000_000
"""PE-cycles between two looks at the keyboard and the observer."""

_NO_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The counters of a run, and how many cycles were skipped because they repeat."""

    tally: Tally
    skipped: int


def array_times(
    program: SimProgram, limits: Limits, on_progress: Callable[[ArrayMachine], None]
) -> Times:
    """Run a program for its times.  ``on_progress`` is called a few times per second.

    Ctrl-C ends the run and is reported in the tally.
    """
    machine = ArrayMachine(program)
    forward = FastForward(machine)
    last = limits.max_cycles if limits.max_cycles is not None else _NO_LIMIT
    stride = max(1000, _CALL // max(1, program.pe_count))
    stop = Stop.FINISHED if machine.unfinished == 0 else Stop.UNTIL
    # a run that is given up when it is certain to be late may skip to its end before
    end = _NO_LIMIT if limits.give_up else last
    try:
        while stop is Stop.UNTIL and machine.cycle < end:
            until = machine.cycle + stride if limits.give_up else end
            stop = forward.advance(until, calls_of=stride, on_call=on_progress, skip_until=end)
            if limits.give_up and stop is Stop.UNTIL:
                stepped = (machine.cycle - forward.skipped) * program.pe_count
                if machine.earliest_end() > last or stepped > (limits.most_steps or _NO_LIMIT):
                    break
    except KeyboardInterrupt:
        cycles = max(machine.cycle, machine.end())
        return Times(tally=machine.tally(Ending.INTERRUPTED, cycles), skipped=forward.skipped)
    if stop is Stop.FINISHED:
        tally = machine.tally(Ending.FINISHED, machine.end())
    elif stop is Stop.STUCK:
        tally = _deadlock(machine, forward)
    else:
        tally = machine.tally(Ending.LIMIT, machine.cycle if limits.give_up else last)
        if limits.give_up:
            tally = replace(tally, at_least=machine.earliest_end())
        if len(tally.stuck) == machine.unfinished:
            tally = _deadlock(machine, forward)
    return Times(tally=tally, skipped=forward.skipped)


def _deadlock(machine: ArrayMachine, forward: FastForward) -> Tally:
    """Go back to the last cycle with any activity, after which no stalls are counted."""
    end = machine.end()
    forward.back_to(end)
    while machine.cycle < end:
        machine.advance(end)
        machine.clock[CLOCK_WORD["progress"]] = machine.counters[COUNTER_WORD["tick"]]
    return machine.tally(Ending.DEADLOCK, end)
