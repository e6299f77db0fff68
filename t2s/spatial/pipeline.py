"""From a temporal program and the plans of its Funcs to a complete spatial program.

First the directives are applied in the order in which they were written (the reactive part of the
compiler, T2S-Tensor §IV.A), those of a function and of the functions isolated from it alike.  Then
the passes of ``PROACTIVE`` complete the design.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from t2s.core.errors import InternalError, UserError
from t2s.core.passes import Pass, run_pipeline
from t2s.func.ir import TemporalProgram
from t2s.spatial.directives import (
    Buffer,
    Depth,
    Directive,
    Forward,
    Fuse,
    Gather,
    IsolateConsumer,
    IsolateProducer,
    Reassociate,
    Remove,
    Reorder,
    Scatter,
    Split,
    Tile,
    Unroll,
    VectorLoad,
    VectorStore,
)
from t2s.spatial.ir import SpatialProgram
from t2s.spatial.kernels import initial_kernel
from t2s.spatial.passes.buffer import buffer
from t2s.spatial.passes.follow import follow_streams
from t2s.spatial.passes.forward import forward
from t2s.spatial.passes.gather import gather
from t2s.spatial.passes.isolate import isolate_consumer, isolate_producer
from t2s.spatial.passes.lanes import store_vectors
from t2s.spatial.passes.lookup import check_names_free
from t2s.spatial.passes.loops import fuse, reorder, split, tile
from t2s.spatial.passes.memory import place_memory_units
from t2s.spatial.passes.remove import remove
from t2s.spatial.passes.scatter import scatter
from t2s.spatial.passes.unroll import unroll
from t2s.spatial.passes.vectorize import vload
from t2s.spatial.schedule import ScheduledFunc
from t2s.spatial.verify import verify_program

PROACTIVE: tuple[Pass[SpatialProgram], ...] = (
    Pass(
        name="memory units",
        description="inline pure Funcs; load and store units for what was not isolated",
        run=place_memory_units,
    ),
    Pass(
        name="streams",
        description="what scatters or gathers iterates like the stream it passes on",
        run=follow_streams,
    ),
)


def build_spatial(program: TemporalProgram, funcs: Mapping[str, ScheduledFunc]) -> SpatialProgram:
    """Apply all plans and complete the design.  ``funcs`` are the user's Funcs by name."""
    realised = [f for f in program.functions if f.updates or f.name in program.outputs]
    names = {function.name for function in realised}
    spatial = SpatialProgram(
        temporal=program,
        kernels=tuple(
            initial_kernel(program, function, _reassociates(funcs[function.name]))
            for function in realised
        ),
    )
    for function in realised:
        for name, directive in funcs[function.name].journal:
            spatial = _apply(spatial, name, directive)
    for function in program.functions:
        placed = function.name in names or spatial.find(function.name) is not None
        if not placed and funcs[function.name].plan:
            directive = funcs[function.name].plan[0]
            raise UserError(
                f"{directive.text} on {function.name}: {function.name} is computed inside of the "
                "Funcs that use it",
                location=directive.location,
                expected=f"a Func with a loop nest of its own: {', '.join(sorted(names))}",
                hint=f"isolate {function.name} into a Func first: isolate_producer"
                f"({function.name}, new), and give the directive to the new Func",
            )
    return run_pipeline(spatial, PROACTIVE, verify_program)


def _reassociates(func: ScheduledFunc) -> bool:
    return any(isinstance(directive, Reassociate) for directive in func.plan)


def _apply(program: SpatialProgram, name: str, directive: Directive) -> SpatialProgram:
    kernel = program.kernel(name)
    check_names_free(program, name, directive)
    match directive:
        case Split():
            return program.with_kernel(split(kernel, directive))
        case Tile():
            return program.with_kernel(tile(kernel, directive))
        case Reorder():
            return program.with_kernel(reorder(kernel, directive))
        case Fuse():
            return program.with_kernel(fuse(kernel, directive))
        case Unroll():
            return program.with_kernel(unroll(kernel, directive))
        case IsolateProducer():
            return isolate_producer(program, name, directive)
        case IsolateConsumer():
            return isolate_consumer(program, name, directive)
        case Forward():
            return forward(program, name, directive)
        case Remove():
            return remove(program, name, directive)
        case Buffer():
            return buffer(program, name, directive)
        case Scatter():
            return scatter(program, name, directive)
        case Gather():
            return gather(program, name, directive)
        case VectorLoad():
            return vload(program, name, directive)
        case VectorStore():
            return store_vectors(program, name, directive)
        case Depth(capacity=capacity):
            return program.with_kernel(replace(kernel, capacity=capacity))
        case Reassociate():
            return program
    raise InternalError(f"no pass consumes the directive {directive.text}")
