"""What a schedule says beside its calls: extents that are assumed, variables that are fixed."""

from __future__ import annotations

from collections.abc import Mapping

from t2s.capability.conditions import names_of
from t2s.capability.ir import Condition
from t2s.capability.normal import PartForm
from t2s.capability.parse import is_list, parse_condition
from t2s.capability.reshape import Asked
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.sparse_repr.concrete.external_directives import AssumeExtents
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.notation.ir import Assignment, accesses, all_variables, print_expression


def facts_of_schedule(
    schedule: Schedule,
) -> tuple[tuple[Condition, SourceLocation], ...]:
    """What the user says of extents.  Raises ``UserError`` for conditions over lists."""
    found = []
    for one in schedule.directives:
        if isinstance(one, AssumeExtents):
            made = parse_condition(one.condition, location=one.location)
            if any(is_list(name) for name in names_of(made)):
                raise UserError(
                    "extents of variables are assumed, and there are no lists of them",
                    location=one.location,
                    expected='such as "i % 16 == 0"',
                    given=one.condition,
                )
            found.append((made, one.location))
    return tuple(found)


def check_variables(
    assignment: Assignment, names: tuple[str, ...], location: SourceLocation
) -> None:
    """Variables to fix are there.  Raises ``UserError``."""
    known = all_variables(assignment)
    for name in names:
        if name not in known:
            raise UserError(
                f"there is no variable {name} to fix",
                location=location,
                expected=f"one of {', '.join(known)}",
            )


def check_asked(part: PartForm, asked: Asked, location: SourceLocation) -> None:
    """What is fixed and promoted is of the part that is bound."""
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
        order = next(len(one.variables) for one in part.reads if one.tensor == name)
        if position > order + sum(other == name for other, _ in asked.promoted) - 1:
            raise UserError(
                "a dimension is added at a position of a tensor",
                location=location,
                expected=f"a position of {name} from 0 to {order}",
                given=str(position),
            )


def declared_extents(assignment: Assignment) -> Mapping[str, int]:
    """The extents that shapes of tensors say before anything is run."""
    found: dict[str, int] = {}
    for access in (*accesses(assignment.value), assignment.result):
        shape = next((t.shape for t in assignment.tensors if t.name == access.tensor), None)
        for name, extent in zip(access.variables, shape or (), strict=False):
            found.setdefault(name, extent)
    return found
