"""Let-bind shared and deep parts of large expressions, so that each part is small.

Expressions are DAGs: a value that occurs several times may be one object.  Expanded to a tree, a
chain of shared values is exponentially large, and a sum of thousands of terms is thousands of
operators deep.  ``bind_shared`` names shared values and splits deep ones, so that each part can be
traversed as a tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import cast

from t2s.core.expr import Const, Expr, Index, Local, Parameter, Read
from t2s.core.walk import Term, children, distinct, rebuild, walk

DEEP = 200
"""Deeper expressions are split."""

DEPTH_OF_PART = 64
"""How deep the parts are then."""

_LEAVES = (Const, Index, Local, Parameter, Read)


def is_repetitive(expr: Term) -> bool:
    """Whether an expression, expanded to a tree, is much larger than its DAG."""
    own = sum(1 for _ in distinct(expr))
    return next(islice(walk(expr), 4 * own + 256, None), None) is not None


def bottom_up(expr: Term) -> Iterator[Term]:
    """All sub-terms, children first; a shared object occurs once."""
    waiting, done = [(expr, False)], set[int]()
    while waiting:
        node, entered = waiting.pop()
        if id(node) in done:
            continue
        if entered:
            done.add(id(node))
            yield node
            continue
        waiting.append((node, True))
        waiting.extend((child, False) for child in reversed(tuple(children(node))))


def depth_of(expr: Term) -> int:
    """The depth of a term, at least 1."""
    depths: dict[int, int] = {}
    for node in bottom_up(expr):
        depths[id(node)] = 1 + max((depths[id(child)] for child in children(node)), default=0)
    return depths[id(expr)]


def bind_shared(expr: Expr, name: Callable[[], str]) -> tuple[list[tuple[str, Expr]], Expr]:
    """The parts to compute first, each with a fresh name, and the remaining expression."""
    shared = _shared(expr) if is_repetitive(expr) else frozenset[int]()
    if not shared and depth_of(expr) <= DEEP:
        return [], expr
    depths: dict[int, int] = {}
    parts: list[tuple[str, Expr]] = []
    bound: dict[int, Term] = {}
    for node in bottom_up(expr):
        depth = 1 + max((depths[id(child)] for child in children(node)), default=0)
        value = rebuild(node, lambda child: bound[id(child)])
        bind = id(node) in shared or depth >= DEPTH_OF_PART
        if bind and isinstance(value, Expr) and node is not expr:
            local = Local(name=name(), type=value.type)
            parts.append((local.name, value))
            depth, value = 0, local
        depths[id(node)], bound[id(node)] = depth, value
    return parts, cast(Expr, bound[id(expr)])


def _shared(expr: Expr) -> frozenset[int]:
    """The objects that occur in several others, and are worth a name."""
    uses: Counter[int] = Counter()
    for node in distinct(expr):
        uses.update(id(c) for c in children(node) if isinstance(c, Expr) and not _is_leaf(c))
    return frozenset(at for at, count in uses.items() if count > 1)


def _is_leaf(term: Term) -> bool:
    return isinstance(term, _LEAVES)
