"""The values of a graph in machine code, apart from time.

A graph of blocking nodes is a Kahn network: its values depend neither on the order of execution
nor on the capacities of its channels.  So every PE runs as far as its rings allow, and where rings
are too small for the graph to go on they grow, as if channels were unbounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from t2s.core.errors import InternalError
from t2s.core.ops import Array
from t2s.graph.graph import Graph
from t2s.graph.layout import outputs_of
from t2s.simulator.native.emit_node import FAULTED
from t2s.simulator.native.layout import layout_of
from t2s.simulator.native.module import compile_text, emit_program
from t2s.simulator.native.state import RunState

_FIRINGS_PER_CALL = 1 << 20
"""Python takes over this often, for interrupts and progress: every 10 ms or so."""


def compute_values(
    graph: Graph,
    inputs: Mapping[str, Array],
    parameters: Mapping[str, Array] | None = None,
    *,
    on_progress: Callable[[int], None] | None = None,
) -> dict[str, Array]:
    """Run a graph and return its output tensors, bit for bit those of ``interpret_graph``.

    (Where a result is NaN it is NaN in both; its payload may differ.)  ``on_progress`` is called
    now and then with the number of firings so far.  The inputs are not modified.

    Raises ``UserError`` if an input or a parameter is missing, unknown, or of another shape or type
    than the graph says, and ``InternalError`` if nodes wait for tokens that never come, or
    leave the bounds of a tensor, a register file or a channel array: users learn of both earlier.
    """
    layout = layout_of(graph)
    program = emit_program(graph, layout)
    machine = compile_text(program.text)
    state = RunState(graph, layout, inputs, parameters or {})
    total = 0
    while waiting := state.unfinished():
        fired = machine.run(state.address, _FIRINGS_PER_CALL)
        if fired == FAULTED:
            raise InternalError(program.faults[int(state.get(layout.fault)) - 1])
        total += fired
        if not fired and state.unfinished() == waiting and not state.grow():
            raise InternalError(f"nodes wait for tokens that never come: {', '.join(waiting)}")
        if on_progress is not None:
            on_progress(total)
    return outputs_of(graph, state.memory)
