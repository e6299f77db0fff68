"""What random graphs are made of: types, expressions, channels, tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from t2s.core.expr import (
    Broadcast,
    Cast,
    Expr,
    Insert,
    LaneNumbers,
    ReduceLanes,
    Select,
    apply,
    const,
    equals,
)
from t2s.core.ops import Op
from t2s.core.types import INT32, Float, Int, Type, UInt
from t2s.graph.graph import Channel, StreamType, Tensor, TensorRole
from t2s.graph.nodes import PEArray

INTEGERS = (Int(8), Int(16), Int(32), Int(64), UInt(8), UInt(16), UInt(32), UInt(64))
FLOATS = (Float(32), Float(64))
ARITHMETIC = (Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.MINIMUM, Op.MAXIMUM)
WHOLE = (Op.FLOOR_DIVIDE, Op.MODULO, Op.AND, Op.OR, Op.XOR)
ORDER = (Op.LESS, Op.LESS_EQUAL, Op.GREATER, Op.GREATER_EQUAL, Op.EQUAL, Op.NOT_EQUAL)
TREES = (Op.ADD, Op.MINIMUM, Op.MAXIMUM)


@dataclass(kw_only=True)
class Parts:
    """What has been made so far."""

    random: Random
    nodes: list[PEArray] = field(default_factory=list)
    channels: list[Channel] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)

    def type(self) -> Type:
        """A type with or without lanes."""
        scalar = self.random.choice([*INTEGERS, INT32, INT32, *FLOATS])
        return scalar.with_lanes(self.random.choice([1, 1, 1, 2, 3, 4]))

    def channel(
        self,
        name: str,
        ends: tuple[str, str],
        type: Type,
        shape: tuple[int, ...] = (),
        sent: Sequence[Expr] = (),
        received: Sequence[Expr] = (),
    ) -> None:
        """Add a channel of random depth and latency."""
        self.channels.append(
            Channel(
                name=name,
                stream=StreamType(element=type),
                source=ends[0],
                sink=ends[1],
                shape=shape,
                source_index=tuple(sent),
                sink_index=tuple(received),
                capacity=self.random.randint(1, 4),
                latency=self.random.randint(1, 4),
            )
        )

    def tensor(self, name: str, type: Type, *shape: int, role: TensorRole) -> None:
        """Add a tensor of scalars."""
        self.tensors.append(Tensor(name=name, type=type.scalar, shape=shape, role=role))

    def value(self, type: Type, known: Sequence[Expr], depth: int = 3) -> Expr:
        """A random expression of a type over known values of it."""
        pick = self.random
        if depth == 0 or pick.random() < 0.2:
            return pick.choice(known) if known and pick.random() < 0.8 else self.constant(type)

        def some() -> Expr:
            return self.value(type, known, depth - 1)

        kind = pick.choice(["two", "two", "two", "one", "select", "cast", "lanes"])
        if kind == "one":
            return apply(pick.choice([Op.NEGATE, Op.ABSOLUTE]), some())
        if kind == "select":
            condition = apply(pick.choice(ORDER), some(), some())
            return Select(condition=condition, if_true=some(), if_false=some(), type=type)
        if kind == "cast" and not type.is_float:
            wide = pick.choice(INTEGERS).with_lanes(type.lanes)
            return Cast(value=Cast(value=some(), type=wide), type=type)
        if kind == "lanes" and type.lanes > 1:
            scalar = ReduceLanes(operator=pick.choice(TREES), value=some(), type=type.scalar)
            lane = const(pick.randint(-1, type.lanes))
            choices = [
                Broadcast(value=scalar, type=type),
                Insert(vector=some(), lane=lane, value=scalar, type=type),
            ]
            if type.is_integer:
                choices.append(LaneNumbers(type=type) + some())
            return pick.choice(choices)
        operators = ARITHMETIC if type.is_float else (*ARITHMETIC, *WHOLE)
        return apply(pick.choice(operators), some(), some())

    def constant(self, type: Type) -> Expr:
        """A small literal, in all lanes."""
        low = -5 if type.scalar.kind.value != "uint" else 0
        number = self.random.randint(low, 5)
        literal = const(float(number) if type.is_float else number, type.scalar)
        return literal if type.lanes == 1 else Broadcast(value=literal, type=type)

    def condition(self, period: int, index: Expr) -> Expr | None:
        """What holds in one of ``period`` firings."""
        if period == 1:
            return None
        phase = self.random.randrange(period)
        return equals(index % period, phase)
