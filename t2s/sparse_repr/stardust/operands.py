"""Operands inside loops: their positions and segments, and when their arrays move on chip.

Segments are found as soon as their parent's position is known.  Positions of the next compressed
level move on chip as soon as the segment of its parents is known, so ``pos`` comes one loop above
its ``crd`` [Stardust, sec. 6.3]; reads at absolute positions become relative to the segment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from t2s.core.expr import Const, Expr
from t2s.core.types import INT32, Type
from t2s.core.walk import Term
from t2s.patterns.ir import Held, LoadBlock, MemoryKind
from t2s.sparse_repr.concrete.ir import Assign, ConcreteProgram, Forall, Statement, Where
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import Access, accesses
from t2s.sparse_repr.stardust.coiteration import (
    AllCoordinates,
    CombinedLevels,
    JoinedLevels,
    LoopIteration,
    WalkedLevel,
    iteration_of,
    level_of,
)
from t2s.sparse_repr.stardust.emitter import (
    ONE,
    ZERO,
    PatternEmitter,
    ScalarOf,
    add,
    pin_dense,
    pin_positions,
    pin_values,
    times,
    where_there,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSegment(Term):
    """The entries of a fiber: their start and their number."""

    begin: Expr
    length: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandState(Term):
    """The state of an access after some of its levels.

    ``position`` counts from the tensor's first entry, ``relative`` from the segment that is on
    chip; ``near`` is the memory of the next compressed level's segments.  A position is
    ``optional`` if the scan also visits coordinates that the operand lacks.
    """

    access: Access
    level: int = 0
    position: Expr = ZERO
    relative: Expr = ZERO
    optional: bool = False
    segment: LevelSegment | None = None
    near: str | None = None
    value: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceArrays(Term):
    """The memories of a workspace on chip; ``bounds`` are the most entries of its levels."""

    values: str
    positions: Mapping[int, str] = field(default_factory=dict)
    coordinates: Mapping[int, str] = field(default_factory=dict)
    bounds: Mapping[int, Expr] = field(default_factory=dict)


@dataclass
class PatternOperands:
    """All operands of a program; ``workspaces`` are those that exist on chip."""

    emitter: PatternEmitter
    program: ConcreteProgram
    facts: Mapping[Access, AccessFacts]
    type: Type
    workspaces: dict[str, WorkspaceArrays] = field(default_factory=dict)
    whole: dict[str, str] = field(default_factory=dict)

    def format(self, access: Access) -> Format:
        """The format of an access."""
        return self.program.format_of(access.tensor)

    def is_dense(self, access: Access) -> bool:
        """Whether an access has addresses instead of segments."""
        return all(level.full for level in self.format(access).levels)

    def extent(self, access: Access, level: int) -> Expr:
        """The extent of a level."""
        return self.emitter.extent(access.variables[self.format(access).modes[level]])

    def bound(self, access: Access, level: int) -> Expr:
        """The most entries of a compressed level."""
        if access.tensor in self.workspaces:
            return self.workspaces[access.tensor].bounds[level]
        return self.emitter.entries(access.tensor, level)

    def positions(self, access: Access, levels: int) -> Expr:
        """The number of positions of the first ``levels`` levels."""
        count: Expr = ONE
        for level in range(levels):
            if self.format(access).levels[level].full:
                count = times(count, self.extent(access, level))
            else:
                count = self.bound(access, level)
        return count

    def far(self, access: Access, array: str, level: int | None = None) -> tuple[Held, Type, Expr]:
        """An array of an operand off chip: content, type and size."""
        held = Held(tensor=access.tensor, array=array, level=level)
        count = self.positions(access, len(access.variables) if level is None else level)
        if array == "pos":
            return held, INT32, add(count, ONE)
        if array == "crd":
            assert level is not None
            return held, INT32, self.bound(access, level)
        return held, self.type, count

    def enter(self, access: Access) -> OperandState:
        """An operand before all loops."""
        state = OperandState(access=access)
        return self.settle(self._near(state, ZERO, ONE))

    def _irregular(self, access: Access) -> bool:
        """Whether any segment of an operand is addressed by a coordinate or a scanner."""
        levels = self.format(access).levels
        last = max(n for n, level in enumerate(levels) if not level.full)
        facts = self.facts[access]
        return any(n < last for n in (*facts.irregular, *facts.joined))

    def _near(self, state: OperandState, begin: Expr, count: Expr) -> OperandState:
        """Load the segments of the next compressed level, for positions from ``begin``."""
        access, levels = state.access, self.format(state.access).levels
        level = state.level + (0 if state.segment is None else 1)
        while level < len(levels) and levels[level].full:
            begin = times(begin, self.extent(access, level))
            count = times(count, self.extent(access, level))
            level += 1
        pinned = pin_positions(irregular=self._irregular(access))
        off_chip = access.tensor not in self.workspaces
        if level == len(levels) or pinned.kind is not MemoryKind.SRAM or not off_chip:
            return replace(state, near=None)
        held, type, size = self.far(access, "pos", level)
        far = self.emitter.far_memory(held, type, size)
        begin, length = self.emitter.bind("first", begin), add(count, ONE)
        name = f"{access.tensor}_pos{level}"
        near = self.emitter.chip(name, MemoryKind.SRAM, INT32, length, pinned.rule, held)
        self.emitter.put(LoadBlock(memory=near, source=far, begin=begin, length=length))
        return replace(state, near=near)

    def settle(self, state: OperandState) -> OperandState:
        """Find the segment below a position, if the next level is compressed."""
        access, level = state.access, state.level
        levels = self.format(access).levels
        if level == len(levels) or levels[level].full:
            return state
        emitter, name = self.emitter, f"{access.tensor}_{level}"
        if access.tensor in self.workspaces:
            memory = self.workspaces[access.tensor].positions[level]
            at = state.position
        elif state.near is not None:
            memory, at = state.near, state.relative
        else:
            pinned = pin_positions(irregular=True)
            memory, at = emitter.view(*self.far(access, "pos", level), pinned.rule), state.position
        after = where_there(at, add(at, ONE)) if state.optional else add(at, ONE)
        begin = emitter.read(f"{name}_begin", memory, at)
        end = emitter.read(f"{name}_end", memory, after)
        length = emitter.bind(f"{name}_length", end - begin)
        settled = replace(state, segment=LevelSegment(begin=begin, length=length), optional=False)
        return self._near(settled, begin, length)

    def at_coordinate(self, state: OperandState, coordinate: Expr) -> OperandState:
        """An operand after a dense level."""
        extent = self.extent(state.access, state.level)
        position = add(times(state.position, extent), coordinate)
        if state.optional:
            position = self.emitter.bind("at", where_there(state.position, position))
        return replace(
            state,
            level=state.level + 1,
            position=position,
            relative=add(times(state.relative, extent), coordinate),
        )

    def at_entry(self, state: OperandState, number: Expr, *, optional: bool) -> OperandState:
        """An operand after a compressed level, at an entry of its segment."""
        assert state.segment is not None
        position = add(state.segment.begin, number)
        if optional:
            position = self.emitter.bind(f"{state.access.tensor}_at", where_there(number, position))
        return replace(
            state,
            level=state.level + 1,
            position=position,
            relative=number,
            optional=optional,
            segment=None,
        )

    def value_memory(self, access: Access) -> str | None:
        """The memory that has an operand's values at positions; ``None`` if a FIFO has them."""
        if access.tensor in self.workspaces:
            return self.workspaces[access.tensor].values
        last = len(access.variables) - 1
        pinned = pin_values(
            joined=last in self.facts[access].joined,
            ends_compressed=not self.format(access).levels[last].full,
        )
        if pinned.kind is MemoryKind.FIFO:
            return None
        return self.emitter.view(*self.far(access, "vals"), pinned.rule)

    def value(self, access: Access, state: OperandState | None, at: Mapping[str, Expr]) -> Expr:
        """The value of an operand where all its variables have coordinates."""
        if not access.variables:
            return self.emitter.argument(access.tensor, self.type, ScalarOf(tensor=access.tensor))
        if state is not None and state.value is not None:
            return state.value
        if state is not None:
            memory = self.value_memory(access)
            assert memory is not None
            return self.emitter.read(f"{access.tensor}_value", memory, state.position, self.type)
        return self._dense_value(access, at)

    def index(self, access: Access, at: Mapping[str, Expr], levels: slice) -> Expr:
        """The address of an access by some of its levels, all dense."""
        index: Expr = Const(value=0, type=INT32)
        modes = self.format(access).modes
        for level in range(len(modes))[levels]:
            coordinate = at[access.variables[modes[level]]]
            index = add(times(index, self.extent(access, level)), coordinate)
        return index

    def _dense_value(self, access: Access, at: Mapping[str, Expr]) -> Expr:
        index = self.index(access, at, slice(None))
        if access.tensor in self.workspaces:
            memory = self.workspaces[access.tensor].values
        else:
            memory = self._dense_memory(access)
        return self.emitter.read(f"{access.tensor}_value", memory, index, self.type)

    def _dense_memory(self, access: Access) -> str:
        emitter, order = self.emitter, len(access.variables)
        irregular = any(
            facts.irregular for other, facts in self.facts.items() if other.tensor == access.tensor
        )
        pinned = pin_dense(order, irregular=irregular, partitions=emitter.partitions)
        held, type, size = self.far(access, "vals")
        if pinned.kind is MemoryKind.SPARSE_DRAM:
            return emitter.view(held, type, size, pinned.rule)
        if access.tensor not in self.whole:
            far = emitter.far_memory(held, type, size)
            near = emitter.chip(
                access.tensor, pinned.kind, type, size, pinned.rule, held, swizzled=True, whole=True
            )
            emitter.head.append(LoadBlock(memory=near, source=far, begin=ZERO, length=size))
            self.whole[access.tensor] = near
        return self.whole[access.tensor]


# Facts about a tensor's access in all loops around it, before lowering.


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessFacts(Term):
    """How the levels of an access are iterated.

    Attributes
    ----------
    irregular: levels whose coordinate comes from a compressed level instead of a counter.
    joined: levels that are joined with others, or with all coordinates.
    """

    irregular: frozenset[int] = frozenset()
    joined: frozenset[int] = frozenset()


@dataclass
class _Walk:
    program: ConcreteProgram
    found: dict[Access, AccessFacts] = field(default_factory=dict)

    def visit(self, statement: Statement, loops: Mapping[str, LoopIteration]) -> None:
        match statement:
            case Forall(variable=variable, body=body):
                iteration = iteration_of(statement, self.program)
                self.visit(body, {**loops, variable: iteration})
            case Where(consumer=consumer, producer=producer):
                self.visit(producer, loops)
                self.visit(consumer, loops)
            case Assign(result=result, value=value):
                for access in (result, *accesses(value)):
                    self.note(access, loops)

    def note(self, access: Access, loops: Mapping[str, LoopIteration]) -> None:
        known = self.found.get(access, AccessFacts())
        if not access.variables:
            return
        format = self.program.format_of(access.tensor)
        for variable in access.variables:
            level = frozenset({level_of(access, variable, format)})
            iteration = loops[variable]
            own = isinstance(iteration, WalkedLevel) and iteration.access == access
            if not own and not isinstance(iteration, AllCoordinates):
                known = replace(known, irregular=known.irregular | level)
            if (
                isinstance(iteration, JoinedLevels | CombinedLevels)
                and access in iteration.accesses
            ):
                known = replace(known, joined=known.joined | level)
        self.found[access] = known


def facts_of(program: ConcreteProgram) -> Mapping[Access, AccessFacts]:
    """The facts of all accesses, including written ones."""
    walk = _Walk(program)
    for stage in program.stages:
        walk.visit(stage, {})
    return walk.found
