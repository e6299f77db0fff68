"""Specialize a node, or a machine, to one point of its space domain.

``fold`` substitutes known indices and decides conditions whose truth follows from the ranges of the
others; ``fold_statement`` does so for a statement of a body, and drops it if its condition never
holds; ``without_unused`` then drops unused values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from t2s.core.expr import Apply, Const, Expr, Index, Local, apply, const, simplify
from t2s.core.intervals import Interval, from_linear_form, interval, linear_form
from t2s.core.ops import Op
from t2s.core.types import BOOL, INT32
from t2s.core.walk import Term, rebuild, rewrite, walk
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement, Store
from t2s.graph.graph import Channel
from t2s.graph.nodes import Choice, Machine, Mode, Rule


def fold(expr: Expr, ranges: dict[str, Interval], fixed: dict[str, int]) -> Expr:
    """``expr`` with fixed indices replaced and conditions of known truth folded."""

    def rule(term: Term) -> Term | None:
        match term:
            case Index(name=name) if name in fixed:
                return const(fixed[name])
            case Apply(type=type) if type == BOOL and interval(term, ranges) in ((0, 0), (1, 1)):
                return const(interval(term, ranges) == (1, 1), BOOL)
            case Apply(operator=operator, operands=(left, Const(value=int() as number))) if (
                operator in (Op.FLOOR_DIVIDE, Op.MODULO) and number > 0
            ):
                return _known_digit(operator, left, number, ranges)
            case Apply(
                operator=operator,
                operands=(
                    Apply(operator=Op.FLOOR_DIVIDE, operands=(left, Const(value=int() as by))),
                    Const(value=int() as number),
                ),
            ) if operator in _BEYOND and by > 0 and left.type == INT32:
                limit = (number + _BEYOND[operator]) * by
                return _undivided(operator, left, limit)
        return None

    return simplify(rewrite(expr, rule))


_BEYOND = {Op.LESS: 0, Op.GREATER_EQUAL: 0, Op.LESS_EQUAL: 1, Op.GREATER: 1}
"""Comparisons, and what to add to their right side to make them ``<`` or ``>=``."""


def _undivided(operator: Op, left: Expr, limit: int) -> Expr | None:
    """``x // by < n`` as ``x < n * by``, where that is no larger than an ``int``."""
    if not -(2**31) <= limit < 2**31:
        return None
    below = operator in (Op.LESS, Op.LESS_EQUAL)
    return apply(Op.LESS if below else Op.GREATER_EQUAL, left, const(limit))


def _known_digit(operator: Op, left: Expr, by: int, ranges: dict[str, Interval]) -> Expr | None:
    """A quotient or rest by a constant, where the range of the operand or its form gives it."""
    bounds = interval(left, ranges)
    if bounds is None or left.type != INT32:
        return None
    low, high = bounds
    if low // by == high // by:
        quotient = const(low // by)
        rest = simplify(left - low // by * by)
        return quotient if operator is Op.FLOOR_DIVIDE else rest
    form = linear_form(left)
    if form is None:
        return None
    coefficients, constant = form
    whole = {name: value // by for name, value in coefficients.items() if value % by == 0}
    if not whole:
        return None
    broken = {name: value for name, value in coefficients.items() if value % by}
    rest = apply(operator, from_linear_form((broken, constant)), const(by))
    if operator is Op.FLOOR_DIVIDE:
        rest = from_linear_form((whole, 0)) + rest
    return simplify(rest)


def fold_statement(statement: Statement, folded: Callable[[Expr], Expr]) -> Statement | None:
    """The statement with folded expressions; one that never executes is dropped, its target
    bound to zero.
    """

    result = rebuild(statement, lambda term: folded(term) if isinstance(term, Expr) else term)
    match result:
        case (
            Receive(condition=Const(value=True))
            | Send(condition=Const(value=True))
            | Load(condition=Const(value=True))
            | Store(condition=Const(value=True))
            | RegisterWrite(condition=Const(value=True))
        ):
            return replace(result, condition=None)
        case (
            Receive(target=target, type=type, condition=Const(value=False))
            | Load(target=target, type=type, condition=Const(value=False))
        ):
            return Let(target=target, value=Const(value=0, type=type))
        case (
            Send(condition=Const(value=False))
            | Store(condition=Const(value=False))
            | RegisterWrite(condition=Const(value=False))
        ):
            return None
    return result


def without_unused(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """The body without values that nothing uses; tokens are received all the same."""
    used_statements: list[Statement] = []
    used: set[str] = set()
    for statement in reversed(body):
        match statement:
            case Let(target=t) | Load(target=t) | RegisterRead(target=t) if t not in used:
                continue
        used_statements.append(statement)
        used |= {term.name for term in walk(statement) if isinstance(term, Local)}
    return tuple(reversed(used_statements))


# A machine at its point: conditions on the point are decided, and unreachable parts are removed.
#
# An alternative that would use an element outside of a channel array keeps its condition and loses
# its inside: it has no alternatives, and is never taken in a design that keeps its protocol.

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
    reachable = tuple(modes[mode.name] for mode in node.modes if mode.name in modes)
    heads = tuple(
        replace(head, channel=pruning.used[head.channel])
        for head in node.heads
        if head.channel in pruning.used
    )
    return replace(node, modes=reachable, heads=heads)


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
        needs: list[str] = []
        for name in names:
            element = self._ends.taken(name)
            if element is None:
                return None
            self.used[name] = element
            needs.append(element)
        return tuple(needs)

    def mode(self, mode: Mode) -> Mode:
        needs = self._needs(mode.needs)
        if needs is None:
            return replace(mode, needs=(), choices=())
        return replace(mode, needs=needs, choices=self._choices(mode.choices))

    def _choices(self, choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
        possible: list[Choice] = []
        for choice in choices:
            when = None if choice.when is None else fold(choice.when, self._ranges, self._fixed)
            match when:
                case Const(value=False):
                    continue
                case _ if any(earlier.when == when for earlier in possible):
                    continue  # the earlier one is taken
                case Const():
                    when = None
            possible.append(self._choice(choice, when))
            if when is None:
                break
        return tuple(possible)

    def _choice(self, choice: Choice, when: Expr | None) -> Choice:
        needs = self._needs(choice.needs)
        if needs is None:
            return Choice(when=when, inside=())
        body = self._body(choice.body)
        match choice.inside:
            case Rule() as rule:
                inside = self._rule(rule)
                return Choice(when=when, needs=needs, body=body, inside=inside or ())
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
