"""Writing loops: statements one after the other, arguments as they are first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from t2s.core.errors import InternalError
from t2s.core.expr import Expr, Local
from t2s.core.names import NameSupply
from t2s.core.types import Type
from t2s.loops.ir import (
    INDEX,
    CountingLoop,
    ElementAddress,
    EndWith,
    LoadElement,
    LoopArray,
    LoopBranch,
    LoopCall,
    LoopFunction,
    LoopNumber,
    LoopStatement,
    MakeRoom,
    SetLocal,
    StoreElement,
    WhileLoop,
    local,
)


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
        made = LoopArray(name=name, type=type, written=written, grows=grows)
        if self._arguments.setdefault(name, made) != made:
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

    def fresh(self, wanted: str, value: Expr) -> Local:
        """A new local with this value."""
        name = self._names.fresh(wanted)
        self._add(SetLocal(name=name, value=value))
        return local(name, value.type)

    def set(self, target: Local, value: Expr) -> None:
        """Another value for a local."""
        self._add(SetLocal(name=target.name, value=value))

    def load(self, wanted: str, array: str, index: Expr, type: Type = INDEX) -> Local:
        """A new local: an element of an array."""
        name = self._names.fresh(wanted)
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
    def counting(self, wanted: str, start: Expr, end: Expr) -> Iterator[Local]:
        """A loop over numbers."""
        name = self._names.fresh(wanted)
        self._blocks.append([])
        yield local(name)
        body = tuple(self._blocks.pop())
        self._add(CountingLoop(name=name, start=start, end=end, body=body))

    @contextmanager
    def head(self) -> Iterator[list[LoopStatement]]:
        """Statements that are put elsewhere."""
        self._blocks.append([])
        made: list[LoopStatement] = []
        yield made
        made += self._blocks.pop()

    @contextmanager
    def repeating(self, condition: Expr, head: list[LoopStatement] | None = None) -> Iterator[None]:
        """A loop while a condition holds, which ``head`` computes."""
        self._blocks.append([])
        yield
        body = tuple(self._blocks.pop())
        self._add(WhileLoop(head=tuple(head or ()), condition=condition, body=body))

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
