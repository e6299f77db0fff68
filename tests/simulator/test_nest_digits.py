"""The arithmetic behind loop nests, against counting and executing one firing after the other."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.core.expr import Expr, Index, apply, conjunction, const, equals
from t2s.core.ops import Op
from t2s.core.types import INT32
from t2s.graph.body import Receive, RegisterRead, RegisterWrite
from t2s.graph.graph import Graph
from t2s.graph.nodes import Loop, PEArray, Register, Role, SpaceDimension
from t2s.graph.semantics import element_of, holds, iterations
from t2s.simulator.values.nests.digits import (
    DigitFrame,
    NodeDigits,
    Opaque,
)
from t2s.simulator.values.nests.trace import last_writer, regroup, separated

DRAW = st.DataObject
P, S, T = Index(name="p"), Index(name="s"), Index(name="t")


def op(operator: Op, left: Expr, right: Expr | int) -> Expr:
    return apply(operator, left, const(right) if isinstance(right, int) else right)


def node(loops: tuple[Loop, ...], *body: Receive | RegisterRead | RegisterWrite) -> PEArray:
    space = (SpaceDimension(name="p", minimum=0, extent=4),)
    registers = (Register(name="r", type=INT32, shape=(64, 64), distance=1),)
    return PEArray(
        name="n", role=Role.RELAY, space=space, loops=loops, body=body, registers=registers
    )


def loops_of(data: DRAW) -> tuple[tuple[Loop, ...], list[Expr]]:
    """A loop that is taken apart by a constant, one that is not, and what digits there are."""
    by = data.draw(st.integers(2, 5), "divisor")
    low = data.draw(st.integers(0, 7), "first step")
    count = data.draw(st.integers(1, 24), "steps")
    outer = Loop(name="s", minimum=const(low), extent=const(count))
    inner = Loop(name="t", minimum=const(1), extent=const(data.draw(st.integers(1, 5), "inner")))
    return (outer, inner), [op(Op.FLOOR_DIVIDE, S, by), op(Op.MODULO, S, by), T]


def condition_of(data: DRAW, digits: list[Expr]) -> Expr | None:
    factors = []
    for digit in digits:
        kind = data.draw(st.sampled_from([None, Op.LESS, Op.GREATER_EQUAL, Op.EQUAL]), "test")
        if kind is None:
            continue
        other = data.draw(st.sampled_from([const(1), const(2), const(3), P]), "with")
        period = data.draw(st.integers(0, 1), "of a remainder")
        value = op(Op.MODULO, op(Op.ADD, digit, 1), 3) if period else digit
        factors.append(apply(kind, value, other))
    return conjunction(*factors)


def frame_of(found: PEArray, point: int) -> tuple[DigitFrame, dict[str, np.ndarray]]:
    graph = Graph(name="g", nodes=(found,), channels=(), tensors=())
    return NodeDigits(graph, found, {}).frame((point,))


@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.data())
def test_the_points_of_a_condition_are_those_that_meet_it_in_order(data: DRAW) -> None:
    loops, digits = loops_of(data)
    condition = condition_of(data, digits)
    indices = (op(Op.MODULO, op(Op.ADD, digits[0], 1), 2), op(Op.ADD, S, T))
    read = RegisterRead(target="x", register="r", indices=indices, type=INT32)
    found = node(loops, Receive(target="y", channel="c", type=INT32, condition=condition), read)
    for point in range(4):
        frame, known = frame_of(found, point)
        try:
            points = frame.points(condition, known)
        except Opaque:
            continue  # the box of digits is larger than the loops
        firings = [e for e in iterations(found, (point,), {}) if holds(condition, dict(e))]
        assert prod(len(values) for values in points) == len(firings)
        if not firings:
            continue
        sums = [frame.sum(index, known) for index in indices]
        grid = np.meshgrid(*(np.arange(len(v)) for v in points), indexing="ij")
        for number, index in enumerate(indices):
            total = np.full(grid[0].shape, sums[number].base)
            for digit, table in sums[number].tables.items():
                at = np.searchsorted(frame.all[digit], points[digit])
                total = total + table[at][grid[digit]]
            wanted = [element_of((index,), e)[0] for e in firings]
            assert total.reshape(-1).tolist() == wanted


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.data())
def test_the_last_writer_is_the_one_whose_value_is_read(data: DRAW) -> None:
    loops, digits = loops_of(data)
    high, low, inner = digits
    offset = data.draw(st.integers(0, 1), "half")
    swap = data.draw(st.booleans(), "order of indices")
    narrow = data.draw(st.sampled_from([low, inner, const(0)]), "index")
    written_at = (op(Op.MODULO, high, 2), narrow)
    read_at = (op(Op.MODULO, op(Op.ADD, high, offset), 2), narrow)
    where = condition_of(data, [low, inner])
    reading = condition_of(data, [high])
    write = RegisterWrite(register="r", indices=written_at, value=const(1), condition=where)
    read = RegisterRead(target="x", register="r", indices=read_at, type=INT32)
    found = node(loops, *((read, write) if swap else (write, read)))
    point = data.draw(st.integers(0, 3), "PE")
    frame, known = frame_of(found, point)
    try:
        writing, points = frame.points(where, known), frame.points(reading, known)
        if not prod(map(len, points)) or not prod(map(len, writing)):
            return
        origins = last_writer(
            frame, known, (written_at, writing), (read_at, points), written_first=not swap
        )
    except Opaque:
        return
    grid = np.meshgrid(*(np.arange(len(v)) for v in points), indexing="ij")
    lengths = [len(values) for values in writing]
    claimed = np.zeros(grid[0].shape, np.int64)
    for origin, length in zip(origins, lengths, strict=True):
        at = origin.positions[0 if origin.digit is None else grid[origin.digit]]
        claimed = claimed * length + at
    writer: dict[tuple[int, ...], int] = {}
    count, seen = 0, []
    for environment in iterations(found, (point,), {}):
        for statement in found.body:
            if isinstance(statement, RegisterWrite):
                if holds(where, dict(environment)):
                    writer[element_of(written_at, environment)] = count
                    count += 1
            elif holds(reading, dict(environment)):
                seen.append(writer.get(element_of(read_at, environment)))
    assert claimed.reshape(-1).tolist() == seen


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.data())
def test_regrouping_keeps_every_number(data: DRAW) -> None:
    factors = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5), "factors")

    def grouped() -> list[int]:
        lengths, current = [], 1
        for factor in factors:
            current *= factor
            if data.draw(st.booleans(), "cut"):
                lengths.append(current)
                current = 1
        return [*lengths, current]

    lengths, wanted = grouped(), grouped()
    steps = [data.draw(st.integers(0, 9), "step") for _ in lengths]
    firsts = [data.draw(st.integers(0, 9), "first") for _ in lengths]
    tables = [
        first + np.arange(n, dtype=np.int64) * step
        for n, step, first in zip(lengths, steps, firsts, strict=True)
    ]
    flat = np.zeros(1, np.int64)
    for table in tables:
        flat = np.add.outer(flat, table).reshape(-1)
    try:
        base, result = regroup(lengths, tables, wanted)
    except Opaque:
        with pytest.raises(Opaque):
            separated(flat, wanted)
        return
    again = np.full(1, base)
    for table in result:
        again = np.add.outer(again, table).reshape(-1)
    assert again.tolist() == flat.tolist()


def test_conditions_of_two_digits_are_opaque() -> None:
    loops = (Loop(name="t", minimum=const(0), extent=const(4)),)
    both = equals(T, T)
    found = node((*loops, Loop(name="s", minimum=const(0), extent=const(4))))
    frame, known = frame_of(found, 0)
    assert [len(values) for values in frame.points(both, known)] == [4, 4]
    with pytest.raises(Opaque):
        frame.points(equals(S, T), known)


def test_sums_that_overflow_are_opaque() -> None:
    found = node(
        (
            Loop(name="s", minimum=const(0), extent=const(4)),
            Loop(name="t", minimum=const(0), extent=const(4)),
        )
    )
    frame, known = frame_of(found, 0)
    large = op(Op.ADD, op(Op.MULTIPLY, S, 1 << 29), op(Op.MULTIPLY, T, 1 << 29))
    with pytest.raises(Opaque):
        frame.sum(large, known)
