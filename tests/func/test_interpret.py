"""The interpreter against numpy, one feature of the language after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import t2s
from t2s import BFloat, Float, Func, ImageParam, Int, Param, RDom, UInt, Var

i, j = Var("i"), Var("j")


def integers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(np.int32)


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def test_matrix_product() -> None:
    A, B, C = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B"), Func("C")
    k = RDom(0, 5, name="k")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[k, j]
    a, b = integers(3, 5), integers(5, 4, seed=1)
    result = t2s.interpret(C.bound(i, 0, 3).bound(j, 0, 4), {"A": a, "B": b})
    assert np.array_equal(result, a @ b)


def test_operators_on_integers() -> None:
    A, f = ImageParam(Int(32), 1, name="A"), Func("f")
    x = A[i]
    f[i] = (x // 3) * 100 + (x % 3) - (-x) + t2s.abs(x) + t2s.min(x, 2) * t2s.max(x, i) + (x ^ 5)
    a = integers(8)
    n = np.arange(8, dtype=np.int32)
    expected = (a // 3) * 100 + a % 3 + a + abs(a) + np.minimum(a, 2) * np.maximum(a, n) + (a ^ 5)
    assert np.array_equal(t2s.interpret(f.bound(i, 0, 8), {"A": a}), expected)


def test_reflected_operators() -> None:
    A, f = ImageParam(Int(32), 1, name="A"), Func("f")
    x = A[i]
    f[i] = (7 - x) * 2 + 100 // x + 100 % x + (3 & x) + (8 | x) + (1 ^ x)
    a = np.array([1, 2, 5, 9], np.int32)
    expected = (7 - a) * 2 + 100 // a + 100 % a + (3 & a) + (8 | a) + (1 ^ a)
    assert np.array_equal(t2s.interpret(f.bound(i, 0, 4), {"A": a}), expected)


def test_functions_of_floats() -> None:
    A, f = ImageParam(Float(32), 1, name="A"), Func("f")
    f[i] = t2s.sqrt(t2s.abs(A[i])) + t2s.exp(A[i]) / (1.0 + abs(A[i])) - (2.0 / t2s.exp(-A[i]))
    a = normal(16)
    size = np.abs(a)
    expected = np.sqrt(size) + np.exp(a) / (1 + size) - 2 / np.exp(-a)
    result = t2s.interpret(f.bound(i, 0, 16), {"A": a})
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_integer_arithmetic_wraps_around() -> None:
    A, f = ImageParam(UInt(8), 1, name="A"), Func("f")
    f[i] = A[i] * 3 - 200
    a = np.array([0, 100, 255], np.uint8)
    assert np.array_equal(
        t2s.interpret(f.bound(i, 0, 3), {"A": a}), a * np.uint8(3) - np.uint8(200)
    )


def test_casts_truncate_and_saturate() -> None:
    A, f = ImageParam(Float(32), 1, name="A"), Func("f")
    f[i] = t2s.cast(Int(8), A[i])
    a = np.array([2.7, -2.7, 1000.0, -1000.0, np.nan, np.inf], np.float32)
    assert t2s.interpret(f.bound(i, 0, 6), {"A": a}).tolist() == [2, -2, 127, -128, 0, 127]


def test_bfloat16_rounds_like_ml_dtypes() -> None:
    A, f, k = ImageParam(BFloat(), 1, name="A"), Func("f"), RDom(0, 9, name="k")
    f[i] = 0
    f[i] += A[k] * A[k + i]
    a = normal(11).astype(BFloat().numpy)
    expected = np.zeros(3, a.dtype)
    for step in range(9):
        expected = expected + a[step] * a[step : step + 3]
    assert np.array_equal(t2s.interpret(f.bound(i, 0, 3), {"A": a}), expected)


def test_comparisons_and_logic() -> None:
    A, f = ImageParam(Int(32), 1, name="A"), Func("f")
    x = A[i]
    inside = (x > -4) & (x <= 3) | (x == 7)
    f[i] = t2s.select(~inside ^ (x != 0), x, 100) + t2s.select(x < 2, 1, 0)
    a = np.arange(-8, 9, dtype=np.int32)
    mask = ~(((a > -4) & (a <= 3)) | (a == 7)) ^ (a != 0)
    expected = np.where(mask, a, 100) + np.where(a < 2, 1, 0)
    assert np.array_equal(t2s.interpret(f.bound(i, 0, 17), {"A": a}), expected)


def test_only_the_chosen_side_of_select_is_read() -> None:
    A, f = ImageParam(Int(32), 1, name="A", shape=(4,)), Func("f")
    f[i] = t2s.select((i > 0) & (i < 5), A[i - 1], -1)
    a = integers(4)
    result = t2s.interpret(f.bound(i, 0, 7), {"A": a})
    assert result.tolist() == [-1, *a.tolist(), -1, -1]


def test_nested_selects() -> None:
    A, f = ImageParam(Int(32), 1, name="A", shape=(3,)), Func("f")
    f[i] = t2s.select(i > 2, 0, t2s.select(i == 0, 9, A[i]))
    assert t2s.interpret(f.bound(i, 0, 5), {"A": np.array([4, 5, 6], np.int32)}).tolist() == [
        9,
        5,
        6,
        0,
        0,
    ]


def test_parameters() -> None:
    A, f = ImageParam(Float(32), 1, name="A"), Func("f")
    scale, shift = Param(Float(32), name="scale"), Param(Int(32), name="shift")
    f[i] = A[i] * scale + t2s.cast(Float(32), shift)
    a = normal(4)
    result = t2s.interpret(f.bound(i, 0, 4), {"A": a, "scale": 0.5, "shift": 3})
    assert np.array_equal(result, a * np.float32(0.5) + np.float32(3))


def test_an_integer_parameter_of_the_value_is_no_constant() -> None:
    """The shape of A must not depend on the value of ``limit``."""
    A, B, f = ImageParam(Int(32), 1, name="A"), ImageParam(Int(32), 1, name="B"), Func("f")
    limit = Param(Int(32), name="limit")
    f[i] = t2s.select(i > limit, B[i], A[i]) * limit
    f.bound(i, 0, 6)
    a, b = integers(6), integers(6, seed=1)
    for value in (-1, 0, 2, 9):
        result = t2s.interpret(f, {"A": a, "B": b, "limit": value})
        assert np.array_equal(result, np.where(np.arange(6) > value, b, a) * value)


def test_parameters_in_bounds() -> None:
    A, f, n = ImageParam(Int(32), 2, name="A"), Func("f"), Param(Int(32), name="N")
    k = RDom(0, 2 * n, name="k")
    f[i] = 0
    f[i] += A[i, k] * n
    f.bound(i, 0, n + 1)
    a = integers(4, 6)
    expected = a.sum(1) * 3
    assert np.array_equal(t2s.interpret(f, {"A": a, "N": 3}), expected)
    graph = t2s.lower(f, {"N": 3})
    assert graph.tensor("A").shape == (4, 6)
    assert graph.parameters == ()
    assert np.array_equal(t2s.simulate(graph, {"A": a}).outputs["f"], expected)
    assert np.array_equal(t2s.simulate(f, {"A": a, "N": np.int64(3)}).outputs["f"], expected)


def test_parameters_in_subscripts() -> None:
    A, f, n = ImageParam(Int(32), 1, name="A"), Func("f"), Param(Int(32), name="N")
    f[i] = A[i + n]
    a = integers(5)
    assert np.array_equal(t2s.interpret(f.bound(i, 0, 3), {"A": a, "N": 2}), a[2:])


def test_one_reduction_over_several_dimensions() -> None:
    A, f = ImageParam(Int(32), 3, name="A"), Func("f")
    y, x = RDom(0, 3, 1, 4, name="y x")
    f[i] = 10
    f[i] += A[i, y, x] * x
    a = integers(2, 3, 5)
    expected = 10 + (a[:, :, 1:] * np.arange(1, 5)).sum((1, 2))
    assert np.array_equal(t2s.interpret(f.bound(i, 0, 2), {"A": a}), expected)


def test_one_name_for_all_dimensions() -> None:
    first, second = RDom(0, 2, 0, 3, name="r")
    assert (first.name, second.name) == ("r0", "r1")


def test_a_dimension_that_the_value_does_not_use() -> None:
    f, (y, _) = Func("f"), RDom(0, 3, 0, 5, name="y x")
    f[i] = 0
    f[i] += y
    assert t2s.interpret(f.bound(i, 0, 1), {}).tolist() == [15]


def test_bounds_that_depend_on_the_result() -> None:
    A, f, k = ImageParam(Int(32), 1, name="A"), Func("f"), RDom(0, i + 1, name="k")
    f[i, j] = 0
    f[i, j] += A[k] + j
    a = integers(5)
    sums = np.cumsum(a)[:, None] + np.arange(1, 6)[:, None] * np.arange(3)
    assert np.array_equal(t2s.interpret(f.bound(i, 0, 5).bound(j, 0, 3), {"A": a}), sums)


def test_bounds_that_depend_on_outer_dimensions() -> None:
    f = Func("f")
    y, x = RDom(1, 4, i, 3, name="y x")
    f[i] = 0
    f[i] += y * x
    expected = [sum(a * b for a in range(1, 5) for b in range(n, n + 3)) for n in range(4)]
    assert t2s.interpret(f.bound(i, 0, 4), {}).tolist() == expected


def test_reductions_that_are_empty_for_some_elements() -> None:
    A, f, k = ImageParam(Int(32), 1, name="A"), Func("f"), RDom(0, i, name="k")
    f[i] = 7
    f[i] += A[k]
    a = integers(4)
    assert t2s.interpret(f.bound(i, 0, 4), {"A": a[:3]}).tolist() == [
        7 + int(a[:n].sum()) for n in range(4)
    ]


def test_sums_are_rounded_in_the_written_order() -> None:
    A, f, k = ImageParam(Float(32), 2, name="A"), Func("f"), RDom(0, 100, name="k")
    f[i] = 0
    f[i] += A[i, k]
    a = normal(3, 100)
    expected = np.zeros(3, np.float32)
    for step in range(100):
        expected += a[:, step]
    assert np.array_equal(t2s.interpret(f.bound(i, 0, 3), {"A": a}), expected)


def test_funcs_that_use_each_other_have_inferred_bounds() -> None:
    A = ImageParam(Int(32), 1, name="A")
    blurred, edges, out = t2s.funcs("blurred edges out")
    blurred[i] = A[i] + A[i + 1] + A[i + 2]
    edges[j] = blurred[j + 1] - blurred[j]
    out[i] = edges[2 * i] * edges[2 * i + 1]
    a = integers(10)
    blur = a[:-2] + a[1:-1] + a[2:]
    edge = blur[1:] - blur[:-1]
    assert np.array_equal(t2s.interpret(out.bound(i, 0, 3), {"A": a[:9]}), edge[:6:2] * edge[1:6:2])


def test_inferred_bounds_that_start_below_zero() -> None:
    A, f, g = ImageParam(Int(32), 1, name="A"), Func("f"), Func("g")
    f[j] = A[j + 2] * 10
    g[i] = f[i - 2] + f[i]
    a = integers(6)
    assert np.array_equal(t2s.interpret(g.bound(i, 0, 4), {"A": a}), 10 * (a[:4] + a[2:]))


def test_bounds_that_do_not_start_at_zero() -> None:
    A, f, k = ImageParam(Int(32), 1, name="A"), Func("f"), RDom(-2, 3, name="k")
    f[i] = 0
    f[i] += A[i + k] * k
    a = integers(8)
    expected = [sum(int(a[n + s]) * s for s in (-2, -1, 0)) for n in range(3, 8)]
    assert t2s.interpret(f.bound(i, 3, 5), {"A": a}).tolist() == expected


def test_update_variables_have_names_of_their_own() -> None:
    """Bounds belong to positions: y is the second argument here, and x the first."""
    x, y, f = Var("x"), Var("y"), Func("f")
    f[i, j] = i * 100
    f[x, y] += y
    result = t2s.interpret(f.bound(i, 0, 2).bound(j, 5, 3), {})
    assert result.tolist() == [[5, 6, 7], [105, 106, 107]]


def test_an_update_of_a_row() -> None:
    A, f = ImageParam(Int(32), 1, name="A"), Func("f")
    f[i, j] = 1
    f[i, 2] += A[i]
    a = integers(3)
    expected = np.ones((3, 4), np.int32)
    expected[:, 2] += a
    assert np.array_equal(t2s.interpret(f.bound(i, 0, 3).bound(j, 0, 4), {"A": a}), expected)


def test_histogram() -> None:
    A, f, k = ImageParam(UInt(8), 1, name="A"), Func("f"), RDom(0, 50, name="k")
    f[i] = 0
    f[t2s.cast(Int(32), A[k])] += 1
    a = np.random.default_rng(1).integers(0, 8, 50).astype(np.uint8)
    result = t2s.interpret(f.bound(i, 0, 8), {"A": a})
    assert np.array_equal(result, np.bincount(a, minlength=8))


def test_recurrence_point_by_point() -> None:
    f, k = Func("f"), RDom(2, 10, name="k")
    f[i] = 1
    f[k] = f[k - 1] + f[k - 2]
    result = t2s.interpret(f.bound(i, 0, 12), {})
    assert result.tolist() == [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144]


def test_longest_common_subsequence() -> None:
    """A recurrence over two dimensions with a condition on data."""
    A, B, L = ImageParam(Int(8), 1, name="A"), ImageParam(Int(8), 1, name="B"), Func("L")
    y, x = RDom(1, 6, 1, 7, name="y x")
    L[i, j] = 0
    L[y, x] = t2s.select(
        A[y - 1] == B[x - 1], L[y - 1, x - 1] + 1, t2s.max(L[y - 1, x], L[y, x - 1])
    )
    a, b = np.frombuffer(b"XMJYAU", np.int8), np.frombuffer(b"MZJAWXU", np.int8)
    result = t2s.interpret(L.bound(i, 0, 7).bound(j, 0, 8), {"A": a, "B": b})
    assert result[6, 7] == len("MJAU")


def test_an_update_sees_what_the_update_before_it_wrote() -> None:
    f, k = Func("f"), RDom(0, 4, name="k")
    f[i] = i
    f[k] = f[3 - k] * 10
    f[i] += 1
    assert t2s.interpret(f.bound(i, 0, 4), {}).tolist() == [31, 21, 201, 301]


def test_a_func_without_dimensions() -> None:
    A, total, k = ImageParam(Int(32), 1, name="A"), Func("total"), RDom(0, 6, name="k")
    total[()] = 0
    total[()] += A[k]
    a = integers(6)
    assert t2s.interpret(total, {"A": a}) == a.sum()


def test_reads_at_places_that_depend_on_data() -> None:
    table, place = ImageParam(Int(32), 1, name="T", shape=(5,)), ImageParam(Int(32), 1, name="P")
    f = Func("f")
    f[i] = table[place[i]] + place[i]
    t, p = integers(5), np.array([4, 0, 2], np.int32)
    assert np.array_equal(t2s.interpret(f.bound(i, 0, 3), {"T": t, "P": p}), t[p] + p)


@pytest.mark.parametrize("order", ["C", "F"])
def test_inputs_may_have_any_memory_layout(order: Any) -> None:
    A, f = ImageParam(Int(32), 2, name="A"), Func("f")
    f[i, j] = A[i, j] * 2
    a = np.asarray(integers(3, 4), order=order)
    assert np.array_equal(t2s.interpret(f.bound(i, 0, 3).bound(j, 0, 4), {"A": a}), 2 * a)
