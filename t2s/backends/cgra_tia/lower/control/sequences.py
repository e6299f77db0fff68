"""Blocks that do not depend on data: their tokens, and ``seq`` units that send them.

Such a block has no heads, or only heads that such blocks feed, so it can be run here.  It becomes
``seq`` units if the tokens of each output are one loop of affine values with a few other tokens
among them: the coordinates of a dense level, or a repeated reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.backends.cgra_tia.lower.control import flat_blocks as flat
from t2s.backends.cgra_tia.netlist import (
    AffineSum,
    Provenance,
    StreamLoop,
    StreamUnit,
    TagCase,
    UnitCondition,
    UnitKind,
)
from t2s.core.expr import Apply, Cast, Const, Expr, Local, Select
from t2s.core.ops import Op

MOST_FIRINGS = 16_384
"""Firings of a block that are looked at; larger ones stay cells."""

_MOST_CASES = 8

Tokens = tuple[tuple[int, int], ...]
"""Values and tags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLoop:
    """Tokens as a loop: the values ``factor * step + start``; ``tags`` are pairs (step, tag)."""

    steps: int
    factor: int
    start: int
    tags: tuple[tuple[int, int], ...]

    def unit(self, name: str, origin: Provenance) -> StreamUnit:
        """The unit that sends them."""
        return StreamUnit(
            name=name,
            kind=UnitKind.SEQUENCE,
            loops=(StreamLoop(name="n", extent=AffineSum(constant=self.steps)),),
            address=AffineSum(constant=self.start, coefficients=(self.factor,)),
            tags=tuple(
                TagCase(
                    when=(
                        UnitCondition(sum=AffineSum(constant=-step, coefficients=(1,)), equal=True),
                    ),
                    tag=tag,
                )
                for step, tag in self.tags
            ),
            origin=origin,
        )


class _NotStaticError(Exception):
    """The block depends on data, or runs for too long."""


def tokens_of(block: flat.FlatBlock, known: Mapping[str, Tokens]) -> dict[str, Tokens] | None:
    """What a block puts, given the tokens of its heads; ``None`` if it depends on data."""
    if any(head not in known for head in block.heads) or not block.outputs:
        return None
    if any(isinstance(part, flat.Fetch | flat.Ask) for part in flat.all_parts(block)):
        return None
    if any(type.is_float for type in block.outputs.values()):
        return None
    try:
        return _StaticRun(block, known).tokens()
    except _NotStaticError:
        return None


class _StaticRun:
    def __init__(self, block: flat.FlatBlock, known: Mapping[str, Tokens]) -> None:
        self._block = block
        self._known = known
        self._at = dict.fromkeys(block.heads, 0)
        self._registers: dict[str, int] = dict.fromkeys(block.registers, 0)
        self._found: dict[str, list[tuple[int, int]]] = {name: [] for name in block.outputs}

    def tokens(self) -> dict[str, Tokens]:
        state: flat.ControlState | None = self._block.first
        for _ in range(MOST_FIRINGS):
            if state is None:
                return {name: tuple(tokens) for name, tokens in self._found.items()}
            firing = self._chosen(self._block.trees[state])
            if firing.stores:
                break
            for put in firing.puts:
                value = 0 if put.value is None else self._value(put.value)
                self._found[put.channel].append((value, put.tag))
            self._registers |= {name: self._value(value) for name, value in firing.writes}
            for head in firing.takes:
                self._at[head] += 1
            state = firing.after
        raise _NotStaticError

    def _chosen(self, tree: flat.Tree) -> flat.Firing:
        while not isinstance(tree, flat.Firing):
            if isinstance(tree, flat.HeadWait):
                if any(self._at[head] >= len(self._known[head]) for head in tree.heads):
                    raise _NotStaticError
                tags = tuple(self._known[head][self._at[head]][1] for head in tree.heads)
                below = dict(tree.cases).get(tags)
                if below is None:
                    raise _NotStaticError
                tree = below
            elif isinstance(tree, flat.ValueTest):
                tree = tree.yes if self._value(tree.condition) else tree.no
            else:
                raise _NotStaticError
        return tree

    def _value(self, expr: Expr) -> int:
        match expr:
            case Const(value=value) if not expr.type.is_float:
                return int(value)
            case Local(name=name):
                if name in self._registers:
                    return self._registers[name]
                for head, local in self._block.values.items():
                    if local == name:
                        return self._known[head][self._at[head]][0]
            case Cast(value=value) if not (expr.type.is_float or value.type.is_float):
                return self._value(value)
            case Select(condition=condition, if_true=yes, if_false=no):
                return self._value(yes if self._value(condition) else no)
            case Apply(operator=operator, operands=operands) if operator in _MEANINGS:
                return int(_MEANINGS[operator](*(self._value(o) for o in operands)))
        raise _NotStaticError


_MEANINGS = {
    Op.ADD: lambda a, b: a + b,
    Op.SUBTRACT: lambda a, b: a - b,
    Op.MULTIPLY: lambda a, b: a * b,
    Op.LESS: lambda a, b: a < b,
    Op.LESS_EQUAL: lambda a, b: a <= b,
    Op.GREATER: lambda a, b: a > b,
    Op.GREATER_EQUAL: lambda a, b: a >= b,
    Op.EQUAL: lambda a, b: a == b,
    Op.NOT_EQUAL: lambda a, b: a != b,
}


def sequence_of(tokens: Tokens) -> TokenLoop | None:
    """The loop that produces these tokens; ``None`` if there is none."""
    tags = tuple((step, tag) for step, (_, tag) in enumerate(tokens) if tag != flat.VALUE_TAG)
    values = [(step, value) for step, (value, tag) in enumerate(tokens) if tag == flat.VALUE_TAG]
    if len(tags) > _MOST_CASES:
        return None
    if len(values) > 1:
        (step, value), (next_step, next_value) = values[:2]
        factor, rest = divmod(next_value - value, next_step - step)
        if rest:
            return None
    else:
        factor = 0
    start = values[0][1] - factor * values[0][0] if values else 0
    if any(value != start + factor * step for step, value in values):
        return None
    return TokenLoop(steps=len(tokens), factor=factor, start=start, tags=tags)
