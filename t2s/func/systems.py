"""Find the Funcs that are computed together: systems of uniform recurrence equations.

A cycle of reads (or an initial definition that reads its own Func) is a system.  A Func with the
same arguments that reads members at constant distances joins it, so that one loop nest computes
both.  All other Funcs stay on their own; those that read a system at other subscripts are its
projections.

The distance of a read is the iteration of the reader minus the iteration that is read.  A system
is legal if, with loops in the order of the arguments, every distance is lexicographically positive,
or zero to a member that is computed earlier in the same iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from t2s.core.errors import UserError
from t2s.core.expr import Apply, Const, Expr, Index, Read, reads
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.func.collect import AnyFunc, producers
from t2s.func.func import RVar, WrittenDefinition, index_name

Resolve = Callable[[Expr], Expr]
Reach = Mapping[str, set[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Funcs that are frozen together: the members of a system in order, or one other Func.

    ``arguments`` are the loops, outermost first; ``lanes`` is one more argument, innermost, that
    only some members have.
    """

    funcs: tuple[AnyFunc, ...]
    arguments: tuple[str, ...]
    lanes: str | None
    is_system: bool

    def contains(self, func: AnyFunc) -> bool:
        return any(func is member for member in self.funcs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _MemberRead:
    """A read of a member by a member; the subscripts have numbers in place of parameters."""

    reader: AnyFunc
    source: AnyFunc
    written: WrittenDefinition
    read: Read
    indices: tuple[Expr, ...]


def group(funcs: Sequence[AnyFunc], resolve: Resolve) -> list[Unit]:
    """All Funcs as units, producers first.

    ``resolve`` replaces parameters in a subscript by their values.  Raises ``UserError`` for
    recursion that is not a uniform recurrence, or has no legal order.
    """
    units: list[Unit] = []
    reach = {func.name: _reach(func) for func in funcs}
    for cycle in _cycles(funcs, reach):
        unit = _unit(cycle)
        if unit.is_system:
            obstacle = _obstacle(unit, unit.funcs, resolve)
            if obstacle is not None:
                raise obstacle
        for other in [known for known in units if known.is_system]:
            if any(other.contains(source) for func in unit.funcs for source in producers(func)):
                joined = _join(other, unit, reach, resolve)
                if joined is not None:
                    units.remove(other)
                    unit = joined
        units.append(unit)
    return _ordered(units)


def distance(read: Expr, name: str) -> int | None:
    """The ``distance`` of a subscript ``name - distance``; ``None`` for any other subscript."""
    match read:
        case Index(name=found):
            return 0 if found == name else None
        case Apply(operator=Op.ADD, operands=(part, Const(value=by)) | (Const(value=by), part)):
            inner = distance(part, name)
            return None if inner is None else inner - int(by)
        case Apply(operator=Op.SUBTRACT, operands=(part, Const(value=by))):
            inner = distance(part, name)
            return None if inner is None else inner + int(by)
    return None


def _reads_itself(func: AnyFunc) -> bool:
    return any(read.source == func.name for read in reads(func.written[0].value.node))


def _reach(func: AnyFunc) -> set[str]:
    """Names of all Funcs that ``func`` needs; its own name only if it is in a cycle with others."""
    reached: set[str] = set()
    waiting = producers(func)
    while waiting:
        other = waiting.pop()
        if other.name not in reached:
            reached.add(other.name)
            waiting += producers(other)
    return reached


def _cycles(funcs: Sequence[AnyFunc], reach: Reach) -> list[tuple[AnyFunc, ...]]:
    """The strongly connected components, producers first."""
    result: list[tuple[AnyFunc, ...]] = []
    placed: set[str] = set()

    def place(func: AnyFunc) -> None:
        if func.name in placed:
            return
        cycle = tuple(
            other
            for other in funcs
            if other is func or (other.name in reach[func.name] and func.name in reach[other.name])
        )
        placed.update(member.name for member in cycle)
        for member in cycle:
            for producer in producers(member):
                place(producer)
        result.append(cycle)

    for func in funcs:
        place(func)
    return result


def _unit(cycle: tuple[AnyFunc, ...]) -> Unit:
    recursive = len(cycle) > 1 or _reads_itself(cycle[0])
    common = _common_arguments(cycle)
    if common is None:
        base = cycle[0]
        other = next(func for func in cycle if _common_arguments((base, func)) is None)
        raise UserError(
            f"{base.name} and {other.name} need each other, but have different arguments",
            location=other.written[0].location,
            expected=f"{', '.join(base.arguments)}, in this order "
            "(vectors may have one more, at the end)",
            given=", ".join(other.arguments),
            notes=((base.written[0].location, f"{base.name} is defined here"),),
        )
    arguments, lanes = common
    return Unit(funcs=cycle, arguments=arguments, lanes=lanes, is_system=recursive)


def _common_arguments(funcs: Iterable[AnyFunc]) -> tuple[tuple[str, ...], str | None] | None:
    """The arguments that all have in this order, and the extra one that only some have."""
    lists = sorted({func.arguments for func in funcs}, key=len)
    base = lists[0]
    if len(lists) == 1:
        return base, None
    if len(lists) == 2 and lists[1][:-1] == base:
        return base, lists[1][-1]
    return None


def _join(system: Unit, unit: Unit, reach: Reach, resolve: Resolve) -> Unit | None:
    """One system of both, or ``None`` if the unit has to stay separate."""
    members = (*system.funcs, *unit.funcs)
    common = _common_arguments(members)
    if common is None:
        return None
    arguments, lanes = common
    if lanes is not None and lanes not in (system.lanes, unit.lanes):
        return None
    names = {member.name for member in members}
    needed = set().union(*(reach[name] for name in names)) - names
    # a Func between them would have to run in the middle of the system
    if any(reach[name] & names for name in needed):
        return None
    joined = Unit(funcs=members, arguments=arguments, lanes=lanes, is_system=True)
    readers = unit.funcs if lanes == system.lanes else members
    return joined if _obstacle(joined, readers, resolve) is None else None


def _ordered(units: Sequence[Unit]) -> list[Unit]:
    """The units in dependence order; members in the order of one iteration."""
    result: list[Unit] = []

    def place(unit: Unit) -> None:
        if any(unit is other for other in result):
            return
        for func in unit.funcs:
            for producer in producers(func):
                source = next(other for other in units if other.contains(producer))
                if source is not unit:
                    place(source)
        result.append(unit)

    for unit in units:
        place(unit)
    return result


def _member_reads(
    unit: Unit, readers: Iterable[AnyFunc], resolve: Resolve
) -> Iterator[_MemberRead]:
    """Reads of members, except an update's read of the element that it changes."""
    members = {func.name: func for func in unit.funcs}
    for reader in readers:
        for number, written in enumerate(reader.written):
            target = tuple(part.node for part in written.target)
            for read in reads(written.value.node):
                own = number > 0 and read.source == reader.name and read.indices == target
                if read.source in members and not own:
                    yield _MemberRead(
                        reader=reader,
                        source=members[read.source],
                        written=written,
                        read=read,
                        indices=tuple(resolve(index) for index in read.indices),
                    )


def _obstacle(unit: Unit, readers: Sequence[AnyFunc], resolve: Resolve) -> UserError | None:
    """Why the readers cannot be computed in the loop nest of the unit; ``None`` if they can."""
    for func in readers:
        error = _update_obstacle(unit, func)
        if error is not None:
            return error
    same: dict[str, list[_MemberRead]] = {func.name: [] for func in unit.funcs}
    for access in _member_reads(unit, readers, resolve):
        vector = _distances(unit, access)
        if vector is None:
            return _not_uniform(unit, access)
        first = next((part for part in vector if part), 0)
        if first < 0:
            return _too_early(unit, access, vector)
        if not first:
            same[access.reader.name].append(access)
    return _cyclic(unit, same)


def iteration_order(unit: Unit, resolve: Resolve) -> tuple[AnyFunc, ...]:
    """The members, each after those it reads in the same iteration."""
    sources: dict[str, list[AnyFunc]] = {func.name: [] for func in unit.funcs}
    for access in _member_reads(unit, unit.funcs, resolve):
        if not any(_distances(unit, access) or ()):
            sources[access.reader.name].append(access.source)
    order: list[AnyFunc] = []

    def place(func: AnyFunc) -> None:
        if not any(func is other for other in order):
            for source in sources[func.name]:
                place(source)
            order.append(func)

    for func in unit.funcs:
        place(func)
    return tuple(order)


def _distances(unit: Unit, access: _MemberRead) -> tuple[int, ...] | None:
    """The distance in each loop; ``None`` if it is not constant, or not zero in the lanes."""
    vector: list[int] = []
    for name, index in zip(unit.arguments, access.indices, strict=False):
        offset = distance(index, name)
        if offset is None and not any(vector):
            return None
        # a read of an earlier iteration may vary here; isl checks it later
        vector.append(offset or 0)
    if len(access.indices) > len(unit.arguments):
        lane = access.indices[-1]
        if unit.lanes in access.reader.arguments:
            matches = isinstance(lane, Index) and lane.name == unit.lanes
        else:
            matches = isinstance(lane, Index) and lane.name in _reductions(access.written)
        if not matches:
            return None
    return tuple(vector)


def _reductions(written: WrittenDefinition) -> list[str]:
    """Names of the reduction dimensions of an update."""
    variables = [symbol for symbol in written.symbols.values() if isinstance(symbol, RVar)]
    return list(dict.fromkeys(part.name for symbol in variables for part in symbol.domain))


def _update_obstacle(unit: Unit, func: AnyFunc) -> UserError | None:
    """Why a member's updates do not fit: it may have one, which reduces over the lanes."""
    updates = func.written[1:]
    if not updates:
        return None
    last = updates[-1]
    plain = tuple(map(index_name, last.target)) == func.arguments
    reductions = _reductions(last)
    scalar = unit.lanes is not None and unit.lanes not in func.arguments
    if len(updates) == 1 and plain and scalar and len(reductions) == 1:
        return None
    names = ", ".join(member.name for member in unit.funcs)
    lanes = unit.lanes or "an argument that only some members have"
    return UserError(
        f"the update of {func.name} does not fit into a recurrence",
        location=last.location,
        expected=f"no update, or one reduction over {lanes}: "
        f"{func.name}[{', '.join(func.arguments)}] += ...",
        given=f"a recurrence of {names}, {len(updates)} "
        f"update{'s' if len(updates) > 1 else ''} of {func.name}"
        + (f" over {', '.join(reductions)}" if reductions else ""),
        hint="write the steps of the recurrence with t2s.select, in the initial definition",
    )


def _not_uniform(unit: Unit, access: _MemberRead) -> UserError:
    reader = f"{access.reader.name}[{', '.join(access.reader.arguments)}]"
    members = f"{access.reader.name} and {access.source.name} are members"
    if access.reader is access.source:
        members = f"{access.reader.name} is a member"
    example = list(access.source.arguments)
    example[0] += " - 1"
    lanes = ""
    if unit.lanes in access.source.arguments:
        lanes = f", and {unit.lanes} itself"
        if unit.lanes not in access.reader.arguments:
            lanes = f", and an RDom over {unit.lanes}"
            example[-1] = f"{unit.lanes}r"
    return UserError(
        f"{show(access.read)} is not at a constant distance from {reader}",
        location=access.read.location or access.written.location,
        expected=f"each subscript is its argument plus or minus a constant{lanes}, "
        f"as in {access.source.name}[{', '.join(example)}]",
        given=", ".join(show(index) for index in access.indices),
        hint=f"{members} of one recurrence; "
        "carry the value along with one more Func, as in P[i, j] = "
        "t2s.select(j == 0, x[i], P[i, j - 1])",
    )


def _too_early(unit: Unit, access: _MemberRead, vector: tuple[int, ...]) -> UserError:
    reader = f"{access.reader.name}[{', '.join(access.reader.arguments)}]"
    return UserError(
        f"{show(access.read)} is not computed yet when {reader} needs it",
        location=access.read.location or access.written.location,
        expected=f"an earlier iteration of the loops {', '.join(unit.arguments)}, outermost first",
        given="one that is later in "
        + next(name for name, part in zip(unit.arguments, vector, strict=True) if part),
        hint="the loops are the arguments in their order; another order of the arguments, or a "
        "reversed index, may make the recurrence legal",
    )


def _cycle_hint(func: AnyFunc, access: _MemberRead) -> str:
    if access.source is func:
        element = f"{func.name}[{', '.join(func.arguments)}]"
        return f"an accumulation needs an initial value: {element} = 0 before {element} += ..."
    return "one of these reads has to be of an earlier iteration"


def _cyclic(unit: Unit, same: dict[str, list[_MemberRead]]) -> UserError | None:
    """A cycle among members within one iteration, if there is one."""
    done: set[str] = set()

    def visit(func: AnyFunc, path: list[_MemberRead]) -> UserError | None:
        for access in same[func.name]:
            taken = [step.reader.name for step in path] + [func.name]
            if access.source.name in taken:
                names = [*taken[taken.index(access.source.name) :], access.source.name]
                reader = f"{func.name}[{', '.join(func.arguments)}]"
                return UserError(
                    f"{show(access.read)} is not computed yet when {reader} needs it",
                    location=access.read.location or access.written.location,
                    expected="no cycle of reads within one iteration",
                    given=" reads ".join(names),
                    hint=_cycle_hint(func, access),
                )
            if access.source.name not in done:
                error = visit(access.source, [*path, access])
                if error is not None:
                    return error
        done.add(func.name)
        return None

    for func in unit.funcs:
        error = visit(func, [])
        if error is not None:
            return error
    return None
