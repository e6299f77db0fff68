"""The passes from a temporal program and the plans of its Funcs to a complete spatial program.

First the directives are applied in the order in which they were written (the reactive part of the
compiler, T2S-Tensor §IV.A), for a function and the functions isolated from it alike, each by its
pass in ``directives/registry.py``.  Then the passes of ``PROACTIVE`` complete the design.  The
program is verified after each of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from t2s.core.errors import InternalError, UnsupportedError, UserError
from t2s.core.expr import (
    Expr,
    Index,
    Local,
    Read,
    const,
    index_names,
    reads,
    simplify,
    substitute,
)
from t2s.core.names import NameSupply
from t2s.func.accesses import without_dead_reads
from t2s.func.freeze import frozen_part
from t2s.func.ir import System, TemporalProgram
from t2s.spatial.analysis.lanes import check_contiguity
from t2s.spatial.analysis.lookup import check_names_free, same_loop
from t2s.spatial.analysis.occurrences import all_reads, check_loadable, loads_of
from t2s.spatial.analysis.token_order import check_buffer
from t2s.spatial.directive import Directive, IsolateConsumer, IsolateProducer
from t2s.spatial.directives.host import check_directive_on_host
from t2s.spatial.directives.isolate import (
    computing,
    consumer_of,
    consumer_of_result,
    isolate_result,
    storing,
    with_locals,
    with_operand,
)
from t2s.spatial.directives.loops import Unroll
from t2s.spatial.directives.registry import pass_of
from t2s.spatial.directives.settings import Reassociate
from t2s.spatial.directives.space_time import SpaceTimeTransform, with_delayed_starts
from t2s.spatial.inline import inline_functions
from t2s.spatial.ir import (
    Evaluation,
    KernelOperand,
    LoadUnit,
    LoopExecution,
    PassedStream,
    Reduction,
    Relay,
    SpatialKernel,
    SpatialLoop,
    SpatialProgram,
    StoreTarget,
    StoreUnit,
    StreamedResults,
    shifted,
)
from t2s.spatial.kernels import initial_kernel, projected_system, system_kernel
from t2s.spatial.schedule import Place, ScheduledFunc

# A kernel that scatters or gathers iterates like the stream that it passes on, token by token.
#
# Before -> after, for PEs along ``ii`` behind ``for k: for ii: send``::
#
#     parallel ii: for k             ->   parallel ii: for k: for ii_digit from ii to the last
#
# The nest is that of the neighbor that has the whole stream: the producer of what is scattered, the
# consumer of what is gathered.  In it the loop over the PEs (the *digit*) counts only those whose
# tokens pass by: the PE's own and those of the PEs behind it.  A buffered feeder keeps its nest:
# its counter fills the buffer in the order of the stream (``lowering/body_relay.py``).


def follow_streams(program: SpatialProgram) -> SpatialProgram:
    """Rewrite the nests of all kernels that scatter or gather."""
    for kernel in program.kernels:  # producers first: a stream may be scattered further
        if kernel.scattering is not None:
            operand = kernel.operands[0]
            producer = program.kernel(operand.producer)
            check_buffer(producer, kernel, operand)
            followed = _following(kernel, producer, kernel.scattering)
            if kernel.buffer is None:
                program = program.with_kernel(followed)
    for kernel in reversed(program.kernels):
        if kernel.gathering is not None:
            consumer = _consumer(program, kernel)
            followed = _following(kernel, consumer, kernel.gathering)
            program = program.with_kernel(followed)
    return program


def _consumer(program: SpatialProgram, kernel: SpatialKernel) -> SpatialKernel:
    for other in program.kernels:
        if any(operand.producer == kernel.name for operand in other.operands):
            return other
    raise InternalError(f"nothing takes the results of {kernel.name}")


def _following(
    kernel: SpatialKernel, partner: SpatialKernel, passed: PassedStream
) -> SpatialKernel:
    """The kernel with the time loops of the partner, which has the whole stream."""
    own = kernel.loop(passed.loop)
    if own is None or not isinstance(kernel.work, Relay):
        raise InternalError(f"{kernel.name} has lost {passed.loop}")
    fixed = [loop for loop in kernel.loops if loop.kind is not LoopExecution.SERIAL]
    stream = same_loop(partner.loops, own)
    names = NameSupply(loop.name for loop in fixed)
    values: dict[str, Expr] = {}
    loops: list[SpatialLoop] = []
    digit: str | None = None
    for loop in partner.loops:
        others = [other for other in fixed if other is not own]
        same = own if loop is stream else same_loop(others, loop)
        _check_in_time(kernel, partner, loop, same, passed)
        if same is not None and (same is not own or loop.kind is LoopExecution.VECTOR):
            values[loop.name] = Index(name=same.name)
            continue
        bounded = _bounded(loop, own, passed) if same is own else loop
        wanted = f"{own.name}_digit" if same is own else loop.name
        renamed = names.fresh(wanted)
        if same is own:
            digit = renamed
        loops.append(
            replace(
                bounded,
                name=renamed,
                minimum=substitute(bounded.minimum, values) if same is not own else bounded.minimum,
                extent=substitute(bounded.extent, values) if same is not own else bounded.extent,
            )
        )
        values[loop.name] = Index(name=renamed)
    return replace(
        kernel,
        loops=(
            *kernel.kind(LoopExecution.UNROLLED),
            *loops,
            *kernel.kind(LoopExecution.VECTOR),
        ),
        variables=_variables(kernel, partner, values),
        work=replace(kernel.work, digit=digit),
        reshaped=partner.reshaped,
    )


def _variables(
    kernel: SpatialKernel, partner: SpatialKernel, values: dict[str, Expr]
) -> tuple[tuple[str, Expr], ...]:
    """The partner's variables, over the loops of the kernel.

    A variable that only the kernel has is pinned: the step of a recurrence that gives the result.
    """
    theirs = dict(partner.variables)
    names = {dimension.name for dimension in kernel.domain}
    pinned = ((name, expr) for name, expr in kernel.variables if name not in theirs)
    followed = ((n, substitute(expr, values)) for n, expr in partner.variables if n in names)
    return (*followed, *pinned)


def _bounded(loop: SpatialLoop, own: SpatialLoop, passed: PassedStream) -> SpatialLoop:
    """The loop over the PEs, restricted to those whose tokens pass by."""
    first, extent = own.fixed
    position = Index(name=own.name)
    reason = f"the PEs whose values pass by, by {passed.by.text}"
    if passed.reverse:
        extents = shifted(position, 1 - first)
        return replace(loop, minimum=const(first), extent=extents, reason=reason)
    behind = simplify(first + extent - position)
    return replace(loop, minimum=position, extent=behind, reason=reason)


def _check_in_time(
    kernel: SpatialKernel,
    partner: SpatialKernel,
    loop: SpatialLoop,
    same: SpatialLoop | None,
    passed: PassedStream,
) -> None:
    """Check that PEs along the stream's loop share it, and that all others have one each."""
    if loop.kind is not LoopExecution.UNROLLED:
        return
    if same is not None and same.name == passed.loop:
        raise UserError(
            f"{passed.by.text} on {kernel.name}: {partner.name} is unrolled along {loop.name}",
            location=passed.by.location,
            expected=f"one stream, with {loop.name} in time in {partner.name}",
            given=f"{loop.name} in {partner.name}: {loop.reason}",
            hint=f"do not unroll {loop.name} in {partner.name}",
        )
    if same is None:
        raise UnsupportedError(
            f"{passed.by.text} on {kernel.name}: {partner.name} is unrolled along {loop.name} and "
            f"{kernel.name} is not",
            location=passed.by.location,
            expected=f"{kernel.name} unrolled along {loop.name} as well",
            given=f"{loop.name} in {partner.name}: {loop.reason}",
            hint=f"write {kernel.name}.unroll({loop.name})",
        )


# Load and store units for all accesses that the user did not isolate.
#
# Pure Funcs that are still read are inlined; every remaining read becomes an operand, sent by a
# load kernel of its own with the loops of the kernel; every result that is still stored by the
# kernel that computes it gets a store kernel.  After this pass only load kernels read memory and
# only store kernels write it.  ``drop_unread_stores`` runs before, and drops stores of streamed
# results that nothing reads.

MOST_LOADS = 4096
"""Most load units of one kernel."""


def place_memory_units(program: SpatialProgram) -> SpatialProgram:
    """Give every kernel that touches memory its load and store units."""
    names = NameSupply(kernel.name for kernel in program.kernels)
    for kernel in program.kernels:
        program = _place_loads(program, kernel.name, names)
    for kernel in program.kernels:
        match kernel.work:
            case (
                Evaluation(store=StoreTarget() as target) | Reduction(store=StoreTarget() as target)
            ):
                program = _place_store(program, kernel, target, names)
        for result in kernel.results:
            if result.consumer is None:
                program = _place_result_store(program, kernel.name, result.function, names)
    return program


def _place_loads(program: SpatialProgram, name: str, names: NameSupply) -> SpatialProgram:
    kernel = inline_functions(program.temporal, program.kernel(name))
    match kernel.work:
        case LoadUnit(value=Read()):
            return program.with_kernel(kernel)
        case LoadUnit(value=value):
            kernel = replace(kernel, work=computing(value))
    program = program.with_kernel(kernel)
    for guarded, _ in all_reads(kernel):
        check_loadable(program.temporal, kernel, guarded)
    locals: dict[Expr, Local] = {}
    loads = loads_of(kernel)
    if len(loads) > MOST_LOADS:
        raise UnsupportedError(
            f"{name} would need a load unit for each of {len(loads):,} reads",
            location=kernel.location,
            expected=f"at most {MOST_LOADS:,} different elements in one iteration",
            hint="read along an RDom, or keep one of the Funcs in memory: give it an update",
        )
    for occurrence in loads:
        source = next(iter(reads(occurrence.value))).source
        unit = names.fresh(f"{name}_load_{source}")
        program, locals[occurrence.value] = with_operand(
            program, program.kernel(name), occurrence, (unit,), None
        )
    return with_locals(program, name, locals)


def _place_result_store(
    program: SpatialProgram, name: str, function: str, names: NameSupply
) -> SpatialProgram:
    kernel = program.kernel(name)
    result = kernel.result(function)
    if result is None:
        raise InternalError(f"{name} has no result {function}")
    unit = consumer_of_result(kernel, result, names.fresh(f"{function}_store"))
    target = StoreTarget(tensor=function, indices=result.indices)
    program = program.with_kernel(kernel.with_consumer(result, unit.name))
    return program.with_after(name, storing(unit, target))


def _place_store(
    program: SpatialProgram, kernel: SpatialKernel, target: StoreTarget, names: NameSupply
) -> SpatialProgram:
    unit = consumer_of(kernel, names.fresh(f"{kernel.name}_store"))
    program = program.with_kernel(kernel.without_store())
    return program.with_after(kernel.name, storing(unit, target))


def drop_unread_stores(program: SpatialProgram) -> SpatialProgram:
    """Drop the stores of functions that are streamed and never read from memory.

    If they are read as well, the stream leaves before the store unit.
    """
    inlined = (inline_functions(program.temporal, kernel) for kernel in program.kernels)
    loaded = {guarded.read.source for kernel in inlined for guarded, _ in all_reads(kernel)}
    loaded |= set(program.temporal.outputs)
    for kernel in program.kernels:
        takers = [k for k in program.kernels if any(_takes(o, kernel) for o in k.operands)]
        if kernel.store is None or not takers:
            continue
        if kernel.store.tensor not in loaded:
            program = program.with_kernel(kernel.without_store())
        elif isinstance(kernel.work, StoreUnit):
            before = kernel.operands[0].producer
            for taker in takers:
                operands = tuple(
                    replace(o, producer=before) if _takes(o, kernel) else o for o in taker.operands
                )
                program = program.with_kernel(replace(taker, operands=operands))
    return program


def _takes(operand: KernelOperand, kernel: SpatialKernel) -> bool:
    return isinstance(operand.taken, StreamedResults) and operand.producer == kernel.name


_LOGGER = logging.getLogger("t2s.passes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A named rewriting of a whole program."""

    name: str
    description: str
    run: Callable[[SpatialProgram], SpatialProgram]


def run_pass(program: SpatialProgram, step: Pass) -> SpatialProgram:
    """Run a pass, and verify the resulting program."""
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

    ``funcs`` are the user's Funcs by name, ``constants`` the known values of Params.
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
    """The directives of a Func in the order written, and the start delays of its PEs.

    Isolated parts inherit the loops, so the delays come before the first isolation.
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
    """Let PEs start one after the other if values would otherwise be needed before they exist."""

    def run(program: SpatialProgram) -> SpatialProgram:
        kernel = program.kernel(owner)
        if not kernel.members or kernel.timed is not None:
            return program
        return program.with_kernel(with_delayed_starts(kernel, unrolling))

    description = f"a schedule for {unrolling.text}, if it needs one"
    return Pass(name="delayed starts", description=description, run=run)


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
    """One kernel for each Func with hardware of its own, and one for each system."""
    kernels: list[SpatialKernel] = []
    for function in program.functions:
        system = program.system_of(function.name)
        if system is not None:
            if function.name == system.members[-1]:
                kernels.append(system_kernel(program, system, _scheduled(system, funcs)))
        elif projected_system(program, function) is None and (
            function.updates or function.name in program.outputs
        ):
            reassociate = any(
                isinstance(directive, Reassociate) for directive in funcs[function.name].plan
            )
            kernels.append(initial_kernel(program, function, reassociate))
    return tuple(kernels)


def _scheduled(system: System, funcs: Mapping[str, ScheduledFunc]) -> str:
    """The member that carries the directives of a system; by default the last one."""
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
    """Whether a directive is about the loop nest rather than a stream of results."""
    return not isinstance(directive, IsolateConsumer)


def _covered(kernel: SpatialKernel) -> tuple[str, ...]:
    """The Funcs whose directives go to a kernel: its own, its members, its results."""
    members = (member.name for member in kernel.members)
    results = (result.function for result in kernel.results)
    return tuple(dict.fromkeys([kernel.function, *members, *results]))


def _step(name: str, owner: str, directive: Directive, constants: Mapping[str, int]) -> Pass:
    """A directive of a Func, to be applied to the kernel ``owner``."""
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
    """Apply a directive of a Func to the kernel that computes it."""
    if isinstance(directive, IsolateConsumer) and program.kernel(owner).members:
        check_names_free(program, owner, directive)
        return isolate_result(program, owner, name, directive)
    _check_no_projection(program, owner, name, directive)
    if isinstance(directive, IsolateProducer) and directive.target is not None:
        types = {function.name: function.type for function in program.temporal.functions}
        kernel = program.kernel(owner)
        target = frozen_part(directive.target, kernel.value.type, constants, types)
        # the definition has lost its dead reads for these sizes, so the part must, too
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


# Well-formedness of spatial programs, checked after every directive and every pass.
#
# These are invariants between passes; a violation is an ``InternalError``.  A pass keeps the
# objects of unchanged kernels, so only new objects are checked.


def verify_program(program: SpatialProgram, known: SpatialProgram | None = None) -> None:
    """Raise ``InternalError`` if the program is not well-formed; ``known`` was verified before."""
    done = set() if known is None else {id(kernel) for kernel in known.kernels}
    before: set[str] = set()
    for kernel in program.kernels:
        if kernel.name in before:
            raise InternalError(f"two kernels are named {kernel.name}")
        for operand in kernel.operands:
            if operand.producer not in before:
                raise InternalError(f"{operand.producer} does not come before {kernel.name}")
        if id(kernel) not in done:
            _verify_nest(kernel)
            _verify_work(kernel)
        before.add(kernel.name)


def _verify_nest(kernel: SpatialKernel) -> None:
    loops = {loop.name for loop in kernel.loops}
    if len(loops) != len(kernel.loops):
        raise InternalError(f"{kernel.name} has two loops of one name")
    for name, expr in kernel.variables:
        missing = index_names(expr) - loops
        if missing:
            raise InternalError(f"{name} of {kernel.name} uses unknown loops {sorted(missing)}")
    if {name for name, _ in kernel.variables} != {d.name for d in kernel.domain}:
        raise InternalError(f"the variables of {kernel.name} are not those of its domain")
    outside: set[str] = set()
    for loop in kernel.loops:
        missing = (index_names(loop.minimum) | index_names(loop.extent)) - outside
        if missing:
            raise InternalError(f"bounds of {loop.name} in {kernel.name} use {sorted(missing)}")
        outside.add(loop.name)
    if kernel.active is not None and index_names(kernel.active) - loops:
        raise InternalError(f"{kernel.name} is active by unknown loops: {kernel.active}")


def _verify_work(kernel: SpatialKernel) -> None:
    if isinstance(kernel.work, Relay | StoreUnit) and len(kernel.operands) != 1:
        raise InternalError(f"{kernel.name} passes on {len(kernel.operands)} operands")
    names = [operand.name for operand in kernel.operands]
    if len(set(names)) != len(names):
        raise InternalError(f"two operands of {kernel.name} have one name: {names}")
    variables = {dimension.name for dimension in kernel.domain}
    for what in (kernel.condition, *(part for o in kernel.operands for part in o.access)):
        missing = set() if what is None else index_names(what) - variables
        if missing:
            raise InternalError(f"{kernel.name} uses unknown variables {sorted(missing)}")
