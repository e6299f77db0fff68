"""OuterSPACE: a matrix product in two phases [SAM, sec. 6.5, Fig. 16].

The multiply phase, Y(i,k,j) = B(i,k) C(k,j) in the order k, i, j, takes every column of B times
every row of C.  The merge phase adds Y up over k, in the order i, k, j.  Y is written in an order
that is not the one in which it is read: each product of an entry of B and a row of C belongs to
another i.  So its k level is a linked list for each i, to which the multiply phase appends, and
only j and the values below it are written one after the other.

Both phases are graphs of blocks; the second one reads what the first one has written.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import t2s
from t2s import sparse

INDEX, VALUE = t2s.Int(32), t2s.Float(64)
LISTS = ("head", "node", "next", "tail")


def multiply_phase() -> t2s.Graph:
    """Y of B by columns and C by rows, both with compressed levels (``B_pos0``, ``B_crd0``, ...).

    Writes ``Yk_head``, ``Yk_node``, ``Yk_next``, ``Yk_tail`` (the lists of k), ``Yj_pos``,
    ``Yj_crd`` and ``Y_vals``.
    """
    s = sparse.Streams("multiply")
    level = {
        (name, n): (s.tensor(f"{name}_pos{n}", INDEX), s.tensor(f"{name}_crd{n}", INDEX))
        for name in "BC"
        for n in range(2)
    }
    sides = [s.scan_compressed(s.root(), *level[name, 0]) for name in "BC"]
    k, ((column,), (row,)) = s.intersect(*sides)
    i, entry = s.scan_compressed(column, *level["B", 1])  # the column k of B
    j, element = s.scan_compressed(s.repeat(i, row), *level["C", 1])  # the row k of C, for each i
    left = s.load(s.repeat(j, entry), s.tensor("B_vals", VALUE))
    products = s.compute(sparse.Op.MULTIPLY, left, s.load(element, s.tensor("C_vals", VALUE)))
    s.write_linked_list(s.repeat(i, k), i, [s.output(f"Yk_{name}", INDEX) for name in LISTS])
    s.write_compressed(j, s.output("Yj_pos", INDEX), s.output("Yj_crd", INDEX), empty_fibers=True)
    s.write_values(products, s.output("Y_vals", VALUE))
    return s.graph()


def merge_phase(rows: int) -> t2s.Graph:
    """X by rows: the sums of Y over k.  Writes ``Xi_pos``, ``Xi_crd``, ..., ``X_vals``."""
    s = sparse.Streams("merge")
    i, row = s.scan_dense(s.root(), rows)
    lists = [s.tensor(f"Yk_{name}", INDEX) for name in LISTS[:3]]
    _, node = s.scan_linked_list(row, *lists)
    j, element = s.scan_compressed(node, s.tensor("Yj_pos", INDEX), s.tensor("Yj_crd", INDEX))
    (j,), sums = s.reduce_points([j], s.load(element, s.tensor("Y_vals", VALUE)))
    i, j = s.drop(i, j)
    s.write_compressed(i, s.output("Xi_pos", INDEX), s.output("Xi_crd", INDEX))
    s.write_compressed(j, s.output("Xj_pos", INDEX), s.output("Xj_crd", INDEX))
    s.write_values(sums, s.output("X_vals", VALUE))
    return s.graph()


def product(
    left: np.ndarray, right: np.ndarray, engine: str = "native"
) -> tuple[np.ndarray, tuple[int, int]]:
    """left @ right, and the cycles of both phases."""
    given = arrays("B", sparse.tensor(left, sparse.dcsc)) | arrays(
        "C", sparse.tensor(right, sparse.dcsr)
    )
    first = t2s.simulate(multiply_phase(), given, engine=engine)
    y = {name: first.outputs[name] for name in ("Yj_pos", "Yj_crd", "Y_vals", "Yk_node", "Yk_next")}
    heads = np.zeros(len(left), np.int32)  # rows behind the last one that has products
    heads[: len(first.outputs["Yk_head"])] = first.outputs["Yk_head"]
    second = t2s.simulate(merge_phase(len(left)), {**y, "Yk_head": heads}, engine=engine)
    x = second.outputs
    levels = [{"pos": x[f"X{level}_pos"], "crd": x[f"X{level}_crd"]} for level in "ij"]
    shape = len(left), right.shape[1]
    stored = sparse.from_levels(shape, sparse.dcsr, levels, x["X_vals"])
    return stored.to_dense(), (first.cycles, second.cycles)


def arrays(name: str, tensor: sparse.SparseTensor) -> Mapping[str, np.ndarray]:
    """The arrays of a tensor by the names that the graphs give them."""
    found = {f"{name}_vals": tensor.values}
    for n, level in enumerate(tensor.levels):
        found |= {f"{name}_{key}{n}": array.astype(np.int32) for key, array in level.items()}
    return found


def design() -> t2s.Graph:
    """What ``t2s run`` runs."""
    return multiply_phase()


def inputs(seed: int) -> Mapping[str, np.ndarray]:
    """The arrays for ``design``."""
    generator = np.random.default_rng(seed)
    b, c = (
        generator.integers(1, 9, shape) * (generator.random(shape) < 0.1) * 1.0
        for shape in ((20, 25), (25, 30))
    )
    return {
        **arrays("B", sparse.tensor(b, sparse.dcsc)),
        **arrays("C", sparse.tensor(c, sparse.dcsr)),
    }


def main() -> None:
    generator = np.random.default_rng(3)
    b, c = (
        generator.integers(1, 9, shape) * (generator.random(shape) < 0.1) * 1.0
        for shape in ((60, 50), (50, 70))
    )
    x, (multiply, merge) = product(b, c)
    np.testing.assert_array_equal(x, b @ c)
    products = int((b != 0).sum(axis=0) @ (c != 0).sum(axis=1))
    print(f"{products} products: {multiply} cycles to multiply, {merge} cycles to merge")
    fused = sparse.parse("X(i,j)=B(i,k)*C(k,j)", {"B": sparse.dcsc, "C": sparse.dcsr, "X": "ss"})
    schedule = sparse.Schedule().reorder("k i j")
    result = sparse.compile(fused, schedule).simulate({"B": b, "C": c})
    print(f"in one phase, with a reducer for the whole result: {result.cycles} cycles")


if __name__ == "__main__":
    main()
