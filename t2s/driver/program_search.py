"""``Program.search``: which results to pass on, and in which order to loop, by exact runs.

A graph reads tensors that others store, whose values are known, so it is timed alone, and once for
all programs that have it: the cycles of a program are the sum of its graphs'.  Decisions are taken
from the last statement to the first one, and dropped once no program with them is faster than what
was found (``program_bound.py``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import numpy as np

from t2s.core.display import NotebookCard, NotebookDisplay, Preformatted
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.names import counted
from t2s.core.progress import ProgressBar
from t2s.driver.assignment_design import Compiled
from t2s.driver.program_bound import Choices, OrderedLoops, ProgramBounds
from t2s.driver.program_design import CompiledProgram, ProgramRun
from t2s.driver.program_fusion import Fusion, chosen
from t2s.driver.simulate import cycles_within
from t2s.driver.sparse_bound import Bounds
from t2s.sparse_repr.concrete.fusion import PassOn, ScheduledAssignment, StatementGroup, Way
from t2s.sparse_repr.concrete.ir import loops_of, print_program
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.concrete.unsupported import refuse_blocks
from t2s.sparse_repr.formats import csf
from t2s.sparse_repr.notation.grouping import groupings
from t2s.sparse_repr.notation.ir import Assignment, all_variables
from t2s.sparse_repr.notation.legality import extents_of
from t2s.sparse_repr.notation.program import StatementProgram
from t2s.sparse_repr.tensors.tensor import SparseTensor, from_coordinates

if TYPE_CHECKING:
    from t2s.simulator.devices import Device

MOST_VARIABLES = 4
"""Statements over more variables keep their order of loops."""

MOST_GROUPINGS = 8
"""Programs with other orders of multiplication, the user's among them."""

MOST_ORDERS = 6
"""Orders of a statement that are tried, those with the least bounds."""


class Searchable(Protocol):
    """What a search needs of a ``Program``."""

    program: StatementProgram
    schedules: Mapping[str, Schedule]
    said: tuple[PassOn, ...]

    def schedule(self, name: str, schedule: Schedule | str) -> Self: ...

    def stream(self, *names: str) -> Self: ...

    def recompute(self, *names: str) -> Self: ...

    def regroup(self, name: str, *first: str) -> Self: ...


ProgramT = TypeVar("ProgramT", bound=Searchable)


@dataclass(frozen=True, kw_only=True, repr=False)
class ProgramSearchResult(NotebookDisplay, Generic[ProgramT]):
    """The fastest way that was found to pass results on.

    Attributes
    ----------
    program: with the results passed on, and the orders of loops; all verbs take it.
    cycles: of all its graphs.
    lower_bound: no program of the space takes fewer cycles.
    complete: whether every program of the space was timed, or is not faster for certain.
    lines: the calls that make the program from the one that was searched.
    cycles_of: those of ``fuse("none")``, ``"layer"`` and ``"all"``; ``None`` for more than those of
        another one.
    graphs: how many graphs were timed.
    programs: how many programs were bounded.
    interrupted: whether Ctrl-C ended the search.
    """

    program: ProgramT
    cycles: int
    lower_bound: int
    complete: bool
    lines: tuple[str, ...]
    cycles_of: Mapping[str, int | None]
    graphs: int
    programs: int
    interrupted: bool = False

    @property
    def gap(self) -> float:
        """The share of the cycles that a better program could save at most."""
        return 1 - self.lower_bound / self.cycles if self.cycles else 0.0

    def __repr__(self) -> str:
        return f"<ProgramSearchResult {self.cycles} cycles>"

    def __str__(self) -> str:
        others = [
            f"{name} {'more' if found is None else f'{found:,}'}"
            for name, found in self.cycles_of.items()
        ]
        proof = "the least of the space" if self.complete else f"lower bound {self.lower_bound:,}"
        proof += f", gap {self.gap:.1%}" if self.gap else ""
        text = [
            f"{counted(self.cycles, 'cycle')}: {proof}",
            f"by fuse: {', '.join(others)}",
            f"{counted(self.graphs, 'graph')} timed, {counted(self.programs, 'choice')} bounded",
            *(f"  {line}" for line in self.lines),
        ]
        return "\n".join(text)

    def _card(self) -> NotebookCard:
        summary = (("cycles", f"{self.cycles:,}"), ("gap", f"{self.gap:.1%}"))
        return NotebookCard(
            title="Program search",
            summary=summary,
            parts=(Preformatted(title="", text="\n".join(self.lines)),),
        )


def search_program(
    program: ProgramT,
    inputs: Mapping[str, Any],
    *,
    device: str | Device,
    seconds: float,
    progress: bool | None,
    location: SourceLocation,
) -> ProgramSearchResult[ProgramT]:
    """Search for ``Program.search``."""
    statements = program.program.statements
    tensors = [tensor for one in statements for tensor in one.assignment.tensors]
    refuse_blocks(tensors, "a search", "bounds the cycles of elements")
    deadline = time.monotonic() + seconds
    shared = _Shared[ProgramT](
        inputs=inputs, device=device, deadline=deadline, bar=_Bar(progress), location=location
    )
    with shared.bar:
        return _result(program, shared)


def _result(program: ProgramT, shared: _Shared[ProgramT]) -> ProgramSearchResult[ProgramT]:
    """Search, from what ``fuse`` chooses, through all groupings of products."""
    own = _Space(program, (), shared)
    own.check_said()
    cycles_of = {fusion.value: own.fused(fusion) for fusion in Fusion}
    bounds: dict[_Space[ProgramT], int] = {}
    least, interrupted = 0, False
    try:
        groupings = [*_groupings(program)]
        if shared.over and groupings:
            raise _Stopped(0)
        spaces = [own, *(_Space(one, lines, shared) for one, lines in groupings)]
        bounds |= {space: space.bound(_Decisions()) for space in spaces}
        least = min(bounds.values())
        for space in spaces:
            space.dive()
        for space in sorted(spaces, key=bounds.__getitem__):
            del bounds[space]
            space.descend()
        least = _the_best(shared)[0]
    except _Stopped as stopped:
        least = max(least, min([stopped.least, *bounds.values()]))
    except KeyboardInterrupt:
        interrupted = True
    found, space, decisions = _the_best(shared)
    best, lines = space.program_of(decisions)
    return ProgramSearchResult(
        program=best,
        cycles=found,
        lower_bound=min(found, least),
        complete=found <= least,
        lines=lines,
        cycles_of=cycles_of,
        graphs=shared.timed,
        programs=shared.bounded,
        interrupted=interrupted,
    )


def _the_best(shared: _Shared[ProgramT]) -> tuple[int, _Space[ProgramT], _Decisions]:
    assert shared.best is not None  # everything is stored in the first program
    return shared.best


@dataclass(frozen=True, slots=True)
class _Decisions:
    """What is decided of the last statements: orders of loops, and results that are passed on."""

    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    passed: tuple[PassOn, ...] = ()
    decided: frozenset[str] = frozenset()


class _Bar(ProgressBar):
    """Graphs that were timed, and the best program so far."""

    def _columns(self) -> list[Any]:
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

        text = TextColumn("{task.completed:,} graphs timed, best {task.fields[best]}")
        return [text, BarColumn(), TimeElapsedColumn()]

    def timed(self, graphs: int, best: int | None) -> None:
        """Show how far the search is."""
        self._show(graphs, None, best="-" if best is None else f"{best:,}")


class _Stopped(Exception):
    """The time is over; no program that was not tried takes fewer cycles than ``least``."""

    def __init__(self, least: int) -> None:
        super().__init__()
        self.least = least


_Key = tuple[StatementGroup, frozenset[Assignment]]
"""A graph, and all statements from which the inputs of the program become what it reads."""


@dataclass(kw_only=True)
class _Shared(Generic[ProgramT]):
    """What the searches of all groupings have in common: graphs that were timed, and the best.

    ``values`` and ``orders`` are those of statements alone.
    """

    inputs: Mapping[str, Any]
    device: str | Device
    deadline: float
    bar: _Bar
    location: SourceLocation
    cycles: dict[_Key, int] = field(default_factory=dict)
    values: dict[_Key, SparseTensor] = field(default_factory=dict)
    orders: dict[_Key, list[OrderedLoops]] = field(default_factory=dict)
    best: tuple[int, _Space[ProgramT], _Decisions] | None = None
    timed: int = 0
    bounded: int = 0

    @property
    def over(self) -> bool:
        return time.monotonic() > self.deadline

    def is_beaten(self, bound: int) -> bool:
        """Whether programs of so many cycles at least are not faster than what was found."""
        return self.best is not None and bound >= self.best[0]


class _Space(Generic[ProgramT]):
    """The programs with one grouping of products, which ``lines`` make of the user's."""

    def __init__(
        self, program: ProgramT, lines: tuple[str, ...], shared: _Shared[ProgramT]
    ) -> None:
        self.program, self.lines, self.shared = program, lines, shared
        statements = program.program.statements
        self.names = [statement.name for statement in statements]
        self.reads = {statement.name: statement.reads for statement in statements}
        read = {name for names in self.reads.values() for name in names}
        said = {passing.tensor for passing in program.said}
        whole = {statement.of for statement in statements}
        # a part of a function of rows goes along with the statement that it is a part of
        self.free = [n for n in self.names if n in read and n in whole and n not in said]
        self.parts = [n for n in self.names if n in read and n not in whole and n not in said]
        self.user = [name for name in self.names if name in whole]
        base = CompiledProgram(program.program, program.schedules, program.said)
        self.base = base.design()
        self.run = self._interpreted()
        self.assignments = {one.result.tensor: one for one in self.run.sized}
        self.bounds_alone = {
            name: self._bounds_alone(one) for name, one in self.assignments.items()
        }
        self.orders = {name: self._orders(name) for name in self.user}
        self.bounds = ProgramBounds(
            assignments=self.assignments,
            known=self.run.known,
            given=self.base.schedules,
            orders=self.orders,
            bounds=self.bounds_alone,
        )
        self.legal: dict[StatementGroup, bool] = {}

    def _interpreted(self) -> ProgramRun:
        """All tensors by numpy, those of other groupings that are computed in the same way too."""
        design = replace(self.base, passed=())
        run = design.started(self.shared.inputs)
        self.assignments = {one.result.tensor: one for one in run.sized}
        for group in design.groups(run.sized):
            key = self._key(group)
            if key not in self.shared.values:
                self.shared.values[key] = run.interpreted(group)
            run.finish(group, self.shared.values[key])
        return run

    def _key(self, group: StatementGroup) -> _Key:
        before: set[Assignment] = set()
        left = [name for one in group.statements for name in one.reads]
        while left:
            name = left.pop()
            if name in self.assignments and self.assignments[name] not in before:
                before.add(self.assignments[name])
                left += self.reads[name]
        return group, frozenset(before)

    # programs that users would try first

    def check_said(self) -> None:
        """Raise ``UserError`` for ways that the user says, and that these inputs do not fit."""
        for group in self._grouped({})(self.program.said):
            self.run.type_of(group)

    def fused(self, fusion: Fusion) -> int | None:
        """The cycles of ``fuse``; ``None`` if they are more than those of what is known."""
        results = [name for name in self.names if name in (*self.free, *self.parts)]
        location = self.shared.location
        found = chosen(results, fusion, self.program.said, self._grouped({}), location)
        decisions = _Decisions(passed=found, decided=frozenset(self.names))
        return self._timed(decisions)

    # branch and bound

    def dive(self) -> None:
        """Time the program that has the first choice everywhere."""
        decisions = _Decisions()
        for name in reversed(self.user):
            if self.shared.over:
                return
            choices = self._sorted_choices(decisions, name)
            if not choices or self.shared.is_beaten(choices[0][0]):
                return
            decisions = choices[0][1]
        self._timed(decisions)

    def descend(self) -> None:
        """Time all programs that may be faster than the best one.  Raises ``_Stopped``."""
        self._descend(_Decisions(), list(reversed(self.user)))

    def _descend(self, decisions: _Decisions, left: list[str]) -> None:
        """Decide about the last statement that is left, and about those before it."""
        if not left:
            self._timed(decisions)
            return
        if self.shared.over:
            raise _Stopped(self.bound(decisions))
        name, *others = left
        choices = self._sorted_choices(decisions, name)
        for number, (bound, choice) in enumerate(choices):
            if self.shared.is_beaten(bound):
                continue
            left_over = [other for other, _ in choices[number:]]
            if self.shared.over:
                raise _Stopped(min(left_over))
            self.shared.bounded += 1
            try:
                self._descend(choice, others)
            except _Stopped as stopped:
                raise _Stopped(min([stopped.least, *left_over[1:]])) from None

    def _sorted_choices(self, decisions: _Decisions, name: str) -> list[tuple[int, _Decisions]]:
        """The choices with their bounds, in the order in which they are tried.

        What computes a result again comes last: its bound does not count how often it does that.
        """
        choices = [(self.bound(choice), choice) for choice in self._choices(decisions, name)]
        again = self._passing(name, Way.RECOMPUTE)
        return sorted(choices, key=lambda item: (again in item[1].passed, item[0]))

    def _choices(self, decisions: _Decisions, name: str) -> Iterator[_Decisions]:
        """The orders of a statement, with its result passed on in each way that can be."""
        ways = (Way.STREAM, Way.STORE, Way.RECOMPUTE) if name in self.free else (Way.STORE,)
        for one in self.orders[name]:
            schedule, schedules = one.schedule, dict(decisions.schedules)
            if schedule is not None:
                schedules[name] = schedule
            for way in ways:
                passed = decisions.passed
                if way is not Way.STORE:
                    passed = (*passed, self._passing(name, way))
                choice = _Decisions(schedules, passed, decisions.decided | {name})
                if self._groups(choice) is None:
                    continue
                parts = [part for part in self.parts if self._whole(part) == name]
                more = chosen(
                    parts,
                    Fusion.LAYER,
                    (*self.program.said, *passed),
                    self._grouped(schedules),
                    self.shared.location,
                )
                yield replace(choice, passed=(*passed, *more), decided=choice.decided | {*parts})

    def _whole(self, part: str) -> str:
        return self.program.program.statement(part).of

    def _passing(self, name: str, way: Way) -> PassOn:
        return PassOn(tensor=name, way=way, location=self.shared.location)

    def bound(self, decisions: _Decisions) -> int:
        """No program with these decisions takes fewer cycles."""
        ways = dict.fromkeys(decisions.decided, Way.STORE)
        passed = (*decisions.passed, *self.program.said)
        ways |= {passing.tensor: passing.way for passing in passed}
        return self.bounds.of(
            Choices(ways=ways, schedules=decisions.schedules, decided=decisions.decided)
        )

    def _orders(self, name: str) -> list[OrderedLoops]:
        """Orders of a statement's loops, with their least cycles; ``None`` is the usual one."""
        given = self.base.schedules.get(name)
        statement = ScheduledAssignment(
            assignment=self.assignments[name], schedule=given or Schedule()
        )
        key = self._key(StatementGroup(statements=(statement,)))
        if key not in self.shared.orders:
            self.shared.orders[key] = self._bounded_orders(self.assignments[name], given)
        return self.shared.orders[key]

    def _bounded_orders(self, assignment: Assignment, given: Schedule | None) -> list[OrderedLoops]:
        variables = all_variables(assignment)
        found = [self._ordered(assignment, given, scheduled=None)]
        if given is not None or len(variables) > MOST_VARIABLES:
            return found
        loops = {print_program(self._kernel_alone(assignment, None).program)}
        for order in permutations(variables):
            schedule = Schedule().reorder(*order)
            try:
                text = print_program(self._kernel_alone(assignment, schedule).program)
            except UserError:
                continue  # a tensor is not stored in that order
            if text not in loops:
                found.append(self._ordered(assignment, schedule, scheduled=schedule))
            loops.add(text)
        first, *others = found
        return [first, *sorted(others, key=lambda one: one.least)][:MOST_ORDERS]

    def _ordered(
        self, assignment: Assignment, schedule: Schedule | None, *, scheduled: Schedule | None
    ) -> OrderedLoops:
        """The loops of a statement alone, and what they take at least."""
        kernel, name = self._kernel_alone(assignment, schedule), assignment.result.tensor
        stages = kernel.program.stages
        given = {access.tensor: self.run.known[access.tensor] for access in assignment.reads}
        return OrderedLoops(
            schedule=scheduled,
            loops=loops_of(stages[0]) if len(stages) == 1 else None,
            least=self.bounds_alone[name].of(kernel, given),
        )

    def _kernel_alone(self, assignment: Assignment, schedule: Schedule | None) -> Compiled:
        statement = ScheduledAssignment(assignment=assignment, schedule=schedule or Schedule())
        return self.base.kernel(StatementGroup(statements=(statement,)))

    def _bounds_alone(self, assignment: Assignment) -> Bounds:
        """What counts for a statement, also where zeros of what it reads are not sent."""
        given = {access.tensor: self.run.known[access.tensor] for access in assignment.reads}
        shapes = {name: value.shape for name, value in given.items()}
        entries = {
            name: _without_zeros(value) if name in self.reads else value
            for name, value in given.items()
        }
        return Bounds(inputs=entries, extents=extents_of(assignment, shapes))

    # graphs

    def _grouped(self, schedules: Mapping[str, Schedule]) -> Any:
        design = replace(self.base, schedules={**self.base.schedules, **schedules})

        def grouped(passed: Sequence[PassOn]) -> tuple[StatementGroup, ...]:
            return replace(design, passed=tuple(passed)).groups(self.run.sized)

        return grouped

    def _groups(self, decisions: _Decisions) -> tuple[StatementGroup, ...] | None:
        """The graphs of a program; ``None`` if one cannot be made."""
        try:
            groups: tuple[StatementGroup, ...] = self._grouped(decisions.schedules)(
                (*self.program.said, *decisions.passed)
            )
        except UserError:
            return None
        return groups if all(map(self._is_legal, groups)) else None

    def _is_legal(self, group: StatementGroup) -> bool:
        if group not in self.legal:
            try:
                self.base.kernel(group)
                self.run.type_of(group)
                self.legal[group] = True
            except UserError:
                self.legal[group] = False
        return self.legal[group]

    def _timed(self, decisions: _Decisions) -> int | None:
        """The cycles of a program; ``None`` if they are more than those of the best one."""
        groups = self._groups(decisions)
        if groups is None:
            return None
        keys = [self._key(group) for group in groups]
        known = self.shared.cycles
        total = sum(known.get(key, 0) for key in keys)
        for key in keys:
            if key not in known:
                best = self.shared.best
                limit = None if best is None else best[0] - total
                if limit is not None and limit <= 0:
                    return None
                found = self._cycles(key[0], limit)
                if found is None:
                    return None
                known[key] = found
                total += found
        if not self.shared.is_beaten(total):
            self.shared.best = total, self, decisions
        return total

    def _cycles(self, group: StatementGroup, limit: int | None) -> int | None:
        design, given = self.run.kernel(group)
        shared = self.shared
        shared.timed += 1
        shared.bar.timed(shared.timed, None if shared.best is None else shared.best[0])
        return cycles_within(design, given, device=shared.device, most=limit)

    # the winner

    def program_of(self, decisions: _Decisions) -> tuple[ProgramT, tuple[str, ...]]:
        """The program of decisions, and the calls that make it."""
        program, lines = self.program, [*self.lines]
        for name, schedule in decisions.schedules.items():
            assert schedule.order is not None
            text = f"reorder({','.join(schedule.order.variables)})"
            program = program.schedule(name, text)
            lines.append(f'.schedule("{name}", "{text}")')
        for way in (Way.STREAM, Way.RECOMPUTE):
            names = [p.tensor for p in decisions.passed if p.way is way]
            names = [name for name in self.names if name in names]
            if names:
                call = program.stream if way is Way.STREAM else program.recompute
                program = call(*names)
                lines.append(f".{way.value}({_quoted(names)})")
        return program, tuple(lines)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _groupings(program: ProgramT) -> Iterator[tuple[ProgramT, tuple[str, ...]]]:
    """The program with other products first, and the calls that make it.

    Statements that the user has said something about stay.
    """
    said = {*program.schedules, *(passing.tensor for passing in program.said)}
    free = [one for one in groupings(program.program) if not {one.statement, one.instead} & said]
    found: list[tuple[ProgramT, tuple[str, ...]]] = [(program, ())]
    for grouping in free:
        call = f'.regroup("{grouping.statement}", {_quoted(grouping.first)})'
        found += [
            (one.regroup(grouping.statement, *grouping.first), (*lines, call))
            for one, lines in found
            if grouping in groupings(one.program)
        ]
    return iter(found[1:MOST_GROUPINGS])


def _without_zeros(value: SparseTensor) -> SparseTensor:
    array = value.to_dense()
    places = np.argwhere(array != 0)
    return from_coordinates(places, array[array != 0], value.shape, csf(array.ndim))
