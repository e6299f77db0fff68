"""Stream units that run: nests, addresses, tags, and the memory behind them.

Goes in: a unit and the memory.  Comes out: its steps, at most one per cycle.  Addresses outside of
a tensor are refused when they occur.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from t2s.backends.cgra_tia.machine.parts import Agenda, ChannelQueue, PlacedPart, Stall
from t2s.backends.cgra_tia.machine.words import MASK, Word, bits, double, signed
from t2s.backends.cgra_tia.netlist import AffineSum, StreamUnit, TagCase, UnitKind
from t2s.core.errors import UserError
from t2s.core.ops import Array
from t2s.core.types import Kind
from t2s.graph.graph import Tensor
from t2s.graph.machine_semantics import MOST_ELEMENTS

Step = tuple[int, int]
"""An address, 0 without a tensor, and a tag."""


class TensorMemory:
    """A tensor in memory while a design runs, element by element; types are kept when stored."""

    def __init__(self, tensor: Tensor, array: Array) -> None:
        self.tensor = tensor
        flat = np.asarray(array).reshape(-1).tolist()
        self.words: list[Word] = flat if tensor.type.is_float else [int(v) & MASK for v in flat]

    def grow(self, address: int) -> None:
        """An open tensor is as long as what was stored needs, and zero in between."""
        if self.tensor.open and 0 <= address < MOST_ELEMENTS:
            zero: Word = 0.0 if self.tensor.type.is_float else 0
            self.words += [zero] * (address + 1 - len(self.words))

    def store(self, address: int, word: Word) -> None:
        """Write a word, as an element of the tensor's type."""
        kind, width = self.tensor.type.kind, self.tensor.type.bits
        if kind is Kind.FLOAT:
            self.words[address] = double(word)
        elif kind is Kind.BOOL:
            self.words[address] = int(bits(word) != 0)
        else:
            low = bits(word) & (1 << width) - 1
            negative = kind is Kind.INT and low >> width - 1
            self.words[address] = (low - (1 << width) if negative else low) & MASK

    def array(self) -> Array:
        """The tensor in memory, of its shape there."""
        type = self.tensor.type
        unsigned = type.kind in (Kind.UINT, Kind.BOOL)
        values = [
            word if type.is_float else bits(word) if unsigned else signed(word)
            for word in self.words
        ]
        array = np.array(values, type.numpy)
        return array if self.tensor.open else array.reshape(self.tensor.allocated)


class MemorySystem:
    """The tensors, what is stored in this cycle, and how many words move in it.

    A store is seen from the next cycle on.  ``words`` is how many words all units together move in
    a cycle, ``None`` for any number; where it is less than they ask for, who has waited longest is
    served first, and among these the first unit of the netlist.
    """

    def __init__(self, tensors: dict[str, TensorMemory], words: int | None) -> None:
        self.tensors = tensors
        self.words = words
        self.asking: list[PlacedUnit] = []
        self._stores: list[tuple[TensorMemory, int, Word]] = []

    def store(self, tensor: TensorMemory, address: int, word: Word) -> None:
        self._stores.append((tensor, address, word))

    def end_of_cycle(self, now: int) -> None:
        """Serve those who ask, as many as the bandwidth allows, and write what was stored."""
        if self.asking:
            queue = sorted(self.asking, key=lambda unit: (unit.asks_since, unit.number))
            self.asking.clear()
            for unit in queue[: self.words]:
                unit.move(now)
            for unit in queue[self.words :]:
                unit.refused(now)
        for tensor, address, word in self._stores:
            tensor.store(address, word)
        self._stores.clear()


def nest_steps(unit: StreamUnit) -> Iterator[Step]:
    """The addresses and tags of a unit's nest, in order."""
    address = unit.address or AffineSum()
    extents = [loop.extent for loop in unit.loops]
    if any(extent.constant < 1 and not extent.coefficients for extent in extents):
        return iter(())  # at once, however long the loops around it are

    def level(depth: int, outer: tuple[int, ...]) -> Iterator[Step]:
        if depth == len(extents):
            yield address.at(outer), _tag(unit.tags, outer)
        elif depth == len(extents) - 1 and not unit.tags:
            factors = address.coefficients
            stride = factors[depth] if depth < len(factors) else 0
            start = address.at(outer)
            for index in range(extents[depth].at(outer)):
                yield start + stride * index, 0
        else:
            for index in range(extents[depth].at(outer)):
                yield from level(depth + 1, (*outer, index))

    return level(0, ())


def _tag(cases: tuple[TagCase, ...], indices: tuple[int, ...]) -> int:
    for case in cases:
        values = ((condition, condition.sum.at(indices)) for condition in case.when)
        if all(value == 0 if condition.equal else value >= 0 for condition, value in values):
            return case.tag
    return 0


class PlacedUnit(PlacedPart):
    """A stream unit that runs; ``number`` is its place in the netlist."""

    def __init__(
        self,
        origin: StreamUnit,
        agenda: Agenda,
        memory: MemorySystem,
        number: int,
    ) -> None:
        super().__init__(origin, agenda)
        self.unit = origin
        self.number = number
        self.asks_since = 0
        self._memory = memory
        self._tensor = memory.tensors[origin.tensor] if origin.tensor is not None else None
        self._taken: list[ChannelQueue] = []
        self._sent: tuple[ChannelQueue, ...] = ()
        self._at_address = origin.kind in (UnitKind.LOAD_AT, UnitKind.STORE_AT)
        self._steps: Iterator[Step] = iter(())
        self._next: Step | None = None
        if self._at_address:
            self._next = (origin.address.constant if origin.address is not None else 0, 0)
        else:
            agenda.unfinished += 1
            self._steps = nest_steps(origin)
            self._advance()

    @property
    def finished(self) -> bool:
        """Whether its nest is done; a unit without a nest is always ready to end."""
        return self._at_address or self._next is None

    def _advance(self) -> None:
        self._next = next(self._steps, None)
        if self._next is None:
            self.agenda.unfinished -= 1

    def bind(self) -> None:
        self._taken = [self.inputs[port] for port in sorted(self.inputs)]
        self._sent = self.outputs.get(0, ())

    def step(self, now: int) -> None:
        if self._next is None:
            return
        for queue in self._taken:
            if not queue.tokens or queue.tokens[0][0] > now:
                self.expect(queue)
                self._wait(now, Stall.STARVED, queue)
                return
        for queue in self._sent:
            if self.full(queue):
                self._wait(now, Stall.BLOCKED, queue)
                return
        passes = self.unit.kind is UnitKind.LOAD_AT and self._taken[0].tokens[0][1]
        if self._memory.words is None or self._tensor is None or passes:
            self.move(now)
            return
        self.asks_since = self.asks_since or now
        self._memory.asking.append(self)

    def _wait(self, now: int, stall: Stall, queue: ChannelQueue) -> None:
        self.asks_since = 0
        self.rest(now, stall, queue)

    def refused(self, now: int) -> None:
        """There was no bandwidth left in this cycle."""
        loads = self.unit.kind in (UnitKind.LOAD, UnitKind.LOAD_AT)
        self.rest(now, Stall.STARVED if loads else Stall.BLOCKED)
        self.agenda.add(now + 1, self)

    def move(self, now: int) -> None:
        """Make a step."""
        self.asks_since = 0
        address, tag = self._next or (0, 0)
        taken = [queue.tokens[0] for queue in self._taken]
        self.take(now, self._taken)
        if self._at_address:
            _, tag, offset = taken[0]
            address += signed(offset)
        else:
            self._advance()
        match self.unit.kind:
            case UnitKind.SEQUENCE:
                self.send(now, self._sent, tag, address & MASK)
            case UnitKind.LOAD_AT if tag:
                self.send(now, self._sent, tag, 0)
            case UnitKind.LOAD | UnitKind.LOAD_AT:
                tensor = self._checked(address)
                self.send(now, self._sent, tag, tensor.words[address])
            case UnitKind.STORE | UnitKind.STORE_AT:
                self._memory.store(self._checked(address), address, taken[-1][2])
        self.fired(now)

    def _checked(self, address: int) -> TensorMemory:
        assert self._tensor is not None  # the wiring refuses such units
        if self.unit.kind is UnitKind.STORE_AT:
            self._tensor.grow(address)
        if 0 <= address < len(self._tensor.words):
            return self._tensor
        raise UserError(
            f"the unit {self.name!r} goes beyond the tensor {self._tensor.tensor.name!r}",
            location=self.unit.origin.location if self.unit.origin else None,
            expected=f"an element from 0 to {len(self._tensor.words) - 1}",
            given=f"element {address}, in step {self.firings + 1}",
        )
