"""``external.search``: plans of an assignment, ranked by predicted time; schedules as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from t2s.capability.description import ExternalFunction
from t2s.capability.ir import print_capability
from t2s.capability.reshape import EVERYTHING, Reshape
from t2s.core.display import NotebookDisplay, Table
from t2s.core.errors import UnsupportedError, UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.progress import ProgressBar
from t2s.core.types import Type
from t2s.core.validate import as_int, checked_kind
from t2s.driver.assignment_design import assignment_of
from t2s.driver.external_plan import ExternalPlan, PlanResolver
from t2s.driver.plan_inputs import facts_for
from t2s.driver.plan_result import PlanResult, shown_seconds
from t2s.plan.cost import GENERIC, HostMachine
from t2s.plan.search import MappedPart, PlanSearch, RankedPlan, SearchTask, candidates, nearest_miss
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
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.concrete.schedule_text import parse_schedule
from t2s.sparse_repr.notation.ir import Assignment, print_assignment, print_expression
from t2s.sparse_repr.notation.legality import with_semiring
from t2s.sparse_repr.notation.symbols import Tensor
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring

Functions = Any
"""Functions, libraries, names such as ``blas.sgemm`` or ``blas``, or a list of these."""


@dataclass(frozen=True, kw_only=True)
class FoundPlan:
    """A plan that a search found: its schedule as text, and its predicted time."""

    ranked: RankedPlan
    schedule: str
    plan: ExternalPlan

    @property
    def seconds(self) -> float:
        """The predicted time."""
        return self.ranked.seconds

    @property
    def what(self) -> str:
        """The schedule as text, or ``loops alone``."""
        return self.schedule or "loops alone"

    def __str__(self) -> str:
        lines = [f"{self.what}: {shown_seconds(self.seconds)} predicted"]
        lines += [
            f"  {shown_seconds(step.seconds)}{' exact' if step.exact else ''}, {step.why}: "
            f"{type(step.step).__name__.removesuffix('Step').lower()}"
            for step in self.ranked.prediction.steps
        ]
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class TunedPlan:
    """A plan with its measured time: the shortest of a few runs."""

    found: FoundPlan
    measured: float
    result: PlanResult = field(repr=False)


@dataclass(frozen=True, kw_only=True, repr=False)
class TuneReport(NotebookDisplay):
    """Plans with predicted and measured times, by predicted time."""

    plans: tuple[TunedPlan, ...]

    @property
    def best(self) -> TunedPlan:
        """The plan with the shortest measured time."""
        return min(self.plans, key=lambda plan: plan.measured)

    @property
    def schedule(self) -> str:
        """The schedule of the best plan, as text for ``sparse.compile``."""
        return self.best.found.schedule

    def __repr__(self) -> str:
        return f"<TuneReport of {len(self.plans)} plans, the best is {self.best.found.what}>"

    def __str__(self) -> str:
        return self.table.text()

    def _repr_html_(self) -> str:
        return self.table.html()

    @property
    def table(self) -> Table:
        """A row for each plan."""
        rows = tuple(
            (
                plan.found.what,
                shown_seconds(plan.found.seconds),
                shown_seconds(plan.measured),
                "best" if plan is self.best else "",
            )
            for plan in self.plans
        )
        headers = ("schedule", "predicted", "taken", "")
        title = "Predicted times of plans, and the shortest of the runs of each"
        return Table(title=title, headers=headers, rows=rows, left=frozenset({0, 3}))


@dataclass(frozen=True, kw_only=True, repr=False)
class FoundPlans(NotebookDisplay):
    """The result of a search.

    Attributes
    ----------
    mappings: each part in each order of its operands, with its mappings to a function.
    plans: the best ones, the fastest first, including the plan of loops alone if it is among them.
    tried: the number of predicted plans.
    skipped: functions that are not available, or compute in other types, and why.
    interrupted: whether Ctrl-C ended the search.
    """

    assignment: Assignment
    mappings: tuple[MappedPart, ...]
    plans: tuple[FoundPlan, ...]
    tried: int
    skipped: tuple[str, ...]
    task: SearchTask = field(repr=False)
    interrupted: bool = False

    @cached_property
    def misses(self) -> tuple[str, ...]:
        """For functions that compute no part: the first rule that failed, for the nearest part."""
        used = {mapping.function for mapping in self.mappings}
        for found in self.plans:  # parts that read a workspace are not parts of the statement
            used |= {step.mapping.function for step in found.plan.program.calls}
        task = self.task
        return tuple(
            f"{function.name} computes no part: "
            f"{nearest_miss(self.assignment, function, task.reshape, task.facts.extents)}"
            for function in task.functions
            if function not in used and not self.interrupted
        )

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Printed parts with names of functions; [Mosaic, Table 5] counts these plus one."""
        return tuple(dict.fromkeys(mapping.pair for mapping in self.mappings))

    @property
    def best(self) -> FoundPlan:
        """The plan with the shortest predicted time."""
        return self.plans[0]

    def tune(
        self,
        inputs: Mapping[str, Any],
        *,
        top: int = 5,
        runs: int = 3,
        type: Type | None = None,
    ) -> TuneReport:
        """Run the best plans, and compare measured with predicted times.

        ``type`` is by default that of the search.
        """
        type = type or self.task.facts.type
        counts = [as_int(top), as_int(runs)]
        if any(count is None or count < 1 for count in counts):
            raise UserError(
                "tune() needs how many plans to run, and how often",
                location=user_location(),
                expected="top and runs, 1 or more",
                given=f"top={top!r}, runs={runs!r}",
            )
        tuned = []
        for found in self.plans[:top]:
            found.plan.run(
                inputs, type=type
            )  # the first run compiles the loops, which should not count
            results = [found.plan.run(inputs, type=type) for _ in range(runs)]
            best = min(results, key=lambda result: result.seconds)
            tuned.append(TunedPlan(found=found, measured=best.seconds, result=best))
        return TuneReport(plans=tuple(tuned))

    def __repr__(self) -> str:
        return (
            f"<FoundPlans of {print_assignment(self.assignment)}: {len(self.pairs)} pairs, "
            f"{len(self.plans)} plans>"
        )

    def __str__(self) -> str:
        return "\n".join((self.table.text(), *self.skipped, *self.misses))

    def _repr_html_(self) -> str:
        return self.table.html()

    @property
    def table(self) -> Table:
        """A row for each plan, the fastest first."""
        rows = tuple((plan.what, shown_seconds(plan.seconds)) for plan in self.plans)
        ended = ", interrupted" if self.interrupted else ""
        title = (
            f"{print_assignment(self.assignment)}: {len(self.pairs)} pairs of a part and a "
            f"function, {self.tried} plans tried{ended}"
        )
        return Table(title=title, headers=("schedule", "predicted"), rows=rows)


class SearchBar(ProgressBar):
    """A progress line with the number of plans so far."""

    def show(self, tried: int, text: str) -> None:
        """Show the number of predicted plans; ``text`` has the functions of the last one."""
        self._show(tried, None, plans=f"{tried:,} plans", text=text)

    def _columns(self) -> list[Any]:
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

        return [
            TextColumn("search"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[plans]}"),
            TextColumn("{task.fields[text]}"),
        ]


def search(
    assignment: Tensor | Assignment,
    functions: Functions | None = None,
    *,
    inputs: Mapping[str, Any] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    densities: Mapping[str, float] | None = None,
    type: Type | None = None,
    machine: HostMachine = GENERIC,
    reshape: Reshape | str = EVERYTHING,
    semiring: Semiring = PLUS_TIMES,
    limit: int = 10,
    progress: bool | None = None,
) -> FoundPlans:
    """Find all mappings of the parts of an assignment to functions, and its best plans.

    ``functions`` are functions, libraries, names of either, or a list of these; by default, all
    installed ones of ``external.available()``.  Stored values are counted in the ``inputs``, or
    expected from ``shapes`` and ``densities`` (1 by default).  ``machine`` has the rates for
    predictions; ``external.calibrate()`` measures those of this machine.  ``reshape`` lists the
    allowed reshapings, such as ``"fix transpose tile pad"``; by default, all but ``densify``.
    Functions that do not compute in ``type``, by default that of the inputs, are skipped.
    ``limit`` is the number of plans in the result; no discarded plan is predicted to be faster.
    Ctrl-C ends the search with the best plans so far.
    """
    where = user_location()
    stated = with_semiring(assignment_of(assignment), semiring)
    checked_kind("the machine", machine, HostMachine, "such as external.calibrate()")
    most = as_int(limit)
    if most is None or most < 1:
        raise UserError(
            "a search keeps a number of plans",
            location=where,
            expected="limit, 1 or more",
            given=repr(limit),
        )
    facts = facts_for(stated, inputs, shapes, densities, type, where)
    present, missing = _available(_listed(functions, where))
    known, others = _of_type(present, facts.type)
    allowed = _reshape(reshape, where)
    task = SearchTask(
        assignment=stated,
        functions=known,
        reshape=allowed,
        facts=facts,
        machine=machine,
        resolver=PlanResolver(),
        limit=most,
        location=where,
    )
    mapped: tuple[MappedPart, ...] = ()
    interrupted = False
    with SearchBar(progress) as bar:
        plan_search = PlanSearch(task, bar.show)
        try:
            mapped = candidates(stated, known, allowed, facts.extents)
            plan_search.run()
        except KeyboardInterrupt:
            interrupted = True
    return FoundPlans(
        assignment=stated,
        mappings=mapped,
        plans=tuple(_found(stated, ranked) for ranked in plan_search.kept),
        tried=plan_search.tried,
        skipped=(*missing, *others),
        task=task,
        interrupted=interrupted,
    )


def _found(assignment: Assignment, ranked: RankedPlan) -> FoundPlan:
    plan = ExternalPlan(assignment, ranked.schedule, assignment.semiring)
    return FoundPlan(ranked=ranked, schedule=schedule_text(ranked.schedule), plan=plan)


def _listed(functions: Functions, where: SourceLocation) -> tuple[ExternalFunction, ...]:
    """The listed functions, each once."""
    from t2s.libraries.registry import LIBRARIES, Library, function_named

    listed: dict[ExternalFunction, None] = {}
    if functions is None:
        functions = tuple(LIBRARIES)
    entries = [functions] if isinstance(functions, str | Library | ExternalFunction) else functions
    if not isinstance(entries, Iterable):
        entries = [entries]
    for entry in entries:
        match entry:
            case ExternalFunction():
                listed[entry] = None
            case Library():
                listed.update(dict.fromkeys(entry.functions.values()))
            case str() if entry in LIBRARIES:
                listed.update(dict.fromkeys(LIBRARIES[entry].functions.values()))
            case str():
                listed[function_named(entry, where)] = None
            case _:
                raise UserError(
                    "a search takes functions",
                    location=where,
                    expected="external functions, libraries such as external.blas, or their names",
                    given=repr(entry)[:200],
                )
    _check_names_differ(listed, where)
    return tuple(listed)


def _check_names_differ(functions: Iterable[ExternalFunction], where: SourceLocation) -> None:
    """Refuse two functions of the same name, because plans and schedules refer to them by name."""
    named: dict[str, ExternalFunction] = {}
    for function in functions:
        name = function_name(function)
        other = named.setdefault(name, function)
        if other is not function:
            raise UserError(
                f"two of the functions to search are named {name}",
                location=where,
                expected="a name of its own for each function",
                given=f"{print_capability(other.capability)}; "
                f"{print_capability(function.capability)}",
                hint="give one of them another name in make_function",
            )


SKIPPED_NAMES = 3
"""How many functions of a library that is not there are named."""


def _available(
    functions: tuple[ExternalFunction, ...],
) -> tuple[tuple[ExternalFunction, ...], tuple[str, ...]]:
    """The functions whose libraries are available, and a line for each other library."""
    from t2s.libraries.calling import Availability, availability

    available: list[ExternalFunction] = []
    missing: dict[Availability, list[str]] = {}
    for function in functions:
        state = availability(function.library) if function.library is not None else None
        if state is None or state.there:
            available.append(function)
        else:
            missing.setdefault(state, []).append(function.name)
    skipped = (
        f"{_skipped(names)}: {state.name} is not there: {state.why_not}"
        for state, names in missing.items()
    )
    return tuple(available), tuple(skipped)


def _of_type(
    functions: tuple[ExternalFunction, ...], type: Type | None
) -> tuple[tuple[ExternalFunction, ...], tuple[str, ...]]:
    """The functions that compute in a type, if it is known, and a line for the others."""
    computing: list[ExternalFunction] = []
    others: dict[str, list[str]] = {}
    for function in functions:
        types = function.capability.types
        if type is None or not types or type in types:
            computing.append(function)
        else:
            others.setdefault(" or ".join(map(str, types)), []).append(function.name)
    lines = (
        f"{_skipped(names)}: what is computed is {type}, and not {types}"
        for types, names in others.items()
    )
    return tuple(computing), tuple(lines)


def _skipped(names: list[str]) -> str:
    """``one, two, three and 4 more are skipped``."""
    rest = f" and {len(names) - SKIPPED_NAMES} more" if len(names) > SKIPPED_NAMES else ""
    are = "is" if len(names) == 1 else "are"
    return f"{', '.join(names[:SKIPPED_NAMES])}{rest} {are} skipped"


def _reshape(reshape: Reshape | str, where: SourceLocation) -> Reshape:
    if isinstance(reshape, Reshape):
        return reshape
    names = [field.name for field in fields(Reshape)]
    words = reshape.split() if isinstance(reshape, str) else [repr(reshape)]
    for word in words:
        if word not in names:
            raise UserError(
                f"unknown reshaping {word}",
                location=where,
                expected=f"some of {', '.join(names)}",
            )
    return replace(Reshape(), **dict.fromkeys(words, True))


# Schedules with external functions as text, and back, so that results of a search can be stored.


def schedule_text(schedule: Schedule) -> str:
    """The directives of a schedule with external functions, as ``parse_schedule`` takes them."""
    return ", ".join(map(_text, schedule.directives))


def _text(directive: LoopDirective) -> str:
    match directive:
        case FixVariables(variables=names):
            return f"fix({','.join(names)})"
        case PromoteOperand(tensor=tensor, position=position):
            return f"promote({tensor},{position})"
        case StoreInOrder(tensor=tensor, modes=modes):
            return f"store({tensor},{','.join(map(str, modes))})"
        case StreamsOnDevice(device=device):
            return f"streams({getattr(device, 'name', device)})"
        case AssumeExtents(condition=condition):
            return f"assume({condition})"
        case BindPart(value=value, function=function):
            part = _spaceless(print_expression(value))
            return f"bind({','.join((part, function_name(function), *_options(directive)))})"
        case MapPart(value=value, function=function):
            part = _spaceless(print_expression(value))
            return f"map({','.join((part, function_name(function), *_options(directive)))})"
    raise UnsupportedError(
        "this directive has no text",
        location=directive.location,
        expected="directives of plans",
        given=type(directive).__name__,
    )


def _options(directive: BindPart | MapPart) -> list[str]:
    """The options after the function of a directive."""
    options = ["trusted"] if directive.trusted else []
    if isinstance(directive, MapPart):
        options += ["densify"] if directive.densify else []
        options += [] if directive.pad else ["pad=False"]
    return [*options, *([] if directive.fallback else ["else_=None"])]


def _spaceless(text: str) -> str:
    return text.replace(" ", "")


def function_name(function: FunctionOrName) -> str:
    """``blas.sgemm`` for a shipped function, and its own name for any other one."""
    from t2s.libraries.registry import LIBRARIES

    if isinstance(function, str):
        return function
    for library in LIBRARIES.values():
        for name, known in library.functions.items():
            if known is function:
                return f"{library.name}.{name}"
    return function.name


def schedule(text: str, functions: Iterable[ExternalFunction] = ()) -> Schedule:
    """Parse a schedule whose text refers to functions of your own by name.

    Raises ``UserError`` for two functions of the same name.
    """
    where = user_location()
    known: dict[str, ExternalFunction] = {}
    for function in functions:
        if known.setdefault(function.name, function) is not function:
            raise UserError(
                f"two functions are called {function.name}",
                location=where,
                expected="functions with names of their own",
            )
    parsed = parse_schedule(text, location=where)
    directives = tuple(
        replace(directive, function=known.get(directive.function, directive.function))
        if isinstance(directive, BindPart | MapPart) and isinstance(directive.function, str)
        else directive
        for directive in parsed.directives
    )
    return Schedule(directives=directives)
