"""Tokens of the streams of matrices [SAM, Fig. 14]: ``python benchmarks/sam/tokens.py DIR``.

X(i,j) = B(i,j) with B compressed in both modes, for the MatrixMarket files of a directory: what the
coordinate streams behind the two scanners carry in each cycle of the run, in percent: values,
stops, empty tokens, the end, and nothing.  The paper has, on average, 0.95 % of control tokens in
the outer stream, 16.20 % in the inner one, and 83.32 % of idle cycles in the outer one; its
matrices are fifteen, of which some are not the same.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from chart import lines, page
from rich.console import Console
from rich.table import Table

from t2s.core.types import INT32, Float
from t2s.graph.graph import Graph
from t2s.graph.nodes import DONE, EMPTY, VALUE
from t2s.simulator.run import simulate
from t2s.sparse import SparseTensor, dcsr, read
from t2s.sparse_repr.streams import Streams

KINDS = ("values", "stops", "empty", "done", "idle")
LEVELS = ("i", "j")


def identity() -> Graph:
    """The copy of a matrix, with both coordinate streams recorded."""
    s = Streams("identity")
    ref = s.root()
    for level in LEVELS:
        arrays = s.tensor(f"{level}_pos", INT32), s.tensor(f"{level}_crd", INT32)
        crd, ref = s.scan_compressed(ref, *arrays)
        written = s.output(f"X{level}_pos", INT32), s.output(f"X{level}_crd", INT32)
        s.write_compressed(crd, *written)
        s.record(crd, s.output(f"{level}_values", INT32), s.output(f"{level}_tags", INT32))
    s.write_values(s.load(ref, s.tensor("vals", Float(64))), s.output("X_vals", Float(64)))
    return s.graph()


def measure(graph: Graph, matrix: SparseTensor) -> tuple[int, dict[str, dict[str, int]]]:
    """Cycles, and for each level how many of them carry a token of each kind."""
    inputs = {"vals": np.asarray(matrix.values, np.float64)}
    for level, arrays in zip(LEVELS, matrix.levels, strict=True):
        inputs |= {f"{level}_{key}": array.astype(np.int32) for key, array in arrays.items()}
    result = simulate(graph, inputs)
    if not np.array_equal(result.outputs["X_vals"], inputs["vals"]):
        raise AssertionError("wrong values")
    found = {}
    for level in LEVELS:
        tags = result.outputs[f"{level}_tags"]
        counts = {name: int((tags == tag).sum()) for name, tag in _TAGS.items()}
        counts["stops"] = len(tags) - sum(counts.values())
        counts["idle"] = result.cycles - len(tags)
        found[level] = counts
    return result.cycles, found


_TAGS = {"values": VALUE, "empty": EMPTY, "done": DONE}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="of .mtx files")
    parser.add_argument("--out", type=Path, default=Path("build/tokens.html"))
    options = parser.parse_args()
    table = Table("matrix", "size", "entries", "cycles", title="Fig. 14", collapse_padding=True)
    for level in LEVELS:
        for kind in KINDS:
            table.add_column(f"{level} {kind}", justify="right")
    graph = identity()
    curves: dict[str, dict[str, dict[str, float]]] = {level: {} for level in LEVELS}
    control: dict[str, list[float]] = {level: [] for level in LEVELS}
    idle = []
    for path in sorted(options.directory.glob("*.mtx")):
        matrix = read(path).convert(dcsr)
        cycles, found = measure(graph, matrix)
        size = " x ".join(map(str, matrix.shape))
        cells = [f"{100 * found[level][kind] / cycles:.2f}" for level in LEVELS for kind in KINDS]
        table.add_row(path.stem[:16], size, str(len(matrix.values)), f"{cycles:,}", *cells)
        for level in LEVELS:
            counts = found[level]
            busy = cycles - counts["idle"]
            control[level].append(100 * (busy - counts["values"]) / cycles)
            for kind in ("values", "stops", "idle"):
                curve = curves[level].setdefault(kind, {})
                curve[path.stem[:7]] = 100 * counts[kind] / cycles
        idle.append(100 * found["i"]["idle"] / cycles)
    console = Console(width=160)
    console.print(table)
    for level, published in zip(LEVELS, (0.95, 16.20), strict=True):
        console.print(f"control tokens of {level}: {np.mean(control[level]):.2f} % ({published} %)")
    console.print(f"idle cycles of i: {np.mean(idle):.2f} % (83.32 %)")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figures = [lines(f"Stream of {level}", kinds, "% of cycles") for level, kinds in curves.items()]
    page("Tokens of streams", figures, options.out)
    console.print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
