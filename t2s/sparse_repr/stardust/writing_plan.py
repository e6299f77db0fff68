"""How a result is written: staged on chip, streamed in an operand's order, or word by word.

A compressed level whose entries are those of one operand's level is shared with it; one in which
all coordinates are there is full; the places of any other are counted and allocated before it is
filled [Stardust, sec. 6.1].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from t2s.core.errors import UnsupportedError
from t2s.core.location import SourceLocation
from t2s.core.walk import Term
from t2s.sparse_repr.concrete.ir import ConcreteProgram, Forall, Statement, Where, result_of
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import Access, print_expression
from t2s.sparse_repr.stardust.coiteration import (
    AllCoordinates,
    LoopIteration,
    WalkedLevel,
    iteration_of,
)


class WriteMode(Enum):
    """How values of a result leave the loops."""

    STAGED = "an SRAM, stored behind its loop"
    STREAMED = "a FIFO, stored behind its loop"
    SCATTERED = "word by word"
    ADDED = "word by word, added to what is there"


class LevelWriting(Enum):
    """What becomes of a level of a result."""

    DENSE = "dense"
    FULL = "all coordinates"
    SHARED = "an operand's"
    COMPUTED = "counted, allocated, filled"


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelPlan(Term):
    """A level of a result, how its loop is iterated, and the operand that shares it."""

    variable: str
    writing: LevelWriting
    iteration: LoopIteration
    shared: Access | None = None
    shared_level: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPlan(Term):
    """A tensor that a nest writes.

    ``communicate`` is the number of the level at whose loop values move off the chip; ``on_chip``
    results stay.
    """

    target: Access
    mode: WriteMode
    levels: tuple[LevelPlan, ...]
    on_chip: bool
    communicate: int = 0

    @property
    def computed(self) -> tuple[int, ...]:
        """The levels whose places are allocated."""
        writing = enumerate(self.levels)
        return tuple(n for n, one in writing if one.writing is LevelWriting.COMPUTED)


def plan_of(statement: Statement, program: ConcreteProgram) -> ResultPlan:
    """How the nest writes its result.  Raises ``UnsupportedError`` for a sum outside of fibers."""
    target = result_of(statement)
    format = program.format_of(target.tensor)
    loops = _path(statement)
    iterations = {loop.variable: iteration_of(loop, program) for loop in loops}
    on_chip = target.tensor in {one.name for one in program.on_chip}
    variables = [target.variables[mode] for mode in format.modes]
    order = [loop.variable for loop in loops if loop.variable in target.variables]
    sums = [loop.variable for loop in loops if loop.variable not in target.variables]
    sparse = not all(level.full for level in format.levels)
    if sums and (sparse or on_chip):
        raise UnsupportedError(
            f"{print_expression(target)} is added up over {', '.join(sums)}, whose loop is outside"
            " of its own",
            location=target.location or program.location,
            expected="the loops of sums inside of those of the result, or a dense result",
            hint="reorder() the loops",
        )
    if sparse and order != variables:
        raise UnsupportedError(
            f"the loops do not write {print_expression(target)} level by level",
            location=target.location or program.location,
            expected=f"loops in the order {', '.join(variables)}",
            given=", ".join(order),
        )
    levels = _levels(target, format, iterations, program, on_chip=on_chip)
    mode = _mode(levels, added=bool(sums))
    told = [loop for loop in loops if loop.communicate]
    place = target.location or program.location
    communicate = _communicate(mode, levels, order, told, place, on_chip=on_chip)
    return ResultPlan(
        target=target, mode=mode, levels=levels, on_chip=on_chip, communicate=communicate
    )


def _path(statement: Statement) -> list[Forall]:
    match statement:
        case Forall(body=body):
            return [statement, *_path(body)]
        case Where(consumer=consumer):
            return _path(consumer)
    return []


def _levels(
    target: Access,
    format: Format,
    iterations: Mapping[str, LoopIteration],
    program: ConcreteProgram,
    *,
    on_chip: bool,
) -> tuple[LevelPlan, ...]:
    found: list[LevelPlan] = []
    key: tuple[object, ...] = ()
    for kind, mode in zip(format.levels, format.modes, strict=True):
        variable = target.variables[mode]
        iteration = iterations[variable]
        writing, shared, level = LevelWriting.COMPUTED, None, 0
        if kind.full:
            writing = LevelWriting.DENSE
        elif on_chip:
            pass
        elif isinstance(iteration, AllCoordinates):
            writing = LevelWriting.FULL
        elif isinstance(iteration, WalkedLevel):
            shared = iteration.access
            stored = program.format_of(shared.tensor)
            level = stored.modes.index(shared.variables.index(variable))
            made_here = shared.tensor in {one.name for one in program.on_chip}
            if _key(shared, stored, level) == key and not made_here:
                writing = LevelWriting.SHARED
        key = (*key, _step(writing, variable, shared, level))
        found.append(
            LevelPlan(
                variable=variable,
                writing=writing,
                iteration=iteration,
                shared=shared if writing is LevelWriting.SHARED else None,
                shared_level=level,
            )
        )
    return tuple(found)


def _step(writing: LevelWriting, variable: str, shared: Access | None, level: int) -> object:
    """What a level adds to the numbering of positions."""
    match writing:
        case LevelWriting.DENSE | LevelWriting.FULL:
            return variable
        case LevelWriting.SHARED:
            return shared, level
        case LevelWriting.COMPUTED:
            return writing, variable


def _key(access: Access, format: Format, levels: int) -> tuple[object, ...]:
    """The numbering of an operand's positions above a level."""
    return tuple(
        access.variables[mode] if kind.full else (access, number)
        for number, (kind, mode) in enumerate(
            zip(format.levels[:levels], format.modes[:levels], strict=True)
        )
    )


def _mode(levels: tuple[LevelPlan, ...], *, added: bool) -> WriteMode:
    if added:
        return WriteMode.ADDED
    writing = [one.writing for one in levels]
    gaps = any(
        one.writing is LevelWriting.DENSE and not isinstance(one.iteration, AllCoordinates)
        for one in levels
    )
    if LevelWriting.COMPUTED in writing or gaps:
        return WriteMode.SCATTERED
    return WriteMode.STREAMED if LevelWriting.SHARED in writing else WriteMode.STAGED


def _communicate(
    mode: WriteMode,
    levels: tuple[LevelPlan, ...],
    order: list[str],
    told: list[Forall],
    location: SourceLocation | None,
    *,
    on_chip: bool,
) -> int:
    names = [one.variable for one in levels]
    earliest = max((n for n, one in enumerate(levels) if one.shared is not None), default=0)
    walked = order == names
    latest = len(levels) - 1 if walked else 0
    if on_chip or not levels:
        return 0
    if not told:
        return min(max(1, earliest), latest)
    given = told[0].variable
    if mode in (WriteMode.SCATTERED, WriteMode.ADDED):
        raise UnsupportedError(
            f"the result does not move at the loop over {given}: it is written word by word",
            location=location,
            expected="a result in the order of its loops, without allocated levels",
        )
    number = names.index(given) if walked else order.index(given)
    if not earliest <= number <= latest:
        raise UnsupportedError(
            f"the result cannot move at the loop over {given}",
            location=location,
            expected=f"one of {', '.join(names[earliest:] if walked else order[:1])},"
            " from where on it knows where its entries begin",
        )
    return number
