"""The time loops of a kernel, with the counters that move along with them.

The loops stay nested to be read; the compiler flattens them, so that no cycle is lost where an
inner loop starts again.  It can do that where nothing stands between them: counters of the
innermost loop that are back at their first value when it ends are declared outside of all loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from t2s.backends.opencl_fpga.digit_counters import (
    Counter,
    all_of,
    closed_cycle,
    cycle_of,
    first_value,
    moved_on,
)
from t2s.backends.opencl_fpga.domains import extent_of
from t2s.backends.opencl_fpga.kernel_ast import (
    DeclareAll,
    For,
    Forever,
)
from t2s.backends.opencl_fpga.kernel_scope import KernelScope
from t2s.backends.opencl_fpga.lockstep import TimeLoop
from t2s.backends.text.expressions import (
    TargetExpression,
    TargetStatement,
    number,
)
from t2s.core.expr import Const


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steady:
    """A loop with constant bounds."""

    start: int
    extent: int


def time_loops(
    scope: KernelScope, body: Sequence[TargetStatement], *, forever: int | None
) -> tuple[list[TargetStatement], list[TargetStatement]]:
    """What is declared before the loops, and the loops: all of them, or ``while (1)`` in place of
    the ``forever`` outermost ones."""
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
            case [For(unroll=False, coalesced=inner) as only] if not after and steady is not None:
                if _steady(scope, scope.node.loops[depth + 1]) and not _carries(scope, loop):
                    nest = [replace(only, coalesced=1, independent=())]
                    coalesced, independent = inner + 1, only.independent
        nest = [
            *before,
            For(
                name=scope.expressions.variable(loop.name),
                start=scope.lower(loop.start),
                stop=scope.lower(loop.stop),
                body=(*nest, *after),
                coalesced=coalesced,
                independent=independent,
            ),
        ]
    return outside, nest if forever is None else [Forever(body=tuple(nest))]


def _carries(scope: KernelScope, loop: TimeLoop) -> bool:
    return any(loop.name in plan.carried_by for plan in scope.plans.values())


def _independent(scope: KernelScope, loop: TimeLoop) -> tuple[tuple[str, int | None], ...]:
    """Arrays in block RAM, with how many iterations of the loop their uses are apart."""
    result: list[tuple[str, int | None]] = []
    for name, plan in scope.plans.items():
        if plan.memory is not None:
            apart = plan.apart if loop.name in plan.carried_by else None
            result += [] if apart == 1 else [(scope.registers[name], apart)]
    return tuple(result)


def _steady(scope: KernelScope, loop: TimeLoop) -> _Steady | None:
    extent = extent_of(loop, scope.node)
    return None if extent is None else _Steady(start=scope.node.ranges[loop.name][0], extent=extent)


def _closes(counter: Counter, steady: _Steady) -> bool:
    """Whether a counter, and all above it, are back at their first values after the loop."""
    cycle = closed_cycle(counter.digit, steady.start, steady.extent)
    return cycle is not None and all(_closes(above, steady) for above in counter.above)


def _declared(scope: KernelScope, lowest: Counter, loop: TimeLoop) -> DeclareAll:
    def first(counter: Counter) -> TargetExpression:
        match loop.start:
            case Const(value=int() as start):
                return number(first_value(counter.digit, start))
        return scope.lower(counter.digit.at(loop.start))

    variables = tuple((counter.name, first(counter)) for counter in all_of(lowest))
    return DeclareAll(type="int", variables=variables)
