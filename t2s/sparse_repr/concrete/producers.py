"""The nests of the statements of a graph as one tree: producers where their results are read.

Readers are there before what they read.  A result that is streamed is put in once, inside of the
loops that its readers share with it; one that is recomputed once for each place at which it is
read, with everything that is streamed into it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TypeVar

from t2s.core.errors import InternalError, UnsupportedError, UserError
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.walk import Term, rebuild, rewrite, walk
from t2s.sparse_repr.concrete.fusion import PassOn, ScheduledAssignment
from t2s.sparse_repr.concrete.ir import (
    Assign,
    Forall,
    Statement,
    Where,
    assigns_of,
)
from t2s.sparse_repr.concrete.walked_statements import WalkedStatement
from t2s.sparse_repr.notation.ir import (
    Access,
    Combine,
    Expression,
    Over,
    Sum,
    accesses,
    seen_patterns,
)
from t2s.sparse_repr.semiring import Semiring

MOST_READS = 2_000
"""Reads of tensors in the expression of a graph, each of what is streamed counted as its reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """A statement in the tree.

    It writes ``tensor``, its variables are called by ``names`` there, and the loops ``around``
    compute it again: it is a part of the copy ``again`` of a statement that is recomputed.
    """

    walked: WalkedStatement
    tensor: str
    names: Mapping[str, str]
    around: frozenset[str] = frozenset()
    again: str = ""

    def access(self, own: Access) -> Access:
        """An access of the statement in the variables of the tree."""
        return replace(own, variables=tuple(self.names[name] for name in own.variables))

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
        """The loops around a producer that shares the loops over ``rows``.

        Loops right inside that compute the reader again compute the producer again, too: a fiber
        is read once.
        """
        if rows:
            depth = 1 + max(map(self.around.index, rows))
            again = takewhile(lambda name: name in self.reader.around, self.around[depth:])
            return self.around[: depth + len(tuple(again))]
        first = self.around.index(self.own[0]) if self.own else len(self.around)
        return self.around[:first]

    def walks(self, made: WalkedStatement) -> tuple[str, ...]:
        """The variables of the access in the order in which the tensor is made."""
        modes = [made.assignment.result.variables.index(name) for name in made.made]
        return tuple(self.access.variables[mode] for mode in modes)


class ProducerTree:
    """The nest so far, from the last statement to what it needs."""

    def __init__(
        self, names: NameSupply, extents: Mapping[tuple[str, str], int], last: WalkedStatement
    ) -> None:
        self.root = last.nest
        self._names = names
        self._extents = extents
        self._issued: list[tuple[str, tuple[str, int]]] = []
        self._extent_of = {name: extents[last.name, name] for name in last.order}
        self._variables = NameSupply(last.order)
        own = {name: name for name in last.order}
        copy = _Copy(walked=last, tensor=last.name, names=own)
        self._copies = {last.name: copy}
        self._writers = {assign.result.tensor: copy for assign in assigns_of(last.nest)}
        self._sources: dict[tuple[str, Access], str] = {}  # by the reader, and what it reads

    def stream(self, made: WalkedStatement, passing: PassOn) -> None:
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
            for read in place:
                if not _arrives(read, read.walks(made), shared):
                    raise _interrupted(made, read, passing)
            whole = any(_sees_zeros(made, read) for read in place)
            rows = place[0].walks(made)[:shared] if whole else ()
            self._insert(made, shared, place, place[0].reader.again, whole, rows)

    def recompute(self, made: WalkedStatement, passing: PassOn) -> None:
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
            again = f"{made.name} for {read.target.tensor}"
            self._insert(made, shared, [read], again, _sees_zeros(made, read), ())

    def value(self) -> Expression:
        """What the last statement computes of the inputs, with sums over variables of their own."""
        self._check_size()
        last = self._copies[next(iter(self._copies))]
        return self._sums_apart(
            self._value_of(last.tensor), last.walked.assignment.result.variables
        )

    def _check_size(self) -> None:
        """Refuse a graph in which what is read twice, again and again, makes a huge expression."""
        sizes: dict[str, int] = {}
        readers = Counter[str]()
        for name, copy in reversed(self._copies.items()):  # what is read comes behind its readers
            reads = accesses(copy.walked.assignment.value)
            sources = [self._sources.get((name, copy.access(read)), "") for read in reads]
            sizes[name] = len(reads) + sum(sizes.get(source, 0) for source in sources)
            readers.update(sources)
        last, size = next(iter(self._copies)), sizes[next(iter(self._copies))]
        if size > MOST_READS:
            shared = [name for name in self._copies if readers[name] > 1][:3]
            raise UnsupportedError(
                f"the graph of {last} reads its inputs in too many ways at once",
                location=self._copies[last].walked.assignment.location,
                expected=f"at most {MOST_READS:,} reads, what is read twice counted for each of its"
                " readers",
                given=f"{size:,} reads",
                hint=f"store some results that are read twice, such as {', '.join(shared)}",
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
                case Access():
                    read = copy.access(term)
                    source = self._sources.get((tensor, read))
                    if source is None:
                        return read
                    return self._at(source, read.variables, copy.walked.assignment.semiring)
            return None

        return rewrite(copy.walked.assignment.value, rule)

    def _at(self, source: str, variables: tuple[str, ...], semiring: Semiring) -> Expression:
        """What a copy is at variables of its reader, which is over a semiring."""
        made = self._copies[source]
        result = (made.names[name] for name in made.walked.assignment.result.variables)
        value, other = self._value_of(source), dict(zip(result, variables, strict=True))
        bound = {name for t in walk(value) if isinstance(t, Sum) for name in t.variables}
        hidden = sorted(bound & {new for old, new in other.items() if new != old})
        other |= {name: self._variables.fresh(name) for name in hidden}

        inside, own = _renamed(value, other), made.walked.assignment.semiring
        return inside if own == semiring else Over(semiring=own, value=inside)

    def _everywhere(self, statement: Statement, variables: Sequence[str]) -> Statement:
        """The statement with a value at all coordinates of its result."""
        assign = next(assigns_of(statement))
        if not (assign.accumulate and variables):
            return _visiting(statement, variables)
        # a sum has the coordinates of its terms, so it is copied to all others too
        name = self._names.fresh(f"{assign.result.tensor}_sum")
        some = Access(tensor=name, variables=tuple(variables))
        own = rewrite(statement, lambda term: some if term == assign.result else None)
        copied: Statement = replace(assign, value=some, accumulate=False, everywhere=True)
        for name in reversed(variables):
            copied = Forall(variable=name, everything=True, body=copied)
        return Where(consumer=copied, producer=own)

    def _variable(self, statement: str, name: str, around: Sequence[str]) -> str:
        """A statement's variable in the tree: under its own name, unless that is of another one."""
        extent = self._extents[statement, name]
        issued = (other for other, known in self._issued if known == (name, extent))
        fitting = (other for other in (name, *issued) if self._extent_of.get(other) == extent)
        new = next((other for other in fitting if other not in around), None)
        if new is None:
            new = self._variables.fresh(name)
            self._issued.append((new, (name, extent)))
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

    def _insert(
        self,
        made: WalkedStatement,
        shared: int,
        reads: Sequence[_Read],
        part_of: str,
        everywhere: bool,
        visited: Sequence[str],
    ) -> None:
        """Put a copy inside of the loops that it shares, and read what it makes there.

        It is ``part_of`` a copy of a statement that is computed again.  If it is to have a value
        ``everywhere`` its loops visit all coordinates, and so do those over ``visited``.
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
        inside_loops = made.inside(shared)
        if everywhere:
            inside_loops = self._everywhere(inside_loops, made.made[shared:])
        again = made.name in self._copies
        tensors = {
            assign.result.tensor: self._names.fresh(assign.result.tensor)
            if again
            else assign.result.tensor
            for assign in assigns_of(inside_loops)
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
        self._sources |= {(read.reader.tensor, read.access): copy.tensor for read in reads}
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

        producer = rewrite(inside_loops, renamed)
        root = rewrite(self.root, reading)
        self.root = _with_producer(root, first.target, place, producer, visited)


E = TypeVar("E", bound=Term)


def _renamed(value: E, names: Mapping[str, str]) -> E:
    """An expression with other names for variables, those of its sums too."""

    def rule(term: Term) -> Term | None:
        if isinstance(term, Access | Sum):
            return replace(term, variables=tuple(names.get(n, n) for n in term.variables))
        return None

    return rewrite(value, rule)


def same_extents(statements: Sequence[ScheduledAssignment]) -> dict[tuple[str, str], int]:
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


def _visiting(statement: Statement, variables: Sequence[str]) -> Statement:
    """The statement with loops over variables that visit all coordinates."""
    match statement:
        case Forall(variable=variable, body=body):
            inside = _visiting(body, variables)
            return replace(statement, everything=variable in variables, body=inside)
        case Where(consumer=consumer):
            return replace(statement, consumer=_visiting(consumer, variables))
        case Assign():
            return replace(statement, everywhere=True)


def _sees_zeros(made: WalkedStatement, read: _Read) -> bool:
    """Whether a reader tells the zeros of a dense tensor from what a stream of it lacks.

    That is so over a semiring with another zero, for functions of what is stored, and for a
    dividend, since zero divided by zero is NaN.
    """
    reader, name = read.reader.walked.assignment, made.name
    format = made.assignment.tensor(name).format
    if not all(level.full for level in format.levels):
        return False
    parts: list[Term] = list(seen_patterns(reader.value))
    for term in walk(reader.value):
        match term:
            case Combine(operator=Op.DIVIDE, left=left, right=right) if accesses(right):
                parts.append(left)
    seen = any(name == access.tensor for part in parts for access in accesses(part))
    return seen or reader.semiring != made.assignment.semiring


def _with_producer(
    statement: Statement,
    target: Access,
    place: Sequence[str],
    producer: Statement,
    visited: Sequence[str],
) -> Statement:
    """The statement with a producer inside of the loops ``place`` around an assignment.

    Of these the ones over ``visited`` visit all coordinates.
    """
    if not place:
        return Where(consumer=statement, producer=producer)
    match statement:
        case Forall(variable=variable, body=body):
            rest = place[1:] if variable == place[0] else place
            return replace(
                statement,
                everything=statement.everything or variable in visited,
                body=_with_producer(body, target, rest, producer, visited),
            )
        case Where(consumer=consumer, producer=other):
            if any(assign.result == target for assign in assigns_of(other)):
                inside = _with_producer(other, target, place, producer, visited)
                return replace(statement, producer=inside)
            inside = _with_producer(consumer, target, place, producer, visited)
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
    rows = [read.around.index(row) for row in walks[:shared]]
    if rows != sorted(rows):
        return False
    depth = len(read.place(walks[:shared]))
    return read.around[depth : depth + len(walks) - shared] == walks[shared:]


# Why a result cannot be passed on.


def _check_whole(made: WalkedStatement, read: _Read) -> None:
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


def _check_walk(made: WalkedStatement, read: _Read, passing: PassOn) -> None:
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
        around_read = reader.called(wanted).split(", ")
        order = " ".join(dict.fromkeys((*around_read, *statement.order)))
        paths = (path for path in statement.read.paths if path.tensor != name and not path.free)
        turned = dict.fromkeys(path.tensor for path in paths if not path.fits(order.split()))
        hint = f'{statement.name} with reorder("{order}")'
        names = ", ".join(f'"{tensor}"' for tensor in turned)
        hint += f" and transpose({names})" if turned else ""
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


def _interrupted(made: WalkedStatement, read: _Read, passing: PassOn) -> UserError:
    statement = read.reader.walked
    return UserError(
        f"{made.name} cannot be streamed into {statement.name}, which is computed again inside of"
        " its loops",
        location=passing.location or made.assignment.location,
        expected=f"loops over {read.reader.called(read.walks(made))} that follow each other",
        given=f"loops {read.reader.called(read.around)}",
        hint=f"store {made.name}, or {statement.name}",
        notes=[(statement.assignment.location, f"{made.name} is read here")],
    )


def _apart(made: WalkedStatement, reads: Sequence[_Read], passing: PassOn) -> UserError:
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


def _not_gathered(made: WalkedStatement, reads: Sequence[_Read], passing: PassOn) -> UserError:
    readers = dict.fromkeys(read.reader.walked.name for read in reads)
    return UserError(
        f"{made.name} is not gathered, so nothing is gained by computing it again",
        location=passing.location or made.assignment.location,
        expected="a reader whose loop over another operand's coordinates is outside of its rows",
        given=f"{' and '.join(readers)}, which walks it as it is made",
        hint=f"stream {made.name}, or store it",
    )


def _not_row_by_row(made: WalkedStatement, read: _Read, passing: PassOn) -> UserError:
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
