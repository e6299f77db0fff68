"""The registry of directives and their passes, one line each.

A pass takes the program, the kernel that the directive applies to, and the directive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from t2s.core.errors import InternalError
from t2s.spatial.directive import Directive, IsolateConsumer, IsolateProducer, SparseDirective
from t2s.spatial.directives.buffer import Buffer, buffer
from t2s.spatial.directives.distribute import Distribute, RemoveReuse, distribute, remove_reuse
from t2s.spatial.directives.forward import Forward, forward
from t2s.spatial.directives.isolate import isolate_consumer, isolate_producer
from t2s.spatial.directives.loops import (
    Fuse,
    Reorder,
    Split,
    Tile,
    Unroll,
    fuse,
    reorder,
    split,
    tile,
    unroll,
)
from t2s.spatial.directives.remove import Remove, remove
from t2s.spatial.directives.scatter import Gather, Scatter, gather, scatter
from t2s.spatial.directives.settings import (
    Depth,
    Reassociate,
    depth,
    reassociate,
    refuse_sparse_directive,
)
from t2s.spatial.directives.space_time import SpaceTimeTransform, space_time_transform
from t2s.spatial.directives.streaming import StreamResults, stream
from t2s.spatial.directives.vectors import VectorLoad, VectorStore, store_vectors, vload
from t2s.spatial.ir import SpatialKernel, SpatialProgram

D = TypeVar("D", bound=Directive)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectivePass(Generic[D]):
    """A class of directives and its pass."""

    directive: type[D]
    run: Callable[[SpatialProgram, str, D], SpatialProgram]


def in_kernel(
    directive: type[D], rewrite: Callable[[SpatialKernel, D], SpatialKernel]
) -> DirectivePass[D]:
    """A pass that rewrites only one kernel."""

    def run(program: SpatialProgram, name: str, directive: D) -> SpatialProgram:
        return program.with_kernel(rewrite(program.kernel(name), directive))

    return DirectivePass(directive=directive, run=run)


REGISTRY: tuple[DirectivePass[Any], ...] = (
    in_kernel(Split, split),
    in_kernel(Tile, tile),
    in_kernel(Reorder, reorder),
    in_kernel(Fuse, fuse),
    in_kernel(Unroll, unroll),
    in_kernel(SpaceTimeTransform, space_time_transform),
    in_kernel(Depth, depth),
    DirectivePass(directive=Reassociate, run=reassociate),
    DirectivePass(directive=IsolateProducer, run=isolate_producer),
    DirectivePass(directive=IsolateConsumer, run=isolate_consumer),
    DirectivePass(directive=StreamResults, run=stream),
    DirectivePass(directive=Forward, run=forward),
    DirectivePass(directive=Distribute, run=distribute),
    DirectivePass(directive=Remove, run=remove),
    DirectivePass(directive=RemoveReuse, run=remove_reuse),
    DirectivePass(directive=Buffer, run=buffer),
    DirectivePass(directive=Scatter, run=scatter),
    DirectivePass(directive=Gather, run=gather),
    DirectivePass(directive=VectorLoad, run=vload),
    DirectivePass(directive=VectorStore, run=store_vectors),
    DirectivePass(directive=SparseDirective, run=refuse_sparse_directive),
)


def pass_of(directive: Directive) -> DirectivePass[Any]:
    """The pass that carries a directive out."""
    for entry in REGISTRY:
        if isinstance(directive, entry.directive):
            return entry
    raise InternalError(f"no pass consumes the directive {directive.text}")
