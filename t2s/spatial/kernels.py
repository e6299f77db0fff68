"""The initial kernel of a function or a system of recurrences: a loop nest before any directive.

``as_system`` turns it into a system of recurrences: ``C[i, j] += A[i, k] * B[k, j]`` as equations.
The reduction becomes a recurrence along its loops, in the order in which they run: each step reads
the step before, the first one the initial value.  Where the innermost reduction loop is at its
start, the step before is the last one of the next outer loop's previous iteration.
"""

from __future__ import annotations

from dataclasses import replace

from t2s.core.errors import InternalError, UnsupportedError
from t2s.core.expr import (
    Apply,
    Const,
    Expr,
    Index,
    Local,
    Read,
    Select,
    conjunction,
    equals,
    index_names,
    reads,
    simplify,
    substitute,
)
from t2s.core.isl import Interval, LoopDomain, is_affine
from t2s.core.isl_maps import condition
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.core.walk import Term, rewrite
from t2s.func.ir import Definition, Dimension, Function, System, TemporalProgram
from t2s.spatial.analysis.lookup import PREVIOUS, is_static, mentions_previous, reduction_term
from t2s.spatial.analysis.padding import in_domain, inside_of_domain
from t2s.spatial.inline import join_choices
from t2s.spatial.ir import (
    Evaluation,
    LoopExecution,
    Member,
    Recurrences,
    Reduction,
    Result,
    SpatialKernel,
    SpatialLoop,
    StoreTarget,
    Work,
    shifted,
)


def initial_kernel(
    program: TemporalProgram, function: Function, reassociate: bool
) -> SpatialKernel:
    """One loop for each dimension of the definition, in the order of the definition.

    The initial definition becomes the value that the update's reduction starts from.  Raises
    ``UnsupportedError`` for several updates and for recursion other than accumulation.
    """
    definition, value, initial = _value(function)
    _check_not_empty(function, definition)
    loops = tuple(
        SpatialLoop(
            name=dimension.name,
            minimum=dimension.minimum,
            extent=dimension.extent,
            kind=LoopExecution.SERIAL,
            reduction=dimension.reduction,
            definition=Index(name=dimension.name),
            reason="reduction of the definition" if dimension.reduction else "of the definition",
        )
        for dimension in definition.domain
    )
    indices = tuple(
        shifted(part, -low)
        for part, (low, _) in zip(definition.target, function.bounds, strict=True)
    )
    store = StoreTarget(tensor=function.name, indices=indices)
    value = join_choices(program, value)
    work: Work = Evaluation(value=value, store=store)
    if initial is not None:
        initial = join_choices(program, initial)
        work = Reduction(value=value, initial=initial, store=store, reassociate=reassociate)
    return SpatialKernel(
        name=function.name,
        function=function.name,
        domain=definition.domain,
        loops=loops,
        variables=tuple((loop.name, Index(name=loop.name)) for loop in loops),
        work=work,
        location=definition.location,
    )


def _value(function: Function) -> tuple[Definition, Expr, Expr | None]:
    """The definition that gives the loops, its value over ``previous``, and the initial value."""
    if not function.updates:
        return function.initial, function.initial.value, None
    if len(function.updates) > 1:
        raise UnsupportedError(
            f"Func {function.name} has {len(function.updates)} updates",
            location=function.updates[1].location,
            expected="one update in a Func that becomes hardware",
            hint=f"continue in another Func: {function.name}2[i, j] = {function.name}[i, j]",
        )
    update = function.updates[0]
    _check_target(function, update)

    def rule(node: Term) -> Term | None:
        if isinstance(node, Read) and node.source == function.name:
            return Local(name=PREVIOUS, type=node.type)
        return None

    value = rewrite(update.value, rule)
    names = dict(zip(function.arguments, update.target, strict=True))
    initial = substitute(function.initial.value, names)
    if update.reductions:
        return update, value, initial

    def start(node: Term) -> Term | None:
        return initial if isinstance(node, Local) and node.name == PREVIOUS else None

    return update, rewrite(value, start) if mentions_previous(value) else value, None


def _check_target(function: Function, update: Definition) -> None:
    reductions = {dimension.name for dimension in update.reductions}
    plain = all(isinstance(part, Index) and part.name not in reductions for part in update.target)
    if not plain:
        raise UnsupportedError(
            f"this update of {function.name} writes to computed places",
            location=update.location,
            expected=f"plain Vars on the left side, as in {function.name}[i, j] += ...",
            hint="it can be computed by t2s.interpret; hardware for it is not generated yet",
        )
    for read in reads(update.value):
        if read.source == function.name and read.indices != update.target:
            raise UnsupportedError(
                f"this update of {function.name} reads another element of {function.name}",
                location=read.location or update.location,
                expected="only the element that is updated",
                hint="write it as a recurrence, in one definition of a Func with a declared type: "
                "S[i] = t2s.select(i == 0, x[i], S[i - 1] + x[i])",
            )


def _check_not_empty(function: Function, definition: Definition) -> None:
    """Refuse a reduction without steps, which would never send its result."""
    outer: list[Interval] = []
    for dimension in definition.domain:
        if dimension.reduction:
            empty = LoopDomain(outer, [dimension.extent < 1]).sample()
            if empty is not None:
                point = ", ".join(f"{name}={value}" for name, value in empty.items())
                raise UnsupportedError(
                    f"the reduction over {dimension.name} in {function.name} is empty for {point}",
                    location=definition.location,
                    expected="at least one step for every element",
                    hint="start the reduction one step earlier, with a neutral term",
                )
        outer.append(dimension.interval)


def as_system(kernel: SpatialKernel) -> SpatialKernel:
    """The kernel with one member instead of a value; a system stays as it is."""
    work = kernel.work
    if isinstance(work, Recurrences):
        return kernel
    if not isinstance(work, Evaluation | Reduction) or work.store is None:
        raise InternalError(f"{kernel.name} stores nothing")
    value = work.value
    if isinstance(work, Reduction):
        value = _masked(kernel, value)
        previous = _previous(kernel, work.initial)

        def rule(node: Term) -> Term | None:
            return previous if isinstance(node, Local) and node.name == PREVIOUS else None

        value = rewrite(value, rule)
    vector = kernel.vector_loop
    domain = tuple(
        padded if padded.reduction else dimension
        for dimension, padded in zip(kernel.domain, kernel.padded_domain, strict=True)
    )
    arguments = tuple(dimension.name for dimension in domain)
    intervals = [dimension.interval for dimension in domain]
    final = [equals(loop.definition, kernel.over_domain(loop.last)) for loop in _steps(kernel)]
    where = condition(LoopDomain(intervals), LoopDomain(intervals, final).points)
    member = Member(
        name=kernel.function,
        type=work.value.type,
        arguments=arguments,
        value=value,
        lanes=vector is not None,
        location=kernel.location,
    )
    result = Result(
        function=work.store.tensor,
        member=member.name,
        indices=work.store.indices,
        condition=where,
    )
    system = SpatialKernel(
        name=kernel.name,
        function=kernel.function,
        domain=domain,
        loops=tuple(replace(loop, reduction=False) for loop in kernel.loops),
        variables=kernel.variables,
        work=Recurrences(
            members=(member,),
            results=(result,),
            vector_operands=work.vector_operands,
            vector_store=work.vector_store,
        ),
        vectorized=kernel.vectorized,
        reshaped=kernel.reshaped,
        capacity=kernel.capacity,
        location=kernel.location,
    )
    return inside_of_domain(system) if kernel.paddings else system


def _masked(kernel: SpatialKernel, value: Expr) -> Expr:
    """The value, or in padded steps of a reduction that of the previous step.

    Skipping the step would not hand that on to the next one.
    """
    inside = in_domain(kernel, reductions_only=True)
    if inside is None:
        return value
    before = Local(name=PREVIOUS, type=value.type)
    return Select(condition=inside, if_true=value, if_false=before, type=value.type)


def _steps(kernel: SpatialKernel) -> list[SpatialLoop]:
    return [loop for loop in kernel.reduction_loops if loop.kind is not LoopExecution.VECTOR]


def _previous(kernel: SpatialKernel, initial: Expr) -> Expr:
    """The value of the step before, over the domain's variables."""
    steps = _steps(kernel)
    type = kernel.value.type
    value = initial
    for at, loop in enumerate(steps):
        inner = steps[at + 1 :]
        moved: dict[str, Expr] = {
            loop.name: simplify(Index(name=loop.name) - 1),
            **{other.name: other.last for other in inner},
        }
        starts = [equals(Index(name=other.name), other.minimum) for other in inner]
        advanced = conjunction(
            Index(name=loop.name) > loop.minimum,
            *starts,
        )
        if advanced is None:
            raise InternalError(f"{loop.name} never advances")
        before = Read(
            source=kernel.function,
            indices=tuple(_before(kernel, d.name, moved) for d in kernel.domain),
            type=type,
            location=kernel.location,
        )
        value = Select(
            condition=kernel.over_domain(advanced), if_true=before, if_false=value, type=type
        )
    return value


def _before(kernel: SpatialKernel, name: str, moved: dict[str, Expr]) -> Expr:
    placed = dict(kernel.variables)[name]
    if not index_names(placed) & moved.keys():
        return Index(name=name)
    return kernel.over_domain(substitute(placed, moved))


# The initial kernel of a system of recurrences, and the streams of results that leave it.
#
# A ``System`` of the temporal program becomes one kernel whose members are the Funcs of the system,
# with one loop for each dimension of its domain; a dimension that only some members have becomes
# lanes at once, since these are computed together in one iteration.
#
# The results are streams of values that leave the kernel: for a *projection*, an output such as
# ``out[r, h] = Sum[r, h, R - 1, H - 1]`` or ``O[j, i] = Z[j, j, i]``, the iterations that compute
# an element of it; every member that is an output itself, or that other Funcs read, leaves as a
# whole.


def system_kernel(program: TemporalProgram, system: System, name: str) -> SpatialKernel:
    """One kernel for all members of a system.

    Raises ``UnsupportedError`` for a lanes reduction that is no sum, product, minimum or maximum.
    """
    lanes = system.lanes
    dimensions = (*system.domain, *((lanes,) if lanes is not None else ()))
    loops = tuple(_loop(dimension, lanes) for dimension in dimensions)
    functions = [program.function(member) for member in system.members]
    members = tuple(_member(function, lanes) for function in functions)
    return SpatialKernel(
        name=name,
        function=name,
        domain=dimensions,
        loops=loops,
        variables=tuple((loop.name, Index(name=loop.name)) for loop in loops),
        work=Recurrences(
            members=members,
            results=_results(program, system, dimensions),
            vector_operands=_sources(members) if lanes is not None else (),
            vector_store=lanes is not None,
        ),
        location=program.function(name).initial.location,
    )


def _sources(members: tuple[Member, ...]) -> tuple[str, ...]:
    names = {member.name for member in members}
    sources = {read.source: None for member in members for read in reads(member.value)}
    return tuple(name for name in sources if name not in names)


def _loop(dimension: Dimension, lanes: Dimension | None) -> SpatialLoop:
    vector = dimension is lanes
    return SpatialLoop(
        name=dimension.name,
        minimum=dimension.minimum,
        extent=dimension.extent,
        kind=LoopExecution.VECTOR if vector else LoopExecution.SERIAL,
        reduction=False,
        definition=Index(name=dimension.name),
        reason="lanes: not all Funcs of the nest have it" if vector else "of the definition",
    )


def _member(function: Function, lanes: Dimension | None) -> Member:
    wide = lanes is not None and lanes.name in function.arguments
    initial, value, combine = None, function.initial.value, None
    if function.updates:
        initial, (combine, value) = value, _lane_reduction(function, function.updates[0])
        reduced = function.updates[0].reductions[0].name
        if lanes is None:
            raise InternalError(f"{function.name} reduces over lanes that do not exist")
        value = substitute(value, {reduced: Index(name=lanes.name)})
    return Member(
        name=function.name,
        type=function.type,
        arguments=function.arguments,
        value=value,
        lanes=wide,
        combine=combine,
        initial=initial,
        location=function.initial.location,
    )


def _lane_reduction(function: Function, update: Definition) -> tuple[Op, Expr]:
    def rule(node: Term) -> Term | None:
        if isinstance(node, Read) and node.source == function.name:
            return Local(name=PREVIOUS, type=node.type)
        return None

    value = rewrite(update.value, rule)
    form = reduction_term(value)
    if form is None:
        raise UnsupportedError(
            f"the update of {function.name} is not a sum, product, minimum or maximum",
            location=update.location,
            expected=f"{function.name}[...] op term, with an associative op: all lanes are "
            "combined at once",
            given=show(update.value),
        )
    return form


def stored_members(program: TemporalProgram, system: System) -> tuple[str, ...]:
    """The members that leave the kernel as a whole: outputs, and those that other Funcs read."""
    wanted = {name for name in program.outputs if name in system.members}
    for function in program.functions:
        if function.name in system.members or is_projection(program, function, system):
            continue
        for definition in function.definitions:
            wanted |= {r.source for r in reads(definition.value) if r.source in system.members}
    return tuple(name for name in system.members if name in wanted)


def is_projection(program: TemporalProgram, function: Function, system: System) -> bool:
    """Whether a Func is an output that only picks elements of a member."""
    if function.name not in program.outputs or function.updates:
        return False
    if function.name in system.members:
        return False
    return _picked(function, system) is not None


def projected_system(program: TemporalProgram, function: Function) -> System | None:
    """The system that a Func is a projection of, or ``None``."""
    systems = (s for s in program.systems if is_projection(program, function, s))
    return next(systems, None)


def _picked(function: Function, system: System) -> tuple[Read, Expr | None] | None:
    """The read of a projection and the condition under which it is not 0."""
    match function.initial.value:
        case Read(source=source) as read if source in system.members:
            picked: tuple[Read, Expr | None] = read, None
        case Select(condition=test, if_true=Read(source=source) as read, if_false=other) if (
            source in system.members
            and is_static(test)
            and is_affine(test)
            and isinstance(other, Const)
            and other.value == 0
        ):
            picked = read, test
        case Select(condition=test, if_true=other, if_false=Read(source=source) as read) if (
            source in system.members
            and is_static(test)
            and is_affine(test)
            and isinstance(other, Const)
            and other.value == 0
        ):
            picked = read, ~test
        case _:
            return None
    read = picked[0]
    plain = {place[0] for part in read.indices if (place := _shifted_index(part)) is not None}
    affine = all(is_affine(part) for part in read.indices)
    return picked if affine and set(function.arguments) <= plain else None


def _shifted_index(index: Expr) -> tuple[str, int] | None:
    """(name, number) of a subscript ``name + number``."""
    match index:
        case Index(name=name):
            return name, 0
        case Apply(operator=Op.ADD, operands=(Index(name=name), Const(value=int() as by))):
            return name, by
        case Apply(operator=Op.ADD, operands=(Const(value=int() as by), Index(name=name))):
            return name, by
        case Apply(operator=Op.SUBTRACT, operands=(Index(name=name), Const(value=int() as by))):
            return name, -by
    return None


def _results(
    program: TemporalProgram, system: System, dimensions: tuple[Dimension, ...]
) -> tuple[Result, ...]:
    whole = []
    for name in stored_members(program, system):
        function = program.function(name)
        indices = tuple(Index(name=argument) for argument in function.arguments)
        whole.append(_result(function, name, indices, None, dimensions))
    projections = (
        _projection(program, function, system, dimensions)
        for function in program.functions
        if is_projection(program, function, system)
    )
    return (*whole, *projections)


def _projection(
    program: TemporalProgram,
    function: Function,
    system: System,
    dimensions: tuple[Dimension, ...],
) -> Result:
    picked = _picked(function, system)
    if picked is None:
        raise InternalError(f"{function.name} is not a projection")
    read, test = picked
    arguments = program.function(read.source).arguments
    own: dict[str, Expr] = {}
    for argument, index in zip(arguments, read.indices, strict=True):
        place = _shifted_index(index)
        if place is not None:
            name, by = place
            own.setdefault(name, shifted(Index(name=argument), -by))
    places = [
        equals(Index(name=argument), substitute(index, own))
        for argument, index in zip(arguments, read.indices, strict=True)
    ]
    inside = [
        substitute(bound, own)
        for dimension in function.initial.domain
        for bound in dimension.interval.conditions
    ]
    tests = [] if test is None else [substitute(test, own)]
    indices = tuple(own[argument] for argument in function.arguments)
    return _result(function, read.source, indices, [*places, *inside, *tests], dimensions)


def _result(
    function: Function,
    member: str,
    indices: tuple[Expr, ...],
    conditions: list[Expr] | None,
    dimensions: tuple[Dimension, ...],
) -> Result:
    origin = tuple(low for low, _ in function.bounds)
    where: Expr | None = None
    if conditions is not None:
        intervals = [dimension.interval for dimension in dimensions]
        points = LoopDomain(intervals, conditions).points
        where = condition(LoopDomain(intervals), points)
    return Result(
        function=function.name,
        member=member,
        indices=tuple(shifted(index, -low) for index, low in zip(indices, origin, strict=True)),
        condition=where,
    )
