"""Arrays of values (Definition 3.5) and arithmetic on streams of them (Definition 3.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from t2s.core.expr import Expr, const
from t2s.core.location import SourceLocation
from t2s.graph.graph import StreamKind, StreamType, Tensor
from t2s.graph.nodes import Role
from t2s.sparse_repr.blocks.draft import (
    Block,
    BlockKind,
    Draft,
    In,
    load,
    pass_done,
    put,
    rule,
    store,
    when,
)
from t2s.sparse_repr.blocks.expressions import (
    EMPTY_TAG,
    both,
    cast,
    equal,
    multiply,
    select,
    zero,
)


def array_load(
    reference: StreamType,
    values: Tensor,
    *,
    lanes: int = 1,
    missing: Expr | None = None,
    location: SourceLocation | None = None,
) -> Block:
    """The element of ``values`` at each reference; with lanes, vector ``ref`` of so many elements.

    N gives the value ``missing``, or N where that is ``None``.  Ports: ``ref``; ``val``.
    """
    draft = Draft(BlockKind.ARRAY, Role.LOAD, location)
    draft.tensor(values)
    ref = draft.input("ref", reference)
    type = values.type.with_lanes(lanes)
    val = draft.output("val", type, StreamKind.VALUE, reference.nesting)
    statement, loaded = load("loaded", values, first_of(ref.value, lanes), lanes)
    lost = put(val, tag=EMPTY_TAG) if missing is None else put(val, missing)
    draft.mode(
        "run",
        when(
            ref.is_value,
            rule("load", "run", takes=[ref], body=[statement], puts=[put(val, loaded)]),
        ),
        when(ref.is_stop, rule("stop", "run", takes=[ref], puts=[put(val, tag=ref.tag)])),
        pass_done(ref, val),
        when(ref.is_empty, rule("missing", "run", takes=[ref], puts=[lost])),
        needs=[ref],
        expected="references, N, stops or D",
    )
    return draft.block()


def array_store(
    reference: StreamType,
    value: StreamType,
    values: Tensor,
    *,
    location: SourceLocation | None = None,
) -> Block:
    """Store each value at the reference beside it, vectors as ``array_load`` loads them.

    N as the reference or the value stores nothing.  Ports: ``ref``, ``val``.
    """
    draft = Draft(BlockKind.ARRAY, Role.STORE, location)
    draft.tensor(values)
    ref, val = draft.input("ref", reference), draft.input("val", value)
    pair = [ref, val]
    kept = store(values, first_of(ref.value, value.element.lanes), val.value)
    draft.mode(
        "run",
        when(both(ref.is_value, val.is_value), rule("store", "run", takes=pair, body=[kept])),
        when(both(ref.is_item, val.is_item), rule("nothing", "run", takes=pair)),
        when(both(ref.is_stop, equal(ref.tag, val.tag)), rule("stop", "run", takes=pair)),
        when(both(ref.is_done, val.is_done), rule("done", None, takes=pair)),
        needs=pair,
        expected="a value for each reference, and the same stops",
    )
    return draft.block()


def first_of(reference: Expr, lanes: int) -> Expr:
    """The first element of a vector with that number."""
    return reference if lanes == 1 else multiply(reference, const(lanes, reference.type))


def compute(
    operands: Sequence[StreamType],
    function: Callable[..., Expr],
    *,
    missing: Sequence[Expr] | None = None,
    lost: Callable[..., Expr] | None = None,
    instead: Expr | None = None,
    location: SourceLocation | None = None,
) -> Block:
    """``function`` of the operands, element by element; an ALU.

    The function gets one expression for each operand and gives one; it is any expression of the
    graph, so any semiring will do.  N as an operand stands for its value in ``missing`` (zero, if
    it is not given), unless ``lost``, of which operands are N, says that there is nothing to
    compute: then N is put, or ``instead``.  All operands have one shape.  Ports: ``in0``, ``in1``,
    ...; ``val``.
    """
    draft = Draft(BlockKind.COMPUTE, Role.COMPUTE, location)
    inputs = [draft.input(f"in{n}", stream) for n, stream in enumerate(operands)]
    zeros = missing or [zero(stream.element) for stream in operands]
    values = [
        select(i.is_value, i.value, cast(value, i.stream.element))
        for i, value in zip(inputs, zeros, strict=True)
    ]
    result = function(*values)
    first = inputs[0]
    val = draft.output("val", result.type, StreamKind.VALUE, first.stream.nesting)
    nothing = put(val, tag=EMPTY_TAG) if instead is None else put(val, instead)
    empty = (
        []
        if lost is None
        else [both(*(i.is_item for i in inputs), lost(*(i.is_empty for i in inputs)))]
    )
    draft.mode(
        "run",
        *(when(one, rule("nothing", "run", takes=inputs, puts=[nothing])) for one in empty),
        when(
            both(*(i.is_item for i in inputs)),
            rule("compute", "run", takes=inputs, puts=[put(val, result)]),
        ),
        when(
            both(first.is_stop, *_same(inputs)),
            rule("stop", "run", takes=inputs, puts=[put(val, tag=first.tag)]),
        ),
        when(
            both(first.is_done, *_same(inputs)),
            rule("done", None, takes=inputs, puts=[put(val, tag=first.tag)]),
        ),
        needs=inputs,
        expected="operands of one shape",
    )
    return draft.block()


def _same(inputs: Sequence[In]) -> list[Expr]:
    return [equal(inputs[0].tag, other.tag) for other in inputs[1:]]
