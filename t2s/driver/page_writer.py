"""The report page of a result: ``result.report(path)``, of every kind of result that has runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from t2s.core.checks import checked_file, whole
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.driver.design import Stage
from t2s.report.reasons import LoopReason, Rung

Found = TypeVar("Found")

if TYPE_CHECKING:
    from t2s.core.tables import Table
    from t2s.simulator.report.result import SimResult

    Climb = Callable[[Any, SimResult], tuple[Rung, ...]]


@dataclass(frozen=True)
class PageWriter:
    """Writes the page of a run, of a design whose loops have ``reasons``.

    ``climb`` makes the ladder of directives of a result's design.
    """

    climb: Climb
    reasons: Mapping[tuple[str, str], LoopReason] = field(default_factory=dict)

    def __call__(self, result: SimResult, path: str | Path, options: Mapping[str, Any]) -> Path:
        """See ``SimResult.report``."""
        design = options["ladder"]
        ladder = () if design is None else self.climb(design, result)
        return write_page(result.graph, (result,), path, **{**options, "ladder": ladder})


def with_page(stage: Stage, run: Callable[[], SimResult], climb: Climb) -> SimResult:
    """The result of a run with its page; that of an error as well."""
    result = errors_with_page(stage, run, climb)
    return replace(result, page=PageWriter(climb, stage.reasons))


def errors_with_page(stage: Stage, run: Callable[[], Found], climb: Climb) -> Found:
    """What comes of runs of a stage; the result of an error has its page."""
    from t2s.simulator.report.cut_short import RunInterrupted
    from t2s.simulator.report.stuck import DeadlockError

    try:
        return run()
    except (DeadlockError, RunInterrupted) as error:
        error.result = replace(error.result, page=PageWriter(climb, stage.reasons))
        raise


def write_page(
    title: str,
    runs: Sequence[SimResult],
    path: str | Path,
    *,
    windows: Sequence[tuple[int, int]] = (),
    inputs: Mapping[str, Any] | None = None,
    depths: Any = None,
    ladder: Sequence[Rung] = (),
    units: Sequence[Table] = (),
) -> Path:
    """Write one page of runs that came one after the other, and return its path.

    The options are those of ``SimResult.report``, for all runs; ``ladder`` has its rungs, ``units``
    what is taken of a chip without DSP and RAM blocks.
    """
    from t2s.core.files import write_file
    from t2s.report.page.data.page_model import PageModel, Wanted, run_model
    from t2s.report.page.render import page_text

    file = checked_file("the file of the report", path)
    free_depths = None if depths is None else _depths(depths, runs)
    models = []
    for run in runs:
        reasons = run.page.reasons if isinstance(run.page, PageWriter) else {}
        wanted = Wanted(
            windows=windows,
            inputs=inputs,
            free_depths=free_depths,
            reasons=reasons,
            ladder=tuple(ladder),
            units=tuple(units),
        )
        models.append(run_model(run, wanted))
    write_file(file, page_text(PageModel(title=title, runs=tuple(models))).encode())
    return file


def _depths(depths: Any, runs: Sequence[SimResult]) -> dict[str, int]:
    """Depths by channel, of a ``DepthFit`` or of a mapping."""
    found = getattr(depths, "depths", depths)
    named = isinstance(found, Mapping) and all(isinstance(name, str) for name in found)
    numbers = {name: whole(depth) for name, depth in found.items()} if named else {}
    least = {name: depth for name, depth in numbers.items() if depth is not None and depth > 0}
    if not named or len(least) < len(numbers):
        raise UserError(
            "the depths of the report are no depths",
            location=user_location(),
            expected="what t2s.fit_depths(design) gives, or a mapping from channels to depths",
            given=repr(depths)[:200],
        )
    channels = [timing.channel.name for run in runs for timing in run.program.channels]
    for name in least:
        if name not in channels:
            raise UserError(
                f"the depths of the report are those of another design: there is no channel {name}",
                location=user_location(),
                expected=f"depths of {', '.join(channels) or 'no channel'}"[:400],
                given=f"depths of {', '.join(least)}"[:400],
            )
    return least
