"""What is searched: a Func that sums products, or any other term, over the points of a box.

In goes a Func without directives, ``C[i, j] = c`` and ``C[i, j] += term``; out comes a
``Contraction``: its loops with their extents, and its operands with the loops that each of them
varies along.  Everything that spaces and bounds need to know about a definition is in it.

Refused, with the user's line: several updates, updates that read the Func itself at other elements,
loops whose bounds depend on other loops, Funcs that have directives, and anything that is not a
sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from t2s.core.errors import UserError
from t2s.core.expr import Apply, Expr, Index, Read, index_names, reads
from t2s.core.location import SourceLocation, user_location
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.core.types import Type
from t2s.func.collect import needed_funcs
from t2s.func.freeze import freeze
from t2s.func.ir import Definition, TemporalProgram
from t2s.spatial.schedule import ScheduledFunc


@dataclass(frozen=True, kw_only=True)
class SearchedLoop:
    """A loop of the definition: ``extent`` iterations from ``minimum``."""

    name: str
    minimum: int
    extent: int


@dataclass(frozen=True, kw_only=True)
class SearchedOperand:
    """An input, or a Func without hardware of its own, that the term reads.

    ``varies`` are the loops on which the element that is read depends; ``fastest`` those that the
    last subscript depends on, along which elements may be adjacent in memory.
    """

    name: str
    type: Type
    varies: frozenset[str]
    fastest: frozenset[str]
    indices: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class Contraction:
    """``name[outputs] += term`` over ``outputs`` and ``reductions``, each outermost first."""

    name: str
    type: Type
    outputs: tuple[SearchedLoop, ...]
    reductions: tuple[SearchedLoop, ...]
    operands: tuple[SearchedOperand, ...]
    term: Expr
    definition: str
    """All definitions as text, which tells two contractions apart."""
    stored: tuple[str | None, ...]
    """The loop that each subscript of the result is, outermost in memory first."""

    @property
    def extents(self) -> dict[str, int]:
        return {loop.name: loop.extent for loop in (*self.outputs, *self.reductions)}

    @property
    def steps(self) -> int:
        """Evaluations of the term."""
        return prod(self.extents.values())


def contraction_of(func: ScheduledFunc, constants: Mapping[str, int]) -> Contraction:
    """The contraction that a Func defines; ``UserError`` if it does not define one."""
    if not isinstance(func, ScheduledFunc):
        raise _refused("a search needs a Func", "a Func with a sum", repr(func), user_location())
    for needed in needed_funcs([func]):
        if needed.plan:
            first = needed.plan[0]
            raise _refused(
                f"{needed.name} has directives already",
                "a definition without directives: a search writes them",
                first.text,
                first.location,
                "t2s.cycles counts the cycles of a design with directives",
            )
    program = freeze(func, constants)
    function = program.function(func.name)
    if len(function.updates) != 1 or program.systems:
        raise _refused(
            f"{func.name} is not a sum over a box",
            f"one update, {func.name}[...] += term, over an RDom",
            f"{len(function.updates)} updates" + (", a recurrence" if program.systems else ""),
            func.location,
        )
    (update,) = function.updates
    computed = [other.name for other in program.functions if other.updates]
    if computed != [func.name]:
        raise _refused(
            f"{func.name} needs other Funcs with hardware of their own",
            "one Func with an update; the Funcs that it reads without any",
            ", ".join(computed),
            func.location,
            "search each of them alone",
        )
    term = _term(update)
    loops = [
        _loop(func, dimension.name, dimension.interval.constant, update)
        for dimension in update.domain
    ]
    operands = dict.fromkeys(reads(term))
    names = [read.source for read in operands]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise _refused(
            f"{func.name} reads {twice} in two places",
            "each input read once in the update",
            f"{names.count(twice)} reads of {twice}",
            update.location,
            f"read one of them through a Func, such as {twice}_2[i, k] = {twice}[i, k]",
        )
    pure = {d.name for d in update.domain if not d.reduction}
    return Contraction(
        name=func.name,
        type=function.type,
        outputs=tuple(loop for loop in loops if loop.name in pure),
        reductions=tuple(loop for loop in loops if loop.name not in pure),
        operands=tuple(map(_operand, operands)),
        term=term,
        definition=_text(program),
        stored=tuple(index.name if isinstance(index, Index) else None for index in update.target),
    )


def _text(program: TemporalProgram) -> str:
    """The definitions, domains and types of a program, without the places they were written."""
    lines = [f"{array.name}: {array.type}{list(array.shape)}" for array in program.inputs]
    lines += [f"{scalar.name}: {scalar.type}" for scalar in program.parameters]
    for function in program.functions:
        for written in function.definitions:
            domain = ", ".join(
                f"{d.name} from {show(d.minimum)} over {show(d.extent)}" for d in written.domain
            )
            target = ", ".join(map(show, written.target))
            value = show(written.value)
            lines.append(f"{function.name}[{target}] = {value} as {function.type} for {domain}")
    return "\n".join(lines)


def _term(update: Definition) -> Expr:
    """What the update adds; one that adds nothing to the element that it updates is refused."""
    match update.value:
        case Apply(operator=Op.ADD, operands=(Read(source=source, indices=indices), term)):
            own = source == update.function and indices == update.target
            if own and all(read.source != source for read in reads(term)) and update.reductions:
                return term
    raise _refused(
        f"{update.function} is not a sum over a box",
        f"an update {update.function}[...] += term over an RDom",
        "an update of another form",
        update.location,
        "design those by hand; t2s.cycles counts the cycles of each design",
    )


def _loop(
    func: ScheduledFunc, name: str, constant: tuple[int, int] | None, update: Definition
) -> SearchedLoop:
    if constant is None:
        raise _refused(
            f"the loop {name} of {func.name} has bounds that depend on other loops",
            "constant bounds for each loop of a searched Func",
            f"{name} with other loops in its bounds",
            update.location,
        )
    return SearchedLoop(name=name, minimum=constant[0], extent=constant[1])


def _operand(read: Read) -> SearchedOperand:
    return SearchedOperand(
        name=read.source,
        type=read.type,
        varies=frozenset().union(*map(index_names, read.indices)),
        fastest=index_names(read.indices[-1]),
        indices=read.indices,
    )


def _refused(
    problem: str,
    expected: str,
    given: str,
    location: SourceLocation | None,
    hint: str | None = None,
) -> UserError:
    return UserError(problem, location=location, expected=expected, given=given, hint=hint)
