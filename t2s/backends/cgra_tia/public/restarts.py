"""Sums that begin again without a kind of firing of their own.

A sum over a loop has a first firing, which does not look at what the register holds.  If whatever
fires before it leaves a zero there, the first firing is one like those that follow: one tag fewer,
and one instruction fewer in every PE that the tag comes by.
"""

from __future__ import annotations

from dataclasses import replace

from t2s.backends.cgra_tia.public.firings import FileElement, FiringKind, WordProcess, kept
from t2s.core.expr import Const, Expr, Local, simplify
from t2s.core.types import Type
from t2s.core.walk import Term, rewrite


def without_restarts(process: WordProcess) -> None:
    """Make kinds of firings one that differ in a register being zero, where that can be had."""
    for element in dict.fromkeys(process.elements.values()):
        if process.initial.get(element, 0):
            continue
        for first in range(len(process.kinds)):
            other = _same_from_zero(process, element, first)
            if other is not None:
                _merge(process, element, first, other)
                break


def _same_from_zero(process: WordProcess, element: FileElement, first: int) -> int | None:
    """The kind that does what the first one does if the element is zero, which can be had."""
    sequence = process.sequence
    pairs = set(zip(sequence[:-1].tolist(), sequence[1:].tolist(), strict=True))
    before = {one for one, after in pairs if after == first}
    if any(after != first for one, after in pairs if one in before) or first in before:
        return None
    for number, kind in enumerate(process.kinds):
        if number != first and _from_zero(kind, element) == process.kinds[first]:
            return number
    return None


def _from_zero(kind: FiringKind, element: FileElement) -> FiringKind:
    """What a firing does if an element of a register file holds zero."""

    def value(expr: Expr) -> Expr:
        def rule(term: Term) -> Term | None:
            if isinstance(term, Local) and term == kept(element, term.type):
                return Const(value=0, type=term.type)
            return None

        return simplify(rewrite(expr, rule))

    return replace(
        kind,
        sends=tuple((stream, value(sent)) for stream, sent in kind.sends),
        writes=tuple((one, value(written)) for one, written in kind.writes),
    )


def _merge(process: WordProcess, element: FileElement, first: int, other: int) -> None:
    """Let all kinds before the first one leave a zero, and make it the other one."""
    sequence = process.sequence
    before = set(sequence[:-1][sequence[1:] == first].tolist())
    zero = Const(value=0, type=_type(process, element))
    process.kinds = tuple(
        replace(
            kind,
            writes=(*(pair for pair in kind.writes if pair[0] != element), (element, zero)),
        )
        if number in before
        else kind
        for number, kind in enumerate(process.kinds)
    )
    sequence = sequence.copy()
    sequence[sequence == first] = other
    process.sequence = sequence


def _type(process: WordProcess, element: FileElement) -> Type:
    return next(
        register.type for register in process.node.registers if register.name == element.register
    )
