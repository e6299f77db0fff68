"""Loop nests of stream units: loops, addresses and tag rules of static sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from t2s.backends.cgra_tia.lower.not_lowered import refuse
from t2s.backends.cgra_tia.lower.schedule import Classes, LoopNest, enumerated, from_zero
from t2s.backends.cgra_tia.netlist import AffineSum, StreamLoop, TagCase, UnitCondition
from t2s.core.affine import tidy
from t2s.core.expr import Expr, Index, const, substitute
from t2s.core.intervals import LinearForm, linear_form
from t2s.core.isl import LoopDomain, NotAffine
from t2s.core.isl_maps import Transformation
from t2s.core.ops import Array
from t2s.graph.nodes import Loop

MOST_LOOPS = 8
"""Loops of a stream unit."""

MOST_RUNS = 64
"""Most stretches of equal tags in one period of a sequence."""


@dataclass(frozen=True, kw_only=True)
class UnitNest:
    """The loops of a unit, and the address of each of its steps."""

    loops: tuple[StreamLoop, ...]
    address: AffineSum


@dataclass(frozen=True, kw_only=True)
class SequenceNest:
    """The loops of a ``seq`` unit and its rule for tags."""

    loops: tuple[StreamLoop, ...]
    tags: tuple[TagCase, ...]


def _loop(name: str, extent: int) -> StreamLoop:
    return StreamLoop(name=name, extent=AffineSum(constant=extent))


# ------------------------------------------------------------------------------ addresses


def address_nest(
    nest: LoopNest, indices: Sequence[Expr], shape: Sequence[int], condition: Expr | None
) -> UnitNest | None:
    """The nest of a unit that accesses an array once in each iteration, or where a condition holds.

    ``indices`` are subscripts of a row-major array of this shape.  ``None`` if no nest of at most 8
    loops produces this sequence of addresses.
    """
    flat: Expr = const(0)
    for index, extent in zip(indices, shape, strict=True):
        flat = flat * extent + nest.folded(index)
    restricted = nest if condition is None else _restricted(nest, condition)
    if restricted is not None:
        unit_nest = _from_loops(restricted, flat)
        if unit_nest is not None:
            return unit_nest
    iterations = enumerated(nest, nest.loops)
    addresses = iterations.values(flat).astype(np.int64)
    if condition is not None:
        addresses = addresses[iterations.where([condition])]
    return _from_sequence(addresses)


def _restricted(nest: LoopNest, condition: Expr) -> LoopNest | None:
    """The iterations in which a condition holds, if they form a nest."""
    try:
        domain = LoopDomain([loop.interval for loop in nest.loops], [condition])
    except NotAffine:
        return None
    if domain.is_empty():
        return None
    same = Transformation(domain, {loop.name: Index(name=loop.name) for loop in nest.loops})
    loops: list[Loop] = []
    for loop in nest.loops:
        span = same.span(loop.name)
        extent = tidy(span.last - span.first + 1)
        loops.append(Loop(name=loop.name, minimum=span.first, extent=extent))
    try:
        hull = LoopDomain([loop.interval for loop in loops])
    except NotAffine:
        return None
    return replace(nest, loops=tuple(loops)) if hull.count() == domain.count() else None


def _from_loops(nest: LoopNest, flat: Expr) -> UnitNest | None:
    """The loops of the PE themselves, if the address and the extents are affine in them."""
    names = [loop.name for loop in nest.loops]
    shifted = from_zero(nest)
    form = _linear(flat, shifted)
    extents = [_linear(loop.extent, shifted) for loop in nest.loops]
    if form is None:
        return None
    loops: list[StreamLoop] = []
    for at, (loop, extent) in enumerate(zip(nest.loops, extents, strict=True)):
        if extent is None or not set(extent[0]) <= set(names[:at]):
            return None
        loops.append(StreamLoop(name=loop.name, extent=_sum(names[:at], extent)))
    return _merged(UnitNest(loops=tuple(loops), address=_sum(names, form)))


def _linear(expr: Expr, shifted: dict[str, Expr]) -> LinearForm | None:
    whole = substitute(expr, shifted)
    form = linear_form(whole)
    return linear_form(tidy(whole)) if form is None else form


def _sum(names: Sequence[str], form: tuple[dict[str, int], int]) -> AffineSum:
    coefficients = [form[0].get(name, 0) for name in names]
    while coefficients and coefficients[-1] == 0:
        coefficients.pop()
    return AffineSum(constant=form[1], coefficients=tuple(coefficients))


def _merged(nest: UnitNest) -> UnitNest | None:
    """The nest with adjacent loops merged until a unit has enough loops for it."""
    loops = list(nest.loops)
    strides = list(nest.address.coefficients) + [0] * (len(loops) - len(nest.address.coefficients))
    if len(loops) > MOST_LOOPS and any(loop.extent.coefficients for loop in loops):
        return None
    at = len(loops) - 2
    while len(loops) > MOST_LOOPS and at >= 0:
        inner = loops[at + 1].extent.constant
        if strides[at] == strides[at + 1] * inner:
            name = f"{loops[at].name}_{loops[at + 1].name}"
            loops[at : at + 2] = [_loop(name, loops[at].extent.constant * inner)]
            del strides[at]
        at -= 1
    if len(loops) > MOST_LOOPS:
        return None
    address = AffineSum(constant=nest.address.constant, coefficients=tuple(strides))
    return UnitNest(loops=tuple(loops), address=address)


def _from_sequence(addresses: Array) -> UnitNest | None:
    """A nest of constant extents and strides that produces a sequence of addresses."""
    if not len(addresses):
        return UnitNest(loops=(_loop("step", 0),), address=AffineSum())
    loops: list[StreamLoop] = []
    strides: list[int] = []
    rest = addresses
    while len(rest) > 1:
        stride = int(rest[1] - rest[0])
        steps = np.flatnonzero(np.diff(rest) != stride)
        extent = len(rest) if not len(steps) else int(steps[0]) + 1
        while extent > 1 and not _repeats(rest, extent, stride):
            extent = max((d for d in range(1, extent) if len(rest) % d == 0), default=1)
        if extent < 2 or len(loops) == MOST_LOOPS:
            return None
        loops.insert(0, _loop(f"step{len(loops)}", extent))
        strides.insert(0, stride)
        rest = rest[::extent]
    address = AffineSum(constant=int(rest[0]), coefficients=tuple(strides))
    return UnitNest(loops=tuple(loops), address=address)


def _repeats(sequence: Array, extent: int, stride: int) -> bool:
    if len(sequence) % extent:
        return False
    rows = sequence.reshape(-1, extent)
    return bool((rows - rows[:, :1] == np.arange(extent) * stride).all())


# ----------------------------------------------------------------------------------- tags


def tag_nest(
    nest: LoopNest, sequence: Array, outer: int, inner: int, limit: int = MOST_RUNS
) -> SequenceNest:
    """The nest of a ``seq`` unit that sends a sequence of tags ``outer`` times.

    Each tag is sent ``inner`` times in a row.  Sequences without a short pattern are refused.
    """
    period = _period(sequence)
    runs = _runs(sequence[:period])
    if len(runs) > limit:
        _too_many_runs(nest, len(runs), period, limit)
    return pattern_nest(sequence, outer, inner)


def pattern_nest(sequence: Array, outer: int, inner: int) -> SequenceNest:
    """The same for a sequence whose pattern is known to be short."""
    period = _period(sequence)
    runs = _runs(sequence[:period])
    repeats = outer * (len(sequence) // period)
    loops = [_loop("round", repeats)] if repeats > 1 else []
    at = len(loops)
    if period > 1 or not (loops or inner > 1):
        loops.append(_loop("step", period))
    if inner > 1:
        loops.append(_loop("each", inner))
    tags = tuple(
        TagCase(when=_between(at, first, last, period), tag=tag) for first, last, tag in runs if tag
    )
    return SequenceNest(loops=tuple(loops), tags=tags)


def turn_nest(
    nest: LoopNest,
    classes: Classes,
    turns: Sequence[Sequence[int]],
    stages: Sequence[int],
    nothing: int,
) -> SequenceNest:
    """The nest of a ``seq`` unit that sends a tag for each turn of each round.

    ``turns`` are the tags of each turn, by the class of the iteration that it works on: iteration
    ``r - stage`` in round ``r``.  Where that does not exist the tag is ``nothing``.
    """
    codes = classes.codes[: _period(classes.codes)]
    outer, inner = classes.outer * (len(classes.codes) // len(codes)), classes.inner
    runs_of_turns = [_runs(np.asarray(tags)[codes]) for tags in turns]
    if sum(len(runs) for runs in runs_of_turns) * outer <= MOST_RUNS:
        # short enough to be unrolled, so that turns need not rest between repetitions
        codes, outer = np.tile(codes, outer), 1
        runs_of_turns = [_runs(np.asarray(tags)[codes]) for tags in turns]
    count = sum(len(runs) for runs in runs_of_turns)
    if count > MOST_RUNS:
        _too_many_runs(nest, count, len(codes), MOST_RUNS)
    total, last_stage = len(codes) * inner, max(stages)
    loops = [_loop("batch", outer)] if outer > 1 else []
    at = len(loops)
    loops += [_loop("round", total + last_stage), _loop("turn", len(turns))]
    cases: list[TagCase] = []
    for turn, (runs, stage) in enumerate(zip(runs_of_turns, stages, strict=True)):
        whose = _between(at + 1, turn, turn, len(turns))
        when = [(s * inner + stage, (e + 1) * inner - 1 + stage, tag) for s, e, tag in runs]
        rests = [(0, stage - 1, nothing), (total + stage, total + last_stage - 1, nothing)]
        cases += [
            TagCase(when=(*whose, *_between(at, first, last, total + last_stage)), tag=tag)
            for first, last, tag in (*when, *rests)
            if tag and first <= last
        ]
    return SequenceNest(loops=tuple(loops), tags=tuple(cases))


def _too_many_runs(nest: LoopNest, count: int, period: int, limit: int) -> NoReturn:
    refuse(
        nest.subject,
        f"what it does changes {count} times in {period:,} iterations, without a pattern "
        f"of at most {limit} stretches",
        nest.location,
    )


def _period(sequence: Array) -> int:
    """The length of the shortest prefix whose repetition is the sequence."""
    total = len(sequence)
    small = [number for number in range(1, int(total**0.5) + 1) if total % number == 0]
    for period in sorted({*small, *(total // number for number in small)}):
        if (sequence[period:] == sequence[: total - period]).all():
            return period
    return total


def _runs(sequence: Array) -> list[tuple[int, int, int]]:
    """Runs of equal tags: first position, last position, tag."""
    ends = [*np.flatnonzero(np.diff(sequence)).tolist(), len(sequence) - 1]
    starts = [0, *(end + 1 for end in ends[:-1])]
    return [(s, e, int(sequence[s])) for s, e in zip(starts, ends, strict=True)]


def _between(at: int, first: int, last: int, extent: int) -> tuple[UnitCondition, ...]:
    """Conditions that hold while loop ``at``, of this extent, is from ``first`` to ``last``."""
    unit = (0,) * at
    if first == last and extent > 1:
        return (UnitCondition(sum=AffineSum(constant=-first, coefficients=(*unit, 1)), equal=True),)
    conditions: list[UnitCondition] = []
    if first > 0:
        conditions.append(UnitCondition(sum=AffineSum(constant=-first, coefficients=(*unit, 1))))
    if last < extent - 1:
        conditions.append(UnitCondition(sum=AffineSum(constant=last, coefficients=(*unit, -1))))
    return tuple(conditions)
