"""The statements of one graph as one loop nest.

Each statement is a nest of its own.  A result that is passed on becomes a producer in the nest of
its reader: it shares the loops that both have outside, in the same order, and what it makes inside
of them arrives as a fiber (or a scalar, where they share all of its variables).  A result that is
recomputed is a producer inside of the reader's loops over its rows, which bound its own.

So loops over X in ``T(i,j) = A(i,k)*X(k,j)`` and ``L(i,h) = T(i,j)*W(j,h)`` become ::

    for i:
      with T(j):
        for k:
          for j:
            T(j) += A(i,k)*X(k,j)
      for j:
        for h:
          L(i,h) += T(j)*W(j,h)
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace

from t2s.core.errors import UserError
from t2s.core.names import NameSupply
from t2s.core.walk import rewrite
from t2s.sparse_repr.concrete.access import Stored, bounded_leaves
from t2s.sparse_repr.concrete.blocks import (
    check_directives_of_blocks,
    formats_in_blocks,
    over_grids,
    with_blocks,
)
from t2s.sparse_repr.concrete.build import (
    Builder,
    counts_padding,
    without_zeros_of,
)
from t2s.sparse_repr.concrete.fusion import StatementGroup, Way
from t2s.sparse_repr.concrete.ir import (
    ConcreteProgram,
    Forall,
    RowScan,
    Statement,
    StoredTensor,
    Where,
    loops_of,
)
from t2s.sparse_repr.concrete.materialize import written_result
from t2s.sparse_repr.concrete.merge import covered_by, leaves_of, merge_at
from t2s.sparse_repr.concrete.notes import with_notes
from t2s.sparse_repr.concrete.order import verify_program
from t2s.sparse_repr.concrete.producers import ProducerTree, same_extents
from t2s.sparse_repr.concrete.schedule import (
    Parallelize,
    Schedule,
)
from t2s.sparse_repr.concrete.walked_statements import walk_statement
from t2s.sparse_repr.formats import Part
from t2s.sparse_repr.levels import Dense
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Expression,
    accesses,
    all_variables,
)
from t2s.sparse_repr.semiring import Semiring


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedProgram:
    """The loops of a group, and what they compute as one assignment of its inputs."""

    assignment: Assignment
    program: ConcreteProgram


def fuse(group: StatementGroup, looked_up: Set[str] = frozenset()) -> FusedProgram:
    """One nest for all statements of a group.

    The rows of what is ``looked_up`` are not scanned again and again; see ``RowScan``.
    Raises ``UserError`` where the loops of a reader do not fit those of what is passed on to it.
    """
    assignments = [statement.assignment for statement in group.statements]
    in_blocks = formats_in_blocks(assignments)
    if not in_blocks:
        return _fused(group, looked_up)
    for statement in group.statements:
        check_directives_of_blocks(statement.schedule, in_blocks)
    statements = tuple(
        replace(statement, assignment=over_grids(statement.assignment))
        for statement in group.statements
    )
    fused = _fused(replace(group, statements=statements), looked_up)
    # what is passed on has what was computed beyond the end, which its readers may count
    exact = None if any(map(counts_padding, assignments)) else ()
    tensors = tuple(
        replace(tensor, format=in_blocks.get(tensor.name, tensor.format))
        for tensor in fused.assignment.tensors
    )
    return FusedProgram(
        assignment=replace(fused.assignment, tensors=tensors),
        program=with_blocks(fused.program, in_blocks, exact),
    )


def _fused(group: StatementGroup, looked_up: Set[str]) -> FusedProgram:
    """The nest of a group of tensors of scalars."""
    statements, last = group.statements, group.last.assignment
    semiring = last.semiring
    names = NameSupply(
        name
        for statement in statements
        for name in (
            *(tensor.name for tensor in statement.assignment.tensors),
            *all_variables(statement.assignment),
        )
    )
    builder = Builder(
        schedule=group.last.schedule,
        splits=(),
        names=names,
        formats={
            tensor.name: tensor.format
            for statement in statements
            for tensor in statement.assignment.tensors
        },
        views=[],
        stages=[],
        written=set(),
        order_names=(),
        lane="",
        zero=semiring.zero,
        produced=frozenset(passing.tensor for passing in group.passed),
    )
    walked = [walk_statement(builder, group, statement) for statement in statements]
    for name in builder.produced:
        del builder.formats[name]
    tree = ProducerTree(names, same_extents(statements), walked[-1])
    for made in reversed(walked[:-1]):
        passing = group.way_of(made.name)
        assert passing is not None
        if passing.way is Way.STREAM:
            tree.stream(made, passing)
        else:
            tree.recompute(made, passing)
    value = tree.value()
    assignment = _assignment(group, value, builder)
    covered = covered_by(tree.root, builder.formats, semiring)
    target = written_result(
        walked[-1].read.target, walked[-1].order, covered, read_too=False, gaps=not semiring.zero
    )
    written = builder.written_name(last.result.tensor, target.stored)
    stage = rewrite(tree.root, lambda term: _renamed_tensor(term, last.result.tensor, written))
    scans = tuple(_row_scans(builder, stage, semiring))
    views = {
        scan.access: replace(scan.access, tensor=_with_rows(builder, scan))
        for scan in scans
        if scan.access.tensor in looked_up
    }
    stage = rewrite(stage, lambda term: views.get(term) if isinstance(term, Access) else None)
    sources = {view.name: view.source for view in builder.views}
    stage = with_notes(stage, _lanes_of(group, stage), sources, {}, builder.formats, semiring)
    stage = rewrite(stage, _without_lanes)
    builder.stages.append(stage)
    used = {access.tensor for access in accesses(stage)}
    program = ConcreteProgram(
        stages=(stage,),
        tensors=tuple(
            StoredTensor(name=name, format=format)
            for name, format in builder.formats.items()
            if name in used
        ),
        views=tuple(builder.views),
        splits=(),
        result=last.result.tensor,
        written=written,
        without_zeros=without_zeros_of(builder, [last], ""),
        row_scans=tuple(scan for scan in scans if scan.access not in views),
        semiring=semiring,
        location=last.location,
    )
    verify_program(program)
    return FusedProgram(assignment=assignment, program=program)


def _row_scans(builder: Builder, stage: Statement, semiring: Semiring) -> Iterator[RowScan]:
    """The inputs in compressed rows that a loop inside of others visits where another one has some.

    Vectors are not among them, nor rows that are dense: an array also has what is not stored.
    """

    def is_sparse(access: Access, variable: str) -> bool:
        format = builder.formats.get(access.tensor)
        if format is None:
            return False
        return not format.levels[format.modes.index(access.variables.index(variable))].full

    def has_rows(access: Access, variable: str) -> bool:
        format = builder.formats[access.tensor]
        outermost = access.variables[format.modes[0]] == variable
        in_rows = not all(level.full for level in format.levels[1:])
        return outermost and in_rows and not format.coordinate_list

    def scanned(loop: Forall) -> dict[Access, Access]:
        """These inputs at a loop, with the one whose coordinates it visits."""
        merge, variable = merge_at(loop, semiring), loop.variable
        leaves = dict.fromkeys(leaves_of(merge))
        sparse = [access for access in leaves if is_sparse(access, variable)]
        rows = [access for access in sparse if has_rows(access, variable)]
        found: dict[Access, Access] = {}
        for by in sparse if rows else ():
            for access, is_bounded in bounded_leaves(merge, leaves.keys() - {by}):
                if is_bounded and access in rows and by not in rows:
                    found.setdefault(access, by)
        return found

    def visit(statement: Statement, around: str) -> Iterator[RowScan]:
        match statement:
            case Forall(variable=variable, body=body):
                for access, by in scanned(statement).items() if around else ():
                    yield RowScan(access=access, by=by, row=variable, again=around)
                yield from visit(body, variable)
            case Where(consumer=consumer, producer=producer):
                yield from visit(producer, around)
                yield from visit(consumer, around)

    yield from dict.fromkeys(visit(stage, ""))


def _with_rows(builder: Builder, scan: RowScan) -> str:
    """The view of an input whose rows can be looked up."""
    name = scan.access.tensor
    format = builder.formats[name]
    view = next((view for view in builder.views if view.name == name), None)
    whole = tuple((Part(mode=mode),) for mode in range(format.order))
    reason = f"its rows are looked up in every {scan.again}"
    stored = Stored(
        variables=scan.access.variables,
        parts=whole if view is None else view.parts,
        format=replace(format, levels=(Dense(), *format.levels[1:])),
        reasons=(reason,) if view is None else (*view.reasons, reason),
    )
    return builder.read_name(name if view is None else view.source, stored)


def _lanes_of(group: StatementGroup, stage: Statement) -> Schedule:
    """The lanes of the loops around the last statement, inside of which the others are."""
    loops = loops_of(stage)
    dealt = [d for d in group.last.schedule.directives if isinstance(d, Parallelize)]
    for directive in dealt:
        if directive.variable not in loops:
            raise UserError(
                f"parallelize names {directive.variable}, which is not a loop around"
                f" {group.last.name}",
                location=directive.location,
                expected=f"one of {', '.join(loops)}",
                given=directive.variable,
            )
    return Schedule(directives=tuple(dealt))


def _without_lanes(term: object) -> Where | None:
    """Producers without lanes: loops over the same variable are others there."""
    if not isinstance(term, Where):
        return None
    return replace(
        term,
        producer=rewrite(
            term.producer, lambda t: replace(t, lanes=1) if isinstance(t, Forall) else None
        ),
    )


def _renamed_tensor(term: object, name: str, new: str) -> Access | None:
    if isinstance(term, Access) and term.tensor == name:
        return replace(term, tensor=new)
    return None


def _assignment(group: StatementGroup, value: Expression, builder: Builder) -> Assignment:
    """The result of a group from its inputs."""
    last = group.last.assignment
    inputs = {access.tensor for access in accesses(value)}
    tensors = {
        tensor.name: tensor
        for statement in group.statements
        for tensor in statement.assignment.tensors
        if tensor.name in inputs
    }
    declared = (*tensors.values(), last.tensor(last.result.tensor))
    return replace(last, value=value, tensors=declared)
