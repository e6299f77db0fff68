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
    directive, *others = schedule.vectors
    if others:
        raise UnsupportedError(
            f"{directive.variable} and {others[0].variable} are both computed in vectors",
            location=others[0].location,
            expected="one variable, that of the innermost loop",
            hint=f"parallelize({others[0].variable!r}, {others[0].lanes}) makes copies of blocks",
        )
    if directive.variable not in variables:
        raise UserError(
            f"vectorize names {directive.variable}, which is not a loop",
            location=directive.location,
            expected=f"one of {', '.join(variables)}",
        )
    return SplitVariable(
        variable=directive.variable,
        outer=names.fresh(f"{directive.variable}_vector"),
        inner=names.fresh(f"{directive.variable}_lane"),
        factor=directive.lanes,
        location=directive.location,
    )


def with_vector_loops(schedule: Schedule, split: SplitVariable) -> Schedule:
    """The directives for the variable that is computed in vectors at the loop over its vectors."""

    def renamed(directive: LoopDirective) -> LoopDirective:
        match directive:
            case OrderLoops(variables=variables):
                names = [split.outer if name == split.variable else name for name in variables]
                return replace(directive, variables=(*names, split.inner))
            case (
                Locate(variable=name)
                | ScanLevels(variable=name)
                | Parallelize(variable=name)
                | Skip(variable=name)
            ):
                return (
                    replace(directive, variable=split.outer)
                    if name == split.variable
                    else directive
                )
            case FuseVariables(outer=outer, inner=inner):
                outer = split.outer if outer == split.variable else outer
                inner = split.outer if inner == split.variable else inner
                return replace(directive, outer=outer, inner=inner)
        return directive

    return replace(
        schedule, directives=tuple(renamed(directive) for directive in schedule.directives)
    )


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
    lanes = {directive.variable: directive.lanes for directive in dealt}
    skipped = {
        directive.variable for directive in schedule.directives if isinstance(directive, Skip)
    }

    def rule(term: object) -> Forall | None:
        if not isinstance(term, Forall):
            return None
        names = {
            access.tensor
            for access in reads_of(term)
            for locate in wanted
            if locate.variable == term.variable
            and term.variable in access.variables
            and locate.tensor in (access.tensor, sources.get(access.tensor))
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
        for fusion in schedule.fused:
            inner = loop.body
            if isinstance(inner, Forall) and _is_nest_of(fusion, loop):
                return replace(loop, body=_in_turns(inner, fusion, schedule, lanes))
        return loop

    marked: Statement = rewrite(stage, rule)
    return marked


def _in_turns(
    inner: Forall, fusion: FuseVariables, schedule: Schedule, lanes: Mapping[str, int]
) -> Forall:
    """The inner one of two fused loops, with the lanes that get its entries, one by one or more."""
    runs = {split.variable: split for split in schedule.runs}
    if fusion.fused not in runs:
        return replace(inner, fused=fusion.fused, lanes=lanes.get(fusion.fused, 1))
    split = runs[fusion.fused]
    return replace(inner, fused=fusion.fused, lanes=lanes[split.outer], run=split.factor)


def _is_nest_of(fusion: FuseVariables, loop: Forall) -> bool:
    inner = loop.body
    return (
        loop.variable == fusion.outer
        and isinstance(inner, Forall)
        and inner.variable == fusion.inner
    )


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
    loops = [*variables, *(runs.get(fusion.fused, fusion.fused) for fusion in schedule.fused)]
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
                raise _no_loop("skip", directive, variables)
            case FuseVariables():
                _check_fuse(directive, schedule, variables)
            case Transpose(tensors=names):
                _check_tensors(directive, names, tensors)


def _check_runs(schedule: Schedule, variables: Sequence[str]) -> None:
    """Check that parts of a fused loop are dealt to lanes."""
    dealt = {
        directive.variable
        for directive in schedule.directives
        if isinstance(directive, Parallelize)
    }
    names = {*variables, *(fusion.fused for fusion in schedule.fused)}
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


def _check_tensors(transpose: Transpose, names: Sequence[str], tensors: Sequence[str]) -> None:
    for name in names:
        if name not in tensors:
            raise UserError(
                f"there is no tensor {name} to transpose",
                location=transpose.location,
                expected=f"one of {', '.join(tensors)}",
            )


def _no_loop(verb: str, directive: Parallelize | Skip, loops: Sequence[str]) -> UserError:
    return UserError(
        f"{verb} names {directive.variable}, which is not a loop",
        location=directive.location,
        expected=f"one of {', '.join(loops)}",
    )


def _check_not_a_part(directive: Parallelize, schedule: Schedule) -> None:
    for fused in schedule.fused:
        if directive.variable in (fused.outer, fused.inner):
            raise UserError(
                f"the loop over {directive.variable} is a part of {fused.fused}",
                location=directive.location,
                expected="a loop that is not fused",
                notes=[(fused.location, f"{fused.outer} and {fused.inner} are fused here")],
                hint=f"parallelize({fused.fused!r}, {directive.lanes}) deals the entries of both"
                " loops",
            )


def _check_fuse(fusion: FuseVariables, schedule: Schedule, variables: Sequence[str]) -> None:
    for name in (fusion.outer, fusion.inner):
        others = [other for other in schedule.fused if other is not fusion]
        if any(name in (other.outer, other.inner, other.fused) for other in others):
            raise UnsupportedError(
                f"{name} is fused twice",
                location=fusion.location,
                expected="two loops that are not parts of a fused one",
            )
        if name not in variables:
            raise UserError(
                f"fuse names {name}, which is not a loop",
                location=fusion.location,
                expected=f"one of {', '.join(variables)}",
            )
    if fusion.fused in variables or fusion.outer == fusion.inner:
        raise UserError(
            f"fusing {fusion.outer} and {fusion.inner} needs two loops and a new name",
            location=fusion.location,
            given=f"fuse({fusion.outer}, {fusion.inner}, {fusion.fused})",
        )


def check_fused(schedule: Schedule, stages: Sequence[Statement]) -> None:
    """Raise ``UserError`` unless fused loops are directly nested."""
    for fusion in schedule.fused:
        for stage in stages:
            _check_nested(fusion, stage)


def _check_nested(fusion: FuseVariables, stage: Statement) -> None:
    loops = [term for term in walk(stage) if isinstance(term, Forall)]
    nested = [loop for loop in loops if _is_nest_of(fusion, loop)]
    names = {loop.variable for loop in loops}
    inner = [loop for loop in loops if loop.variable == fusion.inner]
    if not {fusion.outer, fusion.inner} <= names:
        return
    if len(nested) < len(inner):
        raise UserError(
            f"the loop over {fusion.inner} is not right inside of the one over {fusion.outer}",
            location=fusion.location,
            expected=f"a nest in which nothing is between {fusion.outer} and {fusion.inner}",
            given=f"loops {', '.join(loop.variable for loop in loops)}"
            " (and what is computed between them)",
            hint="reorder() puts them next to each other; a sum that is one of several terms is"
            " computed between the loops around it, and precompute() takes it out",
        )


def _check_scan(
    scan: ScanLevels, schedule: Schedule, read: Sequence[Access], splits: Sequence[SplitLoop]
) -> None:
    if scan.tensor:
        _check_level(scan, "scan", read, splits)
    for other in schedule.directives:
        same = isinstance(other, Locate) and scan.variable == other.variable
        if isinstance(other, Locate) and same and scan.tensor == other.tensor:
            raise UserError(
                f"the level of {scan.tensor} at {scan.variable} is located into and scanned",
                location=scan.location,
                expected="one of the two",
                notes=[(other.location, "it is located into here")],
            )


def _check_level(
    directive: Locate | ScanLevels, verb: str, read: Sequence[Access], splits: Sequence[SplitLoop]
) -> None:
    reads = [access for access in read if access.tensor == directive.tensor]
    names = [v for access in reads for v in split_names(access.variables, splits)]
    if directive.variable not in names and (directive.variable or not reads):
        at = f" at {directive.variable}" if directive.variable else ""
        raise UserError(
            f"there is no level of {directive.tensor}{at} to {verb}",
            location=directive.location,
            expected=f"a variable of {directive.tensor}: {', '.join(names)}"
            if reads
            else f"one of {', '.join(dict.fromkeys(access.tensor for access in read))}",
        )
