"""A DRAM and its controller, written apart from ``t2s.simulator.memory.dram``, to check it.

Every bank, bank group, rank and channel is an object, and the commands can be recorded.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from t2s.simulator.memory.dram import ACTIVATIONS, NEVER, Request
from t2s.simulator.memory.report import ChannelCounts
from t2s.simulator.memory.spec import Dram, DramPlace

# Commands that go ahead of others: what a controller with a read queue knows of them.
#
# The times of a command do not change once they are found, so a younger one comes between those
# that are known, at the first clock that keeps its distance from each of them.  Only the last ones,
# in the order of time, are known; a younger command comes behind those that are forgotten.


def first_between(clock: int, others: Iterable[tuple[int, int]]) -> int:
    """The first time from ``clock`` on that is as far from each other one as that one asks for.

    ``others`` are times, in order, and distances.
    """
    for other, apart in others:
        if other - apart < clock < other + apart:
            clock = other + apart
    return clock


@dataclass(slots=True)
class KnownActivations:
    """The last activations of a rank, in the order of time, with their bank groups."""

    dram: Dram
    known: list[tuple[int, int]] = field(default_factory=list)
    floor: int = NEVER

    def slot(self, clock: int, group: int) -> int:
        """The first clock from ``clock`` on in which a bank of the group may open a row."""
        t = self.dram.timing
        clock = max(clock, self.floor)
        apart = [(at, t.tRRD_L if near == group else t.tRRD_S) for at, near in self.known]
        while True:
            clock = first_between(clock, apart)
            times = sorted([*(at for at, _ in self.known), clock])
            if all(b - a >= t.tFAW for a, b in zip(times, times[4:], strict=False)):
                return clock
            clock += 1

    def note(self, clock: int, group: int) -> None:
        """An activation is done at a clock."""
        t = self.dram.timing
        insort(self.known, (clock, group))
        if len(self.known) > ACTIVATIONS:
            oldest, _ = self.known.pop(0)
            self.floor = max(self.floor, oldest + max(t.tFAW, t.tRRD_L, t.tRRD_S))


@dataclass(frozen=True, slots=True, order=True)
class _Read:
    column: int
    rank: int
    group: int


@dataclass(slots=True)
class ReadQueue:
    """The last reads of a channel, in the order of time; none of them is before the last write."""

    dram: Dram
    known: list[_Read] = field(default_factory=list)
    floor: int = NEVER
    written: int = NEVER

    def slot(self, clock: int, place: DramPlace) -> int:
        """The first clock from ``clock`` on for a read."""
        t = self.dram.timing
        clock = max(clock, self.floor, self.written + t.turnaround - t.CL)
        return first_between(
            clock, ((read.column, self._apart(read, place)) for read in self.known)
        )

    def note(self, column: int, place: DramPlace) -> None:
        """A read is done at a clock."""
        t = self.dram.timing
        insort(self.known, _Read(column, place.rank, place.group))
        if len(self.known) > self.dram.read_queue:
            far = max(self.dram.burst_clocks + t.turnaround, t.tCCD_L, t.tCCD_S)
            self.floor = max(self.floor, self.known.pop(0).column + far)

    def write(self, column: int, end: int) -> None:
        """A write is done at a clock, behind all reads; later reads come behind it."""
        self.known.clear()
        self.floor, self.written = column + 1, end

    def _apart(self, read: _Read, place: DramPlace) -> int:
        t = self.dram.timing
        if read.rank != place.rank:
            return self.dram.burst_clocks + t.turnaround
        near = read.group == place.group
        return max(self.dram.burst_clocks, t.tCCD_L if near else t.tCCD_S)


class CommandKind(Enum):
    """Commands."""

    ACTIVATE = "ACT"
    PRECHARGE = "PRE"
    READ = "RD"
    WRITE = "WR"
    REFRESH = "REF"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command and its clock; a refresh has a rank only, and precharges what is open first."""

    kind: CommandKind
    clock: int
    channel: int
    rank: int
    group: int = -1
    bank: int = -1
    row: int = -1


@dataclass(slots=True)
class _Bank:
    row: int | None = None
    activate: int = NEVER
    precharge: int = NEVER
    column: int = NEVER


@dataclass(slots=True)
class _Shared:
    """Earliest times for all banks of a group, or of a rank."""

    activate: int = NEVER
    read: int = NEVER
    write: int = NEVER


@dataclass(slots=True)
class _Rank:
    banks: dict[tuple[int, int], _Bank]
    groups: list[_Shared]
    due: int
    known: KnownActivations
    all: _Shared = field(default_factory=_Shared)
    activations: list[int] = field(default_factory=lambda: [NEVER] * 4)


@dataclass(slots=True)
class _Channel:
    ranks: list[_Rank]
    reads: ReadQueue
    column: int = NEVER
    bus: int = NEVER
    user: tuple[int, bool] | None = None
    queued: deque[int] = field(default_factory=deque)
    freed: deque[int] = field(default_factory=deque)
    written: int = 0
    counts: ChannelCounts = field(default_factory=ChannelCounts)


class DramModel:
    """A DRAM in use.  ``trace`` collects the commands if it is a list."""

    def __init__(self, dram: Dram, trace: list[Command] | None = None) -> None:
        self.dram = dram
        self.trace = trace
        self.open = OpenBursts(dram.controllers, dram.open_bursts)
        due = dram.timing.tREFI or 1 << 62
        self.channels = [
            _Channel(
                [
                    _Rank(
                        {(g, b): _Bank() for g in range(dram.groups) for b in range(dram.banks)},
                        [_Shared() for _ in range(dram.groups)],
                        due,
                        KnownActivations(dram),
                    )
                    for _ in range(dram.ranks)
                ],
                ReadQueue(dram),
            )
            for _ in range(dram.channels)
        ]

    def access(self, clock: int, burst: int, request: Request) -> int:
        """The clock in which a burst is done, if it is asked for at ``clock``: its data have moved.

        A write is done when it is in the write queue, where there is one.  Requests have to come in
        the order of their clocks.
        """
        channel = self.channels[self.dram.place(burst).channel]
        found = self.open.find(clock, burst, request)
        if request is Request.WRITE:
            return self._write(clock, burst)
        if found is not None:
            channel.counts.joined += 1
            found.changed |= request is Request.UPDATE
            return max(clock, found.end)
        end = self._read(channel, clock, burst)
        changed = request is Request.UPDATE
        if self.dram.controllers:
            replaced = self.open.open(burst, end, changed)
            if replaced is not None:
                self._write_back(clock, replaced)
        elif changed:
            end = max(end, self._write(clock, burst))
        return end

    def _read(self, channel: _Channel, clock: int, burst: int) -> int:
        """Read a burst: what waits to be written, if it can."""
        if burst in channel.queued:
            channel.counts.forwarded += 1
            return clock
        return self._access(clock, burst, False)

    def _write(self, clock: int, burst: int) -> int:
        """Write a burst, or let it wait for that."""
        if self.dram.write_queue:
            return self._queue(self.channels[self.dram.place(burst).channel], clock, burst)
        return self._access(clock, burst, True)

    def _write_back(self, clock: int, burst: int) -> None:
        """Write a burst for which nobody waits."""
        end = self._write(clock, burst)
        channel = self.channels[self.dram.place(burst).channel]
        channel.written = max(channel.written, end)

    def flush(self, clock: int) -> int:
        """Write what is changed, and what waits in the queues.

        The clock in which the last write of all that nobody waits for has moved, 0 without any.
        """
        for burst in self.open.close():
            self._write_back(clock, burst)
        for channel in self.channels:
            self._drain(channel, clock, len(channel.queued))
        return max(channel.written for channel in self.channels)

    def _queue(self, channel: _Channel, clock: int, burst: int) -> int:
        """Put a burst into the queue; when it has a place."""
        waiting = len(channel.queued) + len(channel.freed)
        place = clock if waiting < self.dram.write_queue else channel.freed.popleft()
        accepted = max(clock, place)
        channel.queued.append(burst)
        if len(channel.queued) == self.dram.write_queue:
            self._drain(channel, accepted, self.dram.write_batch)
        return accepted

    def _drain(self, channel: _Channel, clock: int, count: int) -> None:
        """Write the oldest bursts of a queue."""
        for _ in range(count):
            end = self._access(clock, channel.queued.popleft(), True)
            channel.freed.append(end)
            channel.written = max(channel.written, end)

    def _access(self, clock: int, burst: int, write: bool) -> int:
        """The clock in which the last data of a burst have moved."""
        place = self.dram.place(burst)
        channel = self.channels[place.channel]
        rank = channel.ranks[place.rank]
        while True:
            precharge, activate, column = self._plan(channel, place, clock, write)
            if column < rank.due:
                break
            self._refresh(channel, place)
        bank = rank.banks[place.group, place.bank]
        self._count(channel.counts, precharge, activate, write)
        if precharge is not None:
            self._record(CommandKind.PRECHARGE, precharge, place)
        if activate is not None:
            self._activate(rank, bank, place, activate)
        end = self._move(channel, bank, place, column, write)
        if write:
            channel.reads.write(column, end)
        elif self.dram.read_queue:
            channel.reads.note(column, place)
        return end

    def _plan(
        self, channel: _Channel, place: DramPlace, clock: int, write: bool
    ) -> tuple[int | None, int | None, int]:
        """The clocks of precharging and activating, if need be, and of the read or write."""
        t = self.dram.timing
        rank = channel.ranks[place.rank]
        bank, group = rank.banks[place.group, place.bank], rank.groups[place.group]
        precharge: int | None = None
        activate: int | None = None
        column = max(clock, bank.column)
        if bank.row != place.row:
            activate = max(clock, bank.activate)
            if bank.row is not None:
                precharge = max(clock, bank.precharge)
                activate = max(activate, precharge + t.tRP)
            activate = self._activation(rank, place, activate)
            column = activate + t.tRCD
        for shared in (group, rank.all):
            column = max(column, shared.write if write else shared.read)
        if self.dram.read_queue and not write:
            return precharge, activate, channel.reads.slot(column, place)
        delay = t.CWL if write else t.CL
        gap = t.turnaround if channel.user not in (None, (place.rank, write)) else 0
        return precharge, activate, max(column, channel.column, channel.bus + gap - delay)

    def _activation(self, rank: _Rank, place: DramPlace, clock: int) -> int:
        """The first clock from ``clock`` on in which the rank may open a row."""
        if self.dram.read_queue:
            return rank.known.slot(clock, place.group)
        clock = max(clock, rank.groups[place.group].activate, rank.all.activate)
        return max(clock, rank.activations[0] + self.dram.timing.tFAW)

    def _refresh(self, channel: _Channel, place: DramPlace) -> None:
        t = self.dram.timing
        rank = channel.ranks[place.rank]
        closed = [bank for bank in rank.banks.values() if bank.row is None]
        opened = [bank for bank in rank.banks.values() if bank.row is not None]
        start = rank.due
        if opened:
            start = max(start, *(bank.precharge for bank in opened)) + t.tRP
        start = max(start, *(bank.activate for bank in closed)) if closed else start
        for bank in rank.banks.values():
            bank.row, bank.activate = None, start + t.tRFC
        rank.due += t.tREFI
        channel.counts.refreshes += 1
        if self.trace is not None:
            where = {"channel": place.channel, "rank": place.rank}
            if opened:
                self.trace.append(Command(kind=CommandKind.PRECHARGE, clock=start - t.tRP, **where))
            self.trace.append(Command(kind=CommandKind.REFRESH, clock=start, **where))

    def _activate(self, rank: _Rank, bank: _Bank, place: DramPlace, clock: int) -> None:
        t = self.dram.timing
        bank.row = place.row
        bank.column = clock + t.tRCD
        bank.precharge = clock + t.tRAS
        bank.activate = clock + t.tRC
        rank.groups[place.group].activate = clock + t.tRRD_L
        rank.all.activate = clock + t.tRRD_S
        rank.activations = [*rank.activations[1:], clock]
        if self.dram.read_queue:
            rank.known.note(clock, place.group)
        self._record(CommandKind.ACTIVATE, clock, place)

    def _move(
        self, channel: _Channel, bank: _Bank, place: DramPlace, clock: int, write: bool
    ) -> int:
        """Read or write at a clock; return the end of the data."""
        t = self.dram.timing
        rank = channel.ranks[place.rank]
        end = clock + (t.CWL if write else t.CL) + self.dram.burst_clocks
        for shared, same, other in (
            (rank.groups[place.group], t.tCCD_L, t.tWTR_L),
            (rank.all, t.tCCD_S, t.tWTR_S),
        ):
            shared.write = max(shared.write, clock + same)
            if write:
                shared.read = end + other
            elif not self.dram.read_queue:
                shared.read = clock + same
        bank.precharge = max(bank.precharge, end + t.tWR if write else clock + t.tRTP)
        channel.column, channel.bus = max(channel.column, clock + 1), max(channel.bus, end)
        channel.user = (place.rank, write)
        self._record(CommandKind.WRITE if write else CommandKind.READ, clock, place)
        return end

    @staticmethod
    def _count(
        counts: ChannelCounts, precharge: int | None, activate: int | None, write: bool
    ) -> None:
        counts.writes += write
        counts.reads += not write
        if activate is None:
            counts.hits += 1
        elif precharge is None:
            counts.misses += 1
        else:
            counts.conflicts += 1

    def _record(self, kind: CommandKind, clock: int, place: DramPlace) -> None:
        if self.trace is not None:
            self.trace.append(
                Command(
                    kind=kind,
                    clock=clock,
                    channel=place.channel,
                    rank=place.rank,
                    group=place.group,
                    bank=place.bank,
                    row=place.row,
                )
            )


# Bursts that controllers in front of a DRAM have read, and of which parts may be stored since.


@dataclass(slots=True)
class OpenBurst:
    """A burst, when its data have moved, and whether it has to be written back."""

    changed: bool = False
    end: int = 0
    burst: int = -1


@dataclass(slots=True)
class OpenBursts:
    """What ``controllers`` with ``places`` each know: burst ``b`` is that of ``b % controllers``.

    A burst that is read takes the place of the one that is not changed, or else of the one that is,
    whose data have moved first.
    """

    controllers: int
    places: int
    tables: list[list[OpenBurst]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tables = [[OpenBurst() for _ in range(self.places)] for _ in range(self.controllers)]

    def find(self, clock: int, burst: int, request: Request) -> OpenBurst | None:
        """The burst, if it is known and may be used for a request; else it is forgotten.

        A ``READ`` may use one whose data have not moved yet, or that is changed.
        """
        found = self._known(burst)
        if found is None:
            return None
        late = request is Request.READ and not found.changed and clock >= found.end
        if request is Request.WRITE or late:
            found.changed, found.end, found.burst = False, 0, -1
            return None
        return found

    def _known(self, burst: int) -> OpenBurst | None:
        known = self.tables[burst % self.controllers] if self.controllers else []
        return next((one for one in known if one.burst == burst), None)

    def open(self, burst: int, end: int, changed: bool) -> int | None:
        """A burst is read; the one that has to be written back for it, if there is one.

        What is only read does not take the place of what is changed.
        """
        place = min(self.tables[burst % self.controllers], key=lambda one: (one.changed, one.end))
        if place.changed and not changed:
            return None
        before = place.burst if place.changed else None
        place.changed, place.end, place.burst = changed, end, burst
        return before

    def close(self) -> list[int]:
        """The bursts that have to be written back at the end of a run."""
        return [one.burst for known in self.tables for one in known if one.changed]
