"""Loops as statements over arrays, which become machine code or C, and a writer for them.

Expressions are those of ``core.expr`` over ``Local`` names, and touch no memory: statements load
and store.  Coordinates and positions are ``int64``, whatever the integer type of an array.  A
function takes a table of 64-bit words: the address of the function that grows arrays, then the
addresses of arrays and the numbers, in the order of the arguments, and those of the C library's
functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t2s.core.errors import InternalError
from t2s.core.expr import Const, Expr, Local
from t2s.core.names import NameSupply
from t2s.core.ops import C_FUNCTIONS, Op
from t2s.core.types import Int, Type
from t2s.core.walk import Term
from t2s.llvm.c_functions import addresses_of_c_functions

INDEX = Int(64)
"""The type of coordinates, positions and extents."""

LARGEST_COORDINATE = (1 << 63) - 1
"""Behind all coordinates: the coordinate of a list at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopArray(Term):
    """An array that a function reads or writes; arrays with the same ``grows`` grow together."""

    name: str
    type: Type
    written: bool = False
    grows: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopNumber(Term):
    """An ``int64`` argument; if ``returned``, its final value is written back to the table."""

    name: str
    returned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLocal(Term):
    """Assign a local; the first assignment defines it."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadElement(Term):
    """Load an element of an array into a local; index arrays are converted to ``int64``."""

    name: str
    array: str
    index: Expr
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreElement(Term):
    """Store a value into an element of an array."""

    array: str
    index: Expr
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingLoop(Term):
    """Run the body for every number from ``start`` up to, but not including, ``end``."""

    name: str
    start: Expr
    end: Expr
    body: tuple[LoopStatement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhileLoop(Term):
    """Run the body while a condition holds, tested before each iteration."""

    condition: Expr
    body: tuple[LoopStatement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopBranch(Term):
    """Run the body if a condition holds, and ``otherwise`` if not."""

    condition: Expr
    body: tuple[LoopStatement, ...]
    otherwise: tuple[LoopStatement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeRoom(Term):
    """Grow the arrays of a group to at least ``needed`` elements; if that fails, the run ends."""

    group: str
    needed: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementAddress(Term):
    """The address of an element of an array, as an argument of a call."""

    array: str
    index: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopCall(Term):
    """A call through the address in the argument ``function``; in C by its ``symbol``.

    Arguments are addresses, and values by their types; the returned value becomes a local.
    """

    function: str
    symbol: str
    arguments: tuple[ElementAddress | Expr, ...]
    returns: Type | None = None
    result: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndWith(Term):
    """Return from the function with this status, which is not 0."""

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

    Each group of arrays that grow has a number argument of the group's name: its capacity.
    """

    arguments: tuple[LoopArray | LoopNumber, ...]
    groups: tuple[str, ...]
    body: tuple[LoopStatement, ...]

    def array(self, name: str) -> LoopArray:
        """The array of that name; ``KeyError`` if there is none."""
        for argument in self.arguments:
            if isinstance(argument, LoopArray) and argument.name == name:
                return argument
        raise KeyError(name)

    def slot(self, name: str) -> int:
        """The index of an argument in the table; index 0 is that of ``grow``."""
        return 1 + [argument.name for argument in self.arguments].index(name)

    def table(self) -> NDArray[np.int64]:
        """A table without arguments yet; behind them are the functions of the C library."""
        table = np.zeros(1 + len(self.arguments) + len(C_FUNCTIONS), np.int64)
        table[1 + len(self.arguments) :] = addresses_of_c_functions()
        return table

    def slot_of_operator(self, operator: Op) -> int:
        """The index in the table of the address of a function of the C library."""
        return 1 + len(self.arguments) + list(C_FUNCTIONS).index(operator)


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
    return left + right


def times(left: Expr, right: Expr) -> Expr:
    """The product, without multiplications by zero and one."""
    match left, right:
        case (Const(value=0), _) | (_, Const(value=1)):
            return left
        case (_, Const(value=0)) | (Const(value=1), _):
            return right
    return left * right


# Writing loops: statements in order, arguments when they are first used.


class LoopWriter:
    """Statements of one function, in the order in which they run."""

    def __init__(self) -> None:
        self._names = NameSupply()
        self._arguments: dict[str, LoopArray | LoopNumber] = {}
        self._groups: list[str] = []
        self._blocks: list[list[LoopStatement]] = [[]]

    # -- arguments --------------------------------------------------------------------------------

    def array(self, name: str, type: Type, *, written: bool = False, grows: str = "") -> str:
        """An array argument; the same name is the same array."""
        argument = LoopArray(name=name, type=type, written=written, grows=grows)
        if self._arguments.setdefault(name, argument) != argument:
            raise InternalError(f"the array {name} is two arrays")
        self._names.fresh(name)
        if grows and grows not in self._groups:
            self._groups.append(grows)
            self.number(grows)
        return name

    def number(self, name: str, *, returned: bool = False) -> Local:
        """A number argument."""
        if name not in self._arguments:
            self._names.fresh(name)
            self._arguments[name] = LoopNumber(name=name, returned=returned)
        return local(name)

    # -- statements -------------------------------------------------------------------------------

    def _add(self, statement: LoopStatement) -> None:
        self._blocks[-1].append(statement)

    def fresh(self, prefix: str, value: Expr) -> Local:
        """A new local with this value."""
        name = self._names.fresh(prefix)
        self._add(SetLocal(name=name, value=value))
        return local(name, value.type)

    def set(self, target: Local, value: Expr) -> None:
        """Assign a local again."""
        self._add(SetLocal(name=target.name, value=value))

    def load(self, prefix: str, array: str, index: Expr, type: Type = INDEX) -> Local:
        """A new local with an element of an array."""
        name = self._names.fresh(prefix)
        self._add(LoadElement(name=name, array=array, index=index, type=type))
        return local(name, type)

    def load_into(self, target: Local, array: str, index: Expr) -> None:
        """Load an element of an array into a local."""
        self._add(LoadElement(name=target.name, array=array, index=index, type=target.type))

    def store(self, array: str, index: Expr, value: Expr) -> None:
        """Overwrite an element."""
        self._add(StoreElement(array=array, index=index, value=value))

    def make_room(self, group: str, needed: Expr) -> None:
        """Grow the arrays of a group to this many elements, if they are smaller."""
        self._add(MakeRoom(group=group, needed=needed))

    def call(
        self,
        function: str,
        symbol: str,
        arguments: tuple[ElementAddress | Expr, ...],
        returns: Type | None,
    ) -> Local | None:
        """Call a function by its address; returns a new local for its value."""
        self.number(function)
        result = self._names.fresh("returned") if returns is not None else ""
        self._add(
            LoopCall(
                function=function,
                symbol=symbol,
                arguments=arguments,
                returns=returns,
                result=result,
            )
        )
        return None if returns is None else local(result, returns)

    def end_with(self, status: Expr) -> None:
        """Return from the function."""
        self._add(EndWith(status=status))

    @contextmanager
    def counting(self, prefix: str, start: Expr, end: Expr) -> Iterator[Local]:
        """A loop over numbers."""
        name = self._names.fresh(prefix)
        self._blocks.append([])
        yield local(name)
        body = tuple(self._blocks.pop())
        self._add(CountingLoop(name=name, start=start, end=end, body=body))

    @contextmanager
    def repeating(self, condition: Expr) -> Iterator[None]:
        """A loop while a condition holds."""
        self._blocks.append([])
        yield
        body = tuple(self._blocks.pop())
        self._add(WhileLoop(condition=condition, body=body))

    @contextmanager
    def where(self, condition: Expr | None) -> Iterator[None]:
        """A branch; the statements are unconditional if the condition is ``None``."""
        self._blocks.append([])
        yield
        body = self._blocks.pop()
        if condition is None:
            self._blocks[-1] += body
        elif body:
            self._add(LoopBranch(condition=condition, body=tuple(body)))

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """The else part of the branch just before."""
        before = self._blocks[-1].pop()
        if not isinstance(before, LoopBranch):
            raise InternalError("there is no branch before this")
        self._blocks.append([])
        yield
        other = tuple(self._blocks.pop())
        self._add(LoopBranch(condition=before.condition, body=before.body, otherwise=other))

    def function(self) -> LoopFunction:
        """The finished function."""
        if len(self._blocks) != 1:
            raise InternalError("a loop is not closed")
        return LoopFunction(
            arguments=tuple(self._arguments.values()),
            groups=tuple(self._groups),
            body=tuple(self._blocks[0]),
        )
