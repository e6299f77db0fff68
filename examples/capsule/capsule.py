"""A layer of capsule convolutions: elements of images and of filters are 4 x 4 matrices.

V[n, co, p] += P[n, 2 * (p % 7) + ky, 2 * (p // 7) + kx, ci] W[co, ky, kx, ci], a matrix product:
the 7 x 7 places of the result, two pixels apart, are counted by p, and padded to a multiple of the
array.  Places times output channels make the array of PEs, 10 x 8 on an Arria 10 and 14 x 8 on a
Stratix 10, and input channels the lanes.  On the Stratix 10 a vector has 32 lanes, 128 bytes, of
which a load unit gets half in each cycle: the layer is bound by its loads.

As in examples/gemm/systolic.py, loaders read each value once for a whole tile, feeders scatter and
buffer what they load, and results are gathered to one unloader, which stores vectors along co.
"""

from dataclasses import dataclass

import numpy as np

import t2s
from t2s import Float, Func, ImageParam, RDom

SIDE, STRIDE = 7, 2  # places along one side of the result, and pixels from one to the next


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The array of PEs along p and co, the tile of n, p, co in each, the blocks of n.

    Elements are ``matrix`` x ``matrix``; a result is the sum over ``matrix`` inner products of
    ``kernel`` x ``kernel`` places of ``channels`` steps of ``lanes`` products.
    """

    rows: int
    columns: int
    tile: tuple[int, int, int]
    blocks: int
    matrix: int
    kernel: int
    channels: int
    lanes: int


TINY = Sizes(rows=2, columns=2, tile=(1, 2, 1), blocks=2, matrix=2, kernel=2, channels=1, lanes=4)
SMALL = Sizes(
    rows=10, columns=8, tile=(2, 2, 8), blocks=2, matrix=2, kernel=3, channels=2, lanes=16
)
ARRIA10 = Sizes(
    rows=10, columns=8, tile=(4, 5, 4), blocks=1024, matrix=4, kernel=3, channels=2, lanes=16
)
STRATIX10 = Sizes(
    rows=14, columns=8, tile=(4, 4, 4), blocks=1024, matrix=4, kernel=3, channels=1, lanes=32
)


def design(s: Sizes) -> Func:
    """V for one set of sizes."""
    P, W = ImageParam(Float(32), 6, name="P"), ImageParam(Float(32), 6, name="W")
    V, n, co, p, my, mx = Func("V"), *t2s.variables("n co p my mx")
    extents = 0, s.matrix, 0, s.kernel, 0, s.kernel, 0, s.channels * s.lanes
    mk, ky, kx, ci = RDom(*extents, name="mk ky kx ci")
    y, x = STRIDE * (p % SIDE) + ky, STRIDE * (p // SIDE) + kx
    V[n, p, my, mx, co] = 0.0
    V[n, p, my, mx, co] += P[n, mk, mx, y, x, ci] * W[co, my, mk, ky, kx, ci]
    V.bound(n, 0, s.blocks * s.tile[0]).bound(p, 0, s.tile[1] * s.rows)
    V.bound(my, 0, s.matrix).bound(mx, 0, s.matrix).bound(co, 0, s.tile[2] * s.columns)
    nt, pp, cc, cii = t2s.variables("nt pp cc cii")
    V.split(n, n, nt, s.tile[0]).split(p, p, pp, s.rows).split(co, co, cc, s.columns)
    V.split(ci, ci, cii, s.lanes).reorder(cii, cc, pp, p, my, mx, co, nt, ci, kx, ky, mk)
    P_loader, P_feeder, W_loader, W_feeder = t2s.funcs("P_loader P_feeder W_loader W_feeder")
    V_drainer, V_collector, V_unloader = t2s.funcs("V_drainer V_collector V_unloader")
    V.unroll(pp, cc).vload(P, W)
    V.isolate_producer_chain(P, P_loader, P_feeder)
    V.isolate_producer_chain(W, W_loader, W_feeder)
    V.isolate_consumer_chain(V_drainer, V_collector, V_unloader)
    V.forward(P_feeder, cc).forward(W_feeder, pp)
    P_loader.remove(co, my)
    P_feeder.scatter(P_loader, pp).buffer(P_loader, ci)
    W_loader.remove(nt, mx, p)
    W_feeder.scatter(W_loader, cc).buffer(W_loader, ci)
    V_drainer.gather(V, pp)
    V_collector.gather(V_drainer, cc)
    V_unloader.vstore(V)
    return V


def expected(inputs: dict[str, np.ndarray], places: int) -> np.ndarray:
    """The same layer with numpy."""
    kernel = inputs["W"].shape[3:5]
    windows = np.lib.stride_tricks.sliding_window_view(inputs["P"], kernel, (3, 4))
    at = np.arange(places)
    chosen = windows[:, :, :, STRIDE * (at % SIDE), STRIDE * (at // SIDE)]
    return np.einsum("nkxpcuv,oykuvc->npyxo", chosen, inputs["W"])


V = design(SMALL)


def main() -> None:
    graph = V.lower()
    generator = np.random.default_rng(0)
    inputs = {name: generator.random(graph.tensor(name).shape, np.float32) for name in ("P", "W")}
    result = t2s.simulate(graph, inputs, device="arria10")
    places = result.outputs["V"].shape[1]
    np.testing.assert_allclose(result.outputs["V"], expected(inputs, places), rtol=1e-4)
    print(result)
    print(t2s.resources(graph, device="arria10"))


if __name__ == "__main__":
    main()
