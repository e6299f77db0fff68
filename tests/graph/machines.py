"""Small machines for the tests."""

from __future__ import annotations

from t2s.core.expr import Expr, Local, const, equals, unequal
from t2s.core.types import INT32
from t2s.graph.body import Load, RegisterWrite, Store
from t2s.graph.graph import Channel, Graph, MemorySpace, StreamKind, StreamType, Tensor, TensorRole
from t2s.graph.nodes import (
    DONE,
    VALUE,
    Choice,
    Head,
    Machine,
    Mode,
    Put,
    Register,
    Role,
    Rule,
    stop,
)


def local(name: str) -> Local:
    return Local(name=name, type=INT32)


def is_tag(name: str, tag: int) -> Expr:
    return equals(local(name), tag)


def source() -> Machine:
    """Puts the elements of ``x`` up to the first 0 as one fiber, a stop and a done."""
    at = local("at")
    step = RegisterWrite(register="at", indices=(), value=at + 1)
    load = Load(target="loaded", tensor="x", indices=(at,), type=INT32)
    more = Choice(
        when=unequal(local("loaded"), 0),
        inside=Rule(
            name="next", body=(step,), puts=(Put(channel="xs", value=local("loaded")),), next="run"
        ),
    )
    end = Choice(
        inside=Rule(name="stop", puts=(Put(channel="xs", tag=const(stop(0))),), next="last")
    )
    done = Rule(name="done", puts=(Put(channel="xs", tag=const(DONE)),))
    return Machine(
        name="source",
        role=Role.LOAD,
        heads=(),
        registers=(Register(name="at", type=INT32, shape=(), distance=1),),
        modes=(
            Mode(name="run", needs=(), choices=(Choice(body=(load,), inside=(more, end)),)),
            Mode(name="last", needs=(), choices=(Choice(inside=done),)),
        ),
    )


def sink() -> Machine:
    """Stores values one after the other, until the stream is done."""
    at = local("place")
    step = RegisterWrite(register="place", indices=(), value=at + 1)
    store = Store(tensor="y", indices=(at,), value=local("value"))
    return Machine(
        name="sink",
        role=Role.STORE,
        heads=(Head(channel="xs", value="value", tag="tag"),),
        registers=(Register(name="place", type=INT32, shape=(), distance=1),),
        modes=(
            Mode(
                name="take",
                needs=("xs",),
                expected="values and stops of level 0",
                choices=(
                    Choice(
                        when=is_tag("tag", VALUE),
                        inside=Rule(name="store", body=(store, step), takes=("xs",), next="take"),
                    ),
                    Choice(
                        when=is_tag("tag", stop(0)),
                        inside=Rule(name="skip", takes=("xs",), next="take"),
                    ),
                    Choice(when=is_tag("tag", DONE), inside=Rule(name="end", takes=("xs",))),
                ),
            ),
        ),
    )


def copying(*, place: MemorySpace = MemorySpace.MEMORY) -> Graph:
    """A graph of two machines that copies ``x`` into ``y`` up to the first 0."""
    return Graph(
        name="copying",
        nodes=(source(), sink()),
        channels=(
            Channel(
                name="xs",
                stream=StreamType(element=INT32, kind=StreamKind.COORDINATE, nesting=1),
                source="source",
                sink="sink",
            ),
        ),
        tensors=(
            Tensor(name="x", type=INT32, shape=(0,), role=TensorRole.INPUT, open=True, place=place),
            Tensor(
                name="y", type=INT32, shape=(0,), role=TensorRole.OUTPUT, open=True, place=place
            ),
        ),
    )
