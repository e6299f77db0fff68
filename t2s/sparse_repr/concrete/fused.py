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

from dataclasses import dataclass, replace

from t2s.core.errors import UserError
from t2s.core.names import NameSupply
from t2s.core.walk import rewrite
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
    Statement,
    StoredTensor,
    Where,
    loops_of,
)
from t2s.sparse_repr.concrete.materialize import written_result
from t2s.sparse_repr.concrete.merge import covered_by
from t2s.sparse_repr.concrete.notes import with_notes
from t2s.sparse_repr.concrete.order import verify_program
from t2s.sparse_repr.concrete.producers import ProducerTree, same_extents
from t2s.sparse_repr.concrete.schedule import (
    Parallelize,
    Schedule,
)
from t2s.sparse_repr.concrete.walked_statements import walk_statement
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Expression,
    accesses,
    all_variables,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedProgram:
    """The loops of a group, and what they compute as one assignment of its inputs."""

    assignment: Assignment
    program: ConcreteProgram


def fuse(group: StatementGroup) -> FusedProgram:
    """One nest for all statements of a group.

    Raises ``UserError`` where the loops of a reader do not fit those of what is passed on to it.
    """
    assignments = [statement.assignment for statement in group.statements]
    in_blocks = formats_in_blocks(assignments)
    if not in_blocks:
        return _fused(group)
    for statement in group.statements:
        check_directives_of_blocks(statement.schedule, in_blocks)
    statements = tuple(
        replace(statement, assignment=over_grids(statement.assignment))
        for statement in group.statements
    )
    fused = _fused(replace(group, statements=statements))
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


def _fused(group: StatementGroup) -> FusedProgram:
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
        semiring=semiring,
        location=last.location,
    )
    verify_program(program)
    return FusedProgram(assignment=assignment, program=program)


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
