"""One function for all machines of one shape: the same but for names and places in the arena.

The copies of a loop's body that ``parallelize`` makes are such machines.  The function of a shape
takes a table of what differs: offsets of sections, numbers of tensors, the number of its first
fault.  So the code of a graph grows with its shapes, not with its machines.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from t2s.core.expr import Expr
from t2s.core.walk import Term, distinct
from t2s.graph.body import Load, Store
from t2s.graph.graph import Graph
from t2s.graph.machine import Machine, Search
from t2s.simulator.emit.builder import Builder
from t2s.simulator.emit.llvm import I64, Value
from t2s.simulator.native.layout import Key, Layout
from t2s.simulator.native.representation import offset_by

OF_A_NODE = frozenset(
    [
        "tensor",
        "extent",
        "ring",
        "heads",
        "tails",
        "unfinished",
        "state",
        "trace",
        "memory",
        "register",
    ]
)
"""Kinds of sections that belong to a node, a channel or a tensor."""

NUMBER = "number"
"""With a tensor: its position among those of the graph."""

FAULTS = "faults"
"""How many faults other machines have before those of this one."""

_NOT_IN_CODE = frozenset({"location", "region"})


@dataclass(slots=True, kw_only=True)
class Table:
    """The table of the function that is being emitted; ``keys`` grows with what it looks up."""

    pointer: Value
    keys: list[Key]
    _values: dict[Key, Value] = field(default_factory=dict)

    def value(self, builder: Builder, key: Key) -> Value:
        """An entry, loaded at the entry of the function."""
        if key not in self._values:
            with builder.goto_entry_block():
                where = offset_by(builder, self.pointer, 8 * len(self.keys))
                self._values[key] = builder.load(where, I64)
            self.keys.append(key)
        return self._values[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineShape:
    """A machine as a text in which its ``names`` are numbers: equal texts, equal code."""

    text: str
    names: tuple[str, ...]

    def names_in(self, other: MachineShape) -> dict[str, str]:
        """The names of another machine of this shape, by the names of this one."""
        return dict(zip(self.names, other.names, strict=True))


def shapes_of(graph: Graph) -> dict[str, MachineShape]:
    """The shapes that two or more machines of a graph have, by the names of these machines."""
    tensors = {tensor.name: _tensor_text(tensor) for tensor in graph.tensors}
    found = {node.name: _shape(graph, node, tensors) for node in graph.machines}
    counts = Counter(shape.text for shape in found.values())
    return {name: shape for name, shape in found.items() if counts[shape.text] > 1}


def _shape(graph: Graph, node: Machine, tensors: Mapping[str, str]) -> MachineShape:
    inputs, outputs = graph.inputs_of(node.name), graph.outputs_of(node.name)
    used = dict.fromkeys(
        statement.tensor
        for statement in node.statements()
        if isinstance(statement, Load | Store | Search)
    )
    wanted = dict.fromkeys([node.name, *(c.name for c in (*inputs, *outputs)), *used])
    parameters = {parameter.name for parameter in graph.parameters}
    names = {name: n for n, name in enumerate(n for n in wanted if n not in parameters)}
    ports = [("in", one, one.sink_index) for one in inputs]
    ports += [("out", one, one.source_index) for one in outputs]
    numbers: dict[int, int] = {}
    parts: list[object] = [_written(node, numbers, names)]
    for side, channel, index in ports:
        parts.append((side, names.get(channel.name, channel.name), channel.stream, channel.shape))
        parts += [_written(one, numbers, names) for one in index]
    parts += [(names.get(name, name), tensors[name]) for name in used]
    return MachineShape(text=repr(parts), names=tuple(names))


def _written(root: Machine | Expr, numbers: dict[int, int], names: Mapping[str, int]) -> object:
    """A term, each object in it once, without the names that only say where something is."""
    terms = [term for term in distinct(root) if id(term) not in numbers]
    numbers.update({id(term): len(numbers) + n for n, term in enumerate(terms)})

    def shown(value: Any) -> object:
        match value:
            case Term():
                return ("#", numbers[id(value)]) if id(value) in numbers else repr(value)
            case tuple():
                return tuple(map(shown, value))
            case str():
                return ("name", names[value]) if value in names else value
            case _:
                return repr(value)

    return [
        numbers[id(root)],
        [
            (
                type(term).__qualname__,
                *(
                    shown(getattr(term, one.name))
                    for one in dataclasses.fields(term)  # type: ignore[arg-type]
                    if one.name not in _NOT_IN_CODE
                ),
            )
            for term in terms
        ],
    ]


def _tensor_text(tensor: Any) -> str:
    return repr(dataclasses.replace(tensor, name="", location=None, ascending=None))


def numbers_of(
    graph: Graph, layout: Layout, keys: Sequence[Key], names: Mapping[str, str], faults: int
) -> list[int]:
    """The table of a machine, of the keys that its function looks up for another one."""
    tensors = {tensor.name: number for number, tensor in enumerate(graph.tensors)}
    found: list[int] = []
    for kind, *rest in keys:
        here = tuple(names.get(name, name) for name in rest)
        if kind == FAULTS:
            found.append(faults)
        elif kind == NUMBER:
            found.append(tensors[here[0]])
        else:
            found.append(layout.sections[kind, *here].offset)
    return found


def renamed(messages: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """Messages with other names in them."""
    pattern = re.compile(r"(?<!\w)(" + "|".join(map(re.escape, names)) + r")(?!\w)")
    return [pattern.sub(lambda found: names[found[1]], message) for message in messages]
