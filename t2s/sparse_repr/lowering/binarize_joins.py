"""Split joins of many sides into chains of binary joins, for machines with small cells.

``a ∩ b ∩ c`` becomes ``(a ∩ b) ∩ c``: the references of the first join are payloads of the second
one.  In a union, the reference of a side without the coordinate is empty, and empty references stay
empty.  Values do not change; coordinates pass through more blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from t2s.sparse_repr.blocks.joins import Join
from t2s.sparse_repr.lowering.diagram import Diagram, DiagramWire, Wired


def with_joins_of_two(diagram: Diagram) -> Diagram:
    """The diagram with every join of more than two sides split."""
    wires = [wire.number for block in diagram.blocks for wire in (*block.inputs, *block.outputs)]
    fresh = count(max(wires, default=0) + 1)
    blocks = [part for block in diagram.blocks for part in _apart(block, fresh)]
    return replace(diagram, blocks=tuple(blocks))


def _apart(join: Wired, fresh: Iterator[int]) -> Iterator[Wired]:
    if not isinstance(join.block, Join) or len(join.block.sides) < 3:
        yield join
        return
    inputs, last, outputs = iter(join.inputs), join.outputs[0], iter(join.outputs[1:])
    first, *others = [[next(inputs) for _ in range(size)] for size in join.block.sides]
    beside = [[next(outputs) for _ in side[1:]] for side in (first, *others)]
    for number, side in enumerate(others):
        ends = number == len(others) - 1
        sizes = (len(first), len(side))
        results = [wire for own in beside[: number + 2] for wire in own]
        wires_out = results if ends else [_like(wire, fresh) for wire in results]
        crd = last if ends else _like(last, fresh)
        yield replace(
            join,
            block=replace(join.block, sides=sizes),
            inputs=(*first, *side),
            outputs=(crd, *wires_out),
        )
        first = [crd, *wires_out]


def _like(wire: DiagramWire, fresh: Iterator[int]) -> DiagramWire:
    return replace(wire, number=next(fresh))
