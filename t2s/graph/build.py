"""The kit for code that writes graphs: an accumulator of parts, and drafts of machines.

A machine is written in terms of its *ports*: ``In`` has the head of an input as expressions, and
``Out`` names an output.  A port may have the name of a channel.  If a machine is drafted once for
many uses, or before its listeners are known, ``with_channels`` replaces ports by channels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from t2s.core.expr import Expr, Index, Local, Number, as_expression, const, equals
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import INT32, Type
from t2s.graph.body import (
    Let,
    Load,
    Register,
    RegisterWrite,
    Role,
    SpaceDimension,
    Statement,
    Store,
)
from t2s.graph.graph import Channel, Graph, StreamKind, StreamType, Tensor
from t2s.graph.nodes import (
    DONE,
    EMPTY,
    VALUE,
    Choice,
    Head,
    Loop,
    Machine,
    Mode,
    Node,
    Put,
    Rule,
    SortedMemory,
    stop,
)


def index(name: str) -> Index:
    """The value of a loop or of a space dimension."""
    return Index(name=name)


def local(name: str, type: Type = INT32) -> Local:
    """The value of a local, bound by an earlier statement."""
    return Local(name=name, type=type)


def loop(name: str, extent: int) -> Loop:
    """A loop from 0."""
    return Loop(name=name, minimum=const(0), extent=const(extent))


def space(name: str, extent: int) -> SpaceDimension:
    """A space dimension from 0."""
    return SpaceDimension(name=name, minimum=0, extent=extent)


@dataclass(kw_only=True)
class GraphParts:
    """The parts of a graph under construction."""

    nodes: list[Node] = field(default_factory=list)
    channels: list[Channel] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)

    def link(
        self,
        name: str,
        type: Type,
        source: str,
        sink: str,
        *,
        shape: tuple[int, ...] = (),
        source_index: tuple[Expr, ...] = (),
        sink_index: tuple[Expr, ...] = (),
        capacity: int = 2,
        kind: StreamKind = StreamKind.VALUE,
        location: SourceLocation | None = None,
    ) -> None:
        """Add a channel of single values."""
        self.channels.append(
            Channel(
                name=name,
                stream=StreamType(element=type, kind=kind),
                source=source,
                sink=sink,
                shape=shape,
                source_index=source_index,
                sink_index=sink_index,
                capacity=capacity,
                location=location,
            )
        )

    def graph(self, name: str, location: SourceLocation | None) -> Graph:
        """All parts as a graph."""
        return Graph(
            name=name,
            nodes=tuple(self.nodes),
            channels=tuple(self.channels),
            tensors=tuple(self.tensors),
            location=location,
        )


def register(
    name: str,
    type: Type = INT32,
    shape: tuple[int, ...] = (),
    distance: int = 1,
    location: SourceLocation | None = None,
) -> Register:
    """A register file."""
    return Register(name=name, type=type, shape=shape, distance=distance, location=location)


@dataclass(frozen=True, slots=True, kw_only=True)
class In:
    """An input port of a machine: its stream, and its head as expressions.

    Only streams of nested lists have tags; ``tag`` is unused for all others.
    """

    port: str
    stream: StreamType
    value: Local
    tag: Local

    @property
    def is_value(self) -> Expr:
        return equals(self.tag, VALUE)

    @property
    def is_empty(self) -> Expr:
        """It is the token N."""
        return equals(self.tag, EMPTY)

    @property
    def is_item(self) -> Expr:
        """A value or N: what stands for one element."""
        return (self.tag >= EMPTY) & (const(VALUE) >= self.tag)

    @property
    def is_stop(self) -> Expr:
        return self.tag >= stop(0)

    @property
    def ends_list(self) -> Expr:
        """The stop of an innermost list."""
        return equals(self.tag, stop(0))

    @property
    def ends_outer_list(self) -> Expr:
        """A stop of a list that is not an innermost one."""
        return const(stop(0)) < self.tag

    @property
    def is_done(self) -> Expr:
        return equals(self.tag, DONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Out:
    """An output port of a machine."""

    port: str
    stream: StreamType

    @property
    def type(self) -> Type:
        """The type of the values in its tokens."""
        return self.stream.element


class MachineDraft:
    """The parts of a machine (or of an array of them), collected."""

    def __init__(
        self,
        name: str,
        role: Role,
        space: tuple[SpaceDimension, ...] = (),
        location: SourceLocation | None = None,
        region: str | None = None,
    ) -> None:
        self.name, self.role, self.space = name, role, space
        self.location, self.region = location, region
        self.inputs: list[In] = []
        self.registers: list[Register] = []
        self.memories: list[SortedMemory] = []
        self.modes: list[Mode] = []

    def take(self, port: str, stream: StreamType, value: str, tag: str) -> In:
        """An input port, whose head is called ``value`` and ``tag``."""
        head = local(value, stream.element), local(tag)
        self.inputs.append(In(port=port, stream=stream, value=head[0], tag=head[1]))
        return self.inputs[-1]

    def register(self, name: str, type: Type = INT32, initial: float = 0) -> Local:
        """A register; the expression is its value at the start of the firing."""
        self.registers.append(
            replace(register(name, type, location=self.location), initial=initial)
        )
        return local(name, type)

    def memory(self, name: str, keys: Sequence[Type], type: Type, operator: Op) -> str:
        """A sorted memory, which adds up by ``operator``."""
        self.memories.append(
            SortedMemory(
                name=name, keys=tuple(keys), type=type, operator=operator, location=self.location
            )
        )
        return name

    def mode(
        self, name: str, *choices: Choice, needs: Sequence[In] = (), expected: str = ""
    ) -> None:
        """Add a mode; the first one is that at the start."""
        self.modes.append(Mode(name=name, needs=ports(needs), choices=choices, expected=expected))

    def machine(self, *, endless: bool = False, interval: int = 1, latency: int = 0) -> Machine:
        """The node; an ``endless`` one waits for ever when all others have ended.

        ``interval`` and ``latency`` are those of a unit that is not pipelined (see ``Machine``).
        """
        return Machine(
            name=self.name,
            role=self.role,
            space=self.space,
            heads=tuple(
                Head(
                    channel=item.port,
                    value=item.value.name,
                    tag=item.tag.name if item.stream.nesting else None,
                )
                for item in self.inputs
            ),
            registers=tuple(self.registers),
            memories=tuple(self.memories),
            modes=tuple(self.modes),
            region=self.region,
            endless=endless,
            interval=interval,
            latency=latency,
            location=self.location,
        )


def with_channels(
    machine: Machine,
    outputs: Mapping[str, Sequence[str]],
    inputs: Mapping[str, str] | None = None,
) -> Machine:
    """The machine with channels in place of its ports.

    An output may lead to any number of channels, including none: a firing puts the token into all
    of them.  Without ``inputs`` the input ports are channels already.
    """

    def taken(names: tuple[str, ...]) -> tuple[str, ...]:
        return names if inputs is None else tuple(inputs[port] for port in names)

    def sent(puts: tuple[Put, ...]) -> tuple[Put, ...]:
        return tuple(
            Put(channel=channel, value=token.value, tag=token.tag)
            for token in puts
            for channel in outputs.get(token.channel, ())
        )

    def connected(inside: Rule | tuple[Choice, ...]) -> Rule | tuple[Choice, ...]:
        if not isinstance(inside, Rule):
            return tuple(map(chosen, inside))
        if not inside.takes and not inside.puts:
            return inside
        return Rule(
            name=inside.name,
            body=inside.body,
            takes=taken(inside.takes),
            puts=sent(inside.puts),
            next=inside.next,
        )

    def chosen(choice: Choice) -> Choice:
        inside = connected(choice.inside)
        if inside is choice.inside and not choice.needs:
            return choice
        return Choice(when=choice.when, needs=taken(choice.needs), body=choice.body, inside=inside)

    def waiting(mode: Mode) -> Mode:
        return Mode(
            name=mode.name,
            needs=taken(mode.needs),
            choices=tuple(map(chosen, mode.choices)),
            expected=mode.expected,
        )

    return replace(
        machine,
        heads=tuple(
            Head(channel=channel, value=head.value, tag=head.tag)
            for head, channel in zip(
                machine.heads, taken(tuple(head.channel for head in machine.heads)), strict=True
            )
        ),
        modes=tuple(map(waiting, machine.modes)),
    )


def ports(inputs: Sequence[In]) -> tuple[str, ...]:
    """The names of input ports."""
    return tuple(item.port for item in inputs)


def when(
    condition: Expr | None,
    inside: Rule | Sequence[Choice],
    *,
    needs: Sequence[In] = (),
    body: Sequence[Statement] = (),
) -> Choice:
    """An alternative; ``None`` always holds."""
    inner = inside if isinstance(inside, Rule) else tuple(inside)
    return Choice(when=condition, needs=ports(needs), body=tuple(body), inside=inner)


def rule(
    name: str,
    after: str | None,
    *,
    takes: Sequence[In] = (),
    puts: Sequence[Put] = (),
    body: Sequence[Statement] = (),
) -> Rule:
    """A rule, and the mode after it (``None``: the end)."""
    return Rule(name=name, body=tuple(body), takes=ports(takes), puts=tuple(puts), next=after)


def put(output: Out, value: Number | None = None, tag: Number | None = None) -> Put:
    """A token into an output."""
    return Put(
        channel=output.port,
        value=None if value is None else as_expression(value, output.type),
        tag=None if tag is None else as_expression(tag, INT32),
    )


def copy(output: Out, source: In) -> Put:
    """Pass the head of an input on."""
    tag = source.tag if source.stream.nesting else None
    return Put(channel=output.port, value=source.value, tag=tag)


def let(name: str, value: Expr) -> tuple[Let, Local]:
    """A local, and the expression that reads it."""
    return Let(target=name, value=value), local(name, value.type)


def load(name: str, tensor: Tensor, index: Expr, lanes: int = 1) -> tuple[Load, Local]:
    """An element of a tensor of one dimension, or a vector from there on, bound to a local."""
    type = tensor.type.with_lanes(lanes)
    statement = Load(target=name, tensor=tensor.name, indices=(index,), type=type)
    return statement, local(name, type)


def store(tensor: Tensor, index: Expr, value: Expr) -> Store:
    """Store into a tensor of one dimension."""
    return Store(tensor=tensor.name, indices=(index,), value=value)


def write(register: Local, value: Number) -> RegisterWrite:
    """Change a register."""
    new = as_expression(value, register.type)
    return RegisterWrite(register=register.name, indices=(), value=new)


def count_up(register: Local) -> RegisterWrite:
    """Add one to a register."""
    return write(register, register + 1)
