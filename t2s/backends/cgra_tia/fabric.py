"""The machine as data: the sizes of a cell, the wires of an array, and the cells of a fabric.

``PUBLIC_CORE`` is *profile A*: the processing element of the public tools for triggered
instructions (32-bit words, four neighbors).  ``EXTENDED_CORE`` is *profile B*, what the
experiments of [T2S-Tensor, sec. V.C] need beyond it; all of its numbers are ours,
because the paper states none: 64-bit words, a fused multiply-add on float64, channels through a
mesh of wires with multicast, and stream units at the border that run loop nests.

A fabric is a grid of cells of profile B.  Users describe their own::

    CgraFabric(name="mine", rows=12, columns=12, pattern=("cf", "fc"), tracks=4)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.validate import as_int


class Profile(Enum):
    """The dialect of a program."""

    PUBLIC = "A"
    EXTENDED = "B"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreParameters:
    """The sizes of a processing element.

    Widths are in bits.  ``channel_depth`` is the depth of the FIFO at each port (profile A; in
    profile B each channel of a placement has its own capacity).  ``tags`` is the number of tags,
    ``checks`` the most input channels that one trigger can check.
    """

    profile: Profile
    word_width: int = 32
    immediate_width: int = 32
    instruction_width: int = 128
    instructions: int = 16
    predicates: int = 8
    registers: int = 8
    inputs: int = 4
    outputs: int = 4
    checks: int = 2
    tags: int = 4
    channel_depth: int = 2
    scratchpad_words: int = 512

    def extended(self, pattern: int) -> int:
        """The word of an immediate, sign-extended."""
        sign = pattern >> self.immediate_width - 1
        return (pattern - (sign << self.immediate_width)) & (1 << self.word_width) - 1


PUBLIC_CORE = CoreParameters(profile=Profile.PUBLIC)
EXTENDED_CORE = CoreParameters(
    profile=Profile.EXTENDED,
    word_width=64,
    instruction_width=160,
    inputs=8,
    outputs=8,
    checks=4,
    tags=16,
)

NORTH, EAST, SOUTH, WEST = range(4)
"""The ports of a processing element of profile A: the sides at which its neighbors are."""

Port = tuple[int, int]
"""An element and a side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayWires:
    """The wires of an array of profile A: ``links`` from outputs to inputs, and memory ports.

    ``reads`` are the ports at which an element sends addresses and receives words; ``writes`` are
    pairs of an output for addresses and one for words.
    """

    links: Mapping[Port, Port]
    reads: tuple[Port, ...]
    writes: tuple[tuple[Port, Port], ...]


def array_wires(shape: tuple[int, int] | None) -> ArrayWires:
    """The wires of an array with this many rows and columns, or of a single element (``None``)."""
    if shape is None:
        return ArrayWires(
            links={}, reads=((0, NORTH), (0, EAST)), writes=(((0, SOUTH), (0, WEST)),)
        )
    rows, columns = shape
    links: dict[Port, Port] = {}
    for number in range(rows * columns):
        row, column = divmod(number, columns)
        neighbors = (
            (EAST, WEST, number + 1, column + 1 < columns),
            (SOUTH, NORTH, number + columns, row + 1 < rows),
        )
        for side, opposite, neighbor, exists in neighbors:
            if exists:
                links[number, side] = (neighbor, opposite)
                links[neighbor, opposite] = (number, side)
    last = (rows - 1) * columns
    return ArrayWires(
        links=links,
        reads=tuple((column, NORTH) for column in range(columns)),
        writes=tuple(
            ((last + column, SOUTH), (last + column + 1, SOUTH))
            for column in range(0, columns - 1, 2)
        ),
    )


class CellKind(Enum):
    """What a site of the fabric can do."""

    FMA = "fma"
    """Everything that a control cell does, and arithmetic on float64."""
    CONTROL = "ctl"
    """Integers, comparisons, predicates, a scratchpad."""
    UNIT = "io"
    """A stream unit at the border."""


_LETTERS = {"f": CellKind.FMA, "c": CellKind.CONTROL}


@dataclass(frozen=True, slots=True, kw_only=True)
class CgraFabric:
    """A grid of cells with wires between neighbors and stream units at its border.

    Attributes
    ----------
    name: for reports and files.
    rows, columns: the size of the grid of cells.
    pattern: the kinds of cells, as a tile that is repeated from cell (0, 0) on: ``f`` is a cell
        with an FMA, ``c`` a control cell.
    tracks: wires in each direction between two neighbors.
    units_per_position: stream units at each position of the border.  A cell has a position for
        each of its sides that lie on the border, so a corner has two.
    fma_latency: cycles from the firing of a float operation until its result leaves; one can
        start in every cycle.
    most_depth: the most tokens that a channel can be configured to hold, beyond those in flight.
    core: the sizes of each cell.
    """

    name: str
    rows: int
    columns: int
    pattern: tuple[str, ...] = ("cc", "cf")
    tracks: int = 3
    units_per_position: int = 2
    fma_latency: int = 4
    most_depth: int = 32
    core: CoreParameters = EXTENDED_CORE

    def __post_init__(self) -> None:
        for what, value, least in (
            ("rows", self.rows, 1),
            ("columns", self.columns, 1),
            ("tracks", self.tracks, 1),
            ("units at a position of the border", self.units_per_position, 1),
            ("cycles of latency of an FMA", self.fma_latency, 0),
            ("tokens in a channel", self.most_depth, 1),
        ):
            count = as_int(value)
            if count is None or count < least:
                raise UserError(
                    f"the fabric {self.name!r} cannot have that many {what}",
                    location=user_location(),
                    expected=f"a whole number of at least {least}",
                    given=repr(value),
                )
        widths = {len(row) for row in self.pattern}
        letters = set("".join(self.pattern))
        if len(widths) != 1 or not letters or letters - set(_LETTERS):
            raise UserError(
                f"the pattern of the fabric {self.name!r} is not a tile of cells",
                location=user_location(),
                expected="rows of one length, of the letters 'f' (FMA) and 'c' (control)",
                given=repr(self.pattern),
                hint='the tile ("cc", "cf") gives a quarter of the cells an FMA',
            )

    def kind_at(self, row: int, column: int) -> CellKind:
        """The kind of the cell in a row and a column."""
        line = self.pattern[row % len(self.pattern)]
        return _LETTERS[line[column % len(line)]]

    def cells(self, kind: CellKind) -> tuple[tuple[int, int], ...]:
        """Row and column of all cells of a kind, row by row."""
        return tuple(
            (row, column)
            for row in range(self.rows)
            for column in range(self.columns)
            if self.kind_at(row, column) is kind
        )

    @property
    def border(self) -> tuple[tuple[int, int], ...]:
        """Row and column of the cell at each position of the border: north, east, south, west.

        A stream unit reaches the wires of the mesh at this cell, without a hop.
        """
        north = [(0, column) for column in range(self.columns)]
        east = [(row, self.columns - 1) for row in range(self.rows)]
        south = [(self.rows - 1, column) for column in range(self.columns)]
        west = [(row, 0) for row in range(self.rows)]
        return (*north, *east, *south, *west)

    @property
    def units(self) -> int:
        """Number of stream units."""
        return len(self.border) * self.units_per_position


FABRICS = {
    fabric.name: fabric
    for fabric in (CgraFabric(name=f"cgra{size}", rows=size, columns=size) for size in (8, 16, 32))
}
"""The fabrics that come with t2s: 8 x 8 (16 FMAs), 16 x 16 (64) and 32 x 32 cells (256)."""
