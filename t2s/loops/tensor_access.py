"""Tensors in loops: their arrays as arguments, cursors that read levels, destinations for results.

A level that lists coordinates is walked by a cursor; in a dense one, the parent's position and the
coordinate give the position.  An operand that may be absent at a coordinate has a condition, and
its position only means something where that holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from t2s.core.expr import TRUE, Const, Expr, Local, all_hold, apply, conjunction, equals
from t2s.core.types import BOOL, Type
from t2s.core.walk import Term
from t2s.loops.ir import INDEX, LARGEST_COORDINATE, LoopWriter, local, number, plus, times
from t2s.sparse_repr.concrete.ir import Statement
from t2s.sparse_repr.concrete.merge import Both, Either, Everything, Leaf, Merge
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.levels import Compressed, Singleton
from t2s.sparse_repr.notation.ir import Access
from t2s.sparse_repr.semiring import Semiring


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """How far the loops are in a tensor: the next level, and the position above it.

    ``end`` is the end of a run of positions in a coordinate list.  ``present`` is the condition
    under which the position exists; ``None`` means always.
    """

    level: int = 0
    position: Expr = field(default_factory=lambda: number(0))
    end: Expr | None = None
    present: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The coordinates of the enclosing loops, and how far each access is."""

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
    """A sorted list of coordinates: elements ``begin`` to ``end`` of an array.

    Without an array, every number in the range is a coordinate.  With ``runs``, coordinates repeat.
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
        """The end of the run of equal coordinates that begins under the cursor."""
        stop = writer.fresh("stop", plus(cursor, number(1)))
        same = writer.fresh("same", TRUE)
        with writer.repeating(all_hold(stop < self.end, same)):
            following = writer.load("next", self.array, stop)
            writer.set(same, equals(following, coordinate))
            with writer.where(same):
                writer.set(stop, plus(stop, number(1)))
        return stop


@dataclass(frozen=True, slots=True)
class CursorMaker:
    """Makes the cursors of one stage."""

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
        """The accesses whose coordinates bound a loop; ``None`` if it visits all coordinates."""
        match merge:
            case Everything() | Either(everything=True):
                return None
            case Leaf(access=access):
                certain = scope.at(access).present is None
                return None if certain and not self.is_list(access, scope) else frozenset({access})
            case Either(members=members):
                parts = [self.drivers(member, scope) for member in members]
                bounding = [part for part in parts if part is not None]
                return None if len(bounding) < len(parts) else frozenset().union(*bounding)
            case Both(members=members):
                known = [self.drivers(member, scope) for member in members]
                bounding = [part for part in known if part is not None]
                listed = [p for p in bounding if any(self.is_list(a, scope) for a in p)] or bounding
                return frozenset().union(*listed) if listed else None

    def coordinates(self, access: Access, variable: str, scope: Scope) -> CoordinateList:
        """The coordinates of the next level of an access; an empty list where it is absent."""
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
        """The bounds of a fiber; an empty range where it is absent."""
        writer, after = self.writer, plus(reached.position, number(1))
        if reached.present is None:
            return writer.load("begin", array, reached.position), writer.load("end", array, after)
        begin, end = writer.fresh("begin", number(0)), writer.fresh("end", number(0))
        with writer.where(reached.present):
            writer.load_into(begin, array, reached.position)
            writer.load_into(end, array, after)
        return begin, end

    def _bounds(self, present: Expr | None, begin: Expr, end: Expr) -> tuple[Expr, Expr]:
        """The bounds, or an empty range where a condition does not hold."""
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
        cursor: tuple[Expr, Expr | None, Expr | None] | None,
    ) -> Scope:
        """The scope in a loop.  ``cursor``: position, end of the run, and presence in a list."""
        reached = scope.at(access)
        if access.tensor in self.temporaries:
            assert cursor is not None
            return scope.with_reached(access, Reached(position=coordinate, present=cursor[2]))
        layout = self.stage.layout(access.tensor)
        if isinstance(layout, ArrayLayout):
            return scope
        if cursor is None:
            extent = local(extent_of(variable))
            position: Expr = plus(times(reached.position, extent), coordinate)
            if position not in (reached.position, coordinate):
                position = self.writer.fresh("position", position)
            after = Reached(level=reached.level + 1, position=position, present=reached.present)
        else:
            at, end, present = cursor
            after = Reached(level=reached.level + 1, position=at, end=end, present=present)
        return scope.with_reached(access, after)


def holds(merge: Merge, presence: Mapping[Access, Expr | None], scope: Scope) -> Expr | None:
    """Whether a merge has the current coordinate, by the presence of lists; ``None``: always."""
    match merge:
        case Everything() | Either(everything=True):
            return None
        case Leaf(access=access):
            return presence[access] if access in presence else scope.at(access).present
        case Both(members=members):
            return conjunction(*(holds(member, presence, scope) for member in members))
        case Either(members=members):
            parts = [holds(member, presence, scope) for member in members]
            conditions = [part for part in parts if part is not None]
            if len(conditions) < len(parts):
                return None
            result = conditions[0]
            for part in conditions[1:]:
                result = result | part
            return result


def implied(merge: Merge) -> frozenset[Access]:
    """The accesses that are present wherever a merge holds."""
    match merge:
        case Leaf(access=access):
            return frozenset({access})
        case Both(members=members):
            return frozenset().union(*(implied(member) for member in members))
        case _:
            return frozenset()


def is_in(cursor: Expr, end: Expr) -> Expr:
    """Whether a cursor is before the end of its list."""
    return cursor < end


def behind_all() -> Expr:
    """A coordinate larger than all others, which an exhausted list gets."""
    return number(LARGEST_COORDINATE)


# The layout of tensors in memory, as far as machine code depends on it: without extents.


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayLayout(Term):
    """A dense tensor, read by the strides of its modes.

    ``unit`` are the modes with stride 1, known to the compiler; other strides are arguments.
    """

    name: str
    unit: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelsLayout(Term):
    """A tensor with its levels; ``indices`` are the types of the arrays of each level, by name."""

    name: str
    format: Format
    indices: tuple[tuple[tuple[str, Type], ...], ...]

    def index(self, level: int, array: str) -> Type:
        """The type of an array of a level."""
        return dict(self.indices[level])[array]


TensorLayout = ArrayLayout | LevelsLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopStage(Term):
    """A stage, with the layouts of its operands and the format of its result."""

    statement: Statement
    reads: tuple[TensorLayout, ...]
    writes: Format
    type: Type
    semiring: Semiring

    def layout(self, name: str) -> TensorLayout:
        """The layout of a tensor that the stage reads; ``KeyError`` if it does not."""
        for layout in self.reads:
            if layout.name == name:
                return layout
        raise KeyError(name)


def walkable(format: Format) -> bool:
    """Whether loops can walk these levels: dense, compressed, singleton, or a coordinate list."""
    kinds = (Compressed, Singleton)
    return format.coordinate_list or all(
        level.full or type(level) in kinds for level in format.levels
    )


def writable(format: Format) -> bool:
    """Whether loops can write these levels: dense ones, and compressed ones below them."""
    below = False
    for level in format.levels:
        if level.full and below:
            return False
        if not level.full and type(level) is not Compressed:
            return False
        below = below or not level.full
    return True


def values_of(name: str) -> str:
    """The argument with the values of a tensor."""
    return f"{name}_values"


def level_array(name: str, level: int, array: str) -> str:
    """The argument with an array of a level."""
    return f"{name}_{array}{level}"


def step_of(name: str, mode: int) -> str:
    """The argument with the stride of a mode, in elements."""
    return f"{name}_step{mode}"


def extent_of(variable: str) -> str:
    """The argument with the extent of a variable."""
    return f"{variable}_extent"


def count_of(name: str, level: int) -> str:
    """The argument with the number of coordinates written to a level."""
    return f"{name}_count{level}"


def room_of(name: str, level: int) -> str:
    """The argument with the capacity of a level that is written."""
    return f"{name}_room{level}"


# Where loops put values: dense arrays, locals, workspaces, and levels to which they append.
#
# Values are added up in the order of the loops.  What is not produced in the order of the result
# is collected in a *workspace*: an array over the coordinates, marks that say which of them have a
# value, and a list of these coordinates.

FALSE = Const(value=False, type=BOOL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """The type of values, with the zero and the sum of the semiring."""

    type: Type
    semiring: Semiring

    @property
    def zero(self) -> Const:
        """The value where nothing is stored."""
        return Const(value=self.semiring.zero, type=self.type)

    def added(self, left: Expr, right: Expr) -> Expr:
        """The sum of two values."""
        return apply(self.semiring.add, left, right)


class Workspace:
    """Values at coordinates of some variables, in any order.

    A coordinate is occupied if its mark is the current ``turn``, so that counting up the turn
    empties the workspace without touching the array.
    """

    def __init__(
        self, writer: LoopWriter, arithmetic: Arithmetic, name: str, variables: Sequence[str]
    ) -> None:
        self.writer, self.arithmetic, self.variables = writer, arithmetic, tuple(variables)
        self.values = writer.array(f"{name}_work", arithmetic.type, written=True)
        self.marks = writer.array(f"{name}_marks", INDEX, written=True)
        self.list = writer.array(f"{name}_list", INDEX, written=True)
        self.turn = writer.fresh(f"{name}_turn", number(0))
        self.length = writer.fresh(f"{name}_length", number(0))
        self.in_order = writer.fresh(f"{name}_in_order", TRUE)
        self.latest = writer.fresh(f"{name}_latest", number(-1))

    def empty(self) -> None:
        """Empty the workspace."""
        writer = self.writer
        writer.set(self.turn, plus(self.turn, number(1)))
        writer.set(self.length, number(0))
        writer.set(self.in_order, TRUE)
        writer.set(self.latest, number(-1))

    def key(self, coordinates: Sequence[Expr]) -> Expr:
        """The index of coordinates."""
        place: Expr = number(0)
        for variable, coordinate in zip(self.variables, coordinates, strict=True):
            place = plus(times(place, local(extent_of(variable))), coordinate)
        return place

    def contribute(self, coordinates: Sequence[Expr], value: Expr, *, accumulate: bool) -> None:
        """Add a value at coordinates."""
        writer = self.writer
        key = writer.fresh("key", self.key(coordinates))
        mark = writer.load("mark", self.marks, key)
        with writer.where(equals(mark, self.turn)):
            before = writer.load("before", self.values, key, self.arithmetic.type)
            added = self.arithmetic.added(before, value) if accumulate else value
            writer.store(self.values, key, added)
        with writer.otherwise():
            writer.store(self.marks, key, self.turn)
            zero = self.arithmetic.zero
            writer.store(
                self.values, key, self.arithmetic.added(zero, value) if accumulate else value
            )
            writer.store(self.list, self.length, key)
            writer.set(self.length, plus(self.length, number(1)))
            with writer.where(key < self.latest):
                writer.set(self.in_order, FALSE)
            writer.set(self.latest, key)

    def finish(self) -> None:
        """Sort the list of keys: by a scan over all marks if it is long, else by a heap sort."""
        writer = self.writer
        size = number(1)
        whole: Expr = size
        for variable in self.variables:
            whole = times(whole, local(extent_of(variable)))
        with writer.where(~self.in_order):
            many = times(self.length, number(16))
            with writer.where(whole < many):
                writer.set(self.length, number(0))
                with writer.counting("place", number(0), whole) as place:
                    mark = writer.load("mark", self.marks, place)
                    with writer.where(equals(mark, self.turn)):
                        writer.store(self.list, self.length, place)
                        writer.set(self.length, plus(self.length, number(1)))
            with writer.otherwise():
                sort_numbers(writer, self.list, self.length)

    def coordinates_of(self, key: Expr) -> tuple[Expr, ...]:
        """The coordinates of an index."""
        coordinates: list[Expr] = []
        rest = key
        for variable in reversed(self.variables[1:]):
            extent = local(extent_of(variable))
            coordinates.append(self.writer.fresh("part", rest % extent))
            rest = self.writer.fresh("rest", rest // extent)
        return (*([rest] if self.variables else []), *reversed(coordinates))


class DenseResult:
    """A dense result, indexed by its coordinates."""

    def __init__(
        self, writer: LoopWriter, arithmetic: Arithmetic, name: str, variables: Sequence[str]
    ) -> None:
        self.writer, self.arithmetic, self.variables = writer, arithmetic, tuple(variables)
        self.array = writer.array(values_of(name), arithmetic.type, written=True)

    def place(self, coordinates: Sequence[Expr]) -> Expr:
        """The position of coordinates."""
        place: Expr = number(0)
        for variable, coordinate in zip(self.variables, coordinates, strict=True):
            place = plus(times(place, local(extent_of(variable))), coordinate)
        return self.writer.fresh("place", place)

    def before(self, place: Expr) -> Local:
        """The current value."""
        return self.writer.load("before", self.array, place, self.arithmetic.type)

    def put(self, place: Expr, value: Expr) -> None:
        """Overwrite the current value."""
        self.writer.store(self.array, place, value)


class AppendedResult:
    """Dense levels, and compressed ones below them, whose entries are appended in order.

    An entry of a compressed level is appended together with the first one below it, so that no
    fiber below it is empty.
    """

    def __init__(
        self,
        writer: LoopWriter,
        arithmetic: Arithmetic,
        name: str,
        format: Format,
        variables: Sequence[str],
    ) -> None:
        self.writer, self.name, self.format = writer, name, format
        self.variables = tuple(variables)
        self.counts: dict[int, Local] = {}
        self.latest: dict[int, tuple[Local, Local]] = {}
        below: str = ""
        last = len(format.levels) - 1
        for level, kind in enumerate(format.levels):
            if kind.full:
                continue
            room = room_of(name, level)
            writer.array(level_array(name, level, "pos"), INDEX, written=True, grows=below)
            writer.array(level_array(name, level, "crd"), INDEX, written=True, grows=room)
            if level == last:
                writer.array(values_of(name), arithmetic.type, written=True, grows=room)
            self.counts[level] = writer.number(count_of(name, level), returned=True)
            self.latest[level] = (
                writer.fresh(f"{name}_parent{level}", number(-1)),
                writer.fresh(f"{name}_latest{level}", number(-1)),
            )
            below = room

    def append(self, coordinates: Sequence[Expr], value: Expr) -> None:
        """Append an entry."""
        writer = self.writer
        parent: Expr = number(0)
        for level, kind in enumerate(self.format.levels):
            coordinate = coordinates[level]
            if kind.full:
                extent = local(extent_of(self.variables[level]))
                parent = plus(times(parent, extent), coordinate)
                continue
            count, (above, latest) = self.counts[level], self.latest[level]
            parent = writer.fresh("parent", parent)
            same = equals(above, parent) & equals(latest, coordinate)
            with writer.where(~same):
                # one more than its coordinates: the positions of the level below
                writer.make_room(room_of(self.name, level), plus(count, number(2)))
                writer.store(level_array(self.name, level, "crd"), count, coordinate)
                writer.set(count, plus(count, number(1)))
                position = level_array(self.name, level, "pos")
                writer.store(position, plus(parent, number(1)), count)
                writer.set(above, parent)
                writer.set(latest, coordinate)
            parent = count - 1
        writer.store(values_of(self.name), parent, value)


def sort_numbers(writer: LoopWriter, array: str, length: Expr) -> None:
    """Sort the first ``length`` numbers of an array in place, by a heap sort."""
    start = writer.fresh("start", length // 2)
    with writer.repeating(number(0) < start):
        writer.set(start, start - 1)
        _sift(writer, array, start, length)
    end = writer.fresh("last", length)
    with writer.repeating(number(1) < end):
        writer.set(end, end - 1)
        first = writer.load("first", array, number(0))
        last = writer.load("moved", array, end)
        writer.store(array, end, first)
        writer.store(array, number(0), last)
        _sift(writer, array, number(0), end)


def _sift(writer: LoopWriter, array: str, root: Expr, end: Expr) -> None:
    """Sift the root of a heap down."""
    value = writer.load("value", array, root)
    hole = writer.fresh("hole", root)
    child = writer.fresh("child", plus(times(root, number(2)), number(1)))
    with writer.repeating(child < end):
        largest = writer.load("largest", array, child)
        with writer.where(plus(child, number(1)) < end):
            other = writer.load("other", array, plus(child, number(1)))
            with writer.where(largest < other):
                writer.set(child, plus(child, number(1)))
                writer.set(largest, other)
        with writer.where(value < largest):
            writer.store(array, hole, largest)
            writer.set(hole, child)
            writer.set(child, plus(times(child, number(2)), number(1)))
        with writer.otherwise():
            writer.set(child, end)
    writer.store(array, hole, value)
