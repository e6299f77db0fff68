"""Why a placed design cannot go on: who waits for what, by the names of the user.

Goes in: the parts of a run in which nothing will ever happen again.  Comes out: an error that
names cells, units, nets and how full they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from t2s.backends.cgra_tia.machine.agenda import ChannelQueue
from t2s.backends.cgra_tia.machine.parts import PlacedCell, PlacedPart, Stall
from t2s.backends.cgra_tia.machine.units import PlacedUnit
from t2s.backends.cgra_tia.machine.wiring import WiredDesign
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation

SHOWN_PARTS = 8


class PlacedDeadlockError(UserError):
    """A placed design got stuck: units have steps left, or tokens were never taken."""


class PlacedLimitError(UserError):
    """A placed design had not ended at the limit of cycles."""


def stuck_error(wired: WiredDesign, name: str) -> PlacedDeadlockError:
    """The error of a design in which nothing will happen any more."""
    waits = list(_waits(wired))
    unfinished = wired.agenda.unfinished
    left = [queue for queue in wired.queues if queue.tokens]
    cycle = max((part.last for part in wired.parts), default=0)
    shown = waits[:SHOWN_PARTS]
    if len(waits) > SHOWN_PARTS:
        shown.append((None, f"and {len(waits) - SHOWN_PARTS} more parts wait"))
    given = f"{unfinished} units with steps left" if unfinished else "all units done"
    if left:
        fullest = ", ".join(map(str, left[:SHOWN_PARTS]))
        given += f"; tokens left in {fullest}" + (", ..." if len(left) > SHOWN_PARTS else "")
    return PlacedDeadlockError(
        f"{name!r} is stuck after cycle {cycle:,}",
        location=next((place for place, _ in waits if place is not None), None),
        expected="a run in which all units finish and no token is left",
        given=given,
        hint="a channel may hold too few tokens: its sink in the netlist says how many it needs"
        if unfinished
        else "senders and receivers disagree about the number of tokens",
        notes=tuple(shown),
    )


def _waits(wired: WiredDesign) -> Iterator[tuple[SourceLocation | None, str]]:
    """Every part that waits though it has something to do, units first."""
    for part in (*wired.units.values(), *wired.cells.values()):
        nest = isinstance(part, PlacedUnit) and not part.finished
        if nest or any(queue.tokens for queue in part.inputs.values()):
            yield _wait(part)


def _wait(part: PlacedPart) -> tuple[SourceLocation | None, str]:
    origin = part.origin.origin
    node = ""
    if origin is not None:
        point = f"[{', '.join(map(str, origin.point))}]" if origin.point else ""
        node = f" ({origin.node}{point})"
    kind = "cell" if isinstance(part, PlacedCell) else "unit"
    text = f"the {kind} {part.name!r}{node} {_reason(part)}, after {part.firings} firings"
    return (origin.location if origin is not None else None), text


def _reason(part: PlacedPart) -> str:
    match part.cause:
        case (Stall.BLOCKED, ChannelQueue() as queue):
            return f"waits for room in {queue}, which {queue.sink.name!r} takes from"
        case (_, ChannelQueue() as queue):
            return f"waits for a token in {queue}, which {queue.source.name!r} sends"
        case _:
            heads = ", ".join(
                f"%i{port} tag {queue.tokens[0][1]}"
                for port, queue in sorted(part.inputs.items())
                if queue.tokens
            )
            if isinstance(part, PlacedCell) and part.halted:
                return f"has halted (at its inputs: {heads})"
            return f"has no instruction for what is at its inputs: {heads}"
