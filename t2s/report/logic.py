"""The logic of a design on a chip, as it is estimated: LUTs, flip-flops, carry cells, clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LOGIC = ("LUTs", "flip-flops")
"""What of the logic of an FPGA is used up by a design."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logic:
    """Logic of a node with the FIFOs of the channels it receives from.

    Attributes
    ----------
    luts: look-up tables of four inputs.
    flip_flops: registers of one bit.
    carry_cells: cells for two bits of a sum, each in the place of two LUTs.
    small_rams: memories of 16 words of 4 bits, each in the place of six LUTs.
    """

    luts: int = 0
    flip_flops: int = 0
    carry_cells: int = 0
    small_rams: int = 0

    @property
    def lut_places(self) -> int:
        """The LUTs that are not free any more, with those of carry cells and small memories."""
        return self.luts + 2 * self.carry_cells + 6 * self.small_rams

    def __add__(self, other: Logic) -> Logic:
        return Logic(
            luts=self.luts + other.luts,
            flip_flops=self.flip_flops + other.flip_flops,
            carry_cells=self.carry_cells + other.carry_cells,
            small_rams=self.small_rams + other.small_rams,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockBand:
    """The clock that place and route may reach, in MHz: about, and where it is most likely."""

    about: float
    least: float
    most: float

    def __str__(self) -> str:
        return f"about {self.about:.0f} MHz ({self.least:.0f} to {self.most:.0f})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipLogic:
    """The logic of a design on a chip.

    Attributes
    ----------
    nodes: by name.  What starts the design and sees its end is that of the first node.
    clock: what place and route may reach.
    luts, flip_flops: how many the device has.
    """

    nodes: Mapping[str, Logic]
    clock: ClockBand
    luts: int
    flip_flops: int

    @property
    def total(self) -> Logic:
        """That of all nodes."""
        return sum(self.nodes.values(), Logic())
