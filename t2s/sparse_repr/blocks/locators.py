"""Locators: the reference of a coordinate, found by address or by search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from t2s.core.expr import Expr, Local, all_hold, const, equals
from t2s.graph.build import copy, load, put, rule, when
from t2s.graph.graph import StreamKind, StreamType, Tensor
from t2s.graph.nodes import EMPTY, Choice, Role, Rule, Search
from t2s.sparse_repr.blocks.alu import Alu
from t2s.sparse_repr.blocks.connections import Stream
from t2s.sparse_repr.blocks.draft import BlockKind, Draft, StreamBlock, ends
from t2s.sparse_repr.blocks.expressions import Formula, cast
from t2s.sparse_repr.blocks.lists import DiagramBlock, Known, Lists, Nested, Placing, each


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseLocator(StreamBlock):
    """The reference of each coordinate in its fiber of a dense level (Definition 4.1).

    ``fiber`` has the shape of ``coordinates`` (repeat a reference to get it), and so have the
    streams ``beside``, which are passed on.  An empty fiber N gives N.  Ports: ``crd``, ``fiber``,
    ``in0``, ...; ``crd_out``, ``ref``, ``out0``, ...
    """

    kind = BlockKind.LOCATE

    size: int

    def draft(
        self, draft: Draft, coordinates: StreamType, fiber: StreamType, *beside: StreamType
    ) -> None:
        type = fiber.element
        parts = _Located(draft, coordinates, fiber, beside)
        position = parts.fiber.value * const(self.size, type) + cast(parts.crd.value, type)
        hit = rule("hit", "run", takes=parts.inputs, puts=[put(parts.ref, position), *parts.passed])
        miss = rule(
            "empty", "run", takes=parts.inputs, puts=[put(parts.ref, tag=EMPTY), *parts.passed]
        )
        parts.treat([when(parts.fiber.is_value, hit), when(None, miss)])


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedLocator(StreamBlock):
    """The reference of each coordinate in a compressed level, by binary search, one per cycle.

    A coordinate that the fiber lacks is dropped from all outputs; with ``keep`` its reference is N.
    """

    kind = BlockKind.LOCATE
    role = Role.LOAD

    positions: Tensor
    stored: Tensor
    keep: bool = False

    def draft(
        self, draft: Draft, coordinates: StreamType, fiber: StreamType, *beside: StreamType
    ) -> None:
        type = fiber.element
        parts = _Located(draft, coordinates, fiber, beside)
        first, begin = load("begin", self.positions, parts.fiber.value)
        second, end = load("end", self.positions, parts.fiber.value + 1)
        search = Search(
            target="position",
            tensor=self.stored.name,
            begin=cast(begin, type),
            end=cast(end, type),
            value=cast(parts.crd.value, self.stored.type),
        )
        position = Local(name="position", type=type)
        loaded, value = load("there", self.stored, position)
        hit = rule("hit", "run", takes=parts.inputs, puts=[put(parts.ref, position), *parts.passed])
        lost = [put(parts.ref, tag=EMPTY), *parts.passed] if self.keep else []

        def miss(name: str) -> Rule:
            return rule(name, "run", takes=parts.inputs, puts=lost)

        inside = [
            when(
                position < cast(end, type),
                [
                    when(equals(value, cast(parts.crd.value, self.stored.type)), hit),
                    when(None, miss("another")),
                ],
                body=[loaded],
            ),
            when(None, miss("none")),
        ]
        parts.treat(
            [
                when(parts.fiber.is_value, inside, body=[first, second, search]),
                when(None, miss("empty")),
            ]
        )


class _Located:
    """The ports and rules that all locators share."""

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

    def treat(self, choices: Sequence[Choice]) -> None:
        """Write the mode, given the choices for a coordinate and its fiber."""
        crd, inputs = self.crd, self.inputs
        items = all_hold(crd.is_value, *(i.is_item for i in inputs[1:]))
        self._draft.mode(
            "run",
            when(items, choices),
            *ends(inputs, *self._outputs),
            needs=inputs,
            expected="streams of one shape",
        )


@dataclass(frozen=True, slots=True)
class _Address(Formula):
    """A coordinate times a stride, plus a second operand, if any."""

    stride: int

    def __call__(self, *operands: Expr) -> Expr:
        at, *before = operands
        step = at * self.stride
        return step if not before else before[0] + step


@dataclass(frozen=True, slots=True, kw_only=True)
class LocateAddress(DiagramBlock):
    """``reference * scale + coordinate * stride``: the address of a coordinate in a dense level.

    ``scale`` and ``stride`` are products of extents of variables.  Empty references stay empty.
    Without a stream of references they are zero.
    """

    kind = BlockKind.LOCATE

    scale: tuple[str, ...] = ()
    stride: tuple[str, ...] = ()

    def meaning(self, known: Known, coordinates: Lists, *references: Lists) -> tuple[Nested, ...]:
        scale, stride = prod(map(known.extent, self.scale)), prod(map(known.extent, self.stride))

        def address(at: int, above: int | None = 0) -> int | None:
            return None if above is None else above * scale + at * stride

        return (each(address, coordinates.depth, coordinates, *references),)

    def place(self, graph: Placing, coordinates: Stream, *references: Stream) -> tuple[Stream, ...]:
        name = f"locate_{graph.about}_{graph.loop}"
        scale, stride = prod(map(graph.extent, self.scale)), prod(map(graph.extent, self.stride))
        if references and stride == 1 and self.scale:
            return graph.streams.put(DenseLocator(size=scale), name, coordinates, *references)[1:]
        return graph.streams.put(Alu(function=_Address(stride)), name, coordinates, *references)
