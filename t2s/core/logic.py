"""``Logic``: look-up tables, registers, carry cells and small memories of an FPGA."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Logic:
    """Logic of a part of a design: a module, a FIFO, a node with the FIFOs it receives from.

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

    def __mul__(self, count: int) -> Logic:
        return Logic(
            luts=count * self.luts,
            flip_flops=count * self.flip_flops,
            carry_cells=count * self.carry_cells,
            small_rams=count * self.small_rams,
        )
