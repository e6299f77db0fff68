"""Building a plan from an assignment and a schedule with external functions.

The schedule names the calls and assumptions on extents; the plan has steps for the calls, for the
rest of the assignment, and for bringing operands into the formats and memories of the calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Protocol

from t2s.capability.conditions import Answer, holds, names_of
from t2s.capability.description import HOST, ExternalFunction, HostLink, MemoryOf
from t2s.capability.ir import Condition, is_list, parse_condition, print_condition
from t2s.capability.mapping import Mapping as PartMapping
from t2s.capability.mapping import OperandView
from t2s.capability.operands import (
    fits,
    fixed_modes,
    format_in_order,
    format_with_slices,
    is_dense,
    sliced_format,
    symmetric_in,
)
from t2s.capability.parts import PartForm, TakenOut, find_part, part_form, with_common_factor
from t2s.capability.refusals import Refusal
from t2s.capability.reshape import (
    AS_IT_STANDS,
    EVERYTHING,
    Reshape,
    ReshapeRequest,
    known_modes,
    mappings,
)
from t2s.capability.solver import Proof, Solver
from t2s.core.errors import UnsupportedError, UserError
from t2s.core.location import SourceLocation
from t2s.core.names import NameSupply
from t2s.core.walk import Term, rewrite
from t2s.plan.ir import (
    CallStep,
    CheckStep,
    ConvertStep,
    LoopsStep,
    MoveStep,
    PlanProgram,
    Step,
    memory_of,
    sources_of,
    target_of,
    verify_plan,
)
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
from t2s.sparse_repr.notation.symbols import SYMMETRIC


class Resolver(Protocol):
    """Finds functions by name, and makes a function of an assignment computed by streams."""

    def function(self, given: FunctionOrName, location: SourceLocation) -> ExternalFunction:
        """A function, also by its name.  Raises ``UserError`` for an unknown name."""

    def streams(self, assignment: Assignment, one: StreamsOnDevice) -> ExternalFunction:
        """The streams of an assignment on the device of a directive, as a function."""


def build_plan(
    assignment: Assignment, schedule: Schedule, resolve: Resolver, solver: Solver | None = None
) -> PlanProgram:
    """Build the plan of an assignment under a schedule; ``resolve`` finds functions by name.

    Raises ``UserError`` for a part that its function does not compute, with the first rule that
    fails.
    """
    builder = PlanBuilder(assignment, resolve, solver or Solver(), assumptions_of(schedule))
    builder.take(schedule.directives)
    return builder.plan()


@dataclass
class PlanBuilder:
    """A plan that grows with each directive; ``plan`` completes it with the rest."""

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
        """A copy of the plan so far, which can be continued differently."""
        new = copy(self)
        new.formats, new.names = dict(self.formats), self.names.copy()
        new.properties, new.checked = dict(self.properties), set(self.checked)
        new.follows_from = dict(self.follows_from)
        new.made = self.made.copy(new.formats, new.names)
        return new

    def take(self, directives: Iterable[LoopDirective]) -> None:
        """Apply directives, in order."""
        asked = ReshapeRequest()
        unused: list[FixVariables | PromoteOperand] = []
        for directive in directives:
            match directive:
                case FixVariables(variables=names):
                    check_variables(self.assignment, names, directive.location)
                    asked, unused = (
                        replace(asked, fixed=(*asked.fixed, *names)),
                        [*unused, directive],
                    )
                case PromoteOperand(tensor=tensor, position=position):
                    more = (*asked.promoted, (tensor, position))
                    asked, unused = replace(asked, promoted=more), [*unused, directive]
                case BindPart() | MapPart():
                    self._call(directive, asked)
                    asked, unused = ReshapeRequest(), []
                case Precompute(format=None, over=None):
                    self._precompute(directive)
                case StoreInOrder():
                    self._store(directive)
                case StreamsOnDevice():
                    self.streams = directive
                case AssumeExtents() | Transpose():
                    continue
                case _:
                    raise UnsupportedError(
                        "the loops of a plan take no directives yet",
                        location=directive.location,
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
        """Compute the rest by loops or streams, and return the whole plan."""
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
        """What is left to compute; ``None`` if the last call produces the result."""
        calls = [step for step in self.made.steps if isinstance(step, CallStep)]
        value = self.left.value
        computed = calls and isinstance(value, Access) and value.tensor == calls[-1].target
        whole = set(free_variables(value)) == set(self.assignment.result.variables)
        return None if computed and whole else self.left

    def _call(self, directive: BindPart | MapPart, asked: ReshapeRequest) -> None:
        """Add the steps of a part that a function computes; the rest reads its workspace."""
        function = self.resolve.function(directive.function, directive.location)
        taken = find_part(self.left, directive.value, directive.location)
        part = part_form(
            taken.value, self.formats, self.properties, semiring=self.assignment.semiring
        )
        check_request(part, asked, directive.location)
        reshape = AS_IT_STANDS
        if isinstance(directive, MapPart):
            reshape = replace(EVERYTHING, pad=directive.pad, densify=directive.densify)
        try:
            mapping = self._mapping(part, function, reshape, asked, directive)
        except UserError:
            mapped = isinstance(directive, MapPart)
            factored = self._with_common_factor(part, function, reshape, asked) if mapped else None
            if factored is None:
                raise
            mapping, taken = factored, replace(taken, value=factored.part)
        proof = self._proof(mapping)
        if proof.answer is Answer.FALSE and not reshape.tile:
            raise UserError(
                f"{function.name} is not for the extents that are assumed",
                location=directive.location,
                expected=print_condition(mapping.condition),
                given=" and ".join(print_condition(fact) for fact, _ in self.facts),
                hint="map(...) makes tiles where it can",
            )
        if not directive.trusted:
            self._checks(mapping)
        self._add_call(mapping, taken, directive, reshape, proof)

    def _add_call(
        self,
        mapping: PartMapping,
        taken: TakenOut,
        directive: BindPart | MapPart,
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
                falls_back=directive.fallback,
                proof=proof,
                location=directive.location,
            )
        )
        self._replace(taken, meaning.result)

    def _mapping(
        self,
        part: PartForm,
        function: ExternalFunction,
        reshape: Reshape,
        asked: ReshapeRequest,
        directive: BindPart | MapPart,
    ) -> PartMapping:
        for mapping in mappings(part, function, reshape, self.extents, asked):
            return mapping
        raise Refusal(
            assignment=self.left,
            part=part,
            function=function,
            reshape=reshape,
            asked=asked,
            extents=self.extents,
            location=directive.location,
        ).error()

    def _with_common_factor(
        self,
        part: PartForm,
        function: ExternalFunction,
        reshape: Reshape,
        asked: ReshapeRequest,
    ) -> PartMapping | None:
        """The mapping of ``B*C + B*D`` as one product, after a step that computes ``C + D``."""
        names = self.names.copy()
        factored = with_common_factor(part, names.fresh("T"))
        if factored is None:
            return None
        inner, value, product = factored
        formats = {**self.formats, inner.tensor: dense(len(inner.variables))}
        form = part_form(product, formats, self.properties, semiring=self.assignment.semiring)
        mapping = next(mappings(form, function, reshape, self.extents, asked), None)
        if mapping is not None:
            self.names = self.made.names = names
            statement = self._statement(inner, value, formats[inner.tensor])
            self.made.add(LoopsStep(assignment=statement))
        return mapping

    def _with_numbers(self, mapping: PartMapping) -> PartMapping:
        """The mapping with scalars for constants that are operands, each made by a step."""
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
            operands=tuple(
                replace(operand, access=named(operand.access)) for operand in mapping.operands
            ),
            reads=tuple((name, named(access)) for name, access in mapping.reads),
        )

    def _checks(self, mapping: PartMapping) -> None:
        for view in mapping.operands:
            tensor = view.access.tensor
            for name in mapping.function.capability.needs_of(view.name).properties:
                for declared in self.follows_from.get(tensor, (tensor,)):
                    self._check(declared, name)

    def _check(self, tensor: str, property: str) -> None:
        """Check a declared property of a tensor on its values, once."""
        if (tensor, property) in self.checked:
            return
        self.checked.add((tensor, property))
        location = next((t.location for t in self.assignment.tensors if t.name == tensor), None)
        self.made.add(CheckStep(tensor=tensor, property=property, location=location))

    def _workspace(
        self, function: ExternalFunction, mapping: PartMapping, taken: TakenOut
    ) -> tuple[str, Assignment]:
        """The tensor that a call writes: the result itself, if it is complete and in its format."""
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
        """The declarations of the tensors of a statement, including workspaces."""
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

    def _precompute(self, directive: Precompute) -> None:
        """Compute a part first by loops, into a dense workspace."""
        taken = find_part(self.left, directive.value, directive.location)
        if directive.workspace in self.formats:
            raise UserError(
                f"there is a tensor {directive.workspace} already",
                location=directive.location,
                expected="a new name for the workspace",
            )
        target = self.names.fresh(directive.workspace)
        access = Access(tensor=target, variables=taken.free)
        statement = self._statement(access, taken.value, dense(len(taken.free)))
        self.made.add(LoopsStep(assignment=statement))
        self._replace(taken, access)

    def _proof(self, mapping: PartMapping) -> Proof:
        """The state of the condition of a call: evaluated, proved, or open."""
        condition = mapping.condition
        known = known_modes(condition, self.extents)
        answer = holds(condition, known)
        if answer is not Answer.OPEN:
            shown = ", ".join(f"{name} is {extent}" for name, extent in known.items())
            return Proof(answer=answer, text=shown or "it asks for nothing")
        if not self.facts:
            return Proof(answer=Answer.OPEN, text="extents are known when it runs")
        return self.solver.prove(condition, [fact for fact, _ in self.facts], self.extents)

    def _store(self, directive: StoreInOrder) -> None:
        """Let the rest read a copy of a tensor with its modes in another order in memory."""
        read = [access for access in accesses(self.left.value) if access.tensor == directive.tensor]
        stored = self.formats.get(directive.tensor)
        full = stored is not None and stored.plain and all(level.full for level in stored.levels)
        if not read or not full or len(directive.modes) != len(read[0].variables):
            raise UserError(
                f"{directive.tensor} is not stored in another order",
                location=directive.location,
                expected="a dense tensor that what is left of the assignment reads, and its modes",
                given=f"{print_expression(self.left.value)}, {len(directive.modes)} modes",
            )
        format = dense(len(directive.modes), directive.modes)
        name = f"{directive.tensor}_{''.join(map(str, directive.modes))}"
        order = tuple(range(len(directive.modes)))
        target = self.made.converted(directive.tensor, format, order, name, "asked for")

        def moved(term: Term) -> Term | None:
            if isinstance(term, Access) and term.tensor == directive.tensor:
                return replace(term, tensor=target)
            return None

        value = rewrite(self.left.value, moved)
        tensors = self._declared(self.assignment.result, value)
        self.left = replace(self.left, value=value, tensors=tensors)

    def _finish(self) -> None:
        """Compute the rest of the assignment by loops, streams or a conversion, if there is any."""
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
        """Convert the output of the last function to the result's format."""
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

    def _stream(self, directive: StreamsOnDevice) -> None:
        """Compute the whole rest by streams on a device."""
        memory = next(
            (m for m in self.made.links if directive.link is None and m.name == directive.device),
            None,
        )
        known = directive if memory is None else replace(directive, link=self.made.links[memory])
        function = self.resolve.streams(self.left, known)
        part = part_form(
            self.left.value, self.formats, self.properties, semiring=self.assignment.semiring
        )
        bound = BindPart(value=self.left.value, function=function, location=directive.location)
        mapping = self._mapping(part, function, AS_IT_STANDS, ReshapeRequest(), bound)
        taken = TakenOut(
            value=self.left.value, free=self.left.result.variables, left=lambda new: new
        )
        self._add_call(mapping, taken, bound, AS_IT_STANDS, self._proof(mapping))


# Assumptions and requests of a schedule: on extents, and on the variables of calls.


def assumptions_of(
    schedule: Schedule,
) -> tuple[tuple[Condition, SourceLocation], ...]:
    """The user's assumptions on extents.  Raises ``UserError`` for conditions over lists."""
    assumptions = []
    for directive in schedule.directives:
        if isinstance(directive, AssumeExtents):
            condition = parse_condition(directive.condition, location=directive.location)
            if any(is_list(name) for name in names_of(condition)):
                raise UserError(
                    "extents of variables are assumed, and there are no lists of them",
                    location=directive.location,
                    expected='such as "i % 16 == 0"',
                    given=directive.condition,
                )
            assumptions.append((condition, directive.location))
    return tuple(assumptions)


def check_variables(
    assignment: Assignment, names: tuple[str, ...], location: SourceLocation
) -> None:
    """Raise ``UserError`` unless the variables to fix exist."""
    known = all_variables(assignment)
    for name in names:
        if name not in known:
            raise UserError(
                f"there is no variable {name} to fix",
                location=location,
                expected=f"one of {', '.join(known)}",
            )


def check_request(part: PartForm, asked: ReshapeRequest, location: SourceLocation) -> None:
    """Raise ``UserError`` unless fixed and promoted variables belong to the bound part."""
    text = print_expression(part.value)
    names = [name for name in asked.fixed if name not in part.variables]
    tensors = {access.tensor for access in part.reads}
    names += [name for name, _ in asked.promoted if name not in tensors]
    if names:
        raise UserError(
            f"{text} does not have {names[0]}, which is to be reshaped for it",
            location=location,
            expected=f"fix of {', '.join(part.variables) or 'nothing'}, "
            f"promote of {', '.join(sorted(tensors))}",
            given=names[0],
        )
    for name, position in asked.promoted:
        order = next(len(read.variables) for read in part.reads if read.tensor == name)
        if position > order + sum(other == name for other, _ in asked.promoted) - 1:
            raise UserError(
                "a dimension is added at a position of a tensor",
                location=location,
                expected=f"a position of {name} from 0 to {order}",
                given=str(position),
            )


def declared_extents(assignment: Assignment) -> Mapping[str, int]:
    """The extents that declared shapes determine before a run."""
    extents: dict[str, int] = {}
    for access in (*accesses(assignment.value), assignment.result):
        shape = next((t.shape for t in assignment.tensors if t.name == access.tensor), None)
        for name, extent in zip(access.variables, shape or (), strict=False):
            extents.setdefault(name, extent)
    return extents


# Steps that bring operands into the format, the order of modes and the memory of their reader.


@dataclass
class OperandSteps:
    """The steps of a plan so far, with the formats and the memories of its tensors."""

    formats: dict[str, Format]
    names: NameSupply
    steps: list[Step] = field(default_factory=list)
    memories: dict[str, set[MemoryOf]] = field(default_factory=dict)
    links: dict[MemoryOf, HostLink] = field(default_factory=dict)

    def copy(self, formats: dict[str, Format], names: NameSupply) -> OperandSteps:
        """A copy that can be extended independently."""
        memories = {name: set(places) for name, places in self.memories.items()}
        return OperandSteps(formats, names, list(self.steps), memories, dict(self.links))

    def add(self, step: Step) -> None:
        """Add a step, after those that move its operands into its memory."""
        memory = memory_of(step)
        for name in sources_of(step):
            self.bring(name, memory)
        self.steps.append(step)
        target = target_of(step)
        if target is not None:
            self.memories[target] = {memory}

    def bring(self, name: str, memory: MemoryOf) -> None:
        """Move a tensor into a memory; between devices, through the host over both links."""
        places = self.memories.setdefault(name, {HOST})
        if memory in places:
            return
        if HOST not in places:
            source = min(places, key=lambda one: one.name)
            link = self.links[source]
            self.steps.append(MoveStep(tensor=name, source=source, target=HOST, link=link))
            places.add(HOST)
        if memory != HOST:
            link = self.links[memory]
            self.steps.append(MoveStep(tensor=name, source=HOST, target=memory, link=link))
            places.add(memory)

    def operand(self, view: OperandView, mapping: PartMapping) -> str:
        """The tensor behind an operand: the input, or a converted copy."""
        access = view.access
        needs = mapping.function.capability.needs_of(view.name)
        stored = self.formats[access.tensor]
        if fits(stored, needs.formats or (dense(len(access.variables)),)):
            return access.tensor
        order = len(access.variables)
        format = needs.formats[0] if needs.formats else dense(order)
        fixed = fixed_modes(access, mapping.fixed)
        if fixed and needs.formats:
            if sliced_format(stored, fixed) in needs.formats:
                return access.tensor
            format = format_with_slices(format, fixed, order)
        why = f"{mapping.function.name} takes {view.name} as {format}"
        letters = f"{access.tensor}_{format.letters}"
        return self.converted(access.tensor, format, tuple(range(order)), letters, why)

    def converted(
        self, source: str, format: Format, modes: tuple[int, ...], name: str, why: str
    ) -> str:
        """A tensor in another format or order of modes; the conversion is added once."""
        for step in self.steps:
            match step:
                case ConvertStep(target=target, source=of, modes=order) if (
                    of == source and step.format == format and order == modes
                ):
                    return target
        target = self.names.fresh(name)
        self.formats[target] = format
        self.add(ConvertStep(target=target, source=source, format=format, modes=modes, why=why))
        return target

    def in_order(self, mapping: PartMapping) -> PartMapping:
        """The mapping with its operands converted to the function's order of modes, each by a step.

        Needed for hardware and for sparse operands: others are passed with their strides.
        """
        views = tuple(self._in_order(view, mapping) for view in mapping.operands)
        seen = {view.name: view for view in views}
        reads = tuple(
            (name, seen[name].access if view.access == access else access)
            for name, access in mapping.reads
            for view in mapping.operands
            if view.name == name
        )
        lines = tuple(map(str, views)) + mapping.proof[len(views) :]
        return replace(mapping, operands=views, reads=reads, proof=lines)

    def _in_order(self, view: OperandView, mapping: PartMapping) -> OperandView:
        names = tuple(name for mode in view.modes for name in mode)
        single = all(len(mode) <= 1 for mode in view.modes)
        access = view.access
        whole = sorted(names) == sorted(access.variables) and len(set(names)) == len(names)
        stored = self.formats[access.tensor]
        formats = mapping.function.capability.needs_of(view.name).formats
        by_steps = mapping.function.hardware is None and (not formats or is_dense(stored))
        if not view.transposed or by_steps or not single or not whole:
            return view
        modes = tuple(access.variables.index(name) for name in names)
        wanted = mapping.function.name
        target = self.converted(
            access.tensor,
            format_in_order(stored, modes, formats) if formats else dense(len(modes)),
            modes,
            f"{access.tensor}_{''.join(names)}",
            f"{wanted} takes {view.name} at ({','.join(names)})",
        )
        moved = Access(tensor=target, variables=names)
        return replace(view, access=moved, transposed=False)
