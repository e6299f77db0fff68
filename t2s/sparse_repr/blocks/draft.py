"""What blocks are written with: ports, registers, modes and rules with short names.

A ``StreamBlock`` is what tells a block from others: a frozen dataclass of its parameters.  For the
types of its streams it drafts its machine.  A ``Draft`` collects the parts of one machine, whose
channels are named by the ports of the block; ``Block.machine_with`` puts the names of real channels
in their place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from inspect import signature
from typing import Any

from t2s.core.errors import UserError
from t2s.core.expr import Expr, Local, equals
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import INT32, Type
from t2s.core.validate import as_int
from t2s.core.walk import Term, children
from t2s.graph.body import Let, Load, RegisterWrite, Statement, Store
from t2s.graph.graph import StreamKind, StreamType, Tensor
from t2s.graph.nodes import (
    DONE,
    EMPTY,
    Choice,
    Head,
    Machine,
    Mode,
    Put,
    Register,
    Role,
    Rule,
    SortedMemory,
)
from t2s.sparse_repr.blocks.expressions import (
    DONE_TAG,
    EMPTY_TAG,
    FIRST_STOP,
    VALUE_TAG,
    both,
    tag,
)


class BlockKind(Enum):
    """What a block is, for counting [SAM, Table 1]."""

    SCAN = "level scanner"
    REPEAT = "repeat"
    INTERSECT = "intersect"
    UNION = "union"
    COMPUTE = "ALU"
    REDUCE = "reduce"
    DROP = "coordinate drop"
    WRITE = "level writer"
    ARRAY = "array"
    LOCATE = "locate"
    ROOT = "root"
    CONVERT = "convert"
    PARALLEL = "parallel"


@dataclass(frozen=True, slots=True, kw_only=True)
class In:
    """An input port: its stream, and its head as expressions."""

    port: str
    stream: StreamType

    @property
    def value(self) -> Local:
        """The value of the head."""
        return Local(name=f"{self.port}_value", type=self.stream.element)

    @property
    def tag(self) -> Local:
        """The tag of the head."""
        return Local(name=f"{self.port}_tag", type=INT32)

    @property
    def is_value(self) -> Expr:
        return equals(self.tag, VALUE_TAG)

    @property
    def is_empty(self) -> Expr:
        """It is the token N."""
        return equals(self.tag, EMPTY_TAG)

    @property
    def is_item(self) -> Expr:
        """A value or N: what stands for one element."""
        return (self.tag >= EMPTY) & (VALUE_TAG >= self.tag)

    @property
    def is_stop(self) -> Expr:
        return self.tag >= FIRST_STOP

    @property
    def is_done(self) -> Expr:
        return equals(self.tag, DONE_TAG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Out:
    """An output port."""

    port: str
    stream: StreamType


@dataclass(frozen=True, slots=True, kw_only=True)
class Block(Term):
    """A machine whose heads and puts name ports, with the tensors that it uses.

    ``takes`` and ``puts`` of the rules name ports too.  An output may lead to any number of
    channels: one firing puts the token into all of them, none at all where nobody listens.
    """

    kind: BlockKind
    machine: Machine
    inputs: tuple[In, ...]
    outputs: tuple[Out, ...]
    tensors: tuple[Tensor, ...] = ()

    def machine_with(
        self, name: str, inputs: Mapping[str, str], outputs: Mapping[str, Sequence[str]]
    ) -> Machine:
        """The machine, named, with a channel for every input port and any for the outputs."""

        def needed(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(inputs[port] for port in names) if names else names

        def sent(puts: tuple[Put, ...]) -> tuple[Put, ...]:
            return tuple(
                Put(channel=channel, value=one.value, tag=one.tag)
                for one in puts
                for channel in outputs.get(one.channel, ())
            )

        def inner(inside: Rule | tuple[Choice, ...]) -> Rule | tuple[Choice, ...]:
            if not isinstance(inside, Rule):
                return tuple(map(renamed, inside))
            if not inside.takes and not inside.puts:
                return inside
            return Rule(
                name=inside.name,
                body=inside.body,
                takes=needed(inside.takes),
                puts=sent(inside.puts),
                next=inside.next,
            )

        def renamed(choice: Choice) -> Choice:
            inside, needs = inner(choice.inside), needed(choice.needs)
            if inside is choice.inside and not needs:
                return choice
            return Choice(when=choice.when, needs=needs, body=choice.body, inside=inside)

        return replace(
            self.machine,
            name=name,
            heads=tuple(
                Head(channel=inputs[head.channel], value=head.value, tag=head.tag)
                for head in self.machine.heads
            ),
            modes=tuple(
                Mode(
                    name=mode.name,
                    needs=needed(mode.needs),
                    choices=tuple(map(renamed, mode.choices)),
                    expected=mode.expected,
                )
                for mode in self.machine.modes
            ),
        )


class StreamBlock(Term):
    """Base of the blocks: a frozen dataclass of all that its machine depends on but its streams.

    ``draft`` writes the machine, for the types of the streams that go into its ports in order.
    """

    __slots__ = ()

    kind: BlockKind
    role: Role = Role.RELAY

    def draft(self, draft: Draft, *inputs: Any, **_: Any) -> None:
        """Write the machine for inputs of these types; a block of several machines has none."""
        raise NotImplementedError

    def block(self, inputs: Sequence[StreamType], location: SourceLocation | None) -> Block:
        """The machine for inputs of these types, with its ports and tensors."""
        draft = Draft(self.kind, self.role, location)
        taken = signature(self.draft)
        try:
            taken.bind(draft, *inputs)
        except TypeError:
            raise UserError(
                f"a block {type(self).__name__} does not take {len(inputs)} streams",
                location=location,
                expected=f"the streams {', '.join(tuple(taken.parameters)[1:]) or 'of none'}",
            ) from None
        for term in children(self):
            if isinstance(term, Tensor):
                draft.tensor(term)
        self.draft(draft, *inputs)
        return draft.block()


class Draft:
    """The parts of a block, collected."""

    def __init__(self, kind: BlockKind, role: Role, location: SourceLocation | None) -> None:
        self._kind = kind
        self._role = role
        self.location = location
        self._inputs: list[In] = []
        self._outputs: list[Out] = []
        self._registers: list[Register] = []
        self._memories: list[SortedMemory] = []
        self._modes: list[Mode] = []
        self._tensors: dict[str, Tensor] = {}
        self._start: str | None = None

    def input(self, port: str, stream: StreamType) -> In:
        found = In(port=port, stream=stream)
        self._inputs.append(found)
        return found

    def output(self, port: str, type: Type, kind: StreamKind, nesting: int) -> Out:
        found = Out(port=port, stream=StreamType(element=type, kind=kind, nesting=nesting))
        self._outputs.append(found)
        return found

    def register(self, name: str, type: Type = INT32) -> Local:
        """A register; the expression is its value at the start of the firing."""
        self._registers.append(
            Register(name=name, type=type, shape=(), distance=1, location=self.location)
        )
        return Local(name=name, type=type)

    def memory(self, name: str, keys: Sequence[Type], type: Type, operator: Op) -> str:
        self._memories.append(
            SortedMemory(
                name=name,
                keys=tuple(keys),
                type=type,
                operator=operator,
                location=self.location,
            )
        )
        return name

    def tensor(self, tensor: Tensor) -> Tensor:
        """Say that the block uses a tensor."""
        self._tensors[tensor.name] = tensor
        return tensor

    def mode(
        self, name: str, *choices: Choice, needs: Sequence[In] = (), expected: str = ""
    ) -> None:
        """Add a mode; the first one is that at the start, unless ``start`` names another one."""
        self._modes.append(
            Mode(name=name, needs=ports(needs), choices=tuple(choices), expected=expected)
        )

    def start(self, mode: str) -> None:
        """Say which mode is that at the start."""
        self._start = mode

    def block(self) -> Block:
        """The block of these parts."""
        modes = sorted(self._modes, key=lambda mode: self._start not in (None, mode.name))
        machine = Machine(
            name="block",
            role=self._role,
            heads=tuple(
                Head(
                    channel=p.port,
                    value=p.value.name,
                    tag=p.tag.name if p.stream.nesting else None,
                )
                for p in self._inputs
            ),
            registers=tuple(self._registers),
            memories=tuple(self._memories),
            modes=tuple(modes),
            location=self.location,
        )
        return Block(
            kind=self._kind,
            machine=machine,
            inputs=tuple(self._inputs),
            outputs=tuple(self._outputs),
            tensors=tuple(self._tensors.values()),
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


def put(output: Out, value: Expr | None = None, tag: Expr | None = None) -> Put:
    """A token into an output."""
    return Put(channel=output.port, value=value, tag=tag)


def copy(output: Out, source: In) -> Put:
    """The head of an input as it is."""
    return Put(channel=output.port, value=source.value, tag=source.tag)


def let(name: str, value: Expr) -> tuple[Let, Local]:
    """A local, and the expression that reads it."""
    return Let(target=name, value=value), Local(name=name, type=value.type)


def load(name: str, tensor: Tensor, index: Expr, lanes: int = 1) -> tuple[Load, Local]:
    """An element of a tensor of one dimension, or a vector from there on, bound to a local."""
    type = tensor.type.with_lanes(lanes)
    statement = Load(target=name, tensor=tensor.name, indices=(index,), type=type)
    return statement, Local(name=name, type=type)


def store(tensor: Tensor, index: Expr, value: Expr) -> Store:
    """Store into a tensor of one dimension."""
    return Store(tensor=tensor.name, indices=(index,), value=value)


def write(register: Local, value: Expr) -> RegisterWrite:
    """Change a register."""
    return RegisterWrite(register=register.name, indices=(), value=value)


def count_up(register: Local) -> RegisterWrite:
    """Add one to a register."""
    return write(register, register + 1)


def pass_done(source: In, *outputs: Out) -> Choice:
    """The end of the stream is passed on, and the machine ends."""
    return when(
        source.is_done,
        rule("done", None, takes=[source], puts=[put(o, tag=tag(DONE)) for o in outputs]),
    )


def ends(inputs: Sequence[In], *outputs: Out, after: str = "run") -> list[Choice]:
    """All inputs end a list, or themselves, in the same way, which is passed on."""
    first, *others = inputs
    same = [equals(first.tag, other.tag) for other in others]
    puts = [put(o, tag=first.tag) for o in outputs]
    return [
        when(both(first.is_stop, *same), rule("stop", after, takes=inputs, puts=puts)),
        when(both(first.is_done, *same), rule("done", None, takes=inputs, puts=puts)),
    ]


def check_number(
    what: str,
    value: int,
    least: int,
    location: SourceLocation | None,
    *,
    most: int | None = None,
) -> None:
    """Raise ``UserError`` for a number of a block that is too small, or too large."""
    number = as_int(value)
    if number is None or number < least:
        raise UserError(
            f"{what} is an integer, {least} or more", location=location, given=repr(value)
        )
    if most is not None and number > most:
        raise UserError(f"{what} is {most} at most", location=location, given=repr(value))
