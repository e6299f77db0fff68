"""GBMV, y = alpha * A * x + beta * y for a banded matrix A, 32 multiply-adds in a cycle.

The band is stored row by row.  Rows of a block start at the same column, so that all of them meet
the same part of x, which is loaded once for each block; ``band`` shows the layout.  Every element
of A is used once: memory sets the pace.  A load unit moves 64 of the 128 bytes of A that a cycle
could use.  With two memory banks the band is cut in two along its width, A0 and A1, each half with
its own loader.  On the model of an Arria 10 board the loaders are busy in 99 % of the cycles with
one bank, and in 93 % of little more than half as many with two: while x is loaded for a block, four
units take turns at bandwidth for two and a half.
"""

from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

import t2s
from t2s import Float, Func, ImageParam, Param, RDom


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """``blocks`` blocks of ``pes * rows`` rows, rows of ``steps * lanes`` elements.

    A PE has a row of a block in every ``pes``-th place; its lanes are divided among ``banks``.
    """

    pes: int
    rows: int
    blocks: int
    steps: int
    lanes: int
    banks: int = 1

    @property
    def block(self) -> int:
        """Rows of a block."""
        return self.pes * self.rows

    @property
    def width(self) -> int:
        """Elements of a row that one bank holds."""
        return self.steps * self.lanes // self.banks

    @property
    def bound(self) -> int:
        """Cycles that the loaders of one bank need for its part of A."""
        return self.rows * self.blocks * self.width * 4 // 64


TINY = Sizes(pes=2, rows=4, blocks=2, steps=4, lanes=4)
SMALL = Sizes(pes=1, rows=16, blocks=32, steps=33, lanes=32)
TINY_BANKS = Sizes(pes=2, rows=4, blocks=2, steps=4, lanes=4, banks=2)
SMALL_BANKS = Sizes(pes=1, rows=16, blocks=32, steps=33, lanes=32, banks=2)


def design(s: Sizes) -> Func:
    """y for one set of sizes; the parts of the band are A0, A1, ..."""
    A = [ImageParam(Float(32), 2, name=f"A{bank}") for bank in range(s.banks)]
    x, y_in = ImageParam(Float(32), 1, name="x"), ImageParam(Float(32), 1, name="y_in")
    alpha, beta = Param(Float(32), name="alpha"), Param(Float(32), name="beta")
    i, b, e, k, y = *t2s.variables("i b e"), RDom(0, s.width, name="k"), Func("y")
    parts = [Func(f"x{bank}") for bank in range(s.banks)]  # of x, that meet each bank
    for bank, part in enumerate(parts):
        part[b, e] = x[b * s.block + bank * s.width + e]
    y[i] = beta * y_in[i]
    y[i] += alpha * reduce(
        add, (a[i, k] * part[i // s.block, k] for a, part in zip(A, parts, strict=True))
    )
    y.bound(i, 0, s.block * s.blocks)
    ii, iii, kk = t2s.variables("ii iii kk")
    y.split(i, i, ii, s.block).split(ii, ii, iii, s.pes).split(k, k, kk, s.lanes // s.banks)
    y.reorder(kk, iii, ii, k, i).unroll(iii).vload(*A, *parts)
    for a, part in zip(A, parts, strict=True):
        A_loader, x_loader, x_feeder = t2s.funcs(
            f"{a.name}_loader {part.name}_loader {part.name}_feeder"
        )
        y.isolate_producer(a, A_loader).isolate_producer_chain(part, x_loader, x_feeder)
        y.forward(x_feeder, iii)
        x_loader.remove(ii)
        x_feeder.buffer(x_loader, k)
    y_loader, y_unloader = t2s.funcs("y_loader y_unloader")
    y.isolate_producer(y_in, y_loader).isolate_consumer(y_unloader)
    return y


def band(s: Sizes, dense: np.ndarray, lower: int) -> dict[str, np.ndarray]:
    """The parts of a matrix with ``lower`` diagonals below its main one, as the design wants them.

    Element k of row i is ``dense[i, start + k - lower]``, where ``start`` is the first row of i's
    block.
    """
    i, k = np.ogrid[: len(dense), : s.width * s.banks]
    j = i // s.block * s.block + k - lower
    inside = (j >= 0) & (j < len(dense))
    rows = np.where(inside, dense[i, j.clip(0, len(dense) - 1)], np.float32(0))
    parts = np.split(rows, s.banks, axis=1)
    return {f"A{bank}": np.ascontiguousarray(part) for bank, part in enumerate(parts)}


def problem(s: Sizes) -> tuple[dict[str, object], np.ndarray]:
    """Random inputs, and the result."""
    generator, size = np.random.default_rng(0), s.block * s.blocks
    lower = (s.width * s.banks - s.block) // 2  # diagonals, and as many above the main one
    i, j = np.ogrid[:size, :size]
    dense = generator.random((size, size), np.float32) * (abs(i - j) <= lower)
    x, y = generator.random((2, size), np.float32)
    padded = np.pad(x, (lower, s.width * s.banks - s.block - lower))
    inputs = {"x": padded, "y_in": y, "alpha": 2.0, "beta": 3.0}
    return inputs | band(s, dense, lower), 2 * (dense @ x) + 3 * y


y = design(SMALL)


def main() -> None:
    for s in (SMALL, SMALL_BANKS):
        inputs, expected = problem(s)
        result = t2s.simulate(design(s), inputs, device="arria10")
        np.testing.assert_allclose(result.outputs["y"], expected, rtol=1e-4)
        print(f"{s.banks} x 64 bytes per cycle need {s.bound} cycles")
        print(f"{result.cycles} cycles, {s.bound / result.cycles:.1%} of the bound\n")


if __name__ == "__main__":
    main()
