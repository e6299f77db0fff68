"""The road from a Func to numbers and files: the only module that knows front ends and consumers.

``lower`` freezes the program, applies the directives and returns the ``Graph``; everything else
reads that graph.  The functions that start from a Func are also methods of it.

The consumers (simulator, backends) bring heavy libraries, so they are imported inside the functions
that need them: ``import t2s`` stays fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.func.collect import in_dependence_order, structural_parameters
from t2s.func.freeze import freeze
from t2s.func.interpret import interpret_program
from t2s.graph.graph import Graph
from t2s.spatial.directives import Place
from t2s.spatial.ir import SpatialProgram
from t2s.spatial.isolation import IsolatingFunc
from t2s.spatial.pipeline import build_spatial
from t2s.spatial.printer import print_loop_nest as print_program
from t2s.spatial.schedule import ScheduledFunc
from t2s.spatial.to_graph import lower_to_graph

if TYPE_CHECKING:
    from t2s.backends.base import Backend
    from t2s.simulator.devices import Device
    from t2s.simulator.result import SimResult

BACKENDS: Mapping[str, str] = MappingProxyType({"opencl_fpga": "t2s.backends.opencl_fpga"})


class Func(IsolatingFunc):
    """A function: definitions by assignment, directives as methods, and the ways to run it.

    ``Func("C")``; the element type follows from the definitions unless ``type`` gives it.
    """

    def lower(self, **constants: int) -> Graph:
        """The PE/channel graph; see ``t2s.lower``."""
        return lower(self, **constants)

    def print_loop_nest(self, **constants: int) -> str:
        """What the schedule means; see ``t2s.print_loop_nest``."""
        return print_loop_nest(self, **constants)

    def interpret(self, inputs: Mapping[str, Any]) -> np.ndarray[Any, Any]:
        """Compute with numpy, ignoring the directives; see ``t2s.interpret``."""
        return interpret(self, inputs)

    def simulate(
        self, inputs: Mapping[str, Any], *, device: str | Device = "ideal", engine: str = "native"
    ) -> SimResult:
        """Lower and simulate; see ``t2s.simulate``."""
        return simulate(self, inputs, device=device, engine=engine)

    def emulate(
        self, inputs: Mapping[str, Any], *, time_limit: float = 60.0
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Lower and run on Intel's FPGA emulator; see ``t2s.emulate``."""
        return emulate(self, inputs, time_limit=time_limit)


def funcs(names: str, place: Place = Place.DEVICE) -> tuple[Func, ...]:
    """Several Funcs at once: ``A_loader, A_feeder = t2s.funcs("A_loader A_feeder")``."""
    return tuple(Func(name, place=place) for name in names.split())


def lower(func: ScheduledFunc, **constants: int) -> Graph:
    """The PE/channel graph of a Func with its directives.

    ``constants`` gives values to the integer ``Param`` objects that bounds use, by name.  Raises
    ``UserError`` with the user's line for a directive that is not legal.
    """
    return lower_to_graph(_spatial(func, constants))


def print_loop_nest(func: ScheduledFunc, **constants: int) -> str:
    """What the schedule means: all loop nests, with the reason of every loop."""
    return print_program(_spatial(func, constants))


def _spatial(func: ScheduledFunc, constants: Mapping[str, int]) -> SpatialProgram:
    program = freeze(func, constants)
    funcs = (other for other in in_dependence_order(func) if isinstance(other, ScheduledFunc))
    return build_spatial(program, {other.name: other for other in funcs}, constants)


def interpret(func: ScheduledFunc, inputs: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """Compute a Func with numpy, ignoring its directives: the oracle of every design.

    ``inputs`` holds the arrays and the scalars by name.
    """
    constants = _constants(func, inputs)
    given = {name: value for name, value in inputs.items() if name not in constants}
    result: np.ndarray[Any, Any] = interpret_program(freeze(func, constants), given)[func.name]
    return result


def simulate(
    design: Graph | ScheduledFunc,
    inputs: Mapping[str, Any],
    *,
    device: str | Device = "ideal",
    engine: str = "native",
    max_cycles: int | None = None,
    progress: bool | None = None,
) -> SimResult:
    """Run a design cycle by cycle on a device and return outputs, cycles and stalls.

    ``design`` is a graph from ``lower`` or a Func, ``inputs`` holds arrays and scalars by name.
    ``engine`` is ``"native"`` or ``"python"``; both give the same values and cycles.  A run that
    reaches ``max_cycles`` returns a partial result without outputs.  Raises ``UserError`` for
    inputs that do not fit, ``DeadlockError`` if the design stops before its end.
    """
    from t2s.simulator.run import simulate as simulate_graph

    graph, arrays, scalars = _resolve(design, inputs)
    return simulate_graph(
        graph,
        arrays,
        parameters=scalars,
        device=device,
        engine=engine,
        max_cycles=max_cycles,
        progress=progress,
    )


def cycles(design: Graph | ScheduledFunc, *, device: str | Device = "ideal") -> int:
    """The exact cycle count of a design; no inputs are needed."""
    from t2s.simulator.run import simulate_cycles

    graph = design if isinstance(design, Graph) else lower(design)
    return simulate_cycles(graph, device=device).cycles


def emit(design: Graph | ScheduledFunc, backend: str, directory: str | Path) -> tuple[Path, ...]:
    """Write the files of a backend into ``directory`` (made if missing) and return their paths.

    Raises ``UserError`` for an unknown backend, and for what the backend cannot express.
    """
    graph = design if isinstance(design, Graph) else lower(design)
    files = find_backend(backend).emit(graph)
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return tuple(folder / name for name in files)


def find_backend(name: str) -> Backend:
    """The backend of that name; ``UserError`` listing the names if there is none."""
    if name not in BACKENDS:
        raise UserError(
            f"there is no backend {name!r}",
            location=user_location(),
            expected=", ".join(sorted(BACKENDS)),
            given=repr(name),
        )
    backend: Backend = import_module(BACKENDS[name]).BACKEND
    return backend


def emulate(
    design: Graph | ScheduledFunc, inputs: Mapping[str, Any], *, time_limit: float = 60.0
) -> dict[str, np.ndarray[Any, Any]]:
    """Run the emitted OpenCL on Intel's FPGA emulator and return the outputs by name.

    Needs the extra ``t2s[emulator]``.  The emulator runs in a child process that is ended after
    ``time_limit`` seconds.  It gives values, not cycles.
    """
    from t2s.backends.opencl_fpga.emulator import emulate as emulate_graph

    graph, arrays, scalars = _resolve(design, inputs)
    return emulate_graph(graph, arrays, scalars, time_limit=time_limit)


def _resolve(
    design: Graph | ScheduledFunc, inputs: Mapping[str, Any]
) -> tuple[Graph, dict[str, Any], dict[str, Any]]:
    """The graph, its arrays and its scalars; integers given to a Func become constants of it."""
    given = dict(inputs)
    if isinstance(design, Graph):
        graph = design
    else:
        constants = _constants(design, inputs)
        graph = lower(design, **constants)
        given = {name: value for name, value in given.items() if name not in constants}
    scalars = {parameter.name for parameter in graph.parameters}
    return (
        graph,
        {name: value for name, value in given.items() if name not in scalars},
        {name: value for name, value in given.items() if name in scalars},
    )


def _constants(func: ScheduledFunc, inputs: Mapping[str, Any]) -> dict[str, int]:
    """The scalars that shapes depend on; all others are given at run time."""
    return {
        name: int(inputs[name])
        for name in sorted(structural_parameters(func))
        if isinstance(inputs.get(name), int | np.integer)
    }
