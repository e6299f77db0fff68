"""Which coordinates the bit vectors of a program have, as unions of intersections of those built.

A ``BitSet`` is a monotone function of the vectors that ``BuildBits`` puts: a set of terms, each a
set of their names, of which no term has another one inside.  That form is unique, so two scans
whose sets are equal make equally many iterations, with the same coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from itertools import product

from t2s.core.expr import Apply, Expr, Local
from t2s.core.ops import Op
from t2s.patterns.ir import (
    Bind,
    BuildBits,
    Foreach,
    JoinKind,
    PatternStatement,
    Pop,
    Push,
    ScanHeader,
    statements,
)

BitSet = frozenset[frozenset[str]]


def one_set(name: str) -> BitSet:
    """The coordinates of one vector."""
    return frozenset({frozenset({name})})


def united(*sets: BitSet) -> BitSet:
    """What is in one of the sets."""
    return _minimal(frozenset().union(*sets))


def intersected(*sets: BitSet) -> BitSet:
    """What is in all of the sets."""
    return reduce(lambda a, b: _minimal(frozenset(x | y for x, y in product(a, b))), sets)


def is_inside(inner: BitSet, outer: BitSet) -> bool:
    """Whether one set is in the other, whatever the vectors are."""
    return united(inner, outer) == outer


def _minimal(terms: BitSet) -> BitSet:
    return frozenset(term for term in terms if not any(other < term for other in terms))


def bit_sets(body: tuple[PatternStatement, ...]) -> Mapping[str, BitSet]:
    """The sets of all queues of bits of a program, as far as words are copied, and-ed and or-ed."""
    found: dict[str, BitSet] = {}
    words: dict[str, BitSet] = {}
    for statement in statements(body):
        match statement:
            case BuildBits(words=queue):
                found[queue] = one_set(queue)
            case Foreach(body=inside):
                for one in inside:
                    if isinstance(one, Pop) and one.queue in found:
                        words[one.target] = found[one.queue]
                for one in inside:
                    made = _set_of(one.value, words) if isinstance(one, Bind | Push) else None
                    if isinstance(one, Bind) and made is not None:
                        words[one.target] = made
                    if isinstance(one, Push) and made is not None:
                        found[one.queue] = made
    return found


def _set_of(value: Expr, words: Mapping[str, BitSet]) -> BitSet | None:
    match value:
        case Local(name=name):
            return words.get(name)
        case Apply(operator=Op.AND | Op.OR as operator, operands=(left, right)):
            one, other = _set_of(left, words), _set_of(right, words)
            if one is None or other is None:
                return None
            return united(one, other) if operator is Op.OR else intersected(one, other)
    return None


def set_of_scan(header: ScanHeader, sets: Mapping[str, BitSet]) -> BitSet | None:
    """The coordinates that a scan visits; ``None`` if that is not known."""
    if header.left not in sets:
        return None
    if header.right is None:
        return sets[header.left]
    if header.right not in sets:
        return None
    join = intersected if header.join is JoinKind.AND else united
    return join(sets[header.left], sets[header.right])
