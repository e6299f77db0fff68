"""The first kernel of a system of recurrences, and the streams of results that leave it.

What goes in: a ``System`` of the temporal program.  What comes out: one kernel whose members are
the Funcs of the system, with one loop for each dimension of its domain; a dimension that only some
members have becomes lanes at once, since they are computed in one iteration together.

The results are streams of values that leave the kernel: for a *projection*, an output such as
``out[r, h] = Sum[r, h, R - 1, H - 1]`` or ``O[j, i] = Z[j, j, i]``, the iterations that compute an
element of it; every member that is an output itself, or that other Funcs read, leaves as a whole.
"""

from __future__ import annotations

from t2s.core.errors import InternalError, UnsupportedError
from t2s.core.expr import (
    Apply,
    Const,
    Expr,
    Index,
    Local,
    Read,
    Select,
    apply,
    equals,
    reads,
    substitute,
)
from t2s.core.isl import LoopDomain, is_affine
from t2s.core.isl_maps import condition
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.core.walk import Term, rewrite
from t2s.func.ir import Definition, Dimension, Function, System, TemporalProgram
from t2s.spatial.analysis.conditions import is_static
from t2s.spatial.analysis.reduction_form import PREVIOUS, reduction_term
from t2s.spatial.ir import SpatialKernel
from t2s.spatial.loop_nest import LoopExecution, SpatialLoop, shifted
from t2s.spatial.work import Recurrences, Result, SystemMember


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


def _sources(members: tuple[SystemMember, ...]) -> tuple[str, ...]:
    names = {member.name for member in members}
    found = {read.source: None for member in members for read in reads(member.value)}
    return tuple(name for name in found if name not in names)


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


def _member(function: Function, lanes: Dimension | None) -> SystemMember:
    wide = lanes is not None and lanes.name in function.arguments
    initial, value, combine = None, function.initial.value, None
    if function.updates:
        initial, (combine, value) = value, _lane_reduction(function, function.updates[0])
        reduced = function.updates[0].reductions[0].name
        if lanes is None:
            raise InternalError(f"{function.name} reduces over lanes that there are not")
        value = substitute(value, {reduced: Index(name=lanes.name)})
    return SystemMember(
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
            f"the update of {function.name} is no sum, product, minimum or maximum",
            location=update.location,
            expected=f"{function.name}[...] op term, with an associative op: all lanes are "
            "combined at once",
            given=show(update.value),
        )
    return form


def stored_members(program: TemporalProgram, system: System) -> tuple[str, ...]:
    """The members that leave the kernel as a whole: outputs, and what other Funcs read."""
    wanted = {name for name in program.outputs if name in system.members}
    for function in program.functions:
        if function.name in system.members or is_projection(program, function, system):
            continue
        for definition in function.definitions:
            wanted |= {r.source for r in reads(definition.value) if r.source in system.members}
    return tuple(name for name in system.members if name in wanted)


def is_projection(program: TemporalProgram, function: Function, system: System) -> bool:
    """Whether a Func is an output that only picks elements of a member, and none itself."""
    if function.name not in program.outputs or function.updates:
        return False
    if function.name in system.members:
        return False
    return _picked(function, system) is not None


def projected_system(program: TemporalProgram, function: Function) -> System | None:
    """The system that a Func is a projection of, or ``None``."""
    found = (s for s in program.systems if is_projection(program, function, s))
    return next(found, None)


def _picked(function: Function, system: System) -> tuple[Read, Expr | None] | None:
    """The read of a projection and the condition under which it is not 0."""
    match function.initial.value:
        case Read(source=source) as read if source in system.members:
            found: tuple[Read, Expr | None] = read, None
        case Select(condition=test, if_true=Read(source=source) as read, if_false=other) if (
            source in system.members
            and is_static(test)
            and is_affine(test)
            and isinstance(other, Const)
            and other.value == 0
        ):
            found = read, test
        case Select(condition=test, if_true=other, if_false=Read(source=source) as read) if (
            source in system.members
            and is_static(test)
            and is_affine(test)
            and isinstance(other, Const)
            and other.value == 0
        ):
            found = read, apply(Op.NOT, test)
        case _:
            return None
    read = found[0]
    plain = {place[0] for part in read.indices if (place := _shifted_index(part)) is not None}
    affine = all(is_affine(part) for part in read.indices)
    return found if affine and set(function.arguments) <= plain else None


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
        raise InternalError(f"{function.name} is no projection")
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
