"""What the driver adds to results: warnings, lines of the summary, and ``result.report(path)``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.location import user_location
from t2s.core.validate import as_int, checked_file
from t2s.graph.graph import Graph, with_depths
from t2s.report.reasons import AblationStep, LoopReason

if TYPE_CHECKING:
    from t2s.core.display import Table
    from t2s.report.logic import RoutedChip
    from t2s.simulator.devices import Device
    from t2s.simulator.limits import Limits, Observer
    from t2s.simulator.program.sim_program import SimProgram
    from t2s.simulator.report.result import SimResult


@dataclass(frozen=True, kw_only=True)
class StageContext:
    """The ``RunContext`` of a stage: reasons for its loops, and lines for the summary.

    ``graph`` is the design's own, without the device's memory; ``ablation`` runs the design with
    prefixes of its directives.
    """

    graph: Graph
    ends: bool
    reasons: Mapping[tuple[str, str], LoopReason]
    explain: Callable[[SimResult], tuple[tuple[str, str], ...]] | None
    ablation: Callable[[Any, SimResult], tuple[AblationStep, ...]]

    def rerun(
        self, program: SimProgram, engine: str, limits: Limits, observer: Observer | None
    ) -> SimResult:
        from t2s.simulator.run import run_to_the_end

        return run_to_the_end(program, engine, limits, observer)

    def warnings(self, result: SimResult) -> tuple[str, ...]:
        return over_budget(with_depths(self.graph, result.depths), result.device)

    def lines(self, result: SimResult) -> tuple[tuple[str, str], ...]:
        return self.explain(result) if self.explain is not None else ()

    def write_page(self, result: SimResult, path: str | Path, options: Mapping[str, Any]) -> Path:
        design = options["ladder"]
        ladder = () if design is None else self.ablation(design, result)
        return write_page(result.graph, (result,), path, **{**options, "ladder": ladder})


def over_budget(graph: Graph, device: Device) -> tuple[str, ...]:
    """One line for each kind of block that the device has too few of."""
    from t2s.report.resources import estimate_resources

    if device.fabric is None:
        return ()
    try:
        overruns = estimate_resources(graph, device).overruns
    except UnsupportedError:  # on-chip memories of data-dependent size have no estimate
        return ()
    return tuple(f"does not fit on {device.name}: {overrun}" for overrun in overruns)


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
    sections: Sequence[tuple[str, str, str]] = (),
    routed: RoutedChip | None = None,
) -> Path:
    """Write one page about consecutive runs, and return its path.

    The options are those of ``SimResult.report``, for all runs; ``ladder`` has the steps of the
    ablation, ``units`` the usage of a chip without DSP and RAM blocks.
    ``sections`` stand above the runs: identity, title, HTML.  ``routed`` is what a chip took of its
    FPGA, beside the estimate.
    """
    from t2s.core.files import write_file
    from t2s.driver.logic import logic_of
    from t2s.report.page.model import PageModel, PageOptions, run_model
    from t2s.report.page.render import page_text

    file = checked_file("the file of the report", path)
    free_depths = None if depths is None else _depths(depths, runs)
    models = []
    for run in runs:
        context = run.program.context
        reasons = context.reasons if isinstance(context, StageContext) else {}
        wanted = PageOptions(
            windows=windows,
            inputs=inputs,
            free_depths=free_depths,
            reasons=reasons,
            ladder=tuple(ladder),
            units=tuple(units),
            logic=logic_of(run.program) if routed is None else routed.estimate,
            routed=routed,
        )
        models.append(run_model(run, wanted))
    page = PageModel(title=title, runs=tuple(models), sections=tuple(sections))
    write_file(file, page_text(page).encode())
    return file


def write_stages(
    result: object,
    stages: Sequence[object],
    path: str | Path,
    windows: Sequence[tuple[int, int]],
    depths: Any,
) -> Path:
    """A page of all stages of a result, one after the other.

    Raises ``UserError`` if one ran as hardware, which counts no stalls.
    """
    from t2s.simulator.report.result import SimResult

    runs = [stage for stage in stages if isinstance(stage, SimResult)]
    if not runs or len(runs) < len(stages):
        raise UserError(
            "this run has no report",
            location=user_location(),
            expected="a result of t2s.simulate",
            given=repr(result),
        )
    return write_page(runs[-1].graph, runs, path, windows=windows, depths=depths)


def _depths(depths: Any, runs: Sequence[SimResult]) -> dict[str, int]:
    """Depths by channel, from a ``DepthFit`` or a mapping."""
    mapping = getattr(depths, "depths", depths)
    named = isinstance(mapping, Mapping) and all(isinstance(name, str) for name in mapping)
    numbers = {name: as_int(depth) for name, depth in mapping.items()} if named else {}
    least = {name: depth for name, depth in numbers.items() if depth is not None and depth > 0}
    if not named or len(least) < len(numbers):
        raise UserError(
            "depths= must map channel names to positive integers",
            location=user_location(),
            expected="the result of t2s.fit_depths(design), or a mapping from channels to depths",
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
