"""Programs of concrete index notation, stage after stage, by compiled loops."""

from __future__ import annotations

from t2s.core.types import BOOL
from t2s.loops.stage_memory import StageRun, run_stage
from t2s.sparse_repr.binding import Binding, add_stage_views, final_result
from t2s.sparse_repr.concrete.ir import ConcreteProgram, result_of
from t2s.sparse_repr.notation.ir import Assignment
from t2s.sparse_repr.tensors.tensor import SparseTensor


def run_program(assignment: Assignment, program: ConcreteProgram, binding: Binding) -> SparseTensor:
    """The result of an assignment by the loops of its program, for what was bound to it.

    Sums are computed in the order of the loops, each into what was there before.  Raises
    ``UserError`` for a workspace that is too large.
    """
    if binding.type == BOOL:
        raise ValueError("bools are computed as bytes, over another semiring")
    written: SparseTensor | None = None
    for stage in program.stages:
        name = result_of(stage).tensor
        written = run_stage(
            StageRun(
                statement=stage,
                operands=binding.tensors,
                extents=binding.extents,
                writes=program.format_of(name),
                type=binding.type,
                semiring=program.semiring,
                location=program.location,
            )
        )
        add_stage_views(program, binding, written, name)
    assert written is not None
    return final_result(assignment, program, binding, written)
