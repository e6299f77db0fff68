"""What has no form in the parallel patterns of Capstan, said in the user's terms."""

from __future__ import annotations

from t2s.core.errors import UnsupportedError
from t2s.core.ops import Op
from t2s.core.walk import walk
from t2s.graph.graph import Place
from t2s.sparse_repr.concrete.pattern_directives import PATTERN_DIRECTIVES
from t2s.sparse_repr.concrete.schedule import OrderLoops, Precompute, Schedule
from t2s.sparse_repr.notation.ir import Access, Assignment, Combine, TensorDeclaration
from t2s.sparse_repr.semiring import PLUS_TIMES

LETTERS = "ds"
OPERATORS = (Op.ADD, Op.SUBTRACT, Op.MULTIPLY)


def check_supported(assignment: Assignment, schedule: Schedule) -> None:
    """Raise ``UnsupportedError`` for directives, formats and operators without patterns."""
    for one in schedule.directives:
        if not isinstance(one, (*PATTERN_DIRECTIVES, OrderLoops, Precompute)):
            raise UnsupportedError(
                "this directive is for streams, and Capstan does not know it",
                location=one.location,
                expected="reorder, precompute, map, accelerate, environment, promote, communicate",
            )
        if isinstance(one, Precompute) and (one.over is None or one.format is None):
            raise UnsupportedError(
                f"the workspace {one.workspace} has no place on the accelerator",
                location=one.location,
                expected="a tensor on chip, and its variables",
                hint=f'precompute(..., Tensor("{one.workspace}", dense(1).on_chip), over=(k,))',
            )
    for tensor in assignment.tensors:
        _check_tensor(tensor)
    if assignment.semiring != PLUS_TIMES:
        raise UnsupportedError(
            "sums and products of this semiring have no reduction pattern yet",
            location=assignment.location,
            expected="plus and times",
        )
    for term in walk(assignment.value):
        if isinstance(term, Combine) and term.operator not in OPERATORS:
            raise UnsupportedError(
                f"there is a {term.operator.value} in the expression",
                location=assignment.location,
                expected="additions, subtractions and products",
            )
        if isinstance(term, Access):
            _check_access(term, assignment)


def _check_tensor(tensor: TensorDeclaration) -> None:
    odd = [level for level in tensor.format.levels if level.letter not in LETTERS]
    if odd or not tensor.format.plain:
        raise UnsupportedError(
            f"{tensor.name} has {odd[0].title if odd else 'blocked'} levels,"
            " which Capstan's memories have no form for",
            location=tensor.location,
            expected="dense and compressed levels of whole modes (d, s)",
            given=str(tensor.format),
            hint="declare it with another format: inputs are converted to it",
        )
    if tensor.format.place is Place.CHIP:
        raise UnsupportedError(
            f"{tensor.name} is on chip, where the host can neither fill nor read it",
            location=tensor.location,
            expected="inputs and results off chip; workspaces on chip",
            hint=f"{tensor.name} moves on chip by precompute or accelerate",
        )


def _check_access(access: Access, assignment: Assignment) -> None:
    if access.tensor == assignment.result.tensor:
        raise UnsupportedError(
            f"{access.tensor} is read and written",
            location=access.location or assignment.location,
            expected="a result of its own",
        )
    if len(set(access.variables)) < len(access.variables):
        raise UnsupportedError(
            f"{access.tensor}({','.join(access.variables)}) is a diagonal",
            location=access.location or assignment.location,
            expected="a variable of its own for each mode",
        )
