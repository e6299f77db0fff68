"""Streams that feed a systolic array of the dense language, in one graph and one run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, RDom, Var
from t2s.core.errors import UserError
from t2s.core.types import INT32, Float
from t2s.graph.graph import Graph
from t2s.graph.interpret import interpret_graph
from t2s.simulator.run import simulate
from t2s.sparse_repr.streams import Streams
from tests.errors.refusal import refused

ROWS, INNER, COLUMNS = 3, 6, 4


def systolic() -> Graph:
    """C = A B on a row of PEs, to which one unit loads A."""
    A = ImageParam(t2s.Float(64), 2, name="A")
    B = ImageParam(t2s.Float(64), 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, INNER, name="k")
    C = Func("C")
    C[i, j] = 0.0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, ROWS).bound(j, 0, COLUMNS)
    loader, other, unloader = t2s.funcs("A_loader B_loader C_unloader")
    nest = C.update().unroll(j).isolate_producer(A, loader).forward(loader, j)
    nest.isolate_producer(B, other).isolate_consumer(unloader)
    return t2s.lower(C)


def expanding(s: Streams):
    """The values of a compressed matrix with its zeros, as a dense stream."""
    pos, crd, vals = s.tensor("pos", INT32), s.tensor("crd", INT32), s.tensor("vals", Float(64))
    _, row = s.scan_dense(s.root(), ROWS)
    stored = s.scan_compressed(row, pos, crd)
    every = s.scan_dense(row, INNER)
    _, ((ref,), _) = s.union(stored, every)
    return s.values_only(s.load(ref, vals))


def test_a_scanner_feeds_a_systolic_array(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    a = random.integers(1, 9, (ROWS, INNER)) * (random.random((ROWS, INNER)) < 0.4) * 1.0
    b = random.integers(-4, 5, (INNER, COLUMNS)) * 1.0
    s = Streams("mixed")
    s.embed(systolic(), {"A_loader": expanding(s)})
    graph = s.graph()
    assert {tensor.name for tensor in graph.tensors} == {"pos", "crd", "vals", "B", "C"}
    inputs = {
        "pos": np.cumsum([0, *np.count_nonzero(a, axis=1)]).astype(np.int32),
        "crd": np.nonzero(a)[1].astype(np.int32),
        "vals": a[a != 0],
        "B": b,
    }
    assert np.array_equal(interpret_graph(graph, inputs)["C"], a @ b)
    result = simulate(graph, inputs, engine="python")
    assert np.array_equal(result.outputs["C"], a @ b)
    assert result.nodes["C"].firings == ROWS * INNER * COLUMNS
    with pytest.raises(UserError, match="streams with stop tokens are not supported in OpenCL"):
        t2s.emit(graph, "opencl_fpga", str(tmp_path))


def test_what_is_no_load_unit() -> None:
    s = Streams("mixed")
    values, dense = expanding(s), systolic()
    with refused(
        """
        'C' has no load unit 'C'
          --> s.embed(dense, {"C": values})
          expected: one of A_loader, B_loader
          given:    'C'
        """
    ):
        s.embed(dense, {"C": values})


def test_several_load_units() -> None:
    s = Streams("mixed")
    values, dense = expanding(s), systolic()
    with pytest.raises(UserError, match="'B_loader' of 'C' cannot be replaced by a stream"):
        s.embed(dense, {"B_loader": values})


def test_a_stream_with_stops() -> None:
    s = Streams("mixed")
    crd, _ = s.scan_dense(s.root(), 4)
    with pytest.raises(UserError, match="does not fit the channel 'A_loader_to_C'"):
        s.embed(systolic(), {"A_loader": crd})


def test_names_that_are_taken() -> None:
    s = Streams("mixed")
    s.tensor("B", INT32)
    values = expanding(s)
    with pytest.raises(UserError, match="the tensor name 'B' is taken"):
        s.embed(systolic(), {"A_loader": values})
