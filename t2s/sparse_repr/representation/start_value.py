"""The start value of a product: what ``y[r] = ...`` says before sums are added to it.

It may read inputs at any place that follows from the row (and from the right-hand side), scalars,
and the sizes of the matrix: ``y[r] = beta * z[r]``, ``y[r] = (1 - d) / A.extent(0)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.expr import Const, Expr, Index, Local, Parameter, Read, evaluate
from t2s.core.location import SourceLocation
from t2s.core.printer import show
from t2s.core.walk import Term, rewrite, walk
from t2s.func.symbols import ImageParam, Param

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, kw_only=True)
class Start:
    """``y[r, n] = value``.

    Attributes
    ----------
    row, side: the Vars of the left side; ``side`` only where there are right-hand sides.
    operands: the inputs that the value reads, by their names.
    """

    value: Expr
    row: str
    side: str | None
    operands: Mapping[str, ImageParam]
    location: SourceLocation

    @property
    def reads(self) -> tuple[Read, ...]:
        """Every different read, in the order of the expression."""
        return tuple(dict.fromkeys(node for node in walk(self.value) if isinstance(node, Read)))


def start_of(
    func: str, value: Expr, target: Sequence[str], symbols: Mapping[str, object],
    location: SourceLocation,
) -> Start | None:  # fmt: skip
    """The start value; ``None`` if it is 0, which hardware has for nothing."""
    if isinstance(value, Const) and value.value == 0:
        return None
    operands: dict[str, ImageParam] = {}
    for node in walk(value):
        if isinstance(node, Read):
            symbol = symbols[node.source]
            inner = [part for at in node.indices for part in walk(at)]
            if not isinstance(symbol, ImageParam) or type(symbol) is not ImageParam:
                _refuse(
                    func, node, "ImageParams, numbers, Params and sizes of the matrix", location
                )
            given = [symbols.get(part.name) for part in inner if isinstance(part, Parameter)]
            if any(isinstance(part, Read) for part in inner) or any(
                isinstance(symbol, Param) for symbol in given
            ):
                wanted = f"places that follow from {', '.join(target)} and numbers"
                _refuse(func, node, wanted, location)
            operands[node.source] = symbol
    side = target[1] if len(target) == 2 else None
    return Start(value=value, row=target[0], side=side, operands=operands, location=location)


def _refuse(func: str, node: Read, expected: str, location: SourceLocation) -> NoReturn:
    raise UnsupportedError(
        f"the start value of {func} reads {show(node)}",
        location=location,
        expected=expected,
        given=show(node),
    )


def extents_of(start: Start, rows: int, width: int) -> dict[str, tuple[int, ...]]:
    """The shapes of the operands, for so many rows and right-hand sides: what is read of them.

    Raises ``UserError`` where something in front of an operand, or behind its declared shape, is
    read.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    environment = _points(start, rows, width)
    for read in start.reads:
        operand = start.operands[read.source]
        found: list[int] = []
        for dimension, part in enumerate(read.indices):
            varies = any(isinstance(node, Index) for node in walk(part))
            places = np.asarray(evaluate(part, environment))
            if places.size and int(places.min()) < 0:
                _outside(start, read, "0 or more", f"{int(places.min())}, in dimension {dimension}")
            empty = not rows and varies
            found.append(0 if empty or not places.size else int(places.max()) + 1)
        known = shapes.get(read.source, (0,) * len(found))
        shapes[read.source] = tuple(max(pair) for pair in zip(known, found, strict=True))
        declared = operand.shape
        if declared is not None:
            if any(n > most for n, most in zip(found, declared, strict=True)):
                _outside(start, read, f"places in the shape {declared}", f"up to {tuple(found)}")
            shapes[read.source] = declared
    return shapes


def _outside(start: Start, read: Read, expected: str, given: str) -> None:
    raise UserError(
        f"{show(read)} of a start value is outside of {read.source}",
        location=start.location,
        expected=expected,
        given=given,
    )


def _points(start: Start, rows: int, width: int) -> dict[str, Array]:
    """All rows, and all right-hand sides, as arrays that broadcast."""
    row, side = np.arange(rows, dtype=np.int64), np.arange(width, dtype=np.int64)
    if start.side is None:
        return {start.row: row}
    return {start.row: row[:, None], start.side: side[None, :]}


def start_values(
    start: Start, shape: tuple[int, ...], arrays: Mapping[str, Array], scalars: Mapping[str, Array]
) -> Array:
    """The value for every element of the result with numpy; callers hold ``np.errstate``."""
    rows, width = shape[0], shape[1] if len(shape) == 2 else 1
    environment = _points(start, rows, width)
    index_type = {name: points.astype(np.int32) for name, points in environment.items()}
    values: dict[str, Any] = dict(index_type)
    names: dict[Term, str] = {}
    for number, read in enumerate(start.reads):
        places = np.broadcast_arrays(*(evaluate(part, environment) for part in read.indices))
        names[read] = f"read {number}"
        values[f"read {number}"] = arrays[read.source][tuple(places)]
    localized = rewrite(
        start.value,
        lambda node: Local(name=names[node], type=node.type) if isinstance(node, Read) else None,
    )
    return np.broadcast_to(evaluate(*environment_of(localized, values, scalars)), shape)


def environment_of(
    expression: Expr, values: Mapping[str, Any], scalars: Mapping[str, Any]
) -> tuple[Expr, dict[str, Any]]:
    """An expression and its environment, in which no scalar hides a local of the same name."""
    names = {name: f"parameter {name}" for name in scalars}

    def rule(node: Term) -> Term | None:
        if isinstance(node, Parameter):
            return Local(name=names[node.name], type=node.type)
        return None

    return rewrite(expression, rule), {
        **values,
        **{names[name]: value for name, value in scalars.items()},
    }


def scalars_in(expressions: Sequence[Expr], symbols: Mapping[str, object]) -> tuple[Param, ...]:
    """The Params that expressions use, by name."""
    used = {node.name for each in expressions for node in walk(each) if isinstance(node, Parameter)}
    found = (symbols[name] for name in sorted(used))
    return tuple(symbol for symbol in found if isinstance(symbol, Param))
