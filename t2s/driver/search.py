"""``search``: the fastest design of a Func within a budget, with a bound for all others.

In goes a Func without directives, a sum over a box (``design_space/contraction.py``); out comes a
``Found``: the best design as a Func with directives, its exact cycles, and a lower bound on the
cycles of every design of the space (``design_space/space.py``).  Points are timed by the
simulator in the order of their bounds, so that the search can stop as soon as no other point can
be faster.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s import __version__
from t2s.core.errors import InternalError, T2SError, T2SWarning, UnsupportedError, UserError
from t2s.core.expr import Apply
from t2s.core.location import user_location
from t2s.core.ops import Op
from t2s.core.validate import as_int
from t2s.core.walk import walk
from t2s.design_space.branch_and_bound import Search, Timed, best_first
from t2s.design_space.contraction import Contraction, contraction_of, with_single_reads
from t2s.design_space.journal import Journal, Outcome, Subject, digest
from t2s.design_space.point import Point, apply, directives_of, symbols_of
from t2s.design_space.space import LANES, Budget, DspBlocks, Space, single_pe
from t2s.driver.lower import interpret, lower, resources
from t2s.driver.recognize import design_of
from t2s.driver.search_result import Found, FoundDesign
from t2s.driver.simulate import cycles, device_for, simulate
from t2s.func.freeze import freeze
from t2s.report.resources import dsp_blocks
from t2s.spatial.schedule import ScheduledFunc

if TYPE_CHECKING:
    from t2s.simulator.devices import Device
    from t2s.simulator.memory.spec import Dram

MOST_CHECKED = 1 << 26
"""The most evaluations of the term for which the values of the winner are checked."""


def search(
    design: ScheduledFunc,
    inputs: Mapping[str, Any] | None = None,
    *,
    device: str | Device = "arria10",
    memory: str | Dram | None = None,
    dsp: int | None = None,
    ram: int | None = None,
    seconds: float = 60.0,
    executor: object = None,
    journal: str | Path | None = None,
    progress: bool | None = None,
) -> Found:
    """The fastest design of a Func within a budget, and a bound for all others.

    Parameters
    ----------
    design: a Func without directives: ``C[i, j] = 0`` and ``C[i, j] += term`` over constant bounds.
    inputs: values of the integer ``Param`` objects in its bounds.
    device, memory: as for ``t2s.cycles``; the device needs DSP and RAM blocks to count.
    dsp, ram: the most blocks that a design may take; by default those of the device.
    seconds: after this time the best design so far is returned, with a bound for the others.
    executor: where designs are timed: ``None`` in this process, a number of processes or
        ``"processes"``, a ``concurrent.futures`` executor, a Dask ``Client`` or
        ``"dask://host:port"``, or ``"ray"``.  What is found does not depend on it.
    journal: a file that keeps what was timed, so that a search can go on where another one of the
        same definition and device was ended.
    progress: show the progress: ``True`` always, ``False`` never, ``None`` for long searches.

    Ctrl-C ends the search with the best design so far.  The Func itself is not changed.  Raises
    ``UserError`` for a definition that cannot be searched, and for a budget that no design fits.
    """
    from t2s.explore.parallel import Steps

    constants = dict(inputs or {})
    design = with_single_reads(design)
    target = device_for(design_of(design), device, memory)
    contraction = contraction_of(design, constants)
    budget = Budget(
        dsp=_limit("dsp", dsp, target.dsp_blocks), ram=_limit("ram", ram, target.ram_blocks)
    )
    if not (isinstance(seconds, int | float) and seconds > 0):
        raise UserError(
            "seconds= must be a positive number",
            location=user_location(),
            expected="the time after which the best design so far is returned",
            given=repr(seconds),
        )
    trial = _Trial(design, contraction, constants, target)
    space = Space(
        contraction=contraction, device=target, budget=budget, dsp=trial.dsp_blocks()
    )
    with Steps(f"searching {design.name}", progress) as steps:

        def report(state: Search) -> None:
            best = "" if state.best is None else f"{state.best.cycles:,} cycles"
            steps.told(len(state.timed), None, best)

        with _Memory(journal, contraction, constants, target) as known:
            state = best_first(
                space,
                trial.outcome,
                seconds=seconds,
                executor=executor,
                recall=known.recall,
                record=known.record,
                report=report,
            )
    if state.best is None:
        if state.interrupted:
            raise KeyboardInterrupt
        raise _nothing_fits(design, space, state)
    found = _found(trial, state)
    trial.check_values(found.design)
    return found


class _Memory:
    """What was timed before: by a journal if there is one."""

    def __init__(
        self,
        path: str | Path | None,
        contraction: Contraction,
        constants: Mapping[str, Any],
        device: Device,
    ) -> None:
        self.subject = Subject(
            version=__version__,
            definition=contraction.name,
            definition_digest=digest(f"{contraction.definition}\n{sorted(constants.items())}"),
            device=device.name,
            device_digest=digest(device),
        )
        self.journal = None if path is None else Journal(path, self.subject)
        self.known = {} if self.journal is None else self.journal.known()

    def __enter__(self) -> _Memory:
        return self

    def __exit__(self, *_: object) -> None:
        if self.journal is not None:
            self.journal.close()

    def recall(self, point: Point) -> Outcome | None:
        return self.known.get(self.subject.key(repr(point))) if self.known else None

    def record(self, point: Point, outcome: Outcome) -> None:
        if self.journal is not None:
            self.journal.put([(self.subject.key(repr(point)), outcome)])


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
        self.definition = pickle.dumps(func)  # each point is applied to a copy of its own
        self.names = frozenset(symbols_of(func))

    def design(self, point: Point) -> ScheduledFunc:
        func: ScheduledFunc = pickle.loads(self.definition)
        apply(func, directives_of(self.contraction, point, self.names))
        return func

    def timed(self, point: Point) -> tuple[int, int, int]:
        """Exact cycles, DSP and RAM blocks."""
        design = self.design(point)
        with warnings.catch_warnings():
            # a buffer that fills too slowly costs cycles, which are counted
            warnings.simplefilter("ignore", T2SWarning)
            blocks = resources(design, self.constants, device=self.device)
            taken = cycles(design, self.constants, device=self.device)
        return taken, blocks.dsp_blocks, blocks.ram_blocks

    def outcome(self, point: Point) -> Outcome:
        """Exact cycles and blocks, or why the compiler refuses the point."""
        try:
            taken, dsp, ram = self.timed(point)
        except InternalError:
            raise
        except T2SError as error:
            return Outcome(refusal=str(error).splitlines()[0])
        return Outcome(cycles=taken, dsp_blocks=dsp, ram_blocks=ram)

    def dsp_blocks(self) -> dict[int, DspBlocks]:
        """The DSP blocks of a design of a single PE, by vector length.

        Vectors that the compiler refuses, as of elements that are apart in memory, have none.
        """
        longest = self.contraction.extents.get(self.contraction.vector_loop or "", 1)
        blocks = {1: self.dsp_blocks_with(1)}
        for lanes in LANES[1:]:
            if lanes < 2 * longest:
                with suppress(UserError, UnsupportedError):
                    blocks[lanes] = self.dsp_blocks_with(lanes)
        return blocks

    def dsp_blocks_with(self, lanes: int) -> DspBlocks:
        directives = directives_of(self.contraction, single_pe(self.contraction, lanes), self.names)
        func: ScheduledFunc = pickle.loads(self.definition)
        apply(func, directives)
        nodes = lower(func, self.constants).nodes
        fabric = self.device.fabric
        blocks = {n.name: dsp_blocks(n, fabric) if fabric else Fraction(0) for n in nodes}
        return DspBlocks(
            pe=blocks[func.name],
            loader={o: blocks[loader] for o, loader in directives.loaders.items()},
        )

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
    least = space.least_blocks()
    reasons = ", ".join(sorted({refused.reason for refused in state.refused})[:3])
    return UserError(
        f"no design of {func.name} fits the budget",
        location=user_location(),
        expected=f"at least {least.dsp:,} DSP and {least.ram:,} RAM blocks",
        given=f"dsp={space.budget.dsp}, ram={space.budget.ram}"
        + (f"; refused by the compiler: {reasons}" if reasons else ""),
    )


def _found(trial: _Trial, state: Search) -> Found:
    ranked = sorted(state.timed, key=state.rank)
    reasons: dict[str, int] = {}
    for refused in state.refused:
        reasons[refused.reason] = reasons.get(refused.reason, 0) + 1
    assert state.lower_bound is not None  # a design was timed
    return Found(
        designs=tuple(_design(trial, timed) for timed in ranked),
        lower_bound=state.lower_bound,
        device=trial.device,
        budget=state.space.budget,
        tried=len(state.timed) + len(state.refused) + state.over_budget,
        refused=reasons,
        over_budget=state.over_budget,
        bounded=state.bounded,
        complete=state.lower_bound == ranked[0].cycles,
    )


def _design(trial: _Trial, timed: Timed) -> FoundDesign:
    return FoundDesign(
        cycles=timed.cycles,
        dsp=timed.dsp,
        ram=timed.ram,
        bytes=timed.bytes,
        decisions=timed.point.text(trial.contraction),
        device=trial.device,
        constants=trial.constants,
        _build=partial(trial.design, timed.point),
    )
