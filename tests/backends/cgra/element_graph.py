"""Programs of profile A as a graph, a second opinion on the interpreter: elements, links, ports.

A link is the sender's FIFO, a mover and the receiver's FIFO: two channels with an endless relay
between them.  The run's last firing comes one cycle after the number that the public simulator
gives, because cycles of graphs are counted from 1.

Memory.  Values of graphs do not depend on time, so the read ports load from ``memory`` as it was
given, and each write port stores into an array of its own.  ``memory_after`` puts them together,
and refuses runs in which the order of accesses matters: a word that is stored and loaded, or
stored by two ports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from t2s.backends.cgra_tia.fabric import ArrayWires, CoreParameters, Port, array_wires
from t2s.backends.cgra_tia.lift.cell_machines import (
    CellMachine,
    PredicateState,
    TokenChannel,
    states_of,
)
from t2s.backends.cgra_tia.program import CellProgram, Instruction
from t2s.backends.cgra_tia.text.places import block_name
from t2s.core.errors import UserError
from t2s.core.expr import Cast, Expr, Local, const
from t2s.core.ops import Array
from t2s.core.types import INT32, Int, Type, UInt
from t2s.graph.body import Load, Role, Store
from t2s.graph.graph import Channel, Graph, StreamType, Tensor, TensorRole
from t2s.graph.nodes import Choice, Head, Machine, Mode, Put, Rule
from t2s.graph.verify import verify_graph

MEMORY = "memory"
"""The input of a lifted graph: the words of the memory, unsigned."""

_PORT_DEPTH = 4
_FLAG = UInt(8)


def lift_array(
    programs: Sequence[CellProgram],
    core: CoreParameters,
    *,
    shape: tuple[int, int] | None,
    memory_words: int,
) -> Graph:
    """The graph of an array of processing elements with a program each, row by row.

    Its input is ``memory``; ``memory_after`` makes the memory at the end of its outputs.  Raises
    ``UserError`` for programs in which it depends on time what fires, for operators that graphs
    do not have, and for tokens that nobody ever takes.
    """
    elements = 1 if shape is None else shape[0] * shape[1]
    if len(programs) != elements:
        raise UserError(
            "there is not one program for each element of the array",
            expected=f"{elements} programs",
            given=f"{len(programs)} programs",
        )
    builder = _ElementGraph(programs, core, array_wires(shape), memory_words)
    graph = builder.graph()
    verify_graph(graph)
    return graph


def memory_after(memory: Array, outputs: Mapping[str, Array]) -> Array:
    """The memory at the end of a run: what it was given, and the outputs of the graph.

    Raises ``UserError`` if a word was loaded and stored, or stored by two ports: what it holds
    then depends on time, which the graph does not see.
    """
    after = np.array(memory, np.uint32)
    touched = np.zeros(len(after), np.int64)
    for name in sorted(outputs):
        if not name.startswith("stored"):
            continue
        number = name.removeprefix("stored")
        marked = np.asarray(outputs[f"marked{number}"], np.bool_)
        after[marked] = outputs[name][marked]
        touched += marked
    loaded = np.zeros(len(after), np.bool_)
    for name, array in outputs.items():
        if name.startswith("loaded"):
            loaded |= np.asarray(array, np.bool_)
    bad = np.flatnonzero((touched > 1) | ((touched > 0) & loaded))
    if len(bad):
        raise UserError(
            "what is in the memory depends on time, which the graph of a program does not see",
            expected="words that are loaded, or stored by one port, and not both",
            given=f"several accesses to word {int(bad[0])}",
            hint="the interpreter runs such programs",
        )
    return after


def reachable(states: Sequence[PredicateState]) -> tuple[Instruction, ...]:
    """The instructions that may fire."""
    instructions = (i for state in states for group in state.groups for i in group.instructions)
    return tuple({id(i): i for i in instructions}.values())


@dataclass
class _ElementGraph:
    programs: Sequence[CellProgram]
    core: CoreParameters
    wires: ArrayWires
    memory_words: int
    nodes: list[Machine] = field(default_factory=list)
    channels: list[Channel] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)

    @property
    def word(self) -> Type:
        return Int(self.core.word_width)

    def graph(self) -> Graph:
        states = self._states()
        sent = {
            (n, p) for n, found in enumerate(states) for i in reachable(found) for p in i.outputs
        }
        taken = {
            (n, p) for n, found in enumerate(states) for i in reachable(found) for p in i.takes
        }
        self._check_taken(states, taken)
        names = [self._name(number) for number in range(len(self.programs))]
        inputs: list[dict[int, TokenChannel]] = [{} for _ in names]
        outputs: list[dict[int, list[TokenChannel]]] = [{} for _ in names]
        for source, side in sorted(sent):
            outputs[source][side] = [TokenChannel(f"{names[source]}_out{side}")]
        for sink, side in sorted(taken):
            inputs[sink][side] = TokenChannel(f"{names[sink]}_in{side}")
        for number, (program, found) in enumerate(zip(self.programs, states, strict=True)):
            machine = CellMachine(
                name=names[number],
                label=block_name(number, program.label),
                program=program,
                states=found,
                inputs=inputs[number],
                outputs=outputs[number],
                core=self.core,
            )
            self.nodes.append(machine.build())
        self._connect(sent, taken, names)
        return Graph(
            name="array",
            nodes=tuple(self.nodes),
            channels=tuple(self.channels),
            tensors=tuple(self.tensors),
        )

    def _check_taken(self, states: Sequence[Sequence[PredicateState]], taken: set[Port]) -> None:
        """Whoever waits for a token takes one sometime; else the last one is never gone."""
        for number, found in enumerate(states):
            for check in (c for i in reachable(found) for c in i.trigger.checks):
                if (number, check.channel) not in taken:
                    label = block_name(number, self.programs[number].label)
                    raise UserError(
                        f"{label} waits for a token in %i{check.channel}, and never takes one",
                        expected="every token to be taken by somebody, so that the run can end",
                        given=f"a check of %i{check.channel}, and no deq %i{check.channel}",
                        hint=f"write deq %i{check.channel} in the instruction that is the last to "
                        "need it",
                    )

    def _name(self, number: int) -> str:
        return f"pe{number}"

    def _states(self) -> list[tuple[PredicateState, ...]]:
        """The states of all elements; channels that nobody feeds count for nothing."""
        into = {sink: source for source, sink in self.wires.links.items()}
        into |= {port: port for port in self.wires.reads}
        fed = set(into)
        while True:
            found = [
                states_of(
                    program,
                    block_name(number, program.label),
                    {side for element, side in fed if element == number},
                )
                for number, program in enumerate(self.programs)
            ]
            sent = {(n, p) for n, s in enumerate(found) for i in reachable(s) for p in i.outputs}
            left = {sink for sink in fed if into[sink] in sent}
            if left == fed:
                return found
            fed = left

    def _connect(self, sent: set[Port], taken: set[Port], names: Sequence[str]) -> None:
        wires = self.wires
        leads = (
            set(wires.links) | set(wires.reads) | {port for pair in wires.writes for port in pair}
        )
        for port in sorted(sent - leads):
            raise self._refused(port, "sends tokens from %o{side}, where no wire is", "a wire")
        for source, sink in sorted(wires.links.items()):
            if source in sent:
                if sink not in taken:
                    raise self._refused(source, "sends to an element that never takes", "a taker")
                self._link(source, sink, names)
        for number, port in enumerate(wires.reads):
            if port in sent and port not in taken:
                raise self._refused(port, "loads words that it never takes", "a taker")
            if port in sent:
                self._read_port(number, port, names)
        for number, (address, data) in enumerate(wires.writes):
            if (address in sent) != (data in sent):
                lone = address if address in sent else data
                raise self._refused(lone, "gives a write port half of what it needs", "both")
            if address in sent:
                self._write_port(number, address, data, names)

    def _refused(self, port: Port, what: str, expected: str) -> UserError:
        element, side = port
        label = block_name(element, self.programs[element].label)
        wanted = {
            "a wire": "outputs that lead to a neighbor or to a port of the memory",
            "a taker": "every token to be taken by somebody, so that the run can end",
            "both": "an address and a datum for each store",
        }
        return UserError(
            f"{label} {what.format(side=side)}", expected=wanted[expected], given=f"output %o{side}"
        )

    # -- parts ---------------------------------------------------------------------------------

    def _channel(self, name: str, source: str, sink: str, latency: int, capacity: int) -> None:
        stream = StreamType(element=self.word, nesting=1, values_under_tags=True)
        self.channels.append(
            Channel(
                name=name,
                stream=stream,
                source=source,
                sink=sink,
                latency=latency,
                capacity=capacity,
            )
        )

    def _relay(self, name: str, taken: str, put: str) -> None:
        """A mover: a token per cycle from one FIFO to the next."""
        value, tag = Local(name="value", type=self.word), Local(name="tag", type=INT32)
        rule = Rule(
            name="move", takes=(taken,), puts=(Put(channel=put, value=value, tag=tag),), next="run"
        )
        self._node(name, Role.RELAY, (Head(channel=taken, value="value", tag="tag"),), rule)

    def _node(self, name: str, role: Role, heads: tuple[Head, ...], rule: Rule) -> None:
        needs = tuple(head.channel for head in heads)
        mode = Mode(name="run", needs=needs, choices=(Choice(inside=rule),))
        self.nodes.append(Machine(name=name, role=role, heads=heads, modes=(mode,), endless=True))

    def _link(self, source: Port, sink: Port, names: Sequence[str]) -> None:
        depth, mover = self.core.channel_depth, f"{names[source[0]]}_mover{source[1]}"
        first, second = f"{names[source[0]]}_out{source[1]}", f"{names[sink[0]]}_in{sink[1]}"
        self._channel(first, names[source[0]], mover, 1, depth)
        self._relay(mover, first, second)
        self._channel(second, mover, names[sink[0]], 1, depth)

    def _read_port(self, number: int, port: Port, names: Sequence[str]) -> None:
        """Addresses come through one mover, and words go through another."""
        element, side = port
        depth, name = self.core.channel_depth, names[element]
        unit, to, back = f"read{number}", f"{name}_mover{side}", f"{name}_back{side}"
        self._memory_input()
        mark = self._output(f"loaded{number}", _FLAG)
        address = Local(name="value", type=self.word)
        loaded = Local(name="word", type=UInt(self.core.word_width))
        put = Put(
            channel=f"{unit}_data",
            value=Cast(value=loaded, type=self.word),
            tag=Local(name="tag", type=INT32),
        )
        rule = Rule(
            name="load",
            body=(
                Load(target="word", tensor=MEMORY, indices=(address,), type=loaded.type),
                Store(tensor=mark, indices=(address,), value=const(1, _FLAG)),
            ),
            takes=(f"{unit}_address",),
            puts=(put,),
            next="run",
        )
        self._channel(f"{name}_out{side}", name, to, 1, depth)
        self._relay(to, f"{name}_out{side}", f"{unit}_address")
        self._channel(f"{unit}_address", to, unit, 1, _PORT_DEPTH)
        heads = (Head(channel=f"{unit}_address", value="value", tag="tag"),)
        self._node(unit, Role.LOAD, heads, rule)
        self._channel(f"{unit}_data", unit, back, 2, _PORT_DEPTH + 1)
        self._relay(back, f"{unit}_data", f"{name}_in{side}")
        self._channel(f"{name}_in{side}", back, name, 1, depth)

    def _write_port(self, number: int, address: Port, data: Port, names: Sequence[str]) -> None:
        unit, depth = f"write{number}", self.core.channel_depth
        for what, (element, side) in (("address", address), ("data", data)):
            name = names[element]
            self._channel(f"{name}_out{side}", name, f"{name}_mover{side}", 1, depth)
            self._relay(f"{name}_mover{side}", f"{name}_out{side}", f"{unit}_{what}")
            self._channel(f"{unit}_{what}", f"{name}_mover{side}", unit, 1, _PORT_DEPTH)
        width = UInt(self.core.word_width)
        where: Expr = Local(name="address", type=self.word)
        value = Cast(value=Local(name="data", type=self.word), type=width)
        stored, marked = (
            self._output(f"stored{number}", width),
            self._output(f"marked{number}", _FLAG),
        )
        heads = tuple(
            Head(channel=f"{unit}_{what}", value=what, tag=f"{what}_tag")
            for what in ("address", "data")
        )
        rule = Rule(
            name="store",
            body=(
                Store(tensor=stored, indices=(where,), value=value),
                Store(tensor=marked, indices=(where,), value=const(1, _FLAG)),
            ),
            takes=tuple(head.channel for head in heads),
            next="run",
        )
        self._node(unit, Role.STORE, heads, rule)

    def _memory_input(self) -> None:
        if all(tensor.name != MEMORY for tensor in self.tensors):
            type = UInt(self.core.word_width)
            shape = (self.memory_words,)
            self.tensors.append(Tensor(name=MEMORY, type=type, shape=shape, role=TensorRole.INPUT))

    def _output(self, name: str, type: Type) -> str:
        shape = (self.memory_words,)
        self.tensors.append(Tensor(name=name, type=type, shape=shape, role=TensorRole.OUTPUT))
        return name
