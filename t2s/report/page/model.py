"""The model of the whole page: a part for each run, with the values of single firings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from t2s.core.arrays import named_inputs
from t2s.core.display import Table
from t2s.core.errors import UnsupportedError, UserError
from t2s.core.location import user_location
from t2s.core.logic import Logic
from t2s.core.names import counted
from t2s.core.ops import Array
from t2s.graph.graph import TensorRole
from t2s.report.logic import LOGIC, ChipLogic, RoutedChip
from t2s.report.page.chip import ChipMapModel, chip_map_of
from t2s.report.page.dram import DramOverTime, dram_of
from t2s.report.page.flame import FlamePart, flame_of
from t2s.report.page.loops import NestModel, nests_of
from t2s.report.page.main_limit import Limit, limit_of
from t2s.report.page.roofline import RooflineModel, roofline_of
from t2s.report.page.space_time import (
    FiringTexts,
    Observed,
    SpaceTimeModel,
    checked_windows,
    observe,
    space_time_of,
)
from t2s.report.reasons import AblationStep, LoopReason
from t2s.report.resources import ResourceReport, estimate_resources
from t2s.simulator.memory.report import BankedReport
from t2s.simulator.program.build import build_program
from t2s.simulator.reference_engine import watch_firings
from t2s.simulator.report.deadlock import DeadlockReport
from t2s.simulator.report.result import SimResult


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    """What a page shows beyond the run itself.

    Attributes
    ----------
    windows: windows of cycles, the first and the last one of each.
    inputs: the arrays that the run had, for the values of single firings.
    free_depths: the smallest depths that cost no cycles, by channel.
    reasons: the origin of loops, by node and loop.
    ladder: the ablation of directives: the design with its first ones, one more each time.
    units: resource counts of a chip without DSP and RAM blocks.
    logic: the estimate of its LUTs, flip-flops and clock.
    routed: what it takes after place and route.
    """

    windows: Sequence[tuple[int, int]] = ()
    inputs: Mapping[str, object] | None = None
    free_depths: Mapping[str, int] | None = None
    reasons: Mapping[tuple[str, str], LoopReason] | None = None
    ladder: tuple[AblationStep, ...] = ()
    units: tuple[Table, ...] = ()
    logic: ChipLogic | None = None
    routed: RoutedChip | None = None


@dataclass(frozen=True, kw_only=True)
class RunModel:
    """A run on the page.  ``unseen`` is the reason if there is no space-time diagram."""

    name: str
    summary: tuple[tuple[str, str], ...]
    cycles: int
    limit: Limit
    banner: str
    flame: FlamePart
    stalls: Table
    space_time: SpaceTimeModel | None
    unseen: str
    chip: ChipMapModel
    nests: tuple[NestModel, ...]
    roofline: RooflineModel | None
    resources: Table | None
    resource_summary: tuple[tuple[str, str], ...]
    resource_problem: str
    units: tuple[Table, ...]
    dram: DramOverTime | None
    shared: BankedReport | None
    deadlock: DeadlockReport | None
    ladder: tuple[AblationStep, ...]


@dataclass(frozen=True, kw_only=True)
class PageModel:
    """A page: its title, its consecutive runs, and sections above them: identity, title, HTML."""

    title: str
    runs: tuple[RunModel, ...]
    sections: tuple[tuple[str, str, str], ...] = ()


def run_model(result: SimResult, options: PageOptions) -> RunModel:
    """The model of a run; ``UserError`` for windows outside the run."""
    windows = checked_windows(options.windows, result.cycles)
    observed = observe(result, windows)
    space_time = None
    if observed is not None:
        space_time = space_time_of(observed, values_of(observed, options.inputs))
    resources, problem = _resources(result, options.logic)
    depths = None if options.free_depths is None else dict(options.free_depths)
    return RunModel(
        name=result.graph,
        summary=result.summary,
        cycles=result.cycles,
        limit=limit_of(result),
        banner=_banner(result),
        flame=flame_of(result),
        stalls=result.stalls.table,
        space_time=space_time,
        unseen="" if space_time is not None else _unseen(result),
        chip=chip_map_of(result, observed, depths),
        nests=nests_of(result, options.reasons or {}),
        roofline=roofline_of(result),
        resources=None if resources is None else _shares(resources, options.routed),
        resource_summary=() if resources is None else _summary(resources, options.routed),
        resource_problem=problem,
        units=options.units,
        dram=dram_of(result, observed),
        shared=result.shared,
        deadlock=result.deadlock,
        ladder=options.ladder,
    )


def _banner(result: SimResult) -> str:
    """The warning about a run that did not finish."""
    if result.finished and not result.tokens_left:
        return ""
    measured = f"all numbers are of the {counted(result.cycles, 'cycle')} until then"
    if result.limit_reached:
        return f"This run was cut short by its cycle limit: {measured}."
    if result.interrupted:
        return f"This run was interrupted from the keyboard: {measured}."
    if result.deadlock is not None:
        return f"This run ended in a deadlock: {measured}."
    unread = counted(sum(entry.tokens for entry in result.tokens_left), "token")
    return f"This run ended with {unread} left in channels: somebody sends too much."


def _unseen(result: SimResult) -> str:
    if not result.cycles or not result.program.pe_count:
        return "No PEs, or no cycles, to show."
    if not result.program.is_recorded:
        if result.machine_trace is not None:
            return "What machines did is not kept of a run that is so long."
        return "The plain engine does not keep what machines did: simulate with engine='native'."
    return f"{result.program.pe_count:,} PEs are too many to draw over time."


def _resources(result: SimResult, logic: ChipLogic | None) -> tuple[ResourceReport | None, str]:
    if result.device.fabric is None:
        return None, f"The device {result.device.name} has no DSP and RAM blocks to count."
    try:
        return estimate_resources(result.program.graph, result.device).with_logic(logic), ""
    except UnsupportedError as error:
        return None, f"No estimate: {error.message}; {error.given}."


def _summary(report: ResourceReport, routed: RoutedChip | None) -> tuple[tuple[str, str], ...]:
    """The totals of the estimate, and the clock of what was routed."""
    if routed is None:
        return report.summary
    return (*report.summary, ("clock after routing", f"{routed.clock_mhz:.1f} MHz"))


def _shares(report: ResourceReport, routed: RoutedChip | None) -> Table:
    """Used and available resources, by node."""
    available = [report.device.dsp_blocks, report.device.ram_blocks]
    headers = ["DSP", "RAM"]
    chip = report.chip
    if chip is not None:
        available += [chip.luts, chip.flip_flops]
        headers += LOGIC

    def row(name: str, taken: tuple[int, ...], logic: Logic | None) -> tuple[str, ...]:
        texts: list[str] = []
        if chip is not None and logic is not None:
            taken = (*taken, logic.lut_places, logic.flip_flops)
        for count, limit in zip(taken, available, strict=True):
            texts += (f"{count:,}", "-" if not limit else f"{count / limit:.1%}")
        return (name, *texts)

    rows = [row(node.name, (node.dsp_blocks, node.ram_blocks), node.logic) for node in report.nodes]
    used = "used" if routed is None else "estimated"
    rows.append(row(used, (report.dsp_blocks, report.ram_blocks), report.logic))
    if routed is not None:
        logic = Logic(luts=routed.luts, flip_flops=routed.flip_flops)
        blocks = (routed.dsp_blocks, routed.ram_blocks)
        rows.append(row("routed, with what is around it", blocks, logic))
    ends = [("-", "-") if not limit else (f"{limit:,}", "100.0%") for limit in available]
    rows.append(("available", *(text for end in ends for text in end)))
    return Table(
        title=f"estimated blocks of {report.device.name}",
        headers=("node", *(text for header in headers for text in (header, "share"))),
        rows=tuple(rows),
    )


# Values of single firings: the tokens that a PE took, and the values that it sent.
#
# Results store no values of firings, so the reference engine recomputes them from the inputs, for
# windows near the beginning of a run.

MOST_STEPS = 40_000
"""The most PEs times cycles that are recomputed."""

_MOST_LANES = 4


def values_of(observed: Observed, inputs: Mapping[str, Any] | None) -> FiringTexts:
    """Texts of the firings in early windows, by PE and cycle; none without inputs.

    Raises ``UserError`` if an array of the graph is not among the inputs.
    """
    program = observed.program
    most = MOST_STEPS // max(1, program.pe_count)
    ends = [line.last for _, line in observed.lines if line.is_exact and line.last <= most]
    if inputs is None or not ends:
        return {}
    named = named_inputs(inputs)
    arrays = {t.array for t in program.graph.tensors if t.role is TensorRole.INPUT}
    missing = sorted(arrays - set(named))
    if missing:
        raise UserError(
            f"the report has no {missing[0]} to show values with",
            location=user_location(),
            expected=f"inputs with {', '.join(sorted(arrays))}",
            given=", ".join(named) or "no inputs",
            hint="without inputs= the page shows loop indices and no values",
        )
    graph = program.graph
    built = build_program(
        graph, program.device, {name: named[name] for name in arrays}, program.parameters
    )
    texts: dict[tuple[int, int], str] = {}

    def told(pe: int, cycle: int, taken: Mapping[str, Array], sent: Mapping[str, Array]) -> None:
        texts[pe, cycle] = f"{_said('took', taken)}{_said('sent', sent)}".removeprefix("; ")

    watch_firings(replace(program, inputs=built.inputs), max(ends), told)
    return texts


def _said(verb: str, tokens: Mapping[str, Any]) -> str:
    texts = [f"{name} {_number(value)}" for name, value in tokens.items() if value is not None]
    return f"; {verb} {', '.join(texts)}" if texts else ""


def _number(value: Any) -> str:
    """A value, or the first lanes of a vector; machines send a value with its tag."""
    if isinstance(value, tuple):
        return " tag ".join(_number(part) for part in value)
    lanes = np.asarray(value).reshape(-1).tolist()
    shown = [
        f"{lane:.6g}" if isinstance(lane, float) else str(lane) for lane in lanes[:_MOST_LANES]
    ]
    more = ", …" if len(lanes) > _MOST_LANES else ""
    return shown[0] if len(lanes) == 1 else f"[{', '.join(shown)}{more}]"
