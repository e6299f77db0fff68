"""Verbs on several runs: ``simulate_many`` on all cores, ``fit_depths``, and ``compare``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.validate import checked_kind, checked_list
from t2s.driver.design import Design, Stage, StartedDesign
from t2s.driver.recognize import design_of
from t2s.driver.simulate import context_of, device_for, graph_on

if TYPE_CHECKING:
    from t2s.explore.depths import DepthFit
    from t2s.explore.parallel import DesignRun, Outcomes, RunGraph
    from t2s.report.comparison import Comparison
    from t2s.simulator.devices import Device
    from t2s.simulator.memory.spec import Dram
    from t2s.simulator.report.result import SimResult


@dataclass(frozen=True)
class Run:
    """A run of ``simulate_many``: the arguments of ``simulate``, and a name for tables.

    ``inputs=None`` only counts cycles; ``memory=None`` takes the device's memory.
    """

    design: object
    inputs: Mapping[str, Any] | None = field(default=None, repr=False)
    name: str | None = field(default=None, kw_only=True)
    device: str | Device = field(default="ideal", kw_only=True)
    memory: str | Dram | None = field(default=None, kw_only=True)
    engine: str = field(default="native", kw_only=True)
    max_cycles: int | None = field(default=None, kw_only=True)


def simulate_many(
    runs: Sequence[Run], *, workers: int | None = None, progress: bool | None = None
) -> Outcomes:
    """Simulate independent designs, inputs and devices on all cores.

    The outcomes are in the order of ``runs``; each has a ``result``, or an ``error`` that ended
    only this run, and ``.results`` has all results.  A design that occurs in several runs is
    lowered once.  Engines release the GIL, so the runs are threads.

    ``workers`` is the number of concurrent runs, by default one per core.  Ctrl-C ends all runs and
    returns the outcomes so far.
    """
    from t2s.explore.parallel import DesignRun, run_many

    runs = checked_list("runs", runs, Run, "a list of t2s.Run(design, inputs)")
    for run in runs:
        if run.name is not None:
            checked_kind("the name of a run", run.name, str, "a text, or None")
    designs: dict[int, Design] = {}

    def prepared(run: Run, name: str) -> DesignRun:
        design = designs.get(id(run.design)) or design_of(run.design)
        designs[id(run.design)] = design
        target = device_for(design, run.device, run.memory)
        return DesignRun(
            name=name,
            run=partial(_run, design, design.begin(run.inputs), target, times=run.inputs is None),
            device=target,
            engine=run.engine,
            max_cycles=run.max_cycles,
        )

    names = [f"run {n}" if run.name is None else run.name for n, run in enumerate(runs)]
    return run_many(
        [partial(prepared, run, name) for run, name in zip(runs, names, strict=True)],
        names,
        workers=workers,
        progress=progress,
    )


def _run(
    design: Design, begun: StartedDesign, target: Device, simulate: RunGraph, *, times: bool
) -> Any:
    """Run all stages of a design; only count cycles if it has no inputs."""

    def stage(stage: Stage) -> SimResult:
        arrays = None if times else stage.arrays
        graph = graph_on(design, stage, target)
        return simulate(graph, arrays, stage.scalars, context_of(stage))

    return begun.run(stage)


def fit_depths(
    design: object,
    inputs: Mapping[str, Any] | None = None,
    *,
    device: str | Device = "ideal",
    memory: str | Dram | None = None,
    slack: float = 0.0,
    budget_bytes: int | None = None,
    budget_blocks: int | None = None,
    workers: int | None = None,
    progress: bool | None = None,
) -> DepthFit:
    """FIFO sizing: the smallest channel depths with the cycle count of unbounded channels.

    The depths are minimal: lowering any single one costs cycles.  Without a shared memory bandwidth
    they are often the least, that is, no other solution is smaller in any channel; the result says
    which it is (``minimal``, ``least``).  ``fit.apply(design)`` is the graph with these depths.

    Parameters
    ----------
    design, device, memory: as for ``simulate``.
    inputs: the scalars that loop bounds, conditions and indices depend on.  Arrays are needed only
        where control depends on data, and then the depths are the smallest for these arrays.
    slack: tolerated increase of the cycles, 0.01 for one percent.
    budget_bytes, budget_blocks: RAM that all FIFOs together may take.  The result then has the
        ``front`` of cycles against RAM, and the depths of its fastest point within the budget.
    workers: concurrent runs, by default one per core.
    progress: show a progress bar: ``True`` always, ``False`` never, ``None`` for long searches.

    Ctrl-C ends the search with the best depths so far.  Raises ``UserError`` for a budget that
    cannot be met, ``DeadlockError`` for a design that deadlocks however deep its channels are.
    """
    from t2s.explore.depths import fit_depths as fit_graph

    recognized = design_of(design)
    stage = recognized.only_stage(inputs, "fit_depths")
    target = device_for(recognized, device, memory)
    return fit_graph(
        graph_on(recognized, stage, target),
        None if inputs is None else stage.arrays,
        parameters=stage.scalars,
        device=target,
        slack=slack,
        budget_bytes=budget_bytes,
        budget_blocks=budget_blocks,
        workers=workers,
        progress=progress,
        context=context_of(stage),
    )


# ``compare``: two results side by side.


def compare(before: Any, after: Any, *, names: Sequence[str] = ("A", "B")) -> Comparison:
    """Compare two results: what differs, and the causes of their difference in cycles.

    Both are results of ``t2s.simulate`` or ``t2s.sparse.simulate``, possibly the partial ``result``
    of a run that was cut short, which the comparison then mentions.  ``names`` are their labels.
    Peak occupancies of channels take one more run of each.

    Raises ``UserError`` for anything else: a cycle count, or a run of hardware, has no causes.
    """
    from t2s.report.comparison import comparison_of

    location = user_location()
    first, second = runs_of(before, "first", location), runs_of(after, "second", location)
    labels = tuple(names) if isinstance(names, Sequence) and not isinstance(names, str) else ()
    if len(labels) != 2 or not all(isinstance(n, str) and n for n in labels) or len({*labels}) < 2:
        raise UserError(
            "names= must be two different texts",
            location=location,
            expected='names=("A", "B"), two texts that differ',
            given=repr(names)[:200],
        )
    return comparison_of(first, second, (labels[0], labels[1]))


def runs_of(
    result: Any, which: str, location: SourceLocation | None = None
) -> tuple[SimResult, ...]:
    """The simulated stages of any kind of result; ``UserError`` if it has none."""
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
