"""The dependences of a system of recurrences in its loop nest, and the schedules that are legal.

A member reads members at other iterations of the domain.  Through splits, reorders, unrolled loops
and space-time transforms this becomes, for each read, a few *transfers*: constant vectors over the
loops, each where its condition holds.  ``M[i - 1]`` with ``i`` split into ``i`` and ``ii`` comes
from ``ii - 1``, or, where ``ii`` is 0, from the last ``ii`` of the ``i`` before.

Along the loops in space a transfer is a hop to another PE, along those in time it is a delay.  The
delay must not be negative: that is causality (T2S-Tensor §II; Quinton's conditions).  A transfer
without hop and delay is a value of the same iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from t2s.core.errors import InternalError, UnsupportedError, UserError
from t2s.core.expr import (
    Const,
    Expr,
    Index,
    Read,
    apply,
    conjunction,
    const,
    index_names,
    simplify,
    substitute,
)
from t2s.core.isl import LoopDomain, NotAffine, is_affine
from t2s.core.isl_maps import Case, cases, condition, translated
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.func.accesses import GuardedRead, guarded_reads
from t2s.spatial.analysis.lookup import any_of, static_conjuncts
from t2s.spatial.directive import Directive
from t2s.spatial.ir import LoopExecution, Member, SpatialKernel, SpatialLoop, shifted

MOST_TRANSFERS = 32
"""Most different distances that one read may have over the loops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRead:
    """A read of a member by a member, under a static condition over the domain's variables."""

    member: str
    read: Read
    condition: Expr | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrenceTransfer:
    """One distance of a read.

    Attributes
    ----------
    source: the member that is read.
    distance: receiving minus sending iteration, for each loop that is not lanes.
    receive, send: where a value arrives and where it leaves, over the loops (``None``: always).
    """

    source: str
    distance: tuple[tuple[SpatialLoop, int], ...]
    receive: Expr | None
    send: Expr | None

    @property
    def hop(self) -> tuple[tuple[SpatialLoop, int], ...]:
        """The distance in space, unrolled loops only."""
        return tuple((x, d) for x, d in self.distance if x.kind is LoopExecution.UNROLLED)

    @property
    def delay(self) -> tuple[tuple[SpatialLoop, int], ...]:
        """The distance in time, outermost loop first."""
        return tuple((x, d) for x, d in self.distance if x.kind is LoopExecution.SERIAL)

    @property
    def stays(self) -> bool:
        """Whether the value stays in its PE."""
        return not any(step for _, step in self.hop)

    @property
    def immediate(self) -> bool:
        """Whether the value is received in the iteration of time that sends it."""
        return not any(step for _, step in self.delay)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTransfers:
    """All transfers of one read; ``read`` is found in the values of the members."""

    read: Read
    transfers: tuple[RecurrenceTransfer, ...]


def member_reads(kernel: SpatialKernel) -> list[MemberRead]:
    """The reads of members by members; equal reads are joined under one condition."""
    names = {member.name for member in kernel.members}
    reads_: dict[tuple[str, tuple[Expr, ...]], MemberRead] = {}
    for member, guarded in _guarded(kernel):
        if guarded.read.source not in names:
            continue
        key = guarded.read.source, guarded.read.indices
        where = conjunction(
            *(part for part in static_conjuncts(guarded.condition) if is_affine(part))
        )
        known = reads_.get(key)
        if known is not None:
            where = any_of(known.condition, where)
        reads_[key] = MemberRead(member=member.name, read=guarded.read, condition=where)
    return list(reads_.values())


def _guarded(kernel: SpatialKernel) -> Iterator[tuple[Member, GuardedRead]]:
    for member in kernel.members:
        for expr in (member.value, member.initial):
            if expr is not None:
                for guarded in guarded_reads(expr):
                    yield member, guarded


def transfers_of(kernel: SpatialKernel, read: MemberRead) -> ReadTransfers:
    """The transfers of one read.

    Raises ``UnsupportedError`` if the distance is not one of a few constants, and if the read may
    leave the domain under the static part of its condition.
    """
    loops = [loop for loop in kernel.loops if loop.kind is not LoopExecution.VECTOR]
    where = None if read.condition is None else kernel.first_lane(kernel.place(read.condition))
    domain = kernel.domain_of_iterations
    try:
        domain = domain if where is None else domain.restricted(where)
        _check_inside(kernel, read, domain)
        steps = _distances(kernel, read, loops)
        split = cases(domain, steps, MOST_TRANSFERS)
    except NotAffine:
        split = None
    if split is None:
        raise UnsupportedError(
            f"{show(read.read)} in {read.member} has no constant distance over the loops of "
            f"{kernel.name}",
            location=read.read.location or kernel.location,
            expected=f"at most {MOST_TRANSFERS} constant distances",
            given="loops: " + ", ".join(loop.name for loop in loops),
            hint="read the same element of an outer dimension, or transform the loops less",
        )
    return ReadTransfers(
        read=read.read,
        transfers=tuple(_transfer(kernel, read, loops, case) for case in split),
    )


def _distances(kernel: SpatialKernel, read: MemberRead, loops: list[SpatialLoop]) -> list[Expr]:
    """Receiving minus sending iteration, for each loop, over the loops."""
    member = _source(kernel, read)
    source = dict(zip(member.arguments, read.read.indices, strict=True))
    steps = []
    for loop in loops:
        receiving = kernel.place(loop.definition)
        sending = kernel.place(substitute(loop.definition, source))
        steps.append(kernel.first_lane(simplify(receiving - sending)))
    return steps


def _source(kernel: SpatialKernel, read: MemberRead) -> Member:
    member = kernel.member(read.read.source)
    if member is None:
        raise InternalError(f"{read.read.source} is not a member of {kernel.name}")
    return member


def _transfer(
    kernel: SpatialKernel, read: MemberRead, loops: list[SpatialLoop], case: Case
) -> RecurrenceTransfer:
    sending = translated(case.points, [-step for step in case.values])
    everywhere = kernel.domain_of_iterations
    return RecurrenceTransfer(
        source=read.read.source,
        distance=tuple(zip(loops, case.values, strict=True)),
        receive=condition(everywhere, case.points),
        send=condition(everywhere, sending),
    )


def _check_inside(kernel: SpatialKernel, read: MemberRead, domain: LoopDomain) -> None:
    """Check that the element that is read is computed, whatever the data."""
    member = _source(kernel, read)
    bounds = {dimension.name: dimension for dimension in kernel.domain}
    source: dict[str, Expr] = dict(zip(member.arguments, read.read.indices, strict=True))
    for argument, index in zip(member.arguments, read.read.indices, strict=True):
        dimension = bounds[argument]
        low = substitute(dimension.minimum, source)
        end = simplify(low + substitute(dimension.extent, source))
        for outside in (index < low, index >= end):
            test = kernel.first_lane(kernel.place(outside))
            point = domain.restricted(test).sample()
            if point is not None:
                where = ", ".join(f"{name}={value}" for name, value in point.items())
                raise UnsupportedError(
                    f"{show(read.read)} in {read.member} may be outside of {member.name}",
                    location=read.read.location or kernel.location,
                    expected=f"{argument} from {show(low)} to {show(shifted(end, -1))}, whatever "
                    "the data",
                    given=f"{show(index)} at {where}",
                    hint="guard it by a condition on the loops: t2s.select(i > 0, ...)",
                )


def firings_between(transfer: RecurrenceTransfer) -> int | None:
    """Firings of one PE from sending to receiving; ``None`` if the nest is not rectangular."""
    loops = [loop for loop, _ in transfer.delay]
    changed = [at for at, (_, step) in enumerate(transfer.delay) if step]
    if not changed:
        return 0
    inner = loops[changed[0] + 1 :]
    if any(loop.constant is None for loop in inner):
        return None
    total = 0
    for at, (_, step) in enumerate(transfer.delay):
        total += step * prod(_extent(loop) for loop in loops[at + 1 :]) if step else 0
    return total


def most_firings_between(kernel: SpatialKernel, transfer: RecurrenceTransfer) -> int:
    """An upper bound on the firings of one PE between sending and receiving."""
    loops = [loop for loop, _ in transfer.delay]
    total = 0
    for at, (_, step) in enumerate(transfer.delay):
        inner = prod(kernel.longest(loop) for loop in loops[at + 1 :])
        total += step * inner
    return max(total, 0)


def _extent(loop: SpatialLoop) -> int:
    return loop.constant[1] if loop.constant is not None else 1


def inner_address(transfer: RecurrenceTransfer, firings: int) -> tuple[SpatialLoop, ...] | None:
    """The innermost loops whose trip counts multiply to the delay: they address its register file.

    ``None`` if there is no such set of loops.
    """
    size = 1
    chosen: list[SpatialLoop] = []
    for loop, _ in reversed(transfer.delay):
        if size == firings:
            break
        if loop.constant is None:
            return None
        size *= loop.constant[1]
        chosen.insert(0, loop)
    return tuple(chosen) if size == firings else None


def position(loop: SpatialLoop) -> Expr:
    """The index of a loop from 0."""
    return simplify(Index(name=loop.name) - loop.minimum)


# Legal schedules: whether a kernel has one, and which one to suggest after a refusal.
#
# ``check_causal`` proves that in a recurrence with unrolled loops every value is computed before it
# is used.  If not, skewing time often helps: each PE starts later than the one before it, so that
# its operands have arrived.  The refusal then suggests that schedule, found from the distances of
# all reads.
#
# ``suggestion`` finds a schedule to replace an illegal ``space_time_transform``.

MOST_SUGGESTED = 2
"""Largest coefficient in the schedules tried for a suggestion, apart from extents."""

MOST_LOOPS = 5
"""Most loops of a transformation for which a suggestion is searched."""

MOST_TRIED = 50
"""Most causal schedules that are tried for a suggestion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceTimePlan:
    """A transformation of a kernel: old loops, new loops, each new one over the old ones.

    ``skewed``: the user gave the skew of an old time loop instead of new loops.
    """

    sources: tuple[SpatialLoop, ...]
    maps: dict[str, Expr]
    skewed: bool
    directive: Directive

    @property
    def time(self) -> str:
        return list(self.maps)[-1]


def suggestion(
    kernel: SpatialKernel,
    plan: SpaceTimePlan,
    is_legal: Callable[[SpatialKernel, SpaceTimePlan], bool],
) -> str | None:
    """The simplest legal schedule with the given places, found by enumeration."""
    steps = _steps(kernel, plan)
    if steps is None or len(plan.sources) > MOST_LOOPS:
        return None
    tried = 0
    for coefficients in _candidates(plan):
        if not all(_fits(plan, step, coefficients) for step in steps):
            continue
        time = _linear(plan.sources, coefficients)
        if time is None or time == plan.maps[plan.time] or (plan.skewed and coefficients[-1] != 1):
            continue
        tried += 1
        if tried > MOST_TRIED:
            return None
        if is_legal(kernel, replace(plan, maps={**plan.maps, plan.time: time})):
            if plan.skewed:
                return f"the coefficients {list(coefficients[:-1])} would be legal"
            return f"{plan.time} = {show(time)} would be legal"
    return None


def _candidates(plan: SpaceTimePlan) -> list[tuple[int, ...]]:
    """Coefficients of schedules, the simplest first.

    Besides small numbers, a loop that is not placed may step over all iterations of the loops
    after it.
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
    """A distance of a read: over the transformed loops, and in PEs along all others."""

    sources: Mapping[str, int]
    hop: int


def _steps(kernel: SpatialKernel, plan: SpaceTimePlan) -> list[_Step] | None:
    """The distances of all reads that the schedule has to allow time for.

    Reads within one iteration, and those over which a time loop outside of the schedule advances,
    need none.  ``None`` if the distances are unknown, or if no schedule of these loops can allow
    enough time.
    """
    names = {loop.name for loop in plan.sources}
    last = max(kernel.loops.index(loop) for loop in plan.sources)
    outside = [x.name for x in kernel.loops[:last] if x.kind is LoopExecution.SERIAL]
    steps: list[_Step] = []
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
        if step not in steps:
            steps.append(step)
    return steps


def _fits(plan: SpaceTimePlan, step: _Step, coefficients: tuple[int, ...]) -> bool:
    """Whether a schedule allows a value enough time for its distance."""
    schedule = dict(zip((loop.name for loop in plan.sources), coefficients, strict=True))
    cycles = sum(schedule[name] * by for name, by in step.sources.items())
    places = (expr for name, expr in plan.maps.items() if name != plan.time)
    return cycles >= max(1, step.hop, *(abs(_advance(x, step.sources)) for x in places))


def _advance(expr: Expr, step: Mapping[str, int]) -> int:
    """The change of an affine expression along a distance."""
    start = substitute(expr, {name: const(0) for name in index_names(expr)})
    end = substitute(expr, {name: const(step.get(name, 0)) for name in index_names(expr)})
    match simplify(end - start):
        case Const(value=value):
            return int(value)
    return 0


def _linear(loops: tuple[SpatialLoop, ...], coefficients: tuple[int, ...]) -> Expr | None:
    """The sum of the loops with these factors, beginning with a positive factor."""
    total: Expr | None = None
    terms = sorted(zip(loops, coefficients, strict=True), key=lambda term: term[1] < 0)
    for loop, factor in terms:
        if factor:
            term = simplify(abs(factor) * Index(name=loop.name))
            start = const(0) if factor < 0 else None
            total = start if total is None else total
            operator = Op.ADD if factor > 0 else Op.SUBTRACT
            total = term if total is None else apply(operator, total, term)
    return total


MOST_TRIED = 50_000
"""Most combinations of skews that are tried for a hint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayedStarts:
    """A schedule for unrolled loops in which PEs start one after the other.

    Along ``spaces[n]`` each PE starts ``skews[n]`` iterations of ``time`` after its predecessor.
    """

    spaces: tuple[SpatialLoop, ...]
    time: SpatialLoop
    skews: tuple[int, ...]

    def maps(self, kernel: SpatialKernel) -> dict[str, Expr]:
        """The new loops over the old ones, the skewed one last, by a new name."""
        places: dict[str, Expr] = {space.name: Index(name=space.name) for space in self.spaces}
        name = NameSupply(loop.name for loop in kernel.loops).fresh("time")
        total: Expr = Index(name=self.time.name)
        for space, skew in zip(self.spaces, self.skews, strict=True):
            term = simplify(abs(skew) * Index(name=space.name))
            if skew:
                total = apply(Op.ADD if skew > 0 else Op.SUBTRACT, total, term)
        return {**places, name: total}

    def text(self, kernel: SpatialKernel) -> str:
        """The variable and the directive, as the user would write them."""
        maps = self.maps(kernel)
        new = list(maps)[-1]
        loops = ", ".join(loop.name for loop in (*self.spaces, self.time))
        named = ", ".join(f"{name}: {show(expr)}" for name, expr in maps.items())
        return f'{new} = Var("{new}"): space_time_transform([{loops}], {{{named}}})'


def check_causal(
    kernel: SpatialKernel,
    read: MemberRead,
    transfer: RecurrenceTransfer,
    everything: Sequence[RecurrenceTransfer],
) -> None:
    """Raise ``UserError`` if a value would be needed before it is computed.

    ``everything`` has the transfers of all reads, which the schedule in the hint must satisfy.
    """
    early = _early(transfer)
    if early is None:
        return
    loop, step = early
    directive = kernel.reshaped
    subject = f"{directive.text} on {kernel.name}: " if directive is not None else ""
    schedule = _legal_schedule(kernel, loop, everything)
    raise UserError(
        f"{subject}{read.member} needs {show(read.read)} before it is computed",
        location=directive.location if directive is not None else kernel.location,
        expected="an order of the loops in which every value is computed before it is used",
        given=f"it is computed {-step} iteration{'s' if step != -1 else ''} of {loop.name} later",
        notes=((read.read.location, f"{show(read.read)} is read here"),),
        hint="put the loops along which it depends on earlier values outside, in the order of "
        "the definition"
        if schedule is None
        else f"in place of the unrolling, with {schedule.text(kernel)}",
    )


def _early(transfer: RecurrenceTransfer) -> tuple[SpatialLoop, int] | None:
    """The loop along which a value is used too early, and by how much; ``None`` if it is not."""
    first = next(((loop, step) for loop, step in transfer.delay if step), None)
    return None if first is None or first[1] > 0 else first


def delayed_starts(kernel: SpatialKernel) -> DelayedStarts | None:
    """The skewed schedule that unrolled loops need; ``None`` if they need none.

    Also ``None`` if no schedule of this form exists.
    """
    try:
        transfers = [t for r in member_reads(kernel) for t in transfers_of(kernel, r).transfers]
    except UserError:
        return None
    early = next((early for transfer in transfers if (early := _early(transfer)) is not None), None)
    return None if early is None else _legal_schedule(kernel, early[0], transfers)


def _legal_schedule(
    kernel: SpatialKernel, loop: SpatialLoop, everything: Sequence[RecurrenceTransfer]
) -> DelayedStarts | None:
    """Delays of the PEs with which every value arrives in time; ``None`` if there are none.

    The offending loop is skewed if that helps, else the outermost one that can be.
    """
    spaces = kernel.kind(LoopExecution.UNROLLED)
    if kernel.timed is not None or not spaces:
        return None
    for time in dict.fromkeys([loop, *kernel.kind(LoopExecution.SERIAL)]):
        needs = _needs(everything, time, spaces)
        skews = None if needs is None else _skews(needs, len(spaces))
        if skews is not None:
            return DelayedStarts(spaces=tuple(spaces), time=time, skews=skews)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Need:
    """The constraint that skews times ``hops`` are at least ``cycles``."""

    hops: tuple[int, ...]
    cycles: int

    def is_met(self, skews: Sequence[int]) -> bool:
        return sum(by * hop for by, hop in zip(skews, self.hops, strict=True)) >= self.cycles


def _needs(
    everything: Sequence[RecurrenceTransfer], time: SpatialLoop, spaces: Sequence[SpatialLoop]
) -> list[_Need] | None:
    """The constraints that the transfers put on skews of a loop; ``None`` if no skew helps."""
    needs: dict[_Need, None] = {}
    for transfer in everything:
        outer, step, inner = _delays(transfer, time)
        if outer < 0:
            return None
        if outer > 0 or (transfer.stays and (transfer.immediate or (not step and inner > 0))):
            continue
        hop = {loop.name: by for loop, by in transfer.hop}
        hops = tuple(hop.get(space.name, 0) for space in spaces)
        need = _Need(hops=hops, cycles=max(1, *map(abs, hops)) - step)
        if not any(hops) and need.cycles > 0:
            return None
        needs[need] = None
    return list(needs)


def _delays(transfer: RecurrenceTransfer, time: SpatialLoop) -> tuple[int, int, int]:
    """How far a time loop advances, and the first advancing loops outside and inside of it."""
    names = [loop.name for loop, _ in transfer.delay]
    steps = [step for _, step in transfer.delay]
    at = names.index(time.name)
    outer, inner = (next(filter(None, part), 0) for part in (steps[:at], steps[at + 1 :]))
    return outer, steps[at], inner


def _skews(needs: Sequence[_Need], count: int) -> tuple[int, ...] | None:
    """The smallest skews that meet all constraints, positive ones first."""
    longest = max((abs(hop) for need in needs for hop in need.hops), default=0)
    most = longest * sum(max(need.cycles, 0) for need in needs)
    while (2 * most + 1) ** count > MOST_TRIED:
        most -= 1
    tried = sorted(
        product(range(-most, most + 1), repeat=count),
        key=lambda skews: (sum(map(abs, skews)), [-skew for skew in skews]),
    )
    return next((skews for skews in tried if all(n.is_met(skews) for n in needs)), None)
