"""A plan as C: sources, a Makefile, and a main that reads inputs and checks itself.

The program is for inputs of the shapes that it is made with: tiles and steps are numbers of its
main.  What is expected is computed by the statements of the steps, without any library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, assert_never

import numpy as np

from t2s.capability.printer import print_condition
from t2s.capability.properties import check_property
from t2s.capability.refusals import wrong_type
from t2s.capability.tiles import condition_holds, tiles_for
from t2s.core.checks import checked_kind
from t2s.core.errors import InternalError, UserError
from t2s.core.files import write_file, write_texts
from t2s.core.location import SourceLocation, user_location
from t2s.core.types import Type
from t2s.driver.external_c_library import library_of
from t2s.driver.external_c_program import CProgram
from t2s.driver.external_plan import ExternalPlan
from t2s.driver.plan_inputs import PlanBinding, Value, bind_plan, dense_view, is_dense
from t2s.driver.plan_loops import run_loops
from t2s.libraries.looped_mapping import LoopedMapping, looped_mapping
from t2s.libraries.running import operand_extents
from t2s.plan.ir import CallStep, CheckStep, ConvertStep, LoopsStep, MoveStep, PlanProgram, Step
from t2s.plan.printer import print_step
from t2s.sparse_repr.notation.ir import Access, Assignment, TensorDeclaration

Array = np.ndarray[Any, Any]


def emit_plan(
    plan: ExternalPlan, directory: str, inputs: Mapping[str, Any], *, type: Type | None = None
) -> tuple[Path, ...]:
    """Write a plan as C into a folder; see ``t2s.external.emit``."""
    checked_kind("the plan", plan, ExternalPlan, "what sparse.compile makes of a plan's schedule")
    binding = bind_plan(plan.assignment, inputs, type)
    if binding.type.is_float and binding.type.bits == 16:
        raise UserError(
            "float16 is no type of C",
            location=user_location(),
            expected="type=Float(32), for example",
        )
    nothing = next((name for name, extent in binding.extents.items() if not extent), None)
    if nothing is not None:
        raise UserError(
            f"the extent of {nothing} is 0, and C has no arrays of nothing",
            location=user_location(),
            expected="inputs with elements",
        )
    for step in plan.program.calls:
        library_of(step.mapping.function, step.location)
    made = _PlanInC(plan.program, binding)
    made.run()
    folder = Path(directory)
    files = write_texts(folder, made.program.texts(plan.program.result), user_location())
    paths = list(files)
    for name, array in made.program.data.items():
        write_file(folder / name, np.ascontiguousarray(array).tobytes())
        paths.append(folder / name)
    return tuple(paths)


class _PlanInC:
    def __init__(self, plan: PlanProgram, binding: PlanBinding) -> None:
        self.plan, self.binding = plan, binding
        self.program = CProgram(plan.assignment.semiring, binding.type)
        self.values: dict[str, Value] = {
            name: np.ascontiguousarray(one) if isinstance(one, np.ndarray) else one
            for name, one in binding.values.items()
        }
        for name, value in self.values.items():
            self.program.add_input(name, value)

    def run(self) -> None:
        for number, step in enumerate(self.plan.steps, 1):
            self.program.remark(f"{number}. {print_step(step)}")
            self._step(step)
        self.program.check(self.plan.result, self.values[self.plan.result])

    def _step(self, step: Step) -> None:
        match step:
            case CheckStep(tensor=name, property=property):
                check_property(name, property, dense_view(self.values[name]), step.location)
                self.program.remark("checked as this was made")
            case ConvertStep():
                self._statement(self._conversion(step), None)
            case LoopsStep(assignment=assignment):
                self._statement(assignment, assignment.location)
            case CallStep():
                self._call(step)
            case MoveStep():
                raise InternalError("data moves for hardware only, whose calls are refused")
            case _:
                assert_never(step)

    def _conversion(self, step: ConvertStep) -> Assignment:
        """The statement of a conversion, which loops compute."""
        names = tuple(f"i{mode}" for mode in range(len(step.modes)))
        source = self.values[step.source]
        format = self.plan.format_of(step.source)
        for mode, name in enumerate(names):
            self.binding.extents[name] = source.shape[step.modes[mode]]
        read = [""] * len(names)
        for mode, own in enumerate(step.modes):
            read[own] = names[mode]
        return Assignment(
            result=Access(tensor=step.target, variables=names),
            value=Access(tensor=step.source, variables=tuple(read)),
            tensors=(
                TensorDeclaration(name=step.target, format=step.format),
                TensorDeclaration(name=step.source, format=format),
            ),
            semiring=self.plan.assignment.semiring,
        )

    def _statement(self, assignment: Assignment, location: SourceLocation | None) -> None:
        made = self.program.add_loops(assignment, self.values, self.binding, location)
        self.values[assignment.result.tensor] = dense_view(made) if is_dense(made.format) else made

    def _call(self, step: CallStep) -> None:
        mapping, binding = step.mapping, self.binding
        function = mapping.function
        types = function.capability.types
        if types and binding.type not in types:
            raise wrong_type(mapping.part, function, binding.type, step.location)
        operands = {name: self.values[source] for name, source in step.reads}
        extents = operand_extents(mapping, operands)
        tiles: Any = ()
        if not condition_holds(mapping, extents):
            tiles = tiles_for(mapping, extents, pad=step.pads) if step.tiles else None
        if not all(extents.values()) or (tiles is None and step.falls_back):
            self._statement(step.meaning, step.location)
            return
        if tiles is None:
            raise UserError(
                f"{function.name} is not for these extents",
                location=step.location,
                expected=print_condition(mapping.condition),
            )
        zero = self.plan.assignment.semiring.zero
        shape = [extents[name] for name in mapping.fixed_free]
        for mode in mapping.result:
            count = 1
            for name in mode:
                count *= extents[name]
            shape.append(count)
        overwritten = function.capability.overwritten
        if overwritten is None:
            target = np.full(shape, zero, binding.kind)
            self.program.add_result(step.target, target)
        else:
            self._copy(step, overwritten)
            target = dense_view(self.values[step.target]).reshape(shape)
        calls = looped_mapping(
            LoopedMapping(
                mapping=mapping,
                operands=operands,
                extents=extents,
                tiles=tiles,
                target=target,
                semiring=self.plan.assignment.semiring,
                location=step.location,
            ),
            fewest=1,
        )
        if calls is None:
            raise UserError(
                f"the calls of {function.name} are not printed as C",
                location=step.location,
                expected="dense operands where they are, an interface of addresses and numbers, "
                "and a result that it writes where it is",
                given=print_step(step),
            )
        for one in calls:
            self.program.add_calls(function, one)
        made = run_loops(step.meaning, self.values, binding.extents, binding.type)
        target.reshape(made.shape)[...] = dense_view(made)
        self.values[step.target] = target.reshape(made.shape)

    def _copy(self, step: CallStep, overwritten: str) -> None:
        """The operand that a function overwrites, in the place of its result."""
        source = dict(step.reads)[overwritten]
        read = step.mapping.operand(overwritten).access
        tensors = (
            TensorDeclaration(name=step.target, format=self.plan.format_of(step.target)),
            TensorDeclaration(name=source, format=self.plan.format_of(source)),
        )
        self._statement(
            replace(step.meaning, value=replace(read, tensor=source), tensors=tensors),
            step.location,
        )
