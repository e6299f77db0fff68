"""The result in the loops: declarations before a loop, writes inside, transfers after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from t2s.core.errors import UnsupportedError
from t2s.core.expr import Expr, const
from t2s.core.location import SourceLocation
from t2s.core.types import INT32
from t2s.core.walk import Term
from t2s.patterns.ir import (
    ComputedLevel,
    FullLevel,
    Held,
    LoadBlock,
    MemoryKind,
    ProgramResult,
    Push,
    ResultLevel,
    SharedLevel,
    StoreBlock,
    StoreStream,
    Update,
    WriteMemory,
)
from t2s.sparse_repr.concrete.ir import ConcreteProgram, Forall, Statement, Where, result_of
from t2s.sparse_repr.concrete.merge import Either
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import Access, print_expression
from t2s.sparse_repr.stardust.coiteration import (
    AllCoordinates,
    CombinedLevels,
    JoinedLevels,
    LoopIteration,
    WalkedLevel,
    iteration_of,
)
from t2s.sparse_repr.stardust.emitter import CAPACITY, ONE, ZERO, PinningRule, add, times
from t2s.sparse_repr.stardust.operands import LevelSegment, PatternOperands, WorkspaceArrays


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultState(Term):
    """The state of a result after some of its loops: position, and memory that collects values."""

    level: int = 0
    position: Expr = ZERO
    memory: str | None = None
    base: Expr = ZERO
    begin: Expr | None = None


@dataclass
class ResultWriter:
    """Writes one result; ``operands`` has the sizes of shared levels."""

    operands: PatternOperands
    plan: ResultPlan
    irregular: bool
    allocators: dict[int, str]
    arrays: WorkspaceArrays | None = None

    def size(self, levels: int) -> Expr:
        """An upper bound on the positions of the first ``levels`` levels."""
        count: Expr = ONE
        seen: set[str] = set()
        for level in self.plan.levels[:levels]:
            seen.add(level.variable)
            match level.writing:
                case LevelWriting.DENSE | LevelWriting.FULL:
                    count = times(count, self.operands.emitter.extent(level.variable))
                case LevelWriting.SHARED:
                    assert level.shared is not None
                    count = self.operands.bound(level.shared, level.shared_level)
                case LevelWriting.COMPUTED:
                    count = self._most(level, count, seen)
        return count

    def _most(self, level_plan: LevelPlan, parents: Expr, seen: set[str]) -> Expr:
        """An upper bound on the entries of a computed level."""
        every = times(parents, self.operands.emitter.extent(level_plan.variable))
        match level_plan.iteration:
            case AllCoordinates() | JoinedLevels(right=None):
                return every
            case WalkedLevel(access=access):
                read: tuple[Access, ...] = (access,)
            case CombinedLevels(merge=Either(everything=True)):
                return every
            case JoinedLevels() | CombinedLevels() as joined:
                read = joined.accesses
        total: Expr = ZERO
        for access in read:
            format = self.operands.format(access)
            level = format.modes.index(access.variables.index(level_plan.variable))
            above = {access.variables[mode] for mode in format.modes[: level + 1]}
            if not seen <= above:
                return every
            total = add(total, self.operands.bound(access, level))
        return total

    def begin(self) -> ResultState:
        """Initialize, before all loops: allocators and the first segment at 0, and workspaces."""
        emitter, plan = self.operands.emitter, self.plan
        if plan.on_chip:
            self._declare_workspace()
        for level in plan.computed:
            name = f"{plan.target.tensor}_end{level}"
            rule = PinningRule.ALLOCATOR
            self.allocators[level] = emitter.chip(
                name, MemoryKind.PARTITIONED_SRAM, INT32, const(16), rule
            )
            self._write(self.array("pos", level), ZERO, ZERO)
        return ResultState(memory=None if self.arrays is None else self.arrays.values)

    def _declare_workspace(self) -> None:
        emitter, plan, name = self.operands.emitter, self.plan, self.plan.target.tensor
        positions, coordinates = {}, {}
        for level in plan.computed:
            regular = all(
                above.writing is LevelWriting.DENSE and isinstance(above.iteration, AllCoordinates)
                for above in plan.levels[:level]
            )
            kind = MemoryKind.SRAM if regular else MemoryKind.SPARSE_SRAM
            rule = PinningRule.SEGMENTS if regular else PinningRule.WORKSPACE
            held = Held(tensor=name, array="pos", level=level)
            size = add(self.size(level), ONE) if regular else const(CAPACITY)
            positions[level] = emitter.chip(f"{name}_pos{level}", kind, INT32, size, rule, held)
            coordinates[level] = emitter.chip(
                f"{name}_crd{level}",
                MemoryKind.SPARSE_SRAM,
                INT32,
                const(CAPACITY),
                PinningRule.WORKSPACE,
                Held(tensor=name, array="crd", level=level),
            )
        kind = MemoryKind.SPARSE_SRAM if self.irregular or plan.computed else MemoryKind.SRAM
        rule = PinningRule.TILE if kind is MemoryKind.SRAM else PinningRule.WORKSPACE
        size = const(CAPACITY) if plan.computed else self.size(len(plan.levels))
        held = Held(tensor=name, array="vals")
        values = emitter.chip(name, kind, self.operands.type, size, rule, held)
        bounds = {level: self.size(level + 1) for level in plan.computed}
        self.arrays = WorkspaceArrays(
            values=values, positions=positions, coordinates=coordinates, bounds=bounds
        )
        self.operands.workspaces[name] = self.arrays

    def load(self, far: Access, begin: Expr) -> None:
        """Fill a dense workspace with a contiguous part of a tensor off chip."""
        self._declare_workspace()
        assert self.arrays is not None
        emitter = self.operands.emitter
        source = emitter.far_memory(*self.operands.far(far, "vals"))
        length = self.size(len(self.plan.levels))
        emitter.put(LoadBlock(memory=self.arrays.values, source=source, begin=begin, length=length))

    def array(self, array: str, level: int | None = None) -> str:
        """The memory written word by word."""
        if self.arrays is not None:
            arrays = {"pos": self.arrays.positions, "crd": self.arrays.coordinates}
            return self.arrays.values if level is None else arrays[array][level]
        type = self.operands.type if level is None else INT32
        rule = PinningRule.ALLOCATED if self.plan.computed else PinningRule.SCATTERED
        match array:
            case "pos":
                assert level is not None
                size = add(self.size(level), ONE)
            case "crd":
                assert level is not None
                size = self.size(level + 1)
            case _:
                size = self.size(len(self.plan.levels))
        held = Held(tensor=self.plan.target.tensor, array=array, level=level)
        return self.operands.emitter.view(held, type, size, rule)

    def _write(self, memory: str, index: Expr, value: Expr) -> None:
        emitter = self.operands.emitter
        emitter.put(WriteMemory(memory=memory, index=index, value=value))

    def before(self, state: ResultState, segment: LevelSegment | None, count: Expr) -> ResultState:
        """Prepare a loop of the result over ``segment`` of an operand, or ``count`` iterations."""
        plan, emitter = self.plan, self.operands.emitter
        current = plan.levels[state.level]
        if current.writing is LevelWriting.COMPUTED:
            end = emitter.local(f"{plan.target.tensor}_end")
            emitter.put(
                Update(
                    target=end.name, memory=self.allocators[state.level], index=ZERO, value=count
                )
            )
            begin = emitter.bind("begin", end - count)
            self._write(self.array("pos", state.level), add(state.position, ONE), end)
            state = replace(state, begin=begin)
        staged = plan.mode in (WriteMode.STAGED, WriteMode.STREAMED)
        if not staged or plan.on_chip or state.level != plan.communicate:
            return state
        name, type = plan.target.tensor, self.operands.type
        held = Held(tensor=name, array="vals")
        if plan.mode is WriteMode.STREAMED:
            memory = emitter.queue(f"{name}_vals", type, PinningRule.RESULT_IN_ORDER, held)
        else:
            size = self._below(state.level)
            rule = PinningRule.STAGED
            memory = emitter.chip(name, MemoryKind.SRAM, type, size, rule, held)
        base = state.position
        if segment is not None and current.writing is LevelWriting.SHARED:
            base = segment.begin
        else:
            base = times(base, emitter.extent(current.variable))
        for level in plan.levels[state.level + 1 :]:
            base = times(base, emitter.extent(level.variable))
        return replace(state, memory=memory, base=base)

    def _below(self, level: int) -> Expr:
        """Words of a result below a level, for all coordinates."""
        size: Expr = ONE
        for level_plan in self.plan.levels[level:]:
            size = times(size, self.operands.emitter.extent(level_plan.variable))
        return size

    def inside(
        self, state: ResultState, coordinate: Expr, number: Expr, shared: Expr | None
    ) -> ResultState:
        """The state inside a loop: iteration ``number``, at entry ``shared`` of the operand."""
        plan, emitter = self.plan, self.operands.emitter
        current = plan.levels[state.level]
        match current.writing:
            case LevelWriting.SHARED:
                assert shared is not None
                position = shared
            case LevelWriting.COMPUTED:
                assert state.begin is not None
                position = emitter.bind("place", add(state.begin, number))
                self._write(self.array("crd", state.level), position, coordinate)
            case _:
                position = add(times(state.position, emitter.extent(current.variable)), coordinate)
        return replace(state, level=state.level + 1, position=position, begin=None)

    def after(self, before: ResultState, length: Expr) -> None:
        """The transfer off the chip, after a loop of ``length`` iterations."""
        plan, emitter = self.plan, self.operands.emitter
        staged = plan.mode in (WriteMode.STAGED, WriteMode.STREAMED)
        if not staged or plan.on_chip or before.level != plan.communicate:
            return
        held = Held(tensor=plan.target.tensor, array="vals")
        far = emitter.far_memory(held, self.operands.type, self.size(len(plan.levels)))
        assert before.memory is not None
        if plan.mode is WriteMode.STREAMED:
            words = times(length, self._below(before.level + 1))
            emitter.put(
                StoreStream(target=far, begin=before.base, length=words, queue=before.memory)
            )
            return
        emitter.put(
            StoreBlock(
                target=far,
                begin=before.base,
                length=self._below(before.level),
                memory=before.memory,
            )
        )

    def put(self, state: ResultState, value: Expr, at: Mapping[str, Expr]) -> None:
        """Write a value where all variables of the result have coordinates."""
        plan, emitter = self.plan, self.operands.emitter
        match plan.mode:
            case WriteMode.STREAMED:
                assert state.memory is not None
                emitter.put(Push(queue=state.memory, value=value))
            case WriteMode.STAGED:
                assert state.memory is not None
                levels = slice(plan.communicate, None)
                index = self.operands.index(plan.target, at, levels)
                self._write(state.memory, index, value)
            case WriteMode.SCATTERED:
                index = state.position
                if not plan.computed and all(level.shared is None for level in plan.levels):
                    index = self.operands.index(plan.target, at, slice(None))
                self._write(self.array("vals"), index, value)
            case WriteMode.ADDED:
                index = self.operands.index(plan.target, at, slice(None))
                emitter.put(
                    Update(
                        target=emitter.local("sum").name,
                        memory=self.array("vals"),
                        index=index,
                        value=value,
                    )
                )

    def made(self) -> ProgramResult:
        """The program's description of the result."""
        plan, emitter = self.plan, self.operands.emitter
        name = plan.target.tensor
        levels: list[ResultLevel] = []
        for number, level in enumerate(plan.levels):
            match level.writing:
                case LevelWriting.DENSE:
                    levels.append(None)
                case LevelWriting.FULL:
                    levels.append(FullLevel(extent=emitter.extent(level.variable)))
                case LevelWriting.SHARED:
                    assert level.shared is not None
                    levels.append(SharedLevel(tensor=level.shared.tensor, level=level.shared_level))
                case LevelWriting.COMPUTED:
                    far = [
                        emitter.far_memory(
                            Held(tensor=name, array=array, level=number), INT32, ZERO
                        )
                        for array in ("pos", "crd")
                    ]
                    levels.append(ComputedLevel(positions=far[0], coordinates=far[1]))
        far_values = emitter.far_memory(
            Held(tensor=name, array="vals"), self.operands.type, self.size(len(plan.levels))
        )
        return ProgramResult(tensor=name, values=far_values, levels=tuple(levels))


# The write mode of a result: staged on chip, streamed in an operand's order, or word by word.
#
# A compressed level with the entries of one operand's level is shared with it; one with all
# coordinates is full; the positions of any other are counted and allocated before it is filled
# [Stardust, sec. 6.1].


class WriteMode(Enum):
    """How the values of a result leave the loops."""

    STAGED = "an SRAM, stored behind its loop"
    STREAMED = "a FIFO, stored behind its loop"
    SCATTERED = "word by word"
    ADDED = "word by word, added to what is there"


class LevelWriting(Enum):
    """The treatment of a result's level."""

    DENSE = "dense"
    FULL = "all coordinates"
    SHARED = "an operand's"
    COMPUTED = "counted, allocated, filled"


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelPlan(Term):
    """A level of a result, the iteration of its loop, and the operand that shares it."""

    variable: str
    writing: LevelWriting
    iteration: LoopIteration
    shared: Access | None = None
    shared_level: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPlan(Term):
    """A tensor that a nest writes.

    ``communicate`` is the number of the level at whose loop values move off the chip; ``on_chip``
    results stay.
    """

    target: Access
    mode: WriteMode
    levels: tuple[LevelPlan, ...]
    on_chip: bool
    communicate: int = 0

    @property
    def computed(self) -> tuple[int, ...]:
        """The levels whose positions are allocated."""
        writing = enumerate(self.levels)
        return tuple(n for n, level in writing if level.writing is LevelWriting.COMPUTED)


def plan_of(statement: Statement, program: ConcreteProgram) -> ResultPlan:
    """Plan the writing of a nest's result.  Raises ``UnsupportedError`` for a sum across fibers."""
    target = result_of(statement)
    format = program.format_of(target.tensor)
    loops = _path(statement)
    iterations = {loop.variable: iteration_of(loop, program) for loop in loops}
    on_chip = target.tensor in {tensor.name for tensor in program.on_chip}
    variables = [target.variables[mode] for mode in format.modes]
    order = [loop.variable for loop in loops if loop.variable in target.variables]
    sums = [loop.variable for loop in loops if loop.variable not in target.variables]
    sparse = not all(level.full for level in format.levels)
    if sums and (sparse or on_chip):
        raise UnsupportedError(
            f"{print_expression(target)} is added up over {', '.join(sums)}, whose loop is outside"
            " of its own",
            location=target.location or program.location,
            expected="the loops of sums inside of those of the result, or a dense result",
            hint="reorder() the loops",
        )
    if sparse and order != variables:
        raise UnsupportedError(
            f"the loops do not write {print_expression(target)} level by level",
            location=target.location or program.location,
            expected=f"loops in the order {', '.join(variables)}",
            given=", ".join(order),
        )
    levels = _levels(target, format, iterations, program, on_chip=on_chip)
    mode = _mode(levels, added=bool(sums))
    communicating = [loop for loop in loops if loop.communicate]
    place = target.location or program.location
    communicate = _communicate(mode, levels, order, communicating, place, on_chip=on_chip)
    return ResultPlan(
        target=target, mode=mode, levels=levels, on_chip=on_chip, communicate=communicate
    )


def _path(statement: Statement) -> list[Forall]:
    match statement:
        case Forall(body=body):
            return [statement, *_path(body)]
        case Where(consumer=consumer):
            return _path(consumer)
    return []


def _levels(
    target: Access,
    format: Format,
    iterations: Mapping[str, LoopIteration],
    program: ConcreteProgram,
    *,
    on_chip: bool,
) -> tuple[LevelPlan, ...]:
    plans: list[LevelPlan] = []
    key: tuple[object, ...] = ()
    for kind, mode in zip(format.levels, format.modes, strict=True):
        variable = target.variables[mode]
        iteration = iterations[variable]
        writing, shared, level = LevelWriting.COMPUTED, None, 0
        if kind.full:
            writing = LevelWriting.DENSE
        elif on_chip:
            pass
        elif isinstance(iteration, AllCoordinates):
            writing = LevelWriting.FULL
        elif isinstance(iteration, WalkedLevel):
            shared = iteration.access
            stored = program.format_of(shared.tensor)
            level = stored.modes.index(shared.variables.index(variable))
            made_here = shared.tensor in {tensor.name for tensor in program.on_chip}
            if _key(shared, stored, level) == key and not made_here:
                writing = LevelWriting.SHARED
        key = (*key, _step(writing, variable, shared, level))
        plans.append(
            LevelPlan(
                variable=variable,
                writing=writing,
                iteration=iteration,
                shared=shared if writing is LevelWriting.SHARED else None,
                shared_level=level,
            )
        )
    return tuple(plans)


def _step(writing: LevelWriting, variable: str, shared: Access | None, level: int) -> object:
    """The contribution of a level to the numbering of positions."""
    match writing:
        case LevelWriting.DENSE | LevelWriting.FULL:
            return variable
        case LevelWriting.SHARED:
            return shared, level
        case LevelWriting.COMPUTED:
            return writing, variable


def _key(access: Access, format: Format, levels: int) -> tuple[object, ...]:
    """The numbering of an operand's positions above a level."""
    return tuple(
        access.variables[mode] if kind.full else (access, number)
        for number, (kind, mode) in enumerate(
            zip(format.levels[:levels], format.modes[:levels], strict=True)
        )
    )


def _mode(levels: tuple[LevelPlan, ...], *, added: bool) -> WriteMode:
    if added:
        return WriteMode.ADDED
    writing = [level.writing for level in levels]
    gaps = any(
        level.writing is LevelWriting.DENSE and not isinstance(level.iteration, AllCoordinates)
        for level in levels
    )
    if LevelWriting.COMPUTED in writing or gaps:
        return WriteMode.SCATTERED
    return WriteMode.STREAMED if LevelWriting.SHARED in writing else WriteMode.STAGED


def _communicate(
    mode: WriteMode,
    levels: tuple[LevelPlan, ...],
    order: list[str],
    communicating: list[Forall],
    location: SourceLocation | None,
    *,
    on_chip: bool,
) -> int:
    names = [level.variable for level in levels]
    earliest = max((n for n, level in enumerate(levels) if level.shared is not None), default=0)
    walked = order == names
    latest = len(levels) - 1 if walked else 0
    if on_chip or not levels:
        return 0
    if not communicating:
        return min(max(1, earliest), latest)
    requested = communicating[0].variable
    if mode in (WriteMode.SCATTERED, WriteMode.ADDED):
        raise UnsupportedError(
            f"the result does not move at the loop over {requested}: it is written word by word",
            location=location,
            expected="a result in the order of its loops, without allocated levels",
        )
    number = names.index(requested) if walked else order.index(requested)
    if not earliest <= number <= latest:
        raise UnsupportedError(
            f"the result cannot move at the loop over {requested}",
            location=location,
            expected=f"one of {', '.join(names[earliest:] if walked else order[:1])},"
            " from where on it knows where its entries begin",
        )
    return number
