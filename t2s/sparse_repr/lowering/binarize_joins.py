"""Joins of many sides as joins of two, one behind the other, for machines of small cells.

``a ∩ b ∩ c`` becomes ``(a ∩ b) ∩ c``: the references of the first join go through the second one
beside its coordinates.  In a union a reference is empty where its side has no coordinate, and what
is empty stays so.  Values do not change; coordinates pass more blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from t2s.sparse_repr.blocks.joins import Join
from t2s.sparse_repr.lowering.diagram import Diagram, DiagramWire, Wired


def with_joins_of_two(diagram: Diagram) -> Diagram:
    """The diagram with every join of more sides taken apart."""
    wires = [wire.number for block in diagram.blocks for wire in (*block.inputs, *block.outputs)]
    fresh = count(max(wires, default=0) + 1)
    blocks = [part for block in diagram.blocks for part in _apart(block, fresh)]
    return replace(diagram, blocks=tuple(blocks))


def _apart(one: Wired, fresh: Iterator[int]) -> Iterator[Wired]:
    if not isinstance(one.block, Join) or len(one.block.sides) < 3:
        yield one
        return
    inputs, last, outputs = iter(one.inputs), one.outputs[0], iter(one.outputs[1:])
    first, *others = [[next(inputs) for _ in range(size)] for size in one.block.sides]
    beside = [[next(outputs) for _ in side[1:]] for side in (first, *others)]
    for number, side in enumerate(others):
        ends = number == len(others) - 1
        sizes = (len(first), len(side))
        wanted = [wire for own in beside[: number + 2] for wire in own]
        made = wanted if ends else [_like(wire, fresh) for wire in wanted]
        crd = last if ends else _like(last, fresh)
        yield replace(
            one,
            block=replace(one.block, sides=sizes),
            inputs=(*first, *side),
            outputs=(crd, *made),
        )
        first = [crd, *made]


def _like(wire: DiagramWire, fresh: Iterator[int]) -> DiagramWire:
    return replace(wire, number=next(fresh))
