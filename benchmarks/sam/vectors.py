"""Products of vectors in six ways [SAM, Fig. 13]: ``python benchmarks/sam/vectors.py``.

x(i) = b(i) c(i) with 2000 coordinates: dense levels, coordinates, coordinates that are skipped,
coordinates in blocks of 64, bitvectors in words of 64, and bit trees.  Inputs are uniformly random,
or have runs (a run of b, a run of c, a shared coordinate, and so on; 400 entries in each), or have
blocks of entries (400 in each) at random places.  Published cycles are behind ours; random inputs
have the same statistics, runs and blocks have the shape alone in common.  The published bitvectors
take about a cycle for each word, each common bit, and each bit of an operand; here the last cost
nothing.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from chart import lines, page
from rich.console import Console
from rich.table import Table

from t2s.core.ops import Op
from t2s.core.types import INT32, Float, UInt
from t2s.simulator.run import simulate
from t2s.sparse import Kernel, Schedule, from_coordinates, make_format, parse
from t2s.sparse_repr.streams import Streams

Array = np.ndarray[Any, Any]

SIZE, WORD, LAG = 2000, 64, 8
WORDS = -(-SIZE // WORD)
WAYS = ("dense", "coordinates", "skipping", "split", "bitvector", "bit tree")
PUBLISHED = {
    ("random", 0.2): (2005, 1917, 1917, 1953, 2881, 1306),
    ("random", 0.6): (2005, 1273, 1273, 1309, 1108, 341),
    ("random", 0.9): (2005, 362, 362, 389, 253, 74),
    ("random", 0.975): (2005, 95, 95, 101, 88, 50),
    ("random", 0.99375): (2005, 27, 27, 27, 53, 9),
    ("runs", 1): (2005, 542, 542, 555, 699, 283),
    ("runs", 10): (2005, 741, 732, 757, 498, 87),
    ("runs", 50): (2005, 792, 608, 809, 446, 45),
    ("runs", 100): (2005, 800, 299, 560, 443, 32),
    ("runs", 400): (2005, 806, 20, 178, 443, 14),
    ("blocks", 1): (2005, 607, 607, 643, 606, 238),
    ("blocks", 10): (2005, 515, 515, 546, 702, 324),
    ("blocks", 100): (2005, 487, 400, 477, 748, 334),
    ("blocks", 400): (2005, 592, 227, 272, 647, 223),
}


def vectors(kind: str, parameter: float) -> tuple[Array, Array]:
    """The operands."""
    generator = np.random.default_rng(5)
    pair = np.zeros((2, SIZE))
    if kind == "random":
        entries = round(SIZE * (1 - parameter))
        for vector in pair:
            vector[generator.choice(SIZE, entries, replace=False)] = 1
        return pair[0], pair[1]
    length = int(parameter)
    if kind == "runs":
        groups = max(1, 400 // (length + 1))
        starts = _starts(generator, groups, 2 * length + 1)
        for start in starts:
            pair[0, start : start + length] = 1
            pair[1, start + length : start + 2 * length] = 1
            pair[:, start + 2 * length] = 1
        return pair[0], pair[1]
    for vector in pair:
        for start in _starts(generator, 400 // length, length):
            vector[start : start + length] = 1
    return pair[0], pair[1]


def _starts(generator: np.random.Generator, count: int, length: int) -> Array:
    """Where pieces of a length begin that do not overlap."""
    room = SIZE - count * length
    return np.sort(generator.integers(0, room + 1, count)) + np.arange(count) * length


class Product:
    """The six ways, each compiled once."""

    def __init__(self) -> None:
        def kernel(letters: str, schedule: Schedule) -> Kernel:
            formats = [f"{name}:{letters}" for name in "bc"]
            return Kernel(parse("x(i)=b(i)*c(i)", [*formats, "x:s"]), schedule)

        self.kernels = {
            "dense": Kernel(parse("x(i)=b(i)*c(i)", ["b:d", "c:d", "x:d"])),
            "coordinates": kernel("s", Schedule()),
            "split": kernel("s", Schedule().split("i", "i0", "i1", WORD)),
        }
        self.graphs = {
            "skipping": skipping(),
            "bitvector": bitvector(),
            "bit tree": bit_tree(),
        }

    def cycles(self, way: str, b: Array, c: Array) -> int:
        """Cycles of a run; its values are those of numpy."""
        inputs = {"b": b, "c": c}
        if way in self.kernels:
            size = WORDS * WORD if way == "split" else SIZE
            padded = {name: np.pad(array, (0, size - SIZE)) for name, array in inputs.items()}
            result = self.kernels[way].simulate(padded)
            if not np.array_equal(result.output[:SIZE], b * c):
                raise AssertionError(f"wrong values: {way}")
            return result.cycles
        letter = {"skipping": "s", "bitvector": "b", "bit tree": "t"}[way]
        arrays = {}
        for name, array in inputs.items():
            places = np.flatnonzero(array)
            stored = from_coordinates(
                places[None], array[places], (SIZE,), make_format(letter, (0,))
            )
            arrays |= {f"{name}_{key}": level for key, level in stored.levels[0].items()}
            arrays[f"{name}_vals"] = stored.values
        graph = self.graphs[way]
        wanted = {one.name: one.type.numpy for one in graph.tensors}
        given = {name: array.astype(wanted[name]) for name, array in arrays.items()}
        run = simulate(graph, given)
        if not np.array_equal(run.outputs["x"], (b * c)[(b * c) != 0]):
            raise AssertionError(f"wrong values: {way}")
        return run.cycles


def _finish(s: Streams, refs: Any) -> Any:
    loaded = [
        s.load(ref, s.tensor(f"{name}_vals", Float(64)))
        for ref, name in zip(refs, "bc", strict=True)
    ]
    s.write_values(s.compute(Op.MULTIPLY, *loaded), s.output("x", Float(64)))
    return s.graph()


def skipping() -> Any:
    """Coordinates, skipped by what the intersection asks for."""
    s = Streams("skipping")
    levels = [
        (s.root(), s.tensor(f"{name}_pos", INT32), s.tensor(f"{name}_crd", INT32)) for name in "bc"
    ]
    crd, refs = s.intersect_skipping(*levels, lag=LAG)
    s.write_compressed(crd, s.output("x_pos", INT32), s.output("x_crd", INT32))
    return _finish(s, refs)


def bitvector() -> Any:
    """Words of bits."""
    s = Streams("bitvector")
    sides = [
        s.scan_bitvector(
            s.root(), s.tensor(f"{name}_bits", UInt(WORD)), s.tensor(f"{name}_pos", INT32), WORDS
        )
        for name in "bc"
    ]
    _, crd, refs = s.intersect_bits(*sides)
    s.write_compressed(crd, s.output("x_pos", INT32), s.output("x_crd", INT32))
    return _finish(s, refs)


def bit_tree() -> Any:
    """Words of bits for the bits of a word."""
    s = Streams("bit_tree")

    def level(name: str, part: str, ref: Any) -> Any:
        words = s.tensor(f"{name}_{part}", UInt(WORD))
        return s.scan_bitvector(ref, words, s.tensor(f"{name}_{part}_pos", INT32), 1)

    _, outer, refs = s.intersect_bits(*(level(name, "top", s.root()) for name in "bc"))
    sides = [level(name, "leaf", ref) for name, ref in zip("bc", refs, strict=True)]
    _, inner, refs = s.intersect_bits(*sides)
    s.write_compressed(outer, s.output("x0_pos", INT32), s.output("x0_crd", INT32))
    s.write_compressed(
        inner, s.output("x1_pos", INT32), s.output("x1_crd", INT32), empty_fibers=True
    )
    return _finish(s, refs)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/vectors.html"))
    options = parser.parse_args()
    product = Product()
    table = Table("input", "", *WAYS, title="Fig. 13")
    curves: dict[str, dict[str, dict[str, float]]] = {}
    for (kind, parameter), published in PUBLISHED.items():
        b, c = vectors(kind, parameter)
        found = [product.cycles(way, b, c) for way in WAYS]
        cells = [f"{ours} ({theirs})" for ours, theirs in zip(found, published, strict=True)]
        table.add_row(kind, f"{parameter:g}", *cells)
        for way, ours, theirs in zip(WAYS, found, published, strict=True):
            curves.setdefault(kind, {}).setdefault(way, {})[f"{parameter:g}"] = ours
            curves.setdefault(f"{kind}, published", {}).setdefault(way, {})[f"{parameter:g}"] = (
                theirs
            )
    console = Console(width=120)
    console.print(table)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    page("Products of vectors", [lines(kind, ways) for kind, ways in curves.items()], options.out)
    console.print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
