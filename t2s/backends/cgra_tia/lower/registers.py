"""Register files as streams: what is written goes round to where it is read.

Each needed read of a register file gets what the last write of its element wrote.  Where the values
are read in the order in which they are written, each once, the file is a channel from the PE to
itself (a ring).  Where blocks of them are read several times over, a cell of their own sends them
again and again (a *virtual buffer*).  In any other order they wait in the scratchpad of a cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from t2s.backends.cgra_tia.lower.process import (
    CellProcess,
    ClassStep,
    FileAccess,
    StreamFacts,
    StreamTable,
    TokenStream,
)
from t2s.backends.cgra_tia.lower.register_flow import (
    RING,
    SAME,
    RegisterFlow,
    TimedAccess,
    followed,
)
from t2s.backends.cgra_tia.lower.schedule import coded, enumerated
from t2s.backends.cgra_tia.lower.scratchpads import Shuffle, shuffle_of
from t2s.backends.cgra_tia.lower.values import Value
from t2s.backends.cgra_tia.netlist import Provenance
from t2s.core.expr import Expr
from t2s.core.ops import Array
from t2s.graph.nodes import PEArray


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A virtual buffer: blocks of ``tokens`` go from source to sink, each ``passes`` times.

    Or, with a ``shuffle``, a cell that gives all tokens in another order.
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
    """Turn the register files of a process into streams; returns the buffers that this needs."""
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
    """Follow the values of one register file; points that do the same share the result."""
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
            element = np.zeros(iterations.count, np.int64)
            for index, extent in zip(indices, shape, strict=True):
                element = element * extent + iterations.values(index)
            timed.append(
                TimedAccess(
                    number=number,
                    writes=writes,
                    position=access.position,
                    element=element,
                    active=np.asarray(happens, bool)[sequence],
                )
            )
        return followed(nest, name, timed)

    facts = tuple((n, w, access.position, indices, h) for n, w, access, indices, h in used)
    return nest.cache.once(("flow", id(process.classes), name, facts), make)


def _ring(
    process: CellProcess, streams: StreamTable, name: str, flow: RegisterFlow, replays: list[Replay]
) -> tuple[TokenStream, TokenStream]:
    """The streams that what is written goes into, and that what is read comes from."""
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
    """Virtual buffers, one behind the other, that give tokens in this order.

    Each as its tokens, passes and blocks; no buffers where the order is that of writing, ``None``
    where no buffers have it.
    """
    found: list[tuple[int, int, int]] = []
    while not np.array_equal(order, np.arange(len(order))):
        if order[0]:
            return None
        run = _first_change(order, order[0])
        if run > 1 and len(order) % run == 0 and (order[::run] == order.reshape(-1, run).T).all():
            found.insert(0, (1, run, len(order) // run))
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
        found.insert(0, (tokens, period // tokens, len(order) // period))
        break
    return found


def _first_change(order: Array, start: int) -> int:
    changed = np.flatnonzero(order != start)
    return int(changed[0]) if len(changed) else len(order)


def _recode(
    process: CellProcess,
    flows: dict[str, RegisterFlow],
    rings: dict[str, tuple[TokenStream, TokenStream]],
) -> None:
    """Tell iterations apart by where reads come from and which writes are used."""
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
