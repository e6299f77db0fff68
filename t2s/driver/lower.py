"""The verbs that need no time: ``lower``, ``structure``, ``print_loop_nest``, ``interpret``,
``resources``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from t2s.core.gc_pause import gc_paused
from t2s.core.renaming import by_name
from t2s.driver.design import Array, Values
from t2s.driver.recognize import design_of
from t2s.graph.graph import Graph
from t2s.spatial.schedule import ScheduledFunc

if TYPE_CHECKING:
    from t2s.report.resources import ResourceReport
    from t2s.simulator.devices import Device


@gc_paused()
def lower(design: object, inputs: Mapping[str, Any] | None = None, **keywords: Any) -> Graph:
    """The PE/channel graph of a design, with its directives.

    ``inputs`` has the inputs that the graph depends on, by name: the integer ``Param`` objects in
    bounds; the matrix of a ``MatrixParam``; the tensors of an assignment, whose shapes and types
    the graph is for.  Raises ``UserError`` with the user's line for an illegal directive, and
    ``UnsupportedError`` for an assignment of several stages.
    """
    return design_of(design).lower(by_name("lower", inputs, keywords))


@gc_paused()
def structure(
    design: object, inputs: Mapping[str, Any] | None = None, **keywords: Any
) -> dict[str, Array]:
    """The arrays that the graph of a design reads in place of its sparse operands, by name.

    They can be reused in many runs: with ``arrays = structure(y, {"A": matrix})``,
    ``t2s.simulate(graph, arrays | {"x": x})``.  For an assignment these are the arrays of all
    operands; other designs have none.
    """
    return design_of(design).structure(by_name("structure", inputs, keywords))


@gc_paused()
def print_loop_nest(
    design: object, inputs: Mapping[str, Any] | None = None, **keywords: Any
) -> str:
    """The loop nests of the schedule, with the reason for every loop.

    ``inputs`` are those of ``lower``.  For an assignment, its concrete loops; for a ``Graph`` and a
    product of a sparse matrix, the loops and the state machines of the graph's nodes.
    """
    return design_of(design).loops(by_name("print_loop_nest", inputs, keywords))


@overload
def interpret(design: ScheduledFunc, inputs: Mapping[str, Any]) -> Array: ...


@overload
def interpret(
    design: Sequence[ScheduledFunc] | Graph, inputs: Mapping[str, Any]
) -> dict[str, Array]: ...


@overload
def interpret(design: object, inputs: Mapping[str, Any]) -> Any: ...


def interpret(design: object, inputs: Mapping[str, Any]) -> Values:
    """Compute the values of a design, ignoring directives and time: the reference for all runs.

    ``inputs`` holds the arrays and the scalars by name.  Returns the array of a Func or of an
    assignment, and a dict of the arrays by name for several Funcs and for a ``Graph``, whose nodes
    run token by token.
    """
    return design_of(design).interpret(inputs)


def resources(
    design: object,
    inputs: Mapping[str, Any] | None = None,
    *,
    device: str | Device = "arria10",
) -> ResourceReport:
    """Estimate what a design takes of a device, node by node, before any synthesis.

    That is DSP and RAM blocks, and on an FPGA of ``t2s.synthesize`` LUTs, flip-flops and carry
    cells, too: ``report.logic`` is ``None`` elsewhere, and for what is no chip of integers.
    ``report.fits`` tells whether the device has enough, ``report.overruns`` what is missing.
    ``inputs`` has the inputs that the graph depends on: constants, a matrix, the tensors
    of an assignment.  ``t2s/report/resources.py`` has the rules.  Raises ``UserError`` for a device
    without such blocks (``ideal``), and ``UnsupportedError`` for state machines with memories of
    data-dependent size, such as most blocks of sparse streams.
    """
    from t2s.driver.logic import resources_of

    stage = design_of(design).only_stage(inputs, "resources")
    return resources_of(stage.graph, device)
