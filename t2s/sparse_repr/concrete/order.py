"""The order of the loops, from the user or from the storage; the parts of splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from t2s.core.errors import InternalError, UserError
from t2s.core.location import SourceLocation
from t2s.core.walk import walk
from t2s.sparse_repr.concrete.ir import (
    Assign,
    ConcreteProgram,
    Forall,
    SplitLoop,
    Statement,
    Where,
    reads_of,
    result_of,
)
from t2s.sparse_repr.concrete.schedule import OrderLoops, SplitVariable
from t2s.sparse_repr.notation.ir import Access, Sum, accesses


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelPath:
    """The variables of a tensor in the order of its levels.

    ``free``: the order of its levels may be changed silently (dense tensors).
    """

    tensor: str
    variables: tuple[str, ...]
    free: bool
    text: str
    location: SourceLocation | None = None

    def fits(self, order: Sequence[str]) -> bool:
        """Whether loops in this order walk the tensor level by level."""
        places = [order.index(name) for name in self.variables]
        return places == sorted(places)


def choose_order(variables: Sequence[str], paths: Sequence[LevelPath]) -> tuple[str, ...]:
    """An order that fits as many paths as possible, giving priority to those that are not free.

    Ties are broken by the order of ``variables``.
    """
    after: dict[str, set[str]] = {name: set() for name in variables}
    for path in sorted(paths, key=lambda path: path.free):
        edges = list(zip(path.variables, path.variables[1:], strict=False))
        if not any(_reaches(after, b, a) for a, b in combinations(path.variables, 2)):
            for earlier, later in edges:
                after[earlier].add(later)
    order: list[str] = []
    while len(order) < len(variables):
        left = [name for name in variables if name not in order]
        order.append(next(n for n in left if not any(n in after[other] for other in left)))
    return tuple(order)


def _reaches(after: dict[str, set[str]], start: str, goal: str) -> bool:
    if start == goal:
        return True
    return any(_reaches(after, name, goal) for name in after[start])


def check_order(
    given: OrderLoops, variables: Sequence[str], stage: Sequence[str]
) -> tuple[str, ...]:
    """The user's order, restricted to the variables of a stage.

    Raises ``UserError`` if it is not an order of all variables.
    """
    if sorted(given.variables) != sorted(variables):
        raise UserError(
            "reorder does not name every loop once",
            location=given.location,
            expected=f"an order of {', '.join(variables)}",
            given=", ".join(given.variables),
        )
    return tuple(name for name in given.variables if name in stage)


class DiscordantLoops(Exception):
    """Loops discordant with a tensor's order of levels, among the ``loops`` of all stages."""

    def __init__(
        self,
        path: LevelPath,
        order: Sequence[str],
        paths: Sequence[LevelPath],
        loops: Sequence[str],
        given: OrderLoops | None,
    ) -> None:
        super().__init__(path.text)
        self.path, self.order, self.paths = path, tuple(order), tuple(paths)
        self.loops, self.given = tuple(loops), given


def candidate_orders(error: DiscordantLoops) -> list[tuple[str, ...]]:
    """Orders of all loops in which those of this stage may walk all tensors."""
    paths = [error.path, *(path for path in error.paths if path != error.path)]
    first = [*error.order, *(name for name in error.loops if name not in error.order)]
    return [
        choose_order(variables, paths)
        for variables in (first, first[::-1], error.loops, error.loops[::-1])
    ]


def discordant(error: DiscordantLoops, orders: Sequence[str], *, transposes: bool) -> UserError:
    """The error; ``orders`` of all loops, and possibly a conversion, would resolve it."""
    path, given = error.path, error.given
    fits = any(_all_fit(order, error.paths) for order in candidate_orders(error))
    stored = ", ".join(path.variables)
    hints = [f"reorder({text!r})" for text in orders]
    if transposes:
        hints.append(f"transpose({path.tensor!r}) converts {path.tensor} before it is used")
    return UserError(
        f"the loops {', '.join(error.order)} do not walk {path.text} as it is stored",
        location=path.location if given is None else given.location,
        expected=f"loops in which {stored} come in this order"
        + ("" if fits else "; no order fits all tensors"),
        given=", ".join(error.order),
        hint=", or ".join(hints) or None,
        notes=[] if given is None else [(path.location, f"{path.text} is stored by {stored}")],
    )


def _all_fit(order: Sequence[str], paths: Sequence[LevelPath]) -> bool:
    return all(path.free or path.fits(order) for path in paths)


def apply_splits(
    directives: Sequence[SplitVariable],
    variables: tuple[str, ...],
    exact: set[str],
    before: Sequence[SplitLoop] = (),
) -> tuple[tuple[SplitLoop, ...], tuple[str, ...]]:
    """The splits of directives, and all loops after them.

    ``before`` are earlier splits; ``exact`` has the variables whose splits must divide their
    extents, to which their parts are added.
    """
    after = list(variables)
    splits: list[SplitLoop] = []
    for directive in directives:
        if directive.variable not in after:
            raise UserError(
                f"split names {directive.variable}, which is not a variable",
                location=directive.location,
                expected=f"one of {', '.join(after)}",
            )
        _check_factor(directive, (*before, *splits))
        at = after.index(directive.variable)
        for name in (directive.outer, directive.inner):
            if name in after[:at] + after[at + 1 :] or directive.outer == directive.inner:
                raise UserError(
                    f"the parts of {directive.variable} need names of their own",
                    location=directive.location,
                    given=f"{directive.outer} and {directive.inner}",
                )
        after[at : at + 1] = [directive.outer, directive.inner]
        splits.append(
            SplitLoop(
                variable=directive.variable,
                outer=directive.outer,
                inner=directive.inner,
                factor=directive.factor,
                exact=directive.variable in exact,
                location=directive.location,
            )
        )
        if directive.variable in exact:
            exact |= {directive.outer, directive.inner}
    return tuple(splits), tuple(after)


def _check_factor(directive: SplitVariable, before: Sequence[SplitLoop]) -> None:
    """A part with an end of its own is split into whole parts."""
    extents: dict[str, int] = {}
    for split in before:
        extents[split.inner] = split.factor
        if split.variable in extents:
            extents[split.outer] = extents[split.variable] // split.factor
    extent = extents.get(directive.variable)
    if extent is not None and extent % directive.factor:
        raise UserError(
            f"the split of {directive.variable} goes beyond its end",
            location=directive.location,
            expected=f"a factor that divides {extent}, the extent of {directive.variable}",
            given=f"factor {directive.factor}",
        )


# Invariants of concrete index notation.


def verify_program(program: ConcreteProgram) -> None:
    """Raise ``InternalError`` unless the program is well formed.

    Every variable of an access is bound by a loop around it, and no loop is repeated inside of
    itself; a temporary is made by a producer around its reader; every level of a tensor that is
    read comes in the order of the loops; every tensor has a storage; sums are loops, and what they
    add up accumulates.  Notes of loops and views and splits are about what is there.
    """
    known = {tensor.name for tensor in program.tensors}
    _require(len(known) == len(program.tensors), "a tensor has two storages")
    _require(bool(program.stages), "there are no stages")
    for stage in program.stages:
        _require(
            not any(isinstance(term, Sum) for term in walk(stage)),
            "a sum is left in concrete index notation",
        )
        _verify(program, stage, (), frozenset(known))
        _verify_sums(stage, ())
    last = result_of(program.stages[-1]).tensor
    _require(last == program.written, f"the last stage does not write {program.written}")
    sources = {view.name: view.source for view in program.views}
    result = sources.get(program.written, program.written)
    _require(result == program.result, f"{program.written} is not stored for {program.result}")
    for view in program.views:
        fits = view.name in known and program.format_of(view.name) == view.format
        fits = fits and len(view.parts) == view.format.order
        _require(fits, f"the view {view.name} is not stored as it says")
    for split in program.splits:
        fits = split.factor > 0 and len({split.variable, split.outer, split.inner}) == 3
        _require(fits, f"the split of {split.variable} has no parts")


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise InternalError(otherwise)


def _verify_sums(statement: Statement, summed: tuple[str, ...]) -> None:
    """``summed`` are the loops since the result of the statement came into being."""
    match statement:
        case Forall(variable=variable, body=body):
            _verify_sums(body, (*summed, variable))
        case Where(consumer=consumer, producer=producer):
            _verify_sums(producer, ())
            _verify_sums(consumer, summed)
        case Assign(result=result, accumulate=accumulate):
            adds_up = not set(summed) <= set(result.variables)
            _require(accumulate or not adds_up, f"{result.tensor} is overwritten in a loop")


def _verify_notes(loop: Forall) -> None:
    """Check the annotations of a loop."""
    name = loop.variable
    fits = loop.lanes > 0 and loop.run > 0 and loop.vector >= 0
    _require(fits, f"the loop over {name} has no lanes")
    inside = any(isinstance(term, Forall) for term in walk(loop.body))
    _require(not (loop.vector and inside), f"vectors of {name} are not innermost")
    at = {access.tensor for access in reads_of(loop) if name in access.variables}
    _require(set(loop.located) <= at, f"nothing locates into a level at {name}")
    _require(set(loop.by_default) <= set(loop.located), f"what is located at {name} is not noted")


def _verify(
    program: ConcreteProgram, statement: Statement, loops: tuple[str, ...], known: frozenset[str]
) -> None:
    match statement:
        case Forall(variable=variable, body=body):
            _require(variable not in loops, f"a loop over {variable} is inside of one")
            _verify_notes(statement)
            _verify(program, body, (*loops, variable), known)
        case Where(consumer=consumer, producer=producer):
            temporary = result_of(producer).tensor
            if temporary in known:
                raise InternalError(f"the temporary {temporary} is made twice")
            _verify(program, producer, loops, known | {temporary})
            _verify(program, consumer, loops, known | {temporary})
        case Assign(result=result, value=value):
            for access in (result, *accesses(value)):
                _verify_access(program, access, loops, known, read=access is not result)


def _verify_access(
    program: ConcreteProgram,
    access: Access,
    loops: tuple[str, ...],
    known: frozenset[str],
    *,
    read: bool,
) -> None:
    if access.tensor not in known:
        raise InternalError(f"nothing stores {access.tensor}")
    free = [name for name in access.variables if name not in loops]
    if free:
        raise InternalError(f"no loop binds {', '.join(free)} of {access.tensor}")
    if access.tensor not in {tensor.name for tensor in program.tensors}:
        return
    format = program.format_of(access.tensor)
    fits = len(access.variables) == format.order
    _require(fits, f"{access.tensor} is not of order {len(access.variables)}")
    if not read:
        return
    if program.environment and all(level.full for level in format.levels):
        return  # dense tensors have addresses, in whatever order they are read
    places = [loops.index(access.variables[mode]) for mode in format.modes]
    if places != sorted(places) or len(set(places)) < len(places):
        raise InternalError(f"the loops do not walk the levels of {access.tensor} in order")
