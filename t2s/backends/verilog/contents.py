"""What memory holds, as the files that the testbench reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from math import prod
from pathlib import Path

import numpy as np

from t2s.core.ops import Array
from t2s.graph.graph import Tensor
from t2s.graph.layout import pack


def memory_of(tensor: Tensor, inputs: Mapping[str, Array] | None) -> Array:
    """A tensor as it is in memory at the start; without inputs all zeros."""
    if inputs is None:
        return np.zeros(tensor.allocated, tensor.type.numpy)
    return pack(tensor, np.asarray(inputs[tensor.array]))


def hexadecimal(array: Array) -> str:
    """One line for each element, in row-major order: the pattern of its bits."""
    flat = np.ascontiguousarray(array).reshape(-1)
    patterns = flat.view(f"u{flat.dtype.itemsize}")
    return "".join(f"{int(pattern):x}\n" for pattern in patterns)


def read_back(path: Path, tensor: Tensor, length: int | None) -> Array:
    """What the testbench has written; ``length`` is that of a tensor whose length was not known."""
    shape = tensor.allocated if length is None else (length,)
    if length == 0:
        return np.zeros(shape, tensor.type.numpy)
    lines = (line.split("//")[0].split() for line in path.read_text().splitlines())
    words = (word for word in chain.from_iterable(lines) if not word.startswith("@"))
    unsigned = np.dtype(f"u{tensor.type.numpy.itemsize}")
    patterns = np.fromiter((int(word, 16) for word in words), unsigned, prod(shape))
    return patterns.view(tensor.type.numpy).reshape(shape)
