"""Claims are checked: functions run on drawn shapes and values, and compared with the oracle.

Shapes, patterns of lists, layouts in memory, types and formats are drawn from all that a capability
allows.  Values are small integers, so float sums are exact.  What a function writes outside of its
result is found too, by guard zones around all arrays.  Trials run in a child process, which a
function may take along.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from random import Random
from typing import Any

import numpy as np

from t2s.capability.description import ExternalFunction
from t2s.capability.printer import print_capability
from t2s.core.checks import checked_kind, whole
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.types import INT32
from t2s.libraries.child import SECONDS, ChildCrash, Say, in_child, in_fresh_process
from t2s.libraries.finding import symbol_address
from t2s.libraries.probing import check_available
from t2s.libraries.trial import LARGEST_EXTENT, ClaimTrial, Finding

Array = np.ndarray[Any, Any]

FIRST_TRIALS = 10
FIRST_SECONDS = 60.0
"""Seconds that the first use of a function may take: what it compiles, among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What was tried: the number of trials, and how many patterns of the family they had."""

    function: ExternalFunction
    trials: int
    patterns: int

    def __str__(self) -> str:
        claim = print_capability(self.function.capability)
        shapes = f"{self.patterns} pattern{'s' if self.patterns != 1 else ''}"
        return f"{self.function.name}: {claim}: {self.trials} trials of {shapes}, all right"


def check(
    function: ExternalFunction, trials: int = 200, *, seed: int = 0, seconds: float = SECONDS
) -> CheckReport:
    """Run a function on shapes and values that its capability allows, and compare with the oracle.

    Raises ``UserError`` with the smallest case that was found wrong, or the one in which the
    function crashed, or did not end within these seconds.
    """
    checked_kind("what is checked", function, ExternalFunction, "an external function")
    count = whole(trials)
    if count is None or count < 1:
        raise UserError(
            "a claim is tried a number of times",
            location=user_location(),
            expected="trials, 1 or more",
            given=repr(trials),
        )
    location = function.location or user_location()
    if function.library is not None and function.call is not None:
        check_available(function.library, function.name, location)

    work = partial(_checked, function, location, trials, seed)
    fresh = function.library is not None and function.library.fresh
    found = (in_fresh_process if fresh else in_child)(work, seconds=seconds)
    claim = print_capability(function.capability)
    if isinstance(found, ChildCrash):
        raise UserError(
            f"{function.name} {found.why}",
            location=location,
            expected=f"a call that computes {claim}",
            given=found.last or "its first call",
            hint=f"it ran in a child process; its arguments{_width(function)}, and the handlers of "
            "its library, are what to look at",
        )
    wrong, patterns = found
    if wrong:
        first = min(wrong, key=lambda one: one.size)
        raise UserError(
            f"{function.name} does not compute {claim}",
            location=location,
            expected=first.expected,
            given=first.given,
            notes=[(None, f"for {first.case}"), (None, f"{len(wrong)} of {trials} trials differ")],
        )
    return CheckReport(function=function, trials=trials, patterns=patterns)


def _width(function: ExternalFunction) -> str:
    """How wide the integers of a call are, which a prototype in C says and nothing checks."""
    if function.call is None:
        return ""
    return (
        f" (extents and steps of {(function.index or INT32).bits} bits: index= says another width)"
    )


@lru_cache(maxsize=256)
def first_use(function: ExternalFunction) -> None:
    """Try a claim that nobody has tried, once.  Raises ``UserError`` if it is refuted."""
    check(function, FIRST_TRIALS, seconds=FIRST_SECONDS)


def _check_symbols(function: ExternalFunction, location: SourceLocation | None) -> None:
    """Raise ``UserError`` for a symbol that the library does not have."""
    library = function.library
    if library is None or function.call is None:
        return
    for one in (*function.setup, function.call, *function.unpack, *function.teardown):
        try:
            symbol_address(library, one.symbol)
        except UserError as error:
            raise UserError(
                f"{function.name} is not available: {error.message}",
                location=location,
                expected=error.expected,
                given=error.given,
            ) from None


def _checked(
    function: ExternalFunction, location: SourceLocation, trials: int, seed: int, say: Say
) -> tuple[list[Finding], int]:
    _check_symbols(function, location)
    return _trials(function, trials, seed, say)


def _trials(
    function: ExternalFunction, trials: int, seed: int, say: Say
) -> tuple[list[Finding], int]:
    wrong: list[Finding] = []
    patterns: set[tuple[object, ...]] = set()
    for number in range(trials):
        random = Random(f"{seed}:{number}")
        made = ClaimTrial(function, random, 1 + LARGEST_EXTENT * (number + 1) // trials)
        patterns.add(made.pattern)
        say(made.case)
        found = made.wrong()
        if found is not None:
            wrong.append(found)
    return wrong, len(patterns)
