"""The native value engine against the operator table: every operator, every cast, every type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from t2s.core.expr import (
    Apply,
    Broadcast,
    Cast,
    Const,
    Expr,
    Insert,
    LaneNumbers,
    Local,
    ReduceLanes,
    Select,
    apply,
    const,
    reduce_lanes,
)
from t2s.core.ops import OPERATORS, Op, accepts, apply_operator, cast_value, result_type
from t2s.core.types import BOOL, BFloat, Float, Int, Type, UInt
from t2s.core.walk import walk
from t2s.graph.body import Load, Statement, Store
from t2s.graph.graph import Graph, Tensor, TensorRole
from t2s.graph.interpret import interpret_graph
from t2s.graph.nodes import PEArray, Role
from t2s.simulator.values.compute import compute_values
from tests.hand_graphs import index, loop
from tests.sampling import sampled

Array = np.ndarray[Any, np.dtype[Any]]

FLOATS = (Float(16), BFloat(), Float(32), Float(64))
INTEGERS = tuple(make(bits) for make in (Int, UInt) for bits in (8, 16, 32, 64))
TYPES = (BOOL, *INTEGERS, *FLOATS)
REDUCIBLE = tuple(operator for operator, info in OPERATORS.items() if info.associative)


def assert_same(given: Array, expected: Array) -> None:
    """Equal bit for bit, where every NaN counts as equal to every other."""
    assert given.dtype == expected.dtype
    assert given.shape == expected.shape
    given, expected = np.ascontiguousarray(given), np.ascontiguousarray(expected)
    bits = np.dtype(f"u{given.dtype.itemsize}")
    same = given.view(bits) == expected.view(bits)
    if given.dtype.kind not in "iub":
        with np.errstate(all="ignore"):
            same |= (given != given) & (expected != expected)
    where = np.flatnonzero(~same)[:5]
    assert same.all(), (where, given.ravel()[where], expected.ravel()[where])


def one_node(count: int, inputs: Mapping[str, Type], outputs: Mapping[str, Expr]) -> Graph:
    """A PE that loads element ``i`` of every input, and stores element ``i`` of every output."""

    def tensor(name: str, type: Type, role: TensorRole) -> Tensor:
        return Tensor(name=name, type=type.scalar, shape=(count, type.lanes), role=role)

    i = index("i")
    loads: list[Statement] = [
        Load(target=name, tensor=name, indices=(i, const(0)), type=type)
        for name, type in inputs.items()
    ]
    stores = [
        Store(tensor=name, indices=(i, const(0)), value=value) for name, value in outputs.items()
    ]
    node = PEArray(
        name="all",
        role=Role.COMPUTE,
        space=(),
        loops=(loop("i", count),),
        body=(*loads, *stores),
    )
    return Graph(
        name="one_node",
        nodes=(node,),
        channels=(),
        tensors=(
            *(tensor(name, type, TensorRole.INPUT) for name, type in inputs.items()),
            *(tensor(name, value.type, TensorRole.OUTPUT) for name, value in outputs.items()),
        ),
    )


def edges(type: Type) -> Array:
    """Values at which operators and casts are likely to go wrong."""
    dtype = type.numpy
    if type.is_bool:
        return np.array([False, True])
    if type.is_integer:
        limits = np.iinfo(dtype)
        near = {limits.min, limits.min + 1, limits.max - 1, limits.max, limits.max // 2}
        small = {value for value in range(-9, 10) if value >= limits.min}
        powers = {1 << bit for bit in range(type.bits - 1)}
        return np.array(sorted(near | small | powers), dtype)
    special = [0.0, 1.0, 1.5, 2.5, 0.1, 3.0, 7.0, 126.5, 127.0, 128.0, 255.5, 256.0, 65504.0]
    special += [65519.0, 65520.0, 2.0**31, 2.0**32, 2.0**63, 2.0**64, 1e-3, 88.5, 709.5, 11.0]
    special += [2.0**-14, 2.0**-24, 2.0**-25, 2.0**-126, 1.0000001, 3.3e38, np.inf, np.nan]
    values = np.array(special + [-value for value in special])
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def samples(type: Type, count: int, seed: int) -> Array:
    """``count`` values of random bits, mostly, and of moderate size."""
    random = np.random.default_rng(seed)
    if type.is_bool:
        return random.integers(0, 2, count).astype(np.bool_)
    bits = random.integers(0, 256, count * type.bytes, np.uint8).view(type.numpy)
    if type.is_float:
        moderate = (random.standard_normal(count) * 100).astype(type.numpy)
        return np.where(random.random(count) < 0.5, bits, moderate)
    return bits


def pairs(type: Type) -> tuple[Array, Array]:
    """All pairs of edges, and random pairs."""
    found = edges(type)
    left, right = np.repeat(found, found.size), np.tile(found, found.size)
    count = 600 + -left.size % 12
    return (
        np.concatenate([left, samples(type, count, 1)]),
        np.concatenate([right, samples(type, count, 2)]),
    )


def operators_on(type: Type) -> list[Op]:
    return [operator for operator in Op if accepts(operator, type)]


def expression(operator: Op, type: Type) -> Apply:
    operands = tuple(Local(name=name, type=type) for name in "xyx")
    return apply(operator, *operands[: OPERATORS[operator].arity])


@pytest.mark.parametrize("lanes", [1, 12])
@sampled("type", TYPES, quick=2, ids=str)
def test_operators(type: Type, lanes: int) -> None:
    x, y = pairs(type)
    vector = type.with_lanes(lanes)
    wanted = operators_on(type)
    graph = one_node(
        x.size // lanes,
        {"x": vector, "y": vector},
        {operator.name: expression(operator, vector) for operator in wanted},
    )
    given = compute_values(graph, {"x": x.reshape(-1, lanes), "y": y.reshape(-1, lanes)})
    for operator in wanted:
        operands = (x, y, x)[: OPERATORS[operator].arity]
        with np.errstate(all="ignore"):
            expected = apply_operator(operator, result_type(operator, type), operands)
        assert_same(given[operator.name].ravel(), expected)


@pytest.mark.parametrize("type", [Float(16), BFloat()], ids=str)
def test_unary_operators_on_every_16_bit_float(type: Type) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(type.numpy)
    wanted = [operator for operator in operators_on(type) if OPERATORS[operator].arity == 1]
    graph = one_node(
        x.size, {"x": type}, {operator.name: expression(operator, type) for operator in wanted}
    )
    given = compute_values(graph, {"x": x[:, None]})
    for operator in wanted:
        with np.errstate(all="ignore"):
            expected = apply_operator(operator, type, (x,))
        assert_same(given[operator.name].ravel(), expected)


@pytest.mark.parametrize("lanes", [1, 4])
@sampled("source", TYPES, quick=2, ids=str)
def test_casts(source: Type, lanes: int) -> None:
    if source.bits == 16:
        values = np.arange(1 << 16, dtype=np.uint16).view(source.numpy)
    else:
        values = np.concatenate([edges(source), samples(source, 4000, 3)])
        values = values[: values.size // lanes * lanes]
    x = Local(name="x", type=source.with_lanes(lanes))
    graph = one_node(
        values.size // lanes,
        {"x": x.type},
        {str(target): Cast(value=x, type=target.with_lanes(lanes)) for target in TYPES},
    )
    given = compute_values(graph, {"x": values.reshape(-1, lanes)})
    for target in TYPES:
        with np.errstate(all="ignore"):
            assert_same(given[str(target)].ravel(), cast_value(values, target))


def test_narrowing_casts_round_ties_and_near_ties() -> None:
    """Between two neighbors of float16 and bfloat16, and a hair to either side of the middle."""
    coarse = np.arange(0, 1 << 16, 7, dtype=np.uint16)
    for target in (Float(16), BFloat()):
        with np.errstate(all="ignore"):
            low = coarse.view(target.numpy).astype(np.float64)
            high = (coarse + np.uint16(1)).view(target.numpy).astype(np.float64)
            middle = (low + high) / 2
        middle = middle[np.isfinite(middle)]
        near = [
            np.nextafter(middle, 0.0),
            middle,
            np.nextafter(middle, np.inf),
            middle * (1 + 1e-9),
        ]
        values = np.concatenate(near)
        x = Local(name="x", type=Float(64))
        graph = one_node(values.size, {"x": x.type}, {"z": Cast(value=x, type=target)})
        given = compute_values(graph, {"x": values[:, None]})["z"]
        with np.errstate(all="ignore"):
            assert_same(given.ravel(), cast_value(values, target))


@pytest.mark.parametrize("lanes", [2, 3, 16])
@pytest.mark.parametrize("type", [Int(8), UInt(16), Int(32), UInt(64)], ids=str)
def test_lane_numbers(type: Type, lanes: int) -> None:
    x = Local(name="x", type=type.with_lanes(lanes))
    graph = one_node(4, {"x": x.type}, {"z": x + LaneNumbers(type=x.type)})
    values = np.arange(4 * lanes).reshape(4, lanes).astype(type.numpy)
    given = compute_values(graph, {"x": values})["z"]
    assert_same(given.reshape(4, lanes), values + np.arange(lanes, dtype=type.numpy))


@pytest.mark.parametrize("lanes", [2, 3, 5, 7, 16])
@sampled("type", [Float(32), Float(16), BFloat(), Int(8), UInt(64), BOOL], quick=2, ids=str)
def test_lanes_are_reduced_as_a_tree(type: Type, lanes: int) -> None:
    wanted = [operator for operator in REDUCIBLE if accepts(operator, type)]
    x = Local(name="x", type=type.with_lanes(lanes))
    graph = one_node(
        50,
        {"x": x.type},
        {operator.name: ReduceLanes(operator=operator, value=x, type=type) for operator in wanted},
    )
    values = samples(type, 50 * lanes, lanes).reshape(50, lanes)
    given = compute_values(graph, {"x": values})
    for operator in wanted:
        with np.errstate(all="ignore"):
            expected = reduce_lanes(operator, type, values)
        assert_same(given[operator.name].ravel(), expected)


def test_products_and_sums_are_not_fused() -> None:
    x, y, z = (Local(name=name, type=Float(32)) for name in "xyz")
    inputs = {
        name: np.random.default_rng(seed).standard_normal((4000, 1)).astype(np.float32)
        for seed, name in enumerate("xyz")
    }
    total = x * y + z
    graph = one_node(4000, dict.fromkeys("xyz", Float(32)), {"r": total})
    expected = inputs["x"] * inputs["y"] + inputs["z"]
    assert_same(compute_values(graph, inputs)["r"], expected)


# -- random expressions ------------------------------------------------------------------------

LANES = 3
VECTORS = tuple(type.with_lanes(LANES) for type in TYPES)


def local(type: Type) -> Local:
    return Local(name=str(type), type=type)


def literals(type: Type) -> st.SearchStrategy[Const]:
    values: st.SearchStrategy[Any]
    if type.is_bool:
        values = st.booleans()
    elif type.is_integer:
        limits = np.iinfo(type.numpy)
        values = st.integers(int(limits.min), int(limits.max)) | st.sampled_from([0, 1, 2])
    else:
        values = st.floats(-1e4, 1e4) | st.sampled_from([0.0, -0.0, float("inf"), float("nan")])
    return values.map(lambda value: Const(value=value, type=type))


@st.composite
def expressions(draw: st.DrawFn, type: Type, depth: int) -> Expr:
    """A random expression of this type."""
    if depth == 0:
        return local(type) if type.lanes > 1 or draw(st.booleans()) else draw(literals(type))
    choices = ["apply", "select", "cast", "local"]
    choices += ["broadcast", "insert"] if type.lanes > 1 else ["reduce"]
    choices += ["lane numbers"] if type.lanes > 1 and type.is_integer else []
    deeper = depth - 1
    match draw(st.sampled_from(choices)):
        case "apply":
            return draw(applications(type, deeper))
        case "select":
            lanes = draw(st.sampled_from([1, type.lanes]))
            return Select(
                condition=draw(expressions(BOOL.with_lanes(lanes), deeper)),
                if_true=draw(expressions(type, deeper)),
                if_false=draw(expressions(type, deeper)),
                type=type,
            )
        case "cast":
            source = draw(st.sampled_from(TYPES)).with_lanes(type.lanes)
            return Cast(value=draw(expressions(source, deeper)), type=type)
        case "lane numbers":
            return LaneNumbers(type=type)
        case "broadcast":
            return Broadcast(value=draw(expressions(type.scalar, deeper)), type=type)
        case "insert":
            return Insert(
                vector=draw(expressions(type, deeper)),
                lane=draw(st.integers(-1, LANES).map(const)),
                value=draw(expressions(type.scalar, deeper)),
                type=type,
            )
        case "reduce":
            operator = draw(st.sampled_from([op for op in REDUCIBLE if accepts(op, type)]))
            value = draw(expressions(type.with_lanes(LANES), deeper))
            return ReduceLanes(operator=operator, value=value, type=type)
    return local(type)


@st.composite
def applications(draw: st.DrawFn, type: Type, depth: int) -> Expr:
    """A random application of an operator with a result of this type."""
    operand = type
    if type.is_bool and draw(st.booleans()):
        operand = draw(st.sampled_from(TYPES)).with_lanes(type.lanes)
    fitting = [op for op in operators_on(operand) if result_type(op, operand) == type]
    operator = draw(st.sampled_from(fitting))
    count = OPERATORS[operator].arity
    return apply(operator, *(draw(expressions(operand, depth)) for _ in range(count)))


TREES = st.lists(
    st.sampled_from([*TYPES, *VECTORS]).flatmap(lambda type: expressions(type, 3)),
    min_size=4,
    max_size=4,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(TREES)
def test_random_expressions(trees: list[Expr]) -> None:
    inputs = {
        term.name: term.type for tree in trees for term in walk(tree) if isinstance(term, Local)
    }
    graph = one_node(6, inputs, {f"result{n}": tree for n, tree in enumerate(trees)})
    values = {
        name: samples(type.scalar, 6 * type.lanes, n).reshape(6, type.lanes)
        for n, (name, type) in enumerate(inputs.items())
    }
    expected = interpret_graph(graph, values)
    given = compute_values(graph, values)
    for name, value in expected.items():
        assert_same(given[name], value)
