"""Statements of one graph, each as the nest of its own loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.walk import Term, rewrite, walk
from t2s.sparse_repr.concrete.build import (
    Builder,
    Reads,
    build_nests,
    read_in_order,
    read_tensors,
    with_hints,
)
from t2s.sparse_repr.concrete.fusion import ScheduledAssignment, StatementGroup, Way
from t2s.sparse_repr.concrete.ir import (
    Assign,
    Forall,
    Statement,
)
from t2s.sparse_repr.concrete.order import DiscordantLoops
from t2s.sparse_repr.concrete.schedule import (
    DropZeros,
    OrderLoops,
    Parallelize,
    Transpose,
    check_once,
)
from t2s.sparse_repr.concrete.unsupported import refuse_patterns
from t2s.sparse_repr.formats import Format, Part, csf, dense
from t2s.sparse_repr.notation.ir import (
    Assignment,
    Expression,
    Sum,
    accesses,
    all_variables,
    print_expression,
)
from t2s.sparse_repr.semiring import Semiring


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkedStatement:
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


def walk_statement(
    builder: Builder, group: StatementGroup, statement: ScheduledAssignment
) -> WalkedStatement:
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
    nest = nests.stages[0]
    if len({one.assignment.semiring for one in group.statements}) > 1:
        nest = rewrite(nest, lambda term: _over(term, assignment.semiring))
    walked = WalkedStatement(statement=statement, read=read, value=value, nest=nest)
    if statement is not group.last:
        parts = tuple(Part(mode=assignment.result.variables.index(name)) for name in walked.made)
        builder.formats[statement.name] = Format(levels=csf(len(parts)).levels, parts=parts)
    return walked


def _over(term: object, semiring: Semiring) -> Assign | None:
    return replace(term, semiring=semiring) if isinstance(term, Assign) else None


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
            isinstance(directive, DropZeros | Parallelize) and last
        ):
            continue
        raise UnsupportedError(
            f"this directive for {statement.name} changes loops that it shares",
            location=directive.location,
            expected="reorder and transpose, for statements of one graph"
            + ("" if last else ", and parallelize and drop_zeros for the last of them"),
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
