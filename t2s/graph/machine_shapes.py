"""Find the machines of a graph that are equal up to names.

The copies of a loop's body that ``parallelize`` makes are such machines.  Only one of them is
verified, and one function of native code serves them all, so that the time to compile a graph grows
with its shapes, not with its machines.

The graph need not be verified.  Each machine gets the number of its shape, and its names in the
places where machines of that shape differ.  Two machines have the same shape if they are equal when
the names of the node, of its channels and of its tensors are replaced by their order of appearance,
and if these channels and tensors have the same types and extents.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any

from t2s.core.expr import Expr
from t2s.core.types import Type
from t2s.core.walk import Term, children
from t2s.graph.body import Let, Load, Register, RegisterRead, RegisterWrite, Store
from t2s.graph.cache import GraphCache
from t2s.graph.graph import Channel, Graph, Tensor
from t2s.graph.nodes import Machine, Search

_SAYS_WHERE = frozenset({"location", "region"})
_NAMELESS = (Expr, Let, Register, RegisterRead, RegisterWrite)
"""Terms that name neither nodes nor channels nor tensors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineShape:
    """The number of a shape in its graph, and the names of a machine that has it."""

    number: int
    names: tuple[str, ...]

    def names_in(self, other: MachineShape) -> dict[str, str]:
        """The names of another machine of this shape, by the names of this one."""
        return dict(zip(self.names, other.names, strict=True))


_SHAPES: GraphCache[None, dict[str, MachineShape]] = GraphCache()


def shapes_of(graph: Graph) -> Mapping[str, MachineShape]:
    """The shape of every machine of a graph, by the name of the machine."""
    return _SHAPES.get(graph, None, lambda: _Shapes(graph).all())


def firsts_of_shapes(graph: Graph) -> frozenset[str]:
    """The names of the first machine of each shape."""
    firsts: dict[int, str] = {}
    for name, shape in shapes_of(graph).items():
        firsts.setdefault(shape.number, name)
    return frozenset(firsts.values())


@dataclass(slots=True)
class _Shapes:
    """Terms of one graph by numbers: equal terms, and equal shapes, have equal numbers."""

    graph: Graph
    numbers: dict[object, int] = field(default_factory=dict)
    known: dict[int, int] = field(default_factory=dict)
    tensors: dict[str, str] = field(init=False)
    scalars: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.tensors = {tensor.name: _nameless_text(tensor) for tensor in self.graph.tensors}
        self.scalars = frozenset(parameter.name for parameter in self.graph.parameters)

    def all(self) -> dict[str, MachineShape]:
        return {node.name: self._shape(node) for node in self.graph.machines}

    def _shape(self, node: Machine) -> MachineShape:
        inputs, outputs = self.graph.inputs_of(node.name), self.graph.outputs_of(node.name)
        used = dict.fromkeys(
            statement.tensor
            for statement in node.statements()
            if isinstance(statement, Load | Store | Search)
        )
        mentioned = dict.fromkeys([node.name, *(c.name for c in (*inputs, *outputs)), *used])
        names = {name: n for n, name in enumerate(n for n in mentioned if n not in self.scalars)}
        parts = (
            self._place_of_names(node, names),
            *(("in", *self._port(source, source.sink_index, names)) for source in inputs),
            *(("out", *self._port(sink, sink.source_index, names)) for sink in outputs),
            *((names.get(name, name), self.tensors.get(name)) for name in used),
        )
        return MachineShape(number=self._number(parts), names=tuple(names))

    def _port(
        self, channel: Channel, index: tuple[Expr, ...], names: Mapping[str, int]
    ) -> tuple[object, ...]:
        indices = tuple(self._nameless(expr) for expr in index)
        own = names.get(channel.name, channel.name)
        return own, repr(channel.stream), repr(channel.shape), indices

    def _number(self, key: object) -> int:
        return self.numbers.setdefault(key, len(self.numbers))

    def _place_of_names(self, value: Any, names: Mapping[str, int]) -> object:
        """A part of a machine, with numbers in place of names; it is nested few levels deep."""
        match value:
            case _ if isinstance(value, _NAMELESS):
                return self._nameless(value)
            case Term():
                fields = (
                    self._place_of_names(getattr(value, name), names) for name in _fields(value)
                )
                return self._number((type(value), *fields))
            case tuple():
                return tuple(self._place_of_names(item, names) for item in value)
            case str():
                return ("name", names[value]) if value in names else value
            case _:
                return _spelled(value)

    def _nameless(self, root: Term) -> int:
        """The number of a term, of whatever depth, without names; each object is read once."""
        known, waiting = self.known, [root]
        while waiting:
            term = waiting[-1]
            if id(term) not in known:
                inside = [item for item in children(term) if id(item) not in known]
                if inside:
                    waiting += inside
                    continue
                values = (self._read(getattr(term, name)) for name in _fields(term))
                known[id(term)] = self._number((type(term), *values))
            waiting.pop()
        return known[id(root)]

    def _read(self, value: Any) -> object:
        match value:
            case Term():
                return self.known[id(value)]
            case tuple():
                return tuple(self._read(item) for item in value)
            case str():
                return value
            case _:
                return _spelled(value)


def _nameless_text(tensor: Tensor) -> str:
    return repr(dataclasses.replace(tensor, name="", location=None, ascending=None))


def _fields(term: Term) -> tuple[str, ...]:
    kind: Any = type(term)
    return _fields_of(kind)


@cache
def _fields_of(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind) if field.name not in _SAYS_WHERE)


def _spelled(value: Any) -> object:
    """A value such that equal ones are one: 1, 1.0 and True are not, nor are 0.0 and -0.0."""
    match value:
        case None | Type() | Enum():
            return value
        case _:
            return (repr(value),)
