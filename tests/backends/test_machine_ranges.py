"""Ranges of values in machines: arithmetic, conditions, and what they say of sparse streams."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import t2s
from benchmarks.random_machines import random_machines
from t2s.backends.verilog.machine_ranges import (
    Elements,
    Kept,
    LoadAt,
    Ranges,
    Sizes,
    StoreAt,
    Tag,
    Value,
    ranges_of,
)
from t2s.backends.verilog.machine_sizes import not_within, sizes_of, structure_of
from t2s.backends.verilog.value_ranges import (
    Range,
    assume,
    range_of,
    range_of_type,
)
from t2s.backends.verilog.verilog_ast import Bits
from t2s.core.expr import Cast, Expr, Local, apply, const, equals, evaluate, select, unequal
from t2s.core.ops import Op
from t2s.core.types import BOOL, INT32, Float, Int, UInt
from t2s.driver.design import Stage
from t2s.driver.recognize import design_of
from t2s.graph.graph import Graph

A, B = Local(name="a", type=INT32), Local(name="b", type=INT32)
FLAG = Local(name="flag", type=BOOL)
SMALL = Local(name="small", type=Int(8))

# ------------------------------------------------------------------------------------ expressions


def test_bits() -> None:
    assert Range(0, 0).bits == Bits(width=1)
    assert Range(0, 7).bits == Bits(width=3)
    assert Range(3, 8).bits == Bits(width=4)
    assert Range(-2, 1).bits == Bits(width=2, signed=True)
    assert Range(-3, 0).bits == Bits(width=3, signed=True)
    assert Range(-1, 4).bits == Bits(width=4, signed=True)
    assert range_of_type(INT32).bits == Bits(width=32, signed=True)
    assert range_of_type(UInt(8)).bits == Bits(width=8)
    assert Range(-3, 9).in_bits() == Range(-16, 15)


def numbers() -> Iterator[Expr]:
    """Expressions of integers of 32 bits, some of which wrap around."""
    yield from (A, B, const(3), const(-2))
    yield from (A + B, A - B, A * B, A + 1, -A, A // 3, A % 4, A // const(-3), A % B)
    yield from (apply(Op.MINIMUM, A, B), apply(Op.MAXIMUM, A, B), A & B, A | B, A << 2, A >> 1)
    yield select(A < B, A, B)
    yield select(equals(A, 0), B, A * 2)
    yield select(A >= 1, A - 1, const(7))
    yield select(FLAG, A, const(0))
    yield Cast(value=SMALL, type=INT32) + A
    yield Cast(value=Cast(value=A * 40, type=Int(8)), type=INT32)
    yield Cast(value=Cast(value=A * 40, type=UInt(16)), type=INT32)
    yield (A * 1_000_000_000) + B
    yield Cast(value=A < B, type=INT32)


def conditions() -> Iterator[Expr]:
    """Conditions over ``a``, ``b`` and ``flag``."""
    for left, right in ((A, B), (A, const(1)), (A + 2, B), (A - 1, const(2)), (A, A)):
        yield from (left < right, left <= right, left > right, left >= right)
        yield from (equals(left, right), unequal(left, right))
    yield FLAG
    yield from ((A >= -1) & (A <= 0), (A < 1) | (B > 2), ~(A < B), ~((A < 1) & (B > 2)))
    yield (A < B) & FLAG & unequal(B, 3)
    yield from (equals(A % 2, 0), A * A > 4)


KNOWN = [
    ({"a": Range(0, 3), "b": Range(0, 5)}, (range(4), range(6))),
    ({"a": Range(-3, 2), "b": Range(2, 2)}, (range(-3, 3), range(2, 3))),
    ({"a": Range(1, 1), "b": Range(-2, 4)}, (range(1, 2), range(-2, 5))),
]


def points(axes: tuple[range, range]) -> Iterator[dict[str, Any]]:
    for a, b, flag, small in product(*axes, (False, True), (-128, 0, 127)):
        yield {
            "a": np.int32(a),
            "b": np.int32(b),
            "flag": np.bool_(flag),
            "small": np.int8(small),
        }


@pytest.mark.parametrize("number", range(len(KNOWN)))
def test_the_values_of_expressions_are_in_their_ranges(number: int) -> None:
    known, axes = KNOWN[number]
    for expr in numbers():
        found = range_of(expr, known)
        with np.errstate(all="ignore"):
            values = [int(np.asarray(evaluate(expr, point)).item()) for point in points(axes)]
        assert found.low <= min(values), (expr, found, min(values))
        assert max(values) <= found.high, (expr, found, max(values))


@pytest.mark.parametrize("number", range(len(KNOWN)))
def test_conditions_leave_what_they_hold_for(number: int) -> None:
    known, axes = KNOWN[number]
    for condition in conditions():
        for truth in (True, False):
            inside = assume(condition, known, truth)
            holding = [p for p in points(axes) if bool(evaluate(condition, p)) == truth]
            assert holding == [] or inside is not None, condition
            for point in holding:
                assert inside is not None
                for name, range in inside.items():
                    assert int(point[name]) in range, (condition, truth, name)


def test_how_much_conditions_say() -> None:
    known = {"a": Range(0, 9), "b": Range(0, 5)}
    assert assume(A < B, known) == {"a": Range(0, 4), "b": Range(1, 5)}
    assert assume(A < B, known, truth=False) == {"a": Range(0, 9), "b": Range(0, 5)}
    assert assume(A + 1 <= 3, known) == {"a": Range(0, 2), "b": Range(0, 5)}
    assert assume(equals(A, B), known) == {"a": Range(0, 5), "b": Range(0, 5)}
    assert assume(unequal(A, 9), known) == {"a": Range(0, 8), "b": Range(0, 5)}
    assert assume(A > 9, known) is None
    assert assume((A > 3) & (A < 3), known) is None
    assert assume((A > 9) | (B < 2), known) == {"a": Range(0, 9), "b": Range(0, 1)}
    real = Local(name="a", type=Float(32))
    assert assume(real < const(0.0, Float(32)), known) == known


# --------------------------------------------------------------------------------------- machines


def product_with_vector(rows: int = 6, columns: int = 8) -> Stage:
    """y = A x of a sparse matrix, with one empty row."""
    y = t2s.sparse.parse("y(i) = A(i,j)*x(j)", {"A": "ds"})
    matrix = np.zeros((rows, columns), np.int32)
    matrix[0, columns - 1] = 5
    matrix[2:, 0] = -1
    inputs = {"A": matrix, "x": np.ones(columns, np.int32)}
    return design_of(y).only_stage(inputs, "test")


def bits(ranges: Ranges) -> dict[str, tuple[int, int]]:
    """The bits of the values and tags of the channels of a product with a vector."""
    return {
        place.channel: (range.bits.width, ranges[Tag(place.channel)].bits.width)
        for place, range in ranges.items()
        if isinstance(place, Value)
    }


def test_a_product_with_a_vector() -> None:
    stage = product_with_vector()
    sizes = Sizes(
        lengths={"A_pos1": 7, "A_crd1": 20, "A_vals": 20, "x_vals": 8, "y_vals": 6},
        elements={"A_pos1": Range(0, 20), "A_crd1": Range(0, 7)},
    )
    found = ranges_of(stage.graph, sizes)
    assert bits(found) == {
        "root_ref_to_scan_A_i_ref": (1, 2),
        "root_ref_to_repeat_root_i_ref": (1, 2),
        "scan_A_i_crd_to_repeat_root_i_crd": (3, 2),
        "scan_A_i_out_ref_to_scan_A_j_ref": (3, 2),
        "repeat_root_i_out_to_repeat_root_j_ref": (1, 2),
        "scan_A_j_crd_to_repeat_root_j_crd": (3, 3),
        "scan_A_j_crd_to_locate_root_j_crd": (3, 3),
        "scan_A_j_out_ref_to_load_A_ref": (5, 3),
        "repeat_root_j_out_to_locate_root_j_fiber": (1, 3),
        "locate_root_j_ref_to_load_x_ref": (3, 3),
        "load_A_val_to_multiply_in0": (32, 3),
        "load_x_val_to_multiply_in1": (32, 3),
        "multiply_val_to_reduce_j_val": (32, 3),
        "reduce_j_out_to_write_y_val": (32, 2),
    }
    # exactly, where growing in steps goes beyond it
    assert found[Kept("scan_A_i", "at")] == Range(0, 6)
    assert found[Kept("scan_A_j", "at")] == Range(0, 20)
    assert found[Kept("write_y", "at")] == Range(0, 6)
    assert found[Kept("reduce_j", "total")] == range_of_type(INT32)
    assert found[LoadAt("scan_A_j", 1)] == Range(1, 6)
    assert found[LoadAt("load_A", 0)] == Range(0, 19)
    # also the first one that is outside: the run ends there
    assert found[StoreAt("write_y", 0)] == Range(0, 6)


def test_without_sizes_only_tags_and_constants_are_known() -> None:
    found = ranges_of(product_with_vector().graph, Sizes())
    assert bits(found)["scan_A_j_out_ref_to_load_A_ref"] == (32, 3)
    assert bits(found)["scan_A_i_out_ref_to_scan_A_j_ref"] == (3, 2)
    assert found[Kept("write_y", "at")] == range_of_type(INT32)


def test_sizes_of_inputs() -> None:
    stage = product_with_vector()
    arrays = {**stage.arrays, "y_vals": np.zeros(6, np.int32)}
    assert structure_of(stage.graph) == ("A_pos1", "A_crd1")
    sizes = sizes_of(stage.graph, arrays)
    assert sizes.lengths == {"A_pos1": 7, "A_crd1": 5, "A_vals": 5, "x_vals": 8, "y_vals": 6}
    assert sizes.elements == {"A_pos1": Range(0, 7), "A_crd1": Range(0, 7)}
    assert list(not_within(stage.graph, sizes, arrays)) == []
    assert list(not_within(stage.graph, sizes, {"A_crd1": np.array([1, 8])})) == [
        "A_crd1 has elements from 1 to 8, and the chip has room for 0 to 7"
    ]
    assert list(not_within(stage.graph, sizes, {"A_vals": np.arange(6)})) == [
        "A_vals has 6 elements, and the chip has room for 5"
    ]
    assert list(not_within(stage.graph, sizes, {"A_vals": np.array([2**31 - 1])})) == []


def test_a_matrix_without_entries() -> None:
    y = t2s.sparse.parse("y(i) = A(i,j)*x(j)", {"A": "ds"})
    inputs = {"A": np.zeros((3, 4), np.int32), "x": np.ones(4, np.int32)}
    stage = design_of(y).only_stage(inputs, "test")
    found = ranges_of(stage.graph, sizes_of(stage.graph, stage.arrays))
    assert found[Elements("A_pos1")] == Range(0, 1)
    # no coordinate is ever loaded, so there is no reference but the zeros beside tags
    assert found[Value("scan_A_j_out_ref_to_load_A_ref")] == Range(0, 0)


def test_ranges_of_random_machines_do_not_change() -> None:
    """They are a fixed point: no firing leaves anything outside of them."""
    from t2s.backends.verilog.machine_ranges import _Rounds

    for seed in range(12):
        graph, inputs = random_machines(seed)
        sizes = sizes_of(graph, inputs)
        found = ranges_of(graph, sizes)
        after = _Rounds(graph, sizes).next(found)
        assert after.keys() == found.keys()
        assert all(range <= found[place] for place, range in after.items())


def test_static_nodes_say_nothing() -> None:
    graph: Graph = t2s.lower(_scaled())
    assert all(isinstance(place, Elements | Value) for place in ranges_of(graph, Sizes()))
    assert structure_of(graph) == ()


def _scaled() -> t2s.Func:
    x, y, i = t2s.ImageParam(t2s.Int(16), 1, name="x"), t2s.Func("y"), t2s.Var("i")
    y[i] = x[i] * 3
    return y.bound(i, 0, 8)
