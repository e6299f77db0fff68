"""Graphs of blocks put together by hand, as in [SAM]."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from t2s.core.ops import Op
from t2s.core.types import INT32, Float
from t2s.graph.graph import Graph, Tensor
from t2s.sparse_repr.streams import EmptyFiber, Streams

FLOAT = Float(64)
LEVELS = ("pos0", "crd0", "pos1", "crd1")


@dataclass
class Design:
    """A graph in the making, its inputs, and the shape of its result ``X``."""

    streams: Streams
    shape: tuple[int, ...]
    inputs: dict[str, Any] = field(default_factory=dict)

    def matrix(self, name: str, dense: Any) -> dict[str, Tensor]:
        """A matrix as doubly compressed rows."""
        rows = np.flatnonzero((dense != 0).any(1))
        ends = np.cumsum([np.count_nonzero(dense[row]) for row in rows])
        columns = [np.flatnonzero(dense[row]) for row in rows]
        arrays = {
            "pos0": [0, len(rows)],
            "crd0": rows,
            "pos1": [0, *ends],
            "crd1": np.concatenate([*columns, []]),
        }
        tensors = {}
        for level, array in arrays.items():
            tensors[level] = self.streams.tensor(f"{name}_{level}", INT32)
            self.inputs[f"{name}_{level}"] = np.array(array, np.int32)
        tensors["values"] = self.vector(f"{name}_values", dense[dense != 0])
        return tensors

    def vector(self, name: str, values: Any) -> Tensor:
        self.inputs[name] = np.array(values, np.float64)
        return self.streams.tensor(name, FLOAT)

    def result(self) -> dict[str, Tensor]:
        """The arrays of a result in doubly compressed rows."""
        found = {level: self.streams.output(f"X_{level}", INT32) for level in LEVELS}
        return {**found, "values": self.streams.output("X_values", FLOAT)}

    @property
    def graph(self) -> Graph:
        return self.streams.graph()

    def dense(self, outputs: dict[str, Any]) -> Any:
        """The result as a dense array."""
        if len(self.shape) == 1:
            return outputs["x"]
        dense = np.zeros(self.shape)
        for number, row in enumerate(outputs["X_crd0"]):
            begin, end = outputs["X_pos1"][number : number + 2]
            dense[row, outputs["X_crd1"][begin:end]] = outputs["X_values"][begin:end]
        return dense


def matrix_vector(a: Any, b: Any, **options: Any) -> Design:
    """x_i = A_ij b_j with dense rows and b, and a value for every row."""
    d = Design(Streams("matrix_vector", **options), a.shape[:1])
    s = d.streams
    m, vector = d.matrix("A", a), d.vector("b", b)
    counts = np.count_nonzero(a, axis=1)
    d.inputs["A_pos1"] = np.array([0, *np.cumsum(counts)], np.int32)
    i, ref_i = s.scan_dense(s.root(), a.shape[0])
    j, ref_j = s.scan_compressed(ref_i, m["pos1"], m["crd1"])
    fiber = s.repeat(j, s.repeat(i, s.root()))
    _, ref_b, ref_a = s.locate_dense(j, fiber, len(b), ref_j)
    product = s.compute(Op.MULTIPLY, s.load(ref_a, m["values"]), s.load(ref_b, vector))
    total = s.reduce(product, empty=EmptyFiber.ZERO, outer=i)
    s.write_values(total, s.output("x", FLOAT))
    return d


def elementwise(a: Any, b: Any, operator: Op, **options: Any) -> Design:
    """X_ij = A_ij op B_ij, with both levels joined."""
    d = Design(Streams("elementwise", **options), a.shape)
    s = d.streams
    left, right, x = d.matrix("A", a), d.matrix("B", b), d.result()
    join = s.intersect if operator is Op.MULTIPLY else s.union
    rows = [s.scan_compressed(s.root(), m["pos0"], m["crd0"]) for m in (left, right)]
    i, ((ref_a,), (ref_b,)) = join(*rows)
    columns = [
        s.scan_compressed(ref, m["pos1"], m["crd1"]) for ref, m in ((ref_a, left), (ref_b, right))
    ]
    j, ((ref_a,), (ref_b,)) = join(*columns)
    values = s.compute(operator, s.load(ref_a, left["values"]), s.load(ref_b, right["values"]))
    i, j = s.drop(i, j)
    s.write_compressed(i, x["pos0"], x["crd0"])
    s.write_compressed(j, x["pos1"], x["crd1"])
    s.write_values(values, x["values"])
    return d


def matrix_product(b: Any, c: Any, order: str, **options: Any) -> Design:
    """X_ij = B_ik C_kj in one of three orders [SAM, sec. 6.3]."""
    d = Design(Streams(f"product_{order}", **options), (b.shape[0], c.shape[1]))
    {"ijk": _inner, "ikj": _rows, "kij": _outer}[order](d, b, c)
    return d


def _inner(d: Design, b: Any, c: Any) -> None:
    s = d.streams
    left, right, x = d.matrix("B", b), d.matrix("C", c.T), d.result()
    i, ref_i = s.scan_compressed(s.root(), left["pos0"], left["crd0"])
    j, ref_j = s.scan_compressed(s.repeat(i, s.root()), right["pos0"], right["crd0"])
    k_b = s.scan_compressed(s.repeat(j, ref_i), left["pos1"], left["crd1"])
    k_c = s.scan_compressed(ref_j, right["pos1"], right["crd1"])
    k, ((ref_b,), (ref_c,)) = s.intersect(k_b, k_c)
    products = s.compute(Op.MULTIPLY, s.load(ref_b, left["values"]), s.load(ref_c, right["values"]))
    total = s.reduce(products)
    j, _ = s.drop(j, k)
    i, j = s.drop(i, j)
    s.write_compressed(i, x["pos0"], x["crd0"])
    s.write_compressed(j, x["pos1"], x["crd1"])
    s.write_values(total, x["values"])


def _rows(d: Design, b: Any, c: Any) -> None:
    s = d.streams
    left, right, x = d.matrix("B", b), d.matrix("C", c), d.result()
    i, ref_i = s.scan_compressed(s.root(), left["pos0"], left["crd0"])
    k_b = s.scan_compressed(ref_i, left["pos1"], left["crd1"])
    k_c = s.scan_compressed(s.repeat(i, s.root()), right["pos0"], right["crd0"])
    _, ((ref_b,), (ref_c,)) = s.intersect(k_b, k_c)
    j, ref_j = s.scan_compressed(ref_c, right["pos1"], right["crd1"])
    products = s.compute(
        Op.MULTIPLY,
        s.load(s.repeat(j, ref_b), left["values"]),
        s.load(ref_j, right["values"]),
    )
    (j,), total = s.reduce_points([j], products)
    i, j = s.drop(i, j)
    s.write_compressed(i, x["pos0"], x["crd0"])
    s.write_compressed(j, x["pos1"], x["crd1"])
    s.write_values(total, x["values"])


def _outer(d: Design, b: Any, c: Any) -> None:
    s = d.streams
    left, right, x = d.matrix("B", b.T), d.matrix("C", c), d.result()
    k_b = s.scan_compressed(s.root(), left["pos0"], left["crd0"])
    k_c = s.scan_compressed(s.root(), right["pos0"], right["crd0"])
    _, ((ref_b,), (ref_c,)) = s.intersect(k_b, k_c)
    i, ref_i = s.scan_compressed(ref_b, left["pos1"], left["crd1"])
    j, ref_j = s.scan_compressed(s.repeat(i, ref_c), right["pos1"], right["crd1"])
    products = s.compute(
        Op.MULTIPLY,
        s.load(s.repeat(j, ref_i), left["values"]),
        s.load(ref_j, right["values"]),
    )
    (i, j), total = s.reduce_points([i, j], products)
    s.write_compressed(i, x["pos0"], x["crd0"])
    s.write_compressed(j, x["pos1"], x["crd1"])
    s.write_values(total, x["values"])
