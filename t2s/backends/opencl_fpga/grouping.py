"""In graphs with machines: PEs that share a kernel, and a statement for each element they use."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from t2s.backends.opencl_fpga.lockstep import ChannelPort, LockstepNode
from t2s.core.expr import Const, Expr, Index, Local, Select, conjunction, const, equals
from t2s.core.types import BOOL
from t2s.core.walk import walk
from t2s.graph.body import Let, Receive, Send, Statement
from t2s.graph.graph import Graph
from t2s.graph.nodes import Node, PEArray
from t2s.graph.points import fold

MOST_ELEMENTS = 64
"""Most elements of a channel that one PE uses."""


def by_element(node: LockstepNode) -> LockstepNode:
    """The single PE with ports whose elements are constant, where these are few enough."""
    body: list[Statement] = []
    receives, sends = dict(node.receives), dict(node.sends)
    for statement in node.body:
        match statement:
            case Send(channel=name, condition=condition):
                for key, port, chosen in _elements(node, sends.pop(name)):
                    sends[key] = port
                    both = conjunction(condition, chosen)
                    body.append(replace(statement, channel=key, condition=both))
            case Receive(channel=name):
                found = _elements(node, receives.pop(name))
                receives |= {key: port for key, port, _ in found}
                body += _received(statement, [(key, chosen) for key, _, chosen in found])
            case _:
                body.append(statement)
    return replace(node, body=tuple(body), receives=receives, sends=sends)


def _received(statement: Receive, found: list[tuple[str, Expr | None]]) -> list[Statement]:
    """A receive from every element in question, and the token of the one that it is."""
    if len(found) == 1:
        (key, chosen), condition = found[0], statement.condition
        return [replace(statement, channel=key, condition=conjunction(condition, chosen))]
    result: list[Statement] = []
    value: Expr | None = None
    for number, (key, chosen) in enumerate(found):
        target = f"{statement.target}_{number}_"
        both = conjunction(statement.condition, chosen)
        result.append(replace(statement, target=target, channel=key, condition=both))
        token = Local(name=target, type=statement.type)
        if value is None or chosen is None:
            value = token
        else:
            value = Select(condition=chosen, if_true=token, if_false=value, type=statement.type)
    assert value is not None
    return [*result, Let(target=statement.target, value=value)]


def _elements(node: LockstepNode, port: ChannelPort) -> list[tuple[str, ChannelPort, Expr | None]]:
    """A port for each element that may be meant, and the condition under which it is."""
    name, shape = port.channel.name, port.channel.shape
    moving = [at for at, index in enumerate(port.index) if not isinstance(index, Const)]
    spans = [range(extent) if at in moving else (0,) for at, extent in enumerate(shape)]
    count = 1
    for span in spans:
        count *= len(span)
    if not moving or count > MOST_ELEMENTS:
        return [(name, port, None)]
    found: list[tuple[str, ChannelPort, Expr | None]] = []
    for point in product(*spans):
        tests = (equals(port.index[at], const(point[at])) for at in moving)
        chosen = conjunction(*(fold(test, node.ranges, {}) for test in tests))
        if chosen == const(False, BOOL):
            continue
        index = tuple(const(e) if at in moving else port.index[at] for at, e in enumerate(point))
        factors = (*port.time_factors, *(() if chosen is None else (chosen,)))
        key = f"{name} {' '.join(map(str, point))}"
        found.append((key, replace(port, index=index, time_factors=factors), chosen))
    return found


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
