"""Which designs are products of a sparse matrix, and what they are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.location import user_location
from t2s.func.collect import needed_funcs, output_funcs
from t2s.func.func import TemporalFunc
from t2s.sparse_repr.representation import parameter as sparse
from t2s.sparse_repr.representation.definition import definition_of
from t2s.spatial.schedule import ScheduledFunc


def is_sparse(design: object) -> bool:
    """Whether a design is a Func that reads a matrix in a representation."""
    if not isinstance(design, TemporalFunc):
        return False
    kinds = sparse.Values | sparse.Coordinate
    return any(isinstance(s, kinds) for w in design.written for s in w.symbols.values())


def refuse_sparse(design: object) -> None:
    """Raise ``UnsupportedError`` if a Func of a dense design reads a sparse matrix."""
    for func in needed_funcs(output_funcs(design)):
        if is_sparse(func):
            raise UnsupportedError(
                f"{func.name} is a product of a sparse matrix, which is a design of its own",
                location=func.written[-1].location,
                expected=f"{func.name} alone, to interpret, lower or simulate"
                if func is not design
                else f"interpret, lower or simulate of {func.name}",
                given="a design of several Funcs" if func is not design else "its loop nest",
                hint="let the next design read the result of this one as an input"
                if func is not design
                else "its hardware follows from the representation: there is no loop nest to print",
            )


def split_inputs(design: ScheduledFunc, inputs: Mapping[str, Any]) -> tuple[object, dict[str, Any]]:
    """The matrix, and the other inputs."""
    name = definition_of(design).matrix.name
    if name not in inputs:
        raise UserError(
            f"the matrix {name} is missing",
            location=user_location(),
            expected=f"an input named {name}: a scipy.sparse matrix, an array or a Storage",
            given=", ".join(sorted(inputs)) or "no inputs",
        )
    return inputs[name], {key: value for key, value in inputs.items() if key != name}
