"""``CapstanResult``: what a simulated Capstan made, how long it took, and what held it up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from t2s.backends.capstan.machines.chip_times import CapstanTimes
from t2s.backends.capstan.resources import count_resources
from t2s.backends.capstan.roofline_picture import Roofline, roofline_picture
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.notebook import CardPart, NotebookCard, NotebookDisplay, Preformatted
from t2s.core.ops import Array
from t2s.core.svg import SvgPicture
from t2s.driver.capstan_bound import CycleCause, CycleParts, cycle_parts
from t2s.driver.capstan_run_picture import MOST_BINS, MOST_CHARACTERS, run_picture
from t2s.driver.capstan_simulation import capstan_device, changed_times, memory_name
from t2s.driver.page_writer import write_page
from t2s.patterns.ir import PatternProgram
from t2s.simulator.limits import checked_limits
from t2s.simulator.memory.presets import IDEAL
from t2s.simulator.report.cut_short import whole as whole_run
from t2s.simulator.report.progress import Progress
from t2s.simulator.retime import retime_on
from t2s.sparse_repr.tensors.tensor import SparseTensor

if TYPE_CHECKING:
    from t2s.core.tables import StallTable
    from t2s.simulator.memory.banked import Banked
    from t2s.simulator.memory.spec import Dram
    from t2s.simulator.report.result import SimResult


@dataclass(frozen=True, kw_only=True)
class CapstanResult(NotebookDisplay):
    """The result of ``CapstanKernel.simulate``.

    Attributes
    ----------
    tensor: as it is stored.
    memory: the name of the DRAM, or ``"ideal"``.
    times: the chip's latencies and sizes.
    run: the run of the graph of units; ``run.memory`` has what the DRAM did.
    program: the patterns.
    entries: of the compressed operands; of all operands if none is compressed.
    """

    tensor: SparseTensor
    memory: str
    times: CapstanTimes = field(repr=False)
    run: SimResult = field(repr=False)
    program: PatternProgram = field(repr=False)
    entries: int = field(repr=False)

    @property
    def cycles(self) -> int:
        """Cycles of the chip until the last word is stored."""
        return self.run.cycles

    @property
    def output(self) -> Array:
        """The result as a dense array."""
        return self.tensor.to_dense()

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

    @property
    def network_words(self) -> float:
        """Words through the network in a cycle of the run; 0 where nothing is behind it."""
        return 0.0 if self.run.shared is None else self.run.shared.words / max(1, self.cycles)

    @property
    def parts(self) -> CycleParts:
        """The cycles by their cause, which add up to all, and the bound, the largest of them.

        Times the run again with an ideal network and with ideal memory.  Raises ``UserError`` for
        a run by the plain engine, which does not keep what machines did.
        """
        kept = vars(self)
        if "_parts" not in kept:
            unhindered = ideal = self.run
            if self.run.shared is not None:
                unhindered = ideal = self.retime(network=IDEAL).run
            if self.run.memory is not None:
                ideal = self.retime(memory=IDEAL).run
            kept["_parts"] = cycle_parts(self.run, unhindered, ideal)
        found: CycleParts = kept["_parts"]
        return found

    def retime(
        self,
        *,
        memory: str | Dram | None = None,
        times: CapstanTimes | None = None,
        network: str | Banked | None = None,
        max_cycles: int | None = None,
        progress: bool | None = None,
    ) -> CapstanResult:
        """The same run with another memory, network or latencies of the chip, without its values.

        ``network`` is ``"chip"``, ``"ideal"`` (no conflicts and no cycles) or a ``Banked`` with
        other queues, rounds or moves between lanes; with ideal memory it is ideal.
        From a run with a DRAM to any memory, and from one with ideal memory to ideal memory: only
        the first one notes addresses.  Sizes of the chip, which decide what units do, stay.  Raises
        ``UserError`` for anything else.
        """
        before = self.run.device
        network = before.banked or IDEAL if network is None else network
        dram = before.memory or IDEAL if memory is None else memory
        target = capstan_device(dram, times or self.times, network)
        name = self.memory if memory is None else memory_name(memory)
        latencies, capacities = changed_times(self.program, self.times, times or self.times)
        with Progress(progress) as observer:
            again = whole_run(
                retime_on(
                    self.run,
                    target,
                    latencies=latencies,
                    capacities=capacities,
                    limits=checked_limits(max_cycles),
                    observer=observer,
                )
            )
        run = replace(again, outputs=self.run.outputs)
        return replace(self, memory=name, run=run, times=times or self.times)

    def report(
        self, path: str | Path, *, windows: Sequence[tuple[int, int]] = (), depths: object = None
    ) -> Path:
        """Write a page about the units of the chip and their streams; see ``SimResult.report``."""
        found = count_resources(self.program)
        units = (found.table, found.owned_table)
        name, runs = self.program.name, (self.run,)
        return write_page(name, runs, path, windows=windows, depths=depths, units=units)

    def picture(self) -> SvgPicture:
        """A time line of partitions: busy, waiting, starved and blocked units of each pattern.

        Below 300 kB: large programs have fewer bins.  Raises ``UserError`` for a run by the plain
        engine.
        """
        self._check_traced("a time line")
        bins = MOST_BINS
        while True:
            found = run_picture(self.program.name, self.run.timeline(bins=bins))
            if len(found.svg) <= MOST_CHARACTERS or bins == 1:
                return found
            bins //= 2

    def roofline(self) -> SvgPicture:
        """Entries per cycle over bytes per entry, and the roofs of DRAM, network and datapath.

        Raises ``UserError`` for a run with ideal memory or without entries, which has no roofs.
        """
        return roofline_picture(self.roofs())

    def roofs(self) -> Roofline:
        """The numbers of ``roofline``; raises what it raises."""
        self._check_traced("roofs")
        if self.run.memory is None or not self.entries or not self.dram_bytes:
            raise UserError(
                "this run has no roofline",
                location=user_location(),
                expected="a run with a DRAM that moves entries",
                given=f"{self.entries:,} entries and {self.dram_bytes:,} bytes with memory "
                f"{self.memory}",
            )
        parts, shared, dram = self.parts, self.run.shared, self.run.memory.dram
        steps = parts.cycles[CycleCause.DATAPATH] + parts.cycles[CycleCause.SCANNER]
        peak = float(dram.peak_bytes_per_second) / self.run.device.clock_hz
        network = None
        if shared is not None and shared.words:
            network = shared.banked.ports * shared.banked.banks * self.entries / shared.words
        return Roofline(
            program=self.program.name,
            bytes_per_entry=self.dram_bytes / self.entries,
            achieved=self.entries / self.cycles,
            bytes_per_cycle=peak,
            network=network,
            datapath=self.entries / steps if steps else None,
            busiest=parts.busiest,
        )

    def _check_traced(self, wanted: str) -> None:
        if self.run.machine_trace is None:
            raise UserError(
                f"nobody knows what the units did in each cycle, for {wanted}",
                location=user_location(),
                expected="a run that tells",
                given=f"one by the engine {self.run.engine!r}",
                hint="simulate with engine='native'",
            )

    def _head(self) -> list[str]:
        lines = [f"{self.cycles:,} cycles, {self.nanoseconds:,.0f} ns with memory {self.memory}"]
        if self.run.memory is not None:
            lines.append(
                f"{self.dram_bytes:,} bytes of DRAM bursts, {self.share_of_peak:.1%} of the peak"
            )
        if self.run.shared is not None:
            shared = self.run.shared
            lines.append(
                f"{shared.words:,} words through the network, {self.network_words:.1f} in a cycle; "
                f"{shared.mean_wait:.1f} cycles lost by each; {shared.bank_utilization:.1%} of the "
                "banks"
            )
        return lines

    @property
    def _has_parts(self) -> bool:
        return self.run.memory is None or self.run.machine_trace is not None

    def __str__(self) -> str:
        parts = [str(self.parts)] if self._has_parts else []
        return "\n\n".join(["\n".join(self._head()), *parts, str(self.units)])

    def _card(self) -> NotebookCard:
        """Its cycles by their cause, the time line of its units, what they did, and the tensor."""
        parts: list[CardPart | None] = [Preformatted(title=text) for text in self._head()]
        if self._has_parts:
            parts.append(self.parts.table)
        if self.run.machine_trace is not None:
            parts.append(self.picture())
        tables = (self.units.table, self.tensor._card())
        return NotebookCard(title=f"result of {self.program.name}", parts=(*parts, *tables))
