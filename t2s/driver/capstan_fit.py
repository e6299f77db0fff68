"""Programs of patterns on the chip: those that do not fit are refused; ``outer_par="fit"``."""

from __future__ import annotations

from dataclasses import dataclass, replace

from t2s.backends.capstan.resources import ChipResources, count_resources
from t2s.core.errors import UserError
from t2s.core.types import Type
from t2s.sparse_repr.concrete.ir import ConcreteProgram
from t2s.sparse_repr.concrete.pattern_directives import SetEnvironment
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.notation.ir import Assignment
from t2s.sparse_repr.stardust.build import build_scheduled
from t2s.sparse_repr.stardust.lower import LoweredPatterns, lower_to_patterns

OUTER_FACTORS = (16, 12, 8, 4, 2, 1)
"""What ``outer_par="fit"`` tries, as in papers/000, table 6."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedProgram:
    """A scheduled program, its patterns for one type of values, and what they take of the chip."""

    program: ConcreteProgram
    lowered: LoweredPatterns
    resources: ChipResources


def fitted_program(assignment: Assignment, schedule: Schedule, type: Type) -> FittedProgram:
    """The program of a schedule, with the largest ``outer_par`` that fits if it says so.

    Raises ``UserError``, with the table of units, for a program that the chip has no room for.
    """
    said = _outer_par(schedule)
    if said is None or said.value is not None:
        fitted = _counted(assignment, schedule, type)
    else:
        for factor in OUTER_FACTORS:
            told = replace(said, value=factor)
            directives = tuple(told if one is said else one for one in schedule.directives)
            fitted = _counted(assignment, Schedule(directives=directives), type)
            if fitted.resources.fits:
                break
    if not fitted.resources.fits:
        _refuse(fitted, said)
    return fitted


def _outer_par(schedule: Schedule) -> SetEnvironment | None:
    found = (one for one in schedule.directives if isinstance(one, SetEnvironment))
    return next((one for one in found if one.name == "bp"), None)


def _counted(assignment: Assignment, schedule: Schedule, type: Type) -> FittedProgram:
    program = build_scheduled(assignment, schedule)
    lowered = lower_to_patterns(program, type)
    return FittedProgram(
        program=program, lowered=lowered, resources=count_resources(lowered.program)
    )


def _refuse(fitted: FittedProgram, said: SetEnvironment | None) -> None:
    resources = fitted.resources
    over = [row for row in resources if row.used > row.available]
    table = "\n".join(f"            {line}".rstrip() for line in str(resources).splitlines())
    raise UserError(
        f"the program does not fit the chip with outer_par {resources.outer_par}",
        location=fitted.program.location if said is None else said.location,
        expected=", ".join(f"at most {row.available} {row.unit.value}" for row in over),
        given=table.lstrip(),
        hint='environment(outer_par="fit") takes the largest of '
        f"{', '.join(map(str, reversed(OUTER_FACTORS)))} that fits"
        if resources.outer_par > 1
        else "smaller factors in map(), or fewer tensors in one kernel",
    )
