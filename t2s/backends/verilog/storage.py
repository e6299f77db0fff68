"""How many tokens go through the elements of a channel in a run, where that is known before it."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import numpy as np
from numpy.typing import NDArray

from t2s.backends.verilog.pe_classes import columns_of
from t2s.core.expr import Const, Expr, Parameter, index_names
from t2s.core.walk import walk
from t2s.graph.body import Send
from t2s.graph.control.iterations import Iterations
from t2s.graph.graph import Channel, Graph
from t2s.graph.nodes import Loop, PEArray

MOST_POINTS = 1 << 20
"""The most iterations, of all PEs of an array, at which a condition is evaluated."""

Counts = NDArray[np.int64]

_PLACE = "the number of the place"
"""A name beside those of loops, which have no spaces."""


def most_tokens(sent: Counts | None) -> int | None:
    """The most tokens that one element of a channel ever gets; ``None`` if that is not known.

    An element of so much capacity never is full: it makes no firing wait.
    """
    return None if sent is None else int(np.max(sent, initial=0))


def tokens_sent(graph: Graph, channel: Channel) -> Counts | None:
    """The most tokens that each element of a channel ever gets, in row-major order.

    ``None`` if that is not known: machines, loops and elements that depend on parameters, and more
    iterations than ``MOST_POINTS``.
    """
    node = graph.node(channel.source)
    if not isinstance(node, PEArray):
        return None
    total: Counts = np.zeros(channel.element_count, np.int64)
    for send in node.body:
        if isinstance(send, Send) and send.channel == channel.name:
            sent = _sent(node, channel, send.condition)
            if sent is None:  # at most in each iteration, then
                sent = _sent(node, channel, None)
            if sent is None:
                return None
            total += sent
    return total


def firings_of_places(node: PEArray) -> Counts | None:
    """How often the PE at each place fires; ``None`` if that is not known."""
    found = _iterations(node, ())
    if found is None:
        return None
    iterations, others = found
    places = iterations.names[_PLACE]
    return np.bincount(places, minlength=node.place_count).astype(np.int64) * others


def _sent(node: PEArray, channel: Channel, condition: Expr | None) -> Counts | None:
    """The tokens of one statement, which sends in the iterations in which a condition holds."""
    conditions = () if condition is None else (condition,)
    found = _iterations(node, (*channel.source_index, *conditions))
    if found is None:
        return None
    iterations, others = found
    elements = iterations.elements(channel.source_index, channel.shape)
    # the index of what is not sent may be out of range
    sent = iterations.where(conditions) & (elements >= 0) & (elements < channel.element_count)
    counts = np.bincount(elements[sent], minlength=channel.element_count)
    return counts.astype(np.int64) * others


def _iterations(node: PEArray, terms: Iterable[Expr]) -> tuple[Iterations, int] | None:
    """The iterations that differ in some terms, for all PEs, and how often each is made."""
    terms = tuple(terms)
    if any(isinstance(term, Parameter) for expr in terms for term in walk(expr)):
        return None
    used = set[str]().union(*map(index_names, terms))
    for loop in reversed(node.loops):
        if loop.name in used or _length(loop) is None:
            used |= {loop.name, *index_names(loop.minimum), *index_names(loop.extent)}
    there = np.flatnonzero(node.there)
    names = {name: column[there] for name, column in columns_of(node).items()}
    iterations = Iterations(shape=there.shape, names={**names, _PLACE: there})
    for loop in node.loops:
        if loop.name not in used:
            continue
        bounds = (loop.minimum, loop.extent)
        if any(isinstance(term, Parameter) for bound in bounds for term in walk(bound)):
            return None
        low, extents = iterations.bounds(loop)
        extents = np.maximum(extents, 0)
        if int(extents.sum()) > MOST_POINTS:
            return None
        iterations = iterations.inside(loop.name, low, extents)
    return iterations, prod(_length(loop) or 0 for loop in node.loops if loop.name not in used)


def _length(loop: Loop) -> int | None:
    """The iterations of a loop that always has as many."""
    match loop.minimum, loop.extent:
        case Const(), Const(value=count):
            return max(int(count), 0)
    return None
