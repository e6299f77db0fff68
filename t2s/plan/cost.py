"""Predicted times of plans: what each step does, counted, and a machine's rates.

Hardware whose cycles do not depend on values is exact.  Calls take what was measured of calls of
their size; our loops by the iterations of their statement, counted from the tensors or expected
from densities; copies, conversions, transposes by what they touch; moves by their link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from t2s.capability.conditions import mode_extent, mode_name
from t2s.capability.mapping import OperandView
from t2s.capability.normal import normal_form
from t2s.capability.steps_in_memory import suits
from t2s.capability.tiles import TileOf, condition_holds, tiles_for
from t2s.core.types import Type
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
from t2s.plan.loop_cost import IN_CACHE, LoopSetting, TensorFacts, facts_of, loop_seconds
from t2s.plan.machine import HostMachine
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import Assignment, accesses


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFacts:
    """What a prediction is for: extents of variables, inputs, a value's bytes, its type."""

    extents: Mapping[str, int]
    tensors: Mapping[str, TensorFacts]
    itemsize: int = 4
    type: Type | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedStep:
    """How long a step takes, and what that was computed from; ``exact`` of hardware's cycles."""

    step: Step
    seconds: float
    why: str
    exact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The predicted times of a plan, step by step, and what is known of its tensors then."""

    steps: tuple[PredictedStep, ...]
    tensors: Mapping[str, TensorFacts]

    @property
    def seconds(self) -> float:
        """Of all steps, one after the other."""
        return sum(step.seconds for step in self.steps)


def predict(program: PlanProgram, facts: PlanFacts, machine: HostMachine) -> Prediction:
    """How long the steps of a plan will take on a machine."""
    return predict_steps(program.steps, dict(program.tensors), facts, machine)


def predict_steps(
    steps: Sequence[Step],
    formats: Mapping[str, Format],
    facts: PlanFacts,
    machine: HostMachine,
    before: Prediction | None = None,
) -> Prediction:
    """How long steps will take; ``before`` is the prediction of the first ones, if there is any."""
    first = before or Prediction(steps=(), tensors=facts.tensors)
    found = _Predictor(formats, facts, machine, dict(first.tensors))
    more = found.predicted(steps[len(first.steps) :])
    return Prediction(steps=(*first.steps, *more), tensors=found.known)


@dataclass
class _Predictor:
    formats: Mapping[str, Format]
    facts: PlanFacts
    machine: HostMachine
    known: dict[str, TensorFacts]

    def predicted(self, steps: Sequence[Step]) -> list[PredictedStep]:
        found = []
        for step in steps:
            found.append(self._step(step))
            target = target_of(step)
            if target is not None:
                self.known[target] = self._written(step, target)
        return found

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
        one, size = self.known[name], self.facts.itemsize
        if not one.sparse:
            return one.elements * size
        return int(one.stored * (size + 4) + 4 * (one.shape[0] + 1 if one.shape else 0))

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
            found = tiles_for(mapping, extents, pad=step.pads) if step.tiles else None
            if found is None:
                seconds, why = self._loops(step.meaning)
                return _predicted(step, seconds, f"guard false: {why}")
            tiles = found
        calls = prod(extents[name] for name in mapping.fixed) * prod(one.count for one in tiles)
        hardware = mapping.function.hardware
        if hardware is not None:
            cycles = hardware.cycles
            each = cycles() if cycles is not None else round(self._iterations(step.meaning))
            text = f"{calls * each} cycles"
            seconds = calls * each / hardware.clock_hz + self._partial(step, tiles)
            return _predicted(step, seconds, text, exact=cycles is not None)
        sizes = {one.mode: one.size for one in tiles}
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
        """Seconds in which results that the host has to sum up go there, and their sum back."""
        mapping, extents = step.mapping, self.facts.extents
        hardware = mapping.function.hardware
        counts = {one.mode: one for one in tiles}
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
        """The shape of an operand in a call, and its steps in bytes; ``None`` if it is sparse."""
        source = self.known[dict(step.reads)[view.name]]
        if source.sparse or any(len(mode) > 1 for mode in view.modes):
            return None
        strides = source.strides(self.facts.itemsize)
        places = {name: at for at, name in enumerate(view.access.variables)}
        shape = [mode_extent(mode, self.facts.extents) for mode in view.modes]
        size = self.facts.itemsize
        return shape, [strides[places[mode[0]]] if mode else size for mode in view.modes]

    def _far(self, step: CallStep, view: OperandView) -> float:
        """Seconds of what each call reads far apart in memory, beside those of its work."""
        found, size = self._steps(step, view), self.facts.itemsize
        source = self.known[dict(step.reads)[view.name]]
        if found is None or source.elements * size <= IN_CACHE or size in found[1]:
            return 0.0
        return prod(found[0]) * self.machine.loops.strided

    def _copied(self, step: CallStep, view: OperandView) -> float:
        """Seconds of a copy of an operand, in each call, because of its steps in memory."""
        needs = step.mapping.function.capability.needs_of(view.name)
        overwritten = view.name == step.mapping.function.capability.overwritten
        found, size = self._steps(step, view), self.facts.itemsize
        if found is None:
            return 0.0
        shape, steps = found
        seen = np.lib.stride_tricks.as_strided(np.empty(1, f"V{size}"), shape, steps)
        if suits(seen, needs.strides) and not overwritten:
            return 0.0
        contiguous = sorted(steps, reverse=True) == steps
        rate = self.machine.copy if contiguous else self.machine.transpose
        return prod(shape) * size * rate

    def _iterations(self, assignment: Assignment) -> float:
        """Steps of the innermost loops of a statement: of a product those where all are stored."""
        total = 0.0
        for term in normal_form(assignment.value, assignment.semiring):
            reads = [access for factor in term.factors for access in accesses(factor)]
            names = dict.fromkeys(name for access in reads for name in access.variables)
            count = float(prod(self.facts.extents[name] for name in names))
            for access in {one.tensor: one for one in reads}.values():
                count *= self.known[access.tensor].density
            total += count
        return total

    def _loops(self, assignment: Assignment) -> tuple[float, str]:
        """Seconds of a statement that our loops compute."""
        setting = LoopSetting(
            extents=self.facts.extents,
            tensors=self.known,
            itemsize=self.facts.itemsize,
            rates=self.machine.loops,
            convert=self.machine.convert,
        )
        return loop_seconds(assignment, setting)

    def _written(self, step: Step, target: str) -> TensorFacts:
        """What is known of a tensor that a step writes."""
        format = self.formats[target]
        match step:
            case ConvertStep(source=source, modes=modes):
                before = self.known[source]
                shape = tuple(before.shape[mode] for mode in modes)
                return facts_of(shape, format, before.stored)
            case LoopsStep(assignment=assignment) | CallStep(meaning=assignment):
                shape = tuple(self.facts.extents[name] for name in assignment.result.variables)
                made = replace(facts_of(shape, format), order=tuple(range(len(shape))))
                if not made.sparse:
                    return made
                return replace(made, stored=min(self._iterations(assignment), made.elements))
        raise AssertionError("checks and moves write nothing")


def _reach(tile: TileOf) -> int:
    """How far all tiles of a mode go, with what is padded."""
    return tile.count * tile.size if tile.padded else tile.extent


def _predicted(step: Step, seconds: float, why: str, *, exact: bool = False) -> PredictedStep:
    return PredictedStep(step=step, seconds=seconds, why=why, exact=exact)
