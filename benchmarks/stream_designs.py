"""Designs of the Sparse Abstract Machine [SAM] and their inputs, for ``streams.py``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from t2s.core.expr import const
from t2s.core.ops import Op
from t2s.core.types import INT32, Float
from t2s.graph.graph import Graph, Tensor
from t2s.sparse_repr.streams import EmptyFiber, Stream, Streams

Arrays = dict[str, np.ndarray]

FLOAT = Float(32)


class Design(Streams):
    """Streams over tensors with compressed levels; names of arrays follow from the tensor's."""

    def __init__(self, name: str, capacity: int) -> None:
        super().__init__(name, capacity=capacity)
        self._inputs: dict[str, Tensor] = {}

    def given(self, name: str, *, floats: bool = False) -> Tensor:
        """An input, the same one for each use."""
        if name not in self._inputs:
            self._inputs[name] = self.tensor(name, FLOAT if floats else INT32)
        return self._inputs[name]

    def level(self, tensor: str, index: str, ref: Stream) -> tuple[Stream, Stream]:
        """Scan a compressed level."""
        positions = self.given(f"{tensor}_{index}_pos")
        return self.scan_compressed(ref, positions, self.given(f"{tensor}_{index}_crd"))

    def values(self, tensor: str, ref: Stream) -> Stream:
        """Load values."""
        return self.load(ref, self.given(f"{tensor}_vals", floats=True))

    def result(self, crds: Sequence[Stream], val: Stream) -> Graph:
        """Write a result that is compressed in all its dimensions."""
        for number, crd in enumerate(crds):
            positions = self.output(f"X_{number}_pos", INT32)
            self.write_compressed(crd, positions, self.output(f"X_{number}_crd", INT32))
        self.write_values(val, self.output("X_vals", FLOAT))
        return self.graph()


def matrix_vector(rows: int, columns: int, capacity: int) -> Graph:
    """X[i] = sum B[i, j] C[j]; rows of B and all of C and X are dense."""
    s = Design("spmv", capacity)
    i, b = s.scan_dense(s.root(), rows)
    j, b = s.scan_compressed(b, s.given("B_i_pos"), s.given("B_j_crd"))
    base = s.repeat(j, s.repeat(i, s.root()))
    _, c, b = s.locate_dense(j, base, columns, b)
    products = s.compute(Op.MULTIPLY, s.values("B", b), s.values("C", c))
    s.write_values(s.reduce(products, empty=EmptyFiber.ZERO, outer=i), s.output("X_vals", FLOAT))
    return s.graph()


def elementwise(operator: Op, capacity: int) -> Graph:
    """X[i, j] = B[i, j] op C[i, j]: 14 blocks."""
    s = Design("elementwise", capacity)
    join = s.union if operator is Op.ADD else s.intersect
    sides = [s.level(name, "i", s.root(f"root_{name}")) for name in "BC"]
    i, ((b,), (c,)) = join(*sides)
    j, ((b,), (c,)) = join(s.level("B", "j", b), s.level("C", "j", c))
    zero = const(0.0, FLOAT) if operator is Op.ADD else None
    left = s.load(b, s.given("B_vals", floats=True), missing=zero)
    right = s.load(c, s.given("C_vals", floats=True), missing=zero)
    return s.result((i, j), s.compute(operator, left, right))


def inner_product(capacity: int) -> Graph:
    """X[i, j] = sum B[i, k] C[j, k], loops i, j, k."""
    s = Design("ijk", capacity)
    i, b = s.level("B", "i", s.root())
    j, c = s.level("C", "j", s.repeat(i, s.root()))
    _, ((b,), (c,)) = s.intersect(s.level("B", "k", s.repeat(j, b)), s.level("C", "k", c))
    products = s.compute(Op.MULTIPLY, s.values("B", b), s.values("C", c))
    total = s.reduce(products, empty=EmptyFiber.ZERO)
    return s.result((i, j), total)


def row_product(capacity: int) -> Graph:
    """X[i, j] = sum B[i, k] C[k, j], loops i, k, j."""
    s = Design("ikj", capacity)
    i, b = s.level("B", "i", s.root())
    c = s.repeat(i, s.root())
    _, ((b,), (c,)) = s.intersect(s.level("B", "k", b), s.level("C", "k", c))
    j, c = s.level("C", "j", c)
    products = s.compute(Op.MULTIPLY, s.values("B", s.repeat(j, b)), s.values("C", c))
    (x,), total = s.reduce_points([j], products)
    return s.result((i, x), total)


def outer_product(capacity: int) -> Graph:
    """X[i, j] = sum B[k, i] C[k, j], loops k, i, j."""
    s = Design("kij", capacity)
    sides = [s.level(name, "k", s.root()) for name in "BC"]
    _, ((b,), (c,)) = s.intersect(*sides)
    i, b = s.level("B", "i", b)
    j, c = s.level("C", "j", s.repeat(i, c))
    products = s.compute(Op.MULTIPLY, s.values("B", s.repeat(j, b)), s.values("C", c))
    crds, total = s.reduce_points([i, j], products)
    return s.result(crds, total)


def sddmm(rows: int, columns: int, depth: int, capacity: int) -> Graph:
    """X[i, j] = B[i, j] sum C[i, k] D[j, k]; C and D are dense."""
    s = Design("sddmm", capacity)
    i, ((b,), (c,)) = s.intersect(s.level("B", "i", s.root()), s.scan_dense(s.root(), rows))
    d = s.repeat(i, s.root())
    j, ((b,), (d,)) = s.intersect(s.level("B", "j", b), s.scan_dense(d, columns))
    k, ((c,), (d,)) = s.intersect(s.scan_dense(s.repeat(j, c), depth), s.scan_dense(d, depth))
    factors = [s.values(name, ref) for name, ref in zip("BCD", (s.repeat(k, b), c, d), strict=True)]
    return s.result((i, j), s.reduce(s.compute(Op.MULTIPLY, *factors), empty=EmptyFiber.ZERO))


def mttkrp(middle: int, inner: int, columns: int, capacity: int) -> Graph:
    """X[i, j] = sum B[i, k, l] C[k, j] D[l, j]; C and D are dense."""
    s = Design("mttkrp", capacity)
    i, b = s.level("B", "i", s.root())
    c, d = s.repeat(i, s.root()), s.repeat(i, s.root())
    k, ((b,), (c,)) = s.intersect(s.level("B", "k", b), s.scan_dense(c, middle))
    d = s.repeat(k, d)
    m, ((b,), (d,)) = s.intersect(s.level("B", "l", b), s.scan_dense(d, inner))
    j, ((c,), (d,)) = s.intersect(s.scan_dense(s.repeat(m, c), columns), s.scan_dense(d, columns))
    factors = [s.values(name, ref) for name, ref in zip("BCD", (s.repeat(j, b), c, d), strict=True)]
    (x,), total = s.reduce_points([j], s.compute(Op.MULTIPLY, *factors))
    (x,), total = s.reduce_points([x], total)
    return s.result((i, x), total)


def compressed(name: str, indices: str, array: np.ndarray) -> Arrays:
    """The arrays of a tensor that is compressed in all dimensions."""
    points = np.argwhere(array)
    arrays: Arrays = {f"{name}_vals": array[tuple(points.T)].astype(np.float32)}
    fibers = np.zeros(len(points), np.int64)
    for depth, index in enumerate(indices):
        prefixes, number = np.unique(points[:, : depth + 1], axis=0, return_inverse=True)
        first = np.unique(number.reshape(-1), return_index=True)[1]
        parents = fibers[first]
        counts = np.bincount(parents, minlength=int(fibers.max(initial=0)) + 1)
        arrays[f"{name}_{index}_pos"] = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        arrays[f"{name}_{index}_crd"] = prefixes[:, -1].astype(np.int32)
        fibers = number.reshape(-1)
    return arrays
