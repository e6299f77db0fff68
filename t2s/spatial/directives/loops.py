"""``split``, ``tile``, ``reorder``, ``fuse`` and ``unroll``.

Before -> after, for a loop ``i`` of extent 32::

    split(i, i, ii, 8)     for i in 32        ->  for i in 4: for ii in 8      (i = 8*i + ii)
    split(i, i, ii, 5)     for i in 32        ->  for i in 7: for ii in 5      (3 are padding)
    fuse(j, i, f)          for i: for j in 8  ->  for f                        (i = f//8, j = f%8)
    reorder(i, j)          for i: for j       ->  for j: for i
    unroll(ii, jj)         for i: for ii in 8: for k   ->   PEs [ii: 8] each: for i: for k

Every result is proved but that of ``unroll``, which keeps the loops.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from t2s.core.errors import InternalError, UserError
from t2s.core.expr import Expr, Index, conjunction, const, index_names, simplify, substitute
from t2s.core.isl import LoopDomain
from t2s.core.isl_maps import condition
from t2s.core.ops import reorderable
from t2s.core.printer import show
from t2s.core.types import INT32, value_range
from t2s.core.walk import field_names
from t2s.spatial.analysis.lookup import (
    check_new_names,
    constant_bounds,
    find_serial,
    reduction_operator,
)
from t2s.spatial.analysis.padding import (
    check_not_negative,
    in_domain,
    inside_of_domain,
    nest_of,
    with_padding,
)
from t2s.spatial.directive import Directive
from t2s.spatial.ir import (
    Calculation,
    LoopExecution,
    Reduction,
    SpatialKernel,
    SpatialLoop,
    shifted,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(Directive):
    """``loop`` becomes ``outer`` over ``inner``, ``inner`` having ``factor`` iterations."""

    loop: str
    outer: str
    inner: str
    factor: int

    @property
    def new_loops(self) -> tuple[str, ...]:
        return (self.outer, self.inner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile(Directive):
    """Several splits; then all inner loops go inside all outer ones, innermost first."""

    loops: tuple[str, ...]
    outers: tuple[str, ...]
    inners: tuple[str, ...]
    factors: tuple[int, ...]

    @property
    def new_loops(self) -> tuple[str, ...]:
        return (*self.outers, *self.inners)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reorder(Directive):
    """The named loops change places among themselves; innermost first."""

    loops: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fuse(Directive):
    """``outer`` and ``inner``, directly nested, become the one loop ``fused``."""

    inner: str
    outer: str
    fused: str

    @property
    def new_loops(self) -> tuple[str, ...]:
        return (self.fused,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unroll(Directive):
    """The loops become space: one PE for each iteration."""

    loops: tuple[str, ...]


def split(kernel: SpatialKernel, directive: Split) -> SpatialKernel:
    """Split one loop; a factor that does not divide its extent pads it."""
    return proved(
        kernel,
        _split(
            kernel, directive.loop, directive.outer, directive.inner, directive.factor, directive
        ),
        directive,
    )


def tile(kernel: SpatialKernel, directive: Tile) -> SpatialKernel:
    """Split several loops, then put the inner loops (in the given order) inside the outer ones."""
    before = kernel
    for loop, outer, inner, factor in zip(
        directive.loops, directive.outers, directive.inners, directive.factors, strict=True
    ):
        kernel = _split(kernel, loop, outer, inner, factor, directive)
    order = (*directive.inners, *directive.outers)
    return proved(before, _reorder(kernel, order, directive), directive)


def reorder(kernel: SpatialKernel, directive: Reorder) -> SpatialKernel:
    """Permute the named loops among the places they occupy."""
    return proved(kernel, _reorder(kernel, directive.loops, directive), directive)


def fuse(kernel: SpatialKernel, directive: Fuse) -> SpatialKernel:
    """Replace two directly nested loops by one."""
    inner = find_serial(kernel, directive.inner, directive)
    outer = find_serial(kernel, directive.outer, directive)
    position = kernel.loops.index(outer)
    if position + 1 >= len(kernel.loops) or kernel.loops[position + 1] is not inner:
        raise UserError(
            f"{directive.text} on {kernel.name}: {inner.name} is not directly inside {outer.name}",
            location=directive.location,
            expected=f"for {outer.name}: for {inner.name}",
            given="loops, outermost first: " + ", ".join(loop.name for loop in kernel.loops),
            hint="reorder the loops first; the arguments are fuse(inner, outer, fused)",
        )
    if inner.reduction is not outer.reduction:
        raise UserError(
            f"{directive.text} on {kernel.name}: one of the loops is a reduction, the other is not",
            location=directive.location,
            expected="two reduction loops, or two others",
            given=f"{inner.name}: {inner.reason}; {outer.name}: {outer.reason}",
        )
    inner_minimum, inner_extent = constant_bounds(kernel, inner, directive)
    outer_minimum, outer_extent = constant_bounds(kernel, outer, directive)
    check_new_names(kernel, (directive.fused,), (inner.name, outer.name), directive)
    index = Index(name=directive.fused)
    values = {
        outer.name: shifted(index // inner_extent, outer_minimum),
        inner.name: shifted(index % inner_extent, inner_minimum),
    }
    fused = SpatialLoop(
        name=directive.fused,
        minimum=const(0),
        extent=const(outer_extent * inner_extent),
        kind=LoopExecution.SERIAL,
        reduction=inner.reduction,
        definition=simplify(
            shifted(outer.definition, -outer_minimum) * inner_extent
            + shifted(inner.definition, -inner_minimum)
        ),
        reason=f"{outer.name} and {inner.name} fused by {directive.text}",
    )
    loops = (*kernel.loops[:position], fused, *kernel.loops[position + 2 :])
    return proved(kernel, substituted(replace(kernel, loops=loops), values), directive)


def _split(
    kernel: SpatialKernel, name: str, outer: str, inner: str, factor: int, directive: Directive
) -> SpatialKernel:
    loop = find_serial(kernel, name, directive)
    minimum, extent = constant_bounds(kernel, loop, directive)
    check_new_names(kernel, (outer, inner), (name,), directive)
    count = -(-extent // factor)
    _check_size(kernel, count * factor, directive)
    offset = shifted(loop.definition, -minimum)
    text = directive.text

    def part(new: str, size: int, definition: Expr, what: str) -> SpatialLoop:
        return SpatialLoop(
            name=new,
            minimum=const(0),
            extent=const(size),
            kind=LoopExecution.SERIAL,
            reduction=loop.reduction,
            definition=simplify(definition),
            reason=f"{what} part of {name} by {text}",
        )

    by = const(factor)
    new = (
        part(outer, count, offset // by, "outer"),
        part(inner, factor, offset % by, "inner"),
    )
    position = kernel.loops.index(loop)
    sum_of_parts = Index(name=outer) * by + Index(name=inner)
    value = shifted(sum_of_parts, minimum)
    loops = (*kernel.loops[:position], *new, *kernel.loops[position + 1 :])
    result = substituted(replace(kernel, loops=loops), {name: value})
    if not extent % factor:
        return result
    if not kernel.members:
        return with_padding(result, loop, directive)
    check_not_negative(result, loop, directive)
    return inside_of_domain(result, value < minimum + extent)


def _check_size(kernel: SpatialKernel, size: int, directive: Directive) -> None:
    _, high = value_range(INT32)
    if size <= high:
        return
    raise UserError(
        f"{directive.text} on {kernel.name} pads to more iterations than an index can count",
        location=directive.location,
        expected=f"at most {high}",
        given=str(size),
        hint="choose a smaller factor",
    )


def _reorder(kernel: SpatialKernel, names: tuple[str, ...], directive: Directive) -> SpatialKernel:
    loops = [find_serial(kernel, name, directive) for name in names]
    places = sorted((kernel.loops.index(loop) for loop in loops), reverse=True)
    order = list(kernel.loops)
    for place, loop in zip(places, loops, strict=True):
        order[place] = loop
    seen: set[str] = set()
    for loop in order:
        needed = index_names(loop.minimum) | index_names(loop.extent)
        missing = sorted(needed - seen)
        if missing:
            raise UserError(
                f"{directive.text} on {kernel.name}: the bounds of {loop.name} depend on "
                f"{missing[0]}, which would be inside of it",
                location=directive.location,
                expected=f"{missing[0]} outside of {loop.name}",
                given=f"{loop.name} from {show(loop.minimum)} to {show(loop.last)}",
            )
        seen.add(loop.name)
    return replace(kernel, loops=tuple(order))


def _boxed(kernel: SpatialKernel, loop: SpatialLoop) -> tuple[SpatialKernel, SpatialLoop]:
    """Extend a loop with varying bounds to their hull; the extra iterations are inactive."""
    low, high = kernel.domain_of_iterations.range_of(Index(name=loop.name)) or (0, 0)
    index = Index(name=loop.name)
    inside = conjunction(
        index >= loop.minimum,
        index <= loop.last,
        kernel.active,
    )
    boxed = replace(loop, minimum=const(low), extent=const(high - low + 1))
    loops = tuple(boxed if old is loop else old for old in kernel.loops)
    wide = replace(kernel, loops=loops, active=None)
    held = wide.domain_of_iterations.restricted(*([inside] if inside is not None else []))
    return replace(wide, active=condition(wide.domain_of_iterations, held.points)), boxed


def unroll(kernel: SpatialKernel, directive: Unroll) -> SpatialKernel:
    """Mark the loops as unrolled; their bounds have to be constant."""
    for name in directive.loops:
        loop = find_serial(kernel, name, directive)
        if loop.constant is None and (kernel.members or not loop.reduction):
            kernel, loop = _boxed(kernel, loop)
        constant_bounds(kernel, loop, directive)
        spatial = replace(
            loop, kind=LoopExecution.UNROLLED, reason=f"one PE each by {directive.text}"
        )
        kernel = replace(
            kernel, loops=tuple(spatial if old is loop else old for old in kernel.loops)
        )
    return kernel


# Common to all directives that reshape a nest: substituting indices, and the proof.


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
    """The kernel with its reshaping directive recorded, if isl proves the directive legal.

    The loops cover the domain (with its padding) exactly once, and a rounding reduction keeps its
    order unless the user wrote ``reassociate()``.  An isolated Func may have lost loops; it has to
    cover what it covered before.
    """
    if before.reshaped is None or not _permutes(before, kernel):
        _check_coverage(before, kernel, directive)
    _check_reduction_order(kernel, directive)
    return replace(kernel, reshaped=directive)


def _permutes(before: SpatialKernel, kernel: SpatialKernel) -> bool:
    """Whether only the order of the loops has changed, so that they cover what they did before."""
    others = (name for name in field_names(kernel) if name != "loops")
    return {*map(id, before.loops)} == {*map(id, kernel.loops)} and all(
        getattr(kernel, name) is getattr(before, name) for name in others
    )


def _check_coverage(before: SpatialKernel, kernel: SpatialKernel, directive: Directive) -> None:
    """Prove that the loops cover what they covered before."""
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
    # The padded end of a fused loop is not a box: padding may grow without reaching further in any
    # variable.
    longer = bool(kernel.paddings) and _iterations(kernel) != _iterations(before)
    if longer or kernel.paddings != before.paddings:
        within = LoopDomain([dimension.interval for dimension in kernel.padded_domain])
    problem = nest.covers_exactly(computed, wanted, target, names, within)
    if problem is not None:
        raise InternalError(f"{directive.text} on {kernel.name} broke the loop nest: {problem}")


def _iterations(kernel: SpatialKernel) -> int:
    """The product of the trip counts of all loops with constant bounds."""
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
    if written == executed:
        return
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
