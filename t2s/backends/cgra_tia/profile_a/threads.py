"""Threads: what runs side by side in a PE, and the program of several of them.

A thread has a state, a bit that tests write, registers, and wires to take from and to send to.
Each of its steps is one instruction.  A PE has several threads: those of the design's PEs, those
that forward streams to neighbors, and those that send addresses.  They share nothing but the one
instruction that fires in a cycle, so their order does not affect values.  The PE halts when all of
them have ended.

The threads of a PE of the design are in ``firing_threads``; all others are here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from t2s.backends.cgra_tia import program as isa
from t2s.backends.cgra_tia.fabric import PUBLIC_CORE
from t2s.backends.cgra_tia.lower.process import TokenStream
from t2s.backends.cgra_tia.profile_a.control import END
from t2s.core.ops import Array

WORD_MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class AddressWire:
    """The addresses for a stream of the memory, from a PE to a port."""

    stream: TokenStream


Wire = TokenStream | AddressWire


@dataclass(frozen=True, slots=True)
class HeadOf:
    """The value of the token at the head of a stream."""

    stream: TokenStream


@dataclass(frozen=True, slots=True)
class ThreadRegister:
    """A register of a thread, named by its use."""

    use: Hashable


StepOperand = HeadOf | ThreadRegister | isa.Immediate


@dataclass(frozen=True, slots=True)
class ToWires:
    """A result that is sent with one tag."""

    wires: tuple[Wire, ...]
    tag: int


@dataclass(frozen=True, slots=True)
class ToTest:
    """A result that decides which of the next steps fires."""


StepTarget = ToWires | ThreadRegister | ToTest | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadStep:
    """An instruction of a thread; fires in ``state``, if the test bit is ``test``.

    ``checks`` are streams that need a token with this tag, or (``None``) with any tag but that of
    the end.  A step that writes the test leads to a state whose steps look at it; all other steps
    that lead there leave it false.
    """

    state: int
    next: int
    opcode: isa.Opcode
    target: StepTarget = None
    operands: tuple[StepOperand, ...] = ()
    checks: tuple[tuple[TokenStream, int | None], ...] = ()
    takes: tuple[TokenStream, ...] = ()
    test: bool | None = None
    comment: str = ""


@dataclass(frozen=True, kw_only=True)
class PublicThread:
    """Steps from state 0 to state ``done``, and registers with their initial words.

    ``firings`` is how often its steps fire in total.
    """

    name: str
    steps: tuple[ThreadStep, ...]
    done: int
    firings: int
    slots: Mapping[ThreadRegister, int] = field(default_factory=dict)

    @cached_property
    def codes(self) -> StateCodes:
        return StateCodes.of_thread(self)


@dataclass(frozen=True, kw_only=True)
class StateCodes:
    """The states of a thread as predicates: ``width`` bits, the highest of which is the test.

    States that do not depend on the test use its bit like any other.
    """

    width: int
    code: Mapping[int, int]
    tested: frozenset[int]

    @staticmethod
    def of_thread(thread: PublicThread) -> StateCodes:
        """An encoding in as few bits as possible, with state 0 as all zeros."""
        states = sorted({0, thread.done, *(s.state for s in thread.steps)})
        tested = frozenset(step.state for step in thread.steps if step.test is not None)
        width = (len(states) + len(tested) - 1).bit_length()
        half = 1 << width - 1 if tested else 0
        code: dict[int, int] = {}
        free = [pattern for low in range(half or 1 << width) for pattern in (low, low | half)]
        free = list(dict.fromkeys(free))
        for state in sorted(states, key=lambda state: (state != 0, state not in tested, state)):
            code[state] = free.pop(0)
            if state in tested:
                free.remove(code[state] | half)
            elif state == 0 and tested:
                # with the test bit, this code cannot be that of a tested state: use it last
                free.append(free.pop(0))
        return StateCodes(width=width, code=code, tested=tested)

    @property
    def test(self) -> int:
        """The bit of the test."""
        return 1 << self.width - 1


def moving_thread(
    stream: TokenStream, tags: Sequence[int], *, tokens: int, hands_on_end: bool, comment: str
) -> PublicThread:
    """A thread that forwards the tokens of a stream with their tags, up to its end."""
    steps = [
        ThreadStep(
            state=0,
            next=0,
            opcode=isa.Opcode.MOV,
            target=ToWires((stream,), tag),
            operands=(HeadOf(stream),),
            checks=((stream, tag),),
            takes=(stream,),
            comment=comment,
        )
        for tag in tags
    ]
    steps.append(
        ThreadStep(
            state=0,
            next=1,
            opcode=isa.Opcode.MOV if hands_on_end else isa.Opcode.NOP,
            target=ToWires((stream,), END) if hands_on_end else None,
            operands=(HeadOf(stream),) if hands_on_end else (),
            checks=((stream, END),),
            takes=(stream,),
            comment=f"{comment}, at its end",
        )
    )
    return PublicThread(name=f"mover of {stream}", steps=tuple(steps), done=1, firings=tokens + 1)


class NoRoom(Exception):
    """The threads of a PE need more of a resource than it has."""

    def __init__(self, what: str, needed: int, most: int, threads: Sequence[str]) -> None:
        super().__init__(f"{needed} {what} ({', '.join(threads)}), and it has {most}")
        self.needed = needed


def check_room(threads: Sequence[PublicThread]) -> None:
    """Raise ``NoRoom`` if threads do not fit into one PE."""
    core = PUBLIC_CORE
    for what, needed, most in (
        ("instructions", sum(len(t.steps) for t in threads) + 1, core.instructions),
        ("predicates", sum(t.codes.width for t in threads), core.predicates),
        ("registers", sum(len(t.slots) for t in threads), core.registers),
    ):
        if needed > most:
            raise NoRoom(what, needed, most, [thread.name for thread in threads])


def program_of_threads(
    label: str,
    threads: Sequence[PublicThread],
    inputs: Mapping[TokenStream, int],
    outputs: Mapping[Wire, int],
) -> isa.CellProgram:
    """The program of a PE, given the sides of its wires; raises ``NoRoom``."""
    check_room(threads)
    instructions: list[isa.Instruction] = []
    initial: list[tuple[int, int]] = []
    ones = zeros = bit = register = 0
    for thread in threads:
        registers = {slot: register + at for at, slot in enumerate(thread.slots)}
        register += len(registers)
        initial += [(registers[slot], word) for slot, word in thread.slots.items() if word]
        printer = _StepWriter(bit, thread, registers, inputs, outputs)
        instructions += [printer.instruction(step) for step in thread.steps]
        codes = thread.codes
        ones |= codes.code[thread.done] << bit
        zeros |= ((1 << codes.width) - 1 & ~codes.code[thread.done]) << bit
        bit += codes.width
    comment = "all that this PE has to do is done" if threads else "nothing to do here"
    instructions.append(
        isa.Instruction(
            trigger=isa.Trigger(ones=ones, zeros=zeros), opcode=isa.Opcode.HALT, comment=(comment,)
        )
    )
    return isa.CellProgram(label=label, initial=tuple(initial), instructions=tuple(instructions))


class _StepWriter:
    """Turns steps into instructions; ``bit`` is the first predicate of the thread."""

    def __init__(
        self,
        bit: int,
        thread: PublicThread,
        registers: Mapping[ThreadRegister, int],
        inputs: Mapping[TokenStream, int],
        outputs: Mapping[Wire, int],
    ) -> None:
        self._bit = bit
        self._codes = thread.codes
        self._registers = registers
        self._inputs = inputs
        self._outputs = outputs

    def instruction(self, step: ThreadStep) -> isa.Instruction:
        """The instruction of a step."""
        codes = self._codes
        field, test = (1 << codes.width) - 1, codes.test
        looks = step.state in codes.tested
        seen = field & ~test if looks and step.test is None else field
        now = codes.code[step.state] | (test if looks and step.test else 0)
        written = field & ~test if isinstance(step.target, ToTest) else field
        after = codes.code[step.next]
        ones, zeros = now & seen, ~now & seen
        return isa.Instruction(
            trigger=isa.Trigger(
                ones=ones << self._bit,
                zeros=zeros << self._bit,
                checks=tuple(self._check(*check) for check in step.checks),
            ),
            opcode=step.opcode,
            destination=self._target(step.target),
            sources=tuple(self._source(operand) for operand in step.operands),
            takes=tuple(sorted({self._inputs[stream] for stream in step.takes})),
            sets=(after & written & ~ones) << self._bit,
            clears=(~after & written & ~zeros) << self._bit,
            comment=(step.comment,) if step.comment else (),
        )

    def _check(self, stream: TokenStream, tag: int | None) -> isa.TagCheck:
        channel = self._inputs[stream]
        if tag is None:
            return isa.TagCheck(channel=channel, tag=END, equal=False)
        return isa.TagCheck(channel=channel, tag=tag)

    def _target(self, target: StepTarget) -> isa.Destination:
        match target:
            case ToWires(wires=wires, tag=tag):
                return isa.ToOutputs(tuple(sorted(self._outputs[wire] for wire in wires)), tag)
            case ThreadRegister():
                return isa.ToRegister(self._registers[target])
            case ToTest():
                return isa.ToPredicate(self._bit + self._codes.width - 1)
            case None:
                return None

    def _source(self, operand: StepOperand) -> isa.Source:
        match operand:
            case HeadOf(stream=stream):
                return isa.FromChannel(self._inputs[stream])
            case ThreadRegister():
                return isa.FromRegister(self._registers[operand])
            case isa.Immediate():
                return operand


# Threads that send the addresses of a stream to a port: loop nests as instructions.
#
# An address is the register of its lane plus an immediate, so it takes one instruction.  A loop
# takes two or three more for each iteration: advance the registers, count, test.  It needs no
# counter if a register always ends with the same value.  Innermost loops are unrolled as far as
# there is room.


def unrolled_nests(items: Sequence[AddressItem]) -> Iterator[tuple[AddressItem, ...]]:
    """A nest with its innermost loops unrolled less and less."""
    yield from (
        tuple(part for item in items for part in _unrolled(item, most))
        for most in (12, 10, 8, 6, 5, 4, 3, 2, 1)
    )


def _unrolled(item: AddressItem, most: int) -> tuple[AddressItem, ...]:
    """An item with innermost loops unrolled to at most ``most`` addresses in their bodies."""
    if isinstance(item, TaggedAddress):
        return (item,)
    inner = tuple(part for inner_item in item.items for part in _unrolled(inner_item, most))
    if any(isinstance(part, AddressLoop) for part in inner):
        return (replace(item, items=inner),)
    times = max(
        (n for n in range(1, item.count + 1) if item.count % n == 0 and n * len(inner) <= most),
        default=1,
    )
    body = tuple(moved(part, item.shifts, time) for time in range(times) for part in inner)
    if times == item.count:
        return body
    shifts = tuple(shift * times for shift in item.shifts)
    return (AddressLoop(item.count // times, shifts, body),)


def address_thread(
    wire: AddressWire, items: Sequence[AddressItem], *, sends_end: bool, comment: str
) -> PublicThread:
    """The thread that sends the addresses of a nest, and then the end of the stream."""
    writer = _AddressWriter(wire, comment, moving=_moving(items))
    writer.items(items, known=writer.moving)
    return writer.thread(sends_end=sends_end)


def _moving(items: Sequence[AddressItem]) -> frozenset[int]:
    """The lanes that some loop moves; all other addresses are constants."""
    lanes: set[int] = set()
    for item in items:
        if isinstance(item, AddressLoop):
            lanes |= {lane for lane, shift in enumerate(item.shifts) if shift}
            lanes |= _moving(item.items)
    return frozenset(lanes)


def _base(lane: int) -> ThreadRegister:
    return ThreadRegister(f"address {lane}")


@dataclass
class _AddressWriter:
    """Writes the steps of a thread in sequence.

    ``_drift`` is how far the register of each lane has advanced beyond the base that the addresses
    of the nest refer to; ``_test`` is the test bit that the next step needs.
    """

    wire: AddressWire
    comment: str
    moving: frozenset[int]
    steps: list[ThreadStep] = field(default_factory=list)
    slots: dict[ThreadRegister, int] = field(default_factory=dict)
    _state: int = 0
    _states: int = 1
    _test: bool | None = None
    _drift: dict[int, int] = field(default_factory=dict)
    _times: int = 1
    _firings: int = 0

    def items(self, items: Sequence[AddressItem], *, known: frozenset[int]) -> None:
        """Write items; no loop around them moves the registers of the lanes in ``known``."""
        for item in items:
            match item:
                case TaggedAddress():
                    self._send(item)
                case AddressLoop():
                    self._loop(item, known)

    def thread(self, *, sends_end: bool) -> PublicThread:
        """The thread with its last step: the end of the stream, or nothing."""
        if sends_end:
            self._add(isa.Opcode.MOV, ToWires((self.wire,), END), (isa.Immediate(0),), ", its end")
        elif self._test is not None:
            self._add(isa.Opcode.NOP, None, ())
        return PublicThread(
            name=f"addresses of {self.wire.stream}",
            steps=tuple(self.steps),
            done=self._state,
            firings=self._firings,
            slots=self.slots,
        )

    def _add(
        self,
        opcode: isa.Opcode,
        target: StepTarget,
        operands: tuple[StepOperand, ...],
        more: str = "",
    ) -> None:
        self.steps.append(
            ThreadStep(
                state=self._state,
                next=self._states,
                opcode=opcode,
                target=target,
                operands=operands,
                test=self._test,
                comment=f"{self.comment}{more}",
            )
        )
        self._firings += self._times
        self._state, self._test = self._states, None
        self._states += 1

    def _send(self, item: TaggedAddress) -> None:
        target = ToWires((self.wire,), item.tag)
        base = _base(item.lane)
        offset = isa.Immediate(item.address - self._drift.get(item.lane, 0) & WORD_MASK)
        if base not in self.slots:
            self._add(isa.Opcode.MOV, target, (offset,))
        elif offset.pattern == 0:
            self._add(isa.Opcode.MOV, target, (base,))
        else:
            self._add(isa.Opcode.ADD, target, (base, offset))

    def _loop(self, loop: AddressLoop, known: frozenset[int]) -> None:
        drift = {lane: self._drift.get(lane, 0) for lane in self.moving}
        ends = next((lane for lane in sorted(known) if loop.shifts[lane]), None)
        once = self._times == 1
        counter = None
        if ends is None:
            counter = ThreadRegister(
                ("counter", sum(isinstance(slot.use, tuple) for slot in self.slots))
            )
            self.slots[counter] = loop.count if once else 0
        for lane in sorted(self.moving):
            self.slots.setdefault(_base(lane), 0)
        if counter is not None and not once:
            self._add(isa.Opcode.MOV, counter, (isa.Immediate(loop.count),), ", times to go round")
        if self._test is not None:
            self._add(isa.Opcode.NOP, None, ())
        head, self._test = self._state, False
        self._times *= loop.count
        still = frozenset(lane for lane in known if not loop.shifts[lane])
        self.items(loop.items, known=still)
        for lane in sorted(self.moving):
            step = loop.shifts[lane] + drift[lane] - self._drift.get(lane, 0)
            if step:
                base = _base(lane)
                self._add(
                    isa.Opcode.ADD, base, (base, isa.Immediate(step & WORD_MASK)), ", further on"
                )
        if counter is None:
            assert ends is not None
            last = drift[ends] + loop.count * loop.shifts[ends]
            operands: tuple[StepOperand, ...] = (_base(ends), isa.Immediate(last & WORD_MASK))
        else:
            self._add(isa.Opcode.SUB, counter, (counter, isa.Immediate(1)), ", times to go round")
            operands = (counter, isa.Immediate(0))
        self._add(isa.Opcode.EQ, ToTest(), operands, ", whether that was the last time")
        self.steps[-1] = replace(self.steps[-1], next=head)
        self._times //= loop.count
        self._states -= 1
        self._state, self._test = head, True
        for lane in self.moving:
            self._drift[lane] = drift[lane] + loop.count * loop.shifts[lane]


# Rolling sequences of tagged addresses into loop nests, for PEs that run them.
#
# The input are the accesses of a stream, one by one.  The output is a list of items: addresses, and
# loops over items whose addresses move by a constant shift in each iteration.  Where several
# streams share a port, each of them is a *lane* with its own shift.  All repetitions with constant
# shifts are found, however they are nested and wherever tags change; an irregular sequence becomes
# a list of its addresses.

LONGEST_BODY = 64
"""Most items that are looked at as one body of a loop."""


Shifts = tuple[int, ...]
"""By lane."""


@dataclass(frozen=True, slots=True)
class TaggedAddress:
    """An address that is sent with a tag."""

    address: int
    tag: int
    lane: int = 0


@dataclass(frozen=True, slots=True)
class AddressLoop:
    """``count`` iterations of the items; the addresses of a lane grow by its shift in each."""

    count: int
    shifts: Shifts
    items: tuple[AddressItem, ...]


AddressItem = TaggedAddress | AddressLoop


def rolled(
    addresses: Array, tags: Array | None, lanes: Array | None = None
) -> tuple[AddressItem, ...]:
    """The shortest nest found for addresses with tags and lanes (``None``: all are 0)."""
    none = np.zeros(len(addresses), np.int64)
    tags, lanes = none if tags is None else tags, none if lanes is None else lanes
    count = int(lanes.max()) + 1 if len(lanes) else 1
    items = _runs(addresses, tags, lanes, count)
    length = 1
    while length <= min(LONGEST_BODY, len(items) // 2):
        shorter = _folded(items, length, count)
        if len(shorter) < len(items):
            items, length = shorter, 1
        else:
            length += 1
    return tuple(items)


def unrolled(items: Sequence[AddressItem]) -> Iterator[TaggedAddress]:
    """The addresses of a nest in order."""
    for item in items:
        match item:
            case TaggedAddress():
                yield item
            case AddressLoop():
                for time in range(item.count):
                    for address in unrolled(item.items):
                        moves = item.shifts[address.lane] * time
                        yield replace(address, address=address.address + moves)


def moved(item: AddressItem, shifts: Shifts, times: int) -> AddressItem:
    """An item with all addresses moved by ``times`` times the shifts."""
    match item:
        case TaggedAddress(address=address, lane=lane):
            return replace(item, address=address + shifts[lane] * times)
        case AddressLoop():
            return replace(item, items=tuple(moved(inner, shifts, times) for inner in item.items))


def _firsts(items: Sequence[AddressItem], firsts: dict[int, int]) -> dict[int, int]:
    """The first address of each lane."""
    for item in items:
        if isinstance(item, AddressLoop):
            _firsts(item.items, firsts)
        else:
            firsts.setdefault(item.lane, item.address)
    return firsts


def _runs(addresses: Array, tags: Array, lanes: Array, count: int) -> list[AddressItem]:
    """Runs of three or more addresses of a lane, with one stride and one tag, as loops."""
    steps = np.diff(addresses)
    same = (np.diff(tags) == 0) & (np.diff(lanes) == 0)
    items: list[AddressItem] = []
    at, total = 0, len(addresses)
    # the ends of runs: every change of stride, tag or lane
    breaks = np.flatnonzero((np.diff(steps) != 0) | ~same[1:] | ~same[:-1]) + 1
    while at < total:
        number = int(np.searchsorted(breaks, at + 1))
        last = int(breaks[number]) if number < len(breaks) else total - 1
        lane = int(lanes[at])
        start = TaggedAddress(int(addresses[at]), int(tags[at]), lane)
        if last - at >= 2 and same[at]:
            shifts = tuple(int(steps[at]) if other == lane else 0 for other in range(count))
            items.append(AddressLoop(last - at + 1, shifts, (start,)))
            at = last + 1
        else:
            items.append(start)
            at += 1
    return items


def _folded(items: list[AddressItem], length: int, lanes: int) -> list[AddressItem]:
    """The items with repetitions of ``length`` items rolled into loops."""
    folded: list[AddressItem] = []
    at = 0
    least = 3 if length == 1 else 2
    while at < len(items):
        count, shifts = _repeats(items, at, length, lanes)
        if count >= least or (count == 2 and isinstance(items[at], AddressLoop)):
            folded.append(AddressLoop(count, shifts, tuple(items[at : at + length])))
            at += count * length
        else:
            folded.append(items[at])
            at += 1
    return folded


def _repeats(items: list[AddressItem], at: int, length: int, lanes: int) -> tuple[int, Shifts]:
    """How often the ``length`` items from ``at`` on repeat, and their shifts."""
    none = (0,) * lanes
    if at + 2 * length > len(items):
        return 1, none
    first = _firsts(items[at : at + length], {})
    second = _firsts(items[at + length : at + 2 * length], {})
    if first.keys() != second.keys():
        return 1, none
    shifts = tuple(second.get(lane, 0) - first.get(lane, 0) for lane in range(lanes))
    count = 1
    while at + (count + 1) * length <= len(items):
        current, following = at + (count - 1) * length, at + count * length
        if any(
            not _is_moved(items[current + place], items[following + place], shifts)
            for place in range(length)
        ):
            break
        count += 1
    return count, shifts


def _is_moved(first: AddressItem, second: AddressItem, shifts: Shifts) -> bool:
    match first, second:
        case TaggedAddress(), TaggedAddress():
            moves = second.address - first.address
            return (first.tag, first.lane, shifts[first.lane]) == (second.tag, second.lane, moves)
        case AddressLoop(), AddressLoop():
            return (first.count, first.shifts, len(first.items)) == (
                second.count,
                second.shifts,
                len(second.items),
            ) and all(
                _is_moved(a, b, shifts) for a, b in zip(first.items, second.items, strict=True)
            )
    return False
