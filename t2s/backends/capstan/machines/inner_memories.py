"""Memories that loops declare inside of themselves, write, and read again in the same iteration.

There is a new memory in each iteration, so each has a *region* of a tensor of single assignment,
where the one before ends.  A unit opens regions: two iterations may be under way, as with blocks,
so it waits until whoever reads a memory is done with that of the iteration before the last.  Those
who read wait until all words are written.
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
    """A memory that ``body`` declares; ``tensor`` has its regions, one behind the other."""

    def __init__(self, body: PatternBody, statement: DeclareMemory, tensor: Tensor) -> None:
        self.body, self.name = body, statement.memory.name
        self._tensor, self._location = tensor, statement.location
        self._unit = BodyUnit(body, f"open_{self.name}", Role.RELAY, statement.location)
        self._size = self._unit.scalar(statement.memory.size)
        self._alike = not any(isinstance(one, Local) for one in walk(statement.memory.size))
        self._begin = body.draft.names.fresh(f"{self.name}_begin")
        self._opened = self._unit.output(self._begin)
        body.wires[self._begin] = self._opened
        self._written: list[str] = []
        self._there: str | None = None

    @property
    def is_read(self) -> bool:
        """Whether somebody reads it already."""
        return self._there is not None

    def address(self, index: Expr) -> Expr:
        """Where a word of the memory is in the tensor.

        Regions of partitions are interleaved if their sizes differ.
        """
        begin: Expr = Local(name=self._begin, type=INT32)
        for dimension in () if self._alike else self.body.space:
            index = index * dimension.extent
        return begin + index

    def write(self, body: PatternBody, statement: WriteMemory) -> None:
        """Units that set a word in each iteration of a body."""
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
        """What some statements read, when all is written."""
        there = self._when_written()
        moved = [
            replace(
                statement,
                index=select(statement.index >= 0, self.address(statement.index), NOWHERE),
            )
            for statement in statements
        ]
        return read(body, moved, self._tensor, const(0), [there])

    def store(self, statement: StoreBlock, target: Tensor) -> bool:
        """Store all of it at the end of an iteration; ``False`` if its words are apart."""
        if self.body.space and not self._alike:
            return False
        there = self._when_written()
        inner_store(self.body, statement, self._tensor, target, self._begin, there)
        return True

    def _when_written(self) -> str:
        if self._there is None:
            self._there = self._complete_local()
            self.body.given_back[self._there] = []
        return self._there

    def _complete_local(self) -> str:
        """A local of the body, which is there when all is written."""
        there = self.body.draft.names.fresh(f"{self.name}_there")
        unit = BodyUnit(self.body, f"finish_{self.name}", Role.RELAY, self._location)
        unit.wait(self._written or [self._begin])
        out = unit.output(there)
        unit.at_each([FiringCase(name="written", puts=(put(out),))])
        unit.finish()
        self.body.wires[there] = out
        return there

    def complete(self) -> None:
        """Write the unit that opens regions: all who read the memory are known."""
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
            here: Expr = total
            for dimension in self.body.space:
                scaled = total * dimension.extent
                here = scaled + Index(name=dimension.name)
            begin = here * self._size
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
    """Store in each iteration; a token behind ``each``, or behind the last one of a segment."""
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
    """One token of a local for each segment: that of its last firing."""
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
