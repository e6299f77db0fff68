"""The one walker: children, rebuilding and rewriting of any frozen dataclass tree.

Every IR node derives from ``Term``.  The children of a term are the terms found in its fields,
directly or inside tuples, in field order.  Nothing else in t2s traverses trees by hand.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar, cast


class Term:
    """Base of all walkable IR nodes; subclasses are frozen dataclasses."""

    __slots__ = ()


T = TypeVar("T", bound=Term)


def field_names(term: Term) -> tuple[str, ...]:
    """The names of the fields of a term, in order."""
    kind: Any = type(term)
    return _names_of(kind)


@cache
def _names_of(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


PLAIN = frozenset(("str", "int", "float", "bool", "tuple", "None", "Type", "Op", "SourceLocation"))
"""What has no terms inside: a field whose annotation says nothing else is not looked at."""


@cache
def _term_names_of(kind: type[Any]) -> tuple[str, ...]:
    """The names of the fields that may hold terms; most terms are leaves."""
    return tuple(
        field.name
        for field in dataclasses.fields(kind)
        if not (isinstance(field.type, str) and PLAIN.issuperset(re.findall(r"\w+", field.type)))
    )


def children(term: Term) -> list[Term]:
    """The direct sub-terms, in field order."""
    terms: list[Term] = []
    kind: Any = type(term)
    for name in _term_names_of(kind):
        value = getattr(term, name)
        if isinstance(value, Term):
            terms.append(value)
        elif isinstance(value, tuple):
            terms += [item for item in value if isinstance(item, Term)]
    return terms


def walk(term: Term) -> Iterator[Term]:
    """The term and all its sub-terms, parents first."""
    waiting = [term]
    while waiting:
        node = waiting.pop()
        yield node
        if inside := children(node):
            inside.reverse()
            waiting += inside


def distinct(term: Term, into: Callable[[Term], bool] | None = None) -> Iterator[Term]:
    """As ``walk``, but an object that is a sub-term several times comes once.

    Nothing inside of terms for which ``into`` is false is visited.
    """
    waiting, seen = [term], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if (into is None or into(node)) and (inside := children(node)):
            inside.reverse()
            waiting += inside


def rebuild(term: T, replace: Callable[[Term], Term]) -> T:
    """A copy of ``term`` with every direct child replaced; ``term`` itself if nothing changes."""
    changes: dict[str, object] = {}
    kind: Any = type(term)
    for name in _term_names_of(kind):
        value = getattr(term, name)
        new: object = value
        if isinstance(value, Term):
            new = replace(value)
        elif isinstance(value, tuple) and any(isinstance(item, Term) for item in value):
            items = tuple(replace(item) if isinstance(item, Term) else item for item in value)
            new = value if all(a is b for a, b in zip(items, value, strict=True)) else items
        if new is not value:
            changes[name] = new
    if not changes:
        return term
    # as ``dataclasses.replace``, which takes several times as long
    fields = {name: getattr(term, name) for name in _names_of(kind)}
    return cast(T, kind(**(fields | changes)))


def rewrite(
    term: T,
    rule: Callable[[Term], Term | None],
    into: Callable[[Term], bool] | None = None,
) -> T:
    """Bottom-up rewriting: ``rule`` returns a replacement, or ``None`` to keep the node.

    Neither the depth of a term matters nor how often it has one object as a sub-term: that is
    rewritten once, and is one object in the result too.  Terms for which ``into`` is false stay as
    they are.
    """
    done: dict[int, Term] = {}

    def replaced(child: Term) -> Term:
        return done[id(child)]

    waiting: list[tuple[Term, bool]] = [(term, False)]
    while waiting:
        node, entered = waiting.pop()
        if id(node) in done:
            continue
        if into is not None and not into(node):
            done[id(node)] = node
            continue
        rebuilt = node
        kind: Any = type(node)
        if _term_names_of(kind):
            if not entered and (inside := [x for x in children(node) if id(x) not in done]):
                waiting.append((node, True))
                waiting += [(child, False) for child in reversed(inside)]
                continue
            rebuilt = rebuild(node, replaced)
        replacement = rule(rebuilt)
        done[id(node)] = rebuilt if replacement is None else replacement
    return cast(T, done[id(term)])
