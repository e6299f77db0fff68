"""``reverse``: a directive that t2s does not have, as its file in ``spatial/directives`` would be.

Before -> after, for a loop ``i`` of extent 8::

    reverse(i)             for i in 0..7: A[i]   ->   for i in 0..7: A[7 - i]
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from t2s.core.expr import Index, const, simplify
from t2s.spatial.analysis.lookup import constant_bounds, find_serial
from t2s.spatial.directive import Directive
from t2s.spatial.directives.loops import proved, substituted
from t2s.spatial.ir import SpatialKernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Reverse(Directive):
    """The loop runs from its end to its start."""

    loop: str


def reverse(kernel: SpatialKernel, directive: Reverse) -> SpatialKernel:
    """Count a loop backwards."""
    loop = find_serial(kernel, directive.loop, directive)
    minimum, extent = constant_bounds(kernel, loop, directive)
    ends = const(2 * minimum + extent - 1)
    mirrored = replace(
        loop,
        definition=simplify(ends - loop.definition),
        reason=f"backwards by {directive.text}",
    )
    loops = tuple(mirrored if old is loop else old for old in kernel.loops)
    back = {loop.name: simplify(ends - Index(name=loop.name))}
    return proved(kernel, substituted(replace(kernel, loops=loops), back), directive)
