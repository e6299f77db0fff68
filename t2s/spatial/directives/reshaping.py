"""What all directives have in common that give a kernel other loops: new indices, and the proof."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from t2s.core.errors import InternalError, UserError
from t2s.core.expr import Expr, Index, substitute
from t2s.core.isl import LoopDomain
from t2s.core.ops import reorderable
from t2s.spatial.analysis.padding import in_domain, nest_of
from t2s.spatial.analysis.reduction_form import reduction_operator
from t2s.spatial.directive import Directive
from t2s.spatial.ir import SpatialKernel
from t2s.spatial.work import Calculation, Reduction


def substituted(kernel: SpatialKernel, values: dict[str, Expr]) -> SpatialKernel:
    """Replace old loop indices in the variables and in the bounds of the remaining loops."""
    return replace(
        kernel,
        active=None if kernel.active is None else substitute(kernel.active, values),
        variables=tuple((name, substitute(expr, values)) for name, expr in kernel.variables),
        loops=tuple(
            replace(
                loop,
                minimum=substitute(loop.minimum, values)
                if loop.name not in values
                else loop.minimum,
                extent=substitute(loop.extent, values) if loop.name not in values else loop.extent,
            )
            for loop in kernel.loops
        ),
    )


def proved(before: SpatialKernel, kernel: SpatialKernel, directive: Directive) -> SpatialKernel:
    """The kernel with the directive that reshaped it, if isl can prove that it may have done so.

    The loops cover the domain (with its padding) exactly once, and a rounding reduction keeps its
    order unless the user wrote ``reassociate()``.  An isolated Func may have lost loops; it has to
    cover what it covered before.
    """
    nest = nest_of(kernel)
    names = [name for name, _ in kernel.variables]
    computed = [expr for _, expr in kernel.variables]
    within: LoopDomain | None = None
    if isinstance(kernel.work, Calculation) and not kernel.paddings:
        wanted = LoopDomain([dimension.interval for dimension in kernel.domain])
        target: list[Expr] = [Index(name=name) for name in names]
    else:
        wanted = nest_of(before)
        target = [expr for _, expr in before.variables]
    # the padded end of a fused loop is no box: it may grow, and reach no further in any variable
    longer = bool(kernel.paddings) and _iterations(kernel) != _iterations(before)
    if longer or kernel.paddings != before.paddings:
        within = LoopDomain([dimension.interval for dimension in kernel.padded_domain])
    problem = nest.covers_exactly(computed, wanted, target, names, within)
    if problem is not None:
        raise InternalError(f"{directive.text} on {kernel.name} broke the loop nest: {problem}")
    _check_reduction_order(kernel, directive)
    return replace(kernel, reshaped=directive)


def _iterations(kernel: SpatialKernel) -> int:
    """Of all loops of constant bounds together."""
    return prod(loop.constant[1] for loop in kernel.loops if loop.constant is not None)


def _check_reduction_order(kernel: SpatialKernel, directive: Directive) -> None:
    match kernel.work:
        case Reduction(value=value, reassociate=reassociate):
            operator = reduction_operator(value)
        case _:
            return
    free = reassociate or (operator and reorderable(operator, value.type))
    if operator is not None and free:
        return
    variables = dict(kernel.variables)
    pure = [variables[d.name] for d in kernel.domain if not d.reduction]
    written = [*pure, *(variables[d.name] for d in kernel.domain if d.reduction)]
    executed = [*pure, *(Index(name=loop.name) for loop in kernel.reduction_loops)]
    inside = in_domain(kernel)
    conditions = [] if inside is None else [kernel.place(inside)]
    nest = LoopDomain([loop.interval for loop in kernel.loops], conditions)
    clash = nest.reverses(written, executed)
    if clash is None:
        return
    order = ", ".join(d.name for d in kernel.domain if d.reduction)
    step = ", ".join(f"{name}={value}" for name, value in clash.items())
    if operator is None:
        raise UserError(
            f"{directive.text} on {kernel.name} changes the order of a recurrence",
            location=directive.location,
            expected=f"the order of {order} as written, because every step needs the one before",
            given=f"for one element, the step at {step} would run after one that needs it",
            hint="only reductions such as += may be reordered",
        )
    raise UserError(
        f"{directive.text} on {kernel.name} changes the order of a reduction that rounds",
        location=directive.location,
        expected=f"the order of {order} as written, because {value.type} {operator.value} "
        "is not associative",
        given=f"for one element, the step at {step} would run after one that follows it",
        hint=f"write {kernel.name}.reassociate() first if another rounding is acceptable",
    )
