"""The road from a Func to numbers: ``Func`` and the functions that simulate it.

``lower_driver.py`` goes from a Func to the graph, ``hardware_driver.py`` from there to files,
emulator and Verilator; this module simulates, explores and estimates.  The functions that start
from a Func are also methods of it.

The consumers bring heavy libraries, so they are imported inside the functions that need them:
``import t2s`` stays fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s.core.arrays import named_inputs
from t2s.core.checks import checked_kind, checked_list
from t2s.core.errors import UnsupportedError, UserError
from t2s.core.location import user_location
from t2s.driver.hardware import emulate
from t2s.driver.lower import (
    Design,
    constants_of,
    interpret,
    lower,
    print_loop_nest,
    refuse_dense,
    resolve,
    resolve_product,
    split_scalars,
)
from t2s.driver.product import Product, bytes_moved, is_sparse, parts_of, product_of, split_inputs
from t2s.func.symbols import split_names
from t2s.graph.graph import Graph
from t2s.spatial.directives import Place
from t2s.spatial.schedule import ScheduledFunc
from t2s.spatial.sparse_schedule import SparseFunc

if TYPE_CHECKING:
    from t2s.explore.depth_fit import DepthFit
    from t2s.explore.many import GraphRun, Outcomes
    from t2s.report.products import ProductFacts, ProductReport
    from t2s.report.resources import ResourceReport
    from t2s.simulator.devices import Device
    from t2s.simulator.memory.spec import Dram
    from t2s.simulator.random_stalls import RandomStalls
    from t2s.simulator.result import SimResult


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
    return tuple(Func(name, place=place) for name in split_names("funcs", names))


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

    explain = None
    if isinstance(design, ScheduledFunc) and is_sparse(design):
        product, graph, arrays, scalars = resolve_product(design, inputs)
        explain = partial(_explain, _facts(product))
    else:
        graph, arrays, scalars = resolve(design, inputs)
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
    warnings = _over_budget(graph, result.device)
    return replace(result, warnings=warnings, warn=_over_budget, explain=explain)


def product_report(design: ScheduledFunc, result: SimResult, **matrices: Any) -> ProductReport:
    """Where the cycles of a product of a sparse matrix went: ``product_report(y, result, A=a)``.

    Padding, balance, stalls of reductions, and the fraction of the bound that the run reached, with
    the cause where that is below 90 %.  ``result`` is a run of ``design``, or of its graph, with
    the matrix.  Raises ``UserError`` for other designs and for runs that did not end.
    """
    from t2s.report.products import report_product
    from t2s.simulator.result import SimResult

    if not is_sparse(design):
        refuse_dense(design, "is no product of a sparse matrix")
    checked_kind("the result", result, SimResult, f"what t2s.simulate({design.name}, ...) returned")
    product = product_of(design, split_inputs(design, matrices)[0])
    _check_run(design, product, result)
    report = report_product(_facts(product), result)
    if report is None:
        raise UserError(
            f"the result is no whole run of {design.name}",
            location=user_location(),
            expected=f"a run of {design.name} that finished, with this matrix",
            given=f"a run of {result.graph}: {result.ending.value}",
        )
    return report


def _check_run(design: ScheduledFunc, product: Product, result: SimResult) -> None:
    """Figures are true of a run of this design with this matrix only."""
    from t2s.simulator.build import digest_of

    graph, arrays = parts_of(product)
    ran = result.program.graph
    names, wanted = [[node.name for node in each.nodes] for each in (ran, graph)]
    same = names == wanted and ran.tensors == graph.tensors
    if not same or result.program.digest not in ("", digest_of(graph, arrays)):
        raise UserError(
            f"the result is no run of {design.name} with this matrix",
            location=user_location(),
            expected=f"a run of {design.name} with {product.storage!r}",
            given=f"a run of {result.graph}"
            + (" with another matrix" if same else ", of other parts or sizes"),
        )


def _explain(facts: ProductFacts, result: SimResult) -> tuple[tuple[str, str], ...]:
    """The lines of a product's report."""
    from t2s.report.products import report_product

    report = report_product(facts, result)
    return () if report is None else report.lines


def _facts(product: Product) -> ProductFacts:
    """What the report of a product needs to know of it."""
    from t2s.report.products import ProductFacts

    nodes, circuit = product.nodes, product.circuit
    reduction = nodes.reduction.name
    levels = (f"{reduction}_level_{level}" for level in range(1, circuit.node_count))
    return ProductFacts(
        padding=product.storage.padding,
        balance=product.storage.balance,
        moved=bytes_moved(product),
        decoded=product.decoded,
        multiplier=nodes.multiplier.name,
        decoder=nodes.decoder.name,
        vector=nodes.vector_loader.name,
        relay=f"{nodes.vector_feeder.name}_relay",
        banks=product.bank_firings,
        circuits=(reduction, *levels),
    )


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

    runs = checked_list("runs", runs, Run, "a list of t2s.Run(design, inputs)")
    for run in runs:
        if run.name is not None:
            checked_kind("the name of a run", run.name, str, "a text, or None")
    graphs: dict[object, Graph] = {}

    def prepared(run: Run, name: str) -> GraphRun:
        given = {} if run.inputs is None else named_inputs(run.inputs)
        design = run.design
        if not isinstance(design, Graph) and is_sparse(design):
            graph, arrays, scalars = resolve(design, given)
        else:
            constants = {} if isinstance(design, Graph) else constants_of(design, given)
            key = (id(design), tuple(constants.items()))
            if key not in graphs:
                graphs[key] = design if isinstance(design, Graph) else lower(design, **constants)
            graph = graphs[key]
            arrays, scalars = split_scalars(graph, constants, given)
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
    if device.fabric is None:
        return ()
    try:
        overruns = resources(graph, device=device).overruns
    except UnsupportedError:  # memories on the chip that depend on data: nobody knows
        return ()
    return tuple(f"does not fit on {device.name}: {overrun}" for overrun in overruns)


def resources(design: Graph | Design, *, device: str | Device = "arria10") -> ResourceReport:
    """An estimate of the DSP and RAM blocks that a design takes of a device, node by node.

    ``report.fits`` says whether the device has enough of them, ``report.overruns`` what is missing.
    The rules are those of ``t2s.report.arithmetic`` and ``t2s.report.memory``.  Raises
    ``UserError`` for a device without such blocks (``ideal``), and ``UnsupportedError`` for state
    machines with memories whose size depends on data, as most blocks of sparse streams have.
    """
    from t2s.report.resources import estimate_resources

    graph = design if isinstance(design, Graph) else lower(design)
    return estimate_resources(graph, device)


def cycles(
    design: Graph | Design,
    *,
    device: str | Device = "ideal",
    memory: str | Dram | None = None,
    max_cycles: int | None = None,
    progress: bool | None = None,
    stalls: RandomStalls | None = None,
) -> int:
    """The exact cycle count of a design; no inputs are needed.

    The arguments are those of ``simulate``.  A run that is cut short has no count: it raises
    ``CycleLimitError`` at ``max_cycles`` and ``RunInterrupted`` at Ctrl-C, both with what was
    measured until then as ``result``.
    """
    from t2s.simulator.cut_short import whole
    from t2s.simulator.run import simulate_cycles

    graph = design if isinstance(design, Graph) else lower(design)
    result = simulate_cycles(
        graph,
        device=_device(device, memory),
        max_cycles=max_cycles,
        progress=progress,
        stalls=stalls,
    )
    return whole(result).cycles


def fit_depths(
    design: Graph | Design,
    inputs: Mapping[str, Any] | None = None,
    *,
    device: str | Device = "ideal",
    memory: str | Dram | None = None,
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
    design, device, memory: as for ``simulate``.
    inputs: the scalars that loop bounds, conditions and indices depend on.  Arrays are needed only
        where control depends on data, and then the depths are the smallest for these arrays.
    slack: share of the cycles that may be given away, 0.01 for one per cent.
    budget_bytes, budget_blocks: RAM that all FIFOs together may take.  The result then has the
        ``front`` of cycles against RAM, and the depths of its fastest point within the budget.
    workers: runs at once; one for each core if ``None``.
    progress: show the runs: ``True`` always, ``False`` never, ``None`` for long searches.

    Ctrl-C ends the search with the best depths so far.  Raises ``UserError`` for a budget that
    cannot be met, ``DeadlockError`` for a design that does not end however deep its channels are.
    """
    from t2s.explore.depths import fit_depths as fit_graph

    graph, arrays, scalars = resolve(design, {} if inputs is None else inputs)
    return fit_graph(
        graph,
        None if inputs is None else arrays,
        parameters=scalars,
        device=_device(device, memory),
        slack=slack,
        budget_bytes=budget_bytes,
        budget_blocks=budget_blocks,
        workers=workers,
        progress=progress,
    )
