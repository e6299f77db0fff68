"""``CapstanResult``: what a simulated Capstan made, how long it took, and what held it up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from t2s.sparse_repr.tensors.tensor import SparseTensor

if TYPE_CHECKING:
    from t2s.core.tables import StallTable
    from t2s.simulator.report.result import SimResult


@dataclass(frozen=True, kw_only=True)
class CapstanResult:
    """The result of ``CapstanKernel.simulate``.

    Attributes
    ----------
    tensor: as it is stored.
    memory: the name of the DRAM, or ``"ideal"``.
    run: the run of the graph of units; ``run.memory`` has what the DRAM did.
    """

    tensor: SparseTensor
    memory: str
    run: SimResult = field(repr=False)

    @property
    def cycles(self) -> int:
        """Cycles of the chip until the last word is stored."""
        return self.run.cycles

    @property
    def nanoseconds(self) -> float:
        """The same in time, at the chip's clock."""
        return self.run.seconds * 1e9

    @property
    def units(self) -> StallTable:
        """A row for each unit: cycles with a firing, starved, blocked, waiting and idle."""
        return self.run.stalls

    @property
    def dram_bytes(self) -> int:
        """Bytes of all bursts; 0 with ideal memory."""
        return 0 if self.run.memory is None else self.run.memory.bytes_moved

    @property
    def share_of_peak(self) -> float:
        """The share of the DRAM's bandwidth that was used; 0 with ideal memory."""
        return 0.0 if self.run.memory is None else self.run.memory.share_of_peak

    def __str__(self) -> str:
        lines = [f"{self.cycles:,} cycles, {self.nanoseconds:,.0f} ns with memory {self.memory}"]
        if self.run.memory is not None:
            lines.append(f"{self.dram_bytes:,} bytes moved, {self.share_of_peak:.1%} of the peak")
        return "\n".join([*lines, "", str(self.units)])
