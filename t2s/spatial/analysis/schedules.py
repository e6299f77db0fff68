"""Finding a legal schedule, to suggest it where one is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product

from t2s.core.errors import UserError
from t2s.core.expr import Const, Expr, Index, apply, const, index_names, simplify, substitute
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.spatial.analysis.recurrences import member_reads, transfers_of
from t2s.spatial.directive import SpaceTimeTransform
from t2s.spatial.ir import Kernel, Loop, LoopKind

MOST_SUGGESTED = 2
"""Largest coefficient of the schedules that are tried for a suggestion, besides extents."""

MOST_LOOPS = 5
"""Most loops of a transformation for which a suggestion is searched."""

MOST_TRIED = 50
"""Most causal schedules that are tried for a suggestion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A transformation of a kernel: old loops, new loops, each new one over the old ones."""

    sources: tuple[Loop, ...]
    maps: dict[str, Expr]
    directive: SpaceTimeTransform

    @property
    def time(self) -> str:
        return list(self.maps)[-1]


def suggestion(kernel: Kernel, plan: Plan, is_legal: Callable[[Kernel, Plan], bool]) -> str | None:
    """The simplest schedule with the given places that is legal, found by trying."""
    steps = _steps(kernel, plan)
    if steps is None or len(plan.sources) > MOST_LOOPS:
        return None
    tried = 0
    for coefficients in _candidates(plan):
        if not all(_fits(plan, step, coefficients) for step in steps):
            continue
        time = _linear(plan.sources, coefficients)
        skewed = bool(plan.directive.coefficients)
        if time is None or time == plan.maps[plan.time] or (skewed and coefficients[-1] != 1):
            continue
        tried += 1
        if tried > MOST_TRIED:
            return None
        if is_legal(kernel, replace(plan, maps={**plan.maps, plan.time: time})):
            if skewed:
                return f"the coefficients {list(coefficients[:-1])} would be legal"
            return f"{plan.time} = {show(time)} would be legal"
    return None


def _candidates(plan: Plan) -> list[tuple[int, ...]]:
    """Coefficients of schedules, the simplest first.

    Besides small numbers, a loop that is not placed may step over all iterations of those after it.
    """
    places = [expr for name, expr in plan.maps.items() if name != plan.time]
    placed = frozenset[str]().union(*map(index_names, places))
    weight = 1
    choices: list[set[int]] = []
    for loop in reversed(plan.sources):
        small = set(range(-MOST_SUGGESTED, MOST_SUGGESTED + 1))
        choices.insert(0, small | {weight, -weight})
        if loop.name not in placed and loop.constant is not None:
            weight *= loop.constant[1]
    return sorted(
        product(*choices),
        key=lambda c: (sum(map(abs, c)), sum(x < 0 for x in c), tuple(-x for x in c)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A distance of a read: over the loops that are transformed, and in PEs along all others."""

    sources: Mapping[str, int]
    hop: int


def _steps(kernel: Kernel, plan: Plan) -> list[_Step] | None:
    """The distances of all reads for which the schedule has to leave time.

    That is not so where a loop in time outside of the schedule advances, and in one iteration.
    ``None`` if the distances are not known, or if no schedule of these loops can leave time.
    """
    names = {loop.name for loop in plan.sources}
    last = max(kernel.loops.index(loop) for loop in plan.sources)
    outside = [x.name for x in kernel.loops[:last] if x.kind is LoopKind.SERIAL]
    found: list[_Step] = []
    try:
        transfers = [t for r in member_reads(kernel) for t in transfers_of(kernel, r).transfers]
    except UserError:
        return None
    for transfer in transfers:
        sources = {loop.name: step for loop, step in transfer.distance if loop.name in names}
        outer = (s for x, s in transfer.delay if x.name in outside and x.name not in names)
        if next(filter(None, outer), 0) > 0 or (transfer.immediate and transfer.stays):
            continue
        if not any(sources.values()):
            return None
        step = _Step(sources=sources, hop=max((abs(by) for _, by in transfer.hop), default=0))
        if step not in found:
            found.append(step)
    return found


def _fits(plan: Plan, step: _Step, coefficients: tuple[int, ...]) -> bool:
    """Whether a schedule gives a value time enough for its distance."""
    schedule = dict(zip((loop.name for loop in plan.sources), coefficients, strict=True))
    cycles = sum(schedule[name] * by for name, by in step.sources.items())
    places = (expr for name, expr in plan.maps.items() if name != plan.time)
    return cycles >= max(1, step.hop, *(abs(_advance(x, step.sources)) for x in places))


def _advance(expr: Expr, step: Mapping[str, int]) -> int:
    """How much an affine expression changes along a distance."""
    here = substitute(expr, {name: const(0) for name in index_names(expr)})
    there = substitute(expr, {name: const(step.get(name, 0)) for name in index_names(expr)})
    match simplify(apply(Op.SUBTRACT, there, here)):
        case Const(value=value):
            return int(value)
    return 0


def _linear(loops: tuple[Loop, ...], coefficients: tuple[int, ...]) -> Expr | None:
    """The sum of the loops with these factors, one with a positive factor first."""
    total: Expr | None = None
    terms = sorted(zip(loops, coefficients, strict=True), key=lambda term: term[1] < 0)
    for loop, factor in terms:
        if factor:
            term = simplify(apply(Op.MULTIPLY, const(abs(factor)), Index(name=loop.name)))
            start = const(0) if factor < 0 else None
            total = start if total is None else total
            operator = Op.ADD if factor > 0 else Op.SUBTRACT
            total = term if total is None else apply(operator, total, term)
    return total
