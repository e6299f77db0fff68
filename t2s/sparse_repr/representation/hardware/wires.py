"""What the nodes of a product are written with: wires between them, and drafts.

A wire is an ``Out`` of the node that sends into it, and by ``ProductMachine.input`` an ``In`` of
the machine that takes from it.  A node of a product is placed once, so its ports have the names of
the channels.  Drafts collect registers and statements; their methods return the value that a
statement binds.
"""

from __future__ import annotations

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
from t2s.graph.build import GraphParts, In, MachineDraft, Out, index, register
from t2s.graph.graph import StreamKind, StreamType
from t2s.graph.nodes import Loop, PEArray


def wire(name: str, type: Type = INT32, kind: StreamKind = StreamKind.VALUE) -> Out:
    """A wire of single values."""
    return Out(port=name, stream=StreamType(element=type, kind=kind))


def link(
    parts: GraphParts,
    wire: Out,
    source: str,
    sink: str,
    over: tuple[SpaceDimension, ...] = (),
    *,
    source_at: tuple[Expr, ...] | None = None,
    sink_at: tuple[Expr, ...] | None = None,
    capacity: int = 2,
    location: SourceLocation | None = None,
) -> None:
    """Link a wire from one node to another: a channel for each point of ``over``.

    The index at each end is that of its place, unless ``source_at`` or ``sink_at`` is given.
    """
    place = tuple(index(dimension.name) for dimension in over)
    parts.link(
        wire.port,
        wire.type,
        source,
        sink,
        shape=tuple(dimension.extent for dimension in over),
        source_index=place if source_at is None else source_at,
        sink_index=place if sink_at is None else sink_at,
        capacity=capacity,
        kind=wire.stream.kind,
        location=location,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterFile:
    """A register file; with a single element and no index, a register."""

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

    def receive(self, wire: Out, name: str, when: Expr | None = None) -> Local:
        """Take a token; zero where the condition does not hold."""
        statement = Receive(target=name, channel=wire.port, type=wire.type, condition=when)
        self.statements.append(statement)
        return Local(name=name, type=wire.type)

    def send(self, wire: Out, value: Expr, when: Expr | None = None) -> None:
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


class ArrayDraft(Statements):
    """An array of PEs, collected."""

    def __init__(
        self,
        name: str,
        role: Role,
        space: tuple[SpaceDimension, ...],
        loops: tuple[Loop, ...],
        location: SourceLocation | None,
    ) -> None:
        super().__init__()
        self.name, self._role = name, role
        self._space, self._loops, self._location = space, loops, location
        self._registers: list[Register] = []

    def register(self, name: str, type: Type = INT32) -> RegisterFile:
        """A register."""
        self._registers.append(register(name, type))
        return RegisterFile(name=name, type=type)

    def node(self) -> PEArray:
        """The node."""
        return PEArray(
            name=self.name,
            role=self._role,
            space=self._space,
            loops=self._loops,
            registers=tuple(self._registers),
            body=tuple(self.statements),
            location=self._location,
        )


class ProductMachine(MachineDraft):
    """A machine of a product, or an array of them: inputs are wires, registers may be files."""

    def input(self, wire: Out, name: str) -> In:
        """An input, whose head is called ``name``."""
        return self.take(wire.port, wire.stream, name, f"{name}_tag")

    def file(
        self,
        name: str,
        type: Type,
        shape: tuple[int, ...],
        distance: int = 1,
        location: SourceLocation | None = None,
    ) -> RegisterFile:
        """A register file."""
        self.registers.append(register(name, type, shape, distance, location))
        return RegisterFile(name=name, type=type)
