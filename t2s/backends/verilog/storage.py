"""How many tokens a channel ever has to hold."""

from __future__ import annotations

from math import prod

import numpy as np

from t2s.core.expr import Const, Expr, Parameter, evaluate, index_names
from t2s.core.walk import walk
from t2s.graph.body import Send
from t2s.graph.graph import Channel, Graph
from t2s.graph.nodes import PEArray

MOST_POINTS = 1 << 20
"""The most iterations at which a condition is evaluated."""


def most_tokens(graph: Graph, channel: Channel) -> int | None:
    """The most tokens that one element of a channel ever gets; ``None`` if that is not known.

    An element of so much capacity never is full: it makes no firing wait.
    """
    node = graph.node(channel.source)
    if not isinstance(node, PEArray):
        return None
    bounds = [bound for loop in node.loops for bound in (loop.minimum, loop.extent)]
    if not all(isinstance(bound, Const) for bound in bounds):
        return None
    sends = [s for s in node.body if isinstance(s, Send) and s.channel == channel.name]
    return sum(_most_firings(node, send.condition) for send in sends)


def _most_firings(node: PEArray, condition: Expr | None) -> int:
    """In how many firings of a PE a condition holds at most."""
    loops = {
        loop.name: range(int(low.value), int(low.value) + int(count.value))
        for loop in node.loops
        if isinstance(low := loop.minimum, Const) and isinstance(count := loop.extent, Const)
    }
    all_of_them = prod(map(len, loops.values()))
    if condition is None or any(isinstance(term, Parameter) for term in walk(condition)):
        return all_of_them
    used = index_names(condition)
    axes = {d.name: range(d.minimum, d.minimum + d.extent) for d in node.space if d.name in used}
    places = len(axes)
    axes |= {name: values for name, values in loops.items() if name in used}
    shape = tuple(map(len, axes.values()))
    if prod(shape) > MOST_POINTS or not all_of_them:
        return all_of_them
    grid = np.ix_(*(np.asarray(values, np.int32) for values in axes.values()))
    with np.errstate(all="ignore"):
        holds = np.broadcast_to(evaluate(condition, dict(zip(axes, grid, strict=True))), shape)
    counts = holds.astype(bool).sum(axis=tuple(range(places, len(shape))))
    others = prod(len(values) for name, values in loops.items() if name not in used)
    return int(np.max(counts, initial=0)) * others
