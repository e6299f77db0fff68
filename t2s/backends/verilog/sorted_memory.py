"""The module of a sorted memory: points in order in a row of registers, each with a value.

All points compare themselves with an added point in one cycle; those behind it move up by one
place.  When the first point is dropped, all others move down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from t2s.backends.text.expressions import (
    Binary,
    If,
    Name,
    TargetExpression,
    TargetStatement,
    Ternary,
    number,
)
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.data_types import bits_of, signal_names, signed_as
from t2s.backends.verilog.expressions import apply
from t2s.graph.nodes import SortedMemory

POINTS = 1024
"""Room of a sorted memory, in points; one that takes more than that fails."""

AT, LANE = "at", "lane"


@dataclass(frozen=True, slots=True, kw_only=True)
class PointPorts:
    """Names of the ports of a sorted memory; keys have one port each.

    ``enable`` performs what ``add`` and ``drop`` request; ``full`` says that it is impossible.
    """

    enable: str
    add: str
    drop: str
    keys: tuple[str, ...]
    value: str
    count: str
    first_keys: tuple[str, ...]
    first_value: str
    full: str


def point_ports(memory: SortedMemory) -> PointPorts:
    """The ports."""
    numbers = range(len(memory.keys))
    return PointPorts(
        enable="enable",
        add="add",
        drop="drop",
        keys=tuple(f"key_{n}" for n in numbers),
        value="value",
        count="count",
        first_keys=tuple(f"first_key_{n}" for n in numbers),
        first_value="first_value",
        full="full",
    )


def typed_ports(memory: SortedMemory, names: PointPorts) -> Iterator[ast.ModulePort]:
    """The ports apart from clock and reset, under other names if ``names`` says so."""
    yield from (ast.input_port(name) for name in (names.enable, names.add, names.drop))
    for name, type in zip(names.keys, memory.keys, strict=True):
        yield ast.input_port(name, bits_of(type))
    yield ast.input_port(names.value, bits_of(memory.type))
    yield ast.output_port(names.count, ast.INTEGER)
    for name, type in zip(names.first_keys, memory.keys, strict=True):
        yield ast.output_port(name, bits_of(type))
    yield ast.output_port(names.first_value, bits_of(memory.type))
    yield ast.output_port(names.full)


def sorted_memory_module(memory: SortedMemory, name: str) -> ast.HardwareModule:
    """The module of that name."""
    return _MemoryWriter(memory, name).build()


class _MemoryWriter:
    def __init__(self, memory: SortedMemory, name: str) -> None:
        self.memory, self.name = memory, name
        self.ports = point_ports(memory)
        fresh = signal_names((port.CLOCK, port.RESET, AT, LANE)).fresh
        self.columns: list[tuple[str, ast.Bits, str]] = [
            (fresh(f"keys_{n}"), bits_of(type), key)
            for n, (type, key) in enumerate(zip(memory.keys, self.ports.keys, strict=True))
        ]
        self.values = fresh("values")
        self.place, self.present = fresh("place"), fresh("present")
        self.combined = fresh("combined")

    def build(self) -> ast.HardwareModule:
        ports = (
            ast.input_port(port.CLOCK),
            ast.input_port(port.RESET),
            *typed_ports(self.memory, self.ports),
        )
        keys = "one key" if len(self.memory.keys) == 1 else f"{len(self.memory.keys)} keys"
        columns = [ast.variable(name, type, POINTS) for name, type, _ in self.columns]
        items: list[ast.Item] = [
            *columns,
            ast.variable(self.values, bits_of(self.memory.type), POINTS),
            ast.variable(self.place, ast.INTEGER),
            ast.variable(self.present, ast.BIT),
            ast.variable(self.combined, bits_of(self.memory.type)),
            ast.AlwaysComb(body=tuple(self._find())),
            ast.AlwaysComb(body=(self._combine(),)),
            *self._outputs(),
            ast.Heading(text="one point comes or goes"),
            ast.AlwaysFF(body=self._change()),
        ]
        return ast.HardwareModule(
            name=self.name,
            about=(f"A sorted memory: up to {POINTS} points of {keys}, the first one first.",),
            ports=ports,
            items=tuple(items),
            shared=True,
        )

    def _find(self) -> Iterator[TargetStatement]:
        """The place at which the added point is, or has to be inserted."""
        at = Name(name=AT)
        inside = Binary(operator="<", left=at, right=Name(name=self.ports.count))
        pairs = [(ast.element(name, at), Name(name=key)) for name, _, key in self.columns]
        before = If(
            condition=_less(pairs),
            then=(ast.put(self.place, Binary(operator="+", left=at, right=number(1))),),
        )
        same = ast.both(*(Binary(operator="==", left=a, right=b) for a, b in pairs))
        when_same = If(condition=same, then=(ast.put(self.present, ast.TRUE),))
        look = If(condition=inside, then=(before, when_same))
        yield ast.put(self.place, number(0))
        yield ast.put(self.present, ast.FALSE)
        loop = ast.UnrolledFor(variable=AT, count=POINTS, body=(look,))
        yield If(condition=Name(name=self.ports.add), then=(loop,))

    def _combine(self) -> TargetStatement:
        """The new value of an existing point, lane by lane."""
        type, lane = self.memory.type, Name(name=LANE)
        stored: TargetExpression = ast.element(self.values, Name(name=self.place))
        value: TargetExpression = Name(name=self.ports.value)
        if type.lanes == 1:
            combined = apply(self.memory.operator, type, (stored, value))
            return ast.put(self.combined, combined)
        operands = tuple(
            signed_as(ast.Element(base=vector, index=lane), type.scalar)
            for vector in (stored, value)
        )
        combined = apply(self.memory.operator, type.scalar, operands)
        return ast.UnrolledFor(
            variable=LANE,
            count=type.lanes,
            body=(ast.put(ast.element(self.combined, lane), combined),),
        )

    def _outputs(self) -> Iterator[ast.Item]:
        count = Name(name=self.ports.count)
        none = Binary(operator="==", left=count, right=number(0))
        rows = [name for name, _, _ in self.columns]
        targets = (*self.ports.first_keys, self.ports.first_value)
        for target, row in zip(targets, (*rows, self.values), strict=True):
            first = Ternary(condition=none, if_true=ast.ZEROS, if_false=ast.element(row, 0))
            yield ast.ContinuousAssignment(target=Name(name=target), value=first)
        no_room = Binary(operator="==", left=count, right=number(POINTS))
        full = ast.both(Name(name=self.ports.add), ast.negation(Name(name=self.present)), no_room)
        yield ast.ContinuousAssignment(target=Name(name=self.ports.full), value=full)

    def _change(self) -> tuple[TargetStatement, ...]:
        ports = self.ports
        count, place = Name(name=ports.count), Name(name=self.place)
        value = Name(name=ports.value)
        stored = ast.element(self.values, place)
        combined = Name(name=self.combined)
        rows = [*((name, Name(name=key)) for name, _, key in self.columns), (self.values, value)]
        grow: list[TargetStatement] = [
            If(
                condition=Binary(operator=">=", left=Name(name=AT), right=place),
                then=tuple(self._moved(row, up=True) for row, _ in rows),
            )
        ]
        new = [ast.put(ast.element(row, place), new_value, clocked=True) for row, new_value in rows]
        insert = (
            ast.UnrolledFor(variable=AT, count=POINTS - 1, body=tuple(grow)),
            *new,
            ast.put(count, Binary(operator="+", left=count, right=number(1)), clocked=True),
        )
        remove = (
            ast.UnrolledFor(
                variable=AT,
                count=POINTS - 1,
                body=tuple(self._moved(row, up=False) for row, _ in rows),
            ),
            ast.put(count, Binary(operator="-", left=count, right=number(1)), clocked=True),
        )
        add = If(
            condition=Name(name=self.present),
            then=(ast.put(stored, combined, clocked=True),),
            otherwise=insert,
        )
        some = Binary(operator="!=", left=count, right=number(0))
        drop = If(condition=ast.both(Name(name=ports.drop), some), then=remove)
        change = If(condition=Name(name=ports.add), then=(add,), otherwise=(drop,))
        return (
            If(
                condition=Name(name=port.RESET),
                then=(ast.put(count, number(0), clocked=True),),
                otherwise=(If(condition=Name(name=ports.enable), then=(change,)),),
            ),
        )

    def _moved(self, row: str, *, up: bool) -> TargetStatement:
        at = Name(name=AT)
        other = Binary(operator="+", left=at, right=number(1))
        target, source = (other, at) if up else (at, other)
        return ast.put(ast.element(row, target), ast.element(row, source), clocked=True)


def _less(pairs: Sequence[tuple[TargetExpression, TargetExpression]]) -> TargetExpression:
    """Whether the first point comes before the second, in lexicographic order."""
    (left, right), *rest = pairs
    smaller = Binary(operator="<", left=left, right=right)
    if not rest:
        return smaller
    same = Binary(operator="==", left=left, right=right)
    return ast.either(smaller, ast.both(same, _less(rest)))
