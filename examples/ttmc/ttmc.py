"""TTMc, D[i, j, k] += A[i, l, m] * B[l, j] * C[m, k]: a tensor times two matrices, on 8 x 10 PEs.

The design of the T2S-Tensor paper (FCCM 2019, Tables III and IV).  C is stored transposed, so that
A and C are contiguous along m.  B does not depend on m: it multiplies the sum over the 16 lanes.
A depends neither on j nor on k, so it enters the array in one PE and goes through all of them.

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

    A result is the sum over ``l`` steps of ``m`` steps of ``lanes`` products.
    """

    rows: int
    columns: int
    tile: tuple[int, int, int]
    blocks: tuple[int, int, int]
    l: int  # noqa: E741
    m: int
    lanes: int


TINY = Sizes(rows=2, columns=3, tile=(3, 1, 2), blocks=(1, 1, 2), l=2, m=2, lanes=4)
SMALL = Sizes(rows=8, columns=10, tile=(8, 2, 4), blocks=(1, 1, 2), l=16, m=2, lanes=16)
PUBLISHED = Sizes(rows=8, columns=10, tile=(16, 4, 4), blocks=(8, 4, 4), l=128, m=8, lanes=16)


def design(s: Sizes) -> Func:
    """D for one set of sizes."""
    A, B = ImageParam(Float(32), 3, name="A"), ImageParam(Float(32), 2, name="B")
    C, D = ImageParam(Float(32), 2, name="C"), Func("D")
    i, j, k = Var("i"), Var("j"), Var("k")
    l, m = RDom(0, s.l, 0, s.m * s.lanes, name="l m")  # noqa: E741
    D[i, j, k] = 0.0
    D[i, j, k] += A[i, l, m] * B[l, j] * C[k, m]
    D.bound(i, 0, s.blocks[0] * s.tile[0])
    D.bound(j, 0, s.blocks[1] * s.tile[1] * s.rows)
    D.bound(k, 0, s.blocks[2] * s.tile[2] * s.columns)
    it, jt, kt, jj, kk, mm = t2s.variables("it jt kt jj kk mm")
    D.tile(k, j, kk, jj, s.columns, s.rows).tile(k, j, i, kt, jt, it, *s.tile[::-1])
    D.split(m, m, mm, s.lanes).reorder(mm, kk, jj, kt, jt, it, m, l)
    D.unroll(jj, kk).vload(A, C)
    A_loader, A_feeder, B_loader, B_feeder = t2s.funcs("A_loader A_feeder B_loader B_feeder")
    C_loader, C_feeder = t2s.funcs("C_loader C_feeder")
    D_drainer, D_collector, D_unloader = t2s.funcs("D_drainer D_collector D_unloader")
    D.isolate_producer_chain(A, A_loader, A_feeder)
    D.isolate_producer_chain(B, B_loader, B_feeder)
    D.isolate_producer_chain(C, C_loader, C_feeder)
    D.isolate_consumer_chain(D_drainer, D_collector, D_unloader)
    D.forward(A_feeder, jj).forward(A_feeder, kk)
    D.forward(B_feeder, kk).forward(C_feeder, jj)
    A_loader.remove(jt, kt)
    A_feeder.buffer(A_loader, m)
    B_loader.remove(it, kt, m)
    B_feeder.scatter(B_loader, jj).buffer(B_loader, l)
    C_loader.remove(it, jt)
    C_feeder.scatter(C_loader, kk).buffer(C_loader, m)
    D_drainer.gather(D, jj)
    D_collector.gather(D_drainer, kk)
    D_unloader.vstore(D)
    return D


D = design(SMALL)


def main() -> None:
    graph = D.lower()
    generator = np.random.default_rng(0)
    inputs = {name: generator.random(graph.tensor(name).shape, np.float32) for name in "ABC"}
    result = t2s.simulate(graph, inputs, device="arria10")
    expected = np.einsum("ilm,lj,km->ijk", inputs["A"], inputs["B"], inputs["C"])
    np.testing.assert_allclose(result.outputs["D"], expected, rtol=1e-4)
    print(result)
    print(t2s.resources(graph, device="arria10"))


if __name__ == "__main__":
    main()
