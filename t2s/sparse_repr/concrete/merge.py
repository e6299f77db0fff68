"""Merge lattices: at which coordinates of a variable an expression can be other than zero, and
which loops visit all of them.

A product is zero unless all its factors are there, so their levels are intersected; a quotient is
zero unless its dividend is there.  Other functions are zero where none of their operands is there
if they map zeros to zero (``notation/support.py``), so these are united; else all coordinates are
looked at.  An operand without the variable is there at every coordinate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from t2s.core.ops import Op
from t2s.core.walk import Term, rewrite, walk
from t2s.sparse_repr.concrete.ir import (
    Assign,
    Forall,
    Statement,
    Where,
    assigns_of,
    result_of,
    semiring_of,
)
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import (
    Access,
    Choice,
    Combine,
    Expression,
    Negative,
    Number,
    Over,
    Sum,
    Unary,
    accesses,
)
from t2s.sparse_repr.notation.support import Rest, annihilators, elsewhere
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf(Term):
    """The coordinates of a level of an operand."""

    access: Access


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything(Term):
    """All coordinates of the variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Both(Term):
    """Coordinates that all members have."""

    members: tuple[Merge, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Either(Term):
    """Coordinates that some member has; ``everything`` adds all others."""

    members: tuple[Merge, ...]
    everything: bool = False


Merge = Leaf | Everything | Both | Either


def merge_of(value: Expression, variable: str, semiring: Semiring = PLUS_TIMES) -> Merge:
    """Where an expression may be other than zero, along a variable."""
    is_zero = elsewhere(value, variable, semiring) is Rest.ZERO
    return either(*_support(value, variable, semiring), everything=not is_zero)


def _support(value: Expression, variable: str, semiring: Semiring) -> Iterator[Merge]:
    """The coordinates at which an expression differs from its value elsewhere."""
    match value:
        case Access(variables=variables):
            if variable in variables:
                yield Leaf(access=value)
        case Number():
            return
        case Negative(value=inner) | Unary(value=inner):
            yield from _support(inner, variable, semiring)
        case Over(semiring=other, value=inner):
            yield from _support(inner, variable, other)
        case Combine(operator=operator, left=left, right=right):
            strict = annihilators(operator, left, right)
            if Rest.ZERO in (elsewhere(side, variable, semiring) for side in strict):
                merges = [merge_of(side, variable, semiring) for side in strict]
                if operator is Op.DIVIDE:
                    # a divisor bounds nothing, but the loop has to follow its levels
                    merges.append(either(*_support(right, variable, semiring), everything=True))
                yield both(*merges)
            else:
                yield from _support(left, variable, semiring)
                yield from _support(right, variable, semiring)
        case Choice(condition=condition, value=inner, otherwise=other):
            if elsewhere(condition, variable, semiring) is not Rest.ZERO:
                for part in (condition, inner, other):
                    yield from _support(part, variable, semiring)
                return
            bounds = merge_of(condition, variable, semiring)
            others = tuple(_support(other, variable, semiring))
            if others or elsewhere(value, variable, semiring) is not Rest.ZERO:
                # a value that is not stored hides others: it bounds nothing, but is followed
                chosen = either(*_support(inner, variable, semiring), everything=True)
            else:
                chosen = merge_of(inner, variable, semiring)
            yield both(bounds, chosen)
            yield from others
        case _:
            raise ValueError("sums are loops in concrete index notation")


def is_everywhere(value: Expression, variable: str, semiring: Semiring) -> bool:
    """Whether an expression may be other than zero at coordinates that nothing stores."""
    return is_unbounded(merge_of(value, variable, semiring))


def is_unbounded(merge: Merge) -> bool:
    """Whether a merge has all coordinates of its variable, regardless of stored entries."""
    match merge:
        case Everything() | Either(everything=True):
            return True
        case _:
            return False


def both(*members: Merge) -> Merge:
    """Where all of these merges have a coordinate."""
    flat: list[Merge] = []
    for member in members:
        match member:
            case Everything():
                pass
            case Both(members=inner):
                flat += inner
            case _:
                flat.append(member)
    if not flat:
        return Everything()
    if all(isinstance(member, Either) and member.everything for member in flat):
        return either(*flat, everything=True)
    return flat[0] if len(flat) == 1 else Both(members=tuple(flat))


def either(*members: Merge, everything: bool) -> Merge:
    """Where one of these merges has a coordinate; all of them, with ``everything``."""
    flat: list[Merge] = []
    for member in members:
        match member:
            case Everything():
                everything = True
            case Either(members=inner, everything=also):
                flat += inner
                everything = everything or also
            case _:
                flat.append(member)
    if not flat:
        return Everything()
    if len(flat) == 1 and not everything:
        return flat[0]
    return Either(members=tuple(flat), everything=everything)


def merge_at(loop: Forall, semiring: Semiring) -> Merge:
    """The coordinates that a loop visits, in a program over a semiring."""
    merge = merge_of(expression_of(loop), loop.variable, semiring_of(loop, semiring))
    return either(merge, everything=True) if loop.everything else merge


def read_once(merge: Merge) -> Merge:
    """The same coordinates, with every leaf in one place.

    A tensor that two statements of a graph read is in the expression twice, but its levels are
    scanned once.  What two members of a union need is intersected with both of them; what a member
    of an intersection has in common with the others bounds nothing more there.  A leaf that is left
    in two places, as X in ``(X + C)*(X + D)``, stays there: see ``leaves_of``.
    """
    match merge:
        case Both(members=members):
            return _intersection([read_once(member) for member in members])
        case Either(members=members, everything=everything):
            return _union([read_once(member) for member in members], everything)
        case _:
            return merge


def leaves_of(merge: Merge) -> list[Access]:
    """The operands of a merge, each as often as it is there."""
    return [term.access for term in walk(merge) if isinstance(term, Leaf)]


def _factors(merge: Merge) -> tuple[Merge, ...]:
    """What has to be there for a member to be; nothing for one that always is."""
    match merge:
        case Both(members=members):
            return members
        case Everything():
            return ()
        case _:
            return (merge,)


def _intersection(members: Sequence[Merge]) -> Merge:
    needed = list(dict.fromkeys(factor for member in members for factor in _factors(member)))
    bounds = [factor for factor in needed if isinstance(factor, Leaf)]
    required: list[Merge] = []
    optional: list[Either] = []
    for factor in needed:
        if isinstance(factor, Either):
            rests = [
                both(*(part for part in _factors(member) if part not in bounds))
                for member in factor.members
            ]
            some = [rest for rest in rests if not isinstance(rest, Everything)]
            always = factor.everything or len(some) < len(rests)
            factor = either(*dict.fromkeys(some), everything=always)
        match factor:
            case Either(everything=True):
                optional.append(factor)
            case Everything():
                pass
            case _:
                required.append(factor)
    carried = [leaf for factor in required for leaf in leaves_of(factor)]
    found = [leaf for factor in optional for leaf in leaves_of(factor)]
    if len(set(found)) < len(found) or set(found) & set(carried):
        # they bound nothing, so each is looked for once, where the others are
        left = [Leaf(access=leaf) for leaf in dict.fromkeys(found) if leaf not in carried]
        optional = [Either(members=tuple(left), everything=True)] if left else []
    return both(*required, *optional)


def _union(members: Sequence[Merge], everything: bool) -> Merge:
    left = list(dict.fromkeys(members))
    if everything:  # all coordinates are visited, so intersections bound nothing
        leaves = dict.fromkeys(leaf for member in left for leaf in leaves_of(member))
        if len(leaves) < sum(len(leaves_of(member)) for member in left):
            left = [Leaf(access=access) for access in leaves]
    while not everything:
        counts = Counter(factor for member in left for factor in _factors(member))
        shared = next((factor for factor in counts if counts[factor] > 1), None)
        if shared is None:
            break
        having = [member for member in left if shared in _factors(member)]
        rests = [
            both(*(factor for factor in _factors(member) if factor != shared)) for member in having
        ]
        some = [rest for rest in rests if not isinstance(rest, Everything)]
        always = len(some) < len(rests)
        group = _intersection([shared, _union(some, always)]) if some else shared
        at = left.index(having[0])
        left = [member for member in left if member not in having]
        left.insert(at, group)
    return either(*left, everything=everything)


def expression_of(statement: Statement) -> Expression:
    """The assigned expression of a statement, with its producers' temporaries substituted."""
    return _expression(statement, {})


Temporaries = Mapping[str, tuple[Expression, Semiring | None]]


def _expression(statement: Statement, temporaries: Temporaries) -> Expression:
    match statement:
        case Assign(value=value, semiring=own):

            def rule(term: Term) -> Term | None:
                if not isinstance(term, Access) or term.tensor not in temporaries:
                    return None
                inner, semiring = temporaries[term.tensor]
                if semiring == own or semiring is None:
                    return inner
                return Over(semiring=semiring, value=inner)

            return rewrite(value, rule)
        case Forall(body=body):
            return _expression(body, temporaries)
        case Where(consumer=consumer, producer=producer):
            made = _expression(producer, temporaries), next(assigns_of(producer)).semiring
            return _expression(consumer, {**temporaries, result_of(producer).tensor: made})


def covered_by(
    statement: Statement, formats: Mapping[str, Format], semiring: Semiring
) -> tuple[str, ...]:
    """As ``covered_loops``, of loops with producers inside; fibers of temporaries may be empty."""
    missing: set[Access] = set()
    covered: list[str] = []
    result = result_of(statement)

    def level_is_full(access: Access, variable: str) -> bool:
        if access.tensor not in formats:
            return False
        return _level_is_full(formats[access.tensor], access, variable)

    while not isinstance(statement, Assign):
        match statement:
            case Where(consumer=consumer):
                statement = consumer
            case Forall(variable=variable, body=body):
                merge = merge_at(statement, semiring)
                full = is_full(merge, variable, level_is_full, missing)
                if variable not in result.variables or not full:
                    break
                lose_partial(merge, variable, level_is_full, missing)
                covered.append(variable)
                statement = body
    return tuple(covered)


def _level_is_full(format: Format, access: Access, variable: str) -> bool:
    return format.levels[format.modes.index(access.variables.index(variable))].full


def covered_loops(
    value: Expression, order: Sequence[str], formats: Mapping[str, Format], semiring: Semiring
) -> tuple[str, ...]:
    """The outermost loops that visit all coordinates in every iteration.

    ``value`` may have sums; ``formats`` are those in which its tensors are read.
    """
    missing: set[Access] = set()
    covered: list[str] = []

    def level_is_full(access: Access, variable: str) -> bool:
        return _level_is_full(formats[access.tensor], access, variable)

    for variable in order:
        if any(variable in term.variables for term in walk(value) if isinstance(term, Sum)):
            break
        merge = merge_of(without_sums(value), variable, semiring)
        if not is_full(merge, variable, level_is_full, missing):
            break
        lose_partial(merge, variable, level_is_full, missing)
        covered.append(variable)
    return tuple(covered)


def without_sums(value: Expression) -> Expression:
    """The expression without its sums."""
    return rewrite(value, lambda term: term.value if isinstance(term, Sum) else None)


LevelIsFull = Callable[[Access, str], bool]
"""Whether the level of an access at a variable has all coordinates."""


def is_full(merge: Merge, variable: str, level_is_full: LevelIsFull, missing: Set[Access]) -> bool:
    """Whether a merge has all coordinates even if ``missing`` accesses are absent."""
    match merge:
        case Everything():
            return True
        case Leaf(access=access):
            return access not in missing and level_is_full(access, variable)
        case Both(members=members):
            return all(is_full(member, variable, level_is_full, missing) for member in members)
        case Either(members=members, everything=everything):
            return everything or any(
                is_full(member, variable, level_is_full, missing) for member in members
            )


def lose_partial(
    merge: Merge, variable: str, level_is_full: LevelIsFull, missing: set[Access]
) -> None:
    """Collect the operands of a union that may be absent at some coordinate."""
    match merge:
        case Both(members=members):
            for member in members:
                lose_partial(member, variable, level_is_full, missing)
        case Either(members=members):
            for member in members:
                if not is_full(member, variable, level_is_full, missing):
                    missing |= set(accesses(member))
                else:
                    lose_partial(member, variable, level_is_full, missing)
        case _:
            return
