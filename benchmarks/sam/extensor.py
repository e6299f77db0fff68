"""The study of ExTensor's tiles [SAM, Fig. 15]: ``python benchmarks/sam/extensor.py``.

X(i,j) = B(i,k) C(k,j) of square matrices with a constant number of uniformly random entries, over
their dimension.  All three variables are split into tiles of 128, as large as a PE takes, and one
graph does the rest: the loops i0, k0, j0 walk the tiles that are not empty (a tile is the fiber
below two coordinates, so empty ones are never seen), and i1, k1, j1 multiply a pair of tiles, rows
times rows.  Its cycles are those of the compute: the pairs are not runs of their own, they follow
one another in the same blocks, as tiles in buffers let them.  Every run is compared with scipy.

Memory is not in the graph but added up beside it, with the published parameters.  DRAM to the
last-level buffer (17 MB, 68.256 bytes per cycle of 1 GHz, 200 cycles): both operands once and the
result once, since all matrices of the study fit, which is checked.  Last-level buffer to PE (256
bytes per cycle, one cycle more for each tile): the tile of B once for each (i0, k0), that of C for
each pair, checked to fit the PE's 70,000 bytes.  A tile is stored as DCSR with 2 bytes for each
position, coordinate and value.  There are two runtimes, both after the time until the first pair is
there: "overlapped", where buffers hold several tiles and a run takes the longest of compute, loads
to the PE and DRAM; and "in turn", where the PE computes while nothing is loaded into it.

The published runtime rises as more tiles of small matrices have entries, stays, and falls as more
tiles have none.  Its cycles (those published with that simulator, of other random matrices of the
same kind) are behind "in turn", which they are close to: that model takes about two cycles more for
each pair of tiles than its blocks do, which is what the load of a nearly empty tile takes.
"""

from __future__ import annotations

import argparse
from dataclasses import astuple, dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from chart import lines, page
from rich.console import Console
from rich.table import Table

from t2s.sparse import Kernel, Schedule, SparseTensor, dcsr, from_coordinates, parse

Array = np.ndarray[Any, Any]

TILE = 128
ELEMENT = 2
LAST_LEVEL_BYTES, PE_BYTES = 17_000_000, 70_000
DRAM_BYTES_PER_CYCLE, DRAM_LATENCY = 68.256, 200
PE_BYTES_PER_CYCLE, PE_LATENCY = 256, 1
DIMENSIONS = (1024, 2360, 3696, 6368, 9040, 11712, 13048, 15720)
PUBLISHED = {
    5000: (1814538, 1383573, 1157015, 1114652, 1071612, 1005660, 962676, 862784),
    10000: (4258684, 4646990, 3747142, 3154137, 3152324, 3116116, 3038082, 2914874),
    25000: (7687641, 20145061, 18518335, 14219414, 12640989, 12353270, 12367711, 12382122),
    50000: (8427632, 48873644, 57485155, 47753918, 40112559, 36511878, 35514324, 34943595),
}


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """Pairs of tiles, and cycles of a product: compute, both memories, and both runtimes."""

    pairs: int
    compute: int
    to_pe: int
    dram: int
    overlapped: int
    in_turn: int


def matrix(size: int, entries: int, seed: int) -> SparseTensor:
    """A square matrix with so many entries, at random places."""
    generator = np.random.default_rng(seed)
    places = generator.choice(size * size, entries, replace=False)
    values = generator.integers(1, 9, entries).astype(float)
    table = np.stack([places // size, places % size], axis=1)
    return from_coordinates(table, values, (size, size), dcsr)


def tiled_product(tile: int = TILE) -> Kernel:
    """The product over tiles, and in each pair of them over rows."""
    schedule = Schedule()
    for variable in "ikj":
        schedule = schedule.split(variable, f"{variable}0", f"{variable}1", tile)
    schedule = schedule.reorder("i0 k0 j0 i1 k1 j1").transpose()
    return Kernel(parse("X(i,j)=B(i,k)*C(k,j)", ["B:ss", "C:ss", "X:ss"]), schedule)


def tile_bytes(tensor: SparseTensor, tile: int = TILE) -> Array:
    """The size of every tile as DCSR, by its row and column of tiles; 0 where there is none."""
    table, _ = tensor.coordinates()
    across = -(-tensor.shape[1] // tile)
    of = table[:, 0] // tile * across + table[:, 1] // tile
    count = -(-tensor.shape[0] // tile) * across
    entries = np.bincount(of, minlength=count)
    rows = np.unique(of * tile + table[:, 0] % tile) // tile
    stored = np.bincount(rows, minlength=count)
    elements = 2 + 2 * stored + 1 + 2 * entries
    return np.where(entries > 0, ELEMENT * elements, 0).reshape(-1, across)


def run(left: SparseTensor, right: SparseTensor, kernel: Kernel, tile: int = TILE) -> Runtime:
    """The cycles of a product; its values are scipy's."""
    result = kernel.simulate({"B": left, "C": right})
    expected = _scipy(left) @ _scipy(right)
    if (abs(_scipy(result.tensor) - expected) > 0).nnz:
        raise AssertionError("wrong values")
    b, c = tile_bytes(left, tile), tile_bytes(right, tile)
    x = tile_bytes(result.tensor, tile)
    if b.sum() + c.sum() + x.sum() > LAST_LEVEL_BYTES:
        raise ValueError("the matrices do not fit the last-level buffer")
    if b.max() + c.max() + x.max() > PE_BYTES:
        raise ValueError("the tiles do not fit a PE")
    pairs = (b > 0).sum(axis=0) @ (c > 0).sum(axis=1)
    used = (c > 0).any(axis=1)
    loads = _to_pe(b)[:, used].sum() + (b > 0).sum(axis=0) @ _to_pe(c).sum(axis=1)
    dram = ceil((b.sum() + c.sum() + x.sum()) / DRAM_BYTES_PER_CYCLE)
    first = DRAM_LATENCY + ceil((b.max() + c.max()) / DRAM_BYTES_PER_CYCLE) + PE_LATENCY
    return Runtime(
        pairs=int(pairs),
        compute=result.cycles,
        to_pe=int(loads),
        dram=dram,
        overlapped=first + max(result.cycles, int(loads), dram),
        in_turn=first + max(result.cycles + int(loads), dram),
    )


def _to_pe(sizes: Array) -> Array:
    """Cycles of the load of each tile."""
    cycles = -(-sizes // PE_BYTES_PER_CYCLE) + PE_LATENCY
    return np.where(sizes > 0, cycles, 0)


def _scipy(tensor: SparseTensor) -> Any:
    table, values = tensor.coordinates()
    return scipy.sparse.coo_array((values, (table[:, 0], table[:, 1])), tensor.shape).tocsr()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, nargs="*", default=list(PUBLISHED))
    parser.add_argument("--out", type=Path, default=Path("build/extensor.html"))
    options = parser.parse_args()
    kernel = tiled_product()
    table = Table("entries", "dimension", "pairs of tiles", "compute", "to PE", "DRAM")
    table.title = "Fig. 15"
    for heading in ("overlapped", "in turn", "published", "deviation"):
        table.add_column(heading)
    curves: dict[str, dict[str, dict[str, float]]] = {"in turn": {}, "published": {}}
    for entries in options.entries:
        for size, published in zip(DIMENSIONS, PUBLISHED[entries], strict=True):
            found = run(matrix(size, entries, 1), matrix(size, entries, 2), kernel)
            cycles = astuple(found)
            off = f"{100 * (found.in_turn / published - 1):+.1f} %"
            cells = [f"{one:,}" for one in (entries, size, *cycles, published)]
            table.add_row(*cells, off)
            name = f"{entries:,} entries"
            curves["in turn"].setdefault(name, {})[str(size)] = found.in_turn
            curves["published"].setdefault(name, {})[str(size)] = published
    console = Console(width=130)
    console.print(table)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figures = [lines(title, curve) for title, curve in curves.items()]
    page("Tiles over dimensions", figures, options.out)
    console.print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
