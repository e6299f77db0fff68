"""The ways into the simulator: ``simulate`` for values and cycles, ``simulate_cycles`` for cycles.

>>> result = simulate(graph, {"A": a, "B": b}, device="arria10")   # doctest: +SKIP
>>> result.outputs["C"], result.cycles, result.utilization         # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.graph.graph import Graph
from t2s.simulator.deadlock import DeadlockError, DeadlockReport, TokensLeftError, with_remedy
from t2s.simulator.devices import Device
from t2s.simulator.engine import Limits, find_engine
from t2s.simulator.program import SimProgram, build_program
from t2s.simulator.progress import Progress
from t2s.simulator.result import SimResult


def simulate(
    graph: Graph,
    inputs: Mapping[str, Array],
    *,
    parameters: Mapping[str, object] | None = None,
    device: str | Device = "ideal",
    engine: str = "native",
    max_cycles: int | None = None,
    progress: bool | None = None,
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

    Raises
    ------
    UserError: something is wrong with the graph or the inputs; before the first cycle.
    DeadlockError: nothing can fire, but something should; has the partial ``result``.
    TokensLeftError: the run ended, but not all tokens were received; has the ``result``.
    """
    program = build_program(graph, device, inputs, parameters)
    return _run(program, engine, max_cycles, progress)


def simulate_cycles(
    graph: Graph,
    *,
    parameters: Mapping[str, object] | None = None,
    device: str | Device = "ideal",
    engine: str = "native",
    max_cycles: int | None = None,
    progress: bool | None = None,
) -> SimResult:
    """The times of ``simulate``, to the cycle, without inputs and without outputs.

    Only the parameters that loop bounds, conditions and indices depend on have to be given.
    """
    program = build_program(graph, device, None, parameters)
    return _run(program, engine, max_cycles, progress)


def _run(
    program: SimProgram, engine: str, max_cycles: int | None, progress: bool | None
) -> SimResult:
    chosen = find_engine(engine)
    if max_cycles is not None and (not isinstance(max_cycles, int) or max_cycles < 1):
        raise UserError(
            "max_cycles is not a number of cycles",
            location=user_location(),
            expected="an integer of at least 1, or None",
            given=repr(max_cycles),
        )
    with Progress(progress) as observer:
        result = chosen.run(program, Limits(max_cycles=max_cycles), observer)
    if result.deadlock is not None:
        report = _with_remedy(program, result.deadlock)
        raise DeadlockError(replace(result, deadlock=report), report)
    if result.tokens_left:
        raise TokensLeftError(result)
    return result


def _with_remedy(program: SimProgram, report: DeadlockReport) -> DeadlockReport:
    """The report with sufficient capacities; as it is if the user interrupts the search.

    Whether a run ends in a deadlock is the same in every engine, so the fast one searches.  It
    does not run machines.
    """
    if program.graph.machines:
        return report
    native = find_engine("native")

    def retime(changed: SimProgram) -> DeadlockReport | None:
        result = native.run(changed, Limits())
        if result.interrupted:
            raise KeyboardInterrupt
        return result.deadlock

    try:
        return with_remedy(program, report, retime)
    except KeyboardInterrupt:
        return report
