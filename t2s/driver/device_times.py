"""The timing of a device, as backends see it whose runs count cycles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from t2s.backends.base import ChannelTimes, DeviceTimes
from t2s.core.errors import UnsupportedError
from t2s.core.location import user_location
from t2s.graph.graph import UNBOUNDED

if TYPE_CHECKING:
    from t2s.simulator.program.sim_program import SimProgram


def device_times(program: SimProgram) -> DeviceTimes:
    """The timing of the device that a program was built for.

    Raises ``UnsupportedError`` for a device with a DRAM, which the testbench does not model.
    """
    memory = program.device.memory
    if memory is not None:
        raise UnsupportedError(
            f"device {program.device.name!r} has a DRAM, which the testbench does not model",
            location=user_location(),
            expected="memory of constant latency and bandwidth",
            given=f"memory {memory.name!r}",
            hint="verilate on device.with_memory('ideal'); t2s.cycles counts with a DRAM",
        )
    return DeviceTimes(
        intervals={timing.node.name: timing.interval.cycles for timing in program.nodes},
        channels={
            timing.channel.name: ChannelTimes(
                latency=timing.latency,
                # room for latencies is added to what is without bounds, too: hardware has 32 bits
                capacity=min(timing.capacity, UNBOUNDED),
            )
            for timing in program.channels
        },
        memory_rate=program.memory_rate,
        store_latency=program.device.store_latency,
        load_latency=program.device.load_latency,
        latency_of=program.device.latency_of,
    )
