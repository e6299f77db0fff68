"""Divisions of loops by constants: counters and bits, the same numbers, and no division left."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.backends.kernels.design import analyze
from t2s.backends.kernels.digit_counters import digit_of
from t2s.backends.kernels.kernel_ast import KernelDefinition
from t2s.backends.kernels.scope import KernelDesign, file_scope
from t2s.backends.opencl_fpga.backend import lower_design
from t2s.backends.opencl_fpga.dialect import OPENCL
from t2s.core.expr import Expr, apply, const, digits, evaluate
from t2s.core.ops import Op
from t2s.graph.body import Statement, Store
from t2s.graph.graph import Graph
from t2s.graph.nodes import Loop, Role
from tests.backends.builders import graph, node, tensor
from tests.backends.run_c import operators_in, stores_of
from tests.hand_graphs import index

STEPS = st.lists(
    st.tuples(
        st.sampled_from((Op.FLOOR_DIVIDE, Op.MODULO, Op.ADD)), st.integers(min_value=1, max_value=9)
    ),
    min_size=1,
    max_size=5,
)
Bounds = tuple[int, int]
LOOPS = st.one_of(
    st.lists(st.tuples(st.integers(-7, 7), st.integers(1, most)), min_size=count, max_size=count)
    for count, most in ((1, 60), (2, 12), (3, 6))
)


def chained(steps: list[tuple[Op, int]], start: Expr) -> Expr:
    """``start // 3 % 4 + 1 ...``."""
    return reduce(lambda value, step: apply(step[0], value, const(step[1])), steps, start)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True)
@given(STEPS)
def test_digits_of_digits(steps: list[tuple[Op, int]]) -> None:
    expr = chained(steps, index("n"))
    found = digit_of(expr, {"n": (-100, 300)})
    assert found is not None
    digit, offset = found
    values = {"n": np.arange(-100, 301, dtype=np.int32)}
    np.testing.assert_array_equal(
        evaluate(digit.at(digit.base), values) + offset, evaluate(expr, values)
    )


def numbers(loops: list[Loop], values: list[Expr]) -> Graph:
    """A kernel that stores expressions of its loops."""
    body: list[Statement] = [
        Store(tensor="y", indices=(const(place),), value=value)
        for place, value in enumerate(values)
    ]
    return graph(
        "numbers",
        (node("numbers", Role.STORE, loops, body),),
        (),
        (tensor("y", len(values), role="output"),),
    )


def kernel_of(design: Graph) -> KernelDefinition:
    found = analyze(OPENCL, design)
    assert isinstance(found, KernelDesign)
    return lower_design(found, file_scope(found)).kernels[0]


def check(loops: list[Loop], values: list[Expr]) -> KernelDefinition:
    """The kernel stores what the expressions say, in the order of the loops."""
    kernel = kernel_of(numbers(loops, values))
    environments: list[dict[str, int]] = [{}]
    for loop in loops:
        environments = [
            {**outer, loop.name: first + step}
            for outer in environments
            for first in [int(evaluate(loop.minimum, outer))]  # type: ignore[arg-type]
            for step in range(int(evaluate(loop.extent, outer)))  # type: ignore[arg-type]
        ]
    columns = {
        loop.name: np.array([each[loop.name] for each in environments], np.int32) for loop in loops
    }
    rows = zip(*(evaluate(value, columns).tolist() for value in values), strict=True)
    assert stores_of(kernel) == [place for row in rows for place in enumerate(row)]
    return kernel


def nest(bounds: list[Bounds]) -> list[Loop]:
    return [
        Loop(name="ijk"[at], minimum=const(first), extent=const(extent))
        for at, (first, extent) in enumerate(bounds)
    ]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(LOOPS, st.lists(st.tuples(st.integers(0, 2), STEPS), min_size=1, max_size=4))
def test_any_digit_of_any_loop(
    bounds: list[Bounds], wanted: list[tuple[int, list[tuple[Op, int]]]]
) -> None:
    values = [chained(steps, index("ijk"[min(at, len(bounds) - 1)])) for at, steps in wanted]
    assert not operators_in(check(nest(bounds), values)) & {"/", "%"}


@pytest.mark.parametrize("extents", [(3, 5), (4, 3, 5), (2, 8), (6, 4, 2)])
@pytest.mark.parametrize("first", [0, 7])
def test_flattened_loops(extents: tuple[int, ...], first: int) -> None:
    total = int(np.prod(extents))
    kernel = check(nest([(first, 2 * total)]), list(digits(index("i"), extents)))
    assert not operators_in(kernel) & {"/", "%"}


@pytest.mark.parametrize("extents", [(3, 5), (5, 3)])
def test_bounds_that_depend_on_outer_loops(extents: tuple[int, ...]) -> None:
    """The first value of a counter takes a division, outside of the loop that it counts."""
    loops = [
        *nest([(1, 6)]),
        Loop(name="j", minimum=index("i"), extent=index("i") + 20),
    ]
    check(loops, list(digits(index("j"), extents)))


def test_terms_that_are_whole_multiples_are_divided_at_once() -> None:
    flat = index("i") * 12 + index("j") + 5
    value = flat // 3
    kernel = check(nest([(0, 4), (0, 12)]), [value, flat % 3])
    assert not operators_in(kernel) & {"/", "%"}


def test_numbers_of_several_loops_stay_divisions() -> None:
    flat = index("i") * 5 + index("j")
    kernel = check(nest([(0, 4), (0, 5)]), [flat // 3])
    assert "/" in operators_in(kernel)
