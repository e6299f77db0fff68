"""``ContractionTrial`` and ``RecurrenceTrial``: points as designs, which are built and run.

Each point is applied to a copy of the definition.  Its outcome is exact: cycles, blocks and bytes
of a run, or why the compiler refuses it.
"""

from __future__ import annotations

import pickle
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from math import ceil, inf, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s.core.errors import InternalError, T2SError, T2SWarning, UnsupportedError, UserError
from t2s.core.expr import Apply
from t2s.core.location import user_location
from t2s.core.ops import Op
from t2s.core.walk import walk
from t2s.design_space.branch_and_bound import (
    NEVER,
    AnyPoint,
    Cut,
)
from t2s.design_space.columns import Budget, Datapath, LoadUnit, smallest_tiles
from t2s.design_space.contraction import (
    Contraction,
)
from t2s.design_space.energy import Energy
from t2s.design_space.journal import Outcome
from t2s.design_space.point import (
    Directives,
    Point,
    apply,
    directives_of,
    single_pe,
    symbols_of,
)
from t2s.design_space.recurrence import Recurrence
from t2s.design_space.recurrence_space import (
    RecurrenceDatapath,
    RecurrencePoint,
    RecurrenceSpace,
    directives_of_recurrence,
    recurrence_in_words,
    single_pe_of,
)
from t2s.design_space.space import LANES, Space, in_words
from t2s.driver.logic import logic_of
from t2s.driver.lower import interpret, lower
from t2s.driver.recognize import design_of
from t2s.driver.search_result import AnyDesign
from t2s.driver.simulate import graph_on, simulate
from t2s.func.freeze import freeze
from t2s.graph.analysis import datapath_latencies, memory_bytes, recurrences
from t2s.graph.body import Load
from t2s.graph.nodes import PEArray
from t2s.report.logic import LOGIC
from t2s.report.page.traffic import moved_bytes, operators_of_firing
from t2s.report.resources import dsp_blocks, estimate_resources, unit_blocks
from t2s.simulator.limits import Limits
from t2s.simulator.program.build import build_program
from t2s.simulator.run import GraphContext, run_to_the_end
from t2s.spatial.schedule import ScheduledFunc

if TYPE_CHECKING:
    from t2s.simulator.devices import Device, Fabric
    from t2s.simulator.report.result import SimResult

MANY_FIRINGS = 2_000_000
"""Runs of more firings may be cut short; those of fewer take no longer than others to decide."""

MOST_CHECKED, MOST_INTERPRETED = 1 << 26, 1 << 18
"""The most evaluations of a term, and iterations of a recurrence, for which the values of the
winner are checked."""


class _Deadline:
    """An observer that ends a run after so many seconds of ``time.time()``, as Ctrl-C does."""

    def __init__(self, until: float | None) -> None:
        self.until = inf if until is None else until
        self.passed = False

    def advanced(self, *, cycle: int, done: int, total: int) -> None:
        """See ``Observer``."""
        if time.time() > self.until:
            self.passed = True
            raise KeyboardInterrupt


class SearchTrial(ABC):
    """Builds points of a design and times them; ``written`` is the definition as text."""

    def __init__(
        self,
        outputs: tuple[ScheduledFunc, ...],
        written: str,
        constants: Mapping[str, Any],
        device: Device,
    ) -> None:
        self.name = " and ".join(output.name for output in outputs)
        self.constants = constants
        self.device = device
        # each point is applied to a copy of its own
        self.pickled = pickle.dumps(outputs if len(outputs) > 1 else outputs[0])
        self.names = frozenset(symbols_of(outputs))
        self.definition = f"{written}\n{sorted(constants.items())}"

    @property
    @abstractmethod
    def smallest(self) -> AnyPoint:
        """The design of a single PE."""

    @property
    @abstractmethod
    def in_words(self) -> str:
        """The space of designs."""

    @abstractmethod
    def directives(self, point: Any) -> Directives:
        """The directives of a point of this space."""

    @abstractmethod
    def decisions(self, point: Any) -> str:
        """A point in words."""

    @abstractmethod
    def check_values(self, design: AnyDesign) -> None:
        """Compare the winner's values with those of the definition."""

    def text(self, point: AnyPoint) -> str:
        """The whole program of a point: the definition, and a line for each directive."""
        return "\n".join([self.definition, *(call.text for call in self.directives(point).calls)])

    def design(self, point: AnyPoint) -> AnyDesign:
        design: AnyDesign = pickle.loads(self.pickled)
        apply(design, self.directives(point))
        return design

    def timed(self, point: AnyPoint) -> tuple[int, int, int]:
        """Exact cycles, DSP and RAM blocks."""
        outcome = self._outcome(point, NEVER)
        assert outcome.cycles is not None
        assert outcome.dsp_blocks is not None
        assert outcome.ram_blocks is not None
        return outcome.cycles, outcome.dsp_blocks, outcome.ram_blocks

    def outcome(self, point: AnyPoint, cut: Cut = NEVER) -> Outcome:
        """Exact cycles and blocks, or why the compiler refuses the point; see ``Measure``."""
        try:
            return self._outcome(point, cut)
        except InternalError:
            raise
        except T2SError as error:
            return Outcome(refusal=str(error).splitlines()[0])

    def _outcome(self, point: AnyPoint, cut: Cut) -> Outcome:
        design = design_of(self.design(point))
        with warnings.catch_warnings():
            # a buffer that fills too slowly costs cycles, which are counted
            warnings.simplefilter("ignore", T2SWarning)
            stage = design.only_stage(self.constants, "a search")
            graph = graph_on(design, stage, self.device)
            program = build_program(graph, self.device, None, stage.scalars, None, GraphContext())
            blocks = estimate_resources(stage.graph, self.device)
            for overrun in blocks.with_logic(logic_of(program)).overruns:
                if overrun.blocks in LOGIC:  # of blocks a search has a budget
                    raise UnsupportedError(
                        f"takes more {overrun.blocks} than {self.device.name} has",
                        location=stage.graph.location,
                        expected=f"at most {overrun.available:,}",
                        given=f"about {overrun.needed:,}",
                        hint=overrun.hint,
                    )
            limits, watch = Limits(), _Deadline(cut.until)
            if program.total_firings > MANY_FIRINGS:
                limits = Limits(max_cycles=cut.cycles, give_up=True, most_steps=cut.steps)
            run = run_to_the_end(program, "native", limits, watch)
        if run.interrupted and not watch.passed:
            raise KeyboardInterrupt
        known = Outcome(dsp_blocks=blocks.dsp_blocks, ram_blocks=blocks.ram_blocks)
        if not run.finished:
            return replace(known, more_than=(run.at_least or run.cycles) - 1)
        return replace(known, cycles=run.cycles, bytes_moved=self.bytes_moved(run))

    def bytes_moved(self, run: SimResult) -> int | None:
        """The bytes that a run moved; ``None`` if its point tells them."""
        return None


class ContractionTrial(SearchTrial):
    """Builds points of a contraction."""

    def __init__(
        self,
        func: ScheduledFunc,
        contraction: Contraction,
        constants: Mapping[str, Any],
        device: Device,
    ) -> None:
        super().__init__((func,), contraction.definition, constants, device)
        self.contraction = contraction

    @property
    def smallest(self) -> Point:
        """See ``SearchTrial``."""
        return single_pe(self.contraction, 1)

    @property
    def in_words(self) -> str:
        """See ``SearchTrial``."""
        return in_words(self.contraction)

    def directives(self, point: Point) -> Directives:
        """See ``SearchTrial``."""
        return directives_of(self.contraction, point, self.names)

    def decisions(self, point: Point) -> str:
        """See ``SearchTrial``."""
        return point.text(self.contraction)

    def space(
        self, budget: Budget, prices: Mapping[str, float] | None
    ) -> tuple[Space, Energy | None]:
        """The points within a budget, and what energy they take."""
        space = Space(
            contraction=self.contraction,
            device=self.device,
            budget=budget,
            datapaths=self.datapaths(),
        )
        return space, None if prices is None else self.energy(prices, space)

    def datapaths(self) -> dict[int, Datapath]:
        """The datapath of a design of a single PE, by vector length.

        Vectors that the compiler refuses, as of elements that are apart in memory, have none.
        """
        longest = self.contraction.extents.get(self.contraction.vector_loop or "", 1)
        paths = {1: self.datapath(1)}
        for lanes in LANES[1:]:
            if lanes < 2 * longest:
                with suppress(UserError, UnsupportedError):
                    paths[lanes] = self.datapath(lanes)
        return paths

    def energy(self, prices: Mapping[str, float], space: Space) -> Energy:
        """Prices with the operations of an evaluation, which are those of a single PE."""
        operations: dict[int, Mapping[str, int]] = {}
        for lanes in space.datapaths:
            graph = lower(self.design(single_pe(self.contraction, lanes)), self.constants)
            node = next(node for node in graph.nodes if node.name == self.contraction.name)
            operations[lanes] = operators_of_firing(node)  # type: ignore[arg-type]  # no machine
        return Energy(prices=prices, operations=operations)

    def datapath(self, lanes: int) -> Datapath:
        point = single_pe(self.contraction, lanes)
        graph = lower(self.design(point), self.constants)
        nodes = {node.name: node for node in graph.nodes if isinstance(node, PEArray)}
        fabric = self.device.fabric
        assert fabric is not None  # checked before
        loaders = self.directives(point).loaders
        loads: dict[str, LoadUnit] = {}
        for operand in (*self.contraction.operands, *self.contraction.initial):
            channel = next(
                channel
                for channel in graph.inputs_of(self.contraction.name)
                if channel.source == loaders.get(operand.name)
                or (
                    channel.source not in loaders.values()
                    and any(
                        isinstance(statement, Load) and statement.tensor == operand.name
                        for statement in nodes[channel.source].body
                    )
                )
            )
            unit = nodes[channel.source]
            units = [unit, *(nodes[each.source] for each in graph.inputs_of(unit.name))]
            element = channel.stream.element
            loads[operand.name] = LoadUnit(
                dsp=dsp_blocks(unit, fabric),
                ram=sum(unit_blocks(each, fabric) for each in units),
                bits=(1 if element.is_bool else element.bits) * element.lanes,
                bytes=sum(map(memory_bytes, units)),
                widest=max(map(memory_bytes, units)),
            )
        pe, latency_of = nodes[self.contraction.name], self.device.latency_of
        return Datapath(
            pe=dsp_blocks(pe, fabric),
            padded=self.blocks_of_padded_chain(lanes, fabric) or dsp_blocks(pe, fabric),
            latency=max(datapath_latencies(pe, latency_of, 0).values()),
            carried=max((each.latency for each in recurrences(pe, latency_of)), default=0),
            loads=loads,
        )

    def blocks_of_padded_chain(self, lanes: int, fabric: Fabric) -> Fraction | None:
        """DSP blocks of a PE where more PEs share a reduction than divide it, if any can."""
        contraction = self.contraction
        for loop in contraction.loops_in_space[len(contraction.outputs) :]:
            vectors = -(-loop.extent // (lanes if loop.name == contraction.vector_loop else 1))
            for pes in smallest_tiles(vectors):
                if vectors % pes:
                    point = replace(single_pe(contraction, lanes), rows=((loop.name, pes),))
                    with suppress(UserError, UnsupportedError):
                        nodes = lower(self.design(point), self.constants).nodes
                        node = next(node for node in nodes if node.name == contraction.name)
                        return dsp_blocks(node, fabric)
        return None

    def check_values(self, design: AnyDesign) -> None:
        """On random small integers."""
        assert isinstance(design, ScheduledFunc)
        if self.contraction.steps > MOST_CHECKED:
            return
        inputs = {**random_inputs(design, self.constants), **self.constants}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", T2SWarning)
            result = simulate(design, inputs, device=self.device, progress=False)
        found, expected = result.outputs[design.name], interpret(design, inputs)
        error = 0.0 if _is_exact(self.contraction) else self.rounding(expected)
        if not np.allclose(found, expected, rtol=0, atol=error, equal_nan=True):
            raise InternalError(f"the design of {design.name} that was found has wrong values")

    def rounding(self, expected: np.ndarray[Any, Any]) -> float:
        """How far apart two orders of a sum may be, by a rounding error for each step."""
        finite = np.abs(np.asarray(expected, np.float64))
        largest = float(finite[np.isfinite(finite)].max(initial=0))
        epsilon = 2.0**-7 if self.contraction.type.bits == 16 else 2.0**-23
        return prod(loop.extent for loop in self.contraction.reductions) * epsilon * largest


class RecurrenceTrial(SearchTrial):
    """Builds points of a recurrence."""

    def __init__(
        self,
        outputs: tuple[ScheduledFunc, ...],
        recurrence: Recurrence,
        constants: Mapping[str, Any],
        device: Device,
    ) -> None:
        super().__init__(outputs, recurrence.definition, constants, device)
        self.recurrence = recurrence

    @property
    def smallest(self) -> RecurrencePoint:
        """See ``SearchTrial``."""
        return single_pe_of(self.recurrence, 1)

    @property
    def in_words(self) -> str:
        """See ``SearchTrial``."""
        return recurrence_in_words(self.recurrence)

    def directives(self, point: RecurrencePoint) -> Directives:
        """See ``SearchTrial``."""
        return directives_of_recurrence(self.recurrence, point, self.names)

    def decisions(self, point: RecurrencePoint) -> str:
        """See ``SearchTrial``."""
        return point.text()

    def bytes_moved(self, run: SimResult) -> int:
        """See ``SearchTrial``."""
        return sum(moved_bytes(run.program, timing) for timing in run.program.nodes)

    def space(
        self, budget: Budget, prices: Mapping[str, float] | None
    ) -> tuple[RecurrenceSpace, None]:
        """The points within a budget; ``UserError`` if energy is asked for."""
        if prices is not None:
            raise UserError(
                f"the energy of designs of {self.name}, a recurrence, is not known",
                location=user_location(),
                expected='objective="time" or "front", without energy=',
                given="energy=",
            )
        datapaths = {1: self.datapath(1)}
        loop = self.recurrence.vector_loop
        for lanes in LANES[1:]:
            if loop is not None and lanes < 2 * self.recurrence.loop(loop).extent:
                with suppress(UserError, UnsupportedError):
                    datapaths[lanes] = self.datapath(lanes)
        space = RecurrenceSpace(
            recurrence=self.recurrence, device=self.device, budget=budget, datapaths=datapaths
        )
        return space, None

    def datapath(self, lanes: int) -> RecurrenceDatapath:
        """That of a single PE, as the compiler makes it."""
        graph = lower(self.design(single_pe_of(self.recurrence, lanes)), self.constants)
        members = {name for name, _ in self.recurrence.members}
        node = next(node for node in graph.nodes if node.name in members)
        others = [each for each in graph.nodes if each is not node]
        assert isinstance(node, PEArray)
        assert self.device.fabric is not None  # checked before
        latency_of = self.device.latency_of
        latencies = [*datapath_latencies(node, latency_of, 0).values()]
        latencies += [each.latency for each in recurrences(node, latency_of)]
        most = max(latencies, default=0)
        if most < self.recurrence.longest(latency_of):
            most = 0  # the compiler found a shorter way than the definition's
        return RecurrenceDatapath(
            dsp=dsp_blocks(node, self.device.fabric),
            others=sum(ceil(dsp_blocks(each, self.device.fabric)) for each in others),
            reloads=any(
                isinstance(statement, Load) and statement.tensor in members
                for each in others
                if isinstance(each, PEArray)
                for statement in each.body
            ),
            transports=self.recurrence.transports(latency_of, most),
        )

    def check_values(self, design: AnyDesign) -> None:
        """On random numbers about one; no design changes the order of operations but in lanes."""
        if self.recurrence.steps > MOST_INTERPRETED:
            return
        inputs = {**random_inputs(design, self.constants, around=1.0), **self.constants}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", T2SWarning)
            result = simulate(design, inputs, device=self.device, progress=False)
        found = interpret(design, inputs)
        expected = found if isinstance(found, Mapping) else {self.recurrence.outputs[0]: found}
        for name, values in expected.items():
            error = 1e-3 if self.recurrence.reduces else 0.0
            if not np.allclose(
                result.outputs[name], values, rtol=error, atol=error, equal_nan=True
            ):
                raise InternalError(f"the design of {name} that was found has wrong values")


_EXACT = frozenset(
    {Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.MINIMUM, Op.MAXIMUM, Op.NEGATE, Op.ABSOLUTE}
)


def _is_exact(contraction: Contraction) -> bool:
    """Whether results do not depend on the order of a reduction if inputs are small integers."""
    if not contraction.type.is_float:
        return True
    operators = [node.operator for node in walk(contraction.term) if isinstance(node, Apply)]
    if contraction.operator in (Op.MULTIPLY, Op.DIVIDE):
        return False
    return contraction.type.bits > 16 and _EXACT.issuperset(operators)


def random_inputs(
    design: AnyDesign,
    constants: Mapping[str, Any] | None = None,
    *,
    around: float | None = None,
) -> dict[str, Any]:
    """Small integers for every input, so that sums are exact in any order.

    Floats are numbers ``around`` another one if that is given.
    """
    program = freeze(design, constants or {})
    generator = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for array in program.inputs:
        values: np.ndarray[Any, Any] = generator.integers(0, 4, array.shape)
        if around is not None and array.type.is_float:
            values = around / 2 + around * generator.random(array.shape)
        arrays[array.name] = values.astype(array.type.numpy)
    return arrays | {parameter.name: 2 for parameter in program.parameters}
