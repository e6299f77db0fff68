"""Memories by name.

DDR4-2133: speed bin P (15-15-15) of JESD79-4 with x8 chips of 8 Gbit, one rank of 64 bits; times
that the standard gives in nanoseconds are rounded up to clocks of 0.9375 ns (tRAS 33, tFAW 21,
tWR 15, tWTR 2.5 / 7.5, tRTP 7.5, tRRD 3.7 / 5.3, tRFC 350, tREFI 7800).

HBM2E: one stack at 3.2 Gbit/s per pin, 16 pseudo-channels of 64 bits.  JESD235 leaves the times of
the core to the vendor; these are those that public models of HBM2 use, at the same nanoseconds
(CL, tRCD, tRP 14, tRAS 34, tRRD 4 / 6, tFAW 16, tWR 16, tWTR 6 / 8, tRTP 5, tRFC 260, tREFI 3900).

The two memories of Capstan are those that published results simulate with Ramulator.  HBM2E at
1800 GB/s is its description of HBM (32 channels of 128 bits, 4 Gbit each, 1 Gbit/s per pin) with a
faster clock: the times in clocks stay as they are.  (The public configuration has 1.8 GHz;
here the clock is such that the peak is exactly 1800 GB/s.)  As there, bursts in a row are in
different channels; but banks are rotated, for our controllers do not serve one row of a bank as
long as there are requests for it while another one waits.

The controllers of both choose among 32 reads of a channel, and write when 80 % of 32 places are
taken, until 20 % are left; the other memories keep the order of requests.

In front of both are the 80 memory controllers of the chip.  Each knows 32 bursts: a vector is a
burst of 64 bytes, and queues hold 16 vectors, in front of a controller and behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.simulator.memory.spec import Coordinate, Dram, Timing, Units, mapping_of

IDEAL = "ideal"
"""The name of the memory without banks: the device's latency and bandwidth, whatever is asked."""

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
"""Channels take turns every burst of 64 bytes, and bank groups every 32 of them: units ask for so
much at once that each channel uses a row several times while it is open."""

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

    ``UserError`` lists the names.
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
