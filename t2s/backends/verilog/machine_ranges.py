"""Ranges of what is in the channels, registers and addresses of machines, from sizes of tensors.

A coordinate is less than the extent of its level, a reference less than the length of the next one,
and a tag at most as large as a stream is nested.  Nothing is said about what is a coordinate or a
reference: the rules of the machines are carried out with ranges in place of numbers until nothing
grows any more [Cousot and Cousot 1977, "Abstract Interpretation", secs. 6 and 9], and then a few
times more, which takes back what growing in large steps has added.  What a rule computes counts
only where its conditions may hold, and what follows an access only where that is inside of its
tensor: the run ends with a fault at the first one that is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from t2s.backends.verilog.value_ranges import (
    Known,
    Range,
    assume,
    range_of,
    range_of_type,
    restrict,
)
from t2s.core.expr import Const, Expr
from t2s.core.types import INT32, Type
from t2s.graph.body import Let, Load, RegisterRead, RegisterWrite, Statement, Store, by_lanes
from t2s.graph.graph import Channel, Graph, Tensor, TensorRole
from t2s.graph.nodes import (
    VALUE,
    Choice,
    Machine,
    MemoryFirst,
    MemorySize,
    Path,
    Search,
)

MOST_ROUNDS = 1000
"""More than any graph takes: a range grows at most once for each bit."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What is known of the tensors of a design.

    Attributes
    ----------
    lengths: elements of tensors of one dimension whose length is known, by name.
    elements: the values of the elements of inputs, by name; those of others may be any of their
        type.
    """

    lengths: Mapping[str, int] = field(default_factory=dict)
    elements: Mapping[str, Range] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Value:
    """The value of the tokens of a channel."""

    channel: str


@dataclass(frozen=True, slots=True)
class Tag:
    """The tag of the tokens of a channel."""

    channel: str


@dataclass(frozen=True, slots=True)
class Kept:
    """What a register of a machine holds, in any of its elements."""

    machine: str
    register: str


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of a tensor."""

    tensor: str


@dataclass(frozen=True, slots=True)
class LoadAt:
    """The address of a load of a machine, by its number among them, also if it is outside."""

    machine: str
    number: int


@dataclass(frozen=True, slots=True)
class StoreAt:
    """The address of a store of a machine, by its number among them, also if it is outside."""

    machine: str
    number: int


Place: TypeAlias = Value | Tag | Kept | Elements | LoadAt | StoreAt

Ranges: TypeAlias = Mapping[Place, Range]
"""The ranges of places; a place that is not there may have all values of its type."""

UNKNOWN: Ranges = MappingProxyType({})


def ranges_of(graph: Graph, sizes: Sizes) -> Ranges:
    """The ranges of all places of the machines of a graph.

    Channels that a PE array sends to, vectors, and numbers that are not integers have none.
    Places that are never reached have none either.
    """
    rounds = _Rounds(graph, sizes)
    found = dict(rounds.start)
    for _ in range(MOST_ROUNDS):
        after = rounds.next(found)
        if all(place in found and range <= found[place] for place, range in after.items()):
            break
        found = {
            place: range if place not in found else _grown(found[place], range)
            for place, range in after.items()
        }
    else:
        raise AssertionError("ranges only grow")
    for _ in graph.nodes:
        after = rounds.next(found)
        if after == found:
            break
        found = after
    return found


def _grown(old: Range, new: Range) -> Range:
    """Both, and if that is more than the old one, all integers of as many bits."""
    return old if new <= old else old.join(new).in_bits()


class _Rounds:
    """Carries out every rule of every machine once, with what is known of their inputs."""

    def __init__(self, graph: Graph, sizes: Sizes) -> None:
        self.graph = graph
        self.lengths = {
            tensor.name: length
            for tensor in graph.tensors
            if (length := _length(tensor, sizes)) is not None
        }
        self.start: dict[Place, Range] = {}
        for tensor in graph.tensors:
            every = range_of_type(tensor.type)
            given = tensor.role is TensorRole.INPUT
            known = sizes.elements.get(tensor.array, every) if given else Range(0, 0)
            self.start[Elements(tensor.name)] = known if known <= every else every
        for array in graph.pe_arrays:
            for statement in array.body:
                if isinstance(statement, Store):
                    tensor = graph.tensor(statement.tensor)
                    self.start[Elements(tensor.name)] = range_of_type(tensor.type)
        for channel in graph.channels:
            if not isinstance(graph.node(channel.source), Machine):
                self.start[Value(channel.name)] = range_of_type(channel.stream.element)
        self.paths = {machine.name: machine.paths() for machine in graph.machines}
        for machine in graph.machines:
            for register in machine.registers:
                start = range_of_type(register.type)
                if _is_ranged(register.type):
                    start = Range(int(register.initial), int(register.initial))
                self.start[Kept(machine.name, register.name)] = start

    def next(self, found: Ranges) -> dict[Place, Range]:
        """The ranges after one more firing of each rule."""
        after = dict(self.start)
        for machine in self.graph.machines:
            numbers = _numbers(machine)
            for path in self.paths[machine.name]:
                _Firing(self.graph, machine, numbers, self.lengths, found, after).of(path)
        return after


def _length(tensor: Tensor, sizes: Sizes) -> int | None:
    if tensor.open:
        return sizes.lengths.get(tensor.name)
    return tensor.allocated[0] if len(tensor.allocated) == 1 else None


def _is_ranged(type: Type) -> bool:
    return type.lanes == 1 and not type.is_float


def _numbers(machine: Machine) -> Mapping[int, int]:
    """The number of each load and of each store, by the identity of the statement.

    Equal statements in different rules are different ports.
    """
    numbers: dict[int, int] = {}
    for kind in (Load, Store):
        of_kind = [s for s in machine.statements() if isinstance(s, kind)]
        numbers |= {id(statement): number for number, statement in enumerate(of_kind)}
    return numbers


class _Firing:
    """The firings of one rule: what they know, and what they leave."""

    def __init__(
        self,
        graph: Graph,
        machine: Machine,
        numbers: Mapping[int, int],
        lengths: Mapping[str, int],
        found: Ranges,
        after: dict[Place, Range],
    ) -> None:
        self.graph, self.machine, self.numbers = graph, machine, numbers
        self.lengths, self.found, self.after = lengths, found, after
        self.known: Known = {
            **{d.name: Range(d.minimum, d.minimum + d.extent - 1) for d in machine.space},
            **{
                register.name: found[Kept(machine.name, register.name)]
                for register in machine.registers
                if not register.shape
            },
        }

    def of(self, path: Path) -> None:
        """Add what the rule leaves to ``after``, if it may ever be the next firing."""
        if not self._heads(path.mode.needs):
            return
        choices = path.mode.choices
        for chosen in path.choices:
            if not self._chosen(choices, chosen) or not self._heads(chosen.needs):
                return
            if not all(self._statement(statement) for statement in chosen.body):
                return
            choices = chosen.inside if isinstance(chosen.inside, tuple) else ()
        if not all(self._statement(statement) for statement in path.rule.body):
            return
        for put in path.rule.puts:
            channel = self.graph.channel(put.channel)
            self._sent(channel, put.value, put.tag)

    def _heads(self, needs: Iterable[str]) -> bool:
        """Look at heads; whether there can be tokens in all of these channels."""
        for head in self.machine.heads:
            if head.channel in needs:
                value = self.found.get(Value(head.channel))
                if value is None:
                    return False
                more = {head.value: value}
                if head.tag is not None:
                    more[head.tag] = self.found.get(Tag(head.channel), range_of_type(INT32))
                self.known = {**self.known, **more}
        return True

    def _chosen(self, choices: tuple[Choice, ...], chosen: Choice) -> bool:
        """Assume that an alternative is the first that holds; whether that is possible."""
        for choice in choices:
            if choice.when is not None:
                inside = assume(choice.when, self.known, truth=choice is chosen)
                if inside is None:
                    return False
                self.known = inside
            if choice is chosen:
                return True
        return False

    def _statement(self, statement: Statement) -> bool:
        """Carry out a statement; whether what follows may ever happen."""
        match statement:
            case Let(target=target, value=value):
                self._bind(target, self._range(value))
            case Load(target=target, tensor=tensor):
                if not self._access(LoadAt, statement, statement.type.lanes):
                    return False
                whole = range_of_type(statement.type)
                elements = self.found.get(Elements(tensor), whole)
                self._bind(target, elements if _is_ranged(statement.type) else whole)
            case Store(tensor=tensor, value=value):
                if not self._access(StoreAt, statement, value.type.lanes):
                    return False
                self._leave(Elements(tensor), self._of_elements(value, tensor))
            case RegisterRead(target=target, register=register):
                self._bind(target, self._held(register))
            case RegisterWrite(register=register, value=value):
                self._leave(Kept(self.machine.name, register), self._range(value))
            case Search(target=target, begin=begin):
                self._bind(target, range_of_type(begin.type))
            case MemorySize(target=target):
                self._bind(target, range_of_type(INT32))
            case MemoryFirst(targets=targets, value=value, memory=name):
                memory = next(m for m in self.machine.memories if m.name == name)
                for target, type in zip(
                    (*targets, value), (*memory.keys, memory.type), strict=True
                ):
                    self._bind(target, range_of_type(type))
        return True

    def _of_elements(self, value: Expr, tensor: str) -> Range:
        """What a value is as elements of a tensor."""
        if value.type.lanes > 1:
            return range_of_type(self.graph.tensor(tensor).type)
        return self._range(value)

    def _held(self, register: str) -> Range:
        """What a register may hold, before and after the writes of this firing."""
        place = Kept(self.machine.name, register)
        return self.found[place].join(self.after[place])

    def _access(self, kind: type[LoadAt | StoreAt], statement: Load | Store, lanes: int) -> bool:
        """Note the address of an access, and assume that it is inside of its tensor."""
        if len(statement.indices) != 1 or by_lanes(statement.indices):
            return True
        index = statement.indices[0]
        self._leave(kind(self.machine.name, self.numbers[id(statement)]), self._range(index))
        length = self.lengths.get(statement.tensor)
        if length is None:
            return True
        if length < lanes:
            return False
        inside = restrict(index, Range(0, length - lanes), self.known)
        if inside is None:
            return False
        self.known = inside
        return True

    def _sent(self, channel: Channel, value: Expr | None, tag: Expr | None) -> None:
        type = channel.stream.element
        nothing = Range(0, 0)
        sent = nothing if value is None else self._range(value)
        tags = Range(VALUE, VALUE) if tag is None else self._range(tag)
        bare = not channel.stream.values_under_tags
        if bare and isinstance(tag, Const) and tag.value != VALUE:
            sent = nothing
        elif channel.stream.nesting > 0:
            sent = sent.join(nothing)  # of a token with another tag
        self._leave(Value(channel.name), sent if _is_ranged(type) else range_of_type(type))
        if channel.stream.nesting > 0:
            self._leave(Tag(channel.name), tags)

    def _range(self, value: Expr) -> Range:
        return range_of(value, self.known)

    def _bind(self, target: str, range: Range) -> None:
        self.known = {**self.known, target: range}

    def _leave(self, place: Place, range: Range) -> None:
        self.after[place] = range.join(self.after.get(place))
