"""The logic of a design on a chip, as it is estimated: LUTs, flip-flops, carry cells, clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.core.logic import Logic

LOGIC = ("LUTs", "flip-flops")
"""What of the logic of an FPGA is used up by a design."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedChip:
    """What a chip takes of its FPGA after place and route, with all that is around the design.

    ``luts`` are look-up tables of four inputs, with those of carry cells and small memories;
    ``estimate`` is the logic of the design alone, from before synthesis.
    """

    estimate: ChipLogic | None

    luts: int
    flip_flops: int
    dsp_blocks: int
    ram_blocks: int
    clock_mhz: float
