"""What a dense program means, by plain loops over Python functions: shares no code with t2s."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

DTYPES: Mapping[str, Any] = {
    "Int(8)": np.int8,
    "Int(16)": np.int16,
    "Int(32)": np.int32,
    "Int(64)": np.int64,
    "UInt(8)": np.uint8,
    "UInt(16)": np.uint16,
    "UInt(32)": np.uint32,
    "UInt(64)": np.uint64,
    "Float(16)": np.float16,
    "Float(32)": np.float32,
    "Float(64)": np.float64,
    "BFloat()": ml_dtypes.bfloat16,
    "Bool()": np.bool_,
}

Point = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A variable, and its first value and number of values over the variables outside of it."""

    name: str
    minimum: str
    extent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A function: its loops, its value at a point, and what an update does for each point of more.

    ``value``, ``term`` and the bounds are Python over variables, arrays and functions.
    ``combine`` takes what was there as ``was`` and the term as ``new``.
    """

    name: str
    dtype: str
    loops: tuple[Loop, ...]
    value: str
    reduction: tuple[Loop, ...] = ()
    term: str | None = None
    combine: str = "was + new"


def points(loops: tuple[Loop, ...], outer: Mapping[str, int] | None = None) -> list[dict[str, int]]:
    """All points of a nest, in order."""
    found = [dict(outer or {})]
    for loop in loops:
        found = [
            {**point, loop.name: at}
            for point in found
            for first in (eval(loop.minimum, {}, point),)
            for at in range(first, first + eval(loop.extent, {}, point))
        ]
    return found


class _Elements:
    """Something with elements that formulas read with subscripts."""

    def __init__(self, element: Callable[[Point], Any]) -> None:
        self._element = element

    def __getitem__(self, indices: Any) -> Any:
        return self._element(indices if isinstance(indices, tuple) else (indices,))


def _array(array: Any) -> _Elements:
    def element(point: Point) -> Any:
        if any(not 0 <= at < size for at, size in zip(point, array.shape, strict=True)):
            raise IndexError(f"{point} of an array of shape {array.shape}")
        return array[point]

    return _Elements(element)


def _cast(dtype: Any, value: Any) -> Any:
    """Floats become integers by truncation, the nearest one where they are out of range."""
    target = np.dtype(dtype)
    if target.kind in "iu" and np.asarray(value).dtype.kind not in "iub":
        low, high = np.iinfo(target).min, np.iinfo(target).max
        number = float(value)
        return target.type(0 if number != number else min(max(int(number), low), high))
    return np.asarray(value).astype(target)[()]


def _absolute(value: Any) -> Any:
    return value if np.asarray(value).dtype.kind == "u" else np.abs(value)


def _minimum(a: Any, b: Any) -> Any:
    """As docs/language.md says: the first one, also if it is NaN, unless the second is smaller."""
    return b if b < a else a


def _maximum(a: Any, b: Any) -> Any:
    return b if b > a else a


def computed(
    stages: tuple[Stage, ...], inputs: Mapping[str, Any], output: str
) -> tuple[Any, tuple[int, ...]]:
    """The array of a function, whose element 0 is that of the smallest indices."""
    with np.errstate(all="ignore"):
        return _Program(stages, inputs).array(output)


class _Program:
    def __init__(self, stages: tuple[Stage, ...], inputs: Mapping[str, Any]) -> None:
        self.stages = {stage.name: stage for stage in stages}
        self.values: dict[tuple[str, Point], Any] = {}
        arrays = {n: _array(v) for n, v in inputs.items() if isinstance(v, np.ndarray)}
        scalars = {name: value for name, value in inputs.items() if name not in arrays}
        functions = {stage.name: self._elements(stage) for stage in stages}
        self.names = {**scalars, **arrays, **functions, "np": np, "cast": _cast, "T": DTYPES}
        self.names |= {"absolute": _absolute, "minimum": _minimum, "maximum": _maximum}
        self.code: dict[str, Any] = {}

    def _elements(self, stage: Stage) -> _Elements:
        return _Elements(lambda point: self.value(stage, point))

    def formula(self, text: str, point: Mapping[str, int]) -> Any:
        if text not in self.code:
            self.code[text] = compile(text, "<formula>", "eval")
        return eval(self.code[text], self.names, dict(point))

    def value(self, stage: Stage, at: Point) -> Any:
        key = stage.name, at
        if key not in self.values:
            point = dict(zip((loop.name for loop in stage.loops), at, strict=True))
            dtype = DTYPES[stage.dtype]
            value = dtype(self.formula(stage.value, point))
            if stage.term is not None:
                for inner in points(stage.reduction, point):
                    new = dtype(self.formula(stage.term, inner))
                    value = dtype(self.formula_of(stage.combine, value, new))
            self.values[key] = value
        return self.values[key]

    def formula_of(self, text: str, was: Any, new: Any) -> Any:
        return eval(text, self.names, {"was": was, "new": new})

    def array(self, output: str) -> tuple[Any, tuple[int, ...]]:
        stage = self.stages[output]
        places = [tuple(p[loop.name] for loop in stage.loops) for p in points(stage.loops)]
        low = tuple(min(place[d] for place in places) for d in range(len(stage.loops)))
        high = tuple(max(place[d] for place in places) for d in range(len(stage.loops)))
        shape = tuple(b - a + 1 for a, b in zip(low, high, strict=True))
        array = np.zeros(shape, DTYPES[stage.dtype])
        for place in places:
            array[tuple(a - b for a, b in zip(place, low, strict=True))] = self.value(stage, place)
        return array, low
