"""Sorting numbers in an array, as statements: a heap sort, since it needs no other memory."""

from __future__ import annotations

from t2s.core.expr import Expr, apply
from t2s.core.ops import Op
from t2s.loops.ir import less, number, plus, times
from t2s.loops.writing import LoopWriter


def sort_numbers(writer: LoopWriter, array: str, length: Expr) -> None:
    """The first ``length`` numbers of an array, in increasing order."""
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
