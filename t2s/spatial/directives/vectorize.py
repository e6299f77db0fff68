"""``vload`` and ``vstore``: the innermost loop becomes the lanes of vectors.

Before -> after, for an innermost loop ``kk`` of 16 iterations::

    vload(A, B)    C[i, j] += A[i, 16*k + kk] * B[j, 16*k + kk]
               ->  C[i, j] += reduce_lanes(+, A[i, 16*k : 16*k + 16] * B[j, 16*k : 16*k + 16])

All operands that vary along the loop are loaded as vectors and have to be contiguous along it;
the others stay scalars and are broadcast.  The producers of vectors send vectors, so channels widen
with them.  If the loop is a reduction it becomes a dot product (a balanced tree: this reassociates
the sum); if it is not, the results are vectors and have to be stored with ``vstore``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from t2s.core.errors import UserError
from t2s.core.expr import Expr, Read, conjunction, index_names
from t2s.core.printer import show
from t2s.core.types import MOST_LANES
from t2s.spatial.analysis.lanes import (
    check_contiguous,
    check_independent,
    check_system_lanes,
    outside_reads,
)
from t2s.spatial.analysis.lookup import (
    check_in_all_iterations,
    check_not_time,
    constant_bounds,
    counterpart,
)
from t2s.spatial.analysis.occurrences import all_reads
from t2s.spatial.analysis.reduction_form import mentions_previous, readable_update, reduction_term
from t2s.spatial.directive import Directive, VectorLoad, VectorStore
from t2s.spatial.directives.isolate import varies
from t2s.spatial.inline import inline_functions
from t2s.spatial.ir import Kernel, Loop, LoopKind, SpatialProgram
from t2s.spatial.operands import Operand
from t2s.spatial.work import (
    Calculation,
    Evaluation,
    LoadUnit,
    Recurrences,
    Reduction,
    StoreTarget,
    StoreUnit,
)


def vload(program: SpatialProgram, name: str, directive: VectorLoad) -> SpatialProgram:
    """Turn the innermost serial loop into lanes and mark the operands."""
    kernel = program.kernel(name)
    _calculation(kernel, directive)
    sources = _sources(kernel)
    if not sources.issuperset(directive.operands):
        kept = frozenset(directive.operands)
        program = program.with_kernel(inline_functions(program.temporal, kernel, kept))
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
    program = _vectorise(program, kernel, directive)
    kernel = program.kernel(name)
    work = _calculation(kernel, directive)
    marked = replace(work, vector_operands=(*work.vector_operands, *directive.operands))
    program = program.with_kernel(replace(kernel, work=marked))
    check_lanes(program.kernel(name), directive)
    return program


def _sources(kernel: Kernel) -> set[str]:
    """Everything that can be named in ``vload``: inputs, Funcs, and producers of operands."""
    sources = {guarded.read.source for guarded, _ in all_reads(kernel)}
    return sources | {s for o in kernel.operands for s in (o.source, o.producer)}


def vstore(program: SpatialProgram, name: str, directive: VectorStore) -> SpatialProgram:
    """Mark the results as stored by vectors; vectorises the function if ``vload`` has not."""
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
            expected=f"a vectorised {function.name}",
            hint=f"write {function.name}.vload(...) or {function.name}.vstore({function.name}), "
            "with a loop innermost that is not a reduction",
        )
    program = _vectorise(program, function, directive)
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


def _named(kernel: Kernel) -> set[str]:
    """The Funcs of a system that can be named in ``vstore``: members and results."""
    names = {member.name for member in kernel.members}
    return names | {result.function for result in kernel.results}


def _calculation(kernel: Kernel, directive: Directive) -> Evaluation | Reduction | Recurrences:
    """What a kernel computes; an error for one that computes nothing."""
    if isinstance(kernel.work, Evaluation | Reduction | Recurrences):
        return kernel.work
    raise UserError(
        f"{directive.text} on {kernel.name}: {kernel.name} only passes values on",
        location=directive.location,
        expected="the function that computes",
        hint=f"write it on {kernel.function} before isolating: the producers widen with it",
    )


def _vectorise(program: SpatialProgram, kernel: Kernel, directive: Directive) -> SpatialProgram:
    if kernel.vector_loop is not None:
        return program
    serial = kernel.kind(LoopKind.SERIAL)
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
            "that is no sum, product, minimum or maximum",
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


def _with_vector(kernel: Kernel, name: str, directive: Directive) -> Kernel:
    loops = tuple(
        replace(loop, kind=LoopKind.VECTOR, reason=f"lanes of vectors by {directive.text}")
        if loop.name == name
        else loop
        for loop in kernel.loops
    )
    return replace(kernel, loops=loops, vectorised=directive)


def _widen_upstream(
    program: SpatialProgram, kernel: Kernel, operand: Operand, loop: Loop, directive: Directive
) -> SpatialProgram:
    """Producers of a varying operand send vectors; those of an invariant one lose the loop."""
    if operand.at_start and loop.reduction:
        return program  # it has lost the loop already
    if operand.taken is not None:
        return program  # its producer does not follow
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


def consumers(program: SpatialProgram, name: str) -> Iterator[Kernel]:
    for kernel in program.kernels:
        if any(operand.producer == name for operand in kernel.operands):
            yield kernel
            yield from consumers(program, kernel.name)


def check_lanes(kernel: Kernel, directive: Directive) -> None:
    """No condition varies along the lanes, and only elements depend on them."""
    loop = kernel.vector_loop
    if loop is None:
        return
    for part in _free_parts(kernel):
        if loop.name in index_names(kernel.place(part)):
            raise UserError(
                f"{directive.text} on {kernel.name}: the computation uses the index of the vector "
                f"loop {loop.name} itself",
                location=directive.location,
                expected="an index that occurs in subscripts only",
                given=f"{show(kernel.place(part))} in its value or in a condition",
                hint="put another loop innermost",
            )


def check_contiguity(program: SpatialProgram) -> SpatialProgram:
    """The program, if all vectors that the device loads and stores are contiguous in memory.

    What the host orders is.
    """
    hosts = {kernel.name for kernel in program.kernels if kernel.on_host}
    for kernel in program.kernels:
        loop, directive = kernel.vector_loop, kernel.vectorised
        if loop is None or directive is None or kernel.name in hosts:
            continue
        subject, location = f"{directive.text} on {kernel.function}", directive.location
        match kernel.work:
            case LoadUnit(value=Read(source=source, indices=indices)):
                check_contiguous(kernel, source, indices, subject, location)
            case StoreUnit(store=StoreTarget(tensor=tensor, indices=indices)):
                check_contiguous(kernel, tensor, indices, subject, location)
    return program


def _free_parts(kernel: Kernel) -> Iterator[Expr]:
    """The value, initial value and conditions, without the subscripts inside them."""
    for expr in (kernel.value, kernel.initial, kernel.condition):
        if expr is not None:
            yield from outside_reads(expr)
    condition = conjunction(*(operand.condition for operand in kernel.operands))
    if condition is not None:
        yield condition


def check_complete(kernel: Kernel) -> None:
    """Before lowering: everything that varies was asked for, and vector results are stored so."""
    check_system_lanes(kernel)
    loop, directive, work = kernel.vector_loop, kernel.vectorised, kernel.work
    if loop is None or directive is None or not isinstance(work, Calculation):
        return
    check_lanes(kernel, directive)
    subject = f"{directive.text} on {kernel.name}"
    for operand in kernel.operands:
        asked = {operand.source, operand.producer} & set(work.vector_operands)
        if asked or not varies(kernel, operand.access, loop.name):
            continue
        raise UserError(
            f"{subject}: {operand.source} varies along the vector loop {loop.name} too and is not "
            "loaded as a vector",
            location=directive.location,
            expected=f"vload({', '.join([*work.vector_operands, operand.source])})",
            given=f"vload({', '.join(work.vector_operands)})",
            hint="everything that varies along the innermost loop becomes a vector; put another "
            "loop innermost to keep it a single value",
        )
    own = kernel.name == kernel.function or bool(kernel.members)
    if not loop.reduction and own and not work.vector_store:
        raise UserError(
            f"{subject}: the results are vectors along {loop.name} and are not stored as vectors",
            location=directive.location,
            expected=f"{kernel.name}.vstore({kernel.name}) as well",
            given=f"{loop.name} innermost, which is not a reduction",
            hint="a reduction loop innermost would give single results, by dot products",
        )
    if loop.reduction and kernel.initial is not None and not mentions_previous(kernel.value):
        raise UserError(
            f"{subject}: every lane of the vector loop {loop.name} would overwrite one value",
            location=directive.location,
            expected=f"a reduction such as {kernel.name}[...] += ...",
        )
