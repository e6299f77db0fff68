"""A layer of 2-D convolutions, O[n, y, x, co] += I[n, y + ky, x + kx, ci] * W[co, ky, kx, ci].

Rows of the image times output channels make the array of PEs, 10 x 8 on an Arria 10 and 14 x 16 on
a Stratix 10; the input channels are the 16 lanes, so they are innermost in memory.

As in examples/gemm/systolic.py, loaders read each value once for a whole tile, feeders scatter and
buffer what they load, and results are gathered to one unloader, which stores vectors along co.
"""

from dataclasses import dataclass

import numpy as np

import t2s
from t2s import Float, Func, ImageParam, RDom


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The array of PEs along y and co, the tile of y, x, co in each, the blocks of y, x, co.

    ``images`` images; a result is the sum over ``kernel`` x ``kernel`` places of ``channels`` steps
    of ``lanes`` products.
    """

    rows: int
    columns: int
    tile: tuple[int, int, int]
    blocks: tuple[int, int, int]
    images: int
    kernel: int
    channels: int
    lanes: int


TINY = Sizes(
    rows=2, columns=2, tile=(1, 3, 2), blocks=(2, 1, 1), images=1, kernel=2, channels=2, lanes=2
)
SMALL = Sizes(
    rows=10, columns=8, tile=(2, 4, 16), blocks=(1, 1, 1), images=4, kernel=3, channels=2, lanes=16
)
ARRIA10 = Sizes(
    rows=10,
    columns=8,
    tile=(2, 32, 16),
    blocks=(3, 2, 2),
    images=64,
    kernel=3,
    channels=16,
    lanes=16,
)
STRATIX10 = Sizes(
    rows=14,
    columns=16,
    tile=(2, 32, 16),
    blocks=(2, 2, 1),
    images=64,
    kernel=3,
    channels=16,
    lanes=16,
)


def design(s: Sizes) -> Func:
    """O for one set of sizes."""
    I, W = ImageParam(Float(32), 4, name="I"), ImageParam(Float(32), 4, name="W")  # noqa: E741
    O, n, y, x, co = Func("O"), *t2s.variables("n y x co")  # noqa: E741
    ky, kx, ci = RDom(0, s.kernel, 0, s.kernel, 0, s.channels * s.lanes, name="ky kx ci")
    O[n, y, x, co] = 0.0
    O[n, y, x, co] += I[n, y + ky, x + kx, ci] * W[co, ky, kx, ci]
    O.bound(n, 0, s.images).bound(y, 0, s.blocks[0] * s.tile[0] * s.rows)
    O.bound(x, 0, s.blocks[1] * s.tile[1]).bound(co, 0, s.blocks[2] * s.tile[2] * s.columns)
    yt, xt, ct, yy, cc, cii = t2s.variables("yt xt ct yy cc cii")
    O.tile(co, y, cc, yy, s.columns, s.rows).tile(co, x, y, ct, xt, yt, *s.tile[::-1])
    O.split(ci, ci, cii, s.lanes).reorder(cii, cc, yy, ct, xt, yt, ci, kx, ky)
    O.unroll(yy, cc).vload(I, W)
    I_loader, I_feeder, W_loader, W_feeder = t2s.funcs("I_loader I_feeder W_loader W_feeder")
    O_drainer, O_collector, O_unloader = t2s.funcs("O_drainer O_collector O_unloader")
    O.isolate_producer_chain(I, I_loader, I_feeder)
    O.isolate_producer_chain(W, W_loader, W_feeder)
    O.isolate_consumer_chain(O_drainer, O_collector, O_unloader)
    O.forward(I_feeder, cc).forward(W_feeder, yy)
    I_loader.remove(ct)
    I_feeder.scatter(I_loader, yy).buffer(I_loader, ci)
    W_loader.remove(yt, xt)
    W_feeder.scatter(W_loader, cc).buffer(W_loader, ci)
    O_drainer.gather(O, yy)
    O_collector.gather(O_drainer, cc)
    O_unloader.vstore(O)
    return O


def expected(inputs: dict[str, np.ndarray]) -> np.ndarray:
    """The same layer with numpy."""
    kernel = inputs["W"].shape[1:3]
    windows = np.lib.stride_tricks.sliding_window_view(inputs["I"], kernel, (1, 2))
    return np.einsum("nyxcuv,ouvc->nyxo", windows, inputs["W"])


O = design(SMALL)  # noqa: E741


def main() -> None:
    graph = O.lower()
    generator = np.random.default_rng(0)
    inputs = {name: generator.random(graph.tensor(name).shape, np.float32) for name in ("I", "W")}
    result = t2s.simulate(graph, inputs, device="arria10")
    np.testing.assert_allclose(result.outputs["O"], expected(inputs), rtol=1e-4)
    print(result)
    print(t2s.resources(graph, device="arria10"))


if __name__ == "__main__":
    main()
