"""Shape one stream by the lists of another: repeat its tokens, or regroup them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from t2s.core.expr import Expr, const, equals, unequal
from t2s.core.types import INT32
from t2s.graph.build import In, Out, copy, put, rule, when, write
from t2s.graph.graph import StreamType
from t2s.graph.nodes import DONE, Choice
from t2s.sparse_repr.blocks.connections import Stream
from t2s.sparse_repr.blocks.draft import BlockKind, Draft
from t2s.sparse_repr.blocks.expressions import decreased, increased
from t2s.sparse_repr.blocks.lists import DiagramBlock, Known, Lists, Nested, Placing, each


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat(DiagramBlock):
    """Each token of ``repeated`` as often as its fiber has coordinates (Definition 3.4).

    ``coordinates`` is nested one level deeper than ``repeated``.  One token per cycle; only an
    empty fiber at the end of its list costs another cycle.  Ports: ``crd``, ``ref``; ``out``.
    """

    kind = BlockKind.REPEAT

    def meaning(self, known: Known, by: Lists, repeated: Lists) -> tuple[Nested, ...]:
        return (each(lambda fiber, token: [token] * len(fiber), repeated.depth, by, repeated),)

    def place(self, graph: Placing, by: Stream, repeated: Stream) -> tuple[Stream, ...]:
        return graph.streams.put(
            self, f"repeat_{graph.about or 'value'}_{graph.loop}", by, repeated
        )

    def draft(self, draft: Draft, coordinates: StreamType, repeated: StreamType) -> None:
        crd, ref = draft.input("crd", coordinates), draft.input("ref", repeated)
        out = draft.output("out", repeated.element, repeated.kind, coordinates.nesting)
        held, held_tag = draft.register("held", repeated.element), draft.register("held_tag", INT32)
        after = draft.register("after", INT32)
        pair = [crd, ref]
        keep = [write(held, ref.value), write(held_tag, ref.tag)]
        close = [write(after, decreased(crd.tag))]
        same = equals(crd.tag, increased(ref.tag))
        stop = put(out, tag=crd.tag)
        expected = "one token of ref for each fiber of crd, with stops one level below those of crd"
        higher = crd.ends_outer_list
        draft.mode(
            "start",
            when(
                crd.is_value & ref.is_item,
                rule("first", "hold", takes=pair, body=keep, puts=[copy(out, ref)]),
            ),
            when(
                crd.ends_list & ref.is_item,
                rule("empty", "start", takes=pair, puts=[stop]),
            ),
            when(
                higher & ref.is_item,
                rule("empty_last", "close", takes=pair, body=close, puts=[stop]),
            ),
            when(higher & same, rule("empty_list", "start", takes=pair, puts=[stop])),
            when(
                crd.is_done & ref.is_done,
                rule("done", None, takes=pair, puts=[put(out, tag=DONE)]),
            ),
            needs=pair,
            expected=expected,
        )
        draft.mode(
            "hold",
            when(crd.is_value, rule("again", "hold", takes=[crd], puts=[put(out, held, held_tag)])),
            when(crd.ends_list, rule("stop", "start", takes=[crd], puts=[stop])),
            when(
                higher,
                [when(same, rule("higher_stop", "start", takes=pair, puts=[stop]))],
                needs=[ref],
            ),
            needs=[crd],
            expected=expected,
        )
        closing = when(equals(ref.tag, after), rule("close", "start", takes=[ref]))
        draft.mode("close", closing, needs=[ref], expected=expected)


_EXPECTED = "an item for each item of like, in lists that join two levels of like"


@dataclass(frozen=True, slots=True, kw_only=True)
class Regroup(DiagramBlock):
    """Put items back into the innermost lists of ``like``: the inverse of ``Flattener``.

    A ``Flattener`` merges two levels into one list.  Results computed for its items, a value or a
    list each, get the two levels back from the inner one of the flattened streams: ``items`` has
    one list where ``like`` has a list of lists.  An item is a value or a list of any depth;
    ``like`` has a token for each item, whose value is ignored.
    Ports: ``in``, ``like``; ``out``, one level deeper than ``in``.
    """

    kind = BlockKind.CONVERT
    counted = ("regroup",)

    def meaning(self, known: Known, items: Lists, like: Lists) -> tuple[Nested, ...]:
        def lists(items: list[Any], rows: list[list[Any]]) -> Nested:
            rest = iter(items)
            return [[next(rest) for _ in row] for row in rows]

        return (each(lists, like.depth - 2, items, like),)

    def place(self, graph: Placing, items: Stream, like: Stream) -> tuple[Stream, ...]:
        return graph.streams.put(self, f"regroup_{graph.loop}", items, like)

    def draft(self, draft: Draft, items: StreamType, like: StreamType) -> None:
        source, shape = draft.input("in", items), draft.input("like", like)
        depth = items.nesting - like.nesting + 1
        out = draft.output("out", items.element, items.kind, items.nesting + 1)
        _Regroup(draft, source, shape, out, depth).modes()


class _Regroup:
    """The ports, and ``own``: the tag of the stop between two items that are lists."""

    def __init__(self, draft: Draft, source: In, like: In, out: Out, depth: int) -> None:
        self._draft = draft
        self._source, self._like, self._out = source, like, out
        self._depth, self._own = depth, const(depth, INT32)
        self._raised = like.tag + self._own

    def modes(self) -> None:
        source, like, out = self._source, self._like, self._out
        both_in = [source, like]
        passed = [copy(out, source)]
        if self._depth:
            begin = rule("begin", "copy", takes=both_in, puts=passed)
            empty = rule("empty", "ended", takes=[like])
            items = [when(self._is_inside(), begin), when(source.is_stop, empty)]
        else:
            item = rule("item", "item", takes=both_in, puts=passed)
            items = [when(source.is_item, item)]
        no_list = rule("no_item", "item", takes=[like], puts=[put(out, tag=self._raised)])
        done = rule("done", None, takes=both_in, puts=[put(out, tag=DONE)])
        self._draft.mode(
            "item",
            when(like.is_item, items, needs=[source]),
            when(like.ends_list, no_list),
            when(like.is_stop, [self._lists_end("lists")], needs=[source]),
            when(like.is_done, [when(source.is_done, done)], needs=[source]),
            needs=[like],
            expected=_EXPECTED,
        )
        if not self._depth:
            return
        following = rule("copy", "copy", takes=[source], puts=passed)
        self._draft.mode(
            "copy",
            when(self._is_inside(), following),
            when(source.is_stop, self._item_ends("item"), needs=[like]),
            needs=[source],
            expected=_EXPECTED,
        )
        ends = self._item_ends("empty_item")
        self._draft.mode("ended", *ends, needs=both_in, expected=_EXPECTED)

    def _is_inside(self) -> Expr:
        """The head of ``in`` belongs to an item, and does not end it."""
        source = self._source
        return (source.tag < self._own) & unequal(source.tag, DONE)

    def _lists_end(self, name: str) -> Choice:
        """A higher stop of ``like``, and the one of ``in`` that ends the same list of lists."""
        same = equals(self._source.tag, decreased(self._raised))
        end = rule(
            f"{name}_end",
            "item",
            takes=[self._source, self._like],
            puts=[put(self._out, tag=self._raised)],
        )
        return when(same, end)

    def _item_ends(self, name: str) -> Sequence[Choice]:
        """At the stop of ``in`` that ends an item: ``like`` tells which list ends with it."""
        source, like, out = self._source, self._like, self._out
        between = equals(source.tag, self._own)
        raised = [put(out, tag=self._raised)]
        next_item = rule(f"{name}_next", "item", takes=[source], puts=[copy(out, source)])
        list_end = rule(f"{name}_list", "item", takes=[source, like], puts=raised)
        last_list = rule(f"{name}_last_list", "item", takes=[like], puts=raised)
        return [
            when(like.is_item & between, next_item),
            when(like.ends_list, [when(between, list_end), when(None, last_list)]),
            when(like.is_stop, [self._lists_end(name)]),
        ]
