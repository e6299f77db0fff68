"""Choices over values as trees of single comparisons, each made at most once on a path.

``and``, ``or``, ``not`` and ``select`` become tests of comparisons.  The outcome of a test decides
later comparisons of the same numbers.  A block may open a list and look at its first element in
one rule, and continue with the others in another mode by the same test; then it opens the list
first (``rotated``), which costs one cycle for each list and saves four instructions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from t2s.backends.cgra_tia.lower.control import flat_blocks as flat
from t2s.core.expr import Apply, Cast, Const, Expr, Local, Select, apply, const, simplify, unequal
from t2s.core.ops import Op
from t2s.core.types import BOOL, INT32, Int, Type, integer_range
from t2s.core.walk import Term, rewrite, walk

_BELOW, _EQUAL, _ABOVE = 1, 2, 4
_HOLDS = {
    Op.LESS: _BELOW,
    Op.LESS_EQUAL: _BELOW | _EQUAL,
    Op.GREATER: _ABOVE,
    Op.GREATER_EQUAL: _ABOVE | _EQUAL,
    Op.EQUAL: _EQUAL,
    Op.NOT_EQUAL: _BELOW | _ABOVE,
}
_ALL = _BELOW | _EQUAL | _ABOVE

Facts = Mapping[tuple[Expr, Expr], int]
"""Which of below, equal and above are possible for two numbers."""


def with_single_tests(block: flat.FlatBlock) -> flat.FlatBlock:
    """The block with a single comparison in each test, and without tests that are decided."""
    facts = _of_coordinates(block)
    trees = {state: _tested(tree, facts) for state, tree in block.trees.items()}
    return replace(block, trees=trees)


def _of_coordinates(block: flat.FlatBlock) -> Facts:
    """Decide tests of coordinates: they are below the largest number, which stands for "absent"."""
    facts: dict[tuple[Expr, Expr], int] = {}
    for head in block.coordinates & block.values.keys():
        type = block.heads[head]
        name = Local(name=block.values[head], type=type)
        facts[name, const(integer_range(type)[1], type)] = _BELOW
    return facts


def _tested(tree: flat.Tree, facts: Facts) -> flat.Tree:
    condition = None if isinstance(tree, flat.HeadWait) else split(flat.expressions_of(tree))
    if condition is not None:
        yes, no = (_own(tree, condition, holds) for holds in (True, False))
        return _tested(flat.ValueTest(condition=condition, yes=yes, no=no), facts)
    match tree:
        case flat.HeadWait(heads=heads, cases=cases):
            inner = tuple((tags, _tested(below, facts)) for tags, below in cases)
            return flat.HeadWait(heads=heads, cases=inner)
        case flat.Fetch(then=then) | flat.Ask(then=then):
            return replace(tree, then=_tested(then, facts))
        case flat.ValueTest(condition=condition, yes=yes, no=no):
            return _test(condition, yes, no, facts)
    return tree


def _own(tree: flat.Tree, condition: Expr, holds: bool) -> flat.Tree:
    return flat.with_expressions(tree, lambda expr: given(expr, condition, holds))


def _test(condition: Expr, yes: flat.Tree, no: flat.Tree, facts: Facts) -> flat.Tree:
    decided = flat.number_of(condition)
    if decided is not None:
        return _tested(yes if decided else no, facts)
    match condition:
        case Apply(operator=Op.AND, operands=(left, right), type=type) if type.is_bool:
            return _test(left, flat.ValueTest(condition=right, yes=yes, no=no), no, facts)
        case Apply(operator=Op.OR, operands=(left, right), type=type) if type.is_bool:
            return _test(left, yes, flat.ValueTest(condition=right, yes=yes, no=no), facts)
        case Apply(operator=Op.NOT, operands=(value,), type=type) if type.is_bool:
            return _test(value, no, yes, facts)
        case Apply(operator=operator, operands=(left, right)) if (
            operator in _HOLDS and not left.type.is_float
        ):
            possible = _possible(left, right, facts)
            holds = _HOLDS[operator]
            if not possible & ~holds:
                return _tested(yes, facts)
            if not possible & holds:
                return _tested(no, facts)
            below = [
                _tested(tree, {**facts, (left, right): possible & mask})
                for tree, mask in ((yes, holds), (no, _ALL & ~holds))
            ]
            if below[0] == below[1]:
                return below[0]
            return flat.ValueTest(condition=condition, yes=below[0], no=below[1])
    return flat.ValueTest(condition=condition, yes=_tested(yes, facts), no=_tested(no, facts))


def _possible(left: Expr, right: Expr, facts: Facts) -> int:
    if left == right:
        return _EQUAL
    return facts.get((left, right), _ALL) & _mirrored(facts.get((right, left), _ALL))


def _mirrored(relation: int) -> int:
    swapped = relation & _EQUAL
    swapped |= _ABOVE if relation & _BELOW else 0
    return swapped | (_BELOW if relation & _ABOVE else 0)


# ----------------------------------------------------------------------------- two firings as one


def joined(block: flat.FlatBlock) -> flat.FlatBlock:
    """The block in which a firing also does what the next one would do without any head.

    A reducer, for example, sends its sum and then the stop that ended it, and takes the head last.
    """

    def one(part: flat.Tree) -> flat.Tree:
        if not isinstance(part, flat.Firing) or part.after is None:
            return part
        then = block.trees[part.after]
        return (
            _both(part, then) if isinstance(then, flat.Firing) and _may_join(part, then) else part
        )

    return replace(block, trees={s: flat.changed(tree, one) for s, tree in block.trees.items()})


def _may_join(first: flat.Firing, then: flat.Firing) -> bool:
    """Whether the second firing takes and keeps nothing, and only puts stops after values."""
    behind = {put.channel for put in then.puts}
    late = any(put.value is None for put in first.puts if put.channel in behind)
    stops = all(put.value is None for put in then.puts)
    alone = not (then.takes or then.writes or then.stores)
    return alone and stops and not late and len(behind) == len(then.puts) and bool(then.puts)


def _both(first: flat.Firing, then: flat.Firing) -> flat.Firing:
    return replace(first, puts=(*first.puts, *then.puts), after=then.after)


# ------------------------------------------------------------------------------------ rotation


def rotated(block: flat.FlatBlock) -> flat.FlatBlock:
    """The block in which lists are opened before their first element is examined."""

    def one(part: flat.Tree) -> flat.Tree:
        return _opened(block, part) or part if isinstance(part, flat.ValueTest) else part

    return replace(block, trees={s: flat.changed(tree, one) for s, tree in block.trees.items()})


def _opened(block: flat.FlatBlock, test: flat.ValueTest) -> flat.Firing | None:
    """The firing that opens a list, for a test of its first element."""
    first, empty = test.yes, test.no
    if not isinstance(first, flat.Firing) or not isinstance(empty, flat.Firing):
        return None
    state = first.after
    if state is None or empty.after != state or empty.takes != first.takes:
        return None
    then = block.trees[state]
    if empty.puts or empty.stores or first.stores or not isinstance(then, flat.ValueTest):
        return None
    into = _matched(then.condition, test.condition, block)
    if into is None or not isinstance(then.yes, flat.Firing) or then.yes.takes:
        return None
    opened = flat.with_expressions(then.yes, lambda expr: reduced(expr, into))
    assert isinstance(opened, flat.Firing)
    after_first = {**into, **dict(opened.writes)}
    same = replace(opened, takes=first.takes, writes=first.writes) == first
    if not same or not _agree(after_first, dict(first.writes), block):
        return None
    closed = flat.number_of(reduced(then.condition, dict(empty.writes)))
    if closed != 0 or flat.needed_by(then.no, block) or set(block.registers) - into.keys():
        return None
    return flat.Firing(
        takes=first.takes, puts=(), writes=tuple(into.items()), stores=(), after=state
    )


def _matched(pattern: Expr, expr: Expr, block: flat.FlatBlock) -> dict[str, Expr] | None:
    """The register values for which one condition is another one."""
    if not isinstance(pattern, Apply) or not isinstance(expr, Apply):
        return None
    if pattern.operator is not expr.operator:
        return None
    values: dict[str, Expr] = {}
    for own, other in zip(pattern.operands, expr.operands, strict=True):
        if isinstance(own, Local) and own.name in block.registers:
            if values.setdefault(own.name, other) != other:
                return None
        elif own != other:
            return None
    if any(
        name in block.registers for value in values.values() for name in flat.local_names(value)
    ):
        return None
    return values or None


def _agree(first: Mapping[str, Expr], second: Mapping[str, Expr], block: flat.FlatBlock) -> bool:
    return all(
        first.get(n, Local(name=n, type=t)) == second.get(n, Local(name=n, type=t))
        for n, t in block.registers.items()
    )


# Expressions of blocks: known values are substituted, the rest is rewritten to what cells compute.
#
# Truth values are folded, minimum and maximum become choices, and conversions between integers
# vanish where a word holds both.  ``split`` extracts the first choice over values from expressions.

_WORD = Int(64)


def reduced(expr: Expr, known: Mapping[str, Expr]) -> Expr:
    """An expression with known values of locals substituted, and simplified."""

    def rule(node: Term) -> Term | None:
        return known.get(node.name) if isinstance(node, Local) else None

    before, after = expr, simplify(rewrite(rewrite(expr, rule), _fold))
    while after != before:
        before, after = after, simplify(rewrite(after, _fold))
    return after


def _fold(node: Term) -> Term | None:
    match node:
        case Apply(operator=Op.AND | Op.OR as operator, operands=(left, right), type=type) if (
            type.is_bool
        ):
            for one, other in ((left, right), (right, left)):
                if isinstance(one, Const):
                    return other if bool(one.value) is (operator is Op.AND) else one
        case Apply(operator=Op.NOT, operands=(Const(value=value),), type=type) if type.is_bool:
            return const(not value, BOOL)
        case Apply(operator=Op.NOT, operands=(Apply(operator=Op.NOT, operands=(inner,)),)):
            return inner
        case Apply(operator=Op.MINIMUM | Op.MAXIMUM as operator, operands=(a, b), type=type):
            for one, other in ((a, b), (b, a)):
                if isinstance(one, Const) and type.is_integer and one.value == _end(operator, type):
                    return other
            first = apply(Op.LESS if operator is Op.MINIMUM else Op.GREATER, b, a)
            return Select(condition=first, if_true=b, if_false=a, type=type)
        case Apply(operator=Op.NEGATE, operands=(value,), type=type):
            zero = const(-0.0, type) if type.is_float else const(0, type)
            return zero - value
        case Cast(value=Const(value=value, type=source), type=type) if (
            source.is_integer or source.is_bool
        ) and (type.is_integer or type.is_float):
            return const(float(value) if type.is_float else int(value), type)
        case Cast(value=value, type=type) if value.type.is_float and type == INT32:
            limited: Expr = Cast(value=value, type=_WORD)
            for operator, limit in ((Op.MAXIMUM, -(1 << 31)), (Op.MINIMUM, (1 << 31) - 1)):
                limited = apply(operator, limited, const(limit, _WORD))
            return Cast(value=limited, type=type)
        case Cast(value=value, type=type) if value.type == type:
            return value
        case Cast(value=value, type=type) if type.is_bool and value.type.is_integer:
            return unequal(value, 0)
        # repr(), because -0.0 equals 0.0 but is another word
        case Select(if_true=yes, if_false=no) if repr(yes) == repr(no):
            return yes
        case Select(condition=condition, if_true=Const(value=True), if_false=Const(value=False)):
            return condition
    return None


def _end(operator: Op, type: Type) -> int:
    """The number that is neutral for a minimum or a maximum."""
    largest = (1 << type.bits - 1) - 1
    return largest if operator is Op.MINIMUM else -largest - 1


def split(exprs: Sequence[Expr]) -> Expr | None:
    """A condition on values that one of the expressions depends on; ``None`` if there is none."""
    for expr in exprs:
        for node in walk(expr):
            if isinstance(node, Select) and not any(
                isinstance(part, Select) for part in walk(node.condition)
            ):
                return node.condition
    return None


def given(expr: Expr, condition: Expr, holds: bool) -> Expr:
    """The expression under the assumption that a condition holds, or that it does not."""

    def rule(node: Term) -> Term | None:
        if isinstance(node, Select) and node.condition == condition:
            return node.if_true if holds else node.if_false
        return None

    return reduced(rewrite(expr, rule), {})
