"""The loop nest as the user scheduled it: what each function does, and why each loop is there."""

from __future__ import annotations

from collections.abc import Iterator

from t2s.core.expr import Expr
from t2s.core.isl_maps import project
from t2s.core.printer import show
from t2s.graph.nodes import Role
from t2s.spatial.conditions import placed_condition
from t2s.spatial.ir import Kernel, Loop, LoopKind, Operand, SpatialProgram
from t2s.spatial.reduction_form import readable_update

_REASON_COLUMN = 44


def print_loop_nest(program: SpatialProgram) -> str:
    """Text of all loop nests, producers first.

    ``parallel`` loops are space (one PE for each iteration), ``vector`` loops are the lanes of one
    operation, all others run in time.  Comments say which directive made a loop.
    """
    return "\n\n".join("\n".join(_kernel(program, kernel)) for kernel in program.kernels) + "\n"


def _kernel(program: SpatialProgram, kernel: Kernel) -> Iterator[str]:
    space = kernel.kind(LoopKind.UNROLLED)
    count = project(kernel.domain_of_iterations, [loop.name for loop in space]) if space else None
    pes = 1 if count is None else int(count.count_val().to_python())
    yield f"{kernel.name}: {kernel.role.value}, {pes} PE{'s' if pes != 1 else ''}"
    depth = 1
    ordered = [
        *(("parallel", loop) for loop in space),
        *(("for", loop) for loop in kernel.kind(LoopKind.SERIAL)),
        *(("vector", loop) for loop in kernel.kind(LoopKind.VECTOR)),
    ]
    for keyword, loop in ordered:
        text = f"{'  ' * depth}{keyword} {loop.name} in {_range(loop)}:"
        yield f"{text:<{_REASON_COLUMN}}  # {loop.reason}"
        depth += 1
    if kernel.active is not None:
        yield f"{'  ' * depth}if {show(kernel.active)}:"
        depth += 1
    for line in _actions(program, kernel):
        yield "  " * depth + line


def _range(loop: Loop) -> str:
    return f"{show(loop.minimum)}..{show(loop.last)}"


def _actions(program: SpatialProgram, kernel: Kernel) -> Iterator[str]:
    for operand in kernel.operands:
        yield _receive(kernel, operand)
    if kernel.members:
        yield from _equations(program, kernel)
        return
    value = show(_readable(kernel, kernel.value))
    if kernel.store is not None and kernel.role is Role.STORE:
        indices = ", ".join(show(kernel.place(index)) for index in kernel.store.indices)
        yield f"{kernel.store.tensor}[{indices}] = {value}"
        return
    target = kernel.function if kernel.role is Role.COMPUTE else ""
    if kernel.initial is not None:
        start = show(_readable(kernel, kernel.initial))
        yield f"{target} = {value}, starting from {start}"
        value = f"{target} when final"
    elif target:
        yield f"{target} = {value}"
        value = target
    for consumer in program.kernels:
        if any(operand.producer == kernel.name for operand in consumer.operands):
            guard = (
                "" if kernel.condition is None else f" if {show(kernel.place(kernel.condition))}"
            )
            yield f"send {value} to {consumer.name}{guard}"


def _equations(program: SpatialProgram, kernel: Kernel) -> Iterator[str]:
    """The recurrences as they are written, and the streams that leave."""
    for member in kernel.members:
        value = show(member.value)
        if member.combine is not None and member.initial is not None:
            value = f"{show(member.initial)} {member.combine.value} the lanes of {value}"
        yield f"{member.name}[{', '.join(member.arguments)}] = {value}"
    for result in kernel.results:
        for consumer in program.kernels:
            if any(
                operand.producer == kernel.name and operand.source == result.function
                for operand in consumer.operands
            ):
                guard = (
                    "" if result.condition is None else f" if {_where(kernel, result.condition)}"
                )
                yield f"send {result.member} to {consumer.name}{guard}"


def _receive(kernel: Kernel, operand: Operand) -> str:
    text = f"{operand.name} = receive from {operand.producer}"
    if operand.forwards:
        text += ", passed on along " + ", then ".join(operand.forwards)
    if operand.buffer is not None:
        kind = "double" if operand.buffer.double else "single"
        text += f", into a {kind} buffer once for each {operand.buffer.loop}"
    if operand.at_start:
        text += ", at the start of the reduction"
    if operand.condition is not None:
        text += f", if {_where(kernel, operand.condition)}"
    return text


def _where(kernel: Kernel, condition: Expr) -> str:
    return show(placed_condition(kernel, condition))


def _readable(kernel: Kernel, expr: Expr) -> Expr:
    """The value over the loops, with the partial result under the function's name."""
    return readable_update(kernel.function, kernel.place(expr))
