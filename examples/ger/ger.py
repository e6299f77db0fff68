"""GER, A_out = A + alpha * x * y': a rank-1 update, in vectors of 16.

Nothing is summed up and every element of A is used once, so memory sets the pace: four PEs are
enough to take 96 % of the bandwidth of an Arria 10 board.  x and y are loaded once for each block
of A and kept on chip; y goes from PE to PE.
"""

from dataclasses import dataclass

import numpy as np

import t2s
from t2s import Float, Func, ImageParam, Param, Var


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """``blocks`` blocks of ``pes * rows`` rows and ``steps * lanes`` columns."""

    pes: int
    rows: int
    steps: int
    lanes: int
    blocks: tuple[int, int]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of A."""
        return self.blocks[0] * self.pes * self.rows, self.blocks[1] * self.steps * self.lanes

    @property
    def bound(self) -> float:
        """Cycles for A and the result at the bandwidth of the board: 34.1 GB/s at 215 MHz."""
        return 2 * 4 * self.shape[0] * self.shape[1] / (34.1e9 / 215e6)


TINY = Sizes(pes=3, rows=2, steps=2, lanes=4, blocks=(1, 2))
SMALL = Sizes(pes=4, rows=32, steps=32, lanes=16, blocks=(4, 1))


def design(s: Sizes) -> Func:
    """A_out for one set of sizes."""
    A, alpha = ImageParam(Float(32), 2, name="A"), Param(Float(32), name="alpha")
    x, y = ImageParam(Float(32), 1, name="x"), ImageParam(Float(32), 1, name="y")
    i, k, A_out = Var("i"), Var("k"), Func("A_out")
    A_out[i, k] = A[i, k] + alpha * x[i] * y[k]
    A_out.bound(i, 0, s.shape[0]).bound(k, 0, s.shape[1])
    ii, iii, kk, kkk = t2s.variables("ii iii kk kkk")
    A_out.tile(k, i, kk, ii, s.steps * s.lanes, s.pes * s.rows)
    A_out.split(ii, ii, iii, s.pes).split(kk, kk, kkk, s.lanes).reorder(kkk, iii, ii, kk)
    A_out.unroll(iii).vload(A, y).vstore(A_out)
    A_loader, A_unloader = t2s.funcs("A_loader A_unloader")
    x_loader, x_feeder, y_loader, y_feeder = t2s.funcs("x_loader x_feeder y_loader y_feeder")
    A_out.isolate_producer(A, A_loader).isolate_consumer(A_unloader)
    A_out.isolate_producer_chain(x, x_loader, x_feeder)
    A_out.isolate_producer_chain(y, y_loader, y_feeder).forward(y_feeder, iii)
    x_loader.remove(kk)
    x_feeder.buffer(x_loader, k)
    y_loader.remove(ii)
    y_feeder.buffer(y_loader, kk)
    return A_out


def problem(s: Sizes) -> tuple[dict[str, object], np.ndarray]:
    """Random inputs, and the result."""
    generator = np.random.default_rng(0)
    a, x, y = (generator.random(n, np.float32) for n in (s.shape, s.shape[0], s.shape[1]))
    return {"A": a, "x": x, "y": y, "alpha": 2.0}, a + 2 * np.outer(x, y)


A_out = design(SMALL)


def main() -> None:
    inputs, expected = problem(SMALL)
    result = t2s.simulate(A_out, inputs, device="arria10")
    np.testing.assert_allclose(result.outputs["A_out"], expected, rtol=1e-5)
    print(f"the board's bandwidth needs {SMALL.bound:.0f} cycles")
    print(f"{result.cycles} cycles, {SMALL.bound / result.cycles:.1%} of the bound")


if __name__ == "__main__":
    main()
