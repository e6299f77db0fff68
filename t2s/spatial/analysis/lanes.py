"""Requirements of vector lanes: contiguous operands, and lanes independent of one another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from t2s.core.errors import UserError
from t2s.core.expr import Expr, Index, Local, Read, conjunction, index_names, substitute
from t2s.core.location import SourceLocation
from t2s.core.printer import show
from t2s.core.walk import Term, distinct, walk
from t2s.spatial.analysis.lookup import mentions_previous, varies
from t2s.spatial.analysis.recurrences import member_reads
from t2s.spatial.directive import Directive
from t2s.spatial.ir import (
    Calculation,
    LoadUnit,
    Member,
    SpatialKernel,
    SpatialLoop,
    SpatialProgram,
    StoreTarget,
    StoreUnit,
)


def check_contiguous(
    kernel: SpatialKernel,
    source: str,
    access: tuple[Expr, ...],
    subject: str,
    location: SourceLocation,
) -> None:
    """The last subscript has to advance by one with the vector loop, the others not at all."""
    loop = kernel.vector_loop
    if loop is None:
        return
    *others, last = access
    relative = kernel.place(last) - Index(name=loop.name)
    probe = replace(kernel, variables=())
    if varies(probe, (*(kernel.place(e) for e in others), relative), loop.name):
        placed = ", ".join(show(kernel.place(index)) for index in access)
        raise UserError(
            f"{subject}: {source} is not contiguous along {loop.name}",
            location=location,
            expected=f"{loop.name} in the last subscript only, with factor 1",
            given=f"{source}[{placed}]",
            hint="arrays are row-major: store it transposed, put another loop innermost, or let "
            "the host order it",
        )


def check_independent(kernel: SpatialKernel, loop: SpatialLoop, directive: Directive) -> None:
    """Check that a recurrence stays in its lane."""
    for read in member_reads(kernel):
        member = kernel.member(read.read.source)
        if member is None:
            continue
        source = dict(zip(member.arguments, read.read.indices, strict=True))
        own = kernel.place(loop.definition)
        source_lane = kernel.place(substitute(loop.definition, source))
        if kernel.domain_of_iterations.range_of(own - source_lane) != (0, 0):
            raise UserError(
                f"{directive.text} on {kernel.name}: {show(read.read)} in {read.member} is in "
                f"another lane of {loop.name}",
                location=directive.location,
                expected=f"a loop along which {read.member} does not depend on itself",
                given=f"{show(source_lane)} of {loop.name}, read at {show(own)}",
                notes=((read.read.location, f"{show(read.read)} is read here"),),
                hint="put another loop innermost, with reorder",
            )


def check_system_lanes(kernel: SpatialKernel) -> None:
    """Check the lanes of a system: operands are contiguous, and no value uses the lane number."""
    loop = kernel.vector_loop
    if loop is None or not kernel.members:
        return
    subject = f"lanes {loop.name}"
    for operand in kernel.operands:
        if varies(kernel, operand.access, loop.name):
            location = _reader(kernel, operand.name).location
            check_contiguous(
                kernel, operand.source, operand.access, f"{subject} on {kernel.name}", location
            )
    variables = {name for name, placed in kernel.variables if _mentions(placed, loop.name)}
    for member in kernel.members:
        for expr in (member.value, member.initial):
            used = None if expr is None else next(filter(variables.__contains__, _free(expr)), None)
            if used is not None:
                raise UserError(
                    f"{subject} on {kernel.name}: {member.name} uses the index {used} itself",
                    location=member.location,
                    expected="an index that occurs in subscripts only: all lanes do the same",
                    given=show(member.value),
                    hint=f"read it from an input array, as in index[{used}]",
                )


def _mentions(expr: Expr, name: str) -> bool:
    return any(isinstance(node, Index) and node.name == name for node in walk(expr))


def _reader(kernel: SpatialKernel, operand: str) -> Member:
    """The member that reads an operand."""
    for member in kernel.members:
        for node in walk(member):
            if isinstance(node, Local) and node.name == operand:
                return member
    return kernel.members[-1]


def _free(expr: Term) -> list[str]:
    """The indices that occur outside of subscripts."""
    return [node.name for node in outside_reads(expr)]


def outside_reads(expr: Term) -> Iterator[Index]:
    """The indices of an expression that are not part of a subscript."""
    for node in distinct(expr, into=lambda term: not isinstance(term, Read)):
        if isinstance(node, Index):
            yield node


def check_lanes(kernel: SpatialKernel, directive: Directive) -> None:
    """Check that no condition varies along the lanes, and that only elements depend on them."""
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
    """Check that all vectors that the device loads and stores are contiguous in memory.

    Arrays that the host orders are contiguous by construction.
    """
    hosts = {kernel.name for kernel in program.kernels if kernel.on_host}
    for kernel in program.kernels:
        loop, directive = kernel.vector_loop, kernel.vectorized
        if loop is None or directive is None or kernel.name in hosts:
            continue
        subject, location = f"{directive.text} on {kernel.function}", directive.location
        match kernel.work:
            case LoadUnit(value=Read(source=source, indices=indices)):
                check_contiguous(kernel, source, indices, subject, location)
            case StoreUnit(store=StoreTarget(tensor=tensor, indices=indices)):
                check_contiguous(kernel, tensor, indices, subject, location)
    return program


def _free_parts(kernel: SpatialKernel) -> Iterator[Expr]:
    """The value, initial value and conditions, without the subscripts inside them."""
    for expr in (kernel.value, kernel.initial, kernel.condition):
        if expr is not None:
            yield from outside_reads(expr)
    condition = conjunction(*(operand.condition for operand in kernel.operands))
    if condition is not None:
        yield condition


def check_complete(kernel: SpatialKernel) -> None:
    """Check, before lowering, that all varying operands and results are vectors."""
    check_system_lanes(kernel)
    loop, directive, work = kernel.vector_loop, kernel.vectorized, kernel.work
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
