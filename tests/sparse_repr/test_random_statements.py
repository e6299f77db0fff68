"""Random chains of statements in one graph, against numpy, on all levels."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

import numpy as np
import pytest

import t2s
from t2s.core.errors import UserError
from t2s.sparse_repr.concrete.fusion import Way
from tests.sparse_repr.statements import RECOMPUTE, STREAM, Array, kernel_of, some

DIMENSIONS = (4, 3, 5, 1)


@dataclass
class _Chain:
    """Statements, each of which reads the one before, and perhaps an earlier one."""

    random: random.Random
    numbers: np.random.Generator
    lines: list[str] = field(default_factory=list)
    arrays: dict[str, Array] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)

    def input(self, *shape: int) -> str:
        """An input of a shape, sometimes one that is read already."""
        known = [n for n in self.formats if n not in self.made and self.arrays[n].shape == shape]
        if known and self.random.random() < 0.4:
            return self.random.choice(known)
        name = "ABCDEFGHIJKLM"[len(self.formats) - len(self.made)]
        density = self.random.choice((0.0, 0.3, 0.6, 1.0))
        self.arrays[name] = some(self.numbers, *shape, density=density)
        self.formats[name] = self.letters(len(shape))
        return name

    def letters(self, order: int) -> str:
        return "".join(self.random.choice("ds") for _ in range(order))

    def other(self, *shape: int) -> str:
        """An operand of a shape, sometimes an intermediate."""
        earlier = [name for name in self.made if self.arrays[name].shape == shape]
        if earlier and self.random.random() < 0.4:
            return self.random.choice(earlier)
        return self.input(*shape)

    def add(self, name: str) -> None:
        """A statement that computes a tensor of this name."""
        pick = self.random.choice
        source = self.made[-1] if self.made else self.input(pick(DIMENSIONS), pick(DIMENSIONS))
        x, get = self.arrays[source], self.arrays.get
        if x.ndim == 1:
            (rows,) = x.shape
            kind = pick(("abs", "difference", "gathered", "repeated"))
        else:
            rows, columns = x.shape
            kind = pick(
                [
                    "product",
                    "gathered",
                    "relu",
                    "exp",
                    "bias",
                    "rows",
                    "sum",
                    "added",
                    "scaled",
                    "sampled",
                    "squared",
                ]
            )
        match kind:
            case "abs":
                text, value = f"(i) = abs({source}(i))", np.abs(x)
            case "difference":
                other = self.other(rows)
                text, value = f"(i) = {source}(i) - {other}(i)", x - get(other)
            case "repeated":
                other = self.input(rows, 3)
                text = f"(i,j) = {source}(i)*{other}(i,j)"
                value = x[:, None] * get(other)
            case "gathered":
                other = self.input(pick(DIMENSIONS), rows)
                rest = ",j" if x.ndim == 2 else ""
                text = f"(i{rest}) = {other}(i,k)*{source}(k{rest})"
                value = get(other) @ x
            case "product":
                other = self.input(columns, pick(DIMENSIONS))
                text, value = f"(i,j) = {source}(i,k)*{other}(k,j)", x @ get(other)
            case "relu":
                text, value = f"(i,j) = relu({source}(i,j))", np.maximum(x, 0)
            case "exp":
                text, value = f"(i,j) = exp({source}(i,j)/9)", np.exp(x / 9)
            case "bias":
                other = self.input(columns)
                text = f"(i,h) = relu({source}(i,h) + {other}(h))"
                value = np.maximum(x + get(other), 0)
            case "rows":
                other = self.other(rows)
                text = f"(i,h) = {source}(i,h)*{other}(i)"
                value = x * get(other)[:, None]
            case "sum":
                text, value = f"(i) = {source}(i,j)", x.sum(1)
            case "added":
                other = self.other(rows, columns)
                text, value = f"(i,j) = {source}(i,j) + {other}(i,j)", x + get(other)
            case "scaled":
                other = self.other(rows)
                text = f"(i,j) = {source}(i,j)*{other}(i) + {source}(i,j)"
                value = x * get(other)[:, None] + x
            case "sampled":
                other = self.other(rows, columns)
                text, value = f"(i,j) = {other}(i,j)*{source}(i,j)", x * get(other)
            case _:
                text, value = f"(i,j) = {source}(i,j)*{source}(i,j)", x * x
        self.lines.append(f"{name}{text}")
        self.arrays[name] = value
        self.made.append(name)
        self.formats[name] = self.letters(value.ndim)


def _run(seed: int) -> bool:
    """Whether the statements of a seed are one graph; it computes what numpy does then."""
    chain = _Chain(random.Random(seed), np.random.default_rng(seed))
    count = chain.random.choice((2, 3, 3, 4, 5))
    for number in range(count - 1):
        chain.add(f"T{number}")
    chain.add("Y")
    lines = "\n".join(chain.lines)
    gathered = set(re.findall(r"(T\d)\(k", lines))
    ways: dict[str, Way] = {
        name: RECOMPUTE if name in gathered else STREAM for name in chain.made[:-1]
    }
    try:
        kernel = kernel_of(lines, chain.formats, ways)
    except UserError:
        return False
    read = {tensor.name for tensor in kernel.assignment.tensors} - {"Y"}
    inputs = {name: chain.arrays[name] for name in read}
    for level in ("notation", "loops", "blocks"):
        found = kernel.interpret(inputs, level=level)
        np.testing.assert_allclose(found, chain.arrays["Y"], rtol=1e-9, atol=1e-9, err_msg=lines)
    engine = "native" if seed % 10 == 0 else "python"
    output = t2s.simulate(kernel, inputs, engine=engine).output
    np.testing.assert_allclose(output, chain.arrays["Y"], rtol=1e-9, atol=1e-9, err_msg=lines)
    return True


def test_random_statements() -> None:
    assert sum(map(_run, range(25))) > 12


@pytest.mark.slow
def test_more_random_statements() -> None:
    assert sum(map(_run, range(25, 400))) > 200
