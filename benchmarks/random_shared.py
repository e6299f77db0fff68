"""Random graphs of machines with tensors in shared banks: ``random_machines``, and gathers.

Gatherers take numbers from memory or from the banks, gather from one tensor there and scatter into
another one of their own, which they gather from again; what they find decides now and then how
they go on.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from benchmarks.random_machines import random_machines
from t2s.core.expr import Expr, Index, Local, ReduceLanes, equals
from t2s.core.ops import Op
from t2s.core.types import INT32, Int, Type
from t2s.graph.body import Load, RegisterWrite, Role, Statement, Store
from t2s.graph.graph import Channel, Graph, MemorySpace, StreamType, Tensor, TensorRole
from t2s.graph.nodes import Choice, Head, Machine, Mode, Put, Register, Rule, SpaceDimension
from t2s.graph.verify_machine import accesses_of
from t2s.simulator.devices import DEVICES, Device
from t2s.simulator.memory.spec import MEMORIES, Banked

AT = Local(name="at", type=INT32)
SKIP = Local(name="skip", type=INT32)
P = Index(name="p")
STEP = RegisterWrite(register="at", indices=(), value=AT + 1)


def random_banked(random: Random) -> Banked:
    """Small banks with many conflicts."""
    return Banked(
        ports=random.choice((1, 2, 4, 8)),
        lanes=random.choice((1, 3, 4, 16)),
        banks=random.choice((1, 3, 4, 16)),
        queue_depth=random.choice((1, 2, 16)),
        rounds=random.choice((1, 2, 3)),
        lane_moves=random.choice((0, 1, 2)),
        link_depth=random.choice((1, 2, 4)),
        reply_cycles=random.choice((0, 0, 1, 5)),
        outstanding=random.choice((1, 2, 5, 64)),
    )


def random_device(random: Random) -> Device:
    """A device with such banks, beside any memory."""
    device = replace(DEVICES[random.choice(("ideal", "arria10"))], banked=random_banked(random))
    if random.random() < 0.5:
        dram = MEMORIES[random.choice(("ddr4-2133", "hbm2e"))]
        units = replace(dram.units, outstanding=random.choice((1, 3, 128)))
        device = device.with_memory(replace(dram, units=units))
    return device


def random_shared(seed: int) -> tuple[Graph, dict[str, Any]]:
    """A graph, and its inputs."""
    random = Random(seed)
    if random.random() < 0.4:
        graph, inputs = random_machines(seed)
        return in_banks(graph, random), inputs
    return gatherers(seed, random)


def in_banks(graph: Graph, random: Random) -> Graph:
    """The graph with some of its tensors in shared banks, and none on the chip."""
    of_arrays = set[str]().union(*(accesses_of(node) for node in graph.pe_arrays))

    def placed(tensor: Tensor) -> Tensor:
        if tensor.place is MemorySpace.MEMORY and random.random() < 0.5:
            return tensor
        if tensor.open or tensor.name in of_arrays:
            return replace(tensor, place=MemorySpace.MEMORY)
        return replace(tensor, place=MemorySpace.SHARED, swizzled=random.random() < 0.3)

    return replace(graph, tensors=tuple(placed(tensor) for tensor in graph.tensors))


def gatherers(seed: int, random: Random) -> tuple[Graph, dict[str, Any]]:
    """Nodes that gather, each with a node that stores what it puts."""
    nodes: list[Machine] = []
    channels: list[Channel] = []
    tensors: list[Tensor] = []
    inputs: dict[str, Any] = {}
    for number in range(random.randint(1, 4)):
        made = _Gatherer(random, seed, number)
        nodes += [made.gatherer(), *made.sinks()]
        channels.append(made.channel())
        tensors += made.tensors()
        inputs |= made.inputs()
    random.shuffle(nodes)
    graph = Graph(
        name=f"gatherers_{seed}",
        nodes=tuple(nodes),
        channels=tuple(channels),
        tensors=tuple(tensors),
    )
    return graph, inputs


class _Gatherer:
    """A node of machines side by side, its tensors and what takes its tokens."""

    def __init__(self, random: Random, seed: int, number: int) -> None:
        self.random, self.number = random, number
        self.generator = np.random.default_rng((seed, number))
        self.places = random.choice((1, 1, 2, 5))
        self.lanes = random.choice((2, 4, 5, 16))
        self.steps = random.randint(0, 12)
        self.element = random.choice((INT32, Int(8), Int(64)))
        self.width = random.choice((20, 64, 120))
        self.wide = self.element.with_lanes(self.lanes)
        self.numbers = INT32.with_lanes(self.lanes)
        self.stores = self.places == 1 and random.random() < 0.7
        self.decides = random.random() < 0.3
        self.chained = random.random() < 0.3

    def name(self, what: str) -> str:
        return f"{what}{self.number}"

    def place(self) -> MemorySpace:
        return self.random.choice((MemorySpace.SHARED, MemorySpace.SHARED, MemorySpace.MEMORY))

    def gatherer(self) -> Machine:
        begin = AT * self.lanes
        taken = Local(name="taken", type=self.numbers)
        body: list[Statement] = [self._load("taken", "take", begin, self.numbers)]
        if self.chained:
            body.append(self._load("further", "chain", taken, self.numbers))
            taken = Local(name="further", type=self.numbers)
        body.append(self._load("found", "x", taken, self.wide))
        value: Local = Local(name="found", type=self.wide)
        if self.stores:
            to = Local(name="place", type=self.numbers)
            body += [
                self._load("place", "to", begin, self.numbers),
                self._load("old", "y", to, self.wide),
                Store(tensor=self.name("y"), indices=(to,), value=value),
            ]
            value = Local(name=self.random.choice(("old", "found")), type=self.wide)
        if self.decides:
            total: Expr = ReduceLanes(operator=Op.ADD, value=taken, type=INT32)
            odd = total % 2
            body.append(RegisterWrite(register="skip", indices=(), value=odd))
        rule = Rule(
            name="gather",
            body=(*body, STEP),
            puts=(Put(channel=self.name("c"), value=value),),
            next="run",
        )
        quiet = Rule(name="quiet", body=(*body, STEP), next="run")
        more = AT < self.steps
        quiets = equals(SKIP, 1)
        choices = (
            Choice(when=more, inside=(Choice(when=quiets, inside=quiet), Choice(inside=rule))),
            Choice(inside=Rule(name="end")),
        )
        return self._machine(self.name("gather"), self.places, (), choices)

    def sinks(self) -> list[Machine]:
        """One machine that takes for each that puts, which drops the tokens or keeps them."""
        head = Head(channel=self.name("c"), value="got")
        got = Local(name="got", type=self.wide)
        body: tuple[Statement, ...] = (STEP,)
        if self.places == 1:
            begin = AT * self.lanes
            body = (Store(tensor=self.name("z"), indices=(begin,), value=got), STEP)
        take = Rule(name="take", body=body, takes=(head.channel,), next="run")
        mode = Mode(name="run", needs=(head.channel,), choices=(Choice(inside=take),))
        sink = self._machine(self.name("sink"), self.places, (head,), mode.choices)
        return [replace(sink, modes=(mode,), endless=True)]

    def channel(self) -> Channel:
        many = self.places > 1
        return Channel(
            name=self.name("c"),
            stream=StreamType(element=self.wide),
            source=self.name("gather"),
            sink=self.name("sink"),
            shape=(self.places,) if many else (),
            source_index=(P,) if many else (),
            sink_index=(P,) if many else (),
            capacity=self.random.randint(1, 5),
            latency=self.random.randint(1, 4),
        )

    def tensors(self) -> list[Tensor]:
        count = max(1, self.steps) * self.lanes
        found = [
            self._tensor("take", INT32, count),
            self._tensor("x", self.element, self.width, swizzled=self.random.random() < 0.4),
        ]
        if self.chained:
            found.append(self._tensor("chain", INT32, self.width))
        if self.stores:
            found.append(self._tensor("to", INT32, count))
            found.append(self._tensor("y", self.element, self.width, TensorRole.OUTPUT))
        if self.places == 1:
            found.append(self._tensor("z", self.element, count, TensorRole.OUTPUT))
        return found

    def inputs(self) -> dict[str, Any]:
        count = max(1, self.steps) * self.lanes
        found = {"take": self._numbers(count), "x": self.generator.integers(0, 100, self.width)}
        if self.chained:
            found["chain"] = self._numbers(self.width)
        if self.stores:
            found["to"] = self._numbers(count)
        types = {"x": self.element.numpy}
        return {
            self.name(name): array.astype(types.get(name, np.int32))
            for name, array in found.items()
        }

    def _numbers(self, count: int) -> np.ndarray:
        few = self.random.choice((self.width, 5, 1))
        numbers = self.generator.integers(0, few, count)
        numbers[self.generator.random(count) < self.random.choice((0, 0.2, 0.9))] = -1
        return numbers

    def _tensor(
        self,
        what: str,
        type: Type,
        extent: int,
        role: TensorRole = TensorRole.INPUT,
        *,
        swizzled: bool = False,
    ) -> Tensor:
        place = (
            MemorySpace.SHARED
            if what in ("x", "y") and self.random.random() < 0.8
            else self.place()
        )
        return Tensor(
            name=self.name(what),
            type=type,
            shape=(extent,),
            role=role,
            place=place,
            swizzled=swizzled and place is MemorySpace.SHARED,
        )

    def _load(self, target: str, tensor: str, index: Expr, type: Type) -> Load:
        return Load(target=target, tensor=self.name(tensor), indices=(index,), type=type)

    def _machine(
        self, name: str, places: int, heads: tuple[Head, ...], choices: tuple[Choice, ...]
    ) -> Machine:
        return Machine(
            name=name,
            role=Role.COMPUTE,
            space=(SpaceDimension(name="p", minimum=0, extent=places),) if places > 1 else (),
            heads=heads,
            registers=tuple(
                Register(name=register, type=INT32, shape=(), distance=1)
                for register in ("at", "skip")
            ),
            modes=(Mode(name="run", needs=(), choices=choices),),
        )
