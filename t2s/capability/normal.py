"""The normal form of an expression: a sum of terms, each a sum of products of factors.

A factor is an access, or a subtree that only an equal one matches: a quotient, a minimum or a
maximum, a number of a semiring other than plus-times.  ``-`` is ``+`` with a coefficient -1.  That
the normal form is the same function is a theorem about sums of products in a commutative semiring.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from typing import assert_never

from t2s.capability.description import ExternalFunction
from t2s.capability.parts import product_of, sum_of
from t2s.capability.slices import is_dense
from t2s.core.names import NameSupply
from t2s.core.ops import OPERATORS, Op
from t2s.core.walk import Term, rebuild, walk
from t2s.sparse_repr.formats import Format, dense
from t2s.sparse_repr.notation.ir import (
    Access,
    Combine,
    Expression,
    Negative,
    Number,
    Sum,
    accesses,
    free_variables,
    variables_of,
)
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring

MOST_SCALED = 4
"""Terms with a coefficient of which all subsets are tried as products with a scalar."""

MOST_SUMMANDS = 64
"""Products that an expression is multiplied out to; a larger one is a factor as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summand(Term):
    """``coefficient`` times the sum over ``summed`` of the product of the factors."""

    factors: tuple[Expression, ...]
    summed: tuple[str, ...] = ()
    coefficient: float | int = 1


def normal_form(value: Expression, semiring: Semiring = PLUS_TIMES) -> tuple[Summand, ...]:
    """The terms of an expression, from left to right.

    No variable is summed by two of a product, nor by one term while it is free in another one.
    """
    normal = _Normal(semiring, NameSupply(variables_of(value)))
    terms = normal.terms(value)
    free = tuple({name for one in terms for name in free_of(one)})
    return tuple(normal.renamed(one, free) for one in terms)


@lru_cache(maxsize=1024)
def wanted_form(function: ExternalFunction, semiring: Semiring) -> tuple[Summand, ...]:
    """The normal form of what a function computes, made once."""
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
                return tuple(_scaled(one, -1) for one in self.terms(inner))
            case Sum(variables=variables, value=inner):
                return tuple(
                    Summand(
                        factors=one.factors,
                        summed=(*variables, *one.summed),
                        coefficient=one.coefficient,
                    )
                    for one in (self.renamed(one, variables) for one in self.terms(inner))
                )
            case Combine(operator=Op.ADD, left=left, right=right):
                return (*self.terms(left), *self.terms(right))
            case Combine(operator=Op.SUBTRACT, left=left, right=right) if self.plain:
                subtracted = tuple(_scaled(one, -1) for one in self.terms(right))
                return (*self.terms(left), *subtracted)
            case Combine(operator=Op.MULTIPLY, left=left, right=right) if self.multiplies:
                return self._product(value, self.terms(left), self.terms(right))
            case Combine() | Negative():
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
        """The product of two terms; a variable that only one of them sums gets a name of its own.

        ``sum(k, a(k)) * b(k)`` sums another k than that of b.
        """
        one, other = self._apart(one, other), self._apart(other, one)
        return Summand(
            factors=(*one.factors, *other.factors),
            summed=(*one.summed, *other.summed),
            coefficient=one.coefficient * other.coefficient,
        )

    def _apart(self, one: Summand, other: Summand) -> Summand:
        used = (name for factor in other.factors for name in variables_of(factor))
        return self.renamed(one, (*used, *other.summed))

    def renamed(self, one: Summand, taken: Sequence[str]) -> Summand:
        """The term with other names for those of its sums that are taken."""
        clashes = [name for name in one.summed if name in taken]
        if not clashes:
            return one
        names = {name: self.names.fresh(f"{name}_own") for name in clashes}
        return Summand(
            factors=tuple(renamed(factor, names) for factor in one.factors),
            summed=tuple(names.get(name, name) for name in one.summed),
            coefficient=one.coefficient,
        )


def _scaled(one: Summand, number: int) -> Summand:
    return Summand(factors=one.factors, summed=one.summed, coefficient=number * one.coefficient)


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
                left = {name: new for name, new in names.items() if name not in bound}
                return Sum(variables=bound, value=renamed(term.value, left))
        return rebuild(term, visit)

    result: Expression = visit(value)  # type: ignore[assignment]
    return result


def free_of(one: Summand) -> tuple[str, ...]:
    """The variables of a term that it does not sum over."""
    found = (name for factor in one.factors for name in free_variables(factor))
    return tuple(dict.fromkeys(name for name in found if name not in one.summed))


@dataclass(frozen=True, kw_only=True)
class PartForm:
    """A part in normal form, and what is known of its tensors.

    ``numbers`` are those that are read as scalars, by the names of these.
    """

    value: Expression
    summands: tuple[Summand, ...]
    free: tuple[str, ...]
    formats: Mapping[str, Format]
    properties: Mapping[str, tuple[str, ...]]
    semiring: Semiring
    numbers: tuple[tuple[str, float | int], ...] = ()

    def dense(self, tensor: str) -> bool:
        """Whether all levels of a tensor are dense and whole modes."""
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
            for one in self.summands
            for factor in one.factors
            for term in walk(factor)
            if isinstance(term, Sum)
            for name in term.variables
        )

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """Free variables, then those that are summed."""
        summed = (name for one in self.summands for name in one.summed)
        return tuple(dict.fromkeys((*self.free, *summed)))

    @cached_property
    def reads(self) -> tuple[Access, ...]:
        """All accesses."""
        return tuple(
            access for one in self.summands for factor in one.factors for access in accesses(factor)
        )


def part_form(
    value: Expression,
    formats: Mapping[str, Format],
    properties: Mapping[str, tuple[str, ...]] | None = None,
    semiring: Semiring = PLUS_TIMES,
) -> PartForm:
    """The normal form of a part; its sums are private to it."""
    summands = normal_form(value, semiring)
    free = tuple(dict.fromkeys(name for one in summands for name in free_of(one)))
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

    Such a scalar is named after its number (``2``), as no tensor can be; equal ones are one scalar.
    """
    scaled = [at for at, one in enumerate(part.summands) if one.coefficient != 1]
    if part.semiring != PLUS_TIMES or len(scaled) > MOST_SCALED:
        return
    for count in range(1, len(scaled) + 1):
        for chosen in combinations(scaled, count):
            summands, numbers = list(part.summands), dict(part.numbers)
            for at in chosen:
                one = summands[at]
                name = repr(one.coefficient)
                numbers[name] = one.coefficient
                summands[at] = Summand(
                    factors=(Access(tensor=name), *one.factors), summed=one.summed
                )
            yield replace(
                part,
                summands=tuple(summands),
                formats={**part.formats, **dict.fromkeys(numbers, dense(0))},
                numbers=tuple(numbers.items()),
            )


def with_common_factor(part: PartForm, name: str) -> tuple[Access, Expression, Expression] | None:
    """``B*C + B*D`` as ``B*T``: the access of ``T``, its value ``C + D``, and the product.

    ``name`` is that of ``T``.  ``None`` where terms have nothing in common, or sum over other
    variables.  What is added up has to be dense: beside a sparse C all that it does not store is 0,
    whatever B is there, but C + D is stored everywhere.
    """
    first, *others = part.summands
    common = list(first.factors)
    for one in others:
        left = list(one.factors)
        common = [left.pop(left.index(factor)) for factor in common if factor in left]
    if part.semiring != PLUS_TIMES or not others or not common:
        return None
    if any(set(one.summed) != set(first.summed) for one in others):
        return None
    terms: list[tuple[int, Expression]] = []
    for one in part.summands:
        rest = list(one.factors)
        for factor in common:
            rest.remove(factor)
        read = [access for factor in rest for access in accesses(factor)]
        if not read or not all(part.dense(access.tensor) for access in read):
            return None
        size, sign = abs(one.coefficient), 1 if one.coefficient > 0 else -1
        scaled = rest if size == 1 else [Number(value=size), *rest]
        terms.append((sign, product_of(scaled)))
    value = sum_of(terms)
    inner = Access(tensor=name, variables=free_variables(value))
    product = product_of([*common, inner])
    return inner, value, Sum(variables=first.summed, value=product) if first.summed else product
