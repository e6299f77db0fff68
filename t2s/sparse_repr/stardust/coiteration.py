"""How a loop visits its coordinates: by a counter, by one compressed level, or by joining two.

That is the rewriting of co-iteration (papers/000, section 6.1).  Levels are intersected and united
as the merge lattice of the loop says (``concrete/merge.py``); a dense level has all coordinates, so
it vanishes from an intersection and takes over a union.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from t2s.core.errors import UnsupportedError
from t2s.core.walk import Term
from t2s.patterns.ir import JoinKind
from t2s.sparse_repr.concrete.ir import ConcreteProgram, Forall, result_of
from t2s.sparse_repr.concrete.merge import (
    Both,
    Either,
    Everything,
    Leaf,
    Merge,
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
    def accesses(self) -> tuple[Access, ...]:
        """The operands that have a level here."""
        return (self.left,) if self.right is None else (self.left, self.right)


LoopIteration = AllCoordinates | WalkedLevel | JoinedLevels


def level_of(access: Access, variable: str, format: Format) -> int:
    """The number of the level of an access at a variable."""
    return format.modes.index(access.variables.index(variable))


def iteration_of(loop: Forall, program: ConcreteProgram) -> LoopIteration:
    """How a loop is iterated.  Raises ``UnsupportedError`` for more than two compressed levels."""
    variable = loop.variable

    def is_full(access: Access) -> bool:
        format = program.format_of(access.tensor)
        return format.levels[level_of(access, variable, format)].full

    found = _Folding(loop, program, is_full).fold(merge_of(expression_of(loop), variable))
    if isinstance(found, AllCoordinates) or not _has_gaps_below(loop, program):
        return found
    match found:
        case WalkedLevel(access=access):
            return JoinedLevels(left=access, right=None, join=JoinKind.OR)
        case JoinedLevels(right=None):
            return found
    result = result_of(loop)
    raise UnsupportedError(
        f"{print_expression(result)} has a dense level at {variable}, where two compressed levels"
        " are joined, and compressed levels below it",
        location=result.location or program.location,
        expected=f"a compressed level of {result.tensor} at {variable}",
        given=str(program.format_of(result.tensor)),
    )


def _has_gaps_below(loop: Forall, program: ConcreteProgram) -> bool:
    """Whether the result has a dense level here and a compressed one below: all fibers are due."""
    result = result_of(loop)
    if loop.variable not in result.variables:
        return False
    format = program.format_of(result.tensor)
    level = level_of(result, loop.variable, format)
    below = format.levels[level:]
    return below[0].full and not all(one.full for one in below)


@dataclass(frozen=True, slots=True)
class _Folding:
    """A merge, folded from left to right."""

    loop: Forall
    program: ConcreteProgram
    is_full: Callable[[Access], bool]

    def fold(self, merge: Merge) -> LoopIteration:
        match merge:
            case Everything():
                return AllCoordinates()
            case Leaf(access=access):
                return AllCoordinates() if self.is_full(access) else WalkedLevel(access=access)
            case Both(members=members):
                return self.intersected([self.fold(member) for member in members])
            case Either(members=members, everything=everything):
                return self.united([self.fold(member) for member in members], everything)

    def intersected(self, members: Sequence[LoopIteration]) -> LoopIteration:
        rest = list(dict.fromkeys(one for one in members if not isinstance(one, AllCoordinates)))
        match rest:
            case []:
                return AllCoordinates()
            case [one]:
                return one
            case [WalkedLevel(access=left), WalkedLevel(access=right)]:
                return JoinedLevels(left=left, right=right, join=JoinKind.AND)
        raise self.too_many(rest)

    def united(self, members: Sequence[LoopIteration], everything: bool) -> LoopIteration:
        rest = list(dict.fromkeys(one for one in members if not isinstance(one, AllCoordinates)))
        everything = everything or any(isinstance(one, AllCoordinates) for one in members)
        match rest:
            case []:
                return AllCoordinates()
            case [WalkedLevel(access=access)] if everything:
                return JoinedLevels(left=access, right=None, join=JoinKind.OR)
            case [JoinedLevels(right=None) as one] if everything:
                return one
            case [one] if not everything:
                return one
            case [WalkedLevel(access=left), WalkedLevel(access=right)] if not everything:
                return JoinedLevels(left=left, right=right, join=JoinKind.OR)
        raise self.too_many(rest)

    def too_many(self, members: Sequence[LoopIteration]) -> UnsupportedError:
        names: list[str] = []
        for one in members:
            match one:
                case WalkedLevel(access=access):
                    names.append(print_expression(access))
                case JoinedLevels():
                    names += [print_expression(access) for access in one.accesses]
        located = next((a.location for o in members for a in _accesses(o)), None)
        return UnsupportedError(
            f"the loop over {self.loop.variable} joins {', '.join(dict.fromkeys(names))}",
            location=located or self.program.location,
            expected="at most two compressed levels, which a scanner joins; a sum with a dense"
            " term has all coordinates, which count as one",
            hint="precompute() two of them into a compressed workspace on chip",
        )


def _accesses(one: LoopIteration) -> tuple[Access, ...]:
    match one:
        case WalkedLevel(access=access):
            return (access,)
        case JoinedLevels():
            return one.accesses
    return ()
