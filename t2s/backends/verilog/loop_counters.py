"""The loop counters of a PE: statements that set the next iteration from the present one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from t2s.backends.text.expressions import (
    Binary,
    If,
    Name,
    TargetExpression,
    TargetStatement,
    number,
)
from t2s.backends.verilog.expressions import ExpressionWriter
from t2s.backends.verilog.verilog_ast import (
    FALSE,
    TRUE,
    Resize,
    UnrolledFor,
    either,
    negation,
    put,
)
from t2s.graph.nodes import Loop


@dataclass(frozen=True, kw_only=True)
class CounterNames:
    """Identifiers of the counters and of what is computed on the way to the next iteration."""

    now: tuple[str, ...]
    after: tuple[str, ...]
    finished: str
    finishes: str
    level: str
    rising: str
    searching: str


@dataclass(frozen=True, kw_only=True)
class NestCounters:
    """Writes the block that computes the next iteration; in reset, the first one.

    ``present`` and ``coming`` write bounds over the counters of the present and of the coming
    iteration; ``exists`` says whether there is a PE.
    """

    loops: Sequence[Loop]
    names: CounterNames
    present: ExpressionWriter
    coming: ExpressionWriter
    exists: TargetExpression
    reset: TargetExpression

    def simple(self) -> tuple[TargetStatement, ...]:
        """Each loop that is not at its end moves on, and those inside of it start anew."""
        names = self.names
        start: list[TargetStatement] = [
            put(name, self.coming.index(loop.minimum))
            for loop, name in zip(self.loops, names.after, strict=True)
        ]
        empty = [
            Binary(operator="<=", left=self.coming.index(loop.extent), right=number(0))
            for loop in self.loops
        ]
        start.append(put(names.finishes, either(negation(self.exists), *empty)))
        step: tuple[TargetStatement, ...] = (put(names.finishes, TRUE),)
        for at in range(len(self.loops)):
            moved = _plus(Name(name=names.now[at]), number(1))
            inside = range(at + 1, len(self.loops))
            then: list[TargetStatement] = [put(names.after[at], moved)]
            then += [
                put(names.after[level], self.coming.index(self.loops[level].minimum))
                for level in inside
            ]
            more = Binary(operator="<", left=moved, right=self._limit(at, self.present))
            step = (If(condition=more, then=tuple(then), otherwise=step),)
        return (
            *self._kept(),
            put(names.finishes, Name(name=names.finished)),
            If(condition=self.reset, then=tuple(start), otherwise=step),
        )

    def searching(self, steps: int) -> tuple[TargetStatement, ...]:
        """At most so many steps up and down the nest, past loops without iterations."""
        names, depth = self.names, len(self.loops)
        level = Name(name=names.level)
        body: tuple[TargetStatement, ...] = ()
        for at in reversed(range(depth)):
            here = Binary(operator="==", left=level, right=number(at))
            if at == depth - 1:
                body = self._search_step(at)
            else:
                body = (If(condition=here, then=self._search_step(at), otherwise=body),)
        return (
            *self._kept(),
            put(names.rising, negation(self.reset)),
            If(
                condition=self.reset,
                then=(
                    put(names.level, number(0)),
                    put(names.searching, self.exists),
                    put(names.finishes, negation(self.exists)),
                ),
                otherwise=(
                    put(names.level, number(depth - 1)),
                    put(names.searching, TRUE),
                    put(names.finishes, Name(name=names.finished)),
                ),
            ),
            UnrolledFor(
                variable="step",
                count=steps,
                body=(If(condition=Name(name=names.searching), then=body),),
            ),
        )

    def _search_step(self, at: int) -> tuple[TargetStatement, ...]:
        names, innermost = self.names, at == len(self.loops) - 1
        index = names.after[at]
        enter: tuple[TargetStatement, ...]
        if innermost:
            enter = (put(names.searching, FALSE),)
        else:
            enter = (put(names.level, number(at + 1)), put(names.rising, FALSE))
        leave: tuple[TargetStatement, ...]
        if at == 0:
            leave = (put(names.searching, FALSE), put(names.finishes, TRUE))
        else:
            leave = (put(names.level, number(at - 1)), put(names.rising, TRUE))
        more = Binary(operator="<", left=Name(name=index), right=self._limit(at, self.coming))
        return (
            If(
                condition=Name(name=names.rising),
                then=(put(index, _plus(Name(name=index), number(1))),),
                otherwise=(put(index, self.coming.index(self.loops[at].minimum)),),
            ),
            If(condition=more, then=enter, otherwise=leave),
        )

    def _kept(self) -> list[TargetStatement]:
        pairs = zip(self.names.after, self.names.now, strict=True)
        return [put(after, Name(name=now)) for after, now in pairs]

    def _limit(self, at: int, writer: ExpressionWriter) -> TargetExpression:
        loop = self.loops[at]
        if writer.index(loop.minimum) == number(0):
            return writer.index(loop.extent)
        return _plus(writer.index(loop.minimum), writer.index(loop.extent))


def _plus(left: TargetExpression, right: TargetExpression) -> TargetExpression:
    return Resize(bits=32, value=Binary(operator="+", left=left, right=right))
