"""One function for all machines of one shape: the same but for names and places in the arena.

The copies of a loop's body that ``parallelize`` makes are such machines.  The function of a shape
takes a table of what differs: offsets of sections, numbers of tensors, the number of its first
fault.  So the code of a graph grows with its shapes, not with its machines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from t2s.graph.graph import Graph
from t2s.simulator.emit.builder import Builder
from t2s.simulator.emit.llvm import I64, Value
from t2s.simulator.emit.representation import offset_by
from t2s.simulator.values.layout import Key, ValueLayout

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
class PlaceTable:
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


def numbers_of(
    graph: Graph, layout: ValueLayout, keys: Sequence[Key], names: Mapping[str, str], faults: int
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
