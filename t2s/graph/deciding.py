"""Which input arrays decide what the machines of a graph do, and which only pass through.

The times of a graph follow from the rules that its machines take.  So two runs of it take the same
cycles if the arrays are equal whose elements reach a condition: positions and coordinates do,
values as a rule do not, unless a block drops zeros.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from t2s.core.errors import InternalError
from t2s.core.expr import Expr, Local
from t2s.core.walk import distinct
from t2s.graph.body import Let, Load, RegisterRead, RegisterWrite, Statement, Store
from t2s.graph.graph import Graph, TensorRole
from t2s.graph.nodes import (
    Choice,
    Machine,
    MemoryAdd,
    MemoryDrop,
    MemoryFirst,
    MemorySize,
    Rule,
    Search,
)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value is: a local, a register or a memory of a machine, a channel, or a tensor."""

    owner: str
    name: str = ""
    part: str = ""


def deciding_arrays(
    graph: Graph, results: Iterable[str] = (), *, addresses: bool = False
) -> frozenset[str]:
    """The input tensors whose elements decide which rules the machines of a graph take.

    Those that what is stored in the tensors ``results`` depends on count too, and with
    ``addresses`` those that addresses depend on, as for memories whose times do.  All inputs of a
    graph that has other nodes than machines count.
    """
    inputs = {tensor.name for tensor in graph.tensors if tensor.role is TensorRole.INPUT}
    if len(graph.machines) != len(graph.nodes):
        return frozenset(inputs)
    flows = _Flows(addresses)
    for machine in graph.machines:
        flows.add(machine)
    reached = flows.before({*flows.deciding, *(_tensor(name) for name in results)})
    return frozenset(name for name in inputs if _tensor(name) in reached)


def _tensor(name: str) -> _Place:
    return _Place("tensor", name)


@dataclass(slots=True)
class _Flows:
    """``sources`` has for each place those that it is computed from, in any firing."""

    addresses: bool
    sources: dict[_Place, set[_Place]] = field(default_factory=dict)
    deciding: set[_Place] = field(default_factory=set)

    def add(self, machine: Machine) -> None:
        for head in machine.heads:
            self._flow(_Place(machine.name, head.value), {_Place("value", head.channel)})
            if head.tag is not None:
                self._flow(_Place(machine.name, head.tag), {_Place("tag", head.channel)})
        for mode in machine.modes:
            for choice in mode.choices:
                self._choice(machine.name, choice)

    def before(self, places: set[_Place]) -> set[_Place]:
        """The places, and all that they are computed from."""
        waiting, found = list(places), set(places)
        while waiting:
            more = self.sources.get(waiting.pop(), set()) - found
            found |= more
            waiting += more
        return found

    def _choice(self, machine: str, choice: Choice) -> None:
        self.deciding |= _locals(machine, choice.when)
        for statement in choice.body:
            self._statement(machine, statement)
        match choice.inside:
            case Rule(body=body, puts=puts):
                for statement in body:
                    self._statement(machine, statement)
                for put in puts:
                    self._flow(_Place("value", put.channel), _locals(machine, put.value))
                    self._flow(_Place("tag", put.channel), _locals(machine, put.tag))
            case inner:
                for further in inner:
                    self._choice(machine, further)

    def _statement(self, machine: str, statement: Statement) -> None:
        def local(name: str) -> _Place:
            return _Place(machine, name)

        def keys(memory: str) -> _Place:
            return _Place(machine, memory, "keys")

        def values(memory: str) -> _Place:
            return _Place(machine, memory, "values")

        read = _locals(machine, *_expressions(statement))
        match statement:
            case Let(target=target):
                self._flow(local(target), read)
            case Load(target=target, tensor=tensor):
                self._flow(local(target), {*read, _tensor(tensor)})
                self._address(read)
            case Search(target=target, tensor=tensor):
                self._flow(local(target), {*read, _tensor(tensor)})
                self._address({*read, _tensor(tensor)})
            case Store(tensor=tensor, indices=indices):
                self._flow(_tensor(tensor), read)
                self._address(_locals(machine, *indices))
            case RegisterRead(target=target, register=register):
                self._flow(local(target), {*read, local(register)})
            case RegisterWrite(register=register):
                self._flow(local(register), read)
            case MemoryAdd(memory=memory, keys=points, value=value):
                self._flow(keys(memory), _locals(machine, *points))
                self._flow(values(memory), {keys(memory), *_locals(machine, value)})
            case MemorySize(target=target, memory=memory):
                self._flow(local(target), {keys(memory)})
            case MemoryFirst(targets=targets, value=value, memory=memory):
                for target in targets:
                    self._flow(local(target), {keys(memory)})
                self._flow(local(value), {values(memory)})
            case MemoryDrop():
                pass
            case _:
                raise InternalError(f"{type(statement).__name__} in a machine")

    def _flow(self, place: _Place, sources: set[_Place]) -> None:
        self.sources.setdefault(place, set()).update(sources)

    def _address(self, places: set[_Place]) -> None:
        if self.addresses:
            self.deciding |= places


def _expressions(statement: Statement) -> Iterator[Expr]:
    """The expressions of a statement."""
    for term in distinct(statement, into=lambda term: not isinstance(term, Expr)):
        if isinstance(term, Expr):
            yield term


def _locals(machine: str, *expressions: Expr | None) -> set[_Place]:
    """The locals and registers of a machine in expressions."""
    return {
        _Place(machine, term.name)
        for expression in expressions
        if expression is not None
        for term in distinct(expression)
        if isinstance(term, Local)
    }
