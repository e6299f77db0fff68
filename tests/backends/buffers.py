"""Feeders that keep values on chip and send them more than once."""

from __future__ import annotations

from t2s.core.expr import conjunction
from t2s.core.types import INT32
from t2s.graph.body import Load, Receive, RegisterRead, RegisterWrite, Send
from t2s.graph.graph import Graph
from t2s.graph.nodes import Register, Role
from tests.backends.builders import (
    channel,
    graph,
    local,
    node,
    store,
    tensor,
)
from tests.hand_graphs import index, loop, space


def double_buffer(
    writes: int = 3, repeats: int = 4, periods: int = 3, *, pes: int = 3, lanes: int = 8
) -> Graph:
    """Every PE keeps ``writes`` vectors and sends each of them ``repeats`` times in a row.

    One counter: banks take turns, and one is filled at the end of the period that reads the other.
    """
    length = writes * repeats
    step, p = index("step"), index("p")
    period = step // length
    place = step % length
    filling = conjunction(period < periods, place >= length - writes)
    first = length - writes
    loops = (loop("step", periods * length + writes, first),)
    type, other = INT32.with_lanes(lanes), period + 1
    read_at = place // repeats
    write_at = (place + writes) % length
    body = (
        Receive(target="new", channel="x_in", type=type, condition=filling),
        RegisterWrite(
            register="kept",
            indices=(period % 2, write_at),
            value=local("new", type),
            condition=filling,
        ),
        RegisterRead(
            target="value",
            register="kept",
            indices=(other % 2, read_at),
            type=type,
        ),
        Send(channel="out", value=local("value", type), condition=period >= 1),
    )
    kept = Register(name="kept", type=type, shape=(2, writes), distance=1)
    feeder = node("feeder", Role.RELAY, loops, body, pes=(space("p", pes),), registers=(kept,))
    n, w, r = index("n"), index("w"), index("r")
    filled, sent = (loop("n", periods), loop("w", writes)), (loop("r", repeats),)
    unit, at = (space("p", pes),), w * lanes
    loader = node(
        "x_load",
        Role.LOAD,
        filled,
        (
            Load(target="value", tensor="x", indices=(p, n, at), type=type),
            Send(channel="x_in", value=local("value", type)),
        ),
        pes=unit,
    )
    return graph(
        "double_buffer",
        (
            loader,
            feeder,
            store("y_store", "y", "out", (*filled, *sent), (p, n, r, at), pes=unit, element=type),
        ),
        (
            channel("x_in", "x_load", "feeder", (pes,), (p,), element=type),
            channel("out", "feeder", "y_store", (pes,), (p,), element=type),
        ),
        (
            tensor("x", pes, periods, writes * lanes),
            tensor("y", pes, periods, repeats, writes * lanes, role="output"),
        ),
    )
