"""A PE that uses several elements of a channel array in turn, with a statement for each of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from t2s.backends.opencl_fpga.lockstep import LockstepNode, Port, fold
from t2s.core.expr import Const, Expr, Local, Select, conjunction, const, equals
from t2s.core.types import BOOL
from t2s.graph.body import Let, Receive, Send, Statement

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


def _elements(node: LockstepNode, port: Port) -> list[tuple[str, Port, Expr | None]]:
    """A port for each element that may be meant, and the condition under which it is."""
    name, shape = port.channel.name, port.channel.shape
    moving = [at for at, index in enumerate(port.index) if not isinstance(index, Const)]
    spans = [range(extent) if at in moving else (0,) for at, extent in enumerate(shape)]
    count = 1
    for span in spans:
        count *= len(span)
    if not moving or count > MOST_ELEMENTS:
        return [(name, port, None)]
    found: list[tuple[str, Port, Expr | None]] = []
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
