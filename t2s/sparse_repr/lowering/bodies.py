"""Bodies of loops that are computed in another form: by copies in lanes, or in fused loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from t2s.sparse_repr.blocks.lanes import Deal, Gather
from t2s.sparse_repr.blocks.regroup import Regroup
from t2s.sparse_repr.blocks.splits import Flatten
from t2s.sparse_repr.concrete.ir import Forall
from t2s.sparse_repr.lowering.diagram import LoopKind, Wire
from t2s.sparse_repr.lowering.reduce import Computed
from t2s.sparse_repr.lowering.scope import Scope
from t2s.sparse_repr.notation.ir import Expression, accesses


def in_lanes(
    scope: Scope, value: Expression, lanes: int, body: Callable[[Scope], Computed], run: int = 1
) -> Computed:
    """What ``body`` computes in the innermost loop of a scope, by copies of it.

    The coordinates of the loop, and the operands of ``value`` with them, are dealt to the copies in
    turn, ``run`` at a time, and what comes out is joined in the order of the coordinates.
    """
    needed = [access for access in dict.fromkeys(accesses(value)) if access in scope.operands]
    order = scope.coordinates[-1]
    inputs = (order, *(scope.operands[access].stream for access in needed))
    dealt = tuple(tuple(scope.blocks.like(stream) for stream in inputs) for _ in range(lanes))
    everywhere = [wire for lane in dealt for wire in lane]
    scope.blocks.add(Deal(lanes=lanes, run=run), inputs, everywhere, scope.region)
    copies = []
    for own in dealt:
        operands = dict(scope.operands)
        for access, stream in zip(needed, own[1:], strict=True):
            operands[access] = replace(operands[access], stream=stream)
        inside = replace(
            scope,
            coordinates=(*scope.coordinates[:-1], own[0]),
            filled=(*scope.filled[:-1], False),  # a lane may get nothing of a fiber
            operands=operands,
        )
        copies.append(body(inside))
    first = copies[0]

    def joined(parts: tuple[Wire, ...]) -> Wire:
        output = scope.blocks.like(parts[0])
        scope.blocks.add(Gather(run=run), (order, *parts), [output], scope.region)
        return output

    streams = zip(*(copy.coordinates for copy in copies), strict=True)
    return replace(
        first,
        coordinates=tuple(joined(parts) for parts in streams),
        value=joined(tuple(copy.value for copy in copies)),
    )


def in_fused(
    scope: Scope, loop: Forall, value: Expression, body: Callable[[Scope], Computed]
) -> Computed:
    """What ``body`` computes in the two innermost loops of a scope, the last of them ``loop``.

    The coordinates of both, and the operands of ``value`` with them, are flattened; what comes of
    them is put into the lists of the inner loop again.  So around the loops nothing changes.
    """
    outer, inner = scope.coordinates[-2:]
    needed = [access for access in dict.fromkeys(accesses(value)) if access in scope.operands]
    beside = tuple(scope.operands[access].stream for access in needed)
    region = scope.blocks.add_loop(loop.fused, LoopKind.SCAN, scope.region)
    coordinate = scope.blocks.like(inner, outer.depth)
    outputs = tuple(scope.blocks.like(stream, outer.depth) for stream in beside)
    block = Flatten(extent=scope.variables[-1])
    scope.blocks.add(block, (outer, inner, *beside), (coordinate, *outputs), region)
    operands = dict(scope.operands)
    for access, stream in zip(needed, outputs, strict=True):
        operands[access] = replace(operands[access], stream=stream)
    inside = replace(
        scope,
        variables=(*scope.variables[:-2], loop.fused),
        regions=(*scope.regions[:-2], region),
        coordinates=(*scope.coordinates[:-2], coordinate),
        filled=(*scope.filled[:-2], all(scope.filled[-2:])),
        covered=(*scope.covered[:-2], all(scope.covered[-2:])),
        operands=operands,
    )
    if loop.lanes > 1:
        computed = in_lanes(inside, value, loop.lanes, body, loop.run)
    else:
        computed = body(inside)

    def regrouped(stream: Wire) -> Wire:
        output = scope.blocks.like(stream, stream.depth + 1)
        scope.blocks.add(Regroup(), [stream, inner], [output], region)
        return output

    return replace(
        computed,
        coordinates=tuple(regrouped(stream) for stream in computed.coordinates),
        value=regrouped(computed.value),
    )
