"""What the run-ahead engine knows of a program before a run: code, records and who is where.

All of it follows from the rows of the control (and from which channels are alike), so programs that
differ in capacities, and runs of one program, share it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2s.simulator.emit.compile import compile_module
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.times import run_ahead_emit as emit_timing
from t2s.simulator.times.run_ahead_emit import Shape, emit_shapes
from t2s.simulator.times.run_ahead_shapes import RowLayout, Rows, layout_of, twins

Numbers = NDArray[np.int64]

_MOST_CODES = 1 << 16
_MOST_INSTANCES = 1 << 12
_COMPILED = 32
_RECORD_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class _Code:
    """Compiled shapes; ``engine`` keeps them alive."""

    engine: Any
    advance: Any
    addresses: Mapping[Shape, int]


@lru_cache(maxsize=_COMPILED)
def _compiled(shapes: tuple[Shape, ...]) -> _Code:
    engine = compile_module(emit_shapes(shapes))
    prototype = ctypes.CFUNCTYPE(
        ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
    )
    return _Code(
        engine=engine,
        advance=prototype(engine.get_function_address(emit_timing.ENTRY)),
        addresses={
            shape: engine.get_function_address(f"shape{number}")
            for number, shape in enumerate(shapes)
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCode:
    """Code and records of all nodes of a program.

    Attributes
    ----------
    layouts: of every node.
    code: of their shapes.
    twin: the channel element that stands for each element: for most, itself.
    start: the first word of every record, and after them the number of words.
    functions, masks: addresses, by node.
    sender_port, receiver_port: by element, the first word of the port at that end; -1 if none.
    sent, received: by element, the word that counts tokens at that end, 0 if there is none.
    together: by element, the lowest element whose ring has to be as long.
    order: the nodes, senders before receivers as far as there are no circles.
    """

    layouts: tuple[RowLayout, ...]
    code: _Code
    twin: Numbers
    start: Numbers
    functions: Numbers
    masks: Numbers
    sender_port: Numbers
    receiver_port: Numbers
    sent: Numbers
    received: Numbers
    together: Numbers
    order: Numbers


def stream_code(program: SimProgram, code_bytes: Mapping[int, int]) -> StreamCode | None:
    """What there is to know of a program; ``None`` if the run-ahead engine cannot run it.

    ``code_bytes`` gives the size of the codes of each machine.
    """
    if not shares_channels_alone(program):
        return None
    sizes = tuple(code_bytes.get(instance, 4) for instance in range(program.pe_count))
    return _stream_code(Rows(program.control), sizes, twin_elements(program))


def shares_channels_alone(program: SimProgram) -> bool:
    """Whether nodes share nothing else, so that times follow from the traces by channels alone."""
    return (
        not program.shares_memory and program.stalls is None and program.pe_count <= _MOST_INSTANCES
    )


def twin_elements(program: SimProgram) -> tuple[int, ...]:
    """The channel element that stands for each element: for most, itself."""
    twin = list(range(len(program.channel_of_element)))
    for group in _twins(Rows(program.control), program.pe_count):
        first: dict[tuple[int, int], int] = {}
        for element in group:
            channel = program.channels[int(program.channel_of_element[element])]
            twin[element] = first.setdefault((channel.capacity, channel.latency), element)
    return tuple(twin)


@lru_cache(maxsize=_COMPILED)
def _twins(rows: Rows, instances: int) -> tuple[tuple[int, ...], ...]:
    return twins(rows, instances)


@lru_cache(maxsize=_COMPILED)
def _stream_code(
    rows: Rows, code_bytes: tuple[int, ...], twin: tuple[int, ...]
) -> StreamCode | None:
    if any(rows.count(instance) > _MOST_CODES for instance in range(len(code_bytes))):
        return None
    dropped = frozenset(element for element, stands in enumerate(twin) if element != stands)
    layouts = [layout_of(rows, instance, size, dropped) for instance, size in enumerate(code_bytes)]
    code = _compiled(tuple(sorted({layout.shape for layout in layouts}, key=repr)))
    words = [-(-layout.shape.words // _RECORD_ALIGNMENT) * _RECORD_ALIGNMENT for layout in layouts]
    start = np.concatenate([[0], np.cumsum(words)]).astype(np.int64)
    ends = _ends(layouts, start, len(twin))
    return StreamCode(
        layouts=tuple(layouts),
        code=code,
        twin=np.array(twin, np.int64),
        start=start,
        functions=np.array([code.addresses[layout.shape] for layout in layouts], np.int64),
        masks=np.array([layout.masks.ctypes.data for layout in layouts], np.int64),
        together=_together(layouts, len(twin)),
        order=np.array(_from_sources(layouts, len(twin)), np.int64),
        **ends,
    )


def _ends(layouts: Sequence[RowLayout], start: Numbers, elements: int) -> dict[str, Numbers]:
    """The words of the two ends of every element."""
    names = ("sender_port", "receiver_port", "sent", "received")
    ends = {name: np.full(elements, -1 if "port" in name else 0, np.int64) for name in names}
    for instance, layout in enumerate(layouts):
        shape, first = layout.shape, int(start[instance])
        for port, element in enumerate(layout.ports):
            receives = shape.receives[port]
            count = first + shape.group(shape.groups[port]) + emit_timing.COUNT
            ends["receiver_port" if receives else "sender_port"][element] = first + shape.port(port)
            ends["received" if receives else "sent"][element] = count
    return ends


def _together(layouts: Sequence[RowLayout], elements: int) -> Numbers:
    """Elements of one group have rings of one length, and so have those of its other ends."""
    found = list(range(elements))

    def root(element: int) -> int:
        while found[element] != element:
            found[element] = found[found[element]]
            element = found[element]
        return element

    for layout in layouts:
        first: dict[int, int] = {}
        for element, group in zip(layout.ports, layout.shape.groups, strict=True):
            one, other = root(first.setdefault(group, element)), root(element)
            found[max(one, other)] = min(one, other)
    return np.array([root(element) for element in range(elements)], np.int64)


def _from_sources(layouts: Sequence[RowLayout], elements: int) -> list[int]:
    sender, receiver = [-1] * elements, [-1] * elements
    for instance, layout in enumerate(layouts):
        for element, receives in zip(layout.ports, layout.shape.receives, strict=True):
            (receiver if receives else sender)[element] = instance
    receivers: list[list[int]] = [[] for _ in layouts]
    waits = [0] * len(layouts)
    for source, sink in zip(sender, receiver, strict=True):
        if source >= 0 and sink >= 0 and source != sink:
            receivers[source].append(sink)
            waits[sink] += 1
    order: list[int] = []
    seen = [False] * len(layouts)
    ready = [instance for instance, count in enumerate(waits) if not count]
    left = iter(range(len(layouts)))
    while len(order) < len(layouts):
        if not ready:
            ready.append(next(instance for instance in left if not seen[instance]))
        instance = ready.pop()
        if seen[instance]:
            continue
        seen[instance] = True
        order.append(instance)
        for sink in receivers[instance]:
            waits[sink] -= 1
            if not waits[sink] and not seen[sink]:
                ready.append(sink)
    return order
