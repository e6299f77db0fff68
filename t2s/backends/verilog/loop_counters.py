"""The loop counters of a PE: their registers, and statements that compute the next iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from t2s.backends.text.expressions import (
    Binary,
    If,
    Name,
    TargetExpression,
    TargetStatement,
    call,
    number,
)
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.expressions import ExpressionWriter
from t2s.core.expr import Const, Index, simplify
from t2s.core.intervals import Interval, interval
from t2s.core.types import INT32
from t2s.graph.nodes import Loop, PEArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """The register of a loop index."""

    type: ast.Bits

    def value(self, name: str) -> TargetExpression:
        """The content of a register of that type, as a signed number of 32 bits."""
        if self.type.width == 32:
            return Name(name=name)
        wide = ast.Resize(bits=32, value=Name(name=name))
        return wide if self.type.signed else call("$signed", wide)


def counters_of(node: PEArray, searched: bool) -> tuple[Counter, ...]:
    """The registers of all loops; with ``searched`` indices also go one beyond their last value."""
    ranges: dict[str, Interval] = {
        d.name: (d.minimum, d.minimum + max(d.extent, 1) - 1) for d in node.space
    }
    counters: list[Counter] = []
    for loop in node.loops:
        low, extent = interval(loop.minimum, ranges), interval(loop.extent, ranges)
        if low is None or extent is None:
            counters.append(Counter(type=ast.INTEGER))
            continue
        last = low[1] + max(extent[1], 1) - 1
        ranges[loop.name] = (low[0], last)
        counters.append(Counter(type=_width_of(low[0], last + searched)))
    return tuple(counters)


def _width_of(low: int, high: int) -> ast.Bits:
    bits = max(low.bit_length() if low >= 0 else (-low - 1).bit_length(), high.bit_length(), 1)
    if low >= 0 and bits < 32:
        return ast.Bits(width=bits)
    return ast.Bits(width=min(bits + 1, 32), signed=True)


@dataclass(frozen=True, kw_only=True)
class CounterNames:
    """Identifiers of the counters, and of the variables for computing the next iteration."""

    now: tuple[str, ...]
    after: tuple[str, ...]
    finished: str
    finishes: str
    level: str
    rising: str
    searching: str


@dataclass(frozen=True, kw_only=True)
class NestCounters:
    """Writes the block that computes the next iteration, or in reset the first one.

    ``present`` and ``coming`` write bounds over the counters of the present and of the next
    iteration.  ``reset`` is ``None`` if the registers themselves begin with the first iteration.
    """

    loops: Sequence[Loop]
    counters: Sequence[Counter]
    names: CounterNames
    present: ExpressionWriter
    coming: ExpressionWriter
    reset: TargetExpression | None

    def simple(self) -> tuple[TargetStatement, ...]:
        """The innermost loop that is not at its end advances, and those inside of it restart.

        No loop of the nest is empty, or all of it is.
        """
        names = self.names
        kept = (*self._kept(), ast.put(names.finishes, Name(name=names.finished)))
        if self.reset is None:
            return (*kept, *self._step())
        start = [self._restart(at) for at in range(len(self.loops))]
        empty = [
            Binary(operator="<=", left=self.coming.index(loop.extent), right=number(0))
            for loop in self.loops
            if not (isinstance(loop.extent, Const) and loop.extent.value > 0)
        ]
        start.append(ast.put(names.finishes, ast.either(*empty)))
        return (*kept, If(condition=self.reset, then=tuple(start), otherwise=self._step()))

    def _step(self) -> tuple[TargetStatement, ...]:
        """From an iteration to the next one."""
        names = self.names
        step: tuple[TargetStatement, ...] = (ast.put(names.finishes, ast.TRUE),)
        for at, loop in enumerate(self.loops):
            last = self.present.index(simplify(loop.minimum + loop.extent - 1))
            inside = range(at + 1, len(self.loops))
            then = (self._advance(at, names.now[at]), *(self._restart(level) for level in inside))
            more = Binary(operator="!=", left=self.present.index(_index(loop)), right=last)
            step = (If(condition=more, then=then, otherwise=step),)
        return step

    def _restart(self, at: int) -> TargetStatement:
        minimum = self.coming.index(self.loops[at].minimum)
        if not isinstance(self.loops[at].minimum, Const):
            minimum = self._cut(at, minimum)
        return ast.put(self.names.after[at], minimum)

    def _advance(self, at: int, name: str) -> TargetStatement:
        """One more than the register ``name``."""
        more = Binary(operator="+", left=Name(name=name), right=number(1))
        return ast.put(
            self.names.after[at], ast.Resize(bits=self.counters[at].type.width, value=more)
        )

    def _cut(self, at: int, value: TargetExpression) -> TargetExpression:
        width = self.counters[at].type.width
        return value if width == 32 else ast.Resize(bits=width, value=value)

    def searching(self, steps: int) -> tuple[TargetStatement, ...]:
        """The same for nests with empty loops: at most ``steps`` steps up and down the nest."""
        assert self.reset is not None
        names, depth = self.names, len(self.loops)
        level = Name(name=names.level)
        body: tuple[TargetStatement, ...] = ()
        for at in reversed(range(depth)):
            at_level = Binary(operator="==", left=level, right=number(at))
            if at == depth - 1:
                body = self._search_step(at)
            else:
                body = (If(condition=at_level, then=self._search_step(at), otherwise=body),)
        return (
            *self._kept(),
            ast.put(names.rising, ast.negation(self.reset)),
            If(
                condition=self.reset,
                then=(
                    ast.put(names.level, number(0)),
                    ast.put(names.searching, ast.TRUE),
                    ast.put(names.finishes, ast.FALSE),
                ),
                otherwise=(
                    ast.put(names.level, number(depth - 1)),
                    ast.put(names.searching, ast.TRUE),
                    ast.put(names.finishes, Name(name=names.finished)),
                ),
            ),
            ast.UnrolledFor(
                variable="step",
                count=steps,
                body=(If(condition=Name(name=names.searching), then=body),),
            ),
        )

    def _search_step(self, at: int) -> tuple[TargetStatement, ...]:
        names, innermost = self.names, at == len(self.loops) - 1
        enter: tuple[TargetStatement, ...]
        if innermost:
            enter = (ast.put(names.searching, ast.FALSE),)
        else:
            enter = (ast.put(names.level, number(at + 1)), ast.put(names.rising, ast.FALSE))
        leave: tuple[TargetStatement, ...]
        if at == 0:
            leave = (ast.put(names.searching, ast.FALSE), ast.put(names.finishes, ast.TRUE))
        else:
            leave = (ast.put(names.level, number(at - 1)), ast.put(names.rising, ast.TRUE))
        loop = self.loops[at]
        limit = self.coming.index(simplify(loop.minimum + loop.extent))
        more = Binary(operator="<", left=self.coming.index(_index(loop)), right=limit)
        return (
            If(
                condition=Name(name=names.rising),
                then=(self._advance(at, names.after[at]),),
                otherwise=(self._restart(at),),
            ),
            If(condition=more, then=enter, otherwise=leave),
        )

    def _kept(self) -> list[TargetStatement]:
        pairs = zip(self.names.after, self.names.now, strict=True)
        return [ast.put(after, Name(name=now)) for after, now in pairs]


def _index(loop: Loop) -> Index:
    return Index(name=loop.name, type=INT32)
