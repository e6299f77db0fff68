"""The road from a Func to numbers and files: the only module that knows front ends and consumers.

``lower`` freezes the program, applies the directives and returns the ``Graph``; everything else
reads that graph.  The functions that start from a Func are also methods of it.

The consumers (simulator, backends) bring heavy libraries, so they are imported inside the functions
that need them: ``import t2s`` stays fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.location import user_location
from t2s.func.collect import needed_funcs, output_funcs, structural_parameters
from t2s.func.freeze import freeze
from t2s.func.interpret import interpret_program
from t2s.graph.graph import Graph
from t2s.sparse_driver import (
    interpret_product,
    is_sparse,
    lower_product,
    refuse_sparse,
    split_inputs,
)
from t2s.spatial.directives import Place
from t2s.spatial.ir import SpatialProgram
from t2s.spatial.pipeline import build_spatial
from t2s.spatial.printer import print_loop_nest as print_program
from t2s.spatial.schedule import ScheduledFunc
from t2s.spatial.sparse_schedule import SparseFunc
from t2s.spatial.to_graph import lower_to_graph

if TYPE_CHECKING:
    from t2s.backends.base import Backend
    from t2s.backends.verilog.timing import Timing
    from t2s.backends.verilog.verilator import HardwareResult
    from t2s.explore.depth_fit import DepthFit
    from t2s.explore.many import GraphRun, Outcomes
    from t2s.report.resources import ResourceReport
    from t2s.simulator.devices import Device
    from t2s.simulator.memory.spec import Dram
    from t2s.simulator.program import SimProgram
    from t2s.simulator.random_stalls import RandomStalls
    from t2s.simulator.result import SimResult

BACKENDS: Mapping[str, str] = MappingProxyType(
    {"opencl_fpga": "t2s.backends.opencl_fpga", "verilog": "t2s.backends.verilog"}
)


Array = np.ndarray[Any, Any]
Design = ScheduledFunc | Sequence[ScheduledFunc]


@dataclass(frozen=True)
class Run:
    """One of the runs of ``simulate_many``: the arguments of ``simulate``, and a name for tables.

    ``inputs`` is ``None`` for the times alone.
    """

    design: Graph | Design
    inputs: Mapping[str, Any] | None = field(default=None, repr=False)
    name: str | None = field(default=None, kw_only=True)
    device: str | Device = field(default="ideal", kw_only=True)
    engine: str = field(default="native", kw_only=True)
    max_cycles: int | None = field(default=None, kw_only=True)


class Func(SparseFunc):
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
        self,
        inputs: Mapping[str, Any],
        *,
        device: str | Device = "ideal",
        memory: str | Dram | None = None,
        engine: str = "native",
    ) -> SimResult:
        """Lower and simulate; see ``t2s.simulate``."""
        return simulate(self, inputs, device=device, memory=memory, engine=engine)

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


def lower(design: Design, **constants: Any) -> Graph:
    """The PE/channel graph of a Func, or of several outputs, with their directives.

    ``constants`` gives values to the integer ``Param`` objects that bounds use, by name, and to a
    ``Parameter`` its matrix, for which the graph is then made.  Raises ``UserError`` with the
    user's line for a directive that is not legal.
    """
    if is_sparse(design):
        assert isinstance(design, ScheduledFunc)
        return lower_product(design, split_inputs(design, constants)[0])[0]
    return lower_to_graph(_spatial(design, constants))


def structure(design: ScheduledFunc, **matrices: Any) -> dict[str, Array]:
    """The arrays that the graph of a sparse design takes for its matrix, by name.

    They may be used for many runs: ``t2s.simulate(graph, t2s.structure(y, A=matrix) | {"x": x})``.
    """
    if not is_sparse(design):
        raise UserError(
            f"{design!r} has no structure",
            location=user_location(),
            expected="a Func that reads the values of a t2s.Parameter",
            given=repr(design),
        )
    return lower_product(design, split_inputs(design, matrices)[0])[1]


def print_loop_nest(design: Design, **constants: int) -> str:
    """What the schedule means: all loop nests, with the reason of every loop."""
    return print_program(_spatial(design, constants))


def _spatial(design: Design, constants: Mapping[str, int]) -> SpatialProgram:
    refuse_sparse(design)
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
    if is_sparse(design):
        assert isinstance(design, ScheduledFunc)
        return interpret_product(design, inputs)
    refuse_sparse(design)
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
    memory: str | Dram | None = None,
    engine: str = "native",
    max_cycles: int | None = None,
    progress: bool | None = None,
    stalls: RandomStalls | None = None,
) -> SimResult:
    """Run a design cycle by cycle on a device and return outputs, cycles and stalls.

    ``design`` is a graph from ``lower``, a Func or a tuple of Funcs; ``inputs`` holds arrays and
    scalars by name.
    ``memory`` replaces the memory of the device: a ``Dram`` or the name of one (``"ddr4-2133"``,
    ``"ddr4-2133x2"``, ``"hbm2e"``), or ``"ideal"``, constant latency and bandwidth.
    ``engine`` is ``"native"`` or ``"python"``; both give the same values and cycles.  A run that
    reaches ``max_cycles`` returns a partial result without outputs.  ``stalls`` holds up load and
    store units now and then, as ``t2s.RandomStalls`` says.  Raises ``UserError`` for
    inputs that do not fit, ``DeadlockError`` if the design stops before its end.  A design that is
    too large for the device runs too; ``warnings`` of the result say so, and its text shows them.
    """
    from t2s.simulator.run import simulate as simulate_graph

    graph, arrays, scalars = _resolve(design, inputs)
    result = simulate_graph(
        graph,
        arrays,
        parameters=scalars,
        device=_device(device, memory),
        engine=engine,
        max_cycles=max_cycles,
        progress=progress,
        stalls=stalls,
    )
    return replace(result, warnings=_over_budget(graph, result.device), warn=_over_budget)


def simulate_many(
    runs: Sequence[Run], *, workers: int | None = None, progress: bool | None = None
) -> Outcomes:
    """Simulate independent designs, inputs and devices on all cores.

    The outcomes come in the order of ``runs``, whatever ends first; each has a ``result``, or an
    ``error`` that ends this run only, and ``.results`` are all results.  A design that occurs in
    several runs is lowered once.  Engines release the interpreter's lock, so threads do.

    ``workers`` is the number of runs at once, ``None`` for one for each core.  Ctrl-C ends all runs
    and returns what there is.
    """
    from t2s.explore.many import GraphRun, run_many
    from t2s.simulator.devices import find_device

    graphs: dict[object, Graph] = {}

    def prepared(run: Run, name: str) -> GraphRun:
        given, design = run.inputs or {}, run.design
        if not isinstance(design, Graph) and is_sparse(design):
            graph, arrays, scalars = _resolve(design, given)
        else:
            constants = {} if isinstance(design, Graph) else _constants(design, given)
            key = (id(design), tuple(constants.items()))
            if key not in graphs:
                graphs[key] = design if isinstance(design, Graph) else lower(design, **constants)
            graph = graphs[key]
            arrays, scalars = _split(graph, constants, given)
        return GraphRun(
            name=name,
            graph=graph,
            inputs=None if run.inputs is None else arrays,
            parameters=scalars,
            device=find_device(run.device),
            engine=run.engine,
            max_cycles=run.max_cycles,
            warn=_over_budget,
        )

    names = [f"run {n}" if run.name is None else run.name for n, run in enumerate(runs)]
    return run_many(
        [partial(prepared, run, name) for run, name in zip(runs, names, strict=True)],
        names,
        workers=workers,
        progress=progress,
    )


def _device(device: str | Device, memory: str | Dram | None) -> Device:
    from t2s.simulator.devices import find_device

    found = find_device(device)
    return found if memory is None else found.with_memory(memory)


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


def cycles(
    design: Graph | Design,
    *,
    device: str | Device = "ideal",
    memory: str | Dram | None = None,
    stalls: RandomStalls | None = None,
) -> int:
    """The exact cycle count of a design; no inputs are needed.

    ``memory`` is as for ``simulate``.  ``stalls`` holds up load and store units now and then, as
    ``t2s.RandomStalls`` says.
    """
    from t2s.simulator.run import simulate_cycles

    graph = design if isinstance(design, Graph) else lower(design)
    return simulate_cycles(graph, device=_device(device, memory), stalls=stalls).cycles


def fit_depths(
    design: Graph | Design,
    inputs: Mapping[str, Any] | None = None,
    *,
    device: str | Device = "ideal",
    slack: float = 0.0,
    budget_bytes: int | None = None,
    budget_blocks: int | None = None,
    workers: int | None = None,
    progress: bool | None = None,
) -> DepthFit:
    """The smallest channel depths that keep the cycle count of a design with unbounded channels.

    The depths are minimal: lowering any single one costs cycles.  Without a shared memory
    bandwidth they are often the least, smaller than all others in every channel; the result says
    which (``minimal``, ``least``).  ``fit.apply(design)`` is the graph with these depths.

    Parameters
    ----------
    design, device: as for ``simulate``.
    inputs: the scalars that loop bounds, conditions and indices depend on; no arrays are needed.
    slack: share of the cycles that may be given away, 0.01 for one per cent.
    budget_bytes, budget_blocks: RAM that all FIFOs together may take.  The result then has the
        ``front`` of cycles against RAM, and the depths of its fastest point within the budget.
    workers: runs at once; one for each core if ``None``.
    progress: show the runs: ``True`` always, ``False`` never, ``None`` for long searches.

    Ctrl-C ends the search with the best depths so far.  Raises ``UserError`` for a budget that
    cannot be met, ``DeadlockError`` for a design that does not end however deep its channels are.
    """
    from t2s.explore.depths import fit_depths as fit_graph

    graph, _, scalars = _resolve(design, inputs or {})
    return fit_graph(
        graph,
        parameters=scalars,
        device=device,
        slack=slack,
        budget_bytes=budget_bytes,
        budget_blocks=budget_blocks,
        workers=workers,
        progress=progress,
    )


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


def verilate(
    design: Graph | Design,
    inputs: Mapping[str, Any] | None = None,
    *,
    device: str | Device = "ideal",
    stalls: RandomStalls | None = None,
    time_limit: float = 60.0,
    directory: str | Path | None = None,
) -> HardwareResult:
    """Run the emitted SystemVerilog in Verilator: the cycles and the outputs of the hardware.

    It is the referee of the simulator, which has to give the same cycles.  Without ``inputs`` only
    the cycles mean something.  Needs the extra ``t2s[verilog]``, or a Verilator of the system, and
    a C++ compiler; building takes some ten seconds, and the run may take ``time_limit`` seconds.
    ``directory`` keeps the files and the build; another build there is faster.

    Raises ``UserError`` for inputs that do not fit, ``UnsupportedError`` for what the backend
    cannot emit and for a device with a DRAM (the testbench has constant latency and bandwidth), and
    ``VerilationError`` for hardware that does not come to its end.
    """
    from t2s.backends.verilog.timing import Stalling, largest
    from t2s.backends.verilog.verilator import verilate as verilate_graph
    from t2s.simulator.program import build_program
    from t2s.simulator.random_stalls import check_stalls

    graph, arrays, scalars = _resolve(design, inputs or {})
    check_stalls(stalls)
    program = build_program(graph, device, None if inputs is None else arrays, scalars)
    timing = hardware_timing(program)
    return verilate_graph(
        graph,
        timing,
        largest(timing),
        program.inputs,
        program.parameters,
        stalling=Stalling(seed=stalls.seed, one_in=stalls.one_in) if stalls is not None else None,
        time_limit=time_limit,
        directory=None if directory is None else Path(directory),
    )


def hardware_timing(program: SimProgram) -> Timing:
    """What the hardware has to know of the device that a program was built for.

    Raises ``UnsupportedError`` for a device with a DRAM, which the testbench does not model.
    """
    from t2s.backends.verilog.timing import ChannelTiming, Timing

    memory = program.device.memory
    if memory is not None:
        raise UnsupportedError(
            f"device {program.device.name!r} has a DRAM, which the testbench does not model",
            location=user_location(),
            expected="memory of constant latency and bandwidth",
            given=f"memory {memory.name!r}",
            hint="verilate on device.with_memory('ideal'); t2s.cycles counts with a DRAM",
        )
    return Timing(
        intervals={timing.node.name: timing.interval.cycles for timing in program.nodes},
        channels={
            timing.channel.name: ChannelTiming(latency=timing.latency, capacity=timing.capacity)
            for timing in program.channels
        },
        memory_rate=program.memory_rate,
        store_latency=program.device.store_latency,
    )


def _resolve(
    design: Graph | Design, inputs: Mapping[str, Any]
) -> tuple[Graph, dict[str, Any], dict[str, Any]]:
    """The graph, its arrays and its scalars; integers given to a Func become constants of it."""
    if not isinstance(design, Graph) and is_sparse(design):
        assert isinstance(design, ScheduledFunc)
        matrix, others = split_inputs(design, inputs)
        sparse, arrays = lower_product(design, matrix)
        return sparse, *_split(sparse, {}, {**arrays, **others})
    constants = {} if isinstance(design, Graph) else _constants(design, inputs)
    graph = design if isinstance(design, Graph) else lower(design, **constants)
    return graph, *_split(graph, constants, inputs)


def _split(
    graph: Graph, constants: Mapping[str, int], inputs: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays and scalars, without what has become a constant of the graph."""
    given = {name: value for name, value in inputs.items() if name not in constants}
    scalars = {parameter.name for parameter in graph.parameters}
    return (
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
