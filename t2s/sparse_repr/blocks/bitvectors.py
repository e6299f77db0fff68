"""Bitvector streams [SAM, sec. 4.3]: words in which a set bit is a coordinate.

Word ``i`` of a fiber, ``width`` bits wide, holds the coordinates from ``i * width`` on, the lowest
bit first.  The reference beside a word is its rank: the number of bits set in all words before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from t2s.core.expr import Expr, all_hold, apply, const, equals, unequal, zero
from t2s.core.ops import Op
from t2s.core.types import INT32, Type
from t2s.graph.body import Statement
from t2s.graph.build import In, Out, let, put, rule, when, write
from t2s.graph.graph import StreamKind, StreamType, Tensor
from t2s.graph.nodes import DONE, EMPTY, Choice, Put
from t2s.sparse_repr.blocks.connections import Connections, Stream
from t2s.sparse_repr.blocks.draft import BlockKind, Draft, StreamBlock
from t2s.sparse_repr.blocks.expressions import below, cast, count_ones, lowest_one, power_of_two
from t2s.sparse_repr.blocks.scanners import BitvectorScanner
from t2s.sparse_repr.blocks.splits import Flattener, Splitter
from t2s.sparse_repr.blocks.writers import BitvectorWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class BitvectorConverter(StreamBlock):
    """Coordinates below ``size`` as words of an unsigned type (Definition 4.2).

    ``width`` bits of a word are used (default: all).  Without ``empty_fibers`` a stop that has no
    coordinate before it emits no words (compare ``CompressedWriter``).

    Every fiber becomes ``ceil(size / width)`` words, including zero words.  A coordinate or a word
    takes a cycle; a word is emitted in the cycle of the first coordinate of the next one.
    Ports: ``crd``; ``bits``, ``ref``.
    """

    kind = BlockKind.CONVERT

    word: Type
    size: int
    width: int | None = None
    empty_fibers: bool = True
    rank: Type = INT32

    def draft(self, draft: Draft, coordinates: StreamType) -> None:
        crd, type = draft.input("crd", coordinates), coordinates.element
        bits = draft.output("bits", self.word, StreamKind.BITVECTOR, coordinates.nesting)
        ref = draft.output("ref", self.rank, StreamKind.REFERENCE, coordinates.nesting)
        used = self.width or self.word.bits
        words, bits_used = const(-(-self.size // used), type), const(used, type)
        held, index = draft.register("held", self.word), draft.register("index", type)
        before = draft.register("before", self.rank)
        token = [put(bits, held), put(ref, before)]
        counted = write(before, before + cast(count_ones(held), self.rank))
        step = write(index, index + 1)
        bit = power_of_two(crd.value % bits_used, self.word)
        divide, block = let("block", crd.value // bits_used)
        into = rule("collect", "run", takes=[crd], body=[write(held, held | bit)])
        following = rule(
            "next", "run", takes=[crd], puts=token, body=[counted, step, write(held, bit)]
        )
        flush = [counted, step, write(held, zero(self.word))]
        stops = [put(bits, tag=crd.tag), put(ref, tag=crd.tag)]
        more: Expr = index < words
        if not self.empty_fibers:
            nothing = equals(index, zero(type)) & equals(held, zero(self.word))
            more = more & ~nothing
        collecting = [
            when(equals(block, index), into),
            when(equals(block, index + 1), following),
            when(index < block, rule("skip", "run", puts=token, body=flush)),
        ]
        stop = rule("stop", "run", takes=[crd], puts=stops, body=[write(index, zero(type))])
        ending = [when(more, rule("flush", "run", puts=token, body=flush)), when(None, stop)]
        draft.mode(
            "run",
            when(
                crd.is_value & (crd.value < const(self.size, type)),
                collecting,
                body=[divide],
            ),
            when(crd.is_stop, ending),
            when(crd.is_done, rule("done", None, takes=[crd], puts=stops)),
            needs=[crd],
            expected=f"increasing coordinates below {self.size}, stops or D",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BitJoiner(StreamBlock):
    """The bits common to all sides, as words, and one by one as coordinates and references.

    A word without common bits takes one cycle and emits nothing; any other takes a cycle for each
    bit.  A union has the bits of any side, with N as the reference of a side that lacks one.  With
    one side the block converts words to coordinates.
    Ports: ``bits0``, ``ref0``, ``bits1``, ...; ``bits``, ``crd``, ``out0``, ``out1``, ...
    """

    kind: BlockKind
    width: int | None = None
    index: Type = INT32

    def draft(self, draft: Draft, *streams: StreamType) -> None:
        pairs = [
            (draft.input(f"bits{n}", words), draft.input(f"ref{n}", refs))
            for n, (words, refs) in enumerate(zip(streams[::2], streams[1::2], strict=True))
        ]
        index = self.index
        first = pairs[0][0]
        word, nesting = first.stream.element, first.stream.nesting
        bits = draft.output("bits", word, StreamKind.BITVECTOR, nesting)
        crd = draft.output("crd", index, StreamKind.COORDINATE, nesting)
        outs = [
            draft.output(f"out{n}", ref.stream.element, StreamKind.REFERENCE, nesting)
            for n, (_, ref) in enumerate(pairs)
        ]
        left, base = draft.register("left", word), draft.register("base", index)
        remaining = [
            (draft.register(f"word{n}", word), draft.register(f"rank{n}", ref.stream.element))
            for n, (_, ref) in enumerate(pairs)
        ]
        union, inputs = self.kind is BlockKind.UNION, [port for pair in pairs for port in pair]
        merge, common = let(
            "common", _merged([bits.value for bits, _ in pairs], Op.OR if union else Op.AND)
        )
        width = const(self.width or word.bits, index)
        step = write(base, base + width)
        keep: list[Statement] = [
            write(register, port.value)
            for pair, registers in zip(pairs, remaining, strict=True)
            for port, register in zip(pair, registers, strict=True)
        ]
        first_bit = _bit(common, [(a.value, b.value) for a, b in pairs], base, (crd, outs), union)
        next_bit = _bit(left, remaining, base - width, (crd, outs), union)
        same = [equals(first.tag, port.tag) for port in inputs[1:]]
        all_outs = [bits, crd, *outs]
        stops = [put(o, tag=first.tag) for o in all_outs]
        start = [*keep, step, write(left, _rest(common))]
        nothing = rule("none", "run", takes=inputs, body=[step])
        bit_by_bit = _one_more(
            "first", _rest(common), first_bit, inputs, start, [put(bits, common)]
        )
        stop = rule("stop", "run", takes=inputs, puts=stops, body=[write(base, zero(index))])
        done = rule("done", None, takes=inputs, puts=[put(o, tag=DONE) for o in all_outs])
        draft.mode(
            "run",
            when(
                all_hold(*(port.is_value for port in inputs)),
                [when(equals(common, zero(word)), nothing), *bit_by_bit],
                body=[merge],
            ),
            when(all_hold(first.is_stop, *same), stop),
            when(all_hold(first.is_done, *same), done),
            needs=inputs,
            expected="a word and its rank on each side, and the same stops",
        )
        draft.mode(
            "bits", *_one_more("next", _rest(left), next_bit, [], [write(left, _rest(left))], [])
        )


def _merged(words: Sequence[Expr], operator: Op) -> Expr:
    merged = words[0]
    for word in words[1:]:
        merged = apply(operator, merged, word)
    return merged


def _rest(word: Expr) -> Expr:
    """The word without its lowest bit."""
    return word & (word - 1)


def _bit(
    word: Expr,
    sides: Sequence[tuple[Expr, Expr]],
    base: Expr,
    outputs: tuple[Out, Sequence[Out]],
    union: bool,
) -> list[Put]:
    """The tokens of the lowest bit of a word: its coordinate, and a reference for each side."""
    crd, outs = outputs
    bit = lowest_one(word)
    position = cast(count_ones(below(bit)), crd.stream.element)
    tokens = [put(crd, base + position)]
    for (own, rank), out in zip(sides, outs, strict=True):
        before = cast(count_ones(own & below(bit)), out.stream.element)
        tag = None
        if union:
            has = unequal(own & bit, zero(word.type))
            tag = const(EMPTY) * cast(~has, INT32)
        tokens.append(put(out, rank + before, tag))
    return tokens


def _one_more(
    name: str,
    rest: Expr,
    tokens: Sequence[Put],
    takes: Sequence[In],
    body: Sequence[Statement],
    puts: Sequence[Put],
) -> list[Choice]:
    """Emit the tokens of one bit; the next mode depends on whether more follow."""
    sent = [*puts, *tokens]
    return [
        when(
            unequal(rest, zero(rest.type)),
            rule(name, "bits", takes=takes, body=body, puts=sent),
        ),
        when(None, rule(f"{name}_last", "run", takes=takes, body=body, puts=sent)),
    ]


Sides = Sequence[tuple[Stream, Stream]]
"""Words and their ranks of each side."""


def join_bits(
    to: Connections, kind: BlockKind, sides: Sides, name: str, width: int | None = None
) -> tuple[Stream, Stream, tuple[Stream, ...]]:
    """The common words (or those of a union), and bit by bit coordinates and references."""
    kind = kind if len(sides) > 1 else BlockKind.CONVERT
    block = BitJoiner(kind=kind, width=width, index=to.index)
    words, crd, *refs = to.put(block, name, *(stream for side in sides for stream in side))
    return words, crd, tuple(refs)


def coordinates_of(
    to: Connections, bits: Stream, ref: Stream, name: str, width: int | None = None
) -> tuple[Stream, Stream]:
    """Words and ranks as coordinates and references."""
    _, crd, (out,) = join_bits(to, BlockKind.CONVERT, [(bits, ref)], name, width)
    return crd, out


Words = tuple[Tensor, Tensor]
"""Words and their ranks."""


def scan_bit_tree(
    to: Connections, ref: Stream, top: Words, leaves: Words, words_per_fiber: int, name: str
) -> tuple[Stream, Stream]:
    """Coordinates and references: words of the leaves for the set bits of words of the top."""
    scanner = BitvectorScanner(words=top[0], ranks=top[1], words_per_fiber=words_per_fiber)
    block_crd, block_ref = coordinates_of(to, *to.pair(scanner, name, ref), "coordinates")
    scanner = BitvectorScanner(words=leaves[0], ranks=leaves[1], words_per_fiber=1)
    inner_crd, inner_ref = coordinates_of(to, *to.pair(scanner, name, block_ref), "coordinates")
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
