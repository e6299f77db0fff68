"""Tensors whose values are blocks: formats, values, cycles, programs, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Var, sparse
from t2s.core.errors import UserError
from t2s.simulator.report.result import SimResult
from t2s.sparse import Tensor
from tests.sparse_repr.block_programs import (
    ATTENTION,
    attended,
    attention_inputs,
    random_case,
)

Array = np.ndarray[Any, Any]

LEVELS = ("notation", "loops", "blocks")


def sparse_matrix(rows: int, columns: int, seed: int, share: float = 0.2) -> Array:
    """A matrix with empty rows, and rows of blocks, and at least one entry."""
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(rows, columns)) * (random.random((rows, columns)) < share)
    matrix[rows // 3 : 2 * rows // 3] = 0
    matrix[-1, -1] = 1
    return matrix


A, S = sparse_matrix(7, 10, 0), sparse_matrix(10, 9, 1)
B = np.random.default_rng(2).normal(size=(10, 9))
Q, K = (np.random.default_rng(seed).normal(size=(8, 6)) for seed in (3, 4))
MASK = np.abs(sparse_matrix(8, 8, 5))
X, BIAS = np.arange(10.0), np.arange(9.0)


@pytest.mark.parametrize(
    "format", ["ds[2,4]", "ss[2,2]", "dd[4,4]", "ds:1,0[2,3]", "ds[1,3]", "ds[16,16]", "bs[2,2]"]
)
def test_what_is_stored(format: str) -> None:
    """Ragged extents are padded with zeros, which are not elements."""
    stored = sparse.tensor(A, format)
    blocks = len(stored.values) // stored.format.lanes
    assert len(stored.values) == blocks * stored.format.lanes
    np.testing.assert_array_equal(stored.to_dense(), A)
    np.testing.assert_array_equal(stored.T.to_dense(), A.T)
    assert stored.nnz == np.count_nonzero(A)
    np.testing.assert_array_equal(stored.convert("ds").to_dense(), A)
    again = sparse.from_levels(stored.shape, stored.format, stored.levels, stored.values)
    np.testing.assert_array_equal(again.to_dense(), A)


def test_only_blocks_with_an_entry_are_stored() -> None:
    matrix = np.zeros((8, 8))
    matrix[5, 2] = 3
    stored = sparse.tensor(matrix, "ds[4,4]")
    assert str(stored.format) == "ds:0,1[4,4]"
    assert stored.levels[1]["pos"].tolist() == [0, 0, 1]
    assert stored.levels[1]["crd"].tolist() == [0]
    assert stored.values.reshape(4, 4)[1, 2] == 3


def test_declared_by_text_and_by_number() -> None:
    one, other = Tensor("A", "ds", block=(2, 4)), Tensor("A", "ds[2,4]")
    assert one.format == other.format
    assert Tensor("x", "d", block=4).format == Tensor("x", "d[4]").format
    assert Tensor("A", "ds", block=(1, 1)).format == Tensor("A", "ds").format


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


CASES: tuple[tuple[str, dict[str, str], dict[str, Array], Array | float], ...] = (
    ("y(i) = A(i,j)*x(j)", {"A": "ds[2,4]"}, {"A": A, "x": X}, A @ X),
    ("y(i) = A(i,j)*x(j)", {"A": "ss[4,1]"}, {"A": A, "x": X}, A @ X),
    ("y(j) = A(i,j)", {"A": "ds[4,4]"}, {"A": A}, A.sum(0)),
    ("s = A(i,j)*A(i,j)", {"A": "ss[4,4]"}, {"A": A}, (A * A).sum()),
    ("C(i,j) = A(i,k)*B(k,j)", {"A": "ds[2,4]", "B": "dd[4,3]"}, {"A": A, "B": B}, A @ B),
    (
        "C(i,j) = A(i,k)*B(k,j)",
        {"A": "ss[2,4]", "B": "ds[4,2]", "C": "ss[2,2]"},
        {"A": A, "B": S},
        A @ S,
    ),
    (
        "C(i,j) = A(i,k)*B(k,j)",
        {"A": "ds[2,4]", "B": "ds:1,0[4,2]", "C": "dd[2,2]"},
        {"A": A, "B": S},
        A @ S,
    ),
    ("C(i,j) = A(i,j) + 2*B(i,j)", {"A": "ds[4,4]", "B": "ss[4,4]"}, {"A": A, "B": A}, 3 * A),
    ("C(i,j) = relu(A(i,j))", {"A": "ds[4,4]", "C": "ds[4,4]"}, {"A": A}, relu(A)),
    ("C(i,j) = exp(A(i,j))", {"A": "ds[2,2]"}, {"A": A}, np.exp(A)),
    ("C(i,j) = a(i) + b(j)", {"a": "d[2]", "b": "d[4]"}, {"a": X, "b": X}, np.add.outer(X, X)),
    (
        "P(q,k) = M(q,k)*Q(q,d)*K(k,d)/2 - M(q,k)",
        {"M": "ds[4,4]", "P": "ds[4,4]", "Q": "dd[4,2]"},
        {"M": MASK, "Q": Q, "K": K},
        MASK * (Q @ K.T) / 2 - MASK,
    ),
    (
        "P(h,q,k) = M(q,k)*Q(h,q,d)*K(h,k,d)",
        {"M": "ds[4,4]", "P": "dds[1,4,4]", "Q": "ddd[1,4,3]"},
        {"M": MASK, "Q": np.stack([Q, Q + 1]), "K": np.stack([K, K])},
        np.stack([MASK * (Q @ K.T), MASK * ((Q + 1) @ K.T)]),
    ),
    (
        "C(i,j) = relu(sum(k, A(i,k)*B(k,j)) + b(j))",
        {"A": "ds[2,4]", "B": "dd[4,4]", "C": "dd[2,4]"},
        {"A": A, "B": B, "b": BIAS},
        relu(A @ B + BIAS),
    ),
    (
        "y(i) = b(i) - A(i,j)*x(j)",
        {"A": "ds[2,4]"},
        {"A": A, "x": X, "b": X[:7]},
        X[:7] - A @ X,
    ),
    (
        "y(i,j) = sum(k, exp(A(i,k))*exp(B(k,j)))",
        {"A": "dd[2,5]", "B": "dd[5,3]"},
        {"A": A, "B": B},
        np.exp(A) @ np.exp(B),
    ),
)


@pytest.mark.parametrize(("text", "formats", "inputs", "expected"), CASES)
def test_values(
    text: str, formats: dict[str, str], inputs: dict[str, Array], expected: Array
) -> None:
    """As numpy, at every level and in both engines, which take as many cycles as each other."""
    kernel = sparse.compile(sparse.parse(text, formats))
    for level in LEVELS:
        np.testing.assert_allclose(kernel.interpret(inputs, level=level), expected, atol=1e-12)
    run = kernel.simulate(inputs)
    np.testing.assert_allclose(run.output, expected, atol=1e-12)
    plain = kernel.simulate(inputs, engine="python")
    np.testing.assert_array_equal(plain.output, run.output)
    assert plain.cycles == run.cycles
    assert [stage.nodes for stage in plain.stages] == [stage.nodes for stage in run.stages]


@pytest.mark.parametrize(
    "schedule",
    [
        "parallelize(i,2)",
        "parallelize(k,3)",
        "fuse(i,k,f)",
        "fuse(i,k,f), parallelize(f,2)",
        "reorder(i,j,k)",
        "scan()",
        "precompute(A(i,k)*B(k,j),T)",
    ],
)
def test_schedules(schedule: str) -> None:
    parsed = sparse.parse("C(i,j) = A(i,k)*B(k,j)", {"A": "ds[2,4]", "B": "dd[4,2]"})
    run = sparse.compile(parsed, schedule).simulate({"A": A, "B": B}, capacity=8)
    np.testing.assert_allclose(run.output, A @ B)


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int8, np.bool_])
def test_types(kind: type) -> None:
    one, other = ((3 * matrix).astype(kind) for matrix in (A, B))
    parsed = sparse.parse("C(i,j) = A(i,k)*B(k,j)", {"A": "ds[2,4]", "B": "dd[4,2]"})
    run = sparse.simulate(parsed, {"A": one, "B": other})
    assert run.tensor.dtype == kind
    np.testing.assert_allclose(run.output, one @ other, rtol=1e-5)


def test_another_semiring() -> None:
    """Padding is its zero: 9 columns in blocks of 4 have no shorter paths."""
    roads = np.where(A[:, :9] != 0, np.abs(A[:, :9]), np.inf)
    parsed = sparse.parse("C(i,j) = A(i,k)*B(k,j)", {"A": "ds[4,4]", "B": "dd[4,4]"})
    kernel = sparse.compile(parsed, semiring=sparse.MIN_PLUS)
    run = kernel.simulate({"A": roads, "B": np.abs(B[:9])})
    expected = (roads[:, :, None] + np.abs(B[None, :9])).min(axis=1)
    np.testing.assert_allclose(run.output, expected)


def stage_of(run: Any) -> SimResult:
    (stage,) = run.stages
    assert isinstance(stage, SimResult)
    return stage


@pytest.mark.parametrize("b", [2, 8, 16])
def test_products_are_an_interval_apart(b: int) -> None:
    """Through one row of blocks a matrix unit multiplies every b cycles, and ends once more."""
    n = 6
    row, column = np.ones((b, n * b)), np.ones((n * b, b))
    parsed = sparse.parse("C(i,j) = A(i,k)*B(k,j)", {"A": f"dd[{b},{b}]", "B": f"dd[{b},{b}]"})
    kernel = sparse.compile(parsed, "reorder(i,j,k)")
    stage = stage_of(kernel.simulate({"A": row, "B": column}))
    unit = stage.nodes["matrix_multiply"]
    stops, end = 1, 1
    assert unit.firings == n + stops + end
    assert unit.interval.cycles == b
    assert unit.first_firing is not None
    assert unit.last_firing == unit.first_firing + b * (unit.firings - 1)
    longer = stage_of(kernel.simulate({"A": np.ones((b, 2 * n * b)), "B": np.ones((2 * n * b, b))}))
    assert longer.cycles - stage.cycles == b * n


@pytest.mark.parametrize("b", [2, 16])
def test_the_latency_of_a_product(b: int) -> None:
    """The reducer gets it after 2*b - 1 cycles in the unit, and one in the channel."""
    blocks = f"dd[{b},{b}]"
    parsed = sparse.parse("C(i,j) = A(i,k)*B(k,j)", {"A": blocks, "B": blocks})
    ones = {"A": np.ones((b, b)), "B": np.ones((b, b))}
    nodes = stage_of(sparse.compile(parsed, "reorder(i,j,k)").simulate(ones)).nodes
    multiplied = nodes["matrix_multiply"].first_firing
    assert multiplied is not None
    assert nodes["reduce_k"].first_firing == multiplied + 2 * b - 1 + 1


@pytest.mark.parametrize("b", [4, pytest.param(16, marks=pytest.mark.slow)])
def test_masked_attention(b: int) -> None:
    """Two products, a mask and a softmax between them: equal values, in far fewer cycles."""
    inputs = attention_inputs(4 * b, 2 * b, b, seed=b)
    by_element = sparse.program(ATTENTION, formats={"M": "ds"})
    formats = {"M": f"ds[{b},{b}]", "Q": f"dd[{b},{b}]", "V": f"dd[{b},{b}]"}
    in_blocks = sparse.program(ATTENTION, formats=formats)
    plain, blocks = by_element.simulate(inputs), in_blocks.simulate(inputs)
    np.testing.assert_allclose(blocks["O"], attended(**inputs), rtol=1e-10)
    np.testing.assert_allclose(blocks["O"], plain["O"], rtol=1e-10)
    np.testing.assert_allclose(blocks["S"], plain["S"], rtol=1e-10)
    assert blocks.cycles <= plain.cycles / (0.5 * b)
    fused = in_blocks.fuse("layer").simulate(inputs)
    np.testing.assert_allclose(fused["O"], blocks["O"], rtol=1e-10)
    assert fused.cycles < blocks.cycles
    assert fused.cycles <= by_element.fuse("layer").simulate(inputs).cycles / (0.5 * b)


def test_attention_of_ragged_sizes() -> None:
    """The last blocks are padded: no row has more keys, and no query more than its own."""
    inputs = attention_inputs(21, 10, 3, seed=1)
    formats = {"M": "ds[4,4]", "Q": "dd[4,4]", "V": "dd[4,4]"}
    program = sparse.program(ATTENTION, formats=formats)
    inputs["M"] = np.kron(np.ones((6, 6)), np.ones((4, 4)))[:21, :21]
    np.testing.assert_allclose(program.simulate(inputs)["O"], attended(**inputs), rtol=1e-10)
    inputs["Q"] -= 100  # all scores are far below the zeros of the padding
    np.testing.assert_allclose(program.simulate(inputs)["O"], attended(**inputs), rtol=1e-8)
    with pytest.raises(UserError, match="the last block along") as refused:
        program.fuse("layer").simulate(inputs)
    assert "stored one by one" in str(refused.value)


def test_functions_of_rows() -> None:
    program = sparse.program(
        """
        N(i,j) = layernorm(j; X(i,j))
        m(i) = mean(j; X(i,j))
        h(i) = max(j; X(i,j))
        """,
        formats={"X": "dd[4,4]"},
    )
    x = np.random.default_rng(0).normal(size=(7, 8)) - 5
    result = program.simulate({"X": x})
    centered = x - x.mean(1, keepdims=True)
    expected = centered / np.sqrt((centered**2).mean(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(result["N"], expected)
    np.testing.assert_allclose(result["m"], x.mean(1))
    np.testing.assert_allclose(result["h"], x.max(1))


def test_words_of_blocks() -> None:
    parsed = sparse.parse("y(i) = A(i,j)*x(j)", {"A": "ds[4,4]"})
    run = sparse.simulate(parsed, {"A": np.eye(8), "x": np.ones(8)})
    assert run.words["y"] == sparse.Words(loaded=0, stored=8)
    values, positions, coordinates = 2 * 16, 4, 2
    assert run.words["A"].loaded == values + positions + coordinates
    assert run.words["x"].loaded == 2 * 4


def compared(seed: int) -> None:
    """A random program in blocks against numpy, each statement alone and streamed."""
    case = random_case(seed)
    run = case.in_blocks.simulate(case.inputs)
    for name, expected in case.expected.items():
        np.testing.assert_allclose(run[name], expected, atol=1e-9, err_msg=f"{seed} {name}")
    last = case.last
    try:
        result = case.in_blocks.fuse("layer").simulate(case.inputs)
    except UserError as refused:
        if "the last block along" in refused.message:
            return
        raise
    np.testing.assert_allclose(result[last], case.expected[last], atol=1e-9, err_msg=str(seed))


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(seed: int) -> None:
    compared(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 60))
def test_many_random_programs(seed: int) -> None:
    compared(seed)


# What is refused.

PRODUCT = "C(i,j) = A(i,k)*B(k,j)"
FORMATS = {"A": "ds[2,4]", "B": "dd[4,2]", "C": "dd[2,2]"}

WRONG: tuple[tuple[str, Callable[[], object]], ...] = (
    ("unknown level kind", lambda: Tensor("A", "dx[2,2]")),
    ("does not say a format", lambda: Tensor("A", "ds[2,2")),
    ("does not say a format", lambda: Tensor("A", "ds[]")),
    ("does not say a format", lambda: Tensor("A", "ds[a,2]")),
    ("is not the size of a block of A", lambda: Tensor("A", "ds[2]")),
    ("is not the size of a block of A", lambda: Tensor("A", "ds", block=(2, 0))),
    ("is not the size of a block of A", lambda: Tensor("A", "ds", block=2)),
    ("is not the size of a block of A", lambda: Tensor("A", "ds", block="22")),  # type: ignore[arg-type]
    ("a block of A has too many elements", lambda: Tensor("A", "ds[128,64]")),
    ("A is a list of coordinates", lambda: Tensor("A", "uq[2,2]")),
    ("cannot be stored in blocks", lambda: Tensor("A", sparse.bcsr(2, 2), block=(2, 2))),
    ("cannot be stored in blocks", lambda: Tensor("A", "ds[2,2]", block=(2, 2))),
    (
        "k is divided in two ways: blocks of 4 in A",
        lambda: sparse.parse(PRODUCT, {"A": "ds[2,4]", "B": "dd[2,2]"}),
    ),
    (
        "blocks of 4 in A.i,k. and single elements in B",
        lambda: sparse.parse(PRODUCT, {"A": "ds[2,4]", "B": "dd"}),
    ),
    ("is a diagonal of a tensor of blocks", lambda: sparse.parse("y(i)=A(i,i)", {"A": "ds[2,2]"})),
    ("stored in blocks, and this directive", lambda: product("split(k,k0,k1,2)")),
    ("stored in blocks, and this directive", lambda: product("vectorize(j,2)")),
    ("stored in blocks, and this directive", lambda: product("drop_zeros()")),
    ("external functions compute elements", lambda: product("map(A(i,k)*B(k,j), gemm)")),
    ("a search chooses the levels", lambda: sparse.search(parsed(), {"A": A, "B": B})),
    (
        "the last block along k goes beyond its end",
        lambda: sparse.simulate(
            sparse.parse("y(i) = sum(k, exp(A(i,k)))", {"A": "dd[2,4]"}), {"A": A}
        ),
    ),
    (
        "a value would have a block along i, j, k",
        lambda: sparse.compile(
            sparse.parse(
                "y(i,j) = sum(k, relu(A(i,k)*B(k,j)))", {"A": "dd[32,32]", "B": "dd[32,32]"}
            )
        ),
    ),
)


def parsed() -> Any:
    return sparse.parse(PRODUCT, FORMATS)


def product(schedule: str) -> object:
    return sparse.compile(parsed(), schedule)


@pytest.mark.parametrize(("text", "made"), WRONG)
def test_refused(text: str, made: Callable[[], object]) -> None:
    with pytest.raises(UserError, match=text):
        made()


def test_the_hint_for_different_sizes_is_right() -> None:
    with pytest.raises(UserError) as refused:
        sparse.parse(PRODUCT, {"A": "ds[2,4]", "B": "dd"})
    assert refused.value.hint == "store B as dd:0,1[4,1]"
    sparse.parse(PRODUCT, {"A": "ds[2,4]", "B": "dd:0,1[4,1]"})


def test_a_search_of_a_program_is_refused() -> None:
    program = sparse.program(ATTENTION, formats={"M": "ds[4,4]"})
    with pytest.raises(UserError, match="a search bounds the cycles of elements"):
        program.search(attention_inputs(8, 4, 4, seed=0))


@pytest.mark.parametrize("target", ["verilog", "vitis_hls", "opencl_fpga", "cgra_tia"])
def test_backends_refuse_blocks(target: str, tmp_path: Path) -> None:
    inputs: Mapping[str, Array] = {"A": A, "B": B}
    with pytest.raises(UserError, match="an interval or a latency of"):
        t2s.emit(sparse.compile(parsed()), target, tmp_path, inputs)


def test_capstan_refuses_blocks() -> None:
    with pytest.raises(UserError, match="which Capstan's memories have no form for"):
        sparse.compile(parsed(), target="capstan")


def test_operators_in_python() -> None:
    i, j, k = Var("i"), Var("j"), Var("k")
    left, right = Tensor("A", "ds", block=(2, 4)), Tensor("B", "dd", block=(4, 2))
    result = Tensor("C", "dd", block=(2, 2))
    result[i, j] = left[i, k] * right[k, j]
    kernel = sparse.compile(result)
    assert "i, j in blocks of 2\nk in blocks of 4\n" in str(kernel)
    np.testing.assert_allclose(kernel.simulate({"A": A, "B": B}).output, A @ B)


def test_the_busiest_block_of_a_program() -> None:
    """A matrix unit is taken for an interval by each firing."""
    program = sparse.program(f"{PRODUCT}\ny(i) = C(i,j)", formats=FORMATS)
    result = program.simulate({"A": A, "B": B})
    unit = stage_of(result.runs[0].result).nodes["matrix_multiply"]
    name, taken = result.table.rows[0][3:5]
    assert name == "matrix_multiply"
    assert taken == f"{unit.busy + unit.waiting:,}"
    assert unit.waiting == (unit.firings - 1) * 3
