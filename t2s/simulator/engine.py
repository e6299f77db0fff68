"""What an engine is, and the engines by name.

An engine runs a ``SimProgram`` and measures it.  Engines differ in speed only: every engine gives
the same values, cycles and stall counters.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, cast

from t2s.core.errors import T2SWarning, UserError
from t2s.core.location import user_location
from t2s.simulator.program import SimProgram

if TYPE_CHECKING:
    from t2s.simulator.result import SimResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where a run is cut short: after ``max_cycles`` cycles, or nowhere.

    With ``give_up`` an engine may stop earlier, as soon as it is certain that the run takes more
    than ``max_cycles``; what it has measured until then is not promised.
    """

    max_cycles: int | None = None
    give_up: bool = False


class Observer(Protocol):
    """Is told of the progress of a run, a few times per second."""

    def advanced(self, *, cycle: int, done: int, total: int) -> None:
        """``cycle`` cycles are simulated; ``done`` of ``total`` units of work are finished.

        A unit is the time or the value of a firing, or both where an engine finds them together.
        """


class Engine(Protocol):
    """Runs programs.

    A deadlock, a cycle limit and an interrupt from the keyboard are not raised: they are in the
    result, with everything measured so far and without outputs.
    """

    @property
    def name(self) -> str:
        """The name that users choose the engine by."""

    def run(
        self, program: SimProgram, limits: Limits, observer: Observer | None = None
    ) -> SimResult:
        """Run from the first cycle."""


_COMPILERS = ("llvmlite", "numba")

_ENGINES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "native": ("t2s.simulator.engine_native", "NativeEngine"),
        "array": ("t2s.simulator.engine_native", "array_engine"),
        "table": ("t2s.simulator.engine_native", "table_engine"),
        "python": ("t2s.simulator.engine_python", "PythonEngine"),
    }
)


def find_engine(name: str) -> Engine:
    """The engine of that name, imported when it is asked for (the native ones bring a compiler).

    Without that compiler ``native`` is the plain engine, and a ``T2SWarning`` says so.
    """
    if name not in _ENGINES:
        raise UserError(
            "there is no such engine",
            location=user_location(),
            expected=f"one of {', '.join(_ENGINES)}",
            given=repr(name),
        )
    try:
        return _imported(name)
    except ModuleNotFoundError as missing:
        if missing.name not in _COMPILERS:
            raise
        if name != "native":
            raise UserError(
                f"the engine {name!r} needs {missing.name}",
                location=user_location(),
                expected=f"{missing.name} to be installed",
                given="an environment without it",
                hint=f"pip install {missing.name}, or use engine='python', which is slow",
            ) from None
        warnings.warn(
            f"{missing.name} is not installed, so the plain engine runs, which is thousands of "
            f"times slower; pip install {missing.name}",
            T2SWarning,
            stacklevel=2,
        )
        return _imported("python")


def _imported(name: str) -> Engine:
    module, attribute = _ENGINES[name]
    return cast(Engine, getattr(import_module(module), attribute)())
