"""Start values of products: y[r] = start, then y[i] += or -= scalar * A.values * x, as numpy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import t2s
from t2s import Float, Func, ImageParam, Int, Param, RDom, Type, Var
from t2s.backends.opencl_fpga import emulator_available
from t2s.representation import Chain, MatrixParam, gallery, structure
from tests.sampling import sampled

RNG = np.random.default_rng(12)
ROWS = 9

Make = Callable[[dict[str, Any]], Any]


def product(
    chain: Chain,
    start: Make,
    scale: str | None = None,
    type: Type = Float(32),  # noqa: B008
    width: int = 0,
    minus: bool = False,
) -> Func:
    """y[r] = start; y[i] += scale * A.values[p, q] * x[j]; the scalars a and b as locals' names."""
    A = MatrixParam(type, 2, chain, name="A")
    rank = 2 if width else 1
    x, z = ImageParam(type, rank, name="x"), ImageParam(type, rank, name="z")
    a, b = Param(type, name="a"), Param(type, name="lane")
    p, q, r, n = Var("p"), RDom(0, A.values.extent(1), name="q"), Var("r"), Var("n")
    i, j = A.inverse_map(p, q)
    y = Func("y")
    known = {"A": A, "x": x, "z": z, "a": a, "b": b, "r": r, "n": n, "type": type}
    sides = (n,) if width else ()
    y[(r, *sides)] = start(known)
    term = A.values[p, q] * x[(j, *sides)]
    if scale is not None:
        term = known[scale] * term
    if minus:
        y[(i, *sides)] -= term
    else:
        y[(i, *sides)] += term
    if width:
        y.bound(n, 0, width)
    return y


def matrix(dtype: Any, rows: int = ROWS, columns: int = ROWS) -> sparse.csr_array:
    dense = (RNG.random((rows, columns)) < 0.4) * RNG.integers(1, 9, (rows, columns))
    dense[rows // 2] = 0
    return sparse.csr_array(dense.astype(dtype))


def check(y: Func, inputs: dict[str, Any], wanted: np.ndarray, native: bool = False) -> None:
    """Numpy and the engines give what is wanted; all the inputs are needed."""
    np.testing.assert_array_equal(y.interpret(inputs), wanted)
    plain = t2s.simulate(y, inputs, engine="python", device="arria10")
    np.testing.assert_array_equal(plain.outputs["y"], wanted)
    if native:
        compiled = t2s.simulate(y, inputs, device="arria10")
        np.testing.assert_array_equal(compiled.outputs["y"], wanted)
        assert plain.cycles == compiled.cycles


STARTS: dict[str, tuple[Make, str, Callable[..., Any]]] = {
    "constant": (lambda e: t2s.cast(e["type"], 7), "", lambda x, z: 7),
    "x[r]": (lambda e: e["x"][e["r"]], "", lambda x, z: x),
    "-x[r]": (lambda e: -e["x"][e["r"]], "", lambda x, z: -x),
    "x[r] * x[r]": (lambda e: e["x"][e["r"]] * e["x"][e["r"]], "", lambda x, z: x * x),
    "z[r]": (lambda e: e["z"][e["r"]], "z", lambda x, z: z),
    "Param": (lambda e: e["b"] + 0, "b", lambda x, z: 3),
    "0 * x[r] + Param": (lambda e: 0 * e["x"][e["r"]] + e["b"], "b", lambda x, z: 3),
    "beta * z[r]": (lambda e: e["b"] * e["z"][e["r"]], "bz", lambda x, z: 3 * z),
    "the row": (lambda e: t2s.cast(e["type"], e["r"]), "", lambda x, z: np.arange(ROWS)),
    "other places": (
        lambda e: e["z"][ROWS - 1 - e["r"]] + e["z"][e["r"] // 2] - e["x"][0],
        "z",
        lambda x, z: z[::-1] + z[np.arange(ROWS) // 2] - x[0],
    ),
    "sizes": (
        lambda e: e["z"][e["A"].extent(0) - 1 - e["r"]] * t2s.cast(e["type"], e["A"].extent(1)),
        "z",
        lambda x, z: z[::-1] * ROWS,
    ),
}

CHAINS = {
    "cisr": gallery.cisr(2),
    "csc": gallery.csc(2),
    "blocked_csr": gallery.blocked_csr(2),
    "row_blocks": gallery.row_blocks(2),
    "dia": gallery.dia(2),
}


@pytest.mark.slow
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("chain", CHAINS)
def test_sums_are_added_to_the_start_value(chain: str, start: str) -> None:
    type = Int(32) if chain == "dia" else Float(32)
    make, needs, value = STARTS[start]
    A = matrix(type.numpy)
    x = RNG.integers(1, 9, ROWS).astype(type.numpy)
    z = RNG.integers(1, 9, ROWS).astype(type.numpy)
    every = {"z": z, "b": type.numpy.type(3), "a": type.numpy.type(2)}
    names = {"z": "z", "b": "lane", "a": "a"}
    for scale, minus, factor in ((None, False, 1), ("a", True, -2)):
        native = chain in ("cisr", "csc") and start in ("x[r]", "beta * z[r]") and minus
        y = product(CHAINS[chain], make, scale, type, minus=minus)
        given = {names[key]: every[key] for key in needs + (scale or "")}
        check(y, {"A": A, "x": x, **given}, value(x, z) + factor * (A @ x), native)


@pytest.mark.parametrize("chain", ["cisr", "csc"])
@sampled(("rows", "columns"), [(5, 8), (8, 5), (0, 3), (3, 0), (0, 0)], quick=1)
def test_matrices_that_are_not_square(chain: str, rows: int, columns: int) -> None:
    """An operand that the start value reads too is as long as the longer of both."""
    A = sparse.csr_array(np.ones((rows, columns), np.float32))
    x = np.arange(1, max(rows, columns) + 1, dtype=np.float32)
    y = product(CHAINS[chain], lambda e: e["x"][e["r"]])
    check(y, {"A": A, "x": x}, x[:rows] + A @ x[:columns])
    y = product(CHAINS[chain], lambda e: e["z"][e["r"]])
    z = np.arange(rows, dtype=np.float32)
    check(y, {"A": A, "x": x[:columns], "z": z}, z + A @ x[:columns])


@sampled("chain", CHAINS, quick=2)
def test_several_right_hand_sides(chain: str) -> None:
    A = matrix(np.float32)
    x, z = (RNG.integers(1, 9, (ROWS, 3)).astype(np.float32) for _ in range(2))
    y = product(CHAINS[chain], lambda e: e["b"] * e["z"][e["r"], e["n"]], "a", width=3)
    inputs = {"A": A, "x": x, "z": z, "a": np.float32(2), "lane": np.float32(3)}
    check(y, inputs, 3 * z + 2 * (A @ x))
    y = product(CHAINS[chain], lambda e: e["x"][e["r"], e["n"]] + e["z"][0, e["n"]], width=3)
    check(y, {"A": A, "x": x, "z": z[:1]}, x + z[:1] + A @ x)


def test_rounding_stays_within_the_bound_of_a_sum_of_one_more_term() -> None:
    A = matrix(np.float32, 40, 40)
    A.data[:] = RNG.standard_normal(A.nnz)
    x, z = (RNG.standard_normal(40).astype(np.float32) for _ in range(2))
    y = product(CHAINS["csc"], lambda e: e["z"][e["r"]])
    inputs = {"A": A, "x": x, "z": z}
    exact = z.astype(float) + A.astype(float) @ x.astype(float)
    bound = 41 * np.finfo(np.float32).eps * (abs(A) @ abs(x) + abs(z))
    for found in (y.interpret(inputs), y.simulate(inputs).outputs["y"]):
        assert (abs(found - exact) <= bound).all()


def test_a_graph_takes_scalars_and_start_values_in_each_run() -> None:
    """A residual: b - A x, for several b, with one graph."""
    A = matrix(np.float32)
    x = RNG.integers(1, 9, ROWS).astype(np.float32)
    y = product(CHAINS["cisr"], lambda e: e["z"][e["r"]], "a", minus=True)
    graph, arrays = t2s.lower(y, {"A": A}), structure(y, {"A": A})
    for scale in (0.0, 1.0, -2.0):
        z = RNG.integers(1, 9, ROWS).astype(np.float32)
        found = t2s.simulate(graph, {**arrays, "x": x, "z": z, "a": scale}).outputs["y"]
        np.testing.assert_array_equal(found, z - np.float32(scale) * (A @ x))


@pytest.mark.slow
@pytest.mark.emulator
@pytest.mark.skipif(not emulator_available(), reason="the emulator is not installed")
@pytest.mark.parametrize("chain", ["cisr", "csc"])
def test_the_emulator_gives_the_same(chain: str) -> None:
    A = matrix(np.float32)
    x, z = (RNG.standard_normal(ROWS).astype(np.float32) for _ in range(2))
    y = product(CHAINS[chain], lambda e: e["b"] * e["z"][e["r"]], "a")
    inputs = {"A": A, "x": x, "z": z, "a": 2.5, "lane": 0.5}
    found = t2s.emulate(y, inputs)["y"]
    assert found.tobytes() == t2s.simulate(y, inputs).outputs["y"].tobytes()
