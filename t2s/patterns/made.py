"""What a program of patterns makes: where the levels and the values of each result are.

A level of a result whose structure is an operand's is not computed: the host shares the operand's
arrays.  So a result is complete, and costs no traffic that it need not cost.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.expr import Expr
from t2s.core.walk import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLevel(Term):
    """A level of a result that has the coordinates of an operand's level: the host shares them."""

    tensor: str
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FullLevel(Term):
    """A compressed level of a result in which every fiber has all ``extent`` coordinates.

    ``extent`` is over the arguments of the program.
    """

    extent: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedLevel(Term):
    """A compressed level of a result whose arrays the program stores."""

    positions: str
    coordinates: str


ResultLevel = SharedLevel | FullLevel | ComputedLevel | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramResult(Term):
    """A tensor that the program makes: the memory of its values, and its levels.

    ``levels`` are in the order of storage; ``None`` is a dense one.  A scalar has no levels and
    ``values`` names the local that is handed back.
    """

    tensor: str
    values: str
    levels: tuple[ResultLevel, ...] = ()
