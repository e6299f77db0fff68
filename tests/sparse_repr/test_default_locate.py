"""Dense levels that a sparse operand bounds are located into by default, as ``scan`` forbids."""

from __future__ import annotations

import random

import numpy as np
import pytest

from t2s import sparse
from t2s.errors import UserError
from t2s.sparse import Kernel, Schedule
from tests.sampling import sampled

LEAVES = ("A(i,k)", "B(i,k)", "C(i)", "D(k)", "E(k,i)")


def _expression(generator: random.Random, depth: int) -> str:
    if not depth:
        return generator.choice((*LEAVES, "2"))
    left, right = (_expression(generator, generator.randrange(depth)) for _ in range(2))
    operator = generator.choice(("+", "-", "*", "*", "*", "min"))
    return f"min({left}, {right})" if operator == "min" else f"({left} {operator} {right})"


def _kernels(seed: int) -> tuple[list[Kernel], dict[str, np.ndarray]]:
    """An expression compiled by default, with scans, and with what is located said explicitly."""
    generator, numbers = random.Random(seed), np.random.default_rng(seed)
    value = _expression(generator, generator.randint(1, 4)) + " * F(i,k)"
    result = generator.choice(("X", "X(i)", "X(k)", "X(i,k)", "X(k,i)"))
    extents = {name: generator.randint(1, 4) for name in "ik"}
    formats, inputs = {}, {}
    for text in (*LEAVES, "F(i,k)"):
        if text not in value:
            continue
        name, variables = text[0], text[2:-1].split(",")
        letters = [generator.choice("sds" if name == "F" else "dddsb") for _ in variables]
        modes = generator.sample(range(len(variables)), len(variables))
        formats[name] = f"{''.join(letters)}:{','.join(map(str, modes))}"
        shape = tuple(extents[variable] for variable in variables)
        inputs[name] = numbers.integers(1, 5, shape) * (numbers.random(shape) < 0.6) * 1.0
    used = [name for name in result[2:-1] if name in "ik"]
    if used:
        formats["X"] = generator.choice(("d", "s")) * len(used)
    assignment = sparse.parse(f"{result} = {value}", formats, {"X": [extents[n] for n in used]})
    default = sparse.compile(assignment, "transpose()")
    explicit = Schedule().scan().transpose()
    chosen = [
        (name.removesuffix("_view"), line.strip().split()[1].rstrip(":"))
        for line in str(default).splitlines()
        if "locate " in line and ", by default" in line
        for name in line.split("locate ")[1].split(", by default")[0].split(", ")
    ]
    given = {tensor.name for tensor in assignment.tensors}  # others hold sums, if nothing is said
    for tensor, variable in dict.fromkeys(chosen):
        if tensor in given:
            explicit = explicit.locate(tensor, variable)
    schedules = ["scan(), transpose()", explicit]
    return [default, *(sparse.compile(assignment, one) for one in schedules)], inputs


@pytest.mark.slow
def test_located_by_default_and_scanned_and_located_are_equal() -> None:
    located = 0
    for seed in range(150):
        kernels, inputs = _kernels(seed)
        located += ", by default" in str(kernels[0])
        assert ", by default" not in str(kernels[1]) + str(kernels[2])
        expected = kernels[0].interpret(inputs)
        for kernel in kernels:
            for level in ("blocks", "loops"):
                assert np.allclose(kernel.interpret(inputs, level=level), expected), (seed, kernel)
    assert located > 60


@sampled("seed", range(200, 205), quick=2)
def test_engines_agree(seed: int) -> None:
    kernels, inputs = _kernels(seed)
    results = [kernel.simulate(inputs, engine="python") for kernel in kernels]
    for result in results:
        assert np.allclose(result.output, kernels[0].interpret(inputs))
    assert results[0].cycles == results[2].cycles


def _product(schedule: str = "") -> Kernel:
    formats = {"A": "ds", "x": "d", "y": "d"}
    return sparse.compile(sparse.parse("y(i) = A(i,j) * x(j)", formats), schedule)


def test_a_product_takes_as_long_as_what_is_stored() -> None:
    generator = np.random.default_rng(3)
    a = (generator.random((50, 200)) < 0.02) * 1.0
    inputs = {"A": a, "x": generator.integers(1, 9, 200) * 1.0}
    cycles = {text: _product(text).simulate(inputs).cycles for text in ("", "locate(x,j)")}
    assert cycles[""] == cycles["locate(x,j)"] < 50 + np.count_nonzero(a) + 60
    scanned = [_product(text).simulate(inputs) for text in ("scan(x,j)", "scan(x)", "scan()")]
    assert all(np.array_equal(result.output, a @ inputs["x"]) for result in scanned)
    assert all(result.cycles > 50 * 200 for result in scanned)


def test_the_kernel_says_what_is_located_by_default() -> None:
    assert "for j:  # locate x, by default\n" in str(_product())
    assert "for j:  # locate x\n" in str(_product("locate(x,j)"))
    assert "for j:\n" in str(_product("scan(x, j)"))
    assert "for j:\n" in str(sparse.compile(_product().assignment, Schedule().scan("x", "j")))


@pytest.mark.parametrize(
    ("text", "formats"),
    [
        ("y(i) = a(i) * b(i)", {"a": "d", "b": "d"}),  # nothing bounds the loop
        ("y(i) = a(i) + s(i)", {"a": "d", "s": "s"}),
        ("y(i) = a(i) * s(i) + a(i)", {"a": "d", "s": "s"}),  # all of a is read anyway
        ("y(i) = a(i) / s(i)", {"a": "d", "s": "s"}),
    ],
)
def test_other_levels_are_scanned(text: str, formats: dict[str, str]) -> None:
    assert "locate" not in str(sparse.compile(sparse.parse(text, formats)))


def test_a_tensor_times_itself_is_scanned_and_located_into() -> None:
    matrix = np.arange(9.0).reshape(3, 3) * (np.eye(3)[::-1] + np.eye(3))
    assignment = sparse.parse("P(i,j) = Q(i,k) * Q(k,j)", {"Q": "ds", "P": "ss"})
    kernel = sparse.compile(assignment, "reorder(i,k,j)")
    assert "for k:  # locate Q, by default" in str(kernel)
    assert np.array_equal(kernel.simulate({"Q": matrix}).output, matrix @ matrix)


def test_a_level_is_not_scanned_and_located() -> None:
    for text in ("scan(x,j), locate(x,j)", "locate(x,j), scan(x,j)"):
        with pytest.raises(UserError, match="the level of x at j is located into and scanned"):
            _product(text)
    with pytest.raises(UserError, match="there is no level of x at i to scan"):
        _product("scan(x,i)")
    with pytest.raises(UserError, match="there is no level of z to scan"):
        _product("scan(z)")
    with pytest.raises(UserError, match="the level of x at j is scanned twice"):
        _product("scan(x,j), scan(x,j)")
    with pytest.raises(UserError, match=r"scan\(x, j, k\) does not say a directive"):
        _product("scan(x,j,k)")
    with pytest.raises(UserError, match="scan names a variable without a tensor"):
        Schedule().scan(None, "j")
