"""One step of a reduction: the previous partial result, the new one, and where it goes."""

from __future__ import annotations

from functools import reduce

from t2s.core.errors import InternalError
from t2s.core.expr import (
    Apply,
    Expr,
    Index,
    Local,
    ReduceLanes,
    Select,
    apply,
    conjunction,
    const,
    index_names,
    simplify,
)
from t2s.core.isl import LoopDomain
from t2s.core.ops import Op, neutral_element
from t2s.core.types import Type
from t2s.graph.body import (
    RegisterRead,
    RegisterWrite,
    Send,
)
from t2s.graph.nodes import Register
from t2s.reduction.carry import CarryLoop, CarryPlan, Hop, plan_carry
from t2s.spatial.analysis.padding import in_domain
from t2s.spatial.analysis.reduction_form import PREVIOUS, mentions_previous, reduction_term
from t2s.spatial.ir import SpatialKernel
from t2s.spatial.loop_nest import LoopExecution, SpatialLoop
from t2s.spatial.lowering.body_builder import (
    BodyBuilder,
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
from t2s.spatial.work import Reduction


def reduce_step(builder: BodyBuilder, reduction: Reduction) -> None:
    """One step of a reduction: previous partial result, new one, and where it goes."""
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
    found = LoopDomain([other.interval for other in outer]).range_of(loop.extent)
    return 0 if found is None else max(0, found[0])


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
    Lanes that are not ``inside`` of the domain add nothing; then all factors stay in the lanes, so
    that this holds for infinite ones too.
    """
    factors = [with_operands(builder, factor) for factor in _factors(term)]
    single = [factor for factor in factors if factor.type.lanes == 1]
    if inside is not None or operator is not Op.ADD or len(single) in (0, len(factors)):
        factors, single = [with_operands(builder, term)], []
    vectors = [broadcast(factor, lanes) for factor in factors if factor not in single]
    wide: Expr = reduce(lambda left, right: apply(Op.MULTIPLY, left, right), vectors)
    if inside is not None:
        wide = _or_neutral(in_all_lanes(builder, inside), operator, wide)
    reduced: Expr = ReduceLanes(operator=operator, value=wide, type=wide.type.scalar)
    return reduce(lambda left, right: apply(Op.MULTIPLY, left, right), [*single, reduced])


def _factors(term: Expr) -> list[Expr]:
    """The factors of a product, from left to right; a single one if it is none."""
    match term:
        case Apply(operator=Op.MULTIPLY, operands=(left, right)):
            return [*_factors(left), *_factors(right)]
    return [term]


def _masked_step(
    builder: BodyBuilder, form: tuple[Op, Expr] | None, inside: Expr, previous: Expr
) -> Expr:
    """A step that changes nothing where ``inside`` does not hold.

    A neutral term does that outside of the recurrence, which the selection would lengthen.
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

    Of a product that is summed up the factors are chosen, so that its multiplier still feeds its
    adder: a DSP block holds both only if nothing comes between them.  For floats -0.0 * 0.0 is
    -0.0, the neutral element; an integer product vanishes with one factor.
    """
    match operator, term:
        case Op.ADD, Apply(operator=Op.MULTIPLY, operands=(left, right)):
            left = _or_neutral(inside, operator, left)
            right = _or_constant(inside, right, 0.0) if right.type.is_float else right
            return apply(Op.MULTIPLY, left, right)
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
        simplify(apply(Op.SUBTRACT, Index(name=loop.name), loop.minimum))
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
        apply(Op.GREATER, Index(name=loop.name), loop.minimum),
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
            apply(Op.LESS, Index(name=loop.name), loop.last),
        )
        builder.statements.append(Send(channel=channel.name, value=result, condition=leaving))
