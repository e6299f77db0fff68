"""``fit_depths``, the entry point of FIFO sizing, and its result, ``DepthFit``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from t2s.core.display import NotebookCard, NotebookDisplay, Table
from t2s.core.errors import InternalError, UserError
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.core.svg import PALETTE, Bar, SvgPicture, bar_chart
from t2s.core.validate import as_int
from t2s.explore.depth_search import (
    Depths,
    DepthSearch,
    Point,
    RamCost,
    Timings,
    all_combinations,
    minimize,
    pareto,
    scatter,
    step_down,
    try_all,
    unbounded,
)
from t2s.explore.parallel import Steps, Workers
from t2s.graph.arrays import check_given
from t2s.graph.graph import Channel, Graph, with_depths
from t2s.report.resources import fifo_blocks
from t2s.simulator.devices import Device, Fabric
from t2s.simulator.engine_registry import find_engine
from t2s.simulator.limits import Limits
from t2s.simulator.program.build import build_program
from t2s.simulator.program.sim_program import RunContext, SimProgram

MOST_SLACK = 1000
"""The largest ``slack``: additional cycles as a multiple of the design's."""


def fit_depths(
    graph: Graph,
    inputs: Mapping[str, Array] | None = None,
    *,
    parameters: Mapping[str, Array] | None = None,
    device: str | Device = "ideal",
    engine: str = "native",
    slack: float = 0.0,
    budget_bytes: int | None = None,
    budget_blocks: int | None = None,
    workers: int | None = None,
    progress: bool | None = None,
    context: RunContext | None = None,
) -> DepthFit:
    """See ``t2s.fit_depths``; ``parameters`` are the run-time scalars of the design.

    ``context`` is what the design adds to results, including those of errors.
    """
    data = inputs if graph.machines else None
    if inputs is not None and data is None:
        check_given(graph, inputs, parameters or {})
    program = build_program(graph, device, data, parameters, context=context)
    budget = _budget(program, budget_bytes, budget_blocks)
    with Workers(workers) as crew, Steps("fitting depths", progress) as steps:
        program = _without_values(program, crew)
        search = _Fitting(program, engine, crew, steps, _checked_slack(slack))
        interrupted = False
        front = None
        try:
            search.fit()
            if budget is not None:
                search.explore(budget[0])
        except KeyboardInterrupt:
            if search.state is None:
                raise
            interrupted = True
            crew.watch.stop()
    if budget is not None:
        front = _front(search, *budget)
    return _result(search, front, interrupted)


def _without_values(program: SimProgram, crew: Workers) -> SimProgram:
    """The times-only program, with its machines traced once."""
    if not program.graph.machines:
        return program
    result = find_engine("native").run(program, Limits(), crew.watch)
    if result.interrupted:
        raise KeyboardInterrupt
    assert result.machine_trace is not None  # the native engine keeps it
    return replace(program.traced(result.machine_trace), inputs=None)


class _Fitting:
    """The state of a search, which stays valid at an interrupt."""

    def __init__(
        self, program: SimProgram, engine: str, crew: Workers, steps: Steps, slack: float
    ) -> None:
        self.program = program
        self.slack = slack
        self.timings = Timings(program, engine, crew)
        self.timings.on_run = self._tell
        self.state: DepthSearch | None = None
        self.points: list[Point] = []
        self.exhaustive = False
        self.before_cycles: int | None = None
        self.reference_runs = 0
        self.unbounded = 0
        self.bounds: Depths = ()
        self._engine, self._crew, self._steps = engine, crew, steps

    @property
    def runs(self) -> int:
        """The number of runs."""
        return self.timings.runs + self.reference_runs

    def fit(self) -> None:
        """Find the smallest depths."""

        def told() -> None:
            self.reference_runs += 1
            self._tell()

        result, upper = unbounded(self.program, self._engine, self._crew, told)
        self.timings.keep(upper, result.cycles)
        self.unbounded, self.bounds = result.cycles, upper
        self.state = DepthSearch(cycles=self._allowed(result.cycles), upper=upper, best=upper)
        before = tuple(timing.channel.capacity for timing in self.program.channels)
        self.before_cycles = self.timings.cycles([before])[0]
        if self.before_cycles is not None and self.before_cycles < result.cycles:
            allowed = self._allowed(self.before_cycles)
            self.state = DepthSearch(cycles=allowed, upper=before, best=before)
        minimize(self.timings, self.state, _bits(self.program), self._keep)

    def _allowed(self, cycles: int) -> int:
        return cycles + int(cycles * self.slack)

    def explore(self, cost: RamCost) -> None:
        """Find cheaper depths and their cost in cycles."""
        state = self.state
        if state is None:
            raise InternalError("no fitted depths to start from")
        cycles = self.timings.cycles([state.best])[0]
        if cycles is None:
            raise InternalError("the fitted depths do not end")
        fitted = Point(depths=state.best, ram=cost.total(state.best), cycles=cycles)
        self.points.append(fitted)
        candidates = all_combinations(cost, state.best)
        if candidates is None:
            step_down(self.timings, cost, fitted, self.points.append)
        else:
            try_all(self.timings, cost, candidates, self.points.append)
            self.exhaustive = True

    def _keep(self, state: DepthSearch) -> None:
        self.state = state

    def _tell(self) -> None:
        cycles = "" if self.state is None else f"{self.state.cycles:,} cycles"
        self._steps.told(self.runs, None, cycles)


def _bits(program: SimProgram) -> list[int]:
    """The bits of one more token of depth, for every channel."""
    channels = [timing.channel for timing in program.channels]
    return [8 * channel.element_count * channel.stream.element.bytes for channel in channels]


def _bytes_of(channel: Channel) -> int:
    return channel.capacity * channel.element_count * channel.stream.element.bytes


def _blocks_of(channel: Channel, fabric: Fabric | None) -> int | None:
    return None if fabric is None else fifo_blocks(channel, fabric)


def _budget(
    program: SimProgram, in_bytes: int | None, in_blocks: int | None
) -> tuple[RamCost, int] | None:
    """The cost function and the budget; ``None`` without a budget."""
    if in_bytes is None and in_blocks is None:
        return None
    if in_bytes is not None and in_blocks is not None:
        raise UserError(
            "there are two budgets",
            location=user_location(),
            expected="budget_bytes or budget_blocks",
            given="both",
        )
    limit = in_bytes if in_bytes is not None else in_blocks
    amount = as_int(limit)
    if amount is None or amount < 0:
        raise UserError(
            "the budget is not an amount of RAM",
            location=user_location(),
            expected="an integer of at least 0",
            given=repr(limit),
        )
    channels = [timing.channel for timing in program.channels]
    if in_bytes is not None:
        cost = RamCost(unit="bytes", of=lambda c, d: _bytes_of(replace(channels[c], capacity=d)))
        return cost, amount
    fabric = program.device.fabric
    if fabric is None:
        raise UserError(
            f"the device {program.device.name} has no RAM blocks to count",
            location=user_location(),
            expected="budget_bytes, or a device with a fabric",
            given=f"budget_blocks={limit}",
        )
    return (
        RamCost(
            unit="RAM blocks", of=lambda c, d: fifo_blocks(replace(channels[c], capacity=d), fabric)
        ),
        amount,
    )


def _checked_slack(slack: float) -> float:
    if isinstance(slack, int | float) and not isinstance(slack, bool) and 0 <= slack <= MOST_SLACK:
        return float(slack)
    raise UserError(
        "slack is not a share of the cycles",
        location=user_location(),
        expected=f"a number from 0 to {MOST_SLACK}, such as 0.01 for one per cent",
        given=repr(slack),
    )


def _named(search: _Fitting, depths: Depths) -> dict[str, int]:
    return dict(zip(search.timings.names, depths, strict=True))


def _front(search: _Fitting, cost: RamCost, budget: int) -> DepthFront:
    points = tuple(
        FrontPoint(depths=_named(search, point.depths), ram=point.ram, cycles=point.cycles)
        for point in pareto(search.points)
    )
    return DepthFront(points=points, unit=cost.unit, budget=budget, exhaustive=search.exhaustive)


def _result(search: _Fitting, front: DepthFront | None, interrupted: bool) -> DepthFit:
    state = search.state
    if state is None:
        raise InternalError("a search without a result")
    program = search.program
    depths = _named(search, state.best)
    best_cycles = search.timings.known(state.best)
    cycles = state.cycles if best_cycles is None else best_cycles
    if front is not None and front.chosen is not None:
        depths, cycles = dict(front.chosen.depths), front.chosen.cycles
    elif front is not None and not interrupted:
        raise _over_budget(front)
    rows = []
    for timing, bound in zip(program.channels, search.bounds, strict=True):
        fitted = replace(timing.channel, capacity=depths[timing.channel.name])
        rows.append(
            ChannelFit(
                name=fitted.name,
                fifos=fitted.element_count,
                before=timing.channel.capacity,
                bound=bound,
                depth=fitted.capacity,
                bytes=_bytes_of(fitted),
                ram_blocks=_blocks_of(fitted, program.device.fabric),
            )
        )
    unchanged = state.complete and depths == _named(search, state.best)
    return DepthFit(
        design=program.graph.name,
        device=program.device,
        cycles=cycles,
        unbounded_cycles=search.unbounded,
        before_cycles=search.before_cycles,
        channels=tuple(rows),
        minimal=unchanged,
        least=unchanged and state.least,
        interrupted=interrupted,
        runs=search.runs,
        front=front,
        graph=program.graph,
    )


def _over_budget(front: DepthFront) -> UserError:
    cheapest = min(front.points, key=lambda point: point.ram)
    return UserError(
        f"no channel depths keep the FIFOs within {front.budget:,} {front.unit}",
        location=user_location(),
        expected=f"a budget of at least {cheapest.ram:,} {front.unit}",
        given=f"{front.budget:,}",
        hint=f"the cheapest depths that end take {cheapest.cycles:,} cycles",
        notes=[(None, f"{name!r}: {depth}") for name, depth in cheapest.depths.items()],
    )


# ``DepthFit``: the result of FIFO sizing, as text and in a notebook.

NO_LIMIT = 1 << 30
"""The depth of channels that never block."""


class Lowerable(Protocol):
    """A user's Func, which lowers to a graph."""

    def lower(self) -> Graph:
        """The graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelFit:
    """A channel of a fit.  Depths are in tokens of one FIFO, ``bytes`` those of all its FIFOs.

    ``before`` is the depth of the design, ``bound`` one at which the sender is never blocked.
    ``ram_blocks`` is ``None`` on a device without RAM blocks.
    """

    name: str
    fifos: int
    before: int
    bound: int
    depth: int
    bytes: int
    ram_blocks: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontPoint:
    """Depths by channel name, the RAM of the FIFOs in the unit of the front, and the cycles."""

    depths: Mapping[str, int]
    ram: int
    cycles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthFront(NotebookDisplay):
    """The Pareto front of cycles against RAM.

    Attributes
    ----------
    points: the cheapest first.
    unit: of ``ram``: bytes or RAM blocks, of all FIFOs.
    budget: the requested budget, in the same unit.
    exhaustive: whether all depths up to the fitted ones were tried.
    """

    points: tuple[FrontPoint, ...]
    unit: str
    budget: int
    exhaustive: bool

    @property
    def chosen(self) -> FrontPoint | None:
        """The fastest point within the budget; ``None`` if there is none."""
        fitting = [point for point in self.points if point.ram <= self.budget]
        return min(fitting, key=lambda point: point.cycles) if fitting else None

    @property
    def table(self) -> Table:
        """One row per point."""
        least = min((point.cycles for point in self.points), default=1)
        names = list(self.points[0].depths) if self.points else []
        rows = tuple(
            (
                f"{point.ram:,}",
                f"{point.cycles:,}",
                f"{point.cycles / max(1, least) - 1:+.1%}",
                "<- budget" if point is self.chosen else "",
                *(f"{depth:,}" for depth in point.depths.values()),
            )
            for point in self.points
        )
        tried = "all depths tried" if self.exhaustive else "depths tried step by step"
        return Table(
            title=f"cycles against {self.unit} of FIFOs, budget {self.budget:,} ({tried})",
            headers=(self.unit, "cycles", "slower", "", *names),
            rows=rows,
            left=frozenset({3}),
        )

    def svg(self) -> str:
        """The front as an inline picture."""
        return scatter(
            [(point.ram, point.cycles) for point in self.points],
            across=f"{self.unit} of FIFOs",
            up="cycles",
            limit=self.budget,
        )

    def __str__(self) -> str:
        return self.table.text()

    def __rich__(self) -> Any:
        return self.table.rich()

    def _card(self) -> NotebookCard:
        title = f"cycles against {self.unit} of FIFOs"
        return NotebookCard(title=title, parts=(SvgPicture(self.svg()), self.table))


@dataclass(frozen=True, kw_only=True)
class DepthFit(NotebookDisplay):
    """The smallest channel depths that keep a cycle count.

    Attributes
    ----------
    design, device: the fitted design, and its device.
    cycles: the cycles of the design with these depths.
    unbounded_cycles: its cycles with channels that never block.
    before_cycles: its cycles with its own depths; ``None`` if it did not end.
    channels: one row per channel, in graph order.
    minimal: whether lowering any single depth costs cycles.  False after an interrupt, and if a
        budget forced depths that cost cycles.
    least: whether, in addition, no other solution is smaller in any channel.
    interrupted: whether Ctrl-C ended the search; these are the best depths found until then.
    runs: the number of runs of the search.
    front: cycles against RAM, if there was a budget.
    """

    design: str
    device: Device
    cycles: int
    unbounded_cycles: int
    before_cycles: int | None
    channels: tuple[ChannelFit, ...]
    minimal: bool
    least: bool
    interrupted: bool
    runs: int
    front: DepthFront | None = None
    graph: Graph = field(repr=False)

    @property
    def depths(self) -> Mapping[str, int]:
        """The depth of every channel."""
        return {channel.name: channel.depth for channel in self.channels}

    @property
    def bytes(self) -> int:
        """Bytes of all FIFOs."""
        return sum(channel.bytes for channel in self.channels)

    @property
    def ram_blocks(self) -> int | None:
        """RAM blocks of all FIFOs; ``None`` on a device without RAM blocks."""
        blocks = [channel.ram_blocks for channel in self.channels]
        return sum(block or 0 for block in blocks) if None not in blocks else None

    def apply(self, design: Graph | Lowerable | None = None) -> Graph:
        """The graph of ``design``, by default the fitted one, with these depths.

        ``design`` is a graph, or a Func, which is lowered; ``UserError`` if its channels differ
        from the fitted ones.
        """
        graph = self.graph
        if design is not None:
            graph = design if isinstance(design, Graph) else design.lower()
        names = [channel.name for channel in graph.channels]
        if names != list(self.depths):
            raise UserError(
                f"the depths of {self.design!r} do not apply to {graph.name!r}",
                location=user_location(),
                expected=f"the channels {', '.join(self.depths)}",
                given=", ".join(names) or "no channels",
                hint="fit the depths of this design",
            )
        return with_depths(graph, self.depths)

    @property
    def guarantee(self) -> str:
        """The guarantee about the depths, in words."""
        if self.interrupted:
            return "interrupted: the best depths so far, perhaps not minimal"
        if self.least:
            return "the least: no depths that keep the cycles are smaller in any channel"
        if self.minimal:
            return "minimal: lowering any single depth costs cycles"
        return "the fastest found within the budget"

    @property
    def summary(self) -> tuple[tuple[str, str], ...]:
        """The headline numbers as (label, text)."""
        before = "deadlock" if self.before_cycles is None else f"{self.before_cycles:,}"
        lines = [
            ("cycles", f"{self.cycles:,}"),
            ("unbounded", f"{self.unbounded_cycles:,}"),
            ("before", before),
            ("depths", self.guarantee),
            ("FIFOs", f"{self.bytes:,} bytes"),
        ]
        if self.ram_blocks is not None:
            lines.append(("RAM blocks", f"{self.ram_blocks:,} of FIFOs"))
        return (*lines, ("timed", f"{self.runs} times"))

    @property
    def table(self) -> Table:
        """One row per channel."""
        rows = tuple(
            (
                channel.name,
                f"{channel.fifos:,}",
                f"{channel.before:,}",
                f"{channel.bound:,}",
                f"{channel.depth:,}",
                f"{channel.bytes:,}",
                "-" if channel.ram_blocks is None else f"{channel.ram_blocks:,}",
            )
            for channel in self.channels
        )
        headers = ("channel", "FIFOs", "before", "never blocks", "depth", "bytes", "RAM blocks")
        return Table(title="depths in tokens", headers=headers, rows=rows)

    @property
    def _title(self) -> str:
        return f"{self.design} on {self.device.name}: channel depths"

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self.summary)
        head = [f"{label.ljust(width)}  {text}" for label, text in self.summary]
        parts = ["\n".join([self._title, *head]), self.table.text()]
        return "\n\n".join(parts + ([str(self.front)] if self.front is not None else []))

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        head = "\n".join(f"{label:12} {text}" for label, text in self.summary)
        parts = [Text(f"{self._title}\n{head}"), self.table.rich()]
        return Group(*parts, *([self.front.table.rich()] if self.front is not None else []))

    def picture(self) -> SvgPicture:
        """The RAM of each channel's FIFOs, now and before."""
        bars = []
        for channel in self.channels:
            token = channel.bytes / max(1, channel.depth)
            saved = (channel.before - channel.depth) * token if channel.before < NO_LIMIT else 0
            was = "no limit" if channel.before >= NO_LIMIT else f"{channel.before:,}"
            now = f"{channel.name}: depth {channel.depth:,}, {channel.bytes:,} bytes"
            before = f"{channel.name}: depth {was} before"
            parts = (PALETTE[0], channel.bytes, now), (PALETTE[7], max(0.0, saved), before)
            word = f"{was} → {channel.depth:,}"
            bars.append(Bar(name=channel.name, parts=parts, word=word))
        legend = (("bytes now", PALETTE[0]), ("saved", PALETTE[7]))
        return bar_chart("bytes of the FIFOs of each channel", bars, legend=legend)

    def _card(self) -> NotebookCard:
        front = SvgPicture(self.front.svg()) if self.front is not None else None
        points = self.front.table if self.front is not None else None
        parts = (self.picture(), self.table, front, points)
        return NotebookCard(title=self._title, summary=self.summary, parts=parts)
