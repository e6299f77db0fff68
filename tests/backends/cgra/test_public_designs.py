"""Designs as texts for the public tools: values are numpy's, cycles those that were measured there.

The cycles in this file are those of the public simulator for the texts that are emitted here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import t2s
from t2s import Func, Int, UInt, triggered
from t2s.core.expr import Expr, const
from t2s.core.ops import Array
from t2s.core.types import INT32
from t2s.graph.body import RegisterRead, RegisterWrite, Send
from t2s.graph.graph import Graph
from tests.backends.builders import local
from tests.backends.cgra import refused_designs
from tests.backends.cgra.public_designs import (
    dot_product,
    elementwise,
    gathered_product,
    matrix_product,
    row_product,
)
from tests.hand_graphs import index
from tests.sampling import sampled

Shape = tuple[int, int] | None


def words(*shape: int, seed: int = 0, type: Any = np.int32) -> Array:
    """Whole words at random."""
    numbers = np.random.default_rng((seed, *shape))
    return numbers.integers(0, 1 << 32, shape, np.uint32).astype(type)


def compiled(design: Func | Graph, shape: Shape, **options: Any) -> triggered.TriggeredDesign:
    rows, columns = shape or (None, None)
    return triggered.compile(design, rows=rows, columns=columns, **options)


def check(design: Func, shape: Shape, inputs: dict[str, Array], expected: Array) -> int:
    """Compile and run; the values are right.  Returns the cycles."""
    found = compiled(design, shape)
    result = found.run(inputs)
    (output,) = result.outputs.values()
    assert output.dtype == expected.dtype
    np.testing.assert_array_equal(output, expected)
    return result.cycles


@pytest.mark.parametrize(
    ("shape", "cycles"), [(None, 96), ((1, 2), 44), ((2, 2), 46), ((4, 4), 50)]
)
def test_a_dot_product(shape: Shape, cycles: int) -> None:
    a, b = words(16), words(16, seed=1)
    expected = np.array([(a * b).sum(dtype=np.int32)])
    assert check(dot_product(16), shape, {"a": a, "b": b}, expected) == cycles


@sampled(("rows", "columns", "cycles"), [(12, 4, 87), (1, 2, 10), (7, 3, 58)], quick=2)
def test_matrix_times_vector_on_a_row(rows: int, columns: int, cycles: int) -> None:
    A, x = words(rows, columns), words(columns)
    assert check(row_product(rows, columns), (1, columns), {"A": A, "x": x}, A @ x) == cycles


@pytest.mark.parametrize(("shape", "cycles"), [((2, 4), 176), ((3, 4), 92)])
def test_matrix_times_vector_with_gathered_results(shape: Shape, cycles: int) -> None:
    A, x = words(12, 8), words(8)
    assert check(gathered_product(12, 8, 3), shape, {"A": A, "x": x}, A @ x) == cycles


@pytest.mark.parametrize(
    ("rows", "depth", "cycles"),
    [
        pytest.param(1, 1, 25, marks=pytest.mark.slow),
        (8, 4, 166),
        pytest.param(2, 20, 304, marks=pytest.mark.slow),
    ],
)
def test_matrix_times_matrix_on_a_block(rows: int, depth: int, cycles: int) -> None:
    A, B = words(rows, depth), words(depth, 4)
    assert check(matrix_product(rows, 4, depth), (4, 4), {"A": A, "B": B}, A @ B) == cycles


OPERATORS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sums": (lambda a, b, i: (a - b) * (a + b) - 3, lambda a, b: (a - b) * (a + b) - 3),
    "numbers": (
        lambda a, b, i: a * 1000003 + 123456789 - b,
        lambda a, b: a * a.dtype.type(1000003) + a.dtype.type(123456789) - b,
    ),
    "larger": (lambda a, b, i: t2s.maximum(a, b), np.maximum),
    "smaller": (lambda a, b, i: t2s.minimum(a, b) + a, lambda a, b: np.minimum(a, b) + a),
    "choice": (
        lambda a, b, i: t2s.select(a < b, a * 2, b + 7),
        lambda a, b: np.where(a < b, a * 2, b + 7),
    ),
    "powers of two": (lambda a, b, i: a // 8 + b % 16, lambda a, b: a // 8 + b % 16),
    "loops": (
        lambda a, b, i: t2s.select(i % 3 == 0, a + b, a - b),
        lambda a, b: np.where(np.arange(len(a)) % 3 == 0, a + b, a - b),
    ),
}


@sampled("name", OPERATORS, quick=2)
@pytest.mark.parametrize("type", [Int(32), UInt(32)], ids=["int32", "uint32"])
def test_operators(name: str, type: Any) -> None:
    compute, reference = OPERATORS[name]
    a, b = words(8, type=type.numpy), words(8, seed=1, type=type.numpy)
    b[3] = a[3]
    check(elementwise(compute, 8, type), (1, 2), {"a": a, "b": b}, reference(a, b))


def test_signs() -> None:
    a, b = words(8), words(8, seed=1)
    a[:3] = 0, 5, -(1 << 31)
    design = elementwise(lambda a, b, i: -a + abs(b), 8)
    check(design, (1, 2), {"a": a, "b": b}, -a + abs(b))


@settings(max_examples=5, deadline=None)
@given(st.integers(1, 9), st.integers(2, 4), st.integers(0, 99))
def test_rows_of_any_size(rows: int, columns: int, seed: int) -> None:
    A, x = words(rows, columns, seed=seed), words(columns, seed=seed)
    check(row_product(rows, columns), (1, columns), {"A": A, "x": x}, A @ x)


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 40), st.sampled_from([None, (1, 2), (2, 3)]), st.integers(0, 99))
def test_dot_products_of_any_length(length: int, shape: Shape, seed: int) -> None:
    a, b = words(length, seed=seed), words(length, seed=seed + 1)
    expected = np.array([(a * b).sum(dtype=np.int32)])
    check(dot_product(length), shape, {"a": a, "b": b}, expected)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 4), st.integers(0, 99))
def test_products_of_any_size(rows: int, depth: int, count: int, seed: int) -> None:
    A, B = words(rows, depth, seed=seed), words(depth, count, seed=seed)
    check(matrix_product(rows, count, depth, count), (4, 4), {"A": A, "B": B}, A @ B)


def file_read(target: str, place: int) -> RegisterRead:
    indices = (const(place),)
    return RegisterRead(target=target, register="kept", indices=indices, type=INT32)


def file_write(place: int, value: Expr) -> RegisterWrite:
    return RegisterWrite(register="kept", indices=(const(place),), value=value)


def test_registers_change_all_at_once() -> None:
    """Two elements that need one another, the first of which starts at 5."""
    a, b, value = local("a"), local("b"), local("value")
    body = [
        refused_designs.TAKE,
        file_read("a", 0),
        file_read("b", 1),
        file_write(0, b + value),
        file_write(1, a),
        Send(channel="y_out", value=a * value + b),
    ]
    kept = replace(refused_designs.kept(2), initial=5)
    check_graph(refused_designs.by_hand(body, [kept]))


def test_what_is_written_is_read_in_the_same_firing() -> None:
    body = [
        refused_designs.TAKE,
        file_read("a", 0),
        file_write(0, local("a") + local("value")),
        file_read("after", 0),
        Send(channel="y_out", value=local("after") * local("a")),
    ]
    check_graph(refused_designs.by_hand(body, [refused_designs.kept(1)]))


def test_a_file_that_is_read_backwards() -> None:
    here = index("i")
    body = [
        refused_designs.TAKE,
        refused_designs.written(here),
        refused_designs.read("old", 7 - here),
        Send(channel="y_out", value=local("old")),
    ]
    check_graph(refused_designs.by_hand(body, [refused_designs.kept(8)]))


def check_graph(graph: Graph) -> None:
    x = np.arange(8, dtype=np.int32) * 7 - 9
    found = compiled(graph, (1, 2)).run({"x": x})
    np.testing.assert_array_equal(found.outputs["y"], t2s.simulate(graph, {"x": x}).outputs["y"])


def test_what_users_get(tmp_path: Path) -> None:
    found = compiled(row_product(3, 2), (1, 2))
    assert repr(found) == "<TriggeredDesign y on 1 x 2 PEs>"
    assert found.starts == {"A": 0, "x": 6, "y": 8}
    assert triggered.disassemble(found.program.binary) == found.program
    A, x = words(3, 2), words(2)
    memory = found.memory({"A": A, "x": x})
    assert memory.dtype == np.uint32
    assert memory.view(np.int32).tolist() == [*A.reshape(-1).tolist(), *x.tolist(), 0, 0, 0]
    run = triggered.run(found.text, memory, rows=1, columns=2)
    np.testing.assert_array_equal(found.outputs(run.memory)["y"], A @ x)
    paths = found.emit(tmp_path)
    assert [path.name for path in paths] == ["y.tia", "y.memory.json"]
    assert json.loads(paths[1].read_text()) == {"shape": [1, 2], "starts": found.starts}
    again = triggered.run(paths[0], memory, rows=1, columns=2, trace=True)
    assert again.cycles == run.cycles


def test_the_text_names_lines_of_the_user() -> None:
    text = compiled(dot_product(4), (1, 2)).text
    assert text.startswith("# s on 1 x 2 PEs\n# memory: a from 0, b from 4, s from 8\n\n<pe_0")
    assert "# s, public_designs.py:20: s[i] += a[k] * b[k]\n" in text
    assert "# addresses of b for s_load_b, public_designs.py:20: s[i] += a[k] * b[k]" in text


def test_a_seed_gives_one_text() -> None:
    texts = [compiled(dot_product(6), (2, 2), seed=seed).text for seed in (0, 0, 1)]
    assert texts[0] == texts[1]
    a, b = words(6), words(6, seed=1)
    run = compiled(dot_product(6), (2, 2), seed=1).run({"a": a, "b": b})
    assert run.outputs["s"][0] == (a * b).sum(dtype=np.int32)
