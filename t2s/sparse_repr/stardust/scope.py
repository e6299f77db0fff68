"""The state of lowering inside a loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from t2s.core.expr import Expr, Local
from t2s.patterns.ir import Header, PatternStatement
from t2s.patterns.verify import BitSet
from t2s.sparse_repr.notation.ir import Access
from t2s.sparse_repr.stardust.operands import LevelSegment, OperandState
from t2s.sparse_repr.stardust.writing import ResultState, ResultWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternScope:
    """The scope of a loop: coordinates, operands, scalars on chip, and the result.

    ``visited`` has, for each enclosing loop that joins levels, the set of operand coordinates that
    contains the loop's coordinates.
    """

    coordinates: Mapping[str, Expr]
    states: Mapping[Access, OperandState]
    scalars: Mapping[str, Expr]
    writer: ResultWriter | None = None
    result: ResultState | None = None
    visited: tuple[BitSet, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LazyWord:
    """A word of each iteration that is fetched only if it is used."""

    local: Local
    access: Access
    array: str
    level: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedLoop:
    """A loop about to be written.

    ``numbers`` are the positions of operands in their segments, -1 for an ``optional`` one that
    lacks the coordinate; ``taken`` are the first statements of each iteration.
    """

    headers: tuple[Header, ...]
    binders: tuple[Local, ...]
    coordinate: Local
    number: Local
    count: Expr
    segment: LevelSegment | None = None
    lazy: tuple[LazyWord, ...] = ()
    numbers: Mapping[Access, Local] = field(default_factory=dict)
    optional: frozenset[Access] = frozenset()
    taken: tuple[PatternStatement, ...] = ()
