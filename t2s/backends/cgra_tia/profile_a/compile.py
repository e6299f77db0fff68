"""A design as a text for the public tools: programs for all PEs of an array, and its memory.

The input is a graph of PEs with static control on int32 and uint32.  The passes, in order:
``firings`` (what each PE does in each of its firings), ``control`` (the tags that select it),
``arrange`` (placement, ports and routes), ``firing_threads`` and ``threads`` (programs; the
threads that send addresses are below).  Arrangements are tried, and of those that have room for all
threads the fastest is taken.

What these arrays cannot do is refused with the user's line; docs/triggered.md lists it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from t2s.backends.base import refusal
from t2s.backends.cgra_tia.fabric import PUBLIC_CORE, ArrayWires, array_wires
from t2s.backends.cgra_tia.lower.not_lowered import NotLowered, refuse
from t2s.backends.cgra_tia.lower.process import TokenStream
from t2s.backends.cgra_tia.lower.schedule import PointCache, nest_of
from t2s.backends.cgra_tia.profile_a.arrange import Arranger, PublicArrangement
from t2s.backends.cgra_tia.profile_a.control import END, ControlledDesign, controlled
from t2s.backends.cgra_tia.profile_a.firing_threads import firing_thread
from t2s.backends.cgra_tia.profile_a.firings import FiringReader, MemoryAccess, WordProcess
from t2s.backends.cgra_tia.profile_a.threads import (
    WORD_MASK,
    AddressWire,
    NoRoom,
    PublicThread,
    StepOperand,
    StepTarget,
    ThreadRegister,
    ThreadStep,
    ToTest,
    ToWires,
    Wire,
    check_room,
    moving_thread,
    program_of_threads,
)
from t2s.backends.cgra_tia.program import CellProgram, Immediate, Opcode
from t2s.backends.cgra_tia.text.printer import print_programs
from t2s.core.location import SourceLocation
from t2s.core.names import one_line
from t2s.core.ops import Array
from t2s.graph.arrays import outputs_of, pack
from t2s.graph.body import Load, Store
from t2s.graph.graph import Graph, Tensor, TensorRole
from t2s.graph.nodes import PEArray
from t2s.graph.semantics import pe_points

BLOCK = (4, 4)
"""The shape of which the public tools have a system with one write port only."""


@dataclass(frozen=True, kw_only=True)
class PublicDesign:
    """Programs for the PEs of an array (``None``: one PE alone), with their comments.

    Tensors lie in the memory row by row, each from its word in ``starts`` on.
    """

    graph: Graph
    programs: tuple[CellProgram, ...]
    shape: tuple[int, int] | None
    starts: Mapping[str, int]

    @property
    def where(self) -> str:
        """What it runs on."""
        return "one PE" if self.shape is None else f"{self.shape[0]} x {self.shape[1]} PEs"

    @property
    def text(self) -> str:
        """The text, with the user's lines as comments."""
        starts = ", ".join(f"{name} from {at}" for name, at in self.starts.items())
        header = (f"{one_line(self.graph.name)} on {self.where}", f"memory: {starts}")
        return print_programs(self.programs, PUBLIC_CORE, header)

    def memory(self, arrays: Mapping[str, Array]) -> Array:
        """The memory before a run: the words of the user's arrays (uint32), and zeros."""
        memory = np.zeros(max(sum(map(_size, self.graph.tensors)), 1), np.uint32)
        for tensor in self.graph.tensors:
            if tensor.role is TensorRole.INPUT:
                packed = np.asarray(pack(tensor, arrays[tensor.array])).reshape(-1)
                start = self.starts[tensor.name]
                memory[start : start + packed.size] = packed.astype(np.int64) & WORD_MASK
        return memory

    def outputs(self, memory: Array) -> dict[str, Array]:
        """The outputs of the design, by the user's names, in the memory after a run."""
        stored = {}
        for tensor in self.graph.tensors:
            start, size = self.starts[tensor.name], _size(tensor)
            words = np.array(memory[start : start + size], np.uint32)
            stored[tensor.name] = words.view(tensor.type.numpy).reshape(tensor.allocated)
        return outputs_of(self.graph, stored)


def compile_public(graph: Graph, shape: tuple[int, int] | None, *, seed: int = 0) -> PublicDesign:
    """The programs of a design; raises ``UnsupportedError`` if it has none."""
    try:
        return _compiled(graph, shape, seed)
    except NotLowered as refused:
        raise refusal("cgra_tia (profile A)", graph, [refused.problem]) from None


def _compiled(graph: Graph, shape: tuple[int, int] | None, seed: int) -> PublicDesign:
    processes, accesses = _read(graph)
    starts = _starts(graph)
    for stream, access in accesses.items():
        accesses[stream] = replace(access, addresses=access.addresses + starts[access.tensor])
    wires = _wires(shape)
    design = controlled(processes, accesses, len(wires.reads))
    _check_counts(graph, design, wires, shape)
    tight: NoRoom | None = None
    best: tuple[tuple[int, int], tuple[CellProgram, ...]] | None = None
    for arrangement in Arranger(design, wires, shape, seed).arrangements():
        assembler = _Assembler(design, wires, arrangement)
        try:
            programs = assembler.programs()
        except NoRoom as full:
            tight = full if tight is None or full.needed < tight.needed else tight
            continue
        if best is None or assembler.work < best[0]:
            best = (assembler.work, programs)
    if best is not None:
        return PublicDesign(graph=graph, programs=best[1], shape=shape, starts=starts)
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
            why = "its control depends on data, and only PEs with static control are supported here"
            refuse(f"node {node.name!r}", why, node.location)
        cache = PointCache()
        for point in pe_points(node):
            nest = nest_of(node, point, cache)
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


def _starts(graph: Graph) -> dict[str, int]:
    """The first word of each tensor: tensors are adjacent, inputs first."""
    starts: dict[str, int] = {}
    words = 0
    for role in (TensorRole.INPUT, TensorRole.OUTPUT, TensorRole.INTERMEDIATE):
        for tensor in graph.tensors:
            if tensor.role is role:
                starts[tensor.name] = words
                words += _size(tensor)
    return starts


def _wires(shape: tuple[int, int] | None) -> ArrayWires:
    wires = array_wires(shape)
    if shape != BLOCK:
        return wires
    return replace(wires, writes=wires.writes[:1])


def _check_counts(
    graph: Graph, design: ControlledDesign, wires: ArrayWires, shape: tuple[int, int] | None
) -> None:
    where = "one PE alone" if shape is None else f"an array of {shape[0]} x {shape[1]} PEs"
    count = 1 if shape is None else shape[0] * shape[1]
    for what, accesses, most, hint in (
        ("streams of loads", design.loads, len(wires.reads), _FEWER_LOADS),
        ("streams of stores", design.stores, len(wires.writes), _FEWER_STORES),
    ):
        if len(accesses) > most:
            access = next(iter(accesses.values()))
            names = ", ".join(dict.fromkeys(each.tensor for each in accesses.values()))
            why = (
                f"the design has {len(accesses)} {what} ({names}), and {where} has "
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
        for stream in self._arrangement.routes:
            self._lay(stream)
        for number, process in enumerate(self._design.processes):
            element = self._arrangement.places[number]
            comment = comment_of(process.process.name, process.process.location)
            self._workers[element].append(firing_thread(process, frozenset(self._ends), comment))
            self._labels[element].append(process.process.name)
        self._add_ports()
        return tuple(self._program(element) for element in range(len(self._inputs)))

    def _lay(self, stream: TokenStream) -> None:
        """Lay wires and movers along the route of a stream."""
        route = self._arrangement.routes[stream]
        ends = self._design.streams[stream]
        tags = self._design.tags_of(stream)
        last = len(route.entries) - 1
        to_port = ends.sink is None
        if ends.source is not None and not (to_port and last == 0):
            self._ends.add(stream)
        for at, ((element, entry), leaves) in enumerate(
            zip(route.entries, route.exits, strict=True)
        ):
            if entry is not None:
                self._inputs[element][stream] = entry
            if leaves is not None:
                self._outputs[element][stream] = leaves
            if entry is not None and leaves is not None:
                comment = f"{stream} goes by"
                self._movers[element].append(
                    moving_thread(
                        stream,
                        tags,
                        tokens=ends.tokens,
                        hands_on_end=not (to_port and at == last),
                        comment=comment,
                    )
                )

    def _add_ports(self) -> None:
        """Add the address streams of all ports."""
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
                comment = comment_of(
                    f"addresses of {access.tensor} for {access.node}", access.location
                )
                self._sources[element].append((wire, items, loads, comment))

    def _program(self, element: int) -> CellProgram:
        others = [*self._movers[element], *self._workers[element]]
        threads = self._with_sources(others, self._sources[element])
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
    ) -> list[PublicThread]:
        """Add the threads that send addresses, unrolled as far as there is room."""
        if not sources:
            check_room(threads)
            return list(threads)
        wire, items, loads, comment = sources[0]
        tightest: NoRoom | None = None
        for nest in unrolled_nests(items):
            thread = address_thread(wire, nest, sends_end=loads, comment=comment)
            try:
                return self._with_sources([*threads, thread], sources[1:])
            except NoRoom as full:
                if tightest is None or full.needed < tightest.needed:
                    tightest = full
        assert tightest is not None
        raise tightest


def comment_of(what: str, location: SourceLocation | None) -> str:
    """A comment: what an instruction is for, and the user's line."""
    if location is None:
        return one_line(what)
    file = location.file.replace("\\", "/").rpartition("/")[2]
    return one_line(f"{what}, {file}:{location.line}: {location.source_line}".rstrip(": "))


# Threads that send the addresses of a stream to a port: loop nests as instructions.
#
# An address is the register of its lane plus an immediate, so it takes one instruction.  A loop
# takes two or three more for each iteration: advance the registers, count, test.  It needs no
# counter if a register always ends with the same value.  Innermost loops are unrolled as far as
# there is room.


def unrolled_nests(items: Sequence[AddressItem]) -> Iterator[tuple[AddressItem, ...]]:
    """A nest with its innermost loops unrolled less and less."""
    yield from (
        tuple(part for item in items for part in _unrolled(item, most))
        for most in (12, 10, 8, 6, 5, 4, 3, 2, 1)
    )


def _unrolled(item: AddressItem, most: int) -> tuple[AddressItem, ...]:
    """An item with innermost loops unrolled to at most ``most`` addresses in their bodies."""
    if isinstance(item, TaggedAddress):
        return (item,)
    inner = tuple(part for inner_item in item.items for part in _unrolled(inner_item, most))
    if any(isinstance(part, AddressLoop) for part in inner):
        return (replace(item, items=inner),)
    times = max(
        (n for n in range(1, item.count + 1) if item.count % n == 0 and n * len(inner) <= most),
        default=1,
    )
    body = tuple(moved(part, item.shifts, time) for time in range(times) for part in inner)
    if times == item.count:
        return body
    shifts = tuple(shift * times for shift in item.shifts)
    return (AddressLoop(item.count // times, shifts, body),)


def address_thread(
    wire: AddressWire, items: Sequence[AddressItem], *, sends_end: bool, comment: str
) -> PublicThread:
    """The thread that sends the addresses of a nest, and then the end of the stream."""
    writer = _AddressWriter(wire, comment, moving=_moving(items))
    writer.items(items, known=writer.moving)
    return writer.thread(sends_end=sends_end)


def _moving(items: Sequence[AddressItem]) -> frozenset[int]:
    """The lanes that some loop moves; all other addresses are constants."""
    lanes: set[int] = set()
    for item in items:
        if isinstance(item, AddressLoop):
            lanes |= {lane for lane, shift in enumerate(item.shifts) if shift}
            lanes |= _moving(item.items)
    return frozenset(lanes)


def _base(lane: int) -> ThreadRegister:
    return ThreadRegister(f"address {lane}")


@dataclass
class _AddressWriter:
    """Writes the steps of a thread in sequence.

    ``_drift`` is how far the register of each lane has advanced beyond the base that the addresses
    of the nest refer to; ``_test`` is the test bit that the next step needs.
    """

    wire: AddressWire
    comment: str
    moving: frozenset[int]
    steps: list[ThreadStep] = field(default_factory=list)
    slots: dict[ThreadRegister, int] = field(default_factory=dict)
    _state: int = 0
    _states: int = 1
    _test: bool | None = None
    _drift: dict[int, int] = field(default_factory=dict)
    _times: int = 1
    _firings: int = 0

    def items(self, items: Sequence[AddressItem], *, known: frozenset[int]) -> None:
        """Write items; no loop around them moves the registers of the lanes in ``known``."""
        for item in items:
            match item:
                case TaggedAddress():
                    self._send(item)
                case AddressLoop():
                    self._loop(item, known)

    def thread(self, *, sends_end: bool) -> PublicThread:
        """The thread with its last step: the end of the stream, or nothing."""
        if sends_end:
            self._add(Opcode.MOV, ToWires((self.wire,), END), (Immediate(0),), ", its end")
        elif self._test is not None:
            self._add(Opcode.NOP, None, ())
        return PublicThread(
            name=f"addresses of {self.wire.stream}",
            steps=tuple(self.steps),
            done=self._state,
            firings=self._firings,
            slots=self.slots,
        )

    def _add(
        self, opcode: Opcode, target: StepTarget, operands: tuple[StepOperand, ...], more: str = ""
    ) -> None:
        self.steps.append(
            ThreadStep(
                state=self._state,
                next=self._states,
                opcode=opcode,
                target=target,
                operands=operands,
                test=self._test,
                comment=f"{self.comment}{more}",
            )
        )
        self._firings += self._times
        self._state, self._test = self._states, None
        self._states += 1

    def _send(self, item: TaggedAddress) -> None:
        target = ToWires((self.wire,), item.tag)
        base = _base(item.lane)
        offset = Immediate(item.address - self._drift.get(item.lane, 0) & WORD_MASK)
        if base not in self.slots:
            self._add(Opcode.MOV, target, (offset,))
        elif offset.pattern == 0:
            self._add(Opcode.MOV, target, (base,))
        else:
            self._add(Opcode.ADD, target, (base, offset))

    def _loop(self, loop: AddressLoop, known: frozenset[int]) -> None:
        drift = {lane: self._drift.get(lane, 0) for lane in self.moving}
        ends = next((lane for lane in sorted(known) if loop.shifts[lane]), None)
        once = self._times == 1
        counter = None
        if ends is None:
            counter = ThreadRegister(
                ("counter", sum(isinstance(slot.use, tuple) for slot in self.slots))
            )
            self.slots[counter] = loop.count if once else 0
        for lane in sorted(self.moving):
            self.slots.setdefault(_base(lane), 0)
        if counter is not None and not once:
            self._add(Opcode.MOV, counter, (Immediate(loop.count),), ", times to go round")
        if self._test is not None:
            self._add(Opcode.NOP, None, ())
        head, self._test = self._state, False
        self._times *= loop.count
        still = frozenset(lane for lane in known if not loop.shifts[lane])
        self.items(loop.items, known=still)
        for lane in sorted(self.moving):
            step = loop.shifts[lane] + drift[lane] - self._drift.get(lane, 0)
            if step:
                base = _base(lane)
                self._add(Opcode.ADD, base, (base, Immediate(step & WORD_MASK)), ", further on")
        if counter is None:
            assert ends is not None
            last = drift[ends] + loop.count * loop.shifts[ends]
            operands: tuple[StepOperand, ...] = (_base(ends), Immediate(last & WORD_MASK))
        else:
            self._add(Opcode.SUB, counter, (counter, Immediate(1)), ", times to go round")
            operands = (counter, Immediate(0))
        self._add(Opcode.EQ, ToTest(), operands, ", whether that was the last time")
        self.steps[-1] = replace(self.steps[-1], next=head)
        self._times //= loop.count
        self._states -= 1
        self._state, self._test = head, True
        for lane in self.moving:
            self._drift[lane] = drift[lane] + loop.count * loop.shifts[lane]


# Rolling sequences of tagged addresses into loop nests, for PEs that run them.
#
# The input are the accesses of a stream, one by one.  The output is a list of items: addresses, and
# loops over items whose addresses move by a constant shift in each iteration.  Where several
# streams share a port, each of them is a *lane* with its own shift.  All repetitions with constant
# shifts are found, however they are nested and wherever tags change; an irregular sequence becomes
# a list of its addresses.

LONGEST_BODY = 64
"""Most items that are looked at as one body of a loop."""


Shifts = tuple[int, ...]
"""By lane."""


@dataclass(frozen=True, slots=True)
class TaggedAddress:
    """An address that is sent with a tag."""

    address: int
    tag: int
    lane: int = 0


@dataclass(frozen=True, slots=True)
class AddressLoop:
    """``count`` iterations of the items; the addresses of a lane grow by its shift in each."""

    count: int
    shifts: Shifts
    items: tuple[AddressItem, ...]


AddressItem = TaggedAddress | AddressLoop


def rolled(
    addresses: Array, tags: Array | None, lanes: Array | None = None
) -> tuple[AddressItem, ...]:
    """The shortest nest found for addresses with tags and lanes (``None``: all are 0)."""
    none = np.zeros(len(addresses), np.int64)
    tags, lanes = none if tags is None else tags, none if lanes is None else lanes
    count = int(lanes.max()) + 1 if len(lanes) else 1
    items = _runs(addresses, tags, lanes, count)
    length = 1
    while length <= min(LONGEST_BODY, len(items) // 2):
        shorter = _folded(items, length, count)
        if len(shorter) < len(items):
            items, length = shorter, 1
        else:
            length += 1
    return tuple(items)


def unrolled(items: Sequence[AddressItem]) -> Iterator[TaggedAddress]:
    """The addresses of a nest in order."""
    for item in items:
        match item:
            case TaggedAddress():
                yield item
            case AddressLoop():
                for time in range(item.count):
                    for address in unrolled(item.items):
                        moves = item.shifts[address.lane] * time
                        yield replace(address, address=address.address + moves)


def moved(item: AddressItem, shifts: Shifts, times: int) -> AddressItem:
    """An item with all addresses moved by ``times`` times the shifts."""
    match item:
        case TaggedAddress(address=address, lane=lane):
            return replace(item, address=address + shifts[lane] * times)
        case AddressLoop():
            return replace(item, items=tuple(moved(inner, shifts, times) for inner in item.items))


def _firsts(items: Sequence[AddressItem], firsts: dict[int, int]) -> dict[int, int]:
    """The first address of each lane."""
    for item in items:
        if isinstance(item, AddressLoop):
            _firsts(item.items, firsts)
        else:
            firsts.setdefault(item.lane, item.address)
    return firsts


def _runs(addresses: Array, tags: Array, lanes: Array, count: int) -> list[AddressItem]:
    """Runs of three or more addresses of a lane, with one stride and one tag, as loops."""
    steps = np.diff(addresses)
    same = (np.diff(tags) == 0) & (np.diff(lanes) == 0)
    items: list[AddressItem] = []
    at, total = 0, len(addresses)
    # the ends of runs: every change of stride, tag or lane
    breaks = np.flatnonzero((np.diff(steps) != 0) | ~same[1:] | ~same[:-1]) + 1
    while at < total:
        number = int(np.searchsorted(breaks, at + 1))
        last = int(breaks[number]) if number < len(breaks) else total - 1
        lane = int(lanes[at])
        start = TaggedAddress(int(addresses[at]), int(tags[at]), lane)
        if last - at >= 2 and same[at]:
            shifts = tuple(int(steps[at]) if other == lane else 0 for other in range(count))
            items.append(AddressLoop(last - at + 1, shifts, (start,)))
            at = last + 1
        else:
            items.append(start)
            at += 1
    return items


def _folded(items: list[AddressItem], length: int, lanes: int) -> list[AddressItem]:
    """The items with repetitions of ``length`` items rolled into loops."""
    folded: list[AddressItem] = []
    at = 0
    least = 3 if length == 1 else 2
    while at < len(items):
        count, shifts = _repeats(items, at, length, lanes)
        if count >= least or (count == 2 and isinstance(items[at], AddressLoop)):
            folded.append(AddressLoop(count, shifts, tuple(items[at : at + length])))
            at += count * length
        else:
            folded.append(items[at])
            at += 1
    return folded


def _repeats(items: list[AddressItem], at: int, length: int, lanes: int) -> tuple[int, Shifts]:
    """How often the ``length`` items from ``at`` on repeat, and their shifts."""
    none = (0,) * lanes
    if at + 2 * length > len(items):
        return 1, none
    first = _firsts(items[at : at + length], {})
    second = _firsts(items[at + length : at + 2 * length], {})
    if first.keys() != second.keys():
        return 1, none
    shifts = tuple(second.get(lane, 0) - first.get(lane, 0) for lane in range(lanes))
    count = 1
    while at + (count + 1) * length <= len(items):
        current, following = at + (count - 1) * length, at + count * length
        if any(
            not _is_moved(items[current + place], items[following + place], shifts)
            for place in range(length)
        ):
            break
        count += 1
    return count, shifts


def _is_moved(first: AddressItem, second: AddressItem, shifts: Shifts) -> bool:
    match first, second:
        case TaggedAddress(), TaggedAddress():
            moves = second.address - first.address
            return (first.tag, first.lane, shifts[first.lane]) == (second.tag, second.lane, moves)
        case AddressLoop(), AddressLoop():
            return (first.count, first.shifts, len(first.items)) == (
                second.count,
                second.shifts,
                len(second.items),
            ) and all(
                _is_moved(a, b, shifts) for a, b in zip(first.items, second.items, strict=True)
            )
    return False
