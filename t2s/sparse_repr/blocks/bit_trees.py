"""Bit trees (papers/001, section 4.3): bitvectors of the words of bitvectors that are not zero."""

from __future__ import annotations

from t2s.graph.graph import Tensor
from t2s.sparse_repr.blocks.bitvectors import BitvectorConverter, coordinates_of
from t2s.sparse_repr.blocks.connections import Connections, Stream
from t2s.sparse_repr.blocks.scanners import BitvectorScanner
from t2s.sparse_repr.blocks.splits import Flattener, Splitter
from t2s.sparse_repr.blocks.writers import BitvectorWriter

Words = tuple[Tensor, Tensor]
"""Words and their ranks."""


def scan_bit_tree(
    to: Connections, ref: Stream, top: Words, leaves: Words, words_per_fiber: int, name: str
) -> tuple[Stream, Stream]:
    """Coordinates and references: words of the leaves for the set bits of words of the top."""
    scanner = BitvectorScanner(words=top[0], ranks=top[1], words_per_fiber=words_per_fiber)
    bits, ranks = to.put(scanner, name, ref)
    block_crd, block_ref = coordinates_of(to, bits, ranks, "coordinates")
    scanner = BitvectorScanner(words=leaves[0], ranks=leaves[1], words_per_fiber=1)
    bits, ranks = to.put(scanner, name, block_ref)
    inner_crd, inner_ref = coordinates_of(to, bits, ranks, "coordinates")
    block = Flattener(factor=leaves[0].type.bits)
    crd, out_ref = to.put(block, "flatten", block_crd, inner_crd, inner_ref)
    return crd, out_ref


def write_bit_tree(
    to: Connections,
    crd: Stream,
    size: int,
    top: Words,
    leaves: Words,
    name: str,
    *,
    empty_fibers: bool = True,
) -> None:
    """Store a level of ``size`` coordinates."""
    width = leaves[0].type.bits
    outer, inner = to.put(Splitter(factor=width), "split", crd)
    upper, _ = to.put(
        BitvectorConverter(
            word=top[0].type,
            size=max(1, -(-size // width)),
            empty_fibers=empty_fibers,
            rank=to.index,
        ),
        "bits",
        outer,
    )
    lower, _ = to.put(
        BitvectorConverter(word=leaves[0].type, size=width, empty_fibers=False, rank=to.index),
        "bits",
        inner,
    )
    to.put(BitvectorWriter(words=top[0], ranks=top[1]), name, upper)
    to.put(BitvectorWriter(words=leaves[0], ranks=leaves[1]), name, lower)
