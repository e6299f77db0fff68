"""Repeating the tokens of one stream over the fibers of another one."""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.types import INT32
from t2s.graph.graph import StreamType
from t2s.sparse_repr.blocks.connections import Stream
from t2s.sparse_repr.blocks.draft import (
    BlockKind,
    Draft,
    copy,
    put,
    rule,
    when,
    write,
)
from t2s.sparse_repr.blocks.expressions import (
    DONE_TAG,
    FIRST_STOP,
    both,
    decreased,
    equal,
    increased,
    less,
)
from t2s.sparse_repr.blocks.lists import DiagramBlock, Known, Lists, Nested, Placing, each


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat(DiagramBlock):
    """Each token of ``repeated`` as often as its fiber has coordinates (Definition 3.4).

    ``coordinates`` is nested one level deeper than ``repeated``.  One token per cycle; only an
    empty fiber that is the last of its list costs another cycle.  Ports: ``crd``, ``ref``; ``out``.
    """

    kind = BlockKind.REPEAT

    def meaning(self, known: Known, by: Lists, given: Lists) -> tuple[Nested, ...]:
        return (each(lambda fiber, token: [token] * len(fiber), given.depth, by, given),)

    def place(self, graph: Placing, by: Stream, given: Stream) -> tuple[Stream, ...]:
        return graph.streams.put(self, f"repeat_{graph.about or 'value'}_{graph.loop}", by, given)

    def draft(self, draft: Draft, coordinates: StreamType, repeated: StreamType) -> None:
        crd, ref = draft.input("crd", coordinates), draft.input("ref", repeated)
        out = draft.output("out", repeated.element, repeated.kind, coordinates.nesting)
        held, held_tag = draft.register("held", repeated.element), draft.register("held_tag", INT32)
        after = draft.register("after", INT32)
        pair = [crd, ref]
        keep = [write(held, ref.value), write(held_tag, ref.tag)]
        close = [write(after, decreased(crd.tag))]
        same = equal(crd.tag, increased(ref.tag))
        stop = put(out, tag=crd.tag)
        expected = "one token of ref for each fiber of crd, with stops one level below those of crd"
        higher = less(FIRST_STOP, crd.tag)
        draft.mode(
            "start",
            when(
                both(crd.is_value, ref.is_item),
                rule("first", "hold", takes=pair, body=keep, puts=[copy(out, ref)]),
            ),
            when(
                both(equal(crd.tag, FIRST_STOP), ref.is_item),
                rule("empty", "start", takes=pair, puts=[stop]),
            ),
            when(
                both(higher, ref.is_item),
                rule("empty_last", "close", takes=pair, body=close, puts=[stop]),
            ),
            when(both(higher, same), rule("empty_list", "start", takes=pair, puts=[stop])),
            when(
                both(crd.is_done, ref.is_done),
                rule("done", None, takes=pair, puts=[put(out, tag=DONE_TAG)]),
            ),
            needs=pair,
            expected=expected,
        )
        draft.mode(
            "hold",
            when(crd.is_value, rule("again", "hold", takes=[crd], puts=[put(out, held, held_tag)])),
            when(equal(crd.tag, FIRST_STOP), rule("stop", "start", takes=[crd], puts=[stop])),
            when(
                higher,
                [when(same, rule("higher_stop", "start", takes=pair, puts=[stop]))],
                needs=[ref],
            ),
            needs=[crd],
            expected=expected,
        )
        closing = when(equal(ref.tag, after), rule("close", "start", takes=[ref]))
        draft.mode("close", closing, needs=[ref], expected=expected)
