"""What hardware is written with: typed wires between nodes, and drafts of the nodes at their ends.

A ``TypedWire`` is a port as those of blocks (``blocks/draft.py``): an output of the node that sends
into it and, by ``head``, an input of the machine that takes from it, so that machines are written
with the same choices, rules and puts.  A block is placed many times, and its ports are names of its
own; a node of a product is placed once, so its ports have the names of the channels.

Drafts collect registers and statements.  Their methods return the value that a statement binds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from t2s.core.expr import Expr, Local
from t2s.core.location import SourceLocation
from t2s.core.types import INT32, Type
from t2s.graph.body import (
    Let,
    Load,
    Receive,
    Register,
    RegisterRead,
    RegisterWrite,
    Role,
    Send,
    SpaceDimension,
    Statement,
)
from t2s.graph.build import GraphParts, index, register
from t2s.graph.graph import StreamKind, StreamType
from t2s.graph.nodes import Choice, Head, Loop, Machine, Mode, PEArray
from t2s.sparse_repr.blocks.draft import In, Out, ports


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedHead(In):
    """The head of a wire, under a name that the machine gives it."""

    name: str

    @property
    def value(self) -> Local:
        """The value of the head."""
        return Local(name=self.name, type=self.stream.element)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedWire(Out):
    """A channel of single values."""

    @property
    def type(self) -> Type:
        """What it carries."""
        return self.stream.element

    def head(self, name: str) -> NamedHead:
        """Its head in a machine, where it is called ``name``."""
        return NamedHead(port=self.port, stream=self.stream, name=name)


def wire(name: str, type: Type = INT32, kind: StreamKind = StreamKind.VALUE) -> TypedWire:
    """A wire of single values."""
    return TypedWire(port=name, stream=StreamType(element=type, kind=kind))


def link(
    parts: GraphParts,
    wire: TypedWire,
    source: str,
    sink: str,
    over: tuple[SpaceDimension, ...] = (),
    *,
    source_at: tuple[Expr, ...] | None = None,
    sink_at: tuple[Expr, ...] | None = None,
    capacity: int = 2,
    location: SourceLocation | None = None,
) -> None:
    """Lead a wire from one node to another: an element for each point of ``over``.

    The element at each end is that of its place, unless ``source_at`` or ``sink_at`` says else.
    """
    here = tuple(index(dimension.name) for dimension in over)
    parts.link(
        wire.port,
        wire.type,
        source,
        sink,
        shape=tuple(dimension.extent for dimension in over),
        source_index=here if source_at is None else source_at,
        sink_index=here if sink_at is None else sink_at,
        capacity=capacity,
        kind=wire.stream.kind,
        location=location,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterFile:
    """A register file; one element, without a place, is a register."""

    name: str
    type: Type

    def read(self, name: str, *at: Expr) -> RegisterRead:
        """Bind ``name`` to an element."""
        return RegisterRead(target=name, register=self.name, indices=at, type=self.type)

    def write(self, value: Expr, *at: Expr) -> RegisterWrite:
        """Change an element."""
        return RegisterWrite(register=self.name, indices=at, value=value)


class Statements:
    """A list of statements that grows."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []

    def let(self, name: str, value: Expr) -> Local:
        """Bind a local to a value."""
        self.statements.append(Let(target=name, value=value))
        return Local(name=name, type=value.type)

    def receive(self, wire: TypedWire, name: str, when: Expr | None = None) -> Local:
        """Take a token; zero where the condition does not hold."""
        statement = Receive(target=name, channel=wire.port, type=wire.type, condition=when)
        self.statements.append(statement)
        return Local(name=name, type=wire.type)

    def send(self, wire: TypedWire, value: Expr, when: Expr | None = None) -> None:
        """Put a token into a wire."""
        self.statements.append(Send(channel=wire.port, value=value, condition=when))

    def load(
        self, name: str, tensor: str, at: tuple[Expr, ...], type: Type, when: Expr | None = None
    ) -> Local:
        """An element of a tensor; zero where the condition does not hold."""
        self.statements.append(
            Load(target=name, tensor=tensor, indices=at, type=type, condition=when)
        )
        return Local(name=name, type=type)

    def read(self, file: RegisterFile, name: str, *at: Expr) -> Local:
        """An element of a register file."""
        self.statements.append(file.read(name, *at))
        return Local(name=name, type=file.type)

    def write(self, file: RegisterFile, value: Expr, *at: Expr) -> None:
        """Change an element of a register file."""
        self.statements.append(file.write(value, *at))


class _Registers:
    """The registers of a node, collected."""

    def __init__(self) -> None:
        self.registers: list[Register] = []

    def file(
        self,
        name: str,
        type: Type = INT32,
        shape: tuple[int, ...] = (),
        distance: int = 1,
        location: SourceLocation | None = None,
    ) -> RegisterFile:
        """A register file."""
        self.registers.append(register(name, type, shape, distance, location))
        return RegisterFile(name=name, type=type)


class ArrayDraft(Statements, _Registers):
    """An array of PEs, collected."""

    def __init__(
        self,
        name: str,
        role: Role,
        space: tuple[SpaceDimension, ...],
        loops: tuple[Loop, ...],
        location: SourceLocation | None,
    ) -> None:
        Statements.__init__(self)
        _Registers.__init__(self)
        self.name, self._role = name, role
        self._space, self._loops, self._location = space, loops, location

    def node(self) -> PEArray:
        """The node."""
        return PEArray(
            name=self.name,
            role=self._role,
            space=self._space,
            loops=self._loops,
            registers=tuple(self.registers),
            body=tuple(self.statements),
            location=self._location,
        )


class MachineDraft(_Registers):
    """An array of machines, collected."""

    def __init__(
        self,
        name: str,
        role: Role,
        space: tuple[SpaceDimension, ...],
        location: SourceLocation | None,
    ) -> None:
        super().__init__()
        self.name, self._role, self._space, self._location = name, role, space, location
        self._heads: list[In] = []
        self._modes: list[Mode] = []

    def input(self, wire: TypedWire, name: str) -> NamedHead:
        """An input, whose head is called ``name``."""
        self._heads.append(wire.head(name))
        return wire.head(name)

    def register(self, name: str, type: Type = INT32) -> Local:
        """A register; the expression is its value at the start of the firing."""
        self.file(name, type)
        return Local(name=name, type=type)

    def mode(self, name: str, *choices: Choice, needs: Sequence[In] = ()) -> None:
        """Add a mode; the first one is that at the start."""
        self._modes.append(Mode(name=name, needs=ports(needs), choices=tuple(choices)))

    def node(self) -> Machine:
        """The node."""
        return Machine(
            name=self.name,
            role=self._role,
            space=self._space,
            heads=tuple(Head(channel=head.port, value=head.value.name) for head in self._heads),
            registers=tuple(self.registers),
            modes=tuple(self._modes),
            location=self._location,
        )
