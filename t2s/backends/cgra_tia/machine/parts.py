"""The parts of a placed design while it runs: cells, stream units, and the queues between them.

A part looks at the state at the start of a cycle and fires, or says what it waits for.  It is
visited again only when that may have changed (``Agenda``), so that waiting costs nothing; the
cycles that it waited are counted when it fires again.  A token that is sent in cycle t can be taken
from t + latency on, and a take makes room for the next cycle.  A queue has one sender and one
receiver, each of which acts at most once per cycle.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

import numpy as np

from t2s.backends.cgra_tia import program as isa
from t2s.backends.cgra_tia.fabric import CgraFabric, CoreParameters
from t2s.backends.cgra_tia.machine.profile_a import empty_channel
from t2s.backends.cgra_tia.machine.words import MASK, TokenMeaning, Word, bits, double, signed
from t2s.backends.cgra_tia.netlist import AffineSum, Net, NetCell, StreamUnit, TagCase, UnitKind
from t2s.core.errors import UserError
from t2s.core.ops import Array
from t2s.core.types import Kind
from t2s.graph.graph import Tensor
from t2s.graph.semantics import MOST_ELEMENTS

Token = tuple[int, int, Word]
"""The cycle from which on it can be taken, its tag and its word."""


class ChannelQueue:
    """A branch of a net at run time; ``source`` and ``sink`` are the parts at its ends."""

    __slots__ = ("branch", "capacity", "latency", "net", "sink", "source", "taken_at", "tokens")

    def __init__(
        self,
        net: Net,
        branch: int,
        latency: int,
        capacity: int,
        ends: tuple[PlacedPart, PlacedPart],
    ) -> None:
        self.net = net
        self.branch = branch
        self.latency = latency
        self.capacity = capacity
        self.source, self.sink = ends
        self.tokens: deque[Token] = deque()
        self.taken_at = 0

    def __str__(self) -> str:
        end = f", branch {self.branch}" if len(self.net.sinks) > 1 else ""
        held = f"{len(self.tokens)} of {self.capacity} tokens"
        return f"{self.net.name!r}{end} ({held})"


class Agenda:
    """The event queue: parts by the cycle in which they are to be visited.

    ``now`` is the current cycle and ``soon`` has the parts of the next one.  ``tokens`` counts
    those in all queues, ``unfinished`` the units whose nest is not done; the run ends when both are
    0.
    """

    __slots__ = ("_cycles", "_later", "now", "soon", "tokens", "unfinished")

    def __init__(self) -> None:
        self.now = 0
        self.soon: list[PlacedPart] = []
        self.tokens = 0
        self.unfinished = 0
        self._later: dict[int, list[PlacedPart]] = {}
        self._cycles: list[int] = []

    def add(self, cycle: int, part: PlacedPart) -> None:
        """Visit a part in a later cycle."""
        if cycle == self.now + 1:
            if part.wake != cycle:
                part.wake = cycle
                self.soon.append(part)
            return
        parts = self._later.get(cycle)
        if parts is None:
            self._later[cycle] = [part]
            heapq.heappush(self._cycles, cycle)
        else:
            parts.append(part)

    def advance(self) -> list[PlacedPart]:
        """Advance to the next cycle with parts to visit, and return them.

        A part may occur several times.  The list is empty if nothing will ever happen again.
        """
        parts, self.soon = self.soon, []
        self.now += 1
        if not parts and self._cycles:
            self.now = self._cycles[0]
        if self._cycles and self._cycles[0] == self.now:
            heapq.heappop(self._cycles)
            parts += self._later.pop(self.now)
        return parts


class Stall(Enum):
    """Why a part did not fire in a cycle between its first and last firing."""

    STARVED = "starved"
    BLOCKED = "blocked"
    WAITING = "waiting"


Cause = tuple[Stall, ChannelQueue | None]


class PlacedPart:
    """A cell or a unit.

    ``wake`` is the next cycle if a visit is scheduled there already, ``looked`` the cycle of the
    last visit.  ``cause`` is what it has waited for since cycle ``since``; ``None`` if it fired at
    the last visit.  ``stalls`` are cycles by cause between the first firing and the last.
    """

    def __init__(self, origin: NetCell | StreamUnit, agenda: Agenda) -> None:
        self.origin = origin
        self.agenda = agenda
        self.inputs: dict[int, ChannelQueue] = {}
        self.outputs: dict[int, tuple[ChannelQueue, ...]] = {}
        self.wake = self.looked = 0
        self.firings = self.first = self.last = 0
        self.stalls: dict[Cause, int] = {}
        self.cause: Cause | None = None
        self.since = 0
        self._pending: dict[Cause, int] = {}

    @property
    def name(self) -> str:
        return self.origin.name

    def bind(self) -> None:
        """Find the queues that it uses, once all nets are connected."""
        raise NotImplementedError

    def step(self, now: int) -> None:
        """Fire in this cycle if that is possible."""
        raise NotImplementedError

    def rest(self, now: int, stall: Stall, queue: ChannelQueue | None = None) -> None:
        """Note that it did not fire in this cycle, and cannot before something changes."""
        cause = (stall, queue)
        if cause != self.cause:
            self._note(now)
            self.cause, self.since = cause, now

    def fired(self, now: int) -> None:
        """Note that it fired in this cycle."""
        if self.cause is not None:
            self._note(now)
            if self.first:
                for cause, cycles in self._pending.items():
                    self.stalls[cause] = self.stalls.get(cause, 0) + cycles
            self._pending.clear()
            self.cause = None
        if not self.first:
            self.first = now
        self.last = now
        self.firings += 1
        if self.wake != now + 1:
            self.wake = now + 1
            self.agenda.soon.append(self)

    def _note(self, now: int) -> None:
        if self.cause is not None:
            waited = now - self.since
            self._pending[self.cause] = self._pending.get(self.cause, 0) + waited

    def expect(self, queue: ChannelQueue) -> None:
        """Schedule a visit for when the head of a queue that starves it is ready."""
        if queue.tokens:
            self.agenda.add(queue.tokens[0][0], self)

    def full(self, queue: ChannelQueue) -> bool:
        """Whether a queue has no room; a take of this cycle makes room only in the next one."""
        if queue.taken_at != self.agenda.now:
            return len(queue.tokens) >= queue.capacity
        if len(queue.tokens) + 1 < queue.capacity:
            return False
        self.agenda.add(self.agenda.now + 1, self)
        return True

    def send(self, now: int, queues: Sequence[ChannelQueue], tag: int, word: Word) -> None:
        """Put a token into each of some queues."""
        for queue in queues:
            ready = now + queue.latency
            if not queue.tokens:
                self.agenda.add(ready, queue.sink)
            queue.tokens.append((ready, tag, word))
        self.agenda.tokens += len(queues)

    def take(self, now: int, queues: Sequence[ChannelQueue]) -> None:
        """Take the heads of some queues."""
        for queue in queues:
            queue.tokens.popleft()
            queue.taken_at = now
            if queue.source.cause is not None:
                self.agenda.add(now + 1, queue.source)
        self.agenda.tokens -= len(queues)


class BoundInstruction:
    """An instruction with the queues and registers of its cell.

    Each of the three ``operands`` has the tokens of a channel, or the number of a register, or else
    a constant.
    """

    def __init__(
        self,
        origin: isa.Instruction,
        cell: PlacedCell,
        core: CoreParameters,
        meaning: TokenMeaning | None,
    ) -> None:
        self.origin = origin
        self.meaning = meaning
        self.checks = [(cell.inputs[c.channel], c.tag, c.equal) for c in origin.trigger.checks]
        self.queues = [queue for port in origin.outputs for queue in cell.outputs[port]]
        self.tag = getattr(origin.destination, "tag", 0)
        self.takes = [cell.inputs[channel] for channel in origin.takes]
        self.unchecked = [(channel, cell.inputs[channel]) for channel in origin.unchecked]
        self.keeps, self.sets = ~origin.clears, origin.sets
        self.updates = bool(origin.clears or origin.sets)
        self.slow = origin.opcode in isa.ON_FMA
        self.halts = origin.opcode is isa.Opcode.HALT
        self.registers = [s.number for s in origin.sources if isinstance(s, isa.FromRegister)]
        self.to_register = self.to_predicate = -1
        match origin.destination:
            case isa.ToRegister(number=number):
                self.to_register = number
                self.registers.append(number)
            case isa.ToPredicate(number=number):
                self.to_predicate = number
        self.operands = [_operand(source, cell, core) for source in origin.sources]
        self.operands += [(None, None, 0)] * (3 - len(self.operands))


Operand = tuple[deque[Token] | None, int | None, int]


def _operand(source: isa.Source, cell: PlacedCell, core: CoreParameters) -> Operand:
    match source:
        case isa.FromRegister(number=number):
            return None, number, 0
        case isa.FromChannel(number=number):
            return cell.inputs[number].tokens, None, 0
        case isa.Immediate(pattern=pattern):
            return None, None, core.extended(pattern)


class PlacedCell(PlacedPart):
    """A cell at run time: registers, predicates and a scratchpad."""

    def __init__(
        self,
        origin: NetCell,
        agenda: Agenda,
        fabric: CgraFabric,
        meanings: Mapping[isa.Opcode, TokenMeaning],
    ) -> None:
        super().__init__(origin, agenda)
        core = fabric.core
        self.cell = origin
        self.registers: list[Word] = [0] * core.registers
        for number, word in origin.program.initial:
            self.registers[number] = word
        self.predicates = 0
        self.halted = False
        self.scratchpad: dict[int, Word] = {}
        self._core = core
        self._meanings = meanings
        self._instructions: list[BoundInstruction] = []
        self._candidates: dict[int, list[BoundInstruction]] = {}
        self._fma_interval = max(1, fabric.fma_latency)
        self._busy_until: list[int] = []
        """By register; empty where no result of an FMA goes to one."""

    def bind(self) -> None:
        self._instructions = [
            BoundInstruction(i, self, self._core, self._meanings.get(i.opcode))
            for i in self.cell.program.instructions
        ]
        if any(i.slow and i.to_register >= 0 for i in self._instructions):
            self._busy_until = [0] * self._core.registers

    def _matching(self) -> list[BoundInstruction]:
        """The instructions that match the predicates, in textual order."""
        matching = [i for i in self._instructions if i.origin.trigger.matches(self.predicates)]
        self._candidates[self.predicates] = matching
        return matching

    def step(self, now: int) -> None:
        if self.halted:
            return
        first: Cause | None = None
        candidates = self._candidates.get(self.predicates)
        for instruction in self._matching() if candidates is None else candidates:
            cause = self._obstacle(instruction, now)
            if cause is None:
                self._fire(instruction, now)
                return
            if first is None and cause is not _OTHER_TAG:
                first = cause
        self.rest(now, *(first or _OTHER_TAG))

    def _obstacle(self, instruction: BoundInstruction, now: int) -> Cause | None:
        """Why an instruction cannot fire now, if it cannot."""
        for queue, tag, equal in instruction.checks:
            tokens = queue.tokens
            if not tokens or tokens[0][0] > now:
                self.expect(queue)
                return Stall.STARVED, queue
            if (tokens[0][1] == tag) is not equal:
                return _OTHER_TAG
        for queue in instruction.queues:
            if len(queue.tokens) >= queue.capacity or (queue.taken_at == now and self.full(queue)):
                return Stall.BLOCKED, queue
        if self._busy_until:
            for register in instruction.registers:
                if self._busy_until[register] > now:
                    self.agenda.add(self._busy_until[register], self)
                    return Stall.WAITING, None
        return None

    def _fire(self, instruction: BoundInstruction, now: int) -> None:
        for channel, queue in instruction.unchecked:
            if not queue.tokens or queue.tokens[0][0] > now:
                raise self._without_token(instruction.origin, channel)
        registers = self.registers
        values = [
            tokens[0][2] if tokens else constant if register is None else registers[register]
            for tokens, register, constant in instruction.operands
        ]
        if instruction.meaning is not None:
            result = instruction.meaning(*values)
        else:
            result = self._scratchpad(instruction.origin, values)
        if instruction.takes:
            self.take(now, instruction.takes)
        if instruction.queues:
            self.send(now, instruction.queues, instruction.tag, result)
        elif instruction.to_register >= 0:
            registers[instruction.to_register] = result
            if instruction.slow:
                self._busy_until[instruction.to_register] = now + self._fma_interval
        elif instruction.to_predicate >= 0:
            flag = 1 << instruction.to_predicate
            self.predicates = self.predicates | flag if bits(result) else self.predicates & ~flag
        if instruction.updates:
            self.predicates = self.predicates & instruction.keeps | instruction.sets
        self.halted = instruction.halts
        self.fired(now)

    def _without_token(self, instruction: isa.Instruction, channel: int) -> UserError:
        number = self.cell.program.instructions.index(instruction)
        text = f"instruction {number}{instruction.line_text} of the cell {self.name!r}"
        return empty_channel(text, channel)

    def _scratchpad(self, instruction: isa.Instruction, values: Sequence[Word]) -> Word:
        loads = instruction.opcode is isa.Opcode.LSW
        address = bits(values[0] if loads else values[1])
        if address >= self._core.scratchpad_words:
            raise UserError(
                f"the cell {self.name!r} goes beyond its scratchpad",
                location=self.origin.origin.location if self.origin.origin else None,
                expected=f"an address from 0 to {self._core.scratchpad_words - 1}",
                given=f"{instruction.opcode.value} of address {address}",
            )
        if loads:
            return self.scratchpad.get(address, 0)
        self.scratchpad[address] = values[0]
        return 0


_OTHER_TAG: Cause = (Stall.STARVED, None)
"""Tokens are there, and no instruction for them."""


# Stream units at run time: nests, addresses, tags, and the memory behind them.
#
# A unit makes at most one step per cycle.  Addresses outside of a tensor are refused when they
# occur.

Step = tuple[int, int]
"""An address, 0 without a tensor, and a tag."""


class TensorMemory:
    """A tensor in memory at run time, as words; stores convert to the tensor's type."""

    def __init__(self, tensor: Tensor, array: Array) -> None:
        self.tensor = tensor
        flat = np.asarray(array).reshape(-1).tolist()
        self.words: list[Word] = flat if tensor.type.is_float else [int(v) & MASK for v in flat]

    def grow(self, address: int) -> None:
        """Extend an open tensor with zeros, so that it has this address."""
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
        """The tensor as an array, with its shape in memory."""
        type = self.tensor.type
        unsigned = type.kind in (Kind.UINT, Kind.BOOL)
        values = [
            word if type.is_float else bits(word) if unsigned else signed(word)
            for word in self.words
        ]
        array = np.array(values, type.numpy)
        return array if self.tensor.open else array.reshape(self.tensor.allocated)


class MemorySystem:
    """The tensors, the stores of the current cycle, and the bandwidth.

    A store is visible from the next cycle on.  ``words`` is how many words all units together move
    in a cycle (``None``: any number).  If units request more, those that have waited longest are
    served first, and among these the first in the netlist.
    """

    def __init__(self, tensors: dict[str, TensorMemory], words: int | None) -> None:
        self.tensors = tensors
        self.words = words
        self.asking: list[PlacedUnit] = []
        self._stores: list[tuple[TensorMemory, int, Word]] = []

    def store(self, tensor: TensorMemory, address: int, word: Word) -> None:
        self._stores.append((tensor, address, word))

    def end_of_cycle(self, now: int) -> None:
        """Serve as many requests as the bandwidth allows, and perform the stores."""
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
        return iter(())  # checked first, because the loops around an empty one may be long

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
    """A stream unit at run time; ``number`` is its position in the netlist."""

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
        """Whether its nest is done; a unit without a nest never holds up the end of the run."""
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
        """Note that there was no bandwidth left in this cycle."""
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
        assert self._tensor is not None  # wire() refuses such units
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
