"""MTTKRP, D[i, j] += A[i, k, l] * B[k, j] * C[l, j], on 8 x 9 PEs of 16 lanes.

The design of the T2S-Tensor paper (FCCM 2019, Tables III and IV).  C is stored transposed, so that
A and C are contiguous along l.  B does not depend on l: it multiplies the sum over the lanes.

As in examples/gemm/systolic.py, loaders read each value once for a whole tile, feeders scatter and
buffer what they load, and results are gathered to one unloader, which stores vectors along j.
"""

from dataclasses import dataclass

import numpy as np

import t2s
from t2s import Float, Func, ImageParam, RDom, Var


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The array of PEs, the tile of results in each, the blocks, and the sums.

    A result is the sum over ``k`` steps of ``l`` steps of ``lanes`` products.
    """

    rows: int
    columns: int
    tile: tuple[int, int]
    blocks: tuple[int, int]
    k: int
    l: int  # noqa: E741
    lanes: int


TINY = Sizes(rows=2, columns=3, tile=(3, 2), blocks=(1, 2), k=2, l=2, lanes=4)
SMALL = Sizes(rows=8, columns=9, tile=(16, 8), blocks=(1, 1), k=16, l=4, lanes=16)
PUBLISHED = Sizes(rows=8, columns=9, tile=(16, 16), blocks=(8, 4), k=256, l=32, lanes=16)


def design(s: Sizes) -> Func:
    """D for one set of sizes."""
    A, B = ImageParam(Float(32), 3, name="A"), ImageParam(Float(32), 2, name="B")
    C, D, i, j = ImageParam(Float(32), 2, name="C"), Func("D"), Var("i"), Var("j")
    k, l = RDom(0, s.k, 0, s.l * s.lanes, name="k l")  # noqa: E741
    D[i, j] = 0.0
    D[i, j] += A[i, k, l] * B[k, j] * C[j, l]
    D.bound(i, 0, s.blocks[0] * s.tile[0] * s.rows).bound(j, 0, s.blocks[1] * s.tile[1] * s.columns)
    it, jt, ii, jj, ll = t2s.variables("it jt ii jj ll")
    D.tile(j, i, jj, ii, s.columns, s.rows).tile(j, i, jt, it, s.tile[1], s.tile[0])
    D.split(l, l, ll, s.lanes).reorder(ll, jj, ii, jt, it, l, k)
    D.unroll(ii, jj).vload(A, C)
    A_loader, A_feeder, B_loader, B_feeder = t2s.funcs("A_loader A_feeder B_loader B_feeder")
    C_loader, C_feeder = t2s.funcs("C_loader C_feeder")
    D_drainer, D_collector, D_unloader = t2s.funcs("D_drainer D_collector D_unloader")
    D.isolate_producer_chain(A, A_loader, A_feeder).isolate_producer_chain(B, B_loader, B_feeder)
    D.isolate_producer_chain(C, C_loader, C_feeder)
    D.isolate_consumer_chain(D_drainer, D_collector, D_unloader)
    D.forward(A_feeder, jj).forward(B_feeder, ii).forward(C_feeder, ii)
    A_loader.remove(jt)
    A_feeder.scatter(A_loader, ii).buffer(A_loader, l)
    B_loader.remove(it, l)
    B_feeder.scatter(B_loader, jj).buffer(B_loader, k)
    C_loader.remove(it)
    C_feeder.scatter(C_loader, jj).buffer(C_loader, l)
    D_drainer.gather(D, ii)
    D_collector.gather(D_drainer, jj)
    D_unloader.vstore(D)
    return D


D = design(SMALL)


def main() -> None:
    graph = D.lower()
    generator = np.random.default_rng(0)
    inputs = {name: generator.random(graph.tensor(name).shape, np.float32) for name in "ABC"}
    result = t2s.simulate(graph, inputs, device="arria10")
    expected = np.einsum("ikl,kj,jl->ij", inputs["A"], inputs["B"], inputs["C"])
    np.testing.assert_allclose(result.outputs["D"], expected, rtol=1e-4)
    print(result)
    print(t2s.resources(graph, device="arria10"))


if __name__ == "__main__":
    main()
