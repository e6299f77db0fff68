"""A matrix multiply of int8 whose results are int8 again: a quantized layer of a neural network.

The sums are int32.  Behind the array, and not after it, each of them gets the bias of its column,
is scaled by a fixed-point number, rounded and clipped (as in gemmlowp or TensorFlow Lite): ``Q``
takes ``C`` from a stream.  A row of requantizers is enough for the whole array, since a sum takes
many cycles, and int32 never goes to memory.

Run it with ``python examples/gemm/int8.py``; ``t2s run`` takes its smallest size.
"""

from dataclasses import dataclass

import numpy as np

import t2s
from t2s import Func, ImageParam, Int, RDom


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """``pes`` x ``pes`` PEs multiply ``lanes`` pairs each, with a tile of ``tile`` x ``tile`` sums.

    ``blocks`` of rows and columns; a sum has ``steps`` x ``depth`` x ``lanes`` products, of which
    ``depth`` x ``lanes`` are in the buffers of the feeders at a time.
    """

    pes: int
    lanes: int
    tile: int
    blocks: int
    steps: int
    depth: int

    @property
    def side(self) -> int:
        """Rows of A, and columns of B."""
        return self.blocks * self.tile * self.pes

    @property
    def products(self) -> int:
        """In each sum."""
        return self.steps * self.depth * self.lanes


TINY = Sizes(pes=2, lanes=2, tile=2, blocks=2, steps=2, depth=4)
SMALL = Sizes(pes=8, lanes=8, tile=8, blocks=2, steps=8, depth=4)


def design(n: Sizes) -> Func:
    """Q of int8; B is stored transposed, so that the lanes are side by side in memory."""
    A, B = ImageParam(Int(8), 2, name="A"), ImageParam(Int(8), 2, name="B")
    bias, scale, shift = (ImageParam(Int(32), 1, name=name) for name in ("bias", "scale", "shift"))
    i, j, x, y = t2s.variables("i j x y")
    k = RDom(0, n.products, name="k")
    C, Q = t2s.funcs("C Q")
    C[i, j] = t2s.cast(Int(32), 0)
    C[i, j] += t2s.cast(Int(32), A[i, k]) * t2s.cast(Int(32), B[j, k])
    wide, right = t2s.cast(Int(64), C[x, y] + bias[y]), t2s.cast(Int(64), shift[y])
    half = t2s.cast(Int(64), 1) << (right - 1)  # of what the last bit stands for, to round
    scaled = (wide * t2s.cast(Int(64), scale[y]) + half) >> right
    Q[x, y] = t2s.cast(Int(8), t2s.max(t2s.min(scaled, 127), -128))
    Q.bound(x, 0, n.side).bound(y, 0, n.side)

    kk, kkk, jj, ii, jjj, iii = t2s.variables("kk kkk jj ii jjj iii")
    A_loader, A_feeder, B_loader, B_feeder = t2s.funcs("A_loader A_feeder B_loader B_feeder")
    C_drainer, C_collector = t2s.funcs("C_drainer C_collector")
    block = n.tile * n.pes
    C.tile(k, j, i, kk, jj, ii, n.depth * n.lanes, block, block)
    C.tile(kk, jj, ii, kkk, jjj, iii, n.lanes, n.pes, n.pes).reorder(jj, ii, kk)
    C.unroll(iii, jjj).vload(A, B)
    C.isolate_producer_chain(A, A_loader, A_feeder).isolate_producer_chain(B, B_loader, B_feeder)
    C.forward(A_feeder, jjj).forward(B_feeder, iii)
    A_loader.remove(jj)
    A_feeder.scatter(A_loader, iii).buffer(A_loader, k)
    B_loader.remove(ii)
    B_feeder.scatter(B_loader, jjj).buffer(B_loader, k)

    # The sums leave at one side of the array, a row of PEs after the other.  The requantizers take
    # them in that order, one for each column, and the results are stored as vectors.
    C.isolate_consumer_chain(C_drainer, C_collector)
    C_drainer.gather(C, iii)
    xx, yy, xxx, yyy = t2s.variables("xx yy xxx yyy")
    Q_collector, Q_unloader = t2s.funcs("Q_collector Q_unloader")
    Q.tile(y, x, yy, xx, block, block).tile(yy, xx, yyy, xxx, n.pes, n.pes)
    Q.reorder(yyy, xxx, yy, xx, y, x).unroll(yyy).stream(C)
    Q.isolate_consumer_chain(Q_collector, Q_unloader)
    Q_collector.gather(Q, yyy)
    Q_unloader.vstore(Q)
    return Q


def layer(n: Sizes, seed: int = 0) -> dict[str, np.ndarray]:
    """All numbers that int8 has, and scales with which few results are clipped."""
    generator = np.random.default_rng(seed)
    columns, largest = n.side, 64 * 64 * n.products**0.5
    return {
        "A": generator.integers(-128, 128, (n.side, n.products), np.int8),
        "B": generator.integers(-128, 128, (columns, n.products), np.int8),
        "bias": generator.integers(-1000, 1000, columns, np.int32),
        # the scale is a number from 0.5 to 1, of 31 bits, and shifted further for long sums
        "scale": generator.integers(1 << 30, (1 << 31) - 1, columns, np.int32),
        "shift": np.full(columns, 31 + int(np.log2(largest / 64)), np.int32),
    }


def expected(inputs: dict[str, np.ndarray]) -> np.ndarray:
    """The same layer with numpy."""
    sums = inputs["A"].astype(np.int32) @ inputs["B"].T.astype(np.int32) + inputs["bias"]
    shift = inputs["shift"].astype(np.int64)
    scaled = (sums * inputs["scale"].astype(np.int64) + (np.int64(1) << (shift - 1))) >> shift
    return np.clip(scaled, -128, 127).astype(np.int8)


def inputs(seed: int) -> dict[str, np.ndarray]:
    """Those of ``t2s run``: shifts have to be positive."""
    return layer(TINY, seed)


Q = design(TINY)


def main() -> None:
    graph, given = design(SMALL).lower(), layer(SMALL)
    result = t2s.simulate(graph, given, device="arria10")
    np.testing.assert_array_equal(result.outputs["Q"], expected(given))
    clipped = np.isin(expected(given), (-128, 127)).mean()
    print(result)
    print(f"\n{clipped:.1%} of the results are clipped\n")
    print(t2s.resources(graph, device="arria10"))


if __name__ == "__main__":
    main()
