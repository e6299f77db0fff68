"""``isolate_producer`` and ``isolate_consumer``: cut a function into functions and channels.

Before -> after::

    isolate_producer_chain(A, P, Q)    C: ... A[i, k] ...     ->   P: load A[i, k], send
                                                                   Q: receive, send
                                                                   C: ... receive ...
    isolate_consumer_chain(D, U)       C: ... store C[i, j]   ->   C: ... send the final value
                                                                   D: receive, send
                                                                   U: receive, store C[i, j]

The new functions have the loops that the function has at this point.  A consumer has no reduction
loops, and neither has the producer of a value that only the start of a reduction needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from t2s.core.errors import InternalError, UserError
from t2s.core.expr import Expr, Local, Read, conjunction, reads
from t2s.core.names import NameSupply
from t2s.core.walk import Term, rewrite
from t2s.spatial.analysis.lookup import Pinned, pin, static_conjuncts, varies
from t2s.spatial.analysis.occurrences import Occurrence, find_occurrence, occurrence_of
from t2s.spatial.directive import IsolateConsumer, IsolateProducer
from t2s.spatial.directives.host import (
    check_deserializer,
    check_serializer,
)
from t2s.spatial.directives.streaming import share
from t2s.spatial.ir import (
    Evaluation,
    FinalValue,
    KernelOperand,
    LoadUnit,
    Recurrences,
    Reduction,
    Relay,
    Result,
    SpatialKernel,
    SpatialLoop,
    SpatialProgram,
    StoreTarget,
    StoreUnit,
    Work,
)


def isolate_producer(
    program: SpatialProgram, name: str, directive: IsolateProducer
) -> SpatialProgram:
    """Move an operand or an expression into a chain of new kernels."""
    kernel, occurrence = find_occurrence(program.temporal, program.kernel(name), directive)
    if directive.on_host:
        check_serializer(program, kernel, occurrence, directive)
    program = program.with_kernel(kernel)
    if not directive.shared:
        return extract(program, kernel, occurrence, directive.producers, directive)
    name, *feeders = directive.producers
    if feeders:
        program = extract(program, kernel, occurrence, tuple(feeders), directive)
        kernel = program.kernel(feeders[0])
        occurrence = occurrence_of(kernel, kernel.value)
    return share(program, kernel, occurrence, directive)


def extract(
    program: SpatialProgram,
    kernel: SpatialKernel,
    occurrence: Occurrence,
    chain: tuple[str, ...],
    directive: IsolateProducer | None,
) -> SpatialProgram:
    """Replace a value in a kernel by an operand that a chain of new kernels sends."""
    program, local = with_operand(program, kernel, occurrence, chain, directive)
    return with_locals(program, kernel.name, {occurrence.value: local})


def with_operand(
    program: SpatialProgram,
    kernel: SpatialKernel,
    occurrence: Occurrence,
    chain: tuple[str, ...],
    directive: IsolateProducer | None,
) -> tuple[SpatialProgram, Local]:
    """Give a kernel an operand that a chain of new kernels sends; ``with_locals`` has to follow.

    Returns the name of the operand that replaces the value.
    """
    value = occurrence.value
    source = value.source if isinstance(value, Read) else chain[0]
    base, condition, pinned = _producer(kernel, occurrence)
    sent = KernelOperand(
        name=source,
        content=occurrence.content(source),
        producer="",  # filled in for each kernel of the chain
        type=value.type,
        condition=base.condition,
    )
    previous: str | None = None
    for name in chain:
        producer = replace(
            base,
            name=name,
            location=directive.location if directive is not None else occurrence.location,
            loops=inherited(kernel.name, base.loops),
        )
        if previous is not None:
            producer = replace(
                producer,
                work=Relay(value=Local(name=source, type=value.type)),
                operands=(replace(sent, producer=previous),),
            )
        elif directive is not None and directive.on_host and not directive.shared:
            producer = replace(producer, work=LoadUnit(value=value, on_host=True))
        program = program.with_before(kernel.name, producer)
        previous = name
    local = Local(
        name=NameSupply(operand.name for operand in kernel.operands).fresh(source), type=value.type
    )
    operand = replace(
        sent,
        name=local.name,
        producer=chain[-1],
        condition=condition,
        at_start=occurrence.at_start,
        pinned=pinned,
    )
    work = _receiving(kernel, value, local, source)
    placed = replace(kernel, operands=(*kernel.operands, operand), work=work)
    return program.with_kernel(placed), local


def _receiving(kernel: SpatialKernel, value: Expr, local: Local, source: str) -> Work:
    """The work of a kernel that will receive a value as an operand.

    A producer whose value is more than a single element computes it.
    """
    work = kernel.work
    match work:
        case LoadUnit(value=whole) if whole == value:
            return Relay(value=local)
        case LoadUnit(value=whole):
            work = computing(whole)
    match work:
        case Evaluation() | Reduction() | Recurrences() if kernel.name != kernel.function:
            return replace(work, vector_operands=(*work.vector_operands, source))
    return work


def with_locals(program: SpatialProgram, name: str, locals: Mapping[Expr, Local]) -> SpatialProgram:
    """The program with operands in place of values in a kernel."""
    kinds = tuple({type(value) for value in locals})

    def rule(node: Term) -> Term | None:
        return locals.get(node) if isinstance(node, kinds) else None

    return program.with_kernel(program.kernel(name).rewritten(lambda expr: rewrite(expr, rule)))


def computing(value: Expr) -> Evaluation:
    """The work of a producer whose value is more than an element: it loads all its operands."""
    return Evaluation(value=value, vector_operands=tuple(read.source for read in reads(value)))


def storing(relay: SpatialKernel, target: StoreTarget, *, on_host: bool = False) -> SpatialKernel:
    """The end of a chain of relays, which stores what it receives."""
    if not isinstance(relay.work, Relay):
        raise InternalError(f"{relay.name} passes nothing on")
    return replace(relay, work=StoreUnit(value=relay.work.value, store=target, on_host=on_host))


def inherited(owner: str, loops: tuple[SpatialLoop, ...]) -> tuple[SpatialLoop, ...]:
    """Loops copied from another kernel, with that as their reason."""
    return tuple(replace(loop, reason=f"as in {owner}: {loop.reason}") for loop in loops)


def _producer(
    kernel: SpatialKernel, occurrence: Occurrence
) -> tuple[SpatialKernel, Expr | None, tuple[str, ...]]:
    """The kernel that evaluates a value for each iteration of ``kernel`` that needs it.

    Also the condition under which ``kernel`` needs it, and the loops that this pins.
    """
    value, at_start = occurrence.value, occurrence.at_start
    needed = conjunction(kernel.condition, occurrence.condition)
    condition = conjunction(*static_conjuncts(needed))
    dropped = {loop.name for loop in kernel.loops if at_start and loop.reduction}
    vector = kernel.vector_loop
    if vector is not None and not varies(kernel, occurrence.subscripts, vector.name):
        dropped.add(vector.name)
    domain = tuple(d for d in kernel.domain if not (at_start and d.reduction))
    narrowed = kernel.without(frozenset(dropped))
    pinned = Pinned(kernel=narrowed, values={}, complete=False)
    if kernel.members:
        pinned = pin(narrowed, condition)
    narrowed = pinned.kernel
    names = {dimension.name for dimension in domain}
    producer = replace(
        narrowed,
        domain=domain,
        variables=tuple((name, expr) for name, expr in narrowed.variables if name in names),
        operands=(),
        work=LoadUnit(value=value) if isinstance(value, Read) else computing(value),
        condition=None if pinned.complete else condition,
        capacity=None,
    )
    return producer, condition, tuple(pinned.values)


def isolate_consumer(
    program: SpatialProgram, name: str, directive: IsolateConsumer
) -> SpatialProgram:
    """Move the store of a kernel's results into a chain of new kernels."""
    kernel = program.kernel(name)
    if kernel.store is None:
        raise UserError(
            f"{directive.text} on {name}: {name} does not save results itself",
            location=directive.location,
            expected="the function that computes the output, or the last consumer of its chain",
        )
    if directive.on_host:
        check_deserializer(program, name, kernel, kernel.function, directive)
    target = kernel.store
    program = program.with_kernel(kernel.without_store())
    return _consumer_chain(program, kernel, directive, target, None)


def isolate_result(
    program: SpatialProgram, name: str, function: str, directive: IsolateConsumer
) -> SpatialProgram:
    """Move the store of one result of a system into a chain of new kernels."""
    kernel = program.kernel(name)
    result = kernel.result(function)
    if result is None or result.consumer is not None:
        raise UserError(
            f"{directive.text} on {function}: {function} does not save results itself",
            location=directive.location,
            expected=f"a result of {name} that it still saves itself",
            given=function if result is None else f"{function}, saved by {result.consumer}",
        )
    if directive.on_host:
        check_deserializer(program, function, kernel, function, directive)
    program = program.with_kernel(kernel.with_consumer(result, directive.consumers[0]))
    target = StoreTarget(tensor=function, indices=result.indices)
    return _consumer_chain(program, program.kernel(name), directive, target, result)


def _consumer_chain(
    program: SpatialProgram,
    kernel: SpatialKernel,
    directive: IsolateConsumer,
    target: StoreTarget,
    result: Result | None,
) -> SpatialProgram:
    previous = kernel
    for consumer_name in directive.consumers:
        if previous is kernel and result is not None:
            consumer = consumer_of_result(kernel, result, consumer_name)
        else:
            consumer = consumer_of(previous, consumer_name)
        consumer = replace(consumer, location=directive.location)
        program = program.with_after(previous.name, consumer)
        previous = consumer
    return program.with_kernel(storing(previous, target, on_host=directive.on_host))


def consumer_of(kernel: SpatialKernel, name: str) -> SpatialKernel:
    """A relay that receives the final values of ``kernel``, without its reduction loops."""
    reductions = frozenset(loop.name for loop in kernel.reduction_loops)
    narrowed = kernel.without(reductions)
    domain = tuple(d for d in kernel.domain if not d.reduction)
    names = {dimension.name for dimension in domain}
    local = Local(name=f"{kernel.function}_result", type=kernel.value.type)
    first = isinstance(kernel.work, Evaluation | Reduction)
    return replace(
        narrowed,
        loops=inherited(kernel.name, narrowed.loops) if first else narrowed.loops,
        name=name,
        domain=domain,
        variables=tuple((n, expr) for n, expr in narrowed.variables if n in names),
        operands=(
            KernelOperand(
                name=local.name,
                content=FinalValue(source=kernel.function),
                producer=kernel.name,
                type=kernel.value.type,
                condition=None if first else kernel.condition,
            ),
        ),
        work=Relay(value=local),
        condition=None if first else kernel.condition,
        capacity=None,
    )


def consumer_of_result(kernel: SpatialKernel, result: Result, name: str) -> SpatialKernel:
    """A relay that receives one result of a system, without the loops that its condition pins."""
    member = kernel.member(result.member)
    if member is None:
        raise InternalError(f"{result.member} is not a member of {kernel.name}")
    vector = kernel.vector_loop
    scalar = vector is not None and not member.lanes
    narrowed = kernel.without(frozenset([vector.name])) if vector and scalar else kernel
    pinned = pin(narrowed, result.condition)
    where = None if pinned.complete else result.condition
    narrowed = pinned.kernel
    local = Local(name=f"{result.function}_result", type=member.type)
    operand = KernelOperand(
        name=local.name,
        content=FinalValue(source=result.function),
        producer=kernel.name,
        type=member.type,
        condition=where,
        pinned=(*pinned.values, *([vector.name] if vector and scalar else [])),
    )
    return replace(
        narrowed,
        loops=inherited(kernel.name, narrowed.loops),
        name=name,
        function=result.function,
        operands=(operand,),
        work=Relay(value=local),
        condition=where,
        capacity=None,
    )
