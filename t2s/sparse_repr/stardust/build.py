"""From index notation and a schedule to concrete index notation for Capstan.

The steps, in order: build one nest with its sums (``concrete/build.py``); move sums into scalars;
move precomputed parts into workspaces at their loops; choose the patterns of loops.  Tensors are
read as the user stores them: dense ones by address, compressed ones in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.walk import rewrite, walk
from t2s.graph.graph import MemorySpace
from t2s.sparse_repr.concrete.build import build_nests
from t2s.sparse_repr.concrete.ir import (
    Assign,
    ConcreteProgram,
    Forall,
    LoopPattern,
    Statement,
    StoredTensor,
    Where,
    assigns_of,
    loops_of,
    result_of,
)
from t2s.sparse_repr.concrete.order import (
    DiscordantLoops,
    LevelPath,
    candidate_orders,
    check_order,
    choose_order,
    discordant,
    verify_program,
)
from t2s.sparse_repr.concrete.pattern_directives import (
    DEFAULT_ENVIRONMENT,
    LANES,
    PATTERN_DIRECTIVES,
    Accelerate,
    Communicate,
    ParallelLoop,
    PromoteSums,
    SetEnvironment,
)
from t2s.sparse_repr.concrete.schedule import OrderLoops, Precompute, Schedule, check_once
from t2s.sparse_repr.formats import Format, dense
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Choice,
    Combine,
    Expression,
    Sum,
    TensorDeclaration,
    Unary,
    accesses,
    all_variables,
    print_expression,
    variables_of,
)
from t2s.sparse_repr.semiring import PLUS_TIMES


@dataclass
class _Scheduling:
    """The nest so far, the names in use, and the workspaces on chip."""

    statement: Statement
    names: NameSupply
    order: tuple[str, ...]
    formats: dict[str, Format]
    workspaces: dict[str, Format]

    def precompute(self, directive: Precompute) -> None:
        """Move a part of the expression into its workspace."""
        assert directive.format is not None
        assert directive.over is not None
        if directive.workspace in self.formats or directive.workspace in self.workspaces:
            raise UserError(
                f"there is a tensor {directive.workspace} already",
                location=directive.location,
                expected="a new name for the workspace",
            )
        self.statement = with_workspace(self.statement, directive, self.order)
        if directive.format.order:
            self.workspaces[directive.workspace] = directive.format


def build_scheduled(assignment: Assignment, schedule: Schedule | None = None) -> ConcreteProgram:
    """Concrete index notation of an assignment for Capstan, with the environment.

    Raises ``UserError`` for a schedule that does not fit, or that patterns cannot express.
    """
    schedule = schedule or Schedule()
    check_once(schedule)
    check_supported(assignment, schedule)
    order = _order(assignment, schedule)
    scheduling = _nest(assignment, order)
    _promote(scheduling, schedule)
    for directive in schedule.directives:
        match directive:
            case Precompute() if directive.workspace not in _temporaries(scheduling.statement):
                scheduling.precompute(directive)
            case Accelerate():
                for each in operands_of_loop(scheduling.statement, directive, scheduling.formats):
                    scheduling.precompute(each)
    environment = dict(DEFAULT_ENVIRONMENT)
    environment |= {
        directive.name: directive.value
        for directive in schedule.directives
        if isinstance(directive, SetEnvironment) and directive.value is not None
    }
    program = ConcreteProgram(
        stages=(with_patterns(scheduling.statement, schedule),),
        tensors=tuple(
            StoredTensor(name=name, format=format) for name, format in scheduling.formats.items()
        ),
        views=(),
        splits=(),
        result=assignment.result.tensor,
        written=assignment.result.tensor,
        environment=tuple(environment.items()),
        on_chip=tuple(
            StoredTensor(name=name, format=format) for name, format in scheduling.workspaces.items()
        ),
        location=assignment.location,
    )
    verify_program(program)
    return program


def _path(access: Access, format: Format) -> LevelPath:
    return LevelPath(
        tensor=access.tensor,
        variables=tuple(access.variables[mode] for mode in format.modes),
        free=False,
        text=print_expression(access),
        location=access.location,
    )


def _is_sparse(format: Format) -> bool:
    return not all(level.full for level in format.levels)


def _order(assignment: Assignment, schedule: Schedule) -> tuple[str, ...]:
    """The loops: those of the result first, in the order of its levels, as far as tensors allow."""
    formats = {tensor.name: tensor.format for tensor in assignment.tensors}
    result = assignment.result
    result_order = [result.variables[mode] for mode in formats[result.tensor].modes]
    variables = tuple(dict.fromkeys((*result_order, *all_variables(assignment))))
    read = dict.fromkeys((*accesses(assignment.value), result))
    paths = [
        _path(access, formats[access.tensor])
        for access in read
        if _is_sparse(formats[access.tensor])
    ]
    paths += [
        _path(
            Access(
                tensor=directive.workspace, variables=directive.over, location=directive.location
            ),
            directive.format,
        )
        for directive in schedule.directives
        if isinstance(directive, Precompute)
        and directive.format is not None
        and directive.over is not None
        if _is_sparse(directive.format) and directive.format.order == len(directive.over)
        if set(directive.over) <= set(variables)
    ]
    if schedule.order is not None:
        order = check_order(schedule.order, variables, variables)
    else:
        order = choose_order(variables, paths)
    for path in paths:
        if not path.fits(order):
            raise _not_walked(DiscordantLoops(path, order, paths, variables, schedule.order))
    return order


def _not_walked(error: DiscordantLoops) -> UserError:
    """The error, with loop orders that fit all tensors, because Capstan's host converts none."""
    working = dict.fromkeys(
        " ".join(order)
        for order in candidate_orders(error)
        if all(path.fits(order) for path in error.paths)
    )
    refusal = discordant(error, list(working)[:2], transposes=False)
    if refusal.hint is None:
        refusal.hint = "declare a tensor with its levels in the order of the loops"
    return refusal


def _nest(assignment: Assignment, order: tuple[str, ...]) -> _Scheduling:
    names = NameSupply([*(t.name for t in assignment.tensors), *all_variables(assignment)])
    nested = any(
        isinstance(inside, Sum)
        for term in walk(assignment.value)
        if isinstance(term, Sum)
        for inside in walk(term.value)
    )
    if nested:
        raise _needs_workspace(assignment, order)
    nests = build_nests(assignment.result, assignment.value, order, names.fresh, everywhere=True)
    fibers = [
        result_of(term.producer)
        for term in walk(nests.stages[-1])
        if isinstance(term, Where) and result_of(term.producer).variables
    ]
    if nests.stored or fibers:
        raise _needs_workspace(assignment, order)
    return _Scheduling(
        statement=nests.stages[-1],
        names=names,
        order=order,
        formats={tensor.name: tensor.format for tensor in assignment.tensors},
        workspaces={},
    )


def _needs_workspace(assignment: Assignment, order: tuple[str, ...]) -> UnsupportedError:
    return UnsupportedError(
        "a sum in the expression needs a temporary of more than one number",
        location=assignment.location,
        expected="sums outside of others, whose loops are inside of those of the result",
        given=f"loops {', '.join(order)}",
        hint="reorder() the loops, or precompute() the sum into a workspace on chip",
    )


def _promote(scheduling: _Scheduling, schedule: Schedule) -> None:
    """Move the sum that is assigned to the result into a scalar with the user's name."""
    name = None
    for directive in schedule.directives:
        if isinstance(directive, Precompute) and is_promotion(scheduling.statement, directive):
            name = directive.workspace
            if name in scheduling.formats:
                raise UserError(
                    f"there is a tensor {name} already",
                    location=directive.location,
                    expected="a new name for the workspace",
                )
    scheduling.statement = promoted(scheduling.statement, name or scheduling.names.fresh("t"))


def _temporaries(statement: Statement) -> Sequence[str]:
    producers = (term for term in walk(statement) if isinstance(term, Where))
    targets = [result_of(where.producer) for where in producers]
    return [target.tensor for target in targets if not target.variables]


# ``promote`` and ``precompute``: parts of a nest that go into a workspace first.
#
# ``precompute(e, T, over=I)`` puts ``for I: T(I) = e`` before the readers of ``e``, inside the
# loops around ``e`` up to the first one in ``I`` [Stardust, sec. 5.2]; a part that depends on none
# of these loops is computed before all loops.


def promoted(statement: Statement, name: str) -> Statement:
    """The nest with the sum over the innermost loops, which the result lacks, in a scalar."""
    result = result_of(statement)
    return _promoted(statement, result, Access(tensor=name, location=result.location), ())


def _promoted(
    statement: Statement, result: Access, total: Access, around: tuple[str, ...]
) -> Statement:
    match statement:
        case Assign():
            return statement
        case Where(consumer=consumer):
            return replace(statement, consumer=_promoted(consumer, result, total, around))
        case Forall(variable=variable, body=body):
            if variable in result.variables or set(_loops(body)) & set(result.variables):
                inside = _promoted(body, result, total, (*around, variable))
                return replace(statement, body=inside)
            outer = not set(around) <= set(result.variables)
            consumer = Assign(result=result, value=total, accumulate=outer)
            return Where(consumer=consumer, producer=_into(statement, total))


def _into(statement: Statement, total: Access) -> Statement:
    match statement:
        case Assign():
            return replace(statement, result=total)
        case Where(consumer=consumer):
            return replace(statement, consumer=_into(consumer, total))
        case Forall(body=body):
            return replace(statement, body=_into(body, total))


def _loops(statement: Statement) -> Iterator[str]:
    return (term.variable for term in walk(statement) if isinstance(term, Forall))


def is_promotion(statement: Statement, directive: Precompute) -> bool:
    """Whether a directive names the scalar for the whole sum of the result."""
    if directive.over != () or directive.format is None or directive.format.order:
        return False
    result = result_of(statement)
    return any(
        assign.result == result and assign.accumulate and assign.value == directive.value
        for assign in assigns_of(statement)
    )


def with_workspace(
    statement: Statement, directive: Precompute, order: tuple[str, ...]
) -> Statement:
    """The nest with a part of an expression precomputed in a workspace."""
    assert directive.format is not None
    assert directive.over is not None
    text = print_expression(directive.value)
    places = list(_places(statement, directive.value, ()))
    if len(places) != 1:
        raise UserError(
            f"the expression has {text} {'twice' if places else 'nowhere'}",
            location=directive.location,
            expected="a part of the expression that is there once, as it is written there",
            given="; ".join(print_expression(assign.value) for assign in assigns_of(statement)),
        )
    _check_workspace(directive, text)
    around = places[0]
    before = next((n for n, name in enumerate(around) if name in directive.over), len(around))
    if not set(around[:before]) & set(variables_of(directive.value)):
        before = 0
    missing = set(variables_of(directive.value)) - {*around[:before], *directive.over}
    if missing:
        raise UnsupportedError(
            f"{text} also has {', '.join(sorted(missing))}, which {directive.workspace} does not",
            location=directive.location,
            expected=f"over with all of {', '.join(variables_of(directive.value))}"
            + (f", but for {', '.join(around[:before])}" if before else ""),
            given=f"over={directive.over}",
        )
    target = Access(
        tensor=directive.workspace, variables=directive.over, location=directive.location
    )
    producer: Statement = Assign(result=target, value=directive.value)
    for name in reversed([name for name in order if name in directive.over]):
        producer = Forall(variable=name, body=producer)
    return _inserted(statement, directive.value, target, producer, before)


def _check_workspace(directive: Precompute, text: str) -> None:
    assert directive.format is not None
    assert directive.over is not None
    if directive.format.order and directive.format.place is not MemorySpace.CHIP:
        raise UserError(
            f"the workspace {directive.workspace} is not on chip",
            location=directive.location,
            expected="a format on chip, such as dense(1).on_chip",
            given=str(directive.format),
        )
    if directive.format.order != len(directive.over):
        raise UserError(
            f"the workspace {directive.workspace} has order {directive.format.order}",
            location=directive.location,
            expected=f"{directive.format.order} variables in over",
            given=f"over={directive.over}",
        )
    if not set(directive.over) <= set(variables_of(directive.value)) or len(
        set(directive.over)
    ) < len(directive.over):
        raise UserError(
            f"{text} does not have the variables of {directive.workspace}",
            location=directive.location,
            expected=f"some of {', '.join(variables_of(directive.value))}, each once",
            given=f"over={directive.over}",
        )


def _places(
    statement: Statement, part: Expression, around: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    """The loops around each occurrence of a part."""
    match statement:
        case Assign(value=value):
            yield from (around for term in walk(value) if term == part)
        case Forall(variable=variable, body=body):
            yield from _places(body, part, (*around, variable))
        case Where(consumer=consumer, producer=producer):
            yield from _places(producer, part, around)
            yield from _places(consumer, part, around)


def _inserted(
    statement: Statement, part: Expression, target: Access, producer: Statement, depth: int
) -> Statement:
    if next(_places(statement, part, ()), None) is None:
        return statement
    match statement:
        case Forall(body=body) if depth:
            return replace(statement, body=_inserted(body, part, target, producer, depth - 1))
        case Where() if depth:
            new_consumer, new_producer = (
                _inserted(side, part, target, producer, depth)
                for side in (statement.consumer, statement.producer)
            )
            return Where(consumer=new_consumer, producer=new_producer)
    consumer = rewrite(statement, lambda term: target if term == part else None)
    return Where(consumer=consumer, producer=producer)


def operands_of_loop(
    statement: Statement, directive: Accelerate, formats: Mapping[str, Format]
) -> Iterator[Precompute]:
    """The transfers that ``accelerate`` stands for.

    Dense tensors whose innermost level is at the loop are read sequentially, unless the loop
    follows the coordinates of a compressed level: then they are read by address.
    """
    loops = [
        term
        for term in walk(statement)
        if isinstance(term, Forall) and term.variable == directive.variable
    ]
    if not loops:
        return
    read = [
        access
        for access in dict.fromkeys(a for loop in loops for a in accesses(loop))
        if access.tensor in formats and directive.variable in access.variables
    ]
    if not all(_is_dense_at(access, directive.variable, formats[access.tensor]) for access in read):
        return
    written = {assign.result.tensor for assign in assigns_of(statement)}
    for access in read:
        format = formats[access.tensor]
        last = access.variables[format.modes[-1]]
        places = list(_places(statement, access, ()))
        if len(places) != 1 or access.tensor in written or not _is_dense(format):
            continue
        around = places[0][: places[0].index(directive.variable)]
        if last == directive.variable and set(access.variables) <= {*around, directive.variable}:
            yield Precompute(
                value=access,
                workspace=f"{access.tensor}_on",
                format=dense(1).on_chip,
                over=(directive.variable,),
                location=directive.location,
            )


def _is_dense(format: Format) -> bool:
    return all(level.full for level in format.levels)


def _is_dense_at(access: Access, variable: str, format: Format) -> bool:
    return format.levels[format.modes.index(access.variables.index(variable))].full


# Directives, formats and operators that Capstan's parallel patterns do not support.

LETTERS = "ds"
OPERATORS = (Op.ADD, Op.SUBTRACT, Op.MULTIPLY)


def check_supported(assignment: Assignment, schedule: Schedule) -> None:
    """Raise ``UnsupportedError`` for directives, formats and operators without patterns."""
    for directive in schedule.directives:
        if not isinstance(directive, (*PATTERN_DIRECTIVES, OrderLoops, Precompute)):
            raise UnsupportedError(
                "this directive is for streams, and Capstan does not know it",
                location=directive.location,
                expected="reorder, precompute, map, accelerate, environment, promote, communicate",
            )
        if isinstance(directive, Precompute) and None in (directive.over, directive.format):
            name = directive.workspace
            raise UnsupportedError(
                f"the workspace {name} has no place on the accelerator",
                location=directive.location,
                expected="a tensor on chip, and its variables",
                hint=f'precompute(..., Tensor("{name}", dense(1).on_chip), over=(k,))',
            )
    for tensor in assignment.tensors:
        _check_tensor(tensor)
    if assignment.semiring != PLUS_TIMES:
        raise UnsupportedError(
            "sums and products of this semiring have no reduction pattern yet",
            location=assignment.location,
            expected="plus and times",
        )
    for term in walk(assignment.value):
        if isinstance(term, Combine) and term.operator not in OPERATORS:
            raise UnsupportedError(
                f"there is a {term.operator.value} in the expression",
                location=assignment.location,
                expected="additions, subtractions and products",
            )
        if isinstance(term, Unary | Choice):
            name = term.function.value if isinstance(term, Unary) else "where"
            raise UnsupportedError(
                f"Capstan does not compute {name}",
                location=assignment.location,
                expected="additions, subtractions and products",
            )
        if isinstance(term, Access):
            _check_access(term, assignment)


def _check_tensor(tensor: TensorDeclaration) -> None:
    odd = [level for level in tensor.format.levels if level.letter not in LETTERS]
    if odd or not tensor.format.plain:
        raise UnsupportedError(
            f"{tensor.name} has {odd[0].title if odd else 'blocked'} levels,"
            " which Capstan's memories have no form for",
            location=tensor.location,
            expected="dense and compressed levels of whole modes (d, s)",
            given=str(tensor.format),
            hint="declare it with another format: inputs are converted to it",
        )
    if tensor.format.place is MemorySpace.CHIP:
        raise UnsupportedError(
            f"{tensor.name} is on chip, where the host can neither fill nor read it",
            location=tensor.location,
            expected="inputs and results off chip; workspaces on chip",
            hint=f"{tensor.name} moves on chip by precompute or accelerate",
        )


def _check_access(access: Access, assignment: Assignment) -> None:
    if access.tensor == assignment.result.tensor:
        raise UnsupportedError(
            f"{access.tensor} is read and written",
            location=access.location or assignment.location,
            expected="a result of its own",
        )
    if len(set(access.variables)) < len(access.variables):
        raise UnsupportedError(
            f"{access.tensor}({','.join(access.variables)}) is a diagonal",
            location=access.location or assignment.location,
            expected="a variable of its own for each mode",
        )


# The pattern of every loop: the user's, or the default.
#
# Sums into scalars are reductions.  The innermost loops take ``ip`` iterations at a time, the
# outermost one ``bp``, others one; transfers between places are not patterns.

Mapped = ParallelLoop | Accelerate


def with_patterns(statement: Statement, schedule: Schedule) -> Statement:
    """The nest with its patterns.  Raises ``UserError`` for directives that fit no loop."""
    loops = [term for term in walk(statement) if isinstance(term, Forall)]
    mapped = {
        directive.variable: directive
        for directive in schedule.directives
        if isinstance(directive, Mapped)
    }
    for mapped_loop in mapped.values():
        named = [loop for loop in loops if loop.variable == mapped_loop.variable]
        _check_mapped(mapped_loop, named, loops)
    for directive in schedule.directives:
        if isinstance(directive, Communicate):
            _check_communicate(directive, statement)
        if isinstance(directive, PromoteSums) and not _sums(statement):
            raise UserError(
                "there is no sum to promote",
                location=directive.location,
                expected="a variable that the result does not have",
            )
    communicates = [
        directive for directive in schedule.directives if isinstance(directive, Communicate)
    ]
    return _patterned(
        statement, mapped, communicates[0].variable if communicates else None, outermost=True
    )


def is_transfer(statement: Statement) -> bool:
    """Whether loops copy a tensor, element by element."""
    match statement:
        case Forall(body=body):
            return is_transfer(body)
        case Assign(result=result, value=Access(), accumulate=False):
            return bool(result.variables)
    return False


def _sums(statement: Statement) -> bool:
    return any(assign.accumulate for assign in assigns_of(statement))


def _is_reduction(loop: Forall) -> bool:
    return not result_of(loop).variables


def _patterned(
    statement: Statement, mapped: dict[str, Mapped], communicate: str | None, *, outermost: bool
) -> Statement:
    match statement:
        case Assign():
            return statement
        case Where(consumer=consumer, producer=producer):
            if not is_transfer(producer):
                producer = _patterned(producer, mapped, None, outermost=outermost)
            inside = _patterned(consumer, mapped, communicate, outermost=outermost)
            return Where(consumer=inside, producer=producer)
        case Forall(variable=variable, body=body):
            innermost = not any(isinstance(term, Forall) for term in walk(body))
            mapping = mapped.get(variable)
            factor: int | str = "ip" if innermost else "bp" if outermost else 1
            sums = _is_reduction(statement)
            return replace(
                statement,
                body=_patterned(body, mapped, communicate, outermost=False),
                pattern=LoopPattern.REDUCTION if sums else LoopPattern.FOREACH,
                factor=factor if mapping is None or mapping.factor is None else mapping.factor,
                communicate=variable == communicate,
            )


def _check_mapped(directive: Mapped, named: list[Forall], loops: list[Forall]) -> None:
    verb = "parallel" if isinstance(directive, ParallelLoop) else "accelerate"
    if not named:
        names = dict.fromkeys(loop.variable for loop in loops)
        raise UserError(
            f"{verb} names {directive.variable}, which is not a loop",
            location=directive.location,
            expected=f"one of {', '.join(names)}",
        )
    _check_factor(directive, verb, named)
    sums = [loop for loop in named if _is_reduction(loop)]
    if directive.pattern is LoopPattern.REDUCTION and not sums:
        result = result_of(named[0])
        raise UserError(
            f"the loop over {directive.variable} is not a sum into a scalar",
            location=directive.location,
            expected="a loop that the result does not have, inside of those that it has",
            given=f"{result.tensor}({','.join(result.variables)})",
        )
    if directive.pattern is LoopPattern.FOREACH and len(sums) == len(named):
        raise UserError(
            f"the iterations over {directive.variable} are added up",
            location=directive.location,
            expected=f"{verb}({directive.variable!r}, 'reduction')",
            given=f"{verb}({directive.variable!r}, 'foreach')",
        )


def _check_factor(directive: Mapped, verb: str, named: list[Forall]) -> None:
    """Check the factor of a loop: innermost loops are computed in the lanes of vectors."""
    innermost = any(not any(isinstance(t, Forall) for t in walk(loop.body)) for loop in named)
    variable, factor = directive.variable, directive.factor
    if innermost and factor is not None and factor > LANES:
        raise UserError(
            f"the innermost loop over {variable} takes more iterations than there are lanes",
            location=directive.location,
            expected=f"1 to {LANES} iterations at a time",
            given=f"{verb}({variable!r}, {directive.pattern.value!r}, {factor})",
            hint="environment(outer_par=...) makes copies of what is inside of the outermost loop",
        )


def _check_communicate(directive: Communicate, statement: Statement) -> None:
    result = result_of(statement)
    loops = [name for name in loops_of(statement) if name in result.variables]
    if directive.tensor != result.tensor or directive.variable not in loops:
        raise UserError(
            f"{directive.tensor} does not move at the loop over {directive.variable}",
            location=directive.location,
            expected=f"the result {result.tensor}, and one of its loops: {', '.join(loops)}",
            given=f"communicate({directive.tensor!r}, {directive.variable!r})",
        )
