"""PEs that may share a kernel in a graph with machines, where all others have one each.

PEs in one kernel wait for each other.  That does no harm where they do nothing but load and send,
and what they send is taken together, a token of each of them at a time, or where they do nothing
but receive and store what is put together: the elements of a line of memory.
"""

from __future__ import annotations

from t2s.core.expr import Expr, Index
from t2s.core.walk import walk
from t2s.graph.body import Receive, Send
from t2s.graph.graph import Graph
from t2s.graph.nodes import Node, PEArray


def keeps_together(graph: Graph, node: PEArray) -> bool:
    """Whether all PEs of a node may be one kernel."""
    taken, sent = graph.inputs_of(node.name), graph.outputs_of(node.name)
    channels = [*taken, *sent]
    if node.registers or node.exists is not None or any(channel.shape for channel in channels):
        return False
    ends = {(channel.source if taken else channel.sink) for channel in channels}
    if bool(taken) == bool(sent) or len(ends) != 1 or ends == {node.name}:
        return False
    names = {channel.name for channel in channels}
    return _every_firing(node, names) and _at_once(graph.node(ends.pop()), names)


def _every_firing(node: PEArray, names: set[str]) -> bool:
    """Whether a PE that uses one of these channels does so in all of its firings."""
    places = {dimension.name for dimension in node.space}
    return all(_names(condition) <= places for condition in _conditions(node, names))


def _at_once(node: Node, names: set[str]) -> bool:
    """Whether the other end uses all of these channels in the same firings of the same PE."""
    if isinstance(node, PEArray):
        alike = len(set(_conditions(node, names))) == 1
        return alike and _every_firing(node, names)
    return all(_all_or_none(path.rule.takes, names) for path in node.paths()) and all(
        _all_or_none(tuple(put.channel for put in path.rule.puts), names) for path in node.paths()
    )


def _all_or_none(used: tuple[str, ...], names: set[str]) -> bool:
    return names <= set(used) or not names & set(used)


def _conditions(node: PEArray, names: set[str]) -> list[Expr | None]:
    return [
        statement.condition
        for statement in node.body
        if isinstance(statement, Receive | Send) and statement.channel in names
    ]


def _names(condition: Expr | None) -> set[str]:
    if condition is None:
        return set()
    return {term.name for term in walk(condition) if isinstance(term, Index)}
