"""A fast Fourier transform of radix 2 in constant geometry: all stages are wired in the same way.

Stage s makes element i of ``X[b, s]`` from elements i / 2 and i / 2 + half of the stage before.  A
complex number is a pair of functions that are computed together, and the twiddle factors are an
input.  The same recurrence is a processor or a pipeline: what differs is where its iterations are.

Run it with ``python examples/fft/fft.py``.
"""

from dataclasses import dataclass

import numpy as np

import t2s
from t2s import Float, Func, ImageParam

STEPS = (
    "one PE",
    "a PE for each element, a transform after another",
    "the same, each stage for all transforms at once",
    "a PE for each stage, an element in each cycle",
)


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """``batch`` transforms of ``2 ** stages`` points."""

    stages: int
    batch: int

    @property
    def points(self) -> int:
        return 1 << self.stages


TINY = Sizes(stages=2, batch=2)
SMALL = Sizes(stages=4, batch=32)


def design(n: Sizes, step: int = len(STEPS) - 1) -> tuple[Func, Func]:
    """Real and imaginary parts, in bit-reversed order."""
    A_re, A_im, W_re, W_im = (
        ImageParam(Float(32), 2, name=name) for name in ("A_re", "A_im", "W_re", "W_im")
    )
    b, s, i, pe, time = t2s.variables("b s i pe time")
    X_re, X_im = Func("X_re", type=Float(32)), Func("X_im", type=Float(32))
    O_re, O_im = t2s.funcs("O_re O_im")
    first, second = i // 2, i // 2 + n.points // 2
    re, im = X_re[b, s - 1, first], X_im[b, s - 1, first]
    other_re, other_im = X_re[b, s - 1, second], X_im[b, s - 1, second]
    difference_re, difference_im = re - other_re, im - other_im
    w_re, w_im = W_re[s - 1, first], W_im[s - 1, first]
    turned_re = difference_re * w_re - difference_im * w_im
    turned_im = difference_re * w_im + difference_im * w_re
    select, even = t2s.select, i % 2 == 0
    X_re[b, s, i] = select(s == 0, A_re[b, i], select(even, re + other_re, turned_re))
    X_im[b, s, i] = select(s == 0, A_im[b, i], select(even, im + other_im, turned_im))
    O_re[b, i], O_im[b, i] = X_re[b, n.stages, i], X_im[b, n.stages, i]
    # stage 0 is the input
    X_re.bound(b, 0, n.batch).bound(s, 0, n.stages + 1).bound(i, 0, n.points)
    for part in (O_re, O_im):
        part.bound(b, 0, n.batch).bound(i, 0, n.points)
    if step in (1, 2):
        X_re.unroll(i)
    if step == 2:
        # each PE has another transform to go on with while the results of a stage are computed
        X_re.reorder(b, s)
    if step == 3:
        # The first element of a stage needs the one in the middle of the stage before: that is half
        # a transform later, and another cycle.
        later = n.points // 2 + 1
        X_re.space_time_transform([b, s, i], {pe: s, time: n.points * b + i + later * s})
    return O_re, O_im


def signals(n: Sizes) -> dict[str, np.ndarray]:
    """Random complex numbers, and the twiddle factors of each stage."""
    generator = np.random.default_rng(0)
    signal = generator.standard_normal((2, n.batch, n.points), np.float32)
    stage, pair = np.ogrid[: n.stages, : n.points // 2]
    twiddles = np.exp(-2j * np.pi * (pair >> stage << stage) / n.points)
    return {
        "A_re": signal[0],
        "A_im": signal[1],
        "W_re": twiddles.real.astype(np.float32),
        "W_im": twiddles.imag.astype(np.float32),
    }


def spectrum(re: np.ndarray, im: np.ndarray) -> np.ndarray:
    """The results in their order: element i is where the bits of i lie reversed."""
    stages = int(np.log2(re.shape[1]))
    order = [int(f"{i:0{stages}b}"[::-1], 2) for i in range(1 << stages)]
    return (re + 1j * im)[:, order]


O_re, O_im = design(SMALL)


def main() -> None:
    inputs = signals(SMALL)
    expected = np.fft.fft(inputs["A_re"] + 1j * inputs["A_im"])
    print(f"{SMALL.batch} transforms of {SMALL.points} points, arria10\n")
    print(f"{'design':<51}{'PEs':>4}{'cycles':>8}{'utilization':>13}")
    for step, title in enumerate(STEPS):
        graph = t2s.lower(design(SMALL, step))
        result = t2s.simulate(graph, inputs, device="arria10")
        found = spectrum(result.outputs["O_re"], result.outputs["O_im"])
        np.testing.assert_allclose(found, expected, atol=1e-5)
        pes = result.main_array.pe_count
        print(f"{title:<51}{pes:>4}{result.cycles:>8,}{result.utilization:>13.1%}")


if __name__ == "__main__":
    main()
