"""The engine interface, and the registry of engines; each is imported when it first runs.

An engine runs a ``SimProgram`` and measures it.  Engines differ only in speed: all give the same
values, cycles and stall counters.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from t2s.core.errors import T2SWarning, UserError
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


_COMPILERS = ("llvmlite",)

_ENGINES = ("native", "array", "table", "python")


def find_engine(name: str) -> Engine:
    """The engine of that name, imported when it runs (the native ones bring a compiler).

    Without that compiler ``native`` is the plain engine, and a ``T2SWarning`` says so once.
    """
    if not isinstance(name, str) or name not in _ENGINES:
        raise UserError(
            "unknown engine",
            location=user_location(),
            expected=f"one of {', '.join(_ENGINES)}",
            given=repr(name),
        )
    return _reference() if name == "python" else _Compiled(name)


@dataclass(frozen=True, slots=True)
class _Compiled:
    """An engine that needs a compiler, which may turn out to be missing when it is first used."""

    name: str

    def run(
        self, program: SimProgram, limits: Limits, observer: Observer | None = None
    ) -> SimResult:
        """See ``Engine``."""
        try:
            return _native(self.name, program).run(program, limits, observer)
        except ModuleNotFoundError as error:
            missing = missing_compiler(error)
            if missing is None:
                raise
            if self.name != "native":
                raise UserError(
                    f"the engine {self.name!r} needs {missing}",
                    location=user_location(),
                    expected=f"{missing} to be installed",
                    given="an environment without it",
                    hint=f"pip install {missing}, or use engine='python', which is slow",
                ) from None
        _say_that_the_plain_engine_runs(missing)
        return _reference().run(program, limits, observer)


def missing_compiler(error: ModuleNotFoundError) -> str | None:
    """The compiler that is not installed, if that is what the error says."""
    package = (error.name or "").split(".")[0]
    return package if package in _COMPILERS else None


@cache
def _say_that_the_plain_engine_runs(missing: str) -> None:
    """Warn at the user's line; nothing more at later calls."""
    here = user_location()
    warnings.warn_explicit(
        f"{missing} is not installed, so the plain engine runs, which is thousands of "
        f"times slower; pip install {missing}",
        T2SWarning,
        here.file,
        here.line,
    )


def _native(name: str, program: SimProgram) -> Engine:
    """The native engine, of which only the parts that a program needs are imported."""
    if program.graph.machines or program.timed_places:
        return _imported("t2s.simulator.native_engine", "NativeEngine", name)
    return _imported("t2s.simulator.native_arrays", "ArraysEngine", name)


def _reference() -> Engine:
    return _imported("t2s.simulator.reference_engine", "PythonEngine", "python")


def _imported(module: str, engine: str, name: str) -> Engine:
    return cast(Engine, getattr(import_module(module), engine)(name))
