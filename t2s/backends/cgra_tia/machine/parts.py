"""The parts of a placed design while it runs: what they all do, and the cells.

A part looks at the state at the start of a cycle and fires, or says what it waits for.  It is
looked at again only when that may have changed, so that what waits costs nothing; the cycles that
it waited are counted when it goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from t2s.backends.cgra_tia.fabric import CoreParameters
from t2s.backends.cgra_tia.machine.agenda import Agenda
from t2s.backends.cgra_tia.machine.channel_queue import ChannelQueue
from t2s.backends.cgra_tia.machine.floats import TokenMeaning, Word, bits
from t2s.backends.cgra_tia.machine.words import SCRATCHPAD
from t2s.backends.cgra_tia.netlist import NetCell, StreamUnit
from t2s.backends.cgra_tia.opcodes import ON_FMA, Opcode
from t2s.backends.cgra_tia.program import (
    CellProgram,
    FromChannel,
    FromRegister,
    Immediate,
    Instruction,
    ToPredicate,
    ToRegister,
)
from t2s.core.errors import UserError


class Stall(Enum):
    """Why a part did not fire in a cycle between its first and its last firing."""

    STARVED = "starved"
    BLOCKED = "blocked"
    WAITING = "waiting"


Cause = tuple[Stall, ChannelQueue | None]


class PlacedPart:
    """A cell or a unit.

    ``wake`` is a cycle in which it is certain to be looked at, ``looked`` the last in which it was.
    ``stalls`` are cycles by cause between the first firing and the last; ``since`` is the cycle
    from which on it waits for ``cause``.
    """

    def __init__(self, origin: NetCell | StreamUnit, agenda: Agenda[PlacedPart]) -> None:
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

    def step(self, now: int) -> None:
        """Fire in this cycle if that is possible."""
        raise NotImplementedError

    def awake_at(self, cycle: int) -> None:
        """Look at the part in a cycle to come."""
        if self.wake != cycle:
            self.wake = cycle
            self.agenda.add(cycle, self)

    def rest(self, now: int, stall: Stall, queue: ChannelQueue | None = None) -> None:
        """It did not fire in this cycle, and does not before something changes."""
        cause = (stall, queue)
        if cause != self.cause:
            self._note(now)
            self.cause, self.since = cause, now

    def fired(self, now: int) -> None:
        """It fired in this cycle."""
        self._note(now)
        if self.first:
            for cause, cycles in self._pending.items():
                self.stalls[cause] = self.stalls.get(cause, 0) + cycles
        else:
            self.first = now
        self._pending.clear()
        self.cause = None
        self.last = now
        self.firings += 1
        self.awake_at(now + 1)

    def _note(self, now: int) -> None:
        if self.cause is not None:
            waited = now - self.since
            self._pending[self.cause] = self._pending.get(self.cause, 0) + waited

    def send(self, now: int, port: int, tag: int, word: Word) -> None:
        """Put a token into every branch of the net at an output."""
        for queue in self.outputs[port]:
            ready = now + queue.latency
            queue.tokens.append((ready, tag, word))
            queue.sink.awake_at(ready)
            self.agenda.tokens += 1

    def take(self, now: int, port: int) -> tuple[int, Word]:
        """Take the tag and the word at an input."""
        queue = self.inputs[port]
        _, tag, word = queue.tokens.popleft()
        queue.taken_at = now
        queue.source.awake_at(now + 1)
        self.agenda.tokens -= 1
        return tag, word

    def full_output(self, now: int, port: int) -> ChannelQueue | None:
        """A branch of the net at an output that has no room."""
        return next((queue for queue in self.outputs[port] if queue.full(now)), None)


class CompiledInstruction:
    """An instruction in the form that a cell fires."""

    def __init__(
        self, origin: Instruction, core: CoreParameters, meanings: Mapping[Opcode, TokenMeaning]
    ) -> None:
        self.origin = origin
        self.checks = [(c.channel, c.tag, c.equal) for c in origin.trigger.checks]
        self.ports = origin.outputs
        self.tag = getattr(origin.destination, "tag", 0)
        self.slow = origin.opcode in ON_FMA
        self.scratchpad = origin.opcode in SCRATCHPAD
        self.meaning = meanings.get(origin.opcode)
        self.registers = [s.number for s in origin.sources if isinstance(s, FromRegister)]
        self.to_register = self.to_predicate = -1
        match origin.destination:
            case ToRegister(number=number):
                self.to_register = number
                self.registers.append(number)
            case ToPredicate(number=number):
                self.to_predicate = number
        self.operands = [_operand(source, core) for source in origin.sources]
        self.operands += [(_CONSTANT, 0)] * (3 - len(self.operands))


_CONSTANT, _REGISTER, _CHANNEL = range(3)


def _operand(
    source: FromRegister | FromChannel | Immediate, core: CoreParameters
) -> tuple[int, int]:
    match source:
        case FromRegister(number=number):
            return _REGISTER, number
        case FromChannel(number=number):
            return _CHANNEL, number
        case Immediate(pattern=pattern):
            sign = pattern >> core.immediate_width - 1
            extended = pattern - (sign << core.immediate_width)
            return _CONSTANT, extended & (1 << core.word_width) - 1


class CompiledProgram:
    """The instructions of a program; cells with equal programs share it."""

    def __init__(
        self, origin: CellProgram, core: CoreParameters, meanings: Mapping[Opcode, TokenMeaning]
    ) -> None:
        self.origin = origin
        self.instructions = [CompiledInstruction(i, core, meanings) for i in origin.instructions]
        self.slow_registers = any(i.slow and i.to_register >= 0 for i in self.instructions)
        self._candidates: dict[int, tuple[CompiledInstruction, ...]] = {}

    def candidates(self, predicates: int) -> tuple[CompiledInstruction, ...]:
        """The instructions whose pattern these predicates match, in the order of the text."""
        found = self._candidates.get(predicates)
        if found is None:
            found = tuple(
                i
                for i in self.instructions
                if not (i.origin.trigger.ones & ~predicates | i.origin.trigger.zeros & predicates)
            )
            self._candidates[predicates] = found
        return found


class PlacedCell(PlacedPart):
    """A cell that runs: registers, predicates and a scratchpad."""

    def __init__(
        self,
        origin: NetCell,
        agenda: Agenda[PlacedPart],
        program: CompiledProgram,
        core: CoreParameters,
        fma_latency: int,
    ) -> None:
        super().__init__(origin, agenda)
        self.program = program
        self.registers: list[Word] = [0] * core.registers
        for number, word in program.origin.initial:
            self.registers[number] = word
        self.predicates = 0
        self.halted = False
        self.scratchpad: dict[int, Word] = {}
        self._words = core.scratchpad_words
        self._fma_interval = max(1, fma_latency)
        self._busy_until = [0] * core.registers

    def step(self, now: int) -> None:
        if self.halted:
            return
        first: Cause | None = None
        for instruction in self.program.candidates(self.predicates):
            cause = self._obstacle(instruction, now)
            if cause is None:
                self._fire(instruction, now)
                return
            if first is None and cause is not _OTHER_TAG:
                first = cause
        self.rest(now, *(first or _OTHER_TAG))

    def _obstacle(self, instruction: CompiledInstruction, now: int) -> Cause | None:
        """Why an instruction cannot fire now, if it cannot."""
        for channel, tag, equal in instruction.checks:
            queue = self.inputs[channel]
            tokens = queue.tokens
            if not tokens or tokens[0][0] > now:
                return Stall.STARVED, queue
            if (tokens[0][1] == tag) is not equal:
                return _OTHER_TAG
        for port in instruction.ports:
            full = self.full_output(now, port)
            if full is not None:
                return Stall.BLOCKED, full
        if self.program.slow_registers:
            for register in instruction.registers:
                if self._busy_until[register] > now:
                    self.awake_at(self._busy_until[register])
                    return Stall.WAITING, None
        return None

    def _fire(self, instruction: CompiledInstruction, now: int) -> None:
        values: list[Word] = []
        for kind, number in instruction.operands:
            if kind == _CHANNEL:
                values.append(self.inputs[number].tokens[0][2])
            else:
                values.append(self.registers[number] if kind == _REGISTER else number)
        origin = instruction.origin
        if instruction.meaning is not None:
            result = instruction.meaning(*values)
        else:
            result = self._scratchpad(origin, values)
        for port in instruction.ports:
            self.send(now, port, instruction.tag, result)
        if instruction.to_register >= 0:
            self.registers[instruction.to_register] = result
            if instruction.slow:
                self._busy_until[instruction.to_register] = now + self._fma_interval
        elif instruction.to_predicate >= 0:
            flag = 1 << instruction.to_predicate
            self.predicates = self.predicates | flag if bits(result) else self.predicates & ~flag
        for channel in origin.takes:
            self.take(now, channel)
        self.predicates = self.predicates & ~origin.clears | origin.sets
        self.halted = origin.opcode is Opcode.HALT
        self.fired(now)

    def _scratchpad(self, instruction: Instruction, values: Sequence[Word]) -> Word:
        loads = instruction.opcode is Opcode.LSW
        address = bits(values[0] if loads else values[1])
        if address >= self._words:
            raise UserError(
                f"the cell {self.name!r} goes beyond its scratchpad",
                location=self.origin.origin.location if self.origin.origin else None,
                expected=f"an address from 0 to {self._words - 1}",
                given=f"{instruction.opcode.value} of address {address}",
            )
        if loads:
            return self.scratchpad.get(address, 0)
        self.scratchpad[address] = values[0]
        return 0


_OTHER_TAG: Cause = (Stall.STARVED, None)
"""Tokens are there, and no instruction for them."""
