"""Other orders of multiplication: ``A*(X*W)`` in place of ``(A*X)*W``.

In ``T(i,j) = A(i,k)*X(k,j)`` and ``L(i,h) = T(i,j)*W(j,h)`` all factors of L may be multiplied in
any order, if nothing else reads T.  Which is best depends on extents and on what is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.sparse_repr.notation.ir import (
    Access,
    Combine,
    Expression,
    Sum,
    all_variables,
    print_expression,
    with_sums,
)
from t2s.sparse_repr.notation.legality import make_assignment
from t2s.sparse_repr.notation.program import Statement, StatementProgram
from t2s.sparse_repr.notation.usual_format import usual_format
from t2s.sparse_repr.semiring import PLUS_TIMES

MOST_FACTORS = 4
"""Factors of the products that ``groupings`` divides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """What is multiplied first in a statement, in place of the product ``instead`` that it reads.

    It is a product of tensors, by their names.
    """

    statement: str
    first: tuple[str, ...]
    instead: str


def groupings(program: StatementProgram) -> Iterator[Grouping]:
    """The groupings of a program other than its own that sum over something on the way."""
    for statement in program.statements:
        for inner in _inner_products(program, statement):
            factors = _factors(statement, inner)
            names = [factor.tensor for factor in factors]
            if len(factors) > MOST_FACTORS or len(set(names)) < len(names):
                continue
            own = set(inner.reads)
            for count in range(2, len(factors)):
                for first in combinations(factors, count):
                    grouping = Grouping(
                        statement=statement.name,
                        first=tuple(factor.tensor for factor in first),
                        instead=inner.name,
                    )
                    variables = {name for factor in first for name in factor.variables}
                    sums = variables - set(_kept(statement, first, factors))
                    if sums and set(grouping.first) != own:
                        yield grouping


def grouping_of(
    program: StatementProgram, name: str, first: Sequence[str], location: SourceLocation
) -> Grouping:
    """The grouping of a statement in which these tensors are multiplied first.

    Raises ``UserError`` for a statement that is no product with such factors, and for a product
    that something else needs.
    """
    statement = program.statement(name)
    products = _inner_products(program, statement)
    for inner in products:
        names = [factor.tensor for factor in _factors(statement, inner)]
        if (
            all(names.count(one) == 1 for one in first)
            and len(set(first)) == len(first)
            and 2 <= len(first) < len(names)
            and set(first) != set(inner.reads)
        ):
            return Grouping(statement=name, first=tuple(first), instead=inner.name)
    if not products:
        raise UserError(
            f"{name} is not a product that reads a product",
            location=location,
            expected="a statement such as L(i,h) = T(i,j)*W(j,h), where T is a product of tensors"
            " and read by nothing else",
            given=f"{name} = {print_expression(statement.assignment.value)}",
            notes=[(statement.assignment.location, f"{name} is computed here")],
        )
    choices = [
        " and ".join(grouping.first)
        for grouping in groupings(program)
        if grouping.statement == name
    ]
    raise UserError(
        f"these cannot be multiplied first in {name}",
        location=location,
        expected=" or ".join(choices) or "tensors that are multiplied with each other",
        given=", ".join(map(repr, first)) or "no tensors",
        notes=[(statement.assignment.location, f"{name} is computed here")],
    )


def regrouped(program: StatementProgram, grouping: Grouping) -> StatementProgram:
    """The program with a grouping: a new product in front of the statement, and the old one gone.

    The new product is named after its factors, and stored as results are of which nobody says it.
    """
    statement = program.statement(grouping.statement)
    inner = program.statement(grouping.instead)
    factors = _factors(statement, inner)
    first = [factor for factor in factors if factor.tensor in grouping.first]
    others = [factor for factor in factors if factor.tensor not in grouping.first]
    declared = {
        tensor.name: tensor for one in (inner, statement) for tensor in one.assignment.tensors
    }
    taken = [tensor.name for tensor in program.inputs]
    taken += [other.name for other in program.statements]
    name = NameSupply(taken).fresh("_".join(factor.tensor for factor in first))
    location = statement.assignment.location
    made = Access(tensor=name, variables=_kept(statement, first, factors))
    value = with_sums(_product(first), made.variables)
    format, like = usual_format(made, value, declared)
    declared[name] = replace(declared[inner.name], name=name, format=format, shape=None)
    part = Statement(
        assignment=make_assignment(
            made, value, tuple(declared[one] for one in (name, *grouping.first)), location
        ),
        of=name,
        usual=True,
        like=like,
    )
    at = factors.index(first[0])
    result = statement.assignment.result
    rest = [*others[:at], made, *others[at:]]
    read = (statement.name, *(factor.tensor for factor in rest))
    whole = replace(
        statement,
        usual=statement.usual and statement.like != inner.name,
        assignment=make_assignment(
            result,
            with_sums(_product(rest), result.variables),
            tuple(declared[one] for one in read),
            location,
        ),
    )
    statements = [other for other in program.statements if other is not inner]
    place = statements.index(statement)
    statements[place : place + 1] = [part, whole]
    return replace(program, statements=tuple(statements))


def _inner_products(program: StatementProgram, statement: Statement) -> list[Statement]:
    """The products that a product reads, and nothing else."""
    if _accesses_of_product(statement) is None or statement.name in program.seen:
        return []
    readers = [name for other in program.statements for name in other.reads]
    return [
        other
        for other in program.statements
        if other.name in statement.reads
        and readers.count(other.name) == 1
        and _accesses_of_product(other) is not None
        and [a.tensor for a in _accesses_of_product(statement) or ()].count(other.name) == 1
    ]


def _accesses_of_product(statement: Statement) -> tuple[Access, ...] | None:
    """The factors of a statement that is a product of tensors; ``None`` for others."""
    assignment = statement.assignment
    value = assignment.value
    if assignment.semiring != PLUS_TIMES or statement.of != statement.name:
        return None
    return _accesses(value.value if isinstance(value, Sum) else value)


def _accesses(value: Expression) -> tuple[Access, ...] | None:
    match value:
        case Access():
            return (value,)
        case Combine(operator=Op.MULTIPLY, left=left, right=right):
            one, other = _accesses(left), _accesses(right)
            return None if one is None or other is None else (*one, *other)
    return None


def _factors(statement: Statement, inner: Statement) -> list[Access]:
    """All factors of a statement, with those of a product that it reads in the place of that."""
    outer, own = _accesses_of_product(statement), _accesses_of_product(inner)
    assert outer is not None
    assert own is not None
    read = next(access for access in outer if access.tensor == inner.name)
    names = dict(zip(inner.assignment.result.variables, read.variables, strict=True))
    supply = NameSupply(all_variables(statement.assignment))
    for variable in all_variables(inner.assignment):
        if variable not in names:
            names[variable] = supply.fresh(variable)

    def renamed(access: Access) -> Access:
        return replace(access, variables=tuple(names[name] for name in access.variables))

    at = outer.index(read)
    return [*outer[:at], *map(renamed, own), *outer[at + 1 :]]


def _kept(
    statement: Statement, first: Sequence[Access], factors: Sequence[Access]
) -> tuple[str, ...]:
    """The variables of some factors that others have, too, or the result."""
    needed = set(statement.assignment.result.variables)
    needed |= {name for factor in factors if factor not in first for name in factor.variables}
    found = dict.fromkeys(name for factor in first for name in factor.variables)
    return tuple(name for name in found if name in needed)


def _product(factors: Sequence[Access]) -> Expression:
    first, *others = factors
    value: Expression = first
    for factor in others:
        value = Combine(operator=Op.MULTIPLY, left=value, right=factor)
    return value
