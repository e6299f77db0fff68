"""Register files as streams: written values travel to where they are read.

Each live read of a register file gets what the last write of its element wrote.  If the values are
read in the order of the writes, each once, the file is a channel from the PE to itself (a *ring*).
If blocks of them are read several times over, a separate cell sends them repeatedly (a *virtual
buffer*).  In any other order they wait in the scratchpad of a cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from t2s.backends.cgra_tia import program as isa
from t2s.backends.cgra_tia.fabric import EXTENDED_CORE
from t2s.backends.cgra_tia.lower.not_lowered import refuse
from t2s.backends.cgra_tia.lower.process import (
    CellProcess,
    ClassStep,
    FileAccess,
    StreamFacts,
    StreamTable,
    TokenStream,
)
from t2s.backends.cgra_tia.lower.schedule import LoopNest, coded, enumerated
from t2s.backends.cgra_tia.lower.unit_nests import SequenceNest, tag_nest
from t2s.backends.cgra_tia.lower.values import Value
from t2s.backends.cgra_tia.netlist import Provenance
from t2s.core.expr import Expr
from t2s.core.ops import Array
from t2s.graph.control.iterations import by_appearance
from t2s.graph.nodes import PEArray


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A virtual buffer: sends each block of ``tokens`` from source to sink ``passes`` times.

    With a ``shuffle`` it is a cell that sends all tokens in another order.
    """

    name: str
    source: TokenStream
    sink: TokenStream
    tokens: int
    passes: int
    blocks: int
    origin: Provenance
    shuffle: Shuffle | None = None


def settle_registers(process: CellProcess, streams: StreamTable) -> list[Replay]:
    """Turn the register files of a process into streams; returns the buffers that they need."""
    if not process.writes:
        return []
    node = streams.graph.node(process.origin.node)
    assert isinstance(node, PEArray)
    shapes = {register.name: register.shape for register in node.registers}
    live = set(range(len(process.writes)))
    while True:
        needs = [_needed(process, step, live) for step in process.steps]
        flows = {name: _flow(process, name, shape, needs, live) for name, shape in shapes.items()}
        useful = {n for flow in flows.values() for n, used in flow.used.items() if used.any()}
        if useful == live:
            break
        live = useful
    replays: list[Replay] = []
    rings: dict[str, tuple[TokenStream, TokenStream]] = {}
    for name, flow in flows.items():
        rings[name] = _ring(process, streams, name, flow, replays)
    _recode(process, flows, rings)
    return replays


def _needed(process: CellProcess, step: ClassStep, live: set[int]) -> set[int]:
    """The reads that the sends and the live writes of a class need."""
    values = list(step.sends.values())
    values += [
        write.value
        for number, write in enumerate(process.writes)
        if number in live and write.value is not None and _happens(write, step)
    ]
    return set[int]().union(*(step.reads(value) for value in values))


def _happens(access: FileAccess, step: ClassStep) -> bool:
    return access.condition is None or bool(step.row[access.condition])


def _flow(
    process: CellProcess,
    name: str,
    shape: tuple[int, ...],
    needs: Sequence[set[int]],
    live: set[int],
) -> RegisterFlow:
    """The flow of one register file; points that do the same share the result."""
    nest, sequence = process.nest, process.classes.sequence
    used: list[tuple[int, bool, FileAccess, tuple[Expr, ...], tuple[bool, ...]]] = []
    for writes, accesses in ((False, process.reads), (True, process.writes)):
        for number, access in enumerate(accesses):
            if access.register == name:
                happens = tuple(
                    (number in live and _happens(access, step)) if writes else number in need
                    for step, need in zip(process.steps, needs, strict=True)
                )
                indices = tuple(nest.folded(index) for index in access.indices)
                used.append((number, writes, access, indices, happens))

    def make() -> RegisterFlow:
        iterations = enumerated(nest, nest.loops)
        timed: list[TimedAccess] = []
        for number, writes, access, indices, happens in used:
            timed.append(
                TimedAccess(
                    number=number,
                    writes=writes,
                    position=access.position,
                    element=iterations.elements(indices, shape),
                    active=np.asarray(happens, bool)[sequence],
                )
            )
        return followed(nest, name, timed)

    facts = tuple((n, w, access.position, indices, h) for n, w, access, indices, h in used)
    return nest.cache.once(("flow", id(process.classes), name, facts), make)


def _ring(
    process: CellProcess, streams: StreamTable, name: str, flow: RegisterFlow, replays: list[Replay]
) -> tuple[TokenStream, TokenStream]:
    """The streams that the written values go into and that the read values come from."""
    node = process.origin.node
    stream = TokenStream(array=f"{node}.{name}", element=process.origin.point)
    written = stream
    stages = _stages(flow.order)
    _note(streams, stream.array, 1 if stages is None else flow.live + 1, process)
    shuffle = None
    if stages is None:
        shuffle, stages = shuffle_of(process.nest, name, flow), [(flow.live, len(flow.order), 1)]
    for number, (tokens, passes, blocks) in enumerate(stages):
        suffix = ".again" * (number + 1)
        after = TokenStream(array=f"{node}.{name}{suffix}", element=process.origin.point)
        _note(streams, after.array, 1, process)
        replays.append(
            Replay(
                name=f"{process.name}.{name}{number + 1 if number else ''}",
                source=stream,
                sink=after,
                tokens=tokens,
                passes=passes,
                blocks=blocks,
                origin=process.origin,
                shuffle=shuffle,
            )
        )
        stream = after
    return written, stream


def _note(streams: StreamTable, array: str, capacity: int, process: CellProcess) -> None:
    known = streams.facts.get(array)
    most = max(capacity, known.capacity) if known else capacity
    streams.facts[array] = StreamFacts(capacity=most, location=process.nest.location)


def _stages(order: Array) -> list[tuple[int, int, int]] | None:
    """A chain of virtual buffers that turns the order of the writes into this order.

    Each buffer is its tokens, passes and blocks.  The chain is empty if the orders are equal;
    ``None`` if no chain produces the order.
    """
    stages: list[tuple[int, int, int]] = []
    while not np.array_equal(order, np.arange(len(order))):
        if order[0]:
            return None
        run = _first_change(order, order[0])
        if run > 1 and len(order) % run == 0 and (order[::run] == order.reshape(-1, run).T).all():
            stages.insert(0, (1, run, len(order) // run))
            order = order[::run]
            continue
        back = np.flatnonzero(order[1:] == 0)
        tokens = int(back[0]) + 1 if len(back) else len(order)
        beyond = np.flatnonzero(order >= tokens)
        period = int(beyond[0]) if len(beyond) else len(order)
        if period % tokens or period == tokens or len(order) % period:
            return None
        numbers = np.arange(len(order))
        if not np.array_equal(order, numbers // period * tokens + numbers % tokens):
            return None
        stages.insert(0, (tokens, period // tokens, len(order) // period))
        break
    return stages


def _first_change(order: Array, start: int) -> int:
    changed = np.flatnonzero(order != start)
    return int(changed[0]) if len(changed) else len(order)


def _recode(
    process: CellProcess,
    flows: dict[str, RegisterFlow],
    rings: dict[str, tuple[TokenStream, TokenStream]],
) -> None:
    """Split classes by where reads get their values and which writes are used."""
    old = process.steps
    sequence = process.classes.sequence
    columns: list[Array] = [sequence]
    facts: list[tuple[str, str, int]] = []
    for name, flow in flows.items():
        for read in flow.kinds:
            columns += [flow.kinds[read], flow.writers[read]]
            facts.append((name, "read", read))
        for write in flow.used:
            columns += [flow.used[write], np.zeros(len(sequence), bool)]
            facts.append((name, "write", write))
    classes = process.nest.cache.once(
        ("recoded", id(process.classes), *map(id, flows.values())),
        lambda: coded(process.nest, columns, len(sequence), 1, 1),
    )
    steps: list[ClassStep] = []
    for row in classes.rows:
        before = old[int(row[0])]
        step = ClassStep(row=before.row, takes=dict(before.takes), sends=dict(before.sends))
        for at, (name, what, number) in enumerate(facts):
            kind, writer = int(row[1 + 2 * at]), int(row[2 + 2 * at])
            if what == "write" and kind:
                step.sends[rings[name][0]] = _value(process.writes[number])
            if what == "read" and kind == SAME:
                step.kept[number] = _value(process.writes[writer])
            if what == "read" and kind == RING:
                step.kept[number] = rings[name][1]
        steps.append(step)
    process.classes, process.steps = classes, steps


def _value(write: FileAccess) -> Value:
    assert write.value is not None
    return write.value


# Register files that are neither rings nor virtual buffers: a cell with a scratchpad.
#
# The cell stores values in the order of the writes, one word after the other, and loads them in the
# order of the reads.  Both orders are known, so the tags of a ``seq`` unit select what comes next:
# a store, or a load and its distance from the last one.  Each takes two instructions, one of them
# for the address, so the cell acts in every second cycle.
#
# The input are the orders, the output is a program and its tags.  Refused: more live words than a
# scratchpad has, and more distances between loads than a cell has instructions for.

VALUES, TAGS = 0, 1
"""The inputs of the cell."""

_SECOND, _LOADS = 1, 2
"""Bits of predicates: the second instruction is to come, it is that of a load."""

_STORED_AT, _LOADED_AT = isa.FromRegister(0), isa.FromRegister(1)


@dataclass(frozen=True, kw_only=True)
class Shuffle:
    """A cell that sends tokens in another order than they arrive: its program and its tags."""

    program: isa.CellProgram
    nest: SequenceNest


@dataclass(frozen=True, kw_only=True)
class _ScratchpadWalk:
    """A sequence of addresses: the last of them, the distances between them, and their order.

    ``steps`` has each distance once; ``codes`` has the index of each distance in turn.  The address
    starts at the last one, so that a repeated sequence needs no further distance.
    """

    last: int
    steps: list[int]
    codes: Array


def shuffle_of(nest: LoopNest, name: str, flow: RegisterFlow) -> Shuffle:
    """The cell for the values of a register file of this name."""
    written_before = np.searchsorted(flow.written_at, flow.read_at, side="left")
    words = int((written_before - flow.order).max())
    most = EXTENDED_CORE.scratchpad_words
    if words > most:
        refuse(
            nest.subject,
            f"the elements of {name!r} are read in an order for which {words:,} of them have to "
            f"wait in a scratchpad, and a cell has {most} words: use smaller tiles",
            nest.location,
        )
    ways = [(_walk(np.arange(len(flow.written_at)) % words), _walk(flow.order % words))]
    if max(flow.written_to.max(), flow.read_from.max()) < most:
        ways.append((_walk(flow.written_to), _walk(flow.read_from)))
    stores, loads = min(ways, key=lambda way: sum(len(walk.steps) for walk in way))
    program = _program(name, stores, loads)
    count = len(program.instructions)
    if count > EXTENDED_CORE.instructions:
        refuse(
            nest.subject,
            f"the elements of {name!r} are written and read with {count - 2} different steps from "
            f"one to the next, for which a cell would need {count} instructions, and it has "
            f"{EXTENDED_CORE.instructions}",
            nest.location,
        )
    tags = _merged(flow, stores.codes, loads.codes + len(stores.steps))
    return Shuffle(program=program, nest=tag_nest(nest, tags, 1, 1))


def _walk(addresses: Array) -> _ScratchpadWalk:
    distances = addresses - np.roll(addresses, 1)
    codes, first = by_appearance(distances)
    return _ScratchpadWalk(last=int(addresses[-1]), steps=distances[first].tolist(), codes=codes)


def _merged(flow: RegisterFlow, stores: Array, loads: Array) -> Array:
    """All tags in the order of firings; within a firing, the load comes before the store."""
    when = np.concatenate([2 * flow.read_at, 2 * flow.written_at + 1])
    tags: Array = np.concatenate([loads, stores])[np.argsort(when, kind="stable")]
    return tags


def _program(name: str, stores: _ScratchpadWalk, loads: _ScratchpadWalk) -> isa.CellProgram:
    """An instruction for each step of an address, one that stores, and one that loads."""
    instructions: list[isa.Instruction] = []
    for walk, register, kind in ((stores, _STORED_AT, 0), (loads, _LOADED_AT, _LOADS)):
        for step in walk.steps:
            distance = isa.Immediate(step % (1 << EXTENDED_CORE.immediate_width))
            check = isa.TagCheck(channel=TAGS, tag=len(instructions))
            instructions.append(
                isa.Instruction(
                    trigger=isa.Trigger(zeros=_SECOND | _LOADS, checks=(check,)),
                    opcode=isa.Opcode.ADD,
                    destination=isa.ToRegister(register.number),
                    sources=(register, distance),
                    sets=_SECOND | kind,
                )
            )
    first_load = len(stores.steps)
    store = isa.Instruction(  # no tag check: the predicates imply that it is a load
        trigger=isa.Trigger(
            ones=_SECOND,
            zeros=_LOADS,
            checks=(
                isa.TagCheck(channel=TAGS, tag=first_load, equal=False),
                isa.TagCheck(channel=VALUES, tag=0),
            ),
        ),
        opcode=isa.Opcode.SSW,
        sources=(isa.FromChannel(VALUES), _STORED_AT),
        takes=(VALUES, TAGS),
        clears=_SECOND,
    )
    load = isa.Instruction(
        trigger=isa.Trigger(
            ones=_SECOND | _LOADS, checks=(isa.TagCheck(channel=TAGS, tag=0, equal=False),)
        ),
        opcode=isa.Opcode.LSW,
        destination=isa.ToOutputs(channels=(0,), tag=0),
        sources=(_LOADED_AT,),
        takes=(TAGS,),
        clears=_SECOND | _LOADS,
    )
    initial = ((_STORED_AT.number, stores.last), (_LOADED_AT.number, loads.last))
    return isa.CellProgram(
        label=name,
        initial=tuple(pair for pair in initial if pair[1]),
        instructions=(*instructions, store, load),
    )


# Reaching definitions of a register file, by enumeration of all firings of a PE.

ZERO, SAME, RING = 0, 1, 2
"""Where a read gets its value from: nothing was written, this firing writes it, an earlier one."""


@dataclass(frozen=True, kw_only=True)
class TimedAccess:
    """A read or a write: its element, and whether it happens, in each iteration.

    ``number`` counts the reads or the writes of the PE; ``position`` is its index in the body.
    """

    number: int
    writes: bool
    position: int
    element: Array
    active: Array


@dataclass(frozen=True, kw_only=True)
class RegisterFlow:
    """Where the values of one register file come from and go to.

    ``kinds`` and ``writers`` have, for each read and each iteration, the source of the value, and
    the number of the write if it is in the same firing.  ``used`` has, for each write, whether the
    value of an iteration is read in a later one.  ``order`` has the number of the write for each
    read of such a value, in order; ``live`` is the most values that are live at once.
    ``written_at`` and ``read_at`` are the iterations of these writes and reads, ``written_to`` and
    ``read_from`` their elements.
    """

    kinds: dict[int, Array]
    writers: dict[int, Array]
    used: dict[int, Array]
    order: Array
    live: int
    written_at: Array
    read_at: Array
    written_to: Array
    read_from: Array


@dataclass(frozen=True, kw_only=True)
class _Events:
    """All accesses, by element and then by time; ``last`` is the last write before each.

    ``last`` is -1 where the element has not been written.
    """

    time: Array
    iteration: Array
    writes: Array
    number: Array
    last: Array
    element: Array


def followed(nest: LoopNest, name: str, accesses: Sequence[TimedAccess]) -> RegisterFlow:
    """Trace the values of a register file from writes to reads.

    Refused: two values in one firing that are written for later ones, or that come from earlier
    ones.
    """
    count = len(accesses[0].active) if accesses else 0
    events = _sorted(accesses)
    reads = np.flatnonzero(~events.writes)
    reads = reads[np.argsort(events.time[reads], kind="stable")]
    source = events.last[reads]
    has_source = source >= 0
    same = has_source & (events.iteration[source] == events.iteration[reads])
    kind = np.where(same, SAME, np.where(has_source, RING, ZERO))
    rings, sources = reads[kind == RING], source[kind == RING]
    used = np.unique(sources)
    used = used[np.argsort(events.time[used], kind="stable")]
    _check_single(nest, name, events.iteration[used], "written")
    rank = np.zeros(len(events.time), np.int64)
    rank[used] = np.arange(len(used))
    order, when = rank[sources], events.iteration[rings]
    again = np.flatnonzero(np.diff(when) == 0) + 1
    if (order[again] != order[again - 1]).any():
        _check_single(nest, name, when, "read")
    once = np.delete(np.arange(len(order)), again)
    kinds: dict[int, Array] = {}
    writers: dict[int, Array] = {}
    for read in sorted({access.number for access in accesses if not access.writes}):
        mine = events.number[reads] == read
        at = events.iteration[reads[mine]]
        kinds[read], writers[read] = np.zeros(count, np.int8), np.zeros(count, np.int64)
        kinds[read][at] = kind[mine]
        writers[read][at] = np.where(kind[mine] == SAME, events.number[source[mine]], 0)
    later: dict[int, Array] = {}
    for write in sorted({access.number for access in accesses if access.writes}):
        later[write] = np.zeros(count, bool)
        later[write][events.iteration[used[events.number[used] == write]]] = True
    live = _most_live(events.time[used], events.time[rings[once]], order[once])
    return RegisterFlow(
        kinds=kinds,
        writers=writers,
        used=later,
        order=order[once],
        live=live,
        written_at=events.iteration[used],
        read_at=when[once],
        written_to=events.element[used],
        read_from=events.element[rings[once]],
    )


def _sorted(accesses: Sequence[TimedAccess]) -> _Events:
    positions = 1 + max((access.position for access in accesses), default=0)
    when = [np.flatnonzero(access.active) for access in accesses]
    pairs = list(zip(accesses, when, strict=True))
    none = np.zeros(0, np.int64)
    element = np.concatenate([none, *(access.element[at] for access, at in pairs)])
    time = np.concatenate([none, *(at * positions + access.position for access, at in pairs)])
    writes = np.concatenate([none, *(np.full(len(at), a.writes) for a, at in pairs)]).astype(bool)
    number = np.concatenate([none, *(np.full(len(at), a.number) for a, at in pairs)])
    order = np.lexsort((time, element))
    element, time, writes, number = (part[order] for part in (element, time, writes, number))
    last = np.where(writes, np.arange(len(order)), -1)
    if len(last):
        last = np.maximum.accumulate(last)
        last = np.where((last >= 0) & (element[last] == element), last, -1)
    return _Events(
        time=time,
        iteration=time // positions,
        writes=writes,
        number=number,
        last=last,
        element=element,
    )


def _check_single(nest: LoopNest, name: str, when: Array, what: str) -> None:
    if (np.diff(when) == 0).any():
        refuse(
            nest.subject,
            f"several elements of {name!r} are {what} in one firing; a file of registers becomes "
            "a ring of tokens, of which one passes in a cycle",
            nest.location,
        )


def _most_live(written: Array, read: Array, sequence: Array) -> int:
    """The most values that are live at once: written, and not yet read for the last time."""
    if not len(written):
        return 0
    final = np.zeros(len(written), np.int64)
    np.maximum.at(final, sequence, read)
    gone = np.searchsorted(np.sort(final), written, side="left")
    return int((np.arange(1, len(written) + 1) - gone).max())
