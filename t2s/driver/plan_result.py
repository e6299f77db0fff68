"""The result of a plan: the tensor, the times of all steps by kind, and a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np

from t2s.capability.mapping import Mapping as PartMapping
from t2s.capability.refusals import tiles_text
from t2s.capability.tiles import TileOf
from t2s.core.display import NotebookCard, NotebookDisplay
from t2s.core.names import clipped
from t2s.core.svg import PALETTE, SvgPicture, element, hover, picture
from t2s.plan.ir import (
    CallStep,
    CheckStep,
    ConvertStep,
    LoopsStep,
    MoveStep,
    PlanProgram,
    Step,
    print_step,
    sources_of,
    target_of,
)
from t2s.sparse_repr.notation.ir import print_assignment
from t2s.sparse_repr.tensors.tensor import SparseTensor

if TYPE_CHECKING:
    from t2s.libraries.running import CallTally


Array = np.ndarray[Any, Any]
Value = Array | SparseTensor


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanResult(NotebookDisplay):
    """The result of a run: a tensor, and the results of all steps.

    ``program`` are the steps of the plan; ``sizes`` the bytes of all tensors.
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
        """The sum over all steps: measured, simulated, and predicted transfers.

        Transfers over a link that overlaps count as far as they take longer than the device
        computes.
        """
        total = sum((step.times for step in self.steps), PlanTimes())
        return total + PlanTimes(transfers=-_hidden(self.steps))

    @property
    def seconds(self) -> float:
        """The total of ``times``."""
        return self.times.total

    @property
    def cycles(self) -> int:
        """The sum of cycles of all hardware."""
        return sum(step.cycles for step in self.steps)

    @property
    def transfer_share(self) -> float:
        """The fraction of the time that transfers take, from 0 to 1."""
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
    """Seconds of transfers that are hidden behind the computation of devices."""
    hidden = 0.0
    devices: dict[str, list[float]] = {}
    for result in steps:
        match result.step:
            case MoveStep(link=link, source=source, target=target) if link.overlaps:
                for memory in (source, target):
                    devices.setdefault(memory.name, [0.0, 0.0])[0] += result.times.transfers
            case CallStep(mapping=mapping) if mapping.function.hardware is not None:
                device = mapping.function.hardware.memory.name
                devices.setdefault(device, [0.0, 0.0])[1] += result.times.simulated
    for transfers, computing in devices.values():
        hidden += min(transfers, computing)
    return hidden


@dataclass(kw_only=True)
class StepRecord:
    """The record of a running step; ``times`` replace the measured time.

    The time that the simulator needs for hardware does not count.
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
    """The record of calls: cycles of hardware, and partial results that the host added up."""
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
        back, whole = hardware.link.seconds(tally.partial), hardware.link.seconds(total)
        record.times += PlanTimes(transfers=back + whole)
        record.note = "; ".join((*([note] if note else []), "partial results summed by the host"))
    return record


def bytes_of(value: Value) -> int:
    """The bytes of an array, or of all arrays of a sparse tensor."""
    if isinstance(value, SparseTensor):
        arrays = sum(np.asarray(array).nbytes for level in value.levels for array in level.values())
        return int(arrays + value.values.nbytes)
    return int(value.size * value.itemsize)


# Times by kind: measured, simulated, predicted.


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTimes:
    """Seconds by kind.

    Attributes
    ----------
    measured: on this machine.
    simulated: cycles of hardware at its clock.
    transfers: predicted from the latencies and bandwidths of links.
    """

    measured: float = 0.0
    simulated: float = 0.0
    transfers: float = 0.0

    def __add__(self, other: PlanTimes) -> PlanTimes:
        return PlanTimes(
            measured=self.measured + other.measured,
            simulated=self.simulated + other.simulated,
            transfers=self.transfers + other.transfers,
        )

    @property
    def total(self) -> float:
        """The sum of all kinds."""
        return self.measured + self.simulated + self.transfers

    def __str__(self) -> str:
        parts = [
            (self.measured, "measured"),
            (self.simulated, "simulated"),
            (self.transfers, "of transfers, predicted"),
        ]
        shown = [f"{shown_seconds(seconds)} {what}" for seconds, what in parts if seconds]
        return " + ".join(shown) or f"{shown_seconds(0.0)} measured"


def shown_seconds(seconds: float) -> str:
    """In milliseconds, down to a nanosecond."""
    return f"{seconds * 1e3:.{3 if seconds >= 1e-4 or not seconds else 6}f} ms"


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """The result of a step.

    Attributes
    ----------
    times: its seconds, by kind.
    calls: the number of calls of the function; ``cycles``: the sum of their cycles, for hardware.
    copied: bytes of operands and results that were copied; ``moved``: bytes moved over a link.
    note: on the outcome of its guard, if it had one.
    """

    step: Step
    times: PlanTimes
    calls: int = 0
    cycles: int = 0
    copied: int = 0
    moved: int = 0
    note: str = ""

    @property
    def seconds(self) -> float:
        """The total of its times."""
        return self.times.total

    def __str__(self) -> str:
        text = f"{print_step(self.step)}: {self.times}"
        if self.cycles:
            text += f", {self.cycles} cycles"
        if self.calls:
            text += f", {self.calls} call{'s' if self.calls > 1 else ''}"
        if self.copied:
            text += f", {self.copied} bytes copied"
        if self.moved:
            text += f", {self.moved} bytes moved"
        return f"{text}, {self.note}" if self.note else text


# A picture of a plan: steps as boxes, tensors as arrows with their bytes, times as bars by kind.
#
# Steps run downwards.  A tensor that the next step reads is an arrow between their boxes; one that
# a later step reads goes around on the right; inputs come from the left.

TIMES = (
    ("measured", PALETTE[0]),
    ("simulated", PALETTE[2]),
    ("transfers", PALETTE[1]),
)
"""The kinds of ``PlanTimes``, and their colors."""

_LEFT, _TOP, _WIDTH, _HEIGHT, _ROW, _LINE = 190, 64, 400, 40, 78, 13
_LANE, _BARS, _LONGEST = 150, 300, 200
_CHARACTERS, _TITLE, _LETTERS = 58, 90, 12
"""The most letters of a step, of the title, and of the name of a tensor."""


@dataclass(frozen=True, kw_only=True)
class DrawnPlan:
    """The data of a picture: a plan, the results of its steps if it ran, and bytes of tensors."""

    program: PlanProgram
    steps: Sequence[StepResult] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)

    def tensor(self, name: str) -> str:
        """A tensor with its format and its bytes."""
        text = f"{clipped(name, _LETTERS)} {self.program.format_of(name).letters}".rstrip()
        return f"{text}, {shown_bytes(self.sizes[name])}" if name in self.sizes else text

    def inputs(self, number: int) -> list[str]:
        """The inputs of the plan that a step reads."""
        steps = self.program.steps
        return [n for n in sources_of(steps[number]) if _giver(steps, number, n) is None]

    @cached_property
    def row(self) -> int:
        """The distance of boxes, with room for a line of text for each input."""
        most = max((len(self.inputs(n)) for n in range(len(self.program.steps))), default=0)
        return max(_ROW, _LINE * (most + 1))

    def top(self, number: int) -> int:
        """The upper edge of a box."""
        return _TOP + (self.row - _ROW) // 2 + number * self.row


def plan_picture(drawn: DrawnPlan) -> SvgPicture:
    """The picture of a plan; the same bytes for the same plan and times."""
    program = drawn.program
    title = print_assignment(program.assignment)
    rows = list(program.steps)
    head = clipped(title, _TITLE)
    parts = [element("text", text=head, x=16, y=20, font_weight="bold")]
    parts += _legend() if drawn.steps else []
    for number, step in enumerate(rows):
        parts.append(_box(drawn.top(number), number, step))
        parts += _inputs(drawn, number)
    parts += _arrows(drawn, rows)
    if drawn.steps:
        parts += _bars(drawn)
    lines = [print_step(step) for step in rows]
    if drawn.steps:
        lines = [str(result) for result in drawn.steps]
    return picture(
        _LEFT + _WIDTH + _LANE + (_BARS if drawn.steps else 20),
        drawn.top(len(rows)) + 30,
        *parts,
        title=f"plan of {title}",
        description="; ".join(lines),
    )


def shown_bytes(count: int) -> str:
    """``12 B``, ``3.4 kB``, ``16 MB``."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"


def _color(step: Step) -> str:
    """The color of a step: a call, hardware, compiled loops, or data movement."""
    match step:
        case CallStep(mapping=mapping):
            return PALETTE[0] if mapping.function.hardware is None else PALETTE[2]
        case LoopsStep():
            return PALETTE[3]
        case MoveStep():
            return PALETTE[1]
        case ConvertStep() | CheckStep():
            return PALETTE[7]
        case _:
            assert_never(step)


def _box(y: int, number: int, step: Step) -> str:
    kind, _, text = print_step(step).partition(": ")
    color = _color(step)
    box = element(
        "rect",
        x=_LEFT,
        y=y,
        width=_WIDTH,
        height=_HEIGHT,
        rx=4,
        fill=color,
        fill_opacity=0.15,
        stroke=color,
    )
    head = element("text", text=f"{number + 1}. {kind}", x=_LEFT + 8, y=y + 15, font_weight="bold")
    body = element("text", text=clipped(text, _CHARACTERS), x=_LEFT + 8, y=y + 32, font_size=11)
    return element("g", hover(print_step(step)), box, head, body)


def _giver(steps: Sequence[Step], number: int, name: str) -> int | None:
    """The last step before this one that wrote or moved a tensor; ``None`` for inputs."""
    for at in range(number - 1, -1, -1):
        step = steps[at]
        if target_of(step) == name or (isinstance(step, MoveStep) and step.tensor == name):
            return at
    return None


def _inputs(drawn: DrawnPlan, number: int) -> Iterator[str]:
    """Draw inputs on the left, a line of text for each."""
    names = drawn.inputs(number)
    top = drawn.top(number)
    for at, name in enumerate(names):
        y = top + (at + 1) * _HEIGHT / (len(names) + 1)
        line = top + _HEIGHT / 2 + (at - (len(names) - 1) / 2) * _LINE
        text = element(
            "text", text=drawn.tensor(name), x=_LEFT - 56, y=line + 4, text_anchor="end",
            font_size=11,
        )  # fmt: skip
        yield element("g", hover(name), text)
        yield _arrow([(_LEFT - 52, line), (_LEFT - 26, line), (_LEFT - 20, y), (_LEFT, y)])


def _arrows(drawn: DrawnPlan, steps: Sequence[Step]) -> Iterator[str]:
    """Draw the tensors between steps, and the result."""
    readers: dict[tuple[int, str], list[int]] = {}
    for number, step in enumerate(steps):
        for name in sources_of(step):
            giver = _giver(steps, number, name)
            if giver is not None:
                readers.setdefault((giver, name), []).append(number)
    result = drawn.program.result
    last = _giver(steps, len(steps), result)
    if last is not None:
        readers.setdefault((last, result), []).append(last + 1)
    lanes = 0
    for (number, name), numbers in sorted(readers.items()):
        text = drawn.tensor(name)
        x, y = _LEFT + _WIDTH / 2, drawn.top(number) + _HEIGHT
        if number + 1 in numbers:
            yield _arrow([(x, y), (x, y + drawn.row - _HEIGHT)])
            yield element("text", text=text, x=x + 8, y=y + 22, font_size=11)
        far = [at for at in numbers if at > number + 1]
        if not far:
            continue
        right, out = _LEFT + _WIDTH, y - _HEIGHT / 3
        lane = right + 14 + 12 * (lanes % 10)
        lanes += 1
        yield element("text", text=text, x=lane + 4, y=out - 4, font_size=11)
        for at in far:
            into = drawn.top(at) + _HEIGHT / 3
            yield _arrow([(right, out), (lane, out), (lane, into), (right, into)])


def _arrow(points: Sequence[tuple[float, float]]) -> str:
    """A line through points, with a head at its end."""
    (x, y), (last, end) = points[-2:]
    line = " ".join(f"{a:g},{b:g}" for a, b in points)
    along = (last > x) - (last < x), (end > y) - (end < y)
    across = along[1], along[0]
    back = last - 6 * along[0], end - 6 * along[1]
    corners = [
        (last, end),
        (back[0] + 3 * across[0], back[1] + 3 * across[1]),
        (back[0] - 3 * across[0], back[1] - 3 * across[1]),
    ]
    head = " ".join(f"{a:g},{b:g}" for a, b in corners)
    drawn = element("polyline", points=line, fill="none", stroke="currentColor")
    return drawn + element("polygon", points=head)


def _legend() -> Iterator[str]:
    x = _LEFT
    for name, color in TIMES:
        yield element("rect", x=x, y=32, width=10, height=10, fill=color)
        label = "transfers, predicted" if name == "transfers" else name
        yield element("text", text=label, x=x + 14, y=41, font_size=11)
        x += 110


def _bars(drawn: DrawnPlan) -> Iterator[str]:
    """The times of each step, to one scale."""
    longest = max(step.seconds for step in drawn.steps) or 1.0
    left = _LEFT + _WIDTH + _LANE
    for number, step in enumerate(drawn.steps):
        x: float = left
        y = drawn.top(number) + 8
        for name, color in TIMES:
            seconds = _seconds(step.times, name)
            if seconds <= 0:
                continue
            wide = max(1.0, _LONGEST * seconds / longest)
            label = hover(f"{shown_seconds(seconds)} {name}")
            yield element("rect", label, x=x, y=y, width=wide, height=14, fill=color)
            x += wide
        yield element("text", text=shown_seconds(step.seconds), x=x + 6, y=y + 12, font_size=11)
        more = [f"{step.calls} call{'s' if step.calls > 1 else ''}"] if step.calls else []
        more += [f"{step.cycles} cycles"] if step.cycles else []
        more += [f"{shown_bytes(step.copied)} copied"] if step.copied else []
        more += [f"{shown_bytes(step.moved)} moved"] if step.moved else []
        more += [step.note] if step.note else []
        if more:
            yield element("text", text=", ".join(more), x=left, y=y + 28, font_size=11)


def _seconds(times: PlanTimes, kind: str) -> float:
    return {
        "measured": times.measured,
        "simulated": times.simulated,
        "transfers": times.transfers,
    }[kind]
