"""Totals of a complete run: tokens of channels, bytes of memory, operations.

Operations are arithmetic of firings on data: one for each operator and lane, and for each lane but
one of a sum of lanes.  Indices, conditions and conversions do not count; both alternatives of a
selection do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from t2s.core.expr import Apply, Const, Expr, Index, Local, Parameter, ReduceLanes
from t2s.core.ops import OPERATORS, Op
from t2s.core.walk import children, walk
from t2s.graph.body import Let, Statement
from t2s.graph.control.firing_codes import firings_per_code
from t2s.graph.graph import Channel
from t2s.graph.nodes import Machine, PEArray
from t2s.simulator.program.flatten import MOVED_BYTES
from t2s.simulator.program.sim_program import ChannelTiming, NodeTiming, SimProgram

_NO_ARITHMETIC = frozenset({Op.AND, Op.OR, Op.XOR, Op.NOT, Op.SHIFT_LEFT, Op.SHIFT_RIGHT})


def tokens_of(program: SimProgram, timing: ChannelTiming) -> int:
    """Tokens through all FIFOs of a channel in a complete run."""
    return int(program.control.sent[timing.elements].sum())


def token_bytes(channel: Channel) -> float:
    """Bytes of a token; a bool is a bit."""
    element = channel.stream.element
    return element.lanes * (1 if element.is_bool else element.bits) / 8


def moved_bytes(program: SimProgram, timing: NodeTiming) -> int:
    """Bytes that the PEs of a node load and store in a complete run."""
    if isinstance(timing.node, Machine):
        return sum(
            _moved_by_rules(program, pe) for pe in range(timing.first, timing.instances.stop)
        )
    control, instances = program.control, timing.instances
    fires = control.firings[instances] > 0
    orders, starts = control.order_of[instances][fires], control.row_start[instances][fires]
    total = 0
    for order in np.unique(orders).tolist():
        codes = control.orders[order].codes
        counts = firings_per_code(control.orders[order], int(codes.max(initial=0)) + 1)
        own = starts[orders == order]
        for code, count in enumerate(counts.tolist()):
            total += count * int(control.rows[own + code, MOVED_BYTES].sum(dtype=np.int64))
    return total


def _moved_by_rules(program: SimProgram, pe: int) -> int:
    counts = rule_counts(program, pe)
    start = int(program.control.row_start[pe])
    rows = program.control.rows[start : start + len(counts), MOVED_BYTES].astype(np.int64)
    return int((counts * rows).sum())


def rule_counts(program: SimProgram, pe: int) -> np.ndarray:
    """How often a machine took each of its rules, if the run recorded it."""
    codes = None if program.trace is None else program.trace.codes.get(pe)
    return np.zeros(0, np.int64) if codes is None else codes.counts


def operations_of(program: SimProgram, timing: NodeTiming, firings: int) -> int:
    """Operations of a number of firings of a node."""
    node = timing.node
    if not isinstance(node, Machine):
        return firings * _operations(node.body, ())
    total = 0
    paths = node.paths()
    weights = [
        _operations(path.statements, [p.value for p in path.rule.puts if p.value is not None])
        for path in paths
    ]
    for pe in range(timing.first, timing.instances.stop):
        total += sum(int(n) * w for n, w in zip(rule_counts(program, pe), weights, strict=False))
    return total


def operations_of_firing(timing: NodeTiming) -> int:
    """Operations of a firing of a loop nest."""
    return 0 if isinstance(timing.node, Machine) else _operations(timing.node.body, ())


def operators_of_firing(node: PEArray) -> dict[str, int]:
    """Operations of a firing of a loop nest, by operator, such as ``"multiply"``."""
    counts: dict[str, int] = {}
    for operator, lanes in _arithmetic(node.body, ()):
        name = operator.name.lower()
        counts[name] = counts.get(name, 0) + lanes
    return counts


def _operations(statements: Iterable[Statement], values: Sequence[Expr]) -> int:
    return sum(lanes for _, lanes in _arithmetic(statements, values))


def _arithmetic(
    statements: Iterable[Statement], values: Sequence[Expr]
) -> Iterator[tuple[Op, int]]:
    """Arithmetic on data of statements, and of values beside them: operators with their lanes."""
    static: set[str] = set()
    for statement in statements:
        if isinstance(statement, Let) and _is_static(statement.value, static):
            static.add(statement.target)
            continue
        for child in children(statement):
            if isinstance(child, Expr):
                yield from _in_expression(child, static)
    for value in values:
        yield from _in_expression(value, static)


def _in_expression(expr: Expr, static: set[str]) -> Iterator[tuple[Op, int]]:
    for term in walk(expr):
        if not isinstance(term, Expr) or _is_static(term, static):
            continue
        match term:
            case Apply(operator=operator, type=type):
                rule = OPERATORS[operator]
                if not rule.comparison and operator not in _NO_ARITHMETIC and not type.is_bool:
                    yield operator, type.lanes
            case ReduceLanes(operator=operator, value=value):
                yield operator, value.type.lanes - 1


def _is_static(expr: Expr, static: set[str]) -> bool:
    """Whether an expression is made of indices, parameters and constants."""
    for term in walk(expr):
        if isinstance(term, Local) and term.name not in static:
            return False
    return any(isinstance(term, Index | Parameter | Const | Local) for term in walk(expr)) and (
        not expr.type.is_float
    )
