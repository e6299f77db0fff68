"""Circles of parts that wait for one another: which of them limits the rate of a design, and how.

In go dependences with a latency and a number of tokens; out comes the circle whose latency is
largest for its tokens.  A dependence says that firing ``k + tokens`` of the sink comes at least
``latency`` cycles after firing ``k`` of the source.  Then no part can fire more often than the
tokens of a circle divided by its latency.  A circle without tokens never starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependence:
    """The sink waits for the source.  ``branch`` is the branch that it comes from.

    ``is_space``: the sink is the sender of the branch, and waits for room in it.
    """

    source: int
    sink: int
    latency: int
    tokens: int = 0
    branch: int = -1
    is_space: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCircle:
    """Dependences one after the other, the last one back to the first."""

    members: tuple[Dependence, ...]

    @property
    def latency(self) -> int:
        """Cycles for one way round."""
        return sum(member.latency for member in self.members)

    @property
    def tokens(self) -> int:
        """Firings of a part on one way round."""
        return sum(member.tokens for member in self.members)

    @property
    def period(self) -> Fraction | None:
        """Cycles per firing; ``None`` if it never starts."""
        return Fraction(self.latency, self.tokens) if self.tokens > 0 else None


def slowest_circle(
    parts: int, dependences: Sequence[Dependence], period: Fraction = Fraction(1)
) -> TokenCircle | None:
    """The circle that allows the fewest firings; ``None`` if all allow one in each period.

    One that never starts is the slowest.
    """
    found: TokenCircle | None = None
    while (better := _slower_circle(parts, dependences, period)) is not None:
        found = better
        if better.period is None:
            break
        period = better.period
    return found


def offsets(parts: int, dependences: Sequence[Dependence], period: Fraction) -> list[int] | None:
    """The earliest first firings of parts that fire once in a period.

    In cycles times the denominator of the period.  ``None`` if some circle is slower than that.
    """
    found, _, circle = _longest(parts, dependences, period)
    return found if circle is None else None


def _slower_circle(
    parts: int, dependences: Sequence[Dependence], period: Fraction
) -> TokenCircle | None:
    """Some circle that takes longer than the period for a firing."""
    _, before, start = _longest(parts, dependences, period)
    if start is None:
        return None
    members = []
    here = start
    while True:
        member = dependences[before[here]]
        members.append(member)
        here = member.source
        if here == start:
            return TokenCircle(members=tuple(reversed(members)))


def _longest(
    parts: int, dependences: Sequence[Dependence], period: Fraction
) -> tuple[list[int], list[int], int | None]:
    """Longest ways to all parts, the last dependence of each way, and a part in a circle.

    The part is in a circle of dependences that gets longer each time round, if there is one.
    """
    top, bottom = period.numerator, period.denominator
    edges = [
        (item.source, item.sink, item.latency * bottom - item.tokens * top) for item in dependences
    ]
    longest = [0] * parts
    before = [-1] * parts
    for _ in range(parts + 1):
        changed = False
        for number, (source, sink, length) in enumerate(edges):
            if longest[source] + length > longest[sink]:
                longest[sink] = longest[source] + length
                before[sink] = number
                changed = True
        if not changed:
            return longest, before, None
        circle = _in_circle(before, dependences)
        if circle is not None:
            return longest, before, circle
    raise AssertionError("a way without a circle has fewer steps than there are parts")


def _in_circle(before: Sequence[int], dependences: Sequence[Dependence]) -> int | None:
    """A part from which the last dependences lead back to it."""
    seen = [0] * len(before)
    for start in range(len(before)):
        here = start
        while not seen[here]:
            seen[here] = start + 1
            if before[here] < 0:
                break
            here = dependences[before[here]].source
        else:
            if seen[here] == start + 1:
                return here
    return None
