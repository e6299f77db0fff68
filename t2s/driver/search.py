"""``search``: the best design of a Func within a budget, with a bound for all others.

In goes a Func without directives, a sum over a box (``design_space/contraction.py``), or outputs
of a recurrence (``design_space/recurrence.py``).  Out comes a ``Found`` (``search_result.py``): the
best design as a Func with directives, its exact cycles, and a lower bound on those of every design
of the space.  Points are timed by the simulator in the order of their bounds, so that the search
can stop as soon as no other point can be better.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import nsmallest
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s import __version__
from t2s.core.display import Table
from t2s.core.errors import T2SWarning, UserError
from t2s.core.location import user_location
from t2s.core.progress import ProgressBar
from t2s.core.validate import as_int, checked_seconds
from t2s.design_space.branch_and_bound import (
    AnyPoint,
    Cut,
    Objective,
    Search,
    Timed,
    best_first,
)
from t2s.design_space.columns import Budget, Shapes
from t2s.design_space.contraction import (
    check_without_directives,
    contraction_of,
    only_output,
    with_single_reads,
)
from t2s.design_space.energy import checked_prices
from t2s.design_space.journal import Journal, Outcome, Subject, digest
from t2s.design_space.recurrence import recurrence_of
from t2s.design_space.recurrence_space import (
    RecurrenceSpace,
)
from t2s.design_space.space import Space
from t2s.design_space.workers import Ending
from t2s.driver.recognize import design_of
from t2s.driver.search_result import Found, FoundDesign
from t2s.driver.search_trial import ContractionTrial, RecurrenceTrial, SearchTrial
from t2s.driver.simulate import device_for
from t2s.func.freeze import freeze
from t2s.spatial.schedule import ScheduledFunc

if TYPE_CHECKING:
    from t2s.simulator.devices import Device
    from t2s.simulator.memory.spec import Dram


def search(
    design: ScheduledFunc | Sequence[ScheduledFunc],
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
        ``C[i, j] = term`` alone; or the outputs of Funcs that read one another at neighbors, such
        as ``S[i]`` of ``S[i - 1]``, whose bounds may depend on other loops.
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
    outputs = check_without_directives(design)
    target = device_for(design_of(design), device, memory)
    program = freeze(outputs, constants)
    trial: ContractionTrial | RecurrenceTrial
    if program.systems:
        trial = RecurrenceTrial(outputs, recurrence_of(outputs, program), constants, target)
    else:
        func = with_single_reads(only_output(outputs))
        trial = ContractionTrial(func, contraction_of(func, constants), constants, target)
    _check_fabric(target)
    goal = _objective(objective, energy)
    limits = _budget(budget, dsp, ram, target)
    limit = checked_seconds("seconds=", seconds)
    prices = None if energy is None else checked_prices(energy)
    space, costs = trial.space(limits, prices)
    ranking = _Ranking(trial, progress)
    with ranking, _Memory(journal, trial) as known:
        state = best_first(
            space,
            trial.outcome,
            seconds=limit,
            objective=goal,
            energy=costs,
            executor=executor,
            recall=known.recall,
            record=known.record,
            report=ranking.update,
        )
    if state.best is None:
        if state.ending is Ending.INTERRUPTED:
            raise KeyboardInterrupt
        if state.refused and not state.over_budget:
            trial.timed(trial.smallest)  # whose error tells why, as a missing parameter
        raise _nothing_fits(trial, space, state)
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

    def __init__(self, trial: SearchTrial, wanted: bool | None) -> None:
        super().__init__(wanted)
        self.trial = trial
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
                self.trial.decisions(timed.point),
            )
            for place, timed in enumerate(best, 1)
        )
        headers = ("", "cycles", "DSP", "RAM", "bytes", "design")
        title = f"searching {self.trial.name}"
        return Table(title=title, headers=headers, rows=rows, left=frozenset({5}))

    def _above(self) -> Any:
        return None if self.state is None else self.table(self.state).rich()

    def _columns(self) -> list[Any]:
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        texts = [TextColumn("{task.fields[text]}"), TextColumn("{task.fields[left]}")]
        return [SpinnerColumn(), TimeElapsedColumn(), *texts]


class _Memory:
    """What was timed before: by a journal if there is one."""

    def __init__(self, path: str | Path | None, trial: SearchTrial) -> None:
        self.trial = trial
        self.subject = Subject(
            version=__version__,
            definition=trial.name,
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

    def _key(self, point: AnyPoint) -> str:
        return self.subject.key(self.trial.text(point))

    def recall(self, point: AnyPoint) -> Outcome | None:
        return self.known.get(self._key(point)) if self.known else None

    def record(self, point: AnyPoint, outcome: Outcome) -> None:
        if self.journal is not None:
            self.journal.put([(self._key(point), outcome)])


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


def _nothing_fits(trial: SearchTrial, space: Space | RecurrenceSpace, state: Search) -> UserError:
    """Which limit leaves no design, and the nearest budget that leaves one."""
    budget, refusals = space.budget, sorted({refused.reason for refused in state.refused})
    if isinstance(space, Space):
        dsp, ram = fewest_blocks(space)
    else:
        one_pe = trial.outcome(trial.smallest, Cut(cycles=1, steps=1))
        dsp, ram = one_pe.dsp_blocks or 0, one_pe.ram_blocks or 0
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
        f"no design of {trial.name} fits the budget",
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


def _found(trial: SearchTrial, state: Search) -> Found:
    ranked = sorted(state.timed, key=state.rank)
    reasons: dict[str, int] = {}
    for refused in state.refused:
        reasons[refused.reason] = reasons.get(refused.reason, 0) + 1
    assert state.lower_bound is not None  # a design was timed
    return Found(
        name=trial.name,
        objective=state.objective,
        designs=tuple(_design(trial, timed) for timed in ranked),
        lower_bound=state.lower_bound,
        device=trial.device,
        budget=state.space.budget,
        space=trial.in_words,
        tried=state.tried,
        refused=reasons,
        over_budget=state.over_budget,
        cut=state.cut,
        bounded=state.bounded,
        complete=state.complete,
        smallest=state.complete and state.smallest,
        ending=state.ending,
    )


def _design(trial: SearchTrial, timed: Timed) -> FoundDesign:
    return FoundDesign(
        cycles=timed.cycles,
        dsp=timed.dsp,
        ram=timed.ram,
        bytes=timed.bytes,
        energy=timed.energy,
        decisions=trial.decisions(timed.point),
        device=trial.device,
        constants=trial.constants,
        _build=partial(trial.design, timed.point),
    )
