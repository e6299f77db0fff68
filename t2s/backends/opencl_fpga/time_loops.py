"""The time loops of a kernel, with the counters that move along with them.

The loops stay nested to be read; the compiler flattens them, so that no cycle is lost where an
inner loop starts again.  It can do that where nothing stands between them: counters of the
innermost loop that are back at their first value when it ends are declared outside of all loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from t2s.backends.opencl_fpga.counters import (
    Chain,
    Counter,
    closed_cycle,
    cycle_of,
    first_value,
    moved_on,
    with_parts,
)
from t2s.backends.opencl_fpga.domains import extent_of
from t2s.backends.opencl_fpga.kernel_ast import (
    DeclareAll,
    Expression,
    For,
    Forever,
    Statement,
    number,
)
from t2s.backends.opencl_fpga.kernel_scope import KernelScope
from t2s.backends.opencl_fpga.lockstep import TimeLoop
from t2s.core.expr import Const


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steady:
    """A loop with constant bounds."""

    start: int
    extent: int


def time_loops(
    scope: KernelScope, body: Sequence[Statement], *, forever: int | None
) -> tuple[list[Statement], list[Statement]]:
    """What is declared before the loops, and the loops: all of them, or ``while (1)`` in place of
    the ``forever`` outermost ones."""
    outside: list[Statement] = []
    nest = list(body)
    for depth, loop in reversed(list(enumerate(scope.node.loops))):
        if depth < (forever or 0):
            break
        steady = _steady(scope, loop)
        nested = depth > (forever or 0) and depth == len(scope.node.loops) - 1
        before: list[Statement] = []
        after: list[Statement] = []
        for chain in scope.expressions.counters.chains(loop.name):
            chains = with_parts(chain)
            if steady is not None and nested and _closes(chain, steady):
                start, extent = steady.start, steady.extent
                outside += [_declared(scope, each, loop) for each in chains]
                closed = partial(closed_cycle, start=start, extent=extent)
                after += moved_on(chain, closed)
            else:
                before += [_declared(scope, each, loop) for each in chains]
                after += moved_on(chain, cycle_of)
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


def _closes(chain: Chain, steady: _Steady) -> bool:
    return all(closed_cycle(c.digit, steady.start, steady.extent) is not None for c in chain)


def _declared(scope: KernelScope, chain: Chain, loop: TimeLoop) -> DeclareAll:
    def first(counter: Counter) -> Expression:
        match loop.start:
            case Const(value=int() as start):
                return number(first_value(counter.digit, start))
        return scope.lower(counter.digit.at(loop.start))

    return DeclareAll(
        type="int", variables=tuple((counter.name, first(counter)) for counter in chain)
    )
