"""Annotations of single loops from directives: located tensors, lanes, fused loops, skipping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.names import NameSupply
from t2s.core.walk import rewrite, walk
from t2s.sparse_repr.concrete.access import located_by_default
from t2s.sparse_repr.concrete.ir import Forall, SplitLoop, Statement, reads_of, split_names
from t2s.sparse_repr.concrete.pattern_directives import LoopDirective
from t2s.sparse_repr.concrete.schedule import (
    FuseVariables,
    Locate,
    OrderLoops,
    Parallelize,
    ScanLevels,
    Schedule,
    Skip,
    SplitVariable,
    Transpose,
)
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import Access
from t2s.sparse_repr.semiring import Semiring


def vector_split(
    schedule: Schedule, variables: Sequence[str], names: NameSupply
) -> SplitVariable | None:
    """The split of the variable that is computed in vectors, into loops with new names."""
    if not schedule.vectors:
        return None
    one, *others = schedule.vectors
    if others:
        raise UnsupportedError(
            f"{one.variable} and {others[0].variable} are both computed in vectors",
            location=others[0].location,
            expected="one variable, that of the innermost loop",
            hint=f"parallelize({others[0].variable!r}, {others[0].lanes}) makes copies of blocks",
        )
    if one.variable not in variables:
        raise UserError(
            f"there is no loop over {one.variable} to vectorize",
            location=one.location,
            expected=f"one of {', '.join(variables)}",
        )
    return SplitVariable(
        variable=one.variable,
        outer=names.fresh(f"{one.variable}_vector"),
        inner=names.fresh(f"{one.variable}_lane"),
        factor=one.lanes,
        location=one.location,
    )


def with_vector_loops(schedule: Schedule, split: SplitVariable) -> Schedule:
    """The directives for the variable that is computed in vectors at the loop over its vectors."""

    def renamed(one: LoopDirective) -> LoopDirective:
        match one:
            case OrderLoops(variables=variables):
                names = [split.outer if name == split.variable else name for name in variables]
                return replace(one, variables=(*names, split.inner))
            case (
                Locate(variable=name)
                | ScanLevels(variable=name)
                | Parallelize(variable=name)
                | Skip(variable=name)
            ):
                return replace(one, variable=split.outer) if name == split.variable else one
            case FuseVariables(outer=outer, inner=inner):
                outer = split.outer if outer == split.variable else outer
                inner = split.outer if inner == split.variable else inner
                return replace(one, outer=outer, inner=inner)
        return one

    return replace(schedule, directives=tuple(renamed(one) for one in schedule.directives))


def with_notes(
    stage: Statement,
    schedule: Schedule,
    sources: Mapping[str, str],
    vectors: Mapping[str, int],
    formats: Mapping[str, Format],
    semiring: Semiring,
) -> Statement:
    """The stage with the directives for single loops at these loops.

    ``sources`` are the tensors that views show, by the name of the view; ``vectors`` the lanes by
    the name of the loop over them; ``formats`` those of all tensors.
    """
    wanted = [directive for directive in schedule.directives if isinstance(directive, Locate)]
    dealt = [directive for directive in schedule.directives if isinstance(directive, Parallelize)]
    lanes = {one.variable: one.lanes for one in dealt}
    skipped = {one.variable for one in schedule.directives if isinstance(one, Skip)}

    def rule(term: object) -> Forall | None:
        if not isinstance(term, Forall):
            return None
        names = {
            access.tensor
            for access in reads_of(term)
            for one in wanted
            if one.variable == term.variable
            and term.variable in access.variables
            and one.tensor in (access.tensor, sources.get(access.tensor))
        }
        vector = vectors.get(term.variable, 0)
        chosen = () if vector else located_by_default(term, schedule, sources, formats, semiring)
        chosen = tuple(name for name in chosen if name not in names)
        loop = replace(
            term,
            located=tuple(sorted({*names, *chosen})),
            by_default=chosen,
            lanes=lanes.get(term.variable, 1),
            skip=term.variable in skipped,
            vector=vector,
        )
        for one in schedule.fused:
            inner = loop.body
            if isinstance(inner, Forall) and _is_nest_of(one, loop):
                return replace(loop, body=_in_turns(inner, one, schedule, lanes))
        return loop

    marked: Statement = rewrite(stage, rule)
    return marked


def _in_turns(
    inner: Forall, one: FuseVariables, schedule: Schedule, lanes: Mapping[str, int]
) -> Forall:
    """The inner one of two fused loops, with the lanes that get its entries, one by one or more."""
    runs = {split.variable: split for split in schedule.runs}
    if one.fused not in runs:
        return replace(inner, fused=one.fused, lanes=lanes.get(one.fused, 1))
    split = runs[one.fused]
    return replace(inner, fused=one.fused, lanes=lanes[split.outer], run=split.factor)


def _is_nest_of(one: FuseVariables, loop: Forall) -> bool:
    inner = loop.body
    return loop.variable == one.outer and isinstance(inner, Forall) and inner.variable == one.inner


def with_parts(given: OrderLoops, schedule: Schedule) -> OrderLoops:
    """The order with the two loops in place of one that they were fused into."""
    names: list[str] = []
    for name in given.variables:
        parts = next(([f.outer, f.inner] for f in schedule.fused if f.fused == name), [name])
        names += parts
    return replace(given, variables=tuple(names))


def check_directives(
    schedule: Schedule,
    read: Sequence[Access],
    splits: Sequence[SplitLoop],
    variables: Sequence[str],
    tensors: Sequence[str],
) -> None:
    """Raise ``UserError`` for directives that name unknown variables or tensors.

    ``read`` are the accesses of the expression, ``variables`` all loops after the splits,
    ``tensors`` those that may be converted.
    """
    runs = {run.variable: run.outer for run in schedule.runs}
    loops = [*variables, *(runs.get(one.fused, one.fused) for one in schedule.fused)]
    _check_runs(schedule, variables)
    for directive in schedule.directives:
        match directive:
            case Locate():
                _check_level(directive, "locate into", read, splits)
            case ScanLevels():
                _check_scan(directive, schedule, read, splits)
            case Parallelize(variable=variable) if variable not in loops:
                raise _no_loop("parallelize", directive, loops)
            case Parallelize(variable=variable):
                _check_not_a_part(directive, schedule)
            case Skip(variable=variable) if variable not in variables:
                raise _no_loop("skip in", directive, variables)
            case FuseVariables():
                _check_fuse(directive, schedule, variables)
            case Transpose(tensors=names):
                _check_tensors(directive, names, tensors)


def _check_runs(schedule: Schedule, variables: Sequence[str]) -> None:
    """Check that parts of a fused loop are dealt to lanes."""
    dealt = {one.variable for one in schedule.directives if isinstance(one, Parallelize)}
    names = {*variables, *(one.fused for one in schedule.fused)}
    split: set[str] = set()
    for run in schedule.runs:
        if run.variable in split or {run.outer, run.inner} & names or run.outer == run.inner:
            raise UserError(
                f"{run.variable} is split once, into parts with names of their own",
                location=run.location,
                given=f"{run.outer} and {run.inner}",
            )
        if run.outer not in dealt:
            raise UnsupportedError(
                f"{run.variable} is fused and split, and its parts are not dealt to lanes",
                location=run.location,
                expected=f"parallelize({run.outer!r}, ...), which deals {run.factor} entries in"
                " turn",
            )
        split.add(run.variable)
        names |= {run.outer, run.inner}


def _check_tensors(one: Transpose, names: Sequence[str], tensors: Sequence[str]) -> None:
    for name in names:
        if name not in tensors:
            raise UserError(
                f"there is no tensor {name} to transpose",
                location=one.location,
                expected=f"one of {', '.join(tensors)}",
            )


def _no_loop(verb: str, one: Parallelize | Skip, loops: Sequence[str]) -> UserError:
    return UserError(
        f"there is no loop over {one.variable} to {verb}",
        location=one.location,
        expected=f"one of {', '.join(loops)}",
    )


def _check_not_a_part(one: Parallelize, schedule: Schedule) -> None:
    for fused in schedule.fused:
        if one.variable in (fused.outer, fused.inner):
            raise UserError(
                f"the loop over {one.variable} is a part of {fused.fused}",
                location=one.location,
                expected="a loop that is not fused",
                notes=[(fused.location, f"{fused.outer} and {fused.inner} are fused here")],
                hint=f"parallelize({fused.fused!r}, {one.lanes}) deals the entries of both loops",
            )


def _check_fuse(one: FuseVariables, schedule: Schedule, variables: Sequence[str]) -> None:
    for name in (one.outer, one.inner):
        others = [other for other in schedule.fused if other is not one]
        if any(name in (other.outer, other.inner, other.fused) for other in others):
            raise UnsupportedError(
                f"{name} is fused twice",
                location=one.location,
                expected="two loops that are not parts of a fused one",
            )
        if name not in variables:
            raise UserError(
                f"there is no loop over {name} to fuse",
                location=one.location,
                expected=f"one of {', '.join(variables)}",
            )
    if one.fused in variables or one.outer == one.inner:
        raise UserError(
            f"fusing {one.outer} and {one.inner} needs two loops and a new name",
            location=one.location,
            given=f"fuse({one.outer}, {one.inner}, {one.fused})",
        )


def check_fused(schedule: Schedule, stages: Sequence[Statement]) -> None:
    """Raise ``UserError`` unless fused loops are directly nested."""
    for one in schedule.fused:
        for stage in stages:
            _check_nested(one, stage)


def _check_nested(one: FuseVariables, stage: Statement) -> None:
    loops = [term for term in walk(stage) if isinstance(term, Forall)]
    nested = [loop for loop in loops if _is_nest_of(one, loop)]
    names = {loop.variable for loop in loops}
    inner = [loop for loop in loops if loop.variable == one.inner]
    if not {one.outer, one.inner} <= names:
        return
    if len(nested) < len(inner):
        raise UserError(
            f"the loop over {one.inner} is not right inside of the one over {one.outer}",
            location=one.location,
            expected=f"a nest in which nothing is between {one.outer} and {one.inner}",
            given=f"loops {', '.join(loop.variable for loop in loops)}"
            " (and what is computed between them)",
            hint="reorder() puts them next to each other; a sum that is one of several terms is"
            " computed between the loops around it, and precompute() takes it out",
        )


def _check_scan(
    one: ScanLevels, schedule: Schedule, read: Sequence[Access], splits: Sequence[SplitLoop]
) -> None:
    if one.tensor:
        _check_level(one, "scan", read, splits)
    for other in schedule.directives:
        same = isinstance(other, Locate) and one.variable == other.variable
        if isinstance(other, Locate) and same and one.tensor == other.tensor:
            raise UserError(
                f"the level of {one.tensor} at {one.variable} is located into and scanned",
                location=one.location,
                expected="one of the two",
                notes=[(other.location, "it is located into here")],
            )


def _check_level(
    one: Locate | ScanLevels, verb: str, read: Sequence[Access], splits: Sequence[SplitLoop]
) -> None:
    found = [access for access in read if access.tensor == one.tensor]
    names = [v for access in found for v in split_names(access.variables, splits)]
    if one.variable not in names and (one.variable or not found):
        at = f" at {one.variable}" if one.variable else ""
        raise UserError(
            f"there is no level of {one.tensor}{at} to {verb}",
            location=one.location,
            expected=f"a variable of {one.tensor}: {', '.join(names)}"
            if found
            else f"one of {', '.join(dict.fromkeys(access.tensor for access in read))}",
        )
