"""How loops find tensors in memory: the structure that machine code depends on, without extents."""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.types import Type
from t2s.core.walk import Term
from t2s.sparse_repr.concrete.ir import Statement
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.levels import Compressed, Singleton
from t2s.sparse_repr.semiring import Semiring


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayLayout(Term):
    """A tensor of dense levels alone, read by the steps of its modes.

    ``unit`` are the modes whose step is one element; the other steps are known when it runs.
    """

    name: str
    unit: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelsLayout(Term):
    """A tensor by its levels; ``indices`` are the types of the arrays of each level, by name."""

    name: str
    format: Format
    indices: tuple[tuple[tuple[str, Type], ...], ...]

    def index(self, level: int, array: str) -> Type:
        """The type of an array of a level."""
        return dict(self.indices[level])[array]


TensorLayout = ArrayLayout | LevelsLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopStage(Term):
    """A stage, with the layouts of what it reads and the format in which it writes."""

    statement: Statement
    reads: tuple[TensorLayout, ...]
    writes: Format
    type: Type
    semiring: Semiring

    def layout(self, name: str) -> TensorLayout:
        """The layout of a tensor that the stage reads; ``KeyError`` if it does not."""
        for one in self.reads:
            if one.name == name:
                return one
        raise KeyError(name)


def walkable(format: Format) -> bool:
    """Whether loops walk these levels as they are: dense, compressed, singleton, or a list."""
    kinds = (Compressed, Singleton)
    return format.coordinate_list or all(
        level.full or type(level) in kinds for level in format.levels
    )


def writable(format: Format) -> bool:
    """Whether loops write these levels: dense ones, and compressed ones below them."""
    below = False
    for level in format.levels:
        if level.full and below:
            return False
        if not level.full and type(level) is not Compressed:
            return False
        below = below or not level.full
    return True


def values_of(name: str) -> str:
    """The argument with the values of a tensor."""
    return f"{name}_values"


def level_array(name: str, level: int, array: str) -> str:
    """The argument with an array of a level."""
    return f"{name}_{array}{level}"


def step_of(name: str, mode: int) -> str:
    """The argument with the elements from one to the next along a mode."""
    return f"{name}_step{mode}"


def extent_of(variable: str) -> str:
    """The argument with the extent of a variable."""
    return f"{variable}_extent"


def count_of(name: str, level: int) -> str:
    """The argument with the number of coordinates that were written to a level."""
    return f"{name}_count{level}"


def room_of(name: str, level: int) -> str:
    """The capacity of what grows with a level that is written."""
    return f"{name}_room{level}"
