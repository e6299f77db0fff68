"""What every design of a user can do: become graphs with arrays, and make a result of their runs.

A Func or several, an assignment of index notation, a product of a sparse matrix and a ``Graph`` are
designs (``recognize.py``).  The verbs (``simulate``, ``emit``, …) know this class and no other, so
that a new kind of design has all verbs, and a new verb takes all kinds of designs.

In come the user's object and its inputs by name.  Out come *stages*, one graph each with the arrays
and scalars that it runs on; what a stage stores may be an input of the next.  Refused are inputs
that the design does not have (``UserError``), and verbs that are about one graph where a design is
several, each of which takes the whole device (``UnsupportedError``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from t2s.core.errors import UnsupportedError
from t2s.core.gc_pause import gc_paused
from t2s.core.location import user_location
from t2s.graph.graph import Graph

if TYPE_CHECKING:
    from t2s.report.reasons import LoopReason
    from t2s.simulator.devices import Device
    from t2s.simulator.memory.spec import Dram
    from t2s.simulator.report.result import SimResult

Array = np.ndarray[Any, Any]
Values = Array | dict[str, Array]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A graph, the arrays and the scalars that it runs on, by name, and why its loops are there.

    ``reasons`` are by node and loop, where the front end knows them; ``explain`` has more lines for
    the summary of a result.
    """

    graph: Graph
    arrays: Mapping[str, Array]
    scalars: Mapping[str, Any]
    reasons: Mapping[tuple[str, str], LoopReason] = field(default_factory=dict)
    explain: Callable[[SimResult], tuple[tuple[str, str], ...]] | None = None


class StageResult(Protocol):
    """What became of a stage, in a simulator, in an emulator or in hardware."""

    @property
    def outputs(self) -> Mapping[str, Array]:
        """The arrays that the stage has stored, by name."""


Stages = Generator[Stage, Any, Any]
"""Yields the stages in order, takes the result of each, returns the result of the design."""


@dataclass(frozen=True)
class StartedDesign:
    """A design with its inputs, its first stage ready to run.  It runs once."""

    first: Stage
    following: Stages

    def run(self, run: Callable[[Stage], StageResult]) -> Any:
        """Run all stages, one after the other, and return the result of the design."""
        stage = self.first
        while True:
            try:
                result = run(stage)
                with gc_paused():
                    stage = self.following.send(result)
            except StopIteration as end:
                return end.value


class Design(ABC):
    """Something of the user that becomes graphs of processing elements and channels."""

    @property
    @abstractmethod
    def name(self) -> str:
        """How messages call it."""

    @property
    def stage_count(self) -> int:
        """How many graphs it is, which run one after the other."""
        return 1

    def stage_count_for(self, inputs: Mapping[str, Any] | None) -> int:
        """How many graphs run for these inputs, whose sizes may choose among several designs."""
        return self.stage_count

    @abstractmethod
    def lower(self, given: Mapping[str, Any]) -> Graph:
        """Its graph; ``given`` has what the graph itself depends on: constants, or a matrix."""

    @abstractmethod
    def loops(self, given: Mapping[str, Any]) -> str:
        """What runs where and when, as loops."""

    @abstractmethod
    def structure(self, given: Mapping[str, Any]) -> dict[str, Array]:
        """The arrays that the graph takes in place of sparse operands, by name."""

    @abstractmethod
    def interpret(self, inputs: Mapping[str, Any]) -> Values:
        """The values that every way to run the design has to give."""

    @abstractmethod
    def stages(self, inputs: Mapping[str, Any] | None) -> Stages:
        """The stages for these inputs; ``None`` where times alone are asked for."""

    def in_memory(self, graph: Graph) -> Graph:
        """A graph of a stage for a device with a DRAM: where its arrays are."""
        return graph

    def on_device(self, device: Device) -> Device:
        """The device that the design runs on; ``UserError`` for one on which it cannot be."""
        return device

    def with_small_joins(self) -> Design:
        """The design with joins of two streams only: larger ones are too much for a cell."""
        return self

    def outputs_of(self, result: Any) -> dict[str, Array]:
        """The arrays of a result of its stages, by name."""
        return dict(result.outputs)

    def begin(self, inputs: Mapping[str, Any] | None) -> StartedDesign:
        """The first stage, ready to run, and what comes after it."""
        stages = self.stages(inputs)
        with gc_paused():
            return StartedDesign(first=next(stages), following=stages)

    def only_stage(self, inputs: Mapping[str, Any] | None, verb: str) -> Stage:
        """The stage of a design that is one graph; ``UnsupportedError`` if it is several."""
        if self.stage_count > 1:
            raise UnsupportedError(
                f"{self.name} is {self.stage_count} graphs, which run one after the other",
                location=user_location(),
                expected=f"one graph, for {verb}",
                given=f"{self.stage_count} stages, each with the whole device to itself",
                hint=f"{verb} takes each of them: kernel.graphs(inputs)",
            )
        return self.begin(inputs).first


class ChipKernel(ABC):
    """Something that is compiled for one chip, and has no graph for other devices.

    ``simulate`` and ``cycles`` run it there, with the chip's own memory if none is named.
    """

    chip: ClassVar[str]

    @abstractmethod
    def simulate(
        self,
        inputs: Mapping[str, Any],
        *,
        memory: str | Dram | None = None,
        engine: str = "native",
        max_cycles: int | None = None,
        progress: bool | None = None,
    ) -> Any:
        """Run it cycle by cycle; see ``t2s.simulate``."""
