"""The body of a kernel: receive operands, pass them on, compute or reduce, send or store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce

from t2s.core.errors import InternalError
from t2s.core.expr import (
    Apply,
    Expr,
    Index,
    Local,
    Read,
    ReduceLanes,
    Select,
    apply,
    conjunction,
    const,
    index_names,
    simplify,
)
from t2s.core.isl import LoopDomain
from t2s.core.let_binding import bind_shared
from t2s.core.names import NameSupply
from t2s.core.ops import Op, neutral_element
from t2s.core.types import Type
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement, Store
from t2s.graph.graph import Channel
from t2s.graph.nodes import Register
from t2s.reduction.carry import CarryLoop, CarryPlan, Hop, plan_carry
from t2s.spatial.analysis.capacity import hop_capacity, neighbor_capacity
from t2s.spatial.analysis.lookup import (
    PREVIOUS,
    mentions_previous,
    placed_condition,
    reduction_term,
)
from t2s.spatial.analysis.padding import in_domain, memory_guard
from t2s.spatial.ir import (
    Evaluation,
    GatheredStream,
    KernelOperand,
    LoadUnit,
    LoopExecution,
    Recurrences,
    Reduction,
    Relay,
    ScatteredStream,
    SpatialKernel,
    SpatialLoop,
    StoreUnit,
    shifted,
)
from t2s.spatial.lowering.body_builder import (
    Body,
    BodyBuilder,
    KernelLinks,
    all_first,
    at_first,
    at_last,
    broadcast,
    hop_channel,
    in_all_lanes,
    lanes_of,
    placed,
    receive_from,
    send,
    stepped_loops,
    with_operands,
)
from t2s.spatial.lowering.body_relay import BufferPlan, buffered_body, gathered_body, scattered_body
from t2s.spatial.lowering.body_system import SystemBody


def build_body(
    kernel: SpatialKernel,
    links: KernelLinks,
    names: NameSupply,
    origins: Mapping[str, tuple[int, ...]],
    plan: BufferPlan | None,
    active: Expr | None = None,
) -> Body:
    """The body of a kernel.

    ``origins`` are the minima of the Funcs in memory; ``plan`` belongs to a feeder with a buffer;
    ``active`` is the condition for iterations of its PEs (``None``: all).
    """
    builder = BodyBuilder(kernel, links, names, origins)
    if plan is None and kernel.stream is None:
        for operand in kernel.operands:
            _receive(builder, operand)
    match kernel.work:
        case Relay() if plan is not None:
            buffered_body(builder, plan)
        case Relay(stream=ScatteredStream() as stream):
            scattered_body(builder, stream)
        case Relay(stream=GatheredStream() as stream):
            gathered_body(builder, stream)
        case LoadUnit(value=Read() as read, address=address):
            _load(builder, read, address)
        case StoreUnit() as unit:
            _store(builder, unit)
        case Recurrences() as system:
            SystemBody(builder, system).build()
        case Reduction() as reduction:
            reduce_step(builder, reduction)
        case Relay(value=value) | Evaluation(value=value):
            send(builder, with_operands(builder, value), placed(builder, kernel.condition))
        case LoadUnit():
            raise InternalError(f"{kernel.name} loads no single element")
    return Body(
        statements=tuple(_where_active(active, _in_steps(builder))),
        registers=tuple(builder.registers),
        channels=tuple(builder.channels),
    )


def _receive(builder: BodyBuilder, operand: KernelOperand) -> None:
    """Receive an operand: at the boundary from its producer, elsewhere from the neighbor."""
    kernel = builder.kernel
    channel = builder.links.incoming[operand.name]
    element = builder.links.types[channel].element
    start = all_first(stepped_loops(kernel)) if operand.at_start else None
    hops = [loop for name in operand.forwards if (loop := kernel.loop(name)) is not None]
    absent = [loop.name for loop in kernel.reduction_loops if operand.at_start]
    at_edge = conjunction(start, *(at_first(loop) for loop in hops))
    entry = conjunction(placed(builder, operand.condition), at_edge)
    wanted = f"{operand.name}_entering" if hops or operand.neighbors else operand.name
    value: Expr = receive_from(builder, wanted, channel, element, entry)
    passed: list[tuple[Channel, Expr | None]] = []
    for neighbor_hop in reversed(operand.neighbors):
        reached = conjunction(placed(builder, neighbor_hop.needed), at_edge)
        arrives, leaves = (
            builder.first_lane(placed_condition(kernel, on))
            for on in (neighbor_hop.arrives, neighbor_hop.leaves)
        )
        hop, neighbor = _from_neighbor(
            builder,
            operand,
            next(loop for loop in kernel.loops if loop.name == neighbor_hop.loop),
            frozenset([*absent, *operand.forwards]),
            neighbor_capacity(kernel, neighbor_hop),
            conjunction(reached, arrives),
            reverse=neighbor_hop.step < 0,
        )
        value = Select(condition=arrives, if_true=neighbor, if_false=value, type=element)
        passed.append((hop, conjunction(reached, leaves)))
    first = operand.neighbors[0].needed if operand.neighbors else operand.condition
    needed = conjunction(placed(builder, first), start)
    for position in reversed(range(len(hops))):
        loop, outer = hops[position], hops[:position]
        reached = conjunction(needed, *(at_first(other) for other in outer))
        inside = Index(name=loop.name) > loop.minimum
        hop, neighbor = _from_neighbor(
            builder,
            operand,
            loop,
            frozenset([*absent, *(other.name for other in outer)]),
            hop_capacity(kernel, operand, position),
            conjunction(reached, inside),
        )
        value = Select(condition=at_first(loop), if_true=value, if_false=neighbor, type=element)
        not_last = Index(name=loop.name) < loop.last
        passed.append((hop, conjunction(reached, not_last)))
    if passed:
        value = builder.let(operand.name, value)
    for hop, condition in passed:
        builder.statements.append(Send(channel=hop.name, value=value, condition=condition))
    builder.operands[operand.name] = value


def _from_neighbor(
    builder: BodyBuilder,
    operand: KernelOperand,
    loop: SpatialLoop,
    absent: frozenset[str],
    capacity: int,
    arrives: Expr | None,
    *,
    reverse: bool = False,
) -> tuple[Channel, Expr]:
    """The channels between neighbors along a loop, and the value from there where ``arrives``."""
    element = builder.links.types[builder.links.incoming[operand.name]].element
    name = f"{operand.source}_along_{loop.name}"
    hop = hop_channel(builder, name, element, loop, absent, capacity, reverse=reverse)
    passed = f"{operand.name}_passed"
    return hop, receive_from(builder, passed, hop.name, element, arrives)


def _load(builder: BodyBuilder, read: Read, address: tuple[Expr, ...] | None) -> None:
    kernel = builder.kernel
    type = read.type.with_lanes(lanes_of(kernel))
    condition = placed(builder, kernel.condition)
    guard = placed(builder, memory_guard(kernel, builder.origins))
    origin = builder.origins.get(read.source, (0,) * len(read.indices))
    indices = _addressed(builder, address) or tuple(
        shifted(builder.place(index), -low) for index, low in zip(read.indices, origin, strict=True)
    )
    target = builder.locals.fresh(f"{read.source}_element")
    builder.statements.append(
        Load(target=target, tensor=read.source, indices=indices, type=type, condition=guard)
    )
    send(builder, Local(name=target, type=type), condition)


def _store(builder: BodyBuilder, unit: StoreUnit) -> None:
    builder.statements.append(
        Store(
            tensor=unit.store.tensor,
            indices=_addressed(builder, unit.address)
            or tuple(builder.place(index) for index in unit.store.indices),
            value=with_operands(builder, unit.value),
            condition=placed(builder, memory_guard(builder.kernel, builder.origins)),
        )
    )


def _in_steps(builder: BodyBuilder) -> Iterator[Statement]:
    """The statements, with large values split by let-bindings."""
    for statement in builder.statements:
        match statement:
            case (
                Let(value=value)
                | Send(value=value)
                | Store(value=value)
                | RegisterWrite(value=value)
            ):
                parts, left = bind_shared(value, lambda: builder.locals.fresh("part"))
                yield from (Let(target=name, value=part) for name, part in parts)
                yield replace(statement, value=left) if parts else statement
            case _:
                yield statement


def _where_active(active: Expr | None, statements: Iterable[Statement]) -> Iterator[Statement]:
    """Guard the statements so that inactive iterations receive, send, load and store nothing."""
    if active is None:
        yield from statements
        return
    for statement in statements:
        match statement:
            case Receive() | Send() | Load() | Store():
                both = conjunction(active, statement.condition)
                yield replace(statement, condition=both)
            case _:
                yield statement


def _addressed(builder: BodyBuilder, address: tuple[Expr, ...] | None) -> tuple[Expr, ...]:
    """The subscripts of a tensor that the host orders; none for any other tensor."""
    return tuple(builder.first_lane(index) for index in address or ())


# A step of a reduction: the previous partial result, the new one, and where it goes.


def reduce_step(builder: BodyBuilder, reduction: Reduction) -> None:
    """A step of a reduction: previous partial result, new one, and where it goes."""
    kernel = builder.kernel
    stepped = stepped_loops(kernel)
    plan = plan_carry(_carry_loops(kernel))
    lanes = lanes_of(kernel)
    vector = kernel.vector_loop
    result_lanes = lanes if vector is not None and not vector.reduction else 1
    type = reduction.value.type.with_lanes(result_lanes)
    previous = _previous(builder, reduction, plan, stepped, type)
    result = builder.let(kernel.function, _step(builder, previous, lanes, result_lanes))
    _carry_on(builder, plan, result)
    final = conjunction(*(at_last(loop) for loop in stepped))
    send(builder, result, conjunction(placed(builder, kernel.condition), final))


def _carry_loops(kernel: SpatialKernel) -> list[CarryLoop]:
    return [
        CarryLoop(
            name=loop.name,
            extent=kernel.longest(loop),
            least=_least(kernel, loop),
            reduction=loop.reduction,
            space=loop.kind is LoopExecution.UNROLLED,
        )
        for loop in kernel.loops
        if loop.kind is not LoopExecution.VECTOR
    ]


def _least(kernel: SpatialKernel, loop: SpatialLoop) -> int | None:
    """Fewest iterations of a loop; ``None`` where steps of a reduction may differ in them."""
    if loop.constant is not None:
        return loop.constant[1]
    outer = kernel.loops[: kernel.loops.index(loop)]
    used = index_names(loop.minimum) | index_names(loop.extent)
    if loop.reduction or any(other.reduction and other.name in used for other in outer):
        return None
    range_ = LoopDomain([other.interval for other in outer]).range_of(loop.extent)
    return 0 if range_ is None else max(0, range_[0])


def _step(builder: BodyBuilder, previous: Expr, lanes: int, result_lanes: int) -> Expr:
    """The new partial result; lanes that are reduced become a balanced tree.

    In padded steps it is the previous one.
    """
    value = builder.kernel.value
    inside = in_domain(builder.kernel, reductions_only=True)
    builder.operands[PREVIOUS] = previous
    form = reduction_term(value)
    if lanes == result_lanes:
        if inside is None:
            return broadcast(with_operands(builder, value), result_lanes)
        return _masked_step(builder, form, builder.place(inside), previous)
    if form is None:
        raise InternalError(f"{builder.kernel.name} cannot reduce its lanes")
    operator, term = form
    return apply(operator, previous, _over_lanes(builder, operator, term, lanes, inside))


def _over_lanes(
    builder: BodyBuilder, operator: Op, term: Expr, lanes: int, inside: Expr | None
) -> Expr:
    """The term combined over the lanes.

    A factor that is the same in all lanes multiplies the sum: ``b * (x0 * y0 + ... + xn * yn)``.
    Lanes outside of the domain (not ``inside``) add nothing.  Where all of them are outside, which
    the first one is only then, a sum of floats is -0.0, and so is its product with the factor 0.0,
    in place of one that may be infinite.
    """
    factors = [with_operands(builder, factor) for factor in _factors(term)]
    single = [factor for factor in factors if factor.type.lanes == 1]
    if operator is not Op.ADD or len(single) in (0, len(factors)):
        factors, single = [with_operands(builder, term)], []
    vectors = [broadcast(factor, lanes) for factor in factors if factor not in single]
    wide: Expr = reduce(lambda left, right: left * right, vectors)
    if inside is not None:
        wide = _or_neutral(in_all_lanes(builder, inside), operator, wide)
        first = builder.place(inside)
        single = [_or_constant(first, f, 0.0) if f.type.is_float else f for f in single]
    reduced: Expr = ReduceLanes(operator=operator, value=wide, type=wide.type.scalar)
    return reduce(lambda left, right: left * right, [*single, reduced])


def _factors(term: Expr) -> list[Expr]:
    """The factors of a product from left to right, or the value itself."""
    match term:
        case Apply(operator=Op.MULTIPLY, operands=(left, right)):
            return [*_factors(left), *_factors(right)]
    return [term]


def _masked_step(
    builder: BodyBuilder, form: tuple[Op, Expr] | None, inside: Expr, previous: Expr
) -> Expr:
    """A step that changes nothing where ``inside`` does not hold.

    A neutral term keeps the selection out of the recurrence, which it would lengthen.
    """
    value = builder.kernel.value
    lanes = previous.type.lanes
    if form is not None and value == apply(form[0], Local(name=PREVIOUS, type=value.type), form[1]):
        term = broadcast(with_operands(builder, form[1]), lanes)
        return apply(form[0], previous, _or_neutral(inside, form[0], term))
    stepped = broadcast(with_operands(builder, value), lanes)
    return Select(condition=inside, if_true=stepped, if_false=previous, type=stepped.type)


def _or_neutral(inside: Expr, operator: Op, term: Expr) -> Expr:
    """The term, and the neutral element of the operator where ``inside`` does not hold.

    In a sum of products the factors are replaced, so that the multiplier still feeds the adder: a
    DSP block holds both only if nothing is between them.  For floats -0.0 * 0.0 is -0.0, the
    neutral element; for integers one zero factor is enough.
    """
    match operator, term:
        case Op.ADD, Apply(operator=Op.MULTIPLY, operands=(left, right)):
            left = _or_neutral(inside, operator, left)
            right = _or_constant(inside, right, 0.0) if right.type.is_float else right
            return left * right
    neutral = neutral_element(operator, term.type.scalar)
    if neutral is None:
        raise InternalError(f"{operator.value} has no neutral element")
    return _or_constant(inside, term, neutral)


def _or_constant(inside: Expr, value: Expr, constant: float) -> Expr:
    otherwise = broadcast(const(constant, value.type.scalar), value.type.lanes)
    return Select(condition=inside, if_true=value, if_false=otherwise, type=value.type)


def _carries(kernel: SpatialKernel) -> bool:
    """Whether a step needs the result of the one before."""
    padded = in_domain(kernel, reductions_only=True) is not None
    return padded or mentions_previous(kernel.value)


def _previous(
    builder: BodyBuilder,
    reduction: Reduction,
    plan: CarryPlan,
    stepped: list[SpatialLoop],
    type: Type,
) -> Expr:
    """The partial result of the step before, or the initial value at the first step."""
    kernel = builder.kernel
    start = broadcast(with_operands(builder, reduction.initial), type.lanes)
    if not _carries(kernel):
        return start
    if plan.hops and isinstance(start, Apply):
        start = builder.let("initial", start)  # computed once, for the first step and each hop
    value: Expr = start
    if plan.registers is not None:
        register = builder.locals.fresh(f"{kernel.function}_partial")
        builder.registers.append(
            Register(
                name=register,
                type=type,
                shape=plan.registers.shape,
                distance=plan.registers.distance,
                location=kernel.location,
            )
        )
        target = builder.locals.fresh("carried")
        builder.statements.append(
            RegisterRead(
                target=target,
                register=register,
                indices=_addresses(builder, plan.registers.loops),
                type=type,
            )
        )
        value = Local(name=target, type=type)
    for hop in plan.hops:
        value = _arriving(builder, hop, value, type)
    first = all_first(stepped)
    if first is None:
        return start
    return builder.let(
        "previous", Select(condition=first, if_true=start, if_false=value, type=type)
    )


def _addresses(builder: BodyBuilder, loops: tuple[str, ...]) -> tuple[Expr, ...]:
    return tuple(
        simplify(Index(name=loop.name) - loop.minimum)
        for loop in builder.kernel.loops
        if loop.name in loops
    )


def _hop_loops(builder: BodyBuilder, hop: Hop) -> tuple[SpatialLoop, list[SpatialLoop]]:
    loops = {loop.name: loop for loop in builder.kernel.loops}
    return loops[hop.loop], [loops[name] for name in hop.inner]


def _arriving(builder: BodyBuilder, hop: Hop, otherwise: Expr, type: Type) -> Expr:
    """The partial result that arrives from another PE when the hop's loop has advanced."""
    loop, inner = _hop_loops(builder, hop)
    moved = conjunction(
        *(at_first(other) for other in inner),
        Index(name=loop.name) > loop.minimum,
    )
    channel = hop_channel(
        builder,
        f"{builder.kernel.function}_partial_along_{loop.name}",
        type,
        loop,
        frozenset(other.name for other in inner),
        capacity=hop.waiting + 2,
    )
    builder.carried.append((hop, channel))
    arrived = receive_from(builder, "arrived", channel.name, type, moved)
    if moved is None:
        return arrived
    return Select(condition=moved, if_true=arrived, if_false=otherwise, type=type)


def _carry_on(builder: BodyBuilder, plan: CarryPlan, result: Expr) -> None:
    """Keep the new partial result for the next step, here or in another PE."""
    if not _carries(builder.kernel):
        return
    for register in builder.registers:
        loops = plan.registers.loops if plan.registers is not None else ()
        builder.statements.append(
            RegisterWrite(register=register.name, indices=_addresses(builder, loops), value=result)
        )
    for hop, channel in builder.carried:
        loop, inner = _hop_loops(builder, hop)
        leaving = conjunction(
            *(at_last(other) for other in inner),
            Index(name=loop.name) < loop.last,
        )
        builder.statements.append(Send(channel=channel.name, value=result, condition=leaving))
