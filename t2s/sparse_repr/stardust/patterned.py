"""The pattern of every loop: what the user maps, and what holds where nothing is said.

Sums into scalars are reductions.  The innermost loops take ``ip`` iterations at a time, the
outermost one ``bp``, others one; transfers between places are no patterns.
"""

from __future__ import annotations

from dataclasses import replace

from t2s.core.errors import UserError
from t2s.core.walk import walk
from t2s.sparse_repr.concrete.ir import (
    Assign,
    Forall,
    LoopPattern,
    Statement,
    Where,
    assigns_of,
    loops_of,
    result_of,
)
from t2s.sparse_repr.concrete.pattern_directives import (
    LANES,
    Accelerate,
    Communicate,
    MapLoop,
    Promote,
)
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.notation.ir import Access

Mapped = MapLoop | Accelerate


def with_patterns(statement: Statement, schedule: Schedule) -> Statement:
    """The nest with its patterns.  Raises ``UserError`` for directives that fit no loop."""
    loops = [term for term in walk(statement) if isinstance(term, Forall)]
    mapped = {one.variable: one for one in schedule.directives if isinstance(one, Mapped)}
    for one in mapped.values():
        found = [loop for loop in loops if loop.variable == one.variable]
        _check_mapped(one, found, loops)
    for directive in schedule.directives:
        if isinstance(directive, Communicate):
            _check_communicate(directive, statement)
        if isinstance(directive, Promote) and not _sums(statement):
            raise UserError(
                "there is no sum to promote",
                location=directive.location,
                expected="a variable that the result does not have",
            )
    told = [one for one in schedule.directives if isinstance(one, Communicate)]
    return _patterned(statement, mapped, told[0].variable if told else None, outermost=True)


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
            told = mapped.get(variable)
            factor: int | str = "ip" if innermost else "bp" if outermost else 1
            sums = _is_reduction(statement)
            return replace(
                statement,
                body=_patterned(body, mapped, communicate, outermost=False),
                pattern=LoopPattern.REDUCTION if sums else LoopPattern.FOREACH,
                factor=factor if told is None or told.factor is None else told.factor,
                communicate=variable == communicate,
            )


def _check_mapped(one: Mapped, found: list[Forall], loops: list[Forall]) -> None:
    verb = "map" if isinstance(one, MapLoop) else "accelerate"
    if not found:
        names = dict.fromkeys(loop.variable for loop in loops)
        raise UserError(
            f"there is no loop over {one.variable} to {verb}",
            location=one.location,
            expected=f"one of {', '.join(names)}",
        )
    _check_factor(one, verb, found)
    sums = [loop for loop in found if _is_reduction(loop)]
    if one.pattern is LoopPattern.REDUCTION and not sums:
        result = result_of(found[0])
        raise UserError(
            f"the loop over {one.variable} is no sum into a scalar",
            location=one.location,
            expected="a loop that the result does not have, inside of those that it has",
            given=f"{result.tensor}({','.join(result.variables)})",
        )
    if one.pattern is LoopPattern.FOREACH and len(sums) == len(found):
        raise UserError(
            f"the iterations over {one.variable} are added up",
            location=one.location,
            expected=f"{verb}({one.variable!r}, 'reduction')",
            given=f"{verb}({one.variable!r}, 'foreach')",
        )


def _check_factor(one: Mapped, verb: str, found: list[Forall]) -> None:
    """Innermost loops are computed in the lanes of vectors."""
    innermost = any(not any(isinstance(t, Forall) for t in walk(loop.body)) for loop in found)
    if innermost and one.factor is not None and one.factor > LANES:
        raise UserError(
            f"the innermost loop over {one.variable} takes more iterations than there are lanes",
            location=one.location,
            expected=f"1 to {LANES} iterations at a time",
            given=f"{verb}({one.variable!r}, {one.pattern.value!r}, {one.factor})",
            hint="environment(outer_par=...) makes copies of what is inside of the outermost loop",
        )


def _check_communicate(one: Communicate, statement: Statement) -> None:
    result = result_of(statement)
    loops = [name for name in loops_of(statement) if name in result.variables]
    if one.tensor != result.tensor or one.variable not in loops:
        raise UserError(
            f"{one.tensor} does not move at the loop over {one.variable}",
            location=one.location,
            expected=f"the result {result.tensor}, and one of its loops: {', '.join(loops)}",
            given=f"communicate({one.tensor!r}, {one.variable!r})",
        )
