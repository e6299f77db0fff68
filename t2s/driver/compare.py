"""``compare``: two results side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location

if TYPE_CHECKING:
    from t2s.report.comparison import Comparison
    from t2s.simulator.report.result import SimResult


def compare(before: Any, after: Any, *, names: Sequence[str] = ("A", "B")) -> Comparison:
    """What differs between two results, and what the difference of their cycles is made of.

    Both are what ``t2s.simulate`` returns for any design, what ``t2s.sparse.simulate`` returns, or
    the ``result`` of a run that was cut short, which the comparison says.  ``names`` are what
    it calls them.  Peaks of channels are found by one more run of each.

    Raises ``UserError`` for anything else: a count of cycles, or a run of hardware, has no causes.
    """
    from t2s.report.comparison import comparison_of

    here = user_location()
    first, second = runs_of(before, "first", here), runs_of(after, "second", here)
    labels = tuple(names) if isinstance(names, Sequence) and not isinstance(names, str) else ()
    if len(labels) != 2 or not all(isinstance(n, str) and n for n in labels) or len({*labels}) < 2:
        raise UserError(
            "the names of a comparison are no two names",
            location=here,
            expected='names=("A", "B"), two texts that differ',
            given=repr(names)[:200],
        )
    return comparison_of(first, second, (labels[0], labels[1]))


def runs_of(
    result: Any, which: str, location: SourceLocation | None = None
) -> tuple[SimResult, ...]:
    """The runs of a result of any kind, one for each stage; ``UserError`` if it has none."""
    from t2s.simulator.report.result import SimResult

    stages = getattr(result, "stages", getattr(result, "run", result))
    runs = stages if isinstance(stages, tuple) else (stages,)
    if runs and all(isinstance(run, SimResult) for run in runs):
        return runs
    raise UserError(
        f"the {which} result cannot be compared: it does not say where its cycles went",
        location=location,
        expected="what t2s.simulate returns",
        given=repr(result)[:200],
        hint="t2s.cycles and t2s.verilate count; t2s.simulate says what cycles were for",
    )
