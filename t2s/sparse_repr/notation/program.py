"""Programs: statements that read each other's results, in an order in which they can run.

A tensor is assigned once, and index variables belong to their statement.  A statement with a
function of a row, such as ``softmax``, becomes several (``row_functions.py``); each of them is an
``Assignment`` over a semiring of its own, which a kernel computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.names import NameSupply
from t2s.core.walk import Term, walk
from t2s.sparse_repr.formats import Format, dense
from t2s.sparse_repr.notation.blocks import sizes_at, usual_blocks
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Combine,
    Expression,
    Extent,
    OfRow,
    Sum,
    TensorDeclaration,
    Unary,
    accesses,
    print_expression,
    seen_patterns,
    variables_of,
)
from t2s.sparse_repr.notation.legality import check_sums_are_clear, make_assignment
from t2s.sparse_repr.notation.row_functions import Piece, pieces_of
from t2s.sparse_repr.notation.usual_format import is_sparse, usual_format
from t2s.sparse_repr.semiring import PLUS_TIMES


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenStatement(Term):
    """A statement as the user wrote it."""

    result: Access
    value: Expression
    location: SourceLocation | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{print_expression(self.result)} = {print_expression(self.value)}"

    @property
    def name(self) -> str:
        """The tensor that it assigns."""
        return self.result.tensor

    @property
    def reads(self) -> tuple[str, ...]:
        """The tensors that it reads, in order of first occurrence."""
        return tuple(dict.fromkeys(access.tensor for access in accesses(self.value)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement(Term):
    """A statement that a kernel computes.

    ``assignment`` may still have ``Extent``, whose number the inputs tell.  ``of`` is the tensor of
    the user's statement that it is a part of.  ``like`` is the tensor whose pattern its result has,
    if nobody said its format, and ``usual`` whether nobody did.
    """

    assignment: Assignment
    of: str
    usual: bool = False
    like: str = ""

    @property
    def name(self) -> str:
        """The tensor that it assigns."""
        return self.assignment.result.tensor

    @property
    def reads(self) -> tuple[str, ...]:
        """The tensors that it reads, in order of first occurrence."""
        return tuple(dict.fromkeys(access.tensor for access in accesses(self.assignment.value)))

    @property
    def format(self) -> Format:
        """The format of its result."""
        return self.assignment.tensor(self.name).format


@dataclass(frozen=True, kw_only=True)
class StatementProgram(Term):
    """The statements in the order in which they run; ``inputs`` are what none of them assigns."""

    statements: tuple[Statement, ...]
    inputs: tuple[TensorDeclaration, ...]
    location: SourceLocation | None = field(default=None, compare=False)

    @cached_property
    def seen(self) -> frozenset[str]:
        """The results of which values depend on which elements they store, by ``stored(...)``."""
        seen: set[str] = set()
        for statement in reversed(self.statements):
            assignment = statement.assignment
            looks = assignment.semiring != PLUS_TIMES or bool(seen_patterns(assignment.value))
            if looks or statement.name in seen:
                seen |= {
                    name for name in statement.reads if is_sparse(assignment.tensor(name).format)
                }
        return frozenset(seen & {statement.name for statement in self.statements})

    def statement(self, name: str) -> Statement:
        """The statement that assigns a tensor; ``KeyError`` if none does."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Statement]:
        return {statement.name: statement for statement in self.statements}


def make_program(
    written: Sequence[WrittenStatement],
    declared: Mapping[str, TensorDeclaration],
    *,
    ordered: bool,
    location: SourceLocation | None,
) -> StatementProgram:
    """The statements that kernels compute, for those that a user wrote.

    Tensors that are not ``declared`` are stored densely, or by the pattern of an operand.  Unless
    they are ``ordered``, statements may come in any order.  Raises ``UserError`` for an empty
    program, a tensor that is assigned twice, read before it is assigned or read with another number
    of variables, and for a declared one that does not occur.
    """
    if not written:
        raise UserError(
            "a program has no statements",
            location=location,
            expected="at least one statement, such as H(i,j) = relu(X(i,j))",
        )
    _check_once(written)
    written = written if ordered else _in_order(written)
    _check_order(written)
    _check_uses(written, declared, location)
    results = {statement.name for statement in written}
    occurring = dict.fromkeys(name for one in written for name in (one.name, *one.reads))
    names = NameSupply([*occurring, *declared])
    known = dict(declared)
    blocks = usual_blocks(
        [(one.result, one.value) for one in written],
        {name: tensor.format for name, tensor in declared.items()},
    )
    for one in written:
        for access in accesses(one.value):
            if access.tensor not in results:
                stored = dense(len(access.variables)).in_blocks(blocks[access.tensor])
                usual = TensorDeclaration(
                    name=access.tensor, format=stored, location=access.location
                )
                known.setdefault(access.tensor, usual)
    statements: list[Statement] = []
    for one in written:
        _check_extents(one)
        check_sums_are_clear(one.result, one.value, one.location, extremes=True)
        _check_stored(one, known, declared)
        pieces = pieces_of(one.result, one.value, names, known, one.location)
        statements += [_statement(piece, one, known) for piece in pieces]
    inputs = tuple(known[name] for name in occurring if name not in results)
    return StatementProgram(statements=tuple(statements), inputs=inputs, location=location)


def print_statement(statement: Statement) -> str:
    """A statement as users write it: ``Z_max(i) = max(c; Z_row(i,c))``."""
    assignment = statement.assignment
    result, value, ring = assignment.result, assignment.value, assignment.semiring
    shown = print_expression(value)
    match value:
        case Sum(variables=along, value=inner) if ring != PLUS_TIMES:
            row = f"{ring.add.value}({','.join(along)}; {print_expression(inner)})"
            shown = row if _stores_all(statement, inner) else f"stored({row})"
        case Combine(left=left, right=right) if ring != PLUS_TIMES:
            shown = f"{print_expression(left)} + {print_expression(right)}"
            shown = f"{shown} where {left.tensor if isinstance(left, Access) else ''} is stored"
    return f"{print_expression(result)} = {shown}"


def _stores_all(statement: Statement, operand: Expression) -> bool:
    return not any(
        is_sparse(statement.assignment.tensor(access.tensor).format) for access in accesses(operand)
    )


def described(statement: Statement) -> str:
    """A statement, and how its result is stored if nobody said it."""
    text = print_statement(statement)
    if not statement.usual or not statement.format.levels:
        return text
    why = f"as {statement.like} is" if statement.like else "by default"
    return f"{text}  # stored as {statement.format}, {why}"


def print_program(program: StatementProgram) -> str:
    """The statements, one on a line, with how the results are stored that nobody declared."""
    return "".join(f"{described(statement)}\n" for statement in program.statements)


def _statement(
    piece: Piece, written: WrittenStatement, known: dict[str, TensorDeclaration]
) -> Statement:
    """The statement of a piece, whose result is declared in ``known`` if it is not yet."""
    name = piece.result.tensor
    usual, like = name not in known, ""
    if usual:
        format, like = (
            usual_format(piece.result, piece.value, known)
            if piece.format is None
            else (piece.format, piece.like)
        )
        sizes = {
            variable: size
            for access in accesses(piece.value)
            for variable, size in sizes_at(access, known[access.tensor].format)
        }
        block = [sizes.get(variable, 1) for variable in piece.result.variables]
        known[name] = TensorDeclaration(
            name=name, format=format.in_blocks(block), location=written.location
        )
    read = dict.fromkeys(access.tensor for access in accesses(piece.value))
    declared = tuple(known[other] for other in dict.fromkeys((name, *read)))
    assignment = make_assignment(piece.result, piece.value, declared, written.location)
    assignment = replace(assignment, semiring=piece.semiring)
    return Statement(assignment=assignment, of=written.name, usual=usual, like=like)


def _check_extents(statement: WrittenStatement) -> None:
    known = dict.fromkeys((*statement.result.variables, *variables_of(statement.value)))
    for term in walk(statement.value):
        if isinstance(term, Extent) and term.variable not in known:
            raise UserError(
                f"nothing in {statement} has the variable {term.variable}",
                location=statement.location,
                expected=f"one of {', '.join(known)}"
                if known
                else f"a tensor with {term.variable}",
                given=print_expression(term),
            )


def _check_stored(
    statement: WrittenStatement,
    known: Mapping[str, TensorDeclaration],
    declared: Mapping[str, TensorDeclaration],
) -> None:
    """Refuse functions of what is stored by tensors of which nobody said how they are stored."""
    for term in walk(statement.value):
        if not isinstance(term, Unary | OfRow) or not term.stored:
            continue
        names = dict.fromkeys(access.tensor for access in accesses(term.value))
        unsaid = [name for name in names if name not in declared]
        if unsaid and not any(is_sparse(known[name].format) for name in names):
            compressed = "d" * (len(known[unsaid[0]].format.levels) - 1) + "s"
            raise UserError(
                f"{unsaid[0]} stores all of its elements, since nobody says its format",
                location=statement.location,
                expected="an operand that stores some of its elements",
                given=print_expression(term),
                hint=f'formats={{"{unsaid[0]}": "{compressed}"}} stores only what sparse operands '
                "let through; without stored(...) all elements count",
            )


def _check_once(written: Sequence[WrittenStatement]) -> None:
    first: dict[str, WrittenStatement] = {}
    for statement in written:
        before = first.setdefault(statement.name, statement)
        if before is not statement:
            raise UserError(
                f"two statements assign to {statement.name}",
                location=statement.location,
                expected="one assignment to each tensor",
                given=str(statement),
                notes=[(before.location, f"the other one is {before}")],
                hint="give each of them a name of its own",
            )


def _in_order(written: Sequence[WrittenStatement]) -> Sequence[WrittenStatement]:
    """The statements so that those come first whose results others read."""
    by_name = {statement.name: statement for statement in written}
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for statement in written:
        sorter.add(statement.name, *(name for name in statement.reads if name in by_name))
    try:
        return [by_name[name] for name in sorter.static_order()]
    except CycleError as error:
        names: list[str] = error.args[1]
        circle = [by_name[name] for name in dict.fromkeys(names)]
        raise UserError(
            f"{', '.join(one.name for one in circle)} need each other's values"
            if len(circle) > 1
            else f"{circle[0].name} needs its own values",
            location=circle[0].location,
            expected="statements that can be computed one after the other",
            given=str(circle[0]),
            notes=[(one.location, f"and {one}") for one in circle[1:]],
        ) from None


def _check_order(written: Sequence[WrittenStatement]) -> None:
    place = {statement.name: number for number, statement in enumerate(written)}
    for number, statement in enumerate(written):
        for name in statement.reads:
            other = place.get(name, -1)
            if other == number:
                raise UserError(
                    f"{name} needs its own values",
                    location=statement.location,
                    expected="a statement that reads inputs and results of statements before it",
                    given=str(statement),
                    hint="name the old values otherwise: they are another tensor",
                )
            if other > number:
                later = written[other]
                circular = statement.name in later.reads
                raise UserError(
                    f"{statement.name} reads {name}, which is assigned later",
                    location=statement.location,
                    expected="statements that read inputs and results of statements before them",
                    given=str(statement),
                    notes=[(later.location, f"{name} is assigned by {later}")],
                    hint=f"{name} reads {statement.name} too: neither can be first"
                    if circular
                    else f"move {later} before it",
                )


def _check_uses(
    written: Sequence[WrittenStatement],
    declared: Mapping[str, TensorDeclaration],
    location: SourceLocation | None,
) -> None:
    """Check that a tensor has the same number of variables in all statements, and occurs."""
    first: dict[str, tuple[Access, WrittenStatement]] = {}
    for statement in written:
        for access in (statement.result, *accesses(statement.value)):
            before, where = first.setdefault(access.tensor, (access, statement))
            if len(before.variables) != len(access.variables):
                raise UserError(
                    f"{access.tensor} occurs with two different orders",
                    location=statement.location,
                    expected=f"{len(before.variables)} variables, as in {print_expression(before)}",
                    given=f"{print_expression(access)} in {statement}",
                    notes=[(where.location, f"{print_expression(before)} is in {where}")],
                )
    for name, tensor in declared.items():
        if name in first and tensor.format.order != len(first[name][0].variables):
            access, statement = first[name]
            raise UserError(
                f"the format of {name} does not fit {print_expression(access)}",
                location=statement.location,
                expected=f"a format of {len(access.variables)} levels",
                given=str(tensor.format),
            )
        if name not in first:
            raise UserError(
                f"there is a format or a shape of {name}, but no tensor of that name",
                location=location,
                expected=f"one of {', '.join(first)}",
                given=name,
            )
