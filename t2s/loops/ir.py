"""Loops as statements over arrays: what becomes machine code, and what is printed as C.

Expressions are those of ``core.expr`` over ``Local`` names, and touch no memory: statements load
and store.  Coordinates and positions are ``int64``, whatever the integers of an array are.  A
function takes a table of numbers of 64 bits: addresses of arrays, and numbers, in the order of its
arguments, behind the address of what makes room in arrays that grow.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.expr import Apply, Const, Expr, Local, apply
from t2s.core.ops import Op
from t2s.core.types import Int, Type
from t2s.core.walk import Term

INDEX = Int(64)
"""The type of coordinates, positions and extents."""

LARGEST_COORDINATE = (1 << 63) - 1
"""Behind all coordinates: the coordinate of a list at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopArray(Term):
    """An array that a function reads or writes; ``grows`` names those that get room together."""

    name: str
    type: Type
    written: bool = False
    grows: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopNumber(Term):
    """An ``int64`` that a function is given, and hands back as it is then if it is ``returned``."""

    name: str
    returned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLocal(Term):
    """A local gets a value; the first time this is its definition."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadElement(Term):
    """A local gets an element of an array: an integer of an index array as ``int64``."""

    name: str
    array: str
    index: Expr
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreElement(Term):
    """An element of an array gets a value."""

    array: str
    index: Expr
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingLoop(Term):
    """The body for every number from ``start`` below ``end``."""

    name: str
    start: Expr
    end: Expr
    body: tuple[LoopStatement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhileLoop(Term):
    """``head`` computes the condition, before each iteration."""

    head: tuple[LoopStatement, ...]
    condition: Expr
    body: tuple[LoopStatement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopBranch(Term):
    """The body where a condition holds."""

    condition: Expr
    body: tuple[LoopStatement, ...]
    otherwise: tuple[LoopStatement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeRoom(Term):
    """The arrays of a group hold at least ``needed`` elements behind this; else the run ends."""

    group: str
    needed: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementAddress(Term):
    """The address of an element of an array, as an argument of a call."""

    array: str
    index: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopCall(Term):
    """A call of a function by its address, an argument of that name; in C by its ``symbol``.

    Arguments are addresses, and values as they are typed; what it returns becomes a local.
    """

    function: str
    symbol: str
    arguments: tuple[ElementAddress | Expr, ...]
    returns: Type | None = None
    result: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndWith(Term):
    """The function ends here, and returns this number, which is not 0."""

    status: Expr


LoopStatement = (
    SetLocal
    | LoadElement
    | StoreElement
    | CountingLoop
    | WhileLoop
    | LoopBranch
    | MakeRoom
    | LoopCall
    | EndWith
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopFunction(Term):
    """A function: its arguments in the order of its table, and its body.

    A ``group`` of arrays that grow has a number argument, its capacity, of the group's name.
    """

    arguments: tuple[LoopArray | LoopNumber, ...]
    groups: tuple[str, ...]
    body: tuple[LoopStatement, ...]

    def array(self, name: str) -> LoopArray:
        """The array of that name; ``KeyError`` if there is none."""
        for one in self.arguments:
            if isinstance(one, LoopArray) and one.name == name:
                return one
        raise KeyError(name)

    def slot(self, name: str) -> int:
        """The place of an argument in the table; the first place is that of ``grow``."""
        return 1 + [one.name for one in self.arguments].index(name)


def number(value: int) -> Const:
    """An ``int64`` constant."""
    return Const(value=value, type=INDEX)


def local(name: str, type: Type = INDEX) -> Local:
    """A local by its name."""
    return Local(name=name, type=type)


def plus(left: Expr, right: Expr) -> Expr:
    """The sum, without additions of zero."""
    match left, right:
        case Const(value=0), _:
            return right
        case _, Const(value=0):
            return left
    return apply(Op.ADD, left, right)


def times(left: Expr, right: Expr) -> Expr:
    """The product, without multiplications by zero and one."""
    match left, right:
        case (Const(value=0), _) | (_, Const(value=1)):
            return left
        case (_, Const(value=0)) | (Const(value=1), _):
            return right
    return apply(Op.MULTIPLY, left, right)


def less(left: Expr, right: Expr) -> Apply:
    """The comparison ``left < right``."""
    return apply(Op.LESS, left, right)
