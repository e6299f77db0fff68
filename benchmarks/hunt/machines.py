"""Graphs that no front end makes: random machines, and random arrays of PEs, with random depths.

Interpreter, engines, kernels of times and hardware have to agree.  A graph may deadlock: then all
have to say so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import t2s
from benchmarks.hunt.choices import Choices
from benchmarks.hunt.judge import graph_agrees
from benchmarks.hunt.run import guarded
from benchmarks.hunt.verdict import Verdict, Wrong
from benchmarks.random_graphs import random_device, random_graph
from benchmarks.random_machines import endless, random_machines
from t2s.graph.graph import TensorRole
from t2s.simulator.report.errors import DeadlockError


def judge(choices: Choices, hardware: bool) -> tuple[str, Verdict]:
    """Draw a graph and judge it."""
    machines, seed = choices.below(3) < 2, choices.below(1 << 30)
    unending = machines and seed % 3 == 0
    shown = f"{'random_machines' if machines else 'random_graph'}({seed})"
    shown = f"endless({shown})" if unending else shown

    def run() -> None:
        graph, inputs = random_machines(seed) if machines else _array(seed)
        graph = endless(graph) if unending else graph
        _judge(graph, inputs, seed, hardware)

    return shown, guarded(run)


def _array(seed: int) -> tuple[t2s.Graph, dict[str, Any]]:
    """Arrays of PEs, with small numbers as inputs."""
    graph = random_graph(seed)
    generator = np.random.default_rng(seed)
    given = [(t.array, t.type, t.shape) for t in graph.tensors if t.role is TensorRole.INPUT]
    given += [(p.name, p.type, ()) for p in graph.parameters]
    return graph, {
        name: np.asarray(generator.integers(0, 5, shape)).astype(type.numpy)[()]
        for name, type, shape in given
    }


def _judge(graph: t2s.Graph, inputs: dict[str, Any], seed: int, hardware: bool) -> None:
    device: Any
    for device in random_device(seed):
        cycles = _deadlock(graph, inputs, device, "native")
        if cycles is None:
            graph_agrees(graph, inputs, None, hardware=hardware, device=device)
        elif cycles != (plain := _deadlock(graph, inputs, device, "python")):
            raise Wrong(f"engines end differently\ndeadlock after {cycles}, plain engine {plain}")


def _deadlock(graph: t2s.Graph, inputs: dict[str, Any], device: Any, engine: str) -> int | None:
    """When a run ends in a deadlock; ``None`` if it does not."""
    try:
        t2s.simulate(graph, inputs, engine=engine, device=device, progress=False)
    except DeadlockError as error:
        return error.result.cycles
    return None
