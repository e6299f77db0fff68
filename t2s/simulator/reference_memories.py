"""Memories of the reference engine: the models of ``memory``, uncompiled, on lists.

The requests of machines follow from their values, so these are recorded before the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from t2s.core.errors import InternalError
from t2s.core.ops import Array
from t2s.graph.interpret import record_graph
from t2s.graph.semantics import PortUse, element_of, space_points
from t2s.simulator.limits import Limits
from t2s.simulator.memory import banks, units
from t2s.simulator.memory.machine_accesses import (
    Addresses,
    lane_addresses,
    lane_rows,
    types_of_channels,
    with_addresses,
)
from t2s.simulator.memory.report import MemoryCounts, SharedCounts
from t2s.simulator.memory.sharers import BankedUnits
from t2s.simulator.memory.units import MemoryUnits
from t2s.simulator.program.codes import SHORT, codes_of_parts
from t2s.simulator.program.sim_program import SimProgram, with_traces
from t2s.simulator.program.trace import Trace

Settle = Callable[[int], None]
"""Receives the departure time of a token for which it was unknown."""

_ask_banks, _ask_banks_beside = banks.asks_beside(banks.no_wait), banks.asks_beside(units.waited)


class ReferenceMemories:
    """The DRAM and the shared banks of a program that has either."""

    def __init__(self, program: SimProgram, limits: Limits) -> None:
        recorded = recorded_program(program, limits)
        dram, banked = program.device.memory, recorded.banked
        self._units = MemoryUnits(recorded, dram) if dram is not None else None
        self._banks = BankedUnits(recorded, banked) if banked is not None else None
        self._memory: Any = SimpleNamespace()
        self._settling: dict[int, Sequence[Settle]] = {}
        self._asked = self._rest = 0
        for state in (self._units, self._banks):
            if state is not None:
                state.stretch = 1 << 62  # all requests are prepared
                state.provide()
                for name, words in state.tables()._asdict().items():
                    setattr(self._memory, name, words.tolist())

    def is_unit(self, pe: int) -> bool:
        """Whether the DRAM determines when the stores of a PE complete."""
        return self._units is not None and self._memory.unit_of[pe] >= 0

    def free(self, pe: int) -> int:
        """The first cycle in which the next firing of a PE may send requests, as far as known."""
        free = 0
        if self._units is not None:
            free = int(units.may_ask(self._memory, pe))
        if self._shares(pe):
            free = max(free, int(banks.may_ask(self._memory, self._memory.sharer_of[pe])))
        return free

    def ask(self, pe: int, now: int, settle: Sequence[Settle]) -> int:
        """Send the requests of a firing; return when its tokens leave.

        If that is not known yet, it is ``UNKNOWN``, and ``settle`` is called later.
        """
        leaves = now
        if self.is_unit(pe):
            leaves = int(units.ask(self._memory, self._memory.unit_of[pe], now))
        if not self._shares(pe):
            return leaves
        self._asked += 1
        ask = _ask_banks if self._units is None else _ask_banks_beside
        leaves = int(ask(self._memory, pe, self._asked, bool(settle), now))
        if leaves >= banks.UNKNOWN and settle:
            self._settling[self._asked] = settle
        return leaves

    def _shares(self, pe: int) -> bool:
        return self._banks is not None and self._memory.sharer_of[pe] >= 0

    def advance(self, now: int) -> None:
        """One cycle of the banks, after all firings in it."""
        if self._banks is None or not self._memory.tally[banks.UNDER_WAY]:
            return
        memory = self._memory
        banks.step(memory, now)
        for sharer in memory.changed[: memory.tally[banks.CHANGED]]:
            memory.sharers[banks.SHARER * sharer + banks.IS_CHANGED] = 0
            while (at := banks.answered(memory, sharer)) >= 0:
                tag = int(memory.firings[at + banks.F_TAG])
                leaves = int(banks.leave(memory, sharer, at))
                for settle in self._settling.pop(tag, ()):
                    settle(leaves)
        memory.tally[banks.CHANGED] = 0

    def flush(self, now: int, last: int) -> None:
        """Continue after the last firing, at ``last``, until all requests are done."""
        while self._banks is not None and self._memory.tally[banks.UNDER_WAY]:
            self.advance(now)
            now += 1
        if self._units is not None:
            self._rest = int(units.write_rest(self._memory, last))

    @property
    def last_written(self) -> int:
        """The cycle in which the last write to the DRAM was done."""
        if self._units is None:
            return 0
        return max(self._rest, *map(int, self._memory.units[units.WRITTEN :: units.UNIT]))

    @property
    def last_stored(self) -> int:
        """The cycle in which the last store to the banks was done."""
        return int(self._memory.tally[banks.LAST_STORED]) if self._banks is not None else 0

    def counts(self) -> tuple[MemoryCounts | None, SharedCounts | None]:
        """The counters."""
        for state in (self._units, self._banks):
            if state is not None:
                for name, words in state.tables()._asdict().items():
                    words[:] = getattr(self._memory, name)
        return (
            self._units.tally() if self._units is not None else None,
            self._banks.tally() if self._banks is not None else None,
        )


def recorded_program(program: SimProgram, limits: Limits) -> SimProgram:
    """The program with a trace of its machines' memory requests, as far as tokens allow."""
    addressed = with_addresses(program.graph, program.timed_places)
    if not addressed.channels:
        return program
    if program.inputs is None:
        raise InternalError("the reference engine needs the inputs of machines with a memory")
    most = None if limits.max_cycles is None else limits.max_cycles + 1
    recording = record_graph(addressed.graph, program.inputs, program.parameters, most_firings=most)
    codes: dict[int, list[int]] = {}
    addresses: dict[int, tuple[Addresses, ...]] = {}
    unfinished: dict[int, tuple[int, ...]] = {}
    for timing in program.nodes:
        channels = addressed.channels.get(timing.node.name, ())
        types = types_of_channels(addressed.rules.get(timing.node.name, ()))
        for place, point in enumerate(space_points(timing.node) if channels else ()):
            instance = timing.first + place
            position = {
                d.name: np.int32(at) for d, at in zip(timing.node.space, point, strict=True)
            }
            graph = addressed.graph
            uses = [
                PortUse(c, element_of(graph.channel(c).source_index, position)) for c in channels
            ]
            codes[instance] = recording.codes[timing.node.name, place]
            if (timing.node.name, place) not in recording.ended:
                unfinished[instance] = ()
            addresses[instance] = tuple(
                _addresses(recording.tokens.get(use, []), type.lanes)
                for use, type in zip(uses, types, strict=True)
            )
    timed = with_traces(program, codes, dict.fromkeys(unfinished, True))
    trace = Trace(
        codes={
            instance: codes_of_parts(SHORT, [np.array(fired, SHORT)])
            for instance, fired in codes.items()
        },
        unfinished=unfinished,
        refusing=frozenset(),
        sent=timed.control.sent,
        received=timed.control.received,
        refusal=_no_refusal,
        addresses=addresses,
    )
    return replace(timed, trace=trace)


def _no_refusal(instance: int) -> Exception:
    return InternalError(f"machine {instance} refuses tokens in a recording")


def _addresses(tokens: Iterable[Any], lanes: int) -> Addresses:
    """The tokens of a channel of addresses."""
    rows: list[Array] = [np.asarray(token, np.int64) for token in tokens]
    if lanes == 1:
        return np.array(rows, np.int64)
    return lane_addresses(lanes, [lane_rows(np.stack(rows))] if rows else [])
