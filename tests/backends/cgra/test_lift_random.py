"""Random placed designs of profile B: interpreter, lifted graph on each engine, cycle by cycle."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from t2s.backends.cgra_tia.fabric import CgraFabric
from t2s.backends.cgra_tia.lift import lift_placed
from t2s.backends.cgra_tia.machine.profile_b import PlacedDeadlockError, run_placed
from t2s.backends.cgra_tia.netlist import (
    AffineSum,
    Branch,
    PlacedDesign,
    TagCase,
    UnitCondition,
    UnitKind,
    unplaced,
)
from t2s.core.errors import T2SError
from t2s.core.ops import Array
from t2s.core.types import Float, Int
from t2s.simulator.run import simulate
from tests.backends.cgra.built_netlists import NetlistBuilder

STEPS = 12

WORDS = {
    "plain": ["add", "sub", "lmul", "bxor", "uhmul", "shmul", "ult", "sgt"],
    "unary": ["mov", "clz", "ctz", "lsr", "asr", "itf"],
}
FLOATS = {"plain": ["fadd", "fsub", "fmul"], "unary": ["mov", "fmul", "fti"]}


@dataclass(frozen=True)
class Stream:
    """An output that sends ``count`` tokens, all of tag 0."""

    end: tuple[str, int]
    count: int
    floats: bool


class RandomDesign:
    """Units and cells, each of which takes from what is there already."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.made = NetlistBuilder("random")
        self.streams: list[Stream] = []
        self.sinks: dict[tuple[str, int], list[tuple[str, int]]] = {}

    def pick(self, *values: str) -> str:
        return self.draw(st.sampled_from(values))

    def load(self, number: int) -> None:
        floats = self.draw(st.booleans())
        name = self.made.tensor(f"x{number}", STEPS, type=Float(64) if floats else Int(64))
        unit = self.made.load(f"load{number}", name, [STEPS], [1])
        self.streams.append(Stream((unit, 0), STEPS, floats))

    def connect(self, stream: Stream, cell: str, port: int) -> None:
        self.sinks.setdefault(stream.end, []).append((cell, port))

    def tags(self, name: str, count: int, kinds: int) -> tuple[str, int]:
        """A unit whose tokens have tags below ``kinds``, in turns of some length."""
        inner = self.draw(st.sampled_from([size for size in (2, 3, 4) if count % size == 0] or [1]))
        cases = [
            TagCase(
                when=(
                    UnitCondition(
                        sum=AffineSum(constant=-at, coefficients=(0, 1)),
                        equal=self.draw(st.booleans()),
                    ),
                ),
                tag=self.draw(st.integers(0, kinds - 1)),
            )
            for at in range(inner)
        ]
        extents = [count // inner, inner]
        return self.made.unit(UnitKind.SEQUENCE, name, None, extents, tags=cases), 0

    def cell(self, number: int) -> None:
        name, first = f"cell{number}", self.draw(st.sampled_from(self.streams))
        like = [s for s in self.streams if (s.count, s.floats) == (first.count, first.floats)]
        second = self.draw(st.sampled_from(like))
        kinds = (
            "plain",
            "unary",
            "tagged",
            "kept",
            "counts",
            "every second",
            "chooses",
            "registers",
            "keeps",
        )
        kind = self.pick(*kinds)
        event(kind)
        table, count, floats = FLOATS if first.floats else WORDS, first.count, first.floats
        one, two = self.pick(*table["plain"]), self.pick(*table["plain"])
        self.connect(first, name, 0)
        both = "%i0.0, %i1.0"
        if kind == "plain":
            text = f"when %p == X with {both}: {one} %o0.0, %i0, %i1; deq %i0, %i1;"
        elif kind == "unary":
            one = self.pick(*table["unary"])
            text = f"when %p == X with {both}: {one} %o0.0, %i0; deq %i0, %i1;"
            floats = floats if one not in ("itf", "fti") else not floats
        elif kind == "tagged":
            self.connect(Stream(self.tags(f"seq{number}", count, 2), count, False), name, 2)
            text = (
                f"when %p == X with {both}, %i2.0: {one} %o0.0, %i0, %i1; deq %i0, %i1, %i2;\n"
                f"when %p == X with {both}, %i2.1: {two} %o0.0, %i1, %i0; deq %i0, %i1, %i2;"
            )
        elif kind == "kept":
            text = (
                "when %p == XXXXXXX0 with %i2.0: mov %r0, %i2; deq %i2; set %p = ZZZZZZZ1;\n"
                f"when %p == XXXXXXX1 with {both}: {one} %o0.0, %r0, %i1; deq %i0, %i1;"
            )
            kept = f"w{number}"
            self.made.tensor(kept, 1, type=Float(64) if first.floats else Int(64))
            unit = self.made.load(f"keep{number}", kept, [1], [1])
            self.connect(Stream((unit, 0), 1, first.floats), name, 2)
        elif kind == "keeps":
            text = (
                f"when %p == XXXXXX00 with {both}: ssw %i0, $5; set %p = ZZZZZZZ1;\n"
                f"when %p == XXXXXX01 with {both}: lsw %o0.0, $5; set %p = ZZZZZZ10;\n"
                f"when %p == XXXXXX10 with {both}: ssw %i1, $5; deq %i0, %i1; set %p = ZZZZZZ00;"
            )
        elif kind == "counts":
            text = (
                "init %r1, $3;\n"
                f"when %p == XXXXXXX0 with {both}: add %r1, %r1, $1; set %p = ZZZZZZZ1;\n"
                f"when %p == XXXXXXX1 with {both}: {one} %o0.0, %i0, %i1; deq %i0, %i1; "
                "set %p = ZZZZZZZ0;"
            )
        elif kind == "every second" and count % 2 == 0:
            count //= 2
            text = (
                f"when %p == XXXXXXX0 with {both}: nop; deq %i0, %i1; set %p = ZZZZZZZ1;\n"
                f"when %p == XXXXXXX1 with {both}: {one} %o0.0, %i1, %i0; deq %i0, %i1; "
                "set %p = ZZZZZZZ0;"
            )
        elif kind == "registers" and first.floats:
            text = (
                f"when %p == XXXXXXX0 with %i0.0: {one} %r0, %i0, %r0; set %p = ZZZZZZZ1;\n"
                f"when %p == XXXXXXX1 with {both}: mov %o0.0, %r0; deq %i0, %i1; "
                "set %p = ZZZZZZZ0;"
            )
        else:
            less = "flt" if first.floats else "slt"
            text = (
                f"when %p == XXXXXX0X with {both}: {less} %p0, %i0, %i1; set %p = ZZZZZZ1Z;\n"
                f"when %p == XXXXXX11 with {both}: mov %o0.0, %i1; deq %i0, %i1; "
                "set %p = ZZZZZZ0Z;\n"
                f"when %p == XXXXXX10 with {both}: {two} %o0.0, %i0, %i1; deq %i0, %i1; "
                "set %p = ZZZZZZ0Z;"
            )
        self.connect(second, name, 1)
        self.made.cell(name, text)
        self.streams.append(Stream((name, 0), count, floats))

    def store(self) -> None:
        """Store what nobody takes; sometimes one too few, or one too many."""
        wrong = self.draw(st.sampled_from([0, 0, 0, 0, 0, 0, 0, -1, 1]))
        for number, stream in enumerate(self.streams):
            if stream.end in self.sinks:
                continue
            count = stream.count + (wrong if number == len(self.streams) - 1 else 0)
            name = self.made.tensor(
                f"y{number}", count, output=True, type=Float(64) if stream.floats else Int(64)
            )
            self.connect(stream, self.made.store(f"store{number}", name, [count], [1]), 0)

    def done(self) -> PlacedDesign:
        for number, (source, sinks) in enumerate(self.sinks.items()):
            self.made.net(f"net{number}", source, *sinks)
        fabric = CgraFabric(
            name="open", rows=64, columns=64, fma_latency=self.draw(st.integers(0, 5))
        )
        design = unplaced(self.made.netlist(), fabric)
        branches = {
            name: tuple(
                Branch(
                    path=(),
                    latency=self.draw(st.integers(1, 7)),
                    capacity=self.draw(st.integers(1, 9)),
                )
                for _ in found
            )
            for name, found in design.branches.items()
        }
        return replace(design, branches=branches)


@st.composite
def designs(draw: st.DrawFn) -> PlacedDesign:
    random = RandomDesign(draw)
    for number in range(draw(st.integers(1, 2))):
        random.load(number)
    for number in range(draw(st.integers(1, 5))):
        random.cell(number)
    random.store()
    return random.done()


def numbers(design: PlacedDesign) -> dict[str, Array]:
    generator = np.random.default_rng(1)
    return {
        tensor.array: (
            generator.integers(-(1 << 62), 1 << 62, tensor.shape) >> generator.integers(0, 62)
            if not tensor.type.is_float
            else generator.standard_normal(tensor.shape) * 8
        ).astype(tensor.type.numpy)
        for tensor in design.netlist.tensors
        if tensor.role.value == "input"
    }


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(designs())
def test_random_designs(design: PlacedDesign) -> None:
    inputs = numbers(design)
    graph = lift_placed(design)
    try:
        expected = run_placed(design, inputs)
    except PlacedDeadlockError:
        event("stuck")
        for engine in ("python", "native"):
            with pytest.raises(T2SError, match=r"(is|are) left at the end|deadlock|stuck"):
                simulate(graph, inputs, engine=engine)
        return
    parts = {**expected.cells, **expected.units}
    for engine in ("python", "native"):
        found = simulate(graph, inputs, engine=engine)
        assert found.cycles == expected.cycles
        assert not found.tokens_left
        for name, array in expected.outputs.items():
            np.testing.assert_array_equal(found.outputs[name], array)
        assert len(found.nodes) == len(parts)  # no part has a point, so that each is a node
        for name, tally in parts.items():
            assert found.nodes[name].firings == tally.busy
