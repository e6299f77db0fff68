"""A machine that gathers and scatters, for the tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from t2s.core.expr import Expr, Local
from t2s.core.ops import Array
from t2s.core.types import BOOL, INT32, Float, Int, Type
from t2s.graph.body import Load, RegisterWrite, Store
from t2s.graph.graph import Channel, Graph, MemorySpace, StreamType, Tensor, TensorRole
from t2s.graph.nodes import Choice, Head, Machine, Mode, Put, Register, Role, Rule

AT = Local(name="at", type=INT32)
STEP = RegisterWrite(register="at", indices=(), value=AT + 1)
ELEMENTS = (INT32, Int(8), Float(64), Float(16), BOOL)


@dataclass(frozen=True, kw_only=True)
class Gathering:
    """``y[row][to[n]] = x[row][take[n]]`` for so many vectors; what is gathered goes to ``z``, too.

    ``open`` makes all tensors open, and ``rank`` 2 gives ``x`` and ``y`` rows, named by ``rows``.
    """

    lanes: int = 4
    steps: int = 1
    rank: int = 1
    open: bool = False
    element: Type = INT32
    index: Type = INT32
    place: MemorySpace = MemorySpace.MEMORY
    width: int = 64
    height: int = 3

    @property
    def graph(self) -> Graph:
        wide = self.element.with_lanes(self.lanes)
        gather, sink = self._gather(wide), self._sink(wide)
        channel = Channel(
            name="gs", stream=StreamType(element=wide), source="gather", sink="sink", capacity=4
        )
        count = self.steps * self.lanes
        shape = (self.height, self.width)[2 - self.rank :]
        tensors = [
            self._tensor("take", self.index, (count,), TensorRole.INPUT),
            self._tensor("to", self.index, (count,), TensorRole.INPUT),
            self._tensor("x", self.element, shape, TensorRole.INPUT),
            self._tensor("y", self.element, shape, TensorRole.OUTPUT),
            self._tensor("z", self.element, (count,), TensorRole.OUTPUT),
        ]
        if self.rank > 1:
            tensors.append(self._tensor("rows", INT32, (self.steps,), TensorRole.INPUT))
        return Graph(
            name="gathering", nodes=(gather, sink), channels=(channel,), tensors=tuple(tensors)
        )

    def _tensor(self, name: str, type: Type, shape: tuple[int, ...], role: TensorRole) -> Tensor:
        if self.open and len(shape) == 1:
            return Tensor(name=name, type=type, shape=(0,), role=role, open=True, place=self.place)
        return Tensor(name=name, type=type, shape=shape, role=role, place=self.place)

    def _gather(self, wide: Type) -> Machine:
        numbers = self.index.with_lanes(self.lanes)
        begin = AT * self.lanes
        row: tuple[Expr, ...] = (Local(name="row", type=INT32),) if self.rank > 1 else ()
        loads = [
            Load(target=name, tensor=tensor, indices=(begin,), type=numbers)
            for name, tensor in (("taken", "take"), ("place", "to"))
        ]
        if row:
            loads.append(Load(target="row", tensor="rows", indices=(AT,), type=INT32))
        found = Load(
            target="found", tensor="x", indices=(*row, Local(name="taken", type=numbers)), type=wide
        )
        value = Local(name="found", type=wide)
        keep = Store(tensor="y", indices=(*row, Local(name="place", type=numbers)), value=value)
        rule = Rule(
            name="gather",
            body=(*loads, found, keep, STEP),
            puts=(Put(channel="gs", value=value),),
            next="run",
        )
        more = Choice(when=AT < self.steps, inside=rule)
        return self._machine("gather", (), more)

    def _sink(self, wide: Type) -> Machine:
        begin = AT * self.lanes
        store = Store(tensor="z", indices=(begin,), value=Local(name="got", type=wide))
        keep = Rule(name="keep", body=(store, STEP), takes=("gs",), next="run")
        more = Choice(when=AT < self.steps, needs=("gs",), inside=(Choice(inside=keep),))
        return self._machine("sink", (Head(channel="gs", value="got"),), more)

    def _machine(self, name: str, heads: tuple[Head, ...], more: Choice) -> Machine:
        end = Choice(inside=Rule(name="end"))
        return Machine(
            name=name,
            role=Role.COMPUTE,
            heads=heads,
            registers=(Register(name="at", type=INT32, shape=(), distance=1),),
            modes=(Mode(name="run", needs=(), choices=(more, end)),),
        )

    def inputs(self, seed: int, *, holes: float, wrong: float = 0.0) -> dict[str, Array]:
        """Random indices, some of them holes and some outside, and random elements."""
        generator = np.random.default_rng(seed)
        count = self.steps * self.lanes
        found: dict[str, Array] = {}
        for name in ("take", "to"):
            numbers = generator.integers(0, self.width, count)
            numbers[generator.random(count) < holes] = -1
            strange = generator.choice([-2, -100, self.width, 120], count)
            numbers = np.where(generator.random(count) < wrong, strange, numbers)
            found[name] = numbers.astype(self.index.numpy)
        shape = (self.height, self.width)[2 - self.rank :]
        found["x"] = generator.integers(0, 100, shape).astype(self.element.numpy)
        if self.rank > 1:
            rows = generator.integers(0, self.height, self.steps)
            rows[generator.random(self.steps) < wrong] = self.height
            found["rows"] = rows.astype(np.int32)
        return found


@st.composite
def gatherings(draw: st.DrawFn) -> Gathering:
    """Machines that gather and scatter; what is in shared banks is not open."""
    place = draw(st.sampled_from(MemorySpace))
    return Gathering(
        lanes=draw(st.sampled_from((2, 3, 4, 16, 33))),
        steps=draw(st.integers(0, 9)) + 1,
        rank=draw(st.sampled_from((1, 2))),
        open=place is not MemorySpace.SHARED and draw(st.booleans()),
        element=draw(st.sampled_from(ELEMENTS)),
        index=draw(st.sampled_from((INT32, Int(8), Int(64)))),
        place=place,
        width=draw(st.sampled_from((33, 90))),
    )
