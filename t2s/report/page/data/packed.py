"""Arrays of integers as text for a page: differences, planes of bytes, deflated, in base64.

What a run does repeats itself, so neighboring columns are alike and most differences are zero.  The
page undoes it with the browser's own ``DecompressionStream``; ``unpacked`` is the same in Python.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedIntegers:
    """An array of 64-bit integers, of which the differences along the last axis are packed."""

    shape: tuple[int, ...]
    text: str

    def to_json(self) -> dict[str, object]:
        """What the page's script reads."""
        return {"shape": list(self.shape), "data": self.text}


def packed(values: Integers) -> PackedIntegers:
    """An array as text; the same text for the same numbers."""
    found = np.asarray(values, np.int64)
    steps = np.diff(found, axis=-1, prepend=0) if found.size else found
    planes = np.ascontiguousarray(steps).astype("<i8").view(np.uint8).reshape(-1, _BYTES).T
    return PackedIntegers(shape=found.shape, text=deflated(np.ascontiguousarray(planes).tobytes()))


def unpacked(text: str, shape: tuple[int, ...]) -> Integers:
    """The array of a text that ``packed`` has made."""
    planes = np.frombuffer(inflated(text), np.uint8).reshape(_BYTES, -1)
    steps = np.ascontiguousarray(planes.T).view("<i8").astype(np.int64).reshape(shape)
    return np.asarray(np.cumsum(steps, axis=-1), np.int64) if steps.size else steps


def deflated(content: bytes) -> str:
    """Bytes as compressed text."""
    return base64.b64encode(zlib.compress(content, 6)).decode("ascii")


def inflated(text: str) -> bytes:
    """The bytes of a text of ``deflated``."""
    return zlib.decompress(base64.b64decode(text))
