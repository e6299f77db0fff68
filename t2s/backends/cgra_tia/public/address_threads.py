"""Threads that send the addresses of a stream to a port: nests of loops as instructions.

An address is the sum of the register of its lane and an immediate, so that it costs one
instruction, and a loop around some of them two or three more for each time round: move the
registers on, count, test.  A loop needs no counter where a register ends with a number that is
always the same.
Innermost loops are unrolled as far as there is room.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from t2s.backends.cgra_tia.opcodes import Opcode
from t2s.backends.cgra_tia.program import Immediate
from t2s.backends.cgra_tia.public.control import END
from t2s.backends.cgra_tia.public.rolled import AddressItem, AddressLoop, TaggedAddress, moved
from t2s.backends.cgra_tia.public.threads import (
    WORD_MASK,
    AddressWire,
    PublicThread,
    StepOperand,
    StepTarget,
    ThreadRegister,
    ThreadStep,
    ToTest,
    ToWires,
)


def unrolled_nests(items: Sequence[AddressItem]) -> Iterator[tuple[AddressItem, ...]]:
    """A nest with its innermost loops unrolled more and more, the most first."""
    yield from (
        tuple(part for item in items for part in _unrolled(item, most))
        for most in (12, 10, 8, 6, 5, 4, 3, 2, 1)
    )


def _unrolled(item: AddressItem, most: int) -> tuple[AddressItem, ...]:
    """An item, of whose innermost loops the bodies have at most so many addresses."""
    if isinstance(item, TaggedAddress):
        return (item,)
    inner = tuple(part for one in item.items for part in _unrolled(one, most))
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
    wire: AddressWire, items: Sequence[AddressItem], *, sends_end: bool, said: str
) -> PublicThread:
    """The thread that sends the addresses of a nest, and then the end of the stream."""
    writer = _AddressWriter(wire, said, moving=_moving(items))
    writer.items(items, known=writer.moving)
    return writer.thread(sends_end=sends_end)


def _moving(items: Sequence[AddressItem]) -> frozenset[int]:
    """The lanes that any loop moves; the addresses of all others are numbers."""
    found: set[int] = set()
    for item in items:
        if isinstance(item, AddressLoop):
            found |= {lane for lane, shift in enumerate(item.shifts) if shift}
            found |= _moving(item.items)
    return frozenset(found)


def _base(lane: int) -> ThreadRegister:
    return ThreadRegister(f"address {lane}")


@dataclass
class _AddressWriter:
    """Writes steps one behind the other.

    ``_drift`` is what the register of each lane holds beyond what the nest's own addresses count
    from; ``_test`` what the test bit has to be for the next step to fire.
    """

    wire: AddressWire
    said: str
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
        """Write items; of the lanes in ``known`` no loop around them moves the register."""
        for item in items:
            match item:
                case TaggedAddress():
                    self._send(item)
                case AddressLoop():
                    self._loop(item, known)

    def thread(self, *, sends_end: bool) -> PublicThread:
        """The thread with its last step: the end of the stream, or nothing."""
        if sends_end:
            self._add(Opcode.MOV, ToWires((self.wire,), END), (Immediate(0),), ", its end")
        elif self._test is not None:
            self._add(Opcode.NOP, None, ())
        return PublicThread(
            name=f"addresses of {self.wire.stream}",
            steps=tuple(self.steps),
            done=self._state,
            firings=self._firings,
            slots=self.slots,
        )

    def _add(
        self, opcode: Opcode, target: StepTarget, operands: tuple[StepOperand, ...], more: str = ""
    ) -> None:
        self.steps.append(
            ThreadStep(
                state=self._state,
                next=self._states,
                opcode=opcode,
                target=target,
                operands=operands,
                test=self._test,
                said=f"{self.said}{more}",
            )
        )
        self._firings += self._times
        self._state, self._test = self._states, None
        self._states += 1

    def _send(self, item: TaggedAddress) -> None:
        target = ToWires((self.wire,), item.tag)
        base = _base(item.lane)
        offset = Immediate(item.address - self._drift.get(item.lane, 0) & WORD_MASK)
        if base not in self.slots:
            self._add(Opcode.MOV, target, (offset,))
        elif offset.pattern == 0:
            self._add(Opcode.MOV, target, (base,))
        else:
            self._add(Opcode.ADD, target, (base, offset))

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
            self._add(Opcode.MOV, counter, (Immediate(loop.count),), ", times to go round")
        if self._test is not None:
            self._add(Opcode.NOP, None, ())
        head, self._test = self._state, False
        self._times *= loop.count
        still = frozenset(lane for lane in known if not loop.shifts[lane])
        self.items(loop.items, known=still)
        for lane in sorted(self.moving):
            step = loop.shifts[lane] + drift[lane] - self._drift.get(lane, 0)
            if step:
                base = _base(lane)
                self._add(Opcode.ADD, base, (base, Immediate(step & WORD_MASK)), ", further on")
        if counter is None:
            assert ends is not None
            last = drift[ends] + loop.count * loop.shifts[ends]
            operands: tuple[StepOperand, ...] = (_base(ends), Immediate(last & WORD_MASK))
        else:
            self._add(Opcode.SUB, counter, (counter, Immediate(1)), ", times to go round")
            operands = (counter, Immediate(0))
        self._add(Opcode.EQ, ToTest(), operands, ", whether that was the last time")
        self.steps[-1] = replace(self.steps[-1], next=head)
        self._times //= loop.count
        self._states -= 1
        self._state, self._test = head, True
        for lane in self.moving:
            self._drift[lane] = drift[lane] + loop.count * loop.shifts[lane]
