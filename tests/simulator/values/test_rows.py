"""Machines that fire along rows as one: the same bits, firings and errors as each by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from benchmarks.random_streams import bursts
from t2s import sparse
from t2s.core.types import INT32, Float
from t2s.errors import ProtocolError
from t2s.graph.graph import Graph
from t2s.simulator.run import simulate
from t2s.simulator.values.emit_node import emit_program
from t2s.simulator.values.layout import layout_of
from t2s.simulator.values.rows import Rows, rows_of
from t2s.sparse_repr.streams import Streams
from tests.simulator.values.test_spans import ONE_BY_ONE, same
from tests.simulator.values.test_vectors import WAYS, begins_with, both, cut_alike

PRODUCT, ORDER = "Y(i,j) = X(i,k)*W(k,j)", "reorder(i,k,j)"
generator = np.random.default_rng(7)


def of_lengths(lengths: list[int], columns: int, type: type[np.generic] = np.float64) -> Any:
    """A matrix with so many entries in each row."""
    chosen = [np.sort(generator.choice(columns, n, replace=False)) for n in lengths]
    ends = np.cumsum([0, *lengths])
    data = generator.integers(1, 9, ends[-1]).astype(type)
    matrix = (data, np.concatenate([*chosen, np.zeros(0, int)]), ends)
    return scipy.sparse.csr_matrix(matrix, (len(lengths), columns))


def groups(text: str, formats: dict[str, str], schedule: str, inputs: Any) -> list[Rows]:
    """The machines along rows, in the graphs of an expression."""
    kernel = sparse.compile(sparse.parse(text, formats), schedule)
    graphs = [stage.program.graph for stage in kernel.simulate(inputs).stages]
    return [rows for graph in graphs for rows in rows_of(graph)]


def names(rows: Rows) -> list[str]:
    return [machine.name for machine in rows.machines]


A = of_lengths([3, 0, 2, 4], 5)
B = of_lengths([1, 2, 0, 9, 3], 11)
T = (generator.random((4, 5, 6)) < 0.5) * 1.0


@pytest.mark.parametrize(
    ("text", "formats", "schedule", "inputs", "expected"),
    [
        (
            PRODUCT,
            {"W": "ds"},
            ORDER,
            {"X": np.ones((3, 5)), "W": B},
            [["scan_W_j", "repeat_X_j", "load_W", "load_X", "multiply", "reduce_k_deal"]],
        ),
        (
            "Y(i,j) = A(i,k)*B(k,j)",
            {"A": "ds", "B": "ds", "Y": "ds"},
            ORDER,
            {"A": A, "B": B},
            [["scan_B_j", "repeat_A_j", "load_B", "load_A", "multiply", "reduce_k_deal"]],
        ),
        (  # a reducer of values puts one token for many
            "y(i) = A(i,k)*x(k)",
            {"A": "ds"},
            "locate(x,k)",
            {"A": A, "x": np.ones(5)},
            [["scan_A_k", "repeat_root_k", "load_A", "locate_root_k", "load_x", "multiply"]],
        ),
        (  # which of two rows goes on depends on coordinates
            "Y(i,j) = A(i,j)+B(i,j)",
            {"A": "ds", "B": "ds", "Y": "ds"},
            "",
            {"A": A, "B": A},
            [],
        ),
    ],
)
def test_machines_along_rows(
    text: str, formats: dict[str, str], schedule: str, inputs: Any, expected: list[list[str]]
) -> None:
    found = groups(text, formats, schedule, inputs)
    assert [sorted(names(rows)) for rows in found] == [sorted(one) for one in expected]


def test_one_that_deals_rows_puts_them_into_one_of_two_channels() -> None:
    (rows,) = groups(PRODUCT, {"W": "ds"}, ORDER, {"X": np.ones((3, 5)), "W": B})
    assert [len(channels) for channels in rows.outer] == [2, 2]
    assert not {name for channels in rows.outer for name in channels} & set(rows.inner)
    followers = {follower.node.name: follower for follower in rows.followers}
    assert [way.inside.name for way in followers["reduce_k_deal"].ways] == ["side0", "side1"]
    assert followers["repeat_X_j"].alternates
    assert followers["repeat_X_j"].held == ("intersect_k_out0_0_to_repeat_X_j_ref",)


def test_only_the_innermost_rows_are_worth_it() -> None:
    (rows,) = groups(
        "Y(i,j,l) = X(i,k)*T(k,j,l)",
        {"T": "dss"},
        "reorder(i,k,j,l)",
        {"X": np.ones((3, 4)), "T": T},
    )
    assert rows.scanner.node.name == "scan_T_l"


def has_rows(graph: Graph) -> bool:
    return "@rows0" in emit_program(graph, layout_of(graph), vectors=True).text


@pytest.mark.parametrize(
    ("lengths", "type"),
    [
        ([40, 0, 1, 7, 8, 9, 16, 17], np.float64),  # as many as a vector has lanes, and one more
        ([40, 0, 1, 7, 8, 9, 16, 17], np.float32),
        ([0, 0, 3, 0, 0, 0, 8, 0, 0], np.float32),  # rows without entries, and many of them
        ([0] * 6, np.int32),
        ([1] * 300, np.int64),  # more tokens than a channel holds
        ([48] * 3, np.int32),
        ([5], np.float64),
    ],
)
def test_rows_of_given_lengths(lengths: list[int], type: type[np.generic]) -> None:
    X, W = generator.integers(1, 9, (30, len(lengths))).astype(type), of_lengths(lengths, 50, type)
    kernel = sparse.compile(sparse.parse(PRODUCT, {"W": "ds"}), ORDER)
    found, expected = both(kernel, {"X": X, "W": W})
    assert has_rows(found.program.graph)
    same(found, expected)
    (values,) = found.outputs.values()
    begins_with(X @ W.toarray(), values)


@pytest.mark.parametrize("formats", ["dss", "sds"])
def test_rows_of_matrices_that_end(formats: str) -> None:
    """A row that is the last one of a matrix ends in a higher stop: each machine fires alone."""
    many = (generator.random((40, 7, 12)) < 0.3) * generator.integers(1, 9, (40, 7, 12)) / 4
    many[3] = many[17:20] = 0
    X = generator.integers(-9, 9, (20, 40)) / 4
    parsed = sparse.parse("Y(i,j,l) = X(i,k)*T(k,j,l)", {"T": formats})
    found, expected = both(sparse.compile(parsed, "reorder(i,k,j,l)"), {"X": X, "T": many})
    assert has_rows(found.program.graph)
    same(found, expected)
    (values,) = found.outputs.values()
    begins_with(np.einsum("ik,kjl->ijl", X, many), values)


def test_copies_of_a_row_for_several_machines() -> None:
    """Machines of which there are several copies have rows of their own, each."""
    X, W = np.ones((30, 40)), scipy.sparse.random(40, 30, 0.2, format="csr", random_state=1)
    kernel = sparse.compile(sparse.parse(PRODUCT, {"W": "ds"}), f"{ORDER}, parallelize(i,3)")
    found, expected = both(kernel, {"X": X, "W": W})
    assert len(rows_of(found.program.graph)) == 3
    same(found, expected)
    (values,) = found.outputs.values()
    np.testing.assert_allclose(values.reshape(-1, 30), X @ W.toarray())


@pytest.mark.parametrize("limit", [100, 1001])
def test_runs_cut_short(limit: int) -> None:
    """A limit of cycles bounds the firings of machines, in the middle of a row as well."""
    inputs = {"X": np.ones((30, 60)), "W": of_lengths([3, 9, 0] * 20, 30)}
    cut_alike(sparse.compile(sparse.parse(PRODUCT, {"W": "ds"}), ORDER), inputs, limit)


@pytest.mark.parametrize("wrong", [0, 37])
def test_loads_outside_are_refused_at_the_same_token(wrong: int) -> None:
    """A reference beyond the end of a tensor, which is loaded along rows."""
    lengths = [4, 0, 9, 13, 1, 20]
    ends = np.cumsum([0, *lengths]).astype(np.int32)
    places = generator.permutation(ends[-1]).astype(np.int32)
    places[wrong] = 1000 + wrong
    inputs = {"pos": ends, "crd": places, "places": places, "v": np.arange(100.0)}
    texts = []
    for way in WAYS:
        s = Streams("gather")
        _, rows = s.scan_dense(s.root(), len(lengths))
        _, ref = s.scan_compressed(rows, s.tensor("pos", INT32), s.tensor("crd", INT32))
        place = s.load(ref, s.tensor("places", INT32))
        s.write_values(s.load(place, s.tensor("v", Float(64))), s.output("out", Float(64)))
        (group,) = rows_of(s.graph())
        assert len(group.machines) == 3
        with way(), bursts(ONE_BY_ONE), pytest.raises(ProtocolError) as error:
            simulate(s.graph(), inputs, progress=False)
        texts.append(str(error.value))
    assert texts[0] == texts[1]
    assert str(1000 + wrong) in texts[0]


def test_a_row_that_waits_for_another_machine_is_no_deadlock() -> None:
    """A product behind two of the same rows: one of them is ahead of the other one."""
    W, V = (of_lengths([3, 0, 9, 8] * 30, 20) for _ in "WV")
    inputs = {"X": np.ones((9, 120)), "W": W, "V": V}
    parsed = sparse.parse("Y(i,j) = X(i,k)*W(k,j)*V(k,j)", {"W": "ds", "V": "ds"})
    found, expected = both(sparse.compile(parsed, ORDER), inputs)
    same(found, expected)
