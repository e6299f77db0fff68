"""Designs whose cycles have a closed form, and small ones, built by hand."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import replace
from itertools import pairwise, product

from t2s.backends.cgra_tia.fabric import FABRICS, CellKind
from t2s.backends.cgra_tia.netlist import (
    AffineSum,
    Branch,
    PlacedDesign,
    TagCase,
    UnitCondition,
    UnitKind,
    unplaced,
)
from t2s.core.types import Type
from tests.backends.cgra.built_netlists import NetlistBuilder, Port

FMAC = (
    "when %p == XXXXXXXX with %i0.0, %i1.0, %i2.0:\n  fmac %o0.0, %i2, %i0, %i1; deq %i0, %i1, %i2;"
)
RELAY = "when %p == XXXXXXXX with %i0.0, %i1.0:\n  mov %o0.0, %i0; deq %i0, %i1;"

SINK = "when %p == XXXXXXXX with %i0.0:\n  nop; deq %i0;"
COPY = "when %p == X with %i0.0: mov %o0.0, %i0; deq %i0;"


def with_branch(design: PlacedDesign, net: str, number: int, branch: Branch) -> PlacedDesign:
    """The design with another branch of a net."""
    branches = list(design.branches[net])
    branches[number] = branch
    return replace(design, branches={**design.branches, net: tuple(branches)})


def chains(
    size: int, steps: int, latency: int, fma_latency: int, handed_on: bool = False
) -> PlacedDesign:
    """size x size chains of size FMAs, k in space.

    Operands come by multicast, or are handed on from PE to PE, with two relays beside each PE that
    wait for both of its operands, as a PE does that hands them on itself.
    """
    builder = NetlistBuilder("chains")
    for name in "ab":
        builder.tensor(name, steps, size, size)
    builder.tensor("d", steps, size, size)
    builder.tensor("c", steps, size, size, output=True)
    whole = range(size)
    for i in whole:
        for j in whole:
            builder.load(f"d{i}{j}", "d", [steps], [size * size], i * size + j)
            builder.store(f"c{i}{j}", "c", [steps], [size * size], i * size + j)
            for k in whole:
                builder.cell(f"p{k}{i}{j}", FMAC)
            ends = [f"d{i}{j}", *(f"p{k}{i}{j}" for k in whole), f"c{i}{j}"]
            for k, (source, sink) in enumerate(pairwise(ends)):
                end = (sink, 2) if k < size else sink
                builder.net(f"sum{k}{i}{j}", source, end, tokens=steps)
    for k in whole:
        for i in whole:
            for name in "ab":
                builder.load(f"{name}{k}{i}", name, [steps], [size * size], k * size + i)
        (_hand_on if handed_on else _multicast)(builder, k, size)
    for net in range(len(builder.nets)):
        sinks = tuple(replace(sink, tokens=steps) for sink in builder.nets[net].sinks)
        builder.nets[net] = replace(builder.nets[net], sinks=sinks)
    fabric = replace(FABRICS["cgra16"], fma_latency=fma_latency)
    return unplaced(builder.netlist(), fabric, latency)


def _multicast(builder: NetlistBuilder, k: int, size: int) -> None:
    whole = range(size)
    for i in whole:
        builder.net(f"na{k}{i}", f"a{k}{i}", *((f"p{k}{i}{j}", 0) for j in whole))
        builder.net(f"nb{k}{i}", f"b{k}{i}", *((f"p{k}{j}{i}", 1) for j in whole))


def _hand_on(builder: NetlistBuilder, k: int, size: int) -> None:
    for i, j in product(range(size), repeat=2):
        here = f"{k}{i}{j}"
        for name, along, source, mine in (
            ("a", j, f"a{k}{i}" if j == 0 else f"relay a{k}{i}{j - 1}", 0),
            ("b", i, f"b{k}{j}" if i == 0 else f"relay b{k}{i - 1}{j}", 1),
        ):
            builder.cell(f"relay {name}{here}", RELAY, CellKind.CONTROL)
            ends: list[Port] = [(f"p{here}", mine)]
            ends += [(f"relay a{here}", mine), (f"relay b{here}", 1 - mine)]
            builder.net(f"n{name}{here}", source, *ends)
            if along == size - 1:
                builder.cell(f"end {name}{here}", SINK, CellKind.CONTROL)
                builder.net(f"end {name}{here}", f"relay {name}{here}", f"end {name}{here}")


def virtual_buffer(tokens: int, latency: int, capacity: int, passes: int = 10) -> PlacedDesign:
    """A feeder that keeps some tokens in a channel to itself, and sends them again and again."""
    builder = NetlistBuilder("buffer")
    builder.tensor("x", tokens)
    builder.tensor("y", passes, tokens, output=True)
    builder.load("load", "x", [tokens], [1])
    first = UnitCondition(sum=AffineSum(coefficients=(1,)), equal=True)
    last = UnitCondition(sum=AffineSum(constant=1 - passes, coefficients=(1,)))
    cases = (TagCase(when=(first,), tag=1), TagCase(when=(last,), tag=3))
    builder.unit(UnitKind.SEQUENCE, "seq", extents=[passes, tokens], tags=cases)
    builder.cell(
        "feeder",
        "when %p == X with %i0.1, %i1.0: mov %o{0, 1}.0, %i1; deq %i0, %i1;\n"
        "when %p == X with %i0.0, %i2.0: mov %o{0, 1}.0, %i2; deq %i0, %i2;\n"
        "when %p == X with %i0.3, %i2.0: mov %o0.0, %i2; deq %i0, %i2;\n",
    )
    builder.store("store", "y", [passes, tokens], [tokens, 1])
    builder.net("order", "seq", "feeder")
    builder.net("in", "load", ("feeder", 1))
    builder.net("out", "feeder", "store")
    builder.net("loop", ("feeder", 1), ("feeder", 2))
    design = unplaced(builder.netlist(), FABRICS["cgra8"])
    return with_branch(design, "loop", 0, Branch(path=(), latency=latency, capacity=capacity))


def ring(results: int, steps: int, hop: int) -> PlacedDesign:
    """Four FMAs in a circle in which sums travel: ``steps`` times around, all of them."""
    builder = NetlistBuilder("ring")
    builder.tensor("a", 4, steps, results)
    builder.tensor("b", 4, steps, results)
    builder.tensor("d", results)
    builder.tensor("c", results, output=True)
    first = UnitCondition(sum=AffineSum(coefficients=(1,)), equal=True)
    last = UnitCondition(sum=AffineSum(constant=1 - steps, coefficients=(1,)))
    for name, case in (("first", first), ("last", last)):
        tags = (TagCase(when=(case,), tag=1),)
        builder.unit(UnitKind.SEQUENCE, name, extents=[steps, results], tags=tags)
    for k in range(4):
        for name in "ab":
            builder.load(f"{name}{k}", name, [steps, results], [results, 1], k * steps * results)
    builder.load("d", "d", [results], [1])
    builder.store("c", "c", [results], [1])
    operands = "with %i0.0, %i1.0"
    builder.cell(
        "p0",
        f"when %p == X {operands}, %i3.1, %i4.0:\n"
        "  fmac %o0.0, %i4, %i0, %i1; deq %i0, %i1, %i3, %i4;\n"
        f"when %p == X {operands}, %i3.0, %i2.0:\n"
        "  fmac %o0.0, %i2, %i0, %i1; deq %i0, %i1, %i2, %i3;\n",
    )
    for k in (1, 2):
        builder.cell(f"p{k}", FMAC)
    builder.cell(
        "p3",
        f"when %p == X {operands}, %i2.0, %i3.0:\n"
        "  fmac %o0.0, %i2, %i0, %i1; deq %i0, %i1, %i2, %i3;\n"
        f"when %p == X {operands}, %i2.0, %i3.1:\n"
        "  fmac %o1.0, %i2, %i0, %i1; deq %i0, %i1, %i2, %i3;\n",
    )
    for k in range(4):
        for port, name in enumerate("ab"):
            builder.net(f"{name}{k}", f"{name}{k}", (f"p{k}", port), tokens=32)
        builder.net(f"hop{k}", f"p{k}", (f"p{(k + 1) % 4}", 2), tokens=32)
    builder.net("first", "first", ("p0", 3), tokens=64)
    builder.net("last", "last", ("p3", 3), tokens=64)
    builder.net("d", "d", ("p0", 4), tokens=32)
    builder.net("c", ("p3", 1), "c")
    fabric = replace(FABRICS["cgra8"], fma_latency=0)
    return unplaced(builder.netlist(), fabric, hop)


def through(
    program: str, x: Sized, type: Type | None = None, kind: CellKind = CellKind.FMA
) -> PlacedDesign:
    """A cell between a load and a store, word by word."""
    builder = NetlistBuilder("through")
    builder.tensor("x", len(x), type=type)
    builder.tensor("y", len(x), type=type, output=True)
    builder.load("load", "x", [len(x)], [1])
    builder.cell("cell", program, kind)
    builder.store("store", "y", [len(x)], [1])
    builder.net("in", "load", "cell")
    builder.net("out", "cell", "store")
    return unplaced(builder.netlist(), FABRICS["cgra8"])
