"""``fit_depths``: the way into the search for channel depths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from t2s.core.checks import whole
from t2s.core.errors import InternalError, UserError
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.explore.depth_fit import ChannelFit, DepthFit, DepthFront, FrontPoint
from t2s.explore.fit import Depths, DepthSearch, Timings, minimize, unbounded
from t2s.explore.front import Point, RamCost, all_combinations, pareto, step_down, try_all
from t2s.explore.parallel import Steps, Workers
from t2s.graph.graph import Channel, Graph
from t2s.graph.inputs import check_given
from t2s.report.blocks_of_pe import fifo_blocks
from t2s.simulator.devices import Device
from t2s.simulator.engine_registry import find_engine
from t2s.simulator.fabric import Fabric
from t2s.simulator.limits import Limits
from t2s.simulator.program.build import build_program
from t2s.simulator.program.sim_program import SimProgram

MOST_SLACK = 1000
"""Largest ``slack``: the design may take so many times its cycles more."""


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
) -> DepthFit:
    """See ``t2s.fit_depths``; ``parameters`` are the scalars that the design takes at run time."""
    data = inputs if graph.machines else None
    if inputs is not None and data is None:
        check_given(graph, inputs, parameters or {})
    program = build_program(graph, device, data, parameters)
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
    """The program for its times alone: what its machines do is found out once."""
    if not program.graph.machines:
        return program
    result = find_engine("native").run(program, Limits(), crew.watch)
    if result.interrupted:
        raise KeyboardInterrupt
    if result.machine_trace is None:
        raise UserError(
            f"fitting the depths of {program.graph.name!r} needs llvmlite",
            location=user_location(),
            expected="llvmlite to be installed, because the control of the design depends on data",
            given="an environment without it",
            hint="pip install llvmlite",
        )
    return replace(program.traced(result.machine_trace), inputs=None)


class _Fitting:
    """The state of a search, which an interrupt leaves as it is."""

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
        """Times that the program was timed."""
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
        """Find cheaper depths and what they cost in cycles."""
        state = self.state
        if state is None:
            raise InternalError("there are no fitted depths to start from")
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
        found = "" if self.state is None else f"{self.state.cycles:,} cycles"
        self._steps.told(self.runs, None, found)


def _bits(program: SimProgram) -> list[int]:
    """Bits that one more token of depth costs, for every channel."""
    channels = [timing.channel for timing in program.channels]
    return [8 * channel.element_count * channel.stream.element.bytes for channel in channels]


def _bytes_of(channel: Channel) -> int:
    return channel.capacity * channel.element_count * channel.stream.element.bytes


def _blocks_of(channel: Channel, fabric: Fabric | None) -> int | None:
    return None if fabric is None else fifo_blocks(channel, fabric)


def _budget(
    program: SimProgram, in_bytes: int | None, in_blocks: int | None
) -> tuple[RamCost, int] | None:
    """How to count, and how much is allowed; ``None`` if there is no budget."""
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
    amount = whole(limit)
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
    found = search.timings.known(state.best)
    cycles = state.cycles if found is None else found
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
    kept = state.complete and depths == _named(search, state.best)
    return DepthFit(
        design=program.graph.name,
        device=program.device,
        cycles=cycles,
        unbounded_cycles=search.unbounded,
        before_cycles=search.before_cycles,
        channels=tuple(rows),
        minimal=kept,
        least=kept and state.least,
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
