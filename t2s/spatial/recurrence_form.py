"""An ordinary kernel as a system of recurrences: ``C[i, j] += A[i, k] * B[k, j]`` as equations.

The reduction becomes a recurrence along its loops, in the order in which they run: each step reads
the step before, the first one the initial value.  Where the innermost reduction loop is at its
start, the step before is the last one of the next outer loop's previous iteration.
"""

from __future__ import annotations

from dataclasses import replace

from t2s.core.errors import InternalError
from t2s.core.expr import (
    Expr,
    Index,
    Local,
    Read,
    Select,
    apply,
    conjunction,
    const,
    equals,
    index_names,
    simplify,
    substitute,
)
from t2s.core.isl import LoopDomain
from t2s.core.isl_maps import condition
from t2s.core.ops import Op
from t2s.core.walk import Term, rewrite
from t2s.spatial.analysis.padding import in_domain, inside_of_domain
from t2s.spatial.analysis.reduction_form import PREVIOUS
from t2s.spatial.ir import Kernel, Loop, LoopKind
from t2s.spatial.work import Evaluation, Member, Recurrences, Reduction, Result


def as_system(kernel: Kernel) -> Kernel:
    """The kernel with one member instead of a value; a system stays as it is."""
    work = kernel.work
    if isinstance(work, Recurrences):
        return kernel
    if not isinstance(work, Evaluation | Reduction) or work.store is None:
        raise InternalError(f"{kernel.name} stores nothing")
    value = work.value
    if isinstance(work, Reduction):
        value = _masked(kernel, value)
        previous = _previous(kernel, work.initial)

        def rule(node: Term) -> Term | None:
            return previous if isinstance(node, Local) and node.name == PREVIOUS else None

        value = rewrite(value, rule)
    vector = kernel.vector_loop
    domain = tuple(
        padded if padded.reduction else dimension
        for dimension, padded in zip(kernel.domain, kernel.padded_domain, strict=True)
    )
    arguments = tuple(dimension.name for dimension in domain)
    intervals = [dimension.interval for dimension in domain]
    final = [equals(loop.definition, kernel.over_domain(loop.last)) for loop in _steps(kernel)]
    where = condition(LoopDomain(intervals), LoopDomain(intervals, final).points)
    member = Member(
        name=kernel.function,
        type=work.value.type,
        arguments=arguments,
        value=value,
        lanes=vector is not None,
        location=kernel.location,
    )
    result = Result(
        function=work.store.tensor,
        member=member.name,
        indices=work.store.indices,
        condition=where,
    )
    system = Kernel(
        name=kernel.name,
        function=kernel.function,
        domain=domain,
        loops=tuple(_plain(loop) for loop in kernel.loops),
        variables=kernel.variables,
        work=Recurrences(
            members=(member,),
            results=(result,),
            vector_operands=work.vector_operands,
            vector_store=work.vector_store,
        ),
        vectorised=kernel.vectorised,
        reshaped=kernel.reshaped,
        capacity=kernel.capacity,
        location=kernel.location,
    )
    return inside_of_domain(system) if kernel.paddings else system


def _masked(kernel: Kernel, value: Expr) -> Expr:
    """In padded steps of a reduction the value of the step before.

    A step that were left out would not hand that on to the next one.
    """
    inside = in_domain(kernel, reductions_only=True)
    if inside is None:
        return value
    before = Local(name=PREVIOUS, type=value.type)
    return Select(condition=inside, if_true=value, if_false=before, type=value.type)


def _plain(loop: Loop) -> Loop:
    return replace(loop, reduction=False)


def _steps(kernel: Kernel) -> list[Loop]:
    return [loop for loop in kernel.reduction_loops if loop.kind is not LoopKind.VECTOR]


def _previous(kernel: Kernel, initial: Expr) -> Expr:
    """The value of the step before, over the domain's variables."""
    steps = _steps(kernel)
    type = kernel.value.type
    value = initial
    for at, loop in enumerate(steps):
        inner = steps[at + 1 :]
        moved: dict[str, Expr] = {
            loop.name: simplify(apply(Op.SUBTRACT, Index(name=loop.name), const(1))),
            **{other.name: other.last for other in inner},
        }
        starts = [equals(Index(name=other.name), other.minimum) for other in inner]
        advanced = conjunction(
            apply(Op.GREATER, Index(name=loop.name), loop.minimum),
            *starts,
        )
        if advanced is None:
            raise InternalError(f"{loop.name} never advances")
        before = Read(
            source=kernel.function,
            indices=tuple(_before(kernel, d.name, moved) for d in kernel.domain),
            type=type,
            location=kernel.location,
        )
        value = Select(
            condition=kernel.over_domain(advanced), if_true=before, if_false=value, type=type
        )
    return value


def _before(kernel: Kernel, name: str, moved: dict[str, Expr]) -> Expr:
    placed = dict(kernel.variables)[name]
    if not index_names(placed) & moved.keys():
        return Index(name=name)
    return kernel.over_domain(substitute(placed, moved))
