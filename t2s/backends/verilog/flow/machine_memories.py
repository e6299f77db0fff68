"""The memories of machines on a chip: look-up tables, which answer in the cycle of the address.

Large tensors that machines load only to send what is in them are in block RAM.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from math import prod

from t2s.backends.base import DeviceTimes, Unsupported
from t2s.backends.verilog.machine_stages import machine_plan, only_sent
from t2s.backends.verilog.technology import Technology
from t2s.graph.body import Load, Store
from t2s.graph.graph import Graph, MemorySpace, Tensor, TensorRole
from t2s.graph.nodes import Machine, Node

MOST_WORDS = 512
"""Elements of a tensor that machines load: of 32 bits, about 1,000 tables of 16 bits each."""


def in_block_rams(graph: Graph, names: Collection[str]) -> Graph:
    """The graph with these tensors in memory, whose loads take the load latency of the device."""
    if not names:
        return graph
    tensors = tuple(
        replace(tensor, place=MemorySpace.MEMORY) if tensor.name in names else tensor
        for tensor in graph.tensors
    )
    return replace(graph, tensors=tensors)


def for_block_rams(graph: Graph, lengths: Mapping[str, int]) -> frozenset[str]:
    """The tensors that look-up tables have no room for, and that machines load only to send them.

    ``lengths`` are the elements of those whose length is known only when the design runs.
    """
    sent, decided, stored = set[str](), set[str](), set[str]()
    for machine in graph.machines:
        sent_here = only_sent(machine)
        sent |= sent_here
        decided |= {s.tensor for s in machine.statements() if isinstance(s, Load)} - sent_here
        stored |= {s.tensor for s in machine.statements() if isinstance(s, Store)}
    return frozenset(
        tensor.name
        for tensor in graph.tensors
        if tensor.name in sent - decided - stored
        and tensor.role is TensorRole.INPUT
        and (_words(tensor, lengths) or 0) > MOST_WORDS
    )


def too_large(
    graph: Graph, lengths: Mapping[str, int], times: DeviceTimes, technology: Technology
) -> list[Unsupported]:
    """The tensors for which machines have no memory.

    ``lengths`` are the elements of those whose length is known only when the design runs.
    """
    found: dict[str, Unsupported] = {}
    for machine in graph.machines:
        stages = iter(machine_plan(machine, times, technology).loads)
        for tensor, why in _reasons(graph, machine, lengths, stages):
            found.setdefault(
                tensor.name,
                Unsupported(subject=f"tensor {tensor.name!r}", why=why, location=tensor.location),
            )
    return list(found.values())


def block_rams(graph: Graph, lengths: Mapping[str, int], cost: Callable[[int, int], int]) -> int:
    """The block RAMs of machines; ``cost`` is that of a memory of some words and bits."""
    total = 0
    for machine in graph.machines:
        for kind, least in ((Load, MOST_WORDS), (Store, 0)):
            accesses = [s for s in machine.statements() if isinstance(s, kind)]
            for first, *_ in sharing(machine, kind, len(accesses)):
                tensor = graph.tensor(accesses[first].tensor)
                words = _words(tensor, lengths) or 0
                total += cost(words, tensor.type.bits) * machine.place_count * (words > least)
    return total


def _words(tensor: Tensor, lengths: Mapping[str, int]) -> int | None:
    return lengths.get(tensor.name) if tensor.open else prod(tensor.allocated)


def _reasons(
    graph: Graph, machine: Machine, lengths: Mapping[str, int], stages: Iterator[int]
) -> Iterator[tuple[Tensor, str]]:
    sent = only_sent(machine)
    for statement in machine.statements():
        match statement:
            case Load(tensor=name, type=type):
                tensor, at_once = graph.tensor(name), next(stages) == 0
                words = _words(tensor, lengths)
                if words is not None and words > MOST_WORDS and at_once:
                    why = "decides on what it loads in the cycle of the load"
                    if name in sent:
                        why = "has to send what it loads in the cycle of the load"
                    yield (
                        tensor,
                        f"it has {words:,} elements, and {machine.name!r} {why}: such a tensor is"
                        f" in look-up tables, with room for {MOST_WORDS}; block RAM answers a"
                        " cycle later.  Tiles, each a run of its own, are smaller",
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
