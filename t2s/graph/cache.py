"""A cache of derived results for each graph, with the lifetime of the graph.

Graphs are immutable, so results derived from a graph alone stay valid.  Keys are graph identities:
comparing two graphs takes longer than computing many of the cached results.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

from t2s.core.gc_pause import gc_paused
from t2s.graph.graph import Graph

KeyT = TypeVar("KeyT", bound=Hashable)
ResultT = TypeVar("ResultT")

_MOST = 4
"""Results kept for one graph."""

_MOST_GRAPHS = 64
"""Graphs of which something is kept, whoever else keeps them."""


@dataclass(frozen=True, slots=True)
class _Entry(Generic[KeyT, ResultT]):
    """The results of a graph; the weak reference ``graph`` removes the entry with the graph."""

    graph: weakref.ref[Graph]
    results: dict[KeyT, ResultT] = field(default_factory=dict)


class GraphCache(Generic[KeyT, ResultT]):
    """Results by graph and key: the latest few, of the most recently used graphs.

    A result must not refer to its graph, or it would keep the graph alive.  Thread-safe, but two
    threads may compute the same result.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[int, _Entry[KeyT, ResultT]] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        """The number of graphs with cached results."""
        return len(self._kept)

    def get(self, graph: Graph, key: KeyT, make: Callable[[], ResultT]) -> ResultT:
        """The result for a graph and a key, computed by ``make`` on a miss."""
        with self._lock:
            results = self._results(graph)
            if key in results:
                return results[key]
        with gc_paused():
            result = make()
        with self._lock:
            results[key] = result
            while len(results) > _MOST:
                del results[next(iter(results))]
        return result

    def _results(self, graph: Graph) -> dict[KeyT, ResultT]:
        """The results of a graph, which becomes the most recently used."""
        number, results = id(graph), self._kept
        entry = results.get(number)
        if entry is None:
            entry = _Entry(weakref.ref(graph, lambda _: results.pop(number, None)))
            results[number] = entry
            while len(results) > _MOST_GRAPHS:
                results.popitem(last=False)
        else:
            results.move_to_end(number)
        return entry.results
