"""What the last stage writes: the result as the user wants it, or a tensor to convert.

Streams come in the order of the loops, coordinate by coordinate, and leave out what is not there.
So levels in the order of the loops are written as they come, also below dense levels whose loops
visit everything, and so is a tensor of dense levels only (every value has its address).
Anything else is written compressed in the order of the loops, and converted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from t2s.sparse_repr.concrete.access import Stored
from t2s.sparse_repr.formats import Format, Part, csf
from t2s.sparse_repr.levels import Compressed, Dense


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """How the last stage stores the result."""

    stored: Stored


def written_result(
    target: Stored,
    order: Sequence[str],
    covered: Sequence[str],
    *,
    read_too: bool,
    lane: str = "",
    gaps: bool = True,
) -> Written:
    """What to store for a result with these levels when the loops are in this order.

    ``covered`` are the outermost loops that visit all coordinates of their variables, ``lane`` is
    the variable over the lanes of vectors, the innermost one.  ``read_too``: the expression reads
    the values that the result had before.  ``gaps``: memory that nothing is stored into is right.
    """
    if read_too:
        reason = "the expression reads the values from before"
        target = replace(target, reasons=(*target.reasons, reason))
    placed = gaps or set(target.variables) <= set(covered)
    if target.all_dense and placed and (lane or len(target.reasons) == read_too):
        return Written(stored=target)
    in_order = [name for name in order if name in target.variables]
    leading = _leading_dense(target.format)
    walked = list(target.levels) == in_order and list(covered[:leading]) == in_order[:leading]
    if walked and _have_writers(target.format) and len(target.reasons) == read_too:
        return Written(stored=target)
    reasons = list(target.reasons)
    if list(target.levels) != in_order:
        reasons.append(f"written in the order of the loops, {', '.join(in_order)}")
    if any(level.full for level in target.format.levels):
        reasons.append("dense levels are filled in afterwards")
    elif not _have_writers(target.format):
        titles = dict.fromkeys(
            level.title for level in target.format.levels if type(level) is not Compressed
        )
        reasons.append(f"{', '.join(titles)} levels are made afterwards")
    modes = tuple(target.variables.index(name) for name in in_order)
    format = walked_format(modes, in_lanes=lane in in_order)
    stored = Stored(
        variables=target.variables, parts=target.parts, format=format, reasons=tuple(reasons)
    )
    return Written(stored=stored)


def walked_format(modes: Sequence[int], *, in_lanes: bool) -> Format:
    """Compressed levels in the order of the loops, and a dense one for the lanes of vectors."""
    levels = csf(len(modes)).levels
    if in_lanes:
        levels = (*levels[:-1], Dense())
    return Format(levels=levels, parts=tuple(Part(mode=mode) for mode in modes))


def _have_writers(format: Format) -> bool:
    """Whether blocks write the format in the order of its levels.

    A list of coordinates, or levels with a writer below dense ones.
    """
    if format.coordinate_list:
        return True
    dropping = enumerate(format.levels[_leading_dense(format) :])
    return all(level.has_writer(number) for number, level in dropping)


def _leading_dense(format: Format) -> int:
    """Number of dense levels above all others."""
    count = 0
    for level in format.levels:
        if not level.full:
            break
        count += 1
    return count
