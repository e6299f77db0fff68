"""A machine at its point: what depends on the point is decided, and only what can happen is kept.

An alternative that would use an element outside of a channel array keeps its condition and loses
its inside: it has no alternatives, and is never taken in a design that keeps its protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from t2s.core.expr import Const, Expr
from t2s.core.walk import Term, rebuild, rewrite
from t2s.graph.body import Statement
from t2s.graph.graph import Channel
from t2s.graph.machine import Choice, Machine, Mode, Rule
from t2s.graph.points import fold

Point = tuple[int, ...]


def constant_element(index: tuple[Expr, ...], channel: Channel) -> Point | None:
    """The element that an index always means; ``None`` if it moves, or is outside."""
    place: list[int] = []
    for expr, extent in zip(index, channel.shape, strict=True):
        if not (isinstance(expr, Const) and 0 <= int(expr.value) < extent):
            return None
        place.append(int(expr.value))
    return tuple(place)


@dataclass(frozen=True, kw_only=True)
class Ends:
    """The channels of a machine.

    ``taken`` and ``put`` give the new name of a channel that is used, or ``None`` where its element
    is outside of the array.
    """

    taken: Callable[[str], str | None]
    put: Callable[[str], str | None]


def at_point(node: Machine, ends: Ends) -> Machine:
    """The machine, whose space dimensions have one index each."""
    pruning = _Pruning(node, ends)
    modes: dict[str, Mode] = {}
    waiting = [node.modes[0].name]
    while waiting:
        name = waiting.pop(0)
        if name in modes:
            continue
        modes[name] = pruning.mode(node.mode(name))
        waiting += _followers(modes[name].choices)
    kept = tuple(modes[mode.name] for mode in node.modes if mode.name in modes)
    heads = tuple(
        replace(head, channel=pruning.used[head.channel])
        for head in node.heads
        if head.channel in pruning.used
    )
    return replace(node, modes=kept, heads=heads)


def _followers(choices: tuple[Choice, ...]) -> list[str]:
    names: list[str] = []
    for choice in choices:
        match choice.inside:
            case Rule(next=None):
                pass
            case Rule(next=str() as name):
                names.append(name)
            case tuple() as inner:
                names += _followers(inner)
    return names


def without_puts(node: Machine, channels: Collection[str]) -> Machine:
    """The machine without the tokens that it puts into some channels."""

    def rule(term: Term) -> Term | None:
        match term:
            case Rule(puts=puts) if any(put.channel in channels for put in puts):
                return replace(term, puts=tuple(p for p in puts if p.channel not in channels))
        return None

    return rewrite(node, rule)


class _Pruning:
    def __init__(self, node: Machine, ends: Ends) -> None:
        self._fixed = {dimension.name: dimension.minimum for dimension in node.space}
        self._ranges = {name: (at, at) for name, at in self._fixed.items()}
        self._ends = ends
        self.used: dict[str, str] = {}

    def _folded(self, term: Term) -> Term:
        return fold(term, self._ranges, self._fixed) if isinstance(term, Expr) else term

    def _needs(self, names: tuple[str, ...]) -> tuple[str, ...] | None:
        found: list[str] = []
        for name in names:
            element = self._ends.taken(name)
            if element is None:
                return None
            self.used[name] = element
            found.append(element)
        return tuple(found)

    def mode(self, mode: Mode) -> Mode:
        needs = self._needs(mode.needs)
        if needs is None:
            return replace(mode, needs=(), choices=())
        return replace(mode, needs=needs, choices=self._choices(mode.choices))

    def _choices(self, choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
        kept: list[Choice] = []
        for choice in choices:
            when = None if choice.when is None else fold(choice.when, self._ranges, self._fixed)
            match when:
                case Const(value=False):
                    continue
                case Const():
                    when = None
            kept.append(self._choice(choice, when))
            if when is None:
                break
        return tuple(kept)

    def _choice(self, choice: Choice, when: Expr | None) -> Choice:
        needs = self._needs(choice.needs)
        if needs is None:
            return Choice(when=when, inside=())
        body = self._body(choice.body)
        match choice.inside:
            case Rule() as rule:
                found = self._rule(rule)
                return Choice(when=when, needs=needs, body=body, inside=found or ())
            case inner:
                return Choice(when=when, needs=needs, body=body, inside=self._choices(inner))

    def _body(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(rebuild(statement, self._folded) for statement in body)

    def _rule(self, rule: Rule) -> Rule | None:
        puts = []
        for put in rule.puts:
            element = self._ends.put(put.channel)
            if element is None:
                return None
            puts.append(replace(rebuild(put, self._folded), channel=element))
        takes = tuple(self.used[name] for name in rule.takes)
        return replace(rule, body=self._body(rule.body), takes=takes, puts=tuple(puts))
