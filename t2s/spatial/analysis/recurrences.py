"""The dependences of a system of recurrences in its loop nest: what comes from where, and when.

A member reads members at other iterations of the domain.  Through splits, reorders, unrolled loops
and space-time transforms this becomes, for each read, a few *transfers*: constant vectors over the
loops, each where its condition holds.  ``M[i - 1]`` with ``i`` split into ``i`` and ``ii`` comes
from ``ii - 1``, or, where ``ii`` is 0, from the last ``ii`` of the ``i`` before.

Along the loops in space a transfer is a hop to another PE, along those in time it is a delay.  The
delay must not be negative: that is causality (T2S-Tensor §II; Quinton's conditions).  A transfer
without hop and delay is a value of the same iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from t2s.core.errors import InternalError, UnsupportedError
from t2s.core.expr import Expr, Index, Read, apply, conjunction, simplify, substitute
from t2s.core.isl import LoopDomain, NotAffine, is_affine
from t2s.core.isl_maps import Case, cases, condition, translated
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.func.accesses import GuardedRead, guarded_reads
from t2s.spatial.analysis.conditions import any_of, static_conjuncts
from t2s.spatial.ir import SpatialKernel
from t2s.spatial.loop_nest import LoopExecution, SpatialLoop, shifted
from t2s.spatial.work import SystemMember

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
        """Whether it stays in its PE."""
        return not any(step for _, step in self.hop)

    @property
    def immediate(self) -> bool:
        """Whether it is received in the iteration of time that sends it."""
        return not any(step for _, step in self.delay)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTransfers:
    """All transfers of one read; ``read`` is found in the values of the members."""

    read: Read
    transfers: tuple[RecurrenceTransfer, ...]


def member_reads(kernel: SpatialKernel) -> list[MemberRead]:
    """The reads of members by members; equal reads under one condition."""
    names = {member.name for member in kernel.members}
    found: dict[tuple[str, tuple[Expr, ...]], MemberRead] = {}
    for member, guarded in _guarded(kernel):
        if guarded.read.source not in names:
            continue
        key = guarded.read.source, guarded.read.indices
        where = _conjoined(guarded.condition)
        known = found.get(key)
        if known is not None:
            where = any_of(known.condition, where)
        found[key] = MemberRead(member=member.name, read=guarded.read, condition=where)
    return list(found.values())


def _guarded(kernel: SpatialKernel) -> Iterator[tuple[SystemMember, GuardedRead]]:
    for member in kernel.members:
        for expr in (member.value, member.initial):
            if expr is not None:
                for guarded in guarded_reads(expr):
                    yield member, guarded


def _conjoined(where: Expr | None) -> Expr | None:
    return conjunction(*(part for part in static_conjuncts(where) if is_affine(part)))


def transfers_of(kernel: SpatialKernel, found: MemberRead) -> ReadTransfers:
    """The transfers of one read.

    Raises ``UnsupportedError`` where the distance is not one of a few constants, and where the read
    may leave the domain under the part of its condition that does not depend on data.
    """
    loops = [loop for loop in kernel.loops if loop.kind is not LoopExecution.VECTOR]
    where = None if found.condition is None else kernel.first_lane(kernel.place(found.condition))
    domain = kernel.domain_of_iterations
    try:
        domain = domain if where is None else domain.restricted(where)
        _check_inside(kernel, found, domain)
        steps = _distances(kernel, found, loops)
        split = cases(domain, steps, MOST_TRANSFERS)
    except NotAffine:
        split = None
    if split is None:
        raise UnsupportedError(
            f"{show(found.read)} in {found.member} has no constant distance over the loops of "
            f"{kernel.name}",
            location=found.read.location or kernel.location,
            expected=f"at most {MOST_TRANSFERS} constant distances",
            given="loops: " + ", ".join(loop.name for loop in loops),
            hint="read the same element of an outer dimension, or transform the loops less",
        )
    return ReadTransfers(
        read=found.read,
        transfers=tuple(_transfer(kernel, found, loops, case) for case in split),
    )


def _distances(kernel: SpatialKernel, found: MemberRead, loops: list[SpatialLoop]) -> list[Expr]:
    """Receiving minus sending iteration, for each loop, over the loops."""
    member = _source(kernel, found)
    source = dict(zip(member.arguments, found.read.indices, strict=True))
    steps = []
    for loop in loops:
        here = kernel.place(loop.definition)
        there = kernel.place(substitute(loop.definition, source))
        steps.append(kernel.first_lane(simplify(apply(Op.SUBTRACT, here, there))))
    return steps


def _source(kernel: SpatialKernel, found: MemberRead) -> SystemMember:
    member = kernel.member(found.read.source)
    if member is None:
        raise InternalError(f"{found.read.source} is no member of {kernel.name}")
    return member


def _transfer(
    kernel: SpatialKernel, found: MemberRead, loops: list[SpatialLoop], case: Case
) -> RecurrenceTransfer:
    sending = translated(case.points, [-step for step in case.values])
    everywhere = kernel.domain_of_iterations
    return RecurrenceTransfer(
        source=found.read.source,
        distance=tuple(zip(loops, case.values, strict=True)),
        receive=condition(everywhere, case.points),
        send=condition(everywhere, sending),
    )


def _check_inside(kernel: SpatialKernel, found: MemberRead, domain: LoopDomain) -> None:
    """The element that is read has to be one that is computed, whatever the data."""
    member = _source(kernel, found)
    bounds = {dimension.name: dimension for dimension in kernel.domain}
    source: dict[str, Expr] = dict(zip(member.arguments, found.read.indices, strict=True))
    for argument, index in zip(member.arguments, found.read.indices, strict=True):
        dimension = bounds[argument]
        low = substitute(dimension.minimum, source)
        end = simplify(apply(Op.ADD, low, substitute(dimension.extent, source)))
        for outside in (apply(Op.LESS, index, low), apply(Op.GREATER_EQUAL, index, end)):
            test = kernel.first_lane(kernel.place(outside))
            point = domain.restricted(test).sample()
            if point is not None:
                where = ", ".join(f"{name}={value}" for name, value in point.items())
                raise UnsupportedError(
                    f"{show(found.read)} in {found.member} may be outside of {member.name}",
                    location=found.read.location or kernel.location,
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
    """At most so many firings of one PE lie between sending and receiving."""
    loops = [loop for loop, _ in transfer.delay]
    total = 0
    for at, (_, step) in enumerate(transfer.delay):
        inner = prod(kernel.longest(loop) for loop in loops[at + 1 :])
        total += step * inner
    return max(total, 0)


def _extent(loop: SpatialLoop) -> int:
    return loop.constant[1] if loop.constant is not None else 1


def inner_address(transfer: RecurrenceTransfer, firings: int) -> tuple[SpatialLoop, ...] | None:
    """The innermost loops whose iterations are just the delay: they address its register file.

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
    return simplify(apply(Op.SUBTRACT, Index(name=loop.name), loop.minimum))
