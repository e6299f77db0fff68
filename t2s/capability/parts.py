"""Parts of a statement: found where they are, and taken out with the sums that are private to them.

A part is a set of factors of one product, or a set of terms of one sum, or a subtree: ``C*D`` is a
part of ``B*C*D`` although the tree is ``(B*C)*D``.  A sum over variables that no other factor has
goes with it, where nothing but factors is in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.walk import Term, rebuild, rewrite, walk
from t2s.sparse_repr.notation.ir import (
    ADDITIVE,
    Assignment,
    Combine,
    Expression,
    Negative,
    Sum,
    accesses,
    free_variables,
    print_expression,
    with_sums,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOut:
    """A part with its private sums, and what is left: a function of what stands in its place."""

    value: Expression
    free: tuple[str, ...]
    left: Callable[[Expression], Expression]


def find_part(
    assignment: Assignment, wanted: Expression, location: SourceLocation | None
) -> TakenOut:
    """The part of an assignment.  Raises ``UserError`` unless it is there once."""
    found = list(_places(assignment, wanted))
    if len(found) == 1:
        return found[0]
    raise UserError(
        f"the expression has {print_expression(wanted)} {'twice' if found else 'nowhere'}",
        location=location,
        expected="factors of one product, or terms of one sum, that are there once",
        given=print_expression(assignment.value),
    )


def factors_of(value: Expression) -> tuple[Expression, ...]:
    """The factors of a product, from left to right."""
    match value:
        case Combine(operator=Op.MULTIPLY, left=left, right=right):
            return (*factors_of(left), *factors_of(right))
    return (value,)


def terms_of(value: Expression) -> tuple[tuple[int, Expression], ...]:
    """The terms of a sum with their signs, from left to right."""
    match value:
        case Combine(operator=Op.ADD, left=left, right=right):
            return (*terms_of(left), *terms_of(right))
        case Combine(operator=Op.SUBTRACT, left=left, right=right):
            return (*terms_of(left), *((-sign, one) for sign, one in terms_of(right)))
        case Negative(value=inner):
            return tuple((-sign, one) for sign, one in terms_of(inner))
    return ((1, value),)


def product_of(factors: Sequence[Expression]) -> Expression:
    """The product of one factor or more."""
    value = factors[0]
    for one in factors[1:]:
        value = Combine(operator=Op.MULTIPLY, left=value, right=one)
    return value


def sum_of(terms: Sequence[tuple[int, Expression]]) -> Expression:
    """The sum of one signed term or more; it begins with no negative number, if it can be."""
    first, *others = terms
    if first[0] < 0 and not accesses(first[1]):  # -3 is no uint8, and b - 3 has a value
        at = next((at for at, (_, one) in enumerate(others) if accesses(one)), None)
        if at is not None:
            others = [first, *others[:at], *others[at + 1 :]]
            first = terms[at + 1]
    sign, value = first
    value = value if sign > 0 else Negative(value=value)
    for sign, one in others:
        operator = Op.ADD if sign > 0 else Op.SUBTRACT
        value = Combine(operator=operator, left=value, right=one)
    return value


def _without(items: Sequence[Expression], some: Sequence[Expression]) -> list[Expression] | None:
    """The items without some of them, each once; ``None`` if they are not all there."""
    left = _without_pairs([(1, one) for one in items], [(1, one) for one in some])
    return None if left is None else [one for _, one in left]


def _ordered(value: Expression) -> Expression:
    """The expression with the factors of every product in one order: ``*`` commutes."""

    def visit(term: Term) -> Term:
        term = rebuild(term, visit)
        if isinstance(term, Combine) and term.operator is Op.MULTIPLY:
            return product_of(sorted(factors_of(term), key=print_expression))
        return term

    return cast(Expression, visit(value))


def _places(assignment: Assignment, wanted: Expression) -> Iterator[TakenOut]:
    if isinstance(wanted, Sum) and any(term == wanted for term in walk(assignment.value)):
        yield from _subtrees(assignment.value, wanted)
        return
    if isinstance(wanted, Sum):
        bare, sums = wanted.value, set(wanted.variables)
    else:
        bare, sums = wanted, None
    if len(terms_of(bare)) == 1 and terms_of(bare)[0][0] > 0:
        factors = factors_of(bare)
        for found in _Products(factors).visit(assignment.value, (), lambda new: new):
            taken = set(free_variables(bare)) - set(found.free)
            if sums is None or taken == sums:
                yield found
        return
    yield from _sums(assignment, bare, sums)


def _subtrees(value: Expression, wanted: Sum) -> Iterator[TakenOut]:
    """A sum that is written, wherever it is."""

    def left(new: Expression) -> Expression:
        return rewrite(value, lambda term: new if term == wanted else None)

    for term in walk(value):
        if term == wanted:
            yield TakenOut(value=wanted, free=free_variables(wanted), left=left)


@dataclass(frozen=True, slots=True)
class _Products:
    """Looks for factors in every product of an expression."""

    factors: tuple[Expression, ...]

    def visit(
        self,
        value: Expression,
        around: tuple[str, ...],
        left: Callable[[Expression], Expression],
    ) -> Iterator[TakenOut]:
        """``around`` are the sums with nothing but factors in between."""
        match value:
            case Sum(variables=variables, value=inner):
                yield from self.visit(
                    inner, (*around, *variables), lambda new: left(_summed(variables, new))
                )
                return
            case Negative(value=inner):
                yield from self.visit(inner, around, lambda new: left(Negative(value=new)))
                return
        found = factors_of(value)
        rest = _without(found, self.factors)
        if rest is not None:
            others = {name for one in rest for name in free_variables(one)}
            yield self._taken(around, tuple(rest), others, left)
            return
        for at, factor in enumerate(found):
            inner_left = _in_product(found, at, left)
            outside = {
                name
                for number, one in enumerate(found)
                if number != at
                for name in free_variables(one)
            }
            linear = tuple(name for name in around if name not in outside)
            yield from self._below(factor, linear if isinstance(factor, Sum) else (), inner_left)

    def _below(
        self,
        factor: Expression,
        around: tuple[str, ...],
        left: Callable[[Expression], Expression],
    ) -> Iterator[TakenOut]:
        match factor:
            case Sum():
                yield from self.visit(factor, around, left)
            case Negative(value=inner):
                yield from self.visit(inner, (), lambda new: left(Negative(value=new)))
            case Combine(left=one, right=other):
                yield from self.visit(one, (), lambda new: left(replace(factor, left=new)))
                yield from self.visit(other, (), lambda new: left(replace(factor, right=new)))

    def _taken(
        self,
        around: tuple[str, ...],
        rest: tuple[Expression, ...],
        others: set[str],
        left: Callable[[Expression], Expression],
    ) -> TakenOut:
        part = product_of(self.factors)
        free = free_variables(part)
        private = tuple(name for name in around if name in free and name not in others)

        def put(new: Expression) -> Expression:
            made = left(product_of([*rest, new]) if rest else new)
            return _without_sums(made, private)

        value = Sum(variables=private, value=part) if private else part
        kept = tuple(name for name in free if name not in private)
        return TakenOut(value=value, free=kept, left=put)


def _summed(variables: tuple[str, ...], value: Expression) -> Expression:
    return Sum(variables=variables, value=value)


def _in_product(
    factors: tuple[Expression, ...], at: int, left: Callable[[Expression], Expression]
) -> Callable[[Expression], Expression]:
    return lambda new: left(product_of([*factors[:at], new, *factors[at + 1 :]]))


def _without_sums(value: Expression, private: tuple[str, ...]) -> Expression:
    """The expression without the sums over variables that nothing has any more."""

    def visit(term: Term) -> Term:
        new = rebuild(term, visit)
        if isinstance(new, Sum):
            gone = [
                name
                for name in new.variables
                if name in private and name not in free_variables(new.value)
            ]
            kept = tuple(name for name in new.variables if name not in gone)
            return replace(new, variables=kept) if kept else new.value
        return new

    result: Expression = visit(value)  # type: ignore[assignment]
    return result


def _sums(assignment: Assignment, wanted: Expression, sums: set[str] | None) -> Iterator[TakenOut]:
    """Looks for terms in every sum of an expression."""
    result = assignment.result.variables
    options = [terms_of(wanted)]
    explicit = terms_of(with_sums(wanted, result))
    if explicit not in options:
        options.append(explicit)

    def visit(
        value: Expression, around: tuple[str, ...], left: Callable[[Expression], Expression]
    ) -> Iterator[TakenOut]:
        terms = terms_of(value)
        for option in options:
            for flip in (1, -1):
                signed = tuple((flip * sign, one) for sign, one in option)
                rest = _without_pairs(terms, signed)
                if rest is None or (flip < 0 and len(rest) == 0 and len(terms) == 1):
                    continue
                yield _terms_taken(option, flip, rest, around if not rest else (), left)
                return
        match value:
            case Sum(variables=variables, value=inner):
                yield from visit(
                    inner, (*around, *variables), lambda new: left(_summed(variables, new))
                )
            case Negative(value=inner):
                yield from visit(inner, around, lambda new: left(Negative(value=new)))
            case Combine(operator=operator, left=one, right=other):
                additive = operator in ADDITIVE
                below = () if additive or operator is not Op.MULTIPLY else around
                near = tuple(name for name in below if name not in free_variables(other))
                yield from visit(one, near, lambda new: left(replace(value, left=new)))
                near = tuple(name for name in below if name not in free_variables(one))
                yield from visit(other, near, lambda new: left(replace(value, right=new)))

    for found in visit(assignment.value, (), lambda new: new):
        taken = set(free_variables(wanted)) - set(found.free)
        if sums is None or taken == sums:
            yield found


def _without_pairs(
    terms: Sequence[tuple[int, Expression]], some: Sequence[tuple[int, Expression]]
) -> list[tuple[int, Expression]] | None:
    """The terms without some of them, each once; ``None`` if they are not all there."""
    left = list(terms)
    keys = [(sign, _ordered(one)) for sign, one in terms]
    for sign, one in some:
        key = (sign, _ordered(one))
        if key not in keys:
            return None
        at = keys.index(key)
        del left[at], keys[at]
    return left


def _terms_taken(
    option: tuple[tuple[int, Expression], ...],
    sign: int,
    rest: list[tuple[int, Expression]],
    around: tuple[str, ...],
    left: Callable[[Expression], Expression],
) -> TakenOut:
    part = sum_of(option)
    free = free_variables(part)
    private = tuple(
        name for name in around if all(name in free_variables(one) for _, one in option)
    )

    def put(new: Expression) -> Expression:
        return _without_sums(left(sum_of([*rest, (sign, new)])), private)

    value: Expression = Sum(variables=private, value=part) if private else part
    kept = tuple(name for name in free if name not in private)
    return TakenOut(value=value, free=kept, left=put)
