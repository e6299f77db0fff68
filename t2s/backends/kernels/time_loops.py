"""The time loops of a kernel, with the counters that advance with them.

The loops stay nested for readability; the compiler flattens them, so that no cycle is lost when an
inner loop restarts.  It can only do that if nothing is between them: counters of the innermost loop
that are back at their first value when it ends are declared outside of all loops.

For a compiler that flattens nothing else, a nest whose bounds depend on other loops, or that has
counters in between, is one loop: its loops are variables that advance together, as counters do.  An
empty inner loop takes one iteration, in which nothing happens.  A nest of which nothing mentions a
loop is one that counts firings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from t2s.backends.kernels import kernel_ast as ast
from t2s.backends.kernels.digit_counters import (
    Counter,
    all_of,
    closed_cycle,
    cycle_of,
    first_value,
    moved_on,
)
from t2s.backends.kernels.lockstep import LockstepNode, extent_of
from t2s.backends.kernels.scope import KernelScope, where
from t2s.backends.text.expressions import (
    If,
    Name,
    Set,
    TargetExpression,
    TargetStatement,
    Unary,
    binary,
    number,
)
from t2s.core.expr import Const, index_names
from t2s.core.intervals import interval
from t2s.graph.control.shared_nest import TimeLoop


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steady:
    """A loop with constant bounds."""

    start: int
    extent: int


def time_loops(
    scope: KernelScope,
    body: Sequence[TargetStatement],
    pipeline: ast.Pipeline,
    *,
    forever: int | None,
) -> tuple[list[TargetStatement], list[TargetStatement]]:
    """The declarations before the loops, and the loops.

    A ``while (1)`` replaces the ``forever`` outermost ones."""
    if scope.dialect.flattens:
        if not _is_box(scope):
            return [], _one_loop(scope, body, pipeline)
        firings = _plain_count(scope)
        if firings is not None:
            return [], [_counted(scope, firings, body, pipeline)]
    outside: list[TargetStatement] = []
    nest = list(body)
    for depth, loop in reversed(list(enumerate(scope.node.loops))):
        if depth < (forever or 0):
            break
        steady = _steady(scope, loop)
        nested = depth > (forever or 0) and depth == len(scope.node.loops) - 1
        before: list[TargetStatement] = []
        after: list[TargetStatement] = []
        for counter in scope.expressions.counters.lowest(loop.name):
            if steady is not None and nested and _closes(counter, steady):
                start, extent = steady.start, steady.extent
                outside.append(_declared(scope, counter, loop))
                after += moved_on(counter, partial(closed_cycle, start=start, extent=extent))
            else:
                before.append(_declared(scope, counter, loop))
                after += moved_on(counter, cycle_of)
        coalesced = 1
        independent = _independent(scope, loop) if depth == len(scope.node.loops) - 1 else ()
        match nest:
            case [ast.For(unroll=False, coalesced=inner) as only] if (
                not after and steady is not None
            ):
                if _steady(scope, scope.node.loops[depth + 1]) and not _carries(scope, loop):
                    nest = [replace(only, coalesced=1, independent=())]
                    coalesced, independent = inner + 1, only.independent
        nest = [
            *before,
            ast.For(
                name=scope.expressions.variable(loop.name),
                start=scope.lower(loop.start),
                stop=scope.lower(loop.stop),
                body=(*nest, *after),
                coalesced=coalesced,
                independent=independent,
                pipeline=pipeline if depth == len(scope.node.loops) - 1 else None,
            ),
        ]
    return outside, nest if forever is None else [ast.Forever(body=tuple(nest))]


def _plain_count(scope: KernelScope) -> int | None:
    """The number of firings of a nest of which nothing mentions a loop, such as one that relays."""
    loops = scope.node.loops
    extents = [extent_of(loop, scope.node) for loop in loops]
    used = index_names_of_body(scope.node) & {loop.name for loop in loops}
    if len(loops) < 2 or used or None in extents:
        return None
    firings = prod(extent for extent in extents if extent is not None)
    return firings if firings < 2**31 else None


def _counted(
    scope: KernelScope, firings: int, body: Sequence[TargetStatement], pipeline: ast.Pipeline
) -> ast.For:
    return ast.For(
        name=scope.identifiers.fresh("firing"),
        start=number(0),
        stop=number(firings),
        body=tuple(body),
        independent=_independent(scope, scope.node.loops[-1]),
        pipeline=pipeline,
    )


def index_names_of_body(node: LockstepNode) -> frozenset[str]:
    """Loops and space dimensions that the body and its ports mention."""
    ports = (*node.receives.values(), *node.sends.values())
    names = [index_names(statement) for statement in node.body]
    names += [index_names(expr) for port in ports for expr in port.expressions]
    return frozenset().union(*names)


def _carries(scope: KernelScope, loop: TimeLoop) -> bool:
    return any(loop.name in plan.carried_by for plan in scope.plans.values())


def _independent(scope: KernelScope, loop: TimeLoop) -> tuple[tuple[str, int | None], ...]:
    """Arrays in block RAM, with the distance of their accesses in iterations of the loop.

    Where the compiler flattens nests, distances are in iterations of the whole nest.
    """
    result: list[tuple[str, int | None]] = []
    for name, plan in scope.plans.items():
        if plan.in_memory:
            carried = scope.dialect.flattens or loop.name in plan.carried_by
            apart = plan.apart if carried else None
            result += [] if apart == 1 else [(scope.registers[name], apart)]
    return tuple(result)


def _steady(scope: KernelScope, loop: TimeLoop) -> _Steady | None:
    extent = extent_of(loop, scope.node)
    return None if extent is None else _Steady(start=scope.node.ranges[loop.name][0], extent=extent)


def _closes(counter: Counter, steady: _Steady) -> bool:
    """Whether a counter and all above it are back at their first values after the loop."""
    cycle = closed_cycle(counter.digit, steady.start, steady.extent)
    return cycle is not None and all(_closes(above, steady) for above in counter.above)


def _declared(scope: KernelScope, lowest: Counter, loop: TimeLoop) -> ast.DeclareAll:
    variables = tuple((counter.name, _first(scope, counter, loop)) for counter in all_of(lowest))
    return ast.DeclareAll(type="int", variables=variables)


def _first(scope: KernelScope, counter: Counter, loop: TimeLoop) -> TargetExpression:
    """The value of a counter where its loop starts."""
    match loop.start:
        case Const(value=int() as start):
            return number(first_value(counter.digit, start))
    return scope.lower(counter.digit.at(loop.start))


# Nests as one loop.


def _is_box(scope: KernelScope) -> bool:
    """Whether the nest has constant bounds, and counters of its innermost loop alone.

    Bounds of a single loop may be anything.
    """
    loops, counters = scope.node.loops, scope.expressions.counters
    if len(loops) < 2:
        return True
    if any(extent_of(loop, scope.node) is None for loop in loops):
        return False
    innermost = _steady(scope, loops[-1])
    assert innermost is not None
    return not any(counters.lowest(loop.name) for loop in loops[:-1]) and all(
        _closes(counter, innermost) for counter in counters.lowest(loops[-1].name)
    )


def _one_loop(
    scope: KernelScope, body: Sequence[TargetStatement], pipeline: ast.Pipeline
) -> list[TargetStatement]:
    """All loops as variables of one loop, which ends when the outermost does."""
    loops = scope.node.loops
    known = -1
    while known < len(scope.expressions.counters):  # bounds and first values take counters, too
        known = len(scope.expressions.counters)
        _advanced(scope, len(loops) - 1)
        for loop in loops:
            scope.lower(loop.start)
            scope.lower(loop.stop)
    declared: list[TargetStatement] = []
    alive: list[TargetExpression] = []
    for loop in loops:
        name = scope.expressions.variable(loop.name)
        start = ast.DeclareAll(type="int", variables=((name, scope.lower(loop.start)),))
        counters = scope.expressions.counters.lowest(loop.name)
        declared += [start, *(_declared(scope, counter, loop) for counter in counters)]
        if loop is not loops[0] and _may_be_empty(scope.node, loop):
            alive.append(_within(scope, loop))
    iteration = list(body)
    if alive:
        condition = alive[0]
        for test in alive[1:]:
            condition = binary("&&", condition, test)
        iteration = where(condition, iteration)
    single = ast.While(
        condition=_within(scope, loops[0]),
        body=(*iteration, *_advanced(scope, len(loops) - 1)),
        independent=_independent(scope, loops[-1]),
        pipeline=pipeline,
    )
    return [*declared, single]


def _within(scope: KernelScope, loop: TimeLoop) -> TargetExpression:
    variable: TargetExpression = Name(name=scope.expressions.variable(loop.name))
    return binary("<", variable, scope.lower(loop.stop))


def _may_be_empty(node: LockstepNode, loop: TimeLoop) -> bool:
    trips = interval(loop.stop - loop.start, node.ranges)
    return trips is None or trips[0] < 1


def _advanced(scope: KernelScope, depth: int) -> list[TargetStatement]:
    """Statements that advance a loop, and at its end the one around it."""
    loop = scope.node.loops[depth]
    variable: TargetExpression = Name(name=scope.expressions.variable(loop.name))
    counters = scope.expressions.counters.lowest(loop.name)
    moved = [statement for each in counters for statement in moved_on(each, cycle_of)]
    if depth == 0:
        return [*moved, ast.Increment(target=variable)]
    ends = binary(">=", Unary(operator="++", operand=variable), scope.lower(loop.stop))
    restarted: list[TargetStatement] = [Set(target=variable, value=scope.lower(loop.start))]
    restarted += [
        Set(target=Name(name=each.name), value=_first(scope, each, loop))
        for counter in counters
        for each in all_of(counter)
    ]
    carried = _advanced(scope, depth - 1)
    return [*moved, If(condition=ends, then=(*carried, *restarted))]
