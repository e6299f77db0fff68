"""Arrays of profile A: which FIFO is wired to which, and where the memory's ports are.

Goes in: rows and columns, or neither for a single processing element with ports of its own.
Comes out: processing elements row by row, links and ports.  Channel 0, 1, 2, 3 of an element is
its neighbor in the north, east, south, west.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from t2s.backends.cgra_tia.fabric import CoreParameters
from t2s.backends.cgra_tia.machine.public_element import PublicElement
from t2s.backends.cgra_tia.machine.public_fifo import PublicFifo, PublicLink, ReadPort, WritePort
from t2s.backends.cgra_tia.program import CellProgram
from t2s.backends.cgra_tia.text.places import block_name

_NORTH, _EAST, _SOUTH, _WEST = range(4)


@dataclass(kw_only=True)
class PublicArray:
    """What runs; ``changes`` are the FIFOs that change in the current cycle."""

    elements: list[PublicElement] = field(default_factory=list)
    links: list[PublicLink] = field(default_factory=list)
    reads: list[ReadPort] = field(default_factory=list)
    writes: list[WritePort] = field(default_factory=list)
    changes: list[PublicFifo] = field(default_factory=list)

    def _link(self, source: PublicFifo, sink: PublicFifo) -> None:
        self.links.append(PublicLink(source, sink))

    def neighbors(self, one: int, side: int, other: int) -> None:
        """Wire an element to the one at its side, both ways."""
        first, second = self.elements[one], self.elements[other]
        back = (side + 2) % 4
        self._link(first.outputs[side], second.inputs[back])
        self._link(second.outputs[back], first.inputs[side])

    def read_port(self, element: int, side: int) -> None:
        port = ReadPort(f"read port {len(self.reads)}", self.changes)
        self._link(self.elements[element].outputs[side], port.addresses)
        self._link(port.data, self.elements[element].inputs[side])
        self.reads.append(port)

    def write_port(self, address: tuple[int, int], data: tuple[int, int]) -> None:
        """A write port at two outputs, each an element and a side."""
        port = WritePort(f"write port {len(self.writes)}", self.changes)
        for (element, side), fifo in ((address, port.addresses), (data, port.data)):
            self._link(self.elements[element].outputs[side], fifo)
        self.writes.append(port)


def public_array(
    programs: Sequence[CellProgram], core: CoreParameters, shape: tuple[int, int] | None
) -> PublicArray:
    """The array of a shape (rows, columns), or one element alone, before its first cycle."""
    array = PublicArray()
    array.elements.extend(
        PublicElement(block_name(number, program.label), program, core, array.changes)
        for number, program in enumerate(programs)
    )
    if shape is None:
        array.read_port(0, _NORTH)
        array.read_port(0, _EAST)
        array.write_port((0, _SOUTH), (0, _WEST))
        return array
    rows, columns = shape
    for row in range(rows):
        for column in range(columns):
            number = row * columns + column
            if column + 1 < columns:
                array.neighbors(number, _EAST, number + 1)
            if row + 1 < rows:
                array.neighbors(number, _SOUTH, number + columns)
    for column in range(columns):
        array.read_port(column, _NORTH)
    last = (rows - 1) * columns
    for column in range(0, columns - 1, 2):
        array.write_port((last + column, _SOUTH), (last + column + 1, _SOUTH))
    return array
