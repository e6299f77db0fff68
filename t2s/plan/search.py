"""All plans of an assignment with some functions, the fastest first (papers/002, section 6).

A plan is a row of choices: which function computes which part, with which variables fixed, each in
what the choices before it have left; at last, which dense operands are stored in another order for
the loops of the rest.  Branch and bound: what is computed already takes its time whatever comes, so
a row that takes longer than the plans that are kept is not made longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from t2s.capability.description import ExternalFunction
from t2s.capability.normal import PartForm, part_form
from t2s.capability.parts import find_part
from t2s.capability.reshape import Reshape, fewest
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.walk import Term, rewrite
from t2s.plan.build import Resolver, build_plan
from t2s.plan.candidates import parts_of
from t2s.plan.cost import PlanFacts, Prediction, predict
from t2s.plan.ir import LoopsStep, PlanProgram
from t2s.plan.machine import HostMachine
from t2s.sparse_repr.concrete.external_directives import (
    FixVariables,
    MapPart,
    StoreInOrder,
)
from t2s.sparse_repr.concrete.pattern_directives import LoopDirective
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.notation.ir import Access, Assignment, Expression, accesses, print_expression


@dataclass(frozen=True, kw_only=True, eq=False)
class RankedPlan:
    """A plan with its schedule, and the seconds that it is predicted to take."""

    schedule: Schedule
    program: PlanProgram
    prediction: Prediction

    @property
    def seconds(self) -> float:
        """The predicted time."""
        return self.prediction.seconds

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the functions that it calls, in order."""
        return tuple(call.mapping.function.name for call in self.program.calls)


@dataclass(frozen=True, kw_only=True)
class SearchTask:
    """What is searched: an assignment, functions, what may be done, and for which inputs."""

    assignment: Assignment
    functions: tuple[ExternalFunction, ...]
    reshape: Reshape
    facts: PlanFacts
    machine: HostMachine
    resolver: Resolver
    limit: int
    location: SourceLocation


MOST_BYTES = 1 << 33
"""Of a workspace; plans with larger ones are not among those that a search finds."""

Told = Callable[[int, str], None]


@dataclass
class PlanSearch:
    """A search that may be left at any time: ``kept`` has the best plans until then."""

    task: SearchTask
    told: Told
    kept: list[RankedPlan] = field(default_factory=list)
    tried: int = 0
    seen: set[object] = field(default_factory=set)

    def run(self) -> None:
        """Try all rows of choices that may be among the best."""
        first = self._plan(())
        if first is not None:
            self._keep(first)
            self._extend((), first)

    def _plan(self, directives: tuple[LoopDirective, ...]) -> RankedPlan | None:
        """The plan of these choices; ``None`` if there is none."""
        task = self.task
        schedule = Schedule(directives=directives)
        try:
            program = build_plan(task.assignment, schedule, task.resolver)
        except UserError:
            return None
        self.tried += 1
        if self._too_large(program):
            return None
        prediction = predict(program, task.facts, task.machine)
        self.told(self.tried, ", ".join(call.mapping.function.name for call in program.calls))
        return RankedPlan(schedule=schedule, program=program, prediction=prediction)

    def _too_large(self, program: PlanProgram) -> bool:
        """Whether a call writes a workspace that no memory holds."""
        facts = self.task.facts
        return any(
            facts.itemsize * prod(facts.extents[name] for name in call.mapping.variables)
            > MOST_BYTES
            for call in program.calls
            if call.target != program.result
        )

    def _keep(self, plan: RankedPlan) -> None:
        self.kept.append(plan)
        self.kept.sort(key=lambda one: one.seconds)  # stable: of equal ones the first
        del self.kept[self.task.limit :]

    def _hopeless(self, plan: RankedPlan) -> bool:
        """Whether no longer row is among the best: what is left is the only thing that changes."""
        if len(self.kept) < self.task.limit:
            return False
        done = sum(
            one.seconds for one in plan.prediction.steps if not isinstance(one.step, LoopsStep)
        )
        return done >= self.kept[-1].seconds

    def _extend(
        self,
        directives: tuple[LoopDirective, ...],
        plan: RankedPlan,
    ) -> None:
        left = left_of(plan.program)
        if left is None or self._hopeless(plan):
            return
        self._stored(directives, left)
        for choice in choices(left, plan.program, self.task):
            made = self._plan((*directives, *choice))
            if made is None or not _allowed(made, self.task.reshape):
                continue
            key = frozenset(_calls_of(made.program))
            if key in self.seen:
                continue
            self.seen.add(key)
            self._keep(made)
            self._extend((*directives, *choice), made)

    def _stored(self, directives: tuple[LoopDirective, ...], left: Assignment) -> None:
        """Plans whose loops read dense matrices in another order."""
        for access in dict.fromkeys(accesses(left.value)):
            known = self.task.facts.tensors.get(access.tensor)
            if known is None or known.sparse or len(known.shape) != 2:
                continue
            one = StoreInOrder(
                tensor=access.tensor, modes=known.order[::-1], location=self.task.location
            )
            made = self._plan((*directives, one))
            if made is not None:
                self._keep(made)


def left_of(program: PlanProgram) -> Assignment | None:
    """What loops compute at the end of a plan, if they compute anything."""
    for step in reversed(program.steps):
        if isinstance(step, LoopsStep) and step.assignment.result.tensor == program.result:
            return step.assignment
    return None


def choices(
    left: Assignment, program: PlanProgram, task: SearchTask
) -> Iterator[tuple[LoopDirective, ...]]:
    """The next choices: a part, a function, and what is fixed, as directives."""
    for part, form in forms(left, program):
        for function in task.functions:
            done: set[tuple[str, ...]] = set()
            for mapping in fewest(form, function, task.reshape, task.facts.extents):
                if mapping.fixed in done:
                    continue
                done.add(mapping.fixed)
                found: list[LoopDirective] = []
                if mapping.fixed:
                    found.append(FixVariables(variables=mapping.fixed, location=task.location))
                found.append(
                    MapPart(
                        value=part,
                        function=function,
                        pad=task.reshape.pad,
                        densify=task.reshape.densify,
                        location=task.location,
                    )
                )
                yield tuple(found)


def forms(left: Assignment, program: PlanProgram) -> Iterator[tuple[Expression, PartForm]]:
    """All parts of what is left, once for the orders of their operands, and their normal forms."""
    formats = dict(program.tensors)
    properties = {tensor.name: tensor.properties for tensor in left.tensors}
    for part in parts_of(left):
        if isinstance(part, Access):
            continue  # a copy
        try:
            taken = find_part(left, part, None)
        except UserError:
            continue  # it is there twice, so it has no name of its own
        yield part, part_form(taken.value, formats, properties, left.semiring)


def _expanded(value: Expression, meanings: Mapping[str, Expression]) -> Expression:
    """The expression with workspaces named after what they are, whatever their own names are."""

    def named(term: Term) -> Term | None:
        if isinstance(term, Access) and term.tensor in meanings:
            text = print_expression(meanings[term.tensor])
            return Access(tensor=f"[{text}]", variables=term.variables)
        return None

    return rewrite(value, named)


def _calls_of(program: PlanProgram) -> Iterator[tuple[ExternalFunction, tuple[str, ...], str]]:
    """The calls of a plan, alike for rows that differ in the order of what is independent."""
    meanings: dict[str, Expression] = {}
    for call in program.calls:
        value = _expanded(call.meaning.value, meanings)
        yield call.mapping.function, call.mapping.fixed, print_expression(value)
        meanings[call.target] = value


def _allowed(plan: RankedPlan, reshape: Reshape) -> bool:
    """Whether the mappings of a plan use what may be used."""
    for call in plan.program.calls:
        mapping = call.mapping
        fused = any(len(mode) > 1 for view in mapping.operands for mode in view.modes)
        if (mapping.transposed and not reshape.transpose) or (fused and not reshape.fuse):
            return False
        if mapping.promoted and not reshape.promote:
            return False
    return True
