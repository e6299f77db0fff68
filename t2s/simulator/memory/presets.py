"""Memories by name.

DDR4-2133: speed bin P (15-15-15) of JESD79-4 with x8 chips of 8 Gbit, one rank of 64 bits; times
that the standard gives in nanoseconds are rounded up to clocks of 0.9375 ns (tRAS 33, tFAW 21,
tWR 15, tWTR 2.5 / 7.5, tRTP 7.5, tRRD 3.7 / 5.3, tRFC 350, tREFI 7800).

HBM2E: one stack at 3.2 Gbit/s per pin, 16 pseudo-channels of 64 bits.  JESD235 leaves the times of
the core to the vendor; these are those that public models of HBM2 use, at the same nanoseconds
(CL, tRCD, tRP 14, tRAS 34, tRRD 4 / 6, tFAW 16, tWR 16, tWTR 6 / 8, tRTP 5, tRFC 260, tREFI 3900).
The one of 1800 GB/s is what published results of Capstan use: 64 pseudo-channels, with the clocks
of the first one at a rate of 3.515625 Gbit/s per pin, rounded up again.

The two memories of Capstan have controllers that choose among 32 reads of a channel, as those of
public simulators of DRAMs do; the others keep the order of requests.  They keep some KiB of what
they have read of streamed tensors: 128 bursts of 32 bytes, or 88 of 64.
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

_READ_QUEUE = 32
_STREAM_BURSTS_HBM = 128
_STREAM_BURSTS_DDR = 88

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


_HBM2E_3516 = Timing(
    CL=26,
    CWL=8,
    tRCD=26,
    tRP=26,
    tRAS=61,
    tRRD_S=8,
    tRRD_L=11,
    tFAW=29,
    tCCD_S=2,
    tCCD_L=4,
    tWR=29,
    tWTR_S=11,
    tWTR_L=15,
    tRTP=9,
    turnaround=2,
    tRFC=458,
    tREFI=6856,
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

_HBM2E_1800 = replace(
    _HBM2E,
    name="hbm2e-1800",
    description="four stacks of HBM2E at 3.516 Gbit/s, 32 GiB in 64 pseudo-channels, 1800 GB/s",
    clock_hz=Fraction(1_757_812_500),
    channels=64,
    mapping=mapping_of(
        (Coordinate.GROUP, 2),
        (Coordinate.COLUMN, 3),
        (Coordinate.CHANNEL, 6),
        (Coordinate.COLUMN, 2),
        (Coordinate.BANK, 2),
        (Coordinate.ROW, 15),
    ),
    timing=_HBM2E_3516,
    read_queue=_READ_QUEUE,
    stream_bursts=_STREAM_BURSTS_HBM,
    units=Units(line_bursts=2, load_lines=64, store_lines=64, outstanding=256),
)
"""Pseudo-channels take turns every 1024 bytes, so that units ask for 4096 at once."""

_ALL = (
    _ddr4_2133(1, "ddr4-2133", "one channel of DDR4-2133, 8 GiB, 17.1 GB/s"),
    _ddr4_2133(2, "ddr4-2133x2", "two channels of DDR4-2133, 16 GiB, 34.1 GB/s"),
    replace(
        _ddr4_2133(4, "ddr4-2133x4", "four channels of DDR4-2133, 32 GiB, 68.3 GB/s"),
        read_queue=_READ_QUEUE,
        stream_bursts=_STREAM_BURSTS_DDR,
    ),
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
            "there is no such memory",
            location=user_location(),
            expected=f"one of {', '.join((IDEAL, *MEMORIES))}, or a Dram",
            given=repr(memory),
            hint="dataclasses.replace(MEMORIES['ddr4-2133'], ...) describes a variant",
        )
    return MEMORIES[memory]
