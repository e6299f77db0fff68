"""Faults of machines, and how the testbench detects them.

A machine itself reports that no alternative holds for its tokens, that a sorted memory is full, and
so on; an address outside of a tensor is detected where the length of the tensor is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from t2s.backends.text.expressions import (
    Binary,
    If,
    Name,
    TargetExpression,
    TargetStatement,
    call,
    number,
)
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.interfaces import TAG_BITS, Interface, LoadPort, StorePort
from t2s.backends.verilog.sorted_memory import POINTS
from t2s.backends.verilog.top import NodeNames, Top
from t2s.graph.graph import Graph

P = "p"


class Fault(Enum):
    """The kinds of faults; the values are those of the port ``fault``, where 0 is no fault."""

    TOKENS = 1
    POINTS = 2
    REGISTER = 3
    TAG = 4
    TENSOR = 5


def fault_text(graph: Graph, cycle: int, kind: int, node: int, place: int, tensor: int) -> str:
    """The message of a fault."""
    machine = graph.nodes[node]
    name = repr(machine.name) if machine.place_count == 1 else f"number {place} of {machine.name!r}"
    match Fault(kind):
        case Fault.TOKENS:
            what = f"{name} met tokens that it cannot take"
        case Fault.POINTS:
            what = f"a sorted memory of {name} has room for {POINTS} points only"
        case Fault.REGISTER:
            what = f"{name} uses an element outside of a register file"
        case Fault.TAG:
            what = f"{name} puts a tag that has no {TAG_BITS} bits"
        case Fault.TENSOR:
            what = f"{name} uses an element outside of {graph.tensors[tensor].name!r}"
    return f"cycle {cycle}: {what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultNames:
    """Variables of the testbench: the fault of this cycle, where, and in which tensor."""

    kind: str
    node: str
    place: str
    tensor: str

    @property
    def all(self) -> tuple[str, str, str, str]:
        """All names, in the order in which they are reported."""
        return self.kind, self.node, self.place, self.tensor


@dataclass(frozen=True, kw_only=True)
class FaultFinder:
    """Builds the items; ``lengths`` says how many elements each tensor has."""

    top: Top
    names: FaultNames
    lengths: Mapping[str, TargetExpression]

    @property
    def needed(self) -> bool:
        """Whether any node can have a fault."""
        return any(interface.may_fail for interface, _ in self.top.nodes)

    def build(self) -> list[ast.Item]:
        """The items of the module."""
        if not self.needed:
            return []
        body: list[TargetStatement] = [ast.put(name, number(0)) for name in self.names.all]
        for position, (interface, names) in enumerate(self.top.nodes):
            if interface.may_fail:
                checks = self._checks(position, interface, names)
                count = interface.node.place_count
                body.append(ast.UnrolledFor(variable=P, count=count, body=tuple(checks)))
        return [
            ast.Heading(text="what machines cannot take"),
            *(ast.variable(name, ast.WORD) for name in self.names.all),
            ast.AlwaysComb(body=tuple(body)),
        ]

    def _checks(
        self, position: int, interface: Interface, names: NodeNames
    ) -> Iterator[TargetStatement]:
        tensors = [tensor.name for tensor in self.top.graph.tensors]
        own = ast.Resize(bits=32, value=_of(names.fault))
        yield self._if(_unequal(_of(names.fault), 0), own, position, 0)
        outside = number(Fault.TENSOR.value)
        fires = _of(names.fires)
        ports: tuple[LoadPort | StorePort, ...] = (*interface.loads, *interface.stores)
        for port, access in zip(ports, (*names.loads, *names.stores), strict=True):
            last = Binary(
                operator="+", left=_wide(_of(access.address)), right=number(port.type.lanes)
            )
            length = self.lengths[port.tensor.name]
            beyond = Binary(operator=">", left=last, right=length)
            wrong = ast.both(fires, _of(access.enable), beyond)
            yield self._if(wrong, outside, position, tensors.index(port.tensor.name))
        for search, signals in zip(interface.searches, names.searches, strict=True):
            begin, end = _of(signals.begin), _of(signals.end)
            some = Binary(operator="<", left=call("$signed", begin), right=call("$signed", end))
            length = self.lengths[search.tensor.name]
            astray = ast.either(
                Binary(operator=">=", left=_wide(begin), right=length),
                Binary(operator=">", left=_wide(end), right=length),
            )
            wrong = ast.both(fires, _of(signals.enable), some, astray)
            yield self._if(wrong, outside, position, tensors.index(search.tensor.name))

    def _if(
        self, condition: TargetExpression, kind: TargetExpression, node: int, tensor: int
    ) -> If:
        names = self.names
        return If(
            condition=condition,
            then=(
                ast.put(names.kind, kind),
                ast.put(names.node, number(node)),
                ast.put(names.place, Name(name=P)),
                ast.put(names.tensor, number(tensor)),
            ),
        )


def _of(name: str) -> TargetExpression:
    return ast.element(name, Name(name=P))


def _wide(value: TargetExpression) -> TargetExpression:
    return ast.Resize(bits=64, value=value)


def _unequal(value: TargetExpression, other: int) -> TargetExpression:
    return Binary(operator="!=", left=value, right=number(other))
