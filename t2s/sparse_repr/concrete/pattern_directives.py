"""Directives for Capstan: patterns of loops, transfers, and the variables of the hardware.

They are those of [Stardust, sec. 5.2].  SAM graphs know none of them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Self

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.validate import as_int
from t2s.core.walk import Term
from t2s.sparse_repr.concrete.ir import LoopPattern

ENVIRONMENT_NAMES = {
    "bp": "bp",
    "outer_par": "bp",
    "ip": "ip",
    "inner_par": "ip",
    "sp": "sp",
    "scan_par": "sp",
}
"""What users may say for the variables of the hardware, and the names in programs."""

DEFAULT_ENVIRONMENT = {"bp": 1, "ip": 16, "sp": 1}
"""Iterations at a time of outermost patterns, innermost ones, and scans that are neither."""

FIT = "fit"
"""What users may say for ``outer_par``: as much as the chip has room for."""

LANES = 16
"""Lanes of a vector unit, and outputs of a scanner in a cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopDirective(Term):
    """Base of the directives."""

    location: SourceLocation = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelLoop(LoopDirective):
    """The loop over a variable becomes a pattern; ``factor`` iterations at a time.

    By default the factor is that of the environment.
    """

    variable: str
    pattern: LoopPattern
    factor: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerate(LoopDirective):
    """A ``ParallelLoop`` whose operands are brought on chip before it."""

    variable: str
    pattern: LoopPattern
    factor: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetEnvironment(LoopDirective):
    """A variable of the hardware; without a value the largest that fits the chip."""

    name: str
    value: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromoteSums(LoopDirective):
    """Sums go into a scalar on chip before they are assigned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Communicate(LoopDirective):
    """The result moves off the chip once for all iterations of a loop."""

    tensor: str
    variable: str


PATTERN_DIRECTIVES = (ParallelLoop, Accelerate, SetEnvironment, PromoteSums, Communicate)


def variable_name(value: Any) -> str:
    """The name of a directive's argument, a variable or a tensor."""
    name = value if isinstance(value, str) else getattr(value, "name", None)
    if not isinstance(name, str):
        raise UserError(
            "a directive names variables and tensors",
            location=user_location(),
            expected="a variable, a tensor or a name",
            given=repr(value),
        )
    return name


def _pattern(given: Any, location: SourceLocation) -> LoopPattern:
    for pattern in LoopPattern:
        if given in (pattern, pattern.value):
            return pattern
    raise UserError(
        f"unknown pattern {given!r}",
        location=location,
        expected=f"one of {', '.join(pattern.value for pattern in LoopPattern)}",
    )


def _factor(given: Any, what: str, location: SourceLocation) -> int:
    count = as_int(given)
    if count is None or count < 1:
        raise UserError(
            f"{what} is a positive integer",
            location=location,
            expected="iterations at a time, 1 or more",
            given=repr(given),
        )
    return count


class PatternSchedule:
    """The methods of a schedule that append directives for Capstan."""

    __slots__ = ()

    def _with(self, directive: LoopDirective) -> Self:
        raise NotImplementedError

    def parallel(self, variable: Any, pattern: Any, factor: int | None = None) -> Self:
        """Compute a loop by a pattern, ``"reduction"`` or ``"foreach"``.

        ``factor`` iterations are computed at a time: by default 16 of an innermost loop, ``bp`` of
        an outermost one, and one of others.  A reduction is a loop over which sums are taken.
        """
        return self._patterned(ParallelLoop, variable, pattern, factor)

    def accelerate(self, variable: Any, pattern: Any, factor: int | None = None) -> Self:
        """``parallel``, and ``precompute`` of dense tensors that a dense loop reads as a whole.

        Each goes into a workspace on chip, ``C`` into ``C_on``, right before the loop.
        """
        return self._patterned(Accelerate, variable, pattern, factor)

    def _patterned(
        self, kind: type[ParallelLoop | Accelerate], variable: Any, pattern: Any, factor: int | None
    ) -> Self:
        location = user_location()
        count = None if factor is None else _factor(factor, "the factor of a pattern", location)
        return self._with(
            kind(
                variable=variable_name(variable),
                pattern=_pattern(pattern, location),
                factor=count,
                location=location,
            )
        )

    def environment(self, **values: int | str) -> Self:
        """Set variables of the hardware: ``environment(outer_par=16, inner_par=16)``.

        ``outer_par="fit"`` takes the largest of 1, 2, 4, 8, 12 and 16 that fits the chip.
        """
        location = user_location()
        schedule = self
        for name, value in values.items():
            schedule = schedule._with(_environment(name, value, location))
        return schedule

    def env(self, name: str, value: int | str) -> Self:
        """Set one variable of the hardware: ``env("bp", 16)``, ``env("bp", "fit")``."""
        return self._with(_environment(name, value, user_location()))

    def promote_sums(self) -> Self:
        """Keep sums in scalars on chip, which is also the default if possible."""
        return self._with(PromoteSums(location=user_location()))

    def communicate(self, tensor: Any, variable: Any) -> Self:
        """Move the result off the chip once, after all iterations of the loop over a variable."""
        return self._with(
            Communicate(
                tensor=variable_name(tensor),
                variable=variable_name(variable),
                location=user_location(),
            )
        )


def _environment(name: Any, value: Any, location: SourceLocation) -> SetEnvironment:
    if name not in ENVIRONMENT_NAMES:
        raise UserError(
            f"unknown environment variable {name!r}",
            location=location,
            expected=f"one of {', '.join(ENVIRONMENT_NAMES)}",
        )
    known = ENVIRONMENT_NAMES[name]
    if known == "bp" and isinstance(value, str) and value == FIT:
        return SetEnvironment(name=known, value=None, location=location)
    count = _factor(value, f"the environment variable {name}", location)
    if known != "bp" and count > LANES:
        raise UserError(
            f"{name} is more than the lanes of a vector unit",
            location=location,
            expected=f"1 to {LANES}",
            given=str(count),
        )
    return SetEnvironment(name=known, value=count, location=location)


def said_of_patterns(one: LoopDirective) -> tuple[Hashable, str, str] | None:
    """The subject of a directive, its effect on it, and how to combine duplicates."""
    match one:
        case ParallelLoop(variable=name) | Accelerate(variable=name):
            return name, f"the loop over {name} has a pattern", f"one parallel({name!r}, ...)"
        case SetEnvironment(name=name):
            return name, f"{name} is set", f"one value for {name}"
        case Communicate(tensor=tensor):
            return tensor, f"{tensor} is communicated", f"one communicate({tensor!r}, ...)"
    return None
