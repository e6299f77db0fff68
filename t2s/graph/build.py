"""Helpers for code that builds graphs: expressions, and an accumulator of nodes and channels."""

from __future__ import annotations

from dataclasses import dataclass, field

from t2s.core.expr import Const, Expr, Index, Local, Select, const
from t2s.core.location import SourceLocation
from t2s.core.types import INT32, Type
from t2s.graph.body import Register, SpaceDimension
from t2s.graph.graph import Channel, Graph, StreamKind, StreamType, Tensor
from t2s.graph.nodes import Loop, Node

Number = Expr | int


def index(name: str) -> Index:
    """The value of a loop or of a space dimension."""
    return Index(name=name)


def local(name: str, type: Type = INT32) -> Local:
    """A value bound before."""
    return Local(name=name, type=type)


def zero(type: Type) -> Const:
    """The zero of a scalar type."""
    return const(0.0 if type.is_float else False if type.is_bool else 0, type)


def number(value: Number) -> Expr:
    """A value as an int32 expression."""
    return const(value) if isinstance(value, int) else value


def add(left: Number, right: Number) -> Expr:
    """The sum; of integers that are known, at once."""
    if left == 0 and isinstance(left, int):
        return number(right)
    if right == 0 and isinstance(right, int):
        return number(left)
    return number(left) + number(right)


def times(left: Number, right: Number) -> Expr:
    """The product; a factor of one vanishes."""
    if isinstance(right, int) and right == 1:
        return number(left)
    return number(left) * number(right)


def quotient(left: Number, right: int) -> Expr:
    """The quotient, rounded down."""
    return number(left) if right == 1 else number(left) // number(right)


def remainder(left: Number, right: int) -> Expr:
    """What a division leaves."""
    return const(0) if right == 1 else number(left) % number(right)


def select(condition: Expr, if_true: Number, if_false: Number) -> Expr:
    """One of two values."""
    chosen = number(if_true)
    return Select(condition=condition, if_true=chosen, if_false=number(if_false), type=chosen.type)


def loop(name: str, extent: int) -> Loop:
    """A loop from 0."""
    return Loop(name=name, minimum=const(0), extent=const(extent))


def space(name: str, extent: int) -> SpaceDimension:
    """A space dimension from 0."""
    return SpaceDimension(name=name, minimum=0, extent=extent)


@dataclass(kw_only=True)
class GraphParts:
    """The parts of a graph that is being written."""

    nodes: list[Node] = field(default_factory=list)
    channels: list[Channel] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)

    def link(
        self,
        name: str,
        type: Type,
        source: str,
        sink: str,
        *,
        shape: tuple[int, ...] = (),
        source_index: tuple[Expr, ...] = (),
        sink_index: tuple[Expr, ...] = (),
        capacity: int = 2,
        kind: StreamKind = StreamKind.VALUE,
        location: SourceLocation | None = None,
    ) -> None:
        """Add a channel of single values."""
        self.channels.append(
            Channel(
                name=name,
                stream=StreamType(element=type, kind=kind),
                source=source,
                sink=sink,
                shape=shape,
                source_index=source_index,
                sink_index=sink_index,
                capacity=capacity,
                location=location,
            )
        )

    def graph(self, name: str, location: SourceLocation | None) -> Graph:
        """All parts as a graph."""
        return Graph(
            name=name,
            nodes=tuple(self.nodes),
            channels=tuple(self.channels),
            tensors=tuple(self.tensors),
            location=location,
        )


def register(
    name: str,
    type: Type = INT32,
    shape: tuple[int, ...] = (),
    distance: int = 1,
    location: SourceLocation | None = None,
) -> Register:
    """A register file."""
    return Register(name=name, type=type, shape=shape, distance=distance, location=location)
