"""Inputs that nobody should pass: a ``T2SError`` that is not a bug of ours, or the right value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as scipy
import sparse as pydata

import t2s
from t2s import Float, Func, ImageParam, Param, RDom, Var, sparse
from t2s.representation import MatrixParam, gallery, read_matrix
from tests.sampling import sampled

pytestmark = pytest.mark.filterwarnings("ignore")  # numpy and scipy about these objects

GRID = np.arange(12, dtype=np.float32).reshape(3, 4) + 1
VECTOR = np.ones(4, np.float32)


class Odd:
    """An object whose conversion to an array fails in its own way."""

    def __array__(self, *given: Any, **more: Any) -> Any:
        raise RuntimeError("odd")


def damaged() -> Iterator[Any]:
    """Matrices of scipy that somebody broke."""
    matrix = scipy.csr_array(GRID)
    matrix.indices = matrix.indices.astype(float)
    yield matrix
    matrix = scipy.csr_array(GRID)
    matrix.indptr = np.array([0, 99])
    yield matrix
    matrix = scipy.csr_array(GRID)
    matrix.data = matrix.data[:2]
    yield matrix
    lists = scipy.lil_array(GRID)
    lists.rows[0] = [1]
    yield lists
    keys = scipy.dok_array((3, 4), dtype=np.float32)
    keys._dict[9, 9] = 1
    yield keys
    blocks = scipy.bsr_array(GRID, blocksize=(3, 2))
    blocks.indptr = np.array([0, 7])
    yield blocks
    yield scipy.coo_array((10**12, 4), dtype=np.float32)


def arrays(a: np.ndarray) -> Iterator[Any]:
    """An array in the forms that numpy has for it."""
    yield from (a, np.asfortranarray(a), a[::-1], np.repeat(a, 2, axis=-1)[..., ::2])
    for dtype in (">f4", "f8", "f2", "O", "c8", "?", "u1", "U3", "M8[s]", "g"):
        yield a.astype(dtype)
    yield a.astype([("field", "f4")])
    yield np.ma.masked_array(a, mask=a > 2)
    yield a.tolist()
    yield memoryview(np.ascontiguousarray(a))
    frozen = a.copy()
    frozen.setflags(write=False)
    yield frozen
    yield np.full(a.shape, np.nan, np.float32)


def values() -> list[Any]:
    found: list[Any] = [
        *(None, 3, 2.5, float("nan"), 10**400, True, 1j, "x", b"x", np.float32(1), np.int64(3)),
        *([], [[1, 2], [3]], [10**400], {}, {1: 2}, set(), range(4), iter([1]), slice(3)),
        *(object(), Odd(), int, np, lambda: 0, np.array(3, np.float32), np.matrix(GRID)),
        np.lib.stride_tricks.as_strided(GRID, (3, 4), (0, 0)),
        np.broadcast_to(np.float32(1), (10**6, 10**6)),
    ]
    for a in (GRID, GRID[0], GRID.T, GRID[..., None], GRID[:0], GRID[:, :0]):
        found += arrays(a)
    found += [getattr(scipy, f"{form}_array")(GRID) for form in ("coo", "csr", "csc", "dok", "bsr")]
    found += [pydata.COO.from_numpy(GRID), pydata.COO.from_numpy(GRID, fill_value=1)]
    found += [scipy.csr_array(GRID.astype(complex)), scipy.coo_array(VECTOR), *damaged()]
    found += [sparse.tensor(GRID), scipy.linalg.aslinearoperator(GRID)]
    return found


def dense() -> Func:
    x, scale = ImageParam(Float(32), 2, name="x"), Param(Float(32), name="scale")
    i, j = Var("i"), Var("j")
    y = Func("y")
    y[i, j] = x[i, j] * scale
    return y.bound(i, 0, 3).bound(j, 0, 4)


def product() -> Func:
    A = MatrixParam(Float(32), 2, gallery.csr(2), name="A")
    b = ImageParam(Float(32), 1, name="b")
    p, q, r = Var("p"), RDom(0, A.values.extent(1), name="q"), Var("r")
    i, j = A.inverse_map(p, q)
    m = Func("m")
    m[r] = 0.0
    m[i] += A.values[p, q] * b[j]
    return m


Y, M = dense(), product()
GRAPH, A = (
    t2s.lower(Y),
    MatrixParam(Float(32), 2, gallery.csr(2), name="A"),
)
K = sparse.compile(sparse.parse("s(i) = M(i,j) * c(j)", {"M": "ds"}))


def run(inputs: Any, **more: Any) -> Any:
    return t2s.simulate(GRAPH, inputs, **{"engine": "python", **more})


CALLS: dict[str, Callable[[Any], Any]] = {
    "interpret": lambda v: t2s.interpret(Y, {"x": v, "scale": 2.0}),
    "simulate": lambda v: run({"x": v, "scale": 2.0}).outputs["y"],
    "scalar": lambda v: t2s.interpret(Y, {"x": GRID, "scale": v}),
    "inputs": run,
    "inputs of a Func": lambda v: t2s.interpret(Y, v),
    "inputs of a product": lambda v: t2s.simulate(M, v, engine="python"),
    "inputs of a kernel": lambda v: K.bind(v),
    "matrix": lambda v: t2s.interpret(M, {"A": v, "b": VECTOR}),
    "operand": lambda v: t2s.interpret(M, {"A": GRID, "b": v}),
    "store": A.store,
    "lower": lambda v: t2s.lower(M, {"A": v}),
    "tensor": sparse.tensor,
    "kernel": lambda v: K.interpret({"M": v, "c": VECTOR}),
    "design": lambda v: t2s.interpret(v, {"x": GRID}),
    "engine": lambda v: run({"x": GRID, "scale": 2.0}, engine=v),
    "device": lambda v: run({"x": GRID, "scale": 2.0}, device=v),
    "read": sparse.read,
    "read_matrix": lambda v: read_matrix(v, Float(32)),
    "from_dense": lambda v: sparse.from_dense(v, sparse.csr),
    "coordinates": lambda v: sparse.from_coordinates(v, [1.0], (3, 4)),
    "values": lambda v: sparse.from_coordinates([[0, 0]], v, (3, 4)),
    "shape": lambda v: sparse.from_coordinates([[0, 0]], [1.0], v),
}

WANTED: dict[str, Callable[[np.ndarray], Any]] = {
    "interpret": lambda a: 2 * a,
    "simulate": lambda a: 2 * a,
    "matrix": lambda a: a @ VECTOR,
    "kernel": lambda a: a @ VECTOR,
}


def plain(value: Any) -> np.ndarray:
    """What an accepted value means."""
    for name in ("to_dense", "toarray", "todense"):
        if hasattr(value, name):
            return np.asarray(getattr(value, name)())
    return np.asarray(value)


@sampled("call", CALLS, quick=6)
def test_a_refusal_or_the_right_value(call: str) -> None:
    accepted, wrong = 0, []
    for number, value in enumerate(values()):
        shown = f"value {number}, a {type(value).__name__}"
        try:
            found = CALLS[call](value)
        except t2s.errors.T2SError as error:
            if isinstance(error, t2s.errors.InternalError):
                wrong.append(f"{shown}: {error}")
            continue
        except Exception as error:  # noqa: BLE001 - raw errors are what this looks for
            wrong.append(f"{shown}: {type(error).__name__} {error}")
            continue
        accepted += 1
        if call in WANTED and not np.array_equal(found, WANTED[call](plain(value)), equal_nan=True):
            wrong.append(f"{shown}: wrong")
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)
    assert accepted >= 5 or call not in WANTED
