"""What a run of a plan gives: the tensor, and of every step how long it took and how we know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s.capability.mapping import Mapping as PartMapping
from t2s.capability.refusals import tiles_text
from t2s.capability.tiles import TileOf
from t2s.core.notebook import NotebookCard, NotebookDisplay
from t2s.core.svg import SvgPicture
from t2s.driver.plan_picture import DrawnPlan, plan_picture
from t2s.driver.plan_times import PlanTimes, StepResult, shown_seconds
from t2s.plan.ir import CallStep, MoveStep, PlanProgram, Step
from t2s.sparse_repr.tensors.tensor import SparseTensor

if TYPE_CHECKING:
    from t2s.libraries.running import CallTally

Array = np.ndarray[Any, Any]
Value = Array | SparseTensor


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanResult(NotebookDisplay):
    """What a run of a plan gives: the result as a tensor, and what became of every step.

    ``program`` are the steps of the plan; ``sizes`` the bytes of all tensors that it has.
    """

    tensor: SparseTensor
    steps: tuple[StepResult, ...]
    program: PlanProgram
    sizes: Mapping[str, int]

    @property
    def output(self) -> Array:
        """The result as a dense array."""
        return self.tensor.to_dense()

    @property
    def times(self) -> PlanTimes:
        """Of all steps, one after the other: measured, simulated, and predicted of transfers.

        Transfers of a link that overlaps count as far as they take longer than its device.
        """
        total = sum((step.times for step in self.steps), PlanTimes())
        return total + PlanTimes(transfers=-_hidden(self.steps))

    @property
    def seconds(self) -> float:
        """All of ``times``."""
        return self.times.total

    @property
    def cycles(self) -> int:
        """Cycles of all hardware, one after the other."""
        return sum(step.cycles for step in self.steps)

    @property
    def transfer_share(self) -> float:
        """How much of the time is transfers, from 0 to 1."""
        return self.times.transfers / self.seconds if self.seconds else 0.0

    def picture(self) -> SvgPicture:
        """Steps as boxes, tensors as arrows with their bytes, times as bars by kind."""
        return plan_picture(DrawnPlan(program=self.program, steps=self.steps, sizes=self.sizes))

    def _card(self) -> NotebookCard:
        """Its time, its steps with bytes and times, and the tensor."""
        return NotebookCard(
            title=f"result of a plan with {len(self.steps)} steps",
            summary=(("in all", self._said_time),),
            parts=(self.picture(), self.tensor._card()),
        )

    @property
    def _said_time(self) -> str:
        share = f": {self.transfer_share:.0%} of it transfers" if self.times.transfers else ""
        return f"{shown_seconds(self.seconds)} = {self.times}{share}"

    def __repr__(self) -> str:
        return f"<PlanResult {self.tensor!r}, {len(self.steps)} steps>"

    def __str__(self) -> str:
        return "\n".join((*map(str, self.steps), f"in all {self._said_time}"))


def _hidden(steps: Sequence[StepResult]) -> float:
    """Seconds of transfers that are hidden behind what the devices of their links compute."""
    hidden = 0.0
    devices: dict[str, list[float]] = {}
    for one in steps:
        match one.step:
            case MoveStep(link=link, source=source, target=target) if link.overlaps:
                for memory in (source, target):
                    devices.setdefault(memory.name, [0.0, 0.0])[0] += one.times.transfers
            case CallStep(mapping=mapping) if mapping.function.hardware is not None:
                device = mapping.function.hardware.memory.name
                devices.setdefault(device, [0.0, 0.0])[1] += one.times.simulated
    for transfers, computing in devices.values():
        hidden += min(transfers, computing)
    return hidden


@dataclass(kw_only=True)
class StepRecord:
    """What is noted while a step runs; ``times`` if they are not what the clock says.

    What the simulator takes for hardware, and what is around it, is no time of the step.
    """

    times: PlanTimes | None = None
    calls: int = 0
    cycles: int = 0
    copied: int = 0
    moved: int = 0
    note: str = ""

    def result(self, step: Step) -> StepResult:
        """The record of a step that has ended."""
        assert self.times is not None
        return StepResult(
            step=step,
            times=self.times,
            calls=self.calls,
            cycles=self.cycles,
            copied=self.copied,
            moved=self.moved,
            note=self.note,
        )


def call_record(
    mapping: PartMapping, tally: CallTally, tiles: tuple[TileOf, ...], value: Value
) -> StepRecord:
    """What calls took: cycles of hardware, and results that the host had to sum up."""
    note = f"tiles: {'; '.join(map(tiles_text, tiles))}" if tiles else ""
    record = StepRecord(
        calls=tally.calls,
        cycles=tally.cycles,
        copied=tally.copied,
        note=note,
    )
    hardware = mapping.function.hardware
    if hardware is None:
        return record
    summing = tally.summing if tally.partial else 0.0
    record.times = PlanTimes(measured=summing, simulated=tally.cycles / hardware.clock_hz)
    if hardware.link is not None and tally.partial:
        total = bytes_of(value)
        record.moved = tally.partial + total
        back, there = hardware.link.seconds(tally.partial), hardware.link.seconds(total)
        record.times += PlanTimes(transfers=back + there)
        record.note = "; ".join((*([note] if note else []), "partial results summed by the host"))
    return record


def bytes_of(value: Value) -> int:
    """Bytes of an array, or of all arrays of a stored tensor."""
    if isinstance(value, SparseTensor):
        arrays = sum(np.asarray(array).nbytes for one in value.levels for array in one.values())
        return int(arrays + value.values.nbytes)
    return int(value.size * value.itemsize)
