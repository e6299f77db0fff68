"""Expressions: folding, substitution and numpy evaluation, lanes included."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from t2s.core.expr import (
    TRUE,
    Broadcast,
    Cast,
    Expr,
    Index,
    Insert,
    LaneNumbers,
    Local,
    Parameter,
    Read,
    ReduceLanes,
    Select,
    apply,
    conjunction,
    conjuncts,
    const,
    digits,
    equals,
    evaluate,
    index_names,
    is_associative,
    reads,
    reduce_lanes,
    select,
    simplify,
    spread,
    substitute,
    unequal,
    zero,
)
from t2s.core.location import SourceLocation
from t2s.core.ops import Op, apply_operator
from t2s.core.types import BOOL, INT32, Float, Int, Type

i, j = Index(name="i"), Index(name="j")
F32 = Float(32)


@pytest.fixture(autouse=True)
def _values_not_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def add(left: Expr, right: Expr) -> Expr:
    return apply(Op.ADD, left, right)


def times(left: Expr, right: Expr) -> Expr:
    return apply(Op.MULTIPLY, left, right)


@pytest.mark.parametrize(
    ("expr", "simple"),
    [
        (add(const(2), const(3)), const(5)),
        (add(const(2**31 - 1), const(1)), const(-(2**31))),
        (apply(Op.FLOOR_DIVIDE, const(-7), const(2)), const(-4)),
        (apply(Op.FLOOR_DIVIDE, const(7), const(0)), const(0)),
        (apply(Op.LESS, const(1), const(2)), TRUE),
        (apply(Op.LESS, const(1.5, F32), const(2.5, F32)), TRUE),
        (add(i, const(0)), i),
        (add(const(0), i), i),
        (apply(Op.SUBTRACT, i, const(0)), i),
        (times(i, const(1)), i),
        (times(const(1), i), i),
        (times(i, const(0)), const(0)),
        (times(const(0), i), const(0)),
        (apply(Op.FLOOR_DIVIDE, i, const(1)), i),
        (apply(Op.MODULO, i, const(1)), const(0)),
        (apply(Op.AND, TRUE, equals(i, j)), equals(i, j)),
        (apply(Op.AND, equals(i, j), TRUE), equals(i, j)),
        (Select(condition=TRUE, if_true=i, if_false=j, type=INT32), i),
        (
            Select(condition=equals(const(1), const(2)), if_true=i, if_false=j, type=INT32),
            j,
        ),
        (add(times(i, const(1)), times(j, const(0))), i),
    ],
)
def test_simplify(expr: Expr, simple: Expr) -> None:
    assert simplify(expr) == simple


@pytest.mark.parametrize(
    "expr",
    [
        add(i, j),
        apply(Op.SUBTRACT, const(0), i),
        add(const(1.0, F32), const(2.0, F32)),  # floats are left to the engines
        times(Local(name="x", type=F32), const(0.0, F32)),  # NaN and -0.0
        add(Local(name="x", type=F32), const(0.0, F32)),
    ],
)
def test_simplify_leaves_alone(expr: Expr) -> None:
    assert simplify(expr) is expr


def test_substitute_replaces_all_names_at_once_and_folds() -> None:
    swapped = substitute(add(times(i, const(4)), j), {"i": j, "j": i})
    assert swapped == add(times(j, const(4)), i)
    assert substitute(add(times(i, const(4)), j), {"i": const(2), "j": const(1)}) == const(9)
    assert substitute(j, {"i": const(0)}) is j


def test_substitute_touches_indices_only() -> None:
    parameter = Parameter(name="i", type=INT32)
    assert substitute(add(i, parameter), {"i": const(1)}) == add(const(1), parameter)


def test_conjunction_drops_what_always_holds() -> None:
    condition = equals(i, j)
    assert conjunction() is None
    assert conjunction(None, TRUE) is None
    assert conjunction(None, condition, TRUE) is condition
    assert conjunction(condition, condition) == apply(Op.AND, condition, condition)


def test_index_names_and_reads() -> None:
    inner = Read(source="B", indices=(j,), type=INT32)
    outer = Read(source="A", indices=(add(i, inner),), type=F32)
    assert index_names(outer) == {"i", "j"}
    assert reads(outer) == (outer, inner)


def test_reads_compare_without_their_location() -> None:
    plain = Read(source="A", indices=(i,), type=F32)
    placed = Read(source="A", indices=(i,), type=F32, location=SourceLocation("user.py", 3))
    assert plain == placed
    assert hash(plain) == hash(placed)


def test_evaluate_a_whole_loop_nest_at_once() -> None:
    environment = {
        "i": np.arange(3, dtype=np.int32)[:, None],
        "j": np.arange(4, dtype=np.int32)[None, :],
    }
    values = evaluate(add(times(i, const(10)), j), environment)
    assert values.dtype == np.int32
    np.testing.assert_array_equal(values, np.add.outer(10 * np.arange(3), np.arange(4)))


def test_evaluate_keeps_the_declared_type() -> None:
    byte = Int(8)
    expr = add(Local(name="x", type=byte), const(100, byte))
    assert evaluate(expr, {"x": np.int8(100)}).item() == -56
    cast = Cast(value=Local(name="y", type=F32), type=byte)
    assert evaluate(cast, {"y": np.float32(1e9)}).item() == 127


def test_evaluate_vectors_lane_by_lane_over_a_loop_nest() -> None:
    vector = F32.with_lanes(4)
    x, s = Local(name="x", type=vector), Local(name="s", type=F32)
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    scalars = np.array([1, 10, 100], np.float32)
    expr = times(x, Broadcast(value=s, type=vector))
    product = evaluate(expr, {"x": values, "s": scalars})
    np.testing.assert_array_equal(product, values * scalars[:, None])
    total = ReduceLanes(operator=Op.ADD, value=expr, type=F32)
    np.testing.assert_array_equal(
        evaluate(total, {"x": values, "s": scalars}), (values * scalars[:, None]).sum(1)
    )


def test_insert_changes_one_lane_or_none() -> None:
    vector = F32.with_lanes(3)
    expr = Insert(
        vector=Local(name="x", type=vector),
        lane=Index(name="i"),
        value=Local(name="s", type=F32),
        type=vector,
    )
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    lanes, scalars = np.arange(-1, 4, dtype=np.int32), np.full(5, 9, np.float32)
    expected = x.copy()
    expected[[1, 2, 3], [0, 1, 2]] = 9  # rows 0 and 4 have no such lane
    given = evaluate(expr, {"x": x, "i": lanes, "s": scalars})
    np.testing.assert_array_equal(given, expected)
    assert given.dtype == np.float32
    one = evaluate(expr, {"x": x[0], "i": lanes[2], "s": scalars[0]})
    np.testing.assert_array_equal(one, [0, 9, 2])


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_broadcast_adds_the_lanes_as_the_last_axis(shape: tuple[int, ...]) -> None:
    scalar = np.full(shape, 7, np.int32)
    expr = Broadcast(value=Local(name="s", type=INT32), type=INT32.with_lanes(4))
    assert evaluate(expr, {"s": scalar}).shape == (*shape, 4)
    assert (evaluate(expr, {"s": scalar}) == 7).all()


def test_lane_numbers() -> None:
    lanes = evaluate(LaneNumbers(type=Int(16).with_lanes(5)), {})
    assert lanes.tolist() == [0, 1, 2, 3, 4]
    assert lanes.dtype == np.int16


def _select(condition_type: Type, vector: Type) -> Select:
    return Select(
        condition=Local(name="c", type=condition_type),
        if_true=Local(name="a", type=vector),
        if_false=Local(name="b", type=vector),
        type=vector,
    )


def test_select_with_a_scalar_condition_chooses_whole_vectors() -> None:
    vector = INT32.with_lanes(2)
    environment = {
        "c": np.array([True, False, True]),
        "a": np.array([[1, 2], [3, 4], [5, 6]], np.int32),
        "b": -np.array([[1, 2], [3, 4], [5, 6]], np.int32),
    }
    chosen = evaluate(_select(BOOL, vector), environment)
    np.testing.assert_array_equal(chosen, [[1, 2], [-3, -4], [5, 6]])
    single = {"c": np.bool_(False), "a": environment["a"][0], "b": environment["b"][0]}
    np.testing.assert_array_equal(evaluate(_select(BOOL, vector), single), [-1, -2])


def test_select_with_a_vector_condition_chooses_lanes() -> None:
    vector = INT32.with_lanes(2)
    environment = {
        "c": np.array([True, False]),
        "a": np.array([1, 2], np.int32),
        "b": np.array([-1, -2], np.int32),
    }
    chosen = evaluate(_select(BOOL.with_lanes(2), vector), environment)
    np.testing.assert_array_equal(chosen, [1, -2])


def _tree(values: list[np.float32]) -> np.float32:
    """The documented order, one value at a time."""
    while len(values) > 1:
        pairs = [np.float32(a + b) for a, b in zip(values[0::2], values[1::2], strict=False)]
        values = pairs + values[len(pairs) * 2 :]
    return values[0]


@pytest.mark.parametrize("lanes", range(1, 18))
def test_reduce_lanes_is_the_documented_tree(lanes: int) -> None:
    generator = np.random.default_rng(lanes)
    vector = (generator.standard_normal(lanes) * 10.0 ** generator.integers(-6, 6, lanes)).astype(
        np.float32
    )
    assert reduce_lanes(Op.ADD, F32, vector) == _tree(list(vector))
    stacked = np.stack([vector, vector[::-1]])
    np.testing.assert_array_equal(
        reduce_lanes(Op.ADD, F32, stacked), [_tree(list(row)) for row in stacked]
    )


def test_reduce_lanes_by_hand() -> None:
    # 5 lanes: (a+b), (c+d), e  ->  ((a+b)+(c+d)), e  ->  ((a+b)+(c+d))+e
    a, b, c, d, e = vector = np.array([1e8, 1.0, -1e8, 1.0, 0.5], np.float32)
    assert reduce_lanes(Op.ADD, F32, vector) == ((a + b) + (c + d)) + e
    maximum = reduce_lanes(Op.MAXIMUM, INT32, np.array([3, 9, 4], np.int32))
    assert maximum == apply_operator(Op.MAXIMUM, INT32, (np.int32(9), np.int32(4)))


def test_reads_have_no_value() -> None:
    with pytest.raises(TypeError, match="Read has no value here"):
        evaluate(Read(source="A", indices=(i,), type=F32), {"i": np.int32(0)})


def test_is_associative() -> None:
    assert is_associative(Op.ADD)
    assert not is_associative(Op.SUBTRACT)


def test_conjuncts_are_the_factors_of_a_conjunction() -> None:
    a, b, c = (equals(Index(name=name), const(0)) for name in "abc")
    assert conjuncts(None) == ()
    assert conjuncts(a) == (a,)
    assert conjuncts(conjunction(a, None, b, c)) == (a, b, c)


def test_digits_count_in_row_major_order_and_wrap() -> None:
    places = digits(Index(name="n"), (2, 3, 4))
    for n in range(-24, 48):
        found = tuple(int(evaluate(place, {"n": np.int32(n)})) for place in places)
        assert found == tuple(int(at) for at in np.unravel_index(n % 24, (2, 3, 4)))


def test_zeros_of_both_signs_are_two_constants() -> None:
    """They compare equal in Python, but a design that merges them computes something else."""
    plus, minus, nan = (const(value, Float(64)) for value in (0.0, -0.0, np.nan))
    assert plus != minus
    assert nan == const(float("nan"), nan.type)
    assert const(1, plus.type) == const(1.0, plus.type)
    assert const(0) != plus
    assert len({plus, minus, nan, const(float("nan"), nan.type)}) == 3


def test_operators_of_python_write_expressions() -> None:
    x, flag = Local(name="x", type=F32), equals(i, j)
    operands = (i, j)
    written = {
        Op.ADD: i + j,
        Op.SUBTRACT: i - j,
        Op.MULTIPLY: i * j,
        Op.FLOOR_DIVIDE: i // j,
        Op.MODULO: i % j,
        Op.SHIFT_LEFT: i << j,
        Op.SHIFT_RIGHT: i >> j,
        Op.AND: i & j,
        Op.OR: i | j,
        Op.LESS: i < j,
        Op.LESS_EQUAL: i <= j,
        Op.GREATER: i > j,
        Op.GREATER_EQUAL: i >= j,
        Op.EQUAL: equals(i, j),
        Op.NOT_EQUAL: unequal(i, j),
    }
    for operator, expr in written.items():
        assert expr == apply(operator, *operands), operator
    assert -x == apply(Op.NEGATE, x)
    assert ~flag == apply(Op.NOT, flag)
    # the type of a comparison is bool, and the operands of numbers keep their order
    assert (i < 3).type == BOOL
    assert 1 - i == apply(Op.SUBTRACT, const(1), i)
    assert 2 * i + 1 == apply(Op.ADD, apply(Op.MULTIPLY, const(2), i), const(1))


def test_numbers_take_the_type_of_the_other_operand() -> None:
    wide, x = Local(name="w", type=Int(64)), Local(name="x", type=F32)
    lanes = Local(name="v", type=INT32.with_lanes(4))
    flag = equals(i, j)
    assert wide + 1 == apply(Op.ADD, wide, const(1, Int(64)))
    assert x * 2 == apply(Op.MULTIPLY, x, const(2.0, F32))
    assert i + np.int64(3) == apply(Op.ADD, i, const(3))
    assert flag & True == apply(Op.AND, flag, TRUE)
    ones = Broadcast(value=const(1), type=lanes.type)
    assert 1 + lanes == apply(Op.ADD, ones, lanes)
    for wrong in (lambda: i + 0.5, lambda: i + True, lambda: flag & 1, lambda: 0.5 - i):
        with pytest.raises(TypeError, match=r"is not a value of type (int32|bool)"):
            wrong()


def test_select_and_zero_write_expressions_of_one_type() -> None:
    condition, scalar = Local(name="c", type=BOOL), Local(name="x", type=Float(32))
    vector = Local(name="v", type=Int(16).with_lanes(4))
    assert select(condition, scalar, 1).if_false == const(1.0, Float(32))
    assert select(condition, -1, vector).if_true == spread(const(-1, Int(16)), 4)
    assert select(condition, 1, 0).type == INT32
    assert spread(vector, 4) is vector
    assert zero(BOOL) == const(False, BOOL)
    assert zero(vector.type) == spread(const(0, Int(16)), 4)
    with pytest.raises(TypeError, match=r"0\.5 is not a value of type int16x4"):
        select(condition, vector, 0.5)


def test_equality_is_structural_and_comparisons_have_no_truth_value() -> None:
    assert i != j
    assert i == Index(name="i")
    assert i + j
    for misread in (
        lambda: bool(i < j),
        lambda: i < j < i,
        lambda: sorted([i, j]),
        lambda: max(i, j),
        lambda: bool(equals(i, j)),
    ):
        with pytest.raises(TypeError, match="of expressions has no truth value"):
            misread()
