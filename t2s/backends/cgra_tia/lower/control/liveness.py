"""Which registers of a flat block are needed in which of its control states, and for what.

A write to a register that nobody needs afterwards is none.  A register is *summed* if the result
of an FMA is kept in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from t2s.backends.cgra_tia.lower.control.flat import (
    Ask,
    ControlState,
    Fetch,
    Firing,
    FlatBlock,
    HeadWait,
    Tree,
    ValueTest,
    changed,
    expressions_of,
    firings_of,
)
from t2s.core.expr import Apply, Expr, Local
from t2s.core.ops import Op
from t2s.core.walk import walk

_ARITHMETIC = {Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.FUSED_MULTIPLY_ADD}

Live = Mapping[ControlState, frozenset[str]]


@dataclass(frozen=True, kw_only=True)
class NeededBlock:
    """A block without writes that nobody needs; ``live`` are the registers needed in each state."""

    block: FlatBlock
    live: Live
    summed: frozenset[str]


def needed(block: FlatBlock) -> NeededBlock:
    """The block with what is needed alone."""
    live = _live(block)

    def one(part: Tree) -> Tree:
        if not isinstance(part, Firing):
            return part
        there = live[part.after] if part.after is not None else frozenset()
        writes = tuple(
            (name, value)
            for name, value in part.writes
            if name in there and not (isinstance(value, Local) and value.name == name)
        )
        return replace(part, writes=writes)

    trees = {state: changed(tree, one) for state, tree in block.trees.items()}
    found = replace(block, trees=trees)
    summed = {
        name
        for firing in firings_of(found)
        for name, value in firing.writes
        if any(
            isinstance(part, Apply) and part.type.is_float and part.operator in _ARITHMETIC
            for part in walk(value)
        )
    }
    return NeededBlock(block=found, live=live, summed=frozenset(summed))


def needed_by(tree: Tree, block: FlatBlock) -> frozenset[str]:
    """The registers that a tree of a block needs, or what comes after it."""
    return _before(tree, block, _live(block))


def _live(block: FlatBlock) -> dict[ControlState, frozenset[str]]:
    found: dict[ControlState, frozenset[str]] = dict.fromkeys(block.trees, frozenset())
    while True:
        new = {state: _before(tree, block, found) for state, tree in block.trees.items()}
        if new == found:
            return found
        found = new


def _before(tree: Tree, block: FlatBlock, live: Live) -> frozenset[str]:
    """What is needed before a tree."""
    match tree:
        case Firing(after=after, writes=writes):
            there = live[after] if after is not None else frozenset()
            kept = replace(tree, writes=tuple(w for w in writes if w[0] in there))
            return there - {name for name, _ in writes} | _read(kept, block)
        case HeadWait(cases=cases):
            return frozenset[str]().union(*(_before(below, block, live) for _, below in cases))
        case ValueTest(yes=yes, no=no):
            return _before(yes, block, live) | _before(no, block, live) | _read(tree, block)
        case Fetch(then=then) | Ask(then=then):
            return _before(then, block, live) | _read(tree, block)


def _read(part: Tree, block: FlatBlock) -> frozenset[str]:
    return frozenset(
        name for expr in expressions_of(part) for name in _names(expr) if name in block.registers
    )


def _names(expr: Expr) -> set[str]:
    return {part.name for part in walk(expr) if isinstance(part, Local)}
