"""Recurrences whose loops are unrolled: every value is computed before it is used.

Where it is not, time can often be skewed: a PE starts later than the one before it, so that what
it needs is there.  The refusal then gives the schedule, found over the distances of all reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from t2s.core.errors import UserError
from t2s.core.names import NameSupply
from t2s.core.printer import show
from t2s.spatial.analysis.recurrences import MemberRead, Transfer
from t2s.spatial.ir import Kernel, Loop, LoopKind

MOST_TRIED = 50_000
"""Most combinations of skews that are tried for a hint."""


def check_causal(
    kernel: Kernel, found: MemberRead, transfer: Transfer, everything: Sequence[Transfer]
) -> None:
    """Raise ``UserError`` for a value that would be needed before it is computed.

    ``everything`` are the transfers of all reads, for which the hint has a legal schedule.
    """
    first = next(((loop, step) for loop, step in transfer.delay if step), None)
    if first is None or first[1] > 0:
        return
    loop, step = first
    directive = kernel.reshaped
    subject = f"{directive.text} on {kernel.name}: " if directive is not None else ""
    schedule = _legal_schedule(kernel, loop, everything)
    raise UserError(
        f"{subject}{found.member} needs {show(found.read)} before it is computed",
        location=directive.location if directive is not None else kernel.location,
        expected="an order of the loops in which every value is computed before it is used",
        given=f"it is computed {-step} iteration{'s' if step != -1 else ''} of {loop.name} later",
        notes=((found.read.location, f"{show(found.read)} is read here"),),
        hint="put the loops along which it depends on earlier values outside, in the order of "
        "the definition"
        if schedule is None
        else f"in place of the unrolling, with {schedule}",
    )


def _legal_schedule(kernel: Kernel, loop: Loop, everything: Sequence[Transfer]) -> str | None:
    """A transform that delays the PEs, so that every value comes in time; ``None`` without one.

    The loop that was found wrong is skewed, or else the outermost one for which there are skews.
    """
    spaces = kernel.kind(LoopKind.UNROLLED)
    if kernel.timed is not None or not spaces:
        return None
    for time in dict.fromkeys([loop, *kernel.kind(LoopKind.SERIAL)]):
        needs = _needs(everything, time, spaces)
        skews = None if needs is None else _skews(needs, len(spaces))
        if skews is not None:
            return _text(kernel, spaces, time, skews)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Need:
    """The skews times the ``hops`` have to be at least ``cycles``."""

    hops: tuple[int, ...]
    cycles: int

    def is_met(self, skews: Sequence[int]) -> bool:
        return sum(by * hop for by, hop in zip(skews, self.hops, strict=True)) >= self.cycles


def _needs(
    everything: Sequence[Transfer], time: Loop, spaces: Sequence[Loop]
) -> list[_Need] | None:
    """What skews of a loop have to give the transfers; ``None`` if none helps."""
    needs: dict[_Need, None] = {}
    for transfer in everything:
        outer, step, inner = _delays(transfer, time)
        if outer < 0:
            return None
        if outer > 0 or (transfer.stays and (transfer.immediate or (not step and inner > 0))):
            continue
        hop = {loop.name: by for loop, by in transfer.hop}
        hops = tuple(hop.get(space.name, 0) for space in spaces)
        need = _Need(hops=hops, cycles=max(1, *map(abs, hops)) - step)
        if not any(hops) and need.cycles > 0:
            return None
        needs[need] = None
    return list(needs)


def _delays(transfer: Transfer, time: Loop) -> tuple[int, int, int]:
    """How far a loop in time advances, and the first loop that does outside and inside of it."""
    names = [loop.name for loop, _ in transfer.delay]
    steps = [step for _, step in transfer.delay]
    at = names.index(time.name)
    outer, inner = (next(filter(None, part), 0) for part in (steps[:at], steps[at + 1 :]))
    return outer, steps[at], inner


def _skews(needs: Sequence[_Need], count: int) -> tuple[int, ...] | None:
    """The smallest skews that meet all needs, positive ones first."""
    longest = max((abs(hop) for need in needs for hop in need.hops), default=0)
    most = longest * sum(max(need.cycles, 0) for need in needs)
    while (2 * most + 1) ** count > MOST_TRIED:
        most -= 1
    tried = sorted(
        product(range(-most, most + 1), repeat=count),
        key=lambda skews: (sum(map(abs, skews)), [-skew for skew in skews]),
    )
    return next((skews for skews in tried if all(n.is_met(skews) for n in needs)), None)


def _text(kernel: Kernel, spaces: Sequence[Loop], time: Loop, skews: Sequence[int]) -> str:
    """The variable and the directive, as they are to be written."""
    new = NameSupply(loop.name for loop in kernel.loops).fresh("time")
    total = time.name
    for space, skew in zip(spaces, skews, strict=True):
        if skew:
            term = f"{abs(skew)} * {space.name}" if abs(skew) > 1 else space.name
            total += f" {'+' if skew > 0 else '-'} {term}"
    loops = ", ".join(loop.name for loop in (*spaces, time))
    places = ", ".join(f"{space.name}: {space.name}" for space in spaces)
    return f'{new} = Var("{new}"): space_time_transform([{loops}], {{{places}, {new}: {total}}})'
