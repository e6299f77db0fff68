"""A machine as data: how fast it calls functions, runs our loops, copies and converts.

Rates of a function are measured calls of several sizes; between them they are interpolated, and a
call that is smaller than all of them takes as long as the smallest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import exp, log
from pathlib import Path
from typing import Any

from t2s.capability.description import ExternalFunction
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.walk import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRates(Term):
    """Measured calls of a function: ``work`` in steps of its innermost loop, and seconds."""

    library: str
    function: str
    points: tuple[tuple[float, float], ...]

    def seconds(self, work: float) -> float:
        """How long a call with so much work takes."""
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
    """How fast our loops are, in seconds.

    Attributes
    ----------
    start: of a statement.
    loop: of an inner loop, beside its iterations.
    entry: of a coordinate in a list that a loop walks; ``merged`` where it walks two together.
    element: of a step of a dense loop that sums in a local, one after the other.
    vector: of one along a dense result, several at once.
    strided: of a step that reads far from where it read before, in memory beyond the caches.
    append: of an entry of a sparse result.
    workspace: of a value that waits in a workspace, because the loops come to it several times.
    zero: of an element of a dense result that is made.
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
    threads: of libraries while this was measured.
    start: seconds of a step that calls a function, beside its calls.
    call: seconds of a call of a function that nobody measured, beside its work.
    step: seconds of a step of the innermost loop of such a function.
    copy, transpose: seconds of a byte that is copied, and of one that is transposed.
    convert: seconds of a stored entry that is converted, and ``scan`` of a dense element that is
        looked at for that.
    loops: of our own loops.
    functions: measured ones.
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
        """What was measured of a function."""
        library = function.library.name if function.library is not None else ""
        for one in self.functions:
            if (one.library, one.function) == (library, function.name):
                return one
        return None

    def call_seconds(self, function: ExternalFunction, work: float) -> float:
        """How long a call of a function with so much work takes."""
        rates = self.rates_of(function)
        return rates.seconds(work) if rates is not None else self.call + work * self.step

    def least_seconds(self, function: ExternalFunction) -> float:
        """Seconds that every call of a function takes at least."""
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
        given = str(error)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        given = f"{type(error).__name__}: {error}"
    raise UserError(
        f"{path} has no rates of a machine",
        location=user_location(),
        expected="a file that machine.save(path) wrote",
        given=given,
    )


def _machine(found: Mapping[str, Any]) -> HostMachine:
    functions = tuple(
        FunctionRates(
            library=str(one["library"]),
            function=str(one["function"]),
            points=tuple((float(work), float(seconds)) for work, seconds in one["points"]),
        )
        for one in found["functions"]
    )
    if any(min(point) <= 0 for one in functions for point in one.points) or any(
        not one.points for one in functions
    ):
        raise ValueError("work and seconds are more than 0")
    loops = LoopRates(**{name: float(value) for name, value in found["loops"].items()})
    rates = {name: float(found[name]) for name in _RATES}
    return HostMachine(
        name=str(found["name"]),
        threads=int(found["threads"]),
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
