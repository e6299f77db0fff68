"""From index notation and a schedule to concrete index notation.

The steps, in order: precomputed parts of the expression; splits; the order of the loops; views of
tensors that are not stored in that order; the nests; the storage of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.walk import rewrite, walk
from t2s.sparse_repr.concrete.access import Stored, reordered, stored_access
from t2s.sparse_repr.concrete.blocks import (
    check_directives_of_blocks,
    formats_in_blocks,
    over_grids,
    with_blocks,
)
from t2s.sparse_repr.concrete.ir import (
    UNKNOWN_SIZES,
    Adaptation,
    Assign,
    ConcreteProgram,
    Forall,
    Rescan,
    SplitLoop,
    StageWorkspace,
    Statement,
    StoredTensor,
    View,
    Where,
    result_of,
    split_names,
)
from t2s.sparse_repr.concrete.materialize import Written, walked_format, written_result
from t2s.sparse_repr.concrete.merge import covered_loops, is_everywhere
from t2s.sparse_repr.concrete.notes import (
    check_directives,
    check_fused,
    vector_split,
    with_notes,
    with_parts,
    with_vector_loops,
)
from t2s.sparse_repr.concrete.order import (
    DiscordantLoops,
    LevelPath,
    apply_splits,
    candidate_orders,
    check_order,
    choose_order,
    discordant,
    verify_program,
)
from t2s.sparse_repr.concrete.schedule import (
    DropZeros,
    OrderLoops,
    Precompute,
    Schedule,
    Skip,
    SplitVariable,
    Transpose,
    check_once,
)
from t2s.sparse_repr.concrete.temporaries import (
    CallChoices,
    choose_formats,
    whole_variables,
)
from t2s.sparse_repr.concrete.unsupported import refuse_patterns
from t2s.sparse_repr.concrete.workspaces import (
    hoist_sums,
    precompute,
    rescanned_sums,
    take_out_sums,
)
from t2s.sparse_repr.formats import Format, dense
from t2s.sparse_repr.levels import Level
from t2s.sparse_repr.notation.ir import (
    ADDITIVE,
    Access,
    Assignment,
    Choice,
    Combine,
    Expression,
    Negative,
    Sum,
    Unary,
    accesses,
    all_variables,
    print_expression,
    seen_patterns,
    variables_of,
)
from t2s.sparse_repr.notation.support import vanishes
from t2s.sparse_repr.semiring import PLUS_TIMES


@dataclass
class Builder:
    """The program so far.

    ``produced`` are tensors that other statements of the same graph make: they have no storage that
    loops could walk in another order.
    """

    schedule: Schedule
    splits: tuple[SplitLoop, ...]
    names: NameSupply
    formats: dict[str, Format]
    views: list[View]
    stages: list[Statement]
    written: set[str]
    order_names: tuple[str, ...]
    lane: str
    zero: float | int
    workspaces: set[str] = field(default_factory=set)
    produced: frozenset[str] = frozenset()

    def read_name(self, source: str, stored: Stored) -> str:
        """The name of the tensor, or of its view, that a stage reads; equal views are shared."""
        if not stored.reasons and self.formats[source] == stored.format:
            return source
        for view in self.views:
            same = view.source, view.parts, view.format
            if same == (source, stored.parts, stored.format) and view.name not in self.written:
                return view.name
        return self.new_view(f"{source}_view", source, stored)

    def written_name(self, result: str, stored: Stored) -> str:
        """The name of a result, or of the view of it, that a stage writes."""
        if stored.reasons:
            view = self.new_view(f"{result}_written", result, stored)
            self.written.add(view)
            return view
        self.formats[result] = stored.format
        return result

    def new_view(self, wanted: str, source: str, stored: Stored) -> str:
        """A view of a tensor under a new name."""
        name = self.names.fresh(wanted)
        reasons = stored.reasons or ("its levels by the parts of variables",)
        view = View(
            name=name, source=source, parts=stored.parts, format=stored.format, reasons=reasons
        )
        self.views.append(view)
        self.formats[name] = stored.format
        return name


def build_program(
    assignment: Assignment,
    schedule: Schedule | None = None,
    *,
    hoist: bool = True,
    adapted: Adaptation = UNKNOWN_SIZES,
) -> ConcreteProgram:
    """Concrete index notation of an assignment under a schedule.

    With ``hoist``, loop-invariant sums are computed once, unless the schedule has directives about
    loops; ``adapted`` has further choices.  Raises ``UserError`` for a schedule that does not fit,
    and for loops that are discordant with a tensor that must not be transposed.
    """
    schedule = schedule or Schedule()
    in_blocks = formats_in_blocks([assignment])
    if in_blocks:
        check_directives_of_blocks(schedule, in_blocks)
        assignment = over_grids(assignment)
    try:
        program = _build(assignment, schedule, hoist, adapted)
    except DiscordantLoops as error:
        raise with_hints(error, assignment, schedule) from None
    if not in_blocks:
        return program
    return with_blocks(program, in_blocks, sorted(_summed_everywhere([assignment])))


def _build(
    assignment: Assignment,
    schedule: Schedule,
    hoist: bool,
    adapted: Adaptation = UNKNOWN_SIZES,
) -> ConcreteProgram:
    check_once(schedule)
    refuse_patterns(schedule, assignment)
    hoist = hoist and _leaves_loops(schedule)
    supply = NameSupply(
        [
            *(tensor.name for tensor in assignment.tensors),
            *(
                directive.workspace
                for directive in schedule.directives
                if isinstance(directive, Precompute)
            ),
        ]
    )
    assignments: list[Assignment] = []
    precomputed: dict[str, Precompute] = {}
    totals: set[str] = set()
    rescans: list[Rescan] = []
    inputs = {access.tensor for access in accesses(assignment.value)}
    for source, directive in precompute(assignment, schedule):
        for step in take_out_sums(source, supply, sample=hoist):
            totals.add(step.result.tensor)
            if not hoist:
                assignments.append(step)
                continue
            *before, left = hoist_sums(step, supply, totals, adapted.apart)
            assignments += [*before, left]
            rescans += rescanned_sums(left, inputs, totals)
        if directive is not None:
            precomputed[source.result.tensor] = directive
    variables = dict.fromkeys(name for step in assignments for name in all_variables(step))
    exact = _summed_everywhere(assignments)
    splits, after = apply_splits(schedule.splits, tuple(variables), exact)
    taken = [tensor.name for step in assignments for tensor in step.tensors]
    names = NameSupply([*taken, *variables, *after, *(fusion.fused for fusion in schedule.fused)])
    split = vector_split(schedule, after, names)
    lane = "" if split is None else split.inner
    if split is not None:
        _check_not_stored(assignment.value, split)
        schedule = with_vector_loops(schedule, split)
        more, after = apply_splits([split], after, exact, splits)
        splits += more
    builder = Builder(
        schedule=schedule,
        splits=splits,
        names=names,
        formats={tensor.name: tensor.format for step in assignments for tensor in step.tensors},
        views=[],
        stages=[],
        written=set(),
        order_names=after,
        lane=lane,
        zero=assignment.semiring.zero,
    )
    read = [access for step in assignments for access in accesses(step.value)]
    check_directives(schedule, read, splits, after, list(builder.formats))
    results = [step.result for step in assignments[:-1]]
    hoisted = {result.tensor for result in results} - totals
    builder.workspaces = {result.tensor for result in results}
    choices = _choose_formats(builder, assignments, precomputed, adapted)
    formats = {result.tensor: builder.formats[result.tensor] for result in results}
    written = assignment.result.tensor
    for step in assignments:
        written = _add_stage(builder, step)
    check_fused(schedule, builder.stages)
    dropped = adapted.without_zeros & choices.padded
    if choices.roomy & adapted.dense and not _target_is_dense(builder, assignment):
        # a dense array also has elements to which nothing was added
        dropped |= {assignment.result.tensor}
    if dropped:
        builder.schedule = schedule.drop_zeros(*sorted(dropped))
    without_zeros = without_zeros_of(builder, assignments, lane)
    used = {access.tensor for stage in builder.stages for access in accesses(stage)}
    program = ConcreteProgram(
        stages=tuple(builder.stages),
        tensors=tuple(
            StoredTensor(name=name, format=format)
            for name, format in builder.formats.items()
            if name in used
        ),
        views=tuple(builder.views),
        splits=splits,
        result=assignment.result.tensor,
        written=written,
        semiring=assignment.semiring,
        workspaces=tuple(
            StageWorkspace(
                result=step.result,
                value=step.value,
                format=formats[step.result.tensor],
                declared=step.result.tensor in precomputed
                and precomputed[step.result.tensor].format is not None,
                apart=step.result.tensor in precomputed or step.result.tensor in hoisted,
                roomy=hoist and step.result.tensor in choices.roomy - adapted.dense,
                padded=hoist and step.result.tensor in choices.padded - adapted.without_zeros,
                rows=choices.rows.get(step.result.tensor, ()) if hoist else (),
            )
            for step in assignments[:-1]
        ),
        without_zeros=without_zeros,
        rescans=() if adapted.apart else tuple(rescans),
        value=assignments[-1].value,
        location=assignment.location,
    )
    verify_program(program)
    return program


def _leaves_loops(schedule: Schedule) -> bool:
    """Whether a schedule has no directives about loops."""
    return all(
        isinstance(directive, Precompute | Transpose | DropZeros)
        for directive in schedule.directives
    )


def _target_is_dense(builder: Builder, assignment: Assignment) -> bool:
    """Whether the result stores everything in its last level."""
    levels = builder.formats[assignment.result.tensor].levels
    return not levels or levels[-1].full


def _choose_formats(
    builder: Builder,
    assignments: Sequence[Assignment],
    precomputed: Mapping[str, Precompute],
    adapted: Adaptation,
) -> CallChoices:
    """Choose the formats of undeclared workspaces, and the orders of their modes."""
    undecided: dict[str, Sequence[Level] | None] = {}
    for result in (assignment.result for assignment in assignments[:-1]):
        directive = precomputed.get(result.tensor)
        format = None if directive is None else directive.format
        if format is None:
            undecided[result.tensor] = None
        elif directive is not None and directive.over is None and _in_order(format):
            undecided[result.tensor] = format.levels
        if result.tensor in undecided:
            builder.formats[result.tensor] = dense(len(result.variables))
    parts = {part: s.variable for s in builder.splits for part in (s.outer, s.inner)}

    def loops_of(assignment: Assignment) -> tuple[str, ...]:
        return whole_variables(read_tensors(builder, assignment).order, parts)

    skipped = {
        directive.variable
        for directive in builder.schedule.directives
        if isinstance(directive, Skip)
    }
    return choose_formats(
        assignments,
        undecided,
        builder.formats,
        loops_of,
        skipped,
        adapted.dense,
        adapted.hollow,
    )


def _in_order(format: Format) -> bool:
    return format.modes == tuple(range(format.order))


def without_zeros_of(
    builder: Builder, assignments: Sequence[Assignment], lane: str
) -> tuple[str, ...]:
    """The tensors that stages write without zeros, under the names by which they do.

    Raises ``UserError`` for a tensor that no stage writes, and for one that stores all coordinates.
    """
    results = [assignment.result for assignment in assignments]
    written = {view.source: view.name for view in builder.views if view.name in builder.written}
    dropped: dict[str, None] = {}
    for directive in builder.schedule.directives:
        if not isinstance(directive, DropZeros):
            continue
        for name in directive.tensors or (results[-1].tensor,):
            if name not in (result.tensor for result in results):
                raise UserError(
                    f"nothing assigns to {name}, whose zeros are to be dropped",
                    location=directive.location,
                    expected=f"one of {', '.join(result.tensor for result in results[::-1])}",
                )
            stored = written.get(name, name)
            result = next(result_of(stage) for stage in builder.stages if _writes(stage, stored))
            format = builder.formats[stored]
            if lane and lane in result.variables:
                raise UnsupportedError(
                    f"zeros of {name} are not dropped from its vectors",
                    location=directive.location,
                    expected="a result that is not computed in vectors",
                )
            if not format.levels or format.levels[-1].full:
                raise UserError(
                    f"{name} stores all coordinates, zeros too",
                    location=directive.location,
                    expected="a result whose last level is not dense",
                    given=str(format),
                    hint=f"declare {name} with compressed levels",
                )
            dropped[stored] = None
    return tuple(dropped)


def _writes(stage: Statement, name: str) -> bool:
    return result_of(stage).tensor == name


def with_hints(
    error: DiscordantLoops,
    assignment: Assignment,
    schedule: Schedule,
    first: tuple[str, ...] = (),
) -> UserError:
    """The error for loops that are discordant with a tensor, with verified hints.

    ``first`` are the loops that have to be outside.
    """

    def compiles(tried: Schedule) -> bool:
        try:
            _build(assignment, tried, False)
        except (UserError, DiscordantLoops):
            return False
        return True

    others = [
        directive for directive in schedule.directives if not isinstance(directive, OrderLoops)
    ]
    plain = replace(schedule, directives=tuple(others))
    orders = [
        " ".join(order)
        for order in candidate_orders(error)
        if order[: len(first)] == first and compiles(plain.reorder(*order))
    ]
    in_order = error.order[: len(first)] == first
    transposes = in_order and compiles(schedule.transpose(error.path.tensor))
    return discordant(error, list(dict.fromkeys(orders))[:2], transposes=transposes)


def _summed_everywhere(assignments: Sequence[Assignment]) -> set[str]:
    """Variables that are summed over at coordinates where nothing is stored.

    So are those of a split where padding, which is stored, is not summed as zero.
    """
    variables: set[str] = set()
    for assignment in assignments:
        for term in walk(assignment.value):
            if isinstance(term, Sum):
                differs = any(map(_of_padding, walk(term.value)))
                for name in term.variables:
                    if differs or is_everywhere(term.value, name, assignment.semiring):
                        variables.add(name)
    return variables


def counts_padding(assignment: Assignment) -> bool:
    """Whether the result may be other than zero where all operands are padded with zeros."""
    value, semiring = assignment.value, assignment.semiring
    return semiring != PLUS_TIMES or not vanishes(value) or any(map(_of_padding, walk(value)))


def _of_padding(term: object) -> bool:
    """Whether a term may differ from zero at the zeros with which split dense levels are padded.

    A quotient of zeros is NaN.
    """
    match term:
        case Combine(operator=Op.DIVIDE, right=right):
            return bool(accesses(right))
        case Unary(function=function, stored=stored):
            return stored and not function.keeps_zero
        case _:
            return False


def _check_not_stored(value: Expression, split: SplitVariable) -> None:
    """Refuse vectors of ``stored(f(...))``, which store more elements than the operand."""
    for term in seen_patterns(value):
        if split.variable in variables_of(term):
            raise UnsupportedError(
                f"{print_expression(term)} is not computed in vectors, which have zeros too"
                " where nothing is stored",
                location=split.location,
                expected=f"another variable than {', '.join(variables_of(term))}",
                hint=f"parallelize({split.variable!r}, {split.factor}) makes copies of blocks",
            )


def _split_sums(value: Expression, splits: Sequence[SplitLoop]) -> Expression:
    def rule(term: object) -> Sum | None:
        if isinstance(term, Sum):
            return replace(term, variables=split_names(term.variables, splits))
        return None

    return rewrite(value, rule)


def _path(access: Access, stored: Stored, lane: str) -> LevelPath:
    """The levels of an access, without the one over the lanes of vectors."""
    text = print_expression(access)
    return LevelPath(
        tensor=access.tensor,
        variables=tuple(name for name in stored.levels if name != lane),
        free=stored.all_dense,
        text=text,
        location=access.location,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """The reads of an assignment, and its order of loops."""

    reads: dict[Access, Stored]
    target: Stored
    paths: list[LevelPath]
    order: tuple[str, ...]


def read_tensors(builder: Builder, assignment: Assignment, first: Sequence[str] = ()) -> Reads:
    """How an assignment reads its tensors, and its loops, with those of ``first`` outside if any
    order will do.
    """
    schedule, lane, result = builder.schedule, builder.lane, assignment.result
    reads = {
        access: stored_access(access, builder.formats[access.tensor], builder.splits, lane)
        for access in dict.fromkeys(accesses(assignment.value))
    }
    target = stored_access(result, builder.formats[result.tensor], builder.splits, lane)
    paths = [_path(access, stored, lane) for access, stored in reads.items()]
    if not _converted(target):
        paths.append(_path(result, target, lane))
    variables = split_names(
        tuple(dict.fromkeys((*first, *all_variables(assignment)))), builder.splits
    )
    if schedule.order is not None:
        directive = with_parts(schedule.order, schedule)
        order = check_order(directive, builder.order_names, variables)
    else:
        order = choose_order([name for name in variables if name != lane], paths)
    innermost = (lane,) if lane in variables else ()
    order = (*(name for name in order if name != lane), *innermost)
    return Reads(reads=reads, target=target, paths=paths, order=order)


def _add_stage(builder: Builder, assignment: Assignment) -> str:
    """Add the stages of one assignment; returns the tensor that the last of them writes."""
    read = read_tensors(builder, assignment)
    value = read_in_order(builder, assignment, read)
    target, order = read.target, read.order
    read_too = assignment.result.tensor in (access.tensor for access in read.reads)
    covered = covered_loops(value, order, builder.formats, assignment.semiring)
    stored_result = written_result(
        target, order, covered, read_too=read_too, lane=builder.lane, gaps=not builder.zero
    )
    return _add_nests(builder, assignment, value, order, stored_result)


def read_in_order(builder: Builder, assignment: Assignment, read: Reads) -> Expression:
    """What an assignment computes of tensors, and views of them, that its loops walk in order.

    Raises ``DiscordantLoops`` for a tensor that may not be converted.
    """
    schedule, result, lane, order = builder.schedule, assignment.result, builder.lane, read.order

    def check(path: LevelPath, *, may_transpose: bool) -> None:
        if not (path.fits(order) or path.free or may_transpose):
            raise DiscordantLoops(path, order, read.paths, builder.order_names, schedule.order)

    renamed: dict[Access, Access] = {}
    for access, stored in read.reads.items():
        if access.tensor in builder.produced:
            continue
        path = _path(access, stored, lane)
        check(path, may_transpose=schedule.may_transpose(access.tensor))
        if not path.fits(order):
            stored = reordered(stored, order)
        name = builder.read_name(access.tensor, stored)
        renamed[access] = replace(access, tensor=name, variables=stored.variables)
    value = _split_sums(assignment.value, builder.splits)
    value = rewrite(value, lambda t: renamed.get(t) if isinstance(t, Access) else None)
    converts = result.tensor in builder.workspaces or schedule.may_transpose(result.tensor)
    check(_path(result, read.target, lane), may_transpose=converts)
    return value


def _converted(target: Stored) -> bool:
    return bool(target.reasons)


def _add_nests(
    builder: Builder,
    assignment: Assignment,
    value: Expression,
    order: tuple[str, ...],
    written: Written,
) -> str:
    result = assignment.result
    name = builder.written_name(result.tensor, written.stored)
    target = Access(tensor=name, variables=written.stored.variables, location=result.location)
    nests = build_nests(target, value, order, builder.names.fresh, everywhere=True)
    for access in nests.stored:
        in_lanes = builder.lane in access.variables
        modes = range(len(access.variables))
        builder.formats[access.tensor] = walked_format(modes, in_lanes=in_lanes)
    for stage in nests.stages:
        lanes = {s.inner: s.factor for s in builder.splits if s.inner == builder.lane}
        sources = {view.name: view.source for view in builder.views}
        noted = with_notes(
            stage, builder.schedule, sources, lanes, builder.formats, assignment.semiring
        )
        builder.stages.append(noted)
    return name


NewName = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nests:
    """The nest of an assignment, and before it the nests of the temporaries stored in between."""

    stages: tuple[Statement, ...]
    stored: tuple[Access, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inside:
    """A producer and the number of consumer loops around it."""

    depth: int
    statement: Statement


def build_nests(
    result: Access,
    value: Expression,
    order: Sequence[str],
    new_name: NewName,
    *,
    everywhere: bool = False,
) -> Nests:
    """Concrete index notation of ``result = value`` with loops in this order.

    Sums are terms of the value or, with ``everywhere``, anywhere outside of other sums.
    """
    value = _inner_signs(value)
    if isinstance(value, Sum):
        assign = Assign(result=result, value=value.value, accumulate=True)
        return Nests(stages=(_nest(order, assign),), stored=())
    consumer = tuple(name for name in order if name in result.variables)
    inside: list[_Inside] = []
    stages: list[Statement] = []
    stored: list[Access] = []

    def place(term: Sum) -> Access:
        free = tuple(name for name in order if name in result.variables)
        loops = tuple(name for name in order if name in variables_of(term))
        first = next(n for n, name in enumerate(loops) if name in term.variables)
        context, rest = loops[:first], tuple(n for n in loops[first:] if n in free)
        depth = max((consumer.index(name) + 1 for name in context), default=0)
        name = new_name("t")
        if rest and rest != consumer[depth : depth + 1]:
            access = Access(tensor=name, variables=(*context, *rest))
            nest = _nest(loops, Assign(result=access, value=term.value, accumulate=True))
            stages.append(nest)
            stored.append(access)
            return access
        access = Access(tensor=name, variables=rest)
        assign = Assign(result=access, value=term.value, accumulate=True)
        inner = _nest(tuple(n for n in loops if n not in context), assign)
        inside.append(_Inside(depth=depth, statement=inner))
        return access

    flat = _replace_sums(value, place, everywhere)
    statement: Statement = Assign(result=result, value=flat)
    for depth in range(len(consumer), -1, -1):
        for producer in inside:
            if producer.depth == depth:
                statement = Where(consumer=statement, producer=producer.statement)
        if depth:
            statement = Forall(variable=consumer[depth - 1], body=statement)
    return Nests(stages=(*stages, statement), stored=tuple(stored))


def _nest(order: Sequence[str], body: Statement) -> Statement:
    for name in reversed(order):
        body = Forall(variable=name, body=body)
    return body


def _inner_signs(value: Expression) -> Expression:
    """``-sum(x)`` as ``sum(-x)``, everywhere."""

    def move(term: object) -> Expression | None:
        match term:
            case Negative(value=Sum(variables=variables, value=inner)):
                return Sum(variables=variables, value=Negative(value=inner))
            case _:
                return None

    return rewrite(value, move)


def _replace_sums(
    value: Expression, place: Callable[[Sum], Access], everywhere: bool
) -> Expression:
    match value:
        case Sum():
            return place(value)
        case Combine(operator=operator) if everywhere or operator in ADDITIVE:
            left = _replace_sums(value.left, place, everywhere)
            return replace(value, left=left, right=_replace_sums(value.right, place, everywhere))
        case Negative():
            return Negative(value=_replace_sums(value.value, place, everywhere))
        case Unary() if everywhere:
            return replace(value, value=_replace_sums(value.value, place, everywhere))
        case Choice() if everywhere:
            parts = (value.condition, value.value, value.otherwise)
            condition, inner, other = (_replace_sums(part, place, everywhere) for part in parts)
            return Choice(condition=condition, value=inner, otherwise=other)
        case _:
            return value
