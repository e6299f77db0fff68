"""The interpreter of profile A: programs in an array, cycle by cycle.

Goes in: a program for each processing element, row by row, and the words of the memory.  Comes
out: the memory at the end, the number of the last cycle (from 0), and for each processing element
how many instructions it retired and in how many cycles none could fire.

Channel 0, 1, 2, 3 of an element is its neighbor in the north, east, south, west.  In a cycle, all
of it from the state at its start: each element fires, or does not; each link moves a token if
there is one and the receiver's FIFO is not full; each read port hands on the datum that is pending
and takes the next address; each write port that has an address and a datum stores it.  The run
ends when all elements have halted and no FIFO holds anything.  Refused: operators that no public
machine has, and runs that get stuck or take too long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from t2s.backends.cgra_tia.fabric import CoreParameters, array_wires
from t2s.backends.cgra_tia.machine.profile_a_elements import (
    PublicElement,
    PublicFifo,
    PublicLink,
    ReadPort,
    WritePort,
)
from t2s.backends.cgra_tia.machine.words import SCRATCHPAD, word_meanings
from t2s.backends.cgra_tia.program import CellProgram
from t2s.backends.cgra_tia.text.checks import check_operators
from t2s.backends.cgra_tia.text.places import block_name
from t2s.core.display import NotebookCard, NotebookDisplay
from t2s.core.errors import UserError
from t2s.core.ops import Array
from t2s.core.svg import PALETTE, Bar, SvgPicture, bar_chart


@dataclass(kw_only=True)
class PublicArray:
    """What runs; ``changes`` are the FIFOs that change in the current cycle."""

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
    """A program got stuck: nothing can happen any more, and it has not ended."""


class TriggeredLimitError(UserError):
    """A program had not ended at the limit of cycles."""


@dataclass(frozen=True, kw_only=True)
class PublicRun(NotebookDisplay):
    """What a run came to.

    ``cycles`` is the number of the last cycle, from 0, as the public simulator counts; ``memory``
    are the words at the end (uint32).  ``labels``, ``retired`` and ``untriggered`` are by element;
    ``trace``, where it was asked for, has a row for each cycle, the last one among them, and a
    column for each element: the number of the instruction that fired, or -1.
    """

    cycles: int
    memory: Array = field(repr=False)
    labels: tuple[str, ...]
    retired: tuple[int, ...]
    untriggered: tuple[int, ...]
    trace: Array | None = field(repr=False, default=None)

    def picture(self) -> SvgPicture:
        """Instructions of each element, and the cycles in which it could fire none."""
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

    ``shape`` has rows and columns; without it there is one element with read ports in the north
    and in the east, the addresses of its write port in the south and the data in the west.

    Raises ``UserError`` for operators that no public machine has and for addresses beyond the
    memory or a scratchpad, ``TriggeredDeadlockError`` and ``TriggeredLimitError``.
    """
    there = frozenset(word_meanings(core.word_width)) | SCRATCHPAD
    check_operators(programs, there, "the public machine")
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
    """The second half of a cycle: how many tokens there are after it, and whether any moved."""
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
    left = [str(fifo) for fifo in fifos if fifo.tokens]
    more = len(waits) - SHOWN_ELEMENTS
    notes = waits[:SHOWN_ELEMENTS] + ([f"and {more} more elements wait"] if more > 0 else [])
    if left:
        notes.append("tokens are left in " + ", ".join(left[:SHOWN_ELEMENTS]))
    return TriggeredDeadlockError(
        f"the program is stuck in cycle {cycle:,}: nothing moves any more",
        expected="that all elements halt, and all tokens are taken",
        given=f"{len(waits)} of {len(array.elements)} elements have not halted"
        if waits
        else "all elements have halted, and nobody takes the tokens that are left",
        notes=[(None, note) for note in notes],
    )


def _wait(element: PublicElement) -> str:
    """What keeps the instructions of an element from firing that its predicates allow."""
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
