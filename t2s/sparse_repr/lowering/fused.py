"""Fused loops: what is inside of two loops, computed in one list of their coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from t2s.sparse_repr.concrete.ir import Forall
from t2s.sparse_repr.lowering.diagram import Flatten, LoopKind, Regroup, Stream
from t2s.sparse_repr.lowering.lanes import in_lanes
from t2s.sparse_repr.lowering.reduce import Computed
from t2s.sparse_repr.lowering.scope import Scope
from t2s.sparse_repr.notation.ir import Expression, accesses


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
    scope.blocks.add(
        Flatten(
            outer=outer,
            inner=inner,
            extent=scope.variables[-1],
            beside=beside,
            coordinate=coordinate,
            outputs=outputs,
            variable=region,
        )
    )
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

    def regrouped(stream: Stream) -> Stream:
        output = scope.blocks.like(stream, stream.depth + 1)
        scope.blocks.add(Regroup(input=stream, like=inner, output=output, variable=region))
        return output

    return replace(
        computed,
        coordinates=tuple(regrouped(stream) for stream in computed.coordinates),
        value=regrouped(computed.value),
    )
