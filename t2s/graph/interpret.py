"""Untimed execution of a graph: a Kahn interpreter with unbounded FIFOs.

It gives the values every timed engine must give, and it is slow on purpose: one firing at a time,
through ``semantics.fire``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from t2s.core.errors import InternalError
from t2s.core.ops import Array
from t2s.graph.graph import Graph, TensorRole
from t2s.graph.layout import outputs_of, pack
from t2s.graph.nodes import PEArray
from t2s.graph.semantics import (
    Environment,
    PortUse,
    fire,
    iterations,
    new_registers,
    port_uses,
    space_points,
)


@dataclass(slots=True)
class _Process:
    node: PEArray
    firings: Iterator[Environment]
    registers: dict[str, Array]
    current: Environment | None = field(default=None)


def allocate(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The memory at the start: copies of the inputs, zeros elsewhere."""
    return {
        tensor.name: pack(tensor, np.array(inputs[tensor.array]))
        if tensor.role is TensorRole.INPUT
        else np.zeros(tensor.allocated, tensor.type.numpy)
        for tensor in graph.tensors
    }


def interpret_graph(
    graph: Graph, inputs: Mapping[str, Array], parameters: Mapping[str, Array] | None = None
) -> dict[str, Array]:
    """Run every node to its end and return the output tensors by name.

    Raises ``InternalError`` if nodes wait for tokens that never come.
    """
    memory = allocate(graph, inputs)
    fifos: dict[PortUse, deque[Array]] = {}
    scalars = dict(parameters or {})
    pending = [
        _Process(node, iterations(node, point, scalars), new_registers(node))
        for node in graph.nodes
        for point in space_points(node)
    ]
    with np.errstate(all="ignore"):
        while pending:
            progress = False
            for process in pending:
                progress |= _run(graph, process, fifos, memory)
            pending = [process for process in pending if process.current is not None]
            if pending and not progress:
                names = ", ".join(sorted({process.node.name for process in pending}))
                raise InternalError(f"nodes wait for tokens that never come: {names}")
    return outputs_of(graph, memory)


def _run(
    graph: Graph,
    process: _Process,
    fifos: dict[PortUse, deque[Array]],
    memory: dict[str, Array],
) -> bool:
    """Fire one PE until it has to wait or ends; whether it fired or ended at all."""
    moved = False
    while True:
        if process.current is None:
            process.current = next(process.firings, None)
            if process.current is None:
                return True
        receives, sends = port_uses(graph, process.node, process.current)
        if any(not fifos.get(use) for use in receives):
            return moved
        tokens = {use.channel: fifos[use].popleft() for use in receives}
        sent = fire(process.node, process.current, tokens, process.registers, memory)
        for use in sends:
            fifos.setdefault(use, deque()).append(sent[use.channel])
        process.current = None
        moved = True
