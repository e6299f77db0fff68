"""A cache for each graph: what was prepared for it lives as long as the graph does.

A graph never changes, so what follows from it alone does not either.  Graphs are told apart by
identity: comparing two of them takes longer than much of what is kept.
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
    """What is kept of a graph; ``graph`` removes the entry when the graph goes."""

    graph: weakref.ref[Graph]
    results: dict[KeyT, ResultT] = field(default_factory=dict)


class GraphCache(Generic[KeyT, ResultT]):
    """Results by graph and key: for the graphs used last, the few that were made last.

    A result must not refer to its graph, or the graph lives as long as the result is kept.  Safe to
    use from several threads, which may then make the same result twice.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[int, _Entry[KeyT, ResultT]] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        """Graphs of which something is kept."""
        return len(self._kept)

    def get(self, graph: Graph, key: KeyT, make: Callable[[], ResultT]) -> ResultT:
        """The result for a graph and a key, made by ``make`` if it is not there."""
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
        """The results of a graph, which is now the one that was used last."""
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
