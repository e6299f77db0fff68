"""The statements of one graph as one loop nest.

Each statement is a nest of its own.  A result that is passed on becomes a producer in the nest of
its reader: it shares the loops that both have outside, in the same order, and what it makes inside
of them arrives as a fiber (or a scalar, where they share all of its variables).  A result that is
recomputed is a producer inside of the reader's loops over its rows, which bound its own.

So loops over X in ``T(i,j) = A(i,k)*X(k,j)`` and ``L(i,h) = T(i,j)*W(j,h)`` become ::

    for i:
      with T(j):
        for k:
          for j:
            T(j) += A(i,k)*X(k,j)
      for j:
        for h:
          L(i,h) += T(j)*W(j,h)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TypeVar

from t2s.core.errors import InternalError, UnsupportedError, UserError
from t2s.core.names import NameSupply
from t2s.core.walk import Term, rebuild, rewrite, walk
from t2s.sparse_repr.concrete.build import (
    Builder,
    Reads,
    build_nests,
    read_in_order,
    read_tensors,
    with_hints,
    without_zeros_of,
)
from t2s.sparse_repr.concrete.fusion import PassOn, ScheduledAssignment, StatementGroup, Way
from t2s.sparse_repr.concrete.ir import (
    Assign,
    ConcreteProgram,
    Forall,
    Statement,
    StoredTensor,
    Where,
    assigns_of,
)
from t2s.sparse_repr.concrete.materialize import written_result
from t2s.sparse_repr.concrete.merge import covered_by
from t2s.sparse_repr.concrete.notes import with_notes
from t2s.sparse_repr.concrete.order import DiscordantLoops, verify_program
from t2s.sparse_repr.concrete.schedule import (
    DropZeros,
    OrderLoops,
    Schedule,
    Transpose,
    check_once,
)
from t2s.sparse_repr.concrete.unsupported import refuse_patterns
from t2s.sparse_repr.formats import Format, Part, csf, dense
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Expression,
    Sum,
    accesses,
    all_variables,
    print_expression,
)
from t2s.sparse_repr.notation.legality import with_semiring
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedProgram:
    """The loops of a group, and what they compute as one assignment of its inputs."""

    assignment: Assignment
    program: ConcreteProgram


def fuse(group: StatementGroup, semiring: Semiring = PLUS_TIMES) -> FusedProgram:
    """One nest for all statements of a group.

    Raises ``UserError`` where the loops of a reader do not fit those of what is passed on to it.
    """
    _check_semirings(group)
    statements = tuple(
        replace(statement, assignment=with_semiring(statement.assignment, semiring))
        for statement in group.statements
    )
    group = replace(group, statements=statements)
    last = group.last.assignment
    names = NameSupply(
        name
        for statement in statements
        for name in (
            *(tensor.name for tensor in statement.assignment.tensors),
            *all_variables(statement.assignment),
        )
    )
    builder = Builder(
        schedule=group.last.schedule,
        splits=(),
        names=names,
        formats={
            tensor.name: tensor.format
            for statement in statements
            for tensor in statement.assignment.tensors
        },
        views=[],
        stages=[],
        written=set(),
        order_names=(),
        lane="",
        zero=semiring.zero,
        produced=frozenset(passing.tensor for passing in group.passed),
    )
    walked = [_walked(builder, group, statement) for statement in statements]
    for name in builder.produced:
        del builder.formats[name]
    tree = _Tree(names, _same_extents(statements), walked[-1])
    for made in reversed(walked[:-1]):
        passing = group.way_of(made.name)
        assert passing is not None
        if passing.way is Way.STREAM:
            tree.stream(made, passing)
        else:
            tree.recompute(made, passing)
    value = tree.value()
    assignment = _assignment(group, value, builder)
    covered = covered_by(tree.root, builder.formats, semiring)
    target = written_result(
        walked[-1].read.target, walked[-1].order, covered, read_too=False, gaps=not semiring.zero
    )
    written = builder.written_name(last.result.tensor, target.stored)
    stage = rewrite(tree.root, lambda term: _renamed_tensor(term, last.result.tensor, written))
    sources = {view.name: view.source for view in builder.views}
    stage = with_notes(stage, Schedule(), sources, {}, builder.formats, semiring)
    builder.stages.append(stage)
    used = {access.tensor for access in accesses(stage)}
    program = ConcreteProgram(
        stages=(stage,),
        tensors=tuple(
            StoredTensor(name=name, format=format)
            for name, format in builder.formats.items()
            if name in used
        ),
        views=tuple(builder.views),
        splits=(),
        result=last.result.tensor,
        written=written,
        without_zeros=without_zeros_of(builder, [last], ""),
        value=value,
        semiring=semiring,
        location=last.location,
    )
    verify_program(program)
    return FusedProgram(assignment=assignment, program=program)


def _check_semirings(group: StatementGroup) -> None:
    """Refuse statements that add in different ways: blocks of a graph have one addition."""
    last = group.last.assignment
    for statement in group.statements:
        assignment = statement.assignment
        if assignment.semiring != last.semiring:
            add, other = assignment.semiring.add.value, last.semiring.add.value
            raise UnsupportedError(
                f"{statement.name} is not in one graph with {group.last.name}: it sums by {add}",
                location=assignment.location,
                expected=f"statements that sum by {other}, as {group.last.name} does",
                given=f"one graph of {', '.join(one.name for one in group.statements)}",
                hint=f"store {statement.name}, and what it reads",
            )


def _renamed_tensor(term: object, name: str, new: str) -> Access | None:
    if isinstance(term, Access) and term.tensor == name:
        return replace(term, tensor=new)
    return None


def _assignment(group: StatementGroup, value: Expression, builder: Builder) -> Assignment:
    """The result of a group from its inputs."""
    last = group.last.assignment
    inputs = {access.tensor for access in accesses(value)}
    tensors = {
        tensor.name: tensor
        for statement in group.statements
        for tensor in statement.assignment.tensors
        if tensor.name in inputs
    }
    declared = (*tensors.values(), last.tensor(last.result.tensor))
    return replace(last, value=value, tensors=declared)


# The nest of each statement.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walked:
    """A statement as a nest: its loops, and its value, of tensors and views as they are read."""

    statement: ScheduledAssignment
    read: Reads
    value: Expression
    nest: Statement

    @property
    def name(self) -> str:
        return self.statement.name

    @property
    def assignment(self) -> Assignment:
        return self.statement.assignment

    @property
    def order(self) -> tuple[str, ...]:
        return self.read.order

    @property
    def made(self) -> tuple[str, ...]:
        """The variables of the result in the order in which its loops make them."""
        return tuple(n for n in self.order if n in self.assignment.result.variables)

    @property
    def leading(self) -> int:
        """The number of outermost loops that a reader can share: those over the result alone."""
        count, inside = 0, self.nest
        while isinstance(inside, Forall) and inside.variable in self.made:
            count, inside = count + 1, inside.body
        return count

    def inside(self, count: int) -> Statement:
        """What is inside of the outermost loops."""
        statement = self.nest
        for _ in range(count):
            assert isinstance(statement, Forall)
            statement = statement.body
        return statement


def _walked(builder: Builder, group: StatementGroup, statement: ScheduledAssignment) -> _Walked:
    assignment, schedule = statement.assignment, statement.schedule
    _check_directives(group, statement)
    own = replace(builder, schedule=schedule, order_names=all_variables(assignment))
    if statement is not group.last:
        builder.formats[statement.name] = dense(len(assignment.result.variables))
    first = _first(builder, group, assignment)
    try:
        read = read_tensors(own, assignment, first)
        value = read_in_order(own, assignment, read)
    except DiscordantLoops as error:
        raise with_hints(error, assignment, schedule, first) from None
    nests = build_nests(assignment.result, value, read.order, builder.names.fresh, everywhere=True)
    if len(nests.stages) > 1 or any(map(_has_inner_sum, walk(value))):
        raise _needs_a_temporary(group, assignment, read.order)
    walked = _Walked(statement=statement, read=read, value=value, nest=nests.stages[0])
    if statement is not group.last:
        parts = tuple(Part(mode=assignment.result.variables.index(name)) for name in walked.made)
        builder.formats[statement.name] = Format(levels=csf(len(parts)).levels, parts=parts)
    return walked


def _first(builder: Builder, group: StatementGroup, assignment: Assignment) -> tuple[str, ...]:
    """The loops that come first where nobody says it: in the order in which fibers arrive."""
    names: dict[str, None] = {}
    for access in accesses(assignment.value):
        passing = group.way_of(access.tensor)
        if passing is not None and passing.way is Way.STREAM:
            modes = builder.formats[access.tensor].modes
            names |= dict.fromkeys(access.variables[mode] for mode in modes)
    return tuple(names)


def _has_inner_sum(term: Term) -> bool:
    return isinstance(term, Sum) and any(isinstance(inner, Sum) for inner in walk(term.value))


def _check_directives(group: StatementGroup, statement: ScheduledAssignment) -> None:
    """Refuse directives about single loops, which statements of a graph share."""
    refuse_patterns(statement.schedule, statement.assignment)
    last = statement is group.last
    check_once(statement.schedule)
    stored = [name for name in statement.reads if group.way_of(name) is not None]
    stored += [] if last else [statement.name]
    for directive in statement.schedule.directives:
        if isinstance(directive, OrderLoops | Transpose) or (
            isinstance(directive, DropZeros) and last
        ):
            continue
        raise UnsupportedError(
            f"this directive for {statement.name} changes loops that it shares",
            location=directive.location,
            expected="reorder and transpose, for statements of one graph"
            + ("" if last else ", and drop_zeros for the last of them"),
            given=f"one graph of {', '.join(member.name for member in group.statements)}",
            hint=f"store {' and '.join(stored)}",
        )


def _needs_a_temporary(
    group: StatementGroup, assignment: Assignment, order: Sequence[str]
) -> UserError:
    names = ", ".join(statement.name for statement in group.statements)
    sums = [term for term in walk(assignment.value) if isinstance(term, Sum)]
    return UnsupportedError(
        f"{assignment.result.tensor} needs a temporary between its loops {', '.join(order)},"
        f" and the graph of {names} has none",
        location=assignment.location,
        expected="sums that are not inside of other sums, over variables inside of the result's",
        given=", ".join(map(print_expression, sums)),
        hint="write a sum as a statement of its own, which may be stored",
    )


# The tree: the nests of all statements, as producers where they are read.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """A statement in the tree.

    It writes ``tensor``, its variables are called by ``names`` there, and the loops ``around``
    compute it again: it is a part of the copy ``again`` of a statement that is recomputed.
    """

    walked: _Walked
    tensor: str
    names: Mapping[str, str]
    around: frozenset[str] = frozenset()
    again: str = ""

    def called(self, variables: Sequence[str]) -> str:
        """Variables of the tree as the statement calls them."""
        names = {new: old for old, new in self.names.items()}
        return ", ".join(names.get(name, name) for name in variables)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """An access in the tree: who reads, the target of its value, and the loops around."""

    access: Access
    reader: _Copy
    target: Access
    loops: tuple[Forall, ...]

    @property
    def around(self) -> tuple[str, ...]:
        """The variables of the loops."""
        return tuple(loop.variable for loop in self.loops)

    @property
    def own_loops(self) -> tuple[Forall, ...]:
        """The loops of the reader: not those that compute it again."""
        return tuple(loop for loop in self.loops if loop.variable not in self.reader.around)

    @property
    def own(self) -> tuple[str, ...]:
        """The variables of the reader's loops."""
        return tuple(loop.variable for loop in self.own_loops)

    def place(self, rows: Sequence[str]) -> tuple[str, ...]:
        """The loops around a producer that shares the loops over ``rows``."""
        if rows:
            return self.around[: 1 + max(map(self.around.index, rows))]
        first = self.around.index(self.own[0]) if self.own else len(self.around)
        return self.around[:first]

    def walks(self, made: _Walked) -> tuple[str, ...]:
        """The variables of the access in the order in which the tensor is made."""
        modes = [made.assignment.result.variables.index(name) for name in made.made]
        return tuple(self.access.variables[mode] for mode in modes)


class _Tree:
    """The nest so far, from the last statement to what it needs."""

    def __init__(
        self, names: NameSupply, extents: Mapping[tuple[str, str], int], last: _Walked
    ) -> None:
        self.root = last.nest
        self._names = names
        self._extents = extents
        self._extent_of = {name: extents[last.name, name] for name in last.order}
        self._variables = NameSupply(last.order)
        own = {name: name for name in last.order}
        copy = _Copy(walked=last, tensor=last.name, names=own)
        self._copies = {last.name: copy}
        self._writers = {assign.result.tensor: copy for assign in assigns_of(last.nest)}
        self._sources: dict[tuple[str, str], str] = {}

    def stream(self, made: _Walked, passing: PassOn) -> None:
        """Make a tensor once for all that read it, or once in each copy of its readers."""
        reads = self._reads(made.name)
        for read in reads:
            _check_whole(made, read)
            _check_walk(made, read, passing)
        places: dict[str, list[_Read]] = {}
        for read in reads:
            places.setdefault(read.reader.again, []).append(read)
        readers = {
            frozenset(read.reader.walked.name for read in place) for place in places.values()
        }
        for place in places.values():
            shared = min(made.leading, _loops_together(place))
            apart = len(place) > 1 and made.made and not shared
            if apart or len(readers) > 1:
                raise _apart(made, reads, passing)
            self._insert(made, shared, place, place[0].reader.again)

    def recompute(self, made: _Walked, passing: PassOn) -> None:
        """Make a tensor where it is read, once for each place."""
        reads = self._reads(made.name)
        for read in reads:
            _check_whole(made, read)
        if all(read.own[: len(made.made)] == read.walks(made) for read in reads):
            raise _not_gathered(made, reads, passing)
        for read in reads:
            walks = read.walks(made)
            fitting = (n for n in range(made.leading, -1, -1) if _arrives(read, walks, n))
            shared = next(fitting, None)
            if shared is None:
                raise _not_row_by_row(made, read, passing)
            self._insert(made, shared, [read], f"{made.name} for {read.target.tensor}")

    def value(self) -> Expression:
        """What the last statement computes of the inputs, with sums over variables of their own."""
        last = self._copies[next(iter(self._copies))]
        return self._sums_apart(
            self._value_of(last.tensor), last.walked.assignment.result.variables
        )

    def _sums_apart(self, value: Expression, taken: tuple[str, ...]) -> Expression:
        def visit(term: Term) -> Term:
            if not isinstance(term, Sum):
                return rebuild(term, visit)
            new = {name: self._variables.fresh(name) for name in term.variables if name in taken}
            total = _renamed(term, new)
            inside = (*taken, *total.variables)
            return replace(total, value=self._sums_apart(total.value, inside))

        apart: Expression = visit(value)  # type: ignore[assignment]
        return apart

    def _value_of(self, tensor: str) -> Expression:
        """What a copy is of the inputs alone, in the variables of the tree."""
        copy = self._copies[tensor]

        def rule(term: Term) -> Term | None:
            match term:
                case Sum(variables=variables):
                    return replace(term, variables=tuple(copy.names[name] for name in variables))
                case Access(variables=variables):
                    own = tuple(copy.names[name] for name in variables)
                    source = self._sources.get((tensor, term.tensor))
                    if source is None:
                        return replace(term, variables=own)
                    return self._at(source, own)
            return None

        return rewrite(copy.walked.assignment.value, rule)

    def _at(self, source: str, variables: tuple[str, ...]) -> Expression:
        """What a copy is at variables of its reader."""
        made = self._copies[source]
        result = (made.names[name] for name in made.walked.assignment.result.variables)
        value, other = self._value_of(source), dict(zip(result, variables, strict=True))
        bound = {name for t in walk(value) if isinstance(t, Sum) for name in t.variables}
        hidden = sorted(bound & {new for old, new in other.items() if new != old})
        other |= {name: self._variables.fresh(name) for name in hidden}

        return _renamed(value, other)

    def _variable(self, statement: str, name: str, around: Sequence[str]) -> str:
        """A statement's variable in the tree: under its own name, unless that is of another one."""
        extent = self._extents[statement, name]
        known = name not in around and self._extent_of.get(name) == extent
        new = name if known else self._variables.fresh(name)
        self._extent_of[new] = extent
        return new

    def _reads(self, tensor: str) -> list[_Read]:
        return list(self._found(self.root, tensor, ()))

    def _found(
        self, statement: Statement, tensor: str, loops: tuple[Forall, ...]
    ) -> Iterator[_Read]:
        match statement:
            case Forall(body=body):
                yield from self._found(body, tensor, (*loops, statement))
            case Where(consumer=consumer, producer=producer):
                yield from self._found(producer, tensor, loops)
                yield from self._found(consumer, tensor, loops)
            case Assign(result=result, value=value):
                for access in dict.fromkeys(accesses(value)):
                    if access.tensor == tensor:
                        reader = self._writers[result.tensor]
                        yield _Read(access=access, reader=reader, target=result, loops=loops)

    def _insert(self, made: _Walked, shared: int, reads: Sequence[_Read], part_of: str) -> None:
        """Put a copy inside of the loops that it shares, and read what it makes there.

        It is ``part_of`` a copy of a statement that is computed again.
        """
        first = reads[0]
        rows = first.walks(made)[:shared]
        place = first.place(rows)
        result = made.assignment.result.variables
        names = dict(zip(result, first.access.variables, strict=True))
        names |= {
            name: self._variable(made.name, name, (*place, *names.values()))
            for name in made.order
            if name not in names
        }
        again = made.name in self._copies
        tensors = {
            assign.result.tensor: self._names.fresh(assign.result.tensor)
            if again
            else assign.result.tensor
            for assign in assigns_of(made.nest)
        }
        copy = _Copy(
            walked=made,
            tensor=tensors[made.name],
            names=names,
            around=frozenset(place) - frozenset(rows),
            again=part_of,
        )
        self._copies[copy.tensor] = copy
        self._writers |= dict.fromkeys(tensors.values(), copy)
        self._sources |= {(read.reader.tensor, made.name): copy.tensor for read in reads}
        modes = [result.index(name) for name in made.made[shared:]]

        def inside(access: Access) -> Access:
            """The access to what the copy makes inside of the loops that it shares."""
            variables = tuple(access.variables[mode] for mode in modes)
            return replace(access, tensor=copy.tensor, variables=variables)

        def renamed(term: Term) -> Term | None:
            match term:
                case Forall(variable=variable):
                    return replace(term, variable=names[variable])
                case Access(variables=variables, tensor=tensor):
                    access = replace(term, variables=tuple(names[name] for name in variables))
                    if tensor == made.name:
                        return inside(access)
                    return replace(access, tensor=tensors.get(tensor, tensor))
            return None

        def reading(term: Term) -> Term | None:
            if not isinstance(term, Assign):
                return None
            wanted = [read.access for read in reads if read.target == term.result]

            def rule(access: Term) -> Term | None:
                return inside(access) if access in wanted else None

            return replace(term, value=rewrite(term.value, rule)) if wanted else None

        producer = rewrite(made.inside(shared), renamed)
        self.root = _with_producer(rewrite(self.root, reading), first.target, place, producer)


E = TypeVar("E", bound=Term)


def _renamed(value: E, names: Mapping[str, str]) -> E:
    """An expression with other names for variables, those of its sums too."""

    def rule(term: Term) -> Term | None:
        if isinstance(term, Access | Sum):
            return replace(term, variables=tuple(names.get(n, n) for n in term.variables))
        return None

    return rewrite(value, rule)


def _same_extents(statements: Sequence[ScheduledAssignment]) -> dict[tuple[str, str], int]:
    """A number for each variable of each statement; equal ones go equally far.

    They are variables at the same dimension of a tensor.
    """
    group: dict[tuple[str, str | int], int] = {}
    for statement in statements:
        assignment = statement.assignment
        for access in (assignment.result, *accesses(assignment.value)):
            for mode, variable in enumerate(access.variables):
                keys = (statement.name, variable), (access.tensor, mode)
                one, other = (group.setdefault(key, len(group)) for key in keys)
                joined = min(one, other)
                group = {k: joined if n in (one, other) else n for k, n in group.items()}
    return {
        (name, variable): number
        for (name, variable), number in group.items()
        if isinstance(variable, str)
    }


def _with_producer(
    statement: Statement, target: Access, place: Sequence[str], producer: Statement
) -> Statement:
    """The statement with a producer inside of the loops ``place`` around an assignment."""
    if not place:
        return Where(consumer=statement, producer=producer)
    match statement:
        case Forall(variable=variable, body=body):
            rest = place[1:] if variable == place[0] else place
            return replace(statement, body=_with_producer(body, target, rest, producer))
        case Where(consumer=consumer, producer=other):
            if any(assign.result == target for assign in assigns_of(other)):
                return replace(statement, producer=_with_producer(other, target, place, producer))
            inside = _with_producer(consumer, target, place, producer)
            return replace(statement, consumer=inside)
        case Assign():
            raise InternalError(f"no loops {', '.join(place)} are around {target.tensor}")


def _loops_together(reads: Sequence[_Read]) -> int:
    """The number of outermost loops that the readers share; none if other loops are around."""
    around = [[loop for loop in read.loops if loop not in read.own_loops] for read in reads]
    if any(list(map(id, loops)) != list(map(id, around[0])) for loops in around):
        return 0
    loops = zip(*(read.own_loops for read in reads), strict=False)
    return sum(takewhile(bool, (all(loop is each[0] for loop in each) for each in loops)))


def _arrives(read: _Read, walks: tuple[str, ...], shared: int) -> bool:
    """Whether a reader walks what a copy that shares some loops makes, right inside of these."""
    if not shared:
        return read.own[: len(walks)] == walks
    depth = len(read.place(walks[:shared]))
    return read.around[depth : depth + len(walks) - shared] == walks[shared:]


# Why a result cannot be passed on.


def _check_whole(made: _Walked, read: _Read) -> None:
    """Refuse diagonals, of which fibers have no streams."""
    variables = read.access.variables
    if len(set(variables)) < len(variables):
        reader = read.reader.walked
        raise UserError(
            f"{reader.name} reads a diagonal of {made.name}, which is not stored",
            location=read.access.location or reader.assignment.location,
            expected=f"a different variable for each dimension of {made.name}",
            given=f"{made.name}({read.reader.called(variables)})",
            hint=f"store {made.name}",
        )


def _check_walk(made: _Walked, read: _Read, passing: PassOn) -> None:
    """Refuse a reader that does not walk what is streamed once and in its order."""
    walks, own = read.walks(made), read.own
    if own[: len(walks)] == walks:
        return
    name, reader = made.name, read.reader
    statement = reader.walked
    called, loops = reader.called(walks), reader.called(own)
    walked = reader.called([variable for variable in own if variable in walks])
    outer = [variable for variable in own[: max(map(own.index, walks))] if variable not in walks]
    given = statement.statement.schedule.order
    if walked != called:
        why = f"{statement.name} walks it by {walked}, and it is made by {called}"
    else:
        why = f"{statement.name} reads it again for every {reader.called(outer)}"
    gathers = walked == called
    if gathers and any(_arrives(read, walks, count) for count in range(made.leading + 1)):
        hint = f"recompute {name}"
    else:
        wanted = (*walks, *(variable for variable in own if variable not in walks))
        order = reader.called(wanted).replace(",", "")
        paths = (path for path in statement.read.paths if path.tensor != name and not path.free)
        turned = dict.fromkeys(path.tensor for path in paths if not path.fits(order.split()))
        hint = f'{statement.name} with reorder("{order}")'
        hint += f' and transpose("{", ".join(turned)}")' if turned else ""
    raise UserError(
        f"{name} cannot be streamed into {statement.name}: {why}",
        location=statement.assignment.location if given is None else given.location,
        expected=f"loops of {statement.name} that begin with {called}",
        given=f"loops {loops}",
        hint=f"{hint}, or store {name}",
        notes=[
            (made.assignment.location, f"{name} is made by the loops {', '.join(made.order)}"),
            (passing.location, f"{name} is streamed here"),
        ],
    )


def _apart(made: _Walked, reads: Sequence[_Read], passing: PassOn) -> UserError:
    readers = dict.fromkeys(read.reader.walked.name for read in reads)
    return UserError(
        f"{made.name} cannot be streamed to {' and '.join(readers)}: they share no loop",
        location=passing.location or made.assignment.location,
        expected=f"readers inside of one loop over {', '.join(made.made[:1])}, each of which gets"
        f" what is made in an iteration",
        given="; ".join(
            f"{read.reader.walked.name} with loops {read.reader.called(read.own)}" for read in reads
        ),
        hint=f"store {made.name}",
        notes=[(made.assignment.location, f"{made.name} is made here")],
    )


def _not_gathered(made: _Walked, reads: Sequence[_Read], passing: PassOn) -> UserError:
    readers = dict.fromkeys(read.reader.walked.name for read in reads)
    return UserError(
        f"{made.name} is not gathered, so nothing is gained by computing it again",
        location=passing.location or made.assignment.location,
        expected="a reader whose loop over another operand's coordinates is outside of its rows",
        given=f"{' and '.join(readers)}, which walks it as it is made",
        hint=f"stream {made.name}, or store it",
    )


def _not_row_by_row(made: _Walked, read: _Read, passing: PassOn) -> UserError:
    reader = read.reader
    statement, called = reader.walked, reader.called(read.walks(made))
    return UserError(
        f"{made.name} cannot be computed again row by row in {statement.name}",
        location=passing.location or made.assignment.location,
        expected=f"{made.name} made by loops that begin with its variables, and read by loops over"
        f" the rest of {called} right inside",
        given=f"{made.name} is made by the loops {', '.join(made.order)}, and read by"
        f" {reader.called(read.own)}",
        hint=f"store {made.name}, or reorder one of the two",
        notes=[(statement.assignment.location, f"{made.name} is read here")],
    )
