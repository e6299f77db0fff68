"""The methods of ``Streams`` that turn streams into others: bitvectors, splits, lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.types import MOST_LANES, Type
from t2s.graph.graph import StreamType, Tensor
from t2s.sparse_repr.blocks import bitvectors, lanes, plumbing, regroup, splits
from t2s.sparse_repr.blocks.draft import Block, check_number
from t2s.sparse_repr.connections import Stream
from t2s.sparse_repr.iteration import Iteration


class Conversion(Iteration):
    """Blocks that change the form of streams."""

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
        ``bitvector_converter`` for empty fibers.
        """
        block = self._drafted(
            bitvectors.bitvector_converter,
            crd.type,
            word,
            size,
            width=width,
            empty_fibers=empty_fibers,
            rank=self.index,
        )
        bits, ref = self.place(block, name, {"crd": crd})
        return bits, ref

    def coordinates_of(
        self, bits: Stream, ref: Stream, *, width: int | None = None, name: str = "coordinates"
    ) -> tuple[Stream, Stream]:
        """Words and ranks as coordinates and references: the inverse of ``bits_of``."""
        _, crd, (out,) = self.intersect_bits((bits, ref), width=width, name=name)
        return crd, out

    def intersect_bits(
        self,
        *sides: tuple[Stream, Stream],
        width: int | None = None,
        name: str = "intersect",
    ) -> tuple[Stream, Stream, tuple[Stream, ...]]:
        """Sides of (words, ranks); the common words, and bit by bit coordinates and references."""
        return self._join_bits(bitvectors.bitvector_intersect, sides, width, name)

    def union_bits(
        self, *sides: tuple[Stream, Stream], width: int | None = None, name: str = "union"
    ) -> tuple[Stream, Stream, tuple[Stream, ...]]:
        """The same for the bits that any side has, with N where a side lacks one."""
        return self._join_bits(bitvectors.bitvector_union, sides, width, name)

    def _join_bits(
        self,
        make: Callable[..., Block],
        sides: Sequence[tuple[Stream, Stream]],
        width: int | None,
        name: str,
    ) -> tuple[Stream, Stream, tuple[Stream, ...]]:
        types = [(bits.type, ref.type) for bits, ref in sides]
        inputs: dict[str, Stream] = {}
        for n, (bits, ref) in enumerate(sides):
            inputs |= {f"bits{n}": bits, f"ref{n}": ref}
        block = self._drafted(make, types, width=width, index=self.index)
        words, crd, *refs = self.place(block, name, inputs)
        return words, crd, tuple(refs)

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
        width = leaves[0].type.bits
        upper = self.scan_bitvector(ref, *top, words_per_fiber, name=name)
        block_crd, block_ref = self.coordinates_of(*upper)
        lower = self.scan_bitvector(block_ref, *leaves, 1, name=name)
        inner_crd, inner_ref = self.coordinates_of(*lower)
        crd, out_ref = self.flatten(block_crd, inner_crd, width, inner_ref)
        return crd, out_ref

    def split(
        self, crd: Stream, factor: int, *beside: Stream, keep: bool = False, name: str = "split"
    ) -> tuple[Stream, ...]:
        """(outer, inner, *beside): coordinates in blocks of ``factor``."""
        types = [stream.type for stream in beside]
        block = self._drafted(splits.split, crd.type, factor, types, keep=keep)
        others = {f"in{n}": stream for n, stream in enumerate(beside)}
        return self.place(block, name, {"crd": crd, **others})

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
        types = [stream.type for stream in beside]
        block = self._drafted(splits.flatten, outer.type, inner.type, factor, types, keep=keep)
        others = {f"in{n}": stream for n, stream in enumerate(beside)}
        return self.place(block, name, {"outer": outer, "inner": inner, **others})

    def regroup(self, items: Stream, like: Stream, name: str = "regroup") -> Stream:
        """Items, one for each of ``like``, in the lists of ``like``; see ``blocks.regroup``."""
        block = self._drafted(regroup.regroup, items.type, like.type)
        return self.place(block, name, {"in": items, "like": like})[0]

    def fork(self, stream: Stream, ways: int, name: str = "fork") -> tuple[Stream, ...]:
        """The stream several times, through a block of its own."""
        check_number("the number of ways", ways, 1, user_location(), most=MOST_LANES)
        block = self._drafted(plumbing.fork, stream.type, ways)
        return self.place(block, name, {"in": stream})

    def counted(self, crd: Stream, name: str = "count") -> Stream:
        """The position of each coordinate in the level that is written of them."""
        block = self._drafted(plumbing.counted, crd.type)
        return self.place(block, name, {"crd": crd})[0]

    def parallelize(
        self, streams: Sequence[Stream], ways: int, *, run: int = 1, name: str = "parallelize"
    ) -> tuple[tuple[Stream, ...], ...]:
        """Deal items out in turn, ``run`` at a time: for each lane, its part of every stream.

        Many lanes are a tree of blocks.
        """
        check_number("the number of streams", len(streams), 1, user_location())
        check_number("the number of lanes", ways, 1, user_location(), most=MOST_LANES)
        return self._dealt(streams, ways, run, name, count=True)

    def _dealt(
        self, streams: Sequence[Stream], ways: int, run: int, name: str, *, count: bool
    ) -> tuple[tuple[Stream, ...], ...]:
        if ways <= lanes.WIDEST:
            return self._deal(streams, ways, run, name, count=count)
        groups = lanes.groups_of(ways)
        sides = self._deal(streams, len(groups), [run * n for n in groups], name, count=count)
        return tuple(
            lane
            for side, own in zip(sides, groups, strict=True)
            for lane in self._dealt(side, own, run, name, count=False)
        )

    def _deal(
        self,
        streams: Sequence[Stream],
        ways: int,
        run: int | Sequence[int],
        name: str,
        *,
        count: bool,
    ) -> tuple[tuple[Stream, ...], ...]:
        """One block that deals."""
        types = _types_of(streams, name)
        block = self._drafted(lanes.parallelizer, types, ways, run=run)
        inputs = {f"in{n}": stream for n, stream in enumerate(streams)}
        outs = self.place(block, name, inputs, count=count)
        return tuple(tuple(outs[lane::ways]) for lane in range(ways))

    def serialize(
        self, order: Stream, parts: Sequence[Stream], *, run: int = 1, name: str = "serialize"
    ) -> Stream:
        """Join lanes in the order in which ``order`` was dealt out, ``run`` items at a time.

        Many lanes are a tree of blocks, and ``order`` is dealt out to its branches.
        """
        check_number("the number of lanes", len(parts), 1, user_location(), most=MOST_LANES)
        return self._gathered(order, parts, run, name, count=True)

    def _gathered(
        self, order: Stream, parts: Sequence[Stream], run: int, name: str, *, count: bool
    ) -> Stream:
        groups = lanes.groups_of(len(parts))
        if len(groups) <= 1:
            return self._gather(order, parts, run, name, count=count)
        runs = [run * n for n in groups]
        orders = self._deal([order], len(groups), runs, f"{name}_order", count=False)
        ends = list(accumulate(groups))
        sides = [
            self._gathered(own, parts[end - n : end], run, name, count=False)
            for (own,), n, end in zip(orders, groups, ends, strict=True)
        ]
        return self._gather(order, sides, runs, name, count=count)

    def _gather(
        self,
        order: Stream,
        parts: Sequence[Stream],
        run: int | Sequence[int],
        name: str,
        *,
        count: bool,
    ) -> Stream:
        """One block that joins."""
        types = _types_of(parts, name)
        block = self._drafted(lanes.serializer, types, order.type, run=run)
        inputs = {f"in{n}": stream for n, stream in enumerate(parts)}
        return self.place(block, name, {**inputs, "order": order}, count=count)[0]

    def values_only(self, stream: Stream, name: str = "values") -> Stream:
        """The values as a dense stream."""
        block = self._drafted(plumbing.values_only, stream.type)
        return self.place(block, name, {"in": stream})[0]

    def with_stops(self, values: Stream, like: Stream, name: str = "shape") -> Stream:
        """Dense values in the shape of a stream."""
        block = self._drafted(plumbing.with_stops, values.type, like.type)
        return self.place(block, name, {"in": values, "like": like})[0]


def _types_of(streams: Sequence[Stream], name: str) -> list[StreamType]:
    if not streams:
        raise UserError(
            f"{name!r} is given no streams", location=user_location(), expected="one or more"
        )
    return [stream.type for stream in streams]
