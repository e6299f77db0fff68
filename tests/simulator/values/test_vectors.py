"""Vectors of firings: the same bits, firings and errors as one by one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import scipy.sparse

from benchmarks.random_streams import bursts, fastest_code, first_code
from t2s import sparse
from t2s.core.ops import Op
from t2s.core.types import INT32, Float, Type
from t2s.errors import CycleLimitError, ProtocolError
from t2s.graph.graph import Graph
from t2s.simulator.report.result import SimResult
from t2s.simulator.run import simulate
from t2s.simulator.values.emit_node import emit_program
from t2s.simulator.values.layout import layout_of
from t2s.simulator.values.vectors import vector_rules
from t2s.sparse_repr.streams import Streams
from tests.simulator.values.test_spans import ONE_BY_ONE, same

WAYS = (fastest_code, first_code)


def both(kernel: sparse.Kernel, inputs: dict[str, object]) -> Iterator[SimResult]:
    """Runs in vectors, and one by one."""
    for way in WAYS:
        with way(), bursts(ONE_BY_ONE):
            (stage,) = kernel.simulate(inputs).stages
        yield stage


def short_rows(type: type[np.generic] = np.float64) -> tuple[sparse.Kernel, dict[str, object]]:
    """A product with a sparse second factor, some of whose rows are empty."""
    W = scipy.sparse.random(70, 9, 0.3, format="csr", random_state=2)
    X = np.random.default_rng(0).integers(-9, 9, (40, 70))
    inputs = {"X": (X / 4).astype(type), "W": (4 * W).astype(type)}
    parsed = sparse.parse("Y(i,j) = X(i,k)*W(k,j)", {"W": "ds"})
    return sparse.compile(parsed, "reorder(i,k,j)"), inputs


def begins_with(expected: np.ndarray, values: np.ndarray) -> None:
    """Zeros at the end are not written."""
    begin, rest = np.split(expected.reshape(-1), [len(values)])
    np.testing.assert_array_equal(values, begin)
    assert not rest.any()


def in_vectors(graph: Graph) -> dict[str, set[str]]:
    """The rules that fire in vectors, by machine."""
    return {
        node.name: {name for one in found for name in one.codes}
        for node in graph.machines
        if (found := [r for mode in node.modes if (r := vector_rules(graph, node, mode))])
    }


@pytest.mark.parametrize("type", [np.float32, np.float64, np.int32, np.int64, np.uint32, np.int16])
def test_rows_of_any_length(type: type[np.generic]) -> None:
    """Types of other sizes than half a word and a word fire one by one."""
    kernel, inputs = short_rows(type)
    found, expected = both(kernel, inputs)
    same(found, expected)
    X, W = np.asarray(inputs["X"]), scipy.sparse.csr_matrix(inputs["W"]).toarray()
    (values,) = found.outputs.values()
    np.testing.assert_allclose(values.reshape(40, 9), X @ W, rtol=1e-5)


def test_machines_that_make_a_token_of_one_fire_in_vectors() -> None:
    kernel, inputs = short_rows()
    (run, _) = both(kernel, inputs)
    found = in_vectors(run.program.graph)
    assert found["load_W"] == {"load", "stop", "missing"}
    assert found["multiply"] == {"compute", "stop"}
    assert found["reduce_k_deal"] == {"pass0", "pass1"}
    assert found["intersect_k"] == {"match", "pass_stop"}


def test_scanners_count_in_vectors_and_reducers_add_all_points_of_one() -> None:
    """A repeater of values, too, but not the beginning of its row: no value is taken there."""
    kernel, inputs = short_rows()
    (run, _) = both(kernel, inputs)
    found = in_vectors(run.program.graph)
    assert found["scan_W_j"] == {"next"}
    assert found["reduce_k"] == {"add", "nothing", "inner_stop"}
    assert found["repeat_X_j"] == {"again"}


@pytest.mark.parametrize("lengths", [(40, 0, 1, 7, 8, 9, 16, 17), (3,) * 9, (1, 0, 1, 2), (25,)])
def test_rows_of_given_lengths(lengths: tuple[int, ...]) -> None:
    """The entries of the last ones lie at the end of their tensor."""
    columns = 50
    generator = np.random.default_rng(3)
    chosen = [np.sort(generator.choice(columns, n, replace=False)) for n in lengths]
    ends = np.cumsum([0, *lengths])
    data = generator.integers(-9, 9, ends[-1]) / 4
    shape = (len(lengths), columns)
    W = scipy.sparse.csr_matrix((data, np.concatenate(chosen), ends), shape)
    X = generator.integers(-9, 9, (30, len(lengths))) / 4
    kernel = sparse.compile(sparse.parse("Y(i,j) = X(i,k)*W(k,j)", {"W": "ds"}), "reorder(i,k,j)")
    found, expected = both(kernel, {"X": X, "W": W})
    same(found, expected)
    (values,) = found.outputs.values()
    begins_with(X @ W.toarray(), values)


@pytest.mark.parametrize("formats", ["dss", "dds"])
def test_points_of_two_coordinates(formats: str) -> None:
    """Both coordinates share a word; the points are old after the first rows, or never."""
    generator = np.random.default_rng(5)
    T = generator.integers(-9, 9, (6, 4, 12)) * (generator.random((6, 4, 12)) < 0.4) / 4
    X = generator.integers(-9, 9, (20, 6)) / 4
    parsed = sparse.parse("Y(i,j,l) = X(i,k)*T(k,j,l)", {"T": formats})
    found, expected = both(sparse.compile(parsed, "reorder(i,k,j,l)"), {"X": X, "T": T})
    same(found, expected)
    (values,) = found.outputs.values()
    begins_with(np.einsum("ik,kjl->ijl", X, T), values)


@pytest.mark.parametrize("columns", [300, 1 << 14, 1 << 20])
def test_points_that_lie_close_together_or_far_apart(columns: int) -> None:
    """Rows that fit into a window of the memory, and rows of which each one stops doing so."""
    draw = np.random.default_rng(columns)
    starts = draw.integers(0, columns - 200, 120)
    close = [start + draw.choice(200, 12, replace=False) for start in starts]
    rows = [np.sort(draw.choice(columns, 17, replace=False)) for _ in range(40)]
    rows += [np.sort(row) for row in close]
    data = draw.integers(1, 9, sum(map(len, rows))) / 4
    ends = np.cumsum([0, *map(len, rows)])
    B = scipy.sparse.csr_matrix((data, np.concatenate(rows), ends), (160, columns))
    A = scipy.sparse.random(50, 160, 0.1, format="csr", random_state=columns)
    A.data = np.ceil(8 * A.data) / 4
    parsed = sparse.parse("Y(i,j) = A(i,k)*B(k,j)", {"A": "ds", "B": "ds", "Y": "ds"})
    kernel = sparse.compile(parsed, "reorder(i,k,j)")
    found, expected = both(kernel, {"A": A, "B": B})
    same(found, expected)
    Y = (A @ B).tocsr()
    Y.sort_indices()
    values, coordinates = (found.outputs[name] for name in ("Y_vals", "Y_crd1"))
    np.testing.assert_array_equal(values, Y.data)
    np.testing.assert_array_equal(coordinates, Y.indices)


def test_vectors_are_more_code_of_the_same_machines() -> None:
    kernel, inputs = short_rows()
    (run, _) = both(kernel, inputs)
    graph = run.program.graph
    short, long = (emit_program(graph, layout_of(graph), vectors=v) for v in (False, True))
    assert len(short.text) < len(long.text)
    assert short.faults == long.faults


def cut_alike(kernel: sparse.Kernel, inputs: dict[str, object], limit: int) -> None:
    """A run that a limit of cycles ends makes the same firings in every way."""
    found = []
    for way in WAYS:
        with way(), pytest.raises(CycleLimitError) as error:
            kernel.simulate(inputs, max_cycles=limit)
        found.append(error.value.result)
    here, there = found
    assert here.cycles == there.cycles == limit
    assert here.nodes == there.nodes


@pytest.mark.parametrize("limit", [1, 100, 1001])
def test_runs_cut_short(limit: int) -> None:
    """A limit of cycles bounds the firings of machines, in the middle of a vector as well."""
    cut_alike(*short_rows(), limit)


def elementwise(op: Op, type: Type, *values: np.ndarray) -> tuple[Streams, dict[str, np.ndarray]]:
    """One operator on arrays of one length."""
    s = Streams("elementwise")
    _, ref = s.scan_dense(s.root(), len(values[0]))
    loaded = [s.load(ref, s.tensor(f"v{n}", type)) for n, _ in enumerate(values)]
    s.write_values(s.compute(op, *loaded), s.output("out", type))
    return s, {f"v{n}": value for n, value in enumerate(values)}


@pytest.mark.parametrize("op", [Op.FLOOR_DIVIDE, Op.MODULO, Op.MAXIMUM])
def test_operators_of_integers(op: Op) -> None:
    """Divisions by zero as well, which give zero."""
    generator = np.random.default_rng(1)
    left, right = (generator.integers(-4, 4, 203).astype(np.int32) for _ in "lr")
    s, inputs = elementwise(op, INT32, left, right)
    outputs = []
    for way in WAYS:
        with way(), bursts(ONE_BY_ONE):
            outputs.append(simulate(s.graph(), inputs, progress=False).outputs["out"])
    np.testing.assert_array_equal(*outputs)
    assert any("compute" in rules for rules in in_vectors(s.graph()).values())


def test_functions_of_the_c_library_fire_one_by_one() -> None:
    s, _ = elementwise(Op.EXPONENTIAL, Float(64), np.ones(3))
    assert not any("compute" in rules for rules in in_vectors(s.graph()).values())


def test_loads_outside_are_refused_at_the_same_token() -> None:
    """A reference beyond the end of a tensor, in the middle of a vector."""
    texts = []
    for way in WAYS:
        s = Streams("gather")
        _, ref = s.scan_dense(s.root(), 30)
        place = s.load(ref, s.tensor("places", INT32))
        s.write_values(s.load(place, s.tensor("v", Float(64))), s.output("out", Float(64)))
        inputs = {"places": np.arange(30, dtype=np.int32) * 2, "v": np.arange(43.0)}
        with way(), bursts(ONE_BY_ONE), pytest.raises(ProtocolError) as error:
            simulate(s.graph(), inputs, progress=False)
        texts.append(str(error.value))
    assert texts[0] == texts[1]
    assert "44" in texts[0]
