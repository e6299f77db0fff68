"""Padding: the iterations and elements that a split by a factor that does not divide adds.

``split(i, i, ii, 8)`` turns 30 iterations into 4 x 8, two more than the definition has.  All
kernels of a function run the padded nest, so that streams, buffers and vectors never see a ragged
end:

* Padded iterations of a pure dimension compute values and store them behind the end of the result,
  which the host crops: arrays are *padded in memory* as far as any access reaches.
* Padded iterations of a reduction leave the partial result unchanged (``lowering/body.py``).
* An access that would leave the array at its front happens only inside the domain; elsewhere
  nothing is stored, and a load yields an unused 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from t2s.core.errors import UserError
from t2s.core.expr import Expr, Index, Read, conjunction, conjuncts, unequal
from t2s.core.isl import LoopDomain, is_affine
from t2s.core.isl_maps import condition
from t2s.core.printer import show
from t2s.spatial.directive import Directive
from t2s.spatial.ir import LoadUnit, Padding, SpatialKernel, SpatialLoop, SpatialProgram, shifted

Origins = Mapping[str, tuple[int, ...]]


def origins_of(program: SpatialProgram) -> dict[str, tuple[int, ...]]:
    """The minima of the Funcs, at which their arrays start."""
    return {f.name: tuple(low for low, _ in f.bounds) for f in program.temporal.functions}


def nest_of(kernel: SpatialKernel) -> LoopDomain:
    """All iterations of a kernel, including lanes and padding."""
    conditions = [] if kernel.active is None else [kernel.active]
    return LoopDomain([loop.interval for loop in kernel.loops], conditions)


def with_padding(kernel: SpatialKernel, loop: SpatialLoop, directive: Directive) -> SpatialKernel:
    """Note which variables leave their domain now that ``loop`` is longer.

    Raises ``UserError`` if padded iterations would compute points of the domain twice, or make a
    reduction without steps.
    """
    _check_not_empty(kernel, loop, directive)
    nest = nest_of(kernel)
    if not _keeps_meaning(kernel, nest):
        raise UserError(
            f"{directive.text} on {kernel.name}: {loop.name} cannot be padded, because its "
            "last iteration is followed by the next one of another loop",
            location=directive.location,
            expected=f"a divisor of {_extent(loop)}: {_divisors(_extent(loop))}",
            given=f"{loop.name}: {loop.reason}",
            hint="only the outermost part of a dimension has a ragged end: split that part, or "
            "split the dimension in the other order",
        )
    paddings: list[Padding] = []
    variables = dict(kernel.variables)
    known = {padding.variable: padding for padding in kernel.paddings}
    for dimension in kernel.domain:
        bounds = dimension.interval.constant
        reached = nest.range_of(variables[dimension.name])
        if bounds is None or reached is None or reached[1] < sum(bounds):
            continue
        old, padded = known.get(dimension.name), reached[1] - bounds[0] + 1
        if old is None or old.padded != padded:
            old = Padding(
                variable=dimension.name,
                limit=sum(bounds),
                extent=bounds[1],
                padded=padded,
                directive=directive,
            )
        paddings.append(old)
    return replace(kernel, paddings=tuple(paddings))


def _keeps_meaning(kernel: SpatialKernel, nest: LoopDomain) -> bool:
    """Whether iterations still correspond to points one to one, and loops to their definitions."""
    if not nest.is_injective([expr for _, expr in kernel.variables]):
        return False
    intervals = nest.intervals
    return all(
        LoopDomain(
            intervals,
            [unequal(kernel.place(loop.definition), Index(name=loop.name))],
        ).is_empty()
        for loop in kernel.loops
    )


def _extent(loop: SpatialLoop) -> int:
    return loop.constant[1] if loop.constant is not None else 1


def _divisors(extent: int) -> str:
    return ", ".join(str(n) for n in range(1, extent + 1) if extent % n == 0)


def _check_not_empty(kernel: SpatialKernel, padded: SpatialLoop, directive: Directive) -> None:
    """Check that a reduction whose length depends on a padded loop is never empty."""
    shorter = _shorter_than(kernel, 1)
    if shorter is None:
        return
    loop, point = shorter
    what = "the reduction over" if loop.reduction else "the loop"
    raise UserError(
        f"{directive.text} on {kernel.name}: {what} {loop.name} would be "
        f"empty in the padded iteration {point}",
        location=directive.location,
        expected=f"a divisor of {_extent(padded)}: {_divisors(_extent(padded))}",
        given=f"{loop.name} from {show(loop.minimum)} to {show(loop.last)}",
        hint="give the reduction fixed bounds, and guard its term with t2s.select"
        if loop.reduction
        else None,
    )


def check_not_negative(kernel: SpatialKernel, padded: SpatialLoop, directive: Directive) -> None:
    """Check that in padded iterations of a system no inner loop has a negative trip count.

    Raises ``UserError`` if a bound counts down past zero.
    """
    shorter = _shorter_than(kernel, 0)
    if shorter is None:
        return
    loop, point = shorter
    raise UserError(
        f"{directive.text} on {kernel.name}: the loop {loop.name} would have fewer iterations "
        f"than none in the padded iteration {point}",
        location=directive.location,
        expected=f"a divisor of {_extent(padded)}: {_divisors(_extent(padded))}",
        given=f"{loop.name} from {show(loop.minimum)} to {show(loop.last)}",
        hint="the loops of a recurrence are padded only as far as the bounds inside of them go",
    )


def _shorter_than(kernel: SpatialKernel, least: int) -> tuple[SpatialLoop, str] | None:
    """A loop with fewer iterations somewhere, and the iteration of the enclosing loops."""
    outer: list[SpatialLoop] = []
    for loop in kernel.loops:
        if loop.constant is None:
            intervals = [other.interval for other in outer]
            short = LoopDomain(intervals, [loop.extent < least]).sample()
            if short is not None:
                return loop, ", ".join(f"{name}={value}" for name, value in short.items())
        outer.append(loop)
    return None


def padding_text(kernel: SpatialKernel) -> str:
    """``i: 30 padded to 32`` for every padded variable."""
    return ", ".join(map(str, active_paddings(kernel))) or "no padding"


def active_paddings(kernel: SpatialKernel) -> Iterator[Padding]:
    """The paddings of the variables that leave their domain in this kernel.

    For a producer without the loop of a variable, the variable stays at its first value.
    """
    variables = dict(kernel.variables)
    nest = nest_of(kernel) if kernel.paddings else None
    for padding in kernel.paddings:
        if nest is None or padding.variable not in variables:
            continue
        reached = nest.range_of(variables[padding.variable])
        if reached is not None and reached[1] >= padding.limit:
            yield padding


def in_domain(kernel: SpatialKernel, *, reductions_only: bool = False) -> Expr | None:
    """The condition, over the domain's variables, for an iteration not to be a padded one.

    ``None``: no iteration is.
    """
    reductions = {dimension.name for dimension in kernel.domain if dimension.reduction}
    return conjunction(
        *(
            Index(name=padding.variable) < padding.limit
            for padding in active_paddings(kernel)
            if padding.variable in reductions or not reductions_only
        )
    )


def inside_of_domain(kernel: SpatialKernel, *within: Expr) -> SpatialKernel:
    """Give a system a ragged nest that leaves out the iterations past the end of the domain.

    ``within`` holds for those of them that are inside the loop that was split.

    A recurrence cannot be padded: values from outside the domain would be read inside it.
    """
    bounds = [bound for d in kernel.domain for bound in d.interval.conditions]
    inside = [kernel.first_lane(kernel.place(bound)) for bound in bounds]
    nest = replace(kernel, active=None).domain_of_iterations
    held = kernel.domain_of_iterations.restricted(*inside, *within)
    return replace(kernel, active=condition(nest, held.points))


def memory_guard(kernel: SpatialKernel, origins: Origins) -> Expr | None:
    """The condition, over the domain's variables, under which a load or store may touch memory."""
    if not kernel.paddings:
        return kernel.condition
    inside = in_domain(kernel)
    ranges = _ranges(kernel, _indices(kernel, origins), kernel.condition)
    if inside is None or all(range_ is not None and range_[0] >= 0 for range_ in ranges):
        return kernel.condition
    return conjunction(kernel.condition, inside)


def allocated_shape(
    program: SpatialProgram, tensor: str, shape: tuple[int, ...], origins: Origins
) -> tuple[int, ...] | None:
    """The shape that an array needs in memory, or ``None`` if it is the given one."""
    needed = list(shape)
    for kernel in program.kernels:
        if not kernel.paddings or _accessed(kernel) != tensor:
            continue
        condition = memory_guard(kernel, origins)
        for at, range_ in enumerate(_ranges(kernel, _indices(kernel, origins), condition)):
            if range_ is not None:
                needed[at] = max(needed[at], range_[1] + 1)
    return tuple(needed) if tuple(needed) != shape else None


def _accessed(kernel: SpatialKernel) -> str | None:
    """The array that a load or store kernel touches."""
    match kernel.work:
        case LoadUnit(value=Read(source=source)):
            return source
    return kernel.store.tensor if kernel.store is not None else None


def _indices(kernel: SpatialKernel, origins: Origins) -> tuple[Expr, ...]:
    """The subscripts of a load or a store, over the domain's variables."""
    match kernel.work:
        case LoadUnit(value=Read(source=source, indices=indices)):
            origin = origins.get(source, (0,) * len(indices))
            return tuple(shifted(i, -low) for i, low in zip(indices, origin, strict=True))
    return kernel.store.indices if kernel.store is not None else ()


def _ranges(
    kernel: SpatialKernel, indices: tuple[Expr, ...], condition: Expr | None
) -> list[tuple[int, int] | None]:
    """Smallest and largest subscripts, over all lanes; ``None`` where that cannot be proved.

    If the condition never holds there is no access, and nothing to prove.
    """
    conditions = [kernel.first_lane(kernel.place(part)) for part in conjuncts(condition)]
    intervals = [loop.interval for loop in kernel.loops]
    domain = LoopDomain(intervals, filter(is_affine, conditions))
    placed = [kernel.place(index) for index in indices]
    if domain.is_empty():
        return [(0, 0) for _ in placed]
    return [domain.range_of(index) if is_affine(index) else None for index in placed]
