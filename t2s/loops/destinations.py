"""Where loops put values: dense arrays, locals, workspaces, and levels to which they append.

Values are added up in the order of the loops.  What is not written in that order waits in a
*workspace*: an array over the coordinates, marks that say which of them have a value this time, and
the list of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from t2s.core.expr import TRUE, Const, Expr, Local, apply
from t2s.core.ops import Op
from t2s.core.types import BOOL, Type
from t2s.loops.ir import INDEX, less, local, number, plus, times
from t2s.loops.loop_stage import count_of, extent_of, level_array, room_of, values_of
from t2s.loops.writing import LoopWriter
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.semiring import Semiring

FALSE = Const(value=False, type=BOOL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """The type of values, and what zero and a sum are."""

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
    """Values at coordinates of some variables, in any order; emptied by a new number for marks."""

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
        """Nothing is in it behind this."""
        writer = self.writer
        writer.set(self.turn, plus(self.turn, number(1)))
        writer.set(self.length, number(0))
        writer.set(self.in_order, TRUE)
        writer.set(self.latest, number(-1))

    def key(self, coordinates: Sequence[Expr]) -> Expr:
        """The place of coordinates."""
        place: Expr = number(0)
        for variable, coordinate in zip(self.variables, coordinates, strict=True):
            place = plus(times(place, local(extent_of(variable))), coordinate)
        return place

    def contribute(self, coordinates: Sequence[Expr], value: Expr, *, accumulate: bool) -> None:
        """Add a value at coordinates."""
        writer = self.writer
        key = writer.fresh("key", self.key(coordinates))
        mark = writer.load("mark", self.marks, key)
        with writer.where(apply(Op.EQUAL, mark, self.turn)):
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
            with writer.where(less(key, self.latest)):
                writer.set(self.in_order, FALSE)
            writer.set(self.latest, key)

    def finish(self) -> None:
        """The list in order: by the marks if it is long, else sorted."""
        writer = self.writer
        size = number(1)
        whole: Expr = size
        for variable in self.variables:
            whole = times(whole, local(extent_of(variable)))
        with writer.where(apply(Op.NOT, self.in_order)):
            many = times(self.length, number(16))
            with writer.where(less(whole, many)):
                writer.set(self.length, number(0))
                with writer.counting("place", number(0), whole) as place:
                    mark = writer.load("mark", self.marks, place)
                    with writer.where(apply(Op.EQUAL, mark, self.turn)):
                        writer.store(self.list, self.length, place)
                        writer.set(self.length, plus(self.length, number(1)))
            with writer.otherwise():
                sort_numbers(writer, self.list, self.length)

    def coordinates_of(self, key: Expr) -> tuple[Expr, ...]:
        """The coordinates of a place."""
        found: list[Expr] = []
        rest = key
        for variable in reversed(self.variables[1:]):
            extent = local(extent_of(variable))
            found.append(self.writer.fresh("part", apply(Op.MODULO, rest, extent)))
            rest = self.writer.fresh("rest", apply(Op.FLOOR_DIVIDE, rest, extent))
        return (*([rest] if self.variables else []), *reversed(found))


class DenseResult:
    """A result of dense levels alone, at the place that its coordinates say."""

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
        """The value that is there."""
        return self.writer.load("before", self.array, place, self.arithmetic.type)

    def put(self, place: Expr, value: Expr) -> None:
        """Overwrite the value that is there."""
        self.writer.store(self.array, place, value)


class AppendedResult:
    """Dense levels, and compressed ones below them, whose entries come in order.

    An entry of a level above is put there with the first one below it, so that no fiber of a level
    below a compressed one is empty.
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
        """An entry behind all others."""
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
            same = apply(
                Op.AND, apply(Op.EQUAL, above, parent), apply(Op.EQUAL, latest, coordinate)
            )
            with writer.where(apply(Op.NOT, same)):
                # one more, as the positions of a level below have
                writer.make_room(room_of(self.name, level), plus(count, number(2)))
                writer.store(level_array(self.name, level, "crd"), count, coordinate)
                writer.set(count, plus(count, number(1)))
                position = level_array(self.name, level, "pos")
                writer.store(position, plus(parent, number(1)), count)
                writer.set(above, parent)
                writer.set(latest, coordinate)
            parent = apply(Op.SUBTRACT, count, number(1))
        writer.store(values_of(self.name), parent, value)


def sort_numbers(writer: LoopWriter, array: str, length: Expr) -> None:
    """The first ``length`` numbers of an array, in increasing order: a heap sort, in place."""
    start = writer.fresh("start", apply(Op.FLOOR_DIVIDE, length, number(2)))
    with writer.repeating(less(number(0), start)):
        writer.set(start, apply(Op.SUBTRACT, start, number(1)))
        _sift(writer, array, start, length)
    end = writer.fresh("last", length)
    with writer.repeating(less(number(1), end)):
        writer.set(end, apply(Op.SUBTRACT, end, number(1)))
        first = writer.load("first", array, number(0))
        last = writer.load("moved", array, end)
        writer.store(array, end, first)
        writer.store(array, number(0), last)
        _sift(writer, array, number(0), end)


def _sift(writer: LoopWriter, array: str, root: Expr, end: Expr) -> None:
    """The number at the root goes down until none below it is larger."""
    value = writer.load("value", array, root)
    hole = writer.fresh("hole", root)
    child = writer.fresh("child", plus(times(root, number(2)), number(1)))
    with writer.repeating(less(child, end)):
        largest = writer.load("largest", array, child)
        with writer.where(less(plus(child, number(1)), end)):
            other = writer.load("other", array, plus(child, number(1)))
            with writer.where(less(largest, other)):
                writer.set(child, plus(child, number(1)))
                writer.set(largest, other)
        with writer.where(less(value, largest)):
            writer.store(array, hole, largest)
            writer.set(hole, child)
            writer.set(child, plus(times(child, number(2)), number(1)))
        with writer.otherwise():
            writer.set(child, end)
    writer.store(array, hole, value)
