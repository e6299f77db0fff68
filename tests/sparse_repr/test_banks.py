"""The dense operand in banks: values as scipy's, conflicts as counted by hand, both engines."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy import sparse

import t2s
from t2s import Float, Func, ImageParam, RDom, Var

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "spmv"))
import cisr

from t2s.representation import Chain, MatrixParam, gallery, product_report
from tests.sampling import sampled


def banked(chain: Chain, banks: int | None) -> Func:
    A = MatrixParam(Float(32), 2, chain, name="A")
    x = ImageParam(Float(32), 1, name="x")
    p, q, r = Var("p"), RDom(0, A.values.extent(1), name="q"), Var("r")
    i, j = A.inverse_map(p, q)
    y, x_loader, x_feeder = t2s.funcs("y x_loader x_feeder")
    y[r] = 0
    y[i] += A.values[p, q] * x[j]
    y.isolate_producer_chain(x, x_loader, x_feeder)
    x_feeder.buffer(x, banks=banks)
    return y


def run(y: Func, dense: np.ndarray, engine: str = "python") -> t2s.SimResult:
    x = np.arange(1, dense.shape[1] + 1, dtype=np.float32)
    result = t2s.simulate(y, {"A": dense, "x": x}, device="arria10", engine=engine)
    np.testing.assert_array_equal(result.outputs["y"], dense @ x)
    return result


def random(rows: int, columns: int, density: float = 0.3) -> np.ndarray:
    generator = np.random.default_rng(columns)
    kept = generator.random((rows, columns)) < density
    return (kept * generator.integers(1, 9, (rows, columns))).astype(np.float32)


@sampled(
    ("banks", "shape"),
    [
        (1, (6, 5)),
        (2, (6, 5)),
        (8, (6, 5)),
        (4, (1, 1)),
        (4, (4, 0)),
        (2, (3, 70)),
        (64, (3, 70)),
    ],
    quick=2,
)
def test_any_number_of_columns_in_any_number_of_banks(banks: int, shape: tuple[int, int]) -> None:
    run(banked(gallery.cisr(1 if banks > 8 else 2), banks), random(*shape))


@sampled(
    "make",
    [
        gallery.csc,
        gallery.sliced_ell,
        gallery.blocked_csr,
        gallery.dia,
    ],
    quick=2,
)
def test_other_representations(make: object) -> None:
    run(banked(make(machines=2), 4), random(7, 9))


def test_both_engines() -> None:
    dense = random(20, 40)
    plain, native = (run(cisr.spmv(4, banks=4), dense, each) for each in ("python", "native"))
    assert plain.cycles == native.cycles
    assert plain.nodes["x_feeder_bank"].firings == native.nodes["x_feeder_bank"].firings


def test_conflicts_take_cycles() -> None:
    """A column for all 8 machines: 8 lookups in one bank of two ports, 4 cycles for each step."""
    dense = np.zeros((64, 16), np.float32)
    dense[:, 0] = 1
    apart, same = np.zeros_like(dense), dense
    apart[np.arange(64), np.arange(64) % 16] = 1
    y = banked(gallery.cisr(8), 8)
    steps = 8
    without, with_conflicts = run(y, apart), run(y, same)
    assert without.nodes["x_feeder_bank"].firings == 8 * (1 + steps)
    assert with_conflicts.nodes["x_feeder_bank"].firings == 8 * (1 + steps) + 3 * steps
    assert with_conflicts.cycles - without.cycles == 3 * steps
    report = product_report(y, with_conflicts, {"A": same})
    assert report.conflicts == 3 * steps // 8
    assert report.waits_for == "conflicts of banks"


def test_one_copy_in_place_of_one_for_each_multiplier() -> None:
    """Words of the memories of all nodes."""
    a = sparse.csr_array(random(20, 64))

    def words(y: Func) -> int:
        nodes = [n for n in t2s.lower(y, {"A": a}).machines if n.name.startswith("x_feeder")]
        kept = [(n.pe_count, r.shape) for n in nodes for r in n.registers if r.name == "kept"]
        return sum(count * shape[0] for count, shape in kept)

    assert words(cisr.spmv(4)) == 4 * 64
    assert words(cisr.spmv(4, banks=8)) == 64
