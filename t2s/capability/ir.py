"""Capabilities: what a function computes, in index notation with lists of variables, and when.

``z(I,J) = x(I,K) * y(K,J) when product(I) < 65536`` says a family of statements: a list stands for
any sequence of index variables, the same one wherever it is written.  Extents in a condition are
those of the call, so of a tile where there are tiles [Mosaic, sec. 4.2].
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import Type
from t2s.core.walk import Term
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import Access, Expression
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeNumber(Term):
    """A number in a condition."""

    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableExtent(Term):
    """``i``: how far a variable goes in the call."""

    variable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionIn(Term):
    """``d`` inside of ``forall d in I``: a position of the list, from 0."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListExtent(Term):
    """``I[d]``, ``I[0]``: the extent of the variable at a position of a list."""

    of: str
    at: WholeNumber | PositionIn


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOrder(Term):
    """``order(I)``: the length of a list."""

    of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListProduct(Term):
    """``product(I)``: the product of the extents of a list, 1 of an empty one."""

    of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculated(Term):
    """``+``, ``-``, ``*``, ``/`` (rounded down) or ``%`` of two quantities."""

    operator: Op
    left: Quantity
    right: Quantity


Quantity = (
    WholeNumber | VariableExtent | PositionIn | ListExtent | ListOrder | ListProduct | Calculated
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared(Term):
    """Two quantities compared."""

    operator: Op
    left: Quantity
    right: Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOf(Term):
    """All of these hold; nothing asked for holds."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf(Term):
    """One of these holds."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantified(Term):
    """``forall d in I: ...``, or ``exists`` if not ``every``: for the positions of a list."""

    every: bool
    position: str
    of: str
    condition: Condition


Condition = Compared | AllOf | AnyOf | Quantified

ALWAYS = AllOf(parts=())


class Strides(Enum):
    """What steps from one element of an operand to the next a function takes."""

    ANY = "any"
    STEPS = "steps"
    ONE_IS_1 = "one is 1"
    ROWS = "rows"
    COLUMNS = "columns"
    DENSE = "dense"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandNeeds(Term):
    """What a tensor of a capability has to be; without ``formats`` it is dense."""

    name: str
    formats: tuple[Format, ...] = ()
    strides: Strides = Strides.DENSE
    properties: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability(Term):
    """A family of statements that a function computes.

    ``overwritten`` is the operand in whose place the result comes; ``accumulates`` says that the
    function adds to what the result was.  Without ``types`` and ``semirings`` any will do.
    """

    result: Access
    value: Expression
    lists: tuple[str, ...] = ()
    condition: Condition = ALWAYS
    needs: tuple[OperandNeeds, ...] = ()
    types: tuple[Type, ...] = ()
    semirings: tuple[Semiring, ...] = (PLUS_TIMES,)
    overwritten: str | None = None
    accumulates: bool = False
    reorders: bool = True
    location: SourceLocation | None = field(default=None, compare=False)

    def needs_of(self, tensor: str) -> OperandNeeds:
        """What a tensor has to be."""
        for one in self.needs:
            if one.name == tensor:
                return one
        return OperandNeeds(name=tensor)
