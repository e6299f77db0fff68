"""The report page of a result: ``result.report(path)``, of every kind of result that has runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.validate import as_int, checked_file
from t2s.driver.design import Stage
from t2s.report.reasons import AblationStep, LoopReason

Found = TypeVar("Found")

if TYPE_CHECKING:
    from t2s.core.display import Table
    from t2s.simulator.report.result import SimResult

    Ablation = Callable[[Any, SimResult], tuple[AblationStep, ...]]


@dataclass(frozen=True)
class PageWriter:
    """Writes the page of a run, of a design whose loops have ``reasons``.

    ``ablation`` makes the ladder of directives of a result's design.
    """

    ablation: Ablation
    reasons: Mapping[tuple[str, str], LoopReason] = field(default_factory=dict)

    def __call__(self, result: SimResult, path: str | Path, options: Mapping[str, Any]) -> Path:
        """See ``SimResult.report``."""
        design = options["ladder"]
        ladder = () if design is None else self.ablation(design, result)
        return write_page(result.graph, (result,), path, **{**options, "ladder": ladder})


def with_page(stage: Stage, run: Callable[[], SimResult], ablation: Ablation) -> SimResult:
    """The result of a run with its page; that of an error as well."""
    result = errors_with_page(stage, run, ablation)
    return replace(result, page=PageWriter(ablation, stage.reasons))


def errors_with_page(stage: Stage, run: Callable[[], Found], ablation: Ablation) -> Found:
    """What comes of runs of a stage; the result of an error has its page."""
    from t2s.simulator.report.errors import DeadlockError, RunInterrupted

    try:
        return run()
    except (DeadlockError, RunInterrupted) as error:
        error.result = replace(error.result, page=PageWriter(ablation, stage.reasons))
        raise


def write_page(
    title: str,
    runs: Sequence[SimResult],
    path: str | Path,
    *,
    windows: Sequence[tuple[int, int]] = (),
    inputs: Mapping[str, Any] | None = None,
    depths: Any = None,
    ladder: Sequence[AblationStep] = (),
    units: Sequence[Table] = (),
) -> Path:
    """Write one page of runs that came one after the other, and return its path.

    The options are those of ``SimResult.report``, for all runs; ``ladder`` has its rungs, ``units``
    what is taken of a chip without DSP and RAM blocks.
    """
    from t2s.core.files import write_file
    from t2s.report.page.model import PageModel, PageOptions, run_model
    from t2s.report.page.render import page_text

    file = checked_file("the file of the report", path)
    free_depths = None if depths is None else _depths(depths, runs)
    models = []
    for run in runs:
        reasons = run.page.reasons if isinstance(run.page, PageWriter) else {}
        wanted = PageOptions(
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
    numbers = {name: as_int(depth) for name, depth in found.items()} if named else {}
    least = {name: depth for name, depth in numbers.items() if depth is not None and depth > 0}
    if not named or len(least) < len(numbers):
        raise UserError(
            "depths= must map channel names to positive integers",
            location=user_location(),
            expected="what t2s.fit_depths(design) gives, or a mapping from channels to depths",
            given=repr(depths)[:200],
        )
    channels = [timing.channel.name for run in runs for timing in run.program.channels]
    for name in least:
        if name not in channels:
            raise UserError(
                f"depths= belongs to another design: this one has no channel {name}",
                location=user_location(),
                expected=f"depths of {', '.join(channels) or 'no channel'}"[:400],
                given=f"depths of {', '.join(least)}"[:400],
            )
    return least
