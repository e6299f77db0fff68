"""From an assignment and a schedule with external functions to a plan."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace
from typing import Protocol

from t2s.capability.conditions import Answer, holds
from t2s.capability.description import ExternalFunction
from t2s.capability.hardware import HOST
from t2s.capability.ir import Condition
from t2s.capability.mapping import Mapping as PartMapping
from t2s.capability.normal import PartForm, part_form, with_common_factor
from t2s.capability.parts import TakenOut, find_part
from t2s.capability.printer import print_condition
from t2s.capability.properties import symmetric_in
from t2s.capability.refusals import Refusal
from t2s.capability.reshape import (
    AS_IT_STANDS,
    EVERYTHING,
    Asked,
    Reshape,
    known_modes,
    mappings,
)
from t2s.capability.solver import Proof, Solver
from t2s.core.errors import UnsupportedError, UserError
from t2s.core.location import SourceLocation
from t2s.core.names import NameSupply
from t2s.core.walk import Term, rewrite
from t2s.plan.asked import check_asked, check_variables, declared_extents, facts_of_schedule
from t2s.plan.ir import (
    CallStep,
    CheckStep,
    ConvertStep,
    LoopsStep,
    PlanProgram,
)
from t2s.plan.operands import OperandSteps
from t2s.plan.verify import verify_plan
from t2s.sparse_repr.concrete.external_directives import (
    AssumeExtents,
    BindPart,
    FixVariables,
    FunctionOrName,
    MapPart,
    PromoteOperand,
    StoreInOrder,
    StreamsOnDevice,
)
from t2s.sparse_repr.concrete.pattern_directives import LoopDirective
from t2s.sparse_repr.concrete.schedule import Precompute, Schedule, Transpose
from t2s.sparse_repr.formats import Format, dense
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Expression,
    Negative,
    Number,
    TensorDeclaration,
    accesses,
    all_variables,
    free_variables,
    print_expression,
)
from t2s.sparse_repr.notation.tags import SYMMETRIC


class Resolver(Protocol):
    """What knows functions by their names, and what streams of an assignment are as a function."""

    def function(self, given: FunctionOrName, location: SourceLocation) -> ExternalFunction:
        """A function, or the one that a name says.  Raises ``UserError`` if there is none."""

    def streams(self, assignment: Assignment, one: StreamsOnDevice) -> ExternalFunction:
        """The streams of an assignment on the device that a directive says."""


def build_plan(
    assignment: Assignment, schedule: Schedule, resolve: Resolver, solver: Solver | None = None
) -> PlanProgram:
    """The plan of an assignment under a schedule; ``resolve`` finds functions by their names.

    Raises ``UserError`` for a part that is not what its function computes, with the first rule
    that fails.
    """
    builder = PlanBuilder(assignment, resolve, solver or Solver(), facts_of_schedule(schedule))
    builder.take(schedule.directives)
    return builder.plan()


@dataclass
class PlanBuilder:
    """A plan that grows, directive by directive; ``plan`` adds what is left."""

    assignment: Assignment
    resolve: Resolver
    solver: Solver
    facts: tuple[tuple[Condition, SourceLocation], ...] = ()

    def __post_init__(self) -> None:
        self.left = self.assignment
        names = (*all_variables(self.assignment), *(t.name for t in self.assignment.tensors))
        self.names = NameSupply(names)
        self.formats: dict[str, Format] = {t.name: t.format for t in self.assignment.tensors}
        self.made = OperandSteps(formats=self.formats, names=self.names)
        self.streams: StreamsOnDevice | None = None
        self.properties = {t.name: t.properties for t in self.assignment.tensors if t.properties}
        self.extents = declared_extents(self.assignment)
        self.checked: set[tuple[str, str]] = set()
        self.follows_from: dict[str, tuple[str, ...]] = {}
        """The inputs whose declared properties give a workspace the same ones."""

    def copy(self) -> PlanBuilder:
        """The same plan so far, which may go on in another way."""
        new = copy(self)
        new.formats, new.names = dict(self.formats), self.names.copy()
        new.properties, new.checked = dict(self.properties), set(self.checked)
        new.follows_from = dict(self.follows_from)
        new.made = self.made.copy(new.formats, new.names)
        return new

    def take(self, directives: Iterable[LoopDirective]) -> None:
        """The next directives, in order."""
        asked = Asked()
        unused: list[FixVariables | PromoteOperand] = []
        for one in directives:
            match one:
                case FixVariables(variables=names):
                    check_variables(self.assignment, names, one.location)
                    asked, unused = replace(asked, fixed=(*asked.fixed, *names)), [*unused, one]
                case PromoteOperand(tensor=tensor, position=position):
                    more = (*asked.promoted, (tensor, position))
                    asked, unused = replace(asked, promoted=more), [*unused, one]
                case BindPart() | MapPart():
                    self._call(one, asked)
                    asked, unused = Asked(), []
                case Precompute(format=None, over=None):
                    self._precompute(one)
                case StoreInOrder():
                    self._store(one)
                case StreamsOnDevice():
                    self.streams = one
                case AssumeExtents() | Transpose():
                    continue
                case _:
                    raise UnsupportedError(
                        "the loops of a plan take no directives yet",
                        location=one.location,
                        expected="bind, map, fix, promote, assume, precompute, store, streams and "
                        "transpose",
                        hint="sparse.compile without external functions takes all directives",
                    )
        if unused:
            raise UserError(
                "fix and promote are for the function that is bound next, and there is none",
                location=unused[0].location,
                expected="bind or map behind it",
            )

    def plan(self) -> PlanProgram:
        """What is left, computed by loops or streams, and the whole plan."""
        self._finish()
        program = PlanProgram(
            assignment=self.assignment,
            steps=tuple(self.made.steps),
            tensors=tuple(self.formats.items()),
            facts=self.facts,
            result=self.assignment.result.tensor,
        )
        verify_plan(program)
        return program

    @property
    def rest(self) -> Assignment | None:
        """What is left to compute; ``None`` if the last call gives the result."""
        calls = [step for step in self.made.steps if isinstance(step, CallStep)]
        value = self.left.value
        given = calls and isinstance(value, Access) and value.tensor == calls[-1].target
        whole = set(free_variables(value)) == set(self.assignment.result.variables)
        return None if given and whole else self.left

    def _call(self, one: BindPart | MapPart, asked: Asked) -> None:
        """The steps of a part that a function computes; what is left reads its workspace."""
        function = self.resolve.function(one.function, one.location)
        taken = find_part(self.left, one.value, one.location)
        part = part_form(
            taken.value, self.formats, self.properties, semiring=self.assignment.semiring
        )
        check_asked(part, asked, one.location)
        reshape = AS_IT_STANDS
        if isinstance(one, MapPart):
            reshape = replace(EVERYTHING, pad=one.pad, densify=one.densify)
        try:
            mapping = self._mapping(part, function, reshape, asked, one)
        except UserError:
            mapped = isinstance(one, MapPart)
            factored = self._with_common_factor(part, function, reshape, asked) if mapped else None
            if factored is None:
                raise
            mapping, taken = factored, replace(taken, value=factored.part)
        proof = self._proof(mapping)
        if proof.answer is Answer.FALSE and not reshape.tile:
            raise UserError(
                f"{function.name} is not for the extents that are assumed",
                location=one.location,
                expected=print_condition(mapping.condition),
                given=" and ".join(print_condition(fact) for fact, _ in self.facts),
                hint="map(...) makes tiles where it can",
            )
        if not one.trusted:
            self._checks(mapping)
        self._add_call(mapping, taken, one, reshape, proof)

    def _add_call(
        self,
        mapping: PartMapping,
        taken: TakenOut,
        one: BindPart | MapPart,
        reshape: Reshape,
        proof: Proof,
    ) -> None:
        hardware = mapping.function.hardware
        if hardware is not None and hardware.link is not None:
            self.made.links[hardware.memory] = hardware.link
        mapping = self.made.in_order(self._with_numbers(mapping))
        reads = tuple((view.name, self.made.operand(view, mapping)) for view in mapping.operands)
        target, meaning = self._workspace(mapping.function, mapping, taken)
        self.made.add(
            CallStep(
                target=target,
                mapping=mapping,
                reads=reads,
                meaning=meaning,
                tiles=reshape.tile,
                pads=reshape.pad,
                falls_back=one.fallback,
                proof=proof,
                location=one.location,
            )
        )
        self._replace(taken, meaning.result)

    def _mapping(
        self,
        part: PartForm,
        function: ExternalFunction,
        reshape: Reshape,
        asked: Asked,
        one: BindPart | MapPart,
    ) -> PartMapping:
        for found in mappings(part, function, reshape, self.extents, asked):
            return found
        raise Refusal(
            assignment=self.left,
            part=part,
            function=function,
            reshape=reshape,
            asked=asked,
            extents=self.extents,
            location=one.location,
        ).error()

    def _with_common_factor(
        self,
        part: PartForm,
        function: ExternalFunction,
        reshape: Reshape,
        asked: Asked,
    ) -> PartMapping | None:
        """The mapping of ``B*C + B*D`` as one product, behind a step that computes ``C + D``."""
        names = self.names.copy()
        found = with_common_factor(part, names.fresh("T"))
        if found is None:
            return None
        inner, value, product = found
        formats = {**self.formats, inner.tensor: dense(len(inner.variables))}
        form = part_form(product, formats, self.properties, semiring=self.assignment.semiring)
        mapping = next(mappings(form, function, reshape, self.extents, asked), None)
        if mapping is not None:
            self.names = self.made.names = names
            statement = self._statement(inner, value, formats[inner.tensor])
            self.made.add(LoopsStep(assignment=statement))
        return mapping

    def _with_numbers(self, mapping: PartMapping) -> PartMapping:
        """The mapping with scalars for the numbers that are operands, each made by a step."""
        names: dict[str, str] = {}
        for name, number in mapping.numbers:
            target = names[name] = self.names.fresh("number")
            value: Expression = Number(value=abs(number))
            value = Negative(value=value) if number < 0 else value
            statement = self._statement(Access(tensor=target), value, dense(0))
            self.made.add(LoopsStep(assignment=statement))
        if not names:
            return mapping

        def named(access: Access) -> Access:
            return replace(access, tensor=names.get(access.tensor, access.tensor))

        return replace(
            mapping,
            operands=tuple(replace(one, access=named(one.access)) for one in mapping.operands),
            reads=tuple((name, named(access)) for name, access in mapping.reads),
        )

    def _checks(self, mapping: PartMapping) -> None:
        for view in mapping.operands:
            tensor = view.access.tensor
            for name in mapping.function.capability.needs_of(view.name).properties:
                for declared in self.follows_from.get(tensor, (tensor,)):
                    self._check(declared, name)

    def _check(self, tensor: str, property: str) -> None:
        """Look at the values of a tensor that is declared to have a property, once."""
        if (tensor, property) in self.checked:
            return
        self.checked.add((tensor, property))
        location = next((t.location for t in self.assignment.tensors if t.name == tensor), None)
        self.made.add(CheckStep(tensor=tensor, property=property, location=location))

    def _workspace(
        self, function: ExternalFunction, mapping: PartMapping, taken: TakenOut
    ) -> tuple[str, Assignment]:
        """What the call writes: the result itself if it is all of it, and stored alike."""
        variables = mapping.variables
        formats = function.capability.needs_of(function.capability.result.tensor).formats
        format = formats[0] if formats else dense(len(variables))
        result = self.assignment.result
        marker = Access(tensor="the part")
        read = {access.tensor for access in accesses(self.assignment.value)}
        whole = taken.left(marker) == marker and result.variables == variables
        if whole and self.formats[result.tensor] == format and result.tensor not in read:
            target = result.tensor
        else:
            target = self.names.fresh("T")
        access = Access(tensor=target, variables=variables)
        return target, self._statement(access, taken.value, format)

    def _statement(self, result: Access, value: Expression, format: Format) -> Assignment:
        """The statement of a step, with the tensors that it has."""
        self.formats[result.tensor] = format
        if frozenset(result.variables) in symmetric_in(value, self.properties):
            self.properties[result.tensor] = (SYMMETRIC,)
            self.follows_from[result.tensor] = tuple(
                declared
                for access in dict.fromkeys(accesses(value))
                if SYMMETRIC in self.properties.get(access.tensor, ())
                for declared in self.follows_from.get(access.tensor, (access.tensor,))
            )
        tensors = self._declared(result, value)
        return replace(self.assignment, result=result, value=value, tensors=tensors)

    def _declared(self, result: Access, value: Expression) -> tuple[TensorDeclaration, ...]:
        """The tensors of a statement: those of the user, and workspaces."""
        names = dict.fromkeys((result.tensor, *(access.tensor for access in accesses(value))))
        known = {tensor.name: tensor for tensor in self.assignment.tensors}
        return tuple(
            known.get(name, TensorDeclaration(name=name, format=self.formats[name]))
            for name in names
        )

    def _replace(self, taken: TakenOut, access: Access) -> None:
        """Read the workspace in place of the part."""
        value = taken.left(access)
        tensors = self._declared(self.assignment.result, value)
        self.left = replace(self.left, value=value, tensors=tensors)

    def _precompute(self, one: Precompute) -> None:
        """A part that we compute first, into a dense workspace."""
        taken = find_part(self.left, one.value, one.location)
        if one.workspace in self.formats:
            raise UserError(
                f"there is a tensor {one.workspace} already",
                location=one.location,
                expected="a new name for the workspace",
            )
        target = self.names.fresh(one.workspace)
        access = Access(tensor=target, variables=taken.free)
        statement = self._statement(access, taken.value, dense(len(taken.free)))
        self.made.add(LoopsStep(assignment=statement))
        self._replace(taken, access)

    def _proof(self, mapping: PartMapping) -> Proof:
        """What is known of the condition of a call: evaluated, proved, or open."""
        condition = mapping.condition
        known = known_modes(condition, self.extents)
        answer = holds(condition, known)
        if answer is not Answer.OPEN:
            shown = ", ".join(f"{name} is {extent}" for name, extent in known.items())
            return Proof(answer=answer, text=shown or "it asks for nothing")
        if not self.facts:
            return Proof(answer=Answer.OPEN, text="extents are known when it runs")
        return self.solver.prove(condition, [fact for fact, _ in self.facts], self.extents)

    def _store(self, one: StoreInOrder) -> None:
        """What is left reads a copy of a tensor, with its modes in another order in memory."""
        read = [access for access in accesses(self.left.value) if access.tensor == one.tensor]
        stored = self.formats.get(one.tensor)
        full = stored is not None and stored.plain and all(level.full for level in stored.levels)
        if not read or not full or len(one.modes) != len(read[0].variables):
            raise UserError(
                f"{one.tensor} is not stored in another order",
                location=one.location,
                expected="a dense tensor that what is left of the assignment reads, and its modes",
                given=f"{print_expression(self.left.value)}, {len(one.modes)} modes",
            )
        format = dense(len(one.modes), one.modes)
        name = f"{one.tensor}_{''.join(map(str, one.modes))}"
        order = tuple(range(len(one.modes)))
        target = self.made.converted(one.tensor, format, order, name, "asked for")

        def moved(term: Term) -> Term | None:
            if isinstance(term, Access) and term.tensor == one.tensor:
                return replace(term, tensor=target)
            return None

        value = rewrite(self.left.value, moved)
        tensors = self._declared(self.assignment.result, value)
        self.left = replace(self.left, value=value, tensors=tensors)

    def _finish(self) -> None:
        """What is left of the assignment: loops or streams, a conversion, or nothing."""
        result = self.assignment.result
        value = self.left.value
        calls = [step for step in self.made.steps if isinstance(step, CallStep)]
        last = calls[-1] if calls else None
        if last is not None and isinstance(value, Access) and value.tensor == last.target:
            if last.target != result.tensor:
                self._give(last, value)
        elif self.streams is not None:
            self._stream(self.streams)
        else:
            self.made.add(LoopsStep(assignment=self.left))
        self.made.bring(result.tensor, HOST)

    def _give(self, last: CallStep, value: Access) -> None:
        """The result is what the last function gives, stored in another way."""
        result = self.assignment.result
        if set(value.variables) != set(result.variables):
            self.made.add(LoopsStep(assignment=self.left))
            return
        self.made.add(
            ConvertStep(
                target=result.tensor,
                source=value.tensor,
                format=self.formats[result.tensor],
                modes=tuple(value.variables.index(name) for name in result.variables),
                why=f"{last.mapping.function.name} gives {print_expression(value)}",
            )
        )

    def _stream(self, one: StreamsOnDevice) -> None:
        """What is left as streams on a device, which compute all of it."""
        memory = next(
            (m for m in self.made.links if one.link is None and m.name == one.device), None
        )
        known = one if memory is None else replace(one, link=self.made.links[memory])
        function = self.resolve.streams(self.left, known)
        part = part_form(
            self.left.value, self.formats, self.properties, semiring=self.assignment.semiring
        )
        bound = BindPart(value=self.left.value, function=function, location=one.location)
        mapping = self._mapping(part, function, AS_IT_STANDS, Asked(), bound)
        taken = TakenOut(
            value=self.left.value, free=self.left.result.variables, left=lambda new: new
        )
        self._add_call(mapping, taken, bound, AS_IT_STANDS, self._proof(mapping))
