"""The interface of designs: they become graphs with arrays, and turn their runs into a result.

A Func or several, an assignment of index notation, a product of a sparse matrix and a ``Graph`` are
designs (``recognize.py``).  The verbs (``simulate``, ``emit``, …) use only this class, so a new
kind of design has all verbs, and a new verb takes all kinds of designs.

A design takes its inputs by name and yields *stages*, each of which is a graph with the arrays and
scalars that it runs on; the outputs of a stage may be inputs of the next.  Unknown inputs are
refused (``UserError``), and so are verbs for a single graph if the design has several, because each
of these takes the whole device (``UnsupportedError``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from t2s.core.errors import UnsupportedError, UserError
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
    """A graph, its arrays and scalars by name, and the reasons for its loops.

    ``reasons`` maps (node, loop) to a directive, if the front end knows it; ``explain`` adds lines
    to the summary of a result.  ``before`` are the cycles of the graphs that ran before.
    ``extents`` are, for arrays of coordinates, what all of these are less than.  ``ends``: it is
    known to, however long it takes.
    """

    graph: Graph
    arrays: Mapping[str, Array]
    scalars: Mapping[str, Any]
    reasons: Mapping[tuple[str, str], LoopReason] = field(default_factory=dict)
    explain: Callable[[SimResult], tuple[tuple[str, str], ...]] | None = None
    before: int = 0
    extents: Mapping[str, int] = field(default_factory=dict)
    ends: bool = False


class StageResult(Protocol):
    """The result of a stage, from a simulator, an emulator or hardware."""

    @property
    def outputs(self) -> Mapping[str, Array]:
        """The arrays that the stage stored, by name."""


Stages = Generator[Stage, Any, Any]
"""Yields the stages in order, is sent the result of each, and returns that of the design."""


@dataclass(frozen=True)
class StartedDesign:
    """A design with its inputs, its first stage ready to run.  It runs once."""

    first: Stage
    following: Stages

    def run(self, run: Callable[[Stage], StageResult]) -> Any:
        """Run all stages, one after the other, and return the result of the design.

        An error of a stage passes through the design, which may know more of it.
        """
        stage = self.first
        while True:
            try:
                try:
                    result = run(stage)
                except (UserError, KeyboardInterrupt) as error:
                    self.following.throw(error)
                    raise
                with gc_paused():
                    stage = self.following.send(result)
            except StopIteration as end:
                return end.value


class Design(ABC):
    """A user's object that becomes graphs of processing elements and channels."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the design in messages."""

    @property
    def stage_count(self) -> int:
        """The number of graphs, which run one after the other."""
        return 1

    def stage_count_for(self, inputs: Mapping[str, Any] | None) -> int:
        """The number of graphs for these inputs, whose sizes may select another design."""
        return self.stage_count

    @abstractmethod
    def lower(self, given: Mapping[str, Any]) -> Graph:
        """Its graph; ``given`` has the inputs that the graph depends on: constants, or a matrix."""

    @abstractmethod
    def loops(self, given: Mapping[str, Any]) -> str:
        """The schedule: what runs where and when, as loops."""

    @abstractmethod
    def structure(self, given: Mapping[str, Any]) -> dict[str, Array]:
        """The arrays that replace sparse operands as inputs of the graph, by name."""

    @abstractmethod
    def interpret(self, inputs: Mapping[str, Any]) -> Values:
        """The reference values of the design."""

    @abstractmethod
    def stages(self, inputs: Mapping[str, Any] | None) -> Stages:
        """The stages for these inputs; ``None`` for a run that only counts cycles."""

    def in_memory(self, graph: Graph) -> Graph:
        """The graph of a stage for a device with a DRAM, with its arrays placed in memory."""
        return graph

    def on_device(self, device: Device) -> Device:
        """The device that the design runs on; ``UserError`` for one that it cannot run on."""
        return device

    def without_values(self) -> Design:
        """The design for a run of which only the times are asked."""
        return self

    def with_small_joins(self) -> Design:
        """The design with binary joins only: larger ones do not fit into a cell."""
        return self

    def limit_error(self, result: Any, max_cycles: int) -> UserError | None:
        """The error of a complete result that took more cycles than its limit."""
        return None

    def outputs_of(self, result: Any) -> dict[str, Array]:
        """The outputs of a result, by name."""
        return dict(result.outputs)

    def begin(self, inputs: Mapping[str, Any] | None) -> StartedDesign:
        """The design with its first stage ready to run."""
        stages = self.stages(inputs)
        with gc_paused():
            return StartedDesign(first=next(stages), following=stages)

    def only_stage(self, inputs: Mapping[str, Any] | None, verb: str) -> Stage:
        """The stage of a single-graph design; ``UnsupportedError`` for several graphs."""
        if self.stage_count > 1:
            raise UnsupportedError(
                f"{self.name} consists of {self.stage_count} graphs, which run one after the other",
                location=user_location(),
                expected=f"one graph, for {verb}",
                given=f"{self.stage_count} stages, each with the whole device to itself",
                hint=f"{verb} takes each of them: kernel.graphs(inputs)",
            )
        return self.begin(inputs).first


class ChipKernel(ABC):
    """A kernel compiled for one chip, without a graph for other devices.

    ``simulate`` and ``cycles`` run it on that chip, by default with the chip's own memory.
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
