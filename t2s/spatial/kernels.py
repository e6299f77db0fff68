"""The first kernel of a function: its definition as a loop nest, before any directive."""

from __future__ import annotations

from t2s.core.errors import UnsupportedError
from t2s.core.expr import Expr, Index, Local, Read, apply, const, reads, substitute
from t2s.core.isl import Interval, LoopDomain
from t2s.core.ops import Op
from t2s.core.walk import Term, rewrite
from t2s.func.ir import Definition, Function, TemporalProgram
from t2s.spatial.analysis.reduction_form import PREVIOUS, mentions_previous
from t2s.spatial.inline import join_choices
from t2s.spatial.ir import Kernel, Loop, LoopKind, shifted
from t2s.spatial.work import Evaluation, Reduction, StoreTarget, Work


def initial_kernel(program: TemporalProgram, function: Function, reassociate: bool) -> Kernel:
    """One loop for each dimension of the definition, in the order of the definition.

    The initial definition becomes the value that the update's reduction starts from.  Raises
    ``UnsupportedError`` for several updates and for recursion other than accumulation.
    """
    definition, value, initial = _value(function)
    _check_not_empty(function, definition)
    loops = tuple(
        Loop(
            name=dimension.name,
            minimum=dimension.minimum,
            extent=dimension.extent,
            kind=LoopKind.SERIAL,
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
    return Kernel(
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
