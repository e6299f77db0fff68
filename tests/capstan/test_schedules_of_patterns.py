"""Directives for Capstan: what the loops become, which memories are chosen, and equal schedules."""

from __future__ import annotations

import numpy as np
import pytest

import t2s
from t2s.sparse import CapstanKernel, Schedule, Tensor, compile, csr, dense, parse, scalar
from tests.capstan.kernels import TEN

i, j, k = (t2s.Var(name) for name in "ijk")

WHERE = {
    "SpMV": "A.pos1 S; A.crd1 F; A.vals F; x.vals PS; y.vals S",
    "Residual": "A.pos1 S; A.crd1 F; A.vals F; x.vals PS; b.vals PS; y.vals S",
    "MatTransMul": "A.pos1 S; A.crd1 F; A.vals F; x.vals PS; z.vals PS; y.vals S",
    "SDDMM": "B.pos1 S; B.crd1 F; B.vals F; C_on.vals S; D_on.vals S; A.vals F",
    "TTV": "B.pos0 S; B.pos1 S; B.pos2 S; B.crd2 F; B.vals F; c.vals PS; A.vals F",
    "TTM": "B.pos0 S; B.pos1 S; B.pos2 S; B.crd2 F; B.vals F; C.vals SD; A.vals F",
    "MTTKRP": "B.pos0 S; B.pos1 S; B.pos2 S; B.crd1 F; B.crd2 F; B.vals F; C.vals SD; D.vals SD;"
    " A.vals F",
    "Plus3": "B.pos1 S; C.pos1 S; D.pos1 S; B.crd1 F; B.crd1 B; C.crd1 F; C.crd1 B; D.crd1 F;"
    " D.crd1 B; B.vals SD; C.vals SD; D.vals SD; ws.pos1 S; ws.crd1 SS; ws.vals SS; ws.crd1 F;"
    " ws.crd1 B; A.pos1 SD; A.crd1 SD; A.vals SD; A_end1 PS; ws_end1 PS",
    "InnerProd": "B.pos1 SD; B.pos2 SD; C.pos1 SD; C.pos2 SD; B.crd1 F; B.crd1 B; B.crd2 F;"
    " B.crd2 B; C.crd1 F; C.crd1 B; C.crd2 F; C.crd2 B; B.vals SD; C.vals SD",
    "Plus2": "B.pos1 SD; B.pos2 SD; C.pos1 SD; C.pos2 SD; B.crd1 F; B.crd1 B; B.crd2 F;"
    " B.crd2 B; C.crd1 F; C.crd1 B; C.crd2 F; C.crd2 B; B.vals SD; C.vals SD; A.pos1 SD;"
    " A.pos2 SD; A.crd1 SD; A.crd2 SD; A.vals SD; A_end1 PS; A_end2 PS",
}
"""The memories of [Stardust] for its kernels, but those off chip of all arrays."""

SHORT = {
    "dense SRAM": "S",
    "FIFO": "F",
    "bit vector": "B",
    "sparse SRAM": "SS",
    "partitioned sparse SRAM": "PS",
    "sparse DRAM": "SD",
}


def _compiled(name: str) -> CapstanKernel:
    kernel = TEN[name]()
    made = compile(kernel.result, kernel.schedule, target="capstan")
    assert isinstance(made, CapstanKernel)
    return made


@pytest.mark.parametrize("name", TEN)
def test_memories(name: str) -> None:
    compiled = _compiled(name)
    found = {
        f"{memory.holds or memory.name} {SHORT[memory.kind.value]}"
        for memory in compiled.patterns().declared()
        if memory.kind.value in SHORT
    }
    assert found == set(WHERE[name].split("; "))
    assert all(memory.rule for memory in compiled.patterns().declared())


def test_the_table_of_memories() -> None:
    assert _compiled("SpMV").memories().splitlines()[:1] == [
        "array   memory                   rule"
    ]
    text = _compiled("SpMV").memories()
    assert "x.vals  partitioned sparse SRAM  3: a dense vector that is brought on chip" in text
    assert "A.crd1  FIFO                     5: taken in order, each word once" in text


def _sddmm() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    a, b = Tensor("A", csr), Tensor("B", csr)
    c, d = Tensor("C", dense(2)), Tensor("D", dense(2, (1, 0)))
    a[i, j] = b[i, j] * c[i, k] * d[k, j]
    return a, b, c, d


def test_accelerate_is_what_it_stands_for() -> None:
    a, b, c, d = _sddmm()
    product = b[i, j] * c[i, k] * d[k, j]
    scheduled = Schedule().precompute(product, Tensor("t", scalar), over=())
    one = compile(a, scheduled.accelerate(k, "reduction"), target="capstan")
    on = dense(1).on_chip
    apart = (
        scheduled.precompute(c[i, k], Tensor("C_on", on), over=(k,))
        .precompute(d[k, j], Tensor("D_on", on), over=(k,))
        .parallel(k, "reduction")
    )
    other = compile(a, apart, target="capstan")
    assert str(one) == str(other)
    assert one.print_patterns() == other.print_patterns()


SDDMM_TEXT = """\
bp = 12
ip = 16
sp = 1
C_on is stored as d:0 on chip
D_on is stored as d:0 on chip
for i:  # foreach by bp
  for j:  # foreach by 1
    with D_on(k):
      for k:
        D_on(k) = D(k,j)
    with C_on(k):
      for k:
        C_on(k) = C(i,k)
    with t:
      for k:  # reduction by ip
        t += B(i,j)*C_on(k)*D_on(k)
    A(i,j) = t
"""


def test_the_loops_of_a_sampled_product() -> None:
    assert str(_compiled("SDDMM")) == SDDMM_TEXT


def test_whole_matrices_before_all_loops() -> None:
    a, _, c, d = _sddmm()
    schedule = Schedule().precompute(c[i, k], Tensor("Con", dense(2).on_chip), over=(i, k))
    schedule = schedule.precompute(d[k, j], Tensor("Don", dense(2, (1, 0)).on_chip), over=(k, j))
    kernel = compile(a, schedule, target="capstan")
    text = kernel.print_patterns()
    assert "Con <- C_vals_host[0 :+ i_size * k_size]" in text
    assert text.index("Con <-") < text.index("foreach")
    generator = np.random.default_rng(1)
    shapes = {"B": (6, 7), "C": (6, 5), "D": (5, 7)}
    inputs = {name: generator.integers(0, 3, shape) for name, shape in shapes.items()}
    inputs = {name: value.astype(np.int32) for name, value in inputs.items()}
    expected = inputs["B"] * (inputs["C"] @ inputs["D"])
    np.testing.assert_array_equal(kernel.interpret(inputs), expected)


def test_results_have_all_levels() -> None:
    scipy_sparse = pytest.importorskip("scipy.sparse")
    generator = np.random.default_rng(2)
    inputs = {
        name: (generator.integers(1, 9, (9, 40)) * (generator.random((9, 40)) < 0.2)).astype("i4")
        for name in "BCD"
    }
    kernel = TEN["Plus3"]()
    found = compile(kernel.result, kernel.schedule, target="capstan").run_patterns(inputs)
    expected = scipy_sparse.csr_array(sum(inputs.values()))
    np.testing.assert_array_equal(found.levels[1]["pos"], expected.indptr)
    np.testing.assert_array_equal(found.levels[1]["crd"], expected.indices)
    np.testing.assert_array_equal(found.values, expected.data)


def test_a_place_is_part_of_a_format() -> None:
    assert str(csr.on_chip) == "ds:0,1 on chip"
    assert csr.on_chip != csr
    assert csr.on_chip.off_chip == csr == csr.off_chip


@pytest.mark.parametrize(
    "text",
    [
        "y(i) = 0.85*sum(j, A(i,j)*x(j)) + 0.15*x(i)",
        "y(i) = 0.85*sum(j, A(i,j)*x(j)) + 0.15",
        "y(i) = x(i)*(sum(j, A(i,j)*x(j)) - x(i))",
        "y(i) = sum(j, A(i,j)*x(j))*sum(k, A(i,k)*x(k))",
    ],
)
def test_a_sum_may_be_a_factor(text: str) -> None:
    """It is a scalar inside of the loops of the result, as one that is a term."""
    kernel = compile(parse(text, {"A": csr}), target="capstan")
    matrix = np.array([[0, 2, 0, 1], [0, 0, 0, 0], [3, 0, 4, 0], [0, 0, 0, 5]], np.float32)
    inputs = {"A": matrix, "x": np.array([1, 2, -3, 4], np.float32)}
    expected = kernel.interpret(inputs, level="notation")
    assert np.allclose(kernel.interpret(inputs, level="loops"), expected)
    assert np.allclose(kernel.interpret(inputs), expected)
    by_streams = compile(parse(text, {"A": csr})).interpret(inputs)
    assert np.allclose(by_streams, expected)


@pytest.mark.parametrize("given", ["T(j),d", "T:d,j"])
def test_a_workspace_says_its_variables_in_text(given: str) -> None:
    assignment = parse("y(i)=A(i,j)*x(j)", {"A": "dd"})
    kernel = compile(assignment, f"precompute(x(j),{given})", target="capstan")
    assert "T is stored as d:0" in str(kernel)


def test_factors() -> None:
    a = Tensor("A", csr)
    x, y = Tensor("x", dense(1)), Tensor("y", dense(1))
    y[i] = a[i, j] * x[j]
    kernel = compile(y, Schedule().env("bp", 4).parallel(j, "reduction", 8), target="capstan")
    assert str(kernel).splitlines() == [
        "bp = 4",
        "ip = 16",
        "sp = 1",
        "for i:  # foreach by bp",
        "  with t:",
        "    for j:  # reduction by 8",
        "      t += A(i,j)*x(j)",
        "  y(i) = t",
    ]
