"""Scans of three and more levels: scanners join two bit vectors, so their words are combined first.

Ands and ors combine the words of all operands into those of the coordinates to visit.  A scan of
these with an operand's words then yields the iterations of the loop and the positions in that
operand.  The loop itself has such a scan with one operand; for every other one a separate scan puts
the positions into a queue that the loop reads.

This requires an operand that has all coordinates of the loop, or whose coordinates are all visited.
For any other operand, such as ``B`` in ``B * C + D``, its visited bits are scanned instead, and a
memory maps them to their positions among all of its bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce

from t2s.core.expr import Expr, Local, const
from t2s.core.types import INT32
from t2s.patterns.ir import (
    WORD_BITS,
    Bind,
    Foreach,
    Header,
    Held,
    JoinKind,
    MemoryKind,
    Parallel,
    PatternStatement,
    Push,
    ReadMemory,
    ScanHeader,
    WriteMemory,
)
from t2s.patterns.verify import BitSet, is_inside
from t2s.sparse_repr.concrete.merge import Both, Either, Everything, Leaf, Merge
from t2s.sparse_repr.notation.ir import Access
from t2s.sparse_repr.stardust.coiteration import EVERY, CombinedLevels, set_of
from t2s.sparse_repr.stardust.emitter import ONE, WORD, PatternEmitter, PinningRule, add
from t2s.sparse_repr.stardust.entries import all_bits, bits_of, put_foreach
from t2s.sparse_repr.stardust.operands import OperandState, PatternOperands
from t2s.sparse_repr.stardust.scope import OpenedLoop

_Bits = tuple[Access, bool] | None
"""What words are of: an operand, all of its bits or those visited, or, of ``None``, the loop."""


def opened_combination(
    operands: PatternOperands,
    iteration: CombinedLevels,
    variable: str,
    states: Mapping[Access, OperandState],
    parallel: Parallel,
    *,
    counted: bool,
) -> OpenedLoop:
    """The statements before a loop over combined levels, and its header.

    ``counted``: another scan counts its iterations before.
    """
    return _Combination(operands, iteration, variable, states, parallel).opened(counted)


@dataclass
class _Combination:
    """A loop about to be opened; ``left`` are queues of bits without a consumer so far."""

    operands: PatternOperands
    iteration: CombinedLevels
    variable: str
    states: Mapping[Access, OperandState]
    parallel: Parallel
    left: dict[_Bits, list[str]] = field(default_factory=dict)
    taken: list[PatternStatement] = field(default_factory=list)

    @property
    def emitter(self) -> PatternEmitter:
        return self.operands.emitter

    @property
    def members(self) -> tuple[Access, ...]:
        """The operands; the loop's own scan is that of the last one."""
        return self.iteration.accesses

    @cached_property
    def visited(self) -> BitSet:
        """The coordinates of the loop."""
        return set_of(self.iteration.merge)

    def join(self, access: Access) -> JoinKind | None:
        """The join with which a scan of an operand yields the loop's iterations, or ``None``."""
        own = set_of(Leaf(access=access))
        if is_inside(own, self.visited):
            return JoinKind.OR
        return JoinKind.AND if is_inside(self.visited, own) else None

    def opened(self, counted: bool) -> OpenedLoop:
        """The loop, with the words that it takes in each iteration."""
        emitter, bits = self.emitter, self.emitter.bits(self.variable)
        self.combine(counted)
        headers: list[Header] = []
        if counted:
            queue = self.left[None].pop(0)
            headers.append(ScanHeader(bits=bits, left=queue, parallel=self.parallel))
        numbers: dict[Access, Local] = {}
        for access in self.members[:-1]:
            queue = emitter.queue(f"{access.tensor}_positions", INT32, PinningRule.POSITIONS)
            binders = self.binders(f"{self.variable}_{access.tensor}")
            push = Push(queue=queue, value=binders[3])
            self.scan(self.header(access), binders, push)
            place = emitter.local(f"{self.variable}_in_{access.tensor}")
            self.taken.append(emitter.pop(place, queue))
            numbers[access] = self.position(access, place)
        last = self.members[-1]
        headers.append(self.header(last))
        binders = self.binders(self.variable)
        numbers[last] = self.position(last, binders[3])
        whole = {
            member
            for member in self.members
            if is_inside(self.visited, set_of(Leaf(access=member)))
        }
        return OpenedLoop(
            headers=tuple(headers),
            binders=binders,
            coordinate=binders[0],
            number=binders[2],
            count=const(0),
            numbers=numbers,
            optional=frozenset(self.members) - whole,
            taken=tuple(self.taken),
        )

    def binders(self, name: str) -> tuple[Local, ...]:
        ends = ("", "_joined", "_out", "_right")
        return tuple(self.emitter.local(f"{name}{end}") for end in ends)

    def scan(self, header: ScanHeader, binders: tuple[Local, ...], body: PatternStatement) -> None:
        self.emitter.put(
            Foreach(header=header, binders=tuple(binder.name for binder in binders), body=(body,))
        )

    def header(self, access: Access) -> ScanHeader:
        """The scan that yields the iterations, with an operand or the visited coordinates."""
        join = self.join(access)
        return ScanHeader(
            bits=self.emitter.bits(self.variable),
            left=self.left[None].pop(0),
            right=self.left[access, join is None].pop(0),
            join=join or JoinKind.OR,
            parallel=self.parallel,
        )

    def position(self, access: Access, visited_place: Local) -> Local:
        """The position in an operand, from the position among its scanned bits."""
        if self.join(access) is not None:
            return visited_place
        emitter, segment = self.emitter, self.states[access].segment
        assert segment is not None
        memory = emitter.chip(
            f"{access.tensor}_places",
            MemoryKind.SPARSE_SRAM,
            INT32,
            segment.length,
            PinningRule.POSITIONS_AMONG_ALL,
        )
        header = ScanHeader(
            bits=emitter.bits(self.variable),
            left=self.left[access, True].pop(0),
            right=self.left[access, False].pop(0),
            join=JoinKind.AND,
            parallel=Parallel(factor=emitter.lanes, variable="ip"),
        )
        binders = self.binders(f"{self.variable}_{access.tensor}")
        write = WriteMemory(memory=memory, index=binders[2], value=add(binders[3], ONE))
        self.scan(header, binders, write)
        place, position = (emitter.local(f"{self.variable}_place") for _ in range(2))
        value = place - ONE
        self.taken += [
            # a bit that is not visited has position 0, and so has no position in the operand
            ReadMemory(target=place.name, memory=memory, index=visited_place),
            Bind(target=position.name, value=value),
        ]
        return position

    def combine(self, counted: bool) -> None:
        """Build the bits of all operands, with as many copies as there are scans."""
        emitter, merge = self.emitter, self.iteration.merge
        queues = [
            bits_of(self.operands, access, self.variable, self.states) for access in self.members
        ]
        if any(EVERY in term for term in self.visited):
            queues.append(all_bits(self.operands, self.variable))
        words = [emitter.local("word", WORD) for _ in queues]
        body: list[PatternStatement] = [
            emitter.pop(word, queue) for word, queue in zip(words, queues, strict=True)
        ]
        known = dict(zip(self.members, words, strict=False))

        def named(name: str, value: Expr) -> Expr:
            variable = emitter.local(name, WORD)
            body.append(Bind(target=variable.name, value=value))
            return variable

        joined = named("joined", _combined(merge, known, words[-1]))

        def copies(key: _Bits, value: Expr, queue: str, held: Held | None, count: int) -> None:
            bit_queues = [emitter.bit_queue(queue, held) for _ in range(count)]
            self.left[key] = bit_queues
            body.extend(Push(queue=bit_queue, value=value) for bit_queue in bit_queues)

        copies(None, joined, f"{self.variable}_bits", None, len(self.members) + counted)
        for access, queue in zip(self.members, queues, strict=False):
            held, name = emitter.held_by(queue), f"{queue}_taken"
            copies((access, False), known[access], name, held, 1)
            if self.join(access) is None:
                visited = named("visited", joined & known[access])
                copies((access, True), visited, f"{queue}_visited", held, 2)
        count = emitter.bits(self.variable) // WORD_BITS
        put_foreach(emitter, count, emitter.local("at_word"), body)


def _combined(merge: Merge, words: Mapping[Access, Local], every: Local) -> Expr:
    """The words of the coordinates to visit; ``every`` are those of all coordinates."""
    match merge:
        case Leaf(access=access):
            return words[access]
        case Both(members=members):
            return reduce(lambda a, b: a & b, _each(members, words, every))
        case Either(members=members, everything=everything):
            parts = [*_each(members, words, every), *([every] if everything else [])]
            return reduce(lambda a, b: a | b, parts)
        case Everything():
            raise TypeError("counters visit all coordinates")


def _each(members: tuple[Merge, ...], words: Mapping[Access, Local], every: Local) -> list[Expr]:
    return [_combined(member, words, every) for member in members]
