"""Accesses to open tensors, whose length is known only while the graph runs.

Such a tensor has an address, a length and a capacity in the arena, all of which change when a store
goes beyond them: the code then calls back into Python, which moves the tensor.
"""

from __future__ import annotations

from t2s.graph.graph import Tensor
from t2s.graph.machine_semantics import MOST_ELEMENTS
from t2s.simulator.native.emit_context import NodeContext
from t2s.simulator.native.llvm import Value, ir
from t2s.simulator.native.representation import I64, POINTER, integer


def open_element(
    context: NodeContext, tensor: Tensor, index: Value, lanes: int, *, stores: bool
) -> Value:
    """The address of the tensor, once ``lanes`` elements from ``index`` on are known to be there."""
    builder, extent = context.builder, context.layout.extent(tensor.name)
    verb = "stores" if stores else "loads"
    message = f"{context.node.name} {verb} outside of {tensor.name}"
    length_address = context.address(extent)
    length = builder.load(length_address, typ=I64)
    end = builder.add(index, integer(lanes))
    limit = integer(MOST_ELEMENTS) if stores else length
    nonnegative = builder.icmp_signed(">=", index, integer(0))
    context.require(
        builder.and_(nonnegative, builder.icmp_signed("<=", end, limit)), message
    )
    if stores:
        capacity = builder.load(context.address(extent, 1), typ=I64)
        with builder.if_then(builder.icmp_signed(">", end, capacity), likely=False):
            signature = ir.FunctionType(ir.VoidType(), [POINTER, I64, I64]).as_pointer()
            address = builder.load(context.address(context.layout.grow), typ=I64)
            number = context.graph.tensors.index(tensor)
            arguments = [context.arena, integer(number), end]
            builder.call(builder.inttoptr(address, signature), arguments)
        enough = builder.load(context.address(extent, 1), typ=I64)
        context.require(
            builder.icmp_signed("<=", end, enough), f"{tensor.name} does not fit into memory"
        )
        longer = builder.icmp_signed(">", end, length)
        builder.store(builder.select(longer, end, length), length_address)
    return context.pointer(context.layout.tensor(tensor.name))
