"""``Streams``: connect blocks by calling methods, and get a verified ``Graph``.

>>> s = Streams("scale")                                             # doctest: +SKIP
>>> crd, ref = s.scan_compressed(s.root(), positions, coordinates)   # doctest: +SKIP
>>> s.write_values(s.compute(double, s.load(ref, values)), result)   # doctest: +SKIP
>>> graph = s.graph()                                                # doctest: +SKIP

A method takes the input streams of a block and returns its output streams.  A stream may be used
any number of times: its block puts every token into a channel for each use.  Unused streams are not
produced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from t2s.core.errors import UserError
from t2s.core.expr import Expr
from t2s.core.location import user_location
from t2s.core.ops import Op
from t2s.core.types import MOST_LANES, Type
from t2s.graph.graph import UNBOUNDED, StreamKind, Tensor
from t2s.sparse_repr.arguments import checked
from t2s.sparse_repr.blocks import (
    alu,
    bitvectors,
    droppers,
    joins,
    lanes,
    locators,
    plumbing,
    reducers,
    scanners,
    skipping,
    splits,
    writers,
)
from t2s.sparse_repr.blocks.alu import Alu
from t2s.sparse_repr.blocks.connections import Connections, Stream
from t2s.sparse_repr.blocks.draft import Block, BlockKind, StreamBlock, check_number
from t2s.sparse_repr.blocks.expressions import Operator
from t2s.sparse_repr.blocks.plumbing import Root, TokenSource
from t2s.sparse_repr.blocks.reducers import EmptyFiber, ScalarReducer
from t2s.sparse_repr.blocks.repeats import Regroup, Repeat

Side = Sequence[Stream]
"""One side of a join: the coordinates, and what is beside them."""


__all__ = ["UNBOUNDED", "Block", "BlockKind", "EmptyFiber", "Stream", "StreamBlock", "Streams"]


@checked
class Streams(Connections):
    """A graph of blocks under construction; see the module's docstring."""

    def root(self, name: str = "root") -> Stream:
        """The reference of the only fiber of an outermost level, nested 1 deep."""
        return self.put(Root(type=self.index), name)[0]

    def play(
        self, values: Tensor, tags: Tensor, kind: StreamKind, nesting: int, name: str = "play"
    ) -> Stream:
        """A stream from memory, token by token."""
        block = TokenSource(values=values, tags=tags, stream=kind, nesting=nesting)
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
        block = scanners.UniqueScanner(positions=positions, coordinates=coordinates)
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
        block = scanners.RunScanner(
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
        """The coordinates that all sides have, and the matching tokens of each side."""
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
        """The coordinates that any side has, and the matching tokens of each side, or N."""
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
        """Coordinates, their references in fibers of a dense level, and the matching tokens."""
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
        """The same for the bits that any side has, with N for a side that lacks one."""
        return bitvectors.join_bits(self, BlockKind.UNION, sides, name, width)

    def load(
        self,
        ref: Stream,
        values: Tensor,
        *,
        lanes: int = 1,
        missing: Expr | None = None,
        name: str = "load",
    ) -> Stream:
        """The values at references, or vectors of so many lanes; N stays N, or is ``missing``."""
        block = alu.ArrayLoad(values=values, lanes=lanes, missing=missing)
        return self.put(block, name, ref)[0]

    def compute(
        self,
        function: Callable[..., Expr] | Op,
        *operands: Stream,
        missing: Sequence[Expr] | None = None,
        lost: Callable[..., Expr] | None = None,
        instead: Expr | None = None,
        name: str = "compute",
    ) -> Stream:
        """An ALU: an operator, or a function from expressions to an expression.

        ``lost`` decides, from the operands that are N, whether there is nothing to compute: then
        the result is N, or ``instead``.
        """
        if not operands:
            raise UserError(
                f"{name!r} has nothing to compute with",
                location=user_location(),
                expected="one stream or more",
            )
        block = Alu(
            function=Operator(function) if isinstance(function, Op) else function,
            missing=None if missing is None else tuple(missing),
            lost=lost,
            instead=instead,
        )
        return self.put(block, name, *operands)[0]

    def reduce(
        self,
        val: Stream,
        combine: Callable[[Expr, Expr], Expr] | Op = Op.ADD,
        *,
        empty: EmptyFiber = EmptyFiber.DROP,
        zero: Expr | None = None,
        outer: Stream | None = None,
        name: str = "reduce",
    ) -> Stream:
        """One value for each innermost list; see ``ScalarReducer`` for empty ones."""
        function = Operator(combine) if isinstance(combine, Op) else combine
        block = ScalarReducer(combine=function, empty=empty, zero_value=zero)
        return self.put(block, name, val, *([] if outer is None else [outer]))[0]

    def reduce_points(
        self,
        crds: Sequence[Stream],
        val: Stream,
        operator: Op = Op.ADD,
        *,
        banks: int | None = None,
        name: str = "reduce",
    ) -> tuple[tuple[Stream, ...], Stream]:
        """A reducer that keeps n >= 1 coordinates: one level less, every point once, in order.

        ``crds`` are the coordinates from the outermost to the innermost, each one level deeper than
        the one before; the innermost has the shape of ``val``.  With 2 ``banks`` one reduction is
        put while the next one is taken; by default there are 2 where there is more than one
        reduction.
        """
        if not crds or val.nesting < len(crds) + 2:
            raise UserError(
                f"{name!r} has nothing to reduce",
                location=user_location(),
                expected=f"at least one coordinate, and values nested {len(crds) + 2} deep or more",
                given=f"{len(crds)} coordinates, values nested {val.nesting} deep",
            )
        banks = banks or reducers.default_banks(crds, val)
        *outs, out = reducers.reduce_points(self, crds, val, operator, banks, name)
        return tuple(outs), out

    def drop(
        self, outer: Stream, inner: Stream, *beside: Stream, name: str = "drop"
    ) -> tuple[Stream, ...]:
        """Outer coordinates (and matching tokens) with nonempty inner lists, and these lists.

        Returns (outer, *beside, inner).
        """
        types = [stream.type for stream in (outer, *beside, inner)]
        block = self.drafted(droppers.CoordinateDropper(), types)
        others = {f"in{n}": stream for n, stream in enumerate(beside)}
        return self.place(block, name, {"outer": outer, "inner": inner, **others})

    def drop_values(
        self,
        crd: Stream,
        val: Stream,
        dropped: Expr | None = None,
        *,
        missing_only: bool = False,
        name: str = "drop",
    ) -> tuple[Stream, Stream]:
        """Coordinates and values without those whose value is zero (or ``dropped``) or N.

        With ``missing_only`` without N alone.
        """
        block = droppers.ValueDropper(dropped=dropped, missing_only=missing_only)
        return self.pair(block, name, crd, val)

    def split(
        self, crd: Stream, factor: int, *beside: Stream, keep: bool = False, name: str = "split"
    ) -> tuple[Stream, ...]:
        """(outer, inner, *beside): coordinates in blocks of ``factor``."""
        return self.put(splits.Splitter(factor=factor, keep=keep), name, crd, *beside)

    def flatten(
        self,
        outer: Stream,
        inner: Stream,
        factor: int,
        *beside: Stream,
        keep: bool = False,
        name: str = "flatten",
    ) -> tuple[Stream, ...]:
        """(crd, *beside): the inverse of ``split``."""
        return self.put(splits.Flattener(factor=factor, keep=keep), name, outer, inner, *beside)

    def regroup(self, items: Stream, like: Stream, name: str = "regroup") -> Stream:
        """Items, one for each of ``like``, in the lists of ``like``; see ``Regroup``."""
        return self.put(Regroup(), name, items, like)[0]

    def fork(self, stream: Stream, ways: int, name: str = "fork") -> tuple[Stream, ...]:
        """The stream several times, through a block of its own."""
        check_number("the number of ways", ways, 1, user_location(), most=MOST_LANES)
        return self.put(plumbing.Fork(ways=ways), name, stream)

    def counted(self, crd: Stream, name: str = "count") -> Stream:
        """The position of each coordinate in the written level."""
        return self.put(plumbing.Counted(), name, crd)[0]

    def parallelize(
        self, streams: Sequence[Stream], ways: int, *, run: int = 1, name: str = "parallelize"
    ) -> tuple[tuple[Stream, ...], ...]:
        """Deal items to lanes round robin, ``run`` at a time: each lane's part of every stream.

        Many lanes are a tree of blocks.
        """
        check_number("the number of streams", len(streams), 1, user_location())
        check_number("the number of lanes", ways, 1, user_location(), most=MOST_LANES)
        return lanes.deal(self, streams, ways, run, name)

    def serialize(
        self, order: Stream, parts: Sequence[Stream], *, run: int = 1, name: str = "serialize"
    ) -> Stream:
        """Join lanes in the order in which ``order`` was dealt, ``run`` items at a time.

        Many lanes are a tree of blocks, and ``order`` is dealt out to its branches.
        """
        check_number("the number of lanes", len(parts), 1, user_location(), most=MOST_LANES)
        return lanes.gather(self, order, parts, run, name)

    def values_only(self, stream: Stream, name: str = "values") -> Stream:
        """The values as a dense stream."""
        return self.put(plumbing.ValuesOnly(), name, stream)[0]

    def with_stops(self, values: Stream, like: Stream, name: str = "shape") -> Stream:
        """Dense values in the shape of a stream."""
        return self.put(plumbing.WithStops(), name, values, like)[0]

    def write_values(
        self, val: Stream, values: Tensor, *, missing: Expr | None = None, name: str = "write"
    ) -> None:
        """Store the values in order."""
        self.put(writers.ValueWriter(values=values, missing=missing), name, val)

    def write_compressed(
        self,
        crd: Stream,
        positions: Tensor,
        coordinates: Tensor,
        *,
        empty_fibers: bool = False,
        name: str = "write",
    ) -> None:
        """Store a compressed level; see ``CompressedWriter`` for empty fibers."""
        block = writers.CompressedWriter(
            positions=positions, stored=coordinates, empty_fibers=empty_fibers
        )
        self.put(block, name, crd)

    def write_singleton(self, crd: Stream, coordinates: Tensor, name: str = "write") -> None:
        """Store a singleton level."""
        self.put(writers.SingletonWriter(stored=coordinates), name, crd)

    def write_bitvector(
        self, bits: Stream, words: Tensor, ranks: Tensor, name: str = "write"
    ) -> None:
        """Store a bitvector level."""
        self.put(writers.BitvectorWriter(words=words, ranks=ranks), name, bits)

    def write_bit_tree(
        self,
        crd: Stream,
        size: int,
        top: tuple[Tensor, Tensor],
        leaves: tuple[Tensor, Tensor],
        name: str = "write",
        *,
        empty_fibers: bool = True,
    ) -> None:
        """Store a bit-tree level of ``size`` coordinates; see ``scan_bit_tree``."""
        bitvectors.write_bit_tree(self, crd, size, top, leaves, name, empty_fibers=empty_fibers)

    def write_linked_list(
        self,
        crd: Stream,
        fiber: Stream,
        arrays: Sequence[Tensor],
        name: str = "write",
    ) -> None:
        """Append to a linked-list level; ``arrays`` are heads, coordinates, followers, tails."""
        if len(arrays) != 4:
            raise UserError(
                "a linked-list level has 4 arrays",
                location=user_location(),
                expected="heads, coordinates, followers, tails",
                given=f"{len(arrays)} arrays",
            )
        heads, stored, followers, tails = arrays
        block = writers.LinkedListWriter(
            heads=heads, stored=stored, followers=followers, tails=tails
        )
        self.put(block, name, crd, fiber)

    def store(self, ref: Stream, val: Stream, values: Tensor, name: str = "store") -> None:
        """Store values at references."""
        self.put(alu.ArrayStore(values=values), name, ref, val)

    def record(self, stream: Stream, values: Tensor, tags: Tensor, name: str = "record") -> None:
        """Store a stream token by token."""
        self.put(writers.TokenSink(values=values, tags=tags), name, stream)
