"""Searching for the fastest plans of an assignment with some functions [Mosaic, sec. 6].

A plan is a sequence of choices: which function computes which part of what is left, with which
variables fixed; and at last, which dense operands are transposed for the loops of the rest.  The
search is branch and bound: the steps so far have a predicted time, the rest a lower bound by loops
or calls, and a sequence that cannot beat the best plans so far is not extended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from math import ceil, prod

from t2s.capability.description import ExternalFunction
from t2s.capability.ir import ALWAYS
from t2s.capability.mapping import Mapping as PartMapping
from t2s.capability.operands import is_dense
from t2s.capability.parts import (
    PartForm,
    factors_of,
    find_part,
    function_form,
    part_form,
    product_of,
    sum_of,
    terms_of,
)
from t2s.capability.refusals import Refusal
from t2s.capability.reshape import EVERYTHING, Reshape, ReshapeRequest, fewest, fewest_fixed
from t2s.capability.solver import Solver
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.walk import Term, rewrite, walk
from t2s.plan.build import PlanBuilder, Resolver
from t2s.plan.cost import HostMachine, PlanFacts, Prediction, TensorFacts, predict_steps
from t2s.plan.ir import CallStep, PlanProgram
from t2s.sparse_repr.concrete.external_directives import FixVariables, MapPart, StoreInOrder
from t2s.sparse_repr.concrete.pattern_directives import LoopDirective
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import (
    ADDITIVE,
    Access,
    Assignment,
    Choice,
    Combine,
    Expression,
    Negative,
    Number,
    Sum,
    Unary,
    accesses,
    print_expression,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class RankedPlan:
    """A plan with its schedule and its predicted time."""

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
    """The input of a search: an assignment, functions, allowed reshapings, facts about inputs."""

    assignment: Assignment
    functions: tuple[ExternalFunction, ...]
    reshape: Reshape
    facts: PlanFacts
    machine: HostMachine
    resolver: Resolver
    limit: int
    location: SourceLocation


MOST_BYTES = 1 << 33
"""The largest workspace, in bytes; plans with larger ones are skipped."""

Progress = Callable[[int, str], None]
"""A callback with the number of plans so far, and the functions of the last one."""

_Path = tuple[int, ...]
"""The choices that led to a plan, as numbers: the first one of equally fast plans is kept."""

_Call = tuple[ExternalFunction, tuple[str, ...], str]
"""A call: function, fixed variables, and the part, with workspaces named after their contents."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _PlanRow:
    """A sequence of choices: a plan without its rest, and its predicted time.

    ``meanings`` are the contents of its workspaces, as expressions of the operands alone.
    """

    path: _Path = ()
    directives: tuple[LoopDirective, ...] = ()
    builder: PlanBuilder
    done: Prediction
    calls: frozenset[_Call] = frozenset()
    meanings: Mapping[str, Expression]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Choice:
    """An extension that is not planned yet; ``least`` is a lower bound on its seconds."""

    row: _PlanRow
    path: _Path
    directives: tuple[LoopDirective, ...]
    least: float
    call: _Call
    meaning: Expression


@dataclass
class PlanSearch:
    """A search that can be interrupted at any time; ``kept`` are the best plans so far.

    Sequences are extended breadth first, the most promising ones first.  Without ``bounds`` nothing
    is pruned: that finds the same plans, slowly.
    """

    task: SearchTask
    progress: Progress
    bounds: bool = True
    tried: int = 0

    def __post_init__(self) -> None:
        task = self.task
        self._fixed = FixedVariables(task.functions, task.reshape, task.facts.extents)
        self._kept: list[tuple[float, _Path, RankedPlan]] = []
        self._rest = _RestBound(task)

    @property
    def kept(self) -> list[RankedPlan]:
        """The best plans, the fastest first."""
        return [plan for _, _, plan in self._kept]

    def run(self) -> None:
        """Search exhaustively, up to pruning."""
        task = self.task
        builder = PlanBuilder(task.assignment, task.resolver, Solver())
        nothing = Prediction(steps=(), tensors=task.facts.tensors)
        rows = [_PlanRow(builder=builder, done=nothing, meanings={})]
        self._keep(rows[0])
        while rows:
            rows = self._longer(rows)

    def _longer(self, rows: Sequence[_PlanRow]) -> list[_PlanRow]:
        """The sequences with one more call; orders of independent calls are tried once."""
        choices: dict[frozenset[_Call], _Choice] = {}
        for row in rows:
            left = row.builder.rest
            if left is None:
                continue
            if not self._is_hopeless(row.done.seconds + self._rest.loops, row.path):
                self._keep_stored(row, left)
            for choice in self._choices(row, left):
                calls = row.calls | {choice.call}
                if calls not in choices or choice.path < choices[calls].path:
                    choices[calls] = choice
        longer = []
        for choice in sorted(choices.values(), key=lambda one: (one.least, one.path)):
            if self._is_hopeless(choice.least, choice.path):
                break
            extended = self._row(choice)
            if extended is not None:
                longer.append(extended)
                self._keep(extended)
        return sorted(longer, key=lambda one: one.path)

    def _row(self, choice: _Choice) -> _PlanRow | None:
        """The sequence extended by a choice; ``None`` if the plan cannot be built."""
        before, task = choice.row, self.task
        builder = before.builder.copy()
        try:
            builder.take(choice.directives)
        except UserError:
            return None
        steps = builder.made.steps
        call = steps[-1]
        assert isinstance(call, CallStep)
        if not _is_allowed(call.mapping, task.reshape) or self._too_large(call):
            return None
        done = predict_steps(steps, builder.formats, task.facts, task.machine, before.done)
        return _PlanRow(
            path=choice.path,
            directives=(*before.directives, *choice.directives),
            builder=builder,
            done=done,
            calls=before.calls | {choice.call},
            meanings={**before.meanings, call.target: choice.meaning},
        )

    def _keep(self, row: _PlanRow) -> None:
        """Complete the plan of a sequence by loops, and keep it if it is among the best."""
        task = self.task
        rest = 0.0 if row.builder.rest is None else self._rest.loops
        if self._is_hopeless(row.done.seconds + rest, row.path):
            return
        builder = row.builder.copy()
        try:
            program = builder.plan()
        except UserError:
            return
        self.tried += 1
        self.progress(self.tried, ", ".join(call.mapping.function.name for call in program.calls))
        prediction = predict_steps(
            program.steps, builder.formats, task.facts, task.machine, row.done
        )
        schedule = Schedule(directives=row.directives)
        plan = RankedPlan(schedule=schedule, program=program, prediction=prediction)
        self._kept.append((plan.seconds, row.path, plan))
        self._kept.sort(key=lambda one: one[:2])
        del self._kept[task.limit :]

    def _keep_stored(self, row: _PlanRow, left: Assignment) -> None:
        """The same with dense matrices transposed for the loops."""
        for number, access in enumerate(dict.fromkeys(accesses(left.value))):
            known = self.task.facts.tensors.get(access.tensor)
            if known is None or known.sparse or len(known.shape) != 2:
                continue
            store = StoreInOrder(
                tensor=access.tensor, modes=known.order[::-1], location=self.task.location
            )
            builder = row.builder.copy()
            try:
                builder.take((store,))
            except UserError:
                continue
            directives = (*row.directives, store)
            path = (*row.path, 0, number)
            self._keep(replace(row, path=path, directives=directives, builder=builder))

    def _too_large(self, call: CallStep) -> bool:
        """Whether a call writes a workspace that is too large."""
        facts = self.task.facts
        count = prod(facts.extents[name] for name in call.mapping.variables)
        result = self.task.assignment.result.tensor
        return call.target != result and facts.itemsize * count > MOST_BYTES

    def _is_hopeless(self, least: float, path: _Path) -> bool:
        """Whether plans with this lower bound and these first choices cannot be among the best."""
        if not self.bounds or len(self._kept) < self.task.limit:
            return False
        least *= 1 - 1e-9  # sums of seconds have rounding errors
        return (least, path) > self._kept[-1][:2]

    def _choices(self, row: _PlanRow, left: Assignment) -> Iterator[_Choice]:
        """The next choices: a part, a function, and its fixed variables."""
        task, rest = self.task, self._rest
        reads = accesses(left.value)
        stored, properties = row.builder.formats, row.builder.properties
        for at, part in enumerate(parts_of(left)):
            after = row.done.seconds + rest.after(reads, part)
            if isinstance(part, Access) or self._is_hopeless(after + rest.call, row.path):
                continue  # a copy, or hopeless whichever function computes it
            try:
                taken = find_part(left, part, None)
            except UserError:
                continue  # the part occurs twice, so a schedule cannot name it
            form = part_form(taken.value, stored, properties, left.semiring)
            meaning = _expanded(taken.value, row.meanings)
            text = print_expression(meaning)
            for number, (function, names) in enumerate(self._fixed.of(form)):
                mapped = MapPart(
                    value=part,
                    function=function,
                    pad=task.reshape.pad,
                    densify=task.reshape.densify,
                    location=task.location,
                )
                fixed = FixVariables(variables=names, location=task.location)
                yield _Choice(
                    row=row,
                    path=(*row.path, 1, at, number),
                    directives=(fixed, mapped) if names else (mapped,),
                    least=after + rest.of_call(form, function, names, row.done.tensors),
                    call=(function, names, text),
                    meaning=meaning,
                )


class _RestBound:
    """Lower bounds on the seconds of the rest of a statement, and of a call.

    Attributes
    ----------
    loops: of loops over any rest.
    call: of a call of the fastest function.
    """

    def __init__(self, task: SearchTask) -> None:
        self._task = task
        stored = task.assignment.tensor(task.assignment.result.tensor).format
        elements = prod(task.facts.extents[name] for name in task.assignment.result.variables)
        full = all(level.full for level in stored.levels)
        rates = task.machine.loops
        self.loops = rates.start + (elements * rates.zero if full else 0.0)
        self._in_loops = self._never_taken()
        self.call = min((self._least(function) for function in task.functions), default=self.loops)
        semiring = task.assignment.semiring
        product = all(
            isinstance(term, Access | Number | Sum | Negative)
            or (isinstance(term, Combine) and term.operator is Op.MULTIPLY)
            for term in walk(task.assignment.value)
        )
        # the most operands of a call; a sum of several terms is never part of a product
        self._most = max(
            (
                len(accesses(function.capability.value))
                for function in task.functions
                if not product or len(function_form(function, semiring)) == 1
            ),
            default=1,
        )

    def _never_taken(self) -> frozenset[str]:
        """The sparse tensors that no function takes: loops read them in every plan."""
        assignment = self._task.assignment
        sparse = {tensor.name for tensor in assignment.tensors if not is_dense(tensor.format)}
        taken = {
            access.tensor
            for access in accesses(assignment.value)
            if any(self._may_take(access, function) for function in self._task.functions)
        }
        return frozenset(sparse - taken)

    def _may_take(self, access: Access, function: ExternalFunction) -> bool:
        """Whether a function may take a sparse operand or slices of it, in any part.

        Modes of sparse operands are not fused, and calls only sum what the assignment sums.
        """
        capability, value = function.capability, self._task.assignment.value
        sums = {name for term in walk(value) if isinstance(term, Sum) for name in term.variables}
        summed = sum(name in sums for name in access.variables)
        gives = capability.needs_of(capability.result.tensor).formats
        least = len(access.variables) if gives and not is_dense(gives[0]) else 0
        for wanted in accesses(capability.value):
            names = set(wanted.variables)
            if self._task.reshape.densify:
                return True
            if capability.needs_of(wanted.tensor).formats and (
                names & set(capability.lists)
                or (
                    least <= len(wanted.variables) <= len(access.variables)
                    and len(names - set(capability.result.variables)) <= summed
                )
            ):
                return True
        return False

    def _least(self, function: ExternalFunction) -> float:
        """Seconds of a step that calls a function, or of its fallback loops."""
        machine = self._task.machine
        if function.hardware is not None:
            return 0.0
        seconds = machine.start + machine.least_seconds(function)
        always = function.capability.condition == ALWAYS
        return seconds if always else min(seconds, machine.loops.start)

    def after(self, reads: Sequence[Access], part: Expression) -> float:
        """Seconds of the rest after a part, with this many reads: by loops, or by calls.

        A call that takes n reads leaves one, that of its workspace.
        """
        left = len(reads) - len(accesses(part)) + 1
        if left <= 1:
            return 0.0
        if self._most <= 1 or any(access.tensor in self._in_loops for access in reads):
            return self.loops
        return min(self.loops, ceil((left - 1) / (self._most - 1)) * self.call)

    def of_call(
        self,
        part: PartForm,
        function: ExternalFunction,
        fixed: tuple[str, ...],
        tensors: Mapping[str, TensorFacts],
    ) -> float:
        """Seconds of the calls for a part, with the best layouts of operands."""
        task = self._task
        if function.hardware is not None or function.capability.condition != ALWAYS:
            return self._least(function)
        extents, machine = task.facts.extents, task.machine
        inner = {name for access in part.reads for name in access.variables} - {*fixed}
        work = float(prod(extents[name] for name in inner))
        for access in part.reads:
            known = tensors[access.tensor]
            work *= known.density if known.sparse else 1.0
        calls = prod(extents[name] for name in fixed)
        return machine.start + calls * machine.call_seconds(function, work)


def _expanded(value: Expression, meanings: Mapping[str, Expression]) -> Expression:
    """The expression with workspaces named after their contents."""

    def named(term: Term) -> Term | None:
        if isinstance(term, Access) and term.tensor in meanings:
            text = print_expression(meanings[term.tensor])
            return Access(tensor=f"[{text}]", variables=term.variables)
        return None

    return rewrite(value, named)


def _is_allowed(mapping: PartMapping, reshape: Reshape) -> bool:
    """Whether a mapping only uses allowed reshapings."""
    fused = any(len(mode) > 1 for view in mapping.operands for mode in view.modes)
    if (mapping.transposed and not reshape.transpose) or (fused and not reshape.fuse):
        return False
    return not mapping.promoted or reshape.promote


# Candidates: all parts of a statement, and the mappings of each.
#
# A part is a subset of the factors of a product, or of the terms of a sum, in any order: every
# order that is printed differently counts as a pair of its own [Mosaic, Table 5].

MOST_OPERANDS = 5
"""All subsets of at most this many factors or terms are parts."""


_Numbered = list[tuple[ExternalFunction, list[tuple[int, ...]]]]
"""Functions with the sets of variables that they fix; variables are numbers by occurrence."""


class FixedVariables:
    """The variables that calls of functions may fix, cached.

    Parts that only differ in the names of tensors and variables share an entry, since a search
    meets them again and again; so do functions that only differ in types, such as ``sgemm`` and
    ``dgemm``.
    """

    def __init__(
        self,
        functions: Sequence[ExternalFunction],
        reshape: Reshape,
        extents: Mapping[str, int],
    ) -> None:
        self.functions, self.reshape, self.extents = functions, reshape, extents
        self._formats: list[Format] = []
        self._known: dict[object, _Numbered] = {}
        self._alike: dict[object, list[ExternalFunction]] = {}
        for function in functions:
            # a checker may depend on anything, so a function with one shares no entry
            plain = (
                replace(function.capability, types=()) if function.checker is None else id(function)
            )
            self._alike.setdefault((plain, function.hardware is None), []).append(function)

    def of(self, part: PartForm) -> Iterator[tuple[ExternalFunction, tuple[str, ...]]]:
        """The functions that compute a part, each with every set of variables that it may fix."""
        numbers: dict[str, int] = {}
        key = self._key(part, numbers)
        entries = self._known.get(key)
        if entries is None:
            entries = self._known[key] = self._found(part, numbers)
        variables = tuple(numbers)
        for function, sets in entries:
            for fixed in sets:
                yield function, tuple(variables[number] for number in fixed)

    def _found(self, part: PartForm, numbers: Mapping[str, int]) -> _Numbered:
        fixed: dict[ExternalFunction, list[tuple[int, ...]]] = {}
        for first, *others in self._alike.values():
            sets = fewest_fixed(part, first, self.reshape, self.extents)
            numbered = [tuple(numbers[name] for name in chosen) for chosen in sets]
            fixed |= dict.fromkeys((first, *others), numbered)
        return [(function, fixed[function]) for function in self.functions if fixed[function]]

    def _key(self, part: PartForm, numbers: dict[str, int]) -> object:
        """The cache key of a part; numbers its variables in ``numbers``."""
        tensors: dict[str, int] = {}
        terms: list[object] = []
        for term in walk(part.value):
            match term:
                case Access():
                    used = (numbers.setdefault(name, len(numbers)) for name in term.variables)
                    number = tensors.setdefault(term.tensor, len(tensors))
                    terms.append((number, *used))
                case Sum():
                    used = (numbers.setdefault(name, len(numbers)) for name in term.variables)
                    terms.append(("sum", *used))
                case Combine():
                    terms.append(term.operator)
                case Number():
                    terms.append(("number", type(term.value), term.value))
                case Negative():
                    terms.append("negative")
                case Unary():
                    terms.append(("function", term.function, term.stored))
                case Choice():
                    terms.append("choice")
        for name in part.variables:
            numbers.setdefault(name, len(numbers))
        stored = tuple(
            (self._number_of(part.formats[name]), part.properties.get(name)) for name in tensors
        )
        known = tuple(self.extents.get(name) for name in numbers)
        return tuple(terms), stored, known, part.semiring

    def _number_of(self, format: Format) -> int:
        """A number for a format, which is faster to hash."""
        if format not in self._formats:
            self._formats.append(format)
        return self._formats.index(format)


@dataclass(frozen=True, kw_only=True)
class MappedPart:
    """A part in one order of its operands, and its mappings to a function."""

    part: Expression
    function: ExternalFunction
    mappings: tuple[PartMapping, ...]

    @property
    def pair(self) -> tuple[str, str]:
        """The printed part, the name of the function, and that of its library."""
        return print_expression(self.part), self.function.full_name


def parts_of(assignment: Assignment) -> tuple[Expression, ...]:
    """All parts of the expression; for each product and sum, smaller ones first."""
    parts: dict[Expression, None] = {}
    for value in _groups(assignment.value):
        terms = terms_of(value)
        if len(terms) > 1:
            for size in range(2, min(len(terms), MOST_OPERANDS) + 1):
                for some in combinations(terms, size):
                    parts.setdefault(sum_of(some))
            continue
        factors = factors_of(value)
        for size in range(1, min(len(factors), MOST_OPERANDS) + 1):
            for chosen in combinations(factors, size):
                parts.setdefault(product_of(chosen))
    return tuple(parts)


def _groups(value: Expression) -> Iterator[Expression]:
    """Every product and every sum of an expression, each as a whole."""
    inner: set[int] = set()
    for term in walk(value):
        match term:
            case Combine(operator=operator):
                for below in (term.left, term.right):
                    same = isinstance(below, Combine) and (
                        below.operator is operator
                        or (operator in ADDITIVE and below.operator in ADDITIVE)
                    )
                    if same:
                        inner.add(id(below))
                if id(term) not in inner:
                    yield term
            case Sum() | Negative() | Unary() | Choice():
                continue
            case _:
                if not any(_is_operand(term, other) for other in walk(value)):
                    yield term  # type: ignore[misc]


def _is_operand(term: object, other: object) -> bool:
    return isinstance(other, Combine) and (other.left is term or other.right is term)


def _orders(part: Expression) -> tuple[Expression, ...]:
    """The part with its operands in every order that prints differently."""
    terms = terms_of(part)
    orders: list[Expression]
    if len(terms) > 1:
        orders = [sum_of(order) for order in permutations(terms)]
    else:
        orders = [product_of(order) for order in permutations(factors_of(part))]
    return tuple({print_expression(ordered): ordered for ordered in orders}.values())


def candidates(
    assignment: Assignment,
    functions: Sequence[ExternalFunction],
    reshape: Reshape = EVERYTHING,
    extents: Mapping[str, int] | None = None,
) -> tuple[MappedPart, ...]:
    """All pairs of a part and a function that computes it, with the fewest fixed variables."""
    formats = {tensor.name: tensor.format for tensor in assignment.tensors}
    properties = {tensor.name: tensor.properties for tensor in assignment.tensors}
    mapped_parts = []
    for part in parts_of(assignment):
        try:
            taken = find_part(assignment, part, None)
        except UserError:
            continue  # the part occurs twice, so a schedule cannot name it
        form = part_form(taken.value, formats, properties, assignment.semiring)
        for function in functions:
            mapped = fewest(form, function, reshape, extents)
            if mapped:
                mapped_parts += [
                    MappedPart(part=order, function=function, mappings=mapped)
                    for order in _orders(part)
                ]
    return tuple(mapped_parts)


def nearest_miss(
    assignment: Assignment,
    function: ExternalFunction,
    reshape: Reshape = EVERYTHING,
    extents: Mapping[str, int] | None = None,
) -> str:
    """For a function that computes no part: the nearest part, and what is missing."""
    misses: list[tuple[int, int, UserError]] = []
    for number, part in enumerate(parts_of(assignment)):
        try:
            refused = refusal_of(assignment, part, function, reshape, extents)
        except UserError:
            continue  # it is there twice
        if refused is not None:
            distance, error = refused.ranked()
            misses.append((distance, -number, error))  # the larger one of equally near parts
    if not misses:
        return "there are no parts"
    nearest = min(misses, key=lambda one: one[:2])[2]
    return f"{nearest.message}; expected {nearest.expected}, given {nearest.given}"


def refusal_of(
    assignment: Assignment,
    part: Expression,
    function: ExternalFunction,
    reshape: Reshape,
    extents: Mapping[str, int] | None,
) -> Refusal | None:
    """Why a function does not compute a part; ``None`` if it does."""
    formats = {tensor.name: tensor.format for tensor in assignment.tensors}
    properties = {tensor.name: tensor.properties for tensor in assignment.tensors}
    taken = find_part(assignment, part, assignment.location)
    form = part_form(taken.value, formats, properties, assignment.semiring)
    if fewest(form, function, reshape, extents):
        return None
    return Refusal(
        assignment=assignment,
        part=form,
        function=function,
        reshape=reshape,
        asked=ReshapeRequest(),
        extents=extents or {},
        location=assignment.location,
    )


def distinct_calls(found: Sequence[MappedPart]) -> tuple[PartMapping, ...]:
    """The mappings up to the order of operands that commute."""
    seen: dict[object, PartMapping] = {}
    for part in found:
        for mapping in part.mappings:
            seen.setdefault(_call_key(mapping), mapping)
    return tuple(seen.values())


def _call_key(mapping: PartMapping) -> object:
    """The identity of a call: function, fixed variables, and operands, in order if it matters."""
    capability = mapping.function.capability
    views = [(view.access, view.modes) for view in mapping.operands]
    shapes = {}
    for access in accesses(capability.value):
        needs = capability.needs_of(access.tensor)
        own = access.tensor == capability.overwritten
        shapes[access.tensor] = (access.variables, needs.formats, needs.strides, own)
    alike = len(set(shapes.values())) == 1 and len(shapes) == len(views)
    commutes = all(
        not isinstance(term, Combine) or term.operator.value in "+*"
        for term in walk(capability.value)
    )
    order = frozenset(views) if alike and commutes else tuple(views)
    return mapping.function, mapping.fixed, order
