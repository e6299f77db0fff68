"""The memories of machines on a chip: look-up tables, which answer in the cycle of the address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from t2s.backends.base import Unsupported
from t2s.graph.body import Load, Store
from t2s.graph.graph import Graph, Tensor
from t2s.graph.nodes import Machine, Node

MOST_WORDS = 512
"""Elements of a tensor that machines load: of 32 bits, about 1,000 tables of 16 bits each."""


def too_large(graph: Graph, lengths: Mapping[str, int]) -> list[Unsupported]:
    """The tensors for which machines have no memory.

    ``lengths`` are the elements of those whose length is known only when the design runs.
    """
    found: dict[str, Unsupported] = {}
    for machine in graph.machines:
        for tensor, why in _reasons(graph, machine, lengths):
            found.setdefault(
                tensor.name,
                Unsupported(subject=f"tensor {tensor.name!r}", why=why, location=tensor.location),
            )
    return list(found.values())


def _reasons(
    graph: Graph, machine: Machine, lengths: Mapping[str, int]
) -> Iterator[tuple[Tensor, str]]:
    for statement in machine.statements():
        match statement:
            case Load(tensor=name, type=type):
                tensor = graph.tensor(name)
                words = lengths.get(name) if tensor.open else prod(tensor.allocated)
                if words is not None and words > MOST_WORDS:
                    yield (
                        tensor,
                        f"it has {words:,} elements, and {machine.name!r} decides on what it loads"
                        " in the cycle of the load: such a tensor is in look-up tables, with room"
                        f" for {MOST_WORDS}; block RAM answers a cycle later.  Tiles, each a run"
                        " of its own, are smaller",
                    )
            case Store(tensor=name, value=value):
                tensor, type = graph.tensor(name), value.type
            case _:
                continue
        if type.lanes > 1:
            yield (
                tensor,
                f"{machine.name!r} accesses vectors of {type.lanes} elements, and a self test has"
                " memories of single ones for machines",
            )


def sharing(node: Node, kind: type[Load | Store], count: int) -> list[tuple[int, ...]]:
    """Which loads, or stores, of a node share a memory, by their numbers; ``count`` is of all.

    Those of a machine do if they are of one tensor, and no firing has two of them.  Whether one of
    them is the next does not depend on what the others load: that is known behind them only.
    """
    if not isinstance(node, Machine):
        return [(number,) for number in range(count)]
    accesses = [s for s in node.statements() if isinstance(s, kind)]
    rules = [
        {at for at, path in enumerate(node.paths()) if any(s is access for s in path.statements)}
        for access in accesses
    ]
    groups: list[list[int]] = []
    for number, access in enumerate(accesses):
        fitting = (
            group
            for group in groups
            if all(
                accesses[other].tensor == access.tensor and rules[other].isdisjoint(rules[number])
                for other in group
            )
        )
        group = next(fitting, None)
        if group is None:
            groups.append([number])
        else:
            group.append(number)
    return [tuple(group) for group in groups]


def in_tables(graph: Graph) -> frozenset[str]:
    """The tensors that only machines access."""
    of_arrays = {
        statement.tensor
        for array in graph.pe_arrays
        for statement in array.body
        if isinstance(statement, Load | Store)
    }
    return frozenset(
        statement.tensor
        for machine in graph.machines
        for statement in machine.statements()
        if isinstance(statement, Load | Store) and statement.tensor not in of_arrays
    )
