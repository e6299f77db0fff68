"""What arrays of profile A are made of: FIFOs, links, memory ports and processing elements.

All of them look at the state at the start of a cycle: what is put into a FIFO, and taken from it,
is seen in the next one, when ``commit`` has been called.  An element fires the first instruction
whose trigger holds, all at once; where the datapath and the constants write one predicate, the
constant wins.
"""

from __future__ import annotations

from collections import deque

from t2s.backends.cgra_tia.fabric import CoreParameters
from t2s.backends.cgra_tia.machine.words import word_meanings
from t2s.backends.cgra_tia.program import (
    CellProgram,
    FromChannel,
    FromRegister,
    Immediate,
    Instruction,
    Opcode,
    Source,
    ToOutputs,
    ToPredicate,
    ToRegister,
)
from t2s.core.errors import UserError

PORT_DEPTH = 4
"""Tokens in each FIFO of a memory port."""


class PublicFifo:
    """A FIFO of tokens (tag, word).

    ``name`` is for messages.  Whatever changes in a cycle enters itself in ``changes``, a list
    that all FIFOs of an array share; the element at whose side it is looks at it then.
    """

    __slots__ = ("_changes", "_put", "_taken", "depth", "name", "owner", "tokens")

    def __init__(
        self,
        name: str,
        depth: int,
        changes: list[PublicFifo],
        owner: PublicElement | None = None,
    ) -> None:
        self.name = name
        self.depth = depth
        self.owner = owner
        self.tokens: deque[tuple[int, int]] = deque()
        self._changes = changes
        self._put: tuple[int, int] | None = None
        self._taken = False

    @property
    def full(self) -> bool:
        return len(self.tokens) >= self.depth

    def put(self, tag: int, word: int) -> None:
        if not self._taken:
            self._changes.append(self)
        self._put = (tag, word)

    def take(self) -> tuple[int, int]:
        if self._put is None:
            self._changes.append(self)
        self._taken = True
        return self.tokens[0]

    def commit(self) -> int:
        """Let the changes of this cycle take effect; how many tokens there are more."""
        more = 0
        if self._taken:
            self.tokens.popleft()
            self._taken = False
            more -= 1
        if self._put is not None:
            self.tokens.append(self._put)
            self._put = None
            more += 1
        if self.owner is not None:
            self.owner.changed = True
        return more

    def __str__(self) -> str:
        return f"{self.name} ({len(self.tokens)} of {self.depth} tokens)"


class PublicLink:
    """A wire from a sender's FIFO to a receiver's: one token per cycle."""

    __slots__ = ("sink", "source")

    def __init__(self, source: PublicFifo, sink: PublicFifo) -> None:
        self.source = source
        self.sink = sink

    def step(self) -> None:
        if self.source.tokens and not self.sink.full:
            self.sink.put(*self.source.take())


class ReadPort:
    """Takes addresses, and gives the words there with the tags of the addresses."""

    def __init__(self, name: str, changes: list[PublicFifo]) -> None:
        self.name = name
        self.addresses = PublicFifo(f"the addresses of {name}", PORT_DEPTH, changes)
        self.data = PublicFifo(f"the data of {name}", PORT_DEPTH, changes)
        self._pending: tuple[int, int] | None = None

    def step(self, memory: list[int]) -> None:
        if self._pending is not None and not self.data.full:
            self.data.put(*self._pending)
            self._pending = None
        if self._pending is None and self.addresses.tokens:
            tag, address = self.addresses.take()
            self._pending = (tag, memory[checked_address(self.name, address, memory)])


class WritePort:
    """Takes an address and a word in the same cycle, and stores the word there."""

    def __init__(self, name: str, changes: list[PublicFifo]) -> None:
        self.name = name
        self.addresses = PublicFifo(f"the addresses of {name}", PORT_DEPTH, changes)
        self.data = PublicFifo(f"the data of {name}", PORT_DEPTH, changes)

    def step(self, memory: list[int]) -> None:
        if self.addresses.tokens and self.data.tokens:
            _, address = self.addresses.take()
            _, word = self.data.take()
            memory[checked_address(self.name, address, memory)] = word


def checked_address(port: str, address: int, memory: list[int]) -> int:
    """The address, if the memory has a word there."""
    if address < len(memory):
        return address
    raise UserError(
        f"{port} is asked for a word beyond the memory",
        expected=f"an address from 0 to {len(memory) - 1}",
        given=str(address),
        hint="give a larger memory with words=...",
    )


def empty_channel(instruction: str, channel: int) -> UserError:
    """The error of a firing that finds a channel empty which its trigger does not check."""
    return UserError(
        f"{instruction} fires without a token in %i{channel}",
        expected="a token there, as the instruction reads or takes it without a check",
        given=f"%i{channel} is empty",
        hint=f"`with %i{channel}.TAG` in its trigger waits for a token",
    )


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
        self._core = core
        self._meanings = word_meanings(core.word_width)
        self._unchecked = [instruction.unchecked for instruction in program.instructions]
        self._candidates: dict[int, tuple[int, ...]] = {}

    def step(self) -> int:
        """Fire if an instruction can; its number, or -1."""
        if self.halted:
            return -1
        if self.changed:
            for number in self.candidates():
                instruction = self.program.instructions[number]
                if self.obstacle(instruction) is None:
                    for channel in self._unchecked[number]:
                        self._require_token(number, channel)
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
                if instruction.trigger.matches(self.predicates)
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
                return self._core.extended(pattern)

    def _require_token(self, number: int, channel: int) -> None:
        """Raise ``UserError`` if an instruction fires that uses a channel without a token."""
        if self.inputs[channel].tokens:
            return
        line = self.program.instructions[number].line_text
        raise empty_channel(f"instruction {number}{line} of {self.name}", channel)

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
