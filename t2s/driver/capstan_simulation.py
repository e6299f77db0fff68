"""Running patterns on Capstan's units: the graph, the device with its memory, and the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from t2s.backends.capstan.machines.chip_times import TIMES, CapstanTimes
from t2s.backends.capstan.machines.lower import machines_of
from t2s.core.errors import UserError
from t2s.core.expr import evaluate
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.graph.graph import Graph, TensorRole
from t2s.patterns.interpret import PatternOutcome
from t2s.patterns.ir import PatternProgram
from t2s.simulator.devices import DEVICES, Device
from t2s.simulator.memory.banked import Banked
from t2s.simulator.memory.presets import find_memory
from t2s.simulator.memory.spec import Dram
from t2s.simulator.report.cut_short import whole as whole_run
from t2s.simulator.report.result import SimResult
from t2s.simulator.run import simulate
from t2s.sparse_repr.tensors.tensor import SparseTensor

CAPSTAN = "capstan"
CHIP_NETWORK = "chip"
"""The network and the banks of the chip as it is."""


def capstan_device(
    memory: str | Dram, times: CapstanTimes = TIMES, network: str | Banked = CHIP_NETWORK
) -> Device:
    """The chip with a memory, which is a path away from the units, and a network.

    With ideal memory the network between partitions and their memories is ideal, too, and so it is
    if ``network`` is ``"ideal"``.  Raises ``UserError`` for a network that there is not.
    """
    dram = find_memory(memory)
    banked: Banked | None
    match network:
        case Banked():
            banked = network
        case "ideal":
            banked = None
        case "chip":
            banked = DEVICES[CAPSTAN].banked
        case _:
            raise UserError(
                "there is no such network",
                location=user_location(),
                expected='"chip", "ideal", or a Banked',
                given=repr(network),
            )
    if dram is None:
        return DEVICES[CAPSTAN].with_banked(None)
    units = replace(dram.units, path_cycles=times.dram_path)
    changed = replace(DEVICES[CAPSTAN], memory=replace(dram, units=units))
    return changed.with_banked(banked)


def run_units(
    graph: Graph,
    arrays: Mapping[str, Array],
    arguments: Mapping[str, Any],
    device: Device,
    engine: str,
    max_cycles: int | None,
    progress: bool | None,
) -> SimResult:
    """Run the graph of a program on the arrays of its memories.

    Raises what ``t2s.simulate`` raises, ``CycleLimitError`` at ``max_cycles`` and
    ``RunInterrupted`` at Ctrl-C, for then there is no result.
    """
    given = {
        tensor.array: np.ascontiguousarray(arrays[tensor.array], tensor.type.numpy)
        for tensor in graph.tensors
        if tensor.role is TensorRole.INPUT
    }
    return whole_run(
        simulate(
            graph,
            given,
            parameters=dict(arguments),
            device=device,
            engine=engine,
            max_cycles=max_cycles,
            progress=progress,
        )
    )


def outcome_of(
    program: PatternProgram, run: SimResult, arguments: Mapping[str, Any]
) -> PatternOutcome:
    """What a run leaves in the memories off chip; what was never stored is zero."""
    scalars = {name: np.asarray(value) for name, value in arguments.items()}
    scalars |= {name: np.asarray(value) for name, value in program.environment}
    memories = {}
    for memory in program.memories:
        if memory.name in run.outputs:
            stored = run.outputs[memory.name]
            whole = np.zeros(int(evaluate(memory.size, scalars)), memory.type.numpy)
            whole[: len(stored)] = stored
            memories[memory.name] = whole
    returned = {
        result.values: run.outputs[result.values].reshape(())
        for result in program.results
        if not result.levels
    }
    return PatternOutcome(memories=memories, scalars=returned)


def entries_of(operands: Iterable[SparseTensor]) -> int:
    """Stored values of the operands with compressed levels; of all if there is no such one."""
    given = list(operands)
    some = [one for one in given if not all(level.full for level in one.format.levels)]
    return sum(len(one.values) for one in some or given)


def changed_times(
    program: PatternProgram, before: CapstanTimes, after: CapstanTimes
) -> tuple[dict[str, int], dict[str, int]]:
    """Latencies and capacities of all channels of a program, by name, with other times.

    Raises ``UserError`` for sizes with which the units do something else.
    """
    if before.sizes != after.sizes:
        raise UserError(
            "the units of the chip would do something else",
            location=user_location(),
            expected=f"times with the same {', '.join(before.sizes)}",
            given=repr(after),
            hint="simulate again with these times",
        )
    channels = machines_of(program, after).channels
    return {c.name: c.latency for c in channels}, {c.name: c.capacity for c in channels}


def memory_name(memory: str | Dram) -> str:
    """The name of a memory."""
    return memory.name if isinstance(memory, Dram) else memory
