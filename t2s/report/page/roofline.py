"""The roofline of a run: operations per second over operations per byte; model and plot.

Operations are those of ``traffic.py``, of all compute nodes.  Each level of memory has its own
bytes, hence its own point: off-chip memory, channels between nodes, and channels from PE to PE.
The roof of channels is one token per cycle through each FIFO.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from t2s.core.svg import PALETTE, LogPlot, element, hover
from t2s.graph.nodes import Role
from t2s.report.page.markup import rows_view, si, tag
from t2s.report.page.traffic import (
    moved_bytes,
    operations_of,
    operations_of_firing,
    token_bytes,
    tokens_of,
)
from t2s.simulator.devices import Device
from t2s.simulator.report.result import SimResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """A roof of computation, in operations per second."""

    name: str
    rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLevel:
    """A level of memory: its bytes in the run, its bandwidth (``None``: no limit).

    ``intensity`` are operations per byte.
    """

    name: str
    bytes: float
    bandwidth: float | None
    intensity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineModel:
    """The roofs and the points of a run; ``rate`` is the achieved rate, in operations per
    second.
    """

    device: str
    operations: int
    rate: float
    ceilings: tuple[Ceiling, ...]
    levels: tuple[MemoryLevel, ...]


def roofline_of(result: SimResult) -> RooflineModel | None:
    """The roofline; ``None`` for a run that was cut short, or without operations or traffic."""
    program = result.program
    computes = [timing for timing in program.nodes if timing.node.role is Role.COMPUTE]
    operations = sum(
        operations_of(program, timing, result.nodes[timing.node.name].slots) for timing in computes
    )
    if not result.finished or not operations or not result.cycles:
        return None
    hertz = result.device.clock_hz
    design = sum(
        operations_of_firing(timing) * result.nodes[timing.node.name].pe_count
        for timing in computes
    )
    ceilings = (
        [Ceiling(name="a firing of each PE in each cycle", rate=design * hertz)] if design else []
    )
    chip = _of_chip(result.device)
    ceilings += [] if chip is None else [chip]
    levels = [
        MemoryLevel(name=name, bytes=count, bandwidth=bandwidth, intensity=operations / count)
        for name, count, bandwidth in _levels(result)
        if count
    ]
    if not levels:
        return None
    return RooflineModel(
        device=result.device.name,
        operations=operations,
        rate=operations / result.seconds,
        ceilings=tuple(ceilings),
        levels=tuple(levels),
    )


def _of_chip(device: Device) -> Ceiling | None:
    """A multiplication and an addition in each DSP block and cycle."""
    if device.dsp_blocks is None or device.fabric is None:
        return None
    name = f"{device.dsp_blocks:,} DSP blocks, 2 operations per cycle"
    return Ceiling(name=name, rate=2.0 * device.dsp_blocks * device.clock_hz)


def _levels(result: SimResult) -> list[tuple[str, float, float | None]]:
    program, device = result.program, result.device
    hertz = device.clock_hz
    outside: float = sum(moved_bytes(program, timing) for timing in program.nodes)
    bandwidth: float | None = device.memory_bytes_per_second
    name = "memory"
    if result.memory is not None:
        outside, name = result.memory.bytes_moved, result.memory.dram.name
        bandwidth = float(result.memory.dram.peak_bytes_per_second)
    levels: list[tuple[str, float, float | None]] = [(name, outside, bandwidth)]
    for name, inside in (("channels between nodes", False), ("channels from PE to PE", True)):
        timings = [
            timing
            for timing in program.channels
            if (timing.channel.source == timing.channel.sink) is inside
        ]
        moved = sum(tokens_of(program, t) * token_bytes(t.channel) for t in timings)
        width = sum(t.channel.element_count * token_bytes(t.channel) for t in timings)
        levels.append((name, moved, width * hertz))
    return levels


# The roofline: operations per second over operations per byte, both axes logarithmic.


def roofline_view(model: RooflineModel) -> str:
    """The picture and its numbers as a table."""
    roofs = [ceiling.rate for ceiling in model.ceilings]
    intensities = [level.intensity for level in model.levels]
    slopes = [lev.bandwidth * lev.intensity for lev in model.levels if lev.bandwidth is not None]
    rates = [model.rate, *roofs, *slopes]  # each point is below a roof that is in the picture
    axes = LogPlot(
        x=(
            math.floor(math.log10(min(intensities) / 3)),
            math.ceil(math.log10(max(intensities) * 3)),
        ),
        y=(math.floor(math.log10(min(rates) / 3)), math.ceil(math.log10(max(rates) * 2))),
        top=20,
        width=520,
        height=300,
    )
    drawn = [*axes.grid(si, class_="grid")]
    middle, below = axes.left + axes.width / 2, axes.bottom + 34
    drawn.append(
        element("text", text="operations per byte", x=middle, y=below, text_anchor="middle")
    )
    drawn.append(element("text", text="operations per second", x=axes.left, y=axes.top - 7))
    drawn += [_slope(model, number, axes) for number in range(len(model.levels))]
    names = [*_names(model, axes)]
    drawn += [element("text", text=text, x=x, y=y) for x, y, text in names]
    drawn += [_ceiling(model, number, axes) for number in range(len(model.ceilings))]
    drawn += [text for number, _ in enumerate(model.levels) for text in _point(model, number, axes)]
    letters = max((len(text) for *_, text in names), default=0)
    width, height = axes.right + max(50, 20 + 6.6 * letters), axes.bottom + 44
    drawing = element(
        "svg",
        hover("Roofline"),
        element("desc", text=_described(model)),
        *drawn,
        viewBox=f"0 0 {width:.0f} {height}",
        width=f"{width:.0f}",
        height=height,
        role="img",
        class_="roofline",
        font_size=12,
    )
    return tag(
        "div", drawing, class_="scroll", tabindex=0, role="region", aria_label="roofline"
    ) + _table(model)


def _ceiling(model: RooflineModel, number: int, axes: LogPlot) -> str:
    ceiling = model.ceilings[number]
    x1, y = axes.place((10.0 ** axes.x[0], ceiling.rate))
    x2, _ = axes.place((10.0 ** axes.x[1], ceiling.rate))
    dash = "none" if number == len(model.ceilings) - 1 else "6 4"
    return element(
        "path",
        hover(_said(ceiling)),
        d=f"M{x1:.1f} {y:.1f}H{x2:.1f}",
        class_="roof",
        stroke_dasharray=dash,
    )


def _said(ceiling: Ceiling) -> str:
    return f"{si(ceiling.rate)}op/s: {ceiling.name}"


def _color(number: int) -> str:
    """The color of a level of memory."""
    return PALETTE[(number + 2) % len(PALETTE)]


def _slope(model: RooflineModel, number: int, axes: LogPlot) -> str:
    """The roof of a level of memory; empty if it has no limit."""
    level = model.levels[number]
    if level.bandwidth is None:
        return ""
    (a, b), (c, d) = _ends(level.bandwidth, axes)
    title = hover(f"{level.name}: {si(level.bandwidth)}B/s")
    path = f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}"
    return element("path", title, d=path, class_="slope", style=f"stroke:{_color(number)}")


def _ends(bandwidth: float, axes: LogPlot) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where the roof of a bandwidth enters the picture and where it leaves it."""
    low, high = 10.0 ** axes.x[0], 10.0 ** axes.x[1]
    bottom, top = 10.0 ** axes.y[0], 10.0 ** axes.y[1]
    first, last = max(low, bottom / bandwidth), min(high, top / bandwidth)
    return axes.place((first, first * bandwidth)), axes.place((last, last * bandwidth))


def _names(model: RooflineModel, axes: LogPlot) -> Iterator[tuple[float, float, str]]:
    """Place the names of roofs at the ends of their lines, without overlaps.

    Lines that end at the top are named there; close ones share a text.
    """
    right = [(axes.place((1.0, ceiling.rate))[1], _said(ceiling)) for ceiling in model.ceilings]
    top: list[tuple[float, str]] = []
    for number, level in enumerate(model.levels, 1):
        if level.bandwidth is None:
            continue
        _, (x, y) = _ends(level.bandwidth, axes)
        if x > axes.right - 40:
            right.append((y, str(number)))
        elif (
            top
            and (near := min(top, key=lambda label: abs(label[0] - x)))
            and abs(near[0] - x) < 40
        ):
            top[top.index(near)] = (max(x, near[0]), f"{near[1]}, {number}")
        else:
            top.append((x, str(number)))
    yield from ((x + 5, axes.top + 4, text) for x, text in top)
    free = -math.inf
    for y, text in sorted(right):
        free = max(y + 4, free)
        yield axes.right + 6, free, text
        free += 14


def _point(model: RooflineModel, number: int, axes: LogPlot) -> Iterator[str]:
    level, color = model.levels[number], _color(number)
    x, y = axes.place((level.intensity, model.rate))
    title = f"{level.name}: {si(model.rate)}op/s at {level.intensity:.3g} operations per byte"
    yield element(
        "circle", hover(title), cx=x, cy=y, r=6, style=f"fill:{color}", class_="point",
        role="img", aria_label=title, tabindex=0,
    )  # fmt: skip
    same = [n for n, other in enumerate(model.levels) if other.intensity == level.intensity]
    if same[0] == number:
        text = ", ".join(str(n + 1) for n in same)
        yield element("text", text=text, x=x, y=y + 22, class_="on-point", text_anchor="middle")


def _described(model: RooflineModel) -> str:
    roofs = "; ".join(f"{c.name} {si(c.rate)}op/s" for c in model.ceilings)
    return f"Achieved {si(model.rate)}op/s on {model.device}. Roofs: {roofs or 'none'}."


def _table(model: RooflineModel) -> str:
    rows = [
        [
            f"{number} {level.name}",
            f"{level.bytes:,.0f}",
            f"{level.intensity:.4g}",
            "no limit" if level.bandwidth is None else f"{si(level.bandwidth)}B/s",
            "-" if level.bandwidth is None else f"{si(level.bandwidth * level.intensity)}op/s",
            "-"
            if level.bandwidth is None
            else f"{model.rate / (level.bandwidth * level.intensity):.1%}",
        ]
        for number, level in enumerate(model.levels, 1)
    ]
    title = f"{model.operations:,} operations, {si(model.rate)}op/s achieved on {model.device}"
    headers = ("level", "bytes", "operations per byte", "bandwidth", "roof here", "reached")
    return rows_view(title, headers, rows)
