"""``forward`` in arrays whose PEs take different values: triangles, and sums of growing length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import t2s
from t2s import Float, Func, ImageParam, RDom, Var

SIZE = 4


@dataclass(frozen=True, kw_only=True)
class Product:
    """``C(i,j) = sum over k of A(i,k) * B(k,j) * w(k)``, some of it.

    ``rows``: which j each row has; ``sums``: which k each row sums over.  ``order``: the nest,
    innermost first; ``space``: unrolled loops; ``forwards``: operands and loops.
    """

    rows: str
    sums: str
    order: str
    space: str
    forwards: tuple[str, ...]

    def has(self, i: int, j: int, k: int) -> bool:
        row = {"box": True, "lower": j <= i, "upper": j >= i, "strict": j < i}[self.rows]
        return row and {"box": True, "growing": k <= i, "shrinking": k >= i}[self.sums]

    def design(self) -> Func:
        A, B, w = (
            ImageParam(Float(32), rank, name=n) for n, rank in zip("ABw", (2, 2, 1), strict=True)
        )
        i, j = Var("i"), Var("j")
        first = {"box": (0, SIZE), "growing": (0, i + 1), "shrinking": (i, SIZE - i)}
        k = RDom(*first[self.sums], name="k")
        row = {"box": (0, SIZE), "lower": (0, i + 1), "upper": (i, SIZE - i), "strict": (0, i)}
        C = Func("C")
        C[i, j] = 0.0
        C[i, j] += A[i, k] * B[k, j] * w[k]
        C.bound(i, 0, SIZE).bound(j, *row[self.rows])
        loops = {"i": i, "j": j, "k": k}
        loaders = dict(zip("ABw", t2s.funcs("A_loader B_loader w_loader"), strict=True))
        C.update().reorder(*(loops[name] for name in self.order))
        C.unroll(*(loops[name] for name in self.space))
        for tensor, name in ((A, "A"), (B, "B"), (w, "w")):
            C.isolate_producer(tensor, loaders[name])
        C.isolate_consumer(Func("unloader"))
        for operand, loop in self.forwards:
            C.forward(loaders[operand], loops[loop])
        return C


PRODUCTS = (
    Product(rows="box", sums="growing", order="kji", space="ij", forwards=("Bi", "Aj")),
    Product(rows="box", sums="growing", order="kji", space="i", forwards=("Bi", "wi")),
    Product(rows="box", sums="shrinking", order="kji", space="ij", forwards=("wj", "wi")),
    Product(rows="lower", sums="box", order="jik", space="ij", forwards=("Bi", "Aj", "wi", "wj")),
    Product(rows="lower", sums="growing", order="kji", space="ij", forwards=("wj", "wi", "Bi")),
    Product(rows="upper", sums="shrinking", order="kji", space="ij", forwards=("Aj", "Bi")),
    Product(rows="strict", sums="box", order="jik", space="ij", forwards=("Aj", "Bi", "wi")),
    Product(rows="strict", sums="growing", order="kji", space="i", forwards=("wi",)),
)


@pytest.fixture(scope="module")
def operands() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {"A": (SIZE, SIZE), "B": (SIZE, SIZE), "w": (SIZE,)}
    return {name: rng.random(shape, np.float32) for name, shape in shapes.items()}


def test_products_of_triangles(operands: dict[str, np.ndarray]) -> None:
    for product in PRODUCTS:
        graph = product.design().lower()
        given = {
            tensor: operands[tensor][tuple(slice(extent) for extent in graph.tensor(tensor).shape)]
            for tensor in "ABw"
        }
        native, plain = (t2s.simulate(graph, given, engine=e) for e in ("native", "python"))
        keep = np.fromfunction(np.vectorize(product.has), (SIZE,) * 3, dtype=int)
        terms = np.einsum("ik,kj,k->ijk", operands["A"], operands["B"], operands["w"])
        expected = (terms * keep).sum(2)
        result = native.outputs["C"]
        rows, columns = result.shape
        assert np.allclose(result, expected[:rows, :columns], rtol=1e-5), product
        assert native.cycles == plain.cycles, product
        assert native.nodes == plain.nodes, product


def symmetric(lower: bool, forwards: tuple[str, ...]) -> Func:
    """One triangle of ``A A^T`` as a recurrence, on a triangle of PEs."""
    A, B = (ImageParam(Float(32), 2, name=name) for name in "AB")
    k, i, j = t2s.variables("k i j")
    S, C = Func("S", type=Float(32)), Func("C")
    S[k, i, j] = t2s.select(k == 0, 0.0, S[k - 1, i, j]) + A[i, k] * B[j, k]
    C[i, j] = S[SIZE - 1, i, j]
    row = (0, i + 1) if lower else (i, SIZE - i)
    S.bound(k, 0, SIZE).bound(i, 0, SIZE).bound(j, *row)
    C.bound(i, 0, SIZE).bound(j, *row)
    loaders = dict(zip("AB", t2s.funcs("A_loader B_loader"), strict=True))
    S.space_time_transform(i, j)
    S.isolate_producer(A, loaders["A"]).isolate_producer(B, loaders["B"])
    C.isolate_consumer(Func("unloader"))
    for operand, loop in forwards:
        S.forward(loaders[operand], {"i": i, "j": j}[loop])
    return C


@pytest.mark.parametrize("lower", [True, False])
def test_recurrences_on_a_triangle(lower: bool, operands: dict[str, np.ndarray]) -> None:
    """They ended in a deadlock, or with tokens left."""
    a, b = operands["A"], operands["B"]
    expected = (np.tril if lower else np.triu)(a @ b.T)
    cycles = []
    for forwards in ((), ("Aj",), ("Bi",), ("Aj", "Bi")):
        graph = symmetric(lower, forwards).lower()
        native, plain = (
            t2s.simulate(graph, {"A": a, "B": b}, engine=engine) for engine in ("native", "python")
        )
        assert np.allclose(native.outputs["C"], expected, rtol=1e-5)
        assert native.cycles == plain.cycles
        cycles.append(native.cycles)
    assert cycles == [SIZE + 2, 2 * SIZE + 1, 2 * SIZE + 1, 3 * SIZE]


def started(sums: str, forwards: str) -> Func:
    """Sums along k that start with ``start(0)``, at another k in each row of PEs or at the same."""
    A, start = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 1, name="start")
    C, loader, i, j = Func("C"), Func("loader"), Var("i"), Var("j")
    k = RDom(*{"growing": (0, i + 1), "shrinking": (i, SIZE - i)}[sums], name="k")
    C[i, j] = start[0]
    C[i, j] += A[k, j]
    C.bound(i, 0, SIZE).bound(j, 0, SIZE).unroll(i, j).isolate_producer(start, loader)
    for name in forwards:
        C.forward(loader, {"i": i, "j": j}[name])
    return C


def test_start_values_of_sums_that_start_at_different_iterations(
    operands: dict[str, np.ndarray],
) -> None:
    """What is refused works as soon as its hint is followed, with or without the other forward."""
    a, start = operands["A"], np.array([7], np.float32)
    rows = np.tri(SIZE, dtype=np.float32)
    hint = r"leave out this forward: loader then sends start\[0\] to each PE along i"
    for forwards in ("i", "ij", "ji"):
        with pytest.raises(t2s.errors.UserError, match=hint):
            t2s.lower(started("shrinking", forwards))
    pes = []
    for sums, forwards in (
        ("shrinking", ""),
        ("shrinking", "j"),
        ("growing", "i"),
        ("growing", "ij"),
    ):
        graph = t2s.lower(started(sums, forwards))
        native, plain = (
            t2s.simulate(graph, {"A": a, "start": start}, engine=engine)
            for engine in ("native", "python")
        )
        expected = (rows if sums == "growing" else rows.T) @ a + start
        assert np.allclose(native.outputs["C"], expected, rtol=1e-5), (sums, forwards)
        assert native.cycles == plain.cycles
        pes.append(graph.node("loader").pe_count)
    assert pes == [SIZE**2, SIZE, SIZE, 1]


def test_each_value_is_loaded_once(operands: dict[str, np.ndarray]) -> None:
    """B enters the triangle at its diagonal, and no PE loads what a neighbor has."""
    graph = symmetric(True, ("Aj", "Bi")).lower()
    result = t2s.simulate(graph, {"A": operands["A"], "B": operands["B"]})
    assert [result.nodes[f"{name}_loader"].firings for name in "AB"] == [SIZE**2, SIZE**2]
    text = symmetric(True, ("Aj", "Bi")).print_loop_nest()
    assert "B = receive from B_loader, passed on along i" in text
