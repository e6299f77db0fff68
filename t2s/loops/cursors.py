"""Cursors: where loops are in the levels of the tensors that they read.

A level that lists coordinates is walked by a cursor; a dense one is located into, by its parent's
position and the coordinate.  What is not there at a coordinate has a condition, and no position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from t2s.core.expr import TRUE, Expr, Local, apply, conjunction
from t2s.core.ops import Op
from t2s.loops.ir import LARGEST_COORDINATE, less, local, number, plus, times
from t2s.loops.loop_stage import ArrayLayout, LevelsLayout, LoopStage, extent_of, level_array
from t2s.loops.writing import LoopWriter
from t2s.sparse_repr.concrete.merge import Both, Either, Everything, Leaf, Merge
from t2s.sparse_repr.notation.ir import Access


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """How far the loops are in a tensor: the next level, and the position above it.

    ``end`` is the end of a run of positions, in a list of coordinates.  ``present`` is a condition
    of bools, ``None`` if something is always there.
    """

    level: int = 0
    position: Expr = field(default_factory=lambda: number(0))
    end: Expr | None = None
    present: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The coordinates of the loops around, and how far each access is."""

    coordinates: Mapping[str, Expr]
    reached: Mapping[Access, Reached]

    def at(self, access: Access) -> Reached:
        """How far an access is."""
        return self.reached.get(access, Reached())

    def with_coordinate(self, variable: str, coordinate: Expr) -> Scope:
        """Inside of the loop over a variable."""
        return replace(self, coordinates={**self.coordinates, variable: coordinate})

    def with_reached(self, access: Access, reached: Reached) -> Scope:
        """Further in an access."""
        return replace(self, reached={**self.reached, access: reached})


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinateList:
    """Coordinates in order, of which a loop visits some: ``begin`` to ``end`` of an array.

    Without an array every number is one.  With ``runs`` equal coordinates follow one another.
    """

    access: Access
    array: str
    begin: Expr
    end: Expr
    runs: bool = False

    def coordinate(self, writer: LoopWriter, cursor: Expr) -> Expr:
        """The coordinate under the cursor."""
        return writer.load("at", self.array, cursor) if self.array else cursor

    def run_end(self, writer: LoopWriter, cursor: Expr, coordinate: Expr) -> Local:
        """The end of the run of a coordinate that begins under the cursor."""
        stop = writer.fresh("stop", plus(cursor, number(1)))
        same = writer.fresh("same", TRUE)
        with writer.repeating(conjunction(less(stop, self.end), same) or TRUE):
            following = writer.load("next", self.array, stop)
            writer.set(same, apply(Op.EQUAL, following, coordinate))
            with writer.where(same):
                writer.set(stop, plus(stop, number(1)))
        return stop


@dataclass(frozen=True, slots=True)
class CursorMaker:
    """Cursors of one stage."""

    stage: LoopStage
    writer: LoopWriter
    temporaries: Mapping[str, tuple[str, Expr]]
    """The lists of coordinates of temporaries along a variable, and their lengths."""

    def is_list(self, access: Access, scope: Scope) -> bool:
        """Whether the next level of an access lists its coordinates."""
        if access.tensor in self.temporaries:
            return True
        layout = self.stage.layout(access.tensor)
        if isinstance(layout, ArrayLayout):
            return False
        return not layout.format.levels[scope.at(access).level].full

    def drivers(self, merge: Merge, scope: Scope) -> frozenset[Access] | None:
        """The accesses that bound a loop; ``None`` if it has to visit all coordinates."""
        match merge:
            case Everything() | Either(everything=True):
                return None
            case Leaf(access=access):
                there = scope.at(access).present is None
                return None if there and not self.is_list(access, scope) else frozenset({access})
            case Either(members=members):
                parts = [self.drivers(member, scope) for member in members]
                found = [part for part in parts if part is not None]
                return None if len(found) < len(parts) else frozenset().union(*found)
            case Both(members=members):
                known = [self.drivers(member, scope) for member in members]
                found = [part for part in known if part is not None]
                listed = [p for p in found if any(self.is_list(a, scope) for a in p)] or found
                return frozenset().union(*listed) if listed else None

    def coordinates(self, access: Access, variable: str, scope: Scope) -> CoordinateList:
        """The list of coordinates of the next level of an access; empty where it is not there."""
        reached = scope.at(access)
        if access.tensor in self.temporaries:
            array, length = self.temporaries[access.tensor]
            return CoordinateList(access=access, array=array, begin=number(0), end=length)
        if not self.is_list(access, scope):
            end = self._bounds(reached.present, number(0), local(extent_of(variable)))[1]
            return CoordinateList(access=access, array="", begin=number(0), end=end)
        layout = self.stage.layout(access.tensor)
        assert isinstance(layout, LevelsLayout)
        level = reached.level
        array = self._array(layout, level, "crd")
        last = level == len(layout.format.levels) - 1
        runs = layout.format.coordinate_list and not last
        if reached.end is not None:
            begin, end = reached.position, reached.end
        elif "pos" in dict(layout.indices[level]):
            begin, end = self._segment(self._array(layout, level, "pos"), reached)
        else:
            begin, end = reached.position, plus(reached.position, number(1))
        if reached.end is not None or "pos" not in dict(layout.indices[level]):
            begin, end = self._bounds(reached.present, begin, end)
        return CoordinateList(access=access, array=array, begin=begin, end=end, runs=runs)

    def _array(self, layout: LevelsLayout, level: int, array: str) -> str:
        name = level_array(layout.name, level, array)
        return self.writer.array(name, layout.index(level, array))

    def _segment(self, array: str, reached: Reached) -> tuple[Expr, Expr]:
        """The segment of a fiber; an empty one where there is none."""
        writer, after = self.writer, plus(reached.position, number(1))
        if reached.present is None:
            return writer.load("begin", array, reached.position), writer.load("end", array, after)
        begin, end = writer.fresh("begin", number(0)), writer.fresh("end", number(0))
        with writer.where(reached.present):
            writer.load_into(begin, array, reached.position)
            writer.load_into(end, array, after)
        return begin, end

    def _bounds(self, present: Expr | None, begin: Expr, end: Expr) -> tuple[Expr, Expr]:
        """Both, or an empty range where nothing is there."""
        if present is None:
            return begin, end
        first, last = self.writer.fresh("begin", number(0)), self.writer.fresh("end", number(0))
        with self.writer.where(present):
            self.writer.set(first, begin)
            self.writer.set(last, end)
        return first, last

    def inside(
        self,
        scope: Scope,
        variable: str,
        access: Access,
        coordinate: Expr,
        found: tuple[Expr, Expr | None, Expr | None] | None,
    ) -> Scope:
        """Inside of a loop, where a list was ``found``: its position, end of run, and presence."""
        reached = scope.at(access)
        if access.tensor in self.temporaries:
            assert found is not None
            return scope.with_reached(access, Reached(position=coordinate, present=found[2]))
        layout = self.stage.layout(access.tensor)
        if isinstance(layout, ArrayLayout):
            return scope
        if found is None:
            extent = local(extent_of(variable))
            position: Expr = plus(times(reached.position, extent), coordinate)
            if position not in (reached.position, coordinate):
                position = self.writer.fresh("position", position)
            after = Reached(level=reached.level + 1, position=position, present=reached.present)
        else:
            at, end, present = found
            after = Reached(level=reached.level + 1, position=at, end=end, present=present)
        return scope.with_reached(access, after)


def holds(merge: Merge, here: Mapping[Access, Expr | None], scope: Scope) -> Expr | None:
    """Whether a merge has the coordinate at which ``here`` lists are; ``None``: always."""
    match merge:
        case Everything() | Either(everything=True):
            return None
        case Leaf(access=access):
            return here[access] if access in here else scope.at(access).present
        case Both(members=members):
            return conjunction(*(holds(member, here, scope) for member in members))
        case Either(members=members):
            parts = [holds(member, here, scope) for member in members]
            found = [part for part in parts if part is not None]
            if len(found) < len(parts):
                return None
            result = found[0]
            for part in found[1:]:
                result = apply(Op.OR, result, part)
            return result


def implied(merge: Merge) -> frozenset[Access]:
    """The accesses that are there wherever a merge holds."""
    match merge:
        case Leaf(access=access):
            return frozenset({access})
        case Both(members=members):
            return frozenset().union(*(implied(member) for member in members))
        case _:
            return frozenset()


def is_in(cursor: Expr, end: Expr) -> Expr:
    """Whether a cursor is before the end of its list."""
    return less(cursor, end)


def behind_all() -> Expr:
    """The coordinate of a list at its end."""
    return number(LARGEST_COORDINATE)
