"""The iteration of a loop: by a counter, by one compressed level, or by joining several levels.

This is the co-iteration rewriting of [Stardust, sec. 6.1].  Levels are intersected and united as in
the loop's merge lattice (``concrete/merge.py``); a dense level has all coordinates, so it vanishes
from an intersection and absorbs a union.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from t2s.core.walk import Term, walk
from t2s.patterns.ir import JoinKind
from t2s.patterns.verify import BitSet, intersected, one_set, united
from t2s.sparse_repr.concrete.ir import ConcreteProgram, Forall, result_of
from t2s.sparse_repr.concrete.merge import (
    Both,
    Either,
    Everything,
    Leaf,
    Merge,
    both,
    either,
    expression_of,
    merge_of,
)
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import Access, print_expression


@dataclass(frozen=True, slots=True, kw_only=True)
class AllCoordinates(Term):
    """Every coordinate of the variable, by a counter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkedLevel(Term):
    """The coordinates of one compressed level, by position."""

    access: Access


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedLevels(Term):
    """The coordinates of two compressed levels as bit vectors; ``right`` of ``None`` has all."""

    left: Access
    right: Access | None
    join: JoinKind

    @property
    def merge(self) -> Merge:
        """The merge of the visited coordinates."""
        leaves = [Leaf(access=access) for access in self.accesses]
        if self.join is JoinKind.AND:
            return both(*leaves)
        return either(*leaves, everything=self.right is None)

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The operands that have a level here."""
        return (self.left,) if self.right is None else (self.left, self.right)


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedLevels(Term):
    """The coordinates of a merge that a scan of two levels cannot produce, such as one of three."""

    merge: Merge

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The operands that have a level here."""
        leaves = (term.access for term in walk(self.merge) if isinstance(term, Leaf))
        return tuple(dict.fromkeys(leaves))


LoopIteration = AllCoordinates | WalkedLevel | JoinedLevels | CombinedLevels


def level_of(access: Access, variable: str, format: Format) -> int:
    """The number of the level of an access at a variable."""
    return format.modes.index(access.variables.index(variable))


def iteration_of(loop: Forall, program: ConcreteProgram) -> LoopIteration:
    """The iteration of a loop."""
    variable = loop.variable

    def is_full(access: Access) -> bool:
        format = program.format_of(access.tensor)
        return format.levels[level_of(access, variable, format)].full

    merge = _without_full(merge_of(expression_of(loop), variable), is_full)
    if not isinstance(merge, Everything) and _has_gaps_below(loop, program):
        merge = either(merge, everything=True)
    return _iteration(merge)


def _iteration(merge: Merge) -> LoopIteration:
    match merge:
        case Everything():
            return AllCoordinates()
        case Leaf(access=access):
            return WalkedLevel(access=access)
        case Either(members=(Leaf(access=access),), everything=True):
            return JoinedLevels(left=access, right=None, join=JoinKind.OR)
        case Either(members=(Leaf(access=left), Leaf(access=right)), everything=False):
            return JoinedLevels(left=left, right=right, join=JoinKind.OR)
        case Both(members=(Leaf(access=left), Leaf(access=right))):
            return JoinedLevels(left=left, right=right, join=JoinKind.AND)
    return CombinedLevels(merge=merge)


def _has_gaps_below(loop: Forall, program: ConcreteProgram) -> bool:
    """Whether the result is dense here and compressed below, so that all fibers are written."""
    result = result_of(loop)
    if loop.variable not in result.variables:
        return False
    format = program.format_of(result.tensor)
    level = level_of(result, loop.variable, format)
    below = format.levels[level:]
    return below[0].full and not all(level_kind.full for level_kind in below)


def _without_full(merge: Merge, is_full: Callable[[Access], bool]) -> Merge:
    """The merge with dense levels as all coordinates, and without duplicates."""
    match merge:
        case Leaf(access=access) if is_full(access):
            return Everything()
        case Both(members=members):
            return both(*dict.fromkeys(_without_full(member, is_full) for member in members))
        case Either(members=members, everything=everything):
            inner = dict.fromkeys(_without_full(member, is_full) for member in members)
            rest = [member for member in inner if not isinstance(member, Everything)]
            everything = everything or len(rest) < len(inner)
            if len(rest) == 1 and not everything:
                return rest[0]
            return either(*inner, everything=everything)
    return merge


EVERY = "every coordinate"
"""In place of an operand in a ``BitSet``: the bits of all coordinates."""


def set_of(merge: Merge) -> BitSet:
    """The coordinates of a merge, as a set over those of its operands' levels."""
    match merge:
        case Leaf(access=access):
            return one_set(print_expression(access))
        case Both(members=members):
            return intersected(*map(set_of, members))
        case Either(members=members, everything=everything):
            return united(*map(set_of, members), *([one_set(EVERY)] if everything else []))
        case Everything():
            return one_set(EVERY)
