"""Loops of which a few iterations stand for all: shorter domains for ``domains.enumerate_domain``.

A buffered feeder counts through the whole run with one counter, but what it does repeats itself in
every period; the results of a long sum leave in its last step only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import gcd, lcm

from t2s.backends.opencl_fpga.domains import extent_of
from t2s.backends.opencl_fpga.lockstep import LockstepNode, Port, TimeLoop
from t2s.core.expr import (
    Apply,
    Cast,
    Const,
    Expr,
    Index,
    Select,
    apply,
    const,
    index_names,
    simplify,
)
from t2s.core.ops import OPERATORS, Op

Step = tuple[int, int]  # (p, d): the value grows by d whenever the loop advances by p


def one_period(
    node: LockstepNode, loops: Sequence[TimeLoop], expressions: Iterable[Expr]
) -> tuple[TimeLoop, ...]:
    """The loops, cut to one period each where the expressions are periodic in them."""
    deciding = tuple(expressions)
    bounds = [bound for loop in loops for bound in (loop.start, loop.stop)]
    result: list[TimeLoop] = []
    for loop in loops:
        extent, shortest = extent_of(loop, node), 1
        for expr in deciding:
            step = _step(expr, loop.name)
            shortest = lcm(shortest, step[0]) if step is not None and step[1] == 0 else 0
        fixed = all(loop.name not in index_names(bound) for bound in bounds)
        if shortest and extent is not None and shortest < extent and fixed:
            loop = replace(loop, stop=simplify(apply(Op.ADD, loop.start, const(shortest))))
        result.append(loop)
    return tuple(result)


def _step(expr: Expr, name: str) -> Step | None:
    """How an integer expression grows along a loop; a condition never does (``d`` is 0)."""
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
    """The common period of operands that are themselves periodic."""
    steps = [_step(operand, name) for operand in operands]
    if any(step is None or step[1] for step in steps):
        return None
    return lcm(*(step[0] for step in steps if step is not None)), 0


def when_used(loops: Sequence[TimeLoop], ports: Sequence[Port]) -> tuple[TimeLoop, ...]:
    """The loops, cut to the one iteration in which all ports are used, where there is only one."""
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


def _only(port: Port, name: str) -> int | None:
    """The value that a loop has to have for the port to be used."""
    for factor in port.time_factors:
        match factor:
            case Apply(
                operator=Op.EQUAL, operands=(Index(name=found), Const(value=int() as value))
            ) if found == name:
                return value
    return None
