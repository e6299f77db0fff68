"""Every public function takes integers of numpy where it takes those of Python, with one result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Float, Func, ImageParam, Int, RDom, Var, sparse
from t2s.graph.serialize import graph_to_json
from t2s.representation import (
    ASAP,
    Chain,
    Columns,
    Index,
    Length,
    Longest,
    MatrixParam,
    Rows,
    Zero,
    dense_matrix,
    gallery,
)
from t2s.simulator.devices import Device
from tests.sampling import sampled

Integer = Callable[[int], Any]
PRODUCT = sparse.parse("x(i)=A(i,j)*y(j)", {"A": sparse.csr})
MATRIX = np.diag(np.arange(1.0, 9.0, dtype=np.float32)) + np.eye(8, k=1, dtype=np.float32)


class Counted:
    """Something else with ``__index__``."""

    def __init__(self, value: int) -> None:
        self._value = value

    def __index__(self) -> int:
        return self._value


def gemm(n: Integer, *directives: Callable[[Func, dict[str, Any]], object]) -> Func:
    A, B = (ImageParam(Float(32), 2, name=name) for name in "AB")
    i, j, k = Var("i"), Var("j"), RDom(n(0), n(8), name="k")
    C = Func("C")
    C[i, j] = 0.0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, n(0), n(8)).bound(j, n(0), n(8))
    names = {**dict(zip(["A", "B", "i", "j", "k"], (A, B, i, j, k), strict=True))}
    names |= {name: Var(name) for name in ("ii", "jj", "kk", "it", "jt")}
    names |= {f.name: f for f in t2s.funcs("A_loader A_feeder B_loader")}
    for directive in directives:
        directive(C, names)
    return C


def buffered(n: Integer) -> Func:
    def stages(C: Func, o: dict[str, Any]) -> None:
        C.split(o["i"], o["i"], o["ii"], n(4)).split(o["j"], o["j"], o["jj"], n(4))
        C.unroll(o["ii"], o["jj"])
        C.isolate_producer_chain(o["A"], o["A_loader"], o["A_feeder"])
        C.forward(o["A_feeder"], o["jj"], depth=n(3)).depth(n(5))
        C.isolate_producer(o["B"], o["B_loader"])
        o["B_loader"].depth(n(7))

    return gemm(n, stages)


def transformed(n: Integer) -> Func:
    def steps(C: Func, o: dict[str, Any]) -> None:
        p, t = t2s.variables("p t")
        rows = [[n(1), n(0), n(0)], [n(64), n(8), n(1)]]
        C.space_time_transform([o["i"], o["j"], o["k"]], [p, t], rows)

    return gemm(n, steps)


def chain(n: Integer) -> Chain:
    col_idx, width, slices = Var("col_idx"), Var("width"), Var("slices")
    packed = dense_matrix().pack(Columns, Index(col_idx))
    blocked = packed.block(Rows, n(4), Zero, Length(slices)).block(
        Columns, n(1), Longest, Length(width)
    )
    return blocked.schedule(slices, n(2), ASAP, Zero)


def product(made: Chain) -> Func:
    A, x, y = (
        MatrixParam(Float(32), 2, made, name="A"),
        ImageParam(Float(32), 1, name="x"),
        Func("y"),
    )
    ip, jp, r = Var("ip"), RDom(0, A.values.extent(1), name="jp"), Var("r")
    i, j = A.inverse_map(ip, jp)
    y[r] = 0
    y[i] += A.values[ip, jp] * x[j]
    return y


def lowered(made: Chain) -> str:
    return graph_to_json(t2s.lower(product(made), {"A": MATRIX}))


def kernel(schedule: Any) -> int:
    made = sparse.compile(PRODUCT, schedule)
    return made.simulate({"A": MATRIX, "y": MATRIX[0]}, type=Float(32)).cycles


def fitted(n: Integer) -> Any:
    fit = t2s.fit_depths(gemm(int), budget_bytes=n(10**6), workers=n(1), progress=False)
    return dict(fit.depths)


def text(design: Func, **constants: Any) -> str:
    return graph_to_json(t2s.lower(design, constants))


def sized(n: Integer, given: bool) -> str:
    N, i, A, F = t2s.Param(Int(32), name="N"), Var("i"), ImageParam(Int(32), 1, name="A"), Func("F")
    F[i] = A[i] + 1
    F.bound(i, 0, N)
    if given:
        return str(t2s.simulate(F, {"A": np.arange(5, dtype=np.int32), "N": n(5)}).cycles)
    return text(F, N=n(5))


def vectors(C: Func, o: dict[str, Any], n: Integer) -> None:
    C.split(o["j"], o["j"], o["jj"], n(4)).reorder(o["jj"], o["k"], o["j"], o["i"])


CALLS: dict[str, Callable[[Integer], Any]] = {
    "types": lambda n: (t2s.Int(n(8)), t2s.UInt(n(16)), t2s.Float(n(32)), t2s.BFloat(n(16))),
    "bounds and RDom": lambda n: text(gemm(n)),
    "split, forward and depth": lambda n: text(buffered(n)),
    "tile": lambda n: text(
        gemm(n, lambda C, o: C.tile(o["j"], o["i"], o["jj"], o["ii"], n(4), n(2)))
    ),
    "space_time_transform": lambda n: text(transformed(n)),
    "update": lambda n: text(gemm(n, lambda C, o: C.update(n(0)).unroll(o["j"]))),
    "rank and shape": lambda n: text(
        _copy(ImageParam(Int(32), n(2), name="A", shape=(n(4), n(4))))
    ),
    "subscripts": lambda n: text(_copy_of_one(n)),
    "exponents": lambda n: repr(ImageParam(Int(32), 1, name="A")[Var("i")] ** n(3)),
    "constants of lower": lambda n: sized(n, given=False),
    "constants of simulate": lambda n: sized(n, given=True),
    "max_cycles": lambda n: t2s.cycles(gemm(int), max_cycles=n(10**6)),
    "seed of stalls": lambda n: t2s.cycles(
        gemm(int), stalls=t2s.RandomStalls(seed=n(7), one_in=n(3))
    ),
    "device": lambda n: t2s.cycles(
        gemm(int),
        device=Device(name="own", description="", clock_hz=n(10**9), load_latency=n(9)),
    ),
    "fit_depths": fitted,
    "chains": lambda n: lowered(chain(n)),
    "gallery": lambda n: lowered(gallery.sliced_ell(n(2), slice_rows=n(4))),
    "blocks of the gallery": lambda n: lowered(gallery.blocked_csr(n(2), n(2), n(2))),
    "split of a schedule": lambda n: kernel(sparse.Schedule().split("j", "jo", "ji", n(4))),
    "lanes of a schedule": lambda n: kernel(sparse.Schedule().parallelize("i", n(2))),
    "vectors of a schedule": lambda n: kernel(
        sparse.Schedule().locate("y", "j").vectorize("j", n(2))
    ),
    "channels of a kernel": lambda n: (
        sparse.compile(PRODUCT)
        .simulate({"A": MATRIX, "y": MATRIX[0]}, capacity=n(4), latency=n(2))
        .cycles
    ),
    "block formats": lambda n: sparse.tensor(MATRIX, sparse.bcsr(n(2), n(2))).values.tolist(),
    "coordinates": lambda n: sparse.tensor(MATRIX, sparse.coo(n(2))).values.tolist(),
}


def _copy(A: ImageParam) -> Func:
    i, j, F = Var("i"), Var("j"), Func("F")
    F[i, j] = A[i, j]
    return F.bound(i, 0, 4).bound(j, 0, 4)


def _copy_of_one(n: Integer) -> Func:
    A, i, F = ImageParam(Int(32), 2, name="A"), Var("i"), Func("F")
    F[i] = A[i, n(2)]
    return F.bound(i, 0, 4)


@pytest.mark.parametrize("integer", [np.int64, np.uint8, Counted], ids=lambda kind: kind.__name__)
@sampled("name", CALLS, quick=2)
def test_same_result(name: str, integer: Integer) -> None:
    def given(value: int) -> Any:
        return integer(value) if value < 256 or integer is not np.uint8 else np.int64(value)

    assert CALLS[name](given) == CALLS[name](int)


@pytest.mark.parametrize("name", [name for name in CALLS if name not in ("subscripts",)])
def test_truth_values_are_no_integers(name: str) -> None:
    with pytest.raises((t2s.errors.UserError, ValueError)):
        CALLS[name](lambda value: True)


def test_numbers_of_numpy_in_subscripts() -> None:
    texts = []
    for number in (np.int64, np.int16, int):
        A, i, F = ImageParam(Int(32), 1, name="A"), Var("i"), Func("F")
        k = RDom(0, i + number(1), name="k")
        F[i] = 0
        F[i] += A[number(2) * k + number(1)]
        F.bound(i, 0, number(4))
        texts.append(text(F))
    assert texts[0] == texts[1] == texts[2]


def test_fractions_of_numpy() -> None:
    X, i = ImageParam(Float(64), 1, name="X"), Var("i")
    graphs = []
    for number in (np.float64, float):
        F = Func("F")
        F[i] = X[i] * number(0.5) + number(2.0)
        F.bound(i, 0, 4)
        graphs.append(text(F))
        fit = t2s.fit_depths(F, slack=number(0.1), progress=False)
        assert fit.cycles == t2s.cycles(fit.apply(F))
    assert graphs[0] == graphs[1]


@pytest.mark.parametrize(
    ("subscript", "expected"),
    [
        (lambda i, p: i + np.int64(1) + p, [4, 5, 6, 7]),
        (lambda i, p: (i + np.int64(1) + p) % np.int64(8), [4, 5, 6, 7]),
    ],
)
def test_subscripts_mix_them_with_parameters_of_their_type(
    subscript: Callable[..., Any], expected: list[int]
) -> None:
    """A constant becomes int32 only where all of the subscript does."""
    i, p = t2s.Var("i"), t2s.Param(Int(64), name="p")
    A, C = ImageParam(Int(32), 1, name="A"), Func("C")
    C[i] = A[subscript(i, p)]
    C.bound(i, 0, 4)
    result = t2s.simulate(C, {"A": np.arange(8, dtype=np.int32), "p": 3})
    assert result.outputs["C"].tolist() == expected
