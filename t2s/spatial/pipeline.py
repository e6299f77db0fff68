"""From a temporal program and the plans of its Funcs to a complete spatial program.

First the directives are applied in the order in which they were written (the reactive part of the
compiler, T2S-Tensor §IV.A), those of a function and of the functions isolated from it alike; each
by the pass that ``directives/registry.py`` has for it.  Then the passes of ``PROACTIVE`` complete
the design.  The program is verified after every one of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from t2s.core.errors import UnsupportedError, UserError
from t2s.func.accesses import without_dead_reads
from t2s.func.freeze import frozen_part
from t2s.func.ir import System, TemporalProgram
from t2s.spatial.analysis.lanes import check_contiguity
from t2s.spatial.analysis.lookup import check_names_free
from t2s.spatial.directive import Directive, IsolateConsumer, IsolateProducer
from t2s.spatial.directives.host import check_directive_on_host
from t2s.spatial.directives.isolate import isolate_result
from t2s.spatial.directives.loops import Unroll
from t2s.spatial.directives.registry import pass_of
from t2s.spatial.directives.settings import Reassociate
from t2s.spatial.directives.space_time import SpaceTimeTransform, with_delayed_starts
from t2s.spatial.ir import SpatialKernel, SpatialProgram
from t2s.spatial.kernels import initial_kernel
from t2s.spatial.passes.follow import follow_streams
from t2s.spatial.passes.memory import drop_unread_stores, place_memory_units
from t2s.spatial.schedule import Place, ScheduledFunc
from t2s.spatial.systems import projected_system, system_kernel
from t2s.spatial.verify import verify_program

_LOGGER = logging.getLogger("t2s.passes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A named rewriting of a whole program."""

    name: str
    description: str
    run: Callable[[SpatialProgram], SpatialProgram]


def run_pass(program: SpatialProgram, step: Pass) -> SpatialProgram:
    """Run a pass, and verify what it made of the program."""
    _LOGGER.debug("pass %s: %s", step.name, step.description)
    changed = step.run(program)
    verify_program(changed, program)
    return changed


PROACTIVE: tuple[Pass, ...] = (
    Pass(
        name="unread stores",
        description="no stores of what is streamed and not read from memory",
        run=drop_unread_stores,
    ),
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
    spatial = SpatialProgram(temporal=program, kernels=_first_kernels(program, funcs))
    verify_program(spatial)
    owners = {name: kernel.name for kernel in spatial.kernels for name in _covered(kernel)}
    for function in program.functions:
        if function.name in owners:
            for step in _steps(funcs[function.name], owners[function.name], constants):
                spatial = run_pass(spatial, step)
    for function in program.functions:
        placed = function.name in owners or spatial.find(function.name) is not None
        if not placed and funcs[function.name].plan:
            directive = funcs[function.name].plan[0]
            raise UserError(
                f"{directive.text} on {function.name}: {function.name} is computed inside of the "
                "Funcs that use it",
                location=directive.location,
                expected=f"a Func with a loop nest of its own: {', '.join(sorted(owners))}",
                hint=f"isolate {function.name} into a Func first: isolate_producer"
                f"({function.name}, new), and give the directive to the new Func",
            )
    for step in PROACTIVE:
        spatial = run_pass(spatial, step)
    return spatial


def _steps(func: ScheduledFunc, owner: str, constants: Mapping[str, int]) -> Iterator[Pass]:
    """The directives of a Func in the order written, and the delays of its PEs.

    Parts that are isolated take over the loops, so the delays come before the first of them.
    """
    unrolling: Directive | None = None
    for name, directive in func.journal:
        if isinstance(directive, IsolateProducer | IsolateConsumer) and unrolling is not None:
            yield _delays(owner, unrolling)
            unrolling = None
        yield _step(name, owner if name == func.name else name, directive, constants)
        if isinstance(directive, Unroll | SpaceTimeTransform) and name == func.name:
            unrolling = directive
    if unrolling is not None:
        yield _delays(owner, unrolling)


def _delays(owner: str, unrolling: Directive) -> Pass:
    """PEs start one after the other where values would be needed before they are computed."""

    def run(program: SpatialProgram) -> SpatialProgram:
        kernel = program.kernel(owner)
        if not kernel.members or kernel.timed is not None:
            return program
        return program.with_kernel(with_delayed_starts(kernel, unrolling))

    description = f"a schedule for {unrolling.text}, if it needs one"
    return Pass(name="delayed starts", description=description, run=run)


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


def _first_kernels(
    program: TemporalProgram, funcs: Mapping[str, ScheduledFunc]
) -> tuple[SpatialKernel, ...]:
    """One kernel for each Func that has hardware of its own, and one for each system."""
    kernels: list[SpatialKernel] = []
    for function in program.functions:
        system = program.system_of(function.name)
        if system is not None:
            if function.name == system.members[-1]:
                kernels.append(system_kernel(program, system, _scheduled(system, funcs)))
        elif projected_system(program, function) is None and (
            function.updates or function.name in program.outputs
        ):
            reassociate = _reassociates(funcs[function.name])
            kernels.append(initial_kernel(program, function, reassociate))
    return tuple(kernels)


def _scheduled(system: System, funcs: Mapping[str, ScheduledFunc]) -> str:
    """The member that has the directives of a system, or the last one."""
    chosen = [name for name in system.members if any(map(_shapes, funcs[name].plan))]
    if len(chosen) > 1:
        directive = next(filter(_shapes, funcs[chosen[1]].plan))
        first = next(filter(_shapes, funcs[chosen[0]].plan))
        raise UserError(
            f"{directive.text} on {chosen[1]}: {chosen[0]} has directives too, and both are "
            "computed in one loop nest",
            location=directive.location,
            expected=f"the directives of {', '.join(system.members)} on one of them",
            notes=((first.location, f"{first.text} on {chosen[0]}"),),
            hint=f"write them all on {chosen[0]}",
        )
    return chosen[0] if chosen else system.members[-1]


def _shapes(directive: Directive) -> bool:
    """Whether a directive is about the loop nest, not about one stream of results."""
    return not isinstance(directive, IsolateConsumer)


def _covered(kernel: SpatialKernel) -> tuple[str, ...]:
    """The Funcs whose directives go to a kernel: its own, its members, its results."""
    members = (member.name for member in kernel.members)
    results = (result.function for result in kernel.results)
    return tuple(dict.fromkeys([kernel.function, *members, *results]))


def _step(name: str, owner: str, directive: Directive, constants: Mapping[str, int]) -> Pass:
    """A directive of a Func, to be carried out in the kernel ``owner``."""
    return Pass(
        name=directive.text,
        description=f"on {name}",
        run=lambda program: _apply_to(program, name, owner, directive, constants),
    )


def _apply_to(
    program: SpatialProgram,
    name: str,
    owner: str,
    directive: Directive,
    constants: Mapping[str, int],
) -> SpatialProgram:
    """Apply a directive of a Func to the kernel that it is computed by, or that is its own."""
    if isinstance(directive, IsolateConsumer) and program.kernel(owner).members:
        check_names_free(program, owner, directive)
        return isolate_result(program, owner, name, directive)
    _check_no_projection(program, owner, name, directive)
    if isinstance(directive, IsolateProducer) and directive.target is not None:
        types = {function.name: function.type for function in program.temporal.functions}
        kernel = program.kernel(owner)
        target = frozen_part(directive.target, kernel.value.type, constants, types)
        # the definition has lost its dead reads, for these sizes, and so does the part
        domain = [dimension.interval for dimension in kernel.domain]
        directive = replace(directive, target=without_dead_reads(target, domain))
    return _carried_out(program, owner, directive)


def _check_no_projection(
    program: SpatialProgram, owner: str, name: str, directive: Directive
) -> None:
    kernel = program.kernel(owner)
    member = program.temporal.system_of(name) is not None
    if kernel.members and not member and name != owner and kernel.result(name) is not None:
        raise UserError(
            f"{directive.text} on {name}: {name} only takes values out of the nest of "
            f"{kernel.name}",
            location=directive.location,
            expected=f"isolate_consumer or isolate_consumer_chain on {name}",
            hint=f"write {directive.text} on {kernel.name}",
        )


def _carried_out(program: SpatialProgram, name: str, directive: Directive) -> SpatialProgram:
    check_names_free(program, name, directive)
    check_directive_on_host(program.kernel(name), directive)
    return pass_of(directive).run(program, name, directive)
