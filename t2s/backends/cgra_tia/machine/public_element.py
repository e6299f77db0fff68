"""A processing element of profile A: it fires the first instruction whose trigger holds.

Goes in: a program and the FIFOs at the element's sides.  Comes out: in each cycle the number of
the instruction that fired, or -1.  The trigger looks at the state at the start of the cycle, and a
firing changes it all at once; where the datapath and the constants write one predicate, the
constant wins.
"""

from __future__ import annotations

from t2s.backends.cgra_tia.fabric import CoreParameters
from t2s.backends.cgra_tia.machine.public_fifo import PublicFifo
from t2s.backends.cgra_tia.machine.words import word_meanings
from t2s.backends.cgra_tia.opcodes import Opcode
from t2s.backends.cgra_tia.program import (
    CellProgram,
    FromChannel,
    FromRegister,
    Immediate,
    Instruction,
    Source,
    ToOutputs,
    ToPredicate,
    ToRegister,
)
from t2s.core.errors import UserError

SIDES = ("north", "east", "south", "west")


class PublicElement:
    """State and counters of a processing element; ``name`` is for messages."""

    def __init__(
        self, name: str, program: CellProgram, core: CoreParameters, changes: list[PublicFifo]
    ) -> None:
        self.name = name
        self.program = program
        self.inputs = [
            PublicFifo(f"%i{number} of {name}", core.channel_depth, changes, self)
            for number in range(core.inputs)
        ]
        self.outputs = [
            PublicFifo(f"%o{number} of {name}", core.channel_depth, changes, self)
            for number in range(core.outputs)
        ]
        self.predicates = 0
        self.registers = [0] * core.registers
        for number, word in program.initial:
            self.registers[number] = word
        self.scratchpad = [0] * core.scratchpad_words
        self.halted = False
        self.retired = 0
        self.untriggered = 0
        self.changed = True
        self._extension = core.immediate_width, (1 << core.word_width) - 1
        self._meanings = word_meanings(core.word_width)
        self._candidates: dict[int, tuple[int, ...]] = {}

    def step(self) -> int:
        """Fire if an instruction can; its number, or -1."""
        if self.halted:
            return -1
        if self.changed:
            for number in self.candidates():
                instruction = self.program.instructions[number]
                if self.obstacle(instruction) is None:
                    self._fire(instruction)
                    self.retired += 1
                    return number
            self.changed = False
        self.untriggered += 1
        return -1

    def candidates(self) -> tuple[int, ...]:
        """Numbers of the instructions whose pattern the predicates match, in textual order."""
        found = self._candidates.get(self.predicates)
        if found is None:
            found = tuple(
                number
                for number, instruction in enumerate(self.program.instructions)
                if not instruction.trigger.ones & ~self.predicates
                and not instruction.trigger.zeros & self.predicates
            )
            self._candidates[self.predicates] = found
        return found

    def obstacle(self, instruction: Instruction) -> PublicFifo | None:
        """The FIFO that keeps an instruction from firing: empty, with another tag, or full."""
        for check in instruction.trigger.checks:
            fifo = self.inputs[check.channel]
            if not fifo.tokens or (fifo.tokens[0][0] == check.tag) is not check.equal:
                return fifo
        if isinstance(instruction.destination, ToOutputs):
            for channel in instruction.destination.channels:
                if self.outputs[channel].full:
                    return self.outputs[channel]
        return None

    def _fire(self, instruction: Instruction) -> None:
        values = [self._value(source) for source in instruction.sources]
        a, b, c = values + [0] * (3 - len(values))
        match instruction.opcode:
            case Opcode.LSW:
                result = self.scratchpad[self._scratch(a, instruction)]
            case Opcode.SSW:
                self.scratchpad[self._scratch(b, instruction)] = a
                result = 0
            case opcode:
                result = self._meanings[opcode](a, b, c)
        self.halted = instruction.opcode is Opcode.HALT
        match instruction.destination:
            case ToOutputs(channels=channels, tag=tag):
                for channel in channels:
                    self.outputs[channel].put(tag, result)
            case ToRegister(number=number):
                self.registers[number] = result
            case ToPredicate(number=number):
                bit = 1 << number
                self.predicates = self.predicates | bit if result else self.predicates & ~bit
        for channel in instruction.takes:
            self.inputs[channel].take()
        self.predicates = self.predicates & ~instruction.clears | instruction.sets

    def _value(self, source: Source) -> int:
        match source:
            case FromRegister(number=number):
                return self.registers[number]
            case FromChannel(number=number):
                return self.inputs[number].tokens[0][1]
            case Immediate(pattern=pattern):
                width, mask = self._extension
                return pattern - (pattern >> width - 1 << width) & mask

    def _scratch(self, address: int, instruction: Instruction) -> int:
        if address < len(self.scratchpad):
            return address
        position = instruction.position
        raise UserError(
            f"{self.name} goes beyond its scratchpad"
            + (f" in line {position.line}" if position is not None else ""),
            expected=f"an address from 0 to {len(self.scratchpad) - 1}",
            given=f"{instruction.opcode.value} of address {address}",
        )
