"""The road from a Func to numbers and files: the only module that knows front ends and consumers.

``lower`` freezes the program, applies the directives and returns the ``Graph``; everything else
reads that graph.  The functions that start from a Func are also methods of it.

The consumers (simulator, backends) bring heavy libraries, so they are imported inside the functions
that need them: ``import t2s`` stays fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.func.collect import needed_funcs, output_funcs, structural_parameters
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
    from t2s.report.resources import ResourceReport
    from t2s.simulator.devices import Device
    from t2s.simulator.result import SimResult

BACKENDS: Mapping[str, str] = MappingProxyType({"opencl_fpga": "t2s.backends.opencl_fpga"})


Array = np.ndarray[Any, Any]
Design = ScheduledFunc | Sequence[ScheduledFunc]


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

    def resources(self, *, device: str | Device = "arria10") -> ResourceReport:
        """Lower and estimate DSP and RAM blocks; see ``t2s.resources``."""
        return resources(self, device=device)

    def emulate(
        self, inputs: Mapping[str, Any], *, time_limit: float = 60.0
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Lower and run on Intel's FPGA emulator; see ``t2s.emulate``."""
        return emulate(self, inputs, time_limit=time_limit)


def funcs(names: str, place: Place = Place.DEVICE) -> tuple[Func, ...]:
    """Several Funcs at once: ``A_loader, A_feeder = t2s.funcs("A_loader A_feeder")``."""
    return tuple(Func(name, place=place) for name in names.split())


def lower(design: Design, **constants: int) -> Graph:
    """The PE/channel graph of a Func, or of several outputs, with their directives.

    ``constants`` gives values to the integer ``Param`` objects that bounds use, by name.  Raises
    ``UserError`` with the user's line for a directive that is not legal.
    """
    return lower_to_graph(_spatial(design, constants))


def print_loop_nest(design: Design, **constants: int) -> str:
    """What the schedule means: all loop nests, with the reason of every loop."""
    return print_program(_spatial(design, constants))


def _spatial(design: Design, constants: Mapping[str, int]) -> SpatialProgram:
    program = freeze(design, constants)
    needed = needed_funcs(output_funcs(design))
    funcs = (other for other in needed if isinstance(other, ScheduledFunc))
    return build_spatial(program, {other.name: other for other in funcs}, constants)


@overload
def interpret(design: ScheduledFunc, inputs: Mapping[str, Any]) -> Array: ...


@overload
def interpret(design: Sequence[ScheduledFunc], inputs: Mapping[str, Any]) -> dict[str, Array]: ...


def interpret(design: Design, inputs: Mapping[str, Any]) -> Array | dict[str, Array]:
    """Compute a Func, or several, with numpy, ignoring directives: the oracle of every design.

    ``inputs`` holds the arrays and the scalars by name.  Returns the array of a Func, or a dict of
    the arrays by name for a tuple or list of Funcs.
    """
    outputs = output_funcs(design)
    constants = _constants(outputs, inputs)
    given = {name: value for name, value in inputs.items() if name not in constants}
    results: dict[str, Array] = interpret_program(freeze(outputs, constants), given)
    if isinstance(design, ScheduledFunc):
        return results[design.name]
    return {output.name: results[output.name] for output in outputs}


def simulate(
    design: Graph | Design,
    inputs: Mapping[str, Any],
    *,
    device: str | Device = "ideal",
    engine: str = "native",
    max_cycles: int | None = None,
    progress: bool | None = None,
) -> SimResult:
    """Run a design cycle by cycle on a device and return outputs, cycles and stalls.

    ``design`` is a graph from ``lower``, a Func or a tuple of Funcs; ``inputs`` holds arrays and
    scalars by name.
    ``engine`` is ``"native"`` or ``"python"``; both give the same values and cycles.  A run that
    reaches ``max_cycles`` returns a partial result without outputs.  Raises ``UserError`` for
    inputs that do not fit, ``DeadlockError`` if the design stops before its end.  A design that is
    too large for the device runs too; ``warnings`` of the result say so, and its text shows them.
    """
    from t2s.simulator.run import simulate as simulate_graph

    graph, arrays, scalars = _resolve(design, inputs)
    result = simulate_graph(
        graph,
        arrays,
        parameters=scalars,
        device=device,
        engine=engine,
        max_cycles=max_cycles,
        progress=progress,
    )
    return replace(result, warnings=_over_budget(graph, result.device))


def _over_budget(graph: Graph, device: Device) -> tuple[str, ...]:
    """One line for each kind of block of which the device has too few."""
    if device.fabric is None or graph.machines:
        return ()
    return tuple(
        f"does not fit on {device.name}: {overrun}"
        for overrun in resources(graph, device=device).overruns
    )


def resources(design: Graph | Design, *, device: str | Device = "arria10") -> ResourceReport:
    """An estimate of the DSP and RAM blocks that a design takes of a device, node by node.

    ``report.fits`` says whether the device has enough of them, ``report.overruns`` what is missing.
    The rules are those of ``t2s.report.arithmetic`` and ``t2s.report.memory``.  Raises
    ``UserError`` for a device without such blocks (``ideal``).
    """
    from t2s.report.resources import estimate_resources

    graph = design if isinstance(design, Graph) else lower(design)
    return estimate_resources(graph, device)


def cycles(design: Graph | Design, *, device: str | Device = "ideal") -> int:
    """The exact cycle count of a design; no inputs are needed."""
    from t2s.simulator.run import simulate_cycles

    graph = design if isinstance(design, Graph) else lower(design)
    return simulate_cycles(graph, device=device).cycles


def emit(design: Graph | Design, backend: str, directory: str | Path) -> tuple[Path, ...]:
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
    design: Graph | Design, inputs: Mapping[str, Any], *, time_limit: float = 60.0
) -> dict[str, np.ndarray[Any, Any]]:
    """Run the emitted OpenCL on Intel's FPGA emulator and return the outputs by name.

    Needs the extra ``t2s[emulator]``.  The emulator runs in a child process that is ended after
    ``time_limit`` seconds.  It gives values, not cycles.
    """
    from t2s.backends.opencl_fpga.emulator import emulate as emulate_graph

    graph, arrays, scalars = _resolve(design, inputs)
    return emulate_graph(graph, arrays, scalars, time_limit=time_limit)


def _resolve(
    design: Graph | Design, inputs: Mapping[str, Any]
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


def _constants(design: object, inputs: Mapping[str, Any]) -> dict[str, int]:
    """The scalars that shapes depend on; all others are given at run time."""
    return {
        name: int(inputs[name])
        for name in sorted(structural_parameters(output_funcs(design)))
        if isinstance(inputs.get(name), int | np.integer)
    }
