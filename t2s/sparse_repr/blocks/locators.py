"""Locators: the reference of a coordinate, found by address or by search."""

from __future__ import annotations

from collections.abc import Sequence

from t2s.core.expr import Local, const
from t2s.core.location import SourceLocation
from t2s.graph.graph import StreamKind, StreamType, Tensor
from t2s.graph.machine import Choice, Rule, Search
from t2s.graph.nodes import Role
from t2s.sparse_repr.blocks.draft import Block, BlockKind, Draft, copy, load, put, rule, when
from t2s.sparse_repr.blocks.expressions import (
    EMPTY_TAG,
    add,
    both,
    cast,
    equal,
    less,
    multiply,
    one,
)


def dense_locator(
    coordinates: StreamType,
    fiber: StreamType,
    size: int,
    beside: Sequence[StreamType] = (),
    *,
    location: SourceLocation | None = None,
) -> Block:
    """The reference of each coordinate in its fiber of a dense level (Definition 4.1).

    ``fiber`` has the shape of ``coordinates`` (repeat a reference to get it), and so has what is
    ``beside`` and passed on.  An empty fiber N has no references: N.  Ports: ``crd``, ``fiber``,
    ``in0``, ...; ``crd_out``, ``ref``, ``out0``, ...
    """
    draft = Draft(BlockKind.LOCATE, Role.RELAY, location)
    type = fiber.element
    found = _Located(draft, coordinates, fiber, beside)
    position = add(multiply(found.fiber.value, const(size, type)), cast(found.crd.value, type))
    hit = rule("hit", "run", takes=found.inputs, puts=[put(found.ref, position), *found.passed])
    miss = rule(
        "empty", "run", takes=found.inputs, puts=[put(found.ref, tag=EMPTY_TAG), *found.passed]
    )
    return found.block([when(found.fiber.is_value, hit), when(None, miss)])


def compressed_locator(
    coordinates: StreamType,
    fiber: StreamType,
    positions: Tensor,
    stored: Tensor,
    beside: Sequence[StreamType] = (),
    *,
    keep: bool = False,
    location: SourceLocation | None = None,
) -> Block:
    """The same in a compressed level, whose coordinates increase: one search per cycle.

    A coordinate that is not there is dropped from all outputs, or its reference is N if ``keep``.
    """
    draft = Draft(BlockKind.LOCATE, Role.LOAD, location)
    type = fiber.element
    draft.tensor(positions)
    draft.tensor(stored)
    found = _Located(draft, coordinates, fiber, beside)
    first, begin = load("begin", positions, found.fiber.value)
    second, end = load("end", positions, add(found.fiber.value, one(type)))
    search = Search(
        target="position",
        tensor=stored.name,
        begin=cast(begin, type),
        end=cast(end, type),
        value=cast(found.crd.value, stored.type),
    )
    position = Local(name="position", type=type)
    there, value = load("there", stored, position)
    hit = rule("hit", "run", takes=found.inputs, puts=[put(found.ref, position), *found.passed])
    lost = [put(found.ref, tag=EMPTY_TAG), *found.passed] if keep else []

    def miss(name: str) -> Rule:
        return rule(name, "run", takes=found.inputs, puts=lost)

    inside = [
        when(
            less(position, cast(end, type)),
            [
                when(equal(value, cast(found.crd.value, stored.type)), hit),
                when(None, miss("another")),
            ],
            body=[there],
        ),
        when(None, miss("none")),
    ]
    return found.block(
        [
            when(found.fiber.is_value, inside, body=[first, second, search]),
            when(None, miss("empty")),
        ]
    )


class _Located:
    """The ports that all locators have, and the tokens that they treat alike."""

    def __init__(
        self, draft: Draft, crd: StreamType, fiber: StreamType, beside: Sequence[StreamType]
    ) -> None:
        self._draft = draft
        self.crd, self.fiber = draft.input("crd", crd), draft.input("fiber", fiber)
        others = [draft.input(f"in{n}", stream) for n, stream in enumerate(beside)]
        self.inputs = [self.crd, self.fiber, *others]
        kind = StreamKind.COORDINATE
        crd_out = draft.output("crd_out", crd.element, kind, crd.nesting)
        self.ref = draft.output("ref", fiber.element, StreamKind.REFERENCE, crd.nesting)
        outs = [
            draft.output(f"out{n}", stream.element, stream.kind, stream.nesting)
            for n, stream in enumerate(beside)
        ]
        self._outputs = [crd_out, self.ref, *outs]
        self.passed = [put(crd_out, self.crd.value)]
        self.passed += [copy(o, i) for o, i in zip(outs, others, strict=True)]

    def block(self, choices: Sequence[Choice]) -> Block:
        """The block, given what to do with a coordinate and its fiber."""
        crd, inputs = self.crd, self.inputs
        items = both(crd.is_value, *(i.is_item for i in inputs[1:]))
        same = [equal(crd.tag, i.tag) for i in inputs[1:]]
        stops = [put(o, tag=crd.tag) for o in self._outputs]
        self._draft.mode(
            "run",
            when(items, choices),
            when(both(crd.is_stop, *same), rule("stop", "run", takes=inputs, puts=stops)),
            when(both(crd.is_done, *same), rule("done", None, takes=inputs, puts=stops)),
            needs=inputs,
            expected="streams of one shape",
        )
        return self._draft.block()
