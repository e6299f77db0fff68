"""``search``: the best design of a Func within a budget, with a bound for all others.

In goes a Func without directives, a sum over a box (``design_space/contraction.py``); out comes a
``Found`` (``search_result.py``): the best design as a Func with directives, its exact cycles, and a
lower bound on those of every design of the space (``design_space/space.py``).  Points are timed by
the simulator in the order of their bounds, so that the search can stop as soon as no other point
can be better.
"""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from heapq import nsmallest
from math import inf, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s import __version__
from t2s.core.display import Table
from t2s.core.errors import InternalError, T2SError, T2SWarning, UnsupportedError, UserError
from t2s.core.expr import Apply
from t2s.core.location import user_location
from t2s.core.ops import Op
from t2s.core.progress import ProgressBar
from t2s.core.validate import as_int, checked_seconds
from t2s.core.walk import walk
from t2s.design_space.branch_and_bound import NEVER, Cut, Objective, Search, Timed, best_first
from t2s.design_space.columns import Budget, Datapath, LoadUnit, Shapes
from t2s.design_space.contraction import Contraction, contraction_of, with_single_reads
from t2s.design_space.energy import Energy, checked_prices
from t2s.design_space.journal import Journal, Outcome, Subject, digest
from t2s.design_space.point import (
    Directives,
    Point,
    apply,
    directives_of,
    single_pe,
    symbols_of,
)
from t2s.design_space.space import LANES, Space, in_words, smallest_tiles
from t2s.design_space.workers import Ending
from t2s.driver.lower import interpret, lower
from t2s.driver.recognize import design_of
from t2s.driver.search_result import Found, FoundDesign
from t2s.driver.simulate import device_for, graph_on, simulate
from t2s.func.freeze import freeze
from t2s.graph.analysis import datapath_latencies, memory_bytes, recurrences
from t2s.graph.body import Load
from t2s.graph.nodes import PEArray
from t2s.report.resources import dsp_blocks, estimate_resources, unit_blocks
from t2s.simulator.limits import Limits
from t2s.simulator.program.build import build_program
from t2s.simulator.run import GraphContext, run_to_the_end
from t2s.spatial.schedule import ScheduledFunc

if TYPE_CHECKING:
    from t2s.simulator.devices import Device, Fabric
    from t2s.simulator.memory.spec import Dram

MANY_FIRINGS = 2_000_000
"""Runs of more firings may be cut short; those of fewer take no longer than others to decide."""

MOST_CHECKED = 1 << 26
"""The most evaluations of the term for which the values of the winner are checked."""


def search(
    design: ScheduledFunc,
    inputs: Mapping[str, Any] | None = None,
    *,
    device: str | Device = "arria10",
    memory: str | Dram | None = None,
    objective: str = "time",
    energy: Mapping[str, float] | None = None,
    budget: Mapping[str, int] | None = None,
    dsp: int | None = None,
    ram: int | None = None,
    seconds: float = 60.0,
    executor: object = None,
    journal: str | Path | None = None,
    progress: bool | None = None,
) -> Found:
    """The best design of a Func within a budget, and a bound for all others.

    Parameters
    ----------
    design: a Func without directives over constant bounds: ``C[i, j] = 0`` and
        ``C[i, j] += term``, the same with ``-=``, ``*=``, ``t2s.min`` or ``t2s.max``, or
        ``C[i, j] = term`` alone.
    inputs: values of the integer ``Param`` objects in its bounds.
    device, memory: as for ``t2s.cycles``; the device needs DSP and RAM blocks to count.
    objective: ``"time"``: the fewest cycles, of these the fewest RAM blocks, then DSP blocks;
        ``"front"``: all designs of which no other is as good in all four; ``"energy"``: the least
        sum of what ``energy`` says.
    energy: the energy of each kind of access, such as ``{"DRAM byte": 20.0, "multiply": 3.7}``;
        also ``"RAM byte"``, ``"channel byte"``, ``"cycle"`` and other operations.
    budget: the most blocks that a design may take, ``{"dsp": ..., "ram": ...}``; by default those
        of the device.
    dsp, ram: the same as arguments.
    seconds: after this time the best design so far is returned, with a bound for the others.
    executor: where designs are timed: ``None`` in this process, a number of processes or
        ``"processes"``, a ``concurrent.futures`` executor, a Dask ``Client`` or
        ``"dask://host:port"``, or ``"ray"``.  What is found does not depend on it.
    journal: a file that keeps what was timed, so that a search can go on where another one of the
        same definition and device was ended.
    progress: show the ranking while it runs: ``True`` always, ``False`` never, ``None`` for long
        searches on a terminal.

    Ctrl-C ends the search with the best design so far, and so does an executor that is gone, with a
    ``T2SWarning``.  The Func itself is not changed.  Raises ``UserError`` for a definition that
    cannot be searched, and for a budget that no design fits.
    """
    constants = dict(inputs or {})
    design = with_single_reads(design)
    target = device_for(design_of(design), device, memory)
    contraction = contraction_of(design, constants)
    _check_fabric(target)
    goal = _objective(objective, energy)
    limits = _budget(budget, dsp, ram, target)
    limit = checked_seconds("seconds=", seconds)
    prices = None if energy is None else checked_prices(energy)
    trial = _Trial(design, contraction, constants, target)
    space = Space(
        contraction=contraction, device=target, budget=limits, datapaths=trial.datapaths()
    )
    ranking = _Ranking(design.name, contraction, progress)
    with ranking, _Memory(journal, trial) as known:
        state = best_first(
            space,
            trial.outcome,
            seconds=limit,
            objective=goal,
            energy=None if prices is None else trial.energy(prices, space),
            executor=executor,
            recall=known.recall,
            record=known.record,
            report=ranking.update,
        )
    if state.best is None:
        if state.ending is Ending.INTERRUPTED:
            raise KeyboardInterrupt
        if state.refused and not state.over_budget:
            trial.timed(single_pe(contraction, 1))  # whose error tells why, as a missing parameter
        raise _nothing_fits(design, space, state)
    if state.ending is Ending.GONE:
        gone = UserError(
            "the executor of the search is gone: this is the best design until then",
            expected="an executor that works until the search has ended",
            given=state.problem,
            hint="search again with another executor: a journal has what was timed",
        )
        warnings.warn(str(gone), T2SWarning, stacklevel=2)
    found = _found(trial, state)
    trial.check_values(found.design)
    return found


class _Ranking(ProgressBar):
    """The five best designs while a search runs, and what may be left."""

    def __init__(self, name: str, contraction: Contraction, wanted: bool | None) -> None:
        super().__init__(wanted)
        self.name = name
        self.contraction = contraction
        self.state: Search | None = None
        self.began = time.monotonic()

    def update(self, state: Search) -> None:
        self.state = state
        tried = state.tried
        rate = tried / max(time.monotonic() - self.began, 1e-3)
        self._show(tried, None, text=f"{tried:,} designs timed, {rate:.1f}/s", left=self._left)

    @property
    def _left(self) -> str:
        """The least open bound and the gap."""
        if self.state is None or self.state.best is None or self.state.lower_bound is None:
            return ""
        least, value = self.state.lower_bound, self.state.value(self.state.best)
        return f"bound {least:,.10g}, gap {(value / least - 1 if least else 0):.2%}"

    def table(self, state: Search) -> Table:
        """The five best."""
        best = nsmallest(5, state.timed, key=state.rank)
        rows = tuple(
            (
                str(place),
                *(f"{cost:,}" for cost in timed.costs),
                timed.point.text(self.contraction),
            )
            for place, timed in enumerate(best, 1)
        )
        headers = ("", "cycles", "DSP", "RAM", "bytes", "design")
        title = f"searching {self.name}"
        return Table(title=title, headers=headers, rows=rows, left=frozenset({5}))

    def _above(self) -> Any:
        return None if self.state is None else self.table(self.state).rich()

    def _columns(self) -> list[Any]:
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        texts = [TextColumn("{task.fields[text]}"), TextColumn("{task.fields[left]}")]
        return [SpinnerColumn(), TimeElapsedColumn(), *texts]


class _Memory:
    """What was timed before: by a journal if there is one."""

    def __init__(self, path: str | Path | None, trial: _Trial) -> None:
        self.trial = trial
        self.subject = Subject(
            version=__version__,
            definition=trial.contraction.name,
            definition_digest=digest(trial.definition),
            device=trial.device.name,
            device_digest=digest(trial.device),
        )
        self.journal = None if path is None else Journal(path, self.subject)
        self.known = {} if self.journal is None else self.journal.known()

    def __enter__(self) -> _Memory:
        return self

    def __exit__(self, *_: object) -> None:
        if self.journal is not None:
            self.journal.close()

    def _key(self, point: Point) -> str:
        return self.subject.key(self.trial.text(point))

    def recall(self, point: Point) -> Outcome | None:
        return self.known.get(self._key(point)) if self.known else None

    def record(self, point: Point, outcome: Outcome) -> None:
        if self.journal is not None:
            self.journal.put([(self._key(point), outcome)])


class _Deadline:
    """An observer that ends a run after so many seconds of ``time.time()``, as Ctrl-C does."""

    def __init__(self, until: float | None) -> None:
        self.until = inf if until is None else until
        self.passed = False

    def advanced(self, *, cycle: int, done: int, total: int) -> None:
        """See ``Observer``."""
        if time.time() > self.until:
            self.passed = True
            raise KeyboardInterrupt


class _Trial:
    """Builds points of a Func and times them."""

    def __init__(
        self,
        func: ScheduledFunc,
        contraction: Contraction,
        constants: Mapping[str, Any],
        device: Device,
    ) -> None:
        self.contraction = contraction
        self.constants = constants
        self.device = device
        self.pickled = pickle.dumps(func)  # each point is applied to a copy of its own
        self.names = frozenset(symbols_of(func))

    @property
    def definition(self) -> str:
        """The definition with its sizes as text."""
        return f"{self.contraction.definition}\n{sorted(self.constants.items())}"

    def directives(self, point: Point) -> Directives:
        return directives_of(self.contraction, point, self.names)

    def text(self, point: Point) -> str:
        """The whole program of a point: the definition, and a line for each directive."""
        calls = [
            f"{call.receiver}.{call.method}({', '.join(map(str, call.arguments))})"
            for call in self.directives(point).calls
        ]
        return "\n".join([self.definition, *calls])

    def design(self, point: Point) -> ScheduledFunc:
        func: ScheduledFunc = pickle.loads(self.pickled)
        apply(func, self.directives(point))
        return func

    def timed(self, point: Point) -> tuple[int, int, int]:
        """Exact cycles, DSP and RAM blocks."""
        outcome = self._outcome(point, NEVER)
        assert outcome.cycles is not None
        assert outcome.dsp_blocks is not None
        assert outcome.ram_blocks is not None
        return outcome.cycles, outcome.dsp_blocks, outcome.ram_blocks

    def outcome(self, point: Point, cut: Cut = NEVER) -> Outcome:
        """Exact cycles and blocks, or why the compiler refuses the point; see ``Measure``."""
        try:
            return self._outcome(point, cut)
        except InternalError:
            raise
        except T2SError as error:
            return Outcome(refusal=str(error).splitlines()[0])

    def _outcome(self, point: Point, cut: Cut) -> Outcome:
        design = design_of(self.design(point))
        with warnings.catch_warnings():
            # a buffer that fills too slowly costs cycles, which are counted
            warnings.simplefilter("ignore", T2SWarning)
            stage = design.only_stage(self.constants, "a search")
            blocks = estimate_resources(stage.graph, self.device)
            graph = graph_on(design, stage, self.device)
            program = build_program(graph, self.device, None, stage.scalars, None, GraphContext())
            limits, watch = Limits(), _Deadline(cut.until)
            if program.total_firings > MANY_FIRINGS:
                limits = Limits(max_cycles=cut.cycles, give_up=True, most_steps=cut.steps)
            run = run_to_the_end(program, "native", limits, watch)
        if run.interrupted and not watch.passed:
            raise KeyboardInterrupt
        known = Outcome(dsp_blocks=blocks.dsp_blocks, ram_blocks=blocks.ram_blocks)
        if not run.finished:
            return replace(known, more_than=(run.at_least or run.cycles) - 1)
        return replace(known, cycles=run.cycles)

    def datapaths(self) -> dict[int, Datapath]:
        """The datapath of a design of a single PE, by vector length.

        Vectors that the compiler refuses, as of elements that are apart in memory, have none.
        """
        longest = self.contraction.extents.get(self.contraction.vector_loop or "", 1)
        paths = {1: self.datapath(1)}
        for lanes in LANES[1:]:
            if lanes < 2 * longest:
                with suppress(UserError, UnsupportedError):
                    paths[lanes] = self.datapath(lanes)
        return paths

    def energy(self, prices: Mapping[str, float], space: Space) -> Energy:
        """Prices with the operations of an evaluation, which are those of a single PE."""
        from t2s.report.page.traffic import operators_of_firing

        operations: dict[int, Mapping[str, int]] = {}
        for lanes in space.datapaths:
            graph = lower(self.design(single_pe(self.contraction, lanes)), self.constants)
            node = next(node for node in graph.nodes if node.name == self.contraction.name)
            operations[lanes] = operators_of_firing(node)  # type: ignore[arg-type]  # no machine
        return Energy(prices=prices, operations=operations)

    def datapath(self, lanes: int) -> Datapath:
        point = single_pe(self.contraction, lanes)
        graph = lower(self.design(point), self.constants)
        nodes = {node.name: node for node in graph.nodes if isinstance(node, PEArray)}
        fabric = self.device.fabric
        assert fabric is not None  # checked before
        loaders = self.directives(point).loaders
        loads: dict[str, LoadUnit] = {}
        for operand in (*self.contraction.operands, *self.contraction.initial):
            channel = next(
                channel
                for channel in graph.inputs_of(self.contraction.name)
                if channel.source == loaders.get(operand.name)
                or (
                    channel.source not in loaders.values()
                    and any(
                        isinstance(statement, Load) and statement.tensor == operand.name
                        for statement in nodes[channel.source].body
                    )
                )
            )
            unit = nodes[channel.source]
            units = [unit, *(nodes[each.source] for each in graph.inputs_of(unit.name))]
            element = channel.stream.element
            loads[operand.name] = LoadUnit(
                dsp=dsp_blocks(unit, fabric),
                ram=sum(unit_blocks(each, fabric) for each in units),
                bits=(1 if element.is_bool else element.bits) * element.lanes,
                bytes=sum(map(memory_bytes, units)),
                widest=max(map(memory_bytes, units)),
            )
        pe, latency_of = nodes[self.contraction.name], self.device.latency_of
        return Datapath(
            pe=dsp_blocks(pe, fabric),
            padded=self.blocks_of_padded_chain(lanes, fabric) or dsp_blocks(pe, fabric),
            latency=max(datapath_latencies(pe, latency_of, 0).values()),
            carried=max((each.latency for each in recurrences(pe, latency_of)), default=0),
            loads=loads,
        )

    def blocks_of_padded_chain(self, lanes: int, fabric: Fabric) -> Fraction | None:
        """DSP blocks of a PE where more PEs share a reduction than divide it, if any can."""
        contraction = self.contraction
        for loop in contraction.loops_in_space[len(contraction.outputs) :]:
            vectors = -(-loop.extent // (lanes if loop.name == contraction.vector_loop else 1))
            for pes in smallest_tiles(vectors):
                if vectors % pes:
                    point = replace(single_pe(contraction, lanes), rows=((loop.name, pes),))
                    with suppress(UserError, UnsupportedError):
                        nodes = lower(self.design(point), self.constants).nodes
                        node = next(node for node in nodes if node.name == contraction.name)
                        return dsp_blocks(node, fabric)
        return None

    def check_values(self, design: ScheduledFunc) -> None:
        """Compare the winner's values with those of the definition, on random small integers."""
        if self.contraction.steps > MOST_CHECKED:
            return
        inputs = {**_random_inputs(design, self.constants), **self.constants}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", T2SWarning)
            result = simulate(design, inputs, device=self.device, progress=False)
        found, expected = result.outputs[design.name], interpret(design, inputs)
        error = 0.0 if _is_exact(self.contraction) else self.rounding(expected)
        if not np.allclose(found, expected, rtol=0, atol=error, equal_nan=True):
            raise InternalError(f"the design of {design.name} that was found has wrong values")

    def rounding(self, expected: np.ndarray[Any, Any]) -> float:
        """How far apart two orders of a sum may be, by a rounding error for each step."""
        finite = np.abs(np.asarray(expected, np.float64))
        largest = float(finite[np.isfinite(finite)].max(initial=0))
        epsilon = 2.0**-7 if self.contraction.type.bits == 16 else 2.0**-23
        return prod(loop.extent for loop in self.contraction.reductions) * epsilon * largest


_EXACT = frozenset(
    {Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.MINIMUM, Op.MAXIMUM, Op.NEGATE, Op.ABSOLUTE}
)


def _is_exact(contraction: Contraction) -> bool:
    """Whether results do not depend on the order of a reduction if inputs are small integers."""
    if not contraction.type.is_float:
        return True
    operators = [node.operator for node in walk(contraction.term) if isinstance(node, Apply)]
    if contraction.operator in (Op.MULTIPLY, Op.DIVIDE):
        return False
    return contraction.type.bits > 16 and _EXACT.issuperset(operators)


def _random_inputs(
    design: ScheduledFunc, constants: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Small integers for every input, so that sums are exact in any order."""
    program = freeze([design], constants or {})
    generator = np.random.default_rng(0)
    arrays: dict[str, Any] = {
        array.name: generator.integers(0, 4, array.shape).astype(array.type.numpy)
        for array in program.inputs
    }
    return arrays | {parameter.name: 2 for parameter in program.parameters}


def _check_fabric(device: Device) -> None:
    """Refuse a device whose blocks have no number: any array of PEs would fit it."""
    if device.fabric is None:
        from t2s.simulator.devices import DEVICES

        raise UserError(
            f"the device {device.name} has no DSP and RAM blocks that would limit a search",
            location=user_location(),
            expected=f"{', '.join(n for n, known in DEVICES.items() if known.fabric)}, or a Device "
            "with a fabric",
            given=device.name,
        )


def _objective(name: object, energy: object) -> Objective:
    goals = {goal.value: goal for goal in Objective}
    if not isinstance(name, str) or name not in goals:
        raise UserError(
            "objective= must be the name of an objective",
            location=user_location(),
            expected='"time", "front" or "energy"',
            given=repr(name),
        )
    if goals[name] is Objective.ENERGY and energy is None:
        raise UserError(
            'objective="energy" needs the energy of each kind of access',
            location=user_location(),
            expected='energy={"DRAM byte": 20.0, "RAM byte": 1.2, "multiply": 3.7}, for example',
            given="no energy=",
        )
    return goals[name]


def _budget(
    budget: Mapping[str, int] | None, dsp: int | None, ram: int | None, device: Device
) -> Budget:
    limits: dict[str, int | None] = {"dsp": dsp, "ram": ram}
    if budget is not None:
        names = {*budget} if isinstance(budget, Mapping) else {""}
        twice = [name for name in names & {*limits} if limits[name] is not None]
        if twice or not names <= {*limits}:
            raise UserError(
                f"budget= and {twice[0]}= both limit the blocks"
                if twice
                else "budget= must map kinds of blocks to numbers",
                location=user_location(),
                expected='budget={"dsp": ..., "ram": ...}, or dsp= and ram=',
                given=repr(budget)[:200],
            )
        limits |= budget
    return Budget(
        dsp=_limit("dsp", limits["dsp"], device.dsp_blocks),
        ram=_limit("ram", limits["ram"], device.ram_blocks),
    )


def _limit(name: str, limit: int | None, available: int | None) -> int | None:
    if limit is None:
        return available
    number = as_int(limit)
    if number is None or number < 0:
        raise UserError(
            f"{name}= must be a number of blocks",
            location=user_location(),
            expected=f"an integer of at least 0, or None for those of the device ({available})",
            given=repr(limit),
        )
    return number


def _nothing_fits(func: ScheduledFunc, space: Space, state: Search) -> UserError:
    """Which limit leaves no design, and the nearest budget that leaves one."""
    budget, refusals = space.budget, sorted({refused.reason for refused in state.refused})
    dsp, ram = fewest_blocks(space)
    nearest = Budget(
        dsp=None if budget.dsp is None else max(budget.dsp, dsp),
        ram=None if budget.ram is None else max(budget.ram, ram),
    )
    short = " and ".join(
        name
        for name, limit, needed in (("DSP", budget.dsp, dsp), ("RAM", budget.ram, ram))
        if limit is not None and limit < needed
    )
    given, hint = f"dsp={budget.dsp}, ram={budget.ram}", None
    if short:
        given += f": too few {short} blocks for any design"
        hint = f"the nearest budget that a design fits is dsp={nearest.dsp}, ram={nearest.ram}"
    elif refusals:
        given += f"; the compiler refused all {len(state.refused):,} designs that were tried: "
        given += "; ".join(refusals[:3])
    else:
        given += f"; all {state.over_budget:,} designs that were tried took more blocks than that"
    return UserError(
        f"no design of {func.name} fits the budget",
        location=user_location(),
        expected=f"at least {dsp:,} DSP and {ram:,} RAM blocks",
        given=given,
        hint=hint,
    )


def fewest_blocks(space: Space) -> tuple[int, int]:
    """DSP and RAM blocks of the design with the fewest beyond the budget.

    It has a single PE with one result: further ones only add theirs.
    """
    free = replace(space, budget=Budget(dsp=None, ram=None))
    most_dsp, most_ram = (inf if n is None else n for n in (space.budget.dsp, space.budget.ram))
    lanes = np.array(list(space.datapaths), np.int64)
    ones = np.ones((len(lanes), len(space.contraction.loops_in_space)), np.int64)
    tiles = np.ones((len(lanes), len(space.contraction.outputs)), np.int64)
    blocks: list[tuple[int, int]] = []
    for ways in space.ways():
        costs = free.costs(Shapes(pes=ones, tiles=tiles, lanes=lanes), ways)
        legal = zip(costs.dsp[costs.legal].tolist(), costs.ram[costs.legal].tolist(), strict=True)
        blocks += legal
    return min(
        blocks, key=lambda n: (max(0, n[0] - most_dsp) + max(0, n[1] - most_ram), n[0], n[1])
    )


def _found(trial: _Trial, state: Search) -> Found:
    ranked = sorted(state.timed, key=state.rank)
    reasons: dict[str, int] = {}
    for refused in state.refused:
        reasons[refused.reason] = reasons.get(refused.reason, 0) + 1
    assert state.lower_bound is not None  # a design was timed
    return Found(
        name=trial.contraction.name,
        objective=state.objective,
        designs=tuple(_design(trial, timed) for timed in ranked),
        lower_bound=state.lower_bound,
        device=trial.device,
        budget=state.space.budget,
        space=in_words(trial.contraction),
        tried=state.tried,
        refused=reasons,
        over_budget=state.over_budget,
        cut=state.cut,
        bounded=state.bounded,
        complete=state.complete,
        smallest=state.complete and state.smallest,
        ending=state.ending,
    )


def _design(trial: _Trial, timed: Timed) -> FoundDesign:
    return FoundDesign(
        cycles=timed.cycles,
        dsp=timed.dsp,
        ram=timed.ram,
        bytes=timed.bytes,
        energy=timed.energy,
        decisions=timed.point.text(trial.contraction),
        device=trial.device,
        constants=trial.constants,
        _build=partial(trial.design, timed.point),
    )
