"""FPGAs and boards: what tools need to know of them.

Numbers of cells are those of the vendors' data sheets, pins those of the boards' own constraint
files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from t2s.core.errors import UserError
from t2s.core.location import user_location


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """An FPGA.

    Attributes
    ----------
    technology: the name of its technology, which the design is written for.
    luts, flip_flops, dsps, rams: how many there are: LUTs of four inputs, multipliers, block RAMs.
    synthesis: the command of Yosys.
    defines: macros for the files that Yosys reads.
    afterwards: passes of Yosys behind synthesis.
    cells: the folder of Yosys with models of the cells.
    router: the tool that places and routes.
    options: its options for this part.
    packer: the tool that makes a bitstream of what is routed.
    lut_cells, flip_flop_cells, dsp_cells, ram_cells: what its report calls these cells.
    """

    name: str
    technology: str
    luts: int
    flip_flops: int
    dsps: int
    rams: int
    synthesis: str
    defines: tuple[str, ...]
    afterwards: tuple[str, ...]
    cells: str
    router: str
    options: tuple[str, ...]
    packer: str
    lut_cells: str
    flip_flop_cells: str
    dsp_cells: str
    ram_cells: str


def _ecp5(kilo_luts: int, luts: int, dsps: int, rams: int) -> Part:
    return Part(
        name=f"ecp5-{kilo_luts}k",
        technology="ecp5",
        luts=luts,
        flip_flops=luts,
        dsps=dsps,
        rams=rams,
        synthesis="synth_ecp5",
        defines=("T2S_OUTPUT_REGISTER",),
        afterwards=(
            'setparam -set REGMODE_A "OUTREG" -set REGMODE_B "OUTREG" '
            "t:DP16KD c:*.registered.words* %i",
        ),
        cells="ecp5",
        router="nextpnr-ecp5",
        options=(f"--{kilo_luts}k", "--package", "CABGA381", "--speed", "6"),
        packer="ecppack",
        lut_cells="TRELLIS_COMB",
        flip_flop_cells="TRELLIS_FF",
        dsp_cells="MULT18X18D",
        ram_cells="DP16KD",
    )


PARTS: Mapping[str, Part] = MappingProxyType(
    {
        part.name: part
        for part in (
            _ecp5(25, 24_288, 28, 56),
            _ecp5(45, 43_848, 72, 108),
            _ecp5(85, 83_640, 156, 208),
        )
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A pin of the FPGA, and its IO standard."""

    site: str
    standard: str = "LVCMOS33"


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
