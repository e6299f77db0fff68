"""``isolate_producer`` and ``isolate_consumer``: a function is cut into functions and channels.

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

from collections.abc import Iterable
from dataclasses import replace

from t2s.core.errors import InternalError, UserError
from t2s.core.expr import Expr, Local, Read, conjunction
from t2s.core.isl import LoopDomain
from t2s.core.names import NameSupply
from t2s.core.printer import show
from t2s.core.walk import Term, rewrite
from t2s.func.bounds import GuardedRead, guarded_reads
from t2s.graph.nodes import Role
from t2s.spatial.conditions import any_of, static_conjuncts
from t2s.spatial.directives import Directive, IsolateConsumer, IsolateProducer
from t2s.spatial.inline import inline_functions
from t2s.spatial.ir import Kernel, Loop, Operand, Result, SpatialProgram, StoreTarget
from t2s.spatial.passes.safety import check_loadable
from t2s.spatial.pins import Pinned, pin


def isolate_producer(
    program: SpatialProgram, name: str, directive: IsolateProducer
) -> SpatialProgram:
    """Move the one occurrence of an operand into a chain of new kernels."""
    kernel = program.kernel(name)
    kernel, guarded, at_start = _find_operand(program, kernel, directive)
    check_loadable(program.temporal, kernel, guarded)
    program = program.with_kernel(kernel)
    return extract(program, kernel, guarded, at_start, directive.producers, directive)


def extract(
    program: SpatialProgram,
    kernel: Kernel,
    guarded: GuardedRead,
    at_start: bool,
    chain: tuple[str, ...],
    directive: Directive | None,
) -> SpatialProgram:
    """Replace a read in a kernel by an operand that a chain of new kernels sends."""
    read, location = guarded.read, guarded.read.location or kernel.location
    base, condition, pinned = _producer(
        kernel, read, conjunction(kernel.condition, guarded.condition), at_start
    )
    previous: str | None = None
    for name in chain:
        producer = replace(
            base,
            name=name,
            location=directive.location if directive is not None else location,
            loops=inherited(kernel.name, base.loops),
        )
        if previous is not None:
            producer = replace(
                producer,
                role=Role.RELAY,
                value=Local(name=read.source, type=read.type),
                operands=(_operand(read.source, read, previous, base.condition, at_start=False),),
            )
        program = program.with_before(kernel.name, producer)
        previous = name
    local = NameSupply(operand.name for operand in kernel.operands).fresh(read.source)
    operand = _operand(local, read, chain[-1], condition, at_start=at_start)
    operand = replace(operand, pinned=pinned)

    def rule(node: Term) -> Term | None:
        return Local(name=local, type=read.type) if node == read else None

    placed = replace(kernel, operands=(*kernel.operands, operand))
    if kernel.role is Role.LOAD and kernel.value == read:
        placed = replace(placed, role=Role.RELAY)
    if kernel.members:
        placed = placed.rewritten(lambda expr: rewrite(expr, rule))
    elif at_start and kernel.initial is not None:
        placed = replace(placed, initial=rewrite(kernel.initial, rule))
    else:
        placed = replace(placed, value=rewrite(kernel.value, rule))
    return program.with_kernel(placed)


def inherited(owner: str, loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """Loops copied from another kernel; their reasons say so."""
    return tuple(replace(loop, reason=f"as in {owner}: {loop.reason}") for loop in loops)


def _operand(
    name: str, read: Read, producer: str, condition: Expr | None, *, at_start: bool
) -> Operand:
    return Operand(
        name=name,
        source=read.source,
        producer=producer,
        type=read.type,
        access=read.indices,
        condition=condition,
        at_start=at_start,
    )


def _producer(
    kernel: Kernel, read: Read, condition: Expr | None, at_start: bool
) -> tuple[Kernel, Expr | None, tuple[str, ...]]:
    """The kernel that evaluates ``read`` for every iteration of ``kernel`` that needs it.

    Also the condition under which ``kernel`` needs it, and the loops that this pins.
    """
    condition = conjunction(*static_conjuncts(condition))
    dropped = {loop.name for loop in kernel.loops if at_start and loop.reduction}
    vector = kernel.vector_loop
    if vector is not None and not varies(kernel, read.indices, vector.name):
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
        role=Role.LOAD,
        domain=domain,
        variables=tuple((name, expr) for name, expr in narrowed.variables if name in names),
        operands=(),
        value=read,
        initial=None,
        condition=None if pinned.complete else condition,
        store=None,
        members=(),
        results=(),
        timed=None,
        vector_operands=(read.source,),
        vector_store=False,
        vectorised=kernel.vectorised,
        capacity=None,
    )
    return producer, condition, tuple(pinned.values)


def varies(kernel: Kernel, indices: tuple[Expr, ...], loop: str) -> bool:
    """Whether subscripts over the domain take different values along a loop of the kernel."""
    nest = LoopDomain([loop.interval for loop in kernel.loops])
    return nest.varies_along([kernel.place(index) for index in indices], loop)


def _find_operand(
    program: SpatialProgram, kernel: Kernel, directive: IsolateProducer
) -> tuple[Kernel, GuardedRead, bool]:
    """The single read of the operand, the kernel it was found in, and whether it starts a sum."""
    name = directive.operand
    found = _reads_of(kernel, name)
    if not found:
        kernel = inline_functions(program.temporal, kernel, keep=frozenset({name}))
        found = _reads_of(kernel, name)
    if len(found) == 1:
        guarded, at_start = found[0]
        return kernel, guarded, at_start
    if found:
        raise UserError(
            f"{directive.text} on {kernel.name}: {name} occurs {len(found)} times",
            location=directive.location,
            expected="one occurrence, so that it is clear which one moves",
            given=", ".join(show(guarded.read) for guarded, _ in found),
            notes=tuple(
                (guarded.read.location, f"{show(guarded.read)} is read here")
                for guarded, _ in found
            ),
            hint=f"give one of them a name of its own: copy[i] = {name}[i], and isolate copy",
        )
    isolated = next((o for o in kernel.operands if o.source == name), None)
    if isolated is not None:
        raise UserError(
            f"{directive.text} on {kernel.name}: {name} is already loaded by {isolated.producer}",
            location=directive.location,
            expected=f"an operand that {kernel.name} still loads itself",
            hint=f"isolate before forward, or isolate further from {isolated.producer}",
        )
    others = sorted({guarded.read.source for guarded, _ in all_reads(kernel)})
    raise UserError(
        f"{directive.text} on {kernel.name}: {name} is not used in {kernel.name}",
        location=directive.location,
        expected=f"one of {', '.join(others)}" if others else "an operand that is still there",
        given=name,
    )


def all_reads(kernel: Kernel) -> list[tuple[GuardedRead, bool]]:
    """The reads that have no producer yet, and whether only the start of a reduction needs them."""
    start = [] if kernel.initial is None else list(guarded_reads(kernel.initial))
    return [
        *((guarded, True) for guarded in start),
        *((guarded, False) for guarded in guarded_reads(kernel.value)),
        *((guarded, False) for guarded in reads_of_members(kernel)),
    ]


def reads_of_members(kernel: Kernel) -> list[GuardedRead]:
    """What the members of a kernel read that are not members themselves."""
    names = {member.name for member in kernel.members}
    exprs = [e for m in kernel.members for e in (m.value, m.initial) if e is not None]
    found = [guarded for expr in exprs for guarded in guarded_reads(expr)]
    return [guarded for guarded in found if guarded.read.source not in names]


def _reads_of(kernel: Kernel, name: str) -> list[tuple[GuardedRead, bool]]:
    """The different reads of a source, and whether only the start of a reduction needs them."""
    found = [read for read in all_reads(kernel) if read[0].read.source == name]
    if len({guarded.read for guarded, _ in found}) > 1 or len({start for _, start in found}) > 1:
        return found
    return [(guarded, found[0][1]) for guarded in merged(guarded for guarded, _ in found)]


def merged(found: Iterable[GuardedRead]) -> list[GuardedRead]:
    """The distinct reads; one that occurs several times happens where any of them does."""
    merged: dict[Read, GuardedRead] = {}
    for guarded in found:
        known = merged.get(guarded.read)
        if known is not None and known.condition != guarded.condition:
            condition = any_of(known.condition, guarded.condition)
            guarded = GuardedRead(read=guarded.read, condition=condition)
        merged[guarded.read] = guarded
    return list(merged.values())


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
    target = kernel.store
    program = program.with_kernel(
        replace(
            kernel,
            store=None,
            role=Role.RELAY if kernel.role is Role.STORE else kernel.role,
        )
    )
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
    program = program.with_kernel(kernel.with_consumer(result, directive.consumers[0]))
    target = StoreTarget(tensor=function, indices=result.indices)
    return _consumer_chain(program, program.kernel(name), directive, target, result)


def _consumer_chain(
    program: SpatialProgram,
    kernel: Kernel,
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
    return program.with_kernel(replace(previous, role=Role.STORE, store=target))


def consumer_of(kernel: Kernel, name: str) -> Kernel:
    """A relay that receives the final values of ``kernel``, without its reduction loops."""
    reductions = frozenset(loop.name for loop in kernel.reduction_loops)
    narrowed = kernel.without(reductions)
    domain = tuple(d for d in kernel.domain if not d.reduction)
    names = {dimension.name for dimension in domain}
    local = Local(name=f"{kernel.function}_result", type=kernel.value.type)
    first = kernel.role is Role.COMPUTE
    return replace(
        narrowed,
        loops=inherited(kernel.name, narrowed.loops) if first else narrowed.loops,
        name=name,
        role=Role.RELAY,
        domain=domain,
        variables=tuple((n, expr) for n, expr in narrowed.variables if n in names),
        operands=(
            Operand(
                name=local.name,
                source=kernel.function,
                producer=kernel.name,
                type=kernel.value.type,
                access=None,
                condition=None if first else kernel.condition,
                at_start=False,
            ),
        ),
        value=local,
        initial=None,
        condition=None if first else kernel.condition,
        store=None,
        capacity=None,
    )


def consumer_of_result(kernel: Kernel, result: Result, name: str) -> Kernel:
    """A relay that receives one result of a system, without the loops that its condition pins."""
    member = kernel.member(result.member)
    if member is None:
        raise InternalError(f"{result.member} is no member of {kernel.name}")
    vector = kernel.vector_loop
    scalar = vector is not None and not member.lanes
    narrowed = kernel.without(frozenset([vector.name])) if vector and scalar else kernel
    pinned = pin(narrowed, result.condition)
    where = None if pinned.complete else result.condition
    narrowed = pinned.kernel
    local = Local(name=f"{result.function}_result", type=member.type)
    operand = Operand(
        name=local.name,
        source=result.function,
        producer=kernel.name,
        type=member.type,
        access=None,
        condition=where,
        at_start=False,
        pinned=(*pinned.values, *([vector.name] if vector and scalar else [])),
    )
    return replace(
        narrowed,
        loops=inherited(kernel.name, narrowed.loops),
        name=name,
        role=Role.RELAY,
        function=result.function,
        operands=(operand,),
        value=local,
        condition=where,
        members=(),
        results=(),
        timed=None,
        capacity=None,
    )
