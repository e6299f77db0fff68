"""``unroll``: loops become dimensions of space.

Before -> after::

    unroll(ii, jj)         for i: for ii in 8: for k   ->   PEs [ii: 8] each: for i: for k
"""

from __future__ import annotations

from dataclasses import replace

from t2s.spatial.directives import Unroll
from t2s.spatial.ir import Kernel, LoopKind
from t2s.spatial.passes.lookup import constant_bounds, find_serial


def unroll(kernel: Kernel, directive: Unroll) -> Kernel:
    """Mark the loops as unrolled; their bounds have to be constant."""
    for name in directive.loops:
        loop = find_serial(kernel, name, directive)
        constant_bounds(kernel, loop, directive)
        spatial = replace(loop, kind=LoopKind.UNROLLED, reason=f"one PE each by {directive.text}")
        kernel = replace(
            kernel, loops=tuple(spatial if old is loop else old for old in kernel.loops)
        )
    return kernel
