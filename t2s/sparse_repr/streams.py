"""``Streams``: connect blocks by calling methods, and get a verified ``Graph``.

>>> s = Streams("scale")                                             # doctest: +SKIP
>>> crd, ref = s.scan_compressed(s.root(), positions, coordinates)   # doctest: +SKIP
>>> s.write_values(s.compute(double, s.load(ref, values)), result)   # doctest: +SKIP
>>> graph = s.graph()                                                # doctest: +SKIP

A method takes the streams that go into a block and returns those that come out.  A stream may be
used any number of times: its block puts every token into a channel for each use.  A stream that
nobody uses is not put at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from t2s.core.errors import UserError
from t2s.core.expr import Expr
from t2s.core.location import user_location
from t2s.graph.graph import Tensor
from t2s.sparse_repr.arguments import checked
from t2s.sparse_repr.blocks import arrays, writers
from t2s.sparse_repr.blocks.draft import Block, BlockKind
from t2s.sparse_repr.blocks.reducers import EmptyFiber
from t2s.sparse_repr.computation import Computation
from t2s.sparse_repr.connections import UNBOUNDED, Stream

__all__ = ["UNBOUNDED", "Block", "BlockKind", "EmptyFiber", "Stream", "Streams"]


@checked
class Streams(Computation):
    """A graph of blocks in the making; see the module's docstring."""

    def write_values(
        self, val: Stream, values: Tensor, *, missing: Expr | None = None, name: str = "write"
    ) -> None:
        """Store the values in order."""
        block = self._drafted(writers.value_writer, val.type, values, missing=missing)
        self.place(block, name, {"val": val})

    def write_compressed(
        self,
        crd: Stream,
        positions: Tensor,
        coordinates: Tensor,
        *,
        empty_fibers: bool = False,
        name: str = "write",
    ) -> None:
        """Store a compressed level; see ``compressed_writer`` for empty fibers."""
        block = self._drafted(
            writers.compressed_writer, crd.type, positions, coordinates, empty_fibers=empty_fibers
        )
        self.place(block, name, {"crd": crd})

    def write_singleton(self, crd: Stream, coordinates: Tensor, name: str = "write") -> None:
        """Store a singleton level."""
        block = self._drafted(writers.singleton_writer, crd.type, coordinates)
        self.place(block, name, {"crd": crd})

    def write_bitvector(
        self, bits: Stream, words: Tensor, ranks: Tensor, name: str = "write"
    ) -> None:
        """Store a bitvector level."""
        block = self._drafted(writers.bitvector_writer, bits.type, words, ranks)
        self.place(block, name, {"bits": bits})

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
        width = leaves[0].type.bits
        outer, inner = self.split(crd, width)
        blocks = max(1, -(-size // width))
        upper, _ = self.bits_of(outer, top[0].type, blocks, empty_fibers=empty_fibers)
        lower, _ = self.bits_of(inner, leaves[0].type, width, empty_fibers=False)
        self.write_bitvector(upper, *top, name=name)
        self.write_bitvector(lower, *leaves, name=name)

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
        block = self._drafted(writers.linked_list_writer, crd.type, fiber.type, *arrays)
        self.place(block, name, {"crd": crd, "fiber": fiber})

    def store(self, ref: Stream, val: Stream, values: Tensor, name: str = "store") -> None:
        """Store values at references."""
        block = self._drafted(arrays.array_store, ref.type, val.type, values)
        self.place(block, name, {"ref": ref, "val": val})

    def record(self, stream: Stream, values: Tensor, tags: Tensor, name: str = "record") -> None:
        """Store a stream token by token."""
        block = self._drafted(writers.recorder, stream.type, values, tags)
        self.place(block, name, {"in": stream})
