"""The interpreter of profile A: programs in an array, cycle by cycle.

The input is a program for each processing element, row by row, and the words of the memory.  The
result is the memory at the end, the number of the last cycle (from 0), and for each element how
many instructions it retired and in how many cycles none could fire.

Channels 0, 1, 2, 3 of an element lead to its neighbors in the north, east, south, west.  In a
cycle, based on the state at its start, each element fires or does not; each link moves a token if
there is one and the receiver's FIFO is not full; each read port delivers its pending datum and
takes the next address; each write port with an address and a datum stores it.  The run ends when
all elements have halted and all FIFOs are empty.  Refused: operators that no public machine has,
deadlocks, and runs beyond the limit of cycles.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from t2s.backends.cgra_tia.fabric import CoreParameters, array_wires
from t2s.backends.cgra_tia.machine.words import SCRATCHPAD, word_meanings
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
from t2s.backends.cgra_tia.text.checks import check_operators
from t2s.backends.cgra_tia.text.places import block_name
from t2s.core.display import NotebookCard, NotebookDisplay
from t2s.core.errors import UserError
from t2s.core.ops import Array
from t2s.core.svg import PALETTE, Bar, SvgPicture, bar_chart


@dataclass(kw_only=True)
class PublicArray:
    """The array at run time; ``changes`` are the FIFOs that change in the current cycle."""

    elements: list[PublicElement] = field(default_factory=list)
    links: list[PublicLink] = field(default_factory=list)
    reads: list[ReadPort] = field(default_factory=list)
    writes: list[WritePort] = field(default_factory=list)
    changes: list[PublicFifo] = field(default_factory=list)

    def link(self, source: PublicFifo, sink: PublicFifo) -> None:
        self.links.append(PublicLink(source, sink))


def public_array(
    programs: Sequence[CellProgram], core: CoreParameters, shape: tuple[int, int] | None
) -> PublicArray:
    """The array of a shape (rows, columns), or one element alone, before its first cycle."""
    array = PublicArray()
    elements = [
        PublicElement(block_name(number, program.label), program, core, array.changes)
        for number, program in enumerate(programs)
    ]
    array.elements.extend(elements)
    wires = array_wires(shape)
    for (element, side), (neighbor, opposite) in wires.links.items():
        array.link(elements[element].outputs[side], elements[neighbor].inputs[opposite])
    for element, side in wires.reads:
        read = ReadPort(f"read port {len(array.reads)}", array.changes)
        array.link(elements[element].outputs[side], read.addresses)
        array.link(read.data, elements[element].inputs[side])
        array.reads.append(read)
    for ends in wires.writes:
        write = WritePort(f"write port {len(array.writes)}", array.changes)
        for (element, side), fifo in zip(ends, (write.addresses, write.data), strict=True):
            array.link(elements[element].outputs[side], fifo)
        array.writes.append(write)
    return array


MOST_CYCLES = 10_000_000
"""The limit of a run where none is given."""

SHOWN_ELEMENTS = 8


class TriggeredDeadlockError(UserError):
    """A program has not ended, and nothing can happen any more."""


class TriggeredLimitError(UserError):
    """A program had not ended when it reached the limit of cycles."""


@dataclass(frozen=True, kw_only=True)
class PublicRun(NotebookDisplay):
    """The result of a run.

    ``cycles`` is the number of the last cycle, from 0, as the public simulator counts; ``memory``
    are the words at the end (uint32).  ``labels``, ``retired`` (instructions) and ``untriggered``
    (cycles) are by element.  ``trace``, if requested, has a row for each cycle, including the last
    one, and a column for each element: the number of the instruction that fired, or -1.
    """

    cycles: int
    memory: Array = field(repr=False)
    labels: tuple[str, ...]
    retired: tuple[int, ...]
    untriggered: tuple[int, ...]
    trace: Array | None = field(repr=False, default=None)

    def picture(self) -> SvgPicture:
        """The instructions of each element, and the cycles in which it could not fire."""
        bars = [
            Bar(
                name=label,
                parts=(
                    (PALETTE[0], retired, f"{label}: {retired:,} instructions"),
                    (PALETTE[1], waited, f"{label}: {waited:,} cycles without one"),
                ),
                word=f"{retired:,}",
            )
            for label, retired, waited in zip(
                self.labels, self.retired, self.untriggered, strict=True
            )
        ]
        legend = (("retired", PALETTE[0]), ("untriggered", PALETTE[1]))
        return bar_chart("cycles of each element", bars, legend=legend)

    def _card(self) -> NotebookCard:
        summary = (("cycles", f"{self.cycles:,}"),)
        return NotebookCard(title="Run of a program", summary=summary, parts=(self.picture(),))

    def __str__(self) -> str:
        rows = [("element", "retired", "untriggered")]
        counts = zip(self.labels, self.retired, self.untriggered, strict=True)
        for label, retired, untriggered in counts:
            rows.append((label, f"{retired:,}", f"{untriggered:,}"))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [f"{self.cycles:,} cycles"]
        for first, *numbers in rows:
            cells = (text.rjust(width) for text, width in zip(numbers, widths[1:], strict=True))
            lines.append("  ".join([first.ljust(widths[0]), *cells]))
        return "\n".join(lines) + "\n"


def run_public(
    programs: Sequence[CellProgram],
    memory: Array,
    core: CoreParameters,
    *,
    shape: tuple[int, int] | None,
    max_cycles: int = MOST_CYCLES,
    keep_trace: bool = False,
) -> PublicRun:
    """Run programs to their end.

    ``shape`` has rows and columns.  Without it there is one element, with read ports in the north
    and the east, and a write port with its addresses in the south and its data in the west.

    Raises ``UserError`` for operators that no public machine has and for addresses beyond the
    memory or a scratchpad, ``TriggeredDeadlockError`` and ``TriggeredLimitError``.
    """
    operators = frozenset(word_meanings(core.word_width)) | SCRATCHPAD
    check_operators(programs, operators, "the public machine")
    array = public_array(programs, core, shape)
    words: list[int] = memory.tolist()
    trace: list[list[int]] = []
    cycle = tokens = 0
    while True:
        fired = [element.step() for element in array.elements]
        if keep_trace:
            trace.append(fired)
        tokens, moved = _move(array, words, tokens)
        if not tokens and all(element.halted for element in array.elements):
            break
        if not moved and not any(number >= 0 for number in fired):
            raise _stuck(array, cycle)
        if cycle >= max_cycles:
            raise _too_long(array, max_cycles)
        cycle += 1
    return PublicRun(
        cycles=cycle,
        memory=np.array(words, memory.dtype),
        labels=tuple(element.name for element in array.elements),
        retired=tuple(element.retired for element in array.elements),
        untriggered=tuple(element.untriggered for element in array.elements),
        trace=np.array(trace, np.int64) if keep_trace else None,
    )


def _move(array: PublicArray, words: list[int], tokens: int) -> tuple[int, bool]:
    """The second half of a cycle: the number of tokens after it, and whether any moved."""
    for link in array.links:
        link.step()
    for read in array.reads:
        read.step(words)
    for write in array.writes:
        write.step(words)
    changes = array.changes[:]
    array.changes.clear()
    for fifo in changes:
        tokens += fifo.commit()
    return tokens, bool(changes)


def _too_long(array: PublicArray, max_cycles: int) -> TriggeredLimitError:
    running = [element.name for element in array.elements if not element.halted]
    return TriggeredLimitError(
        f"the program had not ended after cycle {max_cycles:,}, the limit",
        expected="a run that ends within max_cycles: all elements halt, and all tokens are taken",
        given=f"not halted: {', '.join(running[:SHOWN_ELEMENTS])}" if running else "tokens left",
        hint="give more max_cycles, or look at the trace of fewer cycles",
    )


def _stuck(array: PublicArray, cycle: int) -> TriggeredDeadlockError:
    waits = [_wait(element) for element in array.elements if not element.halted]
    fifos = [fifo for element in array.elements for fifo in (*element.inputs, *element.outputs)]
    for port in array.reads:
        fifos += [port.addresses, port.data]
    for write in array.writes:
        fifos += [write.addresses, write.data]
    filled = [str(fifo) for fifo in fifos if fifo.tokens]
    more = len(waits) - SHOWN_ELEMENTS
    notes = waits[:SHOWN_ELEMENTS] + ([f"and {more} more elements wait"] if more > 0 else [])
    if filled:
        notes.append("tokens are left in " + ", ".join(filled[:SHOWN_ELEMENTS]))
    return TriggeredDeadlockError(
        f"the program is stuck in cycle {cycle:,}: nothing moves any more",
        expected="that all elements halt, and all tokens are taken",
        given=f"{len(waits)} of {len(array.elements)} elements have not halted"
        if waits
        else "all elements have halted, and nothing takes the remaining tokens",
        notes=[(None, note) for note in notes],
    )


def _wait(element: PublicElement) -> str:
    """What keeps the instructions that match the predicates of an element from firing."""
    reasons = []
    for number in element.candidates():
        instruction = element.program.instructions[number]
        fifo = element.obstacle(instruction)
        if fifo is None:
            continue
        if fifo.full and fifo in element.outputs:
            state = f"waits for room in {fifo}"
        elif fifo.tokens:
            state = f"waits for another tag than {fifo.tokens[0][0]} in {fifo}"
        else:
            state = f"waits for a token in {fifo}"
        reasons.append(f"instruction {number}{instruction.line_text} {state}")
    if not reasons:
        width = max(len(element.program.instructions), 8)
        return (
            f"{element.name} has no instruction for its predicates {element.predicates:0{width}b}"
        )
    return f"{element.name}: " + "; ".join(reasons)


# The components of an array of profile A: FIFOs, links, memory ports and processing elements.
#
# All of them see the state at the start of a cycle: puts and takes become visible in the next one,
# after ``commit``.  An element fires the first instruction whose trigger holds, with all effects at
# once; if the result and the constants write the same predicate, the constant wins.

PORT_DEPTH = 4
"""Tokens in each FIFO of a memory port."""


class PublicFifo:
    """A FIFO of tokens (tag, word).

    ``name`` is for messages.  A FIFO that changes in a cycle enters itself in ``changes``, a list
    that all FIFOs of an array share; its ``owner`` is then visited again.
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
        """Let the changes of this cycle take effect; returns the change in the number of tokens."""
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
    """A wire from a sender's FIFO to a receiver's, for one token per cycle."""

    __slots__ = ("sink", "source")

    def __init__(self, source: PublicFifo, sink: PublicFifo) -> None:
        self.source = source
        self.sink = sink

    def step(self) -> None:
        if self.source.tokens and not self.sink.full:
            self.sink.put(*self.source.take())


class ReadPort:
    """Takes addresses, and returns the words there with the tags of the addresses."""

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
    """The address; raises ``UserError`` if the memory has no word there."""
    if address < len(memory):
        return address
    raise UserError(
        f"{port} is asked for a word beyond the memory",
        expected=f"an address from 0 to {len(memory) - 1}",
        given=str(address),
        hint="give a larger memory with words=...",
    )


def empty_channel(instruction: str, channel: int) -> UserError:
    """The error of a firing that uses an empty channel without a check in its trigger."""
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
        """Fire if possible; returns the number of the instruction, or -1."""
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
        """The numbers of the instructions that match the predicates, in textual order."""
        matching = self._candidates.get(self.predicates)
        if matching is None:
            matching = tuple(
                number
                for number, instruction in enumerate(self.program.instructions)
                if instruction.trigger.matches(self.predicates)
            )
            self._candidates[self.predicates] = matching
        return matching

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
        """Raise ``UserError`` if an instruction that fires uses an empty channel."""
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
