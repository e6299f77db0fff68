"""FPGAs and boards: what tools need to know of them.

Numbers of cells are those of the vendors' data sheets, pins those of the boards' own constraint
files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from t2s.backends.verilog.flow.constraints import Pin
from t2s.backends.verilog.flow.families import ECP5, GATEMATE, GW2A, XC7, Family
from t2s.core.errors import UserError
from t2s.core.location import user_location


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """An FPGA.

    Attributes
    ----------
    family: what the tools have to know of it.
    luts, flip_flops, dsps, rams: how many there are: LUTs (of four inputs, of an AMD part of six),
        flip-flops, multipliers, block RAMs.
    options: of the placer, for this part.
    packer_options: of the packer, for this part.
    """

    name: str
    family: Family
    luts: int
    flip_flops: int
    dsps: int
    rams: int
    options: tuple[str, ...]
    packer_options: tuple[str, ...] = ()

    @property
    def technology(self) -> str:
        """The name of its technology, which the design is written for."""
        return self.family.technology


def _ecp5(kilo_luts: int, luts: int, dsps: int, rams: int) -> Part:
    return Part(
        name=f"ecp5-{kilo_luts}k",
        family=ECP5,
        luts=luts,
        flip_flops=luts,
        dsps=dsps,
        rams=rams,
        options=(f"--{kilo_luts}k", "--package", "CABGA381", "--speed", "6"),
    )


def _xc7(name: str, luts: int, dsps: int, rams: int) -> Part:
    return Part(
        name=name, family=XC7, luts=luts, flip_flops=2 * luts, dsps=dsps, rams=rams, options=()
    )


PARTS: Mapping[str, Part] = MappingProxyType(
    {
        part.name: part
        for part in (
            _ecp5(25, 24_288, 28, 56),
            _ecp5(45, 43_848, 72, 108),
            _ecp5(85, 83_640, 156, 208),
            Part(
                name="gw2a-18",
                family=GW2A,
                luts=20_736,
                flip_flops=15_552,
                dsps=48,
                rams=46,
                options=("--device", "GW2AR-LV18QN88C8/I7", "--vopt", "family=GW2A-18C"),
                packer_options=("-d", "GW2A-18C"),
            ),
            Part(
                name="ccgm1a1",
                family=GATEMATE,
                luts=40_960,
                flip_flops=40_960,
                dsps=0,
                rams=64,
                options=("--device", "CCGM1A1"),
            ),
            _xc7("xc7a35t", 20_800, 90, 50),
            _xc7("xc7a100t", 63_400, 240, 135),
        )
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A board with an FPGA.

    Attributes
    ----------
    part: the name of the FPGA.
    clock, clock_mhz: the pin of the board's clock, and its frequency.
    passed, failed: LEDs; ``lit_by`` is the level that turns them on.  A board may have only one,
        which is on when the test has passed.
    transmit: the pin to the serial port of a computer.
    high: pins that have to be high for the board to stay on.
    """

    name: str
    description: str
    part: str
    clock: Pin
    clock_mhz: float
    passed: Pin
    failed: Pin | None = None
    lit_by: bool = True
    transmit: Pin
    high: tuple[Pin, ...] = ()


BOARDS: Mapping[str, Board] = MappingProxyType(
    {
        board.name: board
        for board in (
            Board(
                name="ulx3s",
                description="Radiona ULX3S with an LFE5U-85F",
                part="ecp5-85k",
                clock=Pin(site="G2"),
                clock_mhz=25,
                passed=Pin(site="B2"),
                failed=Pin(site="C2"),
                transmit=Pin(site="L4"),
                high=(Pin(site="L2"),),
            ),
            Board(
                name="colorlight-i5",
                description="Colorlight i5 v7 on its extension board, with an LFE5U-25F",
                part="ecp5-25k",
                clock=Pin(site="P3"),
                clock_mhz=25,
                passed=Pin(site="U16"),
                lit_by=False,
                transmit=Pin(site="J17"),
            ),
            Board(
                name="tang-nano-20k",
                description="Sipeed Tang Nano 20K with a GW2AR-18",
                part="gw2a-18",
                clock=Pin(site="4"),
                clock_mhz=27,
                passed=Pin(site="15"),
                failed=Pin(site="16"),
                lit_by=False,
                transmit=Pin(site="69"),
            ),
            Board(
                name="gatemate-evb",
                description="GateMate evaluation board with a CCGM1A1",
                part="ccgm1a1",
                clock=Pin(site="IO_SB_A8"),
                clock_mhz=10,
                passed=Pin(site="IO_EB_B1"),
                failed=Pin(site="IO_EB_B2"),
                lit_by=False,
                transmit=Pin(site="IO_NB_A1"),
            ),
        )
    }
)


def find_part(name: object) -> Part:
    """The part of that name; raises ``UserError`` with all names if there is none."""
    if not isinstance(name, str) or name not in PARTS:
        raise UserError(
            f"unknown part {name!r}",
            location=user_location(),
            expected=", ".join(PARTS),
            given=repr(name),
        )
    return PARTS[name]


def find_board(name: object) -> Board:
    """The board of that name; raises ``UserError`` with all names if there is none."""
    if not isinstance(name, str) or name not in BOARDS:
        raise UserError(
            f"unknown board {name!r}",
            location=user_location(),
            expected=", ".join(BOARDS),
            given=repr(name),
        )
    return BOARDS[name]
