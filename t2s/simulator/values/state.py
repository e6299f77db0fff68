"""The memory of one run: the arena, the rings and the tensors."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from t2s.core.errors import InternalError
from t2s.core.ops import Array
from t2s.graph.arrays import check_graph_inputs, pack
from t2s.graph.graph import Graph, Tensor, TensorRole
from t2s.graph.nodes import Machine, Node
from t2s.graph.semantics import new_registers, space_points
from t2s.llvm.c_functions import addresses_of_c_functions
from t2s.simulator.values.layout import (
    ALIGNMENT,
    FINISHED,
    Key,
    Section,
    ValueLayout,
    address_of,
    aligned_zeros,
    data_bytes,
    entry_bytes,
)
from t2s.simulator.values.machine_memory import MachineMemory
from t2s.simulator.values.sorted_memory import addresses as sorted_memory_functions

_GROWTH = 4
_FIRST_ELEMENTS = 1 << 12
_GROW = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_LARGEST_RING = 1 << 30
"""Bytes that the rings of one channel array may grow to."""

_LARGER_BY_SPANS = 8
"""How much larger rings of spans may be, whose entries and data take more space for a token."""


class RunState:
    """The memory that consecutive runs of a graph read and write.

    ``depths`` are the initial capacities of some channels' rings, powers of two.

    Attributes
    ----------
    arena: the block that ``layout`` describes; the code takes its address.
    memory: the tensors by name, open ones with their full capacity.  An input in row-major order is
        the caller's own array.
    machines: traces and sorted memories of the machines, by node.
    scalars: the parameters.
    total: firings so far.
    """

    def __init__(
        self, graph: Graph, layout: ValueLayout, depths: Mapping[str, int] | None = None
    ) -> None:
        self._known = weakref.ref(graph)
        self._layout = layout
        self._views: dict[int, Array] = {}
        self._rings: dict[Key, Array] = {}
        self.memory: dict[str, Array] = {}
        self.scalars: Mapping[str, Array] = {}
        self.total = 0
        self.machines: dict[str, MachineMemory] = {}
        self.arena = aligned_zeros(layout.bytes)
        self.words = self.arena.view(np.int64)
        layout.c_functions.view(self.arena)[...] = addresses_of_c_functions()
        self._grow = _growing(self)
        self.words[layout.grow.word] = ctypes.cast(self._grow, ctypes.c_void_p).value
        self._unfinished = [layout.unfinished(node.name).word for node in graph.nodes]
        self.words[self._unfinished] = [node.pe_count for node in graph.nodes]
        for node in graph.nodes:
            for register, start in start_values(node).items():
                self.set(layout.register(node.name, register), start)
            if isinstance(node, Machine):
                self.machines[node.name] = MachineMemory(node, layout, self.arena)
            elif node.exists is not None:
                states = self.get(layout.state(node.name))
                for place, point in enumerate(space_points(node)):
                    if not node.has_pe(point):
                        states[place, 0] = FINISHED
        if any(machine.memories for machine in graph.machines):
            self.set(layout.memory_functions, sorted_memory_functions())
        self._first_rings(depths or {})
        self._first = self.words.copy()

    @property
    def _graph(self) -> Graph:
        """The graph, held by a weak reference: the state must not keep it alive."""
        graph = self._known()
        if graph is None:
            raise InternalError("the memory of a graph that is gone was used")
        return graph

    def start(self, inputs: Mapping[str, Array], parameters: Mapping[str, Array]) -> None:
        """Begin a run as if it were the first one, but keep grown capacities.

        Raises ``UserError`` if an input or a parameter is invalid.
        """
        arrays, self.scalars = check_graph_inputs(self._graph, inputs, parameters)
        self.total, zeros = 0, self._emptied()
        self.words[:] = self._first
        for machine in self.machines.values():
            machine.start()
        self.memory = allocate(self._graph, arrays, zeros)
        for tensor in self._graph.tensors:
            self._place_tensor(tensor)
        for parameter in self._graph.parameters:
            value = self.scalars[parameter.name].tobytes()
            self.set(self._layout.parameter(parameter.name), np.frombuffer(value, np.uint8))

    def _emptied(self) -> dict[str, Array]:
        """The open tensors of the last run, zeroed."""
        tensors = {}
        for tensor in self._graph.tensors:
            if tensor.open and tensor.role is not TensorRole.INPUT and tensor.name in self.memory:
                stored = int(self.words[self._layout.extent(tensor.name).word])
                tensors[tensor.name] = self.memory[tensor.name]
                tensors[tensor.name][:stored] = 0
        return tensors

    def free(self) -> None:
        """Release the users' tensors after a run."""
        for tensor in self._graph.tensors:
            if not tensor.open or tensor.role is TensorRole.INPUT:
                del self.memory[tensor.name]

    @property
    def bytes(self) -> int:
        """Memory held between runs, except for short traces."""
        arrays = (self.arena, *self._rings.values(), *self.memory.values())
        machines = sum(machine.bytes for machine in self.machines.values())
        return machines + sum(int(array.nbytes) for array in arrays)

    def _first_rings(self, depths: Mapping[str, int]) -> None:
        """All rings, in one block."""
        layout, rings, end = self._layout, list[tuple[Section, int, int, int, int]](), 0
        for channel in self._graph.channels:
            depth = depths.get(channel.name, layout.depth)
            entry = entry_bytes(channel, layout.spans)
            wanted = [(layout.ring(channel.name), depth * entry, depth)]
            if layout.has_data(channel.name):
                bytes = depth * data_bytes(channel)
                wanted.append((layout.data(channel.name), bytes, bytes))
            rows = channel.element_count
            for section, row, capacity in wanted:
                rings.append((section, end, rows, row, capacity))
                end += -(-rows * row // ALIGNMENT) * ALIGNMENT
        block = aligned_zeros(end)
        address = address_of(block)
        for section, start, rows, row, capacity in rings:
            self._rings[section.key] = block[start : start + rows * row].reshape(rows, row)
            self.words[section.word : section.word + 2] = address + start, capacity

    def get(self, section: Section) -> Array:
        """A section of the arena, as an array that shares its memory."""
        view = self._views.get(id(section))
        if view is None:
            view = self._views[id(section)] = section.view(self.arena)
        return view

    def set(self, section: Section, value: Array) -> None:
        """Overwrite a section of the arena."""
        self.get(section)[...] = value

    @property
    def address(self) -> int:
        """Where the arena is."""
        return address_of(self.arena)

    def unfinished(self) -> list[str]:
        """Names of the nodes that have firings left."""
        left = self.words[self._unfinished].tolist()
        return [node.name for node, count in zip(self._graph.nodes, left, strict=True) if count]

    def grow(self) -> bool:
        """Enlarge full memories of machines, or else channels; return whether there were any.

        Channels also fill up while machines wait for memory, and then need not grow.
        """
        enlarged = [machine.grow() for machine in self.machines.values()]
        if any(enlarged):
            return True
        grown = False
        layout = self._layout
        for channel in self._graph.channels:
            name, most = channel.name, _LARGEST_RING
            rings = [(layout.ring(name), layout.ring_heads(name), layout.ring_tails(name), 1)]
            if layout.has_data(name):
                counters = layout.data_heads(name), layout.data_tails(name)
                rings.append((layout.data(name), *counters, channel.stream.element.bytes))
            if name in layout.spans.carried:
                most *= _LARGER_BY_SPANS
            for section, heads, tails, least in rings:
                grown |= self._grow_ring(section, self.get(heads), self.get(tails), least, most)
        return grown

    def _grow_ring(
        self, section: Section, heads: Array, tails: Array, least: int, most: int
    ) -> bool:
        """Enlarge the rings of a channel if one has no space for ``least``; return whether so."""
        capacity = int(self.get(section)[1])
        ring = self._rings[section.key]
        if (tails - heads <= capacity - least).all() or ring.nbytes * _GROWTH > most:
            return False
        self._install(section, _larger(ring, heads, capacity), capacity * _GROWTH)
        return True

    def recorded(self, channel: str, tokens: int) -> tuple[Array, Array]:
        """The tokens of every element of a channel without a receiver.

        Returns their bytes, a row for every element, and the number of tokens of each.
        """
        ring = self.ring(channel)
        capacity = int(self.get(self._layout.ring(channel))[1])
        row = ring.shape[1] // capacity * tokens
        rows = ring if row == ring.shape[1] else aligned_zeros(ring.shape[0] * row).reshape(-1, row)
        rows[:] = ring[:, :row]
        return rows, self.get(self._layout.tails(channel))

    def tensors(self) -> dict[str, Array]:
        """The tensors, open ones cut to their length."""
        layout = self._layout
        return {
            tensor.name: self.memory[tensor.name][: int(self.get(layout.extent(tensor.name))[0])]
            if tensor.open
            else self.memory[tensor.name]
            for tensor in self._graph.tensors
        }

    def _place_tensor(self, tensor: Tensor) -> None:
        """Write the address of a tensor to the arena."""
        memory = self.memory[tensor.name]
        self.words[self._layout.tensor(tensor.name).word] = address_of(memory)
        if tensor.open:
            word = self._layout.extent(tensor.name).word
            length = len(memory) if tensor.role is TensorRole.INPUT else 0
            self.words[word : word + 2] = length, len(memory)

    def enlarge_tensor(self, number: int, elements: int) -> None:
        """Enlarge an open tensor to a number of elements; called by generated code.

        Nothing changes if memory is exhausted.
        """
        name = self._graph.tensors[number].name
        old = self.memory[name]
        try:
            larger = np.zeros(max(elements, _GROWTH * len(old), _FIRST_ELEMENTS), old.dtype)
        except MemoryError:
            return
        larger[: len(old)] = old
        self.memory[name] = larger
        self.set(self._layout.tensor(name), address_of(larger))
        self.get(self._layout.extent(name))[1] = len(larger)

    def ring(self, channel: str) -> Array:
        """The bytes of the rings of a channel, a row for each element."""
        return self._rings[self._layout.ring(channel).key]

    def data(self, channel: str) -> Array:
        """The bytes of the data rings of an array channel, a row for each element."""
        return self._rings[self._layout.data(channel).key]

    def _install(self, section: Section, ring: Array, capacity: int) -> None:
        self._rings[section.key] = ring
        for words in self.words, self._first:
            words[section.word : section.word + 2] = address_of(ring), capacity


def _larger(ring: Array, heads: Array, capacity: int) -> Array:
    """A larger ring with the tokens of this one; ``heads`` are the first tokens of its rows.

    A token keeps its number, and its slot is that number modulo the capacity.  The rest of the new
    memory stays untouched, since most of it is for future tokens.
    """
    rows, row = ring.shape
    token = row // capacity
    larger = aligned_zeros(ring.nbytes * _GROWTH).reshape(rows, row * _GROWTH)
    turns, places = np.divmod(heads.reshape(-1).astype(np.int64), capacity)
    for turn, place in {*zip(turns.tolist(), places.tolist(), strict=True)}:
        alike = np.flatnonzero((turns == turn) & (places == place))
        which = slice(None) if len(alike) == rows else alike
        for part, lap in ((slice(place * token, row), turn), (slice(place * token), turn + 1)):
            begin = lap % _GROWTH * row
            target = slice(begin + part.indices(row)[0], begin + part.indices(row)[1])
            larger[which, target] = ring[which, part]
    return larger


def _growing(state: RunState) -> Any:
    """The callback of the code, which holds no strong reference to the state."""
    known = weakref.ref(state)

    def enlarge(_: int, number: int, elements: int) -> None:
        current = known()
        if current is not None:
            current.enlarge_tensor(number, elements)

    return _GROW(enlarge)


def start_values(node: Node) -> dict[str, Array]:
    """The initial bytes of a PE's register files that do not start at zero."""
    others = tuple(register for register in node.registers if repr(register.initial) != "0")
    if not others:
        return {}
    files = new_registers(replace(node, registers=others))
    return {name: start.reshape(-1).view(np.uint8) for name, start in files.items()}


def allocate(
    graph: Graph, inputs: Mapping[str, Array], zeros: Mapping[str, Array] | None = None
) -> dict[str, Array]:
    """The initial tensors: inputs, which no graph stores to, and zeros.

    ``zeros`` are arrays to reuse for some of these.
    """
    tensors = dict(zeros or {})
    for tensor in graph.tensors:
        if tensor.role is TensorRole.INPUT:
            tensors[tensor.name] = pack(tensor, np.asarray(inputs[tensor.array]))
        elif tensor.name not in tensors:
            tensors[tensor.name] = np.zeros(tensor.allocated, tensor.type.numpy)
    return tensors
