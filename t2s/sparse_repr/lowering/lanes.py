"""Lanes: copies of what is inside of a loop, each for a part of its coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from t2s.sparse_repr.lowering.diagram import Deal, Gather, Stream
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
    scope.blocks.add(Deal(inputs=inputs, lanes=dealt, run=run, variable=scope.region))
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

    def joined(parts: tuple[Stream, ...]) -> Stream:
        output = scope.blocks.like(parts[0])
        scope.blocks.add(
            Gather(order=order, parts=parts, output=output, run=run, variable=scope.region)
        )
        return output

    streams = zip(*(copy.coordinates for copy in copies), strict=True)
    return replace(
        first,
        coordinates=tuple(joined(parts) for parts in streams),
        value=joined(tuple(copy.value for copy in copies)),
    )
