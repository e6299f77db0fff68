"""Values of graphs with machines, and the codes of all that their machines fire.

Like ``values.compute_values``, but what a machine does is known only now, so it may turn out that
machines wait for tokens that never come, or meet tokens that they cannot take.  Neither is an error
yet: with the real capacities of the channels the run may end before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from t2s.core.errors import InternalError, UserError
from t2s.core.ops import Array
from t2s.graph.graph import Channel, Graph
from t2s.graph.layout import outputs_of
from t2s.graph.machine import Machine
from t2s.graph.machine_semantics import MachineState, ProtocolError, Token
from t2s.graph.semantics import space_points
from t2s.simulator.native.emit_node import FAULTED
from t2s.simulator.native.layout import (
    FAILED,
    FINISHED,
    MODE,
    Layout,
    layout_of,
)
from t2s.simulator.native.machine_memory import MOST_FIRINGS
from t2s.simulator.native.module import MachineCode, compile_text, emit_program
from t2s.simulator.native.state import RunState

_FIRINGS_PER_CALL = 1 << 22
_GRAPHS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineTrace:
    """What one machine does.

    Attributes
    ----------
    codes: of its firings, in order.
    finished: whether these are all.
    needs: if not, the channels whose heads the next firing needs, as far as that is known.
    refuses: whether all these heads come, and there is no firing for them.
    """

    codes: Array
    finished: bool
    needs: tuple[str, ...] = ()
    refuses: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamValues:
    """The values of a run in channels without bounds.

    Attributes
    ----------
    outputs: the output tensors; ``None`` if not all nodes came to their end.
    traces: of every machine, by node and place.
    sent, received: tokens through the elements of every channel.
    refusal: makes the error of a machine that refuses (by node and place).
    """

    outputs: Mapping[str, Array] | None
    traces: Mapping[tuple[str, int], MachineTrace]
    sent: Mapping[str, Array]
    received: Mapping[str, Array]
    refusal: Callable[[str, int], Exception]


class _Same:
    """A graph, equal to itself alone."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __hash__(self) -> int:
        return id(self.graph)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.graph is other.graph


@lru_cache(maxsize=_GRAPHS)
def _prepared(same: _Same) -> tuple[Layout, MachineCode, tuple[str, ...]]:
    layout = layout_of(same.graph)
    program = emit_program(same.graph, layout)
    return layout, compile_text(program.text), program.faults


def stream_values(
    graph: Graph,
    inputs: Mapping[str, Array],
    parameters: Mapping[str, Array],
    *,
    most_firings: int | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> StreamValues:
    """Run a graph with machines as far as its tokens allow, ``most_firings`` for each machine.

    Raises ``UserError`` if an input is wrong or a machine never ends.
    """
    layout, code, faults = _prepared(_Same(graph))
    state = RunState(graph, layout, inputs, parameters)
    if most_firings is not None:
        for memory in state.machines.values():
            memory.limit(most_firings)
    total = 0
    while waiting := state.unfinished():
        fired = code.run(state.address, _FIRINGS_PER_CALL)
        if fired == FAULTED:
            raise InternalError(faults[int(state.get(layout.fault)) - 1])
        total += fired
        if not fired and state.unfinished() == waiting and not state.grow():
            break
        if on_progress is not None:
            on_progress(total)
    reader = _Reader(graph, layout, state)
    traces = reader.traces(most_firings)
    return StreamValues(
        outputs=None if state.unfinished() else outputs_of(graph, state.tensors()),
        traces=traces,
        sent={c.name: state.counts(layout.tails(c.name)) for c in graph.channels},
        received={c.name: state.counts(layout.heads(c.name)) for c in graph.channels},
        refusal=reader.refusal,
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads what machines did, and were about to do, from the state at the end."""

    graph: Graph
    layout: Layout
    state: RunState

    def traces(self, most_firings: int | None) -> dict[tuple[str, int], MachineTrace]:
        """The traces of all machines."""
        found: dict[tuple[str, int], MachineTrace] = {}
        for node in self.graph.machines:
            points = self.layout.waits[node.name]
            words = self.state.get(self.layout.state(node.name)).tolist()
            for place, (status, _, wait) in enumerate(words):
                codes = self.state.machines[node.name].trace(place)
                needs = points[wait] if wait >= 0 and status != FINISHED else ()
                if len(codes) == MOST_FIRINGS and status != FINISHED and most_firings is None:
                    raise _endless(node, place)
                found[node.name, place] = MachineTrace(
                    codes=codes,
                    finished=status == FINISHED,
                    needs=needs,
                    refuses=status == FAILED,
                )
        return found

    def refusal(self, name: str, place: int) -> Exception:
        """The error of a machine that refuses: the one that its semantics give."""
        node = self.graph.node(name)
        assert isinstance(node, Machine)
        state = self._machine_state(node, place)
        memory = self.state.tensors()
        heads = {
            channel.name: head
            for channel in self.graph.inputs_of(name)
            if (head := self._head(channel, state.inputs[channel.name].element)) is not None
        }
        try:
            with np.errstate(all="ignore"):
                decision = state.decide(heads, memory)
                if not isinstance(decision, tuple):
                    state.fire(decision, dict(memory))
        except ProtocolError as error:
            return error
        message = int(self.state.get(self.layout.fault))
        return InternalError(f"{name} stopped without a reason, after fault {message}")

    def _machine_state(self, node: Machine, place: int) -> MachineState:
        point = list(space_points(node))[place]
        state = MachineState(self.graph, node, point, self.state.scalars)
        words = self.state.get(self.layout.state(node.name))
        state.mode = node.modes[int(words[place, MODE])]
        for register in node.registers:
            row = self.state.get(self.layout.register(node.name, register.name))[place]
            values = row.view(register.type.scalar.numpy)
            shape = state.registers[register.name].shape
            state.registers[register.name] = values.reshape(shape).copy()
        return state

    def _head(self, channel: Channel, element: tuple[int, ...]) -> Token | Array | None:
        """The next token in an element of a channel, where there is one."""
        layout = self.layout
        at = int(np.ravel_multi_index(element, channel.shape)) if channel.shape else 0
        head = int(self.state.get(layout.heads(channel.name))[at])
        if head == int(self.state.get(layout.tails(channel.name))[at]):
            return None
        token = layout.tokens[channel.name]
        ring = self.state.ring(channel.name)[at]
        slot = head % (len(ring) // token.stride) * token.stride
        type = channel.stream.element
        bytes = ring[slot + token.value : slot + token.value + type.bytes]
        value = bytes.view(type.scalar.numpy)
        value = value.copy() if type.lanes > 1 else value[0]
        if channel.stream.nesting == 0:
            return value
        return Token(value, int(ring[slot : slot + 4].view(np.int32)[0]))


def _endless(node: Machine, place: int) -> UserError:
    return UserError(
        f"{node.name!r} does not end",
        location=node.location,
        expected=f"at most {MOST_FIRINGS} firings of one machine",
        given=f"as many firings of machine {place} without an end",
        hint="give max_cycles to see what it does",
    )
