"""The one walker: children, rebuilding and rewriting of any frozen dataclass tree.

Every IR node derives from ``Term``.  The children of a term are the terms found in its fields,
directly or inside tuples, in field order.  Nothing else in t2s traverses trees by hand.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar, cast


class Term:
    """Base of all walkable IR nodes; subclasses are frozen dataclasses."""

    __slots__ = ()


T = TypeVar("T", bound=Term)


def _field_names(term: Term) -> tuple[str, ...]:
    return _names_of(cast(Any, type(term)))


@cache
def _names_of(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def children(term: Term) -> Iterator[Term]:
    """The direct sub-terms, in field order."""
    for name in _field_names(term):
        value = getattr(term, name)
        if isinstance(value, Term):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Term))


def walk(term: Term) -> Iterator[Term]:
    """The term and all its sub-terms, parents first."""
    yield term
    for child in children(term):
        yield from walk(child)


def rebuild(term: T, replace: Callable[[Term], Term]) -> T:
    """A copy of ``term`` with every direct child replaced; ``term`` itself if nothing changes."""
    changes: dict[str, object] = {}
    for name in _field_names(term):
        value = getattr(term, name)
        new: object = value
        if isinstance(value, Term):
            new = replace(value)
        elif isinstance(value, tuple) and any(isinstance(item, Term) for item in value):
            items = tuple(replace(item) if isinstance(item, Term) else item for item in value)
            new = value if all(a is b for a, b in zip(items, value, strict=True)) else items
        if new is not value:
            changes[name] = new
    return cast(T, dataclasses.replace(cast(Any, term), **changes)) if changes else term


def rewrite(term: T, rule: Callable[[Term], Term | None]) -> T:
    """Bottom-up rewriting: ``rule`` returns a replacement, or ``None`` to keep the node."""

    def visit(node: Term) -> Term:
        rebuilt = rebuild(node, visit)
        replacement = rule(rebuilt)
        return rebuilt if replacement is None else replacement

    return cast(T, visit(term))
