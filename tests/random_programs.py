"""Random programs of matrices and vectors, with values by numpy line by line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.models import layernorm, softmax

Array = np.ndarray[Any, Any]
Operands = tuple[Array, ...]

# a line with its operands in place of {0}, {1}, and what numpy computes for these
LINES: dict[str, Callable[[Operands], Array]] = {
    "{r}(i,j) = {0}(i,k)*{1}(k,j)": lambda x: x[0] @ x[1],
    "{r}(i,j) = {0}(i,k)*{1}(j,k)": lambda x: x[0] @ x[1].T,
    "{r}(i,j) = {0}(i,j)*{1}(i,j)": lambda x: x[0] * x[1],
    "{r}(i,j) = {0}(i,j) - 2*{1}(j,i)": lambda x: x[0] - 2 * x[1].T,
    "{r}(i,j) = {0}(i,j)*{1}(i,k)*{1}(j,k)": lambda x: x[0] * (x[1] @ x[1].T),
    "{r}(i,j) = relu(sum(k, {0}(i,k)*{1}(k,j)) - 1)": lambda x: np.maximum(x[0] @ x[1] - 1, 0),
    "{r}(i,j) = tanh({0}(i,j))": lambda x: np.tanh(x[0]),
    "{r}(i,j) = sigmoid({0}(i,j) + {1}(i,j))": lambda x: 1 / (1 + np.exp(-x[0] - x[1])),
    "{r}(i,j) = where({0}(i,j), {1}(i,j), 0.5)": lambda x: np.where(x[0] != 0, x[1], 0.5),
    "{r}(i,j) = softmax(j; {0}(i,j))": lambda x: softmax(x[0]),
    "{r}(i,j) = softmax(i; {0}(i,k)*{1}(k,j))": lambda x: softmax((x[0] @ x[1]).T).T,
    "{r}(i,j) = layernorm(j; {0}(i,j), 0.01)": lambda x: layernorm_of(x[0]),
    "{r}(i,j) = {0}(i,j) - max(k; {1}(i,k))": lambda x: x[0] - x[1].max(1, keepdims=True),
    "{r}(i,j) = min(k; {0}(k,j)) + mean(k; {0}(i,k))": lambda x: (
        x[0].min(0)[None, :] + x[0].mean(1)[:, None]
    ),
}


def layernorm_of(x: Array) -> Array:
    """With a variance that is far from zero: rows of one value differ in their last digits."""
    return (
        layernorm(x)
        * np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        / np.sqrt(x.var(-1, keepdims=True) + 0.01)
    )


@dataclass(frozen=True, kw_only=True)
class RandomProgram:
    """A program, how some of its tensors are stored, and its inputs."""

    text: str
    formats: dict[str, str]
    inputs: dict[str, Array]
    chosen: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The tensors that the lines assign."""
        return tuple(line.split("(")[0] for line in self.text.splitlines())

    def by_numpy(self, line: str, known: dict[str, Array]) -> Array:
        """The values of a line for the tensors that it reads."""
        pattern, operands = self.chosen[self.text.splitlines().index(line)]
        return LINES[pattern](tuple(known[name] for name in operands if name in known))


@st.composite
def random_programs(draw: st.DrawFn) -> RandomProgram:
    """Up to five lines on square matrices, which have empty rows and columns."""
    size = draw(st.sampled_from((1, 2, 3, 5)))
    generator = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    inputs = {}
    for name in ("A", "B"):
        array = np.round(generator.normal(size=(size, size)), 2)
        array *= generator.random((size, size)) < draw(st.sampled_from((0.0, 0.4, 1.0)))
        inputs[name] = array
    names, lines, chosen = ["A", "B"], [], []
    for number in range(draw(st.integers(1, 5))):
        pattern = draw(st.sampled_from(sorted(LINES)))
        operands = (draw(st.sampled_from(names)), draw(st.sampled_from(names)))
        result = f"R{number}"
        lines.append(pattern.format(*operands, r=result))
        chosen.append((pattern, operands))
        names.append(result)
    text = "\n".join(lines)
    used = [name for name in names if f"{name}(" in text]
    formats = {
        name: draw(st.sampled_from(("dd", "ds", "ss", "ds:0,1")))
        for name in used
        if draw(st.booleans())
    }
    given = {name: array for name, array in inputs.items() if name in used}
    return RandomProgram(text=text, formats=formats, inputs=given, chosen=tuple(chosen))
