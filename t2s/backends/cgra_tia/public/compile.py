"""A design as a text for the public tools: programs for all PEs of an array, and its memory.

In goes a graph of PEs with static control on int32 and uint32.  Its passes, in their order:
``firings`` (what each PE does in each of its firings), ``control`` (which tags tell it so),
``arrange`` (places, ports and ways), ``firing_threads``, ``address_threads`` and ``threads``
(programs).  Arrangements are tried until one has room for all of its threads.

Refused is what has no form there, with the user's line (docs/triggered.md lists it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from t2s.backends.base import refusal
from t2s.backends.cgra_tia.fabric import PUBLIC_CORE
from t2s.backends.cgra_tia.lift.element_graph import ArrayWires, array_wires
from t2s.backends.cgra_tia.lower.not_lowered import NotLowered, refuse
from t2s.backends.cgra_tia.lower.process import TokenStream
from t2s.backends.cgra_tia.lower.schedule import PointCache, nest_of
from t2s.backends.cgra_tia.program import CellProgram
from t2s.backends.cgra_tia.public.address_threads import address_thread, unrolled_nests
from t2s.backends.cgra_tia.public.arrange import Arranger, PublicArrangement
from t2s.backends.cgra_tia.public.control import ControlledDesign, controlled
from t2s.backends.cgra_tia.public.firing_threads import firing_thread
from t2s.backends.cgra_tia.public.firings import FiringReader, MemoryAccess, WordProcess
from t2s.backends.cgra_tia.public.rolled import AddressItem, rolled
from t2s.backends.cgra_tia.public.threads import (
    AddressWire,
    NoRoom,
    PublicThread,
    Wire,
    check_room,
    moving_thread,
    program_of_threads,
)
from t2s.backends.cgra_tia.text.printer import print_programs
from t2s.core.location import SourceLocation
from t2s.core.names import one_line
from t2s.core.ops import Array
from t2s.graph.body import Load, Store
from t2s.graph.graph import Graph, Tensor, TensorRole
from t2s.graph.layout import outputs_of, pack
from t2s.graph.nodes import PEArray
from t2s.graph.semantics import space_points

BLOCK = (4, 4)
"""The shape of which the public tools have a system with one write port only."""


@dataclass(frozen=True, kw_only=True)
class MemoryMap:
    """Where each tensor of a design starts in the memory, inputs first; ``words`` in all."""

    graph: Graph
    starts: Mapping[str, int]
    words: int

    def filled(self, arrays: Mapping[str, Array]) -> Array:
        """The memory at the start, with the user's arrays (uint32); the rest is 0."""
        memory = np.zeros(self.words, np.uint32)
        for tensor in self.graph.tensors:
            if tensor.role is TensorRole.INPUT:
                packed = np.asarray(pack(tensor, arrays[tensor.array])).reshape(-1)
                start = self.starts[tensor.name]
                memory[start : start + packed.size] = packed.astype(np.int64) & 0xFFFFFFFF
        return memory

    def outputs(self, memory: Array) -> dict[str, Array]:
        """The outputs of the design, by the user's names, in a memory at the end."""
        stored = {}
        for tensor in self.graph.tensors:
            start, size = self.starts[tensor.name], _size(tensor)
            words = np.array(memory[start : start + size], np.uint32)
            stored[tensor.name] = words.view(tensor.type.numpy).reshape(tensor.allocated)
        return outputs_of(self.graph, stored)


@dataclass(frozen=True, kw_only=True)
class PublicDesign:
    """Programs for the PEs of an array (``None``: one PE alone), with their comments."""

    name: str
    programs: tuple[CellProgram, ...]
    shape: tuple[int, int] | None
    memory: MemoryMap
    arrangement: PublicArrangement

    @property
    def where(self) -> str:
        """What it runs on."""
        return "one PE" if self.shape is None else f"{self.shape[0]} x {self.shape[1]} PEs"

    @property
    def text(self) -> str:
        """The text, with the user's lines as comments."""
        starts = ", ".join(f"{name} from {at}" for name, at in self.memory.starts.items())
        header = (f"{one_line(self.name)} on {self.where}", f"memory: {starts}")
        return print_programs(self.programs, PUBLIC_CORE, header)


def compile_public(graph: Graph, shape: tuple[int, int] | None, *, seed: int = 0) -> PublicDesign:
    """The programs of a design; raises ``UnsupportedError`` for what has none."""
    try:
        return _compiled(graph, shape, seed)
    except NotLowered as refused:
        raise refusal("cgra_tia (profile A)", graph, [refused.problem]) from None


def _compiled(graph: Graph, shape: tuple[int, int] | None, seed: int) -> PublicDesign:
    processes, accesses = _read(graph)
    memory = _memory_map(graph)
    for stream, access in accesses.items():
        start = memory.starts[access.tensor]
        accesses[stream] = MemoryAccess(
            tensor=access.tensor,
            addresses=access.addresses + start,
            loads=access.loads,
            node=access.node,
            location=access.location,
        )
    wires = _wires(shape)
    design = controlled(processes, accesses, len(wires.reads))
    _check_counts(graph, design, wires, shape)
    tight: NoRoom | None = None
    best: tuple[tuple[int, int], PublicArrangement, tuple[CellProgram, ...]] | None = None
    for arrangement in Arranger(design, wires, shape, seed).arrangements():
        assembler = _Assembler(design, wires, arrangement)
        try:
            programs = assembler.programs()
        except NoRoom as full:
            tight = full if tight is None or full.needed < tight.needed else tight
            continue
        if best is None or assembler.work < best[0]:
            best = (assembler.work, arrangement, programs)
    if best is not None:
        return PublicDesign(
            name=graph.name,
            programs=best[2],
            shape=shape,
            memory=memory,
            arrangement=best[1],
        )
    if tight is None:
        why = (
            "no arrangement has a wire for each of its "
            f"{len(design.streams)} streams: take a larger array, or forward operands"
        )
    else:
        why = (
            f"in every arrangement that was tried a PE would need {tight}: take a larger array, "
            "fewer PEs or kinds of firings, or loops whose bounds divide"
        )
    refuse(f"the design {graph.name!r}", why, graph.location)


def _read(graph: Graph) -> tuple[list[WordProcess], dict[TokenStream, MemoryAccess]]:
    accesses: dict[TokenStream, MemoryAccess] = {}
    processes: list[WordProcess] = []
    _check_memory(graph)
    for node in graph.nodes:
        if not isinstance(node, PEArray):
            why = "its control depends on data, and only PEs with static control have a form here"
            refuse(f"node {node.name!r}", why, node.location)
        cache = PointCache()
        for point in space_points(node):
            nest = nest_of(node, point, cache) if node.has_pe(point) else None
            if nest is not None:
                process = FiringReader(graph, node, point, nest, accesses).process()
                if len(process.sequence):
                    processes.append(process)
    return processes, accesses


def _check_memory(graph: Graph) -> None:
    stored = {s.tensor for node in graph.pe_arrays for s in node.body if isinstance(s, Store)}
    for node in graph.pe_arrays:
        for statement in node.body:
            if isinstance(statement, Load) and statement.tensor in stored:
                refuse(
                    f"node {node.name!r}",
                    f"it loads {statement.tensor!r}, which the design stores, and ports do not "
                    "wait for one another: take the values through a channel (stream)",
                    node.location,
                )


def _size(tensor: Tensor) -> int:
    return int(np.prod(tensor.allocated, dtype=np.int64))


def _memory_map(graph: Graph) -> MemoryMap:
    """Tensors one behind the other, inputs first; each has a word at least."""
    starts: dict[str, int] = {}
    words = 0
    for role in (TensorRole.INPUT, TensorRole.OUTPUT, TensorRole.INTERMEDIATE):
        for tensor in graph.tensors:
            if tensor.role is role:
                starts[tensor.name] = words
                words += _size(tensor)
    return MemoryMap(graph=graph, starts=starts, words=max(words, 1))


def _wires(shape: tuple[int, int] | None) -> ArrayWires:
    wires = array_wires(shape)
    if shape != BLOCK:
        return wires
    return ArrayWires(links=wires.links, reads=wires.reads, writes=wires.writes[:1])


def _check_counts(
    graph: Graph, design: ControlledDesign, wires: ArrayWires, shape: tuple[int, int] | None
) -> None:
    where = "one PE alone" if shape is None else f"an array of {shape[0]} x {shape[1]} PEs"
    count = 1 if shape is None else shape[0] * shape[1]
    for what, found, most, hint in (
        ("streams of loads", design.loads, len(wires.reads), _FEWER_LOADS),
        ("streams of stores", design.stores, len(wires.writes), _FEWER_STORES),
    ):
        if len(found) > most:
            access = next(iter(found.values()))
            names = ", ".join(dict.fromkeys(one.tensor for one in found.values()))
            why = (
                f"the design has {len(found)} {what} ({names}), and {where} has "
                f"{most} such port{'' if most == 1 else 's'}: {hint}"
            )
            refuse(f"node {access.node!r}", why, access.location)
    if len(design.processes) > 4 * count:
        why = f"it has {len(design.processes)} PEs, and {where} has room for few: unroll less"
        refuse(f"the design {graph.name!r}", why, graph.location)


_FEWER_LOADS = (
    "load in fewer PEs and hand operands on (isolate_producer_chain and forward), or take more "
    "columns"
)
_FEWER_STORES = "let PEs hand on their results (isolate_consumer_chain and gather)"


class _Assembler:
    """Threads of each PE of an arrangement, and their programs."""

    def __init__(
        self, design: ControlledDesign, wires: ArrayWires, arrangement: PublicArrangement
    ) -> None:
        self._design = design
        self._wires = wires
        self._arrangement = arrangement
        count = 1 + max((element for element, _ in (*wires.links, *wires.reads)), default=0)
        self._inputs: list[dict[TokenStream, int]] = [{} for _ in range(count)]
        self._outputs: list[dict[Wire, int]] = [{} for _ in range(count)]
        self._movers: list[list[PublicThread]] = [[] for _ in range(count)]
        self._workers: list[list[PublicThread]] = [[] for _ in range(count)]
        self._sources: list[list[tuple[AddressWire, tuple[AddressItem, ...], bool, str]]]
        self._sources = [[] for _ in range(count)]
        self._labels: list[list[str]] = [[] for _ in range(count)]
        self._ends: set[TokenStream] = set()
        self.work = (0, 0)
        """The most firings of a PE, and those of all of them."""

    def programs(self) -> tuple[CellProgram, ...]:
        """A program for each PE; raises ``NoRoom``."""
        for stream in self._arrangement.ways:
            self._lay(stream)
        for number, one in enumerate(self._design.processes):
            element = self._arrangement.places[number]
            said = said_of(one.process.name, one.process.location)
            self._workers[element].append(firing_thread(one, frozenset(self._ends), said))
            self._labels[element].append(one.process.name)
        self._add_ports()
        return tuple(self._program(element) for element in range(len(self._inputs)))

    def _lay(self, stream: TokenStream) -> None:
        """Wires and movers along the way of a stream."""
        way = self._arrangement.ways[stream]
        ends = self._design.streams[stream]
        tags = self._design.tags_of(stream)
        last = len(way.entries) - 1
        to_port = ends.sink is None
        if ends.source is not None and not (to_port and last == 0):
            self._ends.add(stream)
        for at, ((element, entry), leaves) in enumerate(zip(way.entries, way.exits, strict=True)):
            if entry is not None:
                self._inputs[element][stream] = entry
            if leaves is not None:
                self._outputs[element][stream] = leaves
            if entry is not None and leaves is not None:
                said = f"{stream} goes by"
                self._movers[element].append(
                    moving_thread(
                        stream,
                        tags,
                        tokens=ends.tokens,
                        hands_on_end=not (to_port and at == last),
                        said=said,
                    )
                )

    def _add_ports(self) -> None:
        """The addresses for all ports."""
        for accesses, ports, loads in (
            (self._design.loads, self._arrangement.reads, True),
            (self._design.stores, self._arrangement.writes, False),
        ):
            for stream, port in ports.items():
                access = accesses[stream]
                element, side = self._wires.reads[port] if loads else self._wires.writes[port][0]
                wire = AddressWire(stream)
                self._outputs[element][wire] = side
                needed = self._design.needs.get(stream) if loads else None
                items = rolled(access.addresses, needed, access.lanes)
                said = said_of(f"addresses of {access.tensor} for {access.node}", access.location)
                self._sources[element].append((wire, items, loads, said))

    def _program(self, element: int) -> CellProgram:
        others = [*self._movers[element], *self._workers[element]]
        threads = next(self._with_sources(others, self._sources[element]))
        firings = sum(thread.firings for thread in threads)
        self.work = (max(self.work[0], firings), self.work[1] + firings)
        label = f"pe_{element}"
        if self._labels[element]:
            label += " " + " ".join(self._labels[element])
        return program_of_threads(
            one_line(label), threads, self._inputs[element], self._outputs[element]
        )

    def _with_sources(
        self,
        threads: Sequence[PublicThread],
        sources: Sequence[tuple[AddressWire, tuple[AddressItem, ...], bool, str]],
    ) -> Iterator[list[PublicThread]]:
        """The threads with those of addresses, unrolled as far as there is room."""
        if not sources:
            check_room(threads)
            yield list(threads)
            return
        wire, items, loads, said = sources[0]
        full: NoRoom | None = None
        for nest in unrolled_nests(items):
            thread = address_thread(wire, nest, sends_end=loads, said=said)
            try:
                yield from self._with_sources([*threads, thread], sources[1:])
                return
            except NoRoom as found:
                full = found if full is None or found.needed < full.needed else full
        assert full is not None
        raise full


def said_of(what: str, location: SourceLocation | None) -> str:
    """What an instruction is for, and the user's line."""
    if location is None:
        return one_line(what)
    file = location.file.replace("\\", "/").rpartition("/")[2]
    return one_line(f"{what}, {file}:{location.line}: {location.source_line}".rstrip(": "))
