"""Running the nests of a plan, one PE after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from t2s.core.collector import without_collections
from t2s.core.ops import C_FUNCTIONS, Array
from t2s.graph.graph import Graph
from t2s.simulator.emit.compile import MachineCode, compile_nest
from t2s.simulator.program.build import control_parameters
from t2s.simulator.values.layout import ValueLayout, aligned_zeros, placed
from t2s.simulator.values.nests.emit_access import keyed_accesses
from t2s.simulator.values.nests.emit_nest import emit_nest
from t2s.simulator.values.nests.groups import group_of, rounds_of
from t2s.simulator.values.nests.plan import Plan, plan_of
from t2s.simulator.values.state import addresses_of_c_functions, start_values

_FIRINGS_PER_CALL = 1 << 22
"""Python takes over this often, for interrupts and progress."""

_KEPT_DESIGNS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A plan with the machine code of its nests, and where that expects everything.

    ``rounds`` is how often the group of a nest runs.
    """

    plan: Plan
    layout: ValueLayout
    code: Mapping[str, MachineCode]
    rounds: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class _Design:
    """A graph, this very object, with the scalars that its control depends on."""

    graph: Graph
    parameters: tuple[tuple[str, bytes], ...]

    def __hash__(self) -> int:
        return hash((id(self.graph), self.parameters))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Design)
            and self.graph is other.graph
            and self.parameters == other.parameters
        )


def prepare(graph: Graph, parameters: Mapping[str, Array]) -> Prepared:
    """Plan and compile a graph; what was prepared lately is kept."""
    names = sorted(control_parameters(graph))
    return _prepared(_Design(graph, tuple((name, parameters[name].tobytes()) for name in names)))


@lru_cache(maxsize=_KEPT_DESIGNS)
@without_collections()
def _prepared(design: _Design) -> Prepared:
    types = {parameter.name: parameter.type.numpy for parameter in design.graph.parameters}
    known = {name: np.frombuffer(value, types[name])[0] for name, value in design.parameters}
    plan = plan_of(design.graph, known)
    layout = placed(design.graph, _requests(design.graph, plan))
    code = {
        name: compile_nest(emit_nest(design.graph, nest, layout))
        for name, nest in plan.nests.items()
    }
    rounds = {name: rounds_of(nest, group_of(nest))[0] for name, nest in plan.nests.items()}
    return Prepared(plan=plan, layout=layout, code=code, rounds=rounds)


def run_nests(
    graph: Graph,
    prepared: Prepared,
    memory: Mapping[str, Array],
    parameters: Mapping[str, Array],
    recorded: Mapping[str, Array],
    on_progress: Callable[[int], None],
) -> None:
    """Run all nests; ``memory`` is changed in place.

    ``recorded`` are the tokens of the channels that rings filled.  ``on_progress`` is called with
    the number of firings so far.
    """
    plan, layout = prepared.plan, prepared.layout
    arena = aligned_zeros(layout.bytes)
    streams = {**recorded, **_streams(graph, plan, recorded)}
    _fill(graph, plan, layout, arena, memory, parameters, streams)
    address, total = int(arena.ctypes.data), sum(plan.passed.values())
    for name, first, last in plan.turns:
        nest, rounds = plan.nests[name], prepared.rounds[name]
        firings = (last - first) * prod(extent for _, extent in nest.frame.bounds.values())
        step = max(1, _FIRINGS_PER_CALL * rounds // firings)
        for begin in range(0, rounds, step):
            end = min(begin + step, rounds)
            prepared.code[name].run(address, first, last, begin, end)
            on_progress(total + firings * end // rounds)
        total += firings


def _requests(graph: Graph, plan: Plan) -> Iterator[tuple[tuple[str, ...], tuple[int, ...], str]]:
    """The sections of the arena."""
    yield ("functions of C",), (len(C_FUNCTIONS),), "uint64"
    for parameter in graph.parameters:
        yield ("parameter", parameter.name), (parameter.type.bytes,), "uint8"
    for tensor in graph.tensors:
        yield ("tensor", tensor.name), (), "uint64"
    for channel in plan.streams:
        yield ("stream", channel), (), "uint64"
    for name, nest in plan.nests.items():
        for key, _ in keyed_accesses(nest):
            yield ("base", name, key), (nest.node.place_count,), "int64"
        for register in nest.node.registers:
            row = prod(register.shape) * register.type.bytes
            yield ("register", name, register.name), (nest.node.place_count, row), "uint8"


def _streams(graph: Graph, plan: Plan, recorded: Mapping[str, Array]) -> dict[str, Array]:
    """Memory for the tokens that nests keep."""
    made = {}
    for name, pitch in plan.streams.items():
        if name not in recorded:
            channel = graph.channel(name)
            scalars = pitch * channel.element_count
            made[name] = aligned_zeros(scalars * channel.stream.element.scalar.bytes)
    return made


def _fill(
    graph: Graph,
    plan: Plan,
    layout: ValueLayout,
    arena: Array,
    memory: Mapping[str, Array],
    parameters: Mapping[str, Array],
    streams: Mapping[str, Array],
) -> None:
    """Write everything that the code finds in the arena."""

    def put(key: tuple[str, ...], value: object) -> None:
        layout.sections[key].view(arena)[...] = value

    put(("functions of C",), addresses_of_c_functions())
    for parameter in graph.parameters:
        value = np.frombuffer(parameters[parameter.name].tobytes(), np.uint8)
        put(("parameter", parameter.name), value)
    for tensor in graph.tensors:
        put(("tensor", tensor.name), memory[tensor.name].ctypes.data)
    for channel, tokens in streams.items():
        put(("stream", channel), tokens.ctypes.data)
    for name, nest in plan.nests.items():
        for key, access in keyed_accesses(nest):
            put(("base", name, key), access.bases)
        for register, start in start_values(nest.node).items():
            put(("register", name, register), start)
