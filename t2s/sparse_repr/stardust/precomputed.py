"""``promote`` and ``precompute``: parts of a nest that go into a workspace first.

``precompute(e, T, over=I)`` puts ``for I: T(I) = e`` beside what reads ``e``, inside of the loops
around ``e`` up to the first one that is in ``I`` [Stardust, sec. 5.2]; a part that none of
these loops changes is computed before all loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.walk import rewrite, walk
from t2s.graph.graph import Place
from t2s.sparse_repr.concrete.ir import Assign, Forall, Statement, Where, assigns_of, result_of
from t2s.sparse_repr.concrete.pattern_directives import Accelerate
from t2s.sparse_repr.concrete.schedule import Precompute
from t2s.sparse_repr.formats import Format, dense
from t2s.sparse_repr.notation.ir import (
    Access,
    Expression,
    accesses,
    print_expression,
    variables_of,
)


def promoted(statement: Statement, name: str) -> Statement:
    """The sum over the innermost loops, which the result does not have, taken into a scalar."""
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


def is_promotion(statement: Statement, one: Precompute) -> bool:
    """Whether a directive names the scalar for all that is summed up into the result."""
    if one.over != () or one.format is None or one.format.order:
        return False
    result = result_of(statement)
    return any(
        assign.result == result and assign.accumulate and assign.value == one.value
        for assign in assigns_of(statement)
    )


def with_workspace(statement: Statement, one: Precompute, order: tuple[str, ...]) -> Statement:
    """The nest with a part of an expression computed into a workspace."""
    assert one.format is not None
    assert one.over is not None
    text = print_expression(one.value)
    found = list(_places(statement, one.value, ()))
    if len(found) != 1:
        raise UserError(
            f"the expression has {text} {'twice' if found else 'nowhere'}",
            location=one.location,
            expected="a part of the expression that is there once, as it is written there",
            given="; ".join(print_expression(assign.value) for assign in assigns_of(statement)),
        )
    _check_workspace(one, text)
    around = found[0]
    before = next((n for n, name in enumerate(around) if name in one.over), len(around))
    if not set(around[:before]) & set(variables_of(one.value)):
        before = 0
    missing = set(variables_of(one.value)) - {*around[:before], *one.over}
    if missing:
        raise UnsupportedError(
            f"{text} also has {', '.join(sorted(missing))}, which {one.workspace} does not",
            location=one.location,
            expected=f"over with all of {', '.join(variables_of(one.value))}"
            + (f", but for {', '.join(around[:before])}" if before else ""),
            given=f"over={one.over}",
        )
    target = Access(tensor=one.workspace, variables=one.over, location=one.location)
    producer: Statement = Assign(result=target, value=one.value)
    for name in reversed([name for name in order if name in one.over]):
        producer = Forall(variable=name, body=producer)
    return _inserted(statement, one.value, target, producer, before)


def _check_workspace(one: Precompute, text: str) -> None:
    assert one.format is not None
    assert one.over is not None
    if one.format.order and one.format.place is not Place.CHIP:
        raise UserError(
            f"the workspace {one.workspace} is not on chip",
            location=one.location,
            expected="a format on chip, such as dense(1).on_chip",
            given=str(one.format),
        )
    if one.format.order != len(one.over):
        raise UserError(
            f"the workspace {one.workspace} has order {one.format.order}",
            location=one.location,
            expected=f"{one.format.order} variables in over",
            given=f"over={one.over}",
        )
    if not set(one.over) <= set(variables_of(one.value)) or len(set(one.over)) < len(one.over):
        raise UserError(
            f"{text} does not have the variables of {one.workspace}",
            location=one.location,
            expected=f"some of {', '.join(variables_of(one.value))}, each once",
            given=f"over={one.over}",
        )


def _places(
    statement: Statement, part: Expression, around: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    """The loops around each place of a part."""
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
            one, other = (
                _inserted(side, part, target, producer, depth)
                for side in (statement.consumer, statement.producer)
            )
            return Where(consumer=one, producer=other)
    consumer = rewrite(statement, lambda term: target if term == part else None)
    return Where(consumer=consumer, producer=producer)


def operands_of_loop(
    statement: Statement, one: Accelerate, formats: Mapping[str, Format]
) -> Iterator[Precompute]:
    """The transfers that ``accelerate`` stands for.

    Dense tensors whose innermost level is at the loop are read from end to end, unless the loop
    follows the coordinates of a compressed level: then they are read at addresses.
    """
    loops = [
        term
        for term in walk(statement)
        if isinstance(term, Forall) and term.variable == one.variable
    ]
    if not loops:
        return
    read = [
        access
        for access in dict.fromkeys(a for loop in loops for a in accesses(loop))
        if access.tensor in formats and one.variable in access.variables
    ]
    if not all(_is_dense_at(access, one.variable, formats[access.tensor]) for access in read):
        return
    written = {assign.result.tensor for assign in assigns_of(statement)}
    for access in read:
        format = formats[access.tensor]
        last = access.variables[format.modes[-1]]
        places = list(_places(statement, access, ()))
        if len(places) != 1 or access.tensor in written or not _is_dense(format):
            continue
        around = places[0][: places[0].index(one.variable)]
        if last == one.variable and set(access.variables) <= {*around, one.variable}:
            yield Precompute(
                value=access,
                workspace=f"{access.tensor}_on",
                format=dense(1).on_chip,
                over=(one.variable,),
                location=one.location,
            )


def _is_dense(format: Format) -> bool:
    return all(level.full for level in format.levels)


def _is_dense_at(access: Access, variable: str, format: Format) -> bool:
    return format.levels[format.modes.index(access.variables.index(variable))].full
