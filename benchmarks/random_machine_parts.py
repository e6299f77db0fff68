"""What random machines are made of: streams without a reader yet, and shorthand for rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from benchmarks.random_parts import ORDER, TREES, Parts
from t2s.core.expr import Expr, Index, Local, ReduceLanes, apply, const, equals
from t2s.core.types import INT32, Type
from t2s.graph.body import RegisterWrite
from t2s.graph.graph import Channel, MemorySpace, StreamType, Tensor, TensorRole
from t2s.graph.nodes import (
    DONE,
    Choice,
    Head,
    Machine,
    Mode,
    Node,
    Put,
    Register,
    Role,
    Rule,
    SortedMemory,
    SpaceDimension,
)

P = Index(name="p")


@dataclass(frozen=True)
class Flow:
    """A stream that nobody takes yet, of ``places`` machines side by side."""

    name: str
    type: Type
    nesting: int
    places: int

    @property
    def value(self) -> Local:
        return Local(name=f"{self.name}_value", type=self.type)

    @property
    def tag(self) -> Local:
        return Local(name=f"{self.name}_tag", type=INT32)

    def has(self, tag: int) -> Expr:
        """Whether the head has a tag."""
        return equals(self.tag, tag)


@dataclass(kw_only=True)
class Builder:
    """What has been made so far; channels are made when both of their ends are known."""

    random: Random
    parts: Parts
    nodes: list[Node] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    ends: dict[str, tuple[str, str]] = field(default_factory=dict)
    made: dict[str, Flow] = field(default_factory=dict)
    chains: set[str] = field(default_factory=set)
    tensors: list[Tensor] = field(default_factory=list)
    inputs: dict[str, Any] = field(default_factory=dict)

    def flow(self, type: Type, nesting: int, places: int) -> Flow:
        """A new stream."""
        made = Flow(f"s{len(self.made)}", type, nesting, places)
        self.made[made.name] = made
        return made

    def tensor(
        self,
        type: Type,
        role: TensorRole,
        values: np.ndarray | None = None,
        *,
        open: bool = False,
        board: bool = False,
    ) -> str:
        """A new tensor, of the shape of its ``values`` if any; ``board``: not on the chip."""
        name = f"t{len(self.tensors)}"
        shape = (0,) if open or values is None else values.shape
        place = (
            MemorySpace.MEMORY
            if board
            else self.random.choice([MemorySpace.CHIP, MemorySpace.MEMORY])
        )
        self.tensors.append(
            Tensor(name=name, type=type.scalar, shape=shape, role=role, open=open, place=place)
        )
        if values is not None:
            self.inputs[name] = values.astype(type.scalar.numpy)
        return name

    def machine(
        self,
        inputs: Sequence[Flow],
        outputs: Sequence[Flow],
        modes: Sequence[Mode],
        registers: Sequence[Register] = (),
        memories: Sequence[SortedMemory] = (),
    ) -> None:
        """A new node."""
        name = f"n{len(self.nodes)}"
        for flow in outputs:
            self.ends[flow.name] = (name, "")
        for flow in inputs:
            self.ends[flow.name] = (self.ends[flow.name][0], name)
        places = max(flow.places for flow in (*inputs, *outputs))
        heads = tuple(
            Head(channel=f.name, value=f.value.name, tag=f.tag.name if f.nesting else None)
            for f in inputs
        )
        self.nodes.append(
            Machine(
                name=name,
                role=self.random.choice([Role.COMPUTE, Role.LOAD, Role.STORE]),
                space=(SpaceDimension(name="p", minimum=0, extent=places),) if places > 1 else (),
                heads=heads,
                registers=tuple(registers),
                memories=tuple(memories),
                modes=tuple(modes),
            )
        )

    def channel(self, flow: Flow) -> Channel:
        """The channel of a stream."""
        source, sink = self.ends[flow.name]
        sent: tuple[Expr, ...] = (P,) if flow.places > 1 else ()
        received = sent
        if flow.name in self.chains:  # to the next machine
            sent = (P + 1,)
        elif sink and flow.places > 1 and self.single(sink):
            received = (const(flow.places - 1),)
        return Channel(
            name=flow.name,
            stream=StreamType(element=flow.type, nesting=flow.nesting),
            source=source,
            sink=sink,
            shape=(flow.places + (flow.name in self.chains),) if flow.places > 1 else (),
            source_index=sent,
            sink_index=received,
            capacity=self.random.randint(1, 4),
            latency=self.random.randint(1, 4),
        )

    def single(self, name: str) -> bool:
        """Whether the node of that name is one machine."""
        return next(node for node in self.nodes if node.name == name).space == ()


def register(name: str, type: Type = INT32, *shape: int) -> Register:
    return Register(name=name, type=type, shape=shape, distance=1)


def local(name: str, type: Type = INT32) -> Local:
    return Local(name=name, type=type)


def write(name: str, value: Expr, *at: Expr) -> RegisterWrite:
    return RegisterWrite(register=name, indices=at, value=value)


def count_up() -> RegisterWrite:
    return write("count", local("count") + 1)


def modulo(size: int) -> Expr:
    return local("count") % size


def choice(inside: Rule | Sequence[Choice], when: Expr | None = None, **more: Any) -> Choice:
    return Choice(when=when, inside=inside if isinstance(inside, Rule) else tuple(inside), **more)


def mode(name: str, needs: Sequence[Flow], *choices: Choice) -> Mode:
    return Mode(name=name, needs=tuple(flow.name for flow in needs), choices=choices)


def ended(inputs: Sequence[Flow], outputs: Sequence[Flow]) -> Rule:
    puts = tuple(Put(channel=out.name, tag=const(DONE)) for out in outputs)
    return Rule(name="end", takes=tuple(flow.name for flow in inputs), puts=puts)


def scalar(made: Builder, value: Expr) -> Expr:
    """One number of a value."""
    if value.type.lanes == 1:
        return value
    operator = made.random.choice(TREES)
    return ReduceLanes(operator=operator, value=value, type=value.type.scalar)


def comparison(made: Builder, *known: Expr) -> Expr:
    """A condition on values of one type."""
    type = known[0].type
    left, right = (scalar(made, made.parts.value(type, known, 1)) for _ in range(2))
    return apply(made.random.choice(ORDER), left, right)


def passed(flow: Flow, *outputs: Flow) -> Choice:
    """Tokens that are not value go through; what has another tag than a value is zero."""
    puts = tuple(Put(channel=out.name, tag=flow.tag) for out in outputs)
    return choice(Rule(name="pass", takes=(flow.name,), puts=puts, next="run"))
