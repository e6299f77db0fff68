"""The statement ``Search``, in LLVM: a binary search."""

from __future__ import annotations

from t2s.core.ops import Op
from t2s.core.types import Kind, Type
from t2s.graph.machine import Search
from t2s.simulator.emit.casts import convert
from t2s.simulator.emit.llvm import I64, Value, integer
from t2s.simulator.emit.representation import load_value, offset_by
from t2s.simulator.values.emit_context import NodeContext

_WIDE = Type(Kind.INT, 64)


def emit_search(context: NodeContext, statement: Search) -> Value:
    """The position found."""
    builder, expressions = context.builder, context.expressions
    tensor = context.graph.tensor(statement.tensor)
    type = tensor.type.scalar
    begin, end = expressions.wide(statement.begin), expressions.wide(statement.end)
    value = expressions.emit(statement.value)
    some = builder.icmp_signed("<", begin, end)
    length = integer(tensor.allocated[0])
    if tensor.open:
        length = builder.load(context.address(context.layout.extent(tensor.name)), I64)
    inside = builder.and_(
        builder.icmp_signed(">=", begin, integer(0)), builder.icmp_signed("<=", end, length)
    )
    context.require(
        builder.or_(builder.not_(some), inside),
        f"{context.node.name} leaves the bounds of {tensor.name}",
    )
    start = context.pointer(context.layout.tensor(tensor.name))
    before = builder.block
    loop, over = context.block("search"), context.block("found")
    builder.cbranch(some, loop, over)
    builder.position_at_end(loop)
    low, high = builder.phi(I64), builder.phi(I64)
    middle = builder.ashr(builder.add(low, high), integer(1))
    where = offset_by(builder, start, context.scaled(middle, type.bytes))
    element = load_value(builder, where, type, type.bytes)
    smaller = expressions.apply(Op.LESS, type, [element, value])
    next_low = builder.select(smaller, builder.add(middle, integer(1)), low)
    next_high = builder.select(smaller, high, middle)
    for phi, first, following in ((low, begin, next_low), (high, end, next_high)):
        phi.add_incoming(first, before)
        phi.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", next_low, next_high), loop, over)
    builder.position_at_end(over)
    found = builder.phi(I64)
    found.add_incoming(begin, before)
    found.add_incoming(next_low, loop)
    return convert(builder, found, _WIDE, statement.begin.type)
