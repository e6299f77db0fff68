"""Blocks between streams and the levels of stored tensors, of whatever kinds these are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from t2s.sparse_repr.blocks.connections import Stream
from t2s.sparse_repr.blocks.draft import BlockKind
from t2s.sparse_repr.blocks.joins import joined_fibers
from t2s.sparse_repr.blocks.lists import DiagramBlock, Known, Lists, Nested, Placing, columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan(DiagramBlock):
    """The fiber of every reference, as coordinates and references; none of an empty one."""

    kind = BlockKind.SCAN

    tensor: str
    level: int

    def meaning(self, known: Known, references: Lists) -> tuple[Nested, ...]:
        def fiber(at: int | None) -> tuple[Nested, ...]:
            return known.fiber(self.tensor, self.level, at)

        return columns(fiber, 2, references.depth, references)

    def place(self, graph: Placing, references: Stream) -> tuple[Stream, ...]:
        level = graph.level(self.tensor, self.level)
        return level.scan(references, f"scan_{self.tensor}_{graph.loop}")


class Manner(Enum):
    """How scanners and their joiner work together [SAM, sec. 4.2 and 4.3].

    ``WORDS``: levels of bits are joined word by word.  ``SKIPPING``: an intersecter tells the
    scanners how far to go.
    """

    WORDS = "words"
    SKIPPING = "skipping"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanJoin(DiagramBlock):
    """Scanners of levels of one kind, and the joiner of what they scan, in one of the manners.

    ``sides`` are tensors and levels; it takes references of each, and gives the coordinates, and
    references of each.
    """

    kind: BlockKind
    manner: Manner
    sides: tuple[tuple[str, int], ...]

    @property
    def counted(self) -> tuple[str, ...]:
        return (*(BlockKind.SCAN.value for _ in self.sides), self.kind.value)

    def meaning(self, known: Known, *references: Lists) -> tuple[Nested, ...]:
        """The same as scanners and a joiner, in whatever manner they work."""

        def joined(*at: int | None) -> tuple[Nested, ...]:
            return joined_fibers(self.kind, [2] * len(self.sides), list(fibers(at)))

        def fibers(at: tuple[int | None, ...]) -> Iterator[list[Any]]:
            for (tensor, level), reference in zip(self.sides, at, strict=True):
                yield from known.fiber(tensor, level, reference)

        return columns(joined, 1 + len(self.sides), references[0].depth, *references)

    def place(self, graph: Placing, *references: Stream) -> tuple[Stream, ...]:
        sides = [
            (graph.level(tensor, level), reference, f"scan_{tensor}_{graph.loop}")
            for (tensor, level), reference in zip(self.sides, references, strict=True)
        ]
        (first, _, _), name = sides[0], f"{self.kind.value}_{graph.loop}"
        coordinates, found = first.join(self.kind, sides, name)
        return (coordinates, *found)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteLevel(DiagramBlock):
    """The writer of a level of the result; with ``empty_fibers`` those are stored too.

    Besides its coordinates it takes those of the level above, if there is one, which a linked list
    needs.  In a list of coordinates they have been repeated for every entry below them.
    """

    kind = BlockKind.WRITE

    tensor: str
    level: int
    empty_fibers: bool = False

    def meaning(self, known: Known, coordinates: Lists, *above: Lists) -> tuple[Nested, ...]:
        known.write_level(self.level, coordinates.tokens)
        return ()

    def place(self, graph: Placing, coordinates: Stream, *above: Stream) -> tuple[Stream, ...]:
        level = graph.level(self.tensor, self.level, written=True)
        name = f"write_{self.tensor}_{graph.loop}"
        level.write(coordinates, above[0] if above else None, self.empty_fibers, name)
        return ()
