"""Threads that send the addresses of a stream to a port: nests of loops as instructions.

The address is the sum of a register and an immediate, so that an address costs one instruction, and
a loop around some of them two or three more for each time round: move the register on, count, test.
A loop that runs once in all needs no counter where its register ends elsewhere than it began.
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
    Slot,
    StepOperand,
    StepTarget,
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
    body = tuple(moved(part, time * item.shift) for time in range(times) for part in inner)
    if times == item.count:
        return body
    return (AddressLoop(item.count // times, item.shift * times, body),)


def address_thread(
    wire: AddressWire, items: Sequence[AddressItem], *, sends_end: bool, said: str
) -> PublicThread:
    """The thread that sends the addresses of a nest, and then the end of the stream."""
    writer = _AddressWriter(wire, said)
    writer.items(items, once=True)
    return writer.thread(sends_end=sends_end)


_BASE = Slot("address")


@dataclass
class _AddressWriter:
    """Writes steps one behind the other.

    ``_drift`` is what the register of the address holds beyond what the nest's own addresses count
    from; ``_test`` what the test bit has to be for the next step to fire.
    """

    wire: AddressWire
    said: str
    steps: list[ThreadStep] = field(default_factory=list)
    slots: dict[Slot, int] = field(default_factory=dict)
    _state: int = 0
    _states: int = 1
    _test: bool | None = None
    _drift: int = 0

    def items(self, items: Sequence[AddressItem], *, once: bool) -> None:
        for item in items:
            match item:
                case TaggedAddress(address=address, tag=tag):
                    self._send(address, tag)
                case AddressLoop():
                    self._loop(item, once)

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
        self._state, self._test = self._states, None
        self._states += 1

    def _send(self, address: int, tag: int) -> None:
        target = ToWires((self.wire,), tag)
        offset = Immediate(address - self._drift & WORD_MASK)
        if not self.slots:
            self._add(Opcode.MOV, target, (offset,))
        elif offset.pattern == 0:
            self._add(Opcode.MOV, target, (_BASE,))
        else:
            self._add(Opcode.ADD, target, (_BASE, offset))

    def _loop(self, loop: AddressLoop, once: bool) -> None:
        drift = self._drift
        counter = None
        if not once or loop.shift == 0:
            counter = Slot(("counter", sum(isinstance(slot.use, tuple) for slot in self.slots)))
        self.slots.setdefault(_BASE, 0)
        if counter is not None:
            self.slots[counter] = loop.count if once else 0
        if counter is not None and not once:
            self._add(Opcode.MOV, counter, (Immediate(loop.count),), ", times to go round")
        if self._test is not None:
            self._add(Opcode.NOP, None, ())
        head, self._test = self._state, False
        self.items(loop.items, once=False)
        step = loop.shift + drift - self._drift
        if step:
            self._add(Opcode.ADD, _BASE, (_BASE, Immediate(step & WORD_MASK)), ", further on")
        if counter is None:
            last = drift + loop.count * loop.shift
            operands: tuple[StepOperand, ...] = (_BASE, Immediate(last & WORD_MASK))
        else:
            self._add(Opcode.SUB, counter, (counter, Immediate(1)), ", times to go round")
            operands = (counter, Immediate(0))
        self._add(Opcode.EQ, ToTest(), operands, ", whether that was the last time")
        self.steps[-1] = replace(self.steps[-1], next=head)
        self._states -= 1
        self._state, self._test = head, True
        self._drift = drift + loop.count * loop.shift
