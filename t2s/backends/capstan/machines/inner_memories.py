"""Memories that a loop declares in its body, writes, and reads in the same iteration.

Each iteration has a new memory, so each gets a *region* of a tensor of single assignment, one after
the other.  A unit opens the regions: as with blocks, two iterations may be active, so it waits
until the readers have released the memory of the iteration before the last.  Readers wait until all
words are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from t2s.backends.capstan.machines.accesses import read
from t2s.backends.capstan.machines.bodies import BodyUnit, CreditGate, FiringCase, PatternBody
from t2s.backends.capstan.machines.kit import Wire
from t2s.backends.capstan.machines.transfers import inner_store
from t2s.backends.capstan.machines.vectors import addresses
from t2s.core.expr import Expr, Index, Local, const, select
from t2s.core.location import SourceLocation
from t2s.core.types import INT32
from t2s.core.walk import walk
from t2s.graph.body import Role, Store
from t2s.graph.build import put, write
from t2s.graph.graph import Tensor
from t2s.patterns.ir import NOWHERE, DeclareMemory, ReadMemory, StoreBlock, WriteMemory


class InnerMemory:
    """A memory that ``body`` declares; ``tensor`` holds its regions, one after the other."""

    def __init__(self, body: PatternBody, statement: DeclareMemory, tensor: Tensor) -> None:
        self.body, self.name = body, statement.memory.name
        self._tensor, self._location = tensor, statement.location
        self._unit = BodyUnit(body, f"open_{self.name}", Role.RELAY, statement.location)
        self._size = self._unit.scalar(statement.memory.size)
        self._alike = not any(isinstance(term, Local) for term in walk(statement.memory.size))
        self._begin = body.draft.names.fresh(f"{self.name}_begin")
        self._opened = self._unit.output(self._begin)
        body.wires[self._begin] = self._opened
        self._written: list[str] = []
        self._there: str | None = None

    @property
    def is_read(self) -> bool:
        """Whether a reader is already known."""
        return self._there is not None

    def address(self, index: Expr) -> Expr:
        """The address in the tensor of a word of the memory.

        Regions of partitions are interleaved if their sizes differ.
        """
        begin: Expr = Local(name=self._begin, type=INT32)
        for dimension in () if self._alike else self.body.space:
            index = index * dimension.extent
        return begin + index

    def write(self, body: PatternBody, statement: WriteMemory) -> None:
        """Make units that write a word in each iteration of a body."""
        each = body is self.body
        wire = _written(body, statement, self._tensor, self.address(statement.index), each=each)
        while body is not self.body:
            assert body.around is not None
            local = body.draft.names.fresh(f"{self.name}_written")
            body = body.around
            body.wires[local] = wire
            if body is self.body:
                self._written.append(local)
                return
            wire = _at_last(body, local, statement.location)
        local = body.draft.names.fresh(f"{self.name}_written")
        body.wires[local] = wire
        self._written.append(local)

    def read(self, body: PatternBody, statements: Sequence[ReadMemory]) -> dict[str, Wire]:
        """The values that some statements read, once all words are written."""
        written = self._when_written()
        moved = [
            replace(
                statement,
                index=select(statement.index >= 0, self.address(statement.index), NOWHERE),
            )
            for statement in statements
        ]
        return read(body, moved, self._tensor, const(0), [written])

    def store(self, statement: StoreBlock, target: Tensor) -> bool:
        """Store the whole memory at the end of an iteration; ``False`` if its words are not
        contiguous.
        """
        if self.body.space and not self._alike:
            return False
        written = self._when_written()
        inner_store(self.body, statement, self._tensor, target, self._begin, written)
        return True

    def _when_written(self) -> str:
        if self._there is None:
            self._there = self._complete_local()
            self.body.given_back[self._there] = []
        return self._there

    def _complete_local(self) -> str:
        """A local of the body, which arrives when all words are written."""
        written = self.body.draft.names.fresh(f"{self.name}_there")
        unit = BodyUnit(self.body, f"finish_{self.name}", Role.RELAY, self._location)
        unit.wait(self._written or [self._begin])
        out = unit.output(written)
        unit.at_each([FiringCase(name="written", puts=(put(out),))])
        unit.finish()
        self.body.wires[written] = out
        return written

    def complete(self) -> None:
        """Make the unit that opens regions, once all readers are known."""
        unit = self._unit
        readers = self.body.given_back.get(self._there or "", [])
        gate = None
        if readers:
            gate = CreditGate(
                begun=unit.register("begun"),
                heads=tuple(unit.listen(wire, unit.local("read")) for wire in readers),
                buffers=self.body.draft.times.block_buffers,
            )
        total = unit.register("total")
        size = select(unit.valid, self._size, 0)
        begin: Expr = total
        step = size
        if self._alike:
            step = select(unit.valid, 1, 0)
            region: Expr = total
            for dimension in self.body.space:
                scaled = total * dimension.extent
                region = scaled + Index(name=dimension.name)
            begin = region * self._size
        for dimension in () if self._alike else self.body.space:
            scaled = total * dimension.extent
            begin = scaled + Index(name=dimension.name)
        opens = FiringCase(
            name="open", body=(write(total, total + step),), puts=(put(self._opened, begin),)
        )
        unit.at_each([opens], gate=gate)
        unit.finish()


def _written(
    body: PatternBody, statement: WriteMemory, tensor: Tensor, index: Expr, *, each: bool
) -> Wire:
    """Store in each iteration; a token after ``each`` one, or after the last one of a segment."""
    unit = BodyUnit(body, f"write_{statement.memory}", Role.STORE, statement.location)
    at, value = unit.vector(index), unit.vector(statement.value)
    done = unit.output(f"{statement.memory}_written")
    if body.lanes > 1:
        at = addresses(unit.valid, at)
    store = Store(tensor=tensor.name, indices=(at,), value=value)
    valid, last = (None if body.lanes > 1 else unit.valid), unit.control.ends_list
    ends = last if valid is None else valid & last
    cases = [FiringCase(name="end", when=valid if each else ends, body=(store,), puts=(put(done),))]
    if not each:
        cases.append(FiringCase(name="write", when=valid, body=(store,)))
    if valid is not None and not each:
        cases.append(FiringCase(name="nothing, end", when=last, puts=(put(done),)))
    if valid is not None:
        cases.append(FiringCase(name="nothing", puts=(put(done),) if each else ()))
    unit.at_each(cases)
    unit.finish()
    return done


def _at_last(body: PatternBody, name: str, location: SourceLocation | None) -> Wire:
    """One token of a local for each segment, from its last firing."""
    unit = BodyUnit(body, f"finish_{name}", Role.RELAY, location)
    unit.wait([name])
    out = unit.output(name)
    unit.at_each(
        [
            FiringCase(name="end", when=unit.control.ends_list, puts=(put(out),)),
            FiringCase(name="more"),
        ]
    )
    unit.finish()
    return out
