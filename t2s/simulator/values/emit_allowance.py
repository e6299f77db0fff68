"""How many firings a visit of a machine may make, apart from what comes in."""

from __future__ import annotations

from collections.abc import Mapping

from t2s.graph.machine import Machine
from t2s.simulator.emit.llvm import I64, POINTER, Value, integer
from t2s.simulator.emit.representation import offset_by
from t2s.simulator.values.emit_frame import NodeContext, smaller
from t2s.simulator.values.emit_memory import MemoryEmitter
from t2s.simulator.values.emit_ports import StreamPort
from t2s.simulator.values.layout import (
    TRACE_ADDRESS,
    TRACE_LENGTH,
    TRACE_LIMIT,
    TRACE_WORDS,
    code_type,
    most_adds,
)


def emit_allowance(
    context: NodeContext,
    node: Machine,
    budget: Value,
    outputs: Mapping[str, StreamPort],
    memories: Mapping[str, MemoryEmitter],
) -> tuple[Value, Value, Value]:
    """Where the words of the trace are, where its next code goes, and the firings allowed.

    A rule puts at most one token into a channel and a code into the trace, so that as many firings
    as these have space for need no further test of it.
    """
    builder = context.builder
    state = context.address(context.layout.trace(node.name), context.pe, 8 * TRACE_WORDS)
    address, length, limit = (
        builder.load(offset_by(builder, state, 8 * word), I64)
        for word in (TRACE_ADDRESS, TRACE_LENGTH, TRACE_LIMIT)
    )
    start = context.scaled(length, code_type(node).itemsize)
    trace = builder.inttoptr(builder.add(address, start), POINTER)
    allowed = smaller(builder, builder.sub(limit, length), budget)
    for port in outputs.values():
        allowed = smaller(builder, allowed, port.allowance())
    for name, memory in memories.items():
        most = most_adds(node, name)
        if most:
            allowed = smaller(builder, allowed, builder.udiv(memory.space(), integer(most)))
    return state, trace, allowed
