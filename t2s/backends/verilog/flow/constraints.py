"""Pins and clocks of a board in the formats of the vendors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A pin of the FPGA, and its IO standard."""

    site: str
    standard: str = "LVCMOS33"


Pins = Sequence[tuple[str, Pin]]
"""The ports of the top with their pins; the first is the clock."""


def lpf(pins: Pins, clock_mhz: float) -> str:
    """Lattice's preferences."""
    lines = []
    for name, pin in pins:
        lines.append(f'LOCATE COMP "{name}" SITE "{pin.site}";')
        lines.append(f'IOBUF PORT "{name}" IO_TYPE={pin.standard};')
    lines.append(f'FREQUENCY PORT "{pins[0][0]}" {clock_mhz:g} MHZ;')
    return "".join(f"{line}\n" for line in lines)


def ccf(pins: Pins, clock_mhz: float) -> str:
    """Cologne Chip's constraints, which know of no clocks, nor of IO standards; the rest is out."""
    (clock, at), *others = pins
    lines = [f'Pin_in "{clock}" Loc = "{at.site}" | SCHMITT_TRIGGER=true;']
    lines += [f'Pin_out "{name}" Loc = "{pin.site}";' for name, pin in others]
    return "".join(f"{line}\n" for line in lines)


def cst(pins: Pins, clock_mhz: float) -> str:
    """Gowin's physical constraints, which know of no clocks."""
    lines = []
    for name, pin in pins:
        lines.append(f'IO_LOC "{name}" {pin.site};')
        lines.append(f'IO_PORT "{name}" IO_TYPE={pin.standard};')
    return "".join(f"{line}\n" for line in lines)
