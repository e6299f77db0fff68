"""Bit vectors: scanners, which generate the firings of a body, and builders.

A scanner reads a *window* of ``WINDOW_BITS`` bits of each operand, and emits the set bits of their
combination, as many per firing as the body has lanes.  A window without set bits takes one firing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from t2s.backends.capstan.machines.bodies import BodyUnit, FiringCase, PatternBody, passage
from t2s.backends.capstan.machines.kit import LAST, UnitDraft, Wire
from t2s.backends.capstan.machines.vectors import addresses, counted_from, is_there
from t2s.core.errors import InternalError
from t2s.core.expr import (
    Apply,
    Cast,
    CountBits,
    Expr,
    LaneNumbers,
    Local,
    LowestBits,
    RankBits,
    ReduceLanes,
    SetBits,
    apply,
    const,
    equals,
    select,
    spread,
    zero,
)
from t2s.core.ops import Op
from t2s.core.types import INT32, UInt
from t2s.core.walk import walk
from t2s.graph.body import Let, Role, Statement
from t2s.graph.build import In, put, rule, when, write
from t2s.graph.nodes import DONE, Put
from t2s.patterns.ir import WINDOW_BITS, WORD_BITS, BuildBits, Foreach, JoinKind, Reduce, ScanHeader

WORDS = UInt(WORD_BITS).with_lanes(WINDOW_BITS // WORD_BITS)
"""The words of a window."""

_ALL = (1 << WORD_BITS) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operand:
    """An operand: the words of its current window, and how many bits are set in the windows
    before.
    """

    head: In
    before: Local

    @property
    def words(self) -> Expr:
        return self.head.value

    @property
    def ones(self) -> Expr:
        """The set bits of the window."""
        return CountBits(words=self.words, type=INT32)

    def positions(self, bits: Expr) -> Expr:
        """The ranks of bits among the set bits of the operand, -1 for bits that it does not
        have.
        """
        rank = RankBits(words=self.words, bits=bits, type=bits.type)
        behind = bits + 1
        after = RankBits(words=self.words, bits=behind, type=bits.type)
        has = is_there(bits) & (rank < after)
        return addresses(has, spread(self.before, bits.type.lanes) + rank)


def scanned(
    around: PatternBody,
    pattern: Foreach | Reduce,
    header: ScanHeader,
    queues: tuple[Wire, ...],
    lanes: int,
    region: str,
) -> PatternBody:
    """The body of a pattern that iterates over bits; ``queues`` bring the windows of its
    operands.
    """
    unit = BodyUnit(around, f"scan_{pattern.binders[0]}", Role.RELAY, pattern.location)
    windows = select(unit.valid, windows_of(unit.scalar(header.bits)), 0)
    at, begin = unit.register("window"), unit.register("from")
    out_before = unit.register("outputs")
    operands = tuple(
        _Operand(
            head=unit.listen(wire, unit.local("words")),
            before=unit.register("before"),
        )
        for wire in queues
    )
    wide = INT32.with_lanes(lanes)
    lets: list[Let] = []

    def bound(name: str, value: Expr) -> Local:
        """Bind a value that several others use."""
        step, local = unit.let(name, value)
        lets.append(step)
        return local

    joined = bound("joined", _behind(_joined(operands, header.join), begin))
    ones = bound("ones", CountBits(words=joined, type=INT32))
    bits = bound("found", LowestBits(words=joined, type=wide))
    offset = spread(at * WINDOW_BITS, lanes)
    coordinates = bound("coordinates", addresses(is_there(bits), bits + offset))
    values = [coordinates, *(operand.positions(bits) for operand in operands)]
    if len(operands) > 1:
        values.insert(2, counted_from(out_before, lanes))
    room = around.draft.times.room(lanes)
    control = unit.output(pattern.binders[0], wide, tagged=True, capacity=room)
    wires = {name: unit.output(name, wide, capacity=room) for name in pattern.binders}
    locals = [put(wires[name], value) for name, value in zip(wires, values, strict=True)]
    nothing = [put(wire, -1) for wire in wires.values()]

    def fires(tag: int | None = None) -> tuple[Put, ...]:
        return (put(control, coordinates, None if tag is None else const(tag)), *locals)

    heads = tuple(operand.head for operand in operands)
    last_found = bits if lanes == 1 else ReduceLanes(operator=Op.MAXIMUM, value=bits, type=INT32)
    goes_on: tuple[Statement, ...] = (
        write(at, at + 1),
        write(begin, 0),
        write(out_before, out_before + ones),
        *(write(side.before, side.before + side.ones) for side in operands),
    )
    registers = (at, begin, out_before, *(operand.before for operand in operands))
    ends = tuple(write(register, 0) for register in registers)
    is_last = equals(at + 1, windows)
    unit.at_each(
        [
            FiringCase(
                name="some",
                when=const(lanes) < ones,
                body=(
                    write(begin, last_found + 1),
                    write(out_before, out_before + lanes),
                ),
                puts=fires(),
                final=False,
            ),
            FiringCase(name="end", when=is_last, body=ends, puts=fires(LAST), takes=heads),
            FiringCase(
                name="empty",
                when=equals(ones, 0),
                body=goes_on,
                takes=heads,
                final=False,
            ),
            FiringCase(name="window", body=goes_on, puts=fires(), takes=heads, final=False),
        ],
        first=[
            FiringCase(
                name="nothing",
                when=equals(windows, 0),
                puts=(put(control, -1, LAST), *nothing),
            )
        ],
        also=heads,
        lets=lets,
        done=[put(control, tag=DONE)],
    )
    unit.finish()
    return replace(
        around,
        around=around,
        lanes=lanes,
        region=region,
        control=control,
        binder=pattern.binders[0],
        wires=dict(wires),
        given_back={},
        carry=None,
        _repeated=set(),
    )


def windows_of(bits: Expr) -> Expr:
    """The number of windows that hold so many bits."""
    return bits // WINDOW_BITS


def _joined(operands: tuple[_Operand, ...], join: JoinKind) -> Expr:
    """The words of the combined operands."""
    if len(operands) == 1:
        return operands[0].words
    left, right = operands
    return apply(Op.AND if join is JoinKind.AND else Op.OR, left.words, right.words)


def _behind(words: Expr, begin: Expr) -> Expr:
    """The words without the bits below ``begin``."""
    lanes = WORDS.lanes
    each = LaneNumbers(type=INT32.with_lanes(lanes))
    first = spread(begin // WORD_BITS, lanes)
    inside = Cast(value=begin % WORD_BITS, type=UInt(WORD_BITS))
    part = spread(const(_ALL, UInt(WORD_BITS)) << inside, lanes)
    whole = spread(const(_ALL, UInt(WORD_BITS)), lanes)
    none = spread(const(0, UInt(WORD_BITS)), lanes)
    mask = select(each < first, none, select(equals(each, first), part, whole))
    return words & mask


# Builders of bit vectors: vectors of increasing coordinates come in, windows of bits go out.
#
# In each firing a builder takes a vector of coordinates, emits a window, or both: a window is
# complete at the first coordinate beyond it.  Evenly spread coordinates therefore take as many
# firings as they have vectors or windows, whichever is more; one more where the last vector begins
# the last window.


def copied_bits(body: PatternBody, windows: Wire, name: str) -> Wire:
    """Windows copied by a body, as many words at a time as it has lanes."""
    times = -(-windows.type.lanes // body.lanes)
    if times == 1:
        return windows
    unit = UnitDraft(body.draft, f"copy_{name}", Role.RELAY, body.space, body.region, None)
    taken, passed = unit.listen(windows, unit.local("window")), unit.register("passed")
    out = unit.output(name, windows.type, capacity=windows.capacity)
    last = rule("last", "run", takes=[taken], puts=[put(out, taken.value)], body=[write(passed, 0)])
    more = rule("words", "run", body=[write(passed, passed + 1)])
    unit.mode(
        "run",
        when(passed < times - 1, more),
        when(None, last),
        needs=[taken],
    )
    unit.finish(endless=True)
    return out


def combined_words(body: PatternBody, name: str, value: Expr) -> Wire:
    """Windows combined by ``and`` and ``or``, one window of each bit vector at a time."""
    unit = UnitDraft(body.draft, f"combine_{name}", Role.COMPUTE, body.space, body.region, None)
    used = dict.fromkeys(term.name for term in walk(value) if isinstance(term, Local))
    heads = {one: unit.listen(body.wires[one], unit.local(one)) for one in used}

    def windows(term: Expr) -> Expr:
        match term:
            case Local(name=vector):
                return heads[vector].value
            case Apply(operator=operator, operands=operands):
                return apply(operator, *map(windows, operands))
        raise InternalError(f"{type(term).__name__} of bits")

    result = windows(value)
    capacity = body.draft.times.bit_windows
    out = unit.output(name, WORDS, latency=passage(body, result), capacity=capacity)
    taken = list(heads.values())
    combined = rule("words", "run", takes=taken, puts=[put(out, result)])
    unit.mode("run", when(None, combined), needs=taken)
    unit.finish(endless=True)
    return out


def bit_vector(body: PatternBody, statement: BuildBits, coordinates: Wire) -> Wire:
    """The windows of a bit vector for each firing of a body; none for an idle iteration.

    ``coordinates`` brings as many vectors as the count fills, one if it is 0.
    """
    times = body.draft.times
    unit = BodyUnit(body, f"build_{statement.words}", Role.RELAY, statement.location)
    count = select(unit.valid, unit.scalar(statement.count), 0)
    windows = select(unit.valid, windows_of(unit.scalar(statement.bits)), 0)
    taken = unit.listen(coordinates, unit.local("coordinates"))
    at, passed = unit.register("window"), unit.register("passed")
    words_so_far = unit.register("made", WORDS)
    out = unit.output(statement.words, WORDS, capacity=times.bit_windows)

    lets: list[Let] = []

    def bound(name: str, value: Expr) -> Expr:
        step, local = unit.let(name, value)
        lets.append(step)
        return local

    lanes = coordinates.type.lanes
    remaining = bound("left", count - passed)
    present = counted_from(const(0), lanes) < spread(remaining, lanes)
    positions = bound("here", addresses(present, taken.value))
    highest = positions
    if lanes > 1:
        highest = ReduceLanes(operator=Op.MAXIMUM, value=positions, type=INT32)
    beyond = bound("beyond", highest - at * WINDOW_BITS)

    def bits(words: Expr, window: Expr) -> Expr:
        """The words with the bits of the vector that lie in a window."""
        begin = spread(window * WINDOW_BITS, lanes)
        return SetBits(words=words, bits=positions - begin, type=WORDS)

    words = bound("words", bits(words_so_far, at))
    next_window = at + 1
    is_last = equals(next_window, windows)
    ends = (write(at, 0), write(passed, 0), write(words_so_far, zero(WORDS)))
    goes_on = (write(at, next_window), write(passed, passed + lanes))
    no_more = remaining < lanes + 1
    inside = beyond < WINDOW_BITS
    window = put(out, words)
    unit.at_each(
        [
            FiringCase(name="none", when=windows < 1, body=ends, takes=(taken,)),
            FiringCase(
                name="last vector",
                when=is_last & no_more,
                body=ends,
                puts=(window,),
                takes=(taken,),
            ),
            FiringCase(
                name="vector and window",
                when=inside & no_more,
                body=(*goes_on, write(words_so_far, zero(WORDS))),
                puts=(window,),
                takes=(taken,),
                final=False,
                after="rest",
            ),
            FiringCase(
                name="vector",
                when=inside,
                body=(write(passed, passed + lanes), write(words_so_far, words)),
                takes=(taken,),
                final=False,
            ),
            FiringCase(
                name="window",
                when=const(2 * WINDOW_BITS - 1) < beyond,
                body=(write(at, next_window), write(words_so_far, zero(WORDS))),
                puts=(window,),
                final=False,
            ),
            FiringCase(
                name="window and last vector",
                when=no_more,
                body=(*goes_on, write(words_so_far, bits(zero(WORDS), next_window))),
                puts=(window,),
                takes=(taken,),
                final=False,
                after="rest",
            ),
            FiringCase(
                name="window and vector",
                body=(*goes_on, write(words_so_far, bits(zero(WORDS), next_window))),
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
            FiringCase(
                name="end", when=is_last, body=ends, puts=(put(out, words_so_far),), after="run"
            ),
            FiringCase(
                name="rest",
                body=(write(at, next_window), write(words_so_far, zero(WORDS))),
                puts=(put(out, words_so_far),),
                final=False,
            ),
        ],
        mode="rest",
    )
    unit.finish()
    return out
