"""Designs that the CGRA refuses, each for one reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import t2s
from t2s import Func, ImageParam, RDom, Var
from t2s.core.expr import Expr, Parameter
from t2s.core.types import INT32, Type
from t2s.func.expressions import Expression
from t2s.graph.body import Receive, RegisterRead, RegisterWrite, Send, Statement
from t2s.graph.graph import Graph, MemorySpace
from t2s.graph.nodes import Register, Role
from tests.backends.builders import channel, graph, load, local, node, store, tensor
from tests.backends.cgra.designs import DOUBLE
from tests.hand_graphs import index, loop

HERE, LANE = Var("i"), Var("lane")


def mapped(make: Callable[[ImageParam, Var], Expression], n: int = 4, type: Type = DOUBLE) -> Func:
    """y[i] of x[i], by a function of x and i."""
    x, y = ImageParam(type, 1, name="x"), Func("y")
    y[HERE] = make(x, HERE)
    return y.bound(HERE, 0, n)


def vectors() -> Func:
    x, y = ImageParam(DOUBLE, 1, name="x"), Func("y")
    y[HERE] = x[HERE] + 1.0
    return y.bound(HERE, 0, 8).split(HERE, HERE, LANE, 4).vload(x).vstore(y)


def guarded_by_a_parameter() -> Func:
    n = t2s.Param(t2s.Int(32), name="n")
    x, y, k = ImageParam(DOUBLE, 1, name="x"), Func("y"), RDom(0, 4, name="k")
    y[HERE] = 0.0
    y[HERE] += t2s.select(k < n, x[k + HERE], 0.0)
    return y.bound(HERE, 0, 4)


def through_memory() -> Func:
    x, first, second = ImageParam(DOUBLE, 1, name="x"), Func("first"), Func("second")
    k = RDom(0, 3, name="k")
    first[HERE] = 0.0
    first[HERE] += x[HERE + k]
    second[HERE] = first[HERE] * 2.0
    return second.bound(HERE, 0, 4)


def chosen_of_four() -> Func:
    """Of two operands or four, by the iteration: all of them and a tag in one firing."""
    a, b, c, d = (ImageParam(DOUBLE, 1, name=name) for name in "abcd")
    y = Func("y")
    other = t2s.select(HERE < 3, c[HERE], d[HERE])
    y[HERE] = t2s.select(a[HERE] > b[HERE], c[HERE], other)
    return y.bound(HERE, 0, 8)


def one_of(count: int) -> Func:
    """Another array in each iteration."""
    arrays = [ImageParam(DOUBLE, 1, name=f"x{number}") for number in range(count)]
    y, value = Func("y"), arrays[0][HERE]
    for number, array in enumerate(arrays[1:], 1):
        value = t2s.select(number == HERE, array[HERE], value)
    y[HERE] = value
    return y.bound(HERE, 0, count)


def unknown_length() -> Graph:
    """A loop that is as long as a parameter."""
    plain = by_hand([TAKE, Send(channel="y_out", value=local("value"))], [])
    first, middle, last = plain.nodes
    length = Parameter(name="n", type=INT32)
    loops = (replace(middle.loops[0], extent=length),)
    return replace(plain, nodes=(first, replace(middle, loops=loops), last))


def open_array() -> Graph:
    """An array whose length is known when the design runs."""
    plain = by_hand([TAKE, Send(channel="y_out", value=local("value"))], [])
    x, y = plain.tensors
    return replace(plain, tensors=(x, replace(y, open=True)))


def halves() -> Func:
    return mapped(lambda x, i: x[i // 2], 5)


def long_sum(n: int = 4000) -> Func:
    x, y, k = ImageParam(DOUBLE, 1, name="x"), Func("y"), RDom(0, n, name="k")
    y[HERE] = 0.0
    y[HERE] += x[k]
    return y.bound(HERE, 0, n)


def by_hand(body: list[Statement], registers: list[Register], length: int = 8) -> Graph:
    """x through one PE with this body, which takes from ``x_in`` and sends to ``y_out``."""
    i = index("i")
    loops = (loop("i", length),)
    middle = node("middle", Role.RELAY, loops, body, registers=registers)
    return graph(
        "by_hand",
        (
            load("x_load", "x", "x_in", loops, (i,)),
            middle,
            store("y_store", "y", "y_out", loops, (i,)),
        ),
        (channel("x_in", "x_load", "middle"), channel("y_out", "middle", "y_store")),
        (tensor("x", length), tensor("y", length, role="output")),
    )


def kept(number: int) -> Register:
    return Register(name="kept", type=INT32, shape=(number,), distance=1)


def read(target: str, at: Expr) -> RegisterRead:
    return RegisterRead(target=target, register="kept", indices=(at,), type=INT32)


def written(at: Expr) -> RegisterWrite:
    return RegisterWrite(register="kept", indices=(at,), value=local("value"))


TAKE = Receive(target="value", channel="x_in", type=INT32)


def rest(number: Expr) -> Expr:
    return number % 8


def two_elements() -> Graph:
    """Adds the last two elements."""
    i = index("i")
    body = [
        TAKE,
        read("one", rest(i + 7)),
        read("two", rest(i + 6)),
        written(i),
        Send(channel="y_out", value=local("one") + local("two")),
    ]
    return by_hand(body, [kept(8)])


def taken_twice() -> Graph:
    again = Receive(target="other", channel="x_in", type=INT32)
    sent = Send(channel="y_out", value=local("value") + local("other"))
    return by_hand([TAKE, again, sent], [])


def sent_twice() -> Graph:
    sent = Send(channel="y_out", value=local("value"))
    return by_hand([TAKE, sent, sent], [])


def never_sent() -> Graph:
    return by_hand([TAKE], [])


def on_the_chip() -> Graph:
    plain = by_hand([TAKE, Send(channel="y_out", value=local("value"))], [])
    x, y = plain.tensors
    return replace(plain, tensors=(replace(x, place=MemorySpace.CHIP), y))
