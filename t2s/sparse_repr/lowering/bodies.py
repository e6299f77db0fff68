"""Bodies of loops that are computed in another form: by copies in lanes, or in fused loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from t2s.graph.graph import RegionKind
from t2s.sparse_repr.blocks.lanes import DealLanes, GatherLanes
from t2s.sparse_repr.blocks.repeats import Regroup
from t2s.sparse_repr.blocks.splits import Flatten
from t2s.sparse_repr.concrete.ir import Forall
from t2s.sparse_repr.lowering.diagram import DiagramWire
from t2s.sparse_repr.lowering.reduce import Computed
from t2s.sparse_repr.lowering.scope import LoopLevel, NestScope
from t2s.sparse_repr.notation.ir import Expression, accesses


def in_lanes(
    scope: NestScope,
    value: Expression,
    lanes: int,
    body: Callable[[NestScope], Computed],
    run: int = 1,
) -> Computed:
    """What ``body`` computes in the innermost loop of a scope, by copies of it.

    The coordinates of the loop, and the operands of ``value`` with them, are dealt to the copies in
    turn, ``run`` at a time, and what comes out is joined in the order of the coordinates.
    """
    needed = [access for access in dict.fromkeys(accesses(value)) if access in scope.operands]
    innermost = scope.loops[-1]
    order = innermost.coordinate
    inputs = (order, *(scope.operands[access].stream for access in needed))
    dealt = tuple(tuple(scope.blocks.like(stream) for stream in inputs) for _ in range(lanes))
    everywhere = [wire for lane in dealt for wire in lane]
    scope.blocks.add(DealLanes(lanes=lanes, run=run), inputs, everywhere, scope.region)
    copies = []
    for own in dealt:
        operands = dict(scope.operands)
        for access, stream in zip(needed, own[1:], strict=True):
            operands[access] = replace(operands[access], stream=stream)
        lane = replace(innermost, coordinate=own[0], filled=False)  # it may get nothing of a fiber
        copies.append(body(replace(scope, loops=(*scope.loops[:-1], lane), operands=operands)))
    first = copies[0]

    def joined(parts: tuple[DiagramWire, ...]) -> DiagramWire:
        output = scope.blocks.like(parts[0])
        scope.blocks.add(GatherLanes(run=run), (order, *parts), [output], scope.region)
        return output

    loops = tuple(
        replace(level[0], coordinate=joined(tuple(one.coordinate for one in level)))
        for level in zip(*(copy.loops for copy in copies), strict=True)
    )
    return replace(first, loops=loops, value=joined(tuple(copy.value for copy in copies)))


def in_fused(
    scope: NestScope, loop: Forall, value: Expression, body: Callable[[NestScope], Computed]
) -> Computed:
    """What ``body`` computes in the two innermost loops of a scope, the last of them ``loop``.

    The coordinates of both, and the operands of ``value`` with them, are flattened; what comes of
    them is put into the lists of the inner loop again.  So around the loops nothing changes.
    """
    around, within = scope.loops[-2:]
    outer, inner = around.coordinate, within.coordinate
    needed = [access for access in dict.fromkeys(accesses(value)) if access in scope.operands]
    beside = tuple(scope.operands[access].stream for access in needed)
    region = scope.blocks.add_loop(loop.fused, RegionKind.SCAN, scope.region)
    coordinate = scope.blocks.like(inner, outer.depth)
    outputs = tuple(scope.blocks.like(stream, outer.depth) for stream in beside)
    block = Flatten(extent=within.variable)
    scope.blocks.add(block, (outer, inner, *beside), (coordinate, *outputs), region)
    operands = dict(scope.operands)
    for access, stream in zip(needed, outputs, strict=True):
        operands[access] = replace(operands[access], stream=stream)
    fused = LoopLevel(
        variable=loop.fused,
        region=region,
        coordinate=coordinate,
        filled=around.filled and within.filled,
        covered=around.covered and within.covered,
    )
    inside = replace(scope, loops=(*scope.loops[:-2], fused), operands=operands)
    if loop.lanes > 1:
        computed = in_lanes(inside, value, loop.lanes, body, loop.run)
    else:
        computed = body(inside)

    def regrouped(stream: DiagramWire) -> DiagramWire:
        output = scope.blocks.like(stream, stream.depth + 1)
        scope.blocks.add(Regroup(), [stream, inner], [output], region)
        return output

    loops = tuple(replace(one, coordinate=regrouped(one.coordinate)) for one in computed.loops)
    return replace(computed, loops=loops, value=regrouped(computed.value))
