"""Finding the loops a directive names, what varies along them, and what takes a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from t2s.core.errors import UserError
from t2s.core.expr import Expr, index_names
from t2s.core.isl import LoopDomain
from t2s.core.location import SourceLocation
from t2s.core.printer import show
from t2s.spatial.directive import Directive
from t2s.spatial.ir import SpatialKernel, SpatialProgram
from t2s.spatial.loop_nest import LoopExecution, SpatialLoop

_DONE = {
    LoopExecution.UNROLLED: "is unrolled",
    LoopExecution.VECTOR: "has become the lanes of vectors",
}


def find_loop(kernel: SpatialKernel, name: str, directive: Directive) -> SpatialLoop:
    """The loop of that name in the kernel, or a ``UserError`` that lists its loops."""
    loop = kernel.loop(name)
    if loop is None:
        loops = ", ".join(loop.name for loop in kernel.loops)
        raise UserError(
            f"{directive.text} on {kernel.name}: {kernel.name} has no loop {name}",
            location=directive.location,
            expected=f"one of its loops, outermost first: {loops}",
            given=name,
            hint="loops appear by split, tile and fuse, and in an isolated Func only if the "
            "function had them when it was isolated",
        )
    return loop


def find_serial(kernel: SpatialKernel, name: str, directive: Directive) -> SpatialLoop:
    """As ``find_loop``, and the loop still has to be serial."""
    loop = find_loop(kernel, name, directive)
    if loop.kind is not LoopExecution.SERIAL:
        raise UserError(
            f"{directive.text} on {kernel.name}: loop {name} {_DONE[loop.kind]} already",
            location=directive.location,
            expected="a loop that still runs in time",
            given=f"{name}: {loop.reason}",
            hint="transform loops before unroll and vload",
        )
    check_not_time(kernel, loop, directive)
    return loop


def check_not_time(kernel: SpatialKernel, loop: SpatialLoop, directive: Directive) -> None:
    """The time loop of a schedule stays as it is."""
    if kernel.timed == loop.name:
        raise UserError(
            f"{directive.text} on {kernel.name}: {loop.name} is the time of a schedule",
            location=directive.location,
            expected="another loop",
            given=f"{loop.name}: {loop.reason}",
            hint="transform loops before space_time_transform",
        )


def constant_bounds(
    kernel: SpatialKernel, loop: SpatialLoop, directive: Directive
) -> tuple[int, int]:
    """(minimum, extent) of a loop that has to have constant bounds."""
    if loop.constant is None:
        depends = ", ".join(sorted(index_names(loop.minimum) | index_names(loop.extent)))
        raise UserError(
            f"{directive.text} on {kernel.name}: loop {loop.name} has no constant bounds",
            location=directive.location,
            expected="a loop whose minimum and extent are numbers",
            given=f"bounds of {loop.name} depend on {depends}",
            hint="hardware has a fixed size; apply the directive to a loop of fixed bounds",
        )
    return loop.constant


def same_loop(loops: Iterable[SpatialLoop], wanted: SpatialLoop) -> SpatialLoop | None:
    """The loop that iterates over the same thing: it has the same definition.

    Loops of one iteration may have equal definitions; of these the one of the same name.
    """
    alike = [loop for loop in loops if loop.definition == wanted.definition]
    return next((loop for loop in alike if loop.name == wanted.name), alike[0] if alike else None)


def counterpart(
    partner: SpatialKernel, kernel: SpatialKernel, loop: SpatialLoop, directive: Directive
) -> SpatialLoop:
    """The loop of ``partner``, which sends to or takes from ``kernel``, that iterates alike.

    Loops are the same if they have the same definition; a ``UserError`` says that there is none.
    """
    found = same_loop(partner.loops, loop)
    if found is None:
        raise UserError(
            f"{directive.text} on {kernel.name}: {partner.name} has no loop like {loop.name}",
            location=directive.location,
            expected=f"{partner.name} with the loops of {kernel.name}: {_loop_names(kernel)}",
            given=f"{partner.name} with {_loop_names(partner)}",
            notes=((partner.location, f"{partner.name} was isolated here"),),
            hint=f"split and fuse the loops of {kernel.name} before isolating from it, or those of "
            f"{partner.name} in the same way",
        )
    return found


def _loop_names(kernel: SpatialKernel) -> str:
    return ", ".join(loop.name for loop in kernel.loops)


def check_names_free(program: SpatialProgram, name: str, directive: Directive) -> None:
    """New loops and functions must not have the name of an input, a Param or a function."""
    temporal = program.temporal
    taken: dict[str, tuple[str, SourceLocation]] = {
        **{kernel.name: ("Func", kernel.location) for kernel in program.kernels},
        **{function.name: ("Func", function.location) for function in temporal.functions},
        **{array.name: ("ImageParam", array.location) for array in temporal.inputs},
        **{scalar.name: ("Param", scalar.location) for scalar in temporal.parameters},
    }
    for what, names in (("Var", directive.new_loops), ("Func", directive.new_functions)):
        for new in names:
            if new in taken:
                kind, location = taken[new]
                raise UserError(
                    f"{directive.text} on {name}: two different objects of the design are named "
                    f"{new}",
                    location=directive.location,
                    expected=f"a {what} with a name of its own",
                    given=f"{what} {new}",
                    notes=((location, f"{kind} {new} comes from here"),),
                    hint=f"give the {what} another name",
                )


def check_new_names(
    kernel: SpatialKernel, new: tuple[str, ...], replaced: tuple[str, ...], directive: Directive
) -> None:
    """New loop names must not collide with loops that stay."""
    staying = {loop.name for loop in kernel.loops} - set(replaced)
    for name in new:
        if name in staying:
            raise UserError(
                f"{directive.text} on {kernel.name}: there is already a loop {name}",
                location=directive.location,
                expected="a new Var for each new loop",
                given=name,
            )


def consumers(program: SpatialProgram, name: str) -> Iterator[SpatialKernel]:
    for kernel in program.kernels:
        if any(operand.producer == name for operand in kernel.operands):
            yield kernel
            yield from consumers(program, kernel.name)


def varies(kernel: SpatialKernel, indices: tuple[Expr, ...], loop: str) -> bool:
    """Whether subscripts over the domain take different values along a loop of the kernel."""
    nest = LoopDomain([loop.interval for loop in kernel.loops])
    return nest.varies_along([kernel.place(index) for index in indices], loop)


def loops_without(
    kernel: SpatialKernel, access: Iterable[Expr], execution: LoopExecution
) -> list[str]:
    """The loops that run in this way and along which an access stays the same."""
    loops, indices = kernel.kind(execution), tuple(access)
    return [loop.name for loop in loops if not varies(kernel, indices, loop.name)]


def check_in_all_iterations(
    kernel: SpatialKernel, loop: SpatialLoop, directive: Directive, expected: str
) -> None:
    """Which iterations there are may not depend on a loop, padded ones left out included."""
    if kernel.active is not None and loop.name in index_names(kernel.active):
        raise UserError(
            f"{directive.text} on {kernel.name}: which iterations there are depends on {loop.name}",
            location=directive.location,
            expected=expected,
            given=f"only the iterations with {show(kernel.active)}",
            hint="split by factors that divide, so that nothing is padded, or transform other "
            "loops",
        )
