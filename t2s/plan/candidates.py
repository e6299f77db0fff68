"""What functions could compute: all parts of a statement, and the mappings of each.

A part is some of the factors of a product, or some of the terms of a sum, in each order: operands
of ``+`` and ``*`` may be exchanged, and every order that is printed differently counts as a pair of
its own [Mosaic, Table 5].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations

from t2s.capability.description import ExternalFunction
from t2s.capability.mapping import Mapping as PartMapping
from t2s.capability.normal import PartForm, part_form
from t2s.capability.parts import factors_of, find_part, product_of, sum_of, terms_of
from t2s.capability.refusals import Refusal
from t2s.capability.reshape import EVERYTHING, Asked, Reshape, fewest, fewest_fixed
from t2s.core.errors import UserError
from t2s.core.walk import walk
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import (
    ADDITIVE,
    Access,
    Assignment,
    Combine,
    Expression,
    Negative,
    Number,
    Sum,
    accesses,
    print_expression,
)

MOST_OPERANDS = 5
"""Factors of a product, and terms of a sum, of which all subsets are parts."""


_Numbered = list[tuple[ExternalFunction, list[tuple[int, ...]]]]
"""Functions with the sets of variables that they fix, by the numbers of the variables in a part."""


class FixedVariables:
    """Which variables of parts are fixed in calls of functions.

    It is found once for parts that differ in the names of their tensors and variables only, since a
    search meets them again and again, and once for functions that differ in their types only, such
    as ``sgemm`` and ``dgemm``.
    """

    def __init__(
        self,
        functions: Sequence[ExternalFunction],
        reshape: Reshape,
        extents: Mapping[str, int],
    ) -> None:
        self.functions, self.reshape, self.extents = functions, reshape, extents
        self._formats: list[Format] = []
        self._known: dict[object, _Numbered] = {}
        self._alike: dict[object, list[ExternalFunction]] = {}
        for one in functions:
            # a checker may look at anything, so its function is like no other
            plain = replace(one.capability, types=()) if one.checker is None else id(one)
            self._alike.setdefault((plain, one.hardware is None), []).append(one)

    def of(self, part: PartForm) -> Iterator[tuple[ExternalFunction, tuple[str, ...]]]:
        """The functions that compute a part, each with every set of variables it may fix."""
        numbers: dict[str, int] = {}
        key = self._key(part, numbers)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._found(part, numbers)
        variables = tuple(numbers)
        for function, sets in found:
            for one in sets:
                yield function, tuple(variables[number] for number in one)

    def _found(self, part: PartForm, numbers: Mapping[str, int]) -> _Numbered:
        fixed: dict[ExternalFunction, list[tuple[int, ...]]] = {}
        for first, *others in self._alike.values():
            sets = fewest_fixed(part, first, self.reshape, self.extents)
            numbered = [tuple(numbers[name] for name in one) for one in sets]
            fixed |= dict.fromkeys((first, *others), numbered)
        return [(one, fixed[one]) for one in self.functions if fixed[one]]

    def _key(self, part: PartForm, numbers: dict[str, int]) -> object:
        """What parts that are alike have in common; adds the variables to ``numbers``."""
        tensors: dict[str, int] = {}
        terms: list[object] = []
        for term in walk(part.value):
            match term:
                case Access():
                    used = (numbers.setdefault(name, len(numbers)) for name in term.variables)
                    number = tensors.setdefault(term.tensor, len(tensors))
                    terms.append((number, *used))
                case Sum():
                    used = (numbers.setdefault(name, len(numbers)) for name in term.variables)
                    terms.append(("sum", *used))
                case Combine():
                    terms.append(term.operator)
                case Number():
                    terms.append(("number", type(term.value), term.value))
                case Negative():
                    terms.append("negative")
        for name in part.variables:
            numbers.setdefault(name, len(numbers))
        stored = tuple(
            (self._number_of(part.formats[name]), part.properties.get(name)) for name in tensors
        )
        known = tuple(self.extents.get(name) for name in numbers)
        return tuple(terms), stored, known, part.semiring

    def _number_of(self, format: Format) -> int:
        """Equal formats have equal numbers, which are faster to hash."""
        if format not in self._formats:
            self._formats.append(format)
        return self._formats.index(format)


@dataclass(frozen=True, kw_only=True)
class MappedPart:
    """A part in one order of its operands, and the mappings of it by a function."""

    part: Expression
    function: ExternalFunction
    mappings: tuple[PartMapping, ...]

    @property
    def pair(self) -> tuple[str, str]:
        """The part as it is printed, and the function: its name, and that of its library."""
        return print_expression(self.part), self.function.full_name


def parts_of(assignment: Assignment) -> tuple[Expression, ...]:
    """All parts of the expression, larger ones of a product or a sum behind smaller ones."""
    found: dict[Expression, None] = {}
    for value in _groups(assignment.value):
        terms = terms_of(value)
        if len(terms) > 1:
            for size in range(2, min(len(terms), MOST_OPERANDS) + 1):
                for some in combinations(terms, size):
                    found.setdefault(sum_of(some))
            continue
        factors = factors_of(value)
        for size in range(1, min(len(factors), MOST_OPERANDS) + 1):
            for chosen in combinations(factors, size):
                found.setdefault(product_of(chosen))
    return tuple(found)


def _groups(value: Expression) -> Iterator[Expression]:
    """Every product and every sum of an expression, each as a whole."""
    inner: set[int] = set()
    for term in walk(value):
        match term:
            case Combine(operator=operator):
                for below in (term.left, term.right):
                    same = isinstance(below, Combine) and (
                        below.operator is operator
                        or (operator in ADDITIVE and below.operator in ADDITIVE)
                    )
                    if same:
                        inner.add(id(below))
                if id(term) not in inner:
                    yield term
            case Sum() | Negative():
                continue
            case _:
                if not any(_is_operand(term, other) for other in walk(value)):
                    yield term  # type: ignore[misc]


def _is_operand(term: object, other: object) -> bool:
    return isinstance(other, Combine) and (other.left is term or other.right is term)


def _orders(part: Expression) -> tuple[Expression, ...]:
    """The part with its operands in every order that is printed differently."""
    terms = terms_of(part)
    made: list[Expression]
    if len(terms) > 1:
        made = [sum_of(order) for order in permutations(terms)]
    else:
        made = [product_of(order) for order in permutations(factors_of(part))]
    return tuple({print_expression(one): one for one in made}.values())


def candidates(
    assignment: Assignment,
    functions: Sequence[ExternalFunction],
    reshape: Reshape = EVERYTHING,
    extents: Mapping[str, int] | None = None,
) -> tuple[MappedPart, ...]:
    """All pairs of a part and a function that computes it, with the fewest fixed variables."""
    formats = {tensor.name: tensor.format for tensor in assignment.tensors}
    properties = {tensor.name: tensor.properties for tensor in assignment.tensors}
    found = []
    for part in parts_of(assignment):
        try:
            taken = find_part(assignment, part, None)
        except UserError:
            continue  # it is there twice, so it has no name of its own
        form = part_form(taken.value, formats, properties, assignment.semiring)
        for function in functions:
            mapped = fewest(form, function, reshape, extents)
            if mapped:
                found += [
                    MappedPart(part=order, function=function, mappings=mapped)
                    for order in _orders(part)
                ]
    return tuple(found)


def refusal_of(
    assignment: Assignment,
    part: Expression,
    function: ExternalFunction,
    reshape: Reshape = EVERYTHING,
    extents: Mapping[str, int] | None = None,
) -> UserError | None:
    """The first rule by which a function does not compute a part; ``None`` if it does."""
    found = _refused(assignment, part, function, reshape, extents)
    return None if found is None else found.error()


def nearest_miss(
    assignment: Assignment,
    function: ExternalFunction,
    reshape: Reshape = EVERYTHING,
    extents: Mapping[str, int] | None = None,
) -> str:
    """Of a function that computes no part: the part that comes nearest, and what is missing."""
    found: list[tuple[int, int, UserError]] = []
    for number, part in enumerate(parts_of(assignment)):
        try:
            refused = _refused(assignment, part, function, reshape, extents)
        except UserError:
            continue  # it is there twice
        if refused is not None:
            distance, error = refused.ranked()
            found.append((distance, -number, error))  # of equal ones the larger part
    if not found:
        return "there are no parts"
    nearest = min(found, key=lambda one: one[:2])[2]
    return f"{nearest.message}; expected {nearest.expected}, given {nearest.given}"


def _refused(
    assignment: Assignment,
    part: Expression,
    function: ExternalFunction,
    reshape: Reshape,
    extents: Mapping[str, int] | None,
) -> Refusal | None:
    formats = {tensor.name: tensor.format for tensor in assignment.tensors}
    properties = {tensor.name: tensor.properties for tensor in assignment.tensors}
    taken = find_part(assignment, part, assignment.location)
    form = part_form(taken.value, formats, properties, assignment.semiring)
    if fewest(form, function, reshape, extents):
        return None
    return Refusal(
        assignment=assignment,
        part=form,
        function=function,
        reshape=reshape,
        asked=Asked(),
        extents=extents or {},
        location=assignment.location,
    )


def distinct_calls(found: Sequence[MappedPart]) -> tuple[PartMapping, ...]:
    """The mappings without those that differ in the order of operands that may be exchanged."""
    seen: dict[object, PartMapping] = {}
    for one in found:
        for mapping in one.mappings:
            seen.setdefault(_call_key(mapping), mapping)
    return tuple(seen.values())


def _call_key(mapping: PartMapping) -> object:
    """What a call is: the function, what is fixed, and its operands, in order if that matters."""
    capability = mapping.function.capability
    views = [(view.access, view.modes) for view in mapping.operands]
    shapes = {}
    for access in accesses(capability.value):
        needs = capability.needs_of(access.tensor)
        own = access.tensor == capability.overwritten
        shapes[access.tensor] = (access.variables, needs.formats, needs.strides, own)
    alike = len(set(shapes.values())) == 1 and len(shapes) == len(views)
    commutes = all(
        not isinstance(term, Combine) or term.operator.value in "+*"
        for term in walk(capability.value)
    )
    order = frozenset(views) if alike and commutes else tuple(views)
    return mapping.function, mapping.fixed, order
