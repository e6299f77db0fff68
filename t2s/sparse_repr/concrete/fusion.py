"""Statements that read each other's results: which of them one graph computes.

Each result is stored by its graph, or passed on to its readers in theirs: streamed once, or
computed again for every reader.  So a graph has the statement whose result it stores, and those
whose results it passes on [FuseFlow].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.walk import Term
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.notation.ir import Assignment
from t2s.sparse_repr.notation.legality import with_semiring
from t2s.sparse_repr.semiring import Semiring


class Way(Enum):
    """How a result comes to the statements that read it.

    STORE: written to memory, and read from there.  STREAM: computed once, in the graph of its
    readers.  RECOMPUTE: computed there at the coordinates at which it is read, once for each of
    them; statements that gather rows repeat it for every row.
    """

    STORE = "store"
    STREAM = "stream"
    RECOMPUTE = "recompute"


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOn(Term):
    """The way of a result, and the user's line that says it."""

    tensor: str
    way: Way
    location: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledAssignment(Term):
    """A statement, and the order of its own loops."""

    assignment: Assignment
    schedule: Schedule = field(default_factory=Schedule)

    @property
    def name(self) -> str:
        """The tensor that it computes."""
        return self.assignment.result.tensor

    @property
    def reads(self) -> tuple[str, ...]:
        """The tensors that it reads."""
        return tuple(dict.fromkeys(access.tensor for access in self.assignment.reads))


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementGroup(Term):
    """The statements of one graph, each after those that it reads; the last result is stored."""

    statements: tuple[ScheduledAssignment, ...]
    passed: tuple[PassOn, ...] = ()

    @property
    def last(self) -> ScheduledAssignment:
        """The statement whose result is stored."""
        return self.statements[-1]

    def over(self, semiring: Semiring) -> StatementGroup:
        """The same statements, all over a semiring."""
        statements = tuple(
            replace(statement, assignment=with_semiring(statement.assignment, semiring))
            for statement in self.statements
        )
        return replace(self, statements=statements)

    def way_of(self, tensor: str) -> PassOn | None:
        """How a result of the group is passed on; ``None`` for other tensors."""
        return next((passing for passing in self.passed if passing.tensor == tensor), None)

    def readers_of(self, tensor: str) -> tuple[ScheduledAssignment, ...]:
        """The statements that read a tensor."""
        return tuple(statement for statement in self.statements if tensor in statement.reads)


def groups_of(
    statements: Sequence[ScheduledAssignment], passed: Sequence[PassOn]
) -> tuple[StatementGroup, ...]:
    """The graphs of statements, in an order in which each is after those whose results it reads.

    ``statements`` come after those that they read.  Results about which ``passed`` says nothing are
    stored.  Raises ``UserError`` for a tensor that no other statement reads, and for one that is
    streamed to several graphs.
    """
    by_name = {statement.name: statement for statement in statements}
    reads = {statement.name: statement.reads for statement in statements}
    place = {name: number for number, name in enumerate(by_name)}
    ways = {passing.tensor: passing for passing in passed if passing.way is not Way.STORE}
    _check_passed(reads, by_name, passed)
    groups: list[StatementGroup] = []
    homes: dict[str, list[StatementGroup]] = {name: [] for name in ways}
    for last in statements:
        if last.name in ways:
            continue
        needed, left = {last.name}, [last.name]
        while left:
            more = {name for name in reads[left.pop()] if name in ways} - needed
            needed |= more
            left += more
        members = [by_name[name] for name in sorted(needed, key=place.__getitem__)]
        inside = tuple(ways[member.name] for member in members if member is not last)
        groups.append(StatementGroup(statements=tuple(members), passed=inside))
        for passing in inside:
            homes[passing.tensor].append(groups[-1])
    for passing in ways.values():
        if passing.way is Way.STREAM and len(homes[passing.tensor]) > 1:
            raise _in_several_graphs(passing, homes[passing.tensor])
    return tuple(groups)


def _check_passed(
    reads: Mapping[str, Sequence[str]],
    by_name: Mapping[str, ScheduledAssignment],
    passed: Sequence[PassOn],
) -> None:
    read = {name for names in reads.values() for name in names}
    seen: dict[str, PassOn] = {}
    for passing in passed:
        name, verb = passing.tensor, passing.way.value
        if name not in by_name:
            between = [other for other in by_name if other in read]
            raise UserError(
                f"no statement computes {name}, so there is nothing to {verb}",
                location=passing.location,
                expected=f"one of {', '.join(between)}"
                if between
                else "statements that read each other's results",
                given=name,
            )
        if name not in read and passing.way is not Way.STORE:
            raise UserError(
                f"{name} is a result of the program: no statement reads it",
                location=passing.location,
                expected=f"{verb} of a tensor that another statement reads",
                given=name,
                notes=[(by_name[name].assignment.location, f"{name} is computed here")],
            )
        if name in seen:
            raise UserError(
                f"two ways are given for {name}",
                location=passing.location,
                expected="one of store, stream and recompute",
                given=f"{seen[name].way.value} and {verb}",
                notes=[(seen[name].location, "the first one is given here")],
            )
        seen[name] = passing


def _in_several_graphs(passing: PassOn, homes: Sequence[StatementGroup]) -> UserError:
    name = passing.tensor
    readers = [
        f"{reader.name} in the graph of {home.last.name}"
        for home in homes
        for reader in home.readers_of(name)
    ]
    return UserError(
        f"{name} cannot be streamed to two graphs",
        location=passing.location,
        expected=f"readers of {name} that end in one stored result",
        given=f"it is read by {' and by '.join(readers)}",
        hint=f"store {name}, or recompute it, which makes it once in each graph",
    )
