"""Untimed execution of a graph: a Kahn interpreter with unbounded FIFOs.

It defines the values that every timed engine has to compute, and favors simplicity over speed: one
firing at a time, through ``semantics.fire``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.ops import Array
from t2s.graph.arrays import outputs_of, pack
from t2s.graph.graph import Graph, Tensor, TensorRole
from t2s.graph.nodes import Machine, PEArray
from t2s.graph.semantics import (
    Decision,
    Environment,
    MachineState,
    PortUse,
    ProtocolError,
    fire,
    iterations,
    new_registers,
    port_uses,
    space_points,
)
from t2s.graph.verify_machine import StoredOnce

Fifos = dict[PortUse, deque[Any]]


@dataclass(slots=True)
class _Process:
    """One PE and the environment of its next firing."""

    graph: Graph
    node: PEArray
    firings: Iterator[Environment]
    registers: dict[str, Array]
    current: Environment | None = field(default=None)

    @property
    def ended(self) -> bool:
        return self.current is None

    def run(self, fifos: Fifos, memory: dict[str, Array]) -> bool:
        """Fire until it has to wait or ends; returns whether it made progress."""
        moved = False
        while True:
            if self.current is None:
                self.current = next(self.firings, None)
                if self.current is None:
                    return True
            receives, sends = port_uses(self.graph, self.node, self.current)
            if any(not fifos.get(use) for use in receives):
                return moved
            tokens = {use.channel: fifos[use].popleft() for use in receives}
            sent = fire(self.node, self.current, tokens, self.registers, memory)
            for use in sends:
                fifos.setdefault(use, deque()).append(sent[use.channel])
            self.current = None
            moved = True


@dataclass(slots=True)
class _MachineProcess:
    """One machine, and the codes of its firings; it makes ``most`` of them at most."""

    node: Machine
    state: MachineState
    most: int | None = None
    codes: list[int] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        return self.state.ended or len(self.codes) == self.most

    def run(self, fifos: Fifos, memory: dict[str, Array]) -> bool:
        """Fire until it has to wait or ends; returns whether it fired."""
        state, moved = self.state, False
        queues = {name: fifos.setdefault(use, deque()) for name, use in state.inputs.items()}
        while not self.ended:
            heads = {name: queue[0] for name, queue in queues.items() if queue}
            decision = state.decide(heads, memory)
            if not isinstance(decision, Decision):
                return moved
            for name, token in state.fire(decision, memory).items():
                fifos.setdefault(state.outputs[name], deque()).append(token)
            for name in decision.path.rule.takes:
                queues[name].popleft()
            self.codes.append(decision.code)
            moved = True
        return moved


def _is_endless(node: Machine | PEArray) -> bool:
    return isinstance(node, Machine) and node.endless


def allocate(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The memory at the start: copies of the inputs, zeros elsewhere.

    Open tensors that are stored into start as empty lists, which machines extend; those of single
    assignment check it.
    """

    def initial(tensor: Tensor) -> Array:
        if tensor.role is TensorRole.INPUT:
            return pack(tensor, np.array(inputs[tensor.array]))
        if tensor.open and tensor.once:
            return StoredOnce(tensor.name)
        return [] if tensor.open else np.zeros(tensor.allocated, tensor.type.numpy)

    return {tensor.name: initial(tensor) for tensor in graph.tensors}


def interpret_graph(
    graph: Graph, inputs: Mapping[str, Array], parameters: Mapping[str, Array] | None = None
) -> dict[str, Array]:
    """Run every node to its end and return the output tensors by name.

    Endless machines run until no node can fire.

    Raises ``UserError`` if nodes wait for tokens that never come, and ``ProtocolError`` if a
    machine meets a token that it cannot take.
    """
    memory = allocate(graph, inputs)
    fifos: Fifos = {}
    pending = _processes(graph, dict(parameters or {}))
    with np.errstate(all="ignore"):
        while pending:
            progress = False
            for process in pending:
                progress |= process.run(fifos, memory)
            pending = [process for process in pending if not process.ended]
            if not progress and all(_is_endless(process.node) for process in pending):
                break
            if pending and not progress:
                names = sorted({process.node.name for process in pending})
                raise UserError(
                    "deadlock: nothing can fire, and not finished are "
                    + ", ".join(map(repr, names)),
                    location=graph.node(names[0]).location or graph.location,
                    expected="every PE to make all its firings",
                    hint="t2s.simulate says who waits for whom",
                )
    return outputs_of(graph, memory)


def _processes(
    graph: Graph, scalars: Mapping[str, Array], most: int | None = None
) -> list[_Process | _MachineProcess]:
    return [
        _MachineProcess(node, MachineState(graph, node, point, scalars), most)
        if isinstance(node, Machine)
        else _Process(graph, node, iterations(node, point, scalars), new_registers(node))
        for node in graph.nodes
        for point in space_points(node)
    ]


@dataclass(frozen=True, slots=True)
class Recording:
    """A run as far as tokens allow: the firing codes of every machine, by node.

    ``tokens`` remain in the elements of channels; ``ended`` are the machines (by node and place)
    that ended.
    """

    codes: Mapping[tuple[str, int], list[int]]
    ended: frozenset[tuple[str, int]]
    tokens: Mapping[PortUse, list[Any]]


def record_graph(
    graph: Graph,
    inputs: Mapping[str, Array],
    parameters: Mapping[str, Array] | None = None,
    *,
    most_firings: int | None = None,
) -> Recording:
    """Run every node as far as its tokens allow, each machine for at most ``most_firings``.

    A machine that meets tokens that it cannot take stops there.
    """
    memory, fifos = allocate(graph, inputs), Fifos()
    everything = _processes(graph, dict(parameters or {}), most_firings)
    pending, progress = everything, True
    with np.errstate(all="ignore"):
        while pending and progress:
            progress = False
            going: list[_Process | _MachineProcess] = []
            for process in pending:
                try:
                    progress |= process.run(fifos, memory)
                except ProtocolError:
                    continue
                if not process.ended:
                    going.append(process)
            pending = going
    places: dict[str, int] = {}
    codes: dict[tuple[str, int], list[int]] = {}
    ended: set[tuple[str, int]] = set()
    for process in everything:
        if isinstance(process, _MachineProcess):
            name = process.node.name
            key = name, places.setdefault(name, 0)
            places[name] += 1
            codes[key] = process.codes
            ended |= {key} if process.state.ended else set()
    return Recording(codes, frozenset(ended), {use: list(fifo) for use, fifo in fifos.items()})
