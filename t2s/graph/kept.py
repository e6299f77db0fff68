"""What was prepared for a graph is kept as long as the graph lives, and used again.

A graph never changes, so what follows from it alone does not either.  Graphs are told apart by
identity: comparing two of them takes longer than much of what is kept.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

from t2s.graph.graph import Graph

KeyT = TypeVar("KeyT", bound=Hashable)
ResultT = TypeVar("ResultT")

_MOST = 4
"""Results kept for one graph."""


class KeptFor(Generic[KeyT, ResultT]):
    """Results by graph and key: for each graph, the few that were made last.

    Safe to use from several threads, which may then make the same result twice.
    """

    def __init__(self) -> None:
        self._kept: dict[int, dict[KeyT, ResultT]] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        """Graphs of which something is kept."""
        return len(self._kept)

    def get(self, graph: Graph, key: KeyT, make: Callable[[], ResultT]) -> ResultT:
        """The result for a graph and a key, made by ``make`` if it is not there."""
        with self._lock:
            results = self._kept.get(id(graph))
            if results is None:
                results = self._kept[id(graph)] = {}
                weakref.finalize(graph, self._kept.pop, id(graph), None)
            if key in results:
                return results[key]
        result = make()
        with self._lock:
            results[key] = result
            while len(results) > _MOST:
                del results[next(iter(results))]
        return result
