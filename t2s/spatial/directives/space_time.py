"""``space_time_transform``: map iterations to PEs and times.

Before -> after, for a convolution ``for i: for q`` with its sums moving through the array::

    space_time_transform([i, q], {p: q, t: i + q})
        ->  PEs [p: 5] each: for t from p to p + 15      (i = t - p, q = p)

Unscheduled, ``space_time_transform(ii, jj)``: the loops become space, all others stay in time.
Scheduled, ``space_time_transform([ii, jj], [1, 1])``: the loops become space, and the innermost
loop in time is skewed by their weighted sum.  General: every new loop is an expression of the old
ones; the last one is time, the others are space, so several loops may be projected into one.

Proved by isl, or refused: the transformation is injective (no PE computes two iterations at one
time), causal (every value takes at least one cycle to where it is needed) and local (it passes at
most one PE per cycle).  isl computes the inverse map, the bounds of the new loops and the holes in
the nest.  In hardware the links enforce the schedule: a value that has ``d`` cycles to the next PE
takes a channel of latency ``d``.  PEs start as soon as their operands arrive; there is no global
counter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from t2s.core.affine import tidy
from t2s.core.errors import InternalError, UserError
from t2s.core.expr import (
    Expr,
    Index,
    const,
    index_names,
    simplify,
    substitute,
)
from t2s.core.isl import LoopDomain, is_affine
from t2s.core.isl_maps import Transformation, condition
from t2s.core.printer import show
from t2s.spatial.analysis.lookup import check_new_names, find_serial
from t2s.spatial.analysis.recurrences import (
    MemberRead,
    RecurrenceTransfer,
    SpaceTimePlan,
    delayed_starts,
    member_reads,
    suggestion,
    transfers_of,
)
from t2s.spatial.directive import Directive
from t2s.spatial.directives.loops import Unroll, unroll
from t2s.spatial.ir import Calculation, LoopExecution, Recurrences, SpatialKernel, SpatialLoop
from t2s.spatial.kernels import as_system


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceTimeTransform(Directive):
    """``loops`` become loops in space and one loop in time.

    ``maps`` gives each new loop over the old ones, time last.  Without it ``coefficients`` gives
    the skew of time along each loop; without those the loops are unrolled and time stays.
    """

    loops: tuple[str, ...]
    coefficients: tuple[int, ...]
    maps: tuple[tuple[str, Expr], ...]

    @property
    def new_loops(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.maps if name not in self.loops)


def space_time_transform(kernel: SpatialKernel, directive: SpaceTimeTransform) -> SpatialKernel:
    """Apply the transformation to a kernel that computes."""
    if not directive.maps and not directive.coefficients:
        return unroll(
            kernel,
            Unroll(loops=directive.loops, location=directive.location, text=directive.text),
        )
    _check_early(kernel, directive)
    before = as_system(kernel)
    plan = _plan(before, directive)
    after = _transformed(before, plan)
    _check_schedule(before, after, plan)
    return after


def with_delayed_starts(kernel: SpatialKernel, directive: Directive) -> SpatialKernel:
    """Give a kernel with unrolled loops the schedule with which values arrive in time.

    It is unchanged if it needs no schedule, or none is legal.  ``directive`` is the one that
    unrolled the loops.
    """
    delays = None if _isolated(kernel) else delayed_starts(kernel)
    if delays is None:
        return kernel
    serial = {loop: replace(loop, kind=LoopExecution.SERIAL) for loop in delays.spaces}
    before = replace(kernel, loops=tuple(serial.get(loop, loop) for loop in kernel.loops))
    plan = SpaceTimePlan(
        sources=(*serial.values(), delays.time),
        maps=delays.maps(kernel),
        skewed=False,
        directive=directive,
    )
    return _transformed(before, plan) if _is_legal(before, plan) else kernel


def _check_early(kernel: SpatialKernel, directive: SpaceTimeTransform) -> None:
    if not isinstance(kernel.work, Calculation):
        raise UserError(
            f"{directive.text} on {kernel.name}: {kernel.name} only passes values on",
            location=directive.location,
            expected="the function that computes",
            hint=f"write it on {kernel.function} before isolating",
        )
    isolated = _isolated(kernel)
    if isolated or (kernel.store is None and not kernel.members):
        raise UserError(
            f"{directive.text} on {kernel.name}: parts of {kernel.name} are isolated already",
            location=directive.location,
            expected="the transformation before isolate_producer and isolate_consumer",
            given=f"isolated: {', '.join(isolated) or 'the results'}",
            hint="the isolated functions take over the loops as they are then",
        )
    if kernel.timed is not None:
        raise UserError(
            f"{directive.text} on {kernel.name}: {kernel.name} has a schedule already",
            location=directive.location,
            expected="one space-time transform",
            given=f"time is {kernel.timed}",
            hint="write both transformations as one: the new loops over the old ones",
        )


def _isolated(kernel: SpatialKernel) -> list[str]:
    """The functions that operands and results of a kernel are isolated into."""
    producers = [operand.producer for operand in kernel.operands]
    return producers + [x.consumer for x in kernel.results if x.consumer is not None]


def _plan(kernel: SpatialKernel, directive: SpaceTimeTransform) -> SpaceTimePlan:
    sources = [find_serial(kernel, name, directive) for name in directive.loops]
    if directive.maps:
        plan = SpaceTimePlan(
            sources=tuple(sources), maps=dict(directive.maps), skewed=False, directive=directive
        )
        check_new_names(kernel, tuple(plan.maps), directive.loops, directive)
        _check_maps(plan)
        return plan
    others = [loop for loop in kernel.kind(LoopExecution.SERIAL) if loop not in sources]
    if not others:
        raise UserError(
            f"{directive.text} on {kernel.name}: no loop is left in time",
            location=directive.location,
            expected="a loop in time that the schedule can skew",
            hint="name fewer loops, or give each new loop: "
            "space_time_transform([i, j], {p: i, t: i + j})",
        )
    time: Expr = Index(name=others[-1].name)
    for loop, factor in zip(sources, directive.coefficients, strict=True):
        term = Index(name=loop.name) * factor
        time = simplify(time + term)
    maps: dict[str, Expr] = {loop.name: Index(name=loop.name) for loop in sources}
    maps[others[-1].name] = time
    return SpaceTimePlan(
        sources=(*sources, others[-1]), maps=maps, skewed=True, directive=directive
    )


def _check_maps(plan: SpaceTimePlan) -> None:
    known = {loop.name for loop in plan.sources}
    for name, expr in plan.maps.items():
        unknown = sorted(index_names(expr) - known)
        if unknown or not is_affine(expr):
            raise UserError(
                f"{plan.directive.text}: {name} is not a sum of the loops",
                location=plan.directive.location,
                expected=f"an affine expression of {', '.join(loop.name for loop in plan.sources)}",
                given=show(expr),
                hint=f"{unknown[0]} is not one of the loops that are transformed"
                if unknown
                else "multiply loops by integers only",
            )


def _transformed(kernel: SpatialKernel, plan: SpaceTimePlan) -> SpatialKernel:
    names = {loop.name for loop in plan.sources}
    outer, inner = _around(kernel, plan)
    for loop in (*outer, *inner):
        needed = sorted((index_names(loop.minimum) | index_names(loop.extent)) & names)
        if needed:
            raise UserError(
                f"{plan.directive.text} on {kernel.name}: the bounds of {loop.name} depend on "
                f"{needed[0]}",
                location=plan.directive.location,
                expected=f"{loop.name} among the loops that are transformed",
                given=f"{loop.name} from {show(loop.minimum)} to {show(loop.last)}",
                hint=f"add {loop.name} to the loops, and to the sum of {plan.time}",
            )
    if not isinstance(kernel.work, Recurrences):
        raise InternalError(f"{kernel.name} has no members")
    change = Transformation(*_change(kernel, plan.maps, plan))
    _check_injective(kernel, plan, change)
    loops = [*outer, *_new_loops(kernel, plan, change), *inner, *kernel.kind(LoopExecution.VECTOR)]
    values = change.inverse()
    result = replace(
        kernel,
        loops=tuple(loops),
        variables=tuple((name, tidy(substitute(expr, values))) for name, expr in kernel.variables),
        active=None,
        work=replace(kernel.work, timed=plan.time),
        reshaped=plan.directive,
    )
    nest = result.domain_of_iterations
    return replace(result, active=condition(nest, change.image))


def _around(
    kernel: SpatialKernel, plan: SpaceTimePlan
) -> tuple[list[SpatialLoop], list[SpatialLoop]]:
    """The loops outside and inside of the transformed ones."""
    names = {loop.name for loop in plan.sources}
    last = max(kernel.loops.index(loop) for loop in plan.sources)
    serial = [loop for loop in kernel.loops if loop.kind is not LoopExecution.VECTOR]
    outer = [x for x in serial if kernel.loops.index(x) < last and x.name not in names]
    return outer, [x for x in serial if kernel.loops.index(x) > last]


def _change(
    kernel: SpatialKernel, maps: Mapping[str, Expr], plan: SpaceTimePlan
) -> tuple[LoopDomain, dict[str, Expr]]:
    """All loops of the new nest over those of the old one."""
    outer, inner = _around(kernel, plan)
    new: dict[str, Expr] = {loop.name: Index(name=loop.name) for loop in outer}
    new |= maps
    new |= {loop.name: Index(name=loop.name) for loop in inner}
    return kernel.domain_of_iterations, new


def _new_loops(
    kernel: SpatialKernel, plan: SpaceTimePlan, change: Transformation
) -> list[SpatialLoop]:
    old = {loop.name: loop.definition for loop in plan.sources}
    result = []
    for name, expr in plan.maps.items():
        timed = name == plan.time
        if timed:
            span = change.span(name)
            minimum = span.first
            extent = tidy(span.last - span.first + 1)
        else:
            low, high = change.constant_range(name)
            minimum, extent = const(low), const(high - low + 1)
        what = "time of" if timed else "one PE each by"
        result.append(
            SpatialLoop(
                name=name,
                minimum=minimum,
                extent=extent,
                kind=LoopExecution.SERIAL if timed else LoopExecution.UNROLLED,
                reduction=False,
                definition=substitute(expr, old),
                reason=f"{what} {plan.directive.text}",
            )
        )
    return result


def _check_injective(kernel: SpatialKernel, plan: SpaceTimePlan, change: Transformation) -> None:
    clash = change.clash()
    if clash is None:
        return
    points = [", ".join(f"{name}={at}" for name, at in point.items()) for point in clash]
    better = suggestion(kernel, plan, _is_legal)
    raise UserError(
        f"{plan.directive.text} on {kernel.name}: two iterations fall on one PE at one time",
        location=plan.directive.location,
        expected="at most one iteration for each PE and time",
        given=f"({points[0]}) and ({points[1]})",
        hint=better or "let time advance along every loop that stays in the PE",
    )


def _check_schedule(before: SpatialKernel, after: SpatialKernel, plan: SpaceTimePlan) -> None:
    """Check that the schedule allows every value enough time to arrive."""
    for read, transfer in _violations(after, plan):
        raise _refusal(before, read, transfer, plan)


def _violations(
    after: SpatialKernel, plan: SpaceTimePlan
) -> Iterator[tuple[MemberRead, RecurrenceTransfer]]:
    """Transfers that the schedule allows too little time."""
    for read in member_reads(after):
        for transfer in transfers_of(after, read).transfers:
            cycles = _cycles(transfer, plan.time)
            if transfer.immediate and transfer.stays:
                continue  # a member of the same iteration
            if cycles is not None and cycles < max(1, _distance(transfer)):
                yield read, transfer


def _distance(transfer: RecurrenceTransfer) -> int:
    return max((abs(step) for _, step in transfer.hop), default=0)


def _cycles(transfer: RecurrenceTransfer, time: str) -> int | None:
    """Cycles that the schedule allows a value; ``None`` if another loop advances in between.

    That is a loop outside of the schedule, or, for a value that stays in its PE, one inside.
    """
    for at, (loop, step) in enumerate(transfer.delay):
        if loop.name == time:
            inner = next((by for _, by in transfer.delay[at + 1 :] if by), 0)
            return None if not step and transfer.stays and inner > 0 else step
        if step > 0:
            return None
        if step < 0:
            return step
    return 0


def _refusal(
    kernel: SpatialKernel, read: MemberRead, transfer: RecurrenceTransfer, plan: SpaceTimePlan
) -> UserError:
    cycles, distance = _cycles(transfer, plan.time) or 0, _distance(transfer)
    moves = ", ".join(f"{loop.name} by {step}" for loop, step in transfer.hop if step)
    where = f"to another PE ({moves})" if moves else "in its PE"
    if cycles < 1:
        problem = f"{read.member} would need {show(read.read)} before it is there"
        expected = "at least one cycle from computing a value to using it"
    else:
        problem = f"{show(read.read)} would have to pass {distance} PEs in {cycles} cycle"
        problem += "s" if cycles > 1 else ""
        expected = "at most one PE for each cycle"
    return UserError(
        f"{plan.directive.text} on {kernel.name}: {problem}",
        location=plan.directive.location,
        expected=expected,
        given=f"{cycles} cycle{'s' if abs(cycles) != 1 else ''} of {plan.time} {where}",
        notes=((read.read.location, f"{show(read.read)} is read here"),),
        hint=suggestion(kernel, plan, _is_legal) or "let time advance along the dependence",
    )


def _is_legal(kernel: SpatialKernel, plan: SpaceTimePlan) -> bool:
    if Transformation(*_change(kernel, plan.maps, plan)).clash() is not None:
        return False
    try:
        return not list(_violations(_transformed(kernel, plan), plan))
    except UserError:
        return False
