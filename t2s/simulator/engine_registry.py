"""The engine interface, and the registry of engines; each is imported when it first runs.

An engine runs a ``SimProgram`` and measures it.  Engines differ only in speed: all give the same
values, cycles and stall counters.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.simulator.limits import Limits, Observer
from t2s.simulator.program.sim_program import SimProgram

if TYPE_CHECKING:
    from t2s.simulator.report.result import SimResult


class Engine(Protocol):
    """Runs programs.

    Deadlocks, cycle limits and Ctrl-C are not raised, but reported in the result, together with the
    measurements so far and without outputs.
    """

    @property
    def name(self) -> str:
        """The name of the engine for ``engine=``."""

    def run(
        self, program: SimProgram, limits: Limits, observer: Observer | None = None
    ) -> SimResult:
        """Run from the first cycle."""


_ENGINES = ("native", "array", "table", "python")


def find_engine(name: str) -> Engine:
    """The engine of that name, which is imported when it runs."""
    if not isinstance(name, str) or name not in _ENGINES:
        raise UserError(
            "unknown engine",
            location=user_location(),
            expected=f"one of {', '.join(_ENGINES)}",
            given=repr(name),
        )
    return _reference() if name == "python" else _Native(name)


@dataclass(frozen=True, slots=True)
class _Native:
    """A native engine, of which only the parts that a program needs are imported."""

    name: str

    def run(
        self, program: SimProgram, limits: Limits, observer: Observer | None = None
    ) -> SimResult:
        """See ``Engine``."""
        if program.graph.machines or program.timed_places:
            engine = _imported("t2s.simulator.native_engine", "NativeEngine", self.name)
        else:
            engine = _imported("t2s.simulator.native_arrays", "ArraysEngine", self.name)
        return engine.run(program, limits, observer)


def _reference() -> Engine:
    return _imported("t2s.simulator.reference_engine", "PythonEngine", "python")


def _imported(module: str, engine: str, name: str) -> Engine:
    return cast(Engine, getattr(import_module(module), engine)(name))
