"""Graphs of blocks in the native engine: the values, cycles and stalls of the plain one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from t2s.core.ops import Op
from t2s.simulator.devices import DEVICES
from t2s.simulator.limits import Limits
from t2s.simulator.native_engine import NativeEngine, retime
from t2s.simulator.program.build import build_program
from t2s.simulator.reference_engine import PythonEngine
from t2s.sparse_repr.streams import UNBOUNDED
from tests.sampling import sampled
from tests.simulator.test_streams import agree
from tests.sparse_repr.graphs import Design, elementwise, matrix_product, matrix_vector

DEPTHS = (UNBOUNDED, 1, 4)


def sparse(seed: int, shape: tuple[int, int]) -> Any:
    random = np.random.default_rng(seed)
    return (random.integers(1, 9, shape) * (random.random(shape) < 0.3)).astype(np.float64)


def check(design: Design, expected: Any) -> None:
    """At several depths: the first in a run with values, the others from its trace."""
    program = build_program(design.graph, DEVICES["ideal"], design.inputs)
    native = NativeEngine().run(program, Limits())
    assert native.machine_trace is not None
    np.testing.assert_array_equal(design.dense(dict(native.outputs)), expected)
    for depth in DEPTHS:
        capacities = {channel.name: depth for channel in design.graph.channels}
        changed = replace(program.with_capacities(capacities), inputs=program.inputs)
        agree(
            PythonEngine().run(changed, Limits()), retime(program, native.machine_trace, capacities)
        )


@sampled("order", ["ijk", "ikj", "kij"], quick=2)
def test_matrix_products(order: str) -> None:
    b, c = sparse(0, (8, 7)), sparse(1, (7, 9))
    check(matrix_product(b, c, order), b @ c)


@pytest.mark.parametrize(("operator", "function"), [(Op.ADD, np.add), (Op.MULTIPLY, np.multiply)])
def test_elementwise(operator: Op, function: Any) -> None:
    b, c = sparse(2, (9, 12)), sparse(3, (9, 12))
    check(elementwise(b, c, operator), function(b, c))


def test_matrix_vector() -> None:
    a, b = sparse(4, (7, 9)), np.arange(9.0)
    check(matrix_vector(a, b), a @ b)
