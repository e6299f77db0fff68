"""``vload`` and ``vstore``: the innermost loop becomes the lanes of vectors.

Before -> after, for an innermost loop ``kk`` of 16 iterations::

    vload(A, B)    C[i, j] += A[i, 16*k + kk] * B[j, 16*k + kk]
               ->  C[i, j] += reduce_lanes(+, A[i, 16*k : 16*k + 16] * B[j, 16*k : 16*k + 16])

All operands that vary along the loop are loaded as vectors and have to be contiguous along it;
the others stay scalars and are broadcast.  The producers of vectors send vectors, so channels widen
with them.  If the loop is a reduction it becomes a dot product (a balanced tree: this reassociates
the sum); if it is not, the results are vectors and have to be stored with ``vstore``.

**Gathered results**: with ``vstore`` the loop that was gathered last becomes the lanes.

Before -> after, for 8 PEs along ``jj`` that ``C_collector.gather(C, jj)`` collects from::

    C_unloader.vstore(C)    C_unloader: for i: for jj: store C[i, jj]
                        ->  C_unloader: for i: store C[i, 0..7]
                            C_collector[jj]: for i: take the vector of C_collector[jj+1], put
                                the own value into lane jj, send the vector to C_collector[jj-1]
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from t2s.core.errors import UserError
from t2s.core.printer import show
from t2s.core.types import MOST_LANES
from t2s.spatial.analysis.lanes import (
    check_independent,
    check_lanes,
)
from t2s.spatial.analysis.lookup import (
    check_in_all_iterations,
    check_not_time,
    constant_bounds,
    consumers,
    counterpart,
    readable_update,
    reduction_term,
    same_loop,
    varies,
)
from t2s.spatial.analysis.occurrences import all_reads
from t2s.spatial.directive import Directive
from t2s.spatial.inline import inline_functions
from t2s.spatial.ir import (
    Evaluation,
    KernelOperand,
    LoopExecution,
    Recurrences,
    Reduction,
    SpatialKernel,
    SpatialLoop,
    SpatialProgram,
    StoreUnit,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorLoad(Directive):
    """The innermost loop becomes the lanes of vectors; ``operands`` are loaded as vectors."""

    operands: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorStore(Directive):
    """The results of ``function`` are stored as vectors along the innermost loop.

    ``lanes`` is that loop if the user named it.
    """

    function: str
    lanes: str | None = None


def vload(program: SpatialProgram, name: str, directive: VectorLoad) -> SpatialProgram:
    """Turn the innermost serial loop into lanes and mark the operands."""
    kernel = program.kernel(name)
    _calculation(kernel, directive)
    sources = _sources(kernel)
    if not sources.issuperset(directive.operands):
        operands = frozenset(directive.operands)
        program = program.with_kernel(inline_functions(program.temporal, kernel, operands))
        kernel = program.kernel(name)
        sources = _sources(kernel)
    for operand in directive.operands:
        if operand not in sources:
            raise UserError(
                f"{directive.text} on {name}: {operand} is not used in {name}",
                location=directive.location,
                expected=f"one of {', '.join(sorted(sources))}",
                given=operand,
            )
    program = _vectorize(program, kernel, directive)
    kernel = program.kernel(name)
    work = _calculation(kernel, directive)
    marked = replace(work, vector_operands=(*work.vector_operands, *directive.operands))
    program = program.with_kernel(replace(kernel, work=marked))
    check_lanes(program.kernel(name), directive)
    return program


def _sources(kernel: SpatialKernel) -> set[str]:
    """Everything that can be named in ``vload``: inputs, Funcs, and producers of operands."""
    sources = {guarded.read.source for guarded, _ in all_reads(kernel)}
    return sources | {s for o in kernel.operands for s in (o.source, o.producer)}


def vstore(program: SpatialProgram, name: str, directive: VectorStore) -> SpatialProgram:
    """Mark the results as stored by vectors; vectorizes the function if ``vload`` has not."""
    kernel = program.kernel(name)
    function = program.find(directive.function)
    if kernel.members and directive.function in _named(kernel):
        function = kernel
    elif function is None or kernel.function != directive.function:
        raise UserError(
            f"{directive.text} on {name}: {name} does not save results of {directive.function}",
            location=directive.location,
            expected=f"vstore({kernel.function})",
            given=directive.function,
        )
    if function.vector_loop is None and kernel.name != function.name:
        raise UserError(
            f"{directive.text} on {name}: {function.name} sends single values to {name}",
            location=directive.location,
            expected=f"a vectorized {function.name}",
            hint=f"write {function.name}.vload(...) or {function.name}.vstore({function.name}), "
            "with a loop innermost that is not a reduction",
        )
    program = _vectorize(program, function, directive)
    function = program.kernel(function.name)
    vector = function.vector_loop
    if vector is not None and vector.reduction:
        raise UserError(
            f"{directive.text} on {name}: the innermost loop {vector.name} of {function.name} is a "
            "reduction",
            location=directive.location,
            expected="results that are vectors",
            given=f"one {function.value.type} per dot product",
            hint="make a loop of the results innermost, with reorder, before vstore",
        )
    work = replace(_calculation(function, directive), vector_store=True)
    return program.with_kernel(replace(function, work=work))


def _named(kernel: SpatialKernel) -> set[str]:
    """The Funcs of a system that can be named in ``vstore``: members and results."""
    names = {member.name for member in kernel.members}
    return names | {result.function for result in kernel.results}


def _calculation(
    kernel: SpatialKernel, directive: Directive
) -> Evaluation | Reduction | Recurrences:
    """The calculation of a kernel; an error if it has none."""
    if isinstance(kernel.work, Evaluation | Reduction | Recurrences):
        return kernel.work
    raise UserError(
        f"{directive.text} on {kernel.name}: {kernel.name} only passes values on",
        location=directive.location,
        expected="the function that computes",
        hint=f"write it on {kernel.function} before isolating: the producers widen with it",
    )


def _vectorize(
    program: SpatialProgram, kernel: SpatialKernel, directive: Directive
) -> SpatialProgram:
    if kernel.vector_loop is not None:
        return program
    serial = kernel.kind(LoopExecution.SERIAL)
    if not serial:
        raise UserError(
            f"{directive.text} on {kernel.name}: no loop is left in time",
            location=directive.location,
            expected="an innermost loop that is not unrolled",
        )
    loop = serial[-1]
    check_not_time(kernel, loop, directive)
    check_in_all_iterations(
        kernel, loop, directive, f"iterations in which all lanes along {loop.name} take part"
    )
    _, lanes = constant_bounds(kernel, loop, directive)
    if lanes > MOST_LANES:
        raise UserError(
            f"{directive.text} on {kernel.name}: {loop.name} would be a vector of {lanes} lanes",
            location=directive.location,
            expected=f"at most {MOST_LANES} lanes",
            given=f"{loop.name}: {loop.reason}",
            hint=f"split {loop.name} first, so that a shorter loop is innermost",
        )
    if loop.reduction and reduction_term(kernel.value) is None:
        raise UserError(
            f"{directive.text} on {kernel.name}: the innermost loop {loop.name} is a reduction "
            "that is not +, *, min or max",
            location=directive.location,
            expected=f"{kernel.name}[...] op term, with an associative op",
            given=show(readable_update(kernel.function, kernel.value)),
        )
    widened = _with_vector(kernel, loop.name, directive)
    if isinstance(kernel.work, Recurrences):
        check_independent(kernel, loop, directive)
        members = tuple(replace(member, lanes=True) for member in kernel.work.members)
        widened = replace(widened, work=replace(kernel.work, members=members))
    program = program.with_kernel(widened)
    for operand in kernel.operands:
        program = _widen_upstream(program, kernel, operand, loop, directive)
    if not loop.reduction:
        for follower in consumers(program, kernel.name):
            own = counterpart(follower, kernel, loop, directive)
            program = program.with_kernel(_with_vector(follower, own.name, directive))
    return program


def _with_vector(kernel: SpatialKernel, name: str, directive: Directive) -> SpatialKernel:
    loops = tuple(
        replace(loop, kind=LoopExecution.VECTOR, reason=f"lanes of vectors by {directive.text}")
        if loop.name == name
        else loop
        for loop in kernel.loops
    )
    return replace(kernel, loops=loops, vectorized=directive)


def _widen_upstream(
    program: SpatialProgram,
    kernel: SpatialKernel,
    operand: KernelOperand,
    loop: SpatialLoop,
    directive: Directive,
) -> SpatialProgram:
    """Producers of a varying operand send vectors; those of an invariant one lose the loop."""
    if operand.at_start and loop.reduction:
        return program  # the loop has been removed already
    if operand.taken is not None:
        return program  # its producer keeps its own loops
    producer = program.kernel(operand.producer)
    own = counterpart(producer, kernel, loop, directive)
    for upstream in producer.operands:
        program = _widen_upstream(program, producer, upstream, own, directive)
    varying = varies(kernel, operand.access, loop.name)
    narrowed = (
        _with_vector(producer, own.name, directive)
        if varying
        else producer.without(frozenset({own.name}))
    )
    return program.with_kernel(narrowed)


def store_vectors(program: SpatialProgram, name: str, directive: VectorStore) -> SpatialProgram:
    """Apply ``vstore``, along the loop that the user named if there is one."""
    program = _store_vectors(program, name, directive)
    vector = program.kernel(name).vector_loop
    along = vector.name if vector is not None else "none"
    if directive.lanes not in (None, along):
        raise UserError(
            f"{directive.text} on {name}: {directive.lanes} is not the innermost loop of {name}",
            location=directive.location,
            expected=f"the loop whose iterations become lanes: {along}",
            given=f"lanes={directive.lanes}",
            hint="what is gathered last is innermost",
        )
    return program


def _store_vectors(program: SpatialProgram, name: str, directive: VectorStore) -> SpatialProgram:
    """Turn gathered results into vectors; computed vectors are stored as usual."""
    kernel = program.kernel(name)
    gathered = _gathered_loops(program, kernel)
    if not gathered or kernel.vector_loop is not None or kernel.function != directive.function:
        return vstore(program, name, directive)
    if not isinstance(kernel.work, StoreUnit):
        storing = next(k.name for k in consumers(program, name) if isinstance(k.work, StoreUnit))
        raise UserError(
            f"{directive.text} on {name}: {name} does not store",
            location=directive.location,
            expected="the last Func of the chain of consumers",
            given=name,
            hint=f"write {storing}.vstore({directive.function})",
        )
    serial = kernel.kind(LoopExecution.SERIAL)
    loop = serial[-1]
    between = _between(program, kernel, loop)
    if between is None:
        collected = ", ".join(other.name for other in gathered)
        raise UserError(
            f"{directive.text} on {name}: the innermost loop {loop.name} of {name} is not gathered",
            location=directive.location,
            expected=f"a loop along which PEs are gathered innermost: {collected}",
            given="loops, outermost first: " + ", ".join(other.name for other in serial),
            hint=f"write {name}.reorder(...) first, or gather along {loop.name}",
        )
    constant_bounds(kernel, loop, directive)
    for relay in between:
        vector = same_loop(relay.loops, loop)
        lanes = tuple(
            replace(own, kind=LoopExecution.VECTOR, reason=f"lanes of vectors by {directive.text}")
            if own is vector
            else own
            for own in relay.loops
        )
        program = program.with_kernel(replace(relay, loops=lanes, vectorized=directive))
    return program


def _sender(program: SpatialProgram, kernel: SpatialKernel) -> SpatialKernel | None:
    """The kernel that sends a consumer its results."""
    operand = next((o for o in kernel.operands if o.is_result), None)
    return None if operand is None else program.kernel(operand.producer)


def _gathered_loops(program: SpatialProgram, kernel: SpatialKernel) -> list[SpatialLoop]:
    """The loops along which results are gathered before or in a kernel."""
    loops: list[SpatialLoop] = []
    stage: SpatialKernel | None = kernel
    while stage is not None:
        loop = None if stage.gathering is None else stage.loop(stage.gathering.loop)
        loops += [] if loop is None else [loop]
        stage = _sender(program, stage)
    return loops


def _between(
    program: SpatialProgram, kernel: SpatialKernel, loop: SpatialLoop
) -> list[SpatialKernel] | None:
    """The kernel and its predecessors, up to but excluding the one that gathers along the loop."""
    passing = [kernel]
    while True:
        sender = _sender(program, passing[-1])
        if sender is None:
            return None
        own = same_loop(sender.loops, loop)
        if own is None:
            return None
        if sender.gathering is not None and sender.gathering.loop == own.name:
            return passing
        if own.kind is not LoopExecution.SERIAL:
            return None
        passing.append(sender)
