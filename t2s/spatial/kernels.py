"""The first kernel of a function: its definition as a loop nest, before any directive.

``as_system`` makes a system of recurrences of it: ``C[i, j] += A[i, k] * B[k, j]`` as equations.
The reduction becomes a recurrence along its loops, in the order in which they run: each step reads
the step before, the first one the initial value.  Where the innermost reduction loop is at its
start, the step before is the last one of the next outer loop's previous iteration.
"""

from __future__ import annotations

from dataclasses import replace

from t2s.core.errors import InternalError, UnsupportedError
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
    reads,
    simplify,
    substitute,
)
from t2s.core.isl import Interval, LoopDomain
from t2s.core.isl_maps import condition
from t2s.core.ops import Op
from t2s.core.walk import Term, rewrite
from t2s.func.ir import Definition, Function, TemporalProgram
from t2s.spatial.analysis.padding import in_domain, inside_of_domain
from t2s.spatial.analysis.reduction_form import PREVIOUS, mentions_previous
from t2s.spatial.inline import join_choices
from t2s.spatial.ir import SpatialKernel
from t2s.spatial.loop_nest import LoopExecution, SpatialLoop, shifted
from t2s.spatial.work import (
    Evaluation,
    Member,
    Recurrences,
    Reduction,
    Result,
    StoreTarget,
    Work,
)


def initial_kernel(
    program: TemporalProgram, function: Function, reassociate: bool
) -> SpatialKernel:
    """One loop for each dimension of the definition, in the order of the definition.

    The initial definition becomes the value that the update's reduction starts from.  Raises
    ``UnsupportedError`` for several updates and for recursion other than accumulation.
    """
    definition, value, initial = _value(function)
    _check_not_empty(function, definition)
    loops = tuple(
        SpatialLoop(
            name=dimension.name,
            minimum=dimension.minimum,
            extent=dimension.extent,
            kind=LoopExecution.SERIAL,
            reduction=dimension.reduction,
            definition=Index(name=dimension.name),
            reason="reduction of the definition" if dimension.reduction else "of the definition",
        )
        for dimension in definition.domain
    )
    indices = tuple(
        shifted(part, -low)
        for part, (low, _) in zip(definition.target, function.bounds, strict=True)
    )
    store = StoreTarget(tensor=function.name, indices=indices)
    value = join_choices(program, value)
    work: Work = Evaluation(value=value, store=store)
    if initial is not None:
        initial = join_choices(program, initial)
        work = Reduction(value=value, initial=initial, store=store, reassociate=reassociate)
    return SpatialKernel(
        name=function.name,
        function=function.name,
        domain=definition.domain,
        loops=loops,
        variables=tuple((loop.name, Index(name=loop.name)) for loop in loops),
        work=work,
        location=definition.location,
    )


def _value(function: Function) -> tuple[Definition, Expr, Expr | None]:
    """The definition that gives the loops, its value over ``previous``, and the initial value."""
    if not function.updates:
        return function.initial, function.initial.value, None
    if len(function.updates) > 1:
        raise UnsupportedError(
            f"Func {function.name} has {len(function.updates)} updates",
            location=function.updates[1].location,
            expected="one update in a Func that becomes hardware",
            hint=f"continue in another Func: {function.name}2[i, j] = {function.name}[i, j]",
        )
    update = function.updates[0]
    _check_target(function, update)

    def rule(node: Term) -> Term | None:
        if isinstance(node, Read) and node.source == function.name:
            return Local(name=PREVIOUS, type=node.type)
        return None

    value = rewrite(update.value, rule)
    names = dict(zip(function.arguments, update.target, strict=True))
    initial = substitute(function.initial.value, names)
    if update.reductions:
        return update, value, initial

    def start(node: Term) -> Term | None:
        return initial if isinstance(node, Local) and node.name == PREVIOUS else None

    return update, rewrite(value, start) if mentions_previous(value) else value, None


def _check_target(function: Function, update: Definition) -> None:
    reductions = {dimension.name for dimension in update.reductions}
    plain = all(isinstance(part, Index) and part.name not in reductions for part in update.target)
    if not plain:
        raise UnsupportedError(
            f"this update of {function.name} writes to computed places",
            location=update.location,
            expected=f"plain Vars on the left side, as in {function.name}[i, j] += ...",
            hint="it can be computed by t2s.interpret; hardware for it is not generated yet",
        )
    for read in reads(update.value):
        if read.source == function.name and read.indices != update.target:
            raise UnsupportedError(
                f"this update of {function.name} reads another element of {function.name}",
                location=read.location or update.location,
                expected="only the element that is updated",
                hint="write it as a recurrence, in one definition of a Func with a declared type: "
                "S[i] = t2s.select(i == 0, x[i], S[i - 1] + x[i])",
            )


def _check_not_empty(function: Function, definition: Definition) -> None:
    """A reduction without steps would never send its result."""
    outer: list[Interval] = []
    for dimension in definition.domain:
        if dimension.reduction:
            empty = LoopDomain(outer, [apply(Op.LESS, dimension.extent, const(1))]).sample()
            if empty is not None:
                point = ", ".join(f"{name}={value}" for name, value in empty.items())
                raise UnsupportedError(
                    f"the reduction over {dimension.name} in {function.name} is empty for {point}",
                    location=definition.location,
                    expected="at least one step for every element",
                    hint="start the reduction one step earlier, with a neutral term",
                )
        outer.append(dimension.interval)


def as_system(kernel: SpatialKernel) -> SpatialKernel:
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
    system = SpatialKernel(
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
        vectorized=kernel.vectorized,
        reshaped=kernel.reshaped,
        capacity=kernel.capacity,
        location=kernel.location,
    )
    return inside_of_domain(system) if kernel.paddings else system


def _masked(kernel: SpatialKernel, value: Expr) -> Expr:
    """In padded steps of a reduction the value of the step before.

    A step that were left out would not hand that on to the next one.
    """
    inside = in_domain(kernel, reductions_only=True)
    if inside is None:
        return value
    before = Local(name=PREVIOUS, type=value.type)
    return Select(condition=inside, if_true=value, if_false=before, type=value.type)


def _plain(loop: SpatialLoop) -> SpatialLoop:
    return replace(loop, reduction=False)


def _steps(kernel: SpatialKernel) -> list[SpatialLoop]:
    return [loop for loop in kernel.reduction_loops if loop.kind is not LoopExecution.VECTOR]


def _previous(kernel: SpatialKernel, initial: Expr) -> Expr:
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


def _before(kernel: SpatialKernel, name: str, moved: dict[str, Expr]) -> Expr:
    placed = dict(kernel.variables)[name]
    if not index_names(placed) & moved.keys():
        return Index(name=name)
    return kernel.over_domain(substitute(placed, moved))
