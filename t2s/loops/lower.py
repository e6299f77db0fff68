"""From a stage of concrete index notation to loops over arrays.

``concrete/merge.py`` says which coordinates a loop visits: all, or those of the levels that bound
it.  One list of coordinates is walked by a cursor; several are merged by visiting the smallest
coordinate under any of their cursors.  Which operands are present at a coordinate is a condition,
so each loop has a single body, however many lists it merges.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

from t2s.core.errors import InternalError
from t2s.core.expr import TRUE, Const, Expr, Local, Select, apply, equals
from t2s.core.ops import Op
from t2s.core.types import Kind, Type
from t2s.core.walk import walk
from t2s.loops.ir import LoopFunction, LoopWriter, local, number, plus, times
from t2s.loops.tensor_access import (
    FALSE,
    AppendedResult,
    Arithmetic,
    ArrayLayout,
    CoordinateList,
    CursorMaker,
    DenseResult,
    LoopStage,
    Reached,
    Scope,
    Workspace,
    behind_all,
    extent_of,
    holds,
    implied,
    is_in,
    step_of,
    values_of,
)
from t2s.sparse_repr.concrete.ir import Assign, Forall, Statement, Where, loops_of, result_of
from t2s.sparse_repr.concrete.merge import Leaf, Merge, expression_of, merge_of
from t2s.sparse_repr.functions import Operator
from t2s.sparse_repr.notation.ir import Access
from t2s.sparse_repr.notation.support import StoredValue, StoredValues


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredStage:
    """Loops, and the variables that index each workspace, by its name."""

    function: LoopFunction
    workspaces: tuple[tuple[str, tuple[str, ...]], ...]


@lru_cache(maxsize=256)
def lower_to_loops(stage: LoopStage) -> LoweredStage:
    """The loops of a stage, cached."""
    return _StageLowering(stage).lowered()


class _StageLowering:
    def __init__(self, stage: LoopStage) -> None:
        self.stage = stage
        self.writer = LoopWriter()
        self.arithmetic = Arithmetic(type=stage.type, semiring=stage.semiring)
        self.result = result_of(stage.statement)
        for variable in _variables(stage.statement):
            self.writer.number(extent_of(variable))
        self.workspaces: dict[str, Workspace] = {}
        self.scalars: dict[str, Local] = {}
        self._make_temporaries()
        self.cursors = CursorMaker(
            stage,
            self.writer,
            {
                name: (workspace.list, workspace.length)
                for name, workspace in self.workspaces.items()
            },
        )
        names = [self.result.variables[mode] for mode in stage.writes.modes]
        self.ordered = tuple(names)
        self.dense: DenseResult | None = None
        self.appended: AppendedResult | None = None
        if all(level.full for level in stage.writes.levels):
            self.dense = DenseResult(self.writer, self.arithmetic, self.result.tensor, names)
        else:
            self.appended = AppendedResult(
                self.writer, self.arithmetic, self.result.tensor, stage.writes, names
            )
        self.suffix = self._make_suffix()
        self.sum: Local | None = None
        self.any: Local | None = None
        self.waiting = False

    def lowered(self) -> LoweredStage:
        self._statement(self.stage.statement, Scope(coordinates={}, reached={}))
        variables = {name: workspace.variables for name, workspace in self.workspaces.items()}
        if self.suffix is not None:
            variables[self.result.tensor] = self.suffix.variables
        return LoweredStage(
            function=self.writer.function(), workspaces=tuple(sorted(variables.items()))
        )

    def _make_temporaries(self) -> None:
        """A local, or a workspace, for each temporary of the stage."""
        for term in walk(self.stage.statement):
            if isinstance(term, Where):
                target = result_of(term.producer)
                if target.variables:
                    self.workspaces[target.tensor] = Workspace(
                        self.writer, self.arithmetic, target.tensor, target.variables
                    )
                else:
                    zero = self.arithmetic.zero
                    self.scalars[target.tensor] = self.writer.fresh(target.tensor, zero)

    def _make_suffix(self) -> Workspace | None:
        """A workspace for the variables of an appended result whose loops are inside of a sum."""
        if self.appended is None:
            return None
        loops = loops_of(self.stage.statement)
        summed = [number for number, name in enumerate(loops) if name not in self.ordered]
        behind = [name for name in loops[summed[0] :] if name in self.ordered] if summed else []
        if not behind:
            return None
        return Workspace(self.writer, self.arithmetic, self.result.tensor, behind)

    # -- statements -------------------------------------------------------------------------------

    def _statement(self, statement: Statement, scope: Scope) -> None:
        match statement:
            case Forall():
                self._forall(statement, scope)
            case Where(consumer=consumer, producer=producer):
                name = result_of(producer).tensor
                if name in self.workspaces:
                    self.workspaces[name].empty()
                    self._statement(producer, scope)
                    self.workspaces[name].finish()
                else:
                    self.writer.set(self.scalars[name], self.arithmetic.zero)
                    self._statement(producer, scope)
                self._statement(consumer, scope)
            case Assign():
                self._assign(statement, scope)
            case _:
                assert_never(statement)

    def _forall(self, loop: Forall, scope: Scope) -> None:
        """A loop; the outermost loop of a sum also gets the accumulator around it."""
        bottom = _bottom(loop)
        own = bottom.result.tensor == self.result.tensor and bottom.accumulate
        if not own or loop.variable in self.ordered:
            self._loop(loop, scope)
            return
        complete = set(self.ordered) <= set(scope.coordinates)
        if complete and self.sum is None:
            self._sum_here(loop, scope)
        elif self.suffix is not None and not self.waiting:
            self.waiting = True
            self.suffix.empty()
            self._loop(loop, scope)
            self._append_workspace(scope)
            self.waiting = False
        else:
            self._loop(loop, scope)

    def _sum_here(self, loop: Forall, scope: Scope) -> None:
        """Accumulate the sum of a loop in a local, for one position of the result."""
        writer = self.writer
        if self.dense is not None:
            place = self.dense.place([scope.coordinates[name] for name in self.ordered])
            self.sum = self.dense.before(place)
            self._loop(loop, scope)
            self.dense.put(place, self.sum)
        elif not self.waiting:
            self.sum = writer.fresh("total", self.arithmetic.zero)
            self.any = writer.fresh("any", FALSE)
            self._loop(loop, scope)
            with writer.where(self.any):
                self._append(scope, self.sum)
            self.any = None
        else:
            self._loop(loop, scope)
        self.sum = None

    def _append(self, scope: Scope, value: Expr) -> None:
        assert self.appended is not None
        self.appended.append([scope.coordinates[name] for name in self.ordered], value)

    def _append_workspace(self, scope: Scope) -> None:
        """Append the entries of the workspace to the result."""
        work, writer = self.suffix, self.writer
        assert work is not None
        work.finish()
        with writer.counting("entry", number(0), work.length) as entry:
            key = writer.load("key", work.list, entry)
            value = writer.load("value", work.values, key, self.stage.type)
            inner = scope
            coordinates = work.coordinates_of(key)
            for variable, coordinate in zip(work.variables, coordinates, strict=True):
                inner = inner.with_coordinate(variable, coordinate)
            self._append(inner, value)

    # -- loops ------------------------------------------------------------------------------------

    def _loop(self, loop: Forall, scope: Scope) -> None:
        variable, writer = loop.variable, self.writer
        merge = merge_of(expression_of(loop), variable, self.stage.semiring)
        leaves = list(dict.fromkeys(leaf.access for leaf in walk(merge) if isinstance(leaf, Leaf)))
        drivers = self.cursors.drivers(merge, scope)
        listed = [
            access
            for access in leaves
            if self.cursors.is_list(access, scope) or access in (drivers or ())
        ]
        lists = [self.cursors.coordinates(access, variable, scope) for access in listed]
        if drivers is None and not lists:
            with writer.counting(variable, number(0), local(extent_of(variable))) as coordinate:
                self._inside(loop, scope, merge, leaves, coordinate, {})
        elif drivers is None:
            self._visit_all(loop, scope, merge, leaves, lists)
        elif len(lists) == 1:
            self._visit_one(loop, scope, merge, leaves, lists[0])
        else:
            self._visit_merged(loop, scope, merge, leaves, lists)

    def _inside(
        self,
        loop: Forall,
        scope: Scope,
        merge: Merge,
        leaves: list[Access],
        coordinate: Expr,
        cursors: dict[Access, tuple[Expr, Expr | None, Expr | None]],
    ) -> None:
        """The body of a loop at a coordinate, with the cursors of its lists."""
        presence = {access: at[2] for access, at in cursors.items()}
        condition = holds(merge, presence, scope)
        certain = implied(merge)
        with self.writer.where(condition):
            inner = scope.with_coordinate(loop.variable, coordinate)
            for access in leaves:
                state = cursors.get(access)
                if state is not None and access in certain:
                    state = (state[0], state[1], None)
                elif state is None and access in certain:
                    reached = scope.at(access)
                    inner = inner.with_reached(access, _certain(reached))
                inner = self.cursors.inside(inner, loop.variable, access, coordinate, state)
            self._statement(loop.body, inner)

    def _visit_all(
        self,
        loop: Forall,
        scope: Scope,
        merge: Merge,
        leaves: list[Access],
        lists: list[CoordinateList],
    ) -> None:
        """Visit all coordinates; the cursors of lists follow."""
        writer, variable = self.writer, loop.variable
        places = [writer.fresh("cursor", walked.begin) for walked in lists]
        with writer.counting(variable, number(0), local(extent_of(variable))) as coordinate:
            states: dict[Access, tuple[Expr, Expr | None, Expr | None]] = {}
            heres: list[Local] = []
            stops: list[Expr] = []
            for walked, cursor in zip(lists, places, strict=True):
                present = writer.fresh("here", FALSE)
                stop: Expr = plus(cursor, number(1))
                if walked.runs:
                    stop = writer.fresh("stop", cursor)
                with writer.where(is_in(cursor, walked.end)):
                    at = walked.coordinate(writer, cursor)
                    writer.set(present, equals(at, coordinate))
                    if walked.runs and isinstance(stop, Local):
                        with writer.where(present):
                            writer.set(stop, walked.run_end(writer, cursor, at))
                states |= _found(walked, cursor, stop if walked.runs else None, present)
                heres.append(present)
                stops.append(stop)
            self._inside(loop, scope, merge, leaves, coordinate, states)
            self._advance(places, heres, stops)

    def _advance(self, places: list[Local], presence: list[Local], stops: list[Expr]) -> None:
        """Advance the cursors that are at the coordinate."""
        for cursor, present, stop in zip(places, presence, stops, strict=True):
            with self.writer.where(present):
                self.writer.set(cursor, stop)

    def _visit_one(
        self,
        loop: Forall,
        scope: Scope,
        merge: Merge,
        leaves: list[Access],
        walked: CoordinateList,
    ) -> None:
        """Visit the coordinates of one list."""
        writer = self.writer
        if not walked.runs:
            with writer.counting("cursor", walked.begin, walked.end) as cursor:
                at = walked.coordinate(writer, cursor)
                self._inside(loop, scope, merge, leaves, at, _found(walked, cursor, None, None))
            return
        cursor = writer.fresh("cursor", walked.begin)
        with writer.repeating(is_in(cursor, walked.end)):
            at = walked.coordinate(writer, cursor)
            stop = walked.run_end(writer, cursor, at)
            self._inside(loop, scope, merge, leaves, at, _found(walked, cursor, stop, None))
            writer.set(cursor, stop)

    def _visit_merged(
        self,
        loop: Forall,
        scope: Scope,
        merge: Merge,
        leaves: list[Access],
        lists: list[CoordinateList],
    ) -> None:
        """Visit the smallest coordinate under any cursor, as long as the merge can have more."""
        writer = self.writer
        places = [writer.fresh("cursor", walked.begin) for walked in lists]
        inside: dict[Access, Expr | None] = {
            walked.access: is_in(cursor, walked.end)
            for walked, cursor in zip(lists, places, strict=True)
        }
        alive = holds(merge, inside, Scope(coordinates={}, reached={}))
        if alive is None:
            raise InternalError(f"nothing ends the loop over {loop.variable}")
        with writer.repeating(alive):
            ats: list[Local] = []
            for walked, cursor in zip(lists, places, strict=True):
                at = writer.fresh("at", behind_all())
                with writer.where(is_in(cursor, walked.end)):
                    writer.set(at, walked.coordinate(writer, cursor))
                ats.append(at)
            smallest: Expr = ats[0]
            for at in ats[1:]:
                smallest = apply(Op.MINIMUM, smallest, at)
            coordinate = writer.fresh(loop.variable, smallest)
            states: dict[Access, tuple[Expr, Expr | None, Expr | None]] = {}
            heres: list[Local] = []
            stops: list[Expr] = []
            for walked, cursor, at in zip(lists, places, ats, strict=True):
                present = writer.fresh("here", equals(at, coordinate))
                stop: Expr = plus(cursor, number(1))
                if walked.runs:
                    stop = writer.fresh("stop", cursor)
                    with writer.where(present):
                        writer.set(stop, walked.run_end(writer, cursor, coordinate))
                states |= _found(walked, cursor, stop if walked.runs else None, present)
                heres.append(present)
                stops.append(stop)
            self._inside(loop, scope, merge, leaves, coordinate, states)
            self._advance(places, heres, stops)

    # -- values -----------------------------------------------------------------------------------

    def _assign(self, assign: Assign, scope: Scope) -> None:
        computed = _LoopValues(self, scope).value(assign.value)
        value, stored = computed.value, computed.there
        name, writer = assign.result.tensor, self.writer
        if name in self.scalars:
            before = self.scalars[name]
            added = self.arithmetic.added(before, value) if assign.accumulate else value
            writer.set(before, added)
        elif name in self.workspaces:
            work = self.workspaces[name]
            with writer.where(stored):
                at = [scope.coordinates[variable] for variable in assign.result.variables]
                work.contribute(at, value, accumulate=assign.accumulate)
        elif self.sum is not None:
            writer.set(self.sum, self.arithmetic.added(self.sum, value))
            if self.any is not None:
                writer.set(self.any, TRUE if stored is None else self.any | stored)
        elif self.waiting:
            assert self.suffix is not None
            with writer.where(stored):
                at = [scope.coordinates[variable] for variable in self.suffix.variables]
                self.suffix.contribute(at, value, accumulate=True)
        elif self.dense is not None:
            place = self.dense.place(
                [scope.coordinates[variable_name] for variable_name in self.ordered]
            )
            if assign.accumulate:
                value = self.arithmetic.added(self.dense.before(place), value)
            self.dense.put(place, value)
        else:
            with writer.where(stored):
                self._append(scope, value)


def _found(
    walked: CoordinateList, cursor: Expr, stop: Expr | None, present: Expr | None
) -> dict[Access, tuple[Expr, Expr | None, Expr | None]]:
    return {walked.access: (cursor, stop, present)} if walked.array else {}


def _certain(reached: Reached) -> Reached:
    """The same, known to be present."""
    return Reached(level=reached.level, position=reached.position, end=reached.end)


def _bottom(statement: Statement) -> Assign:
    """The innermost assignment of the consumers."""
    match statement:
        case Assign():
            return statement
        case Forall(body=body):
            return _bottom(body)
        case Where(consumer=consumer):
            return _bottom(consumer)


def _variables(statement: Statement) -> tuple[str, ...]:
    """The variables of all loops, in order."""
    names = (term.variable for term in walk(statement) if isinstance(term, Forall))
    return tuple(dict.fromkeys(names))


class _LoopValues(StoredValues[Expr, Expr]):
    """Writes the loads of an expression at the current point of the loops, and computes it."""

    never = FALSE

    def __init__(self, lowering: _StageLowering, scope: Scope) -> None:
        self.lowering, self.scope = lowering, scope
        self.semiring, self.type = lowering.stage.semiring, lowering.stage.type
        self.loaded: dict[Access, StoredValue[Expr, Expr]] = {}

    def number(self, number: float | int) -> Expr:
        return Const(value=_computed_in(self.type, number), type=self.type)

    def apply(self, operator: Operator, *operands: Expr) -> Expr:
        if isinstance(operator, Op):
            return apply(operator, *operands)
        return operator.expression(*operands)

    def zero_unless(self, where: Expr, value: Expr) -> Expr:
        zero = self.lowering.arithmetic.zero
        return Select(condition=where, if_true=value, if_false=zero, type=self.type)

    def both(self, one: Expr, other: Expr) -> Expr:
        return one & other

    def either(self, one: Expr, other: Expr) -> Expr:
        return one | other

    def read(self, access: Access) -> StoredValue[Expr, Expr]:
        if access.tensor in self.lowering.scalars:
            return StoredValue(self.lowering.scalars[access.tensor], None)
        if access not in self.loaded:
            self.loaded[access] = self._load(access)
        return self.loaded[access]

    def _load(self, access: Access) -> StoredValue[Expr, Expr]:
        writer, type, scope = self.lowering.writer, self.type, self.scope
        reached = scope.at(access)
        position: Expr
        if access.tensor in self.lowering.workspaces:
            array = self.lowering.workspaces[access.tensor].values
            position = scope.coordinates[access.variables[0]]
        else:
            layout = self.lowering.stage.layout(access.tensor)
            array = writer.array(values_of(access.tensor), type)
            position = reached.position
            if isinstance(layout, ArrayLayout):
                position = number(0)
                for mode, name in enumerate(access.variables):
                    step: Expr = number(1)
                    if mode not in layout.unit:
                        step = writer.number(step_of(access.tensor, mode))
                    position = plus(position, times(scope.coordinates[name], step))
        if reached.present is None:
            return StoredValue(writer.load("loaded", array, position, type), None)
        loaded = writer.fresh("loaded", self.lowering.arithmetic.zero)
        with writer.where(reached.present):
            writer.load_into(loaded, array, position)
        return StoredValue(loaded, reached.present)


def _computed_in(type: Type, number: float | int) -> float | int:
    """An integer, wrapped around to a type."""
    if not isinstance(number, int) or not type.is_integer:
        return number
    number &= (1 << type.bits) - 1
    negative = type.kind is Kind.INT and number >> type.bits - 1
    return number - (1 << type.bits) if negative else number
