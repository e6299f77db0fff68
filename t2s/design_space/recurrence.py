"""What is searched where Funcs read themselves, or one another, at neighbors: a loop nest of them.

In goes a design without directives whose Funcs are one system of uniform recurrences, such as
``S[b, i] = select(i > 0, S[b, i - 1], 0) + x[b, i]``, and outputs that are members of it or pick
elements out of it, as ``U[i, c] = SL[c, i, i]`` does.  Bounds may depend on other loops.

Out comes a ``Recurrence``: its loops, along which of them iterations are independent, what is read
from memory, and how long a value takes from one iteration to the next.

Refused, with the user's line: several systems, other Funcs with hardware of their own, subscripts
that are read from memory.  Distances that are not constant are refused before, as in every design.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from t2s.core.expr import (
    Expr,
    Parameter,
    Read,
    conjunction,
    evaluate,
    index_names,
    reads,
)
from t2s.core.printer import show
from t2s.core.types import Type
from t2s.core.walk import children, walk
from t2s.design_space.contraction import (
    adjacent_loops,
    conditions_of,
    has_distinct_elements,
    refused,
    text_of,
)
from t2s.func.ir import Definition, Dimension, System, TemporalProgram
from t2s.func.systems import distance
from t2s.spatial.schedule import ScheduledFunc

NEVER = -(1 << 50)
"""The start of an iteration that nothing is known of."""

MOST_COUNTED, MOST_RELAXED = 1 << 22, 1 << 28
"""Iterations that are counted one by one; those whose starts are computed, in all rounds."""


@dataclass(frozen=True, kw_only=True)
class RecurrenceLoop:
    """A loop of the nest: ``extent`` iterations from ``minimum``, at most if its bounds vary.

    ``coupled`` is a loop whose bounds depend on others, or those of others on it; ``independent``
    one along which no iteration needs another.
    """

    name: str
    minimum: int
    extent: int
    coupled: bool
    independent: bool


@dataclass(frozen=True, kw_only=True)
class RecurrenceOperand:
    """What members read that is no member.

    ``varies`` are the loops on which the element depends, ``adjacent`` those along which one
    element follows on the other in memory.  A ``movable`` one is an array that is read at one place
    only, so that a directive can name it.  It is read under the ``condition``, if there is any; a
    ``distinct`` one always, at another element for all values of the loops that it varies along.
    """

    name: str
    type: Type
    varies: frozenset[str]
    adjacent: frozenset[str]
    movable: bool
    distinct: bool
    condition: Expr | None

    @property
    def needed_by(self) -> frozenset[str]:
        """The loops on which the element depends, or whether it is read."""
        names = frozenset() if self.condition is None else index_names(self.condition)
        return self.varies | names


@dataclass(frozen=True, kw_only=True, eq=False)
class Transport:
    """A value that iterations ``needing`` it read of the one at a ``distance`` before them.

    It is there ``latency`` cycles after that one began if it goes to another PE, and ``carried``
    cycles if it stays.  Distances are those along the loops that are ``tracked``.
    """

    distance: tuple[int, ...]
    needing: np.ndarray[Any, np.dtype[np.bool_]]
    latency: int
    carried: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Runs:
    """The iterations of each PE in their order, a row each, as places in the box.

    One begins ``step`` cycles after the one before; ``before`` has how many ``exist`` before each.
    """

    places: np.ndarray[Any, np.dtype[np.int64]]
    exist: np.ndarray[Any, np.dtype[np.bool_]]
    step: int

    @cached_property
    def before(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        counts: np.ndarray[Any, np.dtype[np.int64]] = self.exist.cumsum(axis=1) - self.exist
        return counts * self.step

    def follow(self, starts: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        """Let each iteration begin after those before it in its PE."""
        rows = np.where(self.exist, starts.ravel()[self.places] - self.before, NEVER)
        rows = np.maximum.accumulate(rows, axis=1) + self.before
        starts.ravel()[self.places[self.exist]] = rows[self.exist]


@dataclass(frozen=True, kw_only=True)
class Recurrence:
    """Funcs over one loop nest, outermost loop first.

    Attributes
    ----------
    outputs: what the design computes.
    receiver: the member that takes the directives.
    vector_loop: the loop along which elements of all operands and outputs are adjacent.
    reduces: whether a member reduces over lanes, so that rounding depends on the design.
    stores: elements of each output, and bytes of an element.
    ends_with_output: whether the last iteration of the nest computes an element of an output.
    definition: all definitions as text.
    """

    outputs: tuple[str, ...]
    receiver: str
    loops: tuple[RecurrenceLoop, ...]
    operands: tuple[RecurrenceOperand, ...]
    vector_loop: str | None
    reduces: bool
    stores: tuple[tuple[int, int], ...]
    ends_with_output: bool
    definition: str
    domain: tuple[Dimension, ...]
    members: tuple[tuple[str, Definition], ...]

    @property
    def name(self) -> str:
        return " and ".join(self.outputs)

    def loop(self, name: str) -> RecurrenceLoop:
        """The loop of that name."""
        return next(loop for loop in self.loops if loop.name == name)

    @property
    def steps(self) -> int:
        """Iterations of the nest, or of its box if that is too large to count."""
        tracked = int(self.inside.sum()) if self.is_counted else self.box
        return tracked * prod(loop.extent for loop in self.loops if loop not in self.tracked)

    @property
    def box(self) -> int:
        """Iterations of the box of the tracked loops."""
        return prod(loop.extent for loop in self.tracked)

    @property
    def is_counted(self) -> bool:
        """Whether that is small enough to tell iterations apart."""
        return self.box <= MOST_COUNTED

    @property
    def coupled(self) -> tuple[RecurrenceLoop, ...]:
        return tuple(loop for loop in self.loops if loop.coupled)

    @property
    def tracked(self) -> tuple[RecurrenceLoop, ...]:
        """The loops whose iterations differ: those with dependences, and those with bounds."""
        return tuple(loop for loop in self.loops if loop.coupled or not loop.independent)

    @cached_property
    def inside(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which iterations of the box of the tracked loops exist; one for all if not counted."""
        shape = [loop.extent for loop in self.tracked]
        if not self.is_counted:
            return np.ones([1] * len(shape), bool)
        inside = np.ones(shape, bool)
        axes = self.axes(self.tracked)
        for dimension in self.domain:
            if dimension.interval.constant is None:
                for condition in dimension.interval.conditions:
                    inside &= np.asarray(evaluate(condition, axes), bool)
        return inside

    @cached_property
    def last(self) -> int:
        """The place of the last iteration in the box of the tracked loops."""
        return int(np.flatnonzero(self.inside)[-1])

    def where(self, condition: Expr | None) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For which iterations of the tracked loops a condition holds, whatever the others are."""
        if condition is None:
            return self.inside
        named = index_names(condition) - {loop.name for loop in self.tracked}
        others = [loop for loop in self.loops if loop.name in named]
        shape = [*self.inside.shape, *(loop.extent for loop in others)]
        is_known = _is_static(condition) and len(others) == len(named)
        if not (is_known and self.is_counted and prod(shape) <= MOST_COUNTED):
            return np.zeros_like(self.inside)
        axes = self.axes([*self.tracked, *others])
        with np.errstate(all="ignore"):
            holds = np.broadcast_to(np.asarray(evaluate(condition, axes), bool), shape)
        of_others = tuple(range(self.inside.ndim, len(shape)))
        found: np.ndarray[Any, np.dtype[np.bool_]] = holds.all(axis=of_others) & self.inside
        return found

    @staticmethod
    def axes(loops: Sequence[RecurrenceLoop]) -> dict[str, Any]:
        """The indices of loops, an axis for each of them."""
        ranges = (
            np.arange(loop.minimum, loop.minimum + loop.extent, dtype=np.int32) for loop in loops
        )
        return dict(zip((loop.name for loop in loops), np.ix_(*ranges), strict=True))

    def transports(self, latency_of: Callable[[Expr], int], most: int) -> tuple[Transport, ...]:
        """The values that iterations need of others, with latencies of at most ``most``."""
        ready: dict[str, int | None] = {}
        for name, definition in self.members:
            ready[name] = self._arrival(definition.value, None, ready, latency_of)
        found: list[Transport] = []
        for reader, definition in self.members:
            for (source, indices), condition in conditions_of(definition.value).items():
                vector = self._distances(indices) if source in ready else None
                if vector is None or not any(vector.values()):
                    continue
                carried = self._latency(source, (reader, source, indices), latency_of)
                transport = Transport(
                    distance=tuple(vector[loop.name] for loop in self.tracked),
                    needing=self.where(condition),
                    latency=min(ready[source] or 0, most),
                    carried=min(carried or 0, most),
                )
                found.append(transport)
        return tuple(found)

    def loaded(self, load: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """When each iteration begins at least, where loads take so many cycles."""
        starts = np.zeros(self.inside.shape, np.int64)
        for operand in self.operands:
            starts[self.where(operand.condition)] = load
        return starts

    def starts(
        self,
        begins: np.ndarray[Any, np.dtype[np.int64]],
        transports: Sequence[Transport],
        in_space: frozenset[str],
        runs: Runs | None = None,
    ) -> np.ndarray[Any, np.dtype[np.int64]]:
        """When iterations of the tracked loops begin at least, none of them before ``begins``.

        A value takes a cycle more if it hops to another PE along loops in space.  With ``runs`` the
        iterations of a PE begin one after the other.
        """
        starts = begins.copy()
        rounds = MOST_RELAXED // max(1, starts.size * (len(transports) + 1))
        for _ in range(min(rounds, 2 * sum(starts.shape) + 1)):
            before = starts.copy()
            if runs is not None:
                runs.follow(starts)
            for each in transports:
                hops = any(
                    by
                    for loop, by in zip(self.tracked, each.distance, strict=True)
                    if loop.name in in_space
                )
                wait = each.latency + 1 if hops else max(1, each.carried)
                to = tuple(slice(max(by, 0), min(by, 0) or None) for by in each.distance)
                of = tuple(slice(max(-by, 0), min(-by, 0) or None) for by in each.distance)
                np.maximum(starts[to], starts[of] + wait, out=starts[to], where=each.needing[to])
            if np.array_equal(before, starts):
                break
        return starts

    def longest(self, latency_of: Callable[[Expr], int]) -> int:
        """The latency from operands to the last value of an iteration, as it is written."""
        ready: dict[str, int | None] = {}
        for name, definition in self.members:
            ready[name] = self._arrival(definition.value, None, ready, latency_of)
        return max((cycles for cycles in ready.values() if cycles is not None), default=0)

    def _distances(self, indices: tuple[Expr, ...]) -> dict[str, int] | None:
        """How far before the reading iteration the one is that computes an element."""
        found = {
            loop.name: distance(index, loop.name)
            for loop, index in zip(self.loops, indices, strict=False)
        }
        known = {name: by for name, by in found.items() if by is not None}
        return known if len(known) == len(found) else None

    def _latency(
        self,
        member: str,
        read: tuple[str, str, tuple[Expr, ...]],
        latency_of: Callable[[Expr], int],
    ) -> int | None:
        """From a read of an earlier iteration to the value of ``member`` in this one."""
        ready: dict[str, int | None] = {}
        for name, definition in self.members:
            begins = read[1:] if name == read[0] else ("", ())
            ready[name] = self._arrival(definition.value, begins, ready, latency_of)
        return ready[member]

    def _arrival(
        self,
        value: Expr,
        begins: tuple[str, tuple[Expr, ...]] | None,
        ready: Mapping[str, int | None],
        latency_of: Callable[[Expr], int],
    ) -> int | None:
        """When a value is there: ``begins`` at 0, and members of the same iteration when ready.

        All other reads are there at 0, too, if ``begins`` is ``None``, and else do not count.
        """
        known: dict[int, int | None] = {}

        def arrives(expr: Expr) -> int | None:
            if isinstance(expr, Read):
                if (expr.source, expr.indices) == begins:
                    return 0
                vector = self._distances(expr.indices) if expr.source in ready else None
                if vector is not None and not any(vector.values()):
                    return ready[expr.source]
                return 0 if begins is None else None
            if id(expr) not in known:
                inside = [arrives(child) for child in children(expr) if isinstance(child, Expr)]
                last = max((cycles for cycles in inside if cycles is not None), default=None)
                known[id(expr)] = None if last is None else last + latency_of(expr)
            return known[id(expr)]

        return arrives(value)


def recurrence_of(outputs: Sequence[ScheduledFunc], program: TemporalProgram) -> Recurrence:
    """The recurrence that a program computes; ``UserError`` if it is more than one."""
    first = outputs[0]
    if len(program.systems) > 1:
        raise refused(
            f"{first.name} needs {len(program.systems)} recurrences, one after the other",
            "one system of Funcs that need each other",
            "; ".join(", ".join(system.members) for system in program.systems),
            first.location,
            "search each of them alone",
        )
    (system,) = program.systems
    for function in program.functions:
        if function.updates and function.name not in system.members:
            raise refused(
                f"{first.name} needs other Funcs with hardware of their own",
                "one recurrence, and Funcs that pick elements out of it",
                f"{function.name}, which has an update",
                function.location,
                "search each of them alone",
            )
    members = [program.function(name) for name in system.members]
    names = tuple(dimension.name for dimension in system.domain)
    receivers = [member.name for member in members if member.arguments == names]
    receivers = [name for name in program.outputs if name in receivers] or receivers
    definitions = tuple((m.name, d) for m in members for d in m.definitions[-1:])
    written = [definition for member in members for definition in member.definitions]
    return Recurrence(
        outputs=program.outputs,
        receiver=receivers[-1],
        loops=tuple(_loops(program, system, written)),
        operands=(operands := tuple(_operands(program, system, written))),
        vector_loop=_vector_loop(program, system, operands, written),
        reduces=system.lanes is not None,
        stores=tuple(
            (prod(program.function(name).shape), program.function(name).type.bytes)
            for name in program.outputs
        ),
        ends_with_output=any(_ends(program, system, name) for name in program.outputs),
        definition=text_of(program),
        domain=system.domain,
        members=definitions,
    )


def _loops(
    program: TemporalProgram, system: System, written: Sequence[Definition]
) -> Iterator[RecurrenceLoop]:
    bounds = {
        name: span
        for member in system.members
        for name, span in zip(
            program.function(member).arguments, program.function(member).bounds, strict=True
        )
    }
    needed = {
        dimension.name: index_names(dimension.minimum) | index_names(dimension.extent)
        for dimension in system.domain
    }
    needing = frozenset().union(*needed.values())
    dependent: set[str] = set()
    for definition in written:
        for read in reads(definition.value):
            if read.source in system.members:
                for dimension, index in zip(system.domain, read.indices, strict=False):
                    if distance(index, dimension.name) != 0:
                        dependent.add(dimension.name)
    for dimension in system.domain:
        name = dimension.name
        minimum, extent = dimension.interval.constant or bounds[name]
        yield RecurrenceLoop(
            name=name,
            minimum=minimum,
            extent=extent,
            coupled=bool(needed[name]) or name in needing,
            independent=name not in dependent,
        )


def _operands(
    program: TemporalProgram, system: System, written: Sequence[Definition]
) -> Iterator[RecurrenceOperand]:
    arrays = {array.name for array in program.inputs}
    places: dict[str, dict[tuple[Expr, ...], tuple[Read, Expr | None]]] = {}
    for definition in written:
        conditions = conditions_of(definition.value)
        for read in dict.fromkeys(reads(definition.value)):
            if read.source in system.members:
                continue
            inside = next((inner for index in read.indices for inner in reads(index)), None)
            if inside is not None:
                raise refused(
                    f"{definition.function} reads {read.source} at places that {inside.source} has",
                    "subscripts of loops and constants",
                    f"{read.source}[{', '.join(map(show, read.indices))}]",
                    definition.location,
                )
            condition = conditions[read.source, read.indices]
            of_source = places.setdefault(read.source, {})
            known = of_source.get(read.indices)
            if known is not None and known[1] != condition:
                condition = None if None in (known[1], condition) else known[1]
            of_source[read.indices] = read, condition
    for name, of_source in places.items():
        found = [read for read, _ in of_source.values()]
        conditions_ = [condition for _, condition in of_source.values()]
        yield RecurrenceOperand(
            name=name,
            type=found[0].type,
            varies=frozenset().union(*(index_names(i) for read in found for i in read.indices)),
            adjacent=frozenset.intersection(*(adjacent_loops(read, program) for read in found)),
            movable=name in arrays and len(found) == 1,
            distinct=name in arrays and conditions_ == [None] and has_distinct_elements(found[0]),
            condition=None if None in conditions_ else conjunction(*conditions_),
        )


def _vector_loop(
    program: TemporalProgram,
    system: System,
    operands: Sequence[RecurrenceOperand],
    written: Sequence[Definition],
) -> str | None:
    """The loop that vectors may run along, if the compiler takes no other lanes."""
    if system.lanes is not None:
        return None
    last: set[str | None] = set()
    for name in program.outputs:
        definition = program.function(name).initial
        if name in system.members:
            last.add(program.function(name).arguments[-1])
            continue
        along = definition.target[-1]
        for read in reads(definition.value):
            if read.source in system.members:
                loops = zip(system.domain, read.indices, strict=True)
                last.add(next((d.name for d, index in loops if index == along), None))
    if len(last) != 1:
        return None
    (name_,) = last
    for operand in operands:
        if name_ in operand.varies and (name_ not in operand.adjacent or not operand.movable):
            return None
    for loop in _loops(program, system, written):
        if loop.name == name_ and loop.independent and not loop.coupled:
            return name_
    return None


def _ends(program: TemporalProgram, system: System, output: str) -> bool:
    """Whether the last iteration of the nest computes an element of an output."""
    if output in system.members:
        return True
    definition = program.function(output).initial
    last: dict[str, Any] = {}
    for dimension in definition.domain:
        if dimension.interval.constant is None:
            return False
        minimum, extent = dimension.interval.constant
        last[dimension.name] = np.int32(minimum + extent - 1)
    ends: dict[str, Any] = {}
    for dimension in system.domain:
        end = dimension.minimum + dimension.extent - 1
        ends[dimension.name] = np.int32(evaluate(end, ends))
    return any(
        all(
            int(evaluate(index, last)) == int(ends[dimension.name])
            for dimension, index in zip(system.domain, read.indices, strict=False)
        )
        for read in reads(definition.value)
        if read.source in system.members
    )


def _is_static(condition: Expr) -> bool:
    """Whether a condition is about loops alone."""
    return not any(isinstance(term, Read | Parameter) for term in walk(condition))
