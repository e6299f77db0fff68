"""The methods of ``Streams`` that bring streams about, scan levels, join and locate."""

from __future__ import annotations

from collections.abc import Sequence

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.types import Type
from t2s.graph.graph import StreamKind, Tensor
from t2s.sparse_repr.blocks import bitvectors, coordinate_lists, joins, locators, scanners, skipping
from t2s.sparse_repr.blocks.connections import Connections, Stream
from t2s.sparse_repr.blocks.draft import BlockKind
from t2s.sparse_repr.blocks.plumbing import Player, Root
from t2s.sparse_repr.blocks.repeats import Repeat

Side = Sequence[Stream]
"""One side of a join: the coordinates, and what is beside them."""


class Iteration(Connections):
    """Blocks that bring streams about, and join them."""

    def root(self, name: str = "root") -> Stream:
        """The reference of the only fiber of an outermost level, nested 1 deep."""
        return self.put(Root(type=self.index), name)[0]

    def play(
        self, values: Tensor, tags: Tensor, kind: StreamKind, nesting: int, name: str = "play"
    ) -> Stream:
        """A stream from memory, token by token."""
        block = Player(values=values, tags=tags, stream=kind, nesting=nesting)
        return self.put(block, name)[0]

    def scan_compressed(
        self, ref: Stream, positions: Tensor, coordinates: Tensor, name: str = "scan"
    ) -> tuple[Stream, Stream]:
        """Coordinates and references of a compressed level."""
        return scanners.scan_compressed(self, ref, positions, coordinates, name)

    def scan_dense(self, ref: Stream, size: int, name: str = "scan") -> tuple[Stream, Stream]:
        """Coordinates and references of a dense level."""
        return self.pair(scanners.DenseScanner(size=size), name, ref)

    def scan_singleton(
        self, ref: Stream, coordinates: Tensor, name: str = "scan"
    ) -> tuple[Stream, Stream]:
        """The coordinate and the reference of each fiber of a singleton level."""
        return self.pair(scanners.SingletonScanner(coordinates=coordinates), name, ref)

    def scan_unique(
        self, ref: Stream, positions: Tensor, coordinates: Tensor, name: str = "scan"
    ) -> tuple[Stream, Stream]:
        """Each coordinate of a compressed level with repeated coordinates, and its run."""
        block = coordinate_lists.UniqueScanner(positions=positions, coordinates=coordinates)
        return self.pair(block, name, ref)

    def scan_run(
        self,
        ref: Stream,
        positions: Tensor,
        above: Sequence[Tensor],
        coordinates: Tensor,
        name: str = "scan",
    ) -> tuple[Stream, Stream]:
        """Each coordinate of a singleton level in runs of the levels ``above`` it."""
        block = coordinate_lists.RunScanner(
            positions=positions, above=tuple(above), coordinates=coordinates
        )
        return self.pair(block, name, ref)

    def scan_linked_list(
        self,
        ref: Stream,
        heads: Tensor,
        coordinates: Tensor,
        followers: Tensor,
        name: str = "scan",
    ) -> tuple[Stream, Stream]:
        """Coordinates and references of a linked-list level."""
        block = scanners.LinkedListScanner(
            heads=heads, coordinates=coordinates, followers=followers
        )
        return self.pair(block, name, ref)

    def scan_bitvector(
        self, ref: Stream, words: Tensor, ranks: Tensor, words_per_fiber: int, name: str = "scan"
    ) -> tuple[Stream, Stream]:
        """Words and ranks of a bitvector level."""
        block = scanners.BitvectorScanner(words=words, ranks=ranks, words_per_fiber=words_per_fiber)
        return self.pair(block, name, ref)

    def scan_bit_tree(
        self,
        ref: Stream,
        top: tuple[Tensor, Tensor],
        leaves: tuple[Tensor, Tensor],
        words_per_fiber: int,
        name: str = "scan",
    ) -> tuple[Stream, Stream]:
        """Coordinates and references of a bit-tree: words for the set bits of words.

        ``top`` and ``leaves`` are words and ranks; each bit of the top says that there is a leaf.
        """
        return bitvectors.scan_bit_tree(self, ref, top, leaves, words_per_fiber, name)

    def repeat(self, crd: Stream, ref: Stream, name: str = "repeat") -> Stream:
        """Each token of ``ref`` as often as its list in ``crd`` has coordinates."""
        return self.put(Repeat(), name, crd, ref)[0]

    def intersect(
        self, *sides: Side, name: str = "intersect"
    ) -> tuple[Stream, tuple[tuple[Stream, ...], ...]]:
        """The coordinates that all sides have, and for each side what is beside them."""
        return self._join(BlockKind.INTERSECT, sides, name)

    def intersect_skipping(
        self,
        *levels: tuple[Stream, Tensor, Tensor],
        lag: int = skipping.LAG,
        name: str = "intersect",
    ) -> tuple[Stream, tuple[Stream, ...]]:
        """Scan and intersect compressed levels, skipping coordinates that another side lacks.

        ``levels`` are (references, positions, coordinates); returns the common coordinates, and
        the references of each side.  A scanner is at most ``lag`` coordinates ahead.
        """
        return skipping.intersect_skipping(self, levels, name, lag)

    def union(
        self, *sides: Side, name: str = "union"
    ) -> tuple[Stream, tuple[tuple[Stream, ...], ...]]:
        """The coordinates that any side has, and for each side what is beside them, or N."""
        return self._join(BlockKind.UNION, sides, name)

    def _join(
        self, kind: BlockKind, sides: Sequence[Side], name: str
    ) -> tuple[Stream, tuple[tuple[Stream, ...], ...]]:
        if len(sides) < 2 or not all(sides):
            raise UserError(
                f"{name!r} joins one side" if all(sides) else f"{name!r} joins a side of nothing",
                location=user_location(),
                expected="2 sides or more, each with its coordinates",
                given=f"{len(sides)}, of {', '.join(str(len(side)) for side in sides)} streams",
            )
        return joins.join(self, kind, sides, name)

    def locate_dense(
        self, crd: Stream, fiber: Stream, size: int, *beside: Stream, name: str = "locate"
    ) -> tuple[Stream, ...]:
        """Coordinates, their references in fibers of a dense level, and what is beside them."""
        return self.put(locators.DenseLocator(size=size), name, crd, fiber, *beside)

    def locate_compressed(
        self,
        crd: Stream,
        fiber: Stream,
        positions: Tensor,
        coordinates: Tensor,
        *beside: Stream,
        keep: bool = False,
        name: str = "locate",
    ) -> tuple[Stream, ...]:
        """The same in a compressed level; a coordinate that is missing is dropped, or N."""
        block = locators.CompressedLocator(positions=positions, stored=coordinates, keep=keep)
        return self.put(block, name, crd, fiber, *beside)

    def bits_of(
        self,
        crd: Stream,
        word: Type,
        size: int,
        *,
        width: int | None = None,
        empty_fibers: bool = True,
        name: str = "bits",
    ) -> tuple[Stream, Stream]:
        """Coordinates below ``size`` as words of an unsigned type, and their ranks.

        ``width`` bits of a word are used, all of them if it is not given; see
        ``BitvectorConverter`` for empty fibers.
        """
        block = bitvectors.BitvectorConverter(
            word=word, size=size, width=width, empty_fibers=empty_fibers, rank=self.index
        )
        return self.pair(block, name, crd)

    def coordinates_of(
        self, bits: Stream, ref: Stream, *, width: int | None = None, name: str = "coordinates"
    ) -> tuple[Stream, Stream]:
        """Words and ranks as coordinates and references: the inverse of ``bits_of``."""
        return bitvectors.coordinates_of(self, bits, ref, name, width)

    def intersect_bits(
        self,
        *sides: tuple[Stream, Stream],
        width: int | None = None,
        name: str = "intersect",
    ) -> tuple[Stream, Stream, tuple[Stream, ...]]:
        """Sides of (words, ranks); the common words, and bit by bit coordinates and references."""
        return bitvectors.join_bits(self, BlockKind.INTERSECT, sides, name, width)

    def union_bits(
        self, *sides: tuple[Stream, Stream], width: int | None = None, name: str = "union"
    ) -> tuple[Stream, Stream, tuple[Stream, ...]]:
        """The same for the bits that any side has, with N where a side lacks one."""
        return bitvectors.join_bits(self, BlockKind.UNION, sides, name, width)
