"""The thread of a PE of the design: a few instructions for each kind of firing.

A result of one operator (``a + b * c`` is one) is computed by the instruction that sends or keeps
it; larger expressions take more instructions before that.  A token stays at the head until its last
use.  Kinds are selected by the tag of the leading stream, or by the state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from t2s.backends.cgra_tia.lower.cells import INTEGERS
from t2s.backends.cgra_tia.lower.not_lowered import refuse
from t2s.backends.cgra_tia.lower.process import TokenStream
from t2s.backends.cgra_tia.profile_a.control import END, ControlledProcess, is_token, taken_names
from t2s.backends.cgra_tia.profile_a.firings import FileElement, FiringKind, kept
from t2s.backends.cgra_tia.profile_a.threads import (
    WORD_MASK,
    HeadOf,
    PublicThread,
    StepOperand,
    StepTarget,
    ThreadRegister,
    ThreadStep,
    ToTest,
    ToWires,
)
from t2s.backends.cgra_tia.program import Immediate, Opcode
from t2s.core.expr import Apply, Cast, Const, Expr, Local, Select
from t2s.core.ops import Op
from t2s.core.types import Kind
from t2s.core.walk import walk

MOST_CHECKS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringStep:
    """One instruction of a firing; ``test`` is the test bit that it needs."""

    opcode: Opcode
    target: StepTarget
    operands: tuple[StepOperand, ...]
    takes: tuple[TokenStream, ...] = ()
    test: bool | None = None

    @property
    def streams(self) -> tuple[TokenStream, ...]:
        """The streams that it reads or takes from."""
        heads = [part.stream for part in self.operands if isinstance(part, HeadOf)]
        return tuple(dict.fromkeys((*heads, *self.takes)))


Position = tuple[FiringStep, ...]
"""The instructions of which one fires: one, or one for each result of a test."""


def firing_thread(
    controlled: ControlledProcess, ends: frozenset[TokenStream], comment: str
) -> PublicThread:
    """The thread of a process; ``ends`` are the streams whose end tokens it has to send."""
    slots: dict[ThreadRegister, int] = {}
    live = _live_writes(controlled)
    tagged = controlled.leader if len(controlled.kinds) > 1 else None
    codes = [
        _KindCode(controlled, number, live[number], tagged, slots).positions()
        for number in range(len(controlled.kinds))
    ]
    writer = _FiringWriter(controlled, comment)
    if controlled.leader is not None:
        writer.led(codes)
    else:
        writer.counted(codes)
    writer.end(ends)
    return PublicThread(
        name=controlled.process.name,
        steps=tuple(writer.steps),
        done=writer.done,
        firings=int(np.array([len(code) for code in codes])[controlled.sequence].sum()) + 1,
        slots=slots,
    )


def _live_writes(controlled: ControlledProcess) -> list[set[FileElement]]:
    """For each kind, the elements that it writes and that are live afterwards."""
    kinds, sequence = controlled.kinds, controlled.sequence
    elements = controlled.process.elements
    reads = [
        {
            elements[term.name]
            for value in (*dict(kind.sends).values(), *dict(kind.writes).values())
            for term in walk(value)
            if isinstance(term, Local) and not is_token(term)
        }
        for kind in kinds
    ]
    writes = [{element for element, _ in kind.writes} for kind in kinds]
    pairs = set(zip(sequence[:-1].tolist(), sequence[1:].tolist(), strict=True))
    live = [set(elements_read) for elements_read in reads]
    changed = True
    while changed:
        changed = False
        for earlier, later in sorted(pairs):
            more = live[later] - writes[earlier] - live[earlier]
            live[earlier] |= more
            changed = changed or bool(more)
    return [
        writes[kind] & set().union(*(live[after] for before, after in pairs if before == kind))
        for kind in range(len(kinds))
    ]


class _KindCode:
    """The instructions of one kind of firing, in order."""

    def __init__(
        self,
        controlled: ControlledProcess,
        number: int,
        live: set[FileElement],
        tagged: TokenStream | None,
        slots: dict[ThreadRegister, int],
    ) -> None:
        self._kind: FiringKind = controlled.kinds[number]
        self._tags = controlled.tags[number]
        self._process = controlled.process
        self._live = live
        self._leader = controlled.leader
        self._tagged = tagged
        self._slots = slots
        self._streams = taken_names(self._kind)
        self._places: list[Position] = []
        self._moved: dict[TokenStream, ThreadRegister] = {}
        self._made: dict[Expr, ThreadRegister] = {}
        self._brought: dict[TokenStream, TokenStream] = {}
        self._front = 0
        self._temporaries = 0

    def positions(self) -> list[Position]:
        """The instructions, the last of which takes from the leading stream."""
        for together, parts in self._kind.parts:
            for part in parts[:-1]:
                self._moved[part] = self._temporary()
                self._add(Opcode.MOV, self._moved[part], (HeadOf(together),))
                self._take(len(self._places) - 1, together)
            self._brought[parts[-1]] = together
        self._front = len(self._places)
        results = list(self._results())
        counts = Counter(
            term for _, value in results for term in set(walk(value)) if not _is_leaf(term)
        )
        for term, count in counts.items():
            assert isinstance(term, Expr)
            if count > 1 and any(term != value for _, value in results):
                self._operand(term, ())
        for target, value in results:
            self._result(target, value)
        self._take_all()
        return self._places

    def _results(self) -> Iterator[tuple[StepTarget, Expr]]:
        """What is sent, then what is kept, in an order that overwrites no live value."""
        sent: dict[tuple[Expr, int], list[TokenStream]] = {}
        for stream, value in self._kind.sends:
            sent.setdefault((value, self._tags.get(stream, 0)), []).append(stream)
        for (value, tag), streams in sent.items():
            yield ToWires(tuple(streams), tag), value
        unwritten = {
            element: value for element, value in self._kind.writes if element in self._live
        }
        while unwritten:
            free = [
                element
                for element in unwritten
                if not any(
                    kept(element, value.type) in set(walk(value))
                    for other, value in unwritten.items()
                    if other != element
                )
            ]
            element = free[0] if free else next(iter(unwritten))
            value = unwritten.pop(element)
            if not free:  # a cycle: others need the old value, so save it
                before = kept(element, value.type)
                self._made[before] = self._temporary()
                self._add(Opcode.MOV, self._made[before], (self._slot(element),))
            yield self._slot(element), value

    # ---------------------------------------------------------------------------- operators

    def _result(self, target: StepTarget, value: Expr) -> None:
        if _is_leaf(value) or value in self._made:
            self._add(Opcode.MOV, target, (self._operand(value, ()),))
            return
        try:
            recipe = word_recipe(value)
        except NoInstruction as missing:
            why = f"it computes {missing.what}, and no PE can: compute that on the host"
            refuse(self._process.subject, why, self._process.location)
        operands: list[StepOperand] = []
        for part in recipe.operands:
            operands.append(self._operand(part, operands))
        self._compute(target, recipe, operands)

    def _compute(self, target: StepTarget, recipe: WordRecipe, operands: list[StepOperand]) -> None:
        if not recipe.chooses:
            self._add(recipe.opcode, target, tuple(operands))
            return
        test, yes, no = tuple(operands[:2]), operands[2], operands[3]
        self._add(recipe.opcode, ToTest(), test)
        self._places.append(
            tuple(
                FiringStep(opcode=Opcode.MOV, target=target, operands=(part,), test=chosen)
                for part, chosen in ((yes, True), (no, False))
            )
        )

    def _operand(self, value: Expr, others: Sequence[StepOperand]) -> StepOperand:
        """Where a value is; it is computed first if necessary."""
        if value in self._made:
            return self._made[value]
        match value:
            case Const(value=number):
                immediate = Immediate(int(number) & WORD_MASK)
                if any(isinstance(part, Immediate) and part != immediate for part in others):
                    slot = ThreadRegister(("constant", immediate.pattern))
                    self._slots[slot] = immediate.pattern
                    return slot
                return immediate
            case Local() if is_token(value):
                return self._head(self._streams[value.name], others)
            case Local():
                return self._slot(self._process.elements[value.name])
        slot = self._temporary()
        self._result(slot, value)
        self._made[value] = slot
        return slot

    def _head(self, stream: TokenStream, others: Sequence[StepOperand]) -> StepOperand:
        """The head of a stream, or a register if the trigger cannot check another stream."""
        if stream in self._moved:
            return self._moved[stream]
        stream, brought = self._brought.get(stream, stream), stream
        streams = {part.stream for part in others if isinstance(part, HeadOf)} | {stream}
        if self._tagged is not None:
            streams.add(self._tagged)
        if len(streams) <= MOST_CHECKS:
            return HeadOf(stream)
        slot = self._temporary()
        self._add(Opcode.MOV, slot, (HeadOf(stream),))
        self._moved[brought] = slot
        return slot

    def _temporary(self) -> ThreadRegister:
        slot = ThreadRegister(("temporary", self._temporaries))
        self._temporaries += 1
        self._slots.setdefault(slot, 0)
        return slot

    def _slot(self, element: FileElement) -> ThreadRegister:
        slot = ThreadRegister(element)
        self._slots.setdefault(slot, self._process.initial.get(element, 0) & WORD_MASK)
        return slot

    def _add(self, opcode: Opcode, target: StepTarget, operands: tuple[StepOperand, ...]) -> None:
        self._places.append((FiringStep(opcode=opcode, target=target, operands=operands),))

    # -------------------------------------------------------------------------------- takes

    def _take_all(self) -> None:
        """Let the last instruction that uses a token take it."""
        order = [s for s in self._kind.takes if s != self._leader]
        for stream in order:
            places = list(enumerate(self._places))[self._front :]
            used = [at for at, place in places if self._uses(place, stream)]
            at = used[-1] if used else self._with_room(stream)
            self._take(at, stream)
        if self._leader is not None:
            last = len(self._places) - 1
            if last < self._front or not all(
                self._fits(step, self._leader) for step in self._places[last]
            ):
                self._add(Opcode.NOP, None, ())
                last += 1
            self._take(last, self._leader)

    def _uses(self, place: Position, stream: TokenStream) -> bool:
        return any(stream in step.streams for step in place)

    def _fits(self, step: FiringStep, stream: TokenStream) -> bool:
        streams = {*step.streams, stream}
        if self._tagged is not None:
            streams.add(self._tagged)
        return len(streams) <= MOST_CHECKS

    def _with_room(self, stream: TokenStream) -> int:
        for at, place in list(enumerate(self._places))[self._front :]:
            if all(self._fits(step, stream) for step in place):
                return at
        self._add(Opcode.NOP, None, ())
        return len(self._places) - 1

    def _take(self, at: int, stream: TokenStream) -> None:
        self._places[at] = tuple(
            replace(step, takes=(*step.takes, stream)) for step in self._places[at]
        )


@dataclass
class _FiringWriter:
    controlled: ControlledProcess
    comment: str
    steps: list[ThreadStep] = field(default_factory=list)
    done: int = 0
    _first: TokenStream | None = None

    def led(self, codes: Sequence[list[Position]]) -> None:
        """Select kinds by the tag of the leading stream; all of them start in state 0."""
        leader = self.controlled.leader
        assert leader is not None
        self._first = leader
        longest = max(map(len, codes))
        for state in range(longest):
            places = [
                (tag, code[state], state + 1 == len(code))
                for tag, code in enumerate(codes)
                if state < len(code)
            ]
            alike = len(places) == len(codes) and all(one[1:] == places[0][1:] for one in places)
            for tag, place, last in places[:1] if alike else places:
                self._place(place, state, 0 if last else state + 1, None if alike else tag)
        self.done = longest

    def counted(self, codes: Sequence[list[Position]]) -> None:
        """Select kinds by state, in the order of the pattern."""
        pattern = self.controlled.pattern
        kinds = self.controlled.kinds
        self._first = next(kinds[n].takes[0] for n in pattern if kinds[n].takes)
        total = sum(len(codes[number]) for number in pattern)
        state = 0
        for number in pattern:
            for place in codes[number]:
                self._place(place, state, (state + 1) % total, None)
                state += 1
        self.done = total

    def _place(self, place: Position, state: int, after: int, tag: int | None) -> None:
        assert self._first is not None
        leader = self.controlled.leader
        for step in place:
            streams = list(step.streams)
            checked = leader if tag is not None or leader in streams else None
            if checked is None and (state == 0 or leader is not None):
                checked = self._first
            if checked is not None and checked not in streams and len(streams) < MOST_CHECKS:
                streams.insert(0, checked)
            checks = tuple((stream, tag if stream == leader else None) for stream in streams)
            self.steps.append(
                ThreadStep(
                    state=state,
                    next=after,
                    opcode=step.opcode,
                    target=step.target,
                    operands=step.operands,
                    checks=checks,
                    takes=step.takes,
                    test=step.test,
                    comment=self.comment,
                )
            )

    def end(self, ends: frozenset[TokenStream]) -> None:
        """Take the end of every input stream, and send that of the output streams."""
        first = self._first
        assert first is not None
        streams = [first, *(s for s in self.controlled.process.takes if s != first)]
        outputs = tuple(s for s in self.controlled.process.sends if s in ends)
        pairs = [tuple(streams[at : at + MOST_CHECKS]) for at in range(0, len(streams), 2)]
        state, fresh = 0, self.done
        for number, pair in enumerate(pairs):
            sends = number == 0 and outputs
            self.steps.append(
                ThreadStep(
                    state=state,
                    next=fresh,
                    opcode=Opcode.MOV if sends else Opcode.NOP,
                    target=ToWires(outputs, END) if sends else None,
                    operands=(HeadOf(first),) if sends else (),
                    checks=tuple((stream, END) for stream in pair),
                    takes=pair,
                    comment=f"{self.comment}, at the end",
                )
            )
            state, fresh = fresh, fresh + 1
        self.done = state


def _is_leaf(term: object) -> bool:
    return isinstance(term, Const | Local)


# Instruction selection for expressions on words of the public core.


@dataclass(frozen=True, slots=True, kw_only=True)
class WordRecipe:
    """An opcode and its operands.

    With ``chooses`` it compares the first two; the result is the third operand where the comparison
    holds, and the fourth elsewhere.
    """

    opcode: Opcode
    operands: tuple[Expr, ...]
    chooses: bool = False


_UNSIGNED = INTEGERS | {
    Op.LESS: Opcode.ULT,
    Op.LESS_EQUAL: Opcode.ULE,
    Op.GREATER: Opcode.UGT,
    Op.GREATER_EQUAL: Opcode.UGE,
    Op.SHIFT_RIGHT: Opcode.LSR,
}


class NoInstruction(Exception):
    """An operator that the public core does not have."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


def word_recipe(value: Expr) -> WordRecipe:
    """The instruction that computes a value, which is neither a constant nor a local."""
    match value:
        case Select(condition=condition, if_true=yes, if_false=no):
            return _choice(condition, yes, no)
        case Cast(value=inner, type=target):
            if target.is_bool and not inner.type.is_bool:
                return WordRecipe(opcode=Opcode.NE, operands=(inner, _zero(inner)))
            return WordRecipe(opcode=Opcode.MOV, operands=(inner,))
        case Apply(operator=Op.ADD, operands=(first, second)):
            for product, other in ((second, first), (first, second)):
                if isinstance(product, Apply) and product.operator is Op.MULTIPLY:
                    return WordRecipe(opcode=Opcode.MAC, operands=(other, *product.operands))
            return WordRecipe(opcode=Opcode.ADD, operands=(first, second))
        case Apply(operator=operator, operands=operands):
            return _applied(operator, operands)
    raise NoInstruction(f"a {type(value).__name__.lower()} of vectors")


def _choice(condition: Expr, yes: Expr, no: Expr) -> WordRecipe:
    match condition:
        case Apply(operator=operator, operands=(left, right)) if operator in _COMPARE:
            opcode = _table(left)[operator]
            return WordRecipe(opcode=opcode, operands=(left, right, yes, no), chooses=True)
    return WordRecipe(
        opcode=Opcode.NE, operands=(condition, _zero(condition), yes, no), chooses=True
    )


_COMPARE = (
    Op.EQUAL,
    Op.NOT_EQUAL,
    Op.LESS,
    Op.LESS_EQUAL,
    Op.GREATER,
    Op.GREATER_EQUAL,
)


def _table(operand: Expr) -> dict[Op, Opcode]:
    return INTEGERS if operand.type.kind is Kind.INT else _UNSIGNED


def _applied(operator: Op, operands: tuple[Expr, ...]) -> WordRecipe:
    first = operands[0]
    match operator:
        case Op.MINIMUM | Op.MAXIMUM:
            compare = Op.LESS if operator is Op.MINIMUM else Op.GREATER
            second = operands[1]
            return WordRecipe(
                opcode=_table(first)[compare],
                operands=(second, first, second, first),
                chooses=True,
            )
        case Op.NEGATE:
            return WordRecipe(opcode=Opcode.SUB, operands=(_zero(first), first))
        case Op.ABSOLUTE if first.type.kind is Kind.INT:
            negative = -first
            return WordRecipe(
                opcode=Opcode.SLT, operands=(first, _zero(first), negative, first), chooses=True
            )
        case Op.ABSOLUTE | Op.FLOOR | Op.CEILING:
            return WordRecipe(opcode=Opcode.MOV, operands=(first,))
        case Op.NOT:
            ones = Const(value=1 if first.type.is_bool else -1, type=first.type)
            return WordRecipe(opcode=Opcode.BXOR, operands=(first, ones))
        case Op.FLOOR_DIVIDE | Op.MODULO:
            return _divided(operator, operands)
    opcode = _table(first).get(operator)
    if opcode is None:
        raise NoInstruction(f"{operator.value!r} of data")
    return WordRecipe(opcode=opcode, operands=operands)


def _divided(operator: Op, operands: tuple[Expr, ...]) -> WordRecipe:
    """Division by a power of two as a shift, and its remainder as a mask."""
    value, by = operands
    if isinstance(by, Const) and by.value > 0 and not int(by.value) & int(by.value) - 1:
        number = int(by.value)
        if operator is Op.MODULO:
            mask = Const(value=number - 1, type=by.type)
            return WordRecipe(opcode=Opcode.BAND, operands=(value, mask))
        amount = Const(value=number.bit_length() - 1, type=by.type)
        return WordRecipe(opcode=_table(value)[Op.SHIFT_RIGHT], operands=(value, amount))
    raise NoInstruction(f"{operator.value!r} of data, other than by a power of two")


def _zero(like: Expr) -> Const:
    return Const(value=0, type=like.type)
