"""The words that a chain is written with: dimensions, paddings, schedules, names of structure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.func.symbols import Var


class MatrixDimension(Enum):
    """A dimension of the matrix."""

    ROWS = "Rows"
    COLUMNS = "Columns"
    DIAGONALS = "Diagonals"

    def __repr__(self) -> str:
        return self.value


class BlockPadding(Enum):
    """How incomplete blocks are filled up.

    ``Zero`` fills the last block.  ``Longest`` makes everything as long as the longest of its
    group: the block of rows that it belongs to, or the whole matrix.
    """

    ZERO = "Zero"
    LONGEST = "Longest"

    def __repr__(self) -> str:
        return self.value


class Policy(Enum):
    """Which machine gets the next job.

    ``ASAP``: jobs in order, each to the machine that is free first (the lowest numbered of those).
    ``RoundRobin``: job k to machine k modulo the number of machines.
    ``LongestFirst``: as ``ASAP``, but the jobs sorted by length, the longest first.
    """

    ASAP = "ASAP"
    ROUND_ROBIN = "RoundRobin"
    LONGEST_FIRST = "LongestFirst"

    def __repr__(self) -> str:
        return self.value


class WholeExtent(Enum):
    """A block factor that depends on the matrix: ``Whole`` is the whole dimension."""

    WHOLE = "Whole"

    def __repr__(self) -> str:
        return self.value


Rows, Columns, Diagonals = MatrixDimension.ROWS, MatrixDimension.COLUMNS, MatrixDimension.DIAGONALS
Zero, Longest = BlockPadding.ZERO, BlockPadding.LONGEST
ASAP, RoundRobin, LongestFirst = Policy.ASAP, Policy.ROUND_ROBIN, Policy.LONGEST_FIRST
Whole = WholeExtent.WHOLE


@dataclass(frozen=True, slots=True)
class NamedStructure:
    """A part of the structure that is recorded under the name of a ``Var``."""

    variable: Var
    location: SourceLocation

    @property
    def name(self) -> str:
        return self.variable.name


class Index(NamedStructure):
    """``Index(col_idx)``: record where along the dimension each value (or row, or job) is."""

    __slots__ = ()

    def __init__(self, variable: Var) -> None:
        super().__init__(_variable("Index", variable), user_location())

    def __repr__(self) -> str:
        return f"Index({self.name})"


class Length(NamedStructure):
    """``Length(row_len)``: record how many values, or blocks, there are along the dimension."""

    __slots__ = ()

    def __init__(self, variable: Var) -> None:
        super().__init__(_variable("Length", variable), user_location())

    def __repr__(self) -> str:
        return f"Length({self.name})"


def _variable(what: str, variable: object) -> Var:
    if not isinstance(variable, Var):
        raise UserError(
            f"{what} needs the Var that names this part of the structure",
            location=user_location(),
            expected=f'for example {what}(Var("{"col_idx" if what == "Index" else "row_len"}"))',
            given=repr(variable),
        )
    return variable
