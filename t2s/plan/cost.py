"""Predicted times of plans: a machine as data, compiled loops, and the steps of a plan.

Hardware whose cycles do not depend on values is exact.  The time of a call is interpolated between
measured sizes; one that is smaller than all of them takes as long as the smallest.  Loops are
predicted by their iterations, counted from the tensors or expected from densities; copies,
conversions and transposes by the data that they touch; moves by their link.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import exp, log, prod
from pathlib import Path
from typing import Any

import numpy as np

from t2s.capability.conditions import mode_extent, mode_name
from t2s.capability.description import ExternalFunction
from t2s.capability.mapping import OperandView
from t2s.capability.operands import suits
from t2s.capability.parts import normal_form
from t2s.capability.tiles import TileOf, condition_holds, tiles_for
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.types import Type
from t2s.core.walk import Term, walk
from t2s.plan.ir import (
    CallStep,
    CheckStep,
    ConvertStep,
    LoopsStep,
    MoveStep,
    PlanProgram,
    Step,
    target_of,
)
from t2s.sparse_repr.concrete.external_loops import program_in_loops
from t2s.sparse_repr.concrete.ir import (
    Assign,
    ConcreteProgram,
    Forall,
    Statement,
    View,
    Where,
    reads_of,
    result_of,
)
from t2s.sparse_repr.concrete.merge import (
    Both,
    Either,
    Everything,
    Leaf,
    Merge,
    expression_of,
    is_unbounded,
    merge_of,
)
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import Access, Assignment, accesses


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRates(Term):
    """Measured calls of a function: ``work`` in steps of its innermost loop, and seconds."""

    library: str
    function: str
    points: tuple[tuple[float, float], ...]

    def seconds(self, work: float) -> float:
        """The seconds of a call with this much work."""
        first, last = self.points[0], self.points[-1]
        if work <= first[0]:
            return first[1]
        if work >= last[0]:
            return work * last[1] / last[0]
        after = next(number for number, (size, _) in enumerate(self.points) if size >= work)
        (small, short), (large, long) = self.points[after - 1], self.points[after]
        share = log(work / small) / log(large / small)
        return exp(log(short) + share * (log(long) - log(short)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRates(Term):
    """Rates of compiled loops, in seconds.

    Attributes
    ----------
    start: per statement.
    loop: per execution of an inner loop, in addition to its iterations.
    entry: per coordinate of a list; ``merged`` if the loop merges several lists.
    element: per iteration of a dense loop that accumulates in a local, which is sequential.
    vector: per iteration along a dense result, which is vectorized.
    strided: per iteration that reads far from the previous one, in memory beyond the caches.
    append: per entry of a sparse result.
    workspace: per value that is collected in a workspace.
    zero: per element of a dense result, for its initialization.
    """

    start: float
    loop: float
    entry: float
    merged: float
    element: float
    vector: float
    strided: float
    append: float
    workspace: float
    zero: float


@dataclass(frozen=True, kw_only=True)
class HostMachine(Term):
    """The rates of a machine.

    Attributes
    ----------
    name: for tables.
    threads: of libraries during the measurement.
    start: seconds per step that calls a function, in addition to its calls.
    call: seconds per call of a function without measurements, in addition to its work.
    step: seconds per iteration of the innermost loop of such a function.
    copy, transpose: seconds per byte that is copied or transposed.
    convert: seconds per stored entry that is converted; ``scan``: per dense element that is
    scanned. loops: the rates of compiled loops. functions: measured functions.
    """

    name: str
    threads: int = 1
    start: float
    call: float
    step: float
    copy: float
    transpose: float
    convert: float
    scan: float
    loops: LoopRates
    functions: tuple[FunctionRates, ...] = ()

    def rates_of(self, function: ExternalFunction) -> FunctionRates | None:
        """The measurements of a function."""
        library = function.library.name if function.library is not None else ""
        for rates in self.functions:
            if (rates.library, rates.function) == (library, function.name):
                return rates
        return None

    def call_seconds(self, function: ExternalFunction, work: float) -> float:
        """The seconds of a call of a function with this much work."""
        rates = self.rates_of(function)
        return rates.seconds(work) if rates is not None else self.call + work * self.step

    def least_seconds(self, function: ExternalFunction) -> float:
        """A lower bound on the seconds of any call of a function."""
        rates = self.rates_of(function)
        return min(seconds for _, seconds in rates.points) if rates is not None else self.call

    def save(self, path: str | Path) -> None:
        """Write the rates to a file, as JSON."""
        Path(path).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def load_machine(path: str | Path) -> HostMachine:
    """The rates in a file that ``save`` wrote.  Raises ``UserError`` for another one."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        return _machine(json.loads(text))
    except OSError as error:
        why = str(error)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"
    raise UserError(
        f"{path} has no rates of a machine",
        location=user_location(),
        expected="a file that machine.save(path) wrote",
        given=why,
    )


def _machine(stored: Mapping[str, Any]) -> HostMachine:
    functions = tuple(
        FunctionRates(
            library=str(measured["library"]),
            function=str(measured["function"]),
            points=tuple((float(work), float(seconds)) for work, seconds in measured["points"]),
        )
        for measured in stored["functions"]
    )
    if any(min(point) <= 0 for function in functions for point in function.points) or any(
        not function.points for function in functions
    ):
        raise ValueError("work and seconds are more than 0")
    loops = LoopRates(**{name: float(value) for name, value in stored["loops"].items()})
    rates = {name: float(stored[name]) for name in _RATES}
    return HostMachine(
        name=str(stored["name"]),
        threads=int(stored["threads"]),
        loops=loops,
        functions=functions,
        **rates,
    )


_RATES = ("start", "call", "step", "copy", "transpose", "convert", "scan")

GENERIC = HostMachine(
    name="generic",
    start=60e-6,
    call=10e-6,
    step=0.5e-9,
    copy=0.15e-9,
    transpose=0.6e-9,
    convert=60e-9,
    scan=1e-9,
    loops=LoopRates(
        start=150e-6,
        loop=4e-9,
        entry=1.2e-9,
        merged=5e-9,
        element=1e-9,
        vector=0.4e-9,
        strided=5e-9,
        append=3e-9,
        workspace=4e-9,
        zero=0.3e-9,
    ),
    functions=tuple(
        FunctionRates(library="scipy's BLAS", function=f"{letter}{name}", points=points)
        for letter in "sd"
        for name, points in (
            ("gemm", ((5e2, 0.4e-6), (2.6e5, 12e-6), (1.7e7, 500e-6), (1e9, 25e-3))),
            ("gemv", ((6e1, 0.1e-6), (4e3, 0.7e-6), (6.5e4, 8e-6), (1.6e7, 4e-3))),
            ("gemv_columns", ((6e1, 0.1e-6), (4e3, 0.7e-6), (6.5e4, 8e-6), (1.6e7, 4e-3))),
            ("dot", ((1.6e1, 30e-9), (1e4, 2e-6), (1e6, 200e-6))),
        )
    ),
)
"""A processor of the last years with one thread; ``calibrate`` measures the one that is there."""


# Predicted times of compiled loops: iterations of every loop of a statement, and their rates.
#
# The expected number of coordinates that a loop visits follows from densities, as if entries were
# spread at random: a product has those of all factors, a sum those of any term.

IN_CACHE = 1 << 20
"""Bytes of an array that may be read in any order as fast as one behind the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFacts:
    """Facts about a tensor before a run.

    ``stored`` is the number of its values, counted or expected; ``order`` its modes in memory, the
    outermost first; ``sparse`` whether it may store only some of its elements.
    """

    shape: tuple[int, ...]
    stored: float
    order: tuple[int, ...]
    sparse: bool = False

    @property
    def elements(self) -> int:
        """The number of elements, stored or not."""
        return prod(self.shape)

    @property
    def density(self) -> float:
        """The fraction of the elements that are stored."""
        return self.stored / self.elements if self.elements else 0.0

    def strides(self, itemsize: int) -> tuple[int, ...]:
        """The strides of a dense tensor, in bytes."""
        strides = [0] * len(self.shape)
        step = itemsize
        for mode in reversed(self.order):
            strides[mode] = step
            step *= max(1, self.shape[mode])
        return tuple(strides)


def facts_of(shape: tuple[int, ...], format: Format, stored: float | None = None) -> TensorFacts:
    """Facts about a tensor of a shape in a format; by default, all of it is stored."""
    sparse = not (format.plain and all(level.full for level in format.levels))
    count = prod(shape) if stored is None or not sparse else stored
    order = format.modes if format.plain else tuple(range(len(shape)))
    return TensorFacts(shape=shape, stored=count, order=order, sparse=sparse)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSetting:
    """The inputs of a prediction: extents, tensors by name, bytes per value, and rates."""

    extents: Mapping[str, int]
    tensors: Mapping[str, TensorFacts]
    itemsize: int
    rates: LoopRates
    convert: float


def loop_seconds(assignment: Assignment, setting: LoopSetting) -> tuple[float, str]:
    """The predicted seconds of a statement by compiled loops, and its number of iterations."""
    names = dict.fromkeys(access.tensor for access in accesses(assignment.value))
    memory = tuple(
        (name, setting.tensors[name].order) for name in names if not setting.tensors[name].sparse
    )
    return _LoopWalk(setting, program_in_loops(assignment, memory)).seconds()


@dataclass
class _LoopWalk:
    """Walks through the loops of a program, adding up their time."""

    setting: LoopSetting
    program: ConcreteProgram
    known: dict[str, TensorFacts] = field(default_factory=dict)
    taken: float = 0.0
    steps: float = 0.0
    strided: bool = False

    def seconds(self) -> tuple[float, str]:
        rates = self.setting.rates
        self.known = dict(self.setting.tensors)
        self._views()
        for stage in self.program.stages:
            self.taken += rates.start
            before = self.steps
            self._statement(stage, 1.0, {}, result_of(stage).tensor)
            self._written(stage, self.steps - before)
            self._views()
        how = ", strided" if self.strided else ""
        return self.taken, f"{self.steps:.3g} steps{how}"

    def _views(self) -> None:
        """Facts about the views that the loops read; adds the time of conversions."""
        for view in self.program.views:
            if view.name in self.known or view.source not in self.known:
                continue
            self.known[view.name] = facts = _seen(view, self.known[view.source])
            if facts.sparse and view.name != self.program.written:
                self.taken += facts.stored * self.setting.convert

    def _written(self, stage: Statement, steps: float) -> None:
        result = result_of(stage)
        shape = tuple(self._extent(name) for name in result.variables)
        format = self.program.format_of(result.tensor)
        sparse = not all(level.full for level in format.levels)
        count = prod(shape)
        self.known[result.tensor] = TensorFacts(
            shape=shape,
            stored=min(steps, count) if sparse else count,
            order=tuple(range(len(shape))),
            sparse=sparse,
        )
        if not sparse:
            self.taken += count * self.setting.rates.zero

    def _extent(self, name: str) -> int:
        return self.setting.extents.get(name, 1)

    # -- loops ------------------------------------------------------------------------------------

    def _statement(
        self, statement: Statement, times: float, at: Mapping[str, int], stored: str
    ) -> None:
        match statement:
            case Where(consumer=consumer, producer=producer):
                self._statement(producer, times, at, result_of(producer).tensor)
                self._statement(consumer, times, at, stored)
            case Forall():
                self._loop(statement, times, at, stored)
            case Assign():
                if not at:
                    self.steps += 1

    def _loop(self, loop: Forall, times: float, at: Mapping[str, int], stored: str) -> None:
        rates, name = self.setting.rates, loop.variable
        extent = self._extent(name)
        merge = merge_of(expression_of(loop), name)
        listed = {
            leaf.access: self._share(leaf.access, name, at)
            for leaf in walk(merge)
            if isinstance(leaf, Leaf) and self._is_list(leaf.access, name)
        }
        inside = times * extent * _share_of(merge, listed)
        visited = times * extent
        if listed and not is_unbounded(merge):
            visited *= 1 - prod(1 - share for share in listed.values())
        self.taken += times * rates.loop
        innermost = isinstance(loop.body, Assign)
        if len(listed) > 1 or (listed and is_unbounded(merge)):
            self.taken += visited * rates.merged * max(1, len(listed) - 1)
        elif listed:
            self.taken += visited * rates.entry
        if innermost:
            self.steps += inside
            self.taken += self._body(loop, inside, listed=bool(listed), at=at, stored=stored)
        result = result_of(loop)
        if result.tensor == stored and name in result.variables:
            self._append(loop, inside, at, result)
        self._statement(loop.body, inside, {**at, name: len(at)}, stored)

    def _append(self, loop: Forall, inside: float, at: Mapping[str, int], result: Access) -> None:
        """Add the time of appending to a sparse result, in the loop over its last variable."""
        if set(result.variables) - set(at) - {loop.variable} or not self._is_sparse(result.tensor):
            return
        rates = self.setting.rates
        outer = [name for name in at if name not in result.variables]
        self.taken += inside * (rates.append + (rates.workspace if outer else 0.0))

    def _body(
        self, loop: Forall, inside: float, *, listed: bool, at: Mapping[str, int], stored: str
    ) -> float:
        """Seconds of the body of the innermost loop, without walking lists."""
        rates, name = self.setting.rates, loop.variable
        result = result_of(loop)
        reads = [access for access in reads_of(loop) if name in access.variables]
        far = any(self._jumps(access, name, listed=listed) for access in reads)
        self.strided = self.strided or far
        sums = bool(set(at) - set(result.variables))
        waits = name in result.variables and sums and self._is_sparse(stored)
        waits = waits or (result.tensor != stored and bool(result.variables))
        seconds = inside * (rates.workspace if waits else 0.0)
        if far:
            return seconds + inside * rates.strided
        if listed or waits:
            return seconds
        summed = name not in result.variables
        return inside * (rates.element if summed else rates.vector)

    def _jumps(self, access: Access, name: str, *, listed: bool) -> bool:
        """Whether successive reads of a large dense array are far apart."""
        known = self.known.get(access.tensor)
        if known is None or known.sparse or known.elements * self.setting.itemsize <= IN_CACHE:
            return False
        return listed or access.variables[known.order[-1]] != name

    # -- coordinates ------------------------------------------------------------------------------

    def _is_sparse(self, name: str) -> bool:
        """Whether the written tensor may store only some elements; temporaries store all."""
        formats = {tensor.name: tensor.format for tensor in self.program.tensors}
        return name in formats and not all(level.full for level in formats[name].levels)

    def _is_list(self, access: Access, name: str) -> bool:
        known = self.known.get(access.tensor)
        if known is None or not known.sparse:
            return False
        format = self.program.format_of(access.tensor)
        if not format.plain:
            return True
        level = format.modes.index(access.variables.index(name))
        return not format.levels[level].full

    def _share(self, access: Access, name: str, at: Mapping[str, int]) -> float:
        """The fraction of the coordinates of a level that are stored, in a fiber that exists."""
        known, format = self.known[access.tensor], self.program.format_of(access.tensor)
        if not format.plain:
            return known.density
        shape = [known.shape[mode] for mode in format.modes]
        level = format.modes.index(access.variables.index(name))
        before = _prefixes(known, shape, level, format.levels[level - 1].full if level else True)
        after = _prefixes(known, shape, level + 1, False)
        return min(1.0, after / max(before * shape[level], 1e-9))


def _prefixes(known: TensorFacts, shape: list[int], levels: int, full: bool) -> float:
    """The expected number of coordinates of the first levels: all, or those with entries below."""
    whole, rest = prod(shape[:levels]), prod(shape[levels:])
    if full:
        return float(whole)
    return float(whole * (1 - (1 - min(1.0, known.density)) ** rest))


def _share_of(merge: Merge, shares: Mapping[Access, float]) -> float:
    """The fraction of all coordinates that a merge visits."""
    match merge:
        case Leaf(access=access):
            return shares.get(access, 1.0)
        case Everything() | Either(everything=True):
            return 1.0
        case Both(members=members):
            return prod(_share_of(member, shares) for member in members)
        case Either(members=members):
            return 1 - prod(1 - _share_of(member, shares) for member in members)


def _seen(view: View, source: TensorFacts) -> TensorFacts:
    """Facts about a view."""
    modes = [parts[0].mode for parts in view.parts]
    shape = tuple(source.shape[mode] for mode in modes)
    order = tuple(modes.index(mode) for mode in source.order if mode in modes)
    if not source.sparse:
        return replace(source, shape=shape, stored=prod(shape), order=order)
    share = source.density
    return replace(source, shape=shape, stored=share * prod(shape), order=order)


# Predicted times of plans: the work of each step, at the rates of a machine.


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFacts:
    """What a prediction is for: extents of variables, inputs, bytes per value, type."""

    extents: Mapping[str, int]
    tensors: Mapping[str, TensorFacts]
    itemsize: int = 4
    type: Type | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedStep:
    """The seconds of a step, and how they were computed; ``exact`` for hardware's cycles."""

    step: Step
    seconds: float
    why: str
    exact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The predicted times of a plan, step by step, with the facts about its tensors."""

    steps: tuple[PredictedStep, ...]
    tensors: Mapping[str, TensorFacts]

    @property
    def seconds(self) -> float:
        """The total time of all steps."""
        return sum(step.seconds for step in self.steps)


def predict(program: PlanProgram, facts: PlanFacts, machine: HostMachine) -> Prediction:
    """Predict the times of the steps of a plan on a machine."""
    return predict_steps(program.steps, dict(program.tensors), facts, machine)


def predict_steps(
    steps: Sequence[Step],
    formats: Mapping[str, Format],
    facts: PlanFacts,
    machine: HostMachine,
    before: Prediction | None = None,
) -> Prediction:
    """Predict the times of steps; ``before`` is the prediction of a prefix, if there is one."""
    first = before or Prediction(steps=(), tensors=facts.tensors)
    predictor = _Predictor(formats, facts, machine, dict(first.tensors))
    more = predictor.predicted(steps[len(first.steps) :])
    return Prediction(steps=(*first.steps, *more), tensors=predictor.known)


@dataclass
class _Predictor:
    formats: Mapping[str, Format]
    facts: PlanFacts
    machine: HostMachine
    known: dict[str, TensorFacts]

    def predicted(self, steps: Sequence[Step]) -> list[PredictedStep]:
        predictions = []
        for step in steps:
            predictions.append(self._step(step))
            target = target_of(step)
            if target is not None:
                self.known[target] = self._written(step, target)
        return predictions

    def _step(self, step: Step) -> PredictedStep:
        machine, size = self.machine, self.facts.itemsize
        match step:
            case CheckStep(tensor=name):
                count = self.known[name].elements
                return _predicted(step, 2 * count * size * machine.transpose, f"{count} compared")
            case MoveStep(tensor=name, link=link):
                count = self._bytes(name)
                return _predicted(step, link.seconds(count), f"{count} bytes")
            case ConvertStep(source=source):
                return self._converted(step, self.known[source])
            case LoopsStep(assignment=assignment):
                seconds, why = self._loops(assignment)
                return _predicted(step, seconds, why)
            case CallStep():
                return self._call(step)

    def _bytes(self, name: str) -> int:
        facts, size = self.known[name], self.facts.itemsize
        if not facts.sparse:
            return facts.elements * size
        return int(facts.stored * (size + 4) + 4 * (facts.shape[0] + 1 if facts.shape else 0))

    def _converted(self, step: ConvertStep, source: TensorFacts) -> PredictedStep:
        machine, size = self.machine, self.facts.itemsize
        full = all(level.full for level in step.format.levels) and step.format.plain
        if source.sparse:
            seconds = source.stored * machine.convert
            seconds += source.elements * size * machine.copy if full else 0.0
            return _predicted(step, seconds, f"{source.stored:.0f} entries")
        if not full:
            seconds = source.elements * machine.scan + source.stored * machine.convert
            return _predicted(step, seconds, f"{source.elements} elements")
        wanted = tuple(step.modes[mode] for mode in step.format.modes)
        count = source.elements * size
        alike = wanted == source.order
        rate = machine.copy if alike else machine.transpose
        return _predicted(step, count * rate, f"{count} bytes{'' if alike else ' transposed'}")

    def _call(self, step: CallStep) -> PredictedStep:
        mapping, machine = step.mapping, self.machine
        extents = self.facts.extents
        tiles: tuple[TileOf, ...] = ()
        if not condition_holds(mapping, extents):
            covering = tiles_for(mapping, extents, pad=step.pads) if step.tiles else None
            if covering is None:
                seconds, why = self._loops(step.meaning)
                return _predicted(step, seconds, f"guard false: {why}")
            tiles = covering
        calls = prod(extents[name] for name in mapping.fixed) * prod(tile.count for tile in tiles)
        hardware = mapping.function.hardware
        if hardware is not None:
            cycles = hardware.cycles
            each = cycles() if cycles is not None else round(self._iterations(step.meaning))
            text = f"{calls * each} cycles"
            seconds = calls * each / hardware.clock_hz + self._partial(step, tiles)
            return _predicted(step, seconds, text, exact=cycles is not None)
        sizes = {tile.mode: tile.size for tile in tiles}
        modes = dict.fromkeys(mode for view in mapping.operands for mode in view.modes if mode)
        work = float(prod(sizes.get(mode_name(m), mode_extent(m, extents)) for m in modes))
        for view in mapping.operands:
            source = self.known[dict(step.reads)[view.name]]
            work *= source.density if source.sparse else 1.0
        copied = sum(self._copied(step, view) for view in mapping.operands)
        copied += sum(self._far(step, view) for view in mapping.operands if calls > 1)
        seconds = machine.start + calls * (machine.call_seconds(mapping.function, work) + copied)
        text = f"{calls} call{'s' if calls != 1 else ''} of {work:.3g} steps"
        return _predicted(step, seconds, text + (", with copies" if copied else ""))

    def _partial(self, step: CallStep, tiles: tuple[TileOf, ...]) -> float:
        """Seconds of moving partial results to the host, adding them up, and moving sums back."""
        mapping, extents = step.mapping, self.facts.extents
        hardware = mapping.function.hardware
        counts = {cut.mode: cut for cut in tiles}
        sums = prod(extents[name] for name in mapping.fixed_sums)
        sums *= prod(counts[mode_name(m)].count for m in mapping.summed if mode_name(m) in counts)
        if hardware is None or hardware.link is None or sums == 1:
            return 0.0
        size = self.facts.itemsize
        total = size * prod(extents[name] for name in mapping.variables)
        pieces = size * prod(extents[name] for name in mapping.fixed) * sums
        for mode in mapping.result:
            tile = counts.get(mode_name(mode))
            pieces *= mode_extent(mode, extents) if tile is None else _reach(tile)
        pieces //= prod(extents[name] for name in mapping.fixed_sums)
        return hardware.link.seconds(pieces) + hardware.link.seconds(total)

    def _steps(self, step: CallStep, view: OperandView) -> tuple[list[int], list[int]] | None:
        """The shape of an operand in a call, and its strides in bytes; ``None`` if it is sparse."""
        source = self.known[dict(step.reads)[view.name]]
        if source.sparse or any(len(mode) > 1 for mode in view.modes):
            return None
        strides = source.strides(self.facts.itemsize)
        places = {name: at for at, name in enumerate(view.access.variables)}
        shape = [mode_extent(mode, self.facts.extents) for mode in view.modes]
        size = self.facts.itemsize
        return shape, [strides[places[mode[0]]] if mode else size for mode in view.modes]

    def _far(self, step: CallStep, view: OperandView) -> float:
        """Extra seconds of each call for reads that are far apart in memory."""
        shape_and_strides, size = self._steps(step, view), self.facts.itemsize
        source = self.known[dict(step.reads)[view.name]]
        if (
            shape_and_strides is None
            or source.elements * size <= IN_CACHE
            or size in shape_and_strides[1]
        ):
            return 0.0
        return prod(shape_and_strides[0]) * self.machine.loops.strided

    def _copied(self, step: CallStep, view: OperandView) -> float:
        """Seconds per call of copying an operand whose strides the function does not take."""
        needs = step.mapping.function.capability.needs_of(view.name)
        overwritten = view.name == step.mapping.function.capability.overwritten
        shape_and_strides, size = self._steps(step, view), self.facts.itemsize
        if shape_and_strides is None:
            return 0.0
        shape, steps = shape_and_strides
        seen = np.lib.stride_tricks.as_strided(np.empty(1, f"V{size}"), shape, steps)
        if suits(seen, needs.strides) and not overwritten:
            return 0.0
        contiguous = sorted(steps, reverse=True) == steps
        rate = self.machine.copy if contiguous else self.machine.transpose
        return prod(shape) * size * rate

    def _iterations(self, assignment: Assignment) -> float:
        """Iterations of the innermost loops; a product only runs where all factors are stored."""
        total = 0.0
        for term in normal_form(assignment.value, assignment.semiring):
            reads = [access for factor in term.factors for access in accesses(factor)]
            names = dict.fromkeys(name for access in reads for name in access.variables)
            count = float(prod(self.facts.extents[name] for name in names))
            for access in {read.tensor: read for read in reads}.values():
                count *= self.known[access.tensor].density
            total += count
        return total

    def _loops(self, assignment: Assignment) -> tuple[float, str]:
        """Seconds of a statement that compiled loops compute."""
        setting = LoopSetting(
            extents=self.facts.extents,
            tensors=self.known,
            itemsize=self.facts.itemsize,
            rates=self.machine.loops,
            convert=self.machine.convert,
        )
        return loop_seconds(assignment, setting)

    def _written(self, step: Step, target: str) -> TensorFacts:
        """Facts about a tensor that a step writes."""
        format = self.formats[target]
        match step:
            case ConvertStep(source=source, modes=modes):
                before = self.known[source]
                shape = tuple(before.shape[mode] for mode in modes)
                return facts_of(shape, format, before.stored)
            case LoopsStep(assignment=assignment) | CallStep(meaning=assignment):
                shape = tuple(self.facts.extents[name] for name in assignment.result.variables)
                written = replace(facts_of(shape, format), order=tuple(range(len(shape))))
                if not written.sparse:
                    return written
                return replace(written, stored=min(self._iterations(assignment), written.elements))
        raise AssertionError("checks and moves write nothing")


def _reach(tile: TileOf) -> int:
    """The extent that all tiles of a mode cover, including padding."""
    return tile.count * tile.size if tile.padded else tile.extent


def _predicted(step: Step, seconds: float, why: str, *, exact: bool = False) -> PredictedStep:
    return PredictedStep(step=step, seconds=seconds, why=why, exact=exact)
