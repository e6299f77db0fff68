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

    ``inputs`` has what the graph itself depends on, by name: values of the integer ``Param``
    objects that bounds use; the matrix of a ``MatrixParam``; the tensors that an assignment reads,
    whose shapes and types the graph is for.  Raises ``UserError`` with the user's line for a
    directive that is not legal, and ``UnsupportedError`` for an assignment of several stages.
    """
    return design_of(design).lower(by_name("lower", inputs, keywords))


@gc_paused()
def structure(
    design: object, inputs: Mapping[str, Any] | None = None, **keywords: Any
) -> dict[str, Array]:
    """The arrays that the graph of a design takes for its sparse operands, by name.

    They may be used for many runs: with ``arrays = structure(y, {"A": matrix})``,
    ``t2s.simulate(graph, arrays | {"x": x})``.
    For an assignment these are the arrays of all its operands; other designs have none.
    """
    return design_of(design).structure(by_name("structure", inputs, keywords))


@gc_paused()
def print_loop_nest(
    design: object, inputs: Mapping[str, Any] | None = None, **keywords: Any
) -> str:
    """What the schedule means: all loop nests, with the reason of every loop.

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
    """Compute a design without time, and without directives: the oracle of every design.

    ``inputs`` holds the arrays and the scalars by name.  Returns the array of a Func or of an
    assignment, and a dict of the arrays by name for several Funcs and for a ``Graph``, whose nodes
    are run token by token.
    """
    return design_of(design).interpret(inputs)


def resources(
    design: object,
    inputs: Mapping[str, Any] | None = None,
    *,
    device: str | Device = "arria10",
) -> ResourceReport:
    """An estimate of the DSP and RAM blocks that a design takes of a device, node by node.

    ``report.fits`` says whether the device has enough of them, ``report.overruns`` what is missing.
    ``inputs`` has what the graph depends on: constants, a matrix, the tensors of an assignment.
    The rules are those of ``t2s.report.resources`` and ``t2s.report.resources``.  Raises
    ``UserError`` for a device without such blocks (``ideal``), and ``UnsupportedError`` for state
    machines with memories whose size depends on data, as most blocks of sparse streams have.
    """
    from t2s.report.resources import estimate_resources

    stage = design_of(design).only_stage(inputs, "resources")
    return estimate_resources(stage.graph, device)
