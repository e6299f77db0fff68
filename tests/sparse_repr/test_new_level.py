"""A level kind of one's own is one class: runs of coordinates, read and written by blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from t2s.core.expr import Expr, equals, select, zero
from t2s.graph.build import load
from t2s.graph.graph import StreamType, Tensor
from t2s.graph.nodes import Role
from t2s.sparse import Kernel, from_dense, parse
from t2s.sparse_repr.blocks.connections import Stream
from t2s.sparse_repr.blocks.draft import BlockKind, Draft, StreamBlock
from t2s.sparse_repr.blocks.expressions import cast
from t2s.sparse_repr.blocks.scanners import Body, Fiber, Values, scanner
from t2s.sparse_repr.formats import Format, Part
from t2s.sparse_repr.levels import (
    Array,
    Arrays,
    Compressed,
    Dense,
    GraphLevel,
    Level,
    LevelStreams,
    Packed,
    Unpacked,
    ranges,
)
from t2s.sparse_repr.levels.level import firsts, segments
from tests.sampling import sampled


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScanner(StreamBlock):
    """Fiber ``r`` holds the runs ``pos[r]`` to ``pos[r + 1] - 1``; references are ``place`` on."""

    kind = BlockKind.SCAN
    role = Role.LOAD

    pos: Tensor
    first: Tensor
    place: Tensor

    def draft(self, draft: Draft, reference: StreamType) -> None:
        type = reference.element
        at, end, inside = (draft.register(name, type) for name in ("at", "end", "inside"))

        def opened(fiber: Expr) -> tuple[Body, Values]:
            begin, here = load("begin", self.pos, fiber)
            finish, there = load("finish", self.pos, fiber + 1)
            return (begin, finish), (cast(here, type), cast(there, type), zero(type))

        def element(values: Values, name: str) -> tuple[Body, tuple[Expr, ...], Values]:
            run, last, step = values
            crd, start = load(name, self.first, run)
            ref, where = load(f"{name}_place", self.place, run)
            after, following = load(f"{name}_after", self.place, run + 1)
            over = equals(step + 1, cast(following - where, type))
            tokens = start + cast(step, start.type), cast(where, type) + step
            next_run = select(over, run + 1, run)
            next_step = select(over, zero(type), step + 1)
            return (crd, ref, after), tokens, (next_run, last, next_step)

        fiber = Fiber(
            registers=(at, end, inside),
            closed=(zero(type),) * 3,
            open=opened,
            more=lambda values: values[0] < values[1],
            element=element,
        )
        scanner(draft, reference, self.first.type, fiber)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs(Level):
    """Runs of coordinates: the first one of each, and its position; ``pos`` for every fiber."""

    letter = "r"
    title = "run-length"
    array_names = ("pos", "first", "place")
    scanned = True

    def pack(self, parents: Array, coordinates: Array, count: int, extent: int) -> Packed:
        there = firsts(parents, coordinates)
        owner, crd = parents[there], coordinates[there]
        new = firsts(owner, crd - np.arange(len(crd)))
        arrays = {
            "pos": segments(owner[new], count),
            "first": crd[new],
            "place": np.append(np.flatnonzero(new), len(crd)),
        }
        return Packed(arrays=arrays, positions=np.cumsum(there) - 1, count=len(crd))

    def unpack(self, arrays: Arrays, parents: Array, extent: int) -> Unpacked:
        runs, owner = ranges(arrays["pos"][parents], arrays["pos"][parents + 1])
        positions, run = ranges(arrays["place"][runs], arrays["place"][runs + 1])
        coordinates = arrays["first"][runs][run] + positions - arrays["place"][runs][run]
        return Unpacked(parents=owner[run], coordinates=coordinates, positions=positions)

    def positions(self, arrays: Arrays, count: int, extent: int) -> int:
        return int(arrays["place"][-1])

    def scan(self, level: GraphLevel, reference: Stream, name: str) -> tuple[Stream, Stream]:
        pos, first, place = (level.array(of) for of in self.array_names)
        return level.to.pair(RunScanner(pos=pos, first=first, place=place), name, reference)

    def has_writer(self, dropping: int) -> bool:
        return True

    def write(self, level: GraphLevel, given: LevelStreams, name: str) -> None:
        """As a compressed level, whose coordinates become runs when all of them are there."""
        Compressed().write(level, given, name)

    def written(self, stored: Mapping[str, Array], count: int, extent: int) -> Arrays:
        sizes = np.diff(stored["pos"][: count + 1])
        parents = np.repeat(np.arange(len(sizes)), sizes)
        return self.pack(parents, np.asarray(stored["crd"], np.int64), count, extent).arrays


def format_of(*levels: Level) -> Format:
    return Format(levels=levels, parts=tuple(Part(mode=mode) for mode in range(len(levels))))


@pytest.mark.parametrize("outer", [Dense(), Compressed(), Runs()])
@pytest.mark.parametrize("share", [0.0, 0.6, 1.0])
def test_products_with_runs(outer: Level, share: float) -> None:
    generator = np.random.default_rng(4)
    A = generator.integers(1, 9, (6, 9)) * (generator.random((6, 9)) < share)
    x = generator.integers(1, 9, 9) * (generator.random(9) < 0.5)
    format = format_of(outer, Runs())
    assert np.array_equal(from_dense(A, format).to_dense(), A)
    kernel = Kernel(parse("y(i)=A(i,j)*x(j)", {"A": format, "x": "s", "y": "s"}))
    assert not kernel.program.views
    result = kernel.simulate({"A": A, "x": x}, engine="python")
    assert np.array_equal(result.output, A @ x)
    assert np.array_equal(kernel.interpret({"A": A, "x": x}, level="blocks"), A @ x)


@sampled("outer", [Dense(), Compressed(), Runs()], quick=2)
def test_results_of_runs(outer: Level) -> None:
    generator = np.random.default_rng(5)
    B, C = (generator.integers(1, 9, (5, 9)) * (generator.random((5, 9)) < 0.4) for _ in "BC")
    format = format_of(outer, Runs())
    kernel = Kernel(parse("X(i,j)=B(i,j)+C(i,j)", {"B": "ds", "C": format, "X": format}))
    assert not kernel.program.views
    result = kernel.simulate({"B": B, "C": C})
    assert np.array_equal(result.output, B + C)
    packed = from_dense(B + C, format)
    for found, wanted in zip(result.tensor.levels, packed.levels, strict=True):
        assert found.keys() == wanted.keys()
        assert all(np.array_equal(found[name], wanted[name]) for name in wanted)
