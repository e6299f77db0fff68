"""Builders of bit vectors: coordinates that increase come in vectors, windows of bits go out.

In a firing a builder takes a vector of coordinates or puts a window, or both: with the first
coordinate behind a window it is complete.  So ``n`` coordinates take as many firings as there are
vectors of them, or as there are windows, whatever is more, if they lie evenly; one more where the
last vector begins the last window.
"""

from __future__ import annotations

from t2s.backends.capstan.machines.bodies import BodyUnit, FiringCase, PatternBody
from t2s.backends.capstan.machines.compute import passage
from t2s.backends.capstan.machines.kit import UnitDraft, Wire, let, put, rule, when, write
from t2s.backends.capstan.machines.scans import WORDS, windows_of
from t2s.backends.capstan.machines.vectors import (
    addresses,
    counted_from,
    less,
    minus,
    number,
    plus,
    spread,
    where,
    zero,
)
from t2s.core.errors import InternalError
from t2s.core.expr import Apply, Expr, Local, ReduceLanes, SetBits, apply, equals
from t2s.core.ops import Op
from t2s.core.types import INT32
from t2s.core.walk import walk
from t2s.graph.body import Let, Role
from t2s.patterns.ir import WINDOW_BITS, BuildBits


def copied_bits(body: PatternBody, windows: Wire, name: str) -> Wire:
    """Windows that a body passes on, as many words at a time as it has lanes."""
    times = -(-windows.type.lanes // body.lanes)
    if times == 1:
        return windows
    unit = UnitDraft(body.draft, f"copy_{name}", Role.RELAY, body.space, body.region, None)
    taken, passed = unit.take(windows, unit.local("window")), unit.register("passed")
    out = unit.output(name, windows.type, capacity=windows.capacity)
    last = rule(
        "last", "run", takes=[taken], puts=[put(out, taken.value)], body=[write(passed, number(0))]
    )
    more = rule("words", "run", body=[write(passed, plus(passed, number(1)))])
    unit.mode(
        "run",
        when(less(passed, number(times - 1)), more),
        when(None, last),
        needs=[taken],
    )
    unit.finish(endless=True)
    return out


def combined_words(body: PatternBody, name: str, value: Expr) -> Wire:
    """Windows that are and-ed and or-ed, one of each bit vector at a time."""
    unit = UnitDraft(body.draft, f"combine_{name}", Role.COMPUTE, body.space, body.region, None)
    used = dict.fromkeys(term.name for term in walk(value) if isinstance(term, Local))
    heads = {one: unit.take(body.wires[one], unit.local(one)) for one in used}

    def windows(term: Expr) -> Expr:
        match term:
            case Local(name=one):
                return heads[one].value
            case Apply(operator=operator, operands=operands):
                return apply(operator, *map(windows, operands))
        raise InternalError(f"{type(term).__name__} of bits")

    made = windows(value)
    capacity = body.draft.times.bit_windows
    out = unit.output(name, WORDS, latency=passage(body, made), capacity=capacity)
    taken = list(heads.values())
    combined = rule("words", "run", takes=taken, puts=[put(out, made)])
    unit.mode("run", when(None, combined), needs=taken)
    unit.finish(endless=True)
    return out


def bit_vector(body: PatternBody, statement: BuildBits, coordinates: Wire) -> Wire:
    """The windows of a bit vector for each firing of a body; none for an iteration that is none.

    ``coordinates`` brings as many vectors as the count fills, and one if it is 0.
    """
    times = body.draft.times
    unit = BodyUnit(body, f"build_{statement.words}", Role.RELAY, statement.location)
    count = where(unit.valid, unit.scalar(statement.count), number(0))
    windows = where(unit.valid, windows_of(unit.scalar(statement.bits)), number(0))
    taken = unit.take(coordinates, unit.local("coordinates"))
    at, passed = unit.register("window"), unit.register("passed")
    made = unit.register("made", WORDS)
    out = unit.output(statement.words, WORDS, capacity=times.bit_windows)

    lets: list[Let] = []

    def bound(name: str, value: Expr) -> Expr:
        step, local = let(unit, name, value)
        lets.append(step)
        return local

    lanes = coordinates.type.lanes
    left = bound("left", minus(count, passed))
    there = less(counted_from(number(0), lanes), spread(left, lanes))
    here = bound("here", addresses(there, taken.value))
    highest = here
    if lanes > 1:
        highest = ReduceLanes(operator=Op.MAXIMUM, value=here, type=INT32)
    beyond = bound("beyond", minus(highest, apply(Op.MULTIPLY, at, number(WINDOW_BITS))))

    def bits(words: Expr, window: Expr) -> Expr:
        """The words with those bits of the vector that are in a window."""
        begin = spread(apply(Op.MULTIPLY, window, number(WINDOW_BITS)), lanes)
        return SetBits(words=words, bits=minus(here, begin), type=WORDS)

    words = bound("words", bits(made, at))
    next_window = plus(at, number(1))
    is_last = equals(next_window, windows)
    ends = (write(at, number(0)), write(passed, number(0)), write(made, zero(WORDS)))
    goes_on = (write(at, next_window), write(passed, plus(passed, number(lanes))))
    no_more = less(left, number(lanes + 1))
    inside = less(beyond, number(WINDOW_BITS))
    window = put(out, words)
    unit.at_each(
        [
            FiringCase(name="none", when=less(windows, number(1)), body=ends, takes=(taken,)),
            FiringCase(
                name="last vector",
                when=apply(Op.AND, is_last, no_more),
                body=ends,
                puts=(window,),
                takes=(taken,),
            ),
            FiringCase(
                name="vector and window",
                when=apply(Op.AND, inside, no_more),
                body=(*goes_on, write(made, zero(WORDS))),
                puts=(window,),
                takes=(taken,),
                final=False,
                after="rest",
            ),
            FiringCase(
                name="vector",
                when=inside,
                body=(write(passed, plus(passed, number(lanes))), write(made, words)),
                takes=(taken,),
                final=False,
            ),
            FiringCase(
                name="window",
                when=less(number(2 * WINDOW_BITS - 1), beyond),
                body=(write(at, next_window), write(made, zero(WORDS))),
                puts=(window,),
                final=False,
            ),
            FiringCase(
                name="window and last vector",
                when=no_more,
                body=(*goes_on, write(made, bits(zero(WORDS), next_window))),
                puts=(window,),
                takes=(taken,),
                final=False,
                after="rest",
            ),
            FiringCase(
                name="window and vector",
                body=(*goes_on, write(made, bits(zero(WORDS), next_window))),
                puts=(window,),
                takes=(taken,),
                final=False,
            ),
        ],
        also=[taken],
        lets=lets,
    )
    unit.then(
        [
            FiringCase(name="end", when=is_last, body=ends, puts=(put(out, made),), after="run"),
            FiringCase(
                name="rest",
                body=(write(at, next_window), write(made, zero(WORDS))),
                puts=(put(out, made),),
                final=False,
            ),
        ],
        mode="rest",
    )
    unit.finish()
    return out
