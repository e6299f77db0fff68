"""From index notation and a schedule to concrete index notation for Capstan.

The steps, in order: one nest with its sums (``concrete/build.py``); sums go into scalars; parts
that are computed first go into workspaces at their loops; loops get their patterns.  Tensors are
read as the user stores them: dense ones have addresses, compressed ones are walked in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.names import NameSupply
from t2s.core.walk import walk
from t2s.sparse_repr.concrete.build import build_nests
from t2s.sparse_repr.concrete.ir import (
    ConcreteProgram,
    Statement,
    StoredTensor,
    Where,
    result_of,
)
from t2s.sparse_repr.concrete.order import (
    DiscordantLoops,
    LevelPath,
    candidate_orders,
    check_order,
    choose_order,
    discordant,
)
from t2s.sparse_repr.concrete.pattern_directives import (
    DEFAULT_ENVIRONMENT,
    Accelerate,
    SetEnvironment,
)
from t2s.sparse_repr.concrete.schedule import Precompute, Schedule, check_once
from t2s.sparse_repr.concrete.verify import verify_program
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Sum,
    accesses,
    all_variables,
    print_expression,
)
from t2s.sparse_repr.stardust.patterned import with_patterns
from t2s.sparse_repr.stardust.precomputed import (
    is_promotion,
    operands_of_loop,
    promoted,
    with_workspace,
)
from t2s.sparse_repr.stardust.refusals import check_supported


@dataclass
class _Scheduling:
    """The nest so far, the names that are taken, and the workspaces on chip."""

    statement: Statement
    names: NameSupply
    order: tuple[str, ...]
    formats: dict[str, Format]
    workspaces: dict[str, Format]

    def precompute(self, one: Precompute) -> None:
        """Put a part of the expression into its workspace."""
        assert one.format is not None
        assert one.over is not None
        if one.workspace in self.formats or one.workspace in self.workspaces:
            raise UserError(
                f"there is a tensor {one.workspace} already",
                location=one.location,
                expected="a new name for the workspace",
            )
        self.statement = with_workspace(self.statement, one, self.order)
        if one.format.order:
            self.workspaces[one.workspace] = one.format


def build_scheduled(assignment: Assignment, schedule: Schedule | None = None) -> ConcreteProgram:
    """Concrete index notation of an assignment for Capstan, with the environment.

    Raises ``UserError`` for a schedule that does not fit, and for what patterns cannot express.
    """
    schedule = schedule or Schedule()
    check_once(schedule)
    check_supported(assignment, schedule)
    order = _order(assignment, schedule)
    scheduling = _nest(assignment, order)
    _promote(scheduling, schedule)
    for one in schedule.directives:
        match one:
            case Precompute() if one.workspace not in _temporaries(scheduling.statement):
                scheduling.precompute(one)
            case Accelerate():
                for each in operands_of_loop(scheduling.statement, one, scheduling.formats):
                    scheduling.precompute(each)
    environment = dict(DEFAULT_ENVIRONMENT)
    environment |= {
        one.name: one.value
        for one in schedule.directives
        if isinstance(one, SetEnvironment) and one.value is not None
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
    wanted = [result.variables[mode] for mode in formats[result.tensor].modes]
    variables = tuple(dict.fromkeys((*wanted, *all_variables(assignment))))
    read = dict.fromkeys((*accesses(assignment.value), result))
    paths = [_path(one, formats[one.tensor]) for one in read if _is_sparse(formats[one.tensor])]
    paths += [
        _path(Access(tensor=one.workspace, variables=one.over, location=one.location), one.format)
        for one in schedule.directives
        if isinstance(one, Precompute) and one.format is not None and one.over is not None
        if _is_sparse(one.format) and one.format.order == len(one.over)
        if set(one.over) <= set(variables)
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
    """The error with orders that fit all tensors: Capstan's host converts none."""
    working = dict.fromkeys(
        " ".join(order)
        for order in candidate_orders(error)
        if all(path.fits(order) for path in error.paths)
    )
    made = discordant(error, list(working)[:2], transposes=False)
    if made.hint is None:
        made.hint = "declare a tensor with its levels in the order of the loops"
    return made


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
    """Take the sum that is assigned to the result into a scalar, by the user's name for it."""
    name = None
    for one in schedule.directives:
        if isinstance(one, Precompute) and is_promotion(scheduling.statement, one):
            name = one.workspace
            if name in scheduling.formats:
                raise UserError(
                    f"there is a tensor {name} already",
                    location=one.location,
                    expected="a new name for the workspace",
                )
    scheduling.statement = promoted(scheduling.statement, name or scheduling.names.fresh("t"))


def _temporaries(statement: Statement) -> Sequence[str]:
    made = (term for term in walk(statement) if isinstance(term, Where))
    found = [result_of(one.producer) for one in made]
    return [one.tensor for one in found if not one.variables]
