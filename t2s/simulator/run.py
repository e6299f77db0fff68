"""The ways into the simulator: ``simulate`` for values and cycles, ``simulate_cycles`` for cycles.

>>> result = simulate(graph, {"A": a, "B": b}, device="arria10")   # doctest: +SKIP
>>> result.outputs["C"], result.cycles, result.utilization         # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping

from t2s.core.ops import Array
from t2s.graph.graph import Graph
from t2s.simulator.devices import Device
from t2s.simulator.limits import checked_limits
from t2s.simulator.program.build import build_program
from t2s.simulator.random_stalls import RandomStalls, check_stalls
from t2s.simulator.report.progress import Progress
from t2s.simulator.report.result import SimResult
from t2s.simulator.retime import run_to_the_end


def simulate(
    graph: Graph,
    inputs: Mapping[str, Array],
    *,
    parameters: Mapping[str, object] | None = None,
    device: str | Device = "ideal",
    engine: str = "native",
    max_cycles: int | None = None,
    progress: bool | None = None,
    stalls: RandomStalls | None = None,
) -> SimResult:
    """Run a graph on its inputs and return outputs, exact cycles and stalls.

    Parameters
    ----------
    graph: the design.
    inputs: one array per input tensor, of exactly its shape and dtype.
    parameters: the scalars that the design takes at run time.
    device: a name from ``DEVICES``, or a ``Device``.
    engine: ``"native"``, or ``"python"`` for the slow oracle.
    max_cycles: cut the run short after so many cycles; the result says so and has no outputs.
    progress: show a bar: ``True`` always, ``False`` never, ``None`` for long runs in a terminal.
    stalls: hold up load and store units now and then, as real memory does.

    Raises
    ------
    UserError: something is wrong with the graph or the inputs; before the first cycle.
    DeadlockError: nothing can fire, but something should; has the partial ``result``.
    TokensLeftError: the run ended, but not all tokens were received; has the ``result``.
    """
    program = build_program(graph, device, inputs, parameters, check_stalls(stalls))
    limits = checked_limits(max_cycles)
    with Progress(progress) as observer:
        return run_to_the_end(program, engine, limits, observer)


def simulate_cycles(
    graph: Graph,
    *,
    parameters: Mapping[str, object] | None = None,
    device: str | Device = "ideal",
    engine: str = "native",
    max_cycles: int | None = None,
    progress: bool | None = None,
    stalls: RandomStalls | None = None,
) -> SimResult:
    """The times of ``simulate``, to the cycle, without inputs and without outputs.

    Only the parameters that loop bounds, conditions and indices depend on have to be given.
    """
    program = build_program(graph, device, None, parameters, check_stalls(stalls))
    limits = checked_limits(max_cycles)
    with Progress(progress) as observer:
        return run_to_the_end(program, engine, limits, observer)
