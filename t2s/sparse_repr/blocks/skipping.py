"""Coordinate skipping [SAM, sec. 4.2]: an intersection tells its scanners how far to skip.

For every coordinate that ``joins.intersect`` takes from a side it sends one *request* into the
``skip`` stream of that side: N after a match, else the coordinate that the side has to reach (the
largest one of the type if the fiber has ended on another side).  The scanner runs at most ``lag``
coordinates ahead of the requests; then it takes one before it emits the next coordinate, and
continues at the first coordinate that is not smaller.  What is skipped therefore does not depend on
timing.  (In the published simulator it does: a scanner runs ahead as far as it can, and requests
that arrive too late are dropped.  A larger lag approximates that.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from t2s.core.expr import Expr, Local, const, zero
from t2s.core.types import INT32, Type
from t2s.graph.body import Load, Statement
from t2s.graph.build import In, Out, load, put, rule, when, write
from t2s.graph.graph import StreamKind, StreamType, Tensor
from t2s.graph.nodes import DONE, Choice, Role, Search
from t2s.sparse_repr.blocks.connections import Connections, Stream
from t2s.sparse_repr.blocks.draft import BlockKind, Draft, StreamBlock
from t2s.sparse_repr.blocks.expressions import FIRST_STOP, cast, decreased, increased
from t2s.sparse_repr.blocks.joins import Intersecter

LAG = 2
"""Coordinates on their way: a token goes there in one cycle, and the wish comes back in another."""


def skip_stream(type: Type) -> StreamType:
    """The stream of skip requests for coordinates of a type."""
    return StreamType(element=type, kind=StreamKind.CONTROL, nesting=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippingScanner(StreamBlock):
    """A compressed level scanner that skips coordinates on request of its intersection.

    It runs at most ``lag`` coordinates ahead of the requests that it has taken.
    Ports: ``ref``, ``skip``; ``crd``, ``out_ref``.
    """

    kind = BlockKind.SCAN
    role = Role.LOAD

    positions: Tensor
    coordinates: Tensor
    lag: int = LAG

    def draft(self, draft: Draft, reference: StreamType) -> None:
        ref = draft.input("ref", reference)
        skip = draft.input("skip", skip_stream(self.coordinates.type))
        nesting = reference.nesting + 1
        crd = draft.output("crd", self.coordinates.type, StreamKind.COORDINATE, nesting)
        out = draft.output("out_ref", reference.element, StreamKind.REFERENCE, nesting)
        state = _SkipState(draft, reference.element, (self.positions, self.coordinates), (crd, out))
        _idle_mode(draft, ref, state)
        _run_mode(draft, ref, skip, state, self.lag)
        pending = zero(INT32) < state.old
        draft.mode(
            "drain",
            when(
                pending,
                [
                    when(
                        None,
                        rule(
                            "drain",
                            "drain",
                            takes=[skip],
                            body=[write(state.old, decreased(state.old))],
                        ),
                    )
                ],
                needs=[skip],
            ),
            when(None, rule("end", None)),
        )


class _SkipState:
    """The state of the scanner: ``new`` and ``old`` count outstanding requests of this and
    earlier fibers.
    """

    def __init__(
        self, draft: Draft, type: Type, tensors: tuple[Tensor, Tensor], outputs: tuple[Out, Out]
    ) -> None:
        self.type = type
        self.positions, self.coordinates = tensors
        self.outputs = outputs
        self.at, self.end = draft.register("at", type), draft.register("end", type)
        self.new, self.old = draft.register("new"), draft.register("old")

    def opened(self, ref: In) -> tuple[list[Load], list[Statement]]:
        """The bounds of a fiber, and the registers that hold them."""
        first, begin = load("begin", self.positions, ref.value)
        second, finish = load("finish", self.positions, ref.value + 1)
        bounds = [write(self.at, cast(begin, self.type)), write(self.end, cast(finish, self.type))]
        return [first, second], [*bounds, *self.closed()]

    def nothing(self) -> list[Statement]:
        """An empty fiber."""
        return [write(self.at, zero(self.type)), write(self.end, zero(self.type)), *self.closed()]

    def closed(self) -> list[Statement]:
        """Outstanding requests now belong to an earlier fiber."""
        return [write(self.old, self.old + self.new), write(self.new, zero(INT32))]

    def tokens(
        self, name: str, after: str, position: Expr, due: Expr, takes: Sequence[In], old: Expr
    ) -> Choice:
        """Emit the element at a position."""
        loaded, coordinate = load(f"{name}_crd", self.coordinates, position)
        body: list[Statement] = [
            write(self.at, position + 1),
            write(self.new, due),
        ]
        body += [] if old is self.old else [write(self.old, old)]
        puts = [put(o, v) for o, v in zip(self.outputs, (coordinate, position), strict=True)]
        return when(None, rule(name, after, takes=takes, body=body, puts=puts), body=[loaded])


def _idle_mode(draft: Draft, ref: In, state: _SkipState) -> None:
    loads, bounds = state.opened(ref)
    raised = [put(o, tag=increased(ref.tag)) for o in state.outputs]
    draft.mode(
        "idle",
        when(ref.is_value, rule("open", "run", takes=[ref], body=bounds), body=loads),
        when(ref.is_empty, rule("open_missing", "run", takes=[ref], body=state.nothing())),
        when(ref.is_stop, rule("pass_stop", "idle", takes=[ref], puts=raised)),
        when(
            ref.is_done,
            rule(
                "done",
                "drain",
                takes=[ref],
                body=state.closed(),
                puts=[put(o, tag=DONE) for o in state.outputs],
            ),
        ),
        needs=[ref],
        expected="references, N, stops or D",
    )


def _run_mode(draft: Draft, ref: In, skip: In, state: _SkipState, lag: int) -> None:
    more = state.at < state.end
    ahead = state.new + state.old < const(lag, INT32)
    search = Search(
        target="found",
        tensor=state.coordinates.name,
        begin=state.at,
        end=state.end,
        value=skip.value,
    )
    position = Local(name="found", type=state.type)
    over = [write(state.at, state.end), write(state.new, decreased(state.new))]
    wishes = [
        when(
            zero(INT32) < state.old,
            [
                state.tokens(
                    "ignore", "run", state.at, increased(state.new), [skip], decreased(state.old)
                )
            ],
        ),
        when(skip.is_empty, [state.tokens("go_on", "run", state.at, state.new, [skip], state.old)]),
        when(
            skip.is_value,
            [
                when(
                    position < state.end,
                    [state.tokens("skip", "run", position, state.new, [skip], state.old)],
                ),
                when(None, rule("skip_rest", "run", takes=[skip], body=over)),
            ],
            body=[search],
        ),
    ]
    free = state.tokens("next", "run", state.at, increased(state.new), [], state.old)
    draft.mode(
        "run",
        when(more & ahead, [free]),
        when(more, wishes, needs=[skip]),
        when(None, _closing(ref, state), needs=[ref]),
        expected="references, N, stops or D, and a wish for each coordinate",
    )


def _closing(ref: In, state: _SkipState) -> list[Choice]:
    loads, bounds = state.opened(ref)
    stops = [put(o, tag=FIRST_STOP) for o in state.outputs]
    raised = [put(o, tag=increased(ref.tag)) for o in state.outputs]
    missing = rule("close_missing", "run", takes=[ref], puts=stops, body=state.nothing())
    return [
        when(
            ref.is_value,
            rule("close_open", "run", takes=[ref], puts=stops, body=bounds),
            body=loads,
        ),
        when(
            ref.is_stop,
            rule("close_stop", "idle", takes=[ref], puts=raised, body=state.closed()),
        ),
        when(ref.is_done, rule("close_last", "idle", puts=stops, body=state.closed())),
        when(ref.is_empty, missing),
    ]


def intersect_skipping(
    to: Connections,
    levels: Sequence[tuple[Stream, Tensor, Tensor]],
    name: str,
    lag: int = LAG,
) -> tuple[Stream, tuple[Stream, ...]]:
    """Scan and intersect compressed levels: the common coordinates, the references of each side.

    ``levels`` are (references, positions, coordinates).  A scanner runs at most ``lag`` coordinates
    ahead.
    """
    sides: list[Stream] = []
    for ref, positions, coordinates in levels:
        scanner = SkippingScanner(positions=positions, coordinates=coordinates, lag=lag)
        crd, out = to.put(scanner, "scan", ref, later=["skip"])
        to.comes_from(crd, positions, coordinates)
        to.require_order(crd)
        sides += [crd, out]
    count = len(levels)
    outs = to.put(Intersecter(sides=(2,) * count, skipping=True), name, *sides)
    for crd, wish in zip(sides[::2], outs[count + 1 :], strict=True):
        to.connect(wish, crd.node, "skip", lag)
    return outs[count], outs[:count]
