"""Processes written by hand: a ``Network`` of processes, channels and tensors becomes a ``Graph``.

A process is in one of its *modes*.  A mode waits until the next token (the *head*) of each of its
channels is there, and then makes the first of its rules whose condition holds, in one cycle.  See
docs/processes.md for an example; ``t2s.graph.nodes`` has the exact meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from t2s.core.errors import UserError
from t2s.core.expr import Expr, Local, apply, const
from t2s.core.location import SourceLocation, user_location
from t2s.core.ops import Op
from t2s.core.types import Type
from t2s.graph.body import Load, Register, RegisterWrite, Role, Statement, Store
from t2s.graph.graph import Channel, Graph, StreamType, Tensor, TensorRole
from t2s.graph.nodes import Choice, Head, Machine, Mode, Put, Rule
from t2s.graph.verify import verify_graph


@dataclass(frozen=True, slots=True, eq=False)
class ProcessValue:
    """A value of a process, for arithmetic and comparisons with numbers and other values.

    ``loads`` are the elements of tensors that it needs.
    """

    expression: Expr
    loads: tuple[Load, ...] = ()

    def __add__(self, other: Operand) -> ProcessValue:
        return self._with(Op.ADD, other)

    def __sub__(self, other: Operand) -> ProcessValue:
        return self._with(Op.SUBTRACT, other)

    def __mul__(self, other: Operand) -> ProcessValue:
        return self._with(Op.MULTIPLY, other)

    def __mod__(self, other: Operand) -> ProcessValue:
        return self._with(Op.MODULO, other)

    def __lt__(self, other: Operand) -> ProcessValue:
        return self._with(Op.LESS, other)

    def __gt__(self, other: Operand) -> ProcessValue:
        return self._with(Op.GREATER, other)

    def __and__(self, other: Operand) -> ProcessValue:
        return self._with(Op.AND, other)

    def __or__(self, other: Operand) -> ProcessValue:
        return self._with(Op.OR, other)

    def __eq__(self, other: Operand) -> ProcessValue:  # type: ignore[override]
        return self._with(Op.EQUAL, other)

    def __ne__(self, other: Operand) -> ProcessValue:  # type: ignore[override]
        return self._with(Op.NOT_EQUAL, other)

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise UserError(
            "a value of a process is known only when it runs",
            location=user_location(),
            expected="a condition of a rule: when=...",
            given="a truth value in Python, of 'if', 'and', 'or' or 'not'",
            hint="combine conditions by & and |",
        )

    def _with(self, operator: Op, other: Operand) -> ProcessValue:
        right = as_value(other, self.expression.type)
        if right.expression.type != self.expression.type:
            raise UserError(
                f"the types of the two sides of {operator.value!r} differ",
                location=user_location(),
                expected=str(self.expression.type),
                given=str(right.expression.type),
                hint="processes convert nothing by themselves: use one type on both sides",
            )
        loads = self.loads + tuple(load for load in right.loads if load not in self.loads)
        return ProcessValue(apply(operator, self.expression, right.expression), loads)


Operand = ProcessValue | int | float


def as_value(given: Operand, type: Type) -> ProcessValue:
    """A value, or a number as a value of a type; ``UserError`` for anything else."""
    match given:
        case ProcessValue():
            return given
        case bool() if type.is_bool:
            return ProcessValue(const(given, type))
        case int() if not isinstance(given, bool) and not type.is_bool:
            return ProcessValue(const(float(given) if type.is_float else given, type))
        case float() if type.is_float:
            return ProcessValue(const(given, type))
    raise UserError(
        "a value of a process has the wrong type",
        location=user_location(),
        expected=f"a value of type {type}, or a number of it",
        given=f"{given!r} of class {given.__class__.__name__}",
    )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ChannelHandle:
    """A channel of a design; ``value`` is its next token, in rules whose mode waits for it."""

    name: str
    type: Type
    depth: int
    latency: int
    location: SourceLocation

    @property
    def value(self) -> ProcessValue:
        """The head: the token that is next."""
        return ProcessValue(Local(name=f"{self.name}_head", type=self.type))


@dataclass(slots=True, eq=False, kw_only=True)
class TensorHandle:
    """A tensor of a design; ``x[i]`` loads an element."""

    tensor: Tensor
    loads: int = 0

    def __getitem__(
        self, index: ProcessValue | int | tuple[ProcessValue | int, ...]
    ) -> ProcessValue:
        places = [as_value(place, _INDEX) for place in _tuple(index)]
        self.loads += 1
        name = f"{self.tensor.name}_loaded_{self.loads}"
        load = Load(
            target=name,
            tensor=self.tensor.name,
            indices=tuple(place.expression for place in places),
            type=self.tensor.type,
        )
        before = tuple(load for place in places for load in place.loads)
        return ProcessValue(Local(name=name, type=self.tensor.type), (*before, load))

    def __iter__(self) -> None:
        raise UserError(
            f"the elements of tensor {self.tensor.name!r} are known only when the design runs",
            location=user_location(),
            expected=f"one element at a time: {self.tensor.name}[i]",
            given="a loop of Python over the tensor",
        )


_INDEX = const(0).type


def _tuple(
    index: ProcessValue | int | tuple[ProcessValue | int, ...],
) -> tuple[ProcessValue | int, ...]:
    return index if isinstance(index, tuple) else (index,)


@dataclass(slots=True, eq=False, kw_only=True)
class ModeHandle:
    """A mode of a process, to which rules are added in the order in which they are tried."""

    name: str
    waits: tuple[ChannelHandle, ...]
    choices: list[Choice] = field(default_factory=list)
    puts: list[ChannelHandle] = field(default_factory=list)

    def rule(
        self,
        *,
        when: ProcessValue | None = None,
        takes: Sequence[ChannelHandle] = (),
        puts: Mapping[ChannelHandle, Operand] | None = None,
        sets: Mapping[ProcessValue, Operand] | None = None,
        stores: Sequence[tuple[TensorHandle, Operand | tuple[Operand, ...], Operand]] = (),
        next: ModeHandle | None = None,
    ) -> None:
        """Add what the process may do in this mode, in one cycle.

        Parameters
        ----------
        when: the rule is made if this holds, and none of the rules before; ``None`` always holds.
        takes: channels whose head is taken, of those that the mode waits for.
        puts: one token for each of these channels.
        sets: new values of registers; expressions have the old ones.
        stores: (tensor, index, value), in this order.
        next: the mode after it; ``None`` ends the process.

        Raises ``UserError`` for values of another type than they are given to.
        """
        if when is not None and when.loads:
            raise UserError(
                "a condition loads from memory",
                location=user_location(),
                expected="heads, registers and numbers in 'when'",
                given=f"an element of {when.loads[0].tensor!r}",
                hint="load the element into a register by a rule before",
            )
        body: list[Statement] = []

        def expression(operand: Operand, type: Type) -> Expr:
            value = as_value(operand, type)
            body.extend(load for load in value.loads if load not in body)
            return value.expression

        tokens = tuple(
            Put(channel=channel.name, value=expression(value, channel.type))
            for channel, value in (puts or {}).items()
        )
        writes: list[Statement] = []
        for register, value in (sets or {}).items():
            if not isinstance(register.expression, Local):
                raise UserError(
                    "only a register can be set",
                    location=user_location(),
                    expected="a register of the process",
                    given="an expression",
                )
            new, name = expression(value, register.expression.type), register.expression.name
            writes.append(RegisterWrite(register=name, indices=(), value=new))
        for tensor, index, value in stores:
            places = index if isinstance(index, tuple) else (index,)
            indices = tuple(expression(place, _INDEX) for place in places)
            stored = expression(value, tensor.tensor.type)
            writes.append(Store(tensor=tensor.tensor.name, indices=indices, value=stored))
        rule = Rule(
            name=f"{self.name}_{len(self.choices)}",
            body=(*body, *writes),
            takes=tuple(channel.name for channel in takes),
            puts=tokens,
            next=None if next is None else next.name,
        )
        condition = None if when is None else when.expression
        self.choices.append(Choice(when=condition, inside=rule))
        self.puts += puts or {}


@dataclass(slots=True, eq=False, kw_only=True)
class Process:
    """A process of a design: registers, and modes, of which the first is the one at the start."""

    name: str
    endless: bool
    location: SourceLocation
    registers: list[Register] = field(default_factory=list)
    modes: list[ModeHandle] = field(default_factory=list)

    def register(self, name: str, type: Type) -> ProcessValue:
        """A register, zero at the start."""
        self.registers.append(Register(name=name, type=type, shape=(), distance=1))
        return ProcessValue(Local(name=name, type=type))

    def mode(self, name: str, *, waits: Sequence[ChannelHandle] = ()) -> ModeHandle:
        """A mode that waits for a token in each of these channels."""
        self.modes.append(ModeHandle(name=name, waits=tuple(waits)))
        return self.modes[-1]

    @property
    def taken(self) -> list[ChannelHandle]:
        """The channels that it waits for, each once."""
        return list(dict.fromkeys(channel for mode in self.modes for channel in mode.waits))

    @property
    def put(self) -> list[ChannelHandle]:
        """The channels that it puts tokens into, each once."""
        return list(dict.fromkeys(channel for mode in self.modes for channel in mode.puts))

    def machine(self) -> Machine:
        """The node of the graph."""
        heads = [Head(channel=c.name, value=f"{c.name}_head") for c in self.taken]
        return Machine(
            name=self.name,
            role=Role.COMPUTE,
            heads=tuple(heads),
            registers=tuple(self.registers),
            modes=tuple(
                Mode(
                    name=mode.name,
                    needs=tuple(channel.name for channel in mode.waits),
                    choices=tuple(mode.choices),
                )
                for mode in self.modes
            ),
            endless=self.endless,
            location=self.location,
        )


@dataclass(slots=True, eq=False)
class Network:
    """Processes, channels and tensors by name; ``graph()`` is what t2s simulates and emits."""

    name: str
    location: SourceLocation = field(default_factory=user_location)
    channels: list[ChannelHandle] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)

    def channel(self, name: str, type: Type, *, depth: int = 2, latency: int = 1) -> ChannelHandle:
        """A channel of ``depth`` tokens from one process to another (or to itself).

        A token that is put can be taken ``latency`` cycles later.
        """
        location = user_location()
        self.channels.append(
            ChannelHandle(name=name, type=type, depth=depth, latency=latency, location=location)
        )
        return self.channels[-1]

    def input(self, name: str, type: Type, *shape: int) -> TensorHandle:
        """A tensor in memory that the user gives."""
        return self._tensor(name, type, shape, TensorRole.INPUT)

    def output(self, name: str, type: Type, *shape: int) -> TensorHandle:
        """A tensor in memory that the user gets; zero where nothing is stored."""
        return self._tensor(name, type, shape, TensorRole.OUTPUT)

    def process(self, name: str, *, endless: bool = False) -> Process:
        """A process; an ``endless`` one may wait for ever when all others have ended."""
        self.processes.append(Process(name=name, endless=endless, location=user_location()))
        return self.processes[-1]

    def graph(self) -> Graph:
        """The graph of the design; ``UserError`` at the line of what is wrong in it."""
        graph = Graph(
            name=self.name,
            nodes=tuple(process.machine() for process in self.processes),
            channels=tuple(self._channel(channel) for channel in self.channels),
            tensors=tuple(self.tensors),
            location=self.location,
        )
        verify_graph(graph)
        return graph

    def _tensor(
        self, name: str, type: Type, shape: tuple[int, ...], role: TensorRole
    ) -> TensorHandle:
        location = user_location()
        self.tensors.append(Tensor(name=name, type=type, shape=shape, role=role, location=location))
        return TensorHandle(tensor=self.tensors[-1])

    def _channel(self, channel: ChannelHandle) -> Channel:
        sources = [process.name for process in self.processes if channel in process.put]
        sinks = [process.name for process in self.processes if channel in process.taken]
        for what, ends in (("puts tokens into", sources), ("waits for", sinks)):
            if len(ends) != 1:
                raise UserError(
                    f"channel {channel.name!r} needs one process that {what} it",
                    location=channel.location,
                    expected="one process",
                    given=", ".join(ends) or "none",
                )
        return Channel(
            name=channel.name,
            stream=StreamType(element=channel.type),
            source=sources[0],
            sink=sinks[0],
            capacity=channel.depth,
            latency=channel.latency,
            location=channel.location,
        )
