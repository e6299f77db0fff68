"""``locate`` in any expression: operands of sums inside of products, minima, several operands."""

from __future__ import annotations

import random
from contextlib import suppress

import numpy as np
import pytest

from t2s import sparse
from t2s.errors import UserError
from t2s.sparse import Kernel
from tests.sampling import sampled

REFUSALS = "locate leaves no operand to iterate over at .|cannot be located"
LEAVES = ("A(i,k)", "B(i,k)", "C(i)", "D(k)", "E(k,i)")


def _expression(generator: random.Random, depth: int) -> str:
    if not depth:
        return generator.choice((*LEAVES, "2"))
    left, right = (_expression(generator, generator.randrange(depth)) for _ in range(2))
    operator = generator.choice(("+", "-", "*", "*", "min", "max"))
    if operator in ("min", "max"):
        return f"{operator}({left}, {right})"
    return f"({left} {operator} {right})"


def _case(seed: int) -> tuple[Kernel, dict[str, np.ndarray], bool] | None:
    """A product of expressions of which dense levels are located; ``None`` if it is refused."""
    generator = random.Random(seed)
    value = _expression(generator, generator.randint(1, 3))
    if generator.random() < 0.7:  # coordinates to locate with
        value += " * F(i,k)"
    result = generator.choice(("X", "X(i)", "X(k)", "X(i,k)", "X(k,i)"))
    formats, inputs, levels = {}, {}, []
    extents = {name: generator.randint(1, 4) for name in "ik"}
    numbers = np.random.default_rng(seed)
    for text in (*LEAVES, "F(i,k)"):
        if text not in value:
            continue
        name, variables = text[0], text[2:-1].split(",")
        letters = [generator.choice("s" if name == "F" else "dddsb") for _ in variables]
        modes = generator.sample(range(len(variables)), len(variables))
        formats[name] = f"{''.join(letters)}:{','.join(map(str, modes))}"
        dense = [
            v for v, kind in zip((variables[m] for m in modes), letters, strict=True) if kind == "d"
        ]
        levels += [(name, variable) for variable in dense]
        shape = tuple(extents[variable] for variable in variables)
        part = generator.choice((0.3, 0.6, 1.0))
        inputs[name] = numbers.integers(1, 5, shape) * (numbers.random(shape) < part) * 1.0
    text = f"{result} = {value}"
    used = [name for name in result[2:-1] if name in "ik"]
    formats["X"] = generator.choice(("", "d" * len(used), "s" * len(used)))
    if not used or not formats["X"]:
        del formats["X"]
    orders = [order for order in ("ik", "ki") if set(order) == set("ik") & set(text)]
    schedule = "transpose()" + "".join(
        f", reorder({','.join(o)})" for o in orders[-1:] * (seed % 2)
    )
    for name, variable in levels:
        if generator.random() < 0.6:
            schedule += f", locate({name},{variable})"
    shapes = {"X": [extents[name] for name in used]}
    assignment = sparse.parse(text, formats, shapes)
    with suppress(UserError):
        return sparse.compile(assignment, schedule), inputs, "locate(" in schedule
    with pytest.raises(UserError, match=REFUSALS):
        sparse.compile(assignment, schedule)
    return None


def test_every_level_of_meaning_agrees_with_numpy() -> None:
    located = 0
    for seed in range(200):
        case = _case(seed)
        if case is None:
            continue
        kernel, inputs, locates = case
        located += locates
        expected = kernel.interpret(inputs)
        for level in ("blocks", "loops"):
            assert np.allclose(kernel.interpret(inputs, level=level), expected), (seed, str(kernel))
    assert located > 70


@sampled("seed", range(1000, 1012), quick=3)
def test_engines_agree_with_numpy(seed: int) -> None:
    case = _case(seed)
    if case is None:
        return
    kernel, inputs, _ = case
    result = kernel.simulate(inputs)
    assert np.allclose(result.output, kernel.interpret(inputs)), str(kernel)
    plain = kernel.simulate(inputs, engine="python", capacity=4)
    assert np.allclose(plain.output, result.output)


@sampled(
    "text",
    [
        "x(i) = (a(i) + b(i)) * c(i)",
        "x(i) = c(i) * min(b(i), a(i))",
        "x(i) = (b(i) + 1) * c(i)",
    ],
    quick=2,
)
def test_a_term_of_a_factor_is_looked_up_at_the_coordinates_of_the_other(text: str) -> None:
    """The loop ends with what is stored, however many coordinates there are."""
    formats = {"a": "d", "b": "s", "c": "s", "x": "s"}
    used = {name: letters for name, letters in formats.items() if f"{name}(" in text}
    assignment = sparse.parse(text, used)
    generator = np.random.default_rng(3)
    inputs = {name: generator.integers(1, 9, 400) * 1.0 for name in "abc" if f"{name}(" in text}
    for name in "bc":
        inputs[name] *= generator.random(400) < 0.02
    kernel = sparse.compile(assignment, "locate(a,i)" if "a" in inputs else None)
    result = kernel.simulate(inputs)
    assert np.array_equal(result.output, kernel.interpret(inputs))
    assert result.cycles < 60
