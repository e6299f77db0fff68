"""Several statements in one graph: streamed and recomputed intermediates, against numpy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse

import t2s
from t2s.core.errors import UserError
from t2s.driver.assignment_design import AssignmentDesign, Channels, Compiled
from t2s.sparse import Schedule, csc
from t2s.sparse_repr import adaptation
from tests.sampling import sampled
from tests.sparse_repr.statements import (
    RECOMPUTE,
    STORE,
    STREAM,
    adjacency,
    check,
    graphs_of,
    kernel_of,
    some,
)

LAYER = """
    T(i,j) = A(i,k)*X(k,j)
    L(i,h) = T(i,j)*W(j,h)
    H(i,h) = relu(L(i,h) + b(h))
"""
SECOND = """
    U(i,h) = A(i,k)*H(k,h)
    V(i,c) = U(i,h)*W2(h,c)
    Z(i,c) = V(i,c) + b2(c)
"""
FORMATS = {
    "A": "ds", "X": "dd", "W": "ds", "T": "dd", "L": "dd", "H": "dd", "b": "d",
    "U": "dd", "W2": "ds", "V": "dd", "Z": "dd", "b2": "d",
}  # fmt: skip
BOTH = {"T": STREAM, "L": STREAM}
TWO = {**BOTH, "H": RECOMPUTE, "U": STREAM, "V": STREAM}


def _inputs(nodes: int, entries: int, features: int, hidden: int, classes: int) -> dict[str, Array]:
    generator = np.random.default_rng(nodes + features)
    matrix = adjacency(generator, nodes, entries) if nodes > 2 else np.ones((nodes, nodes))
    return {
        "A": matrix if entries else np.zeros((nodes, nodes)),
        "X": some(generator, nodes, features),
        "W": some(generator, features, hidden, density=0.5),
        "b": some(generator, hidden),
        "W2": some(generator, hidden, classes, density=0.7),
        "b2": some(generator, classes),
    }


Array = np.ndarray


def _layer(given: dict[str, Array]) -> Array:
    return np.maximum(given["A"] @ given["X"] @ given["W"] + given["b"], 0)


SIZES = [(9, 20, 5, 4, 3), (4, 0, 3, 2, 2), (1, 1, 1, 1, 1), (2, 4, 3, 1, 1), (7, 30, 1, 3, 1)]


LAYERS = [(*each, result) for result in ("dd", "ds", "ss") for each in product(SIZES, ("ds", "ss"))]


@sampled(("sizes", "graph", "result"), LAYERS, quick=5)
def test_a_layer_in_one_graph(sizes: tuple[int, ...], graph: str, result: str) -> None:
    given = _inputs(*sizes)
    kernel = kernel_of(LAYER, {**FORMATS, "A": graph, "H": result}, BOTH)
    check(kernel, given, _layer(given))


@sampled(("sizes", "graph"), list(product(SIZES, ("ds", "ss"))), quick=3)
def test_two_layers_in_one_graph(sizes: tuple[int, ...], graph: str) -> None:
    given = _inputs(*sizes)
    kernel = kernel_of(LAYER + SECOND, {**FORMATS, "A": graph}, TWO)
    expected = given["A"] @ _layer(given) @ given["W2"] + given["b2"]
    check(kernel, given, expected)


def test_the_whole_in_index_notation() -> None:
    kernel = kernel_of(*CASES["a row that is read twice"][:3])
    assert repr(kernel) == "<Kernel Y(i,j) = exp(X(i,j))/sum(j_2, exp(X(i,j_2)))>"


def test_the_loops_of_two_layers() -> None:
    kernel = kernel_of(LAYER + SECOND, FORMATS, TWO)
    assert (
        str(kernel)
        == """\
for i:
  with U(h):
    for k:  # locate A, by default
      with T(j):
        for k_2:  # locate X, by default
          for j:
            T(j) += A(k,k_2)*X(k_2,j)
      with L(h):
        for j:  # locate W, by default
          for h:
            L(h) += T(j)*W(j,h)
      for h:
        with H:
          H = relu(L(h) + b(h))
        U(h) += A(i,k)*H
  with V(c):
    for h:  # locate W2, by default
      for c:
        V(c) += U(h)*W2(h,c)
  for c:
    Z(i,c) = V(c) + b2(c)
"""
    )


GENERATOR = np.random.default_rng(7)
A = adjacency(GENERATOR, 7, 16)
B = some(GENERATOR, 7, 5, density=0.4)
C = some(GENERATOR, 5, 4, density=0.6)
D = some(GENERATOR, 4, 3)
M = (some(GENERATOR, 7, 7, density=0.4) != 0) * 1.0
Q, K, V = (some(GENERATOR, 7, 3) / 4 for _ in range(3))
X = some(GENERATOR, 7, 5)
v = some(GENERATOR, 7)
GIVEN = {"A": A, "B": B, "C": C, "D": D, "M": M, "Q": Q, "K": K, "V": V, "X": X, "v": v}
SCORES = np.where(M != 0, np.exp(Q @ K.T), 0.0)
TOTALS = np.where(M.any(1), SCORES.sum(1), 1.0)

CASES = {
    "a chain of three products": (
        "T(i,j) = B(i,k)*C(k,j)\nU(i,l) = T(i,j)*D(j,l)\nY(i,l) = 2*U(i,l)",
        {"B": "ss", "C": "ss", "D": "dd", "Y": "ss"},
        {"T": STREAM, "U": STREAM},
        2 * B @ C @ D,
    ),
    "names of a statement are its own": (
        "T(p,q) = B(p,r)*C(r,q)\nY(r,p) = T(r,s)*D(s,p)",
        {"B": "ds", "C": "ds", "D": "ds", "Y": "dd"},
        {"T": STREAM},
        B @ C @ D,
    ),
    "a matrix that is made as a whole": (
        "T(i,j) = B(k,i)*C(k,j)\nY(i,j) = relu(T(i,j))",
        {"B": "ds", "C": "ds", "Y": "dd"},
        {"T": STREAM},
        np.maximum(B[:5].T @ C, 0),
    ),
    "and is multiplied with a dense matrix": (
        "T(i,j) = B(k,i)*C(k,j)\nY(i,l) = T(i,j)*D(j,l)",
        {"B": "ds", "C": "ds", "D": "dd", "Y": "ss"},
        {"T": STREAM},
        B[:5].T @ C @ D,
    ),
    "two paths that meet": (
        "S(i,j) = B(i,k)*C(k,j)\nT(i,k) = A(i,l)*B(l,k)\nN(i,j) = T(i,k)*C(k,j)\n"
        "Y(i,j) = relu(S(i,j) + N(i,j))",
        {"A": "ds", "B": "ds", "C": "dd", "Y": "dd"},
        {"S": STREAM, "T": STREAM, "N": STREAM},
        np.maximum(B @ C + A @ B @ C, 0),
    ),
    "a row that is read twice": (
        "E(i,j) = exp(X(i,j))\ns(i) = E(i,j)\nY(i,j) = E(i,j)/s(i)",
        {"X": "dd", "s": "d", "Y": "dd"},
        {"E": STREAM, "s": STREAM},
        np.exp(X) / np.exp(X).sum(1, keepdims=True),
    ),
    "a sum of rows that is in their own product": (
        "T(i,k) = A(i,l)*B(l,k)\nY(i,k) = T(i,k)*T(i,k) + T(i,k)",
        {"A": "ss", "B": "ss", "Y": "ss"},
        {"T": STREAM},
        (A @ B) ** 2 + A @ B,
    ),
    "attention under a mask": (
        "P(i,j) = M(i,j)*Q(i,d)*K(j,d)\nE(i,j) = stored(exp(P(i,j)))\ns(i) = E(i,j)\n"
        "S(i,j) = E(i,j)/s(i)\nY(i,e) = S(i,j)*V(j,e)",
        {"M": "ds", "P": "ds", "E": "ds", "S": "ds", "Y": "dd"},
        {"P": STREAM, "E": STREAM, "s": STREAM, "S": STREAM},
        (SCORES / TOTALS[:, None]) @ V,
    ),
    "a scalar": (
        "s = v(i)*v(i)\nY(i) = v(i)/s", {"v": "d", "Y": "d"}, {"s": STREAM}, v / (v @ v)
    ),
    "a vector that is gathered": (
        "p(i) = A(i,k)*v(k)\nY(i) = A(i,k)*p(k)",
        {"A": "ds", "v": "d", "Y": "d"},
        {"p": RECOMPUTE},
        A @ A @ v,
    ),
    "a vector that is gathered twice": (
        "p(i) = A(i,k)*v(k)\nq(i) = A(i,k)*p(k)\nY(i) = A(i,k)*q(k)",
        {"A": "ds", "v": "d", "Y": "d"},
        {"p": RECOMPUTE, "q": RECOMPUTE},
        A @ A @ A @ v,
    ),
    "rows that are read both ways": (
        "H(i,j) = relu(X(i,j))\nS(i,l) = H(i,j)*G(j,l)\nU(i,j) = A(i,k)*H(k,j)\n"
        "N(i,l) = U(i,j)*G(j,l)\nY(i,l) = S(i,l) + N(i,l)",
        {"A": "ds", "X": "dd", "G": "dd", "Y": "dd"},
        {"H": RECOMPUTE, "S": STREAM, "U": STREAM, "N": STREAM},
        (lambda relu: relu @ C + A @ relu @ C)(np.maximum(X, 0)),
    ),
    "products in rows that are read both ways": (
        "T(i,j) = B(i,k)*C(k,j)\nH(i,j) = relu(T(i,j))\nS(i,l) = H(i,j)*D(j,l)\n"
        "U(i,j) = A(i,k)*H(k,j)\nN(i,l) = U(i,j)*D(j,l)\nY(i,l) = S(i,l) + N(i,l)",
        {"A": "ds", "B": "ds", "C": "ds", "D": "dd", "Y": "dd"},
        {"T": STREAM, "H": RECOMPUTE, "S": STREAM, "U": STREAM, "N": STREAM},
        (lambda relu: relu @ D + A @ relu @ D)(np.maximum(B @ C, 0)),
    ),
    "a function of the zeros of a dense tensor": (
        "T(i,k) = A(i,l)*B(l,k)\nY(i,k) = stored(exp(T(i,k)))",
        {"A": "ss", "B": "ss", "Y": "ss"},
        {"T": STREAM},
        np.exp(A @ B),
    ),
    "zero divided by zero": (
        "T(i,k) = A(i,l)*X(l,k)\ns(i) = T(i,k)*T(i,k)\nY(i,k) = T(i,k)/s(i)",
        {"A": "ss", "X": "dd", "Y": "dd"},
        {"T": STREAM, "s": STREAM},
        np.where(A.any(1)[:, None], A @ X / np.maximum(((A @ X) ** 2).sum(1), 1)[:, None], np.nan),
    ),
    "a matrix that a statement gathers twice": (
        "T(i,j) = Q(i,k)*K(j,k)\nY(i,j) = T(i,k)*T(j,k)",
        {"Q": "dd", "K": "dd", "Y": "dd"},
        {"T": RECOMPUTE},
        (Q @ K.T) @ (Q @ K.T).T,
    ),
    "vectors that are read in two places": (
        "y(i) = sum(k, A(i,k)*v(k)) + v(i)\nz(i) = sum(k, A(i,k)*y(k)) + y(i)\n"
        "Y(i) = sum(k, A(i,k)*z(k)) - 2*z(i)",
        {"A": "ds", "Y": "d"},
        {"y": RECOMPUTE, "z": RECOMPUTE},
        (A - 2 * np.eye(7)) @ np.linalg.matrix_power(A + np.eye(7), 2) @ v,
    ),
    "samples of a product": (
        "P(i,j) = Q(i,d)*K(j,d)\nY(i,j) = M(i,j)*P(i,j)",
        {"M": "ds", "Q": "dd", "K": "dd", "Y": "ds"},
        {"P": STREAM},
        M * (Q @ K.T),
    ),
    "a function that is not zero at zero": (
        "T(i,k) = A(i,l)*B(l,k)\nE(i,k) = exp(T(i,k))\nY(i,j) = E(i,k)*C(k,j)",
        {"A": "ss", "B": "ss", "C": "ds", "Y": "dd"},
        {"T": STREAM, "E": STREAM},
        np.exp(A @ B) @ C,
    ),
    "heads": (
        "P(h,i,j) = M(i,j)*R(h,i,d)*R(h,j,d)\nE(h,i,j) = stored(exp(P(h,i,j)))\n"
        "Y(h,i,e) = E(h,i,j)*R(h,j,e)",
        {"M": "ds", "R": "ddd", "P": "dds", "E": "dds", "Y": "ddd"},
        {"P": STREAM, "E": STREAM},
        None,
    ),
}  # fmt: skip


def _case(name: str) -> tuple[Compiled, dict[str, Array], Array]:
    lines, formats, ways, expected = CASES[name]
    given = {**GIVEN, "G": C}
    if "B(k,i)" in lines:
        given["B"] = B[:5]
    if name == "heads":
        given["R"] = rows = np.stack([Q, K])
        scores = np.exp(rows @ rows.transpose(0, 2, 1)) * (M != 0)
        expected = scores @ rows
    return kernel_of(lines, formats, ways), given, expected


@pytest.mark.parametrize("name", CASES)
def test_statements_in_one_graph(name: str) -> None:
    check(*_case(name))


@pytest.mark.parametrize("capacity", [1, 3])
@pytest.mark.parametrize(
    "name",
    ["a row that is read twice", "attention under a mask", "two paths that meet", "heads"],
)
def test_bounded_channels(name: str, capacity: int) -> None:
    kernel, given, expected = _case(name)
    read = {tensor.name for tensor in kernel.assignment.tensors}
    design = AssignmentDesign(kernel, channels=Channels(capacity=capacity))
    run = t2s.simulate(design, {key: value for key, value in given.items() if key in read})
    np.testing.assert_allclose(run.output, expected, rtol=1e-12)


def test_channels_beside_a_sum_hold_the_row() -> None:
    kernel = kernel_of(*CASES["a row that is read twice"][:3])
    rows = some(GENERATOR, 3, 300)
    design = AssignmentDesign(kernel, channels=Channels(capacity=2))
    (graph,) = design.graphs({"X": rows})
    long = {channel.sink for channel in graph.channels if channel.capacity > 50}
    assert len(long) == 4
    run = t2s.simulate(design, {"X": rows})
    np.testing.assert_allclose(run.output, np.exp(rows) / np.exp(rows).sum(1, keepdims=True))


def test_a_graph_for_every_result_that_is_stored() -> None:
    groups = graphs_of(LAYER + SECOND, FORMATS, {"T": STREAM, "U": STREAM, "H": STORE})
    assert [[one.name for one in group.statements] for group in groups] == [
        ["T", "L"], ["H"], ["U", "V"], ["Z"]
    ]  # fmt: skip


def test_what_is_recomputed_is_in_the_graph_of_every_reader() -> None:
    groups = graphs_of(LAYER + "Y(i,h) = 2*T(i,h)", FORMATS, {"T": RECOMPUTE})
    assert [[one.name for one in group.statements] for group in groups] == [
        ["T", "L"], ["H"], ["T", "Y"]
    ]  # fmt: skip


def _undirected(nodes: int, entries: int) -> scipy.sparse.csr_matrix:
    """A graph without isolated nodes."""
    generator = np.random.default_rng(nodes)
    rows = np.concatenate([np.arange(nodes), generator.integers(0, nodes, entries - nodes)])
    matrix = scipy.sparse.coo_matrix(
        (np.ones(entries), (rows, generator.integers(0, nodes, entries))), (nodes, nodes)
    ).tocsr()
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def test_rows_that_are_gathered_are_looked_up() -> None:
    kernel = kernel_of(LAYER + SECOND, {**FORMATS, "A": "ss"}, TWO)
    assert (
        "rows of A(k,k_2) are scanned again for every i, by default, and looked up where that takes"
        " fewer cycles"
    ) in str(kernel)
    for isolated in (0, 30):
        matrix = _undirected(200, 500).toarray()
        matrix[:, :isolated] = matrix[:isolated] = 0
        given = _inputs(200, 0, 2, 2, 2) | {"A": matrix}
        expected = matrix @ _layer(given) @ given["W2"] + given["b2"]
        chosen = kernel.for_inputs(given)
        assert "A_view is A stored as ds:0,1: its rows are looked up in every i" in str(chosen)
        run = t2s.simulate(kernel, given)
        np.testing.assert_allclose(run.output, expected)
        rows = np.count_nonzero(matrix.any(axis=1))
        scanning = t2s.simulate(AssignmentDesign(kernel, adapts=False), given)
        np.testing.assert_array_equal(scanning.output, run.output)
        assert scanning.cycles > rows * rows > 2 * run.cycles
    given = _inputs(9, 0, 2, 2, 2)
    given["A"][3] = 1  # the only row, and each one has more to look up
    assert kernel.for_inputs(given) is kernel
    check(kernel, given, given["A"] @ _layer(given) @ given["W2"] + given["b2"])


def test_rows_that_take_too_much_room_are_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = kernel_of(LAYER + SECOND, {**FORMATS, "A": "ss"}, TWO)
    given = _inputs(40, 0, 2, 2, 2) | {"A": _undirected(40, 60)}
    assert kernel.for_inputs(given) is not kernel
    monkeypatch.setattr(adaptation, "ROOM", 39)
    assert kernel.for_inputs(given) is kernel


@pytest.mark.parametrize(
    ("nodes", "entries", "features"),
    [
        (200, 1000, 50),
        pytest.param(2708, 10556, 200, marks=pytest.mark.slow),
        pytest.param(2995, 16316, 300, marks=pytest.mark.slow),
    ],
)
def test_the_cycles_of_a_graph_are_those_of_its_busiest_statement(
    nodes: int, entries: int, features: int
) -> None:
    matrix = _undirected(nodes, entries)
    entries = matrix.nnz
    given = _inputs(nodes, 0, features, 16, 7) | {"A": matrix}
    stored = np.count_nonzero(given["W"])
    run = t2s.simulate(kernel_of(LAYER, FORMATS, BOTH), {n: given[n] for n in "AXWb"})
    expected = np.maximum(matrix @ given["X"] @ given["W"] + given["b"], 0)
    np.testing.assert_allclose(run.output, expected)
    tokens = max(entries * (features + 1), nodes * (stored + features))
    assert tokens <= run.cycles <= 1.005 * tokens + 2 * features + 200

    both = t2s.simulate(kernel_of(LAYER + SECOND, FORMATS, TWO), given)
    np.testing.assert_allclose(both.output, matrix @ expected @ given["W2"] + given["b2"])
    second = int(np.diff(matrix.indptr)[matrix.indices].sum())
    tokens = max(second * (features + 1), entries * (stored + features))
    assert tokens <= both.cycles <= 1.005 * tokens


ORDER = Schedule().reorder
PRODUCTS = "T(i,j) = A(i,k)*X(k,j)\nL(i,h) = T(i,j)*W(j,h)"
GATHER = LAYER + "Y(i,h) = A(i,k)*H(k,h)"
MANY = {"A": "ds", "B": "ss", "C": "ss", "v": "d", "Y": "ss"}

VECTORS = {"A": "ss", "w": "s", "y": "s", "p": "s"}
DEGREES = "n(i) = N(i,j)\nH(i,d) = N(i,j)*X(j,d)/max(n(i), 1)"
TURNED = {"N": "ss:1,0", "X": "ds:1,0", "n": "d", "H": "ds:1,0"}

REFUSED = {
    "L walks it by j, i, and it is made by i, j": (
        (LAYER, FORMATS, BOTH, {"L": ORDER("j i h")}),
        'hint:     L with reorder("i j h"), or store T',
        (LAYER, FORMATS, BOTH, {"L": ORDER("i j h")}),
    ),
    "L walks it by i, j, and it is made by j, i": (
        (PRODUCTS, FORMATS, {"T": STREAM}, {"T": ORDER("j i k"), "L": ORDER("i j h")}),
        'hint:     L with reorder("j i h"), or store T',
        (PRODUCTS, FORMATS, {"T": STREAM}, {"T": ORDER("j i k"), "L": ORDER("j i h")}),
    ),
    "T cannot be streamed into L: L reads it again for every h": (
        (LAYER, {**FORMATS, "W": csc}, BOTH, {}),
        'hint:     L with reorder("i j h") and transpose("W"), or store T',
        (LAYER, {**FORMATS, "W": csc}, BOTH, {"L": ORDER("i j h").transpose("W")}),
    ),
    "n cannot be streamed into H: H reads it again for every d, j": (
        (DEGREES, TURNED, {"n": STREAM}, {}),
        'hint:     H with reorder("i d j") and transpose("N", "H"), or store n',
        (DEGREES, TURNED, {"n": STREAM}, {"H": ORDER("i d j").transpose("N", "H")}),
    ),
    "H cannot be streamed into Y: Y reads it again for every i": (
        (GATHER, FORMATS, {**BOTH, "H": STREAM}, {}),
        "hint:     recompute H, or store H",
        (GATHER, FORMATS, {**BOTH, "H": RECOMPUTE}, {}),
    ),
    "the loops i, h, j do not walk W(j,h) as it is stored": (
        (LAYER, FORMATS, BOTH, {"L": ORDER("i h j")}),
        "hint:     reorder('i j h')\n",
        (LAYER, FORMATS, BOTH, {"L": ORDER("i j h")}),
    ),
    "the loops i, j do not walk Y(j,i) as it is stored": (
        ("T(i,j) = A(i,k)*v(k)*v(j)\nY(j,i) = T(i,j)", MANY, {"T": STREAM}, {}),
        "hint:     transpose('Y') converts Y before it is used\n",
        (
            "T(i,j) = A(i,k)*v(k)*v(j)\nY(j,i) = T(i,j)",
            MANY,
            {"T": STREAM},
            {"Y": Schedule().transpose("Y")},
        ),
    ),
    "no statement computes X, so there is nothing to stream": (
        (LAYER, FORMATS, {**BOTH, "X": STREAM}, {}),
        "expected: one of T, L\n",
        (LAYER, FORMATS, BOTH, {}),
    ),
    "H is a result of the program: no statement reads it": (
        (LAYER, FORMATS, {**BOTH, "H": RECOMPUTE}, {}),
        "expected: recompute of a tensor that another statement reads",
        (LAYER, FORMATS, BOTH, {}),
    ),
    "L is not gathered, so nothing is gained by computing it again": (
        (LAYER, FORMATS, {**BOTH, "L": RECOMPUTE}, {}),
        "hint:     stream L, or store it",
        (LAYER, FORMATS, BOTH, {}),
    ),
    "y reads a diagonal of T, which is not stored": (
        ("T(i,j) = A(i,k)*B(k,j)\ny(i) = T(i,i)", MANY, {"T": STREAM}, {}),
        "hint:     store T",
        ("T(i,j) = A(i,k)*B(k,j)\ny(i) = T(i,j)", MANY, {"T": STREAM}, {}),
    ),
    "E cannot be streamed to s and Y: they share no loop": (
        ("E(i,j) = relu(B(i,j))\ns = E(i,j)\nY(i,j) = E(i,j)*s", MANY,
         {"E": STREAM, "s": STREAM}, {}),
        "hint:     store E",
        ("E(i,j) = relu(B(i,j))\ns(i) = E(i,j)\nY(i,j) = E(i,j)*s(i)", MANY,
         {"E": STREAM, "s": STREAM}, {}),
    ),
    "T cannot be streamed to two graphs": (
        ("T(i,j) = A(i,k)*B(k,j)\ny(i) = T(i,j)\nz(j) = T(i,j)", MANY, {"T": STREAM}, {}),
        "given:    it is read by y in the graph of y and by z in the graph of z\n",
        ("T(i,j) = A(i,k)*B(k,j)\ny(i) = T(i,j)", MANY, {"T": STREAM}, {}),
    ),
    "this directive for L changes loops that it shares": (
        (LAYER, FORMATS, BOTH, {"L": Schedule().parallelize("j", 2)}),
        "hint:     store T and L",
        (LAYER, FORMATS, BOTH, {}),
    ),
    "Y needs a temporary between its loops i, j, k": (
        ("T(i,j) = B(i,j)*v(j)\nY(i,j) = T(i,j)*sum(k, A(i,k)*sum(l, B(k,l)))", MANY,
         {"T": STREAM}, {}),
        "hint:     write a sum as a statement of its own, which may be stored",
        ("T(i,j) = B(i,j)*v(j)\nY(i,j) = T(i,j)*sum(k, A(i,k)*v(k))", MANY, {"T": STREAM}, {}),
    ),
    "the loop over i needs A in two ways at once": (
        ("T(i,j) = A(i,j)*v(j)\nY(i,j) = (T(i,j) + B(i,j))*(T(i,j) + C(i,j))", MANY,
         {"T": STREAM}, {}),
        "hint:     store the tensor that is read twice",
        ("T(i,j) = A(i,j)*v(j)\nY(i,j) = T(i,j)*B(i,j) + T(i,j)*C(i,j)", MANY, {"T": STREAM}, {}),
    ),
    "stored(exp(p)) depends on where p has terms to sum": (
        ("p(i) = A(i,k)*v(k)\ny(i) = w(i) + stored(exp(p(i)))", VECTORS,
         {"p": STREAM}, {}),
        "hint:     store p",
        ("p(i) = A(i,k)*v(k)\ny(i) = w(i)*stored(exp(p(i)))", VECTORS,
         {"p": STREAM}, {}),
    ),
    "T arrives in several levels, and the outer one is joined": (
        ("T(i,j) = B(k,i)*C(k,j)\nY(i,j) = T(i,j) + A(i,j)", MANY, {"T": STREAM}, {}),
        "hint:     store T",
        ("T(i,j) = B(i,k)*C(k,j)\nY(i,j) = T(i,j) + A(i,j)", MANY, {"T": STREAM}, {}),
    ),
    "T cannot be computed again row by row in Y": (
        ("T(i,j) = B(k,i)*C(k,j)\nY(i,j) = A(i,k)*T(k,j)", MANY, {"T": RECOMPUTE}, {}),
        "given:    T is made by the loops k, i, j, and read by i, k, j\n",
        ("T(i,j) = B(i,k)*C(k,j)\nY(i,j) = A(i,k)*T(k,j)", MANY, {"T": RECOMPUTE}, {}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_does_not_fit_one_graph_is_refused(text: str) -> None:
    refused, said, fitting = REFUSED[text]
    with pytest.raises(UserError) as caught:
        kernel_of(*refused)
    assert text in caught.value.message
    assert said in str(caught.value) + "\n"
    assert caught.value.location is not None
    kernel_of(*fitting)


def test_one_way_for_each_tensor() -> None:
    with pytest.raises(UserError, match="two ways are given for T"):
        graphs_of(LAYER, FORMATS, [("T", STREAM), ("T", STORE)])
