"""The memories of the reference engine, which are the models uncompiled, against the plain ones."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from benchmarks.random_shared import random_device, random_shared
from t2s.graph.graph import Graph
from t2s.simulator import reference_engine
from t2s.simulator.devices import Device
from t2s.simulator.limits import Limits
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.reference_memories import ReferenceMemories
from t2s.simulator.report.errors import DeadlockError, TokensLeftError
from t2s.simulator.report.result import SimResult
from t2s.simulator.run import simulate
from tests.simulator.designs import IDEAL, chain
from tests.simulator.memory.plain_memories import plain_memories
from tests.simulator.test_streams import agree


def reference_memories(program: SimProgram, limits: Limits) -> ReferenceMemories | None:
    return ReferenceMemories(program, limits) if program.timed_places else None


def run_with(
    memories: Callable[[SimProgram, Limits], object],
    graph: Graph,
    inputs: dict[str, np.ndarray],
    device: Device,
) -> SimResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference_engine, "memories_of", memories)
        try:
            return simulate(graph, inputs, device=device, engine="python")
        except (DeadlockError, TokensLeftError) as error:
            return error.result


def compared(graph: Graph, inputs: dict[str, np.ndarray], device: Device) -> SimResult:
    """Run with both, which agree in everything that is measured."""
    plain = run_with(plain_memories, graph, inputs, device)
    found = run_with(reference_memories, graph, inputs, device)
    agree(plain, found)
    assert (plain.memory, plain.shared) == (found.memory, found.shared)
    return found


def test_machines_with_banks_and_a_dram() -> None:
    results = []
    for seed in range(12):
        graph, inputs = random_shared(seed)
        results.append(compared(graph, inputs, random_device(Random(seed))))
    assert sum(r.shared is not None and r.memory is None for r in results) > 1
    assert sum(r.shared is not None and r.memory is not None for r in results) > 1


@pytest.mark.parametrize("memory", ["ddr4-2133", "hbm2e"])
def test_processing_elements_with_a_dram(memory: str) -> None:
    result = compared(
        chain(300, capacity=8), {"X": np.arange(300, dtype=np.int32)}, IDEAL.with_memory(memory)
    )
    assert result.memory is not None
    assert result.memory.bytes_moved >= 2 * 4 * 300
