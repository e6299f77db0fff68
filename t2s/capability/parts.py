"""Parts of a statement: found, taken out with the sums that are private to them, and normalized.

A part is a set of factors of one product, or a set of terms of one sum, or a subtree: ``C*D`` is a
part of ``B*C*D`` although the tree is ``(B*C)*D``.  Sums over variables that no other factor has
are private to the part, if only factors are in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from typing import assert_never, cast

from t2s.capability.description import ExternalFunction
from t2s.capability.operands import is_dense
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.names import NameSupply
from t2s.core.ops import OPERATORS, Op
from t2s.core.walk import Term, rebuild, rewrite, walk
from t2s.sparse_repr.formats import Format, dense
from t2s.sparse_repr.notation.ir import (
    ADDITIVE,
    Access,
    Assignment,
    Choice,
    Combine,
    Expression,
    Extent,
    Negative,
    Number,
    OfRow,
    Over,
    Sum,
    Unary,
    accesses,
    free_variables,
    print_expression,
    variables_of,
    with_sums,
)
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOut:
    """A part with its private sums, and the rest as a function of what replaces the part."""

    value: Expression
    free: tuple[str, ...]
    left: Callable[[Expression], Expression]


def find_part(
    assignment: Assignment, part: Expression, location: SourceLocation | None
) -> TakenOut:
    """Find a part of an assignment.  Raises ``UserError`` unless it occurs exactly once."""
    places = list(_places(assignment, part))
    if len(places) == 1:
        return places[0]
    raise UserError(
        f"the expression has {print_expression(part)} {'twice' if places else 'nowhere'}",
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
            return (*terms_of(left), *((-sign, term) for sign, term in terms_of(right)))
        case Negative(value=inner):
            return tuple((-sign, term) for sign, term in terms_of(inner))
    return ((1, value),)


def product_of(factors: Sequence[Expression]) -> Expression:
    """The product of one or more factors."""
    value = factors[0]
    for factor in factors[1:]:
        value = Combine(operator=Op.MULTIPLY, left=value, right=factor)
    return value


def sum_of(terms: Sequence[tuple[int, Expression]]) -> Expression:
    """The sum of one or more signed terms, a positive one first if there is any."""
    first, *others = terms
    if first[0] < 0 and not accesses(first[1]):  # -3 is not a uint8, but b - 3 is computed in it
        at = next((at for at, (_, term) in enumerate(others) if accesses(term)), None)
        if at is not None:
            others = [first, *others[:at], *others[at + 1 :]]
            first = terms[at + 1]
    sign, value = first
    value = value if sign > 0 else Negative(value=value)
    for sign, term in others:
        operator = Op.ADD if sign > 0 else Op.SUBTRACT
        value = Combine(operator=operator, left=value, right=term)
    return value


def _without(items: Sequence[Expression], some: Sequence[Expression]) -> list[Expression] | None:
    """The items without some of them, each removed once; ``None`` if any is missing."""
    rest = _without_pairs([(1, item) for item in items], [(1, item) for item in some])
    return None if rest is None else [item for _, item in rest]


def _ordered(value: Expression) -> Expression:
    """The expression with the factors of every product sorted, as ``*`` commutes."""

    def visit(term: Term) -> Term:
        term = rebuild(term, visit)
        if isinstance(term, Combine) and term.operator is Op.MULTIPLY:
            return product_of(sorted(factors_of(term), key=print_expression))
        return term

    return cast(Expression, visit(value))


def _places(assignment: Assignment, part: Expression) -> Iterator[TakenOut]:
    if isinstance(part, Sum) and any(term == part for term in walk(assignment.value)):
        yield from _subtrees(assignment.value, part)
        return
    if isinstance(part, Sum):
        bare, sums = part.value, set(part.variables)
    else:
        bare, sums = part, None
    if len(terms_of(bare)) == 1 and terms_of(bare)[0][0] > 0:
        factors = factors_of(bare)
        for place in _Products(factors).visit(assignment.value, (), lambda new: new):
            taken = set(free_variables(bare)) - set(place.free)
            if sums is None or taken == sums:
                yield place
        return
    yield from _sums(assignment, bare, sums)


def _subtrees(value: Expression, part: Sum) -> Iterator[TakenOut]:
    """A sum that is written, wherever it is."""

    def left(new: Expression) -> Expression:
        return rewrite(value, lambda term: new if term == part else None)

    for term in walk(value):
        if term == part:
            yield TakenOut(value=part, free=free_variables(part), left=left)


@dataclass(frozen=True, slots=True)
class _Products:
    """Looks for factors in every product of an expression."""

    factors: tuple[Expression, ...]

    def visit(
        self,
        value: Expression,
        around: tuple[str, ...],
        rebuild: Callable[[Expression], Expression],
    ) -> Iterator[TakenOut]:
        """``around`` are the enclosing sums with only factors in between."""
        match value:
            case Sum(variables=variables, value=inner):
                yield from self.visit(
                    inner, (*around, *variables), lambda new: rebuild(_summed(variables, new))
                )
                return
            case Negative(value=inner):
                yield from self.visit(inner, around, lambda new: rebuild(Negative(value=new)))
                return
        factors = factors_of(value)
        rest = _without(factors, self.factors)
        if rest is not None:
            others = {name for operand in rest for name in free_variables(operand)}
            yield self._taken(around, tuple(rest), others, rebuild)
            return
        for at, factor in enumerate(factors):
            inner_left = _in_product(factors, at, rebuild)
            outside = {
                name
                for number, operand in enumerate(factors)
                if number != at
                for name in free_variables(operand)
            }
            linear = tuple(name for name in around if name not in outside)
            yield from self._below(factor, linear if isinstance(factor, Sum) else (), inner_left)

    def _below(
        self,
        factor: Expression,
        around: tuple[str, ...],
        rebuild: Callable[[Expression], Expression],
    ) -> Iterator[TakenOut]:
        match factor:
            case Sum():
                yield from self.visit(factor, around, rebuild)
            case Negative(value=inner):
                yield from self.visit(inner, (), lambda new: rebuild(Negative(value=new)))
            case Combine(left=one, right=other):
                yield from self.visit(one, (), lambda new: rebuild(replace(factor, left=new)))
                yield from self.visit(other, (), lambda new: rebuild(replace(factor, right=new)))

    def _taken(
        self,
        around: tuple[str, ...],
        rest: tuple[Expression, ...],
        others: set[str],
        rebuild: Callable[[Expression], Expression],
    ) -> TakenOut:
        part = product_of(self.factors)
        free = free_variables(part)
        private = tuple(name for name in around if name in free and name not in others)

        def put(new: Expression) -> Expression:
            whole = rebuild(product_of([*rest, new]) if rest else new)
            return _without_sums(whole, private)

        value = Sum(variables=private, value=part) if private else part
        shared = tuple(name for name in free if name not in private)
        return TakenOut(value=value, free=shared, left=put)


def _summed(variables: tuple[str, ...], value: Expression) -> Expression:
    return Sum(variables=variables, value=value)


def _in_product(
    factors: tuple[Expression, ...], at: int, rebuild: Callable[[Expression], Expression]
) -> Callable[[Expression], Expression]:
    return lambda new: rebuild(product_of([*factors[:at], new, *factors[at + 1 :]]))


def _without_sums(value: Expression, private: tuple[str, ...]) -> Expression:
    """The expression without sums over variables that no longer occur."""

    def visit(term: Term) -> Term:
        new = rebuild(term, visit)
        if isinstance(new, Sum):
            gone = [
                name
                for name in new.variables
                if name in private and name not in free_variables(new.value)
            ]
            summed = tuple(name for name in new.variables if name not in gone)
            return replace(new, variables=summed) if summed else new.value
        return new

    result: Expression = visit(value)  # type: ignore[assignment]
    return result


def _sums(assignment: Assignment, part: Expression, sums: set[str] | None) -> Iterator[TakenOut]:
    """Looks for terms in every sum of an expression."""
    result = assignment.result.variables
    options = [terms_of(part)]
    explicit = terms_of(with_sums(part, result))
    if explicit not in options:
        options.append(explicit)

    def visit(
        value: Expression, around: tuple[str, ...], left: Callable[[Expression], Expression]
    ) -> Iterator[TakenOut]:
        terms = terms_of(value)
        for option in options:
            for flip in (1, -1):
                signed = tuple((flip * sign, term) for sign, term in option)
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
            case Combine(operator=operator, left=left_side, right=right_side):
                additive = operator in ADDITIVE
                below = () if additive or operator is not Op.MULTIPLY else around
                near = tuple(name for name in below if name not in free_variables(right_side))
                yield from visit(left_side, near, lambda new: left(replace(value, left=new)))
                near = tuple(name for name in below if name not in free_variables(left_side))
                yield from visit(right_side, near, lambda new: left(replace(value, right=new)))

    for place in visit(assignment.value, (), lambda new: new):
        taken = set(free_variables(part)) - set(place.free)
        if sums is None or taken == sums:
            yield place


def _without_pairs(
    terms: Sequence[tuple[int, Expression]], some: Sequence[tuple[int, Expression]]
) -> list[tuple[int, Expression]] | None:
    """The terms without some of them, each removed once; ``None`` if any is missing."""
    rest = list(terms)
    keys = [(sign, _ordered(term)) for sign, term in terms]
    for sign, term in some:
        key = (sign, _ordered(term))
        if key not in keys:
            return None
        at = keys.index(key)
        del rest[at], keys[at]
    return rest


def _terms_taken(
    option: tuple[tuple[int, Expression], ...],
    sign: int,
    rest: list[tuple[int, Expression]],
    around: tuple[str, ...],
    rebuild: Callable[[Expression], Expression],
) -> TakenOut:
    part = sum_of(option)
    free = free_variables(part)
    private = tuple(
        name for name in around if all(name in free_variables(term) for _, term in option)
    )

    def put(new: Expression) -> Expression:
        return _without_sums(rebuild(sum_of([*rest, (sign, new)])), private)

    value: Expression = Sum(variables=private, value=part) if private else part
    shared = tuple(name for name in free if name not in private)
    return TakenOut(value=value, free=shared, left=put)


# The normal form of an expression: a sum of terms, each a sum of products of factors.
#
# A factor is an access, or a subtree that only matches an equal one: a quotient, a minimum or a
# maximum, a constant in a semiring other than plus-times.  ``-`` is ``+`` with a coefficient of -1.
# The normal form computes the same by the laws of commutative semirings.

MOST_SCALED = 4
"""With at most this many coefficients, all subsets are tried as products with a scalar."""

MOST_SUMMANDS = 64
"""Expressions are multiplied out to at most this many products; larger ones stay a factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summand(Term):
    """``coefficient`` times the sum over ``summed`` of the product of the factors."""

    factors: tuple[Expression, ...]
    summed: tuple[str, ...] = ()
    coefficient: float | int = 1


def normal_form(value: Expression, semiring: Semiring = PLUS_TIMES) -> tuple[Summand, ...]:
    """The terms of an expression, from left to right.

    In a product, no variable is summed twice, nor summed by one factor and free in another.
    """
    normal = _Normal(semiring, NameSupply(variables_of(value)))
    terms = normal.terms(value)
    free = tuple({name for term in terms for name in free_of(term)})
    return tuple(normal.renamed(term, free) for term in terms)


@lru_cache(maxsize=1024)
def function_form(function: ExternalFunction, semiring: Semiring) -> tuple[Summand, ...]:
    """The normal form of a function's statement, cached."""
    return normal_form(function.capability.value, semiring)


class _Normal:
    def __init__(self, semiring: Semiring, names: NameSupply) -> None:
        self.semiring = semiring
        self.names = names
        info = OPERATORS[semiring.multiply]
        self.multiplies = info.associative and info.commutative
        self.plain = semiring == PLUS_TIMES

    def terms(self, value: Expression) -> tuple[Summand, ...]:
        """The terms of an expression."""
        match value:
            case Number(value=number) if self.plain:
                return (Summand(factors=(), coefficient=number),)
            case Access() | Number():
                return (Summand(factors=(value,)),)
            case Negative(value=inner) if self.plain:
                return tuple(_scaled(term, -1) for term in self.terms(inner))
            case Sum(variables=variables, value=inner):
                return tuple(
                    Summand(
                        factors=summand.factors,
                        summed=(*variables, *summand.summed),
                        coefficient=summand.coefficient,
                    )
                    for summand in (self.renamed(term, variables) for term in self.terms(inner))
                )
            case Combine(operator=Op.ADD, left=left, right=right):
                return (*self.terms(left), *self.terms(right))
            case Combine(operator=Op.SUBTRACT, left=left, right=right) if self.plain:
                subtracted = tuple(_scaled(term, -1) for term in self.terms(right))
                return (*self.terms(left), *subtracted)
            case Combine(operator=Op.MULTIPLY, left=left, right=right) if self.multiplies:
                return self._product(value, self.terms(left), self.terms(right))
            case Combine() | Negative() | Unary() | Choice() | OfRow() | Extent() | Over():
                return (Summand(factors=(value,)),)
            case _:
                assert_never(value)

    def _product(
        self, value: Combine, left: tuple[Summand, ...], right: tuple[Summand, ...]
    ) -> tuple[Summand, ...]:
        if len(left) * len(right) > MOST_SUMMANDS:
            return (Summand(factors=(value,)),)
        return tuple(self._joined(one, other) for one in left for other in right)

    def _joined(self, one: Summand, other: Summand) -> Summand:
        """The product of two terms; summed variables of one that occur in the other are renamed.

        In ``sum(k, a(k)) * b(k)``, the k of the sum is not that of b.
        """
        one, other = self._apart(one, other), self._apart(other, one)
        return Summand(
            factors=(*one.factors, *other.factors),
            summed=(*one.summed, *other.summed),
            coefficient=one.coefficient * other.coefficient,
        )

    def _apart(self, summand: Summand, other: Summand) -> Summand:
        used = (name for factor in other.factors for name in variables_of(factor))
        return self.renamed(summand, (*used, *other.summed))

    def renamed(self, term: Summand, taken: Sequence[str]) -> Summand:
        """The term with new names for summed variables that are taken."""
        clashes = [name for name in term.summed if name in taken]
        if not clashes:
            return term
        names = {name: self.names.fresh(f"{name}_own") for name in clashes}
        return Summand(
            factors=tuple(renamed(factor, names) for factor in term.factors),
            summed=tuple(names.get(name, name) for name in term.summed),
            coefficient=term.coefficient,
        )


def _scaled(term: Summand, number: int) -> Summand:
    return Summand(factors=term.factors, summed=term.summed, coefficient=number * term.coefficient)


def renamed(value: Expression, names: dict[str, str]) -> Expression:
    """The expression with its free variables renamed."""

    def visit(term: Term) -> Term:
        match term:
            case Access(variables=variables):
                new = tuple(names.get(name, name) for name in variables)
                if new == variables:
                    return term
                return Access(
                    tensor=term.tensor,
                    variables=new,
                    occurrence=term.occurrence,
                    location=term.location,
                )
            case Sum(variables=bound) if set(bound) & set(names):
                free = {name: new for name, new in names.items() if name not in bound}
                return Sum(variables=bound, value=renamed(term.value, free))
        return rebuild(term, visit)

    result: Expression = visit(value)  # type: ignore[assignment]
    return result


def free_of(term: Summand) -> tuple[str, ...]:
    """The variables of a term that it does not sum over."""
    names = (name for factor in term.factors for name in free_variables(factor))
    return tuple(dict.fromkeys(name for name in names if name not in term.summed))


@dataclass(frozen=True, kw_only=True)
class PartForm:
    """A part in normal form, with the formats and properties of its tensors.

    ``numbers`` are constants that are read as scalars, by the scalars' names.
    """

    value: Expression
    summands: tuple[Summand, ...]
    free: tuple[str, ...]
    formats: Mapping[str, Format]
    properties: Mapping[str, tuple[str, ...]]
    semiring: Semiring
    numbers: tuple[tuple[str, float | int], ...] = ()

    def dense(self, tensor: str) -> bool:
        """Whether all levels of a tensor are dense, without blocks."""
        return tensor in self._dense

    @cached_property
    def _dense(self) -> frozenset[str]:
        names = {access.tensor for access in self.reads}
        return frozenset(name for name in names if is_dense(self.formats[name]))

    @cached_property
    def bound(self) -> frozenset[str]:
        """The variables of sums inside of factors."""
        return frozenset(
            name
            for summand in self.summands
            for factor in summand.factors
            for term in walk(factor)
            if isinstance(term, Sum)
            for name in term.variables
        )

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """Free variables, then those that are summed."""
        summed = (name for summand in self.summands for name in summand.summed)
        return tuple(dict.fromkeys((*self.free, *summed)))

    @cached_property
    def reads(self) -> tuple[Access, ...]:
        """All accesses."""
        return tuple(
            access
            for term in self.summands
            for factor in term.factors
            for access in accesses(factor)
        )


def part_form(
    value: Expression,
    formats: Mapping[str, Format],
    properties: Mapping[str, tuple[str, ...]] | None = None,
    semiring: Semiring = PLUS_TIMES,
) -> PartForm:
    """The normal form of a part; its sums are private to it."""
    summands = normal_form(value, semiring)
    free = tuple(dict.fromkeys(name for summand in summands for name in free_of(summand)))
    return PartForm(
        value=value,
        summands=summands,
        free=free,
        formats=formats,
        properties=properties or {},
        semiring=semiring,
    )


def with_numbers_as_scalars(part: PartForm) -> Iterator[PartForm]:
    """The part with some of its coefficients as scalars, which a function may take as operands.

    A scalar has its number as name (``2``), which no tensor can have; equal ones are one scalar.
    """
    scaled = [at for at, summand in enumerate(part.summands) if summand.coefficient != 1]
    if part.semiring != PLUS_TIMES or len(scaled) > MOST_SCALED:
        return
    for count in range(1, len(scaled) + 1):
        for chosen in combinations(scaled, count):
            summands, numbers = list(part.summands), dict(part.numbers)
            for at in chosen:
                term = summands[at]
                name = repr(term.coefficient)
                numbers[name] = term.coefficient
                summands[at] = Summand(
                    factors=(Access(tensor=name), *term.factors), summed=term.summed
                )
            yield replace(
                part,
                summands=tuple(summands),
                formats={**part.formats, **dict.fromkeys(numbers, dense(0))},
                numbers=tuple(numbers.items()),
            )


def with_common_factor(part: PartForm, name: str) -> tuple[Access, Expression, Expression] | None:
    """``B*C + B*D`` as ``B*T``: the access of ``T``, its value ``C + D``, and the product.

    ``name`` is that of ``T``.  ``None`` if the terms have no common factor, or sum over different
    variables.  The addends must be dense: where a sparse C stores nothing, B*C is 0 even for an
    infinite B, but C + D is stored there.
    """
    first, *others = part.summands
    common = list(first.factors)
    for term in others:
        factors = list(term.factors)
        common = [factors.pop(factors.index(factor)) for factor in common if factor in factors]
    if part.semiring != PLUS_TIMES or not others or not common:
        return None
    if any(set(term.summed) != set(first.summed) for term in others):
        return None
    terms: list[tuple[int, Expression]] = []
    for summand in part.summands:
        rest = list(summand.factors)
        for factor in common:
            rest.remove(factor)
        read = [access for factor in rest for access in accesses(factor)]
        if not read or not all(part.dense(access.tensor) for access in read):
            return None
        size, sign = abs(summand.coefficient), 1 if summand.coefficient > 0 else -1
        scaled = rest if size == 1 else [Number(value=size), *rest]
        terms.append((sign, product_of(scaled)))
    value = sum_of(terms)
    inner = Access(tensor=name, variables=free_variables(value))
    product = product_of([*common, inner])
    return inner, value, Sum(variables=first.summed, value=product) if first.summed else product
