"""The table kernel with memories whose access times depend on addresses."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from t2s.llvm.kernels import CompiledKernel
from t2s.llvm.operands import Argument, Record
from t2s.simulator.memory.banks import Banks
from t2s.simulator.memory.report import MemoryCounts, SharedCounts
from t2s.simulator.memory.sharers import BankedUnits
from t2s.simulator.memory.units import DramUnits, MemoryUnits
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.times.table_layout import CREDIT_RECORD, SOURCES, TABLES, Credit, Tables
from t2s.simulator.times.table_times import TableTimes

_named: Any = namedtuple

CreditBanks = _named("CreditBanks", (*Credit._fields, *Banks._fields))
"""A memory of shared bandwidth and the banks."""

DramBanks = _named("DramBanks", (*DramUnits._fields, *Banks._fields))
"""A DRAM and the banks."""

_INT64S = Argument.INT64_ARRAY
_DRAM = Record(DramUnits, (_INT64S, _INT64S, Argument.INT32_ARRAY, *(_INT64S,) * 7))
_BANKS = (_INT64S,) * len(Banks._fields)


def _kernel(name: str, memory: Record) -> CompiledKernel:
    return CompiledKernel(
        module="t2s.simulator.times.memory_policies",
        name=name,
        sources=SOURCES,
        arguments=(TABLES, memory, Argument.INT64, Argument.BOOLEAN),
    )


advance_with_dram = _kernel("advance_with_dram", _DRAM)
advance_with_banks = _kernel(
    "advance_with_banks", Record(CreditBanks, (*CREDIT_RECORD.fields, *_BANKS))
)
advance_with_banks_and_dram = _kernel(
    "advance_with_banks_and_dram", Record(DramBanks, (*_DRAM.fields, *_BANKS))
)


class TimedMemories:
    """The DRAM and the shared banks of a program: the ``Memories`` of ``table_times``."""

    def __init__(self, program: SimProgram) -> None:
        dram, banked = program.device.memory, program.banked
        self._units = MemoryUnits(program, dram) if dram is not None else None
        self._banks = BankedUnits(program, banked) if banked is not None else None
        units = self._units
        self.accesses = program.accesses_memory if units is None else units.unit_of >= 0

    def provide(self) -> bool:
        """Prepare the requests of more firings if any are used up; return whether they were."""
        provided = False
        for memory in (self._units, self._banks):
            if memory is not None and not memory.lasts():
                memory.provide()
                provided = True
        return provided

    def lasts(self) -> int:
        """Cycles before requests may be used up."""
        return min(m.lasts() for m in (self._units, self._banks) if m is not None)

    def prepared(self, tables: Tables, credit: Credit) -> Callable[..., int]:
        """The kernel on the present tables."""
        if self._banks is None:
            assert self._units is not None
            return advance_with_dram.prepared(tables, self._units.tables())
        banks = self._banks.tables()
        if self._units is None:
            return advance_with_banks.prepared(tables, CreditBanks(*credit, *banks))
        both = DramBanks(*self._units.tables(), *banks)
        return advance_with_banks_and_dram.prepared(tables, both)

    @property
    def last_written(self) -> int:
        """The cycle of the last write to the DRAM, except for those after all firings."""
        return self._units.last_stored if self._units is not None else 0

    @property
    def last_stored(self) -> int:
        """The cycle of the last store to the banks."""
        return self._banks.last_stored if self._banks is not None else 0

    def counts(self) -> tuple[MemoryCounts | None, SharedCounts | None]:
        """The counters."""
        units, banks = self._units, self._banks
        return (
            units.tally() if units is not None else None,
            banks.tally() if banks is not None else None,
        )


def timed_memories(program: SimProgram) -> TimedMemories | None:
    """The address-dependent memories of a program, or ``None``."""
    return TimedMemories(program) if program.timed_places else None


def table_times_of(program: SimProgram) -> TableTimes:
    """The table kernel for a program, with its memories."""
    return TableTimes(program, timed_memories(program))
