"""The meaning of blocks: streams as nested lists, blocks as functions of them, without timing.

A stream of depth d is a list of lists, d deep; an empty reference is ``None``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from t2s.core.errors import InternalError
from t2s.core.expr import Const, Expr
from t2s.core.types import Type
from t2s.graph.graph import Tensor
from t2s.sparse_repr.blocks.connections import Connections, Stream
from t2s.sparse_repr.blocks.draft import BlockKind, StreamBlock
from t2s.sparse_repr.semiring import Semiring

Nested = Any


@dataclass(frozen=True, slots=True)
class Lists:
    """The content of a stream: its lists, their depth, and the lanes of a value."""

    depth: int
    tokens: Nested
    lanes: int = 1


class Known(Protocol):
    """The context of a block's meaning: stored tensors, constants, and the results."""

    semiring: Semiring

    def extent(self, variable: str) -> int:
        """The extent of a variable; ``""`` is the variable of the block's loop."""
        ...

    def constant(self, value: float | int) -> Any:
        """A number, converted to the type of the values."""
        ...

    def zero(self, lanes: int) -> Any:
        """The value of an empty reference."""
        ...

    def values(self, tensor: str) -> np.ndarray[Any, Any]:
        """The values of a tensor."""
        ...

    def fiber(self, tensor: str, level: int, at: int | None) -> tuple[list[int], list[int]]:
        """The coordinates and the positions of a level below a reference."""
        ...

    def write_level(self, level: int, coordinates: Nested) -> None:
        """Store the coordinates of a level of the result."""
        ...

    def write_values(self, values: Nested) -> None:
        """Store the values of the result, in order."""
        ...

    def store(self, values: list[tuple[int, Any]]) -> None:
        """Store values of the result at their addresses."""
        ...


class StoredLevel(Protocol):
    """A level of a tensor in a graph."""

    def scan(self, reference: Stream, name: str) -> tuple[Stream, Stream]:
        """The coordinates and the references of the fibers."""
        ...

    def join(
        self, kind: BlockKind, sides: Sequence[tuple[Any, Stream, str]], name: str
    ) -> tuple[Stream, tuple[Stream, ...]]:
        """Scan and join levels of this kind."""
        ...

    def write(
        self, coordinate: Stream, above: Stream | None, empty_fibers: bool, name: str
    ) -> None:
        """Store coordinates; ``above`` are those of the level above."""
        ...


class Placing(Protocol):
    """The context in which a block of a diagram is placed in a graph.

    ``loop`` is the variable of its loop, ``about`` the name of its first output, ``values`` the
    type of all values.
    """

    streams: Connections
    values: Type

    @property
    def semiring(self) -> Semiring: ...

    @property
    def loop(self) -> str: ...

    @property
    def about(self) -> str: ...

    def extent(self, variable: str) -> int:
        """The extent of a variable; ``""`` is the variable of the block's loop."""
        ...

    def constant(self, value: float | int) -> Const:
        """A number, converted to the type of the values."""
        ...

    def zero(self, lanes: int) -> Expr:
        """The value of an empty token."""
        ...

    def values_of(self, tensor: str, *, written: bool = False) -> Tensor:
        """The array of the values of a tensor."""
        ...

    def level(self, tensor: str, level: int, *, written: bool = False) -> StoredLevel:
        """A level of a tensor."""
        ...


class DiagramBlock(StreamBlock):
    """A block of a diagram: a function of lists, and one or several machines of a graph."""

    __slots__ = ()

    @property
    def counted(self) -> tuple[str, ...]:
        """The kinds that it counts as [SAM, Table 1]."""
        return (self.kind.value,)

    def meaning(self, known: Known, *streams: Any, **_: Any) -> tuple[Nested, ...]:
        """The output lists for the given input lists."""
        raise NotImplementedError

    def place(self, graph: Placing, *inputs: Any, **_: Any) -> tuple[Stream, ...]:
        """Place the block in a graph; returns its outputs."""
        raise NotImplementedError


def each(function: Callable[..., Nested], depth: int, *streams: Lists) -> Nested:
    """Apply a function to the parts at a depth."""

    def inside(depth: int, *parts: Nested) -> Nested:
        if depth == 0:
            return function(*parts)
        if len({len(part) for part in parts}) != 1:
            raise InternalError("the streams of a block have different shapes")
        return [inside(depth - 1, *inner) for inner in zip(*parts, strict=True)]

    return inside(depth, *(stream.tokens for stream in streams))


def columns(
    function: Callable[..., tuple[Nested, ...]], count: int, depth: int, *streams: Lists
) -> tuple[Nested, ...]:
    """As ``each``, for a function with ``count`` results."""
    rows = Lists(depth, each(function, depth, *streams))
    return tuple(each(lambda row, n=number: row[n], depth, rows) for number in range(count))


def tree(total: dict[tuple[int, ...], Any], number: int, keys: int, point: Any = ()) -> Nested:
    """Level ``number`` of points as nested lists; level ``keys`` are the values."""
    level = len(point)
    if level == keys:
        return total[point]
    coordinates = sorted({p[level] for p in total if p[:level] == point})
    if number == level:
        return coordinates
    return [tree(total, number, keys, (*point, at)) for at in coordinates]
