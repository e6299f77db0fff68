"""The memories of machines on a chip: look-up tables, which answer in the cycle of the address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from t2s.backends.base import Unsupported
from t2s.graph.body import Load, Store
from t2s.graph.graph import Graph, Tensor
from t2s.graph.nodes import Machine

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
