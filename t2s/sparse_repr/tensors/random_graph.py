"""Random graphs with given numbers of nodes, entries and walks, in place of data sets.

The cycles of a product with an adjacency matrix follow from its entries, and those of two of them
from the walks of two edges: the sum of the squared degrees.  Degrees fall with a power of the rank,
whose exponent is chosen so that their squares add up; a graph with these degrees is built node by
node by the rule of Havel and Hakimi, and its edges are exchanged in pairs, which keeps the degrees.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.validate import as_int
from t2s.sparse_repr.formats import csr
from t2s.sparse_repr.tensors.tensor import SparseTensor, from_coordinates

Counts = NDArray[np.int64]

STEEPEST = 64.0
"""The largest exponent of the power by which degrees fall."""

TOLERANCE = 0.005
"""The share by which the number of walks may differ from the one that is asked for."""

CLOSE = 1e-4
"""The share at which no better degrees are searched for."""

EXCHANGES = 12
"""Rounds in which every edge is exchanged with another one if the graph allows it."""


def random_graph(
    nodes: int, entries: int, walks: int | None = None, *, seed: int = 0, isolated: int = 0
) -> SparseTensor:
    """The adjacency matrix of a random graph without directions, as CSR; all values are 1.0.

    Parameters
    ----------
    nodes: rows and columns.
    entries: stored elements: two for each edge, and one on the diagonal if it is odd.
    walks: the sum, over all entries (i, k), of the entries of row k: the squares of the degrees.
        It is met within 0.5 %; degrees are random without it.
    seed: of all choices.
    isolated: nodes without entries; all others have some.

    Raises ``UserError`` if there is no such graph.
    """
    location = user_location()
    count, stored = _checked(nodes, 1, "nodes", location), _checked(entries, 0, "entries", location)
    alone = _checked(isolated, 0, "isolated", location)
    start = _checked(seed, 0, "seed", location)
    wanted = None if walks is None else _checked(walks, 0, "walks", location)
    generator = np.random.default_rng(start)
    linked, loops = count - alone, stored % 2
    most = linked * (linked - 1) + loops
    if linked < 0 or not linked <= stored <= most:
        raise UserError(
            f"no graph has {count} nodes, {alone} of them isolated, and {stored} entries",
            location=location,
            expected=f"from {max(linked, 0)} to {max(most, 0)} entries, so that every other node "
            "has one",
            given=f"{stored} entries",
            hint="isolated= is the number of nodes that have none",
        )
    degrees = _degrees(linked, stored, wanted, generator, location)
    pairs = _edges(degrees, loops)
    if pairs is None:
        raise UserError(
            f"no graph of {count} nodes has {stored} entries with {wanted} walks of two edges",
            location=location,
            expected="fewer walks: nodes of high degree need neighbors",
            given=f"walks={wanted}",
        )
    pairs = _exchanged(pairs, linked, generator)
    names = generator.permutation(count)
    table = names[np.concatenate([pairs, pairs[:, ::-1]])]
    if loops:
        table = np.concatenate([table, np.full((1, 2), names[0])])
    return from_coordinates(table, np.ones(len(table)), (count, count), csr)


def _checked(value: object, least: int, name: str, location: SourceLocation) -> int:
    number = as_int(value)
    if number is None or number < least:
        raise UserError(
            f"{name}= of a random graph is a number from {least} on",
            location=location,
            expected=f"an integer from {least} on",
            given=repr(value),
        )
    return number


def _degrees(
    nodes: int,
    entries: int,
    walks: int | None,
    generator: np.random.Generator,
    location: SourceLocation,
) -> Counts:
    """Entries of every row, the largest first."""
    if walks is None:
        if not nodes:
            return np.zeros(0, np.int64)
        more = generator.multinomial(entries - nodes, np.full(nodes, 1 / nodes))
        degrees: Counts = np.sort(1 + more)[::-1]
        return degrees if degrees[0] < max(nodes, 2) else _falling(nodes, entries, 0.0)
    low, high = 0.0, STEEPEST
    least, most = (_walks(_falling(nodes, entries, end)) for end in (low, high))
    if not least * (1 - TOLERANCE) <= walks <= most * (1 + TOLERANCE):
        raise UserError(
            f"no {entries} entries of {nodes} linked nodes have {walks} walks of two edges",
            location=location,
            expected=f"about {least} to {most} walks",
            given=f"walks={walks}",
        )
    best = _falling(nodes, entries, low)
    for _ in range(60):
        if abs(_walks(best) - walks) <= walks * CLOSE:
            break
        middle = (low + high) / 2
        degrees = _falling(nodes, entries, middle)
        if abs(_walks(degrees) - walks) < abs(_walks(best) - walks):
            best = degrees
        low, high = (middle, high) if _walks(degrees) < walks else (low, middle)
    return best


def _walks(degrees: Counts) -> int:
    return int((degrees * degrees).sum())


def _falling(nodes: int, entries: int, exponent: float) -> Counts:
    """Degrees of at least one that fall with a power of the rank, and of less than all nodes."""
    if not nodes:
        return np.zeros(0, np.int64)
    degrees = np.ones(nodes, np.int64)
    left, room = entries - nodes, max(nodes - 1, 1) - 1
    weights = np.arange(1, nodes + 1, dtype=np.float64) ** -exponent
    more = np.zeros(nodes, np.int64)
    while left > 0:
        free = more < room
        if not free.any():
            break
        share = np.where(free, weights, 0)
        exact = left * share / share.sum()
        whole = np.minimum(exact.astype(np.int64), room - more)
        if not whole.any():
            order = np.argsort(-exact, kind="stable")[:left]
            whole = np.zeros(nodes, np.int64)
            whole[order] = 1
            whole = np.minimum(whole, room - more)
        more += whole
        left -= int(whole.sum())
    degrees += more
    return np.asarray(np.sort(degrees)[::-1])


def _edges(degrees: Counts, loops: int) -> Counts | None:
    """A graph with these degrees, as pairs of nodes; ``None`` if there is none.

    The node of the largest degree is linked to those of the next ones.  With an entry on the
    diagonal, which counts once, the first node has one neighbor less.
    """
    open_ends = [
        (-int(degree) + (loops if not node else 0), node) for node, degree in enumerate(degrees)
    ]
    heap = [entry for entry in open_ends if entry[0]]
    heapify(heap)
    pairs: list[tuple[int, int]] = []
    while heap:
        degree, node = heappop(heap)
        if -degree > len(heap):
            return None
        others = [heappop(heap) for _ in range(-degree)]
        for left, other in others:
            pairs.append((node, other))
            if left + 1:
                heappush(heap, (left + 1, other))
    return np.array(pairs, np.int64).reshape(-1, 2)


def _exchanged(pairs: Counts, nodes: int, generator: np.random.Generator) -> Counts:
    """Edges a-b and c-d become a-d and c-b wherever that makes neither loops nor parallel edges."""
    half = len(pairs) // 2
    for _ in range(EXCHANGES if half else 0):
        order = generator.permutation(len(pairs))
        pairs = pairs[order]
        flipped = generator.random(len(pairs)) < 0.5
        pairs[flipped] = pairs[flipped, ::-1]
        one, other = pairs[:half], pairs[half : 2 * half]
        new = np.concatenate(
            [np.stack([one[:, 0], other[:, 1]], 1), np.stack([other[:, 0], one[:, 1]], 1)]
        )
        keys = np.concatenate([_keys(pairs, nodes), _keys(new, nodes)])
        _, where, times = np.unique(keys, return_inverse=True, return_counts=True)
        good = (new[:, 0] != new[:, 1]) & (times[where[len(pairs) :]] == 1)
        both = good[:half] & good[half:]
        swapped = np.flatnonzero(both)
        pairs[swapped], pairs[half + swapped] = new[swapped], new[half + swapped]
    return pairs


def _keys(pairs: Counts, nodes: int) -> Counts:
    return np.asarray(pairs.min(1) * max(nodes, 1) + pairs.max(1))
