"""Tensors of blocks in concrete index notation.

The loops are those over grids of blocks, so they are built as for tensors of scalars in the formats
of the grids.  Then the variables get their sizes of blocks back, and the tensors their formats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from t2s.core.errors import UnsupportedError
from t2s.core.walk import walk
from t2s.sparse_repr.concrete.ir import (
    BlockedVariable,
    ConcreteProgram,
    StageWorkspace,
    StoredTensor,
    View,
)
from t2s.sparse_repr.concrete.schedule import (
    DropZeros,
    Schedule,
    SplitVariable,
    Vectorize,
)
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.blocks import sizes_at
from t2s.sparse_repr.notation.ir import Access, Assignment


def over_grids(assignment: Assignment) -> Assignment:
    """The assignment with tensors in the formats of their grids."""
    tensors = tuple(replace(tensor, format=tensor.format.grid) for tensor in assignment.tensors)
    return replace(assignment, tensors=tensors) if tensors != assignment.tensors else assignment


def formats_in_blocks(assignments: Sequence[Assignment]) -> dict[str, Format]:
    """The formats of the tensors whose values are blocks."""
    return {
        tensor.name: tensor.format
        for assignment in assignments
        for tensor in assignment.tensors
        if tensor.format.block
    }


def check_directives_of_blocks(schedule: Schedule, formats: Mapping[str, Format]) -> None:
    """Refuse directives that would look into blocks."""
    name, format = next(iter(formats.items()))
    for directive in schedule.directives:
        if isinstance(directive, SplitVariable | Vectorize | DropZeros):
            raise UnsupportedError(
                f"{name} is stored in blocks, and this directive is about elements",
                location=directive.location,
                expected="directives for loops over blocks, such as reorder and parallelize",
                given=f"{name} as {format}",
                hint=f"{name} as {format.grid} has elements",
            )


def with_blocks(
    program: ConcreteProgram, formats: Mapping[str, Format], exact: Sequence[str] | None
) -> ConcreteProgram:
    """The program of grids with blocks of the sizes that the ``formats`` of its tensors say.

    The sizes of variables that are ``exact``, or of all for ``None``, have to divide their extents.
    """
    sources = {view.name: view.source for view in program.views}
    stored = {tensor.name for tensor in program.tensors}
    walked = [
        access
        for stage in program.stages
        for access in walk(stage)
        if isinstance(access, Access) and access.tensor in stored
    ]
    sizes: dict[str, int] = {}
    for access in walked:
        format = formats.get(sources.get(access.tensor, access.tensor))
        if format is not None:
            sizes.update(sizes_at(access, format))
    blocks = {access.tensor: [sizes.get(n, 1) for n in access.variables] for access in walked}

    def in_blocks(tensor: StoredTensor) -> StoredTensor:
        return replace(tensor, format=tensor.format.in_blocks(blocks[tensor.name]))

    def viewed(view: View) -> View:
        return replace(view, format=view.format.in_blocks(blocks[view.name]))

    def temporary(workspace: StageWorkspace) -> StageWorkspace:
        block = [sizes.get(name, 1) for name in workspace.result.variables]
        return replace(workspace, format=workspace.format.in_blocks(block))

    return replace(
        program,
        tensors=tuple(map(in_blocks, program.tensors)),
        views=tuple(map(viewed, program.views)),
        workspaces=tuple(map(temporary, program.workspaces)),
        blocks=tuple(
            BlockedVariable(variable=name, size=size, exact=exact is None or name in exact)
            for name, size in sizes.items()
            if size > 1
        ),
    )
