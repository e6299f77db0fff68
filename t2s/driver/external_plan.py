"""``ExternalPlan``: an assignment partly computed by external functions, and its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from t2s.capability.conditions import Answer, holds, names_of
from t2s.capability.description import ExternalFunction
from t2s.capability.ir import print_condition
from t2s.capability.operands import check_property
from t2s.capability.refusals import wrong_type
from t2s.capability.tiles import TileOf, condition_holds, tiles_for
from t2s.core.display import NotebookCard, NotebookDisplay, Preformatted
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.preparation import timed
from t2s.core.svg import SvgPicture
from t2s.core.types import Type
from t2s.core.validate import as_int
from t2s.driver.compiled_kernel import Kernel
from t2s.driver.external_hardware import streams_function
from t2s.driver.plan_inputs import (
    PlanBinding,
    bind_plan,
    dense_view,
    in_order,
    places_of,
    run_looped_calls,
    run_loops,
    stored_as,
)
from t2s.driver.plan_result import (
    DrawnPlan,
    PlanResult,
    PlanTimes,
    StepRecord,
    bytes_of,
    call_record,
    plan_picture,
)
from t2s.plan.build import build_plan
from t2s.plan.ir import (
    CallStep,
    CheckStep,
    ConvertStep,
    LoopsStep,
    MoveStep,
    PlanProgram,
    Step,
    interpret_plan,
    print_plan,
    target_of,
)
from t2s.sparse_repr.concrete.external_directives import FunctionOrName, StreamsOnDevice
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.concrete.unsupported import refuse_blocks
from t2s.sparse_repr.notation.ir import Assignment, print_assignment
from t2s.sparse_repr.notation.legality import with_semiring
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring
from t2s.sparse_repr.tensors.tensor import SparseTensor

Array = np.ndarray[Any, Any]
Value = Array | SparseTensor


class ExternalPlan(NotebookDisplay):
    """The steps in which an assignment is computed.

    Attributes
    ----------
    assignment: the index notation.
    program: the steps, as frozen terms; ``print(plan)`` shows them.
    """

    def __init__(
        self, assignment: Assignment, schedule: Schedule, semiring: Semiring = PLUS_TIMES
    ) -> None:
        assignment = with_semiring(assignment, semiring)
        refuse_blocks(assignment.tensors, "external functions", "compute elements")
        self.assignment = assignment
        self.program: PlanProgram = build_plan(assignment, schedule, PlanResolver())
        for step in self.program.calls:
            _check_first(step.mapping.function, step.location)

    def __repr__(self) -> str:
        return f"<plan of {print_assignment(self.assignment)}, {len(self.program.steps)} steps>"

    def __str__(self) -> str:
        return print_plan(self.program)

    def picture(self) -> SvgPicture:
        """A picture with steps as boxes and tensors as arrows; that of a result has times too."""
        return plan_picture(DrawnPlan(program=self.program))

    def _card(self) -> NotebookCard:
        """Its steps as a picture and as they are printed."""
        steps = Preformatted(title="", text=str(self))
        return NotebookCard(title=repr(self)[1:-1], parts=(self.picture(), steps))

    def run(
        self, inputs: Mapping[str, Any], *, type: Type | None = None, threads: int = 1
    ) -> PlanResult:
        """Run all steps; ``inputs`` and ``type`` are those of ``t2s.sparse.simulate``.

        ``threads`` is the number of threads in libraries, on which the bits of float sums depend.
        Dense arrays are read in place, whatever their strides; inputs are never written.  Raises
        ``UserError`` for values of a type that a function does not compute, and for a condition
        that does not hold if the part has no fallback.
        """
        binding = bind_plan(self.assignment, inputs, type)
        self._check_facts(binding)
        count = as_int(threads)
        if count is None or count < 1:
            raise UserError(
                "libraries use a number of threads",
                location=user_location(),
                expected="1 or more",
                given=repr(threads),
            )
        calls = [step.mapping.function for step in self.program.calls]
        if all(call.library is None or not call.library.threaded for call in calls):
            return _PlanRun(self.program, binding).result()
        from t2s.libraries.calling import threads_of_libraries

        with threads_of_libraries(count, [call.library for call in calls]):
            return _PlanRun(self.program, binding).result()

    def interpret(self, inputs: Mapping[str, Any], *, type: Type | None = None) -> Array:
        """The result with each call replaced by its statement, by numpy: the oracle of a plan."""
        binding = bind_plan(self.assignment, inputs, type)
        values = {name: dense_view(value) for name, value in binding.values.items()}
        places = places_of(binding.values)
        return interpret_plan(self.program, values, binding.extents, binding.type.numpy, places)

    def _check_facts(self, binding: PlanBinding) -> None:
        for fact, location in self.program.facts:
            names = [name for name in names_of(fact) if name not in binding.extents]
            if holds(fact, binding.extents) is Answer.TRUE or _with_some(fact, names, binding):
                continue
            shown = ", ".join(
                f"{name} is {binding.extents[name]}"
                for name in names_of(fact)
                if name in binding.extents
            )
            raise UserError(
                "what is assumed of extents does not hold in this run",
                location=location,
                expected=print_condition(fact),
                given=shown,
            )


def _with_some(fact: Any, names: list[str], binding: PlanBinding) -> bool:
    """Whether a fact holds for some value of its only name that is not a variable."""
    if len(names) != 1:
        return False
    most = max(binding.extents.values(), default=0)
    return any(
        holds(fact, {**binding.extents, names[0]: number}) is Answer.TRUE
        for number in range(most + 1)
    )


class PlanResolver:
    """Finds functions by name, and makes streams for the rest of an assignment."""

    def function(self, given: FunctionOrName, location: SourceLocation) -> ExternalFunction:
        """A function, also by a name such as ``blas.sgemm``."""
        if isinstance(given, ExternalFunction):
            return given
        from t2s.libraries.registry import function_named

        if isinstance(given, str):
            return function_named(given, location)
        raise UserError(
            "this is not an external function",
            location=location,
            expected="one of t2s.external, or what its decorator makes",
            given=repr(given),
        )

    def streams(self, assignment: Assignment, one: StreamsOnDevice) -> ExternalFunction:
        """The streams of an assignment on the device of a directive."""
        from t2s.simulator.devices import find_device

        device = find_device(one.device)
        return streams_function(Kernel(assignment), device, one.link, one.location)


def _check_first(function: ExternalFunction, location: SourceLocation | None) -> None:
    """Check that libraries are available, and test claims that were not tested yet."""
    from t2s.libraries.calling import check_available
    from t2s.libraries.claim_tests import check_first_use

    if function.library is not None and function.call is not None:
        check_available(function.library, function.name, location)
    if not function.trusted:
        check_first_use(function)


@dataclass
class _PlanRun:
    """One run of a plan."""

    program: PlanProgram
    binding: PlanBinding
    values: dict[str, Value] = field(default_factory=dict)

    def result(self) -> PlanResult:
        self.values = dict(self.binding.values)
        records = []
        final: Value | None = None
        for step in self.program.steps:
            (value, record), seconds = timed(partial(self._step, step))
            if record.times is None:
                record.times = PlanTimes(measured=seconds)
            records.append(record.result(step))
            target = target_of(step)
            if target == self.program.result:
                final = self.values[target] = value  # type: ignore[assignment]
            elif target is not None and value is not None:
                self.values[target] = value
        assert final is not None
        assignment = self.program.assignment
        format = assignment.tensor(assignment.result.tensor).format
        tensor = stored_as(final, format, self.program.assignment.semiring.zero)
        sizes = {name: bytes_of(value) for name, value in self.values.items()}
        return PlanResult(tensor=tensor, steps=tuple(records), program=self.program, sizes=sizes)

    def _step(self, step: Step) -> tuple[Value | None, StepRecord]:
        match step:
            case CheckStep(tensor=name, property=property):
                check_property(name, property, dense_view(self.values[name]), step.location)
                return None, StepRecord()
            case MoveStep(tensor=name, link=link):
                moved = bytes_of(self.values[name])
                return None, StepRecord(moved=moved, times=PlanTimes(transfers=link.seconds(moved)))
            case ConvertStep(source=source, format=format, modes=modes):
                value = self.values[source]
                zero = self.program.assignment.semiring.zero
                if modes != tuple(range(len(modes))):
                    value = in_order(value, modes)
                stored = stored_as(value, format, zero)
                dense = all(level.full for level in format.levels) and format.plain
                copied = bytes_of(stored)
                return dense_view(stored) if dense else stored, StepRecord(copied=copied)
            case LoopsStep(assignment=assignment):
                return self._computed(assignment), StepRecord()
            case CallStep():
                return self._call(step)

    def _computed(self, assignment: Assignment) -> Value:
        return run_loops(assignment, self.values, self.binding.extents, self.binding.type)

    def _call(self, step: CallStep) -> tuple[Value, StepRecord]:
        """Make the calls of a step, tiled if necessary, or fall back to loops."""
        from t2s.libraries.calling import DoesNotFit
        from t2s.libraries.running import (
            CallTally,
            RunOfMapping,
            operand_extents,
            run_mapping,
        )

        mapping, binding = step.mapping, self.binding
        types = mapping.function.capability.types
        if types and binding.type not in types:
            raise wrong_type(mapping.part, mapping.function, binding.type, step.location)
        operands = {name: self.values[source] for name, source in step.reads}
        extents = operand_extents(mapping, operands)
        if not all(extents.values()):
            return self._instead(step, "an extent is 0: nothing is called")
        tiles, refused = self._tiles(step, extents)
        if refused is not None:
            if not step.falls_back:
                raise refused
            return self._instead(step, "guard false: computed by loops")
        tally = CallTally()
        run = RunOfMapping(
            mapping=mapping,
            operands=operands,
            kind=binding.kind,
            semiring=self.program.assignment.semiring,
            tiles=tiles,
            location=step.location,
            tally=tally,
            in_loops=run_looped_calls,
        )
        try:
            value = run_mapping(run)
        except DoesNotFit:
            if not step.falls_back:
                raise
            return self._instead(step, "too large: computed by loops")
        return value, call_record(mapping, tally, tiles, value)

    def _instead(self, step: CallStep, note: str) -> tuple[Value, StepRecord]:
        """Compute the statement of a call by loops; its readers may be on a device."""
        value, seconds = timed(lambda: self._computed(step.meaning))
        record = StepRecord(note=note, times=PlanTimes(measured=seconds))
        hardware = step.mapping.function.hardware
        if hardware is not None and hardware.link is not None and record.times is not None:
            record.moved = bytes_of(value)
            record.times += PlanTimes(transfers=hardware.link.seconds(record.moved))
        return value, record

    def _tiles(
        self, step: CallStep, extents: Mapping[str, int]
    ) -> tuple[tuple[TileOf, ...], UserError | None]:
        """The tiles of a call, if it needs any; the error if its condition cannot be satisfied."""
        mapping = step.mapping
        if condition_holds(mapping, extents):
            return (), None
        tiles = tiles_for(mapping, extents, pad=step.pads) if step.tiles else None
        if tiles is not None:
            return tiles, None
        shown = ", ".join(
            f"{name} is {np.prod([extents[part] for part in name.split('*')], dtype=int)}"
            for name in names_of(mapping.condition)
        )
        return (), UserError(
            f"{mapping.function.name} is not for these extents",
            location=step.location,
            expected=print_condition(mapping.condition),
            given=shown,
            hint=None if step.tiles else "map(...) makes tiles where it can",
        )


def compile_plan(assignment: Assignment, schedule: Schedule, semiring: Semiring) -> ExternalPlan:
    """The plan of an assignment; see ``t2s.sparse.compile``."""
    return ExternalPlan(assignment, schedule, semiring)


def refuse_plan(plan: ExternalPlan, verb: str) -> UserError:
    """The error for a verb that takes kernels, not plans."""
    return UserError(
        f"{verb} takes no schedule with external functions",
        location=user_location(),
        expected="an assignment with a schedule for streams",
        given=repr(plan),
        hint="plan.run(inputs) runs a plan, which sparse.compile(A, schedule) makes",
    )
