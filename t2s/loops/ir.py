"""Loops as statements over arrays: what becomes machine code or C, and how it is written.

Expressions are those of ``core.expr`` over ``Local`` names, and touch no memory: statements load
and store.  Coordinates and positions are ``int64``, whatever the integers of an array are.  A
function takes a table of numbers of 64 bits: addresses of arrays, and numbers, in the order of its
arguments, behind the address of what makes room in arrays that grow.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from t2s.core.errors import InternalError
from t2s.core.expr import Const, Expr, Local
from t2s.core.names import NameSupply
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
    """The body as long as a condition holds."""

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
        for argument in self.arguments:
            if isinstance(argument, LoopArray) and argument.name == name:
                return argument
        raise KeyError(name)

    def slot(self, name: str) -> int:
        """The place of an argument in the table; the first place is that of ``grow``."""
        return 1 + [argument.name for argument in self.arguments].index(name)


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


# Writing loops: statements one after the other, arguments as they are first asked for.


class LoopWriter:
    """Statements of one function, in the order in which they run."""

    def __init__(self) -> None:
        self._names = NameSupply()
        self._arguments: dict[str, LoopArray | LoopNumber] = {}
        self._groups: list[str] = []
        self._blocks: list[list[LoopStatement]] = [[]]

    # -- arguments --------------------------------------------------------------------------------

    def array(self, name: str, type: Type, *, written: bool = False, grows: str = "") -> str:
        """An array among the arguments; the same name is the same array."""
        argument = LoopArray(name=name, type=type, written=written, grows=grows)
        if self._arguments.setdefault(name, argument) != argument:
            raise InternalError(f"the array {name} is two arrays")
        self._names.fresh(name)
        if grows and grows not in self._groups:
            self._groups.append(grows)
            self.number(grows)
        return name

    def number(self, name: str, *, returned: bool = False) -> Local:
        """A number among the arguments."""
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
        """Another value for a local."""
        self._add(SetLocal(name=target.name, value=value))

    def load(self, prefix: str, array: str, index: Expr, type: Type = INDEX) -> Local:
        """A new local: an element of an array."""
        name = self._names.fresh(prefix)
        self._add(LoadElement(name=name, array=array, index=index, type=type))
        return local(name, type)

    def load_into(self, target: Local, array: str, index: Expr) -> None:
        """A local becomes an element of an array."""
        self._add(LoadElement(name=target.name, array=array, index=index, type=target.type))

    def store(self, array: str, index: Expr, value: Expr) -> None:
        """Overwrite an element."""
        self._add(StoreElement(array=array, index=index, value=value))

    def make_room(self, group: str, needed: Expr) -> None:
        """Room for so many elements in the arrays of a group."""
        self._add(MakeRoom(group=group, needed=needed))

    def call(
        self,
        function: str,
        symbol: str,
        arguments: tuple[ElementAddress | Expr, ...],
        returns: Type | None,
    ) -> Local | None:
        """Call a function by its address; a new local for what it returns."""
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
        """The function ends."""
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
        """Statements where a condition holds; always, if it is ``None``."""
        self._blocks.append([])
        yield
        body = self._blocks.pop()
        if condition is None:
            self._blocks[-1] += body
        elif body:
            self._add(LoopBranch(condition=condition, body=tuple(body)))

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Statements where the condition of the branch right before does not hold."""
        before = self._blocks[-1].pop()
        if not isinstance(before, LoopBranch):
            raise InternalError("there is no branch before this")
        self._blocks.append([])
        yield
        other = tuple(self._blocks.pop())
        self._add(LoopBranch(condition=before.condition, body=before.body, otherwise=other))

    def function(self) -> LoopFunction:
        """All that was written."""
        if len(self._blocks) != 1:
            raise InternalError("a loop is not closed")
        return LoopFunction(
            arguments=tuple(self._arguments.values()),
            groups=tuple(self._groups),
            body=tuple(self._blocks[0]),
        )
