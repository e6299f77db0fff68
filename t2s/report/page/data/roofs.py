"""The roofline of a run: operations per second over operations per byte, below the device's roofs.

Operations are those of ``traffic.py``, of all nodes that compute.  Each level of memory has its own
bytes, hence its own point: memory outside of the chip, the channels between nodes, and those from
PE to PE.  A channel's roof is a token in each cycle through each of its FIFOs.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.graph.nodes import Role
from t2s.report.page.data.traffic import (
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
    """The roofs and the points of a run; ``rate`` is what it achieved, in operations per second."""

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
    found: list[tuple[str, float, float | None]] = [(name, outside, bandwidth)]
    for name, inside in (("channels between nodes", False), ("channels from PE to PE", True)):
        timings = [
            timing
            for timing in program.channels
            if (timing.channel.source == timing.channel.sink) is inside
        ]
        moved = sum(tokens_of(program, t) * token_bytes(t.channel) for t in timings)
        width = sum(t.channel.element_count * token_bytes(t.channel) for t in timings)
        found.append((name, moved, width * hertz))
    return found
