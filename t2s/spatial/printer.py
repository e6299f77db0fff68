"""Print the loop nests of a scheduled program: each function's work, each loop's origin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from t2s.core.expr import Expr, index_names
from t2s.core.isl_maps import project
from t2s.core.printer import show
from t2s.graph.nodes import Role
from t2s.spatial.analysis.lookup import placed_condition, readable_update
from t2s.spatial.analysis.padding import active_paddings, in_domain, memory_guard, origins_of
from t2s.spatial.ir import (
    KernelOperand,
    LoopExecution,
    NeighborHop,
    Recurrences,
    SpatialKernel,
    SpatialLoop,
    SpatialProgram,
    StoreUnit,
)

_REASON_COLUMN = 44


def print_loop_nest(program: SpatialProgram) -> str:
    """Text of all loop nests, producers first.

    ``parallel`` loops are space (one PE for each iteration), ``vector`` loops are the lanes of one
    operation, all others run in time.  Comments say which directive made a loop.
    """
    return "\n\n".join("\n".join(_kernel(program, kernel)) for kernel in program.kernels) + "\n"


def _kernel(program: SpatialProgram, kernel: SpatialKernel) -> Iterator[str]:
    on_host = kernel.on_host
    space = kernel.kind(LoopExecution.UNROLLED)
    count = project(kernel.domain_of_iterations, [loop.name for loop in space]) if space else None
    number = 1 if count is None else int(count.count_val().to_python())
    pes = f"{number} PE{'s' if number != 1 else ''}"
    if on_host:
        yield f"{kernel.name}: on the host"
    else:
        yield f"{kernel.name}: {_role(program, kernel).value}, {pes}"
    depth = 1
    ordered = [
        *(("parallel", loop) for loop in space if not on_host),
        *(("for", loop) for loop in kernel.kind(LoopExecution.SERIAL)),
        *(("for", loop) for loop in space if on_host),
        *(("vector", loop) for loop in kernel.kind(LoopExecution.VECTOR)),
    ]
    notes = _padding_notes(kernel, [loop for _, loop in ordered])
    for keyword, loop in ordered:
        text = f"{'  ' * depth}{keyword} {loop.name} in {_range(loop)}:"
        yield f"{text:<{_REASON_COLUMN}}  # {loop.reason}{notes.get(loop.name, '')}"
        depth += 1
    if kernel.active is not None:
        yield f"{'  ' * depth}if {show(kernel.active)}:"
        depth += 1
    for line in _actions(program, kernel):
        yield "  " * depth + line


def _padding_notes(kernel: SpatialKernel, loops: Sequence[SpatialLoop]) -> dict[str, str]:
    """The paddings, by the outermost loop of the padded variable."""
    variables = dict(kernel.variables)
    notes: dict[str, str] = {}
    for padding in active_paddings(kernel):
        parts = index_names(variables[padding.variable])
        outermost = next(loop.name for loop in loops if loop.name in parts)
        notes[outermost] = f"{notes.get(outermost, '')}, {padding}"
    return notes


def _role(program: SpatialProgram, kernel: SpatialKernel) -> Role:
    """The role of a kernel; relays next to the host load or store."""
    if any(_on_host(program, operand.producer) for operand in kernel.operands):
        return Role.LOAD
    if any(
        consumer.on_host and operand.producer == kernel.name
        for consumer in program.kernels
        for operand in consumer.operands
    ):
        return Role.STORE
    return kernel.role


def _on_host(program: SpatialProgram, name: str) -> bool:
    return program.kernel(name).on_host


def _range(loop: SpatialLoop) -> str:
    return f"{show(loop.minimum)}..{show(loop.last)}"


def _actions(program: SpatialProgram, kernel: SpatialKernel) -> Iterator[str]:
    for operand in kernel.operands:
        yield _receive(program, kernel, operand)
    match kernel.work:
        case Recurrences() as system:
            yield from _equations(program, kernel, system)
        case StoreUnit(value=stored, store=target):
            indices = ", ".join(show(kernel.place(index)) for index in target.indices)
            guard = ", not in padded iterations" if _is_guarded(program, kernel) else ""
            yield f"{target.tensor}[{indices}] = {show(_readable(kernel, stored))}{guard}"
        case _:
            yield from _values(program, kernel)


def _values(program: SpatialProgram, kernel: SpatialKernel) -> Iterator[str]:
    """The values that a kernel computes or takes, and their consumers."""
    value = show(_readable(kernel, kernel.value))
    target = "" if kernel.role is not Role.COMPUTE else kernel.name
    if kernel.initial is not None:
        start = show(_readable(kernel, kernel.initial))
        inside = in_domain(kernel, reductions_only=True)
        where = "" if inside is None else f" where {show(kernel.place(inside))}"
        yield f"{target} = {value}{where}, starting from {start}"
        value = f"{target} when final"
    elif target:
        yield f"{target} = {value}"
        value = target
    for consumer in program.kernels:
        if any(operand.producer == kernel.name for operand in consumer.operands):
            guard = (
                "" if kernel.condition is None else f" if {show(kernel.place(kernel.condition))}"
            )
            if kernel.on_host or consumer.on_host:
                yield f"put {value} into memory for {consumer.name}"
                continue
            if kernel.gathering is not None:
                last = "last" if kernel.gathering.reverse else "first"
                yield f"pass {value} on; the {last} PE sends it to {consumer.name}"
                continue
            if kernel.scattering is not None and kernel.digit is not None:
                guard = f" if {kernel.digit} is {kernel.scattering.loop}, else pass it on"
            yield f"send {value} to {consumer.name}{guard}{_not_loaded(program, kernel)}"


def _not_loaded(program: SpatialProgram, kernel: SpatialKernel) -> str:
    """The text for iterations in which a load unit must not touch memory."""
    guarded = kernel.role is Role.LOAD and _is_guarded(program, kernel)
    return ", but 0 in padded iterations" if guarded else ""


def _is_guarded(program: SpatialProgram, kernel: SpatialKernel) -> bool:
    """Whether a load or store unit skips memory in padded iterations."""
    return memory_guard(kernel, origins_of(program)) != kernel.condition


def _equations(
    program: SpatialProgram, kernel: SpatialKernel, system: Recurrences
) -> Iterator[str]:
    """The recurrences as they are written, and the streams that leave."""
    for member in system.members:
        value = show(member.value)
        if member.combine is not None and member.initial is not None:
            value = f"{show(member.initial)} {member.combine.value} the lanes of {value}"
        yield f"{member.name}[{', '.join(member.arguments)}] = {value}"
    for result in system.results:
        for consumer in program.kernels:
            if any(
                operand.producer == kernel.name and operand.source == result.function
                for operand in consumer.operands
            ):
                guard = (
                    "" if result.condition is None else f" if {_where(kernel, result.condition)}"
                )
                yield f"send {result.member} to {consumer.name}{guard}"


def _along(hop: NeighborHop) -> str:
    return hop.loop if hop.step > 0 else f"{hop.loop} from the last PE"


def _receive(program: SpatialProgram, kernel: SpatialKernel, operand: KernelOperand) -> str:
    if kernel.on_host or _on_host(program, operand.producer):
        return f"{operand.name} = next from memory, by {operand.producer}"
    text = f"{operand.name} = receive from {operand.producer}"
    along = [*operand.forwards, *(_along(hop) for hop in operand.neighbors)]
    if along:
        text += ", passed on along " + ", then ".join(along)
    if kernel.scattering is not None:
        text += f", scattered along {kernel.scattering.loop}"
        text += " from the last PE" if kernel.scattering.reverse else ""
    if kernel.gathering is not None and kernel.digit is not None:
        neighbor = "the PE before" if kernel.gathering.reverse else "the next PE"
        text += f" if {kernel.digit} is {kernel.gathering.loop}, else from {neighbor}"
    elif kernel.gathering is not None:
        text += f", into lane {kernel.gathering.loop} of a vector"
    if kernel.buffer is not None:
        kind = "double" if kernel.buffer.double else "single"
        text += f", into a {kind} buffer once for each {kernel.buffer.loop}"
    if operand.at_start:
        text += ", at the start of the reduction"
    if operand.condition is not None:
        text += f", if {_where(kernel, operand.condition)}"
    return text


def _where(kernel: SpatialKernel, condition: Expr) -> str:
    return show(placed_condition(kernel, condition))


def _readable(kernel: SpatialKernel, expr: Expr) -> Expr:
    """The value over the loops, with the partial result under the function's name."""
    return readable_update(kernel.function, kernel.place(expr))
