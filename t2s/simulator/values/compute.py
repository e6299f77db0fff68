"""Compute the values of a graph by machine code, independent of time.

A graph of blocking nodes is a Kahn network: its values depend neither on the order of execution nor
on the capacities of its channels.  Nodes whose operands can be traced back to memory, through the
nodes that pass them on, run as plain loop nests (``nests``).  The others run before, with **rings**
between PEs: every PE runs as far as its rings allow, and rings that are too small for progress
grow, as if channels were unbounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from t2s.core.errors import InternalError
from t2s.core.ops import Array
from t2s.graph.arrays import check_graph_inputs, outputs_of
from t2s.graph.graph import Graph
from t2s.llvm.compile import compile_by_use
from t2s.simulator.values.emit_frame import FAULTED
from t2s.simulator.values.emit_node import emit_program
from t2s.simulator.values.layout import layout_of
from t2s.simulator.values.nests.plan import Plan, prepare, run_nests
from t2s.simulator.values.state import RunState, allocate

_FIRINGS_PER_CALL = 1 << 20
"""Firings between two returns to Python for interrupts and progress, about 10 ms."""

Progress = Callable[[int], None]


def compute_values(
    graph: Graph,
    inputs: Mapping[str, Array],
    parameters: Mapping[str, Array] | None = None,
    *,
    on_progress: Callable[[int], None] | None = None,
) -> dict[str, Array]:
    """Run a graph and return its output tensors, bit for bit those of ``interpret_graph``.

    (NaN payloads may differ.)  ``on_progress`` is called regularly with the number of firings so
    far.  The inputs are not modified.

    Raises ``UserError`` if an input or a parameter is missing, unknown, or of another shape or type
    than in the graph, and ``InternalError`` if nodes wait for tokens that never come, or leave the
    bounds of a tensor, a register file or a channel array: earlier checks exclude both.
    """
    arrays, scalars = check_graph_inputs(graph, inputs, parameters or {})
    prepared = prepare(graph, scalars)
    plan = prepared.plan
    tell = on_progress or (lambda firings: None)
    if not plan.nests:
        return compute_with_rings(graph, inputs, parameters, on_progress=on_progress)
    memory, streams, total = None, {}, 0
    if plan.rings:
        state = _run_rings(_part(graph, plan), inputs, scalars, tell, plan.recorded)
        memory, streams, total = state.memory, _recorded(graph, plan, state), state.total
    memory = allocate(graph, arrays) if memory is None else memory
    run_nests(graph, prepared, memory, scalars, streams, lambda firings: tell(total + firings))
    return outputs_of(graph, memory)


def compute_with_rings(
    graph: Graph,
    inputs: Mapping[str, Array],
    parameters: Mapping[str, Array] | None = None,
    *,
    on_progress: Progress | None = None,
) -> dict[str, Array]:
    """Like ``compute_values``, but firing by firing and token by token in every node."""
    _, scalars = check_graph_inputs(graph, inputs, parameters or {})
    state = _run_rings(graph, inputs, scalars, on_progress or (lambda firings: None))
    return outputs_of(graph, state.memory)


def _recorded(graph: Graph, plan: Plan, state: RunState) -> dict[str, Array]:
    """The tokens that ring nodes leave for nests; ``InternalError`` if some are missing."""
    streams = {}
    for name, tokens in plan.recorded.items():
        streams[name], sent = state.recorded(name, tokens)
        if any(sent[element] < count for element, count in plan.expected[name].items()):
            sink = graph.channel(name).sink
            raise InternalError(f"nodes wait for tokens that never come: {sink}")
    return streams


def _part(graph: Graph, plan: Plan) -> Graph:
    """The part of the graph that runs with rings, and all channels that start there."""
    nodes = tuple(node for node in graph.nodes if node.name in plan.rings)
    channels = tuple(channel for channel in graph.channels if channel.source in plan.rings)
    return replace(graph, nodes=nodes, channels=channels)


def _run_rings(
    graph: Graph,
    inputs: Mapping[str, Array],
    parameters: Mapping[str, Array],
    on_progress: Progress,
    recorded: Mapping[str, int] | None = None,
) -> RunState:
    """Run all nodes of a graph; ``recorded`` has the ring sizes of recorded channels."""
    layout = layout_of(graph)
    program = emit_program(graph, layout)
    state = RunState(graph, layout, recorded)
    state.start(inputs, parameters)
    while waiting := state.unfinished():
        fired = compile_by_use(program.text).run(state.address, _FIRINGS_PER_CALL)
        if fired == FAULTED:
            raise InternalError(program.faults[int(state.get(layout.fault)) - 1])
        state.total += fired
        if not fired and state.unfinished() == waiting and not state.grow():
            raise InternalError(f"nodes wait for tokens that never come: {', '.join(waiting)}")
        on_progress(state.total)
    return state
