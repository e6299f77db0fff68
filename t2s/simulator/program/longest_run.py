"""How long a run may take: no longer than cycles can be counted."""

from __future__ import annotations

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.simulator.program.checks import MOST_CYCLES, exact_sum
from t2s.simulator.program.sim_program import SimProgram


def check_times(program: SimProgram) -> None:
    """``UserError`` if a run of the program could take ``MOST_CYCLES`` or more.

    As long as anything may happen some PE fires within the longest latency, interval or memory
    access of the last firing, so a run takes at most so many cycles for each of its firings.
    """
    device = program.device
    longest = {
        "the latency of a channel": max((c.latency for c in program.channels), default=1),
        "an initiation interval": int(program.intervals.max(initial=1)),
        "a memory access": _access_cycles(program),
        "the latency of a store": device.store_latency,
    }
    cause = max(longest, key=lambda name: longest[name])
    firings = exact_sum(program.control.firings)
    most = (firings + 1) * (longest[cause] + 1)
    if most < MOST_CYCLES:
        return
    raise UserError(
        f"{program.graph.name!r} could take more cycles than can be counted",
        location=program.graph.location or user_location(),
        expected=f"firings x the longest delay of any of them below {MOST_CYCLES}",
        given=f"{firings} firings and {longest[cause]} cycles of {cause} on {device.name}",
        hint="use a smaller problem, or check the latencies and the bandwidth of the device",
    )


def _access_cycles(program: SimProgram) -> int:
    """The most cycles until the shared memory has moved what one firing moves."""
    rate = program.memory_rate
    if rate is None:
        return 0
    # credit is counted in fractions of a byte, in integers of 64 bits too
    moved = int(program.control.rows[:, 3].max(initial=0)) + 1
    if max(rate.numerator, moved * rate.denominator) >= MOST_CYCLES:
        return MOST_CYCLES
    return -(-moved * rate.denominator // max(1, rate.numerator))
