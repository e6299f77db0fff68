"""A picture of a plan: steps as boxes, tensors as arrows with their bytes, times as bars by kind.

Steps run downwards.  What a step gives to the next one is an arrow between their boxes; what it
gives to a later one goes around on the right; inputs come from the left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import assert_never

from t2s.core.names import clipped
from t2s.core.svg import PALETTE, SvgPicture, element, hover, picture
from t2s.driver.plan_times import PlanTimes, StepResult, shown_seconds
from t2s.plan.ir import (
    CallStep,
    CheckStep,
    ConvertStep,
    LoopsStep,
    MoveStep,
    PlanProgram,
    Step,
    sources_of,
    target_of,
)
from t2s.plan.printer import print_step
from t2s.sparse_repr.notation.ir import print_assignment

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
    """What is drawn: a plan, what became of its steps if it ran, and the bytes of its tensors."""

    program: PlanProgram
    steps: Sequence[StepResult] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)

    def tensor(self, name: str) -> str:
        """A tensor with its format and its bytes."""
        text = f"{clipped(name, _LETTERS)} {self.program.format_of(name).letters}".rstrip()
        return f"{text}, {shown_bytes(self.sizes[name])}" if name in self.sizes else text

    def inputs(self, number: int) -> list[str]:
        """What a step reads and no step gives."""
        steps = self.program.steps
        return [n for n in sources_of(steps[number]) if _giver(steps, number, n) is None]

    @cached_property
    def row(self) -> int:
        """From one box to the next: room for a line of text for each input."""
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
    said = [print_step(step) for step in rows]
    if drawn.steps:
        said = [str(one) for one in drawn.steps]
    return picture(
        _LEFT + _WIDTH + _LANE + (_BARS if drawn.steps else 20),
        drawn.top(len(rows)) + 30,
        *parts,
        title=f"plan of {title}",
        description="; ".join(said),
    )


def shown_bytes(count: int) -> str:
    """``12 B``, ``3.4 kB``, ``16 MB``."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"


def _color(step: Step) -> str:
    """Calls, hardware, our loops, and what only brings tensors to where they are read."""
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
    """The step before this one that wrote a tensor, or moved it, last; ``None`` of inputs."""
    for at in range(number - 1, -1, -1):
        one = steps[at]
        if target_of(one) == name or (isinstance(one, MoveStep) and one.tensor == name):
            return at
    return None


def _inputs(drawn: DrawnPlan, number: int) -> Iterator[str]:
    """What no step gives comes from the left, a line of text for each."""
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
    """What steps give to later ones, and the result."""
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
        said = "transfers, predicted" if name == "transfers" else name
        yield element("text", text=said, x=x + 14, y=41, font_size=11)
        x += 110


def _bars(drawn: DrawnPlan) -> Iterator[str]:
    """The times of each step, to one scale."""
    longest = max(one.seconds for one in drawn.steps) or 1.0
    left = _LEFT + _WIDTH + _LANE
    for number, one in enumerate(drawn.steps):
        x: float = left
        y = drawn.top(number) + 8
        for name, color in TIMES:
            seconds = _seconds(one.times, name)
            if seconds <= 0:
                continue
            wide = max(1.0, _LONGEST * seconds / longest)
            said = hover(f"{shown_seconds(seconds)} {name}")
            yield element("rect", said, x=x, y=y, width=wide, height=14, fill=color)
            x += wide
        yield element("text", text=shown_seconds(one.seconds), x=x + 6, y=y + 12, font_size=11)
        more = [f"{one.calls} call{'s' if one.calls > 1 else ''}"] if one.calls else []
        more += [f"{one.cycles} cycles"] if one.cycles else []
        more += [f"{shown_bytes(one.copied)} copied"] if one.copied else []
        more += [f"{shown_bytes(one.moved)} moved"] if one.moved else []
        more += [one.note] if one.note else []
        if more:
            yield element("text", text=", ".join(more), x=left, y=y + 28, font_size=11)


def _seconds(times: PlanTimes, kind: str) -> float:
    return {
        "measured": times.measured,
        "simulated": times.simulated,
        "transfers": times.transfers,
    }[kind]
