"""Descriptions of DRAMs (organization, timing, address mapping), and memories by name.

All times are in cycles of the memory's command clock (data moves on both edges of it, so a burst of
8 beats takes 4 cycles); the names are those of the JEDEC standards (JESD79-4 for DDR4, JESD235 for
HBM).  Every description is a frozen value: ``dataclasses.replace`` makes a variant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from fractions import Fraction
from math import prod
from types import MappingProxyType
from typing import TypeGuard

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.validate import as_int

MOST_ROW_BITS = 40
"""Bits of the number of a row, at most."""

MOST_CLOCKS = 1 << 20
"""The longest time between two commands, and the terms of the ratio of two clocks, are below."""

MOST_HERTZ = 10**12
"""The fastest command clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The least time between commands, in clocks; ``S`` between bank groups, ``L`` within one.

    Attributes
    ----------
    CL, CWL: from a read or write command to the first of its data.
    tRCD: from activating a row to reading or writing it.
    tRP: from precharging a bank (closing its row) to activating another row.
    tRAS: from activating a row to precharging it; tRAS + tRP is tRC.
    tRRD_S, tRRD_L: from one activation to the next, in one rank.
    tFAW: a rank activates at most four rows in this time.
    tCCD_S, tCCD_L: from one read or write to the next of the same kind, in one rank.
    tWR: from the end of written data to precharging the bank.
    tWTR_S, tWTR_L: from the end of written data to a read of the same rank.
    tRTP: from a read to precharging the bank.
    turnaround: clocks in which the data bus is idle, between ranks and between read and written
        data.
    tRFC, tREFI: a refresh, and the time between the refreshes of a rank; a tREFI of 0 is none.
    """

    CL: int
    CWL: int
    tRCD: int
    tRP: int
    tRAS: int
    tRRD_S: int
    tRRD_L: int
    tFAW: int
    tCCD_S: int
    tCCD_L: int
    tWR: int
    tWTR_S: int
    tWTR_L: int
    tRTP: int
    turnaround: int
    tRFC: int
    tREFI: int

    @property
    def tRC(self) -> int:
        """From one activation of a bank to the next."""
        return self.tRAS + self.tRP


class Coordinate(Enum):
    """A coordinate of a burst."""

    CHANNEL = "channel"
    RANK = "rank"
    GROUP = "group"
    BANK = "bank"
    ROW = "row"
    COLUMN = "column"


AddressMapping = tuple[tuple[Coordinate, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DramPlace:
    """The coordinates of a burst; ``bank`` counts within its group."""

    channel: int
    rank: int
    group: int
    bank: int
    row: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """How load and store units use a memory.

    Attributes
    ----------
    line_bursts: bursts of a line.  Units read and write whole lines; for each load of its body a
        unit keeps the last line, so that further elements of it cost nothing. load_lines: lines
        that a unit requests at once; it knows its addresses in advance. store_lines: lines that a
        unit collects before it writes them at once; a store to the line of
            the previous one joins that line.
        outstanding: requests (lines) of a unit that may be in flight.
        path_cycles: round trip between unit and memory, in cycles of the device's clock.
    """

    line_bursts: int = 1
    load_lines: int = 32
    store_lines: int = 32
    outstanding: int = 128
    path_cycles: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Dram:
    """A dynamic RAM with its controller.

    Attributes
    ----------
    name, description: for reports.
    clock_hz: command clocks per second.
    channels, ranks, groups, banks, rows, columns: channels of the memory, ranks of a channel,
        groups of a rank, banks of a group, rows of a bank, bursts of a row; powers of two.
    burst_bytes, burst_clocks: the size of a read or write, and its time on the data bus.
    mapping: the coordinates that the bits of a burst number stand for, lowest bits first.
    rotate_banks: the number of the bank group is rotated by the column and the row, that of the
        bank by row // 4 + row // 16 + ..., so that strided bursts lie in different groups, and
        rows that are any power of two apart in different groups or banks.
    write_queue, write_batch: writes that the controller of a channel holds back, and the number of
        them that it writes when the queue is full; 0 and 0 for no queue.
    read_queue: reads in flight that the controller of a channel may reorder: a younger read
        overtakes those that wait for their row; 0 keeps the order of the requests.
    controllers, open_bursts: controllers in front of the channels, of which ``b % controllers``
        handles burst ``b``, and the bursts that each of them caches: those that it read last,
        which serve further reads, and those that were partially stored, which are written back
        on eviction; 0 and 0 for none.
    timing: see ``Timing``.
    units: see ``Units``.
    """

    name: str
    description: str
    clock_hz: Fraction
    channels: int = 1
    ranks: int = 1
    groups: int
    banks: int
    rows: int
    columns: int
    burst_bytes: int
    burst_clocks: int
    mapping: AddressMapping
    rotate_banks: bool = True
    write_queue: int = 0
    write_batch: int = 0
    read_queue: int = 0
    controllers: int = 0
    open_bursts: int = 0
    timing: Timing = field(repr=False)
    units: Units = field(default=Units(), repr=False)

    def __post_init__(self) -> None:
        self._check_kinds()
        self._check_sizes()
        self._check_mapping()
        self._check_refresh()
        self._check_queue()

    @property
    def line_bytes(self) -> int:
        """Bytes of a line."""
        return self.units.line_bursts * self.burst_bytes

    @property
    def capacity(self) -> int:
        """Bytes of the memory."""
        return self.burst_bytes * prod(extent for _, extent in self._extents())

    @property
    def peak_bytes_per_second(self) -> Fraction:
        """The bandwidth of all data buses."""
        return self.clock_hz * self.burst_bytes * self.channels / self.burst_clocks

    def place(self, burst: int) -> DramPlace:
        """The coordinates of burst number ``burst`` (address / burst_bytes)."""
        coordinates = dict.fromkeys(Coordinate, 0)
        known = dict.fromkeys(Coordinate, 0)
        for coordinate, bits in self.mapping:
            coordinates[coordinate] |= burst % (1 << bits) << known[coordinate]
            known[coordinate] += bits
            burst >>= bits
        if self.rotate_banks:
            row, column = coordinates[Coordinate.ROW], coordinates[Coordinate.COLUMN]
            coordinates[Coordinate.GROUP] += column + column // self.groups + row
            coordinates[Coordinate.GROUP] %= self.groups
            coordinates[Coordinate.BANK] += sum(
                row >> shift for shift in range(2, MOST_ROW_BITS, 2)
            )
            coordinates[Coordinate.BANK] %= self.banks
        return DramPlace(**{coordinate.value: value for coordinate, value in coordinates.items()})

    def _extents(self) -> tuple[tuple[Coordinate, int], ...]:
        return (
            (Coordinate.CHANNEL, self.channels),
            (Coordinate.RANK, self.ranks),
            (Coordinate.GROUP, self.groups),
            (Coordinate.BANK, self.banks),
            (Coordinate.ROW, self.rows),
            (Coordinate.COLUMN, self.columns),
        )

    def _check_kinds(self) -> None:
        """Check the types of all fields; mappings become tuples."""
        for what in ("name", "description"):
            text = getattr(self, what)
            if not isinstance(text, str) or not text.isprintable() or (what == "name" and not text):
                raise _refusal(self.name, what, "text of one line", repr(text))
        if not isinstance(self.rotate_banks, bool):
            raise _refusal(self.name, "rotate_banks", "True or False", repr(self.rotate_banks))
        if not isinstance(self.timing, Timing):
            raise _refusal(self.name, "timing", "a Timing", repr(self.timing))
        if not isinstance(self.units, Units):
            raise _refusal(self.name, "units", "a Units", repr(self.units))
        object.__setattr__(self, "timing", replace(self.timing, **_integers(self.timing)))
        object.__setattr__(self, "units", replace(self.units, **_integers(self.units)))
        for what, number in _integers(self).items():
            object.__setattr__(self, what, number)
        pieces = self.mapping if isinstance(self.mapping, list | tuple) else [None]
        for piece in pieces:
            if not _is_piece(piece):
                expected = f"pairs of a Coordinate and a number of bits, 0 to {MOST_ROW_BITS}"
                raise _refusal(self.name, "mapping", expected, repr(self.mapping))
        object.__setattr__(self, "mapping", tuple((which, bits) for which, bits in pieces))

    def _check_sizes(self) -> None:
        for coordinate, extent in self._extents():
            if not _is_count(extent) or extent & (extent - 1) or extent >> MOST_ROW_BITS:
                name = f"number of {coordinate.value}s"
                raise _refusal(self.name, name, "a power of two", repr(extent))
        clock = self.clock_hz
        if not (isinstance(clock, Fraction) or _is_whole(clock)) or not 1 <= clock <= MOST_HERTZ:
            expected = f"an integer or a Fraction from 1 to {MOST_HERTZ:,}"
            raise _refusal(self.name, "clock_hz", expected, repr(clock))
        for part, least in ((self.timing, 1), (self.units, 1)):
            for item in fields(part):
                low = 0 if item.name in _MAY_BE_ZERO else least
                self._check_clocks(item.name, getattr(part, item.name), low)
        for name in ("burst_bytes", "burst_clocks"):
            self._check_clocks(name, getattr(self, name), 1)

    def _check_clocks(self, name: str, value: object, least: int) -> None:
        if not _is_whole(value) or not least <= value < MOST_CLOCKS:
            expected = f"an integer from {least} to {MOST_CLOCKS - 1}"
            raise _refusal(self.name, name, expected, repr(value))

    def _check_mapping(self) -> None:
        for coordinate, extent in self._extents():
            bits = sum(bits for item, bits in self.mapping if item is coordinate)
            if 1 << bits != extent:
                raise _refusal(
                    self.name,
                    "mapping",
                    f"{extent.bit_length() - 1} bits of {coordinate.value} for {extent} of them",
                    f"{bits} bits",
                )

    def _check_queue(self) -> None:
        queue, batch = self.write_queue, self.write_batch
        if not _is_whole(queue) or not 0 <= queue <= _MOST_QUEUED:
            raise _refusal(
                self.name, "write_queue", f"an integer from 0 to {_MOST_QUEUED}", repr(queue)
            )
        least = 1 if queue else 0
        if not _is_whole(batch) or not least <= batch <= queue:
            expected = f"an integer from {least} to the write_queue, {queue}"
            raise _refusal(self.name, "write_batch", expected, repr(batch))
        for what, least in (("read_queue", 0), ("controllers", 0), ("open_bursts", 1)):
            count, most = getattr(self, what), _MOST_QUEUED
            if what == "open_bursts" and not self.controllers:
                least = most = 0
            if not _is_whole(count) or not least <= count <= most:
                expected = f"an integer from {least} to {most}" if most else "0 without controllers"
                raise _refusal(self.name, what, expected, repr(count))

    def _check_refresh(self) -> None:
        t = self.timing
        least = t.tRFC + t.tRC + t.tRCD + t.CL + t.CWL + t.tWR + 2 * self.burst_clocks
        if 0 < t.tREFI <= least:
            raise _refusal(
                self.name, "tREFI", f"more than {least} clocks, or 0 for no refresh", repr(t.tREFI)
            )


_MOST_QUEUED = 4096
_MAY_BE_ZERO = ("turnaround", "tRFC", "tREFI", "path_cycles", "CWL")


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return _is_whole(value) and value > 0


def _integers(part: Timing | Units | Dram) -> dict[str, int]:
    """Convert integer fields, numpy integers included, to Python integers."""
    integers = {item.name: as_int(getattr(part, item.name)) for item in fields(part)}
    return {name: number for name, number in integers.items() if number is not None}


def _is_piece(piece: object) -> bool:
    """Whether ``piece`` is a pair of a coordinate and a number of bits."""
    match piece:
        case (Coordinate(), int() as bits) if not isinstance(bits, bool):
            return 0 <= bits <= MOST_ROW_BITS
    return False


def _refusal(memory: object, what: str, expected: str, given: str) -> UserError:
    return UserError(
        f"memory {memory!r}: {what} is out of range",
        location=user_location(),
        expected=expected,
        given=given,
    )


def mapping_of(*pieces: tuple[Coordinate, int]) -> AddressMapping:
    """A mapping, lowest bits first, without empty pieces."""
    return tuple((coordinate, bits) for coordinate, bits in pieces if bits)


def bits_of(mapping: Iterable[tuple[Coordinate, int]]) -> int:
    """Number of bits of a burst number."""
    return sum(bits for _, bits in mapping)


# Memories by name.
#
# DDR4-2133: speed bin P (15-15-15) of JESD79-4 with x8 chips of 8 Gbit, one rank of 64 bits; times
# that the standard gives in nanoseconds are rounded up to clocks of 0.9375 ns (tRAS 33, tFAW 21,
# tWR 15, tWTR 2.5 / 7.5, tRTP 7.5, tRRD 3.7 / 5.3, tRFC 350, tREFI 7800).
#
# HBM2E: one stack at 3.2 Gbit/s per pin, 16 pseudo-channels of 64 bits.  JESD235 leaves the times
# of the core to the vendor; these are those that public models of HBM2 use, at the same nanoseconds
# (CL, tRCD, tRP 14, tRAS 34, tRRD 4 / 6, tFAW 16, tWR 16, tWTR 6 / 8, tRTP 5, tRFC 260, tREFI
# 3900).
#
# The two memories of Capstan are those that published results simulate with Ramulator.  HBM2E at
# 1800 GB/s is its description of HBM (32 channels of 128 bits, 4 Gbit each, 1 Gbit/s per pin) with
# a faster clock: the times in clocks stay as they are.  (The public configuration has 1.8 GHz; here
# the clock is such that the peak is exactly 1800 GB/s.)  As there, bursts in a row are in different
# channels; but banks are rotated, for our controllers do not serve one row of a bank as long as
# there are requests for it while another one waits.
#
# The controllers of both choose among 32 reads of a channel, and write when 80 % of 32 places are
# taken, until 20 % are left; the other memories keep the order of requests.
#
# In front of both are the 80 memory controllers of the chip.  Each knows 32 bursts: a vector is a
# burst of 64 bytes, and queues hold 16 vectors, in front of a controller and behind it.

IDEAL = "ideal"
"""The name of the memory with constant latency and bandwidth."""

_DDR4_2133 = Timing(
    CL=15,
    CWL=11,
    tRCD=15,
    tRP=15,
    tRAS=36,
    tRRD_S=4,
    tRRD_L=6,
    tFAW=23,
    tCCD_S=4,
    tCCD_L=6,
    tWR=16,
    tWTR_S=3,
    tWTR_L=8,
    tRTP=8,
    turnaround=2,
    tRFC=374,
    tREFI=8320,
)

_HBM2E_3200 = Timing(
    CL=23,
    CWL=7,
    tRCD=23,
    tRP=23,
    tRAS=55,
    tRRD_S=7,
    tRRD_L=10,
    tFAW=26,
    tCCD_S=2,
    tCCD_L=4,
    tWR=26,
    tWTR_S=10,
    tWTR_L=13,
    tRTP=8,
    turnaround=2,
    tRFC=416,
    tREFI=6240,
)


_HBM_OF_RAMULATOR = Timing(
    CL=7,
    CWL=4,
    tRCD=7,
    tRP=7,
    tRAS=17,
    tRRD_S=4,
    tRRD_L=5,
    tFAW=20,
    tCCD_S=2,
    tCCD_L=3,
    tWR=8,
    tWTR_S=2,
    tWTR_L=4,
    tRTP=7,
    turnaround=2,
    tRFC=130,
    tREFI=1950,
)


def _ddr4_2133(channels: int, name: str, description: str) -> Dram:
    """Channels take turns every 1024 bytes, bank groups every burst."""
    return Dram(
        name=name,
        description=description,
        clock_hz=Fraction(3_200_000_000, 3),
        channels=channels,
        groups=4,
        banks=4,
        rows=1 << 16,
        columns=1 << 7,
        burst_bytes=64,
        burst_clocks=4,
        mapping=mapping_of(
            (Coordinate.GROUP, 2),
            (Coordinate.COLUMN, 2),
            (Coordinate.CHANNEL, channels.bit_length() - 1),
            (Coordinate.COLUMN, 5),
            (Coordinate.BANK, 2),
            (Coordinate.ROW, 16),
        ),
        timing=_DDR4_2133,
    )


_HBM2E = Dram(
    name="hbm2e",
    description="one stack of HBM2E at 3.2 Gbit/s, 8 GiB in 16 pseudo-channels, 410 GB/s",
    clock_hz=Fraction(1_600_000_000),
    channels=16,
    groups=4,
    banks=4,
    rows=1 << 15,
    columns=1 << 5,
    burst_bytes=32,
    burst_clocks=2,
    mapping=mapping_of(
        (Coordinate.GROUP, 2),
        (Coordinate.COLUMN, 1),
        (Coordinate.CHANNEL, 4),
        (Coordinate.COLUMN, 4),
        (Coordinate.BANK, 2),
        (Coordinate.ROW, 15),
    ),
    timing=_HBM2E_3200,
)
"""Pseudo-channels take turns every 256 bytes, bank groups every burst."""


def _behind_capstan(memory: Dram) -> Dram:
    """A memory with the queues and the controllers of Capstan in front of it."""
    return replace(
        memory,
        read_queue=32,
        write_queue=26,
        write_batch=19,
        controllers=80,
        open_bursts=32,
    )


_HBM2E_1800 = _behind_capstan(
    replace(
        _HBM2E,
        name="hbm2e-1800",
        description="four stacks of HBM2E, 16 GiB in 32 channels of 128 bits, 1800 GB/s",
        clock_hz=Fraction(1_757_812_500),
        channels=32,
        rows=1 << 14,
        burst_bytes=64,
        mapping=mapping_of(
            (Coordinate.CHANNEL, 5),
            (Coordinate.GROUP, 2),
            (Coordinate.COLUMN, 5),
            (Coordinate.BANK, 2),
            (Coordinate.ROW, 14),
        ),
        timing=_HBM_OF_RAMULATOR,
        units=Units(load_lines=512, store_lines=512, outstanding=1024),
    )
)
"""Channels interleave every burst of 64 bytes, and bank groups every 32 bursts: units request
enough at once for each channel to use a row several times while it is open."""

_ALL = (
    _ddr4_2133(1, "ddr4-2133", "one channel of DDR4-2133, 8 GiB, 17.1 GB/s"),
    _ddr4_2133(2, "ddr4-2133x2", "two channels of DDR4-2133, 16 GiB, 34.1 GB/s"),
    _behind_capstan(_ddr4_2133(4, "ddr4-2133x4", "four channels of DDR4-2133, 32 GiB, 68.3 GB/s")),
    _HBM2E,
    _HBM2E_1800,
)

MEMORIES: Mapping[str, Dram] = MappingProxyType({memory.name: memory for memory in _ALL})


def find_memory(memory: str | Dram) -> Dram | None:
    """The memory of that name, or the memory itself; ``None`` for the ideal one.

    A ``UserError`` lists the names.
    """
    if isinstance(memory, Dram):
        return memory
    if memory == IDEAL:
        return None
    if not isinstance(memory, str) or memory not in MEMORIES:
        raise UserError(
            f"unknown memory {memory!r}",
            location=user_location(),
            expected=f"one of {', '.join((IDEAL, *MEMORIES))}, or a Dram",
            given=repr(memory),
            hint="dataclasses.replace(MEMORIES['ddr4-2133'], ...) describes a variant",
        )
    return MEMORIES[memory]


# Banked memories on the chip.

_MOST = 1 << 16
_MOST_LANES = 32
_LEAST = {"lane_moves": 0, "reply_cycles": 0}
_MOST_OF = {"lanes": _MOST_LANES, "banks": _MOST_LANES, "ports": 1024, "link_depth": 1024}
_MOST_OF |= {"queue_depth": 1024}


@dataclass(frozen=True, slots=True, kw_only=True)
class Banked:
    """Memories in banks, and the network in front of them.

    Attributes
    ----------
    ports: ports of the network, a power of two, and as many memory units.
    lanes: words of a vector.
    banks: banks of a unit; word ``a`` is in bank ``a % banks`` of unit ``a // banks % ports``.
    queue_depth: vectors in the queue of a unit.
    rounds: allocation rounds of a unit per cycle.
    lane_moves: the largest lane shift of a word in a rank of the network.
    link_depth: vectors that each link of the network holds.
    reply_cycles: cycles from serving the last word of a vector to its answer.
    outstanding: vectors of one machine that may be in flight.
    """

    ports: int = 16
    lanes: int = 16
    banks: int = 16
    queue_depth: int = 16
    rounds: int = 2
    lane_moves: int = 1
    link_depth: int = 4
    reply_cycles: int = 0
    outstanding: int = 64

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            least, most = _LEAST.get(item.name, 1), _MOST_OF.get(item.name, _MOST)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise _banked_refusal(item.name, f"an integer from {least} to {most}", value)
        if self.ports & (self.ports - 1):
            raise _banked_refusal("ports", "a power of two", self.ports)

    @property
    def ranks(self) -> int:
        """Ranks of the network."""
        return self.ports.bit_length() - 1

    def place(self, address: int) -> tuple[int, int]:
        """The unit and the bank of a word."""
        return address // self.banks % self.ports, address % self.banks


def _banked_refusal(name: str, expected: str, given: object) -> UserError:
    return UserError(
        f"a banked memory cannot have these {name.replace('_', ' ')}",
        location=user_location(),
        expected=expected,
        given=repr(given),
    )
