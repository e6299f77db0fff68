"""TTM, C[i, j, k] += A[i, j, l] * B[l, k]: a tensor times a matrix, on 8 x 11 PEs of 16 lanes.

The design of the T2S-Tensor paper (FCCM 2019, Tables III and IV).  B is stored transposed, so that
both operands are contiguous along l and are loaded as vectors.

As in examples/gemm/systolic.py, loaders read each value once for a whole tile, feeders scatter and
buffer what they load, and results are gathered to one unloader, which stores vectors along k.
"""

from dataclasses import dataclass

import numpy as np

import t2s
from t2s import Float, Func, ImageParam, RDom, Var


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The array of PEs along j and k, the tile of i, j, k in each, the blocks of i, j, k.

    A result is the sum over ``l`` steps of ``lanes`` products.
    """

    rows: int
    columns: int
    tile: tuple[int, int, int]
    blocks: tuple[int, int, int]
    l: int  # noqa: E741
    lanes: int


TINY = Sizes(rows=2, columns=3, tile=(2, 2, 2), blocks=(2, 1, 1), l=2, lanes=4)
SMALL = Sizes(rows=8, columns=11, tile=(4, 4, 16), blocks=(1, 1, 2), l=32, lanes=16)
PUBLISHED = Sizes(rows=8, columns=11, tile=(8, 8, 16), blocks=(8, 4, 4), l=64, lanes=16)


def design(s: Sizes) -> Func:
    """C for one set of sizes."""
    A, B = ImageParam(Float(32), 3, name="A"), ImageParam(Float(32), 2, name="B")
    C, i, j, k = Func("C"), Var("i"), Var("j"), Var("k")
    l = RDom(0, s.l * s.lanes, name="l")  # noqa: E741
    C[i, j, k] = 0.0
    C[i, j, k] += A[i, j, l] * B[k, l]
    C.bound(i, 0, s.blocks[0] * s.tile[0])
    C.bound(j, 0, s.blocks[1] * s.tile[1] * s.rows)
    C.bound(k, 0, s.blocks[2] * s.tile[2] * s.columns)
    it, jt, kt, jj, kk, ll = t2s.variables("it jt kt jj kk ll")
    C.tile(k, j, kk, jj, s.columns, s.rows).tile(k, j, i, kt, jt, it, *s.tile[::-1])
    C.split(l, l, ll, s.lanes).reorder(ll, kk, jj, kt, jt, it, l)
    C.unroll(jj, kk).vload(A, B)
    A_loader, A_feeder, B_loader, B_feeder = t2s.funcs("A_loader A_feeder B_loader B_feeder")
    C_drainer, C_collector, C_unloader = t2s.funcs("C_drainer C_collector C_unloader")
    C.isolate_producer_chain(A, A_loader, A_feeder)
    C.isolate_producer_chain(B, B_loader, B_feeder)
    C.isolate_consumer_chain(C_drainer, C_collector, C_unloader)
    C.forward(A_feeder, kk).forward(B_feeder, jj)
    A_loader.remove(kt)
    A_feeder.scatter(A_loader, jj).buffer(A_loader, l)
    B_loader.remove(it, jt)
    B_feeder.scatter(B_loader, kk).buffer(B_loader, l)
    C_drainer.gather(C, jj)
    C_collector.gather(C_drainer, kk)
    C_unloader.vstore(C)
    return C


C = design(SMALL)


def main() -> None:
    graph = C.lower()
    generator = np.random.default_rng(0)
    inputs = {name: generator.random(graph.tensor(name).shape, np.float32) for name in ("A", "B")}
    result = t2s.simulate(graph, inputs, device="arria10")
    expected = np.einsum("ijl,kl->ijk", inputs["A"], inputs["B"])
    np.testing.assert_allclose(result.outputs["C"], expected, rtol=1e-4)
    print(result)
    print(t2s.resources(graph, device="arria10"))


if __name__ == "__main__":
    main()
