"""What verbs that make chips begin with: the graph, and a run of it, whose results are expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.driver.built_for import given_of
from t2s.driver.design import Stage
from t2s.driver.device_times import device_times
from t2s.driver.recognize import design_of
from t2s.graph.graph import Graph, TensorRole
from t2s.graph.verify import verify_graph

if TYPE_CHECKING:
    from t2s.backends.base import DeviceTimes, Unsupported
    from t2s.simulator.devices import Device
    from t2s.simulator.report.result import SimResult


@dataclass(frozen=True, kw_only=True)
class ChipRun:
    """A run of a chip, as the simulator sees it.

    ``arrays`` are inputs and results, by the user's names.
    """

    simulated: SimResult
    arrays: Mapping[str, Any]

    @cached_property
    def times(self) -> DeviceTimes:
        """The times that the chip is built with."""
        return device_times(self.simulated.program)

    @property
    def parameters(self) -> Mapping[str, Array]:
        """Scalars by name."""
        return self.simulated.program.parameters

    @property
    def cycles(self) -> int:
        return self.simulated.cycles


def chip_stage(
    design: object,
    inputs: Mapping[str, Any] | None,
    verb: str,
    problems_of: Callable[[Graph], list[Unsupported]],
) -> Stage:
    """The stage of a design that is a chip, for which there are no problems.

    Raises ``UserError`` for several stages, and ``UnsupportedError`` with all reasons.
    """
    from t2s.backends.base import refusal
    from t2s.backends.verilog.emit import NAME

    stage = design_of(design).only_stage(inputs, verb)
    verify_graph(stage.graph)
    if problems := problems_of(stage.graph):
        raise refusal(NAME, stage.graph, problems)
    return stage


def chip_run(stage: Stage, inputs: Mapping[str, Any] | None, device: Device) -> ChipRun:
    """The run of a chip on inputs; without them, on integers that are made up."""
    from t2s.driver.simulate import simulate

    given = made_up(stage.graph) if inputs is None else given_of(stage)
    simulated = simulate(stage.graph, given, device=device, progress=False)
    return ChipRun(simulated=simulated, arrays={**given, **simulated.outputs})


def with_own_memory(device: Device) -> Device:
    """The device with a separate memory for each unit: bandwidth never limits it."""
    return replace(
        device,
        bytes_per_cycle_per_unit=None,
        port_per_tensor=False,
        memory_bytes_per_second=None,
    )


def made_up(graph: Graph) -> dict[str, Array]:
    """Integers of a few bits for all inputs, always the same ones."""
    random = np.random.default_rng(0)
    inputs: dict[str, Array] = {}
    for tensor in graph.tensors:
        if tensor.role is TensorRole.INPUT:
            values = random.integers(0 if tensor.type.is_bool else -8, 8, tensor.shape)
            inputs[tensor.array] = np.asarray(values % 2 if tensor.type.is_bool else values).astype(
                tensor.type.numpy
            )
    for parameter in graph.parameters:
        inputs[parameter.name] = np.asarray(1, parameter.type.numpy)
    return inputs


def megahertz(value: object) -> float:
    """A clock that a user asks for; raises ``UserError``."""
    number = isinstance(value, int | float | np.integer | np.floating)
    if number and not isinstance(value, bool) and 0 < float(value) < 10_000:  # type: ignore[arg-type]
        return float(value)  # type: ignore[arg-type]
    raise UserError(
        "clock_mhz must be a frequency in MHz",
        location=user_location(),
        expected="a number of more than 0",
        given=repr(value),
    )
