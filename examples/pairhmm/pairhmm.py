"""PairHMM, the forward algorithm of a pair hidden Markov model: the likelihood of reads.

For every read r and haplotype h a table of three probabilities (match, insertion, deletion) for
every position i of the read and j of the haplotype; each entry depends on its left, upper and upper
left neighbors. Reads may be of different lengths: ``length[r]`` positions count, the rest is
padding.

The array has one PE for a tile of ``array`` positions; the tiles of one table run one after the
other, and ``batch`` tables are interleaved, so that no PE waits for the latency of its neighbors.
On a board the batch has to have more tables than a value takes cycles from one side of the array to
the other. Values that the next tile needs wait in the array.

Run it with ``python examples/pairhmm/pairhmm.py``.
"""

from dataclasses import dataclass

import numpy as np

import t2s
from t2s import Float, Func, ImageParam, Int, UInt

PROBABILITIES = ("alpha_match", "beta_match", "alpha_gap", "beta_gap", "delta", "eta", "zeta")


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """PEs, tiles of one table, tables interleaved, and batches, each for reads and haplotypes."""

    array: tuple[int, int]
    tiles: tuple[int, int]
    batch: tuple[int, int]
    batches: tuple[int, int] = (1, 1)

    @property
    def lengths(self) -> tuple[int, int]:
        """Positions of a read and of a haplotype."""
        return self.array[0] * self.tiles[0], self.array[1] * self.tiles[1]

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of reads and of haplotypes."""
        return self.batch[0] * self.batches[0], self.batch[1] * self.batches[1]

    @property
    def firings(self) -> int:
        """Steps of each PE: the least number of cycles."""
        parts = (*self.tiles, *self.batch, *self.batches)
        return int(np.prod(parts))


TINY = Sizes(array=(2, 3), tiles=(2, 2), batch=(2, 2))
PUBLISHED = Sizes(array=(8, 24), tiles=(16, 16), batch=(14, 14), batches=(16, 16))  # T2SP, Arria 10
# as many reads and haplotypes, in batches that are large enough for the device "arria10"
BOARD = Sizes(array=(8, 24), tiles=(16, 16), batch=(32, 16), batches=(7, 14))


def design(s: Sizes = TINY) -> Func:
    """``out[r, h]``, the likelihood of read r given haplotype h."""
    r, h, i, j = t2s.variables("r h i j")
    R, H = ImageParam(UInt(8), 2, name="R"), ImageParam(UInt(8), 2, name="H")
    length = ImageParam(Int(32), 1, name="length")
    inputs = [ImageParam(Float(32), 2, name=name) for name in PROBABILITIES]
    alpha_match, beta_match, alpha_gap, beta_gap, delta, eta, zeta = (p[r, i] for p in inputs)
    M, I, D, Sum, Last = (Func(name, type=Float(32)) for name in ("M", "I", "D", "Sum", "Last"))  # noqa: E741
    out, select = Func("out"), t2s.select
    rows, columns = s.lengths

    here, up, left, both = (r, h, i, j), (r, h, i - 1, j), (r, h, i, j - 1), (r, h, i - 1, j - 1)
    same = R[r, i] == H[h, j]
    alpha, beta = select(same, alpha_match, alpha_gap), select(same, beta_match, beta_gap)
    inner = (i > 0) & (j > 0)
    diagonal = select(inner, I[both], 0.0) + select(inner, D[both], 0.0)
    M[here] = alpha * select(inner, M[both], 0.0) + beta * diagonal
    I[here] = delta * select(i > 0, M[up], 0.0) + eta * select(i > 0, I[up], 0.0)
    beside = zeta * select(j > 0, M[left], 0.0) + eta * select(j > 0, D[left], 0.0)
    D[here] = select(i == 0, 1.0 / (columns - 1), beside)
    # the sum over the row i that is the last one of the read
    Sum[here] = select(j > 0, Sum[left], 0.0) + (M[here] + I[here])
    before = select((i > 0) & (j == columns - 1), Last[up], 0.0)
    found = i == select(j == columns - 1, length[r], 0) - 1
    Last[here] = select(found, Sum[here], before)
    out[r, h] = Last[r, h, rows - 1, columns - 1]
    out.bound(r, 0, s.counts[0]).bound(h, 0, s.counts[1])
    M.bound(i, 0, rows).bound(j, 0, columns)

    ii, jj, rr, hh = t2s.variables("ii jj rr hh")
    M.tile(j, i, jj, ii, s.array[1], s.array[0]).tile(h, r, hh, rr, s.batch[1], s.batch[0])
    M.reorder(ii, jj, hh, rr, j, i, h, r).space_time_transform(ii, jj)
    for source in (R, *inputs):
        loader, feeder = Func(f"{source.name}_loader"), Func(f"{source.name}_feeder")
        M.isolate_producer_chain(source, loader, feeder).forward(feeder, jj)
        if source is not inputs[-1]:  # the same for all haplotypes of a batch; zeta has a condition
            loader.remove(hh)
            feeder.buffer(loader, rr)
    H_loader, length_loader, unloader = t2s.funcs("H_loader length_loader unloader")
    M.isolate_producer(H, H_loader).forward(H_loader, ii)
    M.isolate_producer(length, length_loader).forward(length_loader, ii)
    out.isolate_consumer(unloader)
    return out


def reads(s: Sizes) -> dict[str, np.ndarray]:
    """Random reads of random lengths, haplotypes and probabilities."""
    generator = np.random.default_rng(0)
    (count, haplotypes), (rows, columns) = s.counts, s.lengths
    inputs = {name: generator.random((count, rows), np.float32) / 2 for name in PROBABILITIES}
    inputs["R"] = generator.integers(0, 4, (count, rows), np.uint8)
    inputs["H"] = generator.integers(0, 4, (haplotypes, columns), np.uint8)
    inputs["length"] = generator.integers(1, rows + 1, count, np.int32)
    return inputs


def expected(inputs: dict[str, np.ndarray]) -> np.ndarray:
    """The likelihoods in numpy, one table after the other."""
    (count, _), (haplotypes, columns) = inputs["R"].shape, inputs["H"].shape
    out = np.zeros((count, haplotypes), np.float32)
    for r, h in np.ndindex(count, haplotypes):
        rows = inputs["length"][r]
        M, I, D = np.zeros((3, rows, columns), np.float32)  # noqa: E741
        D[0] = 1 / (columns - 1)
        delta, eta, zeta = (inputs[name][r] for name in ("delta", "eta", "zeta"))
        for i, j in np.ndindex(rows - 1, columns - 1):
            match = "match" if inputs["R"][r, i + 1] == inputs["H"][h, j + 1] else "gap"
            alpha, beta = (inputs[f"{name}_{match}"][r, i + 1] for name in ("alpha", "beta"))
            M[i + 1, j + 1] = alpha * M[i, j] + beta * (I[i, j] + D[i, j])
            I[i + 1, j + 1] = delta[i + 1] * M[i, j + 1] + eta[i + 1] * I[i, j + 1]
            D[i + 1, j + 1] = zeta[i + 1] * M[i + 1, j] + eta[i + 1] * D[i + 1, j]
        out[r, h] = (M + I)[-1].sum()
    return out


def inputs() -> dict[str, np.ndarray]:
    """Those of ``t2s run``."""
    return reads(TINY)


def main() -> None:
    inputs = reads(TINY)
    result = t2s.simulate(design(TINY), inputs, device="arria10")
    np.testing.assert_allclose(result.outputs["out"], expected(inputs), rtol=1e-5)
    print(result)


if __name__ == "__main__":
    main()
