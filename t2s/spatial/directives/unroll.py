"""``unroll``: loops become dimensions of space.

Before -> after::

    unroll(ii, jj)         for i: for ii in 8: for k   ->   PEs [ii: 8] each: for i: for k
"""

from __future__ import annotations

from dataclasses import replace

from t2s.core.expr import Index, apply, conjunction, const
from t2s.core.isl_maps import condition
from t2s.core.ops import Op
from t2s.spatial.analysis.lookup import constant_bounds, find_serial
from t2s.spatial.directive import Unroll
from t2s.spatial.ir import Kernel, Loop, LoopKind


def _boxed(kernel: Kernel, loop: Loop) -> tuple[Kernel, Loop]:
    """A loop whose bounds vary over all values it ever has; the others are not active."""
    low, high = kernel.domain_of_iterations.range_of(Index(name=loop.name)) or (0, 0)
    index = Index(name=loop.name)
    inside = conjunction(
        apply(Op.GREATER_EQUAL, index, loop.minimum),
        apply(Op.LESS_EQUAL, index, loop.last),
        kernel.active,
    )
    boxed = replace(loop, minimum=const(low), extent=const(high - low + 1))
    loops = tuple(boxed if old is loop else old for old in kernel.loops)
    wide = replace(kernel, loops=loops, active=None)
    held = wide.domain_of_iterations.restricted(*([inside] if inside is not None else []))
    return replace(wide, active=condition(wide.domain_of_iterations, held.points)), boxed


def unroll(kernel: Kernel, directive: Unroll) -> Kernel:
    """Mark the loops as unrolled; their bounds have to be constant."""
    for name in directive.loops:
        loop = find_serial(kernel, name, directive)
        if loop.constant is None and kernel.members:
            kernel, loop = _boxed(kernel, loop)
        constant_bounds(kernel, loop, directive)
        spatial = replace(loop, kind=LoopKind.UNROLLED, reason=f"one PE each by {directive.text}")
        kernel = replace(
            kernel, loops=tuple(spatial if old is loop else old for old in kernel.loops)
        )
    return kernel
