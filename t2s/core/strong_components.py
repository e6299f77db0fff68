"""Strongly connected components of a directed graph (Kosaraju).

scipy has them too, and takes a fifth of a second to import.
"""

from __future__ import annotations

from collections.abc import Iterable


def strong_components(count: int, arcs: Iterable[tuple[int, int]]) -> list[int]:
    """A number for each of ``count`` nodes; nodes on a common cycle share it.

    Components are numbered by one of their nodes.
    """
    forward: list[list[int]] = [[] for _ in range(count)]
    backward: list[list[int]] = [[] for _ in range(count)]
    for source, target in arcs:
        forward[source].append(target)
        backward[target].append(source)
    order: list[int] = []
    seen = [False] * count
    for start in range(count):
        stack = [(start, 0)]
        while stack:
            node, index = stack.pop()
            if index == 0:
                if seen[node]:
                    continue
                seen[node] = True
            if index < len(forward[node]):
                stack += [(node, index + 1), (forward[node][index], 0)]
            else:
                order.append(node)
    component = [-1] * count
    for start in reversed(order):
        reached = [start]
        while reached:
            node = reached.pop()
            if component[node] < 0:
                component[node] = start
                reached += backward[node]
    return component
