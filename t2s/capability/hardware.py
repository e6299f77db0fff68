"""Functions that are hardware of the simulator: where they are, what they take, and the way there.

Everything here is data: the clock is the device's, and a link has a latency and a bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from math import isfinite
from typing import Any

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.walk import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOf(Term):
    """A memory that tensors of a plan are in: that of the host, or that of a device."""

    name: str


HOST = MemoryOf(name="host")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLink(Term):
    """A way from the memory of the host to that of a device and back.

    A transfer takes ``latency`` seconds, and its bytes at ``bytes_per_second``.  Transfers come one
    after the other.  With ``overlaps`` they are hidden behind what the device computes, as far as
    that takes as long; it is for the user to say so.  Raises ``UserError`` for other numbers.
    """

    name: str = "a link"
    latency: float
    bytes_per_second: float
    overlaps: bool = False

    def __post_init__(self) -> None:
        numbers = (self.latency, self.bytes_per_second)
        known = all(isinstance(one, int | float) and isfinite(one) for one in numbers)
        if not known or self.latency < 0 or self.bytes_per_second <= 0:
            raise UserError(
                "a link has a latency and a bandwidth",
                location=user_location(),
                expected="seconds, 0 or more, and bytes per second, more than 0",
                given=f"latency={self.latency!r}, bytes_per_second={self.bytes_per_second!r}",
            )

    def seconds(self, count: int) -> float:
        """How long a transfer of so many bytes takes."""
        return self.latency + count / self.bytes_per_second


PCIE3_X8 = HostLink(name="PCIe 3.0 x8", latency=10e-6, bytes_per_second=8e9 * 8 * 128 / 130 / 8)
"""Eight lanes of 8 GT/s with 128 bits in 130; the latency, of a driver, is an estimate of ours."""


class HardwareKind(Enum):
    """What a piece of hardware is, for plans and their pictures."""

    ARRAY = "array"
    STREAMS = "streams"
    PATTERNS = "patterns"


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """A function that is run on a device of the simulator, cycle by cycle.

    Attributes
    ----------
    kind: what it is made of.
    device, clock_hz: whose cycles these are, and how many there are in a second.
    run: from tensors by name to the result and the cycles of a call.
    cycles: the cycles of any call, where they do not depend on values; ``None`` where they do.
    link: the way to the device's memory; ``None`` if it shares that of the host.
    """

    kind: HardwareKind
    device: str
    clock_hz: int
    run: Callable[[Mapping[str, Any]], tuple[Any, int]]
    cycles: Callable[[], int] | None = None
    link: HostLink | None = None

    @property
    def memory(self) -> MemoryOf:
        """Where its operands and its result are."""
        return HOST if self.link is None else MemoryOf(name=self.device)
