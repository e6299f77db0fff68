"""The path that limits the clock, in the words of the design: PEs and channels, not cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from t2s.backends.verilog.arrays import pe_names
from t2s.backends.verilog.flow.routing import Hop
from t2s.backends.verilog.top import Top
from t2s.core.location import SourceLocation
from t2s.graph.nodes import Node
from t2s.graph.semantics import space_points

_CELLS = re.compile(
    r"_(?:LUT4|TRELLIS_FF|CCU2C|PFUMX|L6MUX21|MULT18X18D|DP16KD|TRELLIS_DPR16X4)(?:_.*|$)"
)
_OWN = "$"
"""How names begin that a tool has made up; such a cell belongs to the one before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """A part of a path within one PE, one channel, or the memory around the design.

    ``where`` names it, ``signal`` the last signal of it that the path goes through; the times of
    its logic and of the wires that lead to it are in nanoseconds.
    """

    where: str
    signal: str
    location: SourceLocation | None
    logic: float
    wires: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticalPath:
    """The slowest path from one register to the next."""

    steps: tuple[PathStep, ...]

    @property
    def nanoseconds(self) -> float:
        """The time of all its steps."""
        return sum(step.logic + step.wires for step in self.steps)

    @property
    def location(self) -> SourceLocation | None:
        """The user's line of the first step that has one."""
        return next((step.location for step in self.steps if step.location is not None), None)

    @property
    def advice(self) -> str:
        """What may make it faster."""
        if not self.steps:
            return "nothing in the design limits the clock"
        wires = sum(step.wires for step in self.steps)
        if 2 * wires > self.nanoseconds:
            return (
                "most of the path is wires: another seed= places it differently, and fewer PEs "
                "side by side have shorter ones"
            )
        longest = max(self.steps, key=lambda step: step.logic)
        return (
            f"most of the path is logic of {longest.where}: a device= with more cycles for its "
            "operators gives them more registers"
        )

    def __str__(self) -> str:
        if not self.steps:
            return "no path from register to register"
        wires = sum(step.wires for step in self.steps)
        route = " → ".join(f"{step.where}: {step.signal}" for step in self.steps)
        share = wires / self.nanoseconds if self.nanoseconds else 0.0
        return f"{route} ({self.nanoseconds:.2f} ns, {share:.0%} of them wires)"


def critical_path(top: Top, hops: Sequence[Hop]) -> CriticalPath:
    """The hops of a path by what they are in."""
    steps: list[PathStep] = []
    known = _Places(top)
    for hop in hops:
        where, signal, location = known.of(hop.cell)
        last = steps[-1] if steps else None
        if last is not None and (hop.cell.startswith(_OWN) or last.where == where):
            where, location = last.where, last.location
            signal = last.signal if hop.cell.startswith(_OWN) else signal
            steps.pop()
        else:
            last = None
        steps.append(
            PathStep(
                where=where,
                signal=signal,
                location=location,
                logic=(last.logic if last else 0.0) + (0.0 if hop.wire else hop.nanoseconds),
                wires=(last.wires if last else 0.0) + (hop.nanoseconds if hop.wire else 0.0),
            )
        )
    return CriticalPath(steps=tuple(steps))


class _Places:
    """What the instances of a design are called by its user."""

    def __init__(self, top: Top) -> None:
        self.nodes = {names.node: interface.node for interface, names in top.nodes}
        self.channels = {names.fifos: channel for channel, names in top.channels}

    def of(self, cell: str) -> tuple[str, str, SourceLocation | None]:
        """Where a cell is, the signal that it computes, and the user's line."""
        parts = _CELLS.sub("", cell).split(".")
        for at, part in enumerate(parts):
            name, _, index = part.partition("[")
            if name in self.channels:
                channel = self.channels[name]
                text = f"channel {channel.name}"
                if channel.element_count > 1:
                    text += f"[{_position(channel.shape, int(index.rstrip(']')))}]"
                return text, _signal(parts[at + 1 :]), channel.location
            if name in self.nodes:
                node = self.nodes[name]
                return _pe(node, parts[at + 1 :]), _signal(parts[at + 1 :]), node.location
        return "the memory around the design", _signal(parts), None


def _signal(parts: Sequence[str]) -> str:
    return re.sub(r"__\d+$", "", parts[-1]) if parts else "its ports"


def _pe(node: Node, inside: Sequence[str]) -> str:
    """The PE that a cell is in; the node alone for what is around its PEs."""
    points = dict(zip(pe_names(node), space_points(node), strict=True))
    point = points.get(inside[0]) if inside else None
    return f"{node.name}[{', '.join(map(str, point))}]" if point else node.name


def _position(shape: Sequence[int], element: int) -> str:
    return ", ".join(reversed(list(_digits(shape, element))))


def _digits(shape: Sequence[int], element: int) -> Iterator[str]:
    for extent in reversed(shape):
        element, digit = divmod(element, extent)
        yield str(digit)
