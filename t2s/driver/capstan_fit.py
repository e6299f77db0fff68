"""Programs of patterns on the chip: those that do not fit are refused; ``outer_par="fit"``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.location import user_location
from t2s.core.types import Type
from t2s.sparse_repr.concrete.ir import ConcreteProgram
from t2s.sparse_repr.concrete.pattern_directives import SetEnvironment
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.notation.ir import Assignment
from t2s.sparse_repr.stardust.build import build_scheduled
from t2s.sparse_repr.stardust.lower import LoweredPatterns, lower_to_patterns

if TYPE_CHECKING:
    from t2s.backends.capstan.resources import ChipResources

OUTER_FACTORS = (16, 12, 8, 4, 2, 1)
"""What ``outer_par="fit"`` tries, as in [Stardust, Table 6]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedProgram:
    """A scheduled program, its patterns for one type of values, and what they take of the chip.

    ``resources`` is ``None`` where ``t2s.backends.capstan`` is not installed: the patterns can be
    interpreted then, and nothing says whether they fit.
    """

    program: ConcreteProgram
    lowered: LoweredPatterns
    resources: ChipResources | None


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
            if fitted.resources is None:
                raise backend_missing("outer_par='fit'")
            if fitted.resources.fits:
                break
    if fitted.resources is not None and not fitted.resources.fits:
        _refuse(fitted, fitted.resources, said)
    return fitted


def backend_is_there() -> bool:
    """Whether the folder ``t2s/backends/capstan`` is installed; patterns do not need it."""
    return find_spec("t2s.backends.capstan") is not None


def backend_missing(wanted: str) -> UnsupportedError:
    """The error of what needs the backend's folder where it is not installed."""
    return UnsupportedError(
        f"{wanted} needs the Capstan backend, which is not installed",
        location=user_location(),
        expected="the package t2s.backends.capstan",
        hint="install t2s whole; without this backend kernel.interpret(inputs) runs the patterns",
    )


def _outer_par(schedule: Schedule) -> SetEnvironment | None:
    found = (one for one in schedule.directives if isinstance(one, SetEnvironment))
    return next((one for one in found if one.name == "bp"), None)


def _counted(assignment: Assignment, schedule: Schedule, type: Type) -> FittedProgram:
    program = build_scheduled(assignment, schedule)
    lowered = lower_to_patterns(program, type)
    return FittedProgram(program=program, lowered=lowered, resources=_resources(lowered))


def _resources(lowered: LoweredPatterns) -> ChipResources | None:
    if not backend_is_there():
        return None
    from t2s.backends.capstan.resources import count_resources

    return count_resources(lowered.program)


def _refuse(fitted: FittedProgram, resources: ChipResources, said: SetEnvironment | None) -> None:
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
