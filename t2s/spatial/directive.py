"""Directives as values: what the user asked for, and the line that asked.

A directive is checked as far as its own arguments go when the fluent call is made
(``schedule.py``) and carried out when the design is lowered, by the pass next to its class
(``directives``).  Loops and functions are named by the user's names.  This file has the base class,
and the directives that create functions, which more than their own pass has to know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from t2s.core.expr import Expr
from t2s.core.location import SourceLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """Base of all directives; ``text`` is the call as the user would write it."""

    may_be_on_host: ClassVar[bool] = False
    """Whether a function on the host, which only orders an array, can take it."""

    location: SourceLocation
    text: str

    @property
    def new_loops(self) -> tuple[str, ...]:
        """Names of the loops that the directive creates."""
        return ()

    @property
    def new_functions(self) -> tuple[str, ...]:
        """Names of the functions that the directive creates."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolateProducer(Directive):
    """A value moves into ``producers`` (farthest from the function first).

    ``method`` is the method called.  ``operand`` is the value's name or text.  ``target`` is the
    expression that moves; ``None`` stands for the one element of the operand of that name.
    ``on_host``: the first producer is on the host.  ``shared``: the first producer was isolated
    from another function before.
    """

    method: str
    operand: str
    target: Expr | None
    producers: tuple[str, ...]
    on_host: bool
    shared: bool

    @property
    def new_functions(self) -> tuple[str, ...]:
        return self.producers[1:] if self.shared else self.producers


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolateConsumer(Directive):
    """The saving of results moves into ``consumers`` (nearest to the function first).

    ``on_host``: the last consumer is on the host.
    """

    consumers: tuple[str, ...]
    on_host: bool

    @property
    def new_functions(self) -> tuple[str, ...]:
        return self.consumers


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseDirective(Directive):
    """Base of the directives that need a matrix in a representation."""
