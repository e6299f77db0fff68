"""From a temporal program and the plans of its Funcs to a complete spatial program.

First the directives are applied in the order in which they were written (the reactive part of the
compiler, T2S-Tensor §IV.A): those of a function, then those of the functions isolated from it.
Then the passes of ``PROACTIVE`` complete the design.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from t2s.core.errors import InternalError, UnsupportedError, UserError
from t2s.core.passes import Pass, run_pipeline
from t2s.func.freeze import frozen_part
from t2s.func.ir import TemporalProgram
from t2s.spatial.directives import (
    Buffer,
    Depth,
    Directive,
    Forward,
    Fuse,
    IsolateConsumer,
    IsolateProducer,
    Place,
    Reassociate,
    Remove,
    Reorder,
    Split,
    Stream,
    Tile,
    Unroll,
    VectorLoad,
    VectorStore,
)
from t2s.spatial.ir import SpatialProgram
from t2s.spatial.kernels import initial_kernel
from t2s.spatial.passes.buffer import buffer
from t2s.spatial.passes.forward import forward
from t2s.spatial.passes.host import check_directive_on_host
from t2s.spatial.passes.isolate import isolate_consumer, isolate_producer
from t2s.spatial.passes.lookup import check_names_free
from t2s.spatial.passes.loops import fuse, reorder, split, tile
from t2s.spatial.passes.memory import place_memory_units
from t2s.spatial.passes.remove import remove
from t2s.spatial.passes.stream import drop_unread_stores, stream
from t2s.spatial.passes.unroll import unroll
from t2s.spatial.passes.vectorize import check_contiguity, vload, vstore
from t2s.spatial.schedule import ScheduledFunc
from t2s.spatial.verify import verify_program

PROACTIVE: tuple[Pass[SpatialProgram], ...] = (
    Pass(
        name="streams",
        description="no stores of what is streamed and not read from memory",
        run=drop_unread_stores,
    ),
    Pass(
        name="memory units",
        description="inline pure Funcs; load and store units for what was not isolated",
        run=place_memory_units,
    ),
    Pass(
        name="contiguous vectors",
        description="proof that vectors in memory are contiguous",
        run=check_contiguity,
    ),
)


def build_spatial(
    program: TemporalProgram,
    funcs: Mapping[str, ScheduledFunc],
    constants: Mapping[str, int] = MappingProxyType({}),
) -> SpatialProgram:
    """Apply all plans and complete the design.

    ``funcs`` are the user's Funcs by name, ``constants`` the values of the Params that were given.
    """
    for func in funcs.values():
        _check_on_device(func)
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
        spatial = _apply_plan(spatial, funcs[function.name], constants)
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


def _check_on_device(func: ScheduledFunc) -> None:
    if func.place is Place.HOST:
        raise UnsupportedError(
            f"Func {func.name} has a definition and is on the host",
            location=func.location,
            expected="a Func without a definition, at the outer end of a chain",
            hint="the host only orders arrays; compute in a Func on the device",
        )


def _apply_plan(
    program: SpatialProgram, func: ScheduledFunc, constants: Mapping[str, int]
) -> SpatialProgram:
    for directive in func.plan:
        if isinstance(directive, IsolateProducer) and directive.target is not None:
            types = {function.name: function.type for function in program.temporal.functions}
            value = program.kernel(func.name).value
            target = frozen_part(directive.target, value.type, constants, types)
            directive = replace(directive, target=target)
        program = _apply(program, func.name, directive)
    for isolated in func.isolated:
        program = _apply_plan(program, isolated, constants)
    return program


def _apply(program: SpatialProgram, name: str, directive: Directive) -> SpatialProgram:
    kernel = program.kernel(name)
    check_names_free(program, name, directive)
    check_directive_on_host(kernel, directive)
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
        case Stream():
            return stream(program, name, directive)
        case Forward():
            return forward(program, name, directive)
        case Remove():
            return remove(program, name, directive)
        case Buffer():
            return buffer(program, name, directive)
        case VectorLoad():
            return vload(program, name, directive)
        case VectorStore():
            return vstore(program, name, directive)
        case Depth(capacity=capacity):
            return program.with_kernel(replace(kernel, capacity=capacity))
        case Reassociate():
            return program
    raise InternalError(f"no pass consumes the directive {directive.text}")
