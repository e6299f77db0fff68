"""Lockstep: the PEs of a node in one kernel, where all fire in an iteration before the next starts.

``LockstepNode`` is the node with time loops that all PEs share (``graph/control/shared_nest.py``),
and the ends of its channels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import gcd, lcm, prod

import numpy as np

from t2s.backends.base import Unsupported
from t2s.core.expr import (
    Apply,
    Cast,
    Const,
    Expr,
    Index,
    Select,
    conjunction,
    conjuncts,
    const,
    index_names,
    is_static,
    simplify,
)
from t2s.core.intervals import Interval
from t2s.core.ops import OPERATORS, Op
from t2s.core.types import BOOL
from t2s.graph.body import Receive, Send, Statement
from t2s.graph.control.iterations import Iterations, TooManyIterations, deciding, listed
from t2s.graph.control.shared_nest import TimeLoop, shared_nest
from t2s.graph.graph import Channel, Graph
from t2s.graph.nodes import PEArray, SpaceDimension
from t2s.graph.specialize import fold_statement, without_unused


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfStep(Unsupported):
    """Something that is impossible in lockstep, but possible with one kernel per PE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPort:
    """One end of a channel: when and where the node's PEs use it.

    The condition is split into factors over space only, time only, and both.
    """

    channel: Channel
    index: tuple[Expr, ...]
    space_factors: tuple[Expr, ...]
    time_factors: tuple[Expr, ...]
    mixed_factors: tuple[Expr, ...]

    @property
    def factors(self) -> tuple[Expr, ...]:
        return self.space_factors + self.time_factors + self.mixed_factors

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """All expressions that decide when and where the port is used."""
        return self.factors + self.index


@dataclass(frozen=True, kw_only=True)
class LockstepNode:
    """A node in lockstep; ``ranges`` holds the known ranges of its loops and space dimensions."""

    node: PEArray
    space: tuple[SpaceDimension, ...]
    loops: tuple[TimeLoop, ...]
    guard: Expr | None
    body: tuple[Statement, ...]
    ranges: dict[str, Interval]
    receives: dict[str, ChannelPort]
    sends: dict[str, ChannelPort]

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def some_wait(self) -> bool:
        """Whether a PE may sit out iterations in which others fire."""
        space = {dimension.name for dimension in self.space}
        return self.guard is not None and not index_names(self.guard) <= space

    @property
    def place_count(self) -> int:
        """The number of points of the space domain."""
        return prod(dimension.extent for dimension in self.space)

    @property
    def points(self) -> list[tuple[int, ...]]:
        """The points of the space domain, in row-major order."""
        return list(product(*(range(d.minimum, d.minimum + d.extent) for d in self.space)))


def lockstep(graph: Graph, node: PEArray) -> LockstepNode | Unsupported:
    """The node in lockstep, or why that is impossible."""
    nest = shared_nest(node)
    if nest.unlimited is not None:
        return Unsupported(
            subject=f"node {node.name!r}",
            why=f"the bounds of loop {nest.unlimited!r} depend on the PE without any limit",
            location=node.location,
        )
    names = frozenset(dimension.name for dimension in nest.space)
    receives: dict[str, ChannelPort] = {}
    sends: dict[str, ChannelPort] = {}
    for statement in nest.body:
        match statement:
            case Receive(channel=name, condition=condition):
                channel = graph.channel(name)
                index = tuple(nest.folded(expr) for expr in channel.sink_index)
                receives[name] = _port(channel, index, conjunction(nest.guard, condition), names)
            case Send(channel=name, condition=condition):
                channel = graph.channel(name)
                index = tuple(nest.folded(expr) for expr in channel.source_index)
                sends[name] = _port(channel, index, conjunction(nest.guard, condition), names)
    return LockstepNode(
        node=node,
        space=nest.space,
        loops=nest.loops,
        guard=nest.guard,
        body=nest.body,
        ranges=nest.ranges,
        receives=receives,
        sends=sends,
    )


def without_dead_ends(graph: Graph, nodes: Mapping[str, LockstepNode]) -> dict[str, LockstepNode]:
    """The nodes without statements that never run, where only these use a channel's other end."""
    result = dict(nodes)
    for channel in graph.channels:
        sends, receives = result[channel.source].sends, result[channel.sink].receives
        if (channel.name in sends) != (channel.name in receives):
            end = channel.source if channel.name in sends else channel.sink
            port = sends.get(channel.name) or receives[channel.name]
            if _never_used(result[end], port):
                result[end] = _without(result[end], channel.name)
    return result


def _never_used(node: LockstepNode, port: ChannelPort) -> bool:
    """Whether no PE ever uses a port; also false if there are too many iterations to tell."""
    if any(extent_of(loop, node) == 0 for loop in node.loops):
        return True
    if not all(map(is_static, port.factors)):
        return False
    domain = enumerate_domain(node, select_loops(node, loops_used(node, port.factors)))
    return domain is not None and not bool(domain.where(port.factors).any())


def _without(node: LockstepNode, channel: str) -> LockstepNode:
    body: list[Statement] = []
    for statement in node.body:
        if isinstance(statement, Send | Receive) and statement.channel == channel:
            never = replace(statement, condition=const(False, BOOL))
            left = fold_statement(never, lambda expr: expr)
            body += [] if left is None else [left]
        else:
            body.append(statement)
    return replace(
        node,
        body=without_unused(body),
        receives={name: port for name, port in node.receives.items() if name != channel},
        sends={name: port for name, port in node.sends.items() if name != channel},
    )


def _port(
    channel: Channel, index: tuple[Expr, ...], condition: Expr | None, space: frozenset[str]
) -> ChannelPort:
    factors = conjuncts(condition)
    used = [index_names(factor) for factor in factors]
    paired = list(zip(factors, used, strict=True))
    return ChannelPort(
        channel=channel,
        index=index,
        space_factors=tuple(f for f, names in paired if names and names <= space),
        time_factors=tuple(f for f, names in paired if not names & space),
        mixed_factors=tuple(f for f, names in paired if names & space and names - space),
    )


# Enumeration of a node's iterations and PEs with numpy, within a budget.
#
# Arrays have one row per iteration (in time order) and one column per PE (in row-major order).
# If a few iterations of a loop represent all, only these are enumerated.

BUDGET = 1 << 22
"""Largest number of (iteration, PE) pairs that is enumerated."""


def enumerate_domain(node: LockstepNode, loops: Sequence[TimeLoop]) -> Iterations | None:
    """The domain of some loops (outer ones first), or ``None`` if it exceeds the budget."""
    if not all(is_static(bound) for loop in loops for bound in (loop.start, loop.stop)):
        return None
    try:
        times = listed((loop.counted for loop in loops), BUDGET // node.place_count)
    except TooManyIterations:
        return None
    columns = np.asarray(node.points, np.int32).T
    names = {name: values[:, None] for name, values in times.names.items()}
    names |= {d.name: column[None, :] for d, column in zip(node.space, columns, strict=True)}
    return Iterations(shape=(times.count, node.place_count), names=names)


def one_for_all(node: LockstepNode, expressions: Iterable[Expr]) -> LockstepNode:
    """The node with a single PE, if expressions do not depend on the PE."""
    space = {dimension.name for dimension in node.space}
    depends = any(index_names(expr) & space for expr in expressions)
    return node if depends else replace(node, space=())


def enumerate_start(
    node: LockstepNode, loops: Sequence[TimeLoop]
) -> tuple[Iterations, bool] | None:
    """The domain, or its start within the budget, and whether it is complete."""
    whole = enumerate_domain(node, loops)
    if whole is not None:
        return whole, True
    extents = [extent for loop in loops if (extent := extent_of(loop, node)) is not None]
    if len(extents) < len(loops):
        return None
    for at, loop in enumerate(loops):
        count = BUDGET // (prod(extents[at + 1 :]) * node.place_count)
        if count > 0:
            first = [_shortened(outer, 1) for outer in loops[:at]]
            start = enumerate_domain(node, (*first, _shortened(loop, count), *loops[at + 1 :]))
            return None if start is None else (start, False)
    return None


def _shortened(loop: TimeLoop, extent: int) -> TimeLoop:
    return replace(loop, stop=simplify(loop.start + extent))


def pe_count(node: LockstepNode) -> int:
    """The number of PEs."""
    domain = enumerate_domain(node, ())
    if domain is None or node.some_wait:
        return node.node.pe_count
    return int(domain.where(conjuncts(node.guard)).sum())


def extent_of(loop: TimeLoop, node: LockstepNode) -> int | None:
    """The number of iterations of a loop with constant bounds, else ``None``."""
    if index_names(loop.start) or index_names(loop.stop):
        return None
    if not is_static(loop.start) or not is_static(loop.stop):
        return None
    low, high = node.ranges[loop.name]
    return high - low + 1


def loops_used(node: LockstepNode, expressions: Iterable[Expr]) -> frozenset[str]:
    """Names of the loops that expressions depend on, directly or through loop bounds."""
    used = frozenset(name for expr in expressions for name in index_names(expr))
    for loop in reversed(node.loops):
        if loop.name in used:
            used |= index_names(loop.start) | index_names(loop.stop)
    return used & {loop.name for loop in node.loops}


def loops_deciding(node: LockstepNode, expressions: Iterable[Expr]) -> slice:
    """The loops from the first to the last one that decides; see ``deciding``."""
    return deciding([loop.counted for loop in node.loops], expressions)


def select_loops(node: LockstepNode, names: frozenset[str]) -> tuple[TimeLoop, ...]:
    """The named loops, outermost first."""
    return tuple(loop for loop in node.loops if loop.name in names)


Step = tuple[int, int]  # (p, d): the value grows by d when the loop advances by p


def one_period(
    node: LockstepNode, loops: Sequence[TimeLoop], expressions: Iterable[Expr]
) -> tuple[TimeLoop, ...]:
    """The loops, reduced to one period each if the expressions are periodic in them."""
    expressions = tuple(expressions)
    bounds = [bound for loop in loops for bound in (loop.start, loop.stop)]
    result: list[TimeLoop] = []
    for loop in loops:
        extent, shortest = extent_of(loop, node), period_along(loop.name, expressions)
        fixed = all(loop.name not in index_names(bound) for bound in bounds)
        if shortest and extent is not None and shortest < extent and fixed:
            loop = replace(loop, stop=simplify(loop.start + shortest))
        result.append(loop)
    return tuple(result)


def period_along(name: str, expressions: Iterable[Expr]) -> int:
    """The number of iterations of a loop after which all values repeat; 0 if unknown."""
    steps = [_step(expr, name) for expr in expressions]
    if any(step is None or step[1] for step in steps):
        return 0
    return lcm(*(step[0] for step in steps if step is not None))


def _step(expr: Expr, name: str) -> Step | None:
    """How an integer expression grows along a loop; for a condition ``d`` is 0."""
    if name not in index_names(expr):
        return 1, 0
    match expr:
        case Index():
            return 1, 1
        case Apply(operator=Op.ADD | Op.SUBTRACT as operator, operands=(left, right)):
            first, second = _step(left, name), _step(right, name)
            if first is None or second is None:
                return None
            period = lcm(first[0], second[0])
            sign = 1 if operator is Op.ADD else -1
            grown = first[1] * (period // first[0]) + sign * second[1] * (period // second[0])
            return period, grown
        case Apply(
            operator=Op.FLOOR_DIVIDE | Op.MODULO as operator,
            operands=(value, Const(value=int() as by)),
        ) if by > 0 and (step := _step(value, name)) is not None:
            times = by // gcd(step[1], by)
            grown = step[1] * times // by if operator is Op.FLOOR_DIVIDE else 0
            return step[0] * times, grown
        case Apply(operator=operator, operands=operands) if operator in OPERATORS:
            return _unchanged(operands, name)
        case Select(condition=condition, if_true=if_true, if_false=if_false):
            return _unchanged((condition, if_true, if_false), name)
        case Cast(value=value):
            return _unchanged((value,), name)
    return None


def _unchanged(operands: Sequence[Expr], name: str) -> Step | None:
    """The common period of periodic operands."""
    period = period_along(name, operands)
    return (period, 0) if period else None


def when_used(loops: Sequence[TimeLoop], ports: Sequence[ChannelPort]) -> tuple[TimeLoop, ...]:
    """The loops, reduced to the iteration in which all ports are used, if there is only one."""
    bounds = [bound for loop in loops for bound in (loop.start, loop.stop)]
    named = frozenset[str]().union(*(index_names(bound) for bound in bounds))
    result: list[TimeLoop] = []
    for loop in loops:
        places = {_only(port, loop.name) for port in ports}
        only = next(iter(places)) if len(places) == 1 else None
        if only is not None and loop.name not in named:
            loop = replace(loop, start=const(only), stop=const(only + 1))
        result.append(loop)
    return tuple(result)


def _only(port: ChannelPort, name: str) -> int | None:
    """The value that a loop has to have for the port to be used."""
    for factor in port.time_factors:
        match factor:
            case Apply(
                operator=Op.EQUAL, operands=(Index(name=name_of_index), Const(value=int() as value))
            ) if name_of_index == name:
                return value
    return None
