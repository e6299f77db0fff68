"""Arrays in which not every point of the space domain has a PE."""

from __future__ import annotations

from dataclasses import replace

from t2s.core.expr import Select, const, equals
from t2s.core.types import INT32
from t2s.graph.body import Let, Receive, RegisterRead, RegisterWrite, Send
from t2s.graph.graph import Graph
from t2s.graph.nodes import Register, Role
from tests.backends.builders import (
    channel,
    graph,
    load,
    local,
    node,
    store,
    tensor,
)
from tests.hand_graphs import index, loop, space


def triangular_array(size: int = 4, length: int = 3) -> Graph:
    """PEs on and below the diagonal only: x enters on the diagonal and moves down its column.

    PE (i, j) gives ``(i + 1) * sum(x[:, j])``.
    """
    t, i, j = index("t"), index("i"), index("j")
    loops, pes = (loop("t", length),), (space("i", size), space("j", size))
    diagonal = equals(i, j)
    own, above = local("own"), local("above")
    body = (
        Receive(target="own", channel="x_in", type=INT32, condition=diagonal),
        Receive(target="above", channel="down", type=INT32, condition=j < i),
        Let(
            target="value",
            value=Select(condition=diagonal, if_true=own, if_false=above, type=INT32),
        ),
        Send(channel="down", value=local("value"), condition=i < size - 1),
        RegisterRead(target="before", register="sums", indices=(), type=INT32),
        Let(
            target="sum",
            value=Select(
                condition=equals(t, 0),
                if_true=const(0),
                if_false=local("before"),
                type=INT32,
            )
            + local("value") * (i + 1),
        ),
        RegisterWrite(register="sums", indices=(), value=local("sum")),
        Send(channel="out", value=local("sum"), condition=equals(t, length - 1)),
    )
    sums = Register(name="sums", type=INT32, shape=(), distance=1)
    array = node("array", Role.COMPUTE, loops, body, pes=pes, registers=(sums,))
    exists = i >= j
    return graph(
        "triangular_array",
        (
            load("x_load", "x", "x_in", loops, (t, j), pes=(space("j", size),)),
            replace(array, exists=exists),
            replace(store("y_store", "y", "out", (), (i, j), pes=pes), exists=exists),
        ),
        (
            channel("x_in", "x_load", "array", (size,), (j,)),
            channel("down", "array", "array", (size, size), (i + 1, j), (i, j)),
            channel("out", "array", "y_store", (size, size), (i, j)),
        ),
        (tensor("x", length, size), tensor("y", size, size, role="output")),
    )
